"""What a timeline shows: capture, launch, CTAs and lanes, and the axis that they share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from wsformat.errors import BadRequest
from wsformat.viewers.timeline_axis import Axis, Group, Row, records, shared_axis

if TYPE_CHECKING:
    import duckdb

MAX_ROWS = 64
"""Rows drawn at most; more than that nobody can tell apart."""
WHOLE_LAUNCH_ROWS = 16
"""A launch with at most this many rows is drawn whole by default; of a larger one the first CTA."""


@dataclass(frozen=True)
class Selection:
    """What is drawn, before the window is cut."""

    capture: dict[str, Any]
    launches: dict[int, dict[str, Any]]
    groups: tuple[Group, ...]
    axis: Axis
    notes: tuple[str, ...]

    @property
    def rows(self) -> list[Row]:
        """All rows from top to bottom."""
        return [row for group in self.groups for row in group.rows]

    @property
    def lanes(self) -> list[int]:
        """Numbers of the lanes that have points."""
        return [row.lane for row in self.rows if row.t_first is not None]


def select(
    connection: duckdb.DuckDBPyConnection,
    *,
    capture_id: str | None = None,
    launch: int | Iterable[int] | None = None,
    cta: int | Iterable[int] | None = None,
    roles: Iterable[str] | None = None,
    whole: bool = False,
) -> Selection:
    """Choose the rows of a timeline.

    Args:
        connection: to the bundle.
        capture_id, launch, cta, roles: what to draw; None for the defaults.
        whole: by default all CTAs, however many rows that makes.

    Raises:
        BadRequest: nothing to draw, or a capture, launch, CTA or role that is not there.
    """
    notes: list[str] = []
    capture = choose_capture(connection, capture_id, notes)
    chosen = capture["capture_id"]
    lanes = records(connection, "SELECT * FROM lanes WHERE capture_id = ? ORDER BY lane", [chosen])
    stamped = {
        row["lane"]
        for row in records(
            connection,
            "SELECT DISTINCT lane FROM events WHERE capture_id = $1 "
            "UNION SELECT lane FROM spans WHERE capture_id = $1 UNION SELECT end_lane FROM spans WHERE capture_id = $1",
            [chosen],
        )
    }
    if not stamped:
        raise BadRequest(
            f"capture {chosen} has no stamps and no spans, so there is no timeline to draw",
            "Choose another capture; `wsformat info` lists what each one holds.",
        )
    lanes = _choose_launch(lanes, stamped, numbers(launch, "launch"), notes)
    lanes = _choose_cta(lanes, stamped, numbers(cta, "cta"), notes, whole=whole)
    order = records(
        connection, "SELECT role FROM roles WHERE capture_id = ? ORDER BY display_order, role_index, role", [chosen]
    )
    declared = [row["role"] for row in order]
    wanted = None if roles is None else [roles] if isinstance(roles, str) else list(roles)
    rows = _rows(connection, chosen, lanes, stamped, notes)
    groups = _groups(rows, declared)
    # The axis comes before the choice of roles, so that a moment has the same place whatever is left out.
    groups, axis = shared_axis(connection, chosen, groups, notes)
    if wanted is not None:
        groups = _keep_roles(groups, wanted, {*declared, *(row["role"] for row in lanes)} - {""})
    groups = groups if whole else _capped(groups, notes)
    if not any(row.t_first is not None for group in groups for row in group.rows):
        raise BadRequest("nothing to draw: the chosen roles and CTAs have no stamps", "Choose others, or all of them.")
    launches = records(connection, "SELECT * FROM launches WHERE capture_id = ?", [chosen])
    return Selection(capture, {row["launch"]: row for row in launches}, groups, axis, tuple(notes))


def numbers(value: int | Iterable[int] | None, what: str) -> list[int] | None:
    """One number or several as a list; None stays None."""
    if value is None:
        return None
    numbers = [value] if isinstance(value, int) else list(value)
    if not numbers:
        raise BadRequest(f"no {what} chosen: the list is empty", f"Leave {what} out for the default.")
    return numbers


def choose_capture(connection: duckdb.DuckDBPyConnection, capture_id: str | None, notes: list[str]) -> dict[str, Any]:
    """The capture asked for, else the first with stamps; its row of table ``captures``.

    Raises:
        BadRequest: it is not there, or nothing has stamps.
    """
    captures = records(connection, "SELECT * FROM captures ORDER BY capture_id")
    known = {row["capture_id"]: row for row in captures}
    for row in records(connection, "SELECT DISTINCT capture_id FROM lanes ORDER BY capture_id"):
        known.setdefault(row["capture_id"], {"capture_id": row["capture_id"]})
    if capture_id is not None:
        if capture_id not in known:
            raise BadRequest(f"no capture {capture_id!r} in this bundle", f"Captures: {', '.join(known) or 'none'}.")
        return dict(known[capture_id])
    drawable = [
        row["capture_id"]
        for row in records(
            connection,
            "SELECT capture_id FROM events UNION SELECT capture_id FROM spans ORDER BY capture_id",
        )
    ]
    if not drawable:
        raise BadRequest(
            "no stamps and no spans in this bundle, so there is no timeline to draw",
            "A timeline needs a capture of kind stamped or traced; `wsformat info` lists what is there.",
        )
    if len(drawable) > 1:
        notes.append(f"Only capture {drawable[0]} of {len(drawable)} captures is shown.")
    return dict(known.get(drawable[0], {"capture_id": drawable[0]}))


def _choose_launch(
    lanes: list[dict[str, Any]], stamped: set[int], wanted: list[int] | None, notes: list[str]
) -> list[dict[str, Any]]:
    there = sorted({row["launch"] for row in lanes if row["lane"] in stamped})
    if wanted is None:
        device = [number for number in there if number >= 0] or there
        if len(device) > 1:
            notes.append(f"Only launch {device[0]} of {len(device)} launches is shown.")
        wanted = device[:1]
    for number in wanted:
        if number not in there:
            raise BadRequest(f"no stamps of launch {number}", f"Launches with stamps: {_listed(there)}.")
    return [row for row in lanes if row["launch"] in wanted]


def _choose_cta(
    lanes: list[dict[str, Any]], stamped: set[int], wanted: list[int] | None, notes: list[str], *, whole: bool
) -> list[dict[str, Any]]:
    there = sorted({row["cta"] for row in lanes if row["lane"] in stamped})
    if wanted is None:
        if not whole and len(there) > 1 and sum(row["lane"] in stamped for row in lanes) > WHOLE_LAUNCH_ROWS:
            notes.append(f"Only CTA {there[0]} of {len(there)} CTAs is shown.")
            wanted = there[:1]
        else:
            wanted = there
    for number in wanted:
        if number not in there:
            raise BadRequest(f"no stamps of CTA {number}", f"CTAs with stamps: {_listed(there)}.")
    return [row for row in lanes if row["cta"] in wanted]


def _listed(numbers: Sequence[int]) -> str:
    if len(numbers) > 12:
        return f"{len(numbers)} from {numbers[0]} to {numbers[-1]}"
    return ", ".join(map(str, numbers)) or "none"


def _rows(
    connection: duckdb.DuckDBPyConnection,
    capture_id: str,
    lanes: list[dict[str, Any]],
    stamped: set[int],
    notes: list[str],
) -> list[Row]:
    silent = [row for row in lanes if row["lane"] not in stamped and not row["role"] and row["kind"] != "cta"]
    if silent:
        notes.append(f"{len(silent)} recorders without a role wrote no stamps and are not drawn.")
    drawn = [row for row in lanes if row["lane"] in stamped or row["role"]]
    numbers = [row["lane"] for row in drawn if row["lane"] in stamped]
    ends = {
        row["lane"]: row
        for row in records(
            connection,
            f"SELECT lane, t_first, t_last FROM recorded_window WHERE capture_id = ? AND lane IN ({in_list(numbers)})",
            [capture_id],
        )
    }
    rows = []
    for row in drawn:
        end = ends.get(row["lane"], {})
        rows.append(
            Row(
                **{k: row[k] for k in ("lane", "launch", "cta", "warp", "sm", "role", "name", "kind", "clock")},
                completeness=row["completeness"],
                lost=row["records_lost"],
                t_first=end.get("t_first"),
                t_last=end.get("t_last"),
            )
        )
    return rows


def in_list(numbers: Iterable[int]) -> str:
    """Numbers for an SQL IN list; one that matches nothing when there are none."""
    return ", ".join(str(int(number)) for number in numbers) or "-2147483648"


def _keep_roles(groups: tuple[Group, ...], wanted: list[str], known: set[str]) -> tuple[Group, ...]:
    for name in wanted:
        if name not in known:
            raise BadRequest(f"no role {name!r} here", f"Roles: {', '.join(sorted(known)) or 'none'}.")
    kept = [replace(group, rows=tuple(row for row in group.rows if row.role in wanted)) for group in groups]
    return tuple(group for group in kept if group.rows)


def _groups(rows: list[Row], declared: list[str]) -> tuple[Group, ...]:
    rank = {role: place for place, role in enumerate(declared)}
    parts: dict[tuple[int, int, int], list[Row]] = {}
    clocks: dict[tuple[int, int], int] = {}
    for row in sorted(rows, key=lambda r: r.t_first is None):
        clock = row.clock if row.t_first is not None else clocks.get((row.launch, row.cta), row.clock)
        clocks.setdefault((row.launch, row.cta), clock)
        parts.setdefault((row.launch, row.cta, clock), []).append(row)
    groups = []
    for (launch, cta, clock), part in sorted(parts.items()):
        present = {row.role for row in part}
        if launch >= 0:
            part += [
                Row(-1, launch, cta, -1, -1, role, "", "", clock, "")
                for role in declared
                if role not in present and not any(r.role == role for r in rows if (r.launch, r.cta) == (launch, cta))
            ]
        part.sort(key=lambda row: (rank.get(row.role, len(rank)), row.role, row.warp, row.lane))
        groups.append(Group(launch, cta, clock, tuple(part)))
    return tuple(groups)


def _capped(groups: tuple[Group, ...], notes: list[str]) -> tuple[Group, ...]:
    total = sum(len(group.rows) for group in groups)
    if total <= MAX_ROWS:
        return groups
    kept: list[Group] = []
    for group in groups:
        room = MAX_ROWS - sum(len(k.rows) for k in kept)
        if kept and len(group.rows) > room:
            break
        kept.append(replace(group, rows=group.rows[:room]))
    notes.append(f"Only the first {sum(len(k.rows) for k in kept)} of {total} rows are shown.")
    return tuple(kept)


def iteration_range(value: str | tuple[int, int] | Sequence[int] | None) -> tuple[int, int] | None:
    """``A:B`` or (A, B) as a half-open range of iterations.

    Raises:
        BadRequest: anything else, or an empty range.
    """
    if value is None:
        return None
    parts: Sequence[Any] = value.split(":") if isinstance(value, str) else list(value)
    try:
        first, end = (int(part) for part in parts)
    except (ValueError, TypeError) as error:
        raise BadRequest(f"iterations {value!r}: expected A:B, such as 24:30") from error
    if first < 0 or end <= first:
        raise BadRequest(f"iterations {first}:{end}: the range is empty", "A:B counts from A up to, not including, B.")
    return first, end
