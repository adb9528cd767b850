"""Grids that an H200 ran: launches of 132 CTAs, one an SM; 924 short CTAs, two at a time on an SM.

What the views and `wsformat grid` say is held against the plain readings (globaltimer and clock64 of each CTA, straight
from the file), and, row by row, against ``reference_grid``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference_clocks
import reference_grid
from test_views import compare, whole
from typer.testing import CliRunner

import reference
from wsformat import rolespec, samples
from wsformat.bundle import Bundle
from wsformat.cli.main import app
from wsformat.derive import run
from wsformat.rolespec import Layout
from wsformat.stamp_launch import StampLaunch
from wsformat.stamp_times import META
from wsformat.stamps import decode
from wsformat.tables import tables as described
from wsformat.validate import validate

Row = dict[str, Any]
Array = np.ndarray[Any, Any]
DATA = Path(__file__).parent / "data" / "h200_grids.npz"
STEP = 32
GRID_VIEWS = ("cta_ns", "cta_state", "grid_cta", "grid_sm", "grid_launch")
CLOCK_VIEWS = ("clock_map", "clock_segment", "cta_cluster")


def recorded(name: str) -> Array:
    """Records of CTAs, ``[launch, cta]``."""
    with np.load(DATA) as held:
        found = np.zeros(held[f"{name}.g0"].shape, META)
        for field in META.names or ():
            found[field] = held[f"{name}.{field}"]
    return found


def bundle(metas: Array) -> Bundle:
    """Clean launches with these records."""
    spec = rolespec.load(samples.path("gemm_roles.json"))
    facts = {"grid_x": metas.shape[1], "grid_y": 1, "grid_z": 1}
    launches = [StampLaunch(None, meta, kind="clean", trip_count=64, facts=facts) for meta in metas]
    capture = {"capture_id": "9" * 26, "device": "NVIDIA H200", "arch": "sm_90a", "sm_count": 132}
    return Bundle.from_tables(decode(launches, spec, Layout(1, 1, 1), capture)[0])


def rows(of: Bundle, *views: str) -> dict[str, list[Row]]:
    with of.duckdb(threads=1, only=views, materialise=("clock_segment", "cta_ns")) as connection:
        return {view: run(connection, f"SELECT * FROM {view}").to_pylist() for view in views}


def ticks(meta: Array, name: str) -> Array:
    found: Array = meta[name].astype(np.int64)
    return found


def check_launches(
    metas: Array, found: dict[str, list[Row]], spread: tuple[int, int], ghz: tuple[float, float]
) -> None:
    """Facts of each launch from its readings alone: a reading of the timer leaves one step open."""
    end_before = None
    launches = {row["launch"]: row for row in found["grid_launch"]}
    for number, meta in enumerate(metas):
        row, first, last = launches[number], ticks(meta, "g0"), ticks(meta, "g1")
        assert (row["ctas"], row["grid_ctas"], row["sms"]) == (len(meta), len(meta), 132)
        # Both ends of a length, each as placed and as read.
        within = 2 * (row["error_ns"] + STEP)
        assert abs(row["start_ns"] - first.min()) <= within / 2
        assert abs(row["end_ns"] - last.max()) <= within / 2
        assert abs(row["duration_ns"] - (last.max() - first.min())) <= within
        assert spread[0] <= row["start_spread_ns"] <= spread[1]
        assert ghz[0] <= row["hz_low"] / 1e9 <= row["hz_high"] / 1e9 <= ghz[1]
        ctas = {c["cta"]: c for c in found["cta_ns"] if c["launch"] == number}
        # The truly last one is among those that may be: its reading is at most a step from the latest one.
        assert ctas[int(last.argmax())]["may_be_last"]
        surely = [c for c in ctas.values() if last[c["cta"]] < last.max() - within - STEP]
        assert not any(c["may_be_last"] for c in surely)
        if end_before is not None:
            assert row["previous_launch"] == number - 1
            assert abs(row["gap_before_ns"] - (first.min() - end_before)) <= within + row["gap_error_ns"]
        end_before = last.max()


def check_rates(metas: Array, found: dict[str, list[Row]]) -> None:
    """Each SM's rate by its first and last readings of a launch; no reading is more than a step off."""
    for row in found["grid_sm"]:
        mine = metas[row["launch"]][metas[row["launch"]]["sm"] == row["sm"]]
        passed = int(ticks(mine, "g1").max() - ticks(mine, "g0").min())
        cycles = int(ticks(mine, "c1").max() - ticks(mine, "c0").min())
        low, high = 1e9 * cycles / (passed + 2 * STEP), 1e9 * cycles / (passed - 2 * STEP)
        assert low <= row["hz"] <= high


