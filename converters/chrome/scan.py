"""A Chrome trace file to columns: streamed, in bounded memory, numbers exact, the text of arguments untouched.

Accepts both forms (an object with traceEvents, or the bare array), gzip, a byte order mark, a missing end and commas
too many; what no reader could trust (brackets that cross, names without values) is refused with its byte.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc

from wsformat.bundle import Progress
from wsformat.converters import decimal_text
from wsformat.converters.chrome.columns import RARE, Arguments, Events, Store
from wsformat.converters.chrome.stream import CHUNK, Reader
from wsformat.converters.chrome.units import Times
from wsformat.converters.interner import Interner
from wsformat.converters.json_members import Members, broken, gather, split, structure
from wsformat.errors import MalformedInput

Array = np.ndarray[Any, Any]

KEY = re.compile(rb'[\s,]*"((?:[^"\\]|\\.)*)"\s*:\s*')
STRING = re.compile(rb'"(?:[^"\\]|\\.)*"')
SCALAR = re.compile(rb"[^,}\]\s]+")
MILLI = 10**6
"""Thousandths in billionths."""
MAX_HEADER_VALUE = 256 << 20
KINDS = b"XBEbneSFTpiIRCstfM"
"""Phases that are read."""


@dataclass
class Trace:
    """A file that was read.

    Attributes:
        events: see there, in the order of the file.
        lanes: (process, thread) of each lane, as numbers of ``keys`` (-1 absent).
        keys, names, ids: interners of process and thread ids, names and categories, ids.
        header: members of the file beside the events, as their JSON text.
        cut: why the file is not whole, '' when it is.
        losses: events and elements that were not read, by reason.
        times: what all times and durations show of their unit.
        first_lost: byte of the first event that was not read, for the reader's message.
    """

    events: Events
    lanes: list[tuple[int, int]]
    keys: Interner
    names: Interner
    ids: Interner
    header: dict[str, bytes]
    cut: str
    losses: dict[str, int]
    first_lost: dict[str, int]
    finer: int
    times: Times
    size: int


def scan(path: Path, progress: Progress | None = None) -> Trace:
    """Read a file.

    Raises:
        MalformedInput: no Chrome trace, or broken in a way that leaves nothing to trust; names the byte.
    """
    collect = _Collector()
    with closing(collect.store), path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        reader = Reader(path, file, packed, progress, path.stat().st_size)
        for text, members, offset in _parts(reader, collect):
            collect.add(text, members, offset)
        collect.cut = collect.cut or reader.cut
        return collect.trace(reader.offset + len(reader.buffer))


def _parts(reader: Reader, collect: _Collector) -> Iterator[tuple[Array, Members, int]]:
    while not reader.buffer.lstrip() and reader.more():
        pass
    if reader.buffer.startswith(b"\xef\xbb\xbf"):
        reader.skip(3)
    blanks = len(reader.buffer) - len(reader.buffer.lstrip())
    first = reader.buffer[blanks : blanks + 1]
    if first == b"[":
        reader.skip(blanks + 1)
        yield from _events(reader, collect)
        rest = reader.buffer.strip()
        if rest:
            collect.lose("text after the end", reader.offset)
        return
    if first != b"{":
        raise broken(str(reader.path), reader.offset + blanks, "'{' or '[' was expected")
    reader.skip(blanks + 1)
    seen = False
    while True:
        found = _key(reader)
        if found is None:
            break
        if found == b"traceEvents" and reader.buffer[:1] == b"[":
            seen = True
            reader.skip(1)
            yield from _events(reader, collect)
            continue
        collect.header[found.decode("utf-8", "replace")] = _value(reader)
    if not seen and not collect.cut:
        raise MalformedInput(
            f"{reader.path}: an object without a list traceEvents", "A Chrome trace has its events there."
        )
    if not reader.buffer.lstrip(b" \t\r\n,").startswith(b"}") and not collect.cut:
        collect.cut = "no '}' at the end"


def _key(reader: Reader) -> bytes | None:
    """The next member's name, the reader being left at its value; None at the end."""
    while True:
        match = KEY.match(reader.buffer)
        if match and match.end() < len(reader.buffer):
            reader.skip(match.end())
            return bytes(match.group(1))
        if reader.buffer.lstrip(b" \t\r\n,").startswith(b"}"):
            return None
        if not reader.more():
            rest = reader.buffer.strip(b" \t\r\n,")
            if rest and not rest.startswith(b'"'):
                raise broken(str(reader.path), reader.offset, "a name in quotes was expected")
            return None


