"""CONTRIBUTING.md: its reader, put where it says, is a converter like the others."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest
from trace_import_case import load
from typer.testing import CliRunner

from wsformat.cli.main import app
from wsformat.converters import registry

pytestmark = pytest.mark.sources
ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
TRACE = "TOYTRACE\nload,wait,100,130\nload,copy,130,190\nmma,wait,100,180\nmma,multiply,180,260\n"


@pytest.fixture
def toytrace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The example as a converter, and a file of its format."""
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
    (tmp_path / "toytrace.py").write_text(code)
    spec = importlib.util.spec_from_file_location("wsformat.converters.toytrace", tmp_path / "toytrace.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setitem(sys.modules, "wsformat.converters.toytrace", module)
    monkeypatch.setattr(registry, "READERS", (*registry.READERS, "toytrace"))
    path = tmp_path / "x.toy"
    path.write_text(TRACE)
    return path


def test_the_reader_of_the_text(toytrace: Path, tmp_path: Path) -> None:
    assert registry.detect(toytrace) == "toytrace"
    bundle = load(toytrace, tmp_path)
    rows = bundle.sql("SELECT role, span, t0, t1 FROM spans ORDER BY role, t0").to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        ("load", "wait", 100, 130), ("load", "copy", 130, 190),
        ("mma", "wait", 100, 180), ("mma", "multiply", 180, 260),
    ]  # fmt: skip
    said = CliRunner().invoke(app, ["formats", "toytrace"])
    assert said.exit_code == 0
    assert "lost or assumed: Has no states" in said.stdout


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("TOYTRACE\nload,wait,100\n", "x.toy"),
        ("TOYTRACE\nload,wait,ten,130\n", "x.toy"),
        ("TOYTRACE\nload,wait,100,130\nload,copy,130,90\n", "line 3: ends before it begins"),
    ],
)
def test_broken_files_end_in_one_line(toytrace: Path, tmp_path: Path, text: str, says: str) -> None:
    toytrace.write_text(text)
    done = CliRunner().invoke(app, ["import", str(toytrace), "-o", str(tmp_path / "new.wsformat")])
    assert done.exit_code == 2
    assert says in done.stderr.splitlines()[0]
    assert "fault of wsformat" not in done.stderr
    assert not (tmp_path / "new.wsformat").exists()


def test_files_and_commands_that_the_text_names_exist() -> None:
    for name in re.findall(r"`((?:tests|converters|schema|conformance|wsformat|docs)/[\w./]+)`", TEXT):
        if "NAME" not in name and "NN" not in name:
            assert list(ROOT.glob(name.replace("*", "*"))), name
