"""Tables of extensions belong to captures as every table does."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from wsformat.bundle import Bundle
from wsformat.validate import validate

CAPTURE = "0123456789abcdef0123456789"
EXTENSION = {"name": "acme.fans", "version": "1.0", "must_understand": False, "tables": ["acme__fans"]}


def bundle(tmp_path: Path, *captures: str) -> Path:
    fans = pa.table({"capture_id": list(captures), "rpm": [900.0] * len(captures)})
    made = Bundle.from_tables(
        {"captures": [{"capture_id": CAPTURE, "kind": "stamped", "completeness": "complete"}], "acme__fans": fans},
        extensions=[EXTENSION],
    )
    path = made.write(tmp_path / "x.wsformat").path
    assert path is not None
    return path


def test_rows_of_an_extension_name_captures_that_are_there(tmp_path: Path) -> None:
    assert [p.code for p in validate(bundle(tmp_path, CAPTURE, CAPTURE)).problems if p.level == "E"] == []


def test_rows_of_an_extension_that_name_no_capture_are_e502(tmp_path: Path) -> None:
    report = validate(bundle(tmp_path, CAPTURE, "f" * 26, "f" * 26))
    (problem,) = [p for p in report.problems if p.level == "E"]
    assert (problem.code, problem.table, problem.column, problem.count) == ("E502", "acme__fans", "capture_id", 2)
    assert "capture ffffffffffffffffffffffffff" in str(problem.row)
