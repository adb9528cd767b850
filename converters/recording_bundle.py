"""The bundle of a recording.

The importer numbers lanes, launches and clocks as it likes; here they get the numbers and the order of the standard,
roles and states from the mapping, iterations by occurrence, and their accounting.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from wsformat import provenance
from wsformat.bundle import Bundle
from wsformat.completeness import worst
from wsformat.converters import import_rules
from wsformat.converters.import_mapping import LOOP, ImportMapping
from wsformat.converters.recording import Array, Recording, Row
from wsformat.derive import run
from wsformat.tables import rows_to_table, tables

UNASSIGNED = "unassigned"
"""Role of lanes with records that no mapping gives a role."""


@dataclass(frozen=True)
class Source:
    """Where a recording came from: files with their hashes, the dialect and how it was seen."""

    paths: Sequence[Path]
    hashes: Sequence[str]
    converter: str
    dialect: str
    detected_by: str
    options: Mapping[str, Any]


def to_bundle(recording: Recording, source: Source, mapping: ImportMapping, facts: Mapping[str, Any]) -> Bundle:
    """The bundle of a recording.

    Args:
        recording: may be changed; not to be used afterwards.
        source: provenance.
        mapping: states and roles.
        facts: columns of captures that the user said; they win.
    """
    options = {k: v for k, v in source.options.items() if v not in (None, "")}
    said = {"mapping": mapping.name} if mapping.name else {}
    capture = provenance.capture_id(source.hashes, dict(mapping.values) or None, {**options, **facts})
    _merge_names(recording)
    order, number = _lane_order(recording)
    renamed = import_rules.rename(recording, mapping)
    by_lane = import_rules.lane_rules(recording, mapping)
    roles = _roles(recording, mapping, by_lane)
    lanes = [recording.lanes[i] | {"role": roles[i], "lane": n} for n, i in enumerate(order)]
    spans, place = _spans(recording, number, lanes, capture)
    events = _events(recording, number, lanes, capture)
    _count(lanes, spans, events)
    for lane in lanes:
        lane.setdefault("completeness", recording.completeness)
    lost = [int(lane.get("records_lost", -1)) for lane in lanes]
    names = sorted({kernel for launch in recording.launches if (kernel := launch.get("kernel", ""))})
    row = {
        "capture_id": capture,
        "kind": "traced",
        "kernel": names[0] if len(names) == 1 else "",
        "label": Path(source.paths[0].name).name.split(".")[0],
        "source_format": source.dialect,
        "completeness": worst([str(lane["completeness"]) for lane in lanes]) if lanes else recording.completeness,
        "lost_events": -1 if not lanes or min(lost) < 0 else sum(lost),
        **recording.facts,
        **facts,
    }
    used = sorted({(lane["role"], name) for lane, name in _kinds(recording, roles)})
    points = {(role, f"{name}.{end}") for role, name in used for end in ("begin", "end")}
    event_types = _event_types(recording, roles, capture)
    points |= {(e["role"], e["event"]) for e in event_types}
    dependencies, missing = mapping.dependencies(points)
    import_rules.account(recording, mapping, used, renamed, by_lane, missing)

    def row_key(table: str, key: int) -> str:
        return "" if table == "captures" else str(int(number[key]) if table == "lanes" else key)

    attributes = rows_to_table(
        "attributes",
        [
            *provenance.loss_attributes(capture, recording.losses),
            *(
                {"capture_id": capture, "table_name": "lanes", "row_key": str(lane["lane"]), "name": "process_name",
                 "type": "text", "value": lane["process"]}
                for lane in lanes if lane.get("process")
            ),
            *(
                {"capture_id": capture, "table_name": table, "name": name, "type": kind, "value": value,
                 "row_key": row_key(table, key)}
                for table, key, name, kind, value in recording.attributes
            ),
        ],
    )  # fmt: skip
    attributes = pa.concat_tables(
        [attributes, *(_span_attributes(part, place, capture) for part in recording.span_attributes if len(part[1]))]
    )
    columns = tables()["lanes"].names
    data: dict[str, Any] = {
        "captures": [row],
        "launches": [launch | {"capture_id": capture, "launch": n} for n, launch in enumerate(recording.launches)],
        "lanes": [{k: v for k, v in lane.items() if k in columns} | {"capture_id": capture} for lane in lanes],
        "clocks": [clock | {"capture_id": capture, "clock": n} for n, clock in enumerate(recording.clocks)],
        "clock_anchors": [anchor | {"capture_id": capture} for anchor in recording.anchors],
        "roles": [role | {"capture_id": capture} for role in mapping.roles(roles)] + _unassigned(roles, capture),
        "span_types": [mapping.span(role, name) | {"capture_id": capture} for role, name in used],
        "event_types": event_types,
        "dependencies": [edge | {"capture_id": capture} for edge in dependencies],
        "spans": spans,
        "events": events,
        "edges": _edges(recording, number, place, capture),
        "findings": [
            {"capture_id": capture, "kind": "message", "subject": subject, "text": text}
            for subject, text in recording.findings
        ],
        "attributes": attributes,
    }
    entries = [
        provenance.source_entry(
            path, digest, capture_ids=[capture], converter=source.converter, dialect=source.dialect,
            detected_by=source.detected_by, options={**options, **said, **facts},
        )
        for path, digest in zip(source.paths, source.hashes, strict=True)
    ]  # fmt: skip
    if mapping.path is not None:
        entries.append(
            provenance.source_entry(
                mapping.path, provenance.bytes_sha256(mapping.path), capture_ids=[capture],
                converter=source.converter, dialect="import_mapping", detected_by="named by the user",
            )
        )  # fmt: skip
    return Bundle.from_tables(data, sources=entries)


def _merge_names(recording: Recording) -> None:
    """One number for a text, however often the pool holds it: ordinals count texts."""
    known: dict[str, int] = {}
    code = np.array([known.setdefault(text, len(known)) for text in recording.names] + [-1], np.int64)
    types: dict[int, str] = {}
    for name, kind in recording.payload_types.items():
        merged = int(code[name])
        types[merged] = kind if types.get(merged, kind) == kind else "text"
    recording.names, recording.payload_types = list(known), types
    spans, instants, edges = recording.spans, recording.instants, recording.edges
    spans.name, spans.category = code[spans.name], code[spans.category]
    instants.name, edges.kind = code[instants.name], code[edges.kind]


def _lane_order(recording: Recording) -> tuple[list[int], Array]:
    """Numbers of the recording's lanes in the order of the table, and the table's number of each."""

    def key(index: int) -> tuple[int, int, int, int]:
        lane = recording.lanes[index]
        return lane.get("launch", -1), lane.get("cta", -1), lane.get("warp", -1), index

    order = sorted((n for n, lane in enumerate(recording.lanes) if not lane.get("skip")), key=key)
    number = np.full(len(recording.lanes) + 1, -1, np.int64)  # the last entry stands for lane -1
    number[order] = np.arange(len(order))
    return order, number


def _roles(recording: Recording, mapping: ImportMapping, by_lane: Sequence[int]) -> list[str]:
    """Role of each of the recording's lanes, by the rule that fits it."""
    wrote = np.zeros(len(recording.lanes) + 1, bool)
    for lanes in (recording.spans.lane, recording.spans.end_lane, recording.instants.lane):
        wrote[np.unique(lanes)] = True
    rules = mapping.rules("roles")
    return [
        str(rules[rule]["role"]) if rule >= 0 else str(lane.get("role", "")) or (UNASSIGNED if wrote[n] else "")
        for n, (rule, lane) in enumerate(zip(by_lane, recording.lanes, strict=True))
    ]


