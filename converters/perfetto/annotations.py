"""Debug annotations: of slices one attribute each, named args.NAME, of instants the payload."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from wsformat.converters.json_members import gather
from wsformat.converters.perfetto.tracks import Interned
from wsformat.converters.perfetto.wire import Array, Field, fields
from wsformat.converters.recording import Recording

A_NAME_IID, A_BOOL, A_UINT, A_INT, A_DOUBLE, A_STRING, A_POINTER, A_NAME, A_TEXT_IID = 1, 2, 3, 4, 5, 6, 7, 10, 17
VALUES: tuple[tuple[int, Any], ...] = (
    (A_BOOL, bool), (A_UINT, np.uint64), (A_INT, np.int64), (A_DOUBLE, np.float64), (A_STRING, bytes),
    (A_POINTER, np.uint64), (A_TEXT_IID, str),
)  # fmt: skip


def add_annotations(
    recording: Recording,
    data: Array,
    field: Field,
    interned: Interned,
    packet: Array,
    span_of: Array,
    instant_of: Array,
    lost: dict[str, int],
) -> None:
    """Add the annotations of slices as attributes, those of instants as a JSON object in their payload.

    Args:
        recording: takes them.
        data: bytes of the trace.
        field: annotations of events.
        interned: names.
        packet: packet of each event.
        span_of, instant_of: span and instant of each event, -1 none.
        lost: takes counts.
    """
    count = len(field.owner)
    if not count:
        return
    found, _ = fields(
        data, field.value.astype(np.int64), field.end, {number for number, _ in VALUES} | {A_NAME_IID, A_NAME}
    )
    span = span_of[field.owner]
    name = np.full(count, -1, np.int64)
    by_iid = found[A_NAME_IID]
    name[by_iid.owner] = interned.find(recording, "annotations", packet[field.owner[by_iid.owner]], by_iid.value)
    direct = found[A_NAME]
    if len(direct.owner):
        packed = gather(data, direct.value.astype(np.int64), direct.end).dictionary_encode()
        first = len(recording.names)
        recording.names += [raw.decode("utf-8", "replace") or "(no name)" for raw in packed.dictionary.to_pylist()]
        name[direct.owner] = first + packed.indices.to_numpy()
    instant = instant_of[field.owner]
    good = ((span >= 0) | (instant >= 0)) & (name >= 0)
    used = np.zeros(count, bool)
    parts: dict[str, list[tuple[Array, pa.Array]]] = {}
    notes: dict[int, dict[str, str]] = {}
    for number, kind in VALUES:
        part = found[number]
        known = good[part.owner]
        if kind is str:
            part = replace(part, value=interned.find(recording, "texts", packet[field.owner[part.owner]], part.value))
            known = known & (part.value >= 0)
        hit = np.flatnonzero(known)
        owner = part.owner[hit]
        used[owner] = True
        for code in np.unique(name[owner]).tolist():
            mine = hit[name[owner] == code]
            texts = _interned(recording, part, mine) if kind is str else _texts(data, part, mine, kind)
            at = part.owner[mine]
            on_span = np.flatnonzero(span[at] >= 0)
            if on_span.size:
                entry = (span[at[on_span]], texts.take(pa.array(on_span)))
                parts.setdefault(f"args.{recording.names[code]}", []).append(entry)
            for row in np.flatnonzero(span[at] < 0).tolist():
                value = texts[row].as_py()
                shown = json.dumps(value, ensure_ascii=False) if kind in (bytes, str, np.float64) else value
                notes.setdefault(int(instant[at[row]]), {}).setdefault(recording.names[code], shown)
    for label, entries in parts.items():
        # The same name twice on one slice: the first one stays.
        where, first_of = np.unique(np.concatenate([spans for spans, _ in entries]), return_index=True)
        values = pa.concat_arrays([texts for _, texts in entries]).take(pa.array(first_of))
        recording.span_attributes.append((label, where, values))
    _to_payloads(recording, notes)
    rest = int((~used).sum())
    if rest:
        lost["annotation of a counter, without a name or with a nested value"] = rest


def _to_payloads(recording: Recording, notes: Mapping[int, Mapping[str, str]]) -> None:
    """Annotations of instants into their payloads."""
    found = recording.instants
    if not notes or found.payload is None:
        return
    payload = found.payload.to_pylist()
    for place, values in notes.items():
        inner = ",".join(f"{json.dumps(key, ensure_ascii=False)}:{value}" for key, value in values.items())
        payload[place] = payload[place] or f"{{{inner}}}"
        recording.payload_types[int(found.name[place])] = "text"
    found.payload = pa.array(payload, pa.string())


def _interned(recording: Recording, part: Field, rows: Array) -> pa.Array:
    codes, inverse = np.unique(part.value[rows], return_inverse=True)
    return pa.array([recording.names[code] for code in codes.tolist()]).take(pa.array(inverse.reshape(-1)))


def _texts(data: Array, part: Field, rows: Array, kind: Any) -> pa.Array:
    if kind is bytes:
        raw = gather(data, part.value[rows].astype(np.int64), part.end[rows])
        try:
            return raw.cast(pa.string())
        except pa.ArrowInvalid:
            return pa.array([value.decode("utf-8", "replace") for value in raw.to_pylist()])
    if kind is bool:
        return pa.array(["true" if value else "false" for value in part.value[rows].tolist()])
    return pa.array(np.ascontiguousarray(part.value[rows]).view(kind)).cast(pa.string())
