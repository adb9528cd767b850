"""The wait view: how long the waits of each role and barrier took, how much of it blocked, and who bound them."""

from __future__ import annotations

import math
from typing import Any

from wsformat.bundle import Bundle
from wsformat.derive import run
from wsformat.errors import BadRequest
from wsformat.viewers.figure import Figure
from wsformat.viewers.figure_scope import Scope, scope_of
from wsformat.viewers.panels import (
    FONT,
    LINE,
    TIP,
    Marks,
    Part,
    described,
    layer,
    legend,
    own,
    panel,
    pixels,
    scaled,
    sheet,
    short,
)
from wsformat.viewers.render import STALL
from wsformat.viewers.timeline_chart import percent
from wsformat.viewers.timeline_layout import clean, palette

STEPS = 4
"""Bins of a histogram to a doubling of the length."""
MOST = 12
"""Histograms drawn at most."""
HEIGHT = 74
KINDS = ("blocked", "satisfied", "unjudged")

# Extents are of the roles' lanes, so that the shares agree with role_summary.
SUMMARY = """
WITH w AS (
  SELECT role, span, barrier, ticks, slack, verdict, producer_role, producer_event, blocked_ticks, satisfied_ticks,
         unjudged_ticks, wait_floor FROM wait WHERE {where}
), extent AS (
  SELECT role, SUM(extent) AS extent FROM role_state WHERE {where} GROUP BY role
), producer AS (
  SELECT role, span, barrier, producer_role, producer_event, COUNT(*) AS waits, SUM(blocked_ticks) AS blocked,
         MIN(slack) AS least_slack, QUANTILE_DISC(slack, 0.5) AS median_slack, MAX(slack) AS most_slack
  FROM w WHERE producer_role <> '' GROUP BY ALL
), bound AS (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY role, span, barrier
                               ORDER BY blocked DESC, waits DESC, producer_role, producer_event) AS nth,
         COUNT(*) OVER (PARTITION BY role, span, barrier) AS producers FROM producer
), total AS (
  SELECT role, span, barrier, COUNT(*) AS waits, COUNT(*) FILTER (blocked_ticks > 0) AS waits_blocked,
         SUM(ticks) AS ticks, SUM(blocked_ticks) AS blocked, SUM(satisfied_ticks) AS satisfied,
         SUM(unjudged_ticks) AS unjudged, MIN(ticks) AS least, QUANTILE_DISC(ticks, 0.5) AS median,
         MAX(ticks) AS most, MIN(wait_floor) AS floor FROM w GROUP BY ALL
)
SELECT t.role, t.span, t.barrier, t.waits, t.waits_blocked, CAST(t.ticks AS BIGINT) AS ticks,
       CAST(t.blocked AS BIGINT) AS blocked_ticks, CAST(t.satisfied AS BIGINT) AS satisfied_ticks,
       CAST(t.unjudged AS BIGINT) AS unjudged_ticks, t.least AS least_ticks, t.median AS median_ticks,
       t.most AS most_ticks, t.floor AS floor_ticks, CAST(e.extent AS BIGINT) AS extent_of_role,
       t.ticks / e.extent AS share_of_extent, t.blocked / e.extent AS blocked_share_of_extent,
       b.producer_role AS binding_role, b.producer_event AS binding_event, b.waits AS waits_bound,
       CAST(b.blocked AS BIGINT) AS blocked_by_it, b.producers, b.least_slack, b.median_slack, b.most_slack
FROM total t JOIN extent e USING (role)
LEFT JOIN bound b ON b.role = t.role AND b.span = t.span AND b.barrier = t.barrier AND b.nth = 1
ORDER BY t.blocked DESC, t.ticks DESC, t.role, t.span, t.barrier
"""
# A bin holds lengths from 2^(bin / 4) on; bin -1 holds length 0.
HISTOGRAM = f"""
SELECT role, span, barrier, CASE WHEN ticks < 1 THEN -1 ELSE CAST(FLOOR(LOG2(ticks) * {STEPS}) AS INT) END AS bin,
       CASE WHEN verdict = 'unknown' THEN 'unjudged' WHEN blocked_ticks > 0 THEN 'blocked' ELSE 'satisfied' END AS kind,
       COUNT(*) AS waits, MIN(ticks) AS least_ticks, MAX(ticks) AS most_ticks, CAST(SUM(ticks) AS BIGINT) AS ticks
FROM wait WHERE {{where}} GROUP BY ALL ORDER BY role, span, barrier, bin, kind
"""


