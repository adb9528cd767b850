"""Counters by what they mean: one quantity, many metric names, told apart per architecture.

A quantity (tensor_busy, dram_busy, each stall reason) has candidates in ``schema/ncu_metrics.json``, best first. The
first one with a number serves, and the answer says which and why. Values of different names are never added; a value
that is not available is absent, not 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pyarrow.compute as pc

from wsformat.bundle import Bundle
from wsformat.errors import BadRequest
from wsformat.tables import read_schema_json


@cache
def families() -> dict[str, Any]:
    """``schema/ncu_metrics.json``."""
    data: dict[str, Any] = read_schema_json("ncu_metrics.json")
    return data


@dataclass(frozen=True, slots=True)
class Reading:
    """One printed value.

    Attributes:
        metric: resolved metric name.
        value: in ``unit``; None when there is no number.
        unit: base unit.
        name: as printed; another than ``metric`` for a label of the details page.
        section: of the report.
        text: as printed.
        null_reason: why there is no number.
    """

    metric: str
    value: float | None
    unit: str
    name: str
    section: str
    text: str
    null_reason: str


@dataclass(frozen=True, slots=True)
class Resolved:
    """A quantity's value and where it comes from.

    Attributes:
        quantity: its name in ``schema/ncu_metrics.json``.
        value: in ``unit``.
        unit: of the quantity.
        metric: the name that served.
        printed: what the report calls it, with its section.
        why: why this name: its place among the candidates, what the better ones lacked, its note.
        refused: names that were there and must not serve, with the reason.
    """

    quantity: str
    value: float
    unit: str
    metric: str
    printed: str
    why: str
    refused: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Missing:
    """A quantity without a value: what was tried, and names that must not serve although they are there."""

    quantity: str
    why: str
    refused: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stalls:
    """Stall reasons of one family, which are parts of one whole.

    Attributes:
        family: name in ``schema/ncu_metrics.json``, or source_page.
        unit: of ``values``.
        values: per reason the printed value; only reasons that are stalls.
        shares: per reason percent of all stalls, together 100, most first.
        metrics: per reason the metric name.
        why: why this family.
        unstalled: selected and not_selected, which are no stalls.
    """

    family: str
    unit: str
    values: Mapping[str, float]
    shares: Mapping[str, float]
    metrics: Mapping[str, str]
    why: str
    unstalled: Mapping[str, float] = field(default_factory=dict)

    @property
    def top(self) -> str:
        """The reason with the largest share."""
        return next(iter(self.shares))


def chip_of(arch: str) -> str:
    """Chip whose metric names hold for an architecture such as sm_90a; '' unknown."""
    chips: dict[str, str] = families()["chips"]
    return chips.get(arch.rstrip("abcdefghijklmnopqrstuvwxyz"), "")


@dataclass(frozen=True)
class Counters:
    """The counters of one launch, by metric name.

    Attributes:
        arch: such as sm_90; '' unknown.
        readings: by metric name; a printed name wins over a label that means the same.
        launch: number of the launch, -1 for a summary of several.
    """

    arch: str
    readings: Mapping[str, Reading]
    launch: int = -1

    def value(self, metric: str) -> float | None:
        """Value of a metric by its exact name; None when it is absent or no number."""
        reading = self.readings.get(metric)
        return None if reading is None else reading.value

    def exists(self, candidate: Mapping[str, Any]) -> bool:
        """Whether a candidate's name is known on this chip (unknown chips know every name)."""
        chip = chip_of(self.arch)
        return not chip or chip in candidate.get("chips", (chip,))

    def resolve(self, quantity: str) -> Resolved | Missing:
        """A quantity's value, or what it lacks.

        Raises:
            BadRequest: no such quantity.
        """
        known = families()["quantities"]
        if quantity not in known:
            raise BadRequest(f"no quantity {quantity!r}", f"Quantities: {', '.join(known)}.")
        entry = known[quantity]
        refused = tuple(filter(None, (self._refusal(trap) for trap in entry.get("never", ()))))
        skipped: list[str] = []
        for place, candidate in enumerate(entry["candidates"]):
            state = self._state(candidate)
            if state:
                skipped.append(state)
                continue
            chosen = candidate
            if candidate.get("largest"):
                rivals = [c for c in entry["candidates"][place:] if c.get("largest") and not self._state(c)]
                chosen = max(rivals, key=lambda c: self._scaled(c))
            if not self._fits(chosen):
                refused = ()
            return self._resolved(quantity, entry, chosen, place, skipped, refused)
        why = "; ".join(skipped) or "no candidate"
        return Missing(quantity, why, refused)

    def _refusal(self, trap: Mapping[str, str]) -> str:
        """What to say of a name that must not serve; '' when the report has none such."""
        names = [n for n, r in self.readings.items() if n.partition(".")[0] == trap["metric"] and r.value is not None]
        if not names:
            return ""
        more = f" (and {len(names) - 1} more of {trap['metric']})" if len(names) > 1 else ""
        return f"{names[0]} = {self.value(names[0]):g}{more}: {trap['why']}"

    def _fits(self, candidate: Mapping[str, Any]) -> bool:
        """A name that serves here is not refused in the same breath (it is legitimate on older chips)."""
        trap = candidate["metric"].partition(".")[0]
        return not any(t["metric"] == trap for q in families()["quantities"].values() for t in q.get("never", ()))

    def _state(self, candidate: Mapping[str, Any]) -> str:
        metric = candidate["metric"]
        if not self.exists(candidate):
            return f"{metric} is no counter of {self.arch}"
        if "chips" in candidate and not chip_of(self.arch) and not self._fits(candidate):
            return f"{metric} is right on some architectures only, and this one is unknown"
        reading = self.readings.get(metric)
        if reading is None:
            return f"{metric} was not collected"
        return f"{metric} is {reading.null_reason}" if reading.value is None else ""

    def _scaled(self, candidate: Mapping[str, Any]) -> float:
        return (self.value(candidate["metric"]) or 0.0) * float(candidate.get("scale", 1))

    def _resolved(
        self, quantity: str, entry: Mapping[str, Any], candidate: Mapping[str, Any], place: int, skipped: list[str],
        refused: tuple[str, ...],
    ) -> Resolved:  # fmt: skip
        reading = self.readings[candidate["metric"]]
        why = ["first choice" if place == 0 or not skipped else f"choice {place + 1}: {'; '.join(skipped)}"]
        if candidate.get("note"):
            why.append(candidate["note"])
        if reading.name != reading.metric:
            why.append(f"printed as {reading.name!r} in {reading.section!r}")
        printed = reading.name if not reading.section else f"{reading.section}: {reading.name}"
        value = self._scaled(candidate)
        return Resolved(quantity, value, entry["unit"], candidate["metric"], printed, "; ".join(why), refused)

    def stalls(self) -> Stalls | Missing:
        """Stall composition, all of one family."""
        skipped = []
        for family in families()["stall_families"]:
            found: dict[str, tuple[str, float]] = {}
            asked = 0
            for reason, entry in families()["stall_reasons"].items():
                for spelled in entry["spelled"]:
                    metric = family["metric"].format(reason=spelled)
                    asked += metric in self.readings
                    value = self.value(metric)
                    if value is not None and (reason not in found or value > found[reason][1]):
                        found[reason] = (metric, value)
            real = {r: v for r, v in found.items() if families()["stall_reasons"][r]["is_stall"]}
            if sum(value for _, value in real.values()) > 0:
                why = f"family {family['family']}: {family['meaning']}"
                skipped += [s for s in (self._dead_family(),) if s]
                return composition(family["family"], family["unit"], real, found, "; ".join([why, *skipped]))
            if asked:
                skipped.append(f"{family['metric'].format(reason='*')} has no values")
        dead = self._dead_family()
        count = len(families()["stall_families"])
        return Missing(
            "stalls", "; ".join([*([dead] if dead else []), *skipped, f"no values in any of {count} families"])
        )

    def _dead_family(self) -> str:
        """What to say of names that no chip has and recipes ask for; '' when the report has none."""
        for dead in families()["dead_families"]:
            before, _, after = dead["metric"].partition("{reason}")
            hit = [n for n in self.readings if n.startswith(before) and n.endswith(after) and self.value(n) is None]
            if hit:
                return f"{len(hit)} of {dead['metric'].format(reason='*')}: {dead['why']}"
        return ""


