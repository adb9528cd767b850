"""Real captures, imported by the library's own converter.

The buffers are those that the library ships (``wsformat/samples``), and in ``sources/`` what is too special for that.
"""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, NamedTuple

from wsformat.bundle import Bundle
from wsformat.converters.registry import import_files
from wsformat.kernels.decode import to_bundle
from wsformat.kernels.recording import Recording

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
    """One real capture: the files, the role spec ('' none) and the options of the import."""

    name: str
    about: str
    files: tuple[str, ...]
    spec: str
    options: dict[str, Any]
    findings: tuple[str, ...] = ()
    recording: str = ""

    def make(self) -> Bundle:
        """Import it; a recording of an example kernel is decoded, one pass and the clean launches of it."""
        if self.recording:
            with as_file(files("wsformat.kernels.examples").joinpath(self.recording)) as path:
                return to_bundle(Recording.load(path), ["all"])
        options = dict(self.options)
        if self.spec:
            options["spec"] = str(find(self.spec))
        for key in ("meta", "clean", "lifetimes"):
            if key in options:
                options[key] = [_path(text) for text in options[key]]
        bundle: Bundle = import_files([find(name) for name in self.files], options)
        return bundle


def _path(text: str) -> str:
    name, colon, trips = text.partition(":")
    return f"{find(name)}{colon}{trips}"


def find(name: str) -> Path:
    """A source file, of this folder or of the library."""
    own = SOURCES / name
    return own if own.exists() else Path(str(files("wsformat.samples").joinpath(name)))


GEMM = {"layout": "3,16,64", "trip_count": 64}

CASES: tuple[SampleCase, ...] = (
    SampleCase(
        "gemm_balanced",
        "a Hopper bf16 GEMM tile: one TMA producer, two wgmma consumers, a ring of four stages; 1 CTA",
        ("balanced_r0.i32",),
        "gemm_roles.json",
        {**GEMM, "meta": ["balanced_r0.meta"]},
        ("I609",),
    ),
    SampleCase(
        "cute_pipeline",
        "a CuTe DSL pipeline: one producer warp, two consumer warps, three stages; no anchors",
        ("cute_pipeline_r0.npy",),
        "cute_roles.json",
        {"trip_count": 48},
        ("I609",),
    ),
    SampleCase(
        "gemm_grid",
        "the first four CTAs of a grid of 132, one an SM, with anchors",
        ("grid132_first4_r0.i32",),
        "gemm_roles.json",
        {**GEMM, "meta": ["grid132_first4_r0.meta"]},
        ("I609",),
    ),
    SampleCase(
        "gemm_perturbation",
        "the least disturbed stamps of the GEMM beside launches without stamps: slope and perturbation",
        ("lowprobe_r0.i32",),
        "gemm_roles.json",
        {
            **GEMM,
            "meta": ["lowprobe_r0.meta"],
            "allow_unwritten": True,
            "lifetimes": ["one_2048_branchfree.metas:32", "one_4096_branchfree.metas:64"],
            "clean": ["one_2048_clean.metas:32", "one_4096_clean.metas:64"],
        },
        ("I609", "W705"),
    ),
    SampleCase(
        "ncu_seed_metrics",
        "counters of the same GEMM by Nsight Compute, with the program's own output between the lines",
        ("seed_metrics.mixed_stdout.csv",),
        "",
        {},
    ),
    SampleCase(
        "iket_pipeline",
        "the CuTe DSL pipeline as NVIDIA IKET recorded it, three launches: states, roles and edges by a mapping; ns",
        ("iket_pipeline_1cta.trace.json.gz",),
        "",
        {"mapping": "iket-cute-pipeline"},
    ),
    SampleCase(
        "proton_add",
        "Triton Proton, intra-kernel: nested scopes of 8 CTAs of 4 warps; cycles, one clock a CTA",
        ("proton_add.chrome_trace.gz",),
        "",
        {},
        ("I609",),
    ),
    SampleCase(
        "kineto_mlp",
        "PyTorch's profiler: threads and a stream as lanes, kernels as launches, correlations as edges, Unix time",
        ("kineto_mlp.json.gz",),
        "",
        {},
    ),
    SampleCase(
        "tag64_flashinfer",
        "FlashInfer's profiler buffer: 6 blocks of a producer and a consumer; lanes by slot; the low 32 bits of ns",
        ("flashinfer_r0.u64",),
        "",
        {"mapping": "tag-producer-consumer", "events": "wait,work,store", "groups": "producer,consumer"},
    ),
    SampleCase(
        "gemm_two_stages",
        "a Hopper GEMM with a ring of two stages, bound by latency: clean and stamped launches at two sizes",
        (),
        "",
        {},
        (),
        recording="gemm_hopper_two_stages.npz",
    ),
    SampleCase(
        "attention",
        "Hopper attention forward: rings of K and V, softmax between two MMAs in two consumer warpgroups",
        (),
        "",
        {},
        (),
        recording="attention_hopper.npz",
    ),
    SampleCase(
        "gemm_persistent",
        "a persistent GEMM: every eleventh CTA of 132, six or seven tiles each, an anchor a tile; sampled",
        (),
        "",
        {},
        ("I614",),
        recording="gemm_persistent.npz",
    ),
    SampleCase(
        "gemm_cluster",
        "a GEMM in clusters of two CTAs: multicast, barriers that both CTAs arrive on; the first 12 CTAs",
        (),
        "",
        {},
        ("I614",),
        recording="gemm_cluster.npz",
    ),
)
