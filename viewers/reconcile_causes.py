"""Causes of a gap: patterns of several terms (a ring that is too short, roles that take turns), then single terms."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any

from wsformat.viewers.reconcile_checks import never_blocked
from wsformat.viewers.reconcile_data import Measured
from wsformat.viewers.reconcile_plan import Plan
from wsformat.viewers.reconcile_residual import Residual, Term

OFTEN = 0.5
"""Share of its waits in which a role is blocked, to be held up often."""
APART = 0.1
"""Overlap, of the union, under which two roles take turns."""


@dataclass(frozen=True)
class Cause:
    """One cause of the gap.

    Attributes:
        name: probe_effect, too_few_stages, serialised_roles, slow_producer, missing_resource, in_series,
            dependency_latency, slower_than_budget, wait_overhead, undeclared_cause, untracked_time,
            faster_than_budget, no_timeline.
        subject: role, resource or barrier.
        cycles: an iteration.
        text: what was seen.
        add: the term or edge that the model lacks.
        would_be: which kind of (b) it would be.
        needed: the evidence for that.
        resource: that it is about; '' none.
    """

    name: str
    subject: str
    cycles: float
    text: str
    add: str
    would_be: str
    needed: str
    resource: str = ""

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return {k: getattr(self, k) for k in self.__dataclass_fields__}


def causes(plan: Plan, measured: Measured, residual: Residual | None) -> list[Cause]:
    """What makes up the gap, largest first; patterns of several terms (ring, turns) before single terms."""
    if residual is None:
        return []
    patterns = [
        c for c in (_ring(plan, measured, residual.clean_gap), _turns(plan, measured, residual)) if c is not None
    ]
    single = [
        cause for cause in (_single(plan, measured, residual, term) for term in residual.terms) if cause is not None
    ]
    merged: dict[tuple[str, str], Cause] = {}
    for cause in single:
        known = merged.get((cause.name, cause.subject))
        if known is not None:
            cause = _joined(known, cause)
        merged[cause.name, cause.subject] = cause
    return patterns + sorted(merged.values(), key=lambda c: -c.cycles)


def _joined(one: Cause, two: Cause) -> Cause:
    longer = one if one.cycles >= two.cycles else two
    return Cause(
        one.name,
        one.subject,
        one.cycles + two.cycles,
        longer.text,
        longer.add,
        longer.would_be,
        longer.needed,
        longer.resource,
    )


def _ring(plan: Plan, measured: Measured, gap: float) -> Cause | None:
    """A ring whose producer and consumers both wait for each other: its round trip is longer than its stages hide."""
    for edge in measured.dependencies:
        producer, consumer, lag = edge["consumer_role"], edge["producer_role"], edge["iteration_lag"]
        if lag <= 0 or edge["producer_step"] <= 0 or producer == consumer or edge["mechanism"] == "bar_sync":
            continue
        if producer in plan.pacing and consumer in plan.pacing:
            continue  # roles that share a resource and wait for each other take turns: no ring between them
        back = [d for d in measured.dependencies if d["producer_role"] == producer and d["consumer_role"] == consumer]
        if not back or not _often(measured, producer, consumer) or not _often(measured, consumer, producer):
            continue
        best = measured.best
        if best is None:
            return None
        needed = ceil(lag * best.cycles / plan.cycles - 0.01)
        return Cause(
            "too_few_stages",
            edge["barrier"] or producer,
            gap,
            f"{producer} and {consumer} wait for each other in most iterations: {lag} stages hide "
            f"{lag} x {plan.cycles:,.0f} cycles, one round trip of a stage takes {lag * best.cycles:,.0f}",
            f"the round trip of the ring: (issue + latency + work + release) / {lag} stages; {needed} stages would "
            "hide it",
            "under-overlap",
            f"a run with more stages ({needed}): if the loop gets faster, the kernel left it",
            "ring",
        )
    return None


def _often(measured: Measured, role: str, producer: str) -> bool:
    """Whether the role is blocked in most of its waits on the barrier that this producer signals."""
    own = [r for r in measured.waits if r["role"] == role and r["producer_role"] == producer]
    barriers = {(r["span"], r["barrier"]) for r in own}
    rows = [r for r in measured.waits if r["role"] == role and (r["span"], r["barrier"]) in barriers]
    waits = sum(r["waits"] - r["waits_free"] for r in rows)
    held = sum(r["waits_producer_late"] + r["waits_in_flight"] for r in rows)
    ticks, blocked = sum(r["ticks"] for r in rows), sum(r["blocked_ticks"] for r in rows)
    return bool(waits and held > OFTEN * waits and blocked > 0.1 * ticks)


def _turns(plan: Plan, measured: Measured, residual: Residual) -> Cause | None:
    """Roles that drive a bottleneck together, wait for one another, and never work together."""
    for row in sorted(measured.waits, key=lambda r: -(r["blocked_ticks"] or 0)):
        one, two = row["role"], row["producer_role"]
        if one == two or one not in plan.pacing or two not in plan.pacing or not _often(measured, one, two):
            continue
        symmetric = any(
            d["mechanism"] == "bar_sync"
            and d["producer_role"] == two
            and d["consumer_role"] == one
            and (d["barrier"] or "") == (row["barrier"] or "")
            for d in measured.dependencies
        )
        together = measured.overlap.get((one, two), measured.overlap.get((two, one)))
        if symmetric or together is None or together > APART:
            continue
        roles = " and ".join(sorted((one, two)))
        return Cause(
            "serialised_roles",
            roles,
            residual.clean_gap,
            f"{roles} wait for one another at {row['barrier'] or row['span']} and work together for "
            f"{together * 100:.1f} % of the time that either works",
            f"the edge {row['barrier'] or row['span']} that makes {roles} take turns: their times add up",
            "serialised roles",
            f"a run in which {roles} need not take turns, or a reason why they must",
        )
    return None


def _single(plan: Plan, measured: Measured, residual: Residual, term: Term) -> Cause | None:
    if term.cycles <= 0 or term.kind in ("probe", "launch", "rest"):
        return None
    role, cycles = term.role, term.cycles
    if term.kind == "latency":
        own = term.producer == role or term.mechanism == "commit"
        return Cause(
            "dependency_latency",
            term.barrier or term.span or role,
            cycles,
            f"{cycles:,.0f} cycles an iteration pass from {term.producer}'s signal to the end of {role}'s wait"
            + (" for its own work" if own else ""),
            f"a latency entry of {role}: {term.text}",
            "avoidable dependency",
            "a run in which the wait comes later (one more in flight) or the edge is gone",
            "latency",
        )
    if term.kind == "untracked":
        if role in never_blocked(measured) and role not in plan.pacing:
            return Cause(
                "slow_producer",
                role,
                cycles,
                f"{role} is never blocked, others wait for it, and {cycles:,.0f} of its cycles an iteration bear no "
                "stamp",
                f"what {role} does between its stamps: stamp it, then budget it",
                "under-overlap",
                f"stamps in {role}'s untracked time that show work which could be shared, moved or left out",
            )
        return Cause(
            "untracked_time",
            role,
            cycles,
            f"{cycles:,.0f} cycles an iteration of {role} on the path bear no stamp",
            f"what {role} does between its stamps: stamp it, then budget it",
            "under-overlap",
            f"stamps there that show work which could overlap with {' and '.join(plan.bottleneck)}",
        )
    if term.kind == "wait":
        known = term.verdict not in ("other", "unknown")
        return Cause(
            "wait_overhead" if known else "undeclared_cause",
            term.barrier or term.span,
            cycles,
            f"{cycles:,.0f} cycles an iteration: {term.text}",
            f"the cost of a wait that is satisfied, in {role}"
            if known
            else f"the edge that holds {role} at {term.span}",
            "avoidable dependency",
            "a run with fewer waits" if known else "the edge, declared and measured",
        )
    return _work(plan, measured, residual, term)


def _work(plan: Plan, measured: Measured, residual: Residual, term: Term) -> Cause:
    role, resource, cycles = term.role, term.resource, term.cycles
    bound = " and ".join(plan.bottleneck)
    hides = measured.spans.get((role, term.span), {}).get("contains_wait")
    inside = "; that span hides a wait" if hides else ""
    on_path = term.raw if term.kind == "other_work" else term.raw + plan.cycles
    if term.kind == "other_work" and (resource, role) not in plan.parts:
        subject = resource or f"{role} {term.span}"
        return Cause(
            "missing_resource",
            subject,
            cycles,
            f"{role} {term.span} takes {cycles:,.0f} cycles an iteration of the path; the budget has no "
            f"{subject} for {role}{inside}",
            f"an entry for {subject}, driven by {role}",
            "tile choice",
            f"a budget with {subject} that a run still falls short of",
            resource,
        )
    # A span stretches while other roles use the resource too: the total is what it may take.
    budget = plan.totals.get(resource, 0.0)
    if term.kind == "other_work" and on_path <= budget * 1.1:
        return Cause(
            "in_series",
            f"{role} {term.span}",
            cycles,
            f"{role} {term.span} ({resource}) takes {on_path:,.0f} cycles as budgeted, but one after the other "
            f"with {bound}",
            f"an edge between {resource} and {bound}: they run in series",
            "under-overlap",
            f"a run in which {resource} and {bound} overlap (another tile in flight, another warpgroup)",
            resource,
        )
    return Cause(
        "slower_than_budget",
        f"{role} {term.span}",
        cycles,
        f"{role} {term.span} takes {cycles:,.0f} cycles an iteration more than its budget of "
        f"{budget or plan.cycles:,.0f}{inside}",
        f"what else {term.span} does, or a lower rate of {resource or bound} for this shape",
        "tile choice",
        f"another tile or instruction shape with the same work that takes less on {resource or bound}",
        resource,
    )