def waits(bundle: Bundle, *, width: int = 860, **chosen: Any) -> Figure:
    """Draw the waits of a launch: per role, span and barrier a histogram of lengths beside its sums.

    Args:
        bundle: what to draw.
        width: of the whole picture, in pixels.
        chosen: capture_id, launch, cta, roles, as in :func:`~wsformat.viewers.figure_scope.scope_of`.

    Raises:
        BadRequest: no wait is stamped on both sides.
    """
    with bundle.duckdb(materialise=["wait"], only=["point", "perturbation", "role_state"]) as connection:
        scope = scope_of(bundle, connection, **chosen)
        sql = {
            "per role, span and barrier": SUMMARY.format(where=scope.where()),
            "the bars": HISTOGRAM.format(where=scope.where()),
        }
        table = run(connection, sql["per role, span and barrier"])
        bars = scope.rows(sql["the bars"])
    rows = table.to_pylist()
    if not rows:
        raise BadRequest("no wait is stamped on both sides, so there is nothing to draw")
    notes = list(scope.notes)
    if len(rows) > MOST:
        rest = sum(row["ticks"] for row in rows[MOST:]) / sum(row["ticks"] for row in rows)
        notes.append(
            f"{MOST} of {len(rows)} kinds of wait drawn; the others hold {percent(rest)} of all stalled ticks."
        )
        rows = rows[:MOST]
    if any(row["binding_role"] is None for row in rows):
        notes.append("Bound by unknown: no declared edge ends at the wait, or its signal has no stamp.")
    alt = "Lengths of waits. " + " ".join(_sentence(row, scope) for row in rows[:4])
    return Figure(
        "waits",
        scope.title,
        f"How long each wait took, on a logarithmic axis, by what it was: blocked, satisfied and only tested, or "
        f"unjudged. Shares are of the summed extents of the role's lanes ({scope.units}); stall is gross, "
        "blocked is what its producer or latency cost.",
        alt,
        _spec(scope, rows, bars, notes, width, alt),
        table,
        sql,
        tuple(notes),
    )


def _sentence(row: dict[str, Any], scope: Scope) -> str:
    by = clean(f"{row['binding_role']} {row['binding_event']}")
    by = f", bound by {by}" if row["binding_role"] else ""
    what = clean(f"{row['role']} {row['span']} {row['barrier']}")
    return (
        f"{what}: {row['waits']:,} waits, {percent(row['share_of_extent'])} of "
        f"its time, {percent(row['blocked_share_of_extent'])} blocked{by}."
    )


