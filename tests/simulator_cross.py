"""Kernels whose CTAs wait for each other, on SMs that know the true time: which signal ended which wait, and when.

The SMs are those of ``simulator_clocks``: each counter has an offset and a rate of its own, and the recording holds
nothing but ticks and anchors. What is true is known in ns. Three kernels:

* ``ring``: a cluster's CTAs load for each other (multicast) and release each other's stages;
* ``leader``: all CTAs of a cluster load, the first multiplies (2-CTA);
* ``flags``: a persistent grid whose CTAs wait each step for all others (device scope, a symmetric barrier).
"""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass, field
from math import floor
from typing import Any

import numpy as np
import simulator_clocks

Row = dict[str, Any]
COST = 60
"""Ticks from the begin of a wait that nothing delays to its end."""
WAKE, LANDING = 40, 560
"""Ticks from a signal to the end of a wait for it: an arrival of threads, and bytes of TMA."""


@dataclass
class Lane:
    """One role of one CTA."""

    number: int
    cta: int
    sm: int
    role: str
    stamps: list[tuple[str, int, int]] = field(default_factory=list)


@dataclass
class Signal:
    """One point that a wait needs: tick of its own clock, true time."""

    lane: Lane
    tick: int
    time: float


@dataclass
class Edge:
    """A needed edge of a wait: its signals, the last of which counts, and what passes after it."""

    role: str
    event: str
    symmetric: bool
    signals: list[Signal]
    latency: int

    @property
    def last(self) -> Signal:
        return max(self.signals, key=lambda s: s.time)


@dataclass
class Wait:
    """A wait and what is true of it. Ticks are of its own clock, those of signals with a part of a tick."""

    lane: Lane
    span: str
    iteration: int
    t0: int
    t1: int
    edges: list[Edge]
    signal: list[float]
    is_free: bool

    def ready(self, n: int) -> float:
        return self.signal[n] + self.edges[n].latency

    @property
    def verdict(self) -> str:
        """By the definition, with the true times."""
        if not self.edges:
            return "free"
        n = max(range(len(self.edges)), key=self.ready)
        if self.ready(n) <= self.t0 or (self.edges[n].symmetric and self.signal[n] <= self.t0):
            return "not_blocked"
        return "producer_late" if self.signal[n] > self.t0 else "in_flight"


@dataclass
class Case:
    """What varies: SMs, their timer, the kernel, and how much its steps vary."""

    kernel: str
    seed: int
    clusters: int = 2
    width: int = 2
    iterations: int = 12
    stages: int = 2
    step: int = 32
    changes: int = 0
    middle: int = 1
    load: tuple[int, int] = (100, 1500)
    multiply: tuple[int, int] = (100, 900)
    declared: bool = True
    local: bool = False
    help: tuple[int, int] = (400, 640)


class Machine:
    """SMs whose counters can be asked both ways. A stamp lies in the middle of its tick."""

    def __init__(self, case: Case, sms: int) -> None:
        self.case = case
        self.rng = random.Random(case.seed)
        self.device = simulator_clocks.device(case.seed, sms, case.step, min(10, case.step / 4), case.changes, 2e4)
        self.edges = np.concatenate([[0.0], self.device.knots])

    def after(self, sm: int, time: float) -> float:
        """Ticks of an SM since time 0, with their part."""
        ends = np.concatenate([self.edges[1:], [np.inf]])
        return float((self.device.rate[sm] * np.clip(time - self.edges, 0, ends - self.edges)).sum())

    def tick(self, sm: int, time: float) -> float:
        return float(self.device.offset[sm]) + self.after(sm, time)

    def time(self, sm: int, tick: int) -> float:
        """The true time of the middle of a tick."""
        left, rate = tick - int(self.device.offset[sm]) + 0.5, self.device.rate[sm]
        for k, length in enumerate(np.diff(self.edges).tolist()):
            if left <= rate[k] * length:
                return float(self.edges[k] + left / rate[k])
            left -= rate[k] * length
        return float(self.edges[-1] + left / rate[-1])


