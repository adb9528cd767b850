"""Builds the trace model of a bundle: the queries, and how rows become tracks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wsformat.bundle import Bundle
from wsformat.converters.trace_arrows import arrows
from wsformat.converters.trace_counters import counters as count_lanes
from wsformat.converters.trace_model import (
    Array,
    Counters,
    Instants,
    Slices,
    TraceModel,
    as_flag,
    report,
    save,
    split_overlaps,
)
from wsformat.converters.trace_queries import (
    DRAWN,
    HIDDEN_PAYLOADS,
    LANES,
    MAPPED,
    MARKERS,
    NOTES,
    TICKS,
    UNMAPPED,
    UNTRACKED,
)
from wsformat.converters.trace_tracks import tree
from wsformat.errors import BadRequest, WsformatError

NO_PLACE = ("predictions", "metrics", "rules", "findings", "attributes")


EXPORT_OPTIONS = {
    "flows": "export: arrows: all declared edges (all), binding ones only (binding), or none; default all",
    "arguments": "export: full: ticks, clock and error bound with every slice; lean: only the iteration; default full",
    "untracked": "export: true: also draw intervals that are not instrumented; default false",
    "counters": "export: false: no counters of active and stalled lanes; default true",
    "progress": "function called with (what, done, total)",
}
"""Options that every trace writer has."""


def export(
    bundle: Bundle, path: Path, options: Mapping[str, Any], encode: Callable[..., Iterable[bytes]]
) -> dict[str, Any]:
    """Write a bundle as a trace, atomically, and report what went in.

    Args:
        bundle: any bundle with stamps or spans.
        path: the file; packed when its name ends in .gz.
        options: see EXPORT_OPTIONS.
        encode: from the model to bytes, with the keywords ``arguments`` and ``progress``.

    Raises:
        BadRequest: nothing to draw, or an option with a value that it does not have.
    """
    model = build(
        bundle,
        flows=str(options.get("flows", "all")),
        untracked=as_flag(options.get("untracked", False)),
        counters=as_flag(options.get("counters", True)),
    )
    full = str(options.get("arguments", "full")) != "lean"
    save(path, encode(model, arguments=full, progress=options.get("progress")))
    return report(model, path)


def build(bundle: Bundle, *, flows: str = "all", untracked: bool = False, counters: bool = True) -> TraceModel:
    """Collect the model of a bundle.

    Args:
        bundle: any bundle with stamps or spans.
        flows: 'all' declared edges, 'binding' ones only, or 'none'.
        untracked: also give untracked intervals as slices of category 'untracked'.
        counters: also count active and stalled lanes per CTA over time, and draw series of values.

    Raises:
        BadRequest: nothing to draw, or an option that does not exist.
    """
    if flows not in ("all", "binding", "none"):
        raise BadRequest(f"no such choice of arrows: {flows!r}", "Choose all, binding or none.")
    with bundle.duckdb(materialise=["span"]) as connection:
        connection.execute(
            "CREATE TEMP TABLE numbered_capture AS SELECT *, "
            "CAST(ROW_NUMBER() OVER (ORDER BY capture_id) - 1 AS INTEGER) AS nth FROM captures"
        )
        connection.execute(LANES)
        connection.execute(MAPPED)
        axis = "ns" if _count(connection, UNMAPPED) == 0 else "tick"
        if axis == "tick":
            connection.execute(TICKS)
        return _assemble(bundle, connection, axis, flows, untracked, counters)


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
    bundle: Bundle, connection: duckdb.DuckDBPyConnection, axis: str, flows: str, untracked: bool, counters: bool
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
    tracks, lane_track, level_track, cta_track = tree(connection, ord_, level)
    track = np.where(level == 0, lane_track[ord_], 0).astype(np.int64)
    extra = np.flatnonzero(level)
    track[extra] = [level_track[key] for key in zip(ord_[extra].tolist(), level[extra].tolist(), strict=True)]
    # Levels were split off, so order again by track; inside a track the order by (t0, -t1) holds.
    order = np.argsort(track, kind="stable")
    category = categories.codes(spans.column("category"))
    slices = Slices(
        track=track[order],
        t0=t0[order] - base,
        t1=t1[order] - base,
        name=names.codes(spans.column("name"))[order],
        category=category[order],
        iteration=_ints(spans, "iteration")[order],
        tick0=_ints(spans, "tick0")[order],
        tick1=_ints(spans, "tick1")[order],
        clock=_ints(spans, "clock")[order],
        error_ns=spans.column("error_ns").to_numpy().astype(np.float64)[order],
        complete=spans.column("complete").to_numpy()[order],
        span_id=_ints(spans, "span_id")[order],
        capture=np.array([track.capture for track in tracks], dtype=np.int64)[track[order] - 1],
        wait=category[order] == categories.code("stall"),
    )
    instants = Instants(
        track=lane_track[_ints(marks, "ord")] if marks.num_rows else np.zeros(0, dtype=np.int64),
        t=_ints(marks, "t") - base,
        name=names.codes(marks.column("name")),
        iteration=_ints(marks, "iteration"),
        payload=marks.column("payload").combine_chunks(),
    )
    dropped: dict[str, int] = {}
    flows_found = arrows(connection, flows, slices, ord_[order], lane_track, base, names.codes, dropped)
    empty = np.zeros(0, dtype=np.int64)
    steps = Counters(empty, empty, empty.astype(np.float64))
    if counters:
        steps = count_lanes(connection, tracks, lane_track, cta_track, base, dropped)
    hidden = _count(connection, HIDDEN_PAYLOADS)
    if hidden:
        dropped["text recorded with a stamp that begins or ends a span"] = hidden
    return TraceModel(
        axis=axis,
        base=base,
        tracks=tracks,
        names=list(names.known),
        categories=list(categories.known),
        slices=slices,
        instants=instants,
        flows=flows_found,
        counters=steps,
        notes=_notes(connection, axis, base),
        spans_in=spans_in,
        clamped=int((flows_found.clamped > 0).sum()),
        dropped=dropped,
        left_out={table: rows for table in NO_PLACE if (rows := bundle.rows(table))},
    )


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
