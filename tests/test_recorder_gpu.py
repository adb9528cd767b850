"""The recorder on a GPU with other people's libraries: memory, streams and launches of PyTorch, CuPy and Triton.

Every launch computes something that is checked against a float64 reference, from fresh random numbers.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wsformat.errors import BadRequest, MissingDependency
from wsformat.kernels import nvrtc
from wsformat.kernels.adopt import Memory, memory
from wsformat.kernels.calibrate import native_arch
from wsformat.kernels.decode import to_bundle
from wsformat.kernels.driver import Device
from wsformat.kernels.passes import StampPass
from wsformat.kernels.recorder import Recorder, Request
from wsformat.kernels.recording import CLEAN, Recording
from wsformat.rolespec import Layout
from wsformat.validate import validate

pytestmark = pytest.mark.gpu

TRIPS = 64
LAYOUT = Layout(1, 2, TRIPS)
THREADS = 128
SOURCE = """
#include "wsformat_stamp.cuh"
extern "C" __global__ void sums(const float* a, float* b, int trips, int columns WSF_PARAM) {
    WSF_BEGIN();
    WSF_WRITER(threadIdx.x == 0);
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
#pragma unroll 1
    for (int k = 0; k < trips; ++k) {
        WSF_STAMP(0, 0, k);
        sum += column < columns ? a[k * columns + column] : 0.f;
        WSF_STAMP(0, 1, k);
    }
    if (column < columns) b[column] = sum;
    WSF_END();
}
"""
SPEC = {
    "wsformat_rolespec": "0.1",
    "roles": [{"role": "adder", "kind": "consumer"}],
    "events": [
        {"role": "adder", "event": "begin", "event_index": 0},
        {"role": "adder", "event": "end", "event_index": 1},
    ],
    "spans": [{"role": "adder", "span": "add", "state": "active", "begin_event": "begin", "end_event": "end"}],
}
ALL = StampPass("all", {0: 3}, {})


@pytest.fixture(scope="module")
def device() -> Iterator[Device]:
    try:
        opened = Device()
    except (BadRequest, MissingDependency) as error:
        pytest.skip(str(error))
    with opened:
        yield opened


def compiled(device: Device, recorder: Recorder, passes: Mapping[int, StampPass]) -> dict[int, Any]:
    functions = {}
    for number, one in passes.items():
        macros = {**recorder.macros(), **one.defines()}
        build = nvrtc.build(SOURCE, ["sums"], arch=native_arch(device), macros=macros)
        functions[number] = device.function(build.cubin, build.names["sums"])
    return functions


def check(found: Recording, folder: Path, ctas: int) -> Any:
    assert {k.number for k in found.launches} == {CLEAN, *range(len(found.passes))}
    assert all(np.isfinite(found.slope(n)) and found.slope(n) > 0 for n in (CLEAN, 0))
    bundle = to_bundle(found)
    bundle.write(folder / "x.wsformat")
    assert [p for p in validate(folder / "x.wsformat").problems if p.level != "I"] == []
    spans = bundle.sql("SELECT cta, COUNT(*) AS n, MIN(t1 - t0) AS least FROM span GROUP BY cta").to_pylist()
    assert {row["cta"] for row in spans} == set(range(ctas))
    assert all(row["n"] == TRIPS * len(found.passes) and row["least"] > 0 for row in spans)
    return bundle


def test_tensors_and_the_current_stream_of_torch(device: Device, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    columns = 2 * THREADS - 5
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        a = torch.randn(TRIPS, columns, device="cuda")
        b = torch.full((columns,), float("nan"), device="cuda")
        size = (2 * LAYOUT.slots, 2 * 40)
        buffers = (
            torch.zeros(size[0], dtype=torch.int32, device="cuda"),
            torch.zeros(size[1], dtype=torch.uint8, device="cuda"),
        )
        recorder = Recorder(device, SPEC, LAYOUT, [ALL], ctas=2, buffers=buffers, stream=torch.cuda.current_stream())
        functions = compiled(device, recorder, {CLEAN: recorder.clean_pass, 0: ALL})

        def launch(request: Request) -> None:
            assert request.stream == stream.cuda_stream
            args = [a, b, np.int32(request.trips), np.int32(columns), request.args]
            device.launch(functions[request.number], (2, 1, 1), (THREADS, 1, 1), 0, args, stream=stream)
            if request.trips == TRIPS:
                want = a.double().sum(0)
                error = ((b.double() - want).norm() / want.norm()).item()
                assert error < 1e-5, error
                b.fill_(float("nan"))

        found = recorder.record(launch, [TRIPS // 2, TRIPS], repeats=5)
    check(found, tmp_path, 2)
    assert buffers[0].data_ptr() == recorder.args.slots
    assert int((buffers[0] != 0).sum()) in (0, 4 * TRIPS, 2 * TRIPS)


def test_a_kernel_that_cupy_compiles_and_launches(device: Device, tmp_path: Path) -> None:
    cupy = pytest.importorskip("cupy")
    columns = 2 * THREADS
    a = cupy.random.standard_normal((TRIPS, columns), dtype=cupy.float32)
    b = cupy.full(columns, cupy.nan, dtype=cupy.float32)
    stream = cupy.cuda.Stream(non_blocking=True)
    recorder = Recorder(device, SPEC, LAYOUT, [ALL], ctas=2, stream=stream)
    kernels = {}
    for number, one in ((CLEAN, recorder.clean_pass), (0, ALL)):
        defines = tuple(f"-D{k}={v}" for k, v in {**recorder.macros(), **one.defines()}.items())
        module = cupy.RawModule(code=SOURCE, options=("-std=c++17", f"-I{nvrtc.include_dir()}", *defines))
        kernels[number] = module.get_function("sums")

    def launch(request: Request) -> None:
        with stream:
            b.fill(cupy.nan)
            args = (a, b, np.int32(request.trips), np.int32(columns), request.numpy())
            kernels[request.number]((2,), (THREADS,), args)
            want = a[: request.trips].astype(cupy.float64).sum(0)
            assert float(cupy.linalg.norm(b - want) / cupy.linalg.norm(want)) < 1e-5

    check(recorder.record(launch, [TRIPS // 2, TRIPS], repeats=5), tmp_path, 2)


def test_an_array_that_speaks_dlpack_only(device: Device) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("cuda.core.utils")
    tensor = torch.zeros(12, dtype=torch.int64, device="cuda")

    class Packed:
        def __dlpack__(self, **asked: Any) -> Any:
            return tensor.__dlpack__(**{k: v for k, v in asked.items() if k == "stream"})

        def __dlpack_device__(self) -> Any:
            return tensor.__dlpack_device__()

    found = memory(Packed(), "x")
    assert (found.address, found.size) == (tensor.data_ptr(), 96)
    with pytest.raises(BadRequest, match="host"):
        memory(torch.zeros(3), "x")


TRITON = """
import triton
import triton.language as tl


