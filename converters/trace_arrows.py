"""Arrows of a trace: declared edges that a wait needed, and arrows that the source recorded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from wsformat.converters.trace_model import Array, ArrowEnds, Texts
from wsformat.converters.trace_times import Axis

ARROWS = """
CREATE TABLE arrow AS
SELECT ROW_NUMBER() OVER (
         ORDER BY p.n, s.signal_t, w.n, s.t0, s.span, s.consumer_iteration, s.span_id, s.producer_event, s.barrier
       ) - 1 AS number,
       p.n AS from_n, s.signal_t, w.n AS to_n, s.t0, s.t1, s.span, s.consumer_iteration AS iteration, s.span_id,
       CASE WHEN s.barrier <> '' THEN s.barrier ELSE s.producer_event END AS name, s.is_binding AS binding
FROM signal s
JOIN drawn_lane p ON p.capture_id = s.capture_id AND p.lane = s.producer_lane
JOIN drawn_lane w ON w.capture_id = s.capture_id AND w.lane = s.consumer_lane
WHERE {which}
"""

# Arrows that the source recorded; -1 is an end that it lost.
RECORDED = """
CREATE TABLE recorded AS
SELECT ROW_NUMBER() OVER (ORDER BY c.nth, e.edge_id, e.from_t, e.to_t) - 1 AS number,
       COALESCE(o.n, -1) AS from_n, e.from_t, e.from_span_id, COALESCE(w.n, -1) AS to_n, e.to_t, e.to_span_id,
       COALESCE(s.t0, -1) AS to_begin, s.t0 IS NOT NULL AS has_slice, c.nth, e.kind AS name
FROM edges e
JOIN numbered_capture c ON c.capture_id = e.capture_id
LEFT JOIN drawn_lane o ON o.capture_id = e.capture_id AND o.lane = e.from_lane
LEFT JOIN drawn_lane w ON w.capture_id = e.capture_id AND w.lane = e.to_lane
LEFT JOIN all__spans s ON s.capture_id = e.capture_id AND s.span_id = e.to_span_id AND s.lane = e.to_lane
  AND e.to_span_id >= 0
WHERE {which}
"""
# An end on a lane that is there and is not drawn was not asked for.
ASKED_ENDS = """NOT EXISTS (
  SELECT 1 FROM lanes l LEFT JOIN asked_lane a ON a.capture_id = l.capture_id AND a.lane = l.lane
  WHERE l.capture_id = e.capture_id AND l.lane IN (e.from_lane, e.to_lane) AND a.lane IS NULL
)"""
RECORDED_ENDS = """
SELECT r.number, r.from_n, r.from_t, r.to_n, r.to_t, r.to_begin, r.has_slice, r.name,
       COALESCE(a.track, -1) AS from_track, COALESCE(b.track, -1) AS to_track
