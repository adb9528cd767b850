"""Hardware facts: rates per SM and cycle, counts, clocks and capacities of GPUs, each with its source.

The facts are data, ``schema/hardware.json``; this module finds a GPU and a value in it. Nothing is guessed: a device
that is not listed, a value that nobody published and a value that is marked unverified are errors that say what to
supply. Form factors of one chip differ (SM count, clock, memory), so a chip alone names no GPU.
"""

from __future__ import annotations

import difflib
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from wsformat.errors import BadRequest
from wsformat.tables import read_schema_json


class DoubtfulValueWarning(UserWarning):
    """A value of low confidence, or one that was never verified, is used."""


@dataclass(frozen=True, slots=True)
class Value:
    """One fact about one GPU.

    Attributes:
        quantity: its name in ``schema/hardware.json``.
        kind: rate, bandwidth, count, clock, capacity, latency or throughput.
        value: in ``unit``; None when ``absence`` says why.
        unit: such as FLOP/cycle/SM.
        source: keys of :func:`sources`.
        confidence: high, medium, low or unverified.
        note: how it was derived, or when it holds.
        absence: '' there is a value; unsupported, unknown, or formula (then ``formula`` has it).
        formula: of a value that depends on something.
    """

    quantity: str
    kind: str
    value: float | None
    unit: str
    source: tuple[str, ...]
    confidence: str
    note: str = ""
    absence: str = ""
    formula: str = ""


@dataclass(frozen=True)
class Gpu:
    """One GPU in one form factor.

    Attributes:
        key: its name in ``schema/hardware.json``.
        name: for people.
        vendor: nvidia or amd.
        arch: without the suffix for arch-specific features, such as sm_90.
        chip: such as Hopper GH100.
        form_factor: sxm, pcie, superchip, oam.
        devices: names that the driver prints.
        values: by quantity.
    """

    key: str
    name: str
    vendor: str
    arch: str
    chip: str
    form_factor: str
    devices: tuple[str, ...]
    values: Mapping[str, Value]

    def value(self, quantity: str, *, shape: str = "", accept_doubt: bool = False) -> Value:
        """A value that can be calculated with.

        Args:
            quantity: its name; ``mma_`` with any name of a dtype (``mma_nvfp4``) too.
            shape: shape class of :func:`shape_classes`, which may lower an MMA rate.
            accept_doubt: take a value that is marked unverified, with a warning.

        Raises:
            BadRequest: no such quantity; none for this GPU; not supported by it; unverified and not accepted; no such
                shape class.

        Warns:
            DoubtfulValueWarning: low confidence, or unverified and accepted.
        """
        quantity = canonical(quantity)
        if quantity not in quantities():
            near = difflib.get_close_matches(quantity, quantities(), 4, 0.4)
            raise BadRequest(
                f"no quantity {quantity!r} in the hardware facts",
                f"Near: {', '.join(near)}." if near else "`wsformat hardware GPU` lists them.",
            )
        found = self.values.get(quantity)
        supply = 'Supply a number: {"rate": NUMBER, "rate_unit": "…", "reason": "where it comes from"}.'
        if found is None or found.absence == "unknown":
            raise BadRequest(f"{self.name}: {quantity} is not known", supply)
        if found.absence == "unsupported":
            raise BadRequest(f"{self.name} has no {quantity}{': ' + found.note if found.note else ''}", supply)
        if found.absence == "formula":
            raise BadRequest(f"{self.name}: {quantity} depends: {found.formula}", supply)
        if found.confidence == "unverified" and not accept_doubt:
            raise BadRequest(
                f"{self.name}: {quantity} = {found.value:g} {found.unit} was never verified",
                supply + ' Or take it as it is: "accept_doubt": true.',
            )
        if found.confidence in ("low", "unverified"):
            warnings.warn(
                f"{self.name}: {quantity} = {found.value:g} {found.unit} is of {found.confidence} confidence"
                f"{' (' + found.note + ')' if found.note else ''}; measure it before relying on it",
                DoubtfulValueWarning,
                stacklevel=2,
            )
        return self._shaped(found, shape)

    def _shaped(self, found: Value, shape: str) -> Value:
        if not shape:
            return found
        classes = [c for c in shape_classes() if c["name"] == shape]
        if not classes or not found.quantity.startswith("mma_"):
            names = ", ".join(sorted({c["name"] for c in shape_classes()}))
            raise BadRequest(f"no shape class {shape!r} for {found.quantity}", f"Shape classes of MMA rates: {names}.")
        fitting = [c for c in classes if self.arch in c["arch"]]
        if not fitting:
            raise BadRequest(
                f"{self.name}: shape class {shape!r} is not known for {self.arch}",
                f"It is known for {', '.join(sorted({a for c in classes for a in c['arch']}))}.",
            )
        chosen = fitting[0]
        order = list(confidences())
        doubt = max(found.confidence, chosen["confidence"], key=order.index)
        assert found.value is not None
        return Value(
            found.quantity, found.kind, found.value * chosen["factor"], found.unit,
            tuple(dict.fromkeys([*found.source, *chosen["source"]])), doubt,
            f"{chosen['meaning']}: {chosen['factor']:g} of {found.value:g}",
        )  # fmt: skip

    def conflicts(self, quantity: str = "") -> list[dict[str, Any]]:
        """Conflicts between sources about this GPU, all or those of one quantity."""
        return [
            c
            for c in facts()["conflicts"]
            if self.key in c["gpus"] and (not quantity or c["quantity"] == canonical(quantity))
        ]


