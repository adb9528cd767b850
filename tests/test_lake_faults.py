"""The lake under fire: many writers at once, killed writers, a full disk, readers during compaction."""

from __future__ import annotations

import random
import resource
import time
from pathlib import Path

import lake_case as case
import pytest

from wsformat.errors import WsformatError
from wsformat.lake import Lake
from wsformat.lake import add as adding
from wsformat.lake import catalog as catalogs
from wsformat.lake.catalog import CommitConflict
from wsformat.lake.query import snapshot

INDEX_COMMIT = 99
"""The last commit of an addition, whatever its number is."""
ADD = """
import sys
from wsformat.lake import Lake
lake = Lake.open(sys.argv[1])
print("ready", flush=True)
for path in sys.argv[2:]:
    done = lake.add([path])
    print(len(done.added), len(done.present), flush=True)
"""
LIMITED = (
    "import resource, sys\nlimit = int(sys.argv.pop(1))\nresource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))\n"
)


def test_many_writers_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    """Three processes add overlapping sets one by one, while this one reads, removes and compacts."""
    lake = Lake.init(tmp_path / "L")
    bundles = case.several(8)
    paths = [str(p) for p in case.written(tmp_path / "in", bundles)]
    shares = (paths[:5], paths[2:7], [paths[7], *paths[:3]])
    tasks = [case.process(ADD, str(tmp_path / "L"), *share) for share in shares]
    counted = 0
    while any(task.poll() is None for task in tasks):
        events = lake.sql("SELECT capture_id, COUNT(*) AS n FROM events GROUP BY ALL").to_pylist()
        assert {row["n"] for row in events} <= {bundles[0].rows("events")}, "half a capture was seen, or one twice"
        assert len(events) >= counted, "a capture vanished"
        counted = len(events)
        time.sleep(0.2)
    outputs = [task.communicate() for task in tasks]
    assert [task.returncode for task in tasks] == [0, 0, 0], outputs
    added = sum(int(line.split()[0]) for out, _ in outputs for line in out.splitlines() if line != "ready")
    present = sum(int(line.split()[1]) for out, _ in outputs for line in out.splitlines() if line != "ready")
    assert (added, present) == (8, 6)
    case.sound(lake)
    assert lake.sql("SELECT capture_id FROM captures ORDER BY 1").column(0).to_pylist() == case.ids(bundles)


def test_whoever_loses_the_race_for_a_capture_adds_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another writer puts one of the captures into the index after ours was written, before ours is committed."""
    lake, rival = Lake.init(tmp_path / "L"), Lake.open(tmp_path / "L")
    bundles = case.several(3)
    real, raced = adding.write_batch, []

    def slow(mine: Lake, staged: adding.Staged) -> adding.Written:
        written = real(mine, staged)
        if mine is lake and not raced:
            raced.append(True)
            rival.add(bundles[:1])
        return written

    monkeypatch.setattr(adding, "write_batch", slow)
    done = lake.add(bundles)
    assert raced
    assert done.added == case.ids(bundles[1:])
    assert done.present == case.ids(bundles[:1])
    found = lake.verify()
    assert (found.captures, found.problems) == (3, [])
    assert found.unfinished > 0, "what lost the race does not count"
    assert lake.sql("SELECT COUNT(*) AS n FROM events").to_pylist()[0]["n"] == sum(b.rows("events") for b in bundles)
    lake.compact(retention=0)
    found = lake.verify()
    assert (found.captures, found.problems, found.unfinished, found.orphans) == (3, [], 0, 0)


def test_killed_writers_leave_nothing_half_visible(tmp_path: Path) -> None:
    """kill -9 at random moments of an addition; each time the lake is whole, and at last everything is in it once."""
    lake = Lake.init(tmp_path / "L")
    bundles = case.several(4)
    paths = [str(p) for p in case.written(tmp_path / "in", bundles)]
    rng = random.Random(7)
    kills = 0
    for _ in range(6):
        task = case.process(ADD, str(tmp_path / "L"), *paths)
        assert task.stdout is not None
        assert task.stdout.readline() == "ready\n"
        time.sleep(rng.uniform(0.05, 2.5))
        kills += task.poll() is None
        case.kill(task)
        found = lake.verify()
        assert found.problems == []
        assert found.checked == found.captures
        assert lake.sql("SELECT COUNT(*) AS n FROM events").to_pylist() == [
            {"n": found.captures * bundles[0].rows("events")}
        ]
    assert kills >= 2, "the machine is too quick for this test"
    lake.add(paths)
    lake.compact(retention=0)
    found = lake.verify()
    assert (found.captures, found.problems, found.unfinished, found.orphans) == (4, [], 0, 0)


@pytest.mark.parametrize("step", [0, 4, 8, INDEX_COMMIT])
def test_a_writer_that_dies_at_any_commit_is_as_if_it_had_never_been(
    tmp_path: Path, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake.init(tmp_path / "L")
    first, second = case.several(2)
    lake.add([first])
    real, calls = catalogs.commit, []

    def dying(*args: object, **options: object) -> None:
        calls.append(args)
        if len(calls) > step or (step == INDEX_COMMIT and args[1] == "captures"):
            raise KeyboardInterrupt
        real(*args, **options)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(catalogs, "commit", dying)
        with pytest.raises(KeyboardInterrupt):
            lake.add([second])
    assert lake.sql("SELECT capture_id FROM captures").column(0).to_pylist() == case.ids([first])
    assert lake.sql("SELECT DISTINCT capture_id FROM events").column(0).to_pylist() == case.ids([first])
    found = lake.verify(content=False)
    assert found.problems == []
    assert lake.add([second]).added == case.ids([second])
    assert lake.sql("SELECT COUNT(*) AS n FROM lanes").to_pylist() == [
        {"n": first.rows("lanes") + second.rows("lanes")}
    ]


@pytest.mark.parametrize("limit", [1_500, 3_600, 5_000])
def test_a_full_disk_is_one_clear_line_and_changes_nothing(tmp_path: Path, limit: int) -> None:
    """No file may grow beyond the limit: data files, Iceberg's own files, or the catalog fail in turn."""
    lake = Lake.init(tmp_path / "L")
    first, second = case.several(2)
    lake.add([first])
    paths = case.written(tmp_path / "in", [second])
    task = case.process(LIMITED + ADD, str(limit), str(tmp_path / "L"), str(paths[0]))
    _, problem = task.communicate()
    assert task.returncode != 0
    assert "File too large" in problem or "disk" in problem, problem
    assert "WsformatError" in problem or "BadRequest" in problem, problem
    found = lake.verify()
    assert (found.captures, found.problems) == (1, [])
    assert lake.add(paths).added == case.ids([second])
    case.sound(lake)
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != limit


