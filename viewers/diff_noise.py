"""Is a difference between two versions more than noise? A test that needs repeats and nothing but numpy.

Speed is the slope: the difference of two median lifetimes over the difference of their trip counts. Its change from A
to B gets an interval by the bootstrap: launches are drawn again, with replacement, within each version and trip count,
and 99 % of the changes that come out lie in the interval. A change is beyond noise when the interval leaves out zero.
Nothing is assumed of how lifetimes are distributed; drawn with the same seed every time. A test runs it on noise of
several shapes: of two versions that do not differ, about one in a hundred is called different.

(A permutation test was tried. Dealing out lifetimes hides a change of slope behind a change of the fixed cost: it gave
p = 0.6 for a kernel four times slower. Dealing out residuals calls one in five alike versions different where lifetimes
come in two lengths, as they do.)

This is the noise between launches of one recording, not what changes from one recording to another (clocks, neighbours,
temperature): interleave the versions to have that in it too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Groups = Mapping[int, Array]
"""Lifetimes of launches by their trip count; one or two trip counts."""

DRAWS = 9_999
SEED = 20_240_601
LEAST = 4
"""Launches of each kind without which nothing is said: three medians of three say little of the next one."""
INTERVAL = 0.99


@dataclass(frozen=True)
class Noise:
    """What repeats say of a change.

    Attributes:
        low, high: 99 % interval of the change, as a share of A or as a difference; None unknown.
        launches: fewest launches of a group.
        why: why it is unknown; '' known.
    """

    low: float | None
    high: float | None
    launches: int
    why: str = ""

    @property
    def beyond(self) -> bool | None:
        """Whether the change is more than noise; None unknown."""
        if self.low is None or self.high is None:
            return None
        return not self.low <= 0 <= self.high

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return {"low": self.low, "high": self.high, "launches": self.launches, "why": self.why, "beyond": self.beyond}


def speed(groups: Groups) -> Any:
    """Slope of median lifetimes over trip counts, or the median where there is one trip count.

    Groups may have a leading axis of draws; the launches are on the last one.
    """
    middle = {trips: np.median(ticks, axis=-1) for trips, ticks in groups.items()}
    if len(middle) == 1:
        return next(iter(middle.values()))
    low, high = min(middle), max(middle)
    return (middle[high] - middle[low]) / (high - low)


def noise(a: Groups, b: Groups) -> Noise:
    """What repeats say of the change of speed from A to B.

    Args:
        a, b: lifetimes of each version, by the same one or two trip counts.
    """
    fewest = min((len(ticks) for side in (a, b) for ticks in side.values()), default=0)
    if set(a) != set(b) or not a:
        return Noise(None, None, 0, "no repeats")
    if fewest < LEAST:
        return Noise(None, None, fewest, f"{_launches(fewest)} of a kind, at least {LEAST} are needed")
    rng = np.random.default_rng(SEED)
    before, after = (
        np.asarray(speed({n: ticks[rng.integers(0, len(ticks), (DRAWS, len(ticks)))] for n, ticks in side.items()}))
        for side in (a, b)
    )
    if np.any(before <= 0):
        return Noise(None, None, fewest, "the launches do not take longer with more iterations")
    low, high = np.quantile(after / before - 1, [(1 - INTERVAL) / 2, (1 + INTERVAL) / 2])
    return Noise(float(low), float(high), fewest)


def difference(a: Array, b: Array) -> Noise:
    """What repeats say of the change of a number from A to B, as a difference: it may be 0 in A.

    Args:
        a, b: the number in each launch of each version.
    """
    fewest = min(len(a), len(b))
    if fewest < LEAST:
        return Noise(None, None, fewest, f"{_launches(fewest)} with stamps, at least {LEAST} are needed")
    rng = np.random.default_rng(SEED)
    before, after = (np.median(side[rng.integers(0, len(side), (DRAWS, len(side)))], axis=-1) for side in (a, b))
    low, high = np.quantile(after - before, [(1 - INTERVAL) / 2, (1 + INTERVAL) / 2])
    return Noise(float(low), float(high), fewest)


def _launches(count: int) -> str:
    return "1 launch" if count == 1 else f"{count} launches"
