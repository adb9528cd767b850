"""Valid bundles, one property each: what a reader has to cope with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import bundles
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from bundles import A, B, Row, Rows
from invalid_files import append, edit, extension, heat, new_table, rewrite, stamp_entry

from wsformat.bundle import Bundle
from wsformat.tables import tables, vocabularies


class ValidCase(NamedTuple):
    """One valid bundle.

    Attributes:
        name: name of its directory, without the suffix.
        about: what it is there for.
        make: gives it in memory.
        findings: codes below error that a validator of version 0.1 reports.
        finish: what is done to its directory after it was written.
    """

    name: str
    about: str
    make: Callable[[], Bundle]
    findings: tuple[str, ...] = ()
    finish: Callable[[Path], Any] | None = None


def rows(make: Callable[[], Rows]) -> Callable[[], Bundle]:
    return lambda: bundles.bundle(make())


def extremes() -> Rows:
    """Numbers that a 32-bit, a double or an unsigned reader gets wrong; text that is not ASCII; nulls where allowed."""
    big, odd = 2**63 - 1, 2**53 + 1
    captures: list[Row] = [
        {
            "capture_id": A,
            "kind": "benchmark",
            "kernel": "ядро ⚡ 'quoted' \"twice\"",
            "label": "",
            "task": "a\tb\nc",
            "completeness": "unknown",
            "created_unix_ns": odd,
            "sm_count": 2**31 - 1,
            "lost_events": big,
            "device": None,
            "shape": "\U0001f9ea",
        },
        {
            "capture_id": B,
            "kind": "benchmark",
            "kernel": None,
            "label": "x" * 1000,
            "completeness": "unknown",
            "created_unix_ns": -1,
            "lost_events": odd + 1,
        },
    ]
    values = [0.1, 1 / 3, 5e-324, 1.7976931348623157e308, -0.0, float(2**53), None]
    return {
        "captures": captures,
        "metrics": [
            {
                "capture_id": A,
                "launch": -1,
                "tool": "benchmark",
                "scope": "case",
                "scope_id": f"case {i}",
                "name": "score",
                "ordinal": i,
                "value": value,
                "text": None,
                "null_reason": "empty" if value is None else "",
            }
            for i, value in enumerate(values)
        ],
        "attributes": [
            {
                "capture_id": B,
                "table_name": "captures",
                "row_key": "",
                "name": "big",
                "type": "int",
                "value": str(2**200),
            }
        ],
    }


def ns_clock() -> Rows:
    """The ring on a clock that counts Unix ns in steps of 32: every time is above 2^53."""
    base = 1_790_000_000_123_456_768
    t = bundles.ring(start=0)
    t["clocks"] = [
        {"capture_id": A, "clock": 0, "scope": "device", "unit": "ns", "step_ticks": 32, "width_bits": 64, "wraps": 0}
    ]
    for row in t["events"]:
        row["t"] = base + 32 * row["t"]
    return t


def wrapped() -> Rows:
    """The ring across the wrap of a 32-bit counter, undone: times run on past 2^32."""
    t = bundles.ring(start=2**32 - 150)
    t["clocks"][0].update(width_bits=32, wraps=1)
    for lane in t["lanes"]:
        lane["wraps"] = 1
    return t


def truncated() -> Rows:
    """A buffer of 4 slots on a loop of 16 iterations: the lanes are truncated, and so is the capture."""
    t = bundles.ring()
    t["launches"][0]["trip_count"] = 16
    for lane in t["lanes"]:
        lane.update(completeness="truncated", records_expected=48, records_lost=36)
    t["captures"][0].update(completeness="truncated", lost_events=72)
    return t


def silent_lanes() -> Rows:
    """A role whose warps wrote nothing, and a wait whose end is missing (an orphan)."""
    t = bundles.ring()
    t["roles"].append({"capture_id": A, "role": "idle", "kind": "other", "display_order": 2})
    t["lanes"].append({**t["lanes"][0], "lane": 2, "warp": 8, "role": "idle", "records_kept": 0, "records_expected": 0})
    t["events"] = [e for e in t["events"] if (e["lane"], e["event"], e["iteration"]) != (1, "wait_end", 2)]
    t["lanes"][1].update(records_kept=11, records_lost=1, completeness="unknown")
    t["captures"][0].update(completeness="unknown", lost_events=1)
    return t


def several_ctas() -> Rows:
    """Two launches of two CTAs each, on SMs whose clocks are 30 million cycles apart, with anchors."""
    t: Rows = {}
    parts = bundles.anchored()
    for name in ("captures", "roles", "event_types", "span_types", "dependencies"):
        t[name] = parts[name]
    t["launches"] = [{**parts["launches"][0], "launch": n, "grid_x": 2} for n in range(2)]
    t["clocks"] = [{**parts["clocks"][0], "clock": c, "sm": 3 + c} for c in range(2)] + [
        {**parts["clocks"][1], "clock": 2}
    ]
    lanes: list[Row] = []
    events: list[Row] = []
    anchors: list[Row] = []
    for launch in range(2):
        for cta in range(2):
            shift = 30_000_000 * cta + 100_000 * launch
            new = {"launch": launch, "cta": cta, "sm": 3 + cta, "clock": cta}
            first = len(lanes)
            for row in parts["lanes"]:
                moved = {**row, **new, "lane": row["lane"] + first}
                if row["kind"] == "cta":
                    moved.update(t_start=shift, t_end=shift + 25_000)
                lanes.append(moved)
            events += [{**row, **new, "lane": row["lane"] + first, "t": row["t"] + shift} for row in parts["events"]]
            anchors += [
                {
                    **row,
                    "launch": launch,
                    "clock": cta,
                    "reference_clock": 2,
                    "t": row["t"] + shift,
                    "reference_t": row["reference_t"] + 64_000 * launch + 160 * cta,
                }
                for row in parts["clock_anchors"]
            ]
    return {**t, "lanes": lanes, "events": events, "clock_anchors": anchors}


def every_word() -> Rows:
    """Every value of every vocabulary, and one of a vendor's own where the vocabulary is open."""
    t: Rows = {"captures": []}

    def words(name: str) -> list[str]:
        listed = list(vocabularies()[name]["values"])
        return listed if vocabularies()[name]["closed"] else [*listed, "acme__special"]

    lanes: list[Row] = []
    for name, key in (("launch_kind", "kind"), ("launch_status", "status")):
        for word in words(name):
            t.setdefault("launches", []).append(
                {"capture_id": A, "launch": len(t.get("launches", [])), "kind": "traced", "status": "ok", key: word}
            )
    for word in words("lane_kind"):
        lanes.append({"capture_id": A, "lane": len(lanes), "kind": word, "completeness": "complete", "launch": 0})
    for word in words("completeness"):
        lanes.append({"capture_id": A, "lane": len(lanes), "kind": "warp", "completeness": word, "launch": 0})
    t["lanes"] = lanes
    for i, word in enumerate(words("capture_kind")):
        t["captures"].append(
            {
                "capture_id": A if i == 0 else bundles.capture_id(word),
                "kind": word,
                "completeness": "truncated" if i == 0 else "unknown",
            }
        )
    for word in words("stamp_sink"):
        t["captures"].append(
            {
                "capture_id": bundles.capture_id(f"sink {word}"),
                "kind": "stamped",
                "stamp_sink": word,
                "completeness": "unknown",
            }
        )
    clocks = [("clock_scope", "scope"), ("clock_unit", "unit")]
    t["clocks"] = [
        {"capture_id": A, "scope": "source", "unit": "tick", key: word} for name, key in clocks for word in words(name)
    ]
    for number, row in enumerate(t["clocks"]):
        row["clock"] = number
    t["roles"] = [
        {"capture_id": A, "role": f"role {i}", "kind": word, "display_order": i}
        for i, word in enumerate(words("role_kind"))
    ]
    t["event_types"] = [
        {"capture_id": A, "role": "role 0", "event": f"e{i}", "payload_type": word}
        for i, word in enumerate(words("payload_type"))
    ]
    spans = [("state", "state"), ("wait_on", "wait_on")]
    t["span_types"] = [
        {"capture_id": A, "role": "role 0", "state": "active", key: word} for name, key in spans for word in words(name)
    ]
    for number, row in enumerate(t["span_types"]):
        row["span"] = f"s{number}"
    edge = {
        "capture_id": A,
        "producer_role": "role 0",
        "producer_event": "e0",
        "consumer_role": "role 0",
        "consumer_event": "e1",
        "producer_step": 1,
        "consumer_step": 1,
        "completion": "signal",
        "scope": "cta",
    }
    parts = [("mechanism", "mechanism"), ("completion", "completion"), ("dependency_scope", "scope")]
    t["dependencies"] = [{**edge, key: word} for name, key in parts for word in words(name)]
    for number, row in enumerate(t["dependencies"]):
        row["iteration_lag"] = number - 2
    t["predictions"] = [
        {"capture_id": A, "resource": f"r{i}", "kind": word} for i, word in enumerate(words("prediction_kind"))
    ]
    t["metrics"] = [
        {"capture_id": A, "tool": "ncu", "scope": word, "ordinal": i, "value": 1.0}
        for i, word in enumerate(words("metric_scope"))
    ]
    t["metrics"] += [
        {
            "capture_id": A,
            "tool": "ncu",
            "scope": "kernel",
            "ordinal": 100 + i,
            "null_reason": word,
            "value": None if word else 1.0,
        }
        for i, word in enumerate(words("null_reason"))
    ]
    t["findings"] = [{"capture_id": A, "kind": word, "subject": "x"} for word in words("finding_kind")]
    values = {"text": "x", "int": "-7", "float": "1e-3", "bool": "true", "json": "[1, null]"}
    t["attributes"] = [
        {"capture_id": A, "table_name": "captures", "name": word, "type": word, "value": values[word]}
        for word in words("attribute_type")
    ]
    return t


