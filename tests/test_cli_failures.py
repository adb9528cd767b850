"""How commands fail: one line that says what and where, exit 2, nothing written; never a traceback."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import cli_case
import numpy as np
import pytest
from typer.testing import CliRunner

from wsformat.cli import failure, interrupt, main, scope
from wsformat.cli.main import app

LAYOUT = (2, 4, 8)


def fails(*words: object, says: str = "") -> str:
    """Run a command that must end with 2; gives its one line of error."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert lines[0].startswith("error: ")
    assert [line.split(":")[0] for line in lines[1:]] in ([], ["hint"])
    assert "Traceback" not in result.stderr
    assert says in lines[0], lines[0]
    return lines[0]


def real(*words: object, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "wsformat", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **env}, timeout=120)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.fixture
def stamps(tmp_path: Path) -> Path:
    """A folder with a sound buffer, its spec, and one bundle."""
    slots = np.zeros(LAYOUT, np.uint32)
    for role, spans in enumerate(cli_case.SPANS.values()):
        for span, ends in enumerate(spans.values()):
            for end, offset in enumerate(ends):
                slots[role, 2 * span + end] = 1_000 + offset + 100 * np.arange(8)
    slots.tofile(tmp_path / "ring.i32")
    rows = cli_case.tables()
    spec = {"wsformat_rolespec": "0.1", "layout": dict(zip(("roles", "events", "iterations"), LAYOUT, strict=True))}
    names = {"roles": "roles", "events": "event_types", "spans": "span_types", "dependencies": "dependencies"}
    spec |= {key: [{k: v for k, v in row.items() if k != "capture_id"} for row in rows[t]] for key, t in names.items()}
    (tmp_path / "ring.json").write_text(json.dumps(spec))
    cli_case.bundle().write(tmp_path / "there.wsformat")
    return tmp_path


def spec_with(folder: Path, change: Callable[[dict[str, list[dict[str, object]]]], object]) -> Path:
    spec = json.loads((folder / "ring.json").read_text())
    change(spec)
    (folder / "other.json").write_text(json.dumps(spec))
    return folder / "other.json"


def test_a_sound_buffer_imports(stamps: Path) -> None:
    out = stamps / "ring.wsformat"
    result = CliRunner().invoke(
        app, ["import", str(stamps / "ring.i32"), "--spec", str(stamps / "ring.json"), "-o", str(out), "--json"]
    )
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["tables"]["events"] == 64
    states = json.loads(CliRunner().invoke(app, ["states", str(out), "--json"]).stdout)
    for row in states:
        known = cli_case.STATES[row["role"]]
        assert {name: row[name] for name in known} == known


def wrong_length(folder: Path) -> list[object]:
    (folder / "bad.i32").write_bytes((folder / "ring.i32").read_bytes()[:-4])
    return [folder / "bad.i32", "--spec", folder / "ring.json"]


def half_a_word(folder: Path) -> list[object]:
    (folder / "bad.i32").write_bytes((folder / "ring.i32").read_bytes()[:-3])
    return [folder / "bad.i32", "--spec", folder / "ring.json"]


def wrong_layout(folder: Path) -> list[object]:
    return [folder / "ring.i32", "--spec", folder / "ring.json", "--layout", "3,4,8"]


def no_layout(folder: Path) -> list[object]:
    return [folder / "ring.i32", "--spec", folder / "ring.json", "--layout", "3,4"]


def unknown_role(folder: Path) -> list[object]:
    return [folder / "ring.i32", "--spec", spec_with(folder, lambda s: s["spans"][0].update(role="produser"))]


def event_out_of_range(folder: Path) -> list[object]:
    return [folder / "ring.i32", "--spec", spec_with(folder, lambda s: s["events"][0].update(event_index=9))]


def never_written(folder: Path) -> list[object]:
    slots = np.fromfile(folder / "ring.i32", np.uint32).reshape(LAYOUT)
    slots[1, 1] = 0
    slots.tofile(folder / "bad.i32")
    return [folder / "bad.i32", "--spec", folder / "ring.json"]


def trips_of_zero(folder: Path) -> list[object]:
    return [folder / "ring.i32", "--spec", folder / "ring.json", "--trip-count", "0"]


def all_zero(folder: Path) -> list[object]:
    np.zeros(LAYOUT, np.uint32).tofile(folder / "bad.i32")
    return [folder / "bad.i32", "--spec", folder / "ring.json"]


def truncated_npy(folder: Path) -> list[object]:
    np.save(folder / "ring.npy", np.fromfile(folder / "ring.i32", np.uint32).reshape(LAYOUT))
    (folder / "bad.npy").write_bytes((folder / "ring.npy").read_bytes()[:-17])
    return [folder / "bad.npy", "--spec", folder / "ring.json"]


