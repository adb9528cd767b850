"""A known-answer model of warp-specialised kernels: it knows what happened without looking at its stamps.

Lanes (warps) are programs that run on their own and meet at mbarriers. A barrier has phases: a phase is over when
the expected number of arrivals has *completed*; an arrival completes some ticks after the lane made it (TMA bytes,
wgmma) or at once. One event queue holds the completions. Nothing here knows iteration lags, floors, releases or
verdict rules of the views: a stage of a ring is an index modulo S, a phase a count, as in the kernel itself.

A wait stamps `enter` at t0. It is over at `max(t0 + cost, completion + wake, undeclared)`, where `cost` is what a wait
costs that finds its phase over, and `undeclared` a delay that no declared edge explains.

Truth of a wait: blocked = t1 - t0 - cost; the arrival that released it; and what the standard calls its verdict, told
from causes (at a symmetric barrier the last to arrive is not blocked). Truth of a lane: the program says what it did
before each stamp. Truth of the critical path: every stamp remembers the stamp that made it happen when it did.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Ticks:
    """A time drawn anew each time: base, plus a whole number from 0 to jitter."""

    base: int
    jitter: int = 0

    def draw(self, rng: random.Random) -> int:
        return self.base + (rng.randint(0, self.jitter) if self.jitter else 0)


@dataclass(eq=False)
class Stamp:
    """One stamp. `since` is the lane's state from its stamp before to this one; `cause` made it happen when it did."""

    lane: Lane
    event: str
    iteration: int
    t: int
    since: str
    span: str
    span_iteration: int
    cause: Stamp | None
    via_latency: bool = False


@dataclass(eq=False)
class Arrival:
    """A signal: the stamp that shows it, when it was made, when it completed."""

    stamp: Stamp
    made: int
    completed: int


@dataclass(eq=False)
class Wait:
    """The truth of one wait."""

    lane: Lane
    span: str
    iteration: int
    enter: Stamp
    exit: Stamp
    cost: int
    wake: int
    arrivals: list[Arrival]
    binding: Arrival | None
    undeclared: int
    symmetric: bool

    @property
    def ticks(self) -> int:
        return self.exit.t - self.enter.t

    @property
    def blocked(self) -> int:
        return self.ticks - self.cost

    @property
    def ready(self) -> int:
        """When the wait would have ended had nothing but its signals mattered."""
        assert self.binding is not None
        return self.binding.completed + self.wake

    @property
    def verdict(self) -> str:
        if self.binding is None:
            return "free"
        if self.undeclared > max(self.enter.t + self.cost, self.ready):
            return "other"
        last_of_all = self.symmetric and self.binding.stamp.t <= self.enter.t
        if self.ready <= self.enter.t or last_of_all:
            return "not_blocked"
        return "producer_late" if self.binding.stamp.t > self.enter.t else "in_flight"

    @property
    def released_by(self) -> Stamp | None:
        """The signal that ended the wait, when one did and it cost the lane time."""
        if self.binding is None or self.blocked == 0 or self.verdict == "other":
            return None
        return self.binding.stamp


class Barrier:
    """An mbarrier: phase n is over when `expected` arrivals have completed since phase n - 1 was."""

    def __init__(self, expected: int) -> None:
        self.expected = expected
        self.pending: list[Arrival] = []
        self.over: list[list[Arrival]] = []
        self.waiting: list[tuple[int, Lane]] = []


Program = Generator[tuple[Barrier, int], list[Arrival], None]


