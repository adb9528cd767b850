"""Buffers of simulated kernels through the converter: the same stamps, states and waits as the simulator's tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simulator_bundle
from simulator_cases import OFFSETS, PLANTED

from simulator import Run, simulate
from wsformat.bundle import Bundle
from wsformat.converters import registry

ONE_LANE_A_ROLE = [n for n, k in PLANTED.items() if all(count == 1 for _, count in k.lanes())]


def role_spec(runs: list[Run]) -> dict[str, Any]:
    kernel, names = runs[0].kernel, simulator_bundle.event_order(runs)
    used = dict.fromkeys((s.lane.role, s.event) for run in runs for s in run.stamps)
    spans = [{k: v for k, v in r.items() if k != "capture_id"} for r in simulator_bundle.span_types(kernel)]
    edges = simulator_bundle.dependencies(kernel, declared=True)
    once = {(s["role"], s[end]) for s in spans if s.get("loop") == "once" for end in ("begin_event", "end_event")}
    return {
        "wsformat_rolespec": "0.1",
        "roles": [{"role": role} for role, _ in kernel.lanes()],
        "events": [
            {"role": r, "event": e, "event_index": names.index(e), "loop": "once" if (r, e) in once else "k"}
            for r, e in used
        ],
        "spans": spans,
        "dependencies": [{k: v for k, v in r.items() if k != "capture_id"} for r in edges],
    }


def table(bundle: Bundle, sql: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(r.values()) for r in bundle.sql(sql).to_pylist())


STATES = "SELECT launch, cta, role, extent, stall, active, untracked FROM role_state WHERE points > 0"
WAITS = "SELECT launch, cta, role, span, iteration, t1 - t0, verdict, blocked_ticks FROM wait"
EVENTS = "SELECT launch, cta, role, event, iteration, t FROM events"


@pytest.mark.parametrize(("name", "offset"), [(n, list(OFFSETS)[i % 3]) for i, n in enumerate(ONE_LANE_A_ROLE)])
def test_same_as_the_simulator(name: str, offset: str, tmp_path: Path) -> None:
    runs = simulate(PLANTED[name], 5, launches=2, ctas=2, offset=OFFSETS[offset])
    slots, records = simulator_bundle.raw(runs)
    if any((s.t % 2**32) == 0 for run in runs for s in run.stamps):
        pytest.skip("a stamp of 0 looks like one that was not written")
    files, metas = [], []
    for launch in range(2):
        mine = [n for n, run in enumerate(runs) if run.launch == launch]
        files.append(tmp_path / f"{launch}.npy")
        metas.append(tmp_path / f"{launch}.meta")
        np.save(files[-1], slots[mine])
        records[mine].tofile(metas[-1])
    spec = role_spec(runs)
    bundle = registry.import_files(files, {"spec": spec, "meta": metas})
    truth = simulator_bundle.bundle(runs)
    assert table(bundle, EVENTS) == table(truth, EVENTS)
    assert table(bundle, STATES) == table(truth, STATES)
    assert table(bundle, WAITS) == table(truth, WAITS)
    wraps = {(r["launch"], r["cta"], r["role"]): r["wraps"] for r in bundle.table("lanes").to_pylist() if r["role"]}
    for run in runs:
        for lane in run.lanes:
            turns = {s.t >> 32 for s in lane.stamps}
            assert wraps[run.launch, run.cta, lane.role] == max(turns) - min(turns)
    # Without the records the low halves and their order are all there is: the same but for whole turns a CTA.
    bare = registry.import_files(files, {"spec": spec})
    assert table(bare, STATES) == table(truth, STATES)
