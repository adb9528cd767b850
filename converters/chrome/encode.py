"""A trace model as Chrome trace JSON: X events only, exact decimal microseconds, arrows bound by id.

The format is read by viewers with rules of their own; what is done here follows from them:

* ``ts`` and ``dur`` are microseconds with three decimals, made from integers; the trace starts at 0 so that a
  double holds them exactly (the base stands in ``otherData``).
* Process and thread ids count from 1, and no thread id equals a process id: 0 and equal ids are special to viewers.
* An arrow is a pair of X events with one ``bind_id``: it cannot bind to the wrong slice.
* Text is UTF-8 as it is, never escaped surrogates; a number that a double cannot hold is a string.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wsformat.converters.trace_model import TraceModel, Track

Array = np.ndarray[Any, Any]
Progress = Callable[[str, int, int], None]
BLOCK = 50_000
SAFE = 2**53


def trace(model: TraceModel, *, arguments: bool = True, progress: Progress | None = None) -> Iterator[bytes]:
    """Bytes of the trace, in parts.

    Args:
        model: what to write.
        arguments: ticks, clock and error bound as arguments of every slice; without them only the iteration.
        progress: called with slices done.
    """
    process, thread, head = _places(model)
    yield head
    yield from _slices(model, process, thread, arguments, progress)
    yield from _instants(model, process, thread)
    yield from _arrow_tails(model, process, thread)
    yield from _counters(model, process)
    facts: dict[str, Any] = {}
    for capture, key, text in model.notes:
        facts.setdefault(f"capture {capture}", {})[key] = text
    tail = {"displayTimeUnit": "ns", "otherData": {"writer": "wsformat", "base_ns": str(model.base), **facts}}
    yield (
        b'\n{"ph":"M","pid":1,"name":"process_sort_index","args":{"sort_index":1}}],\n'
        + _json(tail)[1:].encode()
        + b"\n"
    )


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _places(model: TraceModel) -> tuple[Array, Array, bytes]:
    """Process and thread number of every track, and the metadata events that name them in order."""
    tracks = {track.track: track for track in model.tracks}
    process = np.zeros(len(tracks) + 1, dtype=np.int64)
    thread = np.zeros(len(tracks) + 1, dtype=np.int64)
    rows = ["{", '"traceEvents":[']
    numbers: dict[int, int] = {}
    leaves = [track for track in model.tracks if track.kind in ("lane", "overlap")]
    for track in leaves:
        numbers.setdefault(_group(track, tracks), len(numbers) + 1)
    # Thread ids start above every process id.
    for order, track in enumerate(leaves):
        group = _group(track, tracks)
        process[track.track], thread[track.track] = numbers[group], len(numbers) + 1 + order
        rows.append(_meta("thread_name", numbers[group], int(thread[track.track]), {"name": track.name}))
        rows.append(_meta("thread_sort_index", numbers[group], int(thread[track.track]), {"sort_index": order}))
    for group, number in numbers.items():
        rows.append(_meta("process_name", number, 0, {"name": _path(group, tracks)}))
        rows.append(_meta("process_sort_index", number, 0, {"sort_index": number}))
    for track in model.tracks:
        if track.kind == "counter":
            process[track.track] = numbers.get(_group(track, tracks), 1)
    return process, thread, ("\n".join([rows[0], rows[1], *[row + "," for row in rows[2:]]]) + "\n").encode()


def _group(track: Track, tracks: dict[int, Track]) -> int:
    parent = tracks[track.parent] if track.parent else track
    return parent.track if parent.kind != "lane" else _group(parent, tracks)


def _path(number: int, tracks: dict[int, Track]) -> str:
    parts: list[str] = []
    while number:
        parts.append(tracks[number].name)
        number = tracks[number].parent
    return " / ".join(reversed(parts))


def _meta(name: str, pid: int, tid: int, args: dict[str, Any]) -> str:
    place = f'"pid":{pid},"tid":{tid}' if tid else f'"pid":{pid}'
    return f'{{"ph":"M","name":"{name}",{place},"args":{_json(args)}}}'


def _micros(values: Array) -> pa.Array:
    """Integer ns (>= 0) as decimal microseconds."""
    whole = pa.array(values // 1000).cast(pa.string())
    rest = pc.utf8_lpad(pa.array(values % 1000).cast(pa.string()), 3, padding="0")
    return pc.binary_join_element_wise(whole, rest, ".")


def _integers(values: Array) -> pa.Array:
    """Integers as JSON: numbers while a double holds them, else strings."""
    text = pa.array(values).cast(pa.string())
    large = np.abs(values) >= SAFE
    if not large.any():
        return text
    quoted = pc.binary_join_element_wise('"', text, '"', "")
    return pc.if_else(pa.array(large), quoted, text)


def _texts(codes: Array, texts: list[str]) -> pa.Array:
    quoted = [_json(text) for text in texts] or ['""']
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(quoted)).cast(pa.string())


def _lines(*parts: pa.Array | str) -> bytes:
    joined = pc.binary_join_element_wise(*parts, "")
    offsets = np.frombuffer(joined.buffers()[1], dtype=np.int32)
    return joined.buffers()[2].to_pybytes()[int(offsets[joined.offset]) : int(offsets[joined.offset + len(joined)])]


def _slices(
    model: TraceModel, process: Array, thread: Array, arguments: bool, progress: Progress | None
) -> Iterator[bytes]:
    slices = model.slices
    for start in range(0, len(slices), BLOCK):
        part = slice(start, start + BLOCK)
        track = slices.track[part]
        args: list[pa.Array | str] = ['"iteration":', pa.array(slices.iteration[part]).cast(pa.string())]
        if arguments:
            error = pa.array(slices.error_ns[part], from_pandas=True)
            args += [
                ',"begin_tick":', _integers(slices.tick0[part]),
                ',"end_tick":', _integers(slices.tick1[part]),
                ',"clock":', pa.array(slices.clock[part]).cast(pa.string()),
                pc.coalesce(pc.binary_join_element_wise(',"error_ns":', error.cast(pa.string()), ""), ""),
            ]  # fmt: skip
        cut = pc.if_else(pa.array(slices.complete[part]), "", ',"incomplete":true')
        yield _lines(
            '{"ph":"X","name":', _texts(slices.name[part], model.names),
            ',"cat":', _texts(slices.category[part], model.categories),
            ',"pid":', pa.array(process[track]).cast(pa.string()), ',"tid":', pa.array(thread[track]).cast(pa.string()),
            ',"ts":', _micros(slices.t0[part]), ',"dur":', _micros(slices.t1[part] - slices.t0[part]),
            ',"args":{', *args, cut, "}},\n",
        )  # fmt: skip
        if progress is not None:
            progress("slices", min(start + BLOCK, len(slices)), len(slices))


def _instants(model: TraceModel, process: Array, thread: Array) -> Iterator[bytes]:
    marks = model.instants
    for start in range(0, len(marks.t), BLOCK):
        part = slice(start, start + BLOCK)
        track = marks.track[part]
        payload = marks.payload[part]
        held = pc.if_else(pc.not_equal(payload, ""), [f',"payload":{_json(text)}' for text in payload.to_pylist()], "")
        yield _lines(
            '{"ph":"i","s":"t","cat":"marker","name":', _texts(marks.name[part], model.names),
            ',"pid":', pa.array(process[track]).cast(pa.string()), ',"tid":', pa.array(thread[track]).cast(pa.string()),
            ',"ts":', _micros(marks.t[part]),
            ',"args":{"iteration":', pa.array(marks.iteration[part]).cast(pa.string()), held, "}},\n",
        )  # fmt: skip


def _arrow_tails(model: TraceModel, process: Array, thread: Array) -> Iterator[bytes]:
    """Both ends of an arrow as X events without length: at the signal, and at the end of the wait (or at its head)."""
    flows = model.flows
    for start in range(0, len(flows.t), BLOCK):
        part = slice(start, start + BLOCK)
        number = pa.array(np.arange(start + 1, start + 1 + len(flows.t[part]), dtype=np.int64)).cast(pa.string())
        category = pc.if_else(pa.array(flows.binding[part]), '"binding"', '"signal"')
        name = _texts(flows.name[part], model.names)
        for direction, track, t in (
            ("flow_out", flows.track[part], flows.t[part]),
            ("flow_in", flows.head_track[part], flows.head_t[part]),
        ):
            yield _lines(
                '{"ph":"X","name":', name, ',"cat":', category,
                ',"pid":', pa.array(process[track]).cast(pa.string()),
                ',"tid":', pa.array(thread[track]).cast(pa.string()),
                ',"ts":', _micros(t), f',"dur":0,"{direction}":true,"bind_id":', number, "},\n",
            )  # fmt: skip


def _counters(model: TraceModel, process: Array) -> Iterator[bytes]:
    counters = model.counters
    if len(counters.t) == 0:
        return
    tracks = {track.track: track for track in model.tracks}
    # A series of one process is known by its name alone, so those of a lane are named with it.
    kinds = {
        track.track: track.name
        if tracks[track.parent].kind != "lane"
        else f"{tracks[track.parent].name} / {track.name}"
        for track in model.tracks
        if track.kind == "counter"
    }
    texts = sorted(set(kinds.values()))
    code = np.array([texts.index(kinds.get(i, texts[0])) for i in range(len(model.tracks) + 1)], dtype=np.int32)
    for start in range(0, len(counters.t), BLOCK):
        part = slice(start, start + BLOCK)
        track = counters.track[part]
        yield _lines(
            '{"ph":"C","name":', _texts(code[track], texts), ',"pid":', pa.array(process[track]).cast(pa.string()),
            ',"ts":', _micros(counters.t[part]),
            ',"args":{"value":', pa.array(counters.value[part]).cast(pa.string()), "}},\n",
        )  # fmt: skip
