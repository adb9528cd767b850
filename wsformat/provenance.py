"""Where data came from: capture ids, manifest source entries, and what an import lost or assumed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from wsformat.errors import MalformedInput

CAPTURE_ID_DIGITS = 26

LOSSES = {
    "records_expected": "records that the recorder should have written",
    "records_kept": "records in this bundle",
    "records_lost": "records known to be lost",
    "orphaned": "records whose partner is missing",
    "unclosed": "begins without an end",
    "out_of_order": "records that went back in time",
    "wraps_undone": "counter wraps undone",
    "overhead_corrected": "overhead that the source had already subtracted",
    "assumption": "what had to be assumed, such as a unit or a frequency",
    "ignored": "content of the source that no table holds",
}
"""The accounting that every importer fills, as ``attributes`` of the capture named ``import.NAME``."""


def bytes_sha256(path: Path) -> str:
    """sha256 of a file, in hex.

    Raises:
        MalformedInput: no such file, a directory, or unreadable.
    """
    try:
        if path.is_dir():
            raise MalformedInput(f"{path}: is a directory, a file is needed")
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError as error:
        raise MalformedInput(f"{path}: no such file") from error
    except OSError as error:
        raise MalformedInput(f"{path}: {error.strerror or error}") from error


def capture_id(source_hashes: Iterable[str], spec: Any, options: Mapping[str, Any]) -> str:
    """Id of a capture: the same bytes, spec and options give the same id, wherever the files lie.

    Args:
        source_hashes: sha256 of each source file, in order.
        spec: role spec or mapping as JSON values, None when there is none.
        options: the options that change the result (no paths), as JSON values.
    """
    text = json.dumps([list(source_hashes), spec, dict(options)], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:CAPTURE_ID_DIGITS]


def source_entry(
    path: Path,
    sha256: str,
    *,
    capture_ids: Iterable[str],
    converter: str,
    dialect: str,
    detected_by: str,
    options: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Entry of ``manifest.sources`` for one file: its name without the folder, hash, and how it was read."""
    return {
        "name": path.name,
        "sha256": sha256,
        "bytes": path.stat().st_size,
        "capture_ids": list(capture_ids),
        "converter": converter,
        "dialect": dialect,
        "detected_by": detected_by,
        "options": dict(options or {}),
    }


def loss_attributes(capture: str, losses: Mapping[str, int | str]) -> list[dict[str, Any]]:
    """Rows of ``attributes`` for the accounting of an import.

    Args:
        capture: capture_id.
        losses: names of :data:`LOSSES` with a count or a text.
    """
    unknown = set(losses) - set(LOSSES)
    if unknown:
        raise KeyError(f"not in LOSSES: {sorted(unknown)}")
    return [
        {
            "capture_id": capture,
            "table_name": "captures",
            "row_key": "",
            "name": f"import.{name}",
            "type": "int" if isinstance(value, int) else "text",
            "value": str(value),
        }
        for name, value in losses.items()
    ]
