"""Shapes, encodings, locales and faults of ncu text that the real files here do not show, each written by hand."""

from __future__ import annotations

import contextlib
import gzip
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ncu_text import CLI, ID, LONG, RULES, launch, line, long_table, metrics, read_text, wide_table

from wsformat.converters import ncu, registry
from wsformat.errors import BadRequest, MalformedInput, MissingDependency, UnknownFormat, WsformatError

NAME = "gpu__time_duration.sum"
BYTES = "dram__bytes_read.sum"


def simple(value: str = "1,234,567", unit: str = "ns", **kw: str) -> str:
    return long_table([(launch(0), CLI, NAME, unit, value), (launch(0), CLI, BYTES, "Kbyte", "2.50")], **kw)


# --- tables -------------------------------------------------------------------------------------------------


def test_details_page_of_2020(tmp_path: Path) -> None:
    header = ["ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Kernel Time", "Context", "Stream",
              "Section Name", "Metric Name", "Metric Unit", "Metric Value"]  # fmt: skip
    cells = ["0", "11", "app", "host", "k", "2020-Apr-02 10:11:12", "1", "7"]
    rows = [("GPU Speed Of Light", "SOL FB", "%", "36.34"), ("GPU Speed Of Light", "Duration", "usecond", "12.50"),
            ("GPU Speed Of Light", "SM Frequency", "cycle/nsecond", "1.29")]  # fmt: skip
    text = line(header) + "\n" + "".join(line([*cells, *row]) for row in rows)
    bundle = read_text(tmp_path, text)
    found = metrics(bundle)
    assert found["SOL FB"]["metric"] == "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
    assert found["SOL FB"]["resolved_by"] == "renamed label"
    assert (found["Duration"]["base_value"], found["Duration"]["base_unit"]) == (12_500.0, "ns")
    assert (found["SM Frequency"]["base_value"], found["SM Frequency"]["base_unit"]) == (1.29e9, "hz")
    (row,) = bundle.table("launches").to_pylist()
    assert (row["grid_x"], row["duration_ns"], row["native_id"]) == (-1, 12_500, "0")
    assert bundle.table("captures")["source_format"].to_pylist() == ["ncu-csv/details-page-2020"]
    kept = {a["name"]: a["value"] for a in bundle.table("attributes").to_pylist()}
    assert kept["ncu.kernel_time"] == "2020-Apr-02 10:11:12"


def test_nvtx_columns(tmp_path: Path) -> None:
    push = "thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg"
    start = "Id:Domain:Start/Stop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg"
    header = [*LONG[:4], push, start, *LONG[4:]]
    cell = '1  "<default domain>:range_a:none:none:none:none:none:none"  "<default domain>:b:none"'
    cells = [*launch(0)[:4], cell, "", *launch(0)[4:]]
    bundle = read_text(tmp_path, long_table([(cells, CLI, NAME, "ns", "5")], header))
    assert metrics(bundle)[NAME]["value"] == 5.0
    kept = {a["name"]: a["value"] for a in bundle.table("attributes").to_pylist()}
    assert kept["ncu.nvtx_push_pop"] == cell
    assert "ncu.nvtx_start_stop" not in kept
    assert bundle.table("captures")["source_format"].to_pylist() == ["ncu-csv/metrics-nvtx"]


def test_nvtx_columns_of_a_raw_page_are_no_metrics(tmp_path: Path) -> None:
    push = "thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg"
    header = [*ID[:4], push, *ID[4:], NAME]
    text = line(header) + line([""] * 12 + ["ns"]) + line([*launch(0)[:4], '1 "a"', *launch(0)[4:], "8"])
    bundle = read_text(tmp_path, text)
    assert set(metrics(bundle)) == {NAME}
    assert {a["name"] for a in bundle.table("attributes").to_pylist()} >= {"ncu.nvtx_push_pop"}


