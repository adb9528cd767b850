"""Perfetto traces made byte by byte, for tests."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def field(number: int, value: Any, kind: str = "") -> bytes:
    if kind == "fixed64":
        return varint(number << 3 | 1) + struct.pack("<Q", value)
    if kind == "double":
        return varint(number << 3 | 1) + struct.pack("<d", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value % 2**64)
    raw = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(raw)) + raw


def packet(*parts: bytes, sequence: int = 1) -> bytes:
    return field(1, b"".join(parts) + field(10, sequence))


def track(uuid: int, name: str, parent: int = 0, counter: bool = False) -> bytes:
    inner = (
        field(1, uuid) + field(2, name) + (field(5, parent) if parent else b"") + (field(8, b"") if counter else b"")
    )
    return packet(field(60, inner))


def event(t: int, kind: int, uuid: int, *more: bytes, sequence: int = 1, extra: bytes = b"") -> bytes:
    return packet(field(8, t), field(11, field(9, kind) + field(11, uuid) + b"".join(more)), extra, sequence=sequence)


def save(folder: Path, *parts: bytes, name: str = "t.pftrace") -> Path:
    path = folder / name
    path.write_bytes(b"".join(parts))
    return path
