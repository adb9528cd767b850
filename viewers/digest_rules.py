"""The rules of a digest: facts, bottleneck class, situations; the rules are data, ``schema/digest_rules.json``."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Protocol

from wsformat.metrics import Counters, Missing, Resolved, Stalls, chip_of, families
from wsformat.tables import read_schema_json

OPERATORS = {">=": operator.ge, "<": operator.lt, ">": operator.gt, "<=": operator.le}
Condition = Sequence[Any]


@cache
def rules() -> dict[str, Any]:
    """``schema/digest_rules.json``."""
    data: dict[str, Any] = read_schema_json("digest_rules.json")
    return data


@dataclass(slots=True)
class Facts:
    """Everything that rules may ask for.

    Attributes:
        values: number of each fact.
        sources: the resolved quantity behind a fact, where there is one.
        missing: quantities without a value.
        stalls: composition that counts (source page before counters), None without one.
        stalls_missing: why there is none.
    """

    values: dict[str, float] = field(default_factory=dict)
    sources: dict[str, Resolved] = field(default_factory=dict)
    missing: dict[str, Missing] = field(default_factory=dict)
    stalls: Stalls | None = None
    stalls_missing: str = ""

    def holds(self, conditions: Sequence[Condition]) -> bool:
        """All conditions hold; one about a missing fact does not."""
        return all(fact in self.values and OPERATORS[op](self.values[fact], number) for fact, op, number in conditions)


class Placed(Protocol):
    """Stalled samples by reason and by place, as a source page gives them."""

    @property
    def stalls(self) -> Stalls: ...  # noqa: D102

    @property
    def places(self) -> Mapping[str, float]: ...  # noqa: D102


def gather(counters: Counters, view: Placed | None = None) -> Facts:
    """Facts of one launch.

    Args:
        counters: of the launch.
        view: from a source page, when there is one: its stall composition counts before the counters' own.
    """
    facts = Facts()
    for quantity in families()["quantities"]:
        found = counters.resolve(quantity)
        if isinstance(found, Resolved):
            facts.values[quantity] = found.value
            facts.sources[quantity] = found
        else:
            facts.missing[quantity] = found
    own = counters.stalls()
    facts.stalls = view.stalls if view is not None else own if isinstance(own, Stalls) else None
    if isinstance(own, Missing):
        facts.stalls_missing = own.why
    if facts.stalls is not None:
        facts.values |= {f"stall.{reason}": share for reason, share in facts.stalls.shares.items()}
    facts.values |= {f"place.{place}": share for place, share in (view.places if view else {}).items()}
    facts.values["has_source"] = float(view is not None)
    facts.values["warpgroup_mma"] = float(chip_of(counters.arch) in rules()["warpgroup_mma"])
    _derive(facts)
    return facts


def _derive(facts: Facts) -> None:
    values = facts.values
    if values.get("shared_wavefronts", 0) > 0 and "bank_conflicts" in values:
        values["conflict_rate"] = 100 * values["bank_conflicts"] / values["shared_wavefronts"]
    if "l2_busy" in values:
        values["l2_over_dram"] = values["l2_busy"] - values.get("dram_busy", 0.0)
        if "l1_busy" in values:
            values["l1_over_l2"] = values["l1_busy"] - max(values["l2_busy"], values.get("dram_busy", 0.0))
    known = [q for group in rules()["groups"] for q in group["quantities"] if q in values and q != "issue_active"]
    busiest = [values[q] for q in [*known, *rules()["unnamed"]] if q in values]
    if busiest:
        values["busiest"] = max(busiest)
    alu = [values[q] for q in ("alu_busy", "fma_busy", "xu_busy", "fp64_busy") if q in values]
    if alu:
        values["alu_group"] = max(alu)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A bottleneck class and what it rests on.

    Attributes:
        bottleneck: one of the classes.
        why: one sentence.
        pressures: per group (quantity, percent scaled so that 60 is the bound), most first.
        doubts: what lowers the confidence, with a weight.
    """

    bottleneck: str
    why: str
    pressures: tuple[tuple[str, str, float], ...]
    doubts: tuple[tuple[int, str], ...]


