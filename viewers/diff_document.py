"""A comparison as a page: the verdict, then speed, path, waits, states and overlap side by side."""

from __future__ import annotations

from typing import Any

from wsformat.errors import BadRequest, MissingDependency
from wsformat.version import __version__
from wsformat.viewers.diff import FASTER, NOTHING, OPEN, SAME, Diff
from wsformat.viewers.diff_figure import diff_figure
from wsformat.viewers.diff_read import Side
from wsformat.viewers.report_capture import perturbed
from wsformat.viewers.report_model import (
    Block,
    Column,
    Document,
    Figure,
    Note,
    Query,
    Section,
    Table,
    number,
    sentence,
)

SURE = (
    "More than noise: the 99 % interval of the change, by a bootstrap over the launches with stamps, leaves out none."
)
LEVELS = {FASTER: "ok", SAME: "ok", OPEN: "warn", NOTHING: "warn"}


def document(made: Diff, names: tuple[str, str], *, pictures: bool = True, options: str = "") -> Document:
    """The comparison as a page.

    Args:
        made: the comparison.
        names: of the bundles, for commands.
        pictures: draw both timelines.
        options: that the command needs to say the same, such as ``--force``.
    """
    command = f"wsformat diff {names[0]} {names[1]}{options} --json"
    told = made.to_json()
    queries = {**made.a.asker.found, **made.b.asker.found}

    def table(name: str, title: str, columns: list[Column], note: str = "") -> Table:
        rows = tuple(told[name])
        found = tuple(dict.fromkeys(key for row in rows for key in row))
        queries[name] = Query(name, title, found, rows, command=command, at=(name,))
        return Table(queries[name], tuple(columns), note)

    sections = [
        Section("speed", "How fast", _speed(made, table)),
        *([Section("timelines", "Both timelines", _timelines(made))] if pictures else []),
        Section("path", "What the critical path spends", _path(made, table)),
        Section("waits", "Who is blocked on what", _waits(table)),
        Section("states", "States of each role", _states(table)),
        Section("overlap", "Who works at the same time", _overlap(table)),
        Section("sides", "Each version by itself", _sides(made, names)),
    ]
    level = LEVELS.get(made.outcome, "bad")
    banner = [Note("Outcome", sentence(f"{made.b.name} against {made.a.name}: {made.outcome}"), level)]
    banner += [_record(side, letter) for side, letter in ((made.a, "A"), (made.b, "B"))]
    banner += [Note("Take care", sentence(warning), "warn") for warning in made.warnings]
    return Document(
        title=f"{made.a.name} and {made.b.name}",
        lead=tuple(f"{letter}: {_lead(side)}" for letter, side in (("A", made.a), ("B", made.b))),
        headline=(sentence(made.headline),), banner=tuple(banner), sections=tuple(sections), queries=queries,
        run=f"wsformat query {names[0]} - (A) or wsformat query {names[1]} - (B)",
        notes=(f"page by wsformat {__version__}",),
    )  # fmt: skip


def _lead(side: Side) -> str:
    facts = [side.name, *(side.capture[name] for name in ("kernel", "version", "device", "dtype", "shape"))]
    return " · ".join(str(fact) for fact in dict.fromkeys(facts) if fact)


def _record(side: Side, letter: str) -> Note:
    """Completeness and perturbation of one version."""
    state = side.capture["completeness"] or "unknown"
    known = perturbed(side.seen) if side.seen is not None else ()
    parts: list[Any] = [f"record {state}; perturbation ", *(known or ["unknown"])]
    return Note(f"{letter}: {side.name}", sentence(parts), "ok" if state == "complete" and known else "warn")


def _speed(made: Diff, table: Any) -> tuple[Block, ...]:
    if not made.speeds:
        return (sentence("The versions have no method in common, so no speed is compared."),)
    columns = [
        Column("method", "method"), Column("kind", "launches"), Column("pass", "pass", "nth"),
        Column("role", "role"), Column("a", "A", "mean"),
        Column("b", "B", "mean"), Column("change", "change", "change"), Column("low", "99 % from", "change"),
        Column("high", "to", "change"), Column("launches", "repeats at least", "int"),
        Column("beyond", "more than noise", "bool"), Column("why", "if unknown, why"),
    ]  # fmt: skip
    note = (
        "Only like is compared with like; the first line decides. The interval is a bootstrap over launches of one "
        "recording each; it does not know what changes from one recording to the next."
    )
    return (table("speeds", "Speed by every method that both have", columns, note),)


