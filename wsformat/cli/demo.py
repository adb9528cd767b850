"""`wsformat demo`: the whole loop on real stamp buffers that ship with the package."""

from __future__ import annotations

import json as json_text
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from wsformat.cli import scope as scopes
from wsformat.cli import target as targets
from wsformat.errors import InvalidBundle, MissingDependency, OutputExists, WsformatError
from wsformat.version import __version__

if TYPE_CHECKING:
    from wsformat.bundle import Bundle

Folder = Annotated[Path, targets.output("FOLDER", "where to write", targets.NAME_A_FOLDER)]

INDEX = "demo.json"
"""Lists what the demo wrote: only that may be replaced by the next run."""
MADE_BY = "wsformat demo"

TRIPS = {2048: 32, 4096: 64}
"""Iterations of the main loop at each K of the samples: K / 64."""
CASES = {
    "balanced": ("balanced_r0", "one", "global", "producer and consumers keep pace; every stamp is a global store"),
    "low_probe": (
        "lowprobe_r0",
        "one",
        "branchfree",
        "the same kernel; its stamps are predicated shared-memory stores",
    ),
    "slow_producer": ("slowproducer_r0", "slow", "global", "its producer spins before each TMA, without stamps there"),
}
"""Name of each bundle: stem of its buffer, stem and stamps of its further launches, and what it is."""
PICTURES = ("timeline.html", "timeline.png", "timeline.svg")
PAGE = "report.html"
BUDGET = "hopper_gemm"
"""What an iteration of this GEMM asks of the hardware; ships with the package."""
ZOOM = "20:28"
SQL = """SELECT role, barrier, iteration, ticks, blocked_ticks, verdict, producer_role, producer_event, late
FROM wait ORDER BY blocked_ticks DESC, lane, iteration LIMIT 5"""


def demo(output: Folder = Path("out")) -> None:
    """Import real H200 stamps that ship with the package, check them, and show everything that they tell.

    Writes bundles, JSON results, pictures and summary.md into a folder, and prints the summary. Running it again
    replaces what it wrote, nothing else.
    """
    from wsformat.cli import story
    from wsformat.cli.progress import progress
    from wsformat.cli.sink import write_text

    files = list(story.written({name: what for name, (*_, what) in CASES.items()}))
    own = _prepare(output, files)
    index = {"made_by": MADE_BY, "version": __version__, "files": files}
    # First of all, so that a demo that was interrupted can be run again.
    write_text(output / INDEX, json_text.dumps(index, indent=1) + "\n")
    with progress("demo") as advance:

        def tell(step: str, done: int) -> None:
            if advance is not None:
                advance(step, done, 7)

        tell("import", 0)
        with _samples() as folder:
            bundles = {name: _import(folder, output, name, force=f"{name}.wsformat" in own) for name in CASES}
        tell("validate", 1)
        reports = {name: _validated(bundle) for name, bundle in bundles.items()}
        tell("views", 2)
        found: dict[str, dict[str, Any]] = {}
        for name, bundle in bundles.items():
            with scopes.analysis(_place(bundle), capture=CASES[name][0], materialise=("wait", "role_state")) as scope:
                found[name] = story.results(scope)
                if name == "balanced":
                    found[name]["query"] = scope.rows(SQL)
        tell("reconcile", 3)
        budgeted = {name: _with_budget(bundle) for name, bundle in bundles.items()}
        verdicts = {name: _verdict(bundle) for name, bundle in budgeted.items()}
        tell("pictures", 4)
        missing = _draw(bundles["balanced"], output)
        tell("report", 5)
        _report(budgeted["balanced"], output / PAGE, pictures=not missing)
        tell("summary", 6)
    for name in (*story.RESULTS, "query"):
        write_text(output / f"{name}.json", json_text.dumps(found["balanced"][name], indent=1) + "\n")
    cases = {name: what for name, (*_, what) in CASES.items()}
    short = story.summary(cases, reports, found, verdicts)
    write_text(output / "summary.md", short + story.details(output, cases, found["balanced"]["query"], SQL, missing))
    print(short)
    print(f"Written to {output}: {', '.join(name for name in files if not missing or name not in PICTURES)}.")
    if missing:
        print(f"No pictures: {missing}")
    print(f"Go on with: wsformat states {output / 'balanced'}.wsformat, wsformat --help")


