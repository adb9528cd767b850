"""What a trace viewer needs, taken from a bundle once for every trace format.

Times are integers on one axis: ns where every span of the capture can be mapped to a reference clock, else ticks
with each CTA from its own zero (the axis says so). Slices of one track nest or follow each other, never cross:
a span that would cross gets a track of its own beside the lane's.
"""

from __future__ import annotations

import gzip
import os
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

Array = np.ndarray[Any, Any]

MAX_DEPTH = 500
"""Viewers stop drawing at a depth of 512."""


@dataclass(frozen=True)
class Track:
    """One row of the viewer: its place in the tree and among its siblings; ``capture`` numbers the notes of it."""

    track: int
    parent: int
    name: str
    rank: int
    kind: str
    capture: int


@dataclass(frozen=True)
class Slices:
    """Columns of equal length, one entry a span, ordered by (track, t0, -t1).

    ``t0``/``t1`` are on the model's axis, ``tick0``/``tick1`` on the span's own clock;
    ``error_ns`` is NaN when unknown, ``span_id`` -1 for a span that is made of two stamps; ``capture`` numbers the
    captures, ``wait`` says which slices are stalls.
    """

    track: Array
    t0: Array
    t1: Array
    name: Array
    category: Array
    iteration: Array
    tick0: Array
    tick1: Array
    clock: Array
    error_ns: Array
    complete: Array
    span_id: Array
    capture: Array
    wait: Array

    def __len__(self) -> int:
        return len(self.t0)


@dataclass(frozen=True)
class Instants:
    """Markers: stamps that begin or end no span, with the value recorded with them as text ('' none)."""

    track: Array
    t: Array
    name: Array
    iteration: Array
    payload: pa.Array


@dataclass(frozen=True)
class Flows:
    """Arrows from a moment on one track (``track``, ``t``) to a moment on another (``head_track``, ``head_t``).

    ``target`` is the slice that it released (an index into Slices; the head is its end), -1 when the head is no slice;
    ``clamped`` is how far the tail had to be moved back because viewers draw no arrow backwards in time.
    """

    track: Array
    t: Array
    head_track: Array
    head_t: Array
    name: Array
    target: Array
    binding: Array
    clamped: Array


@dataclass(frozen=True)
class Counters:
    """Step functions, ordered by (track, t): ``value`` (float64) holds from ``t`` on."""

    track: Array
    t: Array
    value: Array


@dataclass(frozen=True)
class TraceModel:
    """Everything that a trace writer writes.

    Attributes:
        axis: 'ns' or 'tick'.
        base: what was subtracted from every time, in units of the axis (0 for ticks).
        names, categories: texts that the integer columns ``name`` and ``category`` point into.
        notes: facts about the captures, (capture label, key, text), for the trace's metadata.
        spans_in: spans of the bundle, to check slices against.
        clamped: arrows whose tail was moved.
        dropped: what cannot be drawn, by reason.
        left_out: rows of tables that have no place in a trace.
    """

    axis: str
    base: int
    tracks: list[Track]
    names: list[str]
    categories: list[str]
    slices: Slices
    instants: Instants
    flows: Flows
    counters: Counters
    notes: list[tuple[int, str, str]]
    spans_in: int
    clamped: int
    dropped: dict[str, int]
    left_out: dict[str, int]


def split_overlaps(lane: Array, t0: Array, t1: Array) -> Array:
    """Level 0, 1, 2, ... of each interval such that those of one (lane, level) nest or follow each other.

    Args:
        lane, t0, t1: equal lengths, ordered by (lane, t0, -t1).

    Greedy and stable: an interval takes the first level on which it crosses nothing. Lanes without any overlap,
    which are nearly all, cost no loop.
    """
    level = np.zeros(len(t0), dtype=np.int32)
    if len(t0) == 0:
        return level
    same = lane[1:] == lane[:-1]
    touches = np.zeros(len(t0), dtype=bool)
    # t1 of the previous interval is its lane's latest end as long as nothing overlapped before.
    touches[1:] = same & (t0[1:] < t1[:-1])
    busy = np.unique(lane[touches])
    if len(busy) == 0:
        return level
    starts = np.searchsorted(lane, busy, side="left")
    ends = np.searchsorted(lane, busy, side="right")
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        stacks: list[list[int]] = []
        begins, stops = t0[start:end].tolist(), t1[start:end].tolist()
        for offset, (begin, stop) in enumerate(zip(begins, stops, strict=True)):
            for index, stack in enumerate(stacks):
                while stack and stack[-1] <= begin:
                    stack.pop()
                if (not stack or stop <= stack[-1]) and len(stack) < MAX_DEPTH:
                    stack.append(stop)
                    level[start + offset] = index
                    break
            else:
                stacks.append([stop])
                level[start + offset] = len(stacks) - 1
    return level


def report(model: TraceModel, path: Path) -> dict[str, Any]:
    """What went into the file, for the user and for the check that nothing was lost."""
    return {
        "axis": model.axis,
        "spans_in": model.spans_in,
        "slices": len(model.slices),
        "tracks": len(model.tracks),
        "instants": len(model.instants.t),
        "flows": len(model.flows.t),
        "counter_values": len(model.counters.t),
        "clamped": model.clamped,
        "dropped": model.dropped,
        "left_out": model.left_out,
        "bytes": path.stat().st_size,
    }


def save(path: Path, parts: Iterable[bytes]) -> None:
    """Write parts to a file beside the target, compressed when its name ends in .gz, then move it into place."""
    scratch = path.with_name(f".{path.name}.partial-{os.getpid()}-{secrets.token_hex(4)}")
    try:
        with scratch.open("wb") as raw:
            if path.suffix == ".gz":
                with gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=5, mtime=0, filename="") as packed:
                    for part in parts:
                        packed.write(part)
            else:
                for part in parts:
                    raw.write(part)
        os.replace(scratch, path)
    finally:
        scratch.unlink(missing_ok=True)


def as_flag(value: object) -> bool:
    """An option that may come as text from the command line."""
    return value if isinstance(value, bool) else str(value).lower() in ("1", "true", "yes")
