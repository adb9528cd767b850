"""Protobuf's wire format, many messages at once: all messages advance field by field together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
MAX_FIELDS = 100_000
PACKET = 0x0A
"""Tag of a packet in a trace."""
WINDOW = 4 << 20


@dataclass(frozen=True)
class Field:
    """Occurrences of one field: the message of each, its value (for bytes: where they begin) and where bytes end."""

    owner: Array
    value: Array
    end: Array

    def last(self, count: int, default: int = 0) -> Array:
        """Value of each message; the last one counts."""
        result = np.full(count, default, self.value.dtype if len(self.value) else np.uint64)
        result[self.owner] = self.value
        return result

    def first_place(self, count: int) -> Array:
        """Number of the first occurrence in each message, -1 where there is none."""
        result = np.full(count, -1, np.int64)
        result[self.owner[::-1]] = np.arange(len(self.owner))[::-1]
        return result


NONE = Field(np.zeros(0, np.int64), np.zeros(0, np.uint64), np.zeros(0, np.int64))


def varints(data: Array, at: Array, stop: Array) -> tuple[Array, Array, Array]:
    """Read a varint at each position: values (uint64), positions after, and which are cut off or too long."""
    value, place = np.zeros(len(at), np.uint64), at.copy()
    todo = np.arange(len(at))
    for shift in range(0, 70, 7):
        todo = todo[place[todo] < stop[todo]]
        if not todo.size:
            break
        byte = data[place[todo]].astype(np.uint64)
        value[todo] |= (byte & np.uint64(0x7F)) << np.uint64(min(shift, 63))
        place[todo] += 1
        todo = todo[byte >= 0x80]
    return value, place, (place == at) | ((place > at) & (data[np.maximum(place - 1, 0)] >= 0x80))


def fields(data: Array, begin: Array, end: Array, wanted: set[int]) -> tuple[dict[int, Field], Array]:
    """Fields of messages.

    Args:
        data: bytes, uint8.
        begin, end: the messages.
        wanted: numbers of the fields to give.

    Returns:
        occurrences by field number (every wanted one is there), in the order of messages; which messages are broken.
    """
    parts: dict[int, list[tuple[Array, Array, Array, int]]] = {number: [] for number in wanted}
    at, broken = begin.astype(np.int64).copy(), np.zeros(len(begin), bool)
    todo = np.flatnonzero(at < end)
    for turn in range(MAX_FIELDS):
        if not todo.size:
            break
        stop = end[todo]
        tag, place, bad = varints(data, at[todo], stop)
        kind, number = (tag & np.uint64(7)).astype(np.int64), (tag >> np.uint64(3)).astype(np.int64)
        value, after, cut = varints(data, place, stop)
        is_varint, is_bytes = kind == VARINT, kind == BYTES
        length = np.where(is_bytes, np.minimum(value, np.uint64(1 << 62)).astype(np.int64), 0)
        fixed = np.select([kind == FIXED64, kind == FIXED32], [8, 4], 0)
        bad |= ((is_varint | is_bytes) & cut) | ~np.isin(kind, (VARINT, FIXED64, BYTES, FIXED32)) | (number == 0)
        start = np.where(is_bytes, after, place)
        follows = np.where(is_varint, after, np.where(is_bytes, after + length, place + fixed))
        bad |= follows > stop
        eight = (fixed == 8) & ~bad
        if eight.any():
            raw = data[place[eight][:, None] + np.arange(8)]
            value[eight] = np.ascontiguousarray(raw).view("<u8")[:, 0]
        for found in np.unique(number[~bad]).tolist():
            if found in parts:
                hit = (number == found) & ~bad
                parts[found].append(
                    (todo[hit], np.where(is_bytes[hit], start[hit].astype(np.uint64), value[hit]), follows[hit], turn)
                )
        broken[todo[bad]] = True
        at[todo] = follows
        todo = todo[~bad]
        todo = todo[at[todo] < end[todo]]
    result = {}
    for wanted_number, found_parts in parts.items():
        if not found_parts:
            result[wanted_number] = NONE
            continue
        owner = np.concatenate([part[0] for part in found_parts])
        order = np.lexsort((np.repeat([p[3] for p in found_parts], [len(p[0]) for p in found_parts]), owner))
        result[wanted_number] = Field(
            owner[order],
            np.concatenate([part[1] for part in found_parts])[order],
            np.concatenate([part[2] for part in found_parts])[order],
        )
    return result, broken


def packets(data: bytes) -> tuple[Array, Array, int]:
    """Begin and end of each packet of a trace, and the first byte that belongs to none (the length when all do)."""
    text, begins, ends, at = np.frombuffer(data, np.uint8), [], [], 0
    while at < len(data):
        begin, end, after = _framed(text, at, min(at + WINDOW, len(data)))
        begins.append(begin)
        ends.append(end)
        if after == at:
            break
        at = after
    none = np.zeros(0, np.int64)
    return np.concatenate([none, *begins]), np.concatenate([none, *ends]), at


def _framed(text: Array, first: int, stop: int) -> tuple[Array, Array, int]:
    """Packets that begin in a window, and the byte after the last one.

    Where a packet ends is known for every byte that could begin one; those on the chain from the first are the packets.
    The chain is found in as many steps as its length has bits.
    """
    at = np.flatnonzero(text[first:stop] == PACKET) + first
    length, place, bad = varints(text, at + 1, np.full(len(at), min(len(text), stop + 10)))
    end = place + np.minimum(length, np.uint64(1 << 62)).astype(np.int64)
    good = ~bad & (end <= len(text))
    at, place, end = at[good], place[good], end[good]
    if not len(at) or at[0] != first:
        return at[:0], at[:0], first
    # The next packet's number: where it is none, or begins beyond the window, the chain ends at a last, empty entry.
    after = np.searchsorted(at, end)
    jump = np.where((after < len(at)) & (at[np.minimum(after, len(at) - 1)] == end), after, len(at))
    jump = np.append(jump, len(at))
    on_chain = np.zeros(len(at) + 1, bool)
    on_chain[0] = True
    while True:
        reached = jump[np.flatnonzero(on_chain)]
        if on_chain[reached].all():
            break
        on_chain[reached] = True
        jump = jump[jump]
    chain = np.flatnonzero(on_chain[:-1])
    return place[chain], end[chain], int(end[chain[-1]])