def test_summary(tmp_path: Path) -> None:
    header = ["Process ID", "Process Name", "Host Name", "Kernel Name", "Block Size", "Grid Size", "Device", "CC",
              "Invocations", "Section Name", "Metric Name", "Metric Unit", "Minimum", "Maximum", "Average"]  # fmt: skip
    one = ["9", "app", "h", "k, a", "(32, 1, 1)", "(2, 1, 1)", "0", "8.0", "3"]
    two = ["9", "app", "h", "k, a", "(32, 1, 1)", "(4, 1, 1)", "0", "8.0", "1"]
    text = line(header)
    for cells, values in ((one, ("1.50", "2.50", "2.00")), (two, ("7.00", "9.00", "8.00"))):
        text += line([*cells, CLI, NAME, "us", *values]) + line([*cells, CLI, BYTES, "Mbyte", *values])
    bundle = read_text(tmp_path, text)
    assert bundle.rows("launches") == 0
    rows = {(r["scope_id"], r["name"], r["label"]): r for r in bundle.table("metrics").to_pylist()}
    group = "k, a (32, 1, 1) (2, 1, 1)"
    assert {r["scope"] for r in rows.values()} == {"summary"}
    assert {r["launch"] for r in rows.values()} == {-1}
    assert [rows[group, NAME, w]["base_value"] for w in ("Minimum", "Maximum", "Average")] == [1500.0, 2500.0, 2000.0]
    assert rows[group, "Invocations", ""]["value"] == 3.0
    assert rows["k, a (32, 1, 1) (4, 1, 1)", BYTES, "Average"]["base_value"] == 8e6


def test_source_page_of_source_lines(tmp_path: Path) -> None:
    text = (
        '"Kernel Name","k(int)",\n"File Path","/src/k.cu",\n'
        + line(["#", "Source", "# Samples", "Instructions Executed", "Instructions Executed", "stall_wait"])
        + line(["1", "int x = a[i], y;", "5", "10", "11", "2"])
        + line(["2", 'printf("hi; there");', "0", "", "-", "0"])
    )
    bundle = read_text(tmp_path, text)
    rows = {(r["scope_id"], r["name"], r["ordinal"]): r for r in bundle.table("metrics").to_pylist()}
    assert {r["scope"] for r in rows.values()} == {"line"}
    assert rows["/src/k.cu:1", "Source", 0]["text"] == "int x = a[i], y;"
    assert rows["/src/k.cu:2", "Source", 0]["text"] == 'printf("hi; there");'
    assert rows["/src/k.cu:1", "Instructions Executed", 0]["value"] == 10.0
    assert rows["/src/k.cu:1", "Instructions Executed", 1]["value"] == 11.0
    assert rows["/src/k.cu:2", "Instructions Executed", 0]["null_reason"] == "empty"
    assert rows["/src/k.cu:2", "Instructions Executed", 1]["null_reason"] == "n/a"
    assert bundle.table("launches")["kernel"].to_pylist() == ["k(int)"]


def block(kernel: str, samples: list[str]) -> str:
    head = f'"Kernel Name","{kernel}",\n' + line(["Address", "Source", "# Samples", "stall_wait"])
    return head + "".join(line([f"0x{16 * i:x}", f"NOP {i}", s, s]) for i, s in enumerate(samples))


def test_source_blocks_that_are_alike_by_chance_stay(tmp_path: Path) -> None:
    bundle = read_text(tmp_path, block("a", ["0", "1"]) + block("b", ["0", "0"]) + block("b", ["0", "0"]))
    assert bundle.table("launches")["kernel"].to_pylist() == ["a", "b", "b"]
    counts = bundle.sql("SELECT launch, count(*) AS n FROM metrics GROUP BY launch ORDER BY launch").to_pylist()
    assert counts == [{"launch": i, "n": 6} for i in range(3)]


def test_source_blocks_that_are_all_printed_twice_are_read_once(tmp_path: Path) -> None:
    a, b = block("a", ["0", "1"]), block("b", ["0", "0"])
    bundle = read_text(tmp_path, a + a + b + b)
    assert bundle.table("launches")["kernel"].to_pylist() == ["a", "b"]
    assert bundle.sql("SELECT count(*) AS n FROM metrics WHERE launch = 1").to_pylist() == [{"n": 6}]


