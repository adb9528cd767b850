"""`wsformat digest`: from files or a bundle to one digest, Markdown or JSON; every refusal in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from wsformat.bundle import Bundle
from wsformat.cli.main import app

METRICS = {
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed": 56.3,
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": 72.5,
    "lts__throughput.avg.pct_of_peak_sustained_elapsed": 40.0,
    "gpu__time_duration.sum": 100000,
}


def run(*words: Any) -> Result:
    return CliRunner().invoke(app, ["digest", *[str(word) for word in words]])


@pytest.fixture
def values(tmp_path: Path) -> Path:
    path = tmp_path / "metrics.json"
    path.write_text(json.dumps(METRICS))
    return path


def test_markdown_has_every_section_and_one_edit(values: Path) -> None:
    result = run(values, "--version", "v7")
    assert result.exit_code == 0, result.output
    assert result.output.startswith("### Profile Evidence Digest: ")
    assert "@ v7" in result.output
    for section in ("Environment", "Headline", "Evidence", "Hypotheses (ranked)", "Next concrete edit"):
        assert result.output.count(f"**{section}**") == 1
    assert result.output.count("- Change: ") == 1


def test_json_and_files_say_the_same(values: Path, tmp_path: Path) -> None:
    printed = json.loads(run(values, "--json").stdout)
    assert printed["bottleneck_class"] == "Memory-bound"
    assert run(values, "-o", tmp_path / "d.json").exit_code == 0
    assert json.loads((tmp_path / "d.json").read_text()) == printed
    assert run(values, "-o", tmp_path / "d.md").exit_code == 0
    assert (tmp_path / "d.md").read_text() == run(values).stdout
    again = run(values, "-o", tmp_path / "d.md")
    assert again.exit_code == 2
    assert run(values, "-o", tmp_path / "d.md", "--force").exit_code == 0


def test_near_the_peak_nothing_more_is_proposed(tmp_path: Path) -> None:
    path = tmp_path / "fast.json"
    path.write_text(json.dumps({**METRICS, "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": 91.0}))
    text = run(path, "--correct").output
    assert "None: no further low-effort optimization" in text
    assert "- Change: " not in text


def test_kept_by_task_and_version_and_stored_as_findings(values: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "x.wsformat"
    assert CliRunner().invoke(app, ["import", str(values), "-o", str(bundle)]).exit_code == 0
    before = Bundle.open(bundle).rows("findings")
    result = run(bundle, "--store", "--run-dir", tmp_path / "runs", "--task", "gemm", "--version", "v1")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "runs" / "gemm" / "v1" / "digest.md").read_text().startswith("### Profile Evidence Digest")
    after = Bundle.open(bundle)
    assert after.rows("findings") > before
    assert CliRunner().invoke(app, ["validate", str(bundle)]).exit_code == 0


def test_collect_prints_two_commands(tmp_path: Path) -> None:
    found = json.loads(run("--collect", "--arch", "sm_90", "--kernel", "gemm", "--program", "./a.out", "--json").stdout)
    assert found["triage"].startswith("ncu ")
    assert "regex:gemm" in found["focused"]
    assert run("--collect", "--arch", "sm_1").exit_code == 2


def test_real_files_with_several_kernels(captures: Path) -> None:
    file = captures / "ncu" / "gemm_grid.raw.csv"
    several = run(file)
    assert several.exit_code == 2
    assert "gemm<0>" in several.stderr
    assert "Traceback" not in several.output
    assert json.loads(run(file, "--kernel", "gemm<0>", "--json").stdout)["bottleneck_class"] == "Memory-bound"


@pytest.mark.parametrize("words", [(), ("gone.csv",), (".", "gone.csv")])
def test_bad_input_is_one_line(words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*words)
    assert result.exit_code == 2
    assert len(result.stderr.strip().splitlines()) <= 2
    assert result.stderr.startswith("error: ")
    assert list(tmp_path.iterdir()) == []
