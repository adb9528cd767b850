"""The catalog of a lake: one Apache Iceberg table for each table of the standard, through pyiceberg.

Data files are written by us, in the layout of the standard, and handed to Iceberg by name. A commit that meets another
one starts over from the table as it is then, so nothing is lost and nothing is committed twice.
"""

from __future__ import annotations

import itertools
import logging
import random
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa

from wsformat.errors import BadRequest, MalformedInput, WsformatError
from wsformat.lake.layout import base_columns, lake_schema, own_columns
from wsformat.lake.moved import named, placed
from wsformat.lake.store import missing
from wsformat.tables import ARROW_TYPES, tables

NAMESPACE = "wsformat"
PATIENCE = 120.0
"""Seconds for which a commit is tried again when others are in the way."""
Found = TypeVar("Found")


class CommitConflict(WsformatError):
    """Somebody else committed to the table in between."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """One data file of a table's snapshot.

    Attributes:
        uri: where it lies.
        rows, bytes: its size.
        arch, month, major: its partition.
        least, most: the first and the last capture_id in it.
    """

    uri: str
    rows: int
    bytes: int
    major: int
    arch: str
    month: str
    least: str
    most: str


def open_catalog(name: str, properties: dict[str, str]) -> Any:
    """The catalog, from properties of pyiceberg; name is that of its section in pyiceberg's own configuration.

    Raises:
        MissingDependency: pyiceberg or the driver of the catalog is not installed.
        BadRequest: the catalog cannot be reached.
    """
    try:
        from pyiceberg.catalog import load_catalog
    except ImportError as error:
        raise missing(error) from error
    logging.getLogger("pyiceberg").setLevel(logging.ERROR)
    try:
        catalog = load_catalog(name, **properties)
        if not catalog.namespace_exists(NAMESPACE):
            catalog.create_namespace_if_not_exists(NAMESPACE)
        return catalog
    except ImportError as error:
        raise missing(error) from error
    except Exception as error:
        raise BadRequest(f"catalog {properties.get('uri', name)}: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def load(catalog: Any, name: str) -> Any:
    """The Iceberg table, or None when the lake has no such table yet."""
    from pyiceberg.exceptions import NoSuchTableError

    try:
        return patiently(lambda: catalog.load_table((NAMESPACE, name)))
    except NoSuchTableError:
        return None
    except FileNotFoundError as error:
        raise MalformedInput(
            f"table {name}: its metadata is gone: {_first_line(error)}",
            "Is this the place that the lake's catalog knows? See its lake.json.",
        ) from error


def location(catalog: Any, name: str) -> str:
    """Where the metadata of a table is now, without reading it; '' where the catalog can't say that by itself.

    The columns are those of Iceberg's JDBC catalog, which pyiceberg's catalogs in databases have too.
    """
    from pyiceberg.catalog.sql import SqlCatalog
    from sqlalchemy import text

    if not isinstance(catalog, SqlCatalog):
        return ""
    sql = "SELECT metadata_location FROM iceberg_tables WHERE catalog_name = :c AND table_namespace = :s "
    wanted = {"c": catalog.name, "s": NAMESPACE, "t": name}

    def ask() -> Any:
        with catalog.engine.connect() as connection:
            return connection.execute(text(sql + "AND table_name = :t"), wanted).scalar()

    return str(patiently(ask) or "")


def in_memory(catalog: Any) -> bool:
    """Whether the catalog is known to this process only: SQLite without a file."""
    url = getattr(getattr(catalog, "engine", None), "url", None)
    if url is None or not url.drivername.startswith("sqlite"):
        return False
    return url.database in (None, "", ":memory:") or "mode=memory" in str(url)


def names(catalog: Any) -> list[str]:
    """Names of the lake's tables."""
    return sorted(identifier[-1] for identifier in catalog.list_tables(NAMESPACE))


