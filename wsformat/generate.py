"""Everything that is made from ``schema/``: the tables inside ``spec.md`` and the files of ``schema/generated/``.

    python -m wsformat.generate            write what differs
    python -m wsformat.generate --check    write nothing; name what differs and exit 1

The parts of ``spec.md``: :mod:`wsformat.spec_parts`.
This is a tool for a checkout: an installed package has the results, not ``spec.md``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from wsformat.derive import views
from wsformat.errors import MalformedInput, WsformatError
from wsformat.rolespec_schema import dumps as rolespec_schema_text
from wsformat.spec_parts import sentence, spec_text
from wsformat.tables import duckdb_ddl, format_version, read_schema_json, tables

ROOT = Path(__file__).resolve().parents[1]
SPEC = "spec.md"
FOLDER = "schema/generated"


def manifest_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of the manifest of this major version, of any minor."""
    data = read_schema_json("manifest.json")
    major = format_version().split(".")[0]
    patterns = {name: p["pattern"].replace("{major}", major) for name, p in data["patterns"].items()}

    def text(name: str) -> dict[str, Any]:
        return {"type": "string", "pattern": patterns[name]}

    def kind(spelled: str) -> dict[str, Any]:
        if spelled in ("string", "boolean", "object"):
            return {"type": spelled}
        if spelled == "integer":
            return {"type": "integer", "minimum": 0, "maximum": 2**63 - 1}
        if spelled.startswith("array of "):
            return {"type": "array", "items": kind(spelled.removeprefix("array of "))}
        if spelled.startswith("map of "):
            return {"type": "object", "additionalProperties": kind(spelled.removeprefix("map of "))}
        return {"$ref": f"#/$defs/{spelled}"} if spelled in data["objects"] else text(spelled)

    def shape(name: str) -> dict[str, Any]:
        properties = {}
        for key in data["objects"][name]["keys"]:
            value = text(key["pattern"]) if "pattern" in key else kind(key["type"])
            if "const" in key:
                value["const"] = key["const"]
            if "keys_pattern" in key:
                value["propertyNames"] = {"pattern": patterns[key["keys_pattern"]]}
            properties[key["name"]] = {"description": key["meaning"], **value}
        required = [key["name"] for key in data["objects"][name]["keys"] if key["required"]]
        return {"type": "object", "required": required, "properties": properties}

    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Manifest of a wsformat bundle, format version {major}.x",
        "description": "Unknown keys are allowed: a reader ignores them and a rewriter keeps them.",
        **shape("manifest"),
        "$defs": {name: shape(name) for name in data["objects"] if name != "manifest"},
    }


def _arrow_type(kind: pa.DataType) -> dict[str, Any]:
    if pa.types.is_integer(kind):
        return {"name": "int", "bitWidth": kind.bit_width, "isSigned": pa.types.is_signed_integer(kind)}
    if pa.types.is_float64(kind):
        return {"name": "floatingpoint", "precision": "DOUBLE"}
    return {"name": "bool"} if pa.types.is_boolean(kind) else {"name": "utf8"}


def arrow_schemas() -> dict[str, Any]:
    """Arrow schemas in the JSON form that Arrow's integration tests use."""
    return {
        "version": format_version(),
        "tables": {
            name: {
                "schema": {
                    "fields": [
                        {"name": f.name, "type": _arrow_type(f.type), "nullable": f.nullable, "children": []}
                        for f in table.arrow
                    ]
                }
            }
            for name, table in tables().items()
        },
    }


def tables_sql() -> str:
    """DuckDB DDL of every table, with a comment on each table and column."""
    text = [
        f"-- Tables of wsformat {format_version()}, DuckDB dialect. Made by wsformat.generate from schema/.\n"
        "-- Keys are not declared: an index costs more than these files; the validator checks them.\n"
    ]
    for name, table in tables().items():
        comments = [f"COMMENT ON TABLE {name} IS {_sql_text(sentence('one row is ' + table.row))};\n"]
        for column in table.columns:
            meaning = sentence(column.meaning) + (f" Unit: {column.unit}." if column.unit else "")
            comments.append(f"COMMENT ON COLUMN {name}.{column.name} IS {_sql_text(meaning)};\n")
        text.append(duckdb_ddl(name) + "".join(comments))
    return "\n".join(text)


def views_sql() -> str:
    """Statements that make every derived view, in an order in which each needs only earlier ones."""
    text = [
        f"-- Derived views of wsformat {format_version()}. Made by wsformat.generate from schema/views/.\n"
        "-- The tables of the standard must be there by name; absent ones as empty tables (tables.duckdb.sql).\n"
    ]
    text += [f"CREATE OR REPLACE VIEW {name} AS\n{sql.rstrip()};\n" for name, sql in views().items()]
    return "\n".join(text)


def _sql_text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _json_text(data: object) -> str:
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def outputs(root: Path) -> dict[Path, str]:
    """Every generated file with the text that it should have.

    Raises:
        MalformedInput: ``spec.md`` is missing or its marks are wrong.
    """
    spec = root / SPEC
    if not spec.is_file():
        raise MalformedInput(f"{spec}: no such file", "Run this in a checkout of wsformat.")
    folder = root / FOLDER
    return {
        spec: spec_text(spec.read_text(encoding="utf-8")),
        root / "schema" / "rolespec.schema.json": rolespec_schema_text(),
        folder / "manifest.schema.json": _json_text(manifest_schema()),
        folder / "arrow.json": _json_text(arrow_schemas()),
        folder / "tables.duckdb.sql": tables_sql(),
        folder / "views.sql": views_sql(),
    }


def differing(root: Path) -> dict[Path, str]:
    """The generated files whose text on disk is another one, or that should not be there (text '')."""
    wanted = outputs(root)
    result = {p: text for p, text in wanted.items() if not p.is_file() or p.read_text(encoding="utf-8") != text}
    folder = root / FOLDER
    strangers = [p for p in folder.iterdir() if p not in wanted] if folder.is_dir() else []
    return result | dict.fromkeys(sorted(strangers), "")


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Command line; returns the exit status: 0 fine, 1 differences found by ``--check``, 2 cannot run."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if arguments not in ([], ["--check"]):
        print("usage: python -m wsformat.generate [--check]", file=sys.stderr)
        return 2
    try:
        found = differing(root)
    except WsformatError as error:
        print(f"{error.message}\n{error.hint}".strip(), file=sys.stderr)
        return 2
    check = bool(arguments)
    for path, text in found.items():
        print(f"{'differs' if check else 'wrote' if text else 'removed'}: {path.relative_to(root)}")
        if not check and text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        elif not check:
            path.unlink()
    if check and found:
        print("Run `python -m wsformat.generate`.")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
