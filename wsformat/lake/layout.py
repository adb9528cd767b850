"""Where a lake keeps what: its own columns and tables, partitions, file names. Data: ``schema/lake/lake.json``.

A data file is named ``add-ADDITION-N.parquet`` or ``compact-RUN-N.parquet``. The first holds rows of one addition and
counts when that addition is in the index; the second holds rows of additions that were in the index when it was made.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple
from urllib.parse import quote

import pyarrow as pa

from wsformat.tables import ARROW_TYPES, DEFAULTS, read_schema_json, tables

NAME = "lake.json"
INDEX = "captures"
MANIFESTS = "lake_manifests"
SUMMARISED = "lake_summaries"
FILE = re.compile(r"^(?P<kind>add|compact)-(?P<id>[0-9a-f]+)-\d+\.parquet$")
NANOSECONDS = 10**9


class Partition(NamedTuple):
    """The part of a lake that a capture belongs to: major format version, architecture, month."""

    major: int
    arch: str
    month: str

    @property
    def folder(self) -> str:
        """Its folder below that of a table; what a path may not hold is percent-encoded."""
        return f"lake_major={self.major}/lake_arch={quote(self.arch, safe='')}/lake_month={quote(self.month, safe='')}"


@cache
def lake_schema() -> dict[str, Any]:
    """``schema/lake/lake.json``."""
    data: dict[str, Any] = read_schema_json("lake/lake.json")
    return data


def partition_of(version: str, arch: str, created_unix_ns: int) -> Partition:
    """The partition of a capture, from its format version, architecture and wall time."""
    month = "unknown"
    if created_unix_ns >= 0:
        when = time.gmtime(created_unix_ns // NANOSECONDS)
        month = f"{when.tm_year:04d}-{when.tm_mon:02d}"
    return Partition(int(version.split(".")[0]), arch or "unknown", month)


def new_id() -> str:
    """A name for an addition or a run: hex digits that sort by time, and 48 random bits."""
    return f"{time.time_ns() // 1000:014x}{secrets.token_hex(6)}"


def id_time(identifier: str) -> float:
    """When an id was made, in seconds of Unix time."""
    return int(identifier[:14], 16) / 1e6


def owner(path: str) -> tuple[str, str]:
    """Kind and id of a data file: ('add', the addition), ('compact', the run), or ('', '') for another file."""
    match = FILE.match(path.rsplit("/", 1)[-1])
    return (match["kind"], match["id"]) if match else ("", "")


def _fields(columns: list[dict[str, str]]) -> dict[str, str]:
    return {column["name"]: column["type"] for column in columns}


@cache
def own_columns(name: str) -> dict[str, str]:
    """Columns that a table of the lake has beside those of the standard or of its view: name -> type."""
    schema = lake_schema()
    found = _fields(schema["columns"])
    if name == INDEX:
        found |= _fields(schema["index_columns"])
    if name in schema["summaries"]:
        found |= _fields(schema["summary_columns"])
    return found


@cache
def base_columns(name: str) -> dict[str, tuple[str, bool]]:
    """Columns of the standard, of a view or of a table of the lake: name -> (type, nullable); {} for an extension."""
    if name in tables():
        return {column.name: (column.type, column.nullable) for column in tables()[name].columns}
    if name in lake_schema()["tables"]:
        return {key: (kind, False) for key, kind in _fields(lake_schema()["tables"][name]["columns"]).items()}
    if name in lake_schema()["summaries"]:
        view = read_schema_json("views.json")["views"][name]
        return {column["name"]: (column["type"], True) for column in view["columns"]}
    return {}


def stamped(name: str, data: pa.Table, values: Mapping[str, Any]) -> pa.Table:
    """The rows with the lake's own columns behind: a constant, an array, or the column's default."""
    for column, kind in own_columns(name).items():
        value = values.get(column, DEFAULTS[kind])
        if not isinstance(value, pa.Array | pa.ChunkedArray):
            value = constant(value, ARROW_TYPES[kind], data.num_rows)
        data = data.append_column(pa.field(column, value.type, nullable=False), value)
    return data


def constant(value: Any, kind: pa.DataType, rows: int) -> pa.Array:
    """One value in every row; a text as a dictionary, which costs four bytes a row."""
    if kind != pa.string():
        return pa.repeat(pa.scalar(value, kind), rows)
    return pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), rows), pa.array([value], kind))


def narrow(data: pa.Table) -> pa.Table:
    """The rows with columns of one chunk, texts as dictionaries: they repeat, and every step is quicker so."""
    for index, field in enumerate(data.schema):
        column = data.column(index)
        if pa.types.is_string(field.type):
            column = column.dictionary_encode()
        if pa.types.is_dictionary(column.type) or column.num_chunks != 1:
            column = pa.chunked_array([one_chunk(column)], column.type)
            data = data.set_column(index, pa.field(field.name, column.type, nullable=field.nullable), column)
    return data


def one_chunk(column: pa.ChunkedArray) -> pa.Array:
    """The values of a column as one array; dictionaries are joined."""
    if column.num_chunks == 1:
        return column.chunk(0)
    if not column.num_chunks:
        return pa.array([], column.type)
    column = column.unify_dictionaries() if pa.types.is_dictionary(column.type) else column
    joined = column.combine_chunks()
    return joined.chunk(0) if isinstance(joined, pa.ChunkedArray) else joined