@dataclass
class Run:
    """A kernel that ran. Not bounded: its timer never moved while it was read, so nothing can be said across SMs."""

    case: Case
    machine: Machine
    lanes: list[Lane] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    now: dict[int, int] = field(default_factory=dict)
    is_bounded: bool = True

    def lane(self, cta: int, sm: int, role: str) -> Lane:
        self.lanes.append(Lane(len(self.lanes), cta, sm, role))
        start = self.machine.rng.uniform(300, 700)
        self.now[self.lanes[-1].number] = floor(self.machine.tick(sm, start))
        return self.lanes[-1]

    def stamp(self, lane: Lane, event: str, iteration: int, ticks: int) -> Signal:
        """A stamp so many ticks after the lane's last one."""
        self.now[lane.number] += ticks
        tick = self.now[lane.number]
        lane.stamps.append((event, iteration, tick))
        return Signal(lane, tick, self.machine.time(lane.sm, tick))

    def follow(self, lane: Lane, event: str, iteration: int, tick: int) -> Signal:
        """A stamp at this tick of the same SM, or when the lane gets to it."""
        return self.stamp(lane, event, iteration, max(1, tick - self.now[lane.number]))

    def spend(self, between: tuple[int, int]) -> int:
        return self.machine.rng.randint(*between)

    def wait(self, lane: Lane, span: str, iteration: int, edges: list[Edge], is_free: bool = False) -> None:
        """A wait of this lane for all edges."""
        begin = self.stamp(lane, f"{span}_enter", iteration, 12).tick
        signal = [
            # On one clock a tick is a tick; from another SM it lies anywhere within one.
            s.tick if s.lane.sm == lane.sm else self.machine.tick(lane.sm, s.time) - 0.5
            for s in (e.last for e in edges)
        ]
        # A wait that comes last to a symmetric barrier pays what all pay after the last arrival.
        ready = [s + e.latency for s, e in zip(signal, edges, strict=True)]
        end = max([begin + COST, *(floor(r) + 1 if r != floor(r) else int(r) for r in ready)])
        self.stamp(lane, f"{span}_exit", iteration, end - begin)
        self.waits.append(Wait(lane, span, iteration, begin, end, edges, signal, is_free))


def run(case: Case) -> Run:
    """Run the kernel: iteration by iteration, since no wait needs a later one."""
    ctas = case.clusters * case.width
    made = Run(case, Machine(case, ctas))
    order = list(range(ctas))
    made.machine.rng.shuffle(order)
    if case.kernel == "flags":
        flags(made, [made.lane(cta, order[cta], "worker") for cta in range(ctas)])
        return made
    for cluster in range(case.clusters):
        members = range(cluster * case.width, (cluster + 1) * case.width)
        loaders = [made.lane(cta, order[cta], "loader") for cta in members]
        chosen = list(members)[: 1 if case.kernel == "leader" else case.width]
        multipliers = [made.lane(cta, order[cta], "multiplier") for cta in chosen]
        helpers = [made.lane(cta, order[cta], "helper") for cta in chosen] if case.local else []
        ring(made, loaders, multipliers, helpers)
    return made


def ring(made: Run, loaders: list[Lane], multipliers: list[Lane], helpers: list[Lane]) -> None:
    case = made.case
    released: list[list[Signal]] = []
    for i in range(case.iterations):
        loaded = []
        for lane in loaders:
            before = released[i - case.stages] if i >= case.stages else []
            edges = [Edge("multiplier", "release", False, before, WAKE)] if before else []
            made.wait(lane, "empty", i, edges, not before)
            loaded.append(made.stamp(lane, "load", i, made.spend(case.load)))
        # About as ready as what is loaded: which of the two binds is often within the errors.
        helped = [
            made.follow(lane, "help", i, loaded[n].tick + made.spend(case.help)) for n, lane in enumerate(helpers)
        ]
        released.append([])
        for n, lane in enumerate(multipliers):
            edges = [Edge("loader", "load", False, loaded, LANDING)]
            edges += [Edge("helper", "help", False, [helped[n]], WAKE)] if helpers else []
            made.wait(lane, "full", i, edges)
            released[i].append(made.stamp(lane, "release", i, made.spend(case.multiply)))


