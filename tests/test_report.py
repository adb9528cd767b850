"""The report: every number is what its query gives, the first lines answer, nothing runs and nothing is fetched."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import report_case as case
from typer.testing import CliRunner, Result

from wsformat.bundle import Bundle
from wsformat.cli.main import app
from wsformat.derive import run as ask
from wsformat.errors import BadRequest
from wsformat.viewers.report import report
from wsformat.viewers.report_model import Document, plain, words, written
from wsformat.viewers.report_page import page
from wsformat.viewers.report_text import markdown
from wsformat.viewers.timeline_page import script as timeline_script


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reports")


@pytest.fixture(scope="module")
def documents(folder: Path) -> Any:
    """Report of a bundle by its name, on a bundle that is on disk."""
    made: dict[str, tuple[Bundle, Document]] = {}

    def of(name: str) -> tuple[Bundle, Document]:
        if name not in made:
            path = folder / f"{name}.wsformat"
            stored = case.bundle(name)
            stored = stored.write(path) if stored.path is None else stored
            made[name] = stored, report(stored, pictures=False)
        return made[name]

    return of


def answer(found: dict[str, str], bundle: Bundle, connection: Any, asked: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows of a query as the page shows it: its SQL run as it stands, or its command and the place in its JSON."""
    key = found["text"]
    if key not in asked:
        if found["kind"].startswith("SQL"):
            asked[key] = [plain(row) for row in ask(connection, key).to_pylist()]
        else:
            program, *arguments = shlex.split(key)
            assert program == "wsformat"
            arguments = [str(bundle.path) if a == bundle.path.name else a for a in arguments]  # type: ignore[union-attr]
            result = run(*arguments)
            assert result.exit_code == 0, result.output
            asked[key] = json.loads(result.stdout)
    rows = asked[key]
    if found["kind"].startswith("SQL"):
        return list(rows)
    place = re.search(r"in its JSON: (\S+)", found["more"])
    for part in place[1].split(".") if place else ():
        rows = rows[part]
    return rows if isinstance(rows, list) else [rows]


@pytest.mark.parametrize("name", case.NAMES)
def test_every_number_is_what_its_query_gives(documents: Any, name: str) -> None:
    bundle, document = documents(name)
    found = case.read(page(document))
    asked: dict[str, Any] = {}
    counted = 0
    with bundle.duckdb(materialise=("wait", "role_state", "overlap")) as connection:
        for number in found.numbers:
            rows = answer(found.queries[number["query"]], bundle, connection, asked)
            value = rows[int(number["row"])].get(number["column"])
            if number["column"] == "share" and number["query"].startswith("verdict"):
                row = rows[int(number["row"])]
                value = row["predicted_cycles"] / row["measured_cycles"]
            exact = "unknown" if value is None else str(value)
            assert number["exact"] == exact, number
            assert close(number["shown"], value), number
            counted += 1
    assert counted >= {"empty": 0, "scopes": 10}.get(name, 25)


def close(shown: str, value: Any) -> bool:
    """Whether what is written is the value to the digits that are written."""
    if shown == "unknown":
        return value is None or value == -1
    text = shown.replace(",", "")
    if text.endswith(" %"):
        return abs(float(text[:-2]) - 100 * value) <= 0.05 + 1e-9
    digits = len(text.partition(".")[2])
    return abs(float(text) - float(value)) <= 0.5 * 10**-digits + 1e-9 if digits else int(text) == value


@pytest.mark.parametrize("name", case.NAMES)
def test_csv_has_every_row_exactly(documents: Any, name: str) -> None:
    bundle, document = documents(name)
    found = case.read(page(document))
    shown = [q for q in document.queries.values() if q.id in found.csv]
    assert bool(shown)
    with bundle.duckdb(materialise=("wait", "role_state", "overlap")) as connection:
        for query in shown:
            table = found.csv[query.id]
            assert tuple(table[0]) == query.columns or not query.columns
            rows = [plain(r) for r in ask(connection, query.sql).to_pylist()] if query.sql else list(query.rows)
            assert len(table) == 1 + len(rows)
            for line, row in zip(table[1:], rows, strict=True):
                for text, value in zip(line, row.values() if query.sql else map(row.get, query.columns), strict=True):
                    if isinstance(value, bool):
                        assert text == str(value).lower()
                    elif isinstance(value, int):
                        assert text == str(value)
                    elif isinstance(value, float):
                        assert float(text) == value
                    elif isinstance(value, str):
                        assert text in (value, "'" + value)
                        assert text[:1] not in ("=", "+", "-", "@")


@pytest.mark.parametrize("name", case.NAMES)
def test_the_page_fetches_nothing_and_ids_are_unique(documents: Any, name: str) -> None:
    text = page(documents(name)[1])
    found = case.read(text)
    assert "default-src 'none'" in text
    assert all(link.startswith("#") for link in found.links)
    assert len(found.ids) == len(set(found.ids))
    assert {n["query"] for n in found.numbers} <= set(found.queries)
    assert found.tags.count("script") == 1 + len(found.csv)
    assert "idle" not in found.text.replace("idle at least", "").replace("idleness", "") or name in (
        "stamped", "slow", "merged", "counters",
    )  # fmt: skip


