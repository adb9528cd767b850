"""`wsformat import`, `wsformat export` and `wsformat formats`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wsformat.cli import scope as scopes
from wsformat.cli import target as targets
from wsformat.cli.interrupt import interruptible
from wsformat.cli.scope import BundlePath, Force, Json
from wsformat.errors import BadRequest, WsformatError

if TYPE_CHECKING:
    from types import ModuleType

    from wsformat.bundle import Bundle

Files = Annotated[list[Path], typer.Argument(metavar="FILE", help="foreign files, all of one format")]
Output = Annotated[
    Path | None, targets.output("X.wsformat", "the bundle; by default named after FILE", targets.NAME_A_BUNDLE)
]
Format = Annotated[str, typer.Option("--format", metavar="NAME", help="do not guess the format: `wsformat formats`")]
Option = Annotated[
    list[str] | None,
    typer.Option(
        "--option", "-O", metavar="NAME=VALUE", help="any option of the converter: `wsformat formats NAME` lists them"
    ),
]
Spec = Annotated[
    Path | None, typer.Option("--spec", metavar="FILE", help="role spec: what roles, events, waits and edges there are")
]
Layout = Annotated[str, typer.Option("--layout", metavar="R,E,I", help="roles, events, iterations of a raw buffer")]
Meta = Annotated[
    list[Path] | None,
    typer.Option("--meta", metavar="FILE", help="40-byte records, one a CTA: clocks and SM; once for each input file"),
]
Trips = Annotated[int | None, typer.Option("--trip-count", metavar="N", help="iterations of the main loop in one CTA")]
Unwritten = Annotated[int | None, typer.Option("--unwritten", metavar="V", help="slot value that means: not written")]
Clean = Annotated[
    list[str] | None,
    typer.Option(
        "--clean", metavar="FILE:TRIPS", help="launches without stamps by their start and end records; repeatable"
    ),
]
Lifetimes = Annotated[
    list[str] | None,
    typer.Option(
        "--lifetimes", metavar="FILE:TRIPS", help="more stamped launches by their start and end records; repeatable"
    ),
]
AllowUnwritten = Annotated[
    bool, typer.Option("--allow-unwritten", help="accept a spec that names events which were never stamped")
]
Label = Annotated[str, typer.Option("--label", metavar="TEXT", help="short name of the capture, for people")]
Experiment = Annotated[
    str, typer.Option("--experiment", metavar="NAME", help="captures that belong together have one name")
]
FormatName = Annotated[str, typer.Argument(metavar="[NAME]", help="one format, with all of its options")]
PROGRESS = "progress"
"""Option of a converter that takes a function instead of text."""
TableName = Annotated[str, typer.Option("--table", metavar="NAME", help="one table of the bundle")]
ViewName = Annotated[str, typer.Option("--view", metavar="NAME", help="one derived view")]


def import_(
    files: Files,
    output: Output = None,
    format_: Format = "",
    spec: Spec = None,
    layout: Layout = "",
    meta: Meta = None,
    trip_count: Trips = None,
    unwritten: Unwritten = None,
    clean: Clean = None,
    lifetimes: Lifetimes = None,
    allow_unwritten: AllowUnwritten = False,
    label: Label = "",
    experiment: Experiment = "",
    option: Option = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Read foreign files into a bundle, and say what was lost or had to be assumed."""
    from wsformat.cli.output import print_json
    from wsformat.cli.progress import progress
    from wsformat.converters.registry import import_files
    from wsformat.writer import check_target

    target = output or Path(files[0].name).with_suffix(".wsformat")
    check_target(target, force=force)
    given = {
        "spec": spec,
        "layout": layout,
        "meta": meta or [],
        "trip_count": trip_count,
        "unwritten": unwritten,
        "clean": [with_trips("--clean", item) for item in clean or ()],
        "lifetimes": [with_trips("--lifetimes", item) for item in lifetimes or ()],
        "allow_unwritten": allow_unwritten,
        "label": label,
        "experiment": experiment,
    }
    # Only what was asked for: a converter without that option says so.
    options = named_options(option) | {
        n: v for n, v in given.items() if v is not None and v is not False and v not in ("", [])
    }
    with progress("import") as advance:
        read = import_files(files, options, format_name=format_, progress=advance)
        bundle = read.write(target, force=force, progress=advance)
    found = imported(bundle)
    if json:
        print_json(found)
    else:
        # People go on with the path that they typed; programs get the whole one.
        _print_imported({**found, "path": str(target)}, [path.name for path in files])


def with_trips(option: str, item: str) -> tuple[Path, int]:
    """A file and a trip count from FILE:TRIPS (or FILE=TRIPS).

    Raises:
        BadRequest: no trip count.
    """
    path, colon, trips = item.rpartition(":" if ":" in item else "=")
    if not colon or not path or not trips.isdecimal():
        raise BadRequest(f"{option} {item!r}: no trip count", "Give FILE:TRIPS, such as clean.metas:64.")
    return Path(path), int(trips)


