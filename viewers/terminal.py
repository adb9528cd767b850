"""The timeline as text, for a terminal over ssh: one line a lane, a character for what the lane mostly did.

Work is a full block, a stall is hatched as in every picture, time without stamps is a faint dot. The shares beside a
row are of the whole lane, not of the window, and the blocked part of a stall is named apart from the gross one.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.cells import cell_len, set_cell_size

from wsformat.bundle import Bundle
from wsformat.derive import connect, run
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
NAMES = 14
"""Columns of a terminal that the name of a lane takes at most."""
TOP = 3
LARGE = 200_000
"""Stamps and spans from which what concerns one CTA is asked of that CTA's rows alone."""
OF_A_CTA = ("point", "span", "recorded_window", "state_interval", "role_state")
"""Views whose rows of a CTA are made of that CTA's stamps alone."""
ASKED = ("overlap", "iteration")


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
    near: duckdb.DuckDBPyConnection | None = None,
) -> Panel:
    """Read what a terminal shows of one CTA.

    Args:
        connection: with every table and view.
        capture_id: the capture.
        launch, cta: by default the first with stamps.
        columns: characters for a lane.
        whole: the whole CTA instead of some iterations from its middle.
        near: for a large capture, a connection over that CTA alone (:func:`one_cta`), for what concerns the CTA.

    Raises:
        BadRequest: no such launch or CTA, or nothing stamped.
    """
    columns = max(columns, LEAST_COLUMNS)
    chosen = place(connection, capture_id, launch, cta)
    near = connection if near is None else near
    lanes = _lanes(near, capture_id, *chosen)
    first = min(lane["t_first"] for lane in lanes)
    last = max(lane["t_last"] for lane in lanes)
    start, end = (first, last) if whole else _window(near, capture_id, lanes, first, last, columns)
    edges = np.linspace(0, max(end - start, 1), columns + 1)
    numbers = ", ".join(str(lane["lane"]) for lane in lanes)
    intervals = near.execute(
        f"SELECT lane, state, t0 - {start} AS t0, t1 - {start} AS t1 FROM state_interval "
        f"WHERE capture_id = ? AND lane IN ({numbers}) ORDER BY lane, t0",
        [capture_id],
    ).fetchnumpy()
    blocked = {
        row["lane"]: row["blocked"]
        for row in records(
            connection,
            "SELECT lane, CAST(SUM(blocked_ticks) AS BIGINT) AS blocked FROM wait "
            f"WHERE capture_id = ? AND lane IN ({numbers}) GROUP BY lane",
            [capture_id],
        )
    }
    lines = [_line(lane, intervals, edges, blocked.get(lane["lane"], 0)) for lane in lanes]
    head = lanes[0]
    where = f"launch {head['launch']}" + (f", CTA {head['cta']}" if head["cta"] >= 0 else "")
    where += f", SM {head['sm']}" if head["sm"] >= 0 else ""
    return Panel(
        title=f"{where}; record {head['capture_completeness'] or 'completeness unknown'}",
        start=start - first,
        end=end - first,
        unit=head["unit"],
        lines=lines,
        waits=_top_waits(connection, capture_id, head["launch"]),
        overlaps=_overlaps(near, capture_id, head["launch"], head["cta"]),
    )


def place(
    connection: duckdb.DuckDBPyConnection, capture_id: str, launch: int | None, cta: int | None
) -> tuple[int, int]:
    """The launch and CTA to show: as asked, by default the first with stamps.

    Raises:
        BadRequest: nothing stamped, or not that launch or CTA.
    """
    found = records(
        connection,
        "SELECT DISTINCT launch, cta FROM lanes WHERE capture_id = $1 AND lane IN "
        "(SELECT lane FROM events WHERE capture_id = $1 UNION SELECT lane FROM spans WHERE capture_id = $1) "
        "ORDER BY launch < 0, launch, cta < 0, cta",
        [capture_id],
    )
    if not found:
        raise BadRequest(f"capture {capture_id}: nothing is stamped", "`wsformat info` lists what it holds.")
    for name, wanted in (("launch", launch), ("cta", cta)):
        there = sorted({row[name] for row in found})
        chosen = wanted if wanted is not None else found[0][name]
        found = [row for row in found if row[name] == chosen]
        if not found:
            listed = ", ".join(map(str, there)) if len(there) <= 12 else f"{there[0]} to {there[-1]}"
            raise BadRequest(f"no stamps of {name} {wanted}", f"There are: {listed}.")
    return found[0]["launch"], found[0]["cta"]


