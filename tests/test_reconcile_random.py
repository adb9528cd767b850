"""Any simulated kernel: the gap adds up, its window is the lane's own, and nothing fails."""

from __future__ import annotations

import pytest
import simulator_bundle
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from reconcile_case import budget, with_budget
from simulator_cases import kernels

from simulator import Kernel, simulate
from wsformat.viewers.reconcile import reconcile
from wsformat.viewers.reconcile_verdict import AGREE, INCOMPLETE, UNJUDGED


# No shrinking: each example asks every view of a bundle, and hundreds of them would take minutes.
@settings(max_examples=12, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(kernels(lead=False), st.integers(0, 1000), st.sampled_from([100.0, 1000.0, 1e6]))
def test_random_kernels(kernel: Kernel, seed: int, cycles: float) -> None:
    runs = simulate(kernel, seed)
    roles = [role for role, _ in kernel.lanes()][1:]
    plan = budget(cycles={"tensor": dict.fromkeys(roles, cycles / len(roles))})
    report = reconcile(with_budget(simulator_bundle.bundle(runs), plan))
    # Too few iterations for a steady window, and no clean run: then there is nothing to compare.
    assert report.verdict.verdict in ((AGREE, INCOMPLETE) if report.residual else (AGREE, INCOMPLETE, UNJUDGED))
    assert report.markdown()
    assert report.findings()
    gap = report.residual
    if gap is None:
        return
    assert sum(term.cycles for term in gap.terms) == pytest.approx(gap.gap, abs=1e-6)
    row = gap.evidence["row"]
    assert gap.measured * gap.iterations == pytest.approx(row["t1"] - row["t0"])
    # The window begins and ends where the simulator's lane began an iteration.
    lane = next(lane for lane in runs[0].lanes if lane.warp == row["lane"])
    assert {row["t0"], row["t1"]} <= set(lane.starts)
    assert lane.starts.index(row["t1"]) - lane.starts.index(row["t0"]) == gap.iterations
    # What was found on the path fills the window, whatever the budget took off.
    raw = sum(term.raw for term in gap.terms if term.kind not in ("rest", "probe", "launch")) + report.plan.cycles
    assert raw == pytest.approx(gap.measured, abs=1e-3)
    # Without clean launches nothing may be said with confidence, whatever the kernel.
    assert report.verdict.confidence <= 0.6
