"""`wsformat reconcile`: the prediction against the measurement."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wsformat.cli import target as targets
from wsformat.cli.scope import Capture, Force, Json
from wsformat.errors import BadRequest

if TYPE_CHECKING:
    from wsformat.bundle import Bundle
    from wsformat.expressions import Symbol
    from wsformat.viewers.reconcile import Report

Bundles = Annotated[
    list[Path], typer.Argument(metavar="X.wsformat", help="bundles; several are configurations to compare")
]
Budgets = Annotated[
    list[str] | None,
    typer.Option(
        "--budget", metavar="BUDGET", help="predict with this budget first; once for all, or once for each bundle"
    ),
]
Setting = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="another value for a symbol of --budget; V1,V2,… is one for each bundle"
    ),
]
PredictionName = Annotated[
    str, typer.Option("--prediction", metavar="NAME", help="which prediction: its label, or how its id begins")
]
Output = Annotated[Path | None, targets.output("FILE", "the report as Markdown", targets.LEAVE_AWAY)]
Store = Annotated[
    bool, typer.Option("--store", help="keep the conclusions in the bundle, as findings with their evidence")
]
Lessons = Annotated[
    Path | None, typer.Option("--lessons", metavar="FILE", help="append what the model missed, for `predict --lessons`")
]
Tolerance = Annotated[
    float, typer.Option("--tolerance", metavar="SHARE", help="over the budget by so much still agrees")
]


def reconcile(
    bundles: Bundles,
    budget: Budgets = None,
    settings: Setting = None,
    capture: Capture = "",
    prediction: PredictionName = "",
    output: Output = None,
    store: Store = False,
    lessons: Lessons = None,
    tolerance: Tolerance = 0.05,
    force: Force = False,
    json: Json = False,
) -> None:
    """Does the budget explain the kernel, and if not, is the model incomplete or does the kernel leave performance?

    In this order: is the measurement sound, do direction and ranking agree, the magnitudes, the gap term by term, the
    verdict. Several bundles are configurations (bf16, fp8, …): does idle move the predicted way? `--force` compares
    configurations that were not stamped alike, and replaces an output.
    """
    import datetime

    from wsformat.cli.output import print_json
    from wsformat.cli.sink import write_text
    from wsformat.lessons import append
    from wsformat.outputs import check_file
    from wsformat.viewers.reconcile import reconcile as run
    from wsformat.viewers.reconcile import stored
    from wsformat.viewers.reconcile_across import across

    if not 0 <= tolerance < 1:
        raise BadRequest(f"--tolerance {tolerance}: a share from 0 to below 1", "0.05 is 5 %.")
    if budget and len(budget) not in (1, len(bundles)):
        raise BadRequest(f"{len(budget)} budgets for {len(bundles)} bundles", "Give one for all, or one for each.")
    if settings and not budget:
        raise BadRequest("--set without --budget", "A stored prediction is reconciled as it is.")
    if output:
        check_file(output, force=force)
    opened = [
        _opened(path, (budget or [""])[n if len(budget or []) > 1 else 0], each, capture)
        for n, (path, each) in enumerate(zip(bundles, _settings(settings, len(bundles)), strict=True))
    ]
    reports = [_named(run(b, capture=capture, prediction=prediction, tolerance=tolerance), b, p)
               for b, p in zip(opened, bundles, strict=True)]  # fmt: skip
    together = across(reports, force=force, tolerance=tolerance) if len(reports) > 1 else None
    final = list(together.reports) if together else reports
    text = together.markdown() if together else final[0].markdown()
    if store:
        for path, bundle, report in zip(bundles, opened, final, strict=True):
            stored(bundle, [report]).write(path, force=True)
    if output:
        write_text(output, text)
    added = 0
    if lessons:
        today = datetime.date.today().isoformat()
        added = append(lessons, [lesson for report in final for lesson in report.lessons(today)])
    if json:
        print_json(together.to_json() if together else final[0].to_json())
        return
    print(text, end="")
    if lessons:
        print(f"\n{added} lesson{'' if added == 1 else 's'} added to {lessons}.")


def _settings(items: list[str] | None, count: int) -> list[dict[str, Symbol]]:
    """Settings of each bundle, from NAME=VALUE for all or NAME=V1,V2,… for each.

    Raises:
        BadRequest: another number of values than bundles.
    """
    from wsformat.cli.predict import lists

    found: list[dict[str, Symbol]] = [{} for _ in range(count)]
    for name, values in lists("--set", items, repeats=True).items():
        if len(values) not in (1, count):
            raise BadRequest(f"--set {name}: {len(values)} values for {count} bundles", "Give one, or one for each.")
        for n, each in enumerate(found):
            each[name] = values[n if len(values) > 1 else 0]
    return found


def _opened(path: Path, budget: str, settings: dict[str, Symbol], capture: str) -> Bundle:
    """The bundle, with the budget's prediction in the experiment of its capture."""
    from wsformat.budget import load
    from wsformat.cli import scope as scopes
    from wsformat.cli.predict import measured_capture
    from wsformat.prediction import predict
    from wsformat.prediction_store import joined

    bundle = scopes.open_bundle(path)
    if not budget:
        return bundle
    made = predict(load(budget).with_settings(settings))
    return joined(bundle, [made], measured_capture(bundle, path, capture), force=True)


def _named(report: Report, bundle: Bundle, path: Path) -> Report:
    """A capture without a label is called as its bundle."""
    label: Any = report.measured.capture["label"]
    return report if label else replace(report, name=path.stem)
