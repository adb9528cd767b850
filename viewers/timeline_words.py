"""What every picture says of its capture: which kernel, how complete the record is, how far the stamps disturbed it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from wsformat.viewers.timeline_axis import records
from wsformat.viewers.timeline_layout import clean

if TYPE_CHECKING:
    import duckdb


def headline(capture: Mapping[str, Any], kernels: set[str]) -> str:
    """Kernel and label of a capture, or its id."""
    kernel = capture.get("kernel") or (next(iter(kernels)) if len(kernels) == 1 else "")
    parts = [clean(part, 70) for part in (kernel, capture.get("label")) if part]
    return " · ".join(dict.fromkeys(parts)) or f"capture {capture['capture_id']}"


def completeness(capture: Mapping[str, Any]) -> str:
    """How complete the record of a capture is, in words."""
    state = capture.get("completeness") or "unknown"
    lost = capture.get("lost_events", -1)
    words = {
        "complete": "record complete",
        "truncated": "record TRUNCATED: states hold for the recorded window only",
        "sampled": "record sampled on purpose",
        "unknown": "completeness unknown",
    }.get(state, f"completeness {clean(state)}")
    return words + (f", {lost:,} records lost" if lost > 0 else "")


def perturbation(connection: duckdb.DuckDBPyConnection, capture_id: str, launch: int) -> str:
    """How much the recording of a launch slowed the kernel, in words: the row of view ``perturbation`` to quote."""
    found = records(
        connection,
        "SELECT p.*, EXISTS (SELECT 1 FROM launches k WHERE k.capture_id = p.capture_id AND k.launch = $2 "
        "AND k.kind = p.kind AND k.pass = p.pass AND k.slots = p.slots) AS same FROM perturbation p "
        "WHERE p.capture_id = $1 AND p.preference = 1 ORDER BY same DESC, perturbation DESC",
        [capture_id, launch],
    )
    if found:
        best = found[0]
        unit = "ns" if best["unit"] == "ns" else f"{best['unit']}s"
        of = f"{unit} an iteration by slope" if best["method"] == "slope" else f"{unit} a CTA by {best['method']}"
        return (
            f"perturbation {best['perturbation'] * 100:+.1f} % "
            f"({best['ticks']:,.1f} {best['kind']}, {best['clean_ticks']:,.1f} clean {of})"
        )
    clean_launches = records(
        connection,
        "SELECT COUNT(*) AS n FROM launches k JOIN captures c ON c.capture_id = k.capture_id WHERE k.kind = 'clean' "
        "AND (k.capture_id = $1 OR (c.experiment <> '' AND c.experiment = "
        "(SELECT MAX(experiment) FROM captures WHERE capture_id = $1)))",
        [capture_id],
    )[0]["n"]
    if clean_launches:
        return "perturbation unknown: the clean launches do not match in trip counts or anchors"
    return "perturbation unknown: no clean launches"
