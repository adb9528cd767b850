"""The evidence digest: classes, one next edit, its three forms, and the real kernels."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from ncu_text import CLI, capture, launch, long_table, read_text

from wsformat.bundle import Bundle
from wsformat.converters import ncu
from wsformat.errors import BadRequest
from wsformat.metrics import families
from wsformat.tables import read_schema_json, rows_to_table
from wsformat.viewers.digest import NOTHING_LEFT, Digest, add_findings, digest
from wsformat.viewers.digest_rules import rules

E = ".avg.pct_of_peak_sustained_elapsed"
TENSOR, DRAM, L2 = f"sm__pipe_tensor_cycles_active{E}", f"gpu__dram_throughput{E}", f"lts__throughput{E}"
ALU, FMA, XU = f"sm__pipe_alu_cycles_active{E}", f"sm__pipe_fma_cycles_active{E}", f"sm__inst_executed_pipe_xu{E}"
ISSUE, TIME = "smsp__issue_active.avg.pct_of_peak_sustained_active", "gpu__time_duration.sum"
RATIO = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
QUIET: dict[str, Any] = {TENSOR: 1.0, DRAM: 5.0, L2: 6.0, ALU: 4.0, FMA: 3.0, ISSUE: 20.0, TIME: 500_000}


def of(values: dict[str, Any], arch: str = "sm_80", **kw: Any) -> Digest:
    """A digest of the quiet kernel with these values changed."""
    stalls = {} if any("stalled" in name for name in values) else {RATIO.format("wait"): 1.0}
    return digest(ncu.from_values({**QUIET, **stalls, **values}, kernel="void k<1>(int)", arch=arch), **kw)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({TENSOR: 70.0}, "Tensor-pipe-bound"),
        ({DRAM: 75.0}, "Memory-bound"),
        ({L2: 90.0, TENSOR: 68.0}, "Memory-bound"),
        ({f"l1tex__throughput{E}": 80.0}, "Memory-bound"),
        ({FMA: 80.0}, "ALU-bound"),
        ({XU: 65.0}, "ALU-bound"),
        ({ISSUE: 92.0}, "ALU-bound"),
        ({ISSUE: 70.0}, "Latency-bound"),
        ({}, "Latency-bound"),
        ({TIME: 3000}, "Launch-overhead"),
        ({TIME: 3000, DRAM: 75.0}, "Memory-bound"),
        ({TENSOR: 66.0, DRAM: 70.0}, "Mixed"),
        ({TENSOR: 66.0, FMA: 75.9}, "Mixed"),
        ({TENSOR: 66.0, FMA: 76.1}, "ALU-bound"),
    ],
)
def test_classes(values: dict[str, Any], expected: str) -> None:
    made = of(values)
    assert made.bottleneck_class == expected
    assert made.confidence == "High" if expected != "Latency-bound" else made.confidence in ("High", "Medium")
    assert made.next_edit is not None


def test_stall_reasons_never_make_the_class() -> None:
    waiting = {RATIO.format("long_scoreboard"): 50.0, RATIO.format("wait"): 1.0}
    assert of({TENSOR: 75.0, **waiting}).bottleneck_class == "Tensor-pipe-bound"
    assert of(waiting).hypotheses[0].situation == "long_scoreboard"


@pytest.mark.parametrize("metric", [TENSOR, DRAM])
def test_nothing_left_over_85_percent(metric: str) -> None:
    made = of({metric: 85.1})
    assert made.next_edit is None
    assert made.hypotheses == ()
    assert made.markdown().endswith(f"**Next concrete edit**\n{NOTHING_LEFT}\n")
    assert NOTHING_LEFT == "None: no further low-effort optimization"
    assert "Hypotheses" not in made.markdown()
    assert any("assumed" in note for note in made.notes)
    assert made.to_json()["next_edit_text"] == NOTHING_LEFT
    wrong = of({metric: 85.1}, correct=False)
    assert wrong.next_edit is not None
    assert "correct" in wrong.next_edit.change
    assert of({metric: 85.0}).next_edit is not None


def test_exactly_one_edit_and_ranked_hypotheses_that_cite_values() -> None:
    made = of({DRAM: 65.0, RATIO.format("long_scoreboard"): 3.0, RATIO.format("barrier"): 1.0})
    assert [h.situation for h in made.hypotheses][:4] == ["hbm_bound_far"] * 3 + ["long_scoreboard"]
    assert f"{DRAM} 65 %" in made.hypotheses[0].why
    assert made.hypotheses[3].why == f"{RATIO.format('long_scoreboard')}: 75 % of stalls"
    assert "85" in made.hypotheses[0].expected
    text = made.markdown()
    assert text.count("**Next concrete edit**") == 1
    assert text.count("- Change: ") == 1
    assert made.next_edit is not None
    assert made.next_edit.change == rules()["situations"][2]["hypotheses"][0]["edit"]


RUBRIC = {
    "long_scoreboard": 4, "no_instruction": 3, "imc_miss": 2, "drain": 2, "dispatch_stall": 2, "wait": 1, "gmma": 1,
    "barrier": 2, "math_pipe_throttle": 1, "lg_throttle": 1, "mio_throttle": 1, "sleeping": 1, "membar": 1,
    "branch_resolving": 1, "tex_throttle": 1,
}  # fmt: skip


@pytest.mark.parametrize("reason", RUBRIC)
def test_every_reason_has_its_hypotheses(reason: str) -> None:
    made = of({RATIO.format(reason): 9.0, RATIO.format("misc"): 1.0})
    assert len(made.hypotheses) == RUBRIC[reason]
    assert all(f"{RATIO.format(reason)}: 90 % of stalls" in h.why for h in made.hypotheses)
    assert f"{reason} 90 %" in made.top_stall


def test_short_scoreboard_with_and_without_conflicts() -> None:
    stall = {RATIO.format("short_scoreboard"): 9.0}
    conflicts = {"l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum": 40,
                 "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum": 100}  # fmt: skip
    made = of({**stall, **conflicts})
    assert [h.situation for h in made.hypotheses] == ["short_scoreboard_conflicts"] * 3
    assert "conflict_rate 40 %" in made.hypotheses[0].why
    assert "MUFU" in made.top_stall
    conflicts["l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"] = 0
    assert [h.situation for h in of({**stall, **conflicts}).hypotheses] == ["short_scoreboard"]


def test_the_recipes_wording_is_kept_and_corrected() -> None:
    top = of({RATIO.format("imc_miss"): 9.0}).top_stall
    known = rules()["reasons"]["imc_miss"]
    assert known["recipe"] in top
    assert "constant cache" in top
    assert "instruction cache" in of({RATIO.format("no_instruction"): 9.0}).top_stall


def test_stalls_sum_to_100_in_one_family() -> None:
    made = of({RATIO.format("wait"): 2.0, RATIO.format("barrier"): 6.0, RATIO.format("selected"): 1.0,
               "smsp__pcsamp_warps_issue_stalled_membar": 5000})  # fmt: skip
    assert made.stalls == {"barrier": 75.0, "wait": 25.0}
    assert made.stall_family == "issue_ratio"


def test_missing_metrics_are_named_and_lower_the_confidence() -> None:
    bundle = ncu.from_values({DRAM: 75.0, TIME: 500_000}, arch="sm_80")
    made = digest(bundle)
    assert made.confidence == "Low"
    assert "tensor_busy" in made.confidence_why
    assert "stall reasons" in made.confidence_why
    assert made.bottleneck_class == "Memory-bound"
    nothing = digest(ncu.from_values({"launch__grid_size": 5}, arch="sm_80"))
    assert (nothing.bottleneck_class, nothing.confidence) == ("Mixed", "Low")
    assert nothing.next_edit is not None
    assert "Profile again" in nothing.next_edit.change


def test_an_unnamed_bound_is_not_given_a_name() -> None:
    made = digest(ncu.from_values({f"sm__throughput{E}": 97.0, TIME: 500_000}, arch="sm_120"))
    assert (made.bottleneck_class, made.confidence) == ("Mixed", "Low")
    assert "which one is not in this report" in made.confidence_why


def test_one_side_alone_gives_no_class() -> None:
    made = digest(ncu.from_values({f"gpu__compute_memory_throughput{E}": 9.0, TIME: 500_000}, arch="sm_80"))
    assert (made.bottleneck_class, made.confidence) == ("Mixed", "Low")
    assert "no utilisation of the SM" in made.confidence_why
    both = {f"gpu__compute_memory_throughput{E}": 9.0, f"sm__throughput{E}": 49.0, TIME: 500_000}
    made = digest(ncu.from_values(both, arch="sm_80"))
    assert made.bottleneck_class == "Latency-bound"
    assert "sm_busy 49.0 %" in made.bottleneck_why


def test_hopper_barriers_without_a_source_page_are_not_believed() -> None:
    stall = {RATIO.format("barrier"): 9.0}
    made = of(stall, "sm_90")
    assert made.confidence == "Medium"
    assert made.hypotheses[0].situation in ("barrier_unplaced", "tensor_under_used")
    assert "barrier" not in [h.situation for h in made.hypotheses]
    assert of(stall, "sm_80").hypotheses[0].situation == "barrier"


SHAPE = re.compile(
    r"### Profile Evidence Digest: k<1> @ v7\n\n\*\*Environment\*\*\n- GPU: .+ \(sm_80\), driver .+, CUDA .+\n"
    r"- Shapes/dtypes: .+\n- Report: .+\n- CSV: .+\n\n"
    r"\*\*Headline\*\*\n- Bottleneck class: .+\n- Most-stalled reason: .+\n"
    r"- Confidence: (High|Medium|Low) \(.+\)\n\n\*\*Evidence\*\*\n(- .+\n)+\n\*\*Hypotheses \(ranked\)\*\*\n"
    r"(\d+\. Why: .+\n   - Action: .+\n   - Expected impact: .+\n   - Risk/cost: .+\n)+\n\*\*Next concrete edit\*\*\n"
    r"- File: .+\n- Change: [^.]+\.\n- Validation: .+\n"
)


def test_shape_of_the_markdown() -> None:
    made = of({TENSOR: 70.0}, version="v7", source="gemm.cu")
    assert SHAPE.fullmatch(made.markdown())
    assert "- File: gemm.cu\n" in made.markdown()
    assert f"- `{TENSOR}` = 70 % (70.0 % of peak): heavily used" in made.markdown()
    assert "- File: unknown" in of({TENSOR: 70.0}).markdown()


def test_json_and_findings() -> None:
    bundle = ncu.from_values({**QUIET, TENSOR: 70.0}, kernel="k", arch="sm_80")
    made = digest(bundle)
    data = json.loads(json.dumps(made.to_json()))
    assert data["bottleneck_class"] == "Tensor-pipe-bound"
    assert data["evidence"][0]["metric"] == TENSOR
    assert data["next_edit"]["change"] == made.next_edit.change if made.next_edit else None
    rows = add_findings(bundle, made).table("findings").to_pylist()
    assert {r["capture_id"] for r in rows} == set(bundle.table("captures")["capture_id"].to_pylist())
    assert [r["text"] for r in rows if r["verdict"] == "next edit"] == [data["next_edit"]["change"]]
    proof = json.loads(next(r["evidence"] for r in rows if r["verdict"] == "tensor_busy"))
    assert proof == {"table": "metrics", "metric": TENSOR, "launch": 0, "value": 70.0}


def test_one_kernel_at_a_time(tmp_path: Path) -> None:
    rows = [
        (launch(i, kernel=k), CLI, TIME, "ns", str(d))
        for i, (k, d) in enumerate([("a", 5), ("b", 9), ("b", 7), ("b", 8)])
    ]
    bundle = read_text(tmp_path, long_table(rows))
    with pytest.raises(BadRequest, match="2 kernels match, one is needed: a; b") as caught:
        digest(bundle)
    assert "--kernel" in caught.value.hint
    assert digest(bundle, kernel="^b$").launch == 3
    assert digest(bundle, launch=2).launch == 2
    for wrong in ({"kernel": "zzz"}, {"launch": 9}, {"kernel": "("}):
        with pytest.raises(BadRequest):
            digest(bundle, **wrong)  # type: ignore[arg-type]
    with pytest.raises(BadRequest, match="no counters"):
        digest(Bundle.from_tables({"captures": [{"capture_id": "0" * 26}]}))


def test_a_summary_of_several_launches(tmp_path: Path) -> None:
    head = (
        '"Process ID","Kernel Name","Block Size","Grid Size","Device","CC","Invocations","Metric Name","Metric Unit",'
    )
    head += '"Minimum","Maximum","Average"\n'
    row = '"9","k","(32, 1, 1)","(2, 1, 1)","0","8.0","3","{}","%","1.00","99.00","70.00"\n'
    made = digest(read_text(tmp_path, head + row.format(DRAM)))
    assert made.bottleneck_class == "Memory-bound"
    assert made.values["dram_busy"] == 70.0


# --- source page ------------------------------------------------------------------------------------------------

CODE = [
    ("SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R1], R2", {}),
    ("@!P0  BRA 0x0", {"stall_long_sb": 40}),
    ("HGMMA.64x128x16.F32.BF16 R24, gdesc[UR16], R24, gsb0", {"stall_math": 5, "stall_selected": 50}),
    ("WARPGROUP.DEPBAR.LE gsb0, 0x0", {"stall_barrier": 50}),
    ("BAR.SYNC.DEFER_BLOCKING 0x0", {}),
    ("FADD R1, R1, R2", {"stall_barrier": 5}),
    ("EXIT", {"stall_barrier": 300}),
    ("BRA 0x70", {"stall_no_inst": 7}),
]


def source_page(kernel: str) -> str:
    names = sorted({name for _, stalls in CODE for name in stalls})
    text = (
        f'"Kernel Name","{kernel}",\n"File Path","src/k.cu",\n'
        + ",".join(f'"{n}"' for n in ["Address", "Source", *names])
        + "\n"
    )
    for number, (code, stalls) in enumerate(CODE):
        cells = [f"0x{16 * number:x}", f"      {code}", *(str(stalls.get(n, 0)) for n in names)]
        text += ",".join(f'"{c}"' for c in cells) + "\n"
    return text


def test_parked_warps_are_dropped_and_waits_are_placed(tmp_path: Path) -> None:
    (tmp_path / "source.csv").write_text(source_page("void k<(bool)1>(int)"))
    rows = [
        (launch(0, kernel="void k<1>(int)"), CLI, TENSOR, "%", "40.00"),
        (launch(0, kernel="void k<1>(int)"), CLI, RATIO.format("barrier"), "inst", "9.00"),
    ]
    (tmp_path / "metrics.csv").write_text(long_table(rows))
    made = digest(ncu.read([tmp_path / "metrics.csv", tmp_path / "source.csv"], {}))
    assert made.stall_family == "source_page"
    assert made.stalls == {
        "wgmma_drain": 50.0,
        "mbarrier_wait": 40.0,
        "math_pipe_throttle": 5.0,
        "cta_barrier": 5.0,
    } or (made.stalls == {"wgmma_drain": 50.0, "mbarrier_wait": 40.0, "cta_barrier": 5.0, "math_pipe_throttle": 5.0})
    assert "75 % of the stalled samples are parked" in made.top_stall
    assert made.next_edit is not None
    assert made.next_edit.file == "src/k.cu"
    assert any("MMA" in note for note in made.notes)


# --- rules as data ------------------------------------------------------------------------------------------------


def test_rules_speak_of_known_things() -> None:
    known = rules()
    quantities = set(families()["quantities"])
    derived = {"busiest", "conflict_rate", "l2_over_dram", "l1_over_l2", "alu_group", "has_source", "warpgroup_mma"}
    reasons = set(families()["stall_reasons"]) | {"wgmma_drain", "mbarrier_wait", "cta_barrier"}
    ids = [s["id"] for s in known["situations"]]
    assert len(ids) == len(set(ids))
    for s in known["situations"]:
        assert set(s.get("class", [])) <= set(known["classes"])
        assert s.get("stall", "wait") in reasons
        for fact, op, number in [*s.get("when", []), *s.get("any", [])]:
            assert fact in quantities | derived, fact
            assert op in (">=", "<", ">", "<=")
            assert isinstance(number, int | float)
        for cite in s.get("cites", []):
            assert cite in quantities | derived or cite.startswith("place.")
        for h in s["hypotheses"]:
            assert {"action", "edit", "impact", "risk"} == set(h)
            assert h["edit"].endswith(".")
            assert h["edit"].count(". ") == 0
            (kind,) = {"raise", "lower", "cut"} & set(h["impact"])
            target = h["impact"][kind]
            assert target in (reasons if kind == "cut" else quantities | derived)
    assert set(known["core"]) <= quantities
    for group in known["groups"]:
        assert group["class"] in known["classes"]
        assert set(group["quantities"]) <= quantities
    for wanted in known["collect"].values():
        assert set(wanted) <= quantities
    assert read_schema_json("digest_rules.json") == known


# --- timeline -----------------------------------------------------------------------------------------------------


def test_a_timeline_in_the_bundle_is_used() -> None:
    values = ncu.from_values(QUIET, kernel="k", arch="sm_90")
    capture = values.table("captures")["capture_id"][0].as_py()
    base = {"capture_id": capture, "launch": 0, "cta": 0, "sm": 0, "clock": 0}
    lanes = [
        {**base, "lane": i, "warp": 4 * i, "role": r, "kind": "warp"} for i, r in enumerate(["producer", "consumer"])
    ]
    spans = [(0, "producer", "load", 0, 90), (1, "consumer", "wait_full", 0, 80), (1, "consumer", "mma", 80, 100)]
    extra = {
        "lanes": lanes,
        "clocks": [{"capture_id": capture, "clock": 0, "scope": "sm", "unit": "cycle"}],
        "roles": [{"capture_id": capture, "role": r, "role_index": i} for i, r in enumerate(["producer", "consumer"])],
        "span_types": [
            {"capture_id": capture, "role": role, "span": span, "state": "stall" if span == "wait_full" else "active",
             "wait_on": "barrier" if span == "wait_full" else "", "barrier": "full" if span == "wait_full" else ""}
            for _, role, span, _, _ in spans
        ],
        "spans": [
            {**base, "span_id": i, "lane": lane, "end_lane": lane, "warp": 4 * lane, "role": role, "span": span,
             "tile": 0, "iteration": 0, "t0": t0, "t1": t1, "complete": True}
            for i, (lane, role, span, t0, t1) in enumerate(spans)
        ],
    }  # fmt: skip
    made = digest(values.with_tables({name: rows_to_table(name, rows) for name, rows in extra.items()}))
    assert any(line.startswith("consumer: stall 80 % of its extent") for line in made.timeline)
    assert "- Timeline: consumer: stall 80 %" in made.markdown()


# --- real kernels --------------------------------------------------------------------------------------------------


def real(*names: str, **kw: Any) -> Digest:
    return digest(ncu.read([capture(name) for name in names], {}), **kw)


def test_gemm_on_a_full_grid() -> None:
    made = real("gemm_grid.raw.base.csv", "gemm_grid.source.csv.gz", kernel="gemm<0>")
    assert (made.bottleneck_class, made.confidence) == ("Memory-bound", "High")
    assert made.values["l2_busy"] == pytest.approx(91.9, abs=0.5)
    assert made.hypotheses[0].situation == "l2_bound"
    assert "multicast" in made.next_edit.change if made.next_edit else False
    assert next(iter(made.stalls)) == "wgmma_drain"
    assert "29 % of the stalled samples are parked" in made.top_stall
    assert "Low" not in made.confidence


def test_the_same_gemm_without_its_source_page() -> None:
    made = real("gemm_grid.raw.base.csv", launch=1)
    assert (made.bottleneck_class, made.confidence) == ("Memory-bound", "Medium")
    assert next(iter(made.stalls.items())) == ("barrier", pytest.approx(64.7, abs=0.5))
    assert "source page" in made.confidence_why


def test_gemm_on_one_cta() -> None:
    made = real("gemm_single.raw.csv", launch=1)
    assert made.bottleneck_class == "Latency-bound"
    assert made.hypotheses[0].situation == "empty_gpu"


def test_attention() -> None:
    made = real("fmha_hopper.raw.csv")
    assert (made.bottleneck_class, made.confidence) == ("Latency-bound", "Medium")
    assert made.hypotheses[0].situation == "tensor_under_used"
    assert "close to the 60 %" in made.confidence_why


def test_the_recipes_own_metrics() -> None:
    made = real("seed_metrics.mixed_stdout.csv", launch=1)
    assert (made.bottleneck_class, made.confidence) == ("Memory-bound", "Low")
    assert "no chip has this name" in made.top_stall
    assert any(note.startswith("Not used: sm__inst_executed_pipe_tensor") for note in made.notes)


@pytest.mark.parametrize("number", [9, 10, 11, 12, 13, 14, 17, 18, 25, 26, 29])
def test_other_peoples_reports_give_a_digest(public: Path, number: int) -> None:
    (path,) = (public / "ncu_csv").glob(f"{number:02d}_*")
    made = digest(ncu.read([path], {}))
    expected = {9: "Launch-overhead", 10: "Launch-overhead", 14: "Launch-overhead", 29: "Latency-bound"}
    assert made.bottleneck_class == expected.get(number, made.bottleneck_class)
    assert made.confidence in ("Medium", "Low")
    assert made.markdown().count("**Next concrete edit**") == 1


def test_captures_that_were_merged_keep_their_launches_apart() -> None:
    one = ncu.from_values({**QUIET, TENSOR: 70.0}, kernel="k", arch="sm_80")
    two = ncu.from_values({**QUIET, DRAM: 75.0}, kernel="other", arch="sm_90")
    both = one.with_tables(
        {
            name: one.table(name).to_pylist() + two.table(name).to_pylist()
            for name in ("captures", "launches", "metrics")
        }
    )
    assert digest(both, kernel="^k$").bottleneck_class == "Tensor-pipe-bound"
    made = digest(both, kernel="other")
    assert (made.bottleneck_class, made.environment["arch"]) == ("Memory-bound", "sm_90")
    with pytest.raises(BadRequest, match="2 captures have a launch 0"):
        digest(both, launch=0)
    assert digest(both, kernel="other", launch=0).bottleneck_class == "Memory-bound"
