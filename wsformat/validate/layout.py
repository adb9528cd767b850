"""Family 8xx: the physical layout. Readers must not depend on it; E803 is an error, since a reader fails on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from wsformat.tables import layout, tables
from wsformat.validate.report import Findings, clip
from wsformat.validate.subject import Chunk, Subject, TableFile

# A page header begins with its type: field 1, an i32 in Thrift's compact form, 3 (zigzag 6) for DATA_PAGE_V2.
V2_PAGE = b"\x15\x06"
DICTIONARY = {"PLAIN_DICTIONARY", "RLE_DICTIONARY"}


def check(subject: Subject, found: Findings) -> None:
    """W802, E803, W804 to W809."""
    for file in subject.files.values():
        if file.footer is None or file.path is None:
            continue
        _row_groups(file, found)
        if b"ARROW:schema" in (file.footer.metadata or {}):
            found.add("W804", "the footer holds ARROW:schema", table=file.name)
        for index, field in enumerate(file.footer.schema.to_arrow_schema()):
            if b"PARQUET:field_id" in (field.metadata or {}):
                column = clip(file.footer.schema.column(index).path, 60)
                found.add("W809", "has a Parquet field id", table=file.name, column=column)
        with file.path.open("rb") as handle:
            for chunk in file.chunks:
                _chunk(file, chunk, handle, found)


def _row_groups(file: TableFile, found: Findings) -> None:
    assert file.footer is not None
    size = layout()["row_group_rows"]
    rows = [file.footer.row_group(index).num_rows for index in range(file.footer.num_row_groups)]
    if rows and max(rows) > 2 * size:
        found.add("W802", f"a row group of {max(rows)} rows", table=file.name)
    elif len(rows) > 1 and sum(rows[:-1]) / (len(rows) - 1) < size / 2:
        found.add("W802", f"{len(rows)} row groups of {sum(rows) // len(rows)} rows on average", table=file.name)


def _chunk(file: TableFile, chunk: Chunk, handle: BinaryIO, found: Findings) -> None:
    column, place = clip(chunk.column, 60), f"row group {chunk.group}"
    assert file.footer is not None
    delta = "DELTA_BINARY_PACKED" in chunk.encodings
    if delta and chunk.type == "INT64":
        handle.seek(max(chunk.data_page_offset, 0))
        if handle.read(2) == V2_PAGE:
            found.add("E803", "DELTA_BINARY_PACKED in v2 data pages", table=file.name, row=place, column=column)
    if chunk.compression != layout()["compression"].upper():
        found.add("W806", f"compression {chunk.compression}", table=file.name, row=place, column=column)
    ruled = column in layout()["delta_columns"] and file.name in tables() and column in tables()[file.name].names
    if ruled and chunk.type in ("INT32", "INT64") and (not delta or chunk.encodings & DICTIONARY):
        message = f"encodings {', '.join(sorted(chunk.encodings))}"
        found.add("W807", message, table=file.name, row=place, column=column)
    small = file.footer.num_rows <= layout()["page_index_above_rows"]
    if small and file.footer.row_group(chunk.group).column(chunk.position).has_column_index:
        found.add("W808", f"a page index for {file.footer.num_rows} rows", table=file.name, row=place, column=column)
    if chunk.bloom_filter:
        found.add("W805", "has a bloom filter", table=file.name, row=place, column=column)


def order(subject: Subject, found: Findings) -> None:
    """W801: rows in the sort order of their table."""
    for file in subject.files.values():
        if file.name not in tables() or file.broken or file.path is None:
            continue
        keys = [key for key in tables()[file.name].sort if key in file.types]
        try:
            count, first = disorder(file.path, keys)
        except (OSError, ValueError, pa.ArrowException):
            found.cannot_run("W801", f"table {file.name}: its rows cannot be read")
            continue
        if count:
            found.add(
                "W801",
                f"comes before the row above it in ({', '.join(keys)})",
                table=file.name,
                row=f"row {first} of the file",
                count=count,
            )


def disorder(path: Path, keys: list[str]) -> tuple[int, int]:
    """Number of rows that sort before the row above them, and the first of these (0-based); (0, -1) when none."""
    count, first, seen = 0, -1, 0
    last: pa.Table | None = None
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=layout()["row_group_rows"], columns=keys):
            part = pa.Table.from_batches([batch]).select(keys)
            joined = part if last is None else pa.concat_tables([last, part])
            back = _goes_back(joined, keys)
            hits = int(pc.sum(back).as_py() or 0)
            if hits and first < 0:
                first = seen - (last is not None) + 1 + int(pc.index(back, True).as_py())
            count += hits
            seen += part.num_rows
            if part.num_rows:
                last = part.slice(part.num_rows - 1)
    return count, first


def _goes_back(part: pa.Table, keys: list[str]) -> Any:
    """Per row but the first: whether it sorts before the one above it."""
    equal: Any = pa.repeat(pa.scalar(True), max(part.num_rows - 1, 0))
    back: Any = pa.repeat(pa.scalar(False), max(part.num_rows - 1, 0))
    for key in keys:
        column = part.column(key).combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = column.chunk(0) if column.num_chunks else pa.array([], column.type)
        before, after = column.slice(0, max(len(column) - 1, 0)), column.slice(1)
        back = pc.or_(back, pc.and_(equal, pc.fill_null(pc.less(after, before), False)))
        equal = pc.and_(equal, pc.fill_null(pc.equal(after, before), False))
        if not pc.any(equal).as_py():
            break
    return back
