"""`wsformat spec`: what the declared stamps cannot tell, before anybody trusts a number; and the forms of a spec."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from wsformat.cli import scope as scopes
from wsformat.cli import target as targets
from wsformat.cli.failure import FINDINGS
from wsformat.cli.scope import Analysis, Capture, Force, Json

PROBLEM, NOTE = "problem", "note"

spec_app = typer.Typer(help="Check and convert role specs.", no_args_is_help=True)
Subject = Annotated[
    Path, typer.Argument(metavar="X", help="a bundle, or a role spec (JSON) before the first run", show_default=False)
]

# A row of each query becomes one finding: role, name and what else the text needs.
DECLARED = {
    "wait_without_pair": (
        PROBLEM,
        """SELECT d.capture_id, d.consumer_role AS role, d.consumer_event AS name, MIN(d.barrier) AS barrier,
                  STRING_AGG(DISTINCT d.producer_role || '.' || d.producer_event, ', '
                             ORDER BY d.producer_role || '.' || d.producer_event) AS producers
           FROM dependencies d WHERE NOT EXISTS (SELECT 1 FROM span_types s WHERE s.capture_id = d.capture_id
             AND s.role = d.consumer_role AND s.state = 'stall'
             AND d.consumer_event IN (s.end_event, s.span || '.end'))
           GROUP BY d.capture_id, d.consumer_role, d.consumer_event""",
        "an edge from {producers} ends at {role}.{name}, but no stall span ends there: stamp that wait on both sides",
    ),
    "half_declared": (
        PROBLEM,
        """SELECT capture_id, role, span AS name, state FROM span_types
           WHERE (begin_event = '') <> (end_event = '')""",
        "{state} span {role}.{name} names only one of its two events: name both",
    ),
    "hidden_wait": (
        NOTE,
        "SELECT capture_id, role, span AS name FROM span_types WHERE contains_wait AND state = 'active'",
        "active span {role}.{name} hides a wait: its active share includes waiting; stamp the wait on both sides",
    ),
    "wait_without_edge": (
        NOTE,
        """SELECT capture_id, role, span AS name, barrier FROM span_types s
           WHERE state = 'stall' AND NOT EXISTS (SELECT 1 FROM dependencies d WHERE d.capture_id = s.capture_id
             AND d.consumer_role = s.role AND d.consumer_event IN (s.end_event, s.span || '.end'))""",
        "no edge ends at wait {role}.{name}: its ticks stay unjudged; declare who signals it",
    ),
    "edge_without_declared_point": (
        PROBLEM,
        """WITH known AS (
             SELECT capture_id, role, event FROM event_types
             UNION SELECT capture_id, role, span || '.begin' FROM span_types
             UNION SELECT capture_id, role, span || '.end' FROM span_types
           ), ends AS (
             SELECT capture_id, producer_role AS role, producer_event AS name, 'begins' AS what FROM dependencies
             UNION SELECT capture_id, consumer_role, consumer_event, 'ends' FROM dependencies
           ) SELECT * FROM ends e WHERE NOT EXISTS (SELECT 1 FROM known k WHERE k.capture_id = e.capture_id
               AND k.role = e.role AND k.event = e.name)""",
        "an edge {what} at {role}.{name}, which is no declared point",
    ),
    "lag_unknown": (
        NOTE,
        """SELECT capture_id, consumer_role AS role, consumer_event AS name, producer_role, producer_event
           FROM dependencies WHERE producer_step = 0 OR consumer_step = 0""",
        "the edge {producer_role}.{producer_event} -> {role}.{name} has no known lag: its waits stay unjudged",
    ),
    "no_iteration_event": (
        NOTE,
        "SELECT capture_id, role, '' AS name FROM roles WHERE iteration_event = '' AND kind <> 'host'",
        "role {role} names no iteration_event: its cycles an iteration cannot be measured",
    ),
}
MEASURED = {
    "silent_role": (
        PROBLEM,
        """SELECT capture_id, role, '' AS name FROM roles r WHERE NOT EXISTS
           (SELECT 1 FROM written w WHERE w.capture_id = r.capture_id AND w.role = r.role)""",
        "role {role} wrote nothing: its stamps were not compiled in, or its index is wrong",
    ),
    "event_never_written": (
        PROBLEM,
        """SELECT capture_id, role, event AS name FROM event_types e
           WHERE EXISTS (SELECT 1 FROM written w WHERE w.capture_id = e.capture_id AND w.role = e.role)
             AND NOT EXISTS (SELECT 1 FROM written w WHERE w.capture_id = e.capture_id AND w.role = e.role
                             AND w.event = e.event)""",
        "event {role}.{name} is declared and was never written",
    ),
    "pair_never_complete": (
        PROBLEM,
        """SELECT s.capture_id, s.role, s.span AS name, s.state, s.begin_event, s.end_event FROM span_types s
           WHERE s.begin_event <> '' AND s.end_event <> ''
             AND EXISTS (SELECT 1 FROM written w WHERE w.capture_id = s.capture_id AND w.role = s.role)
             AND NOT EXISTS (SELECT 1 FROM paired p WHERE p.capture_id = s.capture_id AND p.role = s.role
                             AND p.span = s.span)""",
        "{state} span {role}.{name} ({begin_event} to {end_event}) was never stamped on both sides",
    ),
    "edge_without_point": (
        PROBLEM,
        """WITH ends AS (
             SELECT capture_id, producer_role AS role, producer_event AS name, 'begins' AS what FROM dependencies
             UNION SELECT capture_id, consumer_role, consumer_event, 'ends' FROM dependencies
           ) SELECT * FROM ends e WHERE NOT EXISTS (SELECT 1 FROM written w WHERE w.capture_id = e.capture_id
               AND w.role = e.role AND w.event = e.name)""",
        "an edge {what} at {role}.{name}, which was never written",
    ),
    "unpaired_points": (
        NOTE,
        """SELECT capture_id, role, span AS name, reason, COUNT(*) AS points FROM orphan
           GROUP BY capture_id, role, span, reason""",
        "span {role}.{name}: {points} times {reason}",
    ),
    "early_signal": (
        NOTE,
        """SELECT capture_id, role, event AS name, COUNT(*) AS points FROM early_signal
           GROUP BY capture_id, role, event""",
        "signal {role}.{name} came {points} times inside an active span of its own lane: consumers may start early",
    ),
}


@spec_app.command("check")
def check(subject: Subject, capture: Capture = "", json: Json = False) -> None:
    """Sync points without a stamp pair, waits hidden in active spans, edges without points, silent roles.

    Ends with 1 when there are problems; notes alone end with 0.
    """
    from wsformat.cli.output import print_json

    if subject.is_dir():
        with scopes.analysis(subject, capture=capture) as scope:
            found = findings(scope, measured=True)
    else:
        found = _of_spec(subject)
    problems = sum(1 for f in found if f["severity"] == PROBLEM)
    if json:
        print_json({"path": str(subject), "problems": problems, "notes": len(found) - problems, "findings": found})
    else:
        _print(subject, found, problems)
    if problems:
        raise typer.Exit(FINDINGS)


def findings(scope: Analysis, *, measured: bool) -> list[dict[str, Any]]:
    """Findings about the declarations and, when there is data, about what was stamped.

    Each has ``severity`` (problem, note), ``kind``, ``capture_id``, ``role``, ``name`` and ``text``.
    """
    checks = dict(DECLARED)
    if measured:
        checks |= MEASURED
        connection = scope.connection
        scope.need("point span")
        connection.execute(
            "CREATE OR REPLACE TEMP TABLE written AS SELECT capture_id, role, event FROM point GROUP BY ALL"
        )
        connection.execute(
            "CREATE OR REPLACE TEMP TABLE paired AS SELECT capture_id, role, span FROM span GROUP BY ALL"
        )
    found = []
    for kind, (severity, sql, text) in checks.items():
        where = scope.where("capture_id")
        for row in scope.rows(f"SELECT * FROM ({sql}) WHERE {where} ORDER BY capture_id, role, name"):
            place = {name: row[name] for name in ("capture_id", "role", "name")}
            found.append({"severity": severity, "kind": kind, **place, "text": text.format(**row)})
    return sorted(found, key=lambda f: f["severity"] != PROBLEM)


def _of_spec(path: Path) -> list[dict[str, Any]]:
    """Findings about a role spec alone, ours or in the skill's form, and what the latter cannot say."""
    from wsformat.bundle import Bundle
    from wsformat.manifest import read_json
    from wsformat.rolespec import parse
    from wsformat.skillspec import from_skill, is_skill_spec

    data = read_json(path)
    spec, unsaid = from_skill(data, str(path)) if is_skill_spec(data) else (parse(data, str(path)), [])
    bundle = Bundle.from_tables({"captures": [{"capture_id": "spec"}], **spec.table_rows("spec")})
    with bundle.duckdb(only=()) as connection:
        found = findings(Analysis(bundle, connection, ("spec",)), measured=False)
    place = {"severity": NOTE, "kind": "unsaid", "capture_id": "spec", "role": "", "name": ""}
    return [*found, *({**place, "text": text} for text in unsaid)]


