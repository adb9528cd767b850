"""One table of many bundles in one go, checked against the digests of their manifests."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import duckdb
import numpy as np
import pyarrow as pa

from wsformat import manifest as manifests
from wsformat.bundle import Bundle
from wsformat.derive import file_literal
from wsformat.errors import BadRequest, MalformedInput
from wsformat.lake.content import BLOCK
from wsformat.lake.footer import same_columns
from wsformat.lake.index import quote
from wsformat.lake.layout import narrow
from wsformat.manifest import Manifest
from wsformat.tables import conform, format_version, tables

Source: TypeAlias = "Bundle | str | os.PathLike[str]"

LONG = 500
"""Rows a bundle from which on a table's texts are read as numbers of a list that is known beforehand."""
MOST_TEXTS = 5_000
"""Texts of such a list."""
MOST_ROWS = 2**31
"""Rows of a chunk, whatever manifests say."""
ENGINE = (
    # One thread reads small files with a quarter less work than two, which DuckDB keeps waiting for each other.
    "SET threads = 1",
    # A bundle is read once and does not change meanwhile; its digests would tell.
    "SET validate_external_file_cache = 'NO_VALIDATION'",
)


def open_engine() -> duckdb.DuckDBPyConnection:
    """A DuckDB connection that reads many small files; threads may share it, each by a cursor of its own."""
    engine = duckdb.connect()
    for setting in ENGINE:
        engine.execute(setting)
    return engine


@dataclass(frozen=True)
class Opened:
    """A bundle whose manifest has been read: its name, and its folder, or itself when it lives in memory."""

    name: str
    manifest: Manifest
    root: Path | None
    bundle: Bundle | None

    @property
    def rows(self) -> int:
        """Rows of all tables, as far as the manifest says."""
        return sum(int(entry.get("rows", 0)) for entry in self.manifest.tables.values())


def open_source(source: Source) -> Opened:
    """Read the manifest of a bundle.

    Raises:
        MalformedInput, UnsupportedVersion: no bundle that can be read.
    """
    if isinstance(source, Bundle):
        if source.path is None:
            return Opened("a bundle in memory", source.manifest, None, source)
        source = source.path
    root = Path(source)
    file = root / manifests.NAME
    if not file.is_file():
        Bundle.open(root)  # says what is wrong
    manifest = manifests.parse(manifests.read_text(file), str(file))
    _check_entries(manifest, str(file))
    if manifest.version != format_version():
        return Opened(str(root), manifest, None, Bundle.open(root))
    return Opened(str(root), manifest, root, None)


def _check_entries(manifest: Manifest, where: str) -> None:
    """Raise MalformedInput for what other readers pass over in a manifest, and an addition relies on."""
    for name, entry in manifest.tables.items():
        rows, columns = entry.get("rows", 0), entry.get("columns", {})
        if type(rows) is not int or not 0 <= rows < 2**63:
            raise MalformedInput(f"{where}: table {name[:60]!r}: rows {rows!r} is no number of rows")
        if not isinstance(columns, dict):
            raise MalformedInput(f"{where}: table {name[:60]!r}: columns is no object")
    if not all(isinstance(entry, dict) for entry in (*manifest.sources, *manifest.extensions)):
        raise MalformedInput(f"{where}: sources and extensions must be arrays of objects")
    if not all(isinstance(entry.get("capture_ids") or [], list) for entry in manifest.sources):
        raise MalformedInput(f"{where}: sources: capture_ids must be arrays")


def read(
    engine: duckdb.DuckDBPyConnection, name: str, group: Sequence[Opened], texts: Mapping[str, set[str]] | None = None
) -> tuple[pa.Table, list[Opened], list[int]] | None:
    """Rows of one table of all bundles, the bundles that have it, and how many rows each has.

    Args:
        engine, name, group: what to read with, and what.
        texts: values that columns of such names are likely to have, which are then read quicker.
    """
    files = [one for one in group if one.root is not None and name in one.manifest.tables]
    parts, owners, counts = [], [], []
    if files:
        data = _read_files(engine, name, files, texts or {})
        counts = [int(one.manifest.tables[name].get("rows", -1)) for one in files]
        if sum(counts) != data.num_rows or min(counts) < 0:
            _blame(name, files, f"table {name}: the number of rows is not that of the manifests")
        owners, counts = [o for o, n in zip(files, counts, strict=True) if n], [n for n in counts if n]
        _check_digests(name, data, owners, counts)
        parts = [data] if counts else []
    for one in group:
        if one.bundle is not None and name in one.bundle.data:
            rows = conform(name, one.bundle.table(name))
            if rows.num_rows:
                parts.append(_plain(name, rows, one.name))
                owners.append(one)
                counts.append(rows.num_rows)
    if not parts:
        return None
    return _joined(name, parts), owners, counts


def _read_files(
    engine: duckdb.DuckDBPyConnection, name: str, files: Sequence[Opened], texts: Mapping[str, set[str]]
) -> pa.Table:
    paths = [_path(one, name) for one in files]
    listed = ", ".join(file_literal(path) for path in paths)
    union = "" if same_columns(paths) else ", union_by_name = true"
    source = f"FROM read_parquet([{listed}], hive_partitioning = false{union})"
    rows = sum(int(one.manifest.tables[name].get("rows", 0)) for one in files)

    def fetch(columns: str) -> pa.Table:
        # In one chunk: joining them costs as much as reading them.
        return engine.sql(f"SELECT {columns} {source}").to_arrow_table(batch_size=min(max(rows, 1), MOST_ROWS))

    try:
        data = _numbered(name, fetch, texts) if rows >= LONG * len(files) else None
        data = fetch("*") if data is None else data
    except duckdb.Error as error:
        _blame(name, files, f"table {name}: {str(error).splitlines()[0]}")
    return _plain(name, conform(name, data), f"{len(files)} bundles")


