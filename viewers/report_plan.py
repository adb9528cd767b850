"""Prediction against measurement, as part of a report: what a budget allows, what the loop takes, where the gap is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from wsformat.errors import BadRequest
from wsformat.viewers.reconcile import Report, reconcile
from wsformat.viewers.reconcile_verdict import AGREE
from wsformat.viewers.report_ask import Asker, literal
from wsformat.viewers.report_model import Block, Column, Note, Query, Section, Table, Text, linked, number, sentence


@dataclass(frozen=True)
class Plan:
    """One prediction, and what came of it.

    Attributes:
        label: of the prediction.
        predicted: its rows.
        report: the reconciliation; None when nothing was measured that it can be compared with.
        missing: why not.
        verdict, sound, ranked, magnitudes, terms: rows of the reconciliation.
    """

    label: str
    predicted: Query
    report: Report | None
    missing: str
    verdict: Query | None = None
    sound: Query | None = None
    ranked: Query | None = None
    magnitudes: Query | None = None
    terms: Query | None = None


def plans(asker: Asker, budget: str, capture: str = "") -> list[Plan]:
    """Every prediction of the bundle, reconciled with what was measured in its experiment.

    Args:
        asker: over the bundle.
        budget: name of the budget that was predicted for this page, '' when predictions are in the bundle.
        capture: of a bundle with several, the measured capture.
    """
    made = []
    labelled = asker.rows(
        "SELECT capture_id, label FROM captures WHERE capture_id IN (SELECT capture_id FROM predictions) "
        "ORDER BY capture_id"
    )
    for place, row in enumerate(labelled):
        made.append(_plan(asker, row["capture_id"], row["label"] or row["capture_id"], place, budget, capture))
    return made


def _plan(asker: Asker, here: str, label: str, place: int, budget: str, capture: str) -> Plan:
    suffix = f"-{place + 1}" if place else ""
    predicted = asker.ask(
        f"prediction{suffix}",
        f"Prediction {label}",
        f"""SELECT resource, role, kind, work, work_unit, rate, rate_unit, cycles, idle_lower_bound, is_bottleneck,
                   rate_source
            FROM predictions WHERE capture_id = {literal(here)} ORDER BY role <> '', cycles DESC, resource, role""",
    )
    try:
        report = reconcile(asker.bundle, prediction=here, capture=capture)
    except BadRequest as error:
        return Plan(label, predicted, None, error.message)
    told = report.to_json()
    which = f" --budget {budget}" if budget else f" --prediction {here}"
    command = f"wsformat reconcile {asker.name}{which} --capture {told['capture_id']} --json"
    verdict = {key: told[key] for key in (
        "verdict", "text", "confidence", "predicted_cycles", "measured_cycles", "method", "clean_cycles",
        "stamped_cycles", "timeline_cycles",
    )}  # fmt: skip
    if verdict["measured_cycles"]:
        # Not in the command's JSON: the quotient of two numbers that are.
        verdict["share"] = verdict["predicted_cycles"] / verdict["measured_cycles"]
    terms = told["residual"]["terms"] if told["residual"] else []
    given = asker.given
    return Plan(
        label, predicted, report, "",
        verdict=given(f"verdict{suffix}", f"Verdict on {label}", [verdict], command),
        sound=given(f"checks{suffix}", "Is the measurement sound?", told["sound"], command, ("sound",)),
        ranked=given(f"ranking{suffix}", "Do direction and ranking agree?", told["direction"], command, ("direction",)),
        magnitudes=given(f"magnitudes{suffix}", "Cycles by resource", told["magnitude"], command, ("magnitude",)),
        terms=given(f"gap{suffix}", "The gap, term by term", terms, command, ("residual", "terms")),
    )  # fmt: skip


def note(plan: Plan) -> Note:
    """The verdict as a line of the banner."""
    if plan.verdict is None:
        return Note("Prediction", sentence(f"{plan.label}: {plan.missing}"), "warn")
    level = "ok" if plan.verdict.rows[0]["verdict"] == AGREE else "bad"
    return Note("Prediction", _compared(plan, plan.verdict), level)


def _compared(plan: Plan, verdict: Query) -> Text:
    row = verdict.rows[0]
    parts: list[Any] = [f"{row['verdict']}: {plan.label} allows ", number(verdict, 0, "predicted_cycles", "mean")]
    if row["measured_cycles"] is None:
        return sentence(parts, " cycles an iteration; what the loop takes is unknown")
    how = f"by {row['method'].replace('_', ' ')}" + (
        " without stamps" if row["clean_cycles"] is not None else " with stamps"
    )
    parts += [" cycles an iteration, the loop takes ", number(verdict, 0, "measured_cycles", "mean"), f" {how}: "]
    return sentence(parts, number(verdict, 0, "share", "share"), " of the budget's speed")


def section(plan: Plan, prefix: str) -> Section:
    """Prediction, verdict, sound, ranked, magnitudes and gap."""
    blocks: list[Block] = []
    report = plan.report
    if report is None or plan.verdict is None:
        blocks.append(sentence(f"Not compared: {plan.missing}."))
    else:
        named = ("predicted_cycles", "clean_cycles", "measured_cycles", "stamped_cycles", "timeline_cycles")
        blocks.append(linked(report.verdict.text, plan.verdict, named))
        doubts = "".join(f" Doubt: {doubt}." for doubt in report.verdict.doubts)
        blocks.append(sentence("Confidence ", number(plan.verdict, 0, "confidence", "mean"), f".{doubts}"))
        blocks += _tables(plan)
    columns = (
        Column("resource", "resource"), Column("role", "role"), Column("kind", "kind"), Column("work", "work", "int"),
        Column("work_unit", "unit"), Column("rate", "rate", "int"), Column("rate_unit", "unit"),
        Column("cycles", "cycles", "mean"), Column("idle_lower_bound", "idle at least", "share"),
        Column("rate_source", "rate from"),
    )  # fmt: skip
    blocks.append(Table(plan.predicted, columns, "What one iteration asks of each resource. Role '' is the total."))
    return Section(f"{prefix}prediction", f"Prediction against measurement: {plan.label}", tuple(blocks))


def _tables(plan: Plan) -> list[Block]:
    columns: tuple[Column, ...]
    blocks: list[Block] = []
    if plan.terms is not None and plan.terms.rows:
        shown = tuple(
            n for n, r in enumerate(plan.terms.rows) if abs(r["cycles"]) >= 0.05 or abs(r.get("raw") or 0) >= 0.05
        )
        columns = (
            Column("kind", "term"), Column("cycles", "cycles an iteration", "gap"), Column("raw", "on the path", "gap"),
            Column("text", "what"),
        )  # fmt: skip
        blocks.append(
            Table(plan.terms, columns, "The terms add up to the gap between timeline and budget.", places=shown)
        )
    if plan.magnitudes is not None:
        columns = (
            Column("resource", "resource"), Column("role", "role"), Column("predicted", "predicted", "mean"),
            Column("predicted_idle", "idle at least", "share"), Column("measured", "loop", "mean"),
            Column("measured_idle", "idle", "share"), Column("unexplained", "unexplained", "change"),
            Column("blocked", "blocked", "share"), Column("open_share", "span open", "share"),
            Column("counted", "counted busy", "share"),
        )  # fmt: skip
        blocks.append(Table(plan.magnitudes, columns, "Cycles an iteration. Idle is 1 - predicted / loop."))
    columns = (Column("outcome", "outcome"), Column("name", "check"), Column("text", "what was found"))
    blocks += [Table(checks, columns) for checks in (plan.sound, plan.ranked) if checks is not None and checks.rows]
    return blocks
