"""Launches of stamped kernels as slot buffers, read in blocks of CTAs, and what a first pass finds in them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from wsformat.completeness import judge, linked_roles, loop_events
from wsformat.errors import MalformedInput
from wsformat.iteration_window import WHOLE, IterationWindow
from wsformat.rolespec import Layout, RoleSpec
from wsformat.slot_file import SlotFile
from wsformat.stamp_times import Anchor, Array, Times, crossings, decode_times, is_written

BLOCK_SLOTS = 1 << 20
"""Slots decoded at a time: some 30 MB of work arrays."""
STEP_SAMPLE = 4
"""Iterations of each event that the step of a clock is measured on."""
MIN_READINGS = 8
"""Fewer readings may share a larger divisor by chance, so they do not tell the step of a clock."""


Result = TypeVar("Result")


@dataclass(frozen=True)
class StampLaunch:
    """One launch to decode.

    Attributes:
        slots: ``[cta, role, event, iteration]`` of int32, uint32, int64 or uint64, in memory or in a file;
            None when it wrote no stamps.
        events: how many event slots to look at, -1 all.
        meta: one record of ``stamp_times.META`` a CTA, None when there are none.
        kind: stamped or clean.
        trip_count: iterations of the main loop, -1 unknown.
        source: name of the source file.
        narrow: the counter has 32 bits although its slots have 64.
        facts: more columns of launches.
        anchors: more readings of both clocks, ``stamp_times.ANCHOR``, any shape; zero where none was made.
        tiles: of a persistent kernel, how many iterations of each loop make one tile.
        window: which iterations the slots hold.
        first_cta, cta_step: linear index in the grid of the first recorded CTA, and from one to the next.
    """

    slots: Array | SlotFile | None
    meta: Array | None = None
    kind: str = "stamped"
    trip_count: int = -1
    source: str = ""
    events: int = -1
    narrow: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict)
    tiles: Mapping[str, int] = field(default_factory=dict)
    anchors: Array | None = None
    window: IterationWindow = WHOLE
    first_cta: int = 0
    cta_step: int = 1

    @property
    def cta_index(self) -> Array:
        """Linear index in the grid of each recorded CTA."""
        return self.first_cta + self.cta_step * np.arange(self.ctas, dtype=np.int32)

    @property
    def ctas(self) -> int:
        """CTAs of the launch."""
        return len(self.slots) if self.slots is not None else 0 if self.meta is None else len(self.meta)


@dataclass(frozen=True)
class Survey:
    """What the first pass over one launch found; arrays are ``[cta, role]`` unless they say otherwise."""

    kept: Array
    wraps: Array
    codes: Array
    used: Array
    """last iteration written of each event, ``[role, event]``, -1 never"""
    step: Array
    """largest number that divides the times of each CTA from its origin, ``[cta]``, 0 when too few show it"""
    times: list[tuple[Array, dict[int, Array]]]
    """per block: base of each CTA, unfolded CTAs"""
    full_events: Array
    """events of a loop whose last slot is written, counted, ``[cta, role]``"""
    unclosed: int
    """begins of spans without their end"""
    unopened: int
    """ends of spans without their begin"""
    reversed_pairs: Array
    """pairs whose end lies before their begin, by position in the spec's spans"""


def words(launch: StampLaunch, first: int, count: int) -> Array:
    """The slots of some CTAs as uint32 or int64 in native byte order.

    Raises:
        MalformedInput: a value beyond 32 bits where the counter has no more.
    """
    assert launch.slots is not None
    where, held = launch.source, launch.slots
    slots = held.read(first, count) if isinstance(held, SlotFile) else held[first : first + count]
    if launch.events >= 0:
        slots = slots[:, :, : launch.events]
    native = np.ascontiguousarray(slots, dtype=slots.dtype.newbyteorder("="))
    if native.dtype.itemsize == 4:
        return native.view(np.uint32)
    if launch.narrow:
        if native.size and (int(native.max()) >= 1 << 32 or int(native.min()) < -(1 << 31)):
            raise MalformedInput(
                f"{where}: holds 64-bit values, but the role spec says that the clock has 32 bits",
                "Set clock.width_bits to 64 in the role spec.",
            )
        return native.astype(np.uint32)
    return native.view(np.int64)


def blocks(launch: StampLaunch) -> Iterator[tuple[int, Array]]:
    """Blocks of CTAs: index of the first, slots as :func:`words`."""
    for first, count in _ranges(launch):
        yield first, words(launch, first, count)


def _ranges(launch: StampLaunch) -> Iterator[tuple[int, int]]:
    if launch.slots is None or not len(launch.slots):
        return
    size = max(1, BLOCK_SLOTS // max(1, math.prod(launch.slots.shape[1:])))
    for first in range(0, len(launch.slots), size):
        yield first, min(size, len(launch.slots) - first)


def _each_block(launch: StampLaunch, work: Callable[[int, Array], Result]) -> list[Result]:
    """Results of ``work`` on every block, in order; numpy lets two threads work at once."""
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda part: work(part[0], words(launch, *part)), _ranges(launch)))


