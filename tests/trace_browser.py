"""The Perfetto viewer and Catapult in headless Chromium, from files of this machine alone."""

from __future__ import annotations

import functools
import http.server
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trace_clients import need, web_dist

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-sync"]
TRACKS = """() => [...document.querySelectorAll('.pf-track')].map(e => [
  Number(getComputedStyle(e).getPropertyValue('--depth')),
  e.querySelector(':scope > .pf-track__header .pf-track__title-popup')?.innerText])"""
CATAPULT = """(text) => {
  const model = new tr.Model(); let error = '';
  try { new tr.importer.Import(model).importTraces([text]); } catch (e) { error = String(e); }
  const rows = { error, warnings: model.importWarnings.map(w => w.type + ': ' + w.message), threads: [], flows: [], counters: [] };
  for (const t of model.getAllThreads()) rows.threads.push({ process: t.parent.name, thread: t.name, order: t.sortIndex,
    slices: t.sliceGroup.slices.map(s => [s.title, s.category, s.start, s.duration]) });
  for (const f of model.flowEvents) rows.flows.push([f.startSlice?.title, f.startSlice?.category, f.endSlice?.title, f.start, f.duration]);
  for (const p of model.getAllProcesses()) for (const c of Object.values(p.counters)) for (const s of c.series)
    rows.counters.push([p.name, c.name, s.samples.map(x => [x.timestamp, x.value])]);
  return rows; }"""  # noqa: E501


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The files of a folder over HTTP, from 127.0.0.1."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        extensions_map = {**http.server.SimpleHTTPRequestHandler.extensions_map, ".wasm": "application/wasm"}  # noqa: RUF012

        def log_message(self, *_: object) -> None:
            """Nothing to say."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def page(width: int = 1500, height: int = 900) -> Iterator[Any]:
    """A page of a headless Chromium."""
    found = shutil.which("chromium") or shutil.which("google-chrome")
    need(found is not None, "Chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        need(False, "playwright")
        raise
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=FLAGS)
        try:
            yield browser.new_page(viewport={"width": width, "height": height}, device_scale_factor=1)
        finally:
            browser.close()


def site(root: Path) -> Path:
    """A folder with the files of the Perfetto viewer."""
    root.mkdir()
    for entry in web_dist().parent.iterdir():
        os.symlink(entry, root / entry.name)
    return root


@contextmanager
def viewer(trace: Path, scratch: Path) -> Iterator[Any]:
    """The Perfetto viewer with a trace open and every group of tracks unfolded."""
    root = site(scratch / "viewer")
    shutil.copy(trace, root / trace.name)
    with served(root) as address, page() as tab:
        tab.goto(f"{address}/#!/?url={address}/{trace.name}")
        tab.wait_for_selector(".pf-track", timeout=180_000)
        tab.wait_for_function("() => !document.body.innerText.includes('Loading trace')", timeout=180_000)
        tab.evaluate("() => app.commands.runCommand('dev.perfetto.ExpandAllGroups')")
        tab.evaluate("() => app.commands.runCommand('dev.perfetto.ToggleLeftSidebar')")
        tab.wait_for_function("() => document.querySelectorAll('.pf-track').length > 2", timeout=60_000)
        tab.evaluate("() => window.waitForPerfettoIdle ? window.waitForPerfettoIdle() : null")
        yield tab


def shown(tab: Any) -> list[tuple[int, str]]:
    """(depth, name) of the viewer's rows from top to bottom, without those that Perfetto adds of its own."""
    rows = [(int(depth), str(name)) for depth, name in tab.evaluate(TRACKS)]
    return [row for row in rows if row[1] not in ("System", "Clock Snapshots")]


@contextmanager
def catapult() -> Iterator[Any]:
    """A function that imports the text of a JSON trace with Catapult (chrome://tracing) and tells what it holds."""
    with served(web_dist()) as address, page() as tab:
        tab.goto(f"{address}/assets/catapult_trace_viewer.html")
        tab.wait_for_function("() => typeof tr !== 'undefined' && typeof tr.Model === 'function'", timeout=180_000)
        yield lambda text: tab.evaluate(CATAPULT, text)
