"""Out: the stamp buffer of one CTA as ``.npz`` with the role spec in the form of roles, active, stall, deps, overlap.

``raw_stamps`` reads it back: the spec is in the archive's ``meta`` as well as in a file beside it.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from wsformat.bundle import Bundle
from wsformat.converters.trace_model import save
from wsformat.converters.trace_options import as_flag
from wsformat.errors import BadRequest
from wsformat.rolespec import ONCE, RoleSpec
from wsformat.skillspec import to_skill

NAME = "skill_npz"
TITLE = "one CTA's stamps as .npz with a plotting spec"
EXTENSIONS = (".npz",)
OPTIONS = {
    "capture": "capture_id, when there are several",
    "launch": "launch to write; default the first with stamps",
    "cta": "CTA to write; default the first with stamps",
    "rebase": "true: times from 1 on, instead of the low 32 bits of the clock; default false",
}
LOSSES = (
    "One CTA of one launch; one recorder a role: further warps of a role become roles ROLE_wWARP.",
    "Times are 32 bits, 0 is 'not written': no anchors, no clock, no other launch; rebase keeps what would wrap.",
    "Spans are pairs of events of one iteration: async and scope spans, cut ends and spans across lanes are left out.",
    "Names of events, iteration lags, barriers' kinds, resources and loops have no place in the spec.",
    "Payloads, tiles, edges, metrics, predictions, rules and findings are left out.",
)
CARRIES = {"out": ("lanes", "roles", "event_types", "span_types", "dependencies", "events", "spans")}
BITS = 32


def write(bundle: Bundle, path: Path, options: Mapping[str, Any]) -> dict[str, Any]:
    """Write one CTA's stamps, and the spec beside them (NAME.spec.json).

    Args:
        bundle: with stamps.
        path: the .npz file; it holds one array [roles, events, iterations], 0 where nothing was stamped.
        options: by name, as in ``OPTIONS``: which capture, launch and CTA.

    Returns:
        what was written, and what could not be.

    Raises:
        BadRequest: no such CTA, nothing stamped, or times that 32 bits cannot hold.
    """
    lanes, where = _lanes(bundle, options)
    points = [_points(bundle, where["capture_id"], lane) for lane in lanes]
    spec, indices = _spec(bundle, lanes, points, where["capture_id"])
    skill, lost = to_skill(spec)
    iterations = 1 + max(int(iteration.max()) for part in points for iteration, _ in part.values())
    events = 1 + max(index for table in indices for index in table.values())
    numbers = [row["role_index"] for row in spec.roles]
    slots = np.zeros((max(numbers) + 1, events, iterations), np.uint32)
    every = np.concatenate([t for part in points for _, t in part.values()])
    base = int(every.min()) - 1 if as_flag(options.get("rebase", False)) else 0
    if int(every.max()) - int(every.min()) >= 1 << BITS:
        raise BadRequest(f"the stamps of this CTA span {int(every.max()) - int(every.min())} ticks, 32 bits hold 2^32")
    zero = 0
    for role, part, table in zip(numbers, points, indices, strict=True):
        for name, (iteration, t) in part.items():
            slots[role, table[name], iteration] = (t - base) & 0xFFFFFFFF
            zero += int((((t - base) & 0xFFFFFFFF) == 0).sum())
    if zero:
        lost.append(f"{zero} stamps have low 32 bits of 0, which reads as not written; rebase keeps them.")
    if (int(every.min()) - base) >> BITS != (int(every.max()) - base) >> BITS:
        lost.append("The low 32 bits wrap within these stamps; readers that do not unwrap need rebase.")
    layout = {"roles": len(slots), "events": events, "iterations": iterations}
    meta = {"NROLE": len(slots), "NEVT": events, "MAXIT": iterations, "nfilled": int((slots != 0).sum())}
    packed = io.BytesIO()
    np.savez_compressed(packed, prof=slots, meta=np.array(json.dumps({**meta, "layout": layout, "spec": skill})))
    beside = path.with_name(f"{path.name.removesuffix('.npz')}.spec.json")
    save(beside, [json.dumps(skill, indent=1, ensure_ascii=False).encode() + b"\n"])
    save(path, [packed.getvalue()])
    return {
        "stamps": len(every), "roles": len(lanes), "spec": str(beside), "bytes": path.stat().st_size,
        "lost": lost, **{k: where[k] for k in ("launch", "cta")},
    }  # fmt: skip


def _lanes(bundle: Bundle, options: Mapping[str, Any]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The lanes of the chosen CTA that have stamps."""
    where: dict[str, Any] = {}
    if options.get("capture"):
        where["capture_id"] = str(options["capture"])
    for name in ("launch", "cta"):
        if options.get(name) is not None:
            try:
                where[name] = int(options[name])
            except ValueError as error:
                raise BadRequest(f"{name} {options[name]!r}: not a whole number") from error
    found = bundle.sql(
        "SELECT l.* FROM lanes l WHERE EXISTS (SELECT 1 FROM point p WHERE p.capture_id = l.capture_id "
        "AND p.lane = l.lane) ORDER BY capture_id, launch, cta, lane"
    ).to_pylist()
    order = {row["role"]: row["display_order"] for row in bundle.table("roles").to_pylist()}
    found.sort(key=lambda row: (row["capture_id"], row["launch"], row["cta"], order.get(row["role"], 1 << 30)))
    fits = [lane for lane in found if all(lane[name] == value for name, value in where.items())]
    if not fits:
        raise BadRequest(
            f"no stamps of {', '.join(f'{k} {v}' for k, v in where.items()) or 'any CTA'}",
            "`wsformat info` lists them.",
        )
    place = {name: fits[0][name] for name in ("capture_id", "launch", "cta")}
    return [lane for lane in fits if all(lane[name] == value for name, value in place.items())], place


