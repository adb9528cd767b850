"""Reference for waits and iterations: see ``reference``. Every rule is spelt out, one wait at a time."""

from __future__ import annotations

from collections import defaultdict
from math import ceil, floor
from typing import Any

import reference_cross

Row = dict[str, Any]
Tables = dict[str, list[Row]]


def signal_of(edge: Row, stall: Row, i: int, tables: Tables, points: list[Row], lanes: dict[int, Row]) -> Row | None:
    """The point that releases this wait through this edge, None when it is not there or not known to be the last."""
    own = edge["mechanism"] == "commit" and edge["producer_role"] == edge["consumer_role"]
    name = (edge["producer_role"], edge["producer_event"])
    home = lanes.get(stall["lane"])
    if home is None:
        return None

    def near(lane: int) -> bool:
        if lane not in lanes or (own and lane != stall["lane"]):
            return False
        return all(lanes[lane][k] == home[k] for k in ("launch", "cta", "clock"))

    written = [p for p in points if (p["role"], p["event"]) == name and near(p["lane"])]
    sent = [p for p in written if p["iteration"] == i]
    if not sent:
        return None
    team = [x for lane, x in lanes.items() if near(lane) and x["role"] == edge["producer_role"]]
    unsure = [x for x in team if x["completeness"] != "complete" or x["records_lost"] > 0]
    ours = [p for p in written if lanes[p["lane"]]["role"] == edge["producer_role"]]
    writers = {p["lane"] for p in ours} | {x["lane"] for x in team if x["records_lost"] > 0}
    if not own and len(team) > 1 and unsure and len(sent) < len(writers):
        return None
    last = max(p["t"] for p in sent)
    if len(team) < 2 and not own:
        return {"t": last, "lane": min(p["lane"] for p in sent)}
    return {"t": last, "lane": min(p["lane"] for p in sent if p["t"] == last)}


def edges_of(
    stall: Row, tables: Tables, points: list[Row], lanes: dict[int, Row], segments: list[Row]
) -> tuple[list[Row], bool]:
    """Needed edges of a wait, each with its signal; and whether some edge is free."""
    needed, free = [], False
    for d in tables["dependencies"]:
        if d["consumer_role"] != stall["role"] or d["consumer_event"] != stall["end_event"]:
            continue
        edge = {**d, "i": None, "signal": None}
        if d["producer_step"] <= 0 or d["consumer_step"] <= 0 or stall["iteration"] < 0:
            needed.append(edge)
            continue
        n = d["consumer_step"] * stall["iteration"] - d["iteration_lag"]
        if n % d["producer_step"]:
            continue
        if n < 0:
            free = True
            continue
        if d["scope"] == "cta":
            edge["i"] = n // d["producer_step"]
            edge["signal"] = signal_of(d, stall, edge["i"], tables, points, lanes)
        elif d["scope"] in ("cluster", "device"):
            edge["i"] = n // d["producer_step"]
            edge["signal"] = reference_cross.signal_of(d, stall, edge["i"], tables, points, lanes, segments)
        needed.append(edge)
    return needed, free


def rounded(x: float) -> int:
    return floor(x + 0.5)


def wait(
    tables: Tables, points: list[Row], spans: list[Row], lanes: dict[int, Row], segments: list[Row]
) -> tuple[list[Row], list[Row]]:
    """The views wait and signal."""
    clocks = {c["clock"]: c for c in tables["clocks"]}
    stalls = []
    for s in spans:
        if s["state"] == "stall" and s["complete"] and s["lane"] == s["end_lane"]:
            clock = clocks.get(s["clock"], {"unit": "tick", "step_ticks": -1})
            needed, free = edges_of(s, tables, points, lanes, segments)
            stalls.append(
                {
                    **s,
                    "unit": clock["unit"],
                    "step": max(clock["step_ticks"], 0),
                    "ticks": s["t1"] - s["t0"],
                    "needed": needed,
                    "free": free,
                }
            )

    def kind(w: Row) -> tuple[Any, ...]:
        return w["unit"], w["role"], w["span"]

    for w in stalls:
        alike = [o for o in stalls if (*kind(o), o["end_event"]) == (*kind(w), w["end_event"])]
        tolerance = min(o["ticks"] for o in alike) + max(o["step"] for o in alike)
        for e in w["needed"]:
            e["missing"] = e["signal"] is None
            e["error"] = 0.0 if e["missing"] else e["signal"].get("error", 0.0)
            e["contradicted"] = not e["missing"] and e["signal"]["t"] - w["t1"] > tolerance + e["error"]
            e["release"], inferred = (None, 0.0) if e["missing"] else release(e, alike, tolerance)
            e["ready_error"] = e["error"] + inferred
        w["sound"] = not any(e["missing"] or e["contradicted"] for e in w["needed"])
        w["found"] = all(not e["missing"] for e in w["needed"]) and bool(w["needed"])
        w["order"] = sorted(
            (e for e in w["needed"] if not e["missing"]),
            key=lambda e: (
                -(e["signal"]["t"] + (e["release"] or 0)),
                -e["signal"]["t"],
                e["producer_role"],
                e["producer_event"],
                e["iteration_lag"],
            ),
        )
        cause(w)
    kinds = {(s["role"], s["span"]): s["floor_ticks"] for s in tables["span_types"]}
    for w in stalls:
        judge(w, [o for o in stalls if o["unit"] == w["unit"]], kind, kinds.get((w["role"], w["span"])))
    return [wait_row(w) for w in stalls], [signal_row(w, e) for w in stalls for e in w["order"]]