@dataclass(eq=False)
class Lane:
    """One warp: its own time, its stamps, its waits."""

    role: str
    index: int
    warp: int
    rng: random.Random
    machine: Machine
    t: int
    stamps: list[Stamp] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    early: list[Stamp] = field(default_factory=list)

    def run(self, ticks: Ticks) -> None:
        """Work or wander for some time."""
        self.t += ticks.draw(self.rng)

    def stamp(
        self,
        event: str,
        iteration: int,
        since: str = "untracked",
        span: str = "",
        span_iteration: int = -1,
        arrives: tuple[tuple[Barrier, Ticks], ...] = (),
        cause: Stamp | None = None,
        via_latency: bool = False,
    ) -> Stamp:
        """Write a stamp now; `arrives` are the signals that it shows. The lane goes on `probe` ticks later."""
        made = self.t
        if arrives:
            self.t += self.machine.lead
        cause = cause or (self.stamps[-1] if self.stamps else None)
        new = Stamp(self, event, iteration, self.t, since, span, span_iteration, cause, via_latency)
        self.stamps.append(new)
        for barrier, latency in arrives:
            self.machine.arrive(barrier, Arrival(new, made, made + latency.draw(self.rng)))
        self.t += self.machine.probe
        return new

    def wait(
        self,
        span: str,
        iteration: int,
        barrier: Barrier,
        phase: int,
        arrives: tuple[tuple[Barrier, Ticks], ...] = (),
    ) -> Program:
        """Wait for a phase of a barrier, stamped on both sides; a negative phase is over from the start."""
        enter = self.stamp(f"{span}_enter", iteration, arrives=arrives, **self.inside)
        cost = self.machine.cost.draw(self.rng)
        arrivals = (yield barrier, phase) if phase >= 0 else []
        binding = min(arrivals, key=binding_order, default=None)
        free_at = enter.t + cost
        ready = binding.completed + self.machine.wake if binding else free_at
        delay = self.machine.undeclared.get((self.role, span, iteration), 0)
        self.t = max(free_at, ready, enter.t + delay)
        by_signal = binding is not None and ready > free_at and ready >= enter.t + delay
        cause = binding.stamp if by_signal and binding else enter
        leave = self.stamp(f"{span}_exit", iteration, "stall", span, iteration, (), cause, by_signal)
        self.waits.append(
            Wait(
                self,
                span,
                iteration,
                enter,
                leave,
                cost,
                self.machine.wake,
                arrivals,
                binding,
                enter.t + delay,
                bool(arrives),
            )
        )

    inside: dict[str, object] = field(default_factory=dict)
    """State of the lane before the enter of a wait, when it waits inside work."""


def binding_order(arrival: Arrival) -> tuple[int, str, str, int]:
    """Order in which arrivals of a phase bind: the last to complete; ties by role, event, lane."""
    return -arrival.completed, arrival.stamp.lane.role, arrival.stamp.event, arrival.stamp.lane.index


@dataclass(eq=False)
class Machine:
    """One CTA at work: its lanes, its barriers, the queue of arrivals that are under way."""

    probe: int
    cost: Ticks
    wake: int
    lead: int
    undeclared: dict[tuple[str, str, int], int]
    lanes: list[Lane] = field(default_factory=list)
    barriers: dict[object, Barrier] = field(default_factory=dict)
    queue: list[tuple[int, int, Barrier, Arrival]] = field(default_factory=list)
    posted: int = 0
    programs: dict[int, Program] = field(default_factory=dict)

    def barrier(self, key: object, expected: int) -> Barrier:
        return self.barriers.setdefault(key, Barrier(expected))

    def arrive(self, barrier: Barrier, arrival: Arrival) -> None:
        heapq.heappush(self.queue, (arrival.completed, self.posted, barrier, arrival))
        self.posted += 1

    def run(self, programs: list[tuple[Lane, Program]]) -> None:
        """Run all programs to their end.

        A lane runs ahead of the queue until it waits: nothing but a barrier can hold it.
        """
        self.lanes = [lane for lane, _ in programs]
        self.programs = {id(lane): program for lane, program in programs}
        for lane, _ in programs:
            self._go(lane, None)
        while self.queue:
            _, _, barrier, arrival = heapq.heappop(self.queue)
            barrier.pending.append(arrival)
            if len(barrier.pending) == barrier.expected:
                barrier.over.append(barrier.pending)
                barrier.pending = []
                woken = [lane for phase, lane in barrier.waiting if phase < len(barrier.over)]
                barrier.waiting = [w for w in barrier.waiting if w[0] >= len(barrier.over)]
                for lane in woken:
                    self._go(lane, barrier.over[-1])
        stuck = [lane.role for barrier in self.barriers.values() for _, lane in barrier.waiting]
        assert not stuck, f"deadlock: {stuck}"

    def _go(self, lane: Lane, value: list[Arrival] | None) -> None:
        program = self.programs[id(lane)]
        try:
            barrier, phase = next(program) if value is None else program.send(value)
            while phase < len(barrier.over):
                barrier, phase = program.send(barrier.over[phase])
        except StopIteration:
            return
        barrier.waiting.append((phase, lane))


