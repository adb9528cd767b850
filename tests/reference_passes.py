"""Reference for the combined picture of passes: see ``reference``. Every span is placed on its own."""

from __future__ import annotations

from collections import Counter, defaultdict
from math import floor
from typing import Any

Row = dict[str, Any]
Tables = dict[str, list[Row]]


def pass_span(tables: Tables, points: list[Row], spans: list[Row], perturbations: list[Row]) -> list[Row]:
    """The view pass_span of one capture."""
    lanes = known_lanes(tables, perturbations)
    mine = [p for p in points if p["lane"] in lanes]
    origins = origin(tables, lanes, mine)
    families: dict[Any, list[int]] = defaultdict(list)
    for lane, facts in lanes.items():
        families[facts["trip_count"], facts["grid_ctas"], facts["unit"]].append(lane)
    rows = []
    for members in families.values():
        rows += one_family(tables, {x: lanes[x] for x in members}, mine, spans, origins)
    return rows


def known_lanes(tables: Tables, perturbations: list[Row]) -> dict[int, Row]:
    """Lanes with a role of launches of a pass, with what is known of the launch."""
    units = {c["clock"]: c["unit"] for c in tables["clocks"]}
    found: dict[int, Row] = {}
    counts: Counter[Any] = Counter()
    for lane in sorted(tables["lanes"], key=lambda x: int(x["lane"])):
        for k in tables["launches"]:
            if k["launch"] != lane["launch"] or k["pass"] < 0 or k["status"] == "failed" or k["kind"] == "clean":
                continue
            if lane["cta"] < 0 or not lane["role"]:
                continue
            counts[lane["launch"], lane["cta"], lane["warp"], lane["role"]] += 1
            sizes = [k[f"grid_{axis}"] for axis in "xyz"]
            facts = {
                **{name: lane[name] for name in ("launch", "cta", "warp", "role", "clock")},
                "pass": k["pass"],
                "trip_count": k["trip_count"],
                "grid_ctas": sizes[0] * sizes[1] * sizes[2] if min(sizes) > 0 else -1,
                "unit": units.get(lane["clock"], "tick"),
                "member": counts[lane["launch"], lane["cta"], lane["warp"], lane["role"]],
                "perturbation": None,
            }
            for p in perturbations:
                alike = all(p[name] == facts[name] for name in ("pass", "grid_ctas", "unit"))
                if alike and (p["kind"], p["slots"], p["preference"]) == (k["kind"], k["slots"], 1):
                    facts["perturbation"] = p["perturbation"]
            found[lane["lane"]] = facts
    return found


def origin(tables: Tables, lanes: dict[int, Row], points: list[Row]) -> dict[Any, int]:
    """Start of each CTA on each clock, by launch, CTA and clock: as recorded, else its first point."""
    first: dict[Any, list[int]] = defaultdict(list)
    for p in points:
        at = lanes[p["lane"]]
        first[at["launch"], at["cta"], at["clock"]].append(p["t"])
    recorded: dict[Any, list[int]] = defaultdict(list)
    for x in tables["lanes"]:
        if x["kind"] == "cta" and x["t_start"] >= 0:
            recorded[x["launch"], x["cta"], x["clock"]].append(x["t_start"])
    return {key: min(recorded.get(key, ts)) for key, ts in first.items()}


def order(facts: Row) -> tuple[bool, int, int, int]:
    """The launch that disturbs least comes first."""
    p = facts["perturbation"]
    return p is None, 0 if p is None else floor(abs(p) * 1e6 + 0.5), facts["pass"], facts["launch"]


def one_family(
    tables: Tables, lanes: dict[int, Row], points: list[Row], spans: list[Row], origins: dict[Any, int]
) -> list[Row]:
    loops = {}
    for s in tables["span_types"]:
        loops[s["role"], s["span"] + ".begin"] = (s["loop"], 2**31 - 1)
    for e in tables["event_types"]:
        loops[e["role"], e["event"]] = (e["loop"], e["event_index"])
    at: dict[Any, list[int]] = defaultdict(list)
    kinds: dict[int, set[Any]] = defaultdict(set)
    for p in points:
        facts = lanes.get(p["lane"])
        if facts is None or p["role"] != facts["role"]:
            continue
        at[p["lane"], p["event"], p["iteration"]].append(p["t"])
        if loops.get((p["role"], p["event"]), ("once", 0))[0] != "once":
            kinds[facts["launch"]].add((p["role"], p["event"]))
    of_launch = {facts["launch"]: facts for facts in lanes.values()}
    base = min(kinds, key=lambda n: (-len(kinds[n]), *order(of_launch[n])), default=-1)
    starts = {r["role"]: r["iteration_event"] for r in tables["roles"]}

    def place(lane: Row) -> tuple[Any, ...]:
        return lane["cta"], lane["warp"], lane["role"], lane["member"]

    base_lane = {place(facts): lane for lane, facts in lanes.items() if facts["launch"] == base}

    def align(lane: int, loop: str, iteration: int) -> tuple[str, int, int] | None:
        """Event, its time in the lane's launch, and in the base launch since its CTA's origin."""
        facts = lanes[lane]
        shared = [
            (event != starts.get(role), loops[role, event][1], event)
            for role, event in kinds[facts["launch"]] & kinds[base]
            if role == facts["role"] and loops[role, event][0] == loop
        ]
        twin = base_lane.get(place(facts))
        if not shared or twin is None:
            return None
        event = min(shared)[2]
        here, there = at[lane, event, iteration], at[twin, event, iteration]
        if len(here) != 1 or len(there) != 1:
            return None
        other = lanes[twin]
        return event, here[0], there[0] - origins[other["launch"], other["cta"], other["clock"]]

    span_loop = {(s["role"], s["span"]): s["loop"] for s in tables["span_types"]}
    same: dict[Any, list[Row]] = defaultdict(list)
    rows = []
    for s in spans:
        if s["lane"] not in lanes or not s["complete"] or s["lane"] != s["end_lane"] or s["iteration"] < 0:
            continue
        facts = lanes[s["lane"]]
        since = s["t0"] - origins[facts["launch"], facts["cta"], facts["clock"]]
        loop = span_loop.get((s["role"], s["span"]), "")
        found = align(s["lane"], loop, s["iteration"])
        x0 = since if found is None else found[2] + s["t0"] - found[1]
        row = {
            **{name: s[name] for name in ("lane", "span", "state", "iteration", "span_id", "t0", "t1")},
            **{name: facts[name] for name in ("launch", "pass", "trip_count", "grid_ctas", "unit", "cta", "warp")},
            **{name: facts[name] for name in ("role", "member", "perturbation")},
            "ticks": s["t1"] - s["t0"],
            "since_start": since,
            "base_launch": base,
            "align_event": found[0] if found else "",
            "since_align": s["t0"] - found[1] if found else None,
            "x0": x0,
            "x1": x0 + s["t1"] - s["t0"],
            "drift": since - x0 if found else None,
        }
        rows.append(row)
        same[place(row), row["span"], row["iteration"]].append(row)
    for alike in same.values():
        chosen = min(alike, key=lambda r: (*order(r), r["span_id"]))
        for row in alike:
            row["launches"] = len(alike)
            row["passes"] = len({r["pass"] for r in alike})
            row["least_ticks"] = min(r["ticks"] for r in alike)
            row["most_ticks"] = max(r["ticks"] for r in alike)
            row["is_chosen"] = row is chosen
    return rows