def test_instances_with_ids(tmp_path: Path) -> None:
    columns = {
        "sass__inst_executed_per_opcode": ("inst", ["1,300 (IADD3: 1,000; LDG: 300)"]),
        "launch__kernel_name": ("", ["(k)"]),
        "sm__cycles_active.avg": ("cycle", ["3.50 (3; 4)"]),
        "device__attribute_display_name": ("", ["NVIDIA X (PCIe)"]),
    }
    bundle = read_text(tmp_path, wide_table(columns, [launch(0)]))
    rows = bundle.table("metrics").to_pylist()
    ops = [
        (r["scope_id"], r["ordinal"], r["value"])
        for r in rows
        if r["name"].startswith("sass") and r["scope"] == "instance"
    ]
    assert ops == [("IADD3", 0, 1000.0), ("LDG", 1, 300.0)]
    assert metrics(bundle)["sass__inst_executed_per_opcode"]["value"] == 1300.0
    assert metrics(bundle)["launch__kernel_name"]["null_reason"] == "empty"
    assert metrics(bundle, scope="instance")["launch__kernel_name"]["text"] == "k"
    assert bundle.table("captures")["device"].to_pylist() == ["NVIDIA X"]


def test_text_with_brackets_is_no_instance_list(tmp_path: Path) -> None:
    columns = {"device__attribute_display_name": ("", ["NVIDIA X (PCIe)"]), NAME: ("ns", ["12"])}
    bundle = read_text(tmp_path, wide_table(columns, [launch(0)]))
    assert metrics(bundle)["device__attribute_display_name"]["text"] == "NVIDIA X (PCIe)"
    assert {r["scope"] for r in bundle.table("metrics").to_pylist()} == {"kernel"}


def test_raw_page_without_units_is_refused_unless_told(tmp_path: Path) -> None:
    text = line([*ID, NAME, BYTES]) + line([*launch(0), "10", "20"])
    with pytest.raises(MalformedInput, match="row of units") as caught:
        read_text(tmp_path, text)
    assert "unit_row=missing" in caught.value.hint
    rows = metrics(read_text(tmp_path, text, unit_row="missing"))
    assert (rows[NAME]["value"], rows[NAME]["unit"]) == (10.0, "")


def test_a_plain_list_of_metrics(tmp_path: Path) -> None:
    bundle = read_text(tmp_path, f"metric,value,unit\n{NAME},1234.567,ns\n{BYTES},2,Mbyte\nlaunch__x,abc,\n")
    rows = metrics(bundle)
    assert rows[NAME]["value"] == 1234.567
    assert rows[BYTES]["base_value"] == 2e6
    assert rows["launch__x"]["null_reason"] == "text"
    assert bundle.rows("launches") == 1


def test_three_decimals_in_a_plain_list_are_decimals(tmp_path: Path) -> None:
    assert metrics(read_text(tmp_path, f"name,value\n{NAME},56.312\n"))[NAME]["value"] == 56.312


def test_json_of_metrics(tmp_path: Path) -> None:
    text = f'{{"{NAME}": 1234.567, "{BYTES}": [2, "Mbyte"], "sm__x.avg.pct": 56.312, "launch__y": null}}'
    path = tmp_path / "x.json"
    path.write_text(text)
    assert registry.detect(path) == "ncu"
    rows = metrics(ncu.read([path], {}))
    assert rows[NAME]["value"] == 1234.567
    assert rows[BYTES]["base_value"] == 2e6
    assert (rows["sm__x.avg.pct"]["value"], rows["sm__x.avg.pct"]["unit"]) == (56.312, "%")
    assert rows["launch__y"]["null_reason"] == "n/a"
    again = ncu.from_values({NAME: 1234.567, BYTES: (2, "Mbyte")}, kernel="k", arch="sm_90")
    assert metrics(again)[BYTES]["base_value"] == 2e6
    assert again.table("captures")["arch"].to_pylist() == ["sm_90"]
    with pytest.raises(BadRequest):
        ncu.from_values({"time": 3})
    with pytest.raises(BadRequest):
        ncu.from_values({NAME: {"a": 1}})


# --- text around the table ------------------------------------------------------------------------------------


