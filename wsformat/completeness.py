"""Whether a lane holds every stamp that its kernel made. Rules: spec, completeness of a lane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wsformat.iteration_window import WHOLE, IterationWindow
from wsformat.rolespec import ONCE, RoleSpec

Array = np.ndarray[Any, Any]

UNFILLED, PROVEN, UNKNOWN, TRUNCATED = range(4)
"""Complete because the last slot is not written; complete though it is; nobody knows; truncated."""

NAMES = ("complete", "complete", "unknown", "truncated")
WORST_FIRST = ("truncated", "unknown", "sampled", "complete")
LATE_ITERATIONS = 8
FAR = 1 << 62


@dataclass(frozen=True)
class LoopEvents:
    """Which event indices of a role are stamped in a loop, outside, and which starts an iteration (-1 none)."""

    looped: tuple[int, ...]
    once: tuple[int, ...]
    start: int


def loop_events(spec: RoleSpec, roles: int) -> list[LoopEvents]:
    """Per role index of the buffer what :func:`judge` needs of the spec."""
    result = [LoopEvents((), (), -1)] * roles
    for role in spec.roles:
        mine = [e for e in spec.events if e["role"] == role["role"]]
        start = [e["event_index"] for e in mine if e["event"] == role["iteration_event"]]
        result[role["role_index"]] = LoopEvents(
            tuple(e["event_index"] for e in mine if e["loop"] != ONCE),
            tuple(e["event_index"] for e in mine if e["loop"] == ONCE),
            start[0] if start else -1,
        )
    return result


def linked_roles(spec: RoleSpec) -> list[set[int]]:
    """Groups of role indices whose loops run equally often: edges with equal, known steps inside one CTA."""
    index = {role["role"]: role["role_index"] for role in spec.roles}
    loop = {(e["role"], e["event"]): e["loop"] for e in spec.events}
    groups = [{i} for i in index.values()]
    for edge in spec.dependencies:
        ends = [(edge["producer_role"], edge["producer_event"]), (edge["consumer_role"], edge["consumer_event"])]
        loops = {loop[end] for end in ends}
        same = len(loops) == 1 and ONCE not in loops and edge["producer_step"] == edge["consumer_step"] > 0
        if same and edge["scope"] == "cta":
            touched = [g for g in groups if index[ends[0][0]] in g or index[ends[1][0]] in g]
            groups = [g for g in groups if g not in touched] + [set[int]().union(*touched)]
    return [g for g in groups if len(g) > 1]


def judge(
    rel: Array,
    written: Array,
    events: Sequence[LoopEvents],
    groups: Sequence[set[int]],
    trip_count: int,
    window: IterationWindow = WHOLE,
) -> Array:
    """Code of each lane of a block of CTAs, int8 ``[cta, role]``.

    Args:
        rel: times ``[cta, role, event, iteration]``, on any origin per CTA.
        written: which of them are stamps.
        events: from :func:`loop_events`.
        groups: from :func:`linked_roles`.
        trip_count: iterations of the loop, -1 unknown.
        window: which iterations the slots hold; "complete" is said of these.
    """
    ctas, roles, _, slots = rel.shape
    codes = np.zeros((ctas, roles), dtype=np.int8)
    for role in range(roles):
        looped = list(events[role].looped)
        if not looped:
            continue
        if trip_count > window.end(slots):
            # Whatever part of the slots a lane fills, the kernel ran on where no slot was left.
            codes[written[:, role, looped].any(axis=(1, 2)), role] = TRUNCATED
            continue
        full = np.flatnonzero(written[:, role, looped, slots - 1].any(axis=1))
        if full.size and window.end(slots - 1) < trip_count <= window.end(slots):
            codes[full, role] = PROVEN
        elif full.size:
            some: Any = slice(None) if len(full) == ctas else full
            codes[some, role] = _judge_full(rel[some, role], written[some, role], events[role], window.stride)
    for group in groups:
        members = sorted(group)
        part = codes[:, members]
        for proof in (TRUNCATED, PROVEN):
            has = (part == proof).any(axis=1)
            part = np.where(has[:, None] & (part == UNKNOWN), np.int8(proof), part)
        codes[:, members] = part
    return codes


def _judge_full(rel: Array, written: Array, events: LoopEvents, stride: int) -> Array:
    """Lanes whose last slot is written and whose trip count is unknown; ``[lane, event, iteration]``."""
    codes = np.full(len(rel), UNKNOWN, dtype=np.int8)
    looped, once, last = list(events.looped), list(events.once), rel.shape[-1] - 1
    t_last = np.where(written[:, looped, last], rel[:, looped, last].astype(np.int64), -1).max(axis=1)
    outside, stamped = rel[:, once].astype(np.int64), written[:, once]
    after = stamped & (outside > t_last[:, None, None])
    nearest = np.where(after, outside, FAR).min(axis=(1, 2), initial=FAR)
    near = np.flatnonzero(nearest < FAR)
    if near.size and stride == 1:  # else nobody saw how short an iteration is
        shortest = np.min([_shortest(rel[near, e], written[near, e]) for e in looped], axis=0)
        # Half, because an iteration without stamps is shorter than the stamped ones that were seen.
        codes[near[(shortest < FAR) & (2 * (nearest[near] - t_last[near]) < shortest)]] = PROVEN
    if events.start in looped:
        latest = np.where(written, rel, 0).max(axis=(1, 2)).astype(np.int64)
        for lane in np.flatnonzero((latest > t_last) & (codes == UNKNOWN)).tolist():
            both = written[lane, events.start, 1:] & written[lane, events.start, :-1]
            steps = np.diff(rel[lane, events.start].astype(np.int64))[both]
            if steps.size and latest[lane] - t_last[lane] > LATE_ITERATIONS * float(np.median(steps)):
                codes[lane] = TRUNCATED
    return codes


def _shortest(rel: Array, written: Array) -> Array:
    """Shortest time between stamps of neighbouring iterations of one event, ``[lane]``, FAR when there are none."""
    both = written[:, 1:] & written[:, :-1]
    steps = rel[:, 1:] - rel[:, :-1]
    shortest = np.where(both, steps, np.iinfo(steps.dtype).max).min(axis=1).astype(np.int64)
    return np.where(both.any(axis=1), shortest, FAR)


def worst(names: Sequence[str]) -> str:
    """The worst of some completeness values; complete when there is none."""
    return next((name for name in WORST_FIRST if name in names), "complete")
