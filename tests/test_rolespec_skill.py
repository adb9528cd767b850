"""The other role spec (roles, role_id, active, stall, markers, deps, overlap): what it says and cannot say."""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np
import pytest
import simulator_bundle
from hypothesis import HealthCheck, given, settings
from simulator_cases import PLANTED, kernels

from simulator import Kernel, simulate
from wsformat import lags, rolespec, samples, skillspec
from wsformat.errors import MalformedInput
from wsformat.rolespec import Layout
from wsformat.stamp_times import META, Anchor, decode_times

LAYOUT = Layout(3, 16, 64)


def skill(name: str = "gemm") -> dict[str, Any]:
    data: dict[str, Any] = json.loads(samples.path(f"{name}_spec.json").read_text(encoding="utf-8"))
    return data


def times(name: str) -> tuple[np.ndarray, np.ndarray]:
    file = samples.path(name)
    if file.suffix == ".npy":
        return decoded(np.load(file).view(np.uint32)[None], None)
    records = np.fromfile(file.with_suffix(".meta"), META)
    anchor = Anchor(records["c0"].astype(np.int64), records["c1"].astype(np.int64))
    return decoded(np.fromfile(file, "<u4").reshape(-1, 3, 16, 64), anchor)


def decoded(slots: np.ndarray, anchor: Anchor | None) -> tuple[np.ndarray, np.ndarray]:
    result = decode_times(slots, 0, anchor, "test")
    return result.rel, result.written


def test_events_are_named_by_their_use() -> None:
    spec, _ = skillspec.from_skill(skill(), "gemm", LAYOUT)
    names = {(e["role"], e["event_index"]): e["event"] for e in spec.events}
    assert {i: n for (role, i), n in names.items() if role == "producer"} == {
        0: "wait_enter", 1: "wait_exit", 2: "tma_issue_begin", 3: "tma_issue_end",
    }  # fmt: skip
    assert {i: n for (role, i), n in names.items() if role == "consumer1"} == {
        0: "wait_enter", 1: "wait_exit", 2: "wgmma_begin", 3: "wgmma_end", 4: "empty_signal",
        5: "epilogue_begin", 6: "epilogue_end",
    }  # fmt: skip


def test_an_event_with_two_uses_has_one_name() -> None:
    spec, _ = skillspec.from_skill(skill("cute"), "cute", LAYOUT)
    spans = {(s["role"], s["span"]): (s["begin_event"], s["end_event"]) for s in spec.spans}
    assert spans["consumer0", "compute"] == ("wait_exit", "compute_end")
    assert spans["producer", "wait"] == ("wait_enter", "wait_exit")


def test_names_stay_unique() -> None:
    data = skill()
    data["stall"].append({"role": "producer", "beg": 7, "end": 8})
    data["active"].append({"role": "producer", "beg": 9, "end": 10, "label": "TMA issue"})
    spec, _ = skillspec.from_skill(data, "gemm", LAYOUT)
    mine = [e["event"] for e in spec.events if e["role"] == "producer"]
    assert len(mine) == len(set(mine))
    assert {"wait_enter_7", "wait_exit_8", "tma_issue_begin_9", "tma_issue_end_10"} <= set(mine)
    assert {s["span"] for s in spec.spans if s["role"] == "producer"} == {
        "wait", "wait_7", "tma_issue", "tma_issue_9",
    }  # fmt: skip


def test_notes_name_what_it_cannot_know() -> None:
    spec, notes = skillspec.from_skill(skill(), "gemm", LAYOUT)
    text = " ".join(notes)
    for unknown in ("starts an iteration", "resources", "contains_wait", "mechanism", "names of barriers"):
        assert unknown in text
    assert {e["producer_step"] for e in spec.dependencies} == {0}
    assert {e["mechanism"] for e in spec.dependencies} == {""}


