"""The 64-bit tag family: real buffers, every dialect made here bit by bit, and everything that can be wrong."""

from __future__ import annotations

import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trace_import_case import findings, load, losses, sniffed, spans

from wsformat.converters.registry import import_files
from wsformat.errors import BadRequest, MalformedInput, UnknownFormat

B, E, INSTANT, F = range(4)
Record = tuple[int, int, int]
"""(event, type, time)."""


@pytest.fixture(scope="module")
def peers(captures: Path) -> Path:
    return captures / "peers"


def tag(dialect: str, lane: int, groups: int, event: int, kind: int) -> int:
    low = event << 2 | kind
    if dialect == "flashinfer-v2":
        block = lane // groups
        return (100 + block) << 24 | block << 12 | low
    return lane << 12 | low


def buffer(
    path: Path, dialect: str, lanes: dict[int, list[Record]], blocks: int = 2, groups: int = 2, slots: int = 200,
    stride: int = 0,
) -> Path:  # fmt: skip
    words = np.zeros((slots, 2), "<u4")
    words[0] = blocks, groups
    stride = stride or blocks * groups
    for lane, records in lanes.items():
        for n, (event, kind, t) in enumerate(records):
            words[1 + lane + n * stride] = tag(dialect, lane, groups, event, kind), t % 2**32
    words.tofile(path)
    return path


def work(t: int, count: int = 3, event: int = 0) -> list[Record]:
    return [(event, kind, t + 100 * n + 32 * kind) for n in range(count) for kind in (B, E)]


def test_flashinfer_capture(peers: Path, tmp_path: Path) -> None:
    path = peers / "flashinfer_r0.u64"
    assert sniffed(path) == ["tag64"]
    bundle = load(path, tmp_path, events="wait,work,store", groups="producer,consumer", mapping="tag-producer-consumer")
    assert bundle.table("captures").to_pylist()[0]["source_format"] == "flashinfer-v2"
    assert [s["detected_by"] for s in bundle.manifest.sources] == ["the only dialect that every tag fits"]
    lanes = bundle.table("lanes").to_pylist()
    assert [(lane["cta"], lane["role"]) for lane in lanes] == [
        (c, r) for c in range(6) for r in ("producer", "consumer")
    ]
    assert {lane["cta"]: lane["sm"] for lane in lanes} == {0: 124, 1: 125, 2: 126, 3: 127, 4: 128, 5: 130}
    count = Counter((row["cta"], row["role"], row["span"]) for row in spans(bundle))
    assert count == Counter(
        {(cta, role, span): 20 for cta in range(6) for role, names in
         (("producer", ["work"]), ("consumer", ["wait", "work", "store"])) for span in names}
    )  # fmt: skip
    words = np.fromfile(path, "<u4").reshape(-1, 2)
    lane_three = words[1 + 3 :: 12][:120]
    mine = [row for row in spans(bundle) if row["lane"] == 3]
    assert [row["t0"] for row in mine] == lane_three[0::2, 1].tolist()
    assert [row["t1"] for row in mine] == lane_three[1::2, 1].tolist()
    kinds = [row for row in bundle.table("span_types").to_pylist() if row["role"] == "consumer"]
    assert {row["span"]: row["state"] for row in kinds} == {
        "wait": "stall", "work": "active", "store": "active",
    }  # fmt: skip
    assert (losses(bundle)["records_expected"], losses(bundle)["records_lost"]) == ("480", "0")
    assert bundle.table("clocks").to_pylist()[0]["step_ticks"] == 32


