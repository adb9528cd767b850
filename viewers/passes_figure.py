"""The combined picture of passes: every kind of span from the pass that disturbs it least, named, with its spread."""

from __future__ import annotations

from typing import Any

from wsformat.bundle import Bundle
from wsformat.derive import run
from wsformat.errors import BadRequest
from wsformat.viewers.figure import Figure
from wsformat.viewers.figure_scope import Scope, literal, scope_of
from wsformat.viewers.panels import (
    FONT,
    TIP,
    Marks,
    Part,
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
from wsformat.viewers.timeline_layout import clean, palette
from wsformat.viewers.timeline_select import iteration_range

ROW = 34
BAR = 22
SHOWN = 6
"""Iterations shown by default, from the middle of the loop."""
MOST = 2_500
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

CHOSEN = """
SELECT launch, pass, cta, role, member, span, state, iteration, x0, x1, ticks, since_start, drift, base_launch,
       align_event, perturbation, launches, passes, least_ticks, most_ticks, unit
FROM pass_span WHERE {where} AND is_chosen ORDER BY role, member, x0, span
"""
PASSES = """
SELECT k.pass, COALESCE(MAX(a.value), '') AS name, COUNT(DISTINCT k.launch) AS launches,
       MAX(p.perturbation) AS perturbation
FROM launches k
LEFT JOIN attributes a ON a.capture_id = k.capture_id AND a.name = 'record.pass.' || k.pass || '.name'
LEFT JOIN perturbation p ON p.capture_id = k.capture_id AND p.pass = k.pass AND p.preference = 1
WHERE k.capture_id = {capture} AND k.pass >= 0 GROUP BY k.pass ORDER BY k.pass
"""


def passes(
    bundle: Bundle, *, width: int = 860, capture_id: str | None = None, cta: int | None = None,
    iterations: str | tuple[int, int] | None = None,
) -> Figure:  # fmt: skip
    """Draw the spans of several passes as one picture, as view ``pass_span`` chooses and places them.

    Args:
        bundle: what to draw.
        width: of the whole picture, in pixels.
        capture_id: by default the first capture with stamps.
        cta: by default the first with spans of a pass.
        iterations: ``"A:B"``; by default some from the middle of the loop.

    Raises:
        BadRequest: no launch says which pass it belongs to, or nothing of what was chosen.
    """
    asked = iteration_range(iterations)
    with bundle.duckdb(materialise=["pass_span"], only=["point", "perturbation"]) as connection:
        scope = scope_of(bundle, connection, capture_id=capture_id)
        capture = literal(scope.capture_id)
        # Launches of one trip count, grid and unit make one picture: the family with the most spans is drawn.
        families = scope.rows(
            "SELECT trip_count, grid_ctas, unit, MIN(cta) AS cta, COUNT(*) AS spans FROM pass_span "
            f"WHERE capture_id = {capture} GROUP BY ALL ORDER BY spans DESC, trip_count DESC"
        )
        if not families:
            raise BadRequest(
                "no launch with stamps says which pass it belongs to, so there are no passes to draw",
                "Record several passes, or draw the timeline.",
            )
        best = families[0]
        where = (
            f"capture_id = {capture} AND trip_count = {best['trip_count']} AND grid_ctas = {best['grid_ctas']} "
            f"AND unit = {literal(best['unit'])} AND cta = {best['cta'] if cta is None else int(cta)}"
        )
        if asked is None:
            asked = _middle(scope, where)
        if asked is not None:
            where += f" AND iteration >= {asked[0]} AND iteration < {asked[1]}"
        sql = {"the spans drawn": CHOSEN.format(where=where), "the passes": PASSES.format(capture=capture)}
        table = run(connection, sql["the spans drawn"])
        known = scope.rows(sql["the passes"])
    rows = table.to_pylist()
    if not rows:
        raise BadRequest(f"no span of a pass in CTA {cta} and iterations {asked}", f"CTAs begin at {best['cta']}.")
    notes = [note for note in scope.notes if "launches is shown" not in note]
    if len(families) > 1:
        notes.append(f"Launches of {best['trip_count']:,} trips are drawn; {len(families) - 1} more shapes are there.")
    if len(rows) > MOST:
        notes.append(f"{MOST:,} of {len(rows):,} spans drawn.")
        rows = rows[:MOST]
    spread = max(row["most_ticks"] - row["least_ticks"] for row in rows)
    drift = max((abs(row["drift"]) for row in rows if row["drift"] is not None), default=0)
    notes.append(
        f"Spans of {len(known)} passes: the same span differs by up to {spread:,} {scope.units} between passes, and a "
        f"pass was up to {drift:,} {scope.units} away from the base launch. Places are a layout, lengths are measured."
    )
    where_shown = f"CTA {rows[0]['cta']}" + (f" · iterations {asked[0]} to {asked[1] - 1}" if asked else "")
    title = (
        scope.title[0],
        f"{scope.title[1].split(' · launch')[0]} · {len(known)} passes · {where_shown}",
        scope.title[2],
    )
    base = rows[0]["base_launch"]
    alt = f"{len(rows):,} spans of {len(known)} passes, laid out by launch {base}; spread up to {spread:,}."
    return Figure(
        "passes",
        title,
        "Every kind of span comes from the pass that disturbs the kernel least; its letter says which. Nothing is "
        "merged: a length is what that pass measured, its place is laid out by the base launch.",
        alt,
        _spec(scope, rows, known, title, notes, width, alt),
        table,
        sql,
        tuple(notes),
    )


def _middle(scope: Scope, where: str) -> tuple[int, int] | None:
    (found,) = scope.rows(
        f"SELECT MIN(iteration) AS a, MAX(iteration) AS b FROM pass_span WHERE {where} AND iteration >= 0"
    )
    if found["a"] is None or found["b"] - found["a"] < 2 * SHOWN:
        return None
    middle = (found["a"] + found["b"]) // 2
    return middle - SHOWN // 2, middle - SHOWN // 2 + SHOWN


def _spec(
    scope: Scope, rows: list[dict[str, Any]], known: list[dict[str, Any]], title: tuple[str, ...], notes: list[str],
    width: int, alt: str,
) -> Part:  # fmt: skip
    ink = palette()
    left = 120 if width >= 620 else 96
    plot = width - left - 30
    letter = {row["pass"]: LETTERS[n % len(LETTERS)] for n, row in enumerate(known)}
    players = sorted(
        {(row["role"], row["member"]) for row in rows},
        key=lambda p: (scope.roles.index(p[0]) if p[0] in scope.roles else 99, p),
    )
    place = {player: n * ROW + 4 for n, player in enumerate(players)}
    low, high = min(row["x0"] for row in rows), max(row["x1"] for row in rows)
    base = rows[0]["base_launch"]
    axis = {"title": f"{scope.units} since the CTA's start, laid out by launch {base}", "format": ",d", "grid": False,
            "tickCount": max(3, int(plot // 90)), "labelOverlap": True}  # fmt: skip
    x = scaled("x", (low, max(high, low + 1)), axis)
    marks: Marks = []
    texts: Marks = []
    for row in rows:
        y = place[row["role"], row["member"]]
        fill = (
            f"url(#{STALL})"
            if row["state"] == "stall"
            else scope.paint.get((row["role"], row["span"]), ink["untracked"])
        )
        thin = row["state"] not in ("stall", "active")
        top, bottom = (y + BAR - 4, y + BAR) if thin else (y, y + BAR)
        name = next((k["name"] for k in known if k["pass"] == row["pass"]), "")
        tip = described({
            "Role": clean(row["role"]), "Span": clean(row["span"]), "State": row["state"],
            "Iteration": row["iteration"],
            "Pass": f"{letter[row['pass']]} {clean(name, 30)} (launch {row['launch']})",
            "Length": f"{row['ticks']:,} {scope.units}",
            "In all passes": f"{row['least_ticks']:,} to {row['most_ticks']:,} in {row['passes']} passes, "
                             f"{row['launches']} launches",
            "Own time": "none" if row["since_start"] is None else f"{row['since_start']:,} since its CTA's start",
            "Behind the base launch": "" if row["drift"] is None else f"{row['drift']:,} {scope.units}"})  # fmt: skip
        marks.append({"x": row["x0"], "x1": row["x1"], "py": top, "py1": bottom, "fill": fill, TIP: tip})
        if not thin and (row["x1"] - row["x0"]) * plot / max(1, high - low) > 11:
            at = (row["x0"] + row["x1"] - 2 * low) / 2 * plot / max(1, high - low)
            shade = ink["ink"] if row["state"] == "stall" else written_on(fill) if fill.startswith("#") else ink["ink"]
            texts.append({"px": at, "py": y + BAR / 2, "text": letter[row["pass"]], "fill": shade,
                          "stalled": row["state"] == "stall"})  # fmt: skip
    names = [
        {"px": -12, "py": place[p] + BAR / 2, "text": clean(p[0], 15) + (f" {p[1]}" if p[1] > 1 else ""),
         "fill": scope.colour(p[0])}
        for p in players
    ]  # fmt: skip
    # A letter on a hatch is read only on a ground of its own.
    grounds = [
        {"px": t["px"] - 5, "px1": t["px"] + 5, "py": t["py"] - 6, "py1": t["py"] + 6} for t in texts if t["stalled"]
    ]
    vertical = {"y": raw("py"), "y2": {"field": "py1"}}
    picture = panel(
        [
            layer("rect", marks, {"x": x, "x2": {"field": "x1"}, **vertical, "fill": own("fill")}, stroke=ink["quiet"],
                  strokeWidth=0.4),
            layer("rect", grounds, {"x": raw("px"), "x2": {"field": "px1"}, **vertical}, fill=ink["paper"]),
            pixels(texts, align="center", fontSize=FONT - 2, fontWeight="bold"),
            pixels(names, align="right", fontWeight="bold", fontSize=FONT, limit=left - 16),
        ],
        plot,
        len(players) * ROW,
    )  # fmt: skip
    said = []
    for row in known:
        disturbed = "unknown" if row["perturbation"] is None else f"{row['perturbation'] * 100:+.1f} %"
        name = clean(row["name"], 30) or f"pass {row['pass']}"
        launches = "1 launch" if row["launches"] == 1 else f"{row['launches']} launches"
        said.append(f"{letter[row['pass']]}: {name}, {launches}, perturbation {disturbed}")
    words = legend([(f"url(#{STALL})", "stall: a wait stamped at both ends")], plot, [*said, *notes], left)
    return sheet([picture, words], title, width, alt)
