"""Launches as ncu lists them: identity, geometry, and the few facts that other tables need."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wsformat.tables import conform

TRIPLE = r"^\(?\s*(?P<x>\d+)\s*[,;]\s*(?P<y>\d+)\s*[,;]\s*(?P<z>\d+)\s*\)?$"
ATTRIBUTES = {
    "Process Name": "process_name", "Host Name": "host_name", "Device": "device", "CC": "compute_capability",
    "Kernel Time": "kernel_time", "push_pop": "nvtx_push_pop", "start_stop": "nvtx_start_stop",
    "File Path": "source_file", "Function Name": "function",
}  # fmt: skip
COLUMNS = ("ID", "Process ID", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size", *ATTRIBUTES)
FACTS = {
    "gpu__time_duration.sum": "duration", "Duration": "duration",
    "launch__cluster_dim_x": "cluster_x", "launch__cluster_dim_y": "cluster_y", "launch__cluster_dim_z": "cluster_z",
    "launch__sm_count": "sm_count", "# SMs": "sm_count", "device__attribute_multiprocessor_count": "sm_count",
    "device__attribute_display_name": "device_name",
}  # fmt: skip
"""Names (metric or details-page label) whose value also fills a column of launches or captures."""


@dataclass(slots=True)
class Fact:
    """Values of one fact for several launches."""

    fact: str
    launch: np.ndarray[Any, np.dtype[np.int32]]
    texts: pa.StringArray
    unit: str


@dataclass(slots=True)
class Launches:
    """Launches in file order, column by column as text.

    Attributes:
        count: how many so far.
        parts: per call of :meth:`add` the columns that were printed.
        facts: see :data:`FACTS`.
    """

    count: int = 0
    parts: list[pa.Table] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)

    def add(self, columns: dict[str, Any], rows: int, source: str) -> int:
        """Add launches; returns the number of the first."""
        first = self.count
        filled = {name: columns.get(name, pa.repeat(pa.scalar("", pa.string()), rows)) for name in COLUMNS}
        self.parts.append(pa.table({**filled, "source": pa.repeat(pa.scalar(source, pa.string()), rows)}))
        self.count += rows
        return first

    def text(self) -> pa.Table:
        """Everything as printed, one row a launch."""
        if not self.parts:
            return pa.table({name: pa.array([], pa.string()) for name in (*COLUMNS, "source")})
        return pa.concat_tables(self.parts).combine_chunks()


def integers(texts: pa.ChunkedArray) -> Any:
    """Plain integers, -1 where there is none."""
    plain = pc.match_substring_regex(texts, r"^\d{1,9}$")
    return pc.fill_null(pc.if_else(plain, texts, None).cast(pa.int32()), -1)


def triples(texts: pa.ChunkedArray) -> list[Any]:
    """The three numbers of ``(x, y, z)``, -1 each where there are none."""
    coded = texts.combine_chunks().dictionary_encode()
    if isinstance(coded, pa.ChunkedArray):
        coded = coded.combine_chunks()
    parts = pc.extract_regex(coded.dictionary, TRIPLE)
    indices = coded.indices
    return [
        pc.fill_null(pc.struct_field(parts, i).cast(pa.int64()), -1).cast(pa.int32()).take(indices) for i in range(3)
    ]


def launch_table(text: pa.Table, capture: str, filled: dict[str, Any], errors: bool) -> pa.Table:
    """The table ``launches``.

    Args:
        text: from :meth:`Launches.text`.
        capture: capture_id.
        filled: columns from facts: duration_ns, cluster_x and so on.
        errors: the files hold error messages, so that success is not certain.
    """
    rows = text.num_rows
    block, grid = triples(text["Block Size"]), triples(text["Grid Size"])
    never_ran = pc.and_(pc.equal(grid[0], 0), pc.equal(grid[1], 0))
    columns = {
        "capture_id": pa.repeat(pa.scalar(capture), rows),
        "launch": pa.array(np.arange(rows, dtype=np.int32)),
        "kernel": text["Kernel Name"],
        "kind": pa.repeat(pa.scalar("profiled"), rows),
        "tool": pa.repeat(pa.scalar("ncu"), rows),
        "source": text["source"],
        "native_id": text["ID"],
        "process_id": integers(text["Process ID"]),
        "context": text["Context"],
        "stream": text["Stream"],
        "status": pc.if_else(never_ran, "failed", "unknown" if errors else "ok"),
        **{f"grid_{axis}": grid[i] for i, axis in enumerate("xyz")},
        **{f"block_{axis}": block[i] for i, axis in enumerate("xyz")},
        **filled,
    }
    return conform("launches", pa.table(columns))


def attribute_rows(text: pa.Table, capture: str) -> pa.Table:
    """What ncu prints of a launch and no column holds, as rows of ``attributes``."""
    parts = []
    for printed, name in ATTRIBUTES.items():
        column = text[printed]
        there = np.flatnonzero(pc.not_equal(column, "").to_numpy(zero_copy_only=False))
        if len(there):
            parts.append(
                pa.table(
                    {
                        "row_key": pa.array(there).cast(pa.string()),
                        "name": pa.repeat(pa.scalar(f"ncu.{name}"), len(there)),
                        "value": column.take(pa.array(there)),
                    }
                )
            )
    if not parts:
        return conform("attributes", pa.table({"row_key": pa.array([], pa.string())}))
    joined = pa.concat_tables(parts)
    for name, value in (("capture_id", capture), ("table_name", "launches"), ("type", "text")):
        joined = joined.append_column(name, pa.repeat(pa.scalar(value), joined.num_rows))
    return conform("attributes", joined)
