"""A lake: where it lies, its catalog, and what is in it right now."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from wsformat import manifest as manifests
from wsformat.errors import BadRequest, MalformedInput, OutputExists, UnsupportedVersion
from wsformat.lake import catalog as catalogs
from wsformat.lake.catalog import DataFile
from wsformat.lake.layout import NAME, lake_schema
from wsformat.lake.moved import IMPLEMENTATION, LIES, MADE, named
from wsformat.lake.store import Store, open_store

if TYPE_CHECKING:
    import duckdb

    from wsformat.bundle import Bundle, Progress
    from wsformat.lake.add import Added
    from wsformat.lake.compact import Compacted
    from wsformat.lake.reading import Source
    from wsformat.lake.verify import Verified

KEPT_SECONDS = 60.0
SQLITE = "catalog.sqlite"
SECRETS = ("secret", "password", "token", "credential")


@dataclass
class Lake:
    """Thousands of captures as the tables of the standard, one directory a table.

    Get one from :meth:`init` or :meth:`open`. Every method sees the lake as it is when it is called.

    Attributes:
        store: the files.
        catalog: the Iceberg catalog.
    """

    store: Store
    catalog: Any
    _known: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    _engine: Any = None
    _connection: Any = None

    @classmethod
    def init(
        cls, place: str | os.PathLike[str], *, catalog: str = "", properties: Mapping[str, str] | None = None
    ) -> Lake:
        """Make an empty lake.

        Args:
            place: a new or empty folder, or a URI such as ``s3://bucket/name``.
            catalog: '' an SQLite file in the lake (a disk only); the URI of a database (``postgresql+psycopg2://...``,
                ``sqlite:////path``) or of a REST catalog (``https://...``); else the name of a catalog in pyiceberg's
                own configuration.
            properties: more properties of pyiceberg, kept in ``lake.json``.

        Raises:
            OutputExists: there is something already.
            BadRequest: a secret among the properties, or no catalog for an object store.
        """
        given = dict(properties or {})
        for key in given:
            if any(word in key.lower() for word in SECRETS):
                raise BadRequest(
                    f"property {key}: a secret would be kept in {NAME}",
                    "Give it by the environment, such as AWS_SECRET_ACCESS_KEY, or in pyiceberg's configuration.",
                )
        store = open_store(place, given)
        if not catalog and not store.local:
            raise BadRequest(
                f"{store.uri}: SQLite cannot lie in an object store, so a lake there needs a catalog elsewhere",
                "Such as --catalog sqlite:////home/me/lake.sqlite, postgresql+psycopg2://HOST/DB, or a REST catalog.",
            )
        if store.exists(NAME):
            raise OutputExists(f"{store.path(store.uri)}: is a lake already")
        if not store.empty():
            raise OutputExists(f"{store.path(store.uri)}: is not empty; nothing was written")
        if store.local:
            os.makedirs(store.path(store.uri), exist_ok=True)
        config = {
            "format": "wsformat-lake",
            "version": lake_schema()["version"],
            "made_at": store.uri,
            "catalog": catalog,
            "options": given,
        }
        made = cls(store, catalogs.open_catalog(*_catalog(store, catalog, given)))
        if catalogs.names(made.catalog):
            raise OutputExists(f"catalog {catalog}: holds a lake already", "One catalog, or catalog name, per lake.")
        store.write_text(NAME, json.dumps(config, indent=1) + "\n")
        return made

    @classmethod
    def open(cls, place: str | os.PathLike[str], *, properties: Mapping[str, str] | None = None) -> Lake:
        """Open a lake.

        Args:
            place: its folder or URI.
            properties: of pyiceberg, over those of ``lake.json``, such as ``s3.endpoint``.

        Raises:
            MalformedInput: no lake; or one with a catalog elsewhere, which knows it at another place.
            UnsupportedVersion: made by a newer library.
        """
        store = open_store(place, dict(properties or {}))
        try:
            text = store.read_text(NAME)
        except FileNotFoundError as error:
            raise MalformedInput(
                f"{store.path(store.uri)}: no {NAME}, so this is no lake", "Make one with `wsformat lake init`."
            ) from error
        except OSError as error:
            raise MalformedInput(f"{store.path(store.uri)}: {error.strerror or error}") from error
        config = manifests.parse_json(text, f"{store.path(store.uri)}/{NAME}")
        if not isinstance(config, dict) or config.get("format") != "wsformat-lake":
            raise MalformedInput(f"{store.path(store.uri)}/{NAME}: not the description of a lake")
        if config.get("version") != lake_schema()["version"]:
            raise UnsupportedVersion(
                f"{store.path(store.uri)}: lake version {config.get('version')}, this library knows "
                f"{lake_schema()['version']}",
                "Install a newer wsformat.",
            )
        options = {**config.get("options", {}), **dict(properties or {})}
        if options != dict(store.properties):
            store = open_store(place, options)
        catalog, made_at = config.get("catalog", ""), str(config.get("made_at", store.uri))
        if catalog and made_at != store.uri:
            raise MalformedInput(
                f"{store.path(store.uri)}: was made at {made_at}, and its catalog {catalog} knows it there",
                "Open it there; or make a new lake and `wsformat lake add` to it what `wsformat lake get` writes.",
            )
        return cls(store, catalogs.open_catalog(*_catalog(store, catalog, options, made_at)))

    @property
    def name(self) -> str:
        """How to call it in messages."""
        return self.store.path(self.store.uri)

    def table(self, name: str) -> tuple[Any, list[DataFile]]:
        """The Iceberg table as it is now (None: not there yet) and the data files of its snapshot.

        Raises:
            MalformedInput: the catalog is that of a lake elsewhere.
        """
        known = self._known.get(name)
        if known is not None and known[0] == catalogs.location(self.catalog, name):
            return known[1], known[2]
        table = catalogs.load(self.catalog, name)
        if table is None:
            return None, []
        if known is not None and known[0] == table.metadata_location:
            return known[1], known[2]
        if table.location() != named(self.catalog.properties, f"{self.store.uri}/{name}"):
            made = table.location().rsplit("/", 1)[0]
            raise MalformedInput(f"{self.name}: its catalog is that of a lake at {made}", "See its lake.json.")
        files = catalogs.files(table)
        self._known[name] = (table.metadata_location, table, files)
        return table, files

    def forget(self) -> None:
        """Ask the catalog anew for everything that is asked next."""
        self._known.clear()
        self._connection = None

    def engine(self) -> duckdb.DuckDBPyConnection:
        """A DuckDB cursor that reads the lake's files, for queries of our own."""
        from wsformat.lake.index import engine

        if self._engine is None:
            self._engine = engine(self.store)
        cursor: duckdb.DuckDBPyConnection = self._engine.cursor()
        return cursor

    def add(
        self,
        bundles: Sequence[Source],
        *,
        progress: Progress | None = None,
        summarise: bool = False,
        batch: int | None = None,
        processes: int | None = None,
    ) -> Added:
        """Add the captures of bundles; see :func:`wsformat.lake.add.add`.

        Args:
            bundles: opened ones, or their directories.
            progress: called as bundles are read and written.
            summarise: compute the summaries of what was added at once, instead of at the first question.
            batch: most bundles that become visible together; None as many as the layout says.
            processes: that add at the same time; None as many as there are cores, 4 at most, when it is worth it.
        """
        from wsformat.lake.add import add

        done = add(self, bundles, progress=progress, batch=batch, processes=processes)
        if summarise:
            self.summarise(progress=progress)
        return done

    def remove(self, captures: Sequence[str]) -> list[str]:
        """Remove captures, by id or the start of one; see :func:`wsformat.lake.remove.remove`."""
        from wsformat.lake.remove import remove

        return remove(self, captures)

    def duckdb(self, sql: str = "", **options: Any) -> duckdb.DuckDBPyConnection:
        """A DuckDB connection with the tables and derived views; see :func:`wsformat.lake.query.connect`."""
        from wsformat.lake.query import connect

        return connect(self, sql, **options)

    def sql(self, query: str, *, where: str = "", summaries: bool = True) -> pa.Table:
        """Rows of one query over tables and derived views; of the captures for which ``where`` holds.

        The connection is kept for the next query of the same kind, as long as nothing is added or removed.

        Args:
            query: one statement.
            where: SQL condition on ``captures`` that chooses captures; '' takes all.
            summaries: take role, wait and iteration summaries from where they are kept, else compute them from stamps.

        Raises:
            BadRequest: the query is wrong, with DuckDB's message.
        """
        from wsformat.derive import run
        from wsformat.lake.index import read_index
        from wsformat.lake.query import connect, plan_of

        table = read_index(self).table
        at = table.metadata_location if table is not None else ""
        key = (at, plan_of(self, query, where=where, summaries=summaries), where)
        if self._connection is None or self._connection[0] != key or time.monotonic() > self._connection[1]:
            opened = connect(self, query, where=where, summaries=summaries)
            self._connection = (key, time.monotonic() + KEPT_SECONDS, opened)
        return run(self._connection[2], query)

    def get(self, captures: Sequence[str], *, experiment: bool = False) -> Bundle:
        """A bundle of some captures; see :func:`wsformat.lake.get.get`.

        Args:
            captures: by id, or how it begins.
            experiment: with them all captures of their experiments, such as the clean launches.
        """
        from wsformat.lake.get import get

        return get(self, captures, experiment=experiment)

    def summarise(self, *, progress: Progress | None = None) -> int:
        """Compute the summaries that are missing; see :func:`wsformat.lake.summaries.summarise`."""
        from wsformat.lake.summaries import summarise

        return summarise(self, progress=progress)

    def compact(self, *, retention: float | None = None, progress: Progress | None = None) -> Compacted:
        """Join small files, drop removed rows, sweep; see :func:`wsformat.lake.compact.compact`.

        Args:
            retention: seconds for which files that a reader or writer may need are kept; None a day.
            progress: called as files are joined.
        """
        from wsformat.lake.compact import compact

        return compact(self, retention=retention, progress=progress)

    def verify(self, *, content: bool = True, progress: Progress | None = None) -> Verified:
        """Check files, visibility, counts and content; see :func:`wsformat.lake.verify.verify`.

        Args:
            content: compute the digest of every capture anew; else files and counts only.
            progress: called as captures are read.
        """
        from wsformat.lake.verify import verify

        return verify(self, content=content, progress=progress)

    def __repr__(self) -> str:
        return f"<Lake {self.name}>"


def _catalog(store: Store, catalog: str, options: Mapping[str, str], made_at: str = "") -> tuple[str, dict[str, str]]:
    """Name and properties for pyiceberg: every file goes through the same fsspec file system as our own."""
    shared = {
        **{key: str(value) for key, value in options.items()},
        "py-io-impl": "pyiceberg.io.fsspec.FsspecFileIO",
        "warehouse": store.uri,
    }
    if made_at and made_at != store.uri:
        shared |= {"py-io-impl": IMPLEMENTATION, MADE: made_at, LIES: store.uri, "warehouse": made_at}
    if not catalog:
        return "wsformat", {**shared, "type": "sql", "uri": f"sqlite:///{store.path(store.uri)}/{SQLITE}?timeout=60"}
    if catalog.startswith(("http://", "https://")):
        return "wsformat", {**shared, "type": "rest", "uri": catalog}
    if "://" in catalog:
        return "wsformat", {**shared, "type": "sql", "uri": catalog}
    return catalog, shared
