"""`wsformat lake`: thousands of captures in one place: add, list, query, take out, remove, compact, verify."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wsformat.cli import scope as scopes
from wsformat.cli import target as targets
from wsformat.cli.failure import FINDINGS
from wsformat.cli.query import Csv, OutFile, Sql
from wsformat.cli.scope import Force, Json
from wsformat.errors import BadRequest

if TYPE_CHECKING:
    from wsformat.lake import Lake

lake_app = typer.Typer(
    help="Keep thousands of captures: one directory a table, one SQL over all.", no_args_is_help=True
)
Place = Annotated[str, typer.Argument(metavar="LAKE", help="folder of the lake, or s3://BUCKET/NAME and the like")]
Option = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="KEY=VALUE", help="property of the store, as pyiceberg has it: s3.endpoint=URL"),
]
Where = Annotated[
    str, typer.Option("--where", metavar="SQL", help="only captures for which this holds: arch = 'sm_90a'")
]
Captures = Annotated[
    list[str], typer.Argument(metavar="CAPTURE", help="captures: id, how it begins, or label", show_default=False)
]
Live = Annotated[bool, typer.Option("--live", help="compute everything from the stamps, keep nothing")]


def properties(options: list[str] | None) -> dict[str, str]:
    """Properties from KEY=VALUE texts."""
    found = {}
    for text in options or ():
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise BadRequest(f"--option {text}: not KEY=VALUE")
        found[key] = value
    return found


def open_lake(place: str, options: list[str] | None) -> Lake:
    """Open a lake."""
    from wsformat.lake import Lake

    return Lake.open(place, properties=properties(options))


@lake_app.command()
def init(
    lake: Place,
    catalog: Annotated[
        str,
        typer.Option(
            "--catalog", metavar="URI", help="database or REST catalog (by default SQLite in the lake), or a name"
        ),
    ] = "",
    option: Option = None,
    json: Json = False,
) -> None:
    """Make an empty lake in a new folder or under a prefix of an object store.

    A catalog is `postgresql+psycopg2://HOST/DB`, `sqlite:////FILE`, `https://HOST` (REST), or the name of one in
    pyiceberg's own configuration. Secrets come from the environment and are not kept.
    """
    from wsformat.cli.output import print_json
    from wsformat.lake import Lake

    made = Lake.init(lake, catalog=catalog, properties=properties(option))
    if json:
        print_json({"lake": made.name, "catalog": catalog or "sqlite"})
    else:
        print(made.name)


@lake_app.command()
def add(
    lake: Place,
    bundles: Annotated[
        list[Path], typer.Argument(metavar="X.wsformat", help="bundles, or folders that hold some", show_default=False)
    ],
    batch: Annotated[int, typer.Option("--batch", metavar="N", help="most bundles that appear at once")] = 1000,
    processes: Annotated[
        int | None,
        typer.Option("--processes", metavar="N", help="that add at the same time; else one a core, 4 at most"),
    ] = None,
    summarise: Annotated[bool, typer.Option("--summarise", help="compute the summaries for the questions too")] = False,
    option: Option = None,
    json: Json = False,
) -> None:
    """Add the captures of bundles. The same content is added once; other content under the same id is refused."""
    from wsformat.cli.output import print_json
    from wsformat.cli.progress import progress

    if batch < 1:
        raise BadRequest(f"--batch {batch}: at least 1")
    if processes is not None and processes < 1:
        raise BadRequest(f"--processes {processes}: at least 1")
    found = find_bundles(bundles)
    opened = open_lake(lake, option)
    with progress("add") as advance:
        done = opened.add(found, progress=advance, batch=batch, processes=processes)
    if summarise:
        with progress("summarise") as advance:
            opened.summarise(progress=advance)
    if json:
        print_json(asdict(done))
        return
    text = f"{scopes.count(len(done.added), 'capture')} added"
    if done.added:
        text += f", {scopes.count(done.stamps, 'stamp')}, {size(done.bytes)} in {scopes.count(done.files, 'file')}"
    print(text)
    if done.present:
        print(
            f"{scopes.count(len(done.present), 'capture')} {'was' if len(done.present) == 1 else 'were'} there already"
        )


def size(count: int) -> str:
    """Bytes in words."""
    return f"{count / 1e3:,.1f} kB" if count < 1e6 else f"{count / 1e6:,.1f} MB"


def find_bundles(places: list[Path]) -> list[Path]:
    """Bundles that are named, and those below folders that are named, in order of their names."""
    found: list[Path] = []
    for place in places:
        if (place / "manifest.json").is_file() or not place.is_dir():
            found.append(place)
            continue
        inner = sorted(path.parent for path in place.rglob("manifest.json"))
        if not inner:
            raise BadRequest(f"{place}: no bundle, and none below it")
        found += inner
    return found


@lake_app.command("ls")
def list_(
    lake: Place,
    where: Where = "",
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="most captures; 0 all")] = 50,
    option: Option = None,
    json: Json = False,
) -> None:
    """List captures, the newest first."""
    from wsformat.cli.output import print_json, print_table, rows

    opened = open_lake(lake, option)
    columns = "capture_id, label, kind, kernel, version, arch, shape, dtype, created_unix_ns, completeness, lake_stamps"
    sql = f"SELECT {columns if not json else '* EXCLUDE (lake_removed)'}, COUNT(*) OVER () AS total FROM captures"
    sql += " ORDER BY created_unix_ns DESC, capture_id" + (f" LIMIT {limit}" if limit > 0 else "")
    found = rows(opened.sql(sql, where=where))
    total = found[0]["total"] if found else 0
    listed = [{name: value for name, value in row.items() if name != "total"} for row in found]
    if json:
        print_json(listed)
        return
    shown = [*columns.split(", ")]
    heads = {"created_unix_ns": "<created", "lake_stamps": "stamps"}
    for row in listed:
        row["created_unix_ns"] = date_of(row["created_unix_ns"])
    print_table([heads.get(name, "<" + name) for name in shown], [[row[name] for name in shown] for row in listed])
    if total > len(listed):
        print(f"{total - len(listed):,} more captures; --limit 0 lists all.", file=sys.stderr)


def date_of(unix_ns: int) -> str | None:
    """A moment as date and time in UTC; None unknown."""
    import time

    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(unix_ns // 10**9)) if unix_ns >= 0 else None


@lake_app.command()
def query(
    lake: Place,
    sql: Sql,
    where: Where = "",
    live: Live = False,
    option: Option = None,
    json: Json = False,
    csv: Csv = False,
    output: OutFile = None,
    force: Force = False,
) -> None:
    """Ask anything in SQL over all captures: the tables, the derived views, and the lake's own columns of captures."""
    from wsformat.cli.query import answer

    opened = open_lake(lake, option)
    text = sys.stdin.read() if sql == "-" else sql
    with opened.duckdb(text, where=where, summaries=not live) as connection:
        answer(connection, text, json=json, csv=csv, output=output, force=force)


