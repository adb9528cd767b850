"""The rules of the validator as they stand in ``schema/rules.json``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from wsformat.tables import read_schema_json


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of the standard.

    Attributes:
        code: level letter and number, such as ``E403``; never reused.
        word: the same in a word, such as ``TIME_NOT_MONOTONIC``.
        title: the requirement in one sentence.
        check: ``sql``, or the module of this package that checks it.
        mode: ``metadata`` (manifest and footers suffice) or ``data`` (rows are read).
        tables: tables that it concerns; empty when it is about all of them.
        sql: for ``sql``, a query that gives a row an offence: ``row`` and ``detail``, both text.
        table: for ``sql``, the table that an offence is reported for.
        column: for ``sql``, its column.
        more: whatever else the rule states, such as bounds or patterns.
    """

    code: str
    word: str
    title: str
    check: str
    mode: str
    tables: tuple[str, ...]
    sql: str = ""
    table: str = ""
    column: str = ""
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def level(self) -> str:
        """E (error), W (warning) or I (hint)."""
        return self.code[0]

    @property
    def family(self) -> str:
        """First digit of the number: 1 container ... 9 extensions."""
        return self.code[1]


@cache
def rules() -> dict[str, Rule]:
    """Every rule by code, in order of the number."""
    named = {"code", "word", "title", "check", "mode", "tables", "sql", "table", "column"}
    return {
        raw["code"]: Rule(
            code=raw["code"],
            word=raw["word"],
            title=raw["title"],
            check=raw["check"],
            mode=raw["mode"],
            tables=tuple(raw["tables"]),
            sql="\n".join(raw.get("sql", [])),
            table=raw.get("table", ""),
            column=raw.get("column", ""),
            more={key: value for key, value in raw.items() if key not in named},
        )
        for raw in read_schema_json("rules.json")["rules"]
    }


@cache
def relations() -> dict[str, str]:
    """SQL of the relations that several rules share, by name; each needs tables, views and earlier ones only."""
    return {name: "\n".join(lines) for name, lines in read_schema_json("rules.json")["relations"].items()}
