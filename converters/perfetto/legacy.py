"""What older writers of Perfetto traces say in other words: phases of Chrome's format, times relative to a thread's."""

from __future__ import annotations

import numpy as np

from wsformat.converters.perfetto.clocks import running
from wsformat.converters.perfetto.tracks import Interned
from wsformat.converters.perfetto.wire import Array, Field, fields

BEGIN, END, INSTANT, COUNTER, COMPLETE = 1, 2, 3, 4, 5
L_NAME_IID, L_PHASE, L_LENGTH_US, L_ID, L_SCOPE, L_LOCAL, L_GLOBAL = 1, 2, 3, 6, 7, 10, 11
PHASES = {"B": BEGIN, "E": END, "i": INSTANT, "I": INSTANT, "R": INSTANT, "X": COMPLETE} | {
    "b": BEGIN, "e": END, "S": BEGIN, "F": END, "n": INSTANT, "T": INSTANT, "p": INSTANT,
}  # fmt: skip
TH_REFERENCE_US = 6


class Legacy:
    """The legacy parts of events.

    Args:
        data: bytes of the trace.
        field: the field of events that holds them.
        count: number of events.

    Attributes:
        name_iid: interned name, 0 none.
        length: of complete events, ns.
        stack: who shares a stack on one track: 0, or a number for each id of asynchronous events.
    """

    def __init__(self, data: Array, field: Field, count: int) -> None:
        found, _ = fields(
            data, field.value.astype(np.int64), field.end,
            {L_NAME_IID, L_PHASE, L_LENGTH_US, L_ID, L_SCOPE, L_LOCAL, L_GLOBAL},
        )  # fmt: skip
        here = len(field.owner)
        self.name_iid, self.length, self.stack, self.phase = (np.zeros(count, np.int64) for _ in range(4))
        self.name_iid[field.owner] = found[L_NAME_IID].last(here).astype(np.int64)
        self.length[field.owner] = found[L_LENGTH_US].last(here).astype(np.int64) * 1000
        self.phase[field.owner] = found[L_PHASE].last(here).astype(np.int64)
        ids = np.stack([found[number].last(here) for number in (L_ID, L_LOCAL, L_GLOBAL)])
        some = np.flatnonzero(np.any([found[number].first_place(here) >= 0 for number in (L_ID, L_LOCAL, L_GLOBAL)], 0))
        if some.size:
            code = np.unique(ids[:, some], axis=1, return_inverse=True)[1].reshape(-1)
            self.stack[field.owner[some]] = code + 1
        self.length[self.phase != ord("X")] = 0
        self.stack[~np.isin(self.phase, [ord(letter) for letter in "beSF"])] = 0

    def kinds(self, kind: Array, lost: dict[str, int]) -> Array:
        """What each event is: its type, or what its phase says; 0 unknown.

        Args:
            kind: types as written.
            lost: takes counts of phases that are not read.
        """
        result = np.where(np.isin(kind, (BEGIN, END, INSTANT, COUNTER)), kind, 0)
        bare = result == 0
        for phase in np.unique(self.phase[bare & (self.phase > 0)]).tolist():
            mine = bare & (self.phase == phase)
            letter = chr(phase) if 32 < phase < 127 else "?"
            result[mine] = PHASES.get(letter, 0)
            if letter not in PHASES:
                lost[f"legacy event of phase {letter!r}"] = int(mine.sum())
                result[mine] = -1
        return result


def older_times(
    data: Array, threads: Field, delta: Field, absolute: Field, interned: Interned, where: Array
) -> tuple[Array, Array]:
    """Times in ns of events that say them in microseconds, relative to the event before or absolute, and which do.

    Args:
        data: bytes of the trace.
        threads: the field of packets that describes the thread of a sequence, with the time to begin at.
        delta, absolute: the fields of events.
        interned: sequences.
        where: packet of each event.
    """
    count = len(where)
    found, _ = fields(data, threads.value.astype(np.int64), threads.end, {TH_REFERENCE_US})
    start = found[TH_REFERENCE_US].last(len(threads.owner)).astype(np.int64) * 1000
    has_step, has_value = delta.first_place(count) >= 0, absolute.first_place(count) >= 0
    step = np.where(has_step, delta.last(count).astype(np.int64) * 1000, 0)
    resets = dict(zip(threads.owner.tolist(), start.tolist(), strict=True))
    result = np.zeros(count, np.int64)
    for one in np.unique(interned.sequence[where[has_step]]).tolist():
        mine = np.flatnonzero(has_step & (interned.sequence[where] == one))
        own = {packet: value for packet, value in resets.items() if interned.sequence[packet] == one}
        result[mine] = running(where[mine], np.zeros(len(mine), np.int64), step[mine], own)
    result = np.where(has_value, absolute.last(count).astype(np.int64) * 1000, result)
    return result, has_step | has_value
