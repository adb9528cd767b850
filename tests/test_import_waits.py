"""Waits of imported traces: each one's verdict against plain Python that knows what the kernels do.

Nothing here reads the mapping's edges or the SQL: which load fills which stage, and who gives it back, is written
again.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from trace_import_case import findings, load, spans

from wsformat.bundle import Bundle
from wsformat.converters.registry import import_files
from wsformat.errors import BadRequest

Key = tuple[int, int, int, str]
Ranges = dict[Key, list[tuple[int, int]]]
"""Begin and end of each range by (launch, CTA, warp, name), in the order of time."""


@pytest.fixture(scope="module")
def peers(captures: Path) -> Path:
    return captures / "peers"


def plain(path: Path) -> Ranges:
    """Ranges of a decoded trace, by the standard library."""
    raw = path.read_bytes()
    data = json.loads(gzip.decompress(raw) if path.suffix == ".gz" else raw)
    found: Ranges = defaultdict(list)
    for number, launch in enumerate(data["launches"]):
        for entry in sorted(launch["ranges"], key=lambda r: r["startTs"]):
            place = data["locationTable"][entry["warpLocIdxs"][0]]
            name = data["stringTable"][entry["rangeNameIdx"]]
            found[number, place["ctaId"][0], place["warpId"], name].append((entry["startTs"], entry["endTs"]))
    return found


def verdict(begin: int, signal: int | None, release: int) -> str:
    """What held a wait up; signal None where the ring is not yet full."""
    if signal is None:
        return "free"
    if signal > begin:
        return "producer_late"
    return "in_flight" if signal + release > begin else "not_blocked"


def judged(bundle: Bundle) -> dict[tuple[int, int, int, str, int], dict[str, Any]]:
    """The view wait by (launch, CTA, warp, span, iteration)."""
    query = "SELECT launch, cta, warp, span, iteration, t0, t1, verdict, signal_t, unjudged_ticks FROM wait"
    return {(r["launch"], r["cta"], r["warp"], r["span"], r["iteration"]): r for r in bundle.sql(query).to_pylist()}


def hold(bundle: Bundle, expected: dict[tuple[int, int, int, str, int], tuple[int, int | None, int]]) -> Counter[str]:
    """Every expected wait (begin, signal, release) is judged so; gives the verdicts."""
    found = judged(bundle)
    for key, (begin, signal, release) in expected.items():
        row = found[key]
        assert (row["t0"], row["verdict"]) == (begin, verdict(begin, signal, release)), key
        if signal is not None:
            assert row["signal_t"] == signal, key
        assert row["unjudged_ticks"] == 0
    return Counter(found[key]["verdict"] for key in expected)


def test_pipeline(peers: Path, tmp_path: Path) -> None:
    """A ring of three stages: full when the load of the iteration ended, empty when both consumers have computed."""
    name = "iket_pipeline_1cta.trace.json"
    ranges = plain(peers / name)
    expected = {}
    woken = min(
        end - loaded
        for launch in range(3)
        for warp in (1, 2)
        for (_, end), (_, loaded) in zip(
            ranges[launch, 0, warp, "consumer_wait"], ranges[launch, 0, 0, "load"], strict=True
        )
    )
    assert woken == 32, "one step of the clock"
    for launch in range(3):
        loads, done = ranges[launch, 0, 0, "load"], [ranges[launch, 0, warp, "compute"] for warp in (1, 2)]
        for n, (begin, _) in enumerate(ranges[launch, 0, 0, "producer_wait"]):
            signal = max(part[n - 3][1] for part in done) if n >= 3 else None
            expected[launch, 0, 0, "producer_wait", n] = begin, signal, 0
        for warp in (1, 2):
            for n, (begin, _) in enumerate(ranges[launch, 0, warp, "consumer_wait"]):
                expected[launch, 0, warp, "consumer_wait", n] = begin, loads[n][1], woken
    bundle = load(peers / name, tmp_path, mapping="iket-cute-pipeline")
    assert hold(bundle, expected) == {"producer_late": 288, "not_blocked": 135, "free": 9}
    assert len(judged(bundle)) == len(expected)


def test_gemm(peers: Path, tmp_path: Path) -> None:
    """Four stages: a load goes out when its stage is acquired; all eight warps give it back after their wgmma."""
    name = "iket_gemm_persistent_1cta.trace.json.gz"
    ranges = plain(peers / name)
    expected, slack, late = {}, [], []
    for launch in range(5):
        acquired = ranges[launch, 0, 0, "acquire"]
        done = [ranges[launch, 0, warp, "mma_wait"] for warp in range(4, 12)]
        for n, (begin, end) in enumerate(acquired):
            signal = max(part[n - 4][1] for part in done) if n >= 4 else None
            expected[launch, 0, 0, "acquire", n] = begin, signal, 32
            late += [end - signal] if signal is not None and signal > begin else []
        for warp in range(4, 12):
            for n, (begin, end) in enumerate(ranges[launch, 0, warp, "full_wait"]):
                expected[launch, 0, warp, "full_wait", n] = begin, acquired[n][1], 416
                slack.append(end - acquired[n][1])
    assert (min(slack), min(late)) == (416, 32), "the latency that the preset declares, and one step of the clock"
    bundle = load(peers / name, tmp_path, mapping="iket-cute-gemm")
    assert hold(bundle, expected) == {"producer_late": 300, "free": 20, "in_flight": 40, "not_blocked": 2520}
    rest = [row for key, row in judged(bundle).items() if key not in expected]
    assert {row["verdict"] for row in rest} == {"unknown"}, "nothing says when a wgmma was done"
    assert len(rest) == 5 * 8 * 64


def test_attention(peers: Path, tmp_path: Path) -> None:
    """Five stages shared by K and V, two Q tiles, and a wait for wgmma that is named by what comes before it."""
    name = "iket_fmha_hopper.trace.json.gz"
    ranges = plain(peers / name)
    expected, slack, asked = {}, [], [[], []]
    for cta in range(4):
        stages, q = ranges[0, cta, 1, "kv_acquire"], ranges[0, cta, 1, "q_acquire"]
        # The order on a warp: QK, PV, QK, PV .. and one more at the end.
        products = [ranges[0, cta, warp, "mma_wait"][1:32:2] for warp in range(4, 12)]
        for n, (begin, _) in enumerate(stages):
            signal = max(part[(n - 5) // 2][1] for part in products) if n >= 5 else None
            expected[0, cta, 1, "kv_acquire", n] = begin, signal, 64
        for warp in range(4, 12):
            group = (warp - 4) // 4
            ((begin, end),) = ranges[0, cta, warp, "q_wait"]
            asked[group].append(end - q[group][1])
            expected[0, cta, warp, "q_wait", 0] = begin, q[group][1], 448
            for span, shift in (("k_wait", 0), ("v_wait", 1)):
                for n, (begin, end) in enumerate(ranges[0, cta, warp, span]):
                    expected[0, cta, warp, span, n] = begin, stages[2 * n + shift][1], 384
                    slack.append(end - stages[2 * n + shift][1])
    assert (min(slack), min(asked[0]), min(asked[1])) == (384, 448, 448)
    bundle = load(peers / name, tmp_path, mapping="iket-cute-attention")
    assert hold(bundle, expected) == {"free": 20, "producer_late": 56 + 32, "not_blocked": 52 + 1008, "in_flight": 16}
    rest = [(key[3], row["verdict"]) for key, row in judged(bundle).items() if key not in expected]
    assert Counter(rest) == {
        ("mma_wait.qk", "unknown"): 512, ("mma_wait.pv", "unknown"): 512, ("mma_wait.drain", "unknown"): 32,
        ("order_wait", "unknown"): 64, ("q_acquire", "unknown"): 8,
    }  # fmt: skip
    assert "mapping" not in findings(bundle), "every rule fits and every span is named"


def test_attention_waits_are_named_by_the_range_before(peers: Path, tmp_path: Path) -> None:
    name = "iket_fmha_hopper.trace.json.gz"
    bundle = load(peers / name, tmp_path, mapping="iket-cute-attention")
    kinds = {0: "mma_wait.qk", 1: "mma_wait.pv"}
    own: dict[tuple[int, int, str], list[int]] = defaultdict(list)
    for row in spans(bundle):
        own[row["cta"], row["warp"], row["span"]].append(row["t0"])
    for (_, cta, warp, span), entries in plain(peers / name).items():
        if span != "mma_wait":
            continue
        assert len(entries) == 33
        for turn, kind in kinds.items():
            assert own[cta, warp, kind] == [begin for begin, _ in entries[turn:32:2]]
        assert own[cta, warp, "mma_wait.drain"] == [entries[32][0]]
    iterations = bundle.sql("SELECT MAX(iteration) n FROM spans WHERE span = 'mma_wait.pv'").to_pylist()
    assert iterations == [{"n": 15}]


def test_tag_family(peers: Path, tmp_path: Path) -> None:
    """The consumer of warpscope's capture goes on a step or two after its producer's work of the iteration."""
    bundle = load(peers / "warpscope_r0.u64", tmp_path, mapping="tag-producer-consumer", events="wait,work")
    found = judged(bundle)
    works = {
        (r["cta"], r["iteration"]): r["t1"] for r in spans(bundle) if r["span"] == "work" and r["role"] == "producer"
    }
    assert Counter(row["verdict"] for row in found.values()) == {"producer_late": 120}
    for (_, cta, _, _, n), row in found.items():
        assert row["signal_t"] == works[cta, n]
        assert 32 <= row["t1"] - row["signal_t"] <= 96


def mapping_file(folder: Path, **parts: Any) -> Path:
    path = folder / "own.json"
    path.write_text(json.dumps({"wsformat_import_mapping": "0.1", **parts}))
    return path


def test_a_mapping_that_fits_nothing_is_refused(peers: Path, tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match=r"mapping iket-cute-attention: none of its \d+ rules fits") as error:
        import_files([peers / "iket_pipeline_1cta.trace.json"], {"mapping": "iket-cute-attention"})
    assert "compute (288), consumer_wait (288), load (144), producer_wait (144)" in str(error.value.hint)


def test_what_a_mapping_leaves_open_is_said(peers: Path, tmp_path: Path) -> None:
    own = mapping_file(
        tmp_path,
        renames=[{"span": "load", "after": "gone", "name": "never"}],
        roles=[{"role": "producer", "lanes": {"spans": "load"}}, {"role": "nobody", "lanes": {"warps": [77]}}],
        spans=[{"span": "*_wait", "state": "stall"}, {"span": ["typo", "tpyo"], "state": "active"}],
    )
    bundle = load(peers / "iket_pipeline_1cta.trace.json", tmp_path, mapping=str(own))
    texts = [row["text"] for row in bundle.table("findings").to_pylist() if row["subject"] == "mapping"]
    assert texts == [
        "Rules that fit nothing in this trace: renames[0] (load), roles[1] (nobody), spans[1] (typo, tpyo).",
        "Spans that no rule names are scopes, drawn and counted in no state: compute (288), load (144).",
    ]


def test_the_first_rename_counts_and_lanes_do_not_mix(tmp_path: Path) -> None:
    events = [
        {"ph": "X", "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": 1}
        for ts, tid, name in [(0, 1, "a"), (1, 2, "b"), (2, 1, "w"), (3, 2, "w"), (5, 2, "w"), (9, 3, "w")]
    ]
    path = tmp_path / "t.json"
    path.write_text(json.dumps(events))
    own = mapping_file(
        tmp_path,
        renames=[
            {"span": "w", "after": "a", "name": "after a"},
            {"span": "w", "after": ["a", "b"], "name": "after b"},
            {"span": "w", "after": "w", "name": "again"},
        ],
        spans=[{"span": "after *", "state": "stall"}],
    )
    bundle = load(path, tmp_path, mapping=str(own))
    assert [(row["t0"], row["span"]) for row in sorted(spans(bundle), key=lambda r: r["t0"])] == [
        (0, "a"), (1000, "b"), (2000, "after a"), (3000, "after b"), (5000, "again"), (9000, "w"),
    ]  # fmt: skip
