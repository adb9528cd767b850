"""A page opened in Chromium with the network off, for the tests of pictures."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

REQUIRED = os.environ.get("WSFORMAT_REQUIRE_CLIENTS") == "1"


@contextmanager
def chromium() -> Iterator[Any]:
    """A running browser; skips where there is none, fails where clients are required."""
    if not REQUIRED:
        pytest.importorskip("playwright.sync_api")
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        if REQUIRED:
            pytest.fail("Chromium is not installed")
        pytest.skip("Chromium is not installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        opened = driver.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        )
        yield opened
        opened.close()


class Page:
    """A page opened offline, with everything that it said and asked for."""

    def __init__(self, browser: Any, path: Path, width: int, scheme: str = "light") -> None:
        self.said: list[str] = []
        self.asked: list[str] = []
        self.context = browser.new_context(
            viewport={"width": width, "height": 760}, offline=True, color_scheme=scheme, accept_downloads=True
        )
        self.page = self.context.new_page()
        self.page.on("console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: self.said.append("dialog") or dialog.dismiss())
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(path.as_uri())

    def drawn(self) -> Page:
        """Wait until the timeline is painted."""
        self.page.wait_for_selector("section.wsf-timeline[data-drawn=yes]", timeout=60_000)
        self.page.wait_for_timeout(100)
        return self

    def state(self, name: str) -> Any:
        """A value of the timeline's state."""
        return self.page.evaluate(f"document.querySelector('section.wsf-timeline').wsfState.{name}")

    def settle(self) -> None:
        """Let pending painting happen."""
        self.page.wait_for_timeout(150)

    def tip(self) -> str:
        """Words of the tooltip, '' when none is shown."""
        found = self.page.locator(".wsf-tip")
        return found.inner_text() if found.is_visible() else ""

    def place_of(self, cta: int, role: str, x: float) -> tuple[float, float]:
        """Pixels of a moment in the row of a role."""
        found = self.page.evaluate(
            """([cta, role, x]) => {
              const section = document.querySelector('section.wsf-timeline'), state = section.wsfState;
              const box = section.querySelector('.wsf-detail').getBoundingClientRect();
              const rows = section.wsfStore.data.rows;
              const line = state.lines.find(l => rows[l.place].cta === cta && rows[l.place].name === role);
              const plot = state.width - state.left - 8;
              return [box.left + state.left + (x - state.view[0]) / (state.view[1] - state.view[0]) * plot,
                      box.top + line.y - state.scroll + state.axis + line.height / 2];
            }""",
            [cta, role, x],
        )
        return found[0], found[1]
