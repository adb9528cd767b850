"""The iteration lag of an edge, where the order of the stamps proves it.

Edges into one wait that name the same barrier are judged together: a phase of a barrier is over when all of them have
arrived, so they have one lag, and the last signal counts.

*At least.* An effect never precedes its cause: signal i must not follow the end of wait i + L, for every i. The
smallest L that no pair contradicts is a lower bound. A stamp may follow the arrival that it stands for by up to
:data:`LATE_STAMP` ticks, so that much is no contradiction.

*At most.* Suppose that the lag were greater. Then the signal that a wait needs came at least one iteration earlier,
and some waits began long after it, and after all other signals. Each of these should have been short. Where instead it
lasted until signal j - L had come, that is either what it waited for, or chance: of the waits of the capture that
surely found their signals there, few lasted that long. The product of these fractions is the probability that it is
chance throughout; the lag is proven when it is below :data:`CHANCE` over at least :data:`MIN_WAITS` waits.
The first waits, which a greater lag would leave without a signal, are no evidence: cold caches make them long too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wsformat.rolespec import RoleSpec, Row
from wsformat.stamp_times import Array

CHANCE = 1e-6
MIN_WAITS = 3
MAX_LAG = 64
LATE_STAMP = 256
"""As far as the validator lets a wait end before the stamp of its signal."""

Point = tuple[int, int]
"""Role index, event index."""


@dataclass(frozen=True)
class Lag:
    """What the stamps say about one edge.

    Attributes:
        least: smallest lag that no pair of stamps contradicts, -1 when there is none up to MAX_LAG.
        value: the lag, when it is proven; else -1.
        waits: waits that speak for it.
        chance: probability that they do so by chance.
    """

    least: int
    value: int
    waits: int
    chance: float

    @property
    def proven(self) -> bool:
        """Whether the order of the stamps proves the lag."""
        return self.value >= 0


@dataclass(frozen=True)
class _Group:
    """Edges with one lag: positions in the spec, their signals, the end of the wait and its begin (None no wait)."""

    edges: tuple[int, ...]
    signals: tuple[Point, ...]
    end: Point
    begin: Point | None
    given: int | None


class _Stamps:
    """Blocks of CTAs as ``[cta, iteration]`` for one point, or for the last of several."""

    def __init__(self, times: Sequence[tuple[Array, Array]]) -> None:
        self.times = times
        self.slots = times[0][0].shape[-1] if times else 0

    def point(self, block: int, point: Point) -> tuple[Array, Array]:
        rel, written = self.times[block]
        return rel[:, point[0], point[1]].astype(np.int64), written[:, point[0], point[1]]

    def signal(self, block: int, group: _Group, lag: int) -> tuple[Array, Array]:
        """Last signal of a group, moved to the iteration of the wait that it ends with that lag."""
        parts = [self.point(block, p) for p in group.signals]
        last = np.maximum.reduce([t for t, _ in parts])
        present = np.logical_and.reduce([has for _, has in parts])
        return _shift(last, lag), _shift(present, lag)


def _shift(values: Array, lag: int) -> Array:
    """values[i] moved to column i + lag; what comes in is 0."""
    if lag == 0:
        return values
    result = np.zeros_like(values)
    result[:, lag:] = values[:, :-lag]
    return result


def infer_lags(spec: RoleSpec, times: Sequence[tuple[Array, Array]]) -> tuple[RoleSpec, list[str], dict[int, Lag]]:
    """Fill in the lags of edges whose mapping of iterations is unknown.

    Args:
        spec: any role spec; edges with ``producer_step`` 0 are judged, those with steps 1 serve as known.
        times: per block of CTAs ``rel`` and ``written``, ``[cta, role, event, iteration]``.

    Returns:
        the spec with proven lags filled in (steps 1), one sentence for each edge, and what was found by the edge's
        position in ``spec.dependencies``.
    """
    stamps = _Stamps(times)
    groups = _groups(spec)
    least = [_least(stamps, g) if g.given is None else g.given for g in groups]
    calm = _satisfied(stamps, groups, least)
    edges = [dict(edge) for edge in spec.dependencies]
    found: dict[int, Lag] = {}
    for number, group in enumerate(groups):
        if group.given is not None:
            continue
        lag = _judge(stamps, number, groups, least, calm)
        for edge in group.edges:
            found[edge] = lag
            if lag.proven:
                edges[edge] |= {"iteration_lag": lag.value, "producer_step": 1, "consumer_step": 1}
    notes = [_sentence(edges[number], found[number]) for number in sorted(found)]
    return spec.with_rows(dependencies=edges), notes, found


def _groups(spec: RoleSpec) -> list[_Group]:
    index = {r["role"]: r["role_index"] for r in spec.roles}
    event = {(e["role"], e["event"]): e["event_index"] for e in spec.events}
    begins = {(s["role"], s["end_event"]): s["begin_event"] for s in spec.spans if s["state"] == "stall"}
    members: dict[tuple[Any, ...], list[int]] = {}
    for number, edge in enumerate(spec.dependencies):
        key: tuple[Any, ...] = (number,)
        if edge["producer_step"] == 0 and edge["barrier"]:
            key = (edge["consumer_role"], edge["consumer_event"], edge["barrier"])
        members.setdefault(key, []).append(number)
    result = []
    for numbers in members.values():
        rows = [spec.dependencies[n] for n in numbers]
        role, end = rows[0]["consumer_role"], rows[0]["consumer_event"]
        begin = begins.get((role, end))
        known = rows[0]["producer_step"] == rows[0]["consumer_step"] == 1
        if rows[0]["producer_step"] > 0 and not known:
            continue  # an edge with other steps explains nothing here
        result.append(
            _Group(
                edges=tuple(numbers),
                signals=tuple(
                    (index[r["producer_role"]], event[r["producer_role"], r["producer_event"]]) for r in rows
                ),
                end=(index[role], event[role, end]),
                begin=None if begin is None else (index[role], event[role, begin]),
                given=rows[0]["iteration_lag"] if known else None,
            )
        )
    return result


def _least(stamps: _Stamps, group: _Group, late: int = LATE_STAMP) -> int:
    for lag in range(min(MAX_LAG, stamps.slots - 1) + 1):
        pairs = 0
        for block in range(len(stamps.times)):
            end, has_end = stamps.point(block, group.end)
            signal, has = stamps.signal(block, group, lag)
            both = has & has_end
            if (both & (signal > end + late)).any():
                break
            pairs += int(both.sum())
        else:
            return lag if pairs else -1
    return -1


def _satisfied(stamps: _Stamps, groups: Sequence[_Group], least: Sequence[int]) -> dict[Point | None, Array]:
    """Lengths of waits that surely found every signal there, by the wait's end point; None: of all of them."""
    lengths: dict[Point | None, Array] = {}
    for end, begin in dict.fromkeys((g.end, g.begin) for g in groups):
        mine = [n for n, g in enumerate(groups) if g.end == end]
        if begin is None or any(not 0 <= least[n] < max(stamps.slots, 1) for n in mine):
            continue
        parts = [np.zeros(0, np.int64)]
        for block in range(len(stamps.times)):
            (t0, has0), (t1, has1) = stamps.point(block, begin), stamps.point(block, end)
            calm = has0 & has1
            for n in mine:
                signal, has = stamps.signal(block, groups[n], least[n])
                calm = calm & has & (signal <= t0)
            parts.append((t1 - t0)[calm])
        lengths[end] = np.sort(np.concatenate(parts))
    lengths[None] = np.sort(np.concatenate([*lengths.values(), np.zeros(0, np.int64)]))
    return lengths