def directory(folder: Path) -> list[object]:
    return [folder / "there.wsformat", "--spec", folder / "ring.json"]


def missing(folder: Path) -> list[object]:
    return [folder / "nobody.i32", "--spec", folder / "ring.json"]


def not_recognised(folder: Path) -> list[object]:
    (folder / "notes.txt").write_text("nothing of the kind\n" * 50)
    return [folder / "notes.txt"]


def no_spec(folder: Path) -> list[object]:
    return [folder / "ring.i32", "--layout", "2,4,8"]


def spec_no_json(folder: Path) -> list[object]:
    (folder / "bad.json").write_text('{"roles": [')
    return [folder / "ring.i32", "--spec", folder / "bad.json"]


def unknown_option(folder: Path) -> list[object]:
    return [folder / "ring.i32", "--spec", folder / "ring.json", "-O", "colour=red"]


def no_value(folder: Path) -> list[object]:
    return [folder / "ring.i32", "--spec", folder / "ring.json", "-O", "label"]


def no_trips(folder: Path) -> list[object]:
    return [folder / "ring.i32", "--spec", folder / "ring.json", "--clean", folder / "ring.i32"]


def unknown_format(folder: Path) -> list[object]:
    return [folder / "ring.i32", "--spec", folder / "ring.json", "--format", "excel"]


@pytest.mark.parametrize(
    ("case", "says"),
    [
        (wrong_length, "bad.i32"),
        (half_a_word, "bad.i32: 253 bytes, not a multiple of the 4 bytes of a slot: cut off?"),
        (wrong_layout, "ring.i32"),
        (no_layout, "layout"),
        (unknown_role, "produser"),
        (event_out_of_range, "event_index"),
        (never_written, "wait_end"),
        (all_zero, "bad.i32"),
        (trips_of_zero, "trip_count 0"),
        (truncated_npy, "bad.npy"),
        (directory, "is a directory"),
        (missing, "no such file"),
        (not_recognised, "notes.txt"),
        (no_spec, "no role spec"),
        (spec_no_json, "bad.json"),
        (unknown_option, "colour"),
        (no_value, "NAME=VALUE"),
        (no_trips, "no trip count"),
        (unknown_format, "excel"),
    ],
)
def test_bad_input_of_import(stamps: Path, case: Callable[[Path], list[object]], says: str) -> None:
    words = case(stamps)
    before = contents(stamps)
    fails("import", *words, "-o", stamps / "new.wsformat", says=says)
    assert contents(stamps) == before
    assert not (stamps / "new.wsformat").exists()


def test_an_output_that_exists_needs_force(stamps: Path) -> None:
    words = ["import", stamps / "ring.i32", "--spec", stamps / "ring.json", "-o"]
    before = contents(stamps)
    fails(*words, stamps / "there.wsformat", says="is there already")
    fails(*words, stamps / "ring.json", "--force", says="is no bundle")
    fails(*words, stamps / "nowhere" / "x.wsformat", says="no such directory")
    assert contents(stamps) == before
    assert CliRunner().invoke(app, [*map(str, words), str(stamps / "there.wsformat"), "--force"]).exit_code == 0
    assert contents(stamps) != before


def test_a_failed_import_keeps_the_old_bundle_also_with_force(stamps: Path) -> None:
    words = all_zero(stamps)
    before = contents(stamps)
    fails("import", *words, "-o", stamps / "there.wsformat", "--force", says="every slot")
    assert contents(stamps) == before


QUESTIONS = ("info", "states", "waits", "overlap", "iterations", "critical-path")


