"""A report (.ncu-rep) as CSV, through the ``ncu`` command where there is one."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wsformat.errors import BadRequest, MalformedInput, MissingDependency

MAGIC = b"NVR\x00"
PAGES = ("raw", "details", "source")
TIMEOUT_S = 1800


def is_report(head: bytes, path: Path) -> bool:
    """Whether the file is a binary report."""
    return head.startswith(MAGIC) or (path.suffix == ".ncu-rep" and b"\x00" in head[:256])


@contextmanager
def as_csv(path: Path, page: str) -> Iterator[Path]:
    """The report's page as a CSV file in base units; the file goes away afterwards.

    Raises:
        BadRequest: no such page.
        MissingDependency: no ``ncu`` command.
        MalformedInput: ``ncu`` cannot read the report.
    """
    if page not in PAGES:
        raise BadRequest(f"option page: {page!r} is not {', '.join(PAGES)}")
    command = shutil.which("ncu")
    if command is None:
        raise MissingDependency(
            f"{path}: a binary report needs the ncu command, which is not on PATH",
            f"Where ncu is installed, run: ncu --import {path.name} --csv --page {page} --print-units base > OUT.csv",
        )
    with tempfile.TemporaryDirectory(prefix="wsformat-ncu-") as folder:
        out = Path(folder) / f"{path.name}.{page}.csv"
        line = [command, "--import", str(path), "--csv", "--page", page, "--print-units", "base"]
        with out.open("wb") as file:
            try:
                done = subprocess.run(line, stdout=file, stderr=subprocess.PIPE, timeout=TIMEOUT_S, check=False)
            except subprocess.TimeoutExpired as error:
                raise MalformedInput(f"{path}: ncu took more than {TIMEOUT_S} s") from error
        if done.returncode != 0:
            said = (done.stderr or out.read_bytes()[:2000]).decode(errors="replace").strip().splitlines()
            raise MalformedInput(
                f"{path}: ncu cannot read it: {said[-1] if said else f'exit {done.returncode}'}",
                "The report must not be newer than the installed ncu.",
            )
        yield out
