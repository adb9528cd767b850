"""The demo, and the commands on the real captures that ship with the package."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from wsformat.bundle import Bundle
from wsformat.cli import demo, story
from wsformat.cli.main import app

SAMPLES = Path(str(files("wsformat.samples")))
BALANCED = {
    "producer": {"extent": 48_204, "stall": 15_750, "active": 18_849, "untracked": 13_605},
    "consumer0": {"extent": 51_851, "stall": 8_947, "active": 28_842, "untracked": 14_062},
    "consumer1": {"extent": 52_632, "stall": 8_432, "active": 33_455, "untracked": 10_745},
}
"""The accounting of balanced_r0, in cycles."""


def run(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def ask(*words: object) -> Any:
    result = run(*words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Folder and text of one run of the demo."""
    out = tmp_path_factory.mktemp("demo") / "out"
    result = run("demo", "-o", out)
    assert result.exit_code == 0, result.output
    return out, result.stdout


@pytest.fixture(scope="module")
def balanced(made: tuple[Path, str]) -> Path:
    return made[0] / "balanced.wsformat"


def test_everything_is_written_and_listed(made: tuple[Path, str]) -> None:
    out, text = made
    listed = json.loads((out / "demo.json").read_text())["files"]
    assert sorted(p.name for p in out.iterdir()) == sorted([*listed, "demo.json"])
    assert all(name in text for name in listed)
    assert (out / "timeline.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (out / "timeline.svg").read_text()
    assert "<html" in (out / "timeline.html").read_text().lower()
    page = (out / "report.html").read_text()
    assert "consumer1 paces the kernel" in page
    assert page.count("<figure class=wsf ") >= 4
    assert (out / "summary.md").read_text().startswith(text[: text.index("\nWritten to ")].rstrip())


def test_results_are_those_of_the_commands(made: tuple[Path, str], balanced: Path) -> None:
    out, _ = made
    for name in story.RESULTS:
        assert json.loads((out / f"{name}.json").read_text()) == ask(name.replace("_", "-"), balanced), name
    assert json.loads((out / "query.json").read_text()) == ask("query", balanced, demo.SQL)


def test_what_the_captures_say(made: tuple[Path, str]) -> None:
    """The sentences carry the numbers of the captures as they are known from the accounting and by slope."""
    _, text = made
    assert re.search(r"\| producer +\| 48,204 \| 18,849 \(39\.1 %\) \| 13,605 \(28\.2 %\)", text)
    balanced_part, slow = text[text.index("## balanced") :], text[text.index("## slow_producer") :]
    clean, stamped, change = re.search(
        r"takes ([\d.,]+) cycles an iteration, with them ([\d.,]+): these stamps change it by ([+-][\d.]+) %",
        balanced_part,
    ).groups()  # type: ignore[union-attr]
    assert 511 < float(clean) < 513
    assert 775 < float(stamped) < 779
    assert abs(float(change) - 100 * (float(stamped) / float(clean) - 1)) < 0.1
    blocked = [float(x) for x in re.findall(r"consumer\d is blocked on `full` for ([\d.]+) %", slow)]
    assert all(50 < share < 60 for share in blocked)
    assert len(blocked) == 2
    assert "producer paces the CTA" in slow
    judged = dict(
        re.findall(r"^- (balanced|low_probe|slow_producer): ([a-z ]+(?:\([ab]\))?)\. The loop takes", text, re.M)
    )
    assert judged == {"balanced": "agree", "low_probe": "agree", "slow_producer": "model incomplete (a)"}
    assert "Main cause: slow producer (producer)" in slow


def test_the_demo_repeats_and_replaces_only_its_own(made: tuple[Path, str]) -> None:
    out, text = made
    (out / "mine.txt").write_text("keep")
    again = run("demo", "-o", out)
    assert again.exit_code == 0, again.output
    assert again.stdout == text
    assert (out / "mine.txt").read_text() == "keep"
    (out / "mine.txt").unlink()


def test_the_demo_does_not_touch_what_is_not_its_own(tmp_path: Path) -> None:
    (tmp_path / "summary.md").write_text("of somebody else")
    result = run("demo", "-o", tmp_path)
    assert result.exit_code == 2
    assert "summary.md: is there already and not from the demo" in result.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["summary.md"]
    (tmp_path / "file").write_text("")
    assert run("demo", "-o", tmp_path / "file").exit_code == 2


def test_the_demo_says_when_pictures_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from wsformat.errors import MissingDependency
    from wsformat.viewers import timeline

    def absent(*_: object, **__: object) -> None:
        raise MissingDependency("altair is not installed", "pip install 'wsformat[view]'")

    monkeypatch.setattr(timeline, "timeline", absent)
    result = run("demo", "-o", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert "No pictures: altair is not installed" in result.stdout
    assert not list((tmp_path / "out").glob("timeline.*"))
    page = (tmp_path / "out" / "report.html").read_text()
    assert "consumer1 paces the kernel" in page  # words and tables need no package for pictures
    assert "<svg" not in page
    assert "no pictures: altair" in (tmp_path / "out" / "summary.md").read_text()


def test_states_are_the_accounting_of_the_capture(balanced: Path) -> None:
    found = {row["role"]: row for row in ask("states", balanced)}
    assert {role: {name: found[role][name] for name in BALANCED[role]} for role in found} == BALANCED
    assert ask("overlap", balanced, "consumer0", "consumer1")["cycles"] == 13_891
    assert [round(ask("overlap", balanced, "consumer0", "consumer1")[f"of_{x}"], 3) for x in ("a", "b", "union")] == [
        *(0.482, 0.415, 0.287)
    ]
    assert {c["kind"]: c["completeness"] for c in ask("info", balanced)["captures"]}["stamped"] == "complete"


def test_import_says_what_it_did(tmp_path: Path) -> None:
    out = tmp_path / "b.wsformat"
    spec = SAMPLES / "gemm_roles.json"
    result = run(
        "import", SAMPLES / "balanced_r0.i32", "--spec", spec, "--meta", SAMPLES / "balanced_r0.meta", "-o", out
    )
    assert result.exit_code == 0, result.output
    assert "imported balanced_r0.i32 as raw_stamps" in result.stdout
    assert "records lost: 0" in result.stdout
    assert f"next: wsformat states {out}" in result.stdout
    again = run("import", SAMPLES / "balanced_r0.i32", "--spec", spec, "-o", out)
    assert again.exit_code == 2
    assert "is there already" in again.stderr


def test_options_can_be_given_by_name(tmp_path: Path) -> None:
    out = tmp_path / "b.wsformat"
    words = ["import", SAMPLES / "balanced_r0.i32", "--spec", SAMPLES / "gemm_roles.json", "--label", "one"]
    assert run(*words, "-O", "input-data=zeros", "-O", "stamp_sink=global", "-o", out).exit_code == 0
    (capture,) = ask("info", out)["captures"]
    assert (capture["label"], capture["input_data"], capture["stamp_sink"]) == ("one", "zeros", "global")


def test_formats_lists_every_converter() -> None:
    from wsformat.converters import registry

    found = {entry["name"]: entry for entry in ask("formats")}
    for name in (*registry.READERS, *registry.WRITERS):
        assert found[name]["losses"]
        assert ("in" in found[name]["direction"].split()) == (name in registry.READERS)
    lines = run("formats").stdout.splitlines()
    assert len(lines) == len(found) + 1
    for line, (name, entry) in zip(lines, found.items(), strict=False):
        assert line.split()[0] == name
        assert entry["title"] in line


def test_formats_of_one_name_gives_its_options() -> None:
    (entry,) = ask("formats", "tag64")
    text = run("formats", "tag64").stdout
    assert {"dialect", "stride", "events", "groups", "mapping"} <= set(entry["options"])
    assert all(f"-O {option}=" in text for option in entry["options"])
    assert all(f"lost or assumed: {loss}" in text for loss in entry["losses"])
    assert "tag-producer-consumer" in entry["options"]["mapping"]
    wrong = run("formats", "tag65")
    assert (wrong.exit_code, wrong.stdout) == (2, "")
    assert "no format 'tag65'" in wrong.stderr


def test_view_draws_and_says_what(balanced: Path, tmp_path: Path) -> None:
    picture, page = tmp_path / "t.svg", tmp_path / "t.html"
    found = ask("view", balanced, "-o", picture, "-o", page, "--iterations", "4:8", "--role", "producer")
    assert found["files"] == [str(picture), str(page)]
    assert "iterations 4 to 7" in " ".join(found["title"])
    assert run("view", balanced, "-o", picture).exit_code == 2
    assert run("view", balanced, "-o", tmp_path / "t.doc").exit_code == 2
    assert run("view", balanced, "-o", tmp_path / "u.svg", "--role", "nobody").exit_code == 2
    assert not (tmp_path / "u.svg").exists()


def test_merge_zip_unzip_seal_upgrade(made: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, _ = made
    monkeypatch.chdir(tmp_path)
    both = tmp_path / "both.wsformat"
    found = ask("merge", out / "balanced.wsformat", out / "slow_producer.wsformat", "-o", both)
    assert len(found["captures"]) == 4
    assert found["tables"]["events"] == sum(
        Bundle.open(out / f"{name}.wsformat").rows("events") for name in ("balanced", "slow_producer")
    )
    assert ask("states", both, "--capture", "balanced_r0") == ask("states", out / "balanced.wsformat")
    assert run("merge", both, "-o", both).exit_code == 2
    assert run("zip", both).stdout == "both.wsformat.zip\n"
    assert run("zip", both).exit_code == 2
    assert ask("zip", both, "--force") == {"path": "both.wsformat.zip"}
    refused = run("states", tmp_path / "both.wsformat.zip")
    assert refused.exit_code == 2
    assert "wsformat unzip" in refused.stderr
    assert run("unzip", "both.wsformat.zip", "-o", "copy.wsformat").exit_code == 0
    assert ask("states", "copy.wsformat") == ask("states", both)
    assert run("upgrade", "copy.wsformat").stdout.endswith("is the newest; nothing to do\ncopy.wsformat\n")
    assert ask("upgrade", "copy.wsformat")["steps"] == []
    import pyarrow.parquet as pq

    events = Path("copy.wsformat/events.parquet")
    pq.write_table(pq.read_table(events), events, compression="snappy")
    assert run("validate", "copy.wsformat").exit_code == 1
    sealed = run("seal", "copy.wsformat")
    assert sealed.exit_code == 0, sealed.output
    assert run("validate", "copy.wsformat").exit_code == 0
    assert ask("states", "copy.wsformat") == ask("states", both)


def test_spec_check_of_a_spec_alone() -> None:
    found = ask("spec", "check", SAMPLES / "gemm_roles.json")
    assert found["problems"] == 0
    assert {f["kind"] for f in found["findings"]} == {"hidden_wait"}
    assert "consumer0.work hides a wait" in run("spec", "check", SAMPLES / "gemm_roles.json").stdout


def test_spec_check_of_a_spec_in_the_form_of_the_skill() -> None:
    found = ask("spec", "check", SAMPLES / "gemm_spec.json")
    assert "lag_unknown" in {f["kind"] for f in found["findings"]}
    assert "unsaid" in {f["kind"] for f in found["findings"]}


def test_spec_convert_there_and_back(tmp_path: Path) -> None:
    skill, ours = tmp_path / "skill.json", tmp_path / "ours.json"
    there = run("spec", "convert", SAMPLES / "gemm_roles.json", "-o", skill)
    assert there.exit_code == 0, there.output
    assert there.stderr.startswith("note: ")
    assert set(json.loads(skill.read_text())) >= {"roles", "role_id", "active", "stall", "deps"}
    back = run("spec", "convert", skill)
    assert back.exit_code == 0, back.output
    ours.write_text(back.stdout)
    assert json.loads(back.stdout)["wsformat_rolespec"]
    assert ask("spec", "check", ours)["problems"] == 0
    assert run("spec", "convert", skill, "-o", skill).exit_code == 2
    assert run("spec", "convert", tmp_path / "nobody.json").exit_code == 2


def test_import_prints_what_the_converter_notes(tmp_path: Path) -> None:
    out = tmp_path / "b.wsformat"
    words = [
        "import",
        SAMPLES / "balanced_r0.i32",
        "--spec",
        SAMPLES / "gemm_spec.json",
        "--layout",
        "3,16,64",
        "-o",
        out,
    ]
    text = run(*words).stdout
    assert "note on iteration_lag: " in text
    notes = ask(*words, "--force")["notes"]
    assert {note["subject"] for note in notes} >= {"iteration_lag", "role spec"}


@pytest.mark.parametrize("name", ["t.pftrace", "t.json"])
def test_export_chooses_the_writer_by_the_name(balanced: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / name
    found = ask("export", balanced, out)
    assert found["path"] == str(out)
    assert found["bytes"] == out.stat().st_size > 1000
    assert run("export", balanced, out).exit_code == 2
    assert run("export", balanced, out, "--force", "-O", "colour=red").exit_code == 2
    again = run("export", balanced, out, "--force", "-O", "flows=none")
    assert again.exit_code == 0, again.output
    assert f"{out}\n" in again.stdout
    assert run("export", balanced, tmp_path / "t.npz.unknown").exit_code == 2
    assert run("export", balanced, out, "--format", "raw_stamps", "--force").exit_code == 2


@pytest.mark.skipif(sys.platform == "win32", reason="a terminal of POSIX")
@pytest.mark.parametrize("width", [40, 80, 200])
def test_a_terminal_loses_no_digit(balanced: Path, width: int) -> None:
    """On a narrow terminal the table is turned on its side, on a wide one it stands."""
    import fcntl
    import pty
    import struct
    import termios

    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    environment = {**os.environ, "TERM": "xterm"}
    environment.pop("COLUMNS", None)
    environment.pop("NO_COLOR", None)
    command = [sys.executable, "-m", "wsformat", "states", str(balanced)]
    with subprocess.Popen(command, stdin=child, stdout=child, stderr=child, env=environment) as process:
        os.close(child)
        shown = b""
        while True:
            try:
                part = os.read(parent, 65_536)
            except OSError:
                break
            if not part:
                break
            shown += part
    os.close(parent)
    text = shown.decode()
    assert process.returncode == 0, text
    assert "\x1b[1m" in text
    assert "…" not in text
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    for states in BALANCED.values():
        for name in ("extent", "active", "untracked"):
            assert f"{states[name]:,}" in plain
    assert ("producer" in next(line for line in plain.splitlines() if line.startswith("role"))) == (width == 80)
