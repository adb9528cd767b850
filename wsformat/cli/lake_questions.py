"""`wsformat lake trend|regressions|barriers|model-error|gaps`: what a team asks of all its captures."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from wsformat.cli.lake import Live, Option, Place, Where, date_of, question
from wsformat.cli.scope import Force, Json

Picture = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="FILE", help="draw it too: .html, .png, .svg or .pdf")
]
All = Annotated[bool, typer.Option("--all", help="every row, also what is within the noise")]
SHOWN = 100
SHARES = ("share", "perturbation", "change", "error")


def attach(app: typer.Typer) -> None:
    """Make the questions commands of a group."""
    app.command("trend")(trend)
    app.command("regressions")(regressions)
    app.command("barriers")(barriers)
    app.command("model-error")(model_error)
    app.command("gaps")(gaps)


def trend(
    lake: Place,
    by_day: Annotated[bool, typer.Option("--by-day", help="over days instead of versions")] = False,
    where: Where = "",
    live: Live = False,
    output: Picture = None,
    option: Option = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Ticks an iteration, stall share and perturbation of every kernel by version, architecture and date."""
    table = question(lake, "trend", option, where=where, live=live, values={"by_day": by_day})
    columns = ["kernel", "shape", "dtype", "arch", "role", "unit", "period", "first_unix_ns", "captures", "mean_ticks"]
    _answer("trend", table, [*columns, "stall_share", "blocked_share", "perturbation"], output, force=force, json=json)


def regressions(
    lake: Place,
    sigmas: Annotated[float, typer.Option("--sigmas", metavar="X", help="standard errors that a change must be")] = 3.0,
    least: Annotated[float, typer.Option("--least", metavar="X", help="and share of the ticks")] = 0.01,
    captures: Annotated[
        int, typer.Option("--captures", metavar="N", help="captures of a version from which its spread is known")
    ] = 3,
    every: All = False,
    where: Where = "",
    live: Live = False,
    output: Picture = None,
    option: Option = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Versions that are slower, or faster, than the one before by more than the noise of their own captures."""
    import pyarrow.compute as pc

    values = {"sigmas": sigmas, "least_change": least, "least_captures": captures}
    table = question(lake, "regressions", option, where=where, live=live, values=values)
    told = table if every else table.filter(pc.is_in(table.column("verdict"), _texts("regression", "improvement")))
    columns = ["verdict", "kernel", "shape", "arch", "role", "before_version", "version", "before_ticks", "mean_ticks"]
    _answer("regressions", told, [*columns, "change", "sigmas", "captures"], output, force=force, json=json)
    if told.num_rows < table.num_rows and not json:
        unknown = pc.sum(pc.equal(table.column("verdict"), "noise unknown")).as_py() or 0
        rest = table.num_rows - told.num_rows
        print(
            f"{rest:,} more comparisons, {unknown:,} of them with too few captures to know the noise; --all shows them."
        )


def barriers(
    lake: Place,
    where: Where = "",
    live: Live = False,
    output: Picture = None,
    option: Option = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Which barrier costs most across the fleet: the share of its roles' time in which they were blocked there."""
    table = question(lake, "barriers", option, where=where, live=live)
    columns = ["barrier", "role", "span", "producer_role", "captures", "waits", "waits_blocked", "mean_share"]
    _answer("barriers", table, [*columns, "most_share", "most_capture"], output, force=force, json=json)


def model_error(
    lake: Place,
    pairs: Annotated[bool, typer.Option("--pairs", help="every prediction and capture instead of resources")] = False,
    where: Where = "",
    live: Live = False,
    output: Picture = None,
    option: Option = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Predicted against measured over all kernels, by the resource that the prediction calls the bottleneck."""
    table = question(lake, "model_pair" if pairs else "model_error", option, where=where, live=live)
    columns = ["resource", "kind", "method", "pairs", "kernels", "mean_error", "least_error", "most_error", "rms_error"]
    if pairs:
        columns = ["kernel", "version", "shape", "arch", "resource", "method", "predicted_ticks", "measured_ticks"]
        columns += ["error", "capture_id"]
    _answer("model_error", table, columns, output, force=force, json=json)


def gaps(
    lake: Place,
    where: Where = "",
    live: Live = False,
    output: Picture = None,
    option: Option = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Captures that lack clean launches, are truncated, lost records, or miss what comparisons need."""
    table = question(lake, "gaps", option, where=where, live=live)
    columns = ["gap", "capture_id", "label", "kind", "kernel", "version", "arch", "created_unix_ns"]
    _answer("gaps", table, columns, output, force=force, json=json)


def _texts(*values: str) -> Any:
    import pyarrow as pa

    return pa.array(values)


def _answer(name: str, table: Any, columns: list[str], output: Path | None, *, force: bool, json: bool) -> None:
    """Print an answer, and draw it where a file is named."""
    from wsformat.cli.output import percent, print_json, print_table, rows

    found = rows(table)
    if output is not None:
        from wsformat.viewers.lake_figure import lake_figure

        lake_figure(name, table).write(output, force=force)
    if json:
        print_json(found)
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
    if output is not None:
        print(output)


def _head(column: str) -> str:
    return {"first_unix_ns": "first", "created_unix_ns": "created"}.get(column, column)
