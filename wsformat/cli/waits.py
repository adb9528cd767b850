"""`wsformat waits`: what roles waited for, and how much of it was truly blocked."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from wsformat.cli import scope as scopes
from wsformat.cli.scope import Analysis, BundlePath, Capture, Cta, Json, Launch, Role

Each = Annotated[bool, typer.Option("--each", help="one row a wait")]
VERDICTS = ("free", "not_blocked", "producer_late", "in_flight", "other", "unknown")


def waits(
    bundle: BundlePath,
    capture: Capture = "",
    launch: Launch = scopes.EVERY,
    cta: Cta = scopes.EVERY,
    role: Role = "",
    each: Each = False,
    json: Json = False,
) -> None:
    """Waits by role, span and barrier: how long, how much of it blocked, and which producer was the binding one.

    Verdicts: free (the ring was not yet full), not_blocked (ready before the wait began), producer_late (the signal
    came after it began), in_flight (signalled before, arrived after: latency), other (ended well after it was ready),
    unknown (no declared edge or no stamp; its ticks are unjudged).
    """
    from wsformat.cli.output import print_json

    with scopes.analysis(bundle, capture=capture, launch=launch, cta=cta, role=role) as scope:
        if each:
            found = every_wait(scope)
            print_json(found) if json else _print_each(found)
            return
        found = wait_groups(scope)
        if json:
            print_json(found)
        else:
            _print(scope, found)


def every_wait(scope: Analysis) -> list[dict[str, Any]]:
    """Rows of the view `wait` in the selection."""
    where = scope.where("capture_id", "launch", "cta", "role")
    return scope.rows(f"SELECT * FROM wait WHERE {where} ORDER BY capture_id, lane, t0, span")


def wait_groups(scope: Analysis) -> list[dict[str, Any]]:
    """One object a (capture, role, span, barrier) with counts, ticks, verdict counts and the binding producers.

    ``binding`` lists the producers (role, event) that were the binding edge, with how many waits each bound and how
    many ticks those waits were blocked.
    """
    where = scope.where("capture_id", "launch", "cta", "role")
    counts = ", ".join(f"COUNT(*) FILTER (verdict = '{v}') AS {v}" for v in VERDICTS)
    found = scope.rows(
        f"""
        WITH w AS MATERIALIZED (
          SELECT capture_id, role, span, barrier, verdict, producer_role, producer_event, ticks, wait_floor,
                 release_ticks, blocked_ticks, satisfied_ticks, unjudged_ticks FROM wait WHERE {where}
        ), producer AS (
          SELECT capture_id, role, span, barrier, producer_role, producer_event, COUNT(*) AS waits,
                 SUM(blocked_ticks) AS blocked, MIN(release_ticks) AS release_ticks
          FROM w WHERE producer_role <> '' GROUP BY ALL
        ), bound AS (
          SELECT capture_id, role, span, barrier,
                 LIST({{'role': producer_role, 'event': producer_event, 'waits': waits, 'blocked': blocked,
                        'release_ticks': release_ticks}}
                      ORDER BY blocked DESC, waits DESC, producer_role, producer_event) AS binding
          FROM producer GROUP BY ALL
        ), total AS (
          SELECT capture_id, role, span, barrier, COUNT(*) AS waits, SUM(ticks) AS gross, SUM(blocked_ticks) AS blocked,
                 SUM(satisfied_ticks) AS satisfied, SUM(unjudged_ticks) AS unjudged, MIN(wait_floor) AS floor_ticks,
                 QUANTILE_DISC(ticks, 0.5) AS median_ticks, MAX(ticks) AS max_ticks, {counts}
          FROM w GROUP BY ALL
        )
        SELECT t.*, COALESCE(b.binding, []) AS binding
        FROM total t LEFT JOIN bound b USING (capture_id, role, span, barrier)
        LEFT JOIN roles r USING (capture_id, role)
        ORDER BY t.capture_id, r.display_order, t.role, t.span, t.barrier
        """
    )
    for row in found:
        row["verdicts"] = {verdict: row.pop(verdict) for verdict in VERDICTS}
    return found


def _print(scope: Analysis, found: list[dict[str, Any]]) -> None:
    from wsformat.cli.output import percent, print_table, share

    for line in scopes.headline(scope):
        print(line)
    if not found:
        print("\nNo waits: no span of state stall is stamped on both sides.")
        return
    several = len({row["capture_id"] for row in found}) > 1
    unit = "/".join(scopes.units(scope)) or "tick"
    print(f"Ticks are {scopes.plural(unit)}, summed over all lanes.\n")
    columns = ["<capture"] if several else []
    columns += ["<role", "<span", "<barrier"]
    ticks, verdicts = [], []
    for row in found:
        lead = [scope.name(row["capture_id"])] if several else []
        lead += [row["role"], row["span"], row["barrier"]]
        of_gross = percent(share(row["blocked"], row["gross"]))
        sums = (row["waits"], row["blocked"], of_gross, row["satisfied"], row["unjudged"], row["gross"])
        ticks.append([*lead, *sums, row["median_ticks"], row["max_ticks"], row["floor_ticks"], _binding(row)])
        verdicts.append([*lead, *(row["verdicts"][v] for v in VERDICTS)])
    figures = ["waits", "blocked", "of gross", "satisfied", "unjudged", "gross", "median", "max", "floor"]
    print_table([*columns, *figures, "<binding producer"], ticks)
    print()
    print_table([*columns, *VERDICTS], verdicts, title="Verdicts (number of waits):")
    if any(not row["binding"] for row in found):
        print(
            "\nBinding producer unknown: no edge ends at the wait, or its lag is unknown, or its signal has no stamp; "
            f"`wsformat spec check {scope.bundle.path}` says which."
        )
    resolution = scopes.resolution_note(scope)
    if resolution:
        print("\n" + resolution)


def _binding(row: dict[str, Any], most: int = 3) -> str:
    from wsformat.cli.output import number

    listed = [
        f"{b['role']}.{b['event']} {number(b['waits'])} waits, blocked {number(b['blocked'])}" for b in row["binding"]
    ]
    more = [f"{len(listed) - most} more"] if len(listed) > most else []
    return "; ".join(listed[:most] + more) or "unknown"


def _print_each(found: list[dict[str, Any]]) -> None:
    from wsformat.cli.output import print_table

    columns = ["launch", "cta", "lane", "<role", "<span", "<barrier", "iteration", "t0", "t1", "ticks", "blocked_ticks"]
    columns += ["<verdict", "<producer_role", "<producer_event", "producer_iteration", "late", "slack"]
    print_table(columns, [[row[name.removeprefix("<")] for name in columns] for row in found])
