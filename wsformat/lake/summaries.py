"""Results of derived views that are kept: role_summary, wait_summary, iteration_summary and launch_lifetime.

A question over the whole fleet then reads some rows a capture instead of all its stamps. They are results of the
standard's views and nothing else; each row says by a digest of their SQL which version of the views made it, and rows
of another version are not used. The table ``lake_summaries`` says which captures have been computed; it is committed
last, as the index is.
"""

from __future__ import annotations

import hashlib
import time
from functools import cache
from typing import TYPE_CHECKING

import pyarrow as pa

from wsformat.bundle import Bundle
from wsformat.derive import connect as connect_bundle
from wsformat.derive import dependency_order, run, views
from wsformat.lake import catalog as catalogs
from wsformat.lake.add import write_files
from wsformat.lake.catalog import CommitConflict
from wsformat.lake.index import fetch, read_index, scan, visible_sql
from wsformat.lake.layout import INDEX, SUMMARISED, Partition, lake_schema, new_id
from wsformat.tables import tables

if TYPE_CHECKING:
    from wsformat.bundle import Progress
    from wsformat.lake.home import Lake

BATCH = 250


@cache
def views_digest() -> str:
    """Digest of the SQL of the summaries' views and of all that they are made of."""
    text = "\n".join(views()[name] for name in dependency_order(lake_schema()["summaries"]))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def missing_captures(lake: Lake) -> list[dict[str, object]]:
    """Captures without summaries of the views as they are now: capture_id, lake_add and the partition of each."""
    index = read_index(lake)
    if not index.files:
        return []
    _, marks = lake.table(SUMMARISED)
    rows = f"SELECT capture_id, lake_add, lake_major, lake_arch, lake_month FROM ({visible_sql(lake, index)})"
    if marks:
        done = f"SELECT capture_id, lake_add FROM {scan(lake.store, marks)} WHERE lake_views = '{views_digest()}'"
        rows = f"{rows} ANTI JOIN ({done}) USING (capture_id, lake_add)"
    found: list[dict[str, object]] = fetch(lake, f"SELECT * FROM ({rows}) ORDER BY capture_id").to_pylist()
    return found


def runs_that_count(lake: Lake) -> frozenset[str]:
    """Runs whose summaries count: those that ``lake_summaries`` names."""
    _, marks = lake.table(SUMMARISED)
    if not marks:
        return frozenset()
    return frozenset(fetch(lake, f"SELECT DISTINCT lake_run FROM {scan(lake.store, marks)}").column(0).to_pylist())


def complete(lake: Lake, where: str = "") -> bool:
    """Whether every capture that counts, or that a condition chooses, has its summaries."""
    index = read_index(lake)
    if not index.files:
        return False
    key = f"{SUMMARISED}.missing"
    table, _ = lake.table(SUMMARISED)
    state = f"{index.table.metadata_location} {table.metadata_location if table is not None else ''}"
    known = lake._known.get(key)
    if known is None or known[0] != state:
        known = (state, frozenset(row["capture_id"] for row in missing_captures(lake)), [])
        lake._known[key] = known
    lacking = known[1]
    if lacking and where:
        from wsformat.lake.query import choose

        return not lacking & set(choose(lake, index, where))
    return not lacking


def summarise(lake: Lake, *, progress: Progress | None = None) -> int:
    """Compute the summaries of captures that have none, or only those of older views.

    Returns:
        How many captures.
    """
    todo = missing_captures(lake)
    done = 0
    for start in range(0, len(todo), BATCH):
        done += _batch(lake, {str(row["capture_id"]): row for row in todo[start : start + BATCH]})
        if progress is not None:
            progress("captures", done, len(todo))
    return done


def _batch(lake: Lake, todo: dict[str, dict[str, object]]) -> int:
    from wsformat.lake.get import read_captures

    data = read_captures(lake, sorted(todo), _inputs())
    bundle = Bundle.from_tables({name: rows for name, rows in data.items() if name != INDEX or rows.num_rows})
    with connect_bundle(bundle, materialise=["span", "wait"]) as connection:
        found = {n: run(connection, f"SELECT * FROM {n} ORDER BY capture_id") for n in lake_schema()["summaries"]}
    run_id = new_id()
    marks = pa.table(
        {
            "capture_id": sorted(todo),
            "lake_views": [views_digest()] * len(todo),
            "lake_run": [run_id] * len(todo),
            "lake_add": [str(todo[capture]["lake_add"]) for capture in sorted(todo)],
        }
    )
    parts = {
        capture: Partition(int(str(row["lake_major"])), str(row["lake_arch"]), str(row["lake_month"]))
        for capture, row in todo.items()
    }
    written: dict[str, pa.Table] = {SUMMARISED: marks}
    for name, rows in found.items():
        captures = rows.column("capture_id").to_pylist()
        adds = pa.array([str(todo[capture]["lake_add"]) for capture in captures], pa.string())
        written[name] = rows.append_column("lake_add", adds)
    uris = write_files(lake, written, parts, run_id, {"lake_views": views_digest()})
    for name, listed in uris.items():
        if name != SUMMARISED:
            catalogs.commit(lake.catalog, name, add=listed, why=f"summarise {run_id}")
    return _mark(lake, todo, uris[SUMMARISED], run_id)


def _mark(lake: Lake, todo: dict[str, dict[str, object]], uris: list[str], run_id: str) -> int:
    """Make a run count, unless another run has done some of the same captures meanwhile."""
    end = time.monotonic() + catalogs.PATIENCE
    while True:
        table, _ = lake.table(SUMMARISED)
        left = {str(row["capture_id"]) for row in missing_captures(lake)}
        if not set(todo) <= left:
            lake.store.remove_quietly(uris)
            return 0
        try:
            catalogs.commit(lake.catalog, SUMMARISED, add=uris, table=table, why=f"summarise {run_id}")
            return len(todo)
        except CommitConflict:
            if time.monotonic() > end:
                raise


@cache
def _inputs() -> tuple[str, ...]:
    """Tables that the summaries' views read."""
    from wsformat.lake.query import needed

    held, _ = needed(lake_schema()["summaries"])
    return tuple(name for name in tables() if name in held or name == INDEX)
