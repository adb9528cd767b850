"""Nsight Compute: CSV of every page and version, and reports through the ``ncu`` command.

Files that are read together make one capture; launches are numbered in the order of files, tables and rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from wsformat import provenance
from wsformat.bundle import Bundle, Progress
from wsformat.converters import registry
from wsformat.converters.ncu.assemble import build_bundle, new_reading, read_file
from wsformat.converters.ncu.decode import plain_head
from wsformat.converters.ncu.messages import is_ncu, look_alike
from wsformat.converters.ncu.plain import from_values, is_values, read_values
from wsformat.converters.ncu.report import as_csv, is_report

NAME = "ncu"
TITLE = "Nsight Compute CSV or report"
EXTENSIONS = (".csv", ".csv.gz", ".txt", ".log", ".ncu-rep", ".json")
OPTIONS = {
    "decimal": "the decimal mark, '.' or ',', when the file leaves it open",
    "units": "units that are not known, as NAME=BASE*1eN, parted by semicolons",
    "unit_row": "'missing' for a raw page whose row of units was cut off: values are kept without units",
    "page": "page of a report (.ncu-rep): raw (default), details or source",
    "experiment": "name shared by captures that belong together",
}
LOSSES = (
    "Values are as printed: most pages round to two decimals; only a report holds more.",
    "The separators of numbers are decided once a file and noted with the cells that prove it.",
    "A label of the details page is resolved to a metric name where its section has one such metric; else it stays.",
    "A source page has no launch ids: each block is a launch of its own; a page printed twice in a row is read once.",
    "A summary (--print-summary) belongs to no single launch: scope summary, named by kernel, block and grid.",
    "Program output between the tables is kept as messages, up to 2,000 lines a file.",
)

CARRIES = {"in": ("captures", "launches", "metrics", "rules", "findings", "attributes")}


def sniff(head: bytes, path: Path) -> bool:
    """Whether it is ncu's output or report, or one of its look-alikes, which ``read`` refuses with the reason."""
    if is_report(head, path):
        return True
    text = plain_head(head)
    return is_ncu(text) or is_values(text) or bool(look_alike(text))


def read(paths: Sequence[Path], options: Mapping[str, Any], progress: Progress | None = None) -> Bundle:
    """Read files of Nsight Compute into one bundle.

    Args:
        paths: CSV files of any page, reports, or JSON objects of metric names and values.
        options: see OPTIONS.
        progress: called with the bytes read so far of each file.

    Raises:
        MalformedInput: broken, contradictory or without a table.
        UnknownFormat: another profiler's output.
        MissingDependency: a report and no ``ncu`` command.
    """
    reading = new_reading(options)
    sources, hashes = [], []
    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(1))
        for path in paths:
            head = registry.read_head(path)
            hashes.append(pool.submit(provenance.bytes_sha256, path))
            if is_report(head, path):
                table = stack.enter_context(as_csv(path, str(options.get("page", "raw"))))
                read_file(table, path.name, reading, options, progress)
                detected = "a binary report, printed by ncu"
            elif is_values(plain_head(head)):
                read_values(path, reading)
                detected = "a JSON object of metric names"
            else:
                read_file(path, path.name, reading, options, progress)
                detected = "header of a table"
            sources.append({"name": path.name, "path": path, "detected_by": detected})
        kept = {k: v for k, v in options.items() if k in OPTIONS and v}
        bundle: Bundle = build_bundle(reading, sources, [digest.result() for digest in hashes], kept)
        return bundle


__all__ = ["EXTENSIONS", "LOSSES", "NAME", "OPTIONS", "TITLE", "from_values", "read", "sniff"]
