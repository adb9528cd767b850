"""Captures for tests of the lake: few rows, all different, made from a sample."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

import wsformat
from wsformat.bundle import Bundle
from wsformat.lake import Lake

SAMPLES = Path(__file__).parent.parent / "conformance" / "samples"
DAY_NS = 86_400 * 10**9
FIRST_NS = 1_770_000_000 * 10**9


def sample(name: str = "gemm_balanced") -> Bundle:
    return wsformat.open(SAMPLES / f"{name}.wsformat")


def identity(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:26]


def changed(base: Bundle, capture: str, facts: Mapping[str, Any] | None = None, shift: int = 0) -> Bundle:
    """The sample's first capture under another id, with other facts and all times moved."""
    old = base.table("captures").column("capture_id")[0].as_py()
    data = {}
    for name in base.data:
        rows = base.table(name).to_pylist()
        kept = [{**row, "capture_id": capture} for row in rows if row["capture_id"] == old]
        for row in kept:
            if name == "events":
                row["t"] += shift
            if name == "captures":
                row |= facts or {}
            if name == "lanes" and row["t_start"] >= 0:
                row["t_start"] += shift
                row["t_end"] += shift
            if name == "clock_anchors":
                row["t"] += shift
        if kept:
            data[name] = pa.Table.from_pylist(kept, base.table(name).schema)
    sources = [{**entry, "capture_ids": [capture]} for entry in base.manifest.sources]
    return Bundle.from_tables(data, sources=sources)


def several(count: int, start: int = 0, name: str = "cute_pipeline") -> list[Bundle]:
    """Captures of two architectures, some of them unknown, and two months at most."""
    base = sample(name)
    facts = [
        {
            "arch": ("sm_90a", "sm_100a", "sm_90a")[n % 3] if n else "",
            "kernel": f"kernel_{n % 4}",
            "version": f"v{n // 4}",
            "label": f"run {n}",
            "created_unix_ns": FIRST_NS + n * DAY_NS if n else -1,
        }
        for n in range(start, start + count)
    ]
    return [changed(base, identity(f"{name} {start + n}"), fact, shift=n) for n, fact in enumerate(facts)]


def ids(bundles: Sequence[Bundle]) -> list[str]:
    return sorted(c for b in bundles for c in b.table("captures").column("capture_id").to_pylist())


def written(folder: Path, bundles: Sequence[Bundle]) -> list[Path]:
    folder.mkdir(exist_ok=True, parents=True)
    paths = []
    for number, bundle in enumerate(bundles):
        path = folder / f"c{number:04d}.wsformat"
        bundle.write(path)
        paths.append(path)
    return paths


def rows(table: pa.Table, digits: int = 17) -> list[dict[str, Any]]:
    """Rows in an order of their own; doubles with so many digits, as sums in another order differ in the last."""
    found = table.to_pylist()
    if digits < 17:
        found = [{k: float(f"{v:.{digits}g}") if isinstance(v, float) else v for k, v in r.items()} for r in found]
    return sorted(found, key=lambda row: json.dumps(row, sort_keys=True, default=str))


def same(one: Bundle, other: Bundle) -> bool:
    """Whether two bundles hold the same rows, table by table."""
    names = {n for n in one.data if one.rows(n)} | {n for n in other.data if other.rows(n)}
    return all(rows(one.table(n)) == rows(other.table(n)) for n in names)


def sound(lake: Lake) -> None:
    """Nothing is wrong, and nothing but what was expected counts."""
    found = lake.verify()
    assert found.problems == []
    assert found.checked == found.captures


def process(code: str, *arguments: str, **options: Any) -> subprocess.Popen[str]:
    """A Python process of its own, in a group of its own."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent), **options.pop("env", {})}
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, start_new_session=True, **options,
    )  # fmt: skip


def kill(task: subprocess.Popen[str]) -> None:
    """kill -9, as a crash would do."""
    if task.poll() is None:
        os.killpg(task.pid, signal.SIGKILL)
    task.communicate()


def wait_for(what: Any, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.01)
