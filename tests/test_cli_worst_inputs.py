"""The worst that one can give each command: one clear line, exit 2, nothing written, nothing lost.

Each row of the tables below was tried on every command that takes such a thing; faults that came up so stay here with
the answer that is right. Damaged bundles, archives that reach outside, interrupts and closed pipes are in
`test_cli_failures`, `test_hostile` and `test_archive`.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cli_case
import pytest
import typer
from typer.testing import CliRunner

from wsformat.cli.main import app
from wsformat.samples import path as sample

BUNDLE = "a.wsformat"
posix = pytest.mark.skipif(sys.platform == "win32", reason="pipes and names of POSIX")

READS_A_BUNDLE = (
    "info", "validate", "show", "states", "waits", "overlap", "iterations", "passes", "grid", "critical-path",
    "view", "open", "report", "zip", "upgrade", "merge",
)  # fmt: skip
"""Commands that need nothing but a bundle; `-o` is added where they would write."""
WRITES = {
    "export": [BUNDLE, "-o", "{}.pftrace"],
    "view": [BUNDLE, "-o", "{}.svg"],
    "report": [BUNDLE, "--no-pictures", "-o", "{}.html"],
    "diff": [BUNDLE, "b.wsformat", "--no-pictures", "-o", "{}.html"],
    "query": [BUNDLE, "SELECT 1 AS one", "-o", "{}.csv"],
    "predict": ["hopper_gemm", "-o", "{}.wsformat"],
    "digest": ["ncu.csv", "--kernel", "gemm<0>", "-o", "{}.json"],
    "merge": [BUNDLE, "b.wsformat", "-o", "{}.wsformat"],
    "zip": [BUNDLE, "-o", "{}.zip"],
    "unzip": ["a.wsformat.zip", "-o", "{}.wsformat"],
    "seal": [BUNDLE, "-o", "{}.wsformat"],
    "upgrade": [BUNDLE, "-o", "{}.wsformat"],
    "import": ["balanced_r0.i32", "--spec", "gemm_roles.json", "-o", "{}.wsformat"],
}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("worst")
    cli_case.bundle().write(folder / BUNDLE)
    cli_case.bundle(capture="beef" + "0" * 22, label="second").write(folder / "b.wsformat")
    assert CliRunner().invoke(app, ["zip", str(folder / BUNDLE), "-o", str(folder / "a.wsformat.zip")]).exit_code == 0
    for name in ("balanced_r0.i32", "gemm_roles.json"):
        shutil.copy(sample(name), folder / name)
    shutil.copy(Path(__file__).parent / "data" / "ncu" / "seed_metrics.mixed_stdout.csv", folder / "ncu.csv")
    (folder / "empty").write_bytes(b"")
    (folder / "noise").write_bytes(bytes(range(256)) * 8)
    (folder / "folder").mkdir()
    (folder / "manifest_of_noise.wsformat").mkdir()
    (folder / "manifest_of_noise.wsformat" / "manifest.json").write_bytes(b"\xff\xfe\0")
    return folder


@pytest.fixture
def here(filled: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(filled)
    return filled


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def refused(*words: str) -> str:
    """A command that must end with 2, one line, perhaps a hint, and nothing written; gives what it said."""
    before = contents(Path())
    result = CliRunner().invoke(app, list(words))
    lines = result.stderr.splitlines()
    assert result.exit_code == 2, (words, result.output)
    assert result.stdout == ""
    assert lines[0].startswith("error: ")
    assert [line.split(":")[0] for line in lines[1:]] in ([], ["hint"])
    assert "fault of wsformat" not in result.stderr, result.stderr
    assert all(line.isprintable() and len(line) < 700 for line in lines), lines
    assert contents(Path()) == before
    return result.stderr


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("nobody", "nobody: no such bundle"),
        ("empty", "a bundle is a directory"),
        ("noise", "a bundle is a directory"),
        ("folder", "no manifest.json"),
        ("manifest_of_noise.wsformat", "not UTF-8 at byte 0"),
        ("a.wsformat.zip", "a zipped bundle"),
        ("a.wsformat/events.parquet", "a bundle is a directory"),
        ("", "no manifest.json"),
        ("x" * 10_000, "x" * 150 + "…" + "x" * 30),
        ("\x1b[31mred\u202e💥<script>", "\\x1b[31mred\\u202e💥<script>: no such bundle"),
        ("line\nbreak", "error: line; break: no such bundle"),
        ("a\0b", "null byte"),
    ],
)  # fmt: skip
def test_what_is_no_bundle(here: Path, given: str, says: str) -> None:
    for command in READS_A_BUNDLE:
        if command == "validate" and given in ("", "folder", "manifest_of_noise.wsformat"):
            continue  # says so as a rule that is broken, and ends with 1
        more = {"open": ["--no-browser"], "merge": ["-o", "new.wsformat"]}.get(command, [])
        assert says in refused(command, given, *more), command


@pytest.mark.parametrize("command", list(WRITES))
@pytest.mark.parametrize(
    "place", ["nowhere/x", "empty/x", "y" * 300, pytest.param("/proc/x", marks=posix)], ids=lambda x: x[:8]
)
def test_where_nothing_can_be_written(here: Path, command: str, place: str) -> None:
    words = [word.format(place) if "{}" in word else word for word in WRITES[command]]
    said = refused(command, *words)
    assert place.split("/x")[0] in said or "too long" in said
    assert "no such file" not in said
    assert "partial" not in said
    assert "sealing" not in said


@pytest.mark.parametrize(
    "place", ["empty/x", "empty", BUNDLE, "y" * 300, pytest.param("/proc/x", marks=posix)], ids=lambda x: x[:8]
)
def test_where_no_demo_can_be_written(here: Path, place: str) -> None:
    assert place.split("/x")[0] in refused("demo", "-o", place)


def test_an_export_names_its_file_as_every_command_does(here: Path, tmp_path: Path) -> None:
    one, other = tmp_path / "one.pftrace", tmp_path / "other.pftrace"
    assert CliRunner().invoke(app, ["export", BUNDLE, str(one)]).exit_code == 0
    result = CliRunner().invoke(app, ["export", BUNDLE, "-o", str(other)])
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"{other}\n")
    assert "{" not in result.stdout
    assert one.read_bytes() == other.read_bytes()
    rows = tmp_path / "rows.csv"
    assert CliRunner().invoke(app, ["export", BUNDLE, "-o", str(rows), "--table", "events"]).exit_code == 0
    assert len(rows.read_text().splitlines()) == 65
    assert "no file to write is named" in refused("export", BUNDLE)
    assert "twice" in refused("export", BUNDLE, "a.json", "-o", "b.json")


def outputs(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every command with each of its options that name an output, groups included."""
    for name, sub in getattr(command, "commands", {}).items():
        yield from outputs(sub, (*path, name))
    for parameter in command.params:
        names = {"--output", "--png", "--raw"} & set(parameter.opts)
        yield from ((path, option) for option in sorted(names))


