"""The option `-o` of every command, and what all of them refuse alike: `-`, which elsewhere means standard output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import typer

from wsformat.errors import BadRequest

NAME_A_BUNDLE = "A bundle is a folder: name one, such as -o X.wsformat."
NAME_A_FILE = "Name a file."
NAME_A_FOLDER = "Name a folder."
LEAVE_AWAY = "Leave it away, and the answer is printed."
ROWS = "Leave it away and take --csv or --json: the rows are printed."
ROWS_TO_A_PIPE = 'Name a file; rows go to a pipe with `wsformat query X.wsformat "FROM events" --csv` (or --json).'


def output(metavar: str, about: str, dash: str, *names: str, **more: Any) -> Any:
    """The option `-o`, `--output`, or another that names an output.

    Args:
        metavar: what is named, for the help.
        about: the help.
        dash: what to do instead of naming `-`.
        names: of the option, when it is another.
        more: further arguments of `typer.Option`.
    """
    names = names or ("-o", "--output")
    return typer.Option(*names, metavar=metavar, help=about, callback=no_dash(names[0], dash), **more)


def no_dash(option: str, dash: str) -> Callable[[Any], Any]:
    """A callback that refuses `-` as the name of an output: it would become a file or a folder of that name.

    Results do not go to standard output: there commands say where the result is, and what it leaves out.
    """

    def check(value: Path | Sequence[Path] | None) -> Path | Sequence[Path] | None:
        for path in [value] if isinstance(value, Path) else value or ():
            if str(path) == "-":
                raise BadRequest(f"{option} -: no file of that name is written, and nothing to standard output", dash)
        return value

    return check
