"""The files of a lake, on a disk or in an object store, through fsspec: one code path for both."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from wsformat.errors import BadRequest, MissingDependency, WsformatError
from wsformat.lake.layout import lake_schema
from wsformat.tables import layout
from wsformat.writer import parquet_options

EXTRA = "wsformat[lake]"


def missing(error: ImportError) -> MissingDependency:
    """The error for a package of the extra that is not there."""
    return MissingDependency(f"a lake needs the package {error.name}", f"Install it: `pip install '{EXTRA}'`.")


def root_uri(place: str | os.PathLike[str]) -> str:
    """A lake's place as a URI without a slash at its end; a path becomes ``file:///...``."""
    text = os.fspath(place)
    if "://" in text:
        return text.rstrip("/")
    return "file://" + str(Path(os.path.abspath(text)))


@dataclass(frozen=True)
class Store:
    """A file system and the root of the lake on it.

    Attributes:
        uri: root, such as ``file:///data/lake`` or ``s3://bucket/lake``.
        fs: the fsspec file system.
        properties: of pyiceberg, from which the file system was made.
    """

    uri: str
    fs: Any
    properties: Mapping[str, str]

    @property
    def local(self) -> bool:
        """It lies on a disk of this machine."""
        return self.uri.startswith("file://")

    def path(self, uri: str) -> str:
        """What DuckDB and pyarrow call a file: a plain path on a disk, the URI elsewhere."""
        return uri.removeprefix("file://") if self.local else uri

    def reader(self) -> Any:
        """The file system for DuckDB, which asks forty times what a file is before it has read it; each is asked about
        once here, since a data file never changes."""
        fs = type(self.fs)(*self.fs.storage_args, **{**self.fs.storage_options, "skip_instance_cache": True})
        known: dict[str, Any] = {}
        ask, when = fs.info, fs.modified

        def info(path: str, **options: Any) -> Any:
            name = fs._strip_protocol(path)
            if name not in known:
                known[name] = ask(path, **options)
            return known[name]

        def modified(path: str, **options: Any) -> Any:
            return info(path).get("LastModified") or when(path, **options)

        def isfile(path: str, **options: Any) -> bool:
            try:
                return bool(info(path)["type"] == "file")
            except FileNotFoundError:
                return False

        def glob(path: str, **options: Any) -> list[str]:
            # A bracket around a single character stands for that character, see wsformat.lake.index.scan.
            name = str(fs._strip_protocol(re.sub(r"\[(.)\]", r"\1", path)))
            return [name] if isfile(name) else []

        def size(path: str) -> int:
            return int(info(path)["size"])

        fs.info, fs.modified, fs.size, fs.isfile, fs.exists, fs.glob = info, modified, size, isfile, isfile, glob
        return fs

    def exists(self, name: str) -> bool:
        """Whether a file of the root is there; asks the store, not a cache."""
        self.fs.invalidate_cache()
        return bool(self.fs.exists(f"{self.uri}/{name}"))

    def read_text(self, name: str) -> str:
        """Text of a small file of the root."""
        return str(self.fs.cat_file(f"{self.uri}/{name}").decode("utf-8"))

    def write_text(self, name: str, text: str) -> None:
        """Write a small file of the root: whole, or not at all."""
        target = f"{self.uri}/{name}"
        if not self.local:
            self.fs.pipe_file(target, text.encode())
            return
        path = Path(self.path(target))
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = path.with_name(f".{path.name}.{os.getpid()}")
        scratch.write_text(text, encoding="utf-8")
        os.replace(scratch, path)

    def empty(self) -> bool:
        """Whether nothing is there; looks at one level only."""
        self.fs.invalidate_cache()
        try:
            return not self.fs.ls(self.uri, detail=False)
        except FileNotFoundError:
            return True

    def listing(self, folder: str) -> dict[str, tuple[int, float]]:
        """Every file below a folder of the root: URI -> (bytes, seconds of Unix time when it was written)."""
        self.fs.invalidate_cache()
        try:
            found = self.fs.find(f"{self.uri}/{folder}", detail=True)
        except FileNotFoundError:
            return {}
        return {self._uri(name): (int(entry["size"]), _when(entry)) for name, entry in found.items()}

    def _uri(self, name: str) -> str:
        return f"file://{name}" if self.local else str(self.fs.unstrip_protocol(name))

    def remove(self, uris: list[str]) -> None:
        """Delete files; what is gone already is no error."""
        for uri in uris:
            with suppress(FileNotFoundError):
                self.fs.rm_file(uri)

    def remove_quietly(self, uris: list[str]) -> None:
        """Delete files that nobody knows of; what cannot be deleted is left to the sweep."""
        for uri in uris:
            with suppress(Exception):
                self.fs.rm_file(uri)

    @contextmanager
    def parquet(self, uri: str, name: str, schema: pa.Schema) -> Iterator[pq.ParquetWriter]:
        """A writer of one data file in the layout of the standard; on a disk it is on the disk when this ends.

        Raises:
            WsformatError: it cannot be written, such as on a full disk.
        """
        options = parquet_options(name, schema)
        shown = [column for column in schema.names if column.startswith("lake_")]
        options["write_statistics"] = [*(options["write_statistics"] or []), *shown]
        try:
            if self.local:
                Path(self.path(uri)).parent.mkdir(parents=True, exist_ok=True)
            with self.fs.open(uri, "wb") as file:
                with pq.ParquetWriter(file, schema, **options) as writer:
                    yield writer
                if self.local:
                    file.flush()
                    os.fsync(file.fileno())
        except OSError as error:
            raise WsformatError(f"{uri}: cannot be written: {error.strerror or error}") from error

    def write_parquet(self, uri: str, name: str, data: pa.Table) -> None:
        """Write one data file. Raises as :meth:`parquet`."""
        rows = lake_schema()["row_groups"].get(name, layout()["row_group_rows"])
        with self.parquet(uri, name, data.schema) as writer:
            writer.write_table(data, row_group_size=rows)


def _when(entry: Mapping[str, Any]) -> float:
    stamp = entry.get("mtime", entry.get("LastModified", entry.get("last_modified", 0.0)))
    return float(stamp.timestamp() if hasattr(stamp, "timestamp") else stamp)


def open_store(place: str | os.PathLike[str], properties: Mapping[str, str]) -> Store:
    """The file system of a lake's place.

    Args:
        place: a path, or a URI of any scheme that pyiceberg's fsspec file systems know (s3, gs, abfs and so on).
        properties: of pyiceberg, such as ``s3.endpoint``; what is not there comes from the environment.

    Raises:
        MissingDependency, BadRequest
    """
    uri = root_uri(place)
    scheme = uri.split("://")[0]
    try:
        from pyiceberg.io.fsspec import FsspecFileIO
    except ImportError as error:
        raise missing(error) from error
    try:
        fs = FsspecFileIO(dict(properties)).get_fs(scheme)
    except ImportError as error:
        raise missing(error) from error
    except ValueError as error:
        raise BadRequest(f"{uri}: no file system for {scheme!r}", "Such as a path, or s3://BUCKET/NAME.") from error
    return Store(uri, fs, dict(properties))
