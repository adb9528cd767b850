"""Metric families: which name serves for a quantity, on which chip, and what never does."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from ncu_text import capture

from wsformat.converters import ncu
from wsformat.errors import BadRequest
from wsformat.metrics import Counters, Missing, Resolved, Stalls, chip_of, counters, families

PCT = ".avg.pct_of_peak_sustained_elapsed"
TENSOR = "sm__pipe_tensor_cycles_active" + PCT
ISSUED = "sm__inst_executed_pipe_tensor" + PCT


def of(values: dict[str, object], arch: str = "sm_90") -> Counters:
    return counters(ncu.from_values(values, arch=arch), 0)


def resolved(values: dict[str, object], quantity: str, arch: str = "sm_90") -> Resolved:
    found = of(values, arch).resolve(quantity)
    assert isinstance(found, Resolved), found
    return found


def test_every_name_exists_on_the_chips_that_it_claims(root: Path) -> None:
    folder = root.parent / "shared" / "evidence" / "ncu_metric_names"
    if not folder.is_dir():
        pytest.skip("no lists of metric names beside the checkout")
    names = {p.name.split(".")[0]: set(gzip.decompress(p.read_bytes()).decode().split()) for p in folder.iterdir()}
    chips = sorted(set(families()["chips"].values()))
    derived = ("launch__", "sm__maximum_warps")
    for entry in families()["quantities"].values():
        for candidate in entry["candidates"]:
            base = candidate["metric"].split(".")[0]
            for chip in candidate.get("chips", chips):
                assert base.startswith(derived) or base in names[chip], (candidate, chip)
        for trap in entry.get("never", ()):
            assert any(trap["metric"] in known for known in names.values())
    family = families()["stall_families"][0]["metric"]
    for reason, entry in families()["stall_reasons"].items():
        for chip in entry.get("chips", chips):
            spelled = [family.format(reason=s).split(".")[0] for s in entry["spelled"]]
            assert any(s in names[chip] for s in spelled), (reason, chip)
    for dead in families()["dead_families"]:
        for reason in families()["stall_reasons"]:
            assert not any(dead["metric"].format(reason=reason).split(".")[0] in known for known in names.values())


def test_issued_tensor_instructions_are_not_utilisation_on_hopper() -> None:
    found = of({ISSUED: 1.8}).resolve("tensor_busy")
    assert isinstance(found, Missing)
    assert found.refused == (f"{ISSUED} = 1.8: {families()['quantities']['tensor_busy']['never'][0]['why']}",)
    both = resolved({ISSUED: 1.8, TENSOR: 56.3}, "tensor_busy")
    assert (both.value, both.metric) == (56.3, TENSOR)
    assert both.refused[0].startswith(ISSUED)


def test_they_serve_on_ampere_and_say_so() -> None:
    found = resolved({ISSUED: 41.0}, "tensor_busy", "sm_80")
    assert (found.value, found.metric, found.refused) == (41.0, ISSUED, ())
    assert "issue rate" in found.why
    assert isinstance(of({ISSUED: 41.0}, "").resolve("tensor_busy"), Missing)


def test_the_busier_of_two_tensor_pipes_counts_and_nothing_is_added() -> None:
    tc = "sm__pipe_tc_cycles_active" + PCT
    assert resolved({tc: 70.0, TENSOR: 5.0}, "tensor_busy", "sm_100a").metric == tc
    assert resolved({tc: 1.0, TENSOR: 60.0}, "tensor_busy", "sm_100a").value == 60.0
    assert resolved({tc: 99.0, TENSOR: 60.0}, "tensor_busy", "sm_90").metric == TENSOR


def test_not_available_is_absent() -> None:
    first, second = "gpu__dram_throughput" + PCT, "dram__throughput" + PCT
    found = resolved({first: None, second: 40.0}, "dram_busy")
    assert (found.value, found.metric) == (40.0, second)
    assert f"{first} is n/a" in found.why
    missing = of({first: None}).resolve("dram_busy")
    assert isinstance(missing, Missing)
    assert f"{first} is n/a" in missing.why
    assert "was not collected" in missing.why


def test_renamed_counters_of_blackwell() -> None:
    assert resolved({"dram__bytes_op_read.sum": [5, "Mbyte"]}, "dram_read_bytes", "sm_120").value == 5e6
    found = of({"dram__bytes_read.sum": [5, "Mbyte"]}, "sm_120").resolve("dram_read_bytes")
    assert isinstance(found, Missing)
    assert "no counter of sm_120" in found.why


def test_scaled_candidate() -> None:
    assert resolved({"smsp__issue_active.avg.per_cycle_active": 0.38}, "issue_active").value == 38.0


def test_stalls_are_of_one_family_and_sum_to_100() -> None:
    ratio = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
    sample = "smsp__pcsamp_warps_issue_stalled_{}"
    values = {ratio.format("barrier"): 3.0, ratio.format("wait"): 1.0, ratio.format("selected"): 1.0,
              ratio.format("not_selected"): 5.0, sample.format("long_scoreboard"): 9000}  # fmt: skip
    stalls = of(values).stalls()
    assert isinstance(stalls, Stalls)
    assert stalls.family == "issue_ratio"
    assert dict(stalls.shares) == {"barrier": 75.0, "wait": 25.0}
    assert dict(stalls.unstalled) == {"selected": 1.0, "not_selected": 5.0}
    assert stalls.top == "barrier"
    assert "long_scoreboard" not in stalls.values


def test_two_spellings_of_a_reason_are_one_reason() -> None:
    sample = "smsp__pcsamp_warps_issue_stalled_{}"
    stalls = of({sample.format("no_instructions"): 30, sample.format("warpgroup_arrive"): 10}).stalls()
    assert isinstance(stalls, Stalls)
    assert dict(stalls.shares) == {"no_instruction": 75.0, "gmma": 25.0}


def test_no_family_at_all() -> None:
    missing = of({"gpu__time_duration.sum": 5, "smsp__warp_issue_stalled_drain.sum": None}).stalls()
    assert isinstance(missing, Missing)
    assert "no chip has this name" in missing.why


def test_unknown_quantity() -> None:
    with pytest.raises(BadRequest, match="no quantity"):
        of({TENSOR: 5}).resolve("speed")


@pytest.mark.parametrize(
    ("arch", "chip"),
    [("sm_90a", "gh100"), ("sm_90", "gh100"), ("sm_100a", "gb100"), ("sm_120", "gb202"), ("sm_61", ""), ("", "")],
)  # fmt: skip
def test_chips(arch: str, chip: str) -> None:
    assert chip_of(arch) == chip


# --- real reports ------------------------------------------------------------------------------------------------


def test_the_recipe_on_hopper() -> None:
    """The recipe's own metric list: its stall names are n/a, its tensor metric is an issue rate."""
    found = counters(ncu.read([capture("seed_metrics.mixed_stdout.csv")], {}), 1)
    tensor = found.resolve("tensor_busy")
    assert isinstance(tensor, Missing)
    assert "issued instructions" in tensor.refused[0]
    stalls = found.stalls()
    assert isinstance(stalls, Missing)
    assert "6 of smsp__warp_issue_stalled_*.sum" in stalls.why
    dram = found.resolve("dram_busy")
    assert isinstance(dram, Resolved)
    assert dram.metric == "dram__throughput" + PCT