SpecFile = Annotated[Path, typer.Argument(metavar="SPEC", help="a role spec, ours or in the skill's form")]
SpecOutput = Annotated[Path | None, targets.output("FILE", "write here instead of printing", targets.LEAVE_AWAY)]


@spec_app.command("convert")
def convert(spec: SpecFile, output: SpecOutput = None, force: Force = False) -> None:
    """Convert a role spec to the other form: the skill's to ours, ours to the skill's.

    What the form cannot say is listed on standard error.
    """
    import json as json_text

    from wsformat.cli.sink import write_text
    from wsformat.manifest import read_json
    from wsformat.outputs import check_file
    from wsformat.rolespec import parse
    from wsformat.skillspec import from_skill, is_skill_spec, to_skill

    if output is not None:
        check_file(output, force=force)
    data = read_json(spec)
    made: dict[str, Any]
    if is_skill_spec(data):
        ours, notes = from_skill(data, str(spec))
        made = ours.to_json()
    else:
        made, notes = to_skill(parse(data, str(spec)))
    text = json_text.dumps(made, indent=1, ensure_ascii=False) + "\n"
    if output is None:
        print(text, end="")
    else:
        write_text(output, text)
        print(output)
    for note in notes:
        print(f"note: {note}", file=sys.stderr)


def _print(subject: Path, found: list[dict[str, Any]], problems: int) -> None:
    from wsformat.cli.output import clean

    for finding in found:
        print(clean(f"{finding['severity']}: {finding['text']} ({finding['kind']})"))
    notes = len(found) - problems
    print(clean(f"{subject}: {scopes.count(problems, 'problem')}, {scopes.count(notes, 'note')}"))
