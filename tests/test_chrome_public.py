"""Chrome traces by real writers: the facts that were found independently, event by event."""

from __future__ import annotations

import csv
import gzip
import json
import re
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trace_import_case import findings, load, losses, sniffed, spans

FILES = (
    "kineto_hta_triton_example.json.gz",
    "kineto_hta_cuda_event_sync.json.gz",
    "kineto_hta_simple_add_small.json.gz",
    "kineto_tracelens_sglang_decode.json.gz",
    "ikp_gemm_trace.json.gz",
    "jax0.10.2_cpu_perfetto_trace.json.gz",
    "warpscope_4x4.json",
)


@pytest.fixture(scope="module")
def folder(public: Path) -> Path:
    return public / "chrome_traces"


def fact(facts: str, pattern: str) -> list[int]:
    match = re.search(pattern, facts)
    assert match, pattern
    return [int(group) for group in match.groups()]


def events_of(path: Path) -> list[dict[str, Any]]:
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    return json.loads(text, parse_float=Decimal, strict=False)["traceEvents"]


@pytest.mark.parametrize("name", FILES)
def test_facts(folder: Path, name: str, tmp_path: Path) -> None:
    with (folder / "INDEX.tsv").open(encoding="utf-8") as file:
        facts = next(row for row in csv.DictReader(file, delimiter="\t") if row["file"] == name)[
            "facts_a_correct_importer_must_produce"
        ]
    assert sniffed(folder / name) == ["chrome"]
    bundle = load(folder / name, tmp_path, ts_unit="us")
    table = bundle.table("spans")
    count, lanes = fact(facts, r"^(\d+) X on (\d+) \(pid,tid\) lanes")
    assert table.num_rows == count
    t0, t1 = (table.column(c).to_numpy() for c in ("t0", "t1"))
    assert len(np.unique(table.column("lane").to_numpy())) == lanes
    assert [int(t0.min()), int(t1.max())] == fact(facts, r"first ts (\d+) ns, last end (\d+) ns")
    assert [int((t1 - t0).sum()), int((t1 == t0).sum())] == fact(facts, r"sum\(dur\)=(\d+) ns, zero-dur (\d+)")
    longest = re.search(r"longest X (\d+) ns '([^']+)'", facts)
    assert longest
    assert int((t1 - t0).max()) == int(longest[1])
    names = [table.column("span")[int(place)].as_py() for place in np.flatnonzero(t1 - t0 == (t1 - t0).max())]
    assert any(span.startswith(longest[2]) for span in names)
    tails, heads, matched = fact(facts, r"s=(\d+) f=(\d+) f with matching s=(\d+)")
    edges = bundle.table("edges").to_pylist()
    assert sum(e["from_lane"] >= 0 and e["to_lane"] >= 0 for e in edges) == matched
    assert sum(e["to_lane"] >= 0 for e in edges) == heads
    assert sum(e["from_lane"] >= 0 and e["to_lane"] < 0 for e in edges) == tails - matched
    (crossing,) = fact(facts, r"partial overlaps within a lane=(\d+)")
    assert findings(bundle).get("overlap", "0").split()[0] == str(crossing)
    absolute = re.search(r"absolute epoch of first X = (\d+) ns", facts)
    anchors = bundle.table("clock_anchors").to_pylist()
    assert bool(anchors) == bool(absolute)
    if absolute:
        assert anchors[0]["reference_t"] - anchors[0]["t"] + int(t0.min()) == int(absolute[1])


