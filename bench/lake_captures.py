"""Many different captures of the same size for the measurements of the lake: a ring of 3 CTAs, 5,000 stamps."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import buffers
import numpy as np
import pyarrow as pa

import wsformat
from wsformat.bundle import Bundle

CTAS, ITERATIONS = 3, 119
STAMPS = CTAS * ITERATIONS * buffers.STAMPS_AN_ITERATION
ARCHS = ("sm_90a", "sm_100a", "sm_90a", "sm_120a")
DAY_NS = 86_400 * 10**9
TICKS = {"events": ("t",), "lanes": ("t_start", "t_end"), "clock_anchors": ("t",)}
FIRST_NS = 1_760_000_000 * 10**9


def template(folder: Path, ctas: int = CTAS, iterations: int = ITERATIONS) -> Bundle:
    """One capture, imported as any other."""
    from wsformat.converters.registry import import_files

    spec = json.loads((files("wsformat.samples") / "gemm_roles.json").read_text())
    spec["layout"] = {"roles": buffers.ROLES, "events": buffers.EVENTS, "iterations": iterations}
    slots, metas = buffers.ring(ctas, iterations)
    slots.tofile(folder / "ring.i32")
    metas.tofile(folder / "ring.meta")
    (folder / "roles.json").write_text(json.dumps(spec))
    options = {"spec": str(folder / "roles.json"), "meta": [str(folder / "ring.meta")], "trip_count": iterations}
    bundle = import_files([folder / "ring.i32"], {**options, "allow_unwritten": True})
    return bundle.write(folder / "template.wsformat", force=True)


def several(base: Bundle, count: int, seed: int = 0) -> Iterator[Bundle]:
    """Captures that differ in their times, kernel version, architecture and date, as runs of a team do."""
    held = {name: base.table(name) for name in base.data}
    rng = np.random.default_rng(seed)
    old = base.table("captures").column("capture_id")[0].as_py()
    for number in range(count):
        capture = hashlib.sha256(f"{seed}:{number}".encode()).hexdigest()[:26]
        data = {name: _renamed(table, capture) for name, table in held.items()}
        events = data["events"]
        scale = rng.uniform(0.94, 1.0)
        t, cta = np.asarray(events.column("t")), np.asarray(events.column("cta"))
        start = np.array([t[cta == c].min() for c in range(cta.max() + 1)])[cta]
        moved = start + ((t - start) * scale).astype(np.int64)  # ever sooner, so within the lifetime of the CTA
        data["events"] = events.set_column(events.column_names.index("t"), "t", pa.array(moved))
        ticks, nanoseconds = (int(n) for n in rng.integers(0, 2**40, 2))
        for name, columns in TICKS.items():
            for column in columns:
                data[name] = _later(data[name], column, ticks)
        data["clock_anchors"] = _later(data["clock_anchors"], "reference_t", nanoseconds)
        facts: dict[str, Any] = {
            "kernel": f"gemm_{number % 7}", "version": f"v{number // 200:03d}", "arch": ARCHS[number % 4],
            "created_unix_ns": FIRST_NS + number * DAY_NS // 100, "label": f"run {number}", "device": "bench",
        }  # fmt: skip
        for name, value in facts.items():
            table = data["captures"]
            index = table.column_names.index(name)
            data["captures"] = table.set_column(index, name, pa.array([value], table.schema.field(name).type))
        sources = [{**entry, "capture_ids": [capture]} for entry in base.manifest.sources]
        assert old != capture
        yield Bundle.from_tables(data, sources=sources)


def _later(table: pa.Table, column: str, by: int) -> pa.Table:
    """Each run starts at another tick of the SM clocks and of the timer; -1 stays unknown."""
    values = np.asarray(table.column(column))
    return table.set_column(table.column_names.index(column), column, pa.array(np.where(values == -1, -1, values + by)))


def _renamed(table: pa.Table, capture: str) -> pa.Table:
    column = pa.repeat(pa.scalar(capture), table.num_rows)
    return table.set_column(table.column_names.index("capture_id"), "capture_id", column)


def write(folder: Path, count: int, seed: int = 0) -> list[Path]:
    """Bundles on disk; without waiting for the disk after each, which is no part of what is measured."""
    from wsformat import writer

    folder.mkdir(parents=True, exist_ok=True)
    base = template(folder)
    waits, writer._fsync = writer._fsync, lambda path: None
    made = []
    try:
        for number, bundle in enumerate(several(base, count, seed)):
            path = folder / f"{number // 1000:03d}" / f"c{number:06d}.wsformat"
            path.parent.mkdir(exist_ok=True)
            bundle.write(path)
            made.append(path)
    finally:
        writer._fsync = waits
    return made


assert wsformat.open
