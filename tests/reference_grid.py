"""Reference for the views of a grid: CTAs, SMs and launches on one axis. See ``reference``."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import reference_clocks

Row = dict[str, Any]
Tables = dict[str, list[Row]]
PARTS = ("extent", "stall", "active", "untracked", "blocked", "satisfied", "unjudged")


def cta_cluster(tables: Tables, lanes: dict[int, Row]) -> list[Row]:
    launches = {k["launch"]: k for k in tables["launches"]}
    rows = []
    for launch, cta in sorted({(x["launch"], x["cta"]) for x in lanes.values() if x["cta"] >= 0}):
        row = {"launch": launch, "cta": cta, "cluster": -1, "cluster_ctas": 1}
        k = launches.get(launch)
        if k:
            grid, cluster = ([k[f"{what}_{axis}"] for axis in "xyz"] for what in ("grid", "cluster"))
            known = min(grid) > 0 and min(cluster) > 0 and not any(g % c for g, c in zip(grid, cluster, strict=True))
            size = cluster[0] * cluster[1] * cluster[2]
            if known and size > 1:
                at = (cta % grid[0], cta // grid[0] % grid[1], cta // (grid[0] * grid[1]))
                x, y, z = (a // c for a, c in zip(at, cluster, strict=True))
                row["cluster"] = x + grid[0] // cluster[0] * (y + grid[1] // cluster[1] * z)
                row["cluster_ctas"] = size
        rows.append(row)
    return rows


def cta_ns(
    tables: Tables, lanes: dict[int, Row], windows: dict[int, Row], segments: list[Row], clusters: list[Row]
) -> list[Row]:
    clocks = {c["clock"]: c for c in tables["clocks"]}
    rows = []
    for c in clusters:
        mine = {n: x for n, x in lanes.items() if (x["launch"], x["cta"]) == (c["launch"], c["cta"])}
        life = [x for x in mine.values() if x["kind"] == "cta" and x["t_start"] >= 0 and x["t_end"] >= x["t_start"]]
        seen = [(mine[n]["clock"], windows[n]) for n in mine if n in windows]
        row = {"launch": c["launch"], "cta": c["cta"], "sm": max(x["sm"] for x in mine.values()), "clock": -1}
        row |= {"basis": "", "t_start": None, "t_end": None}
        if life and len({x["clock"] for x in life}) == 1:
            row |= {"sm": min(x["sm"] for x in life), "clock": life[0]["clock"], "basis": "lifetime"}
            row |= {"t_start": min(x["t_start"] for x in life), "t_end": max(x["t_end"] for x in life)}
        elif len({clock for clock, _ in seen}) == 1:
            row |= {"clock": seen[0][0], "basis": "points", "t_start": min(w["t_first"] for _, w in seen)}
            row["t_end"] = max(w["t_last_point"] for _, w in seen)
        placed(row, segments, clocks.get(row["clock"]))
        row["ticks"] = None if row["t_start"] is None else row["t_end"] - row["t_start"]
        row["cluster"] = c["cluster"]
        rows.append(row)
    for launch in {r["launch"] for r in rows}:
        on_sms([r for r in rows if r["launch"] == launch])
        for reference in {r["reference_clock"] for r in rows if r["launch"] == launch}:
            in_order([r for r in rows if r["launch"] == launch and r["reference_clock"] == reference])
    return rows


def placed(row: Row, segments: list[Row], clock: Row | None) -> None:
    row |= dict.fromkeys(("reference_clock", "start_ns", "end_ns", "duration_ns", "error_ns"))
    if clock is None:
        return
    step = clock["step_ticks"] if clock["step_ticks"] > 0 else None
    pieces = reference_clocks.map_of(segments, row["clock"], row["launch"])
    if pieces:
        row["reference_clock"] = pieces[0]["reference_clock"]
    elif clock["unit"] == "ns":
        row["reference_clock"] = row["clock"]
    if row["t_start"] is None or row["reference_clock"] is None:
        return
    if pieces:
        ends = [reference_clocks.placed(pieces, row[name], step) for name in ("t_start", "t_end")]
        row |= {"start_ns": ends[0]["ns"], "end_ns": ends[1]["ns"]}
        if all(e["error"] is not None for e in ends):
            row["error_ns"] = max(e["error"] + e["wander"] for e in ends)
    else:
        row |= {"start_ns": row["t_start"], "end_ns": row["t_end"], "error_ns": None if step is None else float(step)}
    row["duration_ns"] = row["end_ns"] - row["start_ns"]


def on_sms(ctas: list[Row]) -> None:
    """Order and company on each SM, and waves, of one launch."""
    for r in ctas:
        r |= {"sm_order": -1, "residents": -1, "wave": -1}
        if r["sm"] < 0 or r["t_start"] is None:
            continue
        same = [x for x in ctas if (x["sm"], x["clock"]) == (r["sm"], r["clock"]) and x["t_start"] is not None]
        r["sm_order"] = sum((x["t_start"], x["cta"]) < (r["t_start"], r["cta"]) for x in same)
        if r["t_end"] > r["t_start"]:
            r["residents"] = sum(
                x["t_end"] > r["t_start"] and (x["t_start"], x["cta"]) <= (r["t_start"], r["cta"]) for x in same
            )
    most = max((r["residents"] for r in ctas), default=-1)
    for r in ctas:
        if most > 0 and r["sm_order"] >= 0 and r["residents"] > 0:
            r["wave"] = r["sm_order"] // most


def in_order(ctas: list[Row]) -> None:
    """Ranks by start and end, and who may be last, of one launch on one axis."""
    names = ("start_order", "end_order", "start_after_ns", "end_before_ns", "may_be_last")
    timed = [r for r in ctas if r["start_ns"] is not None]
    first = min((r["start_ns"] for r in timed), default=0)
    surely = max((r["end_ns"] - first - r["error_ns"] for r in timed if r["error_ns"] is not None), default=None)
    for r in ctas:
        r |= dict.fromkeys(names)
        if r["start_ns"] is None:
            continue
        r["start_order"] = 1 + sum((x["start_ns"], x["cta"]) < (r["start_ns"], r["cta"]) for x in timed)
        r["end_order"] = 1 + sum((x["end_ns"], x["cta"]) < (r["end_ns"], r["cta"]) for x in timed)
        r["start_after_ns"] = r["start_ns"] - first
        r["end_before_ns"] = max(x["end_ns"] for x in timed) - r["end_ns"]
        if r["error_ns"] is not None:
            r["may_be_last"] = r["end_ns"] - first + r["error_ns"] >= surely


def cta_state(states: list[Row], waits: list[Row], windows: dict[int, Row]) -> list[Row]:
    groups: dict[Any, list[Row]] = defaultdict(list)
    for s in states:
        if s["cta"] is not None and s["cta"] >= 0:
            groups[s["launch"], s["cta"]].append(s)
    rows = []
    for (launch, cta), mine in groups.items():
        row = {"launch": launch, "cta": cta, "lanes": len(mine)}
        inside = [
            w for w in waits if (w["launch"], w["cta"]) == (launch, cta) and w["t1"] <= windows[w["lane"]]["t_last"]
        ]
        for name in PARTS:
            row[name] = (
                sum(w[name + "_ticks"] for w in inside)
                if name in ("blocked", "satisfied", "unjudged")
                else sum(s[name] for s in mine)
            )
        for name in ("stall", "active", "untracked", "blocked"):
            row[name + "_share"] = row[name] / row["extent"] if row["extent"] else None
        rows.append(row)
    return rows


def grid_cta(ctas: list[Row], states: list[Row]) -> list[Row]:
    found = {(s["launch"], s["cta"]): s for s in states}
    none = {"lanes": 0, **dict.fromkeys(PARTS, 0)}
    none |= dict.fromkeys(f"{name}_share" for name in ("stall", "active", "untracked", "blocked"))
    return [{**c, **found.get((c["launch"], c["cta"]), none)} for c in ctas]


def rate(segments: list[Row], launch: int, clock: int) -> float | None:
    mine = [s for s in segments if (s["launch"], s["clock"]) == (launch, clock)]
    ticks = sum(float(s["t_last"] - s["t_first"]) for s in mine)
    ns = sum(float(s["t_last"] - s["t_first"]) * s["ns_per_tick"] for s in mine)
    return 1e9 * ticks / ns if ns > 0 else None


def grid_sm(ctas: list[Row], states: list[Row], segments: list[Row]) -> list[Row]:
    found = {(s["launch"], s["cta"]): s for s in states}
    groups: dict[Any, list[Row]] = defaultdict(list)
    for c in ctas:
        if c["sm"] >= 0 and c["t_start"] is not None:
            groups[c["launch"], c["sm"], c["clock"], c["reference_clock"]].append(c)
    rows = []
    for (launch, sm, clock, reference), mine in groups.items():
        covered: set[int] = set()
        for c in mine:
            covered |= set(range(c["t_start"], c["t_end"]))
        errors = [c["error_ns"] for c in mine]
        timed = [c for c in mine if c["start_ns"] is not None]
        row = {"launch": launch, "sm": sm, "clock": clock, "reference_clock": reference, "ctas": len(mine)}
        row |= {"first_ns": min((c["start_ns"] for c in timed), default=None), "resident_ticks": len(covered)}
        row |= {"last_ns": max((c["end_ns"] for c in timed), default=None), "hz": rate(segments, launch, clock)}
        row["error_ns"] = None if None in errors else max(errors)
        row["idle_end_ns"] = min((c["end_before_ns"] for c in timed), default=None)
        held = [found[launch, c["cta"]] for c in mine if (launch, c["cta"]) in found]
        extent = sum(s["extent"] for s in held)
        for name in ("stall", "active", "untracked", "blocked"):
            row[name + "_share"] = sum(s[name] for s in held) / extent if extent else None
        rows.append(row)
    return rows


def grid_launch(tables: Tables, ctas: list[Row], segments: list[Row]) -> list[Row]:
    launches = {k["launch"]: k for k in tables["launches"]}
    groups: dict[Any, list[Row]] = defaultdict(list)
    for c in ctas:
        if c["start_ns"] is not None:
            groups[c["launch"], c["reference_clock"]].append(c)
    rows = []
    for (launch, reference), mine in groups.items():
        k = launches.get(launch)
        sized = k is not None and min(k["grid_x"], k["grid_y"], k["grid_z"]) > 0
        start, end = min(c["start_ns"] for c in mine), max(c["end_ns"] for c in mine)
        errors = [c["error_ns"] for c in mine]
        first = [c["start_after_ns"] for c in mine if c["wave"] == 0]
        last = [c for c in mine if c["end_before_ns"] == 0]
        idle: dict[Any, int] = {}
        for c in mine:
            if c["sm"] >= 0:
                place = (c["sm"], c["clock"])
                idle[place] = min(c["end_before_ns"], idle.get(place, c["end_before_ns"]))
        rates = [hz for _, clock in idle if (hz := rate(segments, launch, clock)) is not None]
        sms = len({sm for sm, _ in idle})
        judged = [c["may_be_last"] for c in mine]
        rows.append(
            {"launch": launch, "reference_clock": reference, "kind": k["kind"] if k else ""}
            | {"kernel": (k["kernel"] or "") if k else "", "ctas": len(mine), "sms": sms, "start_ns": start}
            | {"grid_ctas": k["grid_x"] * k["grid_y"] * k["grid_z"] if k and sized else -1}
            | {"end_ns": end, "duration_ns": end - start, "error_ns": None if None in errors else max(errors)}
            | {"start_spread_ns": max(first, default=None), "tail_ns": max(idle.values(), default=None)}
            | {"tail_share": sum(idle.values()) / (sms * float(end - start)) if sms and end > start else None}
            | {"waves": max(c["wave"] for c in mine) + 1, "residents": max(c["residents"] for c in mine)}
            | {"last_cta": max(c["cta"] for c in last), "last_sm": max(c["sm"] for c in last)}
            | {"last_is_certain": None if None in judged else sum(judged) == 1}
            | {"hz_low": min(rates, default=None), "hz_high": max(rates, default=None)}
        )
    for row in rows:
        before = [
            r
            for r in rows
            if r["reference_clock"] == row["reference_clock"]
            and (r["start_ns"], r["launch"]) < (row["start_ns"], row["launch"])
        ]
        row |= dict.fromkeys(("previous_launch", "gap_before_ns", "gap_error_ns"))
        if before:
            row["previous_launch"] = max(before, key=lambda r: (r["start_ns"], r["launch"]))["launch"]
            row["gap_before_ns"] = row["start_ns"] - max(r["end_ns"] for r in before)
            known = [r["error_ns"] for r in before if r["error_ns"] is not None]
            if known and row["error_ns"] is not None:
                row["gap_error_ns"] = row["error_ns"] + max(known)
    return rows
