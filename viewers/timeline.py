"""The timeline: who was active, who waited for whom, and what no stamp covers. Reads a bundle and nothing else."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from wsformat.bundle import Bundle
from wsformat.errors import BadRequest
from wsformat.viewers import render
from wsformat.viewers.timeline_axis import records
from wsformat.viewers.timeline_chart import chart as draw_chart
from wsformat.viewers.timeline_data import Content, read
from wsformat.viewers.timeline_layout import arrange, clean, colours, palette, wrap
from wsformat.viewers.timeline_page import Explorer, explorer
from wsformat.viewers.timeline_select import Selection, iteration_range, select
from wsformat.viewers.timeline_words import completeness, headline, perturbation

WIDTH = 860
VIEWS = (
    "point", "recorded_window", "span", "orphan", "state_interval", "role_state", "wait", "signal", "clock_segment",
    "timeline_ns", "perturbation",
)  # fmt: skip
NARROWEST = 320
WIDEST = 4000


@dataclass(frozen=True)
class Timeline:
    """A drawn timeline.

    Attributes:
        chart: the ``altair`` chart; hatching is added when it is rendered, so use the methods here for files.
        title: headline and the lines under it: device, what is shown, completeness, perturbation.
        selection, content: the rows and marks that are drawn, with the notes on what is not.
        bundle, asked: what was drawn, for the page: capture, launch, CTAs, roles and window as asked for.
    """

    chart: Any
    title: tuple[str, ...]
    selection: Selection
    content: Content
    bundle: Bundle
    asked: dict[str, Any]

    @cached_property
    def spec(self) -> dict[str, Any]:
        """The Vega-Lite specification."""
        made: dict[str, Any] = self.chart.to_dict()
        return made

    @cached_property
    def svg(self) -> str:
        """The picture as SVG text."""
        drawn: str = render.to_svg(self.spec, palette()["stall"])
        return drawn

    def png(self, scale: float = 2.0) -> bytes:
        """The picture as PNG, made from the SVG so that stalls are hatched in it as well."""
        drawn: bytes = render.to_png(self.svg, scale)
        return drawn

    def pdf(self) -> bytes:
        """The picture as PDF."""
        drawn: bytes = render.to_pdf(self.svg)
        return drawn

    def html(self) -> str:
        """A page that opens without a network, with all CTAs and iterations: see :mod:`.timeline_page`."""
        page: str = self.page.html()
        return page

    @cached_property
    def page(self) -> Explorer:
        """The timeline as a page."""
        return explorer(self.bundle, **self.asked)

    def write(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write .html, .svg, .png (two pixels to a CSS pixel) or .pdf, by the suffix; whole or not at all.

        Raises:
            BadRequest: another suffix.
            OutputExists: the file is there and ``force`` is false.
        """
        written: Path = render.write_picture(self, path, force=force)
        return written

    @property
    def notes(self) -> tuple[str, ...]:
        """What the picture leaves out, as it says itself."""
        return (*self.selection.notes, *self.content.notes)

    def _repr_mimebundle_(self, *_: Any, **__: Any) -> dict[str, Any]:
        return {"image/svg+xml": self.svg, "text/plain": repr(self)}

    def __repr__(self) -> str:
        return f"<Timeline {' | '.join(self.title)}>"


