"""Two versions side by side: planted changes are found, noise is called noise, and unlike is not compared with like."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import cli_case
import numpy as np
import pytest
import reconcile_case
import report_case as case
import simulator_bundle
from typer.testing import CliRunner, Result

import simulator
from simulator import Ticks
from wsformat.bundle import Bundle
from wsformat.cli.main import app
from wsformat.errors import BadRequest
from wsformat.viewers import diff_noise
from wsformat.viewers.diff import FASTER, OPEN, SAME, SLOWER, diff
from wsformat.viewers.diff_document import document
from wsformat.viewers.diff_figure import aligned, diff_figure
from wsformat.viewers.report_model import words
from wsformat.viewers.report_page import page


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def recording(name: str) -> Bundle:
    """One of the recordings that ship with the example kernel."""
    from wsformat.kernels.decode import to_bundle
    from wsformat.kernels.recording import Recording

    with as_file(files("wsformat.kernels.examples") / f"{name}.npz") as file:
        return to_bundle(Recording.load(file))


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The GEMM, and the same with a slow producer, on disk."""
    folder = tmp_path_factory.mktemp("pair")
    for name in ("stamped", "slow"):
        case.bundle(name).write(folder / f"{name}.wsformat")
    return folder / "stamped.wsformat", folder / "slow.wsformat"


def test_a_slow_producer_is_slower_and_named(pair: tuple[Path, Path]) -> None:
    made = diff(Bundle.open(pair[0]), Bundle.open(pair[1]))
    assert made.outcome == SLOWER
    first = made.speeds[0]
    assert (first.a.method, first.a.kind) == ("slope", "clean")
    assert (first.a.value, first.b.value) == (511.9375, pytest.approx(1983.7, abs=0.1))
    assert first.noise.low is not None
    assert first.noise.low < 1983.7 / 511.9375 - 1 < first.noise.high  # type: ignore[operator]
    assert (made.path[0]["role"], made.path[0]["kind"]) == ("producer", "untracked")
    assert made.path[0]["change"] == pytest.approx(1679, abs=1)
    assert (made.waits[0]["role"], made.waits[0]["barrier"]) == ("consumer1", "full")
    assert "slower than balanced_r0: 1,983.7 against 511.9 cycles an iteration, +287.5 %" in made.verdict
    assert "producer untracked on the critical path, +1,679.2 an iteration" in made.verdict
    back = diff(Bundle.open(pair[1]), Bundle.open(pair[0]))
    assert back.outcome == FASTER
    assert back.speeds[0].change == pytest.approx(1 / (1 + first.change) - 1)  # type: ignore[operator]


def test_states_and_path_are_those_of_each_side_an_iteration(pair: tuple[Path, Path]) -> None:
    made = diff(Bundle.open(pair[0]), Bundle.open(pair[1]))
    producer = next(row for row in made.states if row["role"] == "producer")
    assert producer["untracked_a"] == pytest.approx(13_605 / 64)
    assert producer["blocked_a"] == pytest.approx(10_227 / 64)
    assert producer["stall_share_a"] == pytest.approx(15_750 / 48_204)
    assert sum(row["a"] for row in made.path) == pytest.approx(52_879 / 64)
    assert sum(row["b"] for row in made.path) == pytest.approx(125_508 / 64)
    both = next(row for row in made.overlap if (row["set_a"], row["set_b"]) == ("consumer0", "consumer1"))
    assert both["of_union_before"] == pytest.approx(13_891 / (28_842 + 33_455 - 13_891))


def test_two_repeats_differ_by_noise_only() -> None:
    made = diff(case.gemm(label="r0"), case.gemm("balanced_r0", label="r1"))
    assert made.outcome == SAME
    assert made.verdict.startswith("No difference beyond noise: r1 takes 511.9 against 511.9")
    assert "What moved" not in made.verdict


def test_repeats_of_the_captures_differ_by_noise_only(captures: Path) -> None:
    """r0 and r1 of the balanced kernel, on the clean launches split in two: the odd and the even ones."""
    sides = []
    for n, stem in enumerate(("balanced_r0", "balanced_r1")):
        sides.append(halved(captures / "stamps", stem, n))
    made = diff(*sides)
    assert made.outcome == SAME, made.verdict
    assert made.speeds[0].a.method == "slope"
    a, b = (set(side.groups[64].tolist()) for side in (made.speeds[0].a, made.speeds[0].b))
    assert a != b  # another half of the launches on either side


