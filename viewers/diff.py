"""Two versions of a kernel side by side: which is faster, is that more than noise, and what moved.

Only like is compared with like: the slope of clean launches with the slope of clean launches, states of the same
stamps. Reads two bundles and nothing else.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from wsformat.bundle import Bundle
from wsformat.errors import BadRequest
from wsformat.viewers.diff_noise import Noise, difference, noise
from wsformat.viewers.diff_read import Side, Speed, side
from wsformat.viewers.report_model import Number, Text, words, written

TOLERANCE = 0.005
"""A change smaller than this is none, however sure: half a percent comes and goes with alignment and clocks."""
PREFERENCE = (("slope", "clean"), ("lifetime", "clean"), ("slope", "stamped"), ("start_to_start", "stamped"),
              ("lifetime", "stamped"))  # fmt: skip
DISTURBED = 0.05
"""Perturbations that differ by more than this move the states by themselves."""
SAME, FASTER, SLOWER, OPEN, NOTHING = "no difference", "faster", "slower", "unknown", "not compared"


@dataclass(frozen=True)
class Compared:
    """Speed of both by one method."""

    a: Speed
    b: Speed
    noise: Noise

    @property
    def change(self) -> float | None:
        """As a share of A; None when A takes no time."""
        return float(self.b.value / self.a.value - 1) if self.a.value else None

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "method": self.a.method, "kind": self.a.kind, "pass": self.a.part, "role": self.a.role,
            "grid_ctas": self.a.grid_ctas,
            "trips_low": self.a.trips[0] if self.a.trips else None,
            "trips_high": self.a.trips[-1] if self.a.trips else None,
            "a": self.a.value, "b": self.b.value, "change": self.change, **self.noise.to_json(),
        }  # fmt: skip


@dataclass(frozen=True)
class Diff:
    """A finished comparison.

    Attributes:
        a, b: the versions.
        speeds: every method that both have, the one that decides first.
        states: per role, ticks an iteration of a lane and share of its extent in each state, of both.
        waits: per wait, ticks an iteration of a lane: blocked, satisfied, unjudged, gross.
        overlap: per pair of roles, the shares of both.
        path: what the critical path spends an iteration, per role, state, span and barrier; what moved most first.
        outcome: ``faster``, ``slower``, ``no difference``, ``unknown`` (no repeats), ``not compared``: of B against A.
        headline: the verdict, its numbers cells of the tables ``speeds``, ``path`` and ``waits``.
        warnings: what keeps them from being quite comparable.
    """

    a: Side
    b: Side
    speeds: tuple[Compared, ...]
    states: tuple[dict[str, Any], ...]
    waits: tuple[dict[str, Any], ...]
    overlap: tuple[dict[str, Any], ...]
    path: tuple[dict[str, Any], ...]
    outcome: str
    headline: Text
    warnings: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """The headline as plain text: in one line, who is faster, how sure, and what moved."""
        said: str = words(self.headline)
        return said

    def _repr_html_(self) -> str:
        """The verdict and what to beware of, for a notebook."""
        return "".join(f"<div>{html.escape(line[:2000])}</div>" for line in (self.verdict, *self.warnings))

    def __repr__(self) -> str:
        return f"<Diff {self.verdict[:300]}>"

    def to_json(self) -> dict[str, Any]:
        """Everything as JSON values."""
        return {
            "verdict": self.verdict,
            "outcome": self.outcome,
            "warnings": list(self.warnings),
            "a": _who(self.a),
            "b": _who(self.b),
            "speeds": [speed.to_json() for speed in self.speeds],
            "states": list(self.states),
            "waits": list(self.waits),
            "overlap": list(self.overlap),
            "path": list(self.path),
        }


def _who(one: Side) -> dict[str, Any]:
    facts = ("capture_id", "label", "kernel", "version", "device", "dtype", "shape", "stamp_set", "completeness")
    return {"name": one.name, **{key: one.capture[key] for key in facts}, "iterations": one.iterations,
            "grid_ctas": one.grid_ctas, "unit": one.unit}  # fmt: skip


def diff(
    a: Bundle,
    b: Bundle,
    *,
    names: tuple[str, str] = ("A", "B"),
    captures: tuple[str, str] = ("", ""),
    launches: tuple[int | None, int | None] = (None, None),
    force: bool = False,
    tolerance: float = TOLERANCE,
) -> Diff:
    """Compare two versions of a kernel.

    Args:
        a, b: the version before and the one after.
        names: what to call the bundles in commands.
        captures: ids of the captures, where a bundle holds several.
        launches: whose timelines are compared; by default the first of each.
        force: compare although stamps, devices or units of the clocks differ.
        tolerance: share under which a change is none, however sure.

    Raises:
        BadRequest: nothing to compare, or not comparable and ``force`` is false.
    """
    one = side(a, names[0], "a-", captures[0], launches[0])
    two = side(b, names[1], "b-", captures[1], launches[1])
    refused = incomparable(one, two)
    if refused and not force:
        raise BadRequest(f"not comparable: {'; '.join(refused)}", "Use --force to compare anyway.")
    speeds = compared(one, two)
    path = _path(one, two)
    waits = _waits(one, two)
    states = _states(one, two)
    outcome = judged(speeds, tolerance)
    return Diff(
        one, two, speeds, states, waits, _overlap(one, two), path, outcome,
        _headline(one, two, speeds, path, waits, outcome, tolerance), (*refused, *warned(one, two)),
    )  # fmt: skip


def incomparable(a: Side, b: Side) -> list[str]:
    """Why two versions cannot be compared; empty when they can."""
    found = []
    both = a.seen is not None and b.seen is not None
    for what, left, right in (
        ("stamp sets", a.capture["stamp_set"] if both else "", b.capture["stamp_set"] if both else ""),
        ("devices", a.capture["device"], b.capture["device"]),
        ("units of the clocks", a.unit, b.unit),
    ):
        if left and right and left != right:
            found.append(f"{what} differ ({left} and {right})")
    return found


def warned(a: Side, b: Side) -> list[str]:
    """What a reader must know before believing the numbers."""
    found = []
    for one in (a, b):
        state = one.capture["completeness"] or "unknown"
        if one.seen is not None and state != "complete":
            found.append(f"the record of {one.name} is {state}: its states hold for what was recorded")
    unknown = [one.name for one in (a, b) if one.seen is not None and not one.capture["stamp_set"]]
    if unknown:
        found.append(f"which stamps {' and '.join(unknown)} has is not known: states may not be like")
    for what, left, right in (
        ("kernels", a.capture["kernel"], b.capture["kernel"]),
        ("dtypes", a.capture["dtype"], b.capture["dtype"]),
        ("shapes", a.capture["shape"], b.capture["shape"]),
        ("iterations", a.trip_count, b.trip_count),
        ("CTAs of the grid", a.grid_ctas, b.grid_ctas),
    ):
        if left not in ("", None, -1) and right not in ("", None, -1) and left != right:
            found.append(f"{what} differ ({left} and {right})")
    seen = [
        one.seen.perturbation.rows[0]["perturbation"] if one.seen and one.seen.perturbation.rows else None
        for one in (a, b)
    ]
    if seen[0] is not None and seen[1] is not None and abs(seen[0] - seen[1]) > DISTURBED:
        found.append(
            f"the stamps disturb them differently ({written(seen[0], 'change')} and {written(seen[1], 'change')}): "
            "states moved by that as well"
        )
    elif a.seen is not None and b.seen is not None and None in seen:
        found.append("how much the stamps disturb one of them is unknown")
    return found


def compared(a: Side, b: Side) -> tuple[Compared, ...]:
    """Every method that both have, by preference."""
    mine = {speed.key: speed for speed in reversed(a.speeds)}
    pairs = [(mine[other.key], other) for other in b.speeds if other.key in mine]
    rank = {pair: n for n, pair in enumerate(PREFERENCE)}

    def order(pair: tuple[Speed, Speed]) -> tuple[Any, ...]:
        one = pair[0]
        at = one.trips[-1] if one.trips else 0
        # Of several grids the timeline's own; of the roles the slowest, since one loop is as fast as its slowest role.
        return (
            rank.get((one.method, one.kind), len(rank)),
            one.grid_ctas != a.grid_ctas,
            -at,
            -max(one.value, pair[1].value),
        )

    return tuple(Compared(x, y, noise(x.groups, y.groups)) for x, y in sorted(pairs, key=order))


def judged(speeds: Iterable[Compared], tolerance: float) -> str:
    """The outcome of the method that decides."""
    first = next(iter(speeds), None)
    if first is None or first.change is None:
        return NOTHING
    if first.noise.beyond is None:
        return OPEN
    if not first.noise.beyond or abs(first.change) < tolerance:
        return SAME
    return SLOWER if first.change > 0 else FASTER


def _states(a: Side, b: Side) -> tuple[dict[str, Any], ...]:
    """Rows of both by role: share of each state, and ticks an iteration of a lane."""
    mine, other = ({row["role"]: row for row in one.seen.states.rows} if one.seen else {} for one in (a, b))
    rows = []
    for role in dict.fromkeys([*mine, *other]):
        row: dict[str, Any] = {"role": role}
        for state in ("active", "untracked", "stall", "blocked", "satisfied", "unjudged"):
            for letter, one, found in (("a", a, mine.get(role)), ("b", b, other.get(role))):
                row[f"{state}_{letter}"] = _each(found, state, one.iterations)
                row[f"{state}_share_{letter}"] = found[f"{state}_share"] if found else None
            row[f"{state}_change"] = _less(row[f"{state}_a"], row[f"{state}_b"])
            row |= _sure(a, b, (role, state), state)
        rows.append(row | _beyond(row, ("active", "untracked", "blocked", "satisfied")))
    return tuple(rows)


def _sure(a: Side, b: Side, key: tuple[str, ...], name: str) -> dict[str, Any]:
    """What the launches with stamps say of a change: its 99 % interval and whether that leaves out none."""
    nothing = np.zeros(0)
    held = [one.repeats.get(key, nothing) for one in (a, b)]
    known = [len(next(iter(one.repeats.values()), nothing)) for one in (a, b)]
    # What one version does not have at all it has for no time in each of its launches.
    values = [found if len(found) else np.zeros(count) for found, count in zip(held, known, strict=True)]
    found = difference(*values)
    return {f"{name}_low": found.low, f"{name}_high": found.high, f"{name}_beyond": found.beyond,
            "launches": found.launches, "why": found.why}  # fmt: skip


def _beyond(row: Mapping[str, Any], names: Iterable[str]) -> dict[str, str]:
    """Which of the changes are more than noise, in words."""
    more = [name for name in names if row[f"{name}_beyond"]]
    return {"more_than_noise": f"unknown: {row['why']}" if row["why"] else ", ".join(more) or "none"}


def _each(row: Mapping[str, Any] | None, name: str, iterations: int) -> float | None:
    """Ticks an iteration of one lane."""
    if row is None or not row.get("lanes") or not iterations:
        return None
    return float(row[name] / (row["lanes"] * iterations))


def _less(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else float(b - a)


def _waits(a: Side, b: Side) -> tuple[dict[str, Any], ...]:
    """Waits of both by role, span and barrier, what moved most first."""
    sums: dict[tuple[str, str, str], dict[str, float]] = {}
    for letter, one in (("a", a), ("b", b)):
        lanes = {row["role"]: row["lanes"] for row in one.seen.states.rows} if one.seen else {}
        for row in one.seen.waits.rows if one.seen else ():
            found = sums.setdefault((str(row["role"]), str(row["span"]), str(row["barrier"])), {})
            for name in ("blocked", "satisfied", "unjudged"):
                each = (
                    row[f"{name}_ticks"] / ((lanes.get(row["role"]) or 1) * one.iterations) if one.iterations else 0.0
                )
                found[f"{name}_{letter}"] = found.get(f"{name}_{letter}", 0.0) + each
    rows = []
    for (role, span, barrier), found in sums.items():
        both: dict[str, Any] = {"role": role, "span": span, "barrier": barrier}
        for name in ("blocked", "satisfied", "unjudged"):
            both |= {f"{name}_{letter}": found.get(f"{name}_{letter}") for letter in "ab"}
            both[f"{name}_change"] = found.get(f"{name}_b", 0.0) - found.get(f"{name}_a", 0.0)
            both |= _sure(a, b, (role, span, barrier, name), name)
        rows.append(both | _beyond(both, ("blocked", "satisfied", "unjudged")))
    return tuple(sorted(rows, key=lambda r: (-abs(r["blocked_change"]), r["role"], r["span"], r["barrier"])))


def _overlap(a: Side, b: Side) -> tuple[dict[str, Any], ...]:
    mine, other = ({(r["set_a"], r["set_b"]): r for r in one.seen.overlap.rows} if one.seen else {} for one in (a, b))
    rows = []
    for pair in dict.fromkeys([*mine, *other]):
        row: dict[str, Any] = {"set_a": pair[0], "set_b": pair[1]}
        for share in ("of_a", "of_b", "of_union"):
            row[f"{share}_before"] = mine[pair][share] if pair in mine else None
            row[f"{share}_after"] = other[pair][share] if pair in other else None
            row[f"{share}_change"] = _less(row[f"{share}_before"], row[f"{share}_after"])
        rows.append(row)
    return tuple(rows)


def _path(a: Side, b: Side) -> tuple[dict[str, Any], ...]:
    """Pieces of both critical paths, ticks an iteration. The pieces of a path fill the life of its CTA, so what they
    moved adds up to what the CTA's time moved."""
    sums: dict[tuple[str, str, str, str], dict[str, float]] = {}
    for letter, one in (("a", a), ("b", b)):
        for row in one.seen.path.rows if one.seen and one.seen.path and one.iterations else ():
            if row["level"] == "span":
                key = (row["role"], row["kind"], row["span"], row["barrier"])
                found = sums.setdefault(key, {"a": 0.0, "b": 0.0})
                found[letter] += row["ticks"] / one.iterations
    if not all(one.seen is not None and one.seen.path is not None for one in (a, b)):
        return ()
    rows: list[dict[str, Any]] = [
        {"role": role, "kind": kind, "span": span, "barrier": barrier, **found, "change": found["b"] - found["a"]}
        for (role, kind, span, barrier), found in sums.items()
    ]
    return tuple(sorted(rows, key=lambda r: (-abs(r["change"]), r["role"], r["kind"], r["span"])))


