"""The evidence digest: one kernel's counters to a class, ranked hypotheses and exactly one next edit.

Every claim cites the metric and value behind it; what is missing is named and lowers the confidence. Nothing here
opens a foreign file: the digest reads a bundle.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from wsformat.bundle import Bundle
from wsformat.errors import BadRequest
from wsformat.metrics import Counters, counters
from wsformat.tables import rows_to_table
from wsformat.viewers.digest_compare import Comparison
from wsformat.viewers.digest_rules import (
    Facts,
    Situation,
    Verdict,
    band,
    classify,
    confidence,
    gather,
    rules,
    situations,
)
from wsformat.viewers.digest_source import SourceView, plain_name, source_launch, source_view
from wsformat.viewers.digest_timeline import timeline_lines

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


@dataclass(frozen=True, slots=True)
class Choice:
    """The launch that a digest is about, or the summary of several."""

    kernel: str
    launch: int
    summary: str
    why: str


def kernels(bundle: Bundle) -> dict[str, list[int]]:
    """Kernels with counters, and their launches.

    Raises:
        BadRequest: the bundle has no counters of a kernel.
    """
    rows = bundle.sql(
        "SELECT DISTINCT m.launch, l.kernel FROM metrics m JOIN launches l ON l.launch = m.launch "
        "AND l.capture_id = m.capture_id WHERE m.scope = 'kernel' AND m.tool <> 'benchmark' ORDER BY m.launch"
    ).to_pylist()
    found: dict[str, list[int]] = {}
    for row in rows:
        found.setdefault(row["kernel"], []).append(row["launch"])
    return found


def choose(bundle: Bundle, kernel: str | None, launch: int | None) -> Choice:
    """The launch to digest.

    Args:
        bundle: with counters.
        kernel: regular expression that one kernel's name matches.
        launch: number of the launch.

    Raises:
        BadRequest: none or several match, or the expression is wrong.
    """
    found = kernels(bundle)
    summaries = bundle.sql("SELECT DISTINCT scope_id FROM metrics WHERE scope = 'summary' ORDER BY 1").to_pylist()
    names = dict.fromkeys(found, "") | {row["scope_id"]: row["scope_id"] for row in summaries}
    if not names:
        raise BadRequest("the bundle has no counters of a kernel", "Import a CSV of Nsight Compute first.")
    if launch is not None:
        name = next((n for n, launches in found.items() if launch in launches), None)
        if name is None:
            have = sorted(n for launches in found.values() for n in launches)
            raise BadRequest(f"no launch {launch} with counters", f"Launches with counters: {_some(have)}.")
        return Choice(name, launch, "", "chosen by the reader")
    if kernel:
        try:
            names = {name: summary for name, summary in names.items() if re.search(kernel, name)}
        except re.error as error:
            raise BadRequest(f"--kernel {kernel!r} is no regular expression: {error}") from error
    if len(names) != 1:
        listed = "; ".join(sorted(n[:100] for n in (names or found)))
        what = f"{len(names)} kernels match" if names else f"no kernel matches {kernel!r}"
        raise BadRequest(f"{what}, one is needed: {listed}", "Choose one with --kernel REGEX or --launch N.")
    name, summary = next(iter(names.items()))
    if summary:
        return Choice(name, -1, summary, "averages of a summary over several launches")
    return _median_launch(bundle, name, found[name])


def _some(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers[:20])) + (" and more" if len(numbers) > 20 else "")


def _median_launch(bundle: Bundle, name: str, launches: Sequence[int]) -> Choice:
    if len(launches) == 1:
        return Choice(name, launches[0], "", "the only launch")
    durations = {row["launch"]: row["duration_ns"] for row in bundle.table("launches").to_pylist()}
    ranked = sorted(launches, key=lambda n: (durations.get(n, -1), n))
    chosen = ranked[(len(ranked) - 1) // 2]
    return Choice(name, chosen, "", f"launch {chosen}, the median in duration of {len(launches)}")


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
    choice = choose(bundle, kernel, launch)
    counted = counters(bundle, choice.launch, summary=choice.summary)
    view = _view(bundle, choice)
    facts = gather(counted, view)
    verdict = classify(facts)
    capture = _capture(bundle, choice)
    done = _is_done(facts) and correct is not False
    found = [] if done else situations(facts, verdict.bottleneck)
    hypotheses = () if done else _hypotheses(found, facts)
    level, why = confidence(verdict.doubts)
    file = source or (view.file if view else "") or "unknown (no source page names it: say --source)"
    short = plain_name(choice.kernel).partition("(")[0] or choice.kernel
    comparison = None
    if baseline is not None:
        from wsformat.viewers.digest_compare import compare

        earlier = choose(baseline, re.escape(choice.kernel) if choice.kernel in kernels(baseline) else kernel, None)
        old = gather(counters(baseline, earlier.launch, summary=earlier.summary))
        comparison = compare(old, facts, expected)
    return Digest(
        kernel=short,
        version=version or capture.get("version", "") or "unversioned",
        launch=choice.launch,
        environment=_environment(bundle, capture, counted),
        bottleneck_class=verdict.bottleneck,
        bottleneck_why=verdict.why,
        top_stall=_top_stall(facts, view),
        confidence=level,
        confidence_why=why,
        evidence=tuple(_evidence(facts)),
        stalls=dict(facts.stalls.shares) if facts.stalls else {},
        stall_family=facts.stalls.family if facts.stalls else "",
        hypotheses=hypotheses,
        next_edit=None if done else _edit(found, facts, file, capture, choice, correct),
        notes=tuple(_notes(facts, view, choice, correct, done)),
        timeline=tuple(timeline_lines(bundle)),
        comparison=comparison,
        capture_id=capture.get("capture_id", ""),
        values=dict(facts.values),
    )


def _view(bundle: Bundle, choice: Choice) -> SourceView | None:
    if choice.summary:
        return None
    shown = source_launch(bundle, choice.launch)
    return None if shown is None else source_view(bundle, shown)


def _capture(bundle: Bundle, choice: Choice) -> dict[str, Any]:
    captures = {row["capture_id"]: row for row in bundle.table("captures").to_pylist()}
    for row in bundle.table("launches").to_pylist():
        if row["launch"] == choice.launch:
            return dict(captures.get(row["capture_id"], {}))
    return dict(next(iter(captures.values()), {}))


def _is_done(facts: Facts) -> bool:
    at = rules()["done_at"]
    return any(facts.values.get(q, 0.0) > at for q in ("tensor_busy", "dram_busy"))


def _environment(bundle: Bundle, capture: Mapping[str, Any], counted: Counters) -> dict[str, str]:
    said = {row["name"]: row["value"] for row in bundle.table("attributes").to_pylist() if row["row_key"] == ""}

    def named(*words: str) -> str:
        return next(
            (v for n, v in said.items() if any(w in n.lower() for w in words) and not n.startswith("import.")), ""
        )

    names = [str(s.get("name", "")) for s in bundle.manifest.sources]
    return {
        "gpu": capture.get("device") or "unknown",
        "arch": counted.arch or "unknown",
        "driver": named("driver") or "unknown",
        "cuda": named("cuda") or "unknown",
        "shapes": capture.get("shape") or "unknown",
        "dtypes": capture.get("dtype") or "unknown",
        "report": ", ".join(n for n in names if n.endswith(".ncu-rep")) or "none",
        "csv": ", ".join(n for n in names if not n.endswith(".ncu-rep")) or "none",
    }


def _top_stall(facts: Facts, view: SourceView | None) -> str:
    if facts.stalls is None:
        return f"unknown ({facts.stalls_missing})"
    reason = facts.stalls.top
    share = facts.stalls.shares[reason]
    known = rules()["reasons"].get(reason, {})
    meaning = "; but ".join(text for text in (known.get("recipe", ""), known.get("correct", "")) if text)
    parked = (
        f"; {view.parked:.0f} % of the stalled samples are parked warps and left out" if view and view.parked else ""
    )
    return f"{reason} {share:.0f} % of stalls ({meaning or 'no further meaning'}; {facts.stalls.family}{parked})"


def _evidence(facts: Facts) -> list[Evidence]:
    known = rules()
    wanted = dict.fromkeys(
        [q for group in known["groups"] for q in group["quantities"]]
        + [*known["unnamed"], *known["core"], "occupancy", "occupancy_limit", "waves", "l2_hit"]
    )
    lines = []
    for quantity in wanted:
        found = facts.sources.get(quantity)
        if found is None:
            continue
        percent = found.value if found.unit == "%" and not quantity.endswith("_hit") else None
        busy = quantity.endswith("_busy")
        text = band(found.value) if busy else known["notes"].get(quantity, "")
        lines.append(Evidence(found.metric, quantity, found.value, found.unit, percent, text, found.why))
    for quantity in ("conflict_rate", "load_bytes_per_sector", "store_bytes_per_sector"):
        if quantity in facts.values:
            source = facts.sources.get(quantity)
            name = source.metric if source else "bank conflicts over shared wavefronts"
            unit = source.unit if source else "%"
            why = source.why if source else "a ratio of two counters"
            lines.append(Evidence(name, quantity, facts.values[quantity], unit, None, known["notes"][quantity], why))
    if facts.stalls is not None:
        for reason, share in facts.stalls.shares.items():
            if share >= known["least_share"]:
                text = known["reasons"].get(reason, {}).get("correct", "") or reason
                lines.append(
                    Evidence(
                        facts.stalls.metrics[reason],
                        f"stall.{reason}",
                        share,
                        "% of stalls",
                        None,
                        text,
                        facts.stalls.why,
                    )
                )
    return lines


def _cite(fact: str, facts: Facts) -> str:
    value = facts.values[fact]
    if fact.startswith("stall.") and facts.stalls is not None:
        return f"{facts.stalls.metrics[fact.removeprefix('stall.')]}: {value:.0f} % of stalls"
    if fact.startswith("place."):
        return f"{fact.removeprefix('place.')} {value:.0f} % of stalled samples"
    found = facts.sources.get(fact)
    unit = found.unit if found else "%"
    shown = f"{value:.4g}{' ' + unit if unit else ''}"
    return f"{found.metric} {shown}" if found else f"{fact} {shown}"


def _hypotheses(found: Sequence[Situation], facts: Facts) -> tuple[Hypothesis, ...]:
    result = []
    for situation in found:
        cites = [c for c in situation.entry.get("cites", ()) if c in facts.values]
        if "stall" in situation.entry:
            cites.insert(0, f"stall.{situation.entry['stall']}")
        why = "; ".join(_cite(c, facts) for c in cites)
        for entry in situation.entry["hypotheses"]:
            result.append(
                Hypothesis(situation.id, why, entry["action"], _expected(entry["impact"], facts), entry["risk"])
            )
    if not result:
        entry = rules()["unmeasured"]
        lacking = ", ".join(list(facts.missing)[:6]) or "no situation of the rubric holds"
        result.append(
            Hypothesis(
                "unmeasured",
                f"not available: {lacking}",
                entry["action"],
                "a class that can be defended",
                entry["risk"],
            )
        )
    return tuple(result[: rules()["most_hypotheses"]])


def _expected(impact: Mapping[str, Any], facts: Facts) -> str:
    if "cut" in impact:
        share = facts.values.get(f"stall.{impact['cut']}", 0.0)
        if "as" in impact:
            return f"the {share:.0f} % of stalls at {impact['cut']} {impact['as']}"
        after = share * impact["times"]
        return f"stall share of {impact['cut']} from {share:.0f} % of stalls to about {after:.0f} % of today's stalls"
    fact = impact.get("raise") or impact["lower"]
    now = facts.values.get(fact)
    name = impact.get("of") or (facts.sources[fact].metric if fact in facts.sources else fact)
    if now is None:
        return f"{name} {'up' if 'raise' in impact else 'down'} (not measured yet)"
    if "raise" in impact:
        gain = (
            f", {impact['to'] / now:.2f} times the speed at most"
            if 0 < now < impact["to"] and fact.endswith("_busy")
            else ""
        )
        return f"{name} from {now:.3g} to about {impact['to']:g}{gain}"
    return f"{name} from {now:.4g} to about {now * impact['times']:.4g} ({100 * (impact['times'] - 1):+.0f} %)"


def _edit(found: Sequence[Situation], facts: Facts, file: str, capture: Mapping[str, Any], choice: Choice,
    correct: bool | None,
) -> Edit:  # fmt: skip
    case = capture.get("shape") or f"the profiled launch of {plain_name(choice.kernel).partition('(')[0]}"
    if correct is False:
        return Edit(file, rules()["incorrect"]["edit"], case, "the results agree with the reference")
    if not found:
        entry = rules()["unmeasured"]
        lacking = ", ".join(q for q in rules()["core"] if q in facts.missing) or "gpu__time_duration.sum"
        return Edit(file, entry["edit"], case, f"{lacking}: has a value")
    entry = found[0].entry["hypotheses"][0]
    return Edit(file, entry["edit"], case, _expected(entry["impact"], facts))


def _notes(facts: Facts, view: SourceView | None, choice: Choice, correct: bool | None, done: bool) -> list[str]:
    notes = [f"Launch: {choice.why}."]
    if correct is None:
        notes.append("Correctness was not said; it is assumed.")
    elif correct is False:
        notes.append("The results are not correct: repair that before any edit for speed.")
    traps = {t for found in (*facts.sources.values(), *facts.missing.values()) for t in found.refused}
    notes += [f"Not used: {trap}." for trap in sorted(traps)]
    if view is not None:
        roles = ", ".join(f"{role} {share:.0f} %" for role, share in view.roles.items())
        notes.append(f"Stalled samples by role, guessed from the nearest telling instruction: {roles}.")
        top = view.lines[0]
        notes.append(
            f"Most stalled instruction: {top.address} {top.text} ({100 * top.samples / view.samples:.0f} %, {top.place})."
        )
    if facts.stalls is not None:
        notes.append(f"Stalls: {facts.stalls.why}.")
    if done:
        notes.append(f"Tensor pipe or DRAM is over {rules()['done_at']} % of its peak.")
    return notes


def add_findings(bundle: Bundle, made: Digest) -> Bundle:
    """The bundle with the digest among its findings."""
    rows = bundle.table("findings").to_pylist() + made.findings()
    return bundle.with_tables({"findings": rows_to_table("findings", rows)})


__all__ = [
    "NOTHING_LEFT",
    "Digest",
    "Edit",
    "Evidence",
    "Hypothesis",
    "Verdict",
    "add_findings",
    "choose",
    "digest",
    "kernels",
]
