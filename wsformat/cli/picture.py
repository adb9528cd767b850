"""`wsformat view`: the timeline as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wsformat.cli import scope as scopes
from wsformat.cli.scope import BundlePath, Capture, Force, Json

Output = Annotated[
    list[Path] | None,
    typer.Option("-o", "--output", metavar="FILE", help=".html, .png, .svg or .pdf; repeatable; by default X.html"),
]
Launches = Annotated[list[int] | None, typer.Option("--launch", metavar="N", help="a launch; repeatable")]
Ctas = Annotated[list[int] | None, typer.Option("--cta", metavar="N", help="a CTA by its linear index; repeatable")]
Roles = Annotated[list[str] | None, typer.Option("--role", metavar="NAME", help="a role; repeatable")]
Start = Annotated[int | None, typer.Option("--from", metavar="T", help="window: from here, in units of the axis")]
End = Annotated[int | None, typer.Option("--to", metavar="T", help="window: up to here, in units of the axis")]
Iterations = Annotated[str, typer.Option("--iterations", metavar="A:B", help="window: iterations A up to, not with, B")]
Arrows = Annotated[
    str, typer.Option("--arrows", metavar="WHICH", help="signals to draw as arrows: binding, all or none")
]
Width = Annotated[int, typer.Option("--width", metavar="PIXELS", help="of the whole picture")]


def view(
    bundle: BundlePath,
    output: Output = None,
    capture: Capture = "",
    launch: Launches = None,
    cta: Ctas = None,
    role: Roles = None,
    start: Start = None,
    end: End = None,
    iterations: Iterations = "",
    arrows: Arrows = "binding",
    width: Width = 860,
    force: Force = False,
    json: Json = False,
) -> None:
    """Draw the timeline: one row a role; active coloured, stall hatched, untracked faint; arrows from signal to wait.

    A large launch is drawn CTA by CTA, and a long loop over some iterations; the picture says what it leaves out.
    """
    from wsformat.cli.output import clean, print_json
    from wsformat.viewers import render
    from wsformat.viewers.timeline import timeline

    targets = output or [Path(bundle.resolve().name).with_suffix(".html")]
    for target in targets:
        render.check_output(target, force=force)
    opened = scopes.open_bundle(bundle)
    chosen = scopes.choose_captures(opened, capture)[1][0] if capture else None
    made = timeline(
        opened,
        capture_id=chosen,
        launch=launch or None,
        cta=cta or None,
        roles=role or None,
        start=start,
        end=end,
        iterations=iterations or None,
        arrows=arrows,
        width=width,
    )
    for target in targets:
        made.write(target, force=force)
    if json:
        files = [str(target) for target in targets]
        print_json({"files": files, "title": list(made.title), "notes": list(made.notes)})
        return
    for line in (*made.title, *made.notes):
        print(clean(line))
    for target in targets:
        print(target)
