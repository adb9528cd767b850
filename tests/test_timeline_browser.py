"""The page of the timeline in a real browser with the network off: it draws, zooms, tells numbers and runs no names."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import timeline_case as case

from wsformat.bundle import Bundle
from wsformat.viewers import render
from wsformat.viewers.timeline import timeline

pytestmark = pytest.mark.client
REQUIRED = os.environ.get("WSFORMAT_REQUIRE_CLIENTS") == "1"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if not REQUIRED:
        pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        if REQUIRED:
            pytest.fail("Chromium is not installed")
        pytest.skip("Chromium is not installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        opened = driver.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        )
        yield opened
        opened.close()


class Page:
    """A page opened offline, with everything that it said and asked for."""

    def __init__(self, browser: Any, path: Path, width: int) -> None:
        self.said: list[str] = []
        self.asked: list[str] = []
        self.context = browser.new_context(viewport={"width": width, "height": 640}, offline=True)
        self.page = self.context.new_page()
        self.page.on("console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: self.said.append("dialog") or dialog.dismiss())
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("body[data-drawn=yes]", timeout=30_000)

    def labels(self) -> list[str]:
        """Texts of the axis below, from left to right."""
        return [t for t in self.page.locator(".role-axis-label text").all_text_contents() if t]


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Any]:
    pages: list[Page] = []

    def draw(bundle: Bundle, width: int = 1000, **options: Any) -> Page:
        target = tmp_path / "timeline.html"
        timeline(bundle, **options).write(target, force=True)
        pages.append(Page(browser, target, width))
        return pages[-1]

    yield draw
    for page in pages:
        page.context.close()


@pytest.mark.parametrize("width", [480, 1280])
def test_the_page_draws_without_a_network_and_without_complaint(opened: Any, width: int) -> None:
    page = opened(case.bundle(), width)
    assert page.said == []
    assert [url.split(":")[0] for url in page.asked] == ["file"]
    stalls = page.page.locator("g.mark-rect[class*=stall_] > path")
    assert stalls.count() == 16
    assert {stalls.nth(n).get_attribute("fill") for n in range(16)} == {f"url(#{render.STALL})"}
    box = page.page.locator("#picture svg").bounding_box()
    assert box["width"] > 800  # scrolls inside its own box on a narrow screen
    assert page.page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_hatch_is_on_the_screen(opened: Any) -> None:
    page = opened(case.bundle(trips=2), 1000, arrows="none")
    box = page.page.locator("g.mark-rect[class*=stall_] > path").nth(1).bounding_box()
    clip = {"x": box["x"] + 3, "y": box["y"] + 3, "width": box["width"] - 6, "height": box["height"] - 6}
    shot = case.pixels(page.page.screenshot(clip=clip))[:, :, :3]
    assert np.ptp(shot, axis=2).max() <= 6  # grey
    assert shot.min() < 150
    assert shot.max() > 200


def test_hover_gives_the_exact_numbers(opened: Any) -> None:
    page = opened(case.bundle(), 1000, arrows="none", iterations="2:5")
    page.page.locator("g.mark-rect[class*=stall_] > path").last.hover()
    tip = page.page.locator("#vg-tooltip-element.visible")
    tip.wait_for(timeout=5_000)
    text = tip.inner_text()
    last = max((m for m in case.named_layers(timeline(case.bundle(), iterations="2:5").spec)["stall"]
                if m["Row"] == "consumer"), key=lambda m: m["x0"])  # fmt: skip
    for part in (last["Raw ticks"], "20 cycles", "10.0 ns", last["Bound by"], "producer late"):
        assert part in text
    assert str(case.BASE)[:12] in last["Raw ticks"]


def test_scroll_zooms_both_axes_and_the_button_comes_back(opened: Any) -> None:
    page = opened(case.bundle(trips=40), 1000, arrows="none")
    before = page.labels()
    plot = page.page.locator("g.mark-rect[class*=active_]").first.bounding_box()
    page.page.mouse.move(plot["x"] + plot["width"] / 2, plot["y"] + 10)
    page.page.mouse.wheel(0, -600)
    page.page.wait_for_function(
        "before => [...document.querySelectorAll('.role-axis-label text')].map(t => t.textContent)"
        ".filter(t => t).join() !== before",
        arg=",".join(before),
    )
    after = page.labels()
    numbers = [float(text.replace(",", "")) for text in after]
    # Two axes: the same moments in ns and in cycles, at half a ns a cycle.
    middle = max(range(1, len(numbers)), key=lambda n: numbers[n - 1] - numbers[n])
    ns, cycles = sorted((numbers[:middle], numbers[middle:]), key=lambda part: part[-1])
    assert cycles[-1] - cycles[0] < 4_000
    assert abs(cycles[-1] - 2 * ns[-1]) < 1_000
    assert all(n == int(n) for n in ns)
    page.page.locator("#reset").click()
    page.page.wait_for_function(
        "before => [...document.querySelectorAll('.role-axis-label text')].map(t => t.textContent)"
        ".filter(t => t).join() === before",
        arg=",".join(before),
    )
    assert page.said == []


def test_saved_svg_is_hatched(opened: Any, tmp_path: Path) -> None:
    page = opened(case.bundle(), 1000)
    with page.page.expect_download() as download:
        page.page.locator("#save").click()
    saved = tmp_path / "saved.svg"
    download.value.save_as(saved)
    text = saved.read_text(encoding="utf-8")
    assert len(case.svg_groups(text)["stall"]) == 16
    assert f'<pattern id="{render.STALL}"' in text


@pytest.mark.parametrize("name", ["<img src=x onerror=alert(1)>", "</script><script>alert(1)</script>", "אבג 🧵"])
def test_hostile_names_run_nothing(opened: Any, name: str) -> None:
    data = case.tables(trips=3, role=name)
    data["captures"][0] |= {"kernel": name, "label": name}
    for row in data["span_types"]:
        row["barrier"] = name
    page = opened(Bundle.from_tables(data), 1000, arrows="none")
    page.page.locator("g.mark-rect[class*=stall_] > path").last.hover()
    page.page.locator("#vg-tooltip-element.visible").wait_for(timeout=5_000)
    assert name in page.page.locator("#vg-tooltip-element").inner_text()
    assert page.page.locator("#vg-tooltip-element img, #vg-tooltip-element script").count() == 0
    assert page.page.title() == f"{name} · {name}"[: len(page.page.title())]
    assert page.said == []
    assert [url.split(":")[0] for url in page.asked] == ["file"]
