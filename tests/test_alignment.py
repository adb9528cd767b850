"""Ticks of many SMs on one axis: the true time lies within the stated bound, and the bound is not lazy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simulator_clocks
from hypothesis import example, given, settings
from hypothesis import strategies as st

from wsformat.alignment import anchors_of, place, step_of
from wsformat.bundle import Bundle
from wsformat.derive import run
from wsformat.stamp_launch import StampLaunch
from wsformat.stamp_times import ANCHOR, META

Array = np.ndarray[Any, Any]
DATA = Path(__file__).parent / "data"
LINES = ("clock_map", "clock_segment")


def off(recording: simulator_clocks.Recording, sm: Array, time: Array) -> tuple[Array, Array, Array]:
    """Distance of placed from true times, and the bounds that were stated: error, wander."""
    with recording.bundle.duckdb(threads=1, only=LINES) as connection:
        tick = recording.device.tick(sm, time)
        ns, error, wander, reference = place(connection, simulator_clocks.CAPTURE, np.zeros(len(sm)), sm, tick)
    assert (reference == len(recording.device.offset)).all()
    return np.abs((ns - simulator_clocks.EPOCH) - time), error, wander


def ctas(made: simulator_clocks.Device, per_sm: int, length: float) -> tuple[Array, Array, Array]:
    """CTAs one after the other on each SM, with gaps."""
    sms = len(made.offset)
    sm = np.repeat(np.arange(sms), per_sm)
    slot = np.tile(np.arange(per_sm), sms) * length / per_sm
    start = slot + made.rng.uniform(0, 0.1, len(sm)) * length / per_sm
    return sm, start, start + made.rng.uniform(0.5, 0.85, len(sm)) * length / per_sm


def inside(recording: simulator_clocks.Recording, count: int) -> tuple[Array, Array]:
    """Moments of CTAs: SM and true time."""
    rng = recording.device.rng
    cta = rng.integers(0, len(recording.cta_sm), count)
    time = recording.start[cta] + rng.uniform(0, 1, count) * (recording.end[cta] - recording.start[cta])
    # The start's counter is read a little after the timer.
    return recording.cta_sm[cta], np.clip(time, recording.start[cta] + 10, recording.end[cta])


@pytest.mark.parametrize(("per_sm", "middle"), [(1, 0), (1, 2), (3, 1), (20, 0)])
def test_truth_lies_within_the_bound_of_a_million_events_and_the_bound_is_not_lazy(per_sm: int, middle: int) -> None:
    made = simulator_clocks.device(per_sm + middle, 132)
    recording = simulator_clocks.record(made, *ctas(made, per_sm, 1e5), middle)
    distance, error, wander = off(recording, *inside(recording, 1_000_000))
    assert (distance <= error).all(), f"{int((distance > error).sum())} of a million outside their bound"
    assert np.median(error) <= 2 * made.step
    assert (wander == 0).all() == (per_sm + middle > 1)
    with recording.bundle.duckdb(threads=1, only=LINES) as connection:
        assert run(connection, "SELECT DISTINCT is_straight FROM clock_map").to_pylist() == [{"is_straight": True}]


def test_more_anchors_of_an_sm_make_the_line_truer() -> None:
    found = []
    for per_sm in (1, 5, 40):
        made = simulator_clocks.device(7, 20)
        recording = simulator_clocks.record(made, *ctas(made, per_sm, 1e5))
        found.append(float(np.median(off(recording, *inside(recording, 10_000))[0])))
    assert found[0] > found[1] > found[2]
    assert found[2] < 3


def test_a_change_of_rate_is_found_and_placed_in_pieces() -> None:
    """With a few anchors in the middle no line fits; the truth lies within error and wander, between anchors too."""
    made = simulator_clocks.device(3, 132, changes=3, length=1e5)
    recording = simulator_clocks.record(made, *ctas(made, 1, 1e5), middle=8)
    with recording.bundle.duckdb(threads=1, only=LINES) as connection:
        straight = run(connection, "SELECT is_straight, COUNT(*) AS n FROM clock_map GROUP BY ALL").to_pylist()
    assert {row["is_straight"]: row["n"] for row in straight}[False] > 100
    distance, error, wander = off(recording, *inside(recording, 1_000_000))
    bent = wander > 0
    assert (distance <= error + wander)[bent].all()
    # A change too small for the anchors to show: a line fits, and is off by less than twice what it says.
    assert (distance <= 2 * error)[~bent].all()
    assert np.median(error + wander) < 600


def test_two_anchors_cannot_show_a_change_of_rate_and_say_so() -> None:
    made = simulator_clocks.device(4, 132, changes=2, length=1e5)
    recording = simulator_clocks.record(made, *ctas(made, 1, 1e5))
    distance, error, wander = off(recording, *inside(recording, 100_000))
    assert (distance > error).any(), "the changes were too small to matter"
    assert (distance <= error + wander).all()
    # Start and end of a CTA are anchors: known to the step, whatever the rate did.
    at_ends = off(recording, recording.cta_sm, recording.end)
    assert (at_ends[0] <= at_ends[1]).all()
    assert (at_ends[2] < 1).all()


@example(seed=4, sms=1, per_sm=2, middle=2, step=1000, length=300.0, recorded=True)
@example(seed=0, sms=1, per_sm=4, middle=2, step=1000, length=300.0, recorded=False)
@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    sms=st.integers(1, 4),
    per_sm=st.integers(1, 6),
    middle=st.integers(0, 3),
    step=st.sampled_from([1, 32, 1000, 1024]),
    length=st.sampled_from([300.0, 5e3, 1e6]),
    recorded=st.booleans(),
)
def test_odd_recordings(
    seed: int, sms: int, per_sm: int, middle: int, step: int, length: float, recorded: bool
) -> None:
    """Coarse and fine timers, CTAs shorter than its step; a distance that nobody recorded is missing from the bound."""
    made = simulator_clocks.device(seed, sms, step, jitter=0.25 * step)
    if not recorded:
        made.distance = max(1, step // 8)
    recording = simulator_clocks.record(made, *ctas(made, per_sm, length), middle, recorded)
    distance, error, _ = off(recording, *inside(recording, 200))
    shown = recording.bundle.table("clock_anchors")["reference_t"].unique()
    if len(shown) == 1:
        # The timer never moved: its step is not known, and no bound is stated.
        assert np.isnan(error).all()
        return
    assert (distance <= error + (0 if recorded else made.distance)).all()


@settings(max_examples=25, deadline=None)
@given(
    bound=st.floats(1, 1000),
    gaps=st.lists(st.integers(1, 400), min_size=1, max_size=12),
    off=st.lists(st.floats(-1, 1), min_size=13, max_size=13),
    bent=st.lists(st.floats(0, 4), min_size=12, max_size=12),
)
def test_anchors_that_run_back_within_their_bounds(
    bound: float, gaps: list[int], off: list[float], bent: list[float]
) -> None:
    """Reference times may fall while ticks rise. Placed times never do, and the true ones stay within the bound."""
    tick = 5_000_000 + np.concatenate([[0], np.cumsum(gaps)])
    true = np.concatenate([[0.0], np.cumsum(np.array(gaps) * bent[: len(gaps)])])
    shown = np.rint(true + np.array(off[: len(true)]) * bound).astype(np.int64)
    clocks = [{"clock": 0, "scope": "sm", "unit": "cycle", "step_ticks": 1}]
    clocks.append({"clock": 1, "scope": "device", "unit": "ns", "sm": -1, "step_ticks": 1})
    anchors = [
        {"launch": 0, "clock": 0, "t": int(t), "reference_clock": 1, "reference_t": int(g), "error_ns": bound + 1}
        for t, g in zip(tick, shown, strict=True)
    ]
    tables = {"clocks": clocks, "clock_anchors": anchors}
    bundle = Bundle.from_tables(
        {n: [{"capture_id": simulator_clocks.CAPTURE, **r} for r in t] for n, t in tables.items()}
    )
    every = np.arange(tick[0], tick[-1] + 1)
    with bundle.duckdb(threads=1, only=LINES) as connection:
        nil = np.zeros(len(every))
        ns, error, wander, _ = place(connection, simulator_clocks.CAPTURE, nil, nil, every)
        straight = run(connection, "SELECT is_straight FROM clock_map").to_pylist()[0]["is_straight"]
    assert (np.diff(ns) >= 0).all()
    assert (error >= 0).all()
    assert (wander >= 0).all()
    if not straight:
        at = np.interp(every, tick, true)
        assert (np.abs(ns - at) <= error + 1).all()
    reached = np.searchsorted(every, tick)
    assert (np.abs(ns[reached] - true) <= error[reached] + 1).all()


@pytest.mark.parametrize("step", [1, 32, 1000, 1024])
def test_the_step_is_what_the_readings_show(step: int) -> None:
    rng = np.random.default_rng(step)
    shown = 1_790_000_000_000_000_017 + rng.integers(0, 10_000, 300) * step
    assert step_of(shown) == step
    assert step_of(np.zeros(0, np.int64)) == -1


def test_one_moment_only_is_no_line() -> None:
    made = simulator_clocks.device(1, 1)
    same = np.array([500.0])
    recording = simulator_clocks.record(made, np.array([0]), same, same)
    assert recording.bundle.table("clock_anchors").num_rows in (1, 2)
    one = recording.bundle.with_tables({"clock_anchors": recording.bundle.table("clock_anchors").to_pylist()[:1]})
    with one.duckdb(only=LINES) as connection:
        found = run(connection, "SELECT ns_per_tick, error_ns, is_straight, wander_ns FROM clock_map").to_pylist()
        assert found == [{"ns_per_tick": None, "error_ns": None, "is_straight": None, "wander_ns": None}]
        assert place(connection, simulator_clocks.CAPTURE, [0], [0], [5])[3].tolist() == [-2]


def real(kind: str) -> tuple[Array, Array, Array, Array]:
    """SM of 12 CTAs of an H200, and 400 readings of each: timer, cycle counter, distance. One every 400 cycles or so.

    quiet: one warp an SM. load: eight warps of tensor work beside it, that start with the launch.
    """
    with np.load(DATA / "h200_rate_wander.npz") as held:
        timer, counter = (
            np.concatenate([held[f"{kind}_{n}0"][:, None], held[f"{kind}_{n}"].astype(np.int64)], axis=1).cumsum(axis=1)
            for n in "gc"
        )
        return held[f"{kind}_sm"].astype(np.int64), timer, counter, held[f"{kind}_d"].astype(np.int64)


def measured(kind: str, middle: int | list[int]) -> tuple[Any, Array, Array, Array]:
    """A bundle with the first, the last and some middle readings as anchors; how far all readings are from its map.

    Args:
        kind: of the recording, see :func:`real`.
        middle: how many, evenly spread, or which.
    """
    sm, timer, counter, distance = real(kind)
    n = len(sm)
    meta = np.zeros(n, META)
    meta["g0"], meta["c0"], meta["g1"], meta["c1"], meta["sm"] = (
        timer[:, 0],
        counter[:, 0],
        timer[:, -1],
        counter[:, -1],
        sm,
    )
    meta["pad"] = distance[:, 0] | distance[:, -1] << 16
    even = 0 if isinstance(middle, list) else middle
    at = (
        np.array(middle) if isinstance(middle, list) else np.linspace(0, timer.shape[1] - 1, even + 2).astype(int)[1:-1]
    )
    more = np.zeros((n, len(at)), ANCHOR)
    more["g"], more["c"], more["distance"] = timer[:, at], counter[:, at], distance[:, at]
    more["cta"] = np.arange(n)[:, None]
    rows, step = anchors_of([StampLaunch(None, meta, anchors=more)], [np.arange(n)], n, simulator_clocks.CAPTURE)
    assert step == 32
    clocks = [{"clock": k, "scope": "sm", "unit": "cycle", "sm": int(sm[k]), "step_ticks": 1} for k in range(n)]
    clocks.append({"clock": n, "scope": "device", "unit": "ns", "step_ticks": step})
    own = {"capture_id": simulator_clocks.CAPTURE}
    bundle = Bundle.from_tables(
        {"captures": [own], "launches": [own], "clocks": [own | c for c in clocks], "clock_anchors": rows.to_pylist()}
    )
    with bundle.duckdb(threads=1, only=LINES) as connection:
        clock = np.repeat(np.arange(n), timer.shape[1])
        ns, error, wander, _ = place(connection, own["capture_id"], clock * 0, clock, counter.reshape(-1))
        straight = [
            row["is_straight"]
            for row in run(connection, "SELECT is_straight FROM clock_map ORDER BY clock").to_pylist()
        ]
    # A reading leaves half a step open, and steps come up to 10 ns early or late.
    return straight, np.abs(ns - (timer.reshape(-1) + step // 2)) - 16 - 10, error, wander


def test_a_quiet_h200_runs_straight() -> None:
    for middle in (1, 3, 20, 398):
        straight, distance, error, wander = measured("quiet", middle)
        assert all(straight), middle
        assert (distance <= error).all()
        assert (wander == 0).all()
        assert np.median(error) <= 64


def test_a_loaded_h200_does_not_run_straight_and_the_bounds_hold_all_the_same() -> None:
    """Its tensor cores start with the launch: the SM runs at 1.75 GHz at first and at 1.80 GHz after 20 us."""
    _, distance, error, wander = measured("load", 0)
    assert distance.max() > 250 > error.max(), "two anchors alone would claim 34 ns and be off by ten times that"
    assert (distance <= error + wander).all()
    for middle in (1, 3, 8, 20):
        straight, distance, error, wander = measured("load", middle)
        assert not any(straight), middle
        assert (distance <= error + wander).all(), middle
    assert np.median(error + wander) < 250
    straight, distance, error, wander = measured("load", 398)
    assert (distance <= error).all()


def test_anchors_beside_the_ends_show_no_more_than_those_at_the_ends() -> None:
    """As two CTAs at a time on an SM write them: four anchors, a line through all, and nothing known in between."""
    straight, distance, error, wander = measured("load", [1, 398])
    assert sum(straight) >= 4
    off_line = (distance > error).reshape(len(straight), -1).any(axis=1)
    assert off_line[straight].any(), "the rate did not change enough to matter"
    assert (distance <= error + wander).all()
    straight, distance, error, wander = measured("quiet", [2, 200, 397])
    assert all(straight)
    assert (wander == 0).all()
    assert (distance <= error).all()
