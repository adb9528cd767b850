"""A trace as Chrome trace JSON: X events only, exact decimal microseconds, arrows bound by id.

The format is read by viewers with rules of their own; what is done here follows from them:

* ``ts`` and ``dur`` are microseconds with three decimals, made from integers; the trace starts at 0 so that a
  double holds them exactly (the base stands in ``otherData``).
* Process ids are odd and thread ids even: 0, and a thread numbered as a process, are special to viewers.
* An arrow is a pair of X events with one ``bind_id``: it cannot bind to the wrong slice.
* Text is UTF-8 as it is, never escaped surrogates; a number that a double cannot hold is a string.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wsformat.converters.trace_model import (
    Array,
    ArrowEnds,
    Counters,
    Facts,
    Instants,
    Part,
    Slices,
    Texts,
    Trace,
    Track,
)

SAFE = 2**53
LEVELS = 1000
"""Sort numbers between a lane and the next, for the lane's overlaps."""


def trace(model: Trace, *, arguments: bool = True) -> Iterator[bytes]:
    """Bytes of the trace, in parts.

    Args:
        model: what to write; its count of slices is brought up to date.
        arguments: ticks, clock, bounds and verdicts as arguments of every slice; without them only the iteration.
    """
    writer = _Writer(model, arguments)
    yield b'{\n"traceEvents":[\n'
    for part in model.parts:
        yield from writer.part(part)
    tail = {"displayTimeUnit": "ns", "otherData": {"writer": "wsformat", "base_ns": str(model.base), **writer.facts}}
    # Every event ends in a comma, so one more closes the list.
    yield (
        b'{"ph":"M","pid":1,"name":"process_sort_index","args":{"sort_index":1}}],\n' + _json(tail)[1:].encode() + b"\n"
    )


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _meta(name: str, pid: int, tid: int, args: dict[str, Any]) -> str:
    place = f'"pid":{pid},"tid":{tid}' if tid else f'"pid":{pid}'
    return f'{{"ph":"M","name":"{name}",{place},"args":{_json(args)}}},\n'


