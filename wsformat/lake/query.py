"""SQL over a lake: the tables of the standard as views over the data files that count, the derived views above them.

What a query does not name is not even looked up, and a filter on captures leaves out the files that cannot hold them.
"""

from __future__ import annotations

import re
import time
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import duckdb

from wsformat.derive import MEMORY_LIMIT, views
from wsformat.errors import BadRequest, WsformatError
from wsformat.lake.catalog import DataFile, names
from wsformat.lake.index import FEW, Index, engine, fetch, gone_sql, quote, read_index, scan, visible_sql
from wsformat.lake.layout import INDEX, SUMMARISED, base_columns, lake_schema, own_columns, owner
from wsformat.tables import DEFAULTS, SQL_TYPES, tables

if TYPE_CHECKING:
    from wsformat.lake.home import Lake

KEPT_SECONDS = 60.0
"""How long the files of a table are taken from memory while the index does not change; far below the retention."""
MOST_READS = 20
ICEBERG_TYPES = {"int": "INTEGER", "long": "BIGINT", "double": "DOUBLE", "boolean": "BOOLEAN", "string": "VARCHAR"}
"""How often the tables are read anew when captures are removed in between."""


@dataclass(frozen=True)
class Snapshot:
    """What counts in a lake at one moment: the index, and the data files of some tables.

    Attributes:
        index: the index.
        files: per table name the data files that count.
        evolved: tables whose files need not all have the same columns.
        columns: per table name all its columns with their SQL types.
        captures: the captures that were chosen, None for all.
    """

    index: Index
    files: dict[str, list[DataFile]]
    evolved: frozenset[str]
    columns: dict[str, dict[str, str]]
    captures: list[str] | None = None


def snapshot(lake: Lake, wanted: Iterable[str], *, where: str = "") -> Snapshot:
    """Files of some tables, all as of one moment.

    Args:
        lake: the lake.
        wanted: table names; those that the lake does not have are left out.
        where: SQL condition on the columns of ``captures`` that chooses captures; '' all.

    Raises:
        BadRequest: ``where`` is wrong.
    """
    from wsformat.lake.summaries import runs_that_count

    listed = [name for name in wanted if name != INDEX]
    for _ in range(MOST_READS):
        index = read_index(lake)
        found = {name: _table(lake, index, name) for name in listed}
        # Rows that are added meanwhile do not count in this index. Those of captures that were removed may be gone
        # from the files by now, although they count in this index: then everything is read anew.
        if not listed or index.holds(read_index(lake)):
            break
    else:
        raise WsformatError(f"{lake.name}: captures are removed all the time", "Try again.")
    files = {name: [f for f in listed if index.counts(f)] for name, (_, listed) in found.items()}
    if SUMMARISED in found:
        runs = runs_that_count(lake)
        for name in set(files) & set(lake_schema()["summaries"]):
            _, every = found[name]
            files[name] = [f for f in every if owner(f.uri)[0] == "compact" or owner(f.uri)[1] in runs]
        files[SUMMARISED] = found[SUMMARISED][1]
    captures = choose(lake, index, where) if where else None
    if captures is not None:
        places = origins(lake, index, captures)
        files = {
            name: listed
            if name in lake_schema()["summaries"] or name == SUMMARISED
            else prune(listed, captures, places)
            for name, listed in files.items()
        }
    known = {name: table for name, (table, _) in found.items() if table is not None}
    known |= {INDEX: index.table} if index.table is not None else {}
    return Snapshot(
        index,
        {name: files[name] for name in files if name in known},
        frozenset(name for name, table in known.items() if len(table.metadata.schemas) > 1),
        {name: {f.name: ICEBERG_TYPES[str(f.field_type)] for f in t.schema().fields} for name, t in known.items()},
        captures,
    )


def _table(lake: Lake, index: Index, name: str) -> tuple[Any, list[DataFile]]:
    """A table and its files, at least as new as the index. While the index stays, so does what counts in the others;
    their files may have been joined to larger ones since, and are kept for readers such as this one."""
    key = f"{name}.seen"
    at = index.table.metadata_location if index.table is not None else ""
    known = lake._known.get(key)
    if name in lake_schema()["summaries"] or name == SUMMARISED:
        return lake.table(name)
    if known is None or known[0] != at or time.monotonic() - known[1] > KEPT_SECONDS:
        known = (at, time.monotonic(), lake.table(name))
        lake._known[key] = known
    found: tuple[Any, list[DataFile]] = known[2]
    return found


def choose(lake: Lake, index: Index, where: str) -> list[str]:
    """Ids of the captures for which an SQL condition holds.

    Raises:
        BadRequest: it is wrong.
    """
    if not index.files:
        return []
    with lake.engine() as connection:
        try:
            # As a query of its own, so that the condition can be nothing but an expression over captures.
            relation = connection.sql(f"SELECT * FROM ({visible_sql(lake, index)}) AS captures").filter(where)
            rows = relation.project("capture_id").order("capture_id").to_arrow_table()
        except duckdb.Error as error:
            raise BadRequest(f"--where: {str(error).splitlines()[0]}", "Such as \"arch = 'sm_90a'\".") from error
    ids: list[str] = rows.column(0).to_pylist()
    return ids