def named_options(items: list[str] | None) -> dict[str, Any]:
    """Options given as NAME=VALUE; one that is given several times becomes a list.

    Raises:
        BadRequest: no '=' in one of them.
    """
    result: dict[str, Any] = {}
    for item in items or ():
        name, equals, value = item.partition("=")
        key = name.strip().replace("-", "_")
        if not equals or not key:
            raise BadRequest(f"-O {item!r} is not NAME=VALUE", "Such as -O dtype=bf16.")
        known = result.get(key)
        result[key] = value if known is None else [*(known if isinstance(known, list) else [known]), value]
    return result


def imported(bundle: Bundle) -> dict[str, Any]:
    """What an import made: rows of each table, each capture with its completeness and accounting, and the notes."""
    from wsformat.cli.query import bundle_info

    with scopes.analysis(bundle.path or Path()) as scope:
        found = bundle_info(scope)
        notes = scope.rows(
            "SELECT capture_id, subject, text FROM findings WHERE kind = 'message' ORDER BY capture_id, subject, text"
        )
    return {**{key: found[key] for key in ("path", "tables", "captures", "sources")}, "notes": notes}


def _print_imported(found: dict[str, Any], files: list[str]) -> None:
    from wsformat.cli.output import clean, number

    source = found["sources"][0] if found["sources"] else {}
    how = f"as {source.get('converter')} ({source.get('dialect')}, {source.get('detected_by')})" if source else ""
    shown = ", ".join(files[:3]) + (f" and {len(files) - 3} more" if len(files) > 3 else "")
    print(clean(f"imported {shown} {how} -> {found['path']}"))
    print("rows: " + ", ".join(f"{name} {number(rows)}" for name, rows in found["tables"].items()))
    for capture in found["captures"]:
        print(clean(f"capture {capture['label'] or capture['capture_id']}: completeness {capture['completeness']}"))
        for name, value in capture["accounting"].items():
            shown = number(value) if isinstance(value, int) else value
            print(clean(f"  {name.replace('_', ' ')}: {shown}"))
    for note in found["notes"]:
        print(clean(f"note on {note['subject']}: {note['text']}"))
    path = found["path"]
    lines = [f"wsformat states {path}", f"wsformat waits {path}", f"wsformat view {path} -o timeline.html"]
    if not found["tables"].get("lanes"):
        table = next((name for name in ("metrics", "predictions") if found["tables"].get(name)), "captures")
        lines = [f"wsformat info {path}", f'wsformat query {path} "SELECT * FROM {table} LIMIT 20"']
    print("next: " + "\n      ".join(lines))


