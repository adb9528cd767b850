"""Reference for clocks, lifetimes and perturbation: see ``reference``."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from itertools import accumulate, pairwise
from math import floor
from statistics import median
from typing import Any

Row = dict[str, Any]
Tables = dict[str, list[Row]]


WANDER = 0.15
"""How much the rate of a clock of core cycles may differ from its mean between two anchors, where nothing checks it."""


def bounded_nodes(anchors: list[Row]) -> tuple[int, list[Row], bool]:
    """Origin, nodes (t, low, high, middle relative to it) in order of time, and whether all have bounds."""
    anchors = sorted(anchors, key=lambda a: (a["t"], a["reference_t"]))
    origin = anchors[0]["reference_t"]
    bounded = all(a["error_ns"] is not None for a in anchors)
    nodes = []
    for t in sorted({a["t"] for a in anchors}):
        mine = [a for a in anchors if a["t"] == t]
        if not bounded:
            nodes.append({"t": t, "middle": float(min(a["reference_t"] for a in mine) - origin), "agrees": True})
            continue
        lows = [float(a["reference_t"] - origin) - a["error_ns"] for a in mine]
        highs = [float(a["reference_t"] - origin) + a["error_ns"] for a in mine]
        agrees = max(lows) <= min(highs)
        low, high = (max(lows), min(highs)) if agrees else (min(lows), max(highs))
        nodes.append({"t": t, "low": low, "high": high, "middle": (low + high) / 2, "agrees": agrees})
    return origin, nodes, bounded


def lines_within(nodes: list[Row]) -> tuple[Fraction, Fraction, Fraction, Fraction] | None:
    """Least and greatest value at the first and at the last node of all lines within the bounds, None when none fits.

    Corner by corner: two bounds that a line touches fix it, and the extremes are such lines.
    """
    limits = [(n["t"] - nodes[0]["t"], Fraction(n["low"]), Fraction(n["high"])) for n in nodes]
    length = limits[-1][0]
    slack = Fraction(1, 10**6)
    found = []
    for i, (x0, *touch0) in enumerate(limits):
        for x1, *touch1 in limits[i + 1 :]:
            for y0 in touch0:
                for y1 in touch1:
                    slope = (y1 - y0) / (x1 - x0)
                    if all(low - slack <= y0 + slope * (x - x0) <= high + slack for x, low, high in limits):
                        found.append((y0 - slope * x0, y0 + slope * (length - x0)))
    if not found:
        return None
    firsts, lasts = [f[0] for f in found], [f[1] for f in found]
    return min(firsts), max(firsts), min(lasts), max(lasts)


def clock_map(tables: Tables) -> list[Row]:
    """The rows of clock_map, each with what clock_segment is made of under names that begin with '_'."""
    units = {c["clock"]: c["unit"] for c in tables["clocks"]} | {-1: "ns"}
    groups: dict[Any, list[Row]] = defaultdict(list)
    for a in tables["clock_anchors"]:
        groups[a["launch"], a["clock"], a["reference_clock"]].append(a)
    rows = []
    for (launch, clock, reference), anchors in groups.items():
        origin, nodes, bounded = bounded_nodes(anchors)
        first, last = floor(nodes[0]["middle"] + 0.5), floor(nodes[-1]["middle"] + 0.5)
        straight: bool | None = None
        fit = None
        if bounded and len(nodes) > 1:
            fit = lines_within(nodes) if all(n["agrees"] for n in nodes) else None
            straight = fit is not None
        if fit:
            first, last = floor((fit[0] + fit[1]) / 2 + Fraction(1, 2)), floor((fit[2] + fit[3]) / 2 + Fraction(1, 2))
        if last < first:
            # Time does not run back: level, half way.
            first = last = floor(Fraction(first + last, 2) + Fraction(1, 2))
        length = nodes[-1]["t"] - nodes[0]["t"]
        rate = None
        if units.get(reference) == "ns":
            rate = float(last - first) / float(length) if length else 1.0 if units.get(clock) == "ns" else None
        error = wander = None
        if rate is not None:
            gap = max((b["t"] - a["t"] for a, b in pairwise(nodes)), default=0)
            wander = 0.0
            if units.get(clock) == "cycle" and length:
                if straight is False:
                    wander = WANDER * float(gap) / 2 * rate
                elif straight is None or 3 * gap > 2 * length:
                    # Anchors at its ends only do not show that the rate was constant.
                    wander = WANDER * float(length) / 2 * rate
        if rate is not None and bounded:
            line = [first + float(n["t"] - nodes[0]["t"]) * rate for n in nodes]
            error = max(max(n["high"] - y, y - n["low"]) for n, y in zip(nodes, line, strict=True))
        rows.append(
            {
                "launch": launch,
                "clock": clock,
                "reference_clock": reference,
                "t_first": nodes[0]["t"],
                "t_last": nodes[-1]["t"],
                "ns_first": origin + first,
                "ns_last": origin + last,
                "anchors": len(anchors),
                "ns_per_tick": rate,
                "error_ns": error,
                "is_straight": None if rate is None else straight,
                "wander_ns": wander,
                "_nodes": nodes,
                "_origin": origin,
            }
        )
    return rows


def clock_segment(maps: list[Row]) -> list[Row]:
    """The pieces of each map that is used."""
    rows = []
    for launch, clock in sorted({(m["launch"], m["clock"]) for m in maps}):
        fits = [m for m in maps if (m["launch"], m["clock"]) == (launch, clock) and m["ns_per_tick"] is not None]
        if not fits:
            continue
        m = min(fits, key=lambda m: (m["reference_clock"] < 0, m["reference_clock"]))
        common = {"launch": launch, "clock": clock, "reference_clock": m["reference_clock"]}
        common["wander"] = WANDER if m["wander_ns"] > 0 else 0.0
        if m["is_straight"] is not False:
            names = ("t_first", "t_last", "ns_first", "ns_per_tick", "error_ns")
            rows.append({**common, "segment": 0, "segments": 1, **{name: m[name] for name in names}})
            continue
        # Time does not run back: no node is placed before an earlier one, nor can it lie before the low of one.
        at = list(accumulate((floor(n["middle"] + 0.5) for n in m["_nodes"]), max))
        half = [max(high - y, y - low) for y, (low, high) in zip(at, possible(m["_nodes"]), strict=True)]
        for k, (a, b) in enumerate(pairwise(m["_nodes"])):
            rows.append(
                {
                    **common,
                    "segment": k,
                    "segments": len(at) - 1,
                    "t_first": a["t"],
                    "t_last": b["t"],
                    "ns_first": m["_origin"] + at[k],
                    "ns_per_tick": float(at[k + 1] - at[k]) / float(b["t"] - a["t"]),
                    "error_ns": max(half[k], half[k + 1]),
                }
            )
    return rows


def possible(nodes: list[Row]) -> list[tuple[float, float]]:
    """Between which times each node lies, when time does not run back; between all that they say where they differ."""
    found = []
    for k, node in enumerate(nodes):
        before, after = nodes[: k + 1], nodes[k:]
        if max(n["low"] for n in before) > min(n["high"] for n in after):
            found.append((min(n["low"] for n in after), max(n["high"] for n in before)))
        else:
            found.append((max(n["low"] for n in before), node["high"]))
    return found


def map_of(segments: list[Row], clock: int, launch: int | None) -> list[Row]:
    """The pieces that place a tick of this clock in this launch, none when nothing does."""
    for holder in (launch, -1):
        if launch is not None and holder is not None:
            pieces = [s for s in segments if (s["clock"], s["launch"]) == (clock, holder)]
            if pieces and (holder >= 0 or holder == -1):
                return pieces
    return []


def placed(pieces: list[Row], t: int, step: int | None) -> Row:
    """A tick in ns: ns, error, wander, whether it lies outside the anchors, and the piece's rate."""
    piece = ([p for p in pieces if p["t_first"] <= t] or pieces[:1])[-1]
    rate, length = piece["ns_per_tick"], piece["t_last"] - piece["t_first"]
    beyond = max(piece["t_first"] - t, t - piece["t_last"], 0)
    far = beyond or min(t - piece["t_first"], piece["t_last"] - t)
    error = None
    if piece["error_ns"] is not None and step is not None:
        error = (
            piece["error_ns"] + (2 * piece["error_ns"] * beyond / length if beyond and length else 0.0) + step * rate
        )
    return {
        "ns": piece["ns_first"] + floor(float(t - piece["t_first"]) * rate + 0.5),
        "error": error,
        "wander": piece["wander"] * float(far) * rate,
        "beyond": beyond > 0,
        "rate": rate,
        "segment": piece["segment"],
    }


