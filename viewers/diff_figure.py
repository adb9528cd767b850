"""Both timelines of a comparison as one picture: from the same iteration on, in the same scale, one over the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from wsformat.viewers.diff import Diff
from wsformat.viewers.diff_read import Side
from wsformat.viewers.figure import Figure
from wsformat.viewers.report_ask import literal
from wsformat.viewers.timeline_layout import clean

SHOWN_ITERATIONS = 6


def diff_figure(made: Diff) -> Figure | None:
    """The picture; None where the two have no role with iterations in common.

    Args:
        made: the comparison, its bundles open.

    Raises:
        BadRequest: one of them cannot be drawn.
        MissingDependency: the extra for pictures is not installed.
    """
    from wsformat.viewers.figures import draw

    windows = aligned(made.a, made.b)
    if windows is None:
        return None
    role, iteration, ticks, begins = windows
    drawn = []
    for side, begin in zip((made.a, made.b), begins, strict=True):
        assert side.seen is not None, "what has iterations was seen"
        drawn.append(
            draw(
                side.bundle, "timeline", capture_id=side.capture["capture_id"], launch=side.seen.launch,
                cta=side.seen.cta, start=begin, end=begin + ticks,
                origin=(begin, f"iteration {iteration} of {role} began"),
            )
        )  # fmt: skip
    names = made.a.name, made.b.name
    title = f"{clean(names[0])} and {clean(names[1])}"
    below = f"Both start where {role} begins iteration {iteration}; {ticks:,} ticks of each, in the same scale."
    return Figure(
        "diff",
        (title, below),
        f"{below} Each row is one recorder. Coloured is instrumented work, hatched a wait stamped at both ends, faint "
        "what no stamp covers. An arrow runs from a signal to the exit of the wait that it bound.",
        " ".join(f"{letter}, {clean(name)}: {f.alt}" for letter, name, f in zip("AB", names, drawn, strict=True)),
        stacked([f"A: {clean(names[0])}", f"B: {clean(names[1])}"], [figure.spec for figure in drawn], (title, below)),
        pa.concat_tables(
            figure.table.add_column(0, "version", pa.array([letter] * figure.table.num_rows, pa.string()))
            for letter, figure in zip("AB", drawn, strict=True)
        ),
        {
            f"{what} of {letter} (on {clean(name)})": sql
            for letter, name, figure in zip("AB", names, drawn, strict=True)
            for what, sql in figure.sql.items()
        },
        tuple(f"{letter}: {note}" for letter, figure in zip("AB", drawn, strict=True) for note in figure.notes),
    )


def stacked(heads: Sequence[str], specs: Sequence[Any], title: tuple[str, str]) -> dict[str, Any]:
    """Vega-Lite specifications of timelines as one: the plots under each other, then what explains their marks.

    Args:
        heads: a line over each plot.
        specs: of timelines: a plot and its legend.
        title: of the whole: headline and a line below.
    """
    plots, legends, data = [], [], {}
    for n, (head, spec) in enumerate(zip(heads, specs, strict=True)):
        plot, legend = (_renamed(part, f"v{n}_") for part in spec["vconcat"])
        heading = {"text": head, "anchor": "start", "fontSize": 12, "offset": 6, "color": spec["title"]["color"]}
        plots.append({**plot, "title": heading})
        said = [row.get("text") for name, rows in spec["datasets"].items() if name == "legend_text" for row in rows]
        legends.append((legend, said))
        data |= {f"v{n}_{name}": rows for name, rows in spec["datasets"].items()}
    legends.sort(key=lambda each: -len(each[1]))
    # One legend says it for both, unless the other has marks of its own.
    kept = [legends[0][0], *(legend for legend, said in legends[1:] if not set(said) <= set(legends[0][1]))]
    head = {**specs[0]["title"], "text": [title[0]], "subtitle": [title[1]]}
    return {**specs[0], "title": head, "description": " | ".join(title), "datasets": data, "vconcat": [*plots, *kept]}


def _renamed(part: dict[str, Any], prefix: str) -> dict[str, Any]:
    """A part of a specification whose names and data sets begin with a prefix."""
    layers = []
    for layer in part["layer"]:
        own = {"data": {"name": prefix + layer["data"]["name"]}} if "name" in layer.get("data", {}) else {}
        layers.append({**layer, **own, **({"name": prefix + layer["name"]} if "name" in layer else {})})
    return {**part, "layer": layers, **({"name": prefix + part["name"]} if "name" in part else {})}


def aligned(a: Side, b: Side) -> tuple[str, int, int, tuple[int, int]] | None:
    """The role and iteration at which both timelines start, the ticks that are shown of each, and where they begin in
    ticks since their CTA's first stamp; None without a role that has iterations in both."""
    starts = [_starts(side) for side in (a, b)]
    roles = [role for role in starts[0] if role in starts[1]]
    if not roles:
        return None
    role = max(roles, key=lambda r: min(len(starts[0][r]), len(starts[1][r])))
    common = sorted(starts[0][role].keys() & starts[1][role].keys())
    if len(common) < 2:
        return None
    first = common[max(0, (len(common) - SHOWN_ITERATIONS) // 2)]
    last = common[min(len(common) - 1, common.index(first) + SHOWN_ITERATIONS)]
    ticks = max(found[role][last] - found[role][first] for found in starts)
    return role, first, ticks, (starts[0][role][first], starts[1][role][first])


def _starts(side: Side) -> dict[str, dict[int, int]]:
    """Start of every iteration of each role of the CTA that is shown, in ticks since the CTA's first stamp."""
    seen = side.seen
    if seen is None:
        return {}
    at = f"capture_id = {literal(seen.capture['capture_id'])} AND launch = {seen.launch} AND cta = {seen.cta}"
    sql = f"""SELECT role, iteration, MIN(t) - (SELECT MIN(t_first) FROM role_state WHERE {at} AND points > 0) AS t
              FROM iteration WHERE {at} GROUP BY role, iteration ORDER BY role, iteration"""
    found: dict[str, dict[int, int]] = {}
    for row in side.bundle.sql(sql).to_pylist():
        found.setdefault(row["role"], {})[row["iteration"]] = row["t"]
    return found
