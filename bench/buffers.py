"""Synthetic stamp buffers of the size that a large capture has: the slots of a GEMM ring on many CTAs.

The times come from a ring that is simulated step by step for all CTAs at once: a producer that waits for an empty
stage, loads, and signals; two consumers that wait for a full stage, multiply and arrive; jitter from a seed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

ROLES, EVENTS = 3, 16
STAMPS_AN_ITERATION = 4 + 5 + 5
STAGES = 4
METAS = np.dtype([("ns0", "<u8"), ("t0", "<u8"), ("ns1", "<u8"), ("t1", "<u8"), ("sm", "<u4"), ("pad", "<u4")])


def ring(ctas: int, iterations: int, seed: int = 0) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Slots (uint32, shape ctas x roles x events x iterations) and one 40-byte record a CTA."""
    rng = np.random.default_rng(seed)
    start = rng.integers(1 << 33, 1 << 34, ctas).astype(np.int64)
    slots = np.zeros((ctas, ROLES, EVENTS, iterations), dtype=np.uint32)
    load = rng.integers(180, 420, (iterations, ctas))
    multiply = rng.integers(420, 620, (iterations, 2, ctas))
    free = np.zeros((STAGES, ctas), dtype=np.int64) + start
    now = np.repeat(start[None], 3, axis=0)
    for i in range(iterations):
        enter = now[0] + 20
        leave = np.maximum(enter, free[i % STAGES]) + 60
        done = leave + 15 + load[i]
        for event, t in enumerate((enter, leave, leave + 15, done)):
            slots[:, 0, event, i] = t.astype(np.uint32)
        now[0] = done
        released = np.zeros(ctas, dtype=np.int64)
        for role in (1, 2):
            enter = now[role] + 20
            leave = np.maximum(enter, done + 560) + 60
            end = leave + 15 + multiply[i, role - 1]
            for event, t in enumerate((enter, leave, leave + 15, end, end + 12)):
                slots[:, role, event, i] = t.astype(np.uint32)
            now[role] = end + 12
            released = np.maximum(released, end + 12)
        free[i % STAGES] = released
    metas = np.zeros(ctas, dtype=METAS)
    metas["t0"], metas["t1"] = start - 500, now.max(axis=0) + 1500
    metas["ns0"] = 1_700_000_000_000_000_000
    metas["ns1"] = metas["ns0"] + ((metas["t1"] - metas["t0"]) / 1.755).astype(np.uint64) // np.uint64(32) * np.uint64(
        32
    )
    metas["sm"] = np.arange(ctas)
    return slots, metas


def write(folder: Path, stamps: int, ctas: int = 132) -> tuple[Path, Path, int, int]:
    """Write a buffer file and its records; gives their paths, the iterations and the number of stamps."""
    iterations = max(1, round(stamps / (ctas * STAMPS_AN_ITERATION)))
    slots, metas = ring(ctas, iterations)
    buffer, meta = folder / "ring.i32", folder / "ring.meta"
    slots.tofile(buffer)
    metas.tofile(meta)
    return buffer, meta, iterations, ctas * iterations * STAMPS_AN_ITERATION
