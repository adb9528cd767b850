"""The combined picture of passes: against the plain reference on random captures, and by hand."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference_captures import random_tables
from test_views import compare, whole

import reference
from wsformat.bundle import Bundle
from wsformat.derive import run
from wsformat.kernels.decode import to_bundle
from wsformat.kernels.examples import gemm_hopper
from wsformat.kernels.recording import Recording

CAPTURE = "1" * 26


def several(tables: dict[str, list[dict[str, Any]]]) -> None:
    """A second launch with the rows of the first, some ticks later, where a capture has only one."""
    for capture in {k["capture_id"] for k in tables["launches"]}:
        mine = [k for k in tables["launches"] if k["capture_id"] == capture]
        if len(mine) > 1:
            continue
        number = mine[0]["launch"] + 1
        lanes = [x for x in tables["lanes"] if x["capture_id"] == capture]
        shift = max((x["lane"] for x in lanes), default=0) + 1
        tables["launches"].append({**mine[0], "launch": number})
        tables["lanes"] += [{**x, "lane": x["lane"] + shift, "launch": number} for x in lanes]
        events = [e for e in tables["events"] if e["capture_id"] == capture]
        tables["events"] += [
            {**e, "lane": e["lane"] + shift, "launch": number, "t": e["t"] + 3 * e["iteration"]} for e in events
        ]


def passes(seed: int, captures: int, iterations: int) -> dict[str, list[dict[str, Any]]]:
    """Random captures whose launches are passes of few families, so that spans meet."""
    rng = random.Random(seed)
    tables = random_tables(seed, captures, iterations)
    several(tables)
    for k in tables["launches"]:
        k |= {"pass": rng.choice([-1, 0, 0, 1, 1, 2]), "trip_count": rng.choice([8] * 6 + [4, -1])}
        if rng.random() < 0.85:
            k |= {"grid_x": 2, "grid_y": 1, "grid_z": 1}
        if rng.random() < 0.5:
            k |= {"kind": "stamped", "status": "ok"}
    for x in tables["lanes"]:
        if rng.random() < 0.7:
            x |= {"warp": rng.choice([-1, 0]), "cta": rng.choice([0, 0, 0, 1])}
    for c in tables["clocks"]:
        if rng.random() < 0.7:
            c["unit"] = "cycle"
    return tables


def judged(tables: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The reference's rows, which the view gives too."""
    expected: list[dict[str, Any]] = reference.views(whole(tables)).get("pass_span", [])
    with Bundle.from_tables(tables).duckdb(only=["pass_span"], threads=1) as connection:
        compare("pass_span", run(connection, "SELECT * FROM pass_span").to_pylist(), expected)
    return expected


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 2**32 - 1), captures=st.integers(1, 2), iterations=st.integers(1, 9))
def test_agrees_with_the_reference(seed: int, captures: int, iterations: int) -> None:
    judged(passes(seed, captures, iterations))


def test_random_passes_reach_every_case() -> None:
    rows = [row for n in range(15) for row in reference.views(whole(passes(n, 1, 6))).get("pass_span", [])]
    assert {row["is_chosen"] for row in rows} == {True, False}
    assert {row["drift"] is None for row in rows} == {True, False}
    assert {row["drift"] == 0 for row in rows if row["drift"] is not None} == {True, False}
    assert max(row["passes"] for row in rows) >= 2
    assert any(row["launches"] > row["passes"] for row in rows)
    assert any(row["member"] > 1 for row in rows)


def two_passes(**more: Any) -> dict[str, list[dict[str, Any]]]:
    """One CTA, one role, three iterations. Launch 0 has everything, 1 the waits, 2 the work; each on its own clock."""
    own = {"capture_id": CAPTURE}
    stamps = {
        0: {"enter": [100, 200, 300], "leave": [110, 220, 310], "begin": [112, 222, 312], "done": [190, 290, 390]},
        1: {"enter": [1050, 1145, 1240], "leave": [1058, 1153, 1250]},
        2: {"begin": [5030, 5131, 5232], "done": [5100, 5201, 5300]},
    }
    starts = {0: 80, 1: 1040, 2: 5000}
    lanes, events = [], []
    for launch, series in stamps.items():
        at = {"launch": launch, "cta": 0, "clock": launch, **own}
        lanes.append(
            {**at, "lane": 2 * launch, "kind": "cta", "t_start": starts[launch], "t_end": starts[launch] + 900}
        )
        lanes.append({**at, "lane": 2 * launch + 1, "role": "mma", "kind": "warp", "warp": 3})
        for event, times in series.items():
            here = {**at, "lane": 2 * launch + 1, "role": "mma", "warp": 3, "event": event}
            events += [{**here, "iteration": i, "t": t} for i, t in enumerate(times)]
    span = {"role": "mma", "loop": "k", **own}
    return {
        "captures": [{"kind": "stamped", "experiment": "x", "completeness": "complete", **own}],
        "launches": [
            {"launch": n, "pass": n, "kind": "stamped", "trip_count": 3, "grid_x": 1, "grid_y": 1, "grid_z": 1, **own}
            for n in stamps
        ],
        "lanes": lanes,
        "clocks": [{"clock": n, "scope": "sm", "unit": "cycle", "step_ticks": 1, **own} for n in stamps],
        "roles": [{"role": "mma", "iteration_event": "enter", **own}],
        "event_types": [
            {"role": "mma", "event": e, "event_index": n, "loop": "k", **own}
            for n, e in enumerate(("enter", "leave", "begin", "done"))
        ],
        "span_types": [
            {"span": "wait", "state": "stall", "begin_event": "enter", "end_event": "leave", **span},
            {"span": "work", "state": "active", "begin_event": "begin", "end_event": "done", **span},
        ],
        "events": events,
        **more,
    }


