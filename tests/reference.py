"""The derived views again, as plain Python loops written from the definitions: slow, and independent of the SQL.

``views(tables)`` takes every table as a list of dicts and gives every view as a list of dicts. States and overlaps are
counted tick by tick. Judged are only small captures; nothing here is meant to be fast.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import reference_clocks
import reference_grid
import reference_passes
import reference_waits

Row = dict[str, Any]
Tables = dict[str, list[Row]]
MADE_OF = ("point", "span", "perturbation")
"""What pass_span is made of: it comes after perturbation, which compares captures."""


def views(tables: Tables) -> dict[str, list[Row]]:
    """Every derived view of these tables. Captures know nothing of each other, but for perturbation."""
    found: dict[str, list[Row]] = defaultdict(list)
    captures = {row["capture_id"] for rows in tables.values() for row in rows}
    for capture in sorted(captures):
        own = {name: [row for row in rows if row["capture_id"] == capture] for name, rows in tables.items()}
        for name, rows in one_capture(own).items():
            found[name] += [{"capture_id": capture, **row} for row in rows]
    found["perturbation"] = reference_clocks.perturbation(found["launch_lifetime"], tables["captures"])
    for capture in sorted(captures):
        own = {name: [row for row in rows if row["capture_id"] == capture] for name, rows in tables.items()}
        made = {name: [row for row in found[name] if row["capture_id"] == capture] for name in MADE_OF}
        combined = reference_passes.pass_span(own, *(made[name] for name in MADE_OF))
        found["pass_span"] += [{"capture_id": capture, **row} for row in combined]
    return dict(found)


def one_capture(tables: Tables) -> dict[str, list[Row]]:
    lanes = {row["lane"]: row for row in tables["lanes"]}
    points = point(tables)
    windows = recorded_window(tables, points)
    spans, orphans = pair(tables, points, lanes)
    pieces = state_interval(spans, windows)
    states = role_state(pieces, windows, lanes)
    maps = reference_clocks.clock_map(tables)
    segments = reference_clocks.clock_segment(maps)
    waits, signals = reference_waits.wait(tables, points, spans, lanes, segments)
    intervals = reference_waits.iteration(tables, points, lanes)
    lifetimes = reference_clocks.lifetime(tables, lanes)
    launches = reference_clocks.launch_lifetime(lifetimes)
    medians = reference_clocks.lifetime_median(launches)
    clusters = reference_grid.cta_cluster(tables, lanes)
    ctas = reference_grid.cta_ns(tables, lanes, windows, segments, clusters)
    worked = reference_grid.cta_state(states, waits, windows)
    return {
        "point": points,
        "recorded_window": [{"lane": lane, **row} for lane, row in windows.items()],
        "span": spans,
        "orphan": orphans,
        "state_interval": pieces,
        "role_state": states,
        "overlap": overlap(tables, spans, pieces, windows, lanes),
        "wait": waits,
        "signal": signals,
        "role_summary": reference_waits.role_summary(tables, states, waits, windows),
        "wait_summary": reference_waits.wait_summary(waits),
        "iteration": intervals,
        "iteration_summary": reference_waits.iteration_summary(intervals),
        "early_signal": early_signal(tables, points, spans, lanes),
        "clock_map": [{name: value for name, value in m.items() if name[0] != "_"} for m in maps],
        "clock_segment": segments,
        "moment_segment": reference_clocks.moment_segment(tables, points, segments, lanes),
        "timeline_ns": reference_clocks.timeline_ns(tables, spans, segments),
        "lifetime": lifetimes,
        "launch_lifetime": launches,
        "lifetime_median": medians,
        "slope": reference_clocks.slope(medians),
        "cta_cluster": clusters,
        "cta_ns": ctas,
        "cta_state": worked,
        "grid_cta": reference_grid.grid_cta(ctas, worked),
        "grid_sm": reference_grid.grid_sm(ctas, worked, segments),
        "grid_launch": reference_grid.grid_launch(tables, ctas, segments),
    }


def point(tables: Tables) -> list[Row]:
    found = [{name: e[name] for name in ("lane", "role", "event", "iteration", "t")} for e in tables["events"]]
    for s in tables["spans"]:
        common = {"role": s["role"], "iteration": s["iteration"]}
        found.append({"lane": s["lane"], "event": s["span"] + ".begin", "t": s["t0"], **common})
        if s["complete"]:
            found.append({"lane": s["end_lane"], "event": s["span"] + ".end", "t": s["t1"], **common})
    return found


def recorded_window(tables: Tables, points: list[Row]) -> dict[int, Row]:
    """Per lane with points: the time over which its states are taken."""
    slots = {k["launch"]: k["slots"] for k in tables["launches"]}
    loops = {}
    for s in tables["span_types"]:
        loops[s["role"], s["span"] + ".begin"] = s["loop"]
        loops[s["role"], s["span"] + ".end"] = s["loop"]
    for e in tables["event_types"]:
        loops[e["role"], e["event"]] = e["loop"]
    truncated = {x["lane"]: slots.get(x["launch"], -1) for x in tables["lanes"] if x["completeness"] == "truncated"}
    by_lane = defaultdict(list)
    for p in points:
        by_lane[p["lane"]].append(p)
    windows = {}
    for lane, mine in by_lane.items():
        last = max(p["t"] for p in mine)
        end = last
        if lane in truncated:
            last_point: dict[str, int] = {}
            filled = set()
            for p in mine:
                loop = loops.get((p["role"], p["event"]), "")
                if loop != "once":
                    last_point[loop] = max(last_point.get(loop, p["t"]), p["t"])
                    if truncated[lane] > 0 and p["iteration"] >= truncated[lane] - 1:
                        filled.add(loop)
            if filled:
                end = min(last_point[loop] for loop in filled)
            elif last_point:
                end = max(last_point.values())
        windows[lane] = {
            "t_first": min(p["t"] for p in mine),
            "t_last": end,
            "t_last_point": last,
            "points": len(mine),
        }
    return windows


def pair(tables: Tables, points: list[Row], lanes: dict[int, Row]) -> tuple[list[Row], list[Row]]:
    """Spans and orphans. One begin and one end of the same iteration in the same lane make a span."""
    begins, ends = defaultdict(list), defaultdict(list)
    for p in points:
        for s in tables["span_types"]:
            if s["role"] != p["role"] or not s["begin_event"] or not s["end_event"]:
                continue
            key = (p["lane"], p["role"], s["span"], p["iteration"])
            if p["event"] == s["begin_event"]:
                begins[key].append(p["t"])
            if p["event"] == s["end_event"]:
                ends[key].append(p["t"])
    spans, orphans = [], []
    for key in begins.keys() | ends.keys():
        lane, role, name, iteration = key
        first, last = begins.get(key, []), ends.get(key, [])
        if len(first) == len(last) == 1 and last[0] >= first[0]:
            spans.append((lane, lane, role, name, iteration, first[0], last[0], True, -1))
            continue
        if len(first) > 1 or len(last) > 1:
            reason = "duplicate"
        elif not last:
            reason = "no end"
        else:
            reason = "end before begin" if first else "no begin"
        orphans.append(
            {
                "lane": lane,
                **place(lanes, lane, "launch", "cta", "warp"),
                "role": role,
                "span": name,
                "iteration": iteration,
                "begins": len(first),
                "ends": len(last),
                "t_begin": min(first, default=None),
                "t_end": min(last, default=None),
                "reason": reason,
            }
        )
    for s in tables["spans"]:
        whole = s["complete"] and s["t1"] >= s["t0"]
        what = (s["role"], s["span"], s["iteration"])
        spans.append((s["lane"], s["end_lane"], *what, s["t0"], s["t1"], whole, s["span_id"]))
    kinds = {(s["role"], s["span"]): s for s in tables["span_types"]}
    rows = []
    for lane, end_lane, role, name, iteration, t0, t1, complete, span_id in spans:
        where = {**place(lanes, lane, "launch", "cta", "warp", "clock"), "role": role}
        kind = kinds.get((role, name), {"state": "unknown", "barrier": "", "resource": "", "end_event": None})
        rows.append(
            {
                "lane": lane,
                "end_lane": end_lane,
                **where,
                "span": name,
                "state": kind["state"],
                "barrier": kind["barrier"],
                "resource": kind["resource"],
                "end_event": kind["end_event"] if span_id < 0 else name + ".end",
                "iteration": iteration,
                "t0": t0,
                "t1": t1,
                "complete": complete,
                "span_id": span_id,
            }
        )
    return rows, orphans


def place(lanes: dict[int, Row], lane: int, *columns: str) -> Row:
    """What the lane says; null when it is not defined."""
    return {name: lanes[lane][name] if lane in lanes else None for name in columns}


def counted(spans: Iterable[Row], lane: int, state: str) -> list[Row]:
    return [s for s in spans if s["complete"] and s["lane"] == s["end_lane"] == lane and s["state"] == state]


def state_interval(spans: list[Row], windows: dict[int, Row]) -> list[Row]:
    """Pieces between two consecutive ends of counted spans or of the window, each with the state of its first tick."""
    pieces = []
    for lane, window in windows.items():
        stalls, actives = counted(spans, lane, "stall"), counted(spans, lane, "active")
        cuts = {window["t_first"], window["t_last"]}
        cuts |= {t for s in stalls + actives for t in (s["t0"], s["t1"]) if t <= window["t_last"]}
        edges = sorted(cuts)
        for t0, t1 in itertools.pairwise(edges):
            if any(s["t0"] <= t0 < s["t1"] for s in stalls):
                state = "stall"
            elif any(s["t0"] <= t0 < s["t1"] for s in actives):
                state = "active"
            else:
                state = "untracked"
            pieces.append({"lane": lane, "state": state, "t0": t0, "t1": t1, "all": (stalls, actives)})
    return pieces


def role_state(pieces: list[Row], windows: dict[int, Row], lanes: dict[int, Row]) -> list[Row]:
    """Tick by tick, from the spans and not from the pieces."""
    spans_of = {p["lane"]: p["all"] for p in pieces}
    for p in pieces:
        del p["all"]
    rows = []
    for lane in windows.keys() | {lane for lane, row in lanes.items() if row["role"]}:
        window = windows.get(lane, {"t_first": None, "t_last": None, "points": 0})
        ticks = {"stall": 0, "active": 0, "untracked": 0}
        if lane in spans_of:
            stalls, actives = spans_of[lane]
            for t in range(window["t_first"], window["t_last"]):
                if any(s["t0"] <= t < s["t1"] for s in stalls):
                    ticks["stall"] += 1
                elif any(s["t0"] <= t < s["t1"] for s in actives):
                    ticks["active"] += 1
                else:
                    ticks["untracked"] += 1
        rows.append(
            {
                "lane": lane,
                **place(lanes, lane, "launch", "cta", "warp", "role", "clock"),
                "t_first": window["t_first"],
                "t_last": window["t_last"],
                "points": window["points"],
                "extent": sum(ticks.values()),
                **ticks,
            }
        )
    return rows


def overlap(
    tables: Tables, spans: list[Row], pieces: list[Row], windows: dict[int, Row], lanes: dict[int, Row]
) -> list[Row]:
    """Sets of ticks, one for every role and every resource that lanes of a CTA on a clock can show."""
    resources = defaultdict(set)
    for s in tables["span_types"]:
        if s["resource"]:
            resources[s["role"]].add(s["resource"])
    ticks: dict[Any, dict[tuple[str, str], set[int]]] = defaultdict(lambda: defaultdict(set))
    extent: dict[Any, list[int]] = defaultdict(list)
    for lane, window in windows.items():
        if lane not in lanes or lanes[lane]["cta"] < 0 or not lanes[lane]["role"]:
            continue
        group = (lanes[lane]["launch"], lanes[lane]["cta"], lanes[lane]["clock"])
        extent[group] += [window["t_first"], window["t_last"]]
        role = lanes[lane]["role"]
        for p in pieces:
            if p["lane"] == lane and p["state"] == "active":
                ticks[group]["role", role] |= set(range(p["t0"], p["t1"]))
        ticks[group]["role", role] |= set()
        for name in resources[role]:
            ticks[group]["resource", name] |= set()
        for s in spans:
            if s["lane"] == s["end_lane"] == lane and s["complete"] and s["resource"]:
                ticks[group]["resource", s["resource"]] |= set(range(s["t0"], min(s["t1"], window["t_last"])))
    rows = []
    for (launch, cta, clock), sets in ticks.items():
        for kind, a in sets:
            for other, b in sets:
                if kind != other or not a < b:
                    continue
                in_a, in_b = sets[kind, a], sets[kind, b]
                both, union = len(in_a & in_b), len(in_a | in_b)
                rows.append(
                    {
                        "launch": launch,
                        "cta": cta,
                        "clock": clock,
                        "set_kind": kind,
                        "set_a": a,
                        "set_b": b,
                        "both_ticks": both,
                        "a_ticks": len(in_a),
                        "b_ticks": len(in_b),
                        "union_ticks": union,
                        "of_a": both / len(in_a) if in_a else None,
                        "of_b": both / len(in_b) if in_b else None,
                        "of_union": both / union if union else None,
                        "t_first": min(extent[launch, cta, clock]),
                        "t_last": max(extent[launch, cta, clock]),
                    }
                )
    return rows


def early_signal(tables: Tables, points: list[Row], spans: list[Row], lanes: dict[int, Row]) -> list[Row]:
    signals = {(d["producer_role"], d["producer_event"]) for d in tables["dependencies"]}
    rows = []
    for p in points:
        if (p["role"], p["event"]) not in signals:
            continue
        if any(s["t0"] < p["t"] < s["t1"] for s in counted(spans, p["lane"], "active")):
            where = place(lanes, p["lane"], "launch", "cta", "warp", "role", "clock")
            rows.append({"lane": p["lane"], **where, "event": p["event"], "iteration": p["iteration"], "t": p["t"]})
    return rows
