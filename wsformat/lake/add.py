"""Adding captures: one data file a table and partition for a batch of bundles, and the index last."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from wsformat.bundle import Bundle
from wsformat.errors import BadRequest, WsformatError
from wsformat.lake import catalog as catalogs
from wsformat.lake import workers
from wsformat.lake.catalog import CommitConflict
from wsformat.lake.content import starts_of
from wsformat.lake.index import lookup, read_index
from wsformat.lake.layout import (
    INDEX,
    MANIFESTS,
    Partition,
    id_time,
    lake_schema,
    new_id,
    own_columns,
    stamped,
)
from wsformat.lake.reading import Opened, Source, open_source
from wsformat.lake.stage import READERS, Staged, batches, stage
from wsformat.writer import ahead

if TYPE_CHECKING:
    from wsformat.bundle import Progress
    from wsformat.lake.home import Lake

WRITERS = 4


@dataclass
class Added:
    """What an addition did.

    Attributes:
        added: ids of captures that are new in the lake.
        present: ids that were there already, with the same content.
        stamps: rows of events that were added.
        files: data files that were written.
        bytes: their size.
        bundles: that were read, each of one capture or several.
    """

    added: list[str] = field(default_factory=list)
    present: list[str] = field(default_factory=list)
    stamps: int = 0
    files: int = 0
    bytes: int = 0
    bundles: int = 0


def add(
    lake: Lake,
    bundles: Sequence[Source],
    *,
    progress: Progress | None = None,
    batch: int | None = None,
    processes: int | None = None,
) -> Added:
    """Add the captures of bundles. What is there already, with the same content, is passed over.

    Bundles are taken in batches; each batch appears at once or not at all, and a later failure leaves the earlier ones.

    Args:
        lake: where to.
        bundles: directories, or bundles in memory.
        progress: called as bundles are added.
        batch: most bundles in one batch.
        processes: that add at the same time; None: as many as there are cores, 4 at most, and one when the bundles are
            few, or they or the catalog in memory.

    Raises:
        BadRequest: a capture_id that is in the lake with other content; nothing of its batch is added.
        MalformedInput: a bundle that is damaged.
        WsformatError: the lake cannot be written.
    """
    most = batch or lake_schema()["batch_captures"]

    def told(parts: Sequence[Added]) -> None:
        if progress is not None:
            progress("bundles", sum(part.bundles for part in parts), len(bundles))

    places = [os.fspath(path) for one in bundles if (path := one.path if isinstance(one, Bundle) else one) is not None]
    alone = len(places) < len(bundles) or catalogs.in_memory(lake.catalog)
    count = 1 if alone else workers.processes(len(bundles), processes)
    if count == 1:
        return add_here(lake, bundles, most, told=lambda done: told([done]))
    done = Added()
    for part in workers.add_with_helpers(lake, places, count, most, told):
        done.added += part.added
        done.present += part.present
        done.stamps += part.stamps
        done.files += part.files
        done.bytes += part.bytes
        done.bundles += part.bundles
    return done


def add_here(
    lake: Lake,
    bundles: Sequence[Source],
    batch: int,
    *,
    alone: bool = True,
    told: Callable[[Added], None] = lambda done: None,
) -> Added:
    """The same in this process; unless it is ``alone``, without threads, for which other processes leave no core.

    ``told`` is called after each batch with what has been done so far.
    """
    done = Added()
    opened = (open_source(one) for one in bundles)
    staged = _staged(opened, batch, READERS if alone else 1)
    # Reading the next batch is as much work as writing this one; each keeps a core busy.
    with closing(ahead(staged, depth=1) if alone else staged) as parts:
        for part in parts:
            _add_staged(lake, part, done)
            done.bundles += part.bundles
            told(done)
    return done


def _staged(opened: Iterator[Opened], most: int, readers: int) -> Generator[Staged, None, None]:
    for group in batches(opened, most, lake_schema()["batch_rows"]):
        yield from stage(group, readers)


def _add_staged(lake: Lake, staged: Staged, done: Added) -> None:
    wanted = set(staged.digests)
    written: Written | None = None
    end = time.monotonic() + catalogs.PATIENCE
    while True:
        index = read_index(lake)
        present = set()
        for capture, row in lookup(lake, index, wanted).items():
            if row["lake_digest"] != staged.digests[capture]:
                raise BadRequest(
                    f"{staged.names[capture]}: capture {capture} is in the lake with other content; nothing of this "
                    "batch was added",
                    f"Import it anew under another id, or `wsformat lake rm` the one that is there ({row['label']!r}).",
                )
            present.add(capture)
        left = wanted - present
        if not left:
            done.present += sorted(present)
            return
        if written is None or written.captures != left:
            # Whom another writer was first with must not be in our files a second time.
            written = write_batch(lake, staged.without(present))
        try:
            commit_index(lake, index.table, written)
        except CommitConflict:
            if time.monotonic() > end:
                raise
            continue
        done.added += sorted(left)
        done.present += sorted(present)
        done.stamps += written.stamps
        done.files += written.files
        done.bytes += written.bytes
        return


@dataclass(frozen=True)
class Written:
    """An addition whose rows are committed everywhere but in the index."""

    add: str
    captures: set[str]
    index_uris: list[str]
    stamps: int
    files: int
    bytes: int


def write_batch(lake: Lake, staged: Staged) -> Written:
    """Write the files of an addition and commit all but those of the index."""
    name = new_id()
    data = dict(staged.tables)
    data[INDEX] = _index_rows(staged)
    captures = data[INDEX].column("capture_id").to_pylist()
    data[MANIFESTS] = pa.table({"capture_id": captures, "manifest": [staged.manifests[c] for c in captures]})
    uris = write_files(lake, data, staged.partitions, name, {"lake_add": name})
    try:
        for table, listed in uris.items():
            if table != INDEX:
                catalogs.commit(lake.catalog, table, add=listed, why=f"add {name}")
    except BaseException:
        # Those of tables that were committed are invisible and left to the sweep.
        lake.store.remove_quietly(uris[INDEX])
        raise
    every = [uri for listed in uris.values() for uri in listed]
    size = sum(int(lake.store.fs.size(uri)) for uri in every)
    stamps = staged.tables["events"].num_rows if "events" in staged.tables else 0
    return Written(name, set(captures), uris[INDEX], stamps, len(every), size)


def commit_index(lake: Lake, table: Any, written: Written) -> None:
    """Make an addition visible, if the index is still as it was when ``table`` was loaded.

    Raises:
        CommitConflict: it is not.
        WsformatError: the addition took so long that a sweep may have taken it for dead.
    """
    age = time.time() - id_time(written.add)
    if age > lake_schema()["retention_seconds"] / 2:
        raise WsformatError(f"an addition took {age:.0f} s, longer than the sweep waits; nothing of it was added")
    if table is None:
        table = catalogs.load(lake.catalog, INDEX)
        if table.current_snapshot() is not None:
            raise CommitConflict("table captures: somebody else was first")
    catalogs.commit(lake.catalog, INDEX, add=written.index_uris, table=table, why=f"add {written.add}")


def _index_rows(staged: Staged) -> pa.Table:
    rows = staged.tables[INDEX]
    captures = rows.column("capture_id").to_pylist()
    counted: dict[str, int] = dict.fromkeys(captures, 0)
    stamps: dict[str, int] = dict.fromkeys(captures, 0)
    for name, table in staged.tables.items():
        listed, starts = starts_of(table)
        for capture, n in zip(listed, np.diff(starts, append=table.num_rows).tolist(), strict=True):
            counted[capture] += n
            if name == "events":
                stamps[capture] += n
    # Plain columns here; write_files puts constants of the addition behind them.
    extra = {
        "lake_digest": [staged.digests[c] for c in captures],
        "lake_stamps": [stamps[c] for c in captures],
        "lake_rows": [counted[c] for c in captures],
        "lake_version": [staged.versions[c] for c in captures],
    }
    for column, values in extra.items():
        rows = rows.append_column(column, pa.array(values))
    return rows.append_column("lake_added_unix_ns", pa.repeat(pa.scalar(time.time_ns()), rows.num_rows))


def write_files(
    lake: Lake, data: dict[str, pa.Table], partitions: dict[str, Partition], name: str, values: dict[str, Any]
) -> dict[str, list[str]]:
    """Write ``add-NAME-N.parquet`` files, one a table and partition, and make their Iceberg tables.

    Args:
        lake: where to.
        data: rows of each table, those of a capture together; may hold columns of the lake.
        partitions: of each capture.
        name: of the addition.
        values: of the lake's own columns, the same in every row.

    Returns:
        URIs of the files of each table.

    Raises:
        WsformatError: they cannot be written; none is left.
    """
    jobs = []
    parts = sorted(set(partitions.values()))
    for table, rows in data.items():
        for part in parts:
            mine = rows if len(parts) == 1 else _of_partition(rows, partitions, part)
            if mine.num_rows:
                uri = f"{lake.store.uri}/{table}/{part.folder}/add-{name}-0.parquet"
                facts = {**values, "lake_major": part.major, "lake_arch": part.arch, "lake_month": part.month}
                jobs.append((table, uri, _complete(table, mine, facts)))
    for table in dict.fromkeys(job[0] for job in jobs):
        rows = next(rows for named, _, rows in jobs if named == table)
        try:
            catalogs.ensure(lake.catalog, lake.store.uri, table, catalogs.schema_of(table, rows.schema))
        except OSError as error:
            raise WsformatError(f"{lake.name}: table {table}: cannot be made: {error.strerror or error}") from error
    try:
        with ThreadPoolExecutor(WRITERS) as pool:
            list(pool.map(lambda job: lake.store.write_parquet(job[1], job[0], job[2]), jobs))
    except BaseException:
        lake.store.remove_quietly([uri for _, uri, _ in jobs])
        raise
    found: dict[str, list[str]] = {}
    for table, uri, _ in jobs:
        found.setdefault(table, []).append(uri)
    return found


def _of_partition(rows: pa.Table, partitions: dict[str, Partition], part: Partition) -> pa.Table:
    captures, starts = starts_of(rows)
    mine = np.array([partitions[capture] == part for capture in captures])
    turns = np.flatnonzero(np.diff(mine, prepend=False, append=False))
    bounds = np.append(starts, rows.num_rows)
    pieces = [rows.slice(bounds[a], bounds[b] - bounds[a]) for a, b in turns.reshape(-1, 2).tolist()]
    return pa.concat_tables(pieces) if pieces else rows.slice(0, 0)


def _complete(table: str, rows: pa.Table, facts: dict[str, Any]) -> pa.Table:
    """The rows in the schema of the table's data files."""
    known = own_columns(table)
    own = {column: rows.column(column) for column in rows.column_names if column in known}
    plain = rows.select([column for column in rows.column_names if column not in own])
    filled = stamped(table, plain, {**own, **facts})
    return as_stored(table, filled)


def as_stored(table: str, rows: pa.Table) -> pa.Table:
    """Rows that have every column already, in the order and with the nullability of the table's data files."""
    wanted = catalogs.schema_of(table, rows.schema)
    columns = [rows.column(name) for name in wanted.names]
    fields = [pa.field(f.name, c.type, nullable=f.nullable) for f, c in zip(wanted, columns, strict=True)]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))
