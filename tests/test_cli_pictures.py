"""`wsformat view --kind`: every picture from the command line, in one line what it cannot draw."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from wsformat.cli import picture
from wsformat.cli.main import app
from wsformat.viewers import figures

pytest.importorskip("vl_convert")
pytest.importorskip("altair")

GRID = Path(__file__).parent.parent / "conformance" / "samples" / "gemm_grid.wsformat"


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(app, ["view", str(GRID), *map(str, arguments)])


def test_the_command_names_every_kind() -> None:
    assert set(picture.KINDS) == set(figures.KINDS)


def test_a_page_and_a_picture_of_a_kind(tmp_path: Path) -> None:
    page, paper = tmp_path / "w.html", tmp_path / "w.svg"
    done = run("--kind", "waits", "-o", page, "-o", paper, "--cta", "1", "--role", "producer", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.output)
    assert found["files"] == [str(page), str(paper)]
    assert "CTA 1" in found["title"][1]
    assert "roles producer" in found["title"][1]
    assert "perturbation unknown" in found["title"][2]
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert paper.read_text(encoding="utf-8").startswith("<svg")


def test_the_timeline_page_needs_no_drawing_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from wsformat.errors import MissingDependency
    from wsformat.viewers import render

    def missing(name: str) -> Any:
        raise MissingDependency(f"no {name}")

    monkeypatch.setattr(render, "optional", missing)
    target = tmp_path / "t.html"
    done = run("-o", target, "--iterations", "10:12")
    assert done.exit_code == 0, done.output
    assert "4 CTAs" in done.output
    assert 'class="wsf-data"' in target.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--kind", "pie"], "no picture of kind 'pie'"),
        (["--kind", "waits", "--iterations", "1:2"], "takes no iterations"),
        (["--kind", "waits", "--arrows", "all"], "takes no arrows"),
        (["--kind", "grid", "--cta", "99"], "no stamps of CTA 99"),
        (["--kind", "critical-path", "--cta", "0", "--cta", "1"], "2 numbers for cta"),
        (["--kind", "overlap", "--width", "10"], "expected 320 to 4000"),
    ],
)
def test_what_cannot_be_drawn_leaves_no_file(tmp_path: Path, arguments: list[str], words: str) -> None:
    target = tmp_path / "x.svg"
    done = run(*arguments, "-o", target)
    assert done.exit_code == 2
    assert words in done.stderr.splitlines()[0]
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []
