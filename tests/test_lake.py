"""The lake: what goes in comes out, once; what is removed is gone; what is kept is small, and all of it is checked."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import lake_case as case
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from wsformat.bundle import Bundle
from wsformat.derive import run
from wsformat.errors import BadRequest, MalformedInput, OutputExists, UnsupportedVersion
from wsformat.lake import Lake, content
from wsformat.lake import catalog as catalogs
from wsformat.lake.layout import lake_schema, partition_of
from wsformat.lake.query import snapshot
from wsformat.merge import merged
from wsformat.tables import tables
from wsformat.validate.run import validate

SUMMARIES = lake_schema()["summaries"]


@pytest.fixture(scope="module")
def bundles() -> list[Bundle]:
    return case.several(10)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory, bundles: list[Bundle]) -> Lake:
    """Ten captures in two additions, and the samples; read only."""
    folder = tmp_path_factory.mktemp("lake")
    lake = Lake.init(folder / "L")
    first = lake.add(case.written(folder / "in", bundles[:6]))
    assert (first.added, first.present) == (case.ids(bundles[:6]), [])
    lake.add(bundles[6:])
    lake.add([case.SAMPLES / f"{n}.wsformat" for n in ("gemm_perturbation", "ncu_seed_metrics")])
    return lake


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake.init(tmp_path / "L")


def test_every_capture_comes_out_as_it_went_in(filled: Lake, bundles: list[Bundle], tmp_path: Path) -> None:
    for number, bundle in enumerate(bundles[:2] + bundles[8:]):
        (capture,) = case.ids([bundle])
        got = filled.get([capture])
        assert case.same(got, bundle)
        assert list(got.manifest.sources) == list(bundle.manifest.sources)
        report = validate(got.write(tmp_path / f"{number}.wsformat").path)
        assert [p for p in report.problems if p.code[0] == "E"] == []
        again = case.written(tmp_path / f"again{number}", [bundle])[0]
        mine = json.loads((tmp_path / f"{number}.wsformat" / "manifest.json").read_text())["tables"]
        theirs = json.loads((again / "manifest.json").read_text())["tables"]
        assert {n: t["columns"] for n, t in mine.items()} == {n: t["columns"] for n, t in theirs.items()}


def test_a_whole_experiment_comes_out_as_one_valid_bundle(filled: Lake, tmp_path: Path) -> None:
    sample = case.sample("gemm_perturbation")
    stamped = next(r["capture_id"] for r in sample.table("captures").to_pylist() if r["kind"] == "stamped")
    assert filled.get([stamped]).rows("captures") == 1
    got = filled.get([stamped], experiment=True)
    assert case.same(got, sample)
    assert [p for p in validate(got.write(tmp_path / "x.wsformat").path).problems if p.code[0] == "E"] == []


def test_tables_and_views_are_those_of_the_bundles(filled: Lake, bundles: list[Bundle]) -> None:
    whole = [*bundles, case.sample("gemm_perturbation"), case.sample("ncu_seed_metrics")]
    for name in ("events", "lanes", "metrics", "dependencies"):
        expected = sum(bundle.rows(name) for bundle in whole)
        assert filled.sql(f"SELECT COUNT(*) AS n FROM {name}").to_pylist() == [{"n": expected}]
    with merged(whole).duckdb() as connection:
        for view in ("role_state", "wait", "perturbation"):
            mine = filled.sql(f"SELECT * FROM {view}", summaries=False)
            assert mine.num_rows > 0
            assert case.rows(mine) == case.rows(run(connection, f"SELECT * FROM {view}"))


def test_a_condition_on_captures_chooses_and_leaves_out_files(filled: Lake, bundles: list[Bundle]) -> None:
    where = "arch = 'sm_100a' AND label <> 'run 1'"
    chosen = [b for b in bundles if b.table("captures").to_pylist()[0]["label"] in ("run 4", "run 7")]
    found = filled.sql("SELECT DISTINCT capture_id FROM events ORDER BY 1", where=where)
    assert found.column(0).to_pylist() == case.ids(chosen)
    every = snapshot(filled, ["events"]).files["events"]
    some = snapshot(filled, ["events"], where=where).files["events"]
    assert 0 < len(some) < len(every)
    assert {f.arch for f in some} == {"sm_100a"}
    with pytest.raises(BadRequest, match="--where"):
        filled.sql("SELECT 1 FROM events", where="no_such_column = 1")


def test_files_are_in_the_layout_of_the_standard_and_in_partitions(filled: Lake) -> None:
    files = snapshot(filled, ["events"]).files["events"]
    assert {(f.major, f.arch) for f in files} >= {(0, "sm_90a"), (0, "sm_100a"), (0, "unknown")}
    for file in files:
        path = filled.store.path(file.uri)
        assert f"/events/lake_major=0/lake_arch={file.arch}/lake_month={file.month}/add-" in path
        meta = pq.ParquetFile(path)
        column = meta.metadata.row_group(0).column(meta.schema_arrow.names.index("t"))
        assert "DELTA_BINARY_PACKED" in column.encodings
        assert column.compression == "ZSTD"
        assert meta.metadata.metadata is None or b"ARROW:schema" not in meta.metadata.metadata
        assert meta.schema_arrow.names[: len(tables()["events"].names)] == tables()["events"].names
        rows = pq.read_table(path, partitioning=None)
        assert set(rows.column("lake_arch").to_pylist()) == {file.arch}
        assert rows.column("capture_id").to_pylist() == sorted(rows.column("capture_id").to_pylist())


def test_adding_again_changes_nothing(filled: Lake, bundles: list[Bundle]) -> None:
    before = filled.table("captures")[0].metadata_location
    done = filled.add([*bundles[:3], case.SAMPLES / "gemm_perturbation.wsformat"])
    assert done.added == []
    assert len(done.present) == 3 + case.sample("gemm_perturbation").rows("captures")
    assert filled.table("captures")[0].metadata_location == before


def test_the_same_capture_with_other_content_is_refused(filled: Lake, bundles: list[Bundle]) -> None:
    (capture,) = case.ids(bundles[:1])
    events = bundles[0].table("events")
    t = events.column("t").to_pylist()
    t[3], t[5] = t[5], t[3]  # count, sum and xor of the column stay
    other = bundles[0].with_tables({"events": events.set_column(events.column_names.index("t"), "t", pa.array(t))})
    fresh = case.several(1, start=50)
    before = filled.table("captures")[0].metadata_location
    with pytest.raises(BadRequest, match=f"capture {capture} is in the lake with other content"):
        filled.add([*fresh, other])
    assert filled.table("captures")[0].metadata_location == before
    assert filled.sql(
        "SELECT COUNT(*) AS n FROM captures", where=f"capture_id = '{case.ids(fresh)[0]}'"
    ).to_pylist() == [{"n": 0}]


def test_a_capture_in_two_bundles_of_one_addition_is_taken_once(lake: Lake) -> None:
    one, two, three = case.several(3)
    done = lake.add([merged([one, two]), merged([two, three]), one])
    assert sorted(done.added) == case.ids([one, two, three])
    assert sorted(done.present) == case.ids([one, two])
    case.sound(lake)
    assert lake.sql("SELECT COUNT(*) AS n FROM events").to_pylist()[0]["n"] == 3 * one.rows("events")


def test_removed_captures_are_gone_and_can_come_back(lake: Lake, bundles: list[Bundle]) -> None:
    lake.add(bundles[:4])
    gone, *rest = case.ids(bundles[:4])
    assert lake.remove([gone[:10]]) == [gone]
    assert lake.sql("SELECT capture_id FROM captures ORDER BY 1").column(0).to_pylist() == rest
    assert gone not in lake.sql("SELECT DISTINCT capture_id FROM lanes").column(0).to_pylist()
    with pytest.raises(BadRequest, match="no capture"):
        lake.get([gone])
    with pytest.raises(BadRequest, match="no capture"):
        lake.remove([gone])
    case.sound(lake)
    assert lake.add(bundles[:4]).added == [gone]
    case.sound(lake)
    assert lake.sql("SELECT COUNT(*) AS n FROM events").to_pylist() == [
        {"n": sum(b.rows("events") for b in bundles[:4])}
    ]
    # The tombstone of the first addition must not hide the second one, nor its rows come back.
    lake.compact(retention=0)
    case.sound(lake)
    assert lake.sql("SELECT COUNT(*) AS n FROM events").to_pylist() == [
        {"n": sum(b.rows("events") for b in bundles[:4])}
    ]


def test_compaction_joins_files_drops_rows_and_changes_no_answer(lake: Lake, bundles: list[Bundle]) -> None:
    for bundle in bundles[:6]:
        lake.add([bundle])
    (gone,) = lake.remove([case.ids(bundles[:6])[2]])
    lake.summarise()
    queries = ["SELECT * FROM captures", "SELECT * FROM events", "SELECT * FROM wait", "SELECT * FROM role_summary"]
    before = [case.rows(lake.sql(q)) for q in queries]
    done = lake.compact()
    assert done.joined > done.written > 0
    assert done.kept == []
    assert done.swept == 0, "readers may still have the files"
    assert [case.rows(lake.sql(q)) for q in queries] == before
    found = lake.verify()
    assert (found.problems, found.removed, found.orphans) == ([], 0, 0)
    assert found.replaced == done.joined
    parts = {(f.major, f.arch, f.month) for f in lake.table("events")[1]}
    assert len(lake.table("events")[1]) == len(parts)
    held = pa.concat_tables([pq.read_table(lake.store.path(f.uri), partitioning=None) for f in lake.table("events")[1]])
    assert gone not in held.column("capture_id").to_pylist()
    for file in lake.table("events")[1]:
        rows = pq.read_table(lake.store.path(file.uri), partitioning=None).select(tables()["events"].names)
        assert rows.equals(rows.sort_by([(key, "ascending") for key in tables()["events"].sort]))
    swept = lake.compact(retention=0)
    assert swept.swept > done.joined
    assert lake.verify().replaced == 0
    assert [case.rows(lake.sql(q)) for q in queries] == before
    assert lake.compact(retention=0).joined == 0, "there is nothing left to do"


def test_summaries_equal_the_views_row_by_row(filled: Lake) -> None:
    filled.summarise()
    assert filled.summarise() == 0
    for name in [*SUMMARIES, "lifetime_median", "slope", "perturbation"]:
        kept = filled.sql(f"SELECT * FROM {name}")
        live = filled.sql(f"SELECT * FROM {name}", summaries=False)
        assert kept.num_rows > 0
        assert case.rows(kept) == case.rows(live), name
    with filled.duckdb("SELECT * FROM role_summary") as connection:
        assert "events" not in {row[0] for row in connection.execute("SELECT view_name FROM duckdb_views()").fetchall()}


def test_summaries_of_other_views_are_not_used(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.add(case.several(2))
    lake.summarise()
    from wsformat.lake import summaries

    monkeypatch.setattr(summaries, "views_digest", lambda: "another")
    lake.forget()
    assert not summaries.complete(lake)
    assert lake.verify(content=False).without_summaries == 2
    assert lake.summarise() == 2
    assert (
        lake.sql("SELECT COUNT(*) AS n FROM role_summary").to_pylist()
        == lake.sql("SELECT COUNT(*) AS n FROM role_summary", summaries=False).to_pylist()
    )


def test_extensions_come_along(lake: Lake, tmp_path: Path) -> None:
    plain, base = case.several(2)
    (capture,) = case.ids([base])
    lanes = base.table("lanes").append_column("acme__temperature", pa.array([41.5] * base.rows("lanes")))
    table = pa.table({"capture_id": [capture] * 2, "acme__watts": [300, 301], "note": ["a", "b"]})
    entry = {
        "name": "acme.power",
        "version": "1",
        "must_understand": False,
        "tables": ["acme__power"],
        "columns": ["lanes.acme__temperature"],
    }
    rich = Bundle.from_tables(
        {**{n: base.table(n) for n in base.data}, "lanes": lanes, "acme__power": table},
        sources=base.manifest.sources,
        extensions=[entry],
    )
    lake.add([plain])
    lake.add([rich.write(tmp_path / "rich.wsformat").path or ""])
    case.sound(lake)
    got = lake.get([capture])
    assert case.same(got, rich)
    assert list(got.manifest.extensions) == [entry]
    assert [p for p in validate(got.write(tmp_path / "x.wsformat").path).problems if p.code[0] == "E"] == []
    assert case.same(lake.get(case.ids([plain])), plain)
    assert lake.get(case.ids([plain])).table("lanes").column_names == tables()["lanes"].names
    assert lake.sql("SELECT SUM(acme__watts) AS n FROM acme__power").to_pylist() == [{"n": 601}]
    lake.compact(retention=0)
    case.sound(lake)
    assert case.same(lake.get([capture]), rich)


def test_damage_is_named(lake: Lake, bundles: list[Bundle]) -> None:
    lake.add(bundles[:3])
    file = next(f for f in lake.table("events")[1])
    path = Path(lake.store.path(file.uri))
    whole = path.read_bytes()
    rows = pq.read_table(path, partitioning=None)
    t = rows.column("t").to_pylist()
    t[1] += 1
    pq.write_table(rows.set_column(rows.column_names.index("t"), "t", pa.array(t)), path)
    problems = lake.verify().problems
    assert any(str(path) in p and "bytes" in p for p in problems)
    assert sum("its rows are not those that were added" in p for p in problems) == 1
    with pytest.raises(MalformedInput, match="are not those that were added"):
        lake.get([file.least])
    path.unlink()
    assert any(str(path) in p and "missing" in p for p in lake.verify().problems)
    with pytest.raises((MalformedInput, BadRequest), match="events"):
        lake.get([file.least])
    path.write_bytes(whole)
    assert lake.verify().problems == []
    stray = path.with_name("add-06617a30a17a6e541e7a8512c7-0.parquet")
    shutil.copy(path, stray)
    assert lake.verify().orphans == 1
    assert lake.compact().swept == 0
    assert stray.exists(), "its writer may be at work"
    lake.compact(retention=0)
    assert not stray.exists()
    case.sound(lake)


@pytest.mark.parametrize("damage", ["value", "rows", "cut", "missing", "empty"])
def test_a_damaged_bundle_is_refused_and_named(lake: Lake, bundles: list[Bundle], damage: str, tmp_path: Path) -> None:
    paths = case.written(tmp_path / "in", bundles[:3])
    file = paths[1] / "events.parquet"
    rows = pq.read_table(file)
    if damage == "value":
        t = rows.column("t").to_pylist()
        t[7] += 1
        pq.write_table(rows.set_column(rows.column_names.index("t"), "t", pa.array(t)), file)
    elif damage == "rows":
        pq.write_table(rows.slice(1), file)
    elif damage == "cut":
        file.write_bytes(file.read_bytes()[:-20])
    elif damage == "missing":
        file.unlink()
    else:
        pq.write_table(pq.read_table(paths[1] / "captures.parquet").slice(0, 0), paths[1] / "captures.parquet")
    with pytest.raises(MalformedInput, match=r"c0001\.wsformat"):
        lake.add(paths)
    assert catalogs.load(lake.catalog, "captures") is None or lake.verify().captures == 0


def test_places_that_are_no_lake(tmp_path: Path, lake: Lake) -> None:
    with pytest.raises(MalformedInput, match="this is no lake"):
        Lake.open(tmp_path / "nothing")
    with pytest.raises(OutputExists, match="a lake already"):
        Lake.init(tmp_path / "L")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("x")
    with pytest.raises(OutputExists, match="not empty"):
        Lake.init(tmp_path / "full")
    with pytest.raises(BadRequest, match="a secret"):
        Lake.init(tmp_path / "M", properties={"s3.secret-access-key": "x"})
    with pytest.raises(BadRequest, match="SQLite cannot lie in an object store"):
        Lake.init("s3://bucket/x")
    with pytest.raises(BadRequest, match="no file system"):
        Lake.init("nonsense://x")
    file = tmp_path / "L" / "lake.json"
    file.write_text(file.read_text().replace('"version": "1"', '"version": "7"'))
    with pytest.raises(UnsupportedVersion, match="7"):
        Lake.open(tmp_path / "L")


def test_a_lake_can_be_moved_and_copied(lake: Lake, bundles: list[Bundle], tmp_path: Path) -> None:
    """Iceberg's names stay those of the place of its making; every access goes where the lake lies."""
    lake.add(bundles[:2])
    shutil.copytree(tmp_path / "L", tmp_path / "copy")
    shutil.move(tmp_path / "L", tmp_path / "B x")
    moved = Lake.open(tmp_path / "B x")
    case.sound(moved)
    moved.add(bundles[2:3])
    moved.summarise()
    moved.remove(case.ids(bundles[:1]))
    moved.compact(retention=0)
    case.sound(moved)
    shutil.move(tmp_path / "B x", tmp_path / "C")
    again = Lake.open(tmp_path / "C")
    assert again.add(bundles[:1]).added == case.ids(bundles[:1])
    found = again.verify()
    assert (found.captures, found.checked, found.problems, found.orphans) == (3, 3, [], 0)
    assert case.same(again.get(case.ids(bundles[2:3])), bundles[2])
    assert not any(str(tmp_path / "L") in again.store.path(f.uri) for f in again.table("events")[1])
    assert not (tmp_path / "L").exists(), "nothing is written at the old place"
    copy = Lake.open(tmp_path / "copy")
    case.sound(copy)
    assert copy.sql("SELECT COUNT(*) AS n FROM captures").to_pylist() == [{"n": 2}]
    shutil.move(tmp_path / "C", tmp_path / "L")
    case.sound(Lake.open(tmp_path / "L"))