def moment_segment(tables: Tables, points: list[Row], segments: list[Row], lanes: dict[int, Row]) -> list[Row]:
    moments = {(p["lane"], p["t"]) for p in points} | {(s["lane"], s["t1"]) for s in tables["spans"]}
    found = set()
    for lane, t in moments:
        if lane in lanes:
            pieces = map_of(segments, lanes[lane]["clock"], lanes[lane]["launch"])
            if len(pieces) > 1:
                found.add((pieces[0]["launch"], pieces[0]["clock"], t, placed(pieces, t, None)["segment"]))
    return [dict(zip(("launch", "clock", "t", "segment"), row, strict=True)) for row in found]


def timeline_ns(tables: Tables, spans: list[Row], segments: list[Row]) -> list[Row]:
    clocks = {c["clock"]: c for c in tables["clocks"]}
    names = (
        "lane",
        "launch",
        "cta",
        "warp",
        "role",
        "span",
        "state",
        "iteration",
        "span_id",
        "complete",
        "clock",
        "t0",
        "t1",
    )
    rows = []
    for s in spans:
        row = {name: s[name] for name in names}
        clock = clocks.get(s["clock"])
        step = clock["step_ticks"] if clock and clock["step_ticks"] > 0 else None
        pieces = map_of(segments, s["clock"], s["launch"])
        if len(pieces) == 1:
            # One line: what lies farther outside the anchors decides for both ends.
            line = pieces[0]
            ends = [placed(pieces, s["t0"], step), placed(pieces, s["t1"], step)]
            beyond = max(line["t_first"] - s["t0"], s["t1"] - line["t_last"], 0)
            length, error = line["t_last"] - line["t_first"], line["error_ns"]
            row["error_ns"] = None
            if error is not None and step is not None:
                grown = 2 * error * beyond / length if beyond and length else 0.0
                row["error_ns"] = error + grown + step * line["ns_per_tick"]
            row["extrapolated"] = beyond > 0
        elif pieces:
            ends = [placed(pieces, s["t0"], step), placed(pieces, s["t1"], step)]
            row["error_ns"] = None if step is None else max(e["error"] for e in ends)
            row["extrapolated"] = any(e["beyond"] for e in ends)
        if pieces:
            row |= {"reference_clock": pieces[0]["reference_clock"], "ns0": ends[0]["ns"], "ns1": ends[1]["ns"]}
            row["wander_ns"] = max(e["wander"] for e in ends)
        elif clock and clock["unit"] == "ns":
            row |= {"reference_clock": s["clock"], "ns0": s["t0"], "ns1": s["t1"], "extrapolated": False}
            row |= {"error_ns": None if step is None else float(step), "wander_ns": 0.0}
        else:
            unplaced = ("reference_clock", "ns0", "ns1", "error_ns", "extrapolated", "wander_ns")
            row |= dict.fromkeys(unplaced)
        rows.append(row)
    return rows


