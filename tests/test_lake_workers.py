"""An addition by several processes: the same lake as by one, whatever becomes of the helpers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import lake_case as case
import pytest
from typer.testing import CliRunner

from wsformat.bundle import Bundle
from wsformat.cli.main import app
from wsformat.errors import BadRequest, MalformedInput, NewerMinorWarning, WsformatError
from wsformat.lake import Lake, workers
from wsformat.merge import merge

COUNT = 6
FEW = 4
HANGS = 20.0
"""Seconds after which something hangs; a busy machine takes less."""
WORK = """
import sys, threading
from wsformat.lake import workers
workers.LEAST = workers.MOST = 2
real, hear = workers._next, workers._Helper._take
def take(helper, answer):
    print(helper.process.pid, flush=True)
    hear(helper, answer)
def turn(waiting):
    if threading.current_thread() is threading.main_thread():
        threading.Event().wait(30)  # so that the helper is at work meanwhile, and afterwards
    return real(waiting)
workers._next, workers._Helper._take = turn, take
from wsformat.cli.main import main
main()
"""
"""The command, which prints its helper's number after its first share and takes none itself."""


@pytest.fixture(scope="module")
def bundles() -> list[Bundle]:
    return case.several(COUNT)


@pytest.fixture(scope="module")
def paths(bundles: list[Bundle], tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return [str(path) for path in case.written(tmp_path_factory.mktemp("in"), bundles)]


@pytest.fixture(autouse=True)
def small_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "LEAST", 2)
    monkeypatch.setattr(workers, "MOST", 2)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every helper that is started; each has its turn before this process takes the next share."""
    found: list[Any] = []
    ready = threading.Event()
    real, take = workers._Helper._hear, workers._next

    def hear(helper: Any) -> Any:
        answer = real(helper)
        found.append(helper.process)
        ready.set()
        return answer

    def turn(waiting: Any) -> Any:
        if threading.current_thread() is threading.main_thread():
            ready.wait(30)
        return take(waiting)

    monkeypatch.setattr(workers._Helper, "_hear", hear)
    monkeypatch.setattr(workers, "_next", turn)
    return found


def leave_all_to_helpers(monkeypatch: pytest.MonkeyPatch) -> None:
    real = workers._next

    def turn(waiting: Any) -> Any:
        if threading.current_thread() is not threading.main_thread():
            return real(waiting)
        case.wait_for(lambda: waiting.empty() or not any(t.name.endswith("helper") for t in threading.enumerate()))
        return None

    monkeypatch.setattr(workers, "_next", turn)


def holds_all(lake: Lake, bundles: list[Bundle]) -> None:
    case.sound(lake)
    assert lake.sql("SELECT capture_id FROM captures ORDER BY 1").column(0).to_pylist() == case.ids(bundles)
    rows = sum(bundle.rows("events") for bundle in bundles)
    assert lake.sql("SELECT COUNT(*) AS n FROM events").to_pylist() == [{"n": rows}]


def test_several_processes_make_the_same_lake_as_one(
    tmp_path: Path, bundles: list[Bundle], paths: list[str], started: list[Any]
) -> None:
    lake, alone = Lake.init(tmp_path / "L"), Lake.init(tmp_path / "one")
    seen: list[tuple[str, int, int]] = []
    done = lake.add(paths, processes=3, progress=lambda *step: seen.append(step))
    expected = alone.add(paths, processes=1)
    assert len({process.pid for process in started}) == 2
    assert sorted(done.added) == sorted(expected.added) == case.ids(bundles)
    assert (done.present, done.stamps) == ([], expected.stamps)
    assert done.files > expected.files
    assert seen[-1] == ("bundles", COUNT, COUNT)
    assert [step[1] for step in seen] == sorted(step[1] for step in seen)
    holds_all(lake, bundles)
    for table in ("captures", "lanes", "events", "attributes"):
        sql = f"SELECT * EXCLUDE (lake_add, lake_added_unix_ns) FROM {table} ORDER BY ALL"
        sql = sql if table == "captures" else f"SELECT * FROM {table} ORDER BY ALL"
        assert lake.sql(sql).to_pylist() == alone.sql(sql).to_pylist(), table
    again = lake.add(paths, processes=3)
    assert (again.added, sorted(again.present), again.files) == ([], case.ids(bundles), 0)


def test_a_capture_in_shares_of_two_processes_is_taken_once(
    tmp_path: Path, bundles: list[Bundle], paths: list[str], started: list[Any]
) -> None:
    lake = Lake.init(tmp_path / "L")
    done = lake.add([*paths, *reversed(paths)], processes=2)
    assert started
    assert sorted(done.added) == sorted(done.present) == case.ids(bundles)
    holds_all(lake, bundles)


def test_a_damaged_bundle_in_a_helpers_share_is_named_and_the_others_batches_stay(
    tmp_path: Path, bundles: list[Bundle], paths: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """This process takes no share, so that the error comes from a helper."""
    lake = Lake.init(tmp_path / "L")
    bad = tmp_path / "bad.wsformat"
    bundles[0].write(bad)
    (bad / "events.parquet").write_bytes(b"PAR1 no more PAR1")
    leave_all_to_helpers(monkeypatch)
    with pytest.raises(MalformedInput, match=r"bad\.wsformat") as caught:
        lake.add([*paths[:2], str(bad), *paths[1:]], processes=2)
    assert caught.value.hint
    held = lake.sql("SELECT capture_id FROM captures ORDER BY 1").column(0).to_pylist()
    assert held == case.ids(bundles[:2]), "the share before it, and none after it"
    case.sound(lake)


def test_what_a_helper_remarks_on_is_said_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This process takes no share; all bundles are of a newer minor version."""
    bundles = case.several(4)
    paths = case.written(tmp_path / "in", bundles)
    for path in paths:
        file = path / "manifest.json"
        file.write_text(file.read_text().replace('"version": "0.1"', '"version": "0.9"', 1))
    leave_all_to_helpers(monkeypatch)
    lake = Lake.init(tmp_path / "L")
    with pytest.warns(NewerMinorWarning) as caught:
        done = lake.add([str(path) for path in paths], processes=2)
    assert sorted(done.added) == case.ids(bundles)
    said = {str(one.message) for one in caught}
    assert all(any(str(path) in text for text in said) for path in paths), said