def release(e: Row, alike: list[Row], tolerance: float) -> tuple[int | None, float]:
    """Ticks from a signal until a wait can end, and their error.

    Declared, or the smallest slack of a wait that surely began before it.
    """
    if e["latency_ticks"] is not None:
        return rounded(e["latency_ticks"]), 0.0

    def shares(x: Row) -> bool:
        if e["completion"] != "async":
            return bool(x["completion"] != "async")
        point = (x["producer_role"], x["producer_event"])
        return x["completion"] == "async" and point == (e["producer_role"], e["producer_event"])

    seen = [
        (o["t1"] - x["signal"]["t"], x["signal"].get("error", 0.0))
        for o in alike
        for x in o["needed"]
        if shares(x) and x["signal"] is not None and x["signal"]["t"] - o["t0"] > x["signal"].get("error", 0.0)
    ]
    slacks, error = [slack for slack, _ in seen], max((error for _, error in seen), default=0.0)
    if slacks and min(slacks) < -tolerance - error:
        slacks = [slack for slack in slacks if slack >= 0]
    return min(slacks) if slacks else None if e["completion"] == "async" else 0, error


def cause(w: Row) -> None:
    """Why the wait lasted, before its length is looked at."""
    w["binding"] = w["order"][0] if w["found"] else None
    w["reason"] = ""
    if not w["needed"]:
        w["cause"] = "free" if w["free"] else "unknown"
        w["reason"] = "no edge"
        return
    if not w["sound"] or any(e["release"] is None for e in w["needed"]):
        w["cause"] = "unknown"
        w["reason"] = "contradicted" if any(e["contradicted"] for e in w["needed"]) else "release unknown"
        if not w["found"]:
            w["reason"] = "no signal"
        return
    if all(w["t0"] - e["signal"]["t"] - e["release"] >= e["ready_error"] for e in w["needed"]):
        w["cause"] = "not_blocked"
        return
    bind = w["binding"]
    early = w["t0"] - bind["signal"]["t"]
    perhaps = [e for e in w["needed"] if e is bind or may_bind(e, w["needed"])]

    def all_of(test: Any) -> bool:
        return all(test(w["t0"] - e["signal"]["t"], e) for e in perhaps)

    symmetric = {e["mechanism"] == "bar_sync" for e in perhaps}
    were_before = all_of(lambda before, e: before >= e["error"])
    if all_of(lambda before, e: -before > e["error"]):
        w["cause"] = "producer_late"
    elif symmetric == {True} and were_before:
        w["cause"] = "not_blocked"
    elif symmetric == {False} and were_before and bind["release"] - early > bind["ready_error"]:
        w["cause"] = "in_flight"
    else:
        w["cause"] = "unknown"
        w["reason"] = "within clock error"


def may_bind(e: Row, needed: list[Row]) -> bool:
    """Whether this edge may be ready last, within the errors."""
    if not any(o["ready_error"] > 0 for o in needed):
        return False
    ready = e["signal"]["t"] + e["release"]
    # Ticks are subtracted before an error meets them.
    return all(
        float(ready - o["signal"]["t"] - o["release"]) + e["ready_error"] + o["ready_error"] >= 0 for o in needed
    )


