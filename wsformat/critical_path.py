"""The critical path of one CTA: who paces the kernel.

Definition
----------
The path of a CTA of a launch, whose lanes with points are all on one clock, fills the window from the first point of
these lanes to the latest end of their recorded windows (view ``recorded_window``: the last point of a lane, unless the
lane is truncated), without gap or overlap: the ticks of its segments add up to the window. It is found backwards.

1. *Start.* At the end of the window; of several lanes whose recorded window ends there, on the smallest lane.
2. *Releasing waits.* A wait of the view ``wait`` is *releasing* when its verdict is ``producer_late`` or ``in_flight``,
   its ``blocked_ticks`` exceed 0, and its ``producer_lane`` is a lane of this CTA with points. It moves the path from
   its end ``t1`` to its signal: to ``producer_lane``, at ``h = min(signal_t, t1)``. (A signal whose stamp follows the
   arrive may be stamped after the end of the wait that it released; the path never moves forward.)
3. *Step.* At tick ``T`` on lane ``L``, take the releasing wait of ``L`` that is not yet on the path and ended last, at
   ``t1 <= T`` (ties: the one that began last, then the greater span name, then the greater iteration). The path holds
   ``[t1, T]`` on ``L`` in the states of ``L`` (4), and ``[h, t1]`` as ``latency`` of that wait: what its signal took
   to release it. It goes on at ``h`` on the signal's lane.
4. *On a lane* a piece ends wherever a complete stall or active span of the lane, longer than 0, begins or ends; pieces
   are not joined. States are exclusive: stall over active over untracked. Of several complete spans of that state open
   over a piece, the one that began last names it (ties: the one that ended first, then the smaller span name, then the
   smaller iteration); ``untracked`` has no span.
5. *End.* When ``L`` has no such wait left, the path holds ``L`` back to its first point, and what is left of the
   window before that as ``untracked`` on ``L``: nothing recorded says what held the lane's first point.

So a wait that is not releasing stays on its lane, as ``stall`` with its verdict: ``free`` and ``not_blocked`` cost
their stamps and their test; a ``producer_late`` or ``in_flight`` wait that is no longer than the floor was held up
by nothing; ``other`` was held by a cause that no edge declares; ``unknown`` cannot be judged. Before a stall of the
last two kinds the path is a lower bound: the true cause may lie elsewhere. :func:`summary` keeps them apart.

Segments of no length are left out. A path never leaves its CTA: a wait that a signal from another CTA ended stays on
its lane as ``stall``, with its verdict.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wsformat.derive import run
from wsformat.errors import BadRequest

if TYPE_CHECKING:
    import duckdb

    from wsformat.bundle import Bundle

Ints = npt.NDArray[np.int64]

KINDS = ("untracked", "active", "stall", "latency")
UNTRACKED, ACTIVE, STALL, LATENCY = range(4)

PATH_SCHEMA = pa.schema(
    [
        ("capture_id", pa.string()),
        ("launch", pa.int32()),
        ("cta", pa.int32()),
        ("step", pa.int32()),
        ("lane", pa.int32()),
        ("role", pa.string()),
        ("kind", pa.string()),
        ("span", pa.string()),
        ("barrier", pa.string()),
        ("iteration", pa.int32()),
        ("verdict", pa.string()),
        ("producer_lane", pa.int32()),
        ("producer_role", pa.string()),
        ("producer_event", pa.string()),
        ("t0", pa.int64()),
        ("t1", pa.int64()),
        ("ticks", pa.int64()),
    ]
)

SPANS = """
SELECT lane, t0, t1, iteration, span, barrier FROM span
WHERE capture_id = ? AND lane IN ({lanes}) AND state = 'active' AND complete AND end_lane = lane AND t1 > t0
ORDER BY lane, t0, t1 DESC, span DESC, iteration DESC
"""

WAITS = """
SELECT lane, t0, t1, iteration, span, barrier, verdict, producer_lane, producer_role, producer_event,
       COALESCE(signal_t, t0) AS signal_t,
       blocked_ticks > 0 AND verdict IN ('producer_late', 'in_flight') AND producer_lane IN ({lanes}) AS releasing