def timeline(
    bundle: Bundle,
    *,
    capture_id: str | None = None,
    launch: int | Iterable[int] | None = None,
    cta: int | Iterable[int] | None = None,
    roles: Iterable[str] | None = None,
    start: int | None = None,
    end: int | None = None,
    iterations: str | Sequence[int] | None = None,
    arrows: str = "binding",
    origin: tuple[int, str] | None = None,
    width: int = WIDTH,
) -> Timeline:
    """Draw the timeline of a bundle.

    Args:
        bundle: what to draw.
        capture_id: by default the first capture with stamps.
        launch: launch or launches; by default the first with stamps.
        cta: CTA or CTAs; by default all of a small launch, else the first.
        roles: roles to draw; by default all.
        start, end: window, in the units of the axis: ticks since the first stamp, or ns where several clocks are
            joined on one axis.
        iterations: window from the first stamp of iteration A to the last stamp before iteration B, ``"A:B"``.
        arrows: ``binding`` draws the signal that each wait was bound by, ``all`` also the signals that did not
            bind, ``none`` no arrow.
        origin: moment on the axis that is labelled 0, and what it is, such as ``(17_432, "iteration 24 began")``.
        width: of the whole picture, in pixels; 860 suits a page, 420 one column of a paper.

    What is left out, by default or because a picture cannot show it, is said in the picture and in ``notes``.

    Raises:
        BadRequest: nothing to draw, something chosen that is not there, or an empty or contradictory window.
        MissingDependency: altair or vl-convert-python is not installed.
    """
    render.optional("altair")
    render.optional("vl_convert")
    if not NARROWEST <= width <= WIDEST:
        raise BadRequest(f"width {width}: expected {NARROWEST} to {WIDEST} pixels")
    asked = iteration_range(iterations)
    with bundle.duckdb(only=VIEWS) as connection:
        selection = select(connection, capture_id=capture_id, launch=launch, cta=cta, roles=roles)
        selection, content = read(connection, selection, start=start, end=end, iterations=asked, arrows=arrows)
        chosen = selection.capture["capture_id"]
        paint = colours(
            records(
                connection, "SELECT role, colour FROM roles WHERE capture_id = ? ORDER BY display_order, role", [chosen]
            ),
            records(
                connection,
                "SELECT role, span, state, loop, begin_event, colour FROM span_types WHERE capture_id = ?",
                [chosen],
            ),
        )
        disturbed = perturbation(connection, chosen, selection.groups[0].launch)
    layout = arrange(selection, content.spans, width)
    kernels = {selection.launches[g.launch]["kernel"] for g in selection.groups if g.launch in selection.launches}
    first = headline(selection.capture, kernels)
    below = [*_subtitle(selection, content), f"{completeness(selection.capture)} · {disturbed}"]
    wrapped = [part for line in below for part in wrap(line, layout.total, layout.font - 0.5)]
    head = wrap(first, layout.total, layout.font + 3.5)
    made = draw_chart(selection, content, layout, paint, head, wrapped, " | ".join([first, *below]), origin)
    of_page = {
        "capture_id": capture_id, "launch": launch, "cta": cta, "roles": roles, "start": start, "end": end,
        "iterations": iterations,
    }  # fmt: skip
    return Timeline(made, (first, *below), selection, content, bundle, of_page)


def write_timeline(bundle: Bundle, path: str | os.PathLike[str], *, force: bool = False, **options: Any) -> Timeline:
    """Draw the timeline of a bundle into a .html, .svg, .png or .pdf file.

    Args:
        bundle: what to draw.
        path: the file; its suffix says the kind.
        force: replace a file that is there.
        options: as in :func:`timeline`.

    Raises:
        OutputExists: the file is there and ``force`` is false; nothing was written.
        BadRequest: as in :func:`timeline`, or an unknown suffix.
        MissingDependency: as in :func:`timeline`.
    """
    render.check_output(path, force=force)
    made = timeline(bundle, **options)
    made.write(path, force=force)
    return made


def _subtitle(selection: Selection, content: Content) -> list[str]:
    capture = selection.capture
    facts = [clean(capture.get(name) or "", 40) for name in ("device", "arch", "dtype", "shape", "version")]
    facts[0] = facts[0] or "device unknown"
    groups = selection.groups
    where = []
    if len({g.launch for g in groups}) == 1 and groups[0].launch >= 0:
        where.append(f"launch {groups[0].launch}")
    if len(groups) == 1 and groups[0].cta >= 0:
        where.append(f"CTA {groups[0].cta}")
        sms = {row.sm for row in groups[0].rows if row.sm >= 0}
        where += [f"SM {sms.pop()}"] if len(sms) == 1 else []
    elif len(groups) > 1:
        where.append(f"{len(groups)} CTAs" if all(g.cta >= 0 for g in groups) else f"{len(groups)} groups")
    trips = {selection.launches[g.launch]["trip_count"] for g in groups if g.launch in selection.launches}
    window = content.window
    if window.iterations is not None:
        of = f" of {trips.pop()}" if len(trips) == 1 and max(trips) > 0 else ""
        where.append(f"iterations {window.iterations[0]} to {window.iterations[1] - 1}{of}")
    elif (window.start, window.end) != (window.first, window.last):
        unit = "ns" if selection.axis.unit == "ns" else f"{selection.axis.unit}s"
        where.append(f"{unit} {window.start:,} to {window.end:,} (recorded: {window.first:,} to {window.last:,})")
    else:
        where.append("everything recorded")
    return [" · ".join(part for part in facts if part), " · ".join(where)]