def judge(w: Row, same_unit: list[Row], kind: Any, calibrated: float | None) -> None:
    satisfied = [o for o in same_unit if o["cause"] in ("free", "not_blocked")]
    costs = [o["ticks"] for o in satisfied if kind(o) == kind(w)] or [o["ticks"] for o in satisfied]
    known = rounded(calibrated) if calibrated is not None and calibrated >= 0 else min(costs) if costs else None
    w["floor"] = known or 0
    w["verdict"] = w["cause"]
    if w["cause"] != "unknown" and known is not None:
        ready = 0.0
        if w["cause"] in ("producer_late", "in_flight"):
            ready = max(e["signal"]["t"] - w["t0"] + e["release"] + e["ready_error"] for e in w["needed"])
        after = w["t1"] - w["t0"] - ready
        if 2 * after > w["ticks"] and after > 16 * (known + w["step"]):
            w["verdict"] = "other"
    w["blocked"] = w["unjudged"] = 0
    if w["verdict"] == "unknown":
        w["unjudged"] = w["ticks"]
    elif w["verdict"] in ("producer_late", "in_flight", "other"):
        w["blocked"] = max(0, w["ticks"] - w["floor"])


def wait_row(w: Row) -> Row:
    names = ("lane", "launch", "cta", "warp", "role", "span", "barrier", "iteration", "span_id", "clock", "t0", "t1")
    bind = w["binding"]
    signal = bind["signal"]["t"] if bind else None
    return {
        **{name: w[name] for name in (*names, "ticks")},
        "edges": len(w["needed"]),
        "producer_role": bind["producer_role"] if bind else "",
        "producer_event": bind["producer_event"] if bind else "",
        "producer_iteration": bind["i"] if bind else None,
        "producer_lane": bind["signal"]["lane"] if bind else -1,
        "signal_t": signal,
        "late": None if signal is None else signal - w["t0"],
        "slack": None if signal is None else w["t1"] - signal,
        "release_ticks": bind["release"] if bind and w["cause"] != "unknown" else None,
        "wait_floor": w["floor"],
        "verdict": w["verdict"],
        "blocked_ticks": w["blocked"],
        "satisfied_ticks": w["ticks"] - w["blocked"] - w["unjudged"],
        "unjudged_ticks": w["unjudged"],
        "error_ticks": bind["error"] if bind else None,
        "reason": w["reason"] if w["verdict"] == "unknown" else "",
    }


def signal_row(w: Row, e: Row) -> Row:
    return {
        "launch": w["launch"],
        "cta": w["cta"],
        "clock": w["clock"],
        "producer_lane": e["signal"]["lane"],
        **{name: e[name] for name in ("producer_role", "producer_event", "mechanism", "completion", "scope")},
        "producer_iteration": e["i"],
        "signal_t": e["signal"]["t"],
        "consumer_lane": w["lane"],
        "consumer_role": w["role"],
        "consumer_event": w["end_event"],
        "consumer_iteration": w["iteration"],
        "span": w["span"],
        "span_id": w["span_id"],
        "t0": w["t0"],
        "t1": w["t1"],
        "barrier": w["barrier"],
        "release_ticks": e["release"],
        "is_binding": e is w["binding"],
        "error_ticks": e["error"],
    }


def nearest_rank(values: list[int], part: float) -> int:
    return sorted(values)[max(1, ceil(len(values) * part)) - 1]


def role_summary(tables: Tables, states: list[Row], waits: list[Row], windows: dict[int, Row]) -> list[Row]:
    groups: dict[Any, list[Row]] = defaultdict(list)
    for s in states:
        groups[s["launch"], s["role"]].append(s)
    rows = []
    for (launch, role), lanes in groups.items():
        mine = {
            s["lane"]: [w for w in waits if w["lane"] == s["lane"] and w["t1"] <= windows[s["lane"]]["t_last"]]
            for s in lanes
        }
        inside = [w for ws in mine.values() for w in ws]
        parts = {name: sum(s[name] for s in lanes) for name in ("stall", "active", "untracked")}
        for name in ("blocked", "satisfied", "unjudged"):
            parts[name] = sum(w[name + "_ticks"] for w in inside)
        extent = sum(s["extent"] for s in lanes)
        recorded = [s for s in lanes if s["extent"] > 0]
        row = {
            "launch": launch,
            "role": role,
            "lanes": len(lanes),
            "lanes_recorded": len(recorded),
            "ctas": len({s["cta"] for s in lanes} - {None}),
            "extent": extent,
            **parts,
            "waits": len(inside),
            "waits_blocked": sum(w["blocked_ticks"] > 0 for w in inside),
            "contains_wait": any(
                s["contains_wait"] and s["state"] == "active" and s["role"] == role for s in tables["span_types"]
            ),
        }
        for name, ticks in parts.items():
            row[name + "_share"] = ticks / extent if extent else None
        for name in ("stall", "active", "blocked"):
            shares = [
                (sum(w["blocked_ticks"] for w in mine[s["lane"]]) if name == "blocked" else s[name]) / s["extent"]
                for s in recorded
            ]
            row[f"least_{name}_share"] = min(shares, default=None)
            row[f"most_{name}_share"] = max(shares, default=None)
        rows.append(row)
    return rows


