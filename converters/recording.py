"""What an importer of another tool's trace found; :mod:`wsformat.converters.recording_bundle` makes a bundle of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

Array = np.ndarray[Any, Any]
Row = dict[str, Any]


def _none() -> Array:
    return np.zeros(0, np.int64)


@dataclass
class Spans:
    """Columns of equal length. ``name`` and ``category`` point into ``Recording.names`` (-1 is '')."""

    lane: Array = field(default_factory=_none)
    end_lane: Array = field(default_factory=_none)
    name: Array = field(default_factory=_none)
    category: Array = field(default_factory=_none)
    t0: Array = field(default_factory=_none)
    t1: Array = field(default_factory=_none)
    complete: Array = field(default_factory=lambda: np.zeros(0, bool))

    def __len__(self) -> int:
        return len(self.lane)


@dataclass
class Instants:
    """Columns of equal length; ``payload`` holds texts, their types are in ``Recording.payload_types``."""

    lane: Array = field(default_factory=_none)
    name: Array = field(default_factory=_none)
    t: Array = field(default_factory=_none)
    payload: pa.Array | None = None

    def __len__(self) -> int:
        return len(self.lane)


@dataclass
class Edges:
    """Columns of equal length; lanes and spans are those of the recording, -1 lost; ``kind`` points into ``names``."""

    kind: Array = field(default_factory=_none)
    native_id: pa.Array | None = None
    from_lane: Array = field(default_factory=_none)
    from_span: Array = field(default_factory=_none)
    from_t: Array = field(default_factory=_none)
    to_lane: Array = field(default_factory=_none)
    to_span: Array = field(default_factory=_none)
    to_t: Array = field(default_factory=_none)

    def __len__(self) -> int:
        return len(self.kind)


@dataclass
class Recording:
    """What was read.

    Attributes:
        lanes: rows of the table lanes as far as known (``role`` where no mapping gives one), and ``process`` (a name,
            for mappings and viewers); ``skip`` leaves out one that nothing refers to.
        roles: rows of the table roles for the roles that lanes say themselves.
        names: pool of texts.
        spans, instants, edges: see there.
        payload_types: of an instant's name (index into names): '', int, float or text.
        payload_units: unit of those numbers, where known.
        clocks, anchors, launches: rows of those tables as far as known.
        attributes: (table, number in this recording (0 for captures), name, type, value).
        span_attributes: (name, numbers of spans, texts): JSON or text, many at once.
        span_texts: the same, too large to hold: (name, how many rows they weigh, function that gives (numbers of
            spans, texts) in parts).
        launch_columns: columns of further launches, after those of ``launches``, all of one length.
        findings: (subject, text).
        losses: see :data:`wsformat.provenance.LOSSES`.
        facts: columns of captures that the source says.
        completeness: of every lane that does not say its own.
    """

    lanes: list[Row] = field(default_factory=list)
    roles: list[Row] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    spans: Spans = field(default_factory=Spans)
    instants: Instants = field(default_factory=Instants)
    edges: Edges = field(default_factory=Edges)
    payload_types: dict[int, str] = field(default_factory=dict)
    payload_units: dict[int, str] = field(default_factory=dict)
    clocks: list[Row] = field(default_factory=list)
    anchors: list[Row] = field(default_factory=list)
    launches: list[Row] = field(default_factory=list)
    attributes: list[tuple[str, int, str, str, str]] = field(default_factory=list)
    span_attributes: list[tuple[str, Array, pa.Array]] = field(default_factory=list)
    span_texts: list[tuple[str, int, Callable[[], Iterator[tuple[Array, pa.Array]]]]] = field(default_factory=list)
    launch_columns: dict[str, Any] = field(default_factory=dict)
    findings: list[tuple[str, str]] = field(default_factory=list)
    losses: dict[str, int | str] = field(default_factory=dict)
    facts: Row = field(default_factory=dict)
    completeness: str = "unknown"
