"""The parts of ``spec.md`` that are made from ``schema/``, as Markdown: field tables, vocabularies, views, rules.

A generated part stands between ``<!-- generated: KIND NAME -->`` and ``<!-- end generated -->``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence

from wsformat.derive import views
from wsformat.errors import MalformedInput
from wsformat.hardware import highest_clocks
from wsformat.tables import ARROW_TYPES, DEFAULTS, SQL_TYPES, Column, layout, read_schema_json, tables, vocabularies

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


def sentence(text: str) -> str:
    """The text with a capital letter and a full stop."""
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def table_part(name: str) -> str:
    """Field table of one table of the standard: key, sort order, columns."""
    table = tables()[name]
    key = ", ".join(f"`{k}`" for k in table.key) or "none"
    rows = []
    for column in table.columns:
        values = f" Values: [{column.vocabulary}](#vocabulary-{column.vocabulary})." if column.vocabulary else ""
        meaning = sentence(column.meaning) + values + _target(column)
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
        ["encoding PLAIN, no dictionary", ", ".join(_code(c) for c in rule["plain_columns"])],
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
                sentence(key["meaning"]) + (f" Form: {pattern}." if pattern else ""),
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
        rows = [[_code(c["name"]), c["type"], c.get("unit", ""), sentence(c["meaning"])] for c in view["columns"]]
        text.append(
            f"#### View `{name}`\n\n{sentence(view['about'])} One row is {view['row']}. Key: {key}.\n\n"
            + _grid(["column", "type", "unit", "meaning"], rows)
        )
    return "\n".join(text)


def rules_part(_: str) -> str:
    """Every rule of the validator; its title says what holds in a conforming bundle."""
    rules = read_schema_json("rules.json")
    rows = [[_code(rule["code"]), rule["word"], rule["mode"], sentence(rule["title"])] for rule in rules["rules"]]
    retired = ", ".join(_code(rule["code"]) for rule in rules["retired"]) or "none"
    return _grid(["code", "word", "reads", "what holds"], rows) + f"\nRetired codes: {retired}.\n"


def bounds_part(_: str) -> str:
    """Least and greatest values where they are not the usual ones, and the texts that are never empty."""
    rules = {rule["code"]: rule for rule in read_schema_json("rules.json")["rules"]}
    least = {place: (value, None) for place, value in rules["E404"]["minimum"].items() if place != "*"}
    rows = []
    for place, (low, high) in {**least, **rules["E405"]["range"]}.items():
        rows.append([_code(place), "none" if low is None else low, "none" if high is None else high])
    names = ", ".join(_code(place) for place in rules["E407"]["columns"])
    return _grid(["column", "least", "greatest"], rows) + f"\nNever empty: {names}.\n"


def core_clocks_part(_: str) -> str:
    """The highest core clock of each device and arch, from the hardware facts."""
    return _grid(["of", "name", "Hz"], [[kind, _code(name), f"{hz:.0f}"] for kind, name, hz in highest_clocks()])


PARTS: dict[str, Callable[[str], str]] = {
    "table": table_part,
    "tables": tables_part,
    "types": types_part,
    "vocabularies": vocabularies_part,
    "layout": layout_part,
    "bounds": bounds_part,
    "manifest": manifest_part,
    "views": views_part,
    "rules": rules_part,
    "clocks": core_clocks_part,
}


def spec_text(text: str) -> str:
    """The text of ``spec.md`` with every generated part made anew.

    Raises:
        MalformedInput: a mark without its partner, or one that names nothing.
    """

    def render(match: re.Match[str]) -> str:
        kind, name = match["kind"], match["name"] or ""
        if kind not in PARTS:
            raise MalformedInput(f"spec.md: no generated part {kind!r}", f"Parts: {', '.join(PARTS)}.")
        try:
            return f"{match['open']}\n{PARTS[kind](name)}\n{match['close']}"
        except KeyError as error:
            raise MalformedInput(f"spec.md: generated part {kind} {name!r}: nothing of that name: {error}") from error

    parts = sum(1 for _ in PART.finditer(text))
    marks = sum(1 for _ in ANY_MARK.finditer(text))
    if marks != 2 * parts:
        raise MalformedInput(f"spec.md: {marks} marks make {parts} generated parts: one has no partner")
    return PART.sub(render, text)
