"""A file's blocks cut into tables and everything else: messages of ncu and the program's own output."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

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
        plain: every record is one line.
    """

    head: Head
    data: bytes
    line: int
    plain: bool = True


def segment(blocks: Iterator[bytes], noise: Noise, where: str) -> Iterator[Rows]:
    """Cut blocks of lines into runs of records; the rest goes to ``noise``.

    Rows may go on after a message: only a new header ends a table. A new table begins with an empty run.

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
                end, open_quote, simple = run_end(data, pos, stops, head)
                if open_quote >= 0:
                    carry = data[open_quote:]
                    data = data[:open_quote]
                if end > pos:
                    yield Rows(head, data[pos:end], line, simple)
                    line += int(np.searchsorted(stops, end) - np.searchsorted(stops, pos))
                    pos = end
                    continue
            elif preamble is None:
                match = HEADER_START.search(data, pos)
                stop = match.start() if match else len(data)
                if stop > pos:
                    noise(line, data[pos:stop])
                    line += int(np.searchsorted(stops, stop) - np.searchsorted(stops, pos))
                    pos = stop
                    continue
            if pos >= len(data):
                break
            stop = data.index(b"\n", pos) + 1
            text = data[pos:stop]
            found = _header(text)
            if found is not None:
                found.line, found.number = line, tables
                found.preamble = preamble or {}
                head, preamble, tables = found, None, tables + 1
                yield Rows(head, b"", line)
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


def _header(text: bytes) -> Head | None:
    """The table that a line opens; headers of a source page's blocks are alike, so the last one is remembered."""
    if not HEADER_START.match(text):
        return None
    known = _classified(text)
    return None if known is None else replace(known, preamble={}, state={})


@lru_cache(maxsize=8)
def _classified(text: bytes) -> Head | None:
    return classify(text)


def _preamble(text: bytes) -> tuple[str, str] | None:
    """Key and value of a line above a source page's header: Kernel Name, File Path and so on."""
    if not text.startswith((b'"Kernel Name"', b'"Function Name"', b'"File', b"Kernel Name", b"File")):
        return None
    cells = [cell for cell in split_line(text, find_delimiter(text)) if cell]
    return (cells[0], cells[1]) if len(cells) == 2 and cells[0] not in SOURCE_KEYS else None


def run_end(data: bytes, pos: int, stops: Ints, head: Head) -> tuple[int, int, bool]:
    """End of the run of records that begins at ``pos``, where an unclosed record at the block's end begins (or -1),
    and whether every record is one line.

    A record begins with a quoted number (that of a unit row with an empty cell), in an unquoted table with a digit or
    a delimiter. A line inside a quoted cell never does: a quote in a cell is doubled. It belongs to its record.

    Args:
        data: whole lines.
        pos: start of a line.
        stops: places of all newlines.
        head: the table.
    """
    a = np.frombuffer(data, np.uint8)
    newlines = stops[np.searchsorted(stops, pos) :]
    newlines = newlines[newlines < len(data)]
    starts = np.concatenate(([pos], newlines[:-1] + 1))
    stop = _first_other(a, starts, head)
    if stop == 0 or data.count(b'"', int(starts[stop - 1]), int(newlines[stop - 1])) % 2 == 0:
        return (int(starts[stop]) if stop < len(starts) else len(data)), -1, True
    # Some record goes on over the end of its line: count quotes from the start of the run.
    quotes, inside = _inside(a[pos:], starts - pos)
    other = np.flatnonzero(~inside & ~_begins_record(a, starts, head))
    if len(other):
        return int(starts[other[0]]), -1, False
    if np.sum(quotes) % 2 == 0:
        return len(data), -1, False
    begin = int(starts[np.flatnonzero(~inside)[-1]])
    return begin, begin, False


def _inside(a: npt.NDArray[np.uint8], starts: Ints) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Quotes in each line, and which lines begin inside a quoted cell; the first line begins a record."""
    quotes = np.add.reduceat((a == QUOTE).view(np.uint8), starts, dtype=np.int64)
    inside: npt.NDArray[np.bool_] = np.concatenate(([0], np.cumsum(quotes)[:-1])) % 2 == 1
    return quotes, inside


def record_starts(data: bytes) -> Ints:
    """Where each record of a run begins."""
    a = np.frombuffer(data, np.uint8)
    starts = np.concatenate(([0], np.flatnonzero(a == 10)[:-1] + 1))
    found: Ints = starts[~_inside(a, starts)[1]]
    return found


def _first_other(a: npt.NDArray[np.uint8], starts: Ints, head: Head) -> int:
    """The first line that begins no record; looks further and further ahead, as many runs are short."""
    first, ahead = 0, 1024
    while first < len(starts):
        other = np.flatnonzero(~_begins_record(a, starts[first : first + ahead], head))
        if len(other):
            return first + int(other[0])
        first += ahead
        ahead *= 4
    return len(starts)


def _begins_record(a: npt.NDArray[np.uint8], starts: Ints, head: Head) -> npt.NDArray[np.bool_]:
    first = a[starts]
    second = a[np.minimum(starts + 1, len(a) - 1)]
    mask: npt.NDArray[np.bool_]
    if head.kind == "plain":
        mask = (first != 10) & (first != ord("="))
    elif head.kind == "summary":
        mask = (first == QUOTE) | IS_DIGIT[first]
    else:
        mask = (first == QUOTE) & IS_DIGIT[second]
        if head.kind == "wide":
            third = a[np.minimum(starts + 2, len(a) - 1)]
            mask |= (first == QUOTE) & (second == QUOTE) & (third == ord(head.delimiter))
        if not head.quoted:
            mask |= IS_DIGIT[first] | (first == ord(head.delimiter))
    return mask
