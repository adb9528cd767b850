"""Completeness of lanes: every rule of the standard, and that nothing is called complete without a reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simulator_bundle
from simulator_kernels import Ring

from simulator import Ticks, simulate
from wsformat import rolespec, samples
from wsformat.bundle import Bundle
from wsformat.completeness import LoopEvents, judge
from wsformat.converters import registry

NAME = ("complete", "complete", "unknown", "truncated")


def lane(
    slots: int, filled: int, step: int, epilogue: int | None, *, trip_count: int = -1, steps: list[int] | None = None
) -> str:
    """Verdict on one lane: two loop events and one outside, ``epilogue`` ticks after the last loop stamp."""
    rel = np.zeros((1, 1, 3, slots), np.int64)
    written = np.zeros(rel.shape, bool)
    starts = np.concatenate([[1], 1 + np.cumsum(steps)]) if steps else 1 + step * np.arange(filled)
    rel[0, 0, 0, :filled], written[0, 0, 0, :filled] = starts, True
    rel[0, 0, 1, :filled], written[0, 0, 1, :filled] = starts + 10, True
    if epilogue is not None:
        rel[0, 0, 2, 0], written[0, 0, 2, 0] = starts[-1] + 10 + epilogue, True
    return NAME[int(judge(rel, written, [LoopEvents((0, 1), (2,), 0)], [], trip_count)[0, 0])]


@pytest.mark.parametrize(
    ("given", "verdict"),
    [
        ({"slots": 8, "filled": 7, "step": 100, "epilogue": 5000}, "complete"),  # room left
        ({"slots": 8, "filled": 8, "step": 100, "epilogue": None}, "unknown"),
        ({"slots": 8, "filled": 8, "step": 100, "epilogue": 49}, "complete"),  # no room for an iteration
        ({"slots": 8, "filled": 8, "step": 100, "epilogue": 50}, "unknown"),
        ({"slots": 8, "filled": 8, "step": 100, "epilogue": 800}, "unknown"),
        ({"slots": 8, "filled": 8, "step": 100, "epilogue": 801}, "truncated"),  # more than 8 median iterations
        ({"slots": 8, "filled": 8, "step": 100, "epilogue": 5000, "trip_count": 8}, "complete"),
        ({"slots": 8, "filled": 8, "step": 100, "epilogue": 49, "trip_count": 9}, "truncated"),
        ({"slots": 8, "filled": 3, "step": 100, "epilogue": 49, "trip_count": 9}, "truncated"),
        ({"slots": 8, "filled": 8, "step": 100, "epilogue": 49, "trip_count": 4}, "complete"),  # count holds not here
        ({"slots": 8, "filled": 8, "step": 100, "epilogue": 60, "trip_count": 4}, "unknown"),
    ],
)
def test_rules(given: dict[str, Any], verdict: str) -> None:
    assert lane(**given) == verdict


def test_the_shortest_iteration_counts_not_the_usual_one() -> None:
    assert lane(8, 8, 0, 40, steps=[100, 100, 60, 100, 100, 100, 100]) == "unknown"
    assert lane(8, 8, 0, 29, steps=[100, 100, 60, 100, 100, 100, 100]) == "complete"


def test_the_median_is_the_mean_of_the_two_middle_values() -> None:
    steps = [100, 100, 100, 300, 300, 300]
    assert lane(7, 7, 0, 8 * 200, steps=steps) == "unknown"
    assert lane(7, 7, 0, 8 * 200 + 1, steps=steps) == "truncated"


def test_a_lane_without_stamps_or_without_a_loop_is_complete() -> None:
    rel, written = np.zeros((1, 2, 3, 8), np.int64), np.zeros((1, 2, 3, 8), bool)
    written[0, 1, 2, 0] = True
    codes = judge(rel, written, [LoopEvents((0, 1), (2,), 0), LoopEvents((0, 1), (2,), 0)], [], 99)
    assert [NAME[c] for c in codes[0].tolist()] == ["complete", "complete"]


def test_linked_loops_share_the_verdict() -> None:
    rel, written = np.zeros((1, 3, 2, 4), np.int64), np.zeros((1, 3, 2, 4), bool)
    rel[0, :, 0], written[0, :, 0] = [1, 101, 201, 301], True
    rel[0, 0, 1, 0], written[0, 0, 1, 0] = 311, True
    events = [LoopEvents((0,), (1,), 0)] * 3
    assert [NAME[c] for c in judge(rel, written, events, [{0, 1}], -1)[0].tolist()] == [
        "complete", "complete", "unknown",
    ]  # fmt: skip
    rel[0, 0, 1, 0] = 5000
    assert [NAME[c] for c in judge(rel, written, events, [{0, 1}], -1)[0].tolist()] == [
        "truncated", "truncated", "unknown",
    ]  # fmt: skip


def imported(folder: Path, slots: np.ndarray, spec: dict[str, Any], **options: Any) -> Bundle:
    file = folder / f"stamps{len(list(folder.iterdir()))}.npy"
    np.save(file, slots)
    return registry.import_files([file], {"spec": spec, **options})


def verdicts(bundle: Bundle) -> dict[str, str]:
    return {r["role"]: r["completeness"] for r in bundle.table("lanes").to_pylist() if r["role"]}


def test_64_slots_on_a_kernel_of_128_iterations_are_never_taken_as_complete(tmp_path: Path) -> None:
    runs = simulate(Ring(iterations=128, epilogue=Ticks(500), consumers=2, latency=Ticks(600)), 1)
    slots, _ = simulator_bundle.raw(runs)
    assert slots.shape[-1] == 128
    spec = simulator_bundle.skill_spec(runs)
    whole, cut = imported(tmp_path, slots, spec), imported(tmp_path, slots[..., :64], spec)
    assert set(verdicts(whole).values()) == {"complete"}
    assert verdicts(cut)["consumer0"] == verdicts(cut)["consumer1"] == "truncated"
    assert verdicts(cut)["producer"] != "complete"
    assert cut.table("captures").column("completeness").to_pylist() == ["truncated"]
    assert cut.table("launches").column("trip_count").to_pylist() == [-1]
    # The states are taken over the recorded window: as far as the stamps go, the same as in the whole capture.
    state = cut.sql("SELECT role, extent, stall + active + untracked AS sum FROM role_state").to_pylist()
    assert all(r["extent"] == r["sum"] for r in state)
    long = whole.sql("SELECT role, extent, untracked FROM role_state ORDER BY role").to_pylist()
    short = cut.sql("SELECT role, extent, untracked FROM role_state ORDER BY role").to_pylist()
    for a, b in zip(long, short, strict=True):
        assert b["extent"] < 0.6 * a["extent"]
        assert abs(b["untracked"] / b["extent"] - a["untracked"] / a["extent"]) < 0.05


def test_a_known_trip_count_says_how_many_stamps_are_lost(tmp_path: Path) -> None:
    runs = simulate(Ring(iterations=128, epilogue=Ticks(500)), 1)
    slots, _ = simulator_bundle.raw(runs)
    bundle = imported(tmp_path, slots[..., :64], simulator_bundle.skill_spec(runs), trip_count=128)
    assert set(verdicts(bundle).values()) == {"truncated"}
    written = int((slots != 0).sum())
    (capture,) = bundle.table("captures").to_pylist()
    assert capture["lost_events"] == written - bundle.rows("events")
    lanes = bundle.table("lanes").to_pylist()
    assert all(r["records_expected"] == r["records_kept"] + r["records_lost"] for r in lanes)


@pytest.mark.parametrize("trip_count", [-1, 64])
def test_balanced_fills_its_slots_exactly_and_is_complete(trip_count: int) -> None:
    options: dict[str, Any] = {} if trip_count < 0 else {"trip_count": trip_count}
    bundle = registry.import_files(
        [samples.path("balanced_r0.i32")],
        {"spec": samples.path("gemm_roles.json"), "meta": samples.path("balanced_r0.meta"), **options},
    )
    assert set(verdicts(bundle).values()) == {"complete"}
    assert bundle.table("captures").column("completeness").to_pylist() == ["complete"]
    assert bundle.table("launches").column("trip_count").to_pylist() == [64]


def test_without_a_later_stamp_full_slots_prove_nothing() -> None:
    bundle = registry.import_files(
        [samples.path("lowprobe_r0.i32")],
        {"spec": samples.path("gemm_roles.json"), "allow_unwritten": True},
    )
    assert set(verdicts(bundle).values()) == {"unknown"}
    (capture,) = bundle.table("captures").to_pylist()
    assert (capture["completeness"], capture["lost_events"]) == ("unknown", -1)


def test_unknown_steps_link_nothing(tmp_path: Path) -> None:
    runs = simulate(Ring(iterations=16, epilogue=Ticks(0), work=(Ticks(300),)), 1)
    slots, _ = simulator_bundle.raw(runs)
    free = simulator_bundle.skill_spec(runs) | {"deps": []}
    assert verdicts(imported(tmp_path, slots, free))["producer"] == "unknown"


def test_a_trip_count_in_the_role_spec_counts() -> None:
    spec = rolespec.load(samples.path("gemm_roles.json")).to_json()
    spec["launch"]["trip_count"] = 128
    options = {"spec": spec, "meta": samples.path("balanced_r0.meta")}
    bundle = registry.import_files([samples.path("balanced_r0.i32")], options)
    assert set(verdicts(bundle).values()) == {"truncated"}
    assert bundle.table("launches").column("trip_count").to_pylist() == [128]
    again = registry.import_files([samples.path("balanced_r0.i32")], options | {"trip_count": 64})
    assert set(verdicts(again).values()) == {"complete"}
