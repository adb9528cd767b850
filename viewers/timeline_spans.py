"""Every span of the chosen rows as columns: ticks, moments on the axis, and what view ``wait`` says of the waits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wsformat.derive import run
from wsformat.viewers.timeline_axis import Row
from wsformat.viewers.timeline_packing import Floats, Ints
from wsformat.viewers.timeline_select import Selection, in_list

if TYPE_CHECKING:
    import duckdb

MARKERS = 60_000
"""Stamps outside spans that are carried at most; of more, none."""
OUT = "marker"
"""State of a stamp that begins and ends no span."""

# Waits carry their own span's columns, so that spans and waits need no join. Nothing is paired twice: a paired stall is
# always a wait, so only stored ones are asked for here.
SPANS = """
SELECT lane, role, span, state, barrier, iteration, t0, t1, complete, end_lane = lane AS own FROM span
WHERE capture_id = $capture AND lane IN ({lanes}) AND state <> 'stall'
UNION ALL
SELECT lane, role, span, state, barrier, iteration, t0, t1, complete, end_lane = lane AS own FROM span
WHERE capture_id = $capture AND lane IN ({lanes}) AND state = 'stall' AND span_id >= 0
  AND NOT (complete AND end_lane = lane)
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


@dataclass(frozen=True)
class Spans:
    """Every span of the page as columns, and what their numbers mean.

    Attributes:
        order: the spans by row, begin and length; the columns themselves are as they were read.
        place: number of the row.
        t0, t1: ticks since the row's zero.
        x0, x1: the same on the axis.
        kind: index into ``kinds``.
        iteration: as recorded.
        flags: 1 incomplete, 2 ends on another lane, 4 unjudged, 8 a wait of view ``wait``, 16 its signal's row is here.
        waits: number of the first wait; the columns that follow are of waits only, which are ``waits`` and those after.
        verdict, producer: index into ``verdicts`` and ``producers``; -1 none.
        lag: iterations between wait and binding signal.
        producer_place: row of the signal; -1 none or not on the page.
        slack: ticks from the signal to the end.
        kept: ticks that did not block, -1 where nothing blocked.
        kinds: (role, span, state, barrier) by number; verdicts; producers: (role, event).
    """

    order: Ints
    place: Ints
    t0: Ints
    t1: Ints
    x0: Ints
    x1: Ints
    kind: Ints
    iteration: Ints
    flags: Ints
    waits: int
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
            np.full(part.num_rows, default, np.int64) if name not in part.column_names else ints(part[name], default)
            for part, default in zip(parts, defaults, strict=True)
        ]
        return np.concatenate(found)

    lane = joined("lane", 0, 0, 0)
    place, zero = places.place_of[lane], places.zero_of[lane]
    t0 = joined("t0", 0, 0, 0) - zero
    ends = [ints(spans["t1"], 0), ints(waits["t1"], 0), ints(stamps["t0"], 0)]
    t1 = np.concatenate(ends) - zero
    kind, kinds = _kinds(parts)
    verdict, verdicts = _codes(waits, ("verdict",))
    producer, producers = _codes(waits, ("producer_role", "producer_event"))
    bound = np.array([-1 if not name[0] else n for n, name in enumerate(producers)], np.int64)
    producer = bound[producer] if len(producers) else producer
    producer_lane = ints(waits["producer_lane"], -1)
    known = (producer_lane >= 0) & (producer_lane < len(places.place_of) - 1)
    producer_place = np.where(known, places.place_of[np.where(known, producer_lane, 0)], -1)
    blocked, ticks = ints(waits["blocked_ticks"], 0), ints(waits["t1"], 0) - ints(waits["t0"], 0)
    flags = np.zeros(total, np.int64)
    flags[: sizes[0]] = ~bools(spans["complete"]) * 1 + ~bools(spans["own"]) * 2
    flags[sizes[0] : sizes[0] + sizes[1]] = 8 + 4 * (ints(waits["unjudged_ticks"], 0) > 0) + 16 * (producer_place >= 0)

    x0, x1 = places.moments(place, t0), places.moments(place, t1)
    return Spans(
        order=_order(place, t0, t1), place=place, t0=t0, t1=t1, x0=x0, x1=x1, kind=kind,
        iteration=joined("iteration", -1, -1, -1), flags=flags, waits=sizes[0], verdict=verdict, producer=producer,
        lag=ints(waits["lag"], 0), producer_place=producer_place, slack=ints(waits["slack"], 0),
        kept=np.where(blocked > 0, ticks - blocked, -1), kinds=[(k[0], k[1], k[2], k[3]) for k in kinds],
        verdicts=[name[0] for name in verdicts], producers=[(name[0], name[1]) for name in producers],
    ), notes  # fmt: skip


def _order(place: Ints, t0: Ints, t1: Ints) -> Ints:
    """By row, begin, and the longer one first. One key is sorted; only where it has equals, the others decide."""
    low = int(t0.min()) if len(t0) else 0
    bits = int(t0.max() - low).bit_length() if len(t0) else 0
    if bits > 48:
        return np.lexsort((-t1, t0, place))
    key = (place << bits) | (t0 - low)
    order = np.argsort(key)
    ordered = key[order]
    equal = np.flatnonzero(ordered[1:] == ordered[:-1])
    if len(equal):
        tied = np.union1d(equal, equal + 1)
        picked = order[tied]
        order[tied] = picked[np.lexsort((-t1[picked], key[picked]))]
    return order


def ints(column: pa.ChunkedArray, default: int) -> Ints:
    """A column of whole numbers as an array."""
    filled = pc.fill_null(column, default) if column.null_count else column
    return np.asarray(filled.to_numpy(), np.int64)


def bools(column: pa.ChunkedArray) -> Any:
    """A column of booleans as an array."""
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
    most = int(np.prod(sizes))
    if most <= 1_000_000:
        there = np.flatnonzero(np.bincount(code, minlength=most))
        numbers = np.zeros(most, np.int64)
        numbers[there] = np.arange(len(there))
        dense = numbers[code]
    else:
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
