"""The small bundles of the corpus, as rows. Everything here is made up, small enough to check by hand."""

from __future__ import annotations

import hashlib
from copy import deepcopy
from typing import Any

from wsformat.bundle import Bundle
from wsformat.tables import vocabularies

Row = dict[str, Any]
Rows = dict[str, list[Row]]

SOURCE = "a source that was never a file"


def capture_id(name: str) -> str:
    """A capture_id of the right form from a name."""
    return hashlib.sha256(name.encode()).hexdigest()[:26]


A, B = capture_id("a"), capture_id("b")


def source(*captures: str) -> Row:
    return {
        "name": "made_up.bin",
        "sha256": hashlib.sha256(SOURCE.encode()).hexdigest(),
        "bytes": len(SOURCE),
        "capture_ids": list(captures),
        "converter": "conformance",
        "dialect": "conformance",
        "detected_by": "made by hand",
        "options": {},
    }


def bundle(tables: Rows, **more: Any) -> Bundle:
    """In-memory bundle of rows; every capture gets a source."""
    captures = [row["capture_id"] for row in tables.get("captures", [])]
    return Bundle.from_tables(tables, sources=more.pop("sources", [source(*captures)]), **more)


def minimal() -> Rows:
    """The least that a bundle can be: one capture and nothing else."""
    return {"captures": [{"capture_id": A, "kind": "predicted", "completeness": "unknown"}]}


def ring(capture: str = A, *, iterations: int = 4, start: int = 1000) -> Rows:
    """A producer and a consumer around a ring of two stages, one CTA, no anchors.

    Iteration i of the producer: wait from 100i to 100i+10, work to 100i+50 (signal). Of the consumer: wait from
    100i+20 to 100i+80, work to 100i+95 (release). Each wait of the consumer ends 30 ticks after the signal.
    """

    def key(**values: Any) -> Row:
        return {"capture_id": capture, **values}

    offsets = {"producer": (0, 10, 50), "consumer": (20, 80, 95)}
    names = {"producer": ("wait_begin", "wait_end", "signal"), "consumer": ("wait_begin", "wait_end", "release")}
    lanes, events, roles, event_types, span_types = [], [], [], [], []
    for lane, role in enumerate(offsets):
        where = {"launch": 0, "cta": 0, "sm": 3, "warp": 4 * lane, "role": role, "clock": 0}
        lanes.append(
            key(
                lane=lane,
                **where,
                kind="warp",
                name=f"warp {4 * lane}",
                completeness="complete",
                records_expected=3 * iterations,
                records_kept=3 * iterations,
                records_lost=0,
                wraps=0,
            )
        )
        for i in range(iterations):
            for name, offset in zip(names[role], offsets[role], strict=True):
                events.append(key(lane=lane, **where, event=name, tile=0, iteration=i, t=start + 100 * i + offset))
        kind, resource = ("producer", "tma") if role == "producer" else ("consumer", "tensor")
        roles.append(
            key(
                role=role,
                role_index=lane,
                kind=kind,
                warps=str(4 * lane),
                resource=resource,
                iteration_event="wait_begin",
                display_order=lane,
            )
        )
        for index, name in enumerate(names[role]):
            event_types.append(key(role=role, event=name, event_index=index, loop="k"))
        barrier = "empty" if role == "producer" else "full"
        span_types.append(
            key(
                role=role,
                span="wait",
                state="stall",
                begin_event="wait_begin",
                end_event="wait_end",
                wait_on="barrier",
                barrier=barrier,
                loop="k",
            )
        )
        span_types.append(
            key(
                role=role,
                span="work",
                state="active",
                begin_event="wait_end",
                end_event=names[role][2],
                resource=resource,
                loop="k",
            )
        )
    step = {"producer_step": 1, "consumer_step": 1, "scope": "cta"}
    return {
        "captures": [
            key(
                kind="stamped",
                kernel="ring",
                label="ring",
                device="none",
                arch="sm_90a",
                sm_count=132,
                completeness="complete",
                lost_events=0,
                stamp_sink="shared",
                source_format="conformance",
            )
        ],
        "launches": [
            key(
                launch=0,
                kernel="ring",
                kind="stamped",
                tool="stamps",
                trip_count=iterations,
                slots=iterations,
                status="ok",
                grid_x=1,
                grid_y=1,
                grid_z=1,
                block_x=256,
                block_y=1,
                block_z=1,
            )
        ],
        "lanes": lanes,
        "clocks": [key(clock=0, scope="sm", unit="cycle", sm=3, step_ticks=1, width_bits=64, wraps=0)],
        "roles": roles,
        "event_types": event_types,
        "span_types": span_types,
        "dependencies": [
            key(
                producer_role="producer",
                producer_event="signal",
                consumer_role="consumer",
                consumer_event="wait_end",
                iteration_lag=0,
                barrier="full",
                mechanism="arrive",
                completion="signal",
                **step,
            ),
            key(
                producer_role="consumer",
                producer_event="release",
                consumer_role="producer",
                consumer_event="wait_end",
                iteration_lag=2,
                barrier="empty",
                mechanism="arrive",
                completion="signal",
                **step,
            ),
        ],
        "events": events,
    }


