"""Running the example ``gemm_persistent.cu``: variants, inputs and the share of each CTA."""

from __future__ import annotations

import ctypes
import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from wsformat.errors import BadRequest
from wsformat.kernels.examples import gemm_hopper, problem
from wsformat.kernels.examples.gemm_hopper import TILE

ONCE_A_TILE = "tile"


@dataclass(frozen=True)
class Variant(problem.Variant):
    """A build of the example.

    Attributes:
        cluster: CTAs that share the columns of a tile, 1 or 2.
    """

    stages: int = 6
    kernel: str = "gemm_persistent"
    cluster: int = 1

    @property
    def macros(self) -> dict[str, int]:
        """To compile with."""
        return {"STAGES": self.stages, "CLUSTER": self.cluster}

    def spec(self) -> dict[str, Any]:
        """That of ``gemm_hopper``, but the epilogue comes once a tile, and in clusters both barriers join both CTAs.

        The signal of ``empty`` is the stamp before the arrival: the one after it was seen up to 850 cycles late, where
        the stores of a tile kept the warp, and then the producer seems to go on before it was let.
        """
        spec: dict[str, Any] = json.loads((files(__package__) / "gemm_hopper.json").read_text())
        spec["_comment"] = "Example gemm_persistent.cu."
        spec["capture"]["kernel"] = self.kernel
        spec["launch"]["cluster_x"] = self.cluster
        for event in spec["events"]:
            event["loop"] = ONCE_A_TILE if event["loop"] == "once" else event["loop"]
        for edge in spec["dependencies"]:
            edge["scope"] = "cluster" if self.cluster > 1 else "cta"
            if edge["barrier"] == "empty":
                edge |= {"iteration_lag": self.stages, "producer_event": "work_end"}
        return spec


VARIANTS = {
    "gemm_persistent": Variant(
        about="persistent GEMM: one CTA an SM, six or seven tiles each, the last wave not full", size=(2048, 7168, 1024)
    ),
    "gemm_cluster": Variant(
        about="persistent GEMM in clusters of two CTAs: B by TMA multicast, barriers across CTAs",
        cluster=2,
        size=(1536, 2816, 1024),
    ),
}


class Problem(gemm_hopper.Problem):
    """A[M,K], B[N,K] and C[M,N], shared out over as many CTAs as there are SMs."""

    @property
    def box_b(self) -> int:  # type: ignore[override]
        """Each CTA of a cluster loads its part."""
        return TILE // int(self.variant.cluster)

    def check_size(self) -> None:
        """Whole tiles, and whole clusters of them."""
        super().check_size()
        if self.m % (TILE * self.variant.cluster):
            raise BadRequest(f"M {self.m}: a multiple of {TILE * self.variant.cluster} is needed")

    @property
    def shares(self) -> int:
        """Pieces of work: a tile, or the tiles of one cluster."""
        return int(self.m // TILE // self.variant.cluster * (self.n // TILE))

    @property
    def clusters(self) -> int:
        """CTAs, or clusters, of a launch."""
        return min(self.shares, self.device.attribute("MULTIPROCESSOR_COUNT") // int(self.variant.cluster))

    @property
    def grid(self) -> tuple[int, int, int]:
        """At most a CTA an SM."""
        return self.clusters * int(self.variant.cluster), 1, 1

    @property
    def tiles(self) -> int:
        """Of the CTAs that have most."""
        return -(-self.shares // self.clusters)

    def arguments(self, trips: int) -> list[Any]:
        """Row length of C, tiles above each other, pieces of work, trips a tile."""
        rows = self.m // TILE // int(self.variant.cluster)
        return [ctypes.c_uint32(x) for x in (self.n, rows, self.shares, trips // self.tiles)]
