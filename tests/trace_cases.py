"""Small bundles with everything that has broken a trace importer somewhere."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from wsformat.bundle import Bundle

HOSTILE = (
    "<script>alert(1)</script>", 'quote " and back \\ slash', "new\nline", "tab\t", "emoji \U0001f680", "عربي",
    "\u202eright to left", "a" * 10_000, "semi;colon", "'single'", "null\x01control",
)  # fmt: skip


def bundle_of(
    rows: Sequence[tuple[int, str, int, int]],
    *,
    lanes: int = 1,
    unit: str = "ns",
    state: str = "active",
    ctas: int = 0,
) -> Bundle:
    """A bundle of stored spans (lane, name, t0, t1) on one clock; one CTA, or a CTA every lane when ``ctas``."""
    names = list(dict.fromkeys(name for _, name, _, _ in rows))
    c = {"capture_id": "c"}
    return Bundle.from_tables(
        {
            "captures": [{**c, "kind": "traced", "kernel": "kernel", "completeness": "complete"}],
            "launches": [{**c, "launch": 0, "kind": "traced", "status": "ok"}],
            "clocks": [{**c, "clock": 0, "scope": "device", "unit": unit, "step_ticks": 1}],
            "roles": [{**c, "role": "r", "kind": "other"}],
            "lanes": [
                {**c, "lane": i, "launch": 0, "cta": i if ctas else 0, "warp": i, "role": "r", "kind": "warp",
                 "clock": 0, "sm": i % 132, "completeness": "complete"}
                for i in range(lanes)
            ],
            "span_types": [{**c, "role": "r", "span": name, "state": state, "loop": "once"} for name in names],
            "spans": [
                {**c, "span_id": n, "lane": lane, "end_lane": lane, "launch": 0, "cta": lane if ctas else 0,
                 "warp": lane, "role": "r", "span": name, "tile": 0, "iteration": n, "clock": 0,
                 "t0": t0, "t1": t1, "complete": True}
                for n, (lane, name, t0, t1) in enumerate(rows)
            ],
        }
    )  # fmt: skip


@cache
def nasty() -> dict[str, Bundle]:
    """The cases by name."""
    epoch = 1_796_004_199_815_867_195
    return {
        "overlap": bundle_of([(0, "a", 10, 20), (0, "b", 15, 30), (0, "c", 18, 22), (0, "d", 40, 41)]),
        "one ns over": bundle_of([(0, "parent", 10, 20), (0, "child", 12, 21)]),
        "equal times": bundle_of([(0, "a", 10, 20), (0, "b", 10, 20), (0, "c", 10, 15), (0, "d", 20, 30)]),
        "zero length": bundle_of([(0, "a", 10, 10), (0, "b", 10, 20), (0, "c", 20, 20), (0, "d", 15, 15)]),
        "touching": bundle_of([(0, "a", 10, 20), (0, "b", 20, 30), (0, "c", 30, 40)]),
        "epoch": bundle_of([(0, "a", epoch, epoch + 7), (0, "b", epoch + 8, epoch + 9)]),
        "beyond 2^53": bundle_of([(0, "a", 2**53 + 1, 2**53 + 3), (0, "b", 2**62, 2**62 + 1)]),
        "deep": bundle_of([(0, "a", i, 2000 - i) for i in range(600)]),
        "512 deep, 600 at one time": bundle_of([(0, "a", 5, 5)] * 600 + [(0, "b", i, 2000 - i) for i in range(512)]),
        "hostile names": bundle_of([(0, name, 10 * i, 10 * i + 5) for i, name in enumerate(HOSTILE)]),
        "many lanes": bundle_of([(i, "a", i, i + 5) for i in range(2000)], lanes=2000, ctas=1),
        "cycles": bundle_of([(0, "a", 1000, 1020), (0, "b", 1015, 1030)], unit="cycle"),
    }


def several_captures() -> Bundle:
    """Two captures of one kernel in one bundle; the first has spans that cross, the second two CTAs."""
    rows = ([(0, "a", 10, 20), (0, "b", 15, 30)], [(0, "a", 50, 60), (1, "a", 55, 70)])
    parts = [bundle_of(rows[0]), bundle_of(rows[1], lanes=2, ctas=1)]
    tables = {}
    for name in parts[0].data:
        tables[name] = [
            row | {"capture_id": label} | ({"label": label} if name == "captures" else {})
            for part, label in zip(parts, ("first", "second"), strict=True)
            for row in part.table(name).to_pylist()
        ]
    return Bundle.from_tables(tables)


def streams() -> Bundle:
    """Host threads and GPU streams outside any launch: recorded arrows, one that lost an end, and values over time."""
    c = {"capture_id": "c"}
    big = 2**53
    lane = {**c, "launch": -1, "cta": -1, "sm": -1, "warp": -1, "role": "unassigned", "clock": 0}
    span = {
        **c,
        "launch": -1,
        "cta": -1,
        "warp": -1,
        "role": "unassigned",
        "clock": 0,
        "iteration": 0,
        "complete": True,
    }
    kind = {**c, "role": "unassigned", "event_index": -1, "loop": "once"}
    point = {**c, "launch": -1, "cta": -1, "sm": -1, "warp": -1, "role": "unassigned", "clock": 0, "lane": 1, "tile": 0}
    return Bundle.from_tables(
        {
            "captures": [{**c, "kind": "traced", "label": "a run", "completeness": "unknown"}],
            "clocks": [{**c, "clock": 0, "scope": "host", "unit": "ns", "step_ticks": 1}],
            "roles": [{**c, "role": "unassigned", "kind": "other"}],
            "lanes": [
                {**lane, "lane": 0, "kind": "stream", "name": "2", "process_id": 9, "thread_id": 2},
                {**lane, "lane": 1, "kind": "stream", "name": "7", "process_id": 9, "thread_id": 7},
                {**lane, "lane": 2, "kind": "host_thread", "name": "251", "process_id": 251, "thread_id": 251},
                {**lane, "lane": 3, "kind": "host_thread", "name": "loader \U0001f680", "process_id": 251,
                 "thread_id": 0},
            ],
            "event_types": [
                {**kind, "event": "queue depth", "payload_type": "int"},
                {**kind, "event": "note", "payload_type": "text"},
            ],
            "span_types": [
                {**c, "role": "unassigned", "span": name, "state": "scope", "loop": "once"} for name in "kl"
            ],
            "spans": [
                {**span, "span_id": big + 1, "lane": 2, "end_lane": 2, "span": "l", "t0": 100, "t1": 140},
                {**span, "span_id": big + 2, "lane": 0, "end_lane": 0, "span": "k", "t0": 150, "t1": 400},
                {**span, "span_id": big + 3, "lane": 1, "end_lane": 1, "span": "k", "t0": 120, "t1": 130},
                {**span, "span_id": 5, "lane": 3, "end_lane": 3, "span": "l", "t0": 90, "t1": 95},
            ],
            "events": [
                {**point, "event": "queue depth", "iteration": 0, "t": 110, "payload": "3"},
                {**point, "event": "queue depth", "iteration": 1, "t": 125, "payload": "0"},
                {**point, "event": "note", "iteration": 0, "t": 126, "payload": 'said "no" \U0001f680'},
            ],
            "edges": [
                # forwards; backwards in time; into no span; an end that the source lost
                {**c, "edge_id": 0, "kind": "ac2g", "from_lane": 2, "from_span_id": big + 1, "from_t": 110,
                 "to_lane": 0, "to_span_id": big + 2, "to_t": 150},
                {**c, "edge_id": 1, "kind": "ac2g", "from_lane": 2, "from_span_id": big + 1, "from_t": 135,
                 "to_lane": 1, "to_span_id": big + 3, "to_t": 120},
                {**c, "edge_id": 2, "kind": "ac2g", "from_lane": 3, "from_span_id": 5, "from_t": 92,
                 "to_lane": 0, "to_span_id": -1, "to_t": 145},
                {**c, "edge_id": 3, "kind": "ac2g", "from_lane": -1, "from_span_id": -1, "from_t": -1,
                 "to_lane": 0, "to_span_id": big + 2, "to_t": 150},
            ],
        }
    )  # fmt: skip
