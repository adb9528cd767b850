"""The timeline as an Altair chart: layers over one time axis, and a legend that says what the states mean."""

from __future__ import annotations

import math
from typing import Any

from wsformat.viewers.render import STALL, optional
from wsformat.viewers.timeline_axis import Row
from wsformat.viewers.timeline_data import Content
from wsformat.viewers.timeline_layout import Layout, label, palette, remark
from wsformat.viewers.timeline_legend import legend
from wsformat.viewers.timeline_marks import timeline_marks
from wsformat.viewers.timeline_select import Selection

Marks = list[dict[str, Any]]
FONTS = "Arial, Helvetica, Liberation Sans, sans-serif"
SCALE = "timeline_x"
"""Name that Vega-Lite gives the time scale: the name of the plot and its channel."""


def chart(
    selection: Selection,
    content: Content,
    layout: Layout,
    colours: dict[tuple[str, str], str],
    title: list[str],
    subtitle: list[str],
    description: str,
    origin: tuple[int, str] | None = None,
) -> Any:
    """The whole picture as an ``altair.VConcatChart``."""
    alt = optional("altair")
    draw = _Draw(alt, content, layout)
    ink = palette()
    marks = timeline_marks(selection, content, layout, colours)
    binding = [mark for mark in marks["arrow"] if mark["kind"] == "blocked"]
    light = [mark for mark in marks["arrow"] if mark["kind"] != "blocked"]
    dense = 22 if len(marks["marker_head"]) * 14 < layout.width * len(layout.bars) else 12
    lengths = ["Length", "In ns", "Begin", "End", "Raw ticks"]
    where = ["Row", "Span", "State", "Iteration"]
    waited = ["Barrier", "Verdict", "Blocked", "Satisfied", "Unjudged", "Bound by", "Signal to exit"]
    layers = [
        draw.layer("axis", [{"x": content.window.start, "y": 0}], "rule", "x", axis=draw.bottom(selection, origin),
                   opacity=0),
        draw.layer("rails", marks["rails"], "rule", None, stroke=ink["rule"], strokeWidth=1),
        draw.layer("untracked", marks["untracked"], "rect", "x0", ["Row", "State", *lengths], fill=ink["untracked"]),
        draw.lines("light_arrow", light, styled=True),
        draw.layer("active", marks["active"], "rect", "x0", [*where, *lengths], fill="fill", stroke=ink["paper"],
                   strokeWidth="edge"),
        draw.layer("hides_wait", marks["hides_wait"], "rule", "x0", stroke=ink["paper"], strokeWidth=1.6,
                   strokeDash=[3, 3]),
        draw.layer("stall", marks["stall"], "rect", "x0", [*where, *lengths, *waited], fill=f"url(#{STALL})",
                   stroke=ink["stall"]["edge"], strokeWidth="edge"),
        draw.layer("open_span", marks["open_span"], "rect", "x0", [*where, "Remark", *lengths], fill="fill",
                   fillOpacity=0.12, stroke="fill", strokeWidth=1, strokeDash=[4, 2]),
        draw.layer("scope", marks["scope"], "rect", "x0", [*where, *lengths], fill=ink["paper"], stroke="fill",
                   strokeWidth=1),
        draw.layer("async", marks["async"], "rect", "x0", [*where, *lengths], fill="fill", fillOpacity=0.55),
        draw.layer("marker", marks["marker"], "rule", "x", stroke=ink["ink"], strokeWidth=0.8),
        draw.lines("halo", binding, stroke=ink["paper"], strokeWidth=3, strokeOpacity=0.8),
        draw.lines("arrow", binding, styled=True),
        draw.layer("names", marks["names"], "text", "x", fill="fill", fontSize=layout.font - 2),
        *[
            draw.layer(f"arrow_head_{way}", [m for m in marks["arrow_head"] if m["way"] == way], "point", "x",
                       ["Arrow", "Verdict", "Signal", "Exit", "Signal to exit"], shape=f"triangle-{way}", size=34,
                       filled=True, fill="fill", opacity=1)
            for way in ("up", "down")
        ],
        draw.layer("marker_head", marks["marker_head"], "point", "x", ["Row", "Event", "Iteration", "At", "Raw ticks"],
                   shape="diamond", size=dense, filled=True, fill=ink["ink"], opacity=1),
        draw.layer("orphan", marks["orphan"], "point", "x", ["Row", "Event", "Iteration", "Remark", "At", "Raw ticks"],
                   shape="cross", angle=45, size=55, filled=True, fill=ink["warning"], opacity=1),
        draw.layer("record_end", marks["record_end"], "rule", "x", stroke=ink["warning"], strokeWidth=1.6,
                   strokeDash=[2, 2]),
        draw.layer("record_end_text", marks["record_end_text"], "text", "x", fill=ink["warning"], align="left", dx=4,
                   fontSize=layout.font - 2, clip=False),
        draw.layer("no_stamps", marks["no_stamps"], "text", None, fill=ink["quiet"], fontStyle="italic", clip=False,
                   fontSize=layout.font - 1),
        *draw.beside(selection),
    ]  # fmt: skip
    if selection.axis.ns_per_tick is not None and origin is None:
        layers.insert(1, draw.layer("ns_axis", [{"x": content.window.start, "y": 0}], "rule", "x",
                                    axis=draw.top(selection), opacity=0))  # fmt: skip
    below = legend(draw.data, alt, selection, content, layout, colours)
    # All at once: every method of a chart copies all of its layers.
    plot = alt.layer(
        *[layer for layer in layers if draw.datasets[layer.name]],
        resolve=alt.Resolve(axis=alt.AxisResolveMap(x="independent")),
        name="timeline",
        width=layout.width,
        height=layout.height,
    )
    whole = alt.vconcat(
        plot,
        below,
        spacing=14,
        title=alt.Title(text=title, subtitle=subtitle, anchor="start", fontSize=layout.font + 3, offset=12,
                        subtitleFontSize=layout.font - 0.5, subtitleColor=ink["quiet"], subtitlePadding=4,
                        color=ink["ink"]),
        description=description,
        padding=10,
        config=alt.Config(
            background=ink["paper"],
            font=FONTS,
            view=alt.ViewConfig(stroke=None),
            axis=alt.AxisConfig(labelFontSize=layout.font - 1, titleFontSize=layout.font - 0.5,
                                titleFontWeight="normal", labelColor=ink["ink"], titleColor=ink["ink"],
                                tickColor=ink["quiet"], domainColor=ink["quiet"], gridColor=ink["rule"],
                                gridDash=[1, 3]),
        ),
    )  # fmt: skip
    whole.datasets = {name: marks for name, marks in draw.datasets.items() if marks}
    return whole