@pytest.mark.parametrize("command", [*QUESTIONS, "view", "query", "export"])
def test_no_bundle(stamps: Path, command: str) -> None:
    more = {"query": ["SELECT 1"], "export": [stamps / "x.csv", "--table", "events"], "view": ["-o", stamps / "x.html"]}
    before = contents(stamps)
    fails(command, stamps / "nobody", *more.get(command, []), says="nobody")
    fails(command, stamps / "ring.i32", *more.get(command, []), says="a bundle is a directory")
    fails(command, stamps, *more.get(command, []), says="manifest.json")
    assert contents(stamps) == before


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda b: (b / "manifest.json").write_text("{"), "not valid JSON"),
        (lambda b: (b / "events.parquet").unlink(), "its file is missing"),
        (lambda b: (b / "events.parquet").write_bytes(b"PAR1"), "cannot be read as Parquet"),
        (lambda b: (b / "manifest.json").write_text('{"format": "wsformat", "version": "9.0"}'), "version 9.0"),
    ],
)
def test_a_damaged_bundle(stamps: Path, damage: Callable[[Path], object], says: str) -> None:
    bundle = stamps / "there.wsformat"
    damage(bundle)
    for command in QUESTIONS:
        fails(command, bundle, says=says)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["states", "--role", "nobody"], "no role 'nobody'"),
        (["states", "--launch", "7"], "no launch 7"),
        (["waits", "--cta", "3"], "no cta 3"),
        (["states", "--capture", "zz"], "no capture 'zz'"),
        (["overlap", "producer", "nobody"], "no role 'nobody'"),
        (["overlap", "producer", "producer"], "overlaps with itself"),
        (["overlap", "producer"], "two are needed"),
        (["overlap", "a", "b", "--resource"], "no resource 'a'"),
        (["critical-path", "--cta", "5"], "no CTA 5"),
        (["query", "SELEC 1"], "SQL: Parser Error"),
        (["query", "SELECT * FROM nothing"], "nothing"),
        (["query", ""], "no statement"),
        (["query", "SELECT 1; SELECT 2"], "2 statements"),
        (["query", "COPY (SELECT 1) TO 'copied.csv'"], "COPY"),
        (["query", "EXPORT DATABASE 'exported'"], "EXPORT"),
        (["query", "ATTACH 'attached.db'"], "ATTACH"),
        (["query", "SELECT 1", "--json", "--csv"], "exclude"),
        (["query", "SELECT 1", "-o", "x.xyz"], "x.xyz"),
        (["export", "x.csv"], "x.csv"),
        (["export", "x.csv", "--table", "nothing"], "no table 'nothing'"),
        (["export", "x.csv", "--view", "nothing"], "no view 'nothing'"),
        (["export", "x.csv", "--table", "events", "--view", "wait"], "exclude"),
        (["export", "x.doc", "--table", "events"], "x.doc"),
        (["export", "nowhere/x.csv", "--table", "events"], "nowhere"),
        (["validate", "--ignore", "E9"], "E9"),
    ],
)
def test_questions_that_make_no_sense(
    stamps: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], says: str
) -> None:
    monkeypatch.chdir(stamps)
    before = contents(stamps)
    fails(words[0], stamps / "there.wsformat", *words[1:], says=says)
    assert contents(stamps) == before


def test_wrong_usage_is_one_line_too(stamps: Path) -> None:
    fails("states", says="Missing argument")
    fails("states", stamps / "there.wsformat", "--colour", says="--colour")
    fails("state", stamps / "there.wsformat", says="state")
    fails("states", stamps / "there.wsformat", "--launch", "x", says="--launch")


def test_several_captures_need_a_choice(tmp_path: Path) -> None:
    first, second = cli_case.tables(), cli_case.tables(capture="beef" + "0" * 22, label="again")
    path = tmp_path / "pair.wsformat"
    cli_case.Bundle.from_tables({name: first[name] + second[name] for name in first}).write(path)
    result = CliRunner().invoke(app, ["critical-path", str(path)])
    assert result.exit_code == 2
    assert "holds 2 captures" in result.stderr
    assert "hint: Choose with --capture: again, tiny." in result.stderr
    chosen = CliRunner().invoke(app, ["critical-path", str(path), "--capture", "again", "--json"])
    assert {row["capture_id"] for row in json.loads(chosen.stdout)} == {"beef" + "0" * 22}


def test_validate_ends_with_0_1_or_2(stamps: Path) -> None:
    bundle = stamps / "there.wsformat"
    sound = CliRunner().invoke(app, ["validate", str(bundle), "--json"])
    assert (sound.exit_code, json.loads(sound.stdout)["ok"]) == (0, True)
    quick = CliRunner().invoke(app, ["validate", str(bundle), "--metadata-only", "--json"])
    assert json.loads(quick.stdout)["mode"] == "metadata"
    (bundle / "events.parquet").unlink()
    broken = CliRunner().invoke(app, ["validate", str(bundle)])
    assert broken.exit_code == 1
    assert "events" in broken.stdout
    fails("validate", stamps / "nobody", says="nobody")


def test_an_unexpected_exception_is_one_line(stamps: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def boom(_: Path) -> None:
        raise RuntimeError("first line\nsecond line")

    monkeypatch.setattr(scope, "open_bundle", boom)
    line = fails("states", stamps / "there.wsformat", says="unexpected RuntimeError: first line; second line")
    assert line.count("\n") == 0
    monkeypatch.setenv("WSFORMAT_DEBUG", "1")
    shown = CliRunner().invoke(app, ["states", str(stamps / "there.wsformat")])
    assert isinstance(shown.exception, RuntimeError)


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (PermissionError(13, "Permission denied", "x.wsformat"), "x.wsformat: Permission denied"),
        (OSError(28, "No space left on device"), "No space left on device"),
        (MemoryError(), "not enough memory"),
    ],
)
def test_errors_of_the_system(stamps: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, says: str) -> None:
    def boom(_: Path) -> None:
        raise error

    monkeypatch.setattr(scope, "open_bundle", boom)
    fails("states", stamps / "there.wsformat", says=says)


