"""Real stamp buffers of one H200 that ship with the package, for the demo, the tests and a first look.

A Hopper bf16 GEMM, C[128,128] = A[128,4096] B[128,4096]^T in one CTA: one TMA producer thread, two wgmma consumer
warpgroups, a ring of four stages, 64 iterations of 64. Layout 3,16,64; role spec ``gemm_roles.json``.

===================  =================================================================================================
balanced_r0 to _r2   the usual stamp: a branch and a global store. Three launches
slowproducer_r0      the producer spins 1,500 cycles before each TMA issue, without a stamp
lowprobe_r0          branch-free predicated stores to shared memory; no epilogue stamps
pass_waits_r0        as lowprobe, only the two wait stamps of each role
pass_mma_r0          as lowprobe, only the two stamps around TMA issue and wgmma
cute_pipeline_r0     another kernel, in the CuTe DSL: one producer warp, two consumer warps, a ring of three stages, 48
                     iterations; role spec ``cute_roles.json``
===================  =================================================================================================

``NAME.meta``: start and end record of the CTA. ``SHAPE_K_MODE.metas``: such records of ten launches each, of the same
kernel with K = 2048 (32 iterations) and 4096 (64): SHAPE one (as balanced), slow (as slowproducer), waits and mma (as
the passes); MODE clean (no stamps), global (as balanced), branchfree (as lowprobe).

``gemm_spec.json`` and ``cute_spec.json`` say the same in the form that :mod:`wsformat.skillspec` reads.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from wsformat.errors import BadRequest

FOLDER = Path(str(files(__name__)))


def path(name: str) -> Path:
    """The sample file of that name.

    Raises:
        BadRequest: there is none.
    """
    file = FOLDER / name
    if not file.is_file() or file.suffix == ".py":
        raise BadRequest(f"no sample {name!r}", f"Samples: {', '.join(names())}.")
    return file


def names() -> list[str]:
    """Names of the sample files."""
    return sorted(f.name for f in FOLDER.iterdir() if f.is_file() and f.suffix != ".py")
