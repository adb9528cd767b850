"""Budgets: the published numbers come out, what is wrong is refused, and the bundle conforms."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cli_case
import pytest
from typer.testing import CliRunner

from wsformat import budget as budgets
from wsformat import lessons
from wsformat.bundle import Bundle
from wsformat.cli.main import app
from wsformat.errors import BadRequest, MalformedInput, UnsupportedVersion, WsformatError
from wsformat.hardware import DoubtfulValueWarning
from wsformat.prediction import predict, published, sweep
from wsformat.prediction_store import joined, to_bundle
from wsformat.validate import validate


def run(*words: object) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


def ask(*words: object) -> Any:
    result = run(*words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def simple(**changes: Any) -> dict[str, Any]:
    return {
        "wsformat_budget": "0.1", "name": "simple", "unit": "one step", "gpu": "NVIDIA H200", "dtype": "bf16",
        "symbols": {"M": 64, "N": 128, "K": 64},
        "resources": [
            {"resource": "tensor", "roles": ["a", "b"], "work": "2*M*N*K", "rate": "mma_{dtype}"},
            {"resource": "mufu", "role": "a", "work": "M*N", "rate": "mufu"},
        ],
    } | changes  # fmt: skip


def made(raw: dict[str, Any], name: str = "simple.json") -> budgets.Budget:
    return budgets.parse(json.dumps(raw).encode(), name)


CASES = [(name, n) for name in budgets.shipped() for n in range(len(budgets.load(name).raw["published"]))]


@pytest.mark.parametrize(("name", "number"), CASES)
def test_published_numbers_come_out(name: str, number: int) -> None:
    budget = budgets.load(name)
    case = budget.raw["published"][number]
    found = predict(budget.with_settings(case.get("set", {})))
    for resource, cycles in case.get("cycles", {}).items():
        assert found.totals[resource].cycles == pytest.approx(cycles, rel=5e-4)
    if "bottleneck" in case:
        assert sorted(found.bottleneck) == sorted(case["bottleneck"])
    if "predicted_idle_percent" in case:
        assert 100 * found.totals[case["resource"]].idle == pytest.approx(case["predicted_idle_percent"], abs=0.05)
    for ratio, value in case.get("ratio", {}).items():
        one, other = ratio.split("/")
        assert found.totals[one].cycles / found.totals[other].cycles == pytest.approx(value)


def test_flash_attention_numbers_by_hand() -> None:
    """The same numbers, typed here and not read from the budget files."""
    expected = {
        ("fa4_forward", 128): {"tensor": 1024, "smem": 768, "mufu": 1024},
        ("fa4_forward", 256): {"tensor": 2048, "smem": 1536, "mufu": 2048},
        ("fa4_backward", 128): {"tensor": 2560, "smem": 3328, "mufu": 1024},
        ("fa4_backward_2cta", 128): {"tensor": 2560, "smem": 2688, "mufu": 1024},
        ("fa3_forward", 128): {"tensor": 2048, "smem": 1280, "mufu": 1024},
        ("hopper_gemm", 128): {"tensor": 512, "smem": 384},
        ("b200_fused_gemm_ledger", 256): {"tensor": 3072, "smem": 1536},
    }
    for (name, rows), cycles in expected.items():
        totals = predict(budgets.load(name).with_settings({"M": float(rows)})).totals
        assert {r: totals[r].cycles for r in cycles} == cycles


def test_precision_moves_the_idle_share_as_published() -> None:
    cases = [
        ("bf16", "bf16", 0),
        ("fp8", "fp8", 50),
        ("nvfp4", "fp8", 62.5),
        ("nvfp4", "bf16", 37.5),
        ("nvfp4", "nvfp4", 75),
    ]
    base = budgets.load("fa4_forward")
    for qk, pv, idle in cases:
        found = predict(base.with_settings({"dtype_qk": qk, "dtype_pv": pv}))
        assert 100 * found.totals["tensor"].idle == idle
        assert "mufu" in found.bottleneck


def test_totals_add_roles_that_share_a_resource() -> None:
    found = predict(made(simple()))
    rows = {(r.resource, r.role): r for r in found.rows}
    assert rows["tensor", "a"].cycles == rows["tensor", "b"].cycles == 256
    assert rows["tensor", ""].cycles == found.cycles == 512
    assert rows["mufu", ""].cycles == 512  # a tie
    assert found.bottleneck == ["tensor", "mufu"]
    assert rows["tensor", "a"].idle == 0.5
    assert rows["tensor", ""].idle == 0
    assert not rows["tensor", "a"].is_bottleneck


def test_latency_is_a_chain_of_one_role_and_is_not_shared() -> None:
    entries = [
        {"resource": "chain", "role": "a", "cycles": "600", "reason": "measured", "kind": "latency"},
        {"resource": "chain", "role": "b", "cycles": "300 + 200", "reason": "measured", "kind": "latency"},
        {"resource": "chain", "role": "b", "cycles": 50, "reason": "measured", "kind": "latency"},
    ]
    found = predict(made(simple(resources=[*simple()["resources"], *entries])))
    assert found.totals["chain"].cycles == 600
    assert found.bottleneck == ["chain"]
    assert not any("latency of dependencies" in text for text in found.omits)
    assert {r.role: r.cycles for r in found.rows if r.resource == "chain"} == {"": 600, "a": 600, "b": 550}


def test_ctas_that_share_an_sm_share_its_rates() -> None:
    assert predict(made(simple(ctas_per_sm=2))).cycles == 1024


def test_bandwidth_needs_a_clock_and_doubtful_rates_are_said() -> None:
    entry = {"resource": "dram", "role": "a", "work": "4096", "rate": "dram"}
    with pytest.raises(BadRequest, match="SM clock"):
        predict(made(simple(resources=[entry])))
    assert predict(made(simple(resources=[entry], clock_mhz=1830))).cycles == pytest.approx(4096 / 19.87, rel=1e-3)
    low = predict(made(simple(gpu="NVIDIA H20", resources=[{"resource": "t", "work": "1024", "rate": "mma_bf16"}])))
    assert "low confidence" in low.doubts[0]
    unverified = {"resource": "smem", "work": "128", "rate": "smem"}
    with pytest.raises(BadRequest, match="never verified"):
        predict(made(simple(gpu="RTX_4090", resources=[unverified])))
    accepted = predict(made(simple(gpu="RTX_4090", resources=[unverified | {"accept_doubt": True}])))
    assert accepted.cycles == 1
    assert "unverified" in accepted.doubts[0]


def test_shape_class_of_the_rate() -> None:
    half = {"resource": "tensor", "work": "8192*10", "rate": "mma_bf16", "shape": "m64"}
    assert predict(made(simple(gpu="B200_SXM", resources=[half]))).cycles == 20


def test_hypothesis_can_fail_and_omissions_are_listed() -> None:
    found = predict(budgets.load("hopper_gemm"))
    assert "no iteration takes less than 512 cycles" in found.hypothesis
    assert "smem idles at least 25 %" in found.hypothesis
    assert "Wrong if" in found.hypothesis
    text = " ".join(found.omits)
    assert "special functions" in text
    assert "shared memory (" not in text
    assert "latency of dependencies" in text


def test_toml_is_the_same() -> None:
    text = """