def _unassigned(roles: Sequence[str], capture: str) -> list[Row]:
    if UNASSIGNED not in roles:
        return []
    order = len(set(roles) - {UNASSIGNED, ""})
    return [{"capture_id": capture, "role": UNASSIGNED, "role_index": -1, "kind": "other", "display_order": order}]


def _kinds(recording: Recording, roles: Sequence[str]) -> list[tuple[Row, str]]:
    pairs = np.unique(np.stack([recording.spans.lane, recording.spans.name]), axis=1).T.tolist()
    return [({"role": roles[lane]}, recording.names[name]) for lane, name in pairs]


def _event_types(recording: Recording, roles: Sequence[str], capture: str) -> list[Row]:
    found: dict[tuple[str, str], str] = {}
    for lane, name in np.unique(np.stack([recording.instants.lane, recording.instants.name]), axis=1).T.tolist():
        key = (roles[lane], recording.names[name])
        kind = recording.payload_types.get(name, "")
        found[key] = kind if found.get(key, kind) == kind else "text"
    return [
        {"capture_id": capture, "role": role, "event": event, "event_index": -1, "loop": LOOP, "payload_type": kind}
        for (role, event), kind in sorted(found.items())
    ]


def ordinals(lane: Array, name: Array, t: Array) -> Array:
    """How many records of the same lane and name come before each, in the order of time."""
    if not len(lane):
        return np.zeros(0, np.int64)
    sort = np.lexsort((t, name, lane))
    lanes, names = lane[sort], name[sort]
    starts = np.flatnonzero(np.concatenate([[True], (lanes[1:] != lanes[:-1]) | (names[1:] != names[:-1])]))
    result = np.empty(len(lane), np.int64)
    result[sort] = np.arange(len(lane)) - np.repeat(starts, np.diff(np.append(starts, len(lane))))
    return result


def _repeated(lanes: Sequence[Row], lane: Array, capture: str) -> dict[str, Any]:
    """Columns of events and spans that repeat what the lane says."""
    columns: dict[str, Any] = {"capture_id": pa.repeat(capture, len(lane)), "lane": lane.astype(np.int32)}
    for name in ("launch", "cta", "sm", "warp", "clock"):
        values = np.array([row.get(name, -1) for row in lanes], np.int32)
        columns[name] = values[lane] if len(lanes) else lane.astype(np.int32)
    columns["role"] = texts([row["role"] for row in lanes], lane)
    return columns