def _headline(
    a: Side, b: Side, speeds: tuple[Compared, ...], path: tuple[dict[str, Any], ...], waits: tuple[dict[str, Any], ...],
    outcome: str, tolerance: float,
) -> Text:  # fmt: skip
    """The verdict as a sentence whose numbers are cells of the tables speeds, path and waits."""
    if outcome == NOTHING:
        return (f"{b.name} and {a.name} were not measured by the same method: no speed is compared.",)
    first = speeds[0]
    said: dict[str, Any] = {"a": first.a.value, "b": first.b.value, "change": first.change, "low": first.noise.low,
                            "high": first.noise.high}  # fmt: skip

    def cell(column: str, kind: str = "change") -> Number:
        return Number(said[column], written(said[column], kind), "speeds", 0, column)

    parts: list[str | Number] = [
        cell("b", "mean"),
        " against ",
        cell("a", "mean"),
        f" {_per(first, a.unit)}, ",
        cell("change"),
    ]
    if first.noise.beyond is not None:
        parts += [" (99 % interval ", cell("low"), " to ", cell("high"), f"; {_method(first)})"]
    else:
        parts += [f" ({_method(first)}); whether that is more than noise is unknown: {first.noise.why}"]
    if outcome == SAME:
        than = f"{tolerance:.1%}".replace("%", " %") + ", which is taken for none" if first.noise.beyond else "noise"
        return (f"No difference beyond {than}: {b.name} takes ", *parts, ".")
    change = first.change or 0.0
    word = "slower than" if change > 0 else "faster than" if change < 0 else "as fast as"
    return (f"{b.name} is {word} {a.name}: ", *parts, ".", *_moved(change, path, waits))


