"""The tree of a trace's rows: capture > launch (or process) > SM > CTA > lane > row of its own for what crosses."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import duckdb
import numpy as np

from wsformat.converters.trace_model import Array, Facts, Track
from wsformat.converters.trace_queries import ROWS

ROWS_AT_A_TIME = 10_000


class Tree:
    """Numbers tracks from 1 in drawing order.

    Attributes:
        lane_track, cta_track: per lane its track, and that of its CTA or of whatever holds it.
        lane_name: per lane its name.
        count: tracks so far.
    """

    def __init__(self, lanes: int) -> None:
        self.lane_track: Array = np.zeros(lanes, dtype=np.int64)
        self.cta_track: Array = np.zeros(lanes, dtype=np.int64)
        self.count = 0
        self.children: dict[int, int] = {}
        self.path: list[tuple[Any, Track]] = []
        self.levels: dict[tuple[int, int], int] = {}
        self.lane_name = [""] * lanes

    def _new(self, parent: Track | None, name: str, kind: str) -> Track:
        above = parent.track if parent else 0
        rank = self.children.get(above, 0)
        self.children[above] = rank + 1
        self.count += 1
        return Track(self.count, above, name, rank, kind, parent.name if parent else "")

    def _enter(self, depth: int, key: Any, name: str, kind: str, made: list[Track]) -> None:
        """Go to a track at that depth of the path, a new one when the key differs from the last one there."""
        if len(self.path) > depth and self.path[depth][0] == key:
            return
        del self.path[depth:]
        track = self._new(self.path[-1][1] if self.path else None, name, kind)
        self.path.append((key, track))
        made.append(track)

    def rows(
        self, connection: duckdb.DuckDBPyConnection, facts: dict[int, dict[str, str]]
    ) -> Iterator[list[Track] | Facts]:
        """Tracks of all lanes and of what holds them, and the facts of every capture after its track.

        Args:
            connection: with ``drawn_lane``.
            facts: per number of a capture what is known about it.
        """
        said: set[int] = set()
        for batch in connection.sql(ROWS).to_arrow_reader(ROWS_AT_A_TIME):
            made: list[Track] = []
            captures: list[Facts] = []
            for row in batch.to_pylist():
                self._row(row, made)
                if row["nth"] not in said:
                    said.add(row["nth"])
                    captures.append(Facts(self.path[0][1].track, row["nth"], facts.get(row["nth"], {})))
            yield made
            yield from captures
        self.path.clear()

    def _row(self, row: dict[str, Any], made: list[Track]) -> None:
        self._enter(0, row["nth"], root_name(row), "capture", made)
        depth = 1
        if row["launch"] >= 0:
            self._enter(depth, ("launch", row["launch"]), launch_name(row), "launch", made)
            depth += 1
        elif row["process_id"] >= 0:
            self._enter(depth, ("process", row["process_id"]), f"process {row['process_id']}", "process", made)
            depth += 1
        if row["cta"] >= 0:
            if row["sm"] >= 0:
                self._enter(depth, ("sm", row["sm"]), f"SM {row['sm']}", "sm", made)
                depth += 1
            self._enter(depth, ("cta", row["cta"]), f"CTA {row['cta']}", "cta", made)
            depth += 1
        del self.path[depth:]
        self.cta_track[row["n"]] = self.path[-1][1].track
        name = lane_name(row)
        self.lane_name[row["n"]] = sys.intern(name)
        track = self._new(self.path[-1][1], name, "lane")
        made.append(track)
        self.lane_track[row["n"]] = track.track

    def overlap(self, n: int, level: int, made: list[Track]) -> int:
        """Track of the spans of a lane that cross others, made when it is first asked for."""
        if (n, level) not in self.levels:
            lane, name = int(self.lane_track[n]), self.lane_name[n]
            self.count += 1
            made.append(Track(self.count, lane, f"{name} / overlap {level}", level - 1, "overlap", name))
            self.levels[n, level] = self.count
        return self.levels[n, level]

    def counter(self, parent: int, name: str, rank: int, above: str = "") -> Track:
        """A counter below a track."""
        self.count += 1
        return Track(self.count, parent, name, rank, "counter", above)


def root_name(row: dict[str, Any]) -> str:
    """What a capture is called: its kernel, with what tells it apart where it is one of several captures."""
    kernel = str(row["capture_kernel"] or row["capture_label"] or "capture")
    if row["captures"] == 1:
        return kernel
    label = str(row["capture_label"] or f"capture {row['nth']}")
    parts = [str(row["experiment"])] if row["experiments"] > 1 and row["experiment"] else []
    parts += [label] if label != kernel else []
    parts += [str(row["capture_id"])[:8]] if row["alike"] > 1 and row["capture_label"] else []
    return f"{kernel} [{' / '.join(parts)}]" if parts else kernel


def launch_name(row: dict[str, Any]) -> str:
    """What a launch is called; its kernel is named where the capture's kernel does not say it."""
    kind = f" ({row['launch_kind']})" if row["launch_kind"] else ""
    own = f": {row['kernel']}" if row["kernel"] not in ("", row["capture_kernel"]) else ""
    return f"launch {row['launch']}{kind}{own}"


def lane_name(row: dict[str, Any]) -> str:
    """What a lane is called: its role, else its name, else its number; with the warp where it is known."""
    name = "" if row["role"] == "unassigned" else str(row["role"])
    own = str(row["name"] or "")
    if not name and own:
        name = f"stream {own}" if row["lane_kind"] == "stream" and own.isdigit() else own
        if row["lane_kind"] == "host_thread" and own.isdigit():
            name = f"thread {own}"
    if row["warp"] >= 0:
        return name if name.endswith(f"warp {row['warp']}") else f"{name} warp {row['warp']}".strip()
    if not name:
        return f"thread {row['thread_id']}" if row["thread_id"] >= 0 else f"lane {row['lane']}"
    return name
