"""Perfetto traces of real writers, our own export read back, and traces made here byte by byte."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest
from perfetto_bytes import BEGIN, COUNTER, END, INSTANT, event, field, packet, save, track
from trace_import_case import brief, findings, load, losses, sniffed, spans

from wsformat import samples
from wsformat.bundle import Bundle
from wsformat.converters import chrome, perfetto
from wsformat.converters.registry import import_files
from wsformat.errors import BadRequest, MalformedInput, UnknownFormat

SAMPLES = Path(samples.__file__).parent


def test_tg4perfetto(public: Path, tmp_path: Path) -> None:
    path = public / "chrome_traces" / "tg4perfetto_4x4.perfetto-trace"
    assert sniffed(path) == ["perfetto"]
    bundle = load(path, tmp_path)
    found = spans(bundle)
    assert Counter(row["span"] for row in found) == {"wait": 64, "work": 64}
    assert (min(row["t0"] for row in found), max(row["t1"] for row in found)) == (1000, 3201)
    assert sum(row["t1"] - row["t0"] for row in found) == 27_712
    assert len({row["lane"] for row in found}) == 32
    above = {a["value"] for a in bundle.table("attributes").to_pylist() if a["name"] == "process_name"}
    assert len({(row["lane_name"]) for row in found}) * len(above) >= 16


def test_iket_sibling_of_the_json(captures: Path, tmp_path: Path) -> None:
    path = captures / "peers" / "iket_pipeline_1cta.pftrace"
    assert sniffed(path) == ["perfetto"]
    found = Counter((r["span"], r["t0"], r["t1"]) for r in spans(load(path, tmp_path)))
    data = json.loads((captures / "peers" / "iket_pipeline_1cta.trace.json").read_text())
    wanted = Counter(
        (data["stringTable"][r["rangeNameIdx"]], r["startTs"], r["endTs"])
        for launch in data["launches"] for r in launch["ranges"]
    )  # fmt: skip
    assert wanted.total() == 864
    assert wanted <= found
    lives = Counter((w["startTs"], w["endTs"]) for launch in data["launches"] for w in launch["warpLifetimes"])
    rest = Counter((t0, t1) for (_, t0, t1), n in (found - wanted).items() for _ in range(n))
    assert lives <= rest


@pytest.fixture(scope="module")
def balanced() -> Bundle:
    return import_files(
        [SAMPLES / "balanced_r0.i32"],
        {"spec": SAMPLES / "gemm_roles.json", "meta": SAMPLES / "balanced_r0.meta", "trip_count": 64},
    )


@pytest.mark.parametrize("name", ["t.pftrace", "t.pftrace.gz", "t.json", "t.json.gz"])
def test_own_export_comes_back(balanced: Bundle, name: str, tmp_path: Path) -> None:
    writer = chrome if ".json" in name else perfetto
    report = writer.write(balanced, tmp_path / name, {})
    back = load(tmp_path / name, tmp_path)
    wanted = Counter(
        (row["span"], row["ns1"] - row["ns0"])
        for row in balanced.sql("SELECT span, ns0, ns1 FROM timeline_ns").to_pylist()
    )
    found = Counter(
        (row["span"], row["t1"] - row["t0"]) for row in spans(back) if row["category"] not in ("signal", "binding")
    )
    assert found == wanted
    assert found.total() == report["spans_in"]
    joined = [edge for edge in back.table("edges").to_pylist() if min(edge["from_lane"], edge["to_lane"]) >= 0]
    assert len(joined) == back.table("edges").num_rows > 0
    assert losses(back)["records_lost"] == "0"
    iterations = [a for a in back.table("attributes").to_pylist() if a["table_name"] == "spans"]
    assert iterations


def test_slices_interning_and_order(tmp_path: Path) -> None:
    names = field(12, field(2, field(1, 7) + field(2, "mma")) + field(1, field(1, 3) + field(2, "active")))
    again = field(12, field(2, field(1, 7) + field(2, "tma")))
    path = save(
        tmp_path,
        track(5, "SM 0"), track(6, "warp 0", parent=5),
        event(100, BEGIN, 6, field(10, 7), field(3, 3), extra=names + field(13, 3)),
        event(200, END, 6),
        event(120, BEGIN, 6, field(23, "mma")), event(120, END, 6),
        event(200, BEGIN, 6, field(23, "direct \U0001f600")),
        event(205, BEGIN, 6, field(10, 9)),
        event(210, END, 6),
        event(220, END, 6),
        event(150, BEGIN, 6, field(10, 7), sequence=2, extra=again + field(13, 1)),
        event(160, END, 6, sequence=2),
        event(300, BEGIN, 6, field(10, 7), extra=again + field(13, 1)),
        event(2**62, END, 6),
        event(50, END, 6),
        event(2**62 + 1, BEGIN, 77, field(23, "open")),
        event(2**62 + 5, INSTANT, 77, field(23, "mark")),
    )  # fmt: skip
    bundle = load(path, tmp_path)
    assert brief(bundle) == [
        ("warp 0", "mma", 100, 100), ("warp 0", "mma", 120, 0), ("warp 0", "tma", 150, 10),
        ("warp 0", "direct \U0001f600", 200, 20),
        ("warp 0", "(no name)", 205, 5), ("warp 0", "tma", 300, 2**62 - 300), ("track 77", "open", 2**62 + 1, 4),
    ]  # fmt: skip
    assert [row["category"] for row in spans(bundle)][:3] == ["active", "", ""]
    assert [row["complete"] for row in spans(bundle)] == [True] * 6 + [False]
    assert findings(bundle)["not resolved"].startswith("1 x name")
    assert (losses(bundle)["orphaned"], losses(bundle)["unclosed"]) == ("1", "1")
    processes = [a["value"] for a in bundle.table("attributes").to_pylist() if a["name"] == "process_name"]
    assert processes == ["SM 0"]


def test_counters_flows_and_annotations(tmp_path: Path) -> None:
    names = field(12, field(3, field(1, 1) + field(2, "ticks")))
    note = field(4, field(1, 1) + field(3, 2**64 - 1))
    path = save(
        tmp_path,
        track(1, "a"), track(2, "b"), track(3, "depth", counter=True),
        event(10, BEGIN, 1, field(23, "send"), field(47, 2**63 + 1, "fixed64"), note, extra=names + field(13, 3)),
        event(20, END, 1),
        event(
            15, BEGIN, 2, field(23, "get"), field(48, 2**63 + 1, "fixed64"), field(4, field(10, "s") + field(6, "x y")),
            field(4, field(10, "f") + field(5, 0.25, "double")), field(4, field(10, "n") + field(4, -3)),
            field(4, field(10, "b") + field(2, 1)), field(4, field(10, "nested") + field(8, b"")),
        ),
        event(25, END, 2),
        event(30, BEGIN, 2, field(23, "alone"), field(48, 9, "fixed64")),
        event(31, END, 2),
        event(11, COUNTER, 3, field(30, 2**53 + 1)), event(12, COUNTER, 3, field(30, -1)),
        event(13, INSTANT, 1, field(23, "go"), field(36, 5), note),
        event(14, INSTANT, 2, field(23, "went"), field(42, 5)),
    )  # fmt: skip
    bundle = load(path, tmp_path)
    name = {-1: "", **{row["span_id"]: row["span"] for row in spans(bundle)}}
    assert {
        (e["native_id"], name[e["from_span_id"]], e["from_t"], name[e["to_span_id"]], e["to_t"])
        for e in bundle.table("edges").to_pylist()
    } == {(str(2**63 + 1), "send", 10, "get", 15), ("9", "", -1, "alone", 30), ("5", "", 13, "", 14)}
    assert [(e["event"], e["t"], e["payload"]) for e in bundle.table("events").to_pylist()] == [
        ("go", 13, '{"ticks":18446744073709551615}'), ("went", 14, ""),
        ("depth", 11, "9007199254740993"), ("depth", 12, "-1"),
    ]  # fmt: skip
    values = {(name[int(a["row_key"])], a["name"]): a["value"] for a in bundle.table("attributes").to_pylist()
              if a["table_name"] == "spans"}  # fmt: skip
    assert values == {
        ("send", "args.ticks"): str(2**64 - 1), ("get", "args.s"): "x y", ("get", "args.f"): "0.25",
        ("get", "args.n"): "-3", ("get", "args.b"): "true",
    }  # fmt: skip
    assert "1 x annotation of a counter" in losses(bundle)["ignored"]


def test_what_cannot_be_read_is_counted(tmp_path: Path) -> None:
    path = save(
        tmp_path,
        track(1, "a"),
        event(10, BEGIN, 1, field(23, "x")), event(20, END, 1),
        packet(field(11, field(9, BEGIN) + field(11, 1))),  # no time
        event(2**63 + 1, BEGIN, 1), event(30, 9, 1),
        field(1, b"\x0b\x00\x00"),  # a group, which nobody writes
        packet(field(8, 40), field(11, b"\xff\xff")),
        packet(field(50, b"zipped")),
        packet(field(8, 50), field(58, 64), field(11, field(9, INSTANT) + field(11, 1))),
        packet(field(8, 51), field(58, 65), field(11, field(9, INSTANT) + field(11, 1))),
    )  # fmt: skip
    bundle = load(path, tmp_path)
    assert losses(bundle)["ignored"] == (
        "1 x compressed packet that is damaged; 1 x packet that is no protobuf; 1 x event that is no protobuf; "
        "1 x event without a time; 1 x event of an unknown type; 1 x event of a time before zero or beyond 63 bits"
    )
    assert "No snapshot ties clock 64, 65 to the others" in findings(bundle)["clock"]


def test_defaults_change_and_clocks_are_tied(tmp_path: Path) -> None:
    def default(uuid: int, sequence: int = 1) -> bytes:
        said = field(58, 64) + (field(11, field(11, uuid)) if uuid else b"")
        return packet(field(59, said), sequence=sequence)

    def bare(t: int, kind: int, sequence: int = 1) -> bytes:
        return packet(field(8, t), field(11, field(9, kind)), sequence=sequence)

    clocks = field(1, field(1, 6) + field(2, 1000)) + field(1, field(1, 64) + field(2, 0))
    path = save(
        tmp_path,
        packet(field(6, clocks), field(13, 1)), packet(field(6, clocks), sequence=9), track(1, "a"), track(2, "b"),
        default(1), bare(1, BEGIN), default(2), bare(2, BEGIN), bare(3, END), default(1), bare(5, END),
        default(2, 9), bare(7, INSTANT, 9), event(1008, INSTANT, 1, extra=field(58, 6)),
        packet(field(13, 1)), default(0), bare(9, INSTANT),
    )  # fmt: skip
    bundle = load(path, tmp_path)
    assert brief(bundle) == [("a", "(no name)", 1001, 4), ("b", "(no name)", 1002, 1)]
    names = [lane["name"] for lane in bundle.table("lanes").to_pylist()]
    assert sorted((names[e["lane"]], e["t"]) for e in bundle.table("events").to_pylist()) == [
        ("a", 1008), ("b", 1007), ("track 0", 1009),
    ]  # fmt: skip
    assert "clock" not in findings(bundle)


@pytest.mark.parametrize("name", ["t.pftrace", "t.pftrace.gz"])
def test_cut_files(name: str, tmp_path: Path) -> None:
    data = track(1, "a") + b"".join(
        event(10 + n * 7919 % 1009, kind, 1, field(23, f"n{n}")) for n in range(500) for kind in (BEGIN, END)
    )
    packed = gzip.compress(data) if name.endswith("gz") else data
    bundle = load(save(tmp_path, packed[: len(packed) * 3 // 4], name=name), tmp_path)
    assert 250 < bundle.table("spans").num_rows < 450
    assert bundle.table("captures").to_pylist()[0]["completeness"] == "truncated"


def test_nothing_in_it_and_not_this_format(tmp_path: Path) -> None:
    assert findings(load(save(tmp_path, track(1, "a")), tmp_path))["empty"]
    for data in (b"", b"\x0a", b"{}", b"\x0a\x03abc", b"\x0a\x00", bytes(100)):
        path = save(tmp_path, data, name="other.bin8")
        assert "perfetto" not in sniffed(path)
        with pytest.raises(UnknownFormat):
            import_files([path], {})
    with pytest.raises(MalformedInput, match="broken at byte 0"):
        import_files([save(tmp_path, b"no trace")], {}, format_name="perfetto")
    with pytest.raises(BadRequest, match="one at a time"):
        import_files([save(tmp_path, track(1, "a"))] * 2, {})
