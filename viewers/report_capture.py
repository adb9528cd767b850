"""What a report says of one capture with a timeline: states, waits, overlap, speed of the loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from wsformat.critical_path import critical_path, summary
from wsformat.errors import BadRequest
from wsformat.viewers.report_ask import MOST_ROWS, Asker, literal, unit_word
from wsformat.viewers.report_model import Block, Column, Query, Section, Table, number, sentence

UNTRACKED = "Untracked means not instrumented; it says nothing about idleness."


@dataclass(frozen=True)
class Seen:
    """Everything that was asked of a capture.

    Attributes:
        capture: its row of ``captures``.
        label: what to call it.
        launch, cta: the launch that is shown, and the CTA whose path and timeline are; -1 there is none.
        launches, ctas: how many have stamps.
        unit: of the ticks, in plural.
        states, waits, overlap, iterations, slope, perturbation, path, spans, losses: the queries.
    """

    capture: dict[str, Any]
    label: str
    launch: int
    cta: int
    launches: int
    ctas: int
    unit: str
    facts: Query
    states: Query
    waits: Query
    overlap: Query
    iterations: Query
    slope: Query
    perturbation: Query
    path: Query | None
    path_missing: str
    spans: Query
    losses: Query

    @property
    def judged(self) -> bool:
        """Whether any span is declared as work or as a wait: without one, nothing can be said of states."""
        return any(row["active"] or row["stall"] for row in self.states.rows)


def place(asker: Asker, here: str, launch: int | None, cta: int | None) -> tuple[int, int, int, int]:
    """The launch and the CTA to show, and how many launches and CTAs have stamps.

    By default the first launch, and of it the CTA whose recorded time is the median: neither a straggler nor one that
    found an empty machine.

    Raises:
        BadRequest: a launch or CTA without stamps.
    """
    rows = asker.rows(
        f"""SELECT launch, cta, MAX(t_last) - MIN(t_first) AS ticks FROM role_state
            WHERE capture_id = {literal(here)} AND points > 0 GROUP BY launch, cta ORDER BY launch, ticks, cta"""
    )
    launches = sorted({row["launch"] for row in rows})
    device = [n for n in launches if n >= 0] or launches
    if launch is not None and launch not in launches:
        raise BadRequest(f"no stamps of launch {launch}", f"Launches with stamps: {', '.join(map(str, device[:12]))}.")
    chosen = launch if launch is not None else device[0] if device else -1
    own = [row for row in rows if row["launch"] == chosen]
    ctas = [row["cta"] for row in own if row["cta"] >= 0] or [row["cta"] for row in own]
    if cta is not None and cta not in ctas:
        raise BadRequest(
            f"no stamps of CTA {cta}", f"CTAs with stamps: {min(ctas, default=-1)} to {max(ctas, default=-1)}."
        )
    return chosen, cta if cta is not None else ctas[(len(ctas) - 1) // 2] if ctas else -1, len(device), len(ctas)


def look(asker: Asker, capture: dict[str, Any], label: str, launch: int | None = None, cta: int | None = None) -> Seen:
    """Ask everything about one capture.

    Raises:
        BadRequest: a launch or CTA without stamps.
    """
    here = capture["capture_id"]
    number_, cta_, launches, ctas = place(asker, here, launch, cta)
    units = asker.rows(
        f"""SELECT DISTINCT c.unit FROM lanes l JOIN clocks c ON c.capture_id = l.capture_id AND c.clock = l.clock
            WHERE l.kind <> 'cta' AND l.capture_id = {literal(here)} ORDER BY c.unit"""
    )
    path, missing = _path(asker, here, number_, cta_, label)
    at = f"capture_id = {literal(here)} AND launch = {number_}"
    ask = asker.ask
    return Seen(
        capture=capture, label=label, launch=number_, cta=cta_, launches=launches, ctas=ctas,
        unit=unit_word("/".join(row["unit"] for row in units) or "tick"),
        facts=ask("facts", "What was recorded", FACTS.format(here=literal(here))),
        states=ask("states", "States of each role", STATES.format(here=literal(here), launch=number_)),
        waits=ask("waits", "Waits of each role", WAITS.format(at=at)),
        overlap=ask("overlap", "Overlap of roles", OVERLAP.format(at=at)),
        iterations=ask("iterations", "Ticks an iteration, start to start", ITERATIONS.format(at=at)),
        slope=ask("slope", "Ticks an iteration, by slope", SLOPE.format(here=literal(here))),
        perturbation=ask("perturbation", "What the recording did", PERTURBATION.format(here=literal(here))),
        path=path, path_missing=missing,
        spans=ask("spans", "Spans by kind", SPANS.format(at=at, most=MOST_ROWS)),
        losses=ask("losses", "What the import kept and lost", LOSSES.format(here=literal(here))),
    )  # fmt: skip


FACTS = """
    SELECT c.completeness, c.lost_events, (SELECT COUNT(*) FROM events e WHERE e.capture_id = c.capture_id) AS stamps,
           (SELECT COUNT(*) FROM spans s WHERE s.capture_id = c.capture_id) AS spans,
           (SELECT COUNT(*) FROM lanes l WHERE l.capture_id = c.capture_id AND l.kind <> 'cta') AS lanes,
           (SELECT COUNT(*) FROM lanes l
            WHERE l.capture_id = c.capture_id AND l.completeness = 'truncated') AS truncated,
           (SELECT COUNT(*) FROM launches k WHERE k.capture_id = c.capture_id) AS launches,
           (SELECT COUNT(*) FROM orphan o WHERE o.capture_id = c.capture_id) AS orphans,
           (SELECT COUNT(*) FROM early_signal e WHERE e.capture_id = c.capture_id) AS early_signals
    FROM captures c WHERE c.capture_id = {here}
