"""An IKET file to a recording. Lists of ranges are cut, not parsed: 64-bit nanoseconds never meet a float."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wsformat.bundle import Progress
from wsformat.converters import decimal_text
from wsformat.converters.iket.payloads import internal_events
from wsformat.converters.interner import Interner
from wsformat.converters.json_members import Members, broken, elements, gather, split
from wsformat.converters.json_outline import Value, bytes_at, items, members
from wsformat.converters.recording import Array, Instants, Recording, Row, Spans
from wsformat.errors import MalformedInput

RANGE_TYPES = {1: "start_end", 2: "push_pop", 3: "multi_event"}
LAUNCH_SIZES = {f"{place}_{axis.lower()}": f"{place}Dim{axis}" for place in ("grid", "block") for axis in "XYZ"}


@dataclass
class State:
    """A file on its way to a recording.

    Attributes:
        strings: names by index.
        locations: rows {ctaId, smId, warpId, ...} by index.
        lanes: number of the lane of each (launch, location).
        bad: what did not resolve, with counts.
    """

    recording: Recording
    strings: list[str]
    locations: list[Row]
    where: str
    lanes: dict[tuple[int, int], int] = field(default_factory=dict)
    bad: Counter[str] = field(default_factory=Counter)
    pool: dict[str, int] = field(default_factory=dict)
    spans: list[Spans] = field(default_factory=list)
    instants: list[Instants] = field(default_factory=list)
    count: int = 0

    def name(self, text: str) -> int:
        """Number of a name."""
        if text not in self.pool:
            self.pool[text] = len(self.recording.names)
            self.recording.names.append(text)
        return self.pool[text]

    def named(self, index: Array, kind: str) -> Array:
        """Numbers of the names of ranges or markers, by index into the table of strings."""
        wanted, inverse = np.unique(index, return_inverse=True)
        numbers = []
        for value, uses in zip(wanted.tolist(), np.bincount(inverse.reshape(-1)).tolist(), strict=True):
            known = 0 <= value < len(self.strings)
            if not known:
                self.bad[f"{kind} whose name is not in the table"] += uses
            numbers.append(self.name(self.strings[value] if known else f"{kind}_{value}"))
        result: Array = np.array(numbers, np.int64)[inverse.reshape(-1)] if numbers else np.zeros(0, np.int64)
        return result

    def lane(self, launch: int, index: Array, kind: str) -> Array:
        """Lanes of locations of a launch."""
        wanted, inverse = np.unique(index, return_inverse=True)
        numbers = []
        for value, uses in zip(wanted.tolist(), np.bincount(inverse.reshape(-1)).tolist(), strict=True):
            if not 0 <= value < len(self.locations):
                self.bad[f"{kind} whose location is not in the table"] += uses
            numbers.append(self.lane_of(launch, value))
        result: Array = np.array(numbers, np.int64)[inverse.reshape(-1)] if numbers else np.zeros(0, np.int64)
        return result

    def lane_of(self, launch: int, location: int) -> int:
        """The lane of one location of a launch, made when it is met first."""
        key = (launch, location)
        if key not in self.lanes:
            self.lanes[key] = len(self.recording.lanes)
            place = self.locations[location] if 0 <= location < len(self.locations) else {}
            grid = self.recording.launches[launch]
            cta = _linear(place.get("ctaId"), grid)
            if place and cta < 0:
                self.bad["location whose CTA lies outside the grid"] += 1
            warp, sm = _whole(place.get("warpId")), _whole(place.get("smId"))
            self.recording.lanes.append(
                {
                    "launch": launch, "cta": cta, "warp": warp, "sm": sm, "kind": "warp", "clock": 0,
                    "name": f"CTA {cta} warp {warp}" if place else f"location {location}",
                }
            )  # fmt: skip
            for unit in ("gpcId", "tpcId"):
                if _whole(place.get(unit)) >= 0:
                    row = ("lanes", self.lanes[key], unit, "int", str(place[unit]))
                    self.recording.attributes.append(row)
        return self.lanes[key]


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31 else -1


def _linear(cta: Any, launch: Row) -> int:
    """x + gx*(y + gy*z), -1 where the grid does not hold it."""
    x, y, z = launch.get("grid_x", -1), launch.get("grid_y", -1), launch.get("grid_z", -1)
    if not (isinstance(cta, list) and len(cta) == 3 and all(_whole(part) >= 0 for part in cta)):
        return -1
    if min(x, y, z) < 1 or cta[0] >= x or cta[1] >= y or cta[2] >= z:
        return -1
    return int(cta[0] + x * (cta[1] + y * cta[2]))


def decode(path: Path, progress: Progress | None) -> tuple[Recording, str]:
    """Read a file; the recording, and the version that the file states ('' when it does not).

    Raises:
        MalformedInput: broken or incomplete; names the byte or the part.
    """
    where = str(path)
    with _plain(path) as file:
        size = file.seek(0, os.SEEK_END)
        head = _head(file)
        begin = len(head) - len(head.lstrip())
        if head[begin : begin + 1] != b"{":
            raise broken(where, begin, "'{' was expected")
        # Tables may stand behind the launches, so what there is is found first, and read one launch at a time.
        whole = dict(members(file, (begin, size), where))
        state = State(
            Recording(),
            [str(name) for name in _json(file, whole, "stringTable", list, where)],
            [place if isinstance(place, dict) else {} for place in _json(file, whole, "locationTable", list, where)],
            where,
        )
        meta = _json(file, whole, "meta", dict, where, {})
        if "launches" not in whole:
            raise MalformedInput(f"{where}: no list launches")
        launches = [("", whole["launches"])]
        if "graphLaunches" in whole and bytes_at(file, whole["graphLaunches"])[:1] == b"{":
            launches += members(file, whole["graphLaunches"], where)
        for key, place in launches:
            for low, high in items(file, place, where):
                text = np.frombuffer(bytes_at(file, (low, high)), np.uint8)
                if text[0] != ord("{"):
                    state.bad["launch that is no object"] += 1
                    continue
                _launch(state, text, low, key)
                if progress is not None:
                    progress(path.name, high, size)
    _finish(state)
    return state.recording, str(meta.get("version", ""))


@contextmanager
def _plain(path: Path) -> Iterator[BinaryIO]:
    """The file, unpacked: a packed one through a temporary file."""
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    if not packed:
        with path.open("rb") as file:
            yield file
        return
    with TemporaryFile(prefix="wsformat-") as whole:
        try:
            with gzip.open(path) as source:
                shutil.copyfileobj(source, whole, 1 << 20)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise MalformedInput(f"{path}: the gzip stream is cut off or damaged: {error}") from error
        yield whole


def _head(file: BinaryIO) -> bytes:
    file.seek(0)
    return file.read(4096)


def _json(file: BinaryIO, whole: dict[str, Value], key: str, kind: type, where: str, default: Any = None) -> Any:
    if key not in whole:
        if default is not None:
            return default
        raise MalformedInput(f"{where}: no {key}, so indices cannot be resolved", "Decode the trace again.")
    try:
        value = json.loads(bytes_at(file, whole[key]), strict=False)
    except ValueError as error:
        raise broken(where, whole[key][0], f"{key}: {error}") from error
    if not isinstance(value, kind):
        raise broken(where, whole[key][0], f"{key}: a {kind.__name__} was expected")
    return value


def _launch(state: State, text: Array, offset: int, graph: str) -> None:
    recording, number = state.recording, len(state.recording.launches)
    members = split(text, state.where, offset)
    values = {}
    for key in (b"kernelName", b"contextId", b"gridId", b"enabledCluster", b"singleClusterActive"):
        begin, end = members.one(text, key)
        values[key] = json.loads(bytes(text[begin:end]), strict=False) if begin >= 0 else None
    sizes = {}
    for column, wanted in LAUNCH_SIZES.items():
        begin, end = members.one(text, wanted.encode())
        raw = bytes(text[begin:end])
        sizes[column] = int(raw) if begin >= 0 and raw.isdigit() and len(raw) < 10 else -1
    native = "" if values[b"gridId"] is None else str(values[b"gridId"])
    recording.launches.append(
        {
            "kernel": str(values[b"kernelName"] or ""),
            "kind": "traced",
            "tool": "iket",
            "native_id": f"{graph}/{native}" if graph else native,
            "context": "" if values[b"contextId"] is None else str(values[b"contextId"]),
            "status": "ok",
            "clock": 0,
            **sizes,
        }
    )
    if values[b"singleClusterActive"]:
        recording.attributes.append(
            ("launches", number, "enabledCluster", "json", json.dumps(values[b"enabledCluster"]))
        )
    first = len(recording.lanes)
    _lifetimes(state, text, members, number, offset)
    _ranges(state, text, members, number, offset)
    _markers(state, text, members, number, offset)
    for lane in recording.lanes[first:]:
        if values[b"singleClusterActive"]:
            lane["completeness"] = "sampled"
    starts = [lane["t_start"] for lane in recording.lanes[first:] if lane.get("t_start", -1) >= 0]
    stops = [lane["t_end"] for lane in recording.lanes[first:] if lane.get("t_end", -1) >= 0]
    if starts and stops:
        recording.launches[number] |= {"t_start": min(starts), "duration_ns": max(stops) - min(starts)}


def _integers(text: Array, at: tuple[Array, Array]) -> tuple[Array, Array]:
    """Integers, -1 where there is none, and where that is so."""
    numbers = decimal_text.parse(text, *at)
    bad = numbers.bad | (numbers.milli != 0) | (numbers.whole < 0)
    return np.where(bad, -1, numbers.whole), bad


def _lifetimes(state: State, text: Array, members: Members, launch: int, offset: int) -> None:
    part, found = elements(text, *members.one(text, b"warpLifetimes"), state.where, offset)
    start, stop, place = (_integers(part, found.of(part, key))[0] for key in (b"startTs", b"endTs", b"locIdx"))
    lanes = state.lane(launch, place, "lifetime")
    for lane, begin, end in zip(lanes.tolist(), start.tolist(), stop.tolist(), strict=True):
        row = state.recording.lanes[lane]
        if "t_start" in row:
            state.bad["second lifetime of a warp"] += 1
        elif 0 <= begin <= end:
            row |= {"t_start": begin, "t_end": end}
        else:
            state.bad["lifetime that ends before it begins, or without times"] += 1


def _ranges(state: State, text: Array, members: Members, launch: int, offset: int) -> None:
    begin, end = members.one(text, b"ranges")
    part, found = elements(text, begin, end, state.where, offset)
    t0, lost = _integers(part, found.of(part, b"startTs"))
    t1, open_end = _integers(part, found.of(part, b"endTs"))
    state.bad["range without a begin"] += int(lost.sum())
    keep = np.flatnonzero(~lost)
    places = _pairs(part, *found.of(part, b"warpLocIdxs"))[keep]
    name = state.named(_integers(part, found.of(part, b"rangeNameIdx"))[0][keep], "range")
    back = (t1 < t0) & ~open_end
    state.bad["range that ends before it begins"] += int(back[keep].sum())
    state.bad["range without an end"] += int(open_end[keep].sum())
    kind = _integers(part, found.of(part, b"rangeType"))[0][keep]
    known = np.array([state.name(RANGE_TYPES[k]) if k in RANGE_TYPES else -1 for k in range(4)], np.int64)
    lane = state.lane(launch, places[:, 0], "range")
    end_lane, moves = lane.copy(), places[:, 0] != places[:, 1]
    end_lane[moves] = state.lane(launch, places[moves, 1], "range end")
    spans = Spans(
        lane=lane,
        end_lane=end_lane,
        name=name,
        category=known[np.where((kind < 0) | (kind > 3), 0, kind)],
        t0=t0[keep],
        t1=np.where((back | open_end)[keep], t0[keep], t1[keep]),
        complete=~(back | open_end)[keep],
    )
    internal_events(state, part, found, keep, spans, offset + begin + 1)
    state.spans.append(spans)
    state.count += len(spans)


def _pairs(text: Array, begin: Array, end: Array) -> Array:
    """Lists of one or two indices, [n, 2]; -1 where there is none."""
    interner = Interner()
    codes = interner.codes(text, begin, end)
    rows = []
    for raw in interner.known:
        try:
            values = [v if isinstance(v, int) else -1 for v in json.loads(raw)]
        except (ValueError, TypeError):
            values = []
        rows.append([values[0], values[-1]] if values else [-1, -1])
    table = np.array([*rows, [-1, -1]], np.int64)
    result: Array = table[codes]
    return result


def _markers(state: State, text: Array, members: Members, launch: int, offset: int) -> None:
    part, found = elements(text, *members.one(text, b"markers"), state.where, offset)
    t, lost = _integers(part, found.of(part, b"timestamp"))
    state.bad["marker without a time"] += int(lost.sum())
    keep = np.flatnonzero(~lost)
    payload = pa.repeat("", keep.size)
    begin, end = (value[keep] for value in found.of(part, b"payloadVal"))
    if (begin >= 0).any():
        values = gather(part, np.maximum(begin, 0), np.where(begin >= 0, end, 0))
        payload = pc.if_else(pa.array(begin >= 0), values.cast(pa.string()), pa.scalar(""))
    name = state.named(_integers(part, found.of(part, b"markerNameIdx"))[0][keep], "marker")
    for code in np.unique(name[begin >= 0]).tolist():
        state.recording.payload_types[code] = "text"
    place = _integers(part, found.of(part, b"locIdx"))[0][keep]
    state.instants.append(Instants(state.lane(launch, place, "marker"), name, t[keep], payload))


def _finish(state: State) -> None:
    recording = state.recording
    for kind, parts in (("spans", state.spans), ("instants", state.instants)):
        if parts:
            columns = {
                name: np.concatenate([getattr(part, name) for part in parts])
                for name in type(parts[0]).__dataclass_fields__
                if name != "payload"
            }
            if kind == "spans":
                recording.spans = Spans(**columns)
            else:
                recording.instants = Instants(**columns, payload=pa.concat_arrays([p.payload for p in state.instants]))
    spans, instants = recording.spans, recording.instants
    times = np.concatenate([spans.t0, spans.t1, instants.t])
    step = int(np.gcd.reduce(times - times.min())) or -1 if times.size > 1 else -1
    recording.clocks = [{"scope": "device", "unit": "ns", "step_ticks": step, "width_bits": 64, "assumption": ""}]
    _check_lifetimes(state)
    bad = {why: count for why, count in state.bad.items() if count}
    recording.findings += [("not resolved", f"{count} x {why}.") for why, count in bad.items()]
    crossing = int((spans.lane != spans.end_lane).sum())
    if crossing:
        recording.findings.append(("ranges", f"{crossing} ranges end on another warp than they began on."))
    if not (len(spans) or len(instants)):
        recording.findings.append(("empty", "The trace holds no range and no marker."))
    recording.facts = {"stamp_sink": "tool"}
    recording.losses = {
        "records_expected": -1,
        "records_kept": len(spans) + len(instants),
        "records_lost": bad.get("range without a begin", 0) + bad.get("marker without a time", 0),
        "orphaned": bad.get("range without a begin", 0) + bad.get("range without an end", 0),
        "unclosed": bad.get("range without an end", 0),
        "out_of_order": bad.get("range that ends before it begins", 0),
        "wraps_undone": 0,
        "overhead_corrected": 0,
    }
    if bad:
        recording.losses["ignored"] = "; ".join(f"{count} x {why}" for why, count in bad.items())


def _check_lifetimes(state: State) -> None:
    """A lifetime that does not hold the records of its warp proves nothing; it is left out."""
    recording, spans = state.recording, state.recording.spans
    lanes = len(recording.lanes)
    first, last = np.full(lanes, np.iinfo(np.int64).max), np.full(lanes, -1)
    for lane, t in (
        (spans.lane, spans.t0),
        (spans.end_lane, spans.t1),
        (recording.instants.lane, recording.instants.t),
    ):
        np.minimum.at(first, lane, t)
        np.maximum.at(last, lane, t)
    for number, lane in enumerate(recording.lanes):
        if lane.get("t_start", -1) >= 0 and (first[number] < lane["t_start"] or last[number] > lane["t_end"]):
            state.bad["lifetime that does not hold its warp's records"] += 1
            lane["t_start"] = lane["t_end"] = -1