def export(
    bundle: BundlePath,
    out: Annotated[
        Path | None,
        typer.Argument(
            metavar="OUT",
            help="file to write; its name tells the format",
            callback=targets.no_dash("OUT", targets.ROWS_TO_A_PIPE),
        ),
    ] = None,
    output: Annotated[
        Path | None, targets.output("OUT", "the same, as in every other command", targets.ROWS_TO_A_PIPE)
    ] = None,
    format_: Format = "",
    table: TableName = "",
    view: ViewName = "",
    option: Option = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Write a bundle in another tool's format, or one table or view as CSV, JSON, Arrow IPC or Parquet."""
    from wsformat.cli import sink
    from wsformat.cli.output import print_json
    from wsformat.cli.progress import progress
    from wsformat.outputs import check_file

    if (out is None) == (output is None):
        raise BadRequest(
            "no file to write is named" if out is None else "OUT and -o name the file twice",
            "Such as: wsformat export X.wsformat -o trace.pftrace.",
        )
    out = out or output
    assert out is not None
    opened = scopes.open_bundle(bundle)
    if not table and not view:
        report = _export_foreign(opened, out, format_, named_options(option), force)
        if json:
            print_json({"path": str(out), **report})
        else:
            print(out)
            for name, value in report.items():
                if value != {}:
                    print(f"  {name.replace('_', ' ')}: {_told(value)}")
        return
    if table and view:
        raise BadRequest("--table and --view exclude each other")
    if option:
        raise BadRequest("-O is for other tools' formats; tables and views take no options")
    sink.format_of(out, format_, option="--format")
    check_file(out, force=force)
    from wsformat.derive import views
    from wsformat.tables import tables

    known = [*tables(), *[name for name in opened.data if name not in tables()]] if table else list(views())
    name = table or view
    if name not in known:
        raise BadRequest(f"no {'table' if table else 'view'} {name!r}", f"There are: {', '.join(known)}.")
    with (
        opened.duckdb(only=[view] if view else []) as connection,
        interruptible(connection),
        progress("export") as advance,
    ):
        quoted = '"' + name.replace('"', '""') + '"'
        reader = sink.stream(connection, f"SELECT * FROM {quoted}")
        written = sink.write_rows(reader, out, name=format_, force=force, progress=advance)
    if json:
        print_json({"path": str(out), "rows": written})
    else:
        print(f"{out}: {scopes.count(written, 'row')}")


def _told(value: Any) -> str:
    from wsformat.cli.output import number

    if isinstance(value, dict):
        return ", ".join(f"{name} {_told(part)}" for name, part in value.items())
    return number(value) if isinstance(value, int) else str(value)


def _export_foreign(bundle: Bundle, out: Path, name: str, options: dict[str, Any], force: bool) -> dict[str, Any]:
    """Write the whole bundle with a converter; gives what the converter reports."""
    from wsformat.cli.progress import progress
    from wsformat.converters import registry
    from wsformat.outputs import check_file

    if not name:
        fits = {w: [e for e in registry.converter(w).EXTENSIONS if out.name.endswith(e)] for w in registry.WRITERS}
        longest = max((len(e) for found in fits.values() for e in found), default=0)
        best = [w for w, found in fits.items() if longest and any(len(e) == longest for e in found)]
        if len(best) != 1:
            what = f"could be {' or '.join(best)}" if best else "the file name tells no format"
            raise BadRequest(
                f"{out}: {what}",
                "Name a table or view (--table NAME, --view NAME) or a --format: "
                f"{', '.join(registry.WRITERS) or 'no writer is installed'}.",
            )
        name = best[0]
    if name not in registry.WRITERS:
        raise BadRequest(
            f"{name} cannot be exported as a whole", f"Formats that can: {', '.join(registry.WRITERS) or 'none'}."
        )
    module = registry.converter(name)
    known = settable(module)
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise BadRequest(f"{name} has no option {', '.join(unknown)}", f"Options: {', '.join(known) or 'none'}.")
    check_file(out, force=force)
    with progress("export") as advance:
        watched = {PROGRESS: advance} if advance is not None and PROGRESS in module.OPTIONS else {}
        try:
            return module.write(bundle, out, {**options, **watched}) or {}
        except OSError as error:
            raise WsformatError(f"{out}: cannot be written: {error.strerror or error}") from error


def settable(module: ModuleType) -> dict[str, str]:
    """Options of a converter that can be given as text."""
    return {name: meaning for name, meaning in module.OPTIONS.items() if name != PROGRESS}


def formats(name: FormatName = "", json: Json = False) -> None:
    """Every format that can be read or written; with a NAME its options, and what is lost or assumed."""
    from wsformat.cli.output import print_json

    found = known_formats()
    if name:
        known = [entry["name"] for entry in found]
        if name not in known:
            raise BadRequest(f"no format {name!r}", f"Formats: {', '.join(known)}.")
        found = [entry for entry in found if entry["name"] == name]
    if json:
        print_json(found)
        return
    width = max(len(entry["name"]) for entry in found)
    for entry in found:
        print(f"{entry['name']:{width}}  {entry['direction']:10}  {entry['title']}; {' '.join(entry['extensions'])}")
        if name:
            for option, meaning in entry["options"].items():
                print(f"  -O {option}=…  {meaning}")
            for loss in entry["losses"]:
                print(f"  lost or assumed: {loss}")
    if not name:
        print("options and losses of one: wsformat formats NAME")


def known_formats() -> list[dict[str, Any]]:
    """One object a format: name, direction (in, out, in and out), title, extensions, options, losses."""
    from wsformat.cli.sink import FORMATS
    from wsformat.converters import registry

    found = []
    for name in dict.fromkeys(registry.READERS + registry.WRITERS):
        module = registry.converter(name)
        ways = [way for way, there in (("in", registry.READERS), ("out", registry.WRITERS)) if name in there]
        found.append(
            {
                "name": name,
                "direction": " and ".join(ways),
                "title": module.TITLE,
                "extensions": list(module.EXTENSIONS),
                "options": settable(module),
                "losses": list(module.LOSSES),
            }
        )
    titles = {"csv": "comma-separated text", "json": "JSON, a list of objects"}
    titles |= {"arrow": "Arrow IPC file", "parquet": "Apache Parquet"}
    for name, title in titles.items():
        extensions = [extension for extension, format_name in FORMATS.items() if format_name == name]
        losses = ["NaN and infinities become null."] if name == "json" else []
        found.append(
            {
                "name": name,
                "direction": "out",
                "title": f"{title}; one table or view (--table, --view)",
                "extensions": extensions,
                "options": {},
                "losses": losses,
            }
        )
    return found
