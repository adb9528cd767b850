"""A figure: one picture with the numbers behind it, as a file, a page, or a part of a larger page."""

from __future__ import annotations

import csv
import html
import io
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

import pyarrow as pa

from wsformat.viewers import render, theme
from wsformat.viewers.timeline_layout import palette

LISTED = 200
"""Rows of numbers that a page shows; the CSV has all."""


@dataclass(frozen=True)
class Figure:
    """A drawn picture and what it was drawn from.

    Attributes:
        name: its kind, such as ``waits``.
        title: headline; then what is shown, completeness and perturbation.
        caption: what one sees, in plain words, with the denominators.
        alt: alternative text with the main numbers.
        spec: the Vega-Lite specification.
        table: the numbers as drawn.
        sql: the queries that make them, by a word for each; they run as they are in ``wsformat query``.
        notes: what is not shown, and why.
    """

    name: str
    title: tuple[str, ...]
    caption: str
    alt: str
    spec: Mapping[str, Any]
    table: pa.Table
    sql: Mapping[str, str]
    notes: tuple[str, ...] = field(default=())

    @cached_property
    def svg(self) -> str:
        """The picture as SVG text, on light paper."""
        drawn: str = render.to_svg(self.spec, palette()["stall"])
        return drawn

    @cached_property
    def untitled(self) -> str:
        """The SVG without headline, for pages that have it in words."""
        drawn: str = render.to_svg({k: v for k, v in self.spec.items() if k != "title"}, palette()["stall"])
        return drawn

    def png(self, scale: float = 2.0) -> bytes:
        """The picture as PNG, two pixels to a CSS pixel by default."""
        drawn: bytes = render.to_png(self.svg, scale)
        return drawn

    def pdf(self) -> bytes:
        """The picture as PDF."""
        drawn: bytes = render.to_pdf(self.svg)
        return drawn

    def csv(self) -> str:
        """The numbers as CSV. Text that a spreadsheet would run as a formula gets an apostrophe before it."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.table.column_names)
        columns = [[_cell(value) for value in column.to_pylist()] for column in self.table.columns]
        writer.writerows(zip(*columns, strict=True))
        return out.getvalue()

    def fragment(self, level: int = 2, *, key: str = "", heading: bool = True) -> str:
        """The figure as part of a page: picture, caption, notes, downloads, numbers and SQL.

        Args:
            level: of the heading, 2 for ``<h2>``.
            key: id of the element and beginning of every id in its picture, by default ``wsf-`` and the name; a page
                with two figures of one kind needs a key for each.
            heading: false where the page has a heading of its own.

        The page needs :func:`style` and :func:`script` once.
        """
        key = re.sub(r"[^A-Za-z0-9_-]", "-", key) or f"wsf-{self.name}"
        words = html.escape
        svg = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{key}-", self.untitled)
        head = f"<h{level}>{words(self.title[0])}</h{level}>" if heading else ""
        below = "".join(f"<p class=wsf-sub>{words(line)}</p>" for line in self.title[1:]) if heading else ""
        notes = "".join(f"<p class=wsf-note>{words(note)}</p>" for note in self.notes)
        queries = "".join(
            f"<p class=wsf-note>{words(what)}</p><pre>{words(query.strip())}</pre>" for what, query in self.sql.items()
        )
        return (
            f'<figure class=wsf id="{key}" data-name="{words(self.name)}">{head}{below}'
            f"<style>{theme.recolour(svg, f'#{key}')}</style>"
            f'<div class=wsf-picture tabindex=0 role=group aria-label="{words(self.alt)}">{svg}</div>'
            f"<figcaption>{words(self.caption)}</figcaption>{notes}"
            "<p class=wsf-tools><button type=button data-save=csv>Save CSV</button>"
            "<button type=button data-save=svg>Save SVG</button></p>"
            f"<details><summary>Numbers</summary>{self._listed()}</details>"
            f"<details><summary>SQL that makes them</summary>{queries}</details>"
            f'<script type="application/json" class=wsf-csv>{render.script_json(self.csv())}</script></figure>'
        )

    def html(self) -> str:
        """A page that opens without a network, in light and dark."""
        return page(self.title[0], self.fragment(1))

    def write(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write .html, .svg, .png (two pixels to a CSS pixel) or .pdf, by the suffix; whole or not at all.

        Raises:
            BadRequest: another suffix.
            OutputExists: the file is there and ``force`` is false.
        """
        written: Path = render.write_picture(self, path, force=force)
        return written

    def _listed(self) -> str:
        shown = self.table.slice(0, LISTED)
        head = "".join(f"<th scope=col>{html.escape(name)}</th>" for name in shown.column_names)
        columns = [[_shown(value) for value in column.to_pylist()] for column in shown.columns]
        body = "".join(f"<tr>{''.join(row)}</tr>" for row in zip(*columns, strict=True))
        more = self.table.num_rows - shown.num_rows
        rest = f"<p class=wsf-note>{more:,} more rows are in the CSV.</p>" if more > 0 else ""
        return (
            f"<div class=wsf-scroll tabindex=0><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
            + rest
        )

    def _repr_mimebundle_(self, *_: Any, **__: Any) -> dict[str, Any]:
        return {"image/svg+xml": self.svg, "text/plain": repr(self)}

    def __repr__(self) -> str:
        return f"<Figure {self.name}: {' | '.join(self.title)}>"


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        # No tool shows control characters, and a first = + - @ starts a formula.
        return "'" + value if value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
    return "" if value is None else value


def _shown(value: Any) -> str:
    if value is None:
        return "<td class=wsf-num>none</td>"
    if isinstance(value, bool):
        return f"<td>{'yes' if value else 'no'}</td>"
    if isinstance(value, int):
        return f"<td class=wsf-num>{value:,}</td>"
    if isinstance(value, float):
        return f"<td class=wsf-num>{value:,.4g}</td>" if abs(value) < 1000 else f"<td class=wsf-num>{value:,.1f}</td>"
    return f"<td>{html.escape(str(value)[:200])}</td>"


@cache
def style() -> str:
    """CSS of figures, with the variables of both themes."""
    return str(theme.variables() + _file("figure.css"))


@cache
def script() -> str:
    """Script of figures: numbers on hover and focus, downloads, the theme button."""
    return _file("figure.js")


def _file(name: str) -> str:
    return files("wsformat.viewers").joinpath(name).read_text(encoding="utf-8")


def page(title: str, body: str, styles: str = "", scripts: str = "") -> str:
    """A whole page around fragments; everything it needs is in it, and its policy forbids to fetch anything.

    Args:
        title: for the browser's tab.
        body: fragments.
        styles, scripts: what fragments need beyond :func:`style` and :func:`script`.
    """
    parts = {
        "@TITLE@": html.escape(title),
        "@STYLE@": style() + styles,
        "@BODY@": body,
        "@SCRIPT@": script() + scripts,
    }
    # One pass over the template: nothing that is put in is searched again.
    rest = _file("page.html")
    pieces = []
    for mark, value in parts.items():
        before, rest = rest.split(mark, 1)
        pieces += [before, value]
    return "".join([*pieces, rest])
