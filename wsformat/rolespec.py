"""The role spec: what each slot of a stamp buffer means.

A role spec is JSON. Its arrays ``roles``, ``events``, ``spans`` and ``dependencies`` hold rows of the tables
roles, event_types, span_types and dependencies; ``schema/rolespec.schema.json`` is generated from those tables.

What a row leaves out:

* ``role_index``, ``display_order``: the position in ``roles``; ``kind``: other; ``lane_kind``: thread.
* ``loop`` of an event: main; of a span: that of its begin event.
* ``iteration_event``: the begin of the role's first stall in a loop, else its first event in a loop.
* ``iteration_lag``: unknown (``producer_step`` 0). With a lag, the steps are 1. ``completion``: signal; ``scope``: cta.
* everything else: the default of its column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from wsformat import rolespec_rows
from wsformat.errors import BadRequest, MalformedInput
from wsformat.iteration_window import WHOLE, IterationWindow, parse_window
from wsformat.manifest import read_json
from wsformat.rolespec_rows import MAIN_LOOP, ONCE, Row
from wsformat.rolespec_schema import SECTIONS, VERSION, VERSION_KEY, is_newer, known_part
from wsformat.tables import read_schema_json, tables

__all__ = ["MAIN_LOOP", "ONCE", "Layout", "RoleSpec", "Row", "is_rolespec", "load", "parse"]


@dataclass(frozen=True)
class Layout:
    """Size of the buffer of one CTA; slot = (role * events + event) * iterations + iteration."""

    roles: int
    events: int
    iterations: int

    @property
    def slots(self) -> int:
        """Slots of one CTA."""
        return self.roles * self.events * self.iterations

    def __str__(self) -> str:
        return f"{self.roles},{self.events},{self.iterations}"


@dataclass(frozen=True)
class RoleSpec:
    """A checked role spec with every default filled in.

    Attributes:
        roles, events, spans, dependencies: complete rows of their tables, without ``capture_id``;
            a role also has ``lane_kind`` and ``warp``.
        layout: size of the buffer, when the spec says it.
        window: iterations that the slots hold.
        capture, launch, clock: facts, as columns of captures, launches and clocks.
        ignored: paths that a newer minor version of the role spec added and this library does not know.
    """

    roles: tuple[Row, ...]
    events: tuple[Row, ...]
    spans: tuple[Row, ...] = ()
    dependencies: tuple[Row, ...] = ()
    layout: Layout | None = None
    window: IterationWindow = WHOLE
    capture: Mapping[str, Any] = field(default_factory=dict)
    launch: Mapping[str, Any] = field(default_factory=dict)
    clock: Mapping[str, Any] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The spec as JSON values that :func:`parse` reads back to an equal spec."""
        data: dict[str, Any] = {VERSION_KEY: VERSION}
        if self.layout is not None:
            data["layout"] = {
                "roles": self.layout.roles,
                "events": self.layout.events,
                "iterations": self.layout.iterations,
            }
        if not self.window.whole:
            data["window"] = self.window.to_json()
        for name in ("capture", "launch", "clock"):
            if getattr(self, name):
                data[name] = dict(getattr(self, name))
        for section in SECTIONS:
            data[section] = [dict(row) for row in getattr(self, section)]
        # An unknown lag is left out: whoever fills it in then says the steps too, which are 1 with a lag.
        for row in data.get("dependencies", ()):
            if row["producer_step"] == 0:
                for name in ("iteration_lag", "producer_step", "consumer_step"):
                    del row[name]
        return data

    def table_rows(self, capture_id: str) -> dict[str, list[Row]]:
        """Rows of the tables roles, event_types, span_types and dependencies of a capture."""
        return {
            table: [
                {"capture_id": capture_id, **{k: v for k, v in row.items() if k in tables()[table].names}}
                for row in getattr(self, section)
            ]
            for section, table in SECTIONS.items()
        }

    def with_rows(self, **sections: Sequence[Row]) -> RoleSpec:
        """A spec with these arrays replaced; rows must be complete."""
        changed: dict[str, Any] = {name: tuple(rows) for name, rows in sections.items()}
        return replace(self, **changed)