@cache
def facts() -> dict[str, Any]:
    """``schema/hardware.json``."""
    data: dict[str, Any] = read_schema_json("hardware.json")
    return data


def quantities() -> dict[str, dict[str, str]]:
    """Quantities by name: kind and meaning."""
    found: dict[str, dict[str, str]] = facts()["quantities"]
    return found


def sources() -> dict[str, dict[str, str]]:
    """Sources by key: title, url ('' none), kind and note."""
    found: dict[str, dict[str, str]] = facts()["sources"]
    return found


def shape_classes() -> list[dict[str, Any]]:
    """What lowers an MMA rate: name, arch, factor, source, confidence, meaning."""
    found: list[dict[str, Any]] = facts()["shape_classes"]
    return found


def confidences() -> dict[str, str]:
    """Levels of confidence, best first, and what they mean."""
    found: dict[str, str] = facts()["conventions"]["confidence"]
    return found


def canonical(quantity: str) -> str:
    """The quantity's name with the dtype as the facts name it: mma_nvfp4 is mma_fp4."""
    if quantity.startswith("mma_") and quantity not in quantities():
        return "mma_" + dtype_name(quantity.removeprefix("mma_"))
    return quantity


def dtype_name(dtype: str) -> str:
    """A dtype as the facts name it: e4m3 is fp8. One that is not known stays."""
    names: dict[str, str] = facts()["dtype_names"]
    return names.get(dtype.lower(), dtype.lower())


def element_bytes(dtype: str) -> float:
    """Bytes of one element, 0.5 for 4 bits.

    Raises:
        BadRequest: not known.
    """
    bits = facts()["element_bits"].get(dtype_name(dtype))
    if bits is None:
        raise BadRequest(
            f"no dtype {dtype!r} in the hardware facts", f"There are {', '.join(facts()['element_bits'])}."
        )
    return float(bits) / 8


@cache
def gpus() -> dict[str, Gpu]:
    """Every GPU by key."""
    found = {}
    for key, raw in facts()["gpus"].items():
        values = {
            name: Value(
                quantity=name,
                kind=quantities()[name]["kind"],
                value=None if v["value"] is None else float(v["value"]),
                unit=v["unit"],
                source=tuple(v["source"]),
                confidence=v["confidence"],
                note=v.get("note", ""),
                absence=v.get("absence", ""),
                formula=v.get("formula", ""),
            )
            for name, v in raw["values"].items()
        }
        found[key] = Gpu(
            key, raw["name"], raw["vendor"], raw["arch"], raw["chip"], raw["form_factor"], tuple(raw["devices"]), values
        )
    return found


