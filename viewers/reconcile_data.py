"""What a reconciliation reads from a bundle: everything that was measured of the prediction's experiment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wsformat.bundle import Bundle
from wsformat.errors import BadRequest
from wsformat.metrics import Resolved, counters
from wsformat.viewers.reconcile_plan import Ask, Plan, asker

ALIKE = 0.03
"""Difference of start to start from the slope of like launches, beyond which they are not alike."""
COUNTED = {"tensor": "tensor_busy", "mufu": "xu_busy", "exp": "xu_busy", "fma": "fma_busy", "issue": "issue_active"}
COUNTED |= {"dram": "dram_busy", "l2": "l2_busy"}
"""Quantity of ``schema/ncu_metrics.json`` that says how busy a resource was. (Not smem: its counters see what loads and
stores do, not the operands that wgmma and tcgen05 read.)"""


@dataclass(frozen=True)
class Speed:
    """Cycles an iteration (of the budget's unit) by one method, with where it was read."""

    cycles: float
    method: str
    evidence: Mapping[str, Any]


@dataclass(frozen=True)
class Measured:
    """What was measured.

    Attributes:
        capture: its row of ``captures``.
        launch, cta: whose timeline is looked at; -1 there is none.
        clean, stamped: speed by slope, without and with stamps; None unknown.
        loop: start to start on the timeline, per role.
        perturbation: share by which the stamps slowed the kernel; None unknown.
        perturbation_row: of the view, with its method.
        groups: per kind and trip count: launches, least, median, greatest lifetime.
        roles: rows of ``role_summary`` of that launch, by role.
        waits: rows of ``wait_summary``, with the mechanism and lag of the binding edge.
        overlap: share of the union in which two roles are active together.
        busy: share of the loop's time in which a span of the resource was open (an upper bound of its work).
        counted: share of busy cycles by hardware counters, with the metric's name.
        dependencies: declared edges.
        spans: resource and more by (role, span).
        scale: cycles a tick of the stamps, 0 unknown; unit: of the stamps.
        orphans: points that made no span.
        pacing: roles that drive the predicted bottleneck.
        counted_on: what the counters were read on, when it is another launch size than the timeline's; else ''.
    """

    capture: Mapping[str, Any]
    launch: int
    cta: int
    clean: Speed | None
    stamped: Speed | None
    loop: Mapping[str, Speed]
    perturbation: float | None
    perturbation_row: Mapping[str, Any]
    groups: list[dict[str, Any]]
    roles: Mapping[str, Mapping[str, Any]]
    waits: list[dict[str, Any]]
    overlap: Mapping[tuple[str, str], float]
    busy: Mapping[str, float]
    counted: Mapping[str, tuple[float, str]]
    dependencies: list[dict[str, Any]]
    spans: Mapping[tuple[str, str], Mapping[str, Any]]
    scale: float
    unit: str
    orphans: int
    pacing: tuple[str, ...] = ()
    counted_on: str = ""

    @property
    def timeline(self) -> Speed | None:
        """Start to start of the roles that drive the bottleneck, else of any: one loop, but for the ends."""
        own = [speed for role, speed in self.loop.items() if role in self.pacing] or list(self.loop.values())
        return max(own, key=lambda speed: speed.cycles, default=None)

    @property
    def with_stamps(self) -> Speed | None:
        """The loop with stamps: their slope, or this launch's own loop when the stamped launches are not like it."""
        own, slope = self.timeline, self.stamped
        if own and slope and abs(own.cycles / slope.cycles - 1) > ALIKE:
            return own
        return slope or own

    @property
    def best(self) -> Speed | None:
        """The speed to judge the kernel by: clean if there is one."""
        return self.clean or self.stamped or self.timeline


def capture_of(ask: Ask, plan: Plan, chosen: str = "") -> dict[str, Any]:
    """The measured capture of the prediction's experiment; of several kinds the one with a timeline, else
    counters, else lifetimes of whole launches.

    Raises:
        BadRequest: none, or several and none chosen.
    """
    experiment = plan.facts["experiment"]
    rows = ask(
        """SELECT c.*, EXISTS (SELECT 1 FROM events e WHERE e.capture_id = c.capture_id)
                    OR EXISTS (SELECT 1 FROM spans s WHERE s.capture_id = c.capture_id) AS has_timeline,
                  EXISTS (SELECT 1 FROM metrics m WHERE m.capture_id = c.capture_id
                    AND m.tool <> 'benchmark') AS has_counters,
                  EXISTS (SELECT 1 FROM slope s WHERE s.capture_id = c.capture_id) AS has_lifetimes
           FROM captures c WHERE c.kind <> 'predicted'
             AND (c.capture_id = ? OR (c.experiment = ? AND ? <> '')) ORDER BY c.capture_id""",
        [plan.capture_id, experiment, experiment],
    )
    if chosen:
        found = [r for r in rows if r["label"] == chosen] or [r for r in rows if r["capture_id"].startswith(chosen)]
    else:
        found = [r for r in rows if r["has_timeline"]] or [r for r in rows if r["has_counters"]]
        found = found or [r for r in rows if r["has_lifetimes"]]
    if len(found) == 1:
        return found[0]
    if not found:
        raise BadRequest(
            f"nothing measured{f' called {chosen!r}' if chosen else ''} in the experiment of prediction {plan.label}",
            "Put both into one bundle and experiment: `wsformat predict BUDGET --into X.wsformat`.",
        )
    names = ", ".join(r["label"] or r["capture_id"] for r in found)
    raise BadRequest(f"{len(found)} captures in the experiment of {plan.label}", f"Choose with --capture: {names}.")


def measured_of(bundle: Bundle, connection: Any, plan: Plan, chosen: str = "") -> Measured:
    """Collect everything about the measured capture. Raises as :func:`capture_of`."""
    ask = asker(connection)
    capture = capture_of(ask, plan, chosen)
    here = capture["capture_id"]
    units = [
        r["unit"]
        for r in ask(
            "SELECT DISTINCT c.unit FROM lanes l JOIN clocks c ON c.capture_id = l.capture_id AND c.clock = l.clock "
            "WHERE l.capture_id = ? AND l.kind <> 'cta' AND l.role <> ''",
            [here],
        )
    ]
    unit = units[0] if len(units) == 1 else "/".join(sorted(units))
    scale = 1.0 if unit == "cycle" else plan.clock_mhz / 1000 if unit == "ns" else 0.0
    launch, cta = _place(ask, here)
    slopes = _slopes(ask, capture, launch)
    perturbed = _perturbation(ask, here, launch)
    return Measured(
        capture=capture,
        launch=launch,
        cta=cta,
        clean=slopes.get("clean"),
        stamped=slopes.get("stamped"),
        loop=_loop(ask, here, launch, plan, scale),
        perturbation=perturbed.get("perturbation"),
        perturbation_row=perturbed,
        groups=_groups(ask, capture),
        roles={
            r["role"]: r for r in ask("SELECT * FROM role_summary WHERE capture_id = ? AND launch = ?", [here, launch])
        },
        waits=ask("SELECT * FROM wait_summary WHERE capture_id = ? AND launch = ?", [here, launch]),
        overlap=_overlap(ask, here, launch),
        busy=_busy(ask, here, launch, cta),
        counted=_counted(bundle, ask, capture, plan),
        counted_on=_other_grid(ask, capture, launch),
        dependencies=ask("SELECT * FROM dependencies WHERE capture_id = ?", [here]),
        spans={(r["role"], r["span"]): r for r in ask("SELECT * FROM span_types WHERE capture_id = ?", [here])},
        scale=scale,
        unit=unit,
        pacing=tuple(plan.pacing),
        orphans=ask("SELECT COUNT(*) AS n FROM orphan WHERE capture_id = ? AND launch = ?", [here, launch])[0]["n"],
    )


def _place(ask: Ask, here: str) -> tuple[int, int]:
    """The launch and CTA to look at: the CTA whose lanes last the median time, of the first launch with a timeline."""
    rows = ask(
        """SELECT launch, cta, MAX(t_last) - MIN(t_first) AS ticks FROM role_state
           WHERE capture_id = ? AND points > 0 AND cta >= 0 AND launch >= 0 AND role <> ''
           GROUP BY launch, cta ORDER BY launch, ticks, cta""",
        [here],
    )
    first = [r for r in rows if r["launch"] == rows[0]["launch"]]
    if not first:
        return -1, -1
    chosen = first[(len(first) - 1) // 2]
    return chosen["launch"], chosen["cta"]


def _slopes(ask: Ask, capture: Mapping[str, Any], launch: int) -> dict[str, Speed]:
    """Slope of the stamped launches like this one, and of the clean launches of the experiment on the same grid."""
    own = ask("SELECT * FROM launches WHERE capture_id = ? AND launch = ?", [capture["capture_id"], launch])
    rows = ask(
        """SELECT s.* FROM slope s JOIN captures c ON c.capture_id = s.capture_id
           WHERE s.unit = 'cycle' AND c.device = ? AND s.slope_ticks IS NOT NULL
             AND (s.capture_id = ? OR (c.experiment = ? AND ? <> '')) ORDER BY s.capture_id""",
        [capture["device"], capture["capture_id"], capture["experiment"], capture["experiment"]],
    )
    grid = {
        r["grid_ctas"]
        for r in ask(
            "SELECT * FROM launch_lifetime WHERE capture_id = ? AND launch = ?", [capture["capture_id"], launch]
        )
    }
    found: dict[str, Speed] = {}
    for row in rows:
        kind = "clean" if row["kind"] == "clean" else "stamped"
        if grid and row["grid_ctas"] not in grid:
            continue
        if kind == "stamped" and (
            row["capture_id"] != capture["capture_id"] or (own and row["pass"] != own[0]["pass"])
        ):
            continue
        named = ("capture_id", "kind", "pass", "slots", "grid_ctas", "trips_low", "trips_high")
        where = {n: row[n] for n in named}
        evidence = {"view": "slope", "row": where, "value": row["slope_ticks"], "fixed_ticks": row["fixed_ticks"]}
        found.setdefault(kind, Speed(row["slope_ticks"], "slope", evidence))
    return found


def _perturbation(ask: Ask, here: str, launch: int) -> dict[str, Any]:
    rows = ask(
        """SELECT p.* FROM perturbation p JOIN launches l ON l.capture_id = p.capture_id AND l.launch = ?
             AND l.pass = p.pass AND (p.trips_high = l.trip_count OR p.method = 'slope')
           WHERE p.capture_id = ? AND p.preference = 1 ORDER BY p.grid_ctas LIMIT 1""",
        [launch, here],
    )
    return rows[0] if rows else {}


def _groups(ask: Ask, capture: Mapping[str, Any]) -> list[dict[str, Any]]:
    return ask(
        """SELECT l.kind, l.pass, l.trip_count, l.grid_ctas, COUNT(*) AS launches, MIN(l.ticks) AS least,
                  MEDIAN(l.ticks) AS middle, MAX(l.ticks) AS most,
                  QUANTILE_CONT(l.ticks, 0.25) AS q1, QUANTILE_CONT(l.ticks, 0.75) AS q3
           FROM launch_lifetime l JOIN captures c ON c.capture_id = l.capture_id
           WHERE (l.capture_id = ? OR (c.experiment = ? AND ? <> '' AND c.device = ?)) AND l.unit = 'cycle'
           GROUP BY ALL ORDER BY ALL""",
        [capture["capture_id"], capture["experiment"], capture["experiment"], capture["device"]],
    )


def _loop(ask: Ask, here: str, launch: int, plan: Plan, scale: float) -> dict[str, Speed]:
    rows = ask(
        "SELECT * FROM iteration_summary WHERE capture_id = ? AND launch = ? AND method = 'start_to_start'",
        [here, launch],
    )
    return {
        r["role"]: Speed(
            r["mean_ticks"] * scale * plan.steps.get(r["role"], 1.0),
            "start_to_start",
            {"view": "iteration_summary", "row": {"capture_id": here, "launch": launch, "role": r["role"]}}
            | {"value": r["mean_ticks"]},
        )
        for r in rows
        if r["mean_ticks"] is not None and scale > 0
    }


def _overlap(ask: Ask, here: str, launch: int) -> dict[tuple[str, str], float]:
    rows = ask(
        """SELECT set_a, set_b, SUM(both_ticks) AS both, SUM(union_ticks) AS whole FROM overlap
           WHERE capture_id = ? AND launch = ? AND set_kind = 'role' GROUP BY set_a, set_b""",
        [here, launch],
    )
    return {(r["set_a"], r["set_b"]): float(r["both"]) / float(r["whole"]) for r in rows if r["whole"]}


def _busy(ask: Ask, here: str, launch: int, cta: int) -> dict[str, float]:
    """Share of the CTA's window in which any span of the resource is open: union over roles, by one running sum."""
    rows = ask(
        """WITH edge AS (
             SELECT set_name, t0 AS t, 1 AS step FROM active_set
             WHERE capture_id = ? AND launch = ? AND cta = ? AND set_kind = 'resource'
             UNION ALL
             SELECT set_name, t1, -1 FROM active_set
             WHERE capture_id = ? AND launch = ? AND cta = ? AND set_kind = 'resource'
           ), run AS (
             SELECT set_name, LEAD(t) OVER (PARTITION BY set_name ORDER BY t) - t AS ticks,
                    SUM(step) OVER (PARTITION BY set_name ORDER BY t ROWS UNBOUNDED PRECEDING) AS open_spans FROM edge
           ), whole AS (
             SELECT MAX(t_last) - MIN(t_first) AS ticks FROM role_state
             WHERE capture_id = ? AND launch = ? AND cta = ? AND points > 0
           )
           SELECT set_name, SUM(run.ticks) AS busy, MAX(whole.ticks) AS whole FROM run, whole
           WHERE open_spans > 0 GROUP BY set_name""",
        [here, launch, cta] * 3,
    )
    return {r["set_name"]: float(r["busy"]) / float(r["whole"]) for r in rows if r["whole"]}


def _counted(bundle: Bundle, ask: Ask, capture: Mapping[str, Any], plan: Plan) -> dict[str, tuple[float, str]]:
    """Busy shares by hardware counters, of the launch of the experiment with the median duration."""
    rows = ask(
        """SELECT DISTINCT m.capture_id, m.launch, l.duration_ns FROM metrics m
           JOIN captures c ON c.capture_id = m.capture_id
           LEFT JOIN launches l ON l.capture_id = m.capture_id AND l.launch = m.launch
           WHERE m.scope = 'kernel' AND m.tool <> 'benchmark' AND (m.capture_id = ? OR (c.experiment = ? AND ? <> ''))
           ORDER BY l.duration_ns, m.capture_id, m.launch""",
        [capture["capture_id"], capture["experiment"], capture["experiment"]],
    )
    if not rows:
        return {}
    middle = rows[(len(rows) - 1) // 2]
    counted = counters(bundle, middle["launch"], capture=middle["capture_id"])
    found = {}
    for resource in plan.totals:
        quantity = COUNTED.get(resource)
        resolved = counted.resolve(quantity) if quantity else None
        if isinstance(resolved, Resolved) and resolved.unit == "%":
            found[resource] = (resolved.value / 100, resolved.metric)
    return found


def _other_grid(ask: Ask, capture: Mapping[str, Any], launch: int) -> str:
    """What the counters' launches are, when their grid is another than the timeline's."""
    grid = "GREATEST(grid_x, 1) * GREATEST(grid_y, 1) * GREATEST(grid_z, 1)"
    own = ask(
        f"SELECT {grid} AS ctas FROM launches WHERE capture_id = ? AND launch = ? AND grid_x > 0",
        [capture["capture_id"], launch],
    )
    rows = ask(
        f"""SELECT DISTINCT {grid} AS ctas FROM launches l JOIN captures c ON c.capture_id = l.capture_id
            WHERE c.experiment = ? AND ? <> '' AND l.grid_x > 0 AND EXISTS (SELECT 1 FROM metrics m
              WHERE m.capture_id = l.capture_id AND m.launch = l.launch AND m.tool <> 'benchmark') ORDER BY ctas""",
        [capture["experiment"], capture["experiment"]],
    )
    other = [row["ctas"] for row in rows if own and row["ctas"] != own[0]["ctas"]]
    return f"{other[0]:,} CTAs, the timeline {own[0]['ctas']:,}" if other else ""