@lake_app.command()
def get(
    lake: Place,
    captures: Captures,
    output: Annotated[Path, targets.output("X.wsformat", "the bundle", targets.NAME_A_BUNDLE, show_default=False)],
    experiment: Annotated[bool, typer.Option("--experiment", help="all captures of their experiments as well")] = False,
    option: Option = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Write captures as a bundle, checked against the digests that were taken when they were added."""
    from wsformat.cli.output import print_json
    from wsformat.writer import check_target

    check_target(output, force=force)
    made = open_lake(lake, option).get(captures, experiment=experiment).write(output, force=force)
    ids = made.table("captures").column("capture_id").to_pylist()
    if json:
        print_json({"path": str(output), "captures": ids, "tables": {name: made.rows(name) for name in made.data}})
    else:
        print(f"{output}: {scopes.count(len(ids), 'capture')}")


@lake_app.command()
def rm(lake: Place, captures: Captures, option: Option = None, json: Json = False) -> None:
    """Remove captures: hidden at once, their rows gone after the next `compact`."""
    from wsformat.cli.output import print_json

    gone = open_lake(lake, option).remove(captures)
    if json:
        print_json({"removed": gone})
    else:
        print("\n".join(gone))


@lake_app.command()
def compact(
    lake: Place,
    retention: Annotated[
        float, typer.Option("--retention", metavar="HOURS", help="how long readers and writers may take")
    ] = 24.0,
    option: Option = None,
    json: Json = False,
) -> None:
    """Join small files to large ones, drop removed rows, delete files that nobody has needed for the retention."""
    from wsformat.cli.output import print_json
    from wsformat.cli.progress import progress

    if not 0 <= retention < 1e6:
        # A negative one would delete what readers and writers are using, and undo nothing.
        raise BadRequest(f"--retention {retention}: hours, from 0", "The default is 24.")
    with progress("compact") as advance:
        done = open_lake(lake, option).compact(retention=retention * 3600, progress=advance)
    if json:
        print_json(asdict(done))
        return
    print(
        f"{scopes.count(done.joined, 'file')} joined to {done.written:,}, {scopes.count(done.dropped, 'row')} dropped"
    )
    print(f"{scopes.count(done.swept, 'file')} deleted, {size(done.swept_bytes)}")
    if done.kept:
        print(f"left for next time, others were changing them: {', '.join(done.kept)}")


@lake_app.command()
def summarise(lake: Place, option: Option = None, json: Json = False) -> None:
    """Compute the summaries that are missing; questions do so by themselves."""
    from wsformat.cli.output import print_json
    from wsformat.cli.progress import progress

    with progress("summarise") as advance:
        done = open_lake(lake, option).summarise(progress=advance)
    if json:
        print_json({"summarised": done})
    else:
        print(f"{scopes.count(done, 'capture')} summarised")


@lake_app.command()
def verify(
    lake: Place,
    quick: Annotated[bool, typer.Option("--quick", help="files and index only, not the content")] = False,
    option: Option = None,
    json: Json = False,
) -> None:
    """Check that every file is there and every capture holds what was added. Ends with 1 when something is wrong."""
    from wsformat.cli.output import clean, print_json
    from wsformat.cli.progress import progress

    with progress("verify") as advance:
        found = open_lake(lake, option).verify(content=not quick, progress=advance)
    if json:
        print_json(asdict(found))
    else:
        for problem in found.problems:
            print(clean(problem))
        print(
            f"{scopes.count(found.captures, 'capture')}, {scopes.count(found.checked, 'capture')} compared with the "
            f"digest of its addition; {scopes.count(found.files, 'file')}, {size(found.bytes)}"
        )
        print(
            f"{scopes.count(found.removed, 'tombstone')}; {scopes.count(found.unfinished, 'file')} unfinished; "
            f"{scopes.count(found.replaced, 'replaced file')}; {scopes.count(found.orphans, 'orphan')}; "
            f"{scopes.count(found.without_summaries, 'capture')} without summaries"
        )
        print(scopes.count(len(found.problems), "problem"))
    if found.problems:
        raise typer.Exit(FINDINGS)


@lake_app.command()
def files(
    lake: Place,
    table: Annotated[str, typer.Argument(metavar="[TABLE]", help="one table; by default all")] = "",
    where: Where = "",
    option: Option = None,
    json: Json = False,
) -> None:
    """The data files that count now, for engines that read Parquet by themselves.

    Rows of captures that were removed since the last `compact` are still in them: leave out what `removed` names.
    """
    from wsformat.cli.output import print_json
    from wsformat.lake.catalog import names
    from wsformat.lake.query import snapshot

    opened = open_lake(lake, option)
    every = [name for name in names(opened.catalog) if table in ("", name)]
    if not every:
        raise BadRequest(f"{opened.name}: no table {table!r}", f"Tables: {', '.join(names(opened.catalog)) or 'none'}.")
    found = snapshot(opened, every, where=where)
    listed = {name: found.index.files if name == "captures" else found.files.get(name, []) for name in every}
    if json:
        gone = [{"capture_id": capture, "lake_add": by} for capture, by in sorted(found.index.removed)]
        print_json({"tables": {n: [opened.store.path(f.uri) for f in listed[n]] for n in every}, "removed": gone})
    else:
        for held in listed.values():
            for file in held:
                print(opened.store.path(file.uri))


def question(
    lake: str, name: str, option: list[str] | None, *, where: str, live: bool, values: dict[str, Any] | None = None
) -> Any:
    """The answer to a question as an Arrow table."""
    from wsformat.cli.progress import progress
    from wsformat.lake.questions import ask

    with progress("summarise") as advance:
        return ask(open_lake(lake, option), name, values, where=where, live=live, progress=advance)
