"""The derived views: SQL of ``schema/views/`` on a DuckDB connection over a bundle's tables."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import cache
from importlib.resources import files
from pathlib import Path
from tempfile import gettempdir
from typing import Any
from uuid import uuid4

import duckdb
import pyarrow as pa

from wsformat.bundle import Bundle, TableData
from wsformat.errors import BadRequest, MalformedInput
from wsformat.tables import DEFAULTS, SQL_TYPES, duckdb_ddl, read_schema_json, tables

MEMORY_LIMIT = "3GB"
"""Enough for every view of 20 million stamps at full speed."""
WORD = re.compile(r"\w+")
CATALOGUE = re.compile(
    r"\b(?:show|describe|summarize|pragma\w*|information_schema|duckdb_\w+|sqlite_master)\b", re.IGNORECASE
)
"""Words of queries that list what there is."""
VIEW_FILE = re.compile(r"^\d+_(?P<name>[a-z][a-z0-9_]*)\.sql$")


@cache
def views() -> dict[str, str]:
    """SQL of every derived view by name, in an order in which each needs only earlier ones."""
    found = {}
    for entry in sorted(files("wsformat.schema.views").iterdir(), key=lambda e: e.name):
        match = VIEW_FILE.match(entry.name)
        if match:
            found[match["name"]] = entry.read_text(encoding="utf-8")
    return found


@cache
def _needs() -> dict[str, frozenset[str]]:
    """Views that each view names in its text, comments and strings aside."""
    names = set(views())
    plain = {name: re.sub(r"--[^\n]*|'[^']*'", " ", sql) for name, sql in views().items()}
    return {
        name: frozenset(set(re.findall(r"\b(?:FROM|JOIN)\s+(\w+)", sql, re.IGNORECASE)) & names - {name})
        for name, sql in plain.items()
    }


def dependency_order(wanted: Iterable[str], empty: Collection[str] = ()) -> list[str]:
    """The wanted views and every view that they are made of, each after those that it needs.

    Args:
        wanted: names of views.
        empty: views that are known to have no row, which need no other.

    Raises:
        BadRequest: no such view.
    """
    needed: set[str] = set()
    rest = list(wanted)
    while rest:
        name = rest.pop()
        if name not in views():
            raise BadRequest(f"no view {name!r}", f"Views: {', '.join(views())}.")
        if name not in needed:
            needed.add(name)
            rest += () if name in empty else _needs()[name]
    return [name for name in views() if name in needed]


@cache
def described_views() -> dict[str, Any]:
    """``schema/views.json``: per view its one-line description, key and columns (name, type, unit, meaning)."""
    found: dict[str, Any] = read_schema_json("views.json")["views"]
    return found


def describe() -> list[dict[str, Any]]:
    """What can be queried: name, kind (table, view), one-line description and column names of each."""
    rows: list[dict[str, Any]] = [
        {"name": name, "kind": "table", "about": table.row, "columns": table.names} for name, table in tables().items()
    ]
    for name, view in described_views().items():
        columns = [column["name"] for column in view["columns"]]
        rows.append({"name": name, "kind": "view", "about": view["about"], "columns": columns})
    return rows


def empty_views(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """Views that have no row by what the bundle declares (``only_with`` in views.json), and the SQL of an empty one.

    Most bundles declare no edge between CTAs. Planning the view of such edges is half of what a small capture's waits
    take, and no planner can see that it is empty.
    """
    found = {}
    for name, view in described_views().items():
        if "only_with" in view:
            table, column, values = (view["only_with"][key] for key in ("table", "column", "values"))
            marks = ", ".join("?" for _ in values)
            try:
                query = f"SELECT 1 FROM {table} WHERE {column} IN ({marks}) LIMIT 1"
                there = connection.execute(query, values).fetchall()
            except duckdb.Error:
                # A column of a wrong type: the view's own SQL meets it, and says so.
                continue
            if not there:
                columns = (f"CAST(NULL AS {SQL_TYPES[c['type']]}) AS {c['name']}" for c in view["columns"])
                found[name] = f"SELECT {', '.join(columns)} WHERE FALSE"
    return found


def connect(
    bundle: Bundle,
    *,
    materialise: Iterable[str] = (),
    only: Iterable[str] | None = None,
    threads: int | None = None,
    memory_limit: str = MEMORY_LIMIT,
) -> duckdb.DuckDBPyConnection:
    """A connection with every table and every derived view of the standard, by name.

    Args:
        bundle: read from its files where it has files, else from memory.
        materialise: views to compute once and keep as temporary tables, for several questions in a row; each is made
            of those before it in the order of the standard, so keeping ``span`` or ``wait_edge`` helps what needs them.
        only: views to make, with those that they need; by default all. For a command that must answer at once: to make
            them all takes a third of a second.
        threads: DuckDB threads, by default all cores.
        memory_limit: of DuckDB, such as '4GB'. What does not fit goes to a folder of its own in the system's temporary
            folder, made when it is needed and removed with the connection.

    Raises:
        BadRequest: no such view.
    """
    kept = set(materialise)
    dependency_order([*(only or ()), *kept])
    connection = duckdb.connect()
    connection.execute("SET preserve_insertion_order = false")
    # The views join large sides to small ones, written in that order. DuckDB takes the rows that an aggregate gives for
    # a thousandth of what they are and would build its hash tables on the large side: a third slower, twice the memory.
    connection.execute("SET disabled_optimizers = 'build_side_probe_side'")
    if threads is not None:
        connection.execute(f"SET threads = {int(threads)}")
    connection.execute("SET memory_limit = ?", [memory_limit])
    connection.execute("SET temp_directory = ?", [str(Path(gettempdir()) / f"wsformat-{uuid4().hex}")])
    for name in [*tables(), *[n for n in bundle.data if n not in tables()]]:
        part = bundle.data.get(name)
        if part is None:
            connection.execute(duckdb_ddl(name))
        elif part.path is not None:
            connection.execute(f'CREATE VIEW "{name}" AS {_select_file(part)}')
        else:
            connection.register(name, part.read())
    empty = empty_views(connection)
    for name in views() if only is None else dependency_order([*only, *kept], empty):
        kind = "TEMP TABLE" if name in kept else "VIEW"
        connection.execute(f'CREATE {kind} "{name}" AS\n{empty.get(name, views()[name])}')
    return connection


def make_views(connection: duckdb.DuckDBPyConnection, query: str, made: set[str]) -> None:
    """Make the views that a query names, on a connection of :func:`connect` with ``only``.

    Args:
        connection: where.
        query: SQL that is to be run next.
        made: views that are there; grows.
    """
    named = mentioned(query)
    wanted = views() if named is None else named
    if made.issuperset(wanted):
        return
    empty = empty_views(connection)
    for name in dependency_order(wanted, empty):
        if name not in made:
            connection.execute(f'CREATE VIEW "{name}" AS\n{empty.get(name, views()[name])}')
            made.add(name)


def mentioned(query: str) -> list[str] | None:
    """Views that a query needs made: all whose name stands in it anywhere; None, that is all, when it asks for lists.

    A name too many only costs time. To make every view takes a second, most queries need two or three.
    """
    if CATALOGUE.search(query):
        return None
    words = {word.lower() for word in WORD.findall(query)}
    return [name for name in views() if name in words]


def parquet_source(path: Path) -> str:
    """SQL source of one Parquet file, as it is stored.

    Without the option DuckDB takes values from the path: in a folder ``lane=7`` every row of every table would be of
    lane 7.
    """
    return f"read_parquet({file_literal(path)}, hive_partitioning = false)"


def file_literal(path: Path) -> str:
    """A path as SQL text in which stars and brackets are no pattern."""
    escaped = re.sub(r"([*?\[])", r"[\1]", str(path)).replace("'", "''")
    return f"'{escaped}'"


def _select_file(part: TableData) -> str:
    """SELECT over a table file: the standard's columns first, absent ones as their default, extra ones kept."""
    import pyarrow.parquet as pq

    assert part.path is not None
    source = parquet_source(part.path)
    if part.name not in tables():
        return f"SELECT * FROM {source}"
    present = pq.read_schema(part.path).names
    items = []
    for column in tables()[part.name].columns:
        if column.name in present:
            items.append(f"CAST({column.name} AS {SQL_TYPES[column.type]}) AS {column.name}")
        else:
            items.append(f"CAST({_literal(DEFAULTS[column.type])} AS {SQL_TYPES[column.type]}) AS {column.name}")
    known = tables()[part.name].names
    items += ['"' + name.replace('"', '""') + '"' for name in present if name not in known]
    return f"SELECT {', '.join(items)} FROM {source}"


