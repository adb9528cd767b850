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
        "hostile names": bundle_of([(0, name, 10 * i, 10 * i + 5) for i, name in enumerate(HOSTILE)]),
        "many lanes": bundle_of([(i, "a", i, i + 5) for i in range(2000)], lanes=2000, ctas=1),
        "cycles": bundle_of([(0, "a", 1000, 1020), (0, "b", 1015, 1030)], unit="cycle"),
    }
