"""The data of the timeline page: exact spans that equal the views, shares of states that add up, a size that holds."""

from __future__ import annotations

import base64
import json
import zlib
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import timeline_case as case
from hypothesis import given, settings
from hypothesis import strategies as st

import wsformat
from wsformat.bundle import Bundle
from wsformat.errors import BadRequest, OutputExists
from wsformat.viewers import timeline_page, timeline_tiles
from wsformat.viewers.timeline_packing import pack, unpack
from wsformat.viewers.timeline_page import Explorer, explorer

SAMPLES = Path(__file__).parent.parent / "conformance" / "samples"
SMALL = ["gemm_balanced", "gemm_grid", "cute_pipeline"]


def unpacked(page: Explorer) -> dict[str, np.ndarray]:
    """Columns of all tiles of a page, as its script sees them."""
    names = ("place", "t0", "t1", "kind", "iteration", "flags")
    waits = ("verdict", "producer", "lag", "from", "slack", "kept")
    found: dict[str, list[np.ndarray]] = {name: [] for name in (*names, *waits, "wait")}
    for tile in page.data["tiles"]:
        lengths = [tile["spans"]] * 6 + [tile["waits"]] * 6
        columns = dict(zip((*names, *waits), unpack(tile["data"], tile["widths"], lengths), strict=True))
        last = {"place": 0, "t1": 0, "iteration": 0}
        for i in range(tile["spans"]):
            same = i > 0 and columns["place"][i] == 0
            for name, key in (("place", "place"), ("t0", "t1"), ("iteration", "iteration")):
                columns[name][i] += last[key] if same else 0
            columns["t1"][i] += columns["t0"][i]
            last = {key: int(columns[key][i]) for key in last}
        columns["wait"] = np.where(columns["flags"] & 8, np.cumsum(columns["flags"] & 8 > 0) - 1, -1)
        columns["wait"][columns["wait"] >= 0] += sum(len(part) for part in found["verdict"])
        for name, values in columns.items():
            found[name].append(values)
    return {name: np.concatenate(parts) for name, parts in found.items()}


def rows_of(page: Explorer) -> list[tuple[Any, ...]]:
    """Every span of a page in the words of the views: raw ticks, verdict, blocked ticks, binding producer."""
    columns, data = unpacked(page), page.data
    found: list[tuple[Any, ...]] = []
    for i in range(len(columns["place"])):
        row, kind = data["rows"][columns["place"][i]], data["kinds"][columns["kind"][i]]
        if kind["state"] == "marker":
            continue
        zero, w = int(row["zero"]), columns["wait"][i]
        t0, t1, iteration = (int(columns[name][i]) for name in ("t0", "t1", "iteration"))
        judged: tuple[Any, ...] = (None,) * 6
        if w >= 0:
            kept, producer = int(columns["kept"][w]), int(columns["producer"][w])
            by = data["producers"][producer] if producer >= 0 else ["", ""]
            judged = (
                t1 - t0 - kept if kept >= 0 else 0,
                t1 - t0 if columns["flags"][i] & 4 else 0,
                by[0],
                by[1],
                iteration - int(columns["lag"][w]) if producer >= 0 else None,
                int(columns["slack"][w]) if producer >= 0 else None,
            )
        found.append((row["cta"], row["name"], kind["span"], kind["barrier"], iteration, t0 + zero, t1 + zero, *judged))
    return sorted(found, key=str)


VIEW = """
SELECT s.cta, s.role, s.span, s.barrier, s.iteration, s.t0, s.t1, w.blocked_ticks, w.unjudged_ticks, w.producer_role,
       w.producer_event, w.producer_iteration, w.slack
FROM span s LEFT JOIN wait w ON s.state = 'stall' AND w.lane = s.lane AND w.span = s.span AND w.iteration = s.iteration
  AND w.span_id = s.span_id
WHERE s.launch = 0
"""


