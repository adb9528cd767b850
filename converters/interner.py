"""Numbers for the byte strings of a file, and their texts."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from wsformat.converters.json_members import gather

Array = np.ndarray[Any, Any]


class Interner:
    """Numbers for byte strings, in order of first appearance; an absent one is -1."""

    def __init__(self) -> None:
        self.known: dict[bytes, int] = {}

    def codes(self, text: Array, begin: Array, end: Array) -> Array:
        """Numbers of slices; begin < 0 is absent."""
        result = np.full(len(begin), -1, np.int64)
        there = np.flatnonzero(begin >= 0)
        if there.size:
            packed = gather(text, begin[there], end[there]).dictionary_encode()
            numbers = [self.known.setdefault(value, len(self.known)) for value in packed.dictionary.to_pylist()]
            result[there] = np.array(numbers, np.int64)[packed.indices.to_numpy()]
        return result

    def texts(self) -> list[str]:
        """The strings, as JSON values where they are JSON strings, else as written."""
        return [plain_text(value) for value in self.known]


def plain_text(raw: bytes) -> str:
    """A JSON string's text; other JSON as written. Never fails: what UTF-8 cannot hold becomes a mark."""
    text = raw.decode("utf-8", "replace")
    if raw.startswith(b'"'):
        try:
            text = str(json.loads(text, strict=False))
        except ValueError:
            text = text.strip('"')
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")
