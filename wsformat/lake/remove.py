"""Removing captures: a tombstone in the index hides them at once; compaction takes their rows away later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from wsformat.lake import catalog as catalogs
from wsformat.lake.add import write_files
from wsformat.lake.index import read_index, resolve
from wsformat.lake.layout import INDEX, Partition, new_id

if TYPE_CHECKING:
    from wsformat.lake.home import Lake


def remove(lake: Lake, wanted: Sequence[str]) -> list[str]:
    """Remove captures.

    A reader that is at work goes on with what it sees. The capture can be added again.

    Args:
        lake: where from.
        wanted: ids, how they begin, or labels.

    Returns:
        Their ids.

    Raises:
        BadRequest: no such capture, or several.
    """
    index = read_index(lake)
    rows = list(resolve(lake, index, wanted).values())
    captures = [row["capture_id"] for row in rows]
    parts: dict[str, Partition] = {}
    for row in rows:
        parts[row["capture_id"]] = Partition(row["lake_major"], row["lake_arch"], row["lake_month"])
        row["lake_removed"] = True
    for column in ("lake_major", "lake_arch", "lake_month"):
        for row in rows:
            del row[column]
    schema = pa.schema([field for field in catalogs.schema_of(INDEX, pa.schema([])) if field.name in rows[0]])
    extra = [pa.field(name, pa.infer_type([row[name] for row in rows])) for name in rows[0] if name not in schema.names]
    held = pa.Table.from_pylist(sorted(rows, key=lambda row: row["capture_id"]), pa.schema([*schema, *extra]))
    uris = write_files(lake, {INDEX: held}, parts, new_id(), {})
    catalogs.commit(lake.catalog, INDEX, add=uris[INDEX], why="remove")
    return captures
