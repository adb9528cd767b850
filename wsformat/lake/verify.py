"""Checking a lake: every file is there, every capture counts once and holds what was added, nothing is left over."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from wsformat.errors import WsformatError
from wsformat.lake import catalog as catalogs
from wsformat.lake.content import digests
from wsformat.lake.get import read_captures
from wsformat.lake.index import Index, fetch, read_index, visible_sql
from wsformat.lake.layout import INDEX, MANIFESTS, SUMMARISED, lake_schema, owner
from wsformat.lake.summaries import missing_captures, runs_that_count
from wsformat.tables import tables

if TYPE_CHECKING:
    from wsformat.bundle import Progress
    from wsformat.lake.home import Lake

ROWS = 2_000_000


@dataclass
class Verified:
    """What was found.

    Attributes:
        captures: that count.
        checked: whose content was compared with its digest.
        files, bytes: data files that count.
        problems: what is wrong, a line each; none when the lake is sound.
        unfinished: data files of additions that do not count: at work, or killed.
        replaced: data files that were compacted, kept for readers.
        orphans, orphan_bytes: data files that no table names.
        removed: tombstones; compaction takes them and their rows away.
        without_summaries: captures whose summaries are to be computed.
    """

    captures: int = 0
    checked: int = 0
    files: int = 0
    bytes: int = 0
    problems: list[str] = field(default_factory=list)
    unfinished: int = 0
    replaced: int = 0
    orphans: int = 0
    orphan_bytes: int = 0
    removed: int = 0
    without_summaries: int = 0


def verify(lake: Lake, *, content: bool = True, progress: Progress | None = None) -> Verified:
    """Check a lake. Adding, removing and compacting may go on meanwhile; it is checked as it was at the start.

    Args:
        lake: the lake.
        content: read every row and compare each capture with its digest; else files and index only.
        progress: called as captures are checked.
    """
    lake.forget()
    found = Verified()
    index = read_index(lake)
    found.removed = len(index.removed)
    for name in catalogs.names(lake.catalog):
        _files(lake, name, index, found)
    if not index.files:
        return found
    rows = fetch(
        lake, f"SELECT capture_id, lake_digest, lake_rows FROM ({visible_sql(lake, index)}) ORDER BY capture_id"
    ).to_pylist()
    found.captures = len({row["capture_id"] for row in rows})
    for before, after in itertools.pairwise(rows):
        if before["capture_id"] == after["capture_id"]:
            found.problems.append(f"capture {after['capture_id']}: counts more than once")
    found.without_summaries = len(missing_captures(lake))
    if content and not any("missing" in problem for problem in found.problems):
        _content(lake, rows, found, progress)
    return found


def _files(lake: Lake, name: str, index: Index, found: Verified) -> None:
    table, files = lake.table(name)
    listed = lake.store.listing(name)
    named = catalogs.named_files(table)
    runs = runs_that_count(lake) if name in lake_schema()["summaries"] else frozenset()
    for file in files:
        size = listed.pop(file.uri, (-1, 0.0))[0]
        if size != file.bytes:
            what = "missing" if size < 0 else f"{size} bytes, {file.bytes} were written"
            found.problems.append(f"{lake.store.path(file.uri)}: {what}")
        if name in (INDEX, SUMMARISED) or index.counts(file) or owner(file.uri)[1] in runs:
            found.files += 1
            found.bytes += file.bytes
        else:
            found.unfinished += 1
    data = {uri: entry for uri, entry in listed.items() if owner(uri)[0] and uri not in named}
    found.replaced += sum(1 for uri in listed if owner(uri)[0] and uri in named)
    found.orphans += len(data)
    found.orphan_bytes += sum(size for size, _ in data.values())


def _content(lake: Lake, rows: list[dict[str, object]], found: Verified, progress: Progress | None) -> None:
    wanted = [n for n in catalogs.names(lake.catalog) if n in tables() or "__" in n]
    start = 0
    while start < len(rows):
        end, held = start, 0
        while end < len(rows) and (end == start or held + int(str(rows[end]["lake_rows"])) <= ROWS):
            held += int(str(rows[end]["lake_rows"]))
            end += 1
        part = rows[start:end]
        try:
            data = read_captures(lake, [str(row["capture_id"]) for row in part], [*wanted, MANIFESTS])
        except WsformatError as error:
            found.problems.append(error.message)
            return
        described = set(data.pop(MANIFESTS).column("capture_id").to_pylist()) if MANIFESTS in data else set()
        taken = digests(data)
        for row in part:
            capture = str(row["capture_id"])
            if taken.get(capture) != row["lake_digest"]:
                found.problems.append(f"capture {capture}: its rows are not those that were added")
            if capture not in described:
                found.problems.append(f"capture {capture}: what its manifest said is missing")
        found.checked += len(part)
        if progress is not None:
            progress("captures", end, len(rows))
        start = end
