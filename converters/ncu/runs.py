"""Records that are read in one go, and the reading of their cells ahead of what is done with them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

from wsformat.converters.ncu.headers import Head
from wsformat.converters.ncu.segment import Rows, record_starts

SOURCE_BATCH_BYTES = 2 << 20
AHEAD = 2
Work = TypeVar("Work")


@dataclass(slots=True)
class Run:
    """Records of one table whose launches are complete, as far as the table's order allows.

    Attributes:
        head: the table, of the first block for a source page.
        data: the records' bytes; empty for a table that only begins.
        line: line number of the first one, from 1.
        plain: every record is one line.
        pages: blocks of a source page, and whether each is the one before it again, word by word.
    """

    head: Head
    data: bytes
    line: int
    plain: bool
    pages: list[tuple[Rows, bool]] = field(default_factory=list)


class _Pages:
    """Blocks of a source page that share a header, until there are enough of them."""

    def __init__(self) -> None:
        self.held: list[Rows] = []
        self.last: tuple[dict[str, str], bytes] | None = None

    def add(self, rows: Rows) -> bool:
        """Whether the rows went to the block that is being collected."""
        if self.held and self.held[-1].head is rows.head:
            block = self.held[-1]
            self.held[-1] = Rows(rows.head, block.data + rows.data, block.line, block.plain and rows.plain)
            return True
        return False

    def full(self, head: Head) -> bool:
        """Whether the collected blocks must go before a block under ``head``."""
        size = sum(len(block.data) for block in self.held)
        return bool(self.held) and (self.held[0].head.cells != head.cells or size > SOURCE_BATCH_BYTES)

    def flush(self) -> Iterator[Run]:
        """The collected blocks as one run."""
        marked = []
        for block in self.held:
            again = (block.head.preamble, block.data) == self.last
            self.last = None if again else (block.head.preamble, block.data)
            marked.append((block, again))
        self.held = []
        fresh = [block for block, again in marked if not again]
        if marked:
            data = b"".join(block.data for block in fresh)
            yield Run(marked[0][0].head, data, marked[0][0].line, all(b.plain for b in fresh), marked)


def runs(segments: Iterator[Rows]) -> Iterator[Run]:
    """Join segments so that no launch of a long table is cut, and small blocks of a source page go together."""
    held: Rows | None = None
    pages = _Pages()
    for rows in segments:
        head = rows.head
        if held is not None and held.head is not head:
            yield Run(held.head, held.data, held.line, held.plain)
            held = None
        if head.kind != "source":
            yield from pages.flush()
        if not rows.data:
            yield Run(head, b"", rows.line, True)
        elif head.kind == "source":
            if not pages.add(rows):
                if pages.full(head):
                    yield from pages.flush()
                pages.held.append(rows)
        elif head.kind == "long":
            if held is not None:
                rows = Rows(head, held.data + rows.data, held.line, held.plain and rows.plain)
            cut = last_launch(rows)
            if cut > 0:
                yield Run(head, rows.data[:cut], rows.line, rows.plain)
            held = Rows(head, rows.data[cut:], rows.line + rows.data.count(b"\n", 0, cut), rows.plain)
        else:
            yield Run(head, rows.data, rows.line, rows.plain)
    if held is not None:
        yield Run(held.head, held.data, held.line, held.plain)
    yield from pages.flush()


def last_launch(rows: Rows) -> int:
    """Where the records of the last launch begin: more of them may follow in the next block."""
    data = rows.data
    begin = data.rfind(b"\n", 0, len(data) - 1) + 1 if rows.plain else int(record_starts(data)[-1])
    mark = data[begin : data.find(rows.head.delimiter.encode(), begin) + 1]
    for before in _back(data, begin) if rows.plain else reversed(record_starts(data)[:-1].tolist()):
        if not data.startswith(mark, before):
            return begin
        begin = before
    return 0


def _back(data: bytes, begin: int) -> Iterator[int]:
    """Starts of lines before ``begin``, last first."""
    while begin > 0:
        begin = data.rfind(b"\n", 0, begin - 1) + 1
        yield begin


def ahead(
    source: Iterator[Run], read: Callable[[Run], Any], finish: Callable[[Run, Any], Work]
) -> Iterator[tuple[Run, Work | None]]:
    """The runs with what became of their records, while later ones are found and read in other threads.

    Args:
        source: runs; only one thread at a time asks for the next.
        read: records to cells; several at a time.
        finish: the cells to what is given; in the order of the runs, one at a time.
    """
    waiting: deque[tuple[Run, Future[Work] | None]] = deque()
    with ThreadPoolExecutor(1) as finder, ThreadPoolExecutor(2) as reader, ThreadPoolExecutor(1) as finisher:
        coming: Future[Run | None] = finder.submit(next, source, None)
        while (run := coming.result()) is not None:
            coming = finder.submit(next, source, None)
            done = None
            if run.data:
                done = finisher.submit(_finish, finish, run, reader.submit(read, run))
            waiting.append((run, done))
            if len(waiting) > AHEAD:
                yield _done(waiting.popleft())
        while waiting:
            yield _done(waiting.popleft())


def _finish(finish: Callable[[Run, Any], Work], run: Run, cells: Future[Any]) -> Work:
    return finish(run, cells.result())


def _done(item: tuple[Run, Future[Any] | None]) -> tuple[Run, Any]:
    run, future = item
    return run, None if future is None else future.result()
