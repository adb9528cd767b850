"""Every reader against the corpus: what is compared, and what the right answers are.

A reader is compared column by column, by digests that do not depend on row order (chapter 18 of the standard, continued
to DOUBLE and STRING), and by three queries.
"""

from __future__ import annotations

import hashlib
import json
import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from wsformat.bundle import Bundle
from wsformat.errors import NewerMinorWarning
from wsformat.tables import rows_to_table, tables

CORPUS = Path(__file__).parents[1] / "conformance"
BUNDLES = sorted(p for part in ("valid", "samples") for p in CORPUS.glob(f"{part}/*.wsformat"))
SAMPLES = sorted(CORPUS.glob("samples/*.wsformat"))
V2 = CORPUS / "invalid" / "E803_delta_in_v2_page.wsformat"
"""Tables whose INT64 columns are delta-encoded in data pages of version 2, which the standard forbids."""
QUERIES = ("role_state", "wait_summary", "overlap")
MASK = (1 << 64) - 1

Cells = dict[str, tuple[str, Iterable[Any]]]
"""Columns of one table as a reader gives them: its own name of the type, and the values."""


@dataclass(frozen=True)
class Column:
    """One column as a reader gives it: its own name of the type (None: it does not say), nulls, digest of the rest."""

    kind: str | None
    nulls: int
    digest: tuple[int, int, int]


@dataclass
class Found:
    """What a reader made of the corpus.

    Attributes:
        types: its types for each type of the standard.
        nulls: how it shows a null, for DOUBLE and STRING.
        columns: number of columns compared.
        wrong: columns whose values differ.
        queries: what was asked, and what differs.
        v2: what becomes of the forbidden encoding: 'right', 'wrong values, no error' or 'error'.
    """

    types: dict[str, set[str]] = field(default_factory=dict)
    nulls: dict[str, set[str]] = field(default_factory=dict)
    columns: int = 0
    wrong: list[str] = field(default_factory=list)
    asked: str = ""
    different: list[str] = field(default_factory=list)
    v2: str = ""


def is_null(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value)) or str(value) == "<NA>"


def digest(kind: str, values: Iterable[Any]) -> tuple[int, int, int]:
    """Count, sum and xor of values that are not null, each as 64 bits.

    A DOUBLE counts as its bits, a STRING as the first 8 bytes of the SHA-256 of its UTF-8.
    """
    held = values if isinstance(values, np.ndarray) else list(values)
    if kind == "STRING":
        total = xor = count = 0
        for text, n in Counter(held).items():
            word = int.from_bytes(hashlib.sha256(str(text).encode()).digest()[:8], "big")
            total, count = total + word * n, count + n
            xor ^= word if n % 2 else 0
        return count, total & MASK, xor
    words = np.asarray(held, dtype=np.float64 if kind == "DOUBLE" else np.int64)
    words = words.view(np.uint64)
    return len(words), int(words.sum(dtype=np.uint64)), int(np.bitwise_xor.reduce(words)) if len(words) else 0


def contract(bundle: Path) -> dict[str, dict[str, str]]:
    """Type of each column of each table, as the corpus states it."""
    return {name: entry["columns"] for name, entry in stated(bundle)["tables"].items()}


@cache
def stated(bundle: Path) -> Any:
    return json.loads(bundle.with_suffix(".expected.json").read_text())


@cache
def right(bundle: Path, table: str) -> dict[str, Column]:
    """What the corpus states of a table; columns of a large table that have no digest there are left out."""
    entry = stated(bundle)["tables"][table]
    result = {}
    for at, (name, kind) in enumerate(entry["columns"].items()):
        if name in entry["digests"]:
            said = entry["digests"][name]
            result[name] = Column(kind, 0, (said["count"], int(said["sum"], 16), int(said["xor"], 16)))
        elif "values" in entry:
            values = [row[at] for row in entry["values"]]
            known = [value for value in values if value is not None]
            result[name] = Column(kind, len(values) - len(known), digest(kind, known))
    return result


def compare(found: Found, bundle: Path, table: str, columns: dict[str, Column]) -> None:
    """Takes one table that a reader read into the account."""
    kinds = contract(bundle)[table]
    if list(columns) != list(kinds):
        found.wrong.append(f"{bundle.stem}.{table}: columns {', '.join(columns)}")
    for name, want in right(bundle, table).items():
        if name not in columns:
            continue
        got = columns[name]
        found.columns += 1
        if got.kind:
            found.types.setdefault(want.kind, set()).add(got.kind)
        if (got.nulls, got.digest) != (want.nulls, want.digest):
            found.wrong.append(f"{bundle.stem}.{table}.{name}")


