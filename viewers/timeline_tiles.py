"""The data of the timeline page: exact spans in tiles of time, and shares of each state in bins of several widths.

A launch of a million spans does not fit a screen, and one of a hundred million no page. So the page carries two things:
*levels*, for every row the share of each state in every bin of time, from coarse to fine; and *tiles*, the spans
themselves with what view ``wait`` says about them, as many as fit, from the shown window outwards. The page says which
part has exact spans.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wsformat.derive import run
from wsformat.viewers.timeline_axis import Row
from wsformat.viewers.timeline_packing import Floats, Ints, bytes_text, pack
from wsformat.viewers.timeline_select import Selection, in_list

if TYPE_CHECKING:
    import duckdb

BINS = (256, 1024, 4096)
"""Bins of the levels. The last one is made only where not every span can be on the page."""
FEW = 2_000_000
"""Spans of which most fit on a page."""
TILE = 12_000
"""Spans of a tile, about."""
MARKERS = 60_000
"""Stamps outside spans that are carried at most; of more, none."""
OUT = "marker"
"""State of a stamp that begins and ends no span."""

# Waits carry their own span's columns, so that spans and waits need no join.
SPANS = """
SELECT lane, role, span, state, barrier, iteration, t0, t1, complete, end_lane = lane AS own FROM span
WHERE capture_id = $capture AND lane IN ({lanes}) AND NOT (state = 'stall' AND complete AND end_lane = lane)
"""
WAITS = """
SELECT lane, role, span, barrier, iteration, t0, t1, verdict, producer_role, producer_event,
       iteration - producer_iteration AS lag, producer_lane, slack, blocked_ticks, unjudged_ticks FROM wait
