"""Family 3xx from the footers: columns, their order, and their types as Parquet stores them.

The Parquet schema is judged, not the Arrow schema that a writer may have left in the footer: most readers see the
first only.
"""

from __future__ import annotations

import re
from typing import Any

from wsformat.tables import ARROW_TYPES, tables
from wsformat.validate.report import Findings, clip
from wsformat.validate.subject import Subject, TableFile

NAME = re.compile(r"[a-z][a-z0-9_]*")
PHYSICAL = {"BOOLEAN": "BOOLEAN", "INT32": "INT32", "INT64": "INT64", "DOUBLE": "DOUBLE", "FLOAT": "FLOAT"}
WIDENED = {("INT64", "INT32"), ("INT32", "INT64"), ("FLOAT", "DOUBLE")}


def stored_types(schema: Any) -> dict[str, str]:
    """Type of each column of a ``pyarrow.parquet.ParquetSchema``; twice the same name gives ``twice``."""
    types: dict[str, str] = {}
    for index in range(len(schema)):
        leaf = schema.column(index)
        name, kind = (leaf.path, _type(leaf)) if leaf.path == leaf.name else (leaf.path.split(".")[0], "nested")
        types[name] = "twice" if name in types and kind != "nested" else kind
    return types


def _type(leaf: Any) -> str:
    converted, logical = leaf.converted_type, str(leaf.logical_type)
    if leaf.max_repetition_level:
        return "nested"
    if leaf.physical_type == "BYTE_ARRAY":
        return "STRING" if converted == "UTF8" or logical == "String" else f"binary {converted}"
    plain = converted == "NONE" and logical in ("None", "UNKNOWN", "Undefined")
    signed = leaf.physical_type in ("INT32", "INT64") and converted == leaf.physical_type.replace("INT", "INT_")
    if leaf.physical_type in PHYSICAL and (plain or signed):
        return PHYSICAL[leaf.physical_type]
    return f"{leaf.physical_type} as {logical}"


def check(subject: Subject, found: Findings) -> None:
    """E301, E302, W304, E305, W306, E307, E308, E309, and E214 for columns."""
    for file in subject.files.values():
        if file.footer is None:
            continue
        _names(subject, file, found)
        if file.name in tables():
            _contract(subject, file, found)
        else:
            for column, kind in file.types.items():
                _allowed(file, column, kind, found)


def _names(subject: Subject, file: TableFile, found: Findings) -> None:
    for column, kind in file.types.items():
        if kind == "twice":
            found.add("E309", "two columns of this name", table=file.name, column=clip(column, 60))
            file.spoil(f"it has two columns {clip(column, 60)}")
        elif not NAME.fullmatch(column):
            found.add("E307", "not a lower-case name", table=file.name, column=clip(column, 60))
        elif file.name in tables() and column not in tables()[file.name].names:
            if "__" not in column and not subject.newer:
                found.add("E308", "no column of the standard", table=file.name, column=clip(column, 60))
        elif file.name in tables() and not subject.knows(file.name, column) and subject.knows(file.name):
            since = tables()[file.name].column(column).since
            found.add("E214", f"since {since}, the bundle is of {subject.version}", table=file.name, column=column)


def _contract(subject: Subject, file: TableFile, found: Findings) -> None:
    table = tables()[file.name]
    for column in table.columns:
        kind = file.types.get(column.name)
        if kind is None:
            if subject.knows(file.name, column.name):
                found.add("E301", "is missing", table=file.name, column=column.name)
                file.spoil(f"column {column.name} is missing")
        elif kind == "twice" or not _allowed(file, column.name, kind, found):
            continue
        elif (kind, column.type) in WIDENED:
            found.add("W304", f"stored as {kind}, the standard has {column.type}", table=file.name, column=column.name)
        elif kind != column.type:
            found.add("E305", f"is {kind}, the standard has {column.type}", table=file.name, column=column.name)
            file.spoil(f"column {column.name} is {kind}")
    for column_name in set(file.types) - set(table.names):
        _allowed(file, column_name, file.types[column_name], found)
    known = [name for name in file.types if name in table.names]
    if known != list(file.types)[: len(known)] or known != [name for name in table.names if name in file.types]:
        found.add("W306", f"order {clip(', '.join(file.types), 120)}", table=file.name)


def _allowed(file: TableFile, column: str, kind: str, found: Findings) -> bool:
    if kind in ARROW_TYPES or kind in ("FLOAT", "twice"):
        return True
    found.add("E302", f"is stored as {kind}", table=file.name, column=clip(column, 60))
    file.spoil(f"column {clip(column, 60)} is stored as {kind}")
    return False
