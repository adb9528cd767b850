"""`wsformat doctor`: what this machine can do with wsformat, and what to install for the rest."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from typing import Annotated

import typer

from wsformat.cli.scope import Json

Areas = Annotated[
    list[str] | None,
    typer.Argument(metavar="AREA", help="only these, and end with 1 when one is not ready", show_default=False),
]

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
"""Programs that can draw a page without a window; any of them will do."""


@dataclass
class Part:
    """One thing that an area needs: what it is, what was found (empty: not there), what to do when it is missing."""

    name: str
    found: str
    fix: str
    optional: bool = False

    @property
    def ok(self) -> bool:
        """There, or not necessary."""
        return bool(self.found) or self.optional


@dataclass
class Area:
    """A group of commands and what they need of the machine."""

    name: str
    gives: str
    parts: list[Part] = field(default_factory=list)

    @property
    def ready(self) -> bool:
        """Nothing necessary is missing."""
        return all(part.ok for part in self.parts)


def doctor(area: Areas = None, json: Json = False) -> None:
    """Say what works on this machine and what is missing for pictures, GPU, Perfetto, Spark and the lake.

    Nothing is installed or changed. Without AREA it ends with 0 whatever it finds.
    """
    from wsformat.cli.output import print_json
    from wsformat.errors import BadRequest

    unknown = [name for name in area or () if name not in CHECKS]
    if unknown:
        raise BadRequest(f"there is no area {', '.join(unknown)}", f"Areas: {', '.join(CHECKS)}.")
    found = [CHECKS[name]() for name in area or CHECKS]
    if json:
        print_json([{**asdict(a), "ready": a.ready} for a in found])
    else:
        _print(found)
    if area and not all(a.ready for a in found):
        raise typer.Exit(1)


def _print(found: list[Area]) -> None:
    from wsformat.cli.output import clean

    for area in found:
        print(f"{area.name}: {'ready' if area.ready else 'NOT READY'} ({area.gives})")
        for part in area.parts:
            mark = "ok" if part.found else "--" if part.optional else "MISSING"
            print(f"  {mark:8}{part.name}{f' {clean(part.found)}' if part.found else f': {part.fix}'}")


def core() -> Area:
    """Python and the packages without which nothing works."""
    import platform

    parts = [
        Part("Python", platform.python_version() if sys.version_info >= (3, 11) else "", "use Python 3.11 or newer")
    ]
    return Area(
        "core", "bundles, validation, SQL, import, export", parts + packages("", "pip install --upgrade wsformat")
    )


def pictures() -> Area:
    """Packages that draw; SVG, PNG and PDF need no program beside them."""
    return Area(
        "pictures",
        "view as HTML, SVG, PNG and PDF; the pictures in report and diff",
        [*extra("view"), browser("report --png")],
    )


def gpu() -> Area:
    """Driver, compiler and packages of the recorder, and NVIDIA's profiler."""
    parts = [*extra("gpu"), Part("GPU and driver", _device(), "record on a machine with an NVIDIA GPU and its driver")]
    ncu = program("ncu", "--version", "Nsight Compute, only to read .ncu-rep; CSV files need nothing", optional=True)
    nvcc = program("nvcc", "--version", "CUDA toolkit, only to build C++ programs with the stamp header", optional=True)
    return Area("gpu", "record kernels; reading captures needs none of it", [*parts, ncu, nvcc])


def perfetto() -> Area:
    """Traces are written with nothing installed; to look at them somebody needs a browser."""
    return Area("perfetto", "export to .pftrace and open in ui.perfetto.dev", [browser("open, on this machine")])


def spark() -> Area:
    """PySpark and the Java that it runs on."""
    java = program("java", "-version", "install a Java runtime, 17 or newer", least=17)
    return Area("spark", "the derived views on a cluster", [*extra("spark"), java])


def lake() -> Area:
    """Packages of the lake."""
    return Area("lake", "many captures in one place: wsformat lake", extra("lake"))


CHECKS = {
    "core": core,
    "pictures": pictures,
    "gpu": gpu,
    "perfetto": perfetto,
    "spark": spark,
    "lake": lake,
}


def extra(name: str) -> list[Part]:
    """Packages of an extra, as the installed wsformat declares them."""
    found = packages(name, f"pip install 'wsformat[{name}]'")
    # An install from before the extra existed knows nothing of it, and would look complete.
    return found or [
        Part(f"extra {name}", "", "this install of wsformat does not know it: pip install --upgrade wsformat")
    ]


def packages(name: str, fix: str) -> list[Part]:
    """Packages that wsformat asks for: those of an extra, or with '' those without which it does not run."""
    import platform
    from importlib import metadata

    parts = []
    for requirement in metadata.requires("wsformat") or ():
        text, _, marker = requirement.partition(";")
        of = re.search(r"extra == ['\"]([\w-]+)['\"]", marker)
        if (of[1] if of else "") != name:
            continue
        system = re.search(r"platform_system == ['\"](\w+)['\"]", marker)
        if system and system[1] != platform.system():
            continue
        named = re.match(r"[\w.-]+", text.strip())
        assert named is not None, requirement
        if named[0] == "wsformat":  # an extra made of others
            continue
        least = re.search(r">=\s*([\d.]+)", text)
        parts.append(_package(named[0], least[1] if least else "0", fix))
    return parts


def _package(name: str, least: str, fix: str) -> Part:
    from importlib import metadata

    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return Part(name, "", fix)
    if _numbers(version) < _numbers(least):
        return Part(name, "", f"version {version} is older than {least}: {fix}")
    return Part(name, version, fix)


def _numbers(version: str) -> tuple[int, ...]:
    digits = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(n) for n in digits[0].split(".")) if digits else (0,)


def browser(use: str) -> Part:
    """A browser on PATH; pages are read by any browser anywhere, so it is never necessary."""
    found = next((path for name in BROWSERS if (path := shutil.which(name))), "")
    return Part("browser", found, f"for {use}: Chromium or Chrome; the pages open anywhere", optional=True)


def program(name: str, ask: str, fix: str, *, optional: bool = False, least: int = 0) -> Part:
    """A program on PATH with the line in which it says its version; ``least`` is the major version that will do."""
    path = shutil.which(name)
    if path is None:
        return Part(name, "", fix, optional)
    try:
        run = subprocess.run([path, ask], capture_output=True, text=True, timeout=20, errors="replace", check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Part(name, "", f"{path} does not run ({error}); {fix}", optional)
    if run.returncode:
        return Part(name, "", f"{path} {ask} ended with {run.returncode}; {fix}", optional)
    lines = [line for line in (run.stdout + run.stderr).splitlines() if re.search(r"\d+\.\d+", line)]
    said = re.search(r"\d+", lines[0]) if lines else None
    if least and said and int(said[0]) < least:
        return Part(name, "", f"{lines[0].strip()} is too old: {fix}", optional)
    return Part(name, lines[0].strip() if lines else path, fix, optional)


def _device() -> str:
    from wsformat.errors import WsformatError
    from wsformat.kernels.driver import Device

    try:
        with Device() as device:
            return str(device.name)
    except WsformatError:
        return ""
