"""Where the parts of a timeline go: rows, labels, wrapped text and colours, in pixels. Pure geometry, no drawing."""

from __future__ import annotations

import json
import re
import textwrap
import unicodedata
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from wsformat.viewers.timeline_axis import Group, Row
from wsformat.viewers.timeline_select import Selection

COLOUR = re.compile(r"#[0-9a-fA-F]{6}")
TRACK = 7
"""Height of the thin track of one kind of async or scope span."""
MAX_TRACKS = 4


@cache
def palette() -> dict[str, Any]:
    """Colours of ``palette.json``."""
    found: dict[str, Any] = json.loads(files("wsformat.viewers").joinpath("palette.json").read_text(encoding="utf-8"))
    return found


def clean(text: object, limit: int = 60) -> str:
    """A foreign name as one short line of text.

    Control characters would break SVG, and characters that turn the direction of writing would reorder their
    neighbours; both become a visible replacement. Long names are cut in the middle, where they differ least.
    """
    shown = "".join(
        "\ufffd" if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") or c in _TURNS else c for c in str(text)
    )
    if len(shown) <= limit:
        return shown
    head = (limit - 1) * 2 // 3
    return f"{shown[:head]}…{shown[len(shown) - (limit - 1 - head) :]}"


_TURNS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufffe\uffff")


def wrap(text: str, pixels: float, font: float) -> list[str]:
    """Lines of a text that fit a width, by the mean width of a character of a wide face (DejaVu Sans)."""
    return textwrap.wrap(text, max(20, int(pixels / (font * 0.555))), break_long_words=True) or [""]


@dataclass(frozen=True)
class Bar:
    """Vertical place of one row: the bar and the thin tracks under it."""

    row: Row
    top: int
    height: int
    tracks: tuple[tuple[str, int], ...]

    @property
    def middle(self) -> float:
        """Middle of the bar."""
        return self.top + self.height / 2

    @property
    def bottom(self) -> int:
        """Lower edge of the bar."""
        return self.top + self.height

    def track(self, span: str) -> int:
        """Top of the track of a span name; the last one takes all that have none of their own."""
        return dict(self.tracks).get(span, self.tracks[-1][1] if self.tracks else self.bottom)


@dataclass(frozen=True)
class Layout:
    """Places of everything; ``width`` is the plot's, ``left`` and ``right`` what stands beside it."""

    width: int
    height: int
    left: int
    right: int
    font: float
    bars: tuple[Bar, ...]
    headings: tuple[tuple[float, str], ...]

    @property
    def total(self) -> int:
        """Width of the whole picture."""
        return self.left + self.width + self.right


def arrange(selection: Selection, spans: list[dict[str, Any]], width: int) -> Layout:
    """Places for a picture of ``width`` pixels."""
    rows = selection.rows
    font = 12 if width >= 560 else 11
    longest = max([len(label(row)) for row in rows] + [len(note) - 3 for row in rows for note in [remark(row)]])
    # 0.7 em a character: names are bold, and a browser without the first fonts of the list takes a wide one.
    left = min(max(58, int(longest * font * 0.7) + 16), 150 if width >= 560 else 100)
    right = 168 if width >= 700 and any(row.states for row in rows) else 16
    height, gap = (22, 26) if len(rows) <= 6 else (18, 18) if len(rows) <= 16 else (14, 10)
    thin: dict[int, list[str]] = {}
    for span in spans:
        if span["state"] not in ("active", "stall") and span["span"] not in thin.setdefault(span["place"], []):
            thin[span["place"]].append(span["span"])
    y = 12
    place = 0
    bars = []
    headings = []
    several = len(selection.groups) > 1
    for group in selection.groups:
        if several:
            headings.append((y + 8.0, heading(group, selection)))
            y += 24
        for row in group.rows:
            names = sorted(thin.get(place, []))[:MAX_TRACKS]
            tracks = tuple((name, y + height + 3 + TRACK * i) for i, name in enumerate(names))
            bars.append(Bar(row, y, height, tracks))
            y += height + gap + TRACK * len(tracks)
            place += 1
        y += 0 if not several else 4
    return Layout(width - left - right, y - gap + 12, left, right, font, tuple(bars), tuple(headings))


def label(row: Row) -> str:
    """Name of a row: its role, else the recorder's own name."""
    return clean(row.role or row.name or f"lane {row.lane}", 22)


def remark(row: Row) -> str:
    """The small line under a row's name: where it ran, and what is wrong with its record."""
    parts = []
    if row.warp >= 0:
        parts.append(f"warp {row.warp}")
    if row.completeness in ("truncated", "sampled"):
        parts.append(row.completeness + (f", {row.lost:,} lost" if row.lost > 0 else ""))
    elif row.completeness == "unknown":
        parts.append("may be truncated")
    return " · ".join(parts)


def heading(group: Group, selection: Selection) -> str:
    """Heading of a group of rows."""
    parts = []
    if len({g.launch for g in selection.groups}) > 1:
        parts.append(f"launch {group.launch}" if group.launch >= 0 else "host")
    if group.cta >= 0:
        parts.append(f"CTA {group.cta}")
    sms = {row.sm for row in group.rows if row.sm >= 0}
    if len(sms) == 1:
        parts.append(f"SM {sms.pop()}")
    return " · ".join(parts) or f"clock {group.clock}"


def colours(connection_rows: list[dict[str, Any]], spans: list[dict[str, Any]]) -> dict[tuple[str, str], str]:
    """Colour of every (role, span): the one stored, else the role's, shaded for its second and later active spans.

    Args:
        connection_rows: rows of table ``roles`` in display order.
        spans: rows of table ``span_types`` of the capture.
    """
    base: dict[str, str] = {}
    names = [row["role"] for row in connection_rows]
    names += sorted({row["role"] for row in spans} - set(names))
    stored = {row["role"]: row["colour"] for row in connection_rows}
    active = palette()["active"]
    for place, role in enumerate(names):
        own = stored.get(role, "")
        base[role] = own if COLOUR.fullmatch(own or "") else active[place % len(active)]
    found: dict[tuple[str, str], str] = {}
    seen: dict[str, int] = {}

    # The span of the loop keeps the role's own colour; what happens once, or only in stored spans, is shaded.
    def rank(row: dict[str, Any]) -> tuple[Any, ...]:
        return row["role"], row["loop"] == "once", row["begin_event"] == "", row["span"]

    for row in sorted(spans, key=rank):
        role = row["role"]
        if COLOUR.fullmatch(row["colour"] or ""):
            found[role, row["span"]] = row["colour"]
        elif row["state"] == "active":
            found[role, row["span"]] = shade(base[role], seen.get(role, 0))
            seen[role] = seen.get(role, 0) + 1
        else:
            found[role, row["span"]] = base[role]
    found.update({(role, ""): colour for role, colour in base.items()})
    return found


SHADES = (0.0, 0.45, 0.25, 0.6)


def shade(colour: str, step: int) -> str:
    """The colour itself for step 0, then darker ones: lighter ones would come near the stall grey."""
    dark = SHADES[step % len(SHADES)]
    return "#" + "".join(f"{round(part * (1 - dark)):02x}" for part in bytes.fromhex(colour[1:]))


def luminance(colour: str) -> float:
    """Relative luminance of an sRGB colour, 0 to 1 (WCAG 2)."""
    parts = [part / 255 for part in bytes.fromhex(colour[1:])]
    r, g, b = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
