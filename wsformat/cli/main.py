"""The command line `wsformat`: what commands there are. Each lives in a module of its group.

Modules here import typer and nothing heavy at the top, so that help and errors come at once; DuckDB, Arrow, numpy and
rich are imported by the command that needs them.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from wsformat.cli import (
    check,
    convert,
    critical,
    demo,
    diff,
    digest,
    doctor,
    files,
    grid,
    hardware,
    iterations,
    lake,
    lake_questions,
    overlap,
    passes,
    picture,
    predict,
    query,
    reconcile,
    record,
    report,
    serve,
    show,
    spec,
    states,
    waits,
)
from wsformat.cli.failure import FAILED, Commands, say_error
from wsformat.cli.interrupt import listen
from wsformat.version import __version__

GET = "Get data in and out"
CHECK = "Check"
LOOK = "Look into a kernel"
EXPLAIN = "Predict and explain"
KEEP = "Keep bundles"

app = typer.Typer(
    name="wsformat",
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        print(f"wsformat {__version__}")
        raise typer.Exit


@app.callback()
def wsformat(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="print the version and end")
    ] = False,
) -> None:
    """What happens inside a warp-specialised GPU kernel: who ran, who waited, for whom, and for how long.

    Start with `wsformat demo`, or with `wsformat import FILE -o X.wsformat` and `wsformat states X.wsformat`.
    """


app.command("demo", rich_help_panel=GET)(demo.demo)
app.command("import", rich_help_panel=GET)(convert.import_)
app.command("record", rich_help_panel=GET)(record.record)
app.command("export", rich_help_panel=GET)(convert.export)
app.command("formats", rich_help_panel=GET)(convert.formats)
app.command("doctor", rich_help_panel=CHECK)(doctor.doctor)
app.command("info", rich_help_panel=CHECK)(query.info)
app.command("validate", rich_help_panel=CHECK)(check.validate)
app.add_typer(spec.spec_app, name="spec", rich_help_panel=CHECK)
app.command("show", rich_help_panel=LOOK)(show.show)
app.command("states", rich_help_panel=LOOK)(states.states)
app.command("waits", rich_help_panel=LOOK)(waits.waits)
app.command("overlap", rich_help_panel=LOOK)(overlap.overlap)
app.command("iterations", rich_help_panel=LOOK)(iterations.iterations)
app.command("passes", rich_help_panel=LOOK)(passes.passes)
app.command("grid", rich_help_panel=LOOK)(grid.grid)
app.command("critical-path", rich_help_panel=LOOK)(critical.critical_path)
app.command("view", rich_help_panel=LOOK)(picture.view)
app.command("open", rich_help_panel=LOOK)(serve.open_)
app.command("report", rich_help_panel=LOOK)(report.report)
app.command("diff", rich_help_panel=LOOK)(diff.diff)
# SQL may begin with a comment, which looks like an option.
app.command("query", rich_help_panel=LOOK, context_settings={"ignore_unknown_options": True})(query.query)
app.command("predict", rich_help_panel=EXPLAIN)(predict.predict)
app.command("digest", rich_help_panel=EXPLAIN)(digest.digest)
app.command("reconcile", rich_help_panel=EXPLAIN)(reconcile.reconcile)
app.command("hardware", rich_help_panel=EXPLAIN)(hardware.hardware)
app.command("merge", rich_help_panel=KEEP)(files.merge)
app.command("zip", rich_help_panel=KEEP)(files.zip_)
app.command("unzip", rich_help_panel=KEEP)(files.unzip)
app.command("seal", rich_help_panel=KEEP)(files.seal)
app.command("upgrade", rich_help_panel=KEEP)(files.upgrade)
lake_questions.attach(lake.lake_app)
app.add_typer(lake.lake_app, name="lake", rich_help_panel=KEEP)


def main() -> None:
    """Entry point of the command `wsformat`."""
    # Started with a closed output (`>&-`) there is no stream, and the next file that is opened would take its number.
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        # A name that the terminal's encoding lacks is shown as an escape instead of ending the command.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    listen()
    for word in sys.argv[1:]:
        if any("\udc80" <= letter <= "\udcff" for letter in word):
            say_error(f"{word}: this name is not UTF-8", "Arrow and DuckDB open no such file: rename it.")
            sys.exit(FAILED)
    app(prog_name="wsformat")
