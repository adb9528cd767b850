"""Traces out: what is written nests, is complete, and decodes to the same numbers."""

from __future__ import annotations

import gzip
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trace_cases import HOSTILE, bundle_of, nasty, several_captures, streams

import wsformat
from wsformat.bundle import Bundle
from wsformat.converters import chrome, perfetto, trace_build
from wsformat.converters.perfetto.encode import passes
from wsformat.converters.perfetto.packing import Constant, Message, Varint, pack
from wsformat.converters.registry import import_files
from wsformat.converters.trace_build import opened
from wsformat.converters.trace_counters import Steps
from wsformat.converters.trace_model import Facts, Slices
from wsformat.converters.trace_options import EXPORT_OPTIONS, Choice, chosen
from wsformat.converters.trace_overlaps import Open, split_overlaps
from wsformat.errors import BadRequest, WsformatError

SAMPLES = Path(__file__).parent.parent / "conformance" / "samples"
intervals = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 20), st.integers(0, 12)).map(lambda x: (x[0], x[1], x[1] + x[2])),
    max_size=40,
)


def ordered(rows: list[tuple[int, int, int]]) -> tuple[np.ndarray[Any, Any], ...]:
    rows = sorted(rows, key=lambda r: (r[0], r[1], -r[2]))
    return tuple(np.array([row[i] for row in rows], dtype=np.int64) for i in range(3))


def crosses(a: tuple[int, int], b: tuple[int, int]) -> bool:
    """Whether two intervals overlap without one holding the other."""
    return a[0] < b[0] < a[1] < b[1] or b[0] < a[0] < b[1] < a[1]


@settings(max_examples=300)
@given(intervals)
def test_levels_never_hold_crossing_intervals(rows: list[tuple[int, int, int]]) -> None:
    lane, t0, t1 = ordered(rows)
    level = split_overlaps(lane, t0, t1)
    for i, j in itertools.combinations(range(len(rows)), 2):
        if lane[i] == lane[j] and level[i] == level[j]:
            assert not crosses((t0[i], t1[i]), (t0[j], t1[j]))
    clean = [all(not crosses((t0[i], t1[i]), (t0[j], t1[j])) for j in range(len(rows)) if lane[i] == lane[j])
             for i in range(len(rows))]  # fmt: skip
    for name in set(lane.tolist()):
        mine = lane == name
        if all(np.array(clean)[mine]):
            assert not level[mine].any()


@settings(max_examples=300)
@given(intervals, st.integers(1, 9))
def test_levels_of_lanes_that_come_in_parts(rows: list[tuple[int, int, int]], block: int) -> None:
    """Cut anywhere, what was given stays free of crossings, and without any there is no second level."""
    lane, t0, t1 = ordered(rows)
    state = Open()
    parts = [slice(at, at + block) for at in range(0, len(rows), block)]
    level = np.concatenate([split_overlaps(lane[p], t0[p], t1[p], state) for p in parts] or [np.zeros(0, int)])
    pairs = [(i, j) for i, j in itertools.combinations(range(len(rows)), 2) if lane[i] == lane[j]]
    for i, j in pairs:
        if level[i] == level[j]:
            assert not crosses((t0[i], t1[i]), (t0[j], t1[j]))
    crossed = {int(lane[i]) for i, j in pairs if crosses((t0[i], t1[i]), (t0[j], t1[j]))}
    assert not level[~np.isin(lane, list(crossed))].any()
    assert (level == split_overlaps(lane, t0, t1)).all()


def test_levels_of_deep_and_far_intervals() -> None:
    """Deeper than viewers draw goes to another level; spans of time that fill an integer are split like others."""
    count = 1200
    lane, t0, t1 = np.zeros(count, int), np.arange(count), 10_000 - np.arange(count)
    assert np.bincount(split_overlaps(lane, t0, t1)).tolist() == [500, 500, 200]
    state = Open()
    parts = [split_overlaps(lane[at : at + 7], t0[at : at + 7], t1[at : at + 7], state) for at in range(0, count, 7)]
    assert np.bincount(np.concatenate(parts)).tolist() == [500, 500, 200]
    far = np.array([0, 5, 2**61]), np.array([2**62, 2**61 + 1, 2**61 + 2])
    assert split_overlaps(np.zeros(3, int), *far).tolist() == [0, 0, 1]


