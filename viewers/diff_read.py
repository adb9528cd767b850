"""What a comparison reads of one version: speed by every method, states, waits, overlap and path, an iteration each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wsformat.bundle import Bundle
from wsformat.errors import BadRequest
from wsformat.viewers import report_capture
from wsformat.viewers.report_ask import Asker, literal
from wsformat.viewers.report_capture import Seen

KEPT = ("point", "span", "recorded_window", "state_interval", "role_state", "wait", "overlap")
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Speed:
    """How fast the loop is by one method.

    Attributes:
        method: slope, lifetime or start_to_start.
        kind: of the launches: clean, stamped.
        part: number of the stamped pass, of launches with several; -1 else.
        role: for start_to_start; '' else.
        grid_ctas, trips: only the same are compared.
        value: ticks an iteration; of a lifetime, ticks.
        groups: lifetimes of its launches by trip count.
    """

    method: str
    kind: str
    part: int
    role: str
    grid_ctas: int
    trips: tuple[int, ...]
    value: float
    groups: dict[int, Array]

    @property
    def key(self) -> tuple[Any, ...]:
        """What two versions must share to be compared: like with like."""
        return (self.method, self.kind, self.part, self.role, self.grid_ctas, self.trips)


@dataclass(frozen=True)
class Side:
    """One version.

    Attributes:
        name: what to call it.
        bundle: it.
        seen: what a report reads of it; None when it has no timeline.
        capture: its row of ``captures``.
        speeds: by every method.
        iterations: of the main loop in a lane of the launch that is looked at; 0 unknown.
        trip_count: as the launch says; -1 unknown.
        grid_ctas: CTAs of the grid; -1 unknown.
        asker: of everything.
        repeats: ticks an iteration of a lane in each launch with stamps that is like the one looked at: of a state by
            (role, state), of a wait by (role, span, barrier, blocked or satisfied or unjudged).
    """

    name: str
    bundle: Bundle
    seen: Seen | None
    capture: dict[str, Any]
    speeds: tuple[Speed, ...]
    iterations: int
    trip_count: int
    grid_ctas: int
    asker: Asker
    repeats: dict[tuple[str, ...], Array] = field(default_factory=dict)

    @property
    def unit(self) -> str:
        """Of the ticks, in plural; '' without a timeline."""
        return self.seen.unit if self.seen is not None else ""


def side(bundle: Bundle, name: str, prefix: str, capture: str = "", launch: int | None = None) -> Side:
    """Read one version.

    Args:
        bundle: it.
        name: what to call it in commands.
        prefix: of the ids of its queries.
        capture: id of the capture, of several.
        launch: whose timeline is compared; by default the first.

    Raises:
        BadRequest: nothing to compare, or several captures and none chosen.
    """
    with bundle.duckdb(materialise=KEPT) as connection:
        asker = Asker(bundle, connection, name, prefix=prefix)
        row, has_timeline = _capture(asker, capture)
        label = row["label"] or name.removesuffix(".wsformat")
        seen = report_capture.look(asker, row, label, launch) if has_timeline else None
        facts = _launch(asker, row["capture_id"], seen.launch if seen else -1)
        speeds = [*_by_launches(asker, row), *(_by_start(asker, seen, facts["grid_ctas"]) if seen else ())]
        iterations = _iterations(asker, seen, facts["trip_count"])
        return Side(
            label, bundle, seen, row, tuple(speeds), iterations, facts["trip_count"], facts["grid_ctas"], asker,
            _repeats(asker, seen, iterations) if seen and iterations else {},
        )  # fmt: skip


def _capture(asker: Asker, chosen: str) -> tuple[dict[str, Any], bool]:
    rows = asker.rows(
        """SELECT c.*, EXISTS (SELECT 1 FROM events e WHERE e.capture_id = c.capture_id)
                    OR EXISTS (SELECT 1 FROM spans s WHERE s.capture_id = c.capture_id) AS has_timeline,
                  EXISTS (SELECT 1 FROM launch_lifetime l WHERE l.capture_id = c.capture_id) AS has_lifetimes
           FROM captures c WHERE c.kind <> 'predicted' ORDER BY c.capture_id"""
    )
    if chosen:
        found = [row for row in rows if row["capture_id"] == chosen]
    else:
        found = [row for row in rows if row["has_timeline"]] or [row for row in rows if row["has_lifetimes"]]
    if len(found) == 1:
        return found[0], bool(found[0]["has_timeline"])
    if not found:
        raise BadRequest(f"{asker.name}: neither a timeline nor lifetimes of launches to compare")
    names = ", ".join(row["label"] or row["capture_id"] for row in found[:12])
    raise BadRequest(f"{asker.name}: holds {len(found)} captures, one is compared", f"Choose one of: {names}.")


def _launch(asker: Asker, here: str, launch: int) -> dict[str, int]:
    rows = asker.rows(
        f"""SELECT trip_count, CASE WHEN grid_x > 0 THEN CAST(GREATEST(grid_x, 1) AS BIGINT) * GREATEST(grid_y, 1)
                   * GREATEST(grid_z, 1) ELSE -1 END AS grid_ctas
            FROM launches WHERE capture_id = {literal(here)} AND launch = {launch}"""
    )
    return rows[0] if rows else {"trip_count": -1, "grid_ctas": -1}


def _iterations(asker: Asker, seen: Seen | None, trip_count: int) -> int:
    """Iterations that a lane of the launch recorded: the most of any lane."""
    if seen is None:
        return 0
    rows = asker.rows(
        f"""SELECT COUNT(DISTINCT iteration) AS n FROM events
            WHERE capture_id = {literal(seen.capture["capture_id"])} AND launch = {seen.launch} AND iteration >= 0
            GROUP BY lane ORDER BY n DESC LIMIT 1"""
    )
    recorded = int(rows[0]["n"]) if rows else 0
    return min(recorded, trip_count) if trip_count > 0 and recorded else recorded


def _by_launches(asker: Asker, capture: dict[str, Any]) -> Iterable[Speed]:
    """Slopes (view slope) and lifetimes of its own launches and of the clean ones of its experiment, with the launches
    that they were computed from."""
    own = f"""JOIN captures c ON c.capture_id = x.capture_id WHERE x.unit = 'cycle'
              AND (c.capture_id = {literal(capture["capture_id"])} OR x.kind = 'clean' AND c.experiment <> ''
                   AND c.experiment = {literal(capture["experiment"] or "")})"""
    groups: dict[tuple[Any, ...], dict[int, list[float]]] = {}
    for row in asker.rows(
        f"SELECT x.* FROM launch_lifetime x {own} AND x.trip_count > 0 ORDER BY x.capture_id, x.launch"
    ):
        groups.setdefault(_alike(row), {}).setdefault(row["trip_count"], []).append(row["ticks"])
    for row in asker.rows(f"SELECT x.* FROM slope x {own} AND x.slope_ticks IS NOT NULL ORDER BY ALL"):
        trips = (row["trips_low"], row["trips_high"])
        lifetimes = {n: np.array(groups.get(_alike(row), {}).get(n, []), np.float64) for n in trips}
        yield Speed("slope", row["kind"], row["pass"], "", row["grid_ctas"], trips, row["slope_ticks"], lifetimes)
    for alike, found in groups.items():
        for trips_, ticks in sorted(found.items()):
            lifetimes = {trips_: np.array(ticks, np.float64)}
            yield Speed("lifetime", alike[1], alike[2], "", alike[4], (trips_,), float(np.median(ticks)), lifetimes)


def _alike(row: dict[str, Any]) -> tuple[Any, ...]:
    return (row["capture_id"], row["kind"], row["pass"], row["slots"], row["grid_ctas"])


def _by_start(asker: Asker, seen: Seen, grid: int) -> Iterable[Speed]:
    """Start to start of every role in the launch that is looked at, with the means of all launches like it."""
    means: dict[str, list[float]] = {}
    for row in asker.rows(f"SELECT role, mean_ticks FROM iteration_summary WHERE {_like(seen)} ORDER BY role, launch"):
        means.setdefault(row["role"], []).append(row["mean_ticks"])
    for row in seen.iterations.rows:
        groups = {0: np.array(means.get(row["role"], []), np.float64)}
        yield Speed("start_to_start", "stamped", -1, row["role"], grid, (), row["mean_ticks"], groups)


def _like(seen: Seen) -> str:
    """Rows of launches that have the kind, pass, trip count, slots and grid of the one that is looked at."""
    here = literal(seen.capture["capture_id"])
    same = " AND ".join(
        f"o.{name} = k.{name}" for name in ("kind", "pass", "trip_count", "slots", "grid_x", "grid_y", "grid_z")
    )
    return (
        f"capture_id = {here} AND launch IN (SELECT o.launch FROM launches o JOIN launches k ON {same} "
        f"WHERE o.capture_id = {here} AND k.capture_id = {here} AND k.launch = {seen.launch})"
    )


def _repeats(asker: Asker, seen: Seen, iterations: int) -> dict[tuple[str, ...], Array]:
    """See :class:`Side`."""
    found: dict[tuple[str, ...], dict[int, float]] = {}
    lanes: dict[tuple[int, str], int] = {}
    states = ("active", "untracked", "stall", "blocked", "satisfied", "unjudged")
    for row in asker.rows(f"SELECT * FROM role_summary WHERE {_like(seen)} AND lanes_recorded > 0"):
        lanes[row["launch"], row["role"]] = row["lanes"]
        for state in states:
            found.setdefault((row["role"], state), {})[row["launch"]] = row[state] / (row["lanes"] * iterations)
    for row in asker.rows(f"SELECT * FROM wait_summary WHERE {_like(seen)}"):
        key = (row["launch"], row["role"])
        for what in ("blocked", "satisfied", "unjudged"):
            each = found.setdefault((row["role"], row["span"], row["barrier"], what), {})
            each[row["launch"]] = each.get(row["launch"], 0.0) + row[f"{what}_ticks"] / (lanes.get(key, 1) * iterations)
    launches = {launch for launch, _ in lanes}
    # A wait that a launch does not have was not blocked in it.
    return {key: np.array([values.get(n, 0.0) for n in sorted(launches)]) for key, values in found.items()}
