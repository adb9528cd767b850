"""Hardware counters as part of a report: the digest of each kernel that was profiled."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from wsformat.errors import BadRequest
from wsformat.viewers.digest import Digest, digest, kernels
from wsformat.viewers.report_ask import Asker, literal
from wsformat.viewers.report_model import Block, Column, Note, Query, Section, Table, Text, linked, sentence

MOST_KERNELS = 4
"""Kernels that are digested; a program has many, and those that take longest matter."""


@dataclass(frozen=True)
class Counted:
    """The digest of one kernel, with its rows; ``missing`` says why there is none."""

    kernel: str
    made: Digest | None
    missing: str
    evidence: Query | None = None
    hypotheses: Query | None = None
    printed: Query | None = None


def counted(asker: Asker) -> tuple[list[Counted], Query | None, list[str]]:
    """Digests of the kernels that took longest, all kernels with their launches, and what was left out."""
    if not asker.rows("SELECT 1 FROM metrics WHERE tool <> 'benchmark' LIMIT 1"):
        return [], None, []
    listed = asker.ask(
        "kernels",
        "Kernels that were profiled",
        """SELECT l.kernel, COUNT(*) AS launches, SUM(l.duration_ns) AS duration_ns, MIN(l.launch) AS first_launch
           FROM launches l
           WHERE EXISTS (SELECT 1 FROM metrics m
                         WHERE m.capture_id = l.capture_id AND m.launch = l.launch AND m.tool <> 'benchmark')
           GROUP BY l.kernel ORDER BY duration_ns DESC NULLS LAST, l.kernel""",
    )
    with_counters = kernels(asker.bundle)
    order = [row["kernel"] for row in listed.rows if row["kernel"] in with_counters]
    names = order[:MOST_KERNELS] or [""]
    notes = [f"{len(order) - len(names)} more profiled kernels have no digest here"] if len(order) > len(names) else []
    return [_digested(asker, name, place) for place, name in enumerate(names)], listed, notes


def _digested(asker: Asker, kernel: str, place: int) -> Counted:
    suffix = f"-{place + 1}" if place else ""
    pattern = f"^{re.escape(kernel)}$" if kernel else None
    try:
        made = digest(asker.bundle, pattern)
    except BadRequest as error:
        return Counted(kernel, None, error.message)
    which = f" --kernel {shlex.quote(pattern)}" if pattern else ""
    told = made.to_json()
    command = f"wsformat digest {asker.name}{which} --json"
    title = f"Counters behind the digest of {made.kernel}"
    return Counted(
        kernel, made, "",
        evidence=asker.given(f"evidence{suffix}", title, told["evidence"], command, ("evidence",)),
        hypotheses=asker.given(f"hypotheses{suffix}", "Hypotheses", told["hypotheses"], command, ("hypotheses",)),
        printed=_printed(asker, made, suffix),
    )  # fmt: skip


def headline(found: Counted) -> list[Text]:
    """Bound by what, and the next edit."""
    made = found.made
    if made is None:
        return [sentence(f"The counters give no digest: {found.missing}.")]
    why = _told(found, made.bottleneck_why)
    next_edit = made.next_edit.change if made.next_edit is not None else "nothing is left that is worth the effort"
    return [
        sentence(f"{made.kernel}: {made.bottleneck_class}, by its counters (", why, ")."),
        sentence(f"Next edit: {_bare(next_edit)}."),
    ]


def _told(found: Counted, text: str) -> Text:
    """Words of the digest, their numbers linked to its evidence."""
    bare = _bare(text)
    return sentence(bare) if found.evidence is None else linked(bare, found.evidence, ("percent_of_peak", "value"))


def confidence(found: Counted) -> Note:
    """How sure the digest is, as a line of the banner."""
    made = found.made
    if made is None:
        return Note("Counters", sentence(found.missing), "warn")
    level = {"High": "ok", "Medium": "warn"}.get(made.confidence, "bad")
    return Note(
        f"Confidence, {made.kernel}", sentence(f"{made.confidence.lower()}: {_bare(made.confidence_why)}"), level
    )


def _bare(text: str) -> str:
    return text.rstrip(". ")


def section(found: list[Counted], listed: Query | None, prefix: str) -> Section | None:
    """All digests, and the list of kernels; None without counters."""
    if listed is None:
        return None
    blocks: list[Block] = []
    for each in found:
        blocks += _blocks(each)
    columns = (
        Column("kernel", "kernel"), Column("launches", "launches", "int"), Column("duration_ns", "in all, ns", "mean"),
        Column("first_launch", "first launch", "int"),
    )  # fmt: skip
    blocks.append(Table(listed, columns, "Every kernel with counters."))
    return Section(f"{prefix}counters", "What the hardware counters say", tuple(blocks))


def _blocks(found: Counted) -> list[Block]:
    columns: tuple[Column, ...]
    made = found.made
    if made is None or found.evidence is None or found.hypotheses is None:
        return [sentence(f"No digest: {found.missing}.")]
    blocks: list[Block] = [
        sentence(
            f"{made.kernel}: {made.bottleneck_class} (",
            _told(found, made.bottleneck_why),
            f"). Confidence {made.confidence}: {_bare(made.confidence_why)}.",
        ),
        sentence(f"Most-stalled reason: {_bare(made.top_stall)}."),
    ]
    if made.next_edit is None:
        blocks.append(sentence("Next edit: none; nothing is left that is worth the effort."))
    else:
        edit = made.next_edit
        blocks.append(
            sentence(f"Next edit, in {edit.file}: {_bare(edit.change)}. To validate: {edit.case}; {edit.metric}.")
        )
    blocks += [sentence(f"{_bare(note)}.") for note in made.notes]
    columns = (
        Column("quantity", "quantity"), Column("metric", "metric"), Column("value", "value", "mean"),
        Column("unit", "unit"), Column("percent_of_peak", "% of peak", "mean"), Column("text", "what it says"),
    )  # fmt: skip
    if found.evidence.rows:
        blocks.append(Table(found.evidence, columns))
    if found.printed is not None and found.printed.rows:
        columns = (Column("metric", "metric"), Column("text", "as printed"), Column("unit", "unit"),
                   Column("base_value", "in base units", "mean"), Column("base_unit", "base unit"))  # fmt: skip
        blocks.append(Table(found.printed, columns, "The same counters as Nsight Compute printed them."))
    if found.hypotheses.rows:
        columns = (Column("situation", "situation"), Column("why", "why"), Column("action", "action"),
                   Column("expected", "expected"), Column("risk", "risk"))  # fmt: skip
        blocks.append(Table(found.hypotheses, columns))
    return blocks


def _printed(asker: Asker, made: Digest, suffix: str) -> Query:
    """The counters that a digest used, as they were printed."""
    names = ", ".join(literal(name) for name in sorted({e.metric for e in made.evidence})) or "''"
    return asker.ask(
        f"metrics{suffix}",
        f"Counters of {made.kernel} as printed",
        f"""SELECT name, metric, text, unit, base_value, base_unit FROM metrics
            WHERE capture_id = {literal(made.capture_id)} AND launch = {made.launch} AND scope = 'kernel'
              AND (metric IN ({names}) OR name IN ({names})) ORDER BY metric, name, ordinal""",
    )
