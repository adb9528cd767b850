"""Coded cells to rows of ``metrics``: instance lists unfolded, numbers and base values beside the printed text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from wsformat.converters.ncu import labels, units
from wsformat.converters.ncu.cells import Codes
from wsformat.converters.ncu.numbers import REASONS, TENS, Convention, Floats, Numbers, buffers, parse, shapes
from wsformat.tables import tables

Ints = npt.NDArray[np.int64]


INSTANCE_LIST = r"^(?:[^()]* )?\([^()]*; [^()]*\)$|^[-+]?[0-9][0-9.,' ]* \([^()]*\)$"
INSTANCE_CELL = r"^(?P<total>.*?) ?\((?P<items>.*)\)$"
INSTANCE_ID = r"^(?P<id>[^:;()]+): (?P<value>.*)$"


@dataclass(slots=True)
class Meta:
    """The distinct (section, label, name, unit) of a part; rows point into it.

    Attributes:
        section, label, name, unit: as printed.
        metric, resolved_by, base_unit, power: filled by :meth:`resolve`.
    """

    section: list[str]
    label: list[str]
    name: list[str]
    unit: list[str]
    metric: list[str] = field(default_factory=list)
    resolved_by: list[str] = field(default_factory=list)
    base_unit: list[str] = field(default_factory=list)
    power: list[int] = field(default_factory=list)

    def resolve(self, extra: Mapping[str, tuple[str, int]], where: str) -> Meta:
        """Fill in metric names and base units.

        Raises:
            MalformedInput: an unknown unit.
        """
        bases = {unit: units.base_unit(unit, extra, where) for unit in dict.fromkeys(self.unit)}
        self.base_unit = [bases[unit][0] for unit in self.unit]
        self.power = [bases[unit][1] for unit in self.unit]
        found = [labels.resolve(s, n, u) for s, n, u in zip(self.section, self.name, self.base_unit, strict=True)]
        self.metric = [metric for metric, _ in found]
        self.resolved_by = [how for _, how in found]
        return self

    def ranks(self) -> tuple[Ints, Ints]:
        """Per entry its place in the order of (section, name, label), and a number for its (section, label, name)."""
        keys = list(zip(self.section, self.name, self.label, strict=True))
        number = {key: i for i, key in enumerate(sorted(set(keys)))}
        names = {key: i for i, key in enumerate(sorted({key[:2] for key in keys}))}
        return np.array([names[k[:2]] for k in keys], np.int64), np.array([number[k] for k in keys], np.int64)


@dataclass(slots=True)
class Cells:
    """Coded rows of one part, before numbers are understood.

    Attributes:
        launch: launch of each row.
        meta: index into the part's :class:`Meta`.
        ordinal: n-th row of its key.
        text: index into ``texts``.
        texts: distinct cells.
        scope: kernel, summary, instruction or line.
        scope_id: index into ``scope_ids`` or None for ''.
    """

    launch: Codes
    meta: Codes | Ints
    ordinal: Codes
    text: Codes
    texts: pa.StringArray
    scope: str
    scope_id: Codes | None = None
    scope_ids: pa.StringArray | None = None


@dataclass(slots=True)
class Instances:
    """Distinct cells ``total (id: v; id: v)`` taken apart.

    Attributes:
        total: distinct cells without their list.
        begin, length: per distinct cell its items in the two arrays that follow; length 0 where it has none.
        value: index into ``values``.
        values: distinct item texts.
        ids: item ids, None where no cell has any.
    """

    total: pa.StringArray
    begin: Ints
    length: Ints
    value: Codes
    values: pa.StringArray
    ids: pa.StringArray | None


def has_instances(texts: pa.StringArray) -> bool:
    """Whether the cells come from --print-metric-instances."""
    _, data = buffers(texts)
    if not (data == ord("(")).any():
        return False
    return bool(pc.any(pc.match_substring_regex(texts, INSTANCE_LIST)).as_py())


def split_instances(texts: pa.StringArray) -> Instances:
    """Take distinct cells apart, see :class:`Instances`."""
    parts = pc.extract_regex(texts, INSTANCE_CELL)
    hit = pc.is_valid(parts)
    # "(!) nan" is a number that failed, no list.
    hit = pc.and_(hit, pc.invert(pc.starts_with(texts, "(!)")))
    total = pc.if_else(hit, pc.struct_field(parts, 0), texts)
    index = np.flatnonzero(hit.to_numpy(zero_copy_only=False))
    lists = pc.split_pattern(pc.struct_field(parts, 1).take(pa.array(index)), "; ")
    length = np.zeros(len(texts), np.int64)
    begin = np.zeros(len(texts), np.int64)
    offsets = lists.offsets.to_numpy().astype(np.int64)
    length[index], begin[index] = np.diff(offsets), offsets[:-1] - offsets[0]
    items = lists.flatten()
    ids = None
    if len(items) and pc.any(pc.match_substring(items.slice(0, 4096), ": ")).as_py():
        named = pc.extract_regex(items, INSTANCE_ID)
        ids = pc.if_else(pc.is_valid(named), pc.struct_field(named, 0), "")
        items = pc.if_else(pc.is_valid(named), pc.struct_field(named, 1), items)
    distinct = items.dictionary_encode()
    return Instances(total, begin, length, distinct.indices.to_numpy().astype(np.int32), distinct.dictionary, ids)


def metric_rows(
    cells: Cells, meta: Meta, convention: Convention, capture: str, instances: bool, numbers: Numbers | None
) -> pa.Table:
    """Rows of ``metrics`` in the table's order within each launch.

    Args:
        cells: rows in order.
        meta: resolved.
        convention: of the file.
        capture: capture_id.
        instances: cells may hold instance lists.
        numbers: of the distinct texts, when they are known already.
    """
    if not instances:
        return _table(cells, meta, numbers or parse(shapes(cells.texts), convention), capture)
    split = split_instances(cells.texts)
    totals = split.total.dictionary_encode()
    plain = Cells(
        cells.launch, cells.meta, cells.ordinal,
        totals.indices.to_numpy().astype(np.int32)[cells.text], totals.dictionary, cells.scope,
    )  # fmt: skip
    length = split.length[cells.text]
    row = np.repeat(np.arange(len(length)), length)
    first = np.cumsum(length) - length
    place = np.arange(len(row)) - first[row]
    item = split.begin[cells.text][row] + place
    if split.ids is not None:
        ids = pc.if_else(pc.equal(split.ids, ""), "", split.ids).dictionary_encode()
        id_codes = ids.indices.to_numpy().astype(np.int32)[item]
        scope_ids = ids.dictionary
    else:
        id_codes = place.astype(np.int32)
        scope_ids = pa.array([str(i) for i in range(int(place.max(initial=-1)) + 1)], pa.string())
    unfolded = Cells(
        cells.launch[row], cells.meta[row], place.astype(np.int32), split.value[item], split.values,
        "instance", id_codes, scope_ids,
    )  # fmt: skip
    both = pa.concat_tables(
        [
            _table(unfolded, meta, parse(shapes(split.values), convention), capture),
            _table(plain, meta, parse(shapes(totals.dictionary), convention), capture),
        ]
    )
    order = np.argsort(np.concatenate((cells.launch[row] * 2, cells.launch * 2 + 1)), kind="stable")
    return both if (np.diff(order) == 1).all() else both.unify_dictionaries().take(pa.array(order))


def _table(cells: Cells, meta: Meta, numbers: Numbers, capture: str) -> pa.Table:
    rows = len(cells.launch)
    zeros = np.zeros(rows, np.int32)

    def same(text: str) -> pa.Array:
        return coded(pa.array(zeros), pa.array([text], pa.string()))

    def of_meta(values: Sequence[str]) -> pa.Array:
        distinct = list(dict.fromkeys(values))
        if len(distinct) == 1:
            return same(distinct[0])
        number = {text: i for i, text in enumerate(distinct)}
        index = np.array([number[text] for text in values], np.int32)
        return coded(pa.array(index[cells.meta]), pa.array(distinct, pa.string()))

    names = of_meta(meta.name)
    reason = numbers.reason[cells.text]
    columns: dict[str, Any] = {
        "capture_id": same(capture),
        "launch": pa.array(cells.launch),
        "tool": same("ncu"),
        "scope": same(cells.scope),
        "scope_id": same("") if cells.scope_id is None else coded(pa.array(cells.scope_id), cells.scope_ids),
        "section": of_meta(meta.section),
        "label": of_meta(meta.label),
        "name": names,
        "ordinal": pa.array(cells.ordinal),
        "metric": names if meta.metric == meta.name else of_meta(meta.metric),
        "resolved_by": of_meta(meta.resolved_by),
        "value": pa.array(numbers.value[cells.text], from_pandas=True),
        "text": coded(*compact(cells.text, cells.texts)),
        "unit": of_meta(meta.unit),
        "base_value": pa.array(_base(cells, meta, numbers), from_pandas=True),
        "base_unit": of_meta(meta.base_unit),
        "null_reason": coded(pa.array(reason), pa.array(REASONS, pa.string())),
    }
    fields = [
        pa.field(name, columns[name].type, nullable=tables()["metrics"].column(name).nullable)
        for name in tables()["metrics"].names
    ]
    return pa.Table.from_arrays(list(columns.values()), schema=pa.schema(fields))


def coded(codes: pa.Array, texts: pa.StringArray) -> pa.Array:
    """Coded texts; the codes are ours, so that nobody has to check them."""
    return pa.DictionaryArray.from_arrays(codes, texts, safe=False)


def compact(codes: Codes, texts: pa.StringArray) -> tuple[pa.Array, pa.StringArray]:
    """The same texts with a dictionary that holds only those in use."""
    used = np.zeros(len(texts), bool)
    used[codes] = True
    if used.all():
        return pa.array(codes), texts
    number = (np.cumsum(used) - 1).astype(np.int32)
    return pa.array(number[codes]), texts.take(pa.array(np.flatnonzero(used)))


def _base(cells: Cells, meta: Meta, numbers: Numbers) -> Floats:
    """Values in base units; digits times or over a power of ten, so that 2.33 Mbyte is 2330000 and nothing near it."""
    powers = np.array(meta.power, np.int64)
    if not powers.any():
        return numbers.value[cells.text]
    power = powers[cells.meta] - numbers.places[cells.text]
    mantissa = numbers.mantissa[cells.text]
    size = TENS[np.minimum(np.abs(power), 22)]
    return np.where(power >= 0, mantissa * size, mantissa / size)
