"""Tables with one column a metric: the raw page (a row a launch) and the source page (a row an instruction or line)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wsformat.converters.ncu.cells import Codes
from wsformat.converters.ncu.frame import Meta
from wsformat.converters.ncu.headers import LAUNCH_COLUMNS, Head
from wsformat.converters.ncu.launches import ATTRIBUTES, FACTS
from wsformat.converters.ncu.parts import Looked, Reading, dense, launch_columns, look
from wsformat.converters.ncu.segment import Rows
from wsformat.errors import MalformedInput


@dataclass(slots=True)
class WideCells:
    """Cells of a raw page.

    Attributes:
        codes, texts: all cells.
        text: codes of the metric cells, row after row, into ``looked.texts``.
        looked: their distinct texts.
    """

    codes: Codes
    texts: pa.StringArray
    text: Codes
    looked: Looked


def wide_cells(head: Head, codes: Codes, texts: pa.StringArray, where: str, *, unit_row: bool) -> WideCells | None:
    """The metric cells of a raw page in the order of their names; None when only units came.

    Raises:
        MalformedInput: the row of units under the header is missing.
    """
    if "units" not in head.state:
        codes = _take_units(head, codes, texts, where, unit_row)
    if len(codes) == 0:
        return None
    text, used = dense(codes[:, head.state["columns"]].reshape(-1), len(texts))
    return WideCells(codes, texts, text, look(texts.take(pa.array(used))))


def read_wide(head: Head, cells: WideCells, reading: Reading) -> None:
    """Take the cells of a raw page."""
    codes, texts, text = cells.codes, cells.texts, cells.text
    columns: list[int] = head.state["columns"]
    meta: Meta = head.state["meta"]
    first = reading.launches.add(launch_columns(head, codes, texts, np.arange(len(codes))), len(codes), reading.source)
    launch = np.arange(first, first + len(codes), dtype=np.int32)
    for number, name in enumerate(meta.name):
        if name in FACTS:
            reading.add_facts(name, "", launch, texts.take(pa.array(codes[:, columns[number]])), meta.unit[number])
    load = reading.keep({"text": text})
    entries, ordinal = np.arange(len(columns), dtype=np.int32), head.state["ordinal"]

    def rows_of() -> dict[str, npt.NDArray[Any]]:
        return {
            "launch": np.repeat(launch, len(entries)),
            "meta": np.tile(entries, len(launch)),
            "ordinal": np.tile(ordinal, len(launch)),
            **load(),
        }

    between = int(launch[0]), int(launch[-1])
    fresh = Meta(meta.section, meta.label, meta.name, meta.unit)
    reading.add_part("kernel", fresh, len(text), between, rows_of, cells.looked)


def _take_units(head: Head, codes: Codes, texts: pa.StringArray, where: str, unit_row: bool) -> Codes:
    identity = {*LAUNCH_COLUMNS, *ATTRIBUTES} | {head.cells[column] for column, _ in head.nvtx}
    columns = [i for i, cell in enumerate(head.cells) if cell and cell not in identity]
    columns.sort(key=lambda i: (head.cells[i], i))
    first = texts.take(pa.array(codes[0])).to_pylist()
    has_units = first[head.at["ID"]] == "" and first[head.at["Kernel Name"]] == ""
    if has_units != unit_row:
        raise MalformedInput(
            f"{where}, line {head.line + 1}: the row of units under the header of a raw page is "
            + ("missing" if unit_row else "there"),
            "Without it no value has a meaning; if you know that it was cut off, say --option unit_row=missing."
            if unit_row
            else "Leave out --option unit_row=missing.",
        )
    units = first if has_units else [""] * len(first)
    names = [head.cells[i] for i in columns]
    head.state.update(units=True, columns=columns, ordinal=_occurrences(names))
    head.state["meta"] = Meta([""] * len(names), [""] * len(names), names, [units[i] for i in columns])
    return codes[1:] if has_units else codes


def _occurrences(names: list[str]) -> Codes:
    """n-th occurrence of each name in a sorted list."""
    result = np.zeros(len(names), np.int32)
    for i in range(1, len(names)):
        result[i] = result[i - 1] + 1 if names[i] == names[i - 1] else 0
    return result


def read_source(pages: Sequence[tuple[Rows, bool]], cells: Any, reading: Reading) -> None:
    """Take blocks of a source page that share one header; each is a launch, its rows instructions or lines.

    Args:
        pages: blocks, and whether each is the one before it again, word by word: then its rows are left out.
        cells: codes and texts of the blocks that are not; None when all are.
        reading: takes them.
    """
    head = pages[0][0].head
    names_above = dict.fromkeys(
        key for page, _ in pages for key in page.head.preamble if key in ("Kernel Name", *ATTRIBUTES)
    )
    above = {key: pa.array([page.head.preamble.get(key, "") for page, _ in pages], pa.string()) for key in names_above}
    number = reading.launches.add(above, len(pages), reading.source)
    launches = [number + n for n, (_, again) in enumerate(pages) if not again]
    reading.repeats += [number + n for n, (_, again) in enumerate(pages) if again]
    fresh = [page for page, again in pages if not again]
    if not fresh:
        return
    codes, texts = cells
    key_column = head.at.get("Address", 0)
    scope = "instruction" if "Address" in head.at else "line"
    columns = sorted((i for i, c in enumerate(head.cells) if i != key_column and c), key=lambda i: (head.cells[i], i))
    names = [head.cells[i] for i in columns]
    occurrence = _occurrences(names)
    counts = [page.data.count(b"\n") for page in fresh]
    if sum(counts) != len(codes):
        raise MalformedInput(f"{reading.where}, line {fresh[0].line}: a cell of a source page spans lines")
    ids: list[str] = []
    keys, again_in = [], []
    start = 0
    for page, count in zip(fresh, counts, strict=True):
        key, used = dense(codes[start : start + count, key_column], len(texts))
        path = page.head.preamble.get("File Path", "") if scope == "line" else ""
        # The same address or line twice in a block makes the next row of the same key.
        again_in.append(np.zeros(count, np.int32) if len(used) == count else _repeats(key))
        keys.append(key + len(ids))
        ids += [f"{path}:{text}" if path else text for text in texts.take(pa.array(used)).to_pylist()]
        start += count
    coded = pa.array(ids, pa.string()).dictionary_encode()
    key_codes = coded.indices.to_numpy().astype(np.int32)[np.concatenate(keys)]
    edges = np.concatenate(([0], np.cumsum(counts)))
    blocks = list(zip(edges[:-1], edges[1:], launches, strict=True))
    text, used = dense(np.concatenate([codes[a:b, columns].T.reshape(-1) for a, b, _ in blocks]), len(texts))
    load, width, repeat = (
        reading.keep({"text": text}),
        len(columns),
        np.concatenate(again_in) * np.int32(len(head.cells)),
    )
    entries = np.arange(width, dtype=np.int32)

    def rows_of() -> dict[str, npt.NDArray[Any]]:
        def each(make: Callable[[int, int, int], npt.NDArray[Any]]) -> npt.NDArray[Any]:
            return np.concatenate([make(a, b, launch) for a, b, launch in blocks])

        return {
            "launch": each(lambda a, b, launch: np.full((b - a) * width, launch, np.int32)),
            "meta": each(lambda a, b, launch: np.repeat(entries, b - a)),
            "ordinal": each(lambda a, b, launch: np.repeat(occurrence, b - a) + np.tile(repeat[a:b], width)),
            "scope_id": each(lambda a, b, launch: np.tile(key_codes[a:b], width)),
            **load(),
        }

    meta = Meta([""] * width, [""] * width, names, [""] * width)
    between = launches[0], launches[-1]
    reading.add_part(scope, meta, len(text), between, rows_of, look(texts.take(pa.array(used))), coded.dictionary)


def repeat_blocks(reading: Reading, repeats: Sequence[int]) -> None:
    """Give launches whose source block is the one before it, word by word, their rows after all."""
    for number in repeats:
        origin = next(p for p in reading.parts if p.file == reading.file and p.first <= number - 1 <= p.last)
        load = origin.load

        def rows_of(load: Any = load, number: int = number) -> dict[str, npt.NDArray[Any]]:
            columns = load()
            chosen = columns["launch"] == number - 1
            column = {name: values[chosen] for name, values in columns.items()}
            return column | {"launch": np.full(int(chosen.sum()), number, np.int32)}

        rows = len(rows_of()["launch"])
        reading.parts.append(replace(origin, load=rows_of, rows=rows, first=number, last=number))


def _repeats(key: Codes) -> Codes:
    """n-th occurrence of each key."""
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    begins = np.concatenate(([True], ordered[1:] != ordered[:-1]))
    start = np.maximum.accumulate(np.where(begins, np.arange(len(order)), 0))
    result = np.empty(len(order), np.int32)
    result[order] = np.arange(len(order)) - start
    return result
