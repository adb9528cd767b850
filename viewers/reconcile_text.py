"""A reconciliation as Markdown whose columns line up."""

from __future__ import annotations

from collections.abc import Sequence

from wsformat.viewers.reconcile import Report
from wsformat.viewers.reconcile_across import Across
from wsformat.viewers.reconcile_checks import Check
from wsformat.viewers.reconcile_verdict import AGREE

SMALL = 0.01
"""Causes that cost less than this share of the budget are not listed."""
MARKS = {"ok": "ok", "warn": "note", "fail": "NO", "unknown": "?"}


def percent(share: float | None, *, sign: bool = False) -> str:
    """A share as percent; '-' unknown."""
    return "-" if share is None else f"{round(share * 100, 1) + 0.0:{'+' if sign else ''}.1f} %"


def cycles(number: float | None, *, sign: bool = False) -> str:
    """Cycles with one digit; '-' unknown."""
    return "-" if number is None else f"{round(number, 1) + 0.0:{'+' if sign else ''},.1f}"


def table(rows: Sequence[Sequence[str]], text_columns: int = 1) -> list[str]:
    """A Markdown table, its first row the heading; the first columns are text."""
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = (
            c.ljust(w) if n < text_columns else c.rjust(w) for n, (c, w) in enumerate(zip(row, widths, strict=True))
        )
        lines.append("| " + " | ".join(cells) + " |")
    rule = "| " + " | ".join("-" * (w - 1) + ("-" if n < text_columns else ":") for n, w in enumerate(widths)) + " |"
    return [lines[0], rule, *lines[1:]]


def plain(text: str) -> str:
    """Text of a file that cannot break a table or a terminal."""
    safe = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return safe.replace("|", "\\|")


def markdown(report: Report) -> str:
    """One report, the verdict first."""
    verdict, plan = report.verdict, report.plan
    lines = [
        f"# {plain(report.name)} against {plain(plan.label)}: {verdict.verdict}",
        "",
        plain(verdict.text),
        "",
        f"Confidence {verdict.confidence:.2f}."
        + (f" For (b) it would need {plain(verdict.needed)}." if verdict.needed else ""),
        *[f"Doubt: {plain(doubt)}." for doubt in verdict.doubts],
        "",
        f"Unit: {plain(plan.unit)}.",
        f"Hypothesis: {plain(plan.hypothesis)}" if plan.hypothesis else "",
        "",
        "## 1. Is the measurement sound?",
        "",
        *_checks(report.sound),
        "",
        "## 2. Direction and ranking",
        "",
        *(_checks(report.ranked) or ["Nothing to rank."]),
        "",
        "## 3. Magnitude, cycles an iteration",
        "",
        *_magnitude(report),
        "",
        "## 4. The gap",
        "",
        *_gap(report),
        "",
        "## 5. Causes",
        "",
        *_causes(report),
    ]
    return "\n".join(lines) + "\n"


def _causes(report: Report) -> list[str]:
    if report.verdict.verdict == AGREE:
        return ["None is needed: the loop is as fast as its budget allows, within the tolerance."]
    named = list(report.causes) or ([report.verdict.cause] if report.verdict.cause else [])
    # All are in the JSON; a list of trifles would hide the one that matters.
    named = named[:1] + [cause for cause in named[1:] if cause.cycles >= SMALL * report.plan.cycles]
    return [
        f"- {plain(c.name.replace('_', ' '))} ({plain(c.subject)}), {c.cycles:,.0f} cycles: {plain(c.text)}. "
        f"Add: {plain(c.add)}."
        for c in named
    ] or ["None named."]


def _checks(checks: Sequence[Check]) -> list[str]:
    return [f"- {MARKS[check.outcome]}: {check.name}: {plain(check.text)}." for check in checks]


