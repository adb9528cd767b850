"""What a trace of a bundle must show, by plain loops over the bundle's views."""

from __future__ import annotations

import math
from collections import defaultdict
from pathlib import Path

from wsformat.bundle import Bundle
from wsformat.converters.registry import import_files
from wsformat.samples import names as sample_names
from wsformat.samples import path as sample_path

Slice = tuple[str, str, int, int]
CONFORMANCE = Path(__file__).parent.parent / "conformance" / "samples"


def samples() -> dict[str, Bundle]:
    """Every bundle with times that ships: those of the corpus, and the package's raw buffers, imported."""
    found = {path.stem: Bundle.open(path) for path in sorted(CONFORMANCE.glob("*.wsformat"))}
    for name in sample_names():
        stem, _, kind = name.rpartition(".")
        if kind in ("i32", "npy"):
            spec = "cute_roles.json" if "cute" in name else "gemm_roles.json"
            options = {"spec": str(sample_path(spec)), "allow_unwritten": True}
            if f"{stem}.meta" in sample_names():
                options |= {"meta": [str(sample_path(f"{stem}.meta"))]}
            found[stem] = import_files([sample_path(name)], options)
    return {name: bundle for name, bundle in found.items() if bundle.rows("events") + bundle.rows("spans")}


def moments(bundle: Bundle) -> tuple[str, dict[tuple[str, int], tuple[int, float, int]]]:
    """The axis, and per lane (tick, ns a tick, time at that tick): anchors where every lane has them, else zeros."""
    maps: dict[tuple[str, int, int], tuple[int, float, int]] = {}
    order = sorted(
        bundle.sql("SELECT * FROM clock_map WHERE ns_per_tick IS NOT NULL").to_pylist(),
        key=lambda m: (m["reference_clock"] < 0, m["reference_clock"]),
        reverse=True,
    )
    for m in order:
        maps[m["capture_id"], m["launch"], m["clock"]] = (m["t_first"], m["ns_per_tick"], m["ns_first"])
    units = {(c["capture_id"], c["clock"]): c["unit"] for c in bundle.table("clocks").to_pylist()}
    used = {(p["capture_id"], p["lane"]) for p in bundle.sql("SELECT capture_id, lane FROM point").to_pylist()}
    lanes = [lane for lane in bundle.table("lanes").to_pylist() if (lane["capture_id"], lane["lane"]) in used]
    found: dict[tuple[str, int], tuple[int, float, int]] = {}
    for lane in lanes:
        c, clock = lane["capture_id"], lane["clock"]
        own = maps.get((c, lane["launch"], clock)) or maps.get((c, -1, clock))
        if own is None and units[c, clock] == "ns":
            own = (0, 1.0, 0)
        if own is not None:
            found[c, lane["lane"]] = own
    if len(found) == len(lanes):
        return "ns", found
    home = {(lane["capture_id"], lane["lane"]): (lane["capture_id"], lane["launch"], lane["cta"], lane["clock"])
            for lane in lanes}  # fmt: skip
    first: dict[tuple[str, int, int, int], int] = {}
    for p in bundle.sql("SELECT capture_id, lane, t FROM point").to_pylist():
        where = home[p["capture_id"], p["lane"]]
        first[where] = min(first.get(where, p["t"]), p["t"])
    return "tick", {key: (first[where], 1.0, 0) for key, where in home.items()}


class Truth:
    """Slices, counters and arrows of a bundle on the trace's axis."""

    def __init__(self, bundle: Bundle) -> None:
        self.bundle = bundle
        self.axis, self.maps = moments(bundle)
        with bundle.duckdb() as connection:
            self.spans, self.intervals, self.signals = (
                connection.sql(f"SELECT * FROM {view}").to_arrow_table().to_pylist()
                for view in ("span", "state_interval", "signal")
            )
        times = [self.at(e["capture_id"], e["lane"], e["t"]) for e in bundle.table("events").to_pylist()]
        times += [s for _, _, s, _ in self.slices()]
        self.base = min(times)

    def at(self, capture: str, lane: int, t: int) -> int:
        """Time of a tick of a lane."""
        tick, rate, ns = self.maps[capture, lane]
        return ns + (t - tick if rate == 1 else math.floor((t - tick) * rate + 0.5))

    def slices(self, *, untracked: bool = False, shift: int = 0) -> list[Slice]:
        """(name, category, begin, length) of every span, and of untracked intervals when asked for."""
        rows = list(self.spans)
        if untracked:
            rows += [{**i, "span": "untracked"} for i in self.intervals if i["state"] == "untracked"]
        found = []
        for r in rows:
            begin, end = (self.at(r["capture_id"], r["lane"], r[t]) for t in ("t0", "t1"))
            found.append((r["span"], r["state"], begin - shift, end - begin))
        return sorted(found)

    def markers(self, shift: int = 0) -> list[tuple[str, int]]:
        """(name, time) of every stamp that begins or ends no kind of span."""
        types = self.bundle.table("span_types").to_pylist()
        ends = {(s["capture_id"], s["role"], s[end]) for s in types for end in ("begin_event", "end_event")}
        return sorted(
            (e["event"], self.at(e["capture_id"], e["lane"], e["t"]) - shift)
            for e in self.bundle.table("events").to_pylist()
            if (e["capture_id"], e["role"], e["event"]) not in ends
        )

    def counters(self, shift: int = 0) -> list[tuple[str, int, int]]:
        """(name, time, lanes) at every change of the number of active or stalled lanes of a CTA."""
        lanes = {(lane["capture_id"], lane["lane"]): lane for lane in self.bundle.table("lanes").to_pylist()}
        deltas: dict[tuple[str, int, int, str], dict[int, int]] = defaultdict(lambda: defaultdict(int))
        for i in self.intervals:
            if i["state"] == "untracked":
                continue
            lane = lanes[i["capture_id"], i["lane"]]
            if lane["cta"] < 0:
                continue
            key = (i["capture_id"], lane["launch"], lane["cta"], i["state"])
            for t, delta in ((i["t0"], 1), (i["t1"], -1)):
                deltas[key][self.at(i["capture_id"], i["lane"], t) - shift] += delta
        found = []
        for (*_, state), steps in deltas.items():
            value = 0
            for t in sorted(steps):
                if steps[t]:
                    value += steps[t]
                    found.append(("active lanes" if state == "active" else "stalled lanes", t, value))
        return sorted(found)

    def arrows(self) -> list[tuple[str, bool]]:
        """(name, binding) of every declared edge with a signal."""
        return sorted((r["barrier"] or r["producer_event"], r["is_binding"]) for r in self.signals)