def test_the_full_set_of_the_same_kernel() -> None:
    found = counters(ncu.read([capture("gemm_grid.raw.csv")], {}), 1)
    tensor = found.resolve("tensor_busy")
    assert isinstance(tensor, Resolved)
    assert tensor.value == pytest.approx(68.1, abs=0.01)
    stalls = found.stalls()
    assert isinstance(stalls, Stalls)
    assert stalls.family == "issue_ratio"
    assert stalls.top == "barrier"
    assert stalls.shares["barrier"] == pytest.approx(65, abs=0.7)
    assert sum(stalls.shares.values()) == pytest.approx(100)
    every = [found.resolve(q) for q in families()["quantities"]]
    lacking = [m.quantity for m in every if isinstance(m, Missing)]
    assert set(lacking) <= {
        "dram_bytes",
        "dram_bandwidth",
        "load_bytes_per_sector",
        "load_sectors_per_request",
        "threads_per_instruction",
    }


def test_labels_of_the_details_page_serve() -> None:
    found = counters(ncu.read([capture("gemm_grid.details.csv")], {}), 1)
    dram = found.resolve("dram_busy")
    assert isinstance(dram, Resolved)
    assert dram.value == 51.62
    assert "DRAM Throughput" in dram.why
    duration = found.resolve("duration")
    assert isinstance(duration, Resolved)
    assert duration.value == 983_680
