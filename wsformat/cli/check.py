"""`wsformat validate`: whether a bundle keeps every rule of the standard."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wsformat.cli import scope as scopes
from wsformat.cli.failure import FINDINGS
from wsformat.cli.scope import Json

Subject = Annotated[Path, typer.Argument(metavar="X.wsformat", help="the bundle", show_default=False)]
MetadataOnly = Annotated[bool, typer.Option("--metadata-only", help="read the manifest and file footers, no rows")]
Ignore = Annotated[
    list[str] | None, typer.Option("--ignore", metavar="CODE", help="leave out a code, such as W801; repeatable")
]


def validate(bundle: Subject, metadata_only: MetadataOnly = False, ignore: Ignore = None, json: Json = False) -> None:
    """Check every rule of the standard and list all problems at once, one line a code.

    Ends with 0 when the bundle conforms (warnings and hints are allowed), 1 when it breaks a MUST, 2 when there is
    nothing that can be checked.
    """
    from wsformat.cli.output import clean, print_json
    from wsformat.cli.progress import progress
    from wsformat.validate import validate as run

    scopes.refuse_zipped(bundle)
    with progress("validate") as advance:
        report = run(bundle, data=not metadata_only, ignore=tuple(ignore or ()), progress=advance)
    if json:
        print_json(report.to_json())
    else:
        for line in report.text().splitlines():
            print(clean(line))
    if not report.ok:
        raise typer.Exit(FINDINGS)
