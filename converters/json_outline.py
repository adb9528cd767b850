"""Where the values of a large JSON file lie: what is in a container is found without holding the container."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np

from wsformat.converters.json_members import (
    BLANKS,
    CLOSE,
    CLOSE_LIST,
    COLON,
    COMMA,
    DELTA,
    OPEN,
    OPEN_LIST,
    QUOTE,
    broken,
    structure,
)

CHUNK = 4 << 20
Value = tuple[int, int]
"""First byte of a value in the file, and the byte after it."""


def bytes_at(file: BinaryIO, place: Value) -> bytes:
    """The text of a value."""
    file.seek(place[0])
    return file.read(place[1] - place[0])


def members(file: BinaryIO, place: Value, where: str) -> Iterator[tuple[str, Value]]:
    """Names and values of an object, in the order of the file.

    Args:
        file: open for reading.
        place: the object.
        where: name of the file, for errors.

    Raises:
        MalformedInput: no object, or broken; names the byte.
    """
    marks = _marks(file, place, where, OPEN)
    begin, quotes, colon = place[0] + 1, [], -1
    for at, char in marks:
        if char == QUOTE and colon < 0:
            quotes.append(at)
        elif char == COLON:
            if len(quotes) != 2 or colon >= 0:
                raise broken(where, at, "a name in quotes was expected before ':'")
            colon = at
        elif char in (COMMA, CLOSE):
            if colon >= 0:
                name = bytes_at(file, (quotes[0] + 1, quotes[1])).decode("utf-8", "replace")
                yield name, _trimmed(file, (colon + 1, at))
            elif quotes or bytes_at(file, (begin, at)).strip(BLANKS):
                raise broken(where, at, "no member of an object: a name, ':' and a value are needed")
            begin, quotes, colon = at + 1, [], -1


def items(file: BinaryIO, place: Value, where: str) -> Iterator[Value]:
    """Elements of a list.

    Args:
        file: open for reading.
        place: the list.
        where: name of the file, for errors.

    Raises:
        MalformedInput: no list, or broken; names the byte.
    """
    begin = place[0] + 1
    for at, char in _marks(file, place, where, OPEN_LIST):
        if char in (COMMA, CLOSE_LIST):
            value = _trimmed(file, (begin, at))
            if value[1] > value[0]:
                yield value
            begin = at + 1


def _marks(file: BinaryIO, place: Value, where: str, kind: int) -> Iterator[tuple[int, int]]:
    """Quotes, colons, commas and the end of a container itself, not of what lies in it."""
    at, depth, rest = place[0], 0, b""
    while at < place[1]:
        file.seek(at + len(rest))
        part = file.read(min(CHUNK, place[1] - at - len(rest)))
        text = np.frombuffer(rest + part, np.uint8)
        found = structure(text)
        stop = len(text)
        keep: Any = np.ones(len(found.at), bool)
        if found.open_string:
            # The last string goes on in the next part.
            stop = int(found.at[np.flatnonzero(found.char == QUOTE)[-1]])
            keep = found.at < stop
        if not part and stop < len(text):
            break
        level = found.depth[keep] + depth
        own = (level == 1) | ((level == 0) & (DELTA[found.char[keep]] == -1))
        own &= (level == 0) | (DELTA[found.char[keep]] == 0) | (np.arange(len(own)) == 0) & (at == place[0])
        if at == place[0] and (not len(found.char) or found.char[0] != kind):
            raise broken(where, at, f"{chr(kind)!r} was expected")
        own[: int(at == place[0])] = False
        for position, char in zip(found.at[keep][own].tolist(), found.char[keep][own].tolist(), strict=True):
            yield at + position, char
            if char in (CLOSE, CLOSE_LIST):
                if char != kind + 2:
                    raise broken(where, at + position, "a bracket that closes another kind")
                return
        depth = int(level[-1]) if len(level) else depth
        rest = bytes(text[stop:])
        at += stop
    raise broken(where, place[1], "the file ends before its object does: it was cut off")


def _trimmed(file: BinaryIO, place: Value) -> Value:
    """A value without the blanks around it."""
    begin, end = place
    while begin < end and (text := bytes_at(file, (begin, min(begin + 64, end)))).strip(BLANKS) != text:
        begin += len(text) - len(text.lstrip(BLANKS))
        if text.strip(BLANKS):
            break
    while end > begin and (text := bytes_at(file, (max(begin, end - 64), end))).rstrip(BLANKS) != text:
        end -= len(text) - len(text.rstrip(BLANKS))
        if text.strip(BLANKS):
            break
    return begin, end
