"""Bad input to the raw-buffer converter: one clear line that says what and where, nothing written."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wsformat import samples
from wsformat.converters import registry
from wsformat.errors import BadRequest, MalformedInput, WsformatError

GEMM = samples.path("gemm_roles.json")
SKILL = samples.path("gemm_spec.json")
DATA = samples.path("balanced_r0.i32").read_bytes()
META = samples.path("balanced_r0.meta").read_bytes()


def put(folder: Path, name: str, content: bytes) -> Path:
    file = folder / name
    file.write_bytes(content)
    return file


def gemm(change: Callable[[dict[str, Any]], object] | None = None) -> dict[str, Any]:
    spec: dict[str, Any] = json.loads(GEMM.read_text(encoding="utf-8"))
    if change is not None:
        change(spec)
    return spec


def refused(files: list[Path], options: dict[str, Any], *parts: str, kind: type[WsformatError] = MalformedInput) -> str:
    with pytest.raises(kind) as caught:
        registry.import_files(files, options)
    text = str(caught.value)
    assert "\n" not in text
    for part in parts:
        assert part in text, text
    return text


@pytest.mark.parametrize("cut", [4, 100 * 4, 3072 * 2])
def test_wrong_length_for_the_layout(cut: int, tmp_path: Path) -> None:
    file = put(tmp_path, "x.i32", DATA[:-cut])
    refused([file], {"spec": GEMM}, "x.i32: ", f"{3072 - cut // 4} slots, not a multiple of the 3072 of layout 3,16,64")


def test_a_file_cut_inside_a_slot(tmp_path: Path) -> None:
    file = put(tmp_path, "x.i32", DATA[:-1])
    expected = "12287 bytes, not a multiple of the 4 bytes of a slot: cut off"
    refused([file], {"spec": GEMM}, "x.i32", expected)
    refused([put(tmp_path, "x.bin", DATA[:-1])], {"spec": GEMM}, "x.bin", expected)
    with pytest.raises(MalformedInput, match=expected):
        registry.import_files([file], {"spec": GEMM}, format_name="raw_stamps")


def test_bytes_after_an_array(tmp_path: Path) -> None:
    data = np.frombuffer(DATA, np.int32).reshape(3, 16, 64)
    with (tmp_path / "two.npy").open("wb") as file:
        np.save(file, data)
        np.save(file, data)
    refused([tmp_path / "two.npy"], {"spec": GEMM}, "12416 bytes follow the array of shape (3, 16, 64)")
    np.save(tmp_path / "short.npy", np.asfortranarray(data))
    cut = put(tmp_path, "cut.npy", (tmp_path / "short.npy").read_bytes()[:-8])
    refused([cut], {"spec": GEMM}, "needs 8 bytes more than the file has: cut off?")


def test_wrong_layout(tmp_path: Path) -> None:
    file = put(tmp_path, "x.i32", DATA)
    refused([file], {"spec": GEMM, "layout": "3,15,64"}, "3072 slots, not a multiple of the 2880 of layout 3,15,64")
    refused([file], {"spec": GEMM, "layout": "3,32,32"}, "$.layout: 3,16,64 ", "but the buffer is 3,32,32")
    refused(
        [file], {"spec": gemm(lambda s: s.pop("layout")), "layout": "3,7,64"}, "3072 slots, not a multiple of the 1344"
    )
    for layout in ("3,16", "a,b,c", "3,0,64", "3;16;64", [3, 16], 7, f"{2**31},1,1"):
        refused([file], {"spec": GEMM, "layout": layout}, "is not three positive numbers", kind=BadRequest)
    # Events and iterations exchanged: the numbers fit, but the spec leaves most of what is written unnamed.
    spec = gemm(lambda s: s.update(layout={"roles": 3, "events": 64, "iterations": 16}))
    bundle = registry.import_files([file], {"spec": spec})
    notes = [n["text"] for n in bundle.table("findings").to_pylist()]
    assert any("12 event indices of producer are written and not in the spec (4 to 15)" in n for n in notes)


def test_shape_of_an_npy_against_the_layout(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.frombuffer(DATA, "<i4").reshape(3, 64, 16))
    refused([tmp_path / "x.npy"], {"spec": GEMM, "layout": "3,16,64"}, "shape (3, 64, 16) does not end in the layout")
    np.save(tmp_path / "y.npy", np.zeros((1, 1, 1, 3, 16, 64), np.int32))
    refused([tmp_path / "y.npy"], {"spec": GEMM}, "6 dimensions, at most 5")


def test_no_layout_and_no_spec(tmp_path: Path) -> None:
    file = put(tmp_path, "x.i32", DATA)
    refused([file], {}, "no role spec", kind=BadRequest)
    refused([file], {"spec": SKILL}, "the layout is unknown", kind=BadRequest)


def test_unknown_role_in_the_spec(tmp_path: Path) -> None:
    file = put(tmp_path, "x.i32", DATA)
    spec = gemm(lambda s: s["spans"][0].update(role="produce"))
    refused([file], {"spec": spec}, "$.spans[0].role: unknown role 'produce', did you mean 'producer'?")
    skill = json.loads(SKILL.read_text())
    skill["deps"][0]["cons"] = "consumer7"
    refused([file], {"spec": skill, "layout": "3,16,64"}, "$.deps[0].cons: unknown role 'consumer7'")


def test_event_index_out_of_range(tmp_path: Path) -> None:
    file = put(tmp_path, "x.i32", DATA)
    spec = gemm(lambda s: s["events"][0].update(event_index=16))
    refused([file], {"spec": spec}, "$.events[0].event_index: 16 is out of range, the layout has 16 events")


def test_spec_that_names_slots_never_written(tmp_path: Path) -> None:
    file = put(tmp_path, "x.i32", DATA)

    def change(spec: dict[str, Any]) -> None:
        spec["events"][6]["event_index"] = 9  # epilogue_begin

    text = refused([file], {"spec": gemm(change)}, "never written in the whole buffer", "consumer0 epilogue_begin")
    assert "(span epilogue)" in text
    bundle = registry.import_files([file], {"spec": gemm(change), "allow_unwritten": True})
    assert bundle.rows("events") == 900
    # A wait pass imported with the full spec: the edges have no signal.
    waits = samples.path("pass_waits_r0.i32")
    refused([waits], {"spec": GEMM}, "producer work_end (span work, edge producer -> consumer0")


def test_all_zero_buffer(tmp_path: Path) -> None:
    file = put(tmp_path, "x.i32", b"\0" * len(DATA))
    refused([file], {"spec": GEMM}, "x.i32: every slot holds 0, so no stamp was written")
    good = put(tmp_path, "good.i32", DATA)
    refused([good, file], {"spec": GEMM}, "x.i32: every slot holds 0")


@pytest.mark.parametrize("fill", [0xFFFFFFFF, 0xCDCDCDCD])
def test_a_buffer_that_was_filled_with_something_else(fill: int, tmp_path: Path) -> None:
    data = np.frombuffer(DATA, "<u4").copy()
    data[data == 0] = fill
    data.tofile(tmp_path / "x.i32")
    text = refused([tmp_path / "x.i32"], {"spec": GEMM}, f"2172 of 3072 slots of the first CTA hold {fill}")
    assert f"0x{fill:X}" in text
    assert registry.import_files([tmp_path / "x.i32"], {"spec": GEMM, "unwritten": fill}).rows("events") == 900


def test_directory_and_missing_file(tmp_path: Path) -> None:
    refused([tmp_path], {"spec": GEMM}, "is a directory, a file is needed")
    refused([tmp_path / "no.npy"], {"spec": GEMM}, "no.npy: no such file")
    file = put(tmp_path, "x.i32", DATA)
    refused([file], {"spec": tmp_path}, "is a directory, a role spec file is needed")
    refused([file], {"spec": tmp_path / "no.json"}, "no.json: no such file")
    refused([file], {"spec": GEMM, "meta": tmp_path}, "is a directory, a file is needed")
    refused([file], {"spec": GEMM, "meta": tmp_path / "no.meta"}, "no.meta: no such file")
    refused([file], {"spec": GEMM, "clean": [(tmp_path / "no.metas", 3)]}, "no.metas: no such file")


def record(**fields: int) -> bytes:
    good = dict(zip(("g0", "c0", "g1", "c1", "sm", "pad"), struct.unpack("<4Q2I", META), strict=True)) | fields
    return struct.pack("<4Q2I", *good.values())


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (META[:-1], "39 bytes, not a multiple of the 40 bytes of a CTA's record"),
        (b"", "0 bytes, not a multiple of the 40 bytes"),
        (META * 2, "2 records, but"),
        (b"\0" * 40, "record 0 was never written (all zero)"),
        (record(c1=5), "record 0 ends before it starts (c1 < c0)"),
        (record(g1=5), "record 0 ends before it starts (g1 < g0)"),
        (record(sm=2**32 - 1), "record 0: 4294967295 is no SM"),
        (record(c0=10**12, c1=10**12 + 53_000), "the stamp lies"),
    ],
)
def test_bad_meta(content: bytes, expected: str, tmp_path: Path) -> None:
    file, meta = put(tmp_path, "x.i32", DATA), put(tmp_path, "x.meta", content)
    refused([file], {"spec": GEMM, "meta": meta}, expected)


def test_numbers_of_files_must_fit(tmp_path: Path) -> None:
    file, meta = put(tmp_path, "x.i32", DATA), put(tmp_path, "x.meta", META)
    refused([file], {"spec": GEMM, "meta": [meta, meta]}, "2 meta files for 1 inputs", kind=BadRequest)
    two = put(tmp_path, "two.i32", DATA * 2)
    metas = put(tmp_path, "three.metas", META * 3)
    refused([two], {"spec": GEMM, "clean": [(metas, 64)]}, "3 records, not a multiple of the 2 CTAs")


def test_npz_without_a_buffer(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", other=np.zeros(3, np.int32))
    refused([tmp_path / "x.npz"], {"spec": GEMM}, "no array 'prof'; it holds other")


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "uint8", "bool", "complex64"])
def test_dtype_that_is_no_stamp(dtype: str, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((3, 16, 64), dtype))
    refused([tmp_path / "x.npy"], {"spec": GEMM}, f"holds {dtype}, stamps are 32- or 64-bit integers")


def test_pickled_and_broken_numpy_files(tmp_path: Path) -> None:
    np.save(tmp_path / "o.npy", np.array([{"a": 1}], object), allow_pickle=True)
    refused([tmp_path / "o.npy"], {"spec": GEMM}, "o.npy: ")
    np.save(tmp_path / "x.npy", np.frombuffer(DATA, "<i4").reshape(3, 16, 64))
    whole = (tmp_path / "x.npy").read_bytes()
    for cut in (len(whole) - 1, 200, 60, 7):
        refused([put(tmp_path, "c.npy", whole[:cut])], {"spec": GEMM}, "c.npy: ")
    np.savez(tmp_path / "x.npz", prof=np.frombuffer(DATA, "<i4"))
    whole = (tmp_path / "x.npz").read_bytes()
    for cut in (len(whole) - 30, 300, 60):
        refused([put(tmp_path, "c.npz", whole[:cut])], {"spec": GEMM}, "c.npz: broken .npz")


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        ("{roles", "meta: not valid JSON"),
        (np.arange(3), "a JSON text is needed"),
        (np.frombuffer(b"\xff\xfe{", np.uint8), "not UTF-8"),
        ('{"roles": 3}', "$.roles"),
        ('{"roles": [], "wsformat_rolespec": "0.1"}', "$.roles"),
    ],
)
def test_npz_with_a_bad_spec(meta: Any, expected: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", prof=np.frombuffer(DATA, "<i4").reshape(3, 16, 64), meta=meta)
    refused([tmp_path / "x.npz"], {}, expected)


def header(data: Any, body: bytes = DATA, length: int | None = None) -> bytes:
    text = data if isinstance(data, bytes) else json.dumps(data).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + body


TENSOR = {"dtype": "I32", "shape": [3, 16, 64], "data_offsets": [0, len(DATA)]}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (header({"prof": TENSOR}, length=50_000), "header of 50000 bytes, but the file ends after"),
        (header(b'{"prof": '), "header: not valid JSON"),
        (header(b'{"prof": \xff}'), "header is not UTF-8 at byte 9"),
        (header({"a": TENSOR, "b": TENSOR}), "no tensor 'prof'; it holds a, b"),
        (header({"prof": TENSOR | {"dtype": "F32"}}), "tensor 'prof' is F32"),
        (header({"prof": TENSOR | {"shape": [3, 16, 63]}}), "shape [3, 16, 63] does not fit its 12288 bytes"),
        (header({"prof": TENSOR | {"shape": [-3, -16, 64]}}), "does not fit"),
        (header({"prof": TENSOR | {"shape": "x"}}), "has no valid shape"),
        (header({"prof": {"dtype": "I32"}}), "has no valid shape"),
        (header({"prof": TENSOR}, body=DATA[:-4]), "reaches beyond the end of the file"),
        (header({"prof": TENSOR | {"data_offsets": [-8, len(DATA) - 8]}}), "reaches beyond"),
        (header({"__metadata__": 3, "prof": TENSOR}), "metadata: not an object of texts"),
        (header({"__metadata__": {"spec": "{"}, "prof": TENSOR}), "metadata: spec: not valid JSON"),
        (header({"__metadata__": {"layout": "3,16"}, "prof": TENSOR}), "is not three positive numbers"),
        (header({"__metadata__": {"layout": "{3"}, "prof": TENSOR}), "layout"),
    ],
)
def test_broken_safetensors(content: bytes, expected: str, tmp_path: Path) -> None:
    file = put(tmp_path, "x.safetensors", content)
    with pytest.raises(WsformatError) as caught:
        registry.import_files([file], {"spec": GEMM})
    assert expected in str(caught.value)


def test_spec_that_is_no_json(tmp_path: Path) -> None:
    file = put(tmp_path, "x.i32", DATA)
    refused([file], {"spec": put(tmp_path, "s.json", b"roles: [a]")}, "s.json: not valid JSON")
    refused([file], {"spec": put(tmp_path, "t.json", b"[1, 2]")}, "t.json: no role spec: a JSON object is needed")
    refused([file], {"spec": put(tmp_path, "u.json", b'{"roles": ["a"], "roles": []}')}, "occurs twice")
    refused([file], {"spec": put(tmp_path, "v.json", b"\xff\xfe")}, "not UTF-8")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"trip_count": 0}, "the loop runs at least once"),
        ({"trip_count": "many"}, "trip_count 'many': not a whole number"),
        ({"unwritten": 2**64}, "does not fit 64 bits"),
        ({"unwritten": "none"}, "not a whole number"),
        ({"clean": "file.metas"}, "no trip count"),
        ({"clean": "file.metas:x"}, "not a whole number"),
        ({"lifetimes": "file.metas:0"}, "the loop runs at least once"),
        ({"allow_unwritten": "perhaps"}, "neither true nor false"),
        ({"sm_count": "lots"}, "not a whole number"),
        ({"colour": "red"}, "raw_stamps has no option colour"),
    ],
)
def test_bad_options(options: dict[str, Any], expected: str) -> None:
    refused([samples.path("balanced_r0.i32")], {"spec": GEMM, **options}, expected, kind=BadRequest)


def test_a_64_bit_value_beyond_the_range(tmp_path: Path) -> None:
    beyond = np.arange(2**63 + 7, 2**63 + 7 + 3072, dtype=np.uint64).reshape(3, 16, 64)
    np.save(tmp_path / "x.npy", beyond)
    spec = gemm(lambda s: s["clock"].update(width_bits=64))
    text = "a slot holds 9223372036854775815; a clock reads 0 to 2^63 - 1"
    refused([tmp_path / "x.npy"], {"spec": spec}, text)
    np.save(tmp_path / "y.npy", beyond.view(np.int64))
    refused([tmp_path / "y.npy"], {"spec": spec}, "a slot holds -9223372036854775801;")
    np.save(tmp_path / "z.npy", beyond - 2**62)
    refused([tmp_path / "z.npy"], {"spec": GEMM}, "holds 64-bit values, but the role spec says")


def test_nothing_is_written(tmp_path: Path) -> None:
    file = put(tmp_path, "x.i32", DATA[:-4])
    before = sorted(tmp_path.iterdir())
    refused([file], {"spec": GEMM}, "x.i32")
    assert sorted(tmp_path.iterdir()) == before


def test_a_wrong_trip_count_is_noted() -> None:
    bundle = registry.import_files([samples.path("balanced_r0.i32")], {"spec": GEMM, "trip_count": 32})
    notes = [n["text"] for n in bundle.table("findings").to_pylist() if n["subject"] == "trip_count"]
    assert "producer wait_enter has 64 iterations, more than the stated trip count of 32." in notes
