"""Times of stamps: wraps undone by anchors and by order, what stays ambiguous refused, clocks and their steps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsformat import rolespec, samples
from wsformat.errors import MalformedInput
from wsformat.rolespec import Layout
from wsformat.stamp_clocks import assign_clocks
from wsformat.stamp_launch import StampLaunch, survey
from wsformat.stamp_times import META, Anchor, crossings, decode_times, granularity

TURN = 1 << 32
SHAPE = (2, 3, 6)
"""Roles, events, iterations of the made-up buffers."""


@st.composite
def series(draw: st.DrawFn, most: int) -> np.ndarray:
    """True times [role, event, iteration] of one CTA, rising along iterations, starting within ``most`` ticks."""
    steps = draw(st.lists(st.integers(0, most), min_size=36, max_size=36))
    starts = draw(st.lists(st.integers(0, min(most, 2**30)), min_size=6, max_size=6))
    rel = (
        np.cumsum(np.array(steps, np.int64).reshape(SHAPE), axis=-1) - np.array(steps, np.int64).reshape(SHAPE)[..., :1]
    )
    return rel + np.array(starts, np.int64).reshape(2, 3, 1)


def slots_of(true: np.ndarray, unwritten: int = 0) -> np.ndarray:
    """The low halves, as on the device; a true low half equal to ``unwritten`` moves on by one tick."""
    low = (true % TURN).astype(np.uint32)
    assert not (low == np.uint32(unwritten)).any()
    return low


@settings(max_examples=150, deadline=None)
@given(series(2**28), st.integers(0, 2**40), st.integers(0, 1000))
def test_with_an_anchor_wraps_anywhere_are_undone(rel: np.ndarray, start: int, lead: int) -> None:
    true = rel + start + lead
    if (true % TURN == 0).any() or int(rel.max()) + lead >= TURN:
        return
    anchor = Anchor(np.array([start]), np.array([int(true.max()) + 5]))
    times = decode_times(slots_of(true)[None], 0, anchor, "x")
    assert (times.base[:, None, None, None] + times.rel == true).all()
    expected = (true >> 32).max(axis=(1, 2)) - (true >> 32).min(axis=(1, 2))
    assert (crossings(times)[0] == expected).all()


@settings(max_examples=150, deadline=None)
@given(series(2**31 - 1), st.integers(0, TURN - 1))
def test_without_an_anchor_order_undoes_any_number_of_wraps(rel: np.ndarray, start: int) -> None:
    true = rel + start
    if (true % TURN == 0).any():
        return
    times = decode_times(slots_of(true)[None], 0, None, "x")
    got = times.unfolded.get(0, times.rel[0].astype(np.int64)) + int(times.base[0])
    # Nothing says how often the counter had gone round before: equal up to whole turns, the same for all stamps.
    assert len(np.unique(got - true)) == 1
    assert (got - true).ravel()[0] % TURN == 0
    assert 0 <= got.min() < TURN
    assert (crossings(times)[0] == (got >> 32).max(axis=(1, 2)) - (got >> 32).min(axis=(1, 2))).all()


def test_a_wrap_in_the_middle_of_a_real_capture_changes_nothing_but_the_origin() -> None:
    slots = np.fromfile(samples.path("balanced_r0.i32"), "<u4").reshape(1, 3, 16, 64)
    plain = decode_times(slots, 0, None, "x")
    shift = np.uint32(TURN - 25_000 - int(plain.base[0]))
    moved = np.where(slots != 0, slots + shift, 0)
    times = decode_times(moved, 0, None, "x")
    assert (times.rel == plain.rel).all()
    assert crossings(times).tolist() == [[1, 1, 1]]
    assert crossings(plain).tolist() == [[0, 0, 0]]


def test_the_series_after_the_widest_gap_is_the_first() -> None:
    slots = np.zeros((1, 1, 3, 2), np.uint32)
    slots[0, 0, :, 0] = [5, TURN - 10, 100]  # epilogue after the wrap, loop before it
    times = decode_times(slots, 0, None, "x")
    assert (times.base[0] + times.rel[0, 0, :, 0].astype(np.int64)).tolist() == [TURN + 5, TURN - 10, TURN + 100]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([[100, 50]], "CTA 7, role index 0, event index 0, iteration 1: goes back in time"),
        ([[100, 100 + 2**31]], "iteration 1: goes back in time, or more than 2^31 ticks on"),
        ([[100, 0], [100 + 2**31, 0]], "its series cannot be placed within 2^31 ticks"),
        ([[100, 0], [100 + 2**30, 0], [100 + 2**31, 0], [100 + 3 * 2**30, 0]], "cannot be placed"),
    ],
)
def test_what_stays_ambiguous_is_refused(values: list[list[int]], expected: str) -> None:
    slots = np.array(values, np.uint64).astype(np.uint32)[None, None]
    with pytest.raises(MalformedInput) as caught:
        decode_times(slots, 0, None, "buf.i32", first_cta=7)
    assert str(caught.value).startswith("buf.i32: CTA 7, role index 0, event index ")
    assert expected in str(caught.value)


def test_going_back_in_time_is_refused_with_an_anchor_and_across_holes() -> None:
    slots = np.array([[[[100, 0, 90, 120]]]], np.uint32)
    with pytest.raises(MalformedInput, match="CTA 0, role index 0, event index 0, iteration 2: the stamp is earlier"):
        decode_times(slots, 0, Anchor(np.array([50]), np.array([500])), "x")
    with pytest.raises(MalformedInput, match="iteration 2: the stamp is earlier"):
        decode_times(slots.astype(np.int64), 0, None, "x")
    with pytest.raises(MalformedInput, match="iteration 2: goes back"):
        decode_times(slots, 0, None, "x")


def test_stamps_that_contradict_the_records_are_refused() -> None:
    slots = np.array([[[[1000, 1500]]]], np.uint32)
    with pytest.raises(MalformedInput, match=r"iteration 0: .* after the start of a CTA that ran for 100") as caught:
        decode_times(slots, 0, Anchor(np.array([2000]), np.array([2100])), "x")
    assert "meta file belongs to this buffer" in caught.value.hint


def test_a_cta_longer_than_a_turn_is_refused() -> None:
    slots = np.array([[[[1000, 1500]]]], np.uint32)
    with pytest.raises(MalformedInput, match="CTA 0 ran for 4294967296 ticks"):
        decode_times(slots, 0, Anchor(np.array([0]), np.array([TURN])), "x")


def test_64_bit_slots_are_taken_as_they_are() -> None:
    true = np.array([[[[5, TURN + 5, 2**62]]]], np.int64)
    times = decode_times(true, 0, None, "x")
    assert (times.base[0] + times.rel == true).all()


def test_zero_can_be_a_stamp() -> None:
    slots = np.array([[[[0, 7, 0xFFFFFFFF]]]], np.uint32)
    times = decode_times(slots, -1, Anchor(np.array([0]), np.array([100])), "x")
    assert times.written.tolist() == [[[[True, True, False]]]]
    assert times.rel.tolist() == [[[[0, 7, 0]]]]


# --- clocks -----------------------------------------------------------------------------------------------------------


def record(g0: int, c0: int, life: int, sm: int) -> tuple[int, ...]:
    return (g0, c0, g0 + life * 4 // 7 // 32 * 32, c0 + life, sm, 0)


def metas(*rows: tuple[int, ...]) -> np.ndarray:
    return np.array(list(rows), META)


def clocks_of(launches: list[StampLaunch]) -> tuple[list[dict[str, object]], list[list[int]], list[dict[str, object]]]:
    spec = rolespec.load(samples.path("gemm_roles.json"))
    domains = assign_clocks(launches, spec, "c" * 26, [None] * len(launches), 64)
    return domains.clocks.to_pylist(), [c.tolist() for c in domains.clock], domains.anchors.to_pylist()


def test_ctas_of_one_sm_share_its_counter_also_across_launches() -> None:
    first = metas(record(3200, 10_000, 700, 5), record(3200, 90_000, 700, 6), record(6400, 16_000, 700, 5))
    second = metas(record(9600, 21_000, 700, 6 + 94), record(9600, 30_000, 700, 5))
    rows, clock, _ = clocks_of([StampLaunch(None, first), StampLaunch(None, second)])
    assert clock == [[0, 1, 0], [2, 0]]
    assert [(r["scope"], r["sm"]) for r in rows] == [("sm", 5), ("sm", 6), ("sm", 100), ("device", -1)]
    assert [r["unit"] for r in rows] == ["cycle", "cycle", "cycle", "ns"]


def test_a_counter_that_went_back_is_another_one() -> None:
    first, second = metas(record(3200, 10_000, 700, 5)), metas(record(9600, 500, 700, 5))
    _, clock, _ = clocks_of([StampLaunch(None, first), StampLaunch(None, second)])
    assert clock == [[0], [1]]


def test_two_records_at_one_tick_are_one_anchor() -> None:
    both = metas(record(3200, 10_000, 700, 5), record(3232, 10_000, 800, 5))
    _, _, anchors = clocks_of([StampLaunch(None, both)])
    keys = [(a["launch"], a["clock"], a["t"], a["reference_clock"]) for a in anchors]
    assert len(keys) == len(set(keys)) == 3


def test_the_step_of_the_timer_is_measured() -> None:
    many = metas(*[record(3200 + 32 * n, 10_000 + 999 * n, 700 + n, n) for n in range(8)])
    rows, _, anchors = clocks_of([StampLaunch(None, many)])
    assert rows[-1]["step_ticks"] == 32
    assert {a["error_ns"] for a in anchors} == {32.0}
    other = many.copy()
    other["g0"] += 16
    rows, _, _ = clocks_of([StampLaunch(None, other)])
    assert rows[-1]["step_ticks"] == 16


def test_too_few_readings_tell_no_step() -> None:
    rows, _, anchors = clocks_of([StampLaunch(None, metas(record(6400, 10_000, 700, 5)))])
    assert [r["step_ticks"] for r in rows] == [-1, -1]
    # What divides the few readings is a multiple of the step, so it still bounds the error.
    assert anchors[0]["error_ns"] % 32 == 0


def test_granularity() -> None:
    assert granularity([np.array([64, 96]), np.array([160])]) == 32
    assert granularity([np.zeros(3, np.int64)]) == -1


def test_without_records_every_cta_has_a_clock_of_its_own() -> None:
    slots = np.load(samples.path("cute_pipeline_r0.npy")).view(np.uint32)
    spec = rolespec.load(samples.path("cute_roles.json"))
    launch = StampLaunch(np.stack([slots, slots]))
    found = survey(launch, spec, Layout(3, 16, 64), 0)
    domains = assign_clocks([launch, launch], spec, "c" * 26, [(found.step, found.wraps.sum(axis=1))] * 2, 32)
    assert [c.tolist() for c in domains.clock] == [[0, 1], [2, 3]]
    assert set(domains.clocks.column("scope").to_pylist()) == {"source"}
    assert set(domains.clocks.column("step_ticks").to_pylist()) == {1}
    assert domains.anchors.num_rows == 0


def test_stamps_of_the_device_timer_need_no_anchor() -> None:
    spec = rolespec.load(samples.path("gemm_roles.json"))
    spec = rolespec.parse(spec.to_json() | {"clock": {"unit": "ns", "scope": "device", "width_bits": 64}}, "x")
    records = metas(record(6400, 10_000, 7_000, 5), record(6432, 90_000, 7_000, 6))
    slots = np.zeros((2, 3, 16, 64), np.int64)
    slots[:, 0, :4, :10] = 6464 + 32 * np.arange(10)
    launch = StampLaunch(slots, records)
    found = survey(launch, spec, Layout(3, 16, 64), 0)
    domains = assign_clocks([launch], spec, "c" * 26, [(found.step, found.wraps.sum(axis=1))], 64)
    (clock,) = domains.clocks.to_pylist()
    assert (clock["scope"], clock["unit"], clock["step_ticks"], clock["sm"]) == ("device", "ns", 32, -1)
    assert domains.clock[0].tolist() == [0, 0]
    assert domains.sm[0].tolist() == [5, 6]
    assert domains.anchors.num_rows == 0


def test_clocks_with_few_readings_take_the_step_that_all_show() -> None:
    """One launch of one CTA an SM has two readings a counter: too few for one, enough for all of a kind."""
    seven = metas(*(record(3200 + 32 * k, 10_000 + 17 * k, 700 + 12 * k, k) for k in range(7)))
    assert [row["step_ticks"] for row in clocks_of([StampLaunch(None, seven)])[0]][:7] == [4] * 7
    assert [row["step_ticks"] for row in clocks_of([StampLaunch(None, seven[:6])])[0]][:6] == [-1] * 6
