"""What one run of records adds to a bundle: a part that can be unfolded into rows of ``metrics`` later."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wsformat.converters.ncu.cells import Codes
from wsformat.converters.ncu.frame import Cells, Meta, has_instances, metric_rows, split_instances
from wsformat.converters.ncu.headers import Head
from wsformat.converters.ncu.launches import ATTRIBUTES, FACTS, Fact, Launches
from wsformat.converters.ncu.numbers import Convention, Shapes, known_numbers, parse, shapes
from wsformat.converters.spill import Spill


@dataclass(slots=True)
class Part:
    """Rows of ``metrics`` kept in coded form.

    Attributes:
        rows: how many, instances not counted.
        scope: of the rows.
        meta: what they point into.
        instances: cells may hold instance lists.
        load: gives columns launch, meta, ordinal, text and perhaps scope_id, all int32.
        texts: gives the distinct texts that they point into, and perhaps their numbers.
        scope_ids: the distinct scope ids, or None.
        decimal: the decimal mark under which those numbers were understood; None when they are not there.
        file: number of the file that they come from.
        first, last: least and greatest launch.
    """

    rows: int
    scope: str
    meta: Meta
    instances: bool
    load: Callable[[], dict[str, npt.NDArray[Any]]]
    texts: Callable[[], pa.Table]
    scope_ids: pa.StringArray | None
    decimal: str | None
    file: int
    first: int
    last: int

    def unfold(self, convention: Convention, capture: str, renumber: Codes | None) -> pa.Table:
        """The rows, see :func:`wsformat.converters.ncu.frame.metric_rows`."""
        column, words = self.load(), self.texts()
        if renumber is not None:
            # A launch that was printed twice has rows only once, so that none goes.
            column["launch"] = np.where(column["launch"] >= 0, renumber[column["launch"]], -1).astype(np.int32)
        cells = Cells(
            column["launch"], column["meta"], column["ordinal"], column["text"],
            words.column("text").combine_chunks(), self.scope, column.get("scope_id"), self.scope_ids,
        )  # fmt: skip
        numbers = None
        if self.decimal == convention.decimal:
            numbers = known_numbers(*(words.column(n).to_numpy() for n in ("mantissa", "places", "reason")))
        return metric_rows(cells, self.meta, convention, capture, self.instances, numbers)


@dataclass(slots=True)
class Looked:
    """Distinct cells, and what they look like as numbers.

    Attributes:
        texts: the cells.
        instances: some hold instance lists.
        shape: of the cells, or of the values within them.
    """

    texts: pa.StringArray
    instances: bool
    shape: Shapes


def look(texts: pa.StringArray) -> Looked:
    """Look at distinct cells."""
    if has_instances(texts):
        split = split_instances(texts)
        return Looked(texts, True, shapes(pa.concat_arrays([split.total, split.values]).unique()))
    return Looked(texts, False, shapes(texts))


@dataclass(slots=True)
class Reading:
    """State of one import: everything that the records have given so far."""

    extra_units: Mapping[str, tuple[str, int]]
    launches: Launches = field(default_factory=Launches)
    spill: Spill = field(default_factory=Spill)
    parts: list[Part] = field(default_factory=list)
    rules: list[pa.Table] = field(default_factory=list)
    messages: list[tuple[str, str, str]] = field(default_factory=list)
    ignored: int = 0
    dialects: dict[int, list[str]] = field(default_factory=dict)
    conventions: list[Convention] = field(default_factory=list)
    printed_twice: list[int] = field(default_factory=list)
    repeats: list[int] = field(default_factory=list)
    path: Path = Path()
    source: str = ""
    file: int = -1

    @property
    def where(self) -> str:
        """The file, for messages."""
        return str(self.path)

    def add_part(
        self, scope: str, meta: Meta, rows: int, launches: tuple[int, int],
        load: Callable[[], dict[str, npt.NDArray[Any]]], looked: Looked, scope_ids: pa.StringArray | None = None,
    ) -> None:  # fmt: skip
        """Keep rows, and note what their texts say about the file's way to write numbers.

        Args:
            scope: of the rows.
            meta: what they point into, not yet resolved.
            rows: how many.
            launches: the least and the greatest.
            load: see :class:`Part`.
            looked: distinct cells.
            scope_ids: distinct scope ids.
        """
        meta.resolve(self.extra_units, self.where)
        convention = self.conventions[self.file]
        convention.observe(looked.shape)
        words = {"text": looked.texts}
        decimal = None
        if not looked.instances:
            decimal = convention.guess()
            numbers = parse(looked.shape, Convention(decimal=decimal))
            words |= {
                "mantissa": pa.array(numbers.mantissa),
                "places": pa.array(numbers.places.astype(np.int8)),
                "reason": pa.array(numbers.reason.astype(np.int8)),
            }
        held = self.spill.keep(pa.table(words))
        self.parts.append(
            Part(rows, scope, meta, looked.instances, load, held, scope_ids, decimal, self.file, *launches)
        )

    def keep(self, columns: dict[str, npt.NDArray[Any]]) -> Callable[[], dict[str, npt.NDArray[Any]]]:
        """Put columns of integers aside; what comes back reads them again."""
        load = self.spill.keep(pa.table(columns))

        def read() -> dict[str, npt.NDArray[Any]]:
            table = load()
            return {name: table.column(name).to_numpy() for name in table.column_names}

        return read

    def add_facts(self, name: str, section: str, launch: Codes, texts: pa.StringArray, unit: str) -> None:
        """Note values that also fill a column elsewhere."""
        if name in FACTS and (name != "Duration" or section.startswith("GPU Speed Of Light")):
            self.launches.facts.append(Fact(FACTS[name], launch, texts, unit))


def launch_columns(head: Head, codes: Codes, texts: pa.StringArray, rows: npt.NDArray[np.int64]) -> dict[str, Any]:
    """Launch columns of the given rows, as text."""
    at = {name: head.at[name] for name in ("ID", "Process ID", "Kernel Name", "Context", "Stream", "Block Size",
          "Grid Size", *ATTRIBUTES) if name in head.at}  # fmt: skip
    at |= {kind: column for column, kind in head.nvtx}
    return {name: texts.take(pa.array(codes[rows, column])) for name, column in at.items()}


def dense(codes: Codes, size: int) -> tuple[Codes, npt.NDArray[np.int64]]:
    """Codes renumbered without gaps, and the codes in use."""
    used = np.zeros(size, bool)
    used[codes] = True
    number = (np.cumsum(used) - 1).astype(np.int32)
    return number[codes], np.flatnonzero(used)
