"""The timeline as a page: a whole launch to look over, zoom into, sort and search, with the exact numbers on hover."""

from __future__ import annotations

import html
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from wsformat.bundle import Bundle
from wsformat.derive import run
from wsformat.errors import BadRequest
from wsformat.viewers import figure, render, theme
from wsformat.viewers.timeline_axis import Group, records
from wsformat.viewers.timeline_chart import axis_title
from wsformat.viewers.timeline_layout import clean, colours, remark
from wsformat.viewers.timeline_marks import VERDICTS
from wsformat.viewers.timeline_packing import pack
from wsformat.viewers.timeline_select import Selection, iteration_range, select
from wsformat.viewers.timeline_spans import Places, Spans, read_spans
from wsformat.viewers.timeline_tiles import pieces, shares, state_ticks, tiles
from wsformat.viewers.timeline_words import completeness, headline, perturbation

if TYPE_CHECKING:
    import duckdb

LIMIT = 5_000_000
"""Bytes of a page at most."""
ROOM = 100_000
"""Bytes of a page that are neither rows, levels nor tiles: scripts, styles, names of spans."""
MOST_ROWS = 2_400
"""Rows of a page."""
ITERATIONS = 20_000
"""Iterations that can be searched; of a longer loop every second, third, ... one."""
VIEWS = ("point", "recorded_window", "span", "state_interval", "wait", "clock_segment", "perturbation")
MARK = "<section class=wsf-timeline "
"""How a timeline begins in a page: where it stands, the page needs :func:`style` and :func:`script`."""
SCRIPTS = ("timeline_data.js", "timeline_paint.js", "timeline_view.js")


