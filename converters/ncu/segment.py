"""A file's blocks cut into tables and everything else: messages of ncu and the program's own output."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from wsformat.converters.ncu.headers import HEADER_START, SOURCE_KEYS, Head, classify, find_delimiter, split_line
from wsformat.errors import MalformedInput

Noise = Callable[[int, bytes], None]
"""Called with the line number (from 1) and the lines that belong to no table."""
Ints = npt.NDArray[np.int64]
QUOTE = 34
IS_DIGIT = np.zeros(256, bool)
IS_DIGIT[48:58] = True


@dataclass(slots=True)
class Rows:
    """Whole records of one table.

    Attributes:
        head: the table.
        data: the records' bytes.
        line: line number of the first one, from 1.
    """

    head: Head
    data: bytes
    line: int


def segment(blocks: Iterator[bytes], noise: Noise, where: str) -> Iterator[Rows]:
    """Cut blocks of lines into runs of records; the rest goes to ``noise``.

    Rows may go on after a message: only a new header ends a table.

    Raises:
        MalformedInput: a quoted cell is never closed.
    """
    head: Head | None = None
    preamble: dict[str, str] | None = None
    carry = b""
    tables = 0
    line = 1
    for block in blocks:
        data = carry + block if carry else block
        carry = b""
        pos = 0
        stops = np.flatnonzero(np.frombuffer(data, np.uint8) == 10)
        while pos < len(data):
            if head is not None:
                end, open_quote = run_end(data, pos, stops, head)
                if open_quote >= 0:
                    carry = data[open_quote:]
                    data = data[:open_quote]
                if end > pos:
                    yield Rows(head, data[pos:end], line)
                    line += data.count(b"\n", pos, end)
                    pos = end
                    continue
            elif preamble is None:
                match = HEADER_START.search(data, pos)
                stop = match.start() if match else len(data)
                if stop > pos:
                    noise(line, data[pos:stop])
                    line += data.count(b"\n", pos, stop)
                    pos = stop
                    continue
            if pos >= len(data):
                break
            stop = data.index(b"\n", pos) + 1
            text = data[pos:stop]
            found = classify(text) if HEADER_START.match(text) else None
            if found is not None:
                found.line, found.number = line, tables
                found.preamble = preamble or {}
                head, preamble, tables = found, None, tables + 1
            elif (pair := _preamble(text)) is not None:
                head = None
                preamble = {pair[0]: pair[1]} if pair[0] == "Kernel Name" else {**(preamble or {}), pair[0]: pair[1]}
            elif text.strip():
                noise(line, text)
                if preamble is not None:
                    preamble = None
            line += 1
            pos = stop
    if carry:
        raise MalformedInput(
            f"{where}, line {line}: a quoted cell is never closed",
            "The file was cut off while ncu wrote it; remove the last line to import the rest, or profile again.",
        )


def _preamble(text: bytes) -> tuple[str, str] | None:
    """Key and value of a line above a source page's header: Kernel Name, File Path and so on."""
    if not text.startswith((b'"Kernel Name"', b'"Function Name"', b'"File', b"Kernel Name", b"File")):
        return None
    cells = [cell for cell in split_line(text, find_delimiter(text)) if cell]
    return (cells[0], cells[1]) if len(cells) == 2 and cells[0] not in SOURCE_KEYS else None


def run_end(data: bytes, pos: int, stops: Ints, head: Head) -> tuple[int, int]:
    """End of the run of records that begins at ``pos``, and where an unclosed record at the block's end begins (or -1).

    A record begins with a quoted number or an empty cell, in an unquoted table with a digit or a delimiter;
    a line inside a quoted cell belongs to its record. ``stops`` are the places of all newlines of ``data``.
    """
    a = np.frombuffer(data, np.uint8)
    newlines = stops[np.searchsorted(stops, pos) :]
    newlines = newlines[newlines < len(data)]
    starts = np.concatenate(([pos], newlines[:-1] + 1))
    first = 0
    while True:
        stop = _first_other(a, starts, first, head)
        begin = _open_record(data, starts, newlines, stop)
        if begin < 0:
            return (int(starts[stop]) if stop < len(starts) else len(data)), -1
        # A record goes on over the end of its line: look for the line that closes it.
        close = stop
        while close < len(starts) and data.count(b'"', int(starts[begin]), int(newlines[close]) + 1) % 2:
            close += 1
        if close >= len(starts):
            return int(starts[begin]), int(starts[begin])
        first = close + 1
        if first >= len(starts):
            return len(data), -1


def _first_other(a: npt.NDArray[np.uint8], starts: Ints, first: int, head: Head) -> int:
    """The first line from ``first`` that begins no record; looks further and further ahead, as most runs are short."""
    ahead = 1024
    while first < len(starts):
        other = np.flatnonzero(~_begins_record(a, starts[first : first + ahead], head))
        if len(other):
            return first + int(other[0])
        first += ahead
        ahead *= 4
    return len(starts)


def _open_record(data: bytes, starts: Ints, newlines: Ints, stop: int) -> int:
    """Line number of the record before ``stop`` when its quotes are not closed there, else -1."""
    if stop == 0:
        return -1
    begin = stop - 1
    return begin if data.count(b'"', int(starts[begin]), int(newlines[begin])) % 2 else -1


def _begins_record(a: npt.NDArray[np.uint8], starts: Ints, head: Head) -> npt.NDArray[np.bool_]:
    first = a[starts]
    second = a[np.minimum(starts + 1, len(a) - 1)]
    if head.kind in ("plain", "summary"):
        blank = (first == 10) | (first == ord("="))
        return ~blank if head.kind == "plain" else (first == QUOTE) | IS_DIGIT[first]
    quoted: npt.NDArray[np.bool_] = (first == QUOTE) & (IS_DIGIT[second] | (second == QUOTE))
    if head.quoted:
        return quoted
    return quoted | IS_DIGIT[first] | (first == ord(head.delimiter))
