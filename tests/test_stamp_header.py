"""The device header: off is the same machine code as a source without its lines; on makes the stamps that were asked.

Compiled for real architectures, no GPU needed.
"""

from __future__ import annotations

import functools
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from wsformat.errors import BadRequest, MalformedInput
from wsformat.kernels import cubin, nvrtc, passes

if sys.platform != "linux":
    pytest.skip("the test extra brings the CUDA compiler on Linux only", allow_module_level=True)

ARCHS = ("sm_80", "sm_90a", "sm_100a")

LOOP = """
#include "wsformat_stamp.cuh"

__global__ void kernel(const float* a, float* b, int n WSF_PARAM) {
    __shared__ float tile[128];
    WSF_BEGIN();
    WSF_WRITER(threadIdx.x % 64 == 0);
    if (threadIdx.x < 64) {
#pragma unroll 1
        for (int k = 0; k < n; ++k) {
            WSF_STAMP(0, 0, k);
            __syncthreads();
            WSF_PASSED(0, 1);
            WSF_STAMP(0, 1, k);
            tile[threadIdx.x] = a[k * 64 + threadIdx.x];
            WSF_STAMP(0, 2, k);
            __syncthreads();
        }
        WSF_FLUSH(0);
    } else {
        float sum = 0;
#pragma unroll 1
        for (int k = 0; k < n; ++k) {
            WSF_STAMP(1, 0, k);
            __syncthreads();
            WSF_STAMP(1, 2, k);
            __syncthreads();
            sum += tile[threadIdx.x - 64];
            WSF_STAMP(1, 3, k);
        }
        b[threadIdx.x - 64] = sum;
        WSF_FLUSH(1);
    }
    WSF_END();
}
"""
STAMPS = 6

TEMPLATE = """
#include "wsformat_stamp.cuh"

template <class Config, class... Args> __global__ void kernel(const float* a, float* b, int n, Args... args) {
    wsf::Recorder<Config> recorder(args...);
    recorder.begin();
    recorder.writer(threadIdx.x == 0);
    float sum = 0;
    for (int k = 0; k < n; ++k) {
        recorder.template stamp<0, 0>(k);
        sum += a[k * 32 + threadIdx.x];
        recorder.template stamp<0, 1>(k);
    }
    b[threadIdx.x] = sum;
    recorder.template flush<0>();
    recorder.end();
}
"""
TEMPLATE_PLAIN = """
__global__ void kernel(const float* a, float* b, int n) {
    float sum = 0;
    for (int k = 0; k < n; ++k) {
        sum += a[k * 32 + threadIdx.x];
    }
    b[threadIdx.x] = sum;
}
"""

ONLY_PARAM = """
#include "wsformat_stamp.cuh"
__device__ int counter;
__global__ void kernel(WSF_ONLY_PARAM) {
    WSF_BEGIN();
    WSF_WRITER(threadIdx.x == 0);
    WSF_STAMP(0, 0, 0);
    atomicAdd(&counter, 1);
    WSF_END();
}
"""


def without_stamps(source: str) -> str:
    """The source as it was before anybody added stamps."""
    kept = [line for line in source.splitlines() if not re.search(r"^\s*WSF_\w+\(|wsformat_stamp", line)]
    return re.sub(r" ?WSF_(ONLY_|INNER_)?(PARAM|ARG)\b", "", "\n".join(kept))


@functools.cache
def built(source: str, arch: str, name: str = "kernel", **macros: Any) -> nvrtc.Build:
    return nvrtc.build(source, [name], arch=arch, macros=macros)


def facts(build: nvrtc.Build, name: str = "kernel") -> tuple[bytes, int, int, int]:
    kernel = build.kernel(name)
    return kernel.code, kernel.constant_bytes, kernel.shared_bytes, build.registers[build.names[name]]


