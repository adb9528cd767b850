"""Stamps and IKET ranges on the same CuTe DSL kernels: what each does to the main loop. Needs a Hopper GPU and PyTorch.

python bench/overhead_cute.py FOLDER                     stamps; the ranges are there but not attached
run-iket profile python bench/overhead_cute.py FOLDER    the same under IKET: its ranges are attached
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cutlass
import torch
from cutlass import cute
from cutlass.cute.runtime import from_dlpack, make_ptr

from wsformat import rolespec
from wsformat.kernels.cute_stamp import Settings
from wsformat.kernels.driver import Device
from wsformat.kernels.examples import attention_hopper, gemm_hopper
from wsformat.kernels.examples.attention_cute import Attention
from wsformat.kernels.examples.gemm_cute import THREADS, Gemm
from wsformat.kernels.passes import StampPass, clean, standard
from wsformat.kernels.recorder import Recorder, Request
from wsformat.kernels.recording import CLEAN
from wsformat.rolespec import Layout

LAYOUT = Layout(3, 16, 64)
TRIPS = (32, 64)
REPEATS = 40


@dataclass
class Case:
    """One kernel on one problem.

    Attributes:
        spec: role spec.
        make: the kernel, from settings of the stamps and whether it has IKET's ranges.
        tensors: of the device, in the order of the kernel's arguments, the result last.
        before, after: arguments before and behind the trip count.
        want: the result in float64.
        tolerance: largest relative error.
        ctas: of a launch.
        grid: x, y, z.
    """

    spec: dict[str, Any]
    make: Callable[[Settings, bool], Any]
    tensors: list[Any]
    before: list[Any]
    after: list[Any]
    want: Any
    tolerance: float
    grid: tuple[int, int, int]

    @property
    def ctas(self) -> int:
        """Of a launch."""
        return math.prod(self.grid)


def random(*shape: int) -> Any:
    """Normal random numbers in bf16, others in each run."""
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)


def gemm(m: int, n: int, in_flight: bool = False) -> Case:
    """GEMM with K = 4096."""
    a, b, c = random(m, 4096), random(n, 4096), torch.empty(m, n, device="cuda", dtype=torch.float32)
    return Case(
        gemm_hopper.loop_only(gemm_hopper.Variant(stages=6 if in_flight else 4).spec(), "gemm_cute"),
        lambda settings, ranges: Gemm(settings, ranges=ranges, in_flight=in_flight),
        [a, b, c],
        [],
        [],
        a.double() @ b.double().T,
        gemm_hopper.TOLERANCE,
        (n // 128, m // 128, 1),
    )


def attention(queries: int, heads: int) -> Case:
    """Attention over 8,192 keys."""
    keys, dim = 8192, attention_hopper.DIM
    q, k, v = random(heads * queries, dim), random(heads * keys, dim), random(heads * keys, dim)
    out = torch.empty(heads * queries, dim, device="cuda", dtype=torch.float32)
    weights = [x.double().view(heads, -1, dim) for x in (q, k, v)]
    scores = weights[0] @ weights[1].transpose(1, 2) * dim**-0.5
    want = (scores.softmax(-1) @ weights[2]).view(-1, dim)
    scale = cutlass.Float32(dim**-0.5 / math.log(2))
    return Case(
        gemm_hopper.loop_only(attention_hopper.Variant().spec(), "attention_cute"),
        lambda settings, ranges: Attention(settings, ranges=ranges),
        [q, k, v, out],
        [scale],
        [heads],
        want,
        attention_hopper.TOLERANCE,
        (queries // 128, heads, 1),
    )


CASES: dict[str, Callable[[], Case]] = {
    "GEMM, 1 CTA": lambda: gemm(128, 128),
    "GEMM, 132 CTAs": lambda: gemm(1408, 1536),
    "GEMM in flight, 1 CTA": lambda: gemm(128, 128, True),
    "GEMM in flight, 132 CTAs": lambda: gemm(1408, 1536, True),
    "attention, 1 CTA": lambda: attention(128, 1),
    "attention, 128 CTAs": lambda: attention(1024, 16),
}


def passes(spec: dict[str, Any]) -> list[StampPass]:
    """All stamps, waits, work, and no stamps but IKET's ranges."""
    named = standard(rolespec.parse(spec, "role spec", LAYOUT), ["all", "waits", "work"])
    return [*named, StampPass("IKET ranges", {}, {"ranges": 1})]


def measure(device: Device, name: str, out: Path) -> dict[str, Any]:
    """Lifetimes of every build of one case; each build is checked against float64 first."""
    torch.manual_seed(torch.seed() % 2**31)
    case = CASES[name]()
    held = [from_dlpack(x, assumed_align=16) for x in case.tensors]
    result = case.tensors[-1]
    chosen = passes(case.spec)
    recorder = Recorder(device, case.spec, LAYOUT, chosen, ctas=case.ctas)
    places = [
        make_ptr(cutlass.Int32, p, cute.AddressSpace.gmem, assumed_align=8)
        for p in (recorder.args.slots, recorder.args.records)
    ]
    builds, errors = {}, {}

    def run(number: int, trips: int) -> None:
        builds[number](*held, *case.before, cutlass.Int32(trips), *places)

    for number, one in ((CLEAN, clean()), *enumerate(chosen)):
        kernel = case.make(Settings.of(LAYOUT, one, THREADS, ctas=case.ctas), "ranges" in one.macros)
        builds[number] = cute.compile(kernel, *held, *case.before, cutlass.Int32(64), *case.after, *places)
        result.fill_(float("nan"))
        run(number, 64)
        torch.cuda.synchronize()
        errors[one.name] = ((result.double() - case.want).norm() / case.want.norm()).item()
        assert errors[one.name] < case.tolerance, errors

    def launch(request: Request) -> None:
        run(request.number, request.trips)

    found = recorder.record(launch, TRIPS, repeats=REPEATS)
    found.grid = (*case.grid, THREADS, 1, 1)
    found.facts = {"device": device.name, "label": case.spec["capture"]["kernel"], "shape": name}
    found.builds = {name: {"relative_error": error} for name, error in errors.items()}
    found.save(out / f"{name.replace(', ', '_').replace(' ', '_')}.npz")
    written = {k.number: int((k.slots != 0).sum()) for k in found.launches if k.slots is not None}
    print(f"{name}: clean {found.slope(CLEAN):.1f} ticks an iteration; errors up to {max(errors.values()):.1e}")
    for number, one in enumerate(chosen):
        print(
            f"  {one.name:14s} {found.slope(number):8.1f} {100 * found.perturbation(number):+6.1f} %",
            written[number],
            flush=True,
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
            "shapes": {name: measure(opened, name, folder) for name in sys.argv[2:] or CASES},
        }
    (folder / "overhead_cute.json").write_text(json.dumps(results, indent=1))
