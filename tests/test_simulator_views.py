"""The derived views against a world that knows the truth (tests/simulator.py).

Exact where the definitions allow it: a satisfied wait costs a constant time, and the time from a signal to the release
of its wait is declared, or constant and seen on each edge in a wait that the signal ended. Else the bound is stated.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import ceil, isclose

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulator_bundle import Key, bundle, key, span_types
from simulator_cases import OFFSETS, PLANTED, kernels
from simulator_kernels import Attention, Ring

from simulator import Kernel, Run, Ticks, Wait, simulate, states

Row = dict[str, object]


def rows(connection: duckdb.DuckDBPyConnection, query: str) -> list[Row]:
    return connection.sql(query).to_arrow_table().to_pylist()


def wait_key(run: Run, wait: Wait) -> tuple[object, ...]:
    return run.launch, run.cta, wait.lane.warp, wait.span, wait.iteration


def waits_seen(connection: duckdb.DuckDBPyConnection) -> dict[tuple[object, ...], Row]:
    found = rows(connection, "SELECT * FROM wait")
    return {(r["launch"], r["cta"], r["warp"], r["span"], r["iteration"]): r for r in found}


def check_waits(connection: duckdb.DuckDBPyConnection, runs: Sequence[Run], lost: Collection[Key] = ()) -> None:
    """Every wait, to the tick: its span, binding signal, verdict and division."""
    seen = waits_seen(connection)
    for run in runs:
        for wait in run.waits:
            if key(run, wait.enter) in lost or key(run, wait.exit) in lost:
                assert wait_key(run, wait) not in seen
                continue
            row = seen.pop(wait_key(run, wait))
            assert (row["t0"], row["t1"], row["ticks"]) == (wait.enter.t, wait.exit.t, wait.ticks)
            if any(key(run, arrival.stamp) in lost for arrival in wait.arrivals):
                parts = row["blocked_ticks"], row["satisfied_ticks"], row["unjudged_ticks"]
                assert (row["verdict"], *parts) == ("unknown", 0, 0, wait.ticks)
            else:
                check_judgement(row, wait)
    assert not seen


def check_judgement(row: Row, wait: Wait) -> None:
    parts = row["blocked_ticks"], row["satisfied_ticks"], row["unjudged_ticks"]
    assert (row["role"], row["verdict"], *parts) == (wait.lane.role, wait.verdict, wait.blocked, wait.cost, 0)
    signal = row["producer_role"], row["producer_event"], row["producer_iteration"], row["signal_t"]
    if wait.binding is None:
        assert signal == ("", "", None, None)
    else:
        by = wait.binding.stamp
        assert signal == (by.lane.role, by.event, by.iteration, by.t)


def check_states(connection: duckdb.DuckDBPyConnection, runs: Sequence[Run]) -> None:
    seen = {(r["launch"], r["cta"], r["warp"]): r for r in rows(connection, "SELECT * FROM role_state")}
    for run in runs:
        for lane in run.lanes:
            row = seen.pop((run.launch, run.cta, lane.warp))
            assert {name: row[name] for name in states(lane)} == states(lane)
    assert not seen
    assert rows(connection, "SELECT * FROM orphan") == []


def settled(kernel: Kernel, role: str) -> int:
    """S of the role: depth of its deepest ring in its own iterations, at least 2."""
    if isinstance(kernel, Attention):
        return max(2, kernel.stages + 1 if role == "load" else ceil((kernel.stages + 1) / 2))
    return max(2, kernel.stages)


def check_iterations(connection: duckdb.DuckDBPyConnection, runs: Sequence[Run]) -> None:
    seen = {(r["launch"], r["role"]): r for r in rows(connection, "SELECT * FROM iteration_summary")}
    for launch in {run.launch for run in runs}:
        for role, _ in runs[0].kernel.lanes():
            lanes = [lane for run in runs if run.launch == launch for lane in run.lanes if lane.role == role]
            s, n = settled(runs[0].kernel, role), len(lanes[0].starts)
            row = seen.pop((launch, role), None)
            if n < 4 * s:
                assert row is None
                continue
            assert row is not None
            assert row["samples"] == len(lanes) * (n - 2 * s)
            total = sum(lane.starts[n - s] - lane.starts[s] for lane in lanes)
            assert isclose(row["mean_ticks"], total / (len(lanes) * (n - 2 * s)), rel_tol=1e-12)
    assert not seen


def busy(run: Run, role: str, start: int, length: int) -> np.ndarray:
    """Tick by tick, whether any lane of the role is in exclusive active state."""
    ticks = np.zeros(length, bool)
    for lane in run.lanes:
        for before, stamp in zip(lane.stamps, lane.stamps[1:], strict=False):
            if lane.role == role and stamp.since == "active":
                ticks[before.t - start : stamp.t - start] = True
    return ticks


def check_overlap(connection: duckdb.DuckDBPyConnection, runs: Sequence[Run]) -> None:
    found = rows(connection, "SELECT * FROM overlap WHERE set_kind = 'role'")
    seen = {(r["launch"], r["cta"], r["set_a"], r["set_b"]): r for r in found}
    for run in runs:
        start, stop = min(s.t for s in run.stamps), max(s.t for s in run.stamps)
        active = {role: busy(run, role, start, stop - start) for role, _ in run.kernel.lanes()}
        for a in active:
            for b in active:
                both, either = active[a] & active[b], active[a] | active[b]
                row = seen.pop((run.launch, run.cta, a, b), None) if a < b else None
                if a < b and either.any():
                    assert row is not None
                    ticks = row["both_ticks"], row["a_ticks"], row["b_ticks"], row["union_ticks"]
                    assert ticks == (both.sum(), active[a].sum(), active[b].sum(), either.sum())
    assert not seen


def check_early(connection: duckdb.DuckDBPyConnection, runs: Sequence[Run]) -> None:
    seen = rows(connection, "SELECT launch, cta, warp, event, iteration, t FROM early_signal")
    truth = [(*key(run, stamp), stamp.t) for run in runs for lane in run.lanes for stamp in strictly_inside(lane.early)]
    assert sorted(tuple(row.values()) for row in seen) == sorted(truth)


def strictly_inside(stamps: list) -> list:
    """Without the signals that fall on the tick where their work begins or ends."""
    kept = []
    for stamp in stamps:
        own = stamp.lane.stamps
        at = own.index(stamp)
        begin = next(s for s in reversed(own[:at]) if s.event == "work_begin")
        end = next(s for s in own[at:] if s.event == "work_end")
        if begin.t < stamp.t < end.t:
            kept.append(stamp)
    return kept


def check_all(runs: Sequence[Run], declared: bool, clock_unit: str = "cycle") -> None:
    with bundle(runs, declared=declared, clock_unit=clock_unit).duckdb() as connection:
        check_waits(connection, runs)
        check_states(connection, runs)
        check_iterations(connection, runs)
        check_overlap(connection, runs)
        check_early(connection, runs)


def shown_kinds(runs: Sequence[Run]) -> set[tuple[str, str]]:
    """Kinds of wait (role, span) whose every edge shows its release.

    It does in a wait that began before the signal and ended by it. A lane never waits for its own arrival at a
    symmetric barrier; there, what one edge shows holds for all.
    """
    every, shown = set(), set()
    for run in runs:
        for wait in run.waits:
            for arrival in wait.arrivals:
                edge = (wait.lane.role, wait.span, arrival.stamp.lane.role, arrival.stamp.event)
                every.add(edge)
                if arrival.stamp.t > wait.enter.t and wait.exit.t == arrival.completed + wait.wake:
                    shown.add(edge)
    met = {edge[:2] for edge in shown if edge[3] == "sync_enter"}
    hidden = {edge[:2] for edge in every - shown} - met
    return {(wait.lane.role, wait.span) for run in runs for wait in run.waits} - hidden


def check_inferred(runs: Sequence[Run]) -> set[tuple[str, str]]:
    """Without declared latencies: exact where the edges show them, else blocked as long as in truth, or less."""
    exact = shown_kinds(runs)
    with bundle(runs, declared=False).duckdb() as connection:
        seen = waits_seen(connection)
        for run in runs:
            for wait in run.waits:
                row = seen.pop(wait_key(run, wait))
                if (wait.lane.role, wait.span) in exact:
                    check_judgement(row, wait)
                assert 0 <= row["blocked_ticks"] <= wait.blocked
                assert row["blocked_ticks"] + row["satisfied_ticks"] + row["unjudged_ticks"] == wait.ticks
        assert not seen
        check_states(connection, runs)
    return exact


@pytest.mark.parametrize("name", PLANTED)
def test_planted_kernels_with_declared_latency(name: str) -> None:
    check_all(simulate(PLANTED[name], seed=5, launches=2, ctas=2 if name == "persistent" else 1), declared=True)


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("balanced", {"consumer0 wait", "consumer1 wait"}),
        ("slow_producer", {"consumer0 wait", "consumer1 wait"}),
        ("slow_consumer", {"consumer0 wait", "consumer1 wait"}),
        ("too_few_stages", {"producer wait", "consumer0 wait", "consumer1 wait"}),
        ("latency_bound", {"producer wait", "consumer0 wait", "consumer1 wait"}),
        ("serial", {"consumer1 order", "consumer2 order"}),
        ("symmetric_barrier", {"consumer0 sync", "consumer1 sync"}),
        ("attention", {"load acquire", "compute0 k_wait", "compute1 k_wait"}),
        ("attention_slow_load", {"compute0 k_wait", "compute1 k_wait"}),
    ],
)
def test_planted_kernels_with_inferred_latency(name: str, kinds: set[str]) -> None:
    """The kinds named are judged exactly: they show their latencies."""
    exact = check_inferred(simulate(PLANTED[name], seed=5, ctas=2))
    assert kinds <= {" ".join(kind) for kind in exact}


@settings(max_examples=15, deadline=None)
@given(kernel=kernels(), seed=st.integers(0, 99), place=st.sampled_from(sorted(OFFSETS)), many=st.booleans())
def test_random_kernels_with_declared_latency(kernel: Kernel, seed: int, place: str, many: bool) -> None:
    runs = simulate(kernel, seed, launches=1 + many, ctas=1 + many, offset=OFFSETS[place])
    check_all(runs, declared=True, clock_unit="ns" if place == "epoch_ns" else "cycle")


@settings(max_examples=15, deadline=None)
@given(kernel=kernels(), seed=st.integers(0, 99))
def test_random_kernels_with_inferred_latency(kernel: Kernel, seed: int) -> None:
    check_inferred(simulate(kernel, seed))


@settings(max_examples=15, deadline=None)
@given(kernel=kernels(latency_jitter=60, cost_jitter=20, lead=False), seed=st.integers(0, 99))
def test_jitter_of_cost_and_latency_bounds_the_error(kernel: Kernel, seed: int) -> None:
    """With the least latency declared, blocked is off by no more than the jitter of cost plus that of latency.

    The floor lies within the jitter of the cost, ready within that of the latency. A verdict differs only where
    ready lies within the jitter of the begin, or where two signals completed within the jitter of each other.
    """
    runs = simulate(kernel, seed)
    slack = kernel.cost.jitter + kernel.latency.jitter
    with bundle(runs, declared=True).duckdb() as connection:
        seen = waits_seen(connection)
        for run in runs:
            for wait in run.waits:
                row = seen[wait_key(run, wait)]
                assert abs(row["blocked_ticks"] - wait.blocked) <= slack
                if wait.binding is None:
                    assert row["verdict"] == "free"
                    continue
                completed = sorted(a.completed for a in wait.arrivals)
                rivals = sum(c >= completed[-1] - kernel.latency.jitter for c in completed) > 1
                if abs(wait.ready - wait.enter.t) > kernel.latency.jitter and not rivals:
                    assert row["verdict"] == wait.verdict
                    assert row["signal_t"] == wait.binding.stamp.t
        check_states(connection, runs)


def test_symmetric_release_is_that_of_the_barrier() -> None:
    """A lane's own arrival shows no release; the last to arrive binds all the same, for itself as for the others."""
    check_inferred(runs := simulate(Ring(sync=True, iterations=12, work=(Ticks(300, 80),)), seed=0))
    own = [wait for wait in runs[0].waits if wait.span == "sync" and wait.binding.stamp.lane is wait.lane]
    assert len(own) == 12
    assert {(wait.lane.role, wait.span) for wait in own} <= shown_kinds(runs)


