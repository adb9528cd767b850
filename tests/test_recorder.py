"""The recorder: passes from a role spec, the order of launches, and recordings of real launches decoded to bundles.

The device is replaced by one in memory, except in tests that need a GPU.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wsformat import rolespec, samples
from wsformat.errors import BadRequest, MalformedInput, MissingDependency
from wsformat.kernels import calibrate
from wsformat.kernels.decode import to_bundle
from wsformat.kernels.driver import Device
from wsformat.kernels.examples import attention_hopper, gemm_hopper
from wsformat.kernels.examples.number_formats import bf16, e4m3, float64
from wsformat.kernels.examples.record import names, record
from wsformat.kernels.gpu_state import GpuState
from wsformat.kernels.passes import StampPass, clean, standard
from wsformat.kernels.recorder import Recorder, Request, StampArgs
from wsformat.kernels.recording import CLEAN, Launched, Recording
from wsformat.rolespec import Layout
from wsformat.stamp_times import META
from wsformat.validate import validate

LAYOUT = Layout(3, 16, 64)
EXAMPLES = Path(gemm_hopper.__file__).parent


def spec() -> rolespec.RoleSpec:
    return rolespec.parse(gemm_hopper.Variant().spec(), "gemm", LAYOUT)


class Memory:
    """A device whose memory is the host's."""

    def __init__(self) -> None:
        self.held: list[Any] = []

    def allocate(self, size: int) -> int:
        self.held.append((ctypes.c_char * size)())
        return ctypes.addressof(self.held[-1])

    def fill(self, pointer: int, byte: int, size: int) -> None:
        ctypes.memset(pointer, byte, size)

    def download(self, pointer: int, into: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        ctypes.memmove(into.ctypes.data, pointer, into.nbytes)
        return into

    bus_id = "0000:00:00.0"

    def synchronize(self) -> None:
        pass

    def finish(self, stream: Any, seconds: float) -> bool:
        return True


TICKS = {CLEAN: 500, 0: 550, 1: 505}
"""What an iteration takes under each pass."""


def kernel(request: Request, *, forget: int = -1) -> None:
    """What a stamped kernel would write: each CTA its record, each stamp of the pass its slot."""
    args = request.args
    shape = (args.ctas, LAYOUT.roles, LAYOUT.events, LAYOUT.iterations)
    slots = np.frombuffer((ctypes.c_uint32 * int(np.prod(shape))).from_address(args.slots), np.uint32).reshape(shape)
    raw = (ctypes.c_char * (40 * args.ctas)).from_address(args.records)
    records = np.frombuffer(raw, META)
    for cta in range(args.ctas):
        if cta == forget:
            continue
        start = 10**9 * (cta + 1)
        life = 3000 + request.trips * TICKS[request.number]
        records[cta] = (start, start, start + life, start + life, cta, 0)
        for role, mask in request.stamp_pass.events.items():
            for event in (e for e in range(LAYOUT.events) if mask >> e & 1):
                trips = 1 if event >= 5 else request.trips
                times = start + 100 + np.arange(trips) * TICKS[request.number] + 10 * event + role
                slots[cta, role, event, :trips] = times + (request.trips * 500 if event >= 5 else 0)


def recorded(**options: Any) -> Recording:
    passes = standard(spec(), ["all", "waits"])
    device: Any = Memory()
    recorder = Recorder(device, gemm_hopper.Variant().spec(), LAYOUT, passes, ctas=2)
    return recorder.record(kernel, [32, 64], **options)


def test_passes_of_a_role_spec() -> None:
    masks = {
        p.name: dict(p.events) for p in standard(spec(), ["all", "waits", "work", "waits:producer", "work:consumer1"])
    }
    assert masks["all"] == {0: 0xF, 1: 0x7F, 2: 0x7F}
    # The producer's work_end and the consumers' arrive are the signals that the waits need.
    assert masks["waits"] == {0: 0b01011, 1: 0b10011, 2: 0b10011}
    assert masks["work"] == {0: 0b1100, 1: 0b1101100, 2: 0b1101100}
    assert masks["waits:producer"] == {0: 0b11, 1: 0b10000, 2: 0b10000}
    assert masks["work:consumer1"] == {2: 0b1101100}
    for name, says in (("some", "no pass 'some'"), ("waits:nobody", "no role 'nobody'")):
        with pytest.raises(BadRequest, match=says):
            standard(spec(), [name])


def test_a_pass_as_macros() -> None:
    assert StampPass("x", {1: 0x13, 0: 0xB, 2: 0}, {"WSF_SINK": 0}).defines() == {
        "WSF_STAMPS": 1,
        "WSF_EVENT_MASK": "(role==0?0xbull:role==1?0x13ull:0ull)",
        "WSF_SINK": 0,
    }
    assert clean().defines() == {"WSF_STAMPS": 1, "WSF_EVENT_MASK": "(0ull)"}
    assert ctypes.sizeof(StampArgs) == 32


def test_every_build_runs_equally_often_in_an_order_that_changes() -> None:
    found = recorded(repeats=5, keep=2)
    ran = [(k.number, k.trips) for k in found.launches]
    for number in (CLEAN, 0, 1):
        for trips in (32, 64):
            assert ran.count((number, trips)) == 5
    rounds = [tuple(ran[n : n + 3]) for n in range(0, len(ran), 3)]
    assert all(len({trips for _, trips in one}) == 1 for one in rounds)
    assert len({tuple(number for number, _ in one) for one in rounds}) > 1
    kept = [k for k in found.launches if k.slots is not None]
    assert sorted(k.number for k in kept) == [0, 0, 1, 1]
    assert {k.trips for k in kept} == {64}


def test_slopes_and_perturbation_leave_the_fixed_cost_out() -> None:
    found = recorded(repeats=3)
    assert [found.slope(n) for n in (CLEAN, 0, 1)] == [500, 550, 505]
    assert found.perturbation(0) == pytest.approx(0.10)
    assert found.perturbation(1) == pytest.approx(0.01)
    one = recorded(repeats=1)
    one.launches = [k for k in one.launches if k.trips == 64]
    assert np.isnan(one.slope(0))


def test_a_cta_that_writes_no_record_is_named() -> None:
    device: Any = Memory()
    recorder = Recorder(device, {}, LAYOUT, [], ctas=3)
    with pytest.raises(BadRequest, match="pass 'clean': CTA 1 of 3 wrote no record"):
        recorder.record(lambda request: kernel(request, forget=1), [4], repeats=1)
    with pytest.raises(BadRequest, match="nothing to record"):
        Recorder(device, {}, LAYOUT, [], ctas=0)


@pytest.mark.parametrize("end", [2**64 - 1, 5], ids=["never written", "before its start"])
def test_a_cta_that_records_no_end_is_named(end: int) -> None:
    def launch(request: Request) -> None:
        kernel(request)
        raw = (ctypes.c_char * (40 * 2)).from_address(request.args.records)
        np.frombuffer(raw, META)["c1"][1] = end

    recorder = Recorder(Memory(), {}, LAYOUT, [], ctas=2)  # type: ignore[arg-type]
    with pytest.raises(BadRequest, match="pass 'clean': CTA 1 of 2 recorded no end"):
        recorder.record(launch, [4], repeats=1)


class Faulty(Memory):
    """A device on which the n-th launch goes wrong."""

    def __init__(self, say: str = "", ended: bool = True) -> None:
        super().__init__()
        self.say, self.ended = say, ended
        self.asked: list[tuple[Any, float]] = []

    def finish(self, stream: Any, seconds: float) -> bool:
        self.asked.append((stream, seconds))
        if self.say and len(self.asked) > 2:
            raise BadRequest(f"CUDA: {self.say}")
        return self.ended


def test_a_fault_names_the_build_and_the_trip_count() -> None:
    device: Any = Faulty("an illegal memory access was encountered")
    recorder = Recorder(device, {}, LAYOUT, standard(spec(), ["all"]), ctas=2)
    with pytest.raises(BadRequest, match=r"pass '(all|clean)', 32 iterations: CUDA: an illegal memory") as caught:
        recorder.record(kernel, [32], repeats=1)
    assert "compute-sanitizer" in caught.value.hint
    device = Faulty(ended=False)
    recorder = Recorder(device, {}, LAYOUT, [], ctas=2, timeout_s=0.5, stream=7)
    with pytest.raises(BadRequest, match=r"pass 'clean', 32 iterations: still running after 0.5 s") as caught:
        recorder.record(kernel, [32], repeats=1)
    assert "a signal that never comes" in caught.value.hint
    assert device.asked == [(7, 0.5)]


def test_what_the_callable_raises_is_its_own_with_a_note() -> None:
    def launch(request: Request) -> None:
        raise KeyError("no such build")

    recorder = Recorder(Memory(), {}, LAYOUT, [], ctas=2)  # type: ignore[arg-type]
    with pytest.raises(KeyError, match="no such build") as caught:
        recorder.record(launch, [32], repeats=1)
    assert caught.value.__notes__ == ["raised by the callable that launches pass 'clean', 32 iterations"]


@pytest.mark.parametrize(
    ("plan", "says"),
    [
        ({"trips": []}, "trip counts"),
        ({"trips": [0, 4]}, "trip counts"),
        ({"trips": [4, 4]}, "trip counts"),
        ({"trips": [4], "repeats": 0}, "nothing to record"),
        ({"trips": [4], "keep": -1}, "nothing to record"),
        ({"trips": [4], "passes": ["all", "all"]}, "a name of its own"),
    ],
)
def test_plans_that_cannot_be_read_afterwards(plan: dict[str, Any], says: str) -> None:
    passes = standard(spec(), plan.pop("passes", ["all"]))
    recorder = Recorder(Memory(), {}, LAYOUT, passes, ctas=2)  # type: ignore[arg-type]
    with pytest.raises(BadRequest, match=says):
        recorder.record(kernel, **plan)


class Tensor:
    """A tensor of another library, on the stand-in's device."""

    def __init__(self, words: int) -> None:
        self.words = np.zeros(words, np.int32)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"shape": self.words.shape, "typestr": "<i4", "data": (self.words.ctypes.data, False), "version": 3}