def load(path: Path) -> RoleSpec:
    """Read a role spec from a file.

    Raises:
        MalformedInput: it cannot be read, is not JSON, or is no role spec; lists every problem.
    """
    return parse(read_json(path), str(path))


def is_rolespec(data: object) -> bool:
    """Whether JSON values say that they are a role spec of ours, of whatever version."""
    return isinstance(data, dict) and VERSION_KEY in data


def parse(data: Any, where: str, layout: Layout | None = None) -> RoleSpec:
    """Check a role spec and fill its defaults.

    Args:
        data: JSON values.
        where: what to call it in errors.
        layout: size of the buffer, when the spec does not say it.

    Raises:
        MalformedInput: with every problem and its path.
        UnsupportedVersion: another major version.
    """
    ignored: list[str] = []
    if is_newer(data, where):
        data = known_part(data, ignored)
    problems, bad = _structure(data)
    spec = None
    if isinstance(data, dict):
        spec, more = _expand(data, bad, layout)
        problems += more
    if problems or spec is None:
        count = f"{len(problems)} problems: " if len(problems) > 1 else ""
        raise MalformedInput(
            f"{where}: {count}{'; '.join(problems)}", "The form is described in schema/rolespec.schema.json."
        )
    return replace(spec, ignored=tuple(ignored))


@cache
def _validator() -> Draft202012Validator:
    return Draft202012Validator(read_schema_json("rolespec.schema.json"))


def _structure(data: Any) -> tuple[list[str], set[tuple[str, int]]]:
    """Problems that the JSON Schema finds, and the rows (section, position) that have one."""
    problems, bad = [], set()
    for error in sorted(_validator().iter_errors(data), key=lambda e: [str(part) for part in e.absolute_path]):
        path = list(error.absolute_path)
        text = error.message
        if error.validator == "anyOf":
            text = f'{str(error.instance)[:60]!r} is no role, list of roles or "*"'
        problems.append(f"{_path(path)}: {text[:200]}")
        if path and path[0] in SECTIONS:
            section, row = str(path[0]), path[1] if len(path) > 1 else None
            whole = len(data[section]) if isinstance(data.get(section), list) else 0
            bad |= {(section, i) for i in (range(whole) if row is None else [int(row)])}
    return problems, bad


def _path(parts: Sequence[str | int]) -> str:
    return "$" + "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in parts)


def _expand(data: Mapping[str, Any], bad: set[tuple[str, int]], given: Layout | None) -> tuple[RoleSpec, list[str]]:
    """Fill defaults, resolve "*" and lists, and check what one row says about another."""
    size = data.get("layout")
    try:
        layout = Layout(int(size["roles"]), int(size["events"]), int(size["iterations"])) if size else given
    except (KeyError, TypeError, ValueError):
        layout = given
    reading = rolespec_rows.Reading(data, bad, None if layout is None else (layout.roles, layout.events))
    if layout is not None and given is not None and layout != given:
        reading.problems.append(f"$.layout: {layout} (roles,events,iterations), but the buffer is {given}")
    roles, events = rolespec_rows.roles(reading), rolespec_rows.events(reading)
    spans, edges = rolespec_rows.spans(reading), rolespec_rows.dependencies(reading)
    rolespec_rows.fill_iteration_events(reading, roles, spans)
    facts: dict[str, Any] = {
        name: {k: v for k, v in data.get(name, {}).items() if not k.startswith("_")}
        for name in ("capture", "launch", "clock")
        if isinstance(data.get(name, {}), dict)
    }
    window = _window(data.get("window"), layout, reading.problems)
    spec = RoleSpec(tuple(roles), tuple(events), tuple(spans), tuple(edges), layout, window, **facts)
    return spec, reading.problems


def _window(said: Any, layout: Layout | None, problems: list[str]) -> IterationWindow:
    """The window, where the JSON Schema has nothing against it."""
    if not isinstance(said, dict) or not all(isinstance(number, int) for number in said.values()):
        return WHOLE
    if not set(said) <= {"from", "stride"} or said.get("from", 0) < 0 or said.get("stride", 1) < 1:
        return WHOLE
    try:
        return parse_window(said, "$", 1 if layout is None else layout.iterations)
    except BadRequest as error:
        problems.append(str(error))
        return WHOLE