def row_groups() -> Bundle:
    """140,000 stamps: two row groups, so that readers which stop after one are found out."""
    count = 140_000
    parts = bundles.ring(iterations=1)
    parts["roles"], parts["event_types"] = parts["roles"][:1], parts["event_types"][:1]
    parts["lanes"] = [{**parts["lanes"][0], "records_kept": count, "records_expected": count}]
    parts["launches"][0].update(trip_count=count, slots=count)
    parts.pop("span_types"), parts.pop("dependencies")
    events: Any = parts.pop("events")
    first = events[0]

    def batches() -> Iterator[pa.Table]:
        iteration = np.arange(count, dtype=np.int32)
        columns = []
        for column in tables()["events"].arrow:
            if column.name == "iteration":
                columns.append(pa.array(iteration))
            elif column.name == "t":
                columns.append(pa.array(2**40 + 100 * iteration.astype(np.int64) + iteration % 7))
            else:
                columns.append(pa.repeat(pa.scalar(first.get(column.name, ""), column.type), count))
        yield pa.table(columns, schema=tables()["events"].arrow)

    return Bundle.from_tables({**parts, "events": batches}, sources=[bundles.source(A)])


def with_extension(root: Path) -> None:
    """An extension table, an extension column and a manifest key of a vendor."""
    rewrite("captures", append("acme__rack", 12.5))(root)
    new_table("acme__heat", heat(3), extensions=[extension(tables=["acme__heat"], columns=["captures.acme__rack"])])(
        root
    )
    edit("acme__note", value={"site": "lab 3", "deep": [1, [2, {"x": None}]]})(root)