def _numbered(name: str, fetch: Callable[[str], pa.Table], texts: Mapping[str, set[str]]) -> pa.Table | None:
    """The rows with texts as numbers of a list that is known, which DuckDB reads in half the time; None: one is not
    in the list, or the files cannot be read."""
    columns = [column.name for column in tables()[name].columns if column.type == "STRING"] if name in tables() else []
    kinds = {column: sorted(texts[column]) for column in columns if 0 < len(texts.get(column, ())) <= MOST_TEXTS}
    if not kinds:
        return None
    casts = [f"CAST({c} AS ENUM({', '.join(map(quote, listed))})) AS {c}" for c, listed in kinds.items()]
    try:
        data = fetch(f"* REPLACE ({', '.join(casts)})")
    except duckdb.Error:
        return None
    for column in kinds:
        index = data.column_names.index(column)
        parts = [
            pa.DictionaryArray.from_arrays(c.indices.cast(pa.int32()), c.dictionary) for c in data.column(index).chunks
        ]
        data = data.set_column(index, column, pa.chunked_array(parts, pa.dictionary(pa.int32(), pa.string())))
    return data


def _path(one: Opened, name: str) -> Path:
    assert one.root is not None
    return one.root / str(one.manifest.tables[name]["file"])


def _blame(name: str, files: Sequence[Opened], otherwise: str) -> Any:
    """Raise for the bundle that cannot be read, or whose rows are not those of its manifest."""
    for one in files:
        assert one.root is not None
        bundle = Bundle.open(one.root)
        found, listed = bundle.table(name).num_rows, one.manifest.tables[name].get("rows", -1)
        if found != listed:
            raise MalformedInput(
                f"{one.name}: table {name} has {found} rows, its manifest says {listed}", "See `wsformat validate`."
            )
    raise MalformedInput(otherwise)


def _plain(name: str, data: pa.Table, whose: str) -> pa.Table:
    """Null-free where the standard wants it; extension columns as :mod:`wsformat.merge` fills them."""
    known = {column.name: column for column in tables()[name].columns} if name in tables() else {}
    for index, field in enumerate(data.schema):
        column = data.column(index)
        if not column.null_count:
            continue
        if field.name in known and not known[field.name].nullable:
            raise MalformedInput(f"{whose}: table {name}, column {field.name}: holds nulls", "See `wsformat validate`.")
        if field.name not in known and pa.types.is_integer(field.type):
            data = data.set_column(index, field, column.fill_null(-1))
        elif field.name not in known and pa.types.is_boolean(field.type):
            data = data.set_column(index, field, column.fill_null(False))
    if "capture_id" not in data.column_names:
        raise MalformedInput(f"{whose}: table {name} has no column capture_id", "See `wsformat validate`.")
    return narrow(data)


def _joined(name: str, parts: list[pa.Table]) -> pa.Table:
    if len(parts) == 1:
        return parts[0]
    try:
        return _plain(name, pa.concat_tables(parts, promote_options="default"), "bundles")
    except pa.ArrowException as error:
        raise BadRequest(f"table {name}: a column has different types: {str(error).splitlines()[0]}") from error


def _check_digests(name: str, data: pa.Table, files: Sequence[Opened], counts: list[int]) -> None:
    """Compare each bundle's rows with the column digests of its manifest, which a misread would not match."""
    starts = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    turns = _turns(starts)
    for field in data.schema:
        if field.type not in (pa.int32(), pa.int64(), pa.bool_()):
            continue
        wanted = [one.manifest.tables[name].get("columns", {}).get(field.name) for one in files]
        if not any(wanted):
            continue
        values = data.column(field.name).to_numpy(zero_copy_only=False)
        sums, xors = [], []
        for first, last in turns:
            # Some thousand rows at a time stay in the processor's cache; adding up as another type is ten times slower.
            part = values[starts[first] : starts[last]].astype(np.int64)
            begins = starts[first:last] - starts[first]
            sums += np.add.reduceat(part, begins).view(np.uint64).tolist()
            xors += np.bitwise_xor.reduceat(part, begins).view(np.uint64).tolist()
        for one, want, count, total, xor in zip(files, wanted, counts, sums, xors, strict=True):
            if want and want != {"count": count, "sum": f"{total:016x}", "xor": f"{xor:016x}"}:
                raise MalformedInput(
                    f"{one.name}: table {name}, column {field.name}: values differ from the manifest's digest",
                    "The file was changed or damaged; see `wsformat validate`, or `wsformat seal` after an edit.",
                )


def _turns(starts: Any) -> list[tuple[int, int]]:
    """Bundles, by the rows where they start, in groups of about BLOCK rows: the first of each and the one behind it."""
    found, first = [], 0
    while first < len(starts) - 1:
        last = max(int(np.searchsorted(starts, starts[first] + BLOCK, side="right")) - 1, first + 1)
        found.append((first, last))
        first = last
    return found