FROM recorded r
LEFT JOIN crossed a ON a.nth = r.nth AND a.span_id = r.from_span_id AND r.from_span_id >= 0
LEFT JOIN crossed b ON b.nth = r.nth AND b.span_id = r.to_span_id AND r.to_span_id >= 0
WHERE r.from_n >= 0 AND r.to_n >= 0 ORDER BY r.number
"""
INTO = "SELECT * FROM arrow WHERE to_n BETWEEN {low} AND {high} AND t0 BETWEEN {first} AND {last}"
RECORDED_INTO = """
SELECT number, from_n, from_t, to_n, to_t, to_begin, to_span_id FROM recorded
WHERE from_n >= 0 AND has_slice AND to_n BETWEEN {low} AND {high} AND to_begin BETWEEN {first} AND {last}
"""


def match(wanted: list[Array], known: list[Array]) -> Array:
    """Place of each wanted row of keys among the known ones, -1 where there is none. Keys are integer columns."""
    count = len(known[0])
    if count == 0 or len(wanted[0]) == 0:
        return np.full(len(wanted[0]), -1, dtype=np.int64)
    names = [f"k{index}" for index in range(len(known))]
    left = pa.table([pa.array(column.astype(np.int64)) for column in wanted], names=names)
    right = pa.table([pa.array(column.astype(np.int64)) for column in known], names=names)
    left = left.append_column("row", pa.array(np.arange(left.num_rows)))
    right = right.append_column("place", pa.array(np.arange(count)))
    joined = left.join(right, keys=names, join_type="inner", use_threads=False)
    found = np.full(left.num_rows, -1, dtype=np.int64)
    found[joined.column("row").to_numpy()] = joined.column("place").to_numpy()
    return found


def _numbers(table: pa.Table, *names: str) -> list[Array]:
    return [table.column(name).to_numpy() for name in names]


@dataclass
class Arrows:
    """Arrows of a bundle, in tables of the connection, and how many of them were given.

    Attributes:
        connection: one on which no other result is being read.
        axis: places ticks.
        base: time to subtract.
        lane_track: per lane its track.
        names: numbers texts.
        declared, recorded: how many there are; numbers of recorded ones follow those of declared ones.
        into: declared ones whose head was given.
        clamped: arrows whose tail had to be moved back.
    """

    connection: duckdb.DuckDBPyConnection
    axis: Axis
    base: int
    lane_track: Array
    names: Texts
    declared: int = 0
    recorded: int = 0
    into: int = 0
    clamped: int = 0
    dangling: int = 0

    def prepare(self, bundle: duckdb.DuckDBPyConnection, which: str, *, some: bool = False) -> None:
        """Make the tables: ``which`` is 'all' declared edges, or 'binding' ones only; ``some``: of asked_lane alone.

        ``bundle`` is the connection that sees the bundle's tables; those that are made are seen by all.
        """
        for name in ("arrow", "recorded", "crossed"):
            bundle.execute(f"DROP TABLE IF EXISTS {name}")
        bundle.execute(ARROWS.format(which="TRUE" if which == "all" else "s.is_binding"))
        bundle.execute(RECORDED.format(which=ASKED_ENDS if some else "TRUE"))
        self.connection.execute("CREATE TABLE crossed (nth INTEGER, span_id BIGINT, track BIGINT)")
        ((self.declared,),) = self.connection.execute("SELECT COUNT(*) FROM arrow").fetchall()
        ((self.recorded, self.dangling),) = self.connection.execute(
            "SELECT COUNT(*), COUNT(*) FILTER (WHERE from_n < 0 OR to_n < 0) FROM recorded"
        ).fetchall()

    def earliest(self) -> int | None:
        """The earliest time of a recorded arrow, for the base of the trace."""
        low = None
        for end in ("from", "to"):
            query = f"SELECT {end}_n AS n, MIN({end}_t) AS t FROM recorded WHERE from_n >= 0 AND to_n >= 0 GROUP BY 1"
            found = self.connection.sql(query).to_arrow_table()
            if found.num_rows:
                least = int(self.axis.place(*_numbers(found, "n", "t")).min())
                low = least if low is None else min(low, least)
        return low

    def tails(self, low: int, high: int, block: int) -> Iterator[ArrowEnds]:
        """Tails of declared arrows that begin on lanes low to high, ordered by lane and time."""
        query = (
            "SELECT number, from_n, signal_t, to_n, t1, name, binding FROM arrow "
            f"WHERE from_n BETWEEN {low} AND {high} ORDER BY number"
        )
        for batch in self.connection.sql(query).to_arrow_reader(block):
            found = pa.Table.from_batches([batch])
            number, from_n, signal, to_n, end = _numbers(found, "number", "from_n", "signal_t", "to_n", "t1")
            t = self._clamp(self.axis.place(from_n, signal), self.axis.place(to_n, end))
            yield ArrowEnds(
                True, number, self.lane_track[from_n], t, self.names.codes(found.column("name")),
                found.column("binding").to_numpy(), np.zeros(len(t), dtype=bool),
            )  # fmt: skip

    def _clamp(self, t: Array, head: Array, *, count: bool = True) -> Array:
        # No viewer draws backwards in time.
        late = t > head
        self.clamped += int(late.sum()) * count
        result: Array = np.where(late, head, t) - self.base
        return result

    def heads(self, keys: list[Array], track: Array, t0: Array, t1: Array) -> tuple[ArrowEnds, list[Array]]:
        """Heads of declared arrows that end in these slices, and per slice the arrows that end inside it.

        An arrow whose signal came before the wait began ends in the wait itself; the others end at its end, since
        a reader turns an arrow round whose head's slice begins before its tail.

        Args:
            keys: lane, begin tick, name, iteration and span id of the slices, in an order by lane and begin.
            track, t0, t1: where the slices are drawn.
        """
        n, tick0 = keys[:2]
        limits = {"low": int(n[0]), "high": int(n[-1])}
        one = n[0] == n[-1]
        limits |= {"first": int(tick0[0] if one else tick0.min()), "last": int(tick0[-1] if one else tick0.max())}
        found = self.connection.sql(INTO.format(**limits)).to_arrow_table()
        wanted = _numbers(found, "to_n", "t0")
        wanted += [self.names.codes(found.column("span")), *_numbers(found, "iteration", "span_id")]
        place = match(wanted, keys)
        kept = np.flatnonzero(place >= 0)
        self.into += len(kept)
        target = place[kept]
        number, from_n, signal = (column[kept] for column in _numbers(found, "number", "from_n", "signal_t"))
        tail = self.axis.place(from_n, signal) - self.base
        inside = np.minimum(tail, t1[target]) <= t0[target]
        order = np.lexsort((number, track[target]))
        heads = ArrowEnds(
            False, number[order], track[target][order], t1[target][order],
            self.names.codes(found.column("name").take(pa.array(kept)))[order],
            found.column("binding").to_numpy()[kept][order], inside[order],
        )  # fmt: skip
        return heads, _columns(target[inside], number[inside], len(t0))

    def recorded_into(self, keys: list[Array]) -> list[Array]:
        """Per slice the recorded arrows that end inside it: those whose tail lies before it."""
        if not self.recorded:
            return []
        n, tick0, *_, span_id = keys
        limits = {"low": int(n[0]), "high": int(n[-1]), "first": int(tick0.min()), "last": int(tick0.max())}
        found = self.connection.sql(RECORDED_INTO.format(**limits)).to_arrow_table()
        place = match(_numbers(found, "to_n", "to_begin", "to_span_id"), [n, tick0, span_id])
        kept = np.flatnonzero((place >= 0) & self._recorded_inside(found)[0])
        return _columns(place[kept], found.column("number").to_numpy()[kept] + self.declared, len(n))

    def _recorded_inside(self, found: pa.Table) -> tuple[Array, Array]:
        """Which recorded arrows end in their slice, and which of these begin at the very moment at which it begins."""
        tail, head, begin = (
            self.axis.place(*_numbers(found, n, t))
            for n, t in (("from_n", "from_t"), ("to_n", "to_t"), ("to_n", "to_begin"))
        )
        tail = np.minimum(tail, head)
        return tail <= begin, tail == begin

    def remember(self, nth: int, span_id: Array, track: Array) -> None:
        """Stored spans that are not drawn on their lane's own track, for the arrows that end there."""
        if self.recorded and len(span_id):
            rows = pa.table({"nth": np.full(len(span_id), nth), "span_id": span_id, "track": track})
            self.connection.register("crossed_rows", rows)
            self.connection.execute("INSERT INTO crossed SELECT * FROM crossed_rows")
            self.connection.unregister("crossed_rows")

    def recorded_ends(self, block: int, *, before: bool) -> Iterator[ArrowEnds]:
        """Ends of recorded arrows: before the slices the tails that must precede them, after them all others.

        Tails that come later know on which track their span is drawn.
        """
        if not self.recorded:
            return
        for batch in self.connection.sql(RECORDED_ENDS).to_arrow_reader(block):
            found = pa.Table.from_batches([batch])
            names = ("from_n", "to_n", "from_track", "to_track", "number")
            from_n, to_n, from_track, to_track, number = _numbers(found, *names)
            number = number + self.declared
            head = self.axis.place(to_n, found.column("to_t").to_numpy())
            t = self._clamp(self.axis.place(from_n, found.column("from_t").to_numpy()), head, count=before)
            inside, at_once = (found.column("has_slice").to_numpy() & one for one in self._recorded_inside(found))
            name, binding = self.names.codes(found.column("name")), np.zeros(len(t), dtype=bool)
            from_track = np.where(from_track < 0, self.lane_track[from_n], from_track)
            to_track = np.where(to_track < 0, self.lane_track[to_n], to_track)
            tails = ArrowEnds(True, number, from_track, t, name, binding, inside)
            yield tails.take(at_once if before else ~at_once)
            if not before:
                yield ArrowEnds(False, number, to_track, head - self.base, name, binding, inside)


def _columns(target: Array, number: Array, rows: int) -> list[Array]:
    """Per row the numbers that have it as their target: as many columns as the row with most has, -1 for none."""
    if len(target) == 0:
        return []
    order = np.lexsort((number, target))
    target, number = target[order], number[order]
    nth = np.arange(len(target)) - np.searchsorted(target, target, side="left")
    columns: list[Any] = []
    for index in range(int(nth.max()) + 1):
        column = np.full(rows, -1, dtype=np.int64)
        chosen = nth == index
        column[target[chosen]] = number[chosen]
        columns.append(column)
    return columns
