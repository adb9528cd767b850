"""Protocol-buffer bytes in bulk: columns of fields become the bytes of many messages at once, with numpy.

A message type with few, scalar fields is a list of parts; each part knows the length it takes in every row, so that
all messages are written into one buffer, field by field, without a loop over rows. Varints of one column are padded to
the width of the widest of its rows, which every reader of the wire format takes: a column is then a few strided writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

Array = np.ndarray[Any, Any]


class Column(Protocol):
    """Bytes of one field in every row: ``lengths`` (int64) and a way to put them into a buffer at offsets."""

    lengths: Array

    def put(self, buffer: Array, at: Array) -> None:
        """Write the rows' bytes at these offsets; rows of length 0 write nothing."""


def varint_width(values: Array) -> int:
    """Bytes that the largest of these uint64 takes as a varint, 1 to 10."""
    return max(1, -(-int(values.max(initial=0)).bit_length() // 7))


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


def _lengths(width: int, rows: int, mask: Array | None) -> Array:
    return np.full(rows, width, dtype=np.int64) if mask is None else np.where(mask, width, 0)


def _put_padded(buffer: Array, at: Array, values: Array, width: int) -> None:
    for index in range(width):
        byte = (values >> np.uint64(7 * index)).astype(np.uint8) & np.uint8(0x7F)
        buffer[at + index] = byte if index == width - 1 else byte | np.uint8(0x80)


class Constant:
    """The same bytes in every row, or in the rows of a mask."""

    def __init__(self, data: bytes, rows: int, mask: Array | None = None) -> None:
        self.data = np.frombuffer(data, dtype=np.uint8)
        self.mask = mask
        self.lengths = _lengths(len(data), rows, mask)

    def put(self, buffer: Array, at: Array) -> None:
        """See :class:`Column`."""
        places = at if self.mask is None else at[self.mask]
        for index, byte in enumerate(self.data):
            buffer[places + index] = byte


class Varint:
    """A varint field; rows outside the mask leave it out. Negative numbers take ten bytes, as the wire format says."""

    def __init__(self, number: int, values: Array, mask: Array | None = None) -> None:
        self.tag = varint(number << 3)
        self.mask = mask
        kept = values if mask is None else values[mask]
        self.values = kept.astype(np.int64, copy=False).view(np.uint64)
        self.width = varint_width(self.values)
        self.lengths = _lengths(len(self.tag) + self.width, len(values), mask)

    def put(self, buffer: Array, at: Array) -> None:
        """See :class:`Column`."""
        places = at if self.mask is None else at[self.mask]
        for index, byte in enumerate(self.tag):
            buffer[places + index] = byte
        _put_padded(buffer, places + len(self.tag), self.values, self.width)


class Fixed64:
    """A field of eight bytes, integers or doubles; rows outside the mask leave it out."""

    def __init__(self, number: int, values: Array, mask: Array | None = None) -> None:
        self.tag = Constant(varint(number << 3 | 1), len(values), mask)
        self.mask = mask
        kept = values if mask is None else values[mask]
        plain = kept.astype("<f8" if kept.dtype.kind == "f" else "<u8")
        self.raw = plain.view(np.uint8).reshape(-1, 8)
        self.lengths = _lengths(len(self.tag.data) + 8, len(values), mask)

    def put(self, buffer: Array, at: Array) -> None:
        """See :class:`Column`."""
        self.tag.put(buffer, at)
        places = (at if self.mask is None else at[self.mask]) + len(self.tag.data)
        for index in range(8):
            buffer[places + index] = self.raw[:, index]


class Texts:
    """A length-delimited field with a text of its own in every row of the mask, else left out."""

    def __init__(self, number: int, texts: Sequence[str], mask: Array) -> None:
        fields = [field_bytes(number, text) if keep else b"" for text, keep in zip(texts, mask.tolist(), strict=True)]
        self.lengths = np.array([len(field) for field in fields], dtype=np.int64)
        self.data = np.frombuffer(b"".join(fields), dtype=np.uint8)

    def put(self, buffer: Array, at: Array) -> None:
        """See :class:`Column`."""
        within = np.arange(len(self.data)) - np.repeat(np.cumsum(self.lengths) - self.lengths, self.lengths)
        buffer[np.repeat(at, self.lengths) + within] = self.data


class Message:
    """A length-delimited field whose content is a list of parts.

    Rows outside the mask leave it out; the parts must then have the same mask.
    """

    def __init__(self, number: int, parts: Sequence[Column], mask: Array | None = None) -> None:
        self.parts = parts
        self.mask = mask
        self.tag = varint(number << 3 | 2)
        self.content = np.add.reduce([part.lengths for part in parts])
        if mask is not None and self.content[~mask].any():
            raise ValueError("a part writes rows that the message leaves out")
        self.width = varint_width(self.content)
        self.lengths = self.content + _lengths(len(self.tag) + self.width, len(self.content), mask)

    def put(self, buffer: Array, at: Array) -> None:
        """See :class:`Column`."""
        places = at if self.mask is None else at[self.mask]
        content = self.content if self.mask is None else self.content[self.mask]
        for index, byte in enumerate(self.tag):
            buffer[places + index] = byte
        _put_padded(buffer, places + len(self.tag), content.view(np.uint64), self.width)
        inside = np.zeros_like(at)
        inside += at
        inside += len(self.tag) + self.width
        for part in self.parts:
            part.put(buffer, inside)
            inside += part.lengths


def pack(*messages: Message) -> bytes:
    """The bytes of all rows, one after the other; of each row its messages in turn."""
    lengths = np.add.reduce([message.lengths for message in messages])
    ends = np.cumsum(lengths)
    buffer = np.empty(int(ends[-1]) if len(ends) else 0, dtype=np.uint8)
    at = ends - lengths
    for message in messages:
        message.put(buffer, at)
        at += message.lengths
    return buffer.tobytes()
