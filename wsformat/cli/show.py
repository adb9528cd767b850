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
    int | None,
    typer.Option("--width", metavar="N", min=20, max=10_000, help="characters of a line; by default the terminal's"),
]
Ascii = Annotated[bool, typer.Option("--ascii", help="ASCII characters only")]

KEPT = ("point", "span", "recorded_window", "state_interval", "wait", "role_state")
"""Views that several questions about a small capture need; of a large one only its waits are computed as a whole."""


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
    from wsformat.viewers.terminal import ASKED, LARGE, NAMES, SHARES_WIDTH, one_cta, panel, place, text

    told = sys.stdout.isatty() or width is not None or "COLUMNS" in os.environ
    room = width or shutil.get_terminal_size((160, 24)).columns
    opened = scopes.open_bundle(bundle)
    large = opened.rows("events") + opened.rows("spans") > LARGE
    kept = ("wait",) if large else KEPT
    with scopes.analysis(bundle, capture=capture, materialise=kept, only=(*ASKED, "perturbation")) as scope:
        chosen = scope.captures[0]
        at = place(scope.connection, chosen, launch, cta)
        near = one_cta(scope.bundle, scope.connection, chosen, *at) if large else None
        # Where the shares do not fit beside a bar they come below it.
        beside = room - SHARES_WIDTH - NAMES
        columns = beside - 2 if beside >= 26 or not told else room - NAMES - 2
        made = panel(scope.connection, chosen, launch=at[0], cta=at[1], columns=columns, whole=whole, near=near)
        if json:
            print_json({"capture_id": chosen, **made.to_json()})
            return
        for line in scopes.headline(scope):
            print(line)
        for line in text(made, ascii_only=ascii_ or not speaks_unicode(), room=room if told else 0):
            print(clean(line).rstrip())
        if len(scope.captures) > 1:
            print(f"\nOnly capture {scope.name(chosen)} of {len(scope.captures)} is shown; choose with --capture.")


def speaks_unicode() -> bool:
    """Whether the output can show block characters."""
    if os.environ.get("TERM") == "dumb":
        return False
    # Python writes UTF-8 in the C locale; the terminal there is not known to show it.
    locale = next((value for name in ("LC_ALL", "LC_CTYPE", "LANG") if (value := os.environ.get(name))), "")
    if locale in ("C", "POSIX"):
        return False
    try:
        "█╱·".encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
