"""What somebody stumbles over who uses the commands for the first time, on the data that ships."""

from __future__ import annotations

import json
from pathlib import Path

import cli_case
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from wsformat.cli.main import app
from wsformat.samples import path as sample


def ok(*words: object) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def gemm(tmp_path: Path) -> Path:
    """The balanced GEMM, imported with a spec in the other form: it says no lags."""
    path = tmp_path / "gemm.wsformat"
    ok("import", sample("balanced_r0.i32"), "--spec", sample("gemm_spec.json"), "--layout", "3,16,64", "-o", path)
    return path


def test_a_producer_that_is_unknown_is_not_called_undeclared(gemm: Path) -> None:
    text = ok("waits", gemm)
    consumer = next(line for line in text.splitlines() if line.startswith("consumer0"))
    assert consumer.endswith("unknown")  # the edge is declared, its lag is not
    assert f"`wsformat spec check {gemm}` says which" in text
    assert "no known lag" in ok("spec", "check", gemm)


def test_the_lag_filled_into_a_converted_spec_counts(tmp_path: Path) -> None:
    converted = tmp_path / "roles.json"
    ok("spec", "convert", sample("gemm_spec.json"), "-o", converted)
    spec = json.loads(converted.read_text())
    for edge in spec["dependencies"]:
        assert not {"iteration_lag", "producer_step", "consumer_step"} & set(edge)
        edge["iteration_lag"] = 4 if edge["barrier"] == "empty" else 0
    converted.write_text(json.dumps(spec))
    path = tmp_path / "gemm.wsformat"
    ok("import", sample("balanced_r0.i32"), "--spec", converted, "--layout", "3,16,64", "-o", path)
    rows = json.loads(ok("query", path, "SELECT COUNT(*) AS n FROM wait WHERE verdict = 'unknown'", "--json"))
    assert rows == [{"n": 0}]


def test_info_names_the_views_that_a_query_can_ask(gemm: Path) -> None:
    line = next(line for line in ok("info", gemm).splitlines() if line.startswith("views"))
    assert {"role_state", "wait", "overlap"} <= set(line.removeprefix("views, for `wsformat query`: ").split(", "))


def test_a_prediction_beside_a_capture_asks_for_no_choice(gemm: Path) -> None:
    before = ok("overlap", gemm, "consumer0", "consumer1")
    ok("predict", "hopper_gemm", "--into", gemm)
    assert ok("overlap", gemm, "consumer0", "consumer1") == before
    assert "hopper_gemm" not in ok("states", gemm)
    assert "hopper_gemm" in ok("states", gemm, "--capture", "hopper_gemm")


def test_nanoseconds_have_no_plural(tmp_path: Path) -> None:
    rows = cli_case.tables()
    rows["clocks"][0] |= {"unit": "ns", "scope": "device", "sm": -1}
    path = tmp_path / "ns.wsformat"
    cli_case.Bundle.from_tables(rows).write(path)
    for command in ("states", "waits", "overlap", "critical-path"):
        text = ok(command, path)
        assert " ns" in text
        assert "nss" not in text


def test_a_trace_without_states_says_how_to_get_them(tmp_path: Path) -> None:
    trace = tmp_path / "t.json"
    events = [{"ph": "X", "name": "wait", "pid": 1, "tid": 1, "ts": 10 * i, "dur": 5} for i in range(3)]
    trace.write_text(json.dumps({"traceEvents": events}))
    ok("import", trace, "-o", tmp_path / "t.wsformat")
    assert "-O mapping=" in ok("states", tmp_path / "t.wsformat")


def test_unzip_of_what_is_no_archive_does_not_advise_to_replace_it(tmp_path: Path) -> None:
    file = tmp_path / "x.bin"
    file.write_bytes(b"data")
    result = CliRunner().invoke(app, ["unzip", str(file)])
    assert result.exit_code == 2
    assert "-o X.wsformat" in result.stderr
    assert "--force" not in result.stderr
    assert file.read_bytes() == b"data"


def test_names_of_roles_have_room_in_a_wide_font(gemm: Path) -> None:
    """The page is drawn in the browser's font; DejaVu Sans Bold, a wide one, takes some 0.69 em a character."""
    from wsformat.bundle import Bundle
    from wsformat.viewers.timeline_layout import arrange, label
    from wsformat.viewers.timeline_select import select

    with Bundle.open(gemm).duckdb() as connection:
        layout = arrange(select(connection), [], 860)
    longest = max(len(label(bar.row)) for bar in layout.bars)
    assert longest == len("consumer0")
    assert layout.left - 12 >= 0.69 * layout.font * longest


def test_sql_may_begin_with_a_comment(gemm: Path) -> None:
    assert ok("query", gemm, "-- how many\nSELECT COUNT(*) AS n FROM events", "--json") == '[\n {"n": 900}\n]\n'
    for words in (["--jsno"], ["SELECT 1", "--jsno"], ["-x"]):
        result = CliRunner().invoke(app, ["query", str(gemm), *words])
        assert result.exit_code == 2
        assert words[-1] in result.stderr


def test_a_column_of_another_type_is_named_and_a_cast_of_ones_own_is_not(gemm: Path, tmp_path: Path) -> None:
    stored = pq.read_table(gemm / "events.parquet")
    text = pa.array([f"x{t}" for t in stored["t"].to_pylist()])
    pq.write_table(stored.set_column(stored.schema.get_field_index("t"), "t", text), gemm / "events.parquet")
    trace = str(tmp_path / "t.pftrace")
    for words in (["states"], ["grid"], ["show"], ["report", "--json"], ["spec", "check"], ["export", trace]):
        place = 2 if words[0] == "spec" else 1
        result = CliRunner().invoke(app, [*words[:place], str(gemm), *words[place:]])
        assert result.exit_code == 2, words
        assert result.stderr.startswith("error: column t of a table file is not of the standard's type: cannot convert")
        assert "`wsformat validate` names the table" in result.stderr
    assert not Path(trace).exists()
    own = CliRunner().invoke(app, ["query", str(gemm), "SELECT CAST(role AS INT) FROM events"])
    assert own.stderr.startswith("error: SQL: Conversion Error")


def test_overlap_answers_for_every_capture_as_states_does(gemm: Path, tmp_path: Path) -> None:
    other, both = tmp_path / "other.wsformat", tmp_path / "both.wsformat"
    ok("import", sample("lowprobe_r0.i32"), "--spec", sample("gemm_roles.json"), "-O", "allow_unwritten=true",
       "--label", "low", "-o", other)  # fmt: skip
    ok("merge", gemm, other, "-o", both)
    found = json.loads(ok("overlap", both, "consumer0", "consumer1", "--json"))
    alone = [json.loads(ok("overlap", one, "consumer0", "consumer1", "--json")) for one in (gemm, other)]
    assert sorted(found, key=lambda row: row["capture_id"]) == sorted(alone, key=lambda row: row["capture_id"])
    assert len(json.loads(ok("overlap", both, "--json"))) == 6
    assert ok("overlap", both, "consumer0", "consumer1").count("of union") == 2
    assert CliRunner().invoke(app, ["overlap", str(both), "consumer0", "nobody"]).exit_code == 2
