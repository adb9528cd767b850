"""Report and comparison in a real browser, the network off: no complaint, downloads work, numbers lead to SQL."""

from __future__ import annotations

import csv
import io
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import report_case as case
from typer.testing import CliRunner

from wsformat.cli.main import app
from wsformat.viewers.diff import diff
from wsformat.viewers.diff_document import document
from wsformat.viewers.report import report
from wsformat.viewers.report_page import page

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
        opened = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A report with pictures, one with hostile names, and a comparison."""
    folder = tmp_path_factory.mktemp("pages")
    made = {
        "report": report(case.bundle("stamped")),
        "hostile": report(case.bundle("hostile"), pictures=False),
        "diff": document(diff(case.bundle("stamped"), case.bundle("slow")), ("a.wsformat", "b.wsformat")),
    }
    for name, each in made.items():
        (folder / f"{name}.html").write_text(page(each), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in made}


class Opened:
    """A page opened offline, with everything that it said and asked for."""

    def __init__(self, browser: Any, path: Path, width: int, dark: bool = False) -> None:
        self.said: list[str] = []
        self.asked: list[str] = []
        size = {"width": width, "height": 800}
        self.context = browser.new_context(
            viewport=size, offline=True, color_scheme="dark" if dark else "light", accept_downloads=True
        )
        self.page = self.context.new_page()
        self.page.on("console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: self.said.append("dialog") or dialog.dismiss())
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("body[data-drawn=yes]", timeout=60_000)


@pytest.fixture
def show(browser: Any) -> Iterator[Any]:
    opened: list[Opened] = []

    def one(path: Path, width: int = 1200, dark: bool = False) -> Opened:
        opened.append(Opened(browser, path, width, dark))
        return opened[-1]

    yield one
    for each in opened:
        each.context.close()


@pytest.mark.parametrize("name", ["report", "hostile", "diff"])
@pytest.mark.parametrize("width", [420, 1200])
def test_pages_open_without_a_network_and_without_complaint(
    show: Any, pages: dict[str, Path], name: str, width: int
) -> None:
    opened = show(pages[name], width)
    assert opened.said == []
    assert {url.split(":")[0] for url in opened.asked} <= {"file", "data", "blob"}
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    first = opened.page.locator(".rep-headline").bounding_box()
    assert first["y"] + (first["height"] if name != "hostile" else 0) < 800  # the answer is on the first screen
    assert opened.page.locator(".rep-headline script").count() == 0


def test_the_whole_launch_can_be_explored_in_the_report(show: Any, pages: dict[str, Path]) -> None:
    opened = show(pages["report"])
    section = opened.page.locator("section.wsf-timeline")
    assert section.count() == 1
    section.scroll_into_view_if_needed()
    status = section.locator(".wsf-status")
    before = status.inner_text()
    section.locator("[data-do=reset]").click()
    opened.page.wait_for_function("(old) => document.querySelector('.wsf-status').innerText !== old", arg=before)
    rows = section.locator(".wsf-rows").bounding_box()
    opened.page.mouse.move(rows["x"] + rows["width"] * 0.6, rows["y"] + 60)
    opened.page.wait_for_function("document.querySelector('.wsf-tip') && document.querySelector('.wsf-tip').innerText")
    assert opened.said == []


def test_a_table_is_saved_as_csv(show: Any, pages: dict[str, Path], tmp_path: Path) -> None:
    opened = show(pages["report"])
    with opened.page.expect_download() as download:
        opened.page.locator("figure[data-name=states] button[data-save=csv]").click()
    assert download.value.suggested_filename == "states.csv"
    download.value.save_as(tmp_path / "states.csv")
    text = (tmp_path / "states.csv").read_bytes().decode("utf-8")
    rows = {row["role"]: row for row in csv.DictReader(io.StringIO(text, newline=""))}
    assert {role: int(row["extent"]) for role, row in rows.items()} == {
        "producer": 48_204, "consumer0": 51_851, "consumer1": 52_632
    }  # fmt: skip


def test_a_number_leads_to_the_sql_that_makes_it(show: Any, pages: dict[str, Path]) -> None:
    opened = show(pages["report"])
    link = opened.page.locator("figure[data-name=states] a.rep-n", has_text="48,204")
    closed = opened.page.locator("#sql-states pre")
    assert not closed.is_visible()
    link.click()
    closed.wait_for(state="visible", timeout=10_000)
    rows = case.bundle("stamped").sql(closed.inner_text()).to_pylist()
    assert rows[int(link.get_attribute("data-row"))][link.get_attribute("data-column")] == 48_204


def luminance(colour: str) -> float:
    parts = [int(float(x)) / 255 for x in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("dark", [False, True])
def test_words_have_contrast_in_light_and_dark(show: Any, pages: dict[str, Path], dark: bool) -> None:
    opened = show(pages["report"], dark=dark)
    paper = opened.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (luminance(paper) < 0.1) == dark
    for place in (
        ".rep-headline",
        ".rep-lead",
        ".rep-banner dt",
        ".rep-banner dd",
        ".rep-table th",
        ".rep-n",
        ".rep-nav a",
    ):
        ink = opened.page.evaluate(f"getComputedStyle(document.querySelector('{place}')).color")
        light, deep = sorted((luminance(ink), luminance(paper)), reverse=True)
        assert (light + 0.05) / (deep + 0.05) >= 4.5, place


def test_print_has_no_buttons(show: Any, pages: dict[str, Path]) -> None:
    opened = show(pages["report"])
    opened.page.emulate_media(media="print")
    assert not opened.page.locator("figure[data-name=states] button").first.is_visible()
    assert not opened.page.locator(".rep-nav").is_visible()
    assert opened.page.locator(".rep-headline").is_visible()


def test_png_of_the_report(tmp_path: Path) -> None:
    from wsformat.errors import MissingDependency
    from wsformat.viewers import report_png

    try:
        report_png.browser()
    except MissingDependency:
        if REQUIRED:
            pytest.fail("Chromium is not installed")
        pytest.skip("Chromium is not installed")
    stored = case.bundle("truncated").write(tmp_path / "x.wsformat")
    words = [
        "report",
        str(stored.path),
        "-o",
        str(tmp_path / "x.html"),
        "--png",
        str(tmp_path / "x.png"),
        "--no-pictures",
    ]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "x.png").stat().st_size > 20_000