def test_buffers_and_stream_of_another_library() -> None:
    size = 2 * LAYOUT.slots
    slots, records = Tensor(size), Tensor(20)
    device: Any = Memory()
    passes = standard(spec(), ["all"])
    seen: list[int] = []

    def launch(request: Request) -> None:
        seen.append(request.stream)
        assert bytes(request.numpy()) == bytes(request.args)
        assert request.numpy().ndim == 0
        kernel(request)

    recorder = Recorder(device, {}, LAYOUT, passes, ctas=2, buffers=(slots, records), stream=9)
    assert (recorder.args.slots, recorder.args.records) == (slots.words.ctypes.data, records.words.ctypes.data)
    assert device.held == []  # nothing of our own
    found = recorder.record(launch, [32], repeats=2)
    own = Recorder(Memory(), {}, LAYOUT, passes, ctas=2).record(kernel, [32], repeats=2)  # type: ignore[arg-type]
    for mine, theirs in zip(found.launches, own.launches, strict=True):
        assert np.array_equal(mine.records, theirs.records)
    assert set(seen) == {9}
    assert recorder.sizes() == (4 * size, 80)
    for bad, says in (
        ((Tensor(size - 1), records), "slots: .* bytes, .* are needed"),
        ((slots, Tensor(19)), "records: 76 bytes, 80 are needed"),
        ((slots.words.ctypes.data + 4, records), "no multiple of 8"),
        ((slots.words, records), "slots: .*host"),
    ):
        with pytest.raises(BadRequest, match=says):
            Recorder(device, {}, LAYOUT, passes, ctas=2, buffers=bad)
    with pytest.raises(BadRequest, match="no CUDA stream"):
        Recorder(device, {}, LAYOUT, passes, ctas=2, stream="main")