NEEDED = {("demo",): 0, ("record",): 0, ("diff",): 2, ("lake", "get"): 2, ("query",): 2, ("lake", "query"): 2}
"""How many arguments a command takes before its options; one where nothing is said."""


def test_no_output_is_called_dash(here: Path) -> None:
    """It was a file, a folder or a bundle called `-` of every command."""
    found = list(outputs(typer.main.get_command(app)))
    assert len(found) >= 25
    for path, option in found:
        shown = option if option != "--output" else "-o"
        for given in ("-", "./-"):
            said = refused(*path, *[BUNDLE] * NEEDED.get(path, 1), option, given)
            assert f"error: {shown} -: no file of that name is written" in said, (path, said)
            assert "hint: " in said
    assert "OUT -: no file" in refused("export", BUNDLE, "-")
    assert "-o -: no file" in refused("view", BUNDLE, "-o", "a.svg", "-o", "-")
    assert "--csv` (or --json)" in refused("export", BUNDLE, "-o", "-", "--table", "events", "--format", "csv")
    done = CliRunner().invoke(app, ["query", BUNDLE, "FROM events", "--csv"])
    assert (done.exit_code, len(done.stdout.splitlines())) == (0, 65)


@posix
@pytest.mark.parametrize("command", [c for c, words in WRITES.items() if "wsformat" not in words[-1]])
def test_pipes_and_devices_are_not_replaced(here: Path, command: str) -> None:
    """Results are written beside their name and renamed; as root, `--force -o /dev/null` made that a file."""
    suffix = Path(WRITES[command][-1]).suffix
    os.mkfifo(here / f"pipe{suffix}")
    (here / f"link{suffix}").symlink_to("/dev/null")
    try:
        for name in ("pipe", "link"):
            words = [word.format(name) if "{}" in word else word for word in WRITES[command]]
            more = ["--force"] if command != "digest" else []
            assert f"{name}{suffix}: is a pipe or a device" in refused(command, *words, *more)
        assert stat.S_ISFIFO((here / f"pipe{suffix}").stat().st_mode)
    finally:
        (here / f"pipe{suffix}").unlink()
        (here / f"link{suffix}").unlink()


