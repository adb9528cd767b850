"""Column digests: count, sum and xor of an integer column, independent of encoding and engine.

They catch what a file hash cannot: a reader that decodes the right bytes into wrong numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

MASK = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class ColumnDigest:
    """Digest of one INT32, INT64 or BOOLEAN column (false 0, true 1).

    Attributes:
        count: number of values.
        sum: sum of the values modulo 2**64.
        xor: xor of the values, each sign-extended to 64 bits.
    """

    count: int = 0
    sum: int = 0
    xor: int = 0

    def plus(self, values: np.ndarray[Any, Any]) -> ColumnDigest:
        """Digest of this column with ``values`` (int32, int64 or bool) appended."""
        if values.size == 0:
            return self
        # Python integers carry the modulus; numpy's own sum would wrap in int64, which is the same modulo 2**64.
        total = int(values.sum(dtype=np.int64))
        xor = total & 1 if values.dtype == np.bool_ else int(np.bitwise_xor.reduce(values))
        return ColumnDigest(self.count + values.size, (self.sum + total) & MASK, (self.xor ^ xor) & MASK)

    def to_json(self) -> dict[str, Any]:
        """As in the manifest: the two 64-bit numbers as 16 lower-case hex digits."""
        return {"count": self.count, "sum": f"{self.sum:016x}", "xor": f"{self.xor:016x}"}


def digestible(schema: pa.Schema) -> list[str]:
    """Names of the columns that have a digest."""
    return [f.name for f in schema if f.type in (pa.int32(), pa.int64(), pa.bool_())]


def column_values(column: pa.ChunkedArray | pa.Array) -> list[np.ndarray[Any, Any]]:
    """Chunks of a null-free integer or boolean column as numpy arrays."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return [chunk.to_numpy(zero_copy_only=False) for chunk in chunks]


def add_table(digests: dict[str, ColumnDigest], data: pa.Table) -> dict[str, ColumnDigest]:
    """Digests after the rows of ``data``; columns are found by type, all of them null-free."""
    result = dict(digests)
    for name in digestible(data.schema):
        digest = result.get(name, ColumnDigest())
        for values in column_values(data.column(name)):
            digest = digest.plus(values)
        result[name] = digest
    return result