@settings(max_examples=300)
@given(intervals, st.integers(1, 50))
def test_begin_and_end_packets_replay_to_the_same_intervals(rows: list[tuple[int, int, int]], block: int) -> None:
    """What a reader does: keep a stack a track; an end closes the slice that was opened last."""
    lane, t0, t1 = ordered(rows)
    level = split_overlaps(lane, t0, t1)
    track = lane * 100 + level
    order = np.lexsort((-t1, t0, track))
    track, t0, t1 = track[order], t0[order], t1[order]
    written: list[tuple[int, int, bool, int]] = []
    for start in range(0, len(rows), block):
        for part, what in passes(t0[start : start + block], t1[start : start + block]):
            for row in (part + start).tolist():
                if what != "end":
                    written.append((int(t0[row]), len(written), False, row))
                if what != "begin":
                    written.append((int(t1[row]), len(written), True, row))
    stacks: dict[int, list[int]] = {}
    closed = []
    for t, _, is_end, row in sorted(written):
        stack = stacks.setdefault(int(track[row]), [])
        if is_end:
            # Whose end it is, nobody is told: it closes what was opened last.
            last = stack.pop()
            assert t1[last] == t
            closed.append(last)
        else:
            stack.append(row)
    assert sorted(closed) == list(range(len(rows)))


def varints(data: bytes) -> list[int]:
    """Every varint of the bytes, as any reader of the wire format takes them."""
    found, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            found.append(value if value < 2**63 else value - 2**64)
            value, shift = 0, 0
    assert shift == 0
    return found


@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.booleans()), min_size=1, max_size=30))
def test_bulk_messages_hold_the_values(rows: list[tuple[int, bool]]) -> None:
    values = np.array([value for value, _ in rows], dtype=np.int64)
    keep = np.array([kept for _, kept in rows], dtype=bool)
    first = Message(1, [Constant(b"\x48\x01", len(rows)), Varint(4, values, keep)])
    second = Message(2, [Varint(5, values)], None)
    data = pack(first, second)
    expected: list[list[int]] = []
    for value, kept in rows:
        expected += [[0x48 >> 3, 1] + ([4, value] if kept else []), [5, value]]
    got, at = [], 0
    while at < len(data):
        size = data[at + 1]
        assert data[at] in (1 << 3 | 2, 2 << 3 | 2)
        pairs = varints(data[at + 2 : at + 2 + size])
        got.append([number >> 3 if index % 2 == 0 else number for index, number in enumerate(pairs)])
        at += 2 + size
    assert got == expected


@settings(max_examples=200)
@given(intervals.filter(bool), st.integers(1, 9))
def test_counts_of_open_intervals(rows: list[tuple[int, int, int]], block: int) -> None:
    """In parts of any size: a moment is given once, when all of it is known."""
    rows = [row for row in rows if row[2] > row[1]] or [(0, 1, 2)]
    ends = sorted((key, t, step) for key, t0, t1 in rows for t, step in ((t0, 1), (t1, -1)))
    expected, last = [], {}
    for k, t in sorted({(k, t) for k, t, _ in ends}):
        value = sum(key == k and t0 <= t < t1 for key, t0, t1 in rows)
        if value != last.get(k, 0):
            expected.append((k, t, value))
        last[k] = value
    steps, found = Steps(), []
    for start in range(0, len(ends), block):
        part = np.array(ends[start : start + block], dtype=np.int64).T
        found += list(zip(*(column.tolist() for column in steps.add(*part)), strict=True))
    found += list(zip(*(column.tolist() for column in steps.finish()), strict=True))
    assert found == expected


def slices_of(path: Path) -> list[tuple[str, str, int, int]]:
    """(name, category, begin, duration in ns) of every X event that is a slice of the model."""
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()
    found = []
    for event in json.loads(text)["traceEvents"]:
        if event["ph"] == "X" and "bind_id" not in event:
            begin, length = (round(float(event[key]) * 1000) for key in ("ts", "dur"))
            found.append((event["name"], event["cat"], begin, length))
    return sorted(found)


@pytest.mark.parametrize("case", sorted(nasty()))
def test_chrome_json_holds_every_span(case: str, tmp_path: Path) -> None:
    bundle = nasty()[case]
    report = chrome.write(bundle, tmp_path / "x.json.gz", {})
    spans = bundle.sql("SELECT span, state, t0, t1 FROM span").to_pylist()
    assert report["slices"] == report["spans_in"] == len(spans)
    got = slices_of(tmp_path / "x.json.gz")
    assert [(name, category) for name, category, _, _ in got] == sorted((s["span"], s["state"]) for s in spans)
    assert sorted(d for *_, d in got) == sorted(s["t1"] - s["t0"] for s in spans)


