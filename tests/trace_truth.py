"""What a trace of a bundle must show, by plain loops over the bundle's views."""

from __future__ import annotations

import math
from collections import defaultdict
from pathlib import Path
from typing import Any

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


Pieces = list[tuple[int, float, int]]
"""Lines of a map in order: (first tick, ns a tick, ns at that tick)."""
VIEWS = ("point", "span", "state_interval", "signal", "clock_segment")


def moments(rows: dict[str, list[dict[str, Any]]]) -> tuple[str, dict[tuple[str, int], Pieces]]:
    """The axis, and per lane the lines of its map: anchors where every lane has them, else zeros."""
    maps: dict[tuple[str, int, int], Pieces] = defaultdict(list)
    for m in sorted(rows["clock_segment"], key=lambda m: m["segment"]):
        maps[m["capture_id"], m["launch"], m["clock"]].append((m["t_first"], m["ns_per_tick"], m["ns_first"]))
    units = {(c["capture_id"], c["clock"]): c["unit"] for c in rows["clocks"]}
    used = {(p["capture_id"], p["lane"]) for p in rows["point"]}
    lanes = [lane for lane in rows["lanes"] if (lane["capture_id"], lane["lane"]) in used]
    found: dict[tuple[str, int], Pieces] = {}
    for lane in lanes:
        c, clock = lane["capture_id"], lane["clock"]
        own = maps.get((c, lane["launch"], clock)) or maps.get((c, -1, clock))
        if own is None and units[c, clock] == "ns":
            own = [(0, 1.0, 0)]
        if own is not None:
            found[c, lane["lane"]] = own
    if len(found) == len(lanes):
        return "ns", found
    home = {(lane["capture_id"], lane["lane"]): (lane["capture_id"], lane["launch"], lane["cta"], lane["clock"])
            for lane in lanes}  # fmt: skip
    first: dict[tuple[str, int, int, int], int] = {}
    for p in rows["point"]:
        where = home[p["capture_id"], p["lane"]]
        first[where] = min(first.get(where, p["t"]), p["t"])
    return "tick", {key: [(first[where], 1.0, 0)] for key, where in home.items()}


class Truth:
    """Slices, counters and arrows of a bundle on the trace's axis."""

    def __init__(self, bundle: Bundle) -> None:
        with bundle.duckdb(only=VIEWS) as connection:
            rows = {view: connection.sql(f"SELECT * FROM {view}").to_arrow_table().to_pylist() for view in VIEWS}
        rows |= {table: bundle.table(table).to_pylist() for table in ("lanes", "clocks", "events", "span_types")}
        self.rows = rows
        self.axis, self.maps = moments(rows)
        self.spans, self.intervals, self.signals = (rows[view] for view in ("span", "state_interval", "signal"))
        times = [self.at(p["capture_id"], p["lane"], p["t"]) for p in rows["point"]]
        self.recorded: list[tuple[str, bool]] = []
        """(kind, False) of every arrow that the source recorded with both ends."""
        edges = bundle.table("edges").to_pylist()
        for e in edges:
            ends = [((e["capture_id"], e[f"{end}_lane"]), e[f"{end}_t"]) for end in ("from", "to")]
            if all(lane in self.maps for lane, _ in ends):
                self.recorded.append((e["kind"], False))
                times += [self.at(*lane, t) for lane, t in ends]
        self.lost_ends = len(edges) - len(self.recorded)
        self.base = min(times)

    def at(self, capture: str, lane: int, t: int) -> int:
        """Time of a tick of a lane."""
        pieces = self.maps[capture, lane]
        tick, rate, ns = [p for p in pieces if p[0] <= t][-1] if t >= pieces[0][0] else pieces[0]
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
        types = self.rows["span_types"]
        ends = {(s["capture_id"], s["role"], s[end]) for s in types for end in ("begin_event", "end_event")}
        return sorted(
            (e["event"], self.at(e["capture_id"], e["lane"], e["t"]) - shift)
            for e in self.rows["events"]
            if (e["capture_id"], e["role"], e["event"]) not in ends
        )

    def counters(self, shift: int = 0) -> list[tuple[str, int, int]]:
        """(name, time, lanes) at every change of the number of active or stalled lanes of a CTA."""
        lanes = {(lane["capture_id"], lane["lane"]): lane for lane in self.rows["lanes"]}
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
