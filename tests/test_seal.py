"""Sealing what other libraries rewrote: everything that can be put back is, anything that loses a value is refused."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from wsformat.bundle import Bundle
from wsformat.errors import InvalidBundle, MalformedInput, OutputExists
from wsformat.seal import seal
from wsformat.tables import format_version
from wsformat.validate import validate

VALID = Path(__file__).parents[1] / "conformance" / "valid"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A copy of a bundle with every table."""
    target = tmp_path / "x.wsformat"
    shutil.copytree(VALID / "every_table.wsformat", target)
    return target


def with_pandas(path: Path) -> None:
    frame = pd.read_parquet(path).iloc[::-1]
    frame["capture_id"] = frame["capture_id"].astype("category")
    frame.to_parquet(path)


def with_pandas_filtered(path: Path) -> None:
    frame = pd.read_parquet(path)
    frame[frame["capture_id"] != ""].sort_values(list(frame.columns[:2]), ascending=False).to_parquet(path)


def with_polars(path: Path) -> None:
    frame = (
        pl.read_parquet(path)
        .reverse()
        .with_columns(pl.col(pl.Int32).cast(pl.Int64), pl.col("capture_id").cast(pl.Categorical))
    )
    frame.write_parquet(path)


def with_duckdb(path: Path) -> None:
    held = path.with_suffix(".new")
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT * FROM read_parquet('{path}') ORDER BY ALL DESC) "
            f"TO '{held}' (FORMAT parquet, PARQUET_VERSION v2)"
        )
    held.replace(path)


@pytest.mark.parametrize("rewrite", [with_pandas, with_pandas_filtered, with_polars, with_duckdb])
def test_a_bundle_rewritten_by_another_library_is_sealed_again(root: Path, rewrite: Callable[[Path], None]) -> None:
    before = Bundle.open(VALID / "every_table.wsformat")
    for path in sorted(root.glob("*.parquet")):
        rewrite(path)
    assert "E104" in validate(root).codes
    sealed = seal(root)
    report = validate(root)
    assert report.clean, report.text()
    assert report.codes == []
    for name in before.data:
        assert sealed.bundle.table(name).equals(before.table(name)), name
        assert sealed.bundle.manifest.tables[name]["columns"] == before.manifest.tables[name]["columns"]
    assert sealed.bundle.manifest.sources == before.manifest.sources
    assert sealed.notes
    assert sorted(p.name for p in root.parent.iterdir()) == [root.name]


def change(root: Path, name: str, column: str, new: Callable[[Any], Any]) -> None:
    rows = pq.ParquetFile(root / f"{name}.parquet").read()
    pq.write_table(
        rows.set_column(rows.column_names.index(column), column, new(rows.column(column))), root / f"{name}.parquet"
    )


def cast(kind: pa.DataType) -> Callable[[Any], Any]:
    return lambda column: column.cast(kind, safe=False)


def plus(number: Any) -> Callable[[Any], Any]:
    return lambda column: pc.add(column, number)


@pytest.mark.parametrize(
    ("name", "column", "new", "note"),
    [
        ("events", "iteration", cast(pa.float64()), "events.iteration: double brought back to INT32"),
        ("events", "lane", cast(pa.uint8()), "events.lane: uint8 brought back to INT32"),
        ("events", "role", cast(pa.large_string()), ""),
        ("spans", "complete", cast(pa.int8()), "spans.complete: int8 brought back to BOOLEAN"),
        ("predictions", "work", cast(pa.float32()), "predictions.work: float brought back to DOUBLE"),
    ],
)
def test_widened_types_come_back(root: Path, name: str, column: str, new: Any, note: str) -> None:
    change(root, name, column, new)
    sealed = seal(root)
    assert validate(root).clean
    assert sealed.bundle.table(name).equals(Bundle.open(VALID / "every_table.wsformat").table(name))
    assert list(sealed.notes) == ([note] if note else [])


