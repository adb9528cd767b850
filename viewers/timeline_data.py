"""What lies in the window of a timeline: spans, untracked time, markers and arrows, from the views of the standard."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from wsformat.errors import BadRequest
from wsformat.viewers.timeline_axis import records
from wsformat.viewers.timeline_select import Selection, in_list

if TYPE_CHECKING:
    import duckdb

MAX_MARKS = 4_000
"""Spans and markers drawn at most; a longer window is cut and the picture says so."""
MARKS_A_ROW = 300
"""The same for one row: on a page of usual width a mark is then some two pixels wide, which still shows its state."""
MAX_ARROWS = 40
"""Binding arrows that a picture can hold; of more, the FEW_ARROWS into the longest blocked waits are drawn."""
FEW_ARROWS = 24
MAX_OTHER_ARROWS = 120

ARROWS = ("binding", "all", "none")


@dataclass(frozen=True)
class Window:
    """The part of the axis that is shown, in axis units.

    Attributes:
        start, end: limits.
        first, last: limits of everything recorded on the chosen lanes.
        iterations: the half-open range asked for or chosen, None when the window was given otherwise.
    """

    start: int
    end: int
    first: int
    last: int
    iterations: tuple[int, int] | None


@dataclass(frozen=True)
class Content:
    """Rows of the picture's layers; x, x0, x1 in axis units, everything else in ticks of the lane's clock.

    Attributes:
        spans: every span that touches the window, of every state, with what view ``wait`` says about stalls.
        untracked: intervals of state untracked.
        markers: stamps that begin or end no span type; stamps of a span type that made no span have a ``reason``.
        arrows: signal to the end of a wait; ``kind`` is blocked, satisfied, late_exit (all binding), other or recorded.
    """

    window: Window
    spans: list[dict[str, Any]]
    untracked: list[dict[str, Any]]
    markers: list[dict[str, Any]]
    arrows: list[dict[str, Any]]
    notes: tuple[str, ...]


def read(
    connection: duckdb.DuckDBPyConnection,
    selection: Selection,
    *,
    start: int | None,
    end: int | None,
    iterations: tuple[int, int] | None,
    arrows: str,
) -> tuple[Selection, Content]:
    """Read what the picture shows; the selection comes back with the states of its rows.

    Raises:
        BadRequest: a window that is empty, contradictory or outside what was recorded.
    """
    if arrows not in ARROWS:
        raise BadRequest(f"arrows {arrows!r}: expected one of {', '.join(ARROWS)}")
    _prepare(connection, selection)
    notes: list[str] = []
    window = _window(connection, start, end, iterations, selection.axis.unit, notes)
    limits = [window.start, window.end]
    spans = records(
        connection, f"SELECT {_SPAN} FROM drawn_span s {_WAITED} WHERE s.x1 >= ? AND s.x0 <= ? {_ORDER}", limits
    )
    untracked = records(
        connection,
        "SELECT place, t0, t1, x0, x1 FROM drawn_untracked WHERE x1 > ? AND x0 < ? ORDER BY place, x0",
        limits,
    )
    markers = records(connection, f"{_MARKERS} WHERE x BETWEEN ? AND ? ORDER BY place, x, event", limits)
    drawn = [] if arrows == "none" else _arrows(connection, limits, notes, others=arrows == "all")
    selection = _with_error(connection, _with_states(connection, selection))
    return selection, Content(window, spans, untracked, markers, drawn, tuple(notes))


# An arrow between two zeros would compare moments that nothing makes comparable.
_ONE_ZERO = "(len(a.pieces) > 0 AND len(b.pieces) > 0 OR a.zero = b.zero)"


def _prepare(connection: duckdb.DuckDBPyConnection, selection: Selection) -> None:
    """Temporary tables of the chosen lanes: drawn_lane, drawn_span, drawn_point, drawn_untracked, drawn_wait."""
    capture = str(selection.capture["capture_id"])
    axis = selection.axis
    mapped = axis.kind == "mapped"
    lanes = []
    for place, row in enumerate(selection.rows):
        if row.t_first is None:
            continue
        base = axis.base_ns[row.launch] if mapped else 0
        pieces = [{"t": t, "x": ns - base, "rate": rate} for t, ns, rate in row.pieces] if mapped else []
        lanes.append((row.lane, place, row.zero, pieces, row.t_last))
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE drawn_lane (lane INTEGER, place INTEGER, zero BIGINT, "
        "pieces STRUCT(t BIGINT, x BIGINT, rate DOUBLE)[], t_last BIGINT)"
    )
    connection.executemany("INSERT INTO drawn_lane VALUES (?, ?, ?, ?, ?)", lanes)
    # The last piece that begins at or before t; before the first one, that one.
    connection.execute(
        "CREATE OR REPLACE TEMP MACRO on_piece(t, p) AS "
        "p.x + CAST(FLOOR(CAST(t - p.t AS DOUBLE) * p.rate + 0.5) AS BIGINT)"
    )
    connection.execute(
        "CREATE OR REPLACE TEMP MACRO axis_x(t, zero, pieces) AS CASE WHEN len(pieces) = 0 THEN t - zero "
        "WHEN len(pieces) = 1 THEN on_piece(t, pieces[1]) "
        "ELSE on_piece(t, pieces[greatest(1, len(list_filter(pieces, lambda p: p.t <= t)))]) END"
    )
    chosen = f"capture_id = $capture AND lane IN ({in_list(selection.lanes)})"
    x = "axis_x({}, d.zero, d.pieces)"
    for name, sql in {
        "drawn_span": f"""
            SELECT s.*, d.place, {x.format("s.t0")} AS x0, {x.format("s.t1")} AS x1,
                   {x.format("d.t_last")} AS x_cut, s.lane = s.end_lane AS own,
                   COALESCE(t.contains_wait, FALSE) AS contains_wait, COALESCE(t.loop, '') AS loop
            FROM (SELECT * FROM span WHERE {chosen}) s JOIN drawn_lane d ON d.lane = s.lane
            LEFT JOIN span_types t ON t.capture_id = s.capture_id AND t.role = s.role AND t.span = s.span""",
        "drawn_point": f"""
            SELECT p.*, d.place, {x.format("p.t")} AS x, l.launch, l.cta, l.clock
            FROM (SELECT * FROM point WHERE {chosen}) p JOIN drawn_lane d ON d.lane = p.lane
            JOIN lanes l ON l.capture_id = p.capture_id AND l.lane = p.lane""",
        "drawn_untracked": f"""
            SELECT s.t0, s.t1, d.place, {x.format("s.t0")} AS x0, {x.format("s.t1")} AS x1
            FROM (SELECT * FROM state_interval WHERE {chosen} AND state = 'untracked') s
            JOIN drawn_lane d ON d.lane = s.lane""",
        "drawn_wait": f"""
            SELECT w.*, d.place, {x.format("w.t1")} AS x1
            FROM (SELECT * FROM wait WHERE {chosen}) w JOIN drawn_lane d ON d.lane = w.lane""",
        "drawn_orphan": f"""
            SELECT lane, span, iteration, t_begin AS t, reason FROM orphan WHERE {chosen} AND t_begin IS NOT NULL
            UNION SELECT lane, span, iteration, t_end AS t, reason FROM orphan WHERE {chosen} AND t_end IS NOT NULL""",
    }.items():
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {sql}", {"capture": capture})


_SPAN = """s.place, s.role, s.span, s.state, s.barrier, s.iteration, s.t0, s.t1, s.x0, s.x1, s.x_cut, s.complete, s.own,
    s.contains_wait, s.loop, w.verdict, w.blocked_ticks, w.satisfied_ticks, w.unjudged_ticks, w.producer_role,
    w.producer_event, w.producer_iteration, w.late, w.slack"""
_WAITED = """LEFT JOIN drawn_wait w ON s.state = 'stall' AND s.complete AND w.lane = s.lane AND w.span = s.span
    AND w.iteration = s.iteration AND w.span_id = s.span_id"""
_ORDER = "ORDER BY s.place, s.x0, s.x1 DESC, s.span"
_MARKERS = """
    SELECT p.place, p.role, p.event, p.iteration, p.t, p.x, o.span, o.reason FROM drawn_point p
    LEFT JOIN (SELECT lane, iteration, t, MIN(span) AS span, MIN(reason) AS reason FROM drawn_orphan GROUP BY ALL) o
      ON o.lane = p.lane AND o.iteration = p.iteration AND o.t = p.t AND EXISTS (
        SELECT 1 FROM span_types b WHERE b.capture_id = p.capture_id AND b.role = p.role AND b.span = o.span
        AND p.event IN (b.begin_event, b.end_event))
    LEFT JOIN (SELECT DISTINCT capture_id, role, unnest([begin_event, end_event, span || '.begin', span || '.end'])
      AS event FROM span_types) e ON e.capture_id = p.capture_id AND e.role = p.role AND e.event = p.event
    LEFT JOIN (SELECT DISTINCT lane, span || '.begin' AS event FROM drawn_span WHERE span_id >= 0
      UNION SELECT DISTINCT end_lane, span || '.end' FROM drawn_span WHERE span_id >= 0) k
      ON k.lane = p.lane AND k.event = p.event"""
_MARKERS = f"SELECT * FROM ({_MARKERS} WHERE (e.event IS NULL AND k.event IS NULL) OR o.reason IS NOT NULL)"


def _window(
    connection: duckdb.DuckDBPyConnection,
    start: int | None,
    end: int | None,
    iterations: tuple[int, int] | None,
    unit: str,
    notes: list[str],
) -> Window:
    (extent,) = records(connection, "SELECT MIN(x) AS first, MAX(x) AS last FROM drawn_point")
    first, last = int(extent["first"]), int(extent["last"])
    said = f"The chosen lanes were recorded from {first:,} to {last:,} {_plural(unit)}."
    if iterations is not None and (start is not None or end is not None):
        raise BadRequest("a window by iterations and one by time at once", "Give one of the two.")
    if iterations is not None:
        found = _iteration_extent(connection, *iterations)
        if found is None:
            (loop,) = records(connection, f"SELECT MIN(iteration) AS a, MAX(iteration) AS b FROM ({_LOOP_POINT})")
            there = "none" if loop["a"] is None else f"{loop['a']}:{loop['b'] + 1}"
            raise BadRequest(f"no stamps of iterations {iterations[0]}:{iterations[1]}", f"Iterations here: {there}.")
        window = Window(*found, first, last, iterations)
    else:
        low = first if start is None else int(start)
        high = last if end is None else int(end)
        if high <= low and (start is not None or end is not None):
            raise BadRequest(f"the window from {low:,} to {high:,} is empty", said)
        if high < first or low > last:
            raise BadRequest(f"nothing was recorded from {low:,} to {high:,}", said)
        window = Window(low, high, first, last, None)
    window = _shortened(connection, window, unit, notes)
    if window.end <= window.start:
        window = replace(window, end=window.start + 1)
    return window


_LOOP_POINT = """
    SELECT p.lane, p.iteration, p.x FROM drawn_point p
    LEFT JOIN event_types e ON e.capture_id = p.capture_id AND e.role = p.role AND e.event = p.event
    LEFT JOIN span_types s ON s.capture_id = p.capture_id AND s.role = p.role
      AND p.event IN (s.span || '.begin', s.span || '.end')
    WHERE p.iteration >= 0 AND COALESCE(e.loop, s.loop, '') <> 'once'"""


def _iteration_extent(connection: duckdb.DuckDBPyConnection, first: int, end: int) -> tuple[int, int] | None:
    (found,) = records(
        connection,
        f"SELECT MIN(x) AS a, MAX(x) AS b FROM ({_LOOP_POINT}) WHERE iteration >= ? AND iteration < ?",
        [first, end],
    )
    return None if found["a"] is None else (int(found["a"]), int(found["b"]))


_TIMES = f"SELECT x0 AS x, x1 FROM drawn_span UNION ALL SELECT x, x AS x1 FROM ({_MARKERS})"


def _shortened(connection: duckdb.DuckDBPyConnection, window: Window, unit: str, notes: list[str]) -> Window:
    """Cut a window that holds more marks than a picture can show: to whole iterations where there are any."""
    inside = f"SELECT x FROM ({_TIMES}) WHERE x1 >= {window.start} AND x <= {window.end}"
    (found,) = records(connection, f"SELECT COUNT(*) AS n FROM ({inside})")
    (rows,) = records(connection, "SELECT COUNT(*) AS n FROM drawn_lane")
    most = min(MAX_MARKS, MARKS_A_ROW * rows["n"])
    if found["n"] <= most:
        return window
    (cut,) = records(connection, f"{inside} ORDER BY x LIMIT 1 OFFSET {most}")
    end = max(int(cut["x"]), window.start + 1)
    (whole,) = records(
        connection,
        "SELECT MIN(iteration) AS a, MAX(iteration) AS b FROM (SELECT iteration, MIN(x) AS x0, MAX(x) AS x1 "
        f"FROM ({_LOOP_POINT}) GROUP BY iteration) WHERE x0 >= ? AND x1 <= ?",
        [window.start, end],
    )
    iterations = None
    if whole["b"] is not None and whole["b"] > whole["a"]:
        iterations = (int(whole["a"]), int(whole["b"]) + 1)
        found_extent = _iteration_extent(connection, *iterations)
        if found_extent is not None:
            end = min(end, found_extent[1])
    shown = f"iterations {iterations[0]}:{iterations[1]}" if iterations else f"{window.start:,} to {end:,}"
    notes.append(
        f"Cut to {shown}: the window to {window.end:,} {_plural(unit)} holds {found['n']:,} marks, "
        f"more than the {most:,} that a picture can show. Choose a window to see the rest."
    )
    return replace(window, end=end, iterations=iterations)


def _plural(unit: str) -> str:
    return "ns" if unit == "ns" else f"{unit}s"


# Judging waits is what takes long in a large bundle, so what `wait` names is not asked of `signal` again.
_BINDING = f"""
    SELECT w.place AS to_place, w.x1 AS to_x, w.t1 AS to_t, w.role, w.span, w.iteration, w.producer_role,
           w.producer_event, w.producer_iteration, a.place AS from_place,
           axis_x(w.signal_t, a.zero, a.pieces) AS from_x, w.signal_t AS from_t, w.verdict, w.blocked_ticks,
           w.slack, CASE WHEN w.verdict = 'other' THEN 'late_exit'
                         WHEN w.verdict IN ('producer_late', 'in_flight') THEN 'blocked' ELSE 'satisfied' END AS kind
    FROM drawn_wait w JOIN drawn_lane b ON b.lane = w.lane
    JOIN drawn_lane a ON a.lane = w.producer_lane AND {_ONE_ZERO}
    WHERE w.signal_t IS NOT NULL"""
_OTHER = f"""
    SELECT b.place AS to_place, axis_x(g.t1, b.zero, b.pieces) AS to_x, g.t1 AS to_t, g.consumer_role AS role,
           g.span, g.consumer_iteration AS iteration, g.producer_role, g.producer_event, g.producer_iteration,
           a.place AS from_place, axis_x(g.signal_t, a.zero, a.pieces) AS from_x, g.signal_t AS from_t,
           '' AS verdict, 0 AS blocked_ticks, g.t1 - g.signal_t AS slack, 'other' AS kind
    FROM signal g JOIN drawn_lane b ON b.lane = g.consumer_lane
    JOIN drawn_lane a ON a.lane = g.producer_lane AND {_ONE_ZERO}
    WHERE NOT g.is_binding AND g.capture_id = (SELECT MIN(capture_id) FROM drawn_point)"""
_RECORDED = f"""
    SELECT b.place AS to_place, axis_x(e.to_t, b.zero, b.pieces) AS to_x, e.to_t, '' AS role, e.kind AS span,
           -1 AS iteration, '' AS producer_role, e.native_id AS producer_event, -1 AS producer_iteration,
           '' AS verdict, 0 AS blocked_ticks, NULL AS slack, e.from_t, a.place AS from_place,
           axis_x(e.from_t, a.zero, a.pieces) AS from_x, 'recorded' AS kind
    FROM edges e JOIN drawn_lane b ON b.lane = e.to_lane
    JOIN drawn_lane a ON a.lane = e.from_lane AND {_ONE_ZERO}
    WHERE e.capture_id = (SELECT MIN(capture_id) FROM drawn_point) AND e.from_t >= 0 AND e.to_t >= 0"""


def _arrows(
    connection: duckdb.DuckDBPyConnection, limits: list[int], notes: list[str], *, others: bool
) -> list[dict[str, Any]]:
    """Arrows whose head lies in the window: binding ones by the ticks that they blocked, then the rest."""
    # Among equals the order is scattered, so that those that are drawn spread over the window.
    inside = (
        "SELECT * FROM ({}) WHERE to_x BETWEEN ? AND ? "
        "ORDER BY blocked_ticks DESC, iteration * 7919 % 1009, to_place, to_x, from_x"
    )
    binding = records(connection, inside.format(_BINDING), limits)
    drawn = binding
    if len(binding) > MAX_ARROWS:
        drawn = binding[:FEW_ARROWS]
        notes.append(f"{FEW_ARROWS} of {len(binding)} binding arrows drawn: those into the longest blocked waits.")
    rest = records(connection, inside.format(_RECORDED), limits)
    if others:
        rest += records(connection, inside.format(_OTHER), limits)
    if len(rest) > MAX_OTHER_ARROWS:
        notes.append(f"{len(rest)} arrows that bind no wait are not drawn: too many for this window.")
        rest = []
    return [*rest, *drawn]


def _with_error(connection: duckdb.DuckDBPyConnection, selection: Selection) -> Selection:
    """The bound of view timeline_ns, which also counts clock steps and moments outside the anchors."""
    if selection.axis.kind != "mapped":
        return selection
    (found,) = records(
        connection,
        "SELECT MAX(error_ns) AS error, COUNT(*) = COUNT(error_ns) AS known FROM timeline_ns "
        f"WHERE capture_id = ? AND lane IN ({in_list(selection.lanes)})",
        [selection.capture["capture_id"]],
    )
    return replace(selection, axis=replace(selection.axis, error_ns=found["error"] if found["known"] else None))


def _with_states(connection: duckdb.DuckDBPyConnection, selection: Selection) -> Selection:
    capture = selection.capture["capture_id"]
    states = records(
        connection,
        "SELECT s.lane, s.extent, s.stall, s.active, s.untracked, COALESCE(SUM(w.blocked_ticks), 0) AS blocked, "
        "COALESCE(SUM(w.satisfied_ticks), 0) AS satisfied, COALESCE(SUM(w.unjudged_ticks), 0) AS unjudged "
        "FROM role_state s LEFT JOIN drawn_wait w ON w.lane = s.lane "
        f"WHERE s.capture_id = ? AND s.lane IN ({in_list(selection.lanes)}) GROUP BY ALL",
        [capture],
    )
    by_lane = {row.pop("lane"): {name: int(value) for name, value in row.items()} for row in states}
    return replace(
        selection,
        groups=tuple(
            replace(group, rows=tuple(replace(row, states=by_lane.get(row.lane, {})) for row in group.rows))
            for group in selection.groups
        ),
    )