def texts(pool: Sequence[str], codes: Array) -> pa.Array:
    """Texts of a pool by code; -1 is ''."""
    entries = pa.array([*pool, ""], pa.string())
    where = np.where(codes < 0, len(pool), codes).astype(np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(where), entries) if len(codes) else pa.array([], pa.string())


def _spans(recording: Recording, number: Array, lanes: Sequence[Row], capture: str) -> tuple[pa.Table, Array]:
    """The table spans, and the span_id of each of the recording's spans."""
    spans = recording.spans
    if not len(spans):
        return rows_to_table("spans", []), np.full(1, -1, np.int64)
    lane, end_lane, t1 = number[spans.lane], number[spans.end_lane], spans.t1.copy()
    if not spans.complete.all():
        last = np.full(len(lanes), -1, np.int64)
        np.maximum.at(last, lane, spans.t0)
        np.maximum.at(last, end_lane[spans.complete], t1[spans.complete])
        if len(recording.instants):
            np.maximum.at(last, number[recording.instants.lane], recording.instants.t)
        cut = ~spans.complete
        t1[cut] = last[lane[cut]]
    sort = np.lexsort((-t1, spans.t0, lane))
    place = np.full(len(spans) + 1, -1, np.int64)
    place[sort] = np.arange(len(spans))
    columns = _repeated(lanes, lane[sort], capture)
    columns |= {
        "span_id": np.arange(len(spans)),
        "end_lane": end_lane[sort].astype(np.int32),
        "span": texts(recording.names, spans.name[sort]),
        "tile": np.zeros(len(spans), np.int32),
        "iteration": ordinals(lane, spans.name, spans.t0)[sort].astype(np.int32),
        "t0": spans.t0[sort],
        "t1": t1[sort],
        "complete": spans.complete[sort],
        "category": texts(recording.names, spans.category[sort]),
    }
    return pa.table(columns), place


def _events(recording: Recording, number: Array, lanes: Sequence[Row], capture: str) -> pa.Table:
    events = recording.instants
    if not len(events):
        return rows_to_table("events", [])
    lane = number[events.lane]
    sort = np.lexsort((events.t, lane))
    columns = _repeated(lanes, lane[sort], capture)
    columns |= {
        "event": texts(recording.names, events.name[sort]),
        "tile": np.zeros(len(events), np.int32),
        "iteration": ordinals(lane, events.name, events.t)[sort].astype(np.int32),
        "t": events.t[sort],
        "payload": pa.repeat("", len(events)) if events.payload is None else events.payload.take(pa.array(sort)),
    }
    return pa.table(columns)


def _count(lanes: Sequence[Row], spans: pa.Table, events: pa.Table) -> None:
    kept = np.zeros(len(lanes), np.int64)
    for part in (spans, events):
        if part.num_rows:
            kept += np.bincount(part.column("lane").to_numpy(), minlength=len(lanes))
    for lane, count in zip(lanes, kept.tolist(), strict=True):
        lane["records_kept"] = count
        lane.setdefault("records_expected", -1)
        lane.setdefault("records_lost", -1)


def _edges(recording: Recording, number: Array, place: Array, capture: str) -> pa.Table:
    edges = recording.edges
    if not len(edges):
        return rows_to_table("edges", [])
    return pa.table(
        {
            "capture_id": pa.repeat(capture, len(edges)),
            "edge_id": np.arange(len(edges)),
            "kind": texts(recording.names, edges.kind),
            "native_id": edges.native_id,
            "from_lane": number[edges.from_lane].astype(np.int32),
            "from_span_id": place[edges.from_span],
            "from_t": edges.from_t,
            "to_lane": number[edges.to_lane].astype(np.int32),
            "to_span_id": place[edges.to_span],
            "to_t": edges.to_t,
        }
    )


def _span_attributes(part: tuple[str, Array, pa.Array], place: Array, capture: str) -> pa.Table:
    name, spans, values = part
    import duckdb

    # DuckDB takes NaN and Infinity for JSON; the standard does not.
    query = r"""SELECT CASE WHEN json_valid(v) AND NOT regexp_matches(v, '[:,\[]\s*-?(NaN|Infinity|nan|inf)')
                      THEN 'json' ELSE 'text' END AS kind FROM part"""
    with duckdb.connect() as connection:
        connection.register("part", pa.table({"v": values}))
        kinds = run(connection, query)
    return pa.table(
        {
            "capture_id": pa.repeat(capture, len(spans)),
            "table_name": pa.repeat("spans", len(spans)),
            "row_key": pa.array(place[spans]).cast(pa.string()),
            "name": pa.repeat(name, len(spans)),
            "type": kinds.column("kind").combine_chunks(),
            "value": values,
        },
        schema=rows_to_table("attributes", []).schema,
    )
