"""One pass over each table as it is stored: digests, nulls, fit of widened columns, bounds, finiteness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import duckdb

from wsformat.derive import parquet_source
from wsformat.digests import MASK
from wsformat.tables import Column, tables
from wsformat.validate.database import Database, first_line, quoted
from wsformat.validate.report import Findings, clip
from wsformat.validate.rules import rules
from wsformat.validate.subject import Subject, TableFile

BOUNDS = {"INT32": (-(2**31), 2**31 - 1), "INT64": (-(2**63), 2**63 - 1)}
INTEGERS = ("INT32", "INT64", "BOOLEAN")


@dataclass
class _Column:
    """What one pass says about a column."""

    rows: int
    count: int
    total: int = 0
    xor: int = 0
    least: int = 0
    most: int = 0
    infinite: int = 0


def check(subject: Subject, found: Findings, database: Database) -> None:
    """E103 (while rows are read), E107, E303, E310, E409."""
    for file in subject.files.values():
        if file.footer is None or file.path is None or file.broken:
            for code in ("E107", "E303", "E310", "E409") if file.broken else ():
                found.cannot_run(code, f"table {file.name}: {file.broken}")
            continue
        try:
            seen = _scan(file, database)
        except duckdb.Error as error:
            found.add("E103", first_line(error), table=file.name, row=file.path.name)
            file.spoil("its rows cannot be read")
            for code in ("E107", "E303", "E310", "E409"):
                found.cannot_run(code, f"table {file.name}: {file.broken}")
            continue
        for name, column in seen.items():
            _digest(file, name, column, found)
            file.least[name] = column.least
            if file.name in tables() and name in tables()[file.name].names:
                _contract(file, tables()[file.name].column(name), column, found)
            elif column.count < column.rows and file.types[name] in INTEGERS:
                _nulls(file, name, column, found)
            if column.infinite:
                found.add("E409", "NaN or infinite", table=file.name, column=name, count=column.infinite)


def _scan(file: TableFile, database: Database) -> dict[str, _Column]:
    items = ["COUNT(*)"]
    for name, kind in file.types.items():
        column = quoted(name)
        items.append(f"COUNT({column})")
        if kind in INTEGERS:
            whole = f"CAST({column} AS BIGINT)"
            items += [f"COALESCE(SUM({whole}), 0)", f"COALESCE(BIT_XOR({whole}), 0)"]
            items += [f"COALESCE(MIN({whole}), 0)", f"COALESCE(MAX({whole}), 0)"]
        elif kind in ("DOUBLE", "FLOAT"):
            items.append(f"COUNT(*) FILTER (WHERE NOT isfinite({column}))")
        else:
            # Reading the lengths makes DuckDB decode the text.
            items.append(f"MAX(strlen({column}))")
    assert file.path is not None
    values: list[Any] = list(database.rows(f"SELECT {', '.join(items)} FROM {parquet_source(file.path)}")[0])
    rows = values.pop(0)
    seen = {}
    for name, kind in file.types.items():
        column_seen = _Column(rows, values.pop(0))
        if kind in INTEGERS:
            column_seen.total, column_seen.xor = int(values.pop(0)) & MASK, int(values.pop(0)) & MASK
            column_seen.least, column_seen.most = values.pop(0), values.pop(0)
        elif kind in ("DOUBLE", "FLOAT"):
            column_seen.infinite = values.pop(0)
        else:
            values.pop(0)
        seen[name] = column_seen
    return seen


def _digest(file: TableFile, name: str, column: _Column, found: Findings) -> None:
    digests = file.entry.get("columns")
    stated = digests.get(name) if isinstance(digests, dict) else None
    if not isinstance(stated, dict) or file.types[name] not in INTEGERS:
        return
    if column.count < column.rows:
        return  # E303 says it: a digest is defined for columns without nulls only.
    actual = {"count": column.count, "sum": f"{column.total:016x}", "xor": f"{column.xor:016x}"}
    for key, value in actual.items():
        if stated.get(key) != value:
            message = f"{key} {value}, the manifest says {clip(str(stated.get(key)), 40)}"
            found.add("E107", message, table=file.name, column=name)
            return


def _contract(file: TableFile, rule: Column, column: _Column, found: Findings) -> None:
    if column.count < column.rows and not rule.nullable:
        _nulls(file, rule.name, column, found)
    if rule.type == "INT32" and file.types[rule.name] == "INT64":
        low, high = BOUNDS["INT32"]
        if column.least < low or column.most > high:
            message = f"values from {column.least} to {column.most} do not fit INT32"
            found.add("E310", message, table=file.name, column=rule.name)
            found.withdraw("W304", file.name, rule.name)
            file.spoil(f"column {rule.name} does not fit its type")


def _nulls(file: TableFile, name: str, column: _Column, found: Findings) -> None:
    found.add("E303", "holds nulls", table=file.name, column=name, count=column.rows - column.count)
    file.spoil(f"column {name} holds nulls")


def minimum(table: str, column: Column) -> int | None:
    """Least value of an integer column, None when it has none."""
    if column.type not in ("INT32", "INT64"):
        return None
    listed = rules()["E404"].more["minimum"]
    least: int | None = listed.get(f"{table}.{column.name}", listed["*"])
    return least
