"""The skills for agents: front matter is complete, every command in them runs on shipped data, every field exists."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from wsformat.cli.main import app
from wsformat.samples import path as sample

pytestmark = pytest.mark.sources
ROOT = Path(__file__).parents[1]
SKILLS = sorted((ROOT / "docs" / "skills").glob("*/SKILL.md"))


def front(path: Path) -> dict[str, str]:
    """Keys of the front matter with their text."""
    _, head, _ = path.read_text(encoding="utf-8").split("---\n", 2)
    keys: dict[str, str] = {}
    for line in head.splitlines():
        if re.match(r"[\w-]+:", line):
            name, _, value = line.partition(":")
            keys[name] = value.strip()
        else:
            keys[name] += f"\n{line}"
    return keys


def commands(path: Path) -> list[list[str]]:
    blocks = re.findall(r"```sh\n(.*?)```", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    return [shlex.split(line) for line in lines if line]


@pytest.fixture(scope="module", params=SKILLS, ids=lambda p: p.parent.name)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Any]]:
    """A skill, and its commands with what they did in a folder that has the files it names."""
    here = tmp_path_factory.mktemp("skill")
    stamps = {"prof.i32": "balanced_r0.i32", "prof.meta": "balanced_r0.meta", "roles.json": "gemm_roles.json"}
    for k in (2048, 4096):
        stamps |= {f"clean_{k}.metas": f"one_{k}_clean.metas", f"stamped_{k}.metas": f"one_{k}_global.metas"}
    for name, source in stamps.items():
        (here / name).write_bytes(sample(source).read_bytes())
    counters = ROOT / "conformance" / "sources" / "seed_metrics.mixed_stdout.csv"
    (here / "ncu.csv").write_bytes(counters.read_bytes())
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(here)
        return request.param, [(words, CliRunner().invoke(app, words[1:])) for words in commands(request.param)]


def test_both_skills_are_there() -> None:
    assert [p.parent.name for p in SKILLS] == ["profile-evidence", "warp-specialization-report"]


@pytest.mark.parametrize("path", SKILLS, ids=lambda p: p.parent.name)
def test_front_matter_is_complete(path: Path) -> None:
    keys = front(path)
    assert set(keys) == {"name", "description", "triggers", "allowed-tools"}
    assert keys["name"] == path.parent.name
    assert 80 < len(keys["description"]) < 1024  # what agents load at the start
    assert keys["triggers"].count("- ") >= 4
    assert len(path.read_text(encoding="utf-8").splitlines()) < 150


def test_every_command_runs(run: tuple[Path, list[Any]]) -> None:
    _, done = run
    assert len(done) >= 5
    for words, result in done:
        assert words[0] == "wsformat"
        assert result.exit_code == 0, f"{shlex.join(words)}\n{result.output}"


def fields(value: Any) -> set[str]:
    """Every key at any depth."""
    if isinstance(value, dict):
        return set(value) | {k for item in value.values() for k in fields(item)}
    return {k for item in value for k in fields(item)} if isinstance(value, list) else set()


def test_every_field_that_a_table_names_is_in_the_json(run: tuple[Path, list[Any]]) -> None:
    path, done = run
    seen = fields([json.loads(result.stdout) for words, result in done if "--json" in words])
    table = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    names = [name for line in table for name in re.findall(r"`([^`]+)`", line.split("|")[1])]
    named = {part for name in names for part in re.findall(r"[a-z_]+", name)}
    calls = {part for words, _ in done for part in words[1].split("-")} | {"level", "pace"}
    assert len(named) > 8
    assert sorted(named - seen - calls - {"json"}) == []
