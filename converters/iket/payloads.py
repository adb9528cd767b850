"""What lies between a range's ends: payloads, and events of ranges that have more than two."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from wsformat.converters import decimal_text
from wsformat.converters.json_members import Members, gather, indices, split
from wsformat.converters.recording import Array, Instants, Spans

if TYPE_CHECKING:
    from wsformat.converters.iket.decode import State

ENDS = ("payload.begin", "payload.end")


def internal_events(state: State, text: Array, ranges: Members, keep: Array, spans: Spans, offset: int) -> None:
    """Add payloads of begins and ends as attributes of spans, and the events between as instants.

    Args:
        state: takes them.
        text, ranges: the list of ranges.
        keep: the ranges that became spans, in order.
        spans: those spans, whose first will be number ``state.count``.
        offset: byte of the text in the file.
    """
    begin, end = (value[keep] for value in ranges.of(text, b"internalEvents"))
    there = np.flatnonzero((begin >= 0) & (end - begin > 2))
    if not there.size:
        return
    # One list of all events: the insides of the lists, with commas between.
    low, high = begin[there] + 1, end[there]
    inner = text[indices(low, high)].copy()
    stops = np.cumsum(high - low)
    inner[stops - 1] = ord(",")
    events = split(inner, f"{state.where}: internal events of ranges", offset)
    owner = np.searchsorted(stops, events.begin, side="right")
    first = np.concatenate([[True], owner[1:] != owner[:-1]])
    last = np.concatenate([owner[1:] != owner[:-1], [True]])
    value_begin, value_end = events.of(inner, b"payloadVal")
    for chosen, name in zip((first, last), ENDS, strict=True):
        hit = np.flatnonzero(chosen & (value_begin >= 0))
        if hit.size:
            values = gather(inner, value_begin[hit], value_end[hit]).cast(pa.string())
            state.recording.span_attributes.append((name, state.count + there[owner[hit]], values))
    between = np.flatnonzero(~first & ~last)
    if between.size:
        times = decimal_text.parse(inner, *(at[between] for at in events.of(inner, b"timestamp")))
        good = between[~times.bad]
        state.bad["event within a range without a time"] += int(times.bad.sum())
        span = there[owner[good]]
        names = [state.name(f"{state.recording.names[code]}.between") for code in spans.name[span].tolist()]
        payload = pa.repeat("", good.size)
        shown = value_begin[good] >= 0
        if shown.any():
            low, high = np.where(shown, value_begin[good], 0), np.where(shown, value_end[good], 0)
            payload = gather(inner, low, high).cast(pa.string())
            state.recording.payload_types |= dict.fromkeys(names, "text")
        state.instants.append(Instants(spans.lane[span], np.array(names, np.int64), times.whole[~times.bad], payload))
