"""What is being validated: the manifest as found, and each table file with its footer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from wsformat.bundle import TableData
from wsformat.manifest import VERSION, number
from wsformat.tables import format_version, tables


class Chunk(NamedTuple):
    """What the footer says of one column chunk."""

    group: int
    position: int
    column: str
    type: str
    encodings: frozenset[str]
    compression: str
    data_page_offset: int
    bloom_filter: bool


@dataclass
class TableFile:
    """One table of the bundle under test.

    Attributes:
        name: table name.
        path: its file; None when the table is in memory.
        entry: what the manifest says about it.
        footer: the Parquet footer, None until it is read, or when there is none.
        chunks: the column chunks of the footer.
        types: column name -> type as stored: one of the five, FLOAT, or a description of a forbidden one.
        broken: why its rows cannot be judged; '' they can.
        data: its rows, for a table in memory.
        least: least value of each integer column, once the rows were scanned.
    """

    name: str
    path: Path | None = None
    entry: Mapping[str, Any] = field(default_factory=dict)
    footer: pq.FileMetaData | None = None
    chunks: list[Chunk] = field(default_factory=list)
    types: dict[str, str] = field(default_factory=dict)
    broken: str = ""
    data: TableData | None = None
    least: dict[str, int] = field(default_factory=dict)

    def spoil(self, reason: str) -> None:
        """Note that the rows cannot be judged; the first reason counts."""
        self.broken = self.broken or reason


@dataclass
class Subject:
    """The bundle under test.

    Attributes:
        root: its directory; None when it is in memory.
        manifest: the manifest's JSON values, {} until it is read.
        files: the tables that the manifest lists and whose entry makes sense.
        fatal: why nothing further can be checked; '' it can.
    """

    root: Path | None = None
    manifest: dict[str, Any] = field(default_factory=dict)
    files: dict[str, TableFile] = field(default_factory=dict)
    fatal: str = ""

    @property
    def version(self) -> str:
        """Format version that the manifest states, '' when it states none."""
        version = self.manifest.get("version")
        return version if isinstance(version, str) else ""

    @property
    def newer(self) -> bool:
        """Whether the bundle is of a newer minor version than this library knows."""
        return bool(VERSION.fullmatch(self.version)) and number(self.version) > number(format_version())

    @property
    def extensions(self) -> list[Mapping[str, Any]]:
        """Extension entries of the manifest that are objects."""
        listed = self.manifest.get("extensions")
        return [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []

    def knows(self, table: str, column: str = "") -> bool:
        """Whether the bundle's own version has that table or column."""
        if table not in tables():
            return False
        if not column:
            return number(tables()[table].since) <= number(self.version)
        return column in tables()[table].names and number(tables()[table].column(column).since) <= number(self.version)


def texts(value: Any) -> list[str]:
    """The texts of a JSON array; [] when it is none."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
