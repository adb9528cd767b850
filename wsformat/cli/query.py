"""`wsformat query` and `wsformat info`: SQL over everything, and what a bundle holds."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wsformat.cli import scope as scopes
from wsformat.cli import target as targets
from wsformat.cli.interrupt import interruptible
from wsformat.cli.scope import BundlePath, Force, Json
from wsformat.errors import BadRequest

if TYPE_CHECKING:
    import duckdb

Sql = Annotated[str, typer.Argument(metavar="SQL", help="one SELECT in DuckDB's SQL; - reads it from standard input")]
Csv = Annotated[bool, typer.Option("--csv", help="print CSV")]
OutFile = Annotated[
    Path | None,
    targets.output("FILE", "write to a file: .csv, .json, .arrow or .parquet", targets.ROWS),
]
MOST_ROWS = 1000


def query(
    bundle: BundlePath,
    sql: Sql,
    json: Json = False,
    csv: Csv = False,
    output: OutFile = None,
    force: Force = False,
) -> None:
    """Ask anything in SQL: every table and every derived view is there by name."""
    import sys

    if re.fullmatch(r"--?[a-z][a-z-]*(=\S*)?", sql):
        # Unknown options are let through, for SQL that begins with a comment; one word is none.
        raise BadRequest(f"no such option: {sql}", "Options: `wsformat query --help`.")
    text = sys.stdin.read() if sql == "-" else sql
    opened = scopes.open_bundle(bundle)
    from wsformat.derive import mentioned

    with opened.duckdb(only=mentioned(text)) as connection:
        answer(connection, text, json=json, csv=csv, output=output, force=force)


def answer(
    connection: duckdb.DuckDBPyConnection, text: str, *, json: bool, csv: bool, output: Path | None, force: bool
) -> None:
    """Run one SELECT and print its rows, or write them to a file.

    Raises:
        BadRequest: the query or the options are wrong.
    """
    import sys

    from wsformat.cli import output as out
    from wsformat.cli import sink
    from wsformat.derive import run

    if json and csv:
        raise BadRequest("--json and --csv exclude each other")
    with interruptible(connection):
        _check_statement(connection, text)
        if output is not None:
            name = "json" if json else "csv" if csv else ""
            written = sink.write_rows(sink.stream(connection, text), output, name=name, force=force)
            print(f"{output}: {scopes.count(written, 'row')}", file=sys.stderr)
            return
        table = run(connection, text)
        table = table.rename_columns(sink.distinct(table.column_names))
    if json:
        out.write_json_rows(row for batch in table.to_batches() for row in batch.to_pylist())
    elif csv:
        sink.print_csv(table)
    else:
        numeric = [sink.is_number(f.type) for f in table.schema]
        columns = [name if right else "<" + name for name, right in zip(table.column_names, numeric, strict=True)]
        shown = table.slice(0, MOST_ROWS).to_pydict()
        out.print_table(columns, zip(*([sink.exact(v) for v in column] for column in shown.values()), strict=True))
        if table.num_rows > MOST_ROWS:
            print(
                f"{table.num_rows - MOST_ROWS:,} more rows are not shown; --csv, --json or -o FILE gives all.",
                file=sys.stderr,
            )


def _check_statement(connection: duckdb.DuckDBPyConnection, text: str) -> None:
    """Refuse nothing at all, several statements, of which only the last one's rows would be seen, and what writes.

    Raises:
        BadRequest
    """
    import duckdb

    try:
        statements = connection.extract_statements(text)
    except duckdb.Error:
        return  # running it gives the better message
    found = len(statements)
    if found != 1:
        what = f"{found} statements, one is expected" if found else "no statement"
        raise BadRequest(f"SQL: {what}", 'Such as "SELECT role, SUM(stall) AS stall FROM role_state GROUP BY role".')
    # PIVOT counts as several; COPY, ATTACH and the like would write files that nobody named with -o.
    if statements[0].type not in (duckdb.StatementType.SELECT, duckdb.StatementType.MULTI):
        raise BadRequest(
            f"SQL: a statement of kind {statements[0].type.name}, only SELECT is run",
            "Write the rows of a SELECT to a file with -o FILE.",
        )


def info(bundle: BundlePath, json: Json = False) -> None:
    """What a bundle holds: tables, captures with their completeness, launches, clocks, losses, sources."""
    from wsformat.cli.output import print_json

    with scopes.analysis(bundle) as scope:
        found = bundle_info(scope)
        if json:
            print_json(found)
        else:
            _print_info(found)


def bundle_info(scope: scopes.Analysis) -> dict[str, Any]:
    """Everything that `info` says, as JSON values."""
    from wsformat.cli.output import plain
    from wsformat.derive import views

    bundle = scope.bundle
    captures = scope.rows("SELECT * FROM captures ORDER BY capture_id")
    parts = {
        "launches": """
            SELECT capture_id, kernel, kind, tool, trip_count, slots, status, grid_x, grid_y, grid_z, COUNT(*) AS count,
                   MIN(launch) AS first_launch FROM launches GROUP BY ALL ORDER BY capture_id, first_launch""",
        "lanes": """
            SELECT capture_id, role, kind, completeness, COUNT(*) AS lanes, COUNT(DISTINCT cta) AS ctas,
                   SUM(records_kept) FILTER (records_kept >= 0) AS records_kept,
                   SUM(records_lost) FILTER (records_lost >= 0) AS records_lost
            FROM lanes GROUP BY ALL ORDER BY capture_id, role, kind, completeness""",
        "clocks": """
            SELECT k.capture_id, k.scope, k.unit, k.step_ticks, k.width_bits, k.assumption, COUNT(*) AS clocks,
                   SUM(k.wraps) FILTER (k.wraps >= 0) AS wraps, COALESCE(SUM(a.anchors), 0) AS anchors
            FROM clocks k LEFT JOIN (SELECT capture_id, clock, COUNT(*) AS anchors FROM clock_anchors GROUP BY ALL) a
              ON a.capture_id = k.capture_id AND a.clock = k.clock GROUP BY ALL ORDER BY ALL""",
        "accounting": """
            SELECT capture_id, name[8:] AS name, type, value FROM attributes
            WHERE table_name = 'captures' AND name LIKE 'import.%' ORDER BY capture_id, name""",
    }
    answers = {name: scope.rows(sql) for name, sql in parts.items()}
    for capture in captures:
        for name, answer in answers.items():
            own = [{k: v for k, v in row.items() if k != "capture_id"} for row in answer if _of(row, capture)]
            capture[name] = _accounting(own) if name == "accounting" else own
    manifest = bundle.manifest
    return {
        "path": str(bundle.path),
        "version": manifest.version,
        "writer": plain(manifest.writer),
        "tables": {name: bundle.rows(name) for name in bundle.data},
        "views": list(views()),
        "captures": captures,
        "sources": plain(list(manifest.sources)),
        "extensions": plain(list(manifest.extensions)),
    }


def _of(row: dict[str, Any], capture: dict[str, Any]) -> bool:
    return bool(row["capture_id"] == capture["capture_id"])


def _accounting(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {row["name"]: int(row["value"]) if row["type"] == "int" else row["value"] for row in rows}


def _print_info(found: dict[str, Any]) -> None:
    from wsformat.cli.output import clean, number, print_table

    writer = " ".join(str(found["writer"].get(key, "")) for key in ("name", "version")).strip()
    print(clean(f"{found['path']}: format version {found['version']}" + (f", written by {writer}" if writer else "")))
    print()
    print_table(["<table", "rows"], found["tables"].items())
    print()
    print(f"views, for `wsformat query`: {', '.join(found['views'])}")
    for capture in found["captures"]:
        print()
        title = capture["label"] or capture["capture_id"]
        print(clean(f"capture {title}: completeness {capture['completeness']}"))
        skipped = {"label", "completeness", "launches", "lanes", "clocks", "accounting"}
        for name, value in capture.items():
            if name not in skipped and value not in (None, "", -1):
                print(clean(f"  {name}: {value}"))
        for launch in capture["launches"]:
            grid = "x".join(str(launch[f"grid_{axis}"]) for axis in "xyz")
            what = f"{scopes.count(launch['count'], 'launch', 'launches')} {launch['kind']}, tool {launch['tool']}"
            what += f", kernel {launch['kernel']}" if launch["kernel"] not in ("", capture["kernel"]) else ""
            what += f", trip count {_known(launch['trip_count'])}, slots {_known(launch['slots'])}"
            print(clean(f"  {what}" + (f", grid {grid}" if launch["grid_x"] >= 0 else "")))
        for lane in capture["lanes"]:
            what = f"role {lane['role']}" if lane["role"] else f"no role ({lane['kind']})"
            print(
                clean(
                    f"  {what}: {scopes.count(lane['lanes'], 'lane')} in {scopes.count(lane['ctas'], 'CTA')}, "
                    f"{lane['completeness']}, records kept {number(lane['records_kept'])}, "
                    f"lost {number(lane['records_lost'])}"
                )
            )
        for clock in capture["clocks"]:
            what = f"{scopes.count(clock['clocks'], 'clock')} of scope {clock['scope']} in unit {clock['unit']}"
            what += f", step {_known(clock['step_ticks'])}, {number(clock['anchors'])} anchors"
            what += f", wraps undone {number(clock['wraps'])}"
            print(clean(f"  {what}" + (f", assumed {clock['assumption']}" if clock["assumption"] else "")))
        for name, value in capture["accounting"].items():
            print(clean(f"  import: {name.replace('_', ' ')}: {number(value) if isinstance(value, int) else value}"))
    if found["sources"]:
        print()
    for source in found["sources"]:
        how = f"{source.get('converter')} ({source.get('dialect')}), detected by {source.get('detected_by')}"
        print(clean(f"source {source.get('name')}: {how}, sha256 {source.get('sha256')}"))


def _known(value: int) -> str:
    return "unknown" if value < 0 else f"{value:,}"
