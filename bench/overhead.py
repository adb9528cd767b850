"""What stamps do to a kernel's main loop: measures it on a GPU, and makes the tables of docs/overhead.md.

    python bench/overhead.py measure FOLDER   on a machine with a Hopper GPU: FOLDER/overhead.json and recordings
    python bench/overhead.py table            docs/overhead.md from the results beside this script

By slope: lifetime at K=4096 minus lifetime at K=2048 over the 32 iterations between them, medians of interleaved
launches, so that the fixed cost of a CTA does not count.
"""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from wsformat import rolespec
from wsformat.kernels.examples.gemm_hopper import TENSOR_TICKS, VARIANTS
from wsformat.kernels.examples.record import EXAMPLES
from wsformat.kernels.passes import StampPass, standard
from wsformat.kernels.recording import CLEAN
from wsformat.rolespec import Layout

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "overhead.md"
TEXT = (HERE / "overhead.template.md").read_text()
CUTE_RESULTS = "overhead_cute.json"
EXAMPLE_RESULTS = "overhead_examples.json"
PLACEMENT_RESULTS = "placement.json"
PASSES = ("all", "waits", "work")
RESULTS = ("overhead.json", "overhead_again.json")
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
SHADOW = {"WSF_SHADOW": 1}
SETS = (
    "all",
    "waits",
    "work",
    "waits:consumer0",
    "waits:producer",
    "work:consumer0",
    "work:consumer1",
    "work:producer",
)
SHADOWED = ("waits", "work", "work:consumer0", "work:producer")
"""Sets that are tried with WSF_SHADOW too."""
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
    found += [
        StampPass(f"{p.name}, shadow | held, shared", p.events, p.macros) for p in standard(parsed, SHADOWED, SHADOW)
    ]
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
    from wsformat.kernels.examples.problem import compile_pass
    from wsformat.kernels.recorder import Recorder

    m, n, k = WHOLE
    variant = VARIANTS["gemm_hopper"]
    problem = gemm.Problem(device, variant, m, n, k, seed=time.time_ns() % 2**32)
    every = [p for p in passes_of(variant.spec()) if p.name in ("all | usual: branch, global", "all | held, shared")]
    recorder = Recorder(device, {}, LAYOUT, every, ctas=m * n // 128**2)
    off = compile_pass(variant, None, {})
    builds = {"no stamp lines": (off, ())}
    for stamp_pass in (recorder.clean_pass, *every):
        builds[stamp_pass.name] = (compile_pass(variant, stamp_pass, recorder.macros()), (recorder.args,))
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


def slope(lifetimes: dict[str, list[float]], trips: tuple[int, ...] = TRIPS) -> float:
    """Ticks an iteration: difference of the medians over difference of the trip counts."""
    low, high = (median(lifetimes[str(n)]) for n in trips)
    return (high - low) / (trips[1] - trips[0])


def interval(stamped: dict[str, list[float]], bare: dict[str, list[float]], trips: tuple[int, ...] = TRIPS) -> float:
    """Half width of the 95 % interval of the inflation, from resampled launches (the runs' own spread comes on top)."""
    random = np.random.default_rng(1)

    def slopes(lifetimes: dict[str, list[float]]) -> Any:
        drawn = []
        for n in trips:
            values = np.array(lifetimes[str(n)])
            drawn.append(np.median(random.choice(values, (2000, len(values))), axis=1))
        return (drawn[1] - drawn[0]) / (trips[1] - trips[0])

    low, high = np.percentile(slopes(stamped) / slopes(bare) - 1, [2.5, 97.5])
    return float(high - low) / 2


def table() -> str:
    """docs/overhead.md."""
    runs = [json.loads((HERE / name).read_text()) for name in RESULTS]
    return TEXT.format(
        device=runs[0]["device"],
        runs=len(runs),
        launches=len(next(iter(runs[0]["shapes"].values()))["lifetimes"]["clean"]["64"]),
        clean=clean_table(runs),
        methods=method_table(runs),
        passes=pass_table(runs),
        costs=cost_table(runs[0]),
        whole=whole_table(runs),
        worst=100 * worst(runs, "all | held, shared"),
        cute_gemm=cute_table("GEMM"),
        cute_attention=cute_table("attention"),
        examples=example_table(),
        placement=placement_table(),
    )


def inflation(run: dict[str, Any], shape: str, name: str) -> float:
    """Slope of a build over the clean slope, minus 1."""
    lifetimes = run["shapes"][shape]["lifetimes"]
    return slope(lifetimes[name]) / slope(lifetimes["clean"]) - 1


def worst(runs: list[dict[str, Any]], name: str) -> float:
    """Largest inflation of a build in any shape and run."""
    return max(inflation(run, shape, name) for run in runs for shape in SHAPES)


def _grid(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] + ["--:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cell(runs: list[dict[str, Any]], shape: str, name: str) -> str:
    values = " / ".join(f"{100 * inflation(run, shape, name):+.1f}" for run in runs)
    wide = max(
        interval(run["shapes"][shape]["lifetimes"][name], run["shapes"][shape]["lifetimes"]["clean"]) for run in runs
    )
    return f"{values} (± {100 * wide:.1f})"


def clean_table(runs: list[dict[str, Any]]) -> str:
    """Ticks an iteration without stamps."""
    rows = []
    for shape in SHAPES:
        ticks = [slope(run["shapes"][shape]["lifetimes"]["clean"]) for run in runs]
        budget = " / ".join(f"{100 * TENSOR_TICKS / t:.1f} %" for t in ticks)
        rows.append([shape, " / ".join(f"{t:.1f}" for t in ticks), budget])
    return _grid(["shape", "cycles an iteration, clean", "tensor budget reached"], rows)


def method_table(runs: list[dict[str, Any]]) -> str:
    """Inflation with all stamps, by method."""
    rows = [[method, *(_cell(runs, shape, f"all | {method}") for shape in SHAPES)] for method in METHODS]
    return _grid(["all stamps: method", *SHAPES], rows)


def pass_table(runs: list[dict[str, Any]]) -> str:
    """Inflation of held stamps in shared memory, by pass."""
    names = [name for name in next(iter(runs[0]["shapes"].values()))["lifetimes"] if name.endswith("| held, shared")]
    rows = [[name.split(" | ")[0], *(_cell(runs, shape, name) for shape in SHAPES)] for name in names]
    return _grid(["held, shared: pass", *SHAPES], rows)


def cute_table(kind: str) -> str:
    """Inflation on the CuTe DSL kernels of a kind: stamps, and IKET's ranges attached and not."""
    held = json.loads((HERE / CUTE_RESULTS).read_text())
    plain, attached = held["stamps"], held["under IKET"]
    shapes = [shape for shape in plain[0]["shapes"] if shape.startswith(kind)]
    clean = [
        " / ".join(f"{slope(run['shapes'][shape]['lifetimes']['clean']):.0f}" for run in plain) for shape in shapes
    ]
    rows = [["clean, cycles an iteration", *clean]]
    rows += [[f"stamps, {name}, %", *(_cell(plain, shape, name) for shape in shapes)] for name in PASSES]
    rows.append(["IKET ranges, not attached, %", *(_cell(plain, shape, "IKET ranges") for shape in shapes)])
    rows.append(["IKET ranges, attached, %", *(_cell(attached, shape, "IKET ranges") for shape in shapes)])
    return _grid(["CuTe DSL", *shapes], rows)


def example_table() -> str:
    """Clean ticks, budget and inflation of every example kernel."""
    rows = []
    for label, one in json.loads((HERE / EXAMPLE_RESULTS).read_text())["examples"].items():
        variant = EXAMPLES[label.split(",")[0]].VARIANTS[label.split(",")[0]]
        lifetimes, trips = one["lifetimes"], tuple(one["trips"])
        bare = slope(lifetimes["clean"], trips)
        cells = [
            f"{100 * (slope(lifetimes[name], trips) / bare - 1):+.1f}"
            f" (± {100 * interval(lifetimes[name], lifetimes['clean'], trips):.1f})"
            if name in lifetimes
            else ""
            for name in PASSES
        ]
        rows.append([label, one["shape"], f"{bare:.0f}", f"{100 * variant.tensor_ticks / bare:.0f} %", *cells])
    return _grid(["example", "shape", "clean, cycles an iteration", "tensor budget reached", *PASSES], rows)


def placement_table() -> str:
    """Passes against clean, as medians over the places where the code may lie, and the spread of the clean ones."""
    rows = []
    for shape, lifetimes in json.loads((HERE / PLACEMENT_RESULTS).read_text())["shapes"].items():
        places = {
            name: [slope(x) for key, x in lifetimes.items() if key.startswith(f"{name}@")]
            for name in ("clean", *PASSES)
        }
        bare = median(places["clean"])
        spread = 100 * (max(places["clean"]) - min(places["clean"])) / bare
        cells = [f"{100 * (median(places[name]) / bare - 1):+.1f}" for name in PASSES]
        rows.append([shape, f"{bare:.1f}", f"{spread:.1f}", *cells])
    return _grid(["shape", "clean, cycles an iteration", "clean builds differ by, %", *PASSES], rows)


def cost_table(run: dict[str, Any]) -> str:
    """What a stamp and the pair around a satisfied wait cost by themselves."""
    rows = [[m, f"{c['stamp']:.0f}", f"{c['wait_floor']:.0f}"] for m, c in run["calibration"].items()]
    return _grid(["method", "between two stamps", "around a satisfied mbarrier wait"], rows)


def whole_table(runs: list[dict[str, Any]]) -> str:
    """Milliseconds of a large problem."""
    rows = []
    for name in runs[0]["whole"]["milliseconds"]:
        ms = [median(run["whole"]["milliseconds"][name]) for run in runs]
        first = [median(run["whole"]["milliseconds"]["no stamp lines"]) for run in runs]
        share = " / ".join(f"{100 * (m / f - 1):+.1f} %" for m, f in zip(ms, first, strict=True))
        rows.append([name.replace(" | ", ": "), " / ".join(f"{m:.3f}" for m in ms), share])
    m, n, k = runs[0]["whole"]["shape"]
    return _grid([f"{m} x {n} x {k}, 4,096 CTAs", "ms", "over no stamp lines"], rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["measure"] and len(sys.argv) == 3:
        measure(Path(sys.argv[2]))
    elif sys.argv[1:] == ["table"]:
        PAGE.write_text(table())
    else:
        sys.exit(__doc__)
