"""Running the example ``attention_hopper.cu``: inputs and reference."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np

from wsformat.errors import BadRequest
from wsformat.kernels.examples import problem
from wsformat.kernels.examples.number_formats import bf16, float64

Array = np.ndarray[Any, Any]

TILE, DIM = 128, 128
TENSOR_TICKS = 2048
"""What one iteration of a CTA needs at least: two warpgroups, Q K^T and P V, 8 x m64n128k16 of 64 ticks each."""
TOLERANCE = 5e-3
"""P is rounded to bf16, whose half step is 2e-3."""


@dataclass(frozen=True)
class Variant(problem.Variant):
    """A build of the example."""

    stages: int = 2
    kernel: str = "attention_hopper"
    size: tuple[int, int, int] = (128, 1, 8192)
    summed_a_trip: int = TILE
    tolerance: float = TOLERANCE
    tensor_ticks: int = TENSOR_TICKS


VARIANTS = {
    "attention_hopper": Variant(
        about="attention forward, bf16, head dim 128: softmax between two MMAs in two consumer warpgroups"
    )
}


class Problem(problem.Problem):
    """Q, K and V of ``n`` heads: ``m`` queries, ``k`` keys."""

    def check_size(self) -> None:
        """Whole tiles only."""
        if self.m % TILE or self.k % TILE:
            raise BadRequest(f"{self.m} queries, {self.k} keys: multiples of {TILE} are needed")

    def prepare(self, random: np.random.Generator) -> list[Any]:
        """Normal random numbers, rounded."""
        self.scale = DIM**-0.5
        rows = (self.n * self.m, self.n * self.k, self.n * self.k)
        self.inputs = [bf16(random.standard_normal((r, DIM), np.float32)) for r in rows]
        return [self.device.tensor_map(self.device.upload(x), len(x), DIM, TILE, DIM // 2) for x in self.inputs]

    @property
    def result_shape(self) -> tuple[int, ...]:
        """Head, query, dimension."""
        return self.n, self.m, DIM

    @property
    def grid(self) -> tuple[int, int, int]:
        """A CTA for each tile of queries of a head."""
        return self.m // TILE, self.n, 1

    @property
    def shared(self) -> int:
        """Q, the rings of K and V, and room to align them."""
        return (1 + 2 * int(self.variant.stages)) * TILE * DIM * 2 + 1024

    def arguments(self, trips: int) -> list[Any]:
        """Scale for exp2, keys a head, and the trips."""
        return [ctypes.c_float(self.scale / np.log(2)), ctypes.c_uint32(self.k), ctypes.c_uint32(trips)]

    def reference(self, trips: int) -> Array:
        """Over the first ``trips`` tiles of keys."""
        q, k, v = (float64(x).reshape(self.n, -1, DIM) for x in self.inputs)
        return attention(q, k[:, : trips * TILE], v[:, : trips * TILE], self.scale)


def attention(q: Array, k: Array, v: Array, scale: float) -> Array:
    """``softmax(q k^T * scale) v`` for ``[head, row, dim]``."""
    scores = q @ k.transpose(0, 2, 1) * scale
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    result: Array = weights @ v / weights.sum(axis=-1, keepdims=True)
    return result
