"""What a Chrome trace says about its clock, and what was lost or assumed in reading it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from wsformat.converters.chrome.converted import Converted
from wsformat.converters.chrome.units import CYCLE
from wsformat.converters.lane_order import GROUP, groups, in_order
from wsformat.converters.recording import Recording, Spans
from wsformat.converters.trace_overlaps import split_overlaps

MAX_HEADER_TEXT = 1 << 20
BASES = ((("baseTimeNanoseconds",), 1), (("beginningOfTime",), 1000), (("otherData", "profile_start_ts"), 10**6))
"""Where writers say the Unix time of the trace's zero (PyTorch, LLVM, Bazel), and the ns of its unit."""


def add_clock(done: Converted, shift: int) -> None:
    """The clock of the trace, and its place in Unix time where the file says it."""
    recording = done.recording
    assumption = done.unit.text if done.unit.assumed else ""
    recording.findings.append(("unit", done.unit.text))
    if shift:
        assumption += (
            f"{' ' if assumption else ''}All times are {shift} later than in the file, which has negative ones."
        )
        done.notes.append(f"Negative times: all times were moved by {shift}.")
    used = done.trace.events.phase != ord("M")
    recording.clocks = [
        {
            "scope": "source",
            "unit": "cycle" if done.unit.name == CYCLE else "ns",
            "step_ticks": _step(recording),
            "assumption": assumption,
        }
    ]
    if used.any() and done.unit.name != CYCLE:
        first = int(done.t.min(where=used, initial=np.iinfo(np.int64).max))
        base, error = _base(done.trace.header)
        if base >= 0 and base + first - shift < 2**63:
            unix = base + first - shift
            anchor = {"launch": -1, "clock": 0, "t": first, "reference_clock": -1, "reference_t": unix}
            recording.anchors.append(anchor | ({"error_ns": error} if error else {}))
            recording.facts["created_unix_ns"] = unix


def _base(header: Mapping[str, bytes]) -> tuple[int, int]:
    """Unix time in ns of the trace's zero and how coarsely it is known; -1 where the file does not say it."""
    for path, ns in BASES:
        try:
            value: Any = json.loads(header.get(path[0], b""))
            for name in path[1:]:
                value = value[name]
            return int(value) * ns, ns if ns > 1 else 0
        except (ValueError, TypeError, KeyError):
            continue
    return -1, 0


def _step(recording: Recording) -> int:
    """Largest number of ticks that divides every difference between times."""
    spans, step, first = recording.spans, 0, None
    for times, there in ((spans.t0, None), (spans.t1, spans.complete), (recording.instants.t, None)):
        for begin in range(0, len(times), GROUP):
            part = times[begin : begin + GROUP]
            part = part if there is None else part[there[begin : begin + GROUP]]
            if part.size:
                first = part[0] if first is None else first
                step = int(np.gcd(step, np.gcd.reduce(part - first)))
    return step or -1


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
    keep = spans.complete & (spans.lane == spans.end_lane)
    lane, t0, t1 = (
        (spans.lane, spans.t0, spans.t1) if keep.all() else (a[keep] for a in (spans.lane, spans.t0, spans.t1))
    )
    lanes = int(lane.max(initial=-1)) + 1
    order = in_order(lane, lanes, t0, t1)
    count = 0
    for begin, end in groups(lane, lanes):
        rows = order[begin:end]
        count += int((split_overlaps(lane[rows], t0[rows], t1[rows]) > 0).sum())
    return count
