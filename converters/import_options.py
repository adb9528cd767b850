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
        BadRequest: a number is needed, or any option is given more than once.
    """
    for name, value in options.items():
        if isinstance(value, list):
            raise BadRequest(f"{name}: given {len(value)} times, one value is needed")
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
            if not -1 <= found[name] < 1 << (31 if column.type == "INT32" else 63):
                raise BadRequest(f"{name} {value}: does not fit {column.type}; -1 is unknown")
        else:
            found[name] = str(value)
    return found


UTF16 = (b"\xff\xfe", b"\xfe\xff")
"""Byte order marks of text that a shell on Windows wrote."""


def plain_head(head: bytes) -> bytes:
    """The first bytes of a file, unpacked as far as they go; text of 16 bits as UTF-8."""
    if head.startswith(b"\x1f\x8b"):
        try:
            head = zlib.decompressobj(wbits=31).decompress(head, 1 << 20)
        except zlib.error:
            return b""
    return head.decode("utf-16", "ignore").encode() if head.startswith(UTF16) else head
