"""Every export read by Perfetto's own importer: no errors, every slice with its exact duration, every arrow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from trace_cases import nasty
from trace_clients import query

from wsformat.bundle import Bundle
from wsformat.converters import chrome, perfetto
from wsformat.converters.registry import import_files
from wsformat.samples import path as sample_path

pytestmark = pytest.mark.client

STATES = "('active', 'stall', 'async', 'scope', 'unknown')"
SLICES = f"SELECT name, category, ts, dur FROM slice WHERE category IN {STATES} ORDER BY name, category, ts, dur"
FLOWS = (
    "SELECT a.name AS tail, a.category AS tail_category, b.name AS head, b.category AS head_category, "
    "b.ts - a.ts AS length FROM flow f JOIN slice a ON a.id = f.slice_out JOIN slice b ON b.id = f.slice_in"
)


def expected(bundle: Bundle, model_base: int) -> list[tuple[str, str, int, int]]:
    rows = bundle.sql("SELECT span, state, ns0, ns1 FROM timeline_ns").to_pylist()
    return sorted((r["span"], r["state"], r["ns0"] - model_base, r["ns1"] - r["ns0"]) for r in rows)


@pytest.fixture(scope="module")
def sample() -> Bundle:
    meta = [str(sample_path("balanced_r0.meta"))]
    options: dict[str, Any] = {"spec": str(sample_path("gemm_roles.json")), "meta": meta, "trip_count": 64}
    return import_files([sample_path("balanced_r0.i32")], options)


@pytest.mark.parametrize("case", sorted(set(nasty()) - {"cycles", "deep"}))
def test_native_trace_of_nasty_spans(case: str, tmp_path: Path) -> None:
    bundle = nasty()[case]
    perfetto.write(bundle, tmp_path / "x.pftrace", {})
    (slices,) = query(tmp_path / "x.pftrace", SLICES)
    got = [(r["name"], r["category"], int(r["ts"]), int(r["dur"])) for r in slices]
    # A C string ends at a zero byte, so that is what a viewer shows of it; no case here has one.
    assert sorted(got) == expected(bundle, 0)


def test_native_trace_of_a_gemm(sample: Bundle, tmp_path: Path) -> None:
    report = perfetto.write(sample, tmp_path / "x.pftrace.gz", {})
    slices, flows, counters, tracks, facts = query(
        tmp_path / "x.pftrace.gz",
        SLICES,
        FLOWS,
        "SELECT COUNT(*) AS n, MAX(value) AS most FROM counter",
        "SELECT name FROM track ORDER BY id",
        "SELECT a.key, a.display_value AS text FROM slice s JOIN args a USING (arg_set_id) WHERE s.name = 'capture'",
    )
    assert sorted((r["name"], r["category"], int(r["ts"]), int(r["dur"])) for r in slices) == expected(sample, 0)
    wanted = sample.sql("SELECT barrier, is_binding, signal_t > t0 AS late FROM signal").to_pylist()
    assert len(flows) == report["flows"] == len(wanted) > 0
    assert all(flow["length"] >= 0 and flow["tail_category"] in ("signal", "binding") for flow in flows)
    assert sum(flow["tail_category"] == "binding" for flow in flows) == sum(w["is_binding"] for w in wanted)
    assert sum(flow["head_category"] == "released" for flow in flows) == sum(w["late"] for w in wanted)
    assert sum(flow["head_category"] == "stall" for flow in flows) == sum(not w["late"] for w in wanted)
    assert counters[0]["n"] == report["counter_values"]
    assert counters[0]["most"] == 3
    assert {"producer", "consumer0", "consumer1", "CTA 0"} <= {t["name"] for t in tracks}
    said = {fact["key"].removeprefix("debug."): fact["text"] for fact in facts}
    assert said["completeness"] == "complete"
    assert said["perturbation"].startswith("unknown")


def test_arguments_are_the_raw_ticks(sample: Bundle, tmp_path: Path) -> None:
    perfetto.write(sample, tmp_path / "x.pftrace", {})
    sql = (
        "SELECT s.name AS span, a.flat_key AS key, a.int_value AS value, s.id "
        f"FROM slice s JOIN args a USING (arg_set_id) WHERE s.category IN {STATES}"
    )
    (rows,) = query(tmp_path / "x.pftrace", sql)
    found: dict[int, dict[str, Any]] = {}
    for row in rows:
        found.setdefault(row["id"], {"span": row["span"]})[row["key"].removeprefix("debug.")] = int(row["value"])
    got = sorted((f["span"], f["iteration"], f["begin_tick"], f["end_tick"], f["clock"]) for f in found.values())
    spans = sample.sql("SELECT span, iteration, t0, t1, clock FROM span").to_pylist()
    assert got == sorted(tuple(span.values()) for span in spans)


@pytest.mark.parametrize("case", sorted(set(nasty()) - {"cycles", "deep", "beyond 2^53"}))
def test_chrome_json_of_nasty_spans(case: str, tmp_path: Path) -> None:
    bundle = nasty()[case]
    chrome.write(bundle, tmp_path / "x.json", {})
    base = min(r["t0"] for r in bundle.sql("SELECT t0 FROM span").to_pylist())
    (slices,) = query(tmp_path / "x.json", SLICES)
    assert sorted((r["name"], r["category"], int(r["ts"]), int(r["dur"])) for r in slices) == expected(bundle, base)


def test_chrome_json_of_a_gemm(sample: Bundle, tmp_path: Path) -> None:
    report = chrome.write(sample, tmp_path / "x.json", {})
    slices, flows, threads = query(
        tmp_path / "x.json", SLICES, FLOWS, "SELECT name FROM thread WHERE name IS NOT NULL ORDER BY tid"
    )
    base = min(int(r["ns0"]) for r in sample.sql("SELECT ns0 FROM timeline_ns").to_pylist())
    assert sorted((r["name"], r["category"], int(r["ts"]), int(r["dur"])) for r in slices) == expected(sample, base)
    assert len(flows) == report["flows"]
    assert all(flow["length"] >= 0 and flow["tail"] == flow["head"] for flow in flows)
    assert [t["name"] for t in threads][-3:] == ["producer", "consumer0", "consumer1"]


def test_without_anchors_ticks_are_kept_and_said(tmp_path: Path) -> None:
    bundle = nasty()["cycles"]
    report = perfetto.write(bundle, tmp_path / "x.pftrace", {})
    slices, facts = query(
        tmp_path / "x.pftrace",
        SLICES,
        "SELECT a.key, a.display_value AS text FROM slice s JOIN args a USING (arg_set_id) WHERE s.name = 'capture'",
    )
    assert report["axis"] == "tick"
    assert sorted((int(r["ts"]), int(r["dur"])) for r in slices) == [(0, 20), (15, 15)]
    assert any("one tick is drawn as 1 ns" in fact["text"] for fact in facts)


def test_600_deep_nesting_spills_instead_of_losing(tmp_path: Path) -> None:
    bundle = nasty()["deep"]
    perfetto.write(bundle, tmp_path / "x.pftrace", {})
    chrome.write(bundle, tmp_path / "x.json", {})
    for name in ("x.pftrace", "x.json"):
        (slices,) = query(tmp_path / name, SLICES)
        assert len(slices) == 600
