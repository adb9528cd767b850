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
from wsformat.converters.lane_order import pairs
from wsformat.converters.recording import Array, Recording, Row
from wsformat.converters.recording_attributes import attribute_table
from wsformat.converters.recording_tables import edge_table, event_table, span_table
from wsformat.tables import conform, rows_to_table, tables

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
    spans, place = span_table(recording, number, lanes, capture)
    _count(recording, number, lanes)
    for lane in lanes:
        lane.setdefault("completeness", recording.completeness)
    lost = [int(lane.get("records_lost", -1)) for lane in lanes]
    launches = _launches(recording, capture)
    names = sorted(set(launches.column("kernel").unique().to_pylist()) - {""})
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
    spoken = pairs(recording.spans.lane, recording.spans.name)
    used = sorted({(roles[lane], recording.names[name]) for lane, name in spoken})
    points = {(role, f"{name}.{end}") for role, name in used for end in ("begin", "end")}
    event_types = _event_types(recording, roles, capture)
    points |= {(e["role"], e["event"]) for e in event_types}
    dependencies, missing = mapping.dependencies(points)
    import_rules.account(recording, mapping, used, renamed, by_lane, missing)

    def row_key(table: str, key: int) -> str:
        return "" if table == "captures" else str(int(number[key]) if table == "lanes" else key)

    attributes = [
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
    ]  # fmt: skip
    columns = tables()["lanes"].names
    data: dict[str, Any] = {
        "captures": [row],
        "launches": launches,
        "lanes": [{k: v for k, v in lane.items() if k in columns} | {"capture_id": capture} for lane in lanes],
        "clocks": [clock | {"capture_id": capture, "clock": n} for n, clock in enumerate(recording.clocks)],
        "clock_anchors": [anchor | {"capture_id": capture} for anchor in recording.anchors],
        "roles": [role | {"capture_id": capture} for role in _role_rows(recording, mapping, roles)],
        "span_types": [mapping.span(role, name) | {"capture_id": capture} for role, name in used],
        "event_types": event_types,
        "dependencies": [edge | {"capture_id": capture} for edge in dependencies],
        "spans": spans,
        "events": event_table(recording, number, lanes, capture),
        "edges": edge_table(recording, number, place, capture),
        "findings": [
            {"capture_id": capture, "kind": "message", "subject": subject, "text": text}
            for subject, text in recording.findings
        ],
        "attributes": attribute_table(recording, attributes, place, capture),
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
    code = np.array([known.setdefault(text, len(known)) for text in recording.names] + [-1], np.int32)
    merged_any = len(known) < len(recording.names)
    types: dict[int, str] = {}
    for name, kind in recording.payload_types.items():
        merged = int(code[name])
        types[merged] = kind if types.get(merged, kind) == kind else "text"
    recording.payload_units = {int(code[name]): unit for name, unit in recording.payload_units.items()}
    recording.names, recording.payload_types = list(known), types
    if not merged_any:
        return
    spans, instants, edges = recording.spans, recording.instants, recording.edges
    spans.name, spans.category = code[spans.name], code[spans.category]
    instants.name, edges.kind = code[instants.name], code[edges.kind]


def _lane_order(recording: Recording) -> tuple[list[int], Array]:
    """Numbers of the recording's lanes in the order of the table, and the table's number of each."""

    def key(index: int) -> tuple[int, int, int, int]:
        lane = recording.lanes[index]
        return lane.get("launch", -1), lane.get("cta", -1), lane.get("warp", -1), index

    order = sorted((n for n, lane in enumerate(recording.lanes) if not lane.get("skip")), key=key)
    number = np.full(len(recording.lanes) + 1, -1, np.int32)  # the last entry stands for lane -1
    number[order] = np.arange(len(order))
    return order, number


def _roles(recording: Recording, mapping: ImportMapping, by_lane: Sequence[int]) -> list[str]:
    """Role of each of the recording's lanes, by the rule that fits it."""
    wrote = np.zeros(len(recording.lanes) + 1, bool)
    for lanes in (recording.spans.lane, recording.spans.end_lane, recording.instants.lane):
        wrote[lanes] = True
    rules = mapping.rules("roles")
    return [
        str(rules[rule]["role"]) if rule >= 0 else str(lane.get("role", "")) or (UNASSIGNED if wrote[n] else "")
        for n, (rule, lane) in enumerate(zip(by_lane, recording.lanes, strict=True))
    ]


def _role_rows(recording: Recording, mapping: ImportMapping, roles: Sequence[str]) -> list[Row]:
    """Rows of the roles that lanes play: those of the mapping, those that the trace says itself, and no role."""
    used = set(roles)
    rows: list[Row] = mapping.roles(roles)
    known = {row["role"] for row in rows}
    own = [{"role_index": -1} | role for role in recording.roles if role["role"] in used - known]
    if UNASSIGNED in used - known:
        own.append({"role": UNASSIGNED, "role_index": -1, "kind": "other"})
    return rows + [row | {"display_order": len(rows) + n} for n, row in enumerate(own)]


def _event_types(recording: Recording, roles: Sequence[str], capture: str) -> list[Row]:
    found: dict[tuple[str, str], str] = {}
    units: dict[tuple[str, str], str] = {}
    for lane, name in pairs(recording.instants.lane, recording.instants.name):
        key = (roles[lane], recording.names[name])
        kind = recording.payload_types.get(name, "")
        found[key] = kind if found.get(key, kind) == kind else "text"
        units[key] = recording.payload_units.get(name, "")
    return [
        {
            "capture_id": capture,
            "role": role,
            "event": event,
            "event_index": -1,
            "loop": LOOP,
            "payload_type": kind,
            "payload_unit": units[role, event],
        }
        for (role, event), kind in sorted(found.items())
    ]


def _count(recording: Recording, number: Array, lanes: Sequence[Row]) -> None:
    kept = np.zeros(len(lanes), np.int64)
    for found in (recording.spans.lane, recording.instants.lane):
        if len(found):
            kept += np.bincount(number[found], minlength=len(lanes))
    for lane, count in zip(lanes, kept.tolist(), strict=True):
        lane["records_kept"] = count
        lane.setdefault("records_expected", -1)
        lane.setdefault("records_lost", -1)


def _launches(recording: Recording, capture: str) -> pa.Table:
    rows: list[Row] = [launch | {"capture_id": capture, "launch": n} for n, launch in enumerate(recording.launches)]
    table = rows_to_table("launches", rows)
    columns = recording.launch_columns
    if not columns:
        return table
    count = len(next(iter(columns.values())))
    more = {
        "capture_id": pa.repeat(capture, count),
        "launch": np.arange(len(rows), len(rows) + count),
        **columns,
    }
    return pa.concat_tables([table, conform("launches", pa.table(more)).cast(table.schema)])
