"""`wsformat predict`: a budget calculated, before the run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wsformat.cli import target as targets
from wsformat.cli.scope import Capture, Force, Json
from wsformat.errors import BadRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wsformat.budget import Budget
    from wsformat.bundle import Bundle
    from wsformat.expressions import Symbol
    from wsformat.prediction import Prediction

BudgetName = Annotated[
    str,
    typer.Argument(
        metavar="BUDGET", help="budget file (JSON, TOML), or one that ships with wsformat", show_default=False
    ),
]
Output = Annotated[Path | None, targets.output("X.wsformat", "write the prediction as a bundle", targets.NAME_A_BUNDLE)]
Into = Annotated[
    Path | None, typer.Option("--into", metavar="X.wsformat", help="add it to the experiment of a capture in a bundle")
]
Experiment = Annotated[
    str, typer.Option("--experiment", metavar="NAME", help="captures that belong together have one name")
]
Setting = Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="another value for a symbol")]
Sweep = Annotated[
    list[str] | None,
    typer.Option("--sweep", metavar="NAME=V1,V2", help="one prediction for each value, such as dtype=bf16,fp8,nvfp4"),
]
Lessons = Annotated[
    Path | None, typer.Option("--lessons", metavar="FILE", help="remind of what earlier budgets missed")
]
Published = Annotated[
    bool, typer.Option("--published", help="beside it the published numbers that the budget must reproduce")
]
List = Annotated[bool, typer.Option("--list", help="list the budgets that ship with wsformat")]


def predict(
    budget: BudgetName = "",
    output: Output = None,
    into: Into = None,
    capture: Capture = "",
    experiment: Experiment = "",
    settings: Setting = None,
    sweep: Sweep = None,
    lessons: Lessons = None,
    published: Published = False,
    list_: List = False,
    force: Force = False,
    json: Json = False,
) -> None:
    """Cycles an iteration that a kernel needs of each resource, the bottleneck, and how idle the others must be.

    The budget says what one iteration asks of each resource; rates come from `wsformat hardware`. Idle shares are
    lower bounds. `wsformat reconcile` compares the prediction with a measurement.
    """
    from wsformat.budget import load, shipped
    from wsformat.cli.output import print_json, print_table
    from wsformat.lessons import fitting, read
    from wsformat.prediction import sweep as run
    from wsformat.prediction_store import to_bundle

    if list_ or not budget:
        if not list_:
            raise BadRequest("no budget given", "`wsformat predict --list` lists those that ship with wsformat.")
        if json:
            print_json([{"name": name, "about": about} for name, about in shipped().items()])
        else:
            print_table(["<budget", "<about"], list(shipped().items()))
        return
    if output and into:
        raise BadRequest("-o and --into: take one of them")
    chosen = load(budget).with_settings(pairs("--set", settings))
    made = run(chosen, lists("--sweep", sweep))
    remind = fitting(read(lessons), chosen.raw, made[0].gpu.arch if made[0].gpu else "") if lessons else []
    target = output or into
    if output:
        to_bundle(made, experiment=experiment).write(output, force=force)
    elif into:
        add(into, made, capture=capture, experiment=experiment, force=force)
    cases = worked(load(budget)) if published else []
    if json:
        shown = [p.to_json() for p in made]
        extra: dict[str, Any] = {"lessons": [x.text for x in remind]} if lessons else {}
        extra |= {"published": cases} if published else {}
        print_json(({"predictions": shown} if sweep else shown[0]) | extra)
        return
    if sweep:
        _print_sweep(made)
    else:
        _print(made[0])
    if cases:
        _print_published(cases)
    for lesson in remind:
        print(f"Lesson: {lesson.line()}")
    if target:
        print(f"Written to {target}.")


def value(text: str) -> Symbol:
    """A number, else text."""
    try:
        return float(text)
    except ValueError:
        return text


def pairs(option: str, items: Sequence[str] | None) -> dict[str, Symbol]:
    """Symbols from NAME=VALUE."""
    found: dict[str, Symbol] = {}
    for item in items or ():
        name, equals, text = item.partition("=")
        if not equals or not name or not text:
            raise BadRequest(f"{option} {item!r} is not NAME=VALUE", f"Such as {option} dtype=fp8.")
        found[name.strip()] = value(text.strip())
    return found


def lists(option: str, items: Sequence[str] | None, *, repeats: bool = False) -> dict[str, list[Symbol]]:
    """Values by symbol from NAME=V1,V2; none twice unless ``repeats``."""
    found: dict[str, list[Symbol]] = {}
    for item in items or ():
        name, equals, text = item.partition("=")
        values = [value(v.strip()) for v in text.split(",") if v.strip()]
        if not equals or not name or not values:
            raise BadRequest(f"{option} {item!r} is not NAME=V1,V2", f"Such as {option} dtype=bf16,fp8.")
        if len(set(values)) < len(values) and not repeats:
            raise BadRequest(f"{option} {item!r}: a value twice")
        found[name.strip()] = values
    return found


def add(into: Path, made: Sequence[Prediction], *, capture: str, experiment: str, force: bool) -> Bundle:
    """Add predictions to the experiment of one capture in a bundle, and write the bundle anew.

    Raises:
        BadRequest: several captures and none named, another experiment than the capture has, or the prediction is in
            it already and ``force`` is false.
    """
    from wsformat.cli import scope as scopes
    from wsformat.prediction_store import joined

    bundle = scopes.open_bundle(into)
    chosen = measured_capture(bundle, into, capture)
    return joined(bundle, made, chosen, experiment=experiment, force=force).write(into, force=True)


def measured_capture(bundle: Bundle, path: Path, capture: str) -> str:
    """Id of the capture that a prediction belongs to: the one named, or the only one that was measured.

    Raises:
        BadRequest: several that are not of one experiment, and none named.
    """
    from wsformat.cli import scope as scopes

    labels, chosen = scopes.choose_captures(bundle, capture)
    rows = {row["capture_id"]: row for row in bundle.table("captures").to_pylist()}
    measured = [c for c in chosen if rows[c]["kind"] != "predicted"]
    experiments = {rows[c]["experiment"] for c in measured}
    if not measured or (len(measured) > 1 and (len(experiments) > 1 or experiments == {""})):
        raise BadRequest(
            f"{path}: holds {len(measured)} measured captures, a prediction belongs to one",
            f"Choose with --capture: {scopes.names(labels)}.",
        )
    return measured[0]


def worked(budget: Budget) -> list[dict[str, Any]]:
    """The published cases of a budget beside what is calculated."""
    from wsformat.prediction import published

    return published(budget)


def _print(prediction: Prediction) -> None:
    from wsformat.cli.output import clean, number, percent, print_table

    raw = prediction.budget.raw
    print(clean(f"{prediction.budget.name}: {raw.get('about', '')}".rstrip(": ")))
    print(clean(f"Unit: {raw['unit']}."))
    gpu = prediction.gpu
    print(f"GPU: {gpu.name}\n" if gpu else "GPU: none named; every rate is a number of the budget\n")
    body = [
        [
            row.resource + (" *" if row.is_bottleneck else ""), row.role or "total", row.kind, f"{row.work:,.10g}",
            row.work_unit, f"{row.rate:,.10g}", row.rate_unit, number(row.cycles),
            number(prediction.cycles - row.cycles),
            percent(row.idle), row.rate_source,
        ]
        for row in prediction.rows
    ]  # fmt: skip
    heads = ["<resource", "<role", "<kind", "work", "<", "rate", "<", "cycles", "slack", "idle >=", "<rate from"]
    print_table(heads, body, title="Cycles an iteration (* bottleneck):")
    print(f"\nHypothesis: {prediction.hypothesis}")
    for text in prediction.omits:
        print(clean(f"Left out: {text}."))
    for text in prediction.doubts:
        print(clean(f"Doubtful: {text}."))


def _print_sweep(made: Sequence[Prediction]) -> None:
    from wsformat.cli.output import number, percent, print_table

    resources = list(dict.fromkeys(name for p in made for name in p.totals))
    body: list[list[Any]] = []
    for p in made:
        said = " ".join(f"{k}={v:g}" if isinstance(v, float) else f"{k}={v}" for k, v in p.budget.settings.items())
        body.append([said, number(p.cycles), " and ".join(p.bottleneck)])
        for name in resources:
            row = p.totals.get(name)
            body[-1] += [number(row.cycles) if row else None, percent(row.idle) if row else None]
    heads = ["<case", "cycles", "<bottleneck", *(h for name in resources for h in (name, "idle >="))]
    print_table(heads, body, title=f"{made[0].budget.raw['name']}, cycles an iteration:")
    for text in dict.fromkeys(d for p in made for d in p.doubts):
        print(f"Doubtful: {text}.")


def _figure(number: float | None) -> str | None:
    return None if number is None else f"{number:,.4g}"


def _print_published(cases: list[dict[str, Any]]) -> None:
    from wsformat.cli.output import print_table

    body = [
        [c["case"], c["what"], *(_figure(c[name]) for name in ("calculated", "published", "measured")), c["source"]]
        for c in cases
    ]
    print()
    print_table(["<case", "<what", "calculated", "published", "measured", "<source"], body, title="Published:")