def test_states_of_the_gpu_and_remarks_reach_the_bundle(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    readings = iter([{"sm_clock_mhz": 1700 + n, "throttle_reasons": ["hw_slowdown"] * (n > 1)} for n in range(9)])
    monkeypatch.setattr(GpuState, "read", lambda self: next(readings))
    found = recorded(repeats=2)
    found.builds = {"clean": {"registers": 90}, "all": {"registers": 93, "max_ctas_per_sm": 1, "local_bytes": 16}}
    found.save(tmp_path / "x.npz")
    found = Recording.load(tmp_path / "x.npz")
    assert [s["sm_clock_mhz"] for s in found.states] == [1700, 1701, 1702, 1703, 1704]  # two warm-up rounds
    bundle = to_bundle(found)
    bundle.write(tmp_path / "x.wsformat")
    assert [p for p in validate(tmp_path / "x.wsformat").problems if p.level != "I"] == []
    known = {a["name"]: (a["type"], a["value"]) for a in rows(bundle, "attributes") if a["table_name"] == "captures"}
    assert known["record.gpu.before.sm_clock_mhz"] == ("int", "1700")
    assert known["record.gpu.after.throttle_reasons"] == ("json", '["hw_slowdown"]')
    texts = {(f["subject"], f["text"].split(":")[0]) for f in rows(bundle, "findings")}
    assert ("build", "Pass all") in texts
    assert any(subject == "clock" and "hw_slowdown" in text for subject, text in texts)
    resident = {(a["name"], a["value"]) for a in rows(bundle, "attributes") if a["table_name"] == "launches"}
    assert resident == {("registers_per_thread", "93"), ("max_ctas_per_sm", "1")}


def test_a_recording_is_read_as_it_was_written(tmp_path: Path) -> None:
    found = recorded(repeats=2)
    found.builds, found.calibration, found.facts = {"clean": {"registers": 90}}, {"stamp": 2.0}, {"device": "none"}
    found.save(tmp_path / "x.npz")
    again = Recording.load(tmp_path / "x.npz")
    for name in ("spec", "layout", "passes", "builds", "calibration", "facts"):
        assert getattr(again, name) == getattr(found, name), name
    for mine, theirs in zip(again.launches, found.launches, strict=True):
        assert (mine.number, mine.trips) == (theirs.number, theirs.trips)
        assert np.array_equal(mine.records, theirs.records)
        assert (mine.slots is None) == (theirs.slots is None)
        assert mine.slots is None or np.array_equal(mine.slots, theirs.slots)
    whole = (tmp_path / "x.npz").read_bytes()
    for bad in (b"", whole[:200], b"no archive"):
        (tmp_path / "bad.npz").write_bytes(bad)
        with pytest.raises(MalformedInput, match=r"bad.npz: no recording"):
            Recording.load(tmp_path / "bad.npz")
    np.savez(tmp_path / "other.npz", prof=np.zeros(3))
    with pytest.raises(MalformedInput, match=r"other.npz: no recording"):
        Recording.load(tmp_path / "other.npz")


def rows(bundle: Any, name: str) -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = bundle.table(name).to_pylist()
    return result


def test_a_recording_becomes_a_bundle(tmp_path: Path) -> None:
    found = recorded(repeats=3)
    found.calibration = {"stamp": 2.0, "wait_floor": 42.0}
    found.builds = {"clean": {"registers": 90}, "all": {"registers": 93, "warnings": [], "wgmma_serialised": False}}
    found.grid = (2, 1, 1, 384, 1, 1)
    bundle = to_bundle(found)
    bundle.write(tmp_path / "x.wsformat")
    report = validate(tmp_path / "x.wsformat")
    assert [p for p in report.problems if p.level != "I"] == []
    stamped, other = sorted(rows(bundle, "captures"), key=lambda c: c["kind"], reverse=True)
    assert (stamped["kind"], other["kind"], stamped["stamp_sink"]) == ("stamped", "clean", "shared")
    assert stamped["experiment"] == other["experiment"] != ""
    assert stamped["completeness"] == "complete"
    launches = rows(bundle, "launches")
    assert {(k["kind"], k["pass"], k["trip_count"]) for k in launches} == {
        (kind, number, trips) for kind, number in (("stamped", 0), ("stamped", 1), ("clean", -1)) for trips in (32, 64)
    }
    assert {(k["grid_x"], k["block_x"]) for k in launches} == {(2, 384)}
    # Two CTAs, one kept launch of each pass.
    assert bundle.table("events").num_rows == 2 * (64 * (4 + 5 + 5) + 2 * 2) + 2 * 64 * 9
    assert {s["floor_ticks"] for s in rows(bundle, "span_types") if s["state"] == "stall"} == {42.0}
    known = {a["name"]: (a["type"], a["value"]) for a in rows(bundle, "attributes")}
    assert known["record.pass.0.name"] == ("text", "all")
    assert known["record.pass.0.build.registers"] == ("int", "93")
    assert known["record.pass.0.build.wgmma_serialised"] == ("bool", "false")
    assert known["record.calibration.stamp_ticks"] == ("float", "2.0")
    view = {
        (r["pass"], r["ticks"], r["clean_ticks"])
        for r in bundle.sql("SELECT * FROM perturbation WHERE preference = 1").to_pylist()
    }
    assert view == {(0, 550.0, 500.0), (1, 505.0, 500.0)}
    assert to_bundle(found).table("captures").equals(bundle.table("captures"))


def windowed(first: int, stride: int) -> Recording:
    """Two passes, the first of a window: the kernel writes the slots that the header would."""
    macros = {"WSF_FROM": first, "WSF_STRIDE": stride}
    passes = [StampPass("all", standard(spec(), ["all"])[0].events, macros), *standard(spec(), ["waits"])]
    device: Any = Memory()
    recorder = Recorder(device, gemm_hopper.Variant().spec(), LAYOUT, passes, ctas=2, first_cta=3, cta_step=5)

    def launch(request: Request) -> None:
        kernel(request)
        if request.number == 0:
            args, size = request.args, (2, LAYOUT.roles, LAYOUT.events, LAYOUT.iterations)
            raw = (ctypes.c_uint32 * int(np.prod(size))).from_address(args.slots)
            slots = np.frombuffer(raw, np.uint32).reshape(size)
            chosen = slots[..., first::stride].copy()
            slots[:] = 0
            slots[..., : chosen.shape[-1]] = chosen

    return recorder.record(launch, [32, 64], repeats=2)


def test_a_pass_of_a_window_has_the_iterations_that_it_stamped(tmp_path: Path) -> None:
    found = windowed(8, 4)
    found.save(tmp_path / "x.npz")
    found = Recording.load(tmp_path / "x.npz")
    bundle = to_bundle(found)
    bundle.write(tmp_path / "x.wsformat")
    # The epilogue's stamps have iteration 0, which this window leaves out; the kernel would have to give WSF_FROM.
    warned = {(p.code, p.level) for p in validate(tmp_path / "x.wsformat").problems if p.level != "I"}
    assert warned == {("W705", "W")}
    stamped = bundle.sql(
        """SELECT k.pass, e.role, e.event, e.cta, LIST(e.iteration ORDER BY e.iteration) AS iterations,
                  MIN(k.slots) AS slots
           FROM events e JOIN launches k USING (capture_id, launch)
           WHERE e.event IN ('wait_enter', 'wait_exit') GROUP BY ALL"""
    ).to_pylist()
    for row in stamped:
        assert row["iterations"] == (list(range(8, 64, 4)) if row["pass"] == 0 else list(range(64)))
        assert row["slots"] == (8 + 4 * 64 if row["pass"] == 0 else 64)
    assert {row["cta"] for row in stamped} == {3, 8}
    lanes = {x["completeness"] for x in rows(bundle, "lanes")}
    assert lanes == {"sampled"}  # CTAs were chosen too
    known = {(a["row_key"], a["name"]): a["value"] for a in rows(bundle, "attributes") if a["table_name"] == "launches"}
    assert {(name, value) for (_, name), value in known.items() if "window" in name} == {
        ("window.from", "8"),
        ("window.stride", "4"),
    }
    # Waits that need a signal of iteration j - 4 find it: the stride is the lag.
    verdicts = {
        (w["pass"], w["verdict"])
        for w in bundle.sql(
            """SELECT k.pass, w.verdict FROM wait w JOIN launches k USING (capture_id, launch)
               WHERE w.barrier = 'empty' AND w.iteration >= 12"""
        ).to_pylist()
    }
    assert not {v for n, v in verdicts if n == 0} & {"unknown", "free"}


def test_some_passes_of_a_recording() -> None:
    found = recorded(repeats=2)
    only = to_bundle(found, ["waits"])
    assert {k["pass"] for k in rows(only, "launches")} == {0, -1}
    assert {(a["name"], a["value"]) for a in rows(only, "attributes")} >= {("record.pass.0.name", "waits")}
    with pytest.raises(BadRequest, match="no pass 'x'"):
        to_bundle(found, ["x"])
    found.launches = [Launched(k.number, k.trips, k.records) for k in found.launches]
    with pytest.raises(BadRequest, match="kept its stamps"):
        to_bundle(found, ["waits"])


@pytest.mark.parametrize("name", ["gemm_hopper", "gemm_hopper_slow_producer", "gemm_hopper_two_stages"])
def test_real_recordings(name: str, tmp_path: Path) -> None:
    found = Recording.load(EXAMPLES / f"{name}.npz")
    bundle = to_bundle(found)
    bundle.write(tmp_path / "x.wsformat")
    report = validate(tmp_path / "x.wsformat")
    assert [p for p in report.problems if p.level != "I"] == []
    assert {c["completeness"] for c in rows(bundle, "captures") if c["kind"] == "stamped"} == {"complete"}
    assert {p["name"] for p in found.passes} == {"all", "waits", "work"}
    for number in range(3):
        assert abs(found.perturbation(number)) < 0.04
    # The tensor cores need 512 ticks an iteration; the ring of four stages keeps them busy, the others do not.
    bounds = {
        "gemm_hopper": (511, 520),
        "gemm_hopper_slow_producer": (1500, 2000),
        "gemm_hopper_two_stages": (650, 760),
    }
    low, high = bounds[name]
    assert low < found.slope(CLEAN) < high
    for facts in found.builds.values():
        assert facts["local_bytes"] == 0
        assert facts["warnings"] == []
        assert facts["relative_error"] < gemm_hopper.TOLERANCE
    if name == "gemm_hopper_slow_producer":
        share = {
            r["role"]: r
            for r in bundle.sql(
                """SELECT role, stall_share, untracked_share FROM role_summary s
                   JOIN launches k USING (capture_id, launch)
                   WHERE k.pass = 0 AND s.lanes_recorded > 0"""
            ).to_pylist()
        }
        assert share["consumer0"]["stall_share"] > 0.5
        assert share["producer"]["untracked_share"] > 0.5


def test_the_recording_of_attention(tmp_path: Path) -> None:
    found = Recording.load(EXAMPLES / "attention_hopper.npz")
    bundle = to_bundle(found)
    bundle.write(tmp_path / "x.wsformat")
    assert [p for p in validate(tmp_path / "x.wsformat").problems if p.level != "I"] == []
    assert 2048 < found.slope(CLEAN) < 3100
    for number, facts in enumerate(found.builds.values()):
        assert facts["local_bytes"] == 0
        assert facts["relative_error"] < attention_hopper.TOLERANCE
        assert number == 0 or not facts["wgmma_serialised"]
    assert all(abs(found.perturbation(n)) < 0.02 for n in range(3))
    waits = bundle.sql(
        """SELECT w.role, w.span, w.verdict, COUNT(*) AS n, MEDIAN(w.ticks) AS ticks
           FROM wait w JOIN launches k ON k.capture_id = w.capture_id AND k.launch = w.launch
           WHERE k.pass = 0 GROUP BY ALL"""
    ).to_pylist()
    # The consumers set the pace: the producer waits for room, two iterations of room are there at first, and K and V
    # are always there before they are needed.
    of_producer = {(w["span"], w["verdict"]): w["n"] for w in waits if w["role"] == "producer"}
    assert of_producer == {
        (span, kind): n for span in ("wait_k", "wait_v") for kind, n in (("free", 2), ("producer_late", 62))
    }
    assert all(w["ticks"] < 200 for w in waits if w["role"] != "producer" and w["span"] != "wait_q")
    assert [w["verdict"] for w in waits if w["span"] == "wait_q"] == ["producer_late"] * 2


def test_attention_reference() -> None:
    random = np.random.default_rng(5)
    q, k, v = (random.standard_normal((2, n, 8)) for n in (3, 5, 5))
    got = attention_hopper.attention(q, k, v, 0.5)
    for head in range(2):
        for row in range(3):
            weights = [np.exp(0.5 * q[head, row] @ k[head, j]) for j in range(5)]
            want = sum(w * v[head, j] for j, w in enumerate(weights)) / sum(weights)
            assert np.allclose(got[head, row], want)


def test_the_recording_of_the_cute_example(tmp_path: Path) -> None:
    found = Recording.load(EXAMPLES / "gemm_cute.npz")
    bundle = to_bundle(found, ["all", "waits", "work"])
    bundle.write(tmp_path / "x.wsformat")
    assert [p for p in validate(tmp_path / "x.wsformat").problems if p.level != "I"] == []
    assert {c["completeness"] for c in rows(bundle, "captures") if c["kind"] == "stamped"} == {"complete"}
    assert bundle.table("events").num_rows == 64 * (14 + 9 + 6)
    assert 505 < found.slope(CLEAN) < 525


def test_a_slow_producer_is_untracked_and_its_consumers_wait() -> None:
    found = Recording.load(EXAMPLES / "gemm_hopper_slow_producer.npz")
    (slots,) = [k.slots for k in found.launches if k.slots is not None and k.number == 0]
    ticks = slots[0].astype(np.int64)
    wait = np.median(ticks[:, 1] - ticks[:, 0], axis=1)
    spin = np.median(ticks[0, 2] - ticks[0, 1])
    assert 1500 <= spin < 1600
    assert wait[0] < 200
    assert min(wait[1], wait[2]) > 800


def test_without_a_gpu_one_line_says_so() -> None:
    if Path("/dev/nvidiactl").exists():
        pytest.skip("this machine has a GPU")
    with pytest.raises((BadRequest, MissingDependency), match=r"CUDA driver|no GPU|cuda-python") as caught:
        Device()
    assert caught.value.hint
    with pytest.raises(BadRequest, match="no example 'nope'"):
        record("nope")
    assert {"gemm_hopper", "gemm_hopper_two_stages", "gemm_persistent", "gemm_cluster", "attention_hopper"} < {*names()}


def test_the_lag_of_empty_is_the_length_of_the_ring() -> None:
    for stages in (2, 4):
        lags = {e["barrier"]: e["iteration_lag"] for e in gemm_hopper.Variant(stages=stages).spec()["dependencies"]}
        assert lags == {"full": 0, "empty": stages}
    # The same slots as the kernel of the samples.
    assert rolespec.load(samples.path("gemm_roles.json")).spans == spec().spans


def test_bf16_is_rounded_to_nearest_even() -> None:
    values = np.array([1.0, 1 + 2**-8, 1 + 3 * 2**-8, -1 - 2**-9, 3e38, 1e-40], np.float32)
    assert bf16(values).tolist() == [0x3F80, 0x3F80, 0x3F82, 0xBF80, 0x7F62, 0x0001]


def test_e4m3_is_rounded_to_nearest_even() -> None:
    # 1.0625 lies halfway between 1 (even) and 1.125, 1.1875 between 1.125 and 1.25 (even); the smallest is 2^-9.
    values = np.array([1.0, -1.5, 448, 1e9, 1.0625, 1.1875, 2**-9, 2**-10, 3 * 2**-10, 0.0, 2**-6], np.float32)
    bits = e4m3(values)
    assert bits.tolist() == [0x38, 0xBC, 0x7E, 0x7E, 0x38, 0x3A, 0x01, 0x00, 0x02, 0x00, 0x08]
    want = [1, -1.5, 448, 448, 1, 1.25, 2**-9, 0, 2**-8, 0, 2**-6]
    assert float64(bits).tolist() == want
    every = np.arange(0x7F, dtype=np.uint8)
    assert np.array_equal(e4m3(float64(every).astype(np.float32)), every)


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["gemm_hopper", "gemm_hopper_two_stages", "attention_hopper"])
def test_recording_on_a_gpu(name: str, tmp_path: Path) -> None:
    try:
        with Device() as device:
            if device.capability != (9, 0):
                pytest.skip(f"{device.name} is no Hopper GPU")
    except (BadRequest, MissingDependency) as error:
        pytest.skip(str(error))
    found = record(name, repeats=5, n=2 if name.startswith("attention") else 256)
    assert found.launches[0].records.shape == (2,)
    to_bundle(found).write(tmp_path / "x.wsformat")
    assert [p for p in validate(tmp_path / "x.wsformat").problems if p.level != "I"] == []