SKILL_PROBLEMS = {
    "role": (["deps", 1, "cons"], "consumer9", "$.deps[1].cons: unknown role 'consumer9'"),
    "index": (["active", 0, "end"], 16, "$.active[0].end: event index 16 is out of range, the layout has 16 events"),
    "no index": (["stall", 2, "beg"], "0", "$.stall[2].beg: '0' is no event index"),
    "empty": (["stall", 2, "end"], 0, "$.stall[2]: begins and ends with event 0"),
    "role id": (["role_id", "consumer1"], 3, "$.role_id.consumer1: 3 is out of range, the layout has 3 roles"),
    "role id twice": (["role_id", "consumer1"], 1, "$.role_id.consumer1: 1 is used twice"),
    "no role id": (["role_id", "consumer1"], None, "$.role_id.consumer1: an index from 0 is needed"),
    "role twice": (["roles", 2], "consumer0", "$.roles[2]: 'consumer0' is there twice"),
    "not a list": (["deps"], {}, "$.deps: a list is needed"),
    "overlap": (["overlap", 0], ["consumer0", 2], "$.overlap[0]: [role, begin, end] is needed"),
    "marker": (["markers", 0, "evt"], -1, "$.markers[0].evt: -1 is no event index"),
}


@pytest.mark.parametrize("case", SKILL_PROBLEMS)
def test_problem(case: str) -> None:
    path, value, expected = SKILL_PROBLEMS[case]
    data = skill()
    place: Any = data
    for part in path[:-1]:
        place = place[part]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    with pytest.raises(MalformedInput) as caught:
        skillspec.from_skill(data, "s.json", LAYOUT)
    assert expected in str(caught.value)


def test_all_problems_at_once() -> None:
    data = skill()
    data["deps"][0]["prod"] = "x"
    data["stall"][0]["end"] = 99
    with pytest.raises(MalformedInput, match=r"s\.json: 2 problems: "):
        skillspec.from_skill(data, "s.json", LAYOUT)


def test_stamps_in_iteration_0_alone_are_outside_the_loop() -> None:
    spec, _ = skillspec.from_skill(skill(), "gemm", LAYOUT)
    _, written = times("balanced_r0.i32")
    index = {r["role"]: r["role_index"] for r in spec.roles}
    last = {
        (e["role"], e["event"]): int(np.flatnonzero(written[0, index[e["role"]], e["event_index"]]).max())
        for e in spec.events
    }
    spec, notes = skillspec.set_loops(spec, last)
    assert {e["event"] for e in spec.events if e["loop"] == "once"} == {"epilogue_begin", "epilogue_end"}
    assert {s["span"] for s in spec.spans if s["loop"] == "once"} == {"epilogue"}
    assert "consumer1 epilogue_begin" in notes[0]


def test_to_skill_and_back_keeps_what_it_can() -> None:
    ours = rolespec.load(samples.path("gemm_roles.json"))
    data, lost = skillspec.to_skill(ours)
    text = " ".join(lost)
    for what in ("lags", "Mechanism", "Resources", "contains_wait", "outside the loop", "Facts"):
        assert what in text
    again, _ = skillspec.from_skill(data, "back", LAYOUT)

    def edges(spec: rolespec.RoleSpec) -> set[tuple[Any, ...]]:
        at = {(e["role"], e["event"]): e["event_index"] for e in spec.events}
        return {
            (e[f"{a}_role"], at[e[f"{a}_role"], e[f"{a}_event"]], e[f"{b}_role"], at[e[f"{b}_role"], e[f"{b}_event"]])
            for e in spec.dependencies
            for a, b in [("producer", "consumer")]
        }

    assert edges(again) == edges(ours)
    assert {(s["role"], s["state"]) for s in again.spans} == {(s["role"], s["state"]) for s in ours.spans}


# What the order of stamps proves: role -> (least, value or -1), on the real captures.
REAL = {
    "balanced_r0.i32": ("gemm", {("producer", "consumer0"): (0, -1), ("producer", "consumer1"): (0, -1),
                                 ("consumer0", "producer"): (4, 4), ("consumer1", "producer"): (4, 4)}),
    "slowproducer_r0.i32": ("gemm", {("producer", "consumer0"): (0, 0), ("producer", "consumer1"): (0, 0),
                                     ("consumer0", "producer"): (2, -1), ("consumer1", "producer"): (2, -1)}),
    "lowprobe_r0.i32": ("gemm", {("producer", "consumer0"): (0, -1), ("producer", "consumer1"): (0, -1),
                                 ("consumer0", "producer"): (4, 4), ("consumer1", "producer"): (4, 4)}),
    "cute_pipeline_r0.npy": ("cute", {("producer", "consumer0"): (0, 0), ("producer", "consumer1"): (0, 0),
                                      ("consumer0", "producer"): (2, -1), ("consumer1", "producer"): (2, -1)}),
}  # fmt: skip