def lifetime(tables: Tables, lanes: dict[int, Row]) -> list[Row]:
    launches = {k["launch"]: k for k in tables["launches"]}
    units = {c["clock"]: c["unit"] for c in tables["clocks"]}
    rows = []
    for x in lanes.values():
        if x["kind"] != "cta" or x["t_start"] < 0 or x["t_end"] < x["t_start"]:
            continue
        k = launches.get(
            x["launch"], {"kind": "", "pass": -1, "trip_count": -1, "slots": -1, "status": "", "grid_x": -1}
        )
        known = k["grid_x"] > 0 and k["grid_y"] > 0 and k["grid_z"] > 0
        rows.append(
            {
                "launch": x["launch"],
                "cta": x["cta"],
                "sm": x["sm"],
                "clock": x["clock"],
                "unit": units.get(x["clock"], "tick"),
                "kind": k["kind"],
                "pass": k["pass"],
                "trip_count": k["trip_count"],
                "slots": -1 if k["kind"] == "clean" else k["slots"],
                "status": k["status"],
                "grid_ctas": k["grid_x"] * k["grid_y"] * k["grid_z"] if known else -1,
                "ticks": x["t_end"] - x["t_start"],
            }
        )
    return rows


ALIKE = ("kind", "pass", "trip_count", "slots", "grid_ctas", "unit")