def newer_minor(root: Path) -> None:
    """What a later minor version may bring: an unknown table, column, vocabulary value and manifest key."""
    rewrite("captures", append("cooling", "water"))(root)
    new_table("cooling", heat(2))(root)
    edit("version", value="0.999")(root)
    edit("registry", value="later")(root)


def rewritten(root: Path) -> None:
    """Written with another codec, encoding and page version where it is harmless: readers must not depend on layout."""
    for file in sorted(root.glob("*.parquet")):
        if file.stem == "events":
            continue
        held = pq.read_table(file)
        pq.write_table(
            held, file, compression="none", use_dictionary=False, data_page_version="1.0", store_schema=False
        )
        stamp_entry(root, file.stem)


def two_captures() -> Rows:
    return bundles.merge(bundles.ring(A), bundles.ring(B, iterations=6, start=5_000))


PASSES = {
    0: {"enter": (100, 200, 300), "leave": (110, 220, 310), "begin": (112, 222, 312), "done": (190, 290, 390)},
    1: {"enter": (1050, 1145, 1240), "leave": (1058, 1153, 1250)},
    2: {"begin": (5030, 5131, 5232), "done": (5100, 5201, 5300)},
}
"""Stamps of each launch, by event and iteration; launch n is pass n."""
LIFETIMES = {0: (80, 1070), 1: (1040, 1945), 2: (5000, 5900), 3: (9000, 9900)}


