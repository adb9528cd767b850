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

import difflib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from wsformat.errors import MalformedInput
from wsformat.manifest import read_json
from wsformat.rolespec_schema import ROLE_FIELDS, SECTIONS, VERSION, VERSION_KEY, is_newer, known_part
from wsformat.tables import read_schema_json, tables

Row = dict[str, Any]
MAIN_LOOP = "main"
ONCE = "once"


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
        capture, launch, clock: facts, as columns of captures, launches and clocks.
        ignored: paths that a newer minor version of the role spec added and this library does not know.
    """

    roles: tuple[Row, ...]
    events: tuple[Row, ...]
    spans: tuple[Row, ...] = ()
    dependencies: tuple[Row, ...] = ()
    layout: Layout | None = None
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


def _rows(data: Mapping[str, Any], section: str, bad: set[tuple[str, int]]) -> Iterator[tuple[int, Row]]:
    rows = data.get(section, [])
    for position, row in enumerate(rows if isinstance(rows, list) else []):
        if (section, position) not in bad:
            yield position, {k: v for k, v in row.items() if not k.startswith("_")}


def _defaults(section: str) -> Row:
    return {c.name: c.default for c in tables()[SECTIONS[section]].columns if c.name != "capture_id"}


def _expand(data: Mapping[str, Any], bad: set[tuple[str, int]], given: Layout | None) -> tuple[RoleSpec, list[str]]:
    """Fill defaults, resolve "*" and lists, and check what one row says about another."""
    problems: list[str] = []
    size = data.get("layout")
    try:
        layout = Layout(int(size["roles"]), int(size["events"]), int(size["iterations"])) if size else given
    except (KeyError, TypeError, ValueError):
        layout = given
    if layout is not None and given is not None and layout != given:
        problems.append(f"$.layout: {layout} (roles,events,iterations), but the buffer is {given}")
    roles = _roles(data, bad, layout, problems)
    partial = any(section == "roles" for section, _ in bad)
    names = [row["role"] for row in roles]
    events = _events(data, bad, layout, names, partial, problems)
    partial = partial or any(section == "events" for section, _ in bad)
    known = {(row["role"], row["event"]): row for row in events}
    spans = _spans(data, bad, names, known, partial, problems)
    dependencies = _dependencies(data, bad, names, known, partial, problems)
    for position, row in enumerate(roles):
        if not row["iteration_event"]:
            row["iteration_event"] = _iteration_event(row["role"], events, spans)
        elif (row["role"], row["iteration_event"]) not in known and not partial:
            problems.append(
                f"$.roles[{position}].iteration_event: {_unknown_event(row['role'], row['iteration_event'], known)}"
            )
    facts: dict[str, Any] = {
        name: {k: v for k, v in data.get(name, {}).items() if not k.startswith("_")}
        for name in ("capture", "launch", "clock")
        if isinstance(data.get(name, {}), dict)
    }
    return RoleSpec(tuple(roles), tuple(events), tuple(spans), tuple(dependencies), layout, **facts), problems


def _roles(data: Mapping[str, Any], bad: set[tuple[str, int]], layout: Layout | None, problems: list[str]) -> list[Row]:
    rows: list[Row] = []
    seen: dict[str, int] = {}
    indices: dict[int, str] = {}
    for position, row in _rows(data, "roles", bad):
        full = {
            **_defaults("roles"),
            "kind": "other",
            "lane_kind": "thread",
            "warp": -1,
            "role_index": position,
            "display_order": position,
            **row,
        }
        name, index, path = full["role"], full["role_index"], f"$.roles[{position}]"
        if name in seen:
            problems.append(f"{path}.role: {name!r} is there twice, first in $.roles[{seen[name]}]")
        elif index in indices:
            problems.append(f"{path}.role_index: {index} is already {indices[index]!r}")
        if layout is not None and index >= layout.roles:
            problems.append(f"{path}.role_index: {index} is out of range, the layout has {layout.roles} roles")
        seen.setdefault(name, position)
        indices.setdefault(index, name)
        rows.append(full)
    return rows


def _named_roles(value: Any, names: Sequence[str], path: str, partial: bool, problems: list[str]) -> list[str]:
    """Roles that a field names, in the order of the spec for "*"."""
    if value == "*":
        return list(names)
    wanted = value if isinstance(value, list) else [value]
    if not partial:
        for name in wanted:
            if name not in names:
                problems.append(f"{path}: {_unknown('role', name, names)}")
    return [name for name in wanted if name in names]


def _unknown(what: str, name: str, names: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, names, n=1)
    return f"unknown {what} {name!r}" + (f", did you mean {close[0]!r}?" if close else f"; known: {', '.join(names)}")


def _unknown_event(role: str, event: str, known: Mapping[tuple[str, str], Row]) -> str:
    return _unknown(f"event of role {role!r}", event, [e for r, e in known if r == role])


def _events(
    data: Mapping[str, Any],
    bad: set[tuple[str, int]],
    layout: Layout | None,
    names: Sequence[str],
    partial: bool,
    problems: list[str],
) -> list[Row]:
    rows: list[Row] = []
    seen: set[tuple[str, str]] = set()
    indices: dict[tuple[str, int], str] = {}
    for position, row in _rows(data, "events", bad):
        path = f"$.events[{position}]"
        if layout is not None and row["event_index"] >= layout.events:
            problems.append(
                f"{path}.event_index: {row['event_index']} is out of range, the layout has {layout.events} events"
            )
        for role in _named_roles(row["role"], names, f"{path}.role", partial, problems):
            full = {**_defaults("events"), "loop": MAIN_LOOP, **row, "role": role}
            key, slot = (role, full["event"]), (role, full["event_index"])
            if key in seen:
                problems.append(f"{path}.event: role {role!r} has {full['event']!r} twice")
            elif slot in indices:
                problems.append(f"{path}.event_index: {slot[1]} of role {role!r} is already {indices[slot]!r}")
            seen.add(key)
            indices.setdefault(slot, full["event"])
            rows.append(full)
    return rows


def _spans(
    data: Mapping[str, Any],
    bad: set[tuple[str, int]],
    names: Sequence[str],
    known: Mapping[tuple[str, str], Row],
    partial: bool,
    problems: list[str],
) -> list[Row]:
    rows: list[Row] = []
    seen: set[tuple[str, str]] = set()
    for position, row in _rows(data, "spans", bad):
        path = f"$.spans[{position}]"
        if row["begin_event"] == row["end_event"]:
            problems.append(f"{path}: begins and ends with the same event {row['begin_event']!r}")
        for role in _named_roles(row["role"], names, f"{path}.role", partial, problems):
            for end in ("begin_event", "end_event"):
                if (role, row[end]) not in known and not partial:
                    problems.append(f"{path}.{end}: {_unknown_event(role, row[end], known)}")
            begin = known.get((role, row["begin_event"]))
            full = {**_defaults("spans"), "loop": begin["loop"] if begin else MAIN_LOOP, **row, "role": role}
            if (role, full["span"]) in seen:
                problems.append(f"{path}.span: role {role!r} has {full['span']!r} twice")
            seen.add((role, full["span"]))
            rows.append(full)
    return rows


def _dependencies(
    data: Mapping[str, Any],
    bad: set[tuple[str, int]],
    names: Sequence[str],
    known: Mapping[tuple[str, str], Row],
    partial: bool,
    problems: list[str],
) -> list[Row]:
    rows: list[Row] = []
    seen: set[tuple[Any, ...]] = set()
    for position, row in _rows(data, "dependencies", bad):
        path = f"$.dependencies[{position}]"
        step = 1 if "iteration_lag" in row else 0
        given = {
            **_defaults("dependencies"),
            "iteration_lag": 0,
            "producer_step": step,
            "consumer_step": step,
            "completion": "signal",
            "scope": "cta",
            **row,
        }
        if (given["producer_step"] == 0) != (given["consumer_step"] == 0):
            problems.append(f"{path}: producer_step and consumer_step must both be 0 (unknown) or both be positive")
        ends = [_named_roles(row[f"{side}_role"], names, f"{path}.{side}_role", partial, problems) for side in SIDES]
        for side, roles in zip(SIDES, ends, strict=True):
            for role in roles:
                event = row[f"{side}_event"]
                if (role, event) not in known and not partial:
                    problems.append(f"{path}.{side}_event: {_unknown_event(role, event, known)}")
        for producer, consumer in itertools.product(*ends):
            full = {**given, "producer_role": producer, "consumer_role": consumer}
            key = tuple(full[name] for name in tables()["dependencies"].key if name != "capture_id")
            if key in seen:
                problems.append(f"{path}: the same edge is there twice")
            seen.add(key)
            rows.append(full)
    return rows


SIDES = tuple(name.removesuffix("_role") for name in ROLE_FIELDS["dependencies"])


def _iteration_event(role: str, events: Sequence[Row], spans: Sequence[Row]) -> str:
    for span in spans:
        if span["role"] == role and span["state"] == "stall" and span["loop"] != ONCE:
            return str(span["begin_event"])
    looped = [e for e in events if e["role"] == role and e["loop"] != ONCE]
    return str(min(looped, key=lambda e: e["event_index"])["event"]) if looped else ""
