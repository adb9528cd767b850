"""Times of the stamps of a block of CTAs: which slots are written, and the wraps undone.

Slots are read as they lie in the buffer: ``[cta, role, event, iteration]``. A 32-bit slot holds the low half of a
64-bit counter. Definitions: spec, clock model (wraps).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wsformat.errors import MalformedInput

Array = np.ndarray[Any, Any]

META = np.dtype([("g0", "<u8"), ("c0", "<u8"), ("g1", "<u8"), ("c1", "<u8"), ("sm", "<u4"), ("pad", "<u4")])
"""One record a CTA: globaltimer and clock64 at its start, the same at its end, smid. ``pad``: cycles between the two
clock reads around the timer, at the start in the low 16 bits, at the end in the high ones; 0: not taken. 40 bytes."""

ANCHOR = np.dtype([("g", "<u8"), ("c", "<u8"), ("cta", "<u4"), ("distance", "<u4")])
"""One more reading in a CTA: globaltimer, the clock64 before it, linear index of the CTA, cycles from that clock to one
after the timer. All 0: not written. 24 bytes."""

HALF = np.uint32(1 << 31)
TURN = 1 << 32


@dataclass(frozen=True)
class Anchor:
    """What a block of CTAs knows about its 64-bit clock.

    Attributes:
        start: ticks at the start of each CTA, int64.
        end: ticks at its end, int64.
    """

    start: Array
    end: Array


@dataclass
class Times:
    """Times of a block of CTAs.

    Attributes:
        written: bool ``[cta, role, event, iteration]``.
        base: int64 ``[cta]``; the time of a slot is base + rel.
        rel: ticks after base, 0 where nothing is written; uint32, or int64 where 32 bits do not hold it.
        unfolded: CTAs (position in the block) whose 32-bit series went round more than once, with their ``rel``.
    """

    written: Array
    base: Array
    rel: Array
    unfolded: dict[int, Array] = field(default_factory=dict)


def place(cta: int, role: int, event: int, iteration: int) -> str:
    """Where a slot is, for messages."""
    return f"CTA {cta}, role index {role}, event index {event}, iteration {iteration}"


def is_written(slots: Array, unwritten: int) -> Array:
    """Which slots hold another value than ``unwritten`` (compared as 32 bits where slots have 32)."""
    value: Any = np.uint32(unwritten & 0xFFFFFFFF) if slots.dtype == np.uint32 else np.int64(unwritten)
    result: Array = slots != value
    return result


def decode_times(slots: Array, unwritten: int, anchor: Anchor | None, where: str, first_cta: int = 0) -> Times:
    """Read a block of slots.

    Args:
        slots: ``[cta, role, event, iteration]``, uint32 or int64.
        unwritten: value of a slot that nobody wrote.
        anchor: 64-bit start and end of each CTA, on the clock of the stamps.
        where: name of the source for errors.
        first_cta: index of the first CTA of the block, for errors.

    Raises:
        MalformedInput: times stay ambiguous, or contradict the anchors; names CTA, role, event and iteration.
    """
    written = is_written(slots, unwritten)
    if slots.dtype != np.uint32:
        _refuse_negative(slots, written, where, first_cta)
        times = _wide(slots, written, anchor)
    elif anchor is not None:
        times = _anchored(slots, written, anchor, where, first_cta)
    else:
        return _free(slots, written, where, first_cta)
    if anchor is not None:
        _refuse_foreign(times, anchor, where, first_cta)
    back = _backwards(times.rel, times.written)
    if back.size:
        cta, role, event, iteration = (int(x) for x in back[0])
        raise MalformedInput(
            f"{where}: {place(first_cta + cta, role, event, iteration)}: the stamp is earlier than one of the same "
            f"event of an earlier iteration",
            "Check the layout (roles,events,iterations), the meta file and the value of unwritten slots.",
        )
    return times


def _backwards(rel: Array, written: Array) -> Array:
    """Written slots that hold less than an earlier iteration of the same event: indices ``[n, 4]``."""
    found = written[..., 1:] & (rel[..., 1:] < rel[..., :-1])
    if not found.any() and not (written[..., 1:] & ~written[..., :-1]).any():
        return np.zeros((0, 4), np.int64)
    # With holes, where rel is 0, the neighbour is not enough.
    return np.argwhere(written & (rel < np.maximum.accumulate(rel, axis=-1)))


def _refuse_negative(slots: Array, written: Array, where: str, first_cta: int) -> None:
    wrong = written & (slots < 0)
    if wrong.any():
        cta, role, event, iteration = (int(x) for x in np.argwhere(wrong)[0])
        raise MalformedInput(
            f"{where}: {place(first_cta + cta, role, event, iteration)}: holds {slots[cta, role, event, iteration]}; "
            f"a clock reads 0 to 2^63 - 1",
            "Check the layout, and the value of unwritten slots (--unwritten).",
        )


def _wide(slots: Array, written: Array, anchor: Anchor | None) -> Times:
    if anchor is not None:
        base = anchor.start
    else:
        lowest = np.where(written, slots, np.iinfo(np.int64).max).min(axis=(1, 2, 3))
        base = np.where(written.any(axis=(1, 2, 3)), lowest, 0)
    rel = np.where(written, slots - base[:, None, None, None], 0)
    return Times(written, base, rel)


def _anchored(slots: Array, written: Array, anchor: Anchor, where: str, first_cta: int) -> Times:
    long = np.flatnonzero(anchor.end - anchor.start >= TURN)
    if long.size:
        raise MalformedInput(
            f"{where}: CTA {first_cta + int(long[0])} ran for {int((anchor.end - anchor.start)[long[0]])} ticks; "
            f"stamps of 32 bits are ambiguous beyond {TURN}",
            "Record 64-bit stamps.",
        )
    low = (anchor.start & 0xFFFFFFFF).astype(np.uint32)
    rel = slots - low[:, None, None, None]
    rel *= written
    return Times(written, anchor.start, rel)


def _refuse_foreign(times: Times, anchor: Anchor, where: str, first_cta: int) -> None:
    """A stamp may follow the CTA's own end record (another warp took it), but not by a whole lifetime."""
    life = anchor.end - anchor.start
    highest = times.rel.max(axis=(1, 2, 3)).astype(np.int64)
    lowest = times.rel.min(axis=(1, 2, 3)).astype(np.int64)
    wrong = np.flatnonzero((highest > 2 * life) | (lowest < -life))
    if wrong.size:
        cta = int(wrong[0])
        rel = times.rel[cta].astype(np.int64)
        role, event, iteration = (int(x[0]) for x in np.nonzero((rel > 2 * life[cta]) | (rel < -life[cta])))
        raise MalformedInput(
            f"{where}: {place(first_cta + cta, role, event, iteration)}: the stamp lies "
            f"{int(rel[role, event, iteration])} ticks after the start of a CTA that ran for {int(life[cta])}",
            "Check that the meta file belongs to this buffer, and the value of unwritten slots.",
        )


