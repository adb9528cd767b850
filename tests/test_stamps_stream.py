"""Streams: bounded work ahead of the writer, errors handed over, and which files the raw-buffer converter takes."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from wsformat import samples
from wsformat.bundle import Bundle
from wsformat.converters import raw_stamps, registry
from wsformat.digests import ColumnDigest
from wsformat.slot_file import SlotFile
from wsformat.tables import layout
from wsformat.writer import ahead


def test_ahead_gives_the_same_items_in_order_and_runs_two_ahead_at_most() -> None:
    made: list[int] = []

    def count() -> Iterator[int]:
        for n in range(20):
            made.append(n)
            yield n

    got = []
    for item in ahead(count(), depth=2):
        time.sleep(0.002)
        # One is held here, two wait, one is being made.
        assert len(made) <= item + 4
        got.append(item)
    assert got == list(range(20))


def test_ahead_works_in_one_other_thread() -> None:
    def where() -> Iterator[int]:
        for _ in range(5):
            yield threading.get_ident()

    assert len(set(ahead(where()))) == 1
    assert set(ahead(where())) != {threading.get_ident()}


def test_ahead_hands_over_errors_after_what_came_before() -> None:
    def broken() -> Iterator[int]:
        yield 1
        raise ValueError("two")

    items = ahead(broken())
    assert next(items) == 1
    with pytest.raises(ValueError, match="two"):
        next(items)


def test_ahead_stops_its_thread_when_it_is_closed() -> None:
    before = threading.active_count()
    items = ahead(iter(range(10**9)))
    assert next(items) == 0
    items.close()
    assert threading.active_count() == before


def test_a_stream_has_the_digests_and_row_groups_of_a_table_in_memory(tmp_path: Path) -> None:
    size = layout()["row_group_rows"]
    rows = 2 * size + 77
    t = np.cumsum(np.arange(rows) % 7)

    def part(low: int, high: int) -> pa.Table:
        ids, names = pa.repeat("c" * 26, high - low), pa.repeat("e", high - low)
        iteration = np.arange(low, high, dtype=np.int32)
        return pa.table({"capture_id": ids, "t": t[low:high], "event": names, "iteration": iteration})

    cuts = [0, 5, size + 3, size + 4, rows]
    streamed = Bundle.from_tables({"events": lambda: iter(part(a, b) for a, b in itertools.pairwise(cuts))})
    streamed = streamed.with_tables(
        {"captures": [{"capture_id": "c" * 26, "kind": "stamped", "completeness": "complete"}]}
    )
    whole = streamed.with_tables({"events": part(0, rows)})
    one, other = streamed.write(tmp_path / "a.wsformat"), whole.write(tmp_path / "b.wsformat")
    assert one.manifest.tables["events"]["columns"] == other.manifest.tables["events"]["columns"]
    assert one.manifest.tables["events"]["rows"] == rows
    assert one.manifest.tables["events"]["columns"]["t"] == ColumnDigest().plus(t).to_json()
    footer = pq.read_metadata(tmp_path / "a.wsformat" / "events.parquet")
    assert [footer.row_group(n).num_rows for n in range(footer.num_row_groups)] == [size, size, 77]


def test_a_stream_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def broken() -> Iterator[pa.Table]:
        yield pa.table({"capture_id": ["c" * 26]})
        raise RuntimeError("gone")

    with pytest.raises(RuntimeError, match="gone"):
        Bundle.from_tables({"events": broken}).write(tmp_path / "x.wsformat")
    assert list(tmp_path.iterdir()) == []


def test_slot_files_read_what_the_array_holds(tmp_path: Path) -> None:
    data = np.arange(2 * 3 * 4 * 5, dtype=">i4").reshape(2, 3, 4, 5)
    file = tmp_path / "x"
    file.write_bytes(b"head" + data.tobytes())
    held = SlotFile(file, data.dtype, 4, data.shape)
    assert np.array_equal(held.read(1, 1), data[1:2])
    assert np.array_equal(held.part(1).read(0, 3), data[1])
    assert np.array_equal(held.reshape(-1, 4, 5).read(2, 3), data.reshape(6, 4, 5)[2:5])
    assert (held.size, held.ndim, len(held)) == (120, 4, 2)


def test_every_sample_buffer_is_recognised_and_nothing_else_is() -> None:
    for name in samples.names():
        file = samples.path(name)
        expected = file.suffix in (".i32", ".npy")
        assert raw_stamps.sniff(registry.read_head(file), file) == expected, name


def test_files_of_other_tools_are_not_taken(captures: Path) -> None:
    for folder in ("peers", "ncu", "env"):
        for file in (captures / folder).iterdir():
            if file.is_file():
                assert not raw_stamps.sniff(registry.read_head(file), file), file.name


def test_files_of_other_people_are_not_taken(public: Path) -> None:
    for file in sorted(public.rglob("*")):
        if file.is_file():
            assert not raw_stamps.sniff(registry.read_head(file), file), file.name