def wait_summary(waits: list[Row]) -> list[Row]:
    key = ("launch", "role", "span", "barrier", "producer_role", "producer_event")
    groups: dict[Any, list[Row]] = defaultdict(list)
    for w in waits:
        groups[tuple(w[name] for name in key)].append(w)
    rows = []
    for names, mine in groups.items():
        row = dict(zip(key, names, strict=True))
        row["waits"] = len(mine)
        for verdict in ("free", "not_blocked", "producer_late", "in_flight", "other", "unknown"):
            row[f"waits_{verdict}"] = sum(w["verdict"] == verdict for w in mine)
        for name in ("ticks", "blocked_ticks", "satisfied_ticks", "unjudged_ticks"):
            row[name] = sum(w[name] for w in mine)
        for name in ("ticks", "blocked_ticks"):
            row[f"median_{name}"] = nearest_rank([w[name] for w in mine], 0.5)
            row[f"max_{name}"] = max(w[name] for w in mine)
        row["min_slack"] = min((w["slack"] for w in mine if w["slack"] is not None), default=None)
        rows.append(row)
    return rows


def iteration(tables: Tables, points: list[Row], lanes: dict[int, Row]) -> list[Row]:
    rows = []
    for r in tables["roles"]:
        depths = [2]
        for d in tables["dependencies"]:
            if d["producer_step"] > 0 and d["consumer_step"] > 0:
                if d["consumer_role"] == r["role"]:
                    depths.append(ceil(d["iteration_lag"] / d["consumer_step"]))
                if d["producer_role"] == r["role"]:
                    depths.append(ceil(d["iteration_lag"] / d["producer_step"]))
        s = max(depths)
        starts: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        for p in points:
            if r["iteration_event"] and (p["role"], p["event"]) == (r["role"], r["iteration_event"]):
                starts[p["lane"]][p["iteration"]].append(p["t"])
        for lane, found in starts.items():
            at = {i: ts[0] for i, ts in found.items() if len(ts) == 1}
            if not at:
                continue
            first, end = min(at), max(at) + 1
            for i in at:
                if i + 1 in at:
                    where = {
                        k: lanes[lane][k] if lane in lanes else None for k in ("launch", "cta", "warp", "role", "clock")
                    }
                    rows.append(
                        {
                            "lane": lane,
                            **where,
                            "iteration": i,
                            "t": at[i],
                            "ticks": at[i + 1] - at[i],
                            "steady_first": first + s,
                            "steady_end": end - s,
                            "steady": end - first >= 4 * s and first + s <= i < end - s,
                        }
                    )
    return rows


def iteration_summary(intervals: list[Row]) -> list[Row]:
    groups: dict[Any, list[Row]] = defaultdict(list)
    for x in intervals:
        if x["steady"]:
            groups[x["launch"], x["role"]].append(x)
    rows = []
    for (launch, role), mine in groups.items():
        ticks = [x["ticks"] for x in mine]
        rows.append(
            {
                "launch": launch,
                "role": role,
                "method": "start_to_start",
                "steady_first": min(x["steady_first"] for x in mine),
                "steady_end": max(x["steady_end"] for x in mine),
                "lanes": len({x["lane"] for x in mine}),
                "samples": len(mine),
                "mean_ticks": sum(ticks) / len(ticks),
                "min_ticks": min(ticks),
                "q1_ticks": nearest_rank(ticks, 0.25),
                "median_ticks": nearest_rank(ticks, 0.5),
                "q3_ticks": nearest_rank(ticks, 0.75),
                "max_ticks": max(ticks),
            }
        )
    return rows
