"""Bringing bundles of an older format version up to the present one, one step a major version.

A minor version only adds, so that a bundle of an older minor needs no step: it is read as it is, and written in full.
A step is a pure function from a bundle of major version n to one of n + 1. When a new major version is made:
write ``_from_n``, add it to ``STEPS``, and keep a golden bundle of version n for the tests for ever.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from wsformat import manifest as manifests
from wsformat.bundle import Bundle, Progress, TableData, manifest_of
from wsformat.errors import MalformedInput, UnsupportedVersion
from wsformat.manifest import number
from wsformat.tables import conform, format_version
from wsformat.writer import write_bundle

Batches = Callable[[], Iterator[pa.Table]]


@dataclass(frozen=True, slots=True)
class RawBundle:
    """A bundle of any version, as it is stored.

    Attributes:
        manifest: the JSON values of its manifest; ``tables`` in it is not kept up by steps.
        tables: per table name a function that gives its rows anew each time, in parts.
    """

    manifest: Mapping[str, Any]
    tables: Mapping[str, Batches]


Step = Callable[[RawBundle], RawBundle]

STEPS: Mapping[int, Step] = {}
"""Step n brings major version n to n + 1. There is one major version so far, 0."""


@dataclass(frozen=True, slots=True)
class Upgraded:
    """Result of :func:`upgrade`.

    Attributes:
        bundle: the bundle in the present version.
        before: format version that it had.
        after: format version that it has.
        steps: steps that were taken, such as ``1 -> 2``; empty when none was needed.
    """

    bundle: Bundle
    before: str
    after: str
    steps: tuple[str, ...]


def upgrade(
    path: str | os.PathLike[str],
    target: str | os.PathLike[str] | None = None,
    *,
    force: bool = False,
    progress: Progress | None = None,
) -> Upgraded:
    """Write a bundle of an older version in the present one.

    Args:
        path: the bundle.
        target: directory of the result; None upgrades in place (the old bundle is replaced at the end).
        force: replace a bundle that is at ``target`` already.
        progress: called as rows are written.

    Raises:
        MalformedInput: no bundle.
        UnsupportedVersion: a newer major version, or one that no chain of steps leads from.
        OutputExists: the target is there and ``force`` is false, or it is no bundle.
    """
    root = Path(path)
    raw = open_raw(root)
    before = str(raw.manifest["version"])
    if target is None and number(before) >= number(format_version()) and major(before) == major(format_version()):
        return Upgraded(Bundle.open(root), before, before, ())
    raised, steps = chain(raw, STEPS, format_version(), where=str(root))
    out = root if target is None else Path(target)
    in_place = os.path.abspath(out) == os.path.abspath(root)
    bundle = write_bundle(_bundle(raised), out, force=force or in_place, progress=progress)
    return Upgraded(bundle, before, bundle.manifest.version, steps)


def chain(raw: RawBundle, steps: Mapping[int, Step], current: str, *, where: str) -> tuple[RawBundle, tuple[str, ...]]:
    """Apply the steps from the bundle's major version to that of ``current``.

    Raises:
        UnsupportedVersion: its major version is newer, or a step is missing; the message has both versions.
    """
    stated = str(raw.manifest["version"])
    first, last = major(stated), major(current)
    if first > last:
        raise UnsupportedVersion(
            f"{where}: format version {stated}, this library reads {last}.x (up to {current})",
            "Install a newer wsformat.",
        )
    taken = []
    for n in range(first, last):
        if n not in steps:
            raise UnsupportedVersion(f"{where}: format version {stated}, no step leads from {n} to {n + 1}")
        raw = steps[n](raw)
        raw = RawBundle({**raw.manifest, "version": f"{n + 1}.0"}, raw.tables)
        taken.append(f"{n} -> {n + 1}")
    return raw, tuple(taken)


def open_raw(root: Path) -> RawBundle:
    """A bundle of whatever version; only what every version shares is required.

    Raises:
        MalformedInput: no bundle, or a manifest or table file that cannot be read.
    """
    path = manifest_of(root)
    data = manifests.parse_json(manifests.read_text(path), str(path))
    if not isinstance(data, dict) or data.get("format") != "wsformat":
        raise MalformedInput(f'{path}: not a wsformat manifest ("format" is not "wsformat")')
    version = data.get("version")
    if not isinstance(version, str) or not manifests.VERSION.fullmatch(version):
        raise MalformedInput(f"{path}: version {str(version)[:40]!r} is not MAJOR.MINOR")
    listed = data.get("tables", {})
    if not isinstance(listed, dict) or not all(isinstance(entry, dict) for entry in listed.values()):
        raise MalformedInput(f'{path}: "tables" must be an object of objects')
    rows = {}
    for name, entry in listed.items():
        file = root / manifests.check_file_name(entry.get("file"), f"{path}: table {name[:60]!r}")
        if file.is_symlink() or not file.is_file():
            raise MalformedInput(f"{file}: table {name[:60]} is listed in the manifest, its file is missing")
        rows[name] = _file_batches(file)
    return RawBundle(data, rows)


def _file_batches(path: Path) -> Batches:
    def batches() -> Iterator[pa.Table]:
        try:
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(batch_size=131_072):
                    yield pa.Table.from_batches([batch])
        except (OSError, ValueError, pa.ArrowException) as error:
            raise MalformedInput(f"{path}: cannot be read as Parquet: {str(error).splitlines()[0]}") from error

    return batches


def _bundle(raw: RawBundle) -> Bundle:
    manifest = manifests.parse(json.dumps(raw.manifest), manifests.NAME)
    data = {name: TableData(name, -1, _conforming(name, rows)) for name, rows in raw.tables.items()}
    return Bundle(data, manifest)


def _conforming(name: str, rows: Batches) -> Batches:
    return lambda: (conform(name, part) for part in rows())


def major(version: str) -> int:
    """Major part of a version."""
    return number(version)[0]
