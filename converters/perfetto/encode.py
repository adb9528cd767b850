"""A trace model as native Perfetto protobuf, written in blocks of packets."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from wsformat.converters.perfetto.packing import (
    Array,
    Constant,
    Fixed64,
    Message,
    Varint,
    field_bytes,
    field_varint,
    pack,
)
from wsformat.converters.trace_model import TraceModel

# Field numbers of perfetto/protos (TracePacket, TrackEvent, TrackDescriptor, DebugAnnotation, InternedData).
PACKET = 1
TIMESTAMP, SEQUENCE, FLAGS, TRACK_EVENT, CLOCK_SNAPSHOT, INTERNED, DEFAULTS, DESCRIPTOR = 8, 10, 13, 11, 6, 12, 59, 60
CLOCK_ID = 58
TYPE, UUID, NAME_IID, CATEGORY_IID, ANNOTATION, COUNTER_VALUE, FLOW, TERMINATING_FLOW = 9, 11, 10, 3, 4, 30, 47, 48
BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
SEQ = 1
BOOTTIME = 6
OWN_CLOCK = 128
"""A clock of the trace's own, tied to BOOTTIME at its base: timestamps stay short and exact at any epoch."""
CLEARED, NEEDS = 1, 2
BLOCK = 200_000
ARGUMENTS = ("iteration", "begin_tick", "end_tick", "clock", "error_ns", "incomplete")
EXPLICIT_ORDER = 3
NO_MERGE = 2

Progress = Callable[[str, int, int], None]


def trace(model: TraceModel, *, arguments: bool = True, progress: Progress | None = None) -> Iterator[bytes]:
    """Bytes of the trace, in parts.

    Args:
        model: what to write.
        arguments: ticks, clock and error bound as arguments of every slice; without them only the iteration.
        progress: called with slices done.
    """
    yield _head(model)
    # Packets of one time are taken in the order of the file: tails of arrows come before their heads.
    yield from _arrow_tails(model)
    yield from _slices(model, arguments, progress)
    yield from _arrow_heads(model)
    yield from _instants(model)
    yield from _counters(model)


def _packet(body: bytes) -> bytes:
    return field_bytes(PACKET, body)


def _head(model: TraceModel) -> bytes:
    """Clock, interned names, track descriptors and one instant a capture with its facts."""
    names = [*model.names, "capture"]
    interned = b"".join(field_bytes(2, field_varint(1, i) + field_bytes(2, n)) for i, n in enumerate(names, 1))
    interned += b"".join(
        field_bytes(1, field_varint(1, i) + field_bytes(2, n)) for i, n in enumerate(_categories(model), 1)
    )
    interned += b"".join(field_bytes(3, field_varint(1, i) + field_bytes(2, n)) for i, n in enumerate(ARGUMENTS, 1))
    base = model.base if model.axis == "ns" else 0
    snapshot = field_bytes(1, field_varint(1, BOOTTIME) + field_varint(2, base))
    snapshot += field_bytes(1, field_varint(1, OWN_CLOCK) + field_varint(2, 0))
    first = field_varint(SEQUENCE, SEQ) + field_varint(FLAGS, CLEARED | NEEDS) + field_bytes(CLOCK_SNAPSHOT, snapshot)
    parts = [
        _packet(first),
        _packet(
            field_varint(SEQUENCE, SEQ)
            + field_varint(FLAGS, NEEDS)
            + field_bytes(DEFAULTS, field_varint(CLOCK_ID, OWN_CLOCK))
            + field_bytes(INTERNED, interned)
        ),
    ]
    for track in model.tracks:
        body = field_varint(1, track.track) + field_bytes(2, track.name or " ")
        if track.parent:
            body += field_varint(5, track.parent)
        body += field_varint(11, EXPLICIT_ORDER) + field_varint(12, track.rank) + field_varint(15, NO_MERGE)
        if track.kind == "counter":
            body += field_bytes(8, b"")
        parts.append(_packet(field_varint(SEQUENCE, SEQ) + field_bytes(DESCRIPTOR, body)))
    roots = [track.track for track in model.tracks if track.parent == 0]
    for number, root in enumerate(roots):
        facts = [(key, text) for capture, key, text in model.notes if capture == number] or [
            (key, text) for _, key, text in model.notes
        ]
        body = field_varint(TYPE, INSTANT) + field_varint(UUID, root) + field_varint(NAME_IID, len(names))
        for key, text in facts:
            body += field_bytes(ANNOTATION, field_bytes(10, key) + field_bytes(6, text))
        parts.append(_event_packet(0, body))
    return b"".join(parts)


