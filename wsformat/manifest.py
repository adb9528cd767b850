"""The manifest of a bundle: what it is, which tables it has, where its data came from."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wsformat.errors import MalformedInput, UnsupportedVersion
from wsformat.tables import format_version

NAME = "manifest.json"
# A manifest lists a few tables and sources; anything larger is an attack or a mistake.
MAX_BYTES = 16 * 1024 * 1024
MAX_DEPTH = 64
STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
BRACKET = re.compile(r"[\[\]{}]")
VERSION = re.compile(r"^(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})$")


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest as read or about to be written.

    Attributes:
        version: format version, ``MAJOR.MINOR``.
        writer: ``{"name", "version"}`` of the program that wrote the bundle.
        tables: per table name: ``file``, ``rows``, ``bytes``, ``sha256``, ``columns`` (digests).
        sources: one entry a source file: ``name``, ``sha256``, ``bytes``, ``capture_ids``, ``converter``,
            ``dialect``, ``detected_by``, ``options``.
        extensions: ``{"name", "version", "must_understand", "tables", "columns"}`` each.
        extra: keys of a newer minor version or of somebody else; kept on rewrite.
    """

    version: str
    writer: Mapping[str, Any] = field(default_factory=dict)
    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    sources: tuple[Mapping[str, Any], ...] = ()
    extensions: tuple[Mapping[str, Any], ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The manifest as JSON values; shares nothing mutable with this object."""
        data = {
            "format": "wsformat",
            "version": self.version,
            "writer": self.writer,
            "tables": self.tables,
            "sources": list(self.sources),
            "extensions": list(self.extensions),
            **self.extra,
        }
        copy: dict[str, Any] = json.loads(json.dumps(data))
        return copy

    def dumps(self) -> str:
        """The text of ``manifest.json``."""
        return json.dumps(self.to_json(), indent=1, ensure_ascii=False) + "\n"


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise ValueError(f"key {key[:40]!r} occurs twice")
        result[key] = value
    return result


def parse_json(text: str, where: str) -> Any:
    """Parse JSON from outside: bounded depth, no duplicate keys, no NaN.

    Raises:
        MalformedInput: with the place and the reason.
    """
    depth = deepest = 0
    for bracket in BRACKET.findall(STRING.sub("", text)) if len(text) < 1_000_000 else ():
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    if deepest > MAX_DEPTH:
        raise MalformedInput(f"{where}: nested {deepest} deep, at most {MAX_DEPTH} is allowed")
    try:
        return json.loads(text, object_pairs_hook=_no_duplicates, parse_constant=_refuse_constant)
    except RecursionError as error:
        raise MalformedInput(f"{where}: nested too deep") from error
    except ValueError as error:
        raise MalformedInput(f"{where}: not valid JSON: {error}") from error


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


def read_text(path: Path, limit: int = MAX_BYTES) -> str:
    """Text of a small UTF-8 file.

    Raises:
        MalformedInput: it is missing, no file, larger than ``limit`` bytes, or not UTF-8.
    """
    try:
        if not path.is_file():
            what = "is a directory, a file is needed" if path.is_dir() else "is no regular file"
            raise MalformedInput(f"{path}: {what if path.exists() else 'no such file'}")
        if path.stat().st_size > limit:
            raise MalformedInput(f"{path}: {path.stat().st_size} bytes, at most {limit} are allowed")
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise MalformedInput(f"{path}: not UTF-8 at byte {error.start}") from error
    except OSError as error:
        raise MalformedInput(f"{path}: {error.strerror or error}") from error


def read_json(path: Path, limit: int = MAX_BYTES) -> Any:
    """JSON of a file that people or other tools wrote: a byte order mark, as Windows editors put there, is skipped.

    Raises:
        MalformedInput: as :func:`read_text` and :func:`parse_json`.
    """
    return parse_json(read_text(path, limit).removeprefix("\ufeff"), str(path))


def check_version(version: object, where: str) -> str:
    """The version text when this library can read it.

    Raises:
        MalformedInput: it is no ``MAJOR.MINOR``.
        UnsupportedVersion: its major number is another one.
    """
    if not isinstance(version, str) or not VERSION.fullmatch(version):
        raise MalformedInput(f"{where}: version {version!r} is not MAJOR.MINOR")
    ours = format_version()
    if int(version.split(".")[0]) != int(ours.split(".")[0]):
        raise UnsupportedVersion(
            f"{where}: format version {version}, this library reads {ours.split('.')[0]}.x (up to {ours})",
            "Install a newer wsformat, or upgrade the bundle with `wsformat upgrade`.",
        )
    return version


def number(version: str) -> tuple[int, ...]:
    """A version for comparison."""
    return tuple(int(part) for part in version.split("."))


def parse(text: str, where: str) -> Manifest:
    """Read a manifest leniently: what a reader needs must be there, unknown keys are kept.

    Raises:
        MalformedInput, UnsupportedVersion
    """
    data = parse_json(text, where)
    if not isinstance(data, dict) or data.get("format") != "wsformat":
        raise MalformedInput(f'{where}: not a wsformat manifest ("format" is not "wsformat")')
    version = check_version(data.get("version"), where)
    listed = data.get("tables", {})
    if not isinstance(listed, dict) or not all(isinstance(v, dict) for v in listed.values()):
        raise MalformedInput(f'{where}: "tables" must be an object of objects')
    for name, entry in listed.items():
        check_file_name(entry.get("file"), f"{where}: table {name[:60]!r}")
    sources, extensions = data.get("sources", []), data.get("extensions", [])
    if not isinstance(sources, list) or not isinstance(extensions, list):
        raise MalformedInput(f'{where}: "sources" and "extensions" must be arrays')
    writer = data.get("writer", {})
    known = {"format", "version", "writer", "tables", "sources", "extensions"}
    return Manifest(
        version=version,
        writer=writer if isinstance(writer, dict) else {},
        tables=listed,
        sources=tuple(sources),
        extensions=tuple(extensions),
        extra={k: v for k, v in data.items() if k not in known},
    )


def check_file_name(name: object, where: str) -> str:
    """The name when it is a plain file name inside the bundle: no folder, no '..', no absolute path.

    Raises:
        MalformedInput
    """
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,200}", name) or ".." in name:
        raise MalformedInput(f"{where}: file {str(name)[:80]!r} is not a plain file name")
    return name
