"""Every command on a bundle whose numbers are known by hand: text, JSON, selectors, and agreement with the views."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import cli_case
import pyarrow.parquet as pq
import pytest
from typer.main import get_command
from typer.testing import CliRunner, Result

from wsformat.bundle import Bundle
from wsformat.cli import docs
from wsformat.cli.main import app
from wsformat.version import __version__

COMMANDS = dict(docs.commands(get_command(app), "wsformat"))


def run(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def ok(*words: object) -> str:
    result = run(*words)
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    return result.stdout


def ask(*words: object) -> Any:
    return json.loads(ok(*words, "--json"))


def rows_of(text: str, heading: str) -> list[list[str]]:
    """Cells of the table whose heading line starts with that word."""
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.split()[:1] == [heading])
    end = next((i for i in range(start, len(lines)) if not lines[i]), len(lines))
    return [line.split() for line in lines[start + 1 : end]]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bundles") / "tiny.wsformat"
    cli_case.bundle().write(path)
    return path


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two captures in one bundle, the second with two launches."""
    first, second = cli_case.tables(), cli_case.tables(capture="beef" + "0" * 22, label="again", launches=2)
    path = tmp_path_factory.mktemp("bundles") / "pair.wsformat"
    cli_case.Bundle.from_tables({name: first[name] + second[name] for name in first}).write(path)
    return path


def test_version() -> None:
    assert ok("--version") == f"wsformat {__version__}\n"


def test_help_lists_every_command() -> None:
    text = ok("--help")
    for words in COMMANDS:
        assert words.split()[1] in text
    assert ok("-h") == text


@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_has_help_and_every_option_a_meaning(words: str) -> None:
    command = COMMANDS[words]
    assert command.help
    text = ok(*words.split()[1:], "--help")
    for parameter in command.params:
        assert parameter.name == "help" or parameter.help, f"{words} {parameter.name}"
        if parameter.param_type_name == "option":
            assert parameter.opts[0] in text


def test_the_page_of_the_command_line_is_up_to_date(root: Path) -> None:
    assert (root / "docs" / "cli.md").read_text(encoding="utf-8") == docs.page()


def test_states_json(tiny: Path) -> None:
    found = ask("states", tiny)
    assert [row["role"] for row in found] == ["producer", "consumer"]
    for row in found:
        known = cli_case.STATES[row["role"]]
        assert {name: row[name] for name in known} == known
        assert (row["capture_id"], row["launch"], row["cta"], row["unit"]) == (cli_case.CAPTURE, 0, 0, "cycle")
        for name, value in known.items():
            if name != "extent":
                assert row[f"{name}_share"] == value / known["extent"]
        assert row["unjudged"] == 0


def test_states_text(tiny: Path) -> None:
    text = ok("states", tiny)
    assert "tiny: ring on NVIDIA H200, 1 launch, 1 CTA" in text
    assert "completeness: complete; perturbation: unknown" in text
    first, second = rows_of(text, "role")
    assert first[:4] == ["producer", "1", "760", "400"]
    assert second == [
        *("consumer", "1", "770", "400", "51.9", "%", "210", "27.3", "%", "80", "10.4", "%", "80", "10.4", "%"),
        *("0", "0.0", "%", "160", "20.8", "%"),
    ]
    assert "not instrumented" in text
    assert "idle " not in text


def test_states_of_several_lanes_name_the_least_and_the_most(pair: Path) -> None:
    text = ok("states", pair, "--capture", "again")
    assert "least blocked" in text
    assert rows_of(text, "role")[1][:3] == ["consumer", "2", "770.0"]
    assert len(ask("states", pair)) == 6
    assert len(ask("states", pair, "--capture", "beef", "--launch", 1, "--role", "consumer")) == 1
    assert [row[:4] for row in rows_of(ok("states", pair, "--each", "--capture", "tiny"), "launch")] == [
        ["0", "0", "0", "producer"],
        ["0", "0", "1", "consumer"],
    ]