def halved(folder: Path, stem: str, part: int) -> Bundle:
    """A capture with every other clean launch."""
    from wsformat.converters.registry import import_files
    from wsformat.samples import path as sample

    made: Bundle = import_files(
        [folder / f"{stem}.i32"],
        {"spec": sample("gemm_roles.json"), "meta": [folder / f"{stem}.meta"], "trip_count": 64, "label": stem,
         "clean": [(sample(f"one_{k}_clean.metas"), n) for k, n in case.TRIPS.items()]},
    )  # fmt: skip
    launches = made.table("launches").to_pylist()
    clean = [row for row in launches if row["kind"] == "clean"]
    gone = {row["launch"] for row in clean if row["launch"] % 2 == part}
    names = {row["capture_id"] for row in clean}
    tables = {}
    for name in ("launches", "lanes", "clock_anchors"):
        rows = made.table(name).to_pylist()
        tables[name] = [r for r in rows if not (r["capture_id"] in names and r["launch"] in gone)]
    return made.with_tables(tables)


def test_two_stages_against_four() -> None:
    four, two = recording("gemm_hopper"), recording("gemm_hopper_two_stages")
    made = diff(four, two)
    assert made.outcome == SLOWER
    clean = "SELECT slope_ticks FROM slope WHERE kind = 'clean'"
    values = [one.sql(clean)["slope_ticks"].to_pylist() for one in (four, two)]
    assert values == [[made.speeds[0].a.value], [made.speeds[0].b.value]]
    assert 1.3 < made.speeds[0].b.value / made.speeds[0].a.value < 1.5
    for each in made.speeds:  # a pass with a few stamps is compared with the same pass alone
        assert each.a.key == each.b.key
    assert {each.a.part for each in made.speeds if each.a.kind == "stamped" and each.a.method == "slope"} == {0, 1, 2}
    assert "latency of full on the critical path" in made.verdict


