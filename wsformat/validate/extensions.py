"""Family 9xx: what the manifest declares as extensions, and what the tables hold."""

from __future__ import annotations

import re

from wsformat.tables import tables
from wsformat.validate.report import Findings, clip
from wsformat.validate.subject import Subject, texts

NAME = re.compile(r"(?P<vendor>[a-z][a-z0-9]*)\.[a-z][a-z0-9_]*")
KNOWN: tuple[str, ...] = ()
"""Extensions that this library understands: none so far."""


def check(subject: Subject, found: Findings) -> None:
    """W901 to E906."""
    seen: set[str] = set()
    declared_tables: set[str] = set()
    declared_columns: set[str] = set()
    for index, entry in enumerate(subject.extensions):
        name = entry.get("name")
        if not isinstance(name, str):
            continue
        place = f"extensions/{index}, {clip(name, 60)}"
        if name in seen:
            found.add("E906", "named before", row=place)
        seen.add(name)
        own_tables, own_columns = texts(entry.get("tables")), texts(entry.get("columns"))
        declared_tables.update(own_tables)
        declared_columns.update(own_columns)
        _names(name, place, own_tables, own_columns, found)
        if entry.get("must_understand") is True and name not in KNOWN:
            touched = ", ".join([*own_tables, *own_columns]) or "the whole bundle"
            found.add("E902", f"must be understood to read {touched}, and is not known here", row=place)
        for table in own_tables:
            if table not in subject.files and table not in tables():
                found.add("W904", "declared, not in the bundle", table=clip(table, 60), row=place)
        for column in own_columns:
            table, _, part = column.partition(".")
            file = subject.files.get(table)
            if file is None or (file.footer is not None and part not in file.types):
                found.add(
                    "W904", "declared, not in the bundle", table=clip(table, 60), row=place, column=clip(part, 60)
                )
    _undeclared(subject, declared_tables, declared_columns, found)


def _names(name: str, place: str, own_tables: list[str], own_columns: list[str], found: Findings) -> None:
    match = NAME.fullmatch(name)
    if match is None:
        found.add("E903", "an extension is named vendor.topic", row=place)
        return
    prefix = f"{match['vendor']}__"
    for table in own_tables:
        if table not in tables() and not table.startswith(prefix):
            found.add("E903", f"a table of this vendor is named {prefix}TOPIC", table=clip(table, 60), row=place)
    for column in own_columns:
        table, _, part = column.partition(".")
        if table in tables() and part not in tables()[table].names and not part.startswith(prefix):
            found.add(
                "E903", f"a column of this vendor is named {prefix}NAME", table=table, row=place, column=clip(part, 60)
            )


def _undeclared(subject: Subject, own_tables: set[str], own_columns: set[str], found: Findings) -> None:
    for name, file in subject.files.items():
        if name not in tables() and "__" in name:
            if name not in own_tables:
                found.add("W901", "no extension of the manifest declares this table", table=clip(name, 60))
            if file.footer is not None and file.types.get("capture_id") != "STRING":
                found.add("E905", "no text column capture_id", table=clip(name, 60))
        elif name in tables():
            for column in file.types:
                if "__" in column and f"{name}.{column}" not in own_columns:
                    message = "no extension of the manifest declares this column"
                    found.add("W901", message, table=name, column=clip(column, 60))
