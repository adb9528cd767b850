"""Chapters 8 to 12 of ``spec.md`` in plain Python, written from the text and not from the SQL.

If the SQL and this disagree, the text is wrong, or was not enough. Slow on purpose: one loop a sentence.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import ceil, floor
from typing import Any

import spec_clocks

Row = dict[str, Any]
Interval = tuple[int, int]
FAR = 1 << 80


def rounded(x: float) -> int:
    return floor(x + 0.5)


def union(intervals: Iterable[Interval]) -> list[Interval]:
    found: list[Interval] = []
    for begin, end in sorted(i for i in intervals if i[1] > i[0]):
        if found and begin <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((begin, end))
    return found


def without(intervals: list[Interval], holes: list[Interval]) -> list[Interval]:
    found = []
    for begin, end in intervals:
        at = begin
        for hole_begin, hole_end in holes:
            if hole_end <= at or hole_begin >= end:
                continue
            found.append((at, hole_begin))
            at = max(at, hole_end)
        found.append((at, end))
    return union(found)


def size(intervals: Iterable[Interval]) -> int:
    return sum(end - begin for begin, end in intervals)


@dataclass
class Span:
    """A span of chapter 8, and what chapter 10 finds out about it when it is a wait."""

    lane: int
    end_lane: int
    name: str
    iteration: int
    t0: int
    t1: int
    complete: bool
    span_id: int
    end_point: str
    type: Row = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    kinds: set[tuple[Any, ...]] = field(default_factory=set)
    has_free: bool = False
    is_open: bool = False
    binding: Edge | None = None
    is_early: bool = False

    @property
    def length(self) -> int:
        return self.t1 - self.t0

    @property
    def state(self) -> str:
        return str(self.type.get("state", "unknown"))

    def within(self, window: Interval) -> Interval:
        return max(self.t0, window[0]), min(self.t1, window[1])


@dataclass
class Edge:
    """A needed edge of a wait."""

    row: Row
    kind: tuple[Any, ...]
    iteration: int | None = None
    signal: int | None = None
    lane: int = -1
    is_contradicted: bool = False
    release: int | None = None
    error: float = 0.0
    ready_error: float = 0.0

    @property
    def order(self) -> tuple[Any, ...]:
        names = self.row["producer_role"].encode(), self.row["producer_event"].encode()
        assert self.signal is not None
        return (-(self.signal + (self.release or 0)), -self.signal, *names, self.row["iteration_lag"])


def late(edge: Edge, wait: Span) -> int:
    assert edge.signal is not None
    return edge.signal - wait.t0


def ready(edge: Edge, wait: Span) -> int:
    """After the begin of the wait."""
    assert edge.release is not None
    return late(edge, wait) + edge.release


def may_bind(wait: Span) -> list[Edge]:
    """The binding edge, and those that bind as well within the errors."""
    surely = max(ready(e, wait) - e.ready_error for e in wait.edges)
    inexact = any(e.ready_error > 0 for e in wait.edges)
    return [e for e in wait.edges if e is wait.binding or (inexact and ready(e, wait) + e.ready_error >= surely)]


class Capture:
    """The rows of one capture and what follows from them."""

    def __init__(self, tables: dict[str, list[Row]]) -> None:
        self.rows = tables
        self.lanes = {row["lane"]: row for row in tables["lanes"]}
        self.launches = {row["launch"]: row for row in tables["launches"]}
        self.clocks = {row["clock"]: row for row in tables["clocks"]}
        self.span_types = {(row["role"], row["span"]): row for row in tables["span_types"]}
        self.loops = {(row["role"], row["event"]): row["loop"] for row in tables["event_types"]}
        for (role, span), row in self.span_types.items():
            for end in (".begin", ".end"):
                self.loops.setdefault((role, span + end), row["loop"])
        self.axis = spec_clocks.Axis(tables)
        self.points = self._points()
        self.named: dict[tuple[str, str], list[Row]] = defaultdict(list)
        for p in self.points:
            self.named[p["role"], p["event"]].append(p)
        self.spans, self.orphans = self._pairs()
        self.windows = {lane: self._window(lane) for lane in {p["lane"] for p in self.points}}

    # Chapter 8 -------------------------------------------------------------------------------------------------------

    def _points(self) -> list[Row]:
        points = [{k: e[k] for k in ("lane", "role", "event", "iteration", "t")} for e in self.rows["events"]]
        for span in self.rows["spans"]:
            same = {"role": span["role"], "iteration": span["iteration"]}
            points.append({"lane": span["lane"], "event": span["span"] + ".begin", "t": span["t0"], **same})
            if span["complete"]:
                points.append({"lane": span["end_lane"], "event": span["span"] + ".end", "t": span["t1"], **same})
        return points

    def _pairs(self) -> tuple[list[Span], list[tuple[int, str, int, str]]]:
        at: dict[tuple[Any, ...], list[int]] = defaultdict(list)
        for p in self.points:
            at[p["lane"], p["role"], p["event"], p["iteration"]].append(p["t"])
        spans, orphans = [], []
        for lane, role, iteration in {(key[0], key[1], key[3]) for key in at}:
            for (owner, name), row in self.span_types.items():
                if owner != role or not row["begin_event"] or not row["end_event"]:
                    continue
                begins = at.get((lane, role, row["begin_event"], iteration), [])
                ends = at.get((lane, role, row["end_event"], iteration), [])
                if len(begins) == len(ends) == 1 and ends[0] >= begins[0]:
                    spans.append(Span(lane, lane, name, iteration, begins[0], ends[0], True, -1, row["end_event"]))
                elif begins or ends:
                    many = len(begins) > 1 or len(ends) > 1
                    one = "no end" if not ends else "no begin" if not begins else "end before begin"
                    orphans.append((lane, name, iteration, "duplicate" if many else one))
        for r in self.rows["spans"]:
            complete = r["complete"] and r["t1"] >= r["t0"]
            ids = r["lane"], r["end_lane"], r["span"], r["iteration"]
            spans.append(Span(*ids, r["t0"], r["t1"], complete, r["span_id"], r["span"] + ".end"))
        for span in spans:
            span.type = self.span_types.get((self.lanes[span.lane]["role"], span.name), {})
        return spans, orphans

    # Chapter 9 -------------------------------------------------------------------------------------------------------

    def _window(self, lane: int) -> Interval:
        points = [p for p in self.points if p["lane"] == lane]
        first, last = min(p["t"] for p in points), max(p["t"] for p in points)
        row = self.lanes[lane]
        if row["completeness"] != "truncated":
            return first, last
        slots = self.launches[row["launch"]]["slots"] if row["launch"] in self.launches else -1
        loops: dict[str, list[Row]] = defaultdict(list)
        for p in points:
            loops[self.loops.get((p["role"], p["event"]), "")].append(p)
        loops.pop("once", None)
        filled = [q for q in loops.values() if slots > 0 and max(p["iteration"] for p in q) >= slots - 1]
        if filled:
            return first, min(max(p["t"] for p in q) for q in filled)
        return first, max((p["t"] for q in loops.values() for p in q), default=last)

    def active(self, lane: int) -> list[Interval]:
        return without(self._counted(lane, "active"), self._counted(lane, "stall"))

    def _counted(self, lane: int, state: str) -> list[Interval]:
        own = [s for s in self.spans if s.lane == s.end_lane == lane and s.complete and s.state == state]
        return union(s.within(self.windows[lane]) for s in own)

    def states(self) -> dict[int, tuple[int, int, int, int]]:
        """Extent, stall, active, untracked of each lane."""
        found = {}
        for lane, row in self.lanes.items():
            if lane in self.windows:
                extent = self.windows[lane][1] - self.windows[lane][0]
                stall, active = size(self._counted(lane, "stall")), size(self.active(lane))
                found[lane] = extent, stall, active, extent - stall - active
            elif row["role"]:
                found[lane] = 0, 0, 0, 0
        return found

    # Chapter 10 ------------------------------------------------------------------------------------------------------

    def waits(self) -> list[Span]:
        """Every wait, judged: see :meth:`verdict`."""
        waits = [s for s in self.spans if s.state == "stall" and s.complete and s.lane == s.end_lane]
        signal = self._signals()
        for wait in waits:
            self._edges(wait, signal)
        self._release(waits)
        for wait in waits:
            wait.is_open = any(e.signal is None or e.is_contradicted or e.release is None for e in wait.edges)
            if wait.edges and all(e.signal is not None for e in wait.edges):
                wait.binding = min(wait.edges, key=lambda e: e.order)
            wait.is_early = not wait.is_open and self._satisfied(wait)
        return waits

    def place(self, lane: int) -> tuple[int, int, int]:
        row = self.lanes[lane]
        return row["launch"], row["cta"], row["clock"]

    def unit_and_step(self, wait: Span) -> tuple[str, int]:
        clock = self.clocks.get(self.lanes[wait.lane]["clock"], {"unit": "tick", "step_ticks": -1})
        return clock["unit"], max(clock["step_ticks"], 0)

    def _signals(self) -> Callable[[Row, int, int], tuple[int | None, int]]:
        teams: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
        for lane, row in self.lanes.items():
            teams[(*self.place(lane), row["role"])].append(row)
        wrote: dict[tuple[Any, ...], set[int]] = defaultdict(set)
        found: dict[tuple[Any, ...], list[tuple[int, int]]] = defaultdict(list)
        for p in self.points:
            key = (*self.place(p["lane"]), p["role"], p["event"])
            wrote[key].add(p["lane"])
            found[(*key, p["iteration"])].append((p["t"], p["lane"]))

        def in_doubt(team: list[Row]) -> bool:
            return len(team) >= 2 and any(r["completeness"] != "complete" or r["records_lost"] > 0 for r in team)

        def signal(row: Row, lane: int, iteration: int) -> tuple[int | None, int]:
            key = (*self.place(lane), row["producer_role"], row["producer_event"])
            points = found.get((*key, iteration), [])
            if row["mechanism"] == "commit" and row["producer_role"] == row["consumer_role"]:
                points = [p for p in points if p[1] == lane]
            elif in_doubt(teams[key[:-1]]):
                expected = [r for r in teams[key[:-1]] if r["lane"] in wrote[key] or r["records_lost"] > 0]
                if len(points) < len(expected):
                    return None, -1
            last = max((t for t, _ in points), default=None)
            return last, min((n for t, n in points if t == last), default=-1)

        return signal

    def _edges(self, wait: Span, signal: Callable[[Row, int, int], tuple[int | None, int]]) -> None:
        role = self.lanes[wait.lane]["role"]
        for row in self.rows["dependencies"]:
            if (row["consumer_role"], row["consumer_event"]) != (role, wait.end_point):
                continue
            point = (row["producer_role"], row["producer_event"]) if row["completion"] == "async" else ()
            edge = Edge(row, (role, wait.name, wait.end_point, self.unit_and_step(wait)[0], *point))
            wait.kinds.add(edge.kind)
            if row["producer_step"] > 0 and row["consumer_step"] > 0 and wait.iteration >= 0:
                n = row["consumer_step"] * wait.iteration - row["iteration_lag"]
                if n % row["producer_step"]:
                    continue
                if n < 0:
                    wait.has_free = True
                    continue
                if row["scope"] in ("cta", "cluster", "device"):
                    edge.iteration = n // row["producer_step"]
                if row["scope"] == "cta":
                    edge.signal, edge.lane = signal(row, wait.lane, n // row["producer_step"])
                elif edge.iteration is not None:
                    ends = wait.t0, wait.t1
                    edge.signal, edge.lane, edge.error = spec_clocks.far_signal(
                        self.rows,
                        self.axis,
                        self.named[row["producer_role"], row["producer_event"]],
                        row,
                        self.lanes[wait.lane],
                        ends,
                        edge.iteration,
                    )
            wait.edges.append(edge)

    def _release(self, waits: list[Span]) -> None:
        tolerance: dict[tuple[Any, ...], int] = {}
        slacks, far = defaultdict(list), defaultdict(float)
        for kind in {kind for wait in waits for kind in wait.kinds}:
            alike = [wait for wait in waits if kind in wait.kinds]
            step = max(self.unit_and_step(wait)[1] for wait in alike)
            tolerance[kind] = min(wait.length for wait in alike) + step
        for wait in waits:
            for edge in wait.edges:
                if edge.signal is not None and edge.signal - wait.t0 > edge.error:
                    slacks[edge.kind].append(wait.t1 - edge.signal)
                    far[edge.kind] = max(far[edge.kind], edge.error)
        for wait, edge in ((w, e) for w in waits for e in w.edges if e.signal is not None):
            assert edge.signal is not None
            edge.is_contradicted = edge.signal - wait.t1 > tolerance[edge.kind] + edge.error
            edge.ready_error = edge.error + (far[edge.kind] if edge.row["latency_ticks"] is None else 0)
            found = slacks[edge.kind]
            if min(found, default=0) < -tolerance[edge.kind] - far[edge.kind]:
                found = [slack for slack in found if slack >= 0]
            if edge.row["latency_ticks"] is not None:
                edge.release = rounded(edge.row["latency_ticks"])
            else:
                edge.release = min(found, default=None if edge.row["completion"] == "async" else 0)

    @staticmethod
    def _satisfied(wait: Span) -> bool:
        if not wait.edges:
            return wait.has_free
        if all(ready(edge, wait) <= -edge.ready_error for edge in wait.edges):
            return True
        perhaps = may_bind(wait)
        return all(edge.row["mechanism"] == "bar_sync" and -late(edge, wait) >= edge.error for edge in perhaps)

    def floors(self, waits: list[Span]) -> list[int | None]:
        own: dict[tuple[Any, ...], int] = {}
        for wait in (w for w in waits if w.is_early):
            unit = self.unit_and_step(wait)[0]
            for group in ((self.lanes[wait.lane]["role"], wait.name, unit), (unit,)):
                own[group] = min(own.get(group, FAR), wait.length)
        found: list[int | None] = []
        for wait in waits:
            unit, given = self.unit_and_step(wait)[0], wait.type["floor_ticks"]
            inferred = own.get((self.lanes[wait.lane]["role"], wait.name, unit), own.get((unit,)))
            found.append(rounded(given) if given is not None else inferred)
        return found

    def verdict(self, wait: Span, known: int | None) -> tuple[str, int, int, int]:
        """Verdict, and blocked, satisfied and unjudged ticks; ``known`` is the floor, None when none is known."""
        edge, length, least = wait.binding, wait.length, known or 0
        if wait.is_open or (not wait.edges and not wait.has_free):
            return "unknown", 0, 0, length
        verdict, after = "", float(length)
        if not wait.is_early and edge is not None:
            perhaps = may_bind(wait)
            after = length - max(ready(e, wait) + e.ready_error for e in wait.edges)
            if all(late(e, wait) > e.error for e in perhaps):
                verdict = "producer_late"
            elif all(-late(e, wait) >= e.error and e.row["mechanism"] != "bar_sync" for e in perhaps):
                verdict = "in_flight" if ready(edge, wait) > edge.ready_error else ""
            if not verdict:
                return "unknown", 0, 0, length
        step = self.unit_and_step(wait)[1]
        if known is not None and 2 * after > length and after > 16 * (known + step):
            verdict = "other"
        elif wait.is_early:
            return ("not_blocked" if wait.edges else "free"), 0, length, 0
        return verdict, max(length - least, 0), min(length, least), 0

    # Chapter 11 ------------------------------------------------------------------------------------------------------

    def overlap(self) -> dict[tuple[Any, ...], tuple[int, ...]]:
        """By (launch, cta, clock, kind, a, b): both, a, b, union, and the window."""
        sets: dict[tuple[Any, ...], dict[tuple[str, str], list[Interval]]] = defaultdict(lambda: defaultdict(list))
        windows: dict[tuple[Any, ...], list[Interval]] = defaultdict(list)
        for lane, window in self.windows.items():
            row, place = self.lanes[lane], self.place(lane)
            if row["cta"] < 0 or not row["role"]:
                continue
            windows[place].append(window)
            sets[place]["role", row["role"]] += self.active(lane)
            for role, name in self.span_types:
                resource = self.span_types[role, name]["resource"]
                if role == row["role"] and resource:
                    own = [s for s in self.spans if s.lane == s.end_lane == lane and s.complete and s.name == name]
                    sets[place]["resource", resource] += [s.within(window) for s in own]
        found = {}
        for place, named in sets.items():
            span = min(w[0] for w in windows[place]), max(w[1] for w in windows[place])
            for a, b in ((a, b) for a in named for b in named if a[0] == b[0] and a[1] < b[1]):
                one, other, either = (size(union(part)) for part in (named[a], named[b], named[a] + named[b]))
                found[(*place, *a, b[1])] = one + other - either, one, other, either, *span
        return found

    # Chapter 12 ------------------------------------------------------------------------------------------------------

    def iterations(self) -> dict[tuple[int, int], tuple[int, bool]]:
        """Ticks of each iteration of a lane, and whether it is steady."""
        found = {}
        for role in (r for r in self.rows["roles"] if r["iteration_event"]):
            deepest = 2
            for row in self.rows["dependencies"]:
                for side in ("producer", "consumer"):
                    if row[f"{side}_role"] == role["role"] and min(row["producer_step"], row["consumer_step"]) > 0:
                        deepest = max(deepest, ceil(row["iteration_lag"] / row[f"{side}_step"]))
            starts: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
            for p in self.points:
                if (p["role"], p["event"]) == (role["role"], role["iteration_event"]):
                    starts[p["lane"]][p["iteration"]].append(p["t"])
            for lane, times in starts.items():
                at = {i: t[0] for i, t in times.items() if len(t) == 1}
                for i in (i for i in at if i + 1 in at):
                    first, end = min(at), max(at) + 1
                    steady = end - first >= 4 * deepest and first + deepest <= i < end - deepest
                    found[lane, i] = at[i + 1] - at[i], steady
        return found
