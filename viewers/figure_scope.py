"""What a figure is about: one launch of one capture, in one unit; and the words that say so."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wsformat.errors import BadRequest
from wsformat.viewers.timeline_axis import records
from wsformat.viewers.timeline_layout import clean, colours
from wsformat.viewers.timeline_select import choose_capture, numbers
from wsformat.viewers.timeline_words import completeness, headline, perturbation

if TYPE_CHECKING:
    import duckdb

    from wsformat.bundle import Bundle


@dataclass(frozen=True)
class Scope:
    """The rows that a figure is made of.

    Attributes:
        bundle, connection: what is read.
        capture: its row of table ``captures``.
        launch: number of the launch.
        ctas: CTAs chosen, None for all that have stamps.
        cta_count: how many those are.
        roles: roles to show in their order of display.
        unit: unit of the ticks: cycle, ns or tick.
        paint: colour of every (role, span); (role, '') is the role's.
        title: headline; then what is shown; then completeness and perturbation.
        notes: what is not shown.
    """

    bundle: Bundle
    connection: duckdb.DuckDBPyConnection
    capture: dict[str, Any]
    launch: int
    ctas: tuple[int, ...] | None
    cta_count: int
    roles: tuple[str, ...]
    unit: str
    paint: dict[tuple[str, str], str]
    title: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def capture_id(self) -> str:
        """Id of the capture."""
        return str(self.capture["capture_id"])

    @property
    def units(self) -> str:
        """The unit in the plural."""
        return "ns" if self.unit == "ns" else f"{self.unit}s"

    def where(self, alias: str = "", *, by_role: bool = True) -> str:
        """SQL condition of the rows of a view with capture_id, launch, cta and, unless said otherwise, role."""
        dot = f"{alias}." if alias else ""
        found = f"{dot}capture_id = {literal(self.capture_id)} AND {dot}launch = {self.launch}"
        if self.ctas is not None:
            found += f" AND {dot}cta IN ({', '.join(map(str, self.ctas))})"
        if by_role:
            found += f" AND {dot}role IN ({', '.join(map(literal, self.roles)) or 'NULL'})"
        return found

    def rows(self, query: str) -> list[dict[str, Any]]:
        """Rows of a query as dicts."""
        found: list[dict[str, Any]] = records(self.connection, query)
        return found

    def colour(self, role: str) -> str:
        """Colour of a role."""
        return self.paint.get((role, "")) or next(iter(self.paint.values()))


def literal(text: str) -> str:
    """A string literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def scope_of(
    bundle: Bundle,
    connection: duckdb.DuckDBPyConnection,
    *,
    capture_id: str | None = None,
    launch: int | None = None,
    cta: int | Iterable[int] | None = None,
    roles: Iterable[str] | None = None,
) -> Scope:
    """Choose what a figure is about.

    Args:
        bundle, connection: what is read.
        capture_id: by default the first capture with stamps.
        launch: by default the first with stamps.
        cta: CTA or CTAs; by default all that have stamps.
        roles: by default all that have stamps.

    Raises:
        BadRequest: nothing with stamps, or something chosen that is not there.
    """
    notes: list[str] = []
    capture = choose_capture(connection, capture_id, notes)
    chosen = literal(str(capture["capture_id"]))
    lanes = records(
        connection,
        f"""SELECT l.launch, l.cta, l.role, COALESCE(c.unit, 'tick') AS unit, l.sm FROM lanes l
            JOIN (SELECT DISTINCT lane FROM point WHERE capture_id = {chosen}) p ON p.lane = l.lane
            LEFT JOIN clocks c ON c.capture_id = l.capture_id AND c.clock = l.clock
            WHERE l.capture_id = {chosen} ORDER BY l.launch, l.cta, l.lane""",
    )
    if not lanes:
        raise BadRequest(
            f"capture {capture['capture_id']} has no stamps and no spans, so there is nothing to draw",
            "Choose another capture; `wsformat info` lists what each one holds.",
        )
    there = sorted({row["launch"] for row in lanes})
    device = [number for number in there if number >= 0] or there
    if launch is None:
        if len(device) > 1:
            notes.append(f"Only launch {device[0]} of {len(device)} launches is shown.")
        launch = device[0]
    elif launch not in there:
        raise BadRequest(f"no stamps of launch {launch}", f"Launches with stamps: {_listed(there)}.")
    lanes = [row for row in lanes if row["launch"] == launch]
    ctas = sorted({row["cta"] for row in lanes})
    wanted = numbers(cta, "cta")
    for number in wanted or ():
        if number not in ctas:
            raise BadRequest(f"no stamps of CTA {number}", f"CTAs with stamps: {_listed(ctas)}.")
    lanes = [row for row in lanes if wanted is None or row["cta"] in wanted]
    order = [
        row["role"]
        for row in records(
            connection, f"SELECT role FROM roles WHERE capture_id = {chosen} ORDER BY display_order, role_index, role"
        )
    ]
    named = {row["role"] for row in lanes} - {""}
    shown = [role for role in order if role in named] + sorted(named - set(order))
    asked = None if roles is None else [roles] if isinstance(roles, str) else list(roles)
    for name in asked or ():
        if name not in named:
            raise BadRequest(f"no stamps of role {name!r}", f"Roles with stamps: {', '.join(shown) or 'none'}.")
    shown = [role for role in shown if asked is None or role in asked]
    lanes = [row for row in lanes if row["role"] in shown]
    if not lanes:
        raise BadRequest("no lane with stamps plays a role, so there is nothing to draw by role")
    units = sorted({row["unit"] for row in lanes})
    if len(units) > 1:
        raise BadRequest(
            f"the roles run on clocks of different units ({', '.join(units)}): their ticks cannot be added",
            "Choose roles or CTAs of one unit.",
        )
    count = len(wanted) if wanted else len(ctas)
    sms = {row["sm"] for row in lanes if row["sm"] >= 0}
    where = [f"launch {launch}" if launch >= 0 else "host"]
    where += [f"CTA {lanes[0]['cta']}" if count == 1 else f"{count} CTAs"] if lanes[0]["cta"] >= 0 else []
    where += [f"SM {sms.pop()}"] if len(sms) == 1 else []
    where += [f"roles {', '.join(clean(role, 20) for role in shown)}"] if asked is not None else []
    launches = records(connection, f"SELECT * FROM launches WHERE capture_id = {chosen} AND launch = {launch}")
    facts = [clean(capture.get(name) or "", 40) for name in ("device", "arch", "dtype", "shape", "version")]
    return Scope(
        bundle,
        connection,
        capture,
        launch,
        None if wanted is None else tuple(wanted),
        count,
        tuple(shown),
        units[0],
        colours(
            records(
                connection, f"SELECT role, colour FROM roles WHERE capture_id = {chosen} ORDER BY display_order, role"
            ),
            records(
                connection,
                f"SELECT role, span, state, loop, begin_event, colour FROM span_types WHERE capture_id = {chosen}",
            ),
        ),
        (
            headline(capture, {row["kernel"] for row in launches}),
            " · ".join([facts[0] or "device unknown", *(fact for fact in facts[1:] if fact), *where]),
            f"{completeness(capture)} · {perturbation(connection, str(capture['capture_id']), launch)}",
        ),
        tuple(notes),
    )


def _listed(found: list[int]) -> str:
    if len(found) > 12:
        return f"{len(found)} from {found[0]} to {found[-1]}"
    return ", ".join(map(str, found)) or "none"
