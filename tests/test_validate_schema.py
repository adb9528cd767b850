"""Rules that follow from the schema hold for every column that they concern, not only for the one in the corpus."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from wsformat.bundle import Bundle
from wsformat.tables import Column, tables, vocabularies
from wsformat.validate import data, rules
from wsformat.validate.database import Database
from wsformat.validate.report import Findings
from wsformat.validate.scan import minimum
from wsformat.validate.subject import Subject, TableFile

Rows = dict[str, list[dict[str, Any]]]
CORPUS = Path(__file__).parents[1] / "conformance"


@pytest.fixture(scope="module")
def every_table() -> Callable[[], Rows]:
    """Makes rows of every table of the standard, all of them valid."""
    sys.path.insert(0, str(CORPUS))
    try:
        made: Callable[[], Rows] = importlib.import_module("bundles").every_table
    finally:
        sys.path.remove(str(CORPUS))
    assert set(made()) == set(tables())
    return made


def check(code: str, rows: Rows) -> set[tuple[str, str]]:
    """Places (table, column) that a rule finds fault with."""
    bundle = Bundle.from_tables(rows)
    subject = Subject(None, bundle.manifest.to_json(), {n: TableFile(n, data=part) for n, part in bundle.data.items()})
    found = Findings()
    database = Database(subject, memory_limit="1GB", seconds=60)
    try:
        data.CHECKS[code](subject, found, database, rules()[code])
    finally:
        database.close()
    return set(found._found.get(code, {}))


def columns(test: Callable[[str, Column], bool]) -> Iterator[tuple[str, Column]]:
    for name, table in tables().items():
        for column in table.columns:
            if test(name, column):
                yield name, column


@pytest.mark.parametrize("code", list(data.CHECKS))
def test_rows_without_a_fault_pass(code: str, every_table: Callable[[], Rows]) -> None:
    if code != "I211":  # these rows are in memory and have no manifest to name their source
        assert check(code, every_table()) == set()


@pytest.mark.parametrize("closed", [True, False])
def test_every_vocabulary_column_is_checked(closed: bool, every_table: Callable[[], Rows]) -> None:
    rows, code = every_table(), "E401" if closed else "W402"
    concerned = list(columns(lambda _, c: bool(c.vocabulary) and vocabularies()[c.vocabulary]["closed"] == closed))
    for name, column in concerned:
        rows[name][0][column.name] = "bogus"
    assert len(concerned) >= 6
    assert check(code, rows) == {(name, column.name) for name, column in concerned}
    for name, column in concerned:
        rows[name][0][column.name] = "acme__bogus"
    assert bool(check(code, rows)) == closed, "an open vocabulary takes a vendor's word"


def test_every_integer_column_has_a_least_value(every_table: Callable[[], Rows]) -> None:
    rows = every_table()
    concerned = [(n, c, minimum(n, c)) for n, c in columns(lambda _, c: c.type in ("INT32", "INT64"))]
    free = [(n, c.name) for n, c, least in concerned if least is None]
    assert free == [("dependencies", "iteration_lag")]
    for name, column, least in concerned:
        if least is not None:
            rows[name][0][column.name] = least - 1
    assert check("E404", rows) == {(n, c.name) for n, c, least in concerned if least is not None}
    for name, column, least in concerned:
        if least is not None:
            rows[name][0][column.name] = least
    assert check("E404", rows) == set()


def test_the_least_values_name_columns_that_exist() -> None:
    listed = set(rules()["E404"].more["minimum"]) - {"*"}
    for rule in ("E405", "E406", "E407", "W408"):
        more = rules()[rule].more
        listed |= set(more.get("range", ())) | set(more.get("columns", ()))
    assert listed <= {f"{n}.{c.name}" for n, c in columns(lambda *_: True)}


def test_every_double_with_bounds_is_checked(every_table: Callable[[], Rows]) -> None:
    rows, bounds = every_table(), rules()["E405"].more["range"]
    for place in bounds:
        table, column = place.split(".")
        rows[table][0][column] = -0.5
    assert check("E405", rows) == {tuple(place.split(".")) for place in bounds}


@pytest.mark.parametrize(("code", "bad"), [("E406", "A" * 26), ("E407", ""), ("W408", "#12345g")])
def test_every_text_of_a_given_form_is_checked(code: str, bad: str, every_table: Callable[[], Rows]) -> None:
    rows, listed = every_table(), rules()[code].more["columns"]
    for place in listed:
        table, column = place.split(".")
        rows[table][0][column] = bad
    assert check(code, rows) == {tuple(place.split(".")) for place in listed}


def test_every_key_is_checked(every_table: Callable[[], Rows]) -> None:
    rows = every_table()
    for name in rows:
        rows[name].append(dict(rows[name][0]))
    keyed = {(n, ", ".join(t.key)) for n, t in tables().items() if t.key and n not in data.KEY_CHECKED_ELSEWHERE}
    assert check("E501", rows) == keyed
    assert check("E704", rows) == {("events", "iteration")}


REFERENCES = {rules()[code].more["target"]: code for code in data.CHECKS if rules()[code].check == "references"}


def test_every_reference_of_the_schema_has_a_rule() -> None:
    assert {c.references for _, c in columns(lambda _, c: bool(c.references))} == set(REFERENCES)


@pytest.mark.parametrize("target", REFERENCES)
def test_every_reference_is_checked(target: str, every_table: Callable[[], Rows]) -> None:
    rows, code = every_table(), REFERENCES[target]
    concerned = list(columns(lambda _, c: c.references == target))
    for name, column in concerned:
        rows[name][0][column.name] = (
            "f" * 26 if column.name == "capture_id" else "nobody" if column.type == "STRING" else 999
        )
    assert check(code, rows) == {(name, column.name) for name, column in concerned}
    for name, column in concerned:
        if column.not_applicable is not None:
            rows[name][0][column.name] = column.not_applicable
    points_somewhere = {(name, column.name) for name, column in concerned if column.not_applicable is None}
    assert check(code, rows) == points_somewhere, "what stands for 'points nowhere' is no fault"