def take(found: Found, bundle: Path, table: str, cells: Cells) -> None:
    """Takes the cells of one table into the account."""
    kinds = contract(bundle)[table]
    columns = {}
    for name, (kind, values) in cells.items():
        held = values if isinstance(values, np.ndarray) and values.dtype.kind in "ib" else list(values)
        known = held if isinstance(held, np.ndarray) else [value for value in held if not is_null(value)]
        if len(known) < len(held):
            seen = {str(value) for value in held if is_null(value)}
            found.nulls.setdefault(kinds[name], set()).update(seen)
        columns[name] = Column(kind, len(held) - len(known), digest(kinds[name], known))
    compare(found, bundle, table, columns)


# --- queries -----------------------------------------------------------------------------------------------------


def files(bundles: Iterable[Path], table: str) -> list[Path]:
    return [p for p in (bundle / f"{table}.parquet" for bundle in bundles) if p.exists()]


def empty(table: str) -> pa.Table:
    return rows_to_table(table, [])


@cache
def merged(bundles: tuple[Path, ...]) -> Bundle:
    """Bundles that share no capture_id as one: rows of one table concatenated."""
    opened = [Bundle.open(bundle) for bundle in bundles]
    names = [name for name in tables() if any(name in bundle.data for bundle in opened)]
    return Bundle.from_tables(
        {name: pa.concat_tables([b.table(name) for b in opened if name in b.data]) for name in names}
    )


def sorted_rows(rows: pa.Table) -> list[tuple[Any, ...]]:
    found = [tuple(row.values()) for row in rows.to_pylist()]
    return sorted(
        found,
        key=lambda row: [(value is not None, str(type(value)), value) for value in row if not isinstance(value, float)],
    )


def same(mine: pa.Table, theirs: pa.Table) -> bool:
    """Whether two results have the same rows: integers and text equal, DOUBLE to a relative 1e-9."""
    if mine.column_names != theirs.column_names or mine.num_rows != theirs.num_rows:
        return False
    return all(
        (a == b and type(a) is type(b))
        or (isinstance(a, float) and isinstance(b, float) and math.isclose(a, b, rel_tol=1e-9))
        for row, other in zip(sorted_rows(mine), sorted_rows(theirs), strict=True)
        for a, b in zip(row, other, strict=True)
    )


PLAIN = {
    "stamps": "SELECT role, event, COUNT(*), MIN(t), MAX(t) FROM events GROUP BY ALL",
    "spans": """SELECT s.role, s.span, COUNT(*), SUM(e.t - b.t)::BIGINT FROM span_types s
        JOIN events b ON b.role = s.role AND b.event = s.begin_event
        JOIN events e ON e.role = s.role AND e.event = s.end_event
         AND e.lane = b.lane AND e.iteration = b.iteration AND e.capture_id = b.capture_id
        WHERE s.capture_id = b.capture_id GROUP BY ALL""",
    "lanes": "SELECT role, COUNT(*), SUM(records_kept)::BIGINT FROM lanes GROUP BY ALL",
}
"""Three aggregates for readers without SQL: stamps by kind, ticks of each kind of span, records by role."""

Answers = dict[str, list[list[Any]]]


@cache
def right_answers(bundle: Path) -> Answers:
    """The aggregates as the library's DuckDB gives them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NewerMinorWarning)
        opened = Bundle.open(bundle)
    with opened.duckdb() as connection:
        return {name: ordered(connection.execute(sql).fetchall()) for name, sql in PLAIN.items()}


def ordered(rows: Iterable[Iterable[Any]]) -> list[list[Any]]:
    return sorted([[value if isinstance(value, str) else int(value) for value in row] for row in rows])


def ask_plain(found: Found, bundles: Iterable[Path], answer: Callable[[Path], Answers]) -> None:
    found.asked = "aggregates"
    for bundle in bundles:
        found.different += answers_differ(bundle, answer(bundle))


def answers_differ(bundle: Path, got: Answers) -> list[str]:
    return [f"{bundle.stem}: {name}" for name, want in right_answers(bundle).items() if got[name] != want]


def ask_views(found: Found, views: dict[str, pa.Table], bundles: tuple[Path, ...]) -> None:
    found.asked = "views"
    with merged(bundles).duckdb() as connection:
        for name, rows in views.items():
            want = connection.sql(f'SELECT * FROM "{name}"').to_arrow_table()
            if not same(rows, want):
                found.different.append(f"view {name}")
