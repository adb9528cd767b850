"""What tests of importers share: read bytes, write the bundle, and hold it to the validator."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from wsformat.bundle import Bundle
from wsformat.converters.registry import READERS, converter, detect, import_files, read_head
from wsformat.validate import validate

Rows = list[dict[str, Any]]


def load(path: Path, out: Path, **options: Any) -> Bundle:
    """Import a file, write the bundle, hold it to the validator (no error, and no warning), and open it."""
    bundle = import_files([path], options).write(out / f"{path.name.split('.')[0]}.wsformat", force=True)
    assert bundle.path is not None
    report = validate(bundle.path)
    assert [str(problem) for problem in report.problems if problem.level in "EW"] == []
    return bundle


def events_file(folder: Path, events: list[Any], name: str = "t.json", **header: Any) -> Path:
    """A Chrome trace of these events."""
    path = folder / name
    text = json.dumps({"traceEvents": events, **header}, ensure_ascii=False).encode()
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    return path


def sniffed(path: Path) -> list[str]:
    """Names of the readers that recognise a file."""
    head = read_head(path)
    return [name for name in READERS if converter(name).sniff(head, path)]


def losses(bundle: Bundle) -> dict[str, str]:
    """The accounting of the import."""
    return {
        row["name"].removeprefix("import."): row["value"]
        for row in bundle.table("attributes").to_pylist()
        if row["name"].startswith("import.")
    }


def findings(bundle: Bundle) -> dict[str, str]:
    """Messages by subject."""
    return {row["subject"]: row["text"] for row in bundle.table("findings").to_pylist()}


def spans(bundle: Bundle) -> Rows:
    """Spans with the names of their lanes."""
    names = {row["lane"]: row["name"] for row in bundle.table("lanes").to_pylist()}
    return [row | {"lane_name": names[row["lane"]]} for row in bundle.table("spans").to_pylist()]


def brief(bundle: Bundle) -> list[tuple[str, str, int, int]]:
    """(lane, span, t0, length) of each span."""
    return [(row["lane_name"], row["span"], row["t0"], row["t1"] - row["t0"]) for row in spans(bundle)]


__all__ = ["brief", "detect", "events_file", "findings", "load", "losses", "sniffed", "spans"]
