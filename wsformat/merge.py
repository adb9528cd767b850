"""Merging bundles: every row carries its capture_id, so same-named tables are concatenated.

Rows are streamed in the order of capture_id; no table is held in memory as a whole.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from wsformat.bundle import Bundle, Progress, TableData
from wsformat.errors import BadRequest, MalformedInput
from wsformat.manifest import Manifest, number
from wsformat.tables import conform, format_version, tables
from wsformat.writer import in_order


@dataclass(frozen=True, slots=True)
class _Run:
    """Captures that follow one another in the result and come from one bundle."""

    bundle: Bundle
    low: str
    high: str
    whole: bool


def merge(
    bundles: Sequence[Bundle],
    target: str | os.PathLike[str],
    *,
    force: bool = False,
    progress: Progress | None = None,
) -> Bundle:
    """Write one bundle that holds the captures of several.

    A capture that two of them hold is taken once, when all its rows are the same in both.

    Args:
        bundles: one or more.
        target: directory of the result.
        force: replace a bundle that is there already.
        progress: called as rows are written.

    Raises:
        BadRequest: no bundle, or two that cannot be in one: the same capture with different rows, an extension in
            two versions, or a manifest key with two values.
        MalformedInput: a bundle has rows without a capture.
        OutputExists: the target is there and ``force`` is false.
    """
    return merged(bundles).write(target, force=force, progress=progress)


def merged(bundles: Sequence[Bundle]) -> Bundle:
    """The merged bundle, not written yet; its tables are streams over those of ``bundles``. Raises as :func:`merge`."""
    if not bundles:
        raise BadRequest("no bundle to merge")
    owners: dict[str, Bundle] = {}
    for bundle in bundles:
        for capture in _captures(bundle):
            if capture in owners:
                _require_same(owners[capture], bundle, capture)
            else:
                owners[capture] = bundle
    runs = _runs(owners)
    names = dict.fromkeys([*tables(), *(name for bundle in bundles for name in bundle.data)])
    data = {
        name: TableData(name, -1, _stream(name, runs)) for name in names if any(name in b.data for b in owners.values())
    }
    return Bundle(data, _manifest(bundles))


def _captures(bundle: Bundle) -> list[str]:
    listed: list[str] = bundle.table("captures").column("capture_id").to_pylist()
    if not listed:
        raise MalformedInput(f"{_name(bundle)}: the table captures is empty")
    if len(set(listed)) != len(listed):
        raise MalformedInput(f"{_name(bundle)}: a capture_id occurs twice in captures", "See `wsformat validate`.")
    return listed


def _runs(owners: Mapping[str, Bundle]) -> list[_Run]:
    held: dict[int, int] = {}
    for bundle in owners.values():
        held[id(bundle)] = held.get(id(bundle), 0) + 1
    runs: list[_Run] = []
    size = 0
    for capture in sorted(owners):
        bundle = owners[capture]
        if runs and runs[-1].bundle is bundle:
            runs[-1] = _Run(bundle, runs[-1].low, capture, False)
            size += 1
        else:
            runs.append(_Run(bundle, capture, capture, False))
            size = 1
        # All captures of the bundle in one run: its files can be passed on unfiltered.
        whole = size == held[id(bundle)] == bundle.rows("captures")
        runs[-1] = _Run(bundle, runs[-1].low, capture, whole)
    return runs


def _stream(name: str, runs: Sequence[_Run]) -> Any:
    def batches() -> Iterator[pa.Table]:
        columns = _all_columns(name, runs)
        for run in runs:
            part = run.bundle.data.get(name)
            if part is None:
                continue
            for rows in _ordered(part) if run.whole else _between(part, run.low, run.high):
                if rows.num_rows:
                    yield _with_columns(name, rows, columns)

    return batches


def _all_columns(name: str, runs: Sequence[_Run]) -> dict[str, pa.DataType]:
    """Extension columns of any of the bundles: name -> type."""
    known = set(tables()[name].names) if name in tables() else set()
    columns: dict[str, pa.DataType] = {}
    for run in runs:
        part = run.bundle.data.get(name)
        first = next(iter(part.batches()), None) if part is not None else None
        for field in first.schema if first is not None else ():
            plain = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
            if field.name in known:
                continue
            if columns.setdefault(field.name, plain) != plain:
                raise BadRequest(
                    f"table {name}, column {field.name}: {columns[field.name]} in one bundle, {plain} in another"
                )
    return columns


def _with_columns(name: str, rows: pa.Table, columns: Mapping[str, pa.DataType]) -> pa.Table:
    """The rows with every extension column: absent ones become null (-1 and false for integers and booleans)."""
    rows = conform(name, rows)
    for column, kind in columns.items():
        if column in rows.column_names:
            index = rows.column_names.index(column)
            rows = rows.set_column(index, column, rows.column(column).cast(kind))
            continue
        fill: Any = -1 if pa.types.is_integer(kind) else False if pa.types.is_boolean(kind) else None
        rows = rows.append_column(column, pa.repeat(pa.scalar(fill, kind), rows.num_rows))
    own = tables()[name].names if name in tables() else []
    return rows.select([*own, *columns])


def _ordered(part: TableData) -> Iterator[pa.Table]:
    """Rows in parts; a table held in memory is put in order first, as writing it would do."""
    keys = tables()[part.name].sort if part.name in tables() and part.path is None and part.rows >= 0 else ()
    for rows in part.batches():
        yield rows if in_order(rows, keys) else rows.sort_by([(key, "ascending") for key in keys])


def _between(part: TableData, low: str, high: str) -> Iterator[pa.Table]:
    """Rows with ``low`` <= capture_id <= ``high``; row groups that cannot hold any are not read."""
    for rows in _ordered(part) if part.path is None else _row_groups(part, low, high):
        ids = rows.column("capture_id")
        if pa.types.is_dictionary(ids.type):
            ids = ids.cast(ids.type.value_type)
        yield rows.filter(pc.and_(pc.greater_equal(ids, low), pc.less_equal(ids, high)))


def _row_groups(part: TableData, low: str, high: str) -> Iterator[pa.Table]:
    assert part.path is not None
    try:
        with pq.ParquetFile(part.path) as file:
            index = file.schema_arrow.get_field_index("capture_id")
            for group in range(file.metadata.num_row_groups):
                seen = file.metadata.row_group(group).column(index).statistics if index >= 0 else None
                if seen is not None and seen.has_min_max and (seen.max < low or seen.min > high):
                    continue
                yield conform(part.name, file.read_row_group(group))
    except (OSError, ValueError, pa.ArrowException) as error:
        raise MalformedInput(f"{part.path}: {str(error).splitlines()[0]}") from error


def _require_same(one: Bundle, other: Bundle, capture: str) -> None:
    for name in dict.fromkeys([*one.data, *other.data]):
        if not _same_rows(one.data.get(name), other.data.get(name), capture):
            raise BadRequest(
                f"capture {capture} is in {_name(one)} and in {_name(other)}, with different rows in table {name}",
                "One of them was edited. Merge only the one that you trust.",
            )


def _same_rows(one: TableData | None, other: TableData | None, capture: str) -> bool:
    """Whether both hold the same rows of a capture, in whatever order."""
    mine, theirs = _of_capture(one, capture), _of_capture(other, capture)
    if mine.num_rows != theirs.num_rows:
        return False
    if mine.num_rows == 0 or mine.equals(theirs):
        return True
    if set(mine.column_names) != set(theirs.column_names):
        return False
    order = [(column, "ascending") for column in mine.column_names]
    return bool(mine.sort_by(order).equals(theirs.select(mine.column_names).sort_by(order)))


def _of_capture(part: TableData | None, capture: str) -> pa.Table:
    found = list(_between(part, capture, capture)) if part is not None else []
    found = [rows for rows in found if rows.num_rows]
    if not found:
        return pa.table({})
    rows = pa.concat_tables(found, promote_options="permissive").combine_chunks()
    plain = [
        rows.column(i).cast(f.type.value_type) if pa.types.is_dictionary(f.type) else rows.column(i)
        for i, f in enumerate(rows.schema)
    ]
    return pa.Table.from_arrays(plain, names=rows.column_names).combine_chunks()


def _manifest(bundles: Sequence[Bundle]) -> Manifest:
    sources: list[Mapping[str, Any]] = []
    extensions: dict[str, Mapping[str, Any]] = {}
    extra: dict[str, Any] = {}
    version = format_version()
    for bundle in bundles:
        manifest = bundle.manifest
        version = max(version, manifest.version, key=number)
        sources += [entry for entry in manifest.sources if entry not in sources]
        for entry in manifest.extensions:
            name = str(entry.get("name", ""))
            if name in extensions and extensions[name].get("version") != entry.get("version"):
                versions = f"{extensions[name].get('version')} and {entry.get('version')}"
                raise BadRequest(
                    f"extension {name} is there in versions {versions}", "Bring both to one version first."
                )
            extensions[name] = _joined(extensions.get(name), entry)
        for key, value in manifest.extra.items():
            if extra.setdefault(key, value) != value:
                raise BadRequest(f"manifest key {key!r} has different values in the bundles", "Remove it from one.")
    return Manifest(version, sources=tuple(sources), extensions=tuple(extensions.values()), extra=extra)


def _joined(one: Mapping[str, Any] | None, other: Mapping[str, Any]) -> Mapping[str, Any]:
    if one is None:
        return other
    joined = {**other, **one}
    for key in ("tables", "columns"):
        both = [*one.get(key, ()), *other.get(key, ())]
        if both:
            joined[key] = list(dict.fromkeys(both))
    if other.get("must_understand") is True:
        joined["must_understand"] = True
    return joined


def _name(bundle: Bundle) -> str:
    return Path(bundle.path).name if bundle.path is not None else "a bundle in memory"
