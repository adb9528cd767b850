"""How much the main loop of a kernel changes when its code only moves, beside what stamps do to it. Needs a Hopper GPU.

    python bench/placement.py FILE.json

The same builds (clean, and each pass) with 0 to 7 instructions more before the loops: nothing in the loops changes but
their addresses. What differs between such clean builds is no effect of stamps, so a pass is judged by its median over
all places against the clean one's.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

from wsformat import rolespec
from wsformat.kernels import nvrtc
from wsformat.kernels.driver import Device
from wsformat.kernels.examples.gemm_hopper import VARIANTS, Problem
from wsformat.kernels.passes import StampPass, clean, standard
from wsformat.kernels.recorder import Recorder
from wsformat.rolespec import Layout

LAYOUT, TRIPS, PLACES, REPEATS = Layout(3, 16, 64), (32, 64), 8, 30
HERE = Path(nvrtc.include_dir()) / "examples"
FIRST = "    const unsigned warpgroup = threadIdx.x / 128;\n"
MOVED = '    { unsigned at; asm volatile("mov.u32 %0, %%clock;" : "=r"(at)::"memory"); }\n'
SHAPES = {
    "1 CTA, 4 stages": ("gemm_hopper", 128, 128),
    "132 CTAs, 4 stages": ("gemm_hopper", 1408, 1536),
    "1 CTA, 2 stages": ("gemm_hopper_two_stages", 128, 128),
    "1 CTA, in flight": ("gemm_hopper_in_flight", 128, 128),
    "132 CTAs, in flight": ("gemm_hopper_in_flight", 1408, 1536),
}


def measure(device: Device, example: str, m: int, n: int) -> dict[str, Any]:
    """Lifetimes by pass, place and trip count."""
    variant = VARIANTS[example]
    problem = Problem(device, variant, m, n, 4096, seed=time.time_ns() % 2**32)
    named = standard(rolespec.parse(variant.spec(), example, LAYOUT), ["all", "waits", "work"])
    passes = [StampPass(f"{p.name}@{place}", p.events, {}) for p in (clean(), *named) for place in range(PLACES)]
    recorder = Recorder(device, {}, LAYOUT, passes, ctas=m * n // 128**2)
    source = (HERE / "gemm_hopper.cu").read_text()
    for number, one in ((-1, recorder.clean_pass), *enumerate(passes)):
        place = int(one.name.partition("@")[2] or 0)
        moved = source.replace(FIRST, FIRST + MOVED * place)
        macros = {**variant.macros, **recorder.macros(), **one.defines()}
        problem.add(number, nvrtc.build(moved, ["gemm_hopper"], macros=macros, name="gemm_hopper.cu"))
        assert problem.error(number, 64, [recorder.args]) < variant.tolerance
    found = recorder.record(problem.serve, TRIPS, repeats=REPEATS, keep=0)
    return {one.name: {str(t): found.lifetimes(number, t).tolist() for t in TRIPS} for number, one in enumerate(passes)}


def slopes(lifetimes: dict[str, dict[str, list[float]]], name: str) -> list[float]:
    """Ticks an iteration of a pass at each place."""
    places = [lifetimes[f"{name}@{place}"] for place in range(PLACES)]
    return [(median(x["64"]) - median(x["32"])) / 32 for x in places]


if __name__ == "__main__":
    with Device() as opened:
        results = {shape: measure(opened, *arguments) for shape, arguments in SHAPES.items()}
        Path(sys.argv[1]).write_text(json.dumps({"device": opened.name, "shapes": results}, indent=1))
    for shape, lifetimes in results.items():
        bare = slopes(lifetimes, "clean")
        print(f"{shape}: clean {min(bare):.1f} .. {max(bare):.1f}, median {median(bare):.1f}")
        for name in ("all", "waits", "work"):
            own = slopes(lifetimes, name)
            print(f"  {name:6s} {100 * (median(own) / median(bare) - 1):+.1f} %, {min(own):.1f} .. {max(own):.1f}")
