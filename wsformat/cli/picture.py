"""`wsformat view`: a bundle as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wsformat.cli import scope as scopes
from wsformat.cli import target as targets
from wsformat.cli.scope import BundlePath, Capture, Force, Json

if TYPE_CHECKING:
    from wsformat.bundle import Bundle

KINDS = ("timeline", "waits", "iterations", "grid", "overlap", "critical-path", "passes")

Output = Annotated[
    list[Path] | None,
    targets.output("FILE", ".html, .png, .svg or .pdf; repeatable; by default X.html", targets.NAME_A_FILE),
]
Kind = Annotated[str, typer.Option("--kind", metavar="KIND", help=f"{', '.join(KINDS[:-1])} or {KINDS[-1]}")]
Launches = Annotated[
    list[int] | None, typer.Option("--launch", metavar="N", help="a launch; repeatable for the timeline")
]
Ctas = Annotated[list[int] | None, typer.Option("--cta", metavar="N", help="a CTA by its linear index; repeatable")]
Roles = Annotated[list[str] | None, typer.Option("--role", metavar="NAME", help="a role; repeatable")]
# Pictures count from the first stamp, in doubles: what lies beyond 2^53 is no place on their axis.
AXIS = {"metavar": "T", "min": -(2**53), "max": 2**53}
Start = Annotated[int | None, typer.Option("--from", **AXIS, help="window: from here, in units of the axis")]
End = Annotated[int | None, typer.Option("--to", **AXIS, help="window: up to here, in units of the axis")]
Iterations = Annotated[str, typer.Option("--iterations", metavar="A:B", help="window: iterations A up to, not with, B")]
Arrows = Annotated[
    str,
    typer.Option("--arrows", metavar="WHICH", help="signals to draw as arrows: binding (the default), all or none"),
]
Width = Annotated[int, typer.Option("--width", metavar="PIXELS", help="of the whole picture")]


def view(
    bundle: BundlePath,
    output: Output = None,
    kind: Kind = "timeline",
    capture: Capture = "",
    launch: Launches = None,
    cta: Ctas = None,
    role: Roles = None,
    start: Start = None,
    end: End = None,
    iterations: Iterations = "",
    arrows: Arrows = "",
    width: Width = 860,
    force: Force = False,
    json: Json = False,
) -> None:
    """Draw a picture. Active is coloured by role, stall is hatched, what no stamp covers is faint.

    timeline: one row a role; arrows from signal to wait. As .html the whole launch, to zoom and search; as a file for
    paper some CTAs and iterations, and it says what it leaves out. waits: lengths by role and barrier, with the binding
    producer. iterations: ticks an iteration, fill and drain, outliers. grid: every CTA on its SM, waves and tail.
    overlap: every pair of roles. critical-path: who paces a CTA. passes: spans of several stamped passes, each named.
    """
    from wsformat.cli.output import clean, print_json
    from wsformat.viewers import render

    targets = output or [Path(bundle.resolve().name).with_suffix(".html")]
    for target in targets:
        render.check_output(target, force=force)
    opened = scopes.open_bundle(bundle)
    chosen = scopes.choose_captures(opened, capture)[1][0] if capture else None
    options = {
        "capture_id": chosen,
        "launch": launch or None,
        "cta": cta or None,
        "roles": role or None,
        "start": start,
        "end": end,
        "iterations": iterations or None,
        "arrows": arrows or None,
    }
    given = {name: value for name, value in options.items() if value is not None}
    title, notes = _draw(opened, kind, given, width, targets, force=force)
    if json:
        print_json({"files": [str(target) for target in targets], "title": title, "notes": notes})
        return
    for line in (*title, *notes):
        print(clean(line))
    for target in targets:
        print(target)


def _draw(
    bundle: Bundle, kind: str, options: dict[str, Any], width: int, targets: list[Path], *, force: bool
) -> tuple[list[str], list[str]]:
    """Write the pictures; gives their title and the notes on what they leave out."""
    from wsformat.viewers.figures import draw
    from wsformat.viewers.timeline import timeline
    from wsformat.viewers.timeline_page import explorer

    if kind != "timeline":
        made = draw(bundle, kind, width=width, **options)
        for target in targets:
            made.write(target, force=force)
        return list(made.title), list(made.notes)
    title: list[str] = []
    notes: list[str] = []
    pages = [target for target in targets if target.suffix.lower() == ".html"]
    papers = [target for target in targets if target not in pages]
    if papers:
        drawn = timeline(bundle, width=width, **options)
        for target in papers:
            drawn.write(target, force=force)
        title, notes = list(drawn.title), list(drawn.notes)
    if pages:
        # What a page needs no choice for: its arrows follow the span that one looks at.
        page = explorer(bundle, **{name: value for name, value in options.items() if name != "arrows"})
        for target in pages:
            page.write(target, force=force)
        title, notes = title or list(page.title), [*notes, *(note for note in page.notes if note not in notes)]
    return title, notes
