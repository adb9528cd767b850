"""`wsformat lake`: what people and programs see."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lake_case as case
import pytest
from typer.testing import CliRunner

from wsformat.cli.main import app


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str


def run(*words: str) -> Done:
    result = CliRunner().invoke(app, list(words))
    return Done(result.exit_code, result.stdout, result.stderr)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lake")
    case.written(folder / "in", case.several(3))
    assert run("lake", "init", str(folder / "L")).code == 0
    done = run("lake", "add", str(folder / "L"), str(folder / "in"), "--json")
    assert (done.code, len(json.loads(done.out)["added"])) == (0, 3)
    return folder / "L"


def answer(*words: Any) -> Any:
    done = run("lake", *map(str, words), "--json")
    assert done.code == 0, done.err
    return json.loads(done.out)


def test_first_and_second_addition(place: Path) -> None:
    done = run("lake", "add", str(place), str(place.parent / "in"))
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == ["0 captures added", "3 captures were there already"]


def test_listing(place: Path) -> None:
    rows = answer("ls", place)
    assert [row["label"] for row in rows] == ["run 2", "run 1", "run 0"], "the newest first"
    assert {row["lake_stamps"] for row in rows} == {case.several(1)[0].rows("events")}
    assert [row["label"] for row in answer("ls", place, "--where", "arch = 'sm_100a'")] == ["run 1"]
    short = run("lake", "ls", str(place), "--limit", "1")
    assert "2 more captures" in short.err
    assert len(short.out.splitlines()) == 2


def test_query_and_files(place: Path, tmp_path: Path) -> None:
    assert answer("query", place, "SELECT COUNT(*) AS n FROM lanes") == [{"n": 3 * case.several(1)[0].rows("lanes")}]
    one = answer("query", place, "SELECT DISTINCT capture_id FROM wait", "--where", "label = 'run 2'")
    assert len(one) == 1
    done = run("lake", "query", str(place), "SELECT * FROM role_state", "-o", str(tmp_path / "x.csv"))
    assert (done.code, "rows" in done.err) == (0, True)
    files = answer("files", place, "events")
    assert files["removed"] == []
    assert all(Path(name).is_file() for name in files["tables"]["events"])
    assert len(files["tables"]["events"]) == len(answer("files", place)["tables"]["events"]) == 3


def test_a_capture_out_and_away(place: Path, tmp_path: Path) -> None:
    case.written(tmp_path / "in", [case.several(1, start=9)[0]])
    (added,) = answer("add", place, tmp_path / "in", "--summarise")["added"]
    out = tmp_path / "x.wsformat"
    assert answer("get", place, added[:9], "-o", out)["captures"] == [added]
    assert run("validate", str(out)).code == 0
    assert run("lake", "get", str(place), added, "-o", str(out)).code == 2, "it is there already"
    assert answer("rm", place, "run 9") == {"removed": [added]}
    assert answer("compact", place)["dropped"] > 0
    found = answer("verify", place)
    assert (found["captures"], found["checked"], found["problems"]) == (3, 3, [])
    assert "0 problems" in run("lake", "verify", str(place), "--quick").out


@pytest.mark.parametrize("name", ["trend", "regressions", "barriers", "model-error", "gaps"])
def test_questions(place: Path, name: str, tmp_path: Path) -> None:
    rows = answer(name, place)
    assert isinstance(rows, list)
    shown = run("lake", name, str(place), *(["--all"] if name == "regressions" else []))
    assert (shown.code, shown.err) == (0, "")
    assert len(shown.out.splitlines()) >= 1
    if rows:
        picture = tmp_path / "x.html"
        drawn = run("lake", name, str(place), "-o", str(picture), "--json")
        assert (drawn.code, json.loads(drawn.out)) == (0, rows)
        assert "<svg" in picture.read_text()


def test_an_answer_without_rows_says_what_it_needs(place: Path) -> None:
    """Nothing was predicted here, and one capture of each version tells no noise."""
    predicted, changed = run("lake", "model-error", str(place)), run("lake", "regressions", str(place))
    assert predicted.out == "no rows: needs predictions and measured captures of one experiment in the lake\n"
    assert changed.out.startswith("no rows: no version differs from the one before by more than the noise;")
    assert answer("model-error", place) == []
    drawn = run("lake", "model-error", str(place), "-o", "nothing.svg")
    assert (drawn.code, drawn.out, Path("nothing.svg").exists()) == (2, "", False)
    assert drawn.err.startswith("error: no rows to draw: needs predictions and measured captures of one experiment")


def test_damage_ends_with_1(place: Path, tmp_path: Path) -> None:
    lake = tmp_path / "L"
    assert run("lake", "init", str(lake)).code == 0
    assert run("lake", "add", str(lake), str(next((place.parent / "in").iterdir()))).code == 0
    file = Path(answer("files", lake, "events")["tables"]["events"][0])
    file.write_bytes(file.read_bytes()[:-8])
    done = run("lake", "verify", str(lake))
    assert done.code == 1
    assert str(file) in done.out
    assert done.err == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("ls", "NOWHERE"), "no lake.json"),
        (("init", "LAKE"), "is a lake already"),
        (("init", "s3://x/y", "--option", "s3.endpoint"), "not KEY=VALUE"),
        (("add", "LAKE", "NOWHERE"), "no such bundle"),
        (("add", "LAKE", "EMPTY"), "no bundle"),
        (("add", "LAKE", "EMPTY", "--batch", "0"), "--batch 0"),
        (("get", "LAKE", "zzz", "-o", "OUT"), "no capture 'zzz'"),
        (("rm", "LAKE", ""), "3 captures"),
        (("query", "LAKE", "SELECT nothing FROM captures"), "nothing"),
        (("query", "LAKE", "DROP VIEW captures"), "only SELECT"),
        (("ls", "LAKE", "--where", "x = 1"), "--where"),
        (("files", "LAKE", "nothing"), "no table 'nothing'"),
        (("trend", "LAKE", "-o", "X.gif"), "gif"),
    ],
)
def test_errors_are_one_line(place: Path, tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    (tmp_path / "EMPTY").mkdir()
    known = {"LAKE": place, "NOWHERE": tmp_path / "no", "EMPTY": tmp_path / "EMPTY", "OUT": tmp_path / "o.wsformat"}
    done = run("lake", *(str(known.get(word, word)) for word in words))
    assert done.code == 2
    assert message in done.err.splitlines()[0]
    assert done.err.startswith("error: ")
    assert len(done.err.splitlines()) <= 2
    assert done.out == ""