def check_reference(of: Bundle) -> None:
    """Views of clocks and grids, row by row."""
    tables = whole({name: of.table(name).to_pylist() for name in described()})
    lanes = {row["lane"]: row for row in tables["lanes"]}
    points = reference.point(tables)
    windows = reference.recorded_window(tables, points)
    maps = reference_clocks.clock_map(tables)
    segments = reference_clocks.clock_segment(maps)
    clusters = reference_grid.cta_cluster(tables, lanes)
    ctas = reference_grid.cta_ns(tables, lanes, windows, segments, clusters)
    spans, _ = reference.pair(tables, points, lanes)
    states = reference.role_state(reference.state_interval(spans, windows), windows, lanes)
    worked = reference_grid.cta_state(states, [], windows)
    expected = {
        "clock_map": [{k: v for k, v in m.items() if k[0] != "_"} for m in maps],
        "clock_segment": segments,
        "cta_cluster": clusters,
        "cta_ns": ctas,
        "cta_state": worked,
        "grid_cta": reference_grid.grid_cta(ctas, worked),
        "grid_sm": reference_grid.grid_sm(ctas, worked, segments),
        "grid_launch": reference_grid.grid_launch(tables, ctas, segments),
    }
    capture = {"capture_id": tables["captures"][0]["capture_id"]}
    for name, got in rows(of, *expected).items():
        compare(name, got, [capture | row for row in expected[name]])


@pytest.mark.parametrize("name", ["grid_4096_clean", "grid_4096_branchfree"])
def test_launches_of_one_cta_an_sm(name: str) -> None:
    metas = recorded(name)
    of = bundle(metas)
    found = rows(of, *GRID_VIEWS, "clock_map")
    check_launches(metas, found, (30, 230), (1.60, 1.80))
    check_rates(metas, found)
    assert {(r["waves"], r["residents"]) for r in found["grid_launch"]} == {(1, 1)}
    # Two anchors an SM: their ends are known to little more than the timer's step, what lies between is not.
    assert all(r["error_ns"] <= 2 * STEP for r in found["grid_launch"])
    assert {m["is_straight"] for m in found["clock_map"]} == {True}
    assert all(m["wander_ns"] > 0 for m in found["clock_map"])
    check_reference(bundle(metas[:1]))


def test_every_launch_that_was_kept(captures: Path) -> None:
    for path in sorted((captures / "stamps" / "lifetimes").glob("grid_*.metas")):
        metas = np.fromfile(path, META).reshape(10, 132)
        found = rows(bundle(metas), "grid_launch", "cta_ns", "grid_sm")
        check_launches(metas, found, (30, 300), (1.60, 1.80))
        check_rates(metas, found)


