"""Files of the timeline: hatch in every kind, nothing fetched, foreign names stay text, whole files or none."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import timeline_case as case

from wsformat.bundle import Bundle
from wsformat.errors import BadRequest, OutputExists, WsformatError
from wsformat.viewers import render
from wsformat.viewers.timeline import timeline, write_timeline
from wsformat.viewers.timeline_layout import clean

pytest.importorskip("altair")
pytest.importorskip("vl_convert")

HATCH = f"url(#{render.STALL})"
HOSTILE = [
    "<script>alert(1)</script>",
    "\"quoted\" 'name' & </script><!--",
    "אבג עם رقم 12",
    "🧵🔥 warp",
    "x" * 10_000,
    "line\nbreak\x00\x1b[31m\u202egpj.exe",
    "]]>\ud7ff\ufffe</svg>",
    "url(#wsformat-stall)",
]


@pytest.fixture(scope="module")
def drawn() -> Any:
    return timeline(case.bundle())


def test_every_stall_is_hatched_and_nothing_else_is(drawn: Any) -> None:
    groups = case.svg_groups(drawn.svg)
    assert len(groups["stall"]) == 16
    assert {mark.get("fill") for mark in groups["stall"]} == {HATCH}
    assert drawn.svg.count(f'<pattern id="{render.STALL}"') == 1
    legend = [mark for mark in groups["legend_box"] if mark.get("fill") == HATCH]
    assert len(legend) == 1
    assert drawn.svg.count(f'fill="{HATCH}"') == 16 + 1


def test_the_png_shows_the_hatch_in_greyscale() -> None:
    """One long stall across the middle of a picture: its pixels hold dark lines on light grey and no colour."""
    data = case.tables(trips=1)
    for row in data["events"]:
        if row["event"] == "wait_end" and row["role"] == "consumer":
            row["t"] += 4_000
        if row["event"] in ("work_begin", "work_end", "arrive") and row["role"] == "consumer":
            row["t"] += 5_000
    made = timeline(Bundle.from_tables(data), arrows="none")
    picture = case.pixels(made.png(scale=2))
    (view,) = re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', made.svg)
    assert picture.shape[:2] == (round(2 * float(view[1])), round(2 * float(view[0])))
    grey = picture[:, :, :3].astype(float) @ [0.2126, 0.7152, 0.0722]
    flat = np.ptp(picture[:, :, :3], axis=2) <= 6
    # Rows of the picture in which a 400 pixel stretch alternates between dark and light without any colour.
    middle = slice(picture.shape[1] * 3 // 10, picture.shape[1] * 3 // 10 + 400)
    hatched = [
        y for y in range(picture.shape[0])
        if flat[y, middle].all() and grey[y, middle].min() < 140 and grey[y, middle].max() > 200
        and 60 < (np.diff(np.sign(grey[y, middle] - 175)) != 0).sum() < 300
    ]  # fmt: skip
    assert len(hatched) >= 30  # a bar is 22 pixels high, drawn twice as large


def test_the_page_fetches_nothing(drawn: Any) -> None:
    page = drawn.html()
    assert "default-src 'none'" in page
    markup = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert not re.findall(r"<(?:link|img|iframe|object|embed)\b", markup)
    assert not re.findall(r"\bon\w+=", markup)
    assert not re.findall(r"<script[^>]*\bsrc", page)
    assert not re.findall(r"@import|url\((?!#)", markup)
    assert not re.findall(r"https?://", page)
    assert len(page) < 150_000


def test_the_page_holds_the_same_spans(drawn: Any) -> None:
    page = drawn.html()
    (text,) = re.findall(r'<script type="application/json" class="wsf-data">(.*?)</script>', page, flags=re.DOTALL)
    assert json.loads(text) == json.loads(json.dumps(drawn.page.data))
    assert drawn.page.data["spans"] == [40, 40]  # 8 iterations: 2 waits, 2 works, 1 stamp that is no end of a span
    assert "<title>ring · by hand</title>" in page
    assert "perturbation unknown" in page


def hostile_bundle(name: str) -> Bundle:
    data = case.tables(trips=3, role=name)
    data["captures"][0] |= {"kernel": name, "label": name, "device": name, "shape": name}
    for row in data["span_types"]:
        row["barrier"] = name
        if row["span"] == "work":
            row["span"] = name
    for table in ("events", "event_types"):
        for row in data[table]:
            row["event"] = name if row["event"] == "arrive" else row["event"]
    for row in data["dependencies"]:
        row["producer_event"] = name if row["producer_event"] == "arrive" else row["producer_event"]
    return Bundle.from_tables(data)


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_foreign_names_stay_text(name: str) -> None:
    made = timeline(hostile_bundle(name), arrows="all")
    marks = case.named_layers(made.spec)
    assert len(marks["stall"]) == len(case.svg_groups(made.svg)["stall"]) == 6
    assert clean(name, 22) in [m["text"] for m in marks["row_names"]]
    assert case.svg_groups(made.svg)["active"][0].get("fill", "").startswith("#")
    assert "<script" not in made.svg
    page = made.html()
    for payload in ("<script>alert", "<!--", "</svg><", "\x00", "\x1b", "\u202e"):
        assert payload not in page.split("</title>")[1].split("<script>")[0]
    # The page has its script and its data and no other.
    assert len(re.findall(r"<script\b[^>]*>", re.sub(r"<script>.*?</script>", "<script>", page, flags=re.DOTALL))) == 2
    assert max(len(text) for text in case.texts(made.svg)) < 200
    assert "\n" not in "".join(made.title)
    assert render.to_png(made.svg, 1.0)[:4] == b"\x89PNG"


@pytest.mark.parametrize("colour", ["red", "url(#x)", "#12345", "javascript:1", "#1234567", '#12345"'])
def test_stored_colours_are_used_only_when_they_are_colours(colour: str) -> None:
    data = case.tables(trips=2)
    data["roles"][0]["colour"] = colour
    data["span_types"][3]["colour"] = "#123456"
    marks = case.named_layers(timeline(Bundle.from_tables(data)).spec)["active"]
    fills = {m["Row"]: m["fill"] for m in marks}
    assert re.fullmatch("#[0-9a-f]{6}", fills["producer"])
    assert fills["consumer"] == "#123456"


def test_names_are_cut_in_the_middle_and_lose_control_characters() -> None:
    assert clean("abc") == "abc"
    assert clean("a\x07b\u2028c\u202ed") == "a\ufffdb\ufffdc\ufffdd"
    assert clean("a" * 30 + "b" * 30, 21) == "a" * 13 + "…" + "b" * 7


@pytest.mark.parametrize("suffix", [".html", ".svg", ".png", ".pdf", ".PNG"])
def test_files_of_every_kind(suffix: str, tmp_path: Path) -> None:
    target = tmp_path / f"t{suffix}"
    made = write_timeline(case.bundle(trips=3), target, iterations="0:2")
    head = target.read_bytes()[:15]
    assert head.startswith({".html": b"<!DOCTYPE html>", ".svg": b"<svg ", ".png": b"\x89PNG", ".pdf": b"%PDF"}[
        suffix.lower()])  # fmt: skip
    assert made.content.window.iterations == (0, 2)
    assert os.listdir(tmp_path) == [target.name]


def test_outputs_are_refused_before_anything_is_drawn(tmp_path: Path) -> None:
    bundle = case.bundle(trips=2)
    there = tmp_path / "t.svg"
    there.write_text("mine")
    with pytest.raises(OutputExists, match="is there already") as caught:
        write_timeline(bundle, there)
    assert "--force" in caught.value.hint
    assert there.read_text() == "mine"
    write_timeline(bundle, there, force=True)
    assert there.read_text().startswith("<svg")
    (tmp_path / "d.png").mkdir()
    with pytest.raises(OutputExists, match="is a directory"):
        write_timeline(bundle, tmp_path / "d.png", force=True)
    for name in ("t.jpg", "t", "t.html.gz"):
        with pytest.raises(BadRequest, match="cannot tell the kind of picture"):
            write_timeline(bundle, tmp_path / name)
    with pytest.raises(WsformatError, match="no such directory"):
        write_timeline(bundle, tmp_path / "none" / "t.svg")
    assert sorted(os.listdir(tmp_path)) == ["d.png", "t.svg"]


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "t.svg"
    target.write_text("old")

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(WsformatError, match="cannot be written: No space left"):
        write_timeline(case.bundle(trips=2), target, force=True)
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["t.svg"]


def test_notebooks_get_a_hatched_picture(drawn: Any) -> None:
    shown = drawn._repr_mimebundle_()
    assert HATCH in shown["image/svg+xml"]
    assert "ring · by hand" in repr(drawn)
