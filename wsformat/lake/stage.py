"""Many bundles, read and put in the order in which a lake keeps them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wsformat.errors import MalformedInput
from wsformat.lake.content import BLOCK, digests, starts_of
from wsformat.lake.layout import Partition, narrow, partition_of
from wsformat.lake.reading import LONG, MOST_TEXTS, Opened, open_engine, read
from wsformat.manifest import Manifest
from wsformat.tables import tables

READERS = 2
"""Tables that are read at the same time."""


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
        bundles: how many were read.
    """

    tables: dict[str, pa.Table]
    digests: dict[str, str]
    partitions: dict[str, Partition]
    manifests: dict[str, str]
    versions: dict[str, str]
    names: dict[str, str]
    bundles: int

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
            self.bundles,
        )


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


def stage(group: Sequence[Opened], readers: int = READERS) -> Iterator[Staged]:
    """Read bundles. A capture that several of them hold comes in a part of its own for each further time.

    Args:
        group: the bundles.
        readers: tables that are read at the same time.

    Raises:
        MalformedInput: a bundle that is damaged: a file is missing, rows differ from the digests, a row's capture is
            unknown, a column holds nulls.
    """
    engine = open_engine()
    owned: list[tuple[Opened, list[str]]] = []
    listed = read(engine, "captures", group)
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
        yield _stage_distinct(engine, now, index if len(now) == len(owned) else None, readers)
        rest = later


def _stage_distinct(
    engine: duckdb.DuckDBPyConnection,
    owned: list[tuple[Opened, list[str]]],
    index: pa.Table | None,
    readers: int,
) -> Staged:
    """Read bundles that share no capture; ``index``: their rows of captures, if they have been read already."""
    if index is None:
        found = read(engine, "captures", [one for one, _ in owned])
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
    texts: dict[str, set[str]] = {"capture_id": set(partitions)}

    def rows(name: str) -> pa.Table | None:
        part = read(engine.cursor(), name, group, texts)
        if part is None:
            return None
        strange = set(starts_of(part[0])[0]) - partitions.keys()
        if strange:
            raise MalformedInput(
                f"table {name}: rows of capture {min(strange)!r}, which no bundle lists in captures",
                "Run `wsformat validate` on the bundles.",
            )
        return ordered(name, part[0], partitions)

    rest = [
        n for n in [*[n for n in tables() if n in names], *[n for n in names if n not in tables()]] if n != "captures"
    ]
    longer = [n for n in rest if any(one.manifest.tables.get(n, {}).get("rows", 0) >= LONG for one in group)]
    with ThreadPoolExecutor(readers) as pool:
        # The short tables first: they list the texts of the longer ones.
        for turn in ([n for n in rest if n not in longer], longer):
            for name, table in zip(turn, pool.map(rows, turn), strict=True):
                if table is not None:
                    held[name] = table
                    _collect(texts, table)
    held = {name: held[name] for name in ("captures", *rest) if name in held}
    return Staged(
        held,
        digests(held),
        partitions,
        {capture: _manifest_of(one.manifest, capture) for one, captures in owned for capture in captures},
        versions,
        {capture: one.name for one, captures in owned for capture in captures},
        len(owned),
    )


def _collect(texts: dict[str, set[str]], table: pa.Table) -> None:
    """Add a short table's texts to those that are known of columns of the same name."""
    for field in table.schema:
        if pa.types.is_dictionary(field.type) and table.num_rows and field.name != "capture_id":
            listed = table.column(field.name).chunk(0).dictionary
            if len(listed) <= MOST_TEXTS:
                texts.setdefault(field.name, {""}).update(text for text in listed.to_pylist() if text is not None)


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
