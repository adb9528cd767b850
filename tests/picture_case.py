"""A bundle with something to draw for every kind of picture."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import timeline_case as case

import wsformat
from wsformat.bundle import Bundle
from wsformat.viewers.figure import Figure
from wsformat.viewers.figures import draw

SAMPLES = Path(__file__).parent.parent / "conformance" / "samples"
OPTIONS: dict[str, dict[str, Any]] = {"timeline": {"iterations": "20:24", "cta": 1}}


@cache
def grid() -> Bundle:
    """Four CTAs of a real GEMM with anchors."""
    return wsformat.open(SAMPLES / "gemm_grid.wsformat")


@cache
def passes() -> Bundle:
    """Two launches of a ring, of which one is a pass with waits only and ten ticks slower at each work."""
    data = case.tables(trips=8, launches=2)
    for row in data["launches"]:
        row["pass"] = row["launch"]
    data["events"] = [
        row for row in data["events"] if row["launch"] == 0 or row["event"].startswith(("wait", "arrive"))
    ]
    for row in data["events"]:
        if row["launch"] == 1 and row["event"] == "wait_end":
            row["t"] += 3
    data["attributes"] = [
        {"capture_id": case.CAPTURE, "table_name": "captures", "row_key": "", "name": f"record.pass.{n}.name",
         "type": "text", "value": name}
        for n, name in enumerate(("all", "waits"))
    ]  # fmt: skip
    return Bundle.from_tables(data)


def bundle_of(kind: str) -> Bundle:
    """A bundle of which this kind can be drawn."""
    return passes() if kind == "passes" else grid()


def drawn(kind: str, **options: Any) -> Figure:
    """A figure of this kind."""
    return draw(bundle_of(kind), kind, **{**OPTIONS.get(kind, {}), **options})


def hostile(name: str) -> Bundle:
    """A bundle whose names are all this one."""
    data = case.tables(trips=12, role=name)
    data["captures"][0] |= {"kernel": name, "label": name, "device": name}
    data["launches"][0]["pass"] = 0
    for row in data["span_types"]:
        row["barrier"] = name
    data["attributes"] = [
        {"capture_id": case.CAPTURE, "table_name": "captures", "row_key": "", "name": "record.pass.0.name",
         "type": "text", "value": name}
    ]  # fmt: skip
    return Bundle.from_tables(data)
