"""The index of a lake, its table ``captures``: the only place that says which captures there are.

A row that was added counts until a tombstone with its capture_id and lake_add is there. An addition commits its rows of
every other table first and its rows of the index last, in one snapshot: before that nobody counts the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from wsformat.errors import BadRequest, MalformedInput
from wsformat.lake.catalog import DataFile
from wsformat.lake.layout import INDEX, owner
from wsformat.lake.store import Store

if TYPE_CHECKING:
    from wsformat.lake.home import Lake


FEW = 100
"""Captures are named one by one in a query up to so many."""


@dataclass(frozen=True)
class Index:
    """The index at one moment.

    Attributes:
        table: the Iceberg table, None when nothing was ever added.
        files: its data files.
        adds: additions that count, at least in part.
        removed: (capture_id, addition) of every tombstone.
    """

    table: Any
    files: list[DataFile]
    adds: frozenset[str]
    removed: frozenset[tuple[str, str]]

    def holds(self, later: Index) -> bool:
        """Whether nothing but additions came between this and a later state: no capture has gone from the tables."""
        return self.removed == later.removed and {f.uri for f in self.files} <= {f.uri for f in later.files}

    def counts(self, file: DataFile) -> bool:
        """Whether rows of a data file may count: its addition is in the index, or it was compacted from such."""
        kind, identifier = owner(file.uri)
        return kind == "compact" or (kind == "add" and identifier in self.adds)


def engine(store: Store, *, threads: int | None = None) -> duckdb.DuckDBPyConnection:
    """A DuckDB connection that reads the files of the lake, on a disk by itself, elsewhere through fsspec."""
    connection = duckdb.connect()
    if threads is not None:
        connection.execute(f"SET threads = {int(threads)}")
    if not store.local:
        connection.register_filesystem(store.reader())
    return connection


def scan(store: Store, files: Sequence[DataFile], *, evolved: bool = False) -> str:
    """SQL source over data files, as they are stored."""
    # A star or bracket of a path is no pattern.
    names = ", ".join(quote(re.sub(r"([*?\[])", r"[\1]", store.path(file.uri))) for file in files)
    union = ", union_by_name = true" if evolved else ""
    return f"read_parquet([{names}], hive_partitioning = false{union})"


def quote(text: str) -> str:
    """A string literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def fetch(lake: Lake, sql: str, parameters: Sequence[Any] = ()) -> pa.Table:
    """Rows of a query of our own over data files.

    Raises:
        MalformedInput: a file is missing or damaged.
    """
    with lake.engine() as connection:
        try:
            return connection.sql(sql, params=list(parameters) or None).to_arrow_table()
        except duckdb.Error as error:
            raise MalformedInput(
                f"{lake.name}: {str(error).splitlines()[0]}", "Run `wsformat lake verify`; it names what is missing."
            ) from error


def read_index(lake: Lake) -> Index:
    """The index as it is now."""
    table, files = lake.table(INDEX)
    if not files:
        return Index(table, [], frozenset(), frozenset())
    key = f"{INDEX}.index"
    known = lake._known.get(key)
    if known is not None and known[0] == table.metadata_location:
        found: Index = known[1]
        return found
    rows = fetch(
        lake,
        f"SELECT lake_add, lake_removed, CASE WHEN lake_removed THEN capture_id ELSE '' END AS capture_id "
        f"FROM {scan(lake.store, files, evolved=len(table.metadata.schemas) > 1)} GROUP BY ALL",
    ).to_pylist()
    removed = frozenset((row["capture_id"], row["lake_add"]) for row in rows if row["lake_removed"])
    adds = frozenset(row["lake_add"] for row in rows if not row["lake_removed"])
    index = Index(table, files, adds, removed)
    lake._known[key] = (table.metadata_location, index, [])
    return index


def gone_sql(index: Index) -> str:
    """SQL condition on capture_id and lake_add that leaves out what tombstones remove; '' when there are none."""
    if not index.removed:
        return ""
    gone = ", ".join(f"({quote(capture)}, {quote(add)})" for capture, add in sorted(index.removed))
    return f"(capture_id, lake_add) NOT IN ({gone})"


def visible_sql(lake: Lake, index: Index) -> str:
    """SELECT over the rows of the index that count, tombstones and what they remove left out."""
    source = scan(lake.store, index.files, evolved=len(index.table.metadata.schemas) > 1)
    condition = gone_sql(index)
    return f"SELECT * FROM {source} WHERE NOT lake_removed{f' AND {condition}' if condition else ''}"


def lookup(lake: Lake, index: Index, captures: Iterable[str], columns: str = "*") -> dict[str, dict[str, Any]]:
    """Rows of the index of those captures that count, by capture_id; ``columns``: SQL, for less than all of them."""
    wanted = list(captures)
    if not index.files or not wanted:
        return {}
    # A few are named one by one, so that files and row groups that cannot hold them are passed over.
    chosen = ", ".join(map(quote, wanted)) if len(wanted) <= FEW else "SELECT unnest(?)"
    sql = f"SELECT {columns} FROM ({visible_sql(lake, index)}) WHERE capture_id IN ({chosen})"
    rows = fetch(lake, sql, [wanted] if len(wanted) > FEW else [])
    return {row["capture_id"]: row for row in rows.to_pylist()}


def resolve(lake: Lake, index: Index, wanted: Sequence[str], columns: str = "*") -> dict[str, dict[str, Any]]:
    """Rows of the index of captures that are named by their id, its start, or their label, by capture_id.

    Raises:
        BadRequest: no such capture, or several.
    """
    if not index.files:
        raise BadRequest(f"{lake.name}: holds no capture")
    found = lookup(lake, index, wanted, columns)
    for text in wanted:
        if text in found:
            continue
        rows = fetch(
            lake,
            f"SELECT {columns} FROM ({visible_sql(lake, index)}) "
            "WHERE starts_with(capture_id, ?) OR label = ? ORDER BY capture_id",
            [text, text],
        ).to_pylist()
        if len(rows) != 1:
            what = "no capture" if not rows else f"{len(rows)} captures"
            named = ", ".join(row["capture_id"] for row in rows[:4])
            hint = "`wsformat lake ls` lists them." if not rows else f"Such as {named}."
            raise BadRequest(f"{lake.name}: {what} {text!r}", hint)
        found[rows[0]["capture_id"]] = rows[0]
    return found