def test_noise_before_between_and_after(tmp_path: Path) -> None:
    table = long_table([(launch(0), CLI, NAME, "ns", "5"), (launch(1), CLI, NAME, "ns", "6")])
    head, first, second = table.splitlines(keepends=True)
    text = (
        'say "hi, there"\n==PROF== Connected to process 77 (/a/b)\n\u2502 box \u2713\n' + head + "\n" + first
        + '==WARNING== slow\n"a","line that looks like CSV"\n12,13,14\n' + second
        + "\n==PROF== Disconnected from process 77\nbye\n"
    )  # fmt: skip
    bundle = read_text(tmp_path, text)
    assert [metrics(bundle, i)[NAME]["value"] for i in (0, 1)] == [5.0, 6.0]
    messages = [(m["verdict"], m["text"]) for m in bundle.table("findings").to_pylist()]
    assert ("WARNING", "slow") in messages
    assert ("output", '"a","line that looks like CSV"') in messages
    assert ("output", "\u2502 box \u2713") in messages
    assert ("output", "bye") in messages
    assert len(messages) == 8


def test_several_tables_in_one_file(tmp_path: Path) -> None:
    wide = wide_table({NAME: ("us", ["1.50"])}, [launch(0, pid="77")])
    text = simple() + "==PROF== again\n" + simple() + wide
    bundle = read_text(tmp_path, text)
    launches = bundle.table("launches").to_pylist()
    assert [(x["launch"], x["native_id"], x["process_id"]) for x in launches] == [
        (0, "0", 77),
        (1, "0", 77),
        (2, "0", 77),
    ]
    assert [x["duration_ns"] for x in launches] == [1_234_567, 1_234_567, 1500]
    assert bundle.table("captures")["source_format"].to_pylist() == ["ncu-csv/metrics + raw-page"]


def test_ids_repeat_across_processes(tmp_path: Path) -> None:
    rows = [(launch(0, pid=p), CLI, NAME, "ns", v) for p, v in (("5", "1"), ("6", "2"))]
    bundle = read_text(tmp_path, long_table([*rows, (launch(0, pid="5"), CLI, BYTES, "byte", "3")]))
    assert bundle.table("launches")["process_id"].to_pylist() == [5, 6]
    assert metrics(bundle, 0)[BYTES]["value"] == 3.0
    assert set(metrics(bundle, 1)) == {NAME}


def test_names_with_commas_quotes_brackets_and_mangled(tmp_path: Path) -> None:
    names = [
        'void k<A, "B">(int, (lambda at "x.cu":3))',
        "_Z4gemmILi1EEvPfS0_i",
        "unnamed>::k(const float *)",
        "a=b; c",
    ]
    bundle = read_text(tmp_path, long_table([(launch(i, kernel=n), CLI, NAME, "ns", "5") for i, n in enumerate(names)]))
    assert bundle.table("launches")["kernel"].to_pylist() == names


def test_same_name_twice_in_a_launch(tmp_path: Path) -> None:
    rows = [(launch(0), "S", "Memory Throughput", u, v) for u, v in (("%", "71.04"), ("byte/s", "5"), ("byte/s", "6"))]
    rows += [(launch(0), "T", "Memory Throughput", "%", "3.00")]
    table = read_text(tmp_path, long_table(rows)).table("metrics").to_pylist()
    assert [(r["section"], r["ordinal"], r["text"]) for r in table] == [
        ("S", 0, "71.04"), ("S", 1, "5"), ("S", 2, "6"), ("T", 0, "3.00")]  # fmt: skip


def test_rule_rows(tmp_path: Path) -> None:
    header = [*LONG, *RULES]
    text = line(header)
    text += line([*launch(0), "Scheduler Statistics", "No Eligible", "%", "84.91"]).rstrip("\n") + ",\n"
    text += line([*launch(0), "SchedulerStats", "", "", "", "IssueSlot", "OPT", 'Do, "this"', "local", "5.818"])
    text += line([*launch(0), "SchedulerStats", "", "", "", "IssueSlot", "INF", "And that", "", ""])
    bundle = read_text(tmp_path, text)
    rules = bundle.table("rules").to_pylist()
    assert [(r["section"], r["rule"], r["rule_index"], r["type"], r["description"], r["speedup"]) for r in rules] == [
        ("SchedulerStats", "IssueSlot", 0, "OPT", 'Do, "this"', 5.818),
        ("SchedulerStats", "IssueSlot", 1, "INF", "And that", None),
    ]
    assert metrics(bundle)["No Eligible"]["value"] == 84.91


