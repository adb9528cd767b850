"""The figures in a real browser with the network off: themes, widths, numbers on hover, downloads, hostile names."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import picture_browser
import picture_case
import pytest
import timeline_case as case

from wsformat.viewers import figure
from wsformat.viewers.figures import KINDS, draw
from wsformat.viewers.theme import both_themes

pytestmark = pytest.mark.client
pytest.importorskip("vl_convert")
pytest.importorskip("altair")

MARK = "svg [aria-roledescription$=' mark']"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with picture_browser.chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def made() -> dict[str, figure.Figure]:
    return {kind: picture_case.drawn(kind) for kind in KINDS}


@pytest.fixture(scope="module")
def together(made: dict[str, figure.Figure], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One page with a figure of every kind, as a report has them."""
    path = tmp_path_factory.mktemp("figures") / "all.html"
    path.write_text(figure.page("all", "".join(f.fragment(key=f"p-{f.name}") for f in made.values())), encoding="utf-8")
    return path


@pytest.fixture(params=[(480, "light"), (1280, "light"), (480, "dark"), (1280, "dark")], ids=str)
def page(request: pytest.FixtureRequest, browser: Any, together: Path) -> Iterator[picture_browser.Page]:
    width, scheme = request.param
    opened = picture_browser.Page(browser, together, width, scheme)
    yield opened
    opened.context.close()


def colour(page: picture_browser.Page, expression: str) -> str:
    found = page.page.evaluate(expression)
    return "#" + "".join(f"{int(part):02x}" for part in re.findall(r"\d+", found)[:3])


def test_every_figure_draws_in_the_theme_of_the_reader(page: picture_browser.Page) -> None:
    assert page.page.locator("figure.wsf svg").count() == len(KINDS)
    width = page.page.viewport_size["width"]
    assert page.page.evaluate("document.documentElement.scrollWidth") <= width
    dark = page.page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    theme = both_themes()["dark" if dark else "light"]
    assert colour(page, "getComputedStyle(document.body).backgroundColor") == theme["paper"]
    # The picture's own paper, its text and the hatch, and the marks of a role.
    assert colour(page, "getComputedStyle(document.querySelector('#p-waits svg > rect')).fill") == theme["paper"]
    texts = page.page.evaluate(
        "[...new Set([...document.querySelectorAll('figure svg text')].map(t => getComputedStyle(t).fill))]"
    )
    allowed = {theme["ink"], theme["quiet"], theme["paper"], theme["warning"], *theme["active"]}
    assert {"#" + "".join(f"{int(p):02x}" for p in re.findall(r"\d+", t)[:3]) for t in texts} <= allowed
    hatch = "getComputedStyle(document.querySelector('#p-waits pattern rect')).fill"
    assert colour(page, hatch) == theme["stall"]["base"]
    page.page.locator("[data-theme-toggle]").click(click_count=2)
    other = both_themes()["dark"]
    assert colour(page, "getComputedStyle(document.body).backgroundColor") == other["paper"]
    assert colour(page, "getComputedStyle(document.querySelector('#p-grid svg > rect')).fill") == other["paper"]
    assert page.said == []
    assert [url.split(":")[0] for url in page.asked] == ["file"]


@pytest.fixture
def wide(browser: Any, together: Path) -> Iterator[picture_browser.Page]:
    opened = picture_browser.Page(browser, together, 1280)
    yield opened
    opened.context.close()


@pytest.mark.parametrize("kind", KINDS)
def test_hover_tells_what_the_mark_carries(wide: picture_browser.Page, kind: str) -> None:
    marks = wide.page.locator(f"#p-{kind} {MARK}")
    assert marks.count() > 3
    mark = marks.nth(marks.count() // 2)
    mark.scroll_into_view_if_needed()
    mark.hover(force=True)
    assert wide.tip() in {marks.nth(n).get_attribute("aria-label") for n in range(marks.count())}
    assert "\n" in wide.tip()
    wide.page.keyboard.press("Escape")
    assert wide.tip() == ""
    assert wide.said == []


def test_hover_over_the_matrix_is_the_view(wide: picture_browser.Page) -> None:
    bundle = picture_case.grid()
    (row,) = bundle.sql(
        "SELECT SUM(both_ticks) AS both, SUM(a_ticks) AS a FROM overlap "
        "WHERE set_a = 'consumer0' AND set_b = 'consumer1'"
    ).to_pylist()
    mark = wide.page.locator(f"#p-overlap {MARK}[aria-label*='Of consumer0'][aria-label*='Of consumer1']").first
    mark.scroll_into_view_if_needed()
    mark.hover()
    assert f"Both active: {int(row['both']):,} cycles" in wide.tip()
    assert f"Of consumer0: {float(row['both']) / float(row['a']) * 100:.2f} % of {int(row['a']):,}" in wide.tip()


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_and_sql_can_be_taken_along(
    wide: picture_browser.Page, made: dict[str, figure.Figure], kind: str, tmp_path: Path
) -> None:
    for what in ("csv", "svg"):
        with wide.page.expect_download() as download:
            wide.page.locator(f"#p-{kind} [data-save={what}]").click()
        assert download.value.suggested_filename == f"{kind}.{what}"
        download.value.save_as(tmp_path / what)
    text = (tmp_path / "csv").read_text(encoding="utf-8")
    assert text == made[kind].csv()
    assert len(list(csv.reader(io.StringIO(text)))) == made[kind].table.num_rows + 1
    assert case.svg_groups((tmp_path / "svg").read_text(encoding="utf-8"))
    shown = wide.page.locator(f"#p-{kind} pre").all_text_contents()
    assert shown == [query.strip() for query in made[kind].sql.values()]


def test_it_prints_light_and_without_buttons(wide: picture_browser.Page) -> None:
    wide.page.emulate_media(media="print", color_scheme="dark")
    assert not wide.page.locator("[data-save]").first.is_visible()
    light = both_themes()["light"]["paper"]
    assert colour(wide, "getComputedStyle(document.querySelector('#p-waits svg > rect')).fill") == light
    assert wide.page.pdf()[:4] == b"%PDF"


@pytest.mark.parametrize(
    "name",
    ["<img src=x onerror=alert(1)>", "</script><script>alert(1)</script>", "\"q\" 'n' <!--", "אבג 🧵", "x" * 10_000],
    ids=range(5),
)
def test_hostile_names_stay_text(browser: Any, tmp_path: Path, name: str) -> None:
    bundle = picture_case.hostile(name)
    body = "".join(draw(bundle, kind).fragment(key=f"p-{kind}") for kind in KINDS)
    path = tmp_path / "hostile.html"
    path.write_text(figure.page(name, body), encoding="utf-8")
    page = picture_browser.Page(browser, path, 1280)
    for kind in ("waits", "timeline"):
        mark = page.page.locator(f"#p-{kind} {MARK}").first
        mark.scroll_into_view_if_needed()
        mark.hover(force=True)
        assert page.tip()
        assert page.page.locator(".wsf-tip *").count() == 0
    assert page.page.locator("figure img, figure iframe, figure foreignObject").count() == 0
    assert page.page.locator("figure script:not(.wsf-csv)").count() == 0
    assert page.page.evaluate("document.documentElement.scrollWidth") <= 1280
    assert page.said == []
    assert [url.split(":")[0] for url in page.asked] == ["file"]
    page.context.close()