@pytest.mark.parametrize("name", FILES)
def test_every_span_one_by_one(folder: Path, name: str, tmp_path: Path) -> None:
    """The same spans as the standard library's JSON with exact decimals gives, one by one."""
    scale = 1 if name.startswith("ikp") else 1000
    wanted = Counter()
    for event in events_of(folder / name):
        if event.get("ph") == "X":
            ts, stop = Decimal(event["ts"]) * scale, (Decimal(event["ts"]) + Decimal(event["dur"])) * scale
            ids = [str(i) if isinstance(i, int) and i >= 0 else "other" for i in (event["pid"], event["tid"])]
            key = (*ids, event["name"], event.get("cat", ""))
            wanted[(*key, int(ts.to_integral_value()), int(stop.to_integral_value()))] += 1
    bundle = load(folder / name, tmp_path)
    lanes = bundle.table("lanes").to_pylist()
    found: Counter[Any] = Counter()
    for row in bundle.table("spans").to_pylist():
        lane = lanes[row["lane"]]
        process, thread = (str(lane[i]) if lane[i] >= 0 else "other" for i in ("process_id", "thread_id"))
        found[(process, thread, row["span"], row["category"], row["t0"], row["t1"])] += 1
    assert found == wanted


def test_nanoseconds_in_the_microsecond_field_are_found_out(folder: Path, tmp_path: Path) -> None:
    bundle = load(folder / "ikp_gemm_trace.json.gz", tmp_path)
    table = bundle.table("spans")
    t0, t1 = (table.column(c).to_numpy() for c in ("t0", "t1"))
    assert (int(t0.min()), int(t1.max()), int((t1 - t0).sum())) == (0, 257_056, 15_371_904)
    (clock,) = bundle.table("clocks").to_pylist()
    assert (clock["unit"], clock["step_ticks"]) == ("ns", 32)
    assert "multiples of 32" in clock["assumption"]
    assert losses(bundle)["assumption"] == clock["assumption"]


def test_jax_empty_event_and_sub_nanosecond(folder: Path, tmp_path: Path) -> None:
    bundle = load(folder / "jax0.10.2_cpu_perfetto_trace.json.gz", tmp_path)
    assert losses(bundle)["ignored"] == "1 x event without a phase"
    assert findings(bundle)["rounding"].startswith("36 events")


def test_thread_zero_stays_itself(folder: Path, tmp_path: Path) -> None:
    """Perfetto merges thread 0 of process 1 into thread 1 and drops 15 of 128 slices."""
    bundle = load(folder / "warpscope_4x4.json", tmp_path)
    assert Counter((row["lane"], row["span"]) for row in spans(bundle)) == Counter(
        {(lane, span): 4 for lane in range(16) for span in ("wait", "work")}
    )


def test_kineto_launches(folder: Path, tmp_path: Path) -> None:
    bundle = load(folder / "kineto_hta_triton_example.json.gz", tmp_path)
    (launch,) = bundle.table("launches").to_pylist()
    (event,) = [e for e in events_of(folder / "kineto_hta_triton_example.json.gz") if e.get("cat") == "kernel"]
    assert launch["kernel"] == event["name"]
    assert launch["native_id"] == str(event["args"]["correlation"])
    assert [launch[f"grid_{x}"] for x in "xyz"] == event["args"]["grid"]
    assert [launch[f"block_{x}"] for x in "xyz"] == event["args"]["block"]
    assert launch["duration_ns"] == int(event["dur"] * 1000)
    capture = bundle.table("captures").to_pylist()[0]
    assert (capture["device"], capture["sm_count"], capture["arch"]) == ("NVIDIA A100-PG509-200", 108, "sm_80")


