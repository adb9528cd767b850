"""The trend of each kernel over its versions or days: ticks an iteration, stall share, perturbation of its roles."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

from wsformat.viewers.panels import FONT, TIP, Marks, Part, boxes, layer, own, panel, pixels, scaled
from wsformat.viewers.panels import described as tips
from wsformat.viewers.timeline_layout import clean, palette

GROUPS = 8
"""Kernels drawn; the CSV has all."""
HEIGHT, HEAD, GAP, AXIS = 104.0, 34.0, 20.0, 62.0
LETTER = 6.1
DAY_NS = 86_400 * 10**9
PLOTS = (
    ("mean_ticks", "{unit} an iteration", ",.5~g"),
    ("stall_share", "stall share", ".3~%"),
    ("perturbation", "perturbation", "+.3~%"),
)


def groups_of(rows: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Rows of one kernel, shape, type, architecture and unit together, those with most periods first."""
    found: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in rows:
        if row["mean_ticks"] is not None:
            found.setdefault(tuple(row[k] for k in ("kernel", "shape", "dtype", "arch", "unit")), []).append(row)
    return sorted(found.values(), key=lambda held: -len({row["period"] for row in held}))


def periods_of(rows: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Periods in order of time and what to call them: a version, or the date of a day."""
    order = sorted(rows, key=lambda row: (row["first_unix_ns"], row["period"]))
    by_day = all(row["period"] == str(row["first_unix_ns"] // DAY_NS) for row in rows)
    found: dict[str, str] = {}
    for row in order:
        words = row["period"] or "no version"
        if by_day:
            unknown = row["first_unix_ns"] < 0
            words = "no date" if unknown else time.strftime("%Y-%m-%d", time.gmtime(row["first_unix_ns"] // 10**9))
        found.setdefault(row["period"], words)
    return found


def trend_parts(groups: Sequence[Sequence[dict[str, Any]]], width: float) -> list[Part]:
    """One line of three plots for each kernel."""
    parts = []
    for rows in groups:
        parts.append(_head(rows, width - AXIS))
        each = (width - AXIS * len(PLOTS) - GAP * (len(PLOTS) - 1)) / len(PLOTS)
        plots = [_plot(rows, *plot, each) for plot in PLOTS]
        parts.append({"hconcat": plots, "spacing": GAP + AXIS, "bounds": "flush", "center": False})
    return parts


def roles_of(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Roles in the order of the rows."""
    return list(dict.fromkeys(row["role"] for row in rows))


def _colour(number: int) -> str:
    colours: list[str] = palette()["active"]
    return colours[number % len(colours)]


def _head(rows: Sequence[dict[str, Any]], width: float) -> Part:
    """Name of the kernel, and the colours of its roles."""
    first = rows[0]
    name = ", ".join(clean(str(first[k]), 90) for k in ("kernel", "shape", "dtype", "arch") if first[k])
    texts: Marks = []
    marks: Marks = []
    x = 0.0
    for number, role in enumerate(roles_of(rows)):
        words = clean(role, 24)
        marks.append({"px": x, "px1": x + 10, "py": 21, "py1": 31, "fill": _colour(number)})
        texts.append({"px": x + 15, "py": 26, "text": words})
        x += 15 + len(words) * LETTER + 18
    title = pixels([{"px": 0, "py": 6, "text": name or "no kernel"}], fontWeight="bold", fontSize=FONT)
    return panel([title, boxes(marks), pixels(texts)], width, HEAD)


def _plot(rows: Sequence[dict[str, Any]], column: str, title: str, form: str, width: float) -> Part:
    ink = palette()
    periods = list(periods_of(rows))
    roles = roles_of(rows)
    known = [row for row in rows if row[column] is not None]
    bottom, top = ("least_ticks", "most_ticks") if column == "mean_ticks" else (column, column)
    words = title.format(unit=f"{rows[0]['unit']}s" if rows[0]["unit"] != "ns" else "ns")
    labels = _labels(list(periods_of(rows).values()), width)
    if not known:
        nothing = [{"px": 0, "py": HEIGHT / 2, "text": f"{words} unknown: no clean launches"}]
        return panel([pixels(nothing, fill=ink["quiet"])], width, HEIGHT)
    least, most = min(row[bottom] for row in known), max(row[top] for row in known)
    # What is the same everywhere is drawn level, not as differences in the last digit.
    room = max((most - least) * 0.1, abs(most) * 0.01 if column == "mean_ticks" else 0.01)
    domain = [least - room, most + room]
    if column == "stall_share":
        domain = [max(0.0, domain[0]), min(1.0, domain[1])]
    axis = {
        "title": words, "format": form, "tickCount": 4, "grid": True, "orient": "left", "titlePadding": 6,
        "minExtent": AXIS - 18, "maxExtent": AXIS - 18, "labelExpr": signed(form),
    }  # fmt: skip
    x = scaled("x", [-0.6, len(periods) - 0.4])
    y = scaled("y", domain, axis)
    values: Marks = []
    for row in known:
        number = roles.index(row["role"])
        # Roles of one loop have nearly the same ticks: beside one another, none hides another.
        place = periods.index(row["period"]) + (number - (len(roles) - 1) / 2) * 0.36 / max(1, len(roles))
        values.append(
            {
                "x": place, "y": row[column], "low": row[bottom], "high": row[top], "fill": _colour(number),
                "role": row["role"], TIP: _tip(row, periods_of(rows)[row["period"]]),
            }
        )  # fmt: skip
    plain = [{k: v for k, v in value.items() if k != TIP} for value in values]
    lines = layer("line", plain, {"x": x, "y": y, "stroke": own("fill"), "detail": {"field": "role"}}, strokeWidth=1)
    spread = layer(
        "rule", plain, {"x": x, "y": scaled("low", domain, axis), "y2": {"field": "high"}, "stroke": own("fill")},
    )  # fmt: skip
    points = layer("point", values, {"x": x, "y": y, "fill": own("fill")}, filled=True, size=30, opacity=1, clip=False)
    ticks = [{"px": (i + 0.6) / (len(periods) + 0.2) * width, "py": HEIGHT + 12, "text": t} for i, t in labels]
    below = pixels(ticks, align="center", fontSize=FONT - 2)
    return panel([lines, *([spread] if column == "mean_ticks" else []), points, below], width, HEIGHT)


def signed(form: str) -> str:
    """Vega's expression for the labels of an axis; zero has no sign."""
    return f"datum.value == 0 ? '0' : format(datum.value, '{form}')"


def _labels(words: list[str], width: float) -> list[tuple[int, str]]:
    """As many labels as fit beside one another, the last one always among them."""
    longest = max(len(word) for word in words) * LETTER + 8
    step = max(1, math.ceil(longest / (width / len(words))))
    return [(n, clean(word, 22)) for n, word in enumerate(words) if (len(words) - 1 - n) % step == 0]


def _tip(row: dict[str, Any], period: str) -> str:
    def share(value: float | None, sign: str = "") -> str:
        return "unknown" if value is None else f"{value:{sign}.1%}"

    words: str = tips(
        {
            "": f"{clean(row['role'])}, {clean(period)}",
            "Mean": f"{row['mean_ticks']:,.1f} {row['unit']} an iteration",
            "Captures": f"{row['captures']:,}, {row['least_ticks']:,.1f} to {row['most_ticks']:,.1f}",
            "Stall share": share(row["stall_share"]),
            "Perturbation": share(row["perturbation"], "+"),
        }
    )
    return words
