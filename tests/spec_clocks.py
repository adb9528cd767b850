"""Chapter 7.1 of ``spec.md`` and its signals from other CTAs (10.2) in plain Python. See spec_reading."""

from __future__ import annotations

from itertools import pairwise
from math import floor
from typing import Any

Row = dict[str, Any]
Piece = dict[str, Any]


def rounded(x: float) -> int:
    return floor(x + 0.5)


class Axis:
    """The maps of one capture."""

    def __init__(self, rows: dict[str, list[Row]]) -> None:
        self.clocks = {row["clock"]: row for row in rows["clocks"]}
        self.maps: dict[tuple[int, int], list[Piece]] = {}
        self.heard: dict[tuple[Any, ...], tuple[dict[int, Row], list[Row], int]] = {}
        keys = {(a["launch"], a["clock"], a["reference_clock"]) for a in rows["clock_anchors"]}
        # The smallest reference from 0 on is used, Unix time last.
        for launch, clock, reference in sorted(keys, key=lambda k: (k[2] < 0, k[2])):
            anchors = [
                a
                for a in rows["clock_anchors"]
                if (a["launch"], a["clock"], a["reference_clock"]) == (launch, clock, reference)
            ]
            if (launch, clock) not in self.maps and (reference == -1 or self.unit(reference) == "ns"):
                pieces = self.pieces(anchors, self.unit(clock))
                if pieces:
                    self.maps[launch, clock] = [p | {"reference": reference} for p in pieces]

    def unit(self, clock: int) -> str:
        return str(self.clocks.get(clock, {"unit": "tick"})["unit"])

    def pieces(self, anchors: list[Row], unit: str) -> list[Piece]:
        """Line of these anchors, in pieces; none when there is no map."""
        anchors = sorted(anchors, key=lambda a: (a["t"], a["reference_t"]))
        o, known = anchors[0]["reference_t"], all(a["error_ns"] is not None for a in anchors)
        ticks = sorted({a["t"] for a in anchors})
        low, high, middle, agree = [], [], [], True
        for t in ticks:
            at = [a for a in anchors if a["t"] == t]
            if not known:
                middle.append(float(min(a["reference_t"] - o for a in at)))
                continue
            lows = [a["reference_t"] - o - a["error_ns"] for a in at]
            highs = [a["reference_t"] - o + a["error_ns"] for a in at]
            excluded = max(lows) > min(highs)
            agree = agree and not excluded
            low.append(min(lows) if excluded else max(lows))
            high.append(max(highs) if excluded else min(highs))
            middle.append((low[-1] + high[-1]) / 2)
        if len(ticks) == 1:
            error = max(high[0] - rounded(middle[0]), rounded(middle[0]) - low[0]) if known else None
            one = {"t0": ticks[0], "t1": ticks[0], "ns": o + rounded(middle[0]), "rate": 1.0, "error": error}
            return [one | {"wander": 0.0}] if unit == "ns" else []
        straight, ends = None, (middle[0], middle[-1])
        if known:
            limits = self.limits(ticks, low, high)
            straight = agree and limits[0] <= limits[1] + 1e-6 and limits[2] <= limits[3] + 1e-6
            if straight:
                ends = (limits[0] + limits[1]) / 2, (limits[2] + limits[3]) / 2
        a0, a1 = rounded(ends[0]), rounded(ends[1])
        if a1 < a0:
            a0 = a1 = rounded((a0 + a1) / 2)
        length = ticks[-1] - ticks[0]
        rate = (a1 - a0) / length
        checked = straight and all(3 * (b - a) <= 2 * length for a, b in pairwise(ticks))
        wander = 0.0 if unit != "cycle" or checked else 0.15
        if straight is not False:
            line = [a0 + (t - ticks[0]) * rate for t in ticks]
            error = max(max(b - y, y - a) for a, b, y in zip(low, high, line, strict=True)) if known else None
            one = {"t0": ticks[0], "t1": ticks[-1], "ns": o + a0, "rate": rate, "error": error}
            return [one | {"wander": wander if rate > 0 else 0.0}]
        place = [max(rounded(m) for m in middle[: k + 1]) for k in range(len(ticks))]
        off = []
        for k, y in enumerate(place):
            least, most = max(low[: k + 1]), high[k]
            if least > min(high[k:]):
                least, most = min(low[k:]), max(high[: k + 1])
            off.append(max(most - y, y - least))
        return [
            {"t0": ticks[k], "t1": ticks[k + 1], "ns": o + place[k], "wander": wander if rate > 0 else 0.0}
            | {"rate": (place[k + 1] - place[k]) / (ticks[k + 1] - ticks[k]), "error": max(off[k], off[k + 1])}
            for k in range(len(ticks) - 1)
        ]

    @staticmethod
    def limits(ticks: list[int], low: list[float], high: list[float]) -> tuple[float, float, float, float]:
        """L0, H0, L1, H1."""
        found: list[list[float]] = [[], [], [], []]
        for i, ti in enumerate(ticks):
            for j, tj in enumerate(ticks):
                if ti < tj:
                    before, after = (ti - ticks[0]) / (tj - ti), (ticks[-1] - tj) / (tj - ti)
                    found[0].append(low[i] - (high[j] - low[i]) * before)
                    found[1].append(high[i] + (high[i] - low[j]) * before)
                    found[2].append(low[j] - (high[i] - low[j]) * after)
                    found[3].append(high[j] + (high[j] - low[i]) * after)
        return max(found[0]), min(found[1]), max(found[2]), min(found[3])

    def place(self, launch: int, clock: int, t: int) -> tuple[int, float, float, int] | None:
        """ns, bound (error and wander), ns a tick, reference clock; None without a map whose error is known."""
        step = self.clocks.get(clock, {"step_ticks": -1})["step_ticks"]
        pieces = self.maps.get((launch, clock)) or self.maps.get((-1, clock))
        if not pieces or step <= 0:
            return None
        piece = [p for p in pieces if p["t0"] <= t][-1:] or pieces[:1]
        p = piece[0]
        if p["error"] is None:
            return None
        beyond = max(p["t0"] - t, t - p["t1"], 0)
        near = beyond or min(t - p["t0"], p["t1"] - t)
        grown = 2 * p["error"] * beyond / (p["t1"] - p["t0"]) if beyond and p["t1"] > p["t0"] else 0.0
        bound = p["error"] + grown + step * p["rate"] + p["wander"] * p["rate"] * near
        return p["ns"] + rounded((t - p["t0"]) * p["rate"]), bound, p["rate"], p["reference"]


