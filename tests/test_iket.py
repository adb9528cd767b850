"""IKET decoded traces: real captures one by one against plain JSON, and everything that can be wrong."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from trace_import_case import findings, load, losses, sniffed, spans

from wsformat.bundle import Bundle
from wsformat.converters.registry import import_files
from wsformat.errors import BadRequest, MalformedInput

T = 1_796_004_527_154_910_240
"""A real time: larger than 2**53, where floats step by 256."""

PIPELINE, ATTENTION, GEMM = (
    "iket_pipeline_1cta.trace.json",
    "iket_fmha_hopper.trace.json.gz",
    "iket_gemm_persistent_1cta.trace.json.gz",
)


@pytest.fixture(scope="module")
def peers(captures: Path) -> Path:
    return captures / "peers"


def plain(path: Path) -> Any:
    data = path.read_bytes()
    return json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)


@pytest.mark.parametrize(
    ("name", "launches", "ranges", "lanes"), [(PIPELINE, 3, 288, 9), (ATTENTION, 1, 2824, 48), (GEMM, 5, 1088, 60)]
)
def test_every_range_of_real_captures(
    peers: Path, tmp_path: Path, name: str, launches: int, ranges: int, lanes: int
) -> None:
    assert sniffed(peers / name) == ["iket"]
    bundle, data = load(peers / name, tmp_path), plain(peers / name)
    table = bundle.table("launches").to_pylist()
    assert len(table) == launches
    assert bundle.table("lanes").num_rows == lanes
    places = data["locationTable"]
    for number, launch in enumerate(data["launches"]):
        wanted = Counter()
        for entry in launch["ranges"]:
            place = places[entry["warpLocIdxs"][0]]
            key = (place["ctaId"][0], place["warpId"], place["smId"], data["stringTable"][entry["rangeNameIdx"]])
            wanted[(*key, entry["startTs"], entry["endTs"])] += 1
        assert wanted.total() == ranges
        mine = [row for row in bundle.table("spans").to_pylist() if row["launch"] == number]
        found = Counter((r["cta"], r["warp"], r["sm"], r["span"], r["t0"], r["t1"]) for r in mine)
        assert found == wanted
        assert table[number]["kernel"] == launch["kernelName"]
        assert table[number]["native_id"] == str(launch["gridId"])
        lives = Counter(
            (places[w["locIdx"]]["ctaId"][0], places[w["locIdx"]]["warpId"], w["startTs"], w["endTs"])
            for w in launch["warpLifetimes"]
        )
        rows = [lane for lane in bundle.table("lanes").to_pylist() if lane["launch"] == number]
        assert Counter((r["cta"], r["warp"], r["t_start"], r["t_end"]) for r in rows) == lives
    (clock,) = bundle.table("clocks").to_pylist()
    assert (clock["unit"], clock["step_ticks"], clock["assumption"]) == ("ns", 32, "")
    assert {row["state"] for row in bundle.table("span_types").to_pylist()} == {"scope"}
    assert "No mapping was given" in findings(bundle)["mapping"]


def test_attention_extent_and_idle_warps(peers: Path, tmp_path: Path) -> None:
    bundle = load(peers / ATTENTION, tmp_path)
    table = bundle.table("spans").to_pylist()
    assert max(row["t1"] for row in table) - min(row["t0"] for row in table) == 33_024
    silent = [lane for lane in bundle.table("lanes").to_pylist() if lane["records_kept"] == 0]
    assert silent
    assert all(lane["role"] == "" and lane["t_start"] > 0 for lane in silent)
    assert {lane["cta"] for lane in bundle.table("lanes").to_pylist()} == {0, 1, 2, 3}


def covered(intervals: list[tuple[int, int]]) -> int:
    total, reach = 0, -1
    for begin, end in sorted(intervals):
        total += max(0, end - max(begin, reach))
        reach = max(reach, end)
    return total


@pytest.mark.parametrize(
    ("name", "preset", "waits", "work"),
    [
        (ATTENTION, "iket-cute-attention",
         {"q_acquire", "kv_acquire", "q_wait", "k_wait", "v_wait", "order_wait", "mma_wait"}, {"softmax"}),
        (PIPELINE, "iket-cute-pipeline", {"producer_wait", "consumer_wait"}, {"load", "compute"}),
        (GEMM, "iket-cute-gemm", {"acquire", "full_wait", "mma_wait"}, set()),
    ],
)  # fmt: skip
def test_presets_give_states(
    peers: Path, tmp_path: Path, name: str, preset: str, waits: set[str], work: set[str]
) -> None:
    """Waits become stalls by configuration; the shares are the unions of the ranges, counted here another way."""
    bundle = load(peers / name, tmp_path, mapping=preset)
    states: dict[str, set[str]] = {}
    for row in bundle.table("span_types").to_pylist():
        states.setdefault(row["state"], set()).add(row["span"])
    known = {state: {name.split(".")[0] for name in names} for state, names in states.items()}
    assert known == {state: names for state, names in (("stall", waits), ("active", work)) if names}
    assert [source["options"]["mapping"] for source in bundle.manifest.sources] == [preset]
    data = plain(peers / name)
    by_lane: dict[tuple[int, int, int], list[tuple[str, int, int]]] = {}
    for number, launch in enumerate(data["launches"]):
        for entry in launch["ranges"]:
            place = data["locationTable"][entry["warpLocIdxs"][0]]
            span = (data["stringTable"][entry["rangeNameIdx"]], entry["startTs"], entry["endTs"])
            by_lane.setdefault((number, place["ctaId"][0], place["warpId"]), []).append(span)
    lanes = {
        lane["lane"]: (lane["launch"], lane["cta"], lane["warp"])
        for lane in bundle.table("lanes").to_pylist()
        if lane["records_kept"]
    }
    found = {
        lanes[row["lane"]]: row for row in bundle.sql("SELECT * FROM role_state").to_pylist() if row["lane"] in lanes
    }
    assert set(found) == set(by_lane)
    for key, ranges in by_lane.items():
        stall = covered([(b, e) for span, b, e in ranges if span in waits])
        either = covered([(b, e) for span, b, e in ranges if span in waits | work])
        assert found[key]["stall"] == stall
        assert found[key]["active"] == either - stall
        assert found[key]["extent"] == max(e for *_, e in ranges) - min(b for _, b, _ in ranges)
    roles = {lane["role"] for lane in bundle.table("lanes").to_pylist() if lane["records_kept"]}
    assert roles == {row["role"] for row in bundle.table("roles").to_pylist()}
    assert "unassigned" not in roles


def trace(**changes: Any) -> dict[str, Any]:
    place = {"gpcId": -1, "tpcId": -1, "smId": 3}
    launch = {
        "kernelName": "k", "contextId": 1, "gridId": 7, "gridDimX": 2, "gridDimY": 3, "gridDimZ": 1,
        "blockDimX": 64, "blockDimY": 1, "blockDimZ": 1,
        "ranges": [
            {"rangeNameIdx": 0, "rangeType": 1, "startTs": T, "endTs": T + 64, "warpLocIdxs": [0, 1],
             "internalEvents": [{"eventId": 1, "timestamp": T, "payloadType": 4, "payloadVal": 9007199254740993},
                                {"eventId": 5, "timestamp": T + 32, "payloadVal": 1.50},
                                {"eventId": 31, "timestamp": T + 64, "payloadVal": -1}]},
            {"rangeNameIdx": 1, "rangeType": 2, "startTs": T + 32, "endTs": T + 32, "warpLocIdxs": [1],
             "internalEvents": []},
        ],
        "markers": [
            {"locIdx": 0, "markerNameIdx": 2, "timestamp": T + 8, "payloadVal": 18446744073709551615},
            {"locIdx": 2, "markerNameIdx": 2, "timestamp": T + 9},
        ],
        "warpLifetimes": [{"locIdx": n, "startTs": T, "endTs": T + 96} for n in range(4)],
        **changes,
    }  # fmt: skip
    return {
        "graphLaunches": {},
        "launches": [launch],
        "locationTable": [
            {**place, "ctaId": [0, 0, 0], "warpId": 0}, {**place, "ctaId": [0, 0, 0], "warpId": 1},
            {**place, "ctaId": [1, 2, 0], "warpId": 0, "gpcId": 4}, {**place, "ctaId": [1, 2, 0], "warpId": 1},
        ],
        "stringTable": ["load", "wait", "mark"],
        "meta": {"version": 1},
    }  # fmt: skip


def save(folder: Path, data: Any, name: str = "x.trace.json") -> Path:
    path = folder / name
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    return path


def test_ranges_across_warps_payloads_markers_and_ctas(tmp_path: Path) -> None:
    bundle = load(save(tmp_path, trace()), tmp_path)
    lanes = bundle.table("lanes").to_pylist()
    assert [(lane["cta"], lane["warp"], lane["sm"], lane["records_kept"]) for lane in lanes] == [
        (0, 0, 3, 3), (0, 1, 3, 1), (5, 0, 3, 1), (5, 1, 3, 0),
    ]  # fmt: skip
    crossing, short = spans(bundle)
    assert (crossing["lane"], crossing["end_lane"], crossing["t0"], crossing["t1"]) == (0, 1, T, T + 64)
    assert (crossing["category"], short["category"]) == ("start_end", "push_pop")
    assert (short["lane"], short["end_lane"], short["t0"], short["t1"]) == (1, 1, T + 32, T + 32)
    assert "1 ranges end on another warp" in findings(bundle)["ranges"]
    values = {a["name"]: a["value"] for a in bundle.table("attributes").to_pylist() if a["table_name"] == "spans"}
    assert values == {"payload.begin": "9007199254740993", "payload.end": "-1"}
    assert [(e["event"], e["t"] - T, e["payload"]) for e in bundle.table("events").to_pylist()] == [
        ("mark", 8, "18446744073709551615"), ("load.between", 32, "1.5"), ("mark", 9, ""),
    ]  # fmt: skip
    (launch,) = bundle.table("launches").to_pylist()
    assert (launch["t_start"], launch["duration_ns"], launch["grid_y"], launch["block_x"]) == (T, 96, 3, 64)
    assert ("lanes", "2", "gpcId", "4") in {
        (a["table_name"], a["row_key"], a["name"], a["value"]) for a in bundle.table("attributes").to_pylist()
    }


def test_graph_launches_and_one_cluster(tmp_path: Path) -> None:
    data = trace(singleClusterActive=1, enabledCluster={"x": 0, "y": 0, "z": 0})
    data["graphLaunches"] = {"graph_exec_1:0": [data["launches"][0], {**data["launches"][0], "gridId": 8}]}
    bundle = load(save(tmp_path, data), tmp_path)
    assert [row["native_id"] for row in bundle.table("launches").to_pylist()] == [
        "7", "graph_exec_1:0/7", "graph_exec_1:0/8",
    ]  # fmt: skip
    assert bundle.table("spans").num_rows == 6
    assert bundle.table("captures").to_pylist()[0]["completeness"] == "sampled"


def test_ids_that_never_resolve_are_kept_and_counted(tmp_path: Path) -> None:
    ranges = [
        {"rangeNameIdx": 9, "startTs": T, "endTs": T + 32, "warpLocIdxs": [0, 0]},
        {"rangeNameIdx": 0, "startTs": T, "endTs": T + 32, "warpLocIdxs": [77, 77]},
        {"rangeNameIdx": 0, "startTs": T + 64, "endTs": T, "warpLocIdxs": [0, 0]},
        {"rangeNameIdx": 0, "startTs": T + 65, "warpLocIdxs": [0, 0]},
        {"rangeNameIdx": 0, "endTs": T, "warpLocIdxs": [0, 0]},
        {"rangeNameIdx": 0, "startTs": T + 1, "endTs": T + 2},
    ]
    lives = [{"locIdx": 0, "startTs": T + 64, "endTs": T + 65}, {"locIdx": 1, "startTs": 5, "endTs": 4}]
    data = trace(ranges=ranges, markers=[{"locIdx": 1, "markerNameIdx": 2}], warpLifetimes=lives)
    data["locationTable"][1]["ctaId"] = [2, 0, 0]
    bundle = load(save(tmp_path, data), tmp_path)
    assert Counter((r["lane_name"], r["span"], r["complete"]) for r in spans(bundle)) == Counter(
        {("CTA 0 warp 0", "range_9", True): 1, ("location 77", "load", True): 1, ("CTA 0 warp 0", "load", False): 2,
         ("location -1", "load", True): 1}
    )  # fmt: skip
    found = losses(bundle)
    assert (found["records_lost"], found["unclosed"], found["out_of_order"], found["orphaned"]) == ("2", "1", "1", "2")
    for why in (
        "1 x range whose name is not in the table", "2 x range whose location is not in the table",
        "1 x range that ends before it begins", "1 x range without an end", "1 x range without a begin",
        "1 x marker without a time", "1 x lifetime that does not hold its warp's records",
        "1 x lifetime that ends before it begins", "1 x location whose CTA lies outside the grid",
    ):  # fmt: skip
        assert why in found["ignored"]
    assert bundle.table("lanes").to_pylist()[0]["t_start"] == -1


def test_nothing_in_it(tmp_path: Path) -> None:
    bundle = load(save(tmp_path, trace(ranges=[], markers=[], warpLifetimes=[])), tmp_path)
    assert findings(bundle)["empty"]
    assert bundle.table("launches").num_rows == 1
    data = {**trace(), "launches": []}
    assert findings(load(save(tmp_path, data), tmp_path))["empty"]


def broken(**changes: Any) -> str:
    return json.dumps(trace(**changes))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (broken()[:-200], "broken at byte .*cut off"),
        (broken().replace('"startTs"', '"startTs" 5'), "broken at byte"),
        (
            broken().replace('"ranges": [', '"ranges": {', 1).replace('], "markers"', '}, "markers"', 1),
            "broken at byte",
        ),
        (broken().replace('["load", "wait", "mark"]', '["load" "wait"]'), "stringTable"),
        (broken().replace('"stringTable"', '"strings"'), "no stringTable"),
        (broken().replace('"locationTable"', '"places"'), "no locationTable"),
        (broken().replace('"launches"', '"runs"'), "no list launches"),
        (broken(ranges=5), "a list was expected"),
    ],
)
def test_broken(text: str, message: str, tmp_path: Path) -> None:
    path = save(tmp_path, text)
    with pytest.raises(MalformedInput, match=message):
        import_files([path], {}, format_name="iket")


def test_cut_gzip_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.trace.json.gz"
    path.write_bytes(gzip.compress(broken().encode())[:-30])
    with pytest.raises(MalformedInput, match="gzip stream is cut off"):
        import_files([path], {}, format_name="iket")


def test_one_file_at_a_time(tmp_path: Path) -> None:
    path = save(tmp_path, trace())
    with pytest.raises(BadRequest, match="one at a time"):
        import_files([path, path], {})


def test_mapping_files(tmp_path: Path) -> None:
    mapping = tmp_path / "m.toml"
    mapping.write_text(
        'wsformat_import_mapping = "0.1"\n'
        '[[roles]]\nrole = "first"\nkind = "load"\nlanes = {warps = [0], name = "CTA 0 *"}\n'
        '[[spans]]\nspan = ["wai?"]\nstate = "stall"\nwait_on = "barrier"\nbarrier = "full"\n'
        '[[spans]]\nspan = "load"\nrole = "first"\nstate = "active"\n'
        '[[dependencies]]\nproducer_role = "first"\nproducer_event = "load.end"\nconsumer_role = "unassigned"\n'
        'consumer_event = "wait.end"\nproducer_step = 1\nconsumer_step = 1\n'
        '[[dependencies]]\nproducer_role = "first"\nproducer_event = "gone.end"\nconsumer_role = "unassigned"\n'
        'consumer_event = "wait.end"\n'
    )
    bundle: Bundle = load(save(tmp_path, trace()), tmp_path, mapping=str(mapping))
    kinds = {(r["role"], r["span"]): (r["state"], r["barrier"]) for r in bundle.table("span_types").to_pylist()}
    assert kinds == {("first", "load"): ("active", ""), ("unassigned", "wait"): ("stall", "full")}
    assert [(r["role"], r["kind"]) for r in bundle.table("roles").to_pylist()] == [
        ("first", "load"),
        ("unassigned", "other"),
    ]
    assert bundle.table("dependencies").num_rows == 1
    texts = [row["text"] for row in bundle.table("findings").to_pylist()]
    assert "Edges left out, the trace has no such point: first gone.end." in texts
    assert [s["dialect"] for s in bundle.manifest.sources] == ["iket-json/1", "import_mapping"]
    mapping.write_text(
        'wsformat_import_mapping = "0.1"\n[[spans]]\nspan = "a"\nstate = "idle"\n[[spans]]\nstate="stall"\n'
    )
    with pytest.raises(MalformedInput, match=r"no valid mapping: \$\.spans\[0\]\.state.*\$\.spans\[1\]"):
        import_files([tmp_path / "x.trace.json"], {"mapping": mapping})
    mapping.write_text("= nothing")
    with pytest.raises(MalformedInput, match="no TOML"):
        import_files([tmp_path / "x.trace.json"], {"mapping": mapping})
