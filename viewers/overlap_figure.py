"""The overlap matrix: for every pair of roles how much of one's active time the other was active too."""

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
    boxes,
    described,
    heat,
    legend,
    panel,
    pixels,
    sheet,
    written_on,
)
from wsformat.viewers.timeline_chart import percent
from wsformat.viewers.timeline_layout import clean, palette

MOST = 12
"""Sets drawn at most."""

PAIRS = """
SELECT set_kind, set_a, set_b, COUNT(*) AS ctas, CAST(SUM(both_ticks) AS BIGINT) AS both_ticks,
       CAST(SUM(a_ticks) AS BIGINT) AS a_ticks, CAST(SUM(b_ticks) AS BIGINT) AS b_ticks,
       CAST(SUM(union_ticks) AS BIGINT) AS union_ticks, CAST(SUM(t_last - t_first) AS BIGINT) AS window_ticks,
       SUM(both_ticks) / NULLIF(SUM(a_ticks), 0) AS of_a, SUM(both_ticks) / NULLIF(SUM(b_ticks), 0) AS of_b,
       SUM(both_ticks) / NULLIF(SUM(union_ticks), 0) AS of_union
FROM overlap WHERE {where} GROUP BY set_kind, set_a, set_b ORDER BY set_kind DESC, set_a, set_b
"""


def overlap(bundle: Bundle, *, width: int = 860, **chosen: Any) -> Figure:
    """Draw the overlap of all pairs of roles, and of resources where the role spec names any.

    A cell is the share of its row's active ticks in which its column is active too. CTAs are compared one by one, each
    on its own clock, then summed.

    Args:
        bundle: what to draw.
        width: of the whole picture, in pixels.
        chosen: capture_id, launch, cta, roles, as in :func:`~wsformat.viewers.figure_scope.scope_of`.

    Raises:
        BadRequest: fewer than two roles with stamps in any CTA.
    """
    with bundle.duckdb(materialise=["overlap"], only=["point", "perturbation"]) as connection:
        scope = scope_of(bundle, connection, **chosen)
        where = scope.where(by_role=False)
        if chosen.get("roles") is not None:
            listed = ", ".join(map(literal, scope.roles))
            where += f" AND (set_kind <> 'role' OR set_a IN ({listed}) AND set_b IN ({listed}))"
        sql = {"every pair": PAIRS.format(where=where)}
        table = run(connection, sql["every pair"])
    rows = table.to_pylist()
    notes = list(scope.notes)
    matrices = []
    for kind, order in (("role", list(scope.roles)), ("resource", None)):
        pairs = [row for row in rows if row["set_kind"] == kind]
        if pairs:
            names = order or sorted({row[side] for row in pairs for side in ("set_a", "set_b")})
            names = [n for n in names if any(n in (row["set_a"], row["set_b"]) for row in pairs)]
            if len(names) > MOST:
                notes.append(f"{MOST} of {len(names)} {kind}s drawn.")
            matrices.append((kind, names[:MOST], pairs))
    if not matrices:
        raise BadRequest("fewer than two roles have stamps in one CTA, so there is no overlap to draw")
    best = max((row for row in rows if row["of_union"] is not None), key=lambda row: row["of_union"], default=None)
    alt = f"Overlap of {len(rows)} pairs."
    if best:
        first, second = clean(best["set_a"], 40), clean(best["set_b"], 40)
        alt += (
            f" Most: {first} and {second} are both active for {best['both_ticks']:,} {scope.units}, "
            f"{percent(best['of_a'])} of the first, {percent(best['of_b'])} of the second, "
            f"{percent(best['of_union'])} of their union."
        )
    return Figure(
        "overlap",
        scope.title,
        "A cell is the share of its row's active time in which its column is active too: read along a row, whose "
        f"active {scope.units} stand at the left. Small: the {scope.units} in which both are active, and their share "
        "of the union. On the diagonal: the share of the window in which the row itself is active.",
        alt,
        _spec(scope, matrices, notes, width, alt),
        table,
        sql,
        tuple(notes),
    )


def _spec(
    scope: Scope, matrices: list[tuple[str, list[str], list[dict[str, Any]]]], notes: list[str], width: int, alt: str
) -> Part:
    left = 170 if width >= 620 else 104
    plot = width - left - 20
    parts = [_matrix(scope, kind, names, pairs, plot, left) for kind, names, pairs in matrices]
    steps = palette()["heat"]
    bounds = [f"{100 * n // len(steps)} %" for n in range(len(steps) + 1)]
    scale: Marks = []
    marks: Marks = []
    for n, fill in enumerate(steps):
        marks.append({"px": n * 44 - left, "px1": n * 44 + 44 - left, "py": 4, "py1": 16, "fill": fill})
        scale.append({"px": n * 44 - left, "py": 26, "text": bounds[n]})
    scale.append({"px": len(steps) * 44 - left, "py": 26, "text": bounds[-1]})
    words = "share of the row's active time"
    scale.append({"px": -left, "py": 42, "text": words})
    parts.append(
        panel([boxes(marks, stroke=palette()["rule"], strokeWidth=0.5), pixels(scale, fontSize=FONT - 2)], plot, 50)
    )
    if notes:
        parts.append(legend([], plot, notes, left))
    return sheet(parts, scope.title, width, alt, spacing=18)


