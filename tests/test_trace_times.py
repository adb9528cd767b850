"""Times of a trace are those of the view timeline_ns, with its bounds; also where no straight line fits the anchors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from trace_cases import bundle_of, several_captures
from trace_truth import CONFORMANCE

from wsformat.bundle import Bundle
from wsformat.converters.trace_build import opened
from wsformat.converters.trace_model import Slices
from wsformat.converters.trace_options import Choice


def bent(anchors: int = 4, *, of_launch: bool = True) -> Bundle:
    """Spans on a cycle clock whose rate changes between anchors, before the first of them and after the last."""
    held = bundle_of([(0, "a", t, t + 7) for t in range(0, 6000, 501)], unit="cycle")
    c = {"capture_id": "c"}
    clock = held.table("clocks").to_pylist()[0]
    times = [(1000, 10_000), (2000, 10_700), (3000, 11_200), (4000, 12_300), (5000, 13_000)][:anchors]
    return held.with_tables(
        {
            "clocks": [clock, {**c, "clock": 1, "scope": "device", "unit": "ns", "step_ticks": 32}],
            "clock_anchors": [
                {**c, "launch": 0 if of_launch else -1, "clock": 0, "t": t, "reference_clock": 1, "reference_t": ns,
                 "error_ns": 16.0}
                for t, ns in times
            ],
        }
    )  # fmt: skip


CASES = {
    "two anchors": bent(2),
    "of the capture": bent(3, of_launch=False),
    "several pieces": bent(5),
    "clocks in ns": several_captures(),
    "epoch": bundle_of([(0, "a", 1_796_004_199_815_867_195, 1_796_004_199_815_867_202)]),
}


def drawn(bundle: Bundle) -> list[tuple[int, int, int, int, float, float]]:
    """(begin tick, end tick, begin, end, error, wander) of every slice."""
    rows = []
    with opened(bundle, Choice(flows="none", counters=False)) as trace:
        assert trace.axis == "ns"
        for part in trace.parts:
            if isinstance(part, Slices):
                columns = (part.tick0, part.tick1, part.t0 + trace.base, part.t1 + trace.base)
                rows += zip(*(c.tolist() for c in (*columns, part.error_ns, part.wander_ns)), strict=True)
    return sorted(rows)


def in_the_view(bundle: Bundle) -> list[tuple[int, int, int, int, float, float]]:
    rows = bundle.sql("SELECT t0, t1, ns0, ns1, error_ns, wander_ns FROM timeline_ns").to_pylist()
    return sorted(tuple(math.nan if value is None else value for value in row.values()) for row in rows)


@pytest.mark.parametrize("name", CASES)
def test_times_and_bounds_are_those_of_the_view(name: str) -> None:
    got, wanted = drawn(CASES[name]), in_the_view(CASES[name])
    assert len(got) == len(wanted) > 0
    np.testing.assert_allclose(np.array(got)[:, 4:], np.array(wanted)[:, 4:], rtol=1e-12)
    assert [row[:4] for row in got] == [row[:4] for row in wanted]


def test_the_cases_are_what_they_say() -> None:
    pieces = {name: bundle.sql("SELECT MAX(segments) AS n FROM clock_segment").to_pylist()[0]["n"]
              for name, bundle in CASES.items()}  # fmt: skip
    assert pieces == {"two anchors": 1, "of the capture": 2, "several pieces": 4, "clocks in ns": None, "epoch": None}


@pytest.mark.sources
def test_a_real_grid_too() -> None:
    bundle = Bundle.open(CONFORMANCE / "gemm_grid.wsformat")
    got, wanted = drawn(bundle), in_the_view(bundle)
    assert [row[:4] for row in got] == [row[:4] for row in wanted]
    np.testing.assert_allclose(np.array(got)[:, 4:], np.array(wanted)[:, 4:], rtol=1e-12)