def test_a_role_without_stamps_is_shown_as_such(tmp_path: Path) -> None:
    rows = cli_case.tables()
    silent = {**rows["lanes"][0], "lane": 2, "role": "epilogue", "records_kept": 0}
    rows["lanes"].append(silent)
    rows["roles"].append({**rows["roles"][0], "role": "epilogue", "display_order": 2})
    path = tmp_path / "silent.wsformat"
    cli_case.Bundle.from_tables(rows).write(path)
    assert ask("states", path)[2]["extent"] == 0
    assert ask("states", path)[2]["stall_share"] is None
    assert "epilogue      0  no stamps" in ok("states", path)
    found = run("spec", "check", path, "--json")
    assert found.exit_code == 1
    assert [f["kind"] for f in json.loads(found.stdout)["findings"]] == ["silent_role"]


def test_waits(tiny: Path) -> None:
    producer, consumer = ask("waits", tiny)
    assert (consumer["role"], consumer["span"], consumer["barrier"], consumer["waits"]) == (
        "consumer",
        "wait",
        "full",
        8,
    )
    assert (consumer["gross"], consumer["blocked"], consumer["satisfied"], consumer["unjudged"]) == (160, 80, 80, 0)
    assert (consumer["median_ticks"], consumer["max_ticks"], consumer["floor_ticks"]) == (20, 20, 10)
    assert consumer["verdicts"]["producer_late"] == 8
    assert producer["verdicts"] == dict.fromkeys(consumer["verdicts"], 0) | {"free": 2, "not_blocked": 6}
    (binding,) = consumer["binding"]
    assert (binding["role"], binding["event"], binding["waits"], binding["blocked"]) == ("producer", "work_end", 8, 80)
    text = ok("waits", tiny)
    assert rows_of(text, "role")[1][:6] == ["consumer", "wait", "full", "8", "80", "50.0"]
    assert "producer.work_end 8 waits, blocked 80" in text


def test_each_wait_is_a_row_of_the_view(tiny: Path) -> None:
    found = ask("waits", tiny, "--each")
    assert found == ask("query", tiny, "SELECT * FROM wait ORDER BY capture_id, lane, t0, span")
    assert found[0]["t0"] == cli_case.BASE
    assert f"{cli_case.BASE:,}" in ok("waits", tiny, "--each")
    assert len(ask("waits", tiny, "--each", "--role", "consumer")) == 8


def test_overlap(tiny: Path) -> None:
    found = ask("overlap", tiny, "producer", "consumer")
    assert {key: found[key] for key in cli_case.OVERLAP} == cli_case.OVERLAP
    assert (found["of_a"], found["of_b"], found["of_union"]) == (70 / 400, 70 / 400, 70 / 730)
    assert found["window"] == {"ticks": 820, "ctas": 1}
    (cta,) = found["per_cta"]
    assert cta["window"] == {"t_first": cli_case.BASE, "t_last": cli_case.BASE + 820, "ticks": 820}
    assert (cta["launch"], cta["cta"], cta["cycles"]) == (0, 0, 70)


def test_overlap_does_not_depend_on_the_order_and_keeps_the_sides(tmp_path: Path) -> None:
    rows = cli_case.tables()
    rows["events"] = [e for e in rows["events"] if not (e["role"] == "producer" and e["iteration"] > 5)]
    path = tmp_path / "short.wsformat"
    cli_case.Bundle.from_tables(rows).write(path)
    one, other = ask("overlap", path, "producer", "consumer"), ask("overlap", path, "consumer", "producer")
    assert (one["cycles"], one["a_cycles"], one["b_cycles"]) == (50, 300, 400)
    assert (other["cycles"], other["a_cycles"], other["b_cycles"]) == (50, 400, 300)
    assert one["of_a"] == other["of_b"] == 50 / 300


