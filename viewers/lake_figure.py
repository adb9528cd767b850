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
from wsformat.viewers.panels import (
    FONT,
    TIP,
    Marks,
    Part,
    boxes,
    legend,
    panel,
    pixels,
    rules,
    sheet,
)
from wsformat.viewers.panels import (
    described as tips,
)
from wsformat.viewers.timeline_layout import clean, palette

MOST = 40
"""Rows drawn; the CSV has all."""
LINE = 24
LEFT = 300.0

CAPTIONS = {
    "trend": "A dot is the mean of a version's (or day's) captures in ticks an iteration, the line runs from the "
    "fastest to the slowest capture. At the right: captures, stall share, and what the recording did to the kernel.",
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
    if name not in ROWS:
        raise BadRequest(f"no picture of {name!r}", f"Pictures: {', '.join(ROWS)}.")
    rows = ROWS[name](table.to_pylist())
    if not rows:
        raise BadRequest(f"{name}: the answer has no row that can be drawn")
    notes = () if len(rows) <= MOST else (f"The first {MOST} of {len(rows)} rows are drawn; the CSV has all.",)
    about = described()["questions"][name]["about"]
    title = (about[0].upper() + about[1:], f"{len(rows):,} rows")
    alt = f"{title[0]}. First: {rows[0]['label']}, {rows[0]['words']}."
    spec = _spec(rows[:MOST], title, notes, width, alt)
    return Figure(f"lake-{name}", title, CAPTIONS[name], alt, spec, table, {name: question_sql(name)}, notes)


def _share(value: float | None, sign: str = "") -> str:
    return "unknown" if value is None else f"{value:{sign}.1%}"


def _row(label: str, at: float, low: float, high: float, words: str, loud: bool = False) -> dict[str, Any]:
    return {"label": label, "at": at, "low": low, "high": high, "words": words, "loud": loud, "bar": False}


def _end(value: float, rows: list[dict[str, Any]]) -> str:
    """An end of the axis, in the unit of the marks."""
    return f"{value:.1%}" if "%" in rows[0]["words"].split(",")[0] else f"{value:,.0f}"


def _trend(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        _row(
            " ".join(p for p in (r["kernel"], r["arch"], r["role"], r["period"]) if p),
            r["mean_ticks"], r["least_ticks"], r["most_ticks"],
            f"{r['mean_ticks']:,.1f} {r['unit']}, {r['captures']} captures, stall {_share(r['stall_share'])}, "
            f"perturbation {_share(r['perturbation'], '+')}",
        )
        for r in rows if r["mean_ticks"] is not None
    ]  # fmt: skip


def _regressions(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for r in rows:
        noise = (r["noise"] or 0.0) / r["before_ticks"]
        label = " ".join(p for p in (r["kernel"], r["arch"], r["role"], f"{r['before_version']} > {r['version']}") if p)
        words = f"{_share(r['change'], '+')}, {r['verdict']}"
        beyond = r["verdict"] in ("regression", "improvement")
        found.append(_row(label, r["change"], r["change"] - noise, r["change"] + noise, words, beyond))
    return found


def _barriers(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for r in rows:
        by = f" by {r['producer_role']}" if r["producer_role"] else ""
        words = f"{_share(r['mean_share'])} of its time, {r['captures']} captures, worst {_share(r['most_share'])}"
        row = _row(f"{r['barrier']}: {r['role']}{by}", r["mean_share"], 0.0, r["most_share"], words)
        found.append({**row, "bar": True})
    return found


def _model_error(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    rows = [r for r in rows if "mean_error" in r]
    return [
        _row(
            f"{r['resource']} ({r['kind']}), {r['method']}", r["mean_error"], r["least_error"], r["most_error"],
            f"{_share(r['mean_error'], '+')}, root mean square {_share(r['rms_error'])}, {r['pairs']} pairs",
        )
        for r in rows
    ]  # fmt: skip


def _gaps(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    counts: dict[str, int] = {}
    for r in rows:
        counts[r["gap"]] = counts.get(r["gap"], 0) + 1
    order = sorted(counts, key=lambda gap: -counts[gap])
    return [{**_row(g, counts[g], 0, counts[g], f"{counts[g]:,} captures"), "bar": True} for g in order]


ROWS: dict[str, Callable[[list[dict[str, Any]]], list[dict[str, Any]]]] = {
    "trend": _trend, "regressions": _regressions, "barriers": _barriers, "model_error": _model_error, "gaps": _gaps,
}  # fmt: skip


def _spec(rows: list[dict[str, Any]], title: tuple[str, ...], notes: tuple[str, ...], width: int, alt: str) -> Part:
    ink = palette()
    plot = width - LEFT - 20
    room = plot * 0.42
    low, high = min(r["low"] for r in rows), max(r["high"] for r in rows)
    low = min(low, 0.0) if any(r["bar"] or r["low"] < 0 for r in rows) else low
    span = (high - low) or 1.0

    def at(value: float) -> float:
        return 6 + (value - low) / span * (room - 12)

    marks: Marks = []
    lines: Marks = []
    texts: Marks = []
    names: Marks = []
    for number, row in enumerate(rows):
        y = number * LINE + LINE / 2
        tip = tips({"": clean(row["label"]), "Value": row["words"]})
        fill = ink["active"][0] if row["loud"] or row["bar"] else ink["quiet"]
        lines.append({"px": at(row["low"]), "px1": at(row["high"]), "py": y, "py1": y})
        if row["bar"]:
            marks.append({"px": at(0), "px1": at(row["at"]), "py": y - 6, "py1": y + 6, "fill": fill, TIP: tip})
        else:
            x = at(row["at"])
            marks.append({"px": x - 4, "px1": x + 4, "py": y - 4, "py1": y + 4, "fill": fill, TIP: tip})
        texts.append({"px": room + 10, "py": y, "text": row["words"]})
        names.append({"px": -10, "py": y, "text": clean(row["label"])[:52]})
    ends = [(low, "left"), (high, "right")] if high > low else [(high, "right")]
    foot = len(rows) * LINE + 10
    scale = [pixels([{"px": at(v), "py": foot, "text": _end(v, rows)}], align=a, fontSize=FONT - 2) for v, a in ends]
    zero = [{"px": at(0), "px1": at(0), "py": 0, "py1": len(rows) * LINE}] if low <= 0 <= high else []
    layers = [
        rules(zero, stroke=ink["rule"]), rules(lines, stroke=ink["quiet"]), boxes(marks),
        pixels(texts, fontSize=FONT - 2), pixels(names, align="right"), *scale,
    ]  # fmt: skip
    parts = [panel(layers, plot, len(rows) * LINE + 20)]
    if notes:
        parts.append(legend([], plot, list(notes), LEFT))
    return sheet(parts, title, width, alt)
