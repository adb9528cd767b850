"""Which begin belongs to which end, which span holds a moment, which head belongs to which tail: all vectorised."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def pair(group: Array, order: Array, is_end: Array) -> tuple[Array, Array]:
    """Pair begins and ends as a stack would, group by group; an end without a begin disturbs nothing.

    Args:
        group: who shares a stack.
        order: place in time.
        is_end: whether an entry ends a span.

    Returns:
        for each begin the entry that ends it (-1 none), and for each entry whether it is an end without begin.
        Both have the length of the input; the first is -1 for ends.
    """
    count = len(group)
    partner = np.full(count, -1, np.int64)
    orphan = np.zeros(count, bool)
    if count == 0:
        return partner, orphan
    sort = np.lexsort((order, group))
    ends, groups = is_end[sort], group[sort]
    first = np.concatenate([[True], groups[1:] != groups[:-1]])
    starts = np.flatnonzero(first)
    size = np.diff(np.append(starts, count))
    step = np.where(ends, -1, 1).astype(np.int64)
    total = np.cumsum(step)
    total -= np.repeat(total[starts] - step[starts], size)
    # Where the running sum reaches a new low, an end came with nothing open.
    low = _running_min(np.minimum(total, 0), starts, size)
    before = np.where(first, 0, np.concatenate([[0], low[:-1]]))
    lost = ends & (low < before)
    orphan[sort[lost]] = True
    depth = total - low
    level = np.where(ends, depth, depth - 1)
    kept = np.flatnonzero(~lost)
    line = kept[np.lexsort((np.arange(kept.size), level[kept], groups[kept]))]
    same = (groups[line][1:] == groups[line][:-1]) & (level[line][1:] == level[line][:-1])
    match = np.flatnonzero(same & ~ends[line][:-1] & ends[line][1:])
    partner[sort[line[match]]] = sort[line[match + 1]]
    return partner, orphan


def _running_min(values: Array, starts: Array, size: Array) -> Array:
    """Running minimum within each group."""
    # Groups are shifted apart, later ones below, so that one running minimum over all serves each.
    span = int(values.max() - values.min()) + 1
    shift = np.repeat(np.arange(len(starts), dtype=np.int64) * span, size)
    result: Array = np.minimum.accumulate(values - shift) + shift
    return result


class Enclosing:
    """Finds the innermost span of a lane that holds a moment.

    Args:
        lane, t0, t1: the spans.
    """

    def __init__(self, lane: Array, t0: Array, t1: Array) -> None:
        self.sort = np.lexsort((-t1, t0, lane))
        self.lane, self.t0, self.t1 = lane[self.sort], t0[self.sort], t1[self.sort]
        count = len(lane)
        first = np.concatenate([[True], self.lane[1:] != self.lane[:-1]]) if count else np.zeros(0, bool)
        # The nearest earlier span of the lane that ends later, by following such pointers from the neighbour.
        outer = np.arange(count) - 1
        outer[first] = -1
        todo = np.flatnonzero(outer >= 0)
        while todo.size:
            todo = todo[self.t1[outer[todo]] <= self.t1[todo]]
            outer[todo] = outer[outer[todo]]
            todo = todo[outer[todo] >= 0]
        self.outer = outer

    def find(self, lane: Array, t: Array) -> Array:
        """Index of the innermost span open at each moment (ends included), -1 where there is none."""
        at = self._before(lane, t)
        todo = np.flatnonzero(at >= 0)
        while todo.size:
            todo = todo[self.t1[at[todo]] < t[todo]]
            at[todo] = self.outer[at[todo]]
            todo = todo[at[todo] >= 0]
        return np.where(at >= 0, self.sort[at], -1) if len(self.sort) else at

    def next(self, lane: Array, t: Array) -> Array:
        """Index of the first span of the lane that starts at or after each moment, -1 where there is none."""
        if not len(self.sort):
            return np.full(len(lane), -1, np.int64)
        at = self._search(lane, t, "left")
        safe = np.minimum(at, len(self.sort) - 1)
        found = (at < len(self.sort)) & (self.lane[safe] == lane)
        return np.where(found, self.sort[safe], -1)

    def _before(self, lane: Array, t: Array) -> Array:
        if not len(self.sort):
            return np.full(len(lane), -1, np.int64)
        at = self._search(lane, t, "right") - 1
        return np.where((at >= 0) & (self.lane[np.maximum(at, 0)] == lane), at, -1)

    def _search(self, lane: Array, t: Array, side: Any) -> Array:
        """Place of (lane, t) among the spans."""
        low = np.searchsorted(self.lane, lane, "left")
        high = np.searchsorted(self.lane, lane, "right")
        while (low < high).any():
            middle = (low + high) // 2
            value = self.t0[np.minimum(middle, len(self.t0) - 1)]
            up = (low < high) & ((value < t) | ((value == t) & (side == "right")))
            down = (low < high) & ~up
            low = np.where(up, middle + 1, low)
            high = np.where(down, middle, high)
        return low


def arrows(key: Array, order: Array, kind: Array) -> tuple[Array, Array]:
    """Join the tails, steps and heads of arrows that share a key.

    Args:
        key: the arrow's id, as an integer.
        order: place in time.
        kind: 0 tail, 1 step (head of one part and tail of the next), 2 head.

    Returns:
        (from, to) entries; -1 for an end that is not there. A head takes the last tail or step before it, or, when
        there is none, the first tail after it (an arrow backwards in time). One tail may have many heads.
    """
    count = len(key)
    if count == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    sort = np.lexsort((kind, order, key))
    keys, kinds = key[sort], kind[sort]
    starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    size = np.diff(np.append(starts, count))
    place = np.arange(count)
    group_start, group_end = np.repeat(starts, size), np.repeat(starts + size, size)
    source = kinds <= 1
    # Last source strictly before each entry.
    last = np.maximum.accumulate(np.where(source, place, -1))
    last = np.concatenate([[-1], last[:-1]])
    last = np.where(last >= group_start, last, -1)
    # First tail after it.
    following = np.where(kinds == 0, place, count)
    following = np.minimum.accumulate(following[::-1])[::-1]
    following = np.where(following < group_end, following, -1)
    head = np.flatnonzero(kinds >= 1)
    tail = np.where(last[head] >= 0, last[head], following[head])
    used = np.zeros(count, bool)
    used[tail[tail >= 0]] = True
    loose = np.flatnonzero(source & ~used)
    loose = loose[kinds[loose] == 0]
    begin = np.concatenate([np.where(tail >= 0, sort[np.maximum(tail, 0)], -1), sort[loose]])
    end = np.concatenate([sort[head], np.full(len(loose), -1, np.int64)])
    return begin, end