@pytest.mark.parametrize("writer", [chrome, perfetto])
def test_bytes_are_the_same_each_time_and_packed_ones_too(writer: Any, tmp_path: Path) -> None:
    bundle = nasty()["overlap"]
    for name in ("a", "b", "c.gz"):
        writer.write(bundle, tmp_path / name, {})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert gzip.decompress((tmp_path / "c.gz").read_bytes()) == (tmp_path / "a").read_bytes()


@pytest.mark.parametrize("writer", [chrome, perfetto])
def test_nothing_to_draw_is_said_and_nothing_is_written(writer: Any, tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="nothing to draw"):
        writer.write(Bundle.from_tables({"captures": [{"capture_id": "c"}]}), tmp_path / "x.json", {})
    assert list(tmp_path.iterdir()) == []


REFUSED = [
    ("flows", "many", "Choose one of: all, binding, none."),
    ("arguments", "Lean", "Choose one of: full, lean."),
    ("arguments", "", "Choose one of: full, lean."),
    ("untracked", "maybe", "Choose one of: true, yes, 1; or false, no, 0."),
    ("counters", "off", "Choose one of: true, yes, 1; or false, no, 0."),
    ("capture", "nope", None),
    ("launch", "one", "Such as launch=0."),
    ("launch", "77", "`wsformat info` lists captures and launches."),
    ("cta", "", "Such as cta=0."),
    ("cta", "-1", "Such as cta=0."),
    ("launch", "9" * 60, "Such as launch=0."),
    ("dialect", "proton", "Options: flows, arguments, untracked, counters, capture, launch, cta."),
    ("map", "x.json", "Options: flows, arguments, untracked, counters, capture, launch, cta."),
]


@pytest.mark.parametrize(("option", "value", "hint"), REFUSED)
@pytest.mark.parametrize("writer", [chrome, perfetto])
def test_words_that_an_option_does_not_take_are_refused(
    writer: Any, option: str, value: str, hint: str | None, tmp_path: Path
) -> None:
    """With the words that it takes, and before anything is written; options of an import are none of an export."""
    with pytest.raises(BadRequest, match="nothing to draw" if value == "77" else option) as caught:
        writer.write(nasty()["overlap"], tmp_path / "x.json", {option: value})
    assert caught.value.hint == hint if hint is not None else caught.value.hint.startswith("Captures: ")
    assert list(tmp_path.iterdir()) == []


def drawn(bundle: Bundle, **options: Any) -> tuple[dict[str, int], list[tuple[Any, ...]]]:
    """Counts, and of each slice its raw ticks, iteration and verdict."""
    found: list[tuple[Any, ...]] = []
    with opened(bundle, chosen(options)) as trace:
        for part in trace.parts:
            if isinstance(part, Slices):
                columns = (part.tick0, part.tick1, part.iteration, part.clock, part.verdict)
                found += zip(*(column.tolist() for column in columns), strict=True)
        texts = ["", *trace.values.known]
        verdicts = [texts[v + 1] for *_, v in found]
        told = sorted((*row[:-1], verdict) for row, verdict in zip(found, verdicts, strict=True))
        return trace.counts | {"slices": len(found)}, told


def test_some_lanes_are_drawn_as_they_are_among_all() -> None:
    """The spans of the chosen CTA, launch or capture, judged as in the whole: same verdicts, arrows between them."""
    bundle = wsformat.open(SAMPLES / "gemm_grid.wsformat")
    every, rows = drawn(bundle)
    ctas = bundle.sql("SELECT DISTINCT cta FROM lanes WHERE cta >= 0")["cta"].to_pylist()
    assert len(ctas) == 4
    parts = [drawn(bundle, cta=cta) for cta in ctas]
    assert sorted(row for _, part in parts for row in part) == rows
    assert {verdict for *_, verdict in rows} > {""}
    for name in ("slices", "flows", "instants"):
        assert sum(counts[name] for counts, _ in parts) == every[name] > 0
    assert drawn(bundle, launch="0") == drawn(bundle, launch=0, capture=bundle.table("captures")["label"][0].as_py())
    both = several_captures()
    for capture in both.table("captures").to_pylist():
        asked = both.sql("SELECT COUNT(*) FROM span WHERE capture_id = ?", [capture["capture_id"]]).column(0)[0].as_py()
        if asked:
            assert drawn(both, capture=capture["capture_id"])[0]["slices"] == asked