def _judge(
    stamps: _Stamps, number: int, groups: Sequence[_Group], least: Sequence[int], calm: Mapping[Point | None, Array]
) -> Lag:
    group, lag = groups[number], least[number]
    others = [n for n, g in enumerate(groups) if n != number and g.end == group.end]
    if lag < 0 or group.begin is None or any(least[n] < 0 for n in others):
        return Lag(lag, -1, 0, 1.0)
    own = calm.get(group.end, np.zeros(0, np.int64))
    lengths = own if own.size >= MIN_WAITS else calm[None]
    # Where stamps follow their arrivals, the smallest lag without any contradiction is already too great.
    highest = max(_least(stamps, group, late=0), lag)
    proofs = []
    for candidate in range(lag, min(highest, stamps.slots - 2) + 1):
        blocked = _held_up(stamps, group, candidate, [(groups[n], least[n]) for n in others])
        chance = _chance(blocked, lengths)
        proofs.append((chance, int(blocked.size), candidate))
    good = [p for p in proofs if p[0] < CHANCE and p[1] >= MIN_WAITS]
    chance, waits, value = min(good or proofs, default=(1.0, 0, -1))
    return Lag(lag, value if len(good) == 1 else -1, waits, chance)


def _held_up(stamps: _Stamps, group: _Group, lag: int, others: Sequence[tuple[_Group, int]]) -> Array:
    """How long each wait lasted until this signal came, of the waits that a greater lag would have let pass."""
    begin = group.begin
    assert begin is not None
    held = []
    for block in range(len(stamps.times)):
        (t0, has0), (t1, has1) = stamps.point(block, begin), stamps.point(block, group.end)
        signal, has = stamps.signal(block, group, lag)
        release = np.maximum(t1 - signal, 0)
        # A signal of one iteration before: there for longer than this one took to release the wait.
        older, has_older = stamps.signal(block, group, lag + 1)
        speaks = has0 & has1 & has & (signal > t0) & has_older & (t0 - older >= release)
        for other, least in others:
            moment, has_other = stamps.signal(block, other, least)
            speaks = speaks & has_other & (t0 - moment >= release)
        held.append((np.minimum(signal, t1) - t0)[speaks])
    return np.concatenate(held)


def _chance(blocked: Array, lengths: Array) -> float:
    """Probability that satisfied waits, of which ``lengths`` are known in order, last as long as these all did."""
    if not blocked.size or not lengths.size:
        return 1.0
    as_long = lengths.size - np.searchsorted(lengths, blocked, side="left")
    logarithm = float(np.log((1 + as_long) / (1 + lengths.size)).sum())
    return float(np.exp(max(logarithm, -700.0)))


def _sentence(edge: Row, lag: Lag) -> str:
    name = f"{edge['producer_role']} {edge['producer_event']} -> {edge['consumer_role']} {edge['consumer_event']}"
    if lag.proven:
        return (
            f"Iteration lag of {name} is {lag.value}: proven by {lag.waits} waits that ended only when that signal "
            f"had come (probability of chance {lag.chance:.1g})."
        )
    if lag.least < 0:
        return f"Iteration lag of {name} is unknown: no lag up to {MAX_LAG} fits the order of the stamps."
    say = f"-O lag={edge['barrier']}=N on import," if edge["barrier"] else "a name of its barrier"
    return (
        f"Iteration lag of {name} is unknown, at least {lag.least}: too few waits were held up by this edge alone "
        f"({lag.waits}). The waits that it ends stay unjudged until you say it: {say} or iteration_lag in a role spec "
        "of ours."
    )
