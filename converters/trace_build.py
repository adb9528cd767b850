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
from wsformat.converters.trace_queries import (
    ARROWS,
    COUNTERS,
    DRAWN,
    LANES,
    MAPPED,
    MARKERS,
    NOTES,
    TICKS,
    UNMAPPED,
    UNTRACKED,
)
from wsformat.errors import BadRequest, WsformatError


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
    # Counted apart from the query that draws: a join that loses a span must not go unseen.
    spans_in = _count(connection, "SELECT COUNT(*) FROM span")
    if untracked:
        spans_in += _count(connection, "SELECT COUNT(*) FROM state_interval WHERE state = 'untracked'")
    if spans.num_rows != spans_in:
        raise WsformatError(
            f"{spans_in} spans, but {spans.num_rows} can be drawn; nothing was written",
            "A span whose lane, capture or clock is not in the bundle: see `wsformat validate`.",
        )
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
        spans_in=spans_in,
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
