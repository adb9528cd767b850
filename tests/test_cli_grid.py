"""`wsformat grid`: CTAs on one axis, in words, as a table and as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simulator_clocks
from typer.testing import CliRunner

from wsformat.bundle import Bundle
from wsformat.cli.main import app

SAMPLE = Path(__file__).parents[1] / "conformance" / "samples" / "gemm_grid.wsformat"


def ran(*arguments: str) -> str:
    found = CliRunner().invoke(app, ["grid", *arguments])
    assert found.exit_code == 0, found.output
    return found.output


def written(bundle: Bundle, path: Path) -> Path:
    bundle.write(path)
    return path


@pytest.fixture(scope="module")
def waves(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, simulator_clocks.Recording]:
    """Four SMs, two CTAs at a time on each, three waves; CTA 20 of SM 3 ends 5 us after all others."""
    made = simulator_clocks.device(11, 4)
    sm = np.tile(np.arange(4), 6)
    wave = np.repeat(np.arange(3), 8)
    start = wave * 10_000.0 + made.rng.uniform(0, 200, 24)
    end = start + 9_000 + made.rng.uniform(0, 500, 24)
    end[23] += 5_000
    recording = simulator_clocks.record(made, sm, start, end)
    return written(recording.bundle, tmp_path_factory.mktemp("grid") / "waves.wsformat"), recording


def test_json_has_one_object_a_cta_whose_truth_is_within_its_error(
    waves: tuple[Path, simulator_clocks.Recording],
) -> None:
    path, truth = waves
    found: list[dict[str, Any]] = json.loads(ran(str(path), "--json"))
    assert len(found) == 24
    assert {"launch", "cta", "sm", "start_ns", "end_ns", "error_ns", "stall_share"} <= set(found[0])
    for row in found:
        assert abs(row["start_ns"] - simulator_clocks.EPOCH - truth.start[row["cta"]]) <= row["error_ns"] + 3
        assert abs(row["end_ns"] - simulator_clocks.EPOCH - truth.end[row["cta"]]) <= row["error_ns"]
        assert row["wave"] == row["cta"] // 8
        assert row["residents"] in (1, 2)
    assert [row["cta"] for row in found if row["may_be_last"]] == [23]
    assert {row["stall_share"] for row in found} == {None}


def test_words_say_waves_tail_and_who_was_last(waves: tuple[Path, simulator_clocks.Recording]) -> None:
    text = ran(str(waves[0]))
    assert "24 CTAs on 4 SMs" in text
    assert "3 waves of 2 CTAs an SM" in text
    assert "Last to end: CTA 23 on SM 3." in text
    assert "more with --all" in text


def test_sample_of_a_real_grid_leaves_open_who_was_last() -> None:
    text = ran(str(SAMPLE))
    assert "4 CTAs on 4 SMs" in text
    assert "others end within clock error of it" in text
    assert "anchors at their ends only" in text


def test_a_critical_path_says_that_it_stays_within_its_cta() -> None:
    cluster = SAMPLE.with_name("gemm_cluster.wsformat")
    said = "The path stays within the CTA"
    for path, launch, there in ((cluster, "15", True), (SAMPLE, "0", False)):
        found = CliRunner().invoke(app, ["critical-path", str(path), "--launch", launch])
        assert found.exit_code == 0, found.output
        assert (said in found.output) is there


def test_a_part_of_a_grid_says_of_how_many(waves: tuple[Path, simulator_clocks.Recording], tmp_path: Path) -> None:
    bundle = waves[1].bundle
    launches = [{**row, "grid_x": 132} for row in bundle.table("launches").to_pylist()]
    part = written(bundle.with_tables({"launches": launches}), tmp_path / "part.wsformat")
    assert "24 of 132 CTAs" in ran(str(part))


def test_without_anchors_nothing_is_placed_and_said_so(
    waves: tuple[Path, simulator_clocks.Recording], tmp_path: Path
) -> None:
    bare = written(waves[1].bundle.with_tables({"clock_anchors": []}), tmp_path / "bare.wsformat")
    assert "24 CTAs without place on the axis: 24 on clocks without anchors" in ran(str(bare))
    assert {row["start_ns"] for row in json.loads(ran(str(bare), "--json"))} == {None}