@dataclass(frozen=True)
class Kernel:
    """What every simulated kernel has.

    Attributes:
        stages: S, stages of the ring.
        iterations: iterations of the main loop in one tile.
        tiles: tiles of a persistent loop; iterations run on over tiles.
        latency: of what the producer issues (TMA). cost, wake, probe, lead: see the module; `lead` is how long before
            its stamp a signal is really made.
        undeclared: {(role, span, iteration): ticks} that a wait lasts at least for a reason that no edge declares.
        skew: time from the start of the CTA to the start of a lane.
    """

    stages: int = 4
    iterations: int = 16
    tiles: int = 1
    latency: Ticks = Ticks(600)
    cost: Ticks = Ticks(30)
    wake: int = 12
    probe: int = 4
    lead: int = 0
    skew: Ticks = Ticks(0, 20)
    undeclared: tuple[tuple[tuple[str, str, int], int], ...] = ()

    @property
    def total(self) -> int:
        """Iterations of the main loop over all tiles."""
        return self.iterations * self.tiles

    def lanes(self) -> list[tuple[str, int]]:
        """(role, number of lanes) in order of warps."""
        raise NotImplementedError

    def program(self, lane: Lane) -> Program:
        raise NotImplementedError


@dataclass(eq=False)
class Run:
    """One CTA of one launch, on its own clock."""

    kernel: Kernel
    launch: int
    cta: int
    offset: int
    lanes: list[Lane]
    machine: Machine

    @property
    def waits(self) -> list[Wait]:
        return [wait for lane in self.lanes for wait in lane.waits]

    @property
    def stamps(self) -> Iterator[Stamp]:
        return (stamp for lane in self.lanes for stamp in lane.stamps)


def simulate(
    kernel: Kernel,
    seed: int = 0,
    launches: int = 1,
    ctas: int = 1,
    offset: Callable[[int], int] = lambda cta: 1_000_000 + 7_654_321 * cta,
) -> list[Run]:
    """Run a kernel. `offset(cta)` is where the clock of that CTA's SM stands when the first launch starts."""
    runs = []
    for cta in range(ctas):
        start = offset(cta)
        for launch in range(launches):
            rng = random.Random(f"{seed}/{launch}/{cta}")
            machine = Machine(kernel.probe, kernel.cost, kernel.wake, kernel.lead, dict(kernel.undeclared))
            lanes: list[Lane] = []
            for role, count in kernel.lanes():
                for index in range(count):
                    own = random.Random(rng.random())
                    lanes.append(Lane(role, index, len(lanes), own, machine, start + kernel.skew.draw(own)))
            machine.run([(lane, kernel.program(lane)) for lane in lanes])
            runs.append(Run(kernel, launch, cta, start, lanes, machine))
            start = max(stamp.t for stamp in runs[-1].stamps) + 10_000
    return sorted(runs, key=lambda run: (run.launch, run.cta))


def states(lane: Lane) -> dict[str, int]:
    """Ticks of the lane in each exclusive state, and its extent."""
    ticks = {"stall": 0, "active": 0, "untracked": 0, "extent": lane.stamps[-1].t - lane.stamps[0].t}
    for before, stamp in zip(lane.stamps, lane.stamps[1:], strict=False):
        ticks[stamp.since] += stamp.t - before.t
    return ticks


@dataclass(frozen=True)
class Step:
    """One segment of the true critical path."""

    warp: int
    role: str
    kind: str
    span: str
    iteration: int
    t0: int
    t1: int


def critical_path(run: Run) -> list[Step]:
    """From the last stamp of the CTA back through causes, in order of time; its ticks fill the CTA's window."""
    first = min(stamp.t for stamp in run.stamps)
    stamp = min(run.stamps, key=lambda s: (-s.t, s.lane.warp))
    steps: list[Step] = []

    def add(lane: Lane, kind: str, span: str, iteration: int, t0: int, t1: int) -> None:
        step = Step(lane.warp, lane.role, kind, span, iteration, t0, t1)
        if steps and (steps[-1].warp, steps[-1].kind, steps[-1].span, steps[-1].iteration, steps[-1].t0) == (
            step.warp, step.kind, step.span, step.iteration, step.t1,
        ):  # fmt: skip
            steps[-1] = Step(lane.warp, lane.role, kind, span, iteration, t0, steps[-1].t1)
        elif t1 > t0:
            steps.append(step)

    while stamp.cause is not None:
        kind = "latency" if stamp.via_latency else stamp.since
        add(stamp.lane, kind, stamp.span, stamp.span_iteration, stamp.cause.t, stamp.t)
        stamp = stamp.cause
    add(stamp.lane, "untracked", "", -1, first, stamp.t)
    return steps[::-1]