@pytest.mark.parametrize("name", REAL)
def test_lags_of_real_captures(name: str) -> None:
    form, expected = REAL[name]
    spec, _ = skillspec.from_skill(skill(form), name, LAYOUT)
    after, notes, found = lags.infer_lags(spec, [times(name)])
    got = {
        (e["producer_role"], e["consumer_role"]): (found[n].least, found[n].value)
        for n, e in enumerate(after.dependencies)
    }
    assert got == expected
    for edge, sentence in zip(after.dependencies, notes, strict=True):
        least, value = expected[edge["producer_role"], edge["consumer_role"]]
        if value >= 0:
            assert (edge["producer_step"], edge["consumer_step"], edge["iteration_lag"]) == (1, 1, value)
            assert f"is {value}: proven by" in sentence
        else:
            assert (edge["producer_step"], edge["consumer_step"]) == (0, 0)
            assert f"unknown, at least {least}" in sentence


def lag_check(kernel: Kernel, seed: int) -> int:
    """Every proven lag is the true one, every lower bound holds; returns the number of proofs."""
    if any(count != 1 for _, count in kernel.lanes()):
        return 0
    runs = simulate(kernel, seed, ctas=2)
    slots, records = simulator_bundle.raw(runs)
    spec, _ = skillspec.from_skill(simulator_bundle.skill_spec(runs), "sim", Layout(*slots.shape[1:]))
    anchor = Anchor(records["c0"].astype(np.int64), records["c1"].astype(np.int64))
    after, _, found = lags.infer_lags(spec, [decoded(slots, anchor)])
    order = simulator_bundle.event_order(runs)
    truth: dict[tuple[Any, ...], set[tuple[int, int, int]]] = {}
    for row in simulator_bundle.dependencies(kernel, declared=True):
        key = (row["producer_role"], order.index(row["producer_event"]),
               row["consumer_role"], order.index(row["consumer_event"]))  # fmt: skip
        truth.setdefault(key, set()).add((row["iteration_lag"], row["producer_step"], row["consumer_step"]))
    index = {(e["role"], e["event"]): e["event_index"] for e in spec.events}
    for number, lag in found.items():
        edge = after.dependencies[number]
        true = truth[edge["producer_role"], index[edge["producer_role"], edge["producer_event"]],
                     edge["consumer_role"], index[edge["consumer_role"], edge["consumer_event"]]]  # fmt: skip
        if lag.proven:
            assert true == {(lag.value, 1, 1)}
        if len(true) == 1 and next(iter(true))[1:] == (1, 1):
            assert lag.least <= next(iter(true))[0]
    return sum(lag.proven for lag in found.values())


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(kernels())
def test_a_proof_is_never_wrong(kernel: Kernel) -> None:
    lag_check(kernel, 3)


def test_blocked_rings_give_proofs() -> None:
    assert {name: lag_check(PLANTED[name], 1) for name in ("slow_producer", "slow_consumer", "serial")} == {
        "slow_producer": 2, "slow_consumer": 2, "serial": 6,
    }  # fmt: skip


def test_steps_that_differ_are_never_taken_for_a_lag() -> None:
    assert lag_check(PLANTED["attention"], 1) == 0


def test_is_skill_spec() -> None:
    assert skillspec.is_skill_spec(skill())
    assert not skillspec.is_skill_spec(rolespec.load(samples.path("gemm_roles.json")).to_json())
    assert not skillspec.is_skill_spec({"roles": ["a"]})
    assert not skillspec.is_skill_spec([1])
    copied = copy.deepcopy(skill())
    del copied["role_id"]
    assert skillspec.is_skill_spec(copied)
