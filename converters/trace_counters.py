"""Counters of a trace: how many lanes of a CTA are active and stalled, and every series of values that stamps hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import duckdb
import numpy as np
import pyarrow as pa

from wsformat.converters.trace_model import Array, Counters, Track
from wsformat.converters.trace_queries import SERIES, STATES
from wsformat.converters.trace_times import Axis

AFTER_LANES = 1_000_000
"""Rank of the first counter below its parent, so that lanes come first."""
STATE_NAMES = ("active lanes", "stalled lanes")

Name = Callable[[int, str, int], Track]
"""Makes the track of a counter: its parent, its name, its rank."""


class Steps:
    """Running sums of steps that come in parts, ordered by (key, t): rows where a sum changes.

    Every key's steps add up to 0, so one running sum serves all keys.
    """

    def __init__(self) -> None:
        self.held: tuple[Array, Array, Array] = (np.zeros(0, np.int64),) * 3
        self.value = 0

    def add(self, key: Array, t: Array, step: Array) -> tuple[Array, Array, Array]:
        """Take a part; gives (key, t, value from t on) of every moment that cannot change any more."""
        key, t, step = (np.concatenate([old, new]) for old, new in zip(self.held, (key, t, step), strict=True))
        if len(key) == 0:
            return key, t, step
        closed = np.flatnonzero((key != key[-1]) | (t != t[-1]))
        open_from = int(closed[-1]) + 1 if len(closed) else 0
        self.held = (key[open_from:], t[open_from:], step[open_from:])
        return self._changes(key[:open_from], t[:open_from], step[:open_from])

    def finish(self) -> tuple[Array, Array, Array]:
        """What is left."""
        rest, self.held = self.held, (np.zeros(0, np.int64),) * 3
        return self._changes(*rest)

    def _changes(self, key: Array, t: Array, step: Array) -> tuple[Array, Array, Array]:
        if len(key) == 0:
            return key, t, step
        value = self.value + np.cumsum(step)
        last = np.ones(len(t), dtype=bool)
        last[:-1] = (key[1:] != key[:-1]) | (t[1:] != t[:-1])
        key, t, value = key[last], t[last], value[last]
        before = np.concatenate([[self.value], value[:-1]])
        self.value = int(value[-1])
        changed = value != before
        return key[changed], t[changed], value[changed]


def states(
    connection: duckdb.DuckDBPyConnection, axis: Axis, base: int, cta_track: Array, name: Name, block: int
) -> Iterator[list[Track] | Counters]:
    """Steps of the lanes of every CTA of the part of the bundle that the connection shows.

    Args:
        connection: with the tables of :mod:`wsformat.converters.trace_queries`.
        axis, base: place ticks, and what to subtract.
        cta_track: per lane the track of its CTA.
        name: makes a counter's track.
        block: rows at a time.
    """
    known: dict[int, int] = {}
    steps = Steps()

    def given(key: Array, t: Array, value: Array) -> Iterator[list[Track] | Counters]:
        used, inverse = np.unique(key, return_inverse=True)
        fresh = [each for each in used.tolist() if each not in known]
        made = [name(each // 2, STATE_NAMES[each % 2], AFTER_LANES + each % 2) for each in fresh]
        known.update(zip(fresh, (track.track for track in made), strict=True))
        if made:
            yield made
        if len(key):
            track = np.array([known[each] for each in used.tolist()], dtype=np.int64)[inverse.reshape(-1)]
            yield Counters(track, t, value.astype(np.float64))

    rest: list[tuple[Array, Array, Array]] = []
    mixed = _several_clocks(connection)
    for batch in connection.sql(STATES).to_arrow_reader(block):
        n, stalled, t, step = (batch.column(at).to_numpy() for at in range(4))
        key = cta_track[n] * 2 + stalled
        part = (key, axis.place(n, t) - base, step.astype(np.int64))
        if mixed:
            rest.append(part)
        else:
            yield from given(*steps.add(*part))
    if rest:
        key, t, step = (np.concatenate(columns) for columns in zip(*rest, strict=True))
        order = np.lexsort((t, key))
        yield from given(*steps.add(key[order], t[order], step[order]))
    yield from given(*steps.finish())


def _several_clocks(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether lanes of one CTA have clocks of their own, so that ticks do not sort like times."""
    query = (
        "SELECT COUNT(*) FROM (SELECT capture_id, launch, cta FROM drawn_lane WHERE cta >= 0 "
        "GROUP BY capture_id, launch, cta HAVING COUNT(DISTINCT clock) > 1)"
    )
    ((count,),) = connection.execute(query).fetchall()
    return bool(count)


def series(
    connection: duckdb.DuckDBPyConnection,
    axis: Axis,
    base: int,
    lane_track: Array,
    name: Name,
    block: int,
    drop: Callable[[str, int], None],
) -> Iterator[list[Track] | Counters]:
    """Values that stamps of the part hold, a counter a lane and kind of stamp; ``drop`` counts those that are none."""
    known: dict[tuple[int, str], int] = {}
    for batch in connection.sql(SERIES).to_arrow_reader(block):
        value = batch.column("value").to_numpy()
        good = np.isfinite(value)
        drop("value that is no number", int((~good).sum()))
        kept = batch.filter(pa.array(good))
        n = kept.column("n").to_numpy()
        encoded = kept.column("name").dictionary_encode()
        texts = encoded.dictionary.to_pylist()
        keys, inverse = np.unique(np.stack([lane_track[n], encoded.indices.to_numpy()]), axis=1, return_inverse=True)
        pairs = [(lane, texts[code]) for lane, code in keys.T.tolist()]
        fresh = [pair for pair in pairs if pair not in known]
        made = [name(lane, text, AFTER_LANES + len(known) + index) for index, (lane, text) in enumerate(fresh)]
        known.update(zip(fresh, (track.track for track in made), strict=True))
        if made:
            yield made
        if len(n):
            track = np.array([known[pair] for pair in pairs], dtype=np.int64)[inverse.reshape(-1)]
            t = axis.place(n, kept.column("t").to_numpy()) - base
            yield Counters(track, t, kept.column("value").to_numpy())
