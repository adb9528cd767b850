"""The corpus: reproducible, complete, and with exactly the findings that it states."""

from __future__ import annotations

import importlib
import json
import math
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from wsformat.bundle import Bundle
from wsformat.errors import NewerMinorWarning
from wsformat.tables import format_version
from wsformat.validate import rules, validate

CORPUS = Path(__file__).parents[1] / "conformance"
INVALID = json.loads((CORPUS / "invalid" / "manifest.json").read_text(encoding="utf-8"))["cases"]
GOOD = sorted(p for part in ("valid", "samples", "golden") for p in (CORPUS / part).rglob("*.expected.json"))
pytestmark = pytest.mark.filterwarnings("ignore::wsformat.errors.NewerMinorWarning")


@pytest.fixture(scope="module")
def tools() -> dict[str, ModuleType]:
    """The modules that make the corpus."""
    sys.path.insert(0, str(CORPUS))
    try:
        return {name: importlib.import_module(name) for name in ("generate", "expected", "bundles")}
    finally:
        sys.path.remove(str(CORPUS))


def bundle_of(path: Path) -> Path:
    return path.with_name(path.name.replace(".expected.json", ".wsformat"))


def stated(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def test_the_corpus_is_what_its_generator_makes(tools: dict[str, ModuleType], tmp_path: Path) -> None:
    generate = tools["generate"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NewerMinorWarning)
        generate.build(tmp_path)
    found = [
        f"{part}/{line}" for part in generate.PARTS for line in generate.differences(CORPUS / part, tmp_path / part)
    ]
    assert found == [], "run `python conformance/generate.py`"


def test_the_comparison_of_two_builds_sees_one_changed_value(tools: dict[str, ModuleType], tmp_path: Path) -> None:
    bundles, generate = tools["bundles"], tools["generate"]
    rows = bundles.ring()
    for folder in "ab":
        (tmp_path / folder).mkdir()
        bundles.bundle(rows).write(tmp_path / folder / "x.wsformat")
        rows["events"][5]["t"] += 1
    assert list(generate.differences(tmp_path / "a", tmp_path / "a")) == []
    assert list(generate.differences(tmp_path / "a", tmp_path / "b")) == [
        "x.wsformat/events.parquet: differs",
        "x.wsformat/manifest.json: differs",
    ]


def test_every_rule_has_an_invalid_case_and_every_case_a_clause() -> None:
    assert sorted(case["code"] for case in INVALID) == sorted(rules())
    assert [case["case"] for case in INVALID if not case["clause"]] == []
    assert all(case["note"] and case["word"] == rules()[case["code"]].word for case in INVALID)
    listed = {case["case"] for case in INVALID} | {"manifest.json"}
    there = {p.name for p in (CORPUS / "invalid").iterdir() if p.suffix != ".linked"}
    assert there == listed


@pytest.mark.parametrize("case", INVALID, ids=lambda case: case["code"])
def test_an_invalid_bundle_triggers_exactly_its_code(case: dict[str, str]) -> None:
    report = validate(CORPUS / "invalid" / case["case"])
    assert report.codes == [case["code"]], report.text()
    assert report.ok == (not case["code"].startswith("E"))
    problem = report.problems[0]
    assert problem.count >= 1
    assert problem.message
    quick = validate(CORPUS / "invalid" / case["case"], data=False)
    # Without rows, a widened column is a warning; only its values show that it does not fit.
    unread = ["W304"] if case["code"] == "E310" else []
    assert quick.codes == ([case["code"]] if case["mode"] == "metadata" else unread)


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.name.removesuffix(".expected.json"))
def test_a_valid_bundle_has_the_stated_findings_only(path: Path) -> None:
    report = validate(bundle_of(path))
    assert report.ok, report.text()
    assert report.codes == stated(path)["findings"], report.text()
    if "W207" not in report.codes:
        assert not report.not_run


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.name.removesuffix(".expected.json"))
def test_a_valid_bundle_holds_what_it_states(path: Path, tools: dict[str, ModuleType]) -> None:
    said = stated(path)
    views = tuple(said["views"])
    held = json.loads(tools["expected"].dumps(tools["expected"].contents(Bundle.open(bundle_of(path)), views=views)))
    if said["format_version"] != format_version():
        # A golden bundle of an older minor version: columns that came later are read as unknown, what it had stays.
        for name, table in said["tables"].items():
            for part in ("columns", "digests"):
                held["tables"][name][part] = {key: held["tables"][name][part][key] for key in table[part]}
            if "values" in table:
                held["tables"][name]["values"] = [r[: len(table["columns"])] for r in held["tables"][name]["values"]]
    assert held["tables"] == said["tables"]
    assert list(held["views"]) == list(said["views"])
    for name, view in said["views"].items():
        assert held["views"][name]["columns"] == view["columns"]
        same_rows(name, held["views"][name]["values"], view["values"])


