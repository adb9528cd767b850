"""Fills in what the commands of docs/tutorial.md print: `python docs/make_tutorial.py`; `--check` only compares.

Every `wsformat` line of a console block is run, in order, in one folder with the sample files.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import tempfile
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

PAGE = Path(__file__).parent / "tutorial.md"
BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)


def printed(words: list[str]) -> str:
    """What a command prints."""
    from typer.main import get_command

    from wsformat.cli.main import app

    out = StringIO()
    with redirect_stdout(out):
        get_command(app).main(words, prog_name="wsformat", standalone_mode=False)
    return "\n".join(line.rstrip() for line in out.getvalue().rstrip().splitlines())


def filled(text: str) -> str:
    """The page with the output of each command below it."""
    from wsformat.samples.__main__ import main as copy

    before = Path.cwd()

    def block(found: re.Match[str]) -> str:
        lines = [line for line in found[1].splitlines() if line.startswith("$ ")]
        parts = []
        for line in lines:
            words = shlex.split(line[2:])
            parts.append(f"{line}\n{printed(words[1:])}" if words[0] == "wsformat" else line)
        return "```console\n" + "\n".join(parts) + "\n```"

    with tempfile.TemporaryDirectory() as folder, redirect_stdout(StringIO()):
        os.chdir(folder)
        try:
            copy(["."])
            return BLOCK.sub(block, text)
        finally:
            os.chdir(before)


if __name__ == "__main__":
    from made_page import keep

    sys.exit(keep(PAGE, filled, sys.argv[1:]))
