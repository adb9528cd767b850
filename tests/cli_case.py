"""A bundle small enough to check by hand, for the tests of the command line.

Two roles and a ring of two stages, eight iterations of 100 cycles. In iteration i (cycles, from BASE):

    producer   wait [100i, 100i+10]     work [100i+10, 100i+60]
    consumer   wait [100i+50, 100i+70]  work [100i+70, 100i+120]

producer.work_end signals the consumer's wait of the same iteration; consumer.work_end signals the producer's wait two
iterations later.
"""

from __future__ import annotations

from typing import Any

from wsformat.bundle import Bundle

CAPTURE = "c0ffee00000000000000000001"
BASE = 2**53 + 12_345  # beyond what a double holds: a lost digit shows
TRIPS = 8

STATES = {
    "producer": {"extent": 760, "stall": 80, "active": 400, "untracked": 280, "blocked": 0, "satisfied": 80},
    "consumer": {"extent": 770, "stall": 160, "active": 400, "untracked": 210, "blocked": 80, "satisfied": 80},
}
OVERLAP = {"cycles": 70, "a_cycles": 400, "b_cycles": 400, "union_cycles": 730}
SPANS = {
    "producer": {"wait": (0, 10), "work": (10, 60)},
    "consumer": {"wait": (50, 70), "work": (70, 120)},
}


def tables(capture: str = CAPTURE, label: str = "tiny", launches: int = 1) -> dict[str, list[dict[str, Any]]]:
    """Rows of every table that the bundle has."""
    here = {"capture_id": capture}
    roles = list(SPANS)
    events: list[dict[str, Any]] = []
    lanes: list[dict[str, Any]] = []
    for launch in range(launches):
        for role in roles:
            lane = len(lanes)
            at = {**here, "lane": lane, "launch": launch, "cta": 0, "sm": 7, "role": role, "clock": 0}
            lanes.append(
                {**at, "kind": "thread", "completeness": "complete", "records_expected": 32, "records_kept": 32}
                | {"records_lost": 0, "wraps": 0, "warp": -1}
            )
            for span, ends in SPANS[role].items():
                for end, offset in zip(("begin", "end"), ends, strict=True):
                    events += [
                        {**at, "event": f"{span}_{end}", "iteration": i, "tile": 0, "t": BASE + 100 * i + offset}
                        for i in range(TRIPS)
                    ]
    edge = {**here, "producer_event": "work_end", "consumer_event": "wait_end", "producer_step": 1, "consumer_step": 1}
    edge |= {"mechanism": "arrive", "completion": "signal", "scope": "cta"}
    return {
        "captures": [
            {**here, "kind": "stamped", "kernel": "ring", "label": label, "device": "NVIDIA H200", "arch": "sm_90a"}
            | {"completeness": "complete", "lost_events": 0, "source_format": "made_by_hand"}
        ],
        "launches": [
            {**here, "launch": n, "kernel": "ring", "kind": "stamped", "tool": "stamps", "trip_count": TRIPS}
            | {"slots": TRIPS, "status": "ok", "grid_x": 1, "grid_y": 1, "grid_z": 1}
            for n in range(launches)
        ],
        "lanes": lanes,
        "clocks": [
            {**here, "clock": 0, "scope": "sm", "unit": "cycle", "sm": 7, "step_ticks": 1, "width_bits": 64, "wraps": 0}
        ],
        "roles": [
            {**here, "role": role, "role_index": n, "kind": role, "iteration_event": "wait_begin", "display_order": n}
            | {"resource": "tma" if role == "producer" else "tensor"}
            for n, role in enumerate(roles)
        ],
        "event_types": [
            {**here, "role": role, "event": f"{span}_{end}", "event_index": 2 * s + e, "loop": "main"}
            for role in roles
            for s, span in enumerate(SPANS[role])
            for e, end in enumerate(("begin", "end"))
        ],
        "span_types": [
            {**here, "role": role, "span": span, "begin_event": f"{span}_begin", "end_event": f"{span}_end"}
            | {"state": "stall" if span == "wait" else "active", "loop": "main"}
            | {"wait_on": "barrier" if span == "wait" else ""}
            | {"barrier": ("empty" if role == "producer" else "full") if span == "wait" else ""}
            | {"resource": ("tma" if role == "producer" else "tensor") if span == "work" else ""}
            for role in roles
            for span in SPANS[role]
        ],
        "dependencies": [
            {**edge, "producer_role": "producer", "consumer_role": "consumer", "iteration_lag": 0, "barrier": "full"},
            {**edge, "producer_role": "consumer", "consumer_role": "producer", "iteration_lag": 2, "barrier": "empty"},
        ],
        "attributes": [
            {**here, "table_name": "captures", "row_key": "", "name": "import.records_kept", "type": "int"}
            | {"value": str(len(events))}
        ],
        "events": events,
    }


def bundle(**options: Any) -> Bundle:
    """The bundle in memory."""
    return Bundle.from_tables(tables(**options))
