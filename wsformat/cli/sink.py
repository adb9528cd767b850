"""Rows into a file or a pipe: CSV, JSON, Arrow IPC, Parquet. A file appears whole or not at all."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from wsformat.cli.output import json_row, plain
from wsformat.errors import BadRequest, WsformatError
from wsformat.outputs import check_file

if TYPE_CHECKING:
    import duckdb

    from wsformat.bundle import Progress

FORMATS = {
    ".csv": "csv",
    ".json": "json",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".parquet": "parquet",
}
BATCH_ROWS = 131_072


def format_of(path: Path, name: str = "", *, option: str = "") -> str:
    """csv, json, arrow or parquet: as named, else by the file's name.

    Args:
        path: the file to write.
        name: the format as the caller named it.
        option: option of the command that names one, for the hint.

    Raises:
        BadRequest
    """
    chosen = name or FORMATS.get(path.suffix.lower(), "")
    if chosen not in FORMATS.values():
        raise BadRequest(
            f"{path}: no format {name!r}" if name else f"{path}: the file name tells no format",
            f"File names: {', '.join(FORMATS)}"
            + (f"; or {option} {', '.join(dict.fromkeys(FORMATS.values()))}." if option else "."),
        )
    return chosen


def stream(connection: duckdb.DuckDBPyConnection, sql: str) -> pa.RecordBatchReader:
    """Rows of a query, batch by batch.

    Raises:
        BadRequest: the query is wrong, with DuckDB's message.
    """
    import duckdb

    try:
        relation = connection.sql(sql)
        if relation is None:
            raise BadRequest("SQL: the statement gives no rows")
        reader = relation.to_arrow_reader(BATCH_ROWS)
        names = distinct(reader.schema.names)
        if names == reader.schema.names:
            return reader
        schema = pa.schema([field.with_name(name) for field, name in zip(reader.schema, names, strict=True)])
        return pa.RecordBatchReader.from_batches(schema, (batch.rename_columns(names) for batch in reader))
    except duckdb.Error as error:
        raise BadRequest(f"SQL: {error}", "Tables and views: `wsformat info` lists them.") from error


def distinct(names: list[str]) -> list[str]:
    """Column names of a result, each once: a, a_1, a_2, as DuckDB does it. JSON would keep the last one alone."""
    result: list[str] = []
    for name in names:
        candidates = (name if n == 0 else f"{name}_{n}" for n in range(len(names) + 1))
        result.append(next(c for c in candidates if c not in result and (c == name or c not in names)))
    return result


def write_rows(
    reader: pa.RecordBatchReader, path: Path, *, name: str = "", force: bool = False, progress: Progress | None = None
) -> int:
    """Write rows to a file and return their number.

    Args:
        reader: the rows.
        path: the file; its name tells the format.
        name: csv, json, arrow or parquet, to say the format.
        force: replace a file that is there already.
        progress: called as rows are written.

    Raises:
        OutputExists: the file is there and ``force`` is false, or it is a directory.
        BadRequest: no such format.
    """
    import duckdb

    chosen = format_of(path, name)
    check_file(path, force=force)
    scratch = path.parent / f".{path.name}.partial-{os.getpid()}-{secrets.token_hex(4)}"
    try:
        count = 0
        with _writer(chosen, scratch, reader.schema) as write:
            for batch in reader:
                write(batch)
                count += batch.num_rows
                if progress is not None:
                    progress(path.name, count, -1)
        os.replace(scratch, path)
    except (OSError, pa.ArrowException, duckdb.Error) as error:
        # Arrow's errors of the system name the scratch file; what went wrong is in their number.
        number = error.errno if isinstance(error, OSError) else None
        reason = os.strerror(number) if number else str(error)
        raise WsformatError(f"{path}: cannot be written: {reason}") from error
    finally:
        scratch.unlink(missing_ok=True)
    return count


@contextmanager
def _writer(name: str, path: Path, schema: pa.Schema) -> Iterator[Callable[[pa.RecordBatch], object]]:
    """A function that writes batches to the file in that format."""
    if name == "csv":
        import pyarrow.csv as pc

        with pc.CSVWriter(path, schema, write_options=pc.WriteOptions(quoting_style="needed")) as csv:
            yield csv.write_batch
    elif name == "arrow":
        with pa.ipc.new_file(path, schema) as ipc:
            yield ipc.write_batch
    elif name == "parquet":
        import pyarrow.parquet as pq

        from wsformat.writer import parquet_options

        with pq.ParquetWriter(path, schema, **parquet_options("", schema)) as parquet:
            yield parquet.write_batch
    else:
        with path.open("w", encoding="utf-8") as file:
            first = True

            def write(batch: pa.RecordBatch) -> None:
                nonlocal first
                for row in batch.to_pylist():
                    file.write(("[\n " if first else ",\n ") + json_row(row))
                    first = False

            yield write
            file.write("[]\n" if first else "\n]\n")


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all.

    Raises:
        WsformatError: it cannot be written.
    """
    scratch = path.parent / f".{path.name}.partial-{os.getpid()}-{secrets.token_hex(4)}"
    try:
        scratch.write_text(text, encoding="utf-8")
        os.replace(scratch, path)
    except OSError as error:
        raise WsformatError(f"{path}: cannot be written: {error.strerror or error}") from error
    finally:
        scratch.unlink(missing_ok=True)


def print_csv(table: pa.Table) -> None:
    """Print an Arrow table as CSV to standard output."""
    import pyarrow.csv as pc

    sys.stdout.flush()
    pc.write_csv(table, sys.stdout.buffer, write_options=pc.WriteOptions(quoting_style="needed"))
    sys.stdout.buffer.flush()


def is_number(kind: pa.DataType) -> bool:
    """Whether values of that type read best when they end at the same column."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def exact(value: Any) -> str:
    """A value of a query for people, no digit lost."""
    if value is None:
        return "NULL"
    if isinstance(value, float):
        return repr(value)
    simple = plain(value)
    return simple if isinstance(simple, str) else json_row(simple)
