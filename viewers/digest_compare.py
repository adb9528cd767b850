"""Two versions side by side, and the question whether a profile is called for at all."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from wsformat.bundle import Bundle
from wsformat.viewers.digest_rules import Facts, rules

MOVED_POINTS = 3.0


@dataclass(frozen=True, slots=True)
class Comparison:
    """A candidate against a baseline.

    Attributes:
        verdict: regression, plateau, win, surprising win or unknown.
        speedup: duration of the baseline over the candidate's; None without both.
        expected: speed-up that was expected; None not said.
        why: the metrics that moved with it, most first.
    """

    verdict: str
    speedup: float | None
    expected: float | None
    why: tuple[str, ...]

    def lines(self) -> list[str]:
        """For people."""
        told = (
            "durations are missing" if self.speedup is None else f"{self.speedup:.3f} times the speed of the baseline"
        )
        hoped = "" if self.expected is None else f", {self.expected:.3f} were expected"
        return [f"{self.verdict}: {told}{hoped}", *self.why]


def compare(old: Facts, new: Facts, expected: float | None) -> Comparison:
    """Explain a regression, a plateau or a surprising win by the metrics that moved.

    Args:
        old, new: facts of baseline and candidate.
        expected: speed-up that was expected; None is none, so 1.
    """
    limits = rules()["history"]
    before, after = old.values.get("duration"), new.values.get("duration")
    speedup = before / after if before and after else None
    if speedup is None:
        verdict = "unknown"
    elif abs(speedup - 1) <= limits["plateau"]:
        verdict = "plateau"
    elif speedup < 1:
        verdict = "regression"
    else:
        verdict = "surprising win" if speedup > (expected or 1.0) * (1 + limits["surprise"]) else "win"
    moved = []
    for fact, value in new.values.items():
        if fact not in old.values:
            continue
        delta = value - old.values[fact]
        if (
            fact.endswith("_busy")
            or fact.startswith("stall.")
            or fact in ("issue_active", "occupancy", "conflict_rate")
        ):
            if abs(delta) >= MOVED_POINTS:
                moved.append(
                    (abs(delta), f"{_name(fact, new)} from {old.values[fact]:.1f} to {value:.1f} ({delta:+.1f} points)")
                )
        elif fact.endswith("_bytes") and old.values[fact] > 0 and abs(delta / old.values[fact]) >= 0.05:
            share = 100 * delta / old.values[fact]
            moved.append((abs(share) / 2, f"{_name(fact, new)} {share:+.0f} %"))
    moved.sort(key=lambda item: -item[0])
    why = tuple(text for _, text in moved[:5]) or (
        f"no utilisation or stall share moved by {MOVED_POINTS:g} points or more",
    )
    return Comparison(verdict, speedup, expected, why)


def _name(fact: str, facts: Facts) -> str:
    return facts.sources[fact].metric if fact in facts.sources else fact


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether to profile now.

    Attributes:
        profile: the answer.
        reasons: invocation rules that hold.
        against: why not, where something speaks against it.
        geomean: speed-up of the latest iteration over the one before; None without both.
        cases: speed-up of each case.
    """

    profile: bool
    reasons: tuple[str, ...]
    against: tuple[str, ...]
    geomean: float | None
    cases: Mapping[str, float]


