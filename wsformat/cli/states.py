"""`wsformat states`: the exclusive states of every role."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from wsformat.cli import scope as scopes
from wsformat.cli.scope import Analysis, BundlePath, Capture, Cta, Json, Launch, Role

TICKS = ("extent", "stall", "active", "untracked", "blocked", "satisfied", "unjudged")
Each = Annotated[bool, typer.Option("--each", help="one row a lane")]


def states(
    bundle: BundlePath,
    capture: Capture = "",
    launch: Launch = scopes.EVERY,
    cta: Cta = scopes.EVERY,
    role: Role = "",
    each: Each = False,
    json: Json = False,
) -> None:
    """How each role spent its time: active, stall or untracked.

    Stall is divided into blocked (what the wait's producer or the memory cost), satisfied (stamps and the test of a
    wait that was already over) and unjudged (no declared edge). Untracked means not instrumented, never idle.
    """
    from wsformat.cli.output import print_json

    with scopes.analysis(bundle, capture=capture, launch=launch, cta=cta, role=role) as scope:
        lanes = lane_states(scope)
        if json:
            print_json(lanes)
        else:
            _print(scope, lanes, each)


def lane_states(scope: Analysis) -> list[dict[str, Any]]:
    """One object a lane: ticks of each state, how stall divides, and shares of the extent (None without extent).

    A lane of a role that wrote nothing is there with extent 0.
    """
    import pyarrow as pa

    def where(alias: str) -> str:
        return scope.where("capture_id", "launch", "cta", "role", alias=alias)

    found = scope.rows(
        f"""
        SELECT s.capture_id, s.launch, s.cta, s.warp, s.role, s.lane, COALESCE(k.kernel, '') AS kernel,
               COALESCE(c.unit, 'tick') AS unit, COALESCE(l.completeness, 'unknown') AS completeness,
               s.t_last, s.extent, s.stall, s.active, s.untracked
        FROM role_state s
        LEFT JOIN lanes l ON l.capture_id = s.capture_id AND l.lane = s.lane
        LEFT JOIN clocks c ON c.capture_id = s.capture_id AND c.clock = s.clock
        LEFT JOIN launches k ON k.capture_id = s.capture_id AND k.launch = s.launch
        LEFT JOIN roles r ON r.capture_id = s.capture_id AND r.role = s.role
        WHERE {where("s")}
        ORDER BY s.capture_id, s.launch, s.cta, r.display_order, s.lane
        """
    )
    # Waits in a query of their own, against the windows just found: both views at once would need twice the memory.
    keys = pa.schema([("capture_id", pa.string()), ("lane", pa.int32()), ("t_last", pa.int64())])
    scope.connection.register("lane_window", pa.Table.from_pylist(found, schema=keys))
    waited = scope.rows(
        f"""
        SELECT x.capture_id, x.lane, SUM(x.blocked_ticks) AS blocked, SUM(x.satisfied_ticks) AS satisfied,
               SUM(x.unjudged_ticks) AS unjudged
        FROM wait x JOIN lane_window w ON w.capture_id = x.capture_id AND w.lane = x.lane
        WHERE x.t1 <= w.t_last AND {where("x")} GROUP BY x.capture_id, x.lane
        """
    )
    scope.connection.unregister("lane_window")
    of_lane = {(row["capture_id"], row["lane"]): row for row in waited}
    for row in found:
        del row["t_last"]
        mine = of_lane.get((row["capture_id"], row["lane"]), {})
        row |= {name: mine.get(name, 0) for name in ("blocked", "satisfied", "unjudged")}
    for row in found:
        for state in TICKS[1:]:
            row[f"{state}_share"] = row[state] / row["extent"] if row["extent"] else None
    return found


def by_role(lanes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sums over the lanes of each role (per capture and kernel), with the least and the most stalled lane."""
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in lanes:
        groups.setdefault((row["capture_id"], row["kernel"], row["role"]), []).append(row)
    result = []
    for (capture_id, kernel, role), members in groups.items():
        seen = [m for m in members if m["extent"]]
        total: dict[str, Any] = {"capture_id": capture_id, "kernel": kernel, "role": role, "lanes": len(seen)}
        total |= {state: sum(m[state] for m in seen) for state in TICKS}
        for state in TICKS[1:]:
            total[f"{state}_share"] = total[state] / total["extent"] if total["extent"] else None
        gross = [m["stall_share"] for m in seen]
        total["least_stall_share"], total["most_stall_share"] = (min(gross), max(gross)) if gross else (None, None)
        blocked = [m["blocked_share"] for m in seen]
        total["least_blocked_share"] = min(blocked) if blocked else None
        total["most_blocked_share"] = max(blocked) if blocked else None
        result.append(total)
    return result


