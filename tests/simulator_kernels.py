"""Kernels for the simulator: what their warps do, stage by stage, as device code would say it."""

# ruff: noqa: RUF009 (Ticks is frozen)

from __future__ import annotations

from dataclasses import dataclass

from simulator import Barrier, Kernel, Lane, Program, Ticks


@dataclass(frozen=True)
class Ring(Kernel):
    """One producer role fills a ring of S stages, consumer roles drain it.

    Attributes:
        producers, consumers, width: lanes of the producer role, consumer roles, lanes of each.
        spin: producer, before it issues (not instrumented); issue: while it issues (active).
        work: of each consumer role in turn (the last one repeats); tail: not instrumented, after it.
        sync: consumers meet at a symmetric barrier at the end of each iteration.
        serial: consumers work one after another.
        commit: consumers wait, inside their work, for their own asynchronous work of this length.
        early: consumers free the stage in the middle of their work.
        epilogue: active time of consumers after each tile; None no epilogue.
        loader: work of a second producer role that fills part of each stage and signals at once; None no such role.
    """

    producers: int = 1
    consumers: int = 2
    width: int = 1
    spin: Ticks = Ticks(10)
    issue: Ticks = Ticks(40)
    work: tuple[Ticks, ...] = (Ticks(400),)
    tail: Ticks = Ticks(15)
    sync: bool = False
    serial: bool = False
    commit: Ticks | None = None
    early: bool = False
    epilogue: Ticks | None = None
    loader: Ticks | None = None

    def lanes(self) -> list[tuple[str, int]]:
        loaders = [("loader", 1)] if self.loader is not None else []
        consumers = [(f"consumer{c}", self.width) for c in range(self.consumers)]
        return [("producer", self.producers), *loaders, *consumers]

    def program(self, lane: Lane) -> Program:
        if lane.role == "producer":
            return self._produce(lane, self.issue, self.latency)
        if lane.role == "loader":
            return self._produce(lane, self.loader or Ticks(0), Ticks(0))
        return self._consume(lane, int(lane.role[8:]))

    def _rings(self, lane: Lane, i: int) -> tuple[Barrier, Barrier, int]:
        stage, phase = i % self.stages, i // self.stages
        full = lane.machine.barrier(("full", stage), self.producers + (self.loader is not None))
        empty = lane.machine.barrier(("empty", stage), self.consumers * self.width)
        return full, empty, phase

    def _produce(self, lane: Lane, work: Ticks, latency: Ticks) -> Program:
        for i in range(self.total):
            full, empty, phase = self._rings(lane, i)
            lane.starts.append(lane.t)
            yield from lane.wait("wait", i, empty, phase - 1)
            lane.run(self.spin)
            lane.stamp("work_begin", i)
            lane.run(work)
            lane.stamp("work_end", i, "active", "work", i, ((full, latency),))

    def _consume(self, lane: Lane, c: int) -> Program:
        machine, now = lane.machine, Ticks(0)
        work = self.work[min(c, len(self.work) - 1)]
        order = [machine.barrier(("order", k), self.width) for k in range(self.consumers)]
        for i in range(self.total):
            full, empty, phase = self._rings(lane, i)
            lane.starts.append(lane.t)
            yield from lane.wait("wait", i, full, phase)
            if self.serial:
                yield from lane.wait("order", i, order[c], i if c else i - 1)
            lane.stamp("work_begin", i)
            inside = {"since": "active", "span": "work", "span_iteration": i}
            if self.commit is not None:
                own = machine.barrier(("mma", lane.role, lane.index), 1)
                lane.run(Ticks(work.base // 4))
                lane.early.append(lane.stamp("issue", i, **inside, arrives=((own, self.commit),)))
                lane.run(Ticks(8))
                lane.inside = inside
                yield from lane.wait("mma", i, own, i)
                lane.inside = {}
            lane.run(work)
            if self.early:
                lane.early.append(lane.stamp("arrive", i, **inside, arrives=((empty, now),)))
                lane.run(work)
            hand_over = ((order[(c + 1) % self.consumers], now),) if self.serial else ()
            lane.stamp("work_end", i, **inside, arrives=hand_over)
            lane.run(self.tail)
            if not self.early:
                lane.stamp("arrive", i, arrives=((empty, now),))
            if self.sync:
                meet = machine.barrier("sync", self.consumers * self.width)
                yield from lane.wait("sync", i, meet, i, arrives=((meet, now),))
            if self.epilogue is not None and (i + 1) % self.iterations == 0:
                tile = i // self.iterations
                lane.stamp("epilogue_begin", tile)
                lane.run(self.epilogue)
                lane.stamp("epilogue_end", tile, "active", "epilogue", tile)


@dataclass(frozen=True)
class Attention(Kernel):
    """K and V tiles share one ring: two ring tiles an iteration of the compute roles, both freed after PV.

    Attributes:
        computes: compute roles. issue: of the load role. qk, softmax, pv: of the compute roles (softmax is active).
    """

    computes: int = 2
    issue: Ticks = Ticks(30)
    qk: Ticks = Ticks(200)
    pv: Ticks = Ticks(250)

    def lanes(self) -> list[tuple[str, int]]:
        return [("load", 1), *((f"compute{c}", 1) for c in range(self.computes))]

    def program(self, lane: Lane) -> Program:
        return self._load(lane) if lane.role == "load" else self._compute(lane)

    def _rings(self, lane: Lane, n: int) -> tuple[Barrier, Barrier, int]:
        stage, phase = n % self.stages, n // self.stages
        full = lane.machine.barrier(("full", stage), 1)
        return full, lane.machine.barrier(("empty", stage), self.computes), phase

    def _load(self, lane: Lane) -> Program:
        for n in range(2 * self.total):
            full, empty, phase = self._rings(lane, n)
            lane.starts.append(lane.t)
            yield from lane.wait("acquire", n, empty, phase - 1)
            lane.stamp("load_begin", n)
            lane.run(self.issue)
            lane.stamp("load_end", n, "active", "load", n, ((full, self.latency),))

    def _compute(self, lane: Lane) -> Program:
        now = Ticks(0)
        for j in range(self.total):
            full_k, empty_k, phase_k = self._rings(lane, 2 * j)
            full_v, empty_v, phase_v = self._rings(lane, 2 * j + 1)
            lane.starts.append(lane.t)
            yield from lane.wait("k_wait", j, full_k, phase_k)
            lane.stamp("qk_begin", j)
            lane.run(self.qk)
            lane.stamp("qk_end", j, "active", "qk", j)
            yield from lane.wait("v_wait", j, full_v, phase_v)
            lane.stamp("pv_begin", j)
            lane.run(self.pv)
            lane.stamp("pv_end", j, "active", "pv", j, ((empty_k, now), (empty_v, now)))
