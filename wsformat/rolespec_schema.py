"""JSON Schema of the role spec, generated from the tables of the standard.

A row of a role spec is a row of a table, so its names, types and meanings come from ``schema/tables.json``.
``python -m wsformat.rolespec_schema`` prints it; ``schema/rolespec.schema.json`` is that text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from wsformat.errors import UnsupportedVersion
from wsformat.tables import Column, tables, vocabularies

VERSION = "0.1"
VERSION_KEY = "wsformat_rolespec"
VERSION_TEXT = re.compile(r"[0-9]{1,9}\.[0-9]{1,9}")

SECTIONS = {"roles": "roles", "events": "event_types", "spans": "span_types", "dependencies": "dependencies"}
"""Arrays of a role spec, and the table that each one's rows belong to."""

REQUIRED = {
    "roles": ("role",),
    "events": ("role", "event", "event_index"),
    "spans": ("role", "span", "state", "begin_event", "end_event"),
    "dependencies": ("producer_role", "producer_event", "consumer_role", "consumer_event"),
}
ROLE_FIELDS = {"events": ("role",), "spans": ("role",), "dependencies": ("producer_role", "consumer_role")}
"""Fields that take one role, a list of roles, or "*" for every role."""

# What only an importer can know is no part of a spec.
IMPORTER_OWNS = {
    "captures": ("capture_id", "completeness", "lost_events", "stamp_set", "source_format", "kind"),
    "launches": ("capture_id", "launch", "kind", "tool", "source", "slots", "clock", "t_start", "sequence", "status"),
    "clocks": ("capture_id", "clock", "sm", "step_ticks", "wraps"),
}
INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1


def rolespec_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of a role spec."""
    properties: dict[str, Any] = {
        VERSION_KEY: {
            "type": "string",
            "pattern": rf"^{VERSION.split('.')[0]}\.(0|[1-9][0-9]*)$",
            "description": f"version of the role spec; readers of {VERSION} ignore what a newer minor version adds",
        },
        "layout": _layout(),
        "window": {
            "type": "object",
            "description": "iterations that the slots hold, when not all: slot k is iteration from + stride * k",
            "properties": {
                "from": {"type": "integer", "minimum": 0, "maximum": INT32_MAX},
                "stride": {"type": "integer", "minimum": 1, "maximum": INT32_MAX},
            },
            "additionalProperties": False,
        },
        "capture": _facts("captures", "facts about the run: columns of the table captures"),
        "launch": _facts("launches", "facts about every launch: columns of the table launches"),
        "clock": _facts("clocks", "the clock that the stamps read: columns of the table clocks"),
    }
    for section in SECTIONS:
        properties[section] = {"type": "array", "items": _row(section), "description": tables()[SECTIONS[section]].row}
    properties["roles"]["minItems"] = 1
    properties["events"]["minItems"] = 1
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "wsformat role spec",
        "description": "What each slot of a stamp buffer means. Keys that begin with _ are comments.",
        "type": "object",
        "properties": properties,
        "patternProperties": {"^_": True},
        "required": [VERSION_KEY, "roles", "events"],
        "additionalProperties": False,
    }


def dumps() -> str:
    """The text of ``schema/rolespec.schema.json``."""
    return json.dumps(rolespec_schema(), indent=1) + "\n"


def is_newer(data: Any, where: str) -> bool:
    """Whether a role spec is of a later minor version than this library knows.

    Raises:
        UnsupportedVersion: it is of another major version.
    """
    version = data.get(VERSION_KEY) if isinstance(data, dict) else None
    if not isinstance(version, str) or not VERSION_TEXT.fullmatch(version):
        return False
    major, minor = (int(part) for part in version.split("."))
    our_major, our_minor = (int(part) for part in VERSION.split("."))
    if major != our_major:
        raise UnsupportedVersion(
            f"{where}: role spec version {version}, this library reads {our_major}.x (up to {VERSION})",
            "Install a newer wsformat.",
        )
    return minor > our_minor


def known_part(data: Mapping[str, Any], ignored: list[str]) -> dict[str, Any]:
    """The spec without the keys that this version does not define; their paths go to ``ignored``."""
    schema = rolespec_schema()["properties"]

    def keep(row: Any, known: Mapping[str, Any], path: str) -> Any:
        if not isinstance(row, dict):
            return row
        extra = [k for k in row if k not in known and not k.startswith("_")]
        ignored.extend(f"{path}.{key}" for key in extra)
        return {k: v for k, v in row.items() if k not in extra}

    result: dict[str, Any] = keep(data, schema, "$")
    for name, rule in schema.items():
        value = result.get(name)
        if isinstance(value, list) and "items" in rule:
            known = rule["items"]["properties"]
            result[name] = [keep(row, known, f"$.{name}[{n}]") for n, row in enumerate(value)]
        elif isinstance(value, dict):
            result[name] = keep(value, rule["properties"], f"$.{name}")
    return result


def _layout() -> dict[str, Any]:
    size = {"type": "integer", "minimum": 1, "maximum": INT32_MAX}
    return {
        "type": "object",
        "description": "size of one CTA's buffer; slot = (role * events + event) * iterations + iteration",
        "properties": {"roles": size, "events": size, "iterations": size},
        "required": ["roles", "events", "iterations"],
        "additionalProperties": False,
    }


def _facts(table: str, description: str) -> dict[str, Any]:
    columns = [c for c in tables()[table].columns if c.name not in IMPORTER_OWNS[table]]
    return {
        "type": "object",
        "description": description,
        "properties": {c.name: _value(c) for c in columns},
        "patternProperties": {"^_": True},
        "additionalProperties": False,
    }


def _row(section: str) -> dict[str, Any]:
    properties = {}
    for column in tables()[SECTIONS[section]].columns:
        if column.name == "capture_id":
            continue
        value = _value(column)
        if column.name in ROLE_FIELDS.get(section, ()):
            name = {"type": "string", "minLength": 1}
            names = {"type": "array", "items": name, "minItems": 1, "uniqueItems": True}
            value = {"anyOf": [name, names], "description": column.meaning + '; a list, or "*" for every role'}
        elif column.name in REQUIRED[section] and column.type == "STRING" and "enum" not in value:
            value["minLength"] = 1
        if column.name in ("role_index", "event_index", "display_order", "producer_step", "consumer_step"):
            value["minimum"] = 0
        properties[column.name] = value
    if section == "roles":
        lanes = tables()["lanes"]
        properties["lane_kind"] = _value(lanes.column("kind"))
        properties["warp"] = _value(lanes.column("warp"))
    return {
        "type": "object",
        "properties": properties,
        "patternProperties": {"^_": True},
        "required": list(REQUIRED[section]),
        "additionalProperties": False,
    }


def _value(column: Column) -> dict[str, Any]:
    if column.type in ("INT32", "INT64"):
        limit = INT32_MAX if column.type == "INT32" else INT64_MAX
        value: dict[str, Any] = {"type": "integer", "minimum": -limit - 1, "maximum": limit}
    elif column.type == "DOUBLE":
        value = {"type": ["number", "null"]}
    elif column.type == "BOOLEAN":
        value = {"type": "boolean"}
    else:
        value = {"type": "string"}
        if column.vocabulary and vocabularies()[column.vocabulary]["closed"]:
            value["enum"] = list(vocabularies()[column.vocabulary]["values"])
        elif column.vocabulary:
            value["examples"] = [v for v in vocabularies()[column.vocabulary]["values"] if v]
    value["description"] = column.meaning
    return value


if __name__ == "__main__":
    print(dumps(), end="")
