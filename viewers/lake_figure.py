"""Answers about a whole lake as pictures: one mark a row of the answer, with its spread where it has one.

Draws the table of an answer (``wsformat lake trend`` and the others) and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from wsformat.errors import BadRequest
from wsformat.lake.questions import described, question_sql
from wsformat.viewers.figure import Figure
from wsformat.viewers.lake_trend_figure import GROUPS, groups_of, signed, trend_parts
from wsformat.viewers.panels import (
    FONT,
    TIP,
    Marks,
    Part,
    layer,
    legend,
    own,
    panel,
    pixels,
    raw,
    scaled,
    sheet,
)
from wsformat.viewers.panels import (
    described as tips,
)
from wsformat.viewers.timeline_layout import clean, palette

MOST = 40
"""Rows drawn; the CSV has all."""
LINE = 24
LEFT = 290.0

CAPTIONS = {
    "trend": "A dot is the mean over the captures of a version (or day); at the left the upright line runs from the "
    "fastest to the slowest capture. Perturbation is what the recording did to the kernel, where clean launches tell.",
    "regressions": "A dot is the change of the mean ticks an iteration against the version before, the line one "
    "standard error of it to either side. Coloured: beyond the noise.",
    "barriers": "A bar is the share of the waiting role's time in which it was blocked at the barrier, as a mean over "
    "captures; the line ends at the worst capture.",
    "model_error": "A dot is the mean of measured over predicted minus 1, the line runs from the least to the most. "
    "Right of zero the kernel is slower than its budget.",
    "gaps": "A bar is the number of captures with that gap.",
}


def lake_figure(name: str, table: pa.Table, *, width: int = 860) -> Figure:
    """Draw an answer.

    Args:
        name: of the question.
        table: its answer.
        width: of the whole picture, in pixels.

    Raises:
        BadRequest: nothing to draw.
    """
    if name not in CAPTIONS:
        raise BadRequest(f"no picture of {name!r}", f"Pictures: {', '.join(CAPTIONS)}.")
    about = described()["questions"][name]["about"]
    headline = about[0].upper() + about[1:]
    if name == "trend":
        parts, title, notes, first = _trend(table.to_pylist(), headline, width)
    else:
        parts, title, notes, first = _list(name, table.to_pylist(), headline, width)
    if notes or name == "trend":  # the last part carries the width of the whole, and a row of plots has none
        parts.append(legend([], parts[0]["width"], list(notes), 0 if name == "trend" else LEFT))
    alt = f"{headline}. First: {first}."
    sql = {name: question_sql(name)}
    return Figure(f"lake-{name}", title, CAPTIONS[name], alt, sheet(parts, title, width, alt), table, sql, notes)


def _trend(
    rows: list[dict[str, Any]], headline: str, width: int
) -> tuple[list[Part], tuple[str, ...], tuple[str, ...], str]:
    groups = groups_of(rows)
    if not groups:
        raise BadRequest("trend: the answer has no row that can be drawn")
    notes = () if len(groups) <= GROUPS else (f"{GROUPS} of {len(groups)} kernels are drawn; the CSV has all.",)
    last = groups[0][-1]
    first = f"{clean(last['kernel'])} {clean(last['role'])}, {last['mean_ticks']:,.1f} {last['unit']}"
    title = (headline, counted(len(groups), "kernel"))
    return trend_parts(groups[:GROUPS], width), title, notes, first


def _list(
    name: str, answer: list[dict[str, Any]], headline: str, width: int
) -> tuple[list[Part], tuple[str, ...], tuple[str, ...], str]:
    rows = ROWS[name](answer)
    if not rows:
        raise BadRequest(f"{name}: the answer has no row that can be drawn")
    notes = () if len(rows) <= MOST else (f"The first {MOST} of {len(rows)} rows are drawn; the CSV has all.",)
    title = (headline, counted(len(rows), COUNTED[name]))
    return [_panel(name, rows[:MOST], width)], title, notes, f"{clean(rows[0]['label'])}, {rows[0]['words']}"


def counted(number: int, what: str) -> str:
    """A number of things in words."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _share(value: float | None, sign: str = "") -> str:
    return "unknown" if value is None else f"{value:{sign}.1%}"


def _row(label: str, at: float, low: float, high: float, words: str, loud: bool = False) -> dict[str, Any]:
    return {"label": label, "at": at, "low": low, "high": high, "words": words, "loud": loud, "bar": False}