def anchored(capture: str = A) -> Rows:
    """The ring with a lane for the CTA's lifetime and anchors at its start and end, at 1.5625 GHz."""
    tables = ring(capture)
    for row in [*tables["lanes"], *tables["events"]]:
        row["lane"] += 1
    tables["lanes"].insert(
        0,
        {
            "capture_id": capture,
            "lane": 0,
            "launch": 0,
            "cta": 0,
            "warp": -1,
            "role": "",
            "kind": "cta",
            "sm": 3,
            "clock": 0,
            "name": "CTA 0",
            "t_start": 0,
            "t_end": 25_000,
            "completeness": "complete",
            "records_expected": 0,
            "records_kept": 0,
            "records_lost": 0,
            "wraps": 0,
        },
    )
    tables["clocks"].append(
        {
            "capture_id": capture,
            "clock": 1,
            "scope": "device",
            "unit": "ns",
            "step_ticks": 32,
            "width_bits": 64,
            "wraps": 0,
        }
    )
    base = 1_790_000_000_000_000_000
    tables["clock_anchors"] = [
        {
            "capture_id": capture,
            "launch": 0,
            "clock": 0,
            "t": t,
            "reference_clock": 1,
            "reference_t": base + ns,
            "error_ns": 32.0,
        }
        for t, ns in ((0, 0), (25_000, 16_000))
    ]
    return tables


def stored_spans(capture: str = A) -> Rows:
    """What a tracer records: whole spans, one that ends on another lane, one whose end was cut off, an edge."""

    def key(**values: Any) -> Row:
        return {"capture_id": capture, **values}

    lanes, spans = [], []
    for lane in range(2):
        where = {"launch": 0, "cta": 0, "sm": -1, "warp": lane, "role": "warp", "clock": 0}
        lanes.append(
            key(lane=lane, **where, kind="warp", completeness="complete", records_kept=2, records_lost=0, wraps=0)
        )
    names = [
        ("load", 0, 0, 0, 320, True),
        ("load", 0, 1, 320, 640, True),
        ("flight", 1, 0, 64, 960, True),
        ("load", 1, 0, 96, 960, False),
    ]
    base = 1_790_000_000_000_000_000
    for number, (name, lane, iteration, t0, t1, complete) in enumerate(names):
        where = {"launch": 0, "cta": 0, "sm": -1, "warp": lane, "role": "warp", "clock": 0}
        end_lane = 0 if name == "flight" else lane
        spans.append(
            key(
                span_id=number,
                lane=lane,
                end_lane=end_lane,
                **where,
                span=name,
                tile=-1,
                iteration=iteration,
                t0=base + t0,
                t1=base + t1,
                complete=complete,
                category="range",
            )
        )
    spans[3]["t1"] = base + 96
    return {
        "captures": [key(kind="traced", kernel="copy", completeness="complete", lost_events=0)],
        "launches": [key(launch=0, kernel="copy", kind="traced", tool="iket", status="ok", native_id="7")],
        "lanes": lanes,
        "clocks": [key(clock=0, scope="device", unit="ns", step_ticks=32, width_bits=64, wraps=0)],
        "roles": [key(role="warp", kind="other", display_order=0)],
        "span_types": [
            key(role="warp", span="load", state="active", resource="lsu", loop="once"),
            key(role="warp", span="flight", state="async", resource="dram", loop="once"),
        ],
        "spans": spans,
        "edges": [
            key(edge_id=0, kind="flow", native_id="f1", from_lane=1, from_span_id=2, from_t=base + 64, to_lane=-1)
        ],
    }


