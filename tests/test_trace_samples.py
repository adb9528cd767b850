"""Every sample that ships, exported in every form, read by two versions of Perfetto's own importer.

No error that the importer counts; every slice with its exact times; every marker, counter step and arrow.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from trace_clients import ENGINES, Rows, query_all
from trace_truth import Truth, samples

from wsformat.converters import chrome, perfetto

pytestmark = [pytest.mark.client, pytest.mark.sources]

STATES = "('active', 'stall', 'async', 'scope', 'unknown', 'untracked')"
QUERIES = (
    f"SELECT name, category, ts, dur FROM slice WHERE category IN {STATES}",
    "SELECT name, ts, dur FROM slice WHERE category = 'marker'",
    "SELECT t.name, c.ts, c.value FROM counter c JOIN track t ON t.id = c.track_id",
    "SELECT a.name AS tail, a.category AS kind, b.name AS head, b.category AS head_kind, b.ts - a.ts AS length "
    "FROM flow f JOIN slice a ON a.id = f.slice_out JOIN slice b ON b.id = f.slice_in",
    f"SELECT MIN(ts) AS first, MAX(ts + dur) AS last, SUM(dur) AS total FROM slice WHERE category IN {STATES}",
)
FORMS: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "native": (perfetto, "x.pftrace", {}),
    "native, lean, packed": (perfetto, "x.pftrace.gz", {"arguments": "lean", "flows": "binding", "untracked": True}),
    "native, bare": (perfetto, "y.pftrace", {"flows": "none", "counters": False}),
    "JSON": (chrome, "x.json", {}),
    "JSON, lean, packed": (chrome, "x.json.gz", {"arguments": "lean", "flows": "binding", "untracked": "true"}),
    "JSON, bare": (chrome, "y.json", {"flows": "none", "counters": "false"}),
}


@pytest.fixture(scope="module")
def truths() -> dict[str, Truth]:
    return {name: Truth(bundle) for name, bundle in samples().items()}


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str, Path, dict[str, Any]]]:
    """(sample, form, file, report of the export)."""
    found = []
    for name, bundle in samples().items():
        folder = tmp_path_factory.mktemp(name)
        for form, (writer, file, options) in FORMS.items():
            found.append((name, form, folder / file, writer.write(bundle, folder / file, options)))
    assert len(found) >= len(FORMS) * 12
    return found


@pytest.mark.parametrize("version", ENGINES)
def test_every_sample_in_every_form(
    exported: list[tuple[str, str, Path, dict[str, Any]]], truths: dict[str, Truth], version: str
) -> None:
    answers = query_all([(file, QUERIES) for _, _, file, _ in exported], version)
    for (name, form, _, report), rows in zip(exported, answers, strict=True):
        check(truths[name], form, FORMS[form][2], report, rows)


def check(truth: Truth, form: str, options: dict[str, Any], report: dict[str, Any], rows: list[Rows]) -> None:
    slices, markers, counters, flows, (sums,) = rows
    # Native traces keep the moment; JSON starts at 0 because its readers hold times as doubles.
    shift = truth.base if "JSON" in form or truth.axis == "tick" else 0
    wanted = truth.slices(untracked=bool(options.get("untracked")), shift=shift)
    got = sorted((r["name"], r["category"], int(r["ts"]), int(r["dur"])) for r in slices)
    assert got == wanted, form
    assert report["slices"] == report["spans_in"] == len(wanted) > 0
    assert (int(sums["first"]), int(sums["last"]), int(sums["total"])) == (
        min(s[2] for s in wanted), max(s[2] + s[3] for s in wanted), sum(s[3] for s in wanted),
    )  # fmt: skip
    assert sorted((r["name"], int(r["ts"])) for r in markers) == truth.markers(shift)
    assert {r["dur"] for r in markers} <= {0}
    arrows = truth.arrows()
    which = options.get("flows", "all")
    expected = [] if which == "none" else sorted([a for a in arrows if a[1] or which == "all"] + truth.recorded)
    assert sorted((f["tail"], f["kind"] == "binding") for f in flows) == expected
    assert report["flows"] == len(expected)
    lost = {"recorded arrow that lost an end": truth.lost_ends} if truth.lost_ends and which != "none" else {}
    assert report["dropped"] == lost
    assert all(f["length"] >= 0 for f in flows)
    if "JSON" not in form and not truth.recorded:
        assert {f["head_kind"] for f in flows} <= {"stall", "released"}
    steps = [] if "counters" in options else truth.counters(shift)
    names = {"stalled lanes value": "stalled lanes", "active lanes value": "active lanes"}
    assert sorted((names.get(c["name"], c["name"]), int(c["ts"]), int(c["value"])) for c in counters) == steps
