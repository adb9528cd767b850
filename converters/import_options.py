"""Options that every importer of traces takes."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

from wsformat.errors import BadRequest
from wsformat.rolespec_schema import IMPORTER_OWNS
from wsformat.tables import read_schema_json, tables

FACTS = {c.name: c for c in tables()["captures"].columns if c.name not in IMPORTER_OWNS["captures"]}
"""Columns of captures that can be said on import."""

MAPPING = {
    "mapping": "which spans are waits, work or asynchronous, which lanes play which role, who waits for whom: a preset "
    f"({', '.join(read_schema_json('import_mappings.json'))}) or a JSON or TOML file; without it every span is a scope",
}
FACT_OPTIONS = {name: column.meaning for name, column in FACTS.items()}


def facts(options: Mapping[str, Any]) -> dict[str, Any]:
    """Columns of captures among the options.

    Raises:
        BadRequest: a number is needed.
    """
    found: dict[str, Any] = {}
    for name, column in FACTS.items():
        value = options.get(name)
        if value is None:
            continue
        if column.type in ("INT32", "INT64"):
            try:
                found[name] = int(value)
            except ValueError as error:
                raise BadRequest(f"{name} {value!r}: not a whole number") from error
        else:
            found[name] = str(value)
    return found


def plain_head(head: bytes) -> bytes:
    """The first bytes of a file, unpacked as far as they go."""
    if not head.startswith(b"\x1f\x8b"):
        return head
    try:
        return zlib.decompressobj(wbits=31).decompress(head, 1 << 20)
    except zlib.error:
        return b""