@dataclass(frozen=True)
class Explorer:
    """The page of a timeline.

    Attributes:
        title: headline; what is shown; completeness and perturbation.
        notes: what is not on the page.
        data: what the script draws, ready for JSON.
    """

    title: tuple[str, ...]
    notes: tuple[str, ...]
    data: dict[str, Any]

    def fragment(self, key: str = "timeline", level: int = 2, *, heading: bool = True) -> str:
        """The timeline as part of a page, which needs :func:`style` and :func:`script` once, after those of figures.

        Args:
            key: id of its element; two on one page need two.
            level: of the heading, 2 for ``<h2>``.
            heading: false where the page has a heading of its own.
        """
        words = html.escape
        head = f"<h{level}>{words(self.title[0])}</h{level}>" if heading else ""
        below = "".join(f"<p class=wsf-sub>{words(line)}</p>" for line in self.title[1:]) if heading else ""
        notes = "".join(f"<p class=wsf-note>{words(note)}</p>" for note in self.notes)
        body = files("wsformat.viewers").joinpath("timeline.html").read_text(encoding="utf-8")
        before, after = body.split("@DATA@")
        data = render.script_json(self.data)
        body = f"{head}{below}{before}{data}{after}{notes}"
        return f'{MARK}id="{words(key)}">{body}</section>'

    def html(self) -> str:
        """A page that opens without a network, in light and dark."""
        made: str = figure.page(self.title[0], self.fragment(level=1), style(), script())
        return made

    def write(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write the page to a .html file, whole or not at all.

        Raises:
            BadRequest: another suffix.
            OutputExists: the file is there and ``force`` is false.
        """
        target: Path = render.check_output(path, force=force)
        if target.suffix.lower() != ".html":
            raise BadRequest(f"{target}: this is a page", "Name it .html, or draw the timeline for another kind.")
        render.write_whole(target, self.html())
        return target


@cache
def style() -> str:
    """CSS of the timeline, beyond that of figures."""
    return files("wsformat.viewers").joinpath("timeline.css").read_text(encoding="utf-8")


@cache
def script() -> str:
    """Script of the timeline, beyond that of figures."""
    return "".join(files("wsformat.viewers").joinpath(name).read_text(encoding="utf-8") for name in SCRIPTS)


def explorer(
    bundle: Bundle,
    *,
    capture_id: str | None = None,
    launch: int | Iterable[int] | None = None,
    cta: int | Iterable[int] | None = None,
    roles: Iterable[str] | None = None,
    start: int | None = None,
    end: int | None = None,
    iterations: str | Sequence[int] | None = None,
    limit: int = LIMIT,
) -> Explorer:
    """The page of a timeline.

    Args:
        bundle: what to show.
        capture_id: by default the first capture with stamps.
        launch: launch or launches; by default the first with stamps.
        cta: CTA or CTAs; by default all.
        roles: by default all.
        start, end, iterations: what the page shows first, as in :func:`~wsformat.viewers.timeline.timeline`;
            everything else of the chosen rows is on the page as well.
        limit: bytes of the whole page. States in bins of time always fit; exact spans as far as there is room, from
            the first window outwards.

    Raises:
        BadRequest: nothing to show, something chosen that is not there, or an empty window.
    """
    asked = iteration_range(iterations)
    if asked is not None and (start is not None or end is not None):
        raise BadRequest("a window by iterations and one by time at once", "Give one of the two.")
    with bundle.duckdb(only=VIEWS) as connection:
        selection = select(connection, capture_id=capture_id, launch=launch, cta=cta, roles=roles, whole=True)
        selection = _fewer(selection)
        chosen = str(selection.capture["capture_id"])
        places = Places(selection)
        spans, notes = read_spans(connection, selection, places)
        extent = _extent(places, spans)
        table = _iterations(connection, chosen, spans)
        window = _window(extent, start, end, asked, table, selection.axis.unit)
        states = pieces(connection, selection, places, spans)
        levels = shares(connection, states, len(selection.rows), spans.count, extent)
        paint = _paint(connection, chosen)
        rows = _rows(connection, selection, places, spans, states, paint)
        used = len(render.script_json(rows)) + len(table["text"]) + sum(len(level["data"]) for level in levels)
        made, inside = tiles(spans, extent, (window[0] + window[1]) // 2, limit - ROOM - used)
        disturbed = perturbation(connection, chosen, selection.groups[0].launch)
    notes = [*selection.notes, *notes]
    if inside < spans.count:
        notes.append(
            f"{inside:,} of {spans.count:,} spans are on this page one by one; elsewhere it has the share of each "
            "state in bins of time. For the rest, make a page with another window (--iterations, --from) or fewer CTAs."
        )
    data = {
        "unit": selection.axis.unit,
        "axis": axis_title(selection),
        "comparable": selection.axis.kind != "own",
        "several": len({group.launch for group in selection.groups}) > 1,
        "extent": extent,
        "window": window,
        "rows": rows,
        "kinds": [
            {"role": clean(role), "span": clean(span), "state": state, "barrier": clean(barrier),
             "colour": _pair(paint, role, span), "hides": (role, span) in paint["hides"]}
            for role, span, state, barrier in spans.kinds
        ],
        "verdicts": [VERDICTS.get(verdict, clean(verdict)) for verdict in spans.verdicts],
        "producers": [[clean(role), clean(event)] for role, event in spans.producers],
        "levels": levels,
        "tiles": made,
        "spans": [inside, spans.count],
        "iterations": table["json"],
        "palette": theme.both_themes(),
    }  # fmt: skip
    kernels = {selection.launches[g.launch]["kernel"] for g in selection.groups if g.launch in selection.launches}
    title = (
        headline(selection.capture, kernels),
        _facts(selection, spans),
        f"{completeness(selection.capture)} · {disturbed}",
    )
    return Explorer(title, tuple(notes), data)


def _fewer(selection: Selection) -> Selection:
    """The first groups, as many as have MOST_ROWS rows: of thousands of CTAs no page can carry the states of all."""
    total = len(selection.rows)
    if total <= MOST_ROWS:
        return selection
    kept: list[Group] = []
    for group in selection.groups:
        if kept and sum(len(other.rows) for other in kept) + len(group.rows) > MOST_ROWS:
            break
        kept.append(group)
    shown = sum(len(group.rows) for group in kept)
    note = (
        f"{shown:,} of {total:,} rows are on this page: {len(kept):,} of {len(selection.groups):,} CTAs, by number. "
        "Choose others with --cta."
    )
    return replace(selection, groups=tuple(kept), notes=(*selection.notes, note))


def _facts(selection: Selection, spans: Spans) -> str:
    facts = [clean(selection.capture.get(name) or "", 40) for name in ("device", "arch", "dtype", "shape", "version")]
    launches = sorted({group.launch for group in selection.groups})
    ctas = {(group.launch, group.cta) for group in selection.groups if group.cta >= 0}
    facts = [facts[0] or "device unknown", *(fact for fact in facts[1:] if fact)]
    facts += [f"launch {launches[0]}"] if len(launches) == 1 and launches[0] >= 0 else []
    facts += [f"{len(ctas):,} CTAs" if len(ctas) > 1 else f"CTA {next(iter(ctas))[1]}"] if ctas else []
    return " · ".join([*facts, f"{len(selection.rows):,} rows", f"{spans.count:,} spans"])


def _extent(places: Places, spans: Spans) -> tuple[int, int]:
    _, _, x0, x1 = places.windows()
    ends = [*x0[places.numbers].tolist(), *x1[places.numbers].tolist()]
    ends += [int(spans.x0.min()), int(spans.x1.max())] if spans.count else []
    return min(ends), max(max(ends), min(ends) + 1)


def _iterations(connection: duckdb.DuckDBPyConnection, capture: str, spans: Spans) -> dict[str, Any]:
    """First and last moment of every iteration of the loops, over all rows."""
    once = {
        (row["role"], row["name"])
        for row in records(
            connection,
            "SELECT role, span AS name FROM span_types WHERE capture_id = $1 AND loop = 'once' "
            "UNION SELECT role, event FROM event_types WHERE capture_id = $1 AND loop = 'once'",
            [capture],
        )
    }
    looped = np.array([(kind[0], kind[1]) not in once for kind in spans.kinds] or [False])[spans.kind]
    keep = looped & (spans.iteration >= 0)
    connection.register("moment", pa.table({"i": spans.iteration[keep], "x0": spans.x0[keep], "x1": spans.x1[keep]}))
    found = run(connection, "SELECT i, MIN(x0) AS x0, MAX(x1) AS x1 FROM moment GROUP BY i ORDER BY i")
    connection.unregister("moment")
    step = max(1, -(-found.num_rows // ITERATIONS))
    number, x0, x1 = (np.asarray(found[name].to_numpy(), np.int64)[::step] for name in ("i", "x0", "x1"))
    text, widths = pack([np.diff(number, prepend=0), np.diff(x0, prepend=0), x1 - x0])
    return {"number": number, "x0": x0, "x1": x1, "text": text,
            "json": {"count": len(number), "widths": widths, "data": text}}  # fmt: skip


def _window(
    extent: tuple[int, int],
    start: int | None,
    end: int | None,
    asked: tuple[int, int] | None,
    table: dict[str, Any],
    unit: str,
) -> tuple[int, int]:
    units = "ns" if unit == "ns" else f"{unit}s"
    if asked is not None:
        inside = (table["number"] >= asked[0]) & (table["number"] < asked[1])
        if not inside.any():
            there = f"{table['number'][0]}:{table['number'][-1] + 1}" if len(table["number"]) else "none"
            raise BadRequest(f"no stamps of iterations {asked[0]}:{asked[1]}", f"Iterations here: {there}.")
        return int(table["x0"][inside].min()), int(table["x1"][inside].max())
    low, high = extent[0] if start is None else int(start), extent[1] if end is None else int(end)
    said = f"The chosen lanes were recorded from {extent[0]:,} to {extent[1]:,} {units}."
    if high <= low:
        raise BadRequest(f"the window from {low:,} to {high:,} is empty", said)
    if high < extent[0] or low > extent[1]:
        raise BadRequest(f"nothing was recorded from {low:,} to {high:,}", said)
    return low, high


def _paint(connection: duckdb.DuckDBPyConnection, capture: str) -> dict[str, Any]:
    roles = records(
        connection, "SELECT role, colour FROM roles WHERE capture_id = ? ORDER BY display_order, role", [capture]
    )
    spans = records(
        connection,
        "SELECT role, span, state, loop, begin_event, colour, contains_wait FROM span_types WHERE capture_id = ?",
        [capture],
    )
    hides = {(row["role"], row["span"]) for row in spans if row["contains_wait"] and row["state"] == "active"}
    return {"colours": colours(roles, spans), "hides": hides}


def _pair(paint: dict[str, Any], role: str, span: str) -> list[str]:
    found = paint["colours"]
    colour = found.get((role, span)) or found.get((role, "")) or theme.palette()["active"][0]
    return [colour, theme.on_dark(colour)]


def _rows(
    connection: duckdb.DuckDBPyConnection,
    selection: Selection,
    places: Places,
    spans: Spans,
    states: pa.Table,
    paint: dict[str, Any],
) -> list[dict[str, Any]]:
    """Rows as the script needs them: names, where they ran, line to the axis, states and blocked ticks."""
    rows = selection.rows
    stall, active = state_ticks(states, len(rows))
    waits = slice(spans.waits, spans.waits + len(spans.kept))
    late = np.where(spans.kept >= 0, spans.t1[waits] - spans.t0[waits] - spans.kept, 0)
    blocked = np.bincount(spans.place[waits], late, len(rows)).astype(np.int64)
    first, last, x0, x1 = places.windows()
    order = {role: place for place, role in enumerate(_role_order(connection, str(selection.capture["capture_id"])))}
    capture = selection.capture["capture_id"]
    clocks = records(connection, "SELECT clock, unit FROM clocks WHERE capture_id = ?", [capture])
    units = {row["clock"]: row["unit"] for row in clocks}
    found = []
    for n, row in enumerate(rows):
        launch = selection.launches.get(row.launch, {})
        made: dict[str, Any] = {
            "launch": row.launch, "cta": row.cta, "sm": row.sm, "warp": row.warp, "clock": row.clock,
            "name": clean(row.role or row.name or f"lane {row.lane}", 40), "note": remark(row),
            "colour": _pair(paint, row.role, ""), "order": order.get(row.role, len(order)),
            "pass": launch.get("pass", -1), "tick": units.get(row.clock, "tick"),
        }  # fmt: skip
        if n in places.lines:
            whole = int(last[n] - first[n])
            made |= {
                "zero": str(places.lines[n]["zero"]), "pieces": places.lines[n]["pieces"], "rate": row.rate,
                "x": [int(x0[n]), int(x1[n])], "extent": whole, "stall": int(stall[n]), "active": int(active[n]),
                "untracked": whole - int(stall[n]) - int(active[n]), "blocked": int(blocked[n]),
            }  # fmt: skip
        found.append(made)
    return found


def _role_order(connection: duckdb.DuckDBPyConnection, capture: str) -> list[str]:
    ordered = records(
        connection, "SELECT role FROM roles WHERE capture_id = ? ORDER BY display_order, role_index, role", [capture]
    )
    return [row["role"] for row in ordered]
