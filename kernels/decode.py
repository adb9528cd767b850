"""A recording as a bundle: the stamped launches with their passes, the clean ones, and what the recorder measured."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from wsformat import rolespec, stamps
from wsformat.bundle import Bundle
from wsformat.errors import BadRequest
from wsformat.iteration_window import IterationWindow
from wsformat.kernels.passes import SINK_COLUMN, SINKS
from wsformat.kernels.recording import CLEAN, Recording
from wsformat.kernels.remarks import remarks
from wsformat.provenance import capture_id
from wsformat.rolespec import RoleSpec
from wsformat.stamp_launch import StampLaunch
from wsformat.tables import conform, rows_to_table

SOURCE = "recording"
SMALL_TABLES = ("captures", "launches", "lanes", "clocks", "clock_anchors")
"""Tables that a capture of clean launches has."""


def to_bundle(recording: Recording, names: list[str] | None = None) -> Bundle:
    """Decode a recording.

    Two captures of one experiment: the stamped launches, each with the number of its pass, and the clean ones.
    Perturbation is not stored: the view ``perturbation`` finds it from both.

    Args:
        recording: as brought back by the recorder.
        names: of the passes to take, all by default; they are numbered anew from 0.

    Raises:
        BadRequest: an unknown pass, or none that kept its stamps.
        MalformedInput: stamps that contradict the records.
    """
    by_name = {str(p["name"]): n for n, p in enumerate(recording.passes)}
    for name in names or []:
        if name not in by_name:
            raise BadRequest(f"the recording has no pass {name!r}", f"Passes: {', '.join(by_name)}.")
    numbers = [by_name[name] for name in names] if names else list(by_name.values())
    taken = {old: new for new, old in enumerate(numbers)}
    spec = rolespec.parse(dict(recording.spec), "role spec", recording.layout)
    spec = _with_floors(spec, recording.calibration)
    hashes = [_hash(recording, n) for n in (CLEAN, *numbers)]
    facts = {**recording.facts, "stamp_sink": _sink(recording, numbers)}
    cid = capture_id(hashes, recording.spec, {"passes": [recording.passes[n] for n in numbers]})
    experiment = str(facts.get("experiment", "") or cid)
    launches = [
        StampLaunch(
            k.slots,
            k.records,
            kind="stamped",
            trip_count=k.trips,
            source=SOURCE,
            facts={**_shape(recording), "pass": taken[k.number]},
            tiles=recording.tiles if k.slots is not None else {},
            anchors=k.anchors,
            window=_window(recording.passes[k.number]),
            first_cta=recording.first_cta,
            cta_step=recording.cta_step,
        )
        for k in recording.launches
        if k.number in taken
    ]
    if not any(k.slots is not None for k in launches):
        raise BadRequest("no launch of the recording kept its stamps")
    capture = {
        **facts,
        "experiment": experiment,
        "capture_id": cid,
        "kind": "stamped",
        "source_format": SOURCE,
    }
    tables, _ = stamps.decode(launches, spec, recording.layout, capture)
    tables["attributes"] = [
        *_attributes(recording, taken, cid),
        *stamps.window_attributes(launches, cid),
        *_residency(recording, launches, numbers, cid),
    ]
    tables["findings"] = [
        {"capture_id": cid, "kind": "message", "subject": subject, "text": text}
        for subject, text in remarks(recording, numbers)
    ]
    entries = [_source(recording, hashes[1:], cid, {"passes": [str(recording.passes[n]["name"]) for n in numbers]})]
    clean_cid = _add_clean(tables, recording, spec, experiment, hashes[0])
    if clean_cid:
        entries.append(_source(recording, hashes[:1], clean_cid, {}))
    return Bundle.from_tables(tables, sources=entries)


def _source(recording: Recording, hashes: list[str], cid: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Entry of the manifest: what was recorded is a source of its own, with the hash of what the device wrote."""
    return {
        "name": SOURCE,
        "sha256": hashlib.sha256("".join(hashes).encode()).hexdigest(),
        "bytes": sum(k.records.nbytes + (0 if k.slots is None else k.slots.nbytes) for k in recording.launches),
        "capture_ids": [cid],
        "converter": "recorder",
        "dialect": SOURCE,
        "detected_by": "recorded",
        "options": dict(options),
    }


def _hash(recording: Recording, number: int) -> str:
    digest = hashlib.sha256()
    for k in recording.launches:
        if k.number == number:
            digest.update(np.int64(k.trips).tobytes())
            digest.update(np.ascontiguousarray(k.records).tobytes())
            digest.update(b"" if k.slots is None else np.ascontiguousarray(k.slots).tobytes())
            digest.update(b"" if k.anchors is None else np.ascontiguousarray(k.anchors).tobytes())
    return digest.hexdigest()


