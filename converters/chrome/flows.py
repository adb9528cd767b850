"""Arrows of a Chrome trace, of both versions: s/t/f events, and bind_id on spans."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wsformat.converters.chrome.converted import Converted
from wsformat.converters.lane_order import groups
from wsformat.converters.pairing import Enclosing, arrows
from wsformat.converters.recording import Array, Edges, Spans


def add_edges(done: Converted) -> None:
    """Add the arrows to the recording; one whose other end is missing is kept with -1 there."""
    events, t, spans = done.trace.events, done.t, done.recording.spans
    texts = pa.array(done.trace.ids.texts(), pa.string())
    parts: list[Edges] = []
    rows = events.of_phase(b"stf")
    if rows.size:
        noted = int((events.args.number(rows) >= 0).sum())
        if noted:
            done.notes.append(f"Arguments of arrows, not kept: {noted}.")
        kind = np.select([events.phase[rows] == ord("s"), events.phase[rows] == ord("t")], [0, 1], 2)
        process = np.array([p for p, _ in done.trace.lanes], np.int64)[events.lane[rows]]
        local = np.where(events.id_scope[rows] > 0, process, -2)
        key = np.stack([events.category[rows], events.name[rows], events.id[rows], local])
        group = np.unique(key, axis=1, return_inverse=True)[1].reshape(-1)
        order = np.empty(rows.size, np.int64)
        order[np.lexsort((np.arange(rows.size), t[rows]))] = np.arange(rows.size)
        tail, head = arrows(group, order, kind)
        lane = events.lane[rows].astype(np.int64)
        inner, ahead = _around(spans, lane, t[rows], len(done.trace.lanes))
        late = (kind == 2) & (events.next_binding[rows] > 0) & (ahead >= 0)
        bound = np.where(late, ahead, inner)
        label = np.where(events.category[rows] >= 0, events.category[rows], events.name[rows])
        parts.append(_joined(tail, head, label, events.id[rows], texts, lane, bound, t[rows]))
    bound_rows = events.bind.rows[events.bind.values >= 0]
    spans_bound = np.flatnonzero(np.isin(done.span_row, bound_rows)) if bound_rows.size else bound_rows
    flow = events.flow[done.span_row[spans_bound]]
    if (flow == 0).any():
        done.trace.losses["bind_id without flow_in or flow_out"] = int((flow == 0).sum())
    spans_bound, flow = spans_bound[flow > 0], flow[flow > 0]
    if spans_bound.size:
        kind = np.select([flow == 2, flow == 3], [0, 1], 2)
        row = done.span_row[spans_bound]
        order = np.empty(row.size, np.int64)
        order[np.lexsort((np.arange(row.size), t[row]))] = np.arange(row.size)
        tail, head = arrows(events.bind[row], order, kind)
        label = np.where(events.category[row] >= 0, events.category[row], events.name[row])
        lane = events.lane[row].astype(np.int64)
        parts.append(_joined(tail, head, label, events.bind[row], texts, lane, spans_bound, t[row]))
    if parts:
        done.recording.edges = Edges(
            **{
                name: pa.concat_arrays([getattr(part, name) for part in parts])
                if name == "native_id"
                else np.concatenate([getattr(part, name) for part in parts])
                for name in Edges.__dataclass_fields__
            }
        )
        edges = done.recording.edges
        lost = int((edges.from_lane < 0).sum()), int((edges.to_lane < 0).sum())
        if any(lost):
            done.notes.append(
                f"Arrows without a tail: {lost[0]}, without a head: {lost[1]}; kept with the end that is there."
            )
            done.orphans += sum(lost)


def _around(spans: Spans, lane: Array, t: Array, lanes: int) -> tuple[Array, Array]:
    """Of moments the innermost span that holds each, and the next one to begin (-1 none); a few lanes at a time."""
    inner, ahead = np.full(len(lane), -1, np.int64), np.full(len(lane), -1, np.int64)
    asked = np.zeros(lanes, bool)
    asked[lane] = True
    closed = np.flatnonzero(spans.complete & asked[spans.lane]).astype(np.int32)
    closed = closed[np.argsort(spans.lane[closed], kind="stable")]
    rows = np.argsort(lane, kind="stable")
    for begin, end in groups(spans.lane[closed], lanes):
        held = closed[begin:end]
        first, last = spans.lane[held[0]], spans.lane[held[-1]]
        mine = rows[np.searchsorted(lane, first, "left", rows) : np.searchsorted(lane, last, "right", rows)]
        if mine.size:
            within = Enclosing(spans.lane[held].astype(np.int64), spans.t0[held], spans.t1[held])
            for found, result in ((within.find, inner), (within.next, ahead)):
                place = found(lane[mine], t[mine])
                result[mine] = np.where(place >= 0, held[place], -1)
    return inner, ahead


def _joined(
    tail: Array, head: Array, label: Array, ids: Array, texts: pa.Array, lane: Array, span: Array, t: Array
) -> Edges:
    either = np.where(tail >= 0, tail, head)

    def at(values: Array, entry: Array) -> Array:
        result: Array = np.where(entry >= 0, values[entry], -1)
        return result

    number = ids[either].astype(np.int64)
    native = texts.take(pa.array(np.maximum(number, 0))) if len(texts) else pa.repeat("", len(number))
    return Edges(
        kind=label[either].astype(np.int64),
        native_id=pc.if_else(pa.array(number >= 0), native, pa.scalar("")),
        from_lane=at(lane, tail), from_span=at(span, tail), from_t=at(t, tail),
        to_lane=at(lane, head), to_span=at(span, head), to_t=at(t, head),
    )  # fmt: skip
