"""Chrome traces as other programs write them: small files of our own that bring what each does differently."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from trace_import_case import brief, events_file, findings, load, losses, sniffed, spans

from wsformat.bundle import Bundle
from wsformat.converters.registry import import_files


def write(folder: Path, text: str | bytes, name: str = "t.json") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def attributes(bundle: Bundle, table: str) -> dict[str, str]:
    rows = bundle.table("attributes").to_pylist()
    return {row["name"]: row["value"] for row in rows if row["table_name"] == table}


def test_sorted_keys(tmp_path: Path) -> None:
    """Writers that sort the names of members put args, with its own braces, before the phase (nlohmann, Go, C#)."""
    events = [
        {"args": {"name": "main"}, "name": "thread_name", "ph": "M", "pid": 1, "tid": 2},
        {"args": {"a": {"b": [1, 2]}}, "dur": 5, "name": "x", "ph": "X", "pid": 1, "tid": 2, "ts": 10},
    ]
    for text in (json.dumps(events), json.dumps(events, indent=2), "[\n,{}," + json.dumps(events)[1:]):
        path = write(tmp_path, text)
        assert sniffed(path) == ["chrome"]
        assert brief(import_files([path], {})) == [("main", "x", 10_000, 5000)]
    assert attributes(load(path, tmp_path), "spans") == {"args": '{"a": {"b": [1, 2]}}'}


@pytest.mark.parametrize("coding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_text_as_windows_writes_it(coding: str, tmp_path: Path) -> None:
    """A shell's redirection writes 16 bits a character behind a mark; the byte order mark of UTF-8 is common too."""
    text = json.dumps([{"ph": "X", "name": "größe 🙂", "pid": 1, "tid": 1, "ts": 1.5, "dur": 2}], ensure_ascii=False)
    mark = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}.get(coding, b"")
    path = write(tmp_path, mark + text.encode(coding))
    assert sniffed(path) == ["chrome"]
    assert brief(import_files([path], {})) == [("1", "größe 🙂", 1500, 2000)]


def test_clang_time_trace(tmp_path: Path) -> None:
    """-ftime-trace: totals on threads of their own, and the time that the compiler began at, in microseconds."""
    events = [
        {"pid": 7, "tid": 7, "ph": "X", "ts": 100, "dur": 50, "name": "Source", "args": {"detail": "a.h"}},
        {"pid": 7, "tid": 8, "ph": "X", "ts": 0, "dur": 900, "name": "Total Source", "args": {"count": 3, "avg ms": 0}},
        {"cat": "", "pid": 7, "tid": 7, "ts": 0, "ph": "M", "name": "process_name", "args": {"name": "clang-18"}},
    ]
    bundle = load(events_file(tmp_path, events, beginningOfTime=1_700_000_000_123_456), tmp_path)
    assert sorted(brief(bundle)) == [("7", "Source", 100_000, 50_000), ("8", "Total Source", 0, 900_000)]
    (anchor,) = bundle.table("clock_anchors").to_pylist()
    assert (anchor["t"], anchor["reference_t"], anchor["error_ns"]) == (0, 1_700_000_000_123_456_000, 1000)


def test_bazel_profile(tmp_path: Path) -> None:
    """Counters whose values are strings; a date in milliseconds in otherData."""
    events = [
        {"name": "thread_name", "ph": "M", "pid": 1, "tid": 2, "args": {"name": "Critical Path"}},
        {"cat": "action", "name": "compile", "ph": "X", "ts": 1_000, "dur": 20, "pid": 1, "tid": 2, "cname": "good"},
        {"name": "CPU usage", "pid": 1, "tid": 2, "ph": "C", "ts": 1_500, "args": {"cpu": "1.25"}},
        {"name": "CPU usage", "pid": 1, "tid": 2, "ph": "C", "ts": 2_500, "args": {"cpu": "0.5"}},
    ]
    bundle = load(
        events_file(tmp_path, events, otherData={"build_id": "x", "profile_start_ts": 1_700_000_000_123}), tmp_path
    )
    assert [(r["event"], r["payload"]) for r in bundle.table("events").to_pylist()] == [
        ("CPU usage", "1.25"), ("CPU usage", "0.5"),
    ]  # fmt: skip
    assert [row["payload_type"] for row in bundle.table("event_types").to_pylist()] == ["float"]
    (anchor,) = bundle.table("clock_anchors").to_pylist()
    assert anchor["reference_t"] - anchor["t"] == 1_700_000_000_123_000_000
    assert "file.otherData" in attributes(bundle, "captures")


def test_node_and_chrome_asynchronous_events(tmp_path: Path) -> None:
    """Begins with a duration of 0, ids as hex text, ids of one process and of all, steps, arguments at the end."""
    events: list[dict[str, Any]] = [
        {"pid": 1, "tid": 1, "ts": 10, "tts": 3, "ph": "b", "cat": "http2", "name": "session", "dur": 0, "id": "0xe"},
        {"pid": 1, "tid": 1, "ts": 15, "ph": "n", "cat": "http2", "name": "session", "id": "0xe", "args": {"k": 1}},
        {"pid": 1, "tid": 2, "ts": 30, "ph": "e", "cat": "http2", "name": "session", "id": "0xe", "args": {"code": 4}},
    ]
    for pid in (1, 2):
        for t, ph in ((40, "b"), (50 + pid, "e")):
            events.append(
                {"pid": pid, "tid": 1, "ts": t, "ph": ph, "cat": "x", "name": "local", "id2": {"local": "0x1"}}
            )
    events += [
        {"pid": 1, "tid": 1, "ts": 60, "ph": "b", "cat": "x", "name": "global", "id2": {"global": "0x1"}},
        {"pid": 2, "tid": 1, "ts": 70, "ph": "e", "cat": "x", "name": "global", "id2": {"global": "0x1"}},
    ]
    bundle = load(events_file(tmp_path, events), tmp_path)
    found = sorted((row["span"], row["t0"], row["t1"], row["complete"]) for row in spans(bundle))
    assert found == [
        ("global", 60_000, 70_000, True), ("local", 40_000, 51_000, True), ("local", 40_000, 52_000, True),
        ("session", 10_000, 30_000, True),
    ]  # fmt: skip
    assert attributes(bundle, "spans") == {"args.end": '{"code": 4}'}
    assert [row["payload"] for row in bundle.table("events").to_pylist()] == ['{"k": 1}']


def test_objects_samples_and_context_are_counted(tmp_path: Path) -> None:
    """What Chrome writes beside spans: object life, snapshots, samples with stacks, clock marks, memory dumps."""
    events = [{"ph": ph, "name": "o", "id": "0x1", "pid": 1, "tid": 1, "ts": 5} for ph in "NOODPcvV()="]
    events.append({"ph": "X", "name": "x", "pid": 1, "tid": 1, "ts": 1, "dur": 1, "sf": 3, "cname": "bad", "tdur": 1})
    path = events_file(
        tmp_path, events, stackFrames={"3": {"name": "f", "parent": 2}}, samples=[{"sf": 3}], displayTimeUnit="ns",
        systemTraceEvents="SystemTraceData\n",
    )  # fmt: skip
    bundle = load(path, tmp_path)
    assert brief(bundle) == [("1", "x", 1000, 1000)]
    said = losses(bundle)
    assert said["records_lost"] == "11"
    assert "2 x event of phase 'O'" in said["ignored"]
    assert {"file.stackFrames", "file.samples", "file.systemTraceEvents"} <= set(attributes(bundle, "captures"))


def test_values_that_json_does_not_know(tmp_path: Path) -> None:
    """Python writes NaN and Infinity, JavaScript commas too many; the spans are there all the same."""
    text = (
        '{"traceEvents": [{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1,"args":{"loss":NaN,"x":-Infinity}},\n'
        '{"ph":"X","name":"b","pid":1,"tid":1,"ts":"3.25","dur":"1","args":{"list":[1,2,],},},\n'
        '{"ph":"X","name":"c","pid":1,"tid":1,"ts":9,"dur":NaN},{"ph":"X","name":"d","pid":1,"tid":1,"ts":NaN},\n],}'
    )
    bundle = load(write(tmp_path, text), tmp_path)
    assert [entry[1:] for entry in brief(bundle)] == [("a", 1000, 1000), ("b", 3250, 1000), ("c", 9000, 0)]
    kinds = {r["value"]: r["type"] for r in bundle.table("attributes").to_pylist() if r["table_name"] == "spans"}
    assert kinds == {'{"loss":NaN,"x":-Infinity}': "text", '{"list":[1,2,],}': "text"}
    assert losses(bundle)["unclosed"] == "1"
    text = findings(bundle)["not read"]
    assert "time" in text or "duration" in text


def test_times_with_many_decimals_keep_their_order(tmp_path: Path) -> None:
    """Python's floats have up to 17 digits: begins and ends are rounded, so what touches still touches."""
    times = [1_000_000.123_456_7, 1_000_000.987_654_3, 1_000_001.555_55]
    events = [
        {"ph": "X", "name": "s", "pid": 1, "tid": 1, "ts": times[0], "dur": 0.864_197_6},
        {"ph": "X", "name": "s", "pid": 1, "tid": 1, "ts": times[1], "dur": 0.567_895_7},
        {"ph": "X", "name": "s", "pid": 1, "tid": 1, "ts": -0.000_5, "dur": 0.001_5},
        {"ph": "X", "name": "s", "pid": 1, "tid": 1, "ts": 1e-7, "dur": 2.5e3},
    ]
    bundle = load(events_file(tmp_path, events), tmp_path)
    found = [(row["t0"], row["t1"]) for row in spans(bundle)]
    assert found == [(0, 2_500_000), (0, 1), (1_000_000_123, 1_000_000_988), (1_000_000_988, 1_000_001_556)]
    assert "4 events have more than three decimals" in findings(bundle)["rounding"]


def test_two_runs_in_one_file(tmp_path: Path) -> None:
    """Text behind the end of the list is another document: said, not read."""
    event = '{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1}'
    bundle = load(write(tmp_path, f"[{event}][{event}]"), tmp_path)
    assert bundle.table("spans").num_rows == 1
    assert "text after the end" in findings(bundle)["not read"]
