"""Keeping a lake in shape: small files become large ones, removed rows and dead files go, readers keep what they read.

Nothing that a reader may have in hand is deleted: a file that was replaced stays in the history of its table, and on
disk, until the retention is over; a file that nobody ever committed stays as long, because its writer may be at work.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import parquet as pq

from wsformat.lake import catalog as catalogs
from wsformat.lake.add import as_stored
from wsformat.lake.catalog import CommitConflict, DataFile
from wsformat.lake.index import Index, fetch, gone_sql, read_index, scan
from wsformat.lake.layout import INDEX, SUMMARISED, Partition, id_time, lake_schema, new_id, owner
from wsformat.lake.stage import ordered
from wsformat.lake.summaries import runs_that_count
from wsformat.tables import layout
from wsformat.writer import row_groups

if TYPE_CHECKING:
    from wsformat.bundle import Progress
    from wsformat.lake.home import Lake


@dataclass
class Compacted:
    """What a compaction did.

    Attributes:
        joined: data files that were replaced.
        written: data files that took their place.
        dropped: rows of removed captures that were left out.
        swept: files that were deleted.
        swept_bytes: their size.
        kept: tables that somebody else was changing, left for next time.
    """

    joined: int = 0
    written: int = 0
    dropped: int = 0
    swept: int = 0
    swept_bytes: int = 0
    kept: list[str] = field(default_factory=list)


def compact(lake: Lake, *, retention: float | None = None, progress: Progress | None = None) -> Compacted:
    """Join small data files, leave out rows of removed captures, and delete what nobody needs any more.

    Adding, removing and reading may go on meanwhile.

    Args:
        lake: the lake.
        retention: seconds for which replaced files, and files of unfinished additions, are kept; None a day. With 0 no
            other process may be reading or writing.
        progress: called as tables are done.

    Raises:
        WsformatError: it cannot be written; nothing has changed then but what was committed table by table.
    """
    keep = float(lake_schema()["retention_seconds"]) if retention is None else retention
    done = Compacted()
    lake.forget()
    index = read_index(lake)
    listed = catalogs.names(lake.catalog)
    # The index comes last: a tombstone goes when no file is left that it applies to.
    order = [*[name for name in listed if name != INDEX], INDEX]
    for number, name in enumerate(order):
        if name == INDEX and done.kept:
            continue
        try:
            _table(lake, name, index, keep, done)
        except CommitConflict:
            done.kept.append(name)
        if progress is not None:
            progress(name, number + 1, len(order))
    for name in listed:
        _expire(lake, name, keep)
    lake.forget()
    for name in listed:
        _sweep(lake, name, keep, done)
    return done


def _table(lake: Lake, name: str, index: Index, keep: float, done: Compacted) -> None:
    _, files = lake.table(name)
    runs = runs_that_count(lake) if name in lake_schema()["summaries"] else frozenset()
    counted, dead = [], []
    for file in files:
        kind, identifier = owner(file.uri)
        alive = name in (INDEX, SUMMARISED) or index.counts(file) or identifier in runs
        if alive:
            counted.append(file)
        elif kind == "add" and time.time() - id_time(identifier) >= keep:
            dead.append(file)
    if dead:
        catalogs.commit(lake.catalog, name, remove=[f.uri for f in dead], why="drop what never counted")
    parts: dict[Partition, list[DataFile]] = {}
    for file in counted:
        parts.setdefault(Partition(file.major, file.arch, file.month), []).append(file)
    old: list[str] = []
    new: list[str] = []
    dropped = 0
    try:
        for part, held in sorted(parts.items()):
            gone, made, lost = _partition(lake, name, index, part, held)
            old, new, dropped = [*old, *gone], [*new, *made], dropped + lost
        if old:
            catalogs.commit(lake.catalog, name, add=new, remove=old, why="compact")
    except BaseException:
        lake.store.remove_quietly(new)
        raise
    done.joined += len(old)
    done.written += len(new)
    done.dropped += dropped if name not in (INDEX, SUMMARISED) and name not in lake_schema()["summaries"] else 0


def _partition(
    lake: Lake, name: str, index: Index, part: Partition, files: list[DataFile]
) -> tuple[list[str], list[str], int]:
    """Write anew what is to be joined or cleaned; gives the files to replace, the new ones, and how many rows went."""
    small = [f for f in files if f.bytes < lake_schema()["least_file_bytes"]]
    dirty = [f for f in files if any(f.least <= c and (not f.most or c <= f.most) for c, _ in index.removed)]
    chosen = sorted({*(small if len(small) > 1 else []), *dirty}, key=lambda f: f.uri)
    if not chosen:
        return [], [], 0
    source = scan(lake.store, chosen, evolved=True)
    condition = gone_sql(index)
    counts = fetch(
        lake,
        f"SELECT capture_id, COUNT(*) AS n FROM {source} {f'WHERE {condition}' if condition else ''} "
        "GROUP BY capture_id ORDER BY capture_id",
    ).to_pylist()
    lost = sum(f.rows for f in chosen) - sum(row["n"] for row in counts)
    if len(chosen) == 1 and not lost:
        return [], [], 0
    return [f.uri for f in chosen], _rewrite(lake, name, part, source, condition, counts), lost


def _rewrite(
    lake: Lake, name: str, part: Partition, source: str, condition: str, counts: list[dict[str, Any]]
) -> list[str]:
    """Write the rows of some files anew, in order, in files of a good size; gives their URIs."""
    run = new_id()
    uris: list[str] = []
    groups = row_groups(_chunks(lake, name, source, condition, counts))
    size = lake_schema()["row_groups"].get(name, layout()["row_group_rows"])
    rows = next(groups, None)
    try:
        while rows is not None:
            uri = f"{lake.store.uri}/{name}/{part.folder}/compact-{run}-{len(uris)}.parquet"
            uris.append(uri)
            with lake.store.parquet(uri, name, rows.schema) as writer:
                while rows is not None:
                    writer.write_table(rows, row_group_size=size)
                    rows = next(groups, None)
                    if _written(writer) >= lake_schema()["most_file_bytes"]:
                        break
    except BaseException:
        lake.store.remove_quietly(uris)
        raise
    return uris


def _written(writer: pq.ParquetWriter) -> int:
    return int(writer.file_handle.tell()) if writer.file_handle is not None else int(writer.where.tell())


def _chunks(lake: Lake, name: str, source: str, condition: str, counts: list[dict[str, Any]]) -> Iterator[pa.Table]:
    """Rows in order of their captures, some millions at a time."""
    start = 0
    while start < len(counts):
        end, held = start, 0
        while end < len(counts) and (end == start or held + counts[end]["n"] <= lake_schema()["batch_rows"]):
            held += counts[end]["n"]
            end += 1
        where = " AND ".join([t for t in (condition, "capture_id BETWEEN ? AND ?") if t])
        bounds = [counts[start]["capture_id"], counts[end - 1]["capture_id"]]
        yield as_stored(name, ordered(name, fetch(lake, f"SELECT * FROM {source} WHERE {where}", bounds)))
        start = end


def _expire(lake: Lake, name: str, keep: float) -> None:
    """Forget the states of a table before a replacement that is older than the retention."""
    table = catalogs.load(lake.catalog, name)
    history = sorted(table.metadata.snapshots, key=lambda s: s.sequence_number or 0)
    limit = (time.time() - keep) * 1000
    old = [before.snapshot_id for before, after in itertools.pairwise(history) if after.timestamp_ms <= limit]
    if old:
        try:
            with table.transaction() as change:
                catalogs.expire(change, old)
        except Exception as error:
            if type(error).__name__ != "CommitFailedException" and not catalogs.is_busy(error):
                raise


def _sweep(lake: Lake, name: str, keep: float, done: Compacted) -> None:
    """Delete files below a table's folder that no state of it names and that are older than the retention."""
    listed = lake.store.listing(name)
    table = catalogs.load(lake.catalog, name)
    named = catalogs.named_files(table)
    limit = time.time() - keep
    gone = [uri for uri, (_, when) in listed.items() if uri not in named and when <= limit]
    lake.store.remove(gone)
    done.swept += len(gone)
    done.swept_bytes += sum(listed[uri][0] for uri in gone)