def _points(bundle: Bundle, capture: str, lane: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Iterations and times of each event of a lane."""
    table: pa.Table = bundle.sql(
        "SELECT event, iteration, MIN(t) AS t FROM point WHERE capture_id = ? AND lane = ? GROUP BY event, iteration",
        [capture, lane["lane"]],
    )
    names, codes = np.unique(np.array(table.column("event").to_pylist(), dtype=object), return_inverse=True)
    iteration, t = table.column("iteration").to_numpy(), table.column("t").to_numpy()
    return {str(name): (iteration[codes == n], t[codes == n]) for n, name in enumerate(names)}


def _spec(
    bundle: Bundle, lanes: list[dict[str, Any]], points: list[dict[str, tuple[Any, Any]]], capture: str
) -> tuple[RoleSpec, list[dict[str, int]]]:
    """A role spec of these lanes, one role a lane, and the index of each event of each."""

    def rows(table: str) -> list[dict[str, Any]]:
        return [row for row in bundle.table(table).to_pylist() if row["capture_id"] == capture]

    known = {row["role"]: row for row in rows("roles")}
    count = [sum(other["role"] == lane["role"] for other in lanes) for lane in lanes]
    names = [
        str(lane["role"]) if n == 1 and lane["role"] else f"{lane['role'] or 'lane'}_w{lane['warp']}_{lane['lane']}"
        for lane, n in zip(lanes, count, strict=True)
    ]
    numbers = [known.get(lane["role"], {}).get("role_index", -1) for lane in lanes]
    if min(numbers) < 0 or len(set(numbers)) < len(numbers) or max(count) > 1:
        numbers = list(range(len(lanes)))
    roles = [
        {"role": name, "role_index": place, "colour": known.get(lane["role"], {}).get("colour", ""), "resource": ""}
        for place, name, lane in zip(numbers, names, lanes, strict=True)
    ]
    given = {(row["role"], row["event"]): row for row in rows("event_types")}
    indices = [
        dict(_numbered(part, {e: given[lane["role"], e]["event_index"] for e in part if (lane["role"], e) in given}))
        for lane, part in zip(lanes, points, strict=True)
    ]
    events, spans, edges = [], [], []
    for name, lane, table in zip(names, lanes, indices, strict=True):
        for event, index in table.items():
            loop = given.get((lane["role"], event), {}).get("loop", "")
            events.append(
                {"role": name, "event": event, "event_index": index, "loop": ONCE if loop == ONCE else "main"}
            )
        for row in rows("span_types"):
            ends = [row["begin_event"] or f"{row['span']}.begin", row["end_event"] or f"{row['span']}.end"]
            if row["role"] == lane["role"] and all(end in table for end in ends):
                spans.append(row | {"role": name, "begin_event": ends[0], "end_event": ends[1]})
    at = {role: [n for n, lane in enumerate(lanes) if lane["role"] == role] for role in {la["role"] for la in lanes}}
    for row in rows("dependencies"):
        for p in at.get(row["producer_role"], ()):
            for c in at.get(row["consumer_role"], ()):
                if row["producer_event"] in indices[p] and row["consumer_event"] in indices[c]:
                    edges.append(row | {"producer_role": names[p], "consumer_role": names[c]})
    return RoleSpec(tuple(roles), tuple(events), tuple(spans), tuple(edges)), indices


def _numbered(events: Mapping[str, Any], given: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """Events with the indices that they have, the others with free ones."""
    taken = {index for index in given.values() if index >= 0}
    free = (index for index in range(1 << 20) if index not in taken)
    for event in sorted(events):
        yield event, given[event] if given.get(event, -1) >= 0 else next(free)
