"""Rows of a role spec made whole: defaults filled in, "*" and lists of roles resolved, names checked.

Nothing here raises: every problem is listed with its path, and rows that the JSON Schema refused are left out.
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wsformat.rolespec_schema import ROLE_FIELDS, SECTIONS
from wsformat.tables import tables

Row = dict[str, Any]
MAIN_LOOP = "main"
ONCE = "once"

POINTS = {
    "spans": (("role", "begin_event"), ("role", "end_event")),
    "dependencies": (("producer_role", "producer_event"), ("consumer_role", "consumer_event")),
}
"""Fields of a row that together name a point: a role and an event of it."""


@dataclass
class Reading:
    """What is known while a role spec is read.

    Attributes:
        data: its JSON values.
        bad: rows (section, position) that the JSON Schema refused.
        sizes: roles and events of the buffer, None when nobody says it.
        roles: names, in the order of the spec.
        events: declared events by role and name.
        problems: found so far, each with its path.
    """

    data: Mapping[str, Any]
    bad: set[tuple[str, int]]
    sizes: tuple[int, int] | None
    roles: Sequence[str] = ()
    events: Mapping[tuple[str, str], Row] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def all_known(self, *sections: str) -> bool:
        """Whether no row of these sections is missing, so that a name that they do not have is wrong."""
        return not any(section in sections for section, _ in self.bad)

    def rows(self, section: str) -> Iterator[tuple[str, Row]]:
        """Path and content of each usable row, without comments."""
        rows = self.data.get(section, [])
        for position, row in enumerate(rows if isinstance(rows, list) else []):
            if (section, position) not in self.bad:
                yield f"$.{section}[{position}]", {k: v for k, v in row.items() if not k.startswith("_")}

    def named_roles(self, value: Any, path: str) -> list[str]:
        """Roles that a field names, in the order of the spec for "*"."""
        if value == "*":
            return list(self.roles)
        wanted = value if isinstance(value, list) else [value]
        if self.all_known("roles"):
            for name in wanted:
                if name not in self.roles:
                    self.problems.append(f"{path}: {_unknown('role', name, self.roles)}")
        return [name for name in wanted if name in self.roles]

    def check_event(self, role: str, event: str, path: str) -> None:
        """List an event that its role does not declare."""
        if (role, event) not in self.events and self.all_known("roles", "events"):
            known = [e for r, e in self.events if r == role]
            self.problems.append(f"{path}: {_unknown(f'event of role {role!r}', event, known)}")


def _unknown(what: str, name: str, names: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, names, n=1)
    return f"unknown {what} {name!r}" + (f", did you mean {close[0]!r}?" if close else f"; known: {', '.join(names)}")


def _defaults(section: str) -> Row:
    return {c.name: c.default for c in tables()[SECTIONS[section]].columns if c.name != "capture_id"}


def roles(reading: Reading) -> list[Row]:
    """The rows of ``roles``; fills in the names of the reading."""
    rows: list[Row] = []
    seen: dict[str, str] = {}
    indices: dict[int, str] = {}
    for path, row in reading.rows("roles"):
        position = int(path[len("$.roles[") : -1])
        full = {
            **_defaults("roles"),
            "kind": "other",
            "lane_kind": "thread",
            "warp": -1,
            "role_index": position,
            "display_order": position,
            **row,
        }
        name, index = full["role"], full["role_index"]
        if name in seen:
            reading.problems.append(f"{path}.role: {name!r} is there twice, first in {seen[name]}")
        elif index in indices:
            reading.problems.append(f"{path}.role_index: {index} is already {indices[index]!r}")
        if reading.sizes is not None and index >= reading.sizes[0]:
            reading.problems.append(
                f"{path}.role_index: {index} is out of range, the layout has {reading.sizes[0]} roles"
            )
        seen.setdefault(name, path)
        indices.setdefault(index, name)
        rows.append(full)
    reading.roles = [row["role"] for row in rows]
    return rows


def events(reading: Reading) -> list[Row]:
    """The rows of ``events``, one for each role; fills in the events of the reading."""
    rows: list[Row] = []
    seen: set[tuple[str, str]] = set()
    indices: dict[tuple[str, int], str] = {}
    for path, row in reading.rows("events"):
        if reading.sizes is not None and row["event_index"] >= reading.sizes[1]:
            reading.problems.append(
                f"{path}.event_index: {row['event_index']} is out of range, the layout has {reading.sizes[1]} events"
            )
        for role in reading.named_roles(row["role"], f"{path}.role"):
            full = {**_defaults("events"), "loop": MAIN_LOOP, **row, "role": role}
            key, slot = (role, full["event"]), (role, full["event_index"])
            if key in seen:
                reading.problems.append(f"{path}.event: role {role!r} has {full['event']!r} twice")
            elif slot in indices:
                reading.problems.append(f"{path}.event_index: {slot[1]} of role {role!r} is already {indices[slot]!r}")
            seen.add(key)
            indices.setdefault(slot, full["event"])
            rows.append(full)
    reading.events = {(row["role"], row["event"]): row for row in rows}
    return rows


def spans(reading: Reading) -> list[Row]:
    """The rows of ``spans``, one for each role."""

    def whole(row: Row, path: str) -> Row:
        begin = reading.events.get((row["role"], row["begin_event"]))
        return {**_defaults("spans"), "loop": begin["loop"] if begin else MAIN_LOOP, **row}

    def check(row: Row, path: str) -> None:
        if row["begin_event"] == row["end_event"]:
            reading.problems.append(f"{path}: begins and ends with the same event {row['begin_event']!r}")

    return _between_points(
        reading, "spans", check, whole, lambda path, row: f"{path}.span: role {row['role']!r} has {row['span']!r} twice"
    )


def dependencies(reading: Reading) -> list[Row]:
    """The rows of ``dependencies``, one for each pair of roles."""

    def whole(row: Row, path: str) -> Row:
        step = 1 if "iteration_lag" in row else 0
        steps = {"iteration_lag": 0, "producer_step": step, "consumer_step": step}
        return {**_defaults("dependencies"), **steps, "completion": "signal", "scope": "cta", **row}

    def check(row: Row, path: str) -> None:
        full = whole(row, path)
        if (full["producer_step"] == 0) != (full["consumer_step"] == 0):
            reading.problems.append(
                f"{path}: producer_step and consumer_step must both be 0 (unknown) or both be positive"
            )

    return _between_points(
        reading, "dependencies", check, whole, lambda path, row: f"{path}: the same edge is there twice"
    )


def _between_points(
    reading: Reading,
    section: str,
    check: Callable[[Row, str], None],
    whole: Callable[[Row, str], Row],
    twice: Callable[[str, Row], str],
) -> list[Row]:
    """Rows of a section whose rows lie between two points, one for each role or pair of roles that a row names.

    Args:
        reading: names that are known.
        section: key of :data:`POINTS`.
        check: lists what is wrong with a row as given.
        whole: fills the defaults of a row whose role fields hold one role each.
        twice: what to say of a row whose key was there before.
    """
    rows: list[Row] = []
    seen: set[tuple[Any, ...]] = set()
    key = [name for name in tables()[SECTIONS[section]].key if name != "capture_id"]
    for path, row in reading.rows(section):
        check(row, path)
        named = {name: reading.named_roles(row[name], f"{path}.{name}") for name in ROLE_FIELDS[section]}
        for role_field, event_field in POINTS[section]:
            for role in named[role_field]:
                reading.check_event(role, row[event_field], f"{path}.{event_field}")
        for chosen in itertools.product(*named.values()):
            full = whole({**row, **dict(zip(named, chosen, strict=True))}, path)
            identity = tuple(full[name] for name in key)
            if identity in seen:
                reading.problems.append(twice(path, full))
            seen.add(identity)
            rows.append(full)
    return rows


def fill_iteration_events(reading: Reading, role_rows: Sequence[Row], span_rows: Sequence[Row]) -> None:
    """Say for each role which stamp starts an iteration: as given, else found."""
    for position, row in enumerate(role_rows):
        if row["iteration_event"]:
            reading.check_event(row["role"], row["iteration_event"], f"$.roles[{position}].iteration_event")
        else:
            row["iteration_event"] = _iteration_event(row["role"], list(reading.events.values()), span_rows)


def _iteration_event(role: str, event_rows: Sequence[Row], span_rows: Sequence[Row]) -> str:
    for span in span_rows:
        if span["role"] == role and span["state"] == "stall" and span["loop"] != ONCE:
            return str(span["begin_event"])
    looped = [e for e in event_rows if e["role"] == role and e["loop"] != ONCE]
    return str(min(looped, key=lambda e: e["event_index"])["event"]) if looped else ""
