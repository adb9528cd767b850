"""Events of a Chrome trace to spans, instants, counters and arrows, whoever wrote it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wsformat.converters.chrome.accounting import account, add_clock
from wsformat.converters.chrome.columns import Arguments, plain_texts
from wsformat.converters.chrome.converted import Converted
from wsformat.converters.chrome.counters import counter_events
from wsformat.converters.chrome.flows import add_edges
from wsformat.converters.chrome.scan import Trace
from wsformat.converters.chrome.units import Unit, ticks
from wsformat.converters.interner import plain_text
from wsformat.converters.pairing import pair
from wsformat.converters.recording import Array, Instants, Recording, Row, Spans

LINE = 64
"""Bytes of arguments that weigh as much as a row."""


def convert(trace: Trace, unit: Unit, *, keep_args: bool, where: str) -> Converted:
    """Read what the events of the format mean.

    Args:
        trace: the file.
        unit: of its times.
        keep_args: whether arguments become attributes.
        where: name of the file, for errors.

    Raises:
        MalformedInput: times that do not fit in this unit.
    """
    events = trace.events
    t, shift = ticks(events.t, events.t_milli, unit, where)
    t[events.untimed] = 0
    events.t = np.zeros(0, np.int64)
    keys = trace.keys.texts()
    done = Converted(
        Recording(), trace, unit, t, np.zeros(0, np.int64),
        [keys[p] if p >= 0 else "" for p, _ in trace.lanes], [keys[i] if i >= 0 else "" for _, i in trace.lanes],
    )  # fmt: skip
    recording = done.recording
    recording.names = trace.names.texts()
    _names_of_nothing(recording)
    recording.lanes = _lanes(done)
    extra: list[tuple[Array, Array, Array]] = []
    _spans(done, extra, where)
    _instants(done, extra)
    counter_events(done.recording, trace, t)
    add_edges(done)
    if keep_args:
        _arguments(done)
    elif len(events.args):
        trace.losses["arguments of an event"] = len(events.args)
    add_clock(done, shift)
    account(done)
    return done


def _names_of_nothing(recording: Recording) -> None:
    """A record needs a name."""
    recording.names = [name or "(no name)" for name in recording.names]
    recording.names.append("(no name)")


def unnamed(recording: Recording, codes: Array) -> Array:
    """Names, with the last one in place of a missing one."""
    if codes.size and codes.min() >= 0:
        return codes
    return np.where(codes < 0, recording.names.index("(no name)"), codes)


def _lanes(done: Converted) -> list[Row]:
    """Rows of lanes, with the names that metadata events give (the last one counts, wherever it stands)."""
    trace, events = done.trace, done.trace.events
    processes: dict[int, str] = {}
    labels: dict[int, str] = {}
    threads: dict[int, str] = {}
    rows = events.of_phase(b"M")
    number = events.args.number(rows)
    rows = rows[number >= 0]
    blobs = events.args.take(number[number >= 0]).to_pylist()
    for row, blob in zip(rows.tolist(), blobs, strict=True):
        what = done.recording.names[events.name[row]]
        if what in ("process_name", "process_labels", "thread_name"):
            try:
                name = json.loads(blob, strict=False).get("labels" if what == "process_labels" else "name")
            except (ValueError, AttributeError):
                continue
            text = plain_text(json.dumps(name).encode()) if name is not None else ""
            if what == "thread_name":
                threads[int(events.lane[row])] = text
            else:
                (processes if what == "process_name" else labels)[trace.lanes[events.lane[row]][0]] = text
    return [
        {
            "kind": "other",
            "clock": 0,
            "name": threads.get(number) or done.thread[number],
            "process": processes.get(process) or done.process[number],
            "process_id": _whole(done.process[number], 31),
            "thread_id": _whole(done.thread[number], 63),
            "named": number in threads,
            "labels": labels.get(process, ""),
        }
        for number, (process, _) in enumerate(trace.lanes)
    ]


def _whole(text: str, bits: int) -> int:
    value = int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else -1
    return value if value < 1 << bits else -1


def _spans(done: Converted, extra: list[tuple[Array, Array, Array]], where: str) -> None:
    events, t, recording = done.trace.events, done.t, done.recording
    whole = events.of_phase(b"X").astype(np.int32)
    end, there = _ends(done, whole, where)
    negative = there & (end < t[whole])
    done.backwards += int(negative.sum())
    done.unclosed += int((~there).sum())
    begins, ends = [whole], [end]
    end_lanes, completes = [events.lane[whole]], [there & ~negative]
    for phases, key in ((b"BE", _thread_key), (b"beSF", _async_key)):
        mine = events.of_phase(phases)
        if not mine.size:
            continue
        is_end = np.isin(events.phase[mine], np.frombuffer(b"EeF", np.uint8))
        order = np.empty(mine.size, np.int64)
        order[np.lexsort((np.arange(mine.size), t[mine]))] = np.arange(mine.size)
        group = key(done, mine, is_end)
        partner, orphan = pair(group, order, is_end)
        begin = np.flatnonzero(~is_end)
        other = partner[begin]
        closed = np.flatnonzero(other >= 0)
        done.ends.append((mine[other[closed]].astype(np.int32), sum(map(len, begins)) + closed))
        begins.append(mine[begin].astype(np.int32))
        stop = mine[np.maximum(other, 0)]
        ends.append(np.where(other >= 0, t[stop], t[mine[begin]]))
        end_lanes.append(np.where(other >= 0, events.lane[stop], events.lane[mine[begin]]))
        completes.append(other >= 0)
        done.unclosed += int((other < 0).sum())
        done.orphans += int(orphan.sum())
        done.backwards += _backwards(events.lane[mine], t[mine])
        lost = mine[orphan]
        extra.append(
            (lost, _suffixed(recording, unnamed(recording, events.name[lost]), " (end without begin)"), t[lost])
        )
    row = _joined(begins)
    done.span_row = row
    recording.spans = Spans(
        lane=events.lane[row],
        end_lane=_joined(end_lanes),
        name=unnamed(recording, events.name[row]),
        category=events.category[row],
        t0=t[row],
        t1=_joined(ends),
        complete=_joined(completes),
    )


def _joined(parts: list[Array]) -> Array:
    """One array of several, without a copy of a single one."""
    filled = [part for part in parts if len(part)] or parts[:1]
    return filled[0] if len(filled) == 1 else np.concatenate(filled)


def _ends(done: Converted, whole: Array, where: str) -> tuple[Array, Array]:
    """Ends of X events in ticks, and whether they have one."""
    events, t = done.trace.events, done.t
    there = events.has_dur
    if done.unit.name == "us":
        end, _ = ticks(events.dur, events.dur_milli, done.unit, where, shift=False)
        end += t[whole]
    else:
        # A fraction of a tick is rounded at the end, not in the length, so that order stays.
        milli = events.t_milli[whole].astype(np.int64)
        end = t[whole] - (milli >= 500) + events.dur + (milli + events.dur_milli + 500) // 1000
    events.dur, events.dur_milli, events.t_milli = (np.zeros(0, np.int64) for _ in range(3))
    return end, there


def _thread_key(done: Converted, rows: Array, is_end: Array) -> Array:
    """Who shares a stack: a thread's spans of one name where its ends carry names, else all of the thread."""
    events = done.trace.events
    lane, name = events.lane[rows].astype(np.int64), events.name[rows].astype(np.int64)
    bare = np.zeros(len(done.trace.lanes), bool)
    bare[lane[is_end & (name < 0)]] = True
    return lane << 32 | np.where(bare[lane], 0, name + 2)