def test_warpscope_capture_against_its_own_decoder(peers: Path, tmp_path: Path) -> None:
    path = peers / "warpscope_r0.u64"
    assert sniffed(path) == ["tag64"]
    bundle = load(path, tmp_path, events={0: "wait", 1: "work"}, groups="producer,consumer")
    assert bundle.table("captures").to_pylist()[0]["source_format"] == "tirx"
    decoded = json.loads((peers / "warpscope_r0.json").read_text(), parse_float=Decimal)["traceEvents"]
    wanted = Counter(
        (e["pid"], e["tid"], e["name"], int(e["ts"] * 1000), int(e["dur"] * 1000)) for e in decoded if e["ph"] == "X"
    )
    found = Counter(
        (r["cta"], int("consumer" in r["lane_name"]), r["span"], r["t0"], r["t1"] - r["t0"]) for r in spans(bundle)
    )
    assert found == wanted
    assert Counter(("consumer" in r["lane_name"], r["span"]) for r in spans(bundle)) == Counter(
        {(False, "work"): 120, (True, "wait"): 120, (True, "work"): 120}
    )
    assert Counter(e["event"] for e in bundle.table("events").to_pylist()) == Counter({"finalize": 12})
    assert bundle.table("captures").to_pylist()[0]["completeness"] == "complete"


def test_current_flashinfer_read_by_the_older_rules_is_counted(peers: Path, tmp_path: Path) -> None:
    bundle = load(peers / "flashinfer_r0.u64", tmp_path, dialect="warpscope")
    assert findings(bundle)["tag"].startswith("960 tags hold another number")
    assert Counter(row["cta"] for row in spans(bundle)) == Counter(dict.fromkeys(range(6), 80))


