"""The tables of the standard, read from ``schema/``: Arrow schemas, defaults, DuckDB DDL.

Nothing here is written twice: names, types, units and meanings come from ``schema/tables.json``,
vocabularies from ``schema/vocabularies.json``, the physical layout from ``schema/layout.json``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import pyarrow as pa

from wsformat.errors import MalformedInput

ARROW_TYPES: dict[str, pa.DataType] = {
    "INT32": pa.int32(),
    "INT64": pa.int64(),
    "DOUBLE": pa.float64(),
    "BOOLEAN": pa.bool_(),
    "STRING": pa.string(),
}
SQL_TYPES = {
    "INT32": "INTEGER",
    "INT64": "BIGINT",
    "DOUBLE": "DOUBLE",
    "BOOLEAN": "BOOLEAN",
    "STRING": "VARCHAR",
}
# What stands for "unknown or not applicable"; a DOUBLE has null for that.
DEFAULTS: dict[str, Any] = {"INT32": -1, "INT64": -1, "DOUBLE": None, "BOOLEAN": False, "STRING": ""}


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table of the standard.

    Attributes:
        name: column name.
        type: INT32, INT64, DOUBLE, BOOLEAN or STRING.
        meaning: one line.
        unit: unit, or the name of the column that holds it; '' none.
        vocabulary: name of the vocabulary of its values; '' free.
        references: ``table.column`` that it points to; '' none.
        not_applicable: the value that stands for "points nowhere"; None when it must point somewhere.
        nullable: null is allowed (DOUBLE; STRING outside keys, vocabularies and references).
        since: format version that introduced it.
    """

    name: str
    type: str
    meaning: str
    unit: str
    vocabulary: str
    references: str
    not_applicable: int | str | None
    nullable: bool
    since: str

    @property
    def default(self) -> Any:
        """The value that stands for unknown or not applicable."""
        return DEFAULTS[self.type]


@dataclass(frozen=True, slots=True)
class Table:
    """One table of the standard: what a row is, its key, its sort order and its columns."""

    name: str
    row: str
    key: tuple[str, ...]
    sort: tuple[str, ...]
    columns: tuple[Column, ...]
    since: str

    @property
    def arrow(self) -> pa.Schema:
        """Arrow schema of the contract."""
        return pa.schema([pa.field(c.name, ARROW_TYPES[c.type], nullable=c.nullable) for c in self.columns])

    @property
    def names(self) -> list[str]:
        """Column names in order."""
        return [c.name for c in self.columns]

    def column(self, name: str) -> Column:
        """The column of that name; KeyError when there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)


def read_schema_json(name: str) -> Any:
    """Parse a JSON file of ``schema/``."""
    return json.loads(files("wsformat.schema").joinpath(name).read_text(encoding="utf-8"))


def _column(raw: Mapping[str, Any], key: Sequence[str]) -> Column:
    text = raw["type"] == "STRING"
    bound = raw["name"] in key or "vocabulary" in raw or "references" in raw
    return Column(
        name=raw["name"],
        type=raw["type"],
        meaning=raw["meaning"],
        unit=raw.get("unit", ""),
        vocabulary=raw.get("vocabulary", ""),
        references=raw.get("references", ""),
        not_applicable=raw.get("not_applicable"),
        nullable=raw["type"] == "DOUBLE" or (text and not bound),
        since=raw["since"],
    )


@cache
def tables() -> dict[str, Table]:
    """Every table of the standard by name, in the order of the standard."""
    return {
        name: Table(
            name=name,
            row=raw["row"],
            key=tuple(raw["key"]),
            sort=tuple(raw["sort"]),
            columns=tuple(_column(c, raw["key"]) for c in raw["columns"]),
            since=raw["since"],
        )
        for name, raw in read_schema_json("tables.json")["tables"].items()
    }


@cache
def format_version() -> str:
    """Version of the format that this library writes, ``MAJOR.MINOR``."""
    return str(read_schema_json("tables.json")["version"])


@cache
def vocabularies() -> dict[str, dict[str, Any]]:
    """Vocabularies by name: ``closed``, ``used_by`` and ``values`` (value -> meaning)."""
    data: dict[str, dict[str, Any]] = read_schema_json("vocabularies.json")
    return data


@cache
def layout() -> dict[str, Any]:
    """The physical layout that writers should use."""
    data: dict[str, Any] = read_schema_json("layout.json")
    return data


def rows_to_table(name: str, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Build a table of the standard from dicts; what a dict leaves out becomes the default.

    Raises:
        MalformedInput: a dict has a key that is no column, or a value of the wrong type.
    """
    table = tables()[name]
    rows = list(rows)
    unknown = {key for row in rows for key in row} - set(table.names)
    if unknown:
        raise MalformedInput(f"table {name}: no column {', '.join(sorted(unknown))}")
    arrays = []
    for column in table.columns:
        values = [row.get(column.name, column.default) for row in rows]
        try:
            arrays.append(pa.array(values, type=ARROW_TYPES[column.type]))
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
            raise MalformedInput(f"table {name}, column {column.name}: expected {column.type}: {error}") from error
    return pa.Table.from_arrays(arrays, schema=table.arrow)


def conform(name: str, data: pa.Table | pa.RecordBatch) -> pa.Table:
    """Bring data into the contract's columns, order and types; extra columns follow, unchanged.

    A dictionary of strings stays one in memory (the file holds plain strings either way).
    A missing column is filled with its default, so that files of an older minor version read.

    Raises:
        MalformedInput: a value does not fit the column's type.
    """
    if name not in tables():
        return data if isinstance(data, pa.Table) else pa.Table.from_batches([data])
    table = tables()[name]
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    arrays: list[Any] = []
    fields: list[pa.Field] = []
    for column in table.columns:
        want = ARROW_TYPES[column.type]
        if column.name not in data.column_names:
            array: Any = pa.repeat(pa.scalar(column.default, want), data.num_rows)
        else:
            array = data.column(column.name)
            is_text_dictionary = (
                column.type == "STRING"
                and pa.types.is_dictionary(array.type)
                and pa.types.is_string(array.type.value_type)
            )
            if array.type != want and not is_text_dictionary:
                try:
                    array = array.cast(want)
                except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                    raise MalformedInput(
                        f"table {name}, column {column.name}: {array.type} does not fit {column.type}: {error}"
                    ) from error
        arrays.append(array)
        fields.append(pa.field(column.name, array.type, nullable=column.nullable))
    for extra in data.column_names:
        if extra not in table.names:
            arrays.append(data.column(extra))
            fields.append(data.schema.field(extra))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def duckdb_ddl(name: str) -> str:
    """``CREATE TABLE`` statement of one table in DuckDB's dialect."""
    table = tables()[name]
    lines = [f"    {c.name} {SQL_TYPES[c.type]}{'' if c.nullable else ' NOT NULL'}" for c in table.columns]
    return f"CREATE TABLE {name} (\n" + ",\n".join(lines) + "\n);\n"