def test_every_option_of_an_export_is_checked() -> None:
    assert {option for option, *_ in REFUSED} >= set(EXPORT_OPTIONS) - {"progress"}
    assert chosen({}) == Choice() == chosen({"flows": "all", "arguments": "full", "untracked": "no", "counters": "1"})
    assert chosen({"flows": "none", "arguments": "lean", "untracked": True, "counters": "FALSE"}) == Choice(
        "none", False, True, False
    )


def persistent() -> Bundle:
    """One warp of a persistent kernel: tiles 4 and 0, two iterations each, a marker, and one stored span."""
    c = {"capture_id": "c"}
    point = {**c, "lane": 0, "launch": 0, "cta": 0, "sm": 0, "warp": 0, "role": "r", "clock": 0}
    rows = [(i, 4 if i < 2 else 0, 100 * i) for i in range(4)]
    held = bundle_of([(0, "outer", 0, 1000)])
    span = held.table("spans").to_pylist()[0]
    return held.with_tables(
        {
            "spans": [{**span, "tile": 4}],
            "events": [
                {**point, "event": event, "iteration": i, "tile": tile, "t": t + dt}
                for i, tile, t in rows
                for event, dt in (("begin", 0), ("end", 50), ("mark", 70))
            ],
            "span_types": [
                *held.table("span_types").to_pylist(),
                {**c, "role": "r", "span": "work", "state": "active", "begin_event": "begin", "end_event": "end"},
            ],
        }
    )


def test_a_persistent_loop_gives_the_tile(tmp_path: Path) -> None:
    """Tile 0 of a capture that has other tiles is a tile; without a persistent loop there is no such argument."""
    chrome.write(persistent(), tmp_path / "x.json", {})
    events = json.loads((tmp_path / "x.json").read_text())["traceEvents"]
    found = sorted((e["name"], e["args"]["iteration"], e["args"]["tile"]) for e in events if e["ph"] in "Xi")
    tiles = [4, 4, 0, 0]
    assert found == sorted([("outer", 0, 4), *[(name, i, tiles[i]) for name in ("work", "mark") for i in range(4)]])
    chrome.write(bundle_of([(0, "a", 0, 1)]), tmp_path / "x.json", {})
    assert b"tile" not in (tmp_path / "x.json").read_bytes()


