"""A page as a picture, by a browser that is installed: Chromium or Chrome, headless and without a network."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from wsformat.errors import MissingDependency, WsformatError
from wsformat.viewers import render

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
SECONDS = 120
WIDTH = 1200
HEIGHT = 1500
"""Pixels of the picture: the first screens, where the answer is."""


def browser() -> str:
    """Path of a browser; the environment variable WSFORMAT_BROWSER names another.

    Raises:
        MissingDependency: none is installed.
    """
    named = os.environ.get("WSFORMAT_BROWSER", "")
    found = shutil.which(named) if named else next((p for p in map(shutil.which, NAMES) if p), None)
    if found is None:
        what = f"WSFORMAT_BROWSER={named}: no such program" if named else "no Chromium or Chrome is installed"
        raise MissingDependency(
            f"--png: {what}; nothing was written",
            "Install one, or name it in WSFORMAT_BROWSER; `wsformat view -o X.png` needs no browser.",
        )
    return found


def write(page: str, target: Path, program: str, width: int = WIDTH, height: int = HEIGHT) -> None:
    """Take a picture of a page, whole or not at all.

    Raises:
        WsformatError: the browser gave no picture.
    """
    with tempfile.TemporaryDirectory(prefix="wsformat-") as name:
        folder = Path(name)
        (folder / "page.html").write_text(page, encoding="utf-8")
        shot = folder / "page.png"
        command = [
            program, "--headless", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-extensions",
            "--disable-background-networking", "--proxy-server=127.0.0.1:9", f"--user-data-dir={folder / 'profile'}",
            f"--window-size={width},{height}", "--virtual-time-budget=10000", f"--screenshot={shot}",
            (folder / "page.html").as_uri(),
        ]  # fmt: skip
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            command.insert(1, "--no-sandbox")  # a browser refuses its sandbox to root, as in a container
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise WsformatError(f"--png: {program} gave no picture: {error}") from error
        if not shot.is_file():
            said = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
            raise WsformatError(f"--png: {program} gave no picture: {said}")
        render.write_whole(target, shot.read_bytes())
