"""The other role spec in use: JSON with ``roles, role_id, active, stall, markers, deps, overlap``.

It says which event index begins and ends what, and colours it for a plot. What it cannot say is named, never guessed:
the iteration lag of an edge, the kind of barrier, whether a signal completes later, resources, loops.

Names of events, per role, in this order; the first use of an index names it:

1. a stall: ``wait_enter``, ``wait_exit``; with a label ``LABEL_enter``, ``LABEL_exit``
2. an active span: ``LABEL_begin``, ``LABEL_end``; without a label ``work_begin``, ``work_end``
3. the producer end of an edge: ``LABEL_signal``; without a label ``signal``; its consumer end: ``LABEL_acquired``
4. a marker: ``LABEL_mark``; without a label ``mark``
5. an end of an overlap set: ``overlap_begin``, ``overlap_end``

A name that the role has already gets the event index as a suffix (``wait_enter_7``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from wsformat.errors import MalformedInput
from wsformat.rolespec import MAIN_LOOP, ONCE, Layout, RoleSpec, Row, parse
from wsformat.rolespec_schema import VERSION, VERSION_KEY

FIELDS: dict[str, tuple[str, ...]] = {
    "active": ("role", "beg", "end"),
    "stall": ("role", "beg", "end"),
    "deps": ("prod", "pevt", "cons", "cevt"),
    "markers": ("role", "evt"),
}
INDEX_FIELDS = ("beg", "end", "pevt", "cevt", "evt")
ROLE_FIELDS = ("role", "prod", "cons")
KNOWN = {"roles", "role_id", "overlap", *FIELDS}


def is_skill_spec(data: object) -> bool:
    """Whether JSON values look like this form: a list of role names and what their events mean."""
    if not isinstance(data, dict) or VERSION_KEY in data or "roles" not in data:
        return False
    return "role_id" in data or bool(set(FIELDS) & set(data))


def from_skill(data: Any, where: str, layout: Layout | None = None) -> tuple[RoleSpec, list[str]]:
    """Convert to our role spec.

    Args:
        data: JSON values.
        where: what to call it in errors.
        layout: size of the buffer, to check indices against.

    Returns:
        the spec, with every lag unknown and every event in the loop ``main`` (see :func:`wsformat.lags.infer_lags`
        and :func:`set_loops` for what the stamps themselves tell), and one sentence for each thing it cannot know.

    Raises:
        MalformedInput: with every problem and its path.
    """
    names, problems = _check(data, layout)
    if problems:
        count = f"{len(problems)} problems: " if len(problems) > 1 else ""
        raise MalformedInput(f"{where}: {count}{'; '.join(problems)}")
    events = _event_names(data, names)
    ours = {
        VERSION_KEY: VERSION,
        "roles": [_role(name, data) for name in names],
        "events": [
            {"role": role, "event": name, "event_index": index} for (role, index), name in sorted(events.items())
        ],
        "spans": list(_spans(data, events)),
        "dependencies": list(_edges(data, events)),
    }
    return parse(ours, where, layout), _notes(data)


def _check(data: Any, layout: Layout | None) -> tuple[dict[str, int], list[str]]:
    """Role names with their indices, and what is wrong."""
    if not isinstance(data, dict) or not isinstance(data.get("roles"), list):
        return {}, ["$.roles: a list of role names is needed"]
    problems: list[str] = []
    roles = data["roles"]
    ids = data.get("role_id", {r: i for i, r in enumerate(roles) if isinstance(r, str)})
    names: dict[str, int] = {}
    for position, role in enumerate(roles):
        index = ids.get(role) if isinstance(ids, dict) and isinstance(role, str) else None
        if not isinstance(role, str) or not role:
            problems.append(f"$.roles[{position}]: a name is needed")
        elif role in names:
            problems.append(f"$.roles[{position}]: {role!r} is there twice")
        elif index is None or not _is_index(index):
            problems.append(f"$.role_id.{role}: an index from 0 is needed")
        elif index in names.values():
            problems.append(f"$.role_id.{role}: {index} is used twice")
        elif layout is not None and index >= layout.roles:
            problems.append(f"$.role_id.{role}: {index} is out of range, the layout has {layout.roles} roles")
        else:
            names[role] = index
    for section, fields in FIELDS.items():
        rows = data.get(section, [])
        if not isinstance(rows, list):
            problems.append(f"$.{section}: a list is needed")
            continue
        for position, row in enumerate(rows):
            path = f"$.{section}[{position}]"
            if not isinstance(row, dict):
                problems.append(f"{path}: an object is needed")
                continue
            problems += [p for f in fields for p in _check_field(f"{path}.{f}", f, row.get(f), roles, layout)]
            if "beg" in fields and row.get("beg") == row.get("end"):
                problems.append(f"{path}: begins and ends with event {row.get('beg')}")
    overlap = data.get("overlap", [])
    for position, entry in enumerate(overlap if isinstance(overlap, list) else []):
        path = f"$.overlap[{position}]"
        if not isinstance(entry, list) or len(entry) != 3:
            problems.append(f"{path}: [role, begin, end] is needed")
            continue
        for number, field in enumerate(("role", "beg", "end")):
            problems += _check_field(f"{path}[{number}]", field, entry[number], roles, layout)
    return names, problems


def _is_index(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _check_field(path: str, field: str, value: Any, roles: Sequence[Any], layout: Layout | None) -> Iterator[str]:
    if field in ROLE_FIELDS and value not in roles:
        yield f"{path}: unknown role {value!r}; known: {', '.join(map(str, roles))}"
    elif field in INDEX_FIELDS and not _is_index(value):
        yield f"{path}: {value!r} is no event index"
    elif field in INDEX_FIELDS and layout is not None and value >= layout.events:
        yield f"{path}: event index {value} is out of range, the layout has {layout.events} events"


def _slug(row: Mapping[str, Any]) -> str:
    """The label of a row as a name: lower case, words joined by _; '' without one."""
    return re.sub(r"[^a-z0-9]+", "_", str(row.get("label", "") or "").lower()).strip("_")


def _event_names(data: Mapping[str, Any], names: Mapping[str, int]) -> dict[tuple[str, int], str]:
    found: dict[tuple[str, int], str] = {}

    def name(role: str, index: int, wanted: str) -> None:
        if (role, index) not in found:
            taken = {n for (r, _), n in found.items() if r == role}
            found[role, index] = f"{wanted}_{index}" if wanted in taken else wanted

    for row in data.get("stall", []):
        label = _slug(row) or "wait"
        name(row["role"], row["beg"], f"{label}_enter")
        name(row["role"], row["end"], f"{label}_exit")
    for row in data.get("active", []):
        label = _slug(row) or "work"
        name(row["role"], row["beg"], f"{label}_begin")
        name(row["role"], row["end"], f"{label}_end")
    for row in data.get("deps", []):
        label = _slug(row)
        name(row["prod"], row["pevt"], f"{label}_signal".lstrip("_"))
        name(row["cons"], row["cevt"], f"{label}_acquired".lstrip("_"))
    for row in data.get("markers", []):
        name(row["role"], row["evt"], f"{_slug(row)}_mark".lstrip("_"))
    for role, begin, end in data.get("overlap", []):
        name(role, begin, "overlap_begin")
        name(role, end, "overlap_end")
    return found


def _role(name: str, data: Mapping[str, Any]) -> Row:
    row: Row = {"role": name}
    index = data.get("role_id", {}).get(name)
    if index is not None:
        row["role_index"] = index
    colours = [a["color"] for a in data.get("active", []) if a["role"] == name and isinstance(a.get("color"), str)]
    if colours:
        row["colour"] = colours[0]
    for kind in ("producer", "consumer"):
        if name.lower().startswith(kind):
            row["kind"] = kind
    return row


def _spans(data: Mapping[str, Any], events: Mapping[tuple[str, int], str]) -> Iterator[Row]:
    taken: set[tuple[str, str]] = set()
    barriers = {(d["cons"], d["cevt"]): str(d.get("label", "") or "") for d in data.get("deps", [])}
    for state, default in (("stall", "wait"), ("active", "work")):
        for row in data.get(state, []):
            role, begin, end = row["role"], row["beg"], row["end"]
            span = _slug(row) or default
            if (role, span) in taken:
                span = f"{span}_{begin}"
            taken.add((role, span))
            full = {
                "role": role,
                "span": span,
                "state": state,
                "begin_event": events[role, begin],
                "end_event": events[role, end],
            }
            if state == "stall" and barriers.get((role, end)):
                full["barrier"] = barriers[role, end]
            if isinstance(row.get("color"), str):
                full["colour"] = row["color"]
            yield full


def _edges(data: Mapping[str, Any], events: Mapping[tuple[str, int], str]) -> Iterator[Row]:
    seen = set()
    for row in data.get("deps", []):
        key = (row["prod"], row["pevt"], row["cons"], row["cevt"])
        if key not in seen:
            seen.add(key)
            yield {
                "producer_role": row["prod"],
                "producer_event": events[row["prod"], row["pevt"]],
                "consumer_role": row["cons"],
                "consumer_event": events[row["cons"], row["cevt"]],
                "barrier": str(row.get("label", "") or ""),
            }


def _notes(data: Mapping[str, Any]) -> list[str]:
    notes = [
        "The role spec does not say which stamp starts an iteration: the begin of each role's first stall is taken, "
        "else its first event.",
        "The role spec names no resources; nothing is known about which hardware unit a span keeps busy.",
        "The role spec cannot say that an active span hides a wait (contains_wait).",
    ]
    if any(str(role).lower().startswith(("producer", "consumer")) for role in data["roles"]):
        notes.append("Kinds of roles (producer, consumer) are taken from their names.")
    if data.get("deps"):
        notes.append(
            "The role spec does not say how a signal travels, nor whether it completes after its stamp (as TMA bytes "
            "do): mechanism unknown, completion taken as at the signal, scope as one CTA."
        )
        if any(d.get("label") for d in data["deps"]):
            notes.append("Labels of deps are taken as names of barriers.")
    other = sorted(k for k in data if k not in KNOWN and not k.startswith("_"))
    if other:
        notes.append(f"Not used: {', '.join(other)}.")
    return notes


def set_loops(spec: RoleSpec, last: Mapping[tuple[str, str], int]) -> tuple[RoleSpec, list[str]]:
    """Events written in iteration 0 alone, by a role that goes on, are outside its loop.

    Args:
        spec: from :func:`from_skill`.
        last: last iteration that was written of each (role, event), -1 never.
    """
    deepest: dict[str, int] = {}
    for (role, _), iteration in last.items():
        deepest[role] = max(deepest.get(role, -1), iteration)
    loop = {key: ONCE if deepest[key[0]] > 0 and iteration == 0 else MAIN_LOOP for key, iteration in last.items()}
    events = [{**e, "loop": loop.get((e["role"], e["event"]), e["loop"])} for e in spec.events]
    spans = [{**s, "loop": loop.get((s["role"], s["begin_event"]), s["loop"])} for s in spec.spans]
    once = [f"{role} {event}" for (role, event), name in loop.items() if name == ONCE]
    notes = [f"Written in iteration 0 alone, so taken as outside the loop: {', '.join(once)}."] if once else []
    roles = [{**r, "iteration_event": _loop_start(r, events)} for r in spec.roles]
    return spec.with_rows(roles=roles, events=events, spans=spans), notes


def _loop_start(role: Row, events: Sequence[Row]) -> str:
    mine = sorted(
        (e for e in events if e["role"] == role["role"] and e["loop"] != ONCE), key=lambda e: e["event_index"]
    )
    names = [str(e["event"]) for e in mine]
    return str(role["iteration_event"]) if role["iteration_event"] in names or not names else names[0]


def to_skill(spec: RoleSpec) -> tuple[dict[str, Any], list[str]]:
    """Convert our role spec to that form.

    Returns:
        JSON values, and one sentence for each thing that is lost.
    """
    index = {(e["role"], e["event"]): e["event_index"] for e in spec.events}
    colour = {r["role"]: r["colour"] for r in spec.roles}
    lost: list[str] = []
    data: dict[str, Any] = {
        "roles": [r["role"] for r in spec.roles],
        "role_id": {r["role"]: r["role_index"] for r in spec.roles},
        "active": [],
        "stall": [],
        "markers": [],
        "deps": [],
        "overlap": [],
    }
    bound = set()
    for span in spec.spans:
        if span["state"] not in ("active", "stall"):
            lost.append(f"Span {span['span']} of {span['role']}: state {span['state']} cannot be said; left out.")
            continue
        ends = [(span["role"], span["begin_event"]), (span["role"], span["end_event"])]
        bound |= set(ends)
        row = {"role": span["role"], "beg": index[ends[0]], "end": index[ends[1]]}
        if span["state"] == "active":
            row |= {"color": span["colour"] or colour[span["role"]] or "#888888", "label": span["span"]}
        data[span["state"]].append(row)
    for edge in spec.dependencies:
        data["deps"].append(
            {
                "prod": edge["producer_role"],
                "pevt": index[edge["producer_role"], edge["producer_event"]],
                "cons": edge["consumer_role"],
                "cevt": index[edge["consumer_role"], edge["consumer_event"]],
                "color": colour[edge["producer_role"]] or "#888888",
                "label": edge["barrier"],
            }
        )
    for event in spec.events:
        if (event["role"], event["event"]) not in bound:
            data["markers"].append(
                {"role": event["role"], "evt": event["event_index"], "color": "#000000", "marker": "v"}
            )
    data["overlap"] = [[a["role"], a["beg"], a["end"]] for a in data["active"] if a["role"] != spec.roles[0]["role"]]
    return data, lost + _lost(spec)


def _lost(spec: RoleSpec) -> list[str]:
    lost = ["Names of events and stalls are lost; indices remain."]
    lags = [e for e in spec.dependencies if e["producer_step"] > 0 and (e["iteration_lag"] or e["producer_step"] != 1)]
    if lags:
        lost.append(
            "Iteration lags and steps of edges are lost: "
            + ", ".join(f"{e['producer_role']} -> {e['consumer_role']} {e['iteration_lag']}" for e in lags)
            + "."
        )
    if any(
        e["mechanism"] or e["completion"] != "signal" or e["scope"] != "cta" or e["latency_ticks"] is not None
        for e in spec.dependencies
    ):
        lost.append("Mechanism, completion, scope and latency of edges are lost.")
    if any(row["resource"] for row in (*spec.roles, *spec.spans)):
        lost.append("Resources are lost.")
    if any(s["contains_wait"] for s in spec.spans):
        lost.append("The marks that an active span hides a wait (contains_wait) are lost.")
    if any(e["loop"] == ONCE for e in spec.events):
        lost.append("Which events lie outside the loop is lost.")
    if spec.capture or spec.launch or spec.clock:
        lost.append("Facts about the run, its launches and its clock are lost.")
    return lost
