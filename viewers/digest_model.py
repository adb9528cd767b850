"""The digest as data: evidence, hypotheses, one edit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from wsformat.viewers.digest_compare import Comparison

NOTHING_LEFT = "None: no further low-effort optimization"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One metric that was used.

    Attributes:
        metric: name as it served.
        quantity: what it stands for.
        value, unit: in base units.
        percent_of_peak: None where there is no peak.
        text: what it says.
        why: how the name was chosen.
    """

    metric: str
    quantity: str
    value: float
    unit: str
    percent_of_peak: float | None
    text: str
    why: str


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One hypothesis: which values support it, what to do, what to expect, what it costs."""

    situation: str
    why: str
    action: str
    expected: str
    risk: str


@dataclass(frozen=True, slots=True)
class Edit:
    """The one next edit."""

    file: str
    change: str
    case: str
    metric: str


@dataclass(frozen=True, slots=True)
class Digest:
    """A finished digest.

    Attributes:
        kernel, version, launch: what it is about.
        environment: gpu, arch, driver, cuda, shapes, dtypes, report, csv; what is unknown says so.
        bottleneck_class: one of the classes of ``schema/digest_rules.json``.
        bottleneck_why: the numbers behind it.
        top_stall: most-stalled reason with its share and meaning, or why there is none.
        confidence, confidence_why: High, Medium or Low.
        evidence: one entry a metric used.
        stalls: per reason percent, together 100, of ``stall_family``.
        hypotheses: ranked.
        next_edit: exactly one, None when nothing is left to do.
        notes: names that must not be taken for a quantity, parked warps, assumptions.
        timeline: what a timeline of the same kernel in the bundle says.
        comparison: against a baseline, when one was given.
    """

    kernel: str
    version: str
    launch: int
    environment: Mapping[str, str]
    bottleneck_class: str
    bottleneck_why: str
    top_stall: str
    confidence: str
    confidence_why: str
    evidence: tuple[Evidence, ...]
    stalls: Mapping[str, float]
    stall_family: str
    hypotheses: tuple[Hypothesis, ...]
    next_edit: Edit | None
    notes: tuple[str, ...] = ()
    timeline: tuple[str, ...] = ()
    comparison: Comparison | None = None
    capture_id: str = ""
    values: Mapping[str, float] = field(default_factory=dict)

    def markdown(self) -> str:
        """The digest as Markdown, in the fixed shape."""
        from wsformat.viewers import digest_text

        text: str = digest_text.markdown(self)
        return text

    def to_json(self) -> dict[str, Any]:
        """The digest as JSON values; ``next_edit`` is null and ``next_edit_text`` says so when nothing is left."""
        data = asdict(self)
        data["evidence"] = [asdict(e) for e in self.evidence]
        data["next_edit_text"] = NOTHING_LEFT if self.next_edit is None else self.next_edit.change
        return data

    def findings(self) -> list[dict[str, Any]]:
        """The digest as rows of ``findings``."""
        from wsformat.viewers import digest_text

        rows: list[dict[str, Any]] = digest_text.findings(self)
        return rows
