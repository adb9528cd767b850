"""A trace model as native Perfetto protobuf, written in blocks of packets."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from wsformat.converters.perfetto.packing import (
    Array,
    Constant,
    Fixed64,
    Message,
    Part,
    Texts,
    Varint,
    field_bytes,
    field_varint,
    pack,
)
from wsformat.converters.trace_model import TraceModel

# Field numbers of perfetto/protos (TracePacket, TrackEvent, TrackDescriptor, DebugAnnotation, InternedData).
PACKET = 1
TIMESTAMP, SEQUENCE, FLAGS, TRACK_EVENT, CLOCK_SNAPSHOT, INTERNED, DEFAULTS, DESCRIPTOR = 8, 10, 13, 11, 6, 12, 59, 60
CLOCK_ID, EVENT_DEFAULTS = 58, 11
TYPE, UUID, NAME_IID, CATEGORY_IID, ANNOTATION, FLOW, TERMINATING_FLOW = 9, 11, 10, 3, 4, 47, 48
COUNTER_VALUE, DOUBLE_VALUE = 30, 44
BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
SEQ = 1
BOOTTIME = 6
OWN_CLOCK = 128
"""A clock of the trace's own, tied to BOOTTIME at its base: timestamps stay short and exact at any epoch."""
CLEARED, NEEDS = 1, 2
BLOCK = 200_000
ARGUMENTS = ("iteration", "begin_tick", "end_tick", "clock", "error_ns", "incomplete", "payload")
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
    for root in [track for track in model.tracks if track.parent == 0]:
        facts = [(key, text) for capture, key, text in model.notes if capture == root.capture]
        body = field_varint(TYPE, INSTANT) + field_varint(UUID, root.track) + field_varint(NAME_IID, len(names))
        for key, text in facts:
            body += field_bytes(ANNOTATION, field_bytes(10, key) + field_bytes(6, text))
        parts.append(_event_packet(0, body))
    return b"".join(parts)


def _event_packet(t: int, body: bytes) -> bytes:
    head = field_varint(TIMESTAMP, t) + field_varint(SEQUENCE, SEQ) + field_varint(FLAGS, NEEDS)
    return _packet(head + field_bytes(TRACK_EVENT, body))


def _categories(model: TraceModel) -> list[str]:
    return [*model.categories, "marker", "signal", "binding", "released"]


def passes(t0: Array, t1: Array) -> Iterator[tuple[Array, str]]:
    """Rows of a block and what to write of them, so that slices of one track nest when a reader sorts by time.

    A reader keeps the order of the file where times are equal, and an end closes the slice that was opened last.
    So ends go before begins, and a slice without length is written whole, after those that begin with it.
    Rows are in order (track, t0, -t1); blocks of such rows can follow each other.
    """
    empty = t0 == t1
    long = np.flatnonzero(~empty)
    yield long, "end"
    yield long, "begin"
    yield np.flatnonzero(empty), "both"


def _slices(model: TraceModel, arguments: bool, progress: Progress | None) -> Iterator[bytes]:
    slices = model.slices
    ends_flow = _flows_by_target(model)
    for start in range(0, len(slices), BLOCK):
        stop = min(start + BLOCK, len(slices))
        for rows, what in passes(slices.t0[start:stop], slices.t1[start:stop]):
            part = rows + start
            if len(part) == 0:
                continue
            track = slices.track[part]
            end = _packet_rows(slices.t1[part], [Constant(field_varint(TYPE, END), len(part))], interned=False)
            if what == "end":
                yield pack(_track_defaults(track), end)
                continue
            begin = _packet_rows(slices.t0[part], _begin(model, part, arguments, ends_flow))
            yield pack(_track_defaults(track), begin, *([end] if what == "both" else []))
        if progress is not None:
            progress("slices", stop, len(slices))


def _begin(model: TraceModel, part: Array, arguments: bool, ends_flow: list[Array]) -> list[Part]:
    slices, rows = model.slices, len(part)
    iteration, complete = slices.iteration[part], slices.complete[part]
    parts: list[Part] = [
        Constant(field_varint(TYPE, BEGIN), rows),
        Varint(NAME_IID, slices.name[part] + 1),
        Varint(CATEGORY_IID, slices.category[part] + 1),
    ]
    if (iteration >= 0).any():
        parts.append(_annotation(1, iteration, iteration >= 0))
    if arguments:
        parts += [_annotation(2, slices.tick0[part]), _annotation(3, slices.tick1[part])]
        parts.append(_annotation(4, slices.clock[part]))
        error = slices.error_ns[part]
        known = ~np.isnan(error)
        if known.any():
            parts.append(_annotation(5, np.where(known, np.ceil(np.nan_to_num(error)), 0).astype(np.int64), known))
    if not complete.all():
        parts.append(_annotation(6, np.ones(rows, dtype=np.int64), ~complete))
    for flow in ends_flow:
        number = flow[part]
        if (number >= 0).any():
            parts.append(Fixed64(TERMINATING_FLOW, number + 1, number >= 0))
    return parts


