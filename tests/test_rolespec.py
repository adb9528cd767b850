"""Our role spec: generated schema, defaults, shorthand, and every problem at once with its path."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from wsformat import rolespec, samples
from wsformat.errors import MalformedInput, UnsupportedVersion
from wsformat.rolespec_schema import SECTIONS, dumps
from wsformat.tables import tables

GOOD: dict[str, Any] = {
    "wsformat_rolespec": "0.1",
    "layout": {"roles": 2, "events": 4, "iterations": 8},
    "roles": [{"role": "producer", "kind": "producer"}, {"role": "consumer"}],
    "events": [
        {"role": "*", "event": "enter", "event_index": 0},
        {"role": ["producer", "consumer"], "event": "exit", "event_index": 1},
        {"role": "*", "event": "done", "event_index": 2},
        {"role": "consumer", "event": "last", "event_index": 3, "loop": "once"},
    ],
    "spans": [{"role": "*", "span": "wait", "state": "stall", "begin_event": "enter", "end_event": "exit"}],
    "dependencies": [
        {"producer_role": "producer", "producer_event": "done", "consumer_role": "consumer", "consumer_event": "exit"},
        {"producer_role": "consumer", "producer_event": "done", "consumer_role": "producer", "consumer_event": "exit",
         "iteration_lag": 3},
    ],
}  # fmt: skip


@pytest.mark.sources
def test_schema_file_is_what_the_tables_say(root: Path) -> None:
    text = (root / "schema" / "rolespec.schema.json").read_text(encoding="utf-8")
    assert text == dumps(), "run: python -m wsformat.rolespec_schema > schema/rolespec.schema.json"


def test_every_column_of_its_tables_can_be_said(root: Path) -> None:
    schema = json.loads(dumps())
    for section, table in SECTIONS.items():
        said = set(schema["properties"][section]["items"]["properties"])
        assert set(tables()[table].names) - {"capture_id"} <= said


def test_rows_are_complete_rows_of_their_tables() -> None:
    spec = rolespec.parse(GOOD, "spec")
    for table, rows in spec.table_rows("c" * 26).items():
        for row in rows:
            assert list(row) == tables()[table].names


def test_defaults() -> None:
    spec = rolespec.parse(GOOD, "spec")
    producer, consumer = spec.roles
    assert (producer["role_index"], consumer["role_index"], consumer["display_order"]) == (0, 1, 1)
    assert (producer["kind"], consumer["kind"], consumer["lane_kind"], consumer["warp"]) == (
        "producer", "other", "thread", -1,
    )  # fmt: skip
    assert consumer["iteration_event"] == "enter"
    assert {e["loop"] for e in spec.events} == {"main", "once"}
    unknown, ring = spec.dependencies
    assert (unknown["producer_step"], unknown["consumer_step"]) == (0, 0)
    assert (ring["producer_step"], ring["consumer_step"], ring["iteration_lag"]) == (1, 1, 3)
    assert (ring["completion"], ring["scope"], ring["latency_ticks"]) == ("signal", "cta", None)


def test_iteration_event_without_a_stall_is_the_first_event_in_a_loop() -> None:
    data = copy.deepcopy(GOOD) | {"spans": []}
    data["events"][0]["loop"] = "once"
    assert rolespec.parse(data, "spec").roles[0]["iteration_event"] == "exit"


def test_star_and_lists_name_several_roles() -> None:
    spec = rolespec.parse(GOOD, "spec")
    assert [(e["role"], e["event"]) for e in spec.events] == [
        ("producer", "enter"), ("consumer", "enter"), ("producer", "exit"), ("consumer", "exit"),
        ("producer", "done"), ("consumer", "done"), ("consumer", "last"),
    ]  # fmt: skip
    assert [s["role"] for s in spec.spans] == ["producer", "consumer"]


@pytest.mark.parametrize("name", ["gemm_roles.json", "cute_roles.json"])
def test_samples_and_round_trip(name: str) -> None:
    spec = rolespec.load(samples.path(name))
    assert rolespec.parse(spec.to_json(), name) == spec
    assert rolespec.parse(json.loads(json.dumps(spec.to_json())), name) == spec


def test_gemm_sample_says_what_the_kernel_is() -> None:
    spec = rolespec.load(samples.path("gemm_roles.json"))
    edges = {(e["producer_role"], e["consumer_role"]): e for e in spec.dependencies}
    full, empty = edges["producer", "consumer1"], edges["consumer0", "producer"]
    assert (full["iteration_lag"], full["mechanism"], full["completion"]) == (0, "tma", "async")
    assert (empty["iteration_lag"], empty["mechanism"], empty["completion"]) == (4, "arrive", "signal")
    assert {s["span"] for s in spec.spans if s["contains_wait"]} == {"work"}


def change(path: list[Any], value: Any) -> dict[str, Any]:
    data = copy.deepcopy(GOOD)
    place: Any = data
    for part in path[:-1]:
        place = place[part]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return data


PROBLEMS = {
    "version": (["wsformat_rolespec"], "new", "$.wsformat_rolespec: 'new' does not match"),
    "version number": (["wsformat_rolespec"], 0.1, "$.wsformat_rolespec: 0.1 is not of type 'string'"),
    "no roles": (["roles"], None, "'roles' is a required property"),
    "unknown key": (["rolls"], [], "'rolls'"),
    "unknown column": (["roles", 0, "colour_"], "#000000", "$.roles[0]: "),
    "wrong type": (["events", 1, "event_index"], "1", "$.events[1].event_index: '1' is not of type 'integer'"),
    "state": (["spans", 0, "state"], "idle", "$.spans[0].state: 'idle' is not one of"),
    "role twice": (["roles", 1, "role"], "producer", "$.roles[1].role: 'producer' is there twice"),
    "role index twice": (["roles", 1, "role_index"], 0, "$.roles[1].role_index: 0 is already 'producer'"),
    "role index": (["roles", 1, "role_index"], 2, "$.roles[1].role_index: 2 is out of range, the layout has 2 roles"),
    "unknown role": (["events", 3, "role"], "consumr", "$.events[3].role: unknown role 'consumr', did you mean"),
    "event index": (["events", 2, "event_index"], 4, "$.events[2].event_index: 4 is out of range, the layout has 4"),
    "event index twice": (["events", 2, "event_index"], 1, "event_index: 1 of role 'producer' is already 'exit'"),
    "event twice": (["events", 2, "event"], "exit", "$.events[2].event: role 'producer' has 'exit' twice"),
    "unknown event": (["spans", 0, "end_event"], "exi", "$.spans[0].end_event: unknown event of role 'producer' 'exi'"),
    "empty span": (["spans", 0, "end_event"], "enter", "$.spans[0]: begins and ends with the same event 'enter'"),
    "edge role": (["dependencies", 0, "consumer_role"], "x", "$.dependencies[0].consumer_role: unknown role 'x'"),
    "edge event": (["dependencies", 1, "producer_event"], "nope", "$.dependencies[1].producer_event: unknown event"),
    "edge steps": (["dependencies", 0, "producer_step"], 2, "$.dependencies[0]: producer_step and consumer_step must"),
    "completion": (["dependencies", 0, "completion"], "later", "$.dependencies[0].completion: 'later' is not one of"),
    "iteration event": (["roles", 0, "iteration_event"], "x", "$.roles[0].iteration_event: unknown event of role"),
    "layout": (["layout", "events"], 0, "$.layout.events: 0 is less than the minimum of 1"),
    "importer's column": (["capture"], {"completeness": "complete"}, "$.capture: "),
}  # fmt: skip


@pytest.mark.parametrize("case", PROBLEMS)
def test_problem(case: str) -> None:
    path, value, expected = PROBLEMS[case]
    with pytest.raises(MalformedInput) as caught:
        rolespec.parse(change(path, value), "my.json")
    assert str(caught.value).startswith("my.json: ")
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_same_edge_twice() -> None:
    data = copy.deepcopy(GOOD)
    data["dependencies"].append(data["dependencies"][1])
    with pytest.raises(MalformedInput, match=r"\$\.dependencies\[2\]: the same edge is there twice"):
        rolespec.parse(data, "my.json")


def test_all_problems_at_once() -> None:
    data = copy.deepcopy(GOOD)
    data["roles"][0]["kind"] = 7
    data["events"][2]["event_index"] = 99
    data["spans"][0]["state"] = "idle"
    data["dependencies"][0]["producer_event"] = "nothing"
    with pytest.raises(MalformedInput) as caught:
        rolespec.parse(data, "my.json")
    text = str(caught.value)
    assert "3 problems" in text or "4 problems" in text
    for path in ("$.roles[0].kind", "$.events[2].event_index", "$.spans[0].state"):
        assert path in text


@pytest.mark.parametrize("data", [None, 3, [], "x", {}, {"wsformat_rolespec": "0.1", "roles": {}, "events": []}])
def test_no_role_spec_at_all(data: Any) -> None:
    with pytest.raises(MalformedInput):
        rolespec.parse(data, "my.json")


def test_layout_of_the_buffer_must_be_the_layout_of_the_spec() -> None:
    with pytest.raises(MalformedInput, match=r"\$\.layout: 2,4,8 .* but the buffer is 2,4,9"):
        rolespec.parse(GOOD, "my.json", rolespec.Layout(2, 4, 9))


def test_comments_are_allowed_everywhere() -> None:
    data = copy.deepcopy(GOOD) | {"_comment": "why"}
    data["roles"][0]["_comment"] = "who"
    data["capture"] = {"kernel": "gemm", "_comment": "what"}
    spec = rolespec.parse(data, "my.json")
    assert "_comment" not in spec.roles[0]
    assert spec.capture == {"kernel": "gemm"}


def test_not_json(tmp_path: Path) -> None:
    file = tmp_path / "spec.json"
    file.write_text("{roles:")
    with pytest.raises(MalformedInput, match=r"spec\.json: not valid JSON"):
        rolespec.load(file)


def test_another_major_version_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedVersion, match=r"my\.json: role spec version 1\.0, this library reads 0\.x"):
        rolespec.parse(GOOD | {"wsformat_rolespec": "1.0"}, "my.json")


def test_what_a_newer_minor_version_adds_is_ignored_and_listed() -> None:
    data = copy.deepcopy(GOOD) | {"wsformat_rolespec": "0.7", "new_part": [1]}
    data["roles"][1]["registers"] = 240
    data["layout"]["stride"] = 3
    spec = rolespec.parse(data, "my.json")
    assert sorted(spec.ignored) == ["$.layout.stride", "$.new_part", "$.roles[1].registers"]
    assert spec.roles == rolespec.parse(GOOD, "my.json").roles
    data["roles"][1]["kind"] = 5  # what this version knows is checked as ever
    with pytest.raises(MalformedInput, match=r"\$\.roles\[1\]\.kind: 5 is not of type 'string'"):
        rolespec.parse(data, "my.json")
    with pytest.raises(MalformedInput, match="new_part"):
        rolespec.parse(data | {"wsformat_rolespec": "0.1"}, "my.json")
