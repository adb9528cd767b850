"""A progress bar on stderr, only where stderr is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wsformat.bundle import Progress


@contextmanager
def progress(doing: str) -> Iterator[Progress | None]:
    """Gives a function (what, done, total) that moves the bar, or None where nobody looks.

    Args:
        doing: such as 'import'.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    text = TextColumn("{task.description}", markup=False)
    count = TextColumn("{task.completed:,}", markup=False)
    with Progress(text, BarColumn(), count, TimeElapsedColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(doing, total=None)

        def advance(what: str, done: int, total: int) -> None:
            bar.update(task, description=f"{doing} {what}", completed=done, total=total if total >= 0 else None)

        yield advance
