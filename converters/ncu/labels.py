"""What the details page prints to the metric's own name, per section."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from wsformat.tables import read_schema_json

METRIC_NAME = re.compile(r"^(?:[A-Za-z0-9_]+[.:])*[a-z0-9]+__\w")
PLAIN_COUNTER = re.compile(r"\.(?:sum|avg|min|max)(?:\.per_\w+)?$")


@cache
def table() -> dict[str, Any]:
    """``schema/ncu_labels.json``."""
    data: dict[str, Any] = read_schema_json("ncu_labels.json")
    return data


@cache
def _sections() -> dict[str, dict[str, list[str]]]:
    """Labels by section name and by section identifier."""
    found: dict[str, dict[str, list[str]]] = {}
    for name, section in table()["sections"].items():
        found[name] = found[section["id"]] = section["labels"]
    return found


@cache
def resolve(section: str, name: str, unit: str) -> tuple[str, str]:
    """Metric name and how it was found, for what was printed.

    Args:
        section: section as printed.
        name: metric name or label as printed.
        unit: base unit; a percentage is never taken for a byte count.

    Returns:
        ``(metric, resolved_by)``; resolved_by is '' for a name that is a metric already, metric is '' when the
        label is unknown or has several metrics.
    """
    if METRIC_NAME.match(name):
        return name, ""
    facts = table()
    labels = _sections().get(facts["renamed_sections"].get(section, section), {})
    for label, how in ((name, "label"), (facts["renamed_labels"].get(name, ""), "renamed label")):
        metrics = [m for m in labels.get(label, []) if _fits(m, unit)]
        if len(metrics) == 1:
            return metrics[0], how
    return "", ""


def _fits(metric: str, unit: str) -> bool:
    if ".pct" in metric:
        return unit in ("%", "")
    return unit != "%" or not PLAIN_COUNTER.search(metric)
