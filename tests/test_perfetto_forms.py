"""Forms of Perfetto traces: compressed packets, clocks that count, counters with units, older words."""

from __future__ import annotations

import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from perfetto_bytes import BEGIN, COUNTER, END, INSTANT, event, field, packet, save, track
from trace_clients import query
from trace_import_case import brief, findings, load

from wsformat.bundle import Bundle

INNER = track(1, "a") + event(10, BEGIN, 1, field(23, "x")) + event(20, END, 1)
MONOTONIC_TO_BOOT = packet(
    field(6, field(1, field(1, 3) + field(2, 100)) + field(1, field(1, 6) + field(2, 600))), sequence=7
)


def zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return bytes(sink.getvalue().to_pybytes())


def deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


def clock(number: int, time: int, *, counts: bool = False, unit: int = 0) -> bytes:
    more = (field(3, 1) if counts else b"") + (field(4, unit) if unit else b"")
    return field(1, field(1, number) + field(2, time) + more)


def step(delta: int, kind: int, *more: bytes, sequence: int = 1) -> bytes:
    inner = field(11, field(9, kind) + field(11, sequence) + b"".join(more))
    return packet(field(8, delta), field(58, 64), inner, sequence=sequence)


def counting() -> bytes:
    """A clock that counts microseconds packet by packet on each of two sequences, tied by the monotonic clock."""
    parts = [MONOTONIC_TO_BOOT]
    for sequence, start in ((1, 5), (2, 9000)):
        ties = clock(64, start, counts=True, unit=1000) + clock(3, 10_000)
        parts += [track(sequence, f"t{sequence}"), packet(field(6, ties), field(13, 1), sequence=sequence)]
    for turn in range(3):
        for sequence in (1, 2):
            parts += [step(2, BEGIN, field(23, f"s{turn}"), sequence=sequence), step(3, END, sequence=sequence)]
    again = clock(64, 50, counts=True, unit=1000) + clock(3, 70_000)
    parts += [packet(field(6, again)), step(1, BEGIN, field(23, "later")), step(4, END)]
    return b"".join(parts)


def legacy(t: int, phase: str, *more: bytes) -> bytes:
    name = b"" if phase in "Ee" else field(23, f"n{phase}")
    inner = field(11, 1) + field(6, field(2, ord(phase)) + b"".join(more)) + name
    return packet(field(8, t), field(11, inner))


PHASES = (
    packet(field(60, field(1, 1) + field(4, field(1, 5) + field(2, 6) + field(5, "worker"))), field(13, 1))
    + legacy(10, "X", field(3, 7)) + legacy(20_000, "B") + legacy(30_000, "E") + legacy(60_000, "I")
)  # fmt: skip


def older(delta: int, kind: int, *more: bytes) -> bytes:
    return packet(field(11, field(9, kind) + field(1, delta) + b"".join(more)))


RELATIVE = (
    packet(field(44, field(1, 4) + field(2, 9) + field(5, "worker") + field(6, 1000)), field(13, 1))
    + older(5, BEGIN, field(23, "o")) + older(7, END)
    + packet(field(11, field(9, BEGIN) + field(16, 2000) + field(23, "absolute")))
    + packet(field(11, field(9, END) + field(16, 2500)))
)  # fmt: skip

FORMS = {
    "zlib": field(1, field(50, zlib.compress(INNER))),
    "zstd": field(1, field(133, zstd(INNER))),
    "mixed": event(5, BEGIN, 2, field(23, "outer")) + field(1, field(50, zlib.compress(INNER))) + event(30, END, 2),
    "counting": counting(),
    "phases": PHASES,
    "relative": MONOTONIC_TO_BOOT + RELATIVE,
}
# What the importer of v55.3 makes of a form it does not know itself.
NOT_IN_V55 = {"zstd"}


def slices(bundle: Bundle) -> Counter[tuple[str, int, int]]:
    return Counter((row["span"], row["t0"], row["t1"] - row["t0"]) for row in bundle.table("spans").to_pylist())


@pytest.mark.client
@pytest.mark.parametrize("name", [name for name in FORMS if name not in NOT_IN_V55])
def test_the_same_slices_as_perfetto(name: str, tmp_path: Path) -> None:
    path = save(tmp_path, FORMS[name])
    (rows,) = query(path, "SELECT name, ts, dur FROM slice WHERE dur > 0 OR name NOT LIKE '%I'")
    assert slices(load(path, tmp_path)) == Counter((row["name"], int(row["ts"]), int(row["dur"])) for row in rows)


