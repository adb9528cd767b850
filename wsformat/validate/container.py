"""Family 1xx: the files of the directory against the manifest."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from wsformat import manifest as manifests
from wsformat.derive import file_literal
from wsformat.validate import columns
from wsformat.validate.report import Findings, clip
from wsformat.validate.subject import Chunk, Subject, TableFile
from wsformat.writer import file_sha256


def directory(subject: Subject, found: Findings) -> None:
    """E109, W110, I113: what lies in the directory beside what the manifest lists."""
    assert subject.root is not None
    listed = {file.path.name for file in subject.files.values() if file.path}
    for entry in sorted(os.listdir(subject.root)):
        if entry in listed or entry == manifests.NAME:
            continue
        if entry.endswith(".parquet"):
            found.add("E109", "not listed in the manifest", row=clip(entry, 80))
        else:
            found.add("W110", "neither the manifest nor a table file", row=clip(entry, 80))
    name = subject.root.resolve().name
    if not name.endswith(".wsformat"):
        found.add("I113", f"the directory is called {clip(name, 80)}")


def footers(subject: Subject, found: Findings) -> None:
    """E102, E112, E103, E104, E106, E108: each listed file, as far as its footer tells."""
    with duckdb.connect() as connection:
        _footers(subject, found, connection)


def _footers(subject: Subject, found: Findings, connection: duckdb.DuckDBPyConnection) -> None:
    for name, file in subject.files.items():
        assert file.path is not None
        try:
            mode = os.lstat(file.path).st_mode
        except OSError:
            found.add("E102", "listed in the manifest, not in the directory", table=name, row=file.path.name)
            file.spoil("its file is missing")
            continue
        if not stat.S_ISREG(mode):
            found.add("E112", "no regular file", table=name, row=file.path.name)
            file.spoil("its file is no regular file")
            continue
        _footer(file, found, connection)


def _footer(file: TableFile, found: Findings, connection: duckdb.DuckDBPyConnection) -> None:
    assert file.path is not None
    stated = file.entry.get("bytes")
    size = file.path.stat().st_size
    if isinstance(stated, int) and stated != size:
        found.add("E104", f"{size} bytes, the manifest says {stated}", table=file.name, row=file.path.name)
    try:
        # DuckDB looks first: of a footer that makes no sense pyarrow may end the process instead of raising.
        file.chunks = _chunks(file.path, connection)
        file.footer = pq.read_metadata(file.path)
        file.types = columns.stored_types(file.footer.schema)
    except (OSError, ValueError, duckdb.Error, pa.ArrowException) as error:
        found.add("E103", str(error), table=file.name, row=file.path.name)
        file.spoil("it cannot be read")
        return
    rows = file.entry.get("rows")
    if isinstance(rows, int) and rows != file.footer.num_rows:
        found.add("E106", f"{file.footer.num_rows} rows, the manifest says {rows}", table=file.name)
    stated_digests = file.entry.get("columns")
    if isinstance(stated_digests, dict):
        integers = {column for column, type_name in file.types.items() if type_name in ("INT32", "INT64", "BOOLEAN")}
        for column in sorted(integers - set(stated_digests)):
            found.add("E108", "no digest in the manifest", table=file.name, column=column)
        for column in sorted(set(stated_digests) - set(file.types)):
            found.add(
                "E108", "the manifest has a digest, the file no such column", table=file.name, column=clip(column)
            )


def _chunks(path: Path, connection: duckdb.DuckDBPyConnection) -> list[Chunk]:
    rows = connection.execute(
        f"""SELECT row_group_id, column_id, path_in_schema, type, encodings, compression, data_page_offset,
                   bloom_filter_offset FROM parquet_metadata({file_literal(path)}) ORDER BY ALL"""
    ).fetchall()
    return [
        Chunk(group, index, column, kind, frozenset(encodings.split(", ")), compression, offset, bool(bloom))
        for group, index, column, kind, encodings, compression, offset, bloom in rows
    ]


def hashes(subject: Subject, found: Findings) -> None:
    """E105. A file whose size differs already is not hashed."""
    for name, file in subject.files.items():
        stated = file.entry.get("sha256")
        if file.path is None or file.footer is None or not isinstance(stated, str):
            continue
        if file.entry.get("bytes") != file.path.stat().st_size:
            continue
        actual = file_sha256(file.path)
        if actual != stated:
            message = f"sha256 {actual[:12]}..., the manifest says {clip(stated, 12)}..."
            found.add("E105", message, table=name, row=file.path.name)
