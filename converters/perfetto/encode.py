"""A trace as native Perfetto protobuf, written in blocks of packets."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from wsformat.converters.perfetto.packing import (
    Array,
    Column,
    Constant,
    Fixed64,
    Message,
    Texts,
    Varint,
    field_bytes,
    field_varint,
    pack,
)
from wsformat.converters.trace_model import ArrowEnds, Counters, Facts, Instants, Part, Slices, Trace, Track

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
ARGUMENTS = (
    "iteration", "begin_tick", "end_tick", "clock", "error_ns", "incomplete", "payload", "tile", "wander_ns",
    "verdict", "blocked_ticks", "producer", "producer_iteration",
)  # fmt: skip
OWN_CATEGORIES = ("marker", "signal", "binding", "released")
CAPTURE_IID = 1
STRING_IID = 17
EXPLICIT_ORDER = 3
NO_MERGE = 2


def trace(model: Trace, *, arguments: bool = True) -> Iterator[bytes]:
    """Bytes of the trace, in parts.

    Args:
        model: what to write; its count of slices is brought up to date.
        arguments: ticks, clock, bounds and verdicts as arguments of every slice; without them only the iteration.
    """
    writer = _Writer(model, arguments)
    yield _head(model)
    for part in model.parts:
        yield from writer.names()
        yield from writer.part(part)


def _packet(body: bytes) -> bytes:
    return field_bytes(PACKET, body)


def _head(model: Trace) -> bytes:
    """The clock, and the names that never change."""
    interned = b"".join(field_bytes(1, _named(i, n)) for i, n in enumerate(OWN_CATEGORIES, 1))
    interned += b"".join(field_bytes(3, _named(i, n)) for i, n in enumerate(ARGUMENTS, 1))
    interned += field_bytes(2, _named(CAPTURE_IID, "capture"))
    # Times before 1970 do not exist in the format: such a trace begins at 0, and says so.
    base = max(model.base, 0) if model.axis == "ns" else 0
    snapshot = field_bytes(1, field_varint(1, BOOTTIME) + field_varint(2, base))
    snapshot += field_bytes(1, field_varint(1, OWN_CLOCK) + field_varint(2, 0))
    first = field_varint(SEQUENCE, SEQ) + field_varint(FLAGS, CLEARED | NEEDS) + field_bytes(CLOCK_SNAPSHOT, snapshot)
    defaults = field_bytes(DEFAULTS, field_varint(CLOCK_ID, OWN_CLOCK)) + field_bytes(INTERNED, interned)
    return _packet(first) + _own_packet(defaults)


def _named(iid: int, text: str) -> bytes:
    return field_varint(1, iid) + field_bytes(2, text)


def _own_packet(body: bytes) -> bytes:
    return _packet(field_varint(SEQUENCE, SEQ) + field_varint(FLAGS, NEEDS) + body)


def _descriptor(track: Track) -> bytes:
    body = field_varint(1, track.track) + field_bytes(2, track.name or " ")
    if track.parent:
        body += field_varint(5, track.parent)
    body += field_varint(11, EXPLICIT_ORDER) + field_varint(12, track.rank) + field_varint(15, NO_MERGE)
    if track.kind == "counter":
        body += field_bytes(8, b"")
    return _packet(field_varint(SEQUENCE, SEQ) + field_bytes(DESCRIPTOR, body))


def _facts(facts: Facts) -> bytes:
    body = field_varint(TYPE, INSTANT) + field_varint(UUID, facts.track) + field_varint(NAME_IID, CAPTURE_IID)
    for key, text in facts.facts.items():
        body += field_bytes(ANNOTATION, field_bytes(10, key) + field_bytes(6, text))
    return _packet(
        field_varint(TIMESTAMP, 0)
        + field_varint(SEQUENCE, SEQ)
        + field_varint(FLAGS, NEEDS)
        + field_bytes(TRACK_EVENT, body)
    )


class _Writer:
    """From parts to bytes, with the names that were written so far."""

    def __init__(self, model: Trace, arguments: bool) -> None:
        self.model, self.arguments = model, arguments
        self.pools = (
            (model.names, 2, CAPTURE_IID + 1), (model.categories, 1, len(OWN_CATEGORIES) + 1), (model.values, 29, 1),
        )  # fmt: skip
        self.written = [0, 0, 0]

    def names(self) -> Iterator[bytes]:
        """Names that came since the last time."""
        interned = []
        for index, (texts, number, first) in enumerate(self.pools):
            fresh = texts.since(self.written[index])
            interned += [
                field_bytes(number, _named(first + i, text)) for i, text in enumerate(fresh, self.written[index])
            ]
            self.written[index] += len(fresh)
        if interned:
            yield _own_packet(field_bytes(INTERNED, b"".join(interned)))

    def part(self, part: Part) -> Iterator[bytes]:
        """Bytes of one part."""
        if isinstance(part, list):
            yield b"".join(_descriptor(track) for track in part)
        elif isinstance(part, Facts):
            yield _facts(part)
        elif isinstance(part, Slices):
            yield from _slices(part, self.arguments)
            self.model.counts["slices"] += len(part)
        elif isinstance(part, Instants):
            yield _instants(part)
        elif isinstance(part, ArrowEnds):
            yield _tails(part) if part.is_tail else _heads(part)
        else:
            yield _counters(part)


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


def _slices(slices: Slices, arguments: bool) -> Iterator[bytes]:
    for part, what in passes(slices.t0, slices.t1):
        if len(part) == 0:
            continue
        track = slices.track[part]
        end = _packet_rows(slices.t1[part], [Constant(field_varint(TYPE, END), len(part))])
        if what == "end":
            yield pack(_track_defaults(track), end)
            continue
        begin = _packet_rows(slices.t0[part], _begin(slices, part, arguments))
        yield pack(_track_defaults(track), begin, *([end] if what == "both" else []))


def _begin(slices: Slices, part: Array, arguments: bool) -> list[Column]:
    rows = len(part)
    iteration, complete = slices.iteration[part], slices.complete[part]
    parts: list[Column] = [
        Constant(field_varint(TYPE, BEGIN), rows),
        Varint(NAME_IID, slices.name[part] + CAPTURE_IID + 1),
        Varint(CATEGORY_IID, slices.category[part] + len(OWN_CATEGORIES) + 1),
        *_known("iteration", iteration),
    ]
    if arguments:
        parts += [_annotation("begin_tick", slices.tick0[part]), _annotation("end_tick", slices.tick1[part])]
        parts += [_annotation("clock", slices.clock[part]), *_known("tile", slices.tile[part])]
        parts += [*_known("error_ns", _up(slices.error_ns[part])), *_known("wander_ns", _up(slices.wander_ns[part]), 1)]
        parts += [*_words("verdict", slices.verdict[part]), *_known("blocked_ticks", slices.blocked_ticks[part])]
        parts += _words("producer", slices.producer[part])
        parts += _known("producer_iteration", slices.producer_iteration[part])
    if not complete.all():
        parts.append(_annotation("incomplete", np.ones(rows, dtype=np.int64), ~complete))
    for flow in slices.arrows:
        number = flow[part]
        if (number >= 0).any():
            parts.append(Fixed64(TERMINATING_FLOW, number + 1, number >= 0))
    return parts


def _up(values: Array) -> Array:
    """Bounds in whole ns, rounded up; -1 unknown."""
    known = ~np.isnan(values)
    result: Array = np.where(known, np.ceil(np.where(known, values, 0)), -1).astype(np.int64)
    return result


def _known(name: str, values: Array, least: int = 0) -> list[Column]:
    """An integer argument of the rows that have at least that value."""
    mask = values >= least
    return [_annotation(name, values, mask)] if mask.any() else []


def _words(name: str, values: Array) -> list[Column]:
    """A text argument of the rows that have one, by its number."""
    mask = values >= 0
    return [_annotation(name, values + 1, mask, STRING_IID)] if mask.any() else []


def _annotation(name: str, values: Array, mask: Array | None = None, number: int = 4) -> Message:
    """One argument of the rows of the mask."""
    key = Constant(field_varint(1, ARGUMENTS.index(name) + 1), len(values), mask)
    return Message(ANNOTATION, [key, Varint(number, values, mask)], mask)


def _track_defaults(track: Array) -> Message:
    """Before the first event of every run of one track: that its events, and all to come, are on that track."""
    first = np.ones(len(track), dtype=bool)
    first[1:] = track[1:] != track[:-1]
    fixed = field_varint(SEQUENCE, SEQ) + field_varint(FLAGS, NEEDS)
    event = Message(EVENT_DEFAULTS, [Varint(UUID, track, first)], first)
    clock = Constant(field_varint(CLOCK_ID, OWN_CLOCK), len(track), first)
    return Message(PACKET, [Constant(fixed, len(track), first), Message(DEFAULTS, [clock, event], first)], first)


def _packet_rows(t: Array, event: list[Column]) -> Message:
    # No packet of a file can be lost, so none needs the flag that says that it depends on earlier ones.
    return Message(
        PACKET, [Varint(TIMESTAMP, t), Constant(field_varint(SEQUENCE, SEQ), len(t)), Message(TRACK_EVENT, event)]
    )


def _packets(t: Array, track: Array, event: list[Column]) -> bytes:
    return pack(_track_defaults(track), _packet_rows(t, event)) if len(t) else b""


def _instants(marks: Instants) -> bytes:
    rows = len(marks.t)
    event = [
        Constant(field_varint(TYPE, INSTANT), rows),
        Varint(NAME_IID, marks.name + CAPTURE_IID + 1),
        Constant(field_varint(CATEGORY_IID, OWN_CATEGORIES.index("marker") + 1), rows),
        *_known("iteration", marks.iteration),
        *_known("tile", marks.tile),
        *_payload(marks.payload),
    ]
    return _packets(marks.t, marks.track, event)


def _tails(ends: ArrowEnds) -> bytes:
    """An instant at every signal, where its arrow begins."""
    signal, binding = (OWN_CATEGORIES.index(name) + 1 for name in ("signal", "binding"))
    event = [
        Constant(field_varint(TYPE, INSTANT), len(ends.t)),
        Varint(NAME_IID, ends.name + CAPTURE_IID + 1),
        Varint(CATEGORY_IID, np.where(ends.binding, binding, signal)),
        Fixed64(FLOW, ends.number + 1),
    ]
    return _packets(ends.t, ends.track, event)


def _heads(ends: ArrowEnds) -> bytes:
    """An instant where an arrow ends that ends in no slice."""
    kept = np.flatnonzero(~ends.inside)
    kept = kept[np.argsort(ends.track[kept], kind="stable")]
    event = [
        Constant(field_varint(TYPE, INSTANT), len(kept)),
        Varint(NAME_IID, ends.name[kept] + CAPTURE_IID + 1),
        Constant(field_varint(CATEGORY_IID, OWN_CATEGORIES.index("released") + 1), len(kept)),
        Fixed64(TERMINATING_FLOW, ends.number[kept] + 1),
    ]
    return _packets(ends.t[kept], ends.track[kept], event)


def _counters(counters: Counters) -> bytes:
    value = counters.value
    whole = np.abs(value) < 2**53
    whole &= np.floor(value) == value
    event: list[Column] = [Constant(field_varint(TYPE, COUNTER), len(value))]
    event.append(Varint(COUNTER_VALUE, np.where(whole, value, 0).astype(np.int64), whole))
    if not whole.all():
        event.append(Fixed64(DOUBLE_VALUE, value, ~whole))
    return _packets(counters.t, counters.track, event)


def _payload(texts: pa.Array) -> list[Column]:
    """The value that was recorded with a stamp, as an argument: the text as it is, exact."""
    plain = texts.to_pylist() if len(texts) else []
    given = np.array([bool(text) for text in plain], dtype=bool)
    if not given.any():
        return []
    name = Constant(field_varint(1, ARGUMENTS.index("payload") + 1), len(given), given)
    return [Message(ANNOTATION, [name, Texts(6, plain, given)], given)]
