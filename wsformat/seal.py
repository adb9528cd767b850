"""Sealing: table files that pandas, Polars or DuckDB rewrote become a conforming bundle again.

A rewrite loses the physical layout, the manifest's hashes and often the exact types. What can be put back without
losing a value is put back; anything else is refused with the place and the reason.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from wsformat import manifest as manifests
from wsformat.bundle import Bundle, Progress, TableData
from wsformat.derive import parquet_source
from wsformat.errors import InvalidBundle, MalformedInput, OutputExists, WsformatError
from wsformat.manifest import Manifest, number
from wsformat.tables import ARROW_TYPES, Column, format_version, tables
from wsformat.validate import validate
from wsformat.validate.database import quoted
from wsformat.validate.layout import disorder
from wsformat.writer import check_target, move_into_place, write_bundle

EXACT = 2**53
"""Above this a DOUBLE does not hold every integer."""
PANDAS_INDEX = "__index_level_"

CHANGED_LANES = """
SELECT l.capture_id, l.lane, COALESCE(k.n, 0) AS n,
       l.completeness = 'complete' AND COALESCE(k.n, 0) < l.records_kept AS thinned
FROM lanes l LEFT JOIN kept k ON k.capture_id = l.capture_id AND k.lane = l.lane
WHERE l.records_kept >= 0 AND l.records_kept <> COALESCE(k.n, 0)"""
NEW_LANES = """
SELECT l.* REPLACE (COALESCE(c.n, l.records_kept) AS records_kept,
                    CASE WHEN c.thinned THEN 'sampled' ELSE l.completeness END AS completeness)
FROM lanes l LEFT JOIN changed c ON c.capture_id = l.capture_id AND c.lane = l.lane"""
NEW_CAPTURES = """
SELECT c.* REPLACE (CASE WHEN c.completeness = 'complete' AND t.capture_id IS NOT NULL THEN 'sampled'
                         ELSE c.completeness END AS completeness)