def test_overlap_of_resources_and_of_every_pair(tiny: Path) -> None:
    assert ask("overlap", tiny, "tensor", "tma", "--resource")["cycles"] == 70
    (every,) = ask("overlap", tiny)
    assert every == ask("overlap", tiny, "producer", "consumer")
    assert rows_of(ok("overlap", tiny, "producer", "consumer"), "A")[0][:3] == ["producer", "consumer", "70"]


def test_iterations(tiny: Path) -> None:
    found = ask("iterations", tiny)
    for row in found["iterations"]:
        assert (row["method"], row["mean_ticks"], row["median_ticks"], row["unit"]) == (
            "start_to_start",
            100,
            100,
            "cycle",
        )
        assert (row["steady_first"], row["steady_end"], row["samples"]) == (2, 6, 4)
    assert found["slope"] == found["perturbation"] == []
    text = ok("iterations", tiny)
    assert rows_of(text, "launch")[0][:3] == ["0", "producer", "100.00"]
    assert "Perturbation: unknown" in text


@pytest.fixture
def lone(tmp_path: Path) -> Path:
    """A bundle of which one role alone wrote a stamp."""
    tables = cli_case.tables()
    tables["events"] = [row for row in tables["events"] if row["role"] == "producer"][:1]
    for lane in tables["lanes"]:
        lane["records_kept"] = lane["records_expected"] = int(lane["lane"] == tables["events"][0]["lane"])
    Bundle.from_tables(tables).write(tmp_path / "lone.wsformat")
    return tmp_path / "lone.wsformat"


def test_overlap_with_a_silent_role_is_unknown_not_0(lone: Path) -> None:
    found = ask("overlap", lone, "producer", "consumer")
    assert found["window"] == {"ticks": 0, "ctas": 0}
    assert {found[name] for name in ("cycles", "a_cycles", "b_cycles", "union_cycles", "of_a", "of_union")} == {None}
    assert rows_of(ok("overlap", lone, "producer", "consumer"), "A")[0][2:] == ["-"] * 7 + ["0", "0"]


def test_critical_path_of_one_stamp(lone: Path) -> None:
    assert "No path: the stamps of this CTA span no time." in ok("critical-path", lone)
    assert ask("critical-path", lone) == []


def test_critical_path(tiny: Path) -> None:
    shares = ask("critical-path", tiny)
    assert sum(row["ticks"] for row in shares if row["level"] == "pace") == 820
    both = ask("critical-path", tiny, "--each")
    assert both["summary"] == shares
    assert both["path"][0]["t0"] == cli_case.BASE
    assert sum(row["ticks"] for row in both["path"]) == 820
    assert "Critical path of launch 0, CTA 0: 820 cycles." in ok("critical-path", tiny)
    assert f"{cli_case.BASE:,}" in ok("critical-path", tiny, "--each")


def test_info(tiny: Path) -> None:
    found = ask("info", tiny)
    assert found["tables"]["events"] == 64
    (capture,) = found["captures"]
    assert capture["completeness"] == "complete"
    assert capture["accounting"] == {"records_kept": 64}
    assert capture["launches"][0]["count"] == 1
    assert "role_state" in found["views"]
    text = ok("info", tiny)
    assert "capture tiny: completeness complete" in text
    assert "import: records kept: 64" in text
    assert rows_of(text, "table")[0] == ["captures", "1"]


def test_query_prints_exact_values(tiny: Path) -> None:
    sql = "SELECT MAX(t) AS t, SUM(t) AS s, 'NaN'::DOUBLE AS n, 'x,\"y' AS text, 1.5 AS d, NULL AS nothing FROM events"
    total = sum(e["t"] for e in cli_case.tables()["events"])
    row = {"t": cli_case.BASE + 820, "s": total, "n": None, "text": 'x,"y', "d": 1.5, "nothing": None}
    assert total > 2**53
    assert ask("query", tiny, sql) == [row]
    text = ok("query", tiny, sql)
    assert str(total) in text
    assert "NULL" in text
    assert ok("query", tiny, "--csv", "SELECT t, 'x,\"y' AS text FROM events ORDER BY t LIMIT 1") == (
        f'"t","text"\n{cli_case.BASE},"x,""y"\n'
    )
    assert ask("query", tiny, "SELECT * FROM events WHERE FALSE") == []


