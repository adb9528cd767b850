"""Stamps of chosen iterations and CTAs: slots are numbered by what they stand for, and nothing is judged by guesswork.

The simulator is the judge: a window of its buffer gives the stamps, states and waits of its tables without the rest.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference_clocks
import reference_waits
import simulator_bundle
from simulator_kernels import Ring
from test_raw_simulated import EVENTS, STATES, WAITS, role_spec
from test_views import compare, whole

import reference
from simulator import Run, Ticks, simulate
from wsformat.bundle import Bundle
from wsformat.completeness import LoopEvents, judge
from wsformat.converters import registry
from wsformat.derive import run
from wsformat.errors import BadRequest, MalformedInput
from wsformat.iteration_window import WHOLE, IterationWindow, parse_window
from wsformat.rolespec import parse
from wsformat.tables import tables as standard
from wsformat.validate import validate

STAGES = 4
WINDOWS = [(0, 3), (0, 4), (8, 1), (5, 2)]


def table(bundle: Bundle, *queries: str) -> list[tuple[Any, ...]]:
    """Rows of queries that need no other view than these: to make all of them takes most of a second."""
    with bundle.duckdb(only=["wait", "role_state", "recorded_window", "iteration_summary"], threads=1) as connection:
        return sorted(tuple(row.values()) for sql in queries for row in run(connection, sql).to_pylist())


def kernel(iterations: int = 40, epilogue: Ticks | None = None) -> Ring:
    return Ring(
        iterations=iterations, stages=STAGES, latency=Ticks(700), work=(Ticks(300, 150), Ticks(250, 90)),
        epilogue=epilogue,
    )  # fmt: skip


def recorded(runs: list[Run], window: IterationWindow, count: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """What the device would write: the slots of the window, from the buffer of all iterations."""
    every, records = simulator_bundle.raw(runs)
    slots = np.zeros((*every.shape[:3], count), np.uint32)
    once = [n for n, name in enumerate(simulator_bundle.event_order(runs)) if name.startswith("epilogue")]
    for k, iteration in enumerate(window.iterations(np.arange(count)).tolist()):
        if iteration < every.shape[3]:
            slots[..., k] = every[..., iteration]
    slots[:, :, once] = 0
    slots[:, :, once, 0] = every[:, :, once, 0]
    return slots, records


def imported(
    folder: Path, runs: list[Run], window: IterationWindow, count: int, **options: Any
) -> tuple[Bundle, dict[str, Any]]:
    slots, records = recorded(runs, window, count)
    np.save(folder / "x.npy", slots)
    records.tofile(folder / "x.npy.meta")
    spec = role_spec(runs)
    told = {"spec": spec, "window": f"{window.first},{window.stride}", **options}
    return registry.import_files([folder / "x.npy"], told), spec


def truth(runs: list[Run], window: IterationWindow, count: int) -> Bundle:
    """The simulator's tables without the stamps that the window leaves out."""
    kept = set(window.iterations(np.arange(count)).tolist())
    missing = [
        simulator_bundle.key(run, s)
        for run in runs
        for s in run.stamps
        if s.iteration not in kept and not s.event.startswith("epilogue")
    ]
    return simulator_bundle.bundle(runs, missing=missing)


def agrees(bundle: Bundle) -> None:
    """The plain reference gives the same rows of the views that a window could mislead."""
    tables = whole({name: bundle.table(name).to_pylist() for name in standard() if bundle.rows(name)})
    lanes = {row["lane"]: row for row in tables["lanes"]}
    points = reference.point(tables)
    spans, _ = reference.pair(tables, points, lanes)
    segments = reference_clocks.clock_segment(reference_clocks.clock_map(tables))
    expected = {
        "recorded_window": [{"lane": n, **row} for n, row in reference.recorded_window(tables, points).items()],
        "wait": reference_waits.wait(tables, points, spans, lanes, segments)[0],
        "iteration": reference_waits.iteration(tables, points, lanes),
    }
    with bundle.duckdb(only=expected, threads=1) as connection:
        for name, rows in expected.items():
            got = run(connection, f"SELECT * EXCLUDE (capture_id) FROM {name}").to_pylist()
            compare(name, got, rows)