def _spec(
    scope: Scope, rows: list[dict[str, Any]], bars: list[dict[str, Any]], notes: list[str], width: int, alt: str
) -> Part:
    ink = palette()
    left, right = (150, 262) if width >= 700 else (104, 0)
    plot = width - left - right - 20
    shown = {(row["role"], row["span"], row["barrier"]) for row in rows}
    bars = [bar for bar in bars if (bar["role"], bar["span"], bar["barrier"]) in shown]
    low = min(bar["bin"] for bar in bars)
    high = max(bar["bin"] for bar in bars) + 1
    if high - low < 3 * STEPS:  # at least three doublings, or one bar fills the plot
        high = low + 3 * STEPS
    paint = {"blocked": f"url(#{STALL})", "satisfied": ink["satisfied"], "unjudged": ink["paper"]}
    values = [2**k for k in range(max(0, math.ceil(low / STEPS)), high // STEPS + 1)]
    values = values[:: max(1, math.ceil(len(values) * 48 / plot))]
    parts = []
    for number, row in enumerate(rows):
        last = number == len(rows) - 1
        mine = [bar for bar in bars if all(bar[key] == row[key] for key in ("role", "span", "barrier"))]
        parts.append(_panel(scope, row, mine, (low, high), values if last else [], plot, left, right, paint, last))
    fills = [
        (paint["blocked"], "blocked: the producer's signal came after the wait began, or was still under way"),
        (paint["satisfied"], "satisfied: ready when the wait began; its length is the stamps and the test"),
    ]
    if any(row["unjudged_ticks"] for row in rows):
        fills.append((paint["unjudged"], "unjudged: no declared edge, or no stamp of the signal"))
    parts.append(legend(fills, plot, notes, left))
    return sheet(parts, scope.title, width, alt, spacing=10, right=right)


def _panel(
    scope: Scope,
    row: dict[str, Any],
    bars: list[dict[str, Any]],
    domain: tuple[int, int],
    values: list[int],
    plot: float,
    left: float,
    right: float,
    paint: dict[str, str],
    last: bool,
) -> Part:
    ink = palette()
    top = max(sum(bar["waits"] for bar in bars if bar["bin"] == at) for at in {bar["bin"] for bar in bars})
    marks: Marks = []
    base: dict[int, int] = {}
    for kind in KINDS:
        for bar in bars:
            if bar["kind"] != kind:
                continue
            y = base.get(bar["bin"], 0)
            base[bar["bin"]] = y + bar["waits"]
            lengths = f"{bar['least_ticks']:,} to {bar['most_ticks']:,} {scope.units}"
            tip = described({
                "Role": clean(row["role"]), "Span": clean(row["span"]), "Barrier": clean(row["barrier"]),
                "Waits": f"{bar['waits']:,} {kind} of {row['waits']:,}", "Lengths": lengths,
                "Sum": f"{bar['ticks']:,} {scope.units}"})  # fmt: skip
            marks.append({"x": bar["bin"] + 0.06, "x1": bar["bin"] + 0.94, "y": y, "y1": y + bar["waits"],
                          "fill": paint[kind], TIP: tip})  # fmt: skip
    axis = {
        "values": [math.log2(value) * STEPS for value in values],
        "labelExpr": f"format(pow(2, datum.value / {STEPS}), ',.0f')",
        "title": f"length of a wait, {scope.units} (logarithmic)" if last else None,
        "grid": False,
        "labels": last,
        "ticks": last,
    }
    counts = {"tickCount": 2, "format": ",d", "grid": True, "title": None, "values": [0, top]}
    bar_layer = layer(
        "rect",
        marks,
        {"x": scaled("x", domain, axis), "x2": {"field": "x1"}, "y": scaled("y", (0, top), counts),
         "y2": {"field": "y1"}, "fill": own("fill")},
        stroke=ink["stall"]["edge"], strokeWidth=0.6,
    )  # fmt: skip
    at = -left
    names = [
        {"px": at, "py": 12, "text": clean(row["role"], 18), "fill": scope.colour(row["role"])},
    ]
    under = [f"waits on {clean(row['barrier'], 14)}" if row["barrier"] else f"span {clean(row['span'], 14)}"]
    under += [f"{row['waits']:,} waits"]
    texts = [{"px": at, "py": 12 + LINE * (n + 1), "text": text} for n, text in enumerate(under)]
    beside = [
        f"{percent(row['share_of_extent'])} stall, {percent(row['blocked_share_of_extent'])} blocked",
        f"median {short(row['median_ticks'])}, longest {short(row['most_ticks'])}",
    ]
    if row["binding_role"]:
        beside.append(f"bound by {clean(row['binding_role'], 13)}.{clean(row['binding_event'], 12)}")
        beside.append(f"signal to exit {short(row['least_slack'])} to {short(row['most_slack'])}")
        if row["producers"] > 1:
            others = row["producers"] - 1
            beside.append(f"and by {others} other{'s' if others > 1 else ''} (table)")
    else:
        beside.append("bound by: unknown")
    layers = [bar_layer, pixels(names, fontWeight="bold", fontSize=FONT), pixels(texts, fill=ink["quiet"])]
    if right:
        placed = [{"px": plot + 16, "py": 8 + LINE * n, "text": text} for n, text in enumerate(beside)]
        layers.append(pixels(placed, limit=right - 16))
        return panel(layers, plot, HEIGHT)
    # A column of a paper has no room beside the bars: the words go under them.
    offset = HEIGHT + (46 if last else 12)
    under = [" · ".join(beside[:2]), " · ".join(beside[2:])]
    placed = [{"px": -left, "py": offset + LINE * n, "text": text} for n, text in enumerate(under)]
    layers.append(pixels(placed, fontSize=FONT - 2))
    return panel(layers, plot, HEIGHT)