def origins(lake: Lake, index: Index, captures: Sequence[str]) -> set[tuple[str, str, str]]:
    """Addition, architecture and month of those captures: where their rows can be."""
    if not index.files or not captures:
        return set()
    sql = f"""SELECT DISTINCT lake_add, lake_arch, lake_month FROM ({visible_sql(lake, index)})
              WHERE capture_id IN (SELECT unnest(?))"""
    return {tuple(row.values()) for row in fetch(lake, sql, [list(captures)]).to_pylist()}


def prune(files: Sequence[DataFile], captures: Sequence[str], places: set[tuple[str, str, str]]) -> list[DataFile]:
    """The files that can hold rows of those captures (in order): by origin, and by first and last capture in them."""
    found = []
    parts = {(arch, month) for _, arch, month in places}
    for file in files:
        kind, identifier = owner(file.uri)
        if (file.arch, file.month) not in parts or (
            kind == "add" and (identifier, file.arch, file.month) not in places
        ):
            continue
        place = bisect_left(captures, file.least)
        if file.most == "" or (place < len(captures) and captures[place] <= file.most):
            found.append(file)
    return found


def words(sql: str) -> frozenset[str]:
    """Everything in a query that could be a name; comments and texts aside."""
    return frozenset(re.findall(r"\w+", re.sub(r"--[^\n]*|'[^']*'", " ", sql.lower())))


@cache
def _inside(view: str) -> tuple[frozenset[str], frozenset[str]]:
    """Earlier views, and tables, that a view can name."""
    earlier = list(views())[: list(views()).index(view)]
    found = words(views()[view])
    return found & set(earlier), found & set(tables())


def needed(names_in_query: Iterable[str], kept: Sequence[str] = ()) -> tuple[set[str], list[str]]:
    """Tables and derived views that are needed for some names; nothing stands behind a kept one."""
    chosen: set[str] = set()
    held: set[str] = set()
    rest = list(names_in_query)
    while rest:
        name = rest.pop()
        if name in views():
            if name not in chosen:
                chosen.add(name)
                if name not in kept:
                    inner, below = _inside(name)
                    rest += inner
                    held |= below
        else:
            held.add(name)
    return held, [name for name in views() if name in chosen]


def connect(
    lake: Lake,
    sql: str = "",
    *,
    where: str = "",
    summaries: bool = True,
    threads: int | None = None,
    memory_limit: str = MEMORY_LIMIT,
) -> duckdb.DuckDBPyConnection:
    """A DuckDB connection with tables and derived views by name, all as of now.

    Args:
        lake: the lake.
        sql: the query to come; only what it can name is there. '' everything.
        where: SQL condition on ``captures``; every table then holds rows of those captures only.
        summaries: take role_summary, wait_summary, iteration_summary and launch_lifetime from what was computed
            before, where that is there for every capture (see :mod:`wsformat.lake.summaries`); else, and with False,
            the views compute them.
        threads, memory_limit: of DuckDB.

    Raises:
        BadRequest: ``where`` is wrong.
    """
    plan = plan_of(lake, sql, where=where, summaries=summaries)
    connection = engine(lake.store, threads=threads)
    connection.execute("SET preserve_insertion_order = false")
    connection.execute("SET disabled_optimizers = 'build_side_probe_side'")
    connection.execute("SET memory_limit = ?", [memory_limit])
    connection.execute("SET temp_directory = ?", [str(Path(gettempdir()) / f"wsformat-{uuid4().hex}")])
    define(lake, connection, plan, where)
    return connection


@dataclass(frozen=True)
class Plan:
    """What a connection must hold for a query: tables, derived views, and which of these are kept summaries."""

    tables: tuple[str, ...]
    views: tuple[str, ...]
    kept: tuple[str, ...]


def plan_of(lake: Lake, sql: str, *, where: str, summaries: bool) -> Plan:
    """What a query needs; for '' everything. See :func:`connect`."""
    from wsformat.lake.summaries import complete

    extensions = [name for name in names(lake.catalog) if "__" in name] if not sql or "__" in sql else []
    every = [*tables(), *extensions, *lake_schema()["tables"]]
    asked = words(sql) & {*every, *views()} if sql else {*every, *views()}
    held, derived = needed(asked)
    kept = [name for name in derived if name in lake_schema()["summaries"]] if summaries else []
    if kept and complete(lake, where):
        held, derived = needed(asked, kept)
    else:
        kept = []
    named = [name for name in every if name in held]
    return Plan(tuple(named), tuple(derived), tuple(kept))


def define(lake: Lake, connection: duckdb.DuckDBPyConnection, plan: Plan, where: str) -> None:
    """Make the views of a plan on a connection, over the files that count now."""
    marks = [SUMMARISED] if plan.kept else []
    found = snapshot(lake, [*plan.tables, *plan.kept, *marks], where=where)
    if found.captures is not None:
        connection.execute(
            "CREATE TEMP TABLE lake_chosen AS SELECT unnest(?::VARCHAR[]) AS capture_id", [found.captures]
        )
    for name in plan.tables:
        connection.execute(f'CREATE VIEW "{name}" AS {table_sql(lake, found, name)}')
    for name in plan.views:
        body = summary_sql(lake, found, name) if name in plan.kept else views()[name]
        connection.execute(f'CREATE VIEW "{name}" AS\n{body}')


