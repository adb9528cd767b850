"""Waits for other CTAs on SMs with clocks of their own: what is said of them is true, or is "within clock error"."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import pytest
import simulator_cross
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from simulator_cross import Case, Run, Wait

from wsformat.bundle import Bundle
from wsformat.derive import run

Row = dict[str, Any]
VIEWS = ("clock_segment", "wait_edge", "wait")


def judged(runs: list[Run]) -> tuple[dict[tuple[Any, ...], Row], dict[tuple[Any, ...], list[Row]]]:
    """Rows of wait, and of wait_edge, by capture, lane, span and iteration."""
    tables: dict[str, list[Row]] = defaultdict(list)
    for number, one in enumerate(runs):
        for name, rows in simulator_cross.tables(one, f"{number:026x}").items():
            tables[name] += rows
    with Bundle.from_tables(tables).duckdb(threads=1, only=VIEWS, materialise=VIEWS) as connection:
        waits = run(connection, "SELECT * FROM wait").to_pylist()
        edges = run(
            connection,
            "SELECT x.*, k.span, k.producer_role FROM wait_edge x JOIN wait_kind k ON k.capture_id = x.capture_id "
            "AND k.wait_kind = x.wait_kind AND k.edge_kind = x.edge_kind",
        ).to_pylist()
    of_wait: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in edges:
        of_wait[row["capture_id"], row["lane"], row["span"], row["iteration"]].append(row)
    return {(r["capture_id"], r["lane"], r["span"], r["iteration"]): r for r in waits}, of_wait


def check_signal(row: Row, wait: Wait, known: list[Row]) -> None:
    """Each signal lies within its error of the true one, and its lane may be the last."""
    for edge, at in zip(wait.edges, wait.signal, strict=True):
        (found,) = [r for r in known if r["producer_role"] == edge.role]
        assert abs(found["signal_t"] - at) <= max(found["error_ticks"], 0.0), (found, at)
        sent = {s.lane.number: s for s in edge.signals}[found["producer_lane"]]
        # In ns; rates are below 2 GHz, and two signals each have an error.
        assert edge.last.time - sent.time <= 2 * found["error_ticks"]
    if row["slack"] is not None:
        n = [e.role for e in wait.edges].index(row["producer_role"])
        assert abs(row["slack"] - (wait.t1 - wait.signal[n])) <= row["error_ticks"]


def check(runs: list[Run]) -> Counter[str]:
    """Every verdict is the true one, or unknown within clock error."""
    waits, edges = judged(runs)
    assert len(waits) == sum(len(one.waits) for one in runs)
    seen: Counter[str] = Counter()
    for number, one in enumerate(runs):
        for wait in one.waits:
            key = (f"{number:026x}", wait.lane.number, wait.span, wait.iteration)
            row = waits[key]
            assert (row["t0"], row["t1"]) == (wait.t0, wait.t1)
            if wait.edges and any(r["is_needed"] and r["signal_t"] is None for r in edges[key]):
                # The timer did not move, or not on this SM: no rate, or no bound.
                assert one.case.step > 1000 or not one.is_bounded
                assert (row["verdict"], row["reason"]) == ("unknown", "no signal")
                seen["no signal"] += 1
                continue
            check_signal(row, wait, edges[key])
            said = row["verdict"]
            seen[said if said != "unknown" else row["reason"]] += 1
            assert said == wait.verdict or (said, row["reason"]) == ("unknown", "within clock error"), (
                one.case, row, wait.verdict, wait.signal, edges[key],
            )  # fmt: skip
            if said == "unknown":
                check_unknown(wait, edges[key])
    return seen


def check_unknown(wait: Wait, known: list[Row]) -> None:
    """Not lazy: something lies nearer to a border than the errors. Twice: they are stated, not what happened."""
    near = []
    for edge, at in zip(wait.edges, wait.signal, strict=True):
        (found,) = [r for r in known if r["producer_role"] == edge.role]
        error = 2 * found["ready_error"] + 2 * found["error_ticks"] + 2
        near += [abs(at - wait.t0) <= error, abs(at + edge.latency - wait.t0) <= error]
        for other, there in zip(wait.edges, wait.signal, strict=True):
            near.append(other is not edge and abs(at + edge.latency - there - other.latency) <= error)
    assert any(near), (wait, known)


CASES = st.builds(
    Case,
    kernel=st.sampled_from(["ring", "ring", "leader", "flags"]),
    seed=st.integers(0, 2**32 - 1),
    clusters=st.integers(1, 2),
    width=st.sampled_from([2, 2, 4]),
    iterations=st.integers(1, 14),
    stages=st.integers(1, 3),
    step=st.sampled_from([1, 32, 32, 1024]),
    load=st.sampled_from([(1, 30), (100, 1500), (20, 100), (500, 2000)]),
    multiply=st.sampled_from([(1, 30), (100, 900), (400, 700), (20, 3000)]),
    middle=st.integers(1, 3),
    local=st.booleans(),
) | st.builds(
    Case,
    kernel=st.sampled_from(["ring", "flags"]),
    seed=st.integers(0, 2**32 - 1),
    iterations=st.integers(1, 14),
    changes=st.integers(0, 2),
    middle=st.just(0),
)


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(CASES, min_size=1, max_size=10))
def test_what_is_said_of_random_kernels_is_true(cases: list[Case]) -> None:
    check([simulator_cross.run(case) for case in cases])


def test_planted_kernels_reach_every_verdict() -> None:
    """On a timer of 1 ns nearly everything can be said; on one of a microsecond next to nothing."""
    fine, coarse = (
        check([
            simulator_cross.run(Case(kernel, seed, iterations=14, step=step, local=seed % 2 == 0))
            for kernel in ("ring", "leader", "flags") for seed in range(4)
        ])
        for step in (1, 1024)
    )  # fmt: skip
    assert set(fine) == {"free", "not_blocked", "producer_late", "in_flight", "within clock error"}
    assert fine["within clock error"] < 0.1 * fine.total()
    assert min(fine["producer_late"], fine["in_flight"], fine["not_blocked"]) > 20
    assert coarse["within clock error"] > 0.6 * coarse.total()


def as_seen(made: Run) -> tuple[dict[str, float], bool]:
    """The release of each producer by the definition, with the true times; and whether the clocks can show it."""
    slacks: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for wait in made.waits:
        for edge, at in zip(wait.edges, wait.signal, strict=True):
            if at > wait.t0:
                slacks[edge.role].append((wait.t1 - at, at - wait.t0))
    least = {role: min(found)[0] for role, found in slacks.items()}
    # A wait that began long before its signal, and that nothing else held up, shows the least slack.
    shown = all(any(slack <= least[role] + 1 and late > 500 for slack, late in found) for role, found in slacks.items())
    return least, shown and bool(slacks)


@pytest.mark.parametrize("local", [False, True])
def test_releases_are_inferred_from_waits_that_surely_began_before_their_signal(local: bool) -> None:
    """Latencies are not declared. A satisfied wait near its signal must not pass for one that the signal ended."""
    runs = [
        simulator_cross.run(Case("ring", seed, step=step, iterations=24, load=(1, 1200), declared=False, local=local))
        for seed in range(6)
        for step in (1, 32)
    ]
    waits, edges = judged(runs)
    seen: Counter[str] = Counter()
    checked = 0
    for number, one in enumerate(runs):
        least, shown = as_seen(one)
        checked += shown
        for wait in one.waits:
            key = (f"{number:026x}", wait.lane.number, wait.span, wait.iteration)
            for row in edges[key]:
                for edge in (e for e in wait.edges if e.role == row["producer_role"]):
                    if row["release_ticks"] is not None:
                        assert row["release_ticks"] >= edge.latency - row["ready_error"], (row, edge.latency)
                    edge.latency = round(least.get(edge.role, edge.latency))
            row = waits[key]
            seen[row["verdict"]] += 1
            if shown and row["verdict"] in ("not_blocked", "in_flight", "producer_late"):
                assert row["verdict"] == wait.verdict, (row, wait.verdict, edges[key])
    assert checked > len(runs) / 2
    assert min(seen["in_flight"], seen["producer_late"]) > 10