def _free(slots: Array, written: Array, where: str, first_cta: int) -> Times:
    """Without an anchor: each series (role, event) in iteration order, then all within half a turn of each other."""
    ctas = len(slots)
    series_written = written.any(axis=-1)
    first = np.take_along_axis(slots, written.argmax(axis=-1)[..., None], axis=-1)[..., 0].reshape(ctas, -1)
    present = series_written.reshape(ctas, -1)
    some = np.take_along_axis(first, present.argmax(axis=1)[:, None], axis=1)
    ring = np.sort(np.where(present, first, some), axis=1).astype(np.int64)
    # The first stamps of a CTA lie on a circle of 2^32; they belong after the widest gap between neighbours.
    gaps = np.diff(np.concatenate([ring, ring[:, :1] + TURN], axis=1), axis=1)
    widest = gaps.argmax(axis=1)
    start = np.take_along_axis(ring, ((widest + 1) % ring.shape[1])[:, None], axis=1)[:, 0]
    unclear = np.flatnonzero(present.any(axis=1) & (gaps.max(axis=1) <= int(HALF)))
    if unclear.size:
        cta = int(unclear[0])
        far = (first[cta].astype(np.int64) - int(start[cta])) % TURN * present[cta]
        role, event = np.unravel_index(int(far.argmax()), series_written.shape[1:])
        iteration = int(written[cta, role, event].argmax())
        raise MalformedInput(
            f"{where}: {place(first_cta + cta, int(role), int(event), iteration)}: its series cannot be placed within "
            f"2^31 ticks of the others of the CTA, so wraps are ambiguous",
            "Give the start and end records of the CTAs (meta), or record 64-bit stamps.",
        )
    rel = slots - start.astype(np.uint32)[:, None, None, None]
    rel *= written
    times = Times(written, start, rel)
    peak = np.maximum.accumulate(rel, axis=-1)
    odd = (written & (rel < peak)).any(axis=(1, 2, 3)) | (np.diff(peak, axis=-1) >= HALF).any(axis=(1, 2, 3))
    for position in np.flatnonzero(odd).tolist():
        times.unfolded[position] = _unfold(
            slots[position], written[position], int(start[position]), where, first_cta + position
        )
    return times


def _unfold(slots: Array, written: Array, start: int, where: str, cta: int) -> Array:
    """Ticks after ``start`` of one CTA whose series cross it again: running sums of steps below half a turn."""
    rel = np.zeros(slots.shape, dtype=np.int64)
    for role, event in np.argwhere(written.any(axis=-1)).tolist():
        iterations = np.flatnonzero(written[role, event])
        values = slots[role, event, iterations]
        steps = np.diff(values)
        wrong = np.flatnonzero(steps >= HALF)
        if wrong.size:
            at = int(iterations[int(wrong[0]) + 1])
            raise MalformedInput(
                f"{where}: {place(cta, role, event, at)}: goes back in time, or more than 2^31 ticks on, "
                f"so wraps are ambiguous",
                "Give the start and end records of the CTAs (meta), or check the layout and the unwritten value.",
            )
        total = np.concatenate([[(int(values[0]) - start) % TURN], steps.astype(np.int64)])
        rel[role, event, iterations] = np.cumsum(total)
    return rel


def crossings(times: Times) -> Array:
    """Times that each lane's counter passed a multiple of 2^32 between its first and last stamp, ``[cta, role]``."""
    ctas, roles = times.rel.shape[:2]
    result = np.zeros((ctas, roles), dtype=np.int64)
    high = times.rel.max(axis=(1, 2, 3)).astype(np.int64) + (times.base & 0xFFFFFFFF)
    for position in sorted({*np.flatnonzero(high >= TURN).tolist(), *times.unfolded}):
        rel = times.unfolded.get(position, times.rel[position]).astype(np.int64)
        turn = (rel + int(times.base[position])) >> 32
        written = times.written[position]
        for role in range(roles):
            seen = turn[role][written[role]]
            if seen.size:
                result[position, role] = int(seen.max() - seen.min())
    return result


def granularity(values: Sequence[Array]) -> int:
    """Largest number that divides every value, -1 when all are 0: the step of a timer, from differences it showed."""
    step = 0
    for part in values:
        step = int(np.gcd(step, np.gcd.reduce(part, axis=None, initial=0)))
    return step or -1
