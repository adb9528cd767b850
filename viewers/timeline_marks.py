"""The marks of each layer of a timeline: places in the picture and the numbers of the tooltips."""

from __future__ import annotations

from collections import Counter
from typing import Any

from wsformat.viewers.timeline_axis import Row, to_ns
from wsformat.viewers.timeline_data import Content
from wsformat.viewers.timeline_layout import TRACK, Bar, Layout, clean, label, luminance, palette
from wsformat.viewers.timeline_select import Selection

Marks = list[dict[str, Any]]
LAYERS = (
    "rails", "untracked", "active", "hides_wait", "stall", "open_span", "scope", "async", "names", "marker",
    "marker_head", "orphan", "arrow", "arrow_head", "record_end", "record_end_text", "no_stamps",
)  # fmt: skip

VERDICTS = {
    "free": "free: the ring was not yet full",
    "not_blocked": "satisfied before it began",
    "producer_late": "producer late: the signal came after the wait began",
    "in_flight": "in flight: signalled before, released after the wait began",
    "other": "other: the exit came long after the release",
    "unknown": "unjudged: no edge or no stamp of the signal",
}


def timeline_marks(
    selection: Selection, content: Content, layout: Layout, colours: dict[tuple[str, str], str]
) -> dict[str, Marks]:
    """Marks by layer. Positions x, x0, x1 are in axis units, y and y1 in pixels from the top."""
    layers: dict[str, Marks] = {name: [] for name in LAYERS}
    unit = selection.axis.unit
    for bar in layout.bars:
        layers["rails"].append({"y": bar.bottom})
        if bar.row.t_first is None:
            layers["no_stamps"].append({"y": bar.middle, "text": "no stamps"})
    for row in content.untracked:
        bar = layout.bars[row["place"]]
        layers["untracked"].append(
            {**_box(row, bar), "Row": label(bar.row), "State": "not instrumented", **_lengths(row, bar.row, unit)}
        )
    for span in content.spans:
        _span(span, layout, colours, layers, content, unit)
    for row in content.markers:
        _marker(row, layout.bars[row["place"]], layers, unit)
    for number, row in enumerate(content.arrows):
        _arrow(number, row, layout, layers, unit)
    _record_ends(selection, content, layout, layers)
    # Numbers on every third bar would raise the question why not on the others: most of a row, or none.
    bars = Counter(mark["place"] for mark in layers["active"])
    named = Counter(mark["place"] for mark in layers["names"] if mark["counts"])
    layers["names"] = [m for m in layers["names"] if not m["counts"] or 2 * named[m["place"]] > bars[m["place"]]]
    return layers


def _box(row: dict[str, Any], bar: Bar) -> dict[str, Any]:
    return {"x0": row["x0"], "x1": row["x1"], "y": bar.top, "y1": bar.bottom}


def _words(count: int, unit: str) -> str:
    return f"{count:,} {'ns' if unit == 'ns' else unit + ('' if count == 1 else 's')}"


def _lengths(row: dict[str, Any], lane: Row, unit: str) -> dict[str, str]:
    """Numbers of an interval as text: JSON numbers lose the last digits of raw ticks."""
    ticks = row["t1"] - row["t0"]
    found = {
        "Begin": _words(row["x0"], unit),
        "End": _words(row["x1"], unit),
        "Raw ticks": f"{row['t0']} to {row['t1']} (clock {lane.clock})",
    }
    if unit != "ns":
        found["Length"] = _words(ticks, unit)
        if len(lane.pieces) == 1:
            found["In ns"] = f"{ticks * lane.pieces[0][2]:,.1f} ns"
    elif lane.rate == 1.0:
        found["Length"] = _words(ticks, "ns")
    else:
        # Several clocks on one axis: the axis is ns, the measurement is ticks.
        found["Length"] = _words(ticks, "tick")
        bent = len(lane.pieces) > 1
        found["In ns"] = f"{row['x1'] - row['x0']:,} ns" if bent else f"{ticks * (lane.rate or 0.0):,.1f} ns"
    return found