def one_cta(
    bundle: Bundle, connection: duckdb.DuckDBPyConnection, capture_id: str, launch: int, cta: int
) -> duckdb.DuckDBPyConnection:
    """A connection over the rows of one CTA, with the views of :data:`OF_A_CTA` and :data:`ASKED`.

    States, iterations and overlap of a CTA are made of its own stamps, so they are the same as over all. Waits are
    not: release and floor belong to the whole capture.
    """
    at = "capture_id = ? AND launch = ? AND cta = ?"
    given = [capture_id, launch, cta]
    tables = {name: run(connection, f"SELECT * FROM {name} WHERE {at}", given) for name in ("lanes", "events", "spans")}
    rest = ("captures", "clocks", "roles", "event_types", "span_types", "dependencies", "launches")
    tables |= {name: run(connection, f"SELECT * FROM {name} WHERE capture_id = ?", given[:1]) for name in rest}
    return connect(Bundle.from_tables(tables), materialise=OF_A_CTA, only=ASKED)


def _lanes(connection: duckdb.DuckDBPyConnection, capture_id: str, launch: int, cta: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = records(
        connection,
        "SELECT s.lane, s.launch, s.cta, s.role, s.t_first, s.t_last, s.extent, s.stall, s.active, s.untracked, "
        "l.warp, l.sm, l.name, l.completeness, c.completeness AS capture_completeness, "
        "COALESCE(k.unit, 'tick') AS unit "
        "FROM role_state s JOIN lanes l ON l.capture_id = s.capture_id AND l.lane = s.lane "
        "JOIN captures c ON c.capture_id = s.capture_id "
        "LEFT JOIN clocks k ON k.capture_id = s.capture_id AND k.clock = l.clock "
        "LEFT JOIN roles r ON r.capture_id = s.capture_id AND r.role = s.role "
        "WHERE s.capture_id = ? AND s.launch = ? AND s.cta = ? AND s.points > 0 "
        "ORDER BY COALESCE(r.display_order, 0), l.warp, s.lane",
        [capture_id, launch, cta],
    )
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
    """As view wait_summary has it, which costs more: it ranks every wait for its medians."""
    found: list[dict[str, Any]] = records(
        connection,
        "SELECT role, span, barrier, producer_role, producer_event, COUNT(*) AS waits, "
        "CAST(SUM(ticks) AS BIGINT) AS ticks, CAST(SUM(blocked_ticks) AS BIGINT) AS blocked_ticks, "
        "CAST(SUM(satisfied_ticks) AS BIGINT) AS satisfied_ticks, "
        "CAST(SUM(unjudged_ticks) AS BIGINT) AS unjudged_ticks, "
        "QUANTILE_DISC(ticks, 0.5) AS median_ticks, MAX(ticks) AS max_ticks "
        "FROM wait WHERE capture_id = ? AND launch = ? "
        "GROUP BY role, span, barrier, producer_role, producer_event "
        f"ORDER BY blocked_ticks DESC, ticks DESC, role, span, barrier, producer_role, producer_event LIMIT {TOP}",
        [capture_id, launch],
    )
    return found


def _overlaps(connection: duckdb.DuckDBPyConnection, capture_id: str, launch: int, cta: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = records(
        connection,
        "SELECT set_a, set_b, both_ticks, a_ticks, b_ticks, union_ticks FROM overlap "
        "WHERE capture_id = ? AND launch = ? AND cta = ? AND set_kind = 'role' ORDER BY both_ticks DESC, set_a, set_b "
        f"LIMIT {TOP}",
        [capture_id, launch, cta],
    )
    return found


HEADINGS = ("active", "stall", "blocked", "not instr.")
SHARES = ("active_share", "stall_share", "blocked_share", "untracked_share")
SHARES_WIDTH = sum(len(head) + 2 for head in HEADINGS)
"""Characters that the shares take behind a bar."""


def text(made: Panel, *, ascii_only: bool = False, room: int = 0) -> list[str]:
    """The lines to print.

    Args:
        made: what to print.
        ascii_only: no character beyond ASCII of our own.
        room: columns of the terminal; a lane's line takes its name, its columns and SHARES_WIDTH more, and where that
            is too much its shares come below it. Sentences are wrapped. 0: nothing is wrapped.
    """
    marks = ASCII if ascii_only else MARKS
    width = min(NAMES, max(cell_len(line.name) for line in made.lines))
    unit = f"{made.unit}s" if made.unit != "ns" else "ns"
    count = len(made.lines[0].columns)
    narrow = 0 < room < width + 2 + count + SHARES_WIDTH
    rows = _wrapped(f"{made.title}; {unit} {made.start:,} to {made.end:,} since the first stamp", room)
    if not narrow:
        rows.append(f"{'':{width}}  {'':{count}}" + "".join(f"  {head}" for head in HEADINGS))
    for line in made.lines:
        bar = "".join(marks[state] for state in line.columns)
        name = _sized(line.name, width)
        if narrow:
            rows.append(f"{name}  {bar}")
            said = [f"{line.shares[key]:.0%} {head}" for key, head in zip(SHARES, HEADINGS, strict=True)]
            rows += _wrapped(", ".join(said), room, "  ")
        else:
            shares = "".join(
                f"  {line.shares[key]:>{len(head)}.0%}" for key, head in zip(SHARES, HEADINGS, strict=True)
            )
            rows.append(f"{name}  {bar}{shares}")
    rows += _wrapped(
        f"{marks['active']} active, {marks['stall']} stall (a wait stamped at both ends), "
        f"{marks['untracked']} not instrumented; shares are of the whole lane",
        room,
    )
    rows.append("")
    for wait in made.waits:
        by = f", released by {wait['producer_role']}.{wait['producer_event']}" if wait["producer_role"] else ""
        rows += _wrapped(
            f"{wait['role']} waits {wait['waits']:,} times on {wait['barrier'] or wait['span']}{by}: "
            f"{wait['ticks']:,} {unit}, {wait['blocked_ticks']:,} of them blocked; longest {wait['max_ticks']:,}",
            room,
        )
    for pair in made.overlaps:
        if pair["union_ticks"]:
            rows += _wrapped(
                f"{pair['set_a']} and {pair['set_b']} work together for {pair['both_ticks']:,} {unit}: "
                f"{_of(pair['both_ticks'], pair['a_ticks'])} of {pair['set_a']}, "
                f"{_of(pair['both_ticks'], pair['b_ticks'])} of {pair['set_b']}, "
                f"{_of(pair['both_ticks'], pair['union_ticks'])} of the union",
                room,
            )
    return rows


def _wrapped(sentence: str, room: int, indent: str = "") -> list[str]:
    """A sentence in lines that fit, later ones indented; one line without a width."""
    if room <= 0:
        return [indent + sentence]
    return textwrap.wrap(sentence, room, initial_indent=indent, subsequent_indent="  ") or [""]


def _sized(name: str, width: int) -> str:
    """A name in exactly that many columns: a wide character takes two; what is cut off ends in a tilde."""
    safe = "".join(c if c.isprintable() else "?" for c in name)
    return set_cell_size(safe, width) if cell_len(safe) <= width else set_cell_size(safe, width - 1) + "~"


def _of(part: int, whole: int) -> str:
    return f"{part / whole:.0%}" if whole else "-"