def _matrix(scope: Scope, kind: str, names: list[str], pairs: list[dict[str, Any]], plot: float, left: float) -> Part:
    ink = palette()
    found = {(row["set_a"], row["set_b"]): row for row in pairs}
    cell = min(132.0, plot / len(names))
    high = 58 if cell >= 84 else 34
    marks: Marks = []
    big: Marks = []
    small: Marks = []
    at = 34.0
    for i, a in enumerate(names):
        own, window, ctas = _own(a, pairs)
        y = at + i * high
        for j, b in enumerate(names):
            x = j * cell
            row = found.get((a, b)) or found.get((b, a))
            if a == b:
                share = own / window if window else None
                tip = described({kind.capitalize(): clean(a), "Active": f"{own:,} {scope.units}",
                                 "Share of the window": _exact(share), "Window": f"{window:,} {scope.units}",
                                 "CTAs": f"{ctas:,}"})  # fmt: skip
                fill, words = ink["paper"], ["of the window"]
            elif row is None:
                share, fill, words = None, ink["paper"], ["no common CTA"]
                tip = described({"Pair": f"{clean(a)} and {clean(b)}", "Overlap": "nothing to compare: no common CTA"})
            else:
                share = row["of_a"] if row["set_a"] == a else row["of_b"]
                fill = heat(share)
                words = [f"{row['both_ticks']:,}", f"{percent(row['of_union'] or 0.0)} of union"]
                tip = described({
                    "Both active": f"{row['both_ticks']:,} {scope.units}",
                    f"Of {clean(row['set_a'])}": f"{_exact(row['of_a'])} of {row['a_ticks']:,}",
                    f"Of {clean(row['set_b'])}": f"{_exact(row['of_b'])} of {row['b_ticks']:,}",
                    "Of the union": f"{_exact(row['of_union'])} of {row['union_ticks']:,}",
                    "Window": f"{row['window_ticks']:,} {scope.units} in {row['ctas']:,} CTAs"})  # fmt: skip
            marks.append({"px": x, "px1": x + cell, "py": y, "py1": y + high, "fill": fill, TIP: tip})
            text = written_on(fill)
            shown = "none" if share is None else percent(share)
            middle = x + cell / 2
            big.append({"px": middle, "py": y + (16 if high > 40 else high / 2), "text": shown, "fill": text})
            if high > 40:
                small += [
                    {"px": middle, "py": y + 33 + 13 * n, "text": word, "fill": text} for n, word in enumerate(words)
                ]
    heads: Marks = []
    under: Marks = []
    for i, name in enumerate(names):
        own = _own(name, pairs)[0]
        shade = scope.colour(name) if kind == "role" else ink["ink"]
        y = at + i * high + high / 2
        heads.append({"px": -12, "py": y - (7 if high > 40 else 0), "text": clean(name, 20), "fill": shade})
        if high > 40:
            under.append({"px": -12, "py": y + 9, "text": f"{own:,} active {scope.units}"})
    limit = max(6, int(cell / 8))
    tops = [
        {"px": i * cell + cell / 2, "py": 22, "text": clean(name, limit),
         "fill": scope.colour(name) if kind == "role" else ink["ink"]}
        for i, name in enumerate(names)
    ]  # fmt: skip
    corner = [{"px": 0, "py": 6, "text": f"share of the row's time in which this {kind} is active too"}]
    return panel(
        [
            boxes(marks, stroke=ink["rule"], strokeWidth=1),
            pixels(big, align="center", fontSize=FONT + 2, fontWeight="bold"),
            pixels(small, align="center", fontSize=FONT - 2.5),
            pixels(heads, align="right", fontSize=FONT, fontWeight="bold", limit=left - 16),
            pixels(under, align="right", fontSize=FONT - 2, fill=ink["quiet"], limit=left - 14),
            pixels(tops, align="center", fontSize=FONT, fontWeight="bold"),
            pixels(corner, fontSize=FONT - 2, fill=ink["quiet"]),
        ],
        plot,
        at + high * len(names),
    )


def _own(name: str, pairs: list[dict[str, Any]]) -> tuple[int, int, int]:
    """Active ticks of a set, its window and its CTAs; from the pair that shares the most CTAs with it."""
    best = max((row for row in pairs if name in (row["set_a"], row["set_b"])), key=lambda row: row["ctas"])
    return best["a_ticks" if best["set_a"] == name else "b_ticks"], best["window_ticks"], best["ctas"]


def _exact(share: float | None) -> str:
    return "no denominator" if share is None else f"{share * 100:.2f} %"
