"""Reconciliation: planted causes are found, real captures judged by their clean slope, nothing forced to agree."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import as_file
from importlib.resources import files as resource
from pathlib import Path
from typing import Any

import pytest
import reconcile_case
from reconcile_case import BASE, PLANTED, budget, measured, with_budget
from typer.testing import CliRunner

from simulator import Ticks
from wsformat import budget as budgets
from wsformat import lessons
from wsformat.bundle import Bundle
from wsformat.cli.main import app
from wsformat.converters.registry import import_files
from wsformat.errors import BadRequest
from wsformat.kernels.decode import to_bundle
from wsformat.kernels.recording import Recording
from wsformat.merge import merged
from wsformat.prediction import predict
from wsformat.prediction_store import joined
from wsformat.samples import FOLDER
from wsformat.validate import validate
from wsformat.viewers.reconcile import Report, reconcile, stored
from wsformat.viewers.reconcile_across import across
from wsformat.viewers.reconcile_verdict import AGREE, INCOMPLETE, LEAVES, UNJUDGED


def run(*words: object) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


def adds_up(report: Report) -> bool:
    gap = report.residual
    return gap is None or sum(t.cycles for t in gap.terms) == pytest.approx(gap.gap, abs=1e-6)


def outcome(report: Report, name: str) -> str:
    return {check.name: check.outcome for check in (*report.sound, *report.ranked)}[name]


SIZES = {
    "probe_effect": ("probe", 240), "slow_producer": ("untracked", 3000), "extra_latency": ("latency", 700),
    "undeclared_cause": ("wait", 450), "unstamped_work": ("untracked", 600), "slower_than_budget": ("work", 500),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANTED)
def test_planted_cause_is_found(name: str, tmp_path: Path) -> None:
    case = PLANTED[name]
    report = reconcile(with_budget(measured(case.kernel, tmp_path, resources=case.resources), case.budget))
    verdict = report.verdict
    assert case.verdict in verdict.verdict
    assert (verdict.cause.name if verdict.cause else "") == case.cause
    if verdict.cause and case.subject:
        assert verdict.cause.subject == case.subject
    if verdict.cause and case.cycles:
        assert case.cycles[0] <= verdict.cause.cycles <= case.cycles[1]
    assert bool(verdict.needed) == (verdict.verdict == INCOMPLETE and case.cause != "faster_than_budget")
    assert adds_up(report)
    assert len(report.lessons("2026-11-30")) == (verdict.verdict == INCOMPLETE)
    if name in SIZES and report.residual:
        # The term against what the simulator was told, not against the report's own sum.
        kind, size = SIZES[name]
        assert max(t.cycles for t in report.residual.of(kind)) == pytest.approx(size, rel=0.03)


@pytest.mark.parametrize(("name", "change"), [
    ("slow_producer", {"spin": Ticks(2800, 400)}), ("too_few_stages", {"work": (Ticks(950, 100),)}),
    ("serialised_roles", {"work": (Ticks(960, 80),)}), ("extra_latency", {"commit": Ticks(680, 60)}),
    ("missing_resource", {"loader": Ticks(1900, 300)}), ("probe_effect", {"work": (Ticks(990, 20),)}),
])  # fmt: skip
def test_causes_are_found_when_times_vary(name: str, change: dict[str, Any], tmp_path: Path) -> None:
    case = PLANTED[name]
    report = reconcile(with_budget(measured(replace(case.kernel, **change), tmp_path), case.budget))
    assert case.verdict in report.verdict.verdict
    assert report.verdict.cause
    assert report.verdict.cause.name == case.cause
    assert adds_up(report)


def test_without_clean_launches_nothing_is_blamed_with_confidence(tmp_path: Path) -> None:
    case = PLANTED["probe_effect"]
    report = reconcile(with_budget(measured(case.kernel, tmp_path, clean=False), case.budget))
    assert report.verdict.verdict == INCOMPLETE
    assert report.verdict.confidence <= 0.6
    assert "without stamps before blaming" in report.verdict.text
    assert outcome(report, "perturbation") == "unknown"
    assert not report.residual or not report.residual.of("probe")
    assert adds_up(report)


def test_a_prediction_for_another_gpu_is_noticed() -> None:
    bundle = sample("balanced")
    other = reconcile(with_budget(bundle, budgets.load("hopper_gemm").with_settings({"gpu": "B200_SXM"})))
    assert outcome(other, "device") == "fail"
    assert other.verdict.confidence <= 0.4
    dtype = reconcile(with_budget(bundle, budgets.load("hopper_gemm").with_settings({"dtype": "fp8"})))
    assert outcome(dtype, "device") == "warn"
    assert outcome(reconcile(with_budget(bundle, budgets.load("hopper_gemm"))), "device") == "ok"


def test_fewer_cycles_than_the_bottleneck_predicts_is_the_models_fault(tmp_path: Path) -> None:
    case = PLANTED["faster_than_budget"]
    report = reconcile(with_budget(measured(case.kernel, tmp_path), case.budget))
    assert "work or the rate" in report.verdict.text


SAMPLES = {
    "balanced": ("balanced_r0", "one", "global"),
    "lowprobe": ("lowprobe_r0", "one", "branchfree"),
    "slowproducer": ("slowproducer_r0", "slow", "global"),
}


def sample(name: str) -> Bundle:
    stem, launches, stamped = SAMPLES[name]
    trips = {2048: 32, 4096: 64}
    return import_files(
        [FOLDER / f"{stem}.i32"],
        {
            "spec": FOLDER / "gemm_roles.json", "meta": [FOLDER / f"{stem}.meta"], "trip_count": 64, "label": stem,
            "allow_unwritten": True,
            "clean": [(FOLDER / f"{launches}_{k}_clean.metas", n) for k, n in trips.items()],
            "lifetimes": [(FOLDER / f"{launches}_{k}_{stamped}.metas", n) for k, n in trips.items()],
        },
    )  # fmt: skip


@pytest.fixture(scope="module")
def real() -> dict[str, Report]:
    return {name: reconcile(with_budget(sample(name), budgets.load("hopper_gemm"))) for name in SAMPLES}


def test_a_perfect_loop_is_not_blamed_for_what_its_stamps_cost(real: dict[str, Report]) -> None:
    report = real["balanced"]
    assert report.plan.cycles == 512
    assert report.verdict.verdict == AGREE
    assert report.measured.clean
    assert report.measured.clean.cycles == pytest.approx(512, rel=0.002)
    assert report.measured.stamped
    assert report.measured.stamped.cycles == pytest.approx(777, rel=0.002)
    assert "100.0 % of the tensor budget of 512" in report.verdict.text
    assert "looks 66 %" in report.verdict.text
    assert "not the kernel" in report.verdict.text
    assert report.verdict.cause
    assert report.verdict.cause.name == "probe_effect"
    assert report.verdict.confidence >= 0.8
    assert not report.lessons("2026-11-30")
    assert outcome(report, "bottleneck has the least idle") == "ok"
    assert outcome(report, "methods agree") == "ok"
    tensor = next(m for m in report.magnitudes if m.resource == "tensor" and not m.role)
    assert tensor.unexplained == pytest.approx(0, abs=0.002)
    assert adds_up(report)


def test_stamps_that_disturb_less_give_the_same_verdict(real: dict[str, Report]) -> None:
    report = real["lowprobe"]
    assert report.verdict.verdict == AGREE
    assert "looks 93 %" in report.verdict.text
    assert report.measured.perturbation == pytest.approx(0.0726, abs=0.001)
    assert adds_up(report)


def test_lifetimes_alone_are_enough_for_the_magnitude() -> None:
    """Clean launches and nothing else, which is what to measure first: the speed is judged, no place is named."""
    both = sample("slowproducer")
    rows = both.table("captures").to_pylist()
    clean = next(r["capture_id"] for r in rows if r["kind"] == "clean")
    only = Bundle.from_tables(
        {
            name: [r for r in both.table(name).to_pylist() if r["capture_id"] == clean]
            for name in ("captures", "launches", "lanes", "clocks", "clock_anchors")
        }
    )
    plan = budgets.load("hopper_gemm")
    report = reconcile(joined(only, [predict(plan)], clean))
    assert report.verdict.verdict == INCOMPLETE
    assert report.measured.clean
    assert report.measured.clean.cycles == pytest.approx(1984, rel=0.002)
    assert "25.8 % of the tensor budget" in report.verdict.text
    assert "does not say where" in report.verdict.text
    assert report.residual is None
    assert not report.causes


def test_launches_with_other_stamps_are_noticed() -> None:
    """The timeline of one recorder beside lifetimes of another: the clean slope still holds, and the report says so."""
    trips = {2048: 32, 4096: 64}
    bundle = import_files(
        [FOLDER / "balanced_r0.i32"],
        {
            "spec": FOLDER / "gemm_roles.json", "meta": [FOLDER / "balanced_r0.meta"], "trip_count": 64,
            "clean": [(FOLDER / f"one_{k}_clean.metas", n) for k, n in trips.items()],
            "lifetimes": [(FOLDER / f"one_{k}_branchfree.metas", n) for k, n in trips.items()],
        },
    )  # fmt: skip
    report = reconcile(with_budget(bundle, budgets.load("hopper_gemm")))
    assert outcome(report, "methods agree") == "warn"
    assert report.verdict.verdict == AGREE
    assert "looks 66 %" in report.verdict.text
    assert report.residual
    assert report.residual.clean_gap == pytest.approx(0, abs=1)
    assert adds_up(report)


def test_a_slow_producer_is_named(real: dict[str, Report]) -> None:
    report = real["slowproducer"]
    assert report.verdict.verdict == INCOMPLETE
    assert report.verdict.cause
    assert (report.verdict.cause.name, report.verdict.cause.subject) == ("slow_producer", "producer")
    assert 1500 <= report.verdict.cause.cycles <= 1750  # it spins 1,500 cycles without a stamp, and waits around them
    assert outcome(report, "never blocked") == "fail"
    assert outcome(report, "bottleneck has the least idle") == "fail"
    assert report.verdict.needed
    assert adds_up(report)


RECORDED = {
    "gemm_hopper": (AGREE, "", 512), "gemm_hopper_two_stages": (LEAVES, "too_few_stages", 705),
    "gemm_hopper_slow_producer": (INCOMPLETE, "slow_producer", 1745),
}  # fmt: skip


@pytest.mark.parametrize("name", RECORDED)
def test_recordings_of_the_example_kernel(name: str) -> None:
    """Three builds of one kernel, recorded on an H200 with the stamp header: the cause that was built in is named."""
    file = resource("wsformat.kernels.examples") / f"{name}.npz"
    verdict, cause, cycles = RECORDED[name]
    with as_file(file) as path:
        bundle = to_bundle(Recording.load(path))
    report = reconcile(with_budget(bundle, budgets.load("hopper_gemm")))
    assert report.verdict.verdict == verdict
    assert (report.verdict.cause.name if report.verdict.cause else "") == cause
    assert report.measured.clean
    # Recorded anew now and then: two recordings of the short ring differed by 0.5 %.
    assert report.measured.clean.cycles == pytest.approx(cycles, rel=0.02)
    assert outcome(report, "methods agree") == "ok"
    assert adds_up(report)


LEDGER = (("epi_wait", 1344), ("tma0", 662), ("k_loop", 4059)), (("ml_wait", 1538), ("phase1", 4345), ("phase2b", 273))


def ledger(tiles: int = 24) -> Bundle:
    """A published role ledger, one tile after another: MMA warp and epilogue warps of an FP8 GEMM on B200."""
    here = {"capture_id": "1edce2" + "0" * 20}
    tables: dict[str, list[dict[str, Any]]] = {
        "captures": [{**here, "kind": "traced", "kernel": "fused_gemm", "label": "ledger", "device": "NVIDIA B200"}
                     | {"completeness": "complete", "arch": "sm_100a"}],
        "launches": [{**here, "launch": 0, "kernel": "fused_gemm", "kind": "traced", "tool": "stamps", "grid_x": 1,
                      "grid_y": 1, "grid_z": 1, "trip_count": tiles}],
        "clocks": [{**here, "clock": 0, "scope": "sm", "unit": "cycle", "step_ticks": 1, "width_bits": 64}],
        "lanes": [], "roles": [], "span_types": [], "spans": [], "event_types": [],
    }  # fmt: skip
    resources = {"k_loop": "tensor", "phase1": "tmem"}
    for lane, (role, parts) in enumerate(zip(("mma", "epilogue"), LEDGER, strict=True)):
        tables["lanes"].append({**here, "lane": lane, "launch": 0, "cta": 0, "warp": lane, "role": role, "clock": 0,
                                "kind": "warp", "completeness": "complete"})  # fmt: skip
        tables["roles"].append({**here, "role": role, "kind": role, "iteration_event": f"{parts[0][0]}.begin"})
        t = 1_000_000
        for tile in range(tiles):
            for span, ticks in parts:
                tables["spans"].append(
                    {**here, "span_id": len(tables["spans"]), "lane": lane, "end_lane": lane, "launch": 0, "cta": 0,
                     "warp": lane, "role": role, "span": span, "iteration": tile, "tile": tile, "clock": 0, "t0": t,
                     "t1": t + ticks, "complete": True}
                )  # fmt: skip
                t += ticks
        tables["span_types"] += [
            {**here, "role": role, "span": span, "state": "stall" if span.endswith("wait") else "active",
             "loop": "tile",
             "resource": resources.get(span, ""), "wait_on": "barrier" if span.endswith("wait") else ""}
            for span, _ in parts
        ]  # fmt: skip
    return Bundle.from_tables(tables)


def test_published_ledger_keeps_its_unexplained_idle() -> None:
    report = reconcile(with_budget(ledger(), budgets.load("b200_fused_gemm_ledger")))
    tensor = next(m for m in report.magnitudes if m.resource == "tensor" and not m.role)
    assert tensor.predicted == 3072
    assert tensor.predicted_idle == 0
    assert tensor.measured == pytest.approx(6066, abs=2)
    assert tensor.unexplained == pytest.approx(0.494, abs=0.001)
    assert report.verdict.verdict == INCOMPLETE
    assert report.verdict.cause
    # The author blames the loads from tensor memory in that phase: their latency is in no throughput.
    assert report.verdict.cause.name == "slower_than_budget"
    assert report.verdict.cause.subject == "epilogue phase1"
    rows = [r for r in report.findings() if r["subject"] == "idle tensor"]
    assert rows[0]["value"] == pytest.approx(0.494, abs=0.001)
    assert rows[0]["verdict"] == "unexplained"
    assert report.verdict.confidence <= 0.6
    assert adds_up(report)


TENSOR = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"
XU = "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_elapsed"


def counted(values: dict[str, float], capture: str = "c0", label: str = "counted", **facts: str) -> Bundle:
    """Counters of one launch, and nothing else."""
    here = {"capture_id": capture + "0" * (26 - len(capture))}
    return Bundle.from_tables(
        {
            "captures": [
                {**here, "kind": "profiled", "label": label, "device": "NVIDIA H100", "arch": "sm_90"} | facts
            ],
            "launches": [{**here, "launch": 0, "kernel": "attention", "kind": "profiled", "tool": "ncu"}],
            "metrics": [
                {**here, "launch": 0, "tool": "ncu", "scope": "kernel", "name": name, "metric": name, "value": value}
                | {"base_value": value, "base_unit": "%", "unit": "%"}
                for name, value in values.items()
            ],
        }
    )


def test_published_counters_agree_in_their_ratio_and_not_in_idle() -> None:
    report = reconcile(
        with_budget(counted({TENSOR: 74.78, XU: 38.58}, device="NVIDIA H100 80GB HBM3"), budgets.load("fa3_forward"))
    )
    ratio = next(check for check in report.ranked if check.name == "ratio mufu/tensor")
    assert ratio.value == pytest.approx(0.516, abs=0.001)
    assert ratio.expected == 0.5
    assert ratio.outcome == "ok"
    tensor = next(m for m in report.magnitudes if m.resource == "tensor" and not m.role)
    assert tensor.unexplained == pytest.approx(0.2522)
    assert report.verdict.verdict == INCOMPLETE
    assert report.verdict.cause
    assert report.verdict.cause.name == "no_timeline"
    assert report.verdict.confidence <= 0.5
    off = reconcile(with_budget(counted({TENSOR: 74.78, XU: 60.0}), budgets.load("fa3_forward")))
    assert next(check for check in off.ranked if check.name.startswith("ratio")).outcome == "warn"


@pytest.mark.parametrize(("ctas", "said"), [(1, False), (4096, True)])
def test_counters_beside_a_timeline(ctas: int, said: bool) -> None:
    """Counters of the same experiment are shown; of another grid they are another run, and the report says so."""
    stamped = sample("balanced")
    own = next(r for r in stamped.table("captures").to_pylist() if r["kind"] == "stamped")
    other = counted({TENSOR: 68.2}, experiment=own["experiment"])
    launches = [row | {"grid_x": ctas, "grid_y": 1, "grid_z": 1} for row in other.table("launches").to_pylist()]
    both = merged([stamped, other.with_tables({"launches": launches})])
    report = reconcile(with_budget(both, budgets.load("hopper_gemm")))
    tensor = next(m for m in report.magnitudes if m.resource == "tensor" and not m.role)
    assert tensor.counted == pytest.approx(0.682)
    assert tensor.measured_idle == pytest.approx(0, abs=0.002)  # by the clean loop, which is the better measurement
    assert ("counters" in {check.name for check in report.sound}) == said
    assert report.verdict.verdict == AGREE


FA4 = [({"dtype": "bf16"}, 0, 40), ({"dtype": "fp8"}, 50, 66), ({"dtype": "nvfp4", "dtype_pv": "fp8"}, 62.5, 61),
       ({"dtype": "nvfp4", "dtype_pv": "bf16"}, 37.5, 55)]  # fmt: skip


def test_published_precisions_side_by_side() -> None:
    """Predicted and measured MMA idle 0/40, 50/66, 62/61, 38/55 %: five of six moves go the predicted way."""
    reports = []
    for n, (settings, predicted, idle) in enumerate(FA4):
        values = {"sm__pipe_tc_cycles_active.avg.pct_of_peak_sustained_elapsed": 100.0 - idle}
        bundle = counted(values, f"f{n}", f"case{n}", device="NVIDIA B200", arch="sm_100a")
        reports.append(reconcile(with_budget(bundle, budgets.load("fa4_forward").with_settings(settings))))
        tensor = next(m for m in reports[-1].magnitudes if m.resource == "tensor" and not m.role)
        assert 100 * tensor.predicted_idle == predicted
        assert 100 * (tensor.measured_idle or 0) == pytest.approx(idle)
    found = across(reports)
    assert found.agree == (5, 6)
    wrong = [move for move in found.moves if move.agrees is False]
    assert [(move.before[:5], move.after[:5]) for move in wrong] == [("case1", "case2")]
    assert "5 of 6" in found.markdown()


def test_another_configuration_with_the_same_budget_proves_b(tmp_path: Path) -> None:
    slow, fast = (
        reconcile(with_budget(measured(kernel, tmp_path / label, label=label), budget(label)))
        for kernel, label in ((replace(BASE, stages=1), "one_stage"), (BASE, "four_stages"))
    )
    assert slow.verdict.verdict == INCOMPLETE
    found = across([slow, fast])
    assert [r.verdict.verdict for r in found.reports] == [LEAVES, AGREE]
    assert "with the same budget four_stages takes 1,012." in found.reports[0].verdict.text
    assert found.reports[0].verdict.cause
    assert found.reports[0].verdict.cause.would_be == "under-overlap"


def test_configurations_that_differ_in_stamps_are_refused(tmp_path: Path) -> None:
    one = reconcile(with_budget(measured(BASE, tmp_path / "a", label="a"), budget("a")))
    two = reconcile(with_budget(measured(replace(BASE, loader=Ticks(30)), tmp_path / "b", label="b"), budget("b")))
    with pytest.raises(BadRequest, match="stamp sets differ"):
        across([one, two])
    assert across([one, two], force=True).notes
    bare = reconcile(with_budget(measured(BASE, tmp_path / "c", clean=False, label="c"), budget("c")))
    with pytest.raises(BadRequest, match="methods differ"):
        across([one, bare])


def test_precision_moves_idle_in_simulated_kernels(tmp_path: Path) -> None:
    reports = []
    for label, qk, dtype in (("wide", 600, "bf16"), ("narrow", 300, "fp8")):
        kernel = replace(reconcile_case.FLASH, qk=Ticks(qk), pv=Ticks(1000))
        cycles = {"tensor": {"compute0": qk / 2, "compute1": qk / 2}, "mufu": {"compute0": 500, "compute1": 500}}
        plan = budget(label, cycles, dtype=dtype, **reconcile_case.STEPS)
        reports.append(
            reconcile(with_budget(measured(kernel, tmp_path / label, resources={"pv": "mufu"}, label=label), plan))
        )
    found = across(reports)
    assert found.agree == (1, 1)
    (tensor,) = (move for move in found.moves if move.resource == "tensor")
    assert tensor.predicted == pytest.approx(0.3)
    assert tensor.measured > 0.1


def test_conclusions_are_stored_with_their_evidence(real: dict[str, Report], tmp_path: Path) -> None:
    bundle = with_budget(sample("slowproducer"), budgets.load("hopper_gemm"))
    report = reconcile(bundle)
    kept = stored(bundle, [report])
    assert stored(kept, [report]).rows("findings") == kept.rows("findings")
    kept.write(tmp_path / "x.wsformat")
    checked = validate(tmp_path / "x.wsformat")
    assert checked.ok, checked.text()
    rows = [r for r in kept.table("findings").to_pylist() if r["capture_id"] == report.measured.capture["capture_id"]]
    evidence = [json.loads(r["evidence"]) for r in rows if r["kind"] != "message"]
    assert all(e["tool"] == "reconcile" for e in evidence)
    verdict = next(r for r in rows if r["verdict"] == INCOMPLETE)
    assert verdict["subject"] == "slow_producer"
    assert verdict["expected"] == 512
    assert json.loads(verdict["evidence"])["view"] == "slope"
    assert {r["kind"] for r in rows} >= {"check", "conclusion", "lesson", "hypothesis"}
    gap = sum(r["value"] for r in rows if r["subject"].startswith("gap "))
    assert report.residual
    assert gap == pytest.approx(report.residual.gap)


def test_every_number_of_the_verdict_can_be_found_again(real: dict[str, Report]) -> None:
    """The evidence names a view and a row: asked again, it gives the value."""
    bundle = with_budget(sample("balanced"), budgets.load("hopper_gemm"))
    report = real["balanced"]
    for speed in (report.measured.clean, report.measured.stamped, *report.measured.loop.values()):
        assert speed
        row = dict(speed.evidence["row"])
        where = " AND ".join(f'"{name}" = ?' for name in row)
        column = {"slope": "slope_ticks", "iteration_summary": "mean_ticks"}[speed.evidence["view"]]
        found = bundle.sql(f"SELECT {column} AS x FROM {speed.evidence['view']} WHERE {where}", list(row.values()))
        assert found["x"].to_pylist() == [speed.evidence["value"]]


def test_command(tmp_path: Path) -> None:
    path = tmp_path / "slow.wsformat"
    sample("slowproducer").write(path)
    missing = run("reconcile", path)
    assert missing.exit_code == 2
    assert "no prediction" in missing.stderr
    notes, report = tmp_path / "lessons.jsonl", tmp_path / "report.md"
    result = run("reconcile", path, "--budget", "hopper_gemm", "--store", "-o", report, "--lessons", notes)
    assert result.exit_code == 0, result.output
    assert report.read_text(encoding="utf-8") in result.stdout
    assert "1 lesson added" in result.stdout
    assert lessons.read(notes)[0].cause == "slow_producer"
    assert validate(path).ok
    # The prediction is stored now; the same reconciliation adds no second lesson.
    again = run("reconcile", path, "--lessons", notes, "--json")
    assert json.loads(again.stdout)["verdict"] == INCOMPLETE
    assert len(lessons.read(notes)) == 1
    reminded = run("predict", "hopper_gemm", "--lessons", notes)
    assert "what producer does between its stamps" in reminded.stdout
    assert run("reconcile", path, "-o", report).exit_code == 2
    assert run("reconcile", path, "--tolerance", "2").exit_code == 2
    assert run("reconcile", path, "--set", "M=64").exit_code == 2
    assert run("reconcile", path, "--prediction", "nothing").exit_code == 2
    assert run("reconcile", path, path, "--budget", "a", "--budget", "b", "--budget", "c").exit_code == 2


def test_command_across(tmp_path: Path) -> None:
    paths = []
    for name in ("balanced", "slowproducer"):
        paths.append(tmp_path / f"{name}.wsformat")
        sample(name).write(paths[-1])
    result = run("reconcile", *paths, "--budget", "hopper_gemm", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert [r["verdict"] for r in found["reports"]] == [AGREE, LEAVES]
    assert "balanced_r0 takes 511.9" in found["reports"][1]["text"]
    text = run("reconcile", *paths, "--budget", "hopper_gemm").stdout
    assert text.startswith("# Across configurations")


def test_command_across_precisions(tmp_path: Path) -> None:
    """One budget, one value of a symbol for each bundle."""
    paths = []
    for n, (_, _, idle) in enumerate(FA4):
        paths.append(tmp_path / f"case{n}.wsformat")
        values = {"sm__pipe_tc_cycles_active.avg.pct_of_peak_sustained_elapsed": 100.0 - idle}
        counted(values, f"f{n}", f"case{n}", device="NVIDIA B200", arch="sm_100a").write(paths[-1])
    words = ["--budget", "fa4_forward", "--set", "dtype=bf16,fp8,nvfp4,nvfp4", "--set", "dtype_pv=bf16,fp8,fp8,bf16"]
    result = run("reconcile", *paths, *words, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert (found["moves_as_predicted"], found["moves_predicted"]) == (5, 6)
    wrong = run("reconcile", *paths, "--budget", "fa4_forward", "--set", "dtype=bf16,fp8")
    assert wrong.exit_code == 2
    assert "2 values for 4 bundles" in wrong.stderr


def test_bundles_that_cannot_be_reconciled(tmp_path: Path) -> None:
    bundle = with_budget(sample("balanced"), budgets.load("hopper_gemm"))
    two = with_budget(bundle, budgets.load("hopper_gemm").with_settings({"N": 64.0}))
    with pytest.raises(BadRequest, match="2 predictions"):
        reconcile(two)
    assert reconcile(two, prediction="hopper_gemm").plan.cycles == 512
    with pytest.raises(BadRequest, match="nothing measured"):
        reconcile(bundle, capture="nowhere")
    alone = Bundle.from_tables({n: bundle.table(n) for n in ("predictions", "roles", "attributes", "findings")} | {
        "captures": [r for r in bundle.table("captures").to_pylist() if r["kind"] == "predicted"]})  # fmt: skip
    with pytest.raises(BadRequest, match="nothing measured"):
        reconcile(alone)


def test_a_clock_of_nanoseconds_needs_a_frequency() -> None:
    bundle = ledger()
    clocks = bundle.table("clocks").to_pylist()
    clocks[0]["unit"] = "ns"
    in_ns = bundle.with_tables({"clocks": clocks})
    plan = budgets.load("b200_fused_gemm_ledger")
    unknown = reconcile(with_budget(in_ns, plan))
    assert unknown.measured.best is None
    assert unknown.verdict.verdict == UNJUDGED
    assert not unknown.lessons("2026-11-30")
    assert outcome(unknown, "steady window") == "unknown"
    assert "clock" in next(c.text for c in unknown.sound if c.name == "steady window")
    known = reconcile(with_budget(in_ns, plan.with_settings({"clock_mhz": 2000.0})))
    assert known.measured.best
    assert known.measured.best.cycles == pytest.approx(2 * 6065)
    assert adds_up(known)
