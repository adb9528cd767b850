"""Bundles for the tests of the timeline, small enough to check by hand, and readers of what was drawn.

A ring of two stages, ``trips`` iterations of 100 cycles. In iteration i, from the CTA's own start:

    producer   wait [100i, 100i+10]     work [100i+10, 100i+60]
    consumer   wait [100i+50, 100i+70]  work [100i+70, 100i+120]  arrive 100i+125

The producer's work_end signals the consumer's wait of the same iteration (late by 10, released 10 later); the
consumer's arrive signals the producer's wait two iterations later (it comes 75 cycles before that wait begins).
"""

from __future__ import annotations

import re
import zlib
from collections import defaultdict
from collections.abc import Iterable
from typing import Any
from xml.etree import ElementTree

import numpy as np

from wsformat.bundle import Bundle

CAPTURE = "71e11e00000000000000000001"
BASE = 2**53 + 1_001  # beyond what a double holds: a lost digit shows
SPANS = {"producer": {"wait": (0, 10), "work": (10, 60)}, "consumer": {"wait": (50, 70), "work": (70, 120)}}
NS_BASE = 1_800_000_000_000_000_000


def tables(
    trips: int = 8, ctas: int = 1, launches: int = 1, anchors: bool = True, role: str = "producer"
) -> dict[str, list[dict[str, Any]]]:
    """Rows of every table. Every CTA has a clock of its own: half a ns a tick, CTA c starts 40 ns after CTA c-1."""
    here = {"capture_id": CAPTURE}
    names = {"producer": role, "consumer": "consumer"}
    lanes: list[dict[str, Any]] = []
    events: list[dict[str, Any]] = []
    clocks: list[dict[str, Any]] = []
    anchored: list[dict[str, Any]] = []
    for launch in range(launches):
        for cta in range(ctas):
            clock = len(clocks)
            start = BASE + 1_000_000_007 * clock
            clocks.append({**here, "clock": clock, "scope": "sm", "unit": "cycle", "sm": cta, "step_ticks": 1})
            for t in (0, 1_000_000):
                ns = NS_BASE + launch * 10_000_000 + 40 * cta + t // 2
                anchored.append({**here, "launch": launch, "clock": clock, "t": start + t, "reference_t": ns,
                                 "reference_clock": -1, "error_ns": 16.0})  # fmt: skip
            for part, spans in SPANS.items():
                at = {**here, "lane": len(lanes), "launch": launch, "cta": cta, "sm": cta, "role": names[part],
                      "clock": clock, "warp": -1}  # fmt: skip
                lanes.append({**at, "kind": "thread", "completeness": "complete", "records_lost": 0})
                stamps = {f"{span}_{end}": offset for span, ends in spans.items()
                          for end, offset in zip(("begin", "end"), ends, strict=True)}  # fmt: skip
                if part == "consumer":
                    stamps["arrive"] = 125
                events += [
                    {**at, "event": event, "iteration": i, "tile": 0, "t": start + 100 * i + offset}
                    for i in range(trips)
                    for event, offset in stamps.items()
                ]
    edge = {**here, "producer_step": 1, "consumer_step": 1, "completion": "signal", "scope": "cta"}
    return {
        "captures": [{**here, "kind": "stamped", "kernel": "ring", "label": "by hand", "device": "NVIDIA H200",
                      "completeness": "complete", "lost_events": 0}],
        "launches": [{**here, "launch": n, "kernel": "ring", "kind": "stamped", "tool": "stamps", "trip_count": trips,
                      "slots": trips, "grid_x": ctas, "grid_y": 1, "grid_z": 1} for n in range(launches)],
        "lanes": lanes,
        "clocks": clocks,
        "clock_anchors": anchored if anchors else [],
        "roles": [{**here, "role": names[part], "role_index": n, "display_order": n, "iteration_event": "wait_begin"}
                  for n, part in enumerate(SPANS)],
        "event_types": [{**here, "role": names[part], "event": event, "event_index": n, "loop": "k"}
                        for part in SPANS for n, event in enumerate(
                            ("wait_begin", "wait_end", "work_begin", "work_end", "arrive"))
                        if event != "arrive" or part == "consumer"],
        "span_types": [{**here, "role": names[part], "span": span, "begin_event": f"{span}_begin", "loop": "k",
                        "end_event": f"{span}_end", "state": "stall" if span == "wait" else "active",
                        "barrier": "" if span == "work" else "empty" if part == "producer" else "full"}
                       for part in SPANS for span in ("wait", "work")],
        "dependencies": [
            {**edge, "producer_role": role, "producer_event": "work_end", "consumer_role": "consumer",
             "consumer_event": "wait_end", "iteration_lag": 0, "barrier": "full"},
            {**edge, "producer_role": "consumer", "producer_event": "arrive", "consumer_role": role,
             "consumer_event": "wait_end", "iteration_lag": 2, "barrier": "empty"},
        ],
        "events": events,
    }  # fmt: skip


