"""The order of spans and stamps: lane by lane, then by time. Large recordings are sorted a few lanes at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from wsformat.converters.recording import Array

GROUP = 1 << 20
"""Rows that are sorted at once, unless one lane has more."""


def groups(lane: Array, lanes: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows, of whole lanes each, when rows are in the order of lanes.

    Args:
        lane: lane of each row, in any order.
        lanes: number of lanes.
    """
    if not len(lane):
        return
    stops = np.cumsum(np.bincount(lane, minlength=lanes))
    begin = 0
    while begin < len(lane):
        after = int(stops[np.searchsorted(stops, min(begin + GROUP, len(lane)), side="left")])
        yield begin, after
        begin = after


def in_order(lane: Array, lanes: int, t0: Array, t1: Array | None = None) -> Array:
    """Rows in the order of (lane, t0, -t1), as they come where those are equal.

    Args:
        lane: lane of each row, all known.
        lanes: number of lanes.
        t0: times; t1: of spans, their ends.
    """
    order = np.argsort(lane, kind="stable").astype(np.int32 if len(lane) < 2**31 else np.int64)
    for begin, end in groups(lane, lanes):
        rows = order[begin:end]
        keys = (t0[rows], lane[rows]) if t1 is None else (-t1[rows], t0[rows], lane[rows])
        order[begin:end] = rows[np.lexsort(keys)]
    return order


def ordinals(order: Array, lane: Array, lanes: int, name: Array) -> Array:
    """How many records of the same lane and name come before each, in that order (int32, for the rows of ``order``)."""
    result = np.empty(len(order), np.int32)
    for begin, end in groups(lane, lanes):
        rows = order[begin:end]
        both = lane[rows].astype(np.int64) << 32 | name[rows]
        sort = np.argsort(both, kind="stable")
        both = both[sort]
        starts = np.flatnonzero(np.concatenate([[True], both[1:] != both[:-1]]))
        size = np.diff(np.append(starts, len(both)))
        result[begin + sort] = np.arange(len(both)) - np.repeat(starts, size)
    return result


def pairs(lane: Array, name: Array) -> list[tuple[int, int]]:
    """The lanes and names that occur together, in order."""
    found = np.zeros(0, np.int64)
    for begin in range(0, len(lane), GROUP):
        both = lane[begin : begin + GROUP].astype(np.int64) << 32 | name[begin : begin + GROUP]
        found = np.union1d(found, both)
    return [(both >> 32, both & 0xFFFFFFFF) for both in found.tolist()]
