"""A document as Markdown that reads well in a terminal."""

from __future__ import annotations

from wsformat.viewers.report_model import Document, Figure, Section, Table, words

LONGEST = 60


def markdown(document: Document) -> str:
    """The whole document, its queries left out: the page and the JSON have them."""
    lines = [f"# {plain(document.title)}", ""]
    lines += [plain(line) for line in document.lead]
    lines += ["", *[plain(words(text)) for text in document.headline], ""]
    lines += [f"- {plain(note.name)}: {plain(words(note.text))}" for note in document.banner]
    lines += [f"- {plain(note)}" for note in document.notes]
    for section in document.sections:
        lines += _section(section)
    return "\n".join(lines).rstrip() + "\n"


def _section(section: Section) -> list[str]:
    lines = ["", f"{'#' * section.level} {plain(section.title)}"]
    for block in section.blocks:
        if isinstance(block, Table):
            if block.shown:
                lines += ["", *table(block)]
            if block.note:
                lines += ["", plain(block.note)]
        elif isinstance(block, Figure):
            continue
        else:
            lines += ["", plain(words(block))]
    return lines


def table(block: Table) -> list[str]:
    """A Markdown table whose columns line up: text to the left, numbers to the right."""
    lefts = [column.kind in ("text", "bool") for column in block.columns]
    rows = [[plain(column.title) for column in block.columns]]
    rows += [[_short(str(cell)) for cell in line] for line in block.cells()]
    widths = [max(3, *(len(row[n]) for row in rows)) for n in range(len(lefts))]
    lines = []
    for row in rows:
        cells = (c.ljust(w) if left else c.rjust(w) for c, w, left in zip(row, widths, lefts, strict=True))
        lines.append(f"| {' | '.join(cells)} |")
    rule = " | ".join("-" * w if left else "-" * (w - 1) + ":" for w, left in zip(widths, lefts, strict=True))
    known = len(block.query.rows) if block.places is None else len(block.places)
    more = known - len(block.shown)
    return [lines[0], f"| {rule} |", *lines[1:], *(["", f"{more:,} more rows."] if more > 0 else [])]


def _short(text: str) -> str:
    safe = plain(text)
    return safe if len(safe) <= LONGEST else safe[: LONGEST - 1] + "…"


def plain(text: str) -> str:
    """Text of a file that cannot break a table or a terminal."""
    safe = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return safe.replace("|", "\\|").replace("<", "\\<")