@pytest.mark.parametrize("name", SMALL)
def test_the_page_has_every_span_and_what_the_views_say_of_it(name: str) -> None:
    bundle = wsformat.open(SAMPLES / f"{name}.wsformat")
    expected = sorted((tuple(row.values()) for row in bundle.sql(VIEW).to_pylist()), key=str)
    page = explorer(bundle)
    assert rows_of(page) == expected
    assert page.data["spans"][0] == page.data["spans"][1] >= len(expected)


@pytest.mark.parametrize("name", SMALL)
def test_rows_carry_the_states_of_the_views(name: str) -> None:
    bundle = wsformat.open(SAMPLES / f"{name}.wsformat")
    states = {
        (row["cta"], row["role"]): row
        for row in bundle.sql(
            "SELECT s.*, (SELECT COALESCE(SUM(blocked_ticks), 0) FROM wait w WHERE w.lane = s.lane) AS blocked "
            "FROM role_state s WHERE points > 0"
        ).to_pylist()
    }
    rows = [row for row in explorer(bundle).data["rows"] if "zero" in row]
    assert len(rows) == len(states)
    for row in rows:
        state = states[row["cta"], row["name"]]
        assert row["tick"] == "cycle"
        for field in ("extent", "stall", "active", "untracked", "blocked"):
            assert row[field] == state[field], field


def shares_of(page: Explorer, level: dict[str, Any]) -> np.ndarray:
    raw = np.frombuffer(zlib.decompress(base64.b64decode(level["data"])), dtype=np.uint8)
    return raw.reshape(len(page.data["rows"]), 2, level["bins"])


@pytest.mark.parametrize("name", SMALL)
def test_shares_in_bins_are_those_of_state_interval(name: str) -> None:
    """Against each bin counted on its own from the pieces of state_interval, on the axis of the page."""
    bundle = wsformat.open(SAMPLES / f"{name}.wsformat")
    page = explorer(bundle)
    pieces = bundle.sql(
        "SELECT s.*, l.cta, l.role FROM state_interval s JOIN lanes l USING (capture_id, lane)"
    ).to_pylist()
    low = page.data["extent"][0]
    level = page.data["levels"][0]
    got = shares_of(page, level)
    width = level["width"]
    for place, row in enumerate(page.data["rows"]):
        if "zero" not in row:
            continue
        for n, state in enumerate(("stall", "active")):
            ticks = np.zeros(level["bins"])
            for piece in pieces:
                if (piece["cta"], piece["role"], piece["state"]) != (row["cta"], row["name"], state):
                    continue
                a, b = (moment(row, piece[end] - int(row["zero"])) - low for end in ("t0", "t1"))
                edges = np.arange(level["bins"] + 1) * width
                ticks += np.clip(np.minimum(b, edges[1:]) - np.maximum(a, edges[:-1]), 0, None)
            assert np.abs(got[place, n] - ticks / width * 255).max() <= 0.5 + 1e-6


def moment(row: dict[str, Any], ticks: int) -> int:
    if not row["pieces"]:
        return ticks
    first, at, rate = [piece for piece in row["pieces"] if piece[0] <= ticks or piece is row["pieces"][0]][-1]
    return int(at + np.floor((ticks - first) * rate + 0.5))


def test_moments_are_those_of_timeline_ns() -> None:
    bundle = wsformat.open(SAMPLES / "gemm_grid.wsformat")
    page = explorer(bundle)
    assert page.data["unit"] == "ns"
    first = bundle.sql("SELECT MIN(ns0) AS x FROM timeline_ns WHERE state <> 'scope'").to_pylist()[0]["x"]
    rows = {(row["cta"], row["name"]): row for row in page.data["rows"]}
    for span in bundle.sql("SELECT * FROM timeline_ns").to_pylist():
        row = rows[span["cta"], span["role"]]
        assert moment(row, span["t0"] - int(row["zero"])) == span["ns0"] - first
        assert moment(row, span["t1"] - int(row["zero"])) == span["ns1"] - first