def _method(first: Compared) -> str:
    one = first.a
    if one.method == "start_to_start":
        return f"start to start of {one.role}, with stamps"
    return f"{one.method} of {one.kind} launches"


def _per(first: Compared, unit: str) -> str:
    # Lifetimes are compared in cycles only.
    word = (unit or "ticks") if first.a.method == "start_to_start" else "cycles"
    return f"{word} a CTA" if first.a.method == "lifetime" else f"{word} an iteration"


def _mover(change: float, path: tuple[dict[str, Any], ...]) -> int | None:
    """The row of the path that moved most the way the speed did.

    The path may run over one of two like roles in A and over the other one in B: then what the one loses the other
    gains. So the kind of piece is chosen by its sum over all roles, and only then the role.
    """
    net: dict[tuple[str, str, str], float] = {}
    for row in path:
        kind = (row["kind"], row["span"], row["barrier"])
        net[kind] = net.get(kind, 0.0) + row["change"]
    if not net:
        return None
    most = max(net, key=lambda kind: net[kind] * change)
    if net[most] * change <= 0:
        return None
    own = [n for n, row in enumerate(path) if (row["kind"], row["span"], row["barrier"]) == most]
    return max(own, key=lambda n: path[n]["change"] * change)


def _moved(change: float, path: tuple[dict[str, Any], ...], waits: tuple[dict[str, Any], ...]) -> list[str | Number]:
    """What moved the same way as the speed: the largest piece of the path, and the wait that changed most."""
    parts: list[str | Number] = []
    place = _mover(change, path)
    if place is not None and abs(path[place]["change"]) >= 1:
        row = path[place]
        on = row["barrier"] or row["span"]
        what = {"latency": f"latency of {on}", "stall": f"waiting on {on}", "untracked": "untracked"}
        name = what.get(row["kind"], f"{row['kind']} in {row['span']}")
        moved = Number(row["change"], written(row["change"], "gap"), "path", place, "change")
        parts += [f"{row['role']} {name} on the critical path, ", moved, " an iteration"]
    if waits and abs(waits[0]["blocked_change"]) >= 1:
        row = waits[0]
        parts += ["; " if parts else "", f"{row['role']} blocked on {row['barrier'] or row['span']}, ",
                  Number(row["blocked_change"], written(row["blocked_change"], "gap"), "waits", 0, "blocked_change"),
                  " an iteration"]  # fmt: skip
    return [" What moved: ", *parts, "."] if parts else []