def test_readers_keep_their_files_during_compaction(tmp_path: Path) -> None:
    lake, keeper = Lake.init(tmp_path / "L"), Lake.open(tmp_path / "L")
    bundles = case.several(8)[1::3]  # of one partition
    for bundle in bundles:
        lake.add([bundle])
    with lake.duckdb("SELECT * FROM events") as reader:
        held = snapshot(lake, ["events"]).files["events"]
        keeper.remove([case.ids(bundles)[0]])
        keeper.compact()
        keeper.compact()
        assert all(Path(lake.store.path(file.uri)).exists() for file in held)
        assert reader.execute("SELECT COUNT(DISTINCT capture_id) FROM events").fetchall() == [(3,)]
    assert lake.sql("SELECT COUNT(DISTINCT capture_id) AS n FROM events").to_pylist() == [{"n": 2}]


def test_a_removal_and_a_compaction_between_index_and_tables_are_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index says three captures, then one is removed and compacted away before the tables are looked at."""
    lake, keeper = Lake.init(tmp_path / "L"), Lake.open(tmp_path / "L")
    bundles = case.several(3)
    lake.add(bundles)
    real, done = Lake.table, []

    def interrupted(self: Lake, name: str) -> object:
        if self is lake and name == "events" and not done:
            done.append(True)
            keeper.remove([case.ids(bundles)[0]])
            keeper.compact()
        return real(self, name)

    monkeypatch.setattr(Lake, "table", interrupted)
    found = lake.sql(
        "SELECT c.capture_id, COUNT(e.t) AS n FROM captures c LEFT JOIN events e USING (capture_id) GROUP BY 1"
    )
    assert done
    assert {row["n"] for row in found.to_pylist()} == {bundles[0].rows("events")}
    assert found.num_rows == 2


def test_two_compactions_at_once_do_the_work_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake, other = Lake.init(tmp_path / "L"), Lake.open(tmp_path / "L")
    bundles = case.several(8)[1::3]  # of one partition
    for bundle in bundles:
        lake.add([bundle])
    real, done, started = catalogs.commit, [], []

    def raced(*args: object, **options: object) -> None:
        if not started:
            started.append(True)
            done.append(other.compact())
        real(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(catalogs, "commit", raced)
    mine = lake.compact()
    assert done
    assert mine.kept, "what the other one did first is left alone"
    assert lake.sql("SELECT COUNT(*) AS n FROM events").to_pylist() == [{"n": sum(b.rows("events") for b in bundles)}]
    case.sound(lake)


def test_a_busy_catalog_is_waited_for_and_a_dead_one_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    class OperationalError(Exception):
        pass

    tries = []

    def busy() -> str:
        tries.append(1)
        if len(tries) < 4:
            raise OperationalError("database is locked")
        return "done"

    assert catalogs.patiently(busy) == "done"
    with pytest.raises(WsformatError, match="busy"):
        catalogs.patiently(lambda: (_ for _ in ()).throw(OperationalError("database is locked")), seconds=0.1)


def test_an_addition_that_took_too_long_gives_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep may have taken its files for those of a dead writer."""
    lake = Lake.init(tmp_path / "L")
    real = adding.write_batch

    def late(mine: Lake, staged: adding.Staged) -> adding.Written:
        written = real(mine, staged)
        old = f"{int((time.time() - 50_000) * 1e6):014x}"
        return adding.Written(old + written.add[14:], *[getattr(written, n) for n in list(written.__dict__)[1:]])

    monkeypatch.setattr(adding, "write_batch", late)
    with pytest.raises(WsformatError, match="longer than the sweep waits"):
        lake.add(case.several(1))
    assert lake.sql("SELECT * FROM captures").num_rows == 0


def test_conflicts_are_tried_again_from_the_new_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake, rival = Lake.init(tmp_path / "L"), Lake.open(tmp_path / "L")
    bundles = case.several(2)
    real, raced = adding.commit_index, []

    def first(mine: Lake, table: object, written: adding.Written) -> None:
        if mine is lake and not raced:
            raced.append(True)
            rival.add(bundles[1:])
            with pytest.raises(CommitConflict):
                real(mine, table, written)
            raise CommitConflict("as it would")
        real(mine, table, written)

    monkeypatch.setattr(adding, "commit_index", first)
    assert lake.add(bundles[:1]).added == case.ids(bundles[:1])
    found = lake.verify()
    assert (found.captures, found.problems, found.unfinished) == (2, [], 0)
