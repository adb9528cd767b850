"""Columns of whole numbers as few bytes of text, for a page that carries its own data."""

from __future__ import annotations

import base64
import zlib

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def pack(columns: list[Ints]) -> tuple[str, list[int]]:
    """Columns as text: each number folded to be unsigned (0, -1, 1, -2 become 0, 1, 2, 3), its bytes set apart, the
    lowest of all numbers first, then the next, zlib over everything, base64.

    Neighbouring times differ by hundreds of ticks, so the higher bytes are nearly all zero and the lower ones noise:
    apart, the former cost next to nothing.

    Args:
        columns: int64 arrays of any lengths.

    Returns:
        The text, and the number of bytes that each column has for a number (0 for one that is all zero).
    """
    parts: list[bytes] = []
    widths: list[int] = []
    for column in columns:
        folded = ((column << 1) ^ (column >> 63)).astype(np.uint64)
        most = int(folded.max()) if len(folded) else 0
        width = (most.bit_length() + 7) // 8
        widths.append(width)
        parts += [((folded >> np.uint64(8 * n)) & np.uint64(255)).astype(np.uint8).tobytes() for n in range(width)]
    return base64.b64encode(zlib.compress(b"".join(parts), 6)).decode("ascii"), widths


def unpack(text: str, widths: list[int], lengths: list[int]) -> list[Ints]:
    """The columns that :func:`pack` packed; the page's script does the same."""
    data = np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype=np.uint8)
    found: list[Ints] = []
    at = 0
    for width, length in zip(widths, lengths, strict=True):
        folded = np.zeros(length, dtype=np.uint64)
        for n in range(width):
            folded |= data[at : at + length].astype(np.uint64) << np.uint64(8 * n)
            at += length
        found.append((folded >> np.uint64(1)).astype(np.int64) ^ -(folded & np.uint64(1)).astype(np.int64))
    return found


def bytes_text(values: npt.NDArray[np.uint8]) -> str:
    """Bytes as text: zlib, base64."""
    return base64.b64encode(zlib.compress(values.tobytes(), 6)).decode("ascii")