def ensure(catalog: Any, root: str, name: str, schema: pa.Schema) -> Any:
    """The Iceberg table, made when it is not there, and with every column of ``schema``.

    Raises:
        MalformedInput: a column of a type that the standard does not have.
    """
    from pyiceberg.exceptions import CommitFailedException, TableAlreadyExistsError
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.transforms import IdentityTransform
    from pyiceberg.types import NestedField

    while True:
        table = load(catalog, name)
        if table is not None and set(schema.names) <= {field.name for field in table.schema().fields}:
            return table
        if table is None:
            docs = _meanings(name)
            fields = [
                NestedField(number, field.name, _iceberg(field), required=not field.nullable, doc=docs.get(field.name))
                for number, field in enumerate(schema, start=1)
            ]
            whole = Schema(*fields)
            parts = [
                PartitionField(schema.names.index(column) + 1, 1000 + number, IdentityTransform(), column)
                for number, column in enumerate(lake_schema()["partition"])
            ]
            properties = {
                **lake_schema()["iceberg"],
                "schema.name-mapping.default": whole.name_mapping.model_dump_json(),
            }
            try:
                patiently(
                    lambda s=whole, p=parts, q=properties: catalog.create_table(  # type: ignore[misc]
                        (NAMESPACE, name),
                        s,
                        location=named(catalog.properties, f"{root}/{name}"),
                        partition_spec=PartitionSpec(*p),
                        properties=q,
                    )
                )
            except TableAlreadyExistsError:
                continue
        else:
            known = {field.name for field in table.schema().fields}
            try:
                with table.transaction() as change:
                    with change.update_schema() as update:
                        for field in schema:
                            if field.name not in known:
                                update.add_column(field.name, _iceberg(field))
                    mapping = change.table_metadata.schema().name_mapping.model_dump_json()
                    change.set_properties({"schema.name-mapping.default": mapping})
            except CommitFailedException:
                continue


def _meanings(name: str) -> dict[str, str]:
    found = {column.name: column.meaning for column in tables()[name].columns} if name in tables() else {}
    schema = lake_schema()
    listed = [*schema["columns"], *schema["index_columns"], *schema["summary_columns"]]
    return found | {column["name"]: column["meaning"] for column in listed}


def _iceberg(field: pa.Field) -> Any:
    from pyiceberg import types

    kinds = {
        pa.int32(): types.IntegerType(),
        pa.int64(): types.LongType(),
        pa.float64(): types.DoubleType(),
        pa.bool_(): types.BooleanType(),
        pa.string(): types.StringType(),
    }
    if field.type not in kinds:
        raise MalformedInput(
            f"column {field.name}: type {field.type} is none of {', '.join(ARROW_TYPES)}", "See spec.md, section 5."
        )
    return kinds[field.type]


def files(table: Any) -> list[DataFile]:
    """The data files of the table's current snapshot."""
    if table is None or (snapshot := table.current_snapshot()) is None:
        return []
    capture = table.schema().find_field("capture_id").field_id
    found = []
    for manifest in snapshot.manifests(table.io):
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
            file = entry.data_file
            major, arch, month = (file.partition[n] for n in range(3))
            least, most = (file.lower_bounds or {}).get(capture, b""), (file.upper_bounds or {}).get(capture, b"")
            found.append(
                DataFile(
                    placed(table.io.properties, file.file_path),
                    file.record_count,
                    file.file_size_in_bytes,
                    major,
                    arch,
                    month,
                    bytes(least).decode(),
                    bytes(most).decode(),
                )
            )
    return sorted(found, key=lambda f: f.uri)


def named_files(table: Any) -> set[str]:
    """URIs of every file that the table's current state, or one that is kept for readers, names."""
    found = {table.metadata_location}
    for snapshot in table.metadata.snapshots:
        found.add(snapshot.manifest_list)
        for manifest in snapshot.manifests(table.io):
            found.add(manifest.manifest_path)
            found |= {e.data_file.file_path for e in manifest.fetch_manifest_entry(table.io, discard_deleted=True)}
    return {placed(table.io.properties, uri) for uri in found}


def patiently(work: Callable[[], Found], seconds: float = PATIENCE) -> Found:
    """Do something that fails while another process holds the catalog, again until it is done.

    Raises:
        BadRequest: it was busy all the time.
    """
    end = time.monotonic() + seconds
    wait = 0.02
    while True:
        try:
            return work()
        except Exception as error:
            if not is_busy(error):
                raise
            if time.monotonic() > end:
                raise BadRequest(f"the catalog was busy for {seconds:.0f} s: {_first_line(error)}") from error
        time.sleep(wait * (0.5 + random.random()))
        wait = min(wait * 1.6, 2.0)


def is_busy(error: Exception) -> bool:
    """Another process holds the SQLite file of the catalog."""
    return type(error).__name__ == "OperationalError" and "locked" in str(error)


