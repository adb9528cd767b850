"""Kernels to try: planted cases with a known character, and random ones."""

from __future__ import annotations

from hypothesis import strategies as st
from simulator_kernels import Attention, Ring

from simulator import Kernel, Ticks

PLANTED: dict[str, Kernel] = {
    "balanced": Ring(iterations=32),
    "slow_producer": Ring(spin=Ticks(1500), iterations=24),
    "slow_consumer": Ring(work=(Ticks(300), Ticks(900)), iterations=24),
    "too_few_stages": Ring(stages=1, iterations=24),
    "latency_bound": Ring(stages=2, work=(Ticks(50),), latency=Ticks(900), iterations=24),
    "serial": Ring(serial=True, consumers=3, iterations=24),
    "symmetric_barrier": Ring(sync=True, work=(Ticks(300, 80),), iterations=24, width=2),
    "wgmma_wait": Ring(commit=Ticks(350), width=4, iterations=20),
    "early_release": Ring(early=True, iterations=20),
    "two_producers": Ring(loader=Ticks(300, 250), work=(Ticks(100, 300),), iterations=40),
    "persistent": Ring(tiles=3, iterations=16, epilogue=Ticks(700), sync=True),
    "attention": Attention(stages=5, iterations=16),
    "attention_slow_load": Attention(stages=4, iterations=16, issue=Ticks(700)),
    "everything": Ring(
        producers=2, width=2, serial=True, sync=True, commit=Ticks(200), early=True, loader=Ticks(100, 90),
        epilogue=Ticks(500), tiles=2, spin=Ticks(20, 100), work=(Ticks(120, 60), Ticks(90, 10)), tail=Ticks(9, 5),
    ),
}  # fmt: skip


@st.composite
def ticks(draw: st.DrawFn, most: int) -> Ticks:
    return Ticks(draw(st.integers(0, most)), draw(st.sampled_from([0, 0, 7, most // 2])))


@st.composite
def kernels(draw: st.DrawFn, latency_jitter: int = 0, cost_jitter: int = 0, lead: bool = True) -> Kernel:
    """Any kernel. What a satisfied wait costs and what a signal takes is constant unless jitter is asked for.

    A signal is made no longer before its stamp than a wait costs: more contradicts the edge. At a symmetric barrier
    waking takes no longer than a satisfied wait: the last to arrive pays it as well, so that it is part of the floor.
    """
    probe, least = draw(st.integers(0, 9)), 10 if cost_jitter else 1
    cost = draw(st.integers(max(probe, least), 60))
    sync = draw(st.booleans())
    common = {
        "stages": draw(st.integers(1, 5)),
        "iterations": draw(st.integers(1, 10)),
        "latency": Ticks(draw(st.sampled_from([0, 90, 600])), latency_jitter),
        "cost": Ticks(cost, cost_jitter),
        "wake": draw(st.integers(0, min(cost, 40) if sync else 40)),
        "probe": probe,
        "lead": draw(st.integers(0, min(cost, 6))) if lead else 0,
        "skew": draw(ticks(300)),
    }
    if draw(st.integers(0, 3)) == 0:
        common["stages"] = max(2, common["stages"])
        return Attention(
            **common,
            computes=draw(st.integers(1, 3)),
            issue=draw(ticks(300)),
            qk=draw(ticks(500)),
            pv=draw(ticks(500)),
        )
    consumers = draw(st.integers(1, 3))
    return Ring(
        **common,
        tiles=draw(st.integers(1, 2)),
        producers=draw(st.integers(1, 2)),
        consumers=consumers,
        width=draw(st.sampled_from([1, 1, 2, 4])),
        spin=draw(ticks(800)),
        issue=draw(ticks(200)),
        work=tuple(draw(st.lists(ticks(600), min_size=1, max_size=3))),
        tail=draw(ticks(60)),
        sync=sync,
        serial=consumers > 1 and draw(st.booleans()),
        commit=draw(st.sampled_from([None, None, Ticks(150)])),
        early=draw(st.booleans()),
        epilogue=draw(st.sampled_from([None, Ticks(300, 40)])),
        loader=draw(st.sampled_from([None, None, Ticks(250, 200)])),
    )


OFFSETS = {
    "small": lambda cta: 1_000 + 7_654_321 * cta,
    "wrapping": lambda cta: (cta + 1) * 2**32 - 3_000,
    "epoch_ns": lambda cta: 1_790_000_000_000_000_001 + 12_345 * cta,
}
