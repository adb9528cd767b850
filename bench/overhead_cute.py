"""Stamps and IKET ranges on the same CuTe DSL GEMM: what each does to the main loop. Needs a Hopper GPU and PyTorch.

python bench/overhead_cute.py FILE.json                     stamps; the ranges are there but not attached
run-iket profile python bench/overhead_cute.py FILE.json    the same under IKET: its ranges are attached
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import cutlass
import torch
from cutlass import cute
from cutlass.cute.runtime import from_dlpack, make_ptr

from wsformat import rolespec
from wsformat.kernels.cute_stamp import Settings
from wsformat.kernels.driver import Device
from wsformat.kernels.examples import gemm_hopper
from wsformat.kernels.examples.gemm_cute import THREADS, Gemm
from wsformat.kernels.passes import StampPass, clean, standard
from wsformat.kernels.recorder import Recorder, Request
from wsformat.kernels.recording import CLEAN
from wsformat.rolespec import Layout

LAYOUT = Layout(3, 16, 64)
TRIPS = (32, 64)
SPEC = gemm_hopper.loop_only(gemm_hopper.Variant().spec(), "gemm_cute")
SHAPES = {"1 CTA": (128, 128), "132 CTAs": (1408, 1536)}
REPEATS = 40


def passes() -> list[StampPass]:
    """All stamps, waits, work, and no stamps but IKET's ranges."""
    named = standard(rolespec.parse(SPEC, "gemm_cute", LAYOUT), ["all", "waits", "work"])
    return [*named, StampPass("IKET ranges", {}, {"ranges": 1})]


def measure(device: Device, m: int, n: int, out: Path) -> dict[str, Any]:
    """Lifetimes of every build on one shape; each build is checked against float64 first."""
    torch.manual_seed(torch.seed() % 2**31)
    a, b = (torch.randn(rows, 4096, device="cuda", dtype=torch.bfloat16) for rows in (m, n))
    c = torch.empty(m, n, device="cuda", dtype=torch.float32)
    want = a.double() @ b.double().T
    held = [from_dlpack(x, assumed_align=16) for x in (a, b, c)]
    ctas = m * n // 128**2
    chosen = passes()
    recorder = Recorder(device, SPEC, LAYOUT, chosen, ctas=ctas)
    places = [
        make_ptr(cutlass.Int32, p, cute.AddressSpace.gmem, assumed_align=8)
        for p in (recorder.args.slots, recorder.args.records)
    ]
    builds, errors = {}, {}
    for number, one in ((CLEAN, clean()), *enumerate(chosen)):
        gemm = Gemm(Settings.of(LAYOUT, one, THREADS, ctas=ctas), ranges="ranges" in one.macros)
        builds[number] = cute.compile(gemm, *held, cutlass.Int32(64), *places)
        c.fill_(float("nan"))
        builds[number](*held, cutlass.Int32(64), *places)
        torch.cuda.synchronize()
        errors[one.name] = ((c.double() - want).norm() / want.norm()).item()
        assert errors[one.name] < gemm_hopper.TOLERANCE, errors

    def launch(request: Request) -> None:
        builds[request.number](*held, cutlass.Int32(request.trips), *places)

    found = recorder.record(launch, TRIPS, repeats=REPEATS)
    found.grid = (n // 128, m // 128, 1, THREADS, 1, 1)
    found.facts = {"device": device.name, "label": "gemm_cute", "shape": f"M={m} N={n} K=4096"}
    found.builds = {name: {"relative_error": error} for name, error in errors.items()}
    found.save(out / f"gemm_cute_{m}x{n}.npz")
    written = {k.number: int((k.slots != 0).sum()) for k in found.launches if k.slots is not None}
    print(f"{m} x {n}: clean {found.slope(CLEAN):.1f} ticks an iteration; errors up to {max(errors.values()):.1e}")
    for number, one in enumerate(chosen):
        print(
            f"  {one.name:14s} {found.slope(number):8.1f} {100 * found.perturbation(number):+6.1f} %", written[number]
        )
    return {
        "errors": errors,
        "written": {one.name: written[number] for number, one in enumerate(chosen)},
        "lifetimes": {
            one.name: {str(t): found.lifetimes(number, t).tolist() for t in TRIPS}
            for number, one in ((CLEAN, clean()), *enumerate(chosen))
        },
    }


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    torch.cuda.init()
    with Device() as opened:
        results = {
            "device": opened.name,
            "shapes": {shape: measure(opened, *size, folder) for shape, size in SHAPES.items()},
        }
    (folder / "overhead_cute.json").write_text(json.dumps(results, indent=1))
