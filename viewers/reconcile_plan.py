"""The prediction that a reconciliation compares with, as it is stored in a bundle."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from wsformat.derive import run
from wsformat.errors import BadRequest

Ask = Callable[..., list[dict[str, Any]]]


@dataclass(frozen=True)
class Plan:
    """A stored prediction.

    Attributes:
        capture_id, label, dtype: of the predicted capture.
        cycles: of the bottleneck.
        totals: cycles by resource; bottleneck: the resources that need the most.
        parts: cycles by (resource, role).
        kinds: throughput, latency or issue, by resource.
        hypothesis, omits: what it said.
        steps: iterations of a role in one unit.
        overlap: pairs of roles that nothing forces to take turns; stages: of the ring, 0 not said.
        clock_mhz: as the budget says, 0 not said.
        facts: kernel, task, gpu, arch.
    """

    capture_id: str
    label: str
    dtype: str
    cycles: float
    totals: Mapping[str, float]
    bottleneck: tuple[str, ...]
    parts: Mapping[tuple[str, str], float]
    kinds: Mapping[str, str]
    hypothesis: str
    omits: tuple[str, ...]
    unit: str
    steps: Mapping[str, float]
    overlap: tuple[tuple[str, str], ...]
    stages: int
    clock_mhz: float
    facts: Mapping[str, str]

    def roles_of(self, resource: str) -> list[str]:
        """Roles that drive a resource."""
        return [role for r, role in self.parts if r == resource]

    @property
    def pacing(self) -> list[str]:
        """Roles that drive a bottleneck."""
        return list(dict.fromkeys(role for resource in self.bottleneck for role in self.roles_of(resource)))

    def idle(self, resource: str) -> float:
        """Lower bound of the resource's idle share."""
        return 1 - self.totals[resource] / self.cycles

    def role_idle(self, role: str) -> float:
        """Lower bound of a role's idle share, by the resource that it keeps busy longest with the others' help."""
        return min((self.idle(resource) for resource, driver in self.parts if driver == role), default=1.0)


def asker(connection: Any) -> Ask:
    """A function that gives the rows of a query."""

    def ask(sql: str, parameters: list[Any] | None = None) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = run(connection, sql, parameters or []).to_pylist()
        return rows

    return ask


def plan_of(ask: Ask, chosen: str = "") -> Plan:
    """The prediction to reconcile with.

    Raises:
        BadRequest: none, or several and none chosen by label or start of its id.
    """
    there = ask("SELECT * FROM captures WHERE capture_id IN (SELECT capture_id FROM predictions) ORDER BY capture_id")
    if chosen:
        there = [r for r in there if r["label"] == chosen or r["capture_id"].startswith(chosen)]
    if not there:
        raise BadRequest(
            f"no prediction{f' {chosen!r}' if chosen else ''} in the bundle",
            "Add one: `wsformat predict BUDGET --into X.wsformat`, or give --budget.",
        )
    if len(there) > 1:
        raise BadRequest(
            f"{len(there)} predictions in the bundle",
            f"Choose with --prediction: {', '.join(r['label'] or r['capture_id'] for r in there)}.",
        )
    capture = there[0]
    here = [capture["capture_id"]]
    rows = ask(
        "SELECT * FROM predictions WHERE capture_id = ? AND cycles IS NOT NULL ORDER BY cycles DESC, resource, role",
        here,
    )
    said = ask("SELECT value FROM attributes WHERE capture_id = ? AND name = 'budget' AND row_key = ''", here)
    budget = json.loads(said[0]["value"]) if said else {}
    totals = {r["resource"]: r["cycles"] for r in rows if r["role"] == ""}
    for r in rows:
        # A prediction that somebody stored without totals: the roles that share a resource add up.
        if r["role"] and not any(x["resource"] == r["resource"] and x["role"] == "" for x in rows):
            totals[r["resource"]] = totals.get(r["resource"], 0.0) + r["cycles"]
    if not totals or max(totals.values()) <= 0:
        raise BadRequest(f"prediction {capture['label'] or here[0]}: predicts no cycles")
    most = max(totals.values())
    findings = ask("SELECT kind, text FROM findings WHERE capture_id = ?", here)
    expects = budget.get("expects", {})
    return Plan(
        capture_id=here[0],
        label=capture["label"] or here[0],
        dtype=capture["dtype"] or "",
        cycles=most,
        totals=totals,
        bottleneck=tuple(r for r, c in totals.items() if c >= most * (1 - 1e-9)),
        parts={(r["resource"], r["role"]): r["cycles"] for r in rows if r["role"]},
        kinds={r["resource"]: r["kind"] for r in rows},
        hypothesis=next((f["text"] for f in findings if f["kind"] == "hypothesis"), ""),
        omits=tuple(f["text"] for f in findings if f["kind"] == "omission"),
        unit=budget.get("unit", "one iteration"),
        steps={role: float(x.get("steps", 1)) for role, x in budget.get("roles", {}).items()},
        overlap=tuple((a, b) for a, b in expects.get("overlap", [])),
        stages=int(expects.get("stages", 0)),
        clock_mhz=float(budget.get("clock_mhz", 0)),
        facts={n: capture[n] or "" for n in ("kernel", "task", "device", "arch", "experiment")},
    )
