"""The simulator against itself and against arithmetic: its truth must be true before anything is measured by it."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulator_bundle import dependencies
from simulator_cases import PLANTED, kernels
from simulator_kernels import Attention, Ring

import simulator
from simulator import Kernel, Run, Ticks, simulate, states


def check(run: Run) -> None:
    """Everything that must hold in a kernel that works, told from the stamps of the roles and their iterations."""
    kernel, lead = run.kernel, run.kernel.lead
    for lane in run.lanes:
        times = [stamp.t for stamp in lane.stamps]
        assert times == sorted(times)
        ticks = states(lane)
        assert ticks["stall"] + ticks["active"] + ticks["untracked"] == ticks["extent"]
    at: dict[tuple[str, str, int], list[int]] = {}
    for stamp in run.stamps:
        at.setdefault((stamp.lane.role, stamp.event, stamp.iteration), []).append(stamp.t)
    for wait in run.waits:
        assert wait.ticks >= wait.cost
        assert wait.blocked >= 0
        assert all(arrival.completed <= wait.exit.t for arrival in wait.arrivals)
        assert (wait.verdict == "free") == (not wait.arrivals)
    # Every declared edge really held the wait back: no consumer reads before its data is there, no producer
    # overwrites what is still read, nobody leaves a barrier before the last has come. Without regard to barriers.
    for edge in dependencies(kernel, declared=True):
        own = edge["mechanism"] == "commit"
        for wait in run.waits:
            if (wait.lane.role, wait.exit.event) != (edge["consumer_role"], edge["consumer_event"]):
                continue
            units = edge["consumer_step"] * wait.iteration - edge["iteration_lag"]
            name = (edge["producer_role"], edge["producer_event"], units // edge["producer_step"])
            if units % edge["producer_step"] or name not in at:
                assert units < 0 or units % edge["producer_step"]
                continue
            signalled = [s.t for s in wait.lane.stamps if (s.lane.role, s.event, s.iteration) == name]
            last = max(signalled if own else at[name])
            assert wait.exit.t >= last + edge["latency_ticks"] - kernel.wake
            named = {(a.stamp.lane.role, a.stamp.event, a.stamp.iteration) for a in wait.arrivals}
            assert name in named
    in_flight(run, lead)
    path = simulator.critical_path(run)
    assert path[0].t0 == min(stamp.t for stamp in run.stamps)
    assert path[-1].t1 == max(stamp.t for stamp in run.stamps)
    if not lead:
        assert all(before.t1 == after.t0 for before, after in pairwise(path))


def in_flight(run: Run, lead: int) -> None:
    """At most S tiles are between their acquire and their last release."""
    kernel = run.kernel
    if isinstance(kernel, Attention):
        fill, acquire = "load", "acquire_exit"
    else:
        fill, acquire = "producer", "wait_exit"
    change: list[tuple[int, int]] = []
    for n in range(kernel.total * (2 if isinstance(kernel, Attention) else 1)):
        taken = [s.t for s in run.stamps if (s.lane.role, s.event, s.iteration) == (fill, acquire, n)]
        event, i = ("pv_end", n // 2) if isinstance(kernel, Attention) else ("arrive", n)
        freed = [s.t - lead for s in run.stamps if (s.event, s.iteration) == (event, i)]
        change += [(min(taken), 1), (max(freed), -1)]
    held = most = 0
    for _, step in sorted(change):
        held += step
        most = max(most, held)
    assert most <= kernel.stages


@pytest.mark.parametrize("name", PLANTED)
def test_planted_kernels_are_consistent(name: str) -> None:
    for run in simulate(PLANTED[name], seed=3, launches=2, ctas=2):
        check(run)


@settings(max_examples=60, deadline=None)
@given(kernel=kernels(latency_jitter=40, cost_jitter=9), seed=st.integers(0, 9))
def test_random_kernels_are_consistent(kernel: Kernel, seed: int) -> None:
    # With jitter the declared latency is the least one, so that every check of an edge still must hold.
    for run in simulate(kernel, seed):
        check(run)


@settings(max_examples=40, deadline=None)
@given(
    stages=st.integers(1, 6),
    spin=st.integers(0, 900),
    issue=st.integers(0, 200),
    work=st.integers(0, 900),
    tail=st.integers(0, 50),
    latency=st.integers(0, 1500),
)
def test_speed_is_that_of_arithmetic(stages: int, spin: int, issue: int, work: int, tail: int, latency: int) -> None:
    kernel = Ring(
        stages=stages, iterations=40 * stages, spin=Ticks(spin), issue=Ticks(issue), work=(Ticks(work),),
        tail=Ticks(tail), latency=Ticks(latency), skew=Ticks(0),
    )  # fmt: skip
    probe, cost, wake = kernel.probe, kernel.cost.base, kernel.wake
    fill, drain = 2 * probe + spin + issue, 3 * probe + work + tail
    ring = Fraction(fill + latency + wake + drain + wake, stages)
    period = max(Fraction(cost + fill + probe), Fraction(cost + drain + probe), ring)
    # Once the ring has settled, S iterations take S periods to the tick.
    for lane in simulate(kernel)[0].lanes:
        assert lane.starts[-1] - lane.starts[-1 - 4 * stages] == 4 * stages * period


def test_the_path_is_what_the_end_depends_on() -> None:
    """Only work on the critical path moves the end: a busy spare role does not, the pacing role does by N times."""
    base = Ring(iterations=30, work=(Ticks(300), Ticks(900)), skew=Ticks(0))
    end = max(stamp.t for stamp in simulate(base)[0].stamps)
    spare = Ring(iterations=30, work=(Ticks(320), Ticks(900)), skew=Ticks(0))
    assert max(stamp.t for stamp in simulate(spare)[0].stamps) == end
    pacing = Ring(iterations=30, work=(Ticks(300), Ticks(901)), skew=Ticks(0))
    assert max(stamp.t for stamp in simulate(pacing)[0].stamps) == end + 30
    path = simulator.critical_path(simulate(base)[0])
    assert sum(step.role == "consumer1" and step.kind == "active" for step in path) == 30
    assert sum(step.role == "consumer0" for step in path) == 0


def test_planted_cases_have_the_character_of_their_name() -> None:
    def count(name: str, span: str, role: str = "consumer0") -> dict[str, int]:
        verdicts = [w.verdict for w in simulate(PLANTED[name])[0].waits if (w.lane.role, w.span) == (role, span)]
        return {verdict: verdicts.count(verdict) for verdict in set(verdicts)}

    assert count("balanced", "wait")["not_blocked"] >= 30
    assert count("slow_producer", "wait") == {"producer_late": 24}
    assert count("slow_consumer", "wait", "producer") == {"free": 4, "producer_late": 20}
    assert count("latency_bound", "wait")["in_flight"] >= 10
    assert count("too_few_stages", "wait", "producer") == {"free": 1, "producer_late": 23}
    assert count("serial", "order", "consumer2") == {"producer_late": 24}
    assert count("wgmma_wait", "mma") == {"in_flight": 4 * 20}


def test_an_undeclared_cause_is_the_only_one_called_other() -> None:
    planted = (("consumer0", "wait", 9), 5_000), (("producer", "wait", 12), 6_000)
    waits = simulate(Ring(iterations=20, undeclared=planted))[0].waits
    other = [(w.lane.role, w.iteration, w.ticks) for w in waits if w.verdict == "other"]
    assert sorted(other) == [("consumer0", 9, 5_000), ("producer", 12, 6_000)]


def test_same_seed_same_run() -> None:
    one, two, three = (simulate(PLANTED["everything"], seed)[0] for seed in (1, 1, 2))
    assert [s.t for s in one.stamps] == [s.t for s in two.stamps]
    assert [s.t for s in one.stamps] != [s.t for s in three.stamps]
