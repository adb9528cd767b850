"""The timeline as text, for a terminal over ssh: one line a lane, a character for what the lane mostly did.

Work is a full block, a stall is hatched as in every picture, time without stamps is a faint dot. The shares beside a
row are of the whole lane, not of the window, and the blocked part of a stall is named apart from the gross one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from wsformat.errors import BadRequest
from wsformat.viewers.timeline_axis import records

if TYPE_CHECKING:
    import duckdb

    Array = np.ndarray[Any, Any]

MARKS = {"active": "█", "stall": "╱", "untracked": "·", "": " "}
ASCII = {"active": "#", "stall": "/", "untracked": ".", "": " "}
COLUMNS_AN_ITERATION = 12
"""So many characters an iteration show which part of it is what."""
LEAST_COLUMNS = 24
TOP = 3


@dataclass(frozen=True)
class Line:
    """One lane: its name, what each column of the window mostly shows, and the shares of the whole lane."""

    name: str
    columns: tuple[str, ...]
    shares: dict[str, float]
    completeness: str


@dataclass(frozen=True)
class Panel:
    """Everything that is printed for one CTA.

    Attributes:
        title: capture, launch, CTA, completeness.
        start, end: the window in ticks since the CTA's first stamp; ``unit`` names the tick.
        lines: one a lane, in the order of the roles.
        waits: rows of the view wait_summary with the most blocked ticks.
        overlaps: rows of the view overlap between roles.
    """

    title: str
    start: int
    end: int
    unit: str
    lines: list[Line]
    waits: list[dict[str, Any]]
    overlaps: list[dict[str, Any]]

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "title": self.title,
            "start": self.start,
            "end": self.end,
            "unit": self.unit,
            "lanes": [
                {"name": n.name, "columns": list(n.columns), "completeness": n.completeness, **n.shares}
                for n in self.lines
            ],
            "waits": self.waits,
            "overlaps": self.overlaps,
        }


def coverage(t0: Array, t1: Array, edges: Array) -> Array:
    """Ticks that disjoint intervals, in order, cover between neighbouring edges."""
    if len(t0) == 0:
        return np.zeros(len(edges) - 1)
    done = np.concatenate([[0], np.cumsum(t1 - t0)])
    moments = np.stack([t0, t1], axis=1).ravel()
    covered = np.stack([done[:-1], done[1:]], axis=1).ravel()
    return np.diff(np.interp(edges, moments, covered))


def panel(
    connection: duckdb.DuckDBPyConnection,
    capture_id: str,
    *,
    launch: int | None = None,
    cta: int | None = None,
    columns: int = 60,
    whole: bool = False,
) -> Panel:
    """Read what a terminal shows of one CTA.

    Args:
        connection: with every table and view.
        capture_id: the capture.
        launch, cta: by default the first with stamps.
        columns: characters for a lane.
        whole: the whole CTA instead of some iterations from its middle.

    Raises:
        BadRequest: no such launch or CTA, or nothing stamped.
    """
    columns = max(columns, LEAST_COLUMNS)
    lanes = _lanes(connection, capture_id, launch, cta)
    first = min(lane["t_first"] for lane in lanes)
    last = max(lane["t_last"] for lane in lanes)
    start, end = (first, last) if whole else _window(connection, capture_id, lanes, first, last, columns)
    edges = np.linspace(0, max(end - start, 1), columns + 1)
    numbers = ", ".join(str(lane["lane"]) for lane in lanes)
    intervals = connection.execute(
        f"SELECT lane, state, t0 - {start} AS t0, t1 - {start} AS t1 FROM state_interval "
        f"WHERE capture_id = ? AND lane IN ({numbers}) ORDER BY lane, t0",
        [capture_id],
    ).fetchnumpy()
    blocked = {
        row["lane"]: row["blocked"]
        for row in records(
            connection,
            "SELECT lane, CAST(SUM(blocked_ticks) AS BIGINT) AS blocked FROM wait WHERE capture_id = ? GROUP BY lane",
            [capture_id],
        )
    }
    lines = [_line(lane, intervals, edges, blocked.get(lane["lane"], 0)) for lane in lanes]
    head = lanes[0]
    where = f"launch {head['launch']}" + (f", CTA {head['cta']}" if head["cta"] >= 0 else "")
    where += f", SM {head['sm']}" if head["sm"] >= 0 else ""
    return Panel(
        title=f"{where}; record {head['capture_completeness']}",
        start=start - first,
        end=end - first,
        unit=head["unit"],
        lines=lines,
        waits=_top_waits(connection, capture_id, head["launch"]),
        overlaps=_overlaps(connection, capture_id, head["launch"], head["cta"]),
    )


def _lanes(
    connection: duckdb.DuckDBPyConnection, capture_id: str, launch: int | None, cta: int | None
) -> list[dict[str, Any]]:
    found = records(
        connection,
        "SELECT s.lane, s.launch, s.cta, s.role, s.t_first, s.t_last, s.extent, s.stall, s.active, s.untracked, "
        "l.warp, l.sm, l.name, l.completeness, c.completeness AS capture_completeness, "
        "COALESCE(k.unit, 'tick') AS unit "
        "FROM role_state s JOIN lanes l ON l.capture_id = s.capture_id AND l.lane = s.lane "
        "JOIN captures c ON c.capture_id = s.capture_id "
        "LEFT JOIN clocks k ON k.capture_id = s.capture_id AND k.clock = l.clock "
        "LEFT JOIN roles r ON r.capture_id = s.capture_id AND r.role = s.role "
        "WHERE s.capture_id = ? AND s.points > 0 "
        "ORDER BY s.launch, s.cta, COALESCE(r.display_order, 0), l.warp, s.lane",
        [capture_id],
    )
    if not found:
        raise BadRequest(f"capture {capture_id}: nothing is stamped", "`wsformat info` lists what it holds.")
    for name, wanted in (("launch", launch), ("cta", cta)):
        there = [lane[name] for lane in found]
        chosen = wanted if wanted is not None else there[0]
        found = [lane for lane in found if lane[name] == chosen]
        if not found:
            raise BadRequest(f"no stamps of {name} {wanted}", f"There are: {', '.join(map(str, sorted(set(there))))}.")
    return found


def _window(
    connection: duckdb.DuckDBPyConnection,
    capture_id: str,
    lanes: list[dict[str, Any]],
    first: int,
    last: int,
    columns: int,
) -> tuple[int, int]:
    """Some iterations from the middle of the lane that has most of them; all when they are few."""
    numbers = ", ".join(str(lane["lane"]) for lane in lanes)
    found = records(
        connection,
        f"SELECT lane, t, ticks FROM iteration WHERE capture_id = ? AND lane IN ({numbers}) ORDER BY lane, iteration",
        [capture_id],
    )
    most: dict[int, list[dict[str, Any]]] = {}
    for row in found:
        most.setdefault(row["lane"], []).append(row)
    rows = max(most.values(), key=len, default=[])
    wanted = max(columns // COLUMNS_AN_ITERATION, 2)
    if len(rows) <= wanted:
        return first, last
    begin = (len(rows) - wanted) // 2
    end = rows[begin + wanted - 1]
    return int(rows[begin]["t"]), int(end["t"] + end["ticks"])


def _line(lane: dict[str, Any], intervals: dict[str, Any], edges: Array, blocked: int) -> Line:
    mine = intervals["lane"] == lane["lane"]
    states = ("stall", "active", "untracked")
    shares = []
    for state in states:
        chosen = mine & (np.asarray(intervals["state"]) == state)
        shares.append(coverage(intervals["t0"][chosen], intervals["t1"][chosen], edges))
    table = np.stack(shares)
    best = table.argmax(axis=0)
    columns = tuple(states[n] if table[n, i] > 0 else "" for i, n in enumerate(best.tolist()))
    extent = max(lane["extent"], 1)
    name = lane["role"] or lane["name"] or f"lane {lane['lane']}"
    return Line(
        name=f"{name} w{lane['warp']}" if lane["warp"] >= 0 else name,
        columns=columns,
        shares={
            "active_share": lane["active"] / extent,
            "stall_share": lane["stall"] / extent,
            "blocked_share": blocked / extent,
            "untracked_share": lane["untracked"] / extent,
        },
        completeness=lane["completeness"],
    )


def _top_waits(connection: duckdb.DuckDBPyConnection, capture_id: str, launch: int) -> list[dict[str, Any]]:
    return records(
        connection,
        "SELECT role, span, barrier, producer_role, producer_event, waits, ticks, blocked_ticks, satisfied_ticks, "
        "unjudged_ticks, median_ticks, max_ticks FROM wait_summary WHERE capture_id = ? AND launch = ? "
        f"ORDER BY blocked_ticks DESC, ticks DESC, role, span, producer_role LIMIT {TOP}",
        [capture_id, launch],
    )


def _overlaps(connection: duckdb.DuckDBPyConnection, capture_id: str, launch: int, cta: int) -> list[dict[str, Any]]:
    return records(
        connection,
        "SELECT set_a, set_b, both_ticks, a_ticks, b_ticks, union_ticks FROM overlap "
        "WHERE capture_id = ? AND launch = ? AND cta = ? AND set_kind = 'role' ORDER BY both_ticks DESC, set_a, set_b "
        f"LIMIT {TOP}",
        [capture_id, launch, cta],
    )


HEADINGS = ("active", "stall", "blocked", "not instr.")
SHARES = ("active_share", "stall_share", "blocked_share", "untracked_share")
SHARES_WIDTH = sum(len(head) + 2 for head in HEADINGS)
"""Characters that the shares take behind a bar."""


def text(made: Panel, *, ascii_only: bool = False) -> list[str]:
    """The lines to print; a lane's line takes its name, its columns and SHARES_WIDTH more."""
    marks = ASCII if ascii_only else MARKS
    width = max(len(line.name) for line in made.lines)
    unit = f"{made.unit}s" if made.unit != "ns" else "ns"
    count = len(made.lines[0].columns)
    rows = [
        f"{made.title}; {unit} {made.start:,} to {made.end:,} since the first stamp",
        f"{'':{width}}  {'':{count}}" + "".join(f"  {head}" for head in HEADINGS),
    ]
    for line in made.lines:
        bar = "".join(marks[state] for state in line.columns)
        shares = "".join(f"  {line.shares[name]:>{len(head)}.0%}" for name, head in zip(SHARES, HEADINGS, strict=True))
        rows.append(f"{line.name:{width}}  {bar}{shares}")
    rows.append(
        f"{marks['active']} active, {marks['stall']} stall (a wait stamped at both ends), "
        f"{marks['untracked']} not instrumented; shares are of the whole lane"
    )
    rows.append("")
    for wait in made.waits:
        by = f", released by {wait['producer_role']}.{wait['producer_event']}" if wait["producer_role"] else ""
        rows.append(
            f"{wait['role']} waits {wait['waits']:,} times on {wait['barrier'] or wait['span']}{by}: "
            f"{wait['ticks']:,} {unit}, {wait['blocked_ticks']:,} of them blocked; longest {wait['max_ticks']:,}"
        )
    for pair in made.overlaps:
        if pair["union_ticks"]:
            rows.append(
                f"{pair['set_a']} and {pair['set_b']} work together for {pair['both_ticks']:,} {unit}: "
                f"{_of(pair['both_ticks'], pair['a_ticks'])} of {pair['set_a']}, "
                f"{_of(pair['both_ticks'], pair['b_ticks'])} of {pair['set_b']}, "
                f"{_of(pair['both_ticks'], pair['union_ticks'])} of the union"
            )
    return rows


def _of(part: int, whole: int) -> str:
    return f"{part / whole:.0%}" if whole else "-"