EXAMPLES = sorted((Path(nvrtc.include_dir()) / "examples").glob("*.cu"))


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("source", [LOOP, ONLY_PARAM], ids=["loop", "only_param"])
def test_off_is_the_same_machine_code(source: str, arch: str) -> None:
    plain, off = built(without_stamps(source), arch), built(source, arch)
    assert "wsf" not in without_stamps(source).lower()
    assert facts(off) == facts(plain)
    assert off.cubin == plain.cubin


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda p: p.stem)
def test_off_is_the_same_machine_code_for_the_examples(example: Path) -> None:
    source = example.read_text()
    (name,) = re.findall(r"__launch_bounds__\([^)]*\)\s*(\w+)\(", source)
    plain, off, on = (
        built(without_stamps(source), "sm_90a", name),
        built(source, "sm_90a", name),
        built(source, "sm_90a", name, WSF_STAMPS=1),
    )
    assert facts(off, name) == facts(plain, name)
    assert off.cubin == plain.cubin
    assert on.kernel(name).code != off.kernel(name).code
    for build in (off, on):
        assert not build.wgmma_serialised, build.warnings
        assert set(build.spill_bytes.values()) == {0}


@pytest.mark.parametrize("arch", ARCHS)
def test_template_off_is_the_same_machine_code(arch: str) -> None:
    off = built(TEMPLATE, arch, "kernel<wsf::Off>")
    assert facts(off, "kernel<wsf::Off>") == facts(built(TEMPLATE_PLAIN, arch))
    on = built(TEMPLATE, arch, "kernel<wsf::Defaults, wsf::Args>")
    assert facts(on, "kernel<wsf::Defaults, wsf::Args>")[0] != facts(off, "kernel<wsf::Off>")[0]


def test_the_environment_switches_a_build(monkeypatch: pytest.MonkeyPatch) -> None:
    def code() -> bytes:
        return built(LOOP, "sm_90a", **passes.from_environment()).kernel("kernel").code

    for name in passes.header_settings():
        monkeypatch.delenv(name, raising=False)
    plain = built(without_stamps(LOOP), "sm_90a").kernel("kernel").code
    assert code() == plain
    monkeypatch.setenv("WSF_STAMPS", "0")
    assert code() == plain
    monkeypatch.setenv("WSF_STAMPS", "1")
    assert code() == built(LOOP, "sm_90a", WSF_STAMPS=1).kernel("kernel").code != plain
    monkeypatch.setenv("WSF_EVENT_MASK", "6ull")
    monkeypatch.setenv("WSF_SINK", "")
    assert code() == built(LOOP, "sm_90a", WSF_STAMPS=1, WSF_EVENT_MASK="6ull").kernel("kernel").code
    assert {"WSF_STAMPS", "WSF_ROLES", "WSF_FROM", "WSF_STRIDE", "WSF_SINK"} < set(passes.header_settings())


@pytest.mark.parametrize("arch", ARCHS)
def test_on_adds_the_parameter_and_the_buffer(arch: str) -> None:
    off, on = built(LOOP, arch).kernel("kernel"), built(LOOP, arch, WSF_STAMPS=1).kernel("kernel")
    # A pointer must be aligned: the parameters a, b, n end at 20, so the 32 bytes of Args begin at 24.
    assert on.constant_bytes - off.constant_bytes == 36
    # Static shared memory and, on newer parts, what the system keeps for itself.
    assert on.shared_bytes - off.shared_bytes in (3 * 16 * (64 + 1) * 4,)
    assert on.code != off.code


def reads(build: nvrtc.Build, what: str = "clock") -> int:
    return len(re.findall(rf"%{what};", build.ptx))


