"""What a reader of a recording has to know first: builds that are not what they seem, clocks that changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wsformat.kernels.gpu_state import changes
from wsformat.kernels.recording import CLEAN, Recording

Remark = tuple[str, str]
"""Subject and text of a finding."""

CLOCK_DIFFERS = 0.01
"""Share by which the clock of stamped launches may differ from that of clean ones without a word."""
STEP_NS = 32
"""Of the device's timer: what a duration in ns is known to, at each end."""


def remarks(recording: Recording, numbers: Sequence[int]) -> list[Remark]:
    """Warnings about the builds of these passes and of the clean one, and about clocks and throttling."""
    return [*_builds(recording, numbers), *_clocks(recording, numbers)]


def _builds(recording: Recording, numbers: Sequence[int]) -> list[Remark]:
    clean = recording.builds.get("clean", {})
    found: list[Remark] = []
    if clean.get("wgmma_serialised"):
        found.append(
            (
                "build",
                "The assembler serialised the wgmma instructions of the clean build (C7510): that is the kernel's own, "
                "not its stamps'.",
            )
        )
    for number in numbers:
        name = str(recording.passes[number]["name"])
        build = recording.builds.get(name, {})
        if build.get("wgmma_serialised") and not clean.get("wgmma_serialised"):
            found.append(
                (
                    "build",
                    f"Pass {name}: the stamps made the assembler serialise the wgmma instructions (C7510), so this is "
                    "another kernel than the clean one. Stamp fewer events, or not between wgmma and its wait.",
                )
            )
        spilled, before = spills(build), spills(clean)
        if spilled > before:
            found.append(
                (
                    "build",
                    f"Pass {name}: spills {spilled} bytes a thread to local memory, the clean build {before}. "
                    "Stamp fewer events, or store at once (WSF_DEFER=0).",
                )
            )
    return found


def spills(build: Mapping[str, Any]) -> int:
    """Bytes a thread that a build spills, by the assembler or the driver, 0 when neither says."""
    return max(int(build.get("spill_bytes", 0)), int(build.get("local_bytes", 0)))


def rates(recording: Recording, number: int) -> tuple[float, float]:
    """Median clock of the launches of a pass in GHz, and how far a single one may be off; NaN without launches.

    From the start and end records: cycles over ns of each CTA.
    """
    records = [k.records for k in recording.launches if k.number == number]
    if not records:
        return float("nan"), float("nan")
    every = np.concatenate(records)
    ticks, ns = (every["c1"] - every["c0"]).astype(np.float64), (every["g1"] - every["g0"]).astype(np.float64)
    long = ns > 0
    if not long.any():
        return float("nan"), float("nan")
    return float(np.median(ticks[long] / ns[long])), float(2 * STEP_NS / np.median(ns[long]))


def _clocks(recording: Recording, numbers: Sequence[int]) -> list[Remark]:
    found: list[Remark] = [("clock", text) for text in changes(recording.states)]
    clean, loose = rates(recording, CLEAN)
    for number in numbers:
        rate, mine = rates(recording, number)
        apart = rate / clean - 1
        if abs(apart) > max(CLOCK_DIFFERS, loose, mine):
            found.append(
                (
                    "clock",
                    f"Pass {recording.passes[number]['name']}: the SM clock ran at {rate:.3f} GHz, clean launches at "
                    f"{clean:.3f} GHz ({apart:+.1%}). Cycles of waits for memory do not compare.",
                )
            )
    return found
