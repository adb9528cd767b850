"""Values of counters: in the unit of their track, added up where the track says that they are steps."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from wsformat.converters.perfetto.wire import Array, Field


class Counters:
    """Counter tracks.

    Args:
        known: unit, factor and whether values are steps, by uuid of the track.
        uuid: track of each event.
        state: state of the sequence of each event: steps begin anew with it.
    """

    def __init__(self, known: Mapping[int, tuple[str, int, bool]], uuid: Array, state: Array) -> None:
        self.known, self.uuid, self.state = known, uuid, state

    def unit(self, event: int) -> str:
        """Unit of the counter of an event."""
        return self.known.get(int(self.uuid[event]), ("", 1, False))[0]

    def values(self, whole: Field, real: Field, rows: Array, t: Array, count: int) -> tuple[tuple[Array, Array], Array]:
        """Values of events as int64 and as doubles, and which are int64.

        Args:
            whole, real: fields of events.
            rows: events, in the order of the file.
            t: time of each event.
            count: number of events.
        """
        place, other = whole.first_place(count)[rows], real.first_place(count)[rows]
        integers, doubles = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.float64)
        has = place >= 0
        integers[has] = np.ascontiguousarray(whole.value[place[has]]).view(np.int64)
        is_real = ~has & (other >= 0)
        doubles[is_real] = np.ascontiguousarray(real.value[other[is_real]]).view(np.float64)
        uuid, state = self.uuid[rows], self.state[rows]
        for track in np.unique(uuid).tolist():
            _, factor, steps = self.known.get(track, ("", 1, False))
            mine = np.flatnonzero(uuid == track)
            if steps:
                for one in np.unique(state[mine]).tolist():
                    part = mine[state[mine] == one]
                    integers[part], doubles[part] = np.cumsum(integers[part]), np.cumsum(doubles[part])
            if factor != 1:
                integers[mine] *= factor
                doubles[mine] *= factor
        return (integers, doubles), ~is_real
