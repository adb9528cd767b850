"""Reconciliation across configurations: does idle move the way that the budgets say?"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from wsformat.errors import BadRequest
from wsformat.viewers.reconcile import Report, rejudged
from wsformat.viewers.reconcile_checks import CLOSE
from wsformat.viewers.reconcile_verdict import TOLERANCE

SAME = 0.005
"""Budgets that differ by less than this are the same budget."""


@dataclass(frozen=True)
class Move:
    """How the idle share of one resource moves from one configuration to another.

    Attributes:
        resource, before, after: names.
        predicted, measured: change of the idle share.
        agrees: the same direction; None when the prediction does not move.
    """

    resource: str
    before: str
    after: str
    predicted: float
    measured: float
    agrees: bool | None

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return {k: getattr(self, k) for k in self.__dataclass_fields__}


@dataclass(frozen=True)
class Across:
    """Several configurations beside each other.

    Attributes:
        reports: one a configuration, judged with knowledge of the others.
        moves: every pair of configurations and resource that both predict.
        notes: what keeps them from being compared, when that was forced.
    """

    reports: tuple[Report, ...]
    moves: tuple[Move, ...]
    notes: tuple[str, ...]

    @property
    def agree(self) -> tuple[int, int]:
        """Moves that go the predicted way, and moves that the budgets predict."""
        judged = [move for move in self.moves if move.agrees is not None]
        return sum(bool(move.agrees) for move in judged), len(judged)

    def to_json(self) -> dict[str, Any]:
        """Everything as JSON values."""
        good, all_ = self.agree
        return {
            "reports": [report.to_json() for report in self.reports],
            "moves": [move.to_json() for move in self.moves],
            "moves_as_predicted": good,
            "moves_predicted": all_,
            "notes": list(self.notes),
        }

    def markdown(self) -> str:
        """As Markdown that reads well in a terminal."""
        from wsformat.viewers.reconcile_text import markdown_across

        text: str = markdown_across(self)
        return text


def across(reports: Sequence[Report], *, force: bool = False, tolerance: float = TOLERANCE) -> Across:
    """Compare configurations.

    Args:
        reports: two or more.
        force: compare although stamp sets, methods or devices differ.
        tolerance: share over a budget that still agrees.

    Raises:
        BadRequest: they are not comparable and ``force`` is false.
    """
    notes = incomparable(reports)
    if notes and not force:
        raise BadRequest(f"the configurations are not comparable: {'; '.join(notes)}", "Use --force to compare anyway.")
    judged = []
    for report in reports:
        best = report.measured.best
        faster = {
            other.name: other.measured.best.cycles
            for other in reports
            if other is not report
            and best
            and other.measured.best
            and not notes
            and abs(other.plan.cycles / report.plan.cycles - 1) < SAME
            and other.measured.best.cycles * (1 + tolerance) < best.cycles
        }
        judged.append(rejudged(report, faster, tolerance) if faster else report)
    return Across(tuple(judged), tuple(_moves(judged)), tuple(notes))


def incomparable(reports: Sequence[Report]) -> list[str]:
    """Why these configurations cannot be compared; empty when they can."""
    found = []
    for what, said in (
        ("stamp sets", {r.measured.capture["stamp_set"] or "" for r in reports if r.measured.launch >= 0}),
        ("methods", {_method(r) for r in reports}),
        ("devices", {r.measured.capture["device"] or "" for r in reports}),
    ):
        if len(said) > 1:
            found.append(f"{what} differ ({', '.join(sorted(x or 'unknown' for x in said))})")
    return found


def _method(report: Report) -> str:
    measured = report.measured
    if measured.clean:
        return "slope without stamps"
    if measured.best:
        return f"{measured.best.method} with stamps"
    return "counters" if measured.counted else "none"


def _moves(reports: Sequence[Report]) -> list[Move]:
    found = []
    idle = {
        id(r): {
            m.resource: (m.predicted_idle, m.measured_idle)
            for m in r.magnitudes
            if not m.role and m.measured_idle is not None
        }
        for r in reports
    }
    for before, after in itertools.combinations(reports, 2):
        for resource in idle[id(before)]:
            if resource not in idle[id(after)]:
                continue
            (p0, m0), (p1, m1) = idle[id(before)][resource], idle[id(after)][resource]
            predicted, measured = p1 - p0, (m1 or 0.0) - (m0 or 0.0)
            agrees = None if abs(predicted) < CLOSE else (predicted > 0) == (measured > 0) and abs(measured) > CLOSE / 2
            found.append(Move(resource, _name(before), _name(after), predicted, measured, agrees))
    return found


def _name(report: Report) -> str:
    return report.name if not report.plan.dtype else f"{report.name} ({report.plan.dtype})"
