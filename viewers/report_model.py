"""A page of results as data: sections of sentences, tables and pictures, in which every number knows where it is from.

The report and the diff are made of it; :mod:`report_page` writes it as HTML, :mod:`report_text` as Markdown.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Query:
    """Where numbers come from: one SQL query over the bundle's tables and views, or one command of wsformat.

    Attributes:
        id: name within the page.
        title: what the rows are.
        columns: of the rows, in order.
        rows: all of them.
        sql: gives exactly these rows; '' when a command does.
        command: what gives them where no SQL can (a walk, a verdict), with the place in its JSON in ``at``.
        at: keys into that JSON, such as ``("residual", "terms")``.
    """

    id: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    sql: str = ""
    command: str = ""
    at: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        origin = {"sql": self.sql} if self.sql else {"command": self.command, "at": list(self.at)}
        rows = [{name: plain(row.get(name)) for name in self.columns} for row in self.rows]
        return {"id": self.id, "title": self.title, **origin, "columns": list(self.columns), "rows": rows}


@dataclass(frozen=True)
class Number:
    """One value in a sentence: the cell of a query that it is, and how it is written."""

    value: Any
    shown: str
    query: str
    row: int
    column: str

    def __str__(self) -> str:
        return self.shown


ENDLESS = re.compile(r"\S{70,}")
"""A word that no page has room for."""
Text = tuple["str | Number", ...]
"""A sentence: words and numbers."""


@dataclass(frozen=True)
class Column:
    """A column of a table: its name in the query, its heading and how its values are written (see :func:`written`)."""

    name: str
    title: str
    kind: str = "text"


@dataclass(frozen=True)
class Table:
    """Rows of a query for people: some of its columns, and of its rows those in ``places`` (None: the first ``most``).

    What is downloaded is the whole query.
    """

    query: Query
    columns: tuple[Column, ...]
    note: str = ""
    most: int = 50
    places: tuple[int, ...] | None = None

    @property
    def shown(self) -> tuple[int, ...]:
        """Numbers of the rows that are shown."""
        chosen = range(len(self.query.rows)) if self.places is None else self.places
        return tuple(chosen)[: self.most]

    def cells(self) -> list[list[Number | str]]:
        """What is shown, row by row; text is a string."""
        found: list[list[Number | str]] = []
        for place in self.shown:
            row = self.query.rows[place]
            line: list[Number | str] = []
            for column in self.columns:
                shown = written(row.get(column.name), column.kind)
                is_text = column.kind in ("text", "bool")
                cell = Number(row.get(column.name), shown, self.query.id, place, column.name)
                line.append(shown if is_text else cell)
            found.append(line)
        return found


@dataclass(frozen=True)
class Figure:
    """A picture as part of a page.

    Attributes:
        id: name within the page.
        title, caption: words; the caption says why there is no picture, when there is none.
        fragment: HTML of the picture, its numbers as CSV and the SQL behind them; '' when it cannot be drawn.
        sql: the queries that make its numbers, by a word for each.
        notes: what it does not show.
    """

    id: str
    title: str
    caption: str
    fragment: str
    sql: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Note:
    """One line of the banner.

    Attributes:
        name: what it is about, such as completeness.
        text: what is known; *unknown* is said, never left out.
        level: ``ok``, ``warn`` or ``bad``.
    """

    name: str
    text: Text
    level: str = "ok"


Block = Text | Table | Figure


@dataclass(frozen=True)
class Section:
    """Part of a page under a heading; ``level`` 2 or 3."""

    id: str
    title: str
    blocks: tuple[Block, ...]
    level: int = 2


@dataclass(frozen=True)
class Document:
    """A whole page.

    Attributes:
        title: of the page.
        lead: under it: device, shape and the like.
        headline: the answer in one or two sentences, once a capture.
        banner: what limits it.
        sections: the rest.
        queries: every query of the page by id, those of numbers in sentences too.
        run: how to run the SQL that is shown, such as ``wsformat query X.wsformat -``.
        notes: what the page leaves out.
    """

    title: str
    lead: tuple[str, ...]
    headline: tuple[Text, ...]
    banner: tuple[Note, ...]
    sections: tuple[Section, ...]
    queries: Mapping[str, Query] = field(default_factory=dict)
    run: str = ""
    notes: tuple[str, ...] = ()

    def _repr_html_(self) -> str:
        """The headline and the banner for a notebook; the page has the rest."""
        lines = [f"<strong>{html.escape(self.title[:200])}</strong>"]
        lines += [html.escape(words(text)[:2000]) for text in self.headline]
        lines += [html.escape(f"{note.name}: {words(note.text)}"[:600]) for note in self.banner]
        return "".join(f"<div>{line}</div>" for line in lines)

    def __repr__(self) -> str:
        return f"<Document {self.title[:80]}: {' '.join(map(words, self.headline))[:300]}>"

    def to_json(self) -> dict[str, Any]:
        """The same content as JSON values; numbers in sentences as written, with their cell under ``numbers``."""
        return {
            "title": self.title,
            "lead": list(self.lead),
            "headline": [words(text) for text in self.headline],
            "numbers": [
                {"shown": n.shown, "value": plain(n.value), "query": n.query, "row": n.row, "column": n.column}
                for text in (*self.headline, *(note.text for note in self.banner))
                for n in text
                if isinstance(n, Number)
            ],
            "banner": [{"name": n.name, "level": n.level, "text": words(n.text)} for n in self.banner],
            "sections": [
                {
                    "id": section.id,
                    "title": section.title,
                    "text": [words(block) for block in section.blocks if isinstance(block, tuple)],
                    "tables": [block.query.id for block in section.blocks if isinstance(block, Table)],
                    "figures": [
                        {"id": b.id, "title": b.title, "caption": b.caption, "sql": dict(b.sql), "notes": list(b.notes)}
                        for b in section.blocks
                        if isinstance(b, Figure)
                    ],
                }
                for section in self.sections
            ],
            "queries": {name: query.to_json() for name, query in self.queries.items()},
            "run": self.run,
            "notes": list(self.notes),
        }


def words(text: Text) -> str:
    """A sentence as plain text."""
    return "".join(map(str, text))


def number(query: Query, row: int, column: str, kind: str) -> Number:
    """The cell of a query as a number of a sentence."""
    value = query.rows[row].get(column)
    return Number(value, written(value, kind), query.id, row, column)


def written(value: Any, kind: str) -> str:
    """A value for people.

    Args:
        value: as the query gives it; None is unknown.
        kind: ``text``; ``bool``; ``int`` in full; ``count`` an integer of which -1 is unknown, ``nth`` one of which -1
            is none; ``mean`` one digit; ``gap`` the same with its sign; ``share`` percent; ``change`` the same with
            its sign.
    """
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "" if kind == "text" else "unknown"
    if kind == "text":
        return str(value)
    if kind == "bool":
        return "yes" if value else "no"
    if kind in ("count", "nth") and value < 0:
        return "unknown" if kind == "count" else ""
    if kind in ("int", "count", "nth"):
        return f"{int(value):,}"
    if kind in ("mean", "gap"):
        sign = "+" if kind == "gap" else ""
        return f"{round(float(value), 1) + 0.0:{sign},.1f}"
    return f"{round(float(value) * 100, 1) + 0.0:{'+' if kind == 'change' else ''}.1f} %"


def plain(value: Any) -> Any:
    """A value as JSON has it: integers exact, what is no number null."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)


def linked(text: str, query: Query, columns: Iterable[str]) -> Text:
    """A sentence of others with its numbers as cells of a query: those that are a value of these columns as written."""
    known: dict[str, tuple[int, str]] = {}
    for place, row in enumerate(query.rows):
        for column in columns:
            value = row.get(column)
            if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
                for digits in range(4):
                    known.setdefault(f"{value:,.{digits}f}", (place, column))
    found: list[str | Number] = []
    for part in re.split(r"((?<![\w.,])\d[\d,]*(?:\.\d+)?(?![\w,]|\.\d))", text):
        if part in known and len(part) > 2:
            place, column = known[part]
            found.append(Number(query.rows[place][column], part, query.id, place, column))
        elif part:
            found.append(part)
    return sentence(found)


def sentence(*parts: str | Number | Iterable[str | Number]) -> Text:
    """A sentence of words, numbers and parts of sentences. A name without end is cut; tables and CSV have it."""
    found: list[str | Number] = []
    for part in parts:
        if isinstance(part, (str, Number)):
            found.append(part)
        else:
            found.extend(part)
    return tuple(ENDLESS.sub(lambda word: word[0][:59] + "…", p) if isinstance(p, str) else p for p in found)
