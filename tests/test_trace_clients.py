"""Hard cases read by two versions of Perfetto's own importer: no errors, exact times, names and arrows as meant."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from trace_cases import bundle_of, nasty, several_captures, streams
from trace_clients import ENGINES, query, query_all
from trace_truth import Truth, samples

from wsformat.bundle import Bundle
from wsformat.converters import chrome, perfetto

pytestmark = [pytest.mark.client, pytest.mark.sources]

STATES = "('active', 'stall', 'async', 'scope', 'unknown')"
SLICES = f"SELECT name, category, ts, dur FROM slice WHERE category IN {STATES} ORDER BY name, category, ts, dur"
FLOWS = (
    "SELECT a.name AS tail, a.category AS tail_category, a.ts AS tail_ts, b.name AS head, b.category AS head_category, "
    "b.ts AS head_ts, b.ts - a.ts AS length "
    "FROM flow f JOIN slice a ON a.id = f.slice_out JOIN slice b ON b.id = f.slice_in"
)
CONTROL = {chr(code) for code in range(32)}
FACTS = "SELECT a.key, a.display_value AS text FROM slice s JOIN args a USING (arg_set_id) WHERE s.name = 'capture'"


@pytest.fixture(scope="module")
def sample() -> Bundle:
    return samples()["balanced_r0"]


@pytest.mark.parametrize("version", ENGINES)
def test_nasty_spans(version: str, tmp_path: Path) -> None:
    jobs, wanted = [], []
    for name, bundle in {**nasty(), "several": several_captures(), "streams": streams()}.items():
        truth = Truth(bundle)
        perfetto.write(bundle, tmp_path / f"{name}.pftrace", {})
        chrome.write(bundle, tmp_path / f"{name}.json", {})
        jobs += [(tmp_path / f"{name}.pftrace", [SLICES])]
        wanted += [truth.slices(shift=truth.base if truth.axis == "tick" else 0)]
        if name != "beyond 2^53":  # JSON: no reader holds 292 years in ns
            jobs += [(tmp_path / f"{name}.json", [SLICES])]
            rows = truth.slices(shift=truth.base)
            if version == "v52.0":
                # This version leaves the escapes of control characters in names as they stand in the file.
                rows = sorted(
                    (json.dumps(n, ensure_ascii=False)[1:-1] if CONTROL & set(n) else n, *r) for n, *r in rows
                )
            wanted += [rows]
    for (file, _), (rows,), expected in zip(jobs, query_all(jobs, version), wanted, strict=True):
        got = sorted((r["name"], r["category"], int(r["ts"]), int(r["dur"])) for r in rows)
        assert got == expected, file


@pytest.mark.parametrize("version", ENGINES)
def test_arrows_end_where_they_should(sample: Bundle, version: str, tmp_path: Path) -> None:
    """An arrow ends in the wait itself, or at its end where the signal came after the wait began."""
    perfetto.write(sample, tmp_path / "x.pftrace.gz", {})
    flows, tracks, facts = query(
        tmp_path / "x.pftrace.gz", FLOWS, "SELECT name FROM track ORDER BY id", FACTS, version=version
    )
    truth = Truth(sample)
    wanted = []
    for s in sample.sql("SELECT * FROM signal").to_pylist():
        tail, begin, end = (
            truth.at(s["capture_id"], s[lane], s[t])
            for lane, t in (("producer_lane", "signal_t"), ("consumer_lane", "t0"), ("consumer_lane", "t1"))
        )
        tail = min(tail, end)
        late = tail > begin
        kind = "binding" if s["is_binding"] else "signal"
        head = (s["barrier"], "released", end) if late else (s["span"], "stall", begin)
        wanted.append((s["barrier"], kind, tail, *head))
    times = ("tail_ts", "head_ts")
    found = [tuple(int(v) if k in times else v for k, v in f.items() if k != "length") for f in flows]
    assert sorted(found) == sorted(wanted)
    assert {"producer", "consumer0", "consumer1", "CTA 0"} <= {t["name"] for t in tracks}
    said = {fact["key"].removeprefix("debug."): fact["text"] for fact in facts}
    assert said["completeness"] == "complete"
    assert said["perturbation"].startswith("unknown")


@pytest.mark.parametrize("version", ENGINES)
def test_recorded_arrows_and_values(version: str, tmp_path: Path) -> None:
    """Forwards into a span; backwards in time, drawn without length and counted; to a moment in no span."""
    values = "SELECT t.name, c.ts, c.value FROM counter c JOIN track t ON t.id = c.track_id ORDER BY c.ts"
    notes = (
        "SELECT s.name, s.ts, a.display_value AS payload FROM slice s JOIN args a USING (arg_set_id) "
        "WHERE s.category = 'marker' AND a.key IN ('debug.payload', 'args.payload') ORDER BY s.ts"
    )
    for writer, file in ((perfetto, "x.pftrace"), (chrome, "x.json")):
        report = writer.write(streams(), tmp_path / file, {})
        assert (report["flows"], report["clamped"]) == (3, 1)
        assert report["dropped"] == {"recorded arrow that lost an end": 1}
        flows, counters, marks = query(tmp_path / file, FLOWS, values, notes, version=version)
        base = 0 if writer is perfetto else 90
        assert sorted((f["tail_ts"] + base, f["head_ts"] + base) for f in flows) == [(92, 145), (110, 150), (120, 120)]
        assert [(c["ts"] + base, c["value"]) for c in counters] == [(110, 3), (125, 0)]
        assert all("queue depth" in c["name"] for c in counters)
        note = 'said "no" \U0001f680'
        assert [(m["name"], m["ts"] + base, m["payload"]) for m in marks] == [
            ("queue depth", 110, "3"), ("queue depth", 125, "0"), ("note", 126, note),
        ]  # fmt: skip
        if writer is perfetto:
            assert sorted(f["head"] for f in flows) == ["ac2g", "k", "k"]


@pytest.mark.parametrize("version", ENGINES)
@pytest.mark.parametrize("writer", [perfetto, chrome])
def test_arguments_say_what_was_recorded_and_judged(writer: Any, version: str, sample: Bundle, tmp_path: Path) -> None:
    """Raw ticks, iteration, clock and bounds of every slice; of every wait its verdict and for whom it waited."""
    file = tmp_path / ("x.pftrace" if writer is perfetto else "x.json")
    writer.write(sample, file, {})
    sql = (
        "SELECT s.name AS span, s.id, a.key, a.display_value AS value "
        f"FROM slice s JOIN args a USING (arg_set_id) WHERE s.category IN {STATES}"
    )
    (rows,) = query(file, sql, version=version)
    found: dict[int, dict[str, Any]] = {}
    for row in rows:
        found.setdefault(row["id"], {"span": row["span"]})[row["key"].split(".")[-1]] = row["value"]
    wanted = []
    judged = {(w["lane"], w["span"], w["iteration"], w["t0"]): w for w in sample.sql("SELECT * FROM wait").to_pylist()}
    for s in sample.sql("SELECT * FROM timeline_ns").to_pylist():
        row = {"span": s["span"], "iteration": s["iteration"], "begin_tick": s["t0"], "end_tick": s["t1"]}
        row |= {"clock": s["clock"], "error_ns": math.ceil(s["error_ns"])}
        row |= {"wander_ns": math.ceil(s["wander_ns"])} if s["wander_ns"] > 0 else {}
        if s["state"] == "stall":
            w = judged[s["lane"], s["span"], s["iteration"], s["t0"]]
            row |= {"verdict": w["verdict"], "blocked_ticks": w["blocked_ticks"]}
            if w["producer_role"]:
                row |= {"producer": f"{w['producer_role']}.{w['producer_event']}"}
                row |= {"producer_iteration": w["producer_iteration"]}
        wanted.append({key: str(value) for key, value in row.items()})
    assert {w["verdict"] for w in judged.values()} >= {"free", "not_blocked"}
    assert sorted(map(str, (dict(sorted(f.items())) for f in found.values()))) == sorted(
        str(dict(sorted(w.items()))) for w in wanted
    )


@pytest.mark.parametrize("version", ENGINES)
def test_threads_of_a_json_trace_are_named(sample: Bundle, version: str, tmp_path: Path) -> None:
    chrome.write(sample, tmp_path / "x.json", {})
    threads, processes = query(
        tmp_path / "x.json",
        "SELECT name FROM thread WHERE name IS NOT NULL ORDER BY tid",
        "SELECT name FROM process WHERE name IS NOT NULL",
        version=version,
    )
    assert [t["name"] for t in threads][-3:] == ["producer", "consumer0", "consumer1"]
    assert [p["name"] for p in processes] == ["gemm_hopper / launch 0 (stamped) / SM 124 / CTA 0"]


def test_without_anchors_ticks_are_kept_and_said(tmp_path: Path) -> None:
    report = perfetto.write(nasty()["cycles"], tmp_path / "x.pftrace", {})
    slices, facts = query(tmp_path / "x.pftrace", SLICES, FACTS)
    assert report["axis"] == "tick"
    assert sorted((int(r["ts"]), int(r["dur"])) for r in slices) == [(0, 20), (15, 15)]
    assert any("one tick is drawn as 1 ns" in fact["text"] for fact in facts)


def test_facts_are_those_of_their_own_capture(tmp_path: Path) -> None:
    perfetto.write(several_captures(), tmp_path / "x.pftrace", {})
    sql = (
        "SELECT t.name AS track, a.display_value AS label FROM slice s JOIN args a USING (arg_set_id) "
        "JOIN track t ON t.id = s.track_id WHERE s.name = 'capture' AND a.key = 'debug.label' ORDER BY 1"
    )
    (rows,) = query(tmp_path / "x.pftrace", sql)
    assert [tuple(row.values()) for row in rows] == [("kernel [first]", "first"), ("kernel [second]", "second")]


@pytest.mark.parametrize(("writer", "file"), [(perfetto, "x.pftrace"), (chrome, "x.json")])
def test_a_hundred_thousand_lanes(writer: Any, file: str, tmp_path: Path) -> None:
    count = 100_000
    bundle = bundle_of([(i, "a", 10 * i, 10 * i + 5 + i % 3) for i in range(count)], lanes=count, ctas=1)
    writer.write(bundle, tmp_path / file, {"arguments": "lean", "counters": "false"})
    lane = "thread_track" if writer is chrome else "track"
    name = "(SELECT name FROM thread WHERE utid = t.utid)" if writer is chrome else "t.name"
    for version in ENGINES:
        slices, lanes, *each = query(
            tmp_path / file,
            "SELECT COUNT(*) AS n, SUM(dur) AS total, MIN(ts) AS first, MAX(ts + dur) AS last FROM slice "
            "WHERE name = 'a'",
            f"SELECT COUNT(DISTINCT {name}) AS names, COUNT(DISTINCT s.track_id) AS n FROM slice s "
            f"JOIN {lane} t ON t.id = s.track_id WHERE s.name = 'a'",
            # every duration: by its begin it is known which one it is
            "SELECT COUNT(*) AS n FROM slice WHERE name = 'a' AND dur = 5 + (ts / 10) % 3 AND ts % 10 = 0",
            version=version,
        )
        total = sum(5 + i % 3 for i in range(count))
        last = max(10 * i + 5 + i % 3 for i in range(count))
        assert slices == [{"n": count, "total": total, "first": 0, "last": last}]
        assert lanes == [{"names": count, "n": count}]
        assert each == [[{"n": count}]]
