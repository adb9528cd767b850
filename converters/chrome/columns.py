"""Columns of a Chrome trace's events, lean enough for gigabytes: what few events have is kept for those few."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from tempfile import SpooledTemporaryFile
from typing import Any

import numpy as np
import pyarrow as pa

from wsformat.converters.spill import Spill

Array = np.ndarray[Any, Any]


@dataclass
class Sparse:
    """A column of which most rows hold the default.

    Attributes:
        rows: rows that hold a value, ascending.
        values: those values.
        default: of all others.
    """

    rows: Array
    values: Array
    default: int

    def __getitem__(self, rows: Array) -> Array:
        """Values of some rows."""
        if not len(self.rows):
            return np.full(len(rows), self.default, self.values.dtype)
        place = np.minimum(np.searchsorted(self.rows, rows), len(self.rows) - 1)
        result: Array = np.where(self.rows[place] == rows, self.values[place], self.default)
        return result.astype(self.values.dtype, copy=False)


@dataclass
class Arguments:
    """The arguments of events as their JSON text, numbered in the order of the file; large ones lie on disk.

    Attributes:
        rows: the event of each, ascending.
        bytes: length of all texts.
    """

    rows: Array = field(default_factory=lambda: np.zeros(0, np.int32))
    bytes: int = 0
    first: list[int] = field(default_factory=lambda: [0])
    held: list[Callable[[], pa.Table]] = field(default_factory=list)
    spill: Spill = field(default_factory=lambda: Spill(8 * IN_MEMORY))

    def keep(self, texts: pa.Array) -> None:
        """Add the arguments of the next events that have some."""
        if len(texts):
            self.bytes += texts.nbytes
            self.held.append(self.spill.keep(pa.table({"args": texts})))
            self.first.append(self.first[-1] + len(texts))

    def __len__(self) -> int:
        return self.first[-1]

    def number(self, rows: Array) -> Array:
        """Number of the arguments of each event, -1 where it has none."""
        return Sparse(self.rows, np.arange(len(self.rows), dtype=np.int32), -1)[rows].astype(np.int64)

    def parts(self) -> Iterator[tuple[int, pa.Array]]:
        """All of them: the first number of each part, and its texts as binary values."""
        for first, read in zip(self.first, self.held, strict=False):
            yield first, _whole(read())

    def take(self, numbers: Array) -> pa.Array:
        """Texts of some, as binary values in the order asked; every number must be there."""
        if not len(numbers):
            return pa.array([], pa.large_binary())
        order = np.argsort(numbers, kind="stable")
        wanted = numbers[order]
        found = []
        for part in np.unique(np.searchsorted(self.first, wanted, side="right") - 1).tolist():
            low, high = np.searchsorted(wanted, self.first[part : part + 2])
            found.append(_whole(self.held[part]()).take(pa.array(wanted[low:high] - self.first[part])))
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        return pa.concat_arrays(found).take(pa.array(back))


def _whole(table: pa.Table) -> pa.Array:
    column = table.column("args").combine_chunks()
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def plain_texts(values: pa.Array) -> pa.Array:
    """Bytes as text; what is no UTF-8 becomes a mark."""
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([value.decode("utf-8", "replace") for value in values.to_pylist()], pa.string())


@dataclass
class Events:
    """Events of a phase that is read, in the order of the file. Texts are numbers of the interners; -1 is absent.

    Attributes:
        phase, lane, name, category: one entry an event.
        t, t_milli: whole and thousandth parts of ts as written; emptied once they are ticks.
        untimed: rows without a time.
        dur, dur_milli, has_dur: of the X events only, in their order; emptied likewise.
        id, id_scope, scope, bind, flow, next_binding: of any event.
        args: arguments.
    """

    phase: Array
    lane: Array
    name: Array
    category: Array
    t: Array
    t_milli: Array
    untimed: Array
    dur: Array
    dur_milli: Array
    has_dur: Array
    id: Sparse
    id_scope: Sparse
    scope: Sparse
    bind: Sparse
    flow: Sparse
    next_binding: Sparse
    args: Arguments

    def __len__(self) -> int:
        return len(self.phase)

    def of_phase(self, letters: bytes) -> Array:
        """Rows of the events of these phases."""
        wanted = np.zeros(256, bool)
        wanted[list(letters)] = True
        return np.flatnonzero(wanted[self.phase])


DENSE = {
    "phase": np.uint8,
    "lane": np.int32,
    "name": np.int32,
    "category": np.int32,
    "t": np.int64,
    "t_milli": np.int16,
}
"""Columns of every event."""
OF_SPANS = {"dur": np.int64, "dur_milli": np.int16, "has_dur": np.bool_}
"""Columns of X events."""
RARE = {"id": -1, "id_scope": 0, "scope": -1, "bind": -1, "flow": 0, "next_binding": 1}
"""Columns that few events have, with their defaults."""
ROWS = ("untimed", "rare_row", "args_row")
IN_MEMORY = 4 << 20


class Store:
    """Columns on their way: short ones in memory, long ones in unnamed temporary files, so that none is there twice."""

    def __init__(self) -> None:
        types = {**DENSE, **OF_SPANS, **dict.fromkeys([*RARE, *ROWS], np.int32)}
        self.types: dict[str, Any] = types
        self.files: dict[str, Any] = {name: SpooledTemporaryFile(IN_MEMORY) for name in types}  # noqa: SIM115

    def add(self, part: dict[str, Array]) -> None:
        """Add the next rows of every column."""
        for name, values in part.items():
            self.files[name].write(np.ascontiguousarray(values, self.types[name]).tobytes())

    def read(self, name: str) -> Array:
        """The whole column; it is given up here."""
        with self.files.pop(name) as file:
            size = file.seek(0, os.SEEK_END)
            values = np.empty(size // np.dtype(self.types[name]).itemsize, self.types[name])
            file.seek(0)
            file.readinto(values.view(np.uint8))
        return values

    def close(self) -> None:
        """Give up what was not read."""
        for file in self.files.values():
            file.close()

    def events(self, args: Arguments) -> Events:
        """All events.

        Args:
            args: their arguments; gets its rows.
        """
        columns: dict[str, Any] = {name: self.read(name) for name in DENSE | OF_SPANS}
        rows = self.read("rare_row")
        columns |= {name: Sparse(rows, self.read(name), default) for name, default in RARE.items()}
        args.rows = self.read("args_row")
        return Events(**columns, untimed=self.read("untimed"), args=args)
