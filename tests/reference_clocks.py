"""Reference for clocks, lifetimes and perturbation: see ``reference``."""

from __future__ import annotations

from collections import defaultdict
from math import floor
from statistics import median
from typing import Any

Row = dict[str, Any]
Tables = dict[str, list[Row]]


def clock_map(tables: Tables) -> list[Row]:
    units = {c["clock"]: c["unit"] for c in tables["clocks"]} | {-1: "ns"}
    groups: dict[Any, list[Row]] = defaultdict(list)
    for a in tables["clock_anchors"]:
        groups[a["launch"], a["clock"], a["reference_clock"]].append(a)
    rows = []
    for (launch, clock, reference), anchors in groups.items():
        anchors.sort(key=lambda a: (a["t"], a["reference_t"]))
        a, b = anchors[0], anchors[-1]
        rate = None
        if units.get(reference) == "ns":
            if b["t"] > a["t"]:
                rate = float(b["reference_t"] - a["reference_t"]) / float(b["t"] - a["t"])
            elif units.get(clock) == "ns":
                rate = 1.0
        error = None
        if rate is not None and all(x["error_ns"] is not None for x in anchors):
            error = max(
                x["error_ns"] + abs(float(x["reference_t"] - a["reference_t"]) - float(x["t"] - a["t"]) * rate)
                for x in anchors
            )
        rows.append(
            {
                "launch": launch,
                "clock": clock,
                "reference_clock": reference,
                "t_first": a["t"],
                "t_last": b["t"],
                "ns_first": a["reference_t"],
                "ns_last": b["reference_t"],
                "anchors": len(anchors),
                "ns_per_tick": rate,
                "error_ns": error,
            }
        )
    return rows


def timeline_ns(tables: Tables, spans: list[Row], maps: list[Row]) -> list[Row]:
    clocks = {c["clock"]: c for c in tables["clocks"]}

    def chosen(clock: int, launch: int) -> Row | None:
        fits = [m for m in maps if m["clock"] == clock and m["launch"] == launch and m["ns_per_tick"] is not None]
        return min(fits, key=lambda m: (m["reference_clock"] < 0, m["reference_clock"]), default=None)

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
        line = None
        if s["launch"] is not None:
            line = (chosen(s["clock"], s["launch"]) if s["launch"] >= 0 else None) or chosen(s["clock"], -1)
        if line:
            for name, t in (("ns0", s["t0"]), ("ns1", s["t1"])):
                row[name] = line["ns_first"] + floor(float(t - line["t_first"]) * line["ns_per_tick"] + 0.5)
            beyond = max(line["t_first"] - s["t0"], s["t1"] - line["t_last"], 0)
            error = line["error_ns"]
            if error is not None and step is not None:
                length = line["t_last"] - line["t_first"]
                row["error_ns"] = (
                    error + (2 * error * beyond / length if beyond and length else 0.0) + step * line["ns_per_tick"]
                )
            else:
                row["error_ns"] = None
            row |= {"reference_clock": line["reference_clock"], "extrapolated": beyond > 0}
        elif clock and clock["unit"] == "ns":
            row |= {"reference_clock": s["clock"], "ns0": s["t0"], "ns1": s["t1"], "extrapolated": False}
            row["error_ns"] = None if step is None else float(step)
        else:
            row |= dict.fromkeys(("reference_clock", "ns0", "ns1", "error_ns", "extrapolated"))
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