@triton.jit
def clock(): return tl.inline_asm_elementwise("mov.u32 $0, %clock;", "=r", [], dtype=tl.uint32, is_pure=False, pack=1)


@triton.jit
def clock64():
    return tl.inline_asm_elementwise("mov.u64 $0, %clock64;", "=l", [], dtype=tl.uint64, is_pure=False, pack=1)


@triton.jit
def timer():
    return tl.inline_asm_elementwise("mov.u64 $0, %globaltimer;", "=l", [], dtype=tl.uint64, is_pure=False, pack=1)


@triton.jit
def smid(): return tl.inline_asm_elementwise("mov.u32 $0, %smid;", "=r", [], dtype=tl.uint32, is_pure=False, pack=1)


@triton.jit
def sums(a, b, slots, records, trips, columns, STAMPED: tl.constexpr, N: tl.constexpr, WIDTH: tl.constexpr):
    cta = tl.program_id(0)
    record = records + cta * 5
    tl.store(record, timer())
    tl.store(record + 1, clock64())
    column = cta * WIDTH + tl.arange(0, WIDTH)
    total = tl.zeros((WIDTH,), tl.float32)
    for k in range(trips):
        if STAMPED:
            tl.store(slots + cta * 2 * N + k, clock())
        total += tl.load(a + k * columns + column, mask=column < columns, other=0.0)
        if STAMPED:
            tl.store(slots + cta * 2 * N + N + k, clock())
    tl.store(b + column, total, mask=column < columns)
    tl.store(record + 4, smid().to(tl.uint64))
    tl.store(record + 2, timer())
    tl.store(record + 3, clock64())
