"""Builds the trace model of a bundle: the queries, and how rows become tracks."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wsformat.bundle import Bundle
from wsformat.converters.trace_model import (
    Array,
    Counters,
    Flows,
    Instants,
    Slices,
    TraceModel,
    Track,
    split_overlaps,
)
from wsformat.errors import BadRequest

# One line per lane from its clock to ns: anchors of its launch, else of the whole capture, else the clock itself.
# Where a clock has anchors on several reference clocks, the lowest number wins (a device timer before Unix time).
MAPPED = """
CREATE TEMP TABLE mapped AS
WITH choice AS (
  SELECT l.capture_id, l.lane, m.t_first, m.ns_first, m.ns_per_tick, m.error_ns,
         ROW_NUMBER() OVER (
           PARTITION BY l.capture_id, l.lane
           ORDER BY m.launch DESC, CASE WHEN m.reference_clock < 0 THEN 1 ELSE 0 END, m.reference_clock
         ) AS nth
  FROM lanes l
  JOIN clock_map m ON m.capture_id = l.capture_id AND m.clock = l.clock AND (m.launch = l.launch OR m.launch = -1)
  WHERE m.ns_per_tick IS NOT NULL
)
SELECT l.capture_id, l.lane,
       COALESCE(c.t_first, 0) AS t_first, COALESCE(c.ns_first, 0) AS ns_first,
       COALESCE(c.ns_per_tick, CASE WHEN k.unit = 'ns' THEN 1.0E0 END) AS ns_per_tick,
       CASE WHEN c.lane IS NOT NULL THEN c.error_ns
            WHEN k.step_ticks > 0 THEN CAST(k.step_ticks AS DOUBLE) END AS error_ns
FROM lanes l
LEFT JOIN choice c ON c.capture_id = l.capture_id AND c.lane = l.lane AND c.nth = 1
LEFT JOIN clocks k ON k.capture_id = l.capture_id AND k.clock = l.clock
"""

# Without anchors every CTA (every clock outside CTAs) starts at its own zero, and a tick is one unit of the axis.
TICKS = """
CREATE OR REPLACE TEMP TABLE mapped AS
WITH first_point AS (
  SELECT l.capture_id, l.launch, l.cta, l.clock, MIN(p.t) AS t
  FROM point p JOIN lanes l ON l.capture_id = p.capture_id AND l.lane = p.lane
  GROUP BY l.capture_id, l.launch, l.cta, l.clock
)
SELECT l.capture_id, l.lane, f.t AS t_first, CAST(0 AS BIGINT) AS ns_first, 1.0E0 AS ns_per_tick,
       CAST(NULL AS DOUBLE) AS error_ns
FROM lanes l
JOIN first_point f ON f.capture_id = l.capture_id AND f.launch = l.launch AND f.cta = l.cta AND f.clock = l.clock
"""

LANES = """
CREATE TEMP TABLE drawn_lane AS
WITH used AS (SELECT DISTINCT capture_id, lane FROM point)
SELECT l.capture_id, l.lane, l.launch, l.cta, l.sm, l.warp, l.role, l.name, l.process_id, l.thread_id,
       c.nth AS capture, COALESCE(k.kind, '') AS launch_kind,
       COALESCE(NULLIF(k.kernel, ''), NULLIF(c.kernel, ''), 'kernel') AS kernel,
       CAST(ROW_NUMBER() OVER (
         ORDER BY c.nth, l.launch, l.sm, l.cta, COALESCE(r.display_order, 0), l.warp, l.lane
       ) - 1 AS INTEGER) AS ord
