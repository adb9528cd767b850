"""Which table a header line opens, and which column is what."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, field
from typing import Any

HEADER_START = re.compile(
    rb'^"?(?:ID|Process ID|Process Name|Kernel Name|Address|#|Metric Name|metric|name|Device Name)"?[,;\t]',
    re.MULTILINE,
)
LAUNCH_COLUMNS = (
    "ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Kernel Time", "Context", "Stream",
    "Block Size", "Grid Size", "Device", "CC", "Invocations",
)  # fmt: skip
RULE_COLUMNS = ("Rule Name", "Rule Type", "Rule Description", "Estimated Speedup Type", "Estimated Speedup")
LONG_COLUMNS = ("Section Name", "Body Item Label", "Metric Name", "Metric Unit", "Metric Value")
SUMMARY_VALUES = ("Minimum", "Maximum", "Average")
SOURCE_KEYS = ("Address", "#", "Line", "Line No", "Line Number")
NVTX = re.compile(r"Domain:(Push/Pop_Range|Start/Stop_Range)")
PLAIN_NAMES = {"metric", "name", "metric name"}
PLAIN_VALUES = {"value", "metric value"}
PLAIN_UNITS = {"unit", "metric unit"}


@dataclass(slots=True)
class Head:
    """One table of a file.

    Attributes:
        kind: long, summary, wide, source or plain.
        dialect: finer name, such as long-details-2020; goes into the provenance.
        cells: header cells as printed.
        at: column number of each known column.
        delimiter: of the cells.
        quoted: every cell is quoted, as ncu itself writes it.
        preamble: for a source page, what stood above the header (Kernel Name, File Path).
        line: line number of the header, from 1.
        number: number of the table in its file, from 0.
    """

    kind: str
    dialect: str
    cells: list[str]
    at: dict[str, int]
    delimiter: str
    quoted: bool
    line: int = 0
    number: int = 0
    preamble: dict[str, str] = field(default_factory=dict)
    state: dict[str, Any] = field(default_factory=dict)

    @property
    def nvtx(self) -> list[tuple[int, str]]:
        """(column, push_pop or start_stop) of NVTX columns."""
        found = ((i, NVTX.search(cell)) for i, cell in enumerate(self.cells))
        return [(i, "push_pop" if m[1].startswith("Push") else "start_stop") for i, m in found if m]

    @property
    def required(self) -> int:
        """Fewest cells that a row must have."""
        if self.kind in ("long", "plain"):
            return self.at["Metric Name"] + 1
        return len([cell for cell in self.cells if cell]) if self.kind == "wide" else 2


def split_line(line: bytes, delimiter: str) -> list[str]:
    """Cells of one line; none when it is no CSV at all."""
    try:
        return next(csv.reader([line.decode(errors="replace").rstrip("\n")], delimiter=delimiter), [])
    except csv.Error:
        return []


def find_delimiter(line: bytes) -> str:
    """The delimiter after the first cell."""
    match = re.match(rb'^"?[^",;\t]*"?([,;\t])', line)
    return match[1].decode() if match else ","


def classify(line: bytes) -> Head | None:
    """The table that a header line opens; None when it is none (a source page's first line is not yet a header)."""
    delimiter = find_delimiter(line)
    cells = split_line(line, delimiter)
    names = set(cells)
    at: dict[str, int] = {}
    for number, cell in enumerate(cells):
        at.setdefault(cell, number)
    quoted = line.startswith(b'"')
    kind = dialect = ""
    if "Metric Name" in names and "Metric Value" in names and "Kernel Name" in names and "ID" in names:
        kind, dialect = "long", _long_dialect(names, cells)
    elif "Metric Name" in names and "Average" in names and "Kernel Name" in names:
        kind, dialect = "summary", "summary"
    elif {"ID", "Kernel Name"} <= names and len(cells) > 8 and "Metric Name" not in names:
        kind, dialect = "wide", "raw-page"
    elif "Source" in names and cells and cells[0] in SOURCE_KEYS and len(cells) > 3:
        kind, dialect = "source", "source-page-sass" if "Address" in names else "source-page-source"
    else:
        lowered = [cell.strip().lower() for cell in cells]
        name = next((i for i, c in enumerate(lowered) if c in PLAIN_NAMES), None)
        value = next((i for i, c in enumerate(lowered) if c in PLAIN_VALUES), None)
        if name is not None and value is not None and len(cells) <= 4:
            kind, dialect = "plain", "metric-list"
            at = {"Metric Name": name, "Metric Value": value}
            unit = next((i for i, c in enumerate(lowered) if c in PLAIN_UNITS), None)
            if unit is not None:
                at["Metric Unit"] = unit
    if not kind:
        return None
    return Head(kind, dialect, cells, at, delimiter, quoted)


def _long_dialect(names: set[str], cells: list[str]) -> str:
    nvtx = "-nvtx" if any(NVTX.search(cell) for cell in cells) else ""
    if "Kernel Time" in names and "Block Size" not in names:
        return "details-page-2020" + nvtx
    if "Body Item Label" in names:
        return "details-page-all" + nvtx
    return ("details-page" if "Rule Name" in names else "metrics") + nvtx