@pytest.mark.parametrize("name", ["a.csv", "a.json", "a.arrow", "a.parquet"])
def test_query_and_export_write_files(tiny: Path, tmp_path: Path, name: str) -> None:
    import pyarrow as pa
    import pyarrow.csv as pc

    one, other = tmp_path / name, tmp_path / f"view-{name}"
    assert run("query", tiny, "SELECT * FROM role_state ORDER BY lane", "-o", one).exit_code == 0
    assert ok("export", tiny, other, "--view", "role_state") == f"{other}: 2 rows\n"
    read = {
        ".csv": lambda p: pc.read_csv(p).to_pylist(),
        ".json": lambda p: json.loads(p.read_text()),
        ".arrow": lambda p: pa.ipc.open_file(p).read_all().to_pylist(),
        ".parquet": lambda p: pq.read_table(p).to_pylist(),
    }[one.suffix]
    expected = ask("query", tiny, "SELECT * FROM role_state ORDER BY lane")
    assert read(one) == expected
    assert sorted(read(other), key=lambda row: row["lane"]) == expected
    assert run("export", tiny, other, "--view", "role_state").exit_code == 2
    assert run("export", tiny, other, "--table", "events", "--force").exit_code == 0
    assert len(read(other)) == 64
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


def test_no_column_of_a_query_is_lost(tiny: Path, tmp_path: Path) -> None:
    """Columns of one name, as SELECT * of a join has them, are told apart, not overwritten."""
    sql = "SELECT 1 AS a, 2 AS a, 3 AS a_1, 4 AS a"
    row = {"a": 1, "a_2": 2, "a_1": 3, "a_3": 4}
    assert ask("query", tiny, sql) == [row]
    assert ok("query", tiny, "--csv", sql).replace('"', "") == "a,a_2,a_1,a_3\n1,2,3,4\n"
    assert ok("query", tiny, sql).split() == ["a", "a_2", "a_1", "a_3", "1", "2", "3", "4"]
    for suffix in (".json", ".csv", ".parquet", ".arrow"):
        assert run("query", tiny, sql, "-o", tmp_path / f"x{suffix}").exit_code == 0
    assert json.loads((tmp_path / "x.json").read_text()) == [row]
    assert pq.read_table(tmp_path / "x.parquet").to_pylist() == [row]


def test_info_counts_anchors_of_every_clock(tiny: Path) -> None:
    clocks = [c for capture in ask("info", tiny)["captures"] for c in capture["clocks"]]
    assert clocks
    assert all(isinstance(clock["anchors"], int) for clock in clocks)


def test_query_reads_standard_input(tiny: Path) -> None:
    result = CliRunner().invoke(app, ["query", str(tiny), "-", "--json"], input="SELECT 41 + 1 AS x")
    assert json.loads(result.stdout) == [{"x": 42}]


def test_many_rows_are_announced_not_dropped_in_silence(tiny: Path) -> None:
    result = run("query", tiny, "SELECT * FROM range(1500)")
    assert len(result.stdout.splitlines()) == 1001
    assert "500 more rows are not shown" in result.stderr
    assert len(ask("query", tiny, "SELECT * FROM range(1500)")) == 1500


def test_a_wide_table_loses_no_digit(tiny: Path) -> None:
    text = ok("query", tiny, "SELECT *, t * 1000 AS long_one, repeat('x', 300) AS wide FROM events ORDER BY t LIMIT 1")
    assert str(cli_case.BASE * 1000) in text
    assert "x" * 300 in text
    assert "…" not in text
    assert "\x1b" not in text