def flags(made: Run, workers: list[Lane]) -> None:
    for i in range(made.case.iterations):
        for lane in workers:
            made.stamp(lane, "work", i, made.spend(made.case.multiply))
        # The enter of each is the signal: what a wait stamps first.
        tick = {lane.number: made.now[lane.number] + 12 for lane in workers}
        signals = [Signal(x, tick[x.number], made.machine.time(x.sm, tick[x.number])) for x in workers]
        for lane in workers:
            made.wait(lane, "grid", i, [Edge("worker", "grid_enter", True, signals, WAKE)])


def dependencies(case: Case) -> list[Row]:
    """What the kernel declares."""
    if case.kernel == "flags":
        rows = [("worker", "grid_enter", "worker", "grid_exit", 0, "bar_sync", "signal", "device", WAKE)]
    else:
        rows = [
            ("loader", "load", "multiplier", "full_exit", 0, "tma", "async", "cluster", LANDING),
            ("multiplier", "release", "loader", "empty_exit", case.stages, "arrive", "signal", "cluster", WAKE),
        ]
        if case.local:
            rows.append(("helper", "help", "multiplier", "full_exit", 0, "arrive", "signal", "cta", WAKE))
    names = ("producer_role", "producer_event", "consumer_role", "consumer_event", "iteration_lag", "mechanism",
             "completion", "scope", "latency_ticks")  # fmt: skip
    made = [dict(zip(names, row, strict=True)) | {"producer_step": 1, "consumer_step": 1} for row in rows]
    return made if case.declared else [row | {"latency_ticks": None} for row in made]


def tables(made: Run, capture: str) -> dict[str, list[Row]]:
    """The recording as tables of one capture."""
    case, ctas = made.case, made.case.clusters * made.case.width
    sm = np.array([next(x.sm for x in made.lanes if x.cta == cta) for cta in range(ctas)])
    stamped: dict[int, list[int]] = defaultdict(list)
    for lane in made.lanes:
        stamped[lane.cta] += [t for _, _, t in lane.stamps]
    at = made.machine.time
    start = np.array([at(int(sm[c]), min(stamped[c])) - 40.0 for c in range(ctas)])
    end = np.array([at(int(sm[c]), max(stamped[c])) + 40.0 for c in range(ctas)])
    recording = simulator_clocks.record(made.machine.device, sm, start, end, case.middle)
    rows = {name: recording.bundle.table(name).to_pylist() for name in ("captures", "launches", "clocks")}
    rows["clock_anchors"] = recording.bundle.table("clock_anchors").to_pylist()
    made.is_bounded = all(a["error_ns"] is not None for a in rows["clock_anchors"])
    cluster = 1 if case.kernel == "flags" else case.width
    rows["launches"] = [rows["launches"][0] | {"cluster_x": cluster, "cluster_y": 1, "cluster_z": 1}]
    roles = sorted({x.role for x in made.lanes})
    spans = sorted({(w.lane.role, w.span) for w in made.waits})
    events = sorted({(x.role, event) for x in made.lanes for event, _, _ in x.stamps})
    rows["roles"] = [{"role": role, "role_index": n} for n, role in enumerate(roles)]
    rows["event_types"] = [{"role": r, "event": e, "event_index": n, "loop": "k"} for n, (r, e) in enumerate(events)]
    rows["span_types"] = [
        {"role": r, "span": s, "state": "stall", "begin_event": f"{s}_enter", "end_event": f"{s}_exit", "loop": "k"}
        | {"wait_on": "barrier", "barrier": s}
        for r, s in spans
    ]
    rows["dependencies"] = dependencies(case)
    rows["lanes"], rows["events"] = [], []
    for x in made.lanes:
        own = {"lane": x.number, "launch": 0, "cta": x.cta, "warp": roles.index(x.role), "role": x.role}
        own |= {"sm": x.sm, "clock": x.sm}
        rows["lanes"].append(own | {"kind": "warp", "completeness": "complete", "records_lost": 0})
        rows["events"] += [own | {"event": e, "iteration": i, "t": t} for e, i, t in x.stamps]
    return {name: [row | {"capture_id": capture} for row in found] for name, found in rows.items()}
