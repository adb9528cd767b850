"""A lake that was moved or copied: Iceberg's files name each other by absolute names, those of the place of its making.

The names stay as they are, and every access goes to the place where the lake lies now. So a lake can be moved any
number of times; a copy is a lake of its own. Only a lake whose catalog lies in it can: a catalog elsewhere would serve
two places at once.
"""

from __future__ import annotations

from collections.abc import Mapping

MADE, LIES = "wsformat.made-at", "wsformat.lies-at"
IMPLEMENTATION = "wsformat.lake.moved_io.MovedIO"


def named(properties: Mapping[str, str], uri: str) -> str:
    """The name that Iceberg's files have for a file of the lake."""
    return _swapped(uri, properties.get(LIES, ""), properties.get(MADE, ""))


def placed(properties: Mapping[str, str], uri: str) -> str:
    """Where a file lies that Iceberg's files name."""
    return _swapped(uri, properties.get(MADE, ""), properties.get(LIES, ""))


def _swapped(uri: str, old: str, new: str) -> str:
    return new + uri[len(old) :] if old and uri.startswith(f"{old}/") else uri