def highest_clocks() -> list[tuple[str, str, float]]:
    """The highest core clock in Hz of every device name and of every arch: ('device' or 'arch', name, Hz).

    From clock_max of high or medium confidence; of an arch the greatest of its GPUs that have one.
    """
    known = [
        (gpu, 1e6 * value.value)
        for gpu in gpus().values()
        if (value := gpu.values.get("clock_max")) and value.value and value.confidence in ("high", "medium")
    ]
    devices = {name: hz for gpu, hz in known for name in (gpu.name, *gpu.devices)}
    arches: dict[str, float] = {}
    for gpu, hz in known:
        arches[gpu.arch] = max(hz, arches.get(gpu.arch, 0.0))
    return [*(("device", *x) for x in sorted(devices.items())), *(("arch", *x) for x in sorted(arches.items()))]


def lookup(text: str, *, form_factor: str = "") -> Gpu:
    """The GPU of that name, as the driver prints it, as the facts name it, or an arch with a form factor.

    Args:
        text: such as "NVIDIA H200", H200_SXM, or sm_100 (also sm_100a) together with a form factor.
        form_factor: sxm, pcie, superchip or oam.

    Raises:
        BadRequest: none, with the nearest names; or several, with what would tell them apart.
    """
    wanted = plain(text)
    named = [g for g in gpus().values() if wanted in {plain(n) for n in (g.key, g.name, *g.devices)}]
    by_arch = [g for g in gpus().values() if re.fullmatch(re.escape(g.arch) + "[af]?", text.strip().lower())]
    found = named or by_arch
    if form_factor and found:
        fitting = [g for g in found if g.form_factor == form_factor.lower()]
        if not fitting:
            raise BadRequest(
                f"{text}: no form factor {form_factor!r} in the hardware facts",
                f"There is {', '.join(f'{g.key} ({g.form_factor})' for g in found)}.",
            )
        found = fitting
    if len(found) == 1:
        return found[0]
    if found:
        listed = ", ".join(f"{g.key} ({g.form_factor})" for g in found)
        raise BadRequest(f"{text}: {len(found)} GPUs fit", f"Name one of them: {listed}.")
    raise BadRequest(
        f"no GPU {text!r} in the hardware facts",
        f"Nearest: {', '.join(nearest(text))}. Form factors differ, so take one only if it is yours; "
        "a budget can bring its own rates.",
    )


def plain(name: str) -> str:
    """A device name without vendor, case and punctuation."""
    text = re.sub(r"[^a-z0-9]+", " ", name.lower())
    return " ".join(w for w in text.split() if w not in ("nvidia", "amd", "geforce", "instinct"))


def nearest(text: str, most: int = 4) -> list[str]:
    """Keys of the GPUs whose names are most like the text, best first."""
    wanted = plain(text)
    scores = {
        g.key: max(
            difflib.SequenceMatcher(None, wanted, plain(n)).ratio()
            for n in (g.key, g.name, g.arch, f"{g.arch}a", *g.devices)
        )
        for g in gpus().values()
    }
    return sorted(scores, key=lambda key: -scores[key])[:most]


def per_cycle(gpu: Gpu, value: Value, clock_mhz: float | None) -> tuple[float, str]:
    """A value as work per SM and cycle, and how it was converted ('' not at all).

    Args:
        gpu: for the number of SMs.
        value: a rate, or a bandwidth of the whole chip in GB/s or B/cycle.
        clock_mhz: SM clock that bandwidths in GB/s are converted with.

    Raises:
        BadRequest: a bandwidth in GB/s and no clock (none is assumed: chips do not run at their nominal clock), or a
            value that is no rate.
    """
    assert value.value is not None
    if value.unit.endswith("/cycle/SM"):
        return value.value, ""
    if value.kind != "bandwidth":
        raise BadRequest(f"{gpu.name}: {value.quantity} is a {value.kind}, no rate")
    sms = gpu.value("sm_count").value
    assert sms is not None
    if value.unit == "B/cycle":
        return value.value / sms, f"{value.value:g} B/cycle over {sms:g} SMs"
    if not clock_mhz:
        raise BadRequest(
            f"{gpu.name}: {value.quantity} is {value.value:g} {value.unit}; bytes a cycle need the SM clock",
            'Say "clock_mhz" in the budget, as measured (a capture\'s clock_map has it); none is assumed.',
        )
    return value.value * 1e9 / (sms * clock_mhz * 1e6), f"{value.value:g} GB/s over {sms:g} SMs at {clock_mhz:g} MHz"