def _sink(recording: Recording, numbers: list[int]) -> str:
    codes = {int(recording.passes[n].get("WSF_SINK", SINKS["shared"])) for n in numbers}
    names = {code: name for name, code in SINKS.items()}
    return SINK_COLUMN[names[codes.pop()]] if len(codes) == 1 else ""


def _window(settings: Mapping[str, Any]) -> IterationWindow:
    """Which iterations a pass stamps, by the settings of its build."""
    return IterationWindow(int(settings.get("WSF_FROM", 0)), int(settings.get("WSF_STRIDE", 1)))


def _shape(recording: Recording) -> dict[str, int]:
    names = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")
    return {name: int(value) for name, value in zip(names, recording.grid, strict=True) if value >= 0}


def _with_floors(spec: RoleSpec, calibration: Mapping[str, float]) -> RoleSpec:
    """What a satisfied barrier wait costs, where the spec does not say it."""
    floor = calibration.get("wait_floor")
    if floor is None:
        return spec
    return spec.with_rows(
        spans=[
            {**span, "floor_ticks": floor}
            if span["state"] == "stall" and span["wait_on"] == "barrier" and span["floor_ticks"] is None
            else span
            for span in spec.spans
        ]
    )


def _attributes(recording: Recording, taken: Mapping[int, int], cid: str) -> list[dict[str, Any]]:
    """What the recorder knows beyond the tables: passes, their builds, the calibration."""
    found: dict[str, Any] = {f"calibration.{name}_ticks": value for name, value in recording.calibration.items()}
    if recording.states:
        for when, state in (("before", recording.states[0]), ("after", recording.states[-1])):
            found |= {f"gpu.{when}.{name}": value for name, value in state.items()}
        found["gpu.rounds"] = list(recording.states)
    builds = {"clean": recording.builds.get("clean", {})}
    for old, new in taken.items():
        one = recording.passes[old]
        found[f"pass.{new}.name"] = str(one["name"])
        found[f"pass.{new}.settings"] = {k: v for k, v in one.items() if k != "name"}
        builds[f"pass.{new}"] = recording.builds.get(str(one["name"]), {})
    for which, facts in builds.items():
        found |= {f"{which}.build.{name}": value for name, value in facts.items()}
    return [
        {
            "capture_id": cid,
            "table_name": "captures",
            "row_key": "",
            "name": f"record.{name}",
            "type": _type(value),
            "value": value
            if isinstance(value, str)
            else json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False),
        }
        for name, value in sorted(found.items())
    ]


RESIDENCY = {
    "registers": "registers_per_thread",
    "shared_bytes_per_cta": "shared_bytes_per_cta",
    "max_ctas_per_sm": "max_ctas_per_sm",
}
"""What decides how many CTAs share an SM: facts of a build, and their attributes of a launch."""


def _residency(recording: Recording, launches: list[StampLaunch], numbers: list[int], cid: str) -> list[dict[str, Any]]:
    rows = []
    for number, launch in enumerate(launches):
        build = recording.builds.get(str(recording.passes[numbers[launch.facts["pass"]]]["name"]), {})
        rows += [
            {"capture_id": cid, "table_name": "launches", "row_key": str(number), "name": name}
            | {"type": "int", "value": str(int(build[fact]))}
            for fact, name in RESIDENCY.items()
            if fact in build
        ]
    return rows


def _type(value: Any) -> str:
    for kind, name in ((bool, "bool"), (int, "int"), (float, "float"), (str, "text")):
        if isinstance(value, kind):
            return name
    return "json"


def _add_clean(tables: dict[str, Any], recording: Recording, spec: RoleSpec, experiment: str, sha: str) -> str:
    launches = [
        StampLaunch(
            None,
            k.records,
            kind="clean",
            trip_count=k.trips,
            source=SOURCE,
            facts=_shape(recording),
            anchors=k.anchors,
            first_cta=recording.first_cta,
            cta_step=recording.cta_step,
        )
        for k in recording.launches
        if k.number == CLEAN
    ]
    if not launches:
        return ""
    cid = capture_id([sha], None, {"clean": True})
    bare = RoleSpec((), (), capture=spec.capture, launch=spec.launch, clock=spec.clock)
    capture = {
        **recording.facts,
        "experiment": experiment,
        "capture_id": cid,
        "kind": "clean",
        "stamp_sink": "",
        "source_format": SOURCE,
    }
    clean, _ = stamps.decode(launches, bare, recording.layout, capture)
    for name in SMALL_TABLES:
        tables[name] = pa.concat_tables([_arrow(name, tables[name]), _arrow(name, clean[name])])
    return cid


def _arrow(name: str, rows: Any) -> pa.Table:
    return conform(name, rows if isinstance(rows, pa.Table) else rows_to_table(name, rows))