FROM lanes l JOIN used u ON u.capture_id = l.capture_id AND u.lane = l.lane
JOIN numbered_capture c ON c.capture_id = l.capture_id
LEFT JOIN launches k ON k.capture_id = l.capture_id AND k.launch = l.launch
LEFT JOIN roles r ON r.capture_id = l.capture_id AND r.role = l.role
"""

# A clock that ticks in ns stays in integers: its absolute times exceed what a DOUBLE holds.
TIME = (
    "CASE WHEN m.ns_per_tick = 1 THEN m.ns_first + ({t} - m.t_first) "
    "ELSE m.ns_first + CAST(FLOOR(CAST({t} - m.t_first AS DOUBLE) * m.ns_per_tick + 0.5) AS BIGINT) END"
)

DRAWN = f"""
SELECT o.ord, {TIME.format(t="s.t0")} AS t0, {TIME.format(t="s.t1")} AS t1, s.span AS name, s.state AS category,
       s.iteration, s.t0 AS tick0, s.t1 AS tick1, s.clock, m.error_ns, s.complete
FROM (
  SELECT capture_id, lane, span, state, iteration, t0, t1, clock, complete FROM span
  %s
) s
JOIN mapped m ON m.capture_id = s.capture_id AND m.lane = s.lane
JOIN drawn_lane o ON o.capture_id = s.capture_id AND o.lane = s.lane
ORDER BY o.ord, t0, t1 DESC, s.iteration
"""

UNTRACKED = """
  UNION ALL
  SELECT i.capture_id, i.lane, 'untracked' AS span, 'untracked' AS state, -1 AS iteration, i.t0, i.t1, l.clock,
         TRUE AS complete
  FROM state_interval i JOIN lanes l ON l.capture_id = i.capture_id AND l.lane = i.lane WHERE i.state = 'untracked'
"""

MARKERS = f"""
WITH ends AS (
  SELECT capture_id, role, begin_event AS event FROM span_types
  UNION
  SELECT capture_id, role, end_event AS event FROM span_types
)
SELECT o.ord, {TIME.format(t="e.t")} AS t, e.event AS name, e.iteration
FROM events e
JOIN mapped m ON m.capture_id = e.capture_id AND m.lane = e.lane
JOIN drawn_lane o ON o.capture_id = e.capture_id AND o.lane = e.lane
LEFT JOIN ends x ON x.capture_id = e.capture_id AND x.role = e.role AND x.event = e.event
WHERE x.event IS NULL
ORDER BY o.ord, t
"""

ARROWS = f"""
SELECT p.ord AS from_ord, {TIME.format(t="s.signal_t")} AS t, w.ord AS to_ord, s.span, s.t0 AS tick0,
       s.consumer_iteration AS iteration,
       CASE WHEN s.barrier <> '' THEN s.barrier ELSE s.producer_event END AS name, s.is_binding AS binding
FROM signal s
JOIN mapped m ON m.capture_id = s.capture_id AND m.lane = s.producer_lane
JOIN drawn_lane p ON p.capture_id = s.capture_id AND p.lane = s.producer_lane
JOIN drawn_lane w ON w.capture_id = s.capture_id AND w.lane = s.consumer_lane
WHERE %s
"""

COUNTERS = f"""
WITH step AS (
  SELECT o.capture, l.launch, l.cta, l.sm, i.state, {TIME.format(t="i.t0")} AS t, 1 AS delta, o.ord
  FROM state_interval i JOIN lanes l ON l.capture_id = i.capture_id AND l.lane = i.lane
  JOIN mapped m ON m.capture_id = i.capture_id AND m.lane = i.lane
  JOIN drawn_lane o ON o.capture_id = i.capture_id AND o.lane = i.lane WHERE i.state <> 'untracked' AND l.cta >= 0
  UNION ALL
  SELECT o.capture, l.launch, l.cta, l.sm, i.state, {TIME.format(t="i.t1")} AS t, -1 AS delta, o.ord
  FROM state_interval i JOIN lanes l ON l.capture_id = i.capture_id AND l.lane = i.lane
  JOIN mapped m ON m.capture_id = i.capture_id AND m.lane = i.lane
  JOIN drawn_lane o ON o.capture_id = i.capture_id AND o.lane = i.lane WHERE i.state <> 'untracked' AND l.cta >= 0
), at_t AS (
  SELECT capture, launch, cta, state, t, SUM(delta) AS delta, MIN(ord) AS ord
  FROM step GROUP BY capture, launch, cta, state, t
)
SELECT MIN(ord) OVER (PARTITION BY capture, launch, cta) AS ord, state, t, delta,
       CAST(SUM(delta) OVER (
         PARTITION BY capture, launch, cta, state ORDER BY t ROWS UNBOUNDED PRECEDING
       ) AS BIGINT) AS value