wsformat_budget = "0.1"
name = "simple"
unit = "one step"
gpu = "NVIDIA H200"
dtype = "bf16"
symbols = { M = 64, N = 128, K = 64 }
[[resources]]
resource = "tensor"
roles = ["a", "b"]
work = "2*M*N*K"
rate = "mma_{dtype}"
[[resources]]
resource = "mufu"
role = "a"
work = "M*N"
rate = "mufu"
"""
    assert predict(budgets.parse(text.encode(), "x.toml")).rows == predict(made(simple())).rows


def entry(**changes: Any) -> dict[str, Any]:
    return simple(resources=[{"resource": "tensor", "role": "a", "work": "M", "rate": "mma_bf16"} | changes])


@pytest.mark.parametrize(
    ("raw", "says", "error"),
    [
        (simple(wsformat_budget="1.0"), "version 1.0", UnsupportedVersion),
        (simple(wsformat_budget="0.01"), "wsformat_budget", MalformedInput),
        (simple(resources=[]), "resources", MalformedInput),
        (simple(extra=1), "extra", MalformedInput),
        (simple(symbols={"M M": 1}), "symbols", MalformedInput),
        (simple(symbols={"M": True}), "symbols", MalformedInput),
        (simple(symbols={"M": "{x}"}), "no text symbol 'x'", MalformedInput),
        (simple(symbols={"x": "{y}", "y": "{x}"}), "never ends", MalformedInput),
        (simple(symbols={"dtype": "fp8"}), "use the key dtype", MalformedInput),
        (simple(let={"M": "1"}), "is a symbol already", MalformedInput),
        (simple(let={"x": "y"}), "no symbol 'y'", MalformedInput),
        (simple(roles={"a": {"kind": "cook"}}), "no kind 'cook'", MalformedInput),
        (simple(gpu="NVIDIA H100 NVL"), "no GPU", BadRequest),
        (simple(gpu=""), "gpu", MalformedInput),
        (entry(rate="mma_fp4"), "has no mma_fp4", BadRequest),
        (entry(rate="mma_{kind}"), "no text symbol", MalformedInput),
        (entry(rate=0, rate_unit="FLOP/cycle/SM", reason="x"), "a rate is above 0", MalformedInput),
        (entry(rate=10**400, rate_unit="x", reason="x"), "too large", MalformedInput),
        (simple(symbols={"M": 10**400, "N": 1, "K": 1}), "too large", MalformedInput),
        (entry(rate=8192), "needs rate_unit and reason", MalformedInput),
        (entry(work="-M"), "cannot be negative", MalformedInput),
        (entry(work="0"), "no work at all", MalformedInput),
        (entry(work="M*("), "is no formula", MalformedInput),
        (entry(roles=["b"]), "role and roles", MalformedInput),
        (entry(cycles="3"), "either work and rate", MalformedInput),
        (entry(kind="magic"), "magic", MalformedInput),
        (
            simple(
                resources=[
                    *entry()["resources"],
                    {"resource": "tensor", "cycles": 1, "reason": "x", "kind": "latency"},
                ]
            ),
            "another entry of tensor is throughput",
            MalformedInput,
        ),
        ({k: v for k, v in simple().items() if k != "gpu"}, "needs a GPU", BadRequest),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused(raw: dict[str, Any], says: str, error: type[WsformatError]) -> None:
    with pytest.raises(error, match=says):
        predict(made(raw))


@pytest.mark.parametrize(
    ("data", "name", "says"),
    [
        (b"", "x.json", "no JSON"), (b"[]", "x.json", "is an object"), (b'{"a": NaN}', "x.json", "no number of JSON"),
        (b"\xff", "x.json", "no JSON"), (b"[" * 100_000, "x.json", "no JSON"), (b"a = ", "x.toml", "no TOML"),
        (b"{}", "x.json", "wsformat_budget"),
    ],
)  # fmt: skip
def test_files_that_are_no_budget(data: bytes, name: str, says: str) -> None:
    with pytest.raises(MalformedInput, match=says):
        budgets.parse(data, name)


def test_names_that_are_not_there() -> None:
    with pytest.raises(BadRequest, match="no budget 'fa4_forwards'") as failure:
        budgets.load("fa4_forwards")
    assert "fa4_forward?" in failure.value.hint
    with pytest.raises(BadRequest, match="no such file"):
        budgets.load("missing.json")
    with pytest.raises(BadRequest, match="no symbol 'dtpe'") as failure:
        budgets.load("hopper_gemm").with_settings({"dtpe": "fp8"})
    assert "dtype" in failure.value.hint


@pytest.mark.parametrize("name", budgets.shipped())
def test_stored_predictions_conform(name: str, tmp_path: Path) -> None:
    found = sweep(budgets.load(name), {"dtype": ["bf16", "fp8"]})
    to_bundle(found, experiment="e").write(tmp_path / "p.wsformat")
    report = validate(tmp_path / "p.wsformat")
    assert report.ok, report.text()
    assert not [p for p in report.problems if p.level == "W"], report.text()
    stored = Bundle.open(tmp_path / "p.wsformat")
    totals = [r for r in stored.table("predictions").to_pylist() if not r["role"]]
    assert {(r["dtype"], r["resource"], r["cycles"]) for r in totals} == {
        (row.dtype, row.resource, row.cycles) for p in found for row in p.totals.values()
    }
    kinds = [r["kind"] for r in stored.table("findings").to_pylist()]
    assert kinds.count("hypothesis") == 2
    assert kinds.count("omission") == sum(len(p.omits) for p in found)


def test_a_prediction_joins_the_experiment_of_a_capture(tmp_path: Path) -> None:
    made_ = [predict(budgets.load("hopper_gemm"))]
    both = joined(cli_case.bundle(), made_, cli_case.CAPTURE)
    rows = both.table("captures").to_pylist()
    assert {r["experiment"] for r in rows} == {cli_case.CAPTURE}
    assert sorted(r["kind"] for r in rows) == ["predicted", "stamped"]
    both.write(tmp_path / "x.wsformat")
    assert validate(tmp_path / "x.wsformat").ok
    with pytest.raises(BadRequest, match="already"):
        joined(both, made_, cli_case.CAPTURE)
    again = joined(both, made_, cli_case.CAPTURE, force=True)
    assert again.rows("predictions") == both.rows("predictions")
    assert again.rows("roles") == both.rows("roles")
    assert len(again.manifest.sources) == len(both.manifest.sources)
    with pytest.raises(BadRequest, match="is of experiment"):
        joined(both, made_, cli_case.CAPTURE, experiment="other", force=True)
    with pytest.raises(BadRequest, match="no capture"):
        joined(both, made_, "nowhere")


def test_commands_write_what_they_print(tmp_path: Path) -> None:
    target = tmp_path / "p.wsformat"
    shown = ask("predict", "hopper_gemm", "-o", target)
    assert shown["cycles"] == 512
    assert shown["bottleneck"] == ["tensor"]
    assert shown["rows"][1]["slack"] == 128
    assert Bundle.open(target).rows("predictions") == len(shown["rows"])
    assert run("predict", "hopper_gemm", "-o", target).exit_code == 2
    assert run("predict", "hopper_gemm", "-o", target, "--force").exit_code == 0
    measured = tmp_path / "m.wsformat"
    cli_case.bundle().write(measured)
    assert ask("predict", "hopper_gemm", "--into", measured)["cycles"] == 512
    assert Bundle.open(measured).rows("predictions") == len(shown["rows"])
    again = run("predict", "hopper_gemm", "--into", measured)
    assert again.exit_code == 2
    assert "already" in again.stderr
    assert run("predict", "hopper_gemm", "--into", measured, "--force").exit_code == 0


def test_sweep_and_settings() -> None:
    swept = ask("predict", "fa4_forward", "--sweep", "dtype=bf16,fp8,nvfp4", "--sweep", "M=128,256")
    assert [p["settings"] for p in swept["predictions"]][:2] == [
        {"dtype": "bf16", "M": 128},
        {"dtype": "bf16", "M": 256},
    ]
    assert [p["cycles"] for p in swept["predictions"]] == [1024, 2048] * 3
    text = run("predict", "fa4_forward", "--sweep", "dtype=bf16,fp8,nvfp4").stdout
    assert "75.0 %" in text
    assert ask("predict", "fa4_forward", "--set", "M=128")["cycles"] == 1024
    for words in (
        ["--sweep", "dtype"],
        ["--sweep", "dtype="],
        ["--sweep", "dtype=fp8,fp8"],
        ["--set", "M"],
        ["--set", "Q=1"],
    ):
        assert run("predict", "fa4_forward", *words).exit_code == 2
    assert run("predict").exit_code == 2
    assert {row["name"] for row in ask("predict", "--list")} == set(budgets.shipped())


def test_worked_table_shows_published_beside_calculated() -> None:
    shown = ask("predict", "fa4_forward", "--published")["published"]
    idle = [
        (c["calculated"], c["measured"]) for c in shown if c["what"] == "idle % tensor" and c["measured"] is not None
    ]
    assert idle == [(0, 40), (50, 66), (62.5, 61), (37.5, 55)]
    text = run("predict", "fa4_forward", "--published").stdout
    assert "Published:" in text
    assert len(published(budgets.load("tcgen05_interval"))) == 21


def lesson(**changes: Any) -> lessons.Lesson:
    known: dict[str, Any] = dict.fromkeys((f.name for f in lessons.fields(lessons.Lesson)), "") | {"cycles": 30.0}
    return lessons.Lesson(**known | {"text": "add the latency of tcgen05.ld", "date": "2026-11-30"} | changes)


def test_lessons_that_fit_are_remembered(tmp_path: Path) -> None:
    file = tmp_path / "lessons.jsonl"
    mine = lesson(task="gemm", cause="latency", capture_id="1")
    other = lesson(task="attention", cause="latency", capture_id="2", arch="sm_90a", resource="tensor")
    far = lesson(task="attention", cause="x", capture_id="3", arch="sm_100a", resource="tensor", text="far away")
    assert lessons.append(file, [mine, other]) == 2
    assert lessons.append(file, [mine, far]) == 1
    assert lessons.read(file) == [mine, other, far]
    budget = budgets.load("hopper_gemm").raw
    assert lessons.fitting(lessons.read(file), budget, "sm_90") == [mine, other]
    result = run("predict", "hopper_gemm", "--lessons", file)
    assert result.stdout.count("Lesson: 2026-11-30") == 2
    assert "far away" not in result.stdout
    assert run("predict", "hopper_gemm", "--lessons", tmp_path / "none.jsonl").exit_code == 0
    file.write_text("no json\n")
    with pytest.raises(MalformedInput, match=r"lessons.jsonl:1"):
        lessons.read(file)
    file.write_text("[]\n")
    with pytest.raises(MalformedInput, match="no lesson"):
        lessons.read(file)


@pytest.mark.parametrize("change", [lambda r: r, lambda r: r | {"gpu": "NVIDIA H20"}], ids=["high", "low"])
def test_no_warning_escapes(change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Doubts are part of the prediction; as warnings they would be lost in a notebook."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("error", DoubtfulValueWarning)
        predict(made(change(entry())))
