"""Running the example ``gemm_hopper.cu``: inputs, launch and check."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

import numpy as np

from wsformat.errors import BadRequest
from wsformat.kernels import nvrtc
from wsformat.kernels.driver import Device
from wsformat.kernels.passes import StampPass
from wsformat.kernels.recorder import Request

Array = np.ndarray[Any, Any]

KERNEL = "gemm_hopper"
TILE, TILE_K, THREADS = 128, 64, 384
STAGE_BYTES = 2 * TILE * TILE_K * 2
SUMMED_A_TRIP = TILE_K
DEFAULT_SIZE = (128, 128, 4096)
"""M, N, K."""
POISON = 0xFF
"""Byte of the result before a launch: as floats, NaN."""
TENSOR_TICKS = 512
"""What one iteration of a CTA needs at least: 2 x 4 x m64n128k16 at 4,096 FLOP a cycle."""
TOLERANCE = 1e-5
"""Relative error in the Frobenius norm: products of bf16 are exact in float, so only the float sums round."""


@dataclass(frozen=True)
class Variant:
    """A build of the example.

    Attributes:
        stages: of the ring.
        spin: cycles that the producer wastes before each copy.
    """

    stages: int = 4
    spin: int = 0

    @property
    def macros(self) -> dict[str, int]:
        """To compile with."""
        return {"STAGES": self.stages, "SPIN": self.spin}

    def spec(self) -> dict[str, Any]:
        """Role spec: the lag of the barrier ``empty`` is the length of the ring."""
        spec: dict[str, Any] = json.loads((files(__package__) / "gemm_hopper.json").read_text())
        for edge in spec["dependencies"]:
            if edge["barrier"] == "empty":
                edge["iteration_lag"] = self.stages
        return spec


def loop_only(spec: dict[str, Any], kernel: str) -> dict[str, Any]:
    """The role spec of a kernel that stamps its main loop alone."""
    once = {e["event"] for e in spec["events"] if e["loop"] == "once"}
    return {
        **spec,
        "capture": {**spec["capture"], "kernel": kernel},
        "events": [e for e in spec["events"] if e["event"] not in once],
        "spans": [s for s in spec["spans"] if s["begin_event"] not in once],
    }


VARIANTS = {
    "gemm_hopper": Variant(),
    "gemm_hopper_slow_producer": Variant(spin=1500),
    "gemm_hopper_two_stages": Variant(stages=2),
}


def source() -> str:
    """CUDA C++ of the kernel."""
    return (files(__package__) / f"{KERNEL}.cu").read_text()


def compile_pass(variant: Variant, stamp_pass: StampPass | None, layout: Mapping[str, int]) -> nvrtc.Build:
    """The build of one pass; None: without any stamp line."""
    macros = {**variant.macros, **({} if stamp_pass is None else {**layout, **stamp_pass.defines()})}
    return nvrtc.build(source(), [KERNEL], macros=macros, name=f"{KERNEL}.cu")


@dataclass
class Problem:
    """Matrices on the device for one size, and launches of builds on them.

    Attributes:
        device, variant: where and what.
        m, n, k: size; k the largest that will run.
        seed: of the inputs.
        functions: loaded builds by number of their pass.
        wanted: results in float64 by trip count.
    """

    device: Device
    variant: Variant
    m: int
    n: int
    k: int
    seed: int
    functions: dict[int, Any] = field(default_factory=dict)
    wanted: dict[int, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.m % TILE or self.n % TILE or self.k % TILE_K:
            raise BadRequest(f"{self.m} x {self.n} x {self.k}: M and N are multiples of {TILE}, K of {TILE_K}")
        random = np.random.default_rng(self.seed)
        self.a, self.b = (bf16(random.standard_normal((rows, self.k), np.float32)) for rows in (self.m, self.n))
        pointers = [self.device.upload(x) for x in (self.a, self.b)]
        self.maps = [
            self.device.tensor_map(p, rows, self.k, TILE, TILE_K)
            for p, rows in zip(pointers, (self.m, self.n), strict=True)
        ]
        self.bytes = 4 * self.m * self.n
        self.result = self.device.allocate(self.bytes)
        self.shared = self.variant.stages * STAGE_BYTES + 1024

    @property
    def grid(self) -> tuple[int, int, int]:
        """CTAs in x, y and z."""
        return self.n // TILE, self.m // TILE, 1

    def add(self, number: int, build: nvrtc.Build) -> dict[str, Any]:
        """Load a build under the number of its pass; facts about it."""
        function = self.device.function(build.cubin, build.names[KERNEL], self.shared)
        self.functions[number] = function
        return {**self.device.function_facts(function), **build.facts(KERNEL)}

    def launch(self, number: int, trips: int, args: Sequence[Any] = ()) -> None:
        """Start one launch over the first ``trips`` tiles of K."""
        pointer, n = ctypes.c_uint64(self.result), ctypes.c_uint32(self.n)
        given = [*self.maps, pointer, n, ctypes.c_uint32(trips), *args]
        self.device.launch(self.functions[number], self.grid, (THREADS, 1, 1), self.shared, given)

    def serve(self, request: Request) -> None:
        """Do what the recorder asks."""
        self.launch(request.number, request.trips, [request.args])

    def error(self, number: int, trips: int, args: Sequence[Any] = ()) -> float:
        """Relative error of one launch against float64 on poisoned memory; NaN when an element was not written."""
        self.device.fill(self.result, POISON, self.bytes)
        self.launch(number, trips, args)
        self.device.synchronize()
        got = self.device.download(self.result, np.empty((self.m, self.n), np.float32)).astype(np.float64)
        if trips not in self.wanted:
            a, b = (float64(x[:, : trips * TILE_K]) for x in (self.a, self.b))
            self.wanted[trips] = a @ b.T
        want = self.wanted[trips]
        return float(np.linalg.norm(got - want) / np.linalg.norm(want))


def bf16(values: Array) -> Array:
    """Nearest bf16, ties to even, as its 16 bits."""
    bits = values.view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def float64(bits: Array) -> Array:
    """bf16 given as its 16 bits, exactly."""
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
