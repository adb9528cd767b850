"""Buffers of the 64-bit tag family: FlashInfer's profiler, TVM's TIRx and warpscope. One record: tag low, time high.

The buffer does not say which of its dialects it is. Lanes are known from the place of a slot; the tag is a check.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from wsformat.bundle import Bundle
from wsformat.converters import import_mapping
from wsformat.converters.import_options import FACT_OPTIONS, MAPPING, facts
from wsformat.converters.recording_bundle import Source, to_bundle
from wsformat.converters.tag64.dialects import ALIASES, DIALECTS, HEAD_RECORDS, fitting, header
from wsformat.errors import BadRequest, MalformedInput
from wsformat.provenance import bytes_sha256

NAME = "tag64"
TITLE = "64-bit tag buffer (FlashInfer, TIRx, warpscope)"
EXTENSIONS = (".u64", ".npy")
OPTIONS = {
    "dialect": f"{', '.join([*DIALECTS, *ALIASES])}; by default the one that fits, when exactly one does",
    "stride": "slots from one record of a lane to its next; default blocks x groups, as the buffer says",
    "events": "names of events 0, 1, ..: comma-separated, or a JSON object by number",
    "groups": "names of groups 0, 1, ..: comma-separated, or a JSON object by number",
    **MAPPING,
    **FACT_OPTIONS,
}
LOSSES = (
    "The format has no names, states, roles or losses: names are given as options, states by a mapping.",
    "Times are the low 32 bits of a ns timer; wraps are undone lane by lane, which needs a record every 2.1 s.",
    "Records after a lane's end, or after time goes back in a lane, are of an earlier launch: counted, not kept.",
    "FlashInfer's instants do not move on in the buffer: the next record overwrites them, and nothing tells.",
    "FlashInfer since mid 2025 stores the block, not the lane, in the tag, and 8 bits of the SM.",
    "A lane that fills the buffer may have lost records: truncated when others have an end, else unknown.",
    "Iterations are ordinals of a name in its lane.",
)

CARRIES = {
    "in": (
        "captures", "launches", "lanes", "clocks", "roles", "event_types", "span_types", "dependencies", "events",
        "spans", "findings", "attributes",
    ),
}  # fmt: skip


def sniff(head: bytes, path: Path) -> bool:
    """Whether slot 0 holds a number of blocks and of groups, and the slots after it hold tags of those lanes."""
    size = path.stat().st_size
    if size < 24 or size % 8 or len(head) < 24:
        return False
    words = np.frombuffer(head[: len(head) // 8 * 8], "<u4").reshape(-1, 2)[:HEAD_RECORDS]
    blocks, groups = (int(word) for word in words[0])
    if not (1 <= blocks <= 1 << 20 and 1 <= groups <= 64 and blocks * groups < size // 8):
        return False
    return bool(words[1:].any()) and bool(fitting(words, blocks, groups, blocks * groups))


def read(paths: Sequence[Path], options: Mapping[str, Any]) -> Bundle:
    """Read buffers, each a launch.

    Args:
        paths: files of little-endian 64-bit words, or ``.npy`` of them.
        options: see OPTIONS.

    Raises:
        MalformedInput: no such buffer, or several dialects fit.
        BadRequest: an option makes no sense.
    """
    from wsformat.converters.tag64.decode import decode

    said = facts(options)
    mapping = import_mapping.load(options.get("mapping"))
    names = {kind: _names(kind, options.get(kind)) for kind in ("events", "groups")}
    stride = _stride(options.get("stride"))
    asked = str(options.get("dialect") or "")
    asked = ALIASES.get(asked, asked)
    if asked and asked not in DIALECTS:
        raise BadRequest(f"dialect {asked!r}: no such dialect", f"Dialects: {', '.join([*DIALECTS, *ALIASES])}.")
    buffers = [(path, _words(path)) for path in paths]
    found = {asked} if asked else set(DIALECTS)
    if not asked:
        for path, words in buffers:
            blocks, groups = header(words, str(path))
            found &= set(fitting(words, blocks, groups, stride or blocks * groups))
        if len(found) != 1:
            _refuse(paths, found)
    (dialect,) = found
    how = "named by the user" if asked else "the only dialect that every tag fits"
    recording = decode(buffers, DIALECTS[dialect], stride, names["events"], names["groups"])
    kept = {"dialect": asked, "stride": str(stride or "")} | {
        kind: json.dumps({str(k): v for k, v in value.items()}) for kind, value in names.items() if value
    }
    source = Source(list(paths), [bytes_sha256(path) for path in paths], NAME, dialect, how, kept)
    bundle: Bundle = to_bundle(recording, source, mapping, said)
    return bundle


def _words(path: Path) -> Any:
    if path.suffix == ".npy":
        try:
            data = np.load(path, mmap_mode="r", allow_pickle=False)
        except (ValueError, OSError, EOFError) as error:
            raise MalformedInput(f"{path}: cannot be read as .npy: {error}") from error
        if data.dtype.itemsize != 8 or data.dtype.kind not in "iu" or data.dtype.byteorder == ">":
            raise MalformedInput(f"{path}: {data.dtype}, 64-bit little-endian integers are needed")
        return np.ascontiguousarray(data).reshape(-1).view("<u4").reshape(-1, 2)
    size = path.stat().st_size
    if size % 8:
        raise MalformedInput(
            f"{path}: broken at byte {size // 8 * 8}: {size % 8} bytes after the last 64-bit word", "Copy it again."
        )
    return np.fromfile(path, "<u4").reshape(-1, 2)


def _names(kind: str, value: Any) -> dict[int, str]:
    if value is None or value == "":
        return {}
    if isinstance(value, str) and not value.lstrip().startswith("{"):
        value = dict(enumerate(value.split(",")))
    try:
        pairs = json.loads(value) if isinstance(value, str) else dict(value)
        return {int(number): str(name).strip() for number, name in pairs.items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise BadRequest(f"{kind} {value!r}: names are needed, comma-separated or a JSON object by number") from error


def _stride(value: Any) -> int:
    if value is None or value == "":
        return 0
    try:
        stride = int(value)
    except ValueError as error:
        raise BadRequest(f"stride {value!r}: not a whole number") from error
    if stride < 1:
        raise BadRequest(f"stride {stride}: at least 1")
    return stride


def _refuse(paths: Sequence[Path], found: set[str]) -> None:
    if found:
        raise MalformedInput(
            f"{paths[0]}: {' and '.join(sorted(found))} fit this buffer, which does not say what wrote it",
            "Give -O dialect=NAME.",
        )
    raise MalformedInput(
        f"{paths[0]}: no known dialect fits every tag of this buffer",
        "If the writer is known, give -O dialect=NAME (and -O stride=N when it used another stride); tags that "
        "disagree are then counted.",
    )
