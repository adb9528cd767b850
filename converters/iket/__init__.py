"""NVIDIA IKET: the decoded JSON that ``run-iket`` writes (``*.trace.json``); ranges, markers and lifetimes of warps."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from wsformat.bundle import Bundle, Progress
from wsformat.converters import import_mapping
from wsformat.converters.import_options import FACT_OPTIONS, MAPPING, facts, plain_head
from wsformat.converters.recording_bundle import Source, to_bundle
from wsformat.errors import BadRequest
from wsformat.provenance import bytes_sha256

NAME = "iket"
TITLE = "IKET decoded trace"
EXTENSIONS = (".trace.json", ".trace.json.gz")
OPTIONS = {**MAPPING, **FACT_OPTIONS}
LOSSES = (
    "The format has no states, roles or losses: spans are scopes unless a mapping says more.",
    "A full buffer is not marked in the decoded file: completeness is unknown, sampled when one cluster was enabled.",
    "Times step by 32 ns; they are kept as they are, and are comparable within one file only.",
    "Iterations are ordinals of a name in its warp.",
    "Colours and the ids of ranges and of internal events are not kept; events between a range's ends are stamps.",
)
CARRIES = {
    "in": (
        "captures", "launches", "lanes", "clocks", "roles", "event_types", "span_types", "dependencies", "events",
        "spans", "findings", "attributes",
    ),
}  # fmt: skip
MARK = re.compile(
    rb'"(stringTable|locationTable|graphLaunches|warpLifetimes|warpLocIdxs|rangeNameIdx|markerNameIdx)"\s*:'
)


def sniff(head: bytes, path: Path) -> bool:
    """Whether it is JSON with IKET's tables; packed files are looked into."""
    text = plain_head(head).lstrip()
    return text.startswith(b"{") and len({match.group(1) for match in MARK.finditer(text)}) >= 2


def read(paths: Sequence[Path], options: Mapping[str, Any], progress: Progress | None = None) -> Bundle:
    """Read one decoded trace.

    Args:
        paths: one file; times of different files cannot be compared.
        options: see OPTIONS.
        progress: called with the launches read so far.

    Raises:
        MalformedInput: broken; names the byte, or the part that is missing.
    """
    from wsformat.converters.iket.decode import decode

    if len(paths) != 1:
        raise BadRequest(f"{len(paths)} traces: one at a time", "Times of different files share no zero.")
    said = facts(options)
    mapping = import_mapping.load(options.get("mapping"))
    recording, version = decode(paths[0], progress)
    source = Source(
        list(paths), [bytes_sha256(paths[0])], NAME, f"iket-json/{version}" if version else "iket-json",
        "tables of names and locations", {},
    )  # fmt: skip
    bundle: Bundle = to_bundle(recording, source, mapping, said)
    return bundle
