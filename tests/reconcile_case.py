"""Simulated kernels with a planted cause, stamped and clean, as the recorder would have written them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import simulator_bundle
from simulator_kernels import Attention, Ring

from simulator import Kernel, Run, Ticks, simulate
from wsformat import budget as budgets
from wsformat.bundle import Bundle
from wsformat.converters import registry
from wsformat.prediction import predict
from wsformat.prediction_store import joined

WORK = 1000
TRIPS = (32, 64)
BASE = Ring(
    iterations=TRIPS[1], work=(Ticks(WORK),), cost=Ticks(8), wake=6, tail=Ticks(4), probe=2, skew=Ticks(0, 20),
    latency=Ticks(600),
)  # fmt: skip


def budget(
    name: str = "planted", cycles: Mapping[str, Mapping[str, float]] | None = None, **more: Any
) -> budgets.Budget:
    """A budget of cycles by resource and role: by default the consumers' work, which the two share."""
    cycles = cycles or {"tensor": {"consumer0": WORK / 2, "consumer1": WORK / 2}}
    entries = [
        {"resource": resource, "role": role, "cycles": number, "reason": "planted"}
        for resource, parts in cycles.items()
        for role, number in parts.items()
    ]
    raw = {"wsformat_budget": "0.1", "name": name, "unit": "one iteration", "task": "simulated", "resources": entries}
    return budgets.parse(json.dumps(raw | more).encode(), f"{name}.json")


def role_spec(runs: list[Run], resources: Mapping[str, str]) -> dict[str, Any]:
    """The role spec of a simulated kernel; `resources` names another resource for spans of that name."""
    kernel, names = runs[0].kernel, simulator_bundle.event_order(runs)
    used = dict.fromkeys((s.lane.role, s.event) for run in runs for s in run.stamps)
    spans = simulator_bundle.span_types(kernel)
    waits = {row["role"]: row["begin_event"] for row in reversed(spans) if row["state"] == "stall"}
    return {
        "wsformat_rolespec": "0.1",
        "capture": {"device": "simulated", "kernel": "planted"},
        "roles": [
            {"role": role, "kind": "producer" if role in ("producer", "load", "loader") else "consumer"}
            | {"iteration_event": waits[role]}
            for role, _ in kernel.lanes()
        ],
        "events": [{"role": r, "event": e, "event_index": names.index(e), "loop": "k"} for r, e in used],
        "spans": [row | ({"resource": resources[row["span"]]} if row["span"] in resources else {}) for row in spans],
        "dependencies": simulator_bundle.dependencies(kernel, declared=True),
    }


def records(kernel: Kernel, trips: int, file: Path, launches: int = 3) -> tuple[Path, int]:
    """Start and end records of some launches of a kernel with that trip count."""
    runs = simulate(replace(kernel, iterations=trips), seed=trips, launches=launches)
    simulator_bundle.raw(runs)[1].tofile(file)
    return file, trips


def measured(
    kernel: Kernel,
    folder: Path,
    *,
    clean: bool = True,
    resources: Mapping[str, str] | None = None,
    label: str = "planted",
) -> Bundle:
    """One stamped launch with its timeline, more stamped launches, and clean ones: the same kernel without stamps."""
    folder.mkdir(parents=True, exist_ok=True)
    runs = simulate(replace(kernel, iterations=TRIPS[1]), 3)
    slots, metas = simulator_bundle.raw(runs)
    np.save(folder / "stamps.npy", slots)
    metas.tofile(folder / "stamps.meta")
    options: dict[str, Any] = {
        "spec": role_spec(runs, resources or {}),
        "meta": [folder / "stamps.meta"],
        "trip_count": TRIPS[1],
        "label": label,
        "lifetimes": [records(kernel, trips, folder / f"stamped_{trips}.metas") for trips in TRIPS],
    }
    if clean:
        bare = replace(kernel, probe=0)
        options["clean"] = [records(bare, trips, folder / f"clean_{trips}.metas") for trips in TRIPS]
    return registry.import_files([folder / "stamps.npy"], options)


