"""The data of the timeline page: exact spans in tiles of time, and shares of each state in bins of several widths.

A launch of a million spans does not fit a screen, and one of a hundred million no page. So the page carries two things:
*levels*, for every row the share of each state in every bin of time, from coarse to fine; and *tiles*, the spans
themselves with what view ``wait`` says about them, as many as fit, from the shown window outwards. The page says which
part has exact spans.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from wsformat.derive import run
from wsformat.viewers.timeline_packing import Ints, bytes_text, pack
from wsformat.viewers.timeline_select import Selection, in_list
from wsformat.viewers.timeline_spans import Places, Spans, bools, ints

if TYPE_CHECKING:
    import duckdb

BINS = (256, 1024, 4096)
"""Bins of the levels. The last one is made only where not every span can be on the page."""
FEW = 2_000_000
"""Spans of which most fit on a page."""
SHARES_HELD = 4_000_000
"""Shares of the finest level at most: two for every row and bin, each a byte before packing."""
TILE = 12_000
"""Spans of a tile, about."""

SHARES = """
WITH moved AS (
  SELECT place, stall, x0 - ({low}) AS x0, x1 - ({low}) AS x1 FROM piece WHERE x1 > x0
), cut AS (
  SELECT place, stall, x0 // {w} AS b, x1 - x0 AS ticks FROM moved WHERE x0 // {w} = (x1 - 1) // {w}
  UNION ALL
  SELECT place, stall, b, LEAST(x1, (b + 1) * {w}) - GREATEST(x0, b * {w}) AS ticks
  FROM (SELECT *, UNNEST(RANGE(x0 // {w}, (x1 - 1) // {w} + 1)) AS b FROM moved WHERE x0 // {w} < (x1 - 1) // {w})
)
SELECT place, b AS bin, SUM(CASE WHEN stall THEN ticks ELSE 0 END) AS stall,
       SUM(CASE WHEN stall THEN 0 ELSE ticks END) AS active FROM cut GROUP BY place, b
"""
STATES = """
SELECT lane, state = 'stall' AS stall, t0, t1 FROM state_interval
WHERE capture_id = $capture AND lane IN ({lanes}) AND state <> 'untracked'
"""


def pieces(connection: duckdb.DuckDBPyConnection, selection: Selection, places: Places, spans: Spans) -> pa.Table:
    """States stall and active of all rows as disjoint pieces (place, stall, t0, t1, x0, x1), as in ``state_interval``.

    Where no counted spans of a row overlap, the pieces are the spans themselves, cut at the end of the recorded window.
    """
    kinds = np.array([{"stall": 2, "active": 1}.get(kind[2], 0) for kind in spans.kinds] or [0], np.int64)
    counted = spans.order[((kinds[spans.kind] > 0) & (spans.flags & 3 == 0))[spans.order]]
    place, t0, t1 = spans.place[counted], spans.t0[counted], spans.t1[counted]
    if bool(np.any((place[1:] == place[:-1]) & (t0[1:] < t1[:-1]))):
        given = {"capture": str(selection.capture["capture_id"])}
        found = run(connection, STATES.format(lanes=in_list(selection.lanes)), given)
        lane = ints(found["lane"], 0)
        place, zero = places.place_of[lane], places.zero_of[lane]
        t0, t1, stall = ints(found["t0"], 0) - zero, ints(found["t1"], 0) - zero, bools(found["stall"])
    else:
        stall = kinds[spans.kind[counted]] == 2
        t1 = np.maximum(t0, np.minimum(t1, places.windows()[1][place]))
    x0, x1 = places.moments(place, t0), places.moments(place, t1)
    return pa.table({"place": place, "stall": stall, "t0": t0, "t1": t1, "x0": x0, "x1": x1})


def state_ticks(pieces: pa.Table, rows: int) -> tuple[Ints, Ints]:
    """Ticks of stall and of active of each row."""
    place, stall = ints(pieces["place"], 0), bools(pieces["stall"])
    ticks = ints(pieces["t1"], 0) - ints(pieces["t0"], 0)
    sums = [np.bincount(place[which], ticks[which], rows).astype(np.int64) for which in (stall, ~stall)]
    return sums[0], sums[1]


def shares(
    connection: duckdb.DuckDBPyConnection, pieces: pa.Table, rows: int, spans: int, extent: tuple[int, int]
) -> list[dict[str, Any]]:
    """Levels from coarse to fine: width of a bin in axis units, number of bins, packed shares of stall and active.

    A share is a byte, 255 for all of the bin; rows one after another, stall then active of each.
    """
    low, high = extent
    most = min(2 * (high - low), SHARES_HELD // max(1, 2 * rows), BINS[-1] if spans > FEW else BINS[-2])
    wanted = [bins for bins in BINS if bins <= most] or [BINS[0]]
    bins = wanted[-1]
    width = max(1, -(-(high - low) // bins))
    connection.register("piece", pieces)
    found = run(connection, SHARES.format(w=width, low=low))
    connection.unregister("piece")
    ticks = np.zeros((2, rows, bins))
    place, at = ints(found["place"], 0), ints(found["bin"], 0)
    inside = (at >= 0) & (at < bins)
    for n, name in enumerate(("stall", "active")):
        ticks[n, place[inside], at[inside]] = np.asarray(found[name].to_numpy(), float)[inside]
    levels: list[dict[str, Any]] = []
    for size in reversed(wanted):
        step = bins // size
        part = ticks.reshape(2, rows, size, step).sum(axis=3) / (width * step) * 255
        data = np.ascontiguousarray(np.clip(np.rint(part), 0, 255).astype(np.uint8).transpose(1, 0, 2))
        levels.append({"bins": size, "width": width * step, "data": bytes_text(data)})
    return levels[::-1]


def tiles(spans: Spans, extent: tuple[int, int], middle: int, budget: int) -> tuple[list[dict[str, Any]], int]:
    """Exact spans in tiles of time, from ``middle`` outwards until ``budget`` characters are used.

    Returns:
        Tiles in order of time, with their limits on the axis (by begin of a span), and the number of spans in them.
    """
    low, high = extent
    count = max(1, -(-spans.count // TILE))
    width = max(1, -(-(high - low + 1) // count))
    at = np.clip((spans.x0 - low) // width, 0, count - 1)[spans.order]
    by_tile = np.argsort(at, kind="stable")
    order, cuts = spans.order[by_tile], np.searchsorted(at[by_tile], np.arange(count + 1))
    first = min(count - 1, max(0, (middle - low) // width))
    # Outwards from the shown window: the next tile on either side, later ones first.
    queue = sorted(range(count), key=lambda n: (abs(n - first), n < first))
    found: dict[int, dict[str, Any]] = {}
    used = 0
    for number in queue:
        picked = order[cuts[number] : cuts[number + 1]]
        text, widths = pack(tile_columns(spans, picked))
        if used + len(text) + 120 > budget:
            break
        used += len(text) + 120
        reach = int(spans.x1[picked].max()) if len(picked) else low
        waits = int((spans.flags[picked] & 8 > 0).sum())
        found[number] = {"x0": low + number * width, "x1": low + (number + 1) * width, "reach": reach,
                         "spans": len(picked), "waits": waits, "widths": widths, "data": text}  # fmt: skip
    return [found[n] for n in sorted(found)], sum(tile["spans"] for tile in found.values())


def tile_columns(spans: Spans, picked: Ints) -> list[Ints]:
    """Columns of a tile: place, begin after the end before it in its row, length, kind, iteration and flags of every
    span; then verdict, producer, lag, producer's row, slack and kept ticks of the waits among them."""
    place, t0, t1 = spans.place[picked], spans.t0[picked], spans.t1[picked]
    same = np.concatenate([[False], place[1:] == place[:-1]]) if len(place) else np.zeros(0, bool)

    def stepped(values: Ints, before: Ints) -> Ints:
        return values - np.where(same, np.roll(before, 1), 0)

    waits = picked[spans.flags[picked] & 8 > 0]
    wait = waits - spans.waits
    iteration = spans.iteration[picked]
    return [
        stepped(place, place) if len(place) else place,
        stepped(t0, t1),
        t1 - t0,
        spans.kind[picked],
        stepped(iteration, iteration),
        spans.flags[picked],
        spans.verdict[wait],
        spans.producer[wait],
        spans.lag[wait],
        np.where(spans.producer_place[wait] < 0, 0, spans.producer_place[wait] - spans.place[waits]),
        spans.slack[wait],
        spans.kept[wait],
    ]
