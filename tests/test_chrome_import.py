"""Chrome traces made here: every phase, every shape of file, and everything that can be wrong with one."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from trace_import_case import brief, events_file, findings, load, losses, sniffed, spans

from wsformat.converters.registry import import_files
from wsformat.errors import BadRequest, MalformedInput, UnknownFormat

X = {"ph": "X", "pid": 1, "tid": 1, "name": "a", "ts": 1, "dur": 2}


def test_overlaps_equal_times_and_zero_lengths_are_all_kept(tmp_path: Path) -> None:
    events = [
        {**X, "ts": 0, "dur": 10},
        {**X, "ts": 5, "dur": 10, "name": "b"},
        {**X, "ts": 5, "dur": 0, "name": "c"},
        {**X, "ts": 5, "dur": 10, "name": "b"},
        {**X, "ts": 15, "dur": 0.001},
    ]
    bundle = load(events_file(tmp_path, events), tmp_path)
    assert sorted(brief(bundle)) == [
        ("1", "a", 0, 10_000), ("1", "a", 15_000, 1), ("1", "b", 5_000, 10_000), ("1", "b", 5_000, 10_000),
        ("1", "c", 5_000, 0),
    ]  # fmt: skip
    assert findings(bundle)["overlap"].startswith("2 spans cross")
    assert {(row["span"], row["iteration"]) for row in spans(bundle)} == {
        ("a", 0),
        ("a", 1),
        ("b", 0),
        ("b", 1),
        ("c", 0),
    }


def test_times_are_exact_beyond_floats(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(
        '[{"ph":"X","pid":1,"tid":1,"name":"a","ts":1700000000000010.789,"dur":0.001},'
        '{"ph":"X","pid":1,"tid":1,"name":"a","ts":"1700000000000010.790","dur":"1e-3"},'
        '{"ph":"X","pid":1,"tid":1,"name":"b","ts":5147366213877.9064999,"dur":0.0006}]'
    )
    assert [(name, t0, length) for _, name, t0, length in brief(load(path, tmp_path))] == [
        ("b", 5_147_366_213_877_906, 1),  # ends at .9070999: rounded to .907
        ("a", 1_700_000_000_000_010_789, 1),
        ("a", 1_700_000_000_000_010_790, 1),
    ]


def test_begin_end_pairs_by_name_where_ends_have_names(tmp_path: Path) -> None:
    def be(ph: str, ts: int, name: str = "", tid: int = 1) -> dict[str, Any]:
        return {"ph": ph, "pid": 1, "tid": tid, "ts": ts, **({"name": name} if name else {})}

    events = [
        be("B", 0, "a"), be("B", 3, "b"), be("E", 5, "a"), be("E", 7, "b"),  # cross
        be("B", 0, "outer", 2), be("B", 1, "inner", 2), be("E", 2, "", 2), be("E", 9, "", 2), be("E", 10, "", 2),
        be("B", 20, "open", 2), be("B", 20, "later", 2), be("E", 25, "", 2),
    ]  # fmt: skip
    bundle = load(events_file(tmp_path, events), tmp_path)
    assert sorted(brief(bundle)) == [
        ("1", "a", 0, 5_000), ("1", "b", 3_000, 4_000), ("2", "inner", 1_000, 1_000), ("2", "later", 20_000, 5_000),
        ("2", "open", 20_000, 5_000), ("2", "outer", 0, 9_000),
    ]  # fmt: skip
    assert [row["span"] for row in spans(bundle) if not row["complete"]] == ["open"]
    assert (losses(bundle)["unclosed"], losses(bundle)["orphaned"]) == ("1", "1")
    (event,) = bundle.table("events").to_pylist()
    assert (event["event"], event["t"]) == ("(no name) (end without begin)", 10_000)


def test_async_spans_cross_threads(tmp_path: Path) -> None:
    def b(ph: str, ts: int, tid: int, **more: Any) -> dict[str, Any]:
        return {"ph": ph, "pid": 1, "tid": tid, "ts": ts, "cat": "c", "name": "copy", **more}

    events = [
        b("b", 0, 1, id="0x1"), b("b", 1, 1, id="0x2"), b("n", 2, 1, id="0x1"), b("e", 3, 2, id="0x1"),
        b("e", 9, 2, id="0x2"), b("b", 4, 1, id2={"local": "0x1"}), b("e", 8, 1, id2={"local": "0x1"}),
        b("e", 8, 1, id="0x7"),
    ]  # fmt: skip
    bundle = load(events_file(tmp_path, events), tmp_path)
    assert [(row["t0"], row["t1"], row["lane"], row["end_lane"]) for row in spans(bundle)] == [
        (0, 3_000, 0, 1), (1_000, 9_000, 0, 1), (4_000, 8_000, 0, 0),
    ]  # fmt: skip
    assert losses(bundle)["orphaned"] == "1"
    assert {row["event"] for row in bundle.table("events").to_pylist()} == {"copy", "copy (end without begin)"}


def test_arrows_of_both_versions(tmp_path: Path) -> None:
    events = [
        {**X, "tid": 1, "ts": 0, "dur": 100, "name": "outer"},
        {**X, "tid": 1, "ts": 10, "dur": 10, "name": "send"},
        {**X, "tid": 2, "ts": 40, "dur": 10, "name": "receive"},
        {**X, "tid": 3, "ts": 60, "dur": 10, "name": "next"},
        {"ph": "s", "id": 7, "cat": "c", "name": "n", "pid": 1, "tid": 1, "ts": 12},
        {"ph": "f", "bp": "e", "id": 7, "cat": "c", "name": "n", "pid": 1, "tid": 2, "ts": 41},
        {"ph": "f", "id": 7, "cat": "c", "name": "n", "pid": 1, "tid": 3, "ts": 55},
        {"ph": "f", "id": 8, "cat": "c", "name": "n", "pid": 1, "tid": 3, "ts": 55},
        {"ph": "s", "id": "tile-3", "cat": "c", "name": "n", "pid": 1, "tid": 2, "ts": 45},
        {"ph": "s", "id": 9, "cat": "c", "name": "n", "pid": 1, "tid": 2, "ts": 45},
        {"ph": "f", "bp": "e", "id": 9, "cat": "c", "name": "n", "pid": 1, "tid": 1, "ts": 15},
        {**X, "tid": 4, "ts": 5, "dur": 0, "name": "out", "bind_id": "0x5", "flow_out": True},
        {**X, "tid": 5, "ts": 6, "dur": 0, "name": "in", "bind_id": "0x5", "flow_in": True, "cat": "flow"},
        {**X, "tid": 5, "ts": 7, "dur": 0, "name": "none", "bind_id": "0x6"},
    ]
    bundle = load(events_file(tmp_path, events), tmp_path)
    name = {-1: "", **{row["span_id"]: row["span"] for row in spans(bundle)}}
    found = {
        (e["native_id"], name[e["from_span_id"]], name[e["to_span_id"]]) for e in bundle.table("edges").to_pylist()
    }
    assert found == {
        ("7", "send", "receive"), ("7", "send", "next"), ("8", "", "next"), ("tile-3", "receive", ""),
        ("9", "receive", "send"), ("0x5", "out", "in"),
    }  # fmt: skip
    dangling = {e["native_id"]: e for e in bundle.table("edges").to_pylist()}
    assert (dangling["8"]["from_lane"], dangling["8"]["from_t"], dangling["8"]["to_t"]) == (-1, -1, 55_000)
    assert (dangling["tile-3"]["to_lane"], dangling["tile-3"]["from_t"]) == (-1, 45_000)
    assert losses(bundle)["ignored"] == "1 x bind_id without flow_in or flow_out"


def test_counters_keep_their_digits(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(
        '{"traceEvents":['
        '{"ph":"C","pid":1,"tid":1,"ts":2,"name":"bytes","args":{"read":9007199254740993,"write":1}},'
        '{"ph":"C","pid":1,"tid":1,"ts":1,"name":"bytes","args":{"read":2,"write":1.50}},'
        '{"ph":"C","pid":1,"tid":1,"ts":3,"name":"depth","id":"q","args":{"value":3}},'
        '{"ph":"C","pid":1,"tid":1,"ts":3,"name":"depth","args":{"value":"many"}},'
        '{"ph":"C","pid":1,"tid":1,"ts":3,"name":"depth"},'
        '{"ph":"i","pid":1,"tid":1,"ts":4,"name":"go","s":"t","args":{"k":1}}]}'
    )
    bundle = load(path, tmp_path)
    assert [(e["event"], e["t"], e["iteration"], e["payload"]) for e in bundle.table("events").to_pylist()] == [
        ("bytes.read", 1000, 0, "2"), ("bytes.write", 1000, 0, "1.50"), ("bytes.read", 2000, 1, "9007199254740993"),
        ("bytes.write", 2000, 1, "1"), ("depth.q", 3000, 0, "3"), ("depth", 3000, 0, "many"),
        ("go", 4000, 0, '{"k":1}'),
    ]  # fmt: skip
    kinds = {row["event"]: row["payload_type"] for row in bundle.table("event_types").to_pylist()}
    assert kinds == {"bytes.read": "int", "bytes.write": "float", "depth.q": "int", "depth": "text", "go": "text"}
    assert losses(bundle)["ignored"] == "1 x counter without a value"


def test_ids_are_opaque_and_names_come_from_metadata(tmp_path: Path) -> None:
    events = [
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "SM 1"}},
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 0, "args": {"name": "old"}},
        *({**X, "pid": pid, "tid": tid} for pid in (1, "1", "w") for tid in (0, 2**40, -5)),
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 0, "ts": -1, "args": {"name": "warp \U0001f600"}},
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 9, "args": {"name": "idle warp"}},
    ]
    bundle = load(events_file(tmp_path, events), tmp_path)
    lanes = bundle.table("lanes").to_pylist()
    assert len(lanes) == 10
    assert {(lane["name"], lane["process_id"], lane["thread_id"], lane["records_kept"]) for lane in lanes[:3]} == {
        ("warp \U0001f600", 1, 0, 1), (str(2**40), 1, 2**40, 1), ("-5", 1, -1, 1),
    }  # fmt: skip
    assert [lane["records_kept"] for lane in lanes if lane["name"] == "idle warp"] == [0]
    processes = {a["value"] for a in bundle.table("attributes").to_pylist() if a["name"] == "process_name"}
    assert processes == {"SM 1", "1", "w"}


def test_arguments_stay_as_written(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(
        b'[{"ph":"X","pid":1,"tid":1,"ts":1,"dur":1,'
        b'"name":"a \\"q\\" \\ud83d {,}",'
        b'"args":{"u":18446744073709551615,"f":0.10,"s":"}{\\\\"}},\n'
        b' {"ph":"X","pid":1,"tid":1,"ts":2,"dur":1,"name":"\xff","args":{"n":NaN}},,{}\n'
    )
    bundle = load(path, tmp_path)
    values = {
        a["row_key"]: (a["type"], a["value"]) for a in bundle.table("attributes").to_pylist() if a["name"] == "args"
    }
    assert values == {"0": ("json", '{"u":18446744073709551615,"f":0.10,"s":"}{\\\\"}'), "1": ("text", '{"n":NaN}')}
    assert [row["span"] for row in spans(bundle)] == ['a "q" ? {,}', "\ufffd"]
    assert "no ']'" in findings(bundle)["truncated"]
    assert bundle.table("captures").to_pylist()[0]["completeness"] == "truncated"
    bare = load(path, tmp_path, args="none")
    assert not [a for a in bare.table("attributes").to_pylist() if a["name"] == "args"]
    assert "2 x arguments of an event" in losses(bare)["ignored"]


@pytest.mark.parametrize("name", ["t.json", "t.json.gz"])
def test_cut_files_give_what_came_before(name: str, tmp_path: Path) -> None:
    whole = events_file(tmp_path, [{**X, "ts": n, "args": {"n": n * 7919 % 1009}} for n in range(2000)], name)
    data = whole.read_bytes()
    cut = tmp_path / f"cut.{name}"
    cut.write_bytes(data[: len(data) * 2 // 3])
    bundle = load(cut, tmp_path)
    kept = bundle.table("spans").num_rows
    assert 1000 < kept < 1400
    assert bundle.table("spans").column("t0").to_pylist() == [n * 1000 for n in range(kept)]
    assert findings(bundle)["truncated"]


def test_one_name_written_in_two_ways_is_one_name(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text('[{"ph":"X","pid":1,"tid":1,"ts":1,"dur":1,"name":"mma"},{"ph":"X","pid":1,"tid":1,"ts":3,"dur":1,'
                    '"name":"\\u006dma"}]')  # fmt: skip
    assert [(row["span"], row["iteration"]) for row in spans(load(path, tmp_path))] == [("mma", 0), ("mma", 1)]


def test_chunks_make_no_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[Any] = [
        {**X, "ts": n, "name": f'n{n % 7} \\" {{ [', "args": {"a": [1, {"b": "]}"}]}} for n in range(300)
    ]
    path = events_file(tmp_path, [*events, None, 3, "s", [1, {"ph": "X"}]], metadata={"k": [1, "]"]}, z="end")
    wanted = load(path, tmp_path)
    monkeypatch.setattr("wsformat.converters.chrome.scan.CHUNK", 97)
    found = load(path, tmp_path)
    for table in ("spans", "lanes", "attributes", "captures"):
        assert found.table(table) == wanted.table(table), table
    assert losses(wanted)["ignored"] == "4 x element that is no object"
    header = {a["name"]: a["value"] for a in wanted.table("attributes").to_pylist() if a["name"].startswith("file.")}
    assert header == {"file.metadata": '{"k": [1, "]"]}', "file.z": '"end"'}


@pytest.mark.parametrize(
    ("text", "byte"),
    [
        ('{"traceEvents":[{"ph":"X"]]', 25),
        ('{"traceEvents":[{"ph":"X","ts"}]}', 30),
        ('{"traceEvents":[{"ph":"X","ts":1 "dur":2}]}', 38),
        ('{"traceEvents":[{"ph":}]}', 22),
        ('{"traceEvents":[{ph:"X"}]}', 19),
        ('{"traceEvents":[{"ph":"X"}}', 26),
        ('{"traceEvents":[{"ph":"X"}],nope}', 27),
    ],
)
def test_broken_at_a_byte(text: str, byte: int, tmp_path: Path) -> None:
    path = tmp_path / "broken.json"
    path.write_text(text)
    assert sniffed(path) == ["chrome"]
    with pytest.raises(MalformedInput, match=f"broken at byte {byte}:"):
        import_files([path], {})


def test_bad_values_are_counted_with_their_place(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(
        '{"traceEvents":[\n{"ph":"X","pid":1,"tid":1,"name":"a","ts":"noon","dur":1},'
        '{"ph":"X","pid":1,"tid":1,"name":"a","ts":5,"dur":-2},{"ph":"X","pid":1,"tid":1,"name":"a","ts":6},'
        '{"ph":"X","pid":1,"tid":1,"name":"a","ts":7,"dur":NaN},{"ph":"X","pid":1,"tid":1,"ts":8,"dur":1},'
        '{"ph":"N","pid":1,"ts":1},{"ph":"X","name":"later","pid":1,"tid":2,"ts":-3.5,"dur":1}]}'
    )
    bundle = load(path, tmp_path)
    assert [(row["span"], row["complete"], row["t0"], row["t1"]) for row in spans(bundle)] == [
        ("a", False, 8_500, 12_500), ("a", False, 9_500, 12_500), ("a", False, 10_500, 12_500),
        ("(no name)", True, 11_500, 12_500), ("later", True, 0, 1_000),
    ]  # fmt: skip
    assert losses(bundle) | {"assumption": ""} == {
        "records_expected": "-1", "records_kept": "5", "records_lost": "3", "orphaned": "0", "unclosed": "2",
        "out_of_order": "1", "wraps_undone": "0", "overhead_corrected": "0", "assumption": "",
        "ignored": "1 x event of phase 'N'; 1 x event without a time that is a number; 1 x duration that is no number",
    }  # fmt: skip
    texts = [row["text"] for row in bundle.table("findings").to_pylist() if row["subject"] == "not read"]
    assert "1 x event without a time that is a number, the first at byte 17." in texts
    assert "3500 later than in the file" in bundle.table("clocks").to_pylist()[0]["assumption"]


@pytest.mark.parametrize(
    "text", ['{"traceEvents":[]}', '{"traceEvents":[{}]}', '{"traceEvents":[\n]', ' {"traceEvents": [']
)
def test_nothing_in_it_is_said(text: str, tmp_path: Path) -> None:
    path = tmp_path / "empty.json"
    path.write_text(text)
    bundle = load(path, tmp_path)
    assert bundle.table("spans").num_rows == 0
    assert findings(bundle)["empty"]


@pytest.mark.parametrize("text", ["", "{}", "[]", "[1,2]", "no json", '{"a": [{"b": 1}]}', "\x1f\x8b", '[{"a":"ph"}]'])
def test_not_this_format(text: str, tmp_path: Path) -> None:
    path = tmp_path / "other.txt"
    path.write_text(text, encoding="latin-1")
    assert "chrome" not in sniffed(path)
    with pytest.raises(UnknownFormat):
        import_files([path], {})
    if text.startswith("["):
        assert findings(import_files([path], {}, format_name="chrome"))["empty"]
    else:
        with pytest.raises(MalformedInput):
            import_files([path], {}, format_name="chrome")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ts_unit": "ms"}, "ts_unit 'ms': no such unit"),
        ({"dialect": "nsys"}, "no such dialect"),
        ({"dialect": "proton"}, "lanes are not named"),
        ({"args": "some"}, "all or none"),
        ({"mapping": "nothing"}, "no preset of that name"),
        ({"colour": "red"}, "no option colour"),
        ({"created_unix_ns": "today"}, "not a whole number"),
    ],
)
def test_bad_options(options: dict[str, str], message: str, tmp_path: Path) -> None:
    path = events_file(tmp_path, [X])
    with pytest.raises(BadRequest, match=message):
        import_files([path], options)
    with pytest.raises(BadRequest, match="one at a time"):
        import_files([path, path], {})


def test_units(tmp_path: Path) -> None:
    path = events_file(tmp_path, [{**X, "ts": 12.5, "dur": 2.25}, {**X, "ts": 3, "dur": 1}])
    assert [(t0, n) for _, _, t0, n in brief(load(path, tmp_path))] == [(3000, 1000), (12_500, 2250)]
    assert [(t0, n) for _, _, t0, n in brief(load(path, tmp_path, ts_unit="ns"))] == [(3, 1), (13, 2)]
    bundle = load(path, tmp_path, ts_unit="cycles")
    (clock,) = bundle.table("clocks").to_pylist()
    assert (clock["unit"], clock["assumption"]) == ("cycle", "Times are taken as cycles, as the user said.")
    epoch = events_file(tmp_path, [{**X, "ts": 1_796_004_527_154_910_272, "dur": 64}])
    assert brief(load(epoch, tmp_path)) == [("1", "a", 1_796_004_527_154_910_272, 64)]
    with pytest.raises(MalformedInput, match="does not fit 64 bits of ns"):
        import_files([epoch], {"ts_unit": "us"})
    few = events_file(tmp_path, [{**X, "ts": 64, "dur": 32}])
    assert brief(load(few, tmp_path)) == [("1", "a", 64_000, 32_000)]
    hundreds = events_file(tmp_path, [{**X, "ts": 100 * n, "dur": 100} for n in range(99)])
    assert brief(load(hundreds, tmp_path))[1] == ("1", "a", 100_000, 100_000)


def test_unclosed_begins_last_to_the_end_of_their_lane(tmp_path: Path) -> None:
    events = [{"ph": "B", "pid": 1, "tid": 1, "ts": n, "name": "b"} for n in (4, 2, 3)]
    bundle = load(events_file(tmp_path, events), tmp_path)
    assert [(row["t0"], row["t1"], row["complete"]) for row in spans(bundle)] == [
        (2000, 4000, False), (3000, 4000, False), (4000, 4000, False),
    ]  # fmt: skip
    assert (losses(bundle)["unclosed"], losses(bundle)["out_of_order"]) == ("3", "1")


def test_proton_with_start_times_and_cross_warp_arrows(tmp_path: Path) -> None:
    def warp(cta: int, warp: int, ts: float, dur: float, **more: Any) -> dict[str, Any]:
        args = {"Init Time (ns)": 1_796_004_527_154_910_272 + 96 * cta, "Frequency (MHz)": 1000.0}
        name = {"pid": f"k Core{7 + cta} CTA{cta}", "tid": f"warp {warp} (line 0)", "name": "s", "args": args}
        return {"ph": "X", "ts": ts, "dur": dur, **name, **more}

    events = [
        warp(0, 0, 0.005, 1.0, bind_id=3, flow_out=True), warp(0, 1, 0.2, 0.5, bind_id=3, flow_in=True),
        warp(1, 0, 0.096, 0.3), warp(1, 0, 0.1, 0.1, tid="warp 0 (line 1)"),
    ]  # fmt: skip
    bundle = load(events_file(tmp_path, events), tmp_path)
    assert [(r["cta"], r["warp"], r["t0"], r["t1"]) for r in spans(bundle)] == [
        (0, 0, 0, 1000), (0, 1, 195, 695), (1, 0, 0, 300), (1, 0, 4, 104),
    ]  # fmt: skip
    anchors = bundle.table("clock_anchors").to_pylist()
    assert [(a["clock"], a["t"], a["reference_clock"], a["reference_t"]) for a in anchors] == [
        (0, 0, 2, 1_796_004_527_154_910_272), (1, 0, 2, 1_796_004_527_154_910_368),
    ]  # fmt: skip
    (edge,) = bundle.table("edges").to_pylist()
    assert (edge["from_lane"], edge["from_t"], edge["to_lane"], edge["to_t"]) == (0, 0, 1, 195)


def test_same_file_same_id_and_another_option_another(tmp_path: Path) -> None:
    path = events_file(tmp_path, [X])
    packed = tmp_path / "u.json.gz"
    packed.write_bytes(gzip.compress(path.read_bytes(), mtime=0))

    def ids(file: Path, **options: Any) -> str:
        return str(import_files([file], options).table("captures").to_pylist()[0]["capture_id"])

    assert ids(path) == ids(path)
    assert len({ids(path), ids(path, ts_unit="ns"), ids(packed), ids(path, label="x")}) == 4
    (source,) = import_files([path], {"ts_unit": "ns", "label": "x"}).manifest.sources
    assert (source["dialect"], source["options"]) == ("chrome-generic", {"ts_unit": "ns", "label": "x"})
    assert json.dumps(source)
