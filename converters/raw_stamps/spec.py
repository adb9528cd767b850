"""From a role spec as given to one that names every slot that is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from wsformat import lags, rolespec, skillspec
from wsformat.converters.raw_stamps.buffers import Buffers
from wsformat.converters.raw_stamps.options import Given, parse_ctas
from wsformat.errors import BadRequest, MalformedInput
from wsformat.iteration_window import parse_window
from wsformat.rolespec import Layout, RoleSpec, Row
from wsformat.stamp_launch import StampLaunch, Survey, blocks, last_written, sample_times, words
from wsformat.stamp_times import Array, is_written
from wsformat.tables import conform, rows_to_table

Note = tuple[str, str]
"""Subject and text of a finding."""

FILL_SAMPLE = 1 << 20
FILL_LEAST = 16
"""Fewer equal values are chance."""

LAG_LAUNCHES = 16
"""Launches that lags are inferred from, of each the first block of CTAs."""


def resolve(
    raw: Any, name: str, layout: Layout, launches: Sequence[StampLaunch], asked: Given
) -> tuple[RoleSpec, list[Note]]:
    """The spec that the tables come from, and what had to be assumed or is odd.

    Raises:
        MalformedInput: no valid spec, nothing is written, or the spec names what nobody wrote.
    """
    notes: list[Note] = []
    skill = skillspec.is_skill_spec(raw)
    if skill:
        spec, unknown = skillspec.from_skill(raw, name, layout)
        notes += [("role spec", text) for text in unknown]
    else:
        spec = rolespec.parse(raw, name, layout)
        if spec.ignored:
            notes.append(
                ("role spec", f"Of a newer version than this library knows, ignored: {', '.join(spec.ignored)}.")
            )
    if spec.clock.get("width_bits") == 32:
        launches = [replace(k, narrow=True) for k in launches]
    used = _used(launches, layout, asked.unwritten)
    if skill:
        index = {r["role"]: r["role_index"] for r in spec.roles}
        last = {(e["role"], e["event"]): int(used[index[e["role"]], e["event_index"]]) for e in spec.events}
        spec, loops = skillspec.set_loops(spec, last)
        notes += [("role spec", text) for text in loops]
    spec = _add_strays(spec, used, notes)
    _refuse_unwritten(spec, used, name, asked.allow_unwritten, notes)
    spec = _state_lags(spec, asked.lags, name, notes)
    if any(edge["producer_step"] == 0 for edge in spec.dependencies):
        # With a stride, neighbouring slots are not neighbouring iterations, so their order proves no lag.
        dense = [k for k in launches if k.window.stride == 1]
        if dense:
            sample = sample_times(dense[:LAG_LAUNCHES], spec, asked.unwritten)
            spec, found, _ = lags.infer_lags(spec, sample)
            notes += [("iteration_lag", text) for text in found]
        else:
            notes.append(("iteration_lag", "Some lags are unknown; with a stride the stamps cannot prove them."))
    _note_windows(launches, layout, notes)
    _note_trip_count(spec, used, launches, asked.trip_count, notes)
    return spec, notes


def selection(asked: Given, loaded: Sequence[Buffers], paths: Sequence[Path], raw_spec: Any, layout: Layout) -> Given:
    """The options with the window and CTAs that hold: as asked, else as the first file says, else as the role spec.

    Raises:
        BadRequest: no window, or no CTAs.
    """
    window, ctas = asked.window, asked.ctas
    for part, path in zip(loaded, paths, strict=True):
        if window is None and part.window is not None:
            window = parse_window(part.window, f"{path}: metadata", layout.iterations)
        if ctas is None and part.ctas is not None:
            ctas = parse_ctas(part.ctas, f"{path}: metadata")
    said = raw_spec.get("window") if rolespec.is_rolespec(raw_spec) else None
    if window is None and said is not None:
        window = parse_window(said, "role spec", layout.iterations)
    if window is not None:
        parse_window(list(window.to_json().values()), "window", layout.iterations)
    return replace(asked, window=None if window is None or window.whole else window, ctas=ctas)


def _note_windows(launches: Sequence[StampLaunch], layout: Layout, notes: list[Note]) -> None:
    for window in dict.fromkeys(k.window for k in launches if k.slots is not None and not k.window.whole):
        last = window.end(layout.iterations - 1)
        notes.append(
            (
                "window",
                f"Slots hold the iterations {window.first} to {last} in steps of {window.stride}, chosen on purpose: "
                "time without a stamp between them is not instrumented, and shares of states count it as such.",
            )
        )


def narrow(launches: Sequence[StampLaunch], unwritten: int) -> tuple[list[StampLaunch], list[Note]]:
    """Launches whose 64-bit slots hold what a 32-bit counter read, marked so, and a note when there are any.

    Programs that copy a buffer often widen it: as int32, where the upper half of a turn becomes negative, or as uint32,
    below the counter that the records of the CTAs show.

    Raises:
        MalformedInput: a negative value that is no widened 32-bit stamp.
    """
    result, found = [], False
    for launch in launches:
        low, high = _extremes(launch, unwritten)
        fits = low >= -(1 << 31) and high < 1 << 32
        if low < 0 and not fits:
            value = low + (1 << 64) if launch.slots is not None and launch.slots.dtype.kind == "u" else low
            raise MalformedInput(
                f"{launch.source}: a slot holds {value}; a clock reads 0 to 2^63 - 1",
                f"If that is what an unwritten slot holds, give --unwritten {value}.",
            )
        behind = launch.meta is not None and high >= 0 and int(launch.meta["c0"].min()) >= 1 << 32
        mine = fits and (low < 0 or behind)
        found = found or mine
        result.append(replace(launch, narrow=True) if mine else launch)
    text = "Slots of 64 bits hold stamps of 32 bits, which somebody widened; they are read as 32 bits."
    return result, [("clock", text)] if found else []


def _extremes(launch: StampLaunch, unwritten: int) -> tuple[int, int]:
    """Least and greatest stamp of a launch with 64-bit slots; (0, -1) where there is none to look at."""
    if launch.slots is None or launch.slots.dtype.itemsize == 4:
        return 0, -1
    written = (slots[is_written(slots, unwritten)] for _, slots in blocks(launch))
    ranges = [(int(stamps.min()), int(stamps.max())) for stamps in written if stamps.size]
    return min((low for low, _ in ranges), default=0), max((high for _, high in ranges), default=-1)


def note_reversed(spec: RoleSpec, surveys: Sequence[Survey | None]) -> list[Note]:
    """Spans with pairs that end before they begin: mostly two event indices in the wrong order."""
    counts = np.sum([s.reversed_pairs for s in surveys if s is not None], axis=0)
    return [
        (
            "role spec",
            f"{span['role']} {span['span']}: {count} of its pairs of stamps end before they begin and make no span; "
            f"are {span['begin_event']} and {span['end_event']} the right way round?",
        )
        for span, count in zip(spec.spans, counts.tolist(), strict=True)
        if count
    ]


def _state_lags(spec: RoleSpec, stated: Mapping[str, int], name: str, notes: list[Note]) -> RoleSpec:
    """Lags that the user states for barriers whose edges have none.

    Raises:
        BadRequest: a barrier that the spec does not name, or whose lag the spec gives already.
    """
    edges = list(spec.dependencies)
    for barrier, lag in stated.items():
        mine = [i for i, edge in enumerate(edges) if edge["barrier"] == barrier]
        if not mine:
            known = ", ".join(sorted({edge["barrier"] for edge in edges})) or "none"
            raise BadRequest(f"lag {barrier}={lag}: {name} has no edge of that barrier", f"Barriers: {known}.")
        if any(edges[i]["producer_step"] for i in mine):
            raise BadRequest(f"lag {barrier}={lag}: {name} gives the lag of that barrier itself")
        for i in mine:
            edges[i] = {**edges[i], "producer_step": 1, "consumer_step": 1, "iteration_lag": lag}
        notes.append(("iteration_lag", f"{barrier}: {lag}, as stated on import."))
    return spec.with_rows(dependencies=edges) if stated else spec


def _note_trip_count(
    spec: RoleSpec, used: Array, launches: Sequence[StampLaunch], trip_count: int, notes: list[Note]
) -> None:
    """A loop that went beyond the stated trip count counts something else, or the statement is wrong."""
    index = {r["role"]: r["role_index"] for r in spec.roles}
    window = launches[0].window
    for event in spec.events:
        last = int(used[index[event["role"]], event["event_index"]])
        ran = window.end(last) + 1 if last >= 0 else 0
        if 0 < trip_count < ran and event["loop"] != rolespec.ONCE:
            notes.append(
                (
                    "trip_count",
                    f"{event['role']} {event['event']} has {ran} iterations, more than the stated "
                    f"trip count of {trip_count}.",
                )
            )


def _used(launches: Sequence[StampLaunch], layout: Layout, unwritten: int) -> Array:
    """Last iteration written of each slot kind in any launch, ``[role, event]``, -1 never.

    Raises:
        MalformedInput: a launch that wrote nothing.
    """
    total = np.full((layout.roles, layout.events), -1)
    for launch in launches:
        if launch.slots is None:
            continue
        mine = last_written(launch, unwritten)
        if mine.max() < 0:
            raise MalformedInput(
                f"{launch.source}: every slot holds {unwritten}, so no stamp was written",
                "Check that the kernel was built with stamps and the buffer was copied after it finished.",
            )
        _refuse_fill(launch, unwritten)
        total = np.maximum(total, mine)
    return total


def _refuse_fill(launch: StampLaunch, unwritten: int) -> None:
    """A value that fills an eighth of a CTA's slots or more is what they held before, no time.

    Raises:
        MalformedInput: there is such a value, and it is not ``unwritten``.
    """
    slots = words(launch, 0, 1).ravel()[:FILL_SAMPLE]
    values, counts = np.unique(slots[is_written(slots, unwritten)], return_counts=True)
    if counts.size and counts.max() >= max(FILL_LEAST, slots.size // 8):
        value, count = int(values[counts.argmax()]), int(counts.max())
        raise MalformedInput(
            f"{launch.source}: {count} of {slots.size} slots of the first CTA hold {value} (0x{value:X}), which "
            f"no clock reads so often",
            f"If that is what an unwritten slot holds, give --unwritten {value}.",
        )


def _add_strays(spec: RoleSpec, used: Array, notes: list[Note]) -> RoleSpec:
    """Name the slots that are written and that the spec does not name: nothing is dropped."""
    roles, events = list(spec.roles), list(spec.events)
    by_index = {r["role_index"]: r["role"] for r in roles}
    named = {(r["role"], e["event_index"]) for r in roles for e in events if e["role"] == r["role"]}
    strays: dict[str, list[int]] = {}
    for index, event in np.argwhere(used >= 0).tolist():
        if index not in by_index:
            name = _free_name(f"role_{index}", by_index.values())
            roles.append({**_blank_role(roles[0]), "role": name, "role_index": index, "display_order": len(roles)})
            by_index[index] = name
            notes.append(("role spec", f"Role index {index} is written and not in the spec; it is called {name}."))
        role = by_index[index]
        if (role, event) not in named:
            strays.setdefault(role, []).append(event)
            name = _free_name(f"event_{event}", [e["event"] for e in events if e["role"] == role])
            loop = rolespec.MAIN_LOOP if used[index, event] > 0 else rolespec.ONCE
            events.append({**_blank_event(), "role": role, "event": name, "event_index": event, "loop": loop})
    for role, found in strays.items():
        many = f"{len(found)} event indices of {role} are" if len(found) > 1 else f"Event index {found[0]} of {role} is"
        range_ = f" ({found[0]} to {found[-1]})" if len(found) > 1 else ""
        text = (
            f"{many} written and not in the spec{range_}; called event_N, outside the loop when in iteration 0 alone."
        )
        notes.append(("role spec", text))
    return spec.with_rows(roles=roles, events=events)


def _blank_role(like: Row) -> Row:
    text = {k: "" for k, v in like.items() if isinstance(v, str)}
    return {**text, "kind": "other", "lane_kind": "thread", "warp": -1}


def _blank_event() -> Row:
    return {"payload_type": "", "payload_unit": "", "meaning": ""}


def _free_name(name: str, taken: Any) -> str:
    while name in taken:
        name += "_"
    return name


def _refuse_unwritten(spec: RoleSpec, used: Array, name: str, allowed: bool, notes: list[Note]) -> None:
    """Spans and edges need stamps: an index typed wrong looks like a role that never waits."""
    index = {r["role"]: r["role_index"] for r in spec.roles}
    never = {(e["role"], e["event"]) for e in spec.events if used[index[e["role"]], e["event_index"]] < 0}
    missing: dict[tuple[str, str], list[str]] = {}
    for span in spec.spans:
        for end in ("begin_event", "end_event"):
            if (span["role"], span[end]) in never:
                missing.setdefault((span["role"], span[end]), []).append(f"span {span['span']}")
    for edge in spec.dependencies:
        for side in ("producer", "consumer"):
            if (edge[f"{side}_role"], edge[f"{side}_event"]) in never:
                missing.setdefault((edge[f"{side}_role"], edge[f"{side}_event"]), []).append(
                    f"edge {edge['producer_role']} -> {edge['consumer_role']}"
                )
    if not missing:
        return
    found = "; ".join(f"{role} {event} ({', '.join(dict.fromkeys(users))})" for (role, event), users in missing.items())
    if not allowed:
        raise MalformedInput(
            f"{name}: names events that were never written in the whole buffer: {found}",
            "Correct the event indices, or give --allow-unwritten when the kernel was built with fewer stamps.",
        )
    notes.append(("role spec", f"Never written: {found}."))


def trim(launches: Sequence[StampLaunch], spec: RoleSpec, layout: Layout) -> tuple[list[StampLaunch], Layout]:
    """Launches as the spec says they are, without the event slots at the end that nothing names.

    Buffers are often laid out for 16 events. A trip count of the spec holds for launches without one of their own.
    """
    events = max(e["event_index"] for e in spec.events) + 1
    narrow = spec.clock.get("width_bits") == 32
    trips = int(spec.launch.get("trip_count", -1))
    shorter = [
        k
        if k.slots is None
        else replace(
            k, events=events, narrow=k.narrow or narrow, trip_count=trips if k.trip_count < 0 else k.trip_count
        )
        for k in launches
    ]
    return shorter, replace(layout, events=events)


def append_rows(name: str, one: Any, other: Any) -> pa.Table:
    """Two lots of rows of a table, as one."""
    parts = [p if isinstance(p, pa.Table) else rows_to_table(name, p) for p in (one, other)]
    return pa.concat_tables([conform(name, p) for p in parts if p.num_columns])
