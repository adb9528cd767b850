"""`wsformat passes`: passes, their perturbation, and which pass draws what with what spread."""

from __future__ import annotations

import json
from pathlib import Path

import cli_case
import pytest
from test_pass_span import clean_and_lifetimes, two_passes
from typer.testing import CliRunner

from wsformat.bundle import Bundle
from wsformat.cli.main import app
from wsformat.kernels.decode import to_bundle
from wsformat.kernels.examples import gemm_hopper
from wsformat.kernels.recording import Recording


def run(*words: object) -> str:
    done = CliRunner().invoke(app, ["passes", *map(str, words)])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_passes_by_hand(tmp_path: Path) -> None:
    path = Bundle.from_tables(clean_and_lifetimes()).write(tmp_path / "x.wsformat").path
    found = json.loads(run(path, "--json"))
    assert [(p["pass"], p["stamp_kinds"], p["launches_with_stamps"]) for p in found["passes"]] == [
        (0, 4, 1),
        (1, 2, 1),
        (2, 2, 1),
    ]
    assert [p["perturbation"] for p in found["passes"]] == [pytest.approx(0.1), 0.0, 0.0]
    wait, work = found["spans"]
    # Waits of 10, 20, 10 in pass 0 and of 8, 8, 10 in pass 1, which draws them.
    assert (wait["span"], wait["pass"], wait["passes"], wait["spans"]) == ("wait", 1, 2, 3)
    assert (wait["mean_ticks"], wait["least_mean_ticks"], wait["most_mean_ticks"]) == (
        pytest.approx(26 / 3), pytest.approx(26 / 3), pytest.approx(40 / 3),
    )  # fmt: skip
    assert wait["mean_spread_ticks"] == pytest.approx((2 + 12 + 0) / 3)
    assert (wait["most_drift_ticks"], work["align_event"]) == (20, "begin")
    drawn = json.loads(run(path, "--json", "--spans"))["picture"]
    assert [(d["span"], d["launch"], d["x0"]) for d in drawn] == [
        ("wait", 1, 20), ("work", 2, 32), ("wait", 1, 120), ("work", 2, 142), ("wait", 1, 220), ("work", 2, 232),
    ]  # fmt: skip
    text = run(path)
    assert "+10.0 % by lifetime" in text
    assert "Every span keeps the ticks of its own launch" in text


def test_unknown_perturbation_is_said(tmp_path: Path) -> None:
    path = Bundle.from_tables(two_passes()).write(tmp_path / "x.wsformat").path
    assert run(path).count("unknown") >= 3


def test_builds_and_clocks_that_a_reader_must_know_of(tmp_path: Path) -> None:
    recording = Recording.load(Path(gemm_hopper.__file__).parent / "gemm_hopper.npz")
    recording.builds = {"clean": {"registers": 90}, "work": {"wgmma_serialised": True, "local_bytes": 32}}
    path = to_bundle(recording, ["work"]).write(tmp_path / "x.wsformat").path
    found = json.loads(run(path, "--json"))["warnings"]
    assert [w["subject"] for w in found] == ["build", "build"]
    text = run(path)
    assert "warning: Pass work: the stamps made the assembler serialise the wgmma instructions (C7510)" in text
    assert "warning: Pass work: spills 32 bytes a thread to local memory, the clean build 0." in text


def test_without_passes(tmp_path: Path) -> None:
    path = Bundle.from_tables(cli_case.tables()).write(tmp_path / "x.wsformat").path
    assert "No passes: no launch says" in run(path)


def test_a_real_recording(tmp_path: Path) -> None:
    recording = Recording.load(Path(gemm_hopper.__file__).parent / "gemm_hopper.npz")
    path = to_bundle(recording).write(tmp_path / "x.wsformat").path
    found = json.loads(run(path, "--json", "--role", "consumer0"))
    assert [p["name"] for p in found["passes"]] == ["all", "waits", "work"]
    assert [p["perturbation"] for p in found["passes"]] == pytest.approx([recording.perturbation(n) for n in range(3)])
    assert {s["role"] for s in found["spans"]} == {"consumer0"}
    assert {s["span"]: s["passes"] for s in found["spans"]} == {"wait": 2, "work": 2, "epilogue": 2}