"""
STATES = """
    SELECT s.role, s.lanes_recorded AS lanes, s.ctas, s.extent, s.active, s.stall, s.blocked, s.satisfied, s.unjudged,
           s.untracked, s.active_share, s.stall_share, s.blocked_share, s.satisfied_share, s.unjudged_share,
           s.untracked_share, s.least_blocked_share, s.most_blocked_share, s.least_stall_share, s.most_stall_share,
           s.waits, s.waits_blocked, s.contains_wait
    FROM role_summary s LEFT JOIN roles r ON r.capture_id = s.capture_id AND r.role = s.role
    WHERE s.capture_id = {here} AND s.launch = {launch}
    ORDER BY r.display_order, s.role
"""
WAITS = """
    SELECT role, span, barrier, producer_role, producer_event, waits, ticks, blocked_ticks, satisfied_ticks,
           unjudged_ticks, median_ticks, max_ticks, waits_free, waits_not_blocked, waits_producer_late,
           waits_in_flight, waits_other, waits_unknown, min_slack
    FROM wait_summary WHERE {at}
    ORDER BY blocked_ticks DESC, ticks DESC, role, span, barrier, producer_role, producer_event
"""
OVERLAP = """
    SELECT set_a, set_b, COUNT(*) AS ctas, CAST(SUM(both_ticks) AS BIGINT) AS both_ticks,
           CAST(SUM(a_ticks) AS BIGINT) AS a_ticks, CAST(SUM(b_ticks) AS BIGINT) AS b_ticks,
           CAST(SUM(union_ticks) AS BIGINT) AS union_ticks,
           CAST(SUM(both_ticks) AS DOUBLE) / NULLIF(SUM(a_ticks), 0) AS of_a,
           CAST(SUM(both_ticks) AS DOUBLE) / NULLIF(SUM(b_ticks), 0) AS of_b,
           CAST(SUM(both_ticks) AS DOUBLE) / NULLIF(SUM(union_ticks), 0) AS of_union
    FROM overlap WHERE {at} AND set_kind = 'role' GROUP BY set_a, set_b ORDER BY both_ticks DESC, set_a, set_b
"""
ITERATIONS = """
    SELECT role, method, lanes, samples, steady_first, steady_end, mean_ticks, min_ticks, q1_ticks, median_ticks,
           q3_ticks, max_ticks
    FROM iteration_summary WHERE {at} ORDER BY role
"""
SLOPE = """
    SELECT s.kind, s.pass, s.grid_ctas, s.slots, s.unit, s.trips_low, s.trips_high, s.launches_low, s.launches_high,
           s.slope_ticks, s.fixed_ticks, s.capture_id
    FROM slope s JOIN captures c ON c.capture_id = s.capture_id
    WHERE c.capture_id = {here} OR c.experiment <> '' AND c.experiment = (
      SELECT experiment FROM captures WHERE capture_id = {here})
    ORDER BY s.kind, s.pass, s.grid_ctas, s.slots, s.capture_id
"""
PERTURBATION = """
    SELECT kind, pass, slots, grid_ctas, unit, method, trips_low, trips_high, launches, clean_launches, ticks,
           clean_ticks, perturbation
    FROM perturbation WHERE capture_id = {here} AND preference = 1 ORDER BY kind, pass, grid_ctas, slots
