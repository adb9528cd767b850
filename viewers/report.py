"""The report: everything that a bundle tells, on one page, the answer first. Reads a bundle and nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from wsformat.bundle import Bundle
from wsformat.errors import BadRequest
from wsformat.version import __version__
from wsformat.viewers import report_capture, report_counters, report_figures, report_headline, report_plan
from wsformat.viewers.report_ask import Asker, literal, shared
from wsformat.viewers.report_capture import Seen
from wsformat.viewers.report_model import Block, Column, Document, Note, Section, Table, Text, sentence

MOST_CAPTURES = 6
"""Captures with a timeline on one page; more are counted and left out."""
KEPT = ("point", "span", "recorded_window", "state_interval", "role_state", "overlap", "wait_edge", "wait")
"""Views that several questions need."""


@dataclass(frozen=True)
class Part:
    """What the page says of one capture."""

    seen: Seen
    prefix: str
    figures: dict[str, Block]


def report(
    bundle: Bundle,
    *,
    capture_id: str | None = None,
    launch: int | None = None,
    cta: int | None = None,
    budget: str = "",
    name: str = "",
    pictures: bool = True,
) -> Document:
    """Everything that a bundle tells.

    Args:
        bundle: one capture or several; stamped, clean, profiled and predicted ones go together.
        capture_id: only this one of the captures with a timeline.
        launch, cta: what is shown of it; by default the first launch and the CTA of median length.
        budget: name of the budget whose prediction was added for this page; commands name it.
        name: what to call the bundle in commands; by default its folder's name.
        pictures: draw them; without, the page has words and tables only.

    Raises:
        BadRequest: a capture, launch or CTA that is not there.
    """
    called = name or (bundle.path.name if bundle.path is not None else "X.wsformat")
    with bundle.duckdb(materialise=KEPT) as connection:
        bundle = shared(bundle, connection)
        asker = Asker(bundle, connection, called)
        chosen, notes = _chosen(asker, capture_id)
        parts = []
        for place, capture in enumerate(chosen):
            own = replace(asker, prefix=f"c{place + 1}-" if len(chosen) > 1 else "")
            seen = report_capture.look(own, capture, capture["label"] or capture["capture_id"], launch, cta)
            drawn = report_figures.figures(bundle, own, seen, 1 / len(chosen)) if pictures else {}
            parts.append(Part(seen, own.prefix, drawn))
        several = chosen[0]["capture_id"] if capture_id is not None and chosen else ""
        planned = report_plan.plans(asker, budget, several)
        counters, kernels, left = report_counters.counted(asker)
        return _document(asker, parts, planned, (counters, kernels), [*notes, *left])


def _chosen(asker: Asker, capture_id: str | None) -> tuple[list[dict[str, Any]], list[str]]:
    """The captures with a timeline to show, and what is left out."""
    rows = asker.rows(
        """SELECT * FROM captures c WHERE EXISTS (SELECT 1 FROM events e WHERE e.capture_id = c.capture_id)
             OR EXISTS (SELECT 1 FROM spans s WHERE s.capture_id = c.capture_id) ORDER BY c.label, c.capture_id"""
    )
    if capture_id is not None:
        rows = [row for row in rows if row["capture_id"] == capture_id]
        if not rows:
            raise BadRequest(
                f"capture {capture_id}: has no stamps and no spans", "`wsformat info` lists what there is."
            )
    left = len(rows) - MOST_CAPTURES
    notes = [f"{left} more captures are not shown; choose one with --capture"] if left > 0 else []
    return rows[:MOST_CAPTURES], notes


def _document(
    asker: Asker, parts: list[Part], planned: list[report_plan.Plan], counted: tuple[Any, Any], notes: list[str]
) -> Document:
    counters, kernels = counted
    several = len(parts) > 1
    headline: list[Text] = []
    banner: list[Note] = []
    sections: list[Section] = []
    for part in parts:
        head = report_headline.headline(part.seen)
        headline += [sentence(f"{part.seen.label}: ", *(_joined(head)))] if several else head
        banner += [replace(n, name=f"{part.seen.label}, {n.name.lower()}" if several else n.name)
                   for n in report_headline.banner(part.seen)]  # fmt: skip
        own = report_capture.sections(part.seen, part.figures, part.prefix)
        top: list[Any] = [part.figures["timeline"]] if "timeline" in part.figures else []
        if "explorer" in part.figures:
            explorer: Any = part.figures["explorer"]
            top += [sentence(explorer.caption), explorer] if explorer.fragment else [explorer]
        if several:
            line = report_headline.lead(part.seen.capture, part.seen)
            sections.append(Section(f"{part.prefix}capture", part.seen.label, (sentence(line), *top)))
        elif top:
            sections.append(Section("timeline", "The timeline", tuple(top)))
        sections += [replace(section, level=3) if several else section for section in own]
    banner += [report_plan.note(plan) for plan in planned]
    for each in counters if not parts else ():
        headline += report_counters.headline(each)
        banner.append(report_counters.confidence(each))
    sections += [report_plan.section(plan, f"p{n + 1}-" if len(planned) > 1 else "") for n, plan in enumerate(planned)]
    digested = report_counters.section(counters, kernels, "")
    sections += [digested] if digested is not None else []
    sections.append(_provenance(asker, parts))
    if not headline:
        headline = [_nothing(asker)]
    return Document(
        title=_title(asker, parts), lead=_lead(asker, parts), headline=tuple(headline), banner=tuple(banner),
        sections=tuple(sections), queries=asker.found, run=f"wsformat query {asker.name} -",
        notes=(*notes, *_predicted_only(planned)),
    )  # fmt: skip


def _joined(texts: Iterable[Text]) -> list[Any]:
    found: list[Any] = []
    for text in texts:
        found += [" ", *text] if found else list(text)
    return found


def _predicted_only(planned: list[report_plan.Plan]) -> list[str]:
    """How to have a prediction in the bundle, where a command of the page says that it was made for the page."""
    commands = [plan.verdict.command for plan in planned if plan.verdict is not None]
    if not any("--budget" in command for command in commands):
        return []
    return [
        "The prediction was made for this page; SQL on predictions needs it in the bundle: `wsformat predict --into`"
    ]


def _nothing(asker: Asker) -> Text:
    captures = asker.rows("SELECT kind, COUNT(*) AS n FROM captures GROUP BY kind ORDER BY kind")
    if not captures:
        return sentence("This bundle holds no capture: there is nothing to report.")
    listed = ", ".join(f"{row['n']} {row['kind'] or 'of unknown kind'}" for row in captures)
    return sentence(f"No timeline and no counters are in this bundle ({listed}); what it holds is below.")


def _title(asker: Asker, parts: list[Part]) -> str:
    if len(parts) == 1:
        capture = parts[0].seen.capture
        return str(capture["kernel"] or capture["label"] or asker.name)
    names = sorted({row["kernel"] for row in asker.rows("SELECT DISTINCT kernel FROM captures WHERE kernel <> ''")})
    return str(names[0]) if len(names) == 1 else asker.name


def _lead(asker: Asker, parts: list[Part]) -> tuple[str, ...]:
    if len(parts) == 1:
        seen = parts[0].seen
        label = seen.capture["label"]
        return (
            *([label] if label and label != seen.capture["kernel"] else []),
            report_headline.lead(seen.capture, seen),
        )
    rows = asker.rows("SELECT * FROM captures WHERE kind <> 'predicted' ORDER BY capture_id")
    return tuple(dict.fromkeys(report_headline.lead(row) for row in rows))[:3]


def _provenance(asker: Asker, parts: list[Part]) -> Section:
    """Every capture, launch group and source file, and what the import did."""
    captures = asker.ask("captures", "Captures", """
        SELECT capture_id, kind, label, kernel, version, device, arch, source_format, experiment, stamp_set,
               completeness, lost_events, created_unix_ns FROM captures ORDER BY capture_id""")  # fmt: skip
    launches = asker.ask("launches", "Launches", """
        SELECT capture_id, kind, tool, status, trip_count, slots, grid_x, grid_y, grid_z, COUNT(*) AS launches
        FROM launches GROUP BY ALL ORDER BY ALL""")  # fmt: skip
    command = f"wsformat info {asker.name} --json"
    sources = asker.given("sources", "Source files", asker.bundle.manifest.sources, command, ("sources",))
    blocks: list[Block] = [
        Table(captures, (
            Column("capture_id", "capture"), Column("kind", "kind"), Column("label", "label"),
            Column("kernel", "kernel"), Column("version", "version"),
            Column("source_format", "imported from"), Column("stamp_set", "stamp set"),
            Column("completeness", "completeness"), Column("lost_events", "lost", "count"),
        )),
        Table(launches, (
            Column("capture_id", "capture"), Column("kind", "kind"), Column("tool", "tool"), Column("status", "status"),
            Column("trip_count", "iterations", "count"), Column("slots", "slots", "count"),
            Column("grid_x", "grid x", "count"), Column("grid_y", "grid y", "count"),
            Column("launches", "launches", "int"),
        )),
    ]  # fmt: skip
    if sources.rows:
        blocks.append(Table(sources, (
            Column("name", "file"), Column("converter", "converter"), Column("dialect", "dialect"),
            Column("detected_by", "detected by"), Column("sha256", "sha256"),
        )))  # fmt: skip
    for part in parts:
        if part.seen.losses.rows:
            title = f"Import of {part.seen.label}." if len(parts) > 1 else ""
            blocks.append(Table(part.seen.losses, (Column("name", "import"), Column("value", "value")), title))
        facts = part.seen.facts.rows[0]
        if facts["orphans"]:
            said = "points that made no span; the view orphan lists them."
            blocks.append(sentence(report_headline.number(part.seen.facts, 0, "orphans", "int"), f" {said}"))
    manifest = asker.bundle.manifest
    by = " ".join(str(manifest.writer.get(key, "")) for key in ("name", "version")).strip()
    blocks.append(
        sentence(
            f"Format version {manifest.version}{f', written by {by}' if by else ''}; page by wsformat {__version__}."
        )
    )
    return Section("provenance", "Where this is from", tuple(blocks))


__all__ = ["KEPT", "Document", "literal", "report"]