def test_parts_of_any_size_give_the_same_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut into single CTAs and few rows at a time: the same slices, arrows, counters and facts."""
    cases = {**nasty(), "several": several_captures(), "streams": streams(), "tiles": persistent()}
    del cases["many lanes"]
    whole = {name: content(bundle, tmp_path) for name, bundle in cases.items()}
    monkeypatch.setattr(trace_build, "POINTS", 1)
    monkeypatch.setattr(trace_build, "BLOCK", 3)
    assert {name: content(bundle, tmp_path) for name, bundle in cases.items()} == whole


def content(bundle: Bundle, folder: Path) -> Any:
    """Events of a JSON trace without the numbers of processes and threads, in order."""
    report = chrome.write(bundle, folder / "x.json", {"untracked": True})
    events = json.loads((folder / "x.json").read_text())["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    rows = [{**e, "pid": 0, "tid": names.get(e.get("tid"), "")} for e in events if e["ph"] != "M"]
    return {**report, "bytes": 0}, sorted(json.dumps(row, sort_keys=True) for row in rows)


def test_process_and_thread_ids_avoid_the_special_values(tmp_path: Path) -> None:
    """Thread 0, and a thread numbered as its process, mean something else to viewers."""
    chrome.write(bundle_of([(lane, "work", 10, 20) for lane in range(5)], lanes=5), tmp_path / "x.json", {})
    events = json.loads((tmp_path / "x.json").read_text())["traceEvents"]
    pids = {event["pid"] for event in events}
    tids = {event["tid"] for event in events if "tid" in event}
    assert 0 not in pids | tids
    assert not pids & tids


def test_hostile_names_stay_as_they_are(tmp_path: Path) -> None:
    chrome.write(bundle_of([(0, name, 10 * i, 10 * i + 5) for i, name in enumerate(HOSTILE)]), tmp_path / "x.json", {})
    assert sorted(name for name, *_ in slices_of(tmp_path / "x.json")) == sorted(HOSTILE)


@pytest.mark.parametrize("writer", [chrome, perfetto])
def test_untracked_is_drawn_on_request_only(writer: Any, tmp_path: Path) -> None:
    bundle = bundle_of([(0, "a", 10, 20), (0, "a", 25, 30), (0, "a", 30, 40)])
    for option, slices in ((False, 3), ("false", 3), (True, 4), ("true", 4)):
        report = writer.write(bundle, tmp_path / "x", {"untracked": option})
        assert report["slices"] == report["spans_in"] == slices
        assert (b"untracked" in (tmp_path / "x").read_bytes()) is (slices == 4)
    chrome.write(bundle, tmp_path / "x.json", {"untracked": True})
    assert [row for row in slices_of(tmp_path / "x.json") if row[1] == "untracked"] == [
        ("untracked", "untracked", 10, 5)
    ]


@pytest.mark.parametrize("writer", [chrome, perfetto])
def test_what_a_trace_cannot_hold_is_reported(writer: Any, tmp_path: Path) -> None:
    held = streams()
    c = {"capture_id": "c"}
    point = {**c, "lane": 0, "launch": -1, "cta": -1, "sm": -1, "warp": -1, "role": "unassigned", "clock": 0}
    more = [
        {**point, "event": "m.begin", "iteration": 0, "t": 200, "payload": "tile 7"},
        {**point, "event": "m.end", "iteration": 0, "t": 210},
        {**point, "event": "load", "iteration": 0, "t": 220, "payload": "nan"},
        {**point, "event": "load", "iteration": 1, "t": 221, "payload": "1.5"},
    ]
    kind = {**c, "role": "unassigned", "event_index": -1, "loop": "once"}
    bundle = held.with_tables(
        {
            "events": [*held.table("events").to_pylist(), *more],
            "event_types": [
                *held.table("event_types").to_pylist(),
                {**kind, "event": "m.begin", "payload_type": "text"},
                {**kind, "event": "load", "payload_type": "float"},
            ],
            "span_types": [
                *held.table("span_types").to_pylist(),
                {**c, "role": "unassigned", "span": "m", "state": "scope", "loop": "once",
                 "begin_event": "m.begin", "end_event": "m.end"},
            ],
            "metrics": [{**c, "launch": -1, "tool": "ncu", "name": "x", "value": 1.0}] * 3,
            "findings": [{**c, "kind": "note", "text": "n"}],
        }
    )  # fmt: skip
    report = writer.write(bundle, tmp_path / "x", {})
    assert report["left_out"] == {"metrics": 3, "findings": 1}
    assert report["dropped"] == {
        "recorded arrow that lost an end": 1,
        "value that is no number": 1,
        "text recorded with a stamp that begins or ends a span": 1,
    }
    assert (report["slices"], report["counter_values"]) == (5, 3)


def test_rows_are_named_for_people(tmp_path: Path) -> None:
    def names(bundle: Bundle) -> list[tuple[str, str]]:
        with opened(bundle, Choice()) as trace:
            tracks = [track for part in trace.parts if isinstance(part, list) for track in part]
        above = {track.track: track.name for track in tracks}
        assert all(above.get(track.parent, "") == track.above for track in tracks if track.kind != "counter")
        return [(above.get(track.parent, ""), track.name) for track in tracks]

    assert names(streams()) == [
        ("", "a run"), ("a run", "process 9"), ("process 9", "stream 2"), ("process 9", "stream 7"),
        ("a run", "process 251"), ("process 251", "thread 251"), ("process 251", "loader \U0001f680"),
        ("stream 7", "queue depth"),
    ]  # fmt: skip
    assert [name for parent, name in names(several_captures()) if not parent] == ["kernel [first]", "kernel [second]"]


def test_captures_of_several_experiments_are_told_apart_and_ordered(tmp_path: Path) -> None:
    """By experiment, time and label, alike ones by their id; launches keep their order and say their kind."""
    part = bundle_of([(0, "a", 10, 20)])
    given = [  # capture, experiment, created, label
        ("c9", "two", 5, "clean"), ("c1", "two", 7, "stamped"), ("c5", "one", -1, "b"), ("c4", "one", -1, "a"),
        ("c3", "one", -1, "a"),
    ]  # fmt: skip
    tables: dict[str, list[dict[str, Any]]] = {name: [] for name in part.data}
    for capture, experiment, created, label in given:
        facts = {"experiment": experiment, "created_unix_ns": created, "label": label}
        for name in tables:
            more = facts if name == "captures" else {}
            tables[name] += [{**row, "capture_id": capture, **more} for row in part.table(name).to_pylist()]
    clean = {"capture_id": "c1", "launch": 1, "kind": "clean", "status": "ok"}
    tables["launches"].append(clean)
    tables["lanes"].append({**tables["lanes"][1], "capture_id": "c1", "lane": 1, "launch": 1})
    tables["spans"].append(
        {**tables["spans"][1], "capture_id": "c1", "lane": 1, "end_lane": 1, "launch": 1, "span_id": 1}
    )
    with opened(Bundle.from_tables(tables), Choice()) as trace:
        parts = list(trace.parts)
    tracks = [track for part in parts if isinstance(part, list) for track in part]
    roots = [track for track in tracks if track.kind == "capture"]
    assert [root.name for root in roots] == [
        "kernel [one / a / c3]", "kernel [one / a / c4]", "kernel [one / b]", "kernel [two / clean]",
        "kernel [two / stamped]",
    ]  # fmt: skip
    assert [root.rank for root in roots] == [0, 1, 2, 3, 4]
    last = [(track.rank, track.name) for track in tracks if track.parent == roots[-1].track]
    assert last == [(0, "launch 0 (traced)"), (1, "launch 1 (clean)")]
    facts = {part.track: part.facts["capture_id"] for part in parts if isinstance(part, Facts)}
    assert [facts[root.track] for root in roots] == ["c3", "c4", "c5", "c9", "c1"]


def test_a_span_that_ends_before_it_begins_is_drawn_without_length(tmp_path: Path) -> None:
    held = bundle_of([(0, "a", 10, 20), (0, "b", 30, 25), (0, "c", 40, 41)])
    report = chrome.write(held, tmp_path / "x.json", {})
    assert slices_of(tmp_path / "x.json") == [("a", "active", 0, 10), ("b", "active", 20, 0), ("c", "active", 30, 1)]
    assert report["dropped"] == {"length of a span that ends before it begins": 1}
    (event,) = [e for e in json.loads((tmp_path / "x.json").read_text())["traceEvents"] if e["name"] == "b"]
    assert (event["args"]["begin_tick"], event["args"]["end_tick"], event["args"]["incomplete"]) == (30, 25, True)


@pytest.mark.parametrize("table", ["lanes", "captures", "clocks"])
def test_spans_of_what_the_bundle_does_not_define_are_refused(table: str, tmp_path: Path) -> None:
    bundle = bundle_of([(0, "a", 10, 20)]).with_tables({table: []})
    with pytest.raises(WsformatError, match="2 stamps or ends of spans are of a lane, capture or clock"):
        perfetto.write(bundle, tmp_path / "x.pftrace", {})
    assert list(tmp_path.iterdir()) == []


def test_verdicts_come_back_with_an_import(tmp_path: Path) -> None:
    """Texts that the trace keeps once and names by number."""
    dependency = {
        "capture_id": "c", "producer_role": "r", "producer_event": "b.begin", "consumer_role": "r",
        "consumer_event": "a.end", "producer_step": 1, "consumer_step": 1, "iteration_lag": 0, "scope": "cta",
        "barrier": "full", "mechanism": "arrive", "completion": "at_signal",
    }  # fmt: skip
    bundle = bundle_of([(0, "a", 10, 20), (1, "b", 15, 19)], lanes=2, state="stall")
    spans = [{**row, "iteration": 0} for row in bundle.table("spans").to_pylist()]
    bundle = bundle.with_tables({"dependencies": [dependency], "spans": spans})
    perfetto.write(bundle, tmp_path / "x.pftrace", {})
    found = import_files([tmp_path / "x.pftrace"], {}).table("attributes").to_pylist()
    values = {(row["name"], row["value"]) for row in found if row["table_name"] == "spans"}
    assert values >= {
        ("args.verdict", "producer_late"), ("args.producer", "r.b.begin"), ("args.producer_iteration", "0"),
        ("args.verdict", "unknown"),
    }  # fmt: skip


def test_stamps_that_cannot_be_found_again_end_the_export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when a bundle is replaced while it is read: never a file with less in it."""
    show = trace_build._show
    monkeypatch.setattr(trace_build, "_show", lambda c, which: show(c, which if which == "TRUE" else "FALSE"))
    with pytest.raises(WsformatError, match="of 4 stamps and spans 0 were found again"):
        perfetto.write(nasty()["overlap"], tmp_path / "x.pftrace", {})
    assert list(tmp_path.iterdir()) == []
