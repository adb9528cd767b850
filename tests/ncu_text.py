"""Texts as ncu prints them, for tests: one launch table in every shape and locale."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

ID = ["ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size",
      "Device", "CC"]  # fmt: skip
LONG = [*ID, "Section Name", "Metric Name", "Metric Unit", "Metric Value"]
RULES = ["Rule Name", "Rule Type", "Rule Description", "Estimated Speedup Type", "Estimated Speedup"]
CLI = "Command line profiler metrics"


def line(cells: Iterable[str], delimiter: str = ",") -> str:
    return delimiter.join('"' + cell.replace('"', '""') + '"' for cell in cells) + "\n"


def launch(
    number: int, kernel: str = "k(int)", pid: str = "77", block: str = "(128, 1, 1)", grid: str = "(4, 1, 1)"
) -> list[str]:
    return [str(number), pid, "app", "127.0.0.1", kernel, "1", "7", block, grid, "0", "9.0"]


def long_table(
    rows: Sequence[tuple[list[str], str, str, str, str]], header: Sequence[str] = LONG, delimiter: str = ","
) -> str:
    """Rows of (launch cells, section, metric, unit, value)."""
    return line(header, delimiter) + "".join(line([*cells, *rest], delimiter) for cells, *rest in rows)


def wide_table(columns: Mapping[str, tuple[str, Sequence[str]]], launches: Sequence[list[str]]) -> str:
    """Columns name -> (unit, value of each launch)."""
    text = line([*ID, *columns]) + line([*[""] * len(ID), *(unit for unit, _ in columns.values())])
    return text + "".join(
        line([*cells, *(values[i] for _, values in columns.values())]) for i, cells in enumerate(launches)
    )


def read_text(folder: Path, text: str | bytes, name: str = "x.csv", **options: Any) -> Any:
    """Import a text as a file."""
    from wsformat.converters import ncu

    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert ncu.sniff(path.read_bytes()[:65_536], path)
    return ncu.read([path], options)


def metrics(bundle: Any, launch: int | None = 0, scope: str = "kernel") -> dict[str, dict[str, Any]]:
    """Rows of one launch by name."""
    rows = [r for r in bundle.table("metrics").to_pylist() if r["scope"] == scope]
    return {r["name"]: r for r in rows if launch is None or r["launch"] == launch}


def capture(name: str) -> Path:
    """One of the project's own ncu captures: beside the checkout, or, for some, among the tests' data."""
    import pytest

    here = Path(__file__).parent
    shared, own = here.parents[1] / "shared" / "captures" / "ncu", here / "data" / "ncu"
    found = [path for path in (shared / name, own / name, own / f"{name}.gz") if path.is_file()]
    if not found:
        pytest.skip(f"{name} is not beside the checkout")
    return found[0]


def plain_rows(path: Path) -> list[list[str]]:
    """The rows of a CSV without any noise, by the csv module."""
    csv.field_size_limit(1 << 30)
    import gzip

    raw = path.read_bytes()
    text = gzip.decompress(raw) if raw.startswith(b"\x1f\x8b") else raw
    return list(csv.reader(io.StringIO(text.decode("utf-8-sig"))))
