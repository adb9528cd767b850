"""Writing a bundle: physical layout, digests, manifest, and the atomic move into place."""

from __future__ import annotations

import hashlib
import os
import queue
import secrets
import shutil
import threading
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from wsformat import manifest as manifests
from wsformat.bundle import Bundle, Progress, TableData
from wsformat.digests import ColumnDigest, add_table, digestible
from wsformat.errors import MalformedInput, OutputExists, WsformatError
from wsformat.manifest import Manifest
from wsformat.tables import format_version, layout, tables
from wsformat.version import __version__

Item = TypeVar("Item")


def write_bundle(bundle: Bundle, target: Path, *, force: bool, progress: Progress | None) -> Bundle:
    """See :meth:`wsformat.bundle.Bundle.write`."""
    target = Path(os.path.abspath(target))
    check_target(target, force=force)
    scratch = target.parent / f".{target.name}.partial-{os.getpid()}-{secrets.token_hex(4)}"
    try:
        scratch.mkdir()
        entries = {}
        for name in [*[n for n in tables() if n in bundle.data], *[n for n in bundle.data if n not in tables()]]:
            entry = write_table(bundle.data[name], scratch / f"{name}.parquet", progress)
            if entry["rows"] == 0 and name != "captures":
                (scratch / entry["file"]).unlink()
            else:
                entries[name] = entry
        manifest = Manifest(
            # What a newer minor version brought is kept, so its number is kept too.
            version=max(format_version(), bundle.manifest.version, key=manifests.number),
            writer={"name": "wsformat", "version": __version__},
            tables=entries,
            sources=bundle.manifest.sources,
            extensions=bundle.manifest.extensions,
            extra=bundle.manifest.extra,
        )
        _write_text(scratch / manifests.NAME, manifest.dumps())
        _fsync(scratch)
        move_into_place(scratch, target, force=force)
    except OSError as error:
        raise WsformatError(f"{target}: cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return Bundle.open(target)


def check_target(target: Path, *, force: bool) -> None:
    """Refuse an output that is there, unless it is a bundle and ``force`` says to replace it, or that has no folder.

    Raises:
        OutputExists: it is there.
        WsformatError: there is no such folder.
    """
    if not (target.exists() or target.is_symlink()):
        if not target.parent.is_dir():
            raise WsformatError(f"{target.parent}: no such directory", "Create it, or choose another output.")
        return
    if not force:
        raise OutputExists(f"{target}: is there already; nothing was written", "Use --force to replace it.")
    is_bundle = target.is_dir() and not target.is_symlink() and (target / manifests.NAME).is_file()
    if not is_bundle:
        raise OutputExists(f"{target}: is there and is no bundle; --force replaces bundles only")


def move_into_place(scratch: Path, target: Path, *, force: bool) -> None:
    """Rename a finished directory to its name. A reader sees the old bundle, none, or the new one."""
    check_target(target, force=force)
    old = None
    if target.exists():
        old = target.parent / f".{target.name}.replaced-{os.getpid()}-{secrets.token_hex(4)}"
        os.rename(target, old)
    try:
        os.rename(scratch, target)
    except OSError:
        if old is not None:
            os.rename(old, target)
        raise
    _fsync(target.parent)
    if old is not None:
        shutil.rmtree(old, ignore_errors=True)


def write_table(data: TableData, path: Path, progress: Progress | None) -> dict[str, Any]:
    """Write one table file and return its manifest entry."""
    digests: dict[str, ColumnDigest] = {}
    rows = 0
    writer: pq.ParquetWriter | None = None
    checked = _checked(data)
    # Encoding is the larger half of the work, so what streams is made (and digested) in a thread beside it.
    streamed = data.rows < 0 or data.rows > layout()["row_group_rows"]
    with closing(ahead(checked) if streamed else checked) as parts:
        try:
            for part, digests in parts:  # noqa: B007 - the last digests count
                if writer is None:
                    writer = pq.ParquetWriter(path, part.schema, **parquet_options(data.name, part.schema))
                writer.write_table(part, row_group_size=layout()["row_group_rows"])
                rows += part.num_rows
                if progress is not None:
                    progress(data.name, rows, data.rows)
        finally:
            if writer is not None:
                writer.close()
    _fsync(path)
    return {
        "file": path.name,
        "rows": rows,
        "bytes": path.stat().st_size,
        "sha256": file_sha256(path),
        "columns": {name: digest.to_json() for name, digest in digests.items()},
    }


def _checked(data: TableData) -> Generator[tuple[pa.Table, dict[str, ColumnDigest]], None, None]:
    """Parts ready to be written, each with the digests of all rows up to its end."""
    digests: dict[str, ColumnDigest] | None = None
    for part in row_groups(_sorted(data)):
        _refuse_nulls(data.name, part)
        if digests is None:
            digests = {name: ColumnDigest() for name in digestible(part.schema)}
        digests = add_table(digests, part)
        yield part, digests


def ahead(parts: Iterator[Item], depth: int = 2) -> Generator[Item, None, None]:
    """The same items, made in a thread that runs up to ``depth`` items ahead.

    The iterator is used in that thread only; what it raises is raised here. Closing the generator stops the thread.
    """
    ready: queue.Queue[tuple[Any, BaseException | None]] = queue.Queue(depth)
    stop = threading.Event()
    end = object()

    def hand_over(item: Any, error: BaseException | None = None) -> None:
        while not stop.is_set():
            try:
                ready.put((item, error), timeout=0.1)
                return
            except queue.Full:
                continue

    def work() -> None:
        try:
            for item in parts:
                hand_over(item)
                if stop.is_set():
                    return
            hand_over(end)
        except BaseException as error:  # handed to the reader, which raises it
            hand_over(end, error)

    thread = threading.Thread(target=work, name="wsformat-ahead", daemon=True)
    thread.start()
    try:
        while True:
            item, error = ready.get()
            if error is not None:
                raise error
            if item is end:
                return
            yield item
    finally:
        stop.set()
        thread.join()


def parquet_options(name: str, schema: pa.Schema, rows: int = -1) -> dict[str, Any]:
    """Options of ``pyarrow.parquet.ParquetWriter`` for the layout of the standard."""
    rule = layout()
    delta = [f.name for f in schema if f.name in rule["delta_columns"] and pa.types.is_integer(f.type)]
    # Columns that stay the same for long runs: zstd takes them plain as small as a dictionary would, in half the time.
    plain = [f.name for f in schema if f.name in rule["plain_columns"] and pa.types.is_integer(f.type)]
    other = [f.name for f in schema if f.name not in (*delta, *plain) and not pa.types.is_boolean(f.type)]
    return {
        "compression": rule["compression"],
        "compression_level": rule["compression_level"],
        "data_page_version": rule["data_page_version"],
        "store_schema": rule["store_arrow_schema"],
        "use_dictionary": other or False,
        "column_encoding": dict.fromkeys(delta, "DELTA_BINARY_PACKED") or None,
        "write_statistics": [f.name for f in schema if f.name in rule["statistics_columns"]] or False,
        "write_page_index": rows > rule["page_index_above_rows"],
    }


def row_groups(parts: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Join and cut parts so that all but the last hold a whole number of row groups."""
    size = layout()["row_group_rows"]
    held: list[pa.Table] = []
    count = 0
    seen = False
    for part in parts:
        seen = True
        held.append(part)
        count += part.num_rows
        if count >= size:
            joined = pa.concat_tables(held, promote_options="permissive")
            whole = count - count % size
            yield joined.slice(0, whole)
            held, count = [joined.slice(whole)], count % size
    if seen and (count or held):
        yield pa.concat_tables(held, promote_options="permissive")


def _sorted(data: TableData) -> Iterator[pa.Table]:
    parts = iter(data.batches())
    if data.rows < 0 or data.path is not None or data.name not in tables():
        yield from parts
        return
    # Tables held in memory are put in order here; streams and files come in order.
    keys = tables()[data.name].sort
    for part in parts:
        yield part if in_order(part, keys) else part.sort_by([(key, "ascending") for key in keys])


def in_order(part: pa.Table, keys: tuple[str, ...]) -> bool:
    """Whether the rows are in ascending order of the key columns."""
    import pyarrow.compute as pc

    if part.num_rows < 2:
        return True
    undecided: Any = True
    for key in keys:
        column = part.column(key).combine_chunks()
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        before, after = column.slice(0, len(column) - 1), column.slice(1)
        if pc.any(pc.and_(pc.less(after, before), undecided)).as_py():
            return False
        undecided = pc.and_(pc.equal(before, after), undecided)
    return True


def _refuse_nulls(name: str, part: pa.Table) -> None:
    if name not in tables():
        return
    for column in tables()[name].columns:
        if not column.nullable and part.column(column.name).null_count:
            raise MalformedInput(
                f"table {name}, column {column.name}: holds nulls", "Write the column's default (-1, false or '')."
            )


def file_sha256(path: Path) -> str:
    """sha256 of a file's bytes, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    _fsync(path)


def _fsync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