PLANTED = {
    "a slower producer": (replace(reconcile_case.BASE, spin=Ticks(3000)), SLOWER, "producer untracked"),
    "slower work": (replace(reconcile_case.BASE, work=(Ticks(1500),)), SLOWER, "active in work"),
    "faster work": (replace(reconcile_case.BASE, work=(Ticks(800),)), FASTER, "active in work"),
    "nothing": (replace(reconcile_case.BASE, probe=4), SAME, ""),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_change_is_found(name: str, tmp_path: Path) -> None:
    kernel, outcome, moved = PLANTED[name]
    before = repeated(reconcile_case.BASE, tmp_path / "a")
    after = repeated(kernel, tmp_path / "b")
    made = diff(before, after)
    assert made.outcome == outcome, made.verdict
    if moved:
        assert moved in made.verdict.partition("What moved: ")[2].partition(";")[0]


def repeated(kernel: Any, folder: Path) -> Bundle:
    """A simulated kernel with five clean launches at each trip count instead of three."""
    original = reconcile_case.records

    def more(one: Any, trips: int, file: Path, launches: int = 5) -> tuple[Path, int]:
        return original(one, trips, file, launches)

    reconcile_case.records = more  # type: ignore[assignment]
    try:
        return reconcile_case.measured(kernel, folder)
    finally:
        reconcile_case.records = original


def test_without_repeats_it_is_unknown(captures: Path) -> None:
    made = diff(case.gemm(launches="", label="r0"), case.gemm("slowproducer_r0", launches="", label="slow"))
    assert made.outcome == OPEN
    assert made.speeds[0].a.method == "start_to_start"
    assert "whether that is more than noise is unknown: 1 launch of a kind, at least 4 are needed" in made.verdict
    assert "how much the stamps disturb one of them is unknown" in made.warnings


def test_unlike_is_refused_and_force_warns() -> None:
    one, two = case.gemm(), case.gemm("lowprobe_r0", "one", "branchfree")
    with pytest.raises(BadRequest, match="stamp sets differ"):
        diff(one, two)
    forced = diff(one, two, force=True)
    assert any("stamp sets differ" in warning for warning in forced.warnings)
    other = cli_case.tables()
    other["captures"][0]["device"] = "another GPU"
    with pytest.raises(BadRequest, match="devices differ"):
        diff(cli_case.bundle(), Bundle.from_tables(other))
    ns = cli_case.tables()
    ns["clocks"][0]["unit"] = "ns"
    with pytest.raises(BadRequest, match="units of the clocks differ"):
        diff(cli_case.bundle(), Bundle.from_tables(ns))
    cut = cli_case.tables()
    cut["captures"][0]["completeness"] = "truncated"
    cut["launches"][0]["trip_count"] = 16
    said = diff(cli_case.bundle(), Bundle.from_tables(cut)).warnings
    assert any("is truncated" in warning for warning in said)
    assert any("iterations differ (8 and 16)" in warning for warning in said)
    with pytest.raises(BadRequest, match="neither a timeline nor lifetimes"):
        diff(cli_case.bundle(), Bundle.from_tables({"captures": [{"capture_id": "x"}]}))


NOISES = {
    "normal": lambda rng, n: rng.normal(0, 60, n),
    "skewed": lambda rng, n: rng.exponential(60, n),
    "two lengths": lambda rng, n: rng.choice([0, 120], n) + rng.normal(0, 5, n),
    "heavy tails": lambda rng, n: 40 * rng.standard_t(2, n),
}


@pytest.mark.parametrize("shape", NOISES)
@pytest.mark.parametrize("launches", [4, 10])
def test_one_in_a_hundred_alike_versions_is_called_different(
    shape: str, launches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diff_noise, "DRAWS", 1_999)
    rng = np.random.default_rng(7)

    def version(fixed: float = 3_400, slope: float = 512) -> dict[int, Any]:
        return {n: np.round(fixed + slope * n + NOISES[shape](rng, launches)) for n in (32, 64)}

    wrong = sum(bool(diff_noise.noise(version(), version(fixed=5_000)).beyond) for _ in range(200))
    assert wrong <= 8  # 1 % is 2 of 200; more than 8 has a probability under 0.0003
    found = sum(bool(diff_noise.noise(version(), version(slope=540)).beyond) for _ in range(20))
    assert found >= (17 if launches == 10 else 12)


def test_noise_needs_repeats() -> None:
    few = {32: np.array([1.0, 2.0, 3.0]), 64: np.array([2.0, 3.0, 4.0])}
    assert diff_noise.noise(few, few).beyond is None
    assert "3 launches of a kind, at least 4" in diff_noise.noise(few, few).why
    assert diff_noise.noise({}, {}).why == "no repeats"
    assert diff_noise.noise({32: np.ones(9)}, {64: np.ones(9)}).beyond is None


def test_every_number_of_the_page_is_in_the_json_or_the_sql(pair: tuple[Path, Path]) -> None:
    target = pair[0].parent / "d.html"
    result = run("diff", *pair, "-o", target, "--no-pictures")
    assert result.exit_code == 0, result.output
    told = json.loads(run("diff", *pair, "--json").stdout)
    found = case.read(target.read_text())
    assert told["verdict"] in " ".join(found.text.split())
    assert len(found.numbers) > 150
    opened = {"a": Bundle.open(pair[0]), "b": Bundle.open(pair[1])}
    answers: dict[str, Any] = {}
    for number in found.numbers:
        query = found.queries[number["query"]]
        if query["kind"].startswith("SQL"):
            side = number["query"].split("-")[0]
            if number["query"] not in answers:
                answers[number["query"]] = opened[side].sql(query["text"]).to_pylist()
            rows = answers[number["query"]]
        else:
            assert query["text"] == f"wsformat diff {pair[0].name} {pair[1].name} --json"
            rows = told[re.search(r"in its JSON: (\w+)", query["more"])[1]]  # type: ignore[index]
        value = rows[int(number["row"])][number["column"]]
        assert number["exact"] == ("unknown" if value is None else str(value)), number


def test_markdown_files_and_refusals(pair: tuple[Path, Path], tmp_path: Path) -> None:
    shown = run("diff", *pair)
    assert shown.exit_code == 0
    assert shown.stdout.splitlines()[0] == "# balanced_r0 and slowproducer_r0"
    assert re.search(r"\| slope +\| clean +\| +\| +\| +511\.9 \| +1,983\.7 \| +\+287\.5 % \|", shown.stdout)
    target = tmp_path / "d.md"
    assert run("diff", *pair, "-o", target).exit_code == 0
    assert target.read_text() == shown.stdout
    assert run("diff", *pair, "-o", target).exit_code == 2
    for words_ in (["-o", tmp_path / "d.doc"], ["--no-pictures", "-o", tmp_path / "d.svg"], ["--capture", "nope"],
                   ["--launch", "x"], ["--launch", "1,2,3"], ["--launch", "9"]):  # fmt: skip
        refused = run("diff", *pair, *words_)
        assert (refused.exit_code, "Traceback" in refused.output) == (2, False), words_


def test_both_timelines_start_with_the_same_iteration(pair: tuple[Path, Path]) -> None:
    made = diff(Bundle.open(pair[0]), Bundle.open(pair[1]))
    found = aligned(made.a, made.b)
    assert found is not None
    role, iteration, ticks, begins = found
    for side, begin in zip((made.a, made.b), begins, strict=True):
        rows = side.bundle.sql(
            f"SELECT (SELECT MIN(t) FROM iteration WHERE role = '{role}' AND iteration = {iteration}) "
            "- (SELECT MIN(t) FROM events WHERE launch = 0) AS t"
        ).to_pylist()
        assert rows == [{"t": begin}]
    assert ticks == pytest.approx(6 * 1907, rel=0.02)


JITTER = replace(reconcile_case.BASE, work=(Ticks(1000, 40),), spin=Ticks(0, 60))


def stamped_often(kernel: Any, seed: int, launches: int) -> Bundle:
    made: Bundle = simulator_bundle.bundle(simulator.simulate(kernel, seed, launches=launches))
    return made


def test_states_and_waits_have_an_interval_from_launches_with_stamps() -> None:
    """Slower work is more than noise in its role's active time; the same kernel again is not."""
    before, after = stamped_often(JITTER, 1, 8), stamped_often(replace(JITTER, work=(Ticks(1060, 40),)), 2, 8)
    made = diff(before, after, force=True)
    worker = next(row for row in made.states if row["role"].startswith("consumer"))
    assert worker["active_beyond"] is True
    assert "active" in worker["more_than_noise"].split(", ")
    assert worker["active_low"] <= 60 <= worker["active_high"]
    assert 0 < worker["active_low"] < worker["active_change"] * 1.5
    assert worker["launches"] == 8
    first = made.speeds[0]
    assert (first.a.method, first.noise.launches, first.noise.beyond) == ("start_to_start", 8, True)
    assert made.outcome == SLOWER
    again = diff(before, stamped_often(JITTER, 3, 8), force=True)
    assert again.outcome == SAME
    alike = [row[f"{state}_beyond"] for row in again.states for state in ("active", "blocked", "satisfied")]
    assert alike.count(True) <= 1, again.states
    few = diff(stamped_often(JITTER, 1, 3), before, force=True)
    assert few.states[0]["active_beyond"] is None
    assert few.states[0]["more_than_noise"] == "unknown: 3 launches with stamps, at least 4 are needed"
    assert few.waits[0]["more_than_noise"] == few.states[0]["more_than_noise"]
    same = diff(stamped_often(JITTER, 1, 1), stamped_often(JITTER, 1, 1), force=True)
    assert " is as fast as " in same.verdict


def test_both_timelines_are_one_picture(pair: tuple[Path, Path], tmp_path: Path) -> None:
    """One scale, both versions named, one legend; the numbers say whose they are."""
    for suffix, head in ((".svg", b"<svg"), (".png", b"\x89PNG"), (".pdf", b"%PDF")):
        target = tmp_path / f"both{suffix}"
        assert run("diff", *pair, "-o", target).exit_code == 0
        assert target.read_bytes().startswith(head)
    drawn = (tmp_path / "both.svg").read_text()
    for words_ in ("A: balanced_r0", "B: slowproducer_r0"):
        assert drawn.count(words_) >= 1
    assert drawn.count(">not instrumented: no stamps cover this time, so nothing is<") == 1
    figure = diff_figure(diff(Bundle.open(pair[0]), Bundle.open(pair[1])))
    assert figure is not None
    domains = {json.dumps(layer["encoding"]["x"]["scale"]["domain"]) for plot in figure.spec["vconcat"][:2]
               for layer in plot["layer"] if "scale" in layer["encoding"].get("x", {})}  # fmt: skip
    lengths = {high - low for low, high in map(json.loads, domains)}
    assert len(lengths) == 1
    versions = figure.table["version"].to_pylist()
    assert set(versions) == {"A", "B"}
    for version, bundle in zip("AB", map(Bundle.open, pair), strict=True):
        (sql,) = (query for what, query in figure.sql.items() if what.startswith(f"the spans of {version}"))
        there = {(row["role"], row["span"], row["t0"], row["t1"]) for row in bundle.sql(sql).to_pylist()}
        rows = [row for row in figure.table.to_pylist() if row["version"] == version]
        assert rows
        assert {(row["role"], row["span"], row["t0"], row["t1"]) for row in rows} <= there


def test_hostile_names_stay_text() -> None:
    made = diff(case.bundle("hostile"), case.bundle("hostile"), force=True)
    text = page(document(made, ("a.wsformat", "b.wsformat"), pictures=False))
    found = case.read(text)
    assert found.tags.count("script") == 1 + len(found.csv)
    assert "\u202e" not in found.text
    assert len(text) < 3_000_000
    assert words(made.headline) == made.verdict
