"""The legend under a timeline: what the states mean, and the notes on what is not shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from wsformat.viewers.render import STALL
from wsformat.viewers.timeline_data import Content
from wsformat.viewers.timeline_layout import Layout, clean, palette, wrap
from wsformat.viewers.timeline_marks import STYLES
from wsformat.viewers.timeline_select import Selection

LINE = 15
SWATCH = 30


def entries(
    selection: Selection, content: Content, colours: dict[tuple[str, str], str]
) -> list[tuple[str, list[str], str]]:
    """What the legend says: kind of swatch, its colours, words. The three states always, the rest where drawn."""
    ink = palette()
    own = [span for span in content.spans if span["complete"] and span["own"]]
    active = [span for span in own if span["state"] == "active"]
    names: dict[str, dict[str, None]] = {}
    for span in sorted(active, key=lambda span: span["place"]):
        names.setdefault(span["role"], {})[span["span"]] = None

    def paint(spans: Iterable[dict[str, Any]]) -> list[str]:
        shades = [colours.get((s["role"], s["span"])) or colours.get((s["role"], "")) for s in spans]
        return list(dict.fromkeys(shade or ink["active"][0] for shade in shades))[:4]

    several = {role for role, spans in names.items() if len(spans) > 1}
    first = [colours.get((role, next(iter(spans))), ink["active"][0]) for role, spans in names.items()]
    found = [
        ("box", first[:4] or ink["active"][:1], "active: instrumented work, in the colour of its role"),
        ("box", [f"url(#{STALL})"], "stall: a wait stamped at both ends; " + _split_words(selection)),
        ("box", [ink["untracked"]], "not instrumented: no stamps cover this time, so nothing is known about it"),
    ]
    extra: dict[str, dict[str, str]] = {}
    for role in sorted(several):
        for span in list(names[role])[1:]:
            extra.setdefault(clean(span, 30), {})[clean(role, 20)] = colours[role, span]
    for span, shades in list(extra.items())[:6]:
        found.append(("box", list(shades.values())[:4], f"active: {span} of {', '.join(shades)}"))
    hides = paint(span for span in active if span["contains_wait"])
    if hides:
        found.append(("hides", hides, "active, but hides a wait without stamps of its own"))
    kinds = (
        ("thin", ("async",), "asynchronous work under way (no state of the role)"),
        ("scope", ("scope", "unknown"), "enclosing scope, or a span of no declared state (no state of the role)"),
    )
    for kind, states, words in kinds:
        found += [(kind, some, words)] if (some := paint(s for s in own if s["state"] in states)) else []
    cut = [s for s in content.spans if not (s["complete"] and s["own"])]
    cut += [s for s in own if s["state"] in ("active", "stall") and s["x1"] > s["x_cut"]]
    if cut:
        words = "counts in no state: its end is missing, on another lane, or after the record"
        found.append(("open", paint(cut)[:1], words))
    events = sorted({clean(mark["event"], 24) for mark in content.markers if not mark["reason"]})
    if events:
        found.append(("marker", [ink["ink"]], f"stamp: {', '.join(events[:4])}{' …' if len(events) > 4 else ''}"))
    if any(mark["reason"] for mark in content.markers):
        found.append(("orphan", [ink["warning"]], "stamp of a span that has no other end, or two"))
    found += _arrow_entries(content)
    return found


def _split_words(selection: Selection) -> str:
    unjudged = any(row.states.get("unjudged") for row in selection.rows)
    judged = any(row.states.get("blocked") or row.states.get("satisfied") for row in selection.rows)
    if judged:
        return "blocked on its producer, or satisfied and only tested" + (", or unjudged" if unjudged else "")
    return "no declared dependency says for whom" if unjudged else "no part of it is judged"


def _arrow_entries(content: Content) -> list[tuple[str, list[str], str]]:
    ink = palette()
    words = {
        "blocked": (ink["ink"], "binding signal to the exit of the wait that it blocked"),
        "satisfied": (ink["quiet"], "binding signal, already there when the wait began"),
        "late_exit": (ink["ink"], "binding signal, but something undeclared kept the wait longer"),
        "other": (ink["quiet"], "declared signal that did not bind"),
        "recorded": (ink["ink"], "arrow recorded by the source"),
    }
    there = {arrow["kind"] for arrow in content.arrows}
    return [(f"arrow_{kind}", [colour], text) for kind, (colour, text) in words.items() if kind in there]


def legend(
    data: Callable[[str, list[dict[str, Any]]], Any],
    alt: Any,
    selection: Selection,
    content: Content,
    layout: Layout,
    colours: dict[tuple[str, str], str],
) -> Any:
    """The legend as a chart of its own, in pixels.

    Args:
        data: names a data set of the picture.
        alt: the package altair.
        selection, content, layout, colours: what is drawn, where, in which colours.
    """
    ink = palette()
    font = layout.font - 1
    columns = 2 if layout.total >= 620 else 1
    column = layout.total / columns
    boxes: list[dict[str, Any]] = []
    lines: list[dict[str, Any]] = []
    points: list[dict[str, Any]] = []
    texts: list[dict[str, Any]] = []
    ys = [float(LINE)] * columns
    listed = entries(selection, content, colours)
    half = -(-len(listed) // columns)
    for number, (kind, fills, words) in enumerate(listed):
        side = number // half
        x, y = side * column - layout.left, ys[side]
        _swatch(kind, fills, x, y, boxes, lines, points)
        for line in wrap(words, column - SWATCH - 18, font):
            texts.append({"x": x + SWATCH + 8, "y": ys[side], "text": line})
            ys[side] += LINE
        ys[side] += 4
    bottom = max(ys) + 2
    for note in [*selection.notes, *content.notes]:
        for line in wrap(note, layout.total - 8, font):
            texts.append({"x": -layout.left, "y": bottom, "text": line})
            bottom += LINE
    x_axis = alt.X("x:Q", scale=alt.Scale(domain=[0, layout.width], nice=False, zero=False), axis=None)
    y_axis = alt.Y("y:Q", scale=alt.Scale(domain=[bottom, 0], nice=False, zero=False), axis=None)

    def marks(name: str, rows: list[dict[str, Any]]) -> Any:
        return alt.Chart(data(f"legend_{name}", rows), name=f"legend_{name}")

    fill = alt.Fill("fill:N", scale=None, legend=None)
    stroke = alt.Stroke("stroke:N", scale=None, legend=None)
    plain = {"aria": False, "clip": False}
    # Dashes cannot be data without a scale of their own.
    dashed = [
        marks(f"line_{style}", [row for row in lines if row["dash"] == style])
        .mark_rule(**plain, strokeDash=dash)
        .encode(
            x=x_axis, x2="x1", y=y_axis, stroke=stroke, strokeWidth=alt.StrokeWidth("wide:Q", scale=None, legend=None)
        )
        for style, dash in (("solid", [1, 0]), ("dashed", [3, 2]), ("notch", [3, 3]))
        if any(row["dash"] == style for row in lines)
    ]
    shapes = [
        marks(f"point_{shape}", [row for row in points if row["shape"] == shape])
        .mark_point(**plain, filled=True, opacity=1, shape=shape, size=size, angle=angle)
        .encode(x=x_axis, y=y_axis, fill=fill)
        for shape, size, angle in (("diamond", 22, 0), ("cross", 55, 45), ("triangle-right", 34, 0))
        if any(row["shape"] == shape for row in points)
    ]
    layers = [
        marks("box", [row for row in boxes if not row["open"]])
        .mark_rect(**plain, strokeWidth=0.7)
        .encode(x=x_axis, x2="x1", y=y_axis, y2="y1", fill=fill, stroke=stroke),
        *[
            marks("open_box", [row])
            .mark_rect(**plain, strokeWidth=1, strokeDash=[4, 2], fillOpacity=0.12)
            .encode(x=x_axis, x2="x1", y=y_axis, y2="y1", fill=fill, stroke=stroke)
            for row in boxes
            if row["open"]
        ],
        *dashed,
        *shapes,
        marks("text", texts)
        .mark_text(**plain, align="left", baseline="middle", fontSize=font, fill=ink["ink"])
        .encode(x=x_axis, y=y_axis, text="text:N"),
    ]
    return alt.layer(*layers, width=layout.width, height=bottom, name="legend")


def _swatch(
    kind: str,
    fills: list[str],
    x: float,
    y: float,
    boxes: list[dict[str, Any]],
    lines: list[dict[str, Any]],
    points: list[dict[str, Any]],
) -> None:
    ink = palette()
    end = x + SWATCH
    if kind in ("box", "hides", "thin", "scope", "open"):
        tall = 2.5 if kind in ("thin", "scope") else 6
        wide = SWATCH / len(fills)
        for number, fill in enumerate(fills):
            edge = (
                ink["stall"]["edge"] if fill.startswith("url(") else ink["rule"] if fill == ink["untracked"] else fill
            )
            boxes.append(
                {
                    "x": x + wide * number,
                    "x1": x + wide * (number + 1),
                    "y": y - tall,
                    "y1": y + tall,
                    "fill": ink["paper"] if kind == "scope" else fill,
                    "stroke": edge,
                    "open": kind == "open",
                }
            )
        if kind == "hides":
            lines.append({"x": x, "x1": end, "y": y + 2.5, "stroke": ink["paper"], "wide": 1.6, "dash": "notch"})
    elif kind in ("marker", "orphan"):
        shape = "diamond" if kind == "marker" else "cross"
        points.append({"x": x + SWATCH / 2, "y": y, "fill": fills[0], "shape": shape})
    else:
        dash, width, _ = STYLES[kind.removeprefix("arrow_")]
        lines.append({"x": x, "x1": end - 4, "y": y, "stroke": fills[0], "wide": width, "dash": dash})
        points.append({"x": end - 3, "y": y, "fill": fills[0], "shape": "triangle-right"})
