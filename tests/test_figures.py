"""The figures: their numbers are those of the views, whatever is drawn can be traced, names stay text."""

from __future__ import annotations

import csv
import io
import re
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import picture_case
import pytest
import timeline_case as case

import wsformat
from wsformat.bundle import Bundle
from wsformat.errors import BadRequest, OutputExists
from wsformat.viewers import theme
from wsformat.viewers.figure import Figure
from wsformat.viewers.figures import KINDS, draw

pytest.importorskip("vl_convert")
pytest.importorskip("altair")

SAMPLES = Path(__file__).parent.parent / "conformance" / "samples"
KIND_OF_MARK = "{http://www.w3.org/2000/svg}path"


@pytest.fixture(scope="module")
def balanced() -> Bundle:
    return wsformat.open(SAMPLES / "gemm_balanced.wsformat")


@pytest.fixture(scope="module")
def grid() -> Bundle:
    return wsformat.open(SAMPLES / "gemm_grid.wsformat")


def told(figure: Figure) -> list[str]:
    """Words of every mark that tells any."""
    return [
        mark.get("aria-label", "")
        for mark in ElementTree.fromstring(figure.svg).iter()
        if mark.get("aria-roledescription", "").endswith(" mark")
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_can_be_traced(kind: str) -> None:
    figure = picture_case.drawn(kind)
    bundle = picture_case.bundle_of(kind)
    assert figure.name == kind
    assert len(figure.alt) > 40
    assert len(figure.caption) > 60
    assert "perturbation unknown" in figure.title[-1]
    for query in figure.sql.values():
        assert bundle.sql(query).num_rows > 0
    if kind not in ("timeline", "critical-path"):
        first = next(iter(figure.sql.values()))
        assert sorted(map(str, bundle.sql(first).to_pylist())) == sorted(map(str, figure.table.to_pylist()))
    read = list(csv.DictReader(io.StringIO(figure.csv())))
    assert len(read) == figure.table.num_rows > 0
    assert list(read[0]) == figure.table.column_names
    assert told(figure)
    assert figure.png(1.0)[:4] == b"\x89PNG"
    assert figure.pdf()[:4] == b"%PDF"


@pytest.mark.parametrize("width", [420, 860])
@pytest.mark.parametrize("kind", KINDS)
def test_pictures_keep_their_width(kind: str, width: int) -> None:
    svg = picture_case.drawn(kind, width=width).svg
    (found,) = re.findall(r"<svg[^>]*?\bwidth=\"([\d.]+)\"", svg)
    assert 0.75 * width < float(found) < width + 40


def test_waits_hold_every_wait(grid: Bundle) -> None:
    figure = draw(grid, "waits")
    rows = figure.table.to_pylist()
    waits = grid.sql("SELECT * FROM wait").to_pylist()
    for row in rows:
        mine = [w for w in waits if (w["role"], w["span"], w["barrier"]) == (row["role"], row["span"], row["barrier"])]
        assert row["waits"] == len(mine)
        assert row["ticks"] == sum(w["ticks"] for w in mine)
        assert row["blocked_ticks"] == sum(w["blocked_ticks"] for w in mine)
        assert row["ticks"] == row["blocked_ticks"] + row["satisfied_ticks"] + row["unjudged_ticks"]
        slack = [w["slack"] for w in mine if w["producer_role"] == row["binding_role"]
                 and w["producer_event"] == row["binding_event"]]  # fmt: skip
        assert (row["least_slack"], row["most_slack"]) == (min(slack), max(slack))
    assert sum(row["waits"] for row in rows) == len(waits)
    # The bars hold each wait once.
    counted = re.findall(r"Waits: ([\d,]+) (\w+) of", "\n".join(told(figure)))
    sums: dict[str, int] = {}
    for count, what in counted:
        sums[what] = sums.get(what, 0) + int(count.replace(",", ""))
    blocked = sum(w["blocked_ticks"] > 0 for w in waits)
    unknown = sum(w["verdict"] == "unknown" for w in waits)
    assert sums.get("blocked", 0) == blocked
    assert sums.get("unjudged", 0) == unknown
    assert sum(sums.values()) == len(waits)
    share = {(r["role"], r["cta"]): r for r in grid.sql("SELECT * FROM role_state WHERE points > 0").to_pylist()}
    for row in rows:
        extent = sum(state["extent"] for (role, _), state in share.items() if role == row["role"])
        assert row["share_of_extent"] == pytest.approx(row["ticks"] / extent)


def test_waits_without_an_edge_are_unjudged_and_say_so() -> None:
    data = case.tables(trips=4)
    data["dependencies"] = []
    figure = draw(Bundle.from_tables(data), "waits")
    assert any("unknown" in note for note in figure.notes)
    assert {row["unjudged_ticks"] - row["ticks"] for row in figure.table.to_pylist()} == {0}
    assert "bound by: unknown" in case.texts(figure.svg)


def test_iterations_mark_what_lies_beyond_the_fences(grid: Bundle) -> None:
    figure = draw(grid, "iterations")
    intervals = grid.sql("SELECT * FROM iteration").to_pylist()
    for role in {row["role"] for row in intervals}:
        steady = [row for row in intervals if row["role"] == role and row["steady"]]
        ordered = sorted(row["ticks"] for row in steady)
        q1, q3 = (ordered[int(np.ceil(len(ordered) * share)) - 1] for share in (0.25, 0.75))
        reach = 1.5 * max(q3 - q1, 1)
        beyond = sum(not q1 - reach <= row["ticks"] <= q3 + reach for row in steady)
        assert sum(row["outliers"] for row in figure.table.to_pylist() if row["role"] == role) == beyond
        mean = sum(ordered) / len(ordered)
        assert f"{role} {mean:,.1f}" in figure.alt
        assert f"mean {mean:,.1f}" in case.texts(figure.svg)
    labels = "\n".join(told(figure))
    assert "Window: fill or drain, not in the mean" in labels
    assert "Window: steady" in labels


def test_iterations_of_clean_launches_are_drawn_beside_the_stamped(grid: Bundle) -> None:
    bundle = wsformat.open(SAMPLES / "gemm_perturbation.wsformat")
    (row,) = bundle.sql("SELECT clean_ticks FROM perturbation WHERE preference = 1 AND method = 'slope'").to_pylist()
    figure = draw(bundle, "iterations")
    assert f"dashed: {row['clean_ticks']:,.1f} clean" in case.texts(figure.svg)
    assert not [text for text in case.texts(draw(grid, "iterations").svg) if text.startswith("dashed")]


def test_overlap_states_all_denominators(balanced: Bundle) -> None:
    """The numbers of docs/concepts.md: 13,891 ticks are 48 % of one, 42 % of the other and 29 % of the union."""
    figure = draw(balanced, "overlap")
    (tip,) = {t for t in told(figure) if "13,891" in t}
    one, other, union = (re.findall(rf"{name}: ([\d.]+) % of ([\d,]+)", tip)[0]
                         for name in ("Of consumer0", "Of consumer1", "Of the union"))  # fmt: skip
    for share, of in (one, other, union):
        assert float(share) == pytest.approx(13_891 / int(of.replace(",", "")) * 100, abs=0.005)
    texts = case.texts(figure.svg)
    for text in ("13,891", "48 %", "42 %", "29 % of union", "28,842 active cycles", "33,455 active cycles"):
        assert text in texts


def test_roles_without_a_common_cta_are_never_zero() -> None:
    data = case.tables(trips=3, ctas=2)
    for row in [*data["lanes"], *data["events"]]:
        if row["role"] == "consumer" and row["cta"] == 0:
            row["cta"] = 1
    wanted = {("producer", 0), ("consumer", 1)}  # by role and clock
    data["lanes"] = [row for row in data["lanes"] if (row["role"], row["clock"]) in wanted]
    kept = {row["lane"] for row in data["lanes"]}
    data["events"] = [row for row in data["events"] if row["lane"] in kept]
    with pytest.raises(BadRequest, match="no overlap to draw"):
        draw(Bundle.from_tables(data), "overlap")


def test_the_critical_path_fills_its_window(grid: Bundle) -> None:
    figure = draw(grid, "critical-path", cta=2)
    rows = figure.table.to_pylist()
    assert all(a["t1"] == b["t0"] for a, b in pairwise(rows))
    shares = [float(s) for s in re.findall(r"Share of the path: ([\d.]+) %", "\n".join(told(figure)))]
    assert sum(shares) == pytest.approx(100, abs=0.05)
    assert draw(grid, "critical-path").notes[0] == "Only CTA 0 is shown: a path is of one CTA."
    small = draw(grid, "critical-path", cta=2, start=1000, end=3000)
    assert len(told(small)) < len(told(figure))
    assert small.table.num_rows == figure.table.num_rows
    with pytest.raises(BadRequest, match="shows nothing"):
        draw(grid, "critical-path", cta=2, start=5000, end=4000)


def test_the_grid_has_every_cta_and_its_bound(grid: Bundle) -> None:
    figure = draw(grid, "grid")
    ctas = {row["cta"]: row for row in grid.sql("SELECT * FROM grid_cta").to_pylist()}
    assert {row["cta"] for row in figure.table.to_pylist()} == set(ctas)
    bars = [tip for tip in told(figure) if "Ticks: " in tip]
    assert len(bars) == len(ctas)
    for tip in bars:
        row = ctas[int(re.findall(r"^CTA: (\d+)", tip)[0])]
        assert f"Took: {row['duration_ns']:,} ns ±{int(np.ceil(row['error_ns'])):,}" in tip
        assert f"Stall share: {row['stall_share'] * 100:.2f} %" in tip
    assert any(note.startswith("Times are good to ±") for note in figure.notes)


def test_a_grid_without_anchors_has_no_time_axis() -> None:
    figure = draw(case.bundle(trips=3, ctas=3, anchors=False), "grid")
    assert "No anchors join the clocks of the SMs" in figure.notes[0]
    assert not [text for text in case.texts(figure.svg) if "ns since" in text]
    assert any("mean duration of a CTA, cycles" in text for text in case.texts(figure.svg))


@pytest.mark.parametrize("kind", KINDS)
def test_every_colour_of_a_picture_has_a_dark_counterpart(kind: str) -> None:
    figure = picture_case.drawn(kind)
    page = figure.fragment(key="k")
    used = {c.lower() for c in re.findall(r"(?:fill|stroke)=\"(#[0-9a-fA-F]{6})\"", figure.untitled)}
    assert used <= set(theme.counterparts()), used - set(theme.counterparts())
    for colour in used:
        assert f'="{colour}" i]' in page
    assert 'id="k"' in page
    assert set(re.findall(r"url\(#([^)]*)\)", page)) <= set(re.findall(r'\bid="([^"]*)"', page))


HOSTILE = ["<script>alert(1)</script>", "\"q\" 'n' & <!--", "אבג 🧵", "x" * 10_000, "a\nb\x00\u202eexe", "=1+1"]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("kind", KINDS)
def test_foreign_names_stay_text(kind: str, name: str) -> None:
    figure = draw(picture_case.hostile(name), kind)
    page = figure.html()
    assert "<script>alert" not in page
    assert "<!--" not in page.split("</title>")[1]
    assert "\x00" not in figure.svg
    assert max(len(text) for text in case.texts(figure.svg)) < 400
    assert max(map(len, told(figure))) < 1_000
    for row in csv.reader(io.StringIO(figure.csv())):
        assert not [cell for cell in row if cell.startswith(("=", "@"))]


def test_what_cannot_be_drawn_is_said_in_one_line(grid: Bundle) -> None:
    cases: list[tuple[str, dict[str, Any], str]] = [
        ("pie", {}, "no picture of kind 'pie'"),
        ("waits", {"arrows": "all"}, "takes no arrows"),
        ("critical-path", {"roles": ["producer"]}, "takes no roles"),
        ("waits", {"width": 10}, "expected 320 to 4000"),
        ("waits", {"cta": 99}, "no stamps of CTA 99"),
        ("waits", {"launch": 7}, "no stamps of launch 7"),
        ("waits", {"launch": [0, 1]}, "2 numbers for launch"),
        ("waits", {"roles": ["nobody"]}, "no stamps of role 'nobody'"),
        ("overlap", {"capture_id": "f" * 26}, "no capture"),
    ]
    for kind, options, words in cases:
        with pytest.raises(BadRequest, match=re.escape(words)) as caught:
            draw(grid, kind, **options)
        assert "\n" not in caught.value.message
    with pytest.raises(BadRequest, match="no launch with stamps says which pass"):
        draw(grid, "passes")
    empty = wsformat.open(SAMPLES / "ncu_seed_metrics.wsformat")
    for kind in KINDS:
        with pytest.raises(BadRequest):
            draw(empty, kind)


def test_files_are_whole_or_not_there(grid: Bundle, tmp_path: Path) -> None:
    figure = draw(grid, "overlap")
    for suffix, head in ((".html", b"<!DOCTYPE html>"), (".svg", b"<svg "), (".png", b"\x89PNG"), (".pdf", b"%PDF")):
        assert figure.write(tmp_path / f"o{suffix}").read_bytes().startswith(head)
    with pytest.raises(OutputExists):
        figure.write(tmp_path / "o.svg")
    assert "image/svg+xml" in figure._repr_mimebundle_()


def test_passes_are_named_and_never_merged() -> None:
    figure = picture_case.drawn("passes", iterations="2:6")
    chosen = (
        picture_case.passes()
        .sql("SELECT * FROM pass_span WHERE is_chosen AND iteration BETWEEN 2 AND 5 AND cta = 0")
        .to_pylist()
    )
    tips = [tip for tip in told(figure) if tip.startswith("Role")]
    assert len(tips) == len(chosen) == figure.table.num_rows
    for row in chosen:
        letter, name = ("A", "all") if row["pass"] == 0 else ("B", "waits")
        mine = [tip for tip in tips if f"Role: {row['role']}\nSpan: {row['span']}\n" in tip
                and f"Iteration: {row['iteration']}\n" in tip]  # fmt: skip
        assert len(mine) == 1
        assert f"Pass: {letter} {name} (launch {row['launch']})" in mine[0]
        assert f"Length: {row['ticks']:,} cycles" in mine[0]
        assert f"In all passes: {row['least_ticks']:,} to {row['most_ticks']:,} in {row['passes']} passes" in mine[0]
    spread = max(row["most_ticks"] - row["least_ticks"] for row in chosen)
    assert spread == 3
    assert any(f"differs by up to {spread:,} cycles between passes" in note for note in figure.notes)
    texts = case.texts(figure.svg)
    assert "A: all, 1 launch, perturbation unknown" in texts
    assert "cycles since the CTA's start, laid out by launch 0" in texts
