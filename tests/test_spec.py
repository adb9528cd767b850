"""``spec.md`` keeps its own rules: numbered requirements, each checked or marked, examples that are real."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import NamedTuple

import pytest
import spec_example
from jsonschema import Draft202012Validator

from wsformat import rolespec
from wsformat.critical_path import critical_path
from wsformat.derive import views
from wsformat.digests import ColumnDigest, add_table
from wsformat.provenance import capture_id
from wsformat.tables import format_version, tables, vocabularies
from wsformat.version import __version__

pytestmark = pytest.mark.sources

OBLIGATION = re.compile(r"\b(MUST|SHALL|REQUIRED)\b")
ADVICE = re.compile(r"\b(SHOULD|RECOMMENDED)\b")
HEAD = re.compile(r"^\*\*\[R-(\d+)\.(\d+)\]\*\* ")
CITED = re.compile(r" \{([^{}]*)\}$")
CODE = re.compile(r"^[EWI][1-9][0-9]{2}$")
# Chapter 2 explains the words; the generated parts and the code have their own tests.
NOT_PROSE = re.compile(r"<!-- generated: .*?<!-- end generated -->|```.*?```", re.DOTALL)


class Requirement(NamedTuple):
    """One numbered requirement of the document."""

    chapter: int
    number: int
    text: str
    codes: list[str]
    reason: str
    under: int

    @property
    def name(self) -> str:
        return f"R-{self.chapter}.{self.number}"


@pytest.fixture(scope="module")
def text(root: Path) -> str:
    return (root / "spec.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def rules(root: Path) -> dict[str, str]:
    """Title of each rule by code."""
    data = json.loads((root / "schema" / "rules.json").read_text(encoding="utf-8"))
    return {rule["code"]: rule["title"] for rule in data["rules"]}


def paragraphs(text: str) -> list[tuple[int, str]]:
    """(chapter, paragraph) of the prose."""
    chapter = 0
    found = []
    for block in re.split(r"\n\s*\n", NOT_PROSE.sub("", text)):
        heading = re.match(r"## (?:(\d+) |Annex)", block.strip())
        if heading:
            chapter = int(heading[1] or 99)
        found.append((chapter, block.strip()))
    return found


def parse(text: str) -> list[Requirement]:
    found = []
    for chapter, block in paragraphs(text):
        head = HEAD.match(block)
        if not head:
            continue
        cited = CITED.search(block)
        inside = cited[1] if cited else ""
        reason = inside.removeprefix("not checkable: ") if inside.startswith("not checkable: ") else ""
        codes = [] if reason or not inside else inside.split(", ")
        body = block[head.end() : cited.start() if cited else None]
        found.append(Requirement(int(head[1]), int(head[2]), body, codes, reason, chapter))
    return found


@pytest.fixture(scope="module")
def requirements(text: str) -> list[Requirement]:
    found = parse(text)
    assert len(found) > 150
    return found


def test_the_parser_sees_what_it_should() -> None:
    found = parse(
        "## 3 X\n\n**[R-3.1]** A MUST b. {E101, W110}\n\n**[R-3.2]** It SHALL. {not checkable: why}\n\nProse."
    )
    assert found == [
        Requirement(3, 1, "A MUST b.", ["E101", "W110"], "", 3),
        Requirement(3, 2, "It SHALL.", [], "why", 3),
    ]


def test_numbers_are_unique_ascending_and_of_their_chapter(requirements: list[Requirement]) -> None:
    numbers = [(r.chapter, r.number) for r in requirements]
    assert numbers == sorted(set(numbers))
    assert all(r.chapter == r.under for r in requirements)


def test_every_obligation_stands_in_a_numbered_requirement(text: str) -> None:
    loose = [
        block
        for chapter, block in paragraphs(text)
        if chapter != 2 and (OBLIGATION.search(block) or ADVICE.search(block)) and not HEAD.match(block)
    ]
    assert loose == []


def test_every_requirement_obliges_or_advises_and_not_both(requirements: list[Requirement]) -> None:
    assert [r.name for r in requirements if bool(OBLIGATION.search(r.text)) == bool(ADVICE.search(r.text))] == []


def test_every_requirement_is_checked_or_says_why_not(requirements: list[Requirement]) -> None:
    assert [r.name for r in requirements if not r.codes and len(r.reason) < 12] == []


def test_cited_codes_exist_and_every_rule_is_cited(requirements: list[Requirement], rules: dict[str, str]) -> None:
    cited = {code for r in requirements for code in r.codes}
    assert all(CODE.match(code) for code in cited), cited
    assert cited - set(rules) == set(), "the document cites rules that are not in schema/rules.json"
    assert set(rules) - cited == set(), "rules that no requirement of the document cites"


def test_errors_check_obligations_and_warnings_check_advice(requirements: list[Requirement]) -> None:
    wrong = [
        (r.name, code)
        for r in requirements
        for code in r.codes
        if bool(OBLIGATION.search(r.text)) != code.startswith("E")
    ]
    assert wrong == []


def test_internal_links_lead_somewhere(text: str) -> None:
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    anchors = {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}
    links = set(re.findall(r"\]\(#([^)]+)\)", text))
    assert len(links) > 25
    assert links - anchors == set()


def test_the_document_has_every_table_vocabulary_view_and_rule(text: str, rules: dict[str, str]) -> None:
    for name in tables():
        assert f"<!-- generated: table {name} -->" in text
    for name in vocabularies():
        assert f"#### Vocabulary {name}\n" in text
    for name in views():
        assert f"#### View `{name}`\n" in text
    for code in rules:
        assert f"| `{code}` |" in text


def test_the_version_is_the_one_of_the_schema(text: str) -> None:
    assert text.startswith(f"# wsformat {format_version()}\n")
    assert f'"version": "{format_version()}"' in text
    assert __version__


# --- Examples -------------------------------------------------------------------------------------------------------


def test_the_worked_example_gives_the_printed_numbers(text: str) -> None:
    with spec_example.bundle(text).duckdb() as connection:
        shown = spec_example.queries(text)
        assert len(shown) >= 6
        for sql, head, rows in shown:
            result = connection.sql(sql)
            assert result.columns == head
            assert [[spec_example.printed(value) for value in row] for row in result.fetchall()] == rows, sql


@pytest.mark.parametrize(("end", "verdict"), [(1630, "in_flight"), (1900, "in_flight"), (2100, "other")])
def test_what_the_example_says_of_other_ends_of_the_last_wait(text: str, end: int, verdict: str) -> None:
    changed = text.replace("| 1 | wait_exit | 2 | 1630 |", f"| 1 | wait_exit | 2 | {end} |")
    changed = changed.replace("| 1 | done | 2 | 1840 |", f"| 1 | done | 2 | {end + 210} |")
    with spec_example.bundle(changed).duckdb() as connection:
        row = connection.execute("SELECT verdict FROM wait WHERE role = 'mma' AND iteration = 2").fetchone()
    assert row == (verdict,)


def test_the_critical_path_of_the_example(text: str) -> None:
    shown = re.search(r"<!-- example: critical path -->\n\n((?:\|.*\n)+)", text)
    assert shown is not None
    head, rows = spec_example.grid(shown[1])
    path = critical_path(spec_example.bundle(text)).select(head).to_pylist()
    found = [[spec_example.printed(row[name]) for name in head] for row in path]
    assert found == rows
    assert sum(int(row[-1]) for row in rows) == int(rows[-1][-2]) - int(rows[0][-3])


def test_the_worked_example_is_a_valid_bundle(text: str, tmp_path: Path) -> None:
    validate = pytest.importorskip("wsformat.validate").validate
    spec_example.bundle(text).write(tmp_path / "ring.wsformat")
    report = validate(tmp_path / "ring.wsformat")
    assert [p.code for p in report.problems] == []


def test_the_states_of_the_example_by_hand(text: str) -> None:
    """The same numbers from the stamps alone: no two spans of a lane of the example overlap, so sums do."""
    rows = spec_example.input_rows(text)
    for lane, first, last in ((0, "wait_enter", "issued"), (1, "wait_enter", "done")):
        at = {(row["event"], row["iteration"]): row["t"] for row in rows["events"] if row["lane"] == lane}
        stall = sum(at["wait_exit", i] - at["wait_enter", i] for i in range(3))
        active = sum(at[last, i] - at["wait_exit", i] for i in range(3))
        extent = at[last, 2] - at[first, 0]
        printed = next(r for sql, _, r in spec_example.queries(text) if "FROM role_state" in sql)[lane]
        assert printed[4:] == [str(extent), str(stall), str(active), str(extent - stall - active)]


def hex64(value: int) -> str:
    return f"{value % 2**64:016x}"


def test_the_digest_examples_follow_from_the_definition(text: str) -> None:
    section = re.search(r"<!-- example: digest -->\n\n((?:\|.*\n)+)", text)
    assert section is not None
    _, rows = spec_example.grid(section[1])
    assert len(rows) == 6
    for _kind, values, count, total, xor in rows:
        numbers = [
            {"true": 1, "false": 0}[v] if v in ("true", "false") else int(v)
            for v in ([] if values == "none" else values.split(", "))
        ]
        folded = 0
        for number in numbers:
            folded ^= number
        assert (count, total, xor) == (str(len(numbers)), f"`{hex64(sum(numbers))}`", f"`{hex64(folded)}`")


def test_the_digest_of_the_example_is_the_library_s(text: str, tmp_path: Path) -> None:
    shown = re.search(r"```json digest-of-events-t\n(.*?)\n```", text, re.DOTALL)
    assert shown is not None
    bundle = spec_example.bundle(text)
    digest = add_table({}, bundle.table("events"))["t"]
    assert isinstance(digest, ColumnDigest)
    assert json.loads(shown[1]) == digest.to_json()
    written = bundle.write(tmp_path / "ring.wsformat").manifest
    assert written.tables["events"]["columns"]["t"] == json.loads(shown[1])


def test_the_capture_id_of_the_example(text: str) -> None:
    shown = re.search(r"```json capture-id\n(.*?)\n```\n\nand the id `([0-9a-f]+)`", text, re.DOTALL)
    assert shown is not None
    source = hashlib.sha256(b"abc").hexdigest()
    assert shown[1] == f'[["{source}"],null,{{"trip_count":3}}]'
    assert shown[2] == hashlib.sha256(shown[1].encode()).hexdigest()[:26]
    assert shown[2] == capture_id([source], None, {"trip_count": 3})


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0.5, "0.5"), (560.0, "560.0"), (1e16, "1e+16"), (1.5e-7, "1.5e-07"), (1e15, "1000000000000000.0"),
        (0.0001, "0.0001"), (0.00001, "1e-05"), (-3, "-3"), (2**70, str(2**70)), (True, "true"),
        ("é", r'"\u00e9"'), ("\U0001f600", r'"\ud83d\ude00"'), ("\x7f", r'"\u007f"'),
        ("\x01\t/\"\\", r'"\u0001\t/\"\\"'),
    ],
)  # fmt: skip
def test_the_text_behind_a_capture_id_is_written_as_the_document_says(value: object, written: str) -> None:
    text = '[[],{"a":[],"b":' + written + "},{}]"
    assert capture_id([], {"b": value, "a": []}, {}) == hashlib.sha256(text.encode("ascii")).hexdigest()[:26]


def test_the_role_spec_in_the_documentation_is_one(root: Path) -> None:
    text = (root / "docs" / "rolespec.md").read_text(encoding="utf-8")
    examples = re.findall(r"```json rolespec\n(.*?)\n```", text, re.DOTALL)
    assert len(examples) == 1
    spec = rolespec.parse(json.loads(examples[0]), "docs/rolespec.md")
    assert [row["iteration_lag"] for row in spec.dependencies] == [0, 4]
    assert [row["iteration_event"] for row in spec.roles] == ["wait_enter", "wait_enter"]


def test_the_extension_in_the_documentation_is_valid(root: Path) -> None:
    text = (root / "docs" / "extensions.md").read_text(encoding="utf-8")
    examples = re.findall(r"```json\n(.*?)\n```", text, re.DOTALL)
    assert len(examples) == 1
    schema = json.loads((root / "schema" / "generated" / "manifest.schema.json").read_text(encoding="utf-8"))
    Draft202012Validator({**schema["$defs"]["extension"], "$defs": schema["$defs"]}).validate(json.loads(examples[0]))