def head(documents: Any, name: str) -> str:
    document = documents(name)[1]
    return "\n".join(map(words, document.headline))


def noted(documents: Any, name: str, what: str) -> str:
    return words(next(n.text for n in documents(name)[1].banner if n.name == what))


def test_the_first_lines_answer(documents: Any) -> None:
    text = head(documents, "stamped")
    assert text.startswith("consumer1 paces the kernel: 97.6 % of the critical path lies on its lanes")
    assert "producer is blocked for 21.2 % of its time, most of it on empty, released by consumer1.arrive" in text
    assert "Without stamps the loop takes 511.9 cycles an iteration, with them 777.2." in text
    assert noted(documents, "stamped", "Perturbation").startswith("+51.8 % (777.2 stamped, 511.9 clean cycles")
    assert noted(documents, "stamped", "Confidence").startswith("low: the stamps change the loop by +51.8 %")
    assert noted(documents, "stamped", "Prediction").startswith("agree: hopper_gemm allows 512.0 cycles")
    assert noted(documents, "stamped", "Record") == "complete"
    slow = head(documents, "slow")
    assert slow.startswith("producer paces the kernel: 97.2 % of the critical path lies on its lanes (85.7 % untracked")
    assert "consumer1 is blocked for 56.4 % of its time, most of it on full, released by producer.work_end" in slow
    assert noted(documents, "slow", "Prediction").startswith("model incomplete (a): hopper_gemm allows 512.0")


def test_unknown_is_shown_as_unknown(documents: Any) -> None:
    assert noted(documents, "alone", "Perturbation") == "unknown: no clean launches to compare with"
    assert "without them it is unknown" in head(documents, "alone")
    assert "what the recording did to the kernel is unknown" in noted(documents, "alone", "Confidence")


def test_truncated_says_so_first(documents: Any) -> None:
    text = noted(documents, "truncated", "Record")
    assert text == "truncated in 1 lanes: states hold for the recorded window only, 12 records lost"
    assert noted(documents, "truncated", "Confidence").startswith("low: the record is truncated in 1 lanes")


def test_scopes_are_called_no_stall(documents: Any) -> None:
    text = head(documents, "scopes")
    assert text == (
        "5 spans in 1 lanes were recorded. None of them is declared as work or as a wait, so nothing is called a stall "
        "here."
    )
    titles = [section.title for section in documents("scopes")[1].sections]
    assert "What was recorded" in titles
    assert "Who waited on what" not in titles
    assert "blocked" not in case.read(page(documents("scopes")[1])).text


def test_counters_alone_give_the_digest_first(documents: Any) -> None:
    document = documents("counters")[1]
    assert any("by its counters" in words(text) for text in document.headline)
    assert any(words(text).startswith("Next edit: ") for text in document.headline)
    assert next(section.title for section in document.sections) == "What the hardware counters say"


def test_several_captures_are_told_apart(documents: Any) -> None:
    document = documents("merged")[1]
    heads = [words(text) for text in document.headline]
    assert len(heads) == 2
    assert heads[0].startswith("balanced_r0: consumer1 paces the kernel")
    assert heads[1].startswith("lowprobe_r0: ")
    assert {"c1-states", "c2-states"} <= set(document.queries)
    titles = [section.title for section in document.sections if section.level == 2]
    assert titles == [
        "balanced_r0", "lowprobe_r0", "Prediction against measurement: hopper_gemm", "What the hardware counters say",
        "Where this is from",
    ]  # fmt: skip


def test_the_whole_launch_can_be_explored() -> None:
    """One timeline with every span for each capture, within a page that a mail carries; scripts once."""
    text = page(report(case.bundle("merged")))
    found = case.read(text)
    for capture in ("c1", "c2"):
        assert f'<section class=wsf-timeline id="{capture}-fig-explorer">' in text
    assert len(found.ids) == len(set(found.ids))
    assert text.count(timeline_script()) == 1
    counts = [json.loads(data) for data in re.findall(r'class="wsf-data">(.*?)</script>', text)]
    assert [each["spans"][0] == each["spans"][1] > 0 for each in counts] == [True, True]
    assert len(text) < 3_000_000
    assert "wsf-timeline" not in page(report(case.bundle("merged"), pictures=False))