def _async_key(done: Converted, rows: Array, is_end: Array) -> Array:
    """Who shares a stack: one id within its category (and process, when the id is local), and one name."""
    events = done.trace.events
    process = np.array([p for p, _ in done.trace.lanes] or [-1], np.int64)[events.lane[rows]]
    key = np.stack(
        [
            events.category[rows],
            events.id[rows],
            events.scope[rows],
            np.where(events.id_scope[rows] > 0, process, -2),
        ]
    )
    group = np.unique(key, axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64)
    bare = np.zeros(int(group.max()) + 1, bool)
    bare[group[is_end & (events.name[rows] < 0)]] = True
    return group << 32 | np.where(bare[group], 0, events.name[rows].astype(np.int64) + 2)


def _backwards(lane: Array, t: Array) -> int:
    """Events that are earlier than one before them in the file, in their lane."""
    sort = np.argsort(lane, kind="stable")
    lanes, times = lane[sort], t[sort]
    return int(((lanes[1:] == lanes[:-1]) & (times[1:] < times[:-1])).sum())


def _suffixed(recording: Recording, codes: Array, suffix: str) -> Array:
    """Names with a suffix, added to the pool."""
    wanted, inverse = np.unique(codes, return_inverse=True)
    first = len(recording.names)
    recording.names += [recording.names[code] + suffix for code in wanted.tolist()]
    return first + inverse.astype(np.int64)


def _instants(done: Converted, extra: list[tuple[Array, Array, Array]]) -> None:
    events, recording = done.trace.events, done.recording
    mine = events.of_phase(b"iIRnTp")
    rows = np.concatenate([mine, *(row for row, _, _ in extra)])
    if not rows.size:
        return
    names = np.concatenate([unnamed(recording, events.name[mine]), *(name for _, name, _ in extra)])
    number = events.args.number(rows)
    payload = texts_of(events.args, number)
    with_payload = np.unique(names[number >= 0]).tolist()
    recording.payload_types |= dict.fromkeys(with_payload, "text")
    recording.instants = Instants(events.lane[rows].astype(np.int64), names, done.t[rows], payload)


def texts_of(args: Arguments, number: Array) -> pa.Array:
    """Arguments as text; '' where number is -1."""
    there = np.flatnonzero(number >= 0)
    if not there.size:
        return pa.repeat("", len(number))
    found = plain_texts(args.take(number[there]))
    place = np.full(len(number), -1, np.int64)
    place[there] = np.arange(there.size)
    return pc.fill_null(found.take(pa.array(place, mask=place < 0)), "")


def _arguments(done: Converted) -> None:
    """Arguments of spans: read again from where they lie when the bundle is written."""
    args, count = done.trace.events.args, len(done.trace.events)
    if not len(args):
        return

    def parts(rows: Array, spans: Array) -> Iterator[tuple[Array, pa.Array]]:
        span_of = np.full(count, -1, np.int32)
        span_of[rows] = spans
        for first, values in args.parts():
            span = span_of[args.rows[first : first + len(values)]]
            mine = np.flatnonzero(span >= 0)
            if mine.size:
                yield span[mine], plain_texts(values.take(pa.array(mine)))

    begins = (done.span_row, np.arange(len(done.span_row), dtype=np.int32))
    ends = tuple(np.concatenate(column) for column in zip(*done.ends, strict=True)) if done.ends else ()
    for name, pair_of in (("args", begins), ("args.end", ends)):
        if pair_of:
            number = len(args) if name == "args" else int((args.number(pair_of[0]) >= 0).sum())
            done.recording.span_texts.append((name, max(number, args.bytes // LINE), partial(parts, *pair_of)))