def _regressions(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for r in rows:
        noise = (r["noise"] or 0.0) / r["before_ticks"]
        label = f"{_cut(r['kernel'], 20)}, {r['arch'] or 'no arch'}, {_cut(r['role'], 12)}"
        words = f"{r['before_version']} to {r['version']}: {_share(r['change'], '+')}, {r['verdict']}"
        beyond = r["verdict"] in ("regression", "improvement")
        found.append(_row(label, r["change"], r["change"] - noise, r["change"] + noise, words, beyond))
    return found


def _barriers(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for r in rows:
        by = f" by {r['producer_role']}" if r["producer_role"] else ""
        worst = f"worst {_share(r['most_share'])}, " if r["captures"] > 1 else ""
        words = f"{_share(r['mean_share'])}, {worst}{counted(r['captures'], 'capture')}"
        label = f"{_cut(r['barrier'], 14)}: {_cut(r['role'], 14)} {_cut(r['span'], 14)}{by}"
        row = _row(label, r["mean_share"], 0.0, r["most_share"], words)
        found.append({**row, "bar": True})
    return found


def _model_error(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    rows = [r for r in rows if "mean_error" in r]
    return [
        _row(
            f"{r['resource']} ({r['kind']}), {r['method'].replace('_', ' ')}",
            r["mean_error"], r["least_error"], r["most_error"],
            f"{_share(r['mean_error'], '+')}, root mean square {_share(r['rms_error'])}, {counted(r['pairs'], 'pair')}",
        )
        for r in rows
    ]  # fmt: skip


def _gaps(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    counts: dict[str, int] = {}
    for r in rows:
        counts[r["gap"]] = counts.get(r["gap"], 0) + 1
    order = sorted(counts, key=lambda gap: -counts[gap])
    return [{**_row(g, counts[g], 0, counts[g], counted(counts[g], "capture")), "bar": True} for g in order]


ROWS: dict[str, Callable[[list[dict[str, Any]]], list[dict[str, Any]]]] = {
    "regressions": _regressions, "barriers": _barriers, "model_error": _model_error, "gaps": _gaps,
}  # fmt: skip
COUNTED = {"regressions": "comparison", "barriers": "wait", "model_error": "resource", "gaps": "gap"}
AXES = {
    "regressions": ("change of the ticks an iteration", "+.3~%"),
    "barriers": ("share of the waiting role's time", ".3~%"),
    "model_error": ("measured over predicted, minus 1", "+.3~%"),
    "gaps": ("captures", ",d"),
}


def _cut(text: str, most: int) -> str:
    return clean(text, most) or "-"


def _panel(name: str, rows: list[dict[str, Any]], width: int) -> Part:
    """Names at the left, marks on one axis, numbers at the right."""
    ink = palette()
    room = (width - LEFT) * 0.5
    low, high = min(0.0, *(r["low"] for r in rows)), max(0.0, *(r["high"] for r in rows))
    span = (high - low) or 1.0
    domain = [low - 0.03 * span if low < 0 else 0.0, high + 0.03 * span if high > 0 else 0.0]
    if domain[0] == domain[1]:
        domain[1] = 1.0
    title, form = AXES[name]
    axis = {"title": title, "labelExpr": signed(form), "tickCount": 5, "grid": True, "orient": "bottom"}
    if name == "gaps":
        axis["tickMinStep"] = 1
    x = scaled("x", domain, axis)
    marks: Marks = []
    lines: Marks = []
    texts: Marks = []
    names: Marks = []
    for number, row in enumerate(rows):
        y = number * LINE + LINE / 2
        tip = tips({"": clean(row["label"]), "Value": row["words"]})
        fill = ink["active"][0] if row["loud"] or row["bar"] else ink["quiet"]
        lines.append({"x": row["low"], "x1": row["high"], "py": y})
        marks.append({"x": row["at"], "x1": 0.0, "py": y - 6, "py1": y + 6, "y": y, "fill": fill, TIP: tip})
        texts.append({"px": room + 12, "py": y, "text": row["words"]})
        names.append({"px": -12, "py": y, "text": clean(row["label"], 46)})
    height = len(rows) * LINE
    zero = layer("rule", [{"x": 0.0}], {"x": x}, stroke=ink["quiet"])
    spread = layer("rule", lines, {"x": x, "x2": {"field": "x1"}, "y": raw("py")}, stroke=ink["quiet"])
    if rows[0]["bar"]:
        box = {"x": x, "x2": {"field": "x1"}, "y": raw("py"), "y2": {"field": "py1"}, "fill": own("fill")}
        shown = layer("rect", marks, box)
    else:
        dot = {"x": x, "y": raw("y"), "fill": own("fill")}
        shown = layer("point", marks, dot, filled=True, size=70, opacity=1, shape="square", clip=False)
    layers = [zero, spread, shown, pixels(texts, fontSize=FONT - 1), pixels(names, align="right")]
    return panel(layers, room, height)