def test_rule_text_over_several_lines(tmp_path: Path) -> None:
    text = line([*LONG, *RULES])
    text += line([*launch(0), "S", "", "", "", "R", "OPT", 'first\nsecond, 1\n"third"', "", ""])
    text += line([*launch(1), "S", "No Eligible", "%", "84.91", "", "", "", "", ""])
    bundle = read_text(tmp_path, text)
    assert [r["description"] for r in bundle.table("rules").to_pylist()] == ['first\nsecond, 1\n"third"']
    assert bundle.rows("launches") == 2
    assert bundle.rows("findings") == 0


def test_a_launch_that_failed(tmp_path: Path) -> None:
    text = "==ERROR== LaunchFailed\n" + long_table([
        (launch(0, block="(0, 0, 0)", grid="(0, 0, 0)"), CLI, NAME, "ns", "nan"),
        (launch(0, block="(0, 0, 0)", grid="(0, 0, 0)"), CLI, "mc__x", "cycle", "(!) nan"),
        (launch(1), CLI, NAME, "ns", "(!) 12.50"),
    ])  # fmt: skip
    bundle = read_text(tmp_path, text)
    assert [x["status"] for x in bundle.table("launches").to_pylist()] == ["failed", "unknown"]
    assert bundle.table("launches")["grid_x"].to_pylist() == [0, 4]
    rows = metrics(bundle, 0)
    assert rows[NAME]["null_reason"] == "nan"
    assert (rows["mc__x"]["null_reason"], rows["mc__x"]["text"]) == ("nan", "(!) nan")
    assert metrics(bundle, 1)[NAME]["value"] == 12.5


# --- encodings and delimiters ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "encode",
    [
        lambda t: t.encode(),
        lambda t: b"\xef\xbb\xbf" + t.encode(),
        lambda t: t.replace("\n", "\r\n").encode(),
        lambda t: b"\xff\xfe" + t.replace("\n", "\r\n").encode("utf-16-le"),
        lambda t: b"\xfe\xff" + t.encode("utf-16-be"),
        lambda t: t.encode("utf-16-le"),
        lambda t: t.encode().rstrip(b"\n"),
        lambda t: gzip.compress(t.encode()),
        lambda t: b"caf\xe9 (Latin-1 program output)\n" + t.encode(),
    ],
    ids=["utf8", "bom", "crlf", "utf16le", "utf16be", "utf16-no-bom", "no-final-newline", "gzip", "latin1-noise"],
)
def test_encodings(tmp_path: Path, encode) -> None:  # type: ignore[no-untyped-def]
    text = "\u2502 \u00fcber\n" + long_table([(launch(0, kernel="k\u00fc"), CLI, NAME, "ns", "1,234,567")])
    bundle = read_text(tmp_path, encode(text))
    assert metrics(bundle)[NAME]["value"] == 1_234_567
    assert bundle.table("launches")["kernel"].to_pylist() == ["k\u00fc"]


def test_semicolons_without_quotes(tmp_path: Path) -> None:
    """As a spreadsheet saves it under a European locale."""
    text = simple("1.234.567", delimiter=";").replace('"', "").replace("2.50", "2,50")
    rows = metrics(read_text(tmp_path, text))
    assert rows[NAME]["value"] == 1_234_567
    assert rows[BYTES]["base_value"] == 2500.0


LOCALES = {
    "C": ("1234567", "12345.67", "117344", "65.77"),
    "en": ("1,234,567", "12,345.67", "117,344", "65.77"),
    "de": ("1.234.567", "12.345,67", "117.344", "65,77"),
    "fr": ("1\u202f234\u202f567", "12\u202f345,67", "117\u202f344", "65,77"),
    "nbsp": ("1\u00a0234\u00a0567", "12\u00a0345,67", "117\u00a0344", "65,77"),
    "space": ("1 234 567", "12 345,67", "117 344", "65,77"),
    "ch": ("1'234'567", "12'345.67", "117'344", "65.77"),
    "ch-curly": ("1\u2019234\u2019567", "12\u2019345.67", "117\u2019344", "65.77"),
    "in": ("12,34,567", "12,345.67", "1,17,344", "65.77"),
    "fa": ("1\u066c234\u066c567", "12\u066c345\u066b67", "117\u066c344", "65\u066b77"),
}


