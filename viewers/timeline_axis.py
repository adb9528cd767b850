"""The horizontal axis of a timeline: which clock it counts, from where, and what it is in ns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from wsformat.errors import BadRequest

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True)
class Row:
    """One lane as drawn, or a declared role that has no lane (lane -1).

    Attributes:
        lane, launch, cta, warp, sm, role, name, kind, clock, completeness: as in table ``lanes``.
        t_first, t_last: the recorded window in ticks, over which the states hold; None without stamps.
        rate, pieces, reference: ns a tick; the pieces of the map (first tick, ns there, ns a tick) in order of time,
            as in view ``clock_segment``; and the clock of the ns. rate is None when no anchor maps the clock, and the
            mean where the map has several pieces.
        error_ns: bound of that mapping between its anchors, None unknown.
        zero: tick that is 0 on the axis (``own`` axes), else unused.
        states: row of view ``role_state`` and the sums of view ``wait`` for this lane, in ticks.
    """

    lane: int
    launch: int
    cta: int
    warp: int
    sm: int
    role: str
    name: str
    kind: str
    clock: int
    completeness: str
    lost: int = -1
    t_first: int | None = None
    t_last: int | None = None
    rate: float | None = None
    pieces: tuple[tuple[int, int, float], ...] = ()
    reference: int = -2
    error_ns: float | None = None
    zero: int = 0
    states: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Group:
    """Rows under one heading: one CTA of one launch on one clock."""

    launch: int
    cta: int
    clock: int
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Axis:
    """The horizontal axis.

    Attributes:
        unit: cycle, ns or tick.
        kind: ``clock`` (one clock), ``mapped`` (several clocks put on one by anchors), ``own`` (every group on its
            own zero; moments of different groups are not comparable).
        base_ns: for ``mapped``, per launch the reference ns that are 0.
        ns_per_tick: for a second axis in ns; None when no anchor says so or the unit is ns already.
        error_ns: largest bound of the mapping, None unknown or no mapping.
    """

    unit: str
    kind: str
    base_ns: dict[int, int]
    ns_per_tick: float | None
    error_ns: float | None


def records(connection: duckdb.DuckDBPyConnection, query: str, parameters: Sequence[Any] = ()) -> list[dict[str, Any]]:
    """Rows of a query as dicts, for small results."""
    found: list[dict[str, Any]] = connection.sql(query, params=list(parameters)).to_arrow_table().to_pylist()
    return found


def shared_axis(
    connection: duckdb.DuckDBPyConnection, capture_id: str, groups: tuple[Group, ...], notes: list[str]
) -> tuple[tuple[Group, ...], Axis]:
    """The axis that all groups share, and the groups with each row's zero and its line to ns.

    Raises:
        BadRequest: clocks of different units without anchors.
    """
    units = {
        row["clock"]: row["unit"]
        for row in records(connection, "SELECT clock, unit FROM clocks WHERE capture_id = ?", [capture_id])
    }
    maps = records(
        connection,
        "SELECT * FROM clock_segment WHERE capture_id = ? ORDER BY launch, clock, segment",
        [capture_id],
    )
    lines: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for piece in maps:
        lines.setdefault((piece["launch"], piece["clock"]), []).append(piece)
    groups = tuple(replace(g, rows=tuple(_map(row, lines, units) for row in g.rows)) for g in groups)
    drawn = [group for group in groups if any(row.t_first is not None for row in group.rows)]
    rows = [row for group in drawn for row in group.rows if row.t_first is not None]
    kinds = {units.get(row.clock, "tick") for row in rows}
    launches = sorted({row.launch for row in rows})
    single = all(len({row.clock for row in rows if row.launch == launch}) == 1 for launch in launches)
    mapped = all(row.rate is not None for row in rows) and len({row.reference for row in rows}) == 1
    if not single and mapped:
        base = {
            launch: min(to_ns(r, r.t_first) for r in rows if r.launch == launch and r.t_first is not None)
            for launch in launches
        }
        errors = [row.error_ns for row in rows]
        known = [error for error in errors if error is not None]
        error = max(known) if known and len(known) == len(errors) else None
        used = {(row.launch, row.clock) for row in rows} | {(-1, row.clock) for row in rows}
        wander = max(
            (
                p["wander"] * (p["t_last"] - p["t_first"]) / 2 * p["ns_per_tick"]
                for key in used
                for p in lines.get(key, ())
            ),
            default=0.0,
        )
        if wander > 0:
            notes.append(
                f"Between the anchors moments of different CTAs may be off by up to {math.ceil(wander):,} ns more: "
                "anchors at the ends of a clock do not show that its rate was constant."
            )
        return groups, Axis("ns", "mapped", base, None, error)
    if len(kinds) > 1:
        raise BadRequest(
            f"the chosen lanes run on clocks of different units ({', '.join(sorted(kinds))}) and no anchors join them",
            "Choose one launch and CTA, or lanes of one clock.",
        )
    unit = kinds.pop()
    if not single and len(drawn) > 1:
        notes.append(
            "Clocks differ and no anchors join them: every CTA has its own zero; compare lengths, not moments."
        )
    zeros: dict[Any, int] = {}
    for group in drawn:
        for row in group.rows:
            if row.t_first is not None:
                key = _zero_key(group, single=single)
                zeros[key] = min(zeros.get(key, row.t_first), row.t_first)
    groups = tuple(
        replace(g, rows=tuple(replace(r, zero=zeros.get(_zero_key(g, single=single), 0)) for r in g.rows))
        for g in groups
    )
    rates = {row.rate for row in rows}
    straight = all(len(row.pieces) == 1 for row in rows)
    rate = rates.pop() if len(rates) == 1 and straight and unit != "ns" else None
    return groups, Axis(
        unit,
        "clock" if single and len(launches) == 1 else "own",
        {},
        rate,
        next((row.error_ns for row in rows), None) if rate is not None else None,
    )


def _zero_key(group: Group, *, single: bool) -> tuple[int, ...]:
    return (group.launch,) if single else (group.launch, group.cta, group.clock)


def _map(row: Row, lines: dict[tuple[int, int], list[dict[str, Any]]], units: dict[int, str]) -> Row:
    """The pieces that view timeline_ns uses: the map of the launch, that of the whole capture, the clock's own ns."""
    pieces = lines.get((row.launch, row.clock)) if row.launch >= 0 else None
    pieces = pieces or lines.get((-1, row.clock))
    if pieces:
        first, last = pieces[0], pieces[-1]
        ns = last["ns_first"] + (last["t_last"] - last["t_first"]) * last["ns_per_tick"] - first["ns_first"]
        errors = [piece["error_ns"] for piece in pieces]
        return replace(
            row,
            rate=first["ns_per_tick"] if len(pieces) == 1 else ns / (last["t_last"] - first["t_first"]),
            pieces=tuple((piece["t_first"], piece["ns_first"], piece["ns_per_tick"]) for piece in pieces),
            reference=first["reference_clock"],
            error_ns=None if None in errors else max(errors),
        )
    if units.get(row.clock) == "ns":
        return replace(row, rate=1.0, pieces=((0, 0, 1.0),), reference=row.clock)
    return row


def to_ns(row: Row, t: int) -> int:
    """A tick of a mapped row on the reference axis, as view timeline_ns rounds it."""
    if not row.pieces:
        raise BadRequest(f"clock {row.clock} has no anchors, so its ticks cannot be put in ns")
    first, ns, rate = next((piece for piece in reversed(row.pieces) if piece[0] <= t), row.pieces[0])
    return ns + math.floor((t - first) * rate + 0.5)