def overlapping() -> Bundle:
    """A stall inside an active span, and an active span that begins before another ends."""
    data = case.tables(trips=3)
    stamps = [("a0", 0, 400), ("a1", 0, 460), ("b0", 0, 420), ("b1", 0, 430), ("c0", 0, 450), ("c1", 0, 490)]
    types = [
        {"span": "a", "begin_event": "a0", "end_event": "a1", "state": "active"},
        {"span": "b", "begin_event": "b0", "end_event": "b1", "state": "stall"},
        {"span": "c", "begin_event": "c0", "end_event": "c1", "state": "active"},
    ]
    case.add_role(data, "third", stamps, types)
    return Bundle.from_tables(data)


def test_states_stay_exclusive_where_spans_overlap() -> None:
    (row,) = [row for row in explorer(overlapping()).data["rows"] if row["name"] == "third"]
    assert (row["extent"], row["stall"], row["active"], row["untracked"]) == (90, 10, 80, 0)


def test_a_page_that_is_too_small_says_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline_tiles, "TILE", 50)
    bundle = wsformat.open(SAMPLES / "gemm_balanced.wsformat")
    whole = explorer(bundle)
    assert not [note for note in whole.notes if "spans are on this page" in note]
    shares = sum(len(level["data"]) for level in whole.data["levels"])
    rows = len(json.dumps(whole.data["rows"], separators=(",", ":")))
    limit = timeline_page.ROOM + shares + rows + 3_000
    small = explorer(bundle, iterations="30:31", limit=limit)
    inside, total = small.data["spans"]
    assert 0 < inside < total == whole.data["spans"][1]
    assert any(note.startswith(f"{inside:,} of {total:,} spans are on this page") for note in small.notes)
    low, high = small.data["window"]
    covered = [(tile["x0"], tile["x1"]) for tile in small.data["tiles"]]
    assert covered[0][0] <= low <= high <= covered[-1][1]
    assert all(a[1] == b[0] for a, b in pairwise(covered))  # no hole in what is exact
    assert set(rows_of(small)) < set(rows_of(whole))
    assert len(small.html()) < limit


def test_more_rows_than_a_page_holds_are_left_out_by_ctas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline_page, "MOST_ROWS", 5)
    page = explorer(case.bundle(trips=3, ctas=4))
    assert [(row["cta"], row["name"]) for row in page.data["rows"]] == [
        (cta, role) for cta in (0, 1) for role in ("producer", "consumer")
    ]
    assert any(note.startswith("4 of 8 rows are on this page: 2 of 4 CTAs") for note in page.notes)
    assert {row[0] for row in rows_of(page)} == {0, 1}


def test_windows_are_those_of_the_picture() -> None:
    bundle = case.bundle(trips=8)
    page = explorer(bundle, iterations="2:5")
    assert page.data["window"] == (200, 525)
    assert explorer(bundle, start=100, end=300).data["window"] == (100, 300)
    assert explorer(bundle).data["window"] == tuple(explorer(bundle).data["extent"]) == (0, 825)
    for wrong in ({"iterations": "90:95"}, {"start": 5, "end": 5}, {"start": 10**9}, {"iterations": "1:2", "end": 4}):
        with pytest.raises(BadRequest):
            explorer(bundle, **wrong)


def test_only_a_page_is_written_and_only_once(tmp_path: Path) -> None:
    page = explorer(case.bundle(trips=2))
    target = page.write(tmp_path / "t.html")
    assert target.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    with pytest.raises(OutputExists):
        page.write(target)
    with pytest.raises(BadRequest, match="this is a page"):
        page.write(tmp_path / "t.png")


def test_roles_without_stamps_are_rows_that_say_so() -> None:
    data = case.tables(trips=2)
    data["roles"].append({"capture_id": case.CAPTURE, "role": "epilogue", "display_order": 9})
    (row,) = [r for r in explorer(Bundle.from_tables(data)).data["rows"] if r["name"] == "epilogue"]
    assert "zero" not in row


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.integers(-(2**52), 2**52), max_size=30), max_size=5))
def test_what_is_packed_comes_back(columns: list[list[int]]) -> None:
    arrays = [np.array(column, dtype=np.int64) for column in columns]
    text, widths = pack(arrays)
    assert text.isascii()
    for got, given_ in zip(unpack(text, widths, [len(a) for a in arrays]), arrays, strict=True):
        assert got.tolist() == given_.tolist()
