"""Running the example ``gemm_hopper.cu``: variants, inputs and reference."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np

from wsformat.errors import BadRequest
from wsformat.kernels.examples import problem
from wsformat.kernels.examples.number_formats import bf16, e4m3, float64

Array = np.ndarray[Any, Any]

TILE, ROW_BYTES = 128, 128
STAGE_BYTES = 2 * TILE * ROW_BYTES
TENSOR_TICKS = 512
"""What one iteration of a CTA needs at least: 2 x 4 x m64n128k16 at 4,096 FLOP a cycle; of fp8 k32 at twice that."""
TOLERANCE = 1e-5
"""Products of bf16 are exact in float, so only the float sums round."""
FP8_TOLERANCE = 5e-3
"""The tensor cores keep fewer bits of a sum of fp8 products than a float has."""


@dataclass(frozen=True)
class Variant(problem.Variant):
    """A build of the example.

    Attributes:
        spin: cycles that the producer wastes before each copy.
        fp8: inputs are e4m3 instead of bf16.
        in_flight: the consumers leave one group of wgmma running while they wait for the next stage.
    """

    kernel: str = "gemm_hopper"
    spin: int = 0
    fp8: bool = False
    in_flight: bool = False

    @property
    def macros(self) -> dict[str, int]:
        """To compile with."""
        return {"STAGES": self.stages, "SPIN": self.spin, "FP8": int(self.fp8), "IN_FLIGHT": int(self.in_flight)}

    def spec(self) -> dict[str, Any]:
        """Role spec of this build."""
        spec = super().spec()
        return {**spec, "capture": {**spec["capture"], "dtype": "fp8_e4m3"}} if self.fp8 else spec


def loop_only(spec: dict[str, Any], kernel: str) -> dict[str, Any]:
    """The role spec of a kernel that stamps its main loop alone."""
    once = {e["event"] for e in spec["events"] if e["loop"] == "once"}
    return {
        **spec,
        "capture": {**spec["capture"], "kernel": kernel},
        "events": [e for e in spec["events"] if e["event"] not in once],
        "spans": [s for s in spec["spans"] if s["begin_event"] not in once],
        "dependencies": [e for e in spec["dependencies"] if e["consumer_event"] not in once],
    }


VARIANTS = {
    "gemm_hopper": Variant(about="GEMM, bf16: TMA producer, two wgmma consumer warpgroups, a ring of four stages"),
    "gemm_hopper_fp8": Variant(
        about="the same with fp8 (e4m3) inputs",
        fp8=True,
        size=(128, 128, 8192),
        summed_a_trip=128,
        tolerance=FP8_TOLERANCE,
    ),
    "gemm_hopper_in_flight": Variant(
        about="the same with six stages and one group of wgmma left in flight, as fast kernels do",
        stages=6,
        in_flight=True,
    ),
    "gemm_hopper_slow_producer": Variant(
        about="teaching case: the producer wastes 1,500 cycles an iteration", spin=1500
    ),
    "gemm_hopper_two_stages": Variant(about="teaching case: a ring of two stages, bound by latency", stages=2),
}


class Problem(problem.Problem):
    """A[M,K], B[N,K] and C[M,N]."""

    box_b = TILE
    """Rows of B that one copy brings."""

    def check_size(self) -> None:
        """Whole tiles only."""
        step = self.variant.summed_a_trip
        if self.m % TILE or self.n % TILE or self.k % step:
            raise BadRequest(f"{self.m} x {self.n} x {self.k}: M and N are multiples of {TILE}, K of {step}")

    def prepare(self, random: np.random.Generator) -> list[Any]:
        """Normal random numbers, rounded."""
        rounded = e4m3 if self.variant.spec()["capture"]["dtype"] != "bf16" else bf16
        self.a, self.b = (rounded(random.standard_normal((rows, self.k), np.float32)) for rows in (self.m, self.n))
        size = self.a.dtype.itemsize
        return [
            self.device.tensor_map(self.device.upload(x), len(x), self.k, box, ROW_BYTES // size, element_bytes=size)
            for x, box in ((self.a, TILE), (self.b, self.box_b))
        ]

    @property
    def grid(self) -> tuple[int, int, int]:
        """A CTA a tile."""
        return self.n // TILE, self.m // TILE, 1

    @property
    def shared(self) -> int:
        """The ring, and room to align it."""
        return int(self.variant.stages) * STAGE_BYTES + 1024

    def arguments(self, trips: int) -> list[Any]:
        """Row length of C, and the trips."""
        return [ctypes.c_uint32(self.n), ctypes.c_uint32(trips)]

    def reference(self, trips: int) -> Array:
        """Over the first ``trips`` tiles of K."""
        used = trips * self.variant.summed_a_trip // max(1, self.tiles)
        a, b = (float64(x[:, :used]) for x in (self.a, self.b))
        product: Array = a @ b.T
        return product
