"""The gap between measured and predicted cycles an iteration, term by term; the terms add up to it.

The critical path fills a window of the CTA without gap or overlap. Cut to the steady window of one lane, its ticks over
the iterations in it are the loop's cycles an iteration, start to start. So

    measured - predicted = (work of the bottleneck's roles on the path - predicted) + work of other roles
                           + dependency latency + waits + untracked time

and each term has its place on the path. What the stamps cost is in these terms too. Where clean launches say how much
that is, two terms take it out: `probe`, the slope with stamps minus the slope without, and `launch`, this launch's loop
minus the slope of the stamped launches (small, when they are alike). Together they are taken off where stamps can lie:
first untracked time, then waits that were satisfied, then work, then latency; what is left adds up to the clean gap.
Where it is not enough, or the stamps made the kernel faster, `rest` closes the sum. Fill and drain are no part
of a steady window; they are told apart as fixed cost of the CTA.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from wsformat.bundle import Bundle
from wsformat.critical_path import critical_path
from wsformat.viewers.reconcile_data import Measured
from wsformat.viewers.reconcile_plan import Ask, Plan

ORDER = ("untracked", "wait", "work", "other_work", "latency")
"""Where the cost of stamps is taken off, first to last."""


@dataclass
class Term:
    """One term of the gap.

    Attributes:
        kind: probe, launch, work (of roles that drive the bottleneck, over the budget), other_work, latency, wait,
            untracked or rest.
        cycles: an iteration; what the stamps cost taken off.
        raw: as on the path, before that.
        role, barrier, producer, mechanism, verdict, resource: of the part of the path; '' not applicable.
        text: for people.
    """

    kind: str
    cycles: float
    raw: float
    role: str = ""
    barrier: str = ""
    producer: str = ""
    mechanism: str = ""
    verdict: str = ""
    resource: str = ""
    span: str = ""
    lag: int = 0
    text: str = ""

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return {k: getattr(self, k) for k in self.__dataclass_fields__}


@dataclass(frozen=True)
class Residual:
    """The gap and its terms.

    Attributes:
        measured: cycles an iteration of the window, start to start.
        predicted: of the bottleneck.
        terms: they add up to measured - predicted.
        role: whose steady window it is; iterations: of the budget's unit in it.
        fixed: cycles of a CTA outside the loop (fill, drain, prologue, epilogue), None unknown.
        evidence: where the window lies.
    """

    measured: float
    predicted: float
    terms: tuple[Term, ...]
    role: str
    iterations: float
    fixed: float | None
    evidence: Mapping[str, Any] = field(default_factory=dict)

    @property
    def gap(self) -> float:
        """Measured minus predicted."""
        return self.measured - self.predicted

    @property
    def clean_gap(self) -> float:
        """The gap without what the stamps cost, as far as that is known."""
        return self.gap - sum(term.cycles for term in self.of("probe", "launch"))

    def of(self, *kinds: str) -> list[Term]:
        """Terms of these kinds."""
        return [term for term in self.terms if term.kind in kinds]


def residual(bundle: Bundle, connection: Any, ask: Ask, plan: Plan, measured: Measured) -> Residual | None:
    """Account for the gap; None when there is no steady window on a clock of cycles."""
    if measured.launch < 0 or measured.scale <= 0 or not measured.loop:
        return None
    path = critical_path(
        bundle,
        capture_id=measured.capture["capture_id"],
        launch=measured.launch,
        cta=measured.cta,
        connection=connection,
    ).to_pylist()
    window = _window(ask, measured, path)
    if window is None:
        return None
    lane, role, begin, end, count = window
    units = count / plan.steps.get(role, 1.0)
    parts: dict[tuple[str, ...], float] = {}
    for piece in path:
        ticks = min(piece["t1"], end) - max(piece["t0"], begin)
        if ticks > 0:
            name = _name(piece, plan, measured)
            parts[name] = parts.get(name, 0.0) + ticks * measured.scale / units
    per_unit = (end - begin) * measured.scale / units
    terms = [_term(name, cycles, measured) for name, cycles in parts.items()]
    _over_budget(terms, plan)
    stamps = _stamps(measured, per_unit)
    _take_off(terms, max(0.0, sum(term.cycles for term in stamps)))
    terms += stamps
    rest = per_unit - plan.cycles - sum(term.cycles for term in terms)
    terms.append(Term("rest", rest, rest, text="what no term explains"))
    terms.sort(key=lambda term: (term.kind == "rest", -abs(term.cycles)))
    clean = measured.clean or measured.stamped
    return Residual(
        measured=per_unit,
        predicted=plan.cycles,
        terms=tuple(terms),
        role=role,
        iterations=units,
        fixed=clean.evidence.get("fixed_ticks") if clean else None,
        evidence={
            "view": "critical_path",
            "row": {"capture_id": measured.capture["capture_id"], "launch": measured.launch, "cta": measured.cta}
            | {"lane": lane, "t0": begin, "t1": end},
            "value": per_unit,
        },
    )


def _window(ask: Ask, measured: Measured, path: list[dict[str, Any]]) -> tuple[int, str, int, int, int] | None:
    """Lane, role, begin, end and iterations of the steady window of the lane that the path is on the longest."""
    spent: dict[int, int] = {}
    for piece in path:
        spent[piece["lane"]] = spent.get(piece["lane"], 0) + piece["ticks"]
    rows = ask(
        """SELECT lane, role, MIN(t) AS t0, MAX(t) AS t1, SUM(ticks) AS ticks, COUNT(*) AS n FROM iteration
           WHERE capture_id = ? AND launch = ? AND cta = ? AND steady AND ticks IS NOT NULL GROUP BY lane, role""",
        [measured.capture["capture_id"], measured.launch, measured.cta],
    )
    usable = [row for row in rows if row["n"] > 0 and row["role"] in measured.loop]
    if not usable:
        return None
    best = max(usable, key=lambda row: (spent.get(row["lane"], 0), -row["lane"]))
    return best["lane"], best["role"], best["t0"], best["t0"] + int(best["ticks"]), best["n"]


def _name(piece: Mapping[str, Any], plan: Plan, measured: Measured) -> tuple[str, ...]:
    """Key of the term that a piece of the path belongs to."""
    role, kind = piece["role"], piece["kind"]
    if kind == "untracked":
        return ("untracked", role)
    span = measured.spans.get((role, piece["span"]), {})
    if kind == "active":
        resource = span.get("resource") or ""
        budgeted = resource in plan.bottleneck or (not resource and role in plan.pacing)
        own = budgeted and (role in plan.pacing or not plan.pacing)
        return ("work" if own else "other_work", role, resource, piece["span"])
    if kind == "latency":
        return ("latency", role, piece["barrier"], piece["producer_role"], piece["producer_event"], piece["span"])
    return ("wait", role, piece["barrier"], piece["verdict"], piece["span"])


def _term(name: tuple[str, ...], cycles: float, measured: Measured) -> Term:
    kind, role, *more = name
    if kind == "untracked":
        return Term(kind, cycles, cycles, role, text=f"{role}, on no stamp's account")
    if kind in ("work", "other_work"):
        on = f" on {more[0]}" if more[0] else ""
        return Term(kind, cycles, cycles, role, resource=more[0], span=more[1], text=f"{role} {more[1]}{on}")
    if kind == "latency":
        barrier, producer, event, span = more
        edge = _edge(measured, role, span, producer, event)
        mechanism, lag = (edge.get("mechanism") or "", edge.get("iteration_lag") or 0) if edge else ("", 0)
        what = f"{barrier or span}, after {producer}.{event}{f' by {mechanism}' if mechanism else ''}"
        return Term(
            kind, cycles, cycles, role, barrier, producer, mechanism, span=span, lag=lag, text=f"{role} waits {what}"
        )
    barrier, verdict, span = more
    said = {"free": "no producer yet", "not_blocked": "already satisfied", "other": "held by what no edge declares"}
    said |= {"unknown": "cannot be judged", "producer_late": "not longer than a satisfied one"}
    return Term(
        kind,
        cycles,
        cycles,
        role,
        barrier,
        verdict=verdict,
        span=span,
        text=f"{role} {span} {barrier}: {said.get(verdict, verdict)}".replace("  ", " "),
    )


def _edge(measured: Measured, role: str, span: str, producer: str, event: str) -> Mapping[str, Any] | None:
    end = measured.spans.get((role, span), {}).get("end_event")
    for edge in measured.dependencies:
        if (edge["producer_role"], edge["producer_event"], edge["consumer_role"]) == (producer, event, role) and (
            not end or edge["consumer_event"] == end
        ):
            return edge
    return None


def _over_budget(terms: list[Term], plan: Plan) -> None:
    """Turn the work of the bottleneck's roles into what it is over the budget: the budget is taken off its parts.

    Below the budget (another role paces, and the budgeted work hides behind it) the term is negative.
    """
    own = [term for term in terms if term.kind == "work"]
    whole = sum(term.cycles for term in own)
    if whole <= 0:
        terms.append(Term("work", -plan.cycles, -plan.cycles, text="budgeted work that hides behind the path"))
        return
    for term in own:
        term.cycles -= plan.cycles * term.cycles / whole
        term.raw = term.cycles
        term.text += ", over its budget" if term.cycles > 0 else ", the rest of its budget hides behind the path"


def _stamps(measured: Measured, timeline: float) -> list[Term]:
    """What lies between this timeline and the clean loop; nothing when there is no clean slope."""
    if measured.clean is None:
        return []
    if measured.stamped is None:
        cost = timeline - measured.clean.cycles
        return [Term("probe", cost, cost, text="what the stamps cost: start to start against slope, unlike methods")]
    cost, other = measured.stamped.cycles - measured.clean.cycles, timeline - measured.stamped.cycles
    return [
        Term("probe", cost, cost, text="what the stamps cost, slope with slope"),
        Term("launch", other, other, text="this launch against the slope of the stamped launches"),
    ]


def _take_off(terms: list[Term], cost: float) -> None:
    for kind in ORDER:
        own = [
            t
            for t in terms
            if t.kind == kind and t.cycles > 0 and (kind != "wait" or t.verdict not in ("other", "unknown"))
        ]
        whole = sum(term.cycles for term in own)
        taken = min(cost, whole)
        for term in own:
            term.cycles -= taken * term.cycles / whole
        cost -= taken
        if cost <= 0:
            return
