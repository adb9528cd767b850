"""Reading many bundles at once: all files of one table in one go, checked against the digests of their manifests."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wsformat import manifest as manifests
from wsformat.bundle import Bundle
from wsformat.derive import file_literal
from wsformat.errors import BadRequest, MalformedInput
from wsformat.lake.content import BLOCK, digests, starts_of
from wsformat.lake.footer import same_columns
from wsformat.lake.layout import Partition, narrow, partition_of
from wsformat.manifest import Manifest
from wsformat.tables import conform, format_version, tables

Source: TypeAlias = "Bundle | str | os.PathLike[str]"


READERS = 2
"""Tables that are read at the same time."""


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


@dataclass(frozen=True)
class Staged:
    """Captures ready to be written.

    Attributes:
        tables: rows of every table, in the standard's order.
        digests: of each capture's content.
        partitions: of each capture.
        manifests: what the manifests say about each capture, as JSON text.
        versions: format version of each capture's bundle.
        names: the bundle of each capture, for messages.
    """

    tables: dict[str, pa.Table]
    digests: dict[str, str]
    partitions: dict[str, Partition]
    manifests: dict[str, str]
    versions: dict[str, str]
    names: dict[str, str]

    def without(self, dropped: set[str]) -> Staged:
        """The same without some captures."""
        if not dropped:
            return self
        gone = pa.array(sorted(dropped))
        left = {n: t.filter(pc.invert(pc.is_in(t.column("capture_id"), gone))) for n, t in self.tables.items()}

        def rest(facts: dict[str, Any]) -> dict[str, Any]:
            return {capture: fact for capture, fact in facts.items() if capture not in dropped}

        return Staged(
            {name: table for name, table in left.items() if table.num_rows},
            rest(self.digests),
            rest(self.partitions),
            rest(self.manifests),
            rest(self.versions),
            rest(self.names),
        )


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
    if manifest.version != format_version():
        return Opened(str(root), manifest, None, Bundle.open(root))
    return Opened(str(root), manifest, root, None)


def batches(opened: Iterable[Opened], captures: int, rows: int) -> Iterator[list[Opened]]:
    """Bundles in groups of at most so many, or so many rows."""
    group: list[Opened] = []
    held = 0
    for one in opened:
        if group and (len(group) >= captures or held + one.rows > rows):
            yield group
            group, held = [], 0
        group.append(one)
        held += one.rows
    if group:
        yield group


def stage(group: Sequence[Opened]) -> Iterator[Staged]:
    """Read bundles. A capture that several of them hold comes in a part of its own for each further time.

    Raises:
        MalformedInput: a bundle that is damaged: a file is missing, rows differ from the digests, a row's capture is
            unknown, a column holds nulls.
    """
    engine = duckdb.connect()
    owned: list[tuple[Opened, list[str]]] = []
    listed = _read(engine, "captures", group)
    index = listed[0] if listed else None
    ids = index.column("capture_id").to_pylist() if index is not None else []
    place = 0
    for one, count in zip(listed[1] if listed else [], listed[2] if listed else [], strict=True):
        owned.append((one, ids[place : place + count]))
        place += count
    if len(owned) < len(group):
        lacking = next(one for one in group if all(one is not held for held, _ in owned))
        raise MalformedInput(f"{lacking.name}: the table captures is empty")
    rest = owned
    while rest:
        seen: set[str] = set()
        now: list[tuple[Opened, list[str]]] = []
        later: list[tuple[Opened, list[str]]] = []
        for one, captures in rest:
            if len(set(captures)) < len(captures):
                raise MalformedInput(f"{one.name}: a capture_id occurs twice in captures", "See `wsformat validate`.")
            (later if seen & set(captures) else now).append((one, captures))
            seen |= set(captures)
        yield _stage_distinct(engine, now, index if len(now) == len(owned) else None)
        rest = later


def _stage_distinct(
    engine: duckdb.DuckDBPyConnection, owned: list[tuple[Opened, list[str]]], index: pa.Table | None
) -> Staged:
    """Read bundles that share no capture; ``index``: their rows of captures, if they have been read already."""
    if index is None:
        found = _read(engine, "captures", [one for one, _ in owned])
        assert found is not None
        index = found[0]
    versions = {capture: one.manifest.version for one, captures in owned for capture in captures}
    partitions = {
        row["capture_id"]: partition_of(versions[row["capture_id"]], row["arch"], row["created_unix_ns"])
        for row in index.select(["capture_id", "arch", "created_unix_ns"]).to_pylist()
    }
    # By partition and then by capture, as files are written: what is read is then nearly always in order.
    owned = sorted(owned, key=lambda item: (partitions[item[1][0]], item[1][0]))
    group = [one for one, _ in owned]
    names = dict.fromkeys(name for one in group for name in (one.bundle.data if one.bundle else one.manifest.tables))
    held = {"captures": ordered("captures", index, partitions)}

    def rows(name: str) -> pa.Table | None:
        read = _read(engine.cursor(), name, group)
        if read is None:
            return None
        strange = set(starts_of(narrow(read[0]))[0]) - partitions.keys()
        if strange:
            raise MalformedInput(
                f"table {name}: rows of capture {min(strange)!r}, which no bundle lists in captures",
                "Run `wsformat validate` on the bundles.",
            )
        return ordered(name, read[0], partitions)

    rest = [
        n for n in [*[n for n in tables() if n in names], *[n for n in names if n not in tables()]] if n != "captures"
    ]
    # Most of the time goes into opening small files: two tables at a time are a sixth quicker on two cores.
    with ThreadPoolExecutor(READERS) as pool:
        held |= {name: table for name, table in zip(rest, pool.map(rows, rest), strict=True) if table is not None}
    return Staged(
        held,
        digests(held),
        partitions,
        {capture: _manifest_of(one.manifest, capture) for one, captures in owned for capture in captures},
        versions,
        {capture: one.name for one, captures in owned for capture in captures},
    )


def _manifest_of(manifest: Manifest, capture: str) -> str:
    """What belongs to one capture: sources that name it, or name none; extensions; extra keys."""
    sources = []
    for entry in manifest.sources:
        named = entry.get("capture_ids")
        if not named:
            sources.append(dict(entry))
        elif capture in named:
            sources.append({**entry, "capture_ids": [capture]})
    facts = {"sources": sources, "extensions": list(manifest.extensions), "extra": dict(manifest.extra)}
    return json.dumps(facts, ensure_ascii=False)


def _read(
    engine: duckdb.DuckDBPyConnection, name: str, group: Sequence[Opened]
) -> tuple[pa.Table, list[Opened], list[int]] | None:
    """Rows of one table of all bundles, the bundles that have it, and how many rows each has."""
    files = [one for one in group if one.root is not None and one.manifest.tables.get(name, {}).get("rows", 1)]
    files = [one for one in files if name in one.manifest.tables]
    parts, owners, counts = [], [], []
    if files:
        data = _read_files(engine, name, files)
        counts = [int(one.manifest.tables[name].get("rows", -1)) for one in files]
        if sum(counts) != data.num_rows or min(counts) < 0:
            _blame(name, files, f"table {name}: the number of rows is not that of the manifests")
        _check_digests(name, data, files, counts)
        parts, owners = [data], list(files)
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


def _read_files(engine: duckdb.DuckDBPyConnection, name: str, files: Sequence[Opened]) -> pa.Table:
    paths = [_path(one, name) for one in files]
    listed = ", ".join(file_literal(path) for path in paths)
    union = "" if same_columns(paths) else ", union_by_name = true"
    try:
        data = engine.sql(f"SELECT * FROM read_parquet([{listed}], hive_partitioning = false{union})").to_arrow_table()
    except duckdb.Error as error:
        _blame(name, files, f"table {name}: {str(error).splitlines()[0]}")
    return _plain(name, conform(name, data), f"{len(files)} bundles")


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
    starts = np.concatenate(([0], np.cumsum(counts)[:-1])).astype(np.int64)
    for field in data.schema:
        if field.type not in (pa.int32(), pa.int64(), pa.bool_()):
            continue
        wanted = [one.manifest.tables[name].get("columns", {}).get(field.name) for one in files]
        if not any(wanted):
            continue
        values = data.column(field.name).to_numpy(zero_copy_only=False)
        sums = np.add.reduceat(values, starts, dtype=np.int64).view(np.uint64).tolist()
        xors = np.bitwise_xor.reduceat(values, starts).astype(np.int64).view(np.uint64).tolist()
        for one, want, count, total, xor in zip(files, wanted, counts, sums, xors, strict=True):
            if want and want != {"count": count, "sum": f"{total:016x}", "xor": f"{xor:016x}"}:
                raise MalformedInput(
                    f"{one.name}: table {name}, column {field.name}: values differ from the manifest's digest",
                    "The file was changed or damaged; see `wsformat validate`, or `wsformat seal` after an edit.",
                )


def ordered(name: str, data: pa.Table, partitions: Mapping[str, Partition] | None = None) -> pa.Table:
    """Rows in the table's sort order, those of a partition together; a capture that is in order is moved as a whole."""
    data = narrow(data)
    ids = data.column("capture_id").chunk(0)
    captures = ids.dictionary.to_pylist()
    places = [(partitions[capture], capture) if partitions else capture for capture in captures]
    rank = np.empty(len(captures), dtype=np.int32)
    rank[sorted(range(len(captures)), key=places.__getitem__)] = np.arange(len(captures), dtype=np.int32)
    codes = rank[ids.indices.to_numpy(zero_copy_only=False)]
    if np.any(codes[1:] < codes[:-1]):
        order = np.argsort(codes, kind="stable")
        data, codes = data.take(pa.array(order)), codes[order]
    keys = [key for key in (tables()[name].sort if name in tables() else ()) if key != "capture_id"]
    ranks = [_ranks(data.column(key)) for key in keys]
    if not _ascending([codes, *ranks]):
        data = data.take(pa.array(np.lexsort([*reversed(ranks), codes])))
    return data


def _ranks(column: pa.ChunkedArray) -> Any:
    """Numbers that are ordered as the values of a key column of one chunk are; texts by their bytes, null last."""
    held = column.chunk(0)
    if not pa.types.is_dictionary(held.type):
        return held.to_numpy(zero_copy_only=False)
    texts = held.dictionary.to_pylist()
    rank = np.empty(len(texts) + 1, dtype=np.int32)
    rank[sorted(range(len(texts)), key=texts.__getitem__)] = np.arange(len(texts), dtype=np.int32)
    rank[len(texts)] = len(texts)
    return rank[held.indices.fill_null(len(texts)).to_numpy(zero_copy_only=False)]


def _ascending(keys: Sequence[Any]) -> bool:
    """Whether rows are in ascending order of number columns, the first key first."""
    rows = len(keys[0])
    for start in range(0, rows, BLOCK):  # what the processor's cache holds
        undecided: Any = True
        for key in keys:
            part = key[start : start + BLOCK + 1]
            if np.any(undecided & (part[1:] < part[:-1])):
                return False
            undecided = undecided & (part[1:] == part[:-1])
    return True