def _span(
    span: dict[str, Any],
    layout: Layout,
    colours: dict[tuple[str, str], str],
    layers: dict[str, Marks],
    content: Content,
    unit: str,
) -> None:
    bar = layout.bars[span["place"]]
    fill = colours.get((span["role"], span["span"])) or colours.get((span["role"], "")) or palette()["active"][0]
    pixels = (span["x1"] - span["x0"]) / (content.window.end - content.window.start) * layout.width
    mark = {
        **_box(span, bar),
        "fill": fill,
        "place": span["place"],
        # An outline would be all there is to see of a bar of a pixel or two.
        "edge": 0.5 if pixels >= 3 else 0,
        "Row": label(bar.row),
        "Span": clean(span["span"]),
        "State": span["state"],
        "Iteration": span["iteration"],
        **_lengths(span, bar.row, unit),
    }
    state = span["state"]
    if state in ("active", "stall") and span["complete"] and span["own"] and span["x1"] > span["x_cut"]:
        # States hold for the recorded window only: what lies behind its end is drawn open.
        cut = max(span["x0"], span["x_cut"])
        layers["open_span"].append({**mark, "x0": cut, "Remark": "after the recorded window, counts in no state"})
        if cut == span["x0"]:
            return
        mark["x1"] = cut
    if not span["complete"] or not span["own"]:
        mark["Remark"] = "ends on another lane" if span["complete"] else "its end was not recorded"
        layers["open_span"].append(mark)
    elif state == "stall":
        layers["stall"].append({**mark, **_judged(span, unit)})
    elif state == "active":
        layers["active"].append(mark)
        if span["contains_wait"]:
            mark["State"] = "active, hides a wait that has no stamps"
            layers["hides_wait"].append({"x0": mark["x0"], "x1": mark["x1"], "y": bar.bottom - 3.5})
        _name(span, bar, fill, layout, layers, content)
    else:
        top = bar.track(span["span"])
        layers["async" if state == "async" else "scope"].append({**mark, "y": top, "y1": top + TRACK - 3})


def _judged(span: dict[str, Any], unit: str) -> dict[str, str]:
    if span["verdict"] is None:
        return {}
    tick = unit if unit != "ns" else "tick"
    found = {
        "Verdict": VERDICTS.get(span["verdict"], clean(span["verdict"])),
        "Blocked": _words(int(span["blocked_ticks"]), tick),
        "Satisfied": _words(int(span["satisfied_ticks"]), tick),
    }
    if span["barrier"]:
        found["Barrier"] = clean(span["barrier"])
    if span["unjudged_ticks"]:
        found["Unjudged"] = _words(int(span["unjudged_ticks"]), tick)
    if span["producer_role"]:
        found["Bound by"] = _signal(span)
        found["Signal to exit"] = _words(int(span["slack"]), tick)
    return found


def _signal(row: dict[str, Any]) -> str:
    return f"{clean(row['producer_role'])} {clean(row['producer_event'])}, iteration {row['producer_iteration']}"


def _name(
    span: dict[str, Any], bar: Bar, fill: str, layout: Layout, layers: dict[str, Marks], content: Content
) -> None:
    """Iteration number, or the name of what happens once, in a bar that has room for it."""
    first = max(span["x0"], content.window.start)
    last = min(span["x1"], content.window.end)
    room = (last - first) / (content.window.end - content.window.start) * layout.width
    text = clean(span["span"], 24) if span["loop"] == "once" or span["iteration"] < 0 else str(span["iteration"])
    if bar.height >= 14 and room >= len(text) * (layout.font - 2) * 0.6 + 5:
        ink = palette()["paper"] if luminance(fill) < 0.18 else palette()["ink"]
        layers["names"].append(
            {
                "x": (first + last) / 2,
                "y": bar.middle - 1,
                "text": text,
                "fill": ink,
                "place": span["place"],
                "counts": text.isdigit(),
            }
        )


