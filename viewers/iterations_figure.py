"""The iteration view: ticks an iteration of each role, with fill and drain shaded and outliers marked."""

from __future__ import annotations

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
)
from wsformat.viewers.timeline_layout import clean, palette

MOST = 8
HEIGHT = 118
FENCE = 1.5
"""An outlier lies beyond the quartiles by more than so many distances between them (Tukey)."""
BARS = 24
POINTS = 600
"""Iterations drawn one by one; of more, stretches of equal length are drawn."""

EACH = """
WITH s AS (
  SELECT role, q1_ticks - {fence} * GREATEST(q3_ticks - q1_ticks, 1) AS low,
         q3_ticks + {fence} * GREATEST(q3_ticks - q1_ticks, 1) AS high
  FROM iteration_summary WHERE {plain}
)
SELECT i.role, i.iteration, COUNT(*) AS lanes, MIN(i.ticks) AS least_ticks,
       QUANTILE_DISC(i.ticks, 0.25) AS q1_ticks, QUANTILE_DISC(i.ticks, 0.5) AS median_ticks,
       QUANTILE_DISC(i.ticks, 0.75) AS q3_ticks, MAX(i.ticks) AS most_ticks,
       COUNT(*) FILTER (i.steady) AS lanes_steady,
       COUNT(*) FILTER (i.steady AND (i.ticks > s.high OR i.ticks < s.low)) AS outliers,
       FIRST(i.cta ORDER BY i.ticks DESC, i.cta) AS slowest_cta
FROM iteration i LEFT JOIN s USING (role) WHERE {where} GROUP BY i.role, i.iteration ORDER BY i.role, i.iteration
"""
SUMMARY = """
SELECT role, lanes, samples, mean_ticks, min_ticks, q1_ticks, median_ticks, q3_ticks, max_ticks,
       steady_first, steady_end FROM iteration_summary WHERE {plain} ORDER BY role
"""
BINNED = """
WITH s AS (SELECT role, min_ticks AS low, GREATEST(max_ticks - min_ticks + 1, {bars}) AS extent
           FROM iteration_summary WHERE {plain})
SELECT i.role, CAST((i.ticks - s.low) * {bars} // s.extent AS INT) AS bin, COUNT(*) AS iterations,
       MIN(i.ticks) AS least_ticks, MAX(i.ticks) AS most_ticks
FROM iteration i JOIN s USING (role) WHERE {where} AND i.steady GROUP BY ALL ORDER BY i.role, bin
"""


def iterations(bundle: Bundle, *, width: int = 860, **chosen: Any) -> Figure:
    """Draw the ticks an iteration of each role of a launch (method start_to_start), iteration by iteration.

    Args:
        bundle: what to draw.
        width: of the whole picture, in pixels.
        chosen: capture_id, launch, roles, cta, as in :func:`~wsformat.viewers.figure_scope.scope_of`. Mean and
            quartiles are of all CTAs of the launch, whichever are drawn.

    Raises:
        BadRequest: no role has an iteration_event with stamps of two iterations.
    """
    with bundle.duckdb(materialise=["iteration"], only=["point", "perturbation", "iteration_summary"]) as connection:
        scope = scope_of(bundle, connection, **chosen)
        plain = scope.where(by_role=True).split(" AND cta IN")[0]
        fill = {"where": scope.where("i"), "plain": plain, "fence": FENCE, "bars": BARS}
        sql = {
            "ticks an iteration": EACH.format(**fill),
            "mean and quartiles of the steady window": SUMMARY.format(**fill),
            "distribution in the steady window": BINNED.format(**fill),
        }
        table = run(connection, sql["ticks an iteration"])
        summary = {row["role"]: row for row in scope.rows(sql["mean and quartiles of the steady window"])}
        bins = scope.rows(sql["distribution in the steady window"])
        clean_slope = _clean_slope(scope)
    if table.num_rows == 0:
        raise BadRequest(
            "no role has an iteration_event that was stamped in two iterations, so there are no iterations to draw",
            "Declare iteration_event in the role spec.",
        )
    notes = list(scope.notes)
    rows = table.to_pylist()
    drawn = [role for role in scope.roles if any(row["role"] == role for row in rows)]
    missing = [clean(role, 20) for role in scope.roles if role not in drawn]
    if missing:
        notes.append(f"No iterations of {', '.join(missing)}: no iteration_event, or stamps of one iteration only.")
    if len(drawn) > MOST:
        notes.append(f"{MOST} of {len(drawn)} roles drawn.")
        drawn = drawn[:MOST]
    for role in drawn:
        if role not in summary:
            notes.append(f"{clean(role, 20)} has no steady window: fewer iterations than four times its deepest ring.")
    means = [f"{clean(role, 40)} {summary[role]['mean_ticks']:,.1f}" for role in drawn if role in summary]
    outliers = sum(row["outliers"] for row in rows if row["role"] in drawn)
    alt = (
        f"{scope.units.capitalize()} an iteration by iteration number. Mean in the steady window: "
        f"{', '.join(means) or 'none'}. {outliers:,} outliers."
    )
    return Figure(
        "iterations",
        scope.title,
        f"From one iteration's start to the next (start_to_start), {scope.units}. The speed of the loop is the mean "
        "over the steady window; fill and drain of the ring are shaded and do not count. Outliers lie more than "
        f"{FENCE} times the distance of the quartiles beyond them.",
        alt,
        _spec(scope, rows, drawn, summary, bins, clean_slope, notes, width, alt),
        table,
        sql,
        tuple(notes),
    )


