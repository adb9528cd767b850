"""The timeline as a figure: one picture of some CTAs and iterations, with its numbers as a table."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from wsformat.bundle import Bundle
from wsformat.viewers.figure import Figure
from wsformat.viewers.figure_scope import literal
from wsformat.viewers.panels import SPOKEN, TIP, described
from wsformat.viewers.timeline import Timeline, timeline
from wsformat.viewers.timeline_chart import percent
from wsformat.viewers.timeline_layout import clean

COLUMNS = {
    "launch": pa.int32(), "cta": pa.int32(), "role": pa.string(), "span": pa.string(), "state": pa.string(),
    "barrier": pa.string(), "iteration": pa.int32(), "x0": pa.int64(), "x1": pa.int64(), "t0": pa.int64(),
    "t1": pa.int64(), "complete": pa.bool_(), "verdict": pa.string(), "blocked_ticks": pa.int64(),
    "satisfied_ticks": pa.int64(), "unjudged_ticks": pa.int64(), "producer_role": pa.string(),
    "producer_event": pa.string(), "producer_iteration": pa.int32(), "slack": pa.int64(),
}  # fmt: skip


def timeline_figure(bundle: Bundle, **options: Any) -> Figure:
    """Draw the timeline as a figure; options as in :func:`wsformat.viewers.timeline.timeline`."""
    return as_figure(timeline(bundle, **options))


def as_figure(made: Timeline) -> Figure:
    """A drawn timeline as a figure: its marks tell their numbers on hover."""
    selection, content = made.selection, made.content
    rows = selection.rows
    listed = [{**span, "launch": rows[span["place"]].launch, "cta": rows[span["place"]].cta} for span in content.spans]
    table = pa.table({name: pa.array([row[name] for row in listed], kind) for name, kind in COLUMNS.items()})
    shares = [
        f"{clean(row.role or row.name, 40)} {percent(row.states['active'] / row.states['extent'])} active, "
        f"{percent(row.states['stall'] / row.states['extent'])} stall, "
        f"{percent(row.states['untracked'] / row.states['extent'])} not instrumented"
        for row in rows
        if row.states.get("extent")
    ]
    window = content.window
    units = "ns" if selection.axis.unit == "ns" else f"{selection.axis.unit}s"
    alt = f"Timeline from {window.start:,} to {window.end:,} {units}. " + "; ".join(shares[:6]) + "."
    capture = literal(str(selection.capture["capture_id"]))
    lanes = ", ".join(map(str, selection.lanes))
    return Figure(
        "timeline",
        made.title,
        "Each row is one recorder. Coloured is instrumented work, hatched a wait stamped at both ends, faint what no "
        f"stamp covers. An arrow runs from a signal to the exit of the wait that it bound. Times in {units}.",
        alt,
        _told(made.spec),
        table,
        {
            "the spans": f"SELECT * FROM span WHERE capture_id = {capture} AND lane IN ({lanes}) ORDER BY lane, t0",
            "the waits": f"SELECT * FROM wait WHERE capture_id = {capture} AND lane IN ({lanes}) ORDER BY lane, t0",
            "the shares": f"SELECT * FROM role_state WHERE capture_id = {capture} AND lane IN ({lanes}) ORDER BY lane",
        },
        made.notes,
    )


def _told(spec: dict[str, Any]) -> dict[str, Any]:
    """The specification with the words of each tooltip on the mark itself, for pages without Vega and for readers."""
    datasets = dict(spec.get("datasets", {}))
    parts = []
    for part in spec["vconcat"]:
        layers = []
        for layer in part["layer"]:
            fields = [field["field"] for field in layer.get("encoding", {}).get("tooltip", [])]
            name = layer["data"].get("name")
            if fields and name:
                datasets[name] = [
                    {**mark, TIP: described({field: mark.get(field) for field in fields})} for mark in datasets[name]
                ]
                encoding = {key: value for key, value in layer["encoding"].items() if key != "tooltip"}
                layer = {**layer, "mark": {**layer["mark"], "aria": True, "ariaRoleDescription": SPOKEN},
                         "encoding": {**encoding, "description": {"field": TIP, "type": "nominal"}}}  # fmt: skip
            layers.append(layer)
        parts.append({**part, "layer": layers})
    return {**spec, "datasets": datasets, "vconcat": parts}