FROM at_t ORDER BY ord, state, t
"""

NOTES = """
SELECT c.nth, c.capture_id, c.label, c.kernel, c.device, c.arch, c.completeness, c.kind, c.source_format, p.perturbation
FROM numbered_capture c LEFT JOIN (
  SELECT capture_id, MAX(perturbation) AS perturbation FROM perturbation GROUP BY capture_id
) p ON p.capture_id = c.capture_id ORDER BY c.nth
"""


def build(bundle: Bundle, *, flows: str = "all", untracked: bool = False, counters: bool = True) -> TraceModel:
    """Collect the model of a bundle.

    Args:
        bundle: any bundle with stamps or spans.
        flows: 'all' declared edges, 'binding' ones only, or 'none'.
        untracked: also give untracked intervals as slices of category 'untracked'.
        counters: also count active and stalled lanes per CTA over time.

    Raises:
        BadRequest: nothing to draw, or an option that does not exist.
    """
    if flows not in ("all", "binding", "none"):
        raise BadRequest(f"no such choice of arrows: {flows!r}", "Choose all, binding or none.")
    with bundle.duckdb() as connection:
        connection.execute(
            "CREATE TEMP TABLE numbered_capture AS SELECT *, "
            "CAST(ROW_NUMBER() OVER (ORDER BY capture_id) - 1 AS INTEGER) AS nth FROM captures"
        )
        connection.execute(LANES)
        connection.execute(MAPPED)
        axis = "ns" if _count(connection, UNMAPPED) == 0 else "tick"
        if axis == "tick":
            connection.execute(TICKS)
        return _assemble(connection, axis, flows, untracked, counters)


UNMAPPED = """
SELECT COUNT(*) FROM drawn_lane o JOIN mapped m ON m.capture_id = o.capture_id AND m.lane = o.lane
WHERE m.ns_per_tick IS NULL
"""


def _count(connection: duckdb.DuckDBPyConnection, query: str) -> int:
    ((value,),) = connection.execute(query).fetchall()
    return int(value)


def _arrow(connection: duckdb.DuckDBPyConnection, query: str) -> pa.Table:
    return connection.sql(query).to_arrow_table()


def _ints(table: pa.Table, name: str) -> Array:
    return table.column(name).to_numpy()


class _Texts:
    """Texts numbered in order of first use."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}

    def codes(self, column: pa.ChunkedArray) -> Array:
        encoded = pc.dictionary_encode(column).combine_chunks() if len(column) else None
        if encoded is None:
            return np.zeros(0, dtype=np.int32)
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.unify_dictionaries().combine_chunks()
        table = np.array([self.code(text) for text in encoded.dictionary.to_pylist()], dtype=np.int32)
        return table[encoded.indices.to_numpy()]

    def code(self, text: str) -> int:
        return self.known.setdefault(text, len(self.known))


