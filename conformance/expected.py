"""What a bundle holds, as JSON that any language can compare with: 64-bit integers are texts, one row a line."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from wsformat.bundle import Bundle
from wsformat.tables import read_schema_json, tables

ROWS_AT_MOST = 2_000
VIEWS = (
    "orphan",
    "role_state",
    "overlap",
    "wait",
    "signal",
    "role_summary",
    "iteration_summary",
    "early_signal",
    "clock_map",
    "timeline_ns",
    "slope",
    "perturbation",
    "pass_span",
)
"""The views whose rows the corpus states: the results that people act on."""


def contents(bundle: Bundle, *, views: tuple[str, ...] = VIEWS) -> dict[str, Any]:
    """Tables and views of a bundle as JSON values. Of a large table only the digests are stated."""
    held: dict[str, Any] = {}
    for name in bundle.data:
        rows = plain(bundle.table(name))
        entry: dict[str, Any] = {"rows": rows.num_rows, "columns": {f.name: type_name(f.type) for f in rows.schema}}
        if rows.num_rows <= ROWS_AT_MOST:
            keys = tables()[name].sort if name in tables() else ("capture_id",)
            entry["values"] = in_order(rows, keys)
        entry["digests"] = dict(bundle.manifest.tables[name]["columns"])
        held[name] = entry
    derived: dict[str, Any] = {}
    known = read_schema_json("views.json")["views"]
    with bundle.duckdb() as connection:
        for name in views:
            rows = connection.sql(f'SELECT * FROM "{name}"').to_arrow_table()
            if rows.num_rows:
                columns = {column["name"]: column["type"] for column in known[name]["columns"]}
                derived[name] = {
                    "columns": columns,
                    "values": in_order(as_stated(rows, columns), known[name].get("key") or list(columns)),
                }
    return {"tables": held, "views": derived}


def as_stated(rows: pa.Table, columns: dict[str, str]) -> pa.Table:
    """Columns of a view in the types that ``schema/views.json`` states."""
    kinds = {
        "INT32": pa.int32(),
        "INT64": pa.int64(),
        "DOUBLE": pa.float64(),
        "BOOLEAN": pa.bool_(),
        "STRING": pa.string(),
    }
    return pa.table([rows.column(name).cast(kinds[kind]) for name, kind in columns.items()], names=list(columns))


def plain(rows: pa.Table) -> pa.Table:
    """The rows without dictionaries."""
    columns = [c.cast(c.type.value_type) if pa.types.is_dictionary(c.type) else c for c in rows.columns]
    return pa.table(columns, names=rows.column_names)


def type_name(kind: pa.DataType) -> str:
    """The type in the words of the standard."""
    names = {
        pa.int32(): "INT32",
        pa.int64(): "INT64",
        pa.float64(): "DOUBLE",
        pa.bool_(): "BOOLEAN",
        pa.string(): "STRING",
    }
    return names[kind]


def in_order(rows: pa.Table, keys: list[str] | tuple[str, ...]) -> list[list[Any]]:
    """Rows as JSON arrays, in the order of the keys, then of all other columns."""
    order = [*keys, *(name for name in rows.column_names if name not in keys)]
    held = rows.sort_by([(name, "ascending") for name in order]) if rows.num_rows > 1 else rows
    wide = [pa.types.is_int64(field.type) for field in held.schema]
    columns = [
        [value if value is None else str(value) for value in column.to_pylist()] if is_wide else column.to_pylist()
        for column, is_wide in zip(held.columns, wide, strict=True)
    ]
    return [list(row) for row in zip(*columns, strict=True)]


def dumps(data: dict[str, Any]) -> str:
    """JSON text with one row of values a line."""
    lines: list[str] = []

    def write(value: Any, indent: int, tail: str, head: str = "") -> None:
        pad = " " * indent
        if isinstance(value, dict) and value and any(isinstance(v, (dict, list)) for v in value.values()):
            lines.append(f"{pad}{head}{{")
            for i, (key, part) in enumerate(value.items()):
                write(part, indent + 1, "," if i < len(value) - 1 else "", f"{json.dumps(key)}: ")
            lines.append(f"{pad}}}{tail}")
        elif isinstance(value, list) and value and isinstance(value[0], (list, dict)):
            lines.append(f"{pad}{head}[")
            for i, part in enumerate(value):
                comma = "," if i < len(value) - 1 else ""
                lines.append(f"{pad} {json.dumps(part, ensure_ascii=False, allow_nan=False)}{comma}")
            lines.append(f"{pad}]{tail}")
        else:
            lines.append(f"{pad}{head}{json.dumps(value, ensure_ascii=False, allow_nan=False)}{tail}")

    write(data, 0, "")
    return "\n".join(lines) + "\n"
