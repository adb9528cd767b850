"""Chrome trace JSON: in, whoever wrote it, and out, for viewers that read no Perfetto protobuf."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from wsformat.bundle import Bundle, Progress
from wsformat.converters.import_options import FACT_OPTIONS, MAPPING, plain_head
from wsformat.converters.trace_build import export
from wsformat.converters.trace_options import EXPORT_OPTIONS

NAME = "chrome"
TITLE = "Chrome trace JSON"
EXTENSIONS = (".json", ".json.gz", ".chrome_trace")
READ_OPTIONS = {
    "ts_unit": "import: unit of ts and dur: auto (default: us unless the numbers show ns), us, ns or cycle",
    "dialect": "import: generic, proton or kineto; by default recognised by content",
    "args": "import: none leaves out the arguments of events; default all",
    **MAPPING,
    **FACT_OPTIONS,
}
OPTIONS = {
    **EXPORT_OPTIONS,
    **READ_OPTIONS,
}
LOSSES = (
    "Out: times are microseconds with three decimals, from the start of the trace; the base is in otherData.",
    "Out: spans of one lane that cross go to threads of their own beside the lane; none is lost.",
    "Out: every arrow adds two events without length, named after its barrier, category signal or binding.",
    "Out: a span that ends before it begins is drawn without length; its ticks stay; the report counts them.",
    "Out: an arrow whose signal was stamped after the wait's end begins at that end; the report counts them.",
    "Out: integers beyond 2**53 are strings in the arguments.",
    "Out: predictions, metrics, rules, findings and attributes have no place in a trace; the report counts them.",
    "Out: numbers recorded with stamps are counters; a text with a stamp that begins or ends a span is left out.",
    "In: the format has no states, roles or losses: spans are scopes unless a mapping says more.",
    "In: times finer than a thousandth of the unit are rounded, begins and ends alike, so that order stays.",
    "In: iterations are ordinals of a name in its lane.",
    "In: colours, stack frames, thread clocks (tts, tdur), sort orders and the reach of instants are not kept.",
    "In: object, sample and memory-dump events, and arguments of arrows, are counted, not kept.",
    "In, Proton: rows 'line N' of a warp are merged; the assumed 1 GHz is undone, times are cycles of each CTA's SM.",
    "In, Kineto: kernels are launches as well as spans on their stream; lanes are CPU threads or GPU streams.",
)
CARRIES = {
    "in": (
        "captures", "launches", "lanes", "clocks", "clock_anchors", "roles", "event_types", "span_types",
        "dependencies", "events", "spans", "edges", "findings", "attributes",
    ),
    "out": (
        "captures", "launches", "lanes", "clocks", "clock_anchors", "roles", "event_types", "span_types",
        "dependencies", "events", "spans", "edges",
    ),
}  # fmt: skip
PHASE = re.compile(rb'"ph"\s*:\s*"[^"\\]"')
DIALECTS = ("generic", "proton", "kineto")


def sniff(head: bytes, path: Path) -> bool:
    """Whether it is JSON with Chrome trace events; packed files are looked into."""
    text = plain_head(head).removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"{"):
        return b'"traceEvents"' in text or (PHASE.search(text) is not None and b'"ts"' in text and b'"pid"' in text)
    return re.match(rb"\[[\s,]*\{", text) is not None and PHASE.search(text) is not None


def read(paths: Sequence[Path], options: Mapping[str, Any], progress: Progress | None = None) -> Bundle:
    """Read one trace.

    Args:
        paths: one file.
        options: see READ_OPTIONS.
        progress: called with the bytes read so far.

    Raises:
        MalformedInput: no Chrome trace, or broken; names the byte.
        BadRequest: an option makes no sense.
    """
    from wsformat.converters.chrome.importing import read_trace

    bundle: Bundle = read_trace(paths, options, progress)
    return bundle


def write(bundle: Bundle, path: Path, options: Mapping[str, Any]) -> dict[str, Any]:
    """Write a bundle's spans, stamps, edges and states as Chrome trace JSON, atomically.

    Args:
        bundle: with spans or stamps.
        path: the file; one that is there is replaced.
        options: by name, as in ``OPTIONS``.

    Returns:
        the report, see :func:`wsformat.converters.trace_model.report`.

    Raises:
        BadRequest: nothing to draw, or an option with a value that it does not have.
    """
    from wsformat.converters.chrome.encode import trace

    return export(bundle, path, options, trace)
