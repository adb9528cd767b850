"""What a commit costs in the table formats that a lake could use; each commits the same Parquet files, written by us.

    python bench/lake_formats.py [--commits 100] [--writers 4]

Three ways: Apache Iceberg (pyiceberg, SQLite catalog), Delta Lake (deltalake, `pip install deltalake`), and a bare
directory with one JSON list of files, replaced by rename. Seconds are of CPU where it says so. Nothing here is a test.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 5000
OPTIONS: dict[str, Any] = {
    "compression": "zstd", "data_page_version": "1.0", "store_schema": False, "use_dictionary": ["capture_id", "role"],
    "column_encoding": {"t": "DELTA_BINARY_PACKED"},
}  # fmt: skip


def schema() -> pa.Schema:
    return pa.schema(
        [
            pa.field("capture_id", pa.string(), nullable=False),
            pa.field("role", pa.string(), nullable=False),
            pa.field("t", pa.int64(), nullable=False),
        ]
    )


def write_file(folder: Path, name: str) -> Path:
    data = pa.table([[name] * ROWS, ["consumer"] * ROWS, list(range(ROWS))], schema=schema())
    path = folder / f"{name}.parquet"
    pq.write_table(data, path, **OPTIONS)
    return path


class Iceberg:
    def __init__(self, root: Path) -> None:
        from pyiceberg.catalog.sql import SqlCatalog

        self.catalog = SqlCatalog("lake", uri=f"sqlite:///{root}/catalog.db", warehouse=f"file://{root}")
        self.root = root

    def create(self) -> None:
        self.catalog.create_namespace("lake")
        self.catalog.create_table("lake.events", schema=schema(), location=f"file://{self.root}/events")

    def commit(self, path: Path) -> int:
        from pyiceberg.exceptions import CommitFailedException

        tries = 0
        while True:
            try:
                self.catalog.load_table("lake.events").add_files([f"file://{path}"], check_duplicate_files=False)
                return tries
            except CommitFailedException:
                tries += 1

    def files(self) -> list[str]:
        table = self.catalog.load_table("lake.events")
        return [task.file.file_path for task in table.scan().plan_files()]


class Delta:
    def __init__(self, root: Path) -> None:
        self.uri = str(root / "events")
        self.root = root

    def create(self) -> None:
        import deltalake

        deltalake.DeltaTable.create(self.uri, schema=deltalake.Schema.from_arrow(schema()))

    def commit(self, path: Path) -> int:
        import deltalake
        from deltalake.transaction import AddAction

        target = Path(self.uri) / path.name
        if target != path:
            os.replace(path, target)
        table = deltalake.DeltaTable(self.uri)
        action = AddAction(
            path=path.name, size=target.stat().st_size, partition_values={}, data_change=True,
            modification_time=int(time.time() * 1000), stats=json.dumps({"numRecords": ROWS}),
        )  # fmt: skip
        table.create_write_transaction([action], mode="append", schema=table.schema(), partition_by=[])
        return 0

    def files(self) -> list[str]:
        import deltalake

        return list(deltalake.DeltaTable(self.uri).file_uris())


class Bare:
    """A list of files, replaced by rename under a lock file: no history, no statistics, one host."""

    def __init__(self, root: Path) -> None:
        self.path = root / "files.json"

    def create(self) -> None:
        self.path.write_text("[]")

    def commit(self, path: Path) -> int:
        lock, tries = self.path.with_suffix(".lock"), 0
        while True:
            try:
                os.close(os.open(lock, os.O_CREAT | os.O_EXCL))
                break
            except FileExistsError:
                tries += 1
                time.sleep(0.002)
        listed = [*json.loads(self.path.read_text()), str(path)]
        scratch = self.path.with_suffix(f".{os.getpid()}")
        scratch.write_text(json.dumps(listed))
        os.replace(scratch, self.path)
        lock.unlink()
        return tries

    def files(self) -> list[str]:
        return list(json.loads(self.path.read_text()))


def writer(make: Callable[[Path], Any], root: Path, first: int, count: int, out: Any) -> None:
    store = make(root)
    tries = 0
    for number in range(first, first + count):
        tries += store.commit(write_file(root, f"w{number}"))
    out.put(tries)


def measure(make: Callable[[Path], Any], commits: int, writers: int) -> dict[str, Any]:
    import duckdb

    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        store = make(root)
        store.create()
        paths = [write_file(root, f"f{number}") for number in range(commits)]
        times, used = [], time.process_time()
        for path in paths:
            start = time.perf_counter()
            store.commit(path)
            times.append(time.perf_counter() - start)
        used = time.process_time() - used
        context = multiprocessing.get_context("spawn")
        out = context.Queue()
        share = commits // writers
        start = time.perf_counter()
        tasks = [context.Process(target=writer, args=(make, root, n * share, share, out)) for n in range(writers)]
        [task.start() for task in tasks]
        tries = sum(out.get() for _ in tasks)
        [task.join() for task in tasks]
        together = time.perf_counter() - start
        start = time.perf_counter()
        listed = store.files()
        listing = time.perf_counter() - start
        start = time.perf_counter()
        rows = duckdb.sql(f"SELECT COUNT(*), SUM(t) FROM read_parquet({[f.removeprefix('file://') for f in listed]})")
        found = rows.fetchall()[0][0] if hasattr(rows, "fetchall") else rows.to_arrow_table().column(0)[0].as_py()
        reading = time.perf_counter() - start
        data = sum(p.stat().st_size for p in root.rglob("*.parquet"))
        everything = sum(p.stat().st_size for p in root.rglob("*") if p.is_file())
    return {
        "format": make.__name__, "commits": commits, "first ms": round(1e3 * min(times[:5]), 1),
        "last ms": round(1e3 * sum(times[-5:]) / 5, 1), "CPU ms a commit": round(1e3 * used / commits, 1),
        f"{writers} writers: s": round(together, 2), "conflicts": tries, "list files ms": round(1e3 * listing, 1),
        "DuckDB reads ms": round(1e3 * reading, 1), "rows": found, "lost": (commits + share * writers) * ROWS - found,
        "metadata kB a commit": round((everything - data) / (commits + share * writers) / 1e3, 2),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--commits", type=int, default=100)
    parser.add_argument("--writers", type=int, default=4)
    chosen = parser.parse_args()
    for make in (Iceberg, Delta, Bare):
        print(json.dumps(measure(make, chosen.commits, chosen.writers)), flush=True)


if __name__ == "__main__":
    sys.exit(main())