"""


def test_a_triton_kernel_with_stamps_of_its_own(
    device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("triton")
    (tmp_path / "triton_sums.py").write_text(TRITON)  # Triton reads its source from a file
    monkeypatch.syspath_prepend(str(tmp_path))
    kernel = __import__("triton_sums").sums
    columns = 2 * THREADS - 3
    a = torch.randn(TRIPS, columns, device="cuda")
    b = torch.zeros(columns, device="cuda")
    slots = torch.zeros(2 * LAYOUT.slots, dtype=torch.uint32, device="cuda")
    records = torch.zeros(2 * 5, dtype=torch.uint64, device="cuda")
    recorder = Recorder(device, SPEC, LAYOUT, [ALL], ctas=2, buffers=(slots, records))

    def launch(request: Request) -> None:
        b.fill_(float("nan"))
        stamped = bool(request.stamp_pass.events)
        kernel[(2,)](a, b, slots, records, request.trips, columns, stamped, TRIPS, THREADS)
        want = a[: request.trips].double().sum(0)
        assert ((b.double() - want).norm() / want.norm()).item() < 1e-5

    check(recorder.record(launch, [TRIPS // 2, TRIPS], repeats=5), tmp_path, 2)


def test_windows_and_chosen_ctas(device: Device, tmp_path: Path) -> None:
    columns, grid = 8 * THREADS, 8
    a, b = device.upload(np.ones((TRIPS, columns), np.float32)), device.allocate(4 * columns)
    window = StampPass("window", {0: 3}, {"WSF_FROM": 10, "WSF_STRIDE": 3, "WSF_ITERATIONS": 18})
    passes = [StampPass("all", {0: 3}, {"WSF_ITERATIONS": 18}), window]
    layout = Layout(1, 2, 18)
    recorder = Recorder(device, SPEC, layout, passes, ctas=3, first_cta=1, cta_step=2)
    functions = compiled(device, recorder, {CLEAN: recorder.clean_pass, **dict(enumerate(passes))})

    def launch(request: Request) -> None:
        args = [Memory(a), Memory(b), np.int32(request.trips), np.int32(columns), request.args]
        device.launch(functions[request.number], (grid, 1, 1), (THREADS, 1, 1), 0, args)

    found = recorder.record(launch, [9, 18, TRIPS], repeats=3)
    found.grid = (grid, 1, 1, THREADS, 1, 1)
    bundle = to_bundle(found)
    bundle.write(tmp_path / "x.wsformat")
    assert [p for p in validate(tmp_path / "x.wsformat").problems if p.level != "I"] == []
    rows = bundle.sql(
        """SELECT k.pass, e.cta, LIST(DISTINCT e.iteration ORDER BY e.iteration) AS iterations
           FROM events e JOIN launches k USING (capture_id, launch) GROUP BY ALL"""
    ).to_pylist()
    assert {row["cta"] for row in rows} == {1, 3, 5}
    expect = {0: list(range(18)), 1: list(range(10, TRIPS, 3))}
    assert all(row["iterations"] == expect[row["pass"]] for row in rows)
    complete = {
        (row["pass"], row["completeness"])
        for row in bundle.sql(
            """SELECT k.pass, l.completeness FROM lanes l JOIN launches k USING (capture_id, launch)
               WHERE l.role <> '' AND l.records_kept > 0"""
        ).to_pylist()
    }
    assert complete == {(0, "truncated"), (1, "sampled")}
    states = found.states
    assert states == [] or {"sm_clock_mhz", "throttle_reasons"} <= set(states[0])


def test_a_launch_in_clusters(device: Device) -> None:
    if device.capability < (9, 0):
        pytest.skip("clusters need compute capability 9.0")
    source = """
    extern "C" __global__ void shape(unsigned* out) {
        unsigned x, rank;
        asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(x));
        asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
        if (threadIdx.x == 0) out[blockIdx.x] = 100 * x + rank;
    }
    """
    build = nvrtc.build(source, ["shape"], arch=native_arch(device))
    function = device.function(build.cubin, "shape")
    out = device.upload(np.full(4, 7, np.uint32))
    args = [ctypes.c_uint64(out)]
    device.launch(function, (4, 1, 1), (32, 1, 1), 0, args, cluster=(2, 1, 1))
    device.synchronize()
    assert device.download(out, np.zeros(4, np.uint32)).tolist() == [200, 201, 200, 201]
    device.launch(function, (4, 1, 1), (32, 1, 1), 0, args)
    device.synchronize()
    assert device.download(out, np.zeros(4, np.uint32)).tolist() == [100] * 4
    with pytest.raises(BadRequest, match="CUDA"):
        device.launch(function, (3, 1, 1), (32, 1, 1), 0, args, cluster=(2, 1, 1))
    facts = device.function_facts(function, 32, 0)
    assert facts["max_ctas_per_sm"] > 1
    assert device.bus_id.count(":") == 2


FAULT = """
import sys
from wsformat.errors import BadRequest
from wsformat.kernels import nvrtc
from wsformat.kernels.calibrate import native_arch
from wsformat.kernels.driver import Device
from wsformat.kernels.recorder import Recorder
from wsformat.rolespec import Layout

hang = "const long long t = clock64(); while (clock64() - t < 6000000000ll);"
kinds = {"fault": "*(volatile int*)0 = 1;", "hang": hang}
source = 'extern "C" __global__ void bad() {' + kinds[sys.argv[1]] + '}'
with Device() as device:
    function = device.function(nvrtc.build(source, ["bad"], arch=native_arch(device)).cubin, "bad")
    recorder = Recorder(device, {}, Layout(1, 1, 1), [], timeout_s=0.5)
    try:
        recorder.record(lambda r: device.launch(function, (1, 1, 1), (32, 1, 1), 0, []), [1], repeats=1)
    except BadRequest as error:
        print(error)
"""


@pytest.mark.parametrize(("kind", "says"), [("fault", "illegal"), ("hang", "still running after 0.5 s")])
def test_a_launch_that_fails_or_hangs_is_named(device: Device, kind: str, says: str) -> None:
    done = subprocess.run([sys.executable, "-c", FAULT, kind], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("pass 'clean', 1 iterations: ")
    assert says in done.stdout
