"""Steps 1 and 2 of a reconciliation: is the measurement sound, and do direction and ranking agree."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from wsformat.errors import BadRequest
from wsformat.hardware import dtype_name, lookup, plain
from wsformat.viewers.reconcile_data import ALIKE, Measured
from wsformat.viewers.reconcile_plan import Plan

STABLE = 0.01
"""Spread between quartiles of repeated launches, over their median, that is wanted."""
QUIET = 0.01
"""Perturbation that is too small to matter."""
NEVER = 0.01
"""Blocked share of a role that is never held up."""
CLOSE = 0.02
"""Difference of shares that ranks nothing."""
RATIO = 0.1
"""Difference of a ratio of busy times from the predicted one that is wanted."""


@dataclass(frozen=True)
class Check:
    """One check and its outcome.

    Attributes:
        name: short.
        outcome: ok, warn, fail or unknown.
        text: one line with the numbers.
        value, expected, unit: where there is a number.
        evidence: view or table, row, value.
    """

    name: str
    outcome: str
    text: str
    value: float | None = None
    expected: float | None = None
    unit: str = ""
    evidence: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return {k: getattr(self, k) for k in self.__dataclass_fields__} | {"evidence": dict(self.evidence)}


def soundness(plan: Plan, measured: Measured) -> list[Check]:
    """Step 1: completeness, repeats, perturbation, steady window, clock, and whether roles and waits can be judged."""
    if measured.launch < 0:
        text = "no timeline: no role can be judged, and a gap has no place"
        repeats = [check for check in _repeats(measured) if check.evidence]
        found = [_complete(measured), _device(plan, measured), *repeats, Check("timeline", "unknown", text)]
        return [check for check in found if check is not None]
    found = [_complete(measured), _device(plan, measured), *_repeats(measured), _perturbed(measured)]
    found += [_steady(measured), _alike(measured)]
    if measured.counted_on:
        text = f"the counters are of launches of {measured.counted_on}: their busy shares are those of another run"
        found.append(Check("counters", "warn", text))
    return [check for check in [*found, _roles(plan, measured), _judged(measured)] if check is not None]


def _complete(measured: Measured) -> Check:
    capture = measured.capture
    lost = max(0, capture["lost_events"])
    at = {"table": "captures", "row": {"capture_id": capture["capture_id"]}, "value": capture["completeness"]}
    if lost or capture["completeness"] in ("truncated", "sampled"):
        text = f"the capture is {capture['completeness']}{f', {lost:,} records lost' if lost else ''}"
        return Check(
            "completeness", "warn", f"{text}: shares hold for what was recorded", float(lost), 0.0, "record", at
        )
    if measured.orphans:
        text = f"{measured.orphans:,} points made no span: their time counts as untracked"
        return Check(
            "completeness", "warn", text, float(measured.orphans), 0.0, "", {"view": "orphan"} | {"row": at["row"]}
        )
    known = capture["completeness"] == "complete"
    text = "the capture is complete" if known else "whether the capture is complete is unknown"
    return Check("completeness", "ok" if known else "unknown", text, evidence=at)


def _device(plan: Plan, measured: Measured) -> Check | None:
    """The prediction is for the GPU and the operands that were measured; None when one of the two says nothing."""
    capture = measured.capture
    said, ran = plan.facts["device"], capture["device"] or ""
    here = {"table": "captures", "row": {"capture_id": capture["capture_id"]}, "value": ran}
    if said and ran:
        try:
            same = lookup(said).key == lookup(ran).key
        except BadRequest:
            same = plain(said) == plain(ran)
        if not same:
            text = f"the prediction is for {said}, the kernel ran on {ran}: the rates are those of another GPU"
            return Check("device", "fail", text, evidence=here)
    one, two = plan.dtype, capture["dtype"] or ""
    if one and two and dtype_name(one) != dtype_name(two):
        return Check("device", "warn", f"the prediction is for {one}, the capture says {two}", evidence=here)
    return Check("device", "ok", f"predicted for {said}, measured on {ran}", evidence=here) if said and ran else None


def _repeats(measured: Measured) -> list[Check]:
    found = []
    for kind, said in (("clean", "clean"), ("stamped", "stamped")):
        groups = [g for g in measured.groups if (g["kind"] == "clean") == (kind == "clean")]
        many = [g for g in groups if g["launches"] >= 3]
        if not many:
            count = max((g["launches"] for g in groups), default=0)
            text = f"{count} {said} launch{'' if count == 1 else 'es'} of a kind: nothing is known about their spread"
            found.append(Check(f"repeats, {kind}", "unknown", text))
            continue
        worst = max(many, key=lambda g: (g["q3"] - g["q1"]) / g["middle"])
        spread, whole = (
            (worst["q3"] - worst["q1"]) / worst["middle"],
            (worst["most"] - worst["least"]) / worst["middle"],
        )
        text = (
            f"{worst['launches']} {said} launches of {worst['trip_count']} iterations: {spread * 100:.2f} % between "
            f"quartiles, {whole * 100:.2f} % between least and most"
        )
        row = {n: worst[n] for n in ("kind", "pass", "trip_count", "grid_ctas")}
        at = {"view": "launch_lifetime", "row": row, "value": spread}
        found.append(Check(f"repeats, {kind}", "ok" if spread < STABLE else "warn", text, spread, STABLE, "1", at))
    return found


def _perturbed(measured: Measured) -> Check:
    share = measured.perturbation
    if share is None:
        text = "no clean launches to compare with: what the stamps cost is unknown, so a gap may be theirs"
        return Check("perturbation", "unknown", text)
    row = measured.perturbation_row
    text = (
        f"{share * 100:+.1f} % by {row['method']} ({row['ticks']:,.1f} with stamps, {row['clean_ticks']:,.1f} without, "
        f"{row['launches']} and {row['clean_launches']} launches)"
    )
    if measured.clean is None:
        text += "; there is no clean slope (a second trip count would give one), so the loop is judged with its stamps"
    elif abs(share) >= QUIET:
        text += ": the kernel is judged by its clean launches"
    at = {"view": "perturbation", "row": {n: row[n] for n in ("capture_id", "kind", "pass", "method")}, "value": share}
    return Check("perturbation", "ok" if abs(share) < QUIET else "warn", text, share, 0.0, "1", at)


def _steady(measured: Measured) -> Check | None:
    if measured.scale <= 0:
        text = f"the stamps are in {measured.unit or 'no known unit'}: cycles an iteration need the SM clock"
        return Check("steady window", "unknown", f'{text} ("clock_mhz" in the budget)')
    if not measured.loop:
        return Check("steady window", "unknown", "too few iterations for a steady window: start and end are mixed in")
    longest, shortest = (f(s.cycles for s in measured.loop.values()) for f in (max, min))
    text = f"start to start {shortest:,.1f} to {longest:,.1f} cycles over {len(measured.loop)} roles, ends left out"
    if longest > shortest * 1.05:
        return Check("steady window", "warn", f"{text}: roles of one loop should agree; are the budget's steps right?")
    return Check("steady window", "ok", text, longest, None, "cycle", measured.loop[next(iter(measured.loop))].evidence)


def _alike(measured: Measured) -> Check | None:
    """Start to start is a telescoping sum: it and the slope of launches like this one are the same but for the ends."""
    loop, slope = measured.timeline, measured.stamped
    if loop is None or slope is None:
        return None
    differ = loop.cycles / slope.cycles - 1
    text = (
        f"start to start {loop.cycles:,.1f}, slope of the stamped launches {slope.cycles:,.1f} ({differ * 100:+.1f} %)"
    )
    if abs(differ) > ALIKE:
        text += ": they are not like this launch (other stamps? another kernel?), so their perturbation is not its own"
    at = dict(slope.evidence)
    return Check(
        "methods agree", "ok" if abs(differ) <= ALIKE else "warn", text, loop.cycles, slope.cycles, "cycle", at
    )


def _roles(plan: Plan, measured: Measured) -> Check | None:
    wanted = {role for _, role in plan.parts}
    if not wanted:
        return None
    absent = sorted(wanted - set(measured.roles))
    if not absent:
        return Check("roles", "ok", f"every role of the budget has stamps: {', '.join(sorted(wanted))}")
    there = ", ".join(sorted(measured.roles)) or "none"
    return Check("roles", "warn", f"no stamps of {', '.join(absent)}; the timeline has {there}")


def _judged(measured: Measured) -> Check | None:
    extent = sum(r["extent"] or 0 for r in measured.roles.values())
    if not extent:
        return None
    share = sum(r["unjudged"] or 0 for r in measured.roles.values()) / extent
    text = f"{share * 100:.1f} % of the roles' time are waits whose signal is not known"
    outcome = "ok" if share < 0.05 else "warn"
    if outcome == "warn":
        text += ": declare their edges, with their lag"
    return Check("waits judged", outcome, text, share, 0.0, "1", {"view": "role_summary", "row": {}, "value": share})


def direction(plan: Plan, measured: Measured) -> list[Check]:
    """Step 2: least idle, a role that is never blocked, ranking, and ratios that need no clock."""
    blocked = {
        name: row["blocked_share"]
        for name, row in measured.roles.items()
        if row["waits"] and row["blocked_share"] is not None and (row["unjudged_share"] or 0) < 0.5
    }
    found = [_least_idle(plan, measured, blocked), _never_blocked(plan, measured, blocked), _ranking(plan, blocked)]
    return [check for check in found if check is not None] + _ratios(plan, measured)


def _row(measured: Measured, role: str) -> dict[str, Any]:
    row = {"capture_id": measured.capture["capture_id"], "launch": measured.launch, "role": role}
    return {"view": "role_summary", "row": row, "value": measured.roles[role]["blocked_share"]}


def _least_idle(plan: Plan, measured: Measured, blocked: Mapping[str, float]) -> Check | None:
    pacing = {role: blocked[role] for role in plan.pacing if role in blocked}
    others = {role: share for role, share in blocked.items() if role not in pacing}
    bound = " and ".join(plan.bottleneck)
    if not pacing or not others:
        if not blocked:
            return None
        return Check("bottleneck has the least idle", "unknown", f"no roles to compare: {bound} is driven by no other")
    worst, least = max(pacing, key=lambda r: pacing[r]), min(others, key=lambda r: others[r])
    listed = ", ".join(f"{role} {share * 100:.1f} %" for role, share in sorted(blocked.items(), key=lambda x: x[1]))
    good = pacing[worst] <= others[least] + CLOSE
    text = f"blocked: {listed}. " + (
        f"What drives {bound} is blocked least, as predicted"
        if good
        else f"{least} is blocked less than {worst}, which drives {bound}"
    )
    at = _row(measured, worst if good else least)
    return Check("bottleneck has the least idle", "ok" if good else "fail", text, pacing[worst], others[least], "1", at)


def _never_blocked(plan: Plan, measured: Measured, blocked: Mapping[str, float]) -> Check | None:
    named = [role for role in never_blocked(measured) if role in blocked]
    other = [role for role in named if role not in plan.pacing]
    if other:
        role = other[0]
        bound = " and ".join(plan.bottleneck)
        text = f"{role} is never blocked and others wait for it: {role} paces the kernel, not {bound}"
        return Check("never blocked", "fail", text, blocked[role], None, "1", _row(measured, role))
    if named:
        text = f"{' and '.join(named)}: never blocked, and others wait for it: it paces the kernel, as predicted"
        return Check("never blocked", "ok", text, blocked[named[0]], None, "1", _row(measured, named[0]))
    return Check("never blocked", "unknown", "every role that others wait for is blocked itself") if blocked else None


def never_blocked(measured: Measured) -> list[str]:
    """Roles that are never held up while others are held up by them."""
    waited_for: dict[str, float] = {}
    for wait in measured.waits:
        producer = wait["producer_role"]
        if producer and producer != wait["role"]:
            waited_for[producer] = waited_for.get(producer, 0.0) + float(wait["blocked_ticks"] or 0)
    found = []
    for role, row in measured.roles.items():
        held = row["blocked_share"] or 0.0
        extent = float(row["extent"] or 0)
        if row["waits"] and held < NEVER and extent and waited_for.get(role, 0.0) > CLOSE * extent:
            found.append(role)
    return found


def _ranking(plan: Plan, blocked: Mapping[str, float]) -> Check | None:
    roles = [role for role in blocked if any(driver == role for _, driver in plan.parts)]
    idle = {role: plan.role_idle(role) for role in roles}
    agree, against, pairs = 0, [], 0
    for a, b in itertools.combinations(roles, 2):
        predicted, seen = idle[a] - idle[b], blocked[a] - blocked[b]
        if abs(predicted) < CLOSE or abs(seen) < CLOSE:
            continue
        pairs += 1
        if (predicted > 0) == (seen > 0):
            agree += 1
        else:
            against.append(f"{a} and {b}")
    if not pairs:
        return Check("ranking", "unknown", "no two roles of the budget differ enough to be ranked") if roles else None
    text = f"{agree} of {pairs} pairs of roles rank as predicted" + (f"; not {', '.join(against)}" if against else "")
    return Check("ranking", "ok" if not against else "fail", text, agree / pairs, 1.0, "1")


def _ratios(plan: Plan, measured: Measured) -> list[Check]:
    """Ratios of busy cycles by counters: no clock and no number of cycles is needed."""
    found = []
    counted = {r: v for r, v in measured.counted.items() if v[0] > 0 and plan.totals.get(r)}
    for resource in counted:
        other = next((b for b in plan.bottleneck if b in counted and b != resource), None)
        if other is None or resource in plan.bottleneck:
            continue
        predicted = plan.totals[resource] / plan.totals[other]
        seen = counted[resource][0] / counted[other][0]
        text = f"{resource} over {other}: {seen:.3f} by counters, {predicted:.3f} predicted"
        if len({counted[r][1].endswith("_active") for r in (resource, other)}) > 1:
            text += " (one of all elapsed cycles, one of active ones)"
        good = abs(seen / predicted - 1) <= RATIO
        where = {"table": "metrics", "row": {"metric": [counted[resource][1], counted[other][1]]}, "value": seen}
        found.append(Check(f"ratio {resource}/{other}", "ok" if good else "warn", text, seen, predicted, "1", where))
    return found
