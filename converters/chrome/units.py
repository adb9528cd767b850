"""The unit of a Chrome trace's times: microseconds by the format, nanoseconds or cycles in files that ignore it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from wsformat.errors import BadRequest, MalformedInput

Array = np.ndarray[Any, Any]

CYCLE = "cycle"
UNITS = {"us": "us", "ns": "ns", "cycle": CYCLE, "cycles": CYCLE}
TIMER_STEP = 32
"""Step of the device's ns timer, in ns."""
ENOUGH = 64
"""Fewer times than this prove nothing."""
EPOCH_NS = 10**17
"""More microseconds than this are the year 5138 and later; nanoseconds since 1970 are larger."""
MAX_WHOLE = (2**63 - 1) // 1000 - 1


@dataclass(frozen=True)
class Unit:
    """Unit of ts and dur.

    Attributes:
        name: us, ns or cycle.
        text: what was decided and why, one sentence.
        assumed: whether that goes beyond what the format says.
    """

    name: str
    text: str
    assumed: bool = True


def decide(option: Any, whole: Array, milli: Array) -> Unit:
    """The unit that the option says, else the one that the numbers show.

    Args:
        option: None or 'auto', 'us', 'ns', 'cycle'.
        whole, milli: all times and durations, in whole units and thousandths.

    Raises:
        BadRequest: no such unit.
    """
    asked = str(option or "auto").lower()
    if asked in UNITS:
        name = UNITS[asked]
        return Unit(name, f"Times are taken as {'cycles' if name == CYCLE else name}, as the user said.")
    if asked != "auto":
        raise BadRequest(f"ts_unit {option!r}: no such unit", "Units: auto, us, ns, cycle.")
    if whole.size and int(whole.max()) > EPOCH_NS:
        return Unit("ns", f"Times are taken as ns: {int(whole.max())} microseconds would lie beyond the year 5138.")
    if whole.size >= ENOUGH and not milli.any():
        step = int(np.gcd.reduce(whole))
        if step >= TIMER_STEP and step % TIMER_STEP == 0 and step & (step - 1) == 0:
            return Unit(
                "ns",
                f"Times are taken as ns, not us: all {whole.size} are whole multiples of {step}, the step of the "
                f"device's ns timer (say ts_unit=us to overrule).",
            )
    return Unit("us", "Times are microseconds, as the format says.", assumed=False)


def ticks(whole: Array, milli: Array, there: Array, unit: Unit, where: str, *, shift: bool = True) -> tuple[Array, int]:
    """Times in ns (cycles for cycles), and how much was added so that none is negative.

    Raises:
        MalformedInput: a time does not fit 64 bits of ns.
    """
    if unit.name == "us":
        beyond = np.flatnonzero(there & (np.abs(whole) > MAX_WHOLE))
        if beyond.size:
            raise MalformedInput(
                f"{where}: a time of {int(whole[beyond[0]])} microseconds does not fit 64 bits of ns",
                "The writer may mean another unit: give ts_unit=ns or ts_unit=cycle.",
            )
        t = np.where(there, whole * 1000 + milli, 0)
    else:
        t = np.where(there, whole + (milli >= 500), 0)
    least = int(t.min()) if t.size and shift else 0
    added = -min(least, 0)
    return t + added, added
