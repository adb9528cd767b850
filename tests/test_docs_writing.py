"""docs/writing.md: its program of pyarrow alone makes a conforming bundle with the commands that it names."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from wsformat.bundle import Bundle
from wsformat.cli.main import app

pytestmark = pytest.mark.sources
TEXT = (Path(__file__).parents[1] / "docs" / "writing.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, flags=re.DOTALL)


def test_a_writer_needs_pyarrow_alone_and_its_bundle_conforms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program, _ = blocks("python")
    assert "wsformat." not in program.replace("mine.wsformat", "")
    # Another process: nothing of the library is loaded there.
    check = "\nimport sys\nassert 'wsformat' not in sys.modules\n"
    subprocess.run([sys.executable, "-c", program + check], check=True, cwd=tmp_path)
    (commands,) = blocks("sh")
    outputs = []
    for line in commands.strip().splitlines():
        result = CliRunner().invoke(app, shlex.split(line)[1:])
        assert result.exit_code == 0, result.output
        outputs.append(result.output)
    assert "0 errors, 0 warnings, 2 hints" in outputs[1]
    query = "SELECT COUNT(*) AS waits, SUM(satisfied_ticks) AS satisfied FROM wait WHERE verdict = 'not_blocked'"
    (row,) = Bundle.open(tmp_path / "mine.wsformat").sql(query).to_pylist()
    assert row == {"waits": 8, "satisfied": 240}


def test_the_program_with_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(blocks("python")[1], "writing.md", "exec"), {})
    assert CliRunner().invoke(app, ["validate", "tiny.wsformat"]).exit_code == 0
