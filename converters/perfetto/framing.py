"""The packets of a Perfetto trace file: unpacked, framed, and what is compressed within taken out in its place."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa

from wsformat.converters.perfetto.wire import Array, fields, packets
from wsformat.errors import MalformedInput

P_ZLIB, P_ZSTD = 50, 133
"""Packets that hold packets."""


def read_packets(path: Path, lost: dict[str, int]) -> tuple[Array, Array, Array, str]:
    """Bytes, the begin and end of every packet in the order of the file, and why the file is not whole ('' when it is).

    Args:
        path: the file, packed with gzip or not.
        lost: takes counts of what could not be read.

    Raises:
        MalformedInput: not one packet.
    """
    raw, cut = _unpacked(path)
    begin, end, stop = packets(raw)
    if not len(begin):
        raise MalformedInput(f"{path}: broken at byte 0: no packet of a Perfetto trace")
    if stop < len(raw):
        cut = cut or f"no packet at byte {stop}, {len(raw) - stop} bytes were not read"
    data = np.frombuffer(raw, np.uint8)
    # Few packets are compressed, and those are long: only they are looked for and into.
    found, _ = fields(data, begin, end, {P_ZLIB, P_ZSTD})
    blobs = sorted(
        (int(owner), int(first), int(last), kind)
        for kind in (P_ZLIB, P_ZSTD)
        for owner, first, last in zip(found[kind].owner, found[kind].value, found[kind].end, strict=True)
    )
    if not blobs:
        return data, begin, end, cut
    parts, begins, ends, done, size = [raw], [], [], 0, len(raw)
    for owner, first, last, kind in blobs:
        inner = _decompressed(raw[first:last], kind)
        inside_begin, inside_end, whole = packets(inner)
        if not inner or whole < len(inner):
            lost["compressed packet that is damaged"] = lost.get("compressed packet that is damaged", 0) + 1
        begins += [begin[done:owner], inside_begin + size]
        ends += [end[done:owner], inside_end + size]
        parts.append(inner)
        done, size = owner + 1, size + len(inner)
    begins.append(begin[done:])
    ends.append(end[done:])
    return np.frombuffer(b"".join(parts), np.uint8), np.concatenate(begins), np.concatenate(ends), cut


def _decompressed(data: bytes, kind: int) -> bytes:
    """What a compressed packet holds, as far as it can be read."""
    if kind == P_ZSTD:
        try:
            with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
                return bytes(stream.read())
        except (OSError, pa.ArrowException):
            return b""
    for bits in (zlib.MAX_WBITS, -zlib.MAX_WBITS):
        unpack, found = zlib.decompressobj(bits), b""
        try:
            found = unpack.decompress(data)
        except zlib.error:
            continue
        return found
    return b""


def _unpacked(path: Path) -> tuple[bytes, str]:
    data = path.read_bytes()
    if not data.startswith(b"\x1f\x8b"):
        return data, ""
    try:
        return gzip.decompress(data), ""
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        unpack = zlib.decompressobj(wbits=31)
        try:
            return unpack.decompress(data), f"the gzip stream is cut off or damaged: {error}"
        except zlib.error as worse:
            raise MalformedInput(f"{path}: the gzip stream is damaged: {worse}") from worse