def _print(scope: Analysis, lanes: list[dict[str, Any]], each: bool) -> None:
    from wsformat.cli.output import percent, print_table

    several = {"capture": len({r["capture_id"] for r in lanes}) > 1, "kernel": len({r["kernel"] for r in lanes}) > 1}
    groups = [{**r, "lanes": 1} for r in lanes] if each else by_role(lanes)
    spread = not each and any(g["lanes"] > 1 for g in groups)
    for line in scopes.headline(scope):
        print(line)
    if not lanes:
        print("\nNo stamps and no spans here, so there are no states; `wsformat info` lists what there is.")
        return
    unit = "/".join(scopes.units(scope)) or "tick"
    print(f"Ticks are {scopes.plural(unit)}{'; mean of the lanes' if spread else ''}; shares are of the extent.\n")
    columns = [f"<{name}" for name, on in several.items() if on]
    columns += ["launch", "cta", "lane", "<role"] if each else ["<role", "lanes"]
    columns += ["extent", "active", "untracked", "blocked", "satisfied", "unjudged", "gross stall"]
    columns += ["least gross", "most gross", "least blocked", "most blocked"] if spread else []
    body = []
    for group in groups:
        lead = [scope.name(group["capture_id"])] if several["capture"] else []
        lead += [group["kernel"]] if several["kernel"] else []
        lead += (
            [group["launch"], group["cta"], group["lane"], group["role"]] if each else [group["role"], group["lanes"]]
        )
        if not group["extent"]:
            body.append([*lead, "no stamps"] + [""] * (len(columns) - len(lead) - 1))
            continue
        cells = [_mean(group["extent"], group["lanes"])]
        for state in ("active", "untracked", "blocked", "satisfied", "unjudged", "stall"):
            cells.append(f"{_mean(group[state], group['lanes'])} {percent(group[f'{state}_share']):>7}")
        if spread:
            cells += [
                percent(group[f"{end}_{what}_share"]) for what in ("stall", "blocked") for end in ("least", "most")
            ]
        body.append([*lead, *cells])
    print_table(columns, body)
    print()
    for note in notes(scope, groups):
        print(note)


def _mean(total: int, lanes: int) -> str:
    from wsformat.cli.output import number

    return number(total if lanes == 1 else total / lanes)


def notes(scope: Analysis, groups: list[dict[str, Any]]) -> list[str]:
    """What a reader must know to read the table rightly."""
    lines = [
        "blocked: the wait cost this; satisfied: stamps and test of a wait that was over already; "
        "unjudged: no edge, or its lag or signal is unknown.",
        "gross stall = blocked + satisfied + unjudged. untracked = not instrumented; it says nothing about idleness.",
    ]
    if groups and not any(g["active"] or g["stall"] for g in groups):
        lines.append(
            "No span here is declared as work or as a wait. A trace: import it with -O mapping=PRESET or FILE "
            "(docs/interchange.md); a stamp buffer: declare spans in its role spec."
        )
    hidden = hidden_waits(scope)
    if hidden:
        lines.append(f"Active spans that hide a wait (their share includes waiting): {', '.join(hidden)}.")
    if any(g["blocked"] + g["satisfied"] + g["unjudged"] != g["stall"] for g in groups):
        lines.append("Waits of one lane overlap: their sum exceeds its gross stall, which counts a tick once.")
    resolution = scopes.resolution_note(scope)
    return [*lines, resolution] if resolution else lines


def hidden_waits(scope: Analysis) -> list[str]:
    """Active spans, as role.span, that contain a wait without stamps of its own."""
    where = scope.where("capture_id", "role")
    sql = f"SELECT DISTINCT role, span FROM span_types WHERE contains_wait AND {where} ORDER BY role, span"
    return [f"{row['role']}.{row['span']}" for row in scope.rows(sql)]