def classify(facts: Facts) -> Verdict:
    """Bottleneck class from the utilisation of pipes and memory; stall reasons are not asked."""
    known = rules()
    bound, margin = known["bound_at"], known["margin"]
    pressures = []
    for group in known["groups"]:
        named = [(facts.values[q] * bound / at, q) for q, at in group["quantities"].items() if q in facts.values]
        if named:
            most, quantity = max(named)
            pressures.append((group["class"], quantity, most))
    pressures.sort(key=lambda item: -item[2])
    doubts = list(_doubts(facts))
    if facts.holds(known["launch_overhead"]):
        duration = facts.values["duration"] / 1000
        why = f"{duration:.3g} us a launch with nothing over {facts.values['busiest']:.0f} % of its peak"
        return Verdict("Launch-overhead", why, tuple(pressures), tuple(doubts))
    unnamed = [(facts.values[q], q) for q in known["unnamed"] if q in facts.values]
    if unnamed and (not pressures or max(unnamed)[0] > pressures[0][2] + margin) and max(unnamed)[0] >= bound:
        value, quantity = max(unnamed)
        doubts.append((3, f"{quantity} is {known['unnamed'][quantity]}: which one is not in this report"))
        why = f"{quantity} {value:.1f} % with no named pipe or memory near it"
        return Verdict("Mixed", why, tuple(pressures), tuple(doubts))
    sides = rules()["sides"]
    blind = [side for side, quantities in sides.items() if not any(q in facts.values for q in quantities)]
    if (not pressures or pressures[0][2] < bound) and blind:
        doubts.append((3, f"no utilisation of {' or '.join(blind)} in this report"))
        return Verdict("Mixed", "nothing tells what the kernel is bound by", tuple(pressures), tuple(doubts))
    if not pressures or pressures[0][2] < bound:
        shown = [(value, q) for _, q, value in pressures[:1]] + unnamed
        top = f"{max(shown)[1]} {facts.values[max(shown)[1]]:.1f} %"
        if bound - max(shown)[0] < margin / 2:
            doubts.append((1, f"{top} is close to the {bound} % from which a unit counts as the bound"))
        why = f"no pipe or memory reaches {bound} % of its peak (most: {top})"
        return Verdict("Latency-bound", why, tuple(pressures), tuple(doubts))
    first = pressures[0]
    rivals = [p for p in pressures[1:] if p[2] >= bound and first[2] - p[2] < margin]
    told = f"{first[1]} {facts.values[first[1]]:.1f} % of its peak"
    if rivals:
        other = ", ".join(f"{q} {facts.values[q]:.1f} %" for _, q, _ in rivals)
        return Verdict("Mixed", f"{told}, {other} within {margin} points", tuple(pressures), tuple(doubts))
    next_best = f", the next group {pressures[1][1]} {facts.values[pressures[1][1]]:.1f} %" if pressures[1:] else ""
    return Verdict(first[0], told + next_best, tuple(pressures), tuple(doubts))


def _doubts(facts: Facts) -> list[tuple[int, str]]:
    known = rules()
    lacking = [q for q in known["core"] if q in facts.missing]
    doubts = []
    main = [q for q in lacking if q in ("tensor_busy", "dram_busy")]
    if main:
        doubts.append((2, f"missing: {', '.join(main)}"))
    if set(lacking) - set(main):
        doubts.append((1, f"missing: {', '.join(q for q in lacking if q not in main)}"))
    if facts.stalls is None:
        doubts.append((1, "missing: stall reasons"))
    elif facts.stalls.family != "source_page" and facts.stalls.top in known["ambiguous_stalls"]:
        told = f"the largest stall reason, {facts.stalls.top}, can be parked warps or the drain of wgmma"
        doubts.append((1, f"{told}: no source page"))
    return doubts


def confidence(doubts: Sequence[tuple[int, str]]) -> tuple[str, str]:
    """High, Medium or Low, and why."""
    weight = sum(w for w, _ in doubts)
    level = "High" if weight == 0 else "Medium" if weight <= 2 else "Low"
    return level, "; ".join(text for _, text in doubts) or "every core metric is there and the classes are well apart"


@dataclass(frozen=True, slots=True)
class Situation:
    """A situation of the rubric that holds, with its weight."""

    id: str
    entry: Mapping[str, Any]
    weight: float


def situations(facts: Facts, bottleneck: str) -> list[Situation]:
    """Situations that hold, best supported first: those of the class, then stall reasons by their share."""
    found = []
    least = rules()["least_share"]
    for place, entry in enumerate(rules()["situations"]):
        if "class" in entry and bottleneck not in entry["class"]:
            continue
        if not facts.holds(entry.get("when", ())):
            continue
        if "any" in entry and not any(facts.holds([c]) for c in entry["any"]):
            continue
        if "stall" in entry:
            share = facts.values.get(f"stall.{entry['stall']}", 0.0)
            if share < least:
                continue
            found.append(Situation(entry["id"], entry, share))
        else:
            found.append(Situation(entry["id"], entry, 1000.0 - place))
    return sorted(found, key=lambda s: -s.weight)


def band(value: float) -> str:
    """What a percentage of peak says."""
    for least, text in rules()["bands"]:
        if value >= least:
            return str(text)
    return ""