def _clean_slope(scope: Scope) -> float | None:
    """Ticks an iteration without stamps, by slope, of the experiment; None unknown."""
    found = scope.rows(
        f"SELECT clean_ticks FROM perturbation WHERE capture_id = '{scope.capture_id}' AND method = 'slope' "
        f"AND unit = '{scope.unit}' AND preference = 1 LIMIT 1"
    )
    return float(found[0]["clean_ticks"]) if found else None


def _spec(
    scope: Scope,
    rows: list[dict[str, Any]],
    drawn: list[str],
    summary: dict[str, dict[str, Any]],
    bins: list[dict[str, Any]],
    clean_slope: float | None,
    notes: list[str],
    width: int,
    alt: str,
) -> Part:
    ink = palette()
    left, right = (118, 190) if width >= 700 else (84, 0)
    plot = width - left - right - 70
    extent = (min(row["iteration"] for row in rows) - 0.5, max(row["iteration"] for row in rows) + 0.5)
    parts = []
    for number, role in enumerate(drawn):
        mine = _stretched([row for row in rows if row["role"] == role])
        own_bins = [row for row in bins if row["role"] == role]
        last = number == len(drawn) - 1
        parts.append(
            _panel(scope, role, mine, summary.get(role), own_bins, clean_slope, extent, plot, left, right, last)
        )
    several = any(row["lanes"] > 1 for row in rows)
    fills = [(ink["heat"][1], "fill and drain: outside the steady window, not counted in the mean")]
    if several:
        fills.append((ink["satisfied"], "between the quartiles over the lanes; the line is the median"))
    if any(row["outliers"] for row in rows):
        fills.append((ink["warning"], "outlier in the steady window (diamond)"))
    if clean_slope:
        notes = [*notes, "Dashed line: the loop of clean launches, without stamps, by slope."]
    parts.append(legend(fills, plot, notes, left))
    return sheet(parts, scope.title, width, alt, right=right + 30 if right else 0)