def passes() -> Rows:
    """One role stamped in three launches: all stamps (10 % slower), the waits, the work; and a clean launch."""
    own: Row = {"capture_id": A}
    lanes: list[Row] = []
    events: list[Row] = []
    for launch, (start, end) in LIFETIMES.items():
        at = {**own, "launch": launch, "cta": 0, "clock": launch, "sm": launch}
        series = PASSES.get(launch, {})
        kept = {"completeness": "complete", "records_lost": 0, "wraps": 0}
        lanes.append(
            {**at, **kept, "lane": len(lanes), "kind": "cta", "t_start": start, "t_end": end, "records_kept": 0}
        )
        if series:
            here = {**at, "lane": len(lanes), "role": "mma", "warp": 4}
            count = sum(map(len, series.values()))
            lanes.append({**here, **kept, "kind": "warp", "records_kept": count})
            found = [(t, e, i) for e, times in series.items() for i, t in enumerate(times)]
            events += [{**here, "event": e, "iteration": i, "t": t} for t, e, i in sorted(found)]
    span: Row = {**own, "role": "mma", "loop": "k"}
    return {
        "captures": [{**own, "kind": "stamped", "kernel": "passes", "completeness": "complete", "lost_events": 0}],
        "launches": [
            {**own, "launch": n, "kind": "stamped" if n in PASSES else "clean", "pass": n if n in PASSES else -1}
            | {
                "trip_count": 3,
                "slots": 8 if n in PASSES else -1,
                "tool": "stamps",
                "status": "ok",
                "grid_x": 1,
                "grid_y": 1,
                "grid_z": 1,
            }
            for n in LIFETIMES
        ],
        "lanes": lanes,
        "clocks": [
            {**own, "clock": n, "scope": "sm", "unit": "cycle", "sm": n, "step_ticks": 1, "width_bits": 64}
            for n in LIFETIMES
        ],
        "roles": [
            {**own, "role": "mma", "role_index": 0, "display_order": 0, "kind": "consumer", "iteration_event": "enter"}
        ],
        "event_types": [
            {**own, "role": "mma", "event": e, "event_index": n, "loop": "k"}
            for n, e in enumerate(("enter", "leave", "begin", "done"))
        ],
        "span_types": [
            {**span, "span": "wait", "state": "stall", "begin_event": "enter", "end_event": "leave"},
            {**span, "span": "work", "state": "active", "begin_event": "begin", "end_event": "done"},
        ],
        "events": events,
    }


CASES: tuple[ValidCase, ...] = (
    ValidCase("minimal", "one capture and nothing else", rows(bundles.minimal)),
    ValidCase(
        "ring",
        "a producer and a consumer around a ring of two stages; small enough to check by hand",
        rows(bundles.ring),
    ),
    ValidCase("anchored", "the ring with the lifetime of its CTA and anchors to ns", rows(bundles.anchored)),
    ValidCase(
        "several_ctas", "two launches of two CTAs, clocks 30 million cycles apart, with anchors", rows(several_ctas)
    ),
    ValidCase(
        "stored_spans",
        "spans as a tracer records them: across lanes, cut off; a recorded edge with a lost end",
        rows(bundles.stored_spans),
    ),
    ValidCase("predictions", "a budget, and no run", rows(bundles.predictions)),
    ValidCase("metrics", "counters with numbers, text and every way to have no number", rows(bundles.metrics)),
    ValidCase("every_table", "at least one row in every table; four captures", rows(bundles.every_table)),
    ValidCase("every_word", "every value of every vocabulary, and a vendor's own", rows(every_word)),
    ValidCase("two_captures", "two bundles merged by concatenation", rows(two_captures)),
    ValidCase("extremes", "2^63-1, 2^53+1, the smallest double, -0.0, text beyond ASCII, nulls", rows(extremes)),
    ValidCase("ns_clock", "times above 2^53 in steps of 32 ns", rows(ns_clock)),
    ValidCase("wrapped", "a 32-bit counter whose wrap was undone", rows(wrapped)),
    ValidCase("truncated", "a buffer that was too small", rows(truncated)),
    ValidCase("passes", "three passes with other stamps each, one of them drawn; a clean launch", rows(passes)),
    ValidCase("silent_lanes", "a role without stamps, and an orphan", rows(silent_lanes), ("I706",)),
    ValidCase("row_groups", "140,000 stamps in two row groups", row_groups),
    ValidCase(
        "extension", "a table, a column and a manifest key of a vendor", rows(bundles.minimal), (), with_extension
    ),
    ValidCase(
        "newer_minor",
        "a bundle of a minor version that nobody knows yet",
        rows(bundles.minimal),
        ("W207",),
        newer_minor,
    ),
    ValidCase("plain_layout", "no compression and no dictionaries", rows(bundles.ring), ("W806",), rewritten),
)
