"""Stamp buffers to tables: shared by the raw-buffer converter and the recorder.

A launch is an array ``[cta, role, event, iteration]`` of 32- or 64-bit slots, and optionally one start and end record
a CTA. :func:`decode` surveys all launches once (what is written, wraps, completeness), builds the small tables, and
gives the events as a stream of Arrow tables in the sort order of the standard. Memory is bounded by blocks of CTAs.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from wsformat.bundle import TableLike
from wsformat.completeness import NAMES, worst
from wsformat.rolespec import ONCE, Layout, RoleSpec
from wsformat.stamp_clocks import assign_clocks
from wsformat.stamp_lanes import lanes_table
from wsformat.stamp_launch import StampLaunch, Survey, survey
from wsformat.stamp_stream import stream


def decode(
    launches: Sequence[StampLaunch], spec: RoleSpec, layout: Layout, capture: Mapping[str, Any], *, unwritten: int = 0
) -> tuple[dict[str, TableLike], list[Survey | None]]:
    """Tables of one capture.

    Args:
        launches: in the order of the source.
        spec: names every slot that is written .
        layout: size of the buffer of a CTA.
        capture: columns of the row of captures, with ``capture_id``.
        unwritten: value of a slot that nobody wrote.

    Returns:
        the tables, events as a stream, and the survey of each launch (None without stamps).

    Raises:
        MalformedInput
    """
    surveys = [None if k.slots is None else survey(k, spec, layout, unwritten) for k in launches]
    cid = str(capture["capture_id"])
    domains = assign_clocks(
        launches,
        spec,
        cid,
        [None if s is None else (s.step, s.wraps.sum(axis=1)) for s in surveys],
        _slot_bits(launches),
    )
    rows = [_launch_row(n, k, s, spec, layout, cid) for n, (k, s) in enumerate(zip(launches, surveys, strict=True))]
    chosen = [_some_ctas(launch, row) for launch, row in zip(launches, rows, strict=True)]
    lanes, first_lane, order = lanes_table(launches, surveys, spec, layout, domains, chosen, cid)
    names = lanes.column("completeness").unique().to_pylist()
    lost = lanes.column("records_lost").to_numpy()
    facts = {
        "completeness": worst(names),
        "lost_events": -1 if (lost < 0).any() else int(lost.sum()),
        "stamp_set": _stamp_set(spec, surveys),
    }
    tables: dict[str, TableLike] = {
        "captures": [{**spec.capture, **facts, **capture}],
        "launches": rows,
        "lanes": lanes,
        "clocks": domains.clocks,
        "clock_anchors": domains.anchors,
        **spec.table_rows(cid),
    }
    if any(s is not None for s in surveys):
        tables["events"] = lambda: stream(launches, surveys, spec, layout, unwritten, domains, first_lane, order, cid)
    return tables, surveys


def _slot_bits(launches: Sequence[StampLaunch]) -> int:
    """Width of the counter as recorded; start and end records hold 64 bits."""
    sizes = {32 if k.narrow else k.slots.dtype.itemsize * 8 for k in launches if k.slots is not None}
    return max(sizes, default=64)


def _stamp_set(spec: RoleSpec, surveys: Sequence[Survey | None]) -> str:
    """Hash of the stamps that are declared and that the kernel did write, '' when there are none."""
    index = {role["role"]: role["role_index"] for role in spec.roles}
    written = sorted(
        [e["role"], e["event"]]
        for e in spec.events
        if any(s is not None and s.used[index[e["role"]], e["event_index"]] >= 0 for s in surveys)
    )
    return hashlib.sha256(json.dumps(written, separators=(",", ":")).encode()).hexdigest()[:16] if written else ""


def _launch_row(
    number: int, launch: StampLaunch, found: Survey | None, spec: RoleSpec, layout: Layout, cid: str
) -> dict[str, Any]:
    trip_count = launch.trip_count
    if trip_count < 0 and found is not None:
        trip_count = _proven_trip_count(found, launch, spec)
    # Where CTAs were chosen, their number says nothing about the grid.
    all_ctas = launch.first_cta == 0 and launch.cta_step == 1
    grid = {"grid_x": launch.ctas, "grid_y": 1, "grid_z": 1} if all_ctas else {}
    return {
        "kernel": spec.capture.get("kernel", ""),
        "status": "ok",
        **grid,
        **spec.launch,
        **launch.facts,
        "capture_id": cid,
        "launch": number,
        "kind": launch.kind,
        "tool": "stamps",
        "source": launch.source,
        "trip_count": trip_count,
        "slots": launch.window.end(layout.iterations) if launch.kind == "stamped" else -1,
    }


def _some_ctas(launch: StampLaunch, row: Mapping[str, Any]) -> bool:
    """Whether CTAs of the grid were left out."""
    sizes = [int(row.get(f"grid_{axis}", -1)) for axis in "xyz"]
    whole = math.prod(sizes) if min(sizes) > 0 else -1
    return launch.ctas < whole or launch.first_cta > 0 or launch.cta_step > 1


def window_attributes(launches: Sequence[StampLaunch], cid: str) -> list[dict[str, Any]]:
    """Rows of attributes that say which iterations the slots of a launch hold, where these are not all."""
    return [
        {"capture_id": cid, "table_name": "launches", "row_key": str(number), "name": f"window.{name}"}
        | {"type": "int", "value": str(value)}
        for number, launch in enumerate(launches)
        if launch.slots is not None and not launch.window.whole
        for name, value in launch.window.to_json().items()
    ]


def _proven_trip_count(found: Survey, launch: StampLaunch, spec: RoleSpec) -> int:
    """Iterations of the main loop when every lane is complete and all loops ran equally often, else -1."""
    if launch.window.stride > 1:
        return -1
    index = {role["role"]: role["role_index"] for role in spec.roles}
    counts = {
        launch.window.first + int(found.used[index[e["role"]], e["event_index"]]) + 1
        for e in spec.events
        if e["loop"] != ONCE and found.used[index[e["role"]], e["event_index"]] >= 0
    }
    complete = all(NAMES[code] == "complete" for code in set(found.codes.ravel().tolist()))
    return counts.pop() if complete and len(counts) == 1 else -1
