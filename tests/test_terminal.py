"""The timeline as text: its columns are the states tick by tick, its lines fit, it speaks ASCII when it must."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import timeline_case
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from typer.testing import CliRunner

from wsformat.bundle import Bundle
from wsformat.cli.main import app
from wsformat.converters.registry import import_files
from wsformat.errors import BadRequest
from wsformat.samples import path as sample
from wsformat.viewers import terminal
from wsformat.viewers.terminal import coverage, panel, text


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    options: dict[str, Any] = {"spec": str(sample("gemm_roles.json")), "meta": [str(sample("balanced_r0.meta"))]}
    made = import_files([sample("balanced_r0.i32")], options)
    return made.write(tmp_path_factory.mktemp("b") / "x.wsformat")


@given(st.lists(st.integers(1, 9), max_size=12), st.integers(0, 5), st.integers(1, 20))
def test_coverage_is_counted_tick_by_tick(gaps: list[int], start: int, bins: int) -> None:
    moments = np.cumsum([start, *gaps])
    t0, t1 = moments[:-1:2], moments[1::2]
    t0 = t0[: len(t1)]
    edges = np.arange(bins + 1) * 3
    inside = np.zeros(edges[-1], dtype=int)
    for a, b in zip(t0.tolist(), t1.tolist(), strict=True):
        inside[a : min(b, edges[-1])] = 1
    expected = inside.reshape(bins, 3).sum(axis=1)
    assert coverage(t0, t1, edges).tolist() == pytest.approx(expected.tolist())


def test_columns_show_what_the_lane_mostly_did(bundle: Bundle) -> None:
    with bundle.duckdb() as connection:
        capture = bundle.table("captures")["capture_id"][0].as_py()
        made = panel(connection, capture, columns=72)
        origin = min(r[0] for r in connection.execute("SELECT MIN(t) FROM events GROUP BY lane").fetchall())
        rows = connection.execute("SELECT role, state, t0, t1 FROM state_interval NATURAL JOIN lanes").fetchall()
    width = (made.end - made.start) / 72
    for line in made.lines:
        for n, shown in enumerate(line.columns):
            begin = origin + made.start + n * width
            ticks = {"stall": 0.0, "active": 0.0, "untracked": 0.0}
            for role, state, t0, t1 in rows:
                if role == line.name:
                    ticks[state] += max(0.0, min(t1, begin + width) - max(t0, begin))
            assert ticks[shown] == pytest.approx(max(ticks.values()))


def test_shares_are_those_of_the_accounting(bundle: Bundle) -> None:
    with bundle.duckdb() as connection:
        made = panel(connection, bundle.table("captures")["capture_id"][0].as_py(), whole=True)
    producer = made.lines[0]
    assert producer.name == "producer"
    assert producer.shares["stall_share"] == pytest.approx(15750 / 48204)
    assert producer.shares["blocked_share"] == pytest.approx(10227 / 48204)
    assert producer.shares["untracked_share"] == pytest.approx(13605 / 48204)
    assert (made.start, made.end) == (0, 52879)
    assert made.overlaps[0]["both_ticks"] == 15730


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_lines_fit_and_ascii_is_ascii(bundle: Bundle, width: int) -> None:
    result = CliRunner().invoke(app, ["show", str(bundle.path), "--width", str(width), "--ascii"])
    assert result.exit_code == 0, result.output
    assert result.output.isascii()
    shown = result.output.splitlines()[2:]  # below what every command says first
    assert max(map(len, shown)) <= width
    bars = [line for line in shown if re.match(r"(producer|consumer\d) +[#/.]{24,}", line)]
    assert [line.split()[0] for line in bars] == ["producer", "consumer0", "consumer1"]
    assert all(line.endswith("%") for line in bars) == (width >= 80)
    said = " ".join(result.output.split())
    for part in ("33%", "21%", "producer waits 60 times on empty", "10,227 of them blocked", "28%"):
        assert part in said
    assert "idle" not in result.output


def test_without_a_terminal_nothing_is_wrapped(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    result = CliRunner().invoke(app, ["show", str(bundle.path)])
    assert any("10,227 of them blocked; longest 717" in line for line in result.output.splitlines())


@pytest.mark.parametrize(
    ("names", "blocks"),
    [({}, True), ({"LANG": "C"}, False), ({"LANG": "en_US.UTF-8", "LC_ALL": "POSIX"}, False),
     ({"LANG": "C", "LC_ALL": "C.UTF-8"}, True), ({"TERM": "dumb"}, False)],
)  # fmt: skip
def test_the_locale_decides(
    bundle: Bundle, names: dict[str, str], blocks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LC_ALL", "LC_CTYPE", "LANG", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in names.items():
        monkeypatch.setenv(name, value)
    shown = CliRunner().invoke(app, ["show", str(bundle.path)]).output
    assert ("█" in shown) == blocks
    assert ("#" in shown) != blocks


def test_long_and_wide_names_keep_the_columns() -> None:
    data = timeline_case.tables(role="読む🧵" + "x" * 10_000)
    with Bundle.from_tables(data).duckdb() as connection:
        made = panel(connection, timeline_case.CAPTURE, columns=40)
    bars = [line for line in text(made) if line.endswith("%")]
    assert len(bars) == 2
    assert {cell_len(line) for line in bars} == {cell_len(bars[0])}
    assert cell_len(bars[0]) <= 14 + 2 + 40 + 41


def test_a_large_capture_gives_the_same(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked of one CTA's rows alone, or of everything: the same panel."""
    monkeypatch.setattr(terminal, "LARGE", 10**9)
    grid = Path(__file__).parent.parent / "conformance" / "samples" / "gemm_grid.wsformat"
    for path in (bundle.path, grid):
        for words in ([], ["--cta", "3"] if path == grid else ["--whole"]):
            ask = ["show", str(path), "--json", "--width", "140", *words]
            monkeypatch.setattr(terminal, "LARGE", 10**9)
            small = CliRunner().invoke(app, ask)
            monkeypatch.setattr(terminal, "LARGE", 0)
            large = CliRunner().invoke(app, ask)
            assert small.exit_code == 0, small.output
            assert large.stdout == small.stdout


def test_unicode_marks_differ_from_each_other(bundle: Bundle) -> None:
    with bundle.duckdb() as connection:
        made = panel(connection, bundle.table("captures")["capture_id"][0].as_py())
    drawn = "\n".join(text(made))
    assert {"█", "╱", "·"} <= set(drawn)


def test_json(bundle: Bundle) -> None:
    result = CliRunner().invoke(app, ["show", str(bundle.path), "--json", "--width", "140"])
    found = json.loads(result.stdout)
    assert [lane["name"] for lane in found["lanes"]] == ["producer", "consumer0", "consumer1"]
    assert {state for lane in found["lanes"] for state in lane["columns"]} <= {"active", "stall", "untracked", ""}
    assert found["waits"][0]["barrier"] == "empty"


def test_what_is_not_there_is_said(bundle: Bundle, tmp_path: Path) -> None:
    for words in (["--launch", "7"], ["--cta", "3"]):
        result = CliRunner().invoke(app, ["show", str(bundle.path), *words])
        assert result.exit_code == 2
        assert "There are: 0." in result.stderr
    empty = Bundle.from_tables({"captures": [{"capture_id": "c"}]})
    with empty.duckdb() as connection, pytest.raises(BadRequest, match="nothing is stamped"):
        panel(connection, "c")
