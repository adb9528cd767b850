"""A bundle in a notebook: what it holds, in a few lines of HTML in which names are text and nothing runs."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wsformat.bundle import Bundle

MOST = 8
"""Captures listed; a merged bundle may hold thousands."""
LONGEST = 60


def as_html(bundle: Bundle) -> str:
    """Captures of a bundle with what they are and whether they are complete, and the rows of its tables."""
    found = bundle.table("captures")
    rows = found.slice(0, MOST).to_pylist()
    heads = ("label", "kind", "kernel", "device", "completeness")
    body = "".join(f"<tr>{''.join(f'<td>{text(_known(row, name))}</td>' for name in heads)}</tr>" for row in rows)
    more = found.num_rows - len(rows)
    tables = ", ".join(
        f"{text(name)} {part.rows:,}" if part.rows >= 0 else text(name) for name, part in bundle.data.items()
    )
    where = text(bundle.path.name) if bundle.path is not None else "in memory"
    listed = (
        f"<table><thead><tr>{''.join(f'<th>{name}</th>' for name in heads)}</tr></thead><tbody>{body}</tbody></table>"
    )
    return (
        f"<div><strong>wsformat bundle</strong> {where}"
        + (listed if rows else "<div>no captures</div>")
        + (f"<div>{more:,} more captures</div>" if more > 0 else "")
        + f"<div>rows: {tables or 'none'}</div></div>"
    )


def _known(row: dict[str, Any], name: str) -> str:
    return str(row[name] or ("unknown" if name == "completeness" else ""))


def text(value: str) -> str:
    """Text of a file, short and escaped; control characters can be seen."""
    safe = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in value[: LONGEST + 1])
    return html.escape(safe if len(value) <= LONGEST else safe[:LONGEST] + "…")
