"""The timeline page in a real browser, network off: it draws, zooms, tells the numbers of the views and obeys keys."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import picture_browser
import pytest
import timeline_case as case

import wsformat
from wsformat.bundle import Bundle
from wsformat.viewers import timeline_tiles
from wsformat.viewers.theme import both_themes
from wsformat.viewers.timeline_page import explorer

pytestmark = pytest.mark.client
SAMPLES = Path(__file__).parent.parent / "conformance" / "samples"
Open = Callable[..., picture_browser.Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with picture_browser.chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def written() -> dict[Any, str]:
    """Pages made so far: many tests look at the same one."""
    return {}


@pytest.fixture
def opened(browser: Any, tmp_path: Path, written: dict[Any, str]) -> Iterator[Open]:
    pages: list[picture_browser.Page] = []

    def draw(bundle: Bundle, width: int = 1000, scheme: str = "light", **options: Any) -> picture_browser.Page:
        target = tmp_path / "timeline.html"
        key = (id(bundle), *options.items())
        if key not in written:
            written[key] = explorer(bundle, **options).html()
        target.write_text(written[key], encoding="utf-8")
        pages.append(picture_browser.Page(browser, target, width, scheme).drawn())
        return pages[-1]

    yield draw
    for page in pages:
        page.context.close()


@pytest.fixture(scope="module")
def balanced() -> Bundle:
    return wsformat.open(SAMPLES / "gemm_balanced.wsformat")


@pytest.fixture(scope="module")
def grid() -> Bundle:
    return wsformat.open(SAMPLES / "gemm_grid.wsformat")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [480, 1280])
def test_the_page_draws_without_a_network_and_without_complaint(
    opened: Open, grid: Bundle, width: int, scheme: str
) -> None:
    page = opened(grid, width, scheme)
    assert page.said == []
    assert [url.split(":")[0] for url in page.asked] == ["file"]
    assert page.page.evaluate("document.documentElement.scrollWidth") <= width
    shot = case.pixels(page.page.locator(".wsf-detail").screenshot())[:, :, :3]
    assert len(np.unique(shot.reshape(-1, 3), axis=0)) > 30  # roles, hatch, text
    # On a narrow screen the spans of a whole launch are finer than pixels, and the page says so.
    how = "every span as recorded" if width > 1000 else "zoom in for the spans"
    assert how in page.page.locator(".wsf-status").inner_text()


def paper(page: picture_browser.Page) -> str:
    found = page.page.evaluate("getComputedStyle(document.body).backgroundColor")
    return "#" + "".join(f"{int(part):02x}" for part in re.findall(r"\d+", found))


def corner(page: picture_browser.Page) -> str:
    """Colour of the canvas where nothing is drawn."""
    shot = case.pixels(page.page.locator(".wsf-detail").screenshot())
    return "#" + "".join(f"{value:02x}" for value in shot[-2, -2, :3])


def test_the_button_changes_the_theme_of_page_and_canvas(opened: Open, balanced: Bundle) -> None:
    themes = both_themes()
    page = opened(balanced, scheme="light")
    seen = []
    for _ in range(3):
        seen.append((page.page.locator("[data-theme-toggle]").inner_text(), paper(page), corner(page)))
        page.page.locator("[data-theme-toggle]").click()
        page.settle()
    light, dark = themes["light"]["paper"], themes["dark"]["paper"]
    assert seen == [("Theme: auto", light, light), ("Theme: light", light, light), ("Theme: dark", dark, dark)]
    page = opened(balanced, scheme="dark")
    assert (paper(page), corner(page)) == (dark, dark)


def test_hover_tells_the_numbers_of_the_views(opened: Open, balanced: Bundle) -> None:
    page = opened(balanced, iterations="20:24")
    low, high = page.state("view")
    zero = balanced.sql("SELECT MIN(t0) AS t FROM span").to_pylist()[0]["t"]
    waits = balanced.sql("SELECT * FROM wait WHERE role = 'producer' ORDER BY t0").to_pylist()
    inside = [w for w in waits if low < w["t0"] - zero and w["t1"] - zero < high and w["blocked_ticks"] > 0]
    assert len(inside) >= 3
    for wait in inside[:3]:
        page.page.mouse.move(*page.place_of(0, "producer", (wait["t0"] + wait["t1"]) / 2 - zero))
        text = page.tip()
        for part in (
            f"Length: {wait['ticks']:,} cycles",
            f"Raw ticks: {wait['t0']} to {wait['t1']} (clock {wait['clock']})",
            f"Iteration: {wait['iteration']}\n",
            "Verdict: producer late",
            f"Blocked: {wait['blocked_ticks']:,} cycles",
            f"Satisfied: {wait['satisfied_ticks']:,} cycles",
            f"Bound by: {wait['producer_role']} {wait['producer_event']}, iteration {wait['producer_iteration']}",
            f"Signal to exit: {wait['slack']:,} cycle",
        ):
            assert part in text, text


def test_a_gap_is_called_not_instrumented(opened: Open) -> None:
    page = opened(case.bundle(trips=3))
    page.page.mouse.move(*page.place_of(0, "producer", 80))
    assert page.tip().endswith("State: not instrumented")
    page.page.mouse.move(*page.place_of(0, "producer", 319))
    assert "Outside the record of this row" in page.tip()


def test_bins_tell_the_share_of_state_interval(opened: Open, grid: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a page without room for spans the shares of a bin are those of the view, and the page says what it lacks."""
    monkeypatch.setattr(timeline_tiles, "TILE", 100)
    page = opened(grid, limit=1)
    assert page.page.locator("section.wsf-timeline").get_attribute("data-mode") == "bins"
    assert "the spans here are not on this page" in page.page.locator(".wsf-status").inner_text()
    assert "0 of 2,056 spans are on this page one by one" in page.page.locator("section").inner_text()
    level = page.state("mode.level.width")
    low = page.state("view[0]")
    page.page.mouse.move(*page.place_of(1, "consumer0", low + 40.5 * level))
    begin, end = (int(part.replace(",", "")) for part in re.findall(r"Bin: ([\d,]+) to ([\d,]+)", page.tip())[0])
    assert end - begin == level
    origin = grid.sql("SELECT MIN(ns0) AS x FROM timeline_ns").to_pylist()[0]["x"]
    for state in ("active", "stall"):
        (row,) = grid.sql(
            f"""SELECT COALESCE(SUM(LEAST(ns1, {origin + end}) - GREATEST(ns0, {origin + begin})), 0) AS ns
                FROM timeline_ns WHERE cta = 1 AND role = 'consumer0' AND state = '{state}' AND complete
                AND ns1 > {origin + begin} AND ns0 < {origin + end}"""
        ).to_pylist()
        said = float(re.findall(rf"{state.capitalize()}: ([\d.]+) %", page.tip())[0])
        assert said == pytest.approx(float(row["ns"]) / level * 100, abs=0.3)


