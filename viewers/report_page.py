"""A document as one page: everything in it, nothing fetched, every number a link to the query that makes it."""

from __future__ import annotations

import csv
import html
import io
from importlib.resources import files
from typing import Any

from wsformat.viewers import figure, render, timeline_page
from wsformat.viewers.report_model import Block, Document, Figure, Note, Number, Query, Section, Table, Text

LONGEST = 300
"""Characters of a text that a cell shows; the CSV has all."""


def page(document: Document, styles: str = "", scripts: str = "") -> str:
    """The whole page.

    Args:
        document: what it says.
        styles, scripts: what pictures in it need beyond those of figures.
    """
    if any(timeline_page.MARK in b.fragment for s in document.sections for b in s.blocks if isinstance(b, Figure)):
        styles, scripts = styles + timeline_page.style(), scripts + timeline_page.script()
    text: str = figure.page(
        _printable(_printable(document.title[:200])),
        body(document),
        styles + _file("report.css"),
        scripts + _file("report.js"),
    )
    return text


def body(document: Document) -> str:
    """What is between the body tags."""
    shown: set[str] = set()
    inside = "".join(_section(section, document, shown) for section in document.sections)
    rest = [query for query in document.queries.values() if query.id not in shown and _is_named(query, document)]
    parts = [
        '<main class="rep">',
        f"<header><h1><bdi>{_clip(document.title, 120)}</bdi></h1>",
        "".join(f'<p class="rep-lead"><bdi>{_clip(line, 160)}</bdi></p>' for line in document.lead),
        f'<div class="rep-headline">{"".join(f"<p>{_text(text)}</p>" for text in document.headline)}</div>',
        f'<dl class="rep-banner">{"".join(map(_note, document.banner))}</dl>' if document.banner else "",
        "".join(f'<p class="rep-left">{_escape(note)}.</p>' for note in document.notes),
        "</header>",
        _contents(document),
        inside,
        '<section id="how"><h2>How to check a number</h2>',
        "<p>Every number is a link to the query that makes it. ",
        f"SQL runs as it is: <code>{_escape(document.run)}</code> reads it from standard input. "
        if document.run
        else "",
        "Where no SQL can make it, a command is named, and where in its JSON the rows are.</p>",
        "".join(_origin(query, document) for query in rest),
        "</section></main>",
    ]
    return "".join(parts)


def _contents(document: Document) -> str:
    links = [f'<a href="#{_escape(s.id)}">{_clip(s.title)}</a>' for s in document.sections if s.level == 2]
    return f'<nav class="rep-nav" aria-label="Sections">{"".join(links)}</nav>' if len(links) > 1 else ""


def _is_named(query: Query, document: Document) -> bool:
    texts = [*document.headline, *(note.text for note in document.banner)]
    texts += [block for section in document.sections for block in section.blocks if isinstance(block, tuple)]
    return any(isinstance(part, Number) and part.query == query.id for text in texts for part in text)


def _section(section: Section, document: Document, shown: set[str]) -> str:
    inside = "".join(_block(block, document, shown) for block in section.blocks)
    head = f"h{section.level}"
    return f'<section id="{_escape(section.id)}"><{head}><bdi>{_clip(section.title)}</bdi></{head}>{inside}</section>'


def _block(block: Block, document: Document, shown: set[str]) -> str:
    if isinstance(block, Table):
        return _table(block, document, shown)
    if isinstance(block, Figure):
        if not block.fragment:
            return f'<p class="rep-none">{_clip(block.caption)}</p>'
        return f'<div class="rep-figure">{block.fragment}</div>'
    return f"<p>{_text(block)}</p>"


