"""Out: native Perfetto traces (``.pftrace``, ``.pftrace.gz``) for ui.perfetto.dev and trace_processor."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wsformat.bundle import Bundle
from wsformat.converters.trace_build import build
from wsformat.converters.trace_model import as_flag, report, save

NAME = "perfetto"
TITLE = "native Perfetto trace"
EXTENSIONS = (".pftrace", ".pftrace.gz", ".perfetto-trace")
OPTIONS = {
    "flows": "arrows: all declared edges (all), binding ones only (binding), or none; default all",
    "arguments": "full: ticks, clock and error bound with every slice; lean: only the iteration; default full",
    "untracked": "true: also draw intervals that are not instrumented; default false",
    "counters": "false: no counters of active and stalled lanes; default true",
    "progress": "function called with (what, done, total)",
}
LOSSES = (
    "Spans of one lane that cross go to tracks of their own beside the lane; none is lost.",
    "An arrow whose signal was stamped after the wait's end begins at that end; the report counts them.",
    "Without anchors one tick is drawn as one nanosecond and every CTA starts at its own zero; the trace says so.",
    "Predictions, metrics, rules and findings have no place in a trace.",
)

CARRIES = {
    "out": (
        "captures", "launches", "lanes", "clocks", "clock_anchors", "roles", "event_types", "span_types",
        "dependencies", "events", "spans",
    ),
}  # fmt: skip


def write(bundle: Bundle, path: Path, options: Mapping[str, Any]) -> dict[str, Any]:
    """Write a bundle's spans, stamps, edges and states as a Perfetto trace, atomically.

    Returns:
        the report, see :func:`wsformat.converters.trace_model.report`.

    Raises:
        BadRequest: nothing to draw, or an option with a value that it does not have.
    """
    from wsformat.converters.perfetto.encode import trace

    model = build(
        bundle,
        flows=str(options.get("flows", "all")),
        untracked=as_flag(options.get("untracked", False)),
        counters=as_flag(options.get("counters", True)),
    )
    full = str(options.get("arguments", "full")) != "lean"
    save(path, trace(model, arguments=full, progress=options.get("progress")))
    return report(model, path)
