"""Captures out of a lake again, as a bundle."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from wsformat import manifest as manifests
from wsformat.bundle import Bundle, TableData
from wsformat.errors import MalformedInput
from wsformat.lake.catalog import names
from wsformat.lake.content import digests
from wsformat.lake.index import fetch, lookup, quote, resolve, visible_sql
from wsformat.lake.layout import INDEX, MANIFESTS, SUMMARISED, lake_schema, own_columns
from wsformat.lake.query import Snapshot, origins, prune, snapshot, table_sql
from wsformat.lake.stage import ordered
from wsformat.manifest import Manifest
from wsformat.tables import conform, format_version, tables

if TYPE_CHECKING:
    from wsformat.lake.home import Lake

READERS = 2
FACTS = "capture_id, lake_add, lake_arch, lake_month, lake_digest, lake_version"


def get(lake: Lake, wanted: Sequence[str], *, experiment: bool = False) -> Bundle:
    """A bundle of captures, checked against the digests that were taken when they were added.

    Args:
        lake: where from.
        wanted: ids, how they begin, or labels.
        experiment: take every capture of the same experiments as well.

    Raises:
        BadRequest: no such capture, or several.
        MalformedInput: rows are not those that were added.
    """
    kept = {*lake_schema()["summaries"], SUMMARISED}
    found = snapshot(lake, [name for name in names(lake.catalog) if name not in kept])
    facts = resolve(lake, found.index, wanted, FACTS)
    if experiment:
        listed = ", ".join(quote(capture) for capture in facts)
        every = f"SELECT * FROM ({visible_sql(lake, found.index)})"
        sql = f"WITH c AS ({every}) SELECT capture_id FROM c WHERE capture_id IN ({listed}) OR (experiment <> '' AND "
        sql += f"experiment IN (SELECT experiment FROM c WHERE capture_id IN ({listed}))) ORDER BY capture_id"
        facts = lookup(lake, found.index, fetch(lake, sql).column(0).to_pylist(), FACTS)
    places = {(row["lake_add"], row["lake_arch"], row["lake_month"]) for row in facts.values()}
    data = _read(lake, found, sorted(facts), found.files.keys() | {INDEX}, places)
    texts = {row["capture_id"]: row["manifest"] for row in data.pop(MANIFESTS).to_pylist()}
    for name in lake_schema()["tables"]:
        data.pop(name, None)
    data = {name: rows for name, rows in data.items() if rows.num_rows}
    for capture, digest in digests(data).items():
        if digest != facts[capture]["lake_digest"]:
            raise MalformedInput(
                f"{lake.name}: rows of capture {capture} are not those that were added", "Run `wsformat lake verify`."
            )
    extensions = [entry for text in texts.values() for entry in json.loads(text)["extensions"]]
    version = max([format_version(), *(row["lake_version"] for row in facts.values())], key=manifests.number)
    shown = {name: _without_strangers(name, rows, extensions) for name, rows in data.items()}
    parts = {n: TableData(n, t.num_rows, lambda t=t: iter([t])) for n, t in shown.items()}  # type: ignore[misc]
    return Bundle(parts, _manifest(texts, version))


def _manifest(texts: Mapping[str, str], version: str) -> Manifest:
    sources: list[dict[str, Any]] = []
    extensions: dict[str, dict[str, Any]] = {}
    extra: dict[str, Any] = {}
    for capture in sorted(texts):
        facts = json.loads(texts[capture])
        for entry in facts["sources"]:
            same = next((s for s in sources if {**s, "capture_ids": 0} == {**entry, "capture_ids": 0}), None)
            if same is None:
                sources.append(dict(entry))
            elif entry.get("capture_ids"):
                same["capture_ids"] = sorted({*same.get("capture_ids", ()), *entry["capture_ids"]})
        for entry in facts["extensions"]:
            extensions.setdefault(f"{entry.get('name')} {entry.get('version')}", entry)
        extra = {**facts["extra"], **extra}
    return Manifest(version, sources=tuple(sources), extensions=tuple(extensions.values()), extra=extra)


def _without_strangers(name: str, rows: pa.Table, extensions: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Without columns that other captures' extensions brought to the table and that hold nothing here."""
    declared = {str(c).split(".")[-1] for entry in extensions for c in entry.get("columns", ())}
    known = set(tables()[name].names) if name in tables() else set(rows.column_names)
    kept = [
        column
        for column in rows.column_names
        if column in known or column in declared or _says_something(rows.column(column))
    ]
    return rows.select(kept)


def _says_something(column: pa.ChunkedArray) -> bool:
    return bool(column.null_count < len(column))


def read_captures(lake: Lake, captures: Sequence[str], wanted: Iterable[str]) -> dict[str, pa.Table]:
    """Rows of captures in some tables, in the standard's order; tables without rows are left out."""
    found = snapshot(lake, wanted)
    places = origins(lake, found.index, captures)
    return {name: rows for name, rows in _read(lake, found, list(captures), wanted, places).items() if rows.num_rows}


def _read(
    lake: Lake, found: Snapshot, captures: list[str], wanted: Iterable[str], places: set[tuple[str, str, str]]
) -> dict[str, pa.Table]:
    jobs = {}
    for name in wanted:
        files = prune(found.index.files if name == INDEX else found.files.get(name, []), captures, places)
        index = replace(found.index, files=files) if name == INDEX else found.index
        part = Snapshot(index, {**found.files, name: files}, found.evolved, found.columns)
        if files or name == INDEX:
            chosen = f"= {quote(captures[0])}" if len(captures) == 1 else "IN (SELECT unnest(?))"
            jobs[name] = f"SELECT * FROM ({table_sql(lake, part, name)}) WHERE capture_id {chosen}"
    with ThreadPoolExecutor(READERS) as pool:

        def read(item: tuple[str, str]) -> tuple[str, pa.Table]:
            name, sql = item
            with lake.engine() as cursor:
                rows = cursor.sql(sql, params=[captures] if len(captures) > 1 else None).to_arrow_table()
            own = [column for column in rows.column_names if column in own_columns(name)] if name == INDEX else []
            rows = conform(name, rows.drop_columns(own) if own else rows)
            return name, ordered(name, rows) if rows.num_rows else rows

        try:
            return dict(pool.map(read, jobs.items()))
        except duckdb.Error as error:
            raise MalformedInput(
                f"{lake.name}: {str(error).splitlines()[0]}", "Run `wsformat lake verify`; it names what is missing."
            ) from error
