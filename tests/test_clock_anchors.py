"""Anchors as no recorder should write them: reversed, repeated, at odds, partly without a bound.

Whatever they say: placed time never runs back, a stated bound holds where it can, and every way to place a moment (the
views timeline_ns and cta_ns, ``alignment.place``, the plain reference) gives the same. Many captures share one bundle.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import accumulate, pairwise
from math import isnan
from typing import Any

import numpy as np
import reference_clocks
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wsformat.alignment import place
from wsformat.bundle import Bundle
from wsformat.derive import run

Row = dict[str, Any]
START, EPOCH = 5_000_000, 1_790_000_000_000_000_000
SM, TIMER, OTHER = 0, 1, 2
VIEWS = ("clock_map", "clock_segment", "timeline_ns", "cta_ns")
UNITS = ("cycle", "ns", "tick")


@st.composite
def captures(draw: st.DrawFn) -> dict[str, Any]:
    """Anchors of one clock in up to two launches and for the whole capture, and moments to place."""
    small = st.integers(-60, 400)
    bound = st.sampled_from([0.0, 0.5, 1.0, 33.25, 200.0])
    bounds = draw(st.sampled_from([bound, bound, bound | st.none()]))
    kind = draw(st.sampled_from(["any", "any", "rising", "line"]))
    anchors = []
    for launch in draw(st.lists(st.sampled_from([0, 1, -1]), max_size=2, unique=True)):
        for reference in draw(st.sampled_from([[TIMER], [TIMER], [-1], [TIMER, -1], [OTHER]])):
            ticks = draw(st.lists(st.integers(0, 300), max_size=6))
            shown = draw(st.lists(small, min_size=len(ticks), max_size=len(ticks)))
            if kind == "rising":
                ticks, shown = sorted(ticks), sorted(shown)
            elif kind == "line":
                shown = [t // 2 for t in ticks]
            for t, r in zip(ticks, shown, strict=True):
                row = {"launch": launch, "clock": SM, "t": START + t, "reference_clock": reference}
                anchors.append(row | {"reference_t": EPOCH + r, "error_ns": draw(bounds)})
    return {
        "unit": draw(st.sampled_from(["cycle", "cycle", *UNITS])),
        "other": draw(st.sampled_from(UNITS)),
        "step": draw(st.sampled_from([-1, 1, 1, 8])),
        "anchors": anchors,
        "moments": [START + t for t in draw(st.lists(st.integers(-200, 700), min_size=1, max_size=5))],
    }


def tables(drawn: list[dict[str, Any]]) -> dict[str, list[Row]]:
    """One capture each: a lane in two launches with a stored span at each moment and from each to the next."""
    made: dict[str, list[Row]] = defaultdict(list)
    for number, one in enumerate(drawn):
        own = {"capture_id": f"{number:026x}"}
        made["captures"].append(own)
        made["clock_anchors"] += [own | a for a in one["anchors"]]
        for clock, unit in ((SM, one["unit"]), (TIMER, "ns"), (OTHER, one["other"])):
            made["clocks"].append(own | {"clock": clock, "unit": unit, "step_ticks": one["step"]})
        for launch in (0, 1):
            made["launches"].append(own | {"launch": launch})
            at = {"lane": launch, "launch": launch, "cta": launch, "sm": 0, "clock": SM}
            ends = {"t_start": min(one["moments"]), "t_end": max(one["moments"]), "kind": "cta"}
            made["lanes"].append(own | at | ends | {"completeness": "complete"})
            moments = one["moments"]
            for n, (t0, t1) in enumerate([(t, t) for t in moments] + list(pairwise(moments))):
                span = {"span_id": 100 * launch + n, "span": "x", "end_lane": launch, "iteration": n, "complete": True}
                made["spans"].append(own | at | span | {"t0": min(t0, t1), "t1": max(t0, t1)})
    return made


def near(a: float | None, b: float | None) -> bool:
    a, b = (None if x is None or isnan(x) else x for x in (a, b))
    return a is b if a is None or b is None else abs(a - b) <= 1e-6 * max(1.0, abs(a), abs(b))


def same(found: Row, expected: Row) -> bool:
    return all(
        near(found[k], v) if isinstance(v, float) or isinstance(found[k], float) else found[k] == v
        for k, v in expected.items()
    )


def check_bounds(one: dict[str, Any], line: Row, bent: bool, ns: Any, error: Any) -> None:
    """At each anchor the bound reaches over what the anchors leave possible: over its own bound where they allow none.

    ``ns`` and ``error`` are of its nodes, by tick.
    """
    mine = [a for a in one["anchors"] if all(a[k] == line[k] for k in ("launch", "clock", "reference_clock"))]
    if any(a["error_ns"] is None for a in mine):
        assert all(isnan(e) for e in error.values())
        return
    _, nodes, _ = reference_clocks.bounded_nodes(mine)
    origin = min((a["t"], a["reference_t"]) for a in mine)[1]
    lows = list(accumulate((n["low"] for n in nodes), max))
    highs = list(accumulate((n["high"] for n in reversed(nodes)), min))[::-1]
    for node, low, high in zip(nodes, lows, highs, strict=True):
        if not bent or low > high:
            low, high = node["low"], node["high"]
        at, bound = ns[node["t"]] - origin, error[node["t"]]
        assert at - bound - 1e-6 <= low, (node, at, bound)
        assert at + bound + 1e-6 >= high, (node, at, bound)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.lists(captures(), min_size=1, max_size=24))
def test_every_way_to_place_a_moment_says_the_same_and_time_never_runs_back(drawn: list[dict[str, Any]]) -> None:
    made = tables(drawn)
    with Bundle.from_tables(made).duckdb(threads=1, only=VIEWS, materialise=VIEWS) as connection:
        timeline, lives, maps, segments = (
            run(connection, f"SELECT * FROM {view}").to_pylist()
            for view in ("timeline_ns", "cta_ns", "clock_map", "clock_segment")
        )
        for number, one in enumerate(drawn):
            own = f"{number:026x}"
            mine = {name: [r for r in rows if r["capture_id"] == own] for name, rows in made.items()}
            of_clock = [m for m in maps if m["capture_id"] == own]
            pieces = [s for s in segments if s["capture_id"] == own]
            check_reference(mine, of_clock, pieces)
            spans = {s["span_id"]: s for s in timeline if s["capture_id"] == own}
            for launch in (0, 1):
                check_placed(connection, own, launch, one, spans)
                ends = [r for r in lives if (r["capture_id"], r["launch"]) == (own, launch)]
                check_life(connection, own, launch, ends[0])
            for line in of_clock:
                check_line(connection, own, line, one, pieces)


def check_reference(mine: dict[str, list[Row]], maps: list[Row], pieces: list[Row]) -> None:
    expected = reference_clocks.clock_map(mine)
    keyed = {(m["launch"], m["clock"], m["reference_clock"]): m for m in maps}
    assert len(keyed) == len(expected)
    for row in expected:
        wanted = {k: v for k, v in row.items() if k[0] != "_"}
        assert same(keyed[row["launch"], row["clock"], row["reference_clock"]], wanted), row
    placed = {(s["launch"], s["clock"], s["segment"]): s for s in pieces}
    wanted_pieces = reference_clocks.clock_segment(expected)
    assert len(placed) == len(wanted_pieces)
    for row in wanted_pieces:
        assert same(placed[row["launch"], row["clock"], row["segment"]], row), row


def check_placed(connection: Any, own: str, launch: int, one: dict[str, Any], spans: dict[int, Row]) -> None:
    """``place`` gives what timeline_ns gives for a span of no length."""
    moments = np.array(one["moments"])
    ns, error, wander, reference = place(
        connection, own, np.full(len(moments), launch), np.zeros(len(moments)), moments
    )
    for n in range(len(moments)):
        row = spans[100 * launch + n]
        if row["reference_clock"] is None:
            assert reference[n] == -2
            assert row["ns0"] is row["error_ns"] is row["wander_ns"] is None
            continue
        assert (row["reference_clock"], row["ns0"], row["ns1"]) == (reference[n], ns[n], ns[n])
        assert near(row["error_ns"], error[n])
        assert near(row["wander_ns"], wander[n])
    for n in range(len(moments) - 1):
        row = spans[100 * launch + len(moments) + n]
        if row["reference_clock"] is not None:
            assert sorted((ns[n], ns[n + 1])) == [row["ns0"], row["ns1"]]
            assert near(row["error_ns"], max(error[n], error[n + 1]))
            assert near(row["wander_ns"], max(wander[n], wander[n + 1]))


def check_life(connection: Any, own: str, launch: int, row: Row) -> None:
    ends = np.array([row["t_start"], row["t_end"]])
    ns, error, wander, reference = place(connection, own, np.full(2, launch), np.zeros(2), ends)
    if row["reference_clock"] is None:
        assert set(reference) == {-2}
        return
    assert (row["reference_clock"], row["start_ns"], row["end_ns"]) == (reference[0], *ns)
    assert near(row["error_ns"], (error + wander).max())


def check_line(connection: Any, own: str, line: Row, one: dict[str, Any], pieces: list[Row]) -> None:
    """Time that never runs back over the whole line and beyond, bounds that are none below 0."""
    mine = [s for s in pieces if all(s[k] == line[k] for k in ("launch", "clock", "reference_clock"))]
    if not mine or one["step"] <= 0:
        return
    every = np.arange(line["t_first"] - 150, line["t_last"] + 150)
    # The map of the capture holds for a launch without one of its own.
    launch = line["launch"] if line["launch"] >= 0 else 7
    ns, error, wander, _ = place(connection, own, np.full(len(every), launch), np.zeros(len(every)), every)
    assert (np.diff(ns) >= 0).all()
    assert not (error < 0).any()
    assert not (wander < 0).any()
    within = (every >= line["t_first"]) & (every <= line["t_last"])
    bent = line["is_straight"] is False
    if not bent:
        assert (wander[within] <= line["wander_ns"] + 1e-6).all()
    check_bounds(one, line, bent, dict(zip(every.tolist(), ns.tolist(), strict=True)),
                 dict(zip(every.tolist(), error.tolist(), strict=True)))  # fmt: skip