def _value(reader: Reader) -> bytes:
    while True:
        first = reader.buffer[:1]
        stop = 0
        if first in (b"{", b"["):
            found = structure(np.frombuffer(reader.buffer, np.uint8))
            closed = np.flatnonzero(found.depth == 0)
            # The first quote, bracket or comma is the opening bracket, of depth 1.
            stop = int(found.at[closed[0]]) + 1 if closed.size else 0
        else:
            match = STRING.match(reader.buffer) if first == b'"' else SCALAR.match(reader.buffer)
            if match and (match.end() < len(reader.buffer) or reader.ended):
                stop = match.end()
        if stop:
            value: bytes = reader.buffer[:stop]
            reader.skip(stop)
            return value
        if len(reader.buffer) > MAX_HEADER_VALUE or not reader.more(max(CHUNK, len(reader.buffer))):
            if first in b'{["' and reader.ended:
                value = reader.buffer
                reader.skip(len(value))
                return value
            raise broken(str(reader.path), reader.offset, "a value was expected")


def _events(reader: Reader, collect: _Collector) -> Iterator[tuple[Array, Members, int]]:
    size = CHUNK
    while True:
        text = np.frombuffer(reader.buffer, np.uint8)
        members = split(text, str(reader.path), reader.offset) if text.size else None
        if members is not None and members.used:
            if members.strays:
                collect.lose("element that is no object", reader.offset, members.strays)
            yield text, members, reader.offset
            reader.skip(members.used)
            size = CHUNK
            if members.ended:
                return
            if len(reader.buffer) > CHUNK:
                continue
        if not reader.more(size):
            rest = reader.buffer.strip(b" \t\r\n,")
            collect.cut = reader.cut or (
                f"ends within an event, which begins at byte {reader.offset}" if rest else "no ']' after the events"
            )
            reader.skip(len(reader.buffer))
            return
        size = max(CHUNK, len(reader.buffer))


