"""Arrows of a trace: declared edges that a wait needed, and arrows that the source recorded."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa

from wsformat.converters.trace_model import Array, Flows, Slices
from wsformat.converters.trace_queries import ARROWS, RECORDED


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
    joined = left.join(right, keys=names, join_type="inner")
    found = np.full(left.num_rows, -1, dtype=np.int64)
    found[joined.column("row").to_numpy()] = joined.column("place").to_numpy()
    return found


def arrows(
    connection: duckdb.DuckDBPyConnection,
    which: str,
    slices: Slices,
    ord_: Array,
    lane_track: Array,
    base: int,
    code: object,
    dropped: dict[str, int],
) -> Flows:
    """All arrows, ordered by the track and time of their tails.

    Args:
        connection: with the tables of :mod:`wsformat.converters.trace_queries`.
        which: 'all' declared edges, 'binding' ones only, or 'none' (recorded arrows neither).
        slices: what arrows end in.
        ord_: the drawn lane of each slice.
        lane_track: per drawn lane its track.
        base: time to subtract.
        code: gives the numbers of a column of names.
        dropped: counts what cannot be drawn, by reason.
    """
    empty = np.zeros(0, dtype=np.int64)
    if which == "none":
        return Flows(empty, empty, empty, empty, empty, empty, empty.astype(bool), empty)
    assert callable(code)
    found = connection.sql(ARROWS % ("TRUE" if which == "all" else "s.is_binding")).to_arrow_table()
    waits = np.flatnonzero(slices.wait)
    place = match(
        [found.column("to_ord").to_numpy(), code(found.column("span")), found.column("iteration").to_numpy(),
         found.column("tick0").to_numpy(), found.column("span_id").to_numpy()],
        [column[waits] for column in (ord_, slices.name, slices.iteration, slices.tick0, slices.span_id)],
    )  # fmt: skip
    if (place < 0).any():
        dropped["arrow into a span that is not drawn"] = int((place < 0).sum())
    kept = np.flatnonzero(place >= 0)
    target = waits[place[kept]]
    signals = Flows(
        track=lane_track[found.column("from_ord").to_numpy()[kept]],
        t=found.column("t").to_numpy()[kept] - base,
        head_track=slices.track[target],
        head_t=slices.t1[target],
        name=code(found.column("name"))[kept],
        target=target,
        binding=found.column("binding").to_numpy()[kept],
        clamped=empty,
    )
    parts = [signals, _recorded(connection, slices, lane_track, base, code, dropped)]
    joined = [np.concatenate([getattr(part, name) for part in parts]) for name in Flows.__dataclass_fields__][:-1]
    order = np.lexsort((joined[5], joined[1], joined[0]))
    track, t, head_track, head_t, name, target, binding = (column[order] for column in joined)
    # No viewer draws backwards in time.
    late = np.maximum(t - head_t, 0)
    return Flows(track, t - late, head_track, head_t, name, target, binding, late)


def _recorded(
    connection: duckdb.DuckDBPyConnection,
    slices: Slices,
    lane_track: Array,
    base: int,
    code: object,
    dropped: dict[str, int],
) -> Flows:
    assert callable(code)
    found = connection.sql(RECORDED).to_arrow_table()
    ends = [found.column(name).to_numpy() for name in ("from_ord", "to_ord")]
    lost = (ends[0] < 0) | (ends[1] < 0)
    if lost.any():
        dropped["recorded arrow that lost an end"] = int(lost.sum())
    found = found.filter(~lost)
    stored = np.flatnonzero(slices.span_id >= 0)
    known = [slices.capture[stored], slices.span_id[stored]]
    capture = found.column("capture").to_numpy()
    places = [match([capture, found.column(name).to_numpy()], known) for name in ("from_span_id", "to_span_id")]
    where = []
    for place, end in zip(places, ("from_ord", "to_ord"), strict=True):
        track = lane_track[found.column(end).to_numpy()]
        if len(stored):
            track = np.where(place >= 0, slices.track[stored[place]], track)
        where.append(track)
    target = np.where(places[1] >= 0, stored[places[1]], -1) if len(stored) else places[1]
    return Flows(
        track=where[0],
        t=found.column("from_t").to_numpy() - base,
        head_track=where[1],
        head_t=found.column("to_t").to_numpy() - base,
        name=code(found.column("name")),
        target=target,
        binding=np.zeros(found.num_rows, dtype=bool),
        clamped=np.zeros(0, dtype=np.int64),
    )