def _path(made: Diff, table: Any) -> tuple[Block, ...]:
    if not made.path:
        return (sentence("The critical path of one of them is unknown."),)
    columns = [
        Column("role", "role"), Column("kind", "in state"), Column("span", "span"), Column("barrier", "barrier"),
        Column("a", "A", "mean"), Column("b", "B", "mean"), Column("change", "change", "gap"),
    ]  # fmt: skip
    note = "Ticks an iteration of one CTA, what moved most first. The pieces fill its time, so the changes add up."
    return (table("path", "Critical path, side by side", columns, note),)


def _waits(table: Any) -> tuple[Block, ...]:
    columns = [Column("role", "role"), Column("span", "span"), Column("barrier", "barrier")]
    for name in ("blocked", "satisfied", "unjudged"):
        columns += [Column(f"{name}_a", f"{name} A", "mean"), Column(f"{name}_b", f"{name} B", "mean"),
                    Column(f"{name}_change", "change", "gap")]  # fmt: skip
    columns.append(Column("more_than_noise", "more than noise"))
    made = table("waits", "Waits, side by side", columns, f"Ticks an iteration of one lane. {SURE}")
    return (made,) if made.query.rows else (sentence("Neither has waits."),)


def _states(table: Any) -> tuple[Block, ...]:
    columns = [Column("role", "role")]
    for name in ("active", "untracked", "blocked", "satisfied"):
        columns += [Column(f"{name}_a", f"{name} A", "mean"), Column(f"{name}_b", f"{name} B", "mean"),
                    Column(f"{name}_change", "change", "gap")]  # fmt: skip
    columns.append(Column("more_than_noise", "more than noise"))
    note = f"Ticks an iteration of one lane, over its whole life. Untracked means not instrumented, never idle. {SURE}"
    made = table("states", "States, side by side", columns, note)
    shares = [Column("role", "role")]
    for name in ("active", "untracked", "stall", "blocked"):
        shares += [Column(f"{name}_share_a", f"{name} A", "share"), Column(f"{name}_share_b", f"{name} B", "share")]
    return (made, Table(made.query, tuple(shares), "The same as shares of the extent.")) if made.query.rows else (
        sentence("Neither has states."),
    )  # fmt: skip


def _overlap(table: Any) -> tuple[Block, ...]:
    columns = [Column("set_a", "role"), Column("set_b", "and role")]
    for name, title in (("of_a", "of the first"), ("of_b", "of the second"), ("of_union", "of the union")):
        columns += [Column(f"{name}_before", f"{title}, A", "share"), Column(f"{name}_after", f"{title}, B", "share")]
    made = table("overlap", "Overlap, side by side", columns, "Active at the same time, with each denominator.")
    return (made,) if made.query.rows else (sentence("Neither has two roles to compare."),)


def _sides(made: Diff, names: tuple[str, str]) -> tuple[Block, ...]:
    """The rows of each version that the comparison was made of, with the SQL that gives them."""
    blocks: list[Block] = []
    for letter, side, name in (("A", made.a, names[0]), ("B", made.b, names[1])):
        if side.seen is None:
            blocks.append(sentence(f"{letter} has no timeline."))
            continue
        seen = side.seen
        said = f" stamps; {side.iterations:,} iterations of launch {seen.launch}. Its SQL runs on {name}."
        blocks.append(sentence(f"{letter}, {side.name}: ", number(seen.facts, 0, "stamps", "int"), said))
        columns = (
            Column("role", "role"), Column("lanes", "lanes", "int"), Column("extent", "extent", "int"),
            Column("active", "active", "int"), Column("untracked", "untracked", "int"),
            Column("blocked", "blocked", "int"), Column("satisfied", "satisfied", "int"),
            Column("unjudged", "unjudged", "int"),
        )  # fmt: skip
        blocks.append(Table(seen.states, columns))
        columns_ = (
            Column("role", "role"), Column("barrier", "barrier"), Column("producer_role", "released by"),
            Column("waits", "waits", "int"), Column("blocked_ticks", "blocked", "int"),
            Column("satisfied_ticks", "satisfied", "int"), Column("ticks", "gross", "int"),
        )  # fmt: skip
        blocks.append(Table(seen.waits, columns_))
    return tuple(blocks)


def _timelines(made: Diff) -> tuple[Block, ...]:
    """Both timelines from the same iteration on, in one picture."""
    try:
        figure = diff_figure(made)
    except (BadRequest, MissingDependency) as error:
        return (Figure("fig-timelines", "No picture", f"No picture: {error.message}.", ""),)
    if figure is None:
        return (sentence("The timelines are not drawn: they have no role with iterations in common."),)
    fragment = figure.fragment(level=3, heading=False, key="fig-timelines")
    return (Figure("fig-timelines", figure.title[0], figure.caption, fragment, dict(figure.sql), tuple(figure.notes)),)
