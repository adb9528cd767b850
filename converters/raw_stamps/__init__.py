"""Raw stamp buffers: what a kernel's stamps wrote, slot by slot, with a role spec that names the slots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from wsformat import rolespec, stamps
from wsformat.bundle import Bundle
from wsformat.converters.raw_stamps import buffers
from wsformat.converters.raw_stamps import options as given
from wsformat.converters.raw_stamps import spec as specs
from wsformat.errors import BadRequest, MalformedInput
from wsformat.iteration_window import WHOLE
from wsformat.provenance import bytes_sha256, capture_id, loss_attributes, source_entry
from wsformat.rolespec import Layout, RoleSpec
from wsformat.stamp_launch import StampLaunch

NAME = "raw_stamps"
TITLE = "raw stamp buffers"
EXTENSIONS = (".npy", ".npz", ".i32", ".u32", ".bin", ".i64", ".safetensors")
OPTIONS = given.OPTIONS
LOSSES = (
    "A slot holds a time and nothing else: no payloads, no tiles.",
    "Which warp wrote a slot is known only when the role spec says it.",
    "32-bit stamps lose their high half; it is restored from the start and end records, or by order.",
    "Without start and end records (meta), the SM and the relation to ns are unknown.",
    "Stamps beyond the last slot are lost; a lane that may have lost some is marked truncated or unknown.",
)

CARRIES = {
    "in": (
        "captures", "launches", "lanes", "clocks", "clock_anchors", "roles", "event_types", "span_types",
        "dependencies", "events", "findings", "attributes",
    ),
}  # fmt: skip


def sniff(head: bytes, path: Path) -> bool:
    """Whether the content is one of the containers; a raw buffer is also told by its name."""
    return bool(buffers.container(head, path)[0])


def read(paths: Sequence[Path], options: Mapping[str, Any]) -> Bundle:
    """Read stamp buffers: each file is a launch (or several), each buffer in it a CTA.

    Args:
        paths: buffers, all of one layout.
        options: see ``OPTIONS``.

    Raises:
        MalformedInput, BadRequest
    """
    asked = given.parse(options, paths)
    loaded = [buffers.load(path, _head(path)) for path in paths]
    raw_spec, spec_name = _raw_spec(asked, loaded, paths)
    layout = _layout(asked, raw_spec, loaded, paths)
    asked = specs.selection(asked, loaded, paths, raw_spec, layout)
    launches, widened = specs.narrow(_launches(asked, loaded, paths, layout), asked.unwritten)
    spec, notes = specs.resolve(raw_spec, spec_name, layout, launches, asked)
    notes += widened + _note_meta(asked, paths)
    launches, used_layout = specs.trim(launches, spec, layout)
    hashes = [bytes_sha256(path) for path in [*paths, *asked.meta, *[p for p, _ in asked.lifetimes]]]
    cid = capture_id(hashes, raw_spec, asked.identity(layout))
    dialect = f"{NAME}.{loaded[0].dialect}"
    experiment = asked.facts.get("experiment") or spec.capture.get("experiment") or (cid if asked.clean else "")
    capture = {**asked.facts, "experiment": experiment, "capture_id": cid, "kind": "stamped", "source_format": dialect}
    tables, surveys = stamps.decode(launches, spec, used_layout, capture, unwritten=asked.unwritten)
    entries = [
        source_entry(
            path,
            sha,
            capture_ids=[cid],
            converter=NAME,
            dialect=f"{NAME}.{part.dialect}",
            detected_by=part.detected_by,
            options=asked.identity(layout),
        )
        for path, sha, part in zip(paths, hashes, loaded, strict=False)
    ]
    entries += [
        source_entry(path, sha, capture_ids=[cid], converter=NAME, dialect=f"{NAME}.meta", detected_by=how)
        for path, how, sha in zip(
            [*asked.meta, *[p for p, _ in asked.lifetimes]],
            ["named by the user" if asked.meta_named else "lies beside its input"] * len(asked.meta)
            + ["named by the user"] * len(asked.lifetimes),
            hashes[len(paths) :],
            strict=True,
        )
    ]
    if asked.spec_path is not None:
        entries.append(
            source_entry(
                asked.spec_path,
                bytes_sha256(asked.spec_path),
                capture_ids=[cid],
                converter=NAME,
                dialect=f"{NAME}.rolespec" if rolespec.is_rolespec(raw_spec) else f"{NAME}.skill_spec",
                detected_by="named by the user",
            )
        )
    notes += specs.note_reversed(spec, surveys)
    tables["findings"] = [{"capture_id": cid, "kind": "message", "subject": s, "text": text} for s, text in notes]
    losses = loss_attributes(cid, _accounting(surveys, tables, notes))
    tables["attributes"] = [*losses, *stamps.window_attributes(launches, cid)]
    if asked.clean:
        entries += _add_clean(tables, asked, spec, launches[0].ctas, experiment, layout)
    return Bundle.from_tables(tables, sources=entries)


def _note_meta(asked: given.Given, paths: Sequence[Path]) -> list[specs.Note]:
    """What nobody asked for: records that were found, or that were left out."""
    if asked.meta and not asked.meta_named:
        names = ", ".join(path.name for path in asked.meta)
        return [("meta", f"Start and end records of the CTAs were found beside the input and taken: {names}.")]
    beside = [given.beside(path).name for path in paths if given.beside(path).is_file()]
    if beside and not asked.meta:
        return [
            ("meta", f"Start and end records lie beside some inputs only, so none were taken: {', '.join(beside)}.")
        ]
    return []


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(65_536)


def _raw_spec(asked: given.Given, loaded: Sequence[buffers.Buffers], paths: Sequence[Path]) -> tuple[Any, str]:
    """The role spec as JSON values and what to call it: the option, else what the first file carries."""
    found = [(asked.spec, str(asked.spec_path or "role spec"))]
    found += [(part.spec, f"{path}: role spec") for part, path in zip(loaded, paths, strict=True)]
    for spec, name in found:
        if spec is not None and not isinstance(spec, dict):
            raise MalformedInput(f"{name}: no role spec: a JSON object is needed")
        if spec is not None:
            return spec, name
    raise BadRequest(
        f"{paths[0]}: no role spec, so nobody knows what its slots mean",
        "Give --spec FILE: our role spec, or the JSON with roles, role_id, active, stall, deps.",
    )


def _layout(asked: given.Given, raw_spec: Any, loaded: Sequence[buffers.Buffers], paths: Sequence[Path]) -> Layout:
    layout: Layout | None = asked.layout
    for part in loaded:
        if layout is None:
            layout = part.layout
        if layout is None and part.data.ndim >= 3:
            layout = Layout(*(int(n) for n in part.data.shape[-3:]))
    said = raw_spec.get("layout") if isinstance(raw_spec, dict) else None
    if layout is None and isinstance(said, dict):
        layout = buffers.parse_layout([said.get(n) for n in buffers.LENGTHS], "role spec")
    if layout is None:
        raise BadRequest(
            f"{paths[0]}: the layout is unknown", "Give --layout roles,events,iterations, such as 3,16,64."
        )
    return layout


def _launches(
    asked: given.Given, loaded: Sequence[buffers.Buffers], paths: Sequence[Path], layout: Layout
) -> list[StampLaunch]:
    result = []
    facts = {"pass": asked.pass_number} if asked.pass_number >= 0 else {}
    for number, (path, part) in enumerate(zip(paths, loaded, strict=True)):
        parts = buffers.split(part.data, layout, path)
        meta = buffers.load_meta(asked.meta[number]) if asked.meta else None
        count = sum(len(p) for p in parts)
        if meta is not None and len(meta) != count:
            raise MalformedInput(
                f"{asked.meta[number]}: {len(meta)} records, but {path} holds {count} buffers of layout {layout}"
            )
        at = 0
        for slots in parts:
            mine = None if meta is None else meta[at : at + len(slots)]
            at += len(slots)
            result.append(StampLaunch(slots, mine, trip_count=asked.trip_count, source=path.name, facts=facts))
    ctas = result[0].ctas
    for path, trips in asked.lifetimes:
        result += _lifetimes(path, trips, ctas, "stamped", facts)
    first, step = asked.ctas or (0, 1)
    return [replace(k, window=asked.window or WHOLE, first_cta=first, cta_step=step) for k in result]


def _lifetimes(path: Path, trips: int, ctas: int, kind: str, facts: Mapping[str, Any]) -> list[StampLaunch]:
    """Launches without stamp buffers: start and end records only."""
    records = buffers.load_meta(path)
    if len(records) % ctas:
        raise MalformedInput(f"{path}: {len(records)} records, not a multiple of the {ctas} CTAs of the stamped launch")
    return [
        StampLaunch(None, part, kind=kind, trip_count=trips, source=path.name, facts=facts)
        for part in records.reshape(-1, ctas)
    ]


def _accounting(surveys: Sequence[Any], tables: Mapping[str, Any], notes: Sequence[Any]) -> dict[str, int | str]:
    lanes = tables["lanes"]
    kept = int(lanes.column("records_kept").to_numpy().sum())
    lost = lanes.column("records_lost").to_numpy()
    known = not (lost < 0).any()
    losses: dict[str, int | str] = {
        "records_expected": kept + int(lost.sum()) if known else -1,
        "records_kept": kept,
        "records_lost": int(lost.sum()) if known else -1,
        "orphaned": sum(s.unclosed + s.unopened for s in surveys if s is not None),
        "unclosed": sum(s.unclosed for s in surveys if s is not None),
        "out_of_order": sum(int(s.reversed_pairs.sum()) for s in surveys if s is not None),
        "wraps_undone": int(lanes.column("wraps").to_numpy().sum()),
        "overhead_corrected": 0,
    }
    assumed = [text for subject, text in notes if subject == "assumption"]
    return losses | ({"assumption": " ".join(assumed)} if assumed else {})


def _add_clean(
    tables: dict[str, Any], asked: given.Given, spec: RoleSpec, ctas: int, experiment: str, layout: Layout
) -> list[dict[str, Any]]:
    """Add the clean launches as a capture of their own, of the same experiment."""
    launches, entries = [], []
    hashes = [bytes_sha256(path) for path, _ in asked.clean]
    first, step = asked.ctas or (0, 1)
    chosen = {"cta_index": [first, step]} if asked.ctas else {}
    about = {"clean": [trips for _, trips in asked.clean], "ctas": ctas, **chosen, **asked.facts}
    cid = capture_id(hashes, None, about)
    for (path, trips), sha in zip(asked.clean, hashes, strict=True):
        found = _lifetimes(path, trips, ctas, "clean", {})
        launches += [replace(k, first_cta=first, cta_step=step) for k in found]
        entries.append(
            source_entry(
                path, sha, capture_ids=[cid], converter=NAME, dialect=f"{NAME}.meta", detected_by="named by the user"
            )
        )
    bare = RoleSpec((), (), capture=spec.capture, launch=spec.launch, clock=spec.clock)
    capture = {
        **asked.facts,
        "experiment": experiment,
        "capture_id": cid,
        "kind": "clean",
        "stamp_sink": "",
        "source_format": f"{NAME}.meta",
    }
    clean, _ = stamps.decode(launches, bare, layout, capture)
    for name in ("captures", "launches", "lanes", "clocks", "clock_anchors"):
        tables[name] = specs.append_rows(name, tables[name], clean[name])
    return entries
