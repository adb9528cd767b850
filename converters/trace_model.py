"""What a trace viewer is given, in parts: rows of the viewer, and columns of what is drawn on them.

Times are integers on one axis: ns where every lane of the bundle can be mapped to a reference clock, else ticks
with each CTA from its own zero (the axis says so). Slices of one track nest or follow each other, never cross:
a span that would cross gets a track of its own beside the lane's. Parts are small, so that a trace of any size is
written with the same memory.
"""

from __future__ import annotations

import gzip
import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

Array = np.ndarray[Any, Any]
Progress: TypeAlias = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Track:
    """One row of the viewer: its place in the tree (``parent`` 0 is none) and among its siblings (``rank``).

    ``kind`` is capture, launch, process, sm, cta, lane, overlap (below its lane) or counter; ``above`` is the name of
    the parent.
    """

    track: int
    parent: int
    name: str
    rank: int
    kind: str
    above: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known about a capture as a whole, for the metadata of a trace."""

    track: int
    capture: int
    facts: dict[str, str]


@dataclass(frozen=True, slots=True)
class Slices:
    """Columns of equal length, one entry a span, ordered by (track, t0, -t1) on from the part before.

    ``t0``/``t1`` are on the trace's axis, ``tick0``/``tick1`` on the span's own clock; ``error_ns`` and ``wander_ns``
    are NaN when unknown; ``tile``, ``verdict``, ``producer`` and ``producer_iteration`` -1 for none. ``name``,
    ``category``, ``verdict`` and ``producer`` number texts of the :class:`Trace`. Every column of ``arrows`` has the
    number of an arrow that ends in the slice itself, -1 for none.
    """

    track: Array
    t0: Array
    t1: Array
    name: Array
    category: Array
    iteration: Array
    tile: Array
    tick0: Array
    tick1: Array
    clock: Array
    error_ns: Array
    wander_ns: Array
    complete: Array
    verdict: Array
    blocked_ticks: Array
    producer: Array
    producer_iteration: Array
    arrows: list[Array]

    def __len__(self) -> int:
        return len(self.t0)


@dataclass(frozen=True, slots=True)
class Instants:
    """Markers: stamps that begin or end no span, with the value recorded with them as text ('' none)."""

    track: Array
    t: Array
    name: Array
    iteration: Array
    tile: Array
    payload: pa.Array


@dataclass(frozen=True, slots=True)
class ArrowEnds:
    """One end of arrows: tails where ``is_tail``, else heads; ``number`` joins them, every tail precedes its head.

    ``inside`` says of a head that the arrow already ends in a slice, see :class:`Slices`; it is not drawn again where
    a format can draw that.
    """

    is_tail: bool
    number: Array
    track: Array
    t: Array
    name: Array
    binding: Array
    inside: Array

    def take(self, which: Array) -> ArrowEnds:
        """Those of a mask."""
        columns = (self.number, self.track, self.t, self.name, self.binding, self.inside)
        return ArrowEnds(self.is_tail, *(column[which] for column in columns))


@dataclass(frozen=True, slots=True)
class Counters:
    """Steps, ordered by (track, t): ``value`` (float64) holds from ``t`` on."""

    track: Array
    t: Array
    value: Array


Part: TypeAlias = list[Track] | Facts | Slices | Instants | ArrowEnds | Counters


class Texts:
    """Texts numbered in the order of their first use, from 0."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}

    def codes(self, column: pa.ChunkedArray | pa.Array) -> Array:
        """Number of each text of a column, -1 for null."""
        if len(column) == 0:
            return np.zeros(0, dtype=np.int32)
        encoded = column.dictionary_encode()
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.unify_dictionaries().combine_chunks()
        table = np.array([self.code(text) for text in encoded.dictionary.to_pylist()] or [0], dtype=np.int32)
        indices = encoded.indices
        known = indices.is_valid().to_numpy(zero_copy_only=False)
        found: Array = table[indices.fill_null(0).to_numpy()]
        return found if indices.null_count == 0 else np.where(known, found, -1)

    def code(self, text: str) -> int:
        """Number of one text."""
        return self.known.setdefault(text, len(self.known))

    def since(self, count: int) -> list[str]:
        """Texts that came after the first ``count``."""
        return list(islice(self.known, count, None))


@dataclass
class Trace:
    """Everything that a trace writer writes, in the order in which it must be written.

    Attributes:
        axis: 'ns' or 'tick'.
        base: what was subtracted from every time, in units of the axis.
        parts: gives the parts, once: every track before what is drawn on it, every tail before its head.
        names, categories, values: texts that columns of parts number; they grow as parts come.
        counts: what was given so far: slices, tracks, instants, flows, counter_values, clamped (arrows whose tail was
            moved back because viewers draw nothing backwards in time).
        dropped: what cannot be drawn, by reason; complete after the last part.
        left_out: rows of tables that have no place in a trace.
        spans_in: spans of the bundle that were asked for so far, to check the slices against.
    """

    axis: str
    base: int
    parts: Iterator[Part]
    names: Texts
    categories: Texts
    values: Texts
    counts: dict[str, int]
    dropped: dict[str, int] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
    spans_in: int = 0

    def drop(self, reason: str, count: int) -> None:
        """Count what cannot be drawn."""
        if count:
            self.dropped[reason] = self.dropped.get(reason, 0) + count


def report(trace: Trace, path: Path) -> dict[str, Any]:
    """What went into the file, for the user and for the check that nothing was lost."""
    return {
        "axis": trace.axis,
        "spans_in": trace.spans_in,
        **trace.counts,
        "dropped": trace.dropped,
        "left_out": trace.left_out,
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
