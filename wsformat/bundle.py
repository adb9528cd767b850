"""The bundle: one model for everything; tables are read when they are asked for."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from wsformat import manifest as manifests
from wsformat.errors import BadRequest, MalformedInput, NewerMinorWarning
from wsformat.manifest import Manifest
from wsformat.tables import conform, format_version, rows_to_table, tables

if TYPE_CHECKING:
    import duckdb
    import pandas

Batches: TypeAlias = Callable[[], Iterator[pa.Table]]
TableLike: TypeAlias = Any
"""An Arrow table, an iterable of dicts, or :data:`Batches` (pyarrow has no types to name here)."""
Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with (what, done, total); total is -1 when unknown."""


@dataclass(frozen=True, slots=True)
class TableData:
    """One table of a bundle that need not be in memory.

    Attributes:
        name: table name.
        rows: number of rows, -1 when only reading tells.
        batches: gives the rows anew each time it is called, in parts that conform to the standard.
        path: the Parquet file, when there is one.
    """

    name: str
    rows: int
    batches: Batches
    path: Path | None = None

    def read(self) -> pa.Table:
        """All rows as one Arrow table."""
        parts = list(self.batches())
        if not parts:
            return rows_to_table(self.name, [])
        return pa.concat_tables(parts, promote_options="permissive")


def manifest_of(path: str | os.PathLike[str]) -> Path:
    """The manifest of a bundle directory.

    Raises:
        MalformedInput: nothing is there, a file, or a directory without a manifest.
    """
    root = Path(path)
    if not root.exists():
        raise MalformedInput(f"{root}: no such bundle")
    if not root.is_dir():
        raise MalformedInput(
            f"{root}: a bundle is a directory (NAME.wsformat), this is a file",
            "Import it first: `wsformat import FILE -o NAME.wsformat`.",
        )
    file = root / manifests.NAME
    if not file.exists():
        raise MalformedInput(
            f"{root}: no {manifests.NAME}, so this is no bundle",
            "If it holds table files that lost their manifest, run `wsformat seal`.",
        )
    return file


def _from_memory(name: str, data: TableLike) -> TableData:
    if callable(data):
        stream = data
        return TableData(name, -1, lambda: (conform(name, part) for part in stream()))
    held = conform(name, data) if isinstance(data, pa.Table) else rows_to_table(name, data)
    return TableData(name, held.num_rows, lambda: iter([held]))


def _from_file(name: str, path: Path) -> TableData:
    try:
        rows = pq.read_metadata(path).num_rows
    except PermissionError as error:
        raise MalformedInput(f"{path}: Permission denied", "Its owner can make it readable.") from error
    except UnicodeEncodeError as error:
        raise MalformedInput(f"{path}: this name is not UTF-8, so Arrow cannot open it", "Rename it.") from error
    except (OSError, ValueError, pa.ArrowException) as error:
        raise MalformedInput(
            f"{path}: cannot be read as Parquet: {str(error).splitlines()[0]}",
            "The file is damaged or no Parquet; restore it from where the bundle came from.",
        ) from error

    def batches() -> Iterator[pa.Table]:
        try:
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(batch_size=131_072):
                    yield conform(name, batch)
        except (OSError, ValueError, pa.ArrowException) as error:
            raise MalformedInput(f"{path}: {str(error).splitlines()[0]}") from error

    return TableData(name, rows, batches, path)


