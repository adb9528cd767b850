"""The grid view: every CTA on its SM over time, waves and tail, and maps of duration, stall share and start by SM."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from wsformat.bundle import Bundle
from wsformat.derive import run
from wsformat.errors import BadRequest
from wsformat.viewers.figure import Figure
from wsformat.viewers.figure_scope import Scope, scope_of
from wsformat.viewers.panels import (
    FONT,
    TIP,
    Marks,
    Part,
    boxes,
    described,
    heat,
    layer,
    legend,
    own,
    panel,
    pixels,
    raw,
    scaled,
    sheet,
)
from wsformat.viewers.timeline_chart import percent
from wsformat.viewers.timeline_layout import palette

MAP = 12
"""Cells of a map in a row."""
MOST = 4_000
"""CTAs drawn one by one at most."""
STEPS = 400
"""Steps of the curve of resident CTAs at most."""

CTAS = """
SELECT cta, sm, wave, sm_order, residents, ticks, basis, start_ns, end_ns, duration_ns, error_ns, start_after_ns,
       end_before_ns, may_be_last, stall_share, active_share, untracked_share, blocked_share
FROM grid_cta WHERE {where} ORDER BY cta
"""
LAUNCH = """
SELECT ctas, sms, start_ns, end_ns, duration_ns, error_ns, start_spread_ns, tail_ns, tail_share, waves, residents,
       last_cta, last_is_certain FROM grid_launch WHERE {launch}