@pytest.mark.parametrize(
    ("macros", "stamps"),
    [
        ({}, STAMPS),
        ({"WSF_EVENT_MASK": "1ull"}, 2),
        ({"WSF_EVENT_MASK": "6ull"}, 3),
        ({"WSF_EVENT_MASK": "(role==1?~0ull:0ull)"}, 3),
        ({"WSF_EVENT_MASK": "(role==0?2ull:0ull)"}, 1),
        ({"WSF_EVENT_MASK": "0ull"}, 0),
        ({"WSF_STRIDE": 4, "WSF_FROM": 8}, STAMPS),
    ],
    ids=["all", "event0", "event12", "role1", "one", "none", "window"],
)
@pytest.mark.parametrize("sink", [0, 1])
def test_a_pass_makes_its_stamps_and_no_other(macros: dict[str, Any], stamps: int, sink: int) -> None:
    build = built(LOOP, "sm_90a", WSF_STAMPS=1, WSF_SINK=sink, **macros)
    assert reads(build) == stamps
    space = "shared" if sink else "global"
    assert len(re.findall(rf"@p st\.{space}\.u32", build.ptx)) == stamps
    # Start and end records stay: they are what a clean launch is made of. Two reads of the clock around each timer's.
    assert reads(build, "clock64") == 4
    assert reads(build, "globaltimer") == 2
    assert reads(build, "smid") == 1


@pytest.mark.parametrize("sink", [0, 1])
def test_a_stamp_after_a_barrier_waits_for_shared_memory(sink: int) -> None:
    """One read between barrier and clock where the pass makes that stamp, else none."""
    reading = r"ld\.volatile\.shared\.u32 w"
    every = built(LOOP, "sm_90a", WSF_STAMPS=1, WSF_SINK=sink)
    other = built(LOOP, "sm_90a", WSF_STAMPS=1, WSF_SINK=sink, WSF_EVENT_MASK="1ull")
    assert [len(re.findall(rf"(?<!@p ){reading}", build.ptx)) for build in (every, other)] == [1, 0]
    assert re.search(rf"bar(rier)?\.sync(?:(?!%clock;).)*{reading}.*?%clock;", every.ptx, re.DOTALL)
    without = built(LOOP.replace("            WSF_PASSED(0, 1);\n", ""), "sm_90a", WSF_STAMPS=1, WSF_SINK=sink)
    # A word of its own, where the stamps are not in shared memory anyway.
    assert every.kernel("kernel").shared_bytes - without.kernel("kernel").shared_bytes == (0 if sink else 4)


def test_a_shadowed_pass_reads_every_clock_and_stores_its_own() -> None:
    build = built(LOOP, "sm_90a", WSF_STAMPS=1, WSF_SHADOW=1, WSF_EVENT_MASK="6ull")
    assert reads(build) == STAMPS
    assert len(re.findall(r"@p st\.shared\.u32", build.ptx)) == 3


def test_anchors_need_no_stamps() -> None:
    source = LOOP.replace("WSF_STAMP(1, 3, k);", "WSF_ANCHOR(k);")
    build = built(source, "sm_90a", WSF_STAMPS=1, WSF_EVENT_MASK="0ull")
    assert (reads(build), reads(build, "clock64"), reads(build, "globaltimer")) == (0, 6, 3)
    assert built(source, "sm_90a").cubin == built(without_stamps(source), "sm_90a").cubin


def test_shared_memory_holds_only_the_stamps_of_the_pass() -> None:
    one = built(LOOP, "sm_90a", WSF_STAMPS=1, WSF_EVENT_MASK="(role==0?6ull:0ull)").kernel("kernel")
    none = built(LOOP, "sm_90a", WSF_STAMPS=1, WSF_EVENT_MASK="0ull").kernel("kernel")
    assert one.shared_bytes - none.shared_bytes == 2 * (64 + 1) * 4


def branches(**macros: Any) -> int:
    return len(re.findall(r"\bbra\b", built(LOOP, "sm_90a", WSF_STAMPS=1, WSF_SINK=0, **macros).ptx))


def test_a_stamp_has_no_branch() -> None:
    # One stamp and six: no branch a stamp (what a recorded launch sets up is the same).
    assert branches() == branches(WSF_EVENT_MASK="1ull") == branches(WSF_EVENT_MASK="6ull")
    assert branches(WSF_BRANCH=1) >= branches() + STAMPS