def test_own_kineto_capture(captures: Path, tmp_path: Path) -> None:
    path = captures / "peers" / "kineto_mlp.json"
    assert sniffed(path) == ["chrome"]
    bundle = load(path, tmp_path)
    launches = bundle.table("launches").to_pylist()
    assert len(launches) == 40
    assert len({launch["native_id"] for launch in launches}) == 40
    lanes = bundle.table("lanes").to_pylist()
    assert [lane["thread_id"] for lane in lanes if lane["kind"] == "stream"] == [7]
    roles = {row["role"]: row["kind"] for row in bundle.table("roles").to_pylist()}
    assert roles == {"cpu thread": "host", "gpu stream": "other", "profiler": "other"}
    assert {(lane["role"], lane["kind"]) for lane in lanes if lane["records_kept"]} == {
        ("cpu thread", "host_thread"), ("gpu stream", "stream"), ("profiler", "other"),
    }  # fmt: skip
    process = {a["row_key"]: a["value"] for a in bundle.table("attributes").to_pylist() if a["name"] == "process_name"}
    assert [process[str(lane["lane"])] for lane in lanes if lane["role"] == "gpu stream"] == ["GPU 0"]
    by_id = {row["span_id"]: row for row in bundle.table("spans").to_pylist()}
    kernels = {(row["span"], row["t0"], row["t1"] - row["t0"]) for row in by_id.values() if row["category"] == "kernel"}
    assert {(r["kernel"], r["t_start"], r["duration_ns"]) for r in launches} == kernels
    joined = [
        e for e in bundle.table("edges").to_pylist() if e["kind"] == "ac2g" and min(e["from_lane"], e["to_lane"]) >= 0
    ]
    assert len(joined) == 40
    for edge in joined:
        assert by_id[edge["from_span_id"]]["category"] in ("cuda_runtime", "cuda_driver")
        assert by_id[edge["to_span_id"]]["category"] == "kernel"
        assert by_id[edge["to_span_id"]]["t0"] == edge["to_t"]
    capture = bundle.table("captures").to_pylist()[0]
    assert (capture["device"], capture["source_format"]) == ("NVIDIA H200", "chrome-kineto")
    (anchor,) = bundle.table("clock_anchors").to_pylist()
    assert anchor["reference_t"] - anchor["t"] == 1_790_857_026_000_000_000


def test_proton_capture(captures: Path, tmp_path: Path) -> None:
    path = captures / "peers" / "proton_add.chrome_trace"
    assert sniffed(path) == ["chrome"]
    bundle = load(path, tmp_path)
    lanes = bundle.table("lanes").to_pylist()
    assert [(lane["cta"], lane["warp"]) for lane in lanes] == [(cta, warp) for cta in range(8) for warp in range(4)]
    assert {lane["cta"]: lane["sm"] for lane in lanes} == {
        0: 128,
        1: 129,
        2: 130,
        3: 131,
        4: 124,
        5: 125,
        6: 126,
        7: 127,
    }
    assert Counter(row["span"] for row in spans(bundle)) == Counter(
        {"kernel": 32, **dict.fromkeys(("load_ops", "load_x", "load_y", "compute", "store"), 128)}
    )
    first = [row for row in spans(bundle) if (row["cta"], row["warp"]) == (4, 0)][:3]
    assert [(row["span"], row["t0"], row["t1"]) for row in first] == [
        ("kernel", 0, 1730), ("load_ops", 131, 277), ("load_x", 149, 192),
    ]  # fmt: skip
    clocks = bundle.table("clocks").to_pylist()
    assert {(clock["scope"], clock["unit"], clock["step_ticks"]) for clock in clocks} == {("sm", "cycle", 1)}
    assert all("1 GHz" in clock["assumption"] for clock in clocks)
    assert not bundle.table("clock_anchors").num_rows
    assert "cannot be compared" in findings(bundle)["clock"]
    (launch,) = bundle.table("launches").to_pylist()
    assert (launch["kernel"], launch["tool"]) == ("add", "proton")
    facts = [a for a in bundle.table("attributes").to_pylist() if a["name"] == "Finalization Time (ns)"]
    assert Counter(a["value"] for a in facts) == {"192": 7, "224": 1}


def test_warpscope_export_capture(captures: Path, tmp_path: Path) -> None:
    bundle = load(captures / "peers" / "warpscope_r0.json", tmp_path)
    assert Counter((row["lane_name"], row["span"]) for row in spans(bundle)).total() == 360
    assert bundle.table("lanes").num_rows == 12