def composition(
    family: str, unit: str, stalls: Mapping[str, tuple[str, float]], found: Mapping[str, tuple[str, float]], why: str
) -> Stalls:
    """Shares of stall reasons, most first.

    Args:
        family: where they come from.
        unit: of the values.
        stalls: per reason (metric, value), stalls only.
        found: the same with selected and not_selected.
        why: why this family.
    """
    total = sum(value for _, value in stalls.values())
    ranked = sorted(stalls.items(), key=lambda item: (-item[1][1], item[0]))
    return Stalls(
        family=family,
        unit=unit,
        values={reason: value for reason, (_, value) in ranked},
        shares={reason: 100 * value / total for reason, (_, value) in ranked},
        metrics={reason: metric for reason, (metric, _) in ranked},
        why=why,
        unstalled={reason: value for reason, (_, value) in found.items() if reason not in stalls},
    )


def counters(bundle: Bundle, launch: int, *, capture: str = "", summary: str = "") -> Counters:
    """The counters of one launch.

    Args:
        bundle: with a table ``metrics``.
        launch: number of the launch; -1 with ``summary``.
        capture: capture of the launch; '' when the bundle holds one.
        summary: scope_id of a summary of several launches; its averages count.
    """
    scope = "summary" if summary else "kernel"
    wanted = ["metric", "name", "section", "label", "base_value", "base_unit", "text", "null_reason", "tool"]
    rows: list[dict[str, Any]] = []
    for part in bundle.data["metrics"].batches() if "metrics" in bundle.data else ():
        mask = pc.and_(pc.equal(part.column("launch"), launch), pc.equal(part.column("scope"), scope))
        if summary:
            mask = pc.and_(mask, pc.equal(part.column("scope_id"), summary))
        if capture:
            mask = pc.and_(mask, pc.equal(part.column("capture_id"), capture))
        rows += part.filter(mask).select(wanted).to_pylist()
    if summary:
        rows = [row for row in rows if row["label"].endswith("Average")]
    arch = {row["arch"] for row in bundle.table("captures").to_pylist() if capture in ("", row["capture_id"])}
    return Counters(next(iter(arch)) if len(arch) == 1 else "", _readings(rows), launch)


def _readings(rows: Iterable[Mapping[str, Any]]) -> dict[str, Reading]:
    found: dict[str, Reading] = {}
    for row in rows:
        metric = row["metric"] or row["name"]
        reading = Reading(
            metric, row["base_value"], row["base_unit"] or "", row["name"], row["section"], row["text"] or "",
            row["null_reason"],
        )  # fmt: skip
        known = found.get(metric)
        better = known is None or (known.value is None and reading.value is not None)
        if better or (known is not None and known.name != metric == row["name"] and reading.value is not None):
            found[metric] = reading
    return found
