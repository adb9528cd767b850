"""What stamps do to a kernel's main loop: measures it on a GPU, and makes the tables of docs/overhead.md.

    python bench/overhead.py measure FOLDER   on a machine with a Hopper GPU: FOLDER/overhead.json and recordings
    python bench/overhead.py table            docs/overhead.md from bench/overhead.json

By slope: lifetime at K=4096 minus lifetime at K=2048 over the 32 iterations between them, medians of interleaved
launches, so that the fixed cost of a CTA does not count.
"""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path
from typing import Any

from wsformat import rolespec
from wsformat.kernels.examples.gemm_hopper import VARIANTS
from wsformat.kernels.passes import StampPass, standard
from wsformat.kernels.recording import CLEAN
from wsformat.rolespec import Layout

HERE = Path(__file__).parent
LAYOUT = Layout(3, 16, 64)
TRIPS = (32, 64)
USUAL_GLOBAL = {"WSF_SINK": 0, "WSF_BRANCH": 1}
USUAL_SHARED = {"WSF_SINK": 1, "WSF_BRANCH": 1}
PREDICATED_GLOBAL = {"WSF_SINK": 0, "WSF_DEFER": 0}
PREDICATED = {"WSF_SINK": 1, "WSF_DEFER": 0}
HELD: dict[str, int] = {}
HELD_GLOBAL = {"WSF_SINK": 0}
METHODS = {
    "usual: branch, global": USUAL_GLOBAL,
    "branch, shared": USUAL_SHARED,
    "predicated, global": PREDICATED_GLOBAL,
    "predicated, shared": PREDICATED,
    "held, global": HELD_GLOBAL,
    "held, shared": HELD,
}
SETS = ("all", "waits", "work", "waits:consumer0", "waits:producer", "work:consumer0")
WHOLE = (8192, 8192, 4096)
SHAPES = {
    "1 CTA, 4 stages": ("gemm_hopper", 128, 128, 60),
    "132 CTAs, 4 stages": ("gemm_hopper", 1408, 1536, 60),
    "1 CTA, 2 stages": ("gemm_hopper_two_stages", 128, 128, 60),
    "1 CTA, slow producer": ("gemm_hopper_slow_producer", 128, 128, 60),
}


def passes_of(spec: dict[str, Any]) -> list[StampPass]:
    """Every set of stamps by every method; the name is `set | method`."""
    parsed = rolespec.parse(spec, "gemm_hopper.json", LAYOUT)
    found = []
    for method, macros in METHODS.items():
        sets = SETS if macros is HELD else SETS[:3]
        found += [StampPass(f"{p.name} | {method}", p.events, p.macros) for p in standard(parsed, sets, macros)]
    stride = {**HELD, "WSF_STRIDE": 4}
    found += [
        StampPass("all, every 4th iteration | held, shared", p.events, stride)
        for p in found
        if p.name == "all | held, shared"
    ]
    return found


def measure(out: Path) -> None:
    """Record every shape with every pass; each build is checked against float64 before."""
    from wsformat.kernels.calibrate import calibrate
    from wsformat.kernels.driver import Device
    from wsformat.kernels.examples.record import record

    with Device() as device:
        results: dict[str, Any] = {
            "device": device.name,
            "trips": list(TRIPS),
            "calibration": {name: calibrate(device, macros) for name, macros in METHODS.items()},
            "shapes": {},
        }
        for shape, (example, m, n, repeats) in SHAPES.items():
            started = time.time()
            passes = passes_of(VARIANTS[example].spec())
            found = record(example, passes=passes, m=m, n=n, repeats=repeats, device=device)
            found.save(out / (re.sub(r"[ ,]+", "_", shape) + ".npz"))
            numbered = {"clean": CLEAN, **{p.name: n for n, p in enumerate(passes)}}
            results["shapes"][shape] = {
                "builds": found.builds,
                "lifetimes": {
                    name: {str(t): found.lifetimes(number, t).tolist() for t in TRIPS}
                    for name, number in numbered.items()
                },
            }
            print(f"{shape}: clean {found.slope(CLEAN):.1f} ticks an iteration; {time.time() - started:.1f} s")
            for name, number in numbered.items():
                print(f"  {name:45s} {found.slope(number):8.1f} {100 * found.perturbation(number):+6.1f} %", flush=True)
        results["whole"] = whole(device)
    (out / "overhead.json").write_text(json.dumps(results, indent=1))


def whole(device: Any) -> dict[str, Any]:
    """Milliseconds of a large problem: the kernel without stamps, clean, and stamped in every CTA, in turn."""
    from wsformat.kernels.examples import gemm_hopper as gemm
    from wsformat.kernels.recorder import Recorder

    m, n, k = WHOLE
    variant = VARIANTS["gemm_hopper"]
    problem = gemm.Problem(device, variant, m, n, k, seed=time.time_ns() % 2**32)
    every = [p for p in passes_of(variant.spec()) if p.name in ("all | usual: branch, global", "all | held, shared")]
    recorder = Recorder(device, {}, LAYOUT, every, ctas=m * n // 128**2)
    off = gemm.nvrtc.build(gemm.source(), ["gemm_hopper"], macros=variant.macros)
    builds = {"no stamp lines": (off, ())}
    for stamp_pass in (recorder.clean_pass, *every):
        builds[stamp_pass.name] = (gemm.compile_pass(variant, stamp_pass, recorder.macros()), (recorder.args,))
    for number, (build, _) in enumerate(builds.values()):
        problem.add(number, build)
    times: dict[str, list[float]] = {name: [] for name in builds}
    for turn in range(-3, 30):
        for number, (name, (_, args)) in enumerate(builds.items()):
            one = device.milliseconds(lambda: problem.launch(number, k // 64, args), 1)  # noqa: B023
            times[name] += one if turn >= 0 else []
    for name, ms in times.items():
        middle = sorted(ms)[len(ms) // 2]
        print(f"  {m} x {n} x {k}, {name:30s} {middle:.4f} ms, {2 * m * n * k / middle / 1e9:.0f} TFLOP/s")
    return {"shape": list(WHOLE), "milliseconds": times}


if __name__ == "__main__":
    if sys.argv[1] == "measure":
        measure(Path(sys.argv[2]))
