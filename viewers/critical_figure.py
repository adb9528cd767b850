"""The critical path of one CTA as a strip: which lane the path is on, moment by moment, and who paces the CTA."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from wsformat.bundle import Bundle
from wsformat.critical_path import critical_path as find
from wsformat.critical_path import summary
from wsformat.errors import BadRequest
from wsformat.viewers.figure import Figure
from wsformat.viewers.figure_scope import Scope, scope_of
from wsformat.viewers.panels import (
    FONT,
    LINE,
    TIP,
    Marks,
    Part,
    boxes,
    described,
    layer,
    legend,
    own,
    panel,
    pixels,
    raw,
    scaled,
    sheet,
    written_on,
)
from wsformat.viewers.render import STALL
from wsformat.viewers.timeline_chart import percent
from wsformat.viewers.timeline_layout import clean, palette, wrap

ROW = 34
BAR = 20
MOST = 1_500
"""Segments drawn at most: of a longer path the stretch in the middle."""
LATENCY = "latency"


def critical_path(
    bundle: Bundle, *, width: int = 860, start: int | None = None, end: int | None = None, cta: int | None = None,
    capture_id: str | None = None, launch: int | None = None,
) -> Figure:  # fmt: skip
    """Draw the critical path of one CTA, as :func:`wsformat.critical_path.critical_path` defines it.

    Args:
        bundle: what to draw.
        width: of the whole picture, in pixels.
        start, end: window in ticks since the CTA's first stamp; shares are of the whole path whatever is shown.
        cta: by default the first with stamps.
        capture_id, launch: by default the first with stamps.

    Raises:
        BadRequest: nothing with stamps, the CTA's lanes are on several clocks, or an empty window.
    """
    with bundle.duckdb(
        materialise=["wait"], only=["point", "perturbation", "span", "recorded_window", "role_state"]
    ) as connection:
        scope = scope_of(bundle, connection, capture_id=capture_id, launch=launch, cta=cta)
        if scope.cta_count > 1:
            first = min(
                row["cta"]
                for row in scope.rows(f"SELECT DISTINCT cta FROM role_state WHERE {scope.where()} AND points > 0")
            )
            scope = scope_of(bundle, connection, capture_id=capture_id, launch=launch, cta=first)
            scope = _with_note(scope, f"Only CTA {first} is shown: a path is of one CTA.")
        (here,) = scope.ctas or (0,)
        path = find(bundle, capture_id=scope.capture_id, launch=scope.launch, cta=here, connection=connection)
    shares = summary(path).to_pylist()
    segments = path.to_pylist()
    if not segments:
        raise BadRequest("the stamps of this CTA span no time, so it has no path")
    zero = segments[0]["t0"]
    whole = segments[-1]["t1"] - zero
    notes = list(scope.notes)
    low, high = start or 0, whole if end is None else end
    if high <= low or low >= whole:
        raise BadRequest(f"the window from {low:,} to {high:,} shows nothing", f"The path has {whole:,} {scope.units}.")
    shown = [s for s in segments if s["t1"] - zero > low and s["t0"] - zero < high]
    if len(shown) > MOST:
        middle = len(shown) // 2 - MOST // 2
        shown = shown[middle : middle + MOST]
        low, high = shown[0]["t0"] - zero, shown[-1]["t1"] - zero
        notes.append(
            f"The strip shows {low:,} to {high:,} of {whole:,} {scope.units}; the shares are of the whole path."
        )
    lower = sum(row["ticks"] for row in shares if row["level"] == "span" and row["verdict"] in ("other", "unknown"))
    if lower:
        notes.append(
            f"{lower:,} {scope.units} are stalls that no declared edge explains: before them the path is a lower bound."
        )
    pace = [row for row in shares if row["level"] == "pace"]
    alt = (
        f"Critical path of {whole:,} {scope.units}: "
        + ", ".join(f"{_who(row)} {percent(row['share'])}" for row in pace[:5])
        + "."
    )
    listed = (
        "step",
        "lane",
        "role",
        "kind",
        "span",
        "barrier",
        "iteration",
        "verdict",
        "producer_role",
        "t0",
        "t1",
        "ticks",
    )
    return Figure(
        "critical-path",
        scope.title,
        "Backwards from the CTA's last stamp: on a lane while it works, over to the role whose signal released a wait. "
        f"Shares are of the whole path, {whole:,} {scope.units}; the largest paces the CTA.",
        alt,
        _spec(scope, shown, pace, (low, high), zero, notes, width, alt),
        path.select(list(listed)),
        {"waits that the path goes through (the walk itself is wsformat critical-path --each)":
         f"SELECT * FROM wait WHERE {scope.where()} AND blocked_ticks > 0 ORDER BY t1 DESC"},
        tuple(notes),
    )  # fmt: skip


def _with_note(scope: Scope, note: str) -> Scope:
    return replace(scope, notes=(*scope.notes, note))


def _who(row: dict[str, Any]) -> str:
    if row["kind"] == LATENCY:
        return f"latency from {clean(row['producer_role'], 18)} to {clean(row['role'], 18)}"
    return str(clean(row["role"], 24))


def _spec(
    scope: Scope, shown: list[dict[str, Any]], pace: list[dict[str, Any]], window: tuple[int, int], zero: int,
    notes: list[str], width: int, alt: str,
) -> Part:  # fmt: skip
    ink = palette()
    left = 120 if width >= 620 else 96
    plot = width - left - 30
    parts = [_shares(scope, pace, plot, left), _strip(scope, shown, window, zero, plot)]
    fills = [
        (next(iter(scope.paint.values())) if len(scope.roles) == 1 else scope.colour(scope.roles[0]),
         "active on the path, in the colour of the role"),
        (f"url(#{STALL})", "stall on the path: a wait that was satisfied, or that no declared edge explains"),
        (ink["untracked"], "not instrumented: no stamps cover this time"),
    ]  # fmt: skip
    if any(s["kind"] == LATENCY for s in shown):
        fills.append((ink["satisfied"], "latency: from the binding signal to the exit of the wait that it released"))
    parts.append(legend(fills, plot, notes, left))
    return sheet(parts, scope.title, width, alt, spacing=22)


def _shares(scope: Scope, pace: list[dict[str, Any]], plot: float, left: float) -> Part:
    """One bar of the whole path, by who held it."""
    ink = palette()
    marks: Marks = []
    texts: Marks = []
    x = 0.0
    for row in pace:
        wide = plot * row["share"]
        fill = ink["satisfied"] if row["kind"] == LATENCY else scope.colour(row["role"])
        tip = described({"On the path": _who(row), "Ticks": f"{row['ticks']:,} {scope.units}",
                         "Share of the path": f"{row['share'] * 100:.2f} %", "Waits on": clean(row["barrier"]),
                         "Segments": f"{row['segments']:,}"})  # fmt: skip
        marks.append({"px": x, "px1": x + wide, "py": 0, "py1": 30, "fill": fill, TIP: tip})
        words = f"{_who(row)} {percent(row['share'])}"
        if len(words) * 6.4 > wide - 8:
            words = percent(row["share"])
        if len(words) * 6.6 <= wide - 4:
            texts.append({"px": x + wide / 2, "py": 15, "text": words, "fill": written_on(fill)})
        x += wide
    said = " · ".join(f"{_who(row)} {percent(row['share'])}" for row in pace[:6])
    lines = wrap(said, plot, FONT - 1)
    layers = [
        boxes(marks, stroke=ink["paper"], strokeWidth=1.5),
        pixels([{"px": 0, "py": 44 + LINE * n, "text": line} for n, line in enumerate(lines)], fill=ink["quiet"]),
        pixels(texts, align="center"),
        pixels([{"px": -12, "py": 15, "text": "who paces"}], align="right", fill=ink["quiet"], limit=left - 14),
    ]
    return panel(layers, plot, 36 + LINE * len(lines))


def _strip(scope: Scope, shown: list[dict[str, Any]], window: tuple[int, int], zero: int, plot: float) -> Part:
    ink = palette()
    lanes = {segment["lane"]: segment["role"] for segment in shown}
    order = sorted(lanes, key=lambda lane: (scope.roles.index(lanes[lane]) if lanes[lane] in scope.roles else 99, lane))
    place = {lane: number * ROW + 4 for number, lane in enumerate(order)}
    axis = {"title": f"{scope.units} since the CTA's first stamp", "format": ",d", "grid": False,
            "tickCount": max(3, int(plot // 90)), "labelOverlap": True}  # fmt: skip
    x = scaled("x", window, axis)
    marks: Marks = []
    hops: Marks = []
    before = None
    for segment in shown:
        y = place[segment["lane"]]
        kind = segment["kind"]
        fill = {"stall": f"url(#{STALL})", "untracked": ink["untracked"], LATENCY: ink["satisfied"]}.get(kind)
        fill = fill or scope.paint.get((segment["role"], segment["span"])) or scope.colour(segment["role"])
        inset = 6 if kind == LATENCY else 0
        tip = described({
            "On the path": clean(segment["role"]), "As": "not instrumented" if kind == "untracked" else kind,
            "Span": clean(segment["span"]), "Iteration": segment["iteration"] if segment["iteration"] >= 0 else "",
            "Barrier": clean(segment["barrier"]), "Verdict": segment["verdict"],
            "Signal": clean(f"{segment['producer_role']} {segment['producer_event']}") if kind == LATENCY else "",
            "Ticks": f"{segment['ticks']:,} {scope.units}",
            "From": f"{segment['t0'] - zero:,} to {segment['t1'] - zero:,}"})  # fmt: skip
        marks.append({"x": max(window[0], segment["t0"] - zero), "x1": min(window[1], segment["t1"] - zero),
                      "py": y + inset, "py1": y + BAR - inset, "fill": fill, TIP: tip,
                      # An outline would be all there is to see of a bar of a pixel or two.
                      "edge": 0.6 if segment["ticks"] * plot > 4 * (window[1] - window[0]) else 0})  # fmt: skip
        if before is not None and before["lane"] != segment["lane"]:
            a, b = sorted((place[before["lane"]], y))
            hops.append({"x": segment["t0"] - zero, "py": a + BAR / 2, "py1": b + BAR / 2})
        before = segment
    rails = [{"px": 0, "px1": plot, "py": place[lane] + BAR / 2, "py1": place[lane] + BAR / 2} for lane in order]
    names = [
        {"px": -12, "py": place[lane] + BAR / 2, "text": clean(lanes[lane] or f"lane {lane}", 17),
         "fill": scope.colour(lanes[lane])}
        for lane in order
    ]  # fmt: skip
    vertical = {"y": raw("py"), "y2": {"field": "py1"}}
    return panel(
        [
            layer("rule", rails, {"x": raw("px"), "x2": {"field": "px1"}, **vertical}, stroke=ink["rule"]),
            layer("rule", hops, {"x": x, **vertical}, stroke=ink["ink"], strokeWidth=0.8, clip=True),
            layer("rect", marks, {"x": x, "x2": {"field": "x1"}, **vertical, "fill": own("fill"),
                                   "strokeWidth": {"field": "edge", "type": "quantitative", "scale": None}},
                  stroke=ink["quiet"]),
            pixels(names, align="right", fontWeight="bold", fontSize=FONT, limit=100),
        ],
        plot,
        len(order) * ROW,
    )  # fmt: skip
