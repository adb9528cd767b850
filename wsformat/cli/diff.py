"""`wsformat diff A B`: two versions of a kernel side by side."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from wsformat.cli import scope as scopes
from wsformat.cli import target as targets
from wsformat.cli.scope import Force, Json
from wsformat.errors import BadRequest

Before = Annotated[Path, typer.Argument(metavar="A.wsformat", help="the version before", show_default=False)]
After = Annotated[Path, typer.Argument(metavar="B.wsformat", help="the version after", show_default=False)]
Output = Annotated[
    Path | None,
    targets.output(
        "FILE", "a page (.html), Markdown (.md), or both timelines as .svg, .png or .pdf", targets.LEAVE_AWAY
    ),
]
Captures = Annotated[
    str, typer.Option("--capture", metavar="A[,B]", help="the captures, where a bundle holds several: label or id")
]
Launches = Annotated[
    str, typer.Option("--launch", metavar="A[,B]", help="the launches whose timelines are compared; else the first")
]
Tolerance = Annotated[
    float, typer.Option("--tolerance", metavar="SHARE", help="a change of speed under this share is none")
]
PICTURES = (".svg", ".png", ".pdf")
Plain = Annotated[bool, typer.Option("--no-pictures", help="words and tables only")]


def diff(
    a: Before,
    b: After,
    output: Output = None,
    capture: Captures = "",
    launch: Launches = "",
    tolerance: Tolerance = 0.005,
    no_pictures: Plain = False,
    force: Force = False,
    json: Json = False,
) -> None:
    """Is B faster than A, is that more than noise, and what moved: speed, critical path, waits, states, overlap.

    Only like is compared with like: clean launches with clean launches. The interval of a change comes from repeats;
    without repeats it is unknown. Other stamps, another device or other clocks are refused; --force compares anyway,
    and replaces an output.
    """
    from wsformat.cli.output import clean, print_json
    from wsformat.cli.sink import write_text
    from wsformat.outputs import check_file
    from wsformat.viewers.diff import diff as compare
    from wsformat.viewers.diff_document import document
    from wsformat.viewers.diff_figure import diff_figure
    from wsformat.viewers.report_page import page
    from wsformat.viewers.report_text import markdown

    if not 0 <= tolerance < 1:
        raise BadRequest(f"--tolerance {tolerance}: a share from 0 to below 1", "0.005 is 0.5 %.")
    if output is not None:
        if output.suffix.lower() not in (".html", ".md", *PICTURES):
            raise BadRequest(
                f"{output}: a comparison is .html or .md, its picture .svg, .png or .pdf", "Name it so, or use --json."
            )
        if no_pictures and output.suffix.lower() in PICTURES:
            raise BadRequest(f"--no-pictures, and {output} is one", "Leave one of them out.")
        check_file(output, force=force)
    opened = scopes.open_bundle(a), scopes.open_bundle(b)
    wanted = _pair(capture, "--capture")
    captures = tuple(scopes.choose_captures(x, w)[1][0] if w else "" for x, w in zip(opened, wanted, strict=True))
    made = compare(
        *opened,
        names=(a.name, b.name),
        captures=(captures[0], captures[1]),
        launches=_launches(launch),
        force=force,
        tolerance=tolerance,
    )
    said = "".join(
        f" {name} {shlex.quote(value)}" for name, value in (("--capture", capture), ("--launch", launch)) if value
    )
    shown = document(
        made,
        (a.name, b.name),
        pictures=not no_pictures and output is not None and output.suffix.lower() == ".html",
        options=said + (" --force" if force else ""),
    )
    if output is not None and output.suffix.lower() in PICTURES:
        picture = diff_figure(made)
        if picture is None:
            raise BadRequest(
                f"{output}: no picture: the two have no role with iterations in common", "The page says what they have."
            )
        picture.write(output, force=force)
    elif output is not None:
        write_text(output, page(shown) if output.suffix.lower() == ".html" else markdown(shown))
    if json:
        print_json(made.to_json())
    elif output is None:
        print(markdown(shown), end="")
    else:
        print(clean(made.verdict))
        print(output)


def _pair(value: str, name: str) -> tuple[str, str]:
    """One value for both, or one for each."""
    parts = value.split(",") if value else ["", ""]
    if len(parts) > 2:
        raise BadRequest(f"{name} {value}: {len(parts)} values for two bundles", "Give one for both, or A,B.")
    return parts[0], parts[-1]


def _launches(value: str) -> tuple[int | None, int | None]:
    try:
        first, second = (int(part) if part else None for part in _pair(value, "--launch"))
    except ValueError as error:
        raise BadRequest(f"--launch {value}: expected numbers, such as 0 or 0,2") from error
    return first, second