@pytest.mark.parametrize(("first", "stride"), WINDOWS)
def test_a_window_of_the_buffer_is_that_part_of_the_truth(first: int, stride: int, tmp_path: Path) -> None:
    window = IterationWindow(first, stride)
    runs = simulate(kernel(), 7, launches=1, ctas=2)
    count = -(-(40 - first) // stride)
    bundle, _ = imported(tmp_path, runs, window, count, trip_count=40)
    want = truth(runs, window, count)
    for sql in (EVENTS, STATES, WAITS):
        assert table(bundle, sql) == table(want, sql)
    lanes = [x for x in bundle.table("lanes").to_pylist() if x["role"]]
    assert {x["completeness"] for x in lanes} == {"sampled"}
    assert {x["records_lost"] for x in lanes} == {0}
    (capture,) = bundle.table("captures").to_pylist()
    assert capture["completeness"] == "sampled"
    (launch,) = bundle.table("launches").to_pylist()
    assert (launch["trip_count"], launch["slots"]) == (40, first + stride * count)
    known = {(a["row_key"], a["name"]): a["value"] for a in bundle.table("attributes").to_pylist()}
    assert known["0", "window.from"] == str(first)
    assert known["0", "window.stride"] == str(stride)
    if stride > 1 and first:
        bundle.write(tmp_path / "x.wsformat")
        assert [p for p in validate(tmp_path / "x.wsformat").problems if p.level != "I"] == []
    agrees(bundle)


@pytest.mark.parametrize(("first", "stride"), WINDOWS)
def test_an_edge_from_outside_of_the_window_is_unknown_never_free(first: int, stride: int, tmp_path: Path) -> None:
    runs = simulate(kernel(), 7, launches=1, ctas=1)
    count = -(-(40 - first) // stride)
    bundle, _ = imported(tmp_path, runs, IterationWindow(first, stride), count, trip_count=40)
    kept = set(range(first, 40, stride))
    columns = ("role", "barrier", "iteration", "verdict", "blocked_ticks", "unjudged_ticks", "ticks")
    seen = set()
    for row in table(bundle, f"SELECT {', '.join(columns)} FROM wait"):
        w = dict(zip(columns, row, strict=True))
        if w["barrier"] == "empty":
            needed = w["iteration"] - STAGES
            expect = "free" if needed < 0 else "judged" if needed in kept else "unknown"
        else:
            expect = "judged"  # `full` needs the producer's stamp of the same iteration
        got = w["verdict"] if w["verdict"] in ("free", "unknown") else "judged"
        assert got == expect, w
        assert (w["unjudged_ticks"] == w["ticks"]) == (expect == "unknown")
        seen.add(expect)
    assert "judged" in seen
    assert ("unknown" in seen) == (any(i - STAGES >= 0 and i - STAGES not in kept for i in kept))


def test_no_length_of_an_iteration_is_made_up(tmp_path: Path) -> None:
    runs = simulate(kernel(), 7, launches=1, ctas=1)
    dense, _ = imported(tmp_path, runs, IterationWindow(8, 1), 32, trip_count=40)
    full = table(truth(runs, WHOLE, 40), "SELECT role, iteration, ticks FROM iteration WHERE iteration >= 8")
    assert table(dense, "SELECT role, iteration, ticks FROM iteration") == full
    strided, _ = imported(tmp_path, runs, IterationWindow(0, 4), 10, trip_count=40)
    assert table(strided, "SELECT * FROM iteration") == []
    assert table(strided, "SELECT * FROM iteration_summary") == []


LOOP = [LoopEvents((0, 1), (2,), 0)]


def lane(
    window: IterationWindow, slots: int, filled: int, trip_count: int, epilogue: int | None = None, step: int = 100
) -> int:
    rel = np.zeros((1, 1, 3, slots), np.int64)
    written = np.zeros(rel.shape, bool)
    for event in (0, 1):
        rel[0, 0, event, :filled] = 1 + step * window.stride * np.arange(filled) + 10 * event
        written[0, 0, event, :filled] = True
    if epilogue is not None:
        rel[0, 0, 2, 0], written[0, 0, 2, 0] = 1 + step * window.stride * (filled - 1) + 10 + epilogue, True
    return int(judge(rel, written, LOOP, [], trip_count, window)[0, 0])


@pytest.mark.parametrize(
    ("given", "code"),
    [
        # from 8, stride 4, 8 slots: 8, 12, ... 36; 40 would be the next.
        ({"filled": 8, "trip_count": 40}, 1),
        ({"filled": 8, "trip_count": 41}, 3),
        ({"filled": 8, "trip_count": 37}, 1),
        ({"filled": 7, "trip_count": 36}, 0),
        ({"filled": 8, "trip_count": 36}, 2),  # ran more often than stated
        ({"filled": 8, "trip_count": -1}, 2),
        ({"filled": 8, "trip_count": -1, "epilogue": 10}, 2),  # up to three iterations without stamps may lie between
        ({"filled": 8, "trip_count": -1, "epilogue": 8 * 400 + 1}, 3),
        ({"filled": 0, "trip_count": 5}, 0),
    ],
)
def test_completeness_of_a_window(given: dict[str, Any], code: int) -> None:
    assert lane(IterationWindow(8, 4), 8, **given) == code


def test_a_loop_that_outruns_its_window_is_cut_where_the_window_ends(tmp_path: Path) -> None:
    runs = simulate(kernel(40, Ticks(900)), 7, launches=1, ctas=1)
    spec = role_spec(runs)
    for row in [*spec["events"], *spec["spans"]]:
        if row.get("event", row.get("span", "")).startswith("epilogue"):
            row["loop"] = "once"
    bundle, _ = imported(tmp_path, runs, IterationWindow(0, 2), 10, trip_count=40, spec=spec)
    lanes = {x["role"]: x for x in bundle.table("lanes").to_pylist() if x["role"]}
    assert {x["completeness"] for x in lanes.values()} == {"truncated"}
    stamped = "SELECT role, COUNT(DISTINCT event) FROM events WHERE iteration = 18 GROUP BY role"
    events = dict(table(bundle, stamped))
    for role, row in lanes.items():
        assert row["records_lost"] == 10 * events[role]  # iterations 20, 22, ... 38
    windows = table(
        bundle,
        """SELECT l.role, w.t_last < w.t_last_point, w.t_last = MAX(e.t) FROM recorded_window w
           JOIN lanes l USING (capture_id, lane) JOIN events e USING (capture_id, lane)
           WHERE e.iteration BETWEEN 1 AND 18 GROUP BY l.role, w.t_last, w.t_last_point""",
    )
    assert {row[0]: row[1:] for row in windows} == {role: (role.startswith("consumer"), True) for role in lanes}
    agrees(bundle)


def test_lags_are_proven_from_a_late_start_but_not_under_a_stride(tmp_path: Path) -> None:
    runs = simulate(kernel(64), 7, launches=1, ctas=1)
    spec = role_spec(runs)
    spec["dependencies"] = [
        {k: v for k, v in d.items() if k not in ("iteration_lag", "producer_step", "consumer_step")}
        for d in spec["dependencies"]
    ]
    late, _ = imported(tmp_path, runs, IterationWindow(8, 1), 56, spec=spec)
    proven = {(d["barrier"], d["iteration_lag"]) for d in late.table("dependencies").to_pylist() if d["producer_step"]}
    assert {("empty", STAGES)} <= proven <= {("empty", STAGES), ("full", 0)}
    strided, _ = imported(tmp_path, runs, IterationWindow(0, 2), 32, spec=spec)
    assert {d["producer_step"] for d in strided.table("dependencies").to_pylist()} == {0}
    assert any("with a stride" in f["text"] for f in strided.table("findings").to_pylist())
    assert {w[0] for w in table(strided, "SELECT DISTINCT verdict FROM wait")} == {"unknown"}


def test_where_a_window_may_be_said(tmp_path: Path) -> None:
    runs = simulate(kernel(), 7, launches=1, ctas=1)
    bundle, spec = imported(tmp_path, runs, IterationWindow(8, 4), 8, trip_count=40)
    want = table(bundle, EVENTS)
    slots, _ = recorded(runs, IterationWindow(8, 4), 8)
    np.save(tmp_path / "y.npy", slots)
    said = {**spec, "window": {"from": 8, "stride": 4}}
    assert (
        table(registry.import_files([tmp_path / "y.npy"], {"spec": said, "meta": tmp_path / "x.npy.meta"}), EVENTS)
        == want
    )
    meta = json.dumps({"spec": spec, "layout": list(slots.shape[1:]), "window": [8, 4]})
    np.savez(tmp_path / "z.npz", prof=slots, meta=np.array(meta))
    assert table(registry.import_files([tmp_path / "z.npz"], {"meta": tmp_path / "x.npy.meta"}), EVENTS) == want
    # What is asked for holds, then what the file says, then the role spec.
    other = registry.import_files([tmp_path / "z.npz"], {"meta": tmp_path / "x.npy.meta", "window": "0,1"})
    assert {e[4] for e in table(other, EVENTS)} == set(range(8))
    assert parse(parse(said, "x").to_json(), "x").window == IterationWindow(8, 4)


def test_no_window(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((3, 16, 64), np.int32))
    spec = role_spec(simulate(kernel(), 1))
    for bad in ("8", "1,0", "-1,2", "a,b", "1,2,3", "2147483000,100", "1.5,2"):
        with pytest.raises(BadRequest, match="window"):
            registry.import_files([tmp_path / "x.npy"], {"spec": spec, "window": bad})


def test_no_window_in_a_role_spec() -> None:
    spec = role_spec(simulate(kernel(), 1))
    for bad in ({"from": -1}, {"stride": 0}, {"first": 2}, [8, 4], {"from": 2**31 - 1, "stride": 2}):
        with pytest.raises(MalformedInput, match="window"):
            parse({**spec, "window": bad}, "x")
    with pytest.raises(BadRequest, match="has no first"):
        parse_window({"first": 3}, "x")


def test_chosen_ctas_keep_their_index_and_the_capture_is_sampled(tmp_path: Path) -> None:
    runs = simulate(kernel(8), 7, launches=1, ctas=3)
    slots, records = simulator_bundle.raw(runs)
    np.save(tmp_path / "x.npy", slots)
    records.tofile(tmp_path / "x.meta")
    spec = role_spec(runs)
    told = {"meta": tmp_path / "x.meta", "trip_count": 8, "clean": f"{tmp_path / 'x.meta'}:8"}
    bundle = registry.import_files([tmp_path / "x.npy"], {"spec": spec, "ctas": "5,16", **told})
    assert {x["cta"] for x in bundle.table("lanes").to_pylist()} == {5, 21, 37}
    assert {e["cta"] for e in bundle.table("events").to_pylist()} == {5, 21, 37}
    assert {x["completeness"] for x in bundle.table("lanes").to_pylist()} == {"sampled"}
    assert {k["grid_x"] for k in bundle.table("launches").to_pylist()} == {-1}
    bundle.write(tmp_path / "a.wsformat")
    assert [p for p in validate(tmp_path / "a.wsformat").problems if p.level != "I"] == []
    # The grid is known to be larger than what was recorded.
    first = registry.import_files(
        [tmp_path / "x.npy"], {"spec": {**spec, "launch": {"grid_x": 9, "grid_y": 2, "grid_z": 1}}, **told}
    )
    assert {x["completeness"] for x in first.table("lanes").to_pylist()} == {"sampled"}
    whole = registry.import_files([tmp_path / "x.npy"], {"spec": spec, **told})
    assert {x["completeness"] for x in whole.table("lanes").to_pylist()} == {"complete"}
    for bad in ("5", "-1,2", "0,0", "x,1"):
        with pytest.raises(BadRequest, match="CTAs"):
            registry.import_files([tmp_path / "x.npy"], {"spec": spec, "ctas": bad, **told})


def test_records_beside_the_input_are_taken_and_said(tmp_path: Path) -> None:
    runs = simulate(kernel(8), 7, launches=2, ctas=1)
    slots, records = simulator_bundle.raw(runs)
    files = [tmp_path / "a.npy", tmp_path / "b.npy"]
    for n, file in enumerate(files):
        np.save(file, slots[n : n + 1])
    spec = role_spec(runs)
    plain = registry.import_files(files, {"spec": spec})
    assert plain.rows("clock_anchors") == 0
    records[:1].tofile(tmp_path / "a.npy.meta")
    some = registry.import_files(files, {"spec": spec})
    assert some.rows("clock_anchors") == 0
    assert any("some inputs only" in f["text"] for f in some.table("findings").to_pylist())
    records[1:].tofile(tmp_path / "b.npy.meta")
    found = registry.import_files(files, {"spec": spec})
    named = registry.import_files(files, {"spec": spec, "meta": [tmp_path / "a.npy.meta", tmp_path / "b.npy.meta"]})
    assert found.table("clock_anchors").equals(named.table("clock_anchors"))
    assert any(
        "found beside the input and taken: a.npy.meta, b.npy.meta" in f["text"]
        for f in found.table("findings").to_pylist()
    )
    assert {s.get("detected_by") for s in found.manifest.sources if s["name"].endswith(".meta")} == {
        "lies beside its input"
    }