def _magnitude(report: Report) -> list[str]:
    heads = [
        "resource",
        "role",
        "predicted",
        "idle >=",
        "loop",
        "idle",
        "unexplained",
        "stall",
        "blocked",
        "open",
        "counted",
    ]
    rows = [heads]
    for line in report.magnitudes:
        rows.append(
            [
                plain(line.resource),
                plain(line.role) or "total",
                cycles(line.predicted),
                percent(line.predicted_idle),
                cycles(line.measured),
                percent(line.measured_idle),
                percent(line.unexplained, sign=True),
                percent(line.stall),
                percent(line.blocked),
                percent(line.open_share),
                percent(line.counted),
            ]
        )
    best = report.measured.best
    how = f"loop: {best.method}{'' if report.measured.clean else ' with stamps'}; " if best else ""
    note = f"{how}idle: 1 - predicted / loop; open: a span of the resource is open, an upper bound of its work"
    return [*table(rows, 2), "", f"({note}.)"]


def _gap(report: Report) -> list[str]:
    gap = report.residual
    if gap is None:
        return ["No steady window in cycles: the gap cannot be told apart."]
    rows = [["term", "cycles", "on the path", "what"]]
    shown = [t for t in gap.terms if abs(t.cycles) >= 0.05 or abs(t.raw) >= 0.05 or t.kind == "rest"]
    rows += [
        [t.kind.replace("_", " "), cycles(t.cycles, sign=True), cycles(t.raw, sign=True), plain(t.text)] for t in shown
    ]
    total = sum(t.cycles for t in gap.terms)
    rows.append(["sum", cycles(total, sign=True), "", "the gap"])
    widths = [max(len(row[n]) for row in rows) for n in range(4)]
    lines = [
        f"| {a.ljust(widths[0])} | {b.rjust(widths[1])} | {c.rjust(widths[2])} | {d.ljust(widths[3])} |"
        for a, b, c, d in rows
    ]
    rule = f"| {'-' * widths[0]} | {'-' * (widths[1] - 1)}: | {'-' * (widths[2] - 1)}: | {'-' * widths[3]} |"
    fixed = (
        f" Outside the loop a CTA takes {gap.fixed:,.0f} cycles (fill, drain, prologue, epilogue)."
        if gap.fixed is not None
        else ""
    )
    return [
        f"Timeline {gap.measured:,.1f}, predicted {gap.predicted:,.1f}: a gap of {gap.gap:+,.1f} cycles an iteration, "
        f"over {gap.iterations:g} iterations of {plain(gap.role)}.{fixed}",
        "",
        lines[0],
        rule,
        *lines[1:],
    ]


def markdown_across(found: Across) -> str:
    """Configurations beside each other, then each report."""
    good, all_ = found.agree
    lines = ["# Across configurations", ""]
    lines += [
        f"Idle moves the predicted way in {good} of {all_} cases." if all_ else "The budgets predict no change of idle."
    ]
    lines += [f"Note: {plain(note)}." for note in found.notes]
    rows = [["configuration", "dtype", "verdict", "bottleneck", "predicted", "measured"]]
    resources = list(dict.fromkeys(m.resource for r in found.reports for m in r.magnitudes if not m.role))
    rows[0] += [h for name in resources for h in (f"{name} idle >=", "idle")]
    for report in found.reports:
        best = report.measured.best
        row = [
            plain(report.name),
            plain(report.plan.dtype),
            report.verdict.verdict,
            " and ".join(report.plan.bottleneck),
        ]
        row += [cycles(report.plan.cycles), cycles(best.cycles if best else None)]
        own = {m.resource: m for m in report.magnitudes if not m.role}
        for name in resources:
            line = own.get(name)
            row += [percent(line.predicted_idle if line else None), percent(line.measured_idle if line else None)]
        rows.append(row)
    lines += ["", *table(rows, 4), ""]
    for move in found.moves:
        if move.agrees is False:
            lines.append(
                f"- {plain(move.resource)}, {plain(move.before)} to {plain(move.after)}: predicted "
                f"{percent(move.predicted, sign=True)}, measured {percent(move.measured, sign=True)}."
            )
    return "\n".join(lines) + "\n\n" + "\n".join(report.markdown() for report in found.reports)
