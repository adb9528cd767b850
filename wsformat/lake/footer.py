"""The schema part of a Parquet footer, as bytes: files whose bytes are equal there have the same columns.

Asking DuckDB to compare the columns of many files costs as much as reading small ones; comparing bytes does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike

TAIL = 16_384
MAGIC = b"PAR1"
STRUCT, LIST, BINARY, DOUBLE, BYTE = 12, (9, 10), 8, 7, 3
BOOLEANS, INTEGERS = (1, 2), (4, 5, 6)


def same_columns(paths: Sequence[str | PathLike[str]]) -> bool:
    """Whether all files have the same columns of the same types, in the same order; False also where one is damaged."""
    if not paths:
        return True
    try:
        first = footer(paths[0])
        schema = first[: schema_end(first)]
        return all(footer(path).startswith(schema) for path in paths[1:])
    except (OSError, ValueError, IndexError):
        return False


def footer(path: str | PathLike[str]) -> bytes:
    """The footer of a Parquet file, in Thrift's compact protocol.

    Raises:
        ValueError: no Parquet file.
        OSError: it cannot be read.
    """
    with open(path, "rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - TAIL))
        tail = file.read()
        if len(tail) < 12 or tail[-4:] != MAGIC:
            raise ValueError("no Parquet file")
        length = int.from_bytes(tail[-8:-4], "little")
        if length + 12 > size:
            raise ValueError("a footer larger than its file")
        if length + 8 > len(tail):
            file.seek(size - 8 - length)
            tail = file.read()
        return tail[-8 - length : -8]


def schema_end(data: bytes) -> int:
    """Where the list of columns ends in a footer: FileMetaData begins with its version, then the schema.

    Raises:
        ValueError, IndexError: no FileMetaData of Parquet.
    """
    if data[0] != 0x15:
        raise ValueError("version expected")
    at = _varint(data, 1)[1]
    if data[at] != 0x19:
        raise ValueError("schema expected")
    return _skip(data, at + 1, LIST[0])


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _skip(data: bytes, at: int, kind: int) -> int:
    """Past a value of one of the types of the compact protocol."""
    if kind in BOOLEANS:
        return at
    if kind in INTEGERS:
        return _varint(data, at)[1]
    if kind == BYTE:
        return at + 1
    if kind == DOUBLE:
        return at + 8
    if kind == BINARY:
        length, at = _varint(data, at)
        return at + length
    if kind in LIST:
        count, inner = data[at] >> 4, data[at] & 0x0F
        at += 1
        if count == 15:
            count, at = _varint(data, at)
        for _ in range(count):
            at = at + 1 if inner in BOOLEANS else _skip(data, at, inner)
        return at
    if kind == STRUCT:
        while head := data[at]:
            at += 1
            if not head >> 4:
                at = _varint(data, at)[1]
            at = _skip(data, at, head & 0x0F)
        return at + 1
    raise ValueError(f"type {kind} is not in a schema")