def _prepare(output: Path, files: list[str]) -> list[str]:
    """Make the folder, and give the names in it that an earlier demo wrote.

    Raises:
        OutputExists: a name of ours is taken by something that the demo did not write.
    """
    if output.exists() and not output.is_dir():
        raise OutputExists(f"{output}: is there already and is no folder; nothing was written")
    if (output / "manifest.json").exists() or (output / "lake.json").exists():
        # More files in it would make a bundle that conforms one that does not.
        raise OutputExists(f"{output}: is a bundle or a lake; nothing was written", "Choose another folder with -o.")
    own: list[str] = []
    try:
        index = json_text.loads((output / INDEX).read_text(encoding="utf-8"))
        if isinstance(index, dict) and index.get("made_by") == MADE_BY and isinstance(index.get("files"), list):
            own = [INDEX, *map(str, index["files"])]
    except (OSError, ValueError):
        own = []
    foreign = [name for name in (*files, INDEX) if name not in own and (output / name).exists()]
    if foreign:
        raise OutputExists(
            f"{output / foreign[0]}: is there already and not from the demo; nothing was written",
            "Choose another folder with -o.",
        )
    output.mkdir(parents=True, exist_ok=True)
    return own


@contextmanager
def _samples() -> Iterator[Path]:
    from importlib.resources import as_file, files

    with as_file(files("wsformat.samples")) as folder:
        yield folder


def _import(folder: Path, output: Path, name: str, *, force: bool) -> Bundle:
    from wsformat.converters.registry import import_files

    stem, launches, stamped, _ = CASES[name]
    options = {
        "spec": folder / "gemm_roles.json",
        "meta": [folder / f"{stem}.meta"],
        "trip_count": TRIPS[4096],
        "clean": [(folder / f"{launches}_{k}_clean.metas", trips) for k, trips in TRIPS.items()],
        "lifetimes": [(folder / f"{launches}_{k}_{stamped}.metas", trips) for k, trips in TRIPS.items()],
        # One spec serves all: the low-probe kernel was built without the stamps of the epilogue.
        "allow_unwritten": True,
        "label": stem,
        "shape": "M=N=128 K=4096",
    }
    bundle: Bundle = import_files([folder / f"{stem}.i32"], options)
    return bundle.write(output / f"{name}.wsformat", force=force)


def _place(bundle: Bundle) -> Path:
    if bundle.path is None:
        raise WsformatError("the demo's bundle was not written")
    return bundle.path


def _validated(bundle: Bundle) -> Any:
    from wsformat.validate import validate

    report = validate(_place(bundle))
    if not report.ok:
        raise InvalidBundle(
            f"{bundle.path}: the demo's own bundle breaks the standard: {report.text()}", report.problems
        )
    return report


def _with_budget(bundle: Bundle) -> Bundle:
    """The bundle with the prediction of its GEMM in the experiment of its stamped capture, in memory."""
    from wsformat.budget import load
    from wsformat.prediction import predict
    from wsformat.prediction_store import joined

    own = next(row["capture_id"] for row in bundle.table("captures").to_pylist() if row["kind"] == "stamped")
    return joined(bundle, [predict(load(BUDGET))], own)


def _verdict(bundle: Bundle) -> tuple[str, str]:
    """Verdict of the reconciliation, and the sentence that explains it."""
    from wsformat.viewers.reconcile import reconcile

    made = reconcile(bundle)
    return made.verdict.verdict, made.verdict.text


def _report(bundle: Bundle, target: Path, *, pictures: bool) -> None:
    from wsformat.cli.sink import write_text
    from wsformat.viewers.report import report
    from wsformat.viewers.report_page import page

    made = report(bundle, budget=BUDGET, name="balanced.wsformat", pictures=pictures)
    write_text(target, page(made))


def _draw(bundle: Bundle, output: Path) -> str:
    """Draw the pictures; says what is missing when the packages for it are not installed."""
    from wsformat.viewers.timeline import timeline

    try:
        made = timeline(bundle, launch=0, iterations=ZOOM)
    except MissingDependency as error:
        return f"{error.message}. {error.hint}"
    for name in PICTURES:
        made.write(output / name, force=True)
    return ""