def _event_packet(t: int, body: bytes) -> bytes:
    head = field_varint(TIMESTAMP, t) + field_varint(SEQUENCE, SEQ) + field_varint(FLAGS, NEEDS)
    return _packet(head + field_bytes(TRACK_EVENT, body))


def _categories(model: TraceModel) -> list[str]:
    return [*model.categories, "marker", "signal", "binding", "released"]


def event_order(track: Array, t0: Array, t1: Array) -> tuple[Array, Array]:
    """Order of begins and ends in the file: (row, is_end) so that slices of one track nest.

    At equal times on a track ends come first, inner before outer; a slice of no length ends right after it begins.
    Rows are in order (track, t0, -t1).
    """
    rows = np.arange(len(t0))
    row = np.concatenate([rows, rows])
    is_end = np.concatenate([np.zeros(len(rows), dtype=bool), np.ones(len(rows), dtype=bool)])
    empty = (t1 == t0)[row]
    t = np.concatenate([t0, t1])
    early = is_end & ~empty
    # Ends of slices that have length go first, the last begun first; then begins, each empty one with its end.
    rank = np.where(early, -row - 1, 2 * row + is_end)
    order = np.lexsort((rank, t, track[row]))
    return row[order], is_end[order]


def _slices(model: TraceModel, arguments: bool, progress: Progress | None) -> Iterator[bytes]:
    slices = model.slices
    ends_flow = _flows_by_target(model)
    row, is_end = event_order(slices.track, slices.t0, slices.t1)
    for start in range(0, len(row), BLOCK):
        part, ends = row[start : start + BLOCK], is_end[start : start + BLOCK]
        rows = len(part)
        begins = ~ends
        parts: list[Constant | Varint | Fixed64 | Message] = [
            Constant(field_varint(TYPE, BEGIN), rows, begins),
            Constant(field_varint(TYPE, END), rows, ends),
            Varint(UUID, slices.track[part]),
            Varint(NAME_IID, slices.name[part] + 1, begins),
            Varint(CATEGORY_IID, slices.category[part] + 1, begins),
        ]
        iteration = slices.iteration[part]
        parts.append(_annotation(1, iteration, begins & (iteration >= 0)))
        if arguments:
            parts.append(_annotation(2, slices.tick0[part], begins))
            parts.append(_annotation(3, slices.tick1[part], begins))
            parts.append(_annotation(4, slices.clock[part], begins))
            error = slices.error_ns[part]
            known = begins & ~np.isnan(error)
            parts.append(_annotation(5, np.where(known, np.ceil(np.nan_to_num(error)), 0).astype(np.int64), known))
        parts.append(_annotation(6, np.ones(rows, dtype=np.int64), begins & ~slices.complete[part]))
        for flow in ends_flow:
            number = flow[part]
            parts.append(Fixed64(TERMINATING_FLOW, number + 1, begins & (number >= 0)))
        t = np.where(ends, slices.t1[part], slices.t0[part])
        yield _packets(t, parts, needs=begins)
        if progress is not None:
            progress("slices", min(start + BLOCK, len(row)) // 2, len(slices))


def _annotation(iid: int, values: Array, mask: Array) -> Message:
    """One integer argument of the rows of the mask."""
    rows = len(values)
    return Message(ANNOTATION, [Constant(field_varint(1, iid), rows, mask), Varint(4, values, mask)], mask)


def _packets(t: Array, event: list[Constant | Varint | Fixed64 | Message], needs: Array | None = None) -> bytes:
    rows = len(t)
    if rows == 0:
        return b""
    packet = [
        Varint(TIMESTAMP, t),
        Constant(field_varint(SEQUENCE, SEQ), rows),
        Constant(field_varint(FLAGS, NEEDS), rows, needs),
        Message(TRACK_EVENT, event),
    ]
    return pack(Message(PACKET, packet))


def _late(model: TraceModel) -> Array:
    """Arrows whose signal came after the wait began.

    trace_processor turns an arrow round when its head's slice starts before its tail's, so these end in an instant at
    the end of the wait, which is also where the arrow belongs in the picture; the others end in the wait itself.
    """
    flows = model.flows
    return flows.t > model.slices.t0[flows.target]


def _flows_by_target(model: TraceModel) -> list[Array]:
    """Per slice the arrows that end in it: as many columns as the slice with most arrows has, -1 for none."""
    early = np.flatnonzero(~_late(model))
    target = model.flows.target[early]
    columns: list[Array] = []
    if len(target) == 0:
        return columns
    order = early[np.argsort(target, kind="stable")]
    sorted_target = model.flows.target[order]
    first = np.searchsorted(sorted_target, sorted_target, side="left")
    nth = np.arange(len(order)) - first
    for index in range(int(nth.max()) + 1):
        column = np.full(len(model.slices), -1, dtype=np.int64)
        chosen = nth == index
        column[sorted_target[chosen]] = order[chosen]
        columns.append(column)
    return columns


def _instants(model: TraceModel) -> Iterator[bytes]:
    marks = model.instants
    category = len(model.categories) + 1
    for start in range(0, len(marks.t), BLOCK):
        part = slice(start, start + BLOCK)
        rows = len(marks.t[part])
        iteration = marks.iteration[part]
        yield _packets(
            marks.t[part],
            [
                Constant(field_varint(TYPE, INSTANT), rows),
                Varint(UUID, marks.track[part]),
                Varint(NAME_IID, marks.name[part] + 1),
                Constant(field_varint(CATEGORY_IID, category), rows),
                _annotation(1, iteration, iteration >= 0),
            ],
        )


def _arrow_tails(model: TraceModel) -> Iterator[bytes]:
    """An instant at every signal, where its arrow begins."""
    flows = model.flows
    signal, binding = len(model.categories) + 2, len(model.categories) + 3
    for start in range(0, len(flows.t), BLOCK):
        part = slice(start, start + BLOCK)
        rows = len(flows.t[part])
        number = np.arange(start, start + rows, dtype=np.int64)
        yield _packets(
            flows.t[part],
            [
                Constant(field_varint(TYPE, INSTANT), rows),
                Varint(UUID, flows.track[part]),
                Varint(NAME_IID, flows.name[part] + 1),
                Varint(CATEGORY_IID, np.where(flows.binding[part], binding, signal)),
                Fixed64(FLOW, number + 1),
            ],
        )


def _arrow_heads(model: TraceModel) -> Iterator[bytes]:
    """An instant at the end of every wait that began before its signal."""
    number = np.flatnonzero(_late(model))
    category = len(model.categories) + 4
    for start in range(0, len(number), BLOCK):
        part = number[start : start + BLOCK]
        target = model.flows.target[part]
        rows = len(part)
        yield _packets(
            model.slices.t1[target],
            [
                Constant(field_varint(TYPE, INSTANT), rows),
                Varint(UUID, model.slices.track[target]),
                Varint(NAME_IID, model.flows.name[part] + 1),
                Constant(field_varint(CATEGORY_IID, category), rows),
                Fixed64(TERMINATING_FLOW, part + 1),
            ],
        )


def _counters(model: TraceModel) -> Iterator[bytes]:
    counters = model.counters
    for start in range(0, len(counters.t), BLOCK):
        part = slice(start, start + BLOCK)
        rows = len(counters.t[part])
        yield _packets(
            counters.t[part],
            [
                Constant(field_varint(TYPE, COUNTER), rows),
                Varint(UUID, counters.track[part]),
                Varint(COUNTER_VALUE, counters.value[part]),
            ],
        )