@dataclass(frozen=True)
class Bundle:
    """What happened inside a kernel, as the tables of the standard.

    Get one from :meth:`open`, :meth:`from_tables` or a converter. A table that is not there is empty.
    Bundles are immutable: :meth:`with_tables` gives a new one.

    Attributes:
        data: the tables that are there, by name; may hold extension tables ``vendor__name``.
        manifest: as read, or as it will be written (without table entries).
        path: directory it was opened from, None when it lives in memory.
    """

    data: Mapping[str, TableData]
    manifest: Manifest = field(default_factory=lambda: Manifest(format_version()))
    path: Path | None = None

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Bundle:
        """Open a bundle directory; leniently: unknown tables, columns and keys are kept.

        Raises:
            MalformedInput: no bundle, or a manifest or table file that cannot be read.
            UnsupportedVersion: another major version.

        Warns:
            NewerMinorWarning: a newer minor version.
        """
        root, file = Path(path), manifest_of(path)
        manifest = manifests.parse(manifests.read_text(file), str(file))
        if manifests.number(manifest.version) > manifests.number(format_version()):
            warnings.warn(
                f"{root}: format version {manifest.version}, this library knows {format_version()}; "
                "what is newer is kept, not understood",
                NewerMinorWarning,
                stacklevel=2,
            )
        data = {}
        for name, entry in manifest.tables.items():
            table_file = root / entry["file"]
            if table_file.is_symlink() or not table_file.is_file():
                raise MalformedInput(f"{table_file}: table {name} is listed in the manifest, its file is missing")
            data[name] = _from_file(name, table_file)
        return cls(data, manifest, root)

    @classmethod
    def from_tables(
        cls,
        data: Mapping[str, TableLike],
        *,
        sources: Iterable[Mapping[str, Any]] = (),
        extensions: Iterable[Mapping[str, Any]] = (),
    ) -> Bundle:
        """Build a bundle in memory.

        Args:
            data: per table an Arrow table, an iterable of dicts (missing keys become defaults), or a function
                that gives an iterator of Arrow tables each time it is called (for tables larger than memory;
                its rows must come in the table's sort order).
            sources: provenance entries for the manifest.
            extensions: extension entries for the manifest.

        Raises:
            MalformedInput: a table or column that the standard does not know (extension tables contain ``__``),
                or a value of the wrong type.
        """
        for name in data:
            if name not in tables() and "__" not in name:
                raise MalformedInput(f"no table {name!r} in the standard; an extension table is named vendor__name")
        manifest = Manifest(format_version(), sources=tuple(sources), extensions=tuple(extensions))
        return cls({name: _from_memory(name, part) for name, part in data.items()}, manifest)

    def with_tables(self, data: Mapping[str, TableLike]) -> Bundle:
        """A bundle with these tables replaced or added."""
        parts = {name: _from_memory(name, part) for name, part in data.items()}
        return Bundle({**self.data, **parts}, self.manifest, None)

    def table(self, name: str) -> pa.Table:
        """All rows of a table, empty when it is not there. Columns and types are the standard's.

        Raises:
            BadRequest: no such table in the standard or in this bundle.
        """
        if name in self.data:
            return self.data[name].read()
        if name not in tables():
            raise BadRequest(f"no table {name!r}", f"Tables: {', '.join(tables())}.")
        return rows_to_table(name, [])

    def rows(self, name: str) -> int:
        """Number of rows of a table, 0 when it is not there."""
        part = self.data.get(name)
        if part is None:
            return 0
        return part.rows if part.rows >= 0 else sum(t.num_rows for t in part.batches())

    def to_pandas(self, name: str) -> pandas.DataFrame:
        """A table as a pandas DataFrame (needs pandas)."""
        return self.table(name).to_pandas()

    def duckdb(self, **options: Any) -> duckdb.DuckDBPyConnection:
        """A DuckDB connection on which every table and derived view of the standard can be queried by name.

        Args:
            options: see :func:`wsformat.derive.connect`.
        """
        from wsformat.derive import connect

        return connect(self, **options)

    def sql(self, query: str, parameters: object = None) -> pa.Table:
        """Rows of one SQL query over tables and derived views.

        Args:
            query: one statement; ticks are integers of the lane's clock, times in ns end with ``_ns``.
            parameters: values for ``?`` (a list) or ``$name`` (a mapping) in it.

        Raises:
            BadRequest: the query is wrong, with DuckDB's message.
        """
        from wsformat.derive import mentioned, run

        with self.duckdb(only=mentioned(query)) as connection:
            return run(connection, query, parameters)

    def write(self, path: str | os.PathLike[str], *, force: bool = False, progress: Progress | None = None) -> Bundle:
        """Write the bundle as a directory, atomically, and return it opened from there.

        Args:
            path: the directory, by custom ``NAME.wsformat``.
            force: replace a bundle that is there already.
            progress: called as rows are written.

        Raises:
            OutputExists: the target is there and ``force`` is false, or it is no bundle.
            MalformedInput: an integer column holds nulls.
        """
        from wsformat.writer import write_bundle

        return write_bundle(self, Path(path), force=force, progress=progress)

    def _repr_html_(self) -> str:
        from wsformat.bundle_repr import as_html

        return as_html(self)

    def __repr__(self) -> str:
        parts = ", ".join(f"{name} {part.rows if part.rows >= 0 else '?'}" for name, part in self.data.items())
        return f"<Bundle {self.path or 'in memory'}: {parts}>"