@pytest.mark.parametrize(("clock", "register"), [(0, "clock"), (1, "clock64"), (2, "globaltimer")])
def test_clocks(clock: int, register: str) -> None:
    for sink in (0, 1):
        build = built(LOOP, "sm_90a", WSF_STAMPS=1, WSF_SINK=sink, WSF_CLOCK=clock)
        assert reads(build, register) == STAMPS + (0, 4, 2)[clock]
        kind = "shared" if sink else "global"
        width = 64 if clock else 32
        assert len(re.findall(rf"@p st\.{kind}\.u{width}", build.ptx)) == STAMPS


HELD = """
#include "wsformat_stamp.cuh"
__global__ void kernel(const float* a, float* b, int n WSF_PARAM) {
    WSF_BEGIN();
    WSF_WRITER(threadIdx.x == 0);
#pragma unroll 1
    for (unsigned k = 0; k < n; ++k) {
        WSF_HOLD(0, 0, k);
        __syncthreads();
        WSF_HOLD(0, 1, k);
        b[k * 32 + threadIdx.x] = a[k * 32 + threadIdx.x];
        WSF_STORE(0, 0x3, k);
        __syncthreads();
    }
    WSF_END();
}
"""


@pytest.mark.parametrize("arch", ARCHS)
def test_held_stamps_are_stored_later_and_off_is_off(arch: str) -> None:
    on = built(HELD, arch, WSF_STAMPS=1)
    assert re.findall(r"%clock;|st\.shared(?=\.u32 \[%r\d+ \+ )", on.ptx) == ["%clock;"] * 2 + ["st.shared"] * 2
    at_once = built(HELD, arch, WSF_STAMPS=1, WSF_DEFER=0).ptx
    assert re.findall(r"%clock;|@p st\.shared", at_once) == ["%clock;", "@p st.shared"] * 2
    assert built(HELD, arch).cubin == built(without_stamps(HELD), arch).cubin
    # A pass keeps only its own of what is held.
    assert reads(built(HELD, arch, WSF_STAMPS=1, WSF_EVENT_MASK=2)) == 1


def test_registers_sink_of_an_unrolled_loop_uses_no_local_memory() -> None:
    unrolled = LOOP.replace("k < n", "k < 4").replace("unroll 1", "unroll")
    build = built(unrolled, "sm_90a", WSF_STAMPS=1, WSF_SINK=2, WSF_ITERATIONS=4)
    assert reads(build) == STAMPS * 4
    assert ".local" not in build.ptx
    assert not re.search(r"@p st", build.ptx)


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ("WSF_STAMP(3, 0, 0);", "role outside of the layout"),
        ("WSF_STAMP(0, 16, 0);", "event outside of the layout"),
        ("WSF_STAMP(-1, 0, 0);", "role outside of the layout"),
    ],
)
def test_a_stamp_outside_of_the_layout_does_not_compile(lines: str, says: str) -> None:
    source = ONLY_PARAM.replace("WSF_STAMP(0, 0, 0);", lines)
    with pytest.raises(BadRequest, match="does not compile") as caught:
        nvrtc.build(source, ["kernel"], macros={"WSF_STAMPS": 1})
    assert says in caught.value.hint


def test_a_file_that_is_no_cubin() -> None:
    good = built(LOOP, "sm_80").cubin
    assert set(cubin.kernels(good)) == {built(LOOP, "sm_80").names["kernel"]}
    for bad in (b"", b"\x7fELF", good[: len(good) // 2], b"MZ" + good):
        with pytest.raises(MalformedInput):
            cubin.kernels(bad)


def test_log_of_the_compiler() -> None:
    registers, spills, warnings = nvrtc.read_log(
        "ptxas info    : Compiling entry function '_Z4gemm' for 'sm_90a'\n"
        "ptxas info    : Function properties for _Z4gemm\n"
        "    8 bytes stack frame, 24 bytes spill stores, 16 bytes spill loads\n"
        "ptxas info    : Used 168 registers, used 1 barriers\n"
        "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to...\n"
    )
    assert (registers, spills) == ({"_Z4gemm": 168}, {"_Z4gemm": 24})
    assert len(warnings) == 1
    assert nvrtc.Build(b"", "", "sm_90a", {}, warnings).wgmma_serialised