class _Draw:
    """Layers that share one time axis and one pixel axis downwards."""

    def __init__(self, alt: Any, content: Content, layout: Layout) -> None:
        self.alt = alt
        self.layout = layout
        # By name, so that Altair does not copy every mark each time that layers are put together.
        self.datasets: dict[str, Marks] = {}
        self.x_scale = alt.Scale(domain=[content.window.start, content.window.end], nice=False, zero=False)
        self.y_scale = alt.Scale(domain=[layout.height, 0], nice=False, zero=False)

    def data(self, name: str, marks: Marks) -> Any:
        """The marks as a named data set of the picture."""
        self.datasets[name] = marks
        return self.alt.NamedData(name=name)

    def layer(
        self, name: str, marks: Marks, kind: str, x: str | None, tooltip: list[str] | None = None, axis: Any = None,
        *, clip: bool = True, **style: Any,
    ) -> Any:  # fmt: skip
        """One kind of mark. ``x`` names the field, None a mark as wide as the plot; style 'fill' means the field."""
        alt = self.alt
        encoding: dict[str, Any] = {"y": alt.Y("y:Q", scale=self.y_scale, axis=None)}
        if x is None:
            encoding["x"] = alt.value(self.layout.width / 2 if kind == "text" else 0)
            if kind == "rule":
                encoding["x2"] = alt.value(self.layout.width)
        else:
            encoding["x"] = alt.X(f"{x}:Q", scale=self.x_scale, axis=axis)
            if x == "x0":
                encoding["x2"] = "x1"
        if kind == "rect" or name in ("marker", "record_end"):
            encoding["y2"] = "y1"
        for channel in ("fill", "stroke"):
            if style.get(channel) == "fill":
                encoding[channel] = alt.Fill("fill:N", scale=None, legend=None) if channel == "fill" else alt.Stroke(
                    "fill:N", scale=None, legend=None)  # fmt: skip
                del style[channel]
        if style.get("strokeWidth") == "edge":
            encoding["strokeWidth"] = alt.StrokeWidth("edge:Q", scale=None, legend=None)
            del style["strokeWidth"]
        if kind == "text":
            encoding["text"] = "text:N"
        if tooltip:
            encoding["tooltip"] = [alt.Tooltip(f"{field}:N") for field in tooltip]
        made = alt.Chart(self.data(name, marks), name=name)
        return getattr(made, f"mark_{kind}")(clip=clip, aria=False, **style).encode(**encoding)

    def lines(self, name: str, marks: Marks, *, styled: bool = False, **style: Any) -> Any:
        """Arrow shafts: they leave and arrive upright, so that their heads are right at every zoom."""
        alt = self.alt
        encoding = {
            "x": alt.X("x:Q", scale=self.x_scale, axis=None),
            "y": alt.Y("y:Q", scale=self.y_scale, axis=None),
            "detail": "arrow:N",
            "order": "nth:Q",
        }
        if styled:
            encoding["stroke"] = alt.Stroke("fill:N", scale=None, legend=None)
            encoding["strokeWidth"] = alt.StrokeWidth("wide:Q", scale=None, legend=None)
            encoding["strokeDash"] = alt.StrokeDash("dash:N", scale=alt.Scale(domain=["solid", "dashed"],
                                                    range=[[1, 0], [3, 2]]), legend=None)  # fmt: skip
        made = alt.Chart(self.data(name, marks), name=name)
        return made.mark_line(clip=True, aria=False, interpolate="linear", strokeJoin="round", **style).encode(
            **encoding
        )

    def bottom(self, selection: Selection, origin: tuple[int, str] | None) -> Any:
        """The axis in the unit of the clock, from its own zero or from ``origin``."""
        if origin is not None:
            at, words = origin
            low, high = self.x_scale.domain
            ten = 10 ** math.floor(math.log10(max(1.0, (high - low) / 8)))
            step = max(1, next(m * ten for m in (1, 2, 5, 10) if (high - low) / (m * ten) <= 9))
            values = list(range(at - (at - low) // step * step, high + 1, step))
            unit = "ns" if selection.axis.unit == "ns" else f"{selection.axis.unit}s"
            return self.alt.Axis(title=f"{unit} since {words}", values=values, orient="bottom", labelFlush=False,
                                 labelOverlap=True, labelExpr=f"format(datum.value - {at}, ',d')")  # fmt: skip
        return self.alt.Axis(title=axis_title(selection), format=",d", tickCount=max(3, self.layout.width // 90),
                             orient="bottom", labelFlush=False, labelOverlap=True)  # fmt: skip

    def top(self, selection: Selection) -> Any:
        """The same ticks in ns, where anchors say how long a tick is."""
        rate = float(selection.axis.ns_per_tick or 0.0)
        error = "" if selection.axis.error_ns is None else f", anchors ±{math.ceil(selection.axis.error_ns):,} ns"
        # Round numbers of ns, at every zoom: the steps 1, 2, 5 that give some 5 to 10 labels.
        low, high = (f"domain('{SCALE}')[{end}]" for end in (0, 1))
        span = f"(({high} - {low}) * {rate!r} / {max(3, self.layout.width // 90)})"
        ten = f"pow(10, floor(log({span}) / LN10))"
        step = f"({ten} * ({span} / {ten} > 5 ? 10 : {span} / {ten} > 2 ? 5 : {span} / {ten} > 1 ? 2 : 1))"
        values = f"sequence(ceil({low} * {rate!r} / {step}) * {step} / {rate!r}, {high}, {step} / {rate!r})"
        return self.alt.Axis(title=f"ns (clock at {1 / rate:.3f} GHz{error})", orient="top", grid=False,
                             values=self.alt.ExprRef(values), labelOverlap=True,
                             labelExpr=f"format(datum.value * {rate!r}, ',.6~r')")  # fmt: skip

    def beside(self, selection: Selection) -> list[Any]:
        """Names on the left, shares on the right, headings of groups."""
        ink = palette()
        font = self.layout.font
        names: Marks = []
        remarks: Marks = []
        table: dict[str, Marks] = {"active": [], "stall": [], "untracked": [], "blocked": []}
        for bar in self.layout.bars:
            note = remark(bar.row)
            shift = 5 if note else 0
            names.append({"y": bar.middle - shift, "text": label(bar.row)})
            remarks += [{"y": bar.middle + 8, "text": note}] if note else []
            extent = bar.row.states.get("extent", 0)
            if self.layout.right > 100 and extent > 0:
                for state in ("active", "stall", "untracked"):
                    share = bar.row.states[state] / extent
                    table[state].append({"y": bar.middle, "text": percent(share)})
                table["blocked"].append({"y": bar.middle + font, "text": _split(bar.row)})
        room = self.layout.left - 12
        heads = [{"y": y, "text": text} for y, text in self.layout.headings]
        texts = [
            (
                "row_names",
                names,
                -10,
                {"align": "right", "fontSize": font, "fontWeight": "bold", "fill": ink["ink"], "limit": room},
            ),
            (
                "row_remarks",
                remarks,
                -10,
                {"align": "right", "fontSize": font - 2.5, "fill": ink["quiet"], "limit": room},
            ),
            ("headings", heads, 4 - self.layout.left, {"align": "left", "fontSize": font, "fill": ink["quiet"]}),
        ]
        if table["stall"]:
            place = {"active": 36, "stall": 88, "untracked": 146}
            head = {"active": "active", "stall": "stall", "untracked": "not instr."}
            small = {"align": "center", "fontSize": font - 1.5, "fill": ink["ink"]}
            for state, x in place.items():
                texts.append((f"share_{state}", table[state], self.layout.width + x, small))
                texts.append((f"share_head_{state}", [{"y": -8, "text": head[state]}], self.layout.width + x,
                              {**small, "fill": ink["quiet"]}))  # fmt: skip
            texts.append(("share_of", [{"y": -22, "text": "share of the whole lane"}],
                          self.layout.width + 91, {**small, "fill": ink["quiet"]}))  # fmt: skip
            texts.append(("share_split", table["blocked"], self.layout.width + place["stall"],
                          {**small, "fontSize": font - 3, "fill": ink["quiet"]}))  # fmt: skip
        return [self._text(name, marks, x, style) for name, marks, x, style in texts]

    def _text(self, name: str, marks: Marks, x: float, style: dict[str, Any]) -> Any:
        alt = self.alt
        return (
            alt.Chart(self.data(name, marks), name=name)
            .mark_text(aria=False, clip=False, baseline="middle", **style)
            .encode(x=alt.value(x), y=alt.Y("y:Q", scale=self.y_scale, axis=None), text="text:N")
        )


def _split(row: Row) -> str:
    blocked = row.states["blocked"] / row.states["extent"]
    if not row.states["stall"]:
        return ""
    if row.states["unjudged"]:
        return f"{percent(row.states['unjudged'] / row.states['extent'])} unjudged"
    return f"{percent(blocked)} blocked"


def percent(share: float) -> str:
    """A share for people; never 0 % for something that is there, never 100 % for something that is not all."""
    if 0 < share < 0.005:
        return "<1 %"
    if 0.995 <= share < 1:
        return ">99 %"
    return f"{share * 100:.0f} %"


def axis_title(selection: Selection) -> str:
    """What the horizontal axis counts, and from where."""
    axis = selection.axis
    unit = "ns" if axis.unit == "ns" else f"{axis.unit}s"
    one = "CTA" if selection.groups[0].cta >= 0 and len(selection.groups) == 1 else "launch"
    if axis.kind == "mapped":
        bound = "error bound unknown" if axis.error_ns is None else f"±{math.ceil(axis.error_ns):,} ns"
        return f"ns since the launch's first stamp (clocks joined by anchors, {bound})"
    if axis.kind == "own":
        each = "CTA" if len({(g.launch, g.cta) for g in selection.groups}) > len({g.launch for g in selection.groups}) \
            else "launch"  # fmt: skip
        return f"{unit} since each {each}'s own first stamp"
    return f"{unit} since the {one}'s first stamp"