def test_control_characters_of_a_file_do_not_reach_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "hostile.wsformat"
    cli_case.bundle(label="\x1b[2Jboo [red]x[/red]").write(path)
    for command in ("states", "info", "waits", "iterations"):
        text = ok(command, path)
        assert "\x1b" not in text
        assert "\\x1b[2Jboo [red]x[/red]" in text


def test_spec_check_of_a_sound_bundle(tiny: Path) -> None:
    assert ask("spec", "check", tiny) == {"path": str(tiny), "problems": 0, "notes": 0, "findings": []}
    assert ok("spec", "check", tiny) == f"{tiny}: 0 problems, 0 notes\n"


def spoil_no_end(rows: dict[str, list[dict[str, Any]]]) -> None:
    rows["events"] = [e for e in rows["events"] if (e["role"], e["event"]) != ("consumer", "wait_end")]


def spoil_hidden(rows: dict[str, list[dict[str, Any]]]) -> None:
    rows["span_types"][3]["contains_wait"] = True


def spoil_no_wait_span(rows: dict[str, list[dict[str, Any]]]) -> None:
    rows["span_types"] = [s for s in rows["span_types"] if (s["role"], s["span"]) != ("consumer", "wait")]


def spoil_no_edge(rows: dict[str, list[dict[str, Any]]]) -> None:
    rows["dependencies"] = rows["dependencies"][:1]


def spoil_point(rows: dict[str, list[dict[str, Any]]]) -> None:
    rows["dependencies"][0]["producer_event"] = "commit"


def spoil_lag(rows: dict[str, list[dict[str, Any]]]) -> None:
    rows["dependencies"][1] |= {"producer_step": 0, "consumer_step": 0}


def spoil_early(rows: dict[str, list[dict[str, Any]]]) -> None:
    rows["dependencies"][0]["producer_event"] = "early"
    here = {"capture_id": cli_case.CAPTURE, "role": "producer", "event": "early"}
    rows["event_types"].append({**here, "event_index": 9, "loop": "main"})
    at = rows["events"][0]
    rows["events"] += [{**at, "event": "early", "iteration": i, "t": cli_case.BASE + 100 * i + 30} for i in range(8)]


@pytest.mark.parametrize(
    ("spoil", "kinds", "code"),
    [
        (spoil_no_end, ["event_never_written", "pair_never_complete", "edge_without_point", "unpaired_points"], 1),
        (spoil_hidden, ["hidden_wait"], 0),
        (spoil_no_wait_span, ["wait_without_pair"], 1),
        (spoil_no_edge, ["wait_without_edge"], 0),
        (spoil_point, ["edge_without_declared_point", "edge_without_point"], 1),
        (spoil_lag, ["lag_unknown"], 0),
        (spoil_early, ["early_signal"], 0),
    ],
)
def test_spec_check_finds(tmp_path: Path, spoil: Any, kinds: list[str], code: int) -> None:
    rows = cli_case.tables()
    spoil(rows)
    path = tmp_path / "spoiled.wsformat"
    cli_case.Bundle.from_tables(rows).write(path)
    result = run("spec", "check", path, "--json")
    assert result.exit_code == code
    assert [f["kind"] for f in json.loads(result.stdout)["findings"]] == kinds
    text = run("spec", "check", path)
    assert text.exit_code == code
    assert all(kind in text.stdout for kind in kinds)


def test_a_bundle_without_stamps_says_so(tmp_path: Path) -> None:
    path = tmp_path / "counters.wsformat"
    cli_case.Bundle.from_tables({"captures": [{"capture_id": cli_case.CAPTURE, "kind": "profiled"}]}).write(path)
    assert "No stamps and no spans" in ok("states", path)
    assert "No waits" in ok("waits", path)
    assert "No iterations" in ok("iterations", path)
    assert "Fewer than two" in ok("overlap", path)
    assert "a kernel without name on an unknown device" in ok("states", path)
    for command in ("states", "waits", "overlap"):
        assert ask(command, path) == []
    assert run("critical-path", path).exit_code == 2
