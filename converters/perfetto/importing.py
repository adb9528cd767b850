"""A Perfetto trace to a recording: track events (slices, instants, counters, flows) of any writer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from wsformat.bundle import Bundle
from wsformat.converters import import_mapping
from wsformat.converters.import_options import facts
from wsformat.converters.json_members import gather
from wsformat.converters.pairing import arrows, pair
from wsformat.converters.perfetto.annotations import add_annotations
from wsformat.converters.perfetto.clocks import MONOTONIC, Clocks, key_of
from wsformat.converters.perfetto.counters import Counters
from wsformat.converters.perfetto.framing import read_packets
from wsformat.converters.perfetto.legacy import BEGIN, COMPLETE, COUNTER, END, INSTANT, Legacy, older_times
from wsformat.converters.perfetto.tracks import Interned, Tracks
from wsformat.converters.perfetto.wire import Array, Field, fields
from wsformat.converters.recording import Edges, Instants, Recording, Spans
from wsformat.converters.recording_bundle import Source, to_bundle
from wsformat.errors import BadRequest
from wsformat.provenance import bytes_sha256

P_SNAPSHOT = 6
P_TIME, P_SEQUENCE, P_EVENT, P_INTERNED, P_FLAGS, P_CLEARED, P_THREAD, P_CLOCK, P_DEFAULTS, P_TRACK = (
    8, 10, 11, 12, 13, 41, 44, 58, 59, 60,
)  # fmt: skip
WANTED_PACKET = {
    P_SNAPSHOT, P_TIME, P_SEQUENCE, P_EVENT, P_INTERNED, P_FLAGS, P_CLEARED, P_THREAD, P_CLOCK, P_DEFAULTS, P_TRACK,
}  # fmt: skip
E_DELTA, E_CATEGORY_IID, E_ANNOTATION, E_LEGACY, E_TYPE, E_NAME_IID, E_TRACK = 1, 3, 4, 6, 9, 10, 11
E_EXTRA, E_ABSOLUTE, E_CATEGORY, E_NAME = 12, 16, 22, 23
E_COUNTER, E_DOUBLE, E_EXTRA_DOUBLE, E_FLOW, E_FLOW_END = 30, 44, 46, 47, 48
OLD_FLOW, OLD_FLOW_END = 36, 42
WANTED_EVENT = {
    E_DELTA, E_CATEGORY_IID, E_ANNOTATION, E_LEGACY, E_TYPE, E_NAME_IID, E_TRACK, E_EXTRA, E_ABSOLUTE, E_CATEGORY,
    E_NAME, E_COUNTER, E_DOUBLE, E_EXTRA_DOUBLE, E_FLOW, E_FLOW_END, OLD_FLOW, OLD_FLOW_END,
}  # fmt: skip


def read_trace(paths: Sequence[Path], options: Mapping[str, Any]) -> Bundle:
    """See :func:`wsformat.converters.perfetto.read`."""
    if len(paths) != 1:
        raise BadRequest(f"{len(paths)} traces: one at a time", "Import each, then `wsformat merge` the bundles.")
    said = facts(options)
    mapping = import_mapping.load(options.get("mapping"))
    recording = decode(paths[0])
    source = Source(list(paths), [bytes_sha256(paths[0])], "perfetto", "perfetto", "packets of a trace", {})
    bundle: Bundle = to_bundle(recording, source, mapping, said)
    return bundle


def decode(path: Path) -> Recording:
    """Read a file.

    Raises:
        MalformedInput: no Perfetto trace, or nothing of it can be read; names the byte.
    """
    lost: dict[str, int] = {}
    data, begin, end, cut = read_packets(path, lost)
    packet, broken = fields(data, begin, end, WANTED_PACKET)
    recording = Recording()
    lost["packet that is no protobuf"] = int(broken.sum())
    tracks = Tracks(data, packet[P_TRACK])
    interned = Interned(data, packet, len(begin))
    where = packet[P_EVENT].owner
    event, bad = fields(data, packet[P_EVENT].value.astype(np.int64), packet[P_EVENT].end, WANTED_EVENT)
    count = len(where)
    lost["event that is no protobuf"] = int(bad.sum())
    legacy = Legacy(data, event[E_LEGACY], count)
    kind = legacy.kinds(event[E_TYPE].last(count).astype(np.int64), lost)
    threads = tracks.add_threads(data, packet[P_THREAD])
    t, known, apart = _times(data, packet, event, interned, where, lost)
    lost["event without a time"] = int((~known & ~bad).sum())
    lost["event of an unknown type"] = int(((kind == 0) & known & ~bad).sum())
    lost["event of a time before zero or beyond 63 bits"] = int((known & (t < 0) & ~bad).sum())
    use = np.flatnonzero((kind > 0) & known & ~bad & (t >= 0))
    lost["value of an extra counter"] = len(event[E_EXTRA].owner) + len(event[E_EXTRA_DOUBLE].owner)
    said = np.append(threads, np.zeros(1, np.uint64))[interned.latest(packet[P_THREAD].owner)[where]]
    default = np.where(interned.default_track[where] > 0, interned.default_track[where], said)
    uuid = np.where(event[E_TRACK].first_place(count) >= 0, event[E_TRACK].last(count), default)
    lane = tracks.lanes(recording, uuid)
    name = _texts(recording, data, event, E_NAME, E_NAME_IID, interned, "names", where, count)
    by_legacy = np.flatnonzero((name < 0) & (legacy.name_iid > 0))
    name[by_legacy] = interned.find(recording, "names", where[by_legacy], legacy.name_iid[by_legacy])
    category = _texts(recording, data, event, E_CATEGORY, E_CATEGORY_IID, interned, "categories", where, count)
    unresolved = int(((event[E_NAME_IID].first_place(count) >= 0) & (name < 0)).sum())
    state = (recording, lane, name, category, t, kind)
    span_of = _slices(*state, use, legacy, lost)
    units = Counters(tracks.units(), uuid, interned.state[where])
    instant_of = _points(*state, use, event, units, count)
    _flows(recording, lane, t, event, use, span_of, count)
    add_annotations(recording, data, event[E_ANNOTATION], interned, where, span_of, instant_of, lost)
    _finish(recording, lost, cut, unresolved, apart)
    return recording


def _times(
    data: Array, packet: Mapping[int, Field], event: Mapping[int, Field], interned: Interned, where: Array,
    lost: dict[str, int],
) -> tuple[Array, Array, list[int]]:  # fmt: skip
    """Times of events on the main clock, whether they have one, and clocks that no snapshot ties to it."""
    count = len(interned.state)
    raw, has = packet[P_TIME].last(count, 0), packet[P_TIME].first_place(count) >= 0
    late = raw >= np.uint64(1 << 63)
    own = packet[P_CLOCK].last(count)
    clocks = Clocks(data, packet[P_SNAPSHOT], interned.sequence)
    clock = np.where(own > 0, own, interned.default_clock).astype(np.int64)
    clock[clock == 0] = clocks.main
    key = key_of(clock, interned.sequence)
    ns = clocks.absolute(key, np.where(late, 0, raw).astype(np.int64), has & ~late, interned.sequence)
    t = clocks.to_main(key, ns)[where]
    t[late[where]] = -1
    used = key[where[has[where]]]
    apart = sorted({one & 0xFFFFFFFF for one in np.unique(used).tolist() if one not in clocks.known})
    if len(apart) == 1 and len(np.unique(used)) == 1:
        apart = []  # the only clock there is
    known = has[where]
    older, found = older_times(data, packet[P_THREAD], event[E_DELTA], event[E_ABSOLUTE], interned, where)
    old = ~known & found
    t[old] = clocks.to_main(np.full(int(old.sum()), MONOTONIC), older[old])
    return t, known | found, apart


def _texts(
    recording: Recording, data: Array, event: Mapping[int, Field], direct: int, iid: int, interned: Interned, kind: str,
    packet: Array, count: int,
) -> Array:  # fmt: skip
    """Numbers of names, given with the event or interned; -1 where there is none."""
    result = np.full(count, -1, np.int64)
    by_iid = event[iid].first_place(count)
    has = np.flatnonzero(by_iid >= 0)
    result[has] = interned.find(recording, kind, packet[has], event[iid].value[by_iid[has]])
    found = event[direct].first_place(count)
    has = np.flatnonzero(found >= 0)
    if has.size:
        begin = event[direct].value[found[has]].astype(np.int64)
        packed = gather(data, begin, event[direct].end[found[has]]).dictionary_encode()
        codes = [add_name(recording, raw.decode("utf-8", "replace")) for raw in packed.dictionary.to_pylist()]
        result[has] = np.array(codes, np.int64)[packed.indices.to_numpy()]
    return result


def add_name(recording: Recording, text: str) -> int:
    """A name in the pool of the recording."""
    recording.names.append(text or "(no name)")
    return len(recording.names) - 1


def _slices(
    recording: Recording, lane: Array, name: Array, category: Array, t: Array, kind: Array, use: Array,
    legacy: Legacy, lost: dict[str, int],
) -> Array:  # fmt: skip
    """Add slices; gives the span of each begin and end event, -1 for others."""
    rows = use[np.isin(kind[use], (BEGIN, END))]
    order = np.empty(rows.size, np.int64)
    order[np.lexsort((np.arange(rows.size), t[rows]))] = np.arange(rows.size)
    partner, orphan = pair(lane[rows] << 32 | legacy.stack[rows], order, kind[rows] == END)
    begin = np.flatnonzero(kind[rows] == BEGIN)
    other = partner[begin]
    whole = use[kind[use] == COMPLETE]
    first = np.concatenate([rows[begin], whole])
    stop = rows[np.maximum(other, 0)] if rows.size else rows
    stop = np.concatenate([stop, whole])
    closed = np.concatenate([other >= 0, np.ones(len(whole), bool)])
    missing = add_name(recording, "(no name)")
    recording.spans = Spans(
        lane=lane[first], end_lane=lane[first], name=np.where(name[first] < 0, missing, name[first]),
        category=category[first], t0=t[first],
        t1=np.where(closed, t[stop] + legacy.length[stop], t[first]), complete=closed,
    )  # fmt: skip
    span_of = np.full(len(lane), -1, np.int64)
    span_of[first] = np.arange(len(first))
    span_of[stop[closed]] = np.flatnonzero(closed)
    lost["end without a begin"] = int(orphan.sum())
    lost["unclosed"] = int((other < 0).sum())
    return span_of


def _points(
    recording: Recording, lane: Array, name: Array, category: Array, t: Array, kind: Array, use: Array,
    event: Mapping[int, Field], counters: Counters, count: int,
) -> Array:  # fmt: skip
    """Add instants and counters; gives the place of each instant, -1 for other events."""
    rows = use[np.isin(kind[use], (INSTANT, COUNTER))]
    place_of = np.full(count, -1, np.int64)
    if not rows.size:
        return place_of
    is_counter = kind[rows] == COUNTER
    missing = add_name(recording, "(no name)")
    names = np.where(name[rows] < 0, missing, name[rows])
    # A counter is named by its track.
    tracks, inverse = np.unique(lane[rows[is_counter]], return_inverse=True)
    codes = np.array([add_name(recording, str(recording.lanes[n]["name"])) for n in tracks.tolist()], np.int64)
    if tracks.size:
        names[is_counter] = codes[inverse.reshape(-1)]
    payload = np.full(len(rows), "", dtype=object)
    values, whole = counters.values(event[E_COUNTER], event[E_DOUBLE], rows, t, count)
    for hit, texts, label in ((whole & is_counter, values[0], "int"), (~whole & is_counter, values[1], "float")):
        payload[hit] = pa.array(texts[hit]).cast(pa.string()).to_numpy(zero_copy_only=False)
        for code in np.unique(names[hit]).tolist():
            recording.payload_types[code] = "float" if recording.payload_types.get(code, label) != label else label
    for code, place in zip(*np.unique(names[is_counter], return_index=True), strict=True):
        unit = counters.unit(int(rows[np.flatnonzero(is_counter)[place]]))
        if unit:
            recording.payload_units[int(code)] = unit
    recording.instants = Instants(lane[rows], names, t[rows], pa.array(payload, pa.string()))
    place_of[rows[~is_counter]] = np.flatnonzero(~is_counter)
    return place_of


def _flows(
    recording: Recording, lane: Array, t: Array, event: Mapping[int, Field], use: Array, span_of: Array, count: int
) -> None:
    ids, rows, kinds = [], [], []
    usable = np.zeros(count, bool)
    usable[use] = True
    for number, role in ((E_FLOW, 1), (OLD_FLOW, 1), (E_FLOW_END, 2), (OLD_FLOW_END, 2)):
        mine = usable[event[number].owner]
        ids.append(event[number].value[mine].astype(np.uint64))
        rows.append(event[number].owner[mine])
        kinds.append(np.full(int(mine.sum()), role))
    flow, row, kind = np.concatenate(ids), np.concatenate(rows).astype(np.int64), np.concatenate(kinds)
    if not flow.size:
        return
    order = np.empty(row.size, np.int64)
    order[np.lexsort((row, t[row]))] = np.arange(row.size)
    key = np.unique(flow, return_inverse=True)[1].reshape(-1)
    sort = np.lexsort((order, key))
    first = sort[np.concatenate([[True], key[sort][1:] != key[sort][:-1]])]
    kind[first[kind[first] == 1]] = 0
    tail, head = arrows(key, order, kind)
    label = add_name(recording, "flow")

    def at(values: Array, entry: Array) -> Array:
        return np.where(entry >= 0, values[row[entry]], -1)

    recording.edges = Edges(
        kind=np.full(len(tail), label), native_id=pa.array(flow[np.where(tail >= 0, tail, head)]).cast(pa.string()),
        from_lane=at(lane, tail), from_span=at(span_of, tail), from_t=at(t, tail),
        to_lane=at(lane, head), to_span=at(span_of, head), to_t=at(t, head),
    )  # fmt: skip


def _finish(recording: Recording, lost: dict[str, int], cut: str, unresolved: int, apart: list[int]) -> None:
    spans, instants = recording.spans, recording.instants
    unclosed, orphaned = lost.pop("unclosed"), lost.pop("end without a begin")
    times = np.concatenate([spans.t0, spans.t1[spans.complete], instants.t])
    step = int(np.gcd.reduce(times - times.min())) or -1 if times.size > 1 else -1
    recording.clocks = [{"scope": "source", "unit": "ns", "step_ticks": step, "assumption": ""}]
    if apart:
        text = f"No snapshot ties clock {', '.join(map(str, apart))} to the others; all times are taken as one clock's."
        recording.findings.append(("clock", text))
        recording.clocks[0]["assumption"] = text
    if cut:
        recording.completeness = "truncated"
        recording.findings.append(("truncated", f"The file is not whole: {cut}; what came before it was read."))
    if unresolved:
        recording.findings.append(("not resolved", f"{unresolved} x name that is not in the interned data."))
    dangling = int(((recording.edges.from_lane < 0) | (recording.edges.to_lane < 0)).sum())
    if dangling:
        recording.findings.append(("flows", f"{dangling} arrows have one end; they are kept with it."))
    if not (len(spans) or len(instants)):
        recording.findings.append(("empty", "The trace holds no track event."))
    found = {why: count for why, count in lost.items() if count}
    recording.findings += [("not read", f"{count} x {why}.") for why, count in found.items()]
    if orphaned:
        recording.findings.append(("not read", f"{orphaned} x end without a begin."))
        found["end without a begin"] = orphaned
    recording.losses = {
        "records_expected": -1, "records_kept": len(spans) + len(instants), "records_lost": sum(found.values()),
        "orphaned": orphaned + dangling, "unclosed": unclosed, "out_of_order": 0, "wraps_undone": 0,
        "overhead_corrected": 0,
    }  # fmt: skip
    if found:
        recording.losses["ignored"] = "; ".join(f"{count} x {why}" for why, count in found.items())
