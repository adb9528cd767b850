"""Which iterations of a loop the slots of a launch hold, when these are not all of them. Rules: spec, completeness."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from wsformat.errors import BadRequest

Array = np.ndarray[Any, Any]

INT32_MAX = 2**31 - 1
HINT = "Give FROM,STRIDE, such as 8,4: slot k holds iteration 8 + 4 * k."


@dataclass(frozen=True)
class IterationWindow:
    """Slot k of an event in a loop holds iteration ``first + stride * k``.

    Attributes:
        first: iteration of slot 0.
        stride: iterations from one slot to the next.
    """

    first: int = 0
    stride: int = 1

    @property
    def whole(self) -> bool:
        """Whether nothing is left out before the buffer's end."""
        return self.first == 0 and self.stride == 1

    def end(self, slots: int) -> int:
        """First iteration after what so many slots stand for: a loop of more iterations has more to stamp."""
        return self.first + self.stride * slots

    def iterations(self, slot: Array) -> Array:
        """Iteration of each slot."""
        return self.first + self.stride * slot

    def missed(self, trip_count: int, slots: int) -> int:
        """Stamps of one event that a loop of ``trip_count`` iterations makes beyond the last slot."""
        return max(0, -(-(trip_count - self.end(slots)) // self.stride))

    def to_json(self) -> dict[str, int]:
        """As a role spec and the metadata of a buffer say it."""
        return {"from": self.first, "stride": self.stride}


WHOLE = IterationWindow()


def parse_window(value: Any, where: str, slots: int = 1) -> IterationWindow:
    """A window from ``from,stride`` as text or list, or an object with these keys.

    Args:
        value: what was given.
        where: what to call it in errors.
        slots: of the buffer, to see that iteration numbers fit 32 bits.

    Raises:
        BadRequest: it is none.
    """
    parts = value.split(",") if isinstance(value, str) else value
    if isinstance(parts, Mapping):
        if unknown := set(parts) - {"from", "stride"}:
            raise BadRequest(f"{where}: window has no {', '.join(sorted(unknown))}", HINT)
        parts = [parts.get("from", 0), parts.get("stride", 1)]
    try:
        numbers = [int(part, 0) if isinstance(part, str) else int(part) for part in parts]
        if len(numbers) != 2 or numbers[0] < 0 or numbers[1] < 1:
            raise ValueError
    except (TypeError, ValueError) as error:
        raise BadRequest(f"{where}: window {value!r} is not two numbers, the second above 0", HINT) from error
    window = IterationWindow(*numbers)
    if window.end(slots) > INT32_MAX:
        raise BadRequest(f"{where}: window {value!r} reaches iteration {window.end(slots)}, beyond 32 bits", HINT)
    return window
