"""The DuckDB connection of the data rules: raw tables as stored, the standard's tables and views, shared relations."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pyarrow as pa

from wsformat.bundle import Bundle, TableData
from wsformat.derive import connect, make_views
from wsformat.hardware import highest_clocks
from wsformat.tables import tables
from wsformat.validate.rules import relations
from wsformat.validate.subject import Subject, texts

WORD = re.compile(r"[a-z_]+")
# Number runs are padded, so that lane 10 comes after lane 2.
NATURAL = r"regexp_replace(regexp_replace(row, '([0-9]+)', '0000000000000000000\1', 'g'), '0*([0-9]{19})', '\1', 'g')"
SORT_AT_MOST = 100_000


class Database:
    """A connection over the sound tables of a subject.

    Args:
        subject: its tables that are not broken can be queried.
        memory_limit: for DuckDB, such as '2GB'; what does not fit goes to a temporary folder.
        seconds: a query that takes longer is stopped.
    """

    def __init__(self, subject: Subject, *, memory_limit: str, seconds: float) -> None:
        self.seconds = seconds
        self.scratch = TemporaryDirectory(prefix="wsformat-validate-")
        self.made: set[str] = set()
        data = {}
        for name, file in subject.files.items():
            if file.broken or name not in tables():
                continue
            data[name] = file.data or TableData(name, -1, lambda: iter(()), file.path)
        # Views are made when a rule names them: making all takes longer than checking a small bundle.
        self.views: set[str] = set()
        self.connection = connect(Bundle(data), memory_limit=memory_limit, only=())
        self.connection.execute("SET temp_directory = ?", [self.scratch.name])
        self.connection.register("manifest_source_captures", _source_captures(subject))
        self.connection.register("highest_clock", _highest_clocks())

    def close(self) -> None:
        """Close the connection and remove its temporary files."""
        self.connection.close()
        self.scratch.cleanup()

    def rows(self, query: str, parameters: Any = None) -> list[tuple[Any, ...]]:
        """Rows of a query.

        Raises:
            duckdb.Error: it failed or took too long.
        """
        make_views(self.connection, query, self.views)
        with self._limited():
            return self.connection.execute(query, parameters).fetchall()

    def offences(self, query: str) -> tuple[int, str, str]:
        """Number of rows of a query with columns ``row`` and ``detail``, and the first of them by row.

        Raises:
            duckdb.Error: it failed or took too long.
        """
        self.need(query)
        found = self.rows(f"SELECT COUNT(*), MIN(row), ARG_MIN(detail, row) FROM ({query})")
        count, row, detail = found[0]
        if 1 < count <= SORT_AT_MOST:
            found = self.rows(f"SELECT ARG_MIN(row, {NATURAL}), ARG_MIN(detail, {NATURAL}) FROM ({query})")
            row, detail = found[0]
        return count, str(row), str(detail)

    def need(self, query: str) -> None:
        """Make the shared relations that a query names, and those that they name."""
        for name in WORD.findall(query):
            if name in relations() and name not in self.made:
                self.made.add(name)
                self.need(relations()[name])
                make_views(self.connection, relations()[name], self.views)
                with self._limited():
                    self.connection.execute(f"CREATE TEMP TABLE {name} AS {relations()[name]}")

    @contextmanager
    def _limited(self) -> Iterator[None]:
        timer = threading.Timer(self.seconds, self.connection.interrupt)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


def quoted(name: str) -> str:
    """A name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def first_line(error: duckdb.Error) -> str:
    """What DuckDB says, in one line."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def _highest_clocks() -> pa.Table:
    """Facts of the hardware as a relation: of (device or arch), name, hz."""
    kinds, names, rates = zip(*highest_clocks(), strict=True)
    return pa.table({"of": list(kinds), "name": list(names), "hz": list(rates)})


def _source_captures(subject: Subject) -> pa.Table:
    sources = subject.manifest.get("sources")
    entries = [entry for entry in sources if isinstance(entry, dict)] if isinstance(sources, list) else []
    ids = sorted({capture for entry in entries for capture in texts(entry.get("capture_ids"))})
    return pa.table({"capture_id": pa.array(ids, pa.string())})
