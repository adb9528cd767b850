"""`wsformat overlap A B`: how long two roles, or two resources, were busy at the same time."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Annotated, Any

import typer

from wsformat.cli import scope as scopes
from wsformat.cli.scope import Analysis, BundlePath, Capture, Cta, Json, Launch
from wsformat.errors import BadRequest

First = Annotated[str, typer.Argument(metavar="[A]", help="a role (with --resource a resource)", show_default=False)]
Second = Annotated[
    str, typer.Argument(metavar="[B]", help="another one; without A and B: every pair", show_default=False)
]
Resource = Annotated[bool, typer.Option("--resource", help="compare resources, by all spans that keep them busy")]
Each = Annotated[bool, typer.Option("--each", help="one row a launch and CTA")]


def overlap(
    bundle: BundlePath,
    a: First = "",
    b: Second = "",
    capture: Capture = "",
    launch: Launch = scopes.EVERY,
    cta: Cta = scopes.EVERY,
    resource: Resource = False,
    each: Each = False,
    json: Json = False,
) -> None:
    """Ticks in which A and B are both active, with all three denominators and the window.

    A role is active while any of its lanes is. CTAs are compared one by one, each on its own clock, then summed.
    """
    from wsformat.cli.output import print_json

    # For every pair the view is asked again and again: compute it once.
    kept = () if a else ("overlap",)
    with scopes.analysis(bundle, capture=capture, launch=launch, cta=cta, materialise=kept) as scope:
        kind = "resource" if resource else "role"
        if bool(a) != bool(b):
            raise BadRequest(
                f"one {kind} named, two are needed", f"`wsformat overlap {bundle} A B`; {_known(scope, kind)}"
            )
        if len(scope.captures) > 1:
            _several(scope, kind, a, b, each, json)
            return
        if a:
            found = [overlap_of(scope, kind, a, b)]
        else:
            known = set_names(scope, kind)
            found = [overlap_of(scope, kind, x, y) for i, x in enumerate(known) for y in known[i + 1 :]]
        if json:
            print_json(found[0] if a else found)
        else:
            _print(scope, found, each)


def _several(scope: Analysis, kind: str, a: str, b: str, each: bool, json: bool) -> None:
    """The answer for each capture that has what is asked, one below the other; in JSON one list."""
    from wsformat.cli.output import print_json

    found: list[dict[str, Any]] = []
    shown = 0
    for capture in scope.captures:
        own = replace(scope, captures=(capture,))
        known = set_names(own, kind)
        if a and b and not {a, b} <= set(known):
            continue
        pairs = [(a, b)] if a else list(combinations(known, 2))
        answers = [overlap_of(own, kind, x, y) for x, y in pairs]
        found += answers
        if answers and not json:
            if shown:
                print()
            _print(own, answers, each)
            shown += 1
    if a and not found:
        raise BadRequest(f"no capture has {kind}s {a!r} and {b!r}", _known(scope, kind))
    if json:
        print_json(found)
    elif not shown:
        print("Fewer than two to compare in every capture.")


def overlap_of(scope: Analysis, kind: str, a: str, b: str) -> dict[str, Any]:
    """Overlap of two sets in total and for each CTA.

    Returns ``cycles`` (both active), ``a_cycles``, ``b_cycles``, ``union_cycles``, the shares ``of_a``, ``of_b``,
    ``of_union`` (None without denominator), the ``window`` and ``per_cta``: a list of the same for each launch and CTA
    in which both have stamps; without any such CTA all figures are None.

    Raises:
        BadRequest: an unknown name, twice the same one, or several captures.
    """
    capture = scope.one_capture()
    known = set_names(scope, kind)
    for name in (a, b):
        if name not in known:
            raise BadRequest(f"no {kind} {name!r}", _known(scope, kind))
    if a == b:
        raise BadRequest(f"{a!r} overlaps with itself: name two {kind}s", _known(scope, kind))
    low, high = sorted((a, b))
    where = scope.where("capture_id", "launch", "cta")
    found = scope.rows(
        f"""
        SELECT launch, cta, clock, both_ticks AS cycles, a_ticks, b_ticks, union_ticks AS union_cycles, t_first, t_last
        FROM overlap WHERE {where} AND set_kind = '{kind}' AND set_a = {scopes.quote(low)}
          AND set_b = {scopes.quote(high)} ORDER BY launch, cta, clock
        """
    )
    per_cta = []
    for row in found:
        sides = (row.pop("a_ticks"), row.pop("b_ticks"))
        row["a_cycles"], row["b_cycles"] = sides if (a, b) == (low, high) else sides[::-1]
        start, end = row.pop("t_first"), row.pop("t_last")
        per_cta.append({**row, **_shares(row), "window": {"t_first": start, "t_last": end, "ticks": end - start}})
    total: dict[str, Any] = {"capture_id": capture, "kind": kind, "a": a, "b": b, "unit": "/".join(scopes.units(scope))}
    # Where no CTA has lanes of both there is nothing to compare, and 0 would say that they were never active at once.
    measured = ("cycles", "a_cycles", "b_cycles", "union_cycles")
    sums = {key: sum(row[key] for row in per_cta) if per_cta else None for key in measured}
    whole = {"ticks": sum(row["window"]["ticks"] for row in per_cta), "ctas": len(per_cta)}
    return {**total, **sums, **_shares(sums), "window": whole, "per_cta": per_cta}


def _shares(row: dict[str, Any]) -> dict[str, Any]:
    from wsformat.cli.output import share

    return {f"of_{x}": share(row["cycles"], row[f"{x}_cycles"]) for x in ("a", "b", "union")}


def set_names(scope: Analysis, kind: str) -> list[str]:
    """Roles in their order for display, or resources by name."""
    where = scope.where("capture_id")
    if kind == "role":
        sql = f"SELECT role AS x FROM roles WHERE {where} GROUP BY role ORDER BY MIN(display_order), role"
    else:
        sql = f"SELECT DISTINCT resource AS x FROM span_types WHERE resource <> '' AND {where} ORDER BY x"
    return [row["x"] for row in scope.rows(sql)]


def _known(scope: Analysis, kind: str) -> str:
    return f"{kind.capitalize()}s: {', '.join(set_names(scope, kind)) or 'none'}."


def _print(scope: Analysis, found: list[dict[str, Any]], each: bool) -> None:
    from wsformat.cli.output import percent, print_table

    for line in scopes.headline(scope):
        print(line)
    if not found:
        print("\nFewer than two to compare.")
        return
    unit = found[0]["unit"] or "tick"
    print(f"Ticks are {scopes.plural(unit)}. Window: the recorded windows of the lanes of each CTA.\n")
    columns = ["launch", "cta"] if each else []
    columns += ["<A", "<B", "both active", "of A", "of B", "of union", "A active", "B active", "union", "window"]
    columns += [] if each else ["CTAs"]
    body = []
    for pair in found:
        for row in pair["per_cta"] if each else [pair]:
            cells = [row["launch"], row["cta"]] if each else []
            cells += [pair["a"], pair["b"], row["cycles"], *(percent(row[f"of_{x}"]) for x in ("a", "b", "union"))]
            cells += [row["a_cycles"], row["b_cycles"], row["union_cycles"], row["window"]["ticks"]]
            body.append(cells if each else [*cells, row["window"]["ctas"]])
    print_table(columns, body)
    resolution = scopes.resolution_note(scope)
    if resolution:
        print("\n" + resolution)
