"""Real captures, imported by the library's own converter.

The buffers are those that the library ships (``wsformat/samples``), and in ``sources/`` what is too special for that.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from wsformat.bundle import Bundle
from wsformat.converters.registry import import_files

SOURCES = Path(__file__).parent / "sources"
VIEWS = (
    "role_state",
    "role_summary",
    "overlap",
    "wait_summary",
    "iteration_summary",
    "clock_map",
    "slope",
    "perturbation",
)


class SampleCase(NamedTuple):
    """One real capture."""

    name: str
    about: str
    file: str
    spec: str
    options: dict[str, Any]
    findings: tuple[str, ...] = ()

    def make(self) -> Bundle:
        """Import it."""
        options = {**self.options, "spec": str(find(self.spec))}
        if "meta" in options:
            options["meta"] = [str(find(options["meta"]))]
        return import_files([find(self.file)], options)


def find(name: str) -> Path:
    """A source file, of this folder or of the library."""
    own = SOURCES / name
    return own if own.exists() else Path(str(files("wsformat.samples").joinpath(name)))


CASES: tuple[SampleCase, ...] = (
    SampleCase(
        "gemm_balanced",
        "a Hopper bf16 GEMM tile: one TMA producer, two wgmma consumers, a ring of four stages; 1 CTA",
        "balanced_r0.i32",
        "gemm_roles.json",
        {"layout": "3,16,64", "meta": "balanced_r0.meta", "trip_count": 64},
        ("I609",),
    ),
    SampleCase(
        "cute_pipeline",
        "a CuTe DSL pipeline: one producer warp, two consumer warps, three stages; no anchors",
        "cute_pipeline_r0.npy",
        "cute_roles.json",
        {"trip_count": 48},
        ("I609",),
    ),
    SampleCase(
        "gemm_grid",
        "the first four CTAs of a grid of 132, one an SM, with anchors",
        "grid132_first4_r0.i32",
        "gemm_roles.json",
        {"layout": "3,16,64", "meta": "grid132_first4_r0.meta", "trip_count": 64},
        ("I609",),
    ),
)