def test_ctas_without_a_common_axis_keep_their_report() -> None:
    """One CTA is drawn; that the whole launch cannot be is said in its place."""
    own = {"capture_id": "c" * 26}
    at = [own | {"lane": k, "launch": 0, "cta": k, "warp": 0, "role": "r", "clock": k} for k in (0, 1)]
    clocks = [own | {"clock": k, "scope": "sm", "sm": k, "unit": unit, "step_ticks": 1}
              for k, unit in enumerate(("cycle", "ns"))]  # fmt: skip
    span = {"role": "r", "span": "w", "state": "active", "begin_event": "b", "end_event": "e", "loop": "k"}
    tables = {
        "captures": [own | {"kind": "stamped", "kernel": "k", "completeness": "complete"}],
        "launches": [own | {"launch": 0, "kind": "stamped", "status": "ok"}],
        "clocks": clocks,
        "roles": [own | {"role": "r", "kind": "other"}],
        "event_types": [own | {"role": "r", "event": event, "loop": "k"} for event in "be"],
        "span_types": [own | span],
        "lanes": [lane | {"kind": "warp", "sm": lane["cta"], "completeness": "complete"} for lane in at],
        "events": [lane | {"event": event, "iteration": i, "t": 1000 + 100 * i + after}
                   for lane in at for i in range(4) for event, after in (("b", 0), ("e", 50))],
    }  # fmt: skip
    text = page(report(Bundle.from_tables(tables)))
    assert "No picture of the whole launch: the chosen lanes run on clocks of different units (cycle, ns)" in text
    assert 'data-name="timeline"' in text
    assert "wsf-timeline" not in text


def test_an_empty_bundle_is_said_to_be_empty(documents: Any) -> None:
    assert head(documents, "empty") == "This bundle holds no capture: there is nothing to report."


def test_hostile_names_stay_text(documents: Any) -> None:
    text = page(documents("hostile")[1])
    found = case.read(text)
    assert "<script>alert(1)</script>" in found.text
    assert found.tags.count("script") == 1 + len(found.csv)
    assert len(text) < 3_000_000
    assert "\u202e" not in found.text  # shown as an escape: it would turn the rest of the line around


def test_json_has_the_same_content(documents: Any, folder: Path) -> None:
    bundle, document = documents("stamped")
    result = run("report", bundle.path, "--json", "--no-pictures")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told == json.loads(json.dumps(document.to_json()))
    assert told["headline"][0].startswith("consumer1 paces")
    states = told["queries"]["states"]
    assert {row["role"]: row["extent"] for row in states["rows"]} == {
        "producer": 48_204, "consumer0": 51_851, "consumer1": 52_632
    }  # fmt: skip
    assert [p.name for p in folder.glob("*.html")] == []


def test_markdown_lines_up(documents: Any) -> None:
    text = markdown(documents("stamped")[1])
    assert text.startswith("# gemm_hopper\n")
    assert re.search(r"\| producer +\| +1 \| +48,204 \| +39.1 % \|", text)
    tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert len(tables) >= 8
    assert all(len({len(line) for line in table.splitlines()}) == 1 for table in tables)


def test_files_and_refusals(documents: Any, tmp_path: Path) -> None:
    path = documents("truncated")[0].path
    target = tmp_path / "x.html"
    assert run("report", path, "-o", target, "--no-pictures").exit_code == 0
    assert target.read_text().startswith("<!DOCTYPE html>")
    again = run("report", path, "-o", target)
    assert (again.exit_code, "--force" in again.stderr) == (2, True)
    assert run("report", path, "-o", tmp_path / "x.md", "--no-pictures").exit_code == 0
    assert (tmp_path / "x.md").read_text().startswith("# ring")
    wrong = run("report", path, "-o", tmp_path / "x.pdf")
    assert (wrong.exit_code, wrong.stderr.count("\n")) == (2, 2)
    for words_ in (["--launch", "9"], ["--cta", "7"], ["--capture", "zzz"]):
        refused = run("report", path, "-o", tmp_path / "y.html", *words_)
        assert (refused.exit_code, "Traceback" in refused.output) == (2, False)
        assert not (tmp_path / "y.html").exists()


def test_png_without_a_browser_says_so(documents: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WSFORMAT_BROWSER", "no-such-browser")
    result = run("report", documents("truncated")[0].path, "-o", tmp_path / "x.html", "--png", tmp_path / "x.png")
    assert result.exit_code == 2
    assert "no-such-browser: no such program; nothing was written" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_budget_is_predicted_for_the_page(documents: Any, tmp_path: Path) -> None:
    path = documents("alone")[0].path
    result = run("report", path, "--budget", "hopper_gemm", "-o", tmp_path / "x.html", "--no-pictures")
    assert result.exit_code == 0, result.output
    assert "Prediction: " in result.stdout
    assert "hopper_gemm allows 512.0 cycles" in result.stdout
    assert "predict --into" in case.read((tmp_path / "x.html").read_text()).text


def test_what_is_not_there_is_refused() -> None:
    with pytest.raises(BadRequest, match="no stamps of CTA 900"):
        report(case.bundle("ctas"), cta=900, pictures=False)
    with pytest.raises(BadRequest, match="has no stamps"):
        report(case.bundle("ctas"), capture_id="nope", pictures=False)


@pytest.mark.parametrize(
    ("value", "kind", "shown"),
    [
        (2**53 + 1, "int", "9,007,199,254,740,993"), (-1, "count", "unknown"), (None, "share", "unknown"),
        (float("nan"), "mean", "unknown"), (-0.00001, "change", "+0.0 %"), (0.12345, "share", "12.3 %"),
        (1234.56, "mean", "1,234.6"), (-3.21, "gap", "-3.2"), (True, "bool", "yes"), (None, "text", ""),
    ],
)  # fmt: skip
def test_how_values_are_written(value: Any, kind: str, shown: str) -> None:
    assert written(value, kind) == shown
