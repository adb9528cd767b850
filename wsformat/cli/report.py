"""`wsformat report`: everything that a bundle tells, on one page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wsformat.cli import scope as scopes
from wsformat.cli import target as targets
from wsformat.cli.scope import BundlePath, Capture, Force, Json
from wsformat.errors import BadRequest

if TYPE_CHECKING:
    from wsformat.bundle import Bundle

Output = Annotated[Path | None, targets.output("FILE", ".html or .md; by default X.report.html", targets.NAME_A_FILE)]
Png = Annotated[
    Path | None,
    targets.output("FILE", "the page as a picture too; needs a Chromium or Chrome", targets.NAME_A_FILE, "--png"),
]
Launch = Annotated[int | None, typer.Option("--launch", metavar="N", help="the launch; by default the first")]
Cta = Annotated[
    int | None, typer.Option("--cta", metavar="N", help="the CTA to draw; by default the one of median length")
]
Budget = Annotated[
    str, typer.Option("--budget", metavar="BUDGET", help="predict with this budget and compare; a name or a file")
]
Plain = Annotated[bool, typer.Option("--no-pictures", help="words and tables only")]


def report(
    bundle: BundlePath,
    output: Output = None,
    png: Png = None,
    budget: Budget = "",
    capture: Capture = "",
    launch: Launch = None,
    cta: Cta = None,
    no_pictures: Plain = False,
    force: Force = False,
    json: Json = False,
) -> None:
    """One page that answers first: what paces the kernel, how much is blocked, how sure that is; then the evidence.

    Timeline, states, waits, overlap, iterations, prediction against measurement, counters, provenance. The page needs
    no network; every table is there as CSV, and every number links to the SQL that makes it. --json prints the same
    content and writes a file only where -o names one.
    """
    from wsformat.cli.output import clean, print_json
    from wsformat.cli.sink import write_text
    from wsformat.outputs import check_file
    from wsformat.viewers import report_png
    from wsformat.viewers.report import report as make
    from wsformat.viewers.report_page import page
    from wsformat.viewers.report_text import markdown

    target = output
    if target is None and not json:
        target = Path(bundle.resolve().name).with_suffix(".report.html")
    if target is not None:
        if target.suffix.lower() not in (".html", ".md"):
            raise BadRequest(f"{target}: a report is .html or .md", "Name it so, or use --json.")
        check_file(target, force=force)
    browser = ""
    if png is not None:
        check_file(png, force=force)
        browser = report_png.browser()
    opened = _with_budget(scopes.open_bundle(bundle), budget, capture, bundle)
    chosen = scopes.choose_captures(opened, capture)[1][0] if capture else None
    made = make(
        opened, capture_id=chosen, launch=launch, cta=cta, budget=budget, name=bundle.name, pictures=not no_pictures
    )
    if target is not None:
        write_text(target, page(made) if target.suffix.lower() == ".html" else markdown(made))
    if png is not None:
        report_png.write(page(made), png, browser)
    if json:
        print_json(made.to_json())
        return
    for text in made.headline:
        print(clean("".join(map(str, text))))
    for note in made.banner:
        print(clean(f"{note.name}: {''.join(map(str, note.text))}"))
    for path in (target, png):
        if path is not None:
            print(path)


def _with_budget(bundle: Bundle, budget: str, capture: str, path: Path) -> Bundle:
    """The bundle with the budget's prediction in the experiment of the measured capture."""
    if not budget:
        return bundle
    from wsformat.budget import load
    from wsformat.cli.predict import measured_capture
    from wsformat.prediction import predict
    from wsformat.prediction_store import joined

    return joined(bundle, [predict(load(budget))], measured_capture(bundle, path, capture), force=True)
