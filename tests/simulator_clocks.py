"""SMs that know the true time: counters with offsets and rates of their own, and a timer that moves in steps.

Each SM's counter is a piecewise straight function of the true time in ns. The timer shows the last of its steps, and
its steps come a little early or late. A CTA reads both side by side, first the timer and then the counter at its
start, the other way round at its end and in the middle. Nothing here knows how a line is fitted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from wsformat.alignment import anchors_of
from wsformat.bundle import Bundle
from wsformat.stamp_launch import StampLaunch
from wsformat.stamp_times import ANCHOR, META

Array = np.ndarray[Any, Any]
CAPTURE = "c" * 26
EPOCH = 1_790_000_000_000_000_000
"""True times are ns after this moment."""


@dataclass
class Device:
    """SMs and a timer.

    Attributes:
        step: of the timer, ns.
        jitter: how early or late its steps come, ns.
        distance: most cycles between the reads of two clocks.
        knots: true times at which rates change, ns, ascending, ``[knot]``.
        rate: ticks a ns of each SM before the first knot, between, and after the last, ``[sm, knot + 1]``.
        offset: tick of each SM at time 0.
    """

    rng: np.random.Generator
    step: int
    jitter: float
    distance: int
    knots: Array
    rate: Array
    offset: Array

    def tick(self, sm: Array, time: Array) -> Array:
        """What the counter of an SM shows."""
        total = np.zeros(len(time))
        edges = np.concatenate([[0.0], self.knots, [np.inf]])
        for k in range(len(edges) - 1):
            total += self.rate[sm, k] * np.clip(time - edges[k], 0, edges[k + 1] - edges[k])
        return self.offset[sm] + np.floor(total).astype(np.int64)

    def timer(self, time: Array) -> Array:
        """What the device's timer shows."""
        late = self.rng.uniform(-self.jitter, self.jitter, len(time))
        return EPOCH + (np.floor((time + late) / self.step) * self.step).astype(np.int64)

    def pair(self, sm: Array, time: Array, *, timer_first: bool) -> tuple[Array, Array, Array]:
        """Tick, timer and recorded distance of one side-by-side read that begins at this time."""
        distance = self.rng.integers(1, self.distance + 1, len(time))
        after = time + distance / self.rate[sm].max(axis=1)
        first, second = (
            (self.timer(time), self.tick(sm, after)) if timer_first else (self.tick(sm, time), self.timer(after))
        )
        return (second, first, distance + 1) if timer_first else (first, second, distance + 1)


def device(seed: int, sms: int, step: int = 32, jitter: float = 10.0, changes: int = 0, length: float = 1e5) -> Device:
    """SMs at 1.6 to 1.98 GHz whose counters lie up to 30 million cycles apart; rates change by up to 4 %."""
    rng = np.random.default_rng(seed)
    rate = rng.uniform(1.6, 1.98, (sms, 1)) * rng.uniform(0.96, 1.04, (sms, changes + 1)) ** (changes > 0)
    knots = np.sort(rng.uniform(0, length, changes))
    return Device(rng, step, min(jitter, step / 2), 4, knots, rate, 40_000_000_000 + rng.integers(0, 30_000_000, sms))


@dataclass
class Recording:
    """What the device recorded and when it truly happened: CTAs with start and end, moments with tick and time."""

    device: Device
    bundle: Bundle
    cta_sm: Array
    start: Array
    end: Array


def record(made: Device, sm: Array, start: Array, end: Array, middle: int = 0, recorded: bool = True) -> Recording:
    """CTAs with their records and `middle` more anchors each, as a bundle with clocks and anchors."""
    n = len(sm)
    meta = np.zeros(n, META)
    c0, g0, d0 = made.pair(sm, start, timer_first=True)
    c1, g1, d1 = made.pair(sm, end, timer_first=False)
    meta["c0"], meta["g0"], meta["c1"], meta["g1"], meta["sm"] = c0, g0, c1, g1, sm
    if recorded:
        meta["pad"] = d0 | d1 << 16
    more = np.zeros((n, middle), ANCHOR)
    for k in range(middle):
        time = start + (end - start) * (k + 1) / (middle + 1)
        c, g, d = made.pair(sm, time, timer_first=False)
        more["c"][:, k], more["g"][:, k], more["cta"][:, k], more["distance"][:, k] = c, g, np.arange(n), d
    launch = StampLaunch(None, meta, kind="clean", anchors=more if middle else None)
    sms = len(made.offset)
    rows, step = anchors_of([launch], [sm], sms, CAPTURE)
    clocks = [{"clock": k, "scope": "sm", "unit": "cycle", "sm": k, "step_ticks": 1} for k in range(sms)]
    clocks.append({"clock": sms, "scope": "device", "unit": "ns", "sm": -1, "step_ticks": step})
    lanes = [
        {"lane": k, "launch": 0, "cta": k, "warp": -1, "kind": "cta", "sm": int(sm[k]), "clock": int(sm[k])}
        | {"t_start": int(c0[k]), "t_end": int(c1[k]), "completeness": "complete"}
        for k in range(n)
    ]
    tables = {
        "captures": [{"kind": "clean", "kernel": "simulated", "sm_count": sms}],
        "launches": [{"launch": 0, "kind": "clean", "grid_x": n, "grid_y": 1, "grid_z": 1}],
        "clocks": clocks,
        "lanes": lanes,
    }
    tables = {name: [{"capture_id": CAPTURE, **row} for row in found] for name, found in tables.items()}
    return Recording(made, Bundle.from_tables({**tables, "clock_anchors": rows.to_pylist()}), sm, start, end)
