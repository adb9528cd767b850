"""Digest of what a capture holds: the same for the same rows, whatever their order, files, engine or encoding.

Each value becomes 64 bits (an integer itself, a DOUBLE its bits, a text the first 8 bytes of its BLAKE2b), xored with
the salt of its column (the first 8 bytes of the BLAKE2b of its name) and mixed by the finaliser of splitmix64; the
column's default becomes 0, so that a column appended by a later minor version changes nothing. A row is the mixed sum
of its values modulo 2**64; a table of a capture is its number of rows, and the sum and xor over rows. The digest is the
first 32 hex digits of the sha256 over the lines ``TABLE ROWS SUM XOR`` of its tables with rows, in order of the name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from wsformat.errors import MalformedInput
from wsformat.lake.layout import one_chunk

Words: TypeAlias = "np.ndarray[Any, np.dtype[np.uint64]]"
SKIPPED = "lake_"
DIGITS = 32
BLOCK = 16_384
ROW = np.uint64(0x9E3779B97F4A7C15)
UNKNOWN = np.uint64(2**64 - 1)
"""-1, the default of integers."""


def mixed(words: Words) -> Words:
    """The finaliser of splitmix64, value by value."""
    words = words ^ (words >> np.uint64(30))
    words *= np.uint64(0xBF58476D1CE4E5B9)
    words ^= words >> np.uint64(27)
    words *= np.uint64(0x94D049BB133111EB)
    words ^= words >> np.uint64(31)
    return words


def _word(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def column_words(name: str, column: pa.ChunkedArray) -> Callable[[slice], Words | np.uint64]:
    """64 bits a value: a function that gives those of a part of the column, or one for all when they are the same.

    Raises:
        MalformedInput: a type that the standard does not have.
    """
    salt = np.uint64(_word(name))
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind):
        coded = one_chunk(column if pa.types.is_dictionary(kind) else column.dictionary_encode())
        texts = coded.dictionary.to_pylist()
        words = np.array([_word(text) if text else 0 for text in texts] or [0], dtype=np.uint64)
        words = np.append(mixed(words ^ salt), mixed(np.array([~salt], dtype=np.uint64)))
        words[: len(texts)][[not text for text in texts]] = 0
        if len(texts) == 1 and not coded.null_count:
            return lambda part: words[0]
        codes = coded.indices.fill_null(len(words) - 1).to_numpy(zero_copy_only=False)
        return lambda part: words[codes[part]]
    if pa.types.is_boolean(kind):
        flags, true = column.to_numpy(zero_copy_only=False), mixed(np.array([salt]))
        return lambda part: np.where(flags[part], true, np.uint64(0))
    if pa.types.is_integer(kind):
        values = column.to_numpy(zero_copy_only=False)
        if len(values) and (first := int(values[0])) == values.min() == values.max():
            one = mixed(np.array([first], dtype=np.int64).view(np.uint64) ^ salt)[0] if first != -1 else np.uint64(0)
            return lambda part: one

        def integers(part: slice) -> Words:
            words = values[part].astype(np.int64).view(np.uint64)
            unknown = words == UNKNOWN
            words = mixed(words ^ salt)
            words[unknown] = 0
            return words

        return integers
    if pa.types.is_float64(kind):
        known = column.is_valid().to_numpy(zero_copy_only=False)
        bits = column.fill_null(0.0).to_numpy(zero_copy_only=False).astype(np.float64)
        bits = np.where(np.isnan(bits), np.nan, bits).view(np.uint64)
        return lambda part: np.where(known[part], mixed(bits[part] ^ salt), np.uint64(0))
    raise MalformedInput(f"column {name}: type {kind} is none of the standard's")


def row_words(data: pa.Table) -> Words:
    """64 bits a row, over all columns but capture_id and the lake's own."""
    total = np.full(data.num_rows, ROW, dtype=np.uint64)
    columns = [
        column_words(name, data.column(name))
        for name in data.column_names
        if name != "capture_id" and not name.startswith(SKIPPED)
    ]
    # Some thousand rows at a time stay in the processor's cache.
    for start in range(0, data.num_rows, BLOCK):
        part = slice(start, start + BLOCK)
        held = total[part]
        for words in columns:
            held += words(part)
        total[part] = mixed(held)
    return total


def starts_of(data: pa.Table) -> tuple[list[str], np.ndarray[Any, Any]]:
    """Captures of rows that lie together, in their order, and the row at which each begins."""
    ids = data.column("capture_id")
    coded = one_chunk(ids if pa.types.is_dictionary(ids.type) else ids.dictionary_encode())
    codes = coded.indices.to_numpy(zero_copy_only=False)
    starts = np.flatnonzero(np.append(True, codes[1:] != codes[:-1])) if len(codes) else np.zeros(0, dtype=np.int64)
    names = coded.dictionary.to_pylist()
    return [names[code] for code in codes[starts]], starts


def table_lines(name: str, data: pa.Table) -> dict[str, str]:
    """The line of one table for each capture; rows of a capture must lie together."""
    captures, starts = starts_of(data)
    if not captures:
        return {}
    words = row_words(data)
    rows = np.diff(starts, append=data.num_rows)
    sums = np.add.reduceat(words, starts)
    xors = np.bitwise_xor.reduceat(words, starts)
    found = zip(captures, rows, sums, xors, strict=True)
    return {capture: f"{name} {n} {s:016x} {x:016x}\n" for capture, n, s, x in found}


def digests(data: dict[str, pa.Table]) -> dict[str, str]:
    """Digest of every capture that the tables hold."""
    lines: dict[str, list[str]] = {}
    for name in sorted(data):
        for capture, line in table_lines(name, data[name]).items():
            lines.setdefault(capture, []).append(line)
    return {c: hashlib.sha256("".join(parts).encode()).hexdigest()[:DIGITS] for c, parts in lines.items()}