def launch_lifetime(lifetimes: list[Row]) -> list[Row]:
    groups: dict[Any, list[int]] = defaultdict(list)
    for x in lifetimes:
        if x["status"] != "failed":
            groups[x["launch"], *(x[name] for name in ALIKE)].append(x["ticks"])
    return [
        {"launch": key[0], **dict(zip(ALIKE, key[1:], strict=True)), "ctas": len(ticks), "ticks": float(median(ticks))}
        for key, ticks in groups.items()
    ]


def lifetime_median(launches: list[Row]) -> list[Row]:
    groups: dict[Any, list[float]] = defaultdict(list)
    for x in launches:
        groups[tuple(x[name] for name in ALIKE)].append(x["ticks"])
    return [
        {**dict(zip(ALIKE, key, strict=True)), "launches": len(ticks), "ticks": median(ticks)}
        for key, ticks in groups.items()
    ]


def fits(row: Row) -> bool:
    return row["trip_count"] > 0 and (row["slots"] < 0 or row["trip_count"] <= row["slots"])


def slope(medians: list[Row]) -> list[Row]:
    key = tuple(name for name in ALIKE if name != "trip_count")
    groups: dict[Any, list[Row]] = defaultdict(list)
    for m in medians:
        if fits(m):
            groups[tuple(m[name] for name in key)].append(m)
    rows = []
    for names, mine in groups.items():
        mine.sort(key=lambda m: m["trip_count"])
        if len(mine) >= 2:
            low, high = mine[-2:]
            rate = (high["ticks"] - low["ticks"]) / (high["trip_count"] - low["trip_count"])
            rows.append(
                {
                    **dict(zip(key, names, strict=True)),
                    "trips_low": low["trip_count"],
                    "trips_high": high["trip_count"],
                    "launches_low": low["launches"],
                    "launches_high": high["launches"],
                    "slope_ticks": rate,
                    "fixed_ticks": high["ticks"] - high["trip_count"] * rate,
                }
            )
    return rows


def perturbation(launches: list[Row], captures: list[Row]) -> list[Row]:
    """Over all captures: clean launches of one experiment on one device are one sample."""
    of = {c["capture_id"]: (c["experiment"] or ("alone", c["capture_id"]), c["device"]) for c in captures}
    clean: dict[Any, list[float]] = defaultdict(list)
    recorded: dict[Any, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for x in launches:
        if x["capture_id"] not in of:
            continue
        if x["kind"] == "clean":
            clean[of[x["capture_id"]], x["trip_count"], x["grid_ctas"], x["unit"]].append(x["ticks"])
        elif x["kind"] in ("stamped", "traced") and fits(x):
            key = (x["capture_id"], x["kind"], x["pass"], x["slots"], x["grid_ctas"], x["unit"])
            recorded[key][x["trip_count"]].append(x["ticks"])
    rows = []
    for key, by_trips in recorded.items():
        names = dict(zip(("capture_id", "kind", "pass", "slots", "grid_ctas", "unit"), key, strict=True))
        shared = {n: clean.get((of[key[0]], n, key[4], key[5])) for n in sorted(by_trips, reverse=True)}
        trips = [n for n, ticks in shared.items() if ticks]
        found = []
        if len(trips) >= 2:
            high, low = trips[:2]
            sides = [(median(side[high]) - median(side[low])) / (high - low) for side in (by_trips, shared)]
            counts = [min(len(side[high]), len(side[low])) for side in (by_trips, shared)]
            found.append(("slope", low, high, *sides, *counts))
        for n in trips:
            found.append(("lifetime", n, n, median(by_trips[n]), median(shared[n]), len(by_trips[n]), len(shared[n])))
        found = [x for x in found if x[4] > 0]
        for rank, (method, low, high, ticks, base, launches_, clean_launches) in enumerate(found, 1):
            rows.append(
                {
                    **names,
                    "method": method,
                    "trips_low": low,
                    "trips_high": high,
                    "ticks": ticks,
                    "clean_ticks": base,
                    "launches": launches_,
                    "clean_launches": clean_launches,
                    "perturbation": ticks / base - 1,
                    "preference": rank,
                }
            )
    return rows
