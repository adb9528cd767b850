"""Times of packets: clocks that count up packet by packet, clocks of one sequence, and snapshots that tie clocks."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping

import numpy as np

from wsformat.converters.perfetto.wire import Array, Field, fields

BOOTTIME, MONOTONIC = 6, 3
OF_SEQUENCE = range(64, 128)
"""Clocks that mean something within one sequence of packets only."""
S_CLOCKS, S_PRIMARY = 1, 2
C_ID, C_TIME, C_INCREMENTAL, C_UNIT = 1, 2, 3, 4
SHIFT = 32
"""A clock's key is its number, with the sequence above it where the clock belongs to one."""


class Clocks:
    """Clocks of a trace.

    Args:
        data: bytes of the trace.
        snapshots: the field of packets that holds clock snapshots.
        sequence: dense number of the sequence of each packet.
    """

    def __init__(self, data: Array, snapshots: Field, sequence: Array) -> None:
        outer, _ = fields(data, snapshots.value.astype(np.int64), snapshots.end, {S_CLOCKS, S_PRIMARY})
        found = outer[S_CLOCKS]
        inner, _ = fields(data, found.value.astype(np.int64), found.end, {C_ID, C_TIME, C_INCREMENTAL, C_UNIT})
        count = len(found.owner)
        self.packet = snapshots.owner[found.owner]
        self.key = key_of(inner[C_ID].last(count).astype(np.int64), sequence[self.packet])
        unit = np.maximum(inner[C_UNIT].last(count, 1).astype(np.int64), 1)
        self.time = inner[C_TIME].last(count).astype(np.int64) * unit
        self.unit = dict(zip(self.key.tolist(), unit.tolist(), strict=True))
        counting = inner[C_INCREMENTAL].last(count) > 0
        self.incremental = {int(key) for key in self.key[counting].tolist()}
        said = outer[S_PRIMARY].value
        self.main = int(said[0]) if len(said) else BOOTTIME
        self._tie()

    def _tie(self) -> None:
        """For every clock, moments that are known on the main clock as well."""
        snapshots: dict[int, dict[int, int]] = defaultdict(dict)
        for packet, key, time in zip(self.packet.tolist(), self.key.tolist(), self.time.tolist(), strict=True):
            snapshots[packet][key] = time
        ties: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
        for snapshot in snapshots.values():
            for key, time in snapshot.items():
                for other, there in snapshot.items():
                    if other != key:
                        ties[key].append((other, time, there))
        self.known: dict[int, tuple[Array, Array]] = {self.main: (np.zeros(1, np.int64), np.zeros(1, np.int64))}
        queue = deque([self.main])
        while queue:
            near = queue.popleft()
            # The first snapshot of a pair may be early in the file or late; all of them are kept, by time.
            for key in {key for key, found in ties.items() if any(other == near for other, _, _ in found)}:
                if key not in self.known:
                    pairs = sorted((time, there) for other, time, there in ties[key] if other == near)
                    own, other_times = np.array(pairs, np.int64).T
                    self.known[key] = own, self.to_main(np.full(len(pairs), near), other_times)
                    queue.append(key)

    def to_main(self, key: Array, t: Array) -> Array:
        """Times on the main clock, by the last snapshot before each; those of unknown clocks stay as they are."""
        result = t.copy()
        for one in np.unique(key).tolist():
            if one in self.known and one != self.main:
                own, there = self.known[one]
                mine = key == one
                place = np.maximum(np.searchsorted(own, t[mine], side="right") - 1, 0)
                result[mine] = t[mine] - own[place] + there[place]
        return result

    def absolute(self, key: Array, t: Array, has: Array, sequence: Array) -> Array:
        """Times in ns: in the clock's unit, and added up where the clock counts from packet to packet.

        Args:
            key: clock of each packet.
            t: timestamp of each packet; has: whether it has one.
            sequence: of each packet.
        """
        result = t.copy()
        for one in np.unique(key).tolist():
            unit = self.unit.get(one, 1)
            if unit == 1 and one not in self.incremental:
                continue
            mine = np.flatnonzero((key == one) & has)
            result[mine] *= unit
            if one in self.incremental:
                said = self.key == one
                start = dict(zip(self.packet[said].tolist(), self.time[said].tolist(), strict=True))
                result[mine] = running(mine, sequence[mine], result[mine], start)
        return result


def key_of(clock: Array, sequence: Array) -> Array:
    """Key of a clock as used on a sequence."""
    of_sequence = (clock >= OF_SEQUENCE.start) & (clock < OF_SEQUENCE.stop)
    return np.where(of_sequence, clock + ((sequence.astype(np.int64) + 1) << SHIFT), clock)


def running(packet: Array, group: Array, step: Array, start: Mapping[int, int]) -> Array:
    """Values that are given as steps from one packet to the next, group by group.

    Args:
        packet: numbers of the packets, ascending.
        group: who counts together.
        step: what each adds.
        start: packets that say the value anew, before the step of the same packet.
    """
    result = np.zeros(len(packet), np.int64)
    resets = np.array(sorted(start), np.int64)
    value = np.array([start[n] for n in resets.tolist()], np.int64)
    for one in np.unique(group).tolist():
        mine = np.flatnonzero(group == one)
        total = np.cumsum(step[mine])
        # The last reset at or before each packet, and what had been added up before it.
        last = np.searchsorted(resets, packet[mine], side="right") - 1
        first = np.searchsorted(last, last, side="left")
        before = np.where(first > 0, total[np.maximum(first - 1, 0)], 0)
        base = np.where(last >= 0, value[np.maximum(last, 0)], 0) if len(value) else 0
        result[mine] = base + total - before
    return result


__all__ = ["BOOTTIME", "MONOTONIC", "Clocks", "key_of", "running"]
