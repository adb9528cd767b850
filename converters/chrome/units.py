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


@dataclass
class Times:
    """What times and durations show of their unit.

    Attributes:
        largest, count: the largest, and how many are not 0.
        fractions: whether one has decimals.
        step: the largest number that divides all, as long as none has decimals.
    """

    largest: int = 0
    count: int = 0
    fractions: bool = False
    step: int = 0

    def add(self, whole: Array, milli: Array) -> None:
        """Take numbers: whole parts and thousandths."""
        if not whole.size:
            return
        self.largest = max(self.largest, int(whole.max()))
        self.count += int(np.count_nonzero(whole))
        self.fractions = self.fractions or bool(milli.any())
        if not self.fractions and self.step != 1:
            self.step = int(np.gcd(self.step, np.gcd.reduce(whole)))


def decide(option: Any, times: Times) -> Unit:
    """The unit that the option says, else the one that the numbers show.

    Args:
        option: None or 'auto', 'us', 'ns', 'cycle'.
        times: all times and durations.

    Raises:
        BadRequest: no such unit.
    """
    asked = str(option or "auto").lower()
    if asked in UNITS:
        name = UNITS[asked]
        return Unit(name, f"Times are taken as {'cycles' if name == CYCLE else name}, as the user said.")
    if asked != "auto":
        raise BadRequest(f"ts_unit {option!r}: no such unit", "Units: auto, us, ns, cycle.")
    if times.largest > EPOCH_NS:
        return Unit("ns", f"Times are taken as ns: {times.largest} microseconds would lie beyond the year 5138.")
    if times.count >= ENOUGH and not times.fractions:
        step = times.step
        if step >= TIMER_STEP and step % TIMER_STEP == 0 and step & (step - 1) == 0:
            return Unit(
                "ns",
                f"Times are taken as ns, not us: all {times.count} that are not 0 are whole multiples of {step}, the "
                f"step of the device's ns timer (say ts_unit=us to overrule).",
            )
    return Unit("us", "Times are microseconds, as the format says.", assumed=False)


def ticks(whole: Array, milli: Array, unit: Unit, where: str, *, shift: bool = True) -> tuple[Array, int]:
    """Times in ns (cycles for cycles), and how much was added so that none is negative. Unknown ones are 0.

    Raises:
        MalformedInput: a time does not fit 64 bits of ns.
    """
    if unit.name == "us":
        if whole.size and not -MAX_WHOLE <= int(whole.min()) <= int(whole.max()) <= MAX_WHOLE:
            beyond = int(whole[np.flatnonzero(np.abs(whole) > MAX_WHOLE)[0]])
            raise MalformedInput(
                f"{where}: a time of {beyond} microseconds does not fit 64 bits of ns",
                "The writer may mean another unit: give ts_unit=ns or ts_unit=cycle.",
            )
        t = whole * 1000
        t += milli
    else:
        t = whole + (milli >= 500)
    added = -min(int(t.min()), 0) if t.size and shift else 0
    if added:
        t += added
    return t, added