def _assemble(
    connection: duckdb.DuckDBPyConnection, axis: str, flows: str, untracked: bool, counters: bool
) -> TraceModel:
    names, categories = _Texts(), _Texts()
    spans = _arrow(connection, DRAWN % (UNTRACKED if untracked else ""))
    marks = _arrow(connection, MARKERS)
    if spans.num_rows + marks.num_rows == 0:
        raise BadRequest("nothing to draw: the bundle has no spans and no stamps")
    ord_, t0, t1 = _ints(spans, "ord"), _ints(spans, "t0"), _ints(spans, "t1")
    base = min((int(a.min()) for a in (t0, _ints(marks, "t")) if len(a)), default=0)
    level = split_overlaps(ord_, t0, t1)
    tracks, lane_track, level_track, cta_track = _tracks(connection, ord_, level)
    track = np.where(level == 0, lane_track[ord_], 0).astype(np.int64)
    extra = np.flatnonzero(level)
    track[extra] = [level_track[key] for key in zip(ord_[extra].tolist(), level[extra].tolist(), strict=True)]
    # Levels were split off, so order again by track; inside a track the order by (t0, -t1) holds.
    order = np.argsort(track, kind="stable")
    position = np.empty(len(order), dtype=np.int64)
    position[order] = np.arange(len(order))
    slices = Slices(
        track=track[order],
        t0=t0[order] - base,
        t1=t1[order] - base,
        name=names.codes(spans.column("name"))[order],
        category=categories.codes(spans.column("category"))[order],
        iteration=_ints(spans, "iteration")[order],
        tick0=_ints(spans, "tick0")[order],
        tick1=_ints(spans, "tick1")[order],
        clock=_ints(spans, "clock")[order],
        error_ns=spans.column("error_ns").to_numpy().astype(np.float64)[order],
        complete=spans.column("complete").to_numpy()[order],
    )
    instants = Instants(
        track=lane_track[_ints(marks, "ord")] if marks.num_rows else np.zeros(0, dtype=np.int64),
        t=_ints(marks, "t") - base,
        name=names.codes(marks.column("name")),
        iteration=_ints(marks, "iteration"),
    )
    dropped: dict[str, int] = {}
    arrows = _arrows(connection, flows, spans, ord_, position, lane_track, slices, base, names, dropped)
    steps = _counters(connection, counters, tracks, cta_track, base)
    return TraceModel(
        axis=axis,
        base=base,
        tracks=tracks,
        names=list(names.known),
        categories=list(categories.known),
        slices=slices,
        instants=instants,
        flows=arrows,
        counters=steps,
        notes=_notes(connection, axis, base),
        spans_in=spans.num_rows,
        clamped=int((arrows.clamped > 0).sum()),
        dropped=dropped,
    )


def _tracks(
    connection: duckdb.DuckDBPyConnection, ord_: Array, level: Array
) -> tuple[list[Track], Array, dict[tuple[int, int], int], dict[int, int]]:
    """The tree kernel > launch > SM > CTA > lane > async lane, numbered from 1 in drawing order."""
    tracks: list[Track] = []
    known: dict[tuple[Any, ...], int] = {}
    children: dict[int, int] = {}

    def add(key: tuple[Any, ...], parent: int, name: str, kind: str) -> int:
        if key not in known:
            known[key] = len(tracks) + 1
            rank = children.get(parent, 0)
            children[parent] = rank + 1
            tracks.append(Track(known[key], parent, name, rank, kind))
        return known[key]

    pairs = np.unique(np.stack([ord_, level], axis=1)[level > 0], axis=0).tolist() if len(ord_) else []
    levels: dict[int, list[int]] = {}
    for lane, depth in pairs:
        levels.setdefault(int(lane), []).append(int(depth))
    rows = _arrow(connection, "SELECT * FROM drawn_lane ORDER BY ord").to_pylist()
    lane_track = np.zeros(max(len(rows), 1), dtype=np.int64)
    level_track: dict[tuple[int, int], int] = {}
    cta_track: dict[int, int] = {}
    for row in rows:
        parent = add(("kernel", row["capture"], row["kernel"]), 0, row["kernel"], "kernel")
        if row["launch"] >= 0:
            kind = f" ({row['launch_kind']})" if row["launch_kind"] else ""
            parent = add(("launch", parent, row["launch"]), parent, f"launch {row['launch']}{kind}", "launch")
        elif row["process_id"] >= 0:
            parent = add(("process", parent, row["process_id"]), parent, f"process {row['process_id']}", "process")
        if row["cta"] >= 0:
            if row["sm"] >= 0:
                parent = add(("sm", parent, row["sm"]), parent, f"SM {row['sm']}", "sm")
            parent = add(("cta", parent, row["cta"]), parent, f"CTA {row['cta']}", "cta")
        cta_track[row["ord"]] = parent
        track = add(("lane", row["ord"]), parent, lane_name(row), "lane")
        lane_track[row["ord"]] = track
        for depth in levels.get(row["ord"], []):
            name = f"{lane_name(row)} / overlap {depth}"
            level_track[row["ord"], depth] = add(("level", row["ord"], depth), track, name, "overlap")
    return tracks, lane_track, level_track, cta_track


