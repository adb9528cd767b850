"""What the README says works: its commands exist, its Python runs, its links lead somewhere."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from wsformat.cli.main import app
from wsformat.converters import registry
from wsformat.samples import path as sample
from wsformat.samples.__main__ import main as copy_samples

ROOT = Path(__file__).parent.parent
DATA = Path(__file__).parent / "data"
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, flags=re.DOTALL)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the README names."""
    assert copy_samples([str(tmp_path)]) == 0
    (tmp_path / "ncu.csv").write_bytes((DATA / "ncu" / "seed_metrics.mixed_stdout.csv").read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_commands_and_python_of_the_readme_run(here: Path) -> None:
    _, commands = blocks("sh")
    for line in commands.replace("\\\n", " ").strip().splitlines():
        words = shlex.split(line, comments=True)
        assert words[0] == "wsformat"
        result = CliRunner().invoke(app, words[1:])
        assert result.exit_code == 0, f"{line}\n{result.output}"
    for name in ("gemm.wsformat", "report.html", "timeline.html", "trace.pftrace"):
        assert (here / name).exists()
    (code,) = blocks("python")
    exec(compile(code, "README.md", "exec"), {})


@pytest.mark.sources
def test_links_lead_to_files() -> None:
    links = [link for link in re.findall(r"\]\(([^)]+)\)", TEXT) if not link.startswith("http")]
    assert links
    assert [link for link in links if not (ROOT / link.split("#")[0]).exists()] == []


@pytest.mark.sources
def test_make_targets_of_the_readme_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"`?make (\w+)", TEXT):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


@pytest.mark.sources
def test_files_and_formats_that_the_readme_names_are_there() -> None:
    for name in re.findall(r"`(wsformat/samples|conformance/sources/[\w.]+)`", TEXT):
        assert (ROOT / name).exists(), name
    for name in ("balanced_r0.i32", "balanced_r0.meta", "gemm_roles.json"):
        assert f"`{name}`" in TEXT
        assert sample(name).exists()
    table = TEXT.split("## In and out")[1].split("##")[0]
    said = {"raw_stamps": "raw stamp", "ncu": "Nsight", "chrome": "Chrome", "iket": "IKET", "tag64": "tag buffers"}
    said |= {"perfetto": "Perfetto", "skill_npz": "`.npz`"}
    assert set(said) == set(registry.READERS) | set(registry.WRITERS)
    assert [text for text in said.values() if text not in table] == []
