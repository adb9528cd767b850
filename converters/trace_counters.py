"""Counters of a trace: how many lanes of a CTA are active and stalled, and every series of values that stamps hold."""

from __future__ import annotations

import duckdb
import numpy as np

from wsformat.converters.trace_model import Array, Counters, Track
from wsformat.converters.trace_queries import SERIES, STATES

AFTER_LANES = 1_000_000
"""Rank of the first counter below its parent, so that lanes come first."""


def counters(
    connection: duckdb.DuckDBPyConnection,
    tracks: list[Track],
    lane_track: Array,
    cta_track: Array,
    base: int,
    dropped: dict[str, int],
) -> Counters:
    """Steps of every counter; adds a track for each.

    Args:
        connection: with the tables of :mod:`wsformat.converters.trace_queries`.
        tracks: gets the counters' tracks.
        lane_track, cta_track: per drawn lane its track, and that of its CTA (0 outside CTAs).
        base: time to subtract.
        dropped: counts values that are no number.
    """
    found = connection.sql(STATES).to_arrow_table()
    parts = []
    if found.num_rows:
        columns = [found.column(name).to_numpy() for name in ("ord", "stalled", "t0", "t1")]
        parts.append(_states(tracks, cta_track[columns[0]], columns[1], columns[2] - base, columns[3] - base))
    series = connection.sql(SERIES).to_arrow_table()
    if series.num_rows:
        value = series.column("value").to_numpy()
        good = np.isfinite(value)
        if not good.all():
            dropped["value that is no number"] = int((~good).sum())
        series = series.filter(good)
        parent = lane_track[series.column("ord").to_numpy()]
        encoded = series.column("name").combine_chunks().dictionary_encode()
        code = encoded.indices.to_numpy()
        keys, inverse = np.unique(np.stack([parent, code]), axis=1, return_inverse=True)
        first = len(tracks) + 1
        texts = encoded.dictionary.to_pylist()
        for lane, name in keys.T.tolist():
            rank = AFTER_LANES + len(tracks)
            tracks.append(Track(len(tracks) + 1, lane, texts[name], rank, "counter", tracks[lane - 1].capture))
        parts.append(
            Counters(
                first + inverse.reshape(-1), series.column("t").to_numpy() - base, series.column("value").to_numpy()
            )
        )
    if not parts:
        empty = np.zeros(0, dtype=np.int64)
        return Counters(empty, empty, empty.astype(np.float64))
    return Counters(
        np.concatenate([part.track for part in parts]),
        np.concatenate([part.t for part in parts]),
        np.concatenate([part.value for part in parts]),
    )


def _states(tracks: list[Track], parent: Array, stalled: Array, t0: Array, t1: Array) -> Counters:
    ctas, cta = np.unique(parent, return_inverse=True)
    key = cta.astype(np.int64) * 2 + stalled
    key, t, value = steps(key, t0, t1)
    used, number = np.unique(key, return_inverse=True)
    first = len(tracks) + 1
    for each in used.tolist():
        place = int(ctas[each // 2])
        name = "stalled lanes" if each % 2 else "active lanes"
        tracks.append(Track(len(tracks) + 1, place, name, AFTER_LANES + each % 2, "counter", tracks[place - 1].capture))
    return Counters(first + number, t, value.astype(np.float64))


def steps(key: Array, t0: Array, t1: Array) -> tuple[Array, Array, Array]:
    """How many intervals of each key are open: (key, t, value from t on), only where the value changes."""
    low = int(t0.min())
    shift = max(1, int(t1.max() - low).bit_length())
    both = np.concatenate([key, key])
    t = np.concatenate([t0, t1])
    delta = np.ones(len(t), dtype=np.int64)
    delta[len(key) :] = -1
    if shift + int(key.max()).bit_length() + 1 < 63:
        # One integer that sorts by key, then time, and says in its lowest bit what happens: several times faster.
        packed = np.sort(((both << shift) | (t - low)) << 1 | (delta > 0))
        delta = np.where(packed & 1, 1, -1)
        both, t = packed >> (shift + 1), ((packed >> 1) & ((1 << shift) - 1)) + low
    else:
        order = np.lexsort((t, both))
        both, t, delta = both[order], t[order], delta[order]
    # Every key ends at 0, so one running sum serves all.
    value = np.cumsum(delta)
    last = np.ones(len(t), dtype=bool)
    last[:-1] = (both[1:] != both[:-1]) | (t[1:] != t[:-1])
    both, t, value = both[last], t[last], value[last]
    before = np.concatenate([[0], value[:-1]])
    changed = value != before
    return both[changed], t[changed], value[changed]
