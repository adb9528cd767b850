"""docs/tutorial.md: every command runs and prints what stands below it; the samples come as it says."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from wsformat.samples import names, path
from wsformat.samples.__main__ import main

PAGE = Path(__file__).parents[1] / "docs" / "tutorial.md"


@pytest.fixture
def maker(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(PAGE.parent))
    return importlib.import_module("make_tutorial")


@pytest.mark.sources
def test_the_page_shows_what_the_commands_print(maker: ModuleType) -> None:
    text = PAGE.read_text(encoding="utf-8")
    fresh = maker.filled(text)
    assert fresh == text, "run `python docs/make_tutorial.py`"
    start = text.split("## 2. Measure")[0]
    assert maker.filled(start.replace("384.0", "384.1")) == start, "a wrong number must not survive"


@pytest.mark.sources
def test_the_numbers_of_its_prose_are_printed_somewhere(maker: ModuleType) -> None:
    printed = "".join(maker.BLOCK.findall(PAGE.read_text(encoding="utf-8")))
    for number in ("512", "511.9", "777", "66 %", "900"):
        assert number in printed, number


def test_samples_are_copied_and_what_is_there_stays(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "balanced_r0.i32").write_bytes(b"mine")
    run = [sys.executable, "-m", "wsformat.samples", str(tmp_path / "a" / "b")]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    assert f"{len(names())} files" in done.stdout
    assert sorted(p.name for p in (tmp_path / "a" / "b").iterdir()) == names()
    assert (tmp_path / "a" / "b" / "balanced_r0.i32").read_bytes() == b"mine"
    assert (tmp_path / "a" / "b" / "balanced_r1.i32").read_bytes() == path("balanced_r1.i32").read_bytes()


def test_samples_without_a_folder_or_onto_a_file_say_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "FOLDER" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert main([str(tmp_path / "file")]) == 2
    assert "file" in capsys.readouterr().err
