"""Step 5 of a reconciliation: does the model agree, is it incomplete (a), or does the kernel leave performance (b).

The default is (a): a difference shows that the model lacks a term, not that the kernel could do without it. (b) needs
evidence of its own: the budget's author held something for possible that the kernel does not do, or another
configuration with the same budget is faster. What evidence would be needed is said with every (a).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wsformat.viewers.reconcile_causes import Cause
from wsformat.viewers.reconcile_checks import Check
from wsformat.viewers.reconcile_data import Measured
from wsformat.viewers.reconcile_plan import Plan
from wsformat.viewers.reconcile_residual import Residual

TOLERANCE = 0.05
FASTER = 0.02
"""A loop that is faster than its budget by more than this proves the budget wrong."""

AGREE, INCOMPLETE, LEAVES = "agree", "model incomplete (a)", "kernel leaves performance (b)"
UNJUDGED = "not judged"
"""There is nothing to compare: no cycles an iteration, no counters."""


@dataclass(frozen=True)
class Verdict:
    """The verdict.

    Attributes:
        verdict: AGREE, INCOMPLETE, LEAVES or UNJUDGED.
        cause: the main one; None when there is no gap.
        text: for people, with the numbers.
        needed: evidence that (b) would need; '' for other verdicts.
        confidence: 0 to 1; doubts: what lowers it.
    """

    verdict: str
    cause: Cause | None
    text: str
    needed: str
    confidence: float
    doubts: tuple[str, ...]


def judge(
    plan: Plan,
    measured: Measured,
    residual: Residual | None,
    sound: Sequence[Check],
    ranked: Sequence[Check],
    found: Sequence[Cause],
    faster: Mapping[str, float] | None = None,
    tolerance: float = TOLERANCE,
) -> Verdict:
    """The verdict.

    Args:
        plan, measured, residual: as collected.
        sound, ranked: checks of steps 1 and 2.
        found: causes, main one first.
        faster: other configurations with the same budget, and their cycles an iteration.
        tolerance: share over the budget that still agrees.
    """
    doubts, confidence = _doubts(sound, ranked, residual, found, measured)
    best = measured.best
    if best is None:
        return _by_counters(plan, measured, ranked, doubts)
    share = plan.cycles / best.cycles
    bound = " and ".join(plan.bottleneck)
    how = "without stamps, by slope" if measured.clean else f"with stamps, by {best.method}; what they cost is unknown"
    speed = (
        f"The loop takes {best.cycles:,.1f} cycles an iteration ({how}): {share * 100:.1f} % of the {bound} budget of "
        f"{plan.cycles:,.0f}."
    )
    if best.cycles < plan.cycles * (1 - FASTER):
        cause = Cause(
            "faster_than_budget",
            bound,
            best.cycles - plan.cycles,
            f"the loop is {(1 - 1 / share) * -100:.1f} % faster than the budget allows",
            f"the work or the rate of {bound} in the budget is wrong",
            "",
            "",
        )
        return Verdict(
            INCOMPLETE, cause, f"{speed} No loop is faster than its budget: {cause.add}.", "", confidence, doubts
        )
    if best.cycles <= plan.cycles * (1 + tolerance):
        return _agrees(plan, measured, ranked, speed, confidence, doubts)
    main = found[0] if found else None
    if measured.clean is None:
        speed += " Run it without stamps before blaming the kernel or the model: the gap may be what the stamps cost."
    text = f"{speed} {best.cycles - plan.cycles:,.0f} cycles an iteration are not in the model."
    if main is None:
        return Verdict(
            INCOMPLETE,
            None,
            f"{text} The timeline does not say where they are.",
            "a timeline of the loop",
            confidence,
            doubts,
        )
    text += f" Main cause: {main.name.replace('_', ' ')} ({main.subject}): {main.text}."
    proven = _proof(plan, measured, main, faster or {})
    if proven:
        return Verdict(LEAVES, main, f"{text} That is {main.would_be}: {proven}.", "", confidence, doubts)
    text += f" Add to the model: {main.add}."
    return Verdict(INCOMPLETE, main, text, f"{main.would_be}: {main.needed}", confidence, doubts)


def _agrees(
    plan: Plan, measured: Measured, ranked: Sequence[Check], speed: str, confidence: float, doubts: tuple[str, ...]
) -> Verdict:
    cause = None
    text = f"{speed} The model explains the loop."
    clean, stamped = measured.clean, measured.with_stamps
    if clean and stamped and abs(stamped.cycles / clean.cycles - 1) >= 0.01:
        seen = plan.cycles / stamped.cycles
        text += (
            f" With the stamps it takes {stamped.cycles:,.1f} and looks {seen * 100:.0f} %: that is what the stamps "
            f"cost ({stamped.cycles - clean.cycles:+,.1f} cycles an iteration), not the kernel."
        )
        cause = Cause(
            "probe_effect", "stamps", stamped.cycles - clean.cycles, "the stamps slow the loop down", "", "", ""
        )
    against = [check for check in ranked if check.outcome == "fail"]
    if against:
        doubts = (*doubts, "direction: " + "; ".join(check.text for check in against))
        confidence = max(0.1, confidence - 0.2)
    return Verdict(AGREE, cause, text, "", confidence, doubts)


def _by_counters(plan: Plan, measured: Measured, ranked: Sequence[Check], doubts: tuple[str, ...]) -> Verdict:
    """Without cycles an iteration, idle by counters is all there is: stored, and not explained away."""
    seen = {r: 1 - busy for r, (busy, _) in measured.counted.items()}
    if not seen:
        return Verdict(
            UNJUDGED,
            None,
            "Neither cycles an iteration nor counters: nothing to compare. " + " ".join(f"{d}." for d in doubts),
            "",
            0.1,
            doubts,
        )
    resource = next((b for b in plan.bottleneck if b in seen), next(iter(seen)))
    unexplained = seen[resource] - plan.idle(resource)
    ratios = [check for check in ranked if check.name.startswith("ratio")]
    good = [check for check in ratios if check.outcome == "ok"]
    text = (
        f"By counters {resource} idles {seen[resource] * 100:.1f} %, predicted at least "
        f"{plan.idle(resource) * 100:.1f} %."
    )
    text += f" {len(good)} of {len(ratios)} ratios agree." if ratios else ""
    if unexplained <= TOLERANCE:
        return Verdict(AGREE, None, text, "", 0.5, doubts)
    cause = Cause(
        "no_timeline",
        resource,
        0.0,
        f"{unexplained * 100:.1f} % idle of {resource} has no term",
        "a latency or dependency term; only a timeline shows which",
        "under-overlap",
        "a timeline of the roles",
        resource,
    )
    return Verdict(
        INCOMPLETE,
        cause,
        f"{text} {unexplained * 100:.1f} % stay unexplained.",
        f"{cause.would_be}: {cause.needed}",
        0.4,
        doubts,
    )


def _proof(plan: Plan, measured: Measured, cause: Cause, faster: Mapping[str, float]) -> str:
    """Why this gap is the kernel's, '' when nothing shows it."""
    best = measured.best
    if faster and best is not None:
        name = min(faster, key=lambda key: faster[key])
        return f"with the same budget {name} takes {faster[name]:,.1f} cycles an iteration, this one {best.cycles:,.1f}"
    if cause.name == "serialised_roles":
        for one, two in plan.overlap:
            if f"{min(one, two)} and {max(one, two)}" == cause.subject:
                return f"the budget says that nothing forces {one} and {two} to take turns"
    if cause.name == "too_few_stages" and plan.stages:
        lags = [
            d["iteration_lag"] for d in measured.dependencies if (d["barrier"] or d["consumer_role"]) == cause.subject
        ]
        if lags and max(lags) < plan.stages:
            return f"the budget counts on {plan.stages} stages, the kernel has {max(lags)}"
    return ""