def test_a_moved_lake_whose_catalog_is_elsewhere_says_so(tmp_path: Path) -> None:
    lake = Lake.init(tmp_path / "L", catalog=f"sqlite:///{tmp_path}/catalog.sqlite")
    lake.add(case.several(1))
    shutil.move(tmp_path / "L", tmp_path / "M")
    with pytest.raises(MalformedInput, match=r"was made at .*/L, and its catalog sqlite.* knows it there"):
        Lake.open(tmp_path / "M")
    shutil.move(tmp_path / "M", tmp_path / "L")
    case.sound(Lake.open(tmp_path / "L"))
    file = tmp_path / "L" / "lake.json"
    other = Lake.init(tmp_path / "N", catalog=f"sqlite:///{tmp_path}/other.sqlite")
    other.add(case.several(1))
    file.write_text(file.read_text().replace("catalog.sqlite", "other.sqlite"))
    with pytest.raises(MalformedInput, match=r"its catalog is that of a lake at .*/N"):
        Lake.open(tmp_path / "L").sql("SELECT * FROM captures")


def test_bundles_with_other_columns_are_added_in_one_go(lake: Lake, tmp_path: Path) -> None:
    """What a bundle has beside the standard's columns comes along, also when the first bundle lacks it."""
    plain, base, last = case.several(3)
    lanes = base.table("lanes").append_column("acme__note", pa.array(["warm"] * base.rows("lanes")))
    rich = Bundle.from_tables({**{n: base.table(n) for n in base.data}, "lanes": lanes})
    lake.add(case.written(tmp_path / "in", [plain, rich, last]))
    found = lake.sql("SELECT acme__note AS note, COUNT(*) AS n FROM lanes GROUP BY 1 ORDER BY 1").to_pylist()
    assert found == [
        {"note": "warm", "n": base.rows("lanes")},
        {"note": None, "n": plain.rows("lanes") + last.rows("lanes")},
    ]
    case.sound(lake)


