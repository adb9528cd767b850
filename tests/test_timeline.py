"""The timeline draws exactly what the bundle says, and says what it leaves out."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import pytest
import timeline_case as case

from wsformat.bundle import Bundle
from wsformat.errors import BadRequest, MissingDependency
from wsformat.viewers import timeline_data, timeline_select
from wsformat.viewers.timeline import timeline

pytest.importorskip("altair")
pytest.importorskip("vl_convert")

ROLES = ("producer", "consumer0", "consumer1")
# (stall, active, untracked) of the real capture balanced_r0 as its documentation states them, in cycles.
BALANCED = {"producer": (15_750, 18_849, 13_605), "consumer0": (8_947, 28_842, 14_062),
            "consumer1": (8_432, 33_455, 10_745)}  # fmt: skip


@pytest.fixture(scope="module")
def balanced() -> Bundle:
    from importlib.resources import as_file, files

    from wsformat.converters.registry import import_files

    with as_file(files("wsformat.samples")) as folder:
        options = {"spec": folder / "gemm_roles.json", "meta": [folder / "balanced_r0.meta"], "trip_count": 64}
        made: Bundle = import_files([folder / "balanced_r0.i32"], options)
        return Bundle.from_tables({name: made.table(name) for name in made.data})


def layers(made: Any) -> dict[str, list[dict[str, Any]]]:
    return case.named_layers(made.spec)


def test_every_span_of_a_real_capture_is_drawn_once(balanced: Bundle) -> None:
    made = timeline(balanced, arrows="none")
    marks = layers(made)
    groups = case.svg_groups(made.svg)
    # 64 iterations: one wait and one work a role, and an epilogue of each consumer.
    assert len(marks["stall"]) == len(groups["stall"]) == 3 * 64
    assert len(marks["active"]) == len(groups["active"]) == 3 * 64 + 2
    assert len(marks["marker_head"]) == len(groups["marker_head"]) == 2 * 64  # the consumers' arrive
    assert marks["arrow"] == marks["orphan"] == marks["open_span"] == marks["no_stamps"] == []


def test_drawn_states_add_up_to_the_documented_accounting(balanced: Bundle) -> None:
    """Stall over active over untracked, recomputed tick by tick from the rectangles alone."""
    marks = layers(timeline(balanced, arrows="none"))
    for role in ROLES:
        drawn = {
            name: case.covered((m["x0"], m["x1"]) for m in marks[name] if m["Row"] == role)
            for name in ("stall", "active", "untracked")
        }
        stall, active, untracked = BALANCED[role]
        assert len(drawn["stall"]) == stall
        assert len(drawn["active"] - drawn["stall"]) == active
        assert len(drawn["untracked"]) == untracked
        assert not drawn["untracked"] & (drawn["stall"] | drawn["active"])


def test_shares_beside_the_rows_are_those_of_the_whole_lane(balanced: Bundle) -> None:
    for window in (None, "24:30"):
        marks = layers(timeline(balanced, iterations=window))
        assert [m["text"] for m in marks["share_stall"]] == ["33 %", "17 %", "16 %"]
        assert [m["text"] for m in marks["share_active"]] == ["39 %", "56 %", "64 %"]
        assert [m["text"] for m in marks["share_untracked"]] == ["28 %", "27 %", "20 %"]


def test_window_by_iterations_holds_what_touches_it(balanced: Bundle) -> None:
    made = timeline(balanced, iterations="24:30", arrows="none")
    t = {(r["role"], r["event"], r["iteration"]): r["t"] for r in balanced.table("events").to_pylist()}
    zero = min(t.values())
    inside = [v - zero for (_, event, i), v in t.items() if 24 <= i < 30 and not event.startswith("epilogue")]
    window = made.content.window
    assert (window.start, window.end) == (min(inside), max(inside))
    for name, begin, end in (("stall", "wait_enter", "wait_exit"), ("active", "work_begin", "work_end")):
        expected = {
            (role, i, t[role, begin, i] - zero, t[role, end, i] - zero)
            for role in ROLES
            for i in range(64)
            if t[role, begin, i] - zero <= window.end and t[role, end, i] - zero >= window.start
        }
        found = [(m["Row"], m["Iteration"], m["x0"], m["x1"]) for m in layers(made)[name]]
        assert len(found) == len(set(found))
        assert set(found) == expected
        assert len(case.svg_groups(made.svg)[name]) == len(expected)


def test_arrows_go_from_the_signal_to_the_end_of_the_wait() -> None:
    made = timeline(case.bundle(trips=6), arrows="binding")
    arrows: dict[int, list[dict[str, Any]]] = {}
    for point in layers(made)["arrow"] + layers(made)["light_arrow"]:
        arrows.setdefault(point["arrow"], []).append(point)
    ends = {
        (points[0]["kind"], points[0]["x"], points[-1]["x"])
        for points in (sorted(p, key=lambda m: m["nth"]) for p in arrows.values())
    }
    blocked = {("blocked", 100 * i + 60, 100 * i + 70) for i in range(6)}
    satisfied = {("satisfied", 100 * (i - 2) + 125, 100 * i + 10) for i in range(2, 6)}
    assert ends == blocked | satisfied
    heads = layers(made)["arrow_head_down"] + layers(made)["arrow_head_up"]
    assert sorted(m["x"] for m in heads) == sorted(x for _, _, x in ends)
    assert {m["x"] for m in layers(made)["arrow_head_down"]} == {x for _, _, x in blocked}  # the consumer is below
    assert len(case.svg_groups(made.svg)["arrow_head_up"]) == 4


def test_signals_that_did_not_bind_are_drawn_lightly_when_asked() -> None:
    data = case.tables(trips=5)
    data["dependencies"].append(
        {**data["dependencies"][0], "producer_event": "work_begin", "barrier": "early"}
    )  # at 100i+10, long before work_end
    plain, full = (layers(timeline(Bundle.from_tables(data), arrows=which)) for which in ("binding", "all"))
    other = [m for m in full["light_arrow"] if m["kind"] == "other" and m["nth"] == 0]
    assert [m["x"] for m in sorted(other, key=lambda m: m["x"])] == [100 * i + 10 for i in range(5)]
    assert {m["dash"] for m in other} == {"dashed"}
    assert not [m for m in plain["light_arrow"] if m["kind"] == "other"]
    assert len(full["arrow"]) == len(plain["arrow"]) == 4 * 5
    assert layers(timeline(Bundle.from_tables(data), arrows="none"))["arrow"] == []


def test_too_many_arrows_leave_those_of_the_longest_waits_and_say_so() -> None:
    data = case.tables(trips=60)
    for row in data["events"]:  # the consumer waits longer in the odd iterations
        if row["event"] == "wait_begin" and row["role"] == "consumer" and row["iteration"] % 2:
            row["t"] -= 20
    made = timeline(Bundle.from_tables(data))
    shown = timeline_data.FEW_ARROWS
    assert f"{shown} of 118 binding arrows drawn: those into the longest blocked waits." in made.notes
    drawn = {m["x"] for m in layers(made)["arrow"] if m["nth"] == 3}
    assert len(drawn) == shown
    assert {(x - 70) // 100 % 2 for x in drawn} == {1}
    assert any("118 binding arrows" in text for text in case.texts(made.svg))


def test_recorded_edges_are_drawn() -> None:
    data = case.tables()
    data["edges"] = [{"capture_id": case.CAPTURE, "edge_id": 0, "kind": "flow", "native_id": "9", "from_lane": 0,
                      "from_t": case.BASE + 60, "to_lane": 1, "to_t": case.BASE + 170, "from_span_id": -1,
                      "to_span_id": -1}]  # fmt: skip
    made = layers(timeline(Bundle.from_tables(data)))
    recorded = sorted((m for m in made["light_arrow"] if m["kind"] == "recorded"), key=lambda m: m["nth"])
    assert [m["x"] for m in recorded] == [60, 60, 170, 170]


def test_raw_ticks_keep_every_digit() -> None:
    stall = layers(timeline(case.bundle()))["stall"]
    assert stall[0]["Raw ticks"] == f"{case.BASE} to {case.BASE + 10} (clock 0)"
    assert stall[0]["Length"] == "10 cycles"
    assert stall[0]["In ns"] == "5.0 ns"
    blocked = next(m for m in stall if m["Row"] == "consumer" and m["Iteration"] == 3)
    assert blocked["Bound by"] == "producer work_end, iteration 3"
    assert blocked["Verdict"].startswith("producer late")


def test_second_axis_in_ns_only_where_anchors_allow() -> None:
    with_anchors, without = (timeline(case.bundle(anchors=a)) for a in (True, False))
    assert with_anchors.selection.axis.ns_per_tick == 0.5
    assert any(text.startswith("ns (clock at 2.000 GHz") for text in case.texts(with_anchors.svg))
    assert not any(text.startswith("ns (") for text in case.texts(without.svg))
    assert "In ns" not in layers(without)["stall"][0]
    assert "cycles since the CTA's first stamp" in case.texts(without.svg)
    # The ticks of the second axis are round ns: 0, 100, 200, ... at 0, 200, 400, ... cycles.
    assert {"0", "100", "200", "300"} <= set(case.texts(with_anchors.svg))


def test_ctas_on_clocks_joined_by_anchors_share_an_axis_in_ns() -> None:
    bundle = case.bundle(ctas=3)
    made = timeline(bundle)
    assert (made.selection.axis.unit, made.selection.axis.kind) == ("ns", "mapped")
    rows = bundle.sql(
        "SELECT lane, span, iteration, ns0, ns1, error_ns FROM timeline_ns ORDER BY lane, span, iteration"
    ).to_pylist()
    first = min(row["ns0"] for row in rows)
    expected = sorted((row["ns0"] - first, row["ns1"] - first) for row in rows)
    marks = layers(made)
    assert sorted((m["x0"], m["x1"]) for m in marks["stall"] + marks["active"]) == expected
    assert made.selection.axis.error_ns == max(row["error_ns"] for row in rows)
    title = next(text for text in case.texts(made.svg) if text.startswith("ns since"))
    # A bound is rounded up, to whole ns: more digits would claim what nobody measured.
    bound = math.ceil(made.selection.axis.error_ns)
    assert title.endswith(f"joined by anchors, ±{bound} ns)")
    assert [m["text"] for m in marks["headings"]] == [f"CTA {n} · SM {n}" for n in range(3)]
    # CTA 1 starts 40 ns after CTA 0, though its raw ticks are a billion apart.
    starts = {m["Raw ticks"].rsplit("clock ", 1)[1]: m["x0"] for m in reversed(marks["stall"])}
    assert starts["0)"] == 0
    assert starts["1)"] == 40


def test_ctas_on_clocks_without_anchors_are_never_compared() -> None:
    made = timeline(case.bundle(ctas=3, anchors=False))
    assert made.selection.axis.kind == "own"
    firsts: dict[str, int] = {}
    for mark in layers(made)["stall"]:
        clock = mark["Raw ticks"].rsplit("clock ", 1)[1]
        firsts[clock] = min(firsts.get(clock, 10**9), mark["x0"])
    assert firsts == {"0)": 0, "1)": 0, "2)": 0}
    assert "cycles since each CTA's own first stamp" in case.texts(made.svg)
    assert any("every CTA has its own zero" in note for note in made.notes)


def test_launches_keep_their_own_zero() -> None:
    made = timeline(case.bundle(launches=2), launch=[0, 1])
    assert [m["text"] for m in layers(made)["headings"]] == ["launch 0 · CTA 0 · SM 0", "launch 1 · CTA 0 · SM 0"]
    assert min(m["x0"] for m in layers(made)["stall"] if "clock 1" in m["Raw ticks"]) == 0
    assert "cycles since each launch's own first stamp" in case.texts(made.svg)
    assert "Only launch 0 of 2 launches is shown." in timeline(case.bundle(launches=2)).notes


def test_clocks_of_different_units_are_refused() -> None:
    data = case.tables(ctas=2, anchors=False)
    data["clocks"][1]["unit"] = "tick"
    with pytest.raises(BadRequest, match="clocks of different units"):
        timeline(Bundle.from_tables(data))
    assert timeline(Bundle.from_tables(data), cta=1).selection.axis.unit == "tick"


def test_zero_does_not_move_with_the_choice_of_roles() -> None:
    made = timeline(case.bundle(), roles=["consumer"])
    assert min(m["x0"] for m in layers(made)["stall"]) == 50
    assert {m["text"] for m in layers(made)["row_names"]} == {"consumer"}
    assert layers(made)["arrow"] == []  # their producer is not shown


def test_roles_without_stamps_are_drawn_as_such() -> None:
    data = case.tables()
    case.add_role(data, "epilogue", [], [])
    case.add_role(data, "scheduler", [], [], lane=False)
    made = timeline(Bundle.from_tables(data))
    assert [m["text"] for m in layers(made)["no_stamps"]] == ["no stamps", "no stamps"]
    assert [m["text"] for m in layers(made)["row_names"]] == ["producer", "consumer", "epilogue", "scheduler"]
    assert case.texts(made.svg).count("no stamps") == 2


def test_warps_without_role_and_stamps_are_counted_not_drawn() -> None:
    data = case.tables()
    data["lanes"].append({"capture_id": case.CAPTURE, "lane": 2, "launch": 0, "cta": 0, "kind": "warp", "clock": 0})
    made = timeline(Bundle.from_tables(data))
    assert "1 recorders without a role wrote no stamps and are not drawn." in made.notes
    assert len(made.selection.rows) == 2


def test_async_and_scope_are_thin_and_no_states() -> None:
    data = case.tables()
    stamps = [("a0", 0, 5), ("a1", 0, 400), ("s0", 0, 0), ("s1", 0, 700), ("w0", 0, 10), ("w1", 0, 20)]
    case.add_role(data, "mma", stamps, [
        {"span": "wgmma", "state": "async", "begin_event": "a0", "end_event": "a1"},
        {"span": "tile", "state": "scope", "begin_event": "s0", "end_event": "s1"},
        {"span": "issue", "state": "active", "begin_event": "w0", "end_event": "w1", "contains_wait": True},
    ])  # fmt: skip
    marks = layers(timeline(Bundle.from_tables(data)))
    (thin,), (scope,) = marks["async"], marks["scope"]
    (issue,) = (m for m in marks["active"] if m["Row"] == "mma")
    assert (thin["x0"], thin["x1"], scope["x0"], scope["x1"]) == (5, 400, 0, 700)
    for mark in (thin, scope):
        assert mark["y"] >= issue["y1"]  # under the bar, not in it
        assert mark["y1"] - mark["y"] < (issue["y1"] - issue["y"]) / 3
    assert thin["y"] != scope["y"]
    assert [(m["x0"], m["x1"]) for m in marks["hides_wait"]] == [(10, 20)]
    untracked = case.covered((m["x0"], m["x1"]) for m in marks["untracked"] if m["Row"] == "mma")
    assert untracked == set(range(700)) - set(range(10, 20))


def test_what_made_no_span_is_marked() -> None:
    data = case.tables(trips=3)
    data["events"] = [r for r in data["events"] if not (r["role"] == "consumer" and r["event"] == "work_end"
                                                        and r["iteration"] == 1)]  # fmt: skip
    marks = layers(timeline(Bundle.from_tables(data)))
    (orphan,) = marks["orphan"]
    assert (orphan["x"], orphan["Event"], orphan["Remark"]) == (170, "work_begin", "made no span work: no end")
    assert len(marks["active"]) == 2 * 3 - 1


def test_spans_without_their_own_end_are_open() -> None:
    data = case.tables(trips=3)
    here = {"capture_id": case.CAPTURE, "launch": 0, "cta": 0, "clock": 0, "role": "producer", "lane": 0,
            "iteration": 0, "tile": 0}  # fmt: skip
    data["spans"] = [
        {**here, "span_id": 0, "end_lane": 0, "span": "cut", "t0": case.BASE + 20, "t1": case.BASE + 260,
         "complete": False},
        {**here, "span_id": 1, "end_lane": 1, "span": "hand", "t0": case.BASE + 30, "t1": case.BASE + 200,
         "complete": True},
    ]  # fmt: skip
    data["span_types"] += [
        {"capture_id": case.CAPTURE, "role": "producer", "span": s, "state": "active"} for s in ("cut", "hand")
    ]
    marks = layers(timeline(Bundle.from_tables(data)))
    remarks = {m["Span"]: m["Remark"] for m in marks["open_span"]}
    assert remarks == {"cut": "its end was not recorded", "hand": "ends on another lane"}
    assert len(marks["active"]) == 2 * 3


def test_a_truncated_lane_shows_where_its_record_ends() -> None:
    data = case.tables(trips=8)
    data["launches"][0] |= {"slots": 8, "trip_count": 40}
    data["captures"][0]["completeness"] = "truncated"
    for row in data["lanes"]:
        row |= {"completeness": "truncated", "records_lost": 128}
    here = {**data["events"][0], "lane": 1, "role": "consumer", "iteration": 0}
    data["events"] += [{**here, "event": e, "t": case.BASE + t} for e, t in (("epi_begin", 4_000), ("epi_end", 4_050))]
    data["event_types"] += [{"capture_id": case.CAPTURE, "role": "consumer", "event": e, "loop": "once"}
                            for e in ("epi_begin", "epi_end")]  # fmt: skip
    data["span_types"].append({"capture_id": case.CAPTURE, "role": "consumer", "span": "epilogue", "state": "active",
                               "begin_event": "epi_begin", "end_event": "epi_end", "loop": "once"})  # fmt: skip
    bundle = Bundle.from_tables(data)
    made = timeline(bundle)
    marks = layers(made)
    assert [m["x"] for m in marks["record_end"]] == [760, 825]
    assert {m["text"] for m in marks["record_end_text"]} == {"record ends"}
    assert [(m["x0"], m["x1"], m["Remark"]) for m in marks["open_span"]] == [
        (4_000, 4_050, "after the recorded window, counts in no state")
    ]
    assert max(m["x1"] for m in marks["untracked"]) <= 825  # nothing is claimed after the record
    states = {r["role"]: r for r in bundle.sql("SELECT * FROM role_state").to_pylist()}
    for role, row in states.items():
        for state in ("stall", "active", "untracked"):
            drawn = case.covered((m["x0"], m["x1"]) for m in marks[state] if m["Row"] == role)
            assert len(drawn) == row[state]
    assert "TRUNCATED" in made.title[-1]
    assert [m["text"] for m in marks["row_remarks"]] == ["truncated, 128 lost"] * 2


@pytest.mark.parametrize(
    ("state", "words"),
    [("complete", "record complete"), ("sampled", "record sampled on purpose"), ("unknown", "completeness unknown")],
)
def test_title_says_device_kernel_completeness_and_perturbation(state: str, words: str) -> None:
    data = case.tables()
    data["captures"][0]["completeness"] = state
    made = timeline(Bundle.from_tables(data))
    drawn = " ".join(case.texts(made.svg))
    for part in ("ring · by hand", "NVIDIA H200", words, "perturbation unknown: no clean launches", "launch 0 · CTA 0"):
        assert part in drawn


def test_title_gives_the_perturbation_where_it_was_measured() -> None:
    data = case.tables()
    data["captures"][0]["experiment"] = "e"
    clean = "c1ea" + "0" * 22
    data["captures"].append({**data["captures"][0], "capture_id": clean, "kind": "clean", "label": "clean"})
    base = {"status": "ok", "grid_x": 1, "grid_y": 1, "grid_z": 1, "tool": "stamps"}
    data["launches"] = [{**data["launches"][0], "status": "ok"}]
    for capture, kind, ticks in ((case.CAPTURE, "stamped", 120), (clean, "clean", 100)):
        for n, trips in enumerate((4, 8)):
            launch = {**base, "capture_id": capture, "launch": 10 + n, "kind": kind, "trip_count": trips, "slots": 8}
            data["launches"].append(launch)
            data["clocks"].append({"capture_id": capture, "clock": 90 + n, "unit": "cycle", "scope": "sm", "sm": 0})
            data["lanes"].append({"capture_id": capture, "lane": 90 + n, "launch": 10 + n, "cta": 0, "kind": "cta",
                                  "clock": 90 + n, "t_start": 1_000, "t_end": 1_000 + 500 + ticks * trips})  # fmt: skip
    drawn = " ".join(case.texts(timeline(Bundle.from_tables(data)).svg))
    assert "perturbation +20.0 % (120.0 stamped, 100.0 clean cycles an iteration by slope)" in drawn


def test_a_large_bundle_is_cut_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline_data, "MAX_MARKS", 400)
    made = timeline(case.bundle(trips=500))
    marks = layers(made)
    drawn = sum(len(marks[name]) for name in ("stall", "active", "marker_head"))
    assert 200 < drawn <= 400
    window = made.content.window
    assert window.iterations is not None
    assert window.iterations[0] == 0
    first, end = window.iterations
    assert {m["Iteration"] for m in marks["stall"]} >= set(range(first, end))
    assert any(note.startswith(f"Cut to iterations 0:{end}:") for note in made.notes)
    assert any("marks, more than the 400" in text for text in case.texts(made.svg))
    later = timeline(case.bundle(trips=500), iterations="480:500")
    assert {m["Iteration"] for m in layers(later)["stall"]} >= set(range(480, 500))
    assert not any("Cut" in note for note in later.notes)


def test_of_a_large_grid_the_first_cta_is_drawn_and_rows_are_capped(monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = case.bundle(trips=2, ctas=9)
    assert "Only CTA 0 of 9 CTAs is shown." in timeline(bundle).notes
    assert {row.cta for row in timeline(bundle, cta=[3, 8]).selection.rows} == {3, 8}
    monkeypatch.setattr(timeline_select, "MAX_ROWS", 5)
    made = timeline(bundle, cta=range(9))
    assert len(made.selection.rows) == 4
    assert "Only the first 4 of 18 rows are shown." in made.notes


def test_first_of_several_captures(balanced: Bundle) -> None:
    data = case.tables()
    other = [{**row, "capture_id": "f" * 26} for row in data["captures"]]
    more = {name: [*rows, *({**r, "capture_id": "f" * 26} for r in rows)] for name, rows in data.items()}
    more["captures"] = [*data["captures"], *other]
    made = timeline(Bundle.from_tables(more))
    assert f"Only capture {case.CAPTURE} of 2 captures is shown." in made.notes
    assert len(layers(made)["stall"]) == 16
    assert timeline(Bundle.from_tables(more), capture_id="f" * 26).selection.capture["capture_id"] == "f" * 26


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"capture_id": "nope"}, "no capture 'nope'"),
        ({"launch": 7}, "no stamps of launch 7"),
        ({"cta": 7}, "no stamps of CTA 7"),
        ({"cta": []}, "no cta chosen"),
        ({"roles": ["mma"]}, "no role 'mma'"),
        ({"start": 500, "end": 500}, "is empty"),
        ({"start": 500, "end": 100}, "is empty"),
        ({"start": 5_000}, "is empty|nothing was recorded"),
        ({"start": 5_000, "end": 6_000}, "nothing was recorded"),
        ({"end": -1}, "is empty|nothing was recorded"),
        ({"iterations": "3:3"}, "the range is empty"),
        ({"iterations": "-1:3"}, "the range is empty"),
        ({"iterations": "3"}, "expected A:B"),
        ({"iterations": "a:b"}, "expected A:B"),
        ({"iterations": "90:95"}, "no stamps of iterations 90:95"),
        ({"iterations": "2:4", "start": 3}, "by iterations and one by time"),
        ({"arrows": "some"}, "expected one of binding, all, none"),
        ({"width": 100}, "expected 320 to 4000"),
    ],
)
def test_bad_requests_are_one_clear_line(options: dict[str, Any], message: str) -> None:
    with pytest.raises(BadRequest, match=message) as caught:
        timeline(case.bundle(), **options)
    assert "\n" not in caught.value.message


def test_a_bundle_without_stamps_is_a_clear_error() -> None:
    with pytest.raises(BadRequest, match="no stamps and no spans in this bundle"):
        timeline(Bundle.from_tables({}))
    data = case.tables()
    data["captures"].append({"capture_id": "a" * 26, "kind": "profiled"})
    with pytest.raises(BadRequest, match="has no stamps and no spans"):
        timeline(Bundle.from_tables(data), capture_id="a" * 26)
    silent = case.tables()
    case.add_role(silent, "idle", [], [])
    with pytest.raises(BadRequest, match="have no stamps"):
        timeline(Bundle.from_tables(silent), roles=["idle"])


@pytest.mark.parametrize("package", ["altair", "vl_convert"])
def test_without_the_extra_the_hint_names_it(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependency) as caught:
        timeline(case.bundle())
    assert "wsformat[view]" in caught.value.hint
    assert package.replace("_", "-") in caught.value.message


def test_the_module_itself_needs_no_extra(root: Path) -> None:
    import subprocess

    code = "import sys; sys.modules['altair'] = sys.modules['vl_convert'] = None; import wsformat.viewers.timeline"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root, timeout=60)


def test_arrows_among_equal_waits_spread_over_the_window() -> None:
    made = timeline(case.bundle(trips=90))
    drawn = sorted(m["x"] for m in layers(made)["arrow"] if m["nth"] == 3)
    assert len(drawn) == timeline_data.FEW_ARROWS
    assert drawn[-1] - drawn[0] > 0.7 * made.content.window.end


def test_a_row_holds_no_more_marks_than_can_be_told_apart() -> None:
    made = timeline(case.bundle(trips=400))
    drawn = sum(len(layers(made)[name]) for name in ("stall", "active", "marker_head"))
    assert drawn <= 2 * timeline_data.MARKS_A_ROW
    assert any(note.startswith("Cut to iterations 0:") for note in made.notes)
