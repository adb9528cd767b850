"""The raw-buffer converter on real captures: known answers, every container, launches, CTAs, provenance."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wsformat import rolespec, samples
from wsformat.bundle import Bundle
from wsformat.converters import raw_stamps, registry
from wsformat.validate import validate

GEMM = samples.path("gemm_roles.json")
CUTE = samples.path("cute_roles.json")


def imported(name: str, **options: Any) -> Bundle:
    file = samples.path(name)
    if file.with_suffix(".meta").exists():
        options.setdefault("meta", file.with_suffix(".meta"))
    options.setdefault("spec", CUTE if name.startswith("cute") else GEMM)
    return registry.import_files([file], options)


def states(bundle: Bundle) -> dict[str, tuple[int, int, int, int]]:
    rows = bundle.sql("SELECT role, extent, stall, active, untracked FROM role_state WHERE extent > 0").to_pylist()
    return {r["role"]: (r["extent"], r["stall"], r["active"], r["untracked"]) for r in rows}


BALANCED = {
    "producer": (48_204, 15_750, 18_849, 13_605),
    "consumer0": (51_851, 8_947, 28_842, 14_062),
    "consumer1": (52_632, 8_432, 33_455, 10_745),
}


def test_balanced_gives_the_reference_accounting() -> None:
    bundle = imported("balanced_r0.i32")
    assert states(bundle) == BALANCED
    overlap = bundle.sql("SELECT * FROM overlap WHERE set_a = 'consumer0' AND set_b = 'consumer1'").to_pylist()
    (row,) = [r for r in overlap if r["set_kind"] == "role"]
    assert row["both_ticks"] == 13_891
    assert [round(100 * row[k], 1) for k in ("of_a", "of_b", "of_union")] == [48.2, 41.5, 28.7]


def test_the_other_role_spec_gives_the_same_states() -> None:
    bundle = imported("balanced_r0.i32", spec=samples.path("gemm_spec.json"), layout="3,16,64")
    assert states(bundle) == BALANCED
    notes = bundle.table("findings").to_pylist()
    assert {n["kind"] for n in notes} == {"message"}
    assert any("is 4: proven" in n["text"] for n in notes)


def test_every_stamp_is_there_with_its_time() -> None:
    bundle = imported("balanced_r0.i32")
    raw = np.fromfile(samples.path("balanced_r0.i32"), "<u4").reshape(3, 16, 64)
    events = bundle.to_pandas("events")
    assert len(events) == int((raw != 0).sum()) == 900
    spec = rolespec.load(GEMM)
    index = {r["role"]: r["role_index"] for r in spec.roles}
    event = {(e["role"], e["event"]): e["event_index"] for e in spec.events}
    for row in events.sample(200, random_state=1).itertuples():
        slot = raw[index[row.role], event[row.role, row.event], row.iteration]
        assert row.t % 2**32 == slot
    start, end = bundle.sql("SELECT t_start, t_end FROM lanes WHERE kind = 'cta'").to_pylist()[0].values()
    assert events.t.between(start, end).all()
    assert start == 36_596_324_968


def test_a_slow_producer_shows_as_stall_of_its_consumers_and_untracked_time_of_its_own() -> None:
    state = states(imported("slowproducer_r0.i32"))
    for role in ("consumer0", "consumer1"):
        extent, stall, active, _ = state[role]
        assert stall > active
        assert stall > 0.5 * extent
    extent, stall, _, untracked = state["producer"]
    assert untracked > 0.8 * extent
    assert untracked > 64 * 1_500


def test_cute_pipeline() -> None:
    bundle = imported("cute_pipeline_r0.npy")
    raw = np.load(samples.path("cute_pipeline_r0.npy")).view(np.uint32).astype(np.int64)
    assert bundle.rows("events") == 3 * 4 * 48
    for role, (extent, stall, active, _) in states(bundle).items():
        r = ["producer", "consumer0", "consumer1"].index(role)
        assert extent == raw[r, :4, :48].max() - raw[r, :4, :48].min()
        assert stall == (raw[r, 1, :48] - raw[r, 0, :48]).sum()
        assert active == (raw[r, 2, :48] - raw[r, 1, :48]).sum()
    assert {r["completeness"] for r in bundle.table("lanes").to_pylist()} == {"complete"}
    assert bundle.table("launches").column("trip_count").to_pylist() == [48]
    late = bundle.sql("SELECT COUNT(*) AS n FROM wait WHERE role <> 'producer' AND verdict = 'producer_late'")
    assert late.to_pylist() == [{"n": 96}]


def test_grid_of_132_ctas(captures: Path, tmp_path: Path) -> None:
    file = captures / "stamps" / "grid132_r0.i32"
    bundle = registry.import_files([file], {"spec": GEMM, "meta": file.with_suffix(".meta")}).write(
        tmp_path / "g.wsformat"
    )
    assert bundle.rows("events") == 118_800
    assert bundle.rows("lanes") == 132 * 4
    clocks = bundle.table("clocks").to_pylist()
    assert len(clocks) == 133
    assert sorted(c["sm"] for c in clocks if c["scope"] == "sm") == list(range(132))
    assert [c["step_ticks"] for c in clocks if c["scope"] == "device"] == [32]
    assert {c["step_ticks"] for c in clocks if c["scope"] == "sm"} == {1}
    assert bundle.table("launches").to_pylist()[0]["grid_x"] == 132
    starts = bundle.sql("SELECT MAX(reference_t) - MIN(reference_t) AS d FROM clock_anchors a JOIN lanes l ON l.clock "
                        "= a.clock AND l.kind = 'cta' AND l.t_start = a.t").to_pylist()  # fmt: skip
    assert starts == [{"d": 192}]
    events = bundle.table("events")
    raw = np.fromfile(file, "<u4").reshape(132, 3, 16, 64)
    low = (events.column("t").to_numpy() & 0xFFFFFFFF).astype(np.uint32)
    assert np.array_equal(np.sort(low), np.sort(raw[raw != 0]))
    size = (tmp_path / "g.wsformat" / "events.parquet").stat().st_size
    assert size / 118_800 < 1.5


SKILL = {"spec": samples.path("gemm_spec.json"), "layout": "3,16,64"}
CLEAN = {"clean": [(samples.path("slow_2048_clean.metas"), 32)]}


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("balanced_r0.i32", {}),
        ("balanced_r0.i32", {"trip_count": 128}),
        ("slowproducer_r0.i32", CLEAN),
        ("slowproducer_r0.i32", SKILL),
        ("cute_pipeline_r0.npy", {}),
    ],
)
def test_what_is_written_conforms_to_the_standard(name: str, options: dict[str, Any], tmp_path: Path) -> None:
    imported(name, **options).write(tmp_path / "x.wsformat")
    report = validate(tmp_path / "x.wsformat")
    assert not [p for p in report.problems if p.level in "EW"], report.text()
    assert not report.not_run


# --- containers -------------------------------------------------------------------------------------------------------


def slots() -> np.ndarray:
    return np.fromfile(samples.path("balanced_r0.i32"), "<i4").reshape(3, 16, 64)


def safetensors(path: Path, data: np.ndarray, metadata: dict[str, str], name: str = "prof") -> Path:
    kinds = {"int32": "I32", "uint32": "U32", "int64": "I64", "uint64": "U64", "float32": "F32"}
    header = {name: {"dtype": kinds[str(data.dtype)], "shape": list(data.shape), "data_offsets": [0, data.nbytes]}}
    text = json.dumps({"__metadata__": metadata, **header}).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data.tobytes())
    return path


def write_container(kind: str, folder: Path) -> tuple[Path, dict[str, Any]]:
    data, spec = slots(), GEMM.read_text()
    file = folder / f"buffer.{kind.split('_')[0]}"
    if kind == "npy":
        np.save(file, data)
    elif kind == "npy_fortran":
        np.save(file, np.asfortranarray(data))
    elif kind == "npy_big_endian":
        np.save(file, data.astype(">i4"))
    elif kind == "npy_flat":
        np.save(file, data.ravel())
    elif kind == "npz_text":
        np.savez(file, prof=data, meta=spec)
        return file, {}
    elif kind == "npz_bytes":
        np.savez_compressed(file, prof=data.view(np.uint32), meta=np.frombuffer(spec.encode(), np.uint8))
        return file, {}
    elif kind == "npz_wrapped":
        np.savez(file, prof=data, meta=json.dumps({"layout": [3, 16, 64], "spec": json.loads(spec)}))
        return file, {}
    elif kind == "npz_bare":
        np.savez(file, prof=data)
    elif kind == "safetensors":
        safetensors(file, data, {"layout": "3,16,64", "spec": spec})
        return file, {}
    elif kind == "safetensors_layout":
        safetensors(file, data.ravel().view(np.uint32), {"layout": "[3, 16, 64]"}, name="anything")
    else:
        data.tofile(file)
    return file, {"spec": GEMM}


CONTAINERS = {
    "npy": "npy", "npy_fortran": "npy", "npy_big_endian": "npy", "npy_flat": "npy", "npz_text": "npz",
    "npz_bytes": "npz", "npz_wrapped": "npz", "npz_bare": "npz", "safetensors": "safetensors",
    "safetensors_layout": "safetensors", "i32": "raw32", "u32": "raw32", "bin": "raw32",
}  # fmt: skip


@pytest.mark.parametrize("kind", CONTAINERS)
def test_every_container_gives_the_same_stamps(kind: str, tmp_path: Path) -> None:
    file, options = write_container(kind, tmp_path)
    assert registry.detect(file) == "raw_stamps"
    bundle = registry.import_files([file], {**options, "meta": samples.path("balanced_r0.meta")})
    assert states(bundle) == BALANCED
    (source, *_) = bundle.manifest.sources
    assert source["dialect"] == f"raw_stamps.{CONTAINERS[kind]}"
    assert ("by name" in source["detected_by"] or "file name" in source["detected_by"]) == (
        kind in ("i32", "u32", "bin")
    )


def test_safetensors_of_the_library_is_read(tmp_path: Path) -> None:
    library = pytest.importorskip("safetensors.numpy")
    file = tmp_path / "x.safetensors"
    library.save_file({"prof": slots()}, file, metadata={"layout": "3,16,64", "spec": GEMM.read_text()})
    assert states(registry.import_files([file], {"meta": samples.path("balanced_r0.meta")})) == BALANCED


def test_64_bit_slots(tmp_path: Path) -> None:
    data = slots().view(np.uint32).astype(np.int64)
    wide = np.where(data != 0, data + (8 << 32), 0)
    file = tmp_path / "wide.i64"
    wide.tofile(file)
    spec = json.loads(GEMM.read_text())
    spec["clock"]["width_bits"] = 64
    bundle = registry.import_files([file], {"spec": spec, "meta": samples.path("balanced_r0.meta")})
    assert states(bundle) == BALANCED
    assert bundle.table("clocks").to_pylist()[0]["width_bits"] == 64
    assert bundle.table("events").column("t").to_numpy().min() == wide[wide != 0].min()


def test_a_32_bit_counter_in_64_bit_slots_is_still_unwrapped(tmp_path: Path) -> None:
    data = slots().view(np.uint32)
    shift = np.uint32(2**32 - 25_000 - int(data[data != 0].min()))
    np.save(tmp_path / "x.npy", np.where(data != 0, data + shift, 0).astype(np.uint32).astype(np.int64))
    bundle = registry.import_files([tmp_path / "x.npy"], {"spec": GEMM})
    assert states(bundle) == BALANCED
    assert {r["wraps"] for r in bundle.table("lanes").to_pylist()} == {1}
    assert bundle.table("clocks").to_pylist()[0]["wraps"] == 3


# --- launches, CTAs, options ------------------------------------------------------------------------------------------


def test_files_are_launches_and_buffers_are_ctas(tmp_path: Path) -> None:
    names = ["balanced_r0", "balanced_r1", "balanced_r2"]
    files = [samples.path(f"{n}.i32") for n in names]
    metas = [samples.path(f"{n}.meta") for n in names]
    bundle = registry.import_files(files, {"spec": GEMM, "meta": metas})
    launches = bundle.table("launches").to_pylist()
    assert [(r["launch"], r["source"], r["trip_count"], r["slots"]) for r in launches] == [
        (n, f"balanced_r{n}.i32", 64, 64) for n in range(3)
    ]
    assert [r["lane"] for r in bundle.table("lanes").to_pylist()] == list(range(12))
    # All three ran on SM 124: one counter.
    assert [(c["sm"], c["scope"]) for c in bundle.table("clocks").to_pylist()] == [(124, "sm"), (-1, "device")]
    joined = tmp_path / "three.i32"
    joined.write_bytes(b"".join(f.read_bytes() for f in files))
    together = tmp_path / "three.meta"
    together.write_bytes(b"".join(m.read_bytes() for m in metas))
    ctas = registry.import_files([joined], {"spec": GEMM, "meta": together})
    assert ctas.table("launches").num_rows == 1
    assert sorted(bundle.table("events").column("t").to_pylist()) == sorted(
        ctas.table("events").column("t").to_pylist()
    )
    five = tmp_path / "five.npy"
    np.save(five, np.fromfile(joined, "<i4").reshape(3, 1, 3, 16, 64))
    assert registry.import_files([five], {"spec": GEMM, "meta": together}).table("launches").num_rows == 3


def test_stored_order_is_the_sort_order_of_the_standard() -> None:
    files = [samples.path(f"balanced_r{n}.i32") for n in range(2)]
    events = registry.import_files(files, {"spec": GEMM}).to_pandas("events")
    keys = events[["launch", "cta", "warp", "lane", "t"]]
    assert keys.equals(keys.sort_values(list(keys.columns), kind="stable").reset_index(drop=True))


def test_perturbation_by_slope() -> None:
    trips = ((2048, 32), (4096, 64))
    bundle = imported(
        "balanced_r0.i32",
        clean=[(samples.path(f"one_{k}_clean.metas"), n) for k, n in trips],
        lifetimes=[(samples.path(f"one_{k}_global.metas"), n) for k, n in trips],
    )
    assert sorted(bundle.table("captures").column("kind").to_pylist()) == ["clean", "stamped"]
    rows = bundle.sql("SELECT * FROM perturbation WHERE preference = 1").to_pylist()
    assert len(rows) == 1
    assert rows[0]["method"] == "slope"
    assert rows[0]["clean_ticks"] == pytest.approx(511.9, abs=0.1)
    assert rows[0]["ticks"] == pytest.approx(776.9, abs=0.5)
    assert rows[0]["perturbation"] == pytest.approx(0.518, abs=0.001)
    launches = bundle.sql("SELECT kind, trip_count, COUNT(*) AS n FROM launches GROUP BY ALL ORDER BY ALL").to_pylist()
    assert [(r["kind"], r["trip_count"], r["n"]) for r in launches] == [
        ("clean", 32, 10), ("clean", 64, 10), ("stamped", 32, 10), ("stamped", 64, 11),
    ]  # fmt: skip
    assert len(set(bundle.table("captures").column("experiment").to_pylist())) == 1


def test_passes_keep_their_number_and_their_own_perturbation(tmp_path: Path) -> None:
    trips = ((2048, 32), (4096, 64))
    bundle = imported(
        "pass_waits_r0.i32",
        **{"pass": 1},
        allow_unwritten=True,
        clean=[(samples.path(f"waits_{k}_clean.metas"), n) for k, n in trips],
        lifetimes=[(samples.path(f"waits_{k}_branchfree.metas"), n) for k, n in trips],
    )
    kinds = bundle.sql("SELECT DISTINCT kind, pass FROM launches ORDER BY ALL").to_pylist()
    assert [tuple(r.values()) for r in kinds] == [("clean", -1), ("stamped", 1)]
    (row,) = bundle.sql("SELECT * FROM perturbation WHERE preference = 1").to_pylist()
    assert row["pass"] == 1
    assert row["perturbation"] == pytest.approx(0.030, abs=0.004)


def test_an_experiment_can_be_named() -> None:
    bundle = imported("balanced_r0.i32", experiment="e1", clean=f"{samples.path('one_2048_clean.metas')}:32")
    assert set(bundle.table("captures").column("experiment").to_pylist()) == {"e1"}


def test_facts_come_from_the_spec_and_the_options_win() -> None:
    bundle = imported("balanced_r0.i32", label="mine", device="other", sm_count="7", shape="M=N=128 K=4096")
    (row,) = bundle.table("captures").to_pylist()
    assert (row["kernel"], row["dtype"], row["label"], row["device"], row["sm_count"]) == (
        "gemm_hopper", "bf16", "mine", "other", 7,
    )  # fmt: skip
    assert bundle.table("launches").to_pylist()[0]["block_x"] == 384


def test_the_same_input_has_the_same_id_wherever_it_lies(tmp_path: Path) -> None:
    first = imported("balanced_r0.i32").table("captures").column("capture_id").to_pylist()
    for suffix in (".i32", ".meta"):
        (tmp_path / f"other{suffix}").write_bytes(samples.path(f"balanced_r0{suffix}").read_bytes())
    (tmp_path / "spec.json").write_text(json.dumps(json.loads(GEMM.read_text()), indent=3))
    again = registry.import_files(
        [tmp_path / "other.i32"], {"spec": tmp_path / "spec.json", "meta": tmp_path / "other.meta", "layout": "3,16,64"}
    )
    assert again.table("captures").column("capture_id").to_pylist() == first
    for options in (
        {"trip_count": 64},
        {"label": "x"},
        {"layout": "3,16,64", "allow_unwritten": True},
    ):
        changed = imported("balanced_r0.i32", **options).table("captures").column("capture_id").to_pylist()
        assert changed != first, options
    assert imported("balanced_r1.i32").table("captures").column("capture_id").to_pylist() != first


def test_sources_say_where_everything_came_from() -> None:
    bundle = imported("balanced_r0.i32", clean=[(samples.path("one_2048_clean.metas"), 32)])
    found = {s["name"]: s for s in bundle.manifest.sources}
    assert set(found) == {"balanced_r0.i32", "balanced_r0.meta", "gemm_roles.json", "one_2048_clean.metas"}
    captures = {r["kind"]: r["capture_id"] for r in bundle.table("captures").to_pylist()}
    assert found["balanced_r0.meta"]["capture_ids"] == [captures["stamped"]]
    assert found["one_2048_clean.metas"]["capture_ids"] == [captures["clean"]]
    assert all("/" not in s["name"] and len(s["sha256"]) == 64 for s in found.values())
    account = {r["name"]: r["value"] for r in bundle.table("attributes").to_pylist()}
    assert account["import.records_kept"] == account["import.records_expected"] == "900"
    assert account["import.records_lost"] == account["import.wraps_undone"] == "0"


def test_another_value_for_unwritten(tmp_path: Path) -> None:
    data = slots().view(np.uint32)
    data = np.where(data != 0, data - data[0, 0, 0], np.uint32(0xFFFFFFFF))
    assert data[0, 0, 0] == 0  # a real stamp, the first of the kernel
    for value in (-1, 0xFFFFFFFF, "0xFFFFFFFF"):
        np.save(tmp_path / "x.npy", data)
        bundle = registry.import_files([tmp_path / "x.npy"], {"spec": GEMM, "unwritten": value})
        assert bundle.rows("events") == 900
        assert bundle.table("events").column("t").to_numpy().min() == 0


def test_stamps_that_the_spec_does_not_name_are_kept_and_named() -> None:
    spec = json.loads(GEMM.read_text())
    spec["events"] = [e for e in spec["events"] if not e["event"].startswith("epilogue")]
    spec["spans"] = [s for s in spec["spans"] if s["span"] != "epilogue"]
    spec["roles"], kept = spec["roles"][:2], ("producer", "consumer0")
    for part in ("events", "spans"):
        for row in spec[part]:
            if isinstance(row["role"], list):
                row["role"] = [r for r in row["role"] if r in kept]
    spec["dependencies"][0]["consumer_role"] = ["consumer0"]
    spec["dependencies"][1]["producer_role"] = ["consumer0"]
    bundle = imported("balanced_r0.i32", spec=spec)
    assert bundle.rows("events") == 900
    names = {(r["role"], r["event"], r["loop"]) for r in bundle.table("event_types").to_pylist()}
    assert {("consumer0", "event_5", "once"), ("role_2", "event_0", "main"), ("role_2", "event_6", "once")} <= names
    text = " ".join(n["text"] for n in bundle.table("findings").to_pylist())
    assert "Role index 2 is written and not in the spec; it is called role_2." in text
    assert "2 event indices of consumer0 are written and not in the spec (5 to 6)" in text


def test_a_role_that_wrote_nothing_has_a_lane(tmp_path: Path) -> None:
    data = slots().copy()
    data[2] = 0
    np.save(tmp_path / "x.npy", data)
    bundle = registry.import_files([tmp_path / "x.npy"], {"spec": GEMM, "allow_unwritten": True})
    lanes = {r["role"]: r["records_kept"] for r in bundle.table("lanes").to_pylist()}
    assert lanes == {"consumer0": 322, "consumer1": 0, "producer": 256}
    assert "Never written: consumer1 wait_enter (span wait)" in " ".join(
        n["text"] for n in bundle.table("findings").to_pylist()
    )


def test_a_lane_out_of_program_order_is_sorted(tmp_path: Path) -> None:
    data = np.concatenate([slots()[None]] * 3).copy()
    data[1, 0, 0, 5] = data[1, 0, 1, 5] + 3  # one wait_enter after its wait_exit
    np.save(tmp_path / "x.npy", data)
    events = registry.import_files([tmp_path / "x.npy"], {"spec": GEMM}).to_pandas("events")
    for _, lane in events.groupby("lane"):
        assert lane.t.is_monotonic_increasing
    odd = events[(events.cta == 1) & (events.role == "producer") & (events.iteration == 5)]
    assert odd.event.tolist()[:2] == ["wait_exit", "wait_enter"]


def test_a_file_that_shrinks_after_the_import_is_an_error_not_a_crash(tmp_path: Path) -> None:
    file = tmp_path / "x.i32"
    slots().tofile(file)
    bundle = registry.import_files([file], {"spec": GEMM})
    file.write_bytes(b"\0" * 4096)
    with pytest.raises(raw_stamps.MalformedInput, match="became shorter while it was read"):
        bundle.write(tmp_path / "x.wsformat")
    assert not (tmp_path / "x.wsformat").exists()
    file.write_bytes(b"\1\0\0\0" * 3072)
    with pytest.raises(raw_stamps.MalformedInput, match="changed while it was read"):
        bundle.write(tmp_path / "x.wsformat")
    assert [f.name for f in tmp_path.iterdir()] == ["x.i32"]


def test_blocks_of_ctas_give_what_one_block_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = np.concatenate([np.fromfile(samples.path(f"balanced_r{n % 3}.i32"), "<i4").reshape(1, 3, 16, 64)
                           for n in range(7)])  # fmt: skip
    np.save(tmp_path / "x.npy", data)
    whole = registry.import_files([tmp_path / "x.npy"], {"spec": GEMM})
    expected, lanes = whole.table("events"), whole.table("lanes")
    monkeypatch.setattr("wsformat.stamp_launch.BLOCK_SLOTS", 2 * 3 * 16 * 64)
    parts = registry.import_files([tmp_path / "x.npy"], {"spec": GEMM})
    assert len(list(parts.data["events"].batches())) == 4
    assert parts.to_pandas("events").equals(whole.to_pandas("events"))
    assert parts.table("lanes").equals(lanes)
    assert expected.num_rows == 7 * 900


def test_sniff_tells_by_content(tmp_path: Path) -> None:
    def is_ours(name: str, content: bytes) -> bool:
        file = tmp_path / name
        file.write_bytes(content)
        return raw_stamps.sniff(content[: registry.HEAD_BYTES], file)

    data = slots().tobytes()
    assert is_ours("a.bin", data)
    assert is_ours("a.i32", data)
    assert not is_ours("a.dat", data)
    assert is_ours("b.bin", data[:-1]), "mine but broken"
    assert not is_ours("c.bin", b'{"traceEvents": []}  ' * 4)
    assert not is_ours("d.bin", b"PAR1" + data)
    assert not is_ours("e.bin", b"\x1f\x8b" + data + b"\0\0")
    assert not is_ours("f.csv", b"a,b\n1,2\n")
    np.save(tmp_path / "g.npy", slots())
    assert raw_stamps.sniff((tmp_path / "g.npy").read_bytes(), tmp_path / "renamed.txt")


def test_stamps_without_a_partner_are_counted_and_kept(tmp_path: Path) -> None:
    data = slots().copy()
    data[0, 1, 7] = data[1, 0, 9] = data[1, 0, 10] = 0
    np.save(tmp_path / "x.npy", data)
    bundle = registry.import_files([tmp_path / "x.npy"], {"spec": GEMM})
    assert bundle.rows("events") == 897
    account = {r["name"]: r["value"] for r in bundle.table("attributes").to_pylist()}
    assert (account["import.orphaned"], account["import.unclosed"]) == ("3", "1")
    listed = bundle.sql("SELECT role, iteration, reason FROM orphan ORDER BY ALL").to_pylist()
    assert [tuple(r.values()) for r in listed] == [
        ("consumer0", 9, "no begin"), ("consumer0", 10, "no begin"), ("producer", 7, "no end"),
    ]  # fmt: skip


def widened(kind: str) -> np.ndarray[Any, Any]:
    words = slots().view(np.uint32)
    return words.view(np.int32).astype(np.int64) if kind == "signed" else words.astype(np.int64)


@pytest.mark.parametrize("kind", ["signed", "unsigned"])
@pytest.mark.parametrize("with_meta", [True, False])
def test_32_bit_stamps_widened_to_64(kind: str, with_meta: bool, tmp_path: Path) -> None:
    """Copied as int64, the stamps say the same; the upper half of a turn must not become negative."""
    np.save(tmp_path / "wide.npy", widened(kind))
    assert (widened("signed") < 0).any(), "the capture lies in the upper half"
    options: dict[str, Any] = dict(SKILL)
    if with_meta:
        options["meta"] = samples.path("balanced_r0.meta")
    wide = registry.import_files([tmp_path / "wide.npy"], options)
    narrow = registry.import_files([samples.path("balanced_r0.i32")], options)
    keys = ("lane", "role", "event", "iteration", "t")
    for one, other in zip(*(b.table("events").select(keys).to_pylist() for b in (wide, narrow)), strict=True):
        assert one == other
    noted = any(n["subject"] == "clock" for n in wide.table("findings").to_pylist())
    assert noted == (kind == "signed" or with_meta)
    assert wide.table("clocks")["width_bits"][0].as_py() == (32 if noted else 64)


def test_the_largest_64_bit_value_as_unwritten(tmp_path: Path) -> None:
    wide = slots().view(np.uint32).astype(np.uint64)
    wide[wide == 0] = 2**64 - 1
    np.save(tmp_path / "x.npy", wide)
    bundle = registry.import_files([tmp_path / "x.npy"], {**SKILL, "unwritten": 2**64 - 1})
    assert bundle.rows("events") == 900


def test_pairs_the_wrong_way_round_are_counted_and_named(tmp_path: Path) -> None:
    spec = json.loads(SKILL["spec"].read_text(encoding="utf-8"))
    spec["stall"].append({"role": "producer", "beg": 1, "end": 0})
    bundle = registry.import_files([samples.path("balanced_r0.i32")], {"spec": spec, "layout": "3,16,64"})
    account = {r["name"]: r["value"] for r in bundle.table("attributes").to_pylist()}
    assert account["import.out_of_order"] == "64"
    texts = [n["text"] for n in bundle.table("findings").to_pylist()]
    assert any("64 of its pairs of stamps end before they begin" in text and "producer" in text for text in texts)
    good = registry.import_files([samples.path("balanced_r0.i32")], SKILL)
    assert not any("before they begin" in n["text"] for n in good.table("findings").to_pylist())


@pytest.mark.parametrize("form", ["text", "list", "object", "numbers"])
def test_forms_of_a_layout_in_metadata(form: str, tmp_path: Path) -> None:
    numbers = {"roles": 3, "events": 16, "iterations": 64}
    stated = {
        "text": {"layout": "3,16,64"},
        "list": {"layout": [3, 16, 64]},
        "object": {"layout": numbers},
        "numbers": numbers,
    }[form]
    spec = SKILL["spec"].read_text(encoding="utf-8")
    np.savez(tmp_path / "x.npz", prof=slots().ravel(), meta=json.dumps({**stated, "spec": json.loads(spec)}))
    texts = {k: v if isinstance(v, str) else json.dumps(v) for k, v in stated.items()}
    safetensors(tmp_path / "x.safetensors", slots().ravel(), {**texts, "spec": spec})
    for name in ("x.npz", "x.safetensors"):
        assert registry.import_files([tmp_path / name], {}).rows("events") == 900


def test_role_spec_as_windows_writes_it(tmp_path: Path) -> None:
    text = SKILL["spec"].read_text(encoding="utf-8").replace("\n", "\r\n")
    (tmp_path / "spec.json").write_bytes(b"\xef\xbb\xbf" + text.encode())
    bundle = registry.import_files(
        [samples.path("balanced_r0.i32")], {"spec": tmp_path / "spec.json", "layout": "3,16,64"}
    )
    assert bundle.rows("events") == 900
