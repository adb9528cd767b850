"""What the demo says: every number comes from a view, every sentence from the numbers."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

from wsformat.cli.critical import path_of
from wsformat.cli.iterations import disturbance, iteration_figures
from wsformat.cli.output import number, percent, share
from wsformat.cli.overlap import overlap_of, set_names
from wsformat.cli.query import bundle_info
from wsformat.cli.scope import Analysis, count, plural
from wsformat.cli.states import by_role, hidden_waits, lane_states
from wsformat.cli.waits import wait_groups

RESULTS = ("info", "states", "waits", "overlap", "iterations", "critical_path")
"""Answers of the analysis commands that the demo writes, one JSON file each."""

Found = Mapping[str, Any]


def results(scope: Analysis) -> dict[str, Any]:
    """Answers of the analysis commands on one capture, as their --json gives them."""
    roles = set_names(scope, "role")
    return {
        "info": bundle_info(scope),
        "states": lane_states(scope),
        "waits": wait_groups(scope),
        "overlap": [overlap_of(scope, "role", a, b) for a, b in combinations(roles, 2)],
        "iterations": iteration_figures(scope),
        "critical_path": path_of(scope, 0, 0)[1],
        "hidden": hidden_waits(scope),
    }


def imported(found: Found) -> str:
    """What the import made and what it lost."""
    capture = next(c for c in found["info"]["captures"] if c["kind"] == "stamped")
    losses = capture["accounting"]
    launches = sum(row["count"] for row in capture["launches"])
    return (
        f"{number(found['info']['tables']['events'])} stamps of {count(len(capture['lanes']) - 1, 'role')}; "
        f"{capture['completeness']}, {number(losses.get('records_lost'))} lost, "
        f"{number(losses.get('wraps_undone'))} counter wraps undone; "
        f"{count(launches - 1, 'launch', 'launches')} more by their start and end alone"
    )


def speed(found: Found) -> list[str]:
    """How fast the loop runs, and what the stamps did to it."""
    lines = [
        f"Without stamps the loop takes {number(row['clean_ticks'])} {plural(row['unit'])} an iteration, with them "
        f"{number(row['ticks'])}: these stamps change it by {percent(row['perturbation'], sign=True)}."
        for row in found["iterations"]["perturbation"]
        if row["method"] == "slope"
    ]
    lines = lines or [f"Perturbation: {disturbance(row)}." for row in found["iterations"]["perturbation"]]
    return lines or ["Perturbation is unknown: there are no clean launches to compare with."]


def advice(_: Found) -> list[str]:
    """How to read the two."""
    return ["Judge the kernel's speed by the clean figure, and use the stamps to see who waits for whom."]


def stalls(found: Found) -> list[str]:
    """Per wait: how much of the role's time is truly blocked, on whom, and what the waits take in all."""
    states = {row["role"]: row for row in by_role(found["states"])}
    lines = []
    for wait in found["waits"]:
        role = states[wait["role"]]
        blocked, gross = wait["blocked"], wait["gross"]
        text = f"{wait['role']} is blocked on `{wait['barrier'] or wait['span']}` for "
        text += f"{percent(share(blocked, role['extent']))} of its time"
        binding = [b for b in wait["binding"] if b["blocked"]]
        if binding:
            text += f", by `{binding[0]['role']}.{binding[0]['event']}`"
        text += f"; its waits there take {percent(share(gross, role['extent']))} gross"
        if gross and wait["satisfied"] * 2 > gross:
            text += (
                f", {percent(share(wait['satisfied'], gross))} of that for stamps and the test of a barrier that was "
            )
            text += "complete already"
        lines.append(text + ".")
    return lines


def together(found: Found) -> list[str]:
    """Overlap of roles on the same resource, with all its denominators."""
    return [
        f"{pair['a']} and {pair['b']} are active together for {number(pair['cycles'])} {pair['unit']}s: "
        f"{percent(pair['of_a'])} of {pair['a']}'s active time, {percent(pair['of_b'])} of {pair['b']}'s, "
        f"{percent(pair['of_union'])} of the union."
        for pair in found["overlap"]
    ]


def pace(found: Found) -> list[str]:
    """Who paces the CTA, and what that role does on the path."""
    path = found["critical_path"]
    first = next(row for row in path if row["level"] == "pace")
    whole = sum(row["ticks"] for row in path if row["level"] == "pace")
    if first["kind"]:
        what = f"latency of {first['barrier']} after {first['producer_role']} signalled"
    else:
        parts = [
            row for row in path if row["level"] == "state" and row["role"] == first["role"] and row["kind"] != "latency"
        ]
        what = "on its own lane: " + ", ".join(f"{row['kind']} {percent(share(row['ticks'], whole))}" for row in parts)
    return [f"{first['role']} paces the CTA: {percent(first['share'])} of {number(whole)} cycles are {what}."]