@dataclass
class _Collector:
    keys: Interner = field(default_factory=Interner)
    names: Interner = field(default_factory=Interner)
    ids: Interner = field(default_factory=Interner)
    lanes: dict[int, int] = field(default_factory=dict)
    header: dict[str, bytes] = field(default_factory=dict)
    losses: dict[str, int] = field(default_factory=dict)
    first_lost: dict[str, int] = field(default_factory=dict)
    cut: str = ""
    store: Store = field(default_factory=Store)
    times: Times = field(default_factory=Times)
    args: Arguments = field(default_factory=Arguments)
    rows: int = 0
    finer: int = 0

    def lose(self, why: str, byte: int, count: int = 1) -> None:
        """Note what was not read."""
        if count:
            self.losses[why] = self.losses.get(why, 0) + count
            self.first_lost.setdefault(why, byte)

    def add(self, text: Array, members: Members, offset: int) -> None:
        """Take the events of a part."""
        if not len(members.begin):
            return
        at = {key: members.of(text, key) for key in KEYS}
        begin, end = at[b"ph"]
        short = (begin >= 0) & (end - begin == 3) & (text[np.maximum(begin, 0)] == ord('"'))
        phase = np.where(short, text[np.maximum(begin, 0) + 1], 0)
        read = np.isin(phase, np.frombuffer(KINDS, np.uint8))
        empty = begin < 0
        for code in np.unique(phase[~read & ~empty]).tolist():
            mine = ~read & ~empty & (phase == code)
            label = f"event of phase {chr(code)!r}" if 32 < code < 127 else "event of an unknown phase"
            self.lose(label, offset + int(members.begin[mine][0]), int(mine.sum()))
        if empty.any():
            self.lose("event without a phase", offset + int(members.begin[empty][0]), int(empty.sum()))
        when, length = decimal_text.parse(text, *at[b"ts"]), decimal_text.parse(text, *at[b"dur"])
        timeless = read & when.bad & (phase != ord("M"))
        if timeless.any():
            self.lose(
                "event without a time that is a number", offset + int(members.begin[timeless][0]), int(timeless.sum())
            )
        bad_length = read & length.bad & (at[b"dur"][0] >= 0)
        if bad_length.any():
            self.lose("duration that is no number", offset + int(members.begin[bad_length][0]), int(bad_length.sum()))
        self._round(when, length)
        keep = np.flatnonzero(read & ~timeless)
        pick = {key: (b[keep], e[keep]) for key, (b, e) in at.items()}
        first = text[np.maximum(pick[b"bp"][0], 0) + 1]
        flow = sum(
            ((pick[key][0] >= 0) & (text[np.maximum(pick[key][0], 0)] == ord("t"))) * weight
            for key, weight in ((b"flow_in", 1), (b"flow_out", 2))
        )
        has_args = np.flatnonzero(pick[b"args"][0] >= 0)
        kind = phase[keep]
        own_id = self._ids(text, pick)
        rare = {
            "id": own_id,
            "id_scope": _is_local(text, pick),
            "scope": self.names.codes(text, *pick[b"scope"]),
            "bind": self.ids.codes(text, *pick[b"bind_id"]),
            "flow": flow,
            "next_binding": (pick[b"bp"][0] < 0) | (first != ord("e")),
        }
        # Most spans have none of these; arrows and asynchronous ends always count.
        some = np.flatnonzero(
            (kind != ord("X")) | np.any([rare[name] != value for name, value in RARE.items()], axis=0)
        )
        whole = keep[kind == ord("X")]
        part = {
            "phase": kind,
            "lane": self._lane(text, pick),
            "name": self.names.codes(text, *pick[b"name"]).astype(np.int32),
            "category": self.names.codes(text, *pick[b"cat"]).astype(np.int32),
            "t": when.whole[keep],
            "t_milli": when.milli[keep].astype(np.int16),
            "untimed": (self.rows + np.flatnonzero(when.bad[keep])).astype(np.int32),
            "dur": length.whole[whole],
            "dur_milli": length.milli[whole].astype(np.int16),
            "has_dur": ~length.bad[whole],
            "rare_row": (self.rows + some).astype(np.int32),
            "args_row": (self.rows + has_args).astype(np.int32),
            **{name: values[some].astype(np.int32) for name, values in rare.items()},
        }
        self.args.keep(gather(text, pick[b"args"][0][has_args], pick[b"args"][1][has_args]))
        self.rows += len(keep)
        self.store.add(part)
        self.times.add(part["t"], part["t_milli"])
        self.times.add(part["dur"], part["dur_milli"])

    def _round(self, when: decimal_text.Decimals, length: decimal_text.Decimals) -> None:
        """Where there are more than three decimals the end is rounded, not the length: order and nesting stay."""
        rough = {row for found in (when, length) for row, value in found.fine.items() if value != round(value, 3)}
        rest = (when.nano % MILLI != 0) | (length.nano % MILLI != 0)
        rest[[*when.fine, *length.fine]] = False
        self.finer += int(rest.sum()) + len(rough)
        rows = np.flatnonzero(rest & ~when.bad & ~length.bad)
        if rows.size:
            stop, nano = when.floor[rows] + length.floor[rows], when.nano[rows] + length.nano[rows]
            whole, milli = decimal_text.to_milli(stop + nano // decimal_text.NANO, nano % decimal_text.NANO)
            milli = milli - when.milli[rows]
            length.whole[rows] = whole - when.whole[rows] - (milli < 0)
            length.milli[rows] = milli % 1000
        for row in sorted({*when.fine, *length.fine}):
            if when.bad[row] or length.bad[row]:
                continue
            exact = decimal_text.rounded(decimal_text.exact(when, row) + decimal_text.exact(length, row))
            start = int(when.whole[row]) * 1000 + int(when.milli[row])
            length.whole[row], length.milli[row] = divmod(exact - start, 1000)

    def _lane(self, text: Array, at: dict[bytes, tuple[Array, Array]]) -> Array:
        process, thread = self.keys.codes(text, *at[b"pid"]), self.keys.codes(text, *at[b"tid"])
        both, inverse = np.unique(((process + 1) << 32) | (thread + 1), return_inverse=True)
        first = np.full(len(both), len(process))
        np.minimum.at(first, inverse, np.arange(len(process)))
        numbers = np.empty(len(both), np.int32)
        for place in np.argsort(first).tolist():
            numbers[place] = self.lanes.setdefault(int(both[place]), len(self.lanes))
        result: Array = numbers[inverse]
        return result

    def _ids(self, text: Array, at: dict[bytes, tuple[Array, Array]]) -> Array:
        own, other = self.ids.codes(text, *at[b"id"]), self.ids.codes(text, *at[b"id2"])
        result: Array = np.where(own >= 0, own, other).astype(np.int32)
        return result

    def trace(self, size: int) -> Trace:
        """Everything as one."""
        lanes = [((both >> 32) - 1, (both & 0xFFFFFFFF) - 1) for both in self.lanes]
        return Trace(
            self.store.events(self.args), lanes, self.keys, self.names, self.ids, self.header, self.cut, self.losses,
            self.first_lost, self.finer, self.times, size,
        )  # fmt: skip


KEYS = (
    b"ph", b"ts", b"dur", b"pid", b"tid", b"name", b"cat", b"id", b"id2", b"scope", b"bp", b"bind_id", b"flow_in",
    b"flow_out", b"args",
)  # fmt: skip


def _is_local(text: Array, at: dict[bytes, tuple[Array, Array]]) -> Array:
    """Whether an id counts within its process only: one given as id2 that is not {"global": ..}."""
    own, (begin, end) = at[b"id"][0], at[b"id2"]
    local = (own < 0) & (begin >= 0)
    if local.any():
        rows = np.flatnonzero(local)
        found: Any = pc.match_substring(gather(text, begin[rows], end[rows]), '"global"')
        local[rows] = ~found.to_numpy(zero_copy_only=False)
    result: Array = local
    return result
