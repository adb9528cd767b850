"""Ctrl-C while DuckDB works: its engine does not look at Python's signals, so a thread tells it to stop."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

INTERRUPTED = 130
MESSAGE = "interrupted; nothing was left half-written"
"""Steps that were done before, such as the bundles of a demo or the batches of an addition, stay."""
PATIENCE = 5.0
"""Seconds after Ctrl-C in which a command may tidy up, before the process ends anyway."""

_working: list[duckdb.DuckDBPyConnection] = []
_pressed = threading.Event()


@contextmanager
def interruptible(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Queries on this connection end at Ctrl-C, instead of running on to their end."""
    _working.append(connection)
    try:
        yield
    finally:
        _working.remove(connection)


def pressed() -> bool:
    """Whether there was a Ctrl-C; a library may have swallowed it, and fail later over what it left half-done."""
    return _pressed.is_set()


def listen() -> None:
    """Start the thread; once, by the process that is the command line. Does nothing where Ctrl-C is ignored."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(reader, writer), name="ctrl-c", daemon=True).start()


def _watch(reader: socket.socket, _writer: socket.socket) -> None:
    # The writer is held here so that its descriptor stays open as long as the thread lives.
    while reader.recv(1)[0] != signal.SIGINT:
        pass
    _pressed.set()
    for connection in list(_working):
        with suppress(Exception):
            connection.interrupt()
    reader.settimeout(PATIENCE)
    with suppress(TimeoutError):
        reader.recv(1)
    print(f"error: {MESSAGE}", file=sys.stderr, flush=True)
    os._exit(INTERRUPTED)