def test_other_content_under_the_same_id_is_refused(
    tmp_path: Path, bundles: list[Bundle], paths: list[str], started: list[Any]
) -> None:
    lake = Lake.init(tmp_path / "L")
    base, capture = case.sample("cute_pipeline"), case.ids(bundles)[3]
    other = case.changed(base, capture, shift=7).write(tmp_path / "other.wsformat")
    assert other.path is not None
    lake.add([str(other.path)])
    with pytest.raises(BadRequest, match=f"{capture} is in the lake with other content"):
        lake.add(paths, processes=3)
    case.sound(lake)


@pytest.mark.parametrize("end", ["Ctrl-C", "Ctrl-C while it stands still", "kill -9"])
def test_no_helper_outlives_the_command(tmp_path: Path, bundles: list[Bundle], paths: list[str], end: str) -> None:
    lake = Lake.init(tmp_path / "L")
    task = case.process(WORK, "lake", "add", str(tmp_path / "L"), *paths[:FEW], "--processes", "2")
    assert task.stdout is not None
    helper = int(task.stdout.readline())
    if "still" in end:
        os.kill(helper, signal.SIGSTOP)
    if end.startswith("Ctrl-C"):
        os.killpg(task.pid, signal.SIGINT)  # as a terminal does
    else:
        task.send_signal(signal.SIGKILL)
    start = time.monotonic()
    _, said = task.communicate()
    if end.startswith("Ctrl-C"):
        assert task.returncode == 130
        assert said == "error: interrupted; nothing was left half-written\n"
        assert time.monotonic() - start < HANGS
    else:
        assert said == ""
    case.wait_for(lambda: not _runs(helper), HANGS)
    case.sound(lake)
    done = lake.add(paths[:FEW], processes=1)
    assert sorted(done.added + done.present) == case.ids(bundles[:FEW])
    assert len(done.present) >= 2
    lake.compact(retention=0)
    found = lake.verify()
    assert (found.captures, found.problems, found.unfinished, found.orphans) == (FEW, [], 0, 0)


def test_no_helper_outlives_an_addition_that_is_interrupted_in_a_program_that_goes_on(
    tmp_path: Path, paths: list[str], started: list[Any]
) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    lake = Lake.init(tmp_path / "L")
    with pytest.raises(KeyboardInterrupt):
        lake.add(paths, processes=3, progress=interrupted)
    assert not [thread for thread in threading.enumerate() if thread.name == "wsformat-lake-helper"]
    assert started
    assert all(process.returncode is not None for process in started)
    case.sound(lake)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout
    return not state.startswith("Z")  # nobody may be there to collect it


