"""The list of converters, and the choice between them.

A converter is a module of this package (or a folder with the same names in its ``__init__``):

    NAME = "raw_stamps"                     what --format takes
    TITLE = "raw stamp buffers"             for people
    EXTENSIONS = (".npy", ".npz")           usual file names, for help texts only
    OPTIONS = {"layout": "what it means"}   options of read or write
    READ_OPTIONS = {..}                     those of read, when write has others
    LOSSES = ("what is lost or assumed",)   one sentence each, printed by `wsformat formats NAME`
    CARRIES = {"in": ("spans",)}            tables that a reader may fill (in) or a writer makes use of (out)

    def sniff(head: bytes, path: Path) -> bool             for a reader; content decides, at most HEAD_BYTES
    def read(paths: Sequence[Path], options: Mapping[str, Any]) -> Bundle
    def write(bundle: Bundle, path: Path, options: Mapping[str, Any]) -> None      for a writer

``sniff`` answers "is it mine"; ``read`` raises MalformedInput when it is mine but broken.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from wsformat.bundle import Bundle, Progress
from wsformat.errors import BadRequest, MalformedInput, UnknownFormat

HEAD_BYTES = 65_536

READERS: tuple[str, ...] = ("raw_stamps", "ncu", "chrome", "iket", "tag64", "perfetto")
"""Modules that have ``sniff`` and ``read``."""

WRITERS: tuple[str, ...] = ("perfetto", "chrome", "skill_npz")
"""Modules that have ``write``."""


def converter(name: str) -> ModuleType:
    """The converter of that name.

    Raises:
        BadRequest: there is none.
    """
    known = dict.fromkeys(READERS + WRITERS)
    if name not in known:
        raise BadRequest(f"no format {name!r}", f"Formats: {', '.join(known)}.")
    return importlib.import_module(f"wsformat.converters.{name}")


def detect(path: Path) -> str:
    """Name of the one reader that recognises the file.

    Raises:
        MalformedInput: no such file, or no file.
        UnknownFormat: none or several recognise it; lists what was tried.
    """
    head = read_head(path)
    hits = [name for name in READERS if converter(name).sniff(head, path)]
    if len(hits) == 1:
        return hits[0]
    if hits:
        raise UnknownFormat(f"{path}: could be {' or '.join(hits)}", "Choose one with --format.")
    tried = "; ".join(f"{name} (no {converter(name).TITLE})" for name in READERS)
    raise UnknownFormat(f"{path}: not recognised; tried {tried}", "Name the format with --format if you know it.")


def read_head(path: Path) -> bytes:
    """First HEAD_BYTES of a file.

    Raises:
        MalformedInput: no such file, a directory, a pipe or a device.
    """
    if path.is_dir():
        raise MalformedInput(f"{path}: is a directory, a file is needed")
    if path.exists() and not path.is_file():
        # A pipe can be read once, and several readers look at a file; opening one that nobody writes never ends.
        raise MalformedInput(f"{path}: is no regular file", "Store what the pipe or device gives in a file first.")
    try:
        with path.open("rb") as file:
            return file.read(HEAD_BYTES)
    except FileNotFoundError as error:
        raise MalformedInput(f"{path}: no such file") from error
    except OSError as error:
        raise MalformedInput(f"{path}: {error.strerror or error}") from error


def import_files(
    paths: Sequence[Path],
    options: Mapping[str, Any],
    *,
    format_name: str = "",
    progress: Progress | None = None,
) -> Bundle:
    """Read foreign files, all of one format, into one bundle.

    Args:
        paths: one file or more.
        options: for the converter.
        format_name: converter to use; '' detects it from the first file.
        progress: called with (what, done, total) by converters that read for long.

    Raises:
        UnknownFormat, MalformedInput, BadRequest
    """
    if not paths:
        raise BadRequest("no input file")
    for path in paths:
        read_head(path)
    module = converter(format_name or detect(paths[0]))
    if module.__name__.rsplit(".", 1)[-1] not in READERS:
        raise BadRequest(f"{module.NAME} cannot be imported", f"Formats that can: {', '.join(READERS)}.")
    known = getattr(module, "READ_OPTIONS", module.OPTIONS)
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise BadRequest(f"{module.NAME} has no option {', '.join(unknown)}", f"Options: {', '.join(known) or 'none'}.")
    takes_progress = "progress" in inspect.signature(module.read).parameters
    bundle: Bundle = module.read(paths, options, **({"progress": progress} if takes_progress else {}))
    return bundle