RAW = ["import", "balanced_r0.i32", "--spec", "gemm_roles.json", "-o", "new.wsformat"]
HUGE = "99999999999999999999"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["show", BUNDLE, "--width", HUGE], "--width"),
        (["show", BUNDLE, "--width", "0"], "--width"),
        (["show", BUNDLE, "--width", "-1"], "--width"),
        (["view", BUNDLE, "-o", "new.svg", "--to", HUGE], "--to"),
        (["view", BUNDLE, "-o", "new.svg", "--from", f"-{HUGE}"], "--from"),
        (["view", BUNDLE, "-o", "new.svg", "--from", "5", "--to", "5"], "window from 5 to 5 is empty"),
        (["view", BUNDLE, "-o", "new.svg", "--iterations", "1:2:3"], "expected A:B"),
        (["states", BUNDLE, "--launch", HUGE], "no launch"),
        (["states", BUNDLE, "--launch", "-1"], "no launch -1"),
        (["waits", BUNDLE, "--cta", "-1"], "no cta -1"),
        (["grid", BUNDLE, "--launch", "-1"], "no launch -1"),
        (["states", BUNDLE, "--role", "'; DROP TABLE events; --"], "no role"),
        (["states", BUNDLE, "--capture", "line\nbreak"], "no capture"),
        (["query", BUNDLE, "--"], "SQL"),
        (["query", BUNDLE, "-- nothing but a comment"], "no statement"),
        (["query", BUNDLE, ";"], "no statement"),
        (["query", BUNDLE, "SELECT 1", "-o", "new.txt"], "File names: .csv, .json, .arrow, .feather, .ipc, .parquet."),
        (["diff", BUNDLE, "b.wsformat", "--tolerance", "nan"], "tolerance"),
        (["reconcile", BUNDLE, "--budget", "hopper_gemm", "--tolerance", "nan"], "tolerance"),
        ([*RAW, "--trip-count", HUGE], f"trip_count {HUGE}: iterations are counted in 32 bits"),
        ([*RAW, "--trip-count", str(2**31)], "at most"),
        ([*RAW, "--clean", "balanced_r0.i32:99999999999"], "iterations are counted in 32 bits"),
        ([*RAW, "--unwritten", HUGE], "does not fit 64 bits"),
        ([*RAW, "--layout", "0,0,0"], "layout"),
        ([*RAW, "-O", "=x"], "NAME=VALUE"),
        (["predict", "hopper_gemm", "--set", "x=nan"], "x"),
        (["digest", "ncu.csv", "--kernel", "gemm<0>", "--expected", "nan"], "--expected nan"),
        (["lake", "compact", "no_lake", "--retention", "-1"], "--retention -1"),
        (["lake", "compact", "no_lake", "--retention", "nan"], "--retention nan"),
    ],
    ids=lambda value: " ".join(value)[-40:] if isinstance(value, list) else "",
)
def test_values_out_of_range(here: Path, words: list[str], says: str) -> None:
    assert says.lower() in refused(*words).lower()


@posix
@pytest.mark.parametrize("command", [["import"], ["unzip"], ["digest"], ["spec", "check"]])
def test_a_pipe_that_nobody_writes_does_not_hang(here: Path, command: list[str]) -> None:
    fifo = here / "pipe"
    os.mkfifo(fifo)
    try:
        # Another process: a read that waits for ever cannot be ended from within.
        done = subprocess.run(
            [sys.executable, "-m", "wsformat", *command, str(fifo)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        fifo.unlink()
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")


@posix
@pytest.mark.parametrize("command", ["--help", "states a.wsformat"])
def test_output_that_cannot_be_written(here: Path, command: str) -> None:
    start = f"exec {sys.executable} -m wsformat {command}"
    full = subprocess.run(["sh", "-c", f"{start} > /dev/full"], capture_output=True, text=True, check=False)
    assert (full.returncode, full.stderr) == (2, "error: No space left on device\n")
    closed = subprocess.run(["sh", "-c", f"{start} >&-"], capture_output=True, text=True, check=False)
    assert (closed.returncode, closed.stderr) == (0, "")


@posix
def test_a_name_that_is_not_utf8(here: Path) -> None:
    name = b"b\xff\xfe.wsformat"
    done = subprocess.run(
        [sys.executable.encode(), b"-m", b"wsformat", b"states", name], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: b\\udcff\\udcfe.wsformat: this name is not UTF-8\nhint: ")


@posix
def test_a_table_that_may_not_be_read_is_not_called_damaged(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow.parquet as pq

    def denied(*_: object) -> None:
        raise PermissionError(13, "Failed to open local file")

    monkeypatch.setattr(pq, "read_metadata", denied)
    said = refused("states", BUNDLE)
    assert "parquet: Permission denied" in said
    assert "damaged" not in said


def test_every_command_was_considered() -> None:
    """A new command has to be put into one of the tables, or named here with the reason."""
    elsewhere = {
        "formats", "doctor", "hardware",  # read and write nothing
        "demo",  # makes its folder: above
        "record",  # needs a GPU: test_cli_record
        "reconcile", "spec", "lake",  # test_reconcile, test_rolespec, test_lake_cli; values above
    }  # fmt: skip
    known = set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
    assert known == elsewhere | set(READS_A_BUNDLE) | set(WRITES)
