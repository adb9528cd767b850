"""One Chrome trace to one bundle: who wrote it, in which unit, and what each part means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from wsformat.bundle import Bundle, Progress
from wsformat.converters import import_mapping
from wsformat.converters.chrome import kineto, proton
from wsformat.converters.chrome.converted import Converted
from wsformat.converters.chrome.events import convert
from wsformat.converters.chrome.scan import Trace, scan
from wsformat.converters.chrome.units import Unit, decide
from wsformat.converters.import_options import facts
from wsformat.converters.recording_bundle import Source, to_bundle
from wsformat.errors import BadRequest
from wsformat.provenance import bytes_sha256

REFINERS = {"proton": proton, "kineto": kineto}


def read_trace(paths: Sequence[Path], options: Mapping[str, Any], progress: Progress | None) -> Bundle:
    """See :func:`wsformat.converters.chrome.read`."""
    if len(paths) != 1:
        raise BadRequest(f"{len(paths)} traces: one at a time", "Import each, then `wsformat merge` the bundles.")
    path = paths[0]
    said = facts(options)
    mapping = import_mapping.load(options.get("mapping"))
    keep = str(options.get("args", "all"))
    if keep not in ("all", "none"):
        raise BadRequest(f"args {keep!r}: all or none")
    trace = scan(path, progress)
    dialect, how = _dialect(trace, options.get("dialect"))
    unit = _unit(trace, dialect, options.get("ts_unit"))
    done = convert(trace, unit, keep_args=keep == "all", where=str(path))
    _leave_out_empty_lanes(done)
    if dialect in REFINERS:
        REFINERS[dialect].refine(done)
    asked = {name: str(options[name]) for name in ("ts_unit", "dialect", "args") if options.get(name)}
    source = Source([path], [bytes_sha256(path)], "chrome", f"chrome-{dialect}", how, asked)
    recording = done.recording
    del done, trace  # columns of events: as large as the spans made of them
    bundle: Bundle = to_bundle(recording, source, mapping, said)
    return bundle


def _dialect(trace: Trace, asked: Any) -> tuple[str, str]:
    if asked:
        if str(asked) not in (*REFINERS, "generic"):
            raise BadRequest(f"dialect {asked!r}: no such dialect", f"Dialects: generic, {', '.join(REFINERS)}.")
        if str(asked) == "proton" and not proton.recognise(trace):
            raise BadRequest("dialect proton: lanes are not named '... CoreS CTAC' and 'warp W (line L)'")
        return str(asked), "named by the user"
    if proton.recognise(trace):
        return "proton", "process names with Core and CTA, thread names with warp and line"
    if kineto.recognise(trace):
        return "kineto", "members of the file and categories of events"
    return "generic", "events with phases"


def _unit(trace: Trace, dialect: str, asked: Any) -> Unit:
    if dialect == "proton" and not asked:
        return Unit("us", proton.ASSUMED)
    return decide(asked, trace.times)


def _leave_out_empty_lanes(done: Converted) -> None:
    """Metadata names processes and ids that record nothing; only a named thread is a lane without records."""
    used = np.zeros(len(done.recording.lanes), bool)
    used[done.trace.events.lane[done.trace.events.phase != ord("M")]] = True
    for number, lane in enumerate(done.recording.lanes):
        lane["skip"] = not used[number] and not lane["named"]