FROM captures c LEFT JOIN (SELECT DISTINCT capture_id FROM changed WHERE thinned) t ON t.capture_id = c.capture_id"""


@dataclass(frozen=True, slots=True)
class Sealed:
    """Result of :func:`seal`.

    Attributes:
        bundle: the conforming bundle.
        notes: what was put back, one line each.
    """

    bundle: Bundle
    notes: tuple[str, ...]


def seal(
    directory: str | os.PathLike[str],
    target: str | os.PathLike[str] | None = None,
    *,
    force: bool = False,
    fill: bool = False,
    progress: Progress | None = None,
) -> Sealed:
    """Turn a directory with rewritten table files into a conforming bundle.

    Types are cast back where every value fits, rows are sorted, layout, hashes and digests are made anew. What the
    old manifest says of sources, extensions and other keys is kept; without one these are empty.

    Args:
        directory: holds ``TABLE.parquet`` files and, if possible, the old ``manifest.json``.
        target: directory of the result; None seals in place.
        force: replace a bundle that is at ``target`` already.
        fill: add columns that are missing, with the value that stands for unknown; those of a key never. Columns that
            came after the version in the old manifest are added always.
        progress: called as rows are written.

    Raises:
        MalformedInput: a file that is no table, a column that is missing, or a value that does not fit.
        InvalidBundle: the tables do not conform otherwise (such as rows whose lane was filtered away); nothing is
            written.
        OutputExists: the target is there and ``force`` is false, or it is no bundle.
        WsformatError: the target cannot be written.
    """
    root = Path(os.path.abspath(directory))
    if not root.is_dir():
        raise MalformedInput(f"{root}: no such directory")
    out = root if target is None else Path(os.path.abspath(target))
    in_place = out == root
    if not in_place:
        check_target(out, force=force)
    manifest = _manifest(root)
    notes: list[str] = []
    files = _table_files(root, manifest, strict=in_place)
    data = {name: _table(name, path, notes, manifest.version, fill=fill) for name, path in files.items()}
    scratch = out.parent / f".{out.name}.sealing-{os.getpid()}-{secrets.token_hex(4)}"
    try:
        recounted = _recounted(Bundle(data, manifest), files, notes)
        write_bundle(recounted, scratch, force=False, progress=progress)
        report = validate(scratch)
        if not report.ok:
            errors = [problem.text() for problem in report.problems if problem.level == "E"]
            raise InvalidBundle(
                f"{root}: cannot be sealed: {errors[0]}" + (f" (and {len(errors) - 1} more)" if errors[1:] else ""),
                report.problems,
                "Mend the tables first: rows that name others must keep them, and the other way round.",
            )
        if in_place and not (out / manifests.NAME).is_file():
            # Only a directory with a manifest counts as a bundle that may be replaced; this one lost its own.
            shutil.copy(scratch / manifests.NAME, out / manifests.NAME)
        move_into_place(scratch, out, force=force or in_place)
    except duckdb.Error as error:
        raise MalformedInput(f"{root}: {str(error).splitlines()[0]}") from error
    except OSError as error:
        raise WsformatError(f"{out}: cannot be written: {error.strerror or error}") from error
    except WsformatError as error:
        if str(scratch) not in error.message:
            raise
        raise type(error)(error.message.replace(str(scratch), str(out)), error.hint) from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return Sealed(Bundle.open(out), tuple(notes))


def _manifest(root: Path) -> Manifest:
    path = root / manifests.NAME
    if not path.exists():
        return Manifest(format_version())
    return manifests.parse(manifests.read_text(path), str(path))


def _table_files(root: Path, manifest: Manifest, *, strict: bool) -> dict[str, Path]:
    named = {str(entry["file"]): name for name, entry in manifest.tables.items()}
    files: dict[str, Path] = {}
    for entry in sorted(root.iterdir()):
        if entry.name == manifests.NAME:
            continue
        if entry.suffix != ".parquet" or entry.is_symlink() or not entry.is_file():
            if strict:
                raise OutputExists(
                    f"{entry}: is no table file; a directory that holds anything else is not sealed in place",
                    "Move it away, or seal to another directory.",
                )
            continue
        name = named.get(entry.name, entry.stem)
        if name not in tables() and "__" not in name and name not in manifest.tables:
            raise MalformedInput(
                f"{entry}: no table {name} in the standard", f"Tables: {', '.join(tables())}; others are vendor__name."
            )
        files[name] = entry
    if "captures" not in files:
        raise MalformedInput(f"{root}: no captures.parquet, so these are not the tables of a bundle")
    lost = sorted(set(manifest.tables) - set(files))
    if lost:
        raise MalformedInput(
            f"{root}: {', '.join(lost)} listed in the manifest, not in the directory",
            "Put the file back, or delete manifest.json if the table was dropped on purpose.",
        )
    return files


def _table(name: str, path: Path, notes: list[str], version: str, *, fill: bool) -> TableData:
    try:
        schema, rows = pq.read_schema(path), pq.read_metadata(path).num_rows
    except (OSError, ValueError, pa.ArrowException) as error:
        raise MalformedInput(f"{path}: cannot be read as Parquet: {str(error).splitlines()[0]}") from error
    dropped = [column for column in schema.names if column.startswith(PANDAS_INDEX)]
    notes += [f"{name}: left out {column}, the row labels of pandas" for column in dropped]
    own: tuple[Column, ...] = tables()[name].columns if name in tables() else ()
    keys = list(tables()[name].sort) if own else []
    missing = [column for column in own if column.name not in schema.names]
    for column in missing:
        key = column.name == "capture_id" or column.name in tables()[name].key
        # Nobody lost a column that the manifest's version did not have yet.
        later = number(column.since) > number(version)
        if key or not (fill or later):
            what = "it is part of the key" if key else f"what stands for unknown is {column.default!r}"
            raise MalformedInput(
                f"{path}: column {column.name} is missing",
                f"Add it; {what}." + ("" if key else " Or seal --fill adds all that are missing."),
            )
    if missing:
        notes.append(f"{name}: filled with what stands for unknown: {', '.join(c.name for c in missing)}")
    cast: dict[tuple[str, str], list[str]] = {}
    for column in own:
        if column not in missing and _plain(schema.field(column.name).type) != ARROW_TYPES[column.type]:
            cast.setdefault((str(schema.field(column.name).type), column.type), []).append(f"{name}.{column.name}")
    notes += [f"{', '.join(columns)}: {kind} brought back to {want}" for (kind, want), columns in cast.items()]
    known = {column.name for column in own}
    extra = [column for column in schema.names if column not in known and column not in dropped]
    order = [*(column.name for column in own if column not in missing), *extra]
    # A column of one value does not change the order.
    keys = [key for key in keys if key in order]
    sort = bool(keys) and disorder(path, keys)[0] > 0
    if sort:
        notes.append(f"{name}: rows sorted")

    def batches() -> Iterator[pa.Table]:
        for part in _sorted(path, order, keys) if sort else _in_order(path, order):
            yield _filled(_cast(part, path, {column.name: column for column in own}), own, extra)

    return TableData(name, -1 if rows else 0, batches)


def _recounted(bundle: Bundle, files: dict[str, Path], notes: list[str]) -> Bundle:
    """The bundle with ``records_kept`` of its lanes counted anew.

    A lane that was complete and has lost rows is sampled now: only chosen records are here, on purpose. The
    completeness of its capture follows.
    """
    sources = [parquet_source(files[name]) for name in ("events", "spans") if name in files]
    if "lanes" not in files or not sources:
        return bundle
    lanes, captures = bundle.table("lanes"), bundle.table("captures")
    rows = " UNION ALL ".join(f"SELECT CAST(capture_id AS VARCHAR) AS capture_id, lane FROM {s}" for s in sources)
    with duckdb.connect() as connection:
        connection.register("lanes", lanes)
        connection.register("captures", captures)
        connection.execute(
            f"CREATE TEMP TABLE kept AS SELECT capture_id, lane, COUNT(*) AS n FROM ({rows}) GROUP BY ALL"
        )
        changed = connection.sql(CHANGED_LANES).to_arrow_table()
        if not changed.num_rows:
            return bundle
        connection.register("changed", changed)
        new_lanes = connection.sql(NEW_LANES).to_arrow_table()
        new_captures = connection.sql(NEW_CAPTURES).to_arrow_table()
    thinned = pc.sum(changed.column("thinned")).as_py()
    notes.append(f"lanes: records_kept counted anew for {changed.num_rows} lanes, {thinned} of them sampled now")
    return bundle.with_tables({"lanes": new_lanes, "captures": new_captures})


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type as a Parquet file without Arrow's own schema would give it."""
    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    return pa.string() if pa.types.is_large_string(kind) or str(kind) == "string_view" else kind