class _Writer:
    """From parts to bytes, with the numbers of processes and threads."""

    def __init__(self, model: Trace, arguments: bool) -> None:
        self.model, self.arguments = model, arguments
        self.process: Array = np.zeros(1024, dtype=np.int64)
        self.thread: Array = np.zeros(1024, dtype=np.int64)
        self.counter: Array = np.zeros(1024, dtype=np.int64)
        self.above: dict[int, tuple[str, int]] = {}
        self.processes: dict[int, int] = {}
        self.threads = 0
        self.order: dict[int, int] = {}
        self.facts: dict[str, dict[str, str]] = {}
        self.counters = Texts()
        self.quoted: dict[int, list[str]] = {}

    def part(self, part: Part) -> Iterator[bytes]:
        """Bytes of one part."""
        if isinstance(part, list):
            yield "".join(line for track in part for line in self._track(track)).encode()
        elif isinstance(part, Facts):
            self.facts[f"capture {part.capture}"] = part.facts
        elif isinstance(part, Slices):
            yield self._slices(part)
            self.model.counts["slices"] += len(part)
        elif isinstance(part, Instants):
            yield self._instants(part)
        elif isinstance(part, ArrowEnds):
            if len(part.t):
                yield self._ends(part)
        else:
            yield self._counters(part)

    def _track(self, track: Track) -> Iterator[str]:
        """Where a track's events go, and the metadata events that name it and give its order."""
        while track.track >= len(self.process):
            self.process, self.thread, self.counter = (
                np.concatenate([column, np.zeros_like(column)]) for column in (self.process, self.thread, self.counter)
            )
        if track.kind == "counter":
            # A series of one process is known by its name alone, so those of a lane are named with it.
            name = f"{track.above} / {track.name}" if track.above else track.name
            self.counter[track.track] = self.counters.code(name)
            self.process[track.track] = self.process[track.parent] or self._process(track.parent)
            return
        if track.kind not in ("lane", "overlap"):
            self.above[track.track] = (track.name, track.parent)
            return
        known = len(self.processes)
        if track.kind == "lane":
            process = self._process(track.parent or track.track)
            order = len(self.order) * LEVELS
            self.order[track.track] = order
        else:
            process = int(self.process[track.parent])
            order = self.order[track.parent] + 1 + min(track.rank, LEVELS - 2)
        self.threads += 1
        self.process[track.track], self.thread[track.track] = process, 2 * self.threads
        yield _meta("thread_name", process, 2 * self.threads, {"name": track.name})
        yield _meta("thread_sort_index", process, 2 * self.threads, {"sort_index": order})
        if len(self.processes) > known:
            yield _meta("process_name", process, 0, {"name": self._path(track.parent)})
            yield _meta("process_sort_index", process, 0, {"sort_index": known + 1})

    def _process(self, group: int) -> int:
        return 2 * self.processes.setdefault(group, len(self.processes) + 1) - 1

    def _path(self, number: int) -> str:
        parts: list[str] = []
        while number:
            name, number = self.above[number]
            parts.append(name)
        return " / ".join(reversed(parts))

    def _place(self, track: Array) -> list[pa.Array | str]:
        return [
            ',"pid":', pa.array(self.process[track]).cast(pa.string()),
            ',"tid":', pa.array(self.thread[track]).cast(pa.string()),
        ]  # fmt: skip

    def _texts(self, codes: Array, texts: Texts) -> pa.Array:
        """Quoted texts by number, null for -1."""
        quoted = self.quoted.setdefault(id(texts), [])
        quoted += [_json(text) for text in texts.since(len(quoted))]
        indices = pa.array(codes.astype(np.int32), mask=codes < 0)
        return pa.DictionaryArray.from_arrays(indices, pa.array(quoted or ['""'])).cast(pa.string())

    def _slices(self, slices: Slices) -> bytes:
        args: list[pa.Array | str] = ['"iteration":', pa.array(slices.iteration).cast(pa.string())]
        if self.arguments:
            args += [
                ',"begin_tick":', _integers(slices.tick0), ',"end_tick":', _integers(slices.tick1),
                ',"clock":', pa.array(slices.clock).cast(pa.string()),
            ]  # fmt: skip
            args += [*_known("tile", slices.tile), *_bound("error_ns", slices.error_ns)]
            args += _bound("wander_ns", np.where(slices.wander_ns > 0, slices.wander_ns, np.nan))
            args += _optional("verdict", self._texts(slices.verdict, self.model.values))
            args += _known("blocked_ticks", slices.blocked_ticks)
            args += _optional("producer", self._texts(slices.producer, self.model.values))
            args += _known("producer_iteration", slices.producer_iteration)
        cut = pc.if_else(pa.array(slices.complete), "", ',"incomplete":true')
        return _lines(
            '{"ph":"X","name":', self._texts(slices.name, self.model.names),
            ',"cat":', self._texts(slices.category, self.model.categories), *self._place(slices.track),
            ',"ts":', _micros(slices.t0), ',"dur":', _micros(slices.t1 - slices.t0), ',"args":{', *args, cut, "}},\n",
        )  # fmt: skip

    def _instants(self, marks: Instants) -> bytes:
        payload = marks.payload
        held = pc.if_else(pc.not_equal(payload, ""), [f',"payload":{_json(text)}' for text in payload.to_pylist()], "")
        return _lines(
            '{"ph":"i","s":"t","cat":"marker","name":', self._texts(marks.name, self.model.names),
            *self._place(marks.track), ',"ts":', _micros(marks.t),
            ',"args":{"iteration":', pa.array(marks.iteration).cast(pa.string()), *_known("tile", marks.tile), held,
            "}},\n",
        )  # fmt: skip

    def _ends(self, ends: ArrowEnds) -> bytes:
        """Ends of arrows as X events without length: at the signal, and at the end of the wait (or at the head)."""
        direction = "flow_out" if ends.is_tail else "flow_in"
        return _lines(
            '{"ph":"X","name":', self._texts(ends.name, self.model.names),
            ',"cat":', pc.if_else(pa.array(ends.binding), '"binding"', '"signal"'), *self._place(ends.track),
            ',"ts":', _micros(ends.t), f',"dur":0,"{direction}":true,"bind_id":',
            pa.array(ends.number + 1).cast(pa.string()), "},\n",
        )  # fmt: skip

    def _counters(self, counters: Counters) -> bytes:
        return _lines(
            '{"ph":"C","name":', self._texts(self.counter[counters.track], self.counters),
            ',"pid":', pa.array(self.process[counters.track]).cast(pa.string()), ',"ts":', _micros(counters.t),
            ',"args":{"value":', pa.array(counters.value).cast(pa.string()), "}},\n",
        )  # fmt: skip


def _optional(name: str, texts: pa.Array) -> list[pa.Array | str]:
    """An argument of the rows whose text is not null."""
    if texts.null_count == len(texts):
        return []
    return [pc.coalesce(pc.binary_join_element_wise(f',"{name}":', texts, ""), "")]


def _known(name: str, values: Array) -> list[pa.Array | str]:
    """An integer argument of the rows where it is not -1."""
    if (values < 0).all():
        return []
    return _optional(name, _integers(values, values < 0))


def _bound(name: str, values: Array) -> list[pa.Array | str]:
    """A bound in ns of the rows where it is known, rounded up."""
    return _optional(name, pa.array(np.ceil(values), from_pandas=True).cast(pa.int64()).cast(pa.string()))


def _micros(values: Array) -> pa.Array:
    """Integer ns (>= 0) as decimal microseconds."""
    whole = pa.array(values // 1000).cast(pa.string())
    rest = pc.utf8_lpad(pa.array(values % 1000).cast(pa.string()), 3, padding="0")
    return pc.binary_join_element_wise(whole, rest, ".")


def _integers(values: Array, mask: Array | None = None) -> pa.Array:
    """Integers as JSON: numbers while a double holds them, else strings; null where masked."""
    text = pa.array(values, mask=mask).cast(pa.string())
    large = np.abs(values) >= SAFE
    if not large.any():
        return text
    quoted = pc.binary_join_element_wise('"', text, '"', "")
    return pc.if_else(pa.array(large), quoted, text)


def _lines(*parts: pa.Array | str) -> bytes:
    joined = pc.binary_join_element_wise(*parts, "")
    offsets = np.frombuffer(joined.buffers()[1], dtype=np.int32)
    return joined.buffers()[2].to_pybytes()[int(offsets[joined.offset]) : int(offsets[joined.offset + len(joined)])]