@pytest.mark.parametrize("spin", [10, 900], ids=["signals_there_at_begin", "signals_late"])
def test_an_undeclared_cause_is_called_other(spin: int) -> None:
    planted = (("consumer0", "wait", 9), 5_000), (("producer", "wait", 12), 6_000)
    runs = simulate(Ring(iterations=24, spin=Ticks(spin), undeclared=planted))
    assert sum(wait.verdict == "other" for wait in runs[0].waits) == 2
    with bundle(runs).duckdb() as connection:
        check_waits(connection, runs)


def test_free_waits_are_those_of_the_empty_ring() -> None:
    runs = simulate(Ring(stages=5, iterations=20))
    with bundle(runs).duckdb() as connection:
        found = rows(connection, "SELECT role, iteration FROM wait WHERE verdict = 'free' ORDER BY iteration")
    assert [(r["role"], r["iteration"]) for r in found] == [("producer", i) for i in range(5)]


def test_without_a_signal_stamp_a_wait_is_not_judged() -> None:
    """All declared edges into a wait must have happened: with one of them missing nobody knows which was the last."""
    runs = simulate(PLANTED["slow_consumer"])
    slower = next(lane for lane in runs[0].lanes if lane.role == "consumer1")
    lost = {(0, 0, slower.warp, "arrive", i) for i in range(3, 7)}
    with bundle(runs, missing=lost).duckdb() as connection:
        check_waits(connection, runs, lost)
        assert rows(connection, "SELECT * FROM orphan") == []


