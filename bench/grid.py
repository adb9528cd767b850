"""`wsformat grid` on many CTAs: records of a start and an end each, 132 SMs, two CTAs at a time, wave by wave."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

SMS, RESIDENT, LIFE = 132, 2, 9_000


def make(folder: Path, ctas: int) -> str:
    """A bundle of one clean launch of so many CTAs; gives its path."""
    from wsformat import rolespec, samples
    from wsformat.bundle import Bundle
    from wsformat.rolespec import Layout
    from wsformat.stamp_launch import StampLaunch
    from wsformat.stamp_times import META
    from wsformat.stamps import decode

    rng = np.random.default_rng(1)
    cta = np.arange(ctas)
    meta = np.zeros(ctas, META)
    meta["sm"] = cta % SMS
    rate, offset = rng.uniform(1.70, 1.80, SMS)[meta["sm"]], rng.integers(1 << 33, 1 << 34, SMS)[meta["sm"]]
    start = cta // (SMS * RESIDENT) * LIFE + rng.uniform(0, 300, ctas)
    end = start + LIFE - 900 + rng.uniform(0, 500, ctas)
    for name, time in (("0", start), ("1", end)):
        meta["c" + name] = offset + np.floor(rate * time)
        meta["g" + name] = 1_790_000_000_000_000_000 + (time // 32 * 32).astype(np.int64)
    launch = StampLaunch(None, meta, kind="clean", facts={"grid_x": ctas, "grid_y": 1, "grid_z": 1})
    spec = rolespec.load(samples.path("gemm_roles.json"))
    tables, _ = decode([launch], spec, Layout(1, 1, 1), {"capture_id": "a" * 26})
    path = folder / f"grid-{ctas}.wsformat"
    Bundle.from_tables(tables).write(path)
    return str(path)


def step_grid(bundle: str, *options: str) -> dict[str, Any]:
    """The whole command as people run it; seconds of CPU, all threads, with the start of Python."""
    words = [sys.executable, "-m", "wsformat", "grid", bundle, *options]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(words, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    ctas = int(Path(bundle).stem.rpartition("-")[2])
    return {"seconds": used, "gib": after.ru_maxrss / 2**20, "rows": ctas, "bytes": len(done.stdout)}
