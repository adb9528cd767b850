"""Records to cells, without a loop over cells.

A table's cells become one matrix of codes into the distinct texts: everything later is done once a distinct text.
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from wsformat.converters.ncu.headers import Head, split_line
from wsformat.errors import MalformedInput

Codes = npt.NDArray[np.int32]
TEXT = pa.dictionary(pa.int32(), pa.string())


def read_cells(data: bytes, head: Head, line: int, where: str, *, plain: bool = False) -> tuple[Codes, pa.StringArray]:
    """Cells of a run of records.

    Args:
        data: whole records.
        head: their table.
        line: line number of the first record, for messages.
        where: the file, for messages.
        plain: every record is one line.

    Returns:
        codes of shape (records, header cells) into the second value, the distinct texts. Short rows are filled
        with the empty text, which is always among them.

    Raises:
        MalformedInput: a row has fewer cells than it needs or more than the header.
    """
    fast = _read_columns(data, head) if plain and head.kind != "wide" else None
    return fast or _read_flat(data, head, line, where)


def _read_columns(data: bytes, head: Head) -> tuple[Codes, pa.StringArray] | None:
    """Cells column by column, for tables with many rows; None when rows are ragged in an unusual way."""
    width = len(head.cells)
    a = np.frombuffer(data, np.uint8)
    stops = np.flatnonzero(a == 10)
    # ncu cuts the rows of metrics short, with a comma at the end; only the rows of rules are full.
    short = a[stops - 1] == ord(head.delimiter)
    if not short.any() or short.all():
        parts = [(data, np.arange(len(stops)))]
    else:
        parts = [(_lines(data, stops, mask), np.flatnonzero(mask)) for mask in (short, ~short)]
    tables = []
    for part, rows in parts:
        first = part[: part.index(b"\n") + 1]
        names = [str(i) for i in range(len(split_line(first, head.delimiter)))]
        if len(names) > width or len(names) < head.required:
            return None
        try:
            table = pacsv.read_csv(
                pa.BufferReader(part),
                read_options=pacsv.ReadOptions(block_size=len(part) + 1, use_threads=False, column_names=names),
                parse_options=pacsv.ParseOptions(ignore_empty_lines=False, delimiter=head.delimiter),
                convert_options=pacsv.ConvertOptions(column_types=dict.fromkeys(names, TEXT)),
            )
        except pa.ArrowInvalid:
            return None
        if table.num_rows != len(rows):
            return None
        tables.append(table)
    return _one_matrix(tables, [rows for _, rows in parts], len(stops), width)


def _one_matrix(
    tables: list[pa.Table], rows: list[npt.NDArray[np.int64]], total: int, width: int
) -> tuple[Codes, pa.StringArray]:
    """Columns of text from one table or two with different rows, as one matrix of codes."""
    codes = np.zeros((total, width), np.int32, order="F")
    dictionaries = [pa.array([""], pa.string())]
    size = 1
    for number in range(width):
        held = [(table.column(number).chunk(0), at) for table, at in zip(tables, rows, strict=True)
                if number < table.num_columns]  # fmt: skip
        if not held:
            break
        chunks = [chunk for chunk, _ in held]
        if len(chunks) > 1:
            chunks = pa.chunked_array(chunks).unify_dictionaries().chunks
        for chunk, (_, at) in zip(chunks, held, strict=True):
            codes[at if len(rows) > 1 else slice(None), number] = chunk.indices.to_numpy() + size
        dictionaries.append(chunks[0].dictionary)
        size += len(chunks[0].dictionary)
    return codes, pa.concat_arrays(dictionaries)


def _lines(data: bytes, stops: npt.NDArray[np.int64], mask: npt.NDArray[np.bool_]) -> bytes:
    """The chosen lines, joined."""
    begins = np.concatenate(([0], stops[:-1] + 1))
    edges = np.flatnonzero(np.diff(np.concatenate(([False], mask, [False]))))
    view = memoryview(data)
    ends = stops + 1
    return b"".join(view[begins[i] : ends[j - 1]] for i, j in zip(edges[::2], edges[1::2], strict=True))


def _read_flat(data: bytes, head: Head, line: int, where: str) -> tuple[Codes, pa.StringArray]:
    """Cells row after row, as one column of text; copes with ragged rows and cells of several lines."""
    a = np.frombuffer(data, np.uint8)
    outside = np.bitwise_xor.accumulate((a == 34).view(np.uint8)) == 0
    cuts = (a == ord(head.delimiter)) & outside
    stops = np.flatnonzero((a == 10) & outside)
    counts = np.diff(np.searchsorted(np.flatnonzero(cuts), stops), prepend=0) + 1
    text = np.empty(len(a) + 2, np.uint8)
    text[:2] = (120, 10)
    text[2:] = a
    text[2:][cuts] = 10
    multiline = len(stops) != np.count_nonzero(a == 10)
    try:
        table = pacsv.read_csv(
            pa.BufferReader(pa.py_buffer(text)),
            read_options=pacsv.ReadOptions(block_size=len(text) + 1, use_threads=False),
            parse_options=pacsv.ParseOptions(ignore_empty_lines=False, newlines_in_values=multiline, delimiter="\x1f"),
            convert_options=pacsv.ConvertOptions(column_types={"x": TEXT}),
        )
    except pa.ArrowInvalid as error:
        raise MalformedInput(
            f"{where}, lines from {line}: cannot be split into cells: {str(error).splitlines()[0][:120]}",
            "The file was changed after ncu wrote it: look for control characters and lone quotes.",
        ) from error
    coded = table.column(0).combine_chunks()
    if isinstance(coded, pa.ChunkedArray):
        coded = coded.chunk(0)
    if len(coded) != counts.sum():
        raise MalformedInput(
            f"{where}, line {line + _stray_quote(data, head)}: a quote in the middle of a cell",
            "ncu doubles a quote inside a cell; the line was changed or cut after ncu wrote it.",
        )
    return _as_rows(coded, counts, head, line, where)


def _stray_quote(data: bytes, head: Head) -> int:
    """The line, from 0, with the first quote that neither opens nor closes a cell nor is doubled."""
    delimiter = re.escape(head.delimiter.encode())
    cell = rb'(?:"(?:[^"]|"")*"|[^"' + delimiter + rb"\n]*)"
    record = re.compile(cell + rb"(?:" + delimiter + cell + rb")*\n")
    position = 0
    while match := record.match(data, position):
        position = match.end()
        if position >= len(data):
            break
    return data.count(b"\n", 0, position)


def _as_rows(
    coded: pa.DictionaryArray, counts: npt.NDArray[np.int64], head: Head, line: int, where: str
) -> tuple[Codes, pa.StringArray]:
    width = len(head.cells)
    codes: Codes = coded.indices.to_numpy(zero_copy_only=False).astype(np.int32, copy=False)
    texts = coded.dictionary
    if (counts == width).all():
        return codes.reshape(-1, width), texts
    empty = pc.index(texts, "").as_py()
    if empty < 0:
        texts = pa.concat_arrays([texts, pa.array([""], pa.string())])
        empty = len(texts) - 1
    begins = np.concatenate(([0], np.cumsum(counts)[:-1]))
    row = np.repeat(np.arange(len(counts)), counts)
    column = np.arange(len(codes)) - begins[row]
    over = (column >= width) & (codes != empty)
    if over.any() or (counts < head.required).any():
        bad = int(row[over][0]) if over.any() else int(np.flatnonzero(counts < head.required)[0])
        raise MalformedInput(
            f"{where}, line {line + bad}: {counts[bad]} cells, the header in line {head.line} has {width}"
            f" and {head.required} are needed",
            "A line of program output may look like a row: remove it, or keep ncu's output apart with --log-file.",
        )
    rows = np.full((len(counts), width), empty, np.int32)
    inside = column < width
    rows[row[inside], column[inside]] = codes[inside]
    return rows, texts