def test_an_empty_lake_answers(lake: Lake) -> None:
    assert lake.sql("SELECT * FROM captures").num_rows == 0
    assert lake.sql("SELECT * FROM role_summary").num_rows == 0
    assert lake.verify().captures == 0
    assert lake.summarise() == 0
    assert lake.compact().joined == 0
    with pytest.raises(BadRequest, match="holds no capture"):
        lake.get(["x"])


@pytest.mark.parametrize(
    ("arch", "created", "folder"),
    [
        ("sm_90a", 1_777_777_777 * 10**9, "lake_major=0/lake_arch=sm_90a/lake_month=2026-05"),
        ("", -1, "lake_major=0/lake_arch=unknown/lake_month=unknown"),
        ("a/../b c", 0, "lake_major=0/lake_arch=a%2F..%2Fb%20c/lake_month=1970-01"),
    ],
)
def test_partitions(arch: str, created: int, folder: str) -> None:
    assert partition_of("0.1", arch, created).folder == folder


def test_content_digest_sees_every_change_and_no_order() -> None:
    base = case.sample("cute_pipeline")
    data = {name: base.table(name) for name in base.data}
    (digest,) = content.digests(data).values()
    turned = {name: table.take(pa.array(range(table.num_rows - 1, -1, -1))) for name, table in data.items()}
    assert list(content.digests(turned).values()) == [digest]
    seen = {digest}
    for name, table in data.items():
        for field in table.schema:
            if field.name == "capture_id":
                continue
            values = table.column(field.name).to_pylist()
            other = {"int32": 77, "int64": 77, "double": 0.25, "bool": not values[0], "string": "other"}[
                str(field.type)
            ]
            edited = table.set_column(
                table.column_names.index(field.name), field, pa.array([other, *values[1:]], field.type)
            )
            (new,) = content.digests({**data, name: edited}).values()
            assert new not in seen, (name, field.name)
            seen.add(new)
    dictionary = {n: t.set_column(0, "capture_id", t.column(0).dictionary_encode()) for n, t in data.items()}
    assert list(content.digests(dictionary).values()) == [digest]
    more = data["roles"].append_column("later", pa.array([-1] * data["roles"].num_rows))
    assert list(content.digests({**data, "roles": more}).values()) == [digest], "a column that holds only its default"
