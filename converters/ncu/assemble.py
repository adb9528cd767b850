"""One or more ncu files to one bundle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wsformat import provenance
from wsformat.bundle import Bundle, Progress
from wsformat.converters.ncu import units
from wsformat.converters.ncu.cells import Codes, read_cells
from wsformat.converters.ncu.decode import blocks, plain_head
from wsformat.converters.ncu.launches import attribute_rows, launch_table
from wsformat.converters.ncu.long import read_long, read_summary
from wsformat.converters.ncu.messages import MAX_MESSAGES, message_rows, refusal, split_messages
from wsformat.converters.ncu.numbers import TENS, Convention, parse, shapes
from wsformat.converters.ncu.parts import Part, Reading
from wsformat.converters.ncu.runs import AHEAD, Run, ahead, runs
from wsformat.converters.ncu.segment import segment
from wsformat.converters.ncu.wide import read_source, read_wide, repeat_blocks, wide_cells
from wsformat.errors import BadRequest, MalformedInput
from wsformat.tables import conform, rows_to_table

NAME = "ncu"
IN_MEMORY_ROWS = 1_000_000


def new_reading(options: Mapping[str, Any]) -> Reading:
    """State of an import with these options.

    Raises:
        BadRequest
    """
    if options.get("decimal", "") not in ("", ".", ","):
        raise BadRequest("option decimal: '.' or ','")
    if options.get("unit_row", "") not in ("", "missing"):
        raise BadRequest("option unit_row: only 'missing' can be said")
    return Reading(units.extra_units(options.get("units", "")))


def read_file(path: Path, name: str, reading: Reading, options: Mapping[str, Any], progress: Progress | None) -> None:
    """Take everything of one file.

    Raises:
        MalformedInput, UnknownFormat
    """
    reading.path, reading.source, reading.file = path, name, reading.file + 1
    decimal = options.get("decimal", "")
    reading.conventions.append(Convention(decimal=decimal, forced=bool(decimal)))
    dialects = reading.dialects.setdefault(reading.file, [])
    messages: list[tuple[str, str]] = []

    def noise(line: int, lines: bytes) -> None:
        found = split_messages(lines)
        room = MAX_MESSAGES - len(messages)
        messages.extend(found[:room])
        reading.ignored += max(0, len(found) - room)

    begin = reading.launches.count
    reading.repeats = []
    unit_row = options.get("unit_row", "") != "missing"

    def read(run: Run) -> Any:
        return read_cells(run.data, run.head, run.line, str(path), plain=run.plain)

    def finish(run: Run, cells: Any) -> Any:
        return wide_cells(run.head, *cells, str(path), unit_row=unit_row) if run.head.kind == "wide" else cells

    for run, cells in ahead(runs(segment(blocks(path, progress), noise, str(path))), read, finish):
        if run.head.dialect not in dialects:
            dialects.append(run.head.dialect)
        if run.pages:
            read_source(run.pages, cells, reading)
        elif cells is None:
            continue
        elif run.head.kind == "wide":
            read_wide(run.head, cells, reading)
        elif run.head.kind == "summary":
            read_summary(run.head, *cells, reading)
        else:
            reading.conventions[-1].loose |= run.head.kind == "plain"
            read_long(run.head, *cells, reading)
    reading.messages += [(name, level, text) for level, text in messages]
    if not dialects:
        with path.open("rb") as file:
            raise refusal(str(path), plain_head(file.read(65_536)), messages)
    if reading.launches.count == begin and not any(part.file == reading.file for part in reading.parts):
        raise MalformedInput(
            f"{path}: a header of ncu without any row", "Was a kernel profiled? Look at ncu's messages."
        )
    reading.conventions[-1].settle(str(path))
    blocks_read = reading.launches.count - begin
    if reading.repeats and reading.repeats == list(range(begin + 1, begin + blocks_read, 2)):
        # ncu printed every block of the source page twice in a row.
        reading.printed_twice += reading.repeats
    else:
        repeat_blocks(reading, reading.repeats)


def renumbering(reading: Reading) -> Codes | None:
    """New number of each launch, -1 for one that was printed twice; None when nothing changes."""
    if not reading.printed_twice:
        return None
    keep = np.ones(reading.launches.count, bool)
    keep[reading.printed_twice] = False
    return np.where(keep, np.cumsum(keep) - 1, -1).astype(np.int32)


def build_bundle(
    reading: Reading, sources: Sequence[Mapping[str, Any]], hashes: Sequence[str], options: Mapping[str, Any]
) -> Bundle:
    """The bundle of everything that was read.

    Args:
        reading: after the last file.
        sources: per file name, path, detected_by.
        hashes: sha256 per file.
        options: those that change the result.
    """
    capture = provenance.capture_id(hashes, None, options)
    renumber = renumbering(reading)
    text = reading.launches.text()
    filled, found = _facts(reading)
    if renumber is not None:
        keep = pa.array(renumber >= 0)
        text = text.filter(keep)
        filled = {name: pc.filter(values, keep) for name, values in filled.items()}
    errors = any(level == "ERROR" for _, level, _ in reading.messages)
    launches = launch_table(text, capture, filled, errors)
    metrics, rows = _metrics(reading, capture, renumber)
    dialects = [" + ".join(reading.dialects[file]) for file in sorted(reading.dialects)]
    kernels = pc.unique(launches.column("kernel")).to_pylist()
    versions = sorted(v for v in pc.unique(text["CC"]).to_pylist() if v)
    losses: dict[str, int | str] = {"records_kept": rows, "assumption": _assumptions(reading)}
    ignored = _ignored(reading)
    if ignored:
        losses["ignored"] = ignored
    captures = {
        "capture_id": capture,
        "experiment": str(options.get("experiment", "")),
        "kind": "profiled",
        "kernel": kernels[0] if len(kernels) == 1 else "",
        "label": Path(str(sources[0]["name"])).name.split(".")[0] if sources else "",
        "device": found.get("device_name", ""),
        "arch": f"sm_{versions[0].replace('.', '')}" if len(versions) == 1 else "",
        "sm_count": int(found.get("sm_count", -1)),
        "source_format": f"ncu-csv/{dialects[0]}" if len(set(dialects)) == 1 else "ncu-csv",
        "completeness": "unknown",
    }
    attributes = pa.concat_tables(
        [rows_to_table("attributes", provenance.loss_attributes(capture, losses)), attribute_rows(text, capture)]
    )
    entries = [
        provenance.source_entry(
            source["path"], digest, capture_ids=[capture], converter=NAME, dialect=f"ncu-csv/{dialect}",
            detected_by=source["detected_by"], options={k: v for k, v in options.items() if v},
        )
        for source, digest, dialect in zip(sources, hashes, dialects, strict=False)
    ]  # fmt: skip
    data: dict[str, Any] = {
        "captures": [captures],
        "launches": launches,
        "metrics": metrics,
        "findings": message_rows(capture, reading.messages),
        "attributes": attributes,
    }
    if reading.rules:
        data["rules"] = _rules(reading, capture, renumber)
    return Bundle.from_tables(data, sources=entries)


def _metrics(reading: Reading, capture: str, renumber: Codes | None) -> tuple[Any, int]:
    """The table ``metrics``: in memory when it is small, else a stream in the order of the table."""
    parts = sorted(reading.parts, key=lambda part: part.first)
    overlaps = any(before.last >= after.first for before, after in pairwise(parts))
    rows = sum(part.rows for part in parts)

    def unfold(part: Part) -> pa.Table:
        return part.unfold(reading.conventions[part.file], capture, renumber)

    def stream() -> Iterator[pa.Table]:
        with ThreadPoolExecutor(AHEAD) as pool:
            waiting = [pool.submit(unfold, part) for part in parts[:AHEAD]]
            for part in parts[AHEAD:]:
                done = waiting.pop(0).result()
                waiting.append(pool.submit(unfold, part))
                yield done
            for last in waiting:
                yield last.result()

    if overlaps or (rows <= IN_MEMORY_ROWS and not any(part.instances for part in parts)):
        joined = pa.concat_tables(list(stream())).unify_dictionaries() if parts else rows_to_table("metrics", [])
        if overlaps:
            keys = ["launch", "scope", "section", "name", "ordinal"]
            joined = joined.take(pc.sort_indices(_plain(joined, keys), sort_keys=[(k, "ascending") for k in keys]))
        return joined, joined.num_rows
    return stream, rows


def _plain(table: pa.Table, names: list[str]) -> pa.Table:
    return pa.table({n: table.column(n).cast(pa.string()) if n != "launch" else table.column(n) for n in names})


def _facts(reading: Reading) -> tuple[dict[str, Any], dict[str, Any]]:
    """Columns of ``launches`` and values of ``captures`` that stand among the metrics."""
    count = reading.launches.count
    filled: dict[str, Any] = {}
    found: dict[str, Any] = {}
    convention = next((c for c in reading.conventions if c.seen), Convention(decimal="."))
    for fact in reading.launches.facts:
        if fact.fact == "device_name":
            found.setdefault("device_name", fact.texts[0].as_py().partition(" (")[0])
            continue
        texts = pc.replace_substring_regex(fact.texts, r" ?\(.*\)$", "")
        numbers = parse(shapes(texts), convention)
        _, power = units.base_unit(fact.unit, reading.extra_units, reading.where)
        shift = power - numbers.places
        size = TENS[np.minimum(np.abs(shift), 22)]
        values = np.where(shift >= 0, numbers.mantissa * size, numbers.mantissa / size)
        good = np.isfinite(values) & (np.abs(values) < 2**53)
        if fact.fact == "sm_count":
            if good.any():
                found.setdefault("sm_count", int(values[good][0]))
            continue
        name = "duration_ns" if fact.fact == "duration" else fact.fact
        column = filled.setdefault(name, np.full(count, -1, np.int64))
        fresh = good & (column[fact.launch] < 0)
        column[fact.launch[fresh]] = np.rint(values[fresh]).astype(np.int64)
    types = {"duration_ns": pa.int64()}
    return {name: pa.array(values).cast(types.get(name, pa.int32())) for name, values in filled.items()}, found


def _rules(reading: Reading, capture: str, renumber: Codes | None) -> pa.Table:
    joined = pa.concat_tables(reading.rules)
    speed = np.full(joined.num_rows, np.nan)
    # An estimated speed-up has 2 to 4 decimals and no groups: its separator is the decimal mark, whatever the locale.
    texts = pc.replace_substring(joined.column("speedup_text"), ",", ".")
    good = pc.match_substring_regex(texts, r"^\d+(\.\d+)?$").to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(good)
    speed[rows] = texts.take(pa.array(rows)).cast(pa.float64()).to_numpy()
    launch = joined.column("launch").to_numpy()
    table = pa.table(
        {
            "capture_id": pa.repeat(pa.scalar(capture), joined.num_rows),
            **{n: joined.column(n) for n in ("section", "rule", "rule_index", "type", "description", "speedup_type")},
            "launch": pa.array(launch if renumber is None else renumber[launch]),
            "speedup": pa.array(speed, from_pandas=True),
        }
    )
    return conform("rules", table)


def _assumptions(reading: Reading) -> str:
    said = []
    for number, convention in enumerate(reading.conventions):
        proof = "; ".join(f"{text} shows {role}" for (role, _), text in convention.seen.items()) or "no separators"
        said.append(f"file {number}: decimal mark '{convention.decimal}', groups '{convention.group}' ({proof})")
    return ". ".join(said)


def _ignored(reading: Reading) -> str:
    said = []
    if reading.ignored:
        said.append(f"{reading.ignored} lines or rows without a metric")
    if reading.printed_twice:
        said.append(f"{len(reading.printed_twice)} source blocks that were printed twice")
    return "; ".join(said)
