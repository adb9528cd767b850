"""What a Chrome trace says about its clock, and what was lost or assumed in reading it."""

from __future__ import annotations

import json

import numpy as np

from wsformat.converters.chrome.converted import Converted
from wsformat.converters.chrome.units import CYCLE
from wsformat.converters.recording import Recording, Spans
from wsformat.converters.trace_model import split_overlaps

MAX_HEADER_TEXT = 1 << 20


def add_clock(done: Converted, shift: int) -> None:
    """The clock of the trace, and its place in Unix time where the file says it."""
    recording = done.recording
    base = done.trace.header.get("baseTimeNanoseconds", b"").strip().strip(b'"')
    assumption = done.unit.text if done.unit.assumed else ""
    recording.findings.append(("unit", done.unit.text))
    if shift:
        assumption += (
            f"{' ' if assumption else ''}All times are {shift} later than in the file, which has negative ones."
        )
        done.notes.append(f"Negative times: all times were moved by {shift}.")
    used = done.t[done.trace.events.phase != ord("M")]
    recording.clocks = [
        {
            "scope": "source",
            "unit": "cycle" if done.unit.name == CYCLE else "ns",
            "step_ticks": _step(recording),
            "assumption": assumption,
        }
    ]
    if base.isdigit() and used.size and done.unit.name != CYCLE:
        first = int(used.min())
        unix = int(base) + first - shift
        if 0 <= unix < 2**63:
            recording.anchors.append({"launch": -1, "clock": 0, "t": first, "reference_clock": -1, "reference_t": unix})
            recording.facts["created_unix_ns"] = unix


def _step(recording: Recording) -> int:
    """Largest number of ticks that divides every difference between times."""
    times = np.concatenate([recording.spans.t0, recording.spans.t1[recording.spans.complete], recording.instants.t])
    if times.size < 2:
        return -1
    return int(np.gcd.reduce(times - times.min())) or -1


def account(done: Converted) -> None:
    """Fill losses, findings and the attributes of the capture."""
    trace, recording = done.trace, done.recording
    lost = sum(trace.losses.values())
    for why, count in trace.losses.items():
        place = f", the first at byte {trace.first_lost[why]}" if why in trace.first_lost else ""
        recording.findings.append(("not read", f"{count} x {why}{place}."))
    if trace.cut:
        recording.completeness = "truncated"
        recording.findings.append(("truncated", f"The file is not whole: {trace.cut}; what came before it was read."))
    if trace.finer:
        recording.findings.append(
            (
                "rounding",
                f"{trace.finer} events have more than three decimals; begins and ends are rounded, order stays.",
            )
        )
    if not (len(recording.spans) or len(recording.instants)):
        recording.findings.append(("empty", "The trace holds no span and no event."))
    if done.backwards:
        recording.findings.append(
            ("time", f"{done.backwards} times go back: negative durations, or begins and ends out of order.")
        )
    recording.findings += [("flows", note) for note in done.notes]
    crossing = crossings(recording.spans)
    if crossing:
        recording.findings.append(
            (
                "overlap",
                f"{crossing} spans cross another one of their lane: all are kept; Perfetto before v57 drops them.",
            )
        )
    recording.losses = {
        "records_expected": -1,
        "records_kept": len(recording.spans) + len(recording.instants),
        "records_lost": lost,
        "orphaned": done.orphans,
        "unclosed": done.unclosed,
        "out_of_order": done.backwards,
        "wraps_undone": 0,
        "overhead_corrected": 0,
    }
    if done.unit.assumed:
        recording.losses["assumption"] = done.unit.text
    if trace.losses:
        recording.losses["ignored"] = "; ".join(f"{count} x {why}" for why, count in trace.losses.items())
    for key, value in trace.header.items():
        if len(value) > MAX_HEADER_TEXT:
            recording.findings.append(("not read", f"{key}: {len(value)} bytes beside the events."))
            continue
        try:
            text = value.decode("utf-8")
            json.loads(text, strict=False)
            recording.attributes.append(("captures", 0, f"file.{key}", "json", text))
        except (UnicodeDecodeError, ValueError):
            recording.attributes.append(("captures", 0, f"file.{key}", "text", value.decode("utf-8", "replace")))


def crossings(spans: Spans) -> int:
    """Spans that begin inside another one of their lane and end after it, as a stack sees them."""
    keep = np.flatnonzero(spans.complete & (spans.lane == spans.end_lane))
    if not keep.size:
        return 0
    sort = keep[np.lexsort((-spans.t1[keep], spans.t0[keep], spans.lane[keep]))]
    return int((split_overlaps(spans.lane[sort], spans.t0[sort], spans.t1[sort]) > 0).sum())
