"""A digest as Markdown and as rows of ``findings``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wsformat.viewers.digest_model import Digest, Evidence

CONFIDENCE = {"High": 0.9, "Medium": 0.6, "Low": 0.3}


def number(value: float) -> str:
    """A value for people: whole numbers grouped, others with three significant digits or two decimals."""
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.2f}" if abs(value) >= 0.1 else f"{value:.3g}"


def evidence_line(item: Evidence) -> str:
    """One line: name, value, percent of peak, interpretation."""
    unit = f" {item.unit}" if item.unit else ""
    peak = f"{item.percent_of_peak:.1f} % of peak" if item.percent_of_peak is not None else "no peak"
    text = f": {item.text}" if item.text else ""
    return f"- `{item.metric}` = {number(item.value)}{unit} ({peak}){text}"


def markdown(made: Digest) -> str:
    """See :meth:`wsformat.viewers.digest.Digest.markdown`."""
    from wsformat.viewers.digest_model import NOTHING_LEFT

    env = made.environment
    lines = [
        f"### Profile Evidence Digest: {made.kernel} @ {made.version}",
        "",
        "**Environment**",
        f"- GPU: {env['gpu']} ({env['arch']}), driver {env['driver']}, CUDA {env['cuda']}",
        f"- Shapes/dtypes: {env['shapes']} / {env['dtypes']}",
        f"- Report: {env['report']}",
        f"- CSV: {env['csv']}",
        "",
        "**Headline**",
        f"- Bottleneck class: {made.bottleneck_class} ({made.bottleneck_why})",
        f"- Most-stalled reason: {made.top_stall}",
        f"- Confidence: {made.confidence} ({made.confidence_why})",
        "",
        "**Evidence**",
        *([evidence_line(e) for e in made.evidence] or ["- none: no metric of the rubric is in the report"]),
    ]
    lines += [f"- Timeline: {text}" for text in made.timeline]
    lines += [f"- {text}" for text in made.notes]
    if made.comparison is not None:
        lines += ["", "**Against the baseline**", *[f"- {text}" for text in made.comparison.lines()]]
    if made.hypotheses:
        lines += ["", "**Hypotheses (ranked)**"]
        for place, h in enumerate(made.hypotheses, 1):
            lines += [
                f"{place}. Why: {h.why}",
                f"   - Action: {h.action}",
                f"   - Expected impact: {h.expected}",
                f"   - Risk/cost: {h.risk}",
            ]
    lines += ["", "**Next concrete edit**"]
    if made.next_edit is None:
        lines.append(NOTHING_LEFT)
    else:
        edit = made.next_edit
        lines += [f"- File: {edit.file}", f"- Change: {edit.change}", f"- Validation: {edit.case}; {edit.metric}"]
    return "\n".join(lines) + "\n"


def findings(made: Digest) -> list[dict[str, Any]]:
    """See :meth:`wsformat.viewers.digest.Digest.findings`."""
    from wsformat.viewers.digest_model import NOTHING_LEFT

    base = {
        "capture_id": made.capture_id,
        "subject": f"digest: {made.kernel}",
        "confidence": CONFIDENCE[made.confidence],
    }
    rows: list[dict[str, Any]] = [
        {**base, "kind": "conclusion", "verdict": made.bottleneck_class, "text": made.bottleneck_why,
         "evidence": json.dumps({"version": made.version, "launch": made.launch, "top_stall": made.top_stall})}
    ]  # fmt: skip
    for item in made.evidence:
        proof = {"table": "metrics", "metric": item.metric, "launch": made.launch, "value": item.value}
        rows.append(
            {**base, "kind": "check", "verdict": item.quantity, "value": item.value, "unit": item.unit,
             "text": item.text, "evidence": json.dumps(proof)}
        )  # fmt: skip
    for place, h in enumerate(made.hypotheses, 1):
        proof = {"situation": h.situation, "rank": place, "why": h.why, "expected": h.expected, "risk": h.risk}
        rows.append(
            {**base, "kind": "hypothesis", "verdict": h.situation, "text": h.action, "evidence": json.dumps(proof)}
        )
    text = NOTHING_LEFT if made.next_edit is None else made.next_edit.change
    proof = (
        {}
        if made.next_edit is None
        else {"file": made.next_edit.file, "case": made.next_edit.case, "metric": made.next_edit.metric}
    )
    rows.append({**base, "kind": "conclusion", "verdict": "next edit", "text": text, "evidence": json.dumps(proof)})
    if made.confidence != "High":
        rows.append({**base, "kind": "omission", "verdict": made.confidence, "text": made.confidence_why})
    return rows
