"""Traces of other tools, imported and exported again: Perfetto's importer finds every span, arrow and value of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from trace_clients import ENGINES, query_all
from trace_truth import Truth

from wsformat.converters import chrome, perfetto
from wsformat.converters.registry import import_files

pytestmark = [pytest.mark.client, pytest.mark.sources]
QUERIES = (
    "SELECT name, category, ts, dur FROM slice WHERE category IN ('active', 'stall', 'async', 'scope', 'unknown')",
    "SELECT COUNT(*) AS n FROM flow",
    "SELECT COUNT(*) AS n FROM counter",
)


def test_other_tools_traces_keep_every_span(captures: Path, public: Path, tmp_path: Path) -> None:
    jobs, wanted = [], []
    files = [*(captures / "peers").iterdir(), *(public / "chrome_traces").iterdir()]
    for path in sorted(file for file in files if "trace" in file.name or ".json" in file.name):
        bundle = import_files([path], {})
        truth = Truth(bundle)
        for writer, kind in ((perfetto, "pftrace"), (chrome, "json")):
            file = tmp_path / f"{path.name}.{kind}"
            report = writer.write(bundle, file, {})
            assert set(report["dropped"]) <= {"recorded arrow that lost an end"}
            jobs.append((file, QUERIES))
            shift = truth.base if kind == "json" or truth.axis == "tick" else 0
            wanted.append((truth.slices(shift=shift), report["flows"], report["counter_values"]))
    assert len(jobs) >= 30
    for version in ENGINES:
        for (file, _), expected, (slices, flows, counters) in zip(jobs, wanted, query_all(jobs, version), strict=True):
            got = sorted((r["name"], r["category"], int(r["ts"]), int(r["dur"])) for r in slices)
            assert (got, flows[0]["n"], counters[0]["n"]) == expected, (version, file)
