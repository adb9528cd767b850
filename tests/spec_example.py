"""The worked example of ``spec.md``, read out of the document itself: its input tables, its queries, their results."""

from __future__ import annotations

import re
from typing import Any

from wsformat.bundle import Bundle
from wsformat.tables import tables

CAPTURE = "0" * 26
INPUT = re.compile(r"<!-- example: table (?P<name>[a-z_]+) -->\n\n(?P<grid>(?:\|.*\n)+)")
QUERY = re.compile(r"```sql\n(?P<sql>.*?)\n```\n\n(?P<grid>(?:\|[^\n]*(?:\n|$))+)", re.DOTALL)


def chapter(text: str) -> str:
    """The text of the chapter with the example."""
    match = re.search(r"^## \d+ Worked example\n.*?(?=^## )", text, re.DOTALL | re.MULTILINE)
    assert match is not None
    return match[0]


def grid(text: str) -> tuple[list[str], list[list[str]]]:
    """Head and rows of a Markdown table."""
    lines = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in text.strip().splitlines()]
    return lines[0], lines[2:]


def _value(kind: str, text: str) -> Any:
    if kind in ("INT32", "INT64"):
        return int(text)
    if kind == "DOUBLE":
        return float(text) if text else None
    return text == "true" if kind == "BOOLEAN" else text


def input_rows(text: str) -> dict[str, list[dict[str, Any]]]:
    """Rows of each input table as printed, with capture_id and what the lane repeats filled in."""
    data: dict[str, list[dict[str, Any]]] = {}
    for match in INPUT.finditer(chapter(text)):
        head, rows = grid(match["grid"])
        kinds = [tables()[match["name"]].column(name).type for name in head]
        data[match["name"]] = [
            {"capture_id": CAPTURE}
            | {name: _value(kind, cell) for name, kind, cell in zip(head, kinds, row, strict=True)}
            for row in rows
        ]
    lanes = {row["lane"]: row for row in data["lanes"]}
    for row in data["events"]:
        lane = lanes[row["lane"]]
        row |= {name: lane[name] for name in ("launch", "cta", "sm", "warp", "role", "clock")} | {"tile": 0}
    return data


def bundle(text: str) -> Bundle:
    """The example as a bundle in memory."""
    source = {"name": "example", "sha256": "0" * 64, "capture_ids": [CAPTURE], "converter": "hand"}
    return Bundle.from_tables(input_rows(text), sources=[source])


def queries(text: str) -> list[tuple[str, list[str], list[list[str]]]]:
    """(SQL, head, rows) of each query of the example, as printed."""
    return [(m["sql"], *grid(m["grid"])) for m in QUERY.finditer(chapter(text))]


def printed(value: object) -> str:
    """A value of a query as the document prints it: null as nothing."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
