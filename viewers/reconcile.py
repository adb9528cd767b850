"""Reconcile: a stored prediction against what was measured, in five steps, each with its evidence.

1. Is the measurement sound?        2. Do direction and ranking agree?      3. The magnitudes, per resource and role.
4. The gap, term by term.           5. The verdict: agree, (a) model incomplete, (b) kernel leaves performance.

Reads a Bundle and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from wsformat.bundle import Bundle
from wsformat.lessons import Lesson
from wsformat.tables import rows_to_table
from wsformat.viewers.reconcile_causes import Cause, causes
from wsformat.viewers.reconcile_checks import Check, direction, soundness
from wsformat.viewers.reconcile_data import Measured, measured_of
from wsformat.viewers.reconcile_plan import Plan, asker, plan_of
from wsformat.viewers.reconcile_residual import Residual, residual
from wsformat.viewers.reconcile_verdict import INCOMPLETE, TOLERANCE, Verdict, judge

TOOL = "reconcile"
"""Marks rows of ``findings`` that a reconciliation wrote, in their evidence."""


@dataclass(frozen=True)
class Magnitude:
    """One line of step 3: a resource, in total or driven by one role.

    Attributes:
        resource, role: role '' in total.
        predicted: busy cycles an iteration; predicted_idle: lower bound.
        measured: cycles an iteration of the loop; None unknown.
        measured_idle: share of the loop in which the budgeted work is not done; by counters where there is no loop.
        stall, blocked: shares of the role's time; None for totals.
        open_share: share of the CTA's time in which a span of the resource is open: an upper bound of its work.
        counted: share of busy cycles by hardware counters.
        unexplained: measured idle beyond the predicted bound.
    """

    resource: str
    role: str
    predicted: float
    predicted_idle: float
    measured: float | None
    measured_idle: float | None
    stall: float | None
    blocked: float | None
    open_share: float | None
    counted: float | None

    @property
    def unexplained(self) -> float | None:
        """Measured idle beyond the predicted bound; None unknown."""
        return None if self.measured_idle is None else self.measured_idle - self.predicted_idle

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return {k: getattr(self, k) for k in self.__dataclass_fields__} | {"unexplained": self.unexplained}


@dataclass(frozen=True)
class Report:
    """A finished reconciliation.

    Attributes:
        name: of the measured capture.
        plan, measured: what was compared.
        sound, ranked: steps 1 and 2.
        magnitudes: step 3. residual: step 4; None without a steady window. causes, verdict: step 5.
    """

    name: str
    plan: Plan
    measured: Measured
    sound: tuple[Check, ...]
    ranked: tuple[Check, ...]
    magnitudes: tuple[Magnitude, ...]
    residual: Residual | None
    causes: tuple[Cause, ...]
    verdict: Verdict

    def to_json(self) -> dict[str, Any]:
        """Everything as JSON values."""
        best, gap = self.measured.best, self.residual
        return {
            "capture": self.name,
            "capture_id": self.measured.capture["capture_id"],
            "prediction": self.plan.label,
            "unit": self.plan.unit,
            "hypothesis": self.plan.hypothesis,
            "predicted_cycles": self.plan.cycles,
            "bottleneck": list(self.plan.bottleneck),
            "measured_cycles": best.cycles if best else None,
            "method": best.method if best else None,
            "clean_cycles": self.measured.clean.cycles if self.measured.clean else None,
            "stamped_cycles": self.measured.stamped.cycles if self.measured.stamped else None,
            "timeline_cycles": self.measured.timeline.cycles if self.measured.timeline else None,
            "sound": [check.to_json() for check in self.sound],
            "direction": [check.to_json() for check in self.ranked],
            "magnitude": [line.to_json() for line in self.magnitudes],
            "residual": None
            if gap is None
            else {
                "measured": gap.measured,
                "predicted": gap.predicted,
                "gap": gap.gap,
                "role": gap.role,
                "iterations": gap.iterations,
                "fixed_cycles": gap.fixed,
                "terms": [t.to_json() for t in gap.terms],
                "evidence": dict(gap.evidence),
            },
            "causes": [cause.to_json() for cause in self.causes],
            "verdict": self.verdict.verdict,
            "cause": self.verdict.cause.to_json() if self.verdict.cause else None,
            "text": self.verdict.text,
            "needed_for_b": self.verdict.needed,
            "confidence": self.verdict.confidence,
            "doubts": list(self.verdict.doubts),
        }

    def markdown(self) -> str:
        """The report as Markdown that reads well in a terminal."""
        from wsformat.viewers.reconcile_text import markdown

        text: str = markdown(self)
        return text

    def findings(self) -> list[dict[str, Any]]:
        """The report as rows of ``findings``, each with its evidence."""
        here = self.measured.capture["capture_id"]

        def row(kind: str, subject: str, text: str, evidence: Mapping[str, Any], **more: Any) -> dict[str, Any]:
            said = json.dumps({"tool": TOOL, "prediction": self.plan.capture_id, **evidence}, default=str)
            return {"capture_id": here, "kind": kind, "subject": subject, "text": text, "evidence": said, **more}

        rows = [
            row(
                "check",
                check.name,
                check.text,
                check.evidence,
                verdict=check.outcome,
                value=check.value,
                unit=check.unit,
                expected=check.expected,
            )
            for check in (*self.sound, *self.ranked)
        ]
        at = {"table": "predictions", "row": {"capture_id": self.plan.capture_id}}
        for line in self.magnitudes:
            if line.unexplained is not None and not line.role:
                text = (
                    f"{line.resource} idles {line.measured_idle or 0:.1%}, predicted at least "
                    f"{line.predicted_idle:.1%}: "
                    f"{line.unexplained:.1%} unexplained"
                )
                rows.append(
                    row(
                        "conclusion",
                        f"idle {line.resource}",
                        text,
                        at,
                        value=line.measured_idle,
                        unit="1",
                        expected=line.predicted_idle,
                        verdict="unexplained" if line.unexplained > TOLERANCE else "explained",
                    )
                )
        for term in self.residual.terms if self.residual else ():
            where = dict(self.residual.evidence) if self.residual else {}
            rows.append(row("conclusion", f"gap {term.kind}", term.text, where, value=term.cycles, unit="cycle"))
        best, cause = self.measured.best, self.verdict.cause
        rows.append(
            row(
                "conclusion",
                cause.name if cause else "loop",
                self.verdict.text,
                best.evidence if best else at,
                verdict=self.verdict.verdict,
                value=best.cycles if best else None,
                unit="cycle",
                expected=self.plan.cycles,
                confidence=self.verdict.confidence,
            )
        )
        if self.verdict.needed:
            rows.append(row("hypothesis", "kernel leaves performance (b)", f"would need {self.verdict.needed}", at))
        rows += [
            row("lesson", lesson.cause, lesson.text, at, value=lesson.cycles, unit="cycle")
            for lesson in self.lessons("")
        ]
        return rows

    def lessons(self, date: str) -> list[Lesson]:
        """What the model missed, for the next budget; none unless the verdict is (a)."""
        cause, facts = self.verdict.cause, self.plan.facts
        if self.verdict.verdict != INCOMPLETE or cause is None:
            return []
        capture = self.measured.capture
        return [
            Lesson(
                date=date,
                kernel=capture["kernel"] or facts["kernel"],
                task=facts["task"] or capture["task"] or "",
                arch=capture["arch"] or facts["arch"],
                gpu=capture["device"] or facts["device"],
                dtype=self.plan.dtype or capture["dtype"] or "",
                cause=cause.name,
                subject=cause.subject,
                resource=cause.resource,
                cycles=round(cause.cycles, 1),
                text=f"the budget lacked {cause.add}",
                capture_id=capture["capture_id"],
            )
        ]


def reconcile(
    bundle: Bundle,
    *,
    capture: str = "",
    prediction: str = "",
    faster: Mapping[str, float] | None = None,
    tolerance: float = TOLERANCE,
) -> Report:
    """Reconcile one prediction with one measured capture of its experiment.

    Args:
        bundle: that holds both.
        capture: label or start of the id of the measured capture, when there are several.
        prediction: the same for the prediction.
        faster: other configurations with the same budget and their cycles an iteration.
        tolerance: share over the budget that still agrees.

    Raises:
        BadRequest: no prediction, nothing measured, or several of them and none chosen.
    """
    with bundle.duckdb(materialise=("wait", "role_state")) as connection:
        ask = asker(connection)
        plan = plan_of(ask, prediction)
        measured = measured_of(bundle, connection, plan, capture)
        gap = residual(bundle, connection, ask, plan, measured)
    sound, ranked = soundness(plan, measured), direction(plan, measured)
    found = causes(plan, measured, gap)
    return Report(
        name=measured.capture["label"] or measured.capture["capture_id"],
        plan=plan,
        measured=measured,
        sound=tuple(sound),
        ranked=tuple(ranked),
        magnitudes=tuple(magnitudes(plan, measured)),
        residual=gap,
        causes=tuple(found),
        verdict=judge(plan, measured, gap, sound, ranked, found, faster, tolerance),
    )


def rejudged(report: Report, faster: Mapping[str, float], tolerance: float = TOLERANCE) -> Report:
    """The same report, judged knowing other configurations with the same budget that are faster."""
    verdict = judge(
        report.plan, report.measured, report.residual, report.sound, report.ranked, report.causes, faster, tolerance
    )
    return replace(report, verdict=verdict)


def magnitudes(plan: Plan, measured: Measured) -> list[Magnitude]:
    """Step 3: totals first, then by role."""
    best = measured.best
    lines = []
    for resource, role, cycles in [
        *((resource, "", cycles) for resource, cycles in plan.totals.items()),
        *((resource, role, cycles) for (resource, role), cycles in plan.parts.items()),
    ]:
        counted = measured.counted.get(resource, (None, ""))[0] if not role else None
        idle = 1 - cycles / best.cycles if best else 1 - counted if counted is not None else None
        states = measured.roles.get(role, {})
        lines.append(
            Magnitude(
                resource,
                role,
                cycles,
                1 - cycles / plan.cycles,
                best.cycles if best else None,
                idle,
                states.get("stall_share"),
                states.get("blocked_share"),
                measured.busy.get(resource) if not role else None,
                counted,
            )
        )
    return lines


def stored(bundle: Bundle, reports: Sequence[Report]) -> Bundle:
    """The bundle with the reports as findings; those of an earlier reconciliation of the same captures are replaced."""
    mine = {report.measured.capture["capture_id"] for report in reports}
    kept = [
        row
        for row in bundle.table("findings").to_pylist()
        if not (row["capture_id"] in mine and json_tool(row["evidence"]) == TOOL)
    ]
    old = rows_to_table("findings", kept)
    new = rows_to_table("findings", [row for report in reports for row in report.findings()])
    result = bundle.with_tables({"findings": pa.concat_tables([old, new])})
    return replace(result, manifest=bundle.manifest)


def json_tool(evidence: str | None) -> str:
    """The tool that a finding's evidence names; '' none."""
    try:
        found = json.loads(evidence or "{}")
    except ValueError:
        return ""
    return str(found.get("tool", "")) if isinstance(found, dict) else ""