def bundle(**options: Any) -> Bundle:
    return Bundle.from_tables(tables(**options))


def add_role(
    data: dict[str, list[dict[str, Any]]], role: str, stamps: Iterable[tuple[str, int, int]],
    types: Iterable[dict[str, Any]], lane: bool = True,
) -> int:  # fmt: skip
    """Add a role to CTA 0 with stamps (event, iteration, t relative) and span types; gives its lane."""
    here = {"capture_id": CAPTURE}
    number = max(row["lane"] for row in data["lanes"]) + 1
    at = {**here, "lane": number, "launch": 0, "cta": 0, "sm": 0, "role": role, "clock": 0, "warp": 7}
    if lane:
        data["lanes"].append({**at, "kind": "warp", "completeness": "complete", "records_lost": 0})
    data["roles"].append({**here, "role": role, "display_order": len(data["roles"])})
    data["events"] += [{**at, "event": e, "iteration": i, "tile": 0, "t": BASE + t} for e, i, t in stamps]
    names = {event for event, _, _ in stamps}
    data["event_types"] += [{**here, "role": role, "event": e, "event_index": -1, "loop": "k"} for e in sorted(names)]
    data["span_types"] += [{**here, "role": role, "loop": "k", **row} for row in types]
    return number


def named_layers(spec: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Marks of every layer of a specification, by the name of the layer."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for part in spec["vconcat"]:
        for layer in part["layer"]:
            data = layer["data"]
            values = spec["datasets"][data["name"]] if "name" in data else data["values"]
            found[re.sub(r"_\d+$", "", layer["name"])] = values
    return found


def svg_groups(svg: str) -> dict[str, list[ElementTree.Element]]:
    """Drawn elements of every layer of an SVG, by the name of the layer. Parsing proves that it is well-formed."""
    found: dict[str, list[ElementTree.Element]] = defaultdict(list)
    for group in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}g"):
        for word in group.get("class", "").split():
            if word.endswith("_marks"):
                found[re.sub(r"_\d+_marks$|_marks$", "", word)].extend(group)
    return found


def texts(svg: str) -> list[str]:
    """Every text of an SVG, in order."""
    tree = ElementTree.fromstring(svg)
    return ["".join(text.itertext()) for text in tree.iter("{http://www.w3.org/2000/svg}text")]


def covered(intervals: Iterable[tuple[int, int]]) -> set[int]:
    """The ticks of a union of half-open intervals, one by one: slow and beyond doubt."""
    return {t for first, end in intervals for t in range(first, end)}


def pixels(png: bytes) -> np.ndarray:
    """Pixels of an 8-bit RGB or RGBA PNG as (height, width, channels)."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    at, packed, height, width, channels = 8, b"", 0, 0, 0
    while at < len(png):
        length, kind = int.from_bytes(png[at : at + 4], "big"), png[at + 4 : at + 8]
        body = png[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            width, height = int.from_bytes(body[:4], "big"), int.from_bytes(body[4:8], "big")
            assert body[8] == 8
            channels = {2: 3, 6: 4}[body[9]]
        packed += body if kind == b"IDAT" else b""
        at += 12 + length
    rows = np.frombuffer(zlib.decompress(packed), dtype=np.uint8).reshape(height, width * channels + 1)
    out = np.zeros((height, width, channels), dtype=np.int32)
    above = np.zeros((width, channels), dtype=np.int32)
    for y, row in enumerate(rows):
        line = row[1:].reshape(width, channels).astype(np.int32)
        if row[0] == 0:
            above = line
        elif row[0] == 2:
            above = (line + above) % 256
        elif row[0] == 1:
            above = np.cumsum(line, axis=0) % 256
        else:
            now = np.zeros_like(line)
            left = corner = np.zeros(channels, np.int32)
            for x in range(width):
                guess = (left + above[x]) // 2
                if row[0] == 4:
                    p = left + above[x] - corner
                    a, b, c = abs(p - left), abs(p - above[x]), abs(p - corner)
                    guess = np.where((a <= b) & (a <= c), left, np.where(b <= c, above[x], corner))
                corner = above[x]
                left = now[x] = (line[x] + guess) % 256
            above = now
        out[y] = above
    return out
