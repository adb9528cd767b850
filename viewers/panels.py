"""Parts of Vega-Lite specifications that the figures share: layers, axes, text in pixels, and the sheet around them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from wsformat.viewers.timeline_chart import FONTS
from wsformat.viewers.timeline_layout import luminance, palette, wrap

Marks = list[dict[str, Any]]
Part = dict[str, Any]
SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
FONT = 12.0
LINE = 15
SPOKEN = "data mark"
"""Role of a mark that tells its numbers."""
TIP = "tip"
"""Field of a mark with its words for hover and screen readers."""


def layer(kind: str, values: Marks, encoding: Mapping[str, Any], **style: Any) -> Part:
    """One kind of mark over its own data; marks that carry :data:`TIP` tell it on hover, all others are decoration."""
    tells = any(TIP in value for value in values)
    encoded = {**encoding, **({"description": {"field": TIP}} if tells else {})}
    # Without it Vega calls some marks "point" and others "rect mark"; the page looks for this one.
    spoken = {"aria": True, "ariaRoleDescription": SPOKEN} if tells else {"aria": False}
    return {
        "data": {"values": values},
        "mark": {"type": kind, **spoken, "clip": kind not in ("text", "rule"), **style},
        "encoding": encoded,
    }


def pixels(values: Iterable[Mapping[str, Any]], **style: Any) -> Part:
    """Text at pixels of its panel: rows of ``px``, ``py``, ``text`` and, if any has one, ``fill``."""
    rows = [dict(value) for value in values]
    encoding: dict[str, Any] = {"x": raw("px"), "y": raw("py"), "text": {"field": "text", "type": "nominal"}}
    if any("fill" in row for row in rows):
        encoding["fill"] = own("fill")
        rows = [{"fill": palette()["ink"], **row} for row in rows]
    else:
        style.setdefault("fill", palette()["ink"])
    return layer("text", rows, encoding, **{"baseline": "middle", "fontSize": FONT - 1, "align": "left", **style})


def boxes(values: Iterable[Mapping[str, Any]], **style: Any) -> Part:
    """Boxes at pixels of their panel: rows of ``px``, ``px1``, ``py``, ``py1``, ``fill``; on hover their ``tip``."""
    encoding = {"x": raw("px"), "x2": {"field": "px1"}, "y": raw("py"), "y2": {"field": "py1"}, "fill": own("fill")}
    return layer("rect", [dict(value) for value in values], encoding, **{"clip": False, **style})


def rules(values: Iterable[Mapping[str, Any]], **style: Any) -> Part:
    """Lines at pixels of their panel: rows of ``px``, ``px1``, ``py``, ``py1``."""
    encoding = {"x": raw("px"), "x2": {"field": "px1"}, "y": raw("py"), "y2": {"field": "py1"}}
    return layer("rule", [dict(value) for value in values], encoding, **{"stroke": palette()["rule"], **style})


def raw(field: str) -> dict[str, Any]:
    """A field that holds pixels."""
    return {"field": field, "type": "quantitative", "scale": None, "axis": None}


def own(field: str) -> dict[str, Any]:
    """A field that holds the colour itself."""
    return {"field": field, "type": "nominal", "scale": None, "legend": None}


def scaled(field: str, domain: Sequence[float], axis: Mapping[str, Any] | None = None, **scale: Any) -> dict[str, Any]:
    """A field on a scale with exactly this domain; without ``axis`` none is drawn."""
    return {
        "field": field,
        "type": "quantitative",
        "scale": {"domain": list(domain), "nice": False, "zero": False, **scale},
        "axis": None if axis is None else dict(axis),
    }


def panel(layers: Sequence[Part], width: float, height: float, **more: Any) -> Part:
    """Layers over one plot."""
    return {"width": width, "height": height, "layer": [part for part in layers if part["data"]["values"]], **more}


def legend(entries: Sequence[tuple[str, str]], width: float, notes: Sequence[str] = (), left: float = 0) -> Part:
    """Swatches with their words, in as many columns as fit, and the notes on what is not shown.

    Args:
        entries: colour (or ``url(#...)``) and words.
        width: of the panel.
        notes: set under the swatches.
        left: how far left of the panel the text begins.
    """
    ink = palette()
    columns = 2 if width + left >= 620 and len(entries) > 1 else 1
    column = (width + left) / columns
    marks: Marks = []
    texts: Marks = []
    ys = [float(LINE)] * columns
    half = math.ceil(len(entries) / columns)
    for number, (fill, words) in enumerate(entries):
        side = number // half
        x = side * column - left
        edge = ink["stall"]["edge"] if fill.startswith("url(") else ink["quiet"]
        marks.append({"px": x, "px1": x + 26, "py": ys[side] - 6, "py1": ys[side] + 6, "fill": fill, "stroke": edge})
        for line in wrap(words, column - 52, FONT - 1):
            texts.append({"px": x + 34, "py": ys[side], "text": line})
            ys[side] += LINE
        ys[side] += 4
    bottom = max(ys) + 2 if entries else float(LINE)
    for note in notes:
        for line in wrap(note, width + left - 8, FONT - 1):
            texts.append({"px": -left, "py": bottom, "text": line})
            bottom += LINE
    swatches = boxes(marks, strokeWidth=0.7)
    swatches["encoding"]["stroke"] = own("stroke")
    return panel([swatches, pixels(texts)], width, bottom)


def sheet(
    parts: Sequence[Part], title: Sequence[str], width: float, alt: str, *, spacing: float = 14, right: float = 0
) -> Part:
    """The whole picture: panels one above the other under a title.

    Args:
        parts: panels.
        title: headline and the lines under it, wrapped to the width.
        width: of the whole picture, in pixels.
        alt: alternative text.
        spacing: between panels.
        right: room that texts take at the right of the panels.
    """
    ink = palette()
    # Text reaches further in a browser with wide letters than where the picture was measured, so the picture is given
    # its width by a line that does not show.
    last = parts[-1]
    edge = rules([{"px": last["width"], "px1": last["width"] + right, "py": 0, "py1": 0}], strokeOpacity=0)
    parts = [*parts[:-1], {**last, "layer": [*last["layer"], edge]}]
    return {
        "$schema": SCHEMA,
        "description": alt,
        "background": ink["paper"],
        "padding": 10,
        "title": {
            "text": wrap(title[0], width, FONT + 3.5),
            "subtitle": [part for line in title[1:] for part in wrap(line, width, FONT - 0.5)],
            "anchor": "start", "frame": "bounds", "fontSize": FONT + 3, "offset": 12, "color": ink["ink"],
            "subtitleFontSize": FONT - 0.5, "subtitleColor": ink["quiet"], "subtitlePadding": 4,
        },
        "vconcat": list(parts),
        "spacing": spacing,
        "config": {
            "font": FONTS,
            "view": {"stroke": None},
            "axis": {
                "labelFontSize": FONT - 1, "titleFontSize": FONT - 0.5, "titleFontWeight": "normal",
                "labelColor": ink["ink"], "titleColor": ink["ink"], "tickColor": ink["quiet"],
                "domainColor": ink["quiet"], "gridColor": ink["rule"], "gridDash": [1, 3],
            },
        },
    }  # fmt: skip


def written_on(fill: str) -> str:
    """Colour of text on a filled mark."""
    return str(palette()["paper"] if luminance(fill) < 0.18 else palette()["ink"])


def heat(share: float | None) -> str:
    """Step of the sequential colours for 0 to 1; paper where there is no number."""
    steps: list[str] = palette()["heat"]
    return str(palette()["paper"]) if share is None else steps[min(len(steps) - 1, max(0, int(share * len(steps))))]


def short(value: float) -> str:
    """A count or a number of ticks in few characters, for places where the exact one stands elsewhere."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            scaled_value = value / (1e3 if letter == "k" else size)
            return f"{scaled_value:,.1f} {letter}" if abs(scaled_value) < 100 else f"{scaled_value:,.0f} {letter}"
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def described(fields: Mapping[str, Any]) -> str:
    """Words of a mark: ``name: value`` lines, empty ones left out."""
    return "\n".join(f"{name}: {value}" for name, value in fields.items() if value not in (None, ""))