def _doubts(
    sound: Sequence[Check],
    ranked: Sequence[Check],
    residual: Residual | None,
    found: Sequence[Cause],
    measured: Measured,
) -> tuple[tuple[str, ...], float]:
    confidence, doubts = 0.9, []
    costs = {
        "device": 0.5,
        "perturbation": 0.3,
        "completeness": 0.2,
        "waits judged": 0.2,
        "steady window": 0.2,
        "roles": 0.2,
    }
    for check in sound:
        # A known perturbation is accounted for; an unknown one is not.
        bad = check.outcome in ("fail", "unknown") or (check.outcome == "warn" and check.name != "perturbation")
        bad = bad or (check.name == "perturbation" and check.outcome == "warn" and measured.clean is None)
        if bad:
            confidence -= costs.get(check.name, 0.05)
            doubts.append(check.text)
    if residual is None:
        confidence -= 0.2
    elif found and residual.gap > 0:
        gap, stamps = residual.clean_gap, residual.gap - residual.clean_gap
        if gap > 0 and found[0].cycles < 0.5 * gap:
            confidence -= 0.2
            doubts.append(f"the main cause is {found[0].cycles:,.0f} of {gap:,.0f} cycles")
        if gap > TOLERANCE * residual.predicted and stamps > gap:
            confidence -= 0.2
            doubts.append(f"the stamps cost {stamps:,.0f} cycles, the gap is {gap:,.0f}: where it lies is uncertain")
    return tuple(doubts), max(0.1, round(confidence, 2))