"""
SPANS = """
    SELECT role, span, state, COUNT(*) AS spans, CAST(SUM(t1 - t0) AS BIGINT) AS ticks,
           QUANTILE_DISC(t1 - t0, 0.5) AS median_ticks, MAX(t1 - t0) AS max_ticks
    FROM span WHERE {at} GROUP BY role, span, state ORDER BY ticks DESC, role, span, state LIMIT {most}
"""
LOSSES = """
    SELECT SUBSTR(name, 8) AS name, type, value FROM attributes
    WHERE capture_id = {here} AND table_name = 'captures' AND name LIKE 'import.%' ORDER BY name, value
"""


def _path(asker: Asker, here: str, launch: int, cta: int, label: str) -> tuple[Query | None, str]:
    """The critical path of one CTA by who paces it; no SQL finds it, so the command is named."""
    if cta < 0 or launch < 0:
        return None, "no CTA is recorded"
    try:
        found = critical_path(asker.bundle, capture_id=here, launch=launch, cta=cta, connection=asker.connection)
    except BadRequest as error:
        return None, error.message
    rows = summary(found).to_pylist()
    if not rows:
        return None, "the stamps of this CTA span no time"
    command = f"wsformat critical-path {asker.name} --capture {here} --launch {launch} --cta {cta} --json"
    return asker.given("path", f"Critical path of launch {launch}, CTA {cta}", rows, command), ""


def sections(seen: Seen, figures: dict[str, Block], prefix: str) -> list[Section]:
    """States, waits, overlap, iterations, each with its picture where there is one."""
    made = [
        _section(prefix, "states", "Who did what", figures, _states(seen)),
        _section(prefix, "critical-path", "Who paces the CTA", figures, _paced(seen)),
        _section(prefix, "waits", "Who waited on what", figures, _waits(seen)),
        _section(prefix, "overlap", "Who works at the same time", figures, _overlap(seen)),
        _section(prefix, "iterations", "How fast the loop is", figures, _iterations(seen)),
    ]
    if not seen.judged:
        made = [_section(prefix, "spans", "What was recorded", figures, _spans(seen))]
    if "grid" in figures:
        made.append(_section(prefix, "grid", "The grid", figures, []))
    return [section for section in made if section.blocks]


def _section(prefix: str, name: str, title: str, figures: dict[str, Block], blocks: list[Block]) -> Section:
    picture = [figures[name]] if name in figures else []
    return Section(f"{prefix}{name}", title, (*picture, *blocks))


def _states(seen: Seen) -> list[Block]:
    if not seen.states.rows:
        return [sentence("No role has stamps in this launch.")]
    several = any(row["lanes"] > 1 for row in seen.states.rows)
    columns = [Column("role", "role"), Column("lanes", "lanes", "int"), Column("extent", f"extent, {seen.unit}", "int")]
    titles = {"stall": "stall (gross)"}
    for name in ("active", "untracked", "stall", "blocked", "satisfied", "unjudged"):
        columns.append(Column(f"{name}_share", titles.get(name, name), "share"))
    if several:
        columns += [Column("least_blocked_share", "least blocked lane", "share"),
                    Column("most_blocked_share", "most blocked lane", "share")]  # fmt: skip
    note = f"Shares are of the extent. Stall = blocked + satisfied + unjudged: {BLOCKED} {UNTRACKED}"
    hidden = [row["role"] for row in seen.states.rows if row["contains_wait"]]
    if hidden:
        note += f" Active time of {', '.join(hidden)} hides a wait without stamps of its own: it is no pure work."
    return [Table(seen.states, tuple(columns), note)]


BLOCKED = (
    "blocked is what the wait cost because it was not ready; satisfied is what stamps and the test of a wait that was "
    "over already cost; unjudged has no declared edge or no signal."
)


def _paced(seen: Seen) -> list[Block]:
    if seen.path is None:
        return [sentence(f"No critical path: {seen.path_missing}.")]
    detail = tuple(n for n, row in enumerate(seen.path.rows) if row["level"] == "span")
    columns = (
        Column("role", "role"), Column("kind", "in state"), Column("span", "span"), Column("barrier", "barrier"),
        Column("verdict", "verdict"), Column("producer_role", "signalled by"), Column("ticks", seen.unit, "int"),
        Column("share", "of the path", "share"), Column("segments", "pieces", "int"),
    )  # fmt: skip
    of = f"CTA {seen.cta} of launch {seen.launch}" + (f", the median of {seen.ctas}" if seen.ctas > 1 else "")
    note = f"Backwards from the last stamp of {of}, over the signal that released each blocked wait."
    return [Table(seen.path, columns, note, places=detail)]


def _waits(seen: Seen) -> list[Block]:
    if not seen.waits.rows:
        return [sentence("No waits: no span that is declared as a wait is stamped on both sides.")]
    columns = (
        Column("role", "role"), Column("span", "span"), Column("barrier", "barrier"),
        Column("producer_role", "released by"), Column("producer_event", "its point"), Column("waits", "waits", "int"),
        Column("blocked_ticks", "blocked", "int"), Column("satisfied_ticks", "satisfied", "int"),
        Column("unjudged_ticks", "unjudged", "int"), Column("ticks", "gross", "int"),
        Column("median_ticks", "median", "int"), Column("max_ticks", "longest", "int"),
        Column("waits_producer_late", "producer late", "int"), Column("waits_in_flight", "in flight", "int"),
        Column("waits_not_blocked", "not blocked", "int"), Column("waits_other", "other", "int"),
        Column("waits_unknown", "unknown", "int"),
    )  # fmt: skip
    return [Table(seen.waits, columns, f"Lengths in {seen.unit}, summed over all lanes; the last five count waits.")]


def _overlap(seen: Seen) -> list[Block]:
    if not seen.overlap.rows:
        return [sentence("Fewer than two roles have stamps in one CTA: nothing can overlap.")]
    columns = (
        Column("set_a", "A"), Column("set_b", "B"), Column("both_ticks", f"both active, {seen.unit}", "int"),
        Column("of_a", "of A", "share"), Column("of_b", "of B", "share"), Column("of_union", "of the union", "share"),
        Column("a_ticks", "A active", "int"), Column("b_ticks", "B active", "int"),
        Column("union_ticks", "union", "int"), Column("ctas", "CTAs", "int"),
    )  # fmt: skip
    note = "A role is active while any of its lanes is. Each CTA is compared on its own clock, then summed."
    return [Table(seen.overlap, columns, note)]


def _iterations(seen: Seen) -> list[Block]:
    columns: tuple[Column, ...]
    blocks: list[Block] = []
    if seen.slope.rows:
        columns = (
            Column("kind", "launches"), Column("slope_ticks", "ticks an iteration", "mean"), Column("unit", "tick"),
            Column("fixed_ticks", "fixed cost", "int"), Column("trips_low", "trips, low", "int"),
            Column("trips_high", "trips, high", "int"), Column("launches_low", "launches, low", "int"),
            Column("launches_high", "launches, high", "int"), Column("grid_ctas", "CTAs", "count"),
        )  # fmt: skip
        blocks.append(
            Table(seen.slope, columns, "Method slope: CTA lifetime over trip count; needs no stamp in the loop.")
        )
    if seen.iterations.rows:
        columns = (
            Column("role", "role"), Column("mean_ticks", f"mean, {seen.unit}", "mean"), Column("q1_ticks", "q1", "int"),
            Column("median_ticks", "median", "int"), Column("q3_ticks", "q3", "int"),
            Column("min_ticks", "least", "int"), Column("max_ticks", "most", "int"),
            Column("samples", "iterations", "int"), Column("steady_first", "steady from", "int"),
            Column("steady_end", "up to, without", "int"),
        )  # fmt: skip
        note = "Method start to start, with stamps, steady window. The mean is the loop's speed; quartiles are spread."
        blocks.append(Table(seen.iterations, columns, note))
    if not blocks:
        blocks.append(
            sentence("No iterations: no role has a steady window, and no launches at two trip counts are here.")
        )
    return blocks


def _spans(seen: Seen) -> list[Block]:
    columns = (
        Column("role", "role"), Column("span", "span"), Column("state", "kind"), Column("spans", "spans", "int"),
        Column("ticks", f"in all, {seen.unit}", "int"), Column("median_ticks", "median", "int"),
        Column("max_ticks", "longest", "int"),
    )  # fmt: skip
    note = (
        "None of these is declared as work or as a wait, so none is called a stall. Import with -O mapping=PRESET, or "
        "declare spans in a role spec, to get states."
    )
    return [Table(seen.spans, columns, note)]


def perturbed(seen: Seen) -> tuple[Any, ...]:
    """The row of the perturbation to quote as parts of a sentence; empty when it is unknown."""
    if not seen.perturbation.rows:
        return ()
    row = seen.perturbation.rows[0]
    method = "an iteration by slope" if row["method"] == "slope" else "a CTA lifetime"
    query = seen.perturbation
    return (
        number(query, 0, "perturbation", "change"), " (", number(query, 0, "ticks", "mean"), f" {row['kind']}, ",
        number(query, 0, "clean_ticks", "mean"), f" clean {unit_word(row['unit'])} {method}; ",
        number(query, 0, "launches", "int"), " and ", number(query, 0, "clean_launches", "int"), " launches)",
    )  # fmt: skip
