"""Tracks and interned names of a Perfetto trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from wsformat.converters.perfetto.wire import Array, Field, fields
from wsformat.converters.recording import Recording

T_UUID, T_NAME, T_PROCESS, T_THREAD, T_PARENT, T_COUNTER, T_STATIC_NAME = 1, 2, 3, 4, 5, 8, 10
KINDS = {"categories": 1, "names": 2, "annotations": 3, "texts": 29}
COUNTER_UNITS = {1: "ns", 2: "count", 3: "byte"}
COUNTER_TYPES = {1: "thread_time", 2: "thread_instruction_count"}
CLEARED = 1
P_SEQUENCE, P_INTERNED, P_FLAGS, P_CLEARED, P_DEFAULTS = 10, 12, 13, 41, 59
D_EVENT, D_TRACK, D_CLOCK = 11, 11, 58


class Tracks:
    """Descriptors of tracks.

    Args:
        data: bytes of the trace.
        descriptors: the field of packets that holds them.
    """

    def __init__(self, data: Array, descriptors: Field) -> None:
        found, _ = fields(
            data, descriptors.value.astype(np.int64), descriptors.end,
            {T_UUID, T_NAME, T_PROCESS, T_THREAD, T_PARENT, T_COUNTER, T_STATIC_NAME},
        )  # fmt: skip
        count = len(descriptors.owner)
        uuids = found[T_UUID].last(count).tolist()
        parents = found[T_PARENT].last(count).tolist()
        texts = [_strings(data, found[number], count) for number in (T_NAME, T_STATIC_NAME)]
        process = _inner(data, found[T_PROCESS], count, {1: "pid", 6: "name"})
        thread = _inner(data, found[T_THREAD], count, {1: "pid", 2: "tid", 5: "name"})
        counter = _inner(
            data, found[T_COUNTER], count, {1: "type", 3: "unit", 4: "multiplier", 5: "incremental", 6: "unit_name"}
        )
        counters = set(found[T_COUNTER].owner.tolist())
        self.known: dict[int, dict[str, Any]] = {}
        for n, uuid in enumerate(uuids):
            said = thread[n] or process[n]
            row = self.known.setdefault(uuid, {"name": "", "parent": 0, "pid": -1, "tid": -1, "counter": None})
            row["name"] = texts[0][n] or texts[1][n] or str(said.get("name", "")) or row["name"]
            row["parent"] = parents[n] or row["parent"]
            if n in counters:
                row["counter"] = counter[n]
                row["name"] = row["name"] or COUNTER_TYPES.get(counter[n].get("type", 0), "")
            for key in ("pid", "tid"):
                row[key] = said.get(key, row[key])

    def lanes(self, recording: Recording, uuid: Array) -> Array:
        """Lane of each event by its track, made in the order of first use."""
        wanted, first, inverse = np.unique(uuid, return_index=True, return_inverse=True)
        number = np.empty(len(wanted), np.int64)
        for place in np.argsort(first).tolist():
            number[place] = len(recording.lanes)
            recording.lanes.append(self._lane(int(wanted[place])))
        result: Array = number[inverse.reshape(-1)] if len(wanted) else np.zeros(0, np.int64)
        return result

    def units(self) -> dict[int, tuple[str, int, bool]]:
        """Unit, factor and whether values are steps, of each counter track by uuid."""
        return {
            uuid: (
                str(row["counter"].get("unit_name") or COUNTER_UNITS.get(row["counter"].get("unit", 0), "")),
                max(int(row["counter"].get("multiplier", 1)), 1),
                bool(row["counter"].get("incremental", 0)),
            )
            for uuid, row in self.known.items()
            if row["counter"] is not None
        }

    def add_threads(self, data: Array, threads: Field) -> Array:
        """Tracks of the threads that older writers describe once a sequence; gives the uuid of each description."""
        count = len(threads.owner)
        said = _inner(data, replace(threads, owner=np.arange(count)), count, {1: "pid", 2: "tid", 5: "name"})
        uuids = []
        for row in said:
            pid, tid = int(row.get("pid", -1)), int(row.get("tid", -1))
            uuid = 1 << 63 | (pid & 0x7FFFFFFF) << 32 | (tid & 0xFFFFFFFF)
            known = self.known.setdefault(
                uuid, {"name": f"thread {tid}", "parent": 0, "pid": pid, "tid": tid, "counter": None}
            )
            known["name"] = str(row.get("name", "")) or known["name"]
            uuids.append(uuid)
        return np.array(uuids, np.uint64)

    def _lane(self, uuid: int) -> dict[str, Any]:
        row = self.known.get(uuid, {"name": f"track {uuid}", "parent": 0, "pid": -1, "tid": -1})
        above: list[str] = []
        parent, seen = row["parent"], {uuid}
        while parent in self.known and parent not in seen:
            seen.add(parent)
            above.append(str(self.known[parent]["name"]) or f"track {parent}")
            parent = self.known[parent]["parent"]
        return {
            "kind": "other",
            "clock": 0,
            "name": row["name"] or f"track {uuid}",
            "process": " > ".join(reversed(above)),
            "process_id": row["pid"] if 0 <= row["pid"] < 2**31 else -1,
            "thread_id": row["tid"] if 0 <= row["tid"] < 2**63 else -1,
        }


def _strings(data: Array, field: Field, count: int) -> list[str]:
    result = [""] * count
    for owner, begin, end in zip(field.owner.tolist(), field.value.tolist(), field.end.tolist(), strict=True):
        result[owner] = bytes(data[int(begin) : end]).decode("utf-8", "replace")
    return result


def _inner(data: Array, field: Field, count: int, names: Mapping[int, str]) -> list[dict[str, Any]]:
    """Integers and texts of a message within each message."""
    result: list[dict[str, Any]] = [{} for _ in range(count)]
    found, _ = fields(data, field.value.astype(np.int64), field.end, set(names))
    for number, name in names.items():
        part = found[number]
        for owner, value, end in zip(part.owner.tolist(), part.value.tolist(), part.end.tolist(), strict=True):
            text = bytes(data[int(value) : end]).decode("utf-8", "replace") if "name" in name else int(value)
            result[int(field.owner[owner])][name] = text
    return result


class Interned:
    """What a sequence of packets said once: interned names and defaults, until its state is cleared.

    Args:
        data: bytes of the trace.
        packet: fields of the packets.
        count: number of packets.
    """

    def __init__(self, data: Array, packet: Mapping[int, Field], count: int) -> None:
        sequence = packet[P_SEQUENCE].last(count)
        cleared = (packet[P_FLAGS].last(count) & np.uint64(CLEARED)).astype(bool) | (packet[P_CLEARED].last(count) > 0)
        code = np.unique(sequence, return_inverse=True)[1].reshape(-1)
        sort = np.argsort(code, kind="stable")
        total = np.cumsum(cleared[sort])
        starts = np.flatnonzero(np.concatenate([[True], code[sort][1:] != code[sort][:-1]])) if count else total[:0]
        epoch = np.empty(count, np.int64)
        size = np.diff(np.append(starts, count))
        epoch[sort] = total - np.repeat(total[starts] - cleared[sort][starts], size)
        self.state = code.astype(np.int64) << 32 | epoch
        self.entries: dict[str, dict[tuple[int, int], str]] = {kind: {} for kind in KINDS}
        owner = packet[P_INTERNED]
        found, _ = fields(data, owner.value.astype(np.int64), owner.end, set(KINDS.values()))
        for kind, number in KINDS.items():
            part = found[number]
            inner, _ = fields(data, part.value.astype(np.int64), part.end, {1, 2})
            iids, texts = inner[1].last(len(part.owner)).tolist(), _strings(data, inner[2], len(part.owner))
            states = self.state[owner.owner[part.owner]].tolist()
            self.entries[kind] = dict(zip(zip(states, iids, strict=True), texts, strict=True))
        self.sequence = code.astype(np.int64)
        self.default_track, self.default_clock = self._defaults(data, packet[P_DEFAULTS], count)
        self.codes: dict[tuple[str, str], int] = {}

    def _defaults(self, data: Array, field: Field, count: int) -> tuple[Array, Array]:
        """Track and clock of each packet's event that names none: what its sequence said last before it."""
        outer, _ = fields(data, field.value.astype(np.int64), field.end, {D_EVENT, D_CLOCK})
        inner, _ = fields(data, outer[D_EVENT].value.astype(np.int64), outer[D_EVENT].end, {D_TRACK})
        track, clock = np.zeros(len(field.owner), np.uint64), outer[D_CLOCK].last(len(field.owner))
        track[outer[D_EVENT].owner[inner[D_TRACK].owner]] = inner[D_TRACK].value
        found = self.latest(field.owner)
        none = np.zeros(1, np.uint64)
        return np.append(track, none)[found], np.append(clock, none)[found]

    def latest(self, packets: Array) -> Array:
        """For every packet which of these came last before it or with it, in its sequence and state; -1 none."""
        count = len(self.state)
        said = np.full(count, -1, np.int64)
        said[packets] = np.arange(len(packets))
        sort = np.argsort(self.state, kind="stable")
        place = np.maximum.accumulate(np.where(said[sort] >= 0, np.arange(count), -1)) if count else sort
        first = np.concatenate([[True], self.state[sort][1:] != self.state[sort][:-1]]) if count else np.zeros(0, bool)
        start = np.maximum.accumulate(np.where(first, np.arange(count), 0)) if count else place
        found = np.full(count, -1, np.int64)
        found[sort] = np.where(place >= start, said[sort][np.maximum(place, 0)], -1)
        return found

    def find(self, recording: Recording, kind: str, packet: Array, iid: Array) -> Array:
        """Numbers of names in the recording's pool; -1 for one that is not interned."""
        if not len(iid):
            return np.zeros(0, np.int64)
        both = np.stack([self.state[packet], iid.astype(np.int64)])
        wanted, inverse = np.unique(both, axis=1, return_inverse=True)
        numbers = []
        for state, number in wanted.T.tolist():
            text = self.entries[kind].get((state, number))
            if text is None:
                numbers.append(-1)
                continue
            if (kind, text) not in self.codes:
                self.codes[kind, text] = len(recording.names)
                recording.names.append(text or "(no name)")
            numbers.append(self.codes[kind, text])
        result: Array = np.array(numbers, np.int64)[inverse.reshape(-1)]
        return result