def test_waves_of_two_ctas_an_sm() -> None:
    """924 CTAs on 132 SMs, two at a time: seven a SM on average, six to eight where some were quicker."""
    metas = recorded("waves")
    of = bundle(metas)
    found = rows(of, *GRID_VIEWS)
    for number, meta in enumerate(metas):
        (row,) = [r for r in found["grid_launch"] if r["launch"] == number]
        assert (row["ctas"], row["sms"], row["residents"]) == (924, 132, 2)
        per_sm = np.bincount(meta["sm"], minlength=132)
        assert row["waves"] == -(-per_sm.max() // 2) == 4
        ctas = {c["cta"]: c for c in found["cta_ns"] if c["launch"] == row["launch"]}
        for sm in range(132):
            mine = sorted((int(meta["c0"][c]), int(c)) for c in np.flatnonzero(meta["sm"] == sm))
            assert [ctas[c]["sm_order"] for _, c in mine] == list(range(len(mine)))
            assert [ctas[c]["wave"] for _, c in mine] == [n // 2 for n in range(len(mine))]
    check_launches(metas, found, (100, 3000), (1.90, 2.0))
    check_rates(metas, found)
    check_reference(bundle(metas[:1, :]))


def test_command_line_says_what_the_readings_say(tmp_path: Path) -> None:
    metas = recorded("waves")[:1]
    path = tmp_path / "waves.wsformat"
    bundle(metas).write(path)
    shown = CliRunner().invoke(app, ["grid", str(path), "--json"])
    assert shown.exit_code == 0, shown.output
    ctas = json.loads(shown.output)
    assert len(ctas) == 924
    for row in ctas:
        meta = metas[0][row["cta"]]
        assert row["sm"] == meta["sm"]
        assert row["ticks"] == int(meta["c1"]) - int(meta["c0"])
        for name, reading in (("start_ns", meta["g0"]), ("end_ns", meta["g1"])):
            assert abs(row[name] - int(reading)) <= row["error_ns"] + STEP
    words = CliRunner().invoke(app, ["grid", str(path)]).output
    assert "924 CTAs on 132 SMs" in words
    assert "4 waves of 2 CTAs an SM" in words
    checked = validate(path)
    assert not [p for p in checked.problems if p.code[1] == "6" and p.code[0] in "EW"], checked.problems


@pytest.mark.parametrize("name", ["gemm_persistent", "gemm_cluster"])
def test_samples_of_parts_of_a_grid(name: str, root: Path) -> None:
    """Every CTA's ends lie within their error of the anchors that its SM wrote at these very ticks."""
    of = Bundle.open(root / "conformance" / "samples" / f"{name}.wsformat")
    found = rows(of, "cta_ns", "grid_launch", "cta_cluster")
    shown = {(a["launch"], a["clock"], a["t"]): a for a in of.table("clock_anchors").to_pylist()}
    checked = 0
    for row in found["cta_ns"]:
        for tick, at in ((row["t_start"], row["start_ns"]), (row["t_end"], row["end_ns"])):
            anchor = shown.get((row["launch"], row["clock"], tick))
            if anchor is not None:
                checked += 1
                assert abs(at - anchor["reference_t"]) <= row["error_ns"] + anchor["error_ns"]
    assert checked == 2 * len(found["cta_ns"])
    for row in found["grid_launch"]:
        assert row["ctas"] < row["grid_ctas"], "a sample"
        assert row["waves"] == row["residents"] == 1
        assert 1.5e9 <= row["hz_low"] <= row["hz_high"] <= 1.98e9 * 1.01
    if name == "gemm_cluster":
        assert {(r["cta"], r["cluster"]) for r in found["cta_cluster"]} == {(n, n // 2) for n in range(12)}


@pytest.mark.parametrize(
    ("device", "arch", "found"),
    [("NVIDIA H200", "sm_90a", False), ("NVIDIA H100 PCIe", "sm_90a", True), ("a new one", "sm_90", False),
     ("a new one", "sm_100a", False), ("a new one", "sm_75", False)],
)  # fmt: skip
def test_a_rate_that_the_device_cannot_have(device: str, arch: str, found: bool) -> None:
    """These CTAs ran at 1.98 GHz, the highest clock of an H200; the one of the PCIe card is 1.755 GHz."""
    of = bundle(recorded("waves")[:1])
    of = of.with_tables({"captures": [of.table("captures").to_pylist()[0] | {"device": device, "arch": arch}]})
    assert ("W615" in validate(of).codes) is found