def _in_order(path: Path, columns: list[str]) -> Iterator[pa.Table]:
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=131_072, columns=columns):
            yield pa.Table.from_batches([batch]).select(columns)


def _sorted(path: Path, columns: list[str], keys: list[str]) -> Iterator[pa.Table]:
    names, order = (", ".join(quoted(name) for name in part) for part in (columns, keys))
    with duckdb.connect() as connection:
        reader = connection.sql(f"SELECT {names} FROM {parquet_source(path)} ORDER BY {order}").to_arrow_reader(131_072)
        for batch in reader:
            yield pa.Table.from_batches([batch])


def _cast(part: pa.Table, path: Path, contract: dict[str, Column]) -> pa.Table:
    arrays: list[Any] = []
    for name in part.column_names:
        column = part.column(name)
        plain = _plain(column.type)
        if column.type != plain:
            column = column.cast(plain)
        arrays.append(_fitted(column, contract[name], path) if name in contract else column)
    return pa.table(arrays, names=part.column_names)


def _filled(part: pa.Table, own: tuple[Column, ...], extra: list[str]) -> pa.Table:
    """The columns of the standard in their order, those that are missing as constants, then all others."""
    arrays = {c.name: part.column(c.name) if c.name in part.column_names else _constant(c, part.num_rows) for c in own}
    return pa.table(arrays | {name: part.column(name) for name in extra})


def _constant(column: Column, rows: int) -> Any:
    return pa.repeat(pa.scalar(column.default, ARROW_TYPES[column.type]), rows)


def _fitted(column: Any, rule: Column, path: Path) -> Any:
    """The column in the standard's type.

    Raises:
        MalformedInput: a value would be lost.
    """
    where = f"{path}: column {rule.name}"
    want = ARROW_TYPES[rule.type]
    if column.null_count and not rule.nullable:
        raise MalformedInput(
            f"{where}: {column.null_count} values are null, which {rule.type} may not be",
            f"Fill them; what stands for unknown is {rule.default!r}.",
        )
    if column.type == want:
        return column
    if pa.types.is_floating(column.type) and pa.types.is_integer(want):
        largest = pc.max(pc.abs(column)).as_py()
        if largest is not None and largest > EXACT:
            raise MalformedInput(
                f"{where}: was turned into {column.type}, which does not hold values above 2^53 exactly",
                "Take the column from the original file: its values may be rounded.",
            )
    if pa.types.is_boolean(want) and pa.types.is_integer(column.type):
        low_high = pc.min_max(column)
        if low_high["min"].as_py() not in (None, 0, 1) or low_high["max"].as_py() not in (None, 0, 1):
            raise MalformedInput(f"{where}: holds numbers other than 0 and 1, {rule.type} is needed")
    numbers = (pa.types.is_integer, pa.types.is_floating)
    kind_of_number = any(test(column.type) for test in numbers)
    if (
        not kind_of_number
        or pa.types.is_string(want)
        or (pa.types.is_floating(column.type) and pa.types.is_boolean(want))
    ):
        raise MalformedInput(f"{where}: is {column.type}, {rule.type} is needed")
    try:
        return column.cast(want)
    except pa.ArrowInvalid as error:
        raise MalformedInput(
            f"{where}: {column.type} does not fit {rule.type}: {str(error).splitlines()[0]}"
        ) from error
