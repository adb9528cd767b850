"""`wsformat lake trend|regressions|barriers|model-error|gaps`: what a team asks of all its captures."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from wsformat.cli import target as targets
from wsformat.cli.lake import Live, Option, Place, Where, date_of, question
from wsformat.cli.scope import Force, Json
from wsformat.errors import BadRequest

Picture = Annotated[Path | None, targets.output("FILE", "draw it too: .html, .png, .svg or .pdf", targets.NAME_A_FILE)]
All = Annotated[bool, typer.Option("--all", help="every row, also what is within the noise")]
SHOWN = 100
NOTHING = {
    "trend": "needs captures with roles in the lake",
    "regressions": "no version differs from the one before by more than the noise; that is known from three captures "
    "of a version on (--captures), and --all shows every comparison",
    "barriers": "needs captures with waits whose spans name a barrier",
    "model_error": "needs predictions and measured captures of one experiment in the lake",
    "gaps": "nothing is missing",
}
"""What an answer without rows says."""
SHARES = ("share", "perturbation", "change", "error")


@dataclass(frozen=True)
class Asked:
    """What every question is asked with.

    Attributes:
        lake: its place.
        where, live: of which captures, and whether nothing kept is used.
        output, force: a picture to draw.
        option: properties of the store.
        json: print the answer as JSON.
    """

    lake: Place
    where: Where = ""
    live: Live = False
    output: Picture = None
    option: Option = None
    force: Force = False
    json: Json = False

    def table(self, name: str, values: dict[str, Any] | None = None) -> Any:
        """The answer to a question as an Arrow table."""
        return question(self.lake, name, self.option, where=self.where, live=self.live, values=values)


def attach(app: typer.Typer) -> None:
    """Make the questions commands of a group."""
    for name, work in (
        ("trend", trend),
        ("regressions", regressions),
        ("barriers", barriers),
        ("model-error", model_error),
        ("gaps", gaps),
    ):
        app.command(name)(_command(work))


def _command(work: Callable[..., None]) -> Callable[..., None]:
    """A command with the place, the question's own options, and those of :class:`Asked`."""
    hints = {**get_type_hints(Asked, include_extras=True), **get_type_hints(work, include_extras=True)}
    place, *shared = signature(Asked).parameters.values()
    own = [parameter for parameter in signature(work).parameters.values() if parameter.name != "asked"]

    def command(**given: Any) -> None:
        asked = Asked(**{parameter.name: given.pop(parameter.name) for parameter in (place, *shared)})
        work(asked, **given)

    made: Any = command
    made.__doc__ = work.__doc__
    every = [p.replace(annotation=hints[p.name], kind=Parameter.KEYWORD_ONLY) for p in (place, *own, *shared)]
    made.__signature__ = Signature(every)
    made.__annotations__ = {p.name: p.annotation for p in every}
    return command


def trend(
    asked: Asked,
    by_day: Annotated[bool, typer.Option("--by-day", help="over days instead of versions")] = False,
) -> None:
    """Ticks an iteration, stall share and perturbation of every kernel by version, architecture and date."""
    table = asked.table("trend", {"by_day": by_day})
    # A day is told by the moments of its first and last capture.
    period = ["first_unix_ns", "last_unix_ns"] if by_day else ["period", "first_unix_ns"]
    columns = ["kernel", "shape", "dtype", "arch", "role", "unit", *period, "captures", "mean_ticks"]
    _answer("trend", table, [*columns, "stall_share", "blocked_share", "perturbation"], asked)