def test_the_brush_chooses_and_the_button_shows_the_whole(opened: Open, balanced: Bundle) -> None:
    page = opened(balanced)
    first, last = page.state("view")
    box = page.page.locator(".wsf-overview").bounding_box()
    left, plot = page.state("left"), page.state("width") - page.state("left") - 8
    x = [box["x"] + left + plot * share for share in (0.25, 0.5)]
    page.page.mouse.move(x[0], box["y"] + 20)
    page.page.mouse.down()
    page.page.mouse.move(x[1], box["y"] + 20, steps=4)
    page.page.mouse.up()
    page.settle()
    low, high = page.state("view")
    assert low == pytest.approx(first + (last - first) * 0.25, rel=0.01)
    assert high == pytest.approx(first + (last - first) * 0.5, rel=0.01)
    # The brush itself can be moved.
    page.page.mouse.move((x[0] + x[1]) / 2, box["y"] + 20)
    page.page.mouse.down()
    page.page.mouse.move((x[0] + x[1]) / 2 + plot * 0.1, box["y"] + 20, steps=4)
    page.page.mouse.up()
    page.settle()
    moved = page.state("view")
    assert moved[0] == pytest.approx(first + (last - first) * 0.35, rel=0.01)
    assert moved[1] - moved[0] == pytest.approx(high - low, rel=1e-6)
    page.page.locator("[data-do=reset]").click()
    page.settle()
    assert page.state("view") == [first, last]
    assert page.said == []


def test_search_goes_to_the_iteration(opened: Open, balanced: Bundle) -> None:
    page = opened(balanced)
    page.page.locator("[data-do=iteration]").fill("31")
    page.page.locator("[data-do=go]").click()
    page.settle()
    zero = balanced.sql("SELECT MIN(t0) AS t FROM span").to_pylist()[0]["t"]
    (row,) = balanced.sql(
        "SELECT MIN(t0) AS a, MAX(t1) AS b FROM span JOIN span_types USING (capture_id, role, span) "
        "WHERE iteration = 31 AND loop <> 'once'"
    ).to_pylist()
    low, high = page.state("view")
    assert low <= row["a"] - zero
    assert row["b"] - zero <= high
    assert high - low < 1.3 * (row["b"] - row["a"])
    page.page.locator("[data-do=on]").click()
    page.settle()
    assert page.page.locator("[data-do=iteration]").input_value() == "32"