def same_rows(name: str, mine: list[list[Any]], theirs: list[list[Any]]) -> None:
    """Equal but for the last digits of a DOUBLE, which depend on the order of a sum."""
    assert len(mine) == len(theirs), name
    for one, other in zip(mine, theirs, strict=True):
        for a, b in zip(one, other, strict=True):
            close = isinstance(a, float) and isinstance(b, float) and math.isclose(a, b, rel_tol=1e-12)
            assert a == b or close, (name, one, other)


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.name.removesuffix(".expected.json"))
def test_expected_values_are_those_of_the_file_by_plain_reading(path: Path) -> None:
    """An independent look: Parquet read without the library, digests by numpy, 64-bit integers as texts."""
    for name, table in stated(path)["tables"].items():
        with pq.ParquetFile(bundle_of(path) / f"{name}.parquet") as file:
            rows = file.read()
        assert rows.num_rows == table["rows"]
        for column, digest in table["digests"].items():
            values = rows.column(column).to_numpy().astype(np.int64)
            total, xor = sum(int(v) for v in values) % 2**64, int(np.bitwise_xor.reduce(values)) % 2**64
            assert digest == {"count": len(values), "sum": f"{total:016x}", "xor": f"{xor:016x}"}
        if "values" not in table:
            continue
        for index, column in enumerate(table["columns"]):
            mine = [row[index] for row in table["values"]]
            wide = pa.types.is_int64(rows.schema.field(column).type)
            read = [str(v) if wide else v for v in rows.column(column).to_pylist()]
            assert sorted(map(repr, mine)) == sorted(map(repr, read)), (name, column)


def test_the_ring_has_the_numbers_worked_out_by_hand() -> None:
    """Producer: 4 waits of 10, 4 works of 40, 350 from first to last. Consumer: 60 and 15, 375."""
    view = stated(CORPUS / "valid" / "ring.expected.json")["views"]["role_state"]
    names = list(view["columns"])
    found = {}
    for row in view["values"]:
        r = dict(zip(names, row, strict=True))
        found[r["role"]] = tuple(int(r[k]) for k in ("extent", "stall", "active", "untracked"))
    assert found == {"producer": (350, 40, 160, 150), "consumer": (375, 240, 60, 75)}


def test_the_gemm_sample_has_the_published_accounting() -> None:
    view = stated(CORPUS / "samples" / "gemm_balanced.expected.json")["views"]["role_state"]
    names = list(view["columns"])
    found = {}
    for row in view["values"]:
        r = dict(zip(names, row, strict=True))
        if int(r["extent"]):
            found[r["role"]] = tuple(int(r[k]) for k in ("extent", "stall", "active", "untracked"))
    assert found == {
        "producer": (48_204, 15_750, 18_849, 13_605),
        "consumer0": (51_851, 8_947, 28_842, 14_062),
        "consumer1": (52_632, 8_432, 33_455, 10_745),
    }


def test_expected_files_are_small_and_exact() -> None:
    parts = ("valid", "samples", "invalid", "golden", "sources")
    assert sum(p.stat().st_size for part in parts for p in (CORPUS / part).rglob("*") if p.is_file()) < 8_000_000
    extremes = stated(CORPUS / "valid" / "extremes.expected.json")["tables"]
    lost = list(extremes["captures"]["columns"]).index("lost_events")
    assert {row[lost] for row in extremes["captures"]["values"]} == {str(2**63 - 1), str(2**53 + 2)}