WHERE capture_id = $capture AND lane IN ({lanes})
"""
STAMPS = """
WITH ends AS (
  SELECT role, begin_event AS event FROM span_types WHERE capture_id = $capture
  UNION SELECT role, end_event FROM span_types WHERE capture_id = $capture
  UNION SELECT DISTINCT role, span || '.begin' FROM spans WHERE capture_id = $capture
  UNION SELECT DISTINCT role, span || '.end' FROM spans WHERE capture_id = $capture
)
SELECT p.lane, p.role, p.event AS span, p.iteration, p.t AS t0 FROM point p ANTI JOIN ends e USING (role, event)
WHERE p.capture_id = $capture AND p.lane IN ({lanes})
"""
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


@dataclass(frozen=True)
class Spans:
    """Every span of the page as columns, in order of row and begin; and what their numbers mean.

    Attributes:
        place: number of the row.
        t0, t1: ticks since the row's zero.
        x0, x1: the same on the axis.
        kind: index into ``kinds``.
        iteration: as recorded.
        flags: 1 incomplete, 2 ends on another lane, 4 unjudged, 8 a wait of view ``wait``, 16 its signal's row is here.
        verdict, producer: index into ``verdicts`` and ``producers``; -1 none.
        lag: iterations between wait and binding signal.
        producer_place: row of the signal; -1 none or not on the page.
        slack: ticks from the signal to the end.
        kept: ticks that did not block, -1 where nothing blocked.
        kinds: (role, span, state, barrier) by number; verdicts; producers: (role, event).
    """

    place: Ints
    t0: Ints
    t1: Ints
    x0: Ints
    x1: Ints
    kind: Ints
    iteration: Ints
    flags: Ints
    verdict: Ints
    producer: Ints
    lag: Ints
    producer_place: Ints
    slack: Ints
    kept: Ints
    kinds: list[tuple[str, str, str, str]]
    verdicts: list[str]
    producers: list[tuple[str, str]]

    @property
    def count(self) -> int:
        """Number of spans and stamps."""
        return len(self.place)


class Places:
    """Ticks of rows to moments on the axis: one straight line a row, or a piece of it after another."""

    def __init__(self, selection: Selection) -> None:
        self.rows = [row for row in selection.rows if row.t_first is not None]
        self.numbers = [n for n, row in enumerate(selection.rows) if row.t_first is not None]
        self.lines = {n: line(row, selection) for n, row in zip(self.numbers, self.rows, strict=True)}
        self.count = len(selection.rows)
        self._tables = self._pieces()
        top = max((row.lane for row in self.rows), default=0) + 1
        self.place_of = np.full(top + 1, -1, np.int64)
        self.zero_of = np.zeros(top + 1, np.int64)
        for n, row in zip(self.numbers, self.rows, strict=True):
            self.place_of[row.lane], self.zero_of[row.lane] = n, self.lines[n]["zero"]

    def _pieces(self) -> tuple[Floats, Floats, Floats]:
        """First tick, moment there and rate by (piece, row); no tick reaches the first tick of a piece that is none."""
        most = max((len(line["pieces"]) for line in self.lines.values()), default=0)
        start, base, rate = (
            np.full((most, self.count), np.inf),
            np.zeros((most, self.count)),
            np.zeros((most, self.count)),
        )
        for n, found in self.lines.items():
            for k, piece in enumerate(found["pieces"]):
                start[k, n], base[k, n], rate[k, n] = piece
        return start, base, rate

    def moments(self, place: Ints, ticks: Ints) -> Ints:
        """Axis units of ticks since the zeros of their rows."""
        start, base, rate = self._tables
        if len(start) == 0:
            return ticks
        out = base[0, place] + np.floor((ticks - start[0, place]) * rate[0, place] + 0.5)
        for k in range(1, len(start)):
            later = np.flatnonzero(ticks >= start[k, place])
            at = place[later]
            out[later] = base[k, at] + np.floor((ticks[later] - start[k, at]) * rate[k, at] + 0.5)
        return out.astype(np.int64)

    def windows(self) -> tuple[Ints, Ints, Ints, Ints]:
        """Recorded windows of all rows: begin and end in ticks since zero, begin and end on the axis (0 without)."""
        first, last = np.zeros(self.count, np.int64), np.zeros(self.count, np.int64)
        for n, row in zip(self.numbers, self.rows, strict=True):
            first[n], last[n] = (row.t_first or 0) - self.lines[n]["zero"], (row.t_last or 0) - self.lines[n]["zero"]
        place = np.array(self.numbers, np.int64)
        x0, x1 = np.zeros(self.count, np.int64), np.zeros(self.count, np.int64)
        x0[place], x1[place] = self.moments(place, first[place]), self.moments(place, last[place])
        return first, last, x0, x1


def line(row: Row, selection: Selection) -> dict[str, Any]:
    """Zero of a row in raw ticks, and its pieces (ticks since zero, axis units there, axis units a tick)."""
    if selection.axis.kind != "mapped":
        return {"zero": row.zero, "pieces": []}
    base = selection.axis.base_ns[row.launch]
    zero = int(row.t_first or 0)
    return {"zero": zero, "pieces": [(t - zero, ns - base, rate) for t, ns, rate in row.pieces]}


def read_spans(connection: duckdb.DuckDBPyConnection, selection: Selection, places: Places) -> tuple[Spans, list[str]]:
    """Every span of the chosen lanes, with what is known about the waits among them; and notes on what is left out."""
    lanes = in_list(selection.lanes)
    given = {"capture": str(selection.capture["capture_id"])}
    notes: list[str] = []
    spans = run(connection, SPANS.format(lanes=lanes), given)
    waits = run(connection, WAITS.format(lanes=lanes), given)
    stamps = run(connection, f"SELECT * FROM ({STAMPS.format(lanes=lanes)}) LIMIT {MARKERS + 1}", given)
    if stamps.num_rows > MARKERS:
        names = sorted(set(pc.unique(stamps["span"]).to_pylist()))
        notes.append(f"Stamps that begin or end no span ({', '.join(names[:4])}) are not on this page: too many.")
        stamps = stamps.slice(0, 0)
    parts = (spans, waits, stamps)
    sizes = [part.num_rows for part in parts]
    total = sum(sizes)

    def joined(name: str, *defaults: int) -> Ints:
        found = [
            np.full(part.num_rows, default, np.int64) if name not in part.column_names else _ints(part[name], default)
            for part, default in zip(parts, defaults, strict=True)
        ]
        return np.concatenate(found)

    lane = joined("lane", 0, 0, 0)
    place, zero = places.place_of[lane], places.zero_of[lane]
    t0 = joined("t0", 0, 0, 0) - zero
    ends = [_ints(spans["t1"], 0), _ints(waits["t1"], 0), _ints(stamps["t0"], 0)]
    t1 = np.concatenate(ends) - zero
    kind, kinds = _kinds(parts)
    verdict, verdicts = _codes(waits, ("verdict",))
    producer, producers = _codes(waits, ("producer_role", "producer_event"))
    bound = np.array([-1 if not name[0] else n for n, name in enumerate(producers)], np.int64)
    producer = bound[producer] if len(producers) else producer
    producer_lane = _ints(waits["producer_lane"], -1)
    known = (producer_lane >= 0) & (producer_lane < len(places.place_of) - 1)
    producer_place = np.where(known, places.place_of[np.where(known, producer_lane, 0)], -1)
    blocked, ticks = _ints(waits["blocked_ticks"], 0), _ints(waits["t1"], 0) - _ints(waits["t0"], 0)
    flags = np.zeros(total, np.int64)
    flags[: sizes[0]] = ~_bools(spans["complete"]) * 1 + ~_bools(spans["own"]) * 2
    flags[sizes[0] : sizes[0] + sizes[1]] = 8 + 4 * (_ints(waits["unjudged_ticks"], 0) > 0) + 16 * (producer_place >= 0)

    def of_waits(values: Ints, default: int) -> Ints:
        return np.concatenate([np.full(sizes[0], default, np.int64), values, np.full(sizes[2], default, np.int64)])

    order = np.lexsort((-t1, t0, place))
    columns = {
        "place": place, "t0": t0, "t1": t1, "kind": kind, "iteration": joined("iteration", -1, -1, -1), "flags": flags,
        "verdict": of_waits(verdict, -1), "producer": of_waits(producer, -1),
        "lag": of_waits(_ints(waits["lag"], 0), 0), "producer_place": of_waits(producer_place, -1),
        "slack": of_waits(_ints(waits["slack"], 0), 0),
        "kept": of_waits(np.where(blocked > 0, ticks - blocked, -1), -1),
    }  # fmt: skip
    columns = {name: values[order] for name, values in columns.items()}
    x0 = places.moments(columns["place"], columns["t0"])
    x1 = places.moments(columns["place"], columns["t1"])
    return Spans(
        **columns, x0=x0, x1=x1, kinds=[(k[0], k[1], k[2], k[3]) for k in kinds],
        verdicts=[name[0] for name in verdicts], producers=[(name[0], name[1]) for name in producers],
    ), notes  # fmt: skip


def _ints(column: pa.ChunkedArray, default: int) -> Ints:
    filled = pc.fill_null(column, default) if column.null_count else column
    return np.asarray(filled.to_numpy(), np.int64)


def _bools(column: pa.ChunkedArray) -> Any:
    return np.asarray(column.to_numpy(), bool)


def _codes(table: pa.Table, names: Sequence[str]) -> tuple[Ints, list[tuple[str, ...]]]:
    """Number of each row's combination of texts, and the combinations by number."""
    code = np.zeros(table.num_rows, np.int64)
    sizes, values = [], []
    for name in names:
        encoded = pc.dictionary_encode(table[name]).combine_chunks()
        encoded = encoded.chunk(0) if isinstance(encoded, pa.ChunkedArray) else encoded
        values.append(encoded.dictionary.to_pylist())
        sizes.append(max(1, len(values[-1])))
        code = code * sizes[-1] + np.asarray(encoded.indices.to_numpy(zero_copy_only=False), np.int64)
    there, dense = np.unique(code, return_inverse=True)
    found = []
    for number in there.tolist():
        texts = []
        for size, known in zip(reversed(sizes), reversed(values), strict=True):
            number, at = divmod(number, size)
            texts.append(known[at])
        found.append(tuple(reversed(texts)))
    return np.asarray(dense, np.int64).reshape(-1), found