def test_keys_move_zoom_and_go_from_span_to_span(opened: Open, balanced: Bundle) -> None:
    page = opened(balanced, iterations="10:20")
    low, high = page.state("view")
    page.page.locator(".wsf-rows").focus()
    page.page.keyboard.press("+")
    page.settle()
    a, b = page.state("view")
    assert b - a == pytest.approx((high - low) / 2)
    page.page.keyboard.press("ArrowRight")
    page.settle()
    assert page.state("view")[0] == pytest.approx(a + 0.2 * (b - a))
    page.page.keyboard.press("-")
    page.page.keyboard.press("ArrowDown")
    page.settle()
    words = page.page.locator(".wsf-span")
    (state,) = balanced.sql("SELECT * FROM role_state WHERE role = 'producer'").to_pylist()
    assert f"Stall: {state['stall']:,} (" in words.inner_text()
    page.page.keyboard.press(".")
    page.settle()
    first = words.inner_text()
    page.page.keyboard.press(".")
    page.settle()
    second = words.inner_text()
    spans = balanced.sql("SELECT t0, t1 FROM span WHERE role = 'producer' ORDER BY t0").to_pylist()
    raw = [f"{span['t0']} to {span['t1']}" for span in spans]
    at = [next(n for n, text in enumerate(raw) if text in shown) for shown in (first, second)]
    assert at[1] == at[0] + 1
    page.page.keyboard.press("Home")
    page.settle()
    assert page.state("view") == list(page.page.evaluate("document.querySelector('section').wsfStore.data.extent"))
    page.page.keyboard.press("Escape")
    assert "No span chosen" in words.inner_text()
    assert page.said == []


def order(page: picture_browser.Page) -> list[tuple[int, str]]:
    found = page.page.evaluate(
        "(s => s.wsfState.lines.map(l => [s.wsfStore.data.rows[l.place].cta, s.wsfStore.data.rows[l.place].name]))"
        "(document.querySelector('section.wsf-timeline'))"
    )
    return [(cta, name) for cta, name in found]


def test_rows_can_be_grouped_sorted_and_filtered(opened: Open, grid: Bundle) -> None:
    page = opened(grid)
    roles = ["producer", "consumer0", "consumer1"]
    assert order(page) == [(cta, role) for cta in range(4) for role in roles]
    page.page.locator("[data-do=group]").select_option("none")
    page.page.locator("[data-do=sort]").select_option("role")
    page.settle()
    assert order(page) == [(cta, role) for role in roles for cta in range(4)]
    page.page.locator("[data-do=sort]").select_option("stall")
    page.settle()
    by_stall = grid.sql(
        "SELECT cta, role FROM role_state WHERE points > 0 ORDER BY stall / extent DESC, cta"
    ).to_pylist()
    assert order(page) == [(row["cta"], row["role"]) for row in by_stall]
    page.page.locator("[data-do=group]").select_option("sm")
    page.page.locator("[data-do=sort]").select_option("start")
    page.settle()
    starts = grid.sql("SELECT cta, MIN(ns0) AS x FROM timeline_ns GROUP BY cta ORDER BY x, cta").to_pylist()
    assert list(dict.fromkeys(cta for cta, _ in order(page))) == [row["cta"] for row in starts]
    page.page.locator("[data-do=filter]").fill("CTA 2")
    page.settle()
    assert {cta for cta, _ in order(page)} == {2}
    assert "3 of 12 rows" in page.page.locator(".wsf-status").inner_text()


def test_clocks_that_nothing_joins_cannot_be_sorted_by_start(opened: Open) -> None:
    page = opened(case.bundle(trips=2, ctas=3, anchors=False))
    assert page.page.locator("[data-do=sort] option[value=start]").is_disabled()
    assert "every CTA has its own zero" in page.page.locator("section").inner_text()


def test_it_prints_light_without_its_buttons(opened: Open, balanced: Bundle) -> None:
    page = opened(balanced, scheme="dark")
    page.page.emulate_media(media="print")
    assert not page.page.locator(".wsf-bar").is_visible()
    assert paper(page) == both_themes()["light"]["paper"]
    assert page.page.pdf()[:4] == b"%PDF"
    assert page.said == []


def test_the_picture_can_be_saved(opened: Open, balanced: Bundle, tmp_path: Path) -> None:
    page = opened(balanced)
    with page.page.expect_download() as download:
        page.page.locator("[data-do=png]").click()
    download.value.save_as(tmp_path / "saved.png")
    assert case.pixels((tmp_path / "saved.png").read_bytes()).shape[1] > 900


HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "\"quoted\" 'name' <!--",
    "אבג عم 🧵",
    "x" * 10_000,
]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_stay_text(opened: Open, name: str) -> None:
    data = case.tables(trips=3, role=name)
    data["captures"][0] |= {"kernel": name, "label": name, "device": name}
    for row in data["span_types"]:
        row["barrier"] = name
    page = opened(Bundle.from_tables(data), 1000)
    shown = page.page.evaluate("document.querySelector('section').wsfStore.data.rows[0].name")
    page.page.mouse.move(*page.place_of(0, shown, 5))
    assert shown in page.tip()
    assert page.page.locator(".wsf-tip *, .wsf-span *, h1 *, .wsf-status *").count() == 0
    page.page.locator(".wsf-rows").focus()
    page.page.keyboard.press(".")
    assert page.page.evaluate("document.documentElement.scrollWidth") <= 1000
    assert page.said == []
    assert [url.split(":")[0] for url in page.asked] == ["file"]
