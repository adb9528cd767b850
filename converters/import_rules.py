"""A mapping at work on one recording: names by the span before, roles of lanes, and which rules fitted nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wsformat.converters.import_mapping import ImportMapping, fits
from wsformat.converters.lane_order import in_order, pairs
from wsformat.converters.recording import Recording
from wsformat.errors import BadRequest

SHOWN = 10
"""Names that a message lists."""


def rename(recording: Recording, mapping: ImportMapping) -> set[int]:
    """Give spans another name where the span before, on their lane, tells what they are.

    One name may fire several times an iteration, such as a wait for each of two products. The span before is the one of
    that lane that begins last before it; names are those of the file, and the first rule that fits counts.

    Args:
        recording: its spans change, names are added.
        mapping: with ``renames``.

    Returns:
        the rules that fitted.
    """
    rules, spans = mapping.rules("renames"), recording.spans
    if not rules or not len(spans):
        return set()
    order = in_order(spans.lane, len(recording.lanes), spans.t0, spans.t1)
    lane, name = spans.lane[order], spans.name[order]
    before = np.full(len(order), -1, np.int64)
    before[1:] = np.where(lane[1:] == lane[:-1], name[:-1], -1)
    new = name.copy()
    todo = np.ones(len(order), bool)
    hit: set[int] = set()
    used = np.unique(name).tolist()
    for number, rule in enumerate(rules):
        own = [code for code in used if fits(rule["span"], [recording.names[code]])]
        previous = [code for code in used if fits(rule["after"], [recording.names[code]])]
        mine = todo & np.isin(name, own) & np.isin(before, previous)
        if not mine.any():
            continue
        hit.add(number)
        if rule["name"] not in recording.names:
            recording.names.append(str(rule["name"]))
        new[mine] = recording.names.index(rule["name"])
        todo &= ~mine
    spans.name = spans.name.copy()
    spans.name[order] = new
    return hit


def lane_rules(recording: Recording, mapping: ImportMapping) -> list[int]:
    """Number of the rule of roles that fits each lane, -1 where none does."""
    if not mapping.rules("roles"):
        return [-1] * len(recording.lanes)
    begun: dict[int, set[str]] = {}
    for lane, name in pairs(recording.spans.lane, recording.spans.name):
        begun.setdefault(lane, set()).add(recording.names[name])
    return [mapping.role_rule(lane, begun.get(n, ())) for n, lane in enumerate(recording.lanes)]


def account(
    recording: Recording,
    mapping: ImportMapping,
    used: Sequence[tuple[str, str]],
    renamed: set[int],
    by_lane: Sequence[int],
    missing: Sequence[str],
) -> None:
    """Note what the mapping left open: rules that fit nothing, spans that no rule names.

    Args:
        recording: takes the findings.
        mapping: what the user asked for.
        used: kinds of spans that there are: (role, name).
        renamed, by_lane: rules of renames that fitted, and the rule of roles of each lane.
        missing: points of declared edges that the trace does not have.

    Raises:
        BadRequest: a mapping of which nothing fits a trace that has spans: it is another trace's.
    """
    if not mapping.values:
        if used:
            text = "No mapping was given: every span is a scope, none is called work or a wait by its name."
            recording.findings.append(("mapping", text))
        return
    of_kind = {kind: mapping.span_rule(*kind) for kind in used}
    hit = {"renames": renamed, "roles": set(by_lane), "spans": set(of_kind.values())}
    idle = [
        f"{part}[{number}] ({_what(rule)})"
        for part, numbers in hit.items()
        for number, rule in enumerate(mapping.rules(part))
        if number not in numbers
    ]
    counts = np.bincount(recording.spans.name, minlength=len(recording.names))
    names = {name for (_, name), rule in of_kind.items() if rule < 0}
    bare = sorted((-int(counts[recording.names.index(name)]), name) for name in names)
    listed = [f"{name} ({-count})" for count, name in bare]
    if used and idle and not any(numbers - {-1} for numbers in hit.values()):
        raise BadRequest(
            f"mapping {mapping.name}: none of its {len(idle)} rules fits a lane or a span of this trace",
            f"Its spans are {_list(listed)}." if listed else "It names nothing.",
        )
    if idle:
        recording.findings.append(("mapping", f"Rules that fit nothing in this trace: {_list(idle)}."))
    if listed:
        text = f"Spans that no rule names are scopes, drawn and counted in no state: {_list(listed)}."
        recording.findings.append(("mapping", text))
    if missing:
        text = f"Edges left out, the trace has no such point: {_list(list(dict.fromkeys(missing)))}."
        recording.findings.append(("mapping", text))


def _what(rule: object) -> str:
    values = rule if isinstance(rule, dict) else {}
    wanted = values.get("span") or values.get("role") or ""
    return ", ".join(wanted) if isinstance(wanted, list) else str(wanted)


def _list(items: Sequence[str]) -> str:
    rest = len(items) - SHOWN
    return ", ".join(items[:SHOWN]) + (f" and {rest} more" if rest > 0 else "")