def test_a_helper_runs_no_file_of_the_working_directory_and_may_print(
    tmp_path: Path, bundles: list[Bundle], paths: list[str], started: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("json", "sys", "queue", "pyarrow", "wsformat"):
        (tmp_path / f"{name}.py").write_text("open('ran', 'w').close()\n")
    (tmp_path / "start").mkdir()
    (tmp_path / "start" / "sitecustomize.py").write_text("print('hello')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "start"))
    lake = Lake.init(tmp_path / "L")
    assert sorted(lake.add(paths, processes=2).added) == case.ids(bundles)
    assert started
    assert not (tmp_path / "ran").exists()


def test_no_helper_where_only_this_process_knows_the_catalog(
    tmp_path: Path, bundles: list[Bundle], paths: list[str], started: list[Any]
) -> None:
    lake = Lake.init(tmp_path / "L", catalog="sqlite:///:memory:")
    assert sorted(lake.add(paths[:FEW], processes=3).added) == case.ids(bundles[:FEW])
    assert not started
    assert lake.sql("SELECT capture_id FROM captures ORDER BY 1").column(0).to_pylist() == case.ids(bundles[:FEW])


def test_a_full_disk_that_a_helper_meets_is_said_here(
    tmp_path: Path, paths: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake.init(tmp_path / "L")
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1500, 1500)); "
    monkeypatch.setattr(workers, "START", limit + workers.START)
    leave_all_to_helpers(monkeypatch)
    with pytest.raises(WsformatError, match=r"cannot be (made|written): File too large"):
        lake.add(paths, processes=2)
    assert lake.verify().captures == 0
    case.sound(lake)


@pytest.mark.parametrize("fate", ["killed at work", "killed at once", "no Python", "hangs", "a fault of ours"])
def test_what_a_helper_cannot_do_is_done_here(
    tmp_path: Path, bundles: list[Bundle], paths: list[str], fate: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake.init(tmp_path / "L")
    real, killed = workers._Helper._say, []

    def say(helper: Any, what: Any) -> None:
        real(helper, what)
        if (isinstance(what, list) and what and what[0] in paths) if fate == "killed at work" else True:
            killed.append(helper.process.pid)
            helper.process.kill()

    if fate.startswith("killed"):
        monkeypatch.setattr(workers._Helper, "_say", say)
    elif fate == "hangs":
        monkeypatch.setattr(workers, "START", "while True: print('what?')")
    elif fate == "no Python":
        monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    else:
        monkeypatch.setattr(workers, "START", "import sys; sys.stdin.readline(); print('what?')")
    if fate == "killed at work":
        # Nothing is left for this process until the helper has taken, and dropped, a share.
        waited = threading.Event()
        take = workers._next

        def turn(waiting: Any) -> Any:
            if threading.current_thread() is threading.main_thread() and not waited.is_set():
                for _ in range(300):
                    if killed or waited.wait(0.1):
                        break
                waited.set()
            return take(waiting)

        monkeypatch.setattr(workers, "_next", turn)
    done = lake.add(paths[:FEW], processes=2)
    assert sorted(done.added) == case.ids(bundles[:FEW])
    assert bool(killed) == fate.startswith("killed")
    holds_all(lake, bundles[:FEW])


def test_progress_counts_bundles_and_not_their_captures(
    tmp_path: Path, bundles: list[Bundle], paths: list[str]
) -> None:
    both = merge([Bundle.open(path) for path in paths[:2]], tmp_path / "both.wsformat")
    seen: list[tuple[str, int, int]] = []
    lake = Lake.init(tmp_path / "L")
    done = lake.add([both, bundles[2], paths[2]], progress=lambda *step: seen.append(step))
    assert (done.bundles, len(done.added), len(done.present)) == (3, 3, 1)
    assert seen == [("bundles", 2, 3), ("bundles", 3, 3)]


def test_no_helper_for_few_bundles_or_those_in_memory(
    tmp_path: Path, bundles: list[Bundle], paths: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*_: Any) -> None:
        raise AssertionError("a helper was started")

    monkeypatch.setattr(workers, "add_with_helpers", none)
    lake = Lake.init(tmp_path / "L")
    assert len(lake.add(bundles, processes=4).added) == COUNT
    monkeypatch.setattr(workers, "LEAST", COUNT)
    assert len(lake.add(paths, processes=4).present) == COUNT


@pytest.mark.parametrize(
    ("bundles", "wanted", "expected"), [(0, None, 1), (499, 8, 1), (500, 8, 2), (10_000, 8, 8), (10_000, 1, 1)]
)
def test_how_many_processes(bundles: int, wanted: int | None, expected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "LEAST", 250)
    assert workers.processes(bundles, wanted) == expected


def test_one_process_where_python_is_a_part_of_another_program(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sys, "frozen", True, raising=False)
        assert workers.processes(10_000, 8) == 1
    for none in ("", None):
        monkeypatch.setattr(sys, "executable", none)
        assert workers.processes(10_000, 8) == 1


@pytest.mark.parametrize(("bundles", "count"), [(500, 2), (1500, 2), (2001, 2), (10_000, 2), (10_000, 3), (10_007, 4)])
def test_shares_are_equal_and_complete(bundles: int, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "LEAST", 250)
    monkeypatch.setattr(workers, "MOST", 1000)
    names = [str(n) for n in range(bundles)]
    found = workers.shares(names, count)
    assert [name for share in found for name in share] == names
    sizes = [len(share) for share in found]
    assert max(sizes) <= 1000
    assert len(found) % count == 0 or bundles <= count * 250
    assert max(sizes) - min(sizes) < len(found) + count


def test_the_command_takes_a_number_of_processes(tmp_path: Path, paths: list[str]) -> None:
    Lake.init(tmp_path / "L")
    said = CliRunner().invoke(app, ["lake", "add", str(tmp_path / "L"), *paths, "--processes", "2", "--json"])
    assert said.exit_code == 0, said.output
    assert f'"stamps": {sum(Bundle.open(p).rows("events") for p in paths)}' in said.output
    said = CliRunner().invoke(app, ["lake", "add", str(tmp_path / "L"), *paths, "--processes", "0"])
    assert said.exit_code == 2