def _literal(value: Any) -> str:
    return "NULL" if value is None else f"'{value}'" if isinstance(value, str) else str(value)


def misfit(error: Exception) -> MalformedInput | None:
    """What DuckDB's error says of a table file, which is cast to the types of the standard as it is read.

    Returns:
        the error to raise instead; None when it says something else.
    """
    stored = re.search(r"[Cc]ould not (.*?) when casting from source column (\w+)", str(error))
    if stored is None or not isinstance(error, duckdb.ConversionException):
        return None
    return MalformedInput(
        f"column {stored[2]} of a table file is not of the standard's type: cannot {stored[1]}",
        "`wsformat validate` names the table (E305 TYPE_WRONG).",
    )


def run(connection: duckdb.DuckDBPyConnection, query: str, parameters: object = None) -> pa.Table:
    """Rows of one query as an Arrow table.

    Args:
        connection: of :func:`connect`.
        query: one statement.
        parameters: values for ``?`` (a list) or ``$name`` (a mapping) in it.

    Raises:
        BadRequest: the query is wrong, with DuckDB's message.
        MalformedInput: a column of a table file holds what its type in the standard cannot hold.
    """
    try:
        relation = connection.sql(query, params=parameters)
        result = relation.to_arrow_table() if relation is not None else pa.table({})
    except duckdb.ConversionException as error:
        # A cast in the query itself is its author's.
        stored = None if re.search(r"\bcast\b|::", query, re.IGNORECASE) else misfit(error)
        if stored is None:
            raise BadRequest(f"SQL: {error}", "Tables and views: `wsformat info` lists them.") from error
        raise stored from error
    except duckdb.Error as error:
        raise BadRequest(f"SQL: {error}", "Tables and views: `wsformat info` lists them.") from error
    return result