"""


def grid(bundle: Bundle, *, width: int = 860, **chosen: Any) -> Figure:
    """Draw the CTAs of a launch on their SMs.

    Args:
        bundle: what to draw.
        width: of the whole picture, in pixels.
        chosen: capture_id, launch, cta, roles, as in :func:`~wsformat.viewers.figure_scope.scope_of`. Shares are of
            all roles of a CTA, whichever are chosen.

    Raises:
        BadRequest: nothing with stamps.
    """
    with bundle.duckdb(materialise=["grid_cta"], only=["point", "perturbation", "grid_launch"]) as connection:
        scope = scope_of(bundle, connection, **chosen)
        where = scope.where(by_role=False)
        sql = {
            "one row a CTA": CTAS.format(where=where),
            "the launch": LAUNCH.format(launch=where.split(" AND cta IN")[0]),
        }
        table = run(connection, sql["one row a CTA"])
        launch: dict[str, Any] = next(iter(scope.rows(sql["the launch"])), {})
    rows = table.to_pylist()
    if not rows:
        raise BadRequest("no CTA of this launch has stamps or a lifetime, so there is no grid to draw")
    notes = list(scope.notes)
    placed = all(row["start_ns"] is not None for row in rows)
    if not placed:
        notes.append("No anchors join the clocks of the SMs: when a CTA began is not known against another.")
    if any(row["sm"] < 0 for row in rows):
        notes.append("The SM of some CTAs is unknown: cells are CTAs, in order of their number.")
    if len(rows) > MOST:
        notes.append(f"{MOST:,} of {len(rows):,} CTAs are drawn over time; the maps hold all.")
    errors = [row["error_ns"] for row in rows]
    if placed and None not in errors:
        bound = math.ceil(max(errors))
        notes.append(f"Times are good to ±{bound:,} ns: differences below {2 * bound:,} ns lie within that error.")
    elif placed:
        notes.append("The error of the times is unknown: an anchor has no bound.")
    alt = _alt(scope, rows, launch, placed=placed)
    return Figure(
        "grid",
        scope.title,
        _caption(launch, placed=placed),
        alt,
        _spec(scope, rows, launch, notes, width, alt, placed=placed),
        table,
        sql,
        tuple(notes),
    )


def _caption(launch: dict[str, Any], *, placed: bool) -> str:
    words = "Darker is more; each map has its own scale, written above it. Stall shares are of the summed extents of a "
    words += "CTA's lanes."
    if placed and launch.get("tail_ns") is not None:
        words = (
            f"Each bar is a CTA on its SM, shaded by its stall share, 0 % light to 100 % dark. "
            f"{launch['waves']} wave{'s' if launch['waves'] != 1 else ''} of up to {launch['residents']} CTAs an SM. "
            "From the first SM that has nothing left to the end of the launch (tail, from the dashed line) "
            f"{launch['tail_ns']:,} ns pass; "
            f"{percent(launch['tail_share'] or 0.0)} of all SM time lies there without a CTA. {words}"
        )
    return words


def _alt(scope: Scope, rows: list[dict[str, Any]], launch: dict[str, Any], *, placed: bool) -> str:
    sms = len({row["sm"] for row in rows if row["sm"] >= 0})
    words = f"{len(rows):,} CTAs on {sms} SMs." if sms else f"{len(rows):,} CTAs."
    shares = [row["stall_share"] for row in rows if row["stall_share"] is not None]
    if shares:
        words += f" Stall share {percent(min(shares))} to {percent(max(shares))}."
    if placed and launch:
        words += f" The launch took {launch['duration_ns']:,} ns, of which the tail {launch['tail_ns'] or 0:,} ns."
    return words


def _spec(
    scope: Scope, rows: list[dict[str, Any]], launch: dict[str, Any], notes: list[str], width: int, alt: str,
    *, placed: bool,
) -> Part:  # fmt: skip
    left = 74
    plot = width - left - 30
    parts: list[Part] = []
    if placed:
        parts += _over_time(rows[:MOST], launch, plot)
    parts += _maps(scope, rows, plot, left, placed=placed)
    parts.append(legend([], plot, notes, left))
    return sheet(parts, scope.title, width, alt, spacing=16)


def _over_time(rows: list[dict[str, Any]], launch: dict[str, Any], plot: float) -> list[Part]:
    ink = palette()
    zero = min(row["start_ns"] for row in rows)
    whole = max(1, max(row["end_ns"] for row in rows) - zero)
    x_of = [0, whole]
    by_sm = all(row["sm"] >= 0 for row in rows)
    sms = sorted({row["sm"] for row in rows}) if by_sm else sorted(row["cta"] for row in rows)
    place = {sm: n for n, sm in enumerate(sms)}
    high = min(16, max(3, 420 // len(sms)))
    marks: Marks = []
    for row in rows:
        top = place[row["sm"] if by_sm else row["cta"]] * high
        slots = max(1, launch.get("residents") or 1) if by_sm else 1
        slot = max(0, row["sm_order"]) % slots if by_sm else 0
        gap = 1 if high >= 5 else 0.4
        shaded = {"fill": heat(row["stall_share"]), TIP: _words(row)}
        y, y1 = top + high * slot / slots, top + high * (slot + 1) / slots - gap
        marks.append({"x": row["start_ns"] - zero, "x1": row["end_ns"] - zero, "py": y, "py1": y1, **shaded})
    tail: Marks = []
    if by_sm and launch.get("tail_ns"):
        tail.append({"x": whole - launch["tail_ns"], "x1": whole, "py": -4, "py1": len(sms) * high})
    axis = {"title": "ns since the first CTA began", "format": ",d", "grid": False, "tickCount": max(3, plot // 100),
            "labelOverlap": True}  # fmt: skip
    x = scaled("x", x_of, axis)
    vertical = {"y": raw("py"), "y2": {"field": "py1"}}
    labels = [
        {"px": -8, "py": place[sm] * high + high / 2, "text": f"{'SM' if by_sm else 'CTA'} {sm}"}
        for sm in sms[:: max(1, math.ceil(15 / high))]
    ]
    over = _resident(rows, zero, whole, plot)
    bars = panel(
        [
            layer("rect", tail, {"x": x, "x2": {"field": "x1"}, **vertical}, fill=ink["heat"][0]),
            layer("rule", tail, {"x": x, **vertical}, stroke=ink["ink"], strokeDash=[3, 3]),
            layer("rect", marks, {"x": x, "x2": {"field": "x1"}, **vertical, "fill": own("fill")}, stroke=ink["quiet"],
                  strokeWidth=0.3, clip=False),
            pixels(labels, align="right", fontSize=FONT - 3, fill=ink["quiet"]),
        ],
        plot,
        len(sms) * high,
    )  # fmt: skip
    return [over, bars]


def _words(row: dict[str, Any]) -> str:
    error = "" if row["error_ns"] is None else f" ±{math.ceil(row['error_ns']):,}"
    ns = "" if row["duration_ns"] is None else f"{row['duration_ns']:,} ns{error}"
    start = "" if row["start_after_ns"] is None else f"{row['start_after_ns']:,} ns{error} after the first"
    shares = {
        name: f"{row[f'{name}_share'] * 100:.2f} %" if row[f"{name}_share"] is not None else "no stamps"
        for name in ("stall", "blocked", "untracked")
    }
    words: str = described({
        "CTA": row["cta"], "SM": row["sm"] if row["sm"] >= 0 else "unknown",
        "Wave": row["wave"] if row["wave"] >= 0 else "",
        "Began": start, "Took": ns, "Ticks": f"{row['ticks']:,} ({row['basis']})", "Stall share": shares["stall"],
        "Blocked share": shares["blocked"], "Not instrumented": shares["untracked"]})  # fmt: skip
    return words


def _resident(rows: list[dict[str, Any]], zero: int, whole: int, plot: float) -> Part:
    """How many CTAs there are at each moment: ramps at the ends, dips between waves."""
    ink = palette()
    steps = sorted([(row["start_ns"] - zero, 1) for row in rows] + [(row["end_ns"] - zero, -1) for row in rows])
    curve: Marks = [{"x": 0, "y": 0}]
    there = 0
    for at, change in steps:
        there += change
        if curve[-1]["x"] == at:
            curve[-1]["y"] = there
        elif len(steps) <= STEPS or (at - curve[-1]["x"]) * STEPS >= whole:
            curve.append({"x": at, "y": there})
        else:
            curve[-1]["y"] = there
    curve[-1]["y"] = 0 if curve[-1]["x"] >= whole else curve[-1]["y"]
    curve += [{"x": whole, "y": 0}] if curve[-1]["x"] < whole else []
    most = max(mark["y"] for mark in curve)
    x = scaled("x", (0, whole))
    y = scaled("y", (0, most), {"title": None, "values": [0, most], "format": ",d", "grid": True})
    return panel(
        [
            layer("area", curve, {"x": x, "y": y}, interpolate="step-after", fill=ink["heat"][2],
                  line={"color": ink["heat"][5], "strokeWidth": 1}),
            pixels([{"px": 0, "py": -8, "text": "CTAs there at a time"}], fill=ink["quiet"], fontSize=FONT - 2),
        ],
        plot,
        46,
    )  # fmt: skip


def _maps(scope: Scope, rows: list[dict[str, Any]], plot: float, left: float, *, placed: bool) -> list[Part]:
    by_sm = all(row["sm"] >= 0 for row in rows)
    cells: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        cells.setdefault(row["sm"] if by_sm else row["cta"], []).append(row)
    unit = "ns" if placed else scope.units
    length = "duration_ns" if placed else "ticks"
    wanted: list[tuple[str, Callable[[list[dict[str, Any]]], float | None], Callable[[float], str]]] = [
        (f"mean duration of a CTA, {unit}", lambda found: _mean(row[length] for row in found), lambda v: f"{v:,.0f}"),
        ("stall share", lambda found: _mean(row["stall_share"] for row in found), lambda v: f"{v * 100:.1f} %"),
    ]
    if placed:
        first = lambda found: float(min(row["start_after_ns"] for row in found))  # noqa: E731
        wanted.append(("first start after the launch's, ns", first, lambda v: f"{v:,.0f}"))
    room = plot + left
    across = len(wanted) if room >= 620 else 1
    cell = min(22.0, (room / across - 26) / MAP)
    down = math.ceil(len(cells) / MAP)
    parts = []
    for group in range(0, len(wanted), across):
        marks: Marks = []
        texts: Marks = []
        for n, (name, value, shown) in enumerate(wanted[group : group + across]):
            base = n * (room / across) - left
            values = {key: value(found) for key, found in cells.items()}
            known = [v for v in values.values() if v is not None]
            low, high = (min(known), max(known)) if known else (0.0, 0.0)
            ends = f"{shown(low)} to {shown(high)}" if known else "none"
            texts += [{"px": base, "py": 2, "text": name}, {"px": base, "py": 17, "text": ends}]
            for at, key in enumerate(sorted(cells)):
                v = values[key]
                share = None if v is None else (v - low) / (high - low) if high > low else 0.0
                x, y = base + at % MAP * cell, 28 + at // MAP * cell
                tip = described({"SM" if by_sm else "CTA": key, name.capitalize(): "none" if v is None else shown(v),
                                 "CTAs": ", ".join(str(row["cta"]) for row in cells[key][:8])
                                 + (" …" if len(cells[key]) > 8 else "")})  # fmt: skip
                marks.append(
                    {"px": x, "px1": x + cell - 1.5, "py": y, "py1": y + cell - 1.5, "fill": heat(share), TIP: tip}
                )
        parts.append(panel([boxes(marks, stroke=palette()["rule"], strokeWidth=0.4), pixels(texts, fontSize=FONT - 1)],
                           plot, 28 + down * cell))  # fmt: skip
    what = (
        "SMs in order of their number, from left to right and downwards" if by_sm else "CTAs in order of their number"
    )
    parts.append(panel([pixels([{"px": -left, "py": 4, "text": f"{what}, {MAP} a row."}], fill=palette()["quiet"],
                               fontSize=FONT - 2)], plot, 8))  # fmt: skip
    return parts


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