def _table(table: Table, document: Document, shown: set[str]) -> str:
    query = table.query
    words = {c.name for c in table.columns if c.kind in ("text", "bool")}
    head = "".join(
        f'<th scope="col"{"" if c.name in words else " class=rep-right"}>{_escape(c.title)}</th>' for c in table.columns
    )
    rows = []
    for line in table.cells():
        cells = [
            _words(cell) if isinstance(cell, str) else f'<td class="rep-right">{_number(cell)}</td>' for cell in line
        ]
        rows.append(f"<tr>{''.join(cells)}</tr>")
    known = len(query.rows) if table.places is None else len(table.places)
    more = known - len(table.shown)
    left = f"<p class=wsf-note>{more:,} more rows are in the CSV.</p>" if more > 0 else ""
    note = f"<figcaption>{_text((table.note,))}</figcaption>" if table.note else ""
    origin = "" if query.id in shown else _origin(query, document)
    save = "" if query.id in shown else (
        '<p class="wsf-tools"><button type="button" data-save="csv">Save CSV</button></p>'
        f'<script type="application/json" class="wsf-csv">{render.script_json(to_csv(query))}</script>'
    )  # fmt: skip
    shown.add(query.id)
    return (
        f'<figure class="wsf rep-table" data-name="{_escape(query.id)}">'
        f'<div class="rep-scroll" tabindex="0" role="group" aria-label="{_escape(query.title)}">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
        f"{left}{note}{save}{origin}</figure>"
    )


def _words(text: str) -> str:
    # Names stay whole; what is longer may break anywhere, so that no text makes the page wider.
    return f"<td{' class=rep-long' if max(map(len, text.split()), default=0) > 24 else ''}>{_cell(text)}</td>"


def _origin(query: Query, document: Document) -> str:
    """The query or the command behind a table, closed until somebody asks."""
    if query.sql:
        what, text, how = "SQL", query.sql, document.run
    else:
        place = ".".join(query.at)
        what, text, how = "Command", query.command, f"in its JSON: {place}" if place else ""
    said = f"<p class=wsf-note>{_escape(how)}</p>" if how else ""
    return (
        f'<details id="sql-{_escape(query.id)}" class="rep-sql"><summary>{what}: {_escape(query.title)}</summary>'
        f"<pre>{_escape(text)}</pre>{said}</details>"
    )


def _note(note: Note) -> str:
    return f'<div class="rep-{note.level}"><dt>{_clip(note.name)}</dt><dd>{_text(note.text)}</dd></div>'


def _text(text: Text) -> str:
    return "".join(_number(part) if isinstance(part, Number) else _cell(part, 4000) for part in text)


def _number(cell: Number) -> str:
    exact = "unknown" if cell.value is None else str(cell.value)
    where = f"{exact}: column {cell.column}, row {cell.row + 1} of query {cell.query}"
    return (
        f'<a class="rep-n" href="#sql-{_escape(cell.query)}" data-row="{cell.row}" '
        f'data-column="{_escape(cell.column)}" title="{_escape(where)}">'
        f"{_escape(cell.shown)}</a>"
    )


def _cell(text: str, longest: int = LONGEST) -> str:
    return f"<bdi>{_clip(text, longest)}</bdi>" if any(ord(c) > 126 for c in text[:longest]) else _clip(text, longest)


def _clip(text: str, longest: int = LONGEST) -> str:
    return _escape(text if len(text) <= longest else text[:longest] + "…")


def _escape(text: str) -> str:
    return html.escape(_printable(text))


def _printable(text: str) -> str:
    # Control characters are no text of a page, and those that turn the direction would turn what follows; as escapes
    # they can be seen.
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def to_csv(query: Query) -> str:
    """All rows of a query as CSV: integers in full, unknown empty. A text that a spreadsheet would run as a formula
    gets an apostrophe before it."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(query.columns)
    writer.writerows([_plain(row.get(name)) for name in query.columns] for row in query.rows)
    return out.getvalue()


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return "'" + value if value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else value


def _file(name: str) -> str:
    return files("wsformat.viewers").joinpath(name).read_text(encoding="utf-8")