def company(rows: dict[str, list[Row]], scope: str, home: Row) -> list[Row] | None:
    """Lanes of the CTAs whose points count for a wait on this lane; None when a CTA of them has none."""
    launch = next((k for k in rows["launches"] if k["launch"] == home["launch"]), None)
    if launch is None or home["cta"] < 0:
        return None
    grid, cluster = ([launch[f"{of}_{x}"] for x in "xyz"] for of in ("grid", "cluster"))
    if min(grid) <= 0:
        return None

    def number(cta: int) -> tuple[int, ...]:
        at = cta % grid[0], cta // grid[0] % grid[1], cta // (grid[0] * grid[1])
        return tuple(a // c for a, c in zip(at, cluster, strict=True))

    if scope == "cluster":
        if min(cluster) <= 0 or any(g % c for g, c in zip(grid, cluster, strict=True)):
            return None
        size = cluster[0] * cluster[1] * cluster[2]
        if size == 1:
            return None
    else:
        size = grid[0] * grid[1] * grid[2]
    there = [x for x in rows["lanes"] if x["launch"] == home["launch"] and x["cta"] >= 0]
    mine = [x for x in there if scope == "device" or number(x["cta"]) == number(home["cta"])]
    return mine if len({x["cta"] for x in mine}) == size else None


def heard(rows: dict[str, list[Row]], points: list[Row], edge: Row, home: Row) -> tuple[dict[int, Row], list[Row], int]:
    """Lanes by number whose points count, these points, and how many lanes there have to be in an iteration."""
    lanes = company(rows, edge["scope"], home) or []
    named = {x["lane"]: x for x in lanes}
    written = [p for p in points if p["lane"] in named]
    wrote = {p["lane"] for p in written}
    expected = [
        x for x in lanes if x["role"] == edge["producer_role"] and (x["lane"] in wrote or x["records_lost"] > 0)
    ]
    return named, written, len(expected)


def far_signal(
    rows: dict[str, list[Row]], axis: Axis, points: list[Row], edge: Row, home: Row, ends: tuple[int, int], i: int
) -> tuple[int | None, int, float]:
    """Signal in ticks of the wait's clock, its lane and its error; None without one.

    Args:
        rows: of the capture.
        axis: its maps.
        points: those that are the producer's.
        edge: the row of dependencies.
        home: the lane that waits.
        ends: of the wait.
        i: iteration of the signal.
    """
    none = None, -1, 0.0
    # Asked once for all waits of a CTA.
    known = (edge["scope"], home["launch"], home["cta"], edge["producer_role"], edge["producer_event"])
    if known not in axis.heard:
        axis.heard[known] = heard(rows, points, edge, home)
    named, written, expected = axis.heard[known]
    sent = [p for p in written if p["iteration"] == i]
    if not sent or not expected or len(sent) < expected:
        return none
    at = [axis.place(home["launch"], named[p["lane"]]["clock"], p["t"]) for p in sent]
    own = [axis.place(home["launch"], home["clock"], t) for t in ends]
    if any(x is None or x[3] != (at[0] or x)[3] for x in [*at, *own]) or any(x is None or x[2] <= 0 for x in own):
        return none
    moments = [(x[0], x[1]) for x in at if x is not None]
    last = max(ns for ns, _ in moments)
    bound = max(max(ns - last + b for ns, b in moments), -max(ns - last - b for ns, b in moments))
    (ns0, b0, rate0, _), (ns1, b1, rate1, _) = (x for x in own if x is not None)
    t, ns, b, rate = (ends[0], ns0, b0, rate0) if abs(last - ns0) <= abs(last - ns1) else (ends[1], ns1, b1, rate1)
    lane = min(p["lane"] for p, (place, _) in zip(sent, moments, strict=True) if place == last)
    return t + rounded((last - ns) / rate), lane, (bound + b) / rate + 1