@pytest.mark.parametrize("locale", LOCALES)
def test_locales(tmp_path: Path, locale: str) -> None:
    cells = LOCALES[locale]
    names = [f"sm__m{i}.sum" for i in range(4)]
    rows = [(launch(0), CLI, n, "byte", c) for n, c in zip(names, cells, strict=True)]
    found = metrics(read_text(tmp_path, long_table(rows)))
    assert [found[n]["value"] for n in names] == [1_234_567, 12_345.67, 117_344, 65.77]
    assert [found[n]["text"] for n in names] == list(cells)


def test_one_group_of_three_is_a_group_in_any_locale(tmp_path: Path) -> None:
    """117.344 ns is 117,344 ns: ncu prints two decimals or none."""
    assert metrics(read_text(tmp_path, long_table([(launch(0), CLI, NAME, "ns", "117.344")])))[NAME]["value"] == 117_344
    rows = [(launch(0), CLI, NAME, "ns", "117.344"), (launch(0), CLI, BYTES, "byte", "1,234,567")]
    assert metrics(read_text(tmp_path, long_table(rows)))[NAME]["value"] == 117.344


@pytest.mark.parametrize(
    "cells", [("1,234.50", "1.234,50"), ("1,234,567", "65,77"), ("1.50", "5.818"), ("1,234", "5.678")]
)
def test_contradictory_separators_are_refused(tmp_path: Path, cells: tuple[str, str]) -> None:
    text = long_table([(launch(0), CLI, f"sm__m{i}.sum", "", c) for i, c in enumerate(cells)])
    with pytest.raises(MalformedInput, match=r"contradict|two readings") as caught:
        read_text(tmp_path, text)
    assert all(cell in str(caught.value) for cell in cells)
    assert "decimal=" in caught.value.hint


def test_the_user_may_name_the_decimal_mark(tmp_path: Path) -> None:
    text = long_table([(launch(0), CLI, f"sm__m{i}.sum", "", c) for i, c in enumerate(["1,234", "5.678"])])
    rows = metrics(read_text(tmp_path, text, decimal="."))
    assert [r["value"] for r in rows.values()] == [1234.0, 5.678]
    with pytest.raises(BadRequest):
        read_text(tmp_path, text, decimal="x")


def test_unknown_unit(tmp_path: Path) -> None:
    with pytest.raises(MalformedInput, match="unknown unit 'furlong/ns'") as caught:
        read_text(tmp_path, simple(unit="furlong/ns"))
    assert "units=furlong/ns=" in caught.value.hint
    rows = metrics(read_text(tmp_path, simple("5", unit="furlong/ns"), units="furlong/ns=m/s*1e3"))
    assert (rows[NAME]["base_value"], rows[NAME]["base_unit"], rows[NAME]["unit"]) == (5000.0, "m/s", "furlong/ns")


def test_percentages_over_100_stay(tmp_path: Path) -> None:
    text = long_table([(launch(0), CLI, "lts__t_sector_hit_rate.pct", "%", "100.39")])
    assert metrics(read_text(tmp_path, text))["lts__t_sector_hit_rate.pct"]["base_value"] == 100.39


def test_base_values_are_the_decimal_that_was_printed(tmp_path: Path) -> None:
    cases = {"2.33": ("Mbyte", 2330000.0), "983.68": ("us", 983680.0), "0.07": ("Gbyte/s", 7e7), "1.10": ("Ghz", 1.1e9),
             "4.35": ("sector/ns", 4.35e9)}  # fmt: skip
    rows = metrics(
        read_text(
            tmp_path, long_table([(launch(0), CLI, f"sm__{i}", u, t) for i, (t, (u, _)) in enumerate(cases.items())])
        )
    )
    assert [r["base_value"] for r in rows.values()] == [value for _, value in cases.values()]


# --- refused ---------------------------------------------------------------------------------------------------