def test_calibration_stamps_every_iteration_whatever_the_pass_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []

    class Built:
        cubin, names = b"", {"calibrate": "calibrate"}

    class Calibrated(Memory):
        capability = (9, 0)

        def function(self, cubin: bytes, name: str) -> int:
            return len(asked)

        def launch(self, function: int, grid: Any, block: Any, shared: int, args: list[Any]) -> None:
            trips, stamps = args[0].value, args[1]
            raw = (ctypes.c_char * 40).from_address(stamps.records)
            np.frombuffer(raw, META)[0] = (10, 10, 99, 99, 0, 0)
            if function == 2:  # stamps: 3 ticks for a pair, 42 for a satisfied wait
                held = (ctypes.c_uint32 * calibrate.LAYOUT.slots).from_address(stamps.slots)
                slots = np.frombuffer(held, np.uint32).reshape(2, 2, trips)
                slots[:, 0] = 100 + np.arange(trips)
                slots[0, 1], slots[1, 1] = slots[0, 0] + 3, slots[1, 0] + 42

    def build(source: str, kernels: Any, *, arch: str, macros: dict[str, Any], name: str) -> type[Built]:
        asked.append(macros)
        return Built

    monkeypatch.setattr(calibrate.nvrtc, "build", build)
    device: Any = Calibrated()
    got = calibrate.calibrate(device, {"WSF_SINK": 0, "WSF_FROM": 99, "WSF_STRIDE": 4, "WSF_ITERATIONS": 7})
    assert got == {"stamp": 3.0, "wait_floor": 42.0}
    assert asked[1]["WSF_ITERATIONS"] == calibrate.TRIPS
    assert asked[1]["WSF_SINK"] == 0
    assert not {"WSF_FROM", "WSF_STRIDE"} & set(asked[1])
