"""Triton Proton's intra-kernel traces: SM and CTA are in the process name, the warp and a packing row in the thread's.

Its writer divides cycles by an assumed 1 GHz. The numbers are cycles: they are kept so, one clock a CTA. Where CTAs
are placed by their start (newer writers), the offset is device time and becomes an anchor.
"""

from __future__ import annotations

import re

import numpy as np

from wsformat.converters.chrome.converted import Converted
from wsformat.converters.chrome.counters import members_of
from wsformat.converters.chrome.scan import Trace
from wsformat.converters.interner import Interner
from wsformat.converters.recording import Array

PROCESS = re.compile(r"(.*) Core(\d+) CTA(\d+)(?: \[measure in clock cycle \(assume 1GHz\)\])?")
THREAD = re.compile(r"warp (\d+) \(line (\d+)\)")
ASSUMED = "The writer divided cycles by an assumed 1 GHz; that is undone, one tick is one cycle of this SM."
INIT = "Init Time (ns)"
CONSTANT = ("Finalization Time (ns)", "Post Final Time (ns)")


def recognise(trace: Trace) -> bool:
    """Whether every lane is named as Proton does."""
    keys = trace.keys.texts()
    return bool(trace.lanes) and all(
        p >= 0 and i >= 0 and PROCESS.fullmatch(keys[p]) and THREAD.fullmatch(keys[i]) for p, i in trace.lanes
    )


def refine(done: Converted) -> None:
    """Merge packing rows to warps, name SM and CTA, make cycles of times."""
    recording = done.recording
    found = [(PROCESS.fullmatch(p), THREAD.fullmatch(i)) for p, i in zip(done.process, done.thread, strict=True)]
    places = [(p[1], int(p[2]), int(p[3]), int(i[1])) for p, i in found if p and i]
    kernels = sorted({kernel for kernel, *_ in places})
    warps = sorted(set(places), key=lambda w: (w[0], w[2], w[3], w[1]))
    ctas = sorted({(kernel, cta, sm) for kernel, sm, cta, _ in places})
    recording.launches = [{"kernel": kernel, "kind": "traced", "tool": "proton", "status": "ok"} for kernel in kernels]
    recording.lanes = [
        {
            "launch": kernels.index(kernel), "cta": cta, "warp": warp, "sm": sm, "kind": "warp",
            "clock": ctas.index((kernel, cta, sm)), "name": f"warp {warp}", "process": f"{kernel} Core{sm} CTA{cta}",
        }
        for kernel, sm, cta, warp in warps
    ]  # fmt: skip
    merged = np.array([warps.index(place) for place in places], np.int64)
    clock = np.array([ctas.index((k, c, s)) for k, s, c, _ in places], np.int64)
    spans, instants = recording.spans, recording.instants
    span_clock = clock[spans.lane]
    offset = np.full(len(ctas), np.iinfo(np.int64).max)
    np.minimum.at(offset, span_clock, spans.t0)
    np.minimum.at(offset, clock[instants.lane], instants.t)
    offset[offset == np.iinfo(np.int64).max] = 0
    spans.t0, spans.t1 = spans.t0 - offset[span_clock], spans.t1 - offset[span_clock]
    instants.t = instants.t - offset[clock[instants.lane]]
    edges = recording.edges
    for lane, t in (("from_lane", "from_t"), ("to_lane", "to_t")):
        lanes, times = getattr(edges, lane), getattr(edges, t)
        setattr(edges, t, np.where(lanes >= 0, times - offset[clock[lanes]] if len(lanes) else times, -1))
        setattr(edges, lane, np.where(lanes >= 0, merged[lanes] if len(lanes) else lanes, -1))
    spans.lane, spans.end_lane, instants.lane = merged[spans.lane], merged[spans.end_lane], merged[instants.lane]
    step = recording.clocks[0]["step_ticks"]
    recording.clocks = [
        {"scope": "sm", "unit": "cycle", "sm": sm, "step_ticks": step if step == 1 else -1, "assumption": ASSUMED}
        for _, _, sm in ctas
    ]
    recording.anchors = []
    _anchors(done, ctas, offset, span_clock)
    recording.losses["assumption"] = ASSUMED


def _anchors(done: Converted, ctas: list[tuple[str, int, int]], offset: Array, span_clock: Array) -> None:
    """Starts of CTAs in device time, where the file has them, and its other facts about them."""
    recording, spans = done.recording, done.recording.spans
    args = done.trace.events.args
    first = np.full(len(ctas), len(spans))
    np.minimum.at(first, span_clock, np.arange(len(spans)))
    first = np.minimum(first, max(len(spans) - 1, 0))
    known: list[dict[str, str]] = [{} for _ in ctas]
    number = args.number(done.span_row[first]) if len(spans) else np.zeros(0, np.int64)
    there = np.flatnonzero(number >= 0)
    if there.size:
        text, members = members_of(args, number[there])
        keys, values = Interner(), Interner()
        key = keys.codes(text, members.key_begin, members.key_end)
        value = values.codes(text, members.value_begin, members.value_end)
        key_texts, value_texts = keys.texts(), values.texts()
        for owner, k, v in zip(members.owner.tolist(), key.tolist(), value.tolist(), strict=True):
            known[int(there[owner])][key_texts[k]] = value_texts[v]
    for number_of, facts in enumerate(known):
        for name in CONSTANT:
            if name in facts:
                kind = "int" if facts[name].lstrip("-").isdecimal() else "text"
                recording.attributes.append(("clocks", number_of, name, kind, facts[name]))
    starts = [facts.get(INIT, "") for facts in known]
    absolute = all(start.isdecimal() for start in starts)
    if not absolute and not offset.any():
        recording.findings.append(
            ("clock", "Every CTA begins at 0 and the file has no start times: CTAs cannot be compared in time.")
        )
        return
    device = len(ctas)
    recording.clocks.append({"scope": "device", "unit": "ns", "step_ticks": -1, "assumption": ""})
    for clock, (kernel, _, _) in enumerate(ctas):
        reference = int(starts[clock]) if absolute else int(offset[clock])
        launch = next(n for n, row in enumerate(recording.launches) if row["kernel"] == kernel)
        recording.anchors.append(
            {"launch": launch, "clock": clock, "t": 0, "reference_clock": device, "reference_t": reference}
        )
    recording.findings.append(
        ("clock", "One anchor a CTA, at its first record; the file says no rate, so cycles cannot become ns.")
    )
