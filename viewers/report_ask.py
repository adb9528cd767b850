"""Asks a bundle the questions of a page and keeps each with its rows, so that a number can name its query."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from wsformat.bundle import Bundle
from wsformat.derive import run
from wsformat.viewers.report_model import Query, plain

MOST_ROWS = 2000
"""Rows of one query on a page; more are counted and left to the query itself."""


@dataclass(frozen=True)
class Shared(Bundle):
    """A bundle whose questions all go to one connection: a page asks many, and most need the same views.

    Attributes:
        connection: over the bundle; whoever opened it closes it.
    """

    connection: Any = None

    def duckdb(self, **_: Any) -> Any:
        """The connection, lent: to leave its context does not close it. What is to be materialised was so before."""
        return _Lent(self.connection)


class _Lent:
    """A connection that its user cannot close."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def close(self) -> None:
        """Nothing: the owner closes it."""


def shared(bundle: Bundle, connection: Any) -> Shared:
    """The bundle with every question going to that connection."""
    return Shared(bundle.data, bundle.manifest, bundle.path, connection)


@dataclass(frozen=True)
class Asker:
    """An open bundle and the queries that were asked so far.

    Attributes:
        bundle, connection: the bundle, and its tables and views by name.
        name: what to call the bundle in a command.
        found: every query by id.
        prefix: begins every id, so that several captures fit on one page.
    """

    bundle: Bundle
    connection: Any
    name: str
    found: dict[str, Query] = field(default_factory=dict)
    prefix: str = ""

    def ask(self, name: str, title: str, sql: str) -> Query:
        """Rows of a query, kept under its name. The SQL is complete: it has no parameters."""
        text = textwrap.dedent(sql).strip()
        table = run(self.connection, text)
        rows = tuple({key: plain(value) for key, value in row.items()} for row in table.to_pylist())
        return self._keep(Query(self.prefix + name, title, tuple(table.column_names), rows, sql=text))

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """Rows of a query that is not shown: to choose what to ask."""
        found: list[dict[str, Any]] = run(self.connection, sql).to_pylist()
        return found

    def given(
        self, name: str, title: str, rows: Iterable[dict[str, Any]], command: str, at: Sequence[str] = ()
    ) -> Query:
        """Rows that a command gives, kept under a name."""
        listed = tuple({key: plain(value) for key, value in row.items()} for row in rows)
        columns = tuple(dict.fromkeys(key for row in listed for key in row))
        return self._keep(Query(self.prefix + name, title, columns, listed, command=command, at=tuple(at)))

    def _keep(self, query: Query) -> Query:
        self.found[query.id] = query
        return query


def literal(text: str) -> str:
    """A string literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def unit_word(unit: str) -> str:
    """'cycles', and 'ns' as it is."""
    return unit if unit == "ns" else f"{unit}s"
