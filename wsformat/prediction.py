"""Predictions: a budget calculated. Cycles an iteration of each resource, the bottleneck, and what follows from it.

    cycles = work / rate                      per role, and in total per resource
    T      = the most of all totals           no iteration takes less; the bottleneck
    idle  >= 1 - cycles / T                   of a resource, or of a role's part in it

Roles share a resource (two consumers, one tensor pipe): for throughput and issue the total is the sum over roles. A
latency is a chain of one role, which nobody shares: its total is the longest. Idle is a lower bound, because no chain
of dependencies is in a budget unless it says so.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wsformat.budget import Budget, filled
from wsformat.errors import BadRequest, MalformedInput
from wsformat.expressions import LARGEST, Symbol, evaluate
from wsformat.hardware import DoubtfulValueWarning, Gpu, lookup, per_cycle

TIE = 1e-9
USUAL = {
    "tensor": "tensor cores",
    "smem": "shared memory",
    "mufu": "special functions (exp2)",
    "fma": "FMA lanes",
    "issue": "issue slots",
    "tma": "TMA, L2 and DRAM traffic",
}
"""Resources that can bound a kernel: those that a budget does not mention are listed as left out."""
ALSO_CALLED = {"exp": "mufu", "sfu": "mufu", "l2": "tma", "dram": "tma", "hbm": "tma", "load": "tma", "mma": "tensor"}


@dataclass(frozen=True, slots=True)
class Row:
    """The budget of one resource: of one role, or in total (role '').

    Attributes:
        resource, role, work, work_unit, rate, rate_unit, cycles, formula, kind, rate_source, dtype: as in the table
            ``predictions``.
        idle: lower bound of its idle share.
        is_bottleneck: of totals only.
    """

    resource: str
    role: str
    work: float
    work_unit: str
    rate: float
    rate_unit: str
    cycles: float
    formula: str
    kind: str
    rate_source: str
    dtype: str
    idle: float = 0.0
    is_bottleneck: bool = False


@dataclass(frozen=True)
class Prediction:
    """A budget calculated.

    Attributes:
        budget: what it comes from.
        gpu: whose rates were used; None when every rate was a number.
        rows: totals first, then by role.
        cycles: cycles an iteration takes at least.
        hypothesis: one line that a measurement can prove wrong.
        omits: what the budget leaves out.
        doubts: rates that should be measured before relying on them.
    """

    budget: Budget
    gpu: Gpu | None
    rows: tuple[Row, ...]
    cycles: float
    hypothesis: str
    omits: tuple[str, ...]
    doubts: tuple[str, ...]

    @property
    def totals(self) -> dict[str, Row]:
        """Totals by resource."""
        return {row.resource: row for row in self.rows if not row.role}

    @property
    def bottleneck(self) -> list[str]:
        """Resources that need the most cycles; several in a tie."""
        return [row.resource for row in self.rows if not row.role and row.is_bottleneck]

    def to_json(self) -> dict[str, Any]:
        """Everything as JSON values."""
        raw = self.budget.raw
        return {
            "budget": self.budget.name,
            "settings": dict(self.budget.settings),
            "gpu": self.gpu.key if self.gpu else None,
            "unit": raw["unit"],
            "loop": raw.get("loop", "main"),
            "cycles": self.cycles,
            "bottleneck": self.bottleneck,
            "rows": [
                {
                    "resource": r.resource, "role": r.role, "kind": r.kind, "work": r.work, "work_unit": r.work_unit,
                    "rate": r.rate, "rate_unit": r.rate_unit, "cycles": r.cycles, "slack": self.cycles - r.cycles,
                    "idle_lower_bound": r.idle, "is_bottleneck": r.is_bottleneck, "formula": r.formula,
                    "rate_source": r.rate_source, "dtype": r.dtype,
                }
                for r in self.rows
            ],
            "hypothesis": self.hypothesis,
            "omits": list(self.omits),
            "doubts": list(self.doubts),
        }  # fmt: skip


@dataclass(slots=True)
class _Sum:
    """Entries of one resource and role, added up."""

    kind: str
    cycles: float = 0.0
    work: float = 0.0
    units: tuple[str, ...] = ()
    rate_units: tuple[str, ...] = ()
    formulas: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()


def predict(budget: Budget) -> Prediction:
    """Calculate a budget.

    Raises:
        MalformedInput: a formula fails, work is negative, or there is no work at all.
        BadRequest: a GPU or a rate that is not known; a bandwidth without a clock.
    """
    symbols = budget.symbols()
    name = budget.raw.get("gpu")
    gpu = lookup(name, form_factor=str(budget.raw.get("form_factor", ""))) if name else None
    doubts: list[str] = []
    parts: dict[tuple[str, str], _Sum] = {}
    for number, entry in enumerate(budget.raw["resources"]):
        place = f"{budget.file}: resources/{number} ({entry['resource']})"
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", DoubtfulValueWarning)
            _add(parts, entry, budget, gpu, symbols, place)
        doubts += [str(w.message) for w in caught if issubclass(w.category, DoubtfulValueWarning)]
        for other in (w for w in caught if not issubclass(w.category, DoubtfulValueWarning)):
            warnings.warn(str(other.message), other.category, stacklevel=2)
    rows = _rows(parts)
    most = max(row.cycles for row in rows if not row.role)
    if most <= 0:
        raise MalformedInput(f"{budget.file}: the budget asks for no work at all")
    judged = tuple(_judged(row, most) for row in rows)
    return Prediction(
        budget=budget,
        gpu=gpu,
        rows=judged,
        cycles=most,
        hypothesis=_hypothesis(budget, judged, most),
        omits=tuple(_omits(budget, judged)),
        doubts=tuple(dict.fromkeys(doubts)),
    )


def _add(
    parts: dict[tuple[str, str], _Sum],
    entry: Mapping[str, Any],
    budget: Budget,
    gpu: Gpu | None,
    symbols: Mapping[str, Symbol],
    place: str,
) -> None:
    kind = entry.get("kind", "throughput")
    work, unit, rate, rate_unit, source, dtype = _entry(entry, budget, gpu, symbols, place)
    if work < 0 or not 0 < rate <= LARGEST:
        raise MalformedInput(f"{place}: work {work:g} at rate {rate:g}; work cannot be negative, a rate is above 0")
    what = f"{entry['what']}: " if entry.get("what") else ""
    for role in entry.get("roles") or [entry.get("role", "")]:
        part = parts.setdefault((entry["resource"], role), _Sum(kind))
        others = {s.kind for (resource, _), s in parts.items() if resource == entry["resource"]}
        if others != {kind}:
            raise MalformedInput(f"{place}: is {kind}, another entry of {entry['resource']} is {min(others - {kind})}")
        part.cycles += work / rate
        part.work += work
        part.units += (unit,)
        part.rate_units += (rate_unit,)
        part.formulas += (f"{what}{entry.get('work', entry.get('cycles'))}",)
        part.sources += (source,)
        part.dtypes += (dtype,)


def _entry(
    entry: Mapping[str, Any], budget: Budget, gpu: Gpu | None, symbols: Mapping[str, Symbol], place: str
) -> tuple[float, str, float, str, str, str]:
    """Work, its unit, rate, its unit, where it comes from, and the dtype that it holds for."""
    shared = int(budget.raw.get("ctas_per_sm", 1))
    if "cycles" in entry:
        work = evaluate(str(entry["cycles"]), symbols, place)
        return work, "cycle", 1.0, "cycle/cycle", f"budget: {entry['reason']}", ""
    work = evaluate(str(entry["work"]), symbols, place)
    rate = entry["rate"]
    if isinstance(rate, str):
        quantity = filled(rate, symbols, f"{place}: rate")
        if gpu is None:
            raise BadRequest(
                f"{place}: the rate {quantity} needs a GPU",
                'Say "gpu" in the budget or with --set gpu=NAME; `wsformat hardware` lists them.',
            )
        value = gpu.value(quantity, shape=entry.get("shape", ""), accept_doubt=bool(entry.get("accept_doubt", False)))
        number, how = per_cycle(gpu, value, budget.raw.get("clock_mhz"))
        rate_unit = value.unit if not how else "B/cycle/SM"
        note = f"; {how}" if how else f"; {value.note}" if entry.get("shape") else ""
        source = f"{gpu.key} {value.quantity} [{', '.join(value.source)}], {value.confidence} confidence{note}"
        dtype = quantity.removeprefix("mma_") if quantity.startswith("mma_") else ""
    else:
        if not entry.get("reason") or not entry.get("rate_unit"):
            raise MalformedInput(f"{place}: a rate given as a number needs rate_unit and reason")
        number, rate_unit, source, dtype = _finite(rate, place), entry["rate_unit"], f"budget: {entry['reason']}", ""
    if shared > 1:
        number, source = number / shared, f"{source}; shared by {shared} CTAs"
    unit = entry.get("work_unit") or rate_unit.split("/")[0]
    return work, unit, number, rate_unit, source, dtype


def _finite(number: float, place: str) -> float:
    try:
        return float(number)
    except OverflowError as error:
        raise MalformedInput(f"{place}: the rate is too large for a number") from error


def _rows(parts: Mapping[tuple[str, str], _Sum]) -> list[Row]:
    resources = dict.fromkeys(resource for resource, _ in parts)
    rows = []
    for resource in resources:
        own = {role: part for (r, role), part in parts.items() if r == resource}
        kind = next(iter(own.values())).kind
        longest = max(own.values(), key=lambda part: part.cycles)
        chosen = [longest] if kind == "latency" else list(own.values())
        total = _Sum(kind)
        for part in chosen:
            total.cycles += part.cycles
            total.work += part.work
            total.units += part.units
            total.rate_units += part.rate_units
            total.formulas += part.formulas
            total.sources += part.sources
            total.dtypes += part.dtypes
        rows.append(_row(resource, "", total))
    rows += [_row(resource, role, part) for (resource, role), part in parts.items() if role]
    return rows


def _row(resource: str, role: str, part: _Sum) -> Row:
    # Parts at different rates (one MMA in 4, one in 16 bits) have a mean rate, so that work / rate is still the cycles.
    rate = part.work / part.cycles if part.cycles else 0.0
    counted: dict[str, int] = {}
    for formula in part.formulas:
        counted[formula] = counted.get(formula, 0) + 1
    formula = "; ".join(f if n == 1 else f"{n} x ({f})" for f, n in counted.items())
    return Row(
        resource, role, part.work, _one(part.units), rate, _one(part.rate_units), part.cycles, formula, part.kind,
        "; ".join(dict.fromkeys(part.sources)), "+".join(d for d in dict.fromkeys(part.dtypes) if d),
    )  # fmt: skip


def _one(names: Sequence[str]) -> str:
    return " and ".join(dict.fromkeys(names))


def _judged(row: Row, most: float) -> Row:
    from dataclasses import replace

    cycles = most if abs(row.cycles - most) <= TIE * most else row.cycles
    return replace(row, cycles=cycles, idle=1 - cycles / most, is_bottleneck=not row.role and cycles >= most)


def _hypothesis(budget: Budget, rows: Iterable[Row], most: float) -> str:
    totals = [row for row in rows if not row.role]
    bound = " and ".join(row.resource for row in totals if row.is_bottleneck)
    roles = dict.fromkeys(row.role for row in rows if row.role and row.resource in bound.split(" and "))
    driven = f", driven by {' and '.join(roles)}," if roles else ""
    rest = sorted((row for row in totals if not row.is_bottleneck), key=lambda row: row.idle)
    idle = "; ".join(f"{row.resource} idles at least {row.idle * 100:.0f} %" for row in rest)
    return (
        f"{bound}{driven} bounds the loop: no iteration takes less than {most:,.0f} cycles, and it has the least idle "
        f"time{'; ' + idle if idle else ''}. Wrong if a clean loop takes fewer cycles, or if another "
        "resource or role idles less."
    )


def _omits(budget: Budget, rows: Iterable[Row]) -> list[str]:
    known = {ALSO_CALLED.get(row.resource, row.resource) for row in rows}
    kinds = {row.kind for row in rows}
    left = [text for name, text in USUAL.items() if name not in known and not (name == "issue" and "issue" in kinds)]
    found = list(budget.raw.get("omits", []))
    if left:
        found.append(f"not budgeted: {', '.join(left)}")
    if "latency" not in kinds:
        found.append("latency of dependencies: a chain of waits can keep every resource below its bound")
    found.append("fill and drain of the pipeline, prologue and epilogue")
    return found


def sweep(budget: Budget, axes: Mapping[str, Sequence[Symbol]]) -> list[Prediction]:
    """Predictions for every combination of values.

    Args:
        budget: the budget.
        axes: values by symbol; the last varies fastest.

    Raises:
        as :func:`predict`; BadRequest for a symbol that is not there.
    """
    return [
        predict(budget.with_settings(dict(zip(axes, values, strict=True))))
        for values in itertools.product(*axes.values())
    ]


def published(budget: Budget) -> list[dict[str, Any]]:
    """The published cases of a budget, each number beside what is calculated and, where known, what was measured.

    Returns:
        case (what was set), what (such as cycles tensor, idle % tensor, ratio mufu/tensor), calculated, published,
        measured (None unknown), source.
    """
    found: list[dict[str, Any]] = []
    for case in budget.raw.get("published", []):
        prediction = predict(budget.with_settings(case.get("set", {})))
        totals = prediction.totals
        said = " ".join(f"{key}={value}" for key, value in case.get("set", {}).items()) or "as it is"

        def put(
            what: str, calculated: float, number: float | None, measured: float | None = None,
            said: str = said, source: str = case["source"],
        ) -> None:  # fmt: skip
            found.append(
                {"case": said, "what": what, "calculated": calculated, "published": number, "measured": measured}
                | {"source": source}
            )

        for resource, cycles in case.get("cycles", {}).items():
            put(f"cycles {resource}", totals[resource].cycles, cycles)
        if "predicted_idle_percent" in case:
            idle = 100 * totals[case["resource"]].idle
            put(f"idle % {case['resource']}", idle, case["predicted_idle_percent"], case.get("measured_idle_percent"))
        ratios = {**dict.fromkeys(case.get("measured_ratio", {})), **case.get("ratio", {})}
        for name, ratio in ratios.items():
            one, _, other = name.partition("/")
            put(
                f"ratio {name}",
                totals[one].cycles / totals[other].cycles,
                ratio,
                case.get("measured_ratio", {}).get(name),
            )
        if "measured_cycles" in case:
            put("cycles an iteration", prediction.cycles, None, case["measured_cycles"])
    return found