REFUSED = {
    "only messages": ("==PROF== Connected to process 1\n==PROF== Report: r.ncu-rep\n", "only messages", "--import"),
    "error": ("==PROF== x\n==ERROR== Unknown metric\n", "Unknown metric", "run again"),
    "no kernel": ("==WARNING== No kernels were profiled.\n", "no kernel", "kernel-name"),
    "nvprof output": ("==123== NVPROF is profiling process 123\n==123== Profiling result:\n", "nvprof", "ncu"),
    "nvprof csv": ('"Type","Time(%)","Time","Calls","Avg"\n', "nvprof", "ncu"),
    "nsys csv": ("Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Name\n50,1,1,1,1,k\n", "Nsight Systems", "ncu"),
    "header only": (line(LONG), "without any row", "profiled"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_files_without_a_table(tmp_path: Path, case: str) -> None:
    text, says, hint = REFUSED[case]
    with pytest.raises(WsformatError, match=says) as caught:
        read_text(tmp_path, text)
    assert hint in caught.value.hint
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text", ["a,b,c\n1,2,3\n", "metric,value\nlatency,5\n", '{"traceEvents": []}', "", "ID,Name\n1,x\n"]
)
def test_other_files_are_not_ours(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.csv"
    path.write_text(text)
    assert not ncu.sniff(text.encode(), path)
    with contextlib.suppress(UnknownFormat):
        assert registry.detect(path) != "ncu"


def test_a_cut_file(tmp_path: Path) -> None:
    text = simple()
    with pytest.raises(MalformedInput, match="never closed"):
        read_text(tmp_path, text[: text.index("2.50") + 1])
    with pytest.raises(MalformedInput, match="cells"):
        read_text(tmp_path, text + line(launch(0)[:6]))


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"ns"', '"n"s"', "unknown unit"),
        ('"ns"', '"n\x1fs', "lines? "),
        ('"Kbyte","2.50"', '"Kbyte""2.50"', "unknown unit"),
        ('"127.0.0.1","k(int)"', '"127.0.0.1,"k(int)"', r"line \d+: "),
        ('"app"', 'a"pp', r"line \d+: "),
    ],
)
def test_quotes_that_do_not_pair_up(tmp_path: Path, old: str, new: str, says: str) -> None:
    with pytest.raises(MalformedInput, match=says):
        read_text(tmp_path, simple().replace(old, new))


def test_rule_columns_without_a_section(tmp_path: Path) -> None:
    header = [c for c in [*LONG, *RULES] if c != "Section Name"]
    text = line(header) + line([*launch(0), "", "", "", "R", "OPT", "do", "local", "5"])
    text += line([*launch(0), NAME, "ns", "7", "", "", "", "", ""])
    bundle = read_text(tmp_path, text)
    assert [(r["section"], r["rule"], r["speedup"]) for r in bundle.table("rules").to_pylist()] == [("", "R", 5.0)]
    assert metrics(bundle)[NAME]["value"] == 7.0


def test_damaged_gzip(tmp_path: Path) -> None:
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(simple().encode() * 50)[:-40])
    with pytest.raises(MalformedInput, match="gzip"):
        ncu.read([path], {})


def test_a_report_without_ncu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.ncu-rep"
    path.write_bytes(b"NVR\x00" + bytes(100))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert registry.detect(path) == "ncu"
    with pytest.raises(MissingDependency, match="ncu command") as caught:
        ncu.read([path], {})
    assert "ncu --import x.ncu-rep --csv --page raw" in caught.value.hint