@pytest.mark.client
def test_the_same_slices_as_perfetto_in_files_of_other_writers(captures: Path, public: Path, tmp_path: Path) -> None:
    path = captures / "peers" / "iket_pipeline_1cta.pftrace"
    sql = "SELECT s.name, ts, dur, t.name AS track FROM slice s JOIN track t ON s.track_id = t.id"
    (rows,) = query(path, sql)
    bundle = load(path, tmp_path)
    assert slices(bundle) == Counter((row["name"], int(row["ts"]), int(row["dur"])) for row in rows)
    tracks = Counter((name, row["span"]) for row in bundle.table("spans").to_pylist() for name in [lane(bundle, row)])
    assert tracks == Counter((row["track"], row["name"]) for row in rows)


def lane(bundle: Bundle, row: dict[str, Any]) -> str:
    names = {entry["lane"]: entry["name"] for entry in bundle.table("lanes").to_pylist()}
    return str(names[row["lane"]])


@pytest.mark.parametrize("data", [zlib.compress(INNER), deflate(INNER)])
def test_compressed_packets(data: bytes, tmp_path: Path) -> None:
    assert brief(load(save(tmp_path, field(1, field(50, data))), tmp_path)) == [("a", "x", 10, 10)]
    packed = load(save(tmp_path, FORMS["zstd"], event(30, INSTANT, 1, field(23, "i"))), tmp_path)
    assert brief(packed) == [("a", "x", 10, 10)]
    assert packed.table("events").num_rows == 1


def test_damaged_compressed_packets_are_counted(tmp_path: Path) -> None:
    whole = zlib.compress(INNER)
    bundle = load(save(tmp_path, field(1, field(50, whole[:-9])), event(30, INSTANT, 1, field(23, "i"))), tmp_path)
    assert findings(bundle)["not read"] == "1 x compressed packet that is damaged."
    assert [row["complete"] for row in bundle.table("spans").to_pylist()] == [False]
    bundle = load(save(tmp_path, field(1, field(133, b"no zstd")), event(30, INSTANT, 1, field(23, "i"))), tmp_path)
    assert findings(bundle)["not read"] == "1 x compressed packet that is damaged."


def test_clocks_that_count(tmp_path: Path) -> None:
    """The first event is 2 us after the snapshot at 10,000 ns monotonic, which is 10,500 ns of the trace's clock."""
    found = brief(load(save(tmp_path, FORMS["counting"]), tmp_path))
    turns = [(f"t{n}", f"s{turn}", 12_500 + 5000 * turn, 3000) for n in (1, 2) for turn in range(3)]
    assert sorted(found) == sorted([*turns, ("t1", "later", 71_500, 4000)])


def test_counters_with_units_and_steps(tmp_path: Path) -> None:
    described = packet(
        field(60, field(1, 5) + field(2, "bandwidth") + field(8, field(3, 3) + field(4, 1024) + field(5, 1)))
    )
    own = packet(field(60, field(1, 6) + field(2, "power") + field(8, field(6, "mW"))))
    path = save(
        tmp_path, described, own, *[event(10 + n, COUNTER, 5, field(30, 2)) for n in range(3)],
        event(20, COUNTER, 6, field(44, 2.5, "double")), event(21, COUNTER, 6, field(44, -3.5, "double")),
    )  # fmt: skip
    bundle = load(path, tmp_path)
    found = {(row["event"], row["t"]): row["payload"] for row in bundle.table("events").to_pylist()}
    assert found == {
        ("bandwidth", 10): "2048", ("bandwidth", 11): "4096", ("bandwidth", 12): "6144", ("power", 20): "2.5",
        ("power", 21): "-3.5",
    }  # fmt: skip
    kinds = {
        row["event"]: (row["payload_type"], row["payload_unit"]) for row in bundle.table("event_types").to_pylist()
    }
    assert kinds == {"bandwidth": ("int", "byte"), "power": ("float", "mW")}


def test_phases_of_older_writers(tmp_path: Path) -> None:
    ids = (legacy(70_000, "b", field(6, 1)), legacy(71_000, "b", field(6, 2)), legacy(72_000, "e", field(6, 1)))
    path = save(tmp_path, PHASES, *ids, legacy(73_000, "e", field(6, 2)), legacy(80_000, "s", field(6, 1)))
    bundle = load(path, tmp_path)
    assert [entry[1:] for entry in brief(bundle)] == [
        ("nX", 10, 7000), ("nB", 20_000, 10_000), ("nb", 70_000, 2000), ("nb", 71_000, 2000),
    ]  # fmt: skip
    assert [row["event"] for row in bundle.table("events").to_pylist()] == ["nI"]
    assert findings(bundle)["not read"] == "1 x legacy event of phase 's'."


def test_times_relative_to_a_thread(tmp_path: Path) -> None:
    found = brief(load(save(tmp_path, FORMS["relative"]), tmp_path))
    assert found == [("worker", "o", 1_005_500, 7000), ("worker", "absolute", 2_000_500, 500_000)]