def predictions(capture: str = A) -> Rows:
    """A budget: two resources in total, one of them split over the roles that drive it."""

    def row(resource: str, role: str, work: float, rate: float, **more: Any) -> Row:
        return {
            "capture_id": capture,
            "resource": resource,
            "role": role,
            "loop": "k",
            "work": work,
            "work_unit": "flop",
            "rate": rate,
            "rate_unit": "flop/cycle",
            "cycles": work / rate,
            "formula": "2*M*N*K",
            "kind": "throughput",
            "rate_source": "made up",
            "dtype": "bf16",
            **more,
        }

    return {
        "captures": [{"capture_id": capture, "kind": "predicted", "completeness": "unknown"}],
        "roles": [{"capture_id": capture, "role": "mma", "kind": "mma", "display_order": 0}],
        "predictions": [
            row("tensor", "", 2_097_152.0, 4096.0, is_bottleneck=True, idle_lower_bound=0.0),
            row("tensor", "mma", 1_048_576.0, 4096.0),
            row("smem", "", 16_384.0, 128.0, idle_lower_bound=0.75),
        ],
    }


def metrics(capture: str = A) -> Rows:
    """Counter values with numbers, text and every way to have no number."""
    rows = [
        {
            "name": "sm__cycles_elapsed.max",
            "value": 12345.0,
            "text": "12,345",
            "unit": "cycle",
            "base_value": 12345.0,
            "base_unit": "cycle",
        },
        {
            "name": "gpu__time_duration.sum",
            "value": 1.117344,
            "text": "1.117344",
            "unit": "ms",
            "base_value": 1117344.0,
            "base_unit": "ns",
        },
    ]
    for number, reason in enumerate(v for v in vocabularies()["null_reason"]["values"] if v):
        rows.append({"name": f"absent_{number}", "text": reason, "null_reason": reason})
    common = {"capture_id": capture, "launch": 0, "tool": "ncu", "scope": "kernel", "section": "", "ordinal": 0}
    return {
        "captures": [{"capture_id": capture, "kind": "profiled", "completeness": "unknown"}],
        "launches": [
            {"capture_id": capture, "launch": 0, "kernel": "gemm", "kind": "profiled", "tool": "ncu", "status": "ok"}
        ],
        "metrics": [{**common, **row} for row in rows],
        "rules": [
            {
                "capture_id": capture,
                "launch": 0,
                "section": "SpeedOfLight",
                "rule": "SOLBottleneck",
                "rule_index": 0,
                "type": "OPT",
                "description": "made up",
                "speedup_type": "global",
                "speedup": 12.5,
            }
        ],
    }


def every_table() -> Rows:
    """At least one row in every table."""
    tables = anchored()
    spans = stored_spans(B)
    for part in (spans, metrics(capture_id("c")), predictions(capture_id("d"))):
        for name, rows in part.items():
            tables.setdefault(name, []).extend(rows)
    tables["findings"] = [
        {
            "capture_id": A,
            "kind": "conclusion",
            "subject": "consumer",
            "verdict": "producer_late",
            "value": 0.5,
            "unit": "1",
            "expected": 0.25,
            "text": "made up",
            "evidence": '{"view": "wait", "row": 1}',
            "confidence": 0.75,
        }
    ]
    tables["attributes"] = [
        {
            "capture_id": A,
            "table_name": "captures",
            "row_key": "",
            "name": "import.records_kept",
            "type": "int",
            "value": "24",
        },
        {"capture_id": A, "table_name": "lanes", "row_key": "1", "name": "note", "type": "text", "value": "elected"},
    ]
    return tables


def merge(*parts: Rows) -> Rows:
    """Rows of several bundles together."""
    tables: Rows = {}
    for part in parts:
        for name, rows in part.items():
            tables.setdefault(name, []).extend(deepcopy(rows))
    return tables
