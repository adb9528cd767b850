"""What a digest claims, each with the metric and value behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wsformat.bundle import Bundle
from wsformat.metrics import Counters
from wsformat.viewers.digest_choice import Choice
from wsformat.viewers.digest_model import Edit, Evidence, Hypothesis
from wsformat.viewers.digest_rules import Facts, Situation, band, rules
from wsformat.viewers.digest_source import SourceView, plain_name


def environment(bundle: Bundle, capture: Mapping[str, Any], counted: Counters) -> dict[str, str]:
    """GPU, driver, shapes and files; what is unknown says so."""
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


def top_stall(facts: Facts, view: SourceView | None) -> str:
    """The most-stalled reason, its share and what it means."""
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


def evidence(facts: Facts) -> list[Evidence]:
    """One entry a metric that was used."""
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


def hypotheses(found: Sequence[Situation], facts: Facts) -> tuple[Hypothesis, ...]:
    """Ranked hypotheses of the situations that hold."""
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


def edit(found: Sequence[Situation], facts: Facts, file: str, capture: Mapping[str, Any], choice: Choice,
    correct: bool | None,
) -> Edit:  # fmt: skip
    """The one next edit."""
    case = capture.get("shape") or f"the profiled launch of {plain_name(choice.kernel).partition('(')[0]}"
    if correct is False:
        return Edit(file, rules()["incorrect"]["edit"], case, "the results agree with the reference")
    if not found:
        entry = rules()["unmeasured"]
        lacking = ", ".join(q for q in rules()["core"] if q in facts.missing) or "gpu__time_duration.sum"
        return Edit(file, entry["edit"], case, f"{lacking}: has a value")
    entry = found[0].entry["hypotheses"][0]
    return Edit(file, entry["edit"], case, _expected(entry["impact"], facts))


def notes(facts: Facts, view: SourceView | None, choice: Choice, correct: bool | None, done: bool) -> list[str]:
    """Names that were not used, parked warps, assumptions."""
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
        share = 100 * top.samples / view.samples
        notes.append(f"Most stalled instruction: {top.address} {top.text} ({share:.0f} %, {top.place}).")
    if facts.stalls is not None:
        notes.append(f"Stalls: {facts.stalls.why}.")
    if done:
        notes.append(f"Tensor pipe or DRAM is over {rules()['done_at']} % of its peak.")
    return notes
