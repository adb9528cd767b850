"""What commands print: tables for people, JSON and CSV for programs. Nothing is ever cut short."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

UNKNOWN = "-"


def plain(value: Any) -> Any:
    """A value as JSON has it: integers exact (also HUGEINT and whole decimals), NaN and infinities as null."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Decimal):
        if value == value.to_integral_value():
            return int(value)
        return float(value) if Decimal(repr(float(value))) == value else str(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [plain(item) for item in value]
    if isinstance(value, (bytes, bytearray)):
        return value.hex()
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def rows(table: pa.Table) -> list[dict[str, Any]]:
    """Rows of an Arrow table as plain values."""
    return [plain(row) for row in table.to_pylist()]


def print_json(value: Any) -> None:
    """Print one JSON document; a list of objects with one object a line."""
    if isinstance(value, list):
        write_json_rows(value)
    else:
        print(json.dumps(plain(value), indent=1, ensure_ascii=False, allow_nan=False))


def json_row(value: Any) -> str:
    """One line of JSON."""
    return json.dumps(plain(value), ensure_ascii=False, allow_nan=False)


def write_json_rows(items: Iterable[Any]) -> None:
    """Print a JSON array with one item a line, item by item."""
    start = "["
    for item in items:
        sys.stdout.write(start + "\n " + json_row(item))
        start = ","
    sys.stdout.write("\n]\n" if start == "," else "[]\n")


def clean(text: str) -> str:
    """Text of a file made safe for a terminal: control characters shown as escapes."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def number(value: float | None, digits: int = 1) -> str:
    """An integer in full with thousands separated, or a decimal with that many digits; '-' when unknown."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return UNKNOWN
    return f"{value:,}" if isinstance(value, int) else f"{value:,.{digits}f}"


def share(part: float | None, whole: float | None) -> float | None:
    """part / whole, None when there is no whole."""
    return part / whole if part is not None and whole else None


def percent(value: float | None, *, sign: bool = False) -> str:
    """A share as percent with one digit; '-' when unknown."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    return f"{value * 100:{'+' if sign else ''}.1f} %"


def print_table(columns: Sequence[str], body: Iterable[Sequence[Any]], *, title: str = "") -> None:
    """Print rows under headings, numbers to the right, never truncated.

    On a terminal that is too narrow the table is turned on its side when it fits so; else the terminal wraps its
    lines. In a pipe there are no colours and no rules.

    Args:
        columns: headings; one that starts with '<' is text, to the left.
        body: the cells; None prints as '-', integers with thousands separated.
        title: line above.
    """
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    heads = [column.removeprefix("<") for column in columns]
    lefts = [column.startswith("<") for column in columns]
    rows = [[_cell(value) for value in row] for row in body]
    terminal = Console()
    styled = terminal.is_terminal
    if styled and rows and _width([heads, *rows]) > terminal.width:
        turned = [list(line) for line in zip(heads, *rows, strict=True)]
        if _width(turned) <= terminal.width:
            heads, rows, lefts = turned[0], turned[1:], [True] + [False] * len(rows)
    # A console as wide as any table: rich would cut cells to the width of the terminal, and with them digits.
    out = Console(width=1_000_000, highlight=False, emoji=False, markup=False)
    table = Table(
        box=SIMPLE_HEAD if styled else None,
        pad_edge=False,
        show_edge=False,
        padding=(0, 2, 0, 0),
        header_style="bold" if styled else "",
    )
    for head, left in zip(heads, lefts, strict=True):
        table.add_column(Text(head), justify="left" if left else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    if title:
        print(title)
    with out.capture() as captured:
        out.print(table, soft_wrap=True)
    for line in captured.get().splitlines():
        print(line.rstrip())


def _width(table: list[list[str]]) -> int:
    """Columns of a terminal that a table takes: cells, and what print_table puts between them."""
    from rich.cells import cell_len

    return sum(max(cell_len(row[n]) for row in table) + 3 for n in range(len(table[0]))) - 1


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return number(value)
    if isinstance(value, float):
        return number(value)
    return UNKNOWN if value is None else clean(str(value))
