"""Comparing versions, deciding whether to profile, the command lines, and keeping a digest."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from ncu_text import capture

from wsformat.bundle import Bundle
from wsformat.converters import ncu
from wsformat.errors import BadRequest
from wsformat.metrics import chip_of, families
from wsformat.viewers.digest import digest
from wsformat.viewers.digest_collect import collect, save
from wsformat.viewers.digest_compare import when_to_profile

E = ".avg.pct_of_peak_sustained_elapsed"
TENSOR, L2, TIME = f"sm__pipe_tensor_cycles_active{E}", f"lts__throughput{E}", "gpu__time_duration.sum"


def history(*times: dict[str, float], unit: str = "ns", digests: bool = True) -> Bundle:
    """Benchmark results of iterations, given newest first on purpose."""
    captures, metrics, findings = [], [], []
    for number, cases in reversed(list(enumerate(times))):
        capture = f"{number:026x}"
        captures.append(
            {"capture_id": capture, "kind": "benchmark", "version": f"v{number}", "created_unix_ns": 1000 + number}
        )
        metrics += [
            {"capture_id": capture, "tool": "benchmark", "scope": "case", "scope_id": case, "name": "result",
             "ordinal": 0, "value": value, "base_value": value, "base_unit": unit, "unit": unit}
            for case, value in cases.items()
        ]  # fmt: skip
    if digests:
        findings.append({"capture_id": f"{0:026x}", "kind": "conclusion", "subject": "digest: k", "verdict": "Mixed"})
    return Bundle.from_tables({"captures": captures, "metrics": metrics, "findings": findings})


def test_rule_1_no_baseline_digest() -> None:
    decision = when_to_profile(history({"a": 100.0}, digests=False))
    assert decision.profile
    assert decision.reasons == ("no baseline digest yet",)
    assert not when_to_profile(history({"a": 100.0})).profile
    assert not when_to_profile(history({"a": 100.0}, digests=False), has_baseline_digest=True).profile


def test_rule_2_every_case_within_2_percent() -> None:
    decision = when_to_profile(history({"a": 100.0, "b": 50.0}, {"a": 98.5, "b": 50.4}))
    assert decision.profile
    assert "every case is within 2 %" in decision.reasons[0]
    assert decision.cases["a"] == pytest.approx(100 / 98.5)
    assert not when_to_profile(history({"a": 100.0, "b": 50.0}, {"a": 95.0, "b": 50.0})).profile


def test_rule_3_a_case_regresses() -> None:
    decision = when_to_profile(history({"a": 100.0, "b": 50.0}, {"a": 90.0, "b": 52.0}))
    assert decision.reasons == ("a case regresses: b -3.8 %",)


def test_rule_4_two_slow_iterations() -> None:
    slow = history({"a": 100.0, "b": 100.0}, {"a": 96.5, "b": 103.0}, {"a": 93.5, "b": 105.0})
    decision = when_to_profile(slow)
    assert any(r.startswith("2 iterations under 1 %") for r in decision.reasons)
    assert decision.geomean == pytest.approx((96.5 / 93.5 * 103 / 105) ** 0.5)
    fast = history({"a": 100.0}, {"a": 99.5}, {"a": 90.0})
    assert not any("iterations" in r for r in when_to_profile(fast).reasons)


def test_rule_5_a_surprising_win() -> None:
    won = history({"a": 100.0}, {"a": 80.0})
    assert when_to_profile(won).reasons == ("surprising win: 1.250 times the speed, 1.000 expected",)
    assert not when_to_profile(won, expected=1.2).profile
    assert when_to_profile(won, expected=1.2, surprise=0.02).profile


def test_rule_6_a_reviewer_asks() -> None:
    assert when_to_profile(history({"a": 100.0}, {"a": 95.0}), reviewer_asks=True).reasons == ("a reviewer asks",)


def test_when_it_is_not_called_for() -> None:
    wrong = when_to_profile(history({"a": 100.0}, {"a": 120.0}), correct=False)
    assert not wrong.profile
    assert "not correct" in wrong.against[0]
    plateau = history({"a": 100.0}, {"a": 100.0})
    assert when_to_profile(plateau).profile
    assert not when_to_profile(plateau, minor_edit=True).profile
    assert when_to_profile(history({"a": 100.0}, {"a": 120.0}), minor_edit=True).profile
    assert when_to_profile(history({"a": 100.0}, {"a": 95.0})).against == ("no invocation rule holds",)


def test_rates_are_better_when_more() -> None:
    decision = when_to_profile(history({"a": 100.0}, {"a": 80.0}, unit="flop/s"))
    assert decision.reasons == ("a case regresses: a -20.0 %",)


def bundle(**values: float) -> Bundle:
    return ncu.from_values(
        {"gpu__time_duration.sum": values.pop("time"), TENSOR: values["tensor"], L2: values["l2"]}, arch="sm_90"
    )


@pytest.mark.parametrize(
    ("time", "expected", "verdict"),
    [(1000, None, "plateau"), (1019, None, "plateau"), (1100, None, "regression"), (950, None, "win"),
     (800, None, "surprising win"), (800, 1.2, "win")],
)  # fmt: skip
def test_comparison(time: float, expected: float | None, verdict: str) -> None:
    old = bundle(time=1000, tensor=60.0, l2=70.0)
    made = digest(bundle(time=time, tensor=64.0, l2=50.0), baseline=old, expected=expected)
    assert made.comparison is not None
    assert made.comparison.verdict == verdict
    assert made.comparison.speedup == pytest.approx(1000 / time)
    assert made.comparison.why[:2] == (
        f"{L2} from 70.0 to 50.0 (-20.0 points)",
        f"{TENSOR} from 60.0 to 64.0 (+4.0 points)",
    )
    assert "**Against the baseline**" in made.markdown()


def test_comparison_of_two_real_launches() -> None:
    """A launch against the median one of the same kernel: nothing moved."""
    read = ncu.read([capture("gemm_grid.raw.base.csv")], {})
    made = digest(read, launch=1, baseline=ncu.read([capture("gemm_grid.raw.base.csv")], {}))
    assert made.comparison is not None
    assert made.comparison.verdict == "plateau"
    assert made.comparison.why[0].startswith("no utilisation or stall share moved")


@pytest.mark.parametrize("arch", sorted(families()["chips"]))
def test_command_lines_name_metrics_of_the_chip(arch: str) -> None:
    quick, deep = collect(arch, "gemm.*<0>", "./app -n 8")
    chip = chip_of(arch)
    for text in (quick, deep):
        names = re.search(r"--metrics (\S+)", text)
        assert names is not None
        for name in names[1].split(","):
            entry = [c for q in families()["quantities"].values() for c in q["candidates"] if c["metric"] == name]
            stall = name.startswith("smsp__average_warps_issue_stalled_")
            assert stall or any(chip in c.get("chips", [chip]) for c in entry), name
    assert "--kernel-name 'regex:gemm.*<0>'" in deep
    assert shlex.split(quick)[-3:] == ["./app", "-n", "8"]
    has_gmma = "stalled_gmma_" in deep
    assert has_gmma == (chip == "gh100")
    assert ("dram__throughput" in quick or "gpu__dram_throughput" in quick) == (chip != "gb10b")


def test_command_lines_need_a_known_chip() -> None:
    with pytest.raises(BadRequest, match="sm_61"):
        collect("sm_61")


def test_command_lines_exist_in_the_metric_lists(root: Path) -> None:
    import gzip

    folder = root.parent / "shared" / "evidence" / "ncu_metric_names"
    if not folder.is_dir():
        pytest.skip("no lists of metric names beside the checkout")
    for arch in ("sm_80", "sm_90", "sm_100", "sm_120"):
        known = set(gzip.decompress((folder / f"{chip_of(arch)}.txt.gz").read_bytes()).decode().split())
        for text in collect(arch):
            names = re.search(r"--metrics (\S+)", text)
            assert names is not None
            for name in names[1].split(","):
                base = name.split(".")[0]
                assert base in known or base.startswith(("launch__", "sm__maximum_warps")), (arch, name)


def test_a_digest_is_kept(tmp_path: Path) -> None:
    made = digest(bundle(time=1000, tensor=60.0, l2=70.0), version="v1.2")
    path = save(made, tmp_path / "runs", "gemm")
    assert path == tmp_path / "runs" / "gemm" / "v1.2" / "digest.md"
    assert path.read_text() == made.markdown()
    assert json.loads((path.parent / "digest.json").read_text())["bottleneck_class"] == made.bottleneck_class
    assert sorted(p.name for p in path.parent.iterdir()) == ["digest.json", "digest.md"]
    for task in ("../evil", "", "a/b"):
        with pytest.raises(BadRequest):
            save(made, tmp_path, task)