def test_an_export_onto_a_full_disk_names_the_file(stamps: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from wsformat.converters import perfetto

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(perfetto, "write", full)
    out = stamps / "x.pftrace"
    fails("export", stamps / "there.wsformat", out, says=f"{out}: cannot be written: No space left on device")
    assert not out.exists()


def test_a_warning_is_one_line(stamps: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import warnings

    before = scope.open_bundle

    def warn(path: Path) -> object:
        warnings.warn("written by a newer version\nof the format", UserWarning, stacklevel=1)
        return before(path)

    monkeypatch.setattr(scope, "open_bundle", warn)
    result = CliRunner().invoke(app, ["states", str(stamps / "there.wsformat")])
    assert result.exit_code == 0
    assert result.stderr == "warning: written by a newer version; of the format\n"


def test_one_line_drops_carets() -> None:
    assert failure.one_line("Parser Error: no\n\nLINE 1: SELEC\n        ^") == "Parser Error: no; LINE 1: SELEC"


def test_real_process_error_and_exit_code(stamps: Path) -> None:
    done = real("states", stamps / "nobody")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: {stamps / 'nobody'}: no such bundle\n"
    assert real("states", stamps / "there.wsformat", COLUMNS="20").stdout.count("…") == 0
    assert real("--version").stdout.startswith("wsformat ")
    nothing = real()
    assert nothing.returncode == 2
    assert "Usage" in nothing.stdout + nothing.stderr


def test_names_that_the_terminal_lacks_do_not_end_a_command(tmp_path: Path) -> None:
    cli_case.bundle(label="Größe → 4").write(tmp_path / "x.wsformat")
    done = real("states", tmp_path / "x.wsformat", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 0, done.stderr
    assert "Gr\\xf6\\xdfe" in done.stdout


def test_a_closed_pipe_is_silent(stamps: Path) -> None:
    command = [sys.executable, "-m", "wsformat", "query", str(stamps / "there.wsformat"), "--json"]
    process = subprocess.Popen(
        [*command, "SELECT range AS x, repeat('y', 100) AS y FROM range(200000)"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == "[\n"
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait(60) == failure.PIPE_CLOSED


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_ctrl_c_is_one_line(stamps: Path) -> None:
    query = "SELECT COUNT(*) FROM range(10000000000) a, range(1000) b"
    # Under a shell that runs tests in the background SIGINT is ignored, and the child would inherit that.
    with subprocess.Popen(
        [sys.executable, "-m", "wsformat", "query", str(stamps / "there.wsformat"), query],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        try:
            time.sleep(5)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=30)
        finally:
            process.kill()
    assert (process.returncode, out) == (failure.INTERRUPTED, "")
    assert err == "error: interrupted; nothing was left half-written\n"


@pytest.mark.parametrize(
    "told",
    [
        'Error building "model" validator:\nSchemaError: Field "refs":\nKeyboardInterrupt: ',
        "partially initialized module 'pandas' has no attribute '_pandas_datetime_CAPI'",
    ],
    ids=["in its own words", "swallowed"],
)
def test_ctrl_c_in_the_import_of_a_library_is_no_fault_of_ours(told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As pydantic, and Arrow with pandas, make of it."""

    def interrupted(*_: object) -> None:
        if "pandas" in told:
            interrupt._pressed.set()
        raise AttributeError(told)

    monkeypatch.setattr(interrupt, "_pressed", threading.Event())
    monkeypatch.setattr("wsformat.cli.lake.open_lake", interrupted)
    result = CliRunner().invoke(app, ["lake", "ls", "somewhere"])
    assert (result.exit_code, result.stderr) == (130, "error: interrupted; nothing was left half-written\n")


HEAVY = {"pyarrow", "numpy", "duckdb", "pandas", "jsonschema", "altair", "rich.table", "typer"}


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        ("import wsformat", HEAVY),
        ("import wsformat.cli.main", HEAVY - {"typer"}),
        (
            "import sys; sys.argv = ['wsformat', '--help']\nfrom wsformat.cli.main import main\n"
            "try:\n    main()\nexcept SystemExit:\n    pass",
            HEAVY - {"typer", "rich.table"},
        ),
    ],
)
def test_what_is_not_imported(code: str, absent: set[str]) -> None:
    """Help and errors come at once because nothing heavy is loaded before a command needs it."""
    code += "\nimport sys\nprint('LOADED', *sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.rpartition("LOADED")[2].split())
    assert loaded & absent == set()
    assert "wsformat" in loaded


def test_entry_point() -> None:
    assert callable(main.main)


def test_shells_complete_commands_and_options() -> None:
    for typed, offered in (("wsformat st", "states"), ("wsformat states --ro", "--role")):
        done = real(_WSFORMAT_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS=typed)
        assert offered in done.stdout
        assert "waits" not in done.stdout
