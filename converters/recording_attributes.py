"""The table attributes of a recording. Arguments of millions of spans are put in order on disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import gettempdir
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa

from wsformat.converters.recording import Array, Recording
from wsformat.derive import run
from wsformat.tables import rows_to_table

WHOLE = 1 << 18
"""Tables of at most this many rows are made at once."""
PART = 1 << 17
MEMORY_LIMIT = "96MB"
"""For putting more than that in order; the rest goes to the system's temporary folder."""
# DuckDB takes NaN, Infinity and commas too many for JSON; the standard does not.
KIND = r"""CASE WHEN json_valid(value) AND NOT regexp_matches(value, '[:,\[]\s*-?(NaN|Infinity|nan|inf)|,\s*[\]}]')
           THEN 'json' ELSE 'text' END"""


def attribute_table(recording: Recording, rows: Sequence[dict[str, Any]], place: Array, capture: str) -> Any:
    """All attributes.

    Args:
        recording: with attributes of spans.
        rows: attributes of other tables than spans.
        place: the span_id of each span.
        capture: capture_id.
    """
    schema = rows_to_table("attributes", []).schema
    count = sum(len(spans) for _, spans, _ in recording.span_attributes) + sum(n for _, n, _ in recording.span_texts)
    few = rows_to_table("attributes", rows)

    def table(found: pa.Table) -> pa.Table:
        same = {"capture_id": pa.repeat(capture, len(found)), "table_name": pa.repeat("spans", len(found))}
        return pa.table({**same, **{name: found.column(name) for name in found.column_names}}).select(schema.names)

    def parts() -> Iterator[pa.RecordBatch]:
        for name, spans, values in recording.span_attributes:
            yield _batch(name, place[spans], values)
        for name, _, read in recording.span_texts:
            for spans, values in read():
                yield _batch(name, place[spans], values)

    if count <= WHOLE:
        held = [part for part in parts() if len(part)]
        if not held:
            return few
        with _connection() as connection:
            connection.register("part", pa.Table.from_batches(held))
            found = run(connection, f"SELECT row_key, name, {KIND} AS type, value FROM part")
        return pa.concat_tables([few, table(found).cast(schema)])
    keys = [("table_name", "ascending"), ("row_key", "ascending"), ("name", "ascending")]

    def batches() -> Iterator[pa.Table]:
        yield few.sort_by(keys)  # of tables whose names come before spans
        with _connection() as connection:
            connection.register("part", pa.RecordBatchReader.from_batches(_batch("", place[:0], None).schema, parts()))
            query = f"SELECT row_key, name, {KIND} AS type, value FROM part ORDER BY row_key, name"
            for found in connection.sql(query).to_arrow_reader(PART):
                yield table(pa.Table.from_batches([found])).cast(schema)

    return batches


def _batch(name: str, span_id: Array, values: Any) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "row_key": pa.array(span_id.astype(np.int64)).cast(pa.string()),
            "name": pa.repeat(name, len(span_id)),
            "value": pa.array([], pa.string()) if values is None else values.cast(pa.string()),
        }
    )


def _connection() -> Any:
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET preserve_insertion_order = true")
    connection.execute("SET threads = 1")  # each would sort in memory of its own
    connection.execute("SET memory_limit = ?", [MEMORY_LIMIT])
    connection.execute("SET temp_directory = ?", [str(Path(gettempdir()) / f"wsformat-{uuid4().hex}")])
    return connection