def when_to_profile(
    history: Bundle,
    *,
    has_baseline_digest: bool | None = None,
    expected: float = 1.0,
    surprise: float | None = None,
    reviewer_asks: bool = False,
    correct: bool | None = None,
    minor_edit: bool = False,
) -> Decision:
    """Whether a profile is called for, by the six invocation rules over benchmark results.

    Args:
        history: captures with rows of ``metrics`` of tool ``benchmark``, scope ``case``; one capture an iteration, in
            the order of ``created_unix_ns``. Times (base unit ns) count as better when less, anything else when more.
        has_baseline_digest: whether a digest of the baseline is there; None looks for one among the findings.
        expected: speed-up that the latest edit was expected to bring.
        surprise: how much over ``expected`` is surprising, 0.10 by default.
        reviewer_asks: somebody asked for a profile.
        correct: False when the latest version's results are wrong.
        minor_edit: the latest edit does not touch what the kernel computes or how.
    """
    limits = rules()["history"]
    surprise = limits["surprise"] if surprise is None else surprise
    steps = iterations(history)
    gains = [_gain(a, b) for a, b in pairwise(steps)]
    latest = gains[-1] if gains else {}
    geomeans = [geometric_mean(list(g.values())) for g in gains]
    if has_baseline_digest is None:
        has_baseline_digest = any(r["subject"].startswith("digest: ") for r in history.table("findings").to_pylist())
    reasons = []
    if not has_baseline_digest:
        reasons.append("no baseline digest yet")
    if latest and all(abs(g - 1) <= limits["plateau"] for g in latest.values()):
        reasons.append(f"every case is within {100 * limits['plateau']:g} % of the iteration before")
    slower = {case: g for case, g in latest.items() if g < 1 - limits["plateau"]}
    if slower:
        told = ", ".join(f"{case} {100 * (g - 1):+.1f} %" for case, g in sorted(slower.items(), key=lambda i: i[1]))
        reasons.append(f"a case regresses: {told}")
    count = limits["slow_iterations"]
    recent = geomeans[-count:]
    if len(recent) == count and all(g is not None and g - 1 < limits["slow_geomean"] for g in recent):
        told = ", ".join(f"{100 * (g - 1):+.2f} %" for g in recent if g is not None)
        reasons.append(f"{count} iterations under {100 * limits['slow_geomean']:g} % in geometric mean: {told}")
    last = geomeans[-1] if geomeans else None
    if last is not None and last > expected * (1 + surprise):
        reasons.append(f"surprising win: {last:.3f} times the speed, {expected:.3f} expected")
    if reviewer_asks:
        reasons.append("a reviewer asks")
    against = []
    if correct is False:
        against.append("the results are not correct: repair that first, a profile of a wrong kernel says nothing")
    urgent = any(r.startswith(("a case regresses", "a reviewer", "surprising")) for r in reasons)
    if minor_edit and not urgent:
        against.append("a minor edit: no profile unless a case regresses, surprises, or a reviewer asks")
    if not reasons:
        against.append("no invocation rule holds")
    return Decision(bool(reasons) and not against, tuple(reasons), tuple(against), last, latest)


def iterations(history: Bundle) -> list[dict[str, tuple[float, str]]]:
    """Benchmark results of each capture, oldest first: per case its value and base unit."""
    captures = history.table("captures").to_pylist()
    order = sorted(range(len(captures)), key=lambda i: (captures[i]["created_unix_ns"], i))
    place = {captures[i]["capture_id"]: n for n, i in enumerate(order)}
    rows: list[dict[str, Any]] = history.sql(
        "SELECT capture_id, scope_id, name, base_value, base_unit FROM metrics "
        "WHERE tool = 'benchmark' AND scope = 'case' AND base_value > 0 ORDER BY name, ordinal"
    ).to_pylist()
    found: dict[int, dict[str, tuple[float, str]]] = {}
    for row in rows:
        found.setdefault(place[row["capture_id"]], {}).setdefault(
            row["scope_id"], (row["base_value"], row["base_unit"])
        )
    return [found[n] for n in sorted(found)]


def _gain(old: Mapping[str, tuple[float, str]], new: Mapping[str, tuple[float, str]]) -> dict[str, float]:
    gains = {}
    for case, (value, unit) in new.items():
        if case in old and old[case][1] == unit:
            before = old[case][0]
            gains[case] = before / value if unit == "ns" else value / before
    return gains


def geometric_mean(values: list[float]) -> float | None:
    """Geometric mean; None of nothing."""
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None