@pytest.mark.parametrize("dialect", ["flashinfer-v1", "flashinfer-v2", "tirx"])
def test_each_dialect(dialect: str, tmp_path: Path) -> None:
    end = [(0, F, 5000)] if dialect == "tirx" else []
    path = buffer(tmp_path / "b.u64", dialect, {lane: [*work(1000 + lane, 3, lane), *end] for lane in range(4)})
    assert sniffed(path) == ["tag64"]
    if dialect == "flashinfer-v1":
        with pytest.raises(MalformedInput, match="flashinfer-v1 and tirx fit this buffer"):
            import_files([path], {})
        bundle = load(path, tmp_path, dialect=dialect)
    else:
        bundle = load(path, tmp_path)
    assert bundle.table("captures").to_pylist()[0]["source_format"] == dialect
    assert [(r["lane"], r["cta"], r["span"], r["iteration"], r["t0"], r["t1"]) for r in spans(bundle)] == [
        (lane, lane // 2, f"event_{lane}", n, 1000 + lane + 100 * n, 1032 + lane + 100 * n)
        for lane in range(4) for n in range(3)
    ]  # fmt: skip
    assert [lane["sm"] for lane in bundle.table("lanes").to_pylist()] == (
        [100, 100, 101, 101] if dialect == "flashinfer-v2" else [-1] * 4
    )
    assert {lane["completeness"] for lane in bundle.table("lanes").to_pylist()} == {"complete"}


def test_wraps_are_undone_lane_by_lane(tmp_path: Path) -> None:
    top = 2**32
    lanes = {0: work(top - 120, 4), 1: work(top - 20, 2), 2: work(top + 40, 2)}
    bundle = load(buffer(tmp_path / "b.u64", "flashinfer-v2", lanes), tmp_path)
    assert [(r["lane"], r["t0"], r["t1"] - r["t0"]) for r in spans(bundle)] == [
        (lane, t, 32) for lane, first, n in ((0, top - 120, 4), (1, top - 20, 2), (2, top + 40, 2))
        for t in range(first, first + 100 * n, 100)
    ]  # fmt: skip
    assert [lane["wraps"] for lane in bundle.table("lanes").to_pylist()] == [1, 1, 0, 0]
    assert losses(bundle)["wraps_undone"] == "2"
    assert bundle.table("clocks").to_pylist()[0]["wraps"] == 2


def test_a_long_launch_with_two_wraps(tmp_path: Path) -> None:
    records = [(0, n % 2, 10 + n * 2_000_000_000) for n in range(6)]
    bundle = load(buffer(tmp_path / "b.u64", "flashinfer-v2", {0: records}), tmp_path)
    assert [(r["t0"], r["t1"]) for r in spans(bundle)] == [
        (10 + n * 2_000_000_000, 10 + (n + 1) * 2_000_000_000) for n in (0, 2, 4)
    ]
    assert losses(bundle)["wraps_undone"] == "2"


def test_lanes_around_the_whole_timer_are_refused(tmp_path: Path) -> None:
    lanes = {0: work(0), 1: work(1_500_000_000), 2: work(3_000_000_000)}
    path = buffer(tmp_path / "b.u64", "flashinfer-v2", lanes)
    with pytest.raises(MalformedInput, match="wraps are ambiguous"):
        import_files([path], {})


def test_instants_nesting_and_unpaired(tmp_path: Path) -> None:
    lanes: dict[int, list[Record]] = {
        0: [(1, B, 10), (1, B, 20), (1, E, 30), (1, E, 40), (2, INSTANT, 50), (0, F, 60)],
        1: [(1, E, 10), (1, B, 20), (2, B, 30), (2, E, 40), (0, F, 50)],
        2: [(3, B, 10), (4, B, 20), (3, E, 30), (4, E, 40), (0, F, 41)],  # cross
    }
    bundle = load(buffer(tmp_path / "b.u64", "tirx", lanes), tmp_path)
    assert [(r["lane"], r["span"], r["t0"], r["t1"], r["complete"]) for r in spans(bundle)] == [
        (0, "event_1", 10, 40, True), (0, "event_1", 20, 30, True), (1, "event_1", 20, 50, False),
        (1, "event_2", 30, 40, True), (2, "event_3", 10, 30, True), (2, "event_4", 20, 40, True),
    ]  # fmt: skip
    assert [(e["lane"], e["event"], e["t"]) for e in bundle.table("events").to_pylist()] == [
        (0, "event_2", 50), (0, "finalize", 60), (1, "event_1 (end without begin)", 10), (1, "finalize", 50),
        (2, "finalize", 41),
    ]  # fmt: skip
    found = losses(bundle)
    assert (found["orphaned"], found["unclosed"]) == ("1", "1")


def test_capped_lanes_are_truncated(tmp_path: Path) -> None:
    lanes = {0: [*work(10, 2), (0, F, 500)], 1: work(10, 9)[:5]}
    bundle = load(buffer(tmp_path / "b.u64", "tirx", lanes), tmp_path)
    assert [lane["completeness"] for lane in bundle.table("lanes").to_pylist()] == [
        "complete", "truncated", "truncated", "truncated",
    ]  # fmt: skip
    assert bundle.table("captures").to_pylist()[0]["completeness"] == "truncated"
    assert (losses(bundle)["unclosed"], losses(bundle)["records_lost"]) == ("1", "-1")


def test_full_lanes_are_unknown(tmp_path: Path) -> None:
    path = buffer(tmp_path / "b.u64", "flashinfer-v2", {0: work(10, 4), 1: work(10, 2)}, slots=1 + 4 * 8)
    bundle = load(path, tmp_path)
    assert [lane["completeness"] for lane in bundle.table("lanes").to_pylist()] == [
        "unknown", "complete", "complete", "complete",
    ]  # fmt: skip
    assert findings(bundle)["full"].startswith("1 lanes fill")


def test_reused_buffers(tmp_path: Path) -> None:
    stale = work(100, 5)
    lanes = {0: [*work(90_000, 2), (0, F, 90_900), *stale[5:]], 1: [*work(90_000, 1), (0, F, 90_500)]}
    bundle = load(buffer(tmp_path / "b.u64", "tirx", lanes), tmp_path)
    assert [(r["lane"], r["t0"]) for r in spans(bundle)] == [(0, 90_000), (0, 90_100), (1, 90_000)]
    assert findings(bundle)["reused"].startswith("5 records are left from an earlier launch of the buffer (5 after")
    again = load(
        buffer(tmp_path / "c.u64", "flashinfer-v2", {0: [*work(90_000, 2), *stale[4:]], 1: work(90_000, 1)}), tmp_path
    )
    assert [(r["lane"], r["t0"]) for r in spans(again)] == [(0, 90_000), (0, 90_100), (1, 90_000)]
    assert losses(again)["out_of_order"] == "6"
    assert "6 where time goes back" in losses(again)["ignored"]


def test_stride_and_holes(tmp_path: Path) -> None:
    path = buffer(tmp_path / "b.u64", "tirx", {n: [*work(10 + n), (0, F, 999)] for n in range(4)}, stride=7)
    assert sniffed(path) == []
    with pytest.raises(MalformedInput, match="no known dialect fits"):
        import_files([path], {}, format_name="tag64")
    bundle = import_files([path], {"stride": 7}, format_name="tag64")
    assert bundle.table("spans").num_rows == 12
    with pytest.raises(MalformedInput, match=r"slot 11 \(byte 88\) is written, but of none of 4 lanes at stride 6"):
        import_files([path], {"stride": 6, "dialect": "tirx"}, format_name="tag64")
    with pytest.raises(MalformedInput, match="a stride of 3 for 4 lanes"):
        import_files([path], {"stride": 3, "dialect": "tirx"}, format_name="tag64")


def test_blocks_beyond_12_bits_hide_their_sm(tmp_path: Path) -> None:
    """FlashInfer's block number runs into the SM's bits from block 4096 on: the lane holds, the SM is unknown."""
    words = np.zeros((1 + 2 * 4097, 2), "<u4")
    words[0] = 4097, 1
    for block, sm in ((0, 9), (4096, 9)):
        for n, kind in enumerate((B, E)):
            words[1 + block + n * 4097] = sm << 24 | block << 12 | kind, 100 + n
    path = tmp_path / "b.u64"
    words.tofile(path)
    bundle = import_files([path], {})
    lanes = {lane["cta"]: lane["sm"] for lane in bundle.table("lanes").to_pylist() if lane["records_kept"]}
    assert lanes == {0: 9, 4096: -1}
    assert [(row["cta"], row["t0"], row["t1"]) for row in spans(bundle)] == [(0, 100, 101), (4096, 100, 101)]


def test_several_launches_and_npy(tmp_path: Path) -> None:
    first = buffer(tmp_path / "a.u64", "flashinfer-v2", {0: work(10)})
    second = tmp_path / "b.npy"
    np.save(second, np.fromfile(buffer(tmp_path / "b.u64", "flashinfer-v2", {2: work(4_000_000_000)}), "<u8"))
    bundle = import_files([first, second], {}, format_name="tag64")
    assert [(r["launch"], r["cta"], r["clock"]) for r in spans(bundle)] == [(0, 0, 0)] * 3 + [(1, 1, 1)] * 3
    assert [row["source"] for row in bundle.table("launches").to_pylist()] == ["a.u64", "b.npy"]


def test_nothing_in_it(tmp_path: Path) -> None:
    path = buffer(tmp_path / "b.u64", "tirx", {})
    assert sniffed(path) == []
    bundle = import_files([path], {"dialect": "tirx"}, format_name="tag64")
    assert bundle.table("lanes").num_rows == 4
    assert "no record" in findings(bundle)["empty"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "empty, slot 0"),
        (bytes(80), "slot 0 says 0 blocks of 0 groups"),
        (b"\x01\0\0\0\x01\0\0\0" + bytes(11), "broken at byte 16: 3 bytes after the last 64-bit word"),
        (b"\x06\0\0\0\x02\0\0\0" + bytes(80), "slot 0 says 6 blocks of 2 groups, but only 10 slots follow"),
    ],
)
def test_broken(data: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "b.u64"
    path.write_bytes(data)
    with pytest.raises(MalformedInput, match=message):
        import_files([path], {}, format_name="tag64")
    with pytest.raises(UnknownFormat):
        import_files([path], {})


def test_npy_of_another_type(tmp_path: Path) -> None:
    path = tmp_path / "b.npy"
    np.save(path, np.zeros(9, np.float32))
    with pytest.raises(MalformedInput, match="float32, 64-bit"):
        import_files([path], {}, format_name="tag64")
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(MalformedInput, match=r"cannot be read as \.npy"):
        import_files([path], {}, format_name="tag64")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dialect": "mirage-a"}, "no such dialect"),
        ({"stride": "wide"}, "not a whole number"),
        ({"stride": 0}, "at least 1"),
        ({"events": "{1:"}, "names are needed"),
        ({"groups": 5}, "names are needed"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = buffer(tmp_path / "b.u64", "flashinfer-v2", {0: work(10)})
    with pytest.raises(BadRequest, match=message):
        import_files([path], options)