@pytest.mark.parametrize(
    ("name", "column", "new", "message"),
    [
        ("spans", "t0", cast(pa.float64()), r"t0: was turned into double, which does not hold values above 2\^53"),
        ("events", "iteration", lambda c: plus(0.5)(c.cast(pa.float64())), "iteration: double does not fit INT32"),
        ("events", "iteration", lambda c: plus(2**40)(c.cast(pa.int64())), "iteration: int64 does not fit INT32"),
        ("events", "t", lambda c: pa.nulls(len(c), pa.int64()), "t: 24 values are null, which INT64 may not be"),
        ("events", "event", lambda c: pa.nulls(len(c), pa.string()), "event: 24 values are null"),
        ("events", "t", cast(pa.string()), "t: is string, INT64 is needed"),
        ("events", "t", lambda c: c.cast(pa.timestamp("ns")), "t: is timestamp.*, INT64 is needed"),
        ("spans", "complete", lambda c: plus(1)(c.cast(pa.int8())), "complete: holds numbers other than 0 and 1"),
        ("events", "event", lambda c: pa.array(range(len(c))), "event: is int64, STRING is needed"),
    ],
)
def test_what_would_lose_a_value_is_refused(root: Path, name: str, column: str, new: Any, message: str) -> None:
    change(root, name, column, new)
    before = {p.name: p.read_bytes() for p in root.iterdir()}
    with pytest.raises(MalformedInput, match=message):
        seal(root)
    assert {p.name: p.read_bytes() for p in root.iterdir()} == before
    assert [p.name for p in root.parent.iterdir()] == [root.name]


def test_a_dropped_column_is_refused(root: Path) -> None:
    pl.read_parquet(root / "lanes.parquet").drop("sm").write_parquet(root / "lanes.parquet")
    with pytest.raises(MalformedInput, match="column sm is missing") as caught:
        seal(root)
    assert "-1" in caught.value.hint


def test_rows_that_others_need_are_refused_with_the_rule(root: Path) -> None:
    frame = pl.read_parquet(root / "lanes.parquet")
    frame.filter(pl.col("lane") != 1).write_parquet(root / "lanes.parquet")
    with pytest.raises(InvalidBundle, match=r"cannot be sealed: E504 LANE_UNDEFINED .*lane 1: 12 rows") as caught:
        seal(root)
    assert {problem.code for problem in caught.value.problems} >= {"E504"}
    assert [p.name for p in root.parent.iterdir()] == [root.name]


def test_chosen_rows_make_a_sampled_bundle(root: Path) -> None:
    """Somebody keeps the stamps of two iterations only: the lanes are counted anew and no longer complete."""
    frame = pl.read_parquet(root / "events.parquet")
    frame.filter(pl.col("iteration") < 2).write_parquet(root / "events.parquet")
    assert "E708" in validate(root).codes
    sealed = seal(root)
    assert validate(root).clean
    lanes = sealed.bundle.sql(
        "SELECT lane, records_kept, completeness FROM lanes WHERE role IN ('producer', 'consumer') ORDER BY lane"
    ).to_pylist()
    assert lanes == [{"lane": n, "records_kept": 6, "completeness": "sampled"} for n in (1, 2)]
    captures = sealed.bundle.sql(
        "SELECT kind, completeness FROM captures WHERE kind IN ('stamped', 'traced') ORDER BY kind"
    )
    assert captures.to_pylist() == [
        {"kind": "stamped", "completeness": "sampled"},
        {"kind": "traced", "completeness": "complete"},
    ]
    assert "lanes: records_kept counted anew for 2 lanes, 2 of them sampled now" in sealed.notes


def test_to_another_directory(root: Path, tmp_path: Path) -> None:
    with_polars(root / "events.parquet")
    (root / "notes.txt").write_text("mine")
    seal(root, tmp_path / "y.wsformat")
    assert validate(tmp_path / "y.wsformat").clean
    assert (root / "notes.txt").exists()
    with pytest.raises(OutputExists):
        seal(root, tmp_path / "y.wsformat")
    seal(root, tmp_path / "y.wsformat", force=True)


