"""Native Perfetto traces: in, track events of any writer, and out, for ui.perfetto.dev and trace_processor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from wsformat.bundle import Bundle
from wsformat.converters.import_options import FACT_OPTIONS, MAPPING, plain_head
from wsformat.converters.perfetto.wire import fields, packets
from wsformat.converters.trace_build import export
from wsformat.converters.trace_options import EXPORT_OPTIONS

NAME = "perfetto"
TITLE = "native Perfetto trace"
EXTENSIONS = (".pftrace", ".pftrace.gz", ".perfetto-trace")
READ_OPTIONS = {**MAPPING, **FACT_OPTIONS}
OPTIONS = {**EXPORT_OPTIONS, **READ_OPTIONS}
LOSSES = (
    "Out: spans of one lane that cross go to tracks of their own beside the lane; none is lost.",
    "Out: a span that ends before it begins is drawn without length; its ticks stay; the report counts them.",
    "Out: an arrow whose signal was stamped after the wait's end begins at that end; the report counts them.",
    "Out: without anchors one tick is drawn as one nanosecond and every CTA starts at its own zero; the trace says so.",
    "Out: predictions, metrics, rules, findings and attributes have no place in a trace; the report counts them.",
    "Out: numbers recorded with stamps are counters; a text with a stamp that begins or ends a span is left out.",
    "In: the format has no states, roles or losses: spans are scopes unless a mapping says more.",
    "In: slices, instants, counters, flows and flat annotations of track events; other packets are left out.",
    "In: tracks are lanes, named with those above them; clocks are brought to the trace's own by its snapshots.",
    "In: legacy arrows, values of extra counters and thread times are counted, not kept.",
    "In: iterations are ordinals of a name in its track.",
)

CARRIES = {
    "in": (
        "captures", "lanes", "clocks", "roles", "event_types", "span_types", "dependencies", "events", "spans", "edges",
        "findings", "attributes",
    ),
    "out": (
        "captures", "launches", "lanes", "clocks", "clock_anchors", "roles", "event_types", "span_types",
        "dependencies", "events", "spans", "edges",
    ),
}  # fmt: skip

SNIFF_PACKETS = 4
KNOWN = {6, 8, 10, 11, 12, 13, 44, 50, 60, 133}
"""Fields of packets: snapshots, times, events, descriptions, packets that are compressed."""


def sniff(head: bytes, path: Path) -> bool:
    """Whether it begins with packets of a trace that hold known fields; packed files are looked into."""
    data = plain_head(head)
    begin, end, _ = packets(data)
    if not len(begin):
        # One packet may be larger than the head.
        return False
    found, broken = fields(np.frombuffer(data, np.uint8), begin[:SNIFF_PACKETS], end[:SNIFF_PACKETS], KNOWN)
    return not broken.any() and any(len(field.owner) for field in found.values())


def read(paths: Sequence[Path], options: Mapping[str, Any]) -> Bundle:
    """Read one trace.

    Args:
        paths: one file.
        options: the mapping and facts of OPTIONS.

    Raises:
        MalformedInput: no Perfetto trace; names the byte.
    """
    from wsformat.converters.perfetto.importing import read_trace

    bundle: Bundle = read_trace(paths, options)
    return bundle


def write(bundle: Bundle, path: Path, options: Mapping[str, Any]) -> dict[str, Any]:
    """Write a bundle's spans, stamps, edges and states as a Perfetto trace, atomically.

    Args:
        bundle: with spans or stamps.
        path: the file; one that is there is replaced.
        options: by name, as in ``OPTIONS``.

    Returns:
        the report, see :func:`wsformat.converters.trace_model.report`.

    Raises:
        BadRequest: nothing to draw, or an option with a value that it does not have.
    """
    from wsformat.converters.perfetto.encode import trace

    return export(bundle, path, options, trace)
