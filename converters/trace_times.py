"""Ticks of lanes to times of a trace, many at once, by the same map as the view ``timeline_ns``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np

Array = np.ndarray[Any, Any]

# The map of a lane: that of its launch, else of the whole capture, else the clock itself when it ticks in ns.
LANE_MAPS = """
WITH own AS (
  SELECT DISTINCT capture_id, launch, clock FROM clock_segment
)
SELECT o.n, k.unit, COALESCE(k.step_ticks, -1) AS step_ticks,
       CASE WHEN m.clock IS NOT NULL THEN m.launch WHEN w.clock IS NOT NULL THEN -1 ELSE -2 END AS map_launch,
       DENSE_RANK() OVER (
         ORDER BY o.capture_id, CASE WHEN m.clock IS NOT NULL THEN m.launch ELSE -1 END, o.clock
       ) - 1 AS map
FROM drawn_lane o
LEFT JOIN clocks k ON k.capture_id = o.capture_id AND k.clock = o.clock
LEFT JOIN own m ON m.capture_id = o.capture_id AND m.clock = o.clock AND m.launch = o.launch AND m.launch >= 0
LEFT JOIN own w ON w.capture_id = o.capture_id AND w.clock = o.clock AND w.launch = -1
ORDER BY o.n
"""

PIECES = """
SELECT m.map, p.t_first, p.t_last, p.ns_first, p.ns_per_tick, p.error_ns, p.wander
FROM (
  SELECT x.map, MIN(o.capture_id) AS capture_id, MIN(x.map_launch) AS launch, MIN(o.clock) AS clock
  FROM lane_map x JOIN drawn_lane o ON o.n = x.n WHERE x.map_launch > -2 GROUP BY x.map
) m
JOIN clock_segment p ON p.capture_id = m.capture_id AND p.launch = m.launch AND p.clock = m.clock
ORDER BY m.map, p.t_first
"""


@dataclass(frozen=True)
class Axis:
    """Where the times of every lane lie.

    ``unit`` is 'ns' or 'tick'. ``start`` and ``pieces`` say per lane which entries of the columns below are its map,
    pieces one after the other; ``step`` is the lane's clock step in ticks, NaN unknown.
    """

    unit: str
    start: Array
    pieces: Array
    step: Array
    t_first: Array
    t_last: Array
    ns_first: Array
    rate: Array
    error: Array
    wander: Array

    def _piece(self, n: Array, t: Array) -> Array:
        piece = self.start[n]
        bent = np.flatnonzero(self.pieces[n] > 1)
        for start in np.unique(piece[bent]).tolist():
            # One search a map, of which a part has few, whatever it holds.
            mine = bent[piece[bent] == start]
            count = int(self.pieces[n[mine[0]]])
            nth = np.searchsorted(self.t_first[start : start + count], t[mine], side="right") - 1
            piece[mine] = start + np.maximum(nth, 0)
        return piece

    def place(self, n: Array, t: Array) -> Array:
        """Times (int64) of ticks ``t`` of lanes ``n``."""
        piece = self._piece(n, t)
        rate = self.rate[piece]
        beyond = t - self.t_first[piece]
        # A clock that ticks in ns stays in integers: its absolute times exceed what a float64 holds.
        scaled = np.floor(beyond * rate + 0.5).astype(np.int64)
        result: Array = self.ns_first[piece] + np.where(rate == 1, beyond, scaled)
        return result

    def bounds(self, n: Array, t0: Array, t1: Array) -> tuple[Array, Array]:
        """Bound of the error of both times in ns as long as rates are constant between anchors, and what may come on
        top where nothing shows that; NaN unknown."""
        if self.unit == "tick":
            none = np.full(len(n), np.nan)
            return none, none
        ends = [self._bound(self._piece(n, t), t, self.step[n]) for t in (t0, t1)]
        return np.maximum(ends[0][0], ends[1][0]), np.maximum(ends[0][1], ends[1][1])

    def _bound(self, piece: Array, t: Array, step: Array) -> tuple[Array, Array]:
        first, last = self.t_first[piece], self.t_last[piece]
        before, after = np.maximum(first - t, 0), np.maximum(t - last, 0)
        length = np.maximum(last - first, 1)
        error = self.error[piece]
        grown = np.where(last > first, 2 * error * (before + after) / length, 0.0)
        far = np.where(before + after > 0, before + after, np.minimum(t - first, last - t))
        wander = self.wander[piece]
        return error + grown + step * self.rate[piece], np.where(wander > 0, wander * far * self.rate[piece], 0.0)


def axis(connection: duckdb.DuckDBPyConnection, lanes: dict[str, Array]) -> Axis:
    """The axis of all lanes: ns where every lane has a map, else ticks from the first point of its CTA and clock.

    Args:
        connection: with ``drawn_lane``, numbered by ``n``.
        lanes: its integer columns, by ``n``.
    """
    connection.execute(f"CREATE OR REPLACE TEMP TABLE lane_map AS {LANE_MAPS}")
    found = connection.sql("SELECT * FROM lane_map ORDER BY n").to_arrow_table()
    map_launch, number = found.column("map_launch").to_numpy(), found.column("map").to_numpy().astype(np.int64)
    unit = np.array(found.column("unit").to_pylist(), dtype=object)
    step = found.column("step_ticks").to_numpy().astype(np.float64)
    step[step <= 0] = np.nan
    own = (map_launch == -2) & (unit == "ns")
    count = len(number)
    if ((map_launch > -2) | own).all():
        pieces = connection.sql(PIECES).to_arrow_table()
        of_map = pieces.column("map").to_numpy()
        start = np.searchsorted(of_map, number, side="left")
        size = np.searchsorted(of_map, number, side="right") - start
        # The last entry maps a clock in ns on itself.
        start[own], size[own] = len(of_map), 1
        first, last, ns = (_with(pieces, name, np.int64, 0) for name in ("t_first", "t_last", "ns_first"))
        rate, error = _with(pieces, "ns_per_tick", np.float64, 1.0), _with(pieces, "error_ns", np.float64, 0.0)
        wander = _with(pieces, "wander", np.float64, 0.0)
        return Axis("ns", start, size, step, first, last, ns, rate, error, wander)
    keys = np.stack([lanes[name] for name in ("nth", "launch", "cta", "clock")])
    groups, inverse = np.unique(keys, axis=1, return_inverse=True)
    size = groups.shape[1]
    first = np.full(size, np.iinfo(np.int64).max)
    np.minimum.at(first, inverse.reshape(-1), lanes["t"])
    nothing = np.full(size, np.nan)
    return Axis(
        "tick", inverse.reshape(-1), np.ones(count, dtype=np.int64), step, first, first, np.zeros(size, dtype=np.int64),
        np.ones(size), nothing, nothing,
    )  # fmt: skip


def _with(table: Any, name: str, kind: type, last: float) -> Array:
    return np.append(table.column(name).to_numpy().astype(kind), np.array([last], dtype=kind))
