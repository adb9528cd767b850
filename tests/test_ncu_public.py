"""Other people's ncu files (2020 to 2026, V100 to B200): the facts of their index, where the files are there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ncu_text import metrics

from wsformat.converters import ncu, registry


@pytest.fixture(scope="module")
def folder(public: Path) -> Path:
    return public / "ncu_csv"


def load(folder: Path, number: int) -> Any:
    (path,) = folder.glob(f"{number:02d}_*")
    assert registry.detect(path) == "ncu"
    return ncu.read([path], {})


def base(rows: dict[str, dict[str, Any]], name: str) -> tuple[float | None, str]:
    return rows[name]["base_value"], rows[name]["base_unit"]


def test_09_details_in_auto_units(folder: Path) -> None:
    bundle = load(folder, 9)
    rows = metrics(bundle)
    assert bundle.table("launches")["process_id"].to_pylist() == [1740670]
    assert base(rows, "dram__bytes_read.sum") == (2_330_000.0, "byte")
    assert rows["dram__bytes_read.sum"]["unit"] == "Mbyte"
    assert base(rows, "dram__bytes_write.sum") == (0.0, "byte")
    assert base(rows, "gpu__time_duration.sum") == (6750.0, "ns")
    assert base(rows, "Duration") == (6750.0, "ns")
    missing = [r["name"] for r in rows.values() if r["null_reason"] == "n/a"]
    assert len(missing) == 3
    assert all(rows[name]["base_value"] is None for name in missing)
    assert base(rows, "SM Frequency") == (1.99e9, "hz")
    rules = bundle.table("rules").to_pylist()
    assert len(rules) == 4
    (slots,) = [r for r in rules if r["rule"] == "IssueSlotUtilization"]
    assert (slots["type"], slots["speedup_type"], slots["speedup"]) == ("OPT", "local", 80.34)
    names = {(r["section"], r["name"]) for r in bundle.table("metrics").to_pylist()}
    assert len({name for _, name in names}) == 43
    assert {s for s, name in names if name == "Memory Throughput"} == {
        "GPU Speed Of Light Throughput", "Memory Workload Analysis"}  # fmt: skip


def test_10_metrics_not_available(folder: Path) -> None:
    bundle = load(folder, 10)
    rows = metrics(bundle)
    assert len(rows) == 11
    assert sum(r["value"] is None for r in rows.values()) == 3
    assert base(rows, "dram__bytes_read.sum") == (2_330_000.0, "byte")
    assert {"Duration", "Compute (SM) Throughput"} <= set(rows)
    assert bundle.rows("rules") == 4


def test_11_body_item_labels(folder: Path) -> None:
    bundle = load(folder, 11)
    table = bundle.table("metrics").to_pylist()
    rows = {(r["label"], r["name"]): r for r in table}
    assert len(table) == len(rows) == 22
    names = [r["name"] for r in table]
    assert {n for n in names if names.count(n) > 1} == {
        "SM Frequency", "DRAM Frequency", "Theoretical DRAM Bytes Accessible", "DRAM Bandwidth"}  # fmt: skip
    wide = rows["Single Precision Roofline", "Theoretical Predicated-On FFMA Operations"]
    assert (wide["base_value"], wide["base_unit"]) == (43_520.0, "inst")
    head = [r for (label, name), r in rows.items() if label == "" and name.startswith("Theoretical Predicated-On FFMA")]
    assert [(r["value"], r["unit"]) for r in head] == [(21_760.0, "inst/cycle")]
    achieved = rows["Single Precision Achieved Value", "DRAM Bandwidth"]
    assert (achieved["base_value"], achieved["base_unit"]) == (345.14e9, "byte/s")
    assert bundle.rows("rules") == 1


def test_12_occupancy(folder: Path) -> None:
    bundle = load(folder, 12)
    rows = metrics(bundle)
    assert base(rows, "Max Cluster Size") == (8.0, "block")
    assert base(rows, "Theoretical Occupancy") == (16.67, "%")
    assert base(rows, "Achieved Occupancy") == (11.32, "%")
    (rule,) = bundle.table("rules").to_pylist()
    assert (rule["rule"], rule["type"], rule["speedup_type"], rule["speedup"]) == (
        "TheoreticalOccupancy", "OPT", "global", 80.34)  # fmt: skip


def test_13_every_row_is_short(folder: Path) -> None:
    bundle = load(folder, 13)
    rows = metrics(bundle)
    assert len(rows) == 7
    assert bundle.rows("rules") == 0
    assert base(rows, "Memory Throughput") == (345.14e9, "byte/s")
    assert rows["L2 Compression Ratio"]["unit"] == ""
    assert rows["L2 Compression Ratio"]["value"] == 0.0


def test_14_the_same_metric_in_another_unit(folder: Path) -> None:
    bundle = load(folder, 14)
    rows = metrics(bundle)
    assert bundle.table("launches")["process_id"].to_pylist() == [1743423]
    assert rows["dram__bytes_read.sum"]["unit"] == "Kbyte"
    assert base(rows, "dram__bytes_read.sum") == (175_100.0, "byte")
    assert base(rows, "gpu__time_duration.sum") == (2880.0, "ns")
    assert base(rows, "Elapsed Cycles") == (5689.0, "cycle")


def test_16_program_output_around_the_table(folder: Path) -> None:
    bundle = load(folder, 16)
    launches = bundle.table("launches").to_pylist()
    assert [x["native_id"] for x in launches] == [str(i) for i in range(9)]
    assert {x["process_id"] for x in launches} == {1_140_852}
    assert (
        launches[4]["kernel"].startswith("voxelize_occupancy_kernel(")
        or "voxelize_occupancy_kernel(" in launches[4]["kernel"]
    )
    assert "resample_trajectory_fp32_kernel(" in launches[8]["kernel"]
    assert (launches[8]["grid_x"], launches[8]["grid_y"], launches[8]["grid_z"]) == (8000, 1, 1)
    assert "::<unnamed>::" in launches[0]["kernel"]
    row = metrics(bundle, 0)["l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"]
    assert (row["base_value"], row["base_unit"], row["text"]) == (187_500.0, "sector", "187500")


@pytest.mark.parametrize(
    ("number", "duration", "conflicts", "ratio"), [(17, 9_589_248, None, "32"), (18, 2_970_912, 134_541_413, "32.00")]
)
def test_17_18_bom_and_crlf(folder: Path, number: int, duration: int, conflicts: int | None, ratio: str) -> None:
    bundle = load(folder, number)
    (launch,) = bundle.table("launches").to_pylist()
    assert launch["duration_ns"] == duration
    assert launch["kernel"].startswith("unnamed>::gemm_")
    rows = metrics(bundle)
    assert rows["smsp__thread_inst_executed_per_inst_executed.ratio"]["text"] == ratio
    (bank,) = [r for r in rows.values() if r["name"].startswith("l1tex__data_bank_conflicts")]
    assert bank["unit"] == ""
    if conflicts is not None:
        assert bank["value"] == conflicts
    else:
        assert base(rows, "dram__bytes_op_read.sum") == (54_207_744.0, "byte")
        assert base(rows, "lts__t_sector_hit_rate.pct") == (100.39, "%")


def test_25_values_beyond_32_bits(folder: Path) -> None:
    bundle = load(folder, 25)
    (launch,) = bundle.table("launches").to_pylist()
    assert launch["kernel"] == "sigma_gpp_gpu_29"
    assert (launch["grid_x"], launch["grid_y"], launch["grid_z"]) == (65_535, 1, 1)
    rows = metrics(bundle)
    assert base(rows, "dram__bytes.sum") == (134_957_158_144.0, "byte")
    assert base(rows, "sm__cycles_elapsed.avg") == (36_873_068_823.0, "cycle")
    rate = rows["sm__cycles_elapsed.avg.per_second"]["base_value"]
    assert 36_873_068_823 / rate == pytest.approx(22.765, abs=0.001)
    assert rows["sm__cycles_elapsed.avg.per_second"]["base_unit"] == "hz"
    flops = {n: r["value"] for n, r in rows.items() if "_op_d" in n}
    assert sorted(v for v in flops.values() if v) == [122_305_685_313.0, 371_957_323_851.0, 734_774_600_586.0]


def test_26_output_of_the_program_before_the_header(folder: Path) -> None:
    rows = metrics(load(folder, 26))
    assert base(rows, "sm__cycles_elapsed.avg") == (49_398_007_062.67, "cycle")
    assert base(rows, "dram__bytes.sum") == (516_327_794_816.0, "byte")


def test_29_full_log_of_a_b200(folder: Path) -> None:
    bundle = load(folder, 29)
    rows = metrics(bundle)
    assert bundle.table("launches")["process_id"].to_pylist() == [371_693]
    assert base(rows, "Duration") == (406_240.0, "ns")
    assert base(rows, "DRAM Frequency") == (3_995_313_115.4, "hz")
    assert base(rows, "Dynamic Shared Memory Per Block") == (205_696.0, "byte/block")
    texts = {r["text"] for r in rows.values() if r["null_reason"] == "text"}
    assert texts == {"PolicySpread", "CachePreferNone", "all"}
    rules = bundle.table("rules").to_pylist()
    assert len(rules) == 8
    assert [r["rule_index"] for r in rules if r["rule"] == "WorkloadImbalance"] == [0, 1, 2, 3]
    assert bundle.table("captures")["arch"].to_pylist() == ["sm_100"]