def regressions(
    asked: Asked,
    sigmas: Annotated[float, typer.Option("--sigmas", metavar="X", help="standard errors that a change must be")] = 3.0,
    least: Annotated[float, typer.Option("--least", metavar="X", help="and share of the ticks")] = 0.01,
    captures: Annotated[
        int, typer.Option("--captures", metavar="N", help="captures of a version from which its spread is known")
    ] = 3,
    every: All = False,
) -> None:
    """Versions that are slower, or faster, than the one before by more than the noise of their own captures."""
    import pyarrow.compute as pc

    table = asked.table("regressions", {"sigmas": sigmas, "least_change": least, "least_captures": captures})
    told = table if every else table.filter(pc.is_in(table.column("verdict"), _texts("regression", "improvement")))
    columns = ["verdict", "kernel", "shape", "arch", "role", "before_version", "version", "before_ticks", "mean_ticks"]
    _answer("regressions", told, [*columns, "change", "sigmas", "captures"], asked)
    if told.num_rows < table.num_rows and not asked.json:
        unknown = pc.sum(pc.equal(table.column("verdict"), "noise unknown")).as_py() or 0
        rest = table.num_rows - told.num_rows
        print(
            f"{rest:,} more comparisons, {unknown:,} of them with too few captures to know the noise; --all shows them."
        )


def barriers(asked: Asked) -> None:
    """Which barrier costs most across the fleet: the share of its roles' time in which they were blocked there."""
    columns = ["barrier", "role", "span", "producer_role", "captures", "waits", "waits_blocked", "mean_share"]
    _answer("barriers", asked.table("barriers"), [*columns, "most_share", "most_capture"], asked)


def model_error(
    asked: Asked,
    pairs: Annotated[bool, typer.Option("--pairs", help="every prediction and capture instead of resources")] = False,
) -> None:
    """Predicted against measured over all kernels, by the resource that the prediction calls the bottleneck."""
    columns = ["resource", "kind", "method", "pairs", "kernels", "mean_error", "least_error", "most_error", "rms_error"]
    if pairs:
        columns = ["kernel", "version", "shape", "arch", "resource", "method", "predicted_ticks", "measured_ticks"]
        columns += ["error", "capture_id"]
    _answer("model_error", asked.table("model_pair" if pairs else "model_error"), columns, asked)


def gaps(asked: Asked) -> None:
    """Captures that lack clean launches, are truncated, lost records, or miss what comparisons need."""
    columns = ["gap", "capture_id", "label", "kind", "kernel", "version", "arch", "created_unix_ns"]
    _answer("gaps", asked.table("gaps"), columns, asked)


def _texts(*values: str) -> Any:
    import pyarrow as pa

    return pa.array(values)


def _answer(name: str, table: Any, columns: list[str], asked: Asked) -> None:
    """Print an answer, and draw it where a file is named."""
    from wsformat.cli.output import percent, print_json, print_table, rows

    found = rows(table)
    if asked.output is not None:
        from wsformat.viewers.lake_figure import lake_figure

        if not found:
            raise BadRequest(f"no rows to draw: {NOTHING[name]}", "Without -o this is an answer like another.")
        lake_figure(name, table).write(asked.output, force=asked.force)
    if asked.json:
        print_json(found)
        return
    if not found:
        print(f"no rows: {NOTHING[name]}")
        return
    shown: list[list[Any]] = []
    for row in found[:SHOWN]:
        cells = []
        for column in columns:
            value = row[column]
            if column.endswith("unix_ns"):
                value = date_of(value)
            elif isinstance(value, float) and any(word in column for word in SHARES):
                value = percent(value, sign="share" not in column)
            cells.append(value)
        shown.append(cells)
    numbers = [
        column.endswith(("_ticks", "sigmas", "captures", "pairs", "kernels", "waits", "waits_blocked"))
        for column in columns
    ]
    heads = [
        ("" if number or any(w in c for w in SHARES) else "<") + _head(c)
        for c, number in zip(columns, numbers, strict=True)
    ]
    print_table(heads, shown)
    if len(found) > SHOWN:
        print(f"{len(found) - SHOWN:,} more rows; --json gives all.", file=sys.stderr)
    if asked.output is not None:
        print(asked.output)


def _head(column: str) -> str:
    return {"first_unix_ns": "first", "last_unix_ns": "last", "created_unix_ns": "created"}.get(column, column)
