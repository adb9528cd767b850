"""From a Vega-Lite specification to SVG, PNG and PDF, with the hatch; and how a picture becomes a file."""

from __future__ import annotations

import html
import json
import os
import secrets
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from wsformat.errors import BadRequest, MissingDependency, WsformatError
from wsformat.outputs import check_file

STALL = "wsformat-stall"
"""Id of the hatch pattern; a mark filled with ``url(#wsformat-stall)`` is hatched."""
SUFFIXES = (".html", ".svg", ".png", ".pdf")


def optional(name: str) -> Any:
    """A package of the ``view`` extra.

    Raises:
        MissingDependency
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingDependency(
            f"pictures need the package {name.replace('_', '-')}, which is not installed ({error})",
            "Install the extra: pip install 'wsformat[view]'.",
        ) from error


def hatch(stall: Mapping[str, str]) -> str:
    """SVG definitions that the pictures refer to.

    The pattern is fixed to the page, not to a mark, so neighbouring marks continue each other's lines. Lines are
    dark on light grey: they survive greyscale, photocopies and 2 px wide marks.
    """
    return (
        f'<defs><pattern id="{STALL}" patternUnits="userSpaceOnUse" width="4" height="4">'
        f'<rect width="4" height="4" fill="{stall["base"]}"/>'
        f'<path d="M-1,1L1,-1M0,4L4,0M3,5L5,3" stroke="{stall["line"]}" stroke-width="1" fill="none"/>'
        "</pattern></defs>"
    )


def to_svg(spec: Mapping[str, Any], stall: Mapping[str, str]) -> str:
    """The picture as SVG with its patterns inside."""
    drawn: str = optional("vl_convert").vegalite_to_svg(spec, vl_version=_vegalite(spec))
    head = drawn.index(">", drawn.index("<svg")) + 1
    title = html.escape(str(spec.get("description", "")), quote=False)
    return f"{drawn[:head]}<title>{title}</title>{hatch(stall)}{drawn[head:]}"


def to_png(svg: str, scale: float = 2.0) -> bytes:
    """PNG of an SVG, two pixels to a CSS pixel by default."""
    picture: bytes = optional("vl_convert").svg_to_png(svg, scale=scale)
    return picture


def to_pdf(svg: str) -> bytes:
    """PDF of an SVG, for papers."""
    picture: bytes = optional("vl_convert").svg_to_pdf(svg)
    return picture


def script_json(value: object) -> str:
    """JSON that is safe inside a script element."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _vegalite(spec: Mapping[str, Any]) -> str:
    """The renderer's version of Vega-Lite that is nearest to the one the specification was made for."""
    wanted = str(spec.get("$schema", "")).rsplit("/v", 1)[-1].removesuffix(".json").split(".")
    there: list[str] = optional("vl_convert").get_vegalite_versions()
    same = [version for version in there if version.split(".")[0] == wanted[0]]
    if not same:
        raise MissingDependency(
            f"altair writes Vega-Lite {'.'.join(wanted)}, vl-convert-python knows {', '.join(there)}",
            "Update both: pip install -U altair vl-convert-python.",
        )
    exact = [version for version in same if version.split(".")[1:2] == wanted[1:2]]
    return (exact or same)[-1]


def check_output(path: str | os.PathLike[str], *, force: bool) -> Path:
    """Refuse an output before any work is done for it.

    Raises:
        BadRequest: a suffix that is no picture.
        OutputExists: something is there and ``force`` is false, or it is no file.
    """
    target = Path(path)
    if target.suffix.lower() not in SUFFIXES:
        raise BadRequest(
            f"{target}: cannot tell the kind of picture from the suffix {target.suffix!r}",
            f"Name it {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}.",
        )
    check_file(target, force=force)
    return target


class Picture(Protocol):
    """What can be written as a picture."""

    @property
    def svg(self) -> str:
        """SVG text."""

    def png(self, scale: float = 2.0) -> bytes:
        """PNG."""

    def pdf(self) -> bytes:
        """PDF."""

    def html(self) -> str:
        """A page."""


def write_picture(picture: Picture, path: str | os.PathLike[str], *, force: bool = False) -> Path:
    """Write a picture as .html, .svg, .png (two pixels to a CSS pixel) or .pdf, by the suffix; whole or not at all.

    Raises:
        BadRequest: another suffix.
        OutputExists: the file is there and ``force`` is false.
    """
    target = check_output(path, force=force)
    suffix = target.suffix.lower()
    made: dict[str, Callable[[], str | bytes]] = {
        ".html": picture.html,
        ".svg": lambda: picture.svg,
        ".png": picture.png,
        ".pdf": picture.pdf,
    }
    write_whole(target, made[suffix]())
    return target


def write_whole(target: Path, content: str | bytes) -> None:
    """Write a file so that a reader sees the old one, none, or the whole new one."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    scratch = target.parent / f".{target.name[:100]}.partial-{os.getpid()}-{secrets.token_hex(4)}"
    try:
        with scratch.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(scratch, target)
    except OSError as error:
        raise WsformatError(f"{target}: cannot be written: {error.strerror or error}") from error
    finally:
        scratch.unlink(missing_ok=True)
