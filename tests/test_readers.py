"""Every reader of docs/readers.md against the corpus: types, values by digest, queries, and the page itself."""

from __future__ import annotations

import shutil
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import reader_matrix
import readers_python
from readers_common import BUNDLES, CORPUS, Column, Found, answers_differ, compare, digest, merged, right, same, take
from trace_clients import need

pytestmark = pytest.mark.sources

TYPES = {
    "pyarrow": ("int32", "int64", "double", "bool", "string"),
    "pandas": ("int32", "int64", "float64", "bool", "str"),
    "pandas (pyarrow back end)": (
        "int32[pyarrow]",
        "int64[pyarrow]",
        "double[pyarrow]",
        "bool[pyarrow]",
        "string[pyarrow]",
    ),
    "Polars": ("Int32", "Int64", "Float64", "Boolean", "String"),
    "DuckDB": ("INTEGER", "BIGINT", "DOUBLE", "BOOLEAN", "VARCHAR"),
}


@pytest.mark.parametrize("reader", TYPES)
def test_a_reader_gives_what_the_corpus_states(reader: str) -> None:
    found = readers_python.examine(reader)
    assert found.columns > 2000
    assert found.wrong == []
    assert found.different == []
    assert found.v2 == "right"
    kinds = dict(zip(("INT32", "INT64", "DOUBLE", "BOOLEAN", "STRING"), TYPES[reader], strict=True))
    if reader == "pandas" and int(pd.__version__.split(".")[0]) < 3:
        kinds["STRING"] = "object"
    assert found.types == {kind: {name} for kind, name in kinds.items()}


@pytest.mark.parametrize("read", [pd.read_parquet, pq.read_table, pl.read_parquet], ids=["pandas", "pyarrow", "Polars"])
def test_a_bundle_is_not_opened_as_a_directory_of_tables(read: object, tmp_path: Path) -> None:
    shutil.copytree(CORPUS / "valid" / "ring.wsformat", tmp_path / "ring.wsformat")
    assert callable(read)
    with pytest.raises((OSError, ValueError, pa.ArrowException, pl.exceptions.PolarsError)):
        read(tmp_path / "ring.wsformat")


# --- the comparison can fail -------------------------------------------------------------------------------------


def test_the_digest_is_that_of_the_standard() -> None:
    assert digest("INT32", [1, 2, 3]) == (3, 6, 0)
    assert digest("INT32", [-1, 5]) == (2, 4, 0xFFFFFFFFFFFFFFFA)
    assert digest("INT64", [2**63 - 1, 1]) == (2, 1 << 63, 0x7FFFFFFFFFFFFFFE)
    assert digest("BOOLEAN", [True, True, False]) == (3, 2, 0)
    assert digest("DOUBLE", [0.0]) != digest("DOUBLE", [-0.0])
    assert digest("STRING", ["a", "b"]) == digest("STRING", ["b", "a"]) != digest("STRING", ["ab", ""])


def test_one_changed_value_is_seen() -> None:
    ring = next(p for p in BUNDLES if p.stem == "ring")
    rows = pq.read_table(ring / "events.parquet")
    for name, other in (("t", 7), ("event", "else"), ("tile", 3)):
        changed = rows.set_column(
            rows.column_names.index(name),
            name,
            pa.array([other, *rows.column(name).to_pylist()[1:]], rows.schema.field(name).type),
        )
        found = Found()
        take(found, ring, "events", readers_python.of_arrow(changed))
        assert found.wrong == [f"ring.events.{name}"]


def test_a_null_and_a_missing_column_are_seen() -> None:
    every = next(p for p in BUNDLES if p.stem == "every_table")
    want = right(every, "metrics")
    found = Found()
    compare(found, every, "metrics", {name: column for name, column in want.items() if name != "text"})
    assert len(found.wrong) == 1
    found = Found()
    value = want["value"]
    compare(found, every, "metrics", want | {"value": Column("DOUBLE", value.nulls + 1, value.digest)})
    assert found.wrong == ["every_table.metrics.value"]


def test_a_changed_row_of_a_view_is_seen() -> None:
    ring = next(p for p in BUNDLES if p.stem == "ring")
    rows = merged((ring,)).sql("SELECT * FROM role_state")
    assert same(rows, rows.take(list(range(rows.num_rows))[::-1]))
    for name, change in (("stall", 1), ("role", "else")):
        at = rows.column_names.index(name)
        first = change if isinstance(change, str) else rows.column(name)[0].as_py() + change
        values = pa.array([first, *rows.column(name).to_pylist()[1:]], rows.schema.field(name).type)
        assert not same(rows, rows.set_column(at, name, values))


def test_a_wrong_aggregate_is_seen() -> None:
    ring = next(p for p in BUNDLES if p.stem == "ring")
    answer = readers_python.ANSWERS["pandas"](ring)
    assert answers_differ(ring, answer) == []
    answer["spans"][0][-1] += 1
    assert answers_differ(ring, answer) == ["ring: spans"]


def test_a_difference_that_nothing_explains_stops_the_page() -> None:
    plain = {kind: {kind} for kind in reader_matrix.TYPES}
    assert reader_matrix.differences(Found(types=plain, v2="right")) == []
    views = Found(types=plain, different=["view overlap"])
    refused = Found(types=plain, v2="error")
    text = Found(types=plain, wrong=["ring.events.event"])
    two_types = Found(types=plain | {"DOUBLE": {"a", "b"}})
    for odd in (views, refused, text, two_types):
        with pytest.raises(LookupError):
            reader_matrix.differences(odd)


# --- readers that `make test-clients` brings ---------------------------------------------------------------------


@pytest.mark.client
def test_the_page_is_what_every_reader_gives() -> None:
    for package in ("fastparquet", "datafusion", "pyspark"):
        need(reader_matrix.installed(package), package)
    results = {name: examine() for name, examine in reader_matrix.EXAMINE.items()}
    for name, found in results.items():
        assert found.different == [], name
        assert found.wrong == [] or name == "fastparquet"
    made = reader_matrix.without_versions(reader_matrix.page(results))
    again = "python tests/reader_matrix.py"
    assert reader_matrix.without_versions(reader_matrix.PAGE.read_text()) == made, again


@pytest.mark.client
@pytest.mark.parametrize(("bits", "is_right"), [(20, True), (28, True), (29, False), (33, False)])
def test_fastparquet_reads_steps_of_28_bits_and_no_wider(bits: int, is_right: bool, tmp_path: Path) -> None:
    """Why the page warns of it; when this fails the reader was mended, and the page is to be made anew."""
    need(reader_matrix.installed("fastparquet"), "fastparquet")
    values = [0]
    for i in range(1, 300):
        values.append(values[-1] + ((1 << bits) - 1 if i % 2 else 0))
    pq.write_table(
        pa.table({"t": values}),
        tmp_path / "t.parquet",
        use_dictionary=False,
        column_encoding={"t": "DELTA_BINARY_PACKED"},
        data_page_version="1.0",
    )
    _, got = readers_python.read_fastparquet(tmp_path / "t.parquet")["t"]
    assert (list(got) == values) is is_right