def test_without_a_manifest(root: Path) -> None:
    (root / "manifest.json").unlink()
    sealed = seal(root)
    assert sealed.bundle.manifest.sources == ()
    assert validate(root).codes == ["I211"]


def test_extensions_are_kept(tmp_path: Path) -> None:
    root = tmp_path / "x.wsformat"
    shutil.copytree(VALID / "extension.wsformat", root)
    for path in root.glob("*.parquet"):
        with_duckdb(path)
    before = Bundle.open(VALID / "extension.wsformat")
    sealed = seal(root)
    assert validate(root).codes == []
    assert sealed.bundle.table("acme__heat").equals(before.table("acme__heat"))
    assert sealed.bundle.manifest.extra == before.manifest.extra
    assert sealed.bundle.manifest.extensions == before.manifest.extensions


def test_what_is_no_directory_of_tables(root: Path, tmp_path: Path) -> None:
    with pytest.raises(MalformedInput, match="no such directory"):
        seal(tmp_path / "gone")
    (root / "notes.txt").write_text("mine")
    with pytest.raises(OutputExists, match=r"notes.txt: is no table file"):
        seal(root)
    (root / "notes.txt").unlink()
    shutil.copy(root / "roles.parquet", root / "cast.parquet")
    with pytest.raises(MalformedInput, match="no table cast"):
        seal(root)
    (root / "cast.parquet").unlink()
    (root / "roles.parquet").unlink()
    with pytest.raises(MalformedInput, match="roles listed in the manifest, not in the directory"):
        seal(root)
    (root / "roles.parquet").write_bytes(b"no")
    with pytest.raises(MalformedInput, match="cannot be read as Parquet"):
        seal(root)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(MalformedInput, match=r"no captures\.parquet"):
        seal(empty)


def test_columns_that_are_missing_are_filled_only_when_asked_and_never_those_of_a_key(root: Path) -> None:
    path = root / "lanes.parquet"
    whole = pq.read_table(path)
    pq.write_table(whole.drop_columns(["name", "thread_id"]), path)
    with pytest.raises(MalformedInput, match="column name is missing") as refused:
        seal(root)
    assert "seal --fill" in refused.value.hint
    sealed = seal(root, fill=True)
    assert "lanes: filled with what stands for unknown: name, thread_id" in sealed.notes
    lanes = sealed.bundle.table("lanes")
    assert lanes.column_names == whole.column_names
    assert set(lanes.column("thread_id").to_pylist()) == {-1}
    assert set(lanes.column("name").to_pylist()) == {""}
    assert lanes.column("role").to_pylist() == whole.column("role").to_pylist()
    pq.write_table(whole.drop_columns(["lane"]), path)
    with pytest.raises(MalformedInput, match="column lane is missing") as refused:
        seal(root, fill=True)
    assert "part of the key" in refused.value.hint


def test_columns_that_came_later_are_added_without_asking(root: Path) -> None:
    """An older bundle that pandas rewrote lost nothing; only what its version had is missed."""
    path, manifest = root / "launches.parquet", root / "manifest.json"
    whole = pq.read_table(path)
    pq.write_table(whole.drop_columns(["sequence"]), path)
    text = manifest.read_text()
    with pytest.raises(MalformedInput, match="column sequence is missing"):
        seal(root)
    manifest.write_text(text.replace(f'"version": "{format_version()}",', '"version": "0.0",', 1))
    sealed = seal(root)
    assert "launches: filled with what stands for unknown: sequence" in sealed.notes
    assert set(sealed.bundle.table("launches").column("sequence").to_pylist()) == {-1}
    assert sealed.bundle.manifest.version == format_version()
    pq.write_table(whole.drop_columns(["launch"]), path)
    manifest.write_text(text.replace(f'"version": "{format_version()}",', '"version": "0.0",', 1))
    with pytest.raises(MalformedInput, match="column launch is missing"):
        seal(root)