def anchor_of(launch: StampLaunch, spec: RoleSpec, first: int, count: int) -> Anchor | None:
    """64-bit start and end of some CTAs on the clock of their stamps, None without records."""
    if launch.meta is None:
        return None
    start, end = ("g0", "g1") if spec.clock.get("scope") == "device" else ("c0", "c1")
    part = launch.meta[first : first + count]
    return Anchor(part[start].astype(np.int64), part[end].astype(np.int64))


def survey(launch: StampLaunch, spec: RoleSpec, layout: Layout, unwritten: int) -> Survey:
    """First pass over one launch.

    Raises:
        MalformedInput: ambiguous times, or stamps that contradict the records of the CTAs.
    """
    events, groups = loop_events(spec, layout.roles), linked_roles(spec)
    index = {r["role"]: r["role_index"] for r in spec.roles}
    event = {(e["role"], e["event"]): e["event_index"] for e in spec.events}
    pairs = [
        (index[s["role"]], event[s["role"], s["begin_event"]], event[s["role"], s["end_event"]]) for s in spec.spans
    ]
    looped = np.zeros((layout.roles, layout.events), dtype=bool)
    for role, kinds in enumerate(events):
        looped[role, list(kinds.looped)] = True

    def one(first: int, slots: Array) -> tuple[Any, ...]:
        anchor = anchor_of(launch, spec, first, len(slots))
        times = decode_times(slots, unwritten, anchor, launch.source, first)
        any_cta = np.asarray(times.written.any(axis=0))
        used = np.where(any_cta.any(axis=-1), layout.iterations - 1 - any_cta[..., ::-1].argmax(axis=-1), -1)
        sample = times.rel[..., :STEP_SAMPLE].reshape(len(slots), -1).astype(np.int64)
        step = np.where((sample > 0).sum(axis=1) >= MIN_READINGS, np.gcd.reduce(sample, axis=1), 0)
        wide = slots.dtype != np.uint32
        ends = [(times.written[:, r, b], times.written[:, r, e]) for r, b, e in pairs]
        return (
            times.written.sum(axis=(2, 3), dtype=np.int64),
            np.zeros(times.rel.shape[:2], np.int64) if wide else crossings(times),
            _codes(times, events, groups, launch),
            used,
            step,
            (times.base, times.unfolded),
            (times.written[..., -1] & looped).sum(axis=-1),
            sum(int(np.count_nonzero(begin > end)) for begin, end in ends),
            sum(int(np.count_nonzero(begin < end)) for begin, end in ends),
            _reversed_pairs(times, pairs),
        )

    parts = _each_block(launch, one)
    return Survey(
        kept=np.concatenate([p[0] for p in parts]),
        wraps=np.concatenate([p[1] for p in parts]),
        codes=np.concatenate([p[2] for p in parts]),
        used=np.max([p[3] for p in parts], axis=0),
        step=np.concatenate([p[4] for p in parts]),
        times=[p[5] for p in parts],
        full_events=np.concatenate([p[6] for p in parts]),
        unclosed=sum(p[7] for p in parts),
        unopened=sum(p[8] for p in parts),
        reversed_pairs=np.sum([p[9] for p in parts], axis=0),
    )


def _reversed_pairs(times: Times, pairs: Sequence[tuple[int, int, int]]) -> Array:
    """Pairs (role, begin event, end event) whose end lies before their begin, counted."""
    both = [times.written[:, role, begin] & times.written[:, role, end] for role, begin, end in pairs]
    wrong = [has & (times.rel[:, r, e] < times.rel[:, r, b]) for has, (r, b, e) in zip(both, pairs, strict=True)]
    for position, rel in times.unfolded.items():
        for n, (role, begin, end) in enumerate(pairs):
            wrong[n][position] = both[n][position] & (rel[role, end] < rel[role, begin])
    return np.array([np.count_nonzero(found) for found in wrong], np.int64)


def _codes(times: Times, events: Sequence[Any], groups: Sequence[set[int]], launch: StampLaunch) -> Array:
    known = (events, groups, launch.trip_count, launch.window)
    codes = judge(times.rel, times.written, *known)
    for position, rel in times.unfolded.items():
        codes[position] = judge(rel[None], times.written[position][None], *known)[0]
    return codes


def last_written(launch: StampLaunch, unwritten: int) -> Array:
    """Last iteration of each event that any CTA wrote, ``[role, event]``, -1 never."""

    def one(_: int, slots: Array) -> Array:
        seen = np.asarray(is_written(slots, unwritten).any(axis=0))
        last: Array = np.where(seen.any(axis=-1), seen.shape[-1] - 1 - seen[..., ::-1].argmax(axis=-1), -1)
        return last

    result: Array = np.max(_each_block(launch, one), axis=0)
    return result


def sample_times(launches: Sequence[StampLaunch], spec: RoleSpec, unwritten: int) -> list[tuple[Array, Array]]:
    """Times and presence ``[cta, role, event, iteration]`` of the first block of CTAs of each launch."""
    result = []
    for launch in launches:
        for first, slots in blocks(launch):
            anchor = anchor_of(launch, spec, first, len(slots))
            times = decode_times(slots, unwritten, anchor, launch.source, first)
            rel = times.rel
            if times.unfolded:
                rel = rel.astype(np.int64)
                for position, unfolded in times.unfolded.items():
                    rel[position] = unfolded
            result.append((rel, times.written))
            break
    return result