def untracked(found: Found) -> list[str]:
    """What no stamp covers, and where active time is not what it seems."""
    listed = ", ".join(f"{row['role']} {percent(row['untracked_share'])}" for row in by_role(found["states"]))
    lines = [f"Untracked, that is not instrumented (it says nothing about idleness): {listed}."]
    if found["hidden"]:
        lines.append(
            f"Active time of {', '.join(found['hidden'])} hides a wait that has no stamps: it is no pure work."
        )
    return lines


def states_table(found: Found) -> list[str]:
    """The states of each role as a Markdown table whose columns line up."""
    names = ("active", "untracked", "blocked", "satisfied", "unjudged")
    table = [["role", "extent", *names]]
    for row in by_role(found["states"]):
        cells = [f"{number(row[name])} ({percent(row[f'{name}_share'])})" for name in names]
        table.append([row["role"], number(row["extent"]), *cells])
    return markdown(table)


def markdown(table: list[list[str]]) -> list[str]:
    """A Markdown table, its first row the heading; the first column is text, to the left."""
    widths = [max(len(row[n]) for row in table) for n in range(len(table[0]))]
    lines = [
        "| "
        + " | ".join(c.rjust(w) if n else c.ljust(w) for n, (c, w) in enumerate(zip(row, widths, strict=True)))
        + " |"
        for row in table
    ]
    rule = "| " + " | ".join("-" * (w - 1) + (":" if n else "-") for n, w in enumerate(widths)) + " |"
    return [lines[0], rule, *lines[1:]]


def summary(
    cases: Mapping[str, str],
    reports: Mapping[str, Any],
    found: Mapping[str, Found],
    verdicts: Mapping[str, tuple[str, str]],
) -> str:
    """What was done and what the captures say, as Markdown that reads well in a terminal.

    Args:
        cases: per bundle what it is.
        reports: validation report of each bundle.
        found: :func:`results` of each bundle.
        verdicts: of each bundle against the budget of its loop, with the sentence that explains it.
    """
    first, *others = cases
    main = found[first]
    capture = next(c for c in main["info"]["captures"] if c["kind"] == "stamped")
    checked = []
    for name, report in reports.items():
        warnings = [f"; {p.word}: {p.row}: {p.message}" for p in report.problems if p.level == "W"]
        verdict = "conforms" if report.ok else "does not conform"
        errors = count(report.count("E"), "error")
        checked.append(f"   - {name}.wsformat {verdict} ({report.checks} checks, {errors}{''.join(warnings)})")
    lines = [
        f"# {capture['kernel']} on {capture['device']}, {capture['shape']}, {capture['dtype']}",
        "",
        "Real stamp buffers that ship with wsformat, taken through the whole loop. Every number is computed here.",
        "",
        f"1. import: {imported(main)}",
        "2. validate:",
        *checked,
        "3. states, in cycles and as share of the extent:",
        "",
        *states_table(main),
        "",
        f"## {first}: {cases[first]}",
        "",
    ]
    for part in (speed, advice, stalls, together, pace, untracked):
        lines += [f"- {line}" for line in part(main)]
    for name in others:
        lines += ["", f"## {name}: {cases[name]}", ""]
        for part in (speed, stalls, pace):
            lines += [f"- {line}" for line in part(found[name])]
    lines += ["", "## Against its budget", ""]
    lines += [f"- {name}: {verdict}. {text}" for name, (verdict, text) in verdicts.items()]
    return "\n".join([*lines, ""])


def details(folder: Path, cases: Mapping[str, str], rows: list[dict[str, Any]], sql: str, missing: str) -> str:
    """The rest of summary.md: the query with its answer, and every file.

    Args:
        folder: where everything was written.
        cases: per bundle what it is.
        rows: what the query gave.
        sql: the query.
        missing: why there are no pictures; '' when there are.
    """
    lines = ["", "## A question in SQL", "", "```sql", sql, "```", "", *query_table(rows), "", "## Files", ""]
    lines += [
        f"- `{folder / name}`: {what}"
        for name, what in written(cases).items()
        if not missing or not name.startswith("timeline")
    ]
    return "\n".join([*lines, *([f"- no pictures: {missing}"] if missing else []), ""])


def query_table(rows: list[dict[str, Any]]) -> list[str]:
    """Rows of a query as a Markdown table."""
    if not rows:
        return ["No rows."]
    return markdown([list(rows[0]), *(["" if v is None else str(v) for v in row.values()] for row in rows)])


def written(cases: Mapping[str, str]) -> dict[str, str]:
    """Files of the demo and what they are."""
    files = {f"{name}.wsformat": what for name, what in cases.items()}
    files |= {f"{name}.json": f"`wsformat {name.replace('_', '-')} --json`" for name in RESULTS}
    files |= {
        "query.json": "the rows of the query",
        "timeline.html": "the timeline, to zoom into; opens without a network",
        "timeline.png": "the same as a picture",
        "timeline.svg": "the same for a paper",
    }
    files["report.html"] = "all of it on one page, the answer first; every number links to the SQL that makes it"
    return files | {"summary.md": "this text"}
