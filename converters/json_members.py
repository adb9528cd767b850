"""JSON arrays of objects, cut into members without building objects: one vectorised pass, exact, with byte positions.

A trace of a gigabyte is one JSON array of some ten million small objects. Numbers stay the text that the file has
(a float would lose nanoseconds), and what is broken is named by its byte.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from wsformat.errors import MalformedInput

Array = np.ndarray[Any, Any]

QUOTE, BACKSLASH, COMMA, COLON, OPEN, CLOSE, OPEN_LIST, CLOSE_LIST = b'"\\,:{}[]'
BLANKS = b" \t\r\n"


def _table(characters: bytes) -> Array:
    table = np.zeros(256, bool)
    table[list(characters)] = True
    return table


STRUCTURAL = _table(b'"\\,:{}[]')
BLANK = _table(BLANKS)
BETWEEN = _table(BLANKS + b",")
DELTA = np.zeros(256, np.int8)
DELTA[[OPEN, OPEN_LIST]] = 1
DELTA[[CLOSE, CLOSE_LIST]] = -1


@dataclass(frozen=True)
class Structure:
    """Quotes, and brackets, commas and colons outside strings.

    Attributes:
        at: byte positions, ascending.
        char: the bytes there.
        depth: nesting depth after each.
        open_string: whether the text ends inside a string.
    """

    at: Array
    char: Array
    depth: Array
    open_string: bool


def structure(text: Array) -> Structure:
    """Find the structure of JSON text that begins outside a string.

    Args:
        text: bytes, uint8.
    """
    at = np.flatnonzero(STRUCTURAL[text])
    char = text[at]
    slashes = at[char == BACKSLASH]
    if slashes.size:
        keep = char != BACKSLASH
        quotes = np.flatnonzero(char == QUOTE)
        # A quote is escaped when an odd number of backslashes stands right before it.
        first = np.concatenate([[True], np.diff(slashes) != 1])
        run_start = np.maximum.accumulate(np.where(first, slashes, 0))
        place = np.searchsorted(slashes, at[quotes] - 1)
        found = (place < slashes.size) & (slashes[np.minimum(place, slashes.size - 1)] == at[quotes] - 1)
        length = at[quotes] - run_start[np.minimum(place, slashes.size - 1)]
        keep[quotes[found & (length % 2 == 1)]] = False
        at, char = at[keep], char[keep]
    is_quote = char == QUOTE
    inside = np.cumsum(is_quote) & 1
    keep = is_quote | (inside == 0)
    at, char = at[keep], char[keep]
    depth = np.cumsum(DELTA[char], dtype=np.int32)
    return Structure(at, char, depth, bool(inside.size and inside[-1]))


@dataclass(frozen=True)
class Members:
    """The members of a run of objects.

    Attributes:
        begin, end: first byte of each object and the byte after it.
        owner: number of the object of each member.
        key_begin, key_end: its key, without quotes and as escaped in the file.
        value_begin, value_end: its value, without blanks around it.
        used: bytes that are done with.
        ended: whether the closing bracket of the array was met (it is among the used bytes).
        strays: elements that are no objects, such as null.
    """

    begin: Array
    end: Array
    owner: Array
    key_begin: Array
    key_end: Array
    value_begin: Array
    value_end: Array
    used: int
    ended: bool
    strays: int

    @cached_property
    def _by_length(self) -> dict[int, Array]:
        """Members by the length of their key."""
        length = self.key_end - self.key_begin
        return {size: np.flatnonzero(length == size) for size in np.unique(length).tolist()}

    def one(self, text: Array, key: bytes) -> tuple[int, int]:
        """Begin and end of the value of a key in the first object, (-1, -1) where it is missing."""
        begin, end = self.of(text, key)
        return (int(begin[0]), int(end[0])) if len(begin) else (-1, -1)

    def of(self, text: Array, key: bytes) -> tuple[Array, Array]:
        """Begin and end of the value of a key in each object, (-1, -1) where it is missing."""
        begin = np.full(len(self.begin), -1, np.int64)
        end = begin.copy()
        hit = self._by_length.get(len(key), np.zeros(0, np.int64))
        for offset, byte in enumerate(key):
            hit = hit[text[self.key_begin[hit] + offset] == byte]
        begin[self.owner[hit]] = self.value_begin[hit]
        end[self.owner[hit]] = self.value_end[hit]
        return begin, end


def split(text: Array, where: str, offset: int = 0) -> Members:
    """Cut the elements of an array: ``text`` begins after its '[' or after an element.

    Args:
        text: bytes, uint8; may end anywhere.
        where: name of the file, for errors.
        offset: position of the text in the file, for errors.

    Raises:
        MalformedInput: no JSON, at byte N.
    """
    found = structure(text)
    at, char, depth = found.at, found.char, found.depth
    below = np.flatnonzero(depth < 0)
    ended = bool(below.size)
    if ended:
        stop = int(below[0])
        if char[stop] != CLOSE_LIST:
            raise broken(where, offset + int(at[stop]), "'}' where ']' or an element was expected")
        used = int(at[stop]) + 1
        at, char, depth = at[:stop], char[:stop], depth[:stop]
    opens = np.flatnonzero((depth == 1) & (DELTA[char] == 1))
    closes = np.flatnonzero((depth == 0) & (DELTA[char] == -1))
    if ended and len(opens) != len(closes):
        raise broken(where, offset + int(at[opens[len(closes)]]), "an element that does not end")
    opens = opens[: len(closes)]
    crossed = np.flatnonzero(char[closes] - char[opens] != 2)  # '{' + 2 is '}', '[' + 2 is ']'
    if crossed.size:
        raise broken(where, offset + int(at[closes[crossed[0]]]), "a bracket that closes another kind")
    if not ended:
        used = int(at[closes[-1]]) + 1 if closes.size else 0
    begin, end = at[opens], at[closes] + 1
    strays = _strays(text, begin, end, used - ended)
    lists = np.flatnonzero(char[opens] == OPEN_LIST)
    if lists.size:
        strays += lists.size
        inner = char[opens] == OPEN
        opens, closes, begin, end = opens[inner], closes[inner], begin[inner], end[inner]
    return _members(text, at, char, depth, (opens, closes, begin, end), used, ended, strays, where, offset)


def _members(
    text: Array, at: Array, char: Array, depth: Array, objects: Any, used: int, ended: bool, strays: int, where: str,
    offset: int,
) -> Members:  # fmt: skip
    opens, closes, begin, end = objects
    mark = ((depth == 1) & ((char == COLON) | (char == COMMA))) | ((depth == 0) & (char == CLOSE))
    mark[opens] = True
    if closes.size:
        mark[closes[-1] + 1 :] = False
    else:
        mark[:] = False
    marks = np.flatnonzero(mark)
    kind = char[marks]
    after = np.append(kind[1:], OPEN)
    # After '{' or ',' comes a key with its ':' (or the end of an empty object), after a ':' its value's end.
    empty = (kind == OPEN) & (after == CLOSE)
    # A comma too many before the end is forgiven, as before the end of a list.
    spare = np.flatnonzero((kind == COMMA) & (after == CLOSE))
    begin_gap, end_gap = trim(text, at[marks[spare]] + 1, at[marks[np.minimum(spare + 1, len(marks) - 1)]])
    empty[spare[begin_gap >= end_gap]] = True
    wrong = np.flatnonzero(
        (((kind == OPEN) | (kind == COMMA)) & (after != COLON) & ~empty)
        | ((kind == COLON) & (after != COMMA) & (after != CLOSE))
    )
    if wrong.size:
        place = marks[min(int(wrong[0]) + 1, len(marks) - 1)]
        raise broken(where, offset + int(at[place]), "no member of an object: a name, ':' and a value are needed")
    colon = marks[kind == COLON]
    if colon.size:
        odd = np.flatnonzero((char[colon - 1] != QUOTE) | (char[np.maximum(colon - 2, 0)] != QUOTE))
        if odd.size:
            raise broken(where, offset + int(at[colon[odd[0]]]), "a name in quotes was expected before ':'")
        _only_blanks(text, at[colon - 3] + 1, at[colon - 2], where, offset)
        _only_blanks(text, at[colon - 1] + 1, at[colon], where, offset)
    key_begin, key_end = at[colon - 2] + 1, at[colon - 1]
    value_begin, value_end = at[colon] + 1, at[marks[np.flatnonzero(kind == COLON) + 1]]
    value_begin, value_end = trim(text, value_begin, value_end)
    void = np.flatnonzero(value_begin >= value_end)
    if void.size:
        raise broken(where, offset + int(value_begin[void[0]]), "a value was expected")
    owner = np.searchsorted(begin, key_begin, side="right") - 1
    return Members(begin, end, owner, key_begin, key_end, value_begin, value_end, used, ended, int(strays))


def _only_blanks(text: Array, begin: Array, end: Array, where: str, offset: int) -> None:
    """Nothing stands around a name but blanks."""
    filled = np.flatnonzero(end > begin)
    if filled.size:
        place = indices(begin[filled], end[filled])
        odd = np.flatnonzero(~BLANK[text[place]])
        if odd.size:
            raise broken(where, offset + int(place[odd[0]]), "a name in quotes and ':' were expected, nothing else")


def elements(text: Array, begin: int, end: int, where: str, offset: int = 0) -> tuple[Array, Members]:
    """The objects of a list that is the value text[begin:end], with the text that their positions refer to."""
    inner = text[begin + 1 : end] if begin >= 0 else text[:0]
    if begin >= 0 and text[begin] != OPEN_LIST:
        raise broken(where, offset + begin, "a list was expected")
    return inner, split(inner, where, offset + begin + 1)


def trim(text: Array, begin: Array, end: Array) -> tuple[Array, Array]:
    """Slices without the blanks at their ends."""
    begin, end = begin.copy(), end.copy()
    last = max(len(text) - 1, 0)
    todo = np.arange(len(begin))
    while todo.size:
        todo = todo[(begin[todo] < end[todo]) & BLANK[text[np.minimum(begin[todo], last)]]]
        begin[todo] += 1
    todo = np.arange(len(begin))
    while todo.size:
        todo = todo[(begin[todo] < end[todo]) & BLANK[text[end[todo] - 1]]]
        end[todo] -= 1
    return begin, end


def _strays(text: Array, begin: Array, end: Array, stop: int) -> int:
    """Elements between the objects: anything but blanks and commas."""
    gap_begin, gap_end = np.concatenate([[0], end]), np.append(begin, max(stop, int(end[-1]) if end.size else 0))
    between = text[indices(gap_begin, gap_end)]
    other = ~BETWEEN[between]
    if not other.any():
        return 0
    cut = np.concatenate([[True], (between[1:] == COMMA)])
    return len(np.unique(np.cumsum(cut)[other]))


def indices(begin: Array, end: Array) -> Array:
    """Positions of all bytes of the slices, one slice after the other."""
    length = np.maximum(end - begin, 0)
    total = int(length.sum())
    before = np.cumsum(length) - length
    return np.repeat(begin - before, length) + np.arange(total)


def gather(text: Array, begin: Array, end: Array) -> pa.Array:
    """The slices as Arrow binary values."""
    offsets = np.zeros(len(begin) + 1, np.int64)
    np.cumsum(np.maximum(end - begin, 0), out=offsets[1:])
    data = np.ascontiguousarray(text[indices(begin, end)])
    return pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(begin), [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )


def broken(where: str, byte: int, why: str) -> MalformedInput:
    """The error for text that is no JSON."""
    return MalformedInput(f"{where}: broken at byte {byte}: {why}", "The file is damaged; write it again.")
