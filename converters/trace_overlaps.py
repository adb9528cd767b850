"""Rows of their own for spans that cross: viewers can only draw what nests or follows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

MAX_DEPTH = 500
"""Viewers stop drawing at a depth of 512."""


@dataclass
class Open:
    """What is still open of the last lane when its next part comes: per level the ends, outermost first."""

    lane: int = -1
    stacks: list[list[int]] = field(default_factory=list)


def split_overlaps(lane: Array, t0: Array, t1: Array, state: Open | None = None) -> Array:
    """Level 0, 1, 2, ... of each interval such that those of one (lane, level) nest or follow each other.

    Args:
        lane, t0, t1: equal lengths, ordered by (lane, t0, -t1).
        state: what the part before left, of the same call for every part; only a part's first lane can go on.

    Greedy and stable: an interval takes the first level on which it crosses nothing. Only lanes on which something
    crosses, which are few, cost a loop.
    """
    state = state or Open()
    level = np.zeros(len(t0), dtype=np.int32)
    if len(t0) == 0:
        return level
    starts = np.flatnonzero(np.concatenate([[True], lane[1:] != lane[:-1]]))
    ends = np.append(starts[1:], len(lane))
    goes_on = state.lane == int(lane[0])
    held = state.stacks if goes_on else []
    # t1 of the previous interval is its lane's latest end as long as nothing was open before.
    touches = np.zeros(len(t0), dtype=bool)
    touches[1:] = (lane[1:] == lane[:-1]) & (t0[1:] < t1[:-1])
    busy = np.logical_or.reduceat(touches, starts)
    busy[0] |= any(end > t0[0] for stack in held for end in stack)
    state.lane, state.stacks = int(lane[-1]), [[int(t1[-1])]]
    if not busy.any():
        return level
    rows = np.repeat(busy, ends - starts)
    index = np.flatnonzero(rows)
    first = [end for end in held[0] if end > t0[0]] if busy[0] and len(held) == 1 else []
    crossing = _crossing(lane[index], t0[index], t1[index], first)
    crossing[0] |= bool(busy[0]) and len(held) > 1
    numbers = np.flatnonzero(busy)
    last = len(starts) - 1
    if busy[last] and not crossing[-1]:
        mine = slice(int(starts[last]), int(ends[last]))
        above = first if last == 0 else []
        state.stacks = [[end for end in above if end > t0[-1]] + t1[mine][t1[mine] > t0[-1]].tolist()]
    for number in numbers[crossing].tolist():
        part = slice(int(starts[number]), int(ends[number]))
        stacks = held if number == 0 and goes_on else []
        level[part] = _greedy(t0[part].tolist(), t1[part].tolist(), stacks)
        if number == last:
            state.stacks = stacks
    return level


def _greedy(begins: list[int], stops: list[int], stacks: list[list[int]]) -> list[int]:
    """Level of each interval of one lane; ``stacks`` is what is open, and is brought up to date."""
    levels = []
    for begin, stop in zip(begins, stops, strict=True):
        for index, stack in enumerate(stacks):
            while stack and stack[-1] <= begin:
                stack.pop()
            if (not stack or stop <= stack[-1]) and len(stack) < MAX_DEPTH:
                stack.append(stop)
                levels.append(index)
                break
        else:
            stacks.append([stop])
            levels.append(len(stacks) - 1)
    return levels


def _crossing(lane: Array, t0: Array, t1: Array, first: list[int]) -> Array:
    """Per lane whether anything on it crosses, or nests too deep.

    Args:
        lane, t0, t1: ordered by (lane, t0, -t1).
        first: ends of what is open when the first lane begins, outermost first.

    As long as nothing crosses, the interval that holds another one is the last before it that lies one level higher,
    where the level is how many are open. So the first one that crosses ends after its holder, and shows.
    """
    count = len(first)
    lane = np.concatenate([np.full(count, lane[0]), lane])
    t0 = np.concatenate([np.full(count, t0[0]), t0])
    t1 = np.concatenate([np.array(first, dtype=np.int64), t1])
    starts = np.flatnonzero(np.concatenate([[True], lane[1:] != lane[:-1]]))
    group = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(lane))))
    long = np.flatnonzero(t1 > t0)
    low = np.minimum.reduceat(t0, starts)
    begin, end = (t0 - low[group])[long], (t1 - low[group])[long]
    width = int(end.max(initial=0)) + 1
    if len(starts) * width >= 2**62:
        return np.ones(len(starts), dtype=bool)
    place = group[long] * width
    opened = place + begin
    closed = np.sort(place + end)
    rank = np.arange(len(long))
    depth = rank - np.searchsorted(closed, opened, side="right")
    result = np.zeros(len(starts), dtype=bool)
    if len(long) == 0:
        return result
    deepest = int(depth.max()) + 1
    key = (group[long] * (deepest + 1) + depth) * len(long) + rank
    if (len(starts) + 1) * (deepest + 1) * len(long) >= 2**62:
        return np.ones(len(starts), dtype=bool)
    order = np.sort(key)
    inner = np.flatnonzero(depth > 0)
    holder = order[np.searchsorted(order, key[inner] - len(long), side="right") - 1] % len(long)
    result[group[long][inner[end[inner] > end[holder]]]] = True
    result[group[long][depth + 2 > MAX_DEPTH]] = True
    return result