def _kinds(parts: Sequence[pa.Table]) -> tuple[Ints, list[tuple[str, ...]]]:
    """Kinds (role, span, state, barrier) over spans, waits and stamps outside spans, as one numbering."""
    spans, waits, stamps = parts
    numbers: dict[tuple[str, ...], int] = {}
    codes = []
    for table, names, rest in (
        (spans, ("role", "span", "state", "barrier"), ()),
        (waits, ("role", "span", "barrier"), ("stall",)),
        (stamps, ("role", "span"), (OUT, "")),
    ):
        code, found = _codes(table, names)
        full = [(f[0], f[1], "stall", f[2]) if rest == ("stall",) else (*f, *rest) for f in found]
        codes.append(np.array([numbers.setdefault(name, len(numbers)) for name in full], np.int64)[code])
    return np.concatenate(codes), list(numbers)


def pieces(connection: duckdb.DuckDBPyConnection, selection: Selection, places: Places, spans: Spans) -> pa.Table:
    """States stall and active of all rows as disjoint pieces (place, stall, t0, t1, x0, x1), as in ``state_interval``.

    Where no counted spans of a row overlap, the pieces are the spans themselves, cut at the end of the recorded window.
    """
    state = np.array([{"stall": 2, "active": 1}.get(kind[2], 0) for kind in spans.kinds] or [0], np.int64)[spans.kind]
    counted = (state > 0) & (spans.flags & 3 == 0)
    place, t0, t1 = spans.place[counted], spans.t0[counted], spans.t1[counted]
    if bool(np.any((place[1:] == place[:-1]) & (t0[1:] < t1[:-1]))):
        given = {"capture": str(selection.capture["capture_id"])}
        found = run(connection, STATES.format(lanes=in_list(selection.lanes)), given)
        lane = _ints(found["lane"], 0)
        place, zero = places.place_of[lane], places.zero_of[lane]
        t0, t1, stall = _ints(found["t0"], 0) - zero, _ints(found["t1"], 0) - zero, _bools(found["stall"])
    else:
        stall = state[counted] == 2
        t1 = np.maximum(t0, np.minimum(t1, places.windows()[1][place]))
    x0, x1 = places.moments(place, t0), places.moments(place, t1)
    return pa.table({"place": place, "stall": stall, "t0": t0, "t1": t1, "x0": x0, "x1": x1})


