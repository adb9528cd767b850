"""A Chrome trace on its way to a recording."""

from __future__ import annotations

from dataclasses import dataclass, field

from wsformat.converters.chrome.scan import Trace
from wsformat.converters.chrome.units import Unit
from wsformat.converters.recording import Array, Recording


@dataclass
class Converted:
    """A recording with what a dialect needs to refine it.

    Attributes:
        recording: as for any writer.
        trace, unit: what it was made of.
        t: ticks of each event.
        span_row: the event that begins each span.
        ends: events that end spans, and those spans, where that is another event.
        process, thread: text of the ids of each lane.
    """

    recording: Recording
    trace: Trace
    unit: Unit
    t: Array
    span_row: Array
    process: list[str]
    thread: list[str]
    orphans: int = 0
    unclosed: int = 0
    backwards: int = 0
    ends: list[tuple[Array, Array]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
