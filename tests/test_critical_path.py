"""The critical path against the simulator's causes, on hand-made corner cases, and on real captures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulator_bundle import bundle, differences, key
from simulator_cases import OFFSETS, PLANTED, kernels
from simulator_kernels import Ring

import simulator
from simulator import Kernel, Run, Ticks, simulate
from wsformat import samples
from wsformat.bundle import Bundle
from wsformat.converters import raw_stamps
from wsformat.critical_path import PATH_SCHEMA, critical_path, last_covering, summary
from wsformat.errors import BadRequest

CID = "9" * 26


def fills_the_window(path: pa.Table, start: int, stop: int) -> None:
    t0, t1 = path["t0"].to_numpy(), path["t1"].to_numpy()
    assert (t0[0], t1[-1]) == (start, stop)
    assert (t0[1:] == t1[:-1]).all()
    assert (t1 > t0).all()
    assert path["ticks"].to_pylist() == (t1 - t0).tolist()
    assert path["step"].to_pylist() == list(range(path.num_rows))
    assert path.schema == PATH_SCHEMA


def window(run: Run) -> tuple[int, int]:
    return min(stamp.t for stamp in run.stamps), max(stamp.t for stamp in run.stamps)


def same_as_truth(path: pa.Table, run: Run) -> None:
    fills_the_window(path, *window(run))
    seen = [(r["role"], r["kind"], r["span"], r["iteration"], r["t0"], r["t1"]) for r in path.to_pylist()]
    truth = simulator.critical_path(run)
    assert differences(seen, [(s.role, s.kind, s.span, s.iteration, s.t0, s.t1) for s in truth])[:2] == []
    # Lanes of a bundle are numbered launch by launch, CTA by CTA, warp by warp.
    lanes = [lane % len(run.lanes) for lane in path["lane"].to_pylist()]
    assert differences(lanes, [s.warp for s in truth])[:2] == []


@pytest.mark.parametrize("name", PLANTED)
def test_planted_kernels(name: str) -> None:
    runs = simulate(PLANTED[name], seed=2, launches=2, ctas=2)
    made = bundle(runs)
    with made.duckdb(materialise=["wait"]) as connection:
        for run in runs:
            same_as_truth(critical_path(made, launch=run.launch, cta=run.cta, connection=connection), run)


@settings(max_examples=40, deadline=None)
@given(kernel=kernels(lead=False), seed=st.integers(0, 99), place=st.sampled_from(sorted(OFFSETS)))
def test_random_kernels(kernel: Kernel, seed: int, place: str) -> None:
    runs = simulate(kernel, seed, offset=OFFSETS[place])
    same_as_truth(critical_path(bundle(runs)), runs[0])


@settings(max_examples=15, deadline=None)
@given(kernel=kernels(), seed=st.integers(0, 99))
def test_signals_made_before_their_stamp_release_the_same_waits(kernel: Kernel, seed: int) -> None:
    """A stamp that follows its arrive moves a hand-over by as much; the chain of releases stays the same."""
    run = simulate(kernel, seed)[0]
    path = critical_path(bundle([run]))
    fills_the_window(path, *window(run))
    stamp, chain = min(run.stamps, key=lambda s: (-s.t, s.lane.warp)), []
    while stamp.cause is not None:
        if stamp.via_latency and stamp.t > stamp.cause.t:
            chain.append((stamp.lane.role, stamp.span, stamp.iteration))
        stamp = stamp.cause
    rows = path.filter(pa.compute.equal(path["kind"], "latency")).to_pylist()
    assert [(r["role"], r["span"], r["iteration"]) for r in reversed(rows)] == chain


@settings(max_examples=15, deadline=None)
@given(kernel=kernels(latency_jitter=60, cost_jitter=20), data=st.data())
def test_any_capture_has_a_path_that_fills_its_window(kernel: Kernel, data: st.DataObject) -> None:
    """Also with jitter, latencies that must be inferred, and stamps that were not written."""
    run = simulate(kernel, 3)[0]
    keys = [key(run, stamp) for stamp in run.stamps]
    lost = set(data.draw(st.lists(st.sampled_from(keys), max_size=8)))
    kept = [stamp.t for stamp in run.stamps if key(run, stamp) not in lost]
    made = bundle([run], declared=data.draw(st.booleans()), missing=lost)
    if kept:
        fills_the_window(critical_path(made), min(kept), max(kept))


def test_the_pacing_role_comes_first() -> None:
    def pace(name: str) -> dict[str, Any]:
        return summary(critical_path(bundle(simulate(PLANTED[name])))).to_pylist()[0]

    assert pace("slow_producer")["role"] == "producer"
    assert pace("slow_consumer")["role"] == "consumer1"
    assert pace("slow_producer")["share"] > 0.9
    assert (pace("latency_bound")["kind"], pace("latency_bound")["producer_role"]) == ("latency", "producer")


def test_each_level_of_the_summary_adds_up_to_the_window() -> None:
    runs = simulate(PLANTED["everything"], ctas=2)
    made = bundle(runs)
    paths = [critical_path(made, cta=cta) for cta in (0, 1)]
    rows = summary(pa.concat_tables(paths)).to_pylist()
    for cta, path in enumerate(paths):
        for level in ("pace", "state", "span"):
            mine = [row for row in rows if (row["cta"], row["level"]) == (cta, level)]
            assert sum(row["ticks"] for row in mine) == sum(path["ticks"].to_pylist())
            assert sum(row["segments"] for row in mine) == path.num_rows
            assert sum(row["share"] for row in mine) == pytest.approx(1)
            assert [row["ticks"] for row in mine] == sorted((row["ticks"] for row in mine), reverse=True)
    state = {(r["role"], r["kind"]): r["ticks"] for r in rows if (r["cta"], r["level"]) == (1, "state")}
    by_hand: dict[tuple[str, str], int] = {}
    for row in paths[1].to_pylist():
        by_hand[row["role"], row["kind"]] = by_hand.get((row["role"], row["kind"]), 0) + row["ticks"]
    assert state == by_hand


def test_an_undeclared_cause_stays_on_its_lane() -> None:
    runs = simulate(Ring(iterations=20, spin=Ticks(900), undeclared=((("producer", "wait", 12), 6_000),)))
    path = critical_path(bundle(runs))
    same_as_truth(path, runs[0])
    held = [row for row in path.to_pylist() if row["verdict"] == "other"]
    assert [(r["role"], r["kind"], r["iteration"], r["ticks"]) for r in held] == [("producer", "stall", 12, 6_000)]


def made_by_hand(
    events: Sequence[tuple[int, str, int, int]],
    span_types: Sequence[tuple[str, str, str, str, str]],
    edges: Sequence[tuple[str, str, str, str]] = (),
    latency: float | None = 0.0,
    **lane: Any,
) -> Bundle:
    """Events (lane, event, iteration, t); span types (role, span, state, begin, end); lane n plays role 'r<n>'."""
    own = {"capture_id": CID}
    lanes = sorted({event[0] for event in events})
    return Bundle.from_tables(
        {
            "captures": [own | {"kind": "stamped", "completeness": "complete"}],
            "launches": [own | {"launch": 0}],
            "clocks": [own | {"clock": c, "scope": "sm", "unit": "cycle", "step_ticks": 1} for c in (0, 1)],
            "lanes": [
                own | {"lane": n, "launch": 0, "cta": 0, "warp": n, "role": f"r{n}", "kind": "warp", "clock": 0}
                | {"completeness": "complete", "records_lost": 0} | lane
                for n in lanes
            ],
            "roles": [own | {"role": f"r{n}", "display_order": n} for n in lanes],
            "span_types": [
                own | {"role": r, "span": s, "state": state, "begin_event": b, "end_event": e}
                for r, s, state, b, e in span_types
            ],
            "dependencies": [
                own | {"producer_role": p, "producer_event": pe, "consumer_role": c, "consumer_event": ce}
                | {"producer_step": 1, "consumer_step": 1, "iteration_lag": 0, "latency_ticks": latency}
                | {"scope": "cta", "completion": "signal", "mechanism": "arrive"}
                for p, pe, c, ce in edges
            ],
            "events": [
                own | {"lane": n, "launch": 0, "cta": 0, "warp": n, "role": f"r{n}", "event": e, "iteration": i}
                | {"tile": 0, "clock": 0, "t": t} | lane
                for n, e, i, t in events
            ],
        }
    )  # fmt: skip


def segments(path: pa.Table) -> list[tuple[Any, ...]]:
    return [(r["lane"], r["kind"], r["span"], r["t0"], r["t1"]) for r in path.to_pylist()]


def test_nested_spans_are_named_by_the_one_that_began_last() -> None:
    states = {"outer": "active", "inner": "active", "twin": "active", "wait": "stall", "zero": "active"}
    types = [("r0", name, state, f"{name}0", f"{name}1") for name, state in states.items()]
    times = {"outer": (10, 100), "inner": (20, 60), "twin": (20, 80), "wait": (30, 40), "zero": (50, 50)}
    events = [(0, f"{name}{end}", 0, t) for name, ends in times.items() for end, t in enumerate(ends)]
    path = critical_path(made_by_hand([*events, (0, "first", 0, 0), (0, "last", 0, 120)], types))
    fills_the_window(path, 0, 120)
    merged: list[tuple[Any, ...]] = []
    for _, kind, span, t0, t1 in segments(path):
        if merged and merged[-1][:2] == (kind, span):
            merged[-1] = (kind, span, merged[-1][2], t1)
        else:
            merged.append((kind, span, t0, t1))
    assert merged == [
        ("untracked", "", 0, 10), ("active", "outer", 10, 20), ("active", "inner", 20, 30), ("stall", "wait", 30, 40),
        ("active", "inner", 40, 60), ("active", "twin", 60, 80), ("active", "outer", 80, 100),
        ("untracked", "", 100, 120),
    ]  # fmt: skip


def test_a_signal_stamped_after_the_end_does_not_move_the_path_forward() -> None:
    waits = [("r1", "wait", "stall", "enter", "exit")]
    events = [(0, "go", 0, 0), (0, "go", 1, 1_003), (1, "enter", 0, 5), (1, "exit", 0, 8), (1, "enter", 1, 100),
              (1, "exit", 1, 1_000), (1, "end", 1, 1_200)]  # fmt: skip
    waits.append(("r1", "poke", "stall", "poke0", "poke1"))
    events += [(1, "poke0", 0, 1_100), (1, "poke1", 0, 1_100)]  # a stall of no length, which cuts nothing
    path = critical_path(made_by_hand(events, waits, [("r0", "go", "r1", "exit")], latency=-3.0))
    fills_the_window(path, 0, 1_200)
    assert segments(path) == [(0, "untracked", "", 0, 1_000), (1, "untracked", "", 1_000, 1_200)]


def test_a_wait_that_ends_at_the_signal_is_on_the_path() -> None:
    """The end of one wait is the signal of the next: the path goes through both."""
    waits = [(r, "wait", "stall", "enter", "exit") for r in ("r1", "r2")]
    edges = [("r0", "go", "r1", "exit"), ("r1", "exit", "r2", "exit")]
    events = [(0, "start", 0, 0), (0, "go", 0, 400), (1, "enter", 0, 10), (1, "exit", 0, 410), (2, "enter", 0, 10),
              (2, "exit", 0, 430), (2, "end", 0, 500)]  # fmt: skip
    path = critical_path(made_by_hand(events, waits, edges, latency=10.0))
    assert segments(path) == [
        (0, "untracked", "", 0, 400), (1, "latency", "wait", 400, 410), (2, "latency", "wait", 410, 430),
        (2, "untracked", "", 430, 500),
    ]  # fmt: skip
    assert path["producer_lane"].to_pylist() == [-1, 0, 1, -1]
    assert path["producer_event"].to_pylist() == ["", "go", "exit", ""]
    assert path["verdict"].to_pylist() == ["", "producer_late", "producer_late", ""]


def test_waits_that_release_each_other_at_once_end() -> None:
    """Two lanes that signal each other at the very tick at which both waits end: each wait is taken once."""
    waits = [(r, "wait", "stall", "enter", "exit") for r in ("r0", "r1")]
    edges = [("r0", "exit", "r1", "exit"), ("r1", "exit", "r0", "exit")]
    events = [(n, e, i, t) for n in (0, 1) for i, e, t in
              ((0, "enter", 0), (0, "exit", 3), (1, "enter", 10 + n), (1, "exit", 500), (1, "end", 600))]  # fmt: skip
    made = made_by_hand(events, waits, edges)
    late = made.sql("SELECT lane, producer_lane FROM wait WHERE signal_t = 500 AND blocked_ticks > 0 ORDER BY lane")
    assert late.to_pylist() == [{"lane": 0, "producer_lane": 1}, {"lane": 1, "producer_lane": 0}]
    fills_the_window(critical_path(made), 0, 600)


def test_window_of_a_truncated_lane_is_what_was_recorded() -> None:
    types = [("r0", "work", "active", "begin", "end")]
    events = [(0, e, i, 100 * i + t) for i in range(4) for e, t in (("begin", 0), ("end", 60))]
    made = made_by_hand([*events, (0, "epilogue", 0, 9_000)], types)
    own = {"capture_id": CID, "role": "r0"}
    made = made.with_tables(
        {
            "launches": [{"capture_id": CID, "launch": 0, "slots": 4}],
            "event_types": [own | {"event": e, "loop": "once" if e == "epilogue" else "k"} for e in
                            ("begin", "end", "epilogue")],
            "lanes": [{"capture_id": CID, "lane": 0, "launch": 0, "cta": 0, "role": "r0", "kind": "warp", "clock": 0,
                       "completeness": "truncated"}],
        }
    )  # fmt: skip
    path = critical_path(made)
    fills_the_window(path, 0, 360)
    assert sum(row["ticks"] for row in path.to_pylist() if row["kind"] == "active") == 240


def test_bad_requests() -> None:
    made = bundle(simulate(Ring(iterations=2), launches=2))
    for bad in ({"launch": 2}, {"cta": 1}, {"launch": -1}, {"capture_id": "nobody"}):
        with pytest.raises(BadRequest) as caught:
            critical_path(made, **bad)
        assert caught.value.hint
    with pytest.raises(BadRequest, match="no points"):
        critical_path(made.with_tables({"events": []}))
    lanes = made.table("lanes")
    clock = pa.array(np.arange(lanes.num_rows) % 2, pa.int32())
    lanes = lanes.set_column(lanes.column_names.index("clock"), "clock", clock)
    with pytest.raises(BadRequest, match="several clocks"):
        critical_path(made.with_tables({"lanes": lanes}))
    with pytest.raises(BadRequest, match="0 captures"):
        critical_path(Bundle.from_tables({}))


@settings(max_examples=100, deadline=None)
@given(spans=st.lists(st.tuples(st.integers(0, 30), st.integers(1, 30)), max_size=40))
def test_last_covering_is_the_last_that_covers(spans: list[tuple[int, int]]) -> None:
    spans = sorted((begin, begin + length) for begin, length in spans)
    begins, ends = (np.array([span[side] for span in spans], np.int64) for side in (0, 1))
    edges = np.unique(np.concatenate([[0, 61], begins, ends]))
    found = last_covering(begins, ends, edges[:-1], edges[1:])
    for at, t0, t1 in zip(found, edges[:-1], edges[1:], strict=True):
        assert at == max((n for n, (begin, end) in enumerate(spans) if begin <= t0 and end >= t1), default=-1)


def sample(name: str) -> Bundle:
    return raw_stamps.read(
        [samples.path(f"{name}.i32")],
        {"meta": str(samples.path(f"{name}.meta")), "spec": str(samples.path("gemm_roles.json"))},
    )


@pytest.mark.parametrize(
    ("name", "role", "share"), [("balanced_r0", "consumer1", 0.95), ("slowproducer_r0", "producer", 0.9)]
)
def test_real_captures(name: str, role: str, share: float) -> None:
    made = sample(name)
    times = made.table("events")["t"].to_numpy()
    path = critical_path(made)
    fills_the_window(path, times.min(), times.max())
    first = summary(path).to_pylist()[0]
    assert (first["level"], first["role"], first["kind"]) == ("pace", role, "")
    assert first["share"] > share


def test_the_spin_of_the_slow_producer_is_on_the_path_as_untracked() -> None:
    """It waits 1,500 cycles before each of 64 TMA issues, without a stamp: those 96,000 cycles pace the kernel."""
    rows = summary(critical_path(sample("slowproducer_r0"))).to_pylist()
    spin = next(r for r in rows if (r["level"], r["role"], r["kind"]) == ("state", "producer", "untracked"))
    assert spin["ticks"] >= 64 * 1_500
    assert spin["share"] > 0.75
