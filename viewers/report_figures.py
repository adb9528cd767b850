"""The pictures of a report: those of ``figures`` that fit the capture, as parts of a page."""

from __future__ import annotations

from wsformat.bundle import Bundle
from wsformat.errors import BadRequest, MissingDependency
from wsformat.viewers.report_ask import Asker, literal
from wsformat.viewers.report_capture import Seen
from wsformat.viewers.report_model import Block, Figure

SHOWN_ITERATIONS = 8
"""Iterations of the timeline at the top: so many can be told apart on a page."""
GRID = 2
"""CTAs from which a picture of the grid says anything."""


EXPLORED = 1_500_000
"""Bytes of a report's timelines of whole launches, all captures together: it should still fit a mail."""


def figures(bundle: Bundle, asker: Asker, seen: Seen, share: float = 1.0) -> dict[str, Block]:
    """Pictures by name; what cannot be drawn is there with the reason in words.

    Args:
        bundle, asker, seen: what to draw.
        share: of :data:`EXPLORED` that this capture may take.
    """
    from wsformat.viewers.figures import draw

    where = {"capture_id": seen.capture["capture_id"], "launch": seen.launch}
    wanted = ["timeline"]
    if seen.judged:
        wanted += [n for n, rows in (("waits", seen.waits.rows), ("overlap", seen.overlap.rows)) if rows]
        wanted += ["iterations"] if seen.iterations.rows else []
        wanted += ["critical-path"] if seen.path is not None else []
    wanted += ["grid"] if seen.ctas >= GRID else []
    made: dict[str, Block] = {}
    for name in wanted:
        options = dict(where)
        if name in ("timeline", "critical-path"):
            options |= {"cta": seen.cta} if seen.cta >= 0 else {}
        options |= window(asker, seen) if name == "timeline" else {}
        key = f"{asker.prefix}fig-{name}"
        try:
            figure = draw(bundle, name, **options)
        except MissingDependency as error:
            return {
                "timeline": Figure(f"{asker.prefix}fig-timeline", "No pictures", f"{error.message} {error.hint}", "")
            }
        except BadRequest as error:
            made[name] = Figure(key, name, f"No picture: {error.message}.", "")
            continue
        made[name] = Figure(
            key, figure.title[0], figure.caption, figure.fragment(level=3, heading=False, key=key), dict(figure.sql),
            tuple(figure.notes),
        )  # fmt: skip
    made["explorer"] = _explorer(bundle, asker, seen, int(share * EXPLORED))
    return made


def _explorer(bundle: Bundle, asker: Asker, seen: Seen, limit: int) -> Figure:
    """The timeline of the whole launch, to zoom and search: every span that fits in ``limit`` bytes."""
    from wsformat.viewers.timeline_page import explorer

    key = f"{asker.prefix}fig-explorer"
    try:
        page = explorer(
            bundle, capture_id=seen.capture["capture_id"], launch=seen.launch, limit=limit, **window(asker, seen)
        )
    except BadRequest as error:
        # One CTA can be drawn where all of them have no axis in common.
        return Figure(key, "explorer", f"No picture of the whole launch: {error.message}.", "")
    caption = "Every recorder of the launch: drag, zoom, sort, group, search for an iteration; hover for the numbers."
    return Figure(key, page.title[0], caption, page.fragment(key, 3, heading=False), {}, page.notes)


def window(asker: Asker, seen: Seen) -> dict[str, str]:
    """Some iterations from the middle of the CTA's longest loop; nothing when it is short or has none."""
    here = literal(seen.capture["capture_id"])
    rows = asker.rows(
        f"""SELECT MIN(i.iteration) AS first, MAX(i.iteration) AS last, COUNT(*) AS n FROM iteration i
            WHERE i.capture_id = {here} AND i.launch = {seen.launch} AND i.cta = {seen.cta}
            GROUP BY i.lane ORDER BY n DESC, i.lane LIMIT 1"""
    )
    if not rows or rows[0]["n"] <= SHOWN_ITERATIONS:
        return {}
    begin = (rows[0]["first"] + rows[0]["last"] + 1 - SHOWN_ITERATIONS) // 2
    return {"iterations": f"{begin}:{begin + SHOWN_ITERATIONS}"}
