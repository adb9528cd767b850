"""The validator as a whole: its report, its modes, what it does when a check cannot run. Each rule: the corpus."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wsformat.bundle import Bundle
from wsformat.derive import views
from wsformat.errors import BadRequest, InvalidBundle, MalformedInput
from wsformat.tables import read_schema_json, tables
from wsformat.validate import data, require_valid, rules, run, validate
from wsformat.validate.database import Database
from wsformat.validate.layout import disorder
from wsformat.validate.report import Findings, clip
from wsformat.validate.rules import relations

CORPUS = Path(__file__).parents[1] / "conformance"


@pytest.fixture
def ring(tmp_path: Path) -> Path:
    """A copy of the small valid bundle."""
    root = tmp_path / "ring.wsformat"
    shutil.copytree(CORPUS / "valid" / "ring.wsformat", root)
    return root


def rewrite(root: Path, name: str, **changes: Any) -> None:
    """Set whole columns of a table file, without telling the manifest."""
    rows = pq.ParquetFile(root / f"{name}.parquet").read()
    for column, values in changes.items():
        index = rows.column_names.index(column)
        rows = rows.set_column(index, column, pa.array(values, rows.schema.field(column).type))
    pq.write_table(rows, root / f"{name}.parquet", store_schema=False)


# --- rules as data --------------------------------------------------------------------------------------------------


def test_codes_words_and_families_are_well_formed() -> None:
    raw = read_schema_json("rules.json")
    numbers = [code[1:] for code in rules()]
    assert len(set(numbers)) == len(numbers), "a number is used by one rule only, whatever its level"
    assert not {entry["code"][1:] for entry in raw["retired"]} & set(numbers)
    assert len({rule.word for rule in rules().values()}) == len(rules())
    for rule in rules().values():
        assert re.fullmatch(r"[EWI][1-9]\d\d", rule.code)
        assert re.fullmatch(r"[A-Z][A-Z0-9_]*", rule.word)
        assert rule.mode in ("metadata", "data")
        assert rule.family in raw["families"]
        assert rule.title.endswith(".")
        assert set(rule.tables) <= set(tables())
        if rule.check == "sql":
            assert rule.column in tables()[rule.table].names
            assert rule.table in rule.tables


def test_every_rule_is_checked_in_one_place() -> None:
    steps = [
        code for step in (run.MANIFEST_STEPS, run.FILE_STEPS, run.ROW_STEPS) for codes, _ in step for code in codes
    ]
    homes = [*steps, *run.SCAN_CODES, *data.CHECKS]
    twice = {code for code in homes if homes.count(code) > 1}
    # A link is found at the manifest and at table files.
    assert twice == {"E112"}
    assert set(homes) == set(rules())


def test_queries_name_known_tables_and_every_relation_is_used() -> None:
    everything = "\n".join([*(rule.sql for rule in rules().values()), *relations().values()])
    for name in relations():
        assert len(re.findall(rf"\b{name}\b", everything)) >= 1, name
        assert name not in tables()
        assert name not in views()
    with duckdb.connect() as connection:
        for rule in rules().values():
            if rule.sql:
                named = set(connection.get_table_names(rule.sql))
                own = {"manifest_source_captures", "highest_clock"}
                assert named <= {*tables(), *views(), *relations(), *own}, rule.code
                used = {name for name in named if name in tables()}
                assert used <= {*rule.tables, "captures"}, rule.code


# --- report ---------------------------------------------------------------------------------------------------------


def test_all_problems_at_once_one_line_a_code(ring: Path) -> None:
    rewrite(ring, "events", warp=[9] * 24, t=list(range(24, 0, -1)))
    report = validate(ring)
    assert {"E104", "E107", "E509", "E403", "E702"} <= set(report.codes)
    assert len(report.codes) == len(set(report.codes))
    lines = report.text().splitlines()
    assert len(lines) == len(report.problems) + 1
    wrong = next(problem for problem in report.problems if problem.code == "E509")
    assert (wrong.table, wrong.column, wrong.count, wrong.word) == ("events", "lane", 2, "LANE_REPEAT_DIFFERS")
    assert not report.ok
    said = json.loads(json.dumps(report.to_json()))
    assert said["ok"] is False
    assert said["errors"] == report.count("E")
    assert all(entry["requirement"] for entry in said["problems"])


def test_the_first_place_is_first_in_the_order_of_numbers(tmp_path: Path) -> None:
    """Lane 10 comes after lane 2."""
    root = tmp_path / "x.wsformat"
    lanes = [
        {"capture_id": "a" * 26, "lane": n, "kind": "warp", "completeness": "complete", "records_lost": n % 2 + n // 10}
        for n in range(12)
    ]
    captures = [{"capture_id": "a" * 26, "kind": "stamped", "completeness": "complete"}]
    Bundle.from_tables({"captures": captures, "lanes": lanes}).write(root)
    report = validate(root, ignore=["I211"])
    assert [(p.code, p.count, p.row) for p in report.problems] == [("E707", 7, f"capture {'a' * 26}, lane 1")]


def test_many_checks_that_did_not_run_are_one_short_line() -> None:
    report = validate(CORPUS / "invalid" / "E201_json_invalid.wsformat")
    lines = report.text().splitlines()
    assert lines[1] == f"not checked: {len(rules()) - 1} rules (E101 to E906): the manifest is no JSON"
    assert max(map(len, lines)) < 200
    assert len(report.to_json()["not_run"]) == len(rules()) - 1


def test_ignored_codes_are_left_out_and_named(ring: Path) -> None:
    (ring / "notes.txt").write_text("x")
    assert validate(ring).codes == ["W110"]
    report = validate(ring, ignore=["W110"])
    assert report.codes == []
    assert report.ignored == ("W110",)
    with pytest.raises(BadRequest, match="W999"):
        validate(ring, ignore=["W999"])


def test_progress_counts_up_to_all_rules(ring: Path) -> None:
    told: list[tuple[str, int, int]] = []
    validate(ring, progress=lambda what, done, total: told.append((what, done, total)))
    done = [entry[1] for entry in told]
    assert done == sorted(done)
    assert told[-1][1] == told[-1][2] == len(rules())
    assert all(re.match(r"[EWI]\d{3} [A-Z_0-9]+$", entry[0]) for entry in told)


def test_metadata_mode_reads_no_rows(ring: Path) -> None:
    """Rows that are garbage under an intact footer are not noticed; a missing column is."""
    file = ring / "events.parquet"
    raw = bytearray(file.read_bytes())
    raw[4:200] = bytes(196)
    file.write_bytes(raw)
    assert validate(ring, data=False).codes == []
    report = validate(ring)
    assert report.codes[:2] == ["E103", "E105"]
    assert {entry.code for entry in report.not_run} >= {"E107", "E403", "E704"}
    assert all("events" in entry.reason for entry in report.not_run)


def test_a_bundle_in_memory_is_judged_by_its_rows() -> None:
    bundle = Bundle.open(CORPUS / "invalid" / "E707_completeness_contradicted.wsformat")
    held = bundle.with_tables({"lanes": bundle.table("lanes")})
    assert held.path is None
    memory = Bundle.from_tables({name: held.table(name) for name in held.data})
    report = validate(memory)
    assert report.codes == ["E707"]
    assert {entry.reason for entry in report.not_run} == {"the bundle is in memory"}
    assert {rules()[entry.code].family for entry in report.not_run} >= {"1", "8", "9"}


def test_require_valid_raises_with_all_problems(ring: Path) -> None:
    assert require_valid(ring).clean
    rewrite(ring, "events", warp=[9] * 24)
    with pytest.raises(InvalidBundle, match=r"E104 .* \(and \d+ more\)") as caught:
        require_valid(ring)
    assert {problem.code for problem in caught.value.problems} >= {"E104", "E509"}


@pytest.mark.parametrize("kind", ["missing", "file"])
def test_what_is_no_directory_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x.wsformat"
    if kind == "file":
        path.write_bytes(b"PK")
    with pytest.raises(MalformedInput, match=r"no such bundle|is a directory"):
        validate(path)


# --- checks that cannot run -----------------------------------------------------------------------------------------


def test_a_broken_table_stops_its_rules_only(ring: Path) -> None:
    (ring / "dependencies.parquet").unlink()
    rewrite(ring, "lanes", records_kept=[20, 12])
    report = validate(ring)
    assert {"E102", "E708"} <= set(report.codes)
    reasons = {entry.code: entry.reason for entry in report.not_run}
    assert reasons["E703"] == "table dependencies: its file is missing"
    assert "E403" not in reasons


def test_a_failing_check_is_listed_and_the_others_go_on(ring: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise ZeroDivisionError("of all things")

    monkeypatch.setitem(data.CHECKS, "E501", broken)
    (ring / "notes.txt").write_text("x")
    report = validate(ring)
    assert report.codes == ["W110"]
    assert [(e.code, e.reason) for e in report.not_run] == [("E501", "ZeroDivisionError: of all things")]
    assert "not checked: E501: ZeroDivisionError" in report.text()
    assert not report.clean


def test_a_query_that_takes_too_long_is_stopped_and_listed(ring: Path) -> None:
    class Slow(Database):
        def offences(self, query: str) -> tuple[int, str, str]:
            return super().offences(f"SELECT '' AS row, '' AS detail FROM range({10**13}) r(a) WHERE hash(a) = 1")

    report_codes = validate(ring).codes
    assert report_codes == []
    found = Findings()
    from wsformat.validate.subject import Subject

    database = Slow(Subject(), memory_limit="1GB", seconds=0.2)
    try:
        with pytest.raises(duckdb.Error, match=r"[Ii]nterrupt"):
            database.offences("SELECT 1")
    finally:
        database.close()
    assert not found.has("E403")


def test_more_rows_than_allowed_are_not_read(ring: Path) -> None:
    report = validate(ring, max_rows=10)
    assert report.codes == []
    reasons = {entry.reason for entry in report.not_run}
    assert len(reasons) == 1
    assert "more than the limit of 10" in reasons.pop()


def test_a_newer_minor_is_not_judged_by_what_it_may_have_added(ring: Path) -> None:
    report = validate(CORPUS / "valid" / "newer_minor.wsformat")
    assert report.ok
    assert {entry.code for entry in report.not_run} == set(run.UNKNOWABLE)


def test_a_null_role_differs_from_the_lane(ring: Path) -> None:
    """Text outside keys may be null: a comparison with null must not pass for equal."""
    rewrite(ring, "events", role=[None] * 24)
    assert "E509" in validate(ring).codes


# --- paths ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", ["lane=7", "arch=sm_80", "a[1]*?", "it's", "ünï ☃"])
def test_the_folder_of_a_bundle_has_no_meaning(tmp_path: Path, folder: str) -> None:
    """DuckDB takes column values from ``name=value`` in paths, and patterns from stars, unless told not to."""
    root = tmp_path / folder / "ring.wsformat"
    shutil.copytree(CORPUS / "valid" / "ring.wsformat", root)
    assert validate(root).clean
    assert Bundle.open(root).sql("SELECT DISTINCT lane, arch FROM events, captures ORDER BY lane").to_pylist() == [
        {"lane": 0, "arch": "sm_90a"},
        {"lane": 1, "arch": "sm_90a"},
    ]


# --- large bundles --------------------------------------------------------------------------------------------------


def test_half_a_million_stamps_with_one_fault_each_are_found_in_bounded_memory(tmp_path: Path) -> None:
    """One stamp in 512,000 goes back by a tick, another occurs twice; DuckDB gets 300 MB."""
    lanes, per_lane = 16, 32_000
    capture = "b" * 26

    def batches() -> Iterator[pa.Table]:
        schema = tables()["events"].arrow
        for lane in range(lanes):
            iteration = np.arange(per_lane, dtype=np.int32)
            t = 10**12 + 50 * iteration.astype(np.int64)
            if lane == 3:
                t[20_000] = t[19_999] - 1
            if lane == 5:
                iteration[777] = 776
            order = np.argsort(t, kind="stable")
            constant = {
                "capture_id": capture,
                "lane": lane,
                "launch": -1,
                "cta": -1,
                "sm": -1,
                "warp": lane,
                "role": "r",
                "event": "e",
                "tile": 0,
                "clock": 0,
                "payload": "",
            }
            yield pa.table(
                [
                    pa.array(iteration[order]) if f.name == "iteration"
                    else pa.array(t[order]) if f.name == "t"
                    else pa.repeat(pa.scalar(constant[f.name], f.type), per_lane)
                    for f in schema
                ],
                schema=schema,
            )  # fmt: skip

    rows = [
        {
            "capture_id": capture,
            "lane": n,
            "warp": n,
            "role": "r",
            "clock": 0,
            "kind": "warp",
            "completeness": "complete",
        }
        for n in range(lanes)
    ]
    bundle = Bundle.from_tables(
        {
            "captures": [{"capture_id": capture, "kind": "stamped", "completeness": "complete"}],
            "lanes": rows,
            "clocks": [{"capture_id": capture, "clock": 0, "scope": "device", "unit": "ns"}],
            "roles": [{"capture_id": capture, "role": "r", "kind": "other", "display_order": 0}],
            "event_types": [{"capture_id": capture, "role": "r", "event": "e"}],
            "events": batches,
        }
    )
    bundle.write(tmp_path / "x.wsformat")
    report = validate(tmp_path / "x.wsformat", memory_limit="300MB", ignore=["I211"])
    found = {problem.code: problem for problem in report.problems}
    assert set(found) == {"E403", "E704"}, report.text()
    assert found["E403"].count == 1
    assert "lane 3, event e, iteration 20000" in found["E403"].row
    assert "lane 5, e, iteration 776" in found["E704"].row


# --- parts ----------------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.lists(st.tuples(st.sampled_from("ab"), st.integers(-2, 2)), max_size=40), size=st.integers(1, 9))
def test_disorder_counts_rows_below_their_predecessor(tmp_path: Path, values: list[tuple[str, int]], size: int) -> None:
    path = tmp_path / "x.parquet"
    rows = pa.table(
        {"k": pa.array([v[0] for v in values], pa.string()), "t": pa.array([v[1] for v in values], pa.int64())}
    )
    pq.write_table(rows, path, row_group_size=size)
    back = [i for i in range(1, len(values)) if values[i] < values[i - 1]]
    assert disorder(path, ["k", "t"]) == (len(back), back[0] if back else -1)


def test_disorder_across_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"t": [1, 2, 3, 3, 2, 9, 8]}), path)
    monkeypatch.setattr("wsformat.validate.layout.layout", lambda: {"row_group_rows": 4})
    assert disorder(path, ["t"]) == (2, 4)


def test_what_a_file_says_cannot_steer_a_terminal() -> None:
    assert clip("a\x1b[31mred\r\nb\u202e") == "a\ufffd[31mred\ufffd b\ufffd"
    assert len(clip("x" * 10_000)) == 300
