"""Protocol-buffer bytes in bulk: columns of fields become the bytes of many messages at once, with numpy.

A message type with few, scalar fields is a list of parts; each part knows the length it takes in every row, so that
all messages are written into one buffer, field by field, without a loop over rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

Array = np.ndarray[Any, Any]


class Part(Protocol):
    """Bytes of one field in every row: ``lengths`` (int64) and a way to put them into a buffer at offsets."""

    lengths: Array

    def put(self, buffer: Array, at: Array) -> None:
        """Write the rows' bytes at these offsets; rows of length 0 write nothing."""


def varint_lengths(values: Array) -> Array:
    """Bytes that each uint64 takes as a varint, 1 to 10."""
    values = values.astype(np.uint64, copy=False)
    lengths = np.ones(len(values), dtype=np.int64)
    for bits in range(7, 64, 7):
        more = values >= np.uint64(1 << bits)
        if not more.any():
            break
        lengths += more
    return lengths


def put_varints(buffer: Array, at: Array, values: Array, lengths: Array) -> None:
    """Write varints at offsets."""
    rest = values.astype(np.uint64, copy=True)
    longest = int(lengths.max(initial=0))
    for index in range(longest):
        rows = slice(None) if index == 0 and bool((lengths > 0).all()) else np.flatnonzero(lengths > index)
        byte = (rest[rows] & np.uint64(0x7F)).astype(np.uint8)
        more = lengths[rows] > index + 1
        buffer[at[rows] + index] = byte | (more.astype(np.uint8) << 7)
        rest[rows] >>= np.uint64(7)


def varint(value: int) -> bytes:
    """One varint; a negative value as its 64-bit two's complement."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field_varint(number: int, value: int) -> bytes:
    """One varint field."""
    return varint(number << 3) + varint(value)


def field_bytes(number: int, value: bytes | str) -> bytes:
    """One length-delimited field."""
    data = value.encode("utf-8", "replace") if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


class Constant:
    """The same bytes in every row, or in the rows of a mask."""

    def __init__(self, data: bytes, rows: int, mask: Array | None = None) -> None:
        self.data = np.frombuffer(data, dtype=np.uint8)
        self.mask = mask
        self.lengths = np.full(rows, len(data), dtype=np.int64)
        if mask is not None:
            self.lengths[~mask] = 0

    def put(self, buffer: Array, at: Array) -> None:
        """See :class:`Part`."""
        places = at if self.mask is None else at[self.mask]
        for index, byte in enumerate(self.data):
            buffer[places + index] = byte


class Varint:
    """A varint field; rows outside the mask leave it out. Negative numbers take ten bytes, as the wire format says."""

    def __init__(self, number: int, values: Array, mask: Array | None = None) -> None:
        self.tag = Constant(varint(number << 3), len(values), mask)
        self.values = values.astype(np.int64, copy=False).view(np.uint64)
        self.own = varint_lengths(self.values)
        if mask is not None:
            self.own = np.where(mask, self.own, 0)
        self.lengths = self.tag.lengths + self.own

    def put(self, buffer: Array, at: Array) -> None:
        """See :class:`Part`."""
        self.tag.put(buffer, at)
        put_varints(buffer, at + self.tag.lengths, self.values, self.own)


class Fixed64:
    """A fixed64 field; rows outside the mask leave it out."""

    def __init__(self, number: int, values: Array, mask: Array | None = None) -> None:
        self.tag = Constant(varint(number << 3 | 1), len(values), mask)
        self.mask = np.ones(len(values), dtype=bool) if mask is None else mask
        self.raw = values.astype("<u8").view(np.uint8).reshape(-1, 8)
        self.lengths = self.tag.lengths + np.where(self.mask, 8, 0)

    def put(self, buffer: Array, at: Array) -> None:
        """See :class:`Part`."""
        self.tag.put(buffer, at)
        places = (at + self.tag.lengths)[self.mask]
        for index in range(8):
            buffer[places + index] = self.raw[self.mask, index]


class Message:
    """A length-delimited field whose content is a list of parts.

    Rows outside the mask leave it out; the parts must then have the same mask.
    """

    def __init__(self, number: int, parts: Sequence[Part], mask: Array | None = None) -> None:
        self.parts = parts
        self.content = np.sum([part.lengths for part in parts], axis=0)
        rows = len(self.content)
        self.mask = mask
        self.tag = Constant(varint(number << 3 | 2), rows, mask)
        self.size = varint_lengths(self.content.astype(np.uint64))
        if mask is not None:
            if self.content[~mask].any():
                raise ValueError("a part writes rows that the message leaves out")
            self.size = np.where(mask, self.size, 0)
        self.lengths = self.tag.lengths + self.size + self.content

    def put(self, buffer: Array, at: Array) -> None:
        """See :class:`Part`."""
        self.tag.put(buffer, at)
        at = at + self.tag.lengths
        put_varints(buffer, at, self.content.astype(np.uint64), self.size)
        at = at + self.size
        for part in self.parts:
            part.put(buffer, at)
            at = at + part.lengths


def pack(message: Message) -> bytes:
    """The bytes of all rows, one after the other."""
    ends = np.cumsum(message.lengths)
    buffer = np.zeros(int(ends[-1]) if len(ends) else 0, dtype=np.uint8)
    message.put(buffer, ends - message.lengths)
    return buffer.tobytes()
