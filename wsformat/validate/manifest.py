"""Family 2xx, and E101, E112, E111 of the manifest itself: JSON, shape, version, names."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import jsonschema

from wsformat import manifest as manifests
from wsformat.errors import MalformedInput
from wsformat.manifest import number
from wsformat.tables import format_version, read_schema_json, tables
from wsformat.validate.report import Findings, clip
from wsformat.validate.subject import Subject, TableFile

KEYS = ("format", "version", "writer", "tables", "sources", "extensions")
MAX_SHAPE_ERRORS = 100
OWN_CODE = {
    ("tables", "file"),
    ("sources", "capture_ids"),
    ("extensions", "name"),
    ("extensions", "tables"),
    ("extensions", "columns"),
}


class _Twice(ValueError):
    """A key occurs twice in one object."""


def read(subject: Subject, found: Findings) -> None:
    """Find and parse the manifest; sets ``subject.fatal`` when there is nothing to go on with."""
    assert subject.root is not None
    path = subject.root / manifests.NAME
    if path.is_symlink() and path.exists():
        found.add("E112", "a link", row=manifests.NAME)
    elif not path.is_file():
        found.add("E101", f"no regular file {manifests.NAME}", row=manifests.NAME)
        subject.fatal = "there is no manifest"
        return
    size = path.stat().st_size
    if size > manifests.MAX_BYTES:
        found.add("E203", f"{size} bytes, at most {manifests.MAX_BYTES}", row=manifests.NAME)
        subject.fatal = "the manifest is too large"
        return
    subject.fatal = _parse(path.read_bytes(), subject, found)


def _parse(raw: bytes, subject: Subject, found: Findings) -> str:
    where = manifests.NAME
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        found.add("E201", f"not UTF-8 at byte {error.start}", row=where)
        return "the manifest is no JSON"
    if _depth(raw) > manifests.MAX_DEPTH:
        found.add("E203", f"nested {_depth(raw)} deep, at most {manifests.MAX_DEPTH}", row=where)
        return "the manifest nests too deep"
    try:
        data = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except _Twice as error:
        found.add("E202", str(error), row=where)
        return "the manifest is ambiguous"
    except ValueError as error:
        # Python refuses to convert integers of more than some thousand digits, with a ValueError of its own.
        code = "E203" if "digits" in str(error) else "E201"
        found.add(code, str(error), row=where)
        return "the manifest is no JSON" if code == "E201" else "the manifest holds a number that is too large"
    large = _large_number(data)
    if large:
        found.add("E203", f"{large} is outside 64 signed bits", row=where)
        return "the manifest holds a number that is too large"
    if not isinstance(data, dict):
        found.add("E204", "is no JSON object", row=where)
        return "the manifest is no object"
    subject.manifest = data
    return ""


def _depth(raw: bytes) -> int:
    """Deepest nesting of brackets outside texts."""
    bare = re.sub(rb'"(?:[^"\\]|\\.)*"', b"", raw, flags=re.DOTALL)
    depth = deepest = 0
    for bracket in re.findall(rb"[\[{\]}]", bare):
        depth += 1 if bracket in b"[{" else -1
        deepest = max(deepest, depth)
        if deepest > 10 * manifests.MAX_DEPTH:
            break
    return deepest


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _Twice(f"key {key[:60]!r} occurs twice in one object")
            seen.add(key)
    return result


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


def _large_number(data: Any) -> str:
    if isinstance(data, dict):
        return next(filter(None, map(_large_number, data.values())), "")
    if isinstance(data, list):
        return next(filter(None, map(_large_number, data)), "")
    if isinstance(data, int) and not -(2**63) <= data < 2**63:
        return clip(str(data), 40)
    return str(data) if isinstance(data, float) and not math.isfinite(data) else ""


def version(subject: Subject, found: Findings) -> None:
    """E205, E206, W207."""
    stated = subject.manifest.get("version")
    if not isinstance(stated, str) or not manifests.VERSION.fullmatch(stated):
        found.add("E205", f"version {clip(repr(stated), 40)} is not MAJOR.MINOR", row="version")
        subject.fatal = "the format version is unknown"
    elif number(stated)[0] != number(format_version())[0]:
        ours = format_version()
        found.add(
            "E206", f"version {stated}, this validator knows {ours.split('.')[0]}.x (up to {ours})", row="version"
        )
        subject.fatal = f"format version {stated} is not supported"
    elif subject.newer:
        found.add("W207", f"version {stated}, this validator knows {format_version()}", row="version")


def shape(subject: Subject, found: Findings) -> None:
    """E204: the JSON Schema. What has a code of its own is left to that."""
    schema = read_schema_json("generated/manifest.schema.json")
    count = 0
    for error in jsonschema.Draft202012Validator(schema).iter_errors(subject.manifest):
        path = [str(part) for part in error.absolute_path]
        if _has_own_code(path, str(error.validator)):
            continue
        found.add("E204", error.message, row="/".join(path))
        count += 1
        if count >= MAX_SHAPE_ERRORS:
            break


def _has_own_code(path: list[str], keyword: str) -> bool:
    """Names of files, captures and extensions: E208, E406 (by way of E212) and E903 say more."""
    if keyword != "pattern" or len(path) < 3:
        return False
    return (path[0], path[2]) in OWN_CODE and len(path) <= 4


def table_entries(subject: Subject, found: Findings) -> None:
    """E208 and the table list; only entries with a harmless file name are looked at further."""
    assert subject.root is not None
    listed = subject.manifest.get("tables")
    for name, entry in listed.items() if isinstance(listed, dict) else ():
        if not isinstance(entry, dict) or not isinstance(entry.get("file"), str):
            continue
        try:
            file = manifests.check_file_name(entry["file"], "manifest")
        except MalformedInput:
            found.add(
                "E208", f"file {clip(entry['file'], 80)!r}", table=clip(name, 60), row=f"tables/{clip(name, 60)}/file"
            )
            continue
        subject.files[name] = TableFile(name, subject.root / file, entry)


def names(subject: Subject, found: Findings) -> None:
    """E111, E209, E210, W213, E214, W114."""
    owners: dict[str, str] = {}
    for name, file in subject.files.items():
        assert file.path is not None
        if file.path.name in owners:
            message = f"also the file of table {owners[file.path.name]}"
            found.add("E111", message, table=name, row=file.path.name)
            file.spoil(f"its file is also that of table {owners[file.path.name]}")
        elif file.path.name != f"{name}.parquet":
            found.add("W114", f"file {file.path.name}", table=name, row=f"tables/{name}/file")
        owners.setdefault(file.path.name, name)
        if name in tables():
            if not subject.knows(name):
                found.add("E214", f"since {tables()[name].since}, the bundle is of {subject.version}", table=name)
        elif "__" not in name and not subject.newer:
            found.add("E210", "no table of the standard", table=name)
    captures = subject.manifest.get("tables")
    entry = captures.get("captures") if isinstance(captures, dict) else None
    if entry is None:
        found.add("E209", "the manifest lists no table captures", row="tables")
    elif isinstance(entry, dict) and entry.get("rows") == 0:
        found.add("E209", "no rows", table="captures")
    if not subject.newer:
        for key in subject.manifest:
            if key not in KEYS and "__" not in key:
                found.add("W213", f"key {clip(key, 60)!r} is not in the standard", row=clip(key, 60))