def test_missing_ends_are_orphans() -> None:
    runs = simulate(PLANTED["balanced"])
    lost = {(0, 0, 1, "wait_exit", 4), (0, 0, 1, "work_begin", 9), (0, 0, 0, "work_end", 7)}
    with bundle(runs, missing=lost).duckdb() as connection:
        check_waits(connection, runs, lost)
        found = rows(connection, "SELECT warp, span, iteration, reason FROM orphan ORDER BY warp, iteration")
        gone = rows(connection, "SELECT * FROM span WHERE (warp, span, iteration) IN "
                    "((1, 'wait', 4), (1, 'work', 9), (0, 'work', 7))")  # fmt: skip
    assert [tuple(row.values()) for row in found] == [
        (0, "work", 7, "no end"), (1, "wait", 4, "no end"), (1, "work", 9, "no begin"),
    ]  # fmt: skip
    assert gone == []


@settings(max_examples=15, deadline=None)
@given(kernel=kernels(), data=st.data())
def test_random_missing_signals(kernel: Kernel, data: st.DataObject) -> None:
    runs = simulate(kernel, 1)
    stamps = [key(runs[0], stamp) for stamp in runs[0].stamps]
    lost = set(data.draw(st.lists(st.sampled_from(stamps), max_size=6)))
    with bundle(runs, missing=lost).duckdb() as connection:
        seen = waits_seen(connection)
        for wait in runs[0].waits:
            row = seen.get(wait_key(runs[0], wait))
            whole = key(runs[0], wait.enter) not in lost and key(runs[0], wait.exit) not in lost
            assert (row is not None) == whole
            if row is not None and any(key(runs[0], a.stamp) in lost for a in wait.arrivals):
                assert row["verdict"] == "unknown"
            elif row is not None:
                assert row["verdict"] == wait.verdict


def test_every_span_type_of_the_planted_kernels_is_seen() -> None:
    """The cases above cover what the declarations name: none of them is empty by accident."""
    for kernel in PLANTED.values():
        with bundle(simulate(kernel)).duckdb() as connection:
            found = {(r["role"], r["span"]) for r in rows(connection, "SELECT DISTINCT role, span FROM span")}
        assert found == {(row["role"], row["span"]) for row in span_types(kernel)}
