"""What people see: the rows of the Perfetto viewer, and the JSON trace in Catapult (chrome://tracing)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from trace_browser import catapult, shown, viewer
from trace_cases import nasty, several_captures, streams
from trace_truth import Truth, samples

from wsformat.converters import chrome, perfetto

pytestmark = [pytest.mark.client, pytest.mark.sources]


def test_rows_of_the_viewer_are_in_order_and_named(tmp_path: Path) -> None:
    perfetto.write(samples()["gemm_grid"], tmp_path / "grid.pftrace", {})
    with viewer(tmp_path / "grid.pftrace", tmp_path) as tab:
        rows = shown(tab)
    cta = [(4, "producer"), (4, "consumer0"), (4, "consumer1"), (4, "active lanes"), (4, "stalled lanes")]
    wanted = [(0, "gemm_hopper"), (1, "launch 0 (stamped)")]
    for number in range(4):
        wanted += [(2, f"SM {124 + number}"), (3, f"CTA {number}"), *cta]
    assert rows == wanted


def test_rows_of_captures_launches_overlaps_and_streams(tmp_path: Path) -> None:
    perfetto.write(several_captures(), tmp_path / "several.pftrace", {})
    with viewer(tmp_path / "several.pftrace", tmp_path) as tab:
        assert shown(tab) == [
            (0, "kernel [first]"), (1, "launch 0 (traced)"), (2, "SM 0"), (3, "CTA 0"), (4, "r warp 0"),
            (5, "r warp 0 / overlap 1"), (4, "active lanes"),
            (0, "kernel [second]"), (1, "launch 0 (traced)"), (2, "SM 0"), (3, "CTA 0"), (4, "r warp 0"),
            (4, "active lanes"), (2, "SM 1"), (3, "CTA 1"), (4, "r warp 1"), (4, "active lanes"),
        ]  # fmt: skip


def test_rows_of_host_threads_and_streams(tmp_path: Path) -> None:
    perfetto.write(streams(), tmp_path / "streams.pftrace", {})
    with viewer(tmp_path / "streams.pftrace", tmp_path) as tab:
        assert shown(tab) == [
            (0, "a run"), (1, "process 9"), (2, "stream 2"), (2, "stream 7"), (3, "queue depth"),
            (1, "process 251"), (2, "thread 251"), (2, "loader \U0001f680"),
        ]  # fmt: skip


def ns(milliseconds: float) -> int:
    """Catapult holds milliseconds as doubles."""
    return round(milliseconds * 1e6)


def check(found: dict[str, Any], truth: Truth, report: dict[str, Any]) -> None:
    assert (found["error"], found["warnings"]) == ("", [])
    slices = [(name, kind, ns(t), ns(d)) for thread in found["threads"] for name, kind, t, d in thread["slices"]]
    extra = ("marker", "signal", "binding")
    assert sorted(row for row in slices if row[1] not in extra) == truth.slices(shift=truth.base)
    assert sorted((row[0], row[2]) for row in slices if row[1] == "marker") == truth.markers(truth.base)
    arrows = sorted(truth.arrows() + truth.recorded)
    assert len(found["flows"]) == report["flows"] == len(arrows)
    assert sorted((tail, kind == "binding") for tail, kind, head, _, _ in found["flows"] if head == tail) == arrows
    assert all(length >= 0 for *_, length in found["flows"])
    steps = [(name, ns(t), value) for _, name, samples_ in found["counters"] for t, value in samples_]
    assert sorted(steps) == truth.counters(truth.base)


def test_catapult_reads_every_sample_and_every_nasty_case(tmp_path: Path) -> None:
    with catapult() as read:
        for name, bundle in {**samples(), **nasty(), "several": several_captures()}.items():
            if name == "beyond 2^53":
                continue  # a double of milliseconds cannot hold it
            report = chrome.write(bundle, tmp_path / "x.json", {})
            found = read((tmp_path / "x.json").read_text())
            check(found, Truth(bundle), report)


def test_catapult_names_and_orders_threads(tmp_path: Path) -> None:
    chrome.write(samples()["gemm_grid"], tmp_path / "x.json", {})
    with catapult() as read:
        found = read((tmp_path / "x.json").read_text())
    assert [(thread["process"], thread["thread"]) for thread in sorted(found["threads"], key=lambda t: t["order"])] == [
        (f"gemm_hopper / launch 0 (stamped) / SM {124 + cta} / CTA {cta}", role)
        for cta in range(4)
        for role in ("producer", "consumer0", "consumer1")
    ]
