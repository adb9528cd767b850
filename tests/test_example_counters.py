"""Nsight Compute pages of the example kernels (H200): read, digested, and equal to what the budgets say."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from reconcile_case import with_budget

from wsformat import budget
from wsformat.bundle import Bundle
from wsformat.converters import ncu
from wsformat.kernels.decode import to_bundle
from wsformat.kernels.examples import gemm_hopper
from wsformat.kernels.examples.record import EXAMPLES
from wsformat.kernels.recording import CLEAN, Recording
from wsformat.viewers.digest import digest
from wsformat.viewers.reconcile import reconcile
from wsformat.viewers.reconcile_verdict import INCOMPLETE

FOLDER = Path(__file__).parent / "data" / "ncu" / "examples"
TENSOR = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"
XU = "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active"
BUSY = "TPC.TriageCompute.sm__pipe_tensor_op_hmma_cycles_active_realtime.avg"
"""Cycles that the tensor pipes were busy, summed over the four of an SM, the mean over all 132 SMs."""

ITERATIONS = {
    "gemm_hopper": 132 * 64, "gemm_hopper_fp8": 132 * 64, "gemm_hopper_in_flight": 132 * 64,
    "gemm_hopper_two_stages": 132 * 64, "gemm_persistent": 896 * 16, "gemm_cluster": 264 * 16,
    "attention_hopper": 128 * 64,
}  # fmt: skip
"""CTAs or tiles of the profiled launch, times iterations of each."""

DIGESTS = {
    "gemm_hopper": ("Tensor-pipe-bound", "tensor_bound"),
    "gemm_hopper_fp8": ("Tensor-pipe-bound", "tensor_bound"),
    "gemm_hopper_in_flight": ("Tensor-pipe-bound", "tensor_bound"),
    "gemm_hopper_two_stages": ("Latency-bound", "tensor_under_used"),
    "gemm_persistent": ("Mixed", "l2_bound"),
    "gemm_cluster": ("Latency-bound", "tensor_under_used"),
    "attention_hopper": ("Tensor-pipe-bound", "tensor_bound"),
}


def page(name: str, folder: Path) -> Bundle:
    path = folder / f"{name}.raw.csv"
    path.write_bytes(gzip.decompress((FOLDER / f"{name}.raw.csv.gz").read_bytes()))
    return ncu.read([path], {})


def values(bundle: Bundle) -> dict[str, Any]:
    return {row["name"]: row["value"] for row in bundle.table("metrics").to_pylist()}


@pytest.mark.parametrize("name", ITERATIONS)
def test_the_tensor_pipes_are_busy_for_the_budget_to_the_cycle(name: str, tmp_path: Path) -> None:
    found = values(page(name, tmp_path))
    ticks = EXAMPLES[name].VARIANTS[name].tensor_ticks
    assert found[BUSY] == pytest.approx(4 * ticks * ITERATIONS[name] / 132, rel=1e-6)


@pytest.mark.parametrize("name", DIGESTS)
def test_digest(name: str, tmp_path: Path) -> None:
    bundle = page(name, tmp_path)
    made = digest(bundle)
    assert (made.bottleneck_class, made.hypotheses[0].situation) == DIGESTS[name]
    assert made.next_edit is not None
    (launch,) = bundle.table("launches").to_pylist()
    assert launch["kernel"] == EXAMPLES[name].VARIANTS[name].kernel
    assert launch["cluster_x"] == (2 if name == "gemm_cluster" else 0)


def test_attention_needs_of_each_pipe_what_its_budget_says(tmp_path: Path) -> None:
    found = values(page("attention_hopper", tmp_path))
    held = budget.load("hopper_attention")
    (published,) = held.raw["published"]
    ratio = published["cycles"]["mufu"] / published["cycles"]["tensor"]
    # The counter has the reciprocals of the row sums and a few conversions beside the exponentials.
    assert found[XU] / found[TENSOR] == pytest.approx(ratio, rel=0.01)
    recording = Recording.load(Path(gemm_hopper.__file__).parent / "attention_hopper.npz")
    in_loop = 100 * published["cycles"]["tensor"] / recording.slope(CLEAN)
    # Before and after the loop the tensor cores idle, so over the whole kernel the share is a little less.
    assert in_loop - 4 < found[TENSOR] < in_loop
    assert published["measured_cycles"] == pytest.approx(recording.slope(CLEAN), rel=0.01)


def test_what_keeps_attention_from_its_budget() -> None:
    recording = Recording.load(Path(gemm_hopper.__file__).parent / "attention_hopper.npz")
    report = reconcile(with_budget(to_bundle(recording), budget.load("hopper_attention")))
    assert report.verdict.verdict == INCOMPLETE
    assert report.verdict.cause
    assert (report.verdict.cause.name, report.verdict.cause.subject) == ("slower_than_budget", "consumer0 softmax")
    assert 900 < report.verdict.cause.cycles < 1500
    assert report.measured.clean
    assert report.measured.clean.cycles == pytest.approx(2945, rel=0.01)


def test_pages_hold_no_path_and_no_name_of_a_person() -> None:
    for path in FOLDER.iterdir():
        text = gzip.decompress(path.read_bytes()).decode()
        assert "/home/" not in text
        assert "/root/" not in text