def commit(
    catalog: Any, name: str, *, add: Sequence[str] = (), remove: Iterable[str] = (), table: Any = None, why: str = ""
) -> None:
    """Add data files to a table, or replace some by others, in one snapshot.

    Args:
        catalog, name: which table.
        add: URIs of files that are written already.
        remove: URIs of files that must be in the current snapshot.
        table: commit only if the table is still as it was when this was loaded; else as often as it takes.
        why: kept in the snapshot's summary.

    Raises:
        CommitConflict: with ``table``, somebody else was first; or a file to be removed is gone.
        WsformatError: the commit failed.
    """
    gone = set(remove)
    end = time.monotonic() + PATIENCE
    wait = 0.05
    while True:
        current = table if table is not None else load(catalog, name)
        try:
            where = current.io.properties
            _commit_once(current, [named(where, uri) for uri in add], {named(where, uri) for uri in gone}, why)
            return
        except _conflicts() as error:
            if table is not None or time.monotonic() > end:
                raise CommitConflict(f"table {name}: {_first_line(error)}") from error
        except OSError as error:
            raise WsformatError(f"table {name}: cannot be committed: {error.strerror or error}") from error
        except Exception as error:
            if not is_busy(error) or time.monotonic() > end:
                raise
        time.sleep(wait * (0.5 + random.random()))
        wait = min(wait * 1.5, 2.0)


def _conflicts() -> tuple[type[Exception], ...]:
    from pyiceberg.exceptions import CommitFailedException, ValidationException

    return (CommitFailedException, ValidationException)


def _commit_once(table: Any, add: list[str], gone: set[str], why: str) -> None:
    from pyiceberg.io.pyarrow import parquet_file_to_data_file

    summary = {"wsformat.why": why}
    with table.transaction() as change:
        if not gone:
            change.add_files(add, snapshot_properties=summary, check_duplicate_files=False)
        else:
            held = _entries(table, gone)
            if len(held) < len(gone):
                raise CommitConflict(f"table {table.name()[-1]}: files to be replaced are gone")
            with change.update_snapshot(snapshot_properties=summary).overwrite() as update:
                for file in held:
                    update.delete_data_file(file)
                for uri in add:
                    update.append_data_file(parquet_file_to_data_file(table.io, table.metadata, uri))
        _forget(change, table)


def _entries(table: Any, uris: set[str]) -> list[Any]:
    found = []
    snapshot = table.current_snapshot()
    for manifest in snapshot.manifests(table.io) if snapshot is not None else ():
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
            if entry.data_file.file_path in uris:
                found.append(entry.data_file)
    return found


def _forget(change: Any, table: Any) -> None:
    """Drop snapshots from the history whose files a later one has all: those before an append.

    What stays: the one that was current, and those before a replacement, until the sweep finds them old enough: some
    of their files are in nobody's hands but a reader's.
    """
    history = sorted(table.metadata.snapshots, key=lambda s: s.sequence_number or 0)
    if not history:
        return
    kept = {history[-1].snapshot_id}
    for before, after in itertools.pairwise(history):
        if after.summary is not None and after.summary.operation.value != "append":
            kept.add(before.snapshot_id)
    expire(change, [s.snapshot_id for s in history if s.snapshot_id not in kept])


def expire(change: Any, snapshots: list[int]) -> None:
    """Drop snapshots from a table's history, as part of a transaction."""
    from pyiceberg.table.update import RemoveSnapshotsUpdate

    if snapshots:
        change._apply(
            (RemoveSnapshotsUpdate.model_validate({"snapshot-ids": snapshots, "action": "remove-snapshots"}),), ()
        )


def schema_of(name: str, extra: pa.Schema) -> pa.Schema:
    """Arrow schema of a table's data files: its columns, columns of extensions, the lake's own columns."""
    own, base = own_columns(name), base_columns(name)
    fields = [pa.field(column, ARROW_TYPES[kind], nullable=nullable) for column, (kind, nullable) in base.items()]
    for field in extra:
        if field.name not in base and field.name not in own:
            kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
            fields.append(pa.field(field.name, kind, nullable=field.name != "capture_id"))
    fields += [pa.field(column, ARROW_TYPES[kind], nullable=False) for column, kind in own.items()]
    return pa.schema(fields)
