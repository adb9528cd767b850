"""Spans, events and edges of a recording as rows of the standard's tables; what is large is made part by part."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from wsformat.converters.lane_order import in_order, ordinals
from wsformat.converters.recording import Array, Recording, Row
from wsformat.tables import rows_to_table

PART = 1 << 17
WHOLE = 1 << 19
"""Tables of at most this many rows are made at once."""


def span_table(recording: Recording, number: Array, lanes: Sequence[Row], capture: str) -> tuple[Any, Array]:
    """The table spans, and the span_id of each of the recording's spans (-1 of -1)."""
    spans = recording.spans
    if not len(spans):
        return rows_to_table("spans", []), np.full(1, -1, np.int32)
    lane, t1 = number[spans.lane], spans.t1
    if not spans.complete.all():
        last = np.full(len(lanes), -1, np.int64)
        np.maximum.at(last, lane, spans.t0)
        np.maximum.at(last, number[spans.end_lane[spans.complete]], t1[spans.complete])
        if len(recording.instants):
            np.maximum.at(last, number[recording.instants.lane], recording.instants.t)
        t1 = np.where(spans.complete, t1, last[lane])
    order = in_order(lane, len(lanes), spans.t0, t1)
    iteration = ordinals(order, lane, len(lanes), spans.name)
    place = np.full(len(spans) + 1, -1, np.int32)
    place[order] = np.arange(len(spans))
    repeated = _repeated(lanes)

    def part(begin: int, end: int) -> pa.Table:
        rows = order[begin:end]
        return pa.table(
            {
                **repeated(capture, lane[rows]),
                "span_id": np.arange(begin, end),
                "end_lane": number[spans.end_lane[rows]],
                "span": texts(recording.names, spans.name[rows]),
                "tile": np.zeros(len(rows), np.int32),
                "iteration": iteration[begin:end],
                "t0": spans.t0[rows],
                "t1": t1[rows],
                "complete": spans.complete[rows],
                "category": texts(recording.names, spans.category[rows]),
            }
        )

    return _in_parts(len(spans), part), place


def event_table(recording: Recording, number: Array, lanes: Sequence[Row], capture: str) -> Any:
    """The table events."""
    events = recording.instants
    if not len(events):
        return rows_to_table("events", [])
    lane = number[events.lane]
    order = in_order(lane, len(lanes), events.t)
    iteration = ordinals(order, lane, len(lanes), events.name)
    repeated = _repeated(lanes)

    def part(begin: int, end: int) -> pa.Table:
        rows = order[begin:end]
        payload = pa.repeat("", len(rows)) if events.payload is None else events.payload.take(pa.array(rows))
        return pa.table(
            {
                **repeated(capture, lane[rows]),
                "event": texts(recording.names, events.name[rows]),
                "tile": np.zeros(len(rows), np.int32),
                "iteration": iteration[begin:end],
                "t": events.t[rows],
                "payload": payload,
            }
        )

    return _in_parts(len(events), part)


def edge_table(recording: Recording, number: Array, place: Array, capture: str) -> Any:
    """The table edges.

    Args:
        recording: with its edges.
        number: the table's lane of each of the recording's; the last entry stands for -1.
        place: the span_id of each span; the last entry stands for -1.
        capture: capture_id.
    """
    edges = recording.edges
    if not len(edges):
        return rows_to_table("edges", [])

    def part(begin: int, end: int) -> pa.Table:
        mine = slice(begin, end)
        return pa.table(
            {
                "capture_id": pa.repeat(capture, end - begin),
                "edge_id": np.arange(begin, end),
                "kind": texts(recording.names, edges.kind[mine]),
                "native_id": edges.native_id[mine],
                "from_lane": number[edges.from_lane[mine]],
                "from_span_id": place[edges.from_span[mine]].astype(np.int64),
                "from_t": edges.from_t[mine],
                "to_lane": number[edges.to_lane[mine]],
                "to_span_id": place[edges.to_span[mine]].astype(np.int64),
                "to_t": edges.to_t[mine],
            }
        )

    return _in_parts(len(edges), part)


def _in_parts(rows: int, part: Callable[[int, int], pa.Table]) -> Any:
    """A table when it is small, else a function that gives it part by part."""
    if rows <= WHOLE:
        return part(0, rows)

    def batches() -> Iterator[pa.Table]:
        for begin in range(0, rows, PART):
            yield part(begin, min(begin + PART, rows))

    return batches


def _repeated(lanes: Sequence[Row]) -> Callable[[str, Array], dict[str, Any]]:
    """Columns of events and spans that repeat what the lane says."""
    values = {
        name: np.array([row.get(name, -1) for row in lanes], np.int32)
        for name in ("launch", "cta", "sm", "warp", "clock")
    }
    roles = [row["role"] for row in lanes]

    def columns(capture: str, lane: Array) -> dict[str, Any]:
        found: dict[str, Any] = {"capture_id": pa.repeat(capture, len(lane)), "lane": lane.astype(np.int32)}
        found |= {name: column[lane] for name, column in values.items()}
        return found | {"role": texts(roles, lane)}

    return columns


def texts(pool: Sequence[str], codes: Array) -> pa.Array:
    """Texts of a pool by code; -1 is ''."""
    if not len(codes):
        return pa.array([], pa.string())
    used, inverse = np.unique(codes, return_inverse=True)
    entries = pa.array([pool[code] if code >= 0 else "" for code in used.tolist()], pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(inverse.reshape(-1).astype(np.int32)), entries)
