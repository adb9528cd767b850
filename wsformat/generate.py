"""Everything that is made from ``schema/``: the tables inside ``spec.md`` and the files of ``schema/generated/``.

    python -m wsformat.generate            write what differs
    python -m wsformat.generate --check    write nothing; name what differs and exit 1

In ``spec.md`` a generated part stands between ``<!-- generated: KIND NAME -->`` and ``<!-- end generated -->``.
This is a tool for a checkout: an installed package has the results, not ``spec.md``.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from wsformat.derive import views
from wsformat.errors import MalformedInput, WsformatError
from wsformat.tables import (
    ARROW_TYPES,
    DEFAULTS,
    SQL_TYPES,
    Column,
    duckdb_ddl,
    format_version,
    layout,
    read_schema_json,
    tables,
    vocabularies,
)

ROOT = Path(__file__).resolve().parents[1]
SPEC = "spec.md"
FOLDER = "schema/generated"
PART = re.compile(
    r"(?P<open><!-- generated: (?P<kind>[a-z]+)(?: (?P<name>[a-z_]+))? -->\n).*?(?P<close><!-- end generated -->)",
    re.DOTALL,
)
ANY_MARK = re.compile(r"<!-- (?:end )?generated.*?-->")
# The text of the standard uses Parquet's words; a reader of another language looks for these.
PARQUET_TYPES = {
    "INT32": "INT32",
    "INT64": "INT64",
    "DOUBLE": "DOUBLE",
    "BOOLEAN": "BOOLEAN",
    "STRING": "BYTE_ARRAY, logical type String",
}


# --- Markdown -------------------------------------------------------------------------------------------------------


def _cell(text: object) -> str:
    return str(text).replace("|", "\\|").replace("\n", " ")


def _grid(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(_cell(value) for value in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _code(text: object) -> str:
    return f"`{text}`" if text != "" else ""


def _target(column: Column) -> str:
    if not column.references:
        return ""
    nowhere = "" if column.not_applicable is None else f", or {_literal_text(column.not_applicable)}"
    return f" Points to `{column.references}`{nowhere}."


def _literal_text(value: object) -> str:
    return "`''`" if value == "" else f"`{value}`"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def table_part(name: str) -> str:
    """Field table of one table of the standard: key, sort order, columns."""
    table = tables()[name]
    key = ", ".join(f"`{k}`" for k in table.key) or "none"
    rows = []
    for column in table.columns:
        values = f" Values: [{column.vocabulary}](#vocabulary-{column.vocabulary})." if column.vocabulary else ""
        meaning = _sentence(column.meaning) + values + _target(column)
        null = "yes" if column.nullable else "no"
        rows.append([_code(column.name), column.type, null, column.unit, column.since, meaning])
    return f"One row is {table.row}.\n\nKey: {key}. Sort order: {', '.join(f'`{k}`' for k in table.sort)}.\n\n" + _grid(
        ["column", "type", "null", "unit", "since", "meaning"], rows
    )


def tables_part(_: str) -> str:
    """Overview of all tables."""
    rows = []
    for table in tables().values():
        key = ", ".join(table.key[1:]) or ("" if table.key else "none")
        rows.append([_code(table.name), table.row, key, table.since])
    return _grid(["table", "one row is", "key after `capture_id`", "since"], rows)


def types_part(_: str) -> str:
    """The five types."""
    rows = [
        [
            _code(name),
            PARQUET_TYPES[name],
            str(ARROW_TYPES[name]),
            SQL_TYPES[name],
            "null" if DEFAULTS[name] is None else _literal_text(json.dumps(DEFAULTS[name]).strip('"')),
        ]
        for name in ARROW_TYPES
    ]
    return _grid(["type", "Parquet", "Arrow", "SQL", "unknown or not applicable"], rows)


def vocabularies_part(_: str) -> str:
    """All vocabularies, each under a heading that the field tables link to."""
    text = []
    for name, vocabulary in vocabularies().items():
        used = ", ".join(f"`{place}`" for place in vocabulary["used_by"])
        rows = [[_literal_text(value), meaning] for value, meaning in vocabulary["values"].items()]
        kind = "Closed" if vocabulary["closed"] else "Open"
        text.append(f"#### Vocabulary {name}\n\n{kind}. Used by {used}.\n\n{_grid(['value', 'meaning'], rows)}")
    return "\n".join(text)


def layout_part(_: str) -> str:
    """The physical layout."""
    rule = layout()
    rows = [
        ["compression", f"{rule['compression'].upper()}, level {rule['compression_level']}"],
        ["rows in a row group", f"{rule['row_group_rows']:,}"],
        ["data page version", rule["data_page_version"]],
        ["encoding DELTA_BINARY_PACKED, no dictionary", ", ".join(_code(c) for c in rule["delta_columns"])],
        ["dictionary encoding", "every other column except BOOLEAN"],
        ["column statistics", ", ".join(_code(c) for c in rule["statistics_columns"])],
        ["page index", f"tables above {rule['page_index_above_rows']:,} rows"],
        ["`ARROW:schema` in the footer", "yes" if rule["store_arrow_schema"] else "no"],
    ]
    return _grid(["property", "value"], rows)


def manifest_part(name: str) -> str:
    """Field table of one object of the manifest."""
    data = read_schema_json("manifest.json")
    rows = []
    for key in data["objects"][name]["keys"]:
        pattern = data["patterns"][key["pattern"]]["meaning"] if "pattern" in key else ""
        rows.append(
            [
                _code(key["name"]),
                key["type"],
                "REQUIRED" if key["required"] else "OPTIONAL",
                _sentence(key["meaning"]) + (f" Form: {pattern}." if pattern else ""),
            ]
        )
    return _grid(["key", "type", "", "meaning"], rows)


def views_part(_: str) -> str:
    """Every derived view with its columns, in the order in which each needs only earlier ones."""
    described = read_schema_json("views.json")["views"]
    text = []
    for name in views():
        view = described[name]
        key = ", ".join(_code(column) for column in view["key"])
        rows = [[_code(c["name"]), c["type"], c.get("unit", ""), _sentence(c["meaning"])] for c in view["columns"]]
        text.append(
            f"#### View `{name}`\n\n{_sentence(view['about'])} One row is {view['row']}. Key: {key}.\n\n"
            + _grid(["column", "type", "unit", "meaning"], rows)
        )
    return "\n".join(text)


def rules_part(_: str) -> str:
    """Every rule of the validator; its title says what holds in a conforming bundle."""
    rules = read_schema_json("rules.json")
    rows = [[_code(rule["code"]), rule["word"], rule["mode"], _sentence(rule["title"])] for rule in rules["rules"]]
    retired = ", ".join(_code(rule["code"]) for rule in rules["retired"]) or "none"
    return _grid(["code", "word", "reads", "what holds"], rows) + f"\nRetired codes: {retired}.\n"


PARTS: dict[str, Callable[[str], str]] = {
    "table": table_part,
    "tables": tables_part,
    "types": types_part,
    "vocabularies": vocabularies_part,
    "layout": layout_part,
    "manifest": manifest_part,
    "views": views_part,
    "rules": rules_part,
}


def spec_text(text: str) -> str:
    """The text of ``spec.md`` with every generated part made anew.

    Raises:
        MalformedInput: a mark without its partner, or one that names nothing.
    """

    def render(match: re.Match[str]) -> str:
        kind, name = match["kind"], match["name"] or ""
        if kind not in PARTS:
            raise MalformedInput(f"{SPEC}: no generated part {kind!r}", f"Parts: {', '.join(PARTS)}.")
        try:
            return f"{match['open']}\n{PARTS[kind](name)}\n{match['close']}"
        except KeyError as error:
            raise MalformedInput(f"{SPEC}: generated part {kind} {name!r}: nothing of that name: {error}") from error

    parts = sum(1 for _ in PART.finditer(text))
    marks = sum(1 for _ in ANY_MARK.finditer(text))
    if marks != 2 * parts:
        raise MalformedInput(f"{SPEC}: {marks} marks make {parts} generated parts: one has no partner")
    return PART.sub(render, text)


# --- Files of schema/generated ----------------------------------------------------------------------------------------


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
        comments = [f"COMMENT ON TABLE {name} IS {_sql_text(_sentence('one row is ' + table.row))};\n"]
        for column in table.columns:
            meaning = _sentence(column.meaning) + (f" Unit: {column.unit}." if column.unit else "")
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
