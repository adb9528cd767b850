"""Running the example ``attention_hopper.cu``: inputs, launch and check."""

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
from wsformat.kernels.examples.gemm_hopper import POISON, THREADS, bf16, float64
from wsformat.kernels.passes import StampPass
from wsformat.kernels.recorder import Request

Array = np.ndarray[Any, Any]

KERNEL = "attention_hopper"
TILE, DIM = 128, 128
SUMMED_A_TRIP = TILE
TENSOR_TICKS = 2048
"""What one iteration of a CTA needs at least: two warpgroups, Q K^T and P V, 8 x m64n128k16 of 64 ticks each."""
TOLERANCE = 5e-3
"""Relative error in the Frobenius norm: P is rounded to bf16, whose half step is 2e-3."""
DEFAULT_SIZE = (128, 1, 8192)
"""Queries, heads, keys."""


@dataclass(frozen=True)
class Variant:
    """A build of the example.

    Attributes:
        stages: of the rings of K and V.
    """

    stages: int = 2

    @property
    def macros(self) -> dict[str, int]:
        """To compile with."""
        return {"STAGES": self.stages}

    def spec(self) -> dict[str, Any]:
        """Role spec: the lag of the barriers of free stages is the length of the rings."""
        spec: dict[str, Any] = json.loads((files(__package__) / f"{KERNEL}.json").read_text())
        for edge in spec["dependencies"]:
            if edge["barrier"].endswith("_empty"):
                edge["iteration_lag"] = self.stages
        return spec


VARIANTS = {KERNEL: Variant()}


def compile_pass(variant: Variant, stamp_pass: StampPass | None, layout: Mapping[str, int]) -> nvrtc.Build:
    """The build of one pass; None: without any stamp line."""
    macros = {**variant.macros, **({} if stamp_pass is None else {**layout, **stamp_pass.defines()})}
    return nvrtc.build((files(__package__) / f"{KERNEL}.cu").read_text(), [KERNEL], macros=macros, name=f"{KERNEL}.cu")


@dataclass
class Problem:
    """Q, K and V on the device for one size, and launches of builds on them.

    Attributes:
        device, variant: where and what.
        m, n, k: queries, heads, keys; k the most that will be used.
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
        if self.m % TILE or self.k % TILE:
            raise BadRequest(f"{self.m} queries, {self.k} keys: multiples of {TILE} are needed")
        random = np.random.default_rng(self.seed)
        rows = (self.n * self.m, self.n * self.k, self.n * self.k)
        self.inputs = [bf16(random.standard_normal((r, DIM), np.float32)) for r in rows]
        self.maps = [
            self.device.tensor_map(self.device.upload(x), r, DIM, TILE, DIM // 2)
            for x, r in zip(self.inputs, rows, strict=True)
        ]
        self.bytes = 4 * self.n * self.m * DIM
        self.result = self.device.allocate(self.bytes)
        self.shared = (1 + 2 * self.variant.stages) * TILE * DIM * 2 + 1024
        self.scale = DIM**-0.5

    @property
    def grid(self) -> tuple[int, int, int]:
        """CTAs in x, y and z."""
        return self.m // TILE, self.n, 1

    def add(self, number: int, build: nvrtc.Build) -> dict[str, Any]:
        """Load a build under the number of its pass; facts about it."""
        function = self.device.function(build.cubin, build.names[KERNEL], self.shared)
        self.functions[number] = function
        return {**self.device.function_facts(function), **build.facts(KERNEL)}

    def launch(self, number: int, trips: int, args: Sequence[Any] = ()) -> None:
        """Start one launch over the first ``trips`` tiles of keys."""
        scale = ctypes.c_float(self.scale / np.log(2))
        given = [
            *self.maps,
            ctypes.c_uint64(self.result),
            scale,
            ctypes.c_uint32(self.k),
            ctypes.c_uint32(trips),
            *args,
        ]
        self.device.launch(self.functions[number], self.grid, (THREADS, 1, 1), self.shared, given)

    def serve(self, request: Request) -> None:
        """Do what the recorder asks."""
        self.launch(request.number, request.trips, [request.args])

    def error(self, number: int, trips: int, args: Sequence[Any] = ()) -> float:
        """Relative error of one launch against float64 on poisoned memory; NaN when an element was not written."""
        self.device.fill(self.result, POISON, self.bytes)
        self.launch(number, trips, args)
        self.device.synchronize()
        got = self.device.download(self.result, np.empty((self.n, self.m, DIM), np.float32)).astype(np.float64)
        if trips not in self.wanted:
            q, k, v = (float64(x).reshape(self.n, -1, DIM) for x in self.inputs)
            self.wanted[trips] = attention(q, k[:, : trips * TILE], v[:, : trips * TILE], self.scale)
        want = self.wanted[trips]
        return float(np.linalg.norm(got - want) / np.linalg.norm(want))


def attention(q: Array, k: Array, v: Array, scale: float) -> Array:
    """``softmax(q k^T * scale) v`` for ``[head, row, dim]``."""
    scores = q @ k.transpose(0, 2, 1) * scale
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    result: Array = weights @ v / weights.sum(axis=-1, keepdims=True)
    return result