def table_sql(lake: Lake, found: Snapshot, name: str, *, own: bool = False) -> str:
    """SELECT over the rows of a table that count: the standard's columns, those of extensions; ``own``: the lake's too.

    The index shows its own columns always, so that one can ask when a capture was added.
    """
    if name == INDEX:
        if not found.index.files:
            return f"SELECT * FROM ({_nothing(name)})"
        body = (
            f"SELECT {_columns(lake, found, name, found.index.files, own=True)} FROM ({visible_sql(lake, found.index)})"
        )
        return _chosen(found, body)
    files = found.files.get(name, [])
    if not files:
        return _nothing(name, found.columns.get(name))
    clean, dirty = _split(found.index, files)
    parts = []
    evolved = name in found.evolved
    if clean:
        shown = _columns(lake, found, name, clean, own=own)
        parts.append(f"SELECT {shown} FROM {scan(lake.store, clean, evolved=evolved)}")
    if dirty:
        shown = _columns(lake, found, name, dirty, own=own)
        parts.append(f"SELECT {shown} FROM {scan(lake.store, dirty, evolved=evolved)} WHERE {gone_sql(found.index)}")
    return _chosen(found, " UNION ALL ".join(parts))


def _chosen(found: Snapshot, body: str) -> str:
    """Only the captures that were chosen; few are named, so that row groups that cannot hold them are passed over."""
    if found.captures is None:
        return body
    if len(found.captures) <= FEW:
        named = ", ".join(map(quote, found.captures)) or "''"
        return f"SELECT * FROM ({body}) WHERE capture_id IN ({named})"
    return f"SELECT * FROM ({body}) SEMI JOIN lake_chosen USING (capture_id)"


def _split(index: Index, files: Sequence[DataFile]) -> tuple[list[DataFile], list[DataFile]]:
    """Files without, and those that may hold rows of removed captures."""
    clean: list[DataFile] = []
    dirty: list[DataFile] = []
    gone = {add for _, add in index.removed}
    captures = [capture for capture, _ in index.removed]
    for file in files:
        kind, identifier = owner(file.uri)
        inside = any(file.least <= c and (file.most == "" or c <= file.most) for c in captures)
        suspect = inside and (kind == "compact" or identifier in gone)
        (dirty if suspect else clean).append(file)
    return clean, dirty


def _columns(lake: Lake, found: Snapshot, name: str, files: Sequence[DataFile], *, own: bool) -> str:
    """The columns of a table over some of its files; one that none of them has is null, or its default."""
    base = base_columns(name)
    present = set(found.columns[name])
    if name in found.evolved:
        present = set(fetch(lake, f"SELECT * FROM {scan(lake.store, files, evolved=True)} LIMIT 0").column_names)
    items = []
    for column, sql_type in found.columns[name].items():
        if column in own_columns(name) and not own:
            continue
        if column not in present:
            literal = DEFAULTS[base[column][0]] if column in base else None
            shown = "NULL" if literal is None else quote(literal) if isinstance(literal, str) else str(literal)
            items.append(f'CAST({shown} AS {sql_type}) AS "{column}"')
            continue
        kind, nullable = base.get(column, ("", True))
        if kind and not nullable and name in found.evolved:
            default = DEFAULTS[kind]
            literal = quote(default) if isinstance(default, str) else str(default)
            items.append(f"COALESCE({column}, CAST({literal} AS {SQL_TYPES[kind]})) AS {column}")
        else:
            items.append('"' + column.replace('"', '""') + '"')
    return ", ".join(items)


def _nothing(name: str, columns: dict[str, str] | None = None) -> str:
    """SELECT without rows that has the columns of a table."""
    base = base_columns(name)
    if not base:
        shown = ", ".join(f'CAST(NULL AS {t}) AS "{c}"' for c, t in (columns or {"capture_id": "VARCHAR"}).items())
        return f"SELECT {shown} WHERE FALSE"
    kinds = {column: kind for column, (kind, _) in base.items()}
    if name == INDEX:
        kinds |= own_columns(name)
    items = ", ".join(f"CAST(NULL AS {SQL_TYPES[kind]}) AS {column}" for column, kind in kinds.items())
    return f"SELECT {items} WHERE FALSE"


def summary_sql(lake: Lake, found: Snapshot, name: str) -> str:
    """SELECT over the rows of a summary that were made by the views as they are now."""
    from wsformat.lake.summaries import views_digest

    files = found.files.get(name, [])
    shown = ", ".join(base_columns(name))
    if not files:
        return _nothing(name)
    body = (
        f"SELECT * FROM {scan(lake.store, files, evolved=name in found.evolved)} WHERE lake_views = '{views_digest()}'"
    )
    if found.index.removed:
        body += f" AND {gone_sql(found.index)}"
    return _chosen(found, f"SELECT {shown} FROM ({body})")