def test_each_pass_is_placed_by_what_it_shares_with_the_richest_launch() -> None:
    rows = {(r["launch"], r["span"], r["iteration"]): r for r in judged(two_passes())}
    assert len(rows) == 12
    assert {r["base_launch"] for r in rows.values()} == {0}
    # The base lies where it was.
    assert (rows[0, "work", 1]["x0"], rows[0, "work", 1]["x1"], rows[0, "work", 1]["drift"]) == (142, 210, 0)
    # Iteration 1 of launch 1 began 105 after the start of its CTA, that of the base 120 after.
    wait = rows[1, "wait", 1]
    assert (wait["align_event"], wait["since_start"], wait["since_align"]) == ("enter", 105, 0)
    assert (wait["x0"], wait["x1"], wait["drift"]) == (120, 128, -15)
    # The work pass has no `enter`: it is placed by its own begin.
    work = rows[2, "work", 2]
    assert (work["align_event"], work["x0"], work["x1"], work["drift"]) == ("begin", 232, 300, 0)
    assert (work["least_ticks"], work["most_ticks"], work["passes"]) == (68, 78, 2)
    # t0 and t1 are never changed.
    assert (work["t0"], work["t1"]) == (5232, 5300)
    # With no clean launch the disturbance is unknown: the smallest pass.
    assert {r["pass"] for r in rows.values() if r["is_chosen"]} == {0}


def clean_and_lifetimes() -> dict[str, list[dict[str, Any]]]:
    """The passes with clean launches of the same lifetimes but for pass 0, which is 10 % slower."""
    tables = two_passes()
    for x in tables["lanes"]:
        if x["kind"] == "cta":
            x["t_end"] = x["t_start"] + (990 if x["launch"] == 0 else 900)
    own = {"capture_id": CAPTURE}
    tables["launches"].append(
        {"launch": 3, "kind": "clean", "trip_count": 3, "grid_x": 1, "grid_y": 1, "grid_z": 1, **own}
    )
    tables["clocks"].append({"clock": 3, "scope": "sm", "unit": "cycle", **own})
    tables["lanes"].append(
        {"lane": 6, "launch": 3, "cta": 0, "kind": "cta", "clock": 3, "t_start": 0, "t_end": 900, **own}
    )
    return tables


def test_the_pass_that_disturbs_least_is_drawn() -> None:
    rows = judged(clean_and_lifetimes())
    assert {r["pass"]: r["perturbation"] for r in rows} == {0: pytest.approx(0.1), 1: 0.0, 2: 0.0}
    assert {(r["span"], r["pass"]) for r in rows if r["is_chosen"]} == {("wait", 1), ("work", 2)}
    # Still laid out by the launch that has all points.
    assert {r["base_launch"] for r in rows} == {0}


def test_launches_that_are_not_alike_are_not_compared() -> None:
    for change in ({"trip_count": 4}, {"grid_x": 2}, {"pass": -1}, {"status": "failed"}, {"kind": "clean"}):
        tables = two_passes()
        tables["launches"][1] |= change
        rows = judged(tables)
        assert {r["passes"] for r in rows if r["span"] == "wait"} == {1}
        assert {r["launch"] for r in rows} == ({0, 1, 2} if set(change) & {"trip_count", "grid_x"} else {0, 2})
        assert all(r["base_launch"] == 1 for r in rows if r["launch"] == 1)


def test_without_a_shared_point_each_pass_keeps_its_own_time() -> None:
    tables = two_passes()
    tables["events"] = [e for e in tables["events"] if e["launch"] != 0]
    rows = judged(tables)
    other = [r for r in rows if r["launch"] != r["base_launch"]]
    assert other
    assert all((r["align_event"], r["drift"], r["x0"]) == ("", None, r["since_start"]) for r in other)


def test_real_passes() -> None:
    bundle = to_bundle(Recording.load(Path(gemm_hopper.__file__).parent / "gemm_hopper.npz"))
    rows = bundle.sql("SELECT * FROM pass_span").to_pylist()
    names = {r["pass"] for r in rows}
    assert names == {0, 1, 2}
    chosen = [r for r in rows if r["is_chosen"]]
    assert {(r["span"], r["passes"]) for r in chosen} == {("wait", 2), ("work", 2), ("epilogue", 2)}
    keys = [(r["cta"], r["role"], r["span"], r["iteration"]) for r in chosen]
    assert len(keys) == len(set(keys)) == 3 * 2 * 64 + 2
    # The base has all stamps, and its spans lie where they were.
    (base,) = {r["base_launch"] for r in rows}
    assert all(r["pass"] == 0 and r["drift"] in (0, None) for r in rows if r["launch"] == base)
    # After 64 iterations no pass is off by more than two of them.
    assert max(abs(r["drift"]) for r in rows if r["drift"] is not None) < 2 * 512
