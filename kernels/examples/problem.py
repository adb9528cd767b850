"""What the example kernels share: variants with their role specs, builds, launches and the check against float64."""

from __future__ import annotations

import ctypes
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

import numpy as np

from wsformat.kernels import nvrtc
from wsformat.kernels.driver import Device
from wsformat.kernels.passes import StampPass
from wsformat.kernels.recorder import Request

Array = np.ndarray[Any, Any]

THREADS = 384
POISON = 0xFF
"""Byte of the result before a launch: as floats, NaN."""


@dataclass(frozen=True)
class Variant:
    """One build of an example kernel.

    Attributes:
        stages: of the ring, or of each of them.
        about: one line for people.
        kernel: its name, that of its source file and of its role spec.
        size: M, N, K by default; of attention queries, heads, keys.
        summed_a_trip: how much of K, or how many keys, one iteration takes.
        tolerance: largest relative error against float64, in the Frobenius norm.
        tensor_ticks: what one iteration of a CTA needs at least on the tensor cores.
    """

    stages: int = 4
    about: str = ""
    kernel: str = ""
    size: tuple[int, int, int] = (128, 128, 4096)
    summed_a_trip: int = 64
    tolerance: float = 1e-5
    tensor_ticks: int = 512

    @property
    def macros(self) -> dict[str, int]:
        """To compile with."""
        return {"STAGES": self.stages}

    def spec(self) -> dict[str, Any]:
        """Role spec: the lag of a barrier of free stages is the length of its ring."""
        spec: dict[str, Any] = json.loads((files(__package__) / f"{self.kernel}.json").read_text())
        for edge in spec["dependencies"]:
            if edge["barrier"].endswith("empty"):
                edge["iteration_lag"] = self.stages
        return spec


def compile_pass(variant: Variant, stamp_pass: StampPass | None, layout: Mapping[str, int]) -> nvrtc.Build:
    """The build of one pass; None: without any stamp line."""
    macros = {**variant.macros, **({} if stamp_pass is None else {**layout, **stamp_pass.defines()})}
    name = f"{variant.kernel}.cu"
    return nvrtc.build((files(__package__) / name).read_text(), [variant.kernel], macros=macros, name=name)


@dataclass
class Problem(ABC):
    """Inputs of an example on the device, and launches of its builds on them.

    Attributes:
        device, variant: where and what.
        m, n, k: size, as :attr:`Variant.size`; k the most that will run.
        seed: of the inputs.
        functions: loaded builds by number of their pass.
        wanted: results in float64 by trip count.
    """

    device: Device
    variant: Any
    m: int
    n: int
    k: int
    seed: int
    functions: dict[int, Any] = field(default_factory=dict)
    wanted: dict[int, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.check_size()
        self.maps: list[Any] = self.prepare(np.random.default_rng(self.seed))
        self.bytes = 4 * int(np.prod(self.result_shape))
        self.result = self.device.allocate(self.bytes)

    @abstractmethod
    def check_size(self) -> None:
        """Refuse a size that the kernel cannot do.

        Raises:
            BadRequest
        """

    @abstractmethod
    def prepare(self, random: np.random.Generator) -> list[Any]:
        """Draw the inputs, copy them to the device; their tensor maps."""

    @abstractmethod
    def arguments(self, trips: int) -> list[Any]:
        """Arguments of the kernel behind the tensor maps and the pointer to the result."""

    @abstractmethod
    def reference(self, trips: int) -> Array:
        """The result in float64."""

    @property
    @abstractmethod
    def grid(self) -> tuple[int, int, int]:
        """CTAs in x, y and z."""

    @property
    @abstractmethod
    def shared(self) -> int:
        """Dynamic shared memory of a CTA."""

    @property
    def result_shape(self) -> tuple[int, ...]:
        """Of the floats that the kernel writes."""
        return self.m, self.n

    @property
    def tiles(self) -> int:
        """Tiles of the CTAs that have most, 0 when the kernel is not persistent."""
        return 0

    @property
    def trips(self) -> int:
        """Iterations of the main loop of the CTAs that have most."""
        return max(1, self.tiles) * (self.k // int(self.variant.summed_a_trip))

    @property
    def trips_to_check(self) -> tuple[int, ...]:
        """Trip counts whose results are compared: least, one less than all, all."""
        step = max(1, self.tiles)
        return step, self.trips - step, self.trips

    def add(self, number: int, build: nvrtc.Build) -> dict[str, Any]:
        """Load a build under the number of its pass; facts about it."""
        function = self.device.function(build.cubin, build.names[self.variant.kernel], self.shared)
        self.functions[number] = function
        return {
            **self.device.function_facts(function, THREADS, self.shared),
            **build.facts(self.variant.kernel),
        }

    def launch(self, number: int, trips: int, args: Sequence[Any] = ()) -> None:
        """Start one launch of so many iterations a CTA."""
        given = [*self.maps, ctypes.c_uint64(self.result), *self.arguments(trips), *args]
        self.device.launch(self.functions[number], self.grid, (THREADS, 1, 1), self.shared, given)

    def serve(self, request: Request) -> None:
        """Do what the recorder asks."""
        self.launch(request.number, request.trips, [request.args])

    def error(self, number: int, trips: int, args: Sequence[Any] = ()) -> float:
        """Relative error of one launch against float64 on poisoned memory; NaN when an element was not written."""
        self.device.fill(self.result, POISON, self.bytes)
        self.launch(number, trips, args)
        self.device.synchronize()
        got = self.device.download(self.result, np.empty(self.result_shape, np.float32)).astype(np.float64)
        if trips not in self.wanted:
            self.wanted[trips] = self.reference(trips)
        want = self.wanted[trips]
        return float(np.linalg.norm(got - want) / np.linalg.norm(want))