def lane_name(row: dict[str, Any]) -> str:
    """What a lane is called: its own name, else its role, with the warp where it is known."""
    name = str(row["role"] or row["name"] or "")
    if row["warp"] >= 0:
        return f"{name} warp {row['warp']}".strip()
    if not name:
        return f"thread {row['thread_id']}" if row["thread_id"] >= 0 else f"lane {row['lane']}"
    return name


def _arrows(
    connection: duckdb.DuckDBPyConnection, flows: str, spans: pa.Table, ord_: Array, position: Array,
    lane_track: Array, slices: Slices, base: int, names: _Texts, dropped: dict[str, int],
) -> Flows:  # fmt: skip
    empty = np.zeros(0, dtype=np.int64)
    if flows == "none":
        return Flows(empty, empty, empty, empty, empty.astype(bool), empty)
    found = _arrow(connection, ARROWS % ("TRUE" if flows == "all" else "s.is_binding"))
    key = {"to_ord": ord_, "span": None, "iteration": None, "tick0": None}
    index = pa.table(
        {
            "to_ord": pa.array(key["to_ord"]),
            "span": spans.column("name"),
            "iteration": spans.column("iteration"),
            "tick0": spans.column("tick0"),
            "target": pa.array(position),
        }
    )
    joined = found.join(index, keys=["to_ord", "span", "iteration", "tick0"], join_type="left outer")
    lost = joined.column("target").null_count
    if lost:
        dropped["arrow into a span that is not drawn"] = lost
        joined = joined.filter(pc.is_valid(joined.column("target")))
    joined = joined.sort_by([("from_ord", "ascending"), ("t", "ascending"), ("target", "ascending")])
    target = _ints(joined, "target")
    t = _ints(joined, "t") - base
    late = np.maximum(t - slices.t1[target], 0)
    return Flows(
        track=lane_track[_ints(joined, "from_ord")] if len(t) else empty,
        t=t - late,
        name=names.codes(joined.column("name")),
        target=target,
        binding=joined.column("binding").to_numpy(),
        clamped=late,
    )


def _counters(
    connection: duckdb.DuckDBPyConnection, wanted: bool, tracks: list[Track], cta_track: dict[int, int], base: int
) -> Counters:
    empty = np.zeros(0, dtype=np.int64)
    if not wanted:
        return Counters(empty, empty, empty)
    found = _arrow(connection, f"SELECT ord, state, t, value FROM ({COUNTERS}) WHERE delta <> 0 ORDER BY ord, state, t")
    if found.num_rows == 0:
        return Counters(empty, empty, empty)
    texts = _Texts()
    state = texts.codes(found.column("state"))
    pair = _ints(found, "ord").astype(np.int64) * 4 + state
    keys, inverse = np.unique(pair, return_inverse=True)
    numbers = []
    for key in keys.tolist():
        parent = cta_track[key // 4]
        name = {"stall": "stalled lanes", "active": "active lanes"}[list(texts.known)[key % 4]]
        numbers.append(len(tracks) + 1)
        tracks.append(Track(len(tracks) + 1, parent, name, 1000 + key % 4, "counter"))
    return Counters(np.array(numbers, dtype=np.int64)[inverse], _ints(found, "t") - base, _ints(found, "value"))


def _notes(connection: duckdb.DuckDBPyConnection, axis: str, base: int) -> list[tuple[int, str, str]]:
    notes: list[tuple[int, str, str]] = []
    unit = "ns" if axis == "ns" else "ticks; one tick is drawn as 1 ns; every CTA starts at its own zero"
    for row in _arrow(connection, NOTES).to_pylist():
        facts = {name: str(row[name]) for name in row if name not in ("nth", "perturbation") and row[name]}
        share = row["perturbation"]
        facts["perturbation"] = "unknown: no clean launches" if share is None else f"{share:+.2%}"
        facts["axis"] = unit
        facts["base"] = str(base)
        notes += [(row["nth"], name, text) for name, text in facts.items()]
    return notes