def test_a_report_through_ncu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stand-in for ncu that prints a table, or fails as ncu does."""
    page = tmp_path / "page.csv"
    page.write_text("==PROF== from a report\n" + wide_table({NAME: ("ns", ["1,500"])}, [launch(0)]))
    script = tmp_path / "ncu"
    script.write_text(
        f'#!/bin/sh\n[ "$5" = source ] && {{ echo "==ERROR== cannot open" >&2; exit 1; }}\nexec /bin/cat {page}\n'
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path))
    path = tmp_path / "x.ncu-rep"
    path.write_bytes(b"NVR\x00" + bytes(100))
    bundle = ncu.read([path], {})
    assert bundle.table("launches")["duration_ns"].to_pylist() == [1500]
    assert bundle.table("launches")["source"].to_pylist() == ["x.ncu-rep"]
    with pytest.raises(MalformedInput, match="cannot open"):
        ncu.read([path], {"page": "source"})
    with pytest.raises(BadRequest):
        ncu.read([path], {"page": "nonsense"})


# --- large files ------------------------------------------------------------------------------------------------


def test_streaming_gives_the_same_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small blocks, a spill file and streams against everything at once, for each kind of table."""
    from wsformat.converters import spill
    from wsformat.converters.ncu import assemble, decode, runs

    rows = [(launch(i), CLI, f"sm__m{j}.sum", "Kbyte", f"{i},{j:03d}.50") for i in range(1, 60) for j in range(9)]
    wide = {f"sm__w{j}.sum": ("us", [f"{i}.{j:02d}" for i in range(40)]) for j in range(30)}
    text = long_table(rows) + "==PROF== next\n" + wide_table(wide, [launch(i) for i in range(40)])
    text += "".join(block(f"k{i}", [str(i), "7", "12"]) for i in range(30))
    path = tmp_path / "x.csv"
    path.write_text(text)
    whole = ncu.read([path], {}).table("metrics")
    monkeypatch.setattr(decode, "BLOCK_BYTES", 700)
    monkeypatch.setattr(assemble, "IN_MEMORY_ROWS", 0)
    monkeypatch.setattr(runs, "SOURCE_BATCH_BYTES", 300)
    monkeypatch.setattr(spill.Spill.__init__, "__defaults__", (0,))
    seen: list[tuple[int, int]] = []
    streamed = ncu.read([path], {}, progress=lambda what, done, total: seen.append((done, total)))
    assert streamed.data["metrics"].rows == -1
    again = streamed.table("metrics")
    assert again.num_rows == whole.num_rows == 59 * 9 + 40 * 30 + 30 * 3 * 3
    assert again.to_pylist() == whole.to_pylist()
    assert seen[-1][0] == seen[-1][1] == path.stat().st_size
    assert streamed.write(tmp_path / "x.wsformat").table("metrics").to_pylist() == whole.to_pylist()


def test_launches_that_return_later_are_put_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from wsformat.converters.ncu import decode

    monkeypatch.setattr(decode, "BLOCK_BYTES", 600)
    rows = [(launch(i), CLI, f"sm__m{j}.sum", "", str(10 * i + j)) for j in range(8) for i in range(3)]
    bundle = read_text(tmp_path, long_table(rows))
    table = bundle.table("metrics").to_pylist()
    assert [(r["launch"], r["name"]) for r in table] == [(i, f"sm__m{j}.sum") for i in range(3) for j in range(8)]
    assert [r["value"] for r in table] == [10.0 * i + j for i in range(3) for j in range(8)]


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.integers(0, 3), st.integers(0, 10**6), st.integers(0, 400),
    st.sampled_from(['"', ",", "\n", '""', '","', '\n"', '"\n', "==PROF== x\n", "\x00", "\xff", "1,2.3,4", " (1; 2)",
                     "nan", "\r", "\x1f", ";"]),
)  # fmt: skip
def test_damaged_text_is_read_or_refused(tmp_path: Path, what: int, where: int, length: int, insert: str) -> None:
    """Whatever happened to a file: a bundle with unique keys, or one clear line; never a traceback."""
    rows = [(launch(i), "S", name, "Kbyte", f"{i},234.50") for i in (0, 1) for name in ("a__x", "b")]
    text = "==PROF== Connected\n" + long_table(rows)
    text += wide_table({NAME: ("us", ["1.50", "2.50"]), BYTES: ("", ["1 (1; 2)", "3"])}, [launch(0), launch(1)])
    text += block("k", ["1", "2"])
    at = where % len(text)
    before, after = text[:at], text[at + length :]
    damaged = [before, before + after, before + insert + text[at:], before + insert * 3 + after][what]
    path = tmp_path / "x.csv"
    path.write_bytes(damaged.encode("utf-8", "surrogatepass"))
    try:
        bundle = ncu.read([path], {})
    except WsformatError as error:
        said = str(error)
    else:
        said = ""
    assert "\n" not in said
    if said:
        return
    key = ["launch", "scope", "scope_id", "section", "label", "name", "ordinal"]
    keys = [tuple(r[k] for k in key) for r in bundle.table("metrics").to_pylist()]
    assert len(keys) == len(set(keys))
    assert all(r["base_value"] is None or r["null_reason"] == "" for r in bundle.table("metrics").to_pylist())
