"""The same SQL on Spark as on DuckDB, over the same files: views and questions, row by row."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lake_case as case
import pytest
from readers_spark import session

from wsformat.lake import Lake
from wsformat.lake import spark as sparks
from wsformat.lake.questions import ask, described, statements

pytestmark = pytest.mark.client
DIGITS = 10
"""Sums of doubles may differ in the last digits: their order is free."""


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Several files a table, a compacted one among them, a removed capture, clean launches."""
    made = Lake.init(tmp_path_factory.mktemp("lake") / "L")
    bundles = case.several(3)
    made.add(bundles[:2])
    made.add(bundles[2:])
    made.remove([case.ids(bundles)[0]])
    made.compact()
    made.add([case.SAMPLES / f"{name}.wsformat" for name in ("gemm_perturbation", "cute_pipeline")])
    made.remove([case.ids(bundles)[1]])
    return made


@pytest.fixture(scope="module")
def spark(lake: Lake) -> Iterator[Any]:
    with session() as opened:
        sparks.register(opened, lake)
        yield opened


def test_views_are_the_same_row_by_row(spark: Any, lake: Lake) -> None:
    wanted = ("role_state", "wait", "iteration_summary", "role_summary", "wait_summary", "perturbation")
    for name in wanted:
        theirs = case.rows(spark.sql(f"SELECT * FROM {name}").toArrow(), DIGITS)
        mine = case.rows(lake.sql(f"SELECT * FROM {name}", summaries=False), DIGITS)
        assert mine == theirs, name
        assert mine


def test_questions_are_the_same_row_by_row(spark: Any, lake: Lake) -> None:
    for name in described()["questions"]:
        theirs = case.rows(sparks.run(spark, *statements(name)).toArrow(), DIGITS)
        assert case.rows(ask(lake, name, live=True), DIGITS) == theirs, name


def test_a_condition_on_captures_and_an_empty_table(spark: Any, lake: Lake, tmp_path: Path) -> None:
    where = "kernel = 'cute_pipeline'"
    sparks.register(spark, lake, ("events", "metrics"), where=where)
    found = spark.sql("SELECT COUNT(*) AS n FROM events").toArrow().to_pylist()
    assert found == lake.sql("SELECT COUNT(*) AS n FROM events", where=where).to_pylist() != [{"n": 0}]
    empty = Lake.init(tmp_path / "empty")
    sparks.register(spark, empty, ("role_state",))
    assert spark.sql("SELECT * FROM role_state").toArrow().num_rows == 0
