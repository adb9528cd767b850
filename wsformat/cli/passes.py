"""`wsformat passes`: what each stamped pass did to the kernel, and what the passes say of the same spans."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from wsformat.cli import scope as scopes
from wsformat.cli.scope import Analysis, BundlePath, Capture, Json, Role

Spans = Annotated[bool, typer.Option("--spans", help="list every span that the combined picture draws")]


def passes(
    bundle: BundlePath, capture: Capture = "", role: Role = "", spans: Spans = False, json: Json = False
) -> None:
    """The passes of a kernel that was stamped a few stamps at a time, and their combined picture.

    Each kind of span is taken from the pass that disturbs the kernel least (view pass_span). Beside its length stands
    what the other passes measured: where they disagree by more than you care for, trust the picture no further.
    """
    from wsformat.cli.output import print_json

    with scopes.analysis(bundle, capture=capture, role=role) as scope:
        found: dict[str, Any] = {"passes": pass_rows(scope), "spans": kinds(scope), "warnings": warnings(scope)}
        if spans:
            found["picture"] = picture(scope)
        if json:
            print_json(found)
        else:
            _print(scope, found)


def pass_rows(scope: Analysis) -> list[dict[str, Any]]:
    """One row a pass: its name, launches, the kinds of stamps that it made, and its perturbation."""
    where = scope.where("capture_id", alias="k")
    return scope.rows(
        f"""
        WITH made AS (
          SELECT k.capture_id, k.pass, COUNT(DISTINCT (e.role, e.event)) AS stamps, COUNT(DISTINCT k.launch) AS kept
          FROM launches k JOIN events e ON e.capture_id = k.capture_id AND e.launch = k.launch
          WHERE k.pass >= 0 GROUP BY k.capture_id, k.pass
        )
        SELECT k.capture_id, k.pass, COALESCE(MAX(a.value), '') AS name, COALESCE(MAX(m.stamps), 0) AS stamp_kinds,
               COUNT(*) AS launches, COALESCE(MAX(m.kept), 0) AS launches_with_stamps,
               MAX(p.perturbation) AS perturbation, MAX(p.method) AS method
        FROM launches k
        LEFT JOIN made m ON m.capture_id = k.capture_id AND m.pass = k.pass
        LEFT JOIN attributes a ON a.capture_id = k.capture_id AND a.name = 'record.pass.' || k.pass || '.name'
        LEFT JOIN perturbation p ON p.capture_id = k.capture_id AND p.pass = k.pass AND p.preference = 1
        WHERE k.pass >= 0 AND {where} GROUP BY k.capture_id, k.pass ORDER BY k.capture_id, k.pass
        """
    )


def warnings(scope: Analysis) -> list[dict[str, Any]]:
    """What the recorder noticed of builds (spills, serialised wgmma) and of clocks that changed."""
    where = scope.where("capture_id")
    return scope.rows(
        f"""SELECT capture_id, subject, text FROM findings
            WHERE kind = 'message' AND subject IN ('build', 'clock') AND {where} ORDER BY capture_id, subject, text"""
    )


def kinds(scope: Analysis) -> list[dict[str, Any]]:
    """One row a kind of span: the pass that draws it, its mean length there, and the means of the other passes."""
    where = scope.where("capture_id", "role")
    return scope.rows(
        f"""
        WITH one AS (
          SELECT capture_id, trip_count, grid_ctas, unit, role, span, state, pass, AVG(ticks) AS mean_ticks
          FROM pass_span WHERE {where} GROUP BY ALL
        ), spread AS (
          SELECT capture_id, trip_count, grid_ctas, unit, role, span, state, COUNT(*) AS passes,
                 MIN(mean_ticks) AS least_mean_ticks, MAX(mean_ticks) AS most_mean_ticks
          FROM one GROUP BY ALL
        ), drawn AS (
          SELECT capture_id, trip_count, grid_ctas, unit, role, span, state, pass, COUNT(*) AS spans,
                 AVG(ticks) AS mean_ticks, AVG(most_ticks - least_ticks) AS mean_spread_ticks,
                 MAX(ABS(drift)) AS most_drift_ticks, MIN(align_event) AS align_event
          FROM pass_span WHERE is_chosen AND {where} GROUP BY ALL
        )
        SELECT d.*, s.passes, s.least_mean_ticks, s.most_mean_ticks
        FROM drawn d JOIN spread s USING (capture_id, trip_count, grid_ctas, unit, role, span, state)
        LEFT JOIN roles r ON r.capture_id = d.capture_id AND r.role = d.role
        ORDER BY d.capture_id, d.trip_count, d.grid_ctas, r.display_order, d.role, d.span, d.pass
        """
    )


def picture(scope: Analysis) -> list[dict[str, Any]]:
    """The spans that the combined picture draws, in the order of their places."""
    where = scope.where("capture_id", "role")
    return scope.rows(
        f"SELECT * FROM pass_span WHERE is_chosen AND {where} ORDER BY capture_id, trip_count, cta, x0, role, span"
    )


def _print(scope: Analysis, found: dict[str, Any]) -> None:
    from wsformat.cli.output import number, percent, print_table

    for line in scopes.headline(scope):
        print(line)
    print()
    if not found["passes"]:
        print("No passes: no launch says which pass it belongs to (launches.pass).")
        return
    several = len({row["capture_id"] for row in found["passes"]}) > 1
    lead = ["<capture"] if several else []

    def start(row: dict[str, Any]) -> list[str]:
        return [scope.name(row["capture_id"])] if several else []

    body = []
    for row in found["passes"]:
        known = row["perturbation"] is not None
        did = f"{percent(row['perturbation'], sign=True)} by {row['method']}" if known else "unknown"
        launches = f"{row['launches']} ({row['launches_with_stamps']} with stamps)"
        body.append([*start(row), row["pass"], row["name"], row["stamp_kinds"], launches, did])
    print_table([*lead, "pass", "<name", "kinds of stamps", "<launches", "<perturbation"], body, title="Passes:")
    for row in found["warnings"]:
        print(f"warning: {row['text']}")
    if not found["spans"]:
        print("\nNo pass kept stamps that make a span.")
        return
    print()
    named = {(row["capture_id"], row["pass"]): row["name"] or str(row["pass"]) for row in found["passes"]}
    body = []
    for row in found["spans"]:
        low, high = number(row["least_mean_ticks"], 1), number(row["most_mean_ticks"], 1)
        others = f"{low} to {high} in {row['passes']} passes" if row["passes"] > 1 else "in this pass only"
        drift = number(row["most_drift_ticks"])
        taken = [row["role"], row["span"], row["state"], named[row["capture_id"], row["pass"]], row["spans"]]
        lengths = [number(row["mean_ticks"], 1), others, number(row["mean_spread_ticks"], 1)]
        body.append([*start(row), *taken, *lengths, row["align_event"] or "its own start", drift])
    columns = ["<role", "<span", "<state", "<from pass", "spans", "mean", "<means of all passes", "spread of one span"]
    units = " or ".join(scopes.plural(unit) for unit in sorted({row["unit"] for row in found["spans"]}))
    print_table(
        [*lead, *columns, "<placed by", "drift"],
        body,
        title=f"Combined picture, in {units} (drift: the most that its launch was off from the base launch):",
    )
    print("\nEvery span keeps the ticks of its own launch; only its place in a picture is taken from two launches.")
