"""One axis for several clocks: anchors from paired readings, and ticks placed in ns.

* :func:`anchors_of` turns what a kernel read (cycle counter and device timer together) into rows of clock_anchors, each
  with the bound that follows from the timer's step and from the distance of the two reads: spec 7.1, R-7.11.
* :func:`place` puts many moments on the reference axis as the view timeline_ns does, for software that draws or writes
  them. The lines themselves are views: clock_map, clock_segment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from wsformat.stamp_launch import MIN_READINGS, StampLaunch
from wsformat.stamp_times import Array, granularity

DISTANCE_BITS = 16
"""``META.pad`` holds distances of reads in cycles: that at the start of a CTA in its low bits, at its end above."""
PIECES = """
SELECT s.launch, s.clock, s.reference_clock, s.t_first, s.t_last, s.ns_first, s.ns_per_tick, s.error_ns, s.wander,
       COALESCE(c.step_ticks, -1) AS step_ticks
FROM clock_segment s LEFT JOIN clocks c ON c.capture_id = s.capture_id AND c.clock = s.clock
WHERE s.capture_id = ? ORDER BY s.launch, s.clock, s.segment
"""


@dataclass(frozen=True)
class Readings:
    """Pairs of reads, one an element.

    Attributes:
        launch, clock: of each.
        t: cycle counter.
        timer: device timer, ns.
        late_ns: time between the reads of the two clocks, 0 not recorded.
    """

    launch: Array
    clock: Array
    t: Array
    timer: Array
    late_ns: Array


def readings(launches: Sequence[StampLaunch], clock: Sequence[Array]) -> Readings:
    """Every pair of reads of these launches.

    Args:
        launches: with or without records of their CTAs.
        clock: per launch, the clock of each CTA.
    """
    parts: list[tuple[Any, ...]] = []
    for number, (launch, clocks) in enumerate(zip(launches, clock, strict=True)):
        meta = launch.meta
        if meta is None:
            continue
        start, end = meta["c0"].astype(np.int64), meta["c1"].astype(np.int64)
        first, last = meta["g0"].astype(np.int64), meta["g1"].astype(np.int64)
        rate = _rate(clocks, start, end, first, last)
        distance = meta["pad"].astype(np.int64)
        parts.append((number, clocks, start, first, rate * (distance & ((1 << DISTANCE_BITS) - 1))))
        parts.append((number, clocks, end, last, rate * (distance >> DISTANCE_BITS)))
        if launch.anchors is not None:
            more = launch.anchors.reshape(-1)
            # An anchor names its CTA in the grid; the records are those of the recorded ones.
            cta, off = np.divmod(more["cta"].astype(np.int64) - launch.first_cta, launch.cta_step)
            known = (more["g"] > 0) & (off == 0) & (cta >= 0) & (cta < len(meta))
            more, cta = more[known], cta[known]
            parts.append(
                (number, clocks[cta], more["c"].astype(np.int64), more["g"].astype(np.int64),
                 rate[cta] * more["distance"])
            )  # fmt: skip
    return Readings(
        np.concatenate([np.full(len(p[2]), p[0], np.int64) for p in parts] or [np.zeros(0, np.int64)]),
        *(np.concatenate([p[k] for p in parts] or [np.zeros(0, np.int64)]) for k in range(1, 5)),
    )


def _rate(clocks: Array, start: Array, end: Array, first: Array, last: Array) -> Array:
    """ns a tick of each CTA's clock, over all CTAs of a launch that share it.

    A CTA shorter than the timer's step shows no rate of its own: its two readings may be equal, a step apart, or (of
    a timer that is read through a cache) even run back.
    """
    numbers, at = np.unique(clocks, return_inverse=True)
    # A CTA that left no readings says nothing about its clock.
    read = (start > 0) & (end > 0) & (first > 0) & (last > 0)
    passed = []
    for a, b in ((start, end), (first, last)):
        low, high = np.full(len(numbers), np.iinfo(np.int64).max), np.zeros(len(numbers), np.int64)
        np.minimum.at(low, at[read], np.minimum(a, b)[read])
        np.maximum.at(high, at[read], np.maximum(a, b)[read])
        passed.append(np.maximum(high - low, 0))
    result: Array = (passed[1] / np.maximum(passed[0], 1))[at]
    return result


def step_of(timer: Array) -> int:
    """The step of a timer: the greatest number that divides all differences of its readings, -1 when it never moved.

    Few readings share larger divisors by chance; then the readings themselves are taken as multiples of the step, as
    counters that start at 0 are.
    """
    moved = timer - timer.min(initial=np.iinfo(np.int64).max)
    return granularity([moved if len(timer) >= MIN_READINGS or not moved.any() else timer])


def anchors_of(
    launches: Sequence[StampLaunch], clock: Sequence[Array], timer: int, capture_id: str
) -> tuple[pa.Table, int]:
    """Rows of clock_anchors, and the step of the device's timer (-1 when too few readings show it).

    Args:
        launches, clock: as in :func:`readings`.
        timer: number of the timer's clock.
        capture_id: of the rows.
    """
    found = readings(launches, clock)
    step = step_of(found.timer)
    # CTAs that share an SM may be read at the same tick: the timer's first reading is the one to keep.
    order = np.lexsort((found.timer, found.t, found.clock, found.launch))
    key = np.stack([found.launch, found.clock, found.t])[:, order]
    order = order[np.concatenate([[True], (key[:, 1:] != key[:, :-1]).any(axis=0)])] if len(order) else order
    table = pa.table(
        {
            "capture_id": pa.repeat(capture_id, len(order)),
            "launch": found.launch[order],
            "clock": found.clock[order],
            "t": found.t[order],
            "reference_clock": np.full(len(order), timer),
            # The timer shows g from g to g + step: half a step is what a reading leaves open, the other half stands for
            # steps that come early or late (an H200 at a constant rate needed 18 to 26 ns, at a step of 32).
            "reference_t": found.timer[order] + max(step, 0) // 2,
            # A timer that never moved shows no step, so nothing bounds its readings.
            "error_ns": pa.array(step + found.late_ns[order], mask=np.full(len(order), step <= 0)),
        }
    )
    return table, step if len(found.timer) >= MIN_READINGS else -1


def place(
    connection: duckdb.DuckDBPyConnection, capture_id: str, launch: Array, clock: Array, t: Array
) -> tuple[Array, Array, Array, Array]:
    """Moments in ns, as the view timeline_ns places them.

    Args:
        connection: over a bundle, see :func:`wsformat.derive.connect`.
        capture_id: the capture of all of them.
        launch, clock, t: of each moment, integers of one length.

    Returns:
        ns (int64, 0 where there is no map), error_ns and wander_ns (float64, NaN unknown), and the reference clock
        (-2 where there is no map: such a moment must not be compared with one on another clock).
    """
    pieces = connection.execute(PIECES, [capture_id]).fetchnumpy()
    own = connection.execute(
        "SELECT clock, step_ticks FROM clocks WHERE capture_id = ? AND unit = 'ns'", [capture_id]
    ).fetchall()
    launch, clock, t = (np.asarray(x, np.int64) for x in (launch, clock, t))
    ns, reference = np.zeros(len(t), np.int64), np.full(len(t), -2, np.int64)
    error, wander = np.full(len(t), np.nan), np.full(len(t), np.nan)
    for number, step in own:
        mine = clock == number
        ns[mine], reference[mine], wander[mine] = t[mine], number, 0.0
        error[mine] = step if step > 0 else np.nan
    keys = np.stack([np.asarray(pieces["launch"]), np.asarray(pieces["clock"])], axis=1)
    for first, last in _runs(keys):
        holder, number = int(keys[first, 0]), int(keys[first, 1])
        mine = (clock == number) & ((launch == holder) if holder >= 0 else ~_held(launch, keys, number))
        if mine.any():
            piece = {name: _plain(values[first:last]) for name, values in pieces.items()}
            ns[mine], error[mine], wander[mine] = _placed(piece, t[mine])
            reference[mine] = int(piece["reference_clock"][0])
    return ns, error, wander, reference


def _plain(values: Array) -> Array:
    """Values without a mask; NaN where a DOUBLE is null."""
    result: Array = np.ma.filled(values, np.nan) if values.dtype.kind == "f" else np.asarray(values)
    return result


def _runs(keys: Array) -> list[tuple[int, int]]:
    """Begin and end of each run of equal rows."""
    if not len(keys):
        return []
    cuts = np.flatnonzero((keys[1:] != keys[:-1]).any(axis=1)) + 1
    return list(zip([0, *cuts.tolist()], [*cuts.tolist(), len(keys)], strict=True))


def _held(launch: Array, keys: Array, clock: int) -> Array:
    """Which launches have a map of their own for this clock."""
    result: Array = np.isin(launch, keys[(keys[:, 1] == clock) & (keys[:, 0] >= 0), 0])
    return result


def _placed(piece: dict[str, Array], t: Array) -> tuple[Array, Array, Array]:
    """Ticks by the pieces of one map, in order: ns, error, wander."""
    begins, ends = piece["t_first"].astype(np.int64), piece["t_last"].astype(np.int64)
    n = np.maximum(np.searchsorted(begins, t, side="right") - 1, 0)
    begin, end, rate = begins[n], ends[n], piece["ns_per_tick"][n]
    beyond = np.maximum(np.maximum(begin - t, t - end), 0)
    near = np.where(beyond > 0, beyond, np.minimum(t - begin, end - t))
    bound, length = piece["error_ns"][n], end - begin
    grown = np.where(length > 0, 2 * bound * beyond / np.maximum(length, 1), 0.0)
    step = np.where(piece["step_ticks"] > 0, piece["step_ticks"], np.nan)[n]
    ns = piece["ns_first"].astype(np.int64)[n] + np.floor((t - begin) * rate + 0.5).astype(np.int64)
    return ns, bound + grown + step * rate, piece["wander"][n] * near * rate