def _marker(row: dict[str, Any], bar: Bar, layers: dict[str, Marks], unit: str) -> None:
    mark = {
        "x": row["x"],
        "Row": label(bar.row),
        "Event": clean(row["event"]),
        "Iteration": row["iteration"],
        "At": _words(row["x"], unit),
        "Raw ticks": f"{row['t']} (clock {bar.row.clock})",
    }
    if row["reason"]:
        remark = f"made no span {clean(row['span'])}: {row['reason']}"
        layers["orphan"].append({**mark, "y": bar.middle, "Remark": remark})
    else:
        layers["marker"].append({"x": row["x"], "y": bar.top - 2, "y1": bar.bottom})
        layers["marker_head"].append({**mark, "y": bar.top - 2})


STYLES = {
    "blocked": ("solid", 1.5, "ink"),
    "satisfied": ("solid", 0.8, "quiet"),
    "other": ("dashed", 0.8, "quiet"),
    "late_exit": ("dashed", 1.2, "ink"),
    "recorded": ("dashed", 1.0, "ink"),
}


def _arrow(number: int, row: dict[str, Any], layout: Layout, layers: dict[str, Marks], unit: str) -> None:
    tail, head = layout.bars[row["from_place"]], layout.bars[row["to_place"]]
    dash, wide, colour = STYLES[row["kind"]]
    if tail is head:
        way, ys = "down", (tail.top, tail.top - 8, tail.top - 8, tail.top - 5)
    elif tail.top < head.top:
        way, ys = "down", (tail.bottom, tail.bottom + 4, head.top - 9, head.top - 4)
    else:
        way, ys = "up", (tail.top, tail.top - 4, head.bottom + 9, head.bottom + 4)
    fill = palette()[colour]
    xs = (row["from_x"], row["from_x"], row["to_x"], row["to_x"])
    for nth, (x, y) in enumerate(zip(xs, ys, strict=True)):
        layers["arrow"].append(
            {"arrow": number, "nth": nth, "x": x, "y": y, "fill": fill, "wide": wide, "dash": dash, "kind": row["kind"]}
        )
    tick = unit if unit != "ns" else "tick"
    names = {
        "blocked": "binding: the wait was blocked by it",
        "satisfied": "binding: already there when the wait began",
        "late_exit": "binding, but something undeclared kept the wait",
        "other": "declared, not binding",
        "recorded": "recorded by the source",
    }
    tip = {"Arrow": names[row["kind"]]}
    if row["kind"] == "recorded":
        tip["Signal"] = clean(row["span"])
    else:
        tip["Signal"] = _signal(row)
        tip["Exit"] = f"{clean(row['role'])} {clean(row['span'])}, iteration {row['iteration']}"
        if row["slack"] is not None:
            tip["Signal to exit"] = _words(int(row["slack"]), tick)
    if row["verdict"]:
        tip["Verdict"] = VERDICTS.get(row["verdict"], clean(row["verdict"]))
    layers["arrow_head"].append(
        {
            **tip,
            "x": row["to_x"],
            "y": ys[-1] + (1 if way == "down" else -1),
            "fill": fill,
            "way": way,
            "kind": row["kind"],
        }
    )


def _record_ends(selection: Selection, content: Content, layout: Layout, layers: dict[str, Marks]) -> None:
    for bar in layout.bars:
        row = bar.row
        if row.t_last is None or row.completeness != "truncated":
            continue
        if selection.axis.kind == "mapped":
            x = to_ns(row, row.t_last) - selection.axis.base_ns[row.launch]
        else:
            x = row.t_last - row.zero
        if content.window.start <= x <= content.window.end:
            layers["record_end"].append({"x": x, "y": bar.top - 5, "y1": bar.bottom + 5})
            layers["record_end_text"].append({"x": x, "y": bar.top - 6, "text": "record ends"})