def _stretched(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """At most POINTS rows: of more, stretches of iterations with the least, the median of medians and the greatest."""
    step = -(-len(rows) // POINTS)
    if step <= 1:
        return [{**row, "last": row["iteration"]} for row in rows]
    found = []
    for at in range(0, len(rows), step):
        part = rows[at : at + step]
        middle = sorted(part, key=lambda row: row["median_ticks"])[len(part) // 2]
        worst = max(part, key=lambda row: row["most_ticks"])
        found.append({
            **middle, "iteration": part[0]["iteration"], "last": part[-1]["iteration"],
            "least_ticks": min(row["least_ticks"] for row in part), "most_ticks": worst["most_ticks"],
            "slowest_cta": worst["slowest_cta"], "outliers": sum(row["outliers"] for row in part),
            "lanes_steady": sum(row["lanes_steady"] for row in part),
        })  # fmt: skip
    return found


def _panel(
    scope: Scope,
    role: str,
    rows: list[dict[str, Any]],
    summary: dict[str, Any] | None,
    bins: list[dict[str, Any]],
    clean_slope: float | None,
    extent: tuple[float, float],
    plot: float,
    left: float,
    right: float,
    last: bool,
) -> Part:
    ink = palette()
    colour = scope.colour(role)
    reference = [summary["mean_ticks"]] if summary else []
    reference += [clean_slope] if clean_slope else []
    steady = [row["most_ticks"] for row in rows if row["lanes_steady"]] or [row["most_ticks"] for row in rows]
    least = [row["least_ticks"] for row in rows if row["lanes_steady"]] or [row["least_ticks"] for row in rows]
    low, high = min([*least, *reference]), max([*steady, *reference])
    room = max((high - low) * 0.12, 1)
    domain = (max(0.0, low - room), high + room)
    x_axis = {"title": "iteration" if last else None, "labels": last, "ticks": last, "grid": False, "format": ",d",
              "tickMinStep": 1}  # fmt: skip
    y_axis = {"title": None, "tickCount": 4, "format": ",d", "grid": True}
    x, y = scaled("x", extent, x_axis), scaled("y", domain, y_axis)
    shade: Marks = []
    if summary:
        for a, b, what in (
            (extent[0], summary["steady_first"] - 0.5, "fill"),
            (summary["steady_end"] - 0.5, extent[1], "drain"),
        ):
            if b > a:
                shade.append({"x": a, "x1": b, "y": domain[0], "y1": domain[1], "what": what})
    border = [{"x": x} for part in shade for x in (part["x"], part["x1"]) if extent[0] < x < extent[1]]
    band: Marks = []
    line: Marks = []
    dots: Marks = []
    beyond: Marks = []
    for row in rows:
        at = (row["iteration"] + row["last"]) / 2
        span = str(row["iteration"]) if row["iteration"] == row["last"] else f"{row['iteration']} to {row['last']}"
        several = row["lanes"] > 1 or row["iteration"] != row["last"]
        tip = described({
            "Role": clean(role), "Iteration": span,
            "Ticks": "" if several else f"{row['median_ticks']:,} {scope.units}",
            "Median": f"{row['median_ticks']:,} {scope.units}" if several else "",
            "Quartiles": f"{row['q1_ticks']:,} and {row['q3_ticks']:,}" if several else "",
            "Least and most": f"{row['least_ticks']:,} and {row['most_ticks']:,}" if several else "",
            "Slowest in": f"CTA {row['slowest_cta']}" if several else "",
            "Lanes": f"{row['lanes']:,}" if several else "",
            "Outliers": f"{row['outliers']:,}" if row["outliers"] else "",
            "Window": "steady" if row["lanes_steady"] else "fill or drain, not in the mean"})  # fmt: skip
        half = (row["last"] - row["iteration"] + 1) / 2
        if row["lanes"] > 1:
            band.append({"x": at - half, "x1": at + half, "y": row["q1_ticks"], "y1": row["q3_ticks"]})
        line.append({"x": at, "y": row["median_ticks"]})
        shown = row["most_ticks"] if row["outliers"] else row["median_ticks"]
        fill = ink["warning"] if row["outliers"] else colour
        if shown > domain[1] or shown < domain[0]:
            way = "triangle-up" if shown > domain[1] else "triangle-down"
            edge = domain[1] - room * 0.3 if shown > domain[1] else domain[0] + room * 0.3
            beyond.append({"x": at, "y": edge, "fill": fill, "way": way, TIP: tip})
        else:
            dots.append(
                {"x": at, "y": shown, "fill": fill, TIP: tip, "shape": "diamond" if row["outliers"] else "circle"}
            )
    size = 26 if len(rows) <= 140 else 12
    layers = [
        layer("rect", shade, {"x": x, "x2": {"field": "x1"}, "y": y, "y2": {"field": "y1"}}, fill=ink["heat"][1]),
        layer("rule", border, {"x": x}, stroke=ink["quiet"], strokeWidth=0.8, strokeDash=[2, 2], clip=True),
        layer("rect", band, {"x": x, "x2": {"field": "x1"}, "y": y, "y2": {"field": "y1"}}, fill=ink["satisfied"],
              stroke=ink["quiet"], strokeWidth=0.4),
        layer("line", line, {"x": x, "y": y}, stroke=colour, strokeWidth=0.9, clip=True),
        *[
            layer("point", [dot for dot in dots if dot["shape"] == shape], {"x": x, "y": y, "fill": own("fill")},
                  filled=True, opacity=1, size=size * more, clip=True, shape=shape)
            for shape, more in (("circle", 1), ("diamond", 2))
        ],
        *[
            layer("point", [b for b in beyond if b["way"] == way], {"x": x, "y": y, "fill": own("fill")}, filled=True,
                  opacity=1, size=30, shape=way, clip=False)
            for way in ("triangle-up", "triangle-down")
        ],
    ]  # fmt: skip
    texts: Marks = [{"px": -left, "py": 10, "text": clean(role, 15), "fill": colour}]
    words: Marks = []
    if summary:
        layers.append(layer("rule", [{"y": summary["mean_ticks"]}], {"y": y}, stroke=ink["ink"], strokeWidth=1.1))
        words = [
            {"px": plot + 66, "py": 10, "text": f"mean {summary['mean_ticks']:,.1f}"},
            {"px": plot + 66, "py": 10 + LINE, "text": f"quartiles {summary['q1_ticks']:,}, {summary['q3_ticks']:,}"},
            {
                "px": plot + 66,
                "py": 10 + 2 * LINE,
                "text": f"steady {summary['steady_first']} to {summary['steady_end'] - 1}",
            },
            {"px": plot + 66, "py": 10 + 3 * LINE, "text": f"{summary['samples']:,} intervals"},
        ]
        outliers = sum(row["outliers"] for row in rows)
        if outliers:
            words.append(
                {"px": plot + 66, "py": 10 + 4 * LINE, "text": f"{outliers:,} outliers", "fill": ink["warning"]}
            )
    if clean_slope:
        layers.append(
            layer("rule", [{"y": clean_slope}], {"y": y}, stroke=ink["ink"], strokeWidth=1.1, strokeDash=[4, 3])
        )
        words.append({"px": plot + 66, "py": 10 + 5 * LINE, "text": f"dashed: {clean_slope:,.1f} clean"})
    if beyond:
        words.append(
            {"px": plot + 66, "py": 10 + 6 * LINE, "text": f"▲ {len(beyond)} beyond the axis", "fill": ink["quiet"]}
        )
    if right:
        layers.append(_distribution(bins, y, plot, colour, scope))
        layers.append(pixels(words))
    elif words:
        layers.append(
            pixels([{"px": 0, "py": -8, "text": " · ".join(word["text"] for word in words[:2])}], fontSize=FONT - 2)
        )
    layers.append(pixels(texts, fontWeight="bold", fontSize=FONT))
    return panel(layers, plot, HEIGHT)


def _distribution(bins: list[dict[str, Any]], y: dict[str, Any], plot: float, colour: str, scope: Scope) -> Part:
    """Bars beside the plot: how many iterations of the steady window took how long. Two peaks are two lengths."""
    most = max((row["iterations"] for row in bins), default=1)
    marks = [
        {
            "px": plot + 8,
            "px1": plot + 8 + max(1.0, 48 * row["iterations"] / most),
            "y": row["least_ticks"],
            "y1": max(row["most_ticks"], row["least_ticks"] + (y["scale"]["domain"][1] - y["scale"]["domain"][0]) / 70),
            TIP: described({"Steady iterations": f"{row['iterations']:,}",
                            "Length": f"{row['least_ticks']:,} to {row['most_ticks']:,} {scope.units}"}),
        }
        for row in bins
    ]  # fmt: skip
    encoding = {"x": {"field": "px", "type": "quantitative", "scale": None, "axis": None}, "x2": {"field": "px1"},
                "y": y, "y2": {"field": "y1"}}  # fmt: skip
    return layer("rect", marks, encoding, fill=colour, clip=False)
