"""Every kind of picture by its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wsformat.bundle import Bundle
from wsformat.errors import BadRequest
from wsformat.viewers.critical_figure import critical_path
from wsformat.viewers.figure import Figure
from wsformat.viewers.grid_figure import grid
from wsformat.viewers.iterations_figure import iterations
from wsformat.viewers.overlap_figure import overlap
from wsformat.viewers.passes_figure import passes
from wsformat.viewers.timeline import NARROWEST, WIDEST
from wsformat.viewers.timeline_figure import timeline_figure
from wsformat.viewers.waits_figure import waits

KINDS: dict[str, Callable[..., Figure]] = {
    "timeline": timeline_figure,
    "waits": waits,
    "iterations": iterations,
    "grid": grid,
    "overlap": overlap,
    "critical-path": critical_path,
    "passes": passes,
}


OPTIONS = ("capture_id", "launch", "cta", "roles", "width")
"""Options of every kind; a kind may have more."""
MORE = {
    "timeline": ("start", "end", "iterations", "arrows", "origin"),
    "critical-path": ("start", "end"),
    "passes": ("iterations",),
}
LESS = {"critical-path": ("roles",), "passes": ("roles", "launch")}


def draw(bundle: Bundle, kind: str, **options: Any) -> Figure:
    """Draw a bundle.

    Args:
        bundle: what to draw.
        kind: one of :data:`KINDS`.
        options: of that kind; None and what is left out are the defaults. ``capture_id``, ``launch``, ``cta``,
            ``roles`` say what of the bundle, ``width`` how wide in pixels; timeline and critical-path take a window.

    Raises:
        BadRequest: no such kind, an option that it has not, or nothing to draw.
    """
    if kind not in KINDS:
        raise BadRequest(f"no picture of kind {kind!r}", f"Kinds: {', '.join(KINDS)}.")
    given = {name: value for name, value in options.items() if value is not None}
    known = [name for name in (*OPTIONS, *MORE.get(kind, ())) if name not in LESS.get(kind, ())]
    for name in given:
        if name not in known:
            raise BadRequest(f"a picture of kind {kind} takes no {name}", f"It takes {', '.join(known)}.")
    if "width" in given and not NARROWEST <= given["width"] <= WIDEST:
        raise BadRequest(f"width {given['width']}: expected {NARROWEST} to {WIDEST} pixels")
    if kind != "timeline" and "launch" in given:
        given["launch"] = _only("launch", given["launch"])
    if kind in ("critical-path", "passes") and "cta" in given:
        given["cta"] = _only("cta", given["cta"])
    return KINDS[kind](bundle, **given)


def _only(name: str, value: Any) -> int:
    found = [value] if isinstance(value, int) else list(value)
    if len(found) != 1:
        raise BadRequest(f"{len(found)} numbers for {name}: this picture is of one", "Draw them one by one.")
    return int(found[0])
