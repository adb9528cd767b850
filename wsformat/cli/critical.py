"""`wsformat critical-path`: who paces a CTA."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from wsformat.cli import scope as scopes
from wsformat.cli.scope import Analysis, BundlePath, Capture, Json

Launch = Annotated[int, typer.Option("--launch", metavar="N", help="the launch")]
Cta = Annotated[int, typer.Option("--cta", metavar="N", help="the CTA, by its linear index")]
Each = Annotated[bool, typer.Option("--each", help="one row a segment of the path, in order of time")]


def critical_path(
    bundle: BundlePath, capture: Capture = "", launch: Launch = 0, cta: Cta = 0, each: Each = False, json: Json = False
) -> None:
    """Backwards from the last stamp of a CTA through binding edges: the share of each role and wait.

    A wait moves the path to the role that released it only when it was blocked; a wait without a cause that the
    declared edges explain stays on its lane, and before it the path is a lower bound.
    """
    from wsformat.cli.output import print_json, rows

    with scopes.analysis(bundle, capture=capture) as scope:
        path, shares = path_of(scope, launch, cta)
        if json:
            print_json({"summary": shares, "path": rows(path)} if each else shares)
        elif each:
            _print_each(rows(path))
        else:
            _print(scope, shares)


def path_of(scope: Analysis, launch: int, cta: int) -> tuple[Any, list[dict[str, Any]]]:
    """The path of one CTA as an Arrow table, and its shares by pace, state and span as rows."""
    from wsformat.cli.output import rows
    from wsformat.critical_path import critical_path as find
    from wsformat.critical_path import summary

    capture = scope.one_capture()
    scope.need("span wait recorded_window")
    path = find(scope.bundle, capture_id=capture, launch=launch, cta=cta, connection=scope.connection)
    return path, rows(summary(path))


def _print(scope: Analysis, shares: list[dict[str, Any]]) -> None:
    from wsformat.cli.output import percent, print_table

    for line in scopes.headline(scope):
        print(line)
    if not shares:
        print("\nNo path: the stamps of this CTA span no time.")
        return
    unit = "/".join(scopes.units(scope)) or "tick"
    whole = sum(row["ticks"] for row in shares if row["level"] == "pace")
    print(f"Critical path of launch {shares[0]['launch']}, CTA {shares[0]['cta']}: {whole:,} {scopes.plural(unit)}.\n")
    body = []
    for row in shares:
        if row["level"] == "pace":
            what = "on its lanes"
            if row["kind"]:
                what = f"waits {row['span']} {row['barrier']}, after the signal of {row['producer_role']}"
            body.append([row["role"], what, row["ticks"], percent(row["share"]), row["segments"]])
    print_table(["<role", "<what", "ticks", "share", "segments"], body, title="Who paces the CTA:")
    print()
    named = ("role", "kind", "span", "barrier", "verdict", "producer_role", "ticks")
    body = [
        [*(row[name] for name in named), percent(row["share"]), row["segments"]]
        for row in shares
        if row["level"] == "span"
    ]
    columns = ["<role", "<kind", "<span", "<barrier", "<verdict", "<signalled by", "ticks", "share", "segments"]
    print_table(columns, body, title="In detail:")
    bound = sum(r["ticks"] for r in shares if r["level"] == "span" and r["verdict"] in ("other", "unknown"))
    if bound:
        what = f"{bound:,} {scopes.plural(unit)} are stalls that no declared edge explains"
        print(f"\n{what}: before them the path is a lower bound.")
    if scope.rows(
        "SELECT 1 AS one FROM dependencies WHERE " + scope.where("capture_id") + " AND scope <> 'cta' LIMIT 1"
    ):
        print("\nThe path stays within the CTA: waits for other CTAs are on it, what the other CTAs did is not.")


def _print_each(path: list[dict[str, Any]]) -> None:
    from wsformat.cli.output import print_table

    columns = ["step", "t0", "t1", "ticks", "lane", "<role", "<kind", "<span", "<barrier", "iteration", "<verdict"]
    columns += ["producer_lane", "<producer_role", "<producer_event"]
    print_table(columns, [[row[name.removeprefix("<")] for name in columns] for row in path])
