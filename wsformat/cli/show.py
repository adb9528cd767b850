"""`wsformat show`: the timeline in a terminal."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Annotated

import typer

from wsformat.cli import scope as scopes
from wsformat.cli.scope import BundlePath, Capture, Json

Launch = Annotated[int | None, typer.Option("--launch", metavar="N", help="the launch; by default the first")]
Cta = Annotated[int | None, typer.Option("--cta", metavar="N", help="the CTA; by default the first")]
Whole = Annotated[bool, typer.Option("--whole", help="the whole CTA; by default some iterations from its middle")]
Width = Annotated[
    int | None, typer.Option("--width", metavar="N", help="characters of a line; by default the terminal's")
]
Ascii = Annotated[bool, typer.Option("--ascii", help="ASCII characters only")]

NAMES = 14
"""Characters kept for the names of lanes."""


def show(
    bundle: BundlePath,
    capture: Capture = "",
    launch: Launch = None,
    cta: Cta = None,
    whole: Whole = False,
    width: Width = None,
    ascii_: Ascii = False,
    json: Json = False,
) -> None:
    """Roles over time in a terminal, with stall shares, the costliest waits and overlap."""
    from wsformat.cli.output import clean, print_json
    from wsformat.viewers.terminal import SHARES_WIDTH, panel, text

    room = width or shutil.get_terminal_size((160, 24)).columns
    with scopes.analysis(bundle, capture=capture) as scope:
        chosen = scope.captures[0]
        made = panel(scope.connection, chosen, launch=launch, cta=cta, columns=room - SHARES_WIDTH - NAMES, whole=whole)
        if json:
            print_json({"capture_id": chosen, **made.to_json()})
            return
        for line in scopes.headline(scope):
            print(line)
        for line in text(made, ascii_only=ascii_ or not speaks_unicode()):
            print(clean(line).rstrip())
        if len(scope.captures) > 1:
            print(f"\nOnly capture {scope.name(chosen)} of {len(scope.captures)} is shown; choose with --capture.")


def speaks_unicode() -> bool:
    """Whether the output can show block characters."""
    if os.environ.get("TERM") == "dumb":
        return False
    try:
        "█╱·".encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