def _annotation(iid: int, values: Array, mask: Array | None = None) -> Message:
    """One integer argument of the rows of the mask."""
    name = Constant(field_varint(1, iid), len(values), mask)
    return Message(ANNOTATION, [name, Varint(4, values, mask)], mask)


def _track_defaults(track: Array) -> Message:
    """Before the first event of every run of one track: that its events, and all to come, are on that track."""
    first = np.ones(len(track), dtype=bool)
    first[1:] = track[1:] != track[:-1]
    fixed = field_varint(SEQUENCE, SEQ) + field_varint(FLAGS, NEEDS)
    event = Message(EVENT_DEFAULTS, [Varint(UUID, track, first)], first)
    clock = Constant(field_varint(CLOCK_ID, OWN_CLOCK), len(track), first)
    return Message(PACKET, [Constant(fixed, len(track), first), Message(DEFAULTS, [clock, event], first)], first)


def _packet_rows(t: Array, event: list[Part], *, interned: bool = True) -> Message:
    fixed = field_varint(SEQUENCE, SEQ) + (field_varint(FLAGS, NEEDS) if interned else b"")
    return Message(PACKET, [Varint(TIMESTAMP, t), Constant(fixed, len(t)), Message(TRACK_EVENT, event)])


def _packets(t: Array, track: Array, event: list[Part], *, interned: bool = True) -> bytes:
    return pack(_track_defaults(track), _packet_rows(t, event, interned=interned)) if len(t) else b""


def _late(model: TraceModel) -> Array:
    """Arrows whose signal came after the wait began.

    trace_processor turns an arrow round when its head's slice starts before its tail's, so these end in an instant at
    the end of the wait, which is also where the arrow belongs in the picture; the others end in the wait itself.
    """
    flows = model.flows
    late = flows.target < 0
    known = np.flatnonzero(~late)
    late[known] = flows.t[known] > model.slices.t0[flows.target[known]]
    return late


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
            marks.track[part],
            [
                Constant(field_varint(TYPE, INSTANT), rows),
                Varint(NAME_IID, marks.name[part] + 1),
                Constant(field_varint(CATEGORY_IID, category), rows),
                _annotation(1, iteration, iteration >= 0),
                *_payload(marks.payload[part]),
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
            flows.track[part],
            [
                Constant(field_varint(TYPE, INSTANT), rows),
                Varint(NAME_IID, flows.name[part] + 1),
                Varint(CATEGORY_IID, np.where(flows.binding[part], binding, signal)),
                Fixed64(FLOW, number + 1),
            ],
        )


def _arrow_heads(model: TraceModel) -> Iterator[bytes]:
    """An instant at the end of every wait that began before its signal, and where an arrow ends in no slice."""
    number = np.flatnonzero(_late(model))
    number = number[np.argsort(model.flows.head_track[number], kind="stable")]
    category = len(model.categories) + 4
    for start in range(0, len(number), BLOCK):
        part = number[start : start + BLOCK]
        rows = len(part)
        yield _packets(
            model.flows.head_t[part],
            model.flows.head_track[part],
            [
                Constant(field_varint(TYPE, INSTANT), rows),
                Varint(NAME_IID, model.flows.name[part] + 1),
                Constant(field_varint(CATEGORY_IID, category), rows),
                Fixed64(TERMINATING_FLOW, part + 1),
            ],
        )


def _counters(model: TraceModel) -> Iterator[bytes]:
    counters = model.counters
    for start in range(0, len(counters.t), BLOCK):
        part = slice(start, start + BLOCK)
        value = counters.value[part]
        whole = np.abs(value) < 2**53
        whole &= np.floor(value) == value
        event: list[Part] = [Constant(field_varint(TYPE, COUNTER), len(value))]
        event.append(Varint(COUNTER_VALUE, np.where(whole, value, 0).astype(np.int64), whole))
        if not whole.all():
            event.append(Fixed64(DOUBLE_VALUE, value, ~whole))
        yield _packets(counters.t[part], counters.track[part], event, interned=False)


def _payload(texts: pa.Array) -> list[Part]:
    """The value that was recorded with a stamp, as an argument: the text as it is, exact."""
    plain = texts.to_pylist() if len(texts) else []
    given = np.array([bool(text) for text in plain], dtype=bool)
    if not given.any():
        return []
    name = Constant(field_varint(1, ARGUMENTS.index("payload") + 1), len(given), given)
    return [Message(ANNOTATION, [name, Texts(6, plain, given)], given)]