def state_ticks(pieces: pa.Table, rows: int) -> tuple[Ints, Ints]:
    """Ticks of stall and of active of each row."""
    place, stall = _ints(pieces["place"], 0), _bools(pieces["stall"])
    ticks = _ints(pieces["t1"], 0) - _ints(pieces["t0"], 0)
    sums = [np.bincount(place[which], ticks[which], rows).astype(np.int64) for which in (stall, ~stall)]
    return sums[0], sums[1]


def shares(
    connection: duckdb.DuckDBPyConnection, pieces: pa.Table, rows: int, spans: int, extent: tuple[int, int]
) -> list[dict[str, Any]]:
    """Levels from coarse to fine: width of a bin in axis units, number of bins, packed shares of stall and active.

    A share is a byte, 255 for all of the bin; rows one after another, stall then active of each.
    """
    low, high = extent
    wanted = [bins for bins in BINS if bins <= 2 * (high - low) and (bins < BINS[-1] or spans > FEW)] or [BINS[0]]
    bins = wanted[-1]
    width = max(1, -(-(high - low) // bins))
    connection.register("piece", pieces)
    found = run(connection, SHARES.format(w=width, low=low))
    connection.unregister("piece")
    ticks = np.zeros((2, rows, bins))
    place, at = _ints(found["place"], 0), _ints(found["bin"], 0)
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
    at = np.clip((spans.x0 - low) // width, 0, count - 1)
    order = np.argsort(at, kind="stable")
    cuts = np.searchsorted(at[order], np.arange(count + 1))
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

    wait = picked[spans.flags[picked] & 8 > 0]
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
        np.where(spans.producer_place[wait] < 0, 0, spans.producer_place[wait] - spans.place[wait]),
        spans.slack[wait],
        spans.kept[wait],
    ]