FROM wait WHERE capture_id = ? AND lane IN ({lanes})
ORDER BY lane, t0, t1 DESC, span DESC, iteration DESC
"""


def critical_path(
    bundle: Bundle,
    *,
    capture_id: str | None = None,
    launch: int = 0,
    cta: int = 0,
    connection: duckdb.DuckDBPyConnection | None = None,
) -> pa.Table:
    """The critical path of one CTA of one launch, as defined in this module.

    Args:
        bundle: the capture, or several.
        capture_id: which one; may be left out when there is only one.
        launch: launch number.
        cta: linear CTA index.
        connection: one of ``bundle.duckdb(materialise=["wait"])``, to ask for many CTAs: floor and release of a wait
            come from the whole capture, so without it each call judges every wait of the capture anew.

    Returns:
        One row a segment in order of time, with :data:`PATH_SCHEMA`: ``step`` from 0; ``lane`` and ``role`` that the
        path is on; ``kind``: active, stall, untracked, or latency (from the binding signal to the end of the wait,
        on the lane that waited); ``span``, ``barrier``, ``iteration`` ('' and -1 where untracked); ``verdict`` of
        the wait for stall and latency; ``producer_lane``, ``producer_role``, ``producer_event`` of the signal for
        latency; ``t0``, ``t1`` and ``ticks`` on the clock of the CTA.

    Raises:
        BadRequest: no such capture, launch or CTA, no points in it, or its lanes are on several clocks.
    """
    if connection is None:
        with bundle.duckdb(only=["span", "wait", "recorded_window"]) as own:
            return critical_path(bundle, capture_id=capture_id, launch=launch, cta=cta, connection=own)
    ask = _asker(connection)
    capture_id = _capture(ask, capture_id)
    lanes = _lanes(ask, capture_id, launch, cta)
    roles = dict(zip(lanes["lane"].to_pylist(), lanes["role"].to_pylist(), strict=True))
    listed = ", ".join(str(lane) for lane in roles)
    waits = ask(WAITS.format(lanes=listed), [capture_id])
    actives = ask(SPANS.format(lanes=listed), [capture_id])
    firsts = dict(zip(roles, lanes["t_first"].to_pylist(), strict=True))
    lasts = dict(zip(roles, lanes["t_last"].to_pylist(), strict=True))
    stretches, hops = _walk(waits, firsts, lasts)
    pieces = _pieces(waits, actives, firsts, lasts)
    picked = _assemble(pieces, waits, stretches, hops)
    return _table(picked, waits, actives, roles, capture_id, launch, cta)


def _asker(connection: duckdb.DuckDBPyConnection) -> Callable[[str, list[Any]], pa.Table]:
    return lambda query, parameters: run(connection, query, parameters)


def _capture(ask: Callable[[str, list[Any]], pa.Table], capture_id: str | None) -> str:
    found: list[str] = ask("SELECT capture_id FROM captures ORDER BY capture_id", [])["capture_id"].to_pylist()
    if capture_id is None and len(found) == 1:
        return found[0]
    if capture_id in found:
        return str(capture_id)
    if capture_id is None:
        raise BadRequest(f"{len(found)} captures in this bundle", f"Name one: {', '.join(found[:8]) or 'none'}.")
    raise BadRequest(f"no capture {capture_id!r}", f"Captures: {', '.join(found[:8]) or 'none'}.")


def _lanes(ask: Callable[[str, list[Any]], pa.Table], capture_id: str, launch: int, cta: int) -> pa.Table:
    """Lanes of the CTA that have points, and their recorded windows: lane, role, clock, t_first, t_last."""
    there = ask(
        "SELECT lane, role, clock FROM lanes WHERE capture_id = ? AND launch = ? AND cta = ?", [capture_id, launch, cta]
    )
    if there.num_rows == 0:
        known = ask(
            "SELECT launch, MIN(cta) AS a, MAX(cta) AS b FROM lanes WHERE capture_id = ? AND launch >= 0 AND cta >= 0 "
            "GROUP BY launch ORDER BY launch LIMIT 4",
            [capture_id],
        ).to_pylist()
        hint = "; ".join(f"launch {row['launch']}: CTAs {row['a']} to {row['b']}" for row in known)
        raise BadRequest(
            f"no CTA {cta} in launch {launch} of capture {capture_id}", hint or "The capture has no lanes."
        )
    listed = ", ".join(str(lane) for lane in there["lane"].to_pylist())
    found = ask(
        "SELECT w.lane, l.role, l.clock, w.t_first, w.t_last FROM recorded_window w "
        "JOIN lanes l ON l.capture_id = w.capture_id AND l.lane = w.lane "
        f"WHERE w.capture_id = ? AND w.lane IN ({listed}) ORDER BY w.lane",
        [capture_id],
    )
    if found.num_rows == 0:
        raise BadRequest(f"CTA {cta} of launch {launch} has no points, so it has no path")
    if len(set(found["clock"].to_pylist())) > 1:
        raise BadRequest(
            f"the lanes of CTA {cta} of launch {launch} are on several clocks", "A path needs one clock for the CTA."
        )
    return found


def _walk(
    waits: pa.Table, firsts: dict[int, int], lasts: dict[int, int]
) -> tuple[list[tuple[int, int, int]], list[tuple[int, int, int]]]:
    """Backwards through the releasing waits: stretches (lane, from, to) and hops (wait row, from, to)."""
    producer, signal, ends = _ints(waits, "producer_lane"), _ints(waits, "signal_t"), _ints(waits, "t1")
    begins, lane_of = _ints(waits, "t0"), _ints(waits, "lane")
    rank = _codes(waits["span"])
    releasing = np.flatnonzero(waits["releasing"].to_numpy())
    order = releasing[
        np.lexsort(
            (_ints(waits, "iteration")[releasing], rank[releasing], begins[releasing], ends[releasing],
             lane_of[releasing])
        )
    ]  # fmt: skip
    rows: dict[int, list[int]] = {}
    row_ends: dict[int, list[int]] = {}
    for lane in firsts:
        own = order[lane_of[order] == lane]
        rows[lane], row_ends[lane] = own.tolist(), ends[own].tolist()
    left = {lane: len(own) for lane, own in rows.items()}
    producers, signals = producer.tolist(), signal.tolist()

    start, stop = min(firsts.values()), max(lasts.values())
    lane = min(n for n, t in lasts.items() if t == stop)
    stretches: list[tuple[int, int, int]] = []
    hops: list[tuple[int, int, int]] = []
    t = stop
    while True:
        at = min(bisect_right(row_ends[lane], t), left[lane]) - 1
        if at < 0:
            stretches.append((lane, start, t))
            return stretches, hops
        left[lane] = at
        row, end = rows[lane][at], row_ends[lane][at]
        stretches.append((lane, end, t))
        t = min(signals[row], end)
        hops.append((row, t, end))
        lane = producers[row]


def _pieces(
    waits: pa.Table, actives: pa.Table, firsts: dict[int, int], lasts: dict[int, int]
) -> dict[int, dict[str, Ints]]:
    """Per lane, its whole window cut where a span begins or ends: t0, t1, kind, and the row that names it or -1."""
    start, stop = min(firsts.values()), max(lasts.values())
    tables = {STALL: waits, ACTIVE: actives}
    columns = {k: (_ints(v, "lane"), _ints(v, "t0"), _ints(v, "t1")) for k, v in tables.items()}
    pieces = {}
    for lane in firsts:
        own = {k: np.flatnonzero((lanes == lane) & (t1 > t0)) for k, (lanes, t0, t1) in columns.items()}
        cuts = [np.array([start, stop], np.int64)]
        cuts += [columns[k][side][own[k]] for k in own for side in (1, 2)]
        edges = np.unique(np.concatenate(cuts))
        t0, t1 = edges[:-1], edges[1:]
        kind, row = np.full(len(t0), UNTRACKED, np.int64), np.full(len(t0), -1, np.int64)
        for k in (ACTIVE, STALL):
            at = last_covering(columns[k][1][own[k]], columns[k][2][own[k]], t0, t1)
            covered = at >= 0
            kind[covered], row[covered] = k, own[k][at[covered]]
        pieces[lane] = {"t0": t0, "t1": t1, "kind": kind, "row": row}
    return pieces


def last_covering(begins: Ints, ends: Ints, t0: Ints, t1: Ints) -> Ints:
    """For each piece [t0, t1) the last span, in order of begins, that covers it; -1 when none does.

    No piece may be cut by the begin or end of a span. Spans may nest and overlap at will: maxima of the ends over
    1, 2, 4, ... spans let every piece skip, in log2(spans) steps, the spans that are over before it.
    """
    if len(begins) == 0:
        return np.full(len(t0), -1, np.int64)
    maxima = [ends]
    while 1 << len(maxima) <= len(ends):
        shift = 1 << (len(maxima) - 1)
        wider = maxima[-1].copy()
        wider[shift:] = np.maximum(wider[shift:], maxima[-1][:-shift])
        maxima.append(wider)
    at = np.searchsorted(begins, t0, side="right").astype(np.int64) - 1
    for level in reversed(range(len(maxima))):
        over = (at >= 0) & (maxima[level][at] < t1)
        at = np.maximum(np.where(over, at - (1 << level), at), -1)
    return at


def _assemble(
    pieces: dict[int, dict[str, Ints]],
    waits: pa.Table,
    stretches: list[tuple[int, int, int]],
    hops: list[tuple[int, int, int]],
) -> dict[str, Ints]:
    """Segments in order of time: lane, kind, row (of waits or actives), t0, t1."""
    parts: dict[str, list[Ints]] = {name: [] for name in ("lane", "kind", "row", "t0", "t1")}
    table = np.array(stretches, np.int64).reshape(-1, 3)
    for lane, piece in pieces.items():
        own = table[table[:, 0] == lane]
        begin, end = own[:, 1], own[:, 2]
        low = np.searchsorted(piece["t1"], begin, side="right")
        count = np.maximum(np.searchsorted(piece["t0"], end, side="left") - low, 0)
        # Row numbers low, low + 1, ... of every stretch, one after another.
        at = np.repeat(low - np.concatenate([[0], np.cumsum(count)[:-1]]), count) + np.arange(count.sum())
        parts["lane"].append(np.full(len(at), lane, np.int64))
        parts["kind"].append(piece["kind"][at])
        parts["row"].append(piece["row"][at])
        parts["t0"].append(np.maximum(piece["t0"][at], np.repeat(begin, count)))
        parts["t1"].append(np.minimum(piece["t1"][at], np.repeat(end, count)))
    hop = np.array(hops, np.int64).reshape(-1, 3)
    parts["lane"].append(_ints(waits, "lane")[hop[:, 0]])
    parts["kind"].append(np.full(len(hop), LATENCY, np.int64))
    parts["row"].append(hop[:, 0])
    parts["t0"].append(hop[:, 1])
    parts["t1"].append(hop[:, 2])
    joined = {name: np.concatenate(found) for name, found in parts.items()}
    long = np.flatnonzero(joined["t1"] > joined["t0"])
    order = long[np.argsort(joined["t0"][long])]
    return {name: values[order] for name, values in joined.items()}


def _table(
    picked: dict[str, Ints],
    waits: pa.Table,
    actives: pa.Table,
    roles: dict[int, str],
    capture_id: str,
    launch: int,
    cta: int,
) -> pa.Table:
    count, kind = len(picked["lane"]), picked["kind"]
    of_wait, of_active = np.isin(kind, (STALL, LATENCY)), kind == ACTIVE

    def named(column: str, empty: Any, *, latency_only: bool = False, spans: bool = False) -> pa.Array:
        chosen = kind == LATENCY if latency_only else of_wait
        values = np.full(count, empty, dtype=object if isinstance(empty, str) else np.int64)
        values[chosen] = waits[column].to_numpy()[picked["row"][chosen]]
        if spans:
            values[of_active] = actives[column].to_numpy()[picked["row"][of_active]]
        return pa.array(values)

    lane_names = pa.array([roles[lane] for lane in roles])
    columns = {
        "capture_id": pa.repeat(capture_id, count),
        "launch": pa.repeat(launch, count),
        "cta": pa.repeat(cta, count),
        "step": pa.array(np.arange(count)),
        "lane": pa.array(picked["lane"]),
        "role": lane_names.take(pa.array(np.searchsorted(list(roles), picked["lane"]))),
        "kind": pa.array(KINDS).take(pa.array(kind)),
        "span": named("span", "", spans=True),
        "barrier": named("barrier", "", spans=True),
        "iteration": named("iteration", -1, spans=True),
        "verdict": named("verdict", ""),
        "producer_lane": named("producer_lane", -1, latency_only=True),
        "producer_role": named("producer_role", "", latency_only=True),
        "producer_event": named("producer_event", "", latency_only=True),
        "t0": pa.array(picked["t0"]),
        "t1": pa.array(picked["t1"]),
        "ticks": pa.array(picked["t1"] - picked["t0"]),
    }
    return pa.table({f.name: columns[f.name].cast(f.type) for f in PATH_SCHEMA}, schema=PATH_SCHEMA)


def _ints(table: pa.Table, column: str) -> Ints:
    return np.asarray(table[column].to_numpy(), np.int64)


def _codes(column: pa.ChunkedArray) -> Ints:
    """Rank of each text among the texts of the column."""
    return np.unique(column.to_numpy().astype(str), return_inverse=True)[1].astype(np.int64)


SUMMARY = """
WITH part AS (
  SELECT *, SUM(ticks) OVER (PARTITION BY capture_id, launch, cta) AS whole FROM path
), levels AS (
  SELECT * FROM (VALUES (0, 'pace'), (1, 'state'), (2, 'span')) AS v (rank, level)
), labelled AS (
  SELECT capture_id, launch, cta, whole, ticks, rank, level, role,
         CASE WHEN rank >= 1 OR kind = 'latency' THEN kind ELSE '' END AS kind,
         CASE WHEN rank = 2 OR rank = 0 AND kind = 'latency' THEN span ELSE '' END AS span,
         CASE WHEN rank = 2 OR rank = 0 AND kind = 'latency' THEN barrier ELSE '' END AS barrier,
         CASE WHEN rank = 2 THEN verdict ELSE '' END AS verdict,
         CASE WHEN rank <> 1 THEN producer_role ELSE '' END AS producer_role
  FROM part CROSS JOIN levels
)
SELECT capture_id, launch, cta, level, role, kind, span, barrier, verdict, producer_role, COUNT(*) AS segments,
       CAST(SUM(ticks) AS BIGINT) AS ticks, CAST(SUM(ticks) AS DOUBLE) / MAX(whole) AS share
FROM labelled
GROUP BY capture_id, launch, cta, rank, level, role, kind, span, barrier, verdict, producer_role
ORDER BY capture_id, launch, cta, rank, ticks DESC, role, kind, span, barrier, verdict, producer_role
"""


def summary(path: pa.Table) -> pa.Table:
    """Who paces the kernel: ticks and shares of a path, or of several paths in one table.

    Returns:
        Rows (capture_id, launch, cta, level, role, kind, span, barrier, verdict, producer_role, segments, ticks,
        share of the window), for each CTA by level and falling ticks. The rows of each level add up to the window:
        ``pace``: what a role spent on its lanes (kind ''), and apart from it the latency of each wait by the role
        that signalled (kind latency): the first row paces the CTA. ``state``: by role and kind. ``span``: by role,
        kind, span, barrier, verdict and signalling role; stalls with verdict other or unknown mark where the path
        is only a lower bound.
    """
    import duckdb

    with duckdb.connect() as connection:
        connection.register("path", path)
        return run(connection, SUMMARY)
