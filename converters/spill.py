"""Arrow tables kept aside while a large file is read: in memory up to a limit, then in an unnamed temporary file."""

from __future__ import annotations

import os
import tempfile
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pyarrow as pa

MEMORY_BYTES = 96 << 20


class Spill:
    """Keeps tables; the temporary file goes away with the last reader."""

    def __init__(self, limit: int = MEMORY_BYTES) -> None:
        self.limit = limit
        self.held = 0
        self.file: Any = None
        self.lock = threading.Lock()

    def keep(self, table: pa.Table) -> Callable[[], pa.Table]:
        """Keep a table; what comes back reads it again."""
        if self.held + table.nbytes <= self.limit:
            self.held += table.nbytes
            return lambda: table
        if self.file is None:
            self.file = tempfile.TemporaryFile(prefix="wsformat-")  # noqa: SIM115 (closed with this object)
            weakref.finalize(self, self.file.close)
        offset = self.file.seek(0, os.SEEK_END)
        with pa.ipc.new_stream(self.file, table.schema) as writer:
            writer.write_table(table)
        self.file.flush()
        size = self.file.tell() - offset
        return lambda: self._read(offset, size)

    def _read(self, offset: int, size: int) -> pa.Table:
        with self.lock:
            self.file.seek(offset)
            data = self.file.read(size)
        return pa.ipc.open_stream(data).read_all()