def with_budget(bundle: Bundle, chosen: budgets.Budget) -> Bundle:
    """The bundle with the budget's prediction in the experiment of its stamped capture."""
    own = next(r["capture_id"] for r in bundle.table("captures").to_pylist() if r["kind"] not in ("clean", "predicted"))
    return joined(bundle, [predict(chosen)], own)


@dataclass(frozen=True)
class Planted:
    """A kernel, the budget that its author had, and what a reconciliation must say.

    Attributes:
        kernel, budget: the kernel and the budget.
        verdict: agree, (a) or (b); cause, subject: of the main cause.
        cycles: least and most that the cause costs an iteration; None not told.
        term: kind of a term of the gap, and its cycles within a tenth.
        resources: other resources of spans.
    """

    kernel: Kernel
    budget: budgets.Budget
    verdict: str
    cause: str = ""
    subject: str = ""
    cycles: tuple[float, float] | None = None
    resources: Mapping[str, str] | None = None


# Every other wait only: a wait that is always held looks like one that costs as much.
HELD = tuple(((f"consumer{c}", "wait", i), 900) for c in (0, 1) for i in range(0, TRIPS[1], 2))
FLASH = Attention(
    iterations=TRIPS[1], stages=6, qk=Ticks(600), pv=Ticks(500), cost=Ticks(6), wake=4, probe=2, latency=Ticks(300),
    skew=Ticks(0, 20),
)  # fmt: skip
STEPS = {"roles": {"load": {"kind": "load", "steps": 2}, "compute0": {}, "compute1": {}}}
BOTH = {"tensor": {"compute0": 300, "compute1": 300}, "mufu": {"compute0": 500, "compute1": 500}}

PLANTED: dict[str, Planted] = {
    "fits": Planted(BASE, budget(), "agree"),
    "probe_effect": Planted(replace(BASE, probe=60), budget(), "agree", "probe_effect", "stamps", (235, 245)),
    "missing_resource": Planted(
        replace(BASE, loader=Ticks(2000)), budget(), "(a)", "missing_resource", "lsu", (1900, 2050)
    ),
    "extra_latency": Planted(
        replace(BASE, commit=Ticks(700)), budget(cycles={"tensor": {"consumer0": 625, "consumer1": 625}}), "(a)",
        "dependency_latency", "mma", (650, 750),
    ),
    "too_few_stages": Planted(replace(BASE, stages=1), budget(), "(a)", "too_few_stages", "empty", (600, 800)),
    "latency_not_hidden": Planted(
        replace(BASE, latency=Ticks(6000)), budget(), "(a)", "too_few_stages", "empty", (700, 900)
    ),
    "slow_producer": Planted(
        replace(BASE, spin=Ticks(3000)), budget(), "(a)", "slow_producer", "producer", (2900, 3100)
    ),
    "serialised_roles": Planted(
        replace(BASE, serial=True), budget(), "(a)", "serialised_roles", "consumer0 and consumer1", (950, 1150)
    ),
    "serialised_without_need": Planted(
        replace(BASE, serial=True), budget(expects={"overlap": [["consumer0", "consumer1"]]}), "(b)",
        "serialised_roles",
        "consumer0 and consumer1", (950, 1150),
    ),
    "fewer_stages_than_meant": Planted(
        replace(BASE, stages=1), budget(expects={"stages": 4}), "(b)", "too_few_stages", "empty", (600, 800)
    ),
    "undeclared_cause": Planted(
        replace(BASE, undeclared=HELD), budget(), "(a)", "undeclared_cause", "full", (430, 460)
    ),
    "unstamped_work": Planted(
        replace(BASE, tail=Ticks(600)), budget(), "(a)", "untracked_time", "", (550, 650)
    ),
    "slower_than_budget": Planted(
        replace(BASE, work=(Ticks(1500),)), budget(), "(a)", "slower_than_budget", "", (480, 520)
    ),
    "faster_than_budget": Planted(
        BASE, budget(cycles={"tensor": {"consumer0": 900, "consumer1": 900}}), "(a)", "faster_than_budget", "tensor",
    ),
    "in_series": Planted(
        FLASH, budget(cycles=BOTH, **STEPS), "(a)", "in_series", "", (480, 620),
        {"pv": "mufu"},
    ),
}  # fmt: skip
