"""The evidence digest: one kernel's counters to a class, ranked hypotheses and exactly one next edit.

Every claim cites the metric and value behind it; what is missing is named and lowers the confidence. Nothing here
opens a foreign file: the digest reads a bundle.
"""

from __future__ import annotations

import re
from typing import Any

from wsformat.bundle import Bundle
from wsformat.metrics import counters
from wsformat.tables import rows_to_table
from wsformat.viewers import digest_claims as claims
from wsformat.viewers.digest_choice import Choice, choose, choose_from, kernels
from wsformat.viewers.digest_compare import compare
from wsformat.viewers.digest_model import NOTHING_LEFT, Digest, Edit, Evidence, Hypothesis
from wsformat.viewers.digest_rules import Facts, classify, confidence, gather, rules, situations
from wsformat.viewers.digest_source import SourceView, plain_name, source_launch, source_view
from wsformat.viewers.digest_timeline import timeline_lines


def digest(
    bundle: Bundle,
    kernel: str | None = None,
    launch: int | None = None,
    version: str = "",
    *,
    source: str = "",
    correct: bool | None = None,
    baseline: Bundle | None = None,
    expected: float | None = None,
) -> Digest:
    """Conclude from one kernel's counters.

    Args:
        bundle: with rows of ``metrics``; a source page and a timeline in it are used.
        kernel: regular expression for the kernel's name, needed when there are several.
        launch: the launch; by default the one with the median duration.
        version: version of the kernel, such as a commit; by default the capture's.
        source: file of the kernel, for the next edit.
        correct: whether the results were checked; None is unknown, taken as correct, and said.
        baseline: an earlier version's bundle, to compare with.
        expected: speed-up that was expected against the baseline, 1.2 for 20 %.

    Raises:
        BadRequest: no counters, or no single kernel.
    """
    with bundle.duckdb(only=[]) as connection:
        choice = choose_from(connection, bundle, kernel, launch)
        counted = counters(bundle, choice.launch, capture=choice.capture, summary=choice.summary)
        view = _view(connection, bundle, choice)
    facts = gather(counted, view)
    verdict = classify(facts)
    capture = _capture(bundle, choice)
    done = _is_done(facts) and correct is not False
    found = [] if done else situations(facts, verdict.bottleneck)
    hypotheses = () if done else claims.hypotheses(found, facts)
    level, why = confidence(verdict.doubts)
    file = source or (view.file if view else "") or "unknown (no source page names it: say --source)"
    short = plain_name(choice.kernel).partition("(")[0] or choice.kernel
    comparison = None
    if baseline is not None:
        same = f"^{re.escape(choice.kernel)}$" if choice.kernel in kernels(baseline) else kernel
        earlier = choose(baseline, same, None)
        old = gather(counters(baseline, earlier.launch, capture=earlier.capture, summary=earlier.summary))
        comparison = compare(old, facts, expected)
    return Digest(
        kernel=short,
        version=version or capture.get("version", "") or "unversioned",
        launch=choice.launch,
        environment=claims.environment(bundle, capture, counted),
        bottleneck_class=verdict.bottleneck,
        bottleneck_why=verdict.why,
        top_stall=claims.top_stall(facts, view),
        confidence=level,
        confidence_why=why,
        evidence=tuple(claims.evidence(facts)),
        stalls=dict(facts.stalls.shares) if facts.stalls else {},
        stall_family=facts.stalls.family if facts.stalls else "",
        hypotheses=hypotheses,
        next_edit=None if done else claims.edit(found, facts, file, capture, choice, correct),
        notes=tuple(claims.notes(facts, view, choice, correct, done)),
        timeline=tuple(timeline_lines(bundle)),
        comparison=comparison,
        capture_id=capture.get("capture_id", ""),
        values=dict(facts.values),
    )


def _view(connection: Any, bundle: Bundle, choice: Choice) -> SourceView | None:
    if choice.summary:
        return None
    shown = source_launch(connection, bundle, (choice.capture, choice.launch))
    return None if shown is None else source_view(connection, bundle, shown)


def _capture(bundle: Bundle, choice: Choice) -> dict[str, Any]:
    captures = {row["capture_id"]: row for row in bundle.table("captures").to_pylist()}
    return dict(captures.get(choice.capture, {}))


def _is_done(facts: Facts) -> bool:
    at = rules()["done_at"]
    return any(facts.values.get(q, 0.0) > at for q in ("tensor_busy", "dram_busy"))


def add_findings(bundle: Bundle, made: Digest) -> Bundle:
    """The bundle with the digest among its findings."""
    rows = bundle.table("findings").to_pylist() + made.findings()
    return bundle.with_tables({"findings": rows_to_table("findings", rows)})


__all__ = ["NOTHING_LEFT", "Digest", "Edit", "Evidence", "Hypothesis", "add_findings", "choose", "digest", "kernels"]
