"""Recording an example kernel on the GPU of this machine."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from wsformat import rolespec
from wsformat.errors import BadRequest
from wsformat.kernels.calibrate import calibrate
from wsformat.kernels.driver import Device
from wsformat.kernels.examples import attention_hopper, gemm_hopper, gemm_persistent
from wsformat.kernels.examples.problem import THREADS, Problem, compile_pass
from wsformat.kernels.passes import StampPass, standard
from wsformat.kernels.recorder import Recorder
from wsformat.kernels.recording import CLEAN, Recording
from wsformat.rolespec import Layout

OFF = -2
"""Number of the build without any stamp line: the kernel as it ships."""
DEFAULT_PASSES = ("all", "waits", "work")
CAPABILITY = (9, 0)
EXAMPLES: dict[str, Any] = {
    name: module for module in (gemm_hopper, gemm_persistent, attention_hopper) for name in module.VARIANTS
}
"""Module of each example: its variants and its class Problem."""


def names() -> list[str]:
    """Examples that can be recorded."""
    return list(EXAMPLES)


def descriptions() -> dict[str, str]:
    """One line about each example, by name."""
    return {name: str(module.VARIANTS[name].about) for name, module in EXAMPLES.items()}


def check_passes(example: str, passes: Sequence[str]) -> None:
    """Refuse passes that the example does not have; needs no GPU.

    Raises:
        BadRequest: no such pass.
    """
    standard(_spec(example, 1)[2], passes)


def _spec(example: str, trips: int) -> tuple[dict[str, Any], Layout, rolespec.RoleSpec]:
    """Role spec of an example with so many trips: as it is written, its layout, and parsed."""
    layout = Layout(3, 16, trips)
    sizes = {"roles": layout.roles, "events": layout.events, "iterations": layout.iterations}
    raw = {**EXAMPLES[example].VARIANTS[example].spec(), "layout": sizes}
    return raw, layout, rolespec.parse(raw, f"{example}: role spec", layout)


def record(
    example: str,
    *,
    passes: Sequence[str | StampPass] = DEFAULT_PASSES,
    m: int | None = None,
    n: int | None = None,
    k: int | None = None,
    repeats: int = 20,
    keep: int = 1,
    device: Device | None = None,
) -> Recording:
    """Check an example kernel, then record it clean and stamped at K/2 and K.

    Args:
        example: one of :func:`names`.
        passes: names as in :func:`wsformat.kernels.passes.standard`, or passes.
        m, n, k: problem size, by default the example's; of attention queries, heads, keys.
        repeats: launches of each build and size.
        keep: of how many launches a pass the stamps are kept.
        device: to record on, the first GPU by default.

    Raises:
        MissingDependency, BadRequest: no such example, no GPU that runs it, or a build that computes something wrong.
    """
    if example not in EXAMPLES:
        raise BadRequest(f"no example {example!r}", f"Examples: {', '.join(names())}.")
    if device is None:
        with Device() as opened:
            return record(example, passes=passes, m=m, n=n, k=k, repeats=repeats, keep=keep, device=opened)
    if device.capability != CAPABILITY:
        raise BadRequest(
            f"{example} runs on Hopper (compute capability 9.0); {device.name} has "
            f"{device.capability[0]}.{device.capability[1]}"
        )
    module = EXAMPLES[example]
    variant = module.VARIANTS[example]
    m, n, k = (given or usual for given, usual in zip((m, n, k), variant.size, strict=True))
    if k < 2 * variant.summed_a_trip or k % (2 * variant.summed_a_trip):
        raise BadRequest(f"K {k}: half of it is recorded too, so it is a multiple of {2 * variant.summed_a_trip}")
    problem = module.Problem(device, variant, m, n, k, seed=time.time_ns() % 2**32)
    trips = problem.trips
    raw, layout, spec = _spec(example, trips)
    chosen = [p if isinstance(p, StampPass) else standard(spec, [p])[0] for p in passes]
    ctas = problem.grid[0] * problem.grid[1]
    recorder = Recorder(device, raw, layout, chosen, ctas=ctas, anchors=problem.tiles and problem.tiles + 1)
    builds, errors = _check(problem, recorder)
    found = recorder.record(problem.serve, [trips // 2, trips], repeats=repeats, keep=keep)
    found.builds = {name: {**facts, "relative_error": errors[name]} for name, facts in builds.items()}
    found.grid = (*problem.grid, THREADS, 1, 1)
    if problem.tiles:
        found.tiles = {"k": trips // problem.tiles, gemm_persistent.ONCE_A_TILE: 1}
    found.facts = {
        "device": device.name,
        "sm_count": device.attribute("MULTIPROCESSOR_COUNT"),
        "label": example,
        "shape": f"M={m} N={n} K={k}",
        "input_data": "random normal, new for this recording",
        "created_unix_ns": time.time_ns(),
    }
    found.calibration = calibrate(device, {})
    return found


def _check(problem: Problem, recorder: Recorder) -> tuple[dict[str, dict[str, object]], dict[str, float]]:
    """Compile every build and compare its result with float64; facts and error of each by name.

    Raises:
        BadRequest: a result is wrong.
    """
    numbered = [(CLEAN, recorder.clean_pass), *enumerate(recorder.passes)]
    one = partial(compile_pass, problem.variant, layout=recorder.macros())
    with ThreadPoolExecutor() as pool:
        compiled = list(pool.map(one, [stamp_pass for _, stamp_pass in numbered]))
    off = one(None)
    builds = {"off": problem.add(OFF, off)}
    errors = {"off": max(problem.error(OFF, n) for n in problem.trips_to_check)}
    for (number, stamp_pass), build in zip(numbered, compiled, strict=True):
        builds[stamp_pass.name] = problem.add(number, build)
        errors[stamp_pass.name] = problem.error(number, problem.trips, [recorder.args])
    for name, error in errors.items():
        if not error < problem.variant.tolerance:  # NaN: an element was not written
            raise BadRequest(f"build {name!r} computes something wrong: relative error {error:.2g}")
    return builds, errors
