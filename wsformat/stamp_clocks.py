"""Clock domains of stamped launches: which CTAs share a counter, and how it maps to the device's timer.

* ``clock64`` is one counter an SM, and it runs on from launch to launch: CTAs on one SM share a domain when the
  records of the CTAs say on which SM they ran. When the records contradict that (the counter went back while the
  device's timer went on, as after a reset or on another device), every launch gets domains of its own.
* Without records every CTA has a domain of scope ``source``: nothing relates it to another.
* ``globaltimer`` is one timer for the device, in ns; its step is measured, never assumed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from wsformat.alignment import anchors_of
from wsformat.rolespec import RoleSpec
from wsformat.stamp_launch import MIN_READINGS, StampLaunch
from wsformat.stamp_times import Array

NO_ANCHOR = "no start and end records: comparable within one CTA only"
SIDE_BY_SIDE = "the distance of the two reads of an anchor was not recorded and is taken as 0"


@dataclass(frozen=True)
class Domains:
    """Clocks of a capture.

    Attributes:
        clocks, anchors: rows of clocks and clock_anchors.
        clock, sm: per launch, the clock and SM of each CTA.
    """

    clocks: pa.Table
    anchors: pa.Table
    clock: list[Array]
    sm: list[Array]


def assign_clocks(
    launches: Sequence[StampLaunch],
    spec: RoleSpec,
    capture_id: str,
    seen: Sequence[tuple[Array, Array] | None],
    width_bits: int,
) -> Domains:
    """Give every CTA a clock.

    Args:
        launches: with or without records of their CTAs.
        spec: its ``clock`` says unit and scope of the stamps.
        capture_id: of the rows.
        seen: per launch the granularity and the wraps of each CTA's stamps, None without stamps.
        width_bits: width of a slot.
    """
    unit, scope = str(spec.clock.get("unit", "cycle")), str(spec.clock.get("scope", "sm"))
    counts = [launch.ctas for launch in launches]
    sm = [
        np.full(n, -1) if k.meta is None else k.meta["sm"].astype(np.int64)
        for k, n in zip(launches, counts, strict=True)
    ]
    launch_of = np.repeat(np.arange(len(launches)), counts)
    all_sm = np.concatenate(sm) if sm else np.zeros(0, np.int64)
    if scope != "sm":
        # One counter for all CTAs, or for all that the source holds.
        key = np.zeros(len(all_sm), np.int64)
    else:
        shared = _one_counter_per_sm(launches)
        own = np.arange(len(all_sm)) + (1 << 40)
        per_sm = all_sm + (0 if shared else 1) * (launch_of << 20)
        key = np.where(all_sm >= 0, per_sm, own)
    _, first, number = np.unique(key, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    clock = rank[number]
    known = all_sm[np.sort(first)] if scope == "sm" else np.full(len(first), -1)
    steps = _steps(launches, seen, clock, counts, len(first), ("g0", "g1") if scope == "device" else ("c0", "c1"))
    wrapped = np.zeros(len(first), np.int64)
    np.add.at(wrapped, clock, _joined(seen, 1, counts))
    anchored = scope == "sm" and any(k.meta is not None for k in launches)
    timer = len(first)
    cuts = np.cumsum(counts)[:-1]
    per_launch = np.split(clock, cuts)
    anchors, timer_step = anchors_of(launches, per_launch, timer, capture_id) if anchored else (None, -1)
    rows: dict[str, Any] = {
        "scope": np.where(known >= 0, "sm", "source" if scope == "sm" else scope).tolist(),
        "unit": [unit] * len(first),
        "sm": known.tolist(),
        "step_ticks": steps.tolist(),
        "width_bits": [width_bits] * len(first),
        "wraps": wrapped.tolist(),
        "assumption": [
            str(spec.clock.get("assumption", "")) or (NO_ANCHOR if x < 0 and scope == "sm" else "")
            for x in known.tolist()
        ],
        "hz_nominal": [spec.clock.get("hz_nominal")] * len(first),
    }
    if anchored:
        for name, value in (
            ("scope", "device"),
            ("unit", "ns"),
            ("sm", -1),
            ("step_ticks", timer_step),
            ("width_bits", 64),
            ("wraps", 0),
            ("assumption", "" if _distances_recorded(launches) else SIDE_BY_SIDE),
            ("hz_nominal", None),
        ):
            rows[name].append(value)
    rows["clock"] = list(range(len(rows["sm"])))
    rows["capture_id"] = [capture_id] * len(rows["sm"])
    rows["hz_nominal"] = pa.array(rows["hz_nominal"], pa.float64())
    return Domains(pa.table(rows), pa.table({}) if anchors is None else anchors, per_launch, sm)


def _joined(seen: Sequence[tuple[Array, Array] | None], part: int, counts: Sequence[int]) -> Array:
    """One value a CTA over all launches, 0 for launches without stamps."""
    parts = [np.zeros(n, np.int64) if s is None else s[part] for s, n in zip(seen, counts, strict=True)]
    return np.concatenate([*parts, np.zeros(0, np.int64)])


def _steps(
    launches: Sequence[StampLaunch],
    seen: Sequence[tuple[Array, Array] | None],
    clock: Array,
    counts: Sequence[int],
    clocks: int,
    fields: tuple[str, str],
) -> Array:
    """Step of each clock: what divides every difference that its readings showed, -1 when they were too few.

    The counters of one device are of one kind: a clock with few readings takes the step that all of them show, as in a
    single launch of one CTA an SM. ``fields`` are those of a record that read the clock.
    """
    steps, readings = np.zeros(clocks, np.int64), np.zeros(clocks, np.int64)
    stamped = _joined(seen, 0, counts)
    np.gcd.at(steps, clock, stamped)
    readings[clock[stamped > 0]] = MIN_READINGS
    with_meta = np.repeat([k.meta is not None for k in launches], counts)
    if with_meta.any():
        every = np.concatenate([k.meta for k in launches if k.meta is not None])
        mine = clock[with_meta]
        begin, end = (every[name].astype(np.int64) for name in fields)
        start = np.full(clocks, np.iinfo(np.int64).max)
        np.minimum.at(start, mine, begin)
        np.gcd.at(steps, mine, begin - start[mine])
        np.gcd.at(steps, mine, end - start[mine])
        np.add.at(readings, mine, 2)
    together = int(np.gcd.reduce(steps)) if (readings[steps > 0] - 1).sum() >= MIN_READINGS - 1 else 0
    steps = np.where(readings >= MIN_READINGS, steps, together)
    return np.where(steps > 0, steps, -1)


def _one_counter_per_sm(launches: Sequence[StampLaunch]) -> bool:
    """Whether, SM by SM, the counter never went back while the device's timer went on."""
    metas = [k.meta for k in launches if k.meta is not None]
    if not metas:
        return True
    every = np.concatenate(metas)
    order = np.lexsort((every["c0"], every["g0"], every["sm"]))
    one = every[order]
    same = one["sm"][1:] == one["sm"][:-1]
    return not bool((same & (one["c0"][1:] < one["c0"][:-1])).any())


def _distances_recorded(launches: Sequence[StampLaunch]) -> bool:
    """Whether every record says how far apart its reads were."""
    return all(bool((k.meta["pad"] != 0).all()) for k in launches if k.meta is not None)
