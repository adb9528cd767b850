"""Hardware facts: they close with the vendors' sheets, nothing is guessed, and every value names its source."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from typer.testing import CliRunner

from wsformat import hardware
from wsformat.cli.main import app
from wsformat.errors import BadRequest
from wsformat.hardware import DoubtfulValueWarning, facts, gpus, lookup, per_cycle

EVERY = [(key, name) for key, gpu in gpus().items() for name in gpu.values]


def run(*words: str) -> Any:
    return CliRunner().invoke(app, ["hardware", *words])


@pytest.mark.parametrize(("key", "name"), EVERY)
def test_every_value_names_its_source_and_says_why_it_is_absent(key: str, name: str) -> None:
    value = gpus()[key].values[name]
    assert value.source
    assert set(value.source) <= set(hardware.sources())
    assert value.confidence in hardware.confidences()
    assert (value.value is None) == bool(value.absence)
    assert value.absence in ("", *facts()["conventions"]["absence"])
    assert value.value is None or (math.isfinite(value.value) and value.value >= 0)
    assert value.unit or value.value is None
    # General knowledge is never more than unverified, and nothing else hides behind that word.
    assert (value.confidence == "unverified") == (value.source == ("MEM",))
    if value.kind == "rate" and value.value is not None:
        assert value.unit.endswith("/cycle/SM")


@pytest.mark.parametrize("check", facts()["closing_checks"], ids=lambda c: f"{c['gpu']}-{c['field']}")
def test_rates_close_with_the_vendors_throughput(check: dict[str, Any]) -> None:
    gpu = gpus()[check["gpu"]]
    rate, sms = gpu.values[check["field"]].value, gpu.values["sm_count"].value
    assert rate is not None
    assert sms is not None
    tflops = rate * sms * check["clock_mhz"] * 1e6 / 1e12
    assert tflops == pytest.approx(check["from_rate"], abs=0.06)
    assert tflops == pytest.approx(check["spec_tflops"], rel=0.013)


@pytest.mark.parametrize(
    ("gpu", "quantity", "value"),
    [
        ("H200_SXM", "mma_bf16", 4096), ("H200_SXM", "mufu", 16), ("H200_SXM", "smem", 128),
        ("H100_SXM5", "mma_fp8", 8192), ("B200_SXM", "mma_bf16", 8192), ("B200_SXM", "mma_fp8", 16384),
        ("B200_SXM", "mma_nvfp4", 32768), ("B300_SXM6", "mufu_ex2", 32), ("B300_SXM6", "mufu", 16),
        ("B300_SXM6", "mma_fp4", 49152), ("A100_SXM4_80GB", "fma_fp32", 64), ("RTX_4090", "mma_bf16", 512),
        ("H200_SXM", "issue_slots", 4), ("RTX_5090", "cvt_f32_to_16", 16), ("MI300X", "mma_bf16", 2048),
    ],
)  # fmt: skip
def test_rates(gpu: str, quantity: str, value: float) -> None:
    assert lookup(gpu).value(quantity).value == value


@pytest.mark.parametrize(
    ("text", "form_factor", "key"),
    [
        ("NVIDIA H200", "", "H200_SXM"),
        ("nvidia h200", "", "H200_SXM"),
        ("NVIDIA H100 80GB HBM3", "", "H100_SXM5"),
        ("NVIDIA H100 PCIe", "", "H100_PCIe"),
        ("NVIDIA GeForce RTX 4090", "", "RTX_4090"),
        ("B200_SXM", "", "B200_SXM"),
        ("sm_100a", "sxm", "B200_SXM"),
        ("sm_103", "superchip", "GB300"),
        ("sm_90a", "pcie", "H100_PCIe"),
        ("gfx942", "", "MI300X"),
    ],
)
def test_lookup_by_device_or_by_arch_and_form_factor(text: str, form_factor: str, key: str) -> None:
    assert lookup(text, form_factor=form_factor).key == key


@pytest.mark.parametrize(
    ("text", "form_factor", "says"),
    [
        ("sm_90a", "", "4 GPUs fit"),
        ("sm_90a", "sxm", "3 GPUs fit"),
        ("NVIDIA H200", "pcie", "no form factor"),
        # Other form factors and sizes of a known chip have other numbers: none is taken for another.
        ("NVIDIA H200 NVL", "", "no GPU"),
        ("NVIDIA H100 NVL", "", "no GPU"),
        ("NVIDIA A100-SXM4-40GB", "", "no GPU"),
        ("H100", "", "no GPU"),
        ("", "", "no GPU"),
        ("GPU 9000", "", "no GPU"),
    ],
)
def test_what_is_not_known_is_an_error_with_the_nearest_names(text: str, form_factor: str, says: str) -> None:
    with pytest.raises(BadRequest, match=says) as failure:
        lookup(text, form_factor=form_factor)
    assert failure.value.hint


def test_nearest_names() -> None:
    assert set(hardware.nearest("NVIDIA H100 NVL")[:2]) == {"H100_SXM5", "H100_PCIe"}
    assert hardware.nearest("B2000")[0] == "B200_SXM"


@pytest.mark.parametrize(
    ("gpu", "quantity", "says"),
    [
        ("H200_SXM", "mma_fp4", "has no mma_fp4"),
        ("H200_SXM", "tma", "tma is not known"),
        ("H200_SXM", "tmem_read", "tmem_read is not known"),
        ("B300_SXM6", "latency_syncthreads", "22"),
        ("RTX_4090", "smem", "never verified"),
        ("L40S", "sm_count", "never verified"),
        ("H200_SXM", "mma_bf61", "no quantity"),
    ],
)
def test_no_value_is_ever_made_up(gpu: str, quantity: str, says: str) -> None:
    with pytest.raises(BadRequest, match=says) as failure:
        lookup(gpu).value(quantity)
    assert failure.value.hint


def test_a_doubtful_value_is_used_loudly() -> None:
    with pytest.warns(DoubtfulValueWarning, match="unverified confidence"):
        assert lookup("RTX_4090").value("smem", accept_doubt=True).value == 128
    with pytest.warns(DoubtfulValueWarning, match="low confidence"):
        assert lookup("H20").value("mma_bf16").value == 1024


def test_shape_classes_lower_the_rate_and_are_not_guessed() -> None:
    half = lookup("B200_SXM").value("mma_bf16", shape="m64")
    assert half.value == 4096
    assert "SEMI" in half.source
    assert lookup("B300_SXM6").value("mma_bf16", shape="mma_sync").confidence == "medium"
    with pytest.raises(BadRequest, match="not known for sm_90"):
        lookup("H200_SXM").value("mma_bf16", shape="m64")
    with pytest.raises(BadRequest, match="no shape class"):
        lookup("B200_SXM").value("mma_bf16", shape="m63")
    with pytest.raises(BadRequest, match="no shape class"):
        lookup("B200_SXM").value("mufu", shape="m64")


def test_bandwidth_of_the_chip_needs_a_clock() -> None:
    gpu = lookup("H200_SXM")
    with pytest.raises(BadRequest, match="need the SM clock"):
        per_cycle(gpu, gpu.value("dram"), None)
    rate, how = per_cycle(gpu, gpu.value("dram"), 1830)
    assert rate == pytest.approx(19.9, abs=0.05)
    assert "1830 MHz" in how
    chip = lookup("H100_SXM5")
    assert per_cycle(chip, chip.value("l2_measured"), None)[0] == pytest.approx(31.9, abs=0.05)
    assert per_cycle(gpu, gpu.value("mma_bf16"), None) == (4096, "")
    with pytest.raises(BadRequest, match="no rate"):
        per_cycle(gpu, gpu.value("smem_capacity"), 1830)


def test_conflicts_are_data() -> None:
    assert len(facts()["conflicts"]) == 9
    for conflict in facts()["conflicts"]:
        assert set(conflict["gpus"]) <= set(gpus())
        assert len(conflict["values"]) >= 2
        assert conflict["rule"]
    assert [c["topic"] for c in lookup("H100_SXM5").conflicts("clock_spec")] == ["H100 tensor clock"]


def test_dtypes() -> None:
    assert [hardware.element_bytes(d) for d in ("bf16", "e4m3", "nvfp4", "fp32")] == [2, 1, 0.5, 4]
    with pytest.raises(BadRequest, match="no dtype"):
        hardware.element_bytes("bf61")


def test_command_shows_every_value_with_its_source() -> None:
    shown = json.loads(run("NVIDIA H200", "--json").stdout)
    assert shown["key"] == "H200_SXM"
    assert shown["values"]["mma_bf16"]["value"] == 4096
    assert shown["values"]["mma_bf16"]["source"] == ["XLA", "FA-REPO"]
    assert all(set(v["source"]) <= set(shown["sources"]) for v in shown["values"].values())
    text = run("H200_SXM").stdout
    assert all(name in text for name in shown["values"])
    assert "unverified" in run("RTX_4090").stdout
    assert "Sources disagree" in run("H100_SXM5").stdout
    assert {g["key"] for g in json.loads(run("--json").stdout)} == set(gpus())
    assert all(key in run().stdout for key in gpus())


def test_command_on_an_unknown_gpu() -> None:
    result = run("NVIDIA H100 NVL")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.splitlines()[0] == "error: no GPU 'NVIDIA H100 NVL' in the hardware facts"
    assert "H100_SXM5" in result.stderr.splitlines()[1]
