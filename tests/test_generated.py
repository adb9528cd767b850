"""What is made from ``schema/`` is up to date, and is right: JSON Schema, DDL, Arrow schemas, views."""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from jsonschema import Draft202012Validator

from wsformat import generate
from wsformat.bundle import Bundle
from wsformat.derive import views
from wsformat.errors import MalformedInput
from wsformat.tables import tables

pytestmark = pytest.mark.sources

GENERATED = ["arrow.json", "manifest.schema.json", "tables.duckdb.sql", "views.sql"]


def test_a_column_says_nothing_that_nobody_reads(root: Path) -> None:
    """Whether null is allowed follows from the type; a key such as "nullable" would be passed over in silence."""
    known = {"name", "type", "meaning", "unit", "vocabulary", "references", "not_applicable", "since"}
    raw = json.loads((root / "schema" / "tables.json").read_text(encoding="utf-8"))
    newest = tuple(map(int, raw["version"].split(".")))
    for name, table in raw["tables"].items():
        before: tuple[int, ...] = ()
        for column in table["columns"]:
            where = f"{name}.{column['name']}"
            assert set(column) <= known, where
            since = tuple(map(int, column["since"].split(".")))
            assert since <= newest, f"{where}: raise the version of the format"
            assert since >= before, f"{where}: columns are appended"
            assert since == (0, 1) or column["type"] in ("DOUBLE", "STRING"), where
            before = since


@pytest.fixture
def checkout(root: Path, tmp_path: Path) -> Path:
    """A copy of the generated files that a test may break."""
    shutil.copy(root / "spec.md", tmp_path / "spec.md")
    shutil.copytree(root / "schema" / "generated", tmp_path / "schema" / "generated")
    shutil.copy(root / "schema" / "rolespec.schema.json", tmp_path / "schema" / "rolespec.schema.json")
    return tmp_path


