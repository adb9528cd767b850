"""`wsformat iterations`: the speed of the main loop, each figure with its method."""

from __future__ import annotations

from typing import Any

from wsformat.cli import scope as scopes
from wsformat.cli.scope import Analysis, BundlePath, Capture, Json, Launch, Role


def iterations(
    bundle: BundlePath, capture: Capture = "", launch: Launch = scopes.EVERY, role: Role = "", json: Json = False
) -> None:
    """Cycles an iteration of each role in its steady window, and the slope of launches with and without stamps.

    start_to_start: mean over the steady window, from one iteration_event to the next; quartiles are spread, not speed.
    slope: difference of CTA lifetimes over difference of trip counts; it needs no stamps. Compare like with like only.
    """
    from wsformat.cli.output import print_json

    with scopes.analysis(bundle, capture=capture, launch=launch, role=role) as scope:
        found = iteration_figures(scope)
        if json:
            print_json(found)
        else:
            _print(scope, found)


def iteration_figures(scope: Analysis) -> dict[str, Any]:
    """``iterations`` (view iteration_summary), ``slope`` and ``perturbation`` (the views of that name).

    A role whose iterations are known but make no steady window is there with samples 0.
    """
    where = scope.where("capture_id", "launch", "role")
    summary = scope.rows(
        f"""
        WITH seen AS (
          SELECT capture_id, launch, role, MIN(clock) AS clock, MAX(steady_first) AS steady_first,
                 MIN(steady_end) AS steady_end, COUNT(*) AS intervals
          FROM iteration WHERE {where} GROUP BY capture_id, launch, role
        )
        SELECT s.capture_id, s.launch, s.role, 'start_to_start' AS method, COALESCE(c.unit, 'tick') AS unit,
               COALESCE(i.samples, 0) AS samples, s.intervals,
               COALESCE(i.steady_first, s.steady_first) AS steady_first,
               COALESCE(i.steady_end, s.steady_end) AS steady_end,
               i.mean_ticks, i.min_ticks, i.q1_ticks, i.median_ticks, i.q3_ticks, i.max_ticks
        FROM seen s LEFT JOIN iteration_summary i USING (capture_id, launch, role)
        LEFT JOIN clocks c ON c.capture_id = s.capture_id AND c.clock = s.clock
        LEFT JOIN roles r ON r.capture_id = s.capture_id AND r.role = s.role
        ORDER BY s.capture_id, s.launch, r.display_order, s.role
        """
    )
    # Clean launches may be a capture of their own, so slopes are those of every capture of the experiment.
    chosen = scope.where("capture_id")
    family = f"""capture_id IN (SELECT capture_id FROM captures WHERE {chosen} OR experiment <> '' AND experiment IN
                 (SELECT experiment FROM captures WHERE {chosen}))"""
    slope = scope.rows(f"SELECT * FROM slope WHERE {family} ORDER BY capture_id, kind, pass, grid_ctas, slots")
    return {"iterations": summary, "slope": slope, "perturbation": scopes.perturbations(scope)}


def _print(scope: Analysis, found: dict[str, Any]) -> None:
    from wsformat.cli.output import number, print_table

    for line in scopes.headline(scope):
        print(line)
    print()
    rows = found["iterations"]
    if not rows:
        print("No iterations: no role has an iteration_event that was stamped.")
    else:
        several = len({row["capture_id"] for row in rows}) > 1
        columns = ["<capture"] if several else []
        columns += ["launch", "<role", "mean", "q1", "median", "q3", "min", "max", "samples", "steady window", "<unit"]
        body = []
        for row in rows:
            window = f"[{row['steady_first']}, {row['steady_end']})" if row["samples"] else "none"
            lead = [scope.name(row["capture_id"])] if several else []
            figures = [number(row["mean_ticks"], 2), *(row[f"{q}_ticks"] for q in ("q1", "median", "q3", "min", "max"))]
            body.append([*lead, row["launch"], row["role"], *figures, row["samples"], window, row["unit"]])
        print_table(columns, body, title="Ticks an iteration, method start_to_start (the mean is the loop's speed):")
    if found["slope"]:
        print()
        body = []
        for row in found["slope"]:
            trips = f"{row['trips_low']} to {row['trips_high']}"
            launches = f"{row['launches_low']} and {row['launches_high']}"
            ctas = number(row["grid_ctas"] if row["grid_ctas"] > 0 else None)
            figures = [number(row["slope_ticks"], 2), number(row["fixed_ticks"]), trips, launches, row["unit"]]
            body.append([scope.name(row["capture_id"]), row["kind"], ctas, *figures])
        print_table(
            ["<capture", "<launches", "CTAs", "slope", "fixed cost", "trips", "launches", "<unit"],
            body,
            title="Ticks an iteration, method slope (CTA lifetime over trip count; needs no stamps):",
        )
    print()
    for row in found["perturbation"]:
        print(f"Perturbation of {scope.name(row['capture_id'])}: {disturbance(row)}.")
    if not found["perturbation"]:
        print("Perturbation: unknown. Import clean launches of the same kernel beside the stamped ones to know it.")


def disturbance(row: dict[str, Any]) -> str:
    """A row of the view perturbation in words, with what it was computed from."""
    from wsformat.cli.output import number, percent

    slope = row["method"] == "slope"
    trips = f"trips {row['trips_low']} to {row['trips_high']}" if slope else f"{row['trips_high']} trips"
    what = "an iteration" if slope else "a CTA lifetime"
    unit = scopes.plural(row["unit"])
    ticks = f"{number(row['ticks'], 2)} {row['kind']}, {number(row['clean_ticks'], 2)} clean {unit} {what}"
    launches = f"{row['launches']} {row['kind']} and {row['clean_launches']} clean launches"
    return f"{percent(row['perturbation'], sign=True)} by {row['method']} ({ticks}; {trips}, {launches})"
