"""`wsformat doctor` tells what is there and what is missing, and changes nothing."""

from __future__ import annotations

import json
import sys
from importlib import metadata
from pathlib import Path

import pytest
from typer.testing import CliRunner

from wsformat.cli import doctor
from wsformat.cli.main import app

REQUIRES = [
    "pyarrow>=17",
    "altair>=5.4; extra == 'view'",
    'pyspark>=4.0; extra == "spark"',
    "cuda-bindings>=13.0; platform_system == 'Nowhere' and extra == 'gpu'",
    "wsformat[spark,view]; extra == 'all'",
]


def ask(*words: str) -> tuple[int, list[dict[str, object]]]:
    result = CliRunner().invoke(app, ["doctor", *words, "--json"])
    return result.exit_code, json.loads(result.output) if result.exit_code < 2 else []


def script(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(f"#!{sys.executable}\n{text}\n")
    path.chmod(0o755)


@pytest.fixture
def empty_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def parts(area: dict[str, object]) -> dict[str, dict[str, object]]:
    return {str(p["name"]): p for p in area["parts"]}  # type: ignore[attr-defined]


def test_everything_is_asked_and_nothing_fails_without_a_name(empty_path: Path) -> None:
    code, areas = ask()
    assert code == 0
    assert [a["name"] for a in areas] == list(doctor.CHECKS)
    assert areas[0]["ready"] is True  # the core is what runs this test
    assert parts(areas[0])["pyarrow"]["found"] == metadata.version("pyarrow")


def test_an_area_that_is_not_ready_ends_with_1_and_says_what_to_do(empty_path: Path) -> None:
    code, (area,) = ask("spark")
    assert code == 1
    assert parts(area)["java"]["found"] == ""
    text = CliRunner().invoke(app, ["doctor", "spark"]).output
    assert "spark: NOT READY" in text
    assert "MISSING java: install a Java runtime, 17 or newer" in text


def test_an_unknown_area_is_refused_in_one_line() -> None:
    result = CliRunner().invoke(app, ["doctor", "teeth"])
    assert result.exit_code == 2
    assert "there is no area teeth" in result.output


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("import sys; print('openjdk version \"21.0.2\"', file=sys.stderr)", 'openjdk version "21.0.2"'),
        ("import sys; print('java version \"1.8.0_402\"', file=sys.stderr)", ""),
        ("raise SystemExit(3)", ""),
    ],
)
def test_a_program_is_asked_for_its_version(empty_path: Path, answer: str, found: str) -> None:
    script(empty_path, "java", answer)
    _, (area,) = ask("spark")
    assert parts(area)["java"]["found"] == found


def test_packages_come_from_the_installed_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"altair": "5.3.9", "pyspark": "4.0.0rc1", "pyarrow": "26.0.1"}

    def version(name: str) -> str:
        if name not in versions:
            raise metadata.PackageNotFoundError(name)
        return versions[name]

    monkeypatch.setattr(metadata, "requires", lambda _: REQUIRES)
    monkeypatch.setattr(metadata, "version", version)
    (old,) = doctor.extra("view")
    assert not old.ok
    assert "5.3.9 is older than 5.4" in old.fix
    (new,) = doctor.extra("spark")
    assert new.found == "4.0.0rc1"
    assert doctor.packages("gpu", "") == []  # asked for on another system only
    (unknown,) = doctor.extra("lake")
    assert not unknown.ok
    del versions["pyspark"]
    (gone,) = doctor.extra("spark")
    assert gone.fix == "pip install 'wsformat[spark]'"


def test_a_machine_without_gpu_can_still_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_device", lambda: "")
    code, (area,) = ask("gpu")
    assert code == 1
    assert parts(area)["GPU and driver"]["found"] == ""
    monkeypatch.setattr(doctor, "_device", lambda: "NVIDIA H200")
    assert parts(ask("gpu")[1][0])["GPU and driver"]["found"] == "NVIDIA H200"
