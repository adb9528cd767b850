"""What the clocks of a GPU do: probes for putting the CTAs of a grid on one axis. Needs a GPU.

    python bench/clocks.py FILE.npz

* ``wander``: one CTA an SM, each reads both clocks 256 times over some 200 us, once with the tensor cores at work
  beside it: does one straight line a launch hold?
* ``waves``: 3.5 waves of short CTAs, two of them on an SM at a time: start and end records only.

Arrays ``NAME_rN.meta`` and ``NAME_rN.anchors`` as ``stamp_times.META`` and ``ANCHOR``, facts as JSON under ``about``.
"""

from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from wsformat.kernels import nvrtc
from wsformat.kernels.calibrate import native_arch
from wsformat.kernels.driver import Device
from wsformat.kernels.passes import clean
from wsformat.kernels.recorder import Recorder, Request
from wsformat.rolespec import Layout

READINGS, GAP = 256, 1400
SOURCE = """
#include "wsformat_stamp.cuh"

extern "C" __global__ void __launch_bounds__(288) wander(unsigned readings, unsigned gap, float* sink WSF_PARAM) {
    WSF_BEGIN();
    const unsigned long long start = wsf::clock64();
    if (threadIdx.x == 0) {
        for (unsigned i = 0; i < readings; ++i) {
            WSF_ANCHOR(i);
            while (wsf::clock64() - start < (i + 1ull) * gap) {
            }
        }
    } else if (threadIdx.x >= 32) {
        float c[4] = {0, 0, 0, 0};
        const unsigned one = 0x3f803f80;
        while (wsf::clock64() - start < static_cast<unsigned long long>(readings) * gap) {
#pragma unroll
            for (int i = 0; i < 16; ++i)
                asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
                             "{%4, %4, %4, %4}, {%4, %4}, {%0, %1, %2, %3};"
                             : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(one));
        }
        if (c[0] < 0) *sink = c[1];
    }
    WSF_END();
}

extern "C" __global__ void __launch_bounds__(128) waves(unsigned ticks WSF_PARAM) {
    extern __shared__ unsigned char room[];
    WSF_BEGIN();
    const unsigned long long start = wsf::clock64();
    const unsigned mine = ticks + (blockIdx.x * 2654435761u >> 20);
    while (wsf::clock64() - start < mine) {
    }
    WSF_END();
}
"""


def probe(
    device: Device, name: str, grid: int, block: int, shared: int, arguments: list[Any], anchors: int, repeats: int
) -> tuple[dict[str, Any], list[Any]]:
    """Facts about a probe and its launches."""
    none = clean()
    recorder = Recorder(device, {}, Layout(1, 1, 1), [], ctas=grid, anchors=anchors)
    macros = {**recorder.macros(), **none.defines()}
    build = nvrtc.build(SOURCE, [name], arch=native_arch(device), macros=macros)
    function = device.function(build.cubin, build.names[name], shared)

    def launch(request: Request) -> None:
        device.launch(function, (grid, 1, 1), (block, 1, 1), shared, [*arguments, request.args])

    launches = recorder.record(launch, [1], repeats=repeats).launches
    api = device._api
    facts = {
        **device.function_facts(function),
        "grid": [grid, 1, 1],
        "block": [block, 1, 1],
        "dynamic_shared_bytes": shared,
        "max_ctas_per_sm": int(device._ok(api.cuOccupancyMaxActiveBlocksPerMultiprocessor(function, block, shared))),
    }
    return facts, launches


def measure(out: Path) -> None:
    """All probes to one file."""
    arrays: dict[str, Any] = {}
    with Device() as device:
        sms = device.attribute("MULTIPROCESSOR_COUNT")
        about: dict[str, Any] = {"device": device.name, "sm_count": sms}
        sink = ctypes.c_uint64(device.allocate(4))
        wander = [ctypes.c_uint32(READINGS), ctypes.c_uint32(GAP), sink]
        probes = {
            "wander": ("wander", sms, 32, 0, wander, READINGS, 3),
            "wander_tensor": ("wander", sms, 288, 0, wander, READINGS, 3),
            "waves": ("waves", sms * 7, 128, 100 << 10, [ctypes.c_uint32(4000)], 0, 10),
        }
        for label, arguments in probes.items():
            about[label], launches = probe(device, *arguments)
            for n, one in enumerate(launches):
                arrays[f"{label}_r{n}.meta"] = one.records
                if one.anchors is not None:
                    arrays[f"{label}_r{n}.anchors"] = one.anchors
            print(label, about[label])
    np.savez_compressed(out, about=np.array(json.dumps(about)), **arrays)


if __name__ == "__main__":
    measure(Path(sys.argv[1]))