def test_nothing_has_drifted(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert generate.main(["--check"], root) == 0, capsys.readouterr().out


@pytest.mark.parametrize("name", [*(f"schema/generated/{n}" for n in GENERATED), "schema/rolespec.schema.json"])
def test_check_names_what_differs_and_writing_mends_it(
    name: str, checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = checkout / name
    right = path.read_text()
    path.write_text(right.replace("capture", "capturf", 1))
    assert generate.main(["--check"], checkout) == 1
    assert f"differs: {name}" in capsys.readouterr().out
    assert path.read_text() != right, "--check must not write"
    assert generate.main([], checkout) == 0
    assert path.read_text() == right
    assert generate.main(["--check"], checkout) == 0


def test_a_hand_edit_inside_a_generated_part_of_the_spec_is_drift(checkout: Path) -> None:
    spec = checkout / "spec.md"
    right = spec.read_text()
    spec.write_text(right.replace("Time of the stamp, unwrapped.", "Time of the stamp."))
    assert spec.read_text() != right
    assert generate.main(["--check"], checkout) == 1
    assert generate.main([], checkout) == 0
    assert spec.read_text() == right


def test_prose_between_the_parts_is_left_alone(checkout: Path) -> None:
    spec = checkout / "spec.md"
    spec.write_text(spec.read_text() + "\nMore prose.\n")
    assert generate.main(["--check"], checkout) == 0


def test_a_missing_and_a_strange_generated_file_are_drift(checkout: Path) -> None:
    (checkout / "schema/generated/arrow.json").unlink()
    (checkout / "schema/generated/old.json").write_text("{}")
    assert {p.name for p in generate.differing(checkout)} == {"arrow.json", "old.json"}
    assert generate.main([], checkout) == 0
    assert sorted(p.name for p in (checkout / "schema/generated").iterdir()) == GENERATED


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("<!-- generated: table events -->\nno end", "no partner"),
        ("<!-- generated: table events -->\n<!-- generated: types -->\n<!-- end generated -->", "no partner"),
        ("<!-- end generated -->", "no partner"),
        ("<!-- generated: table nothing -->\n<!-- end generated -->", "nothing of that name"),
        ("<!-- generated: poem -->\n<!-- end generated -->", "no generated part 'poem'"),
    ],
)
def test_a_wrong_mark_is_one_clear_error(
    text: str, says: str, checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (checkout / "spec.md").write_text(text)
    with pytest.raises(MalformedInput, match=says):
        generate.outputs(checkout)
    assert generate.main([], checkout) == 2
    assert says in capsys.readouterr().err
    assert (checkout / "spec.md").read_text() == text


def test_outside_a_checkout_and_with_a_wrong_option_it_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert generate.main([], tmp_path) == 2
    assert "spec.md: no such file" in capsys.readouterr().err
    assert generate.main(["--chek"], tmp_path) == 2
    assert "usage" in capsys.readouterr().err


# --- JSON Schema of the manifest ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def schema(root: Path) -> Draft202012Validator:
    data = json.loads((root / "schema/generated/manifest.schema.json").read_text())
    Draft202012Validator.check_schema(data)
    return Draft202012Validator(data)


def fresh_manifest(folder: Path) -> dict[str, Any]:
    capture = "0123456789abcdef0123456789"
    bundle = Bundle.from_tables(
        {
            "captures": [{"capture_id": capture, "kind": "stamped", "completeness": "complete"}],
            "clocks": [{"capture_id": capture, "clock": 0, "scope": "sm", "unit": "cycle"}],
            "attributes": [
                {"capture_id": capture, "table_name": "captures", "name": "n", "type": "text", "value": "v"}
            ],
            "acme__power": pa.table({"capture_id": [capture], "watt": [3.5]}),
        },
        sources=[
            {"name": "a.npy", "sha256": "0" * 64, "bytes": 5, "capture_ids": [capture], "converter": "raw_stamps"}
        ],
        extensions=[{"name": "acme.power", "version": "1", "must_understand": False, "tables": ["acme__power"]}],
    )
    bundle.write(folder / "x.wsformat")
    data: dict[str, Any] = json.loads((folder / "x.wsformat" / "manifest.json").read_text())
    return data


def test_it_accepts_what_the_writer_writes(schema: Draft202012Validator, tmp_path: Path) -> None:
    schema.validate(fresh_manifest(tmp_path))


def test_it_accepts_every_bundle_of_the_corpus_that_is_valid(schema: Draft202012Validator, root: Path) -> None:
    found = sorted((root / "conformance").glob("[vs]a*/*.wsformat/manifest.json"))
    assert len(found) > 8
    for path in found:
        schema.validate(json.loads(path.read_text()))


@pytest.mark.parametrize("minor", [0, 1, 2, 9, 10, 37, 999_999_999])
def test_it_accepts_every_minor_of_its_major(minor: int, schema: Draft202012Validator, tmp_path: Path) -> None:
    data = fresh_manifest(tmp_path) | {"version": f"0.{minor}"}
    schema.validate(data)


def test_it_accepts_keys_that_it_does_not_know_everywhere(schema: Draft202012Validator, tmp_path: Path) -> None:
    data = fresh_manifest(tmp_path)
    for place in (data, data["writer"], data["tables"]["clocks"], data["sources"][0], data["extensions"][0]):
        place["some_new_key"] = {"any": ["thing"]}
    data["tables"]["clocks"]["columns"]["clock"]["crc"] = 7
    schema.validate(data)


BROKEN: dict[str, Any] = {
    "another format": lambda m: m.update(format="geoparquet"),
    "no format": lambda m: m.pop("format"),
    "no version": lambda m: m.pop("version"),
    "no tables": lambda m: m.pop("tables"),
    "no writer": lambda m: m.pop("writer"),
    "tables is an array": lambda m: m.update(tables=[]),
    "another major": lambda m: m.update(version="1.0"),
    "a patch number": lambda m: m.update(version="0.1.0"),
    "a leading zero": lambda m: m.update(version="0.01"),
    "version is a number": lambda m: m.update(version=0.1),
    "a file in a folder": lambda m: m["tables"]["clocks"].update(file="sub/clocks.parquet"),
    "a file above": lambda m: m["tables"]["clocks"].update(file="../clocks.parquet"),
    "an absolute file": lambda m: m["tables"]["clocks"].update(file="/etc/passwd"),
    "a file of the other kind of slash": lambda m: m["tables"]["clocks"].update(file="..\\clocks.parquet"),
    "a hidden file": lambda m: m["tables"]["clocks"].update(file=".clocks.parquet"),
    "a name far too long": lambda m: m["tables"]["clocks"].update(file="c" * 300),
    "no sha256": lambda m: m["tables"]["clocks"].pop("sha256"),
    "a short sha256": lambda m: m["tables"]["clocks"].update(sha256="abc"),
    "an upper-case sha256": lambda m: m["tables"]["clocks"].update(sha256="A" * 64),
    "negative rows": lambda m: m["tables"]["clocks"].update(rows=-1),
    "rows in text": lambda m: m["tables"]["clocks"].update(rows="1"),
    "rows with a fraction": lambda m: m["tables"]["clocks"].update(rows=1.5),
    "giant rows": lambda m: m["tables"]["clocks"].update(rows=10**30),
    "a digest sum as a number": lambda m: m["tables"]["clocks"]["columns"]["clock"].update(sum=0),
    "a digest of 15 digits": lambda m: m["tables"]["clocks"]["columns"]["clock"].update(xor="0" * 15),
    "a digest without count": lambda m: m["tables"]["clocks"]["columns"]["clock"].pop("count"),
    "a table name with a space": lambda m: m["tables"].update({"a b": m["tables"]["clocks"]}),
    "a source without hash": lambda m: m["sources"][0].pop("sha256"),
    "a source with a wrong capture id": lambda m: m["sources"][0].update(capture_ids=["xyz"]),
    "an extension without must_understand": lambda m: m["extensions"][0].pop("must_understand"),
    "must_understand in text": lambda m: m["extensions"][0].update(must_understand="no"),
    "an extension name without a vendor": lambda m: m["extensions"][0].update(name="power"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_it_refuses_a_broken_manifest(case: str, schema: Draft202012Validator, tmp_path: Path) -> None:
    data = fresh_manifest(tmp_path)
    broken = copy.deepcopy(data)
    BROKEN[case](broken)
    assert broken != data
    assert list(schema.iter_errors(broken))


# --- SQL and Arrow --------------------------------------------------------------------------------------------------


@pytest.fixture
def database(root: Path) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute((root / "schema/generated/tables.duckdb.sql").read_text())
    return connection


def test_the_ddl_gives_exactly_the_arrow_types(database: duckdb.DuckDBPyConnection) -> None:
    for name, table in tables().items():
        made = database.sql(f"SELECT * FROM {name}").to_arrow_table().schema
        assert [(f.name, f.type) for f in made] == [(f.name, f.type) for f in table.arrow]
        nullable = database.execute(
            "SELECT column_name, is_nullable FROM duckdb_columns() WHERE table_name = ? ORDER BY column_index", [name]
        ).fetchall()
        assert nullable == [(f.name, f.nullable) for f in table.arrow]


def test_every_table_and_column_has_its_comment(database: duckdb.DuckDBPyConnection) -> None:
    assert database.execute("SELECT table_name FROM duckdb_tables() WHERE comment IS NULL").fetchall() == []
    assert (
        database.execute("SELECT column_name FROM duckdb_columns() WHERE NOT internal AND comment IS NULL").fetchall()
        == []
    )
    comment = database.execute(
        "SELECT comment FROM duckdb_columns() WHERE table_name = 'events' AND column_name = 't'"
    ).fetchone()
    assert comment == ("Time of the stamp, unwrapped. Unit: tick.",)


def test_the_views_file_makes_every_view_and_can_be_run_twice(root: Path, database: duckdb.DuckDBPyConnection) -> None:
    text = (root / "schema/generated/views.sql").read_text()
    database.execute(text)
    database.execute(text)
    made = {row[0] for row in database.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()}
    assert made == set(views())
    for name in made:
        assert database.execute(f"SELECT COUNT(*) FROM {name}").fetchone() is not None


def test_arrow_json_says_the_arrow_schemas(root: Path) -> None:
    data = json.loads((root / "schema/generated/arrow.json").read_text())
    kinds = {
        ("int", 32): pa.int32(), ("int", 64): pa.int64(), ("floatingpoint", None): pa.float64(),
        ("bool", None): pa.bool_(), ("utf8", None): pa.string(),
    }  # fmt: skip
    assert list(data["tables"]) == list(tables())
    for name, table in tables().items():
        fields = [
            pa.field(f["name"], kinds[f["type"]["name"], f["type"].get("bitWidth")], nullable=f["nullable"])
            for f in data["tables"][name]["schema"]["fields"]
        ]
        assert all(f["type"].get("isSigned", True) for f in data["tables"][name]["schema"]["fields"])
        assert pa.schema(fields) == table.arrow
