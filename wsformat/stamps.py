"""Stamp buffers to tables: shared by the raw-buffer converter and the recorder.

A launch is an array ``[cta, role, event, iteration]`` of 32- or 64-bit slots, and optionally one start and end record
a CTA. :func:`decode` surveys all launches once (what is written, wraps, completeness), builds the small tables, and
gives the events as a stream of Arrow tables in the sort order of the standard. Memory is bounded by blocks of CTAs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from wsformat.bundle import TableLike
from wsformat.completeness import NAMES, judge, linked_roles, loop_events, worst
from wsformat.errors import MalformedInput
from wsformat.rolespec import ONCE, Layout, RoleSpec
from wsformat.stamp_clocks import Domains, assign_clocks
from wsformat.stamp_times import Anchor, Array, Times, crossings, decode_times, is_written

BLOCK_SLOTS = 1 << 20
"""Slots decoded at a time: some 30 MB of work arrays."""
STEP_SAMPLE = 4
"""Iterations of each event that the step of a clock is measured on."""


@dataclass(frozen=True)
class StampLaunch:
    """One launch to decode.

    Attributes:
        slots: ``[cta, role, event, iteration]`` of int32, uint32, int64 or uint64; None when it wrote no stamps.
        meta: one record of ``stamp_times.META`` a CTA, None when there are none.
        kind: stamped or clean.
        trip_count: iterations of the main loop, -1 unknown.
        source: name of the source file.
        facts: more columns of launches.
    """

    slots: Array | None
    meta: Array | None = None
    kind: str = "stamped"
    trip_count: int = -1
    source: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ctas(self) -> int:
        """CTAs of the launch."""
        return len(self.slots) if self.slots is not None else 0 if self.meta is None else len(self.meta)


@dataclass
class Survey:
    """What the first pass over one launch found; arrays are ``[cta, role]`` unless they say otherwise."""

    kept: Array
    wraps: Array
    codes: Array
    used: Array
    """last iteration written of each event, ``[role, event]``, -1 never"""
    step: Array
    """granularity seen by each CTA, ``[cta]``, 0 none"""
    times: list[tuple[int, Array, dict[int, Array]]] = field(default_factory=list)
    """per block: first CTA, base, unfolded CTAs"""
    full_events: Array | None = None
    """events whose last slot is written, counted over the loop, ``[cta, role]``"""


def words(slots: Array, where: str) -> Array:
    """A block of slots as uint32 or int64 in native byte order.

    Raises:
        MalformedInput: a 64-bit value beyond 2**63 - 1.
    """
    native = np.ascontiguousarray(slots, dtype=slots.dtype.newbyteorder("="))
    if native.dtype.itemsize == 4:
        return native.view(np.uint32)
    if native.dtype == np.uint64 and native.size and int(native.max()) > np.iinfo(np.int64).max:
        raise MalformedInput(f"{where}: a stamp exceeds 2^63 - 1")
    return native.view(np.int64)


def blocks(launch: StampLaunch) -> Iterator[tuple[int, Array]]:
    """Blocks of CTAs: index of the first, slots."""
    if launch.slots is None or not len(launch.slots):
        return
    size = max(1, BLOCK_SLOTS // max(1, launch.slots[0].size))
    for first in range(0, len(launch.slots), size):
        yield first, words(launch.slots[first : first + size], launch.source)


def _anchor(launch: StampLaunch, spec: RoleSpec, first: int, count: int) -> Anchor | None:
    if launch.meta is None:
        return None
    start, end = ("g0", "g1") if spec.clock.get("scope") == "device" else ("c0", "c1")
    part = launch.meta[first : first + count]
    return Anchor(part[start].astype(np.int64), part[end].astype(np.int64))


def survey(launch: StampLaunch, spec: RoleSpec, layout: Layout, unwritten: int) -> Survey:
    """First pass over one launch.

    Raises:
        MalformedInput: ambiguous times, or stamps that contradict the records of the CTAs.
    """
    events, groups = loop_events(spec, layout.roles), linked_roles(spec)
    looped = np.zeros((layout.roles, layout.events), dtype=bool)
    for role, kinds in enumerate(events):
        looped[role, list(kinds.looped)] = True

    def one(first: int, slots: Array) -> tuple[Any, ...]:
        anchor = _anchor(launch, spec, first, len(slots))
        times = decode_times(slots, unwritten, anchor, launch.source, first)
        any_cta = times.written.any(axis=0)
        used = np.where(any_cta.any(axis=-1), layout.iterations - 1 - any_cta[..., ::-1].argmax(axis=-1), -1)
        step = np.gcd.reduce(np.abs(times.rel[..., :STEP_SAMPLE]).reshape(len(slots), -1).astype(np.int64), axis=1)
        wide = slots.dtype != np.uint32
        return (
            first,
            times.written.sum(axis=(2, 3), dtype=np.int64),
            np.zeros(times.rel.shape[:2], np.int64) if wide else crossings(times),
            _codes(times, events, groups, launch.trip_count),
            used,
            step,
            (first, times.base, times.unfolded),
            (times.written[..., -1] & looped).sum(axis=-1),
        )

    with ThreadPoolExecutor(2) as pool:
        parts = list(pool.map(lambda block: one(*block), blocks(launch)))
    return Survey(
        kept=np.concatenate([p[1] for p in parts]),
        wraps=np.concatenate([p[2] for p in parts]),
        codes=np.concatenate([p[3] for p in parts]),
        used=np.max([p[4] for p in parts], axis=0),
        step=np.concatenate([p[5] for p in parts]),
        times=[p[6] for p in parts],
        full_events=np.concatenate([p[7] for p in parts]),
    )


def _codes(times: Times, events: Sequence[Any], groups: Sequence[set[int]], trip_count: int) -> Array:
    codes = judge(times.rel, times.written, events, groups, trip_count)
    for position, rel in times.unfolded.items():
        codes[position] = judge(rel[None], times.written[position][None], events, groups, trip_count)[0]
    return codes


def decode(
    launches: Sequence[StampLaunch], spec: RoleSpec, layout: Layout, capture: Mapping[str, Any], *, unwritten: int = 0
) -> tuple[dict[str, TableLike], list[Survey | None]]:
    """Tables of one capture.

    Args:
        launches: in the order of the source.
        spec: names every slot that is written (see ``raw_stamps.complete_spec``).
        layout: size of the buffer of a CTA.
        capture: columns of the row of captures, with ``capture_id``.
        unwritten: value of a slot that nobody wrote.

    Returns:
        the tables, events as a stream, and the survey of each launch (None without stamps).

    Raises:
        MalformedInput
    """
    surveys = [None if k.slots is None else survey(k, spec, layout, unwritten) for k in launches]
    cid = str(capture["capture_id"])
    domains = assign_clocks(
        launches,
        spec,
        cid,
        [None if s is None else (s.step, s.wraps.sum(axis=1)) for s in surveys],
        _slot_bits(launches, spec),
    )
    lanes, first_lane, order = _lanes(launches, surveys, spec, layout, domains, cid)
    rows = [_launch_row(n, k, s, spec, layout, cid) for n, (k, s) in enumerate(zip(launches, surveys, strict=True))]
    names = lanes.column("completeness").unique().to_pylist()
    lost = lanes.column("records_lost").to_numpy()
    facts = {
        "completeness": worst(names),
        "lost_events": -1 if (lost < 0).any() else int(lost.sum()),
        "stamp_set": _stamp_set(spec, surveys),
    }
    tables: dict[str, TableLike] = {
        "captures": [{**spec.capture, **facts, **capture}],
        "launches": rows,
        "lanes": lanes,
        "clocks": domains.clocks,
        "clock_anchors": domains.anchors,
        **spec.table_rows(cid),
    }
    if any(s is not None for s in surveys):
        tables["events"] = lambda: _stream(launches, surveys, spec, layout, unwritten, domains, first_lane, order, cid)
    return tables, surveys


def _slot_bits(launches: Sequence[StampLaunch], spec: RoleSpec) -> int:
    sizes = {k.slots.dtype.itemsize * 8 for k in launches if k.slots is not None}
    return max(sizes, default=int(spec.clock.get("width_bits", 64)))


def _stamp_set(spec: RoleSpec, surveys: Sequence[Survey | None]) -> str:
    """Hash of the stamps that are declared and that the kernel did write, '' when there are none."""
    index = {role["role"]: role["role_index"] for role in spec.roles}
    written = sorted(
        [e["role"], e["event"]]
        for e in spec.events
        if any(s is not None and s.used[index[e["role"]], e["event_index"]] >= 0 for s in surveys)
    )
    return hashlib.sha256(json.dumps(written).encode()).hexdigest()[:16] if written else ""


def _launch_row(
    number: int, launch: StampLaunch, found: Survey | None, spec: RoleSpec, layout: Layout, cid: str
) -> dict[str, Any]:
    trip_count = launch.trip_count
    if trip_count < 0 and found is not None:
        trip_count = _proven_trip_count(found, spec)
    return {
        "kernel": spec.capture.get("kernel", ""),
        "status": "ok",
        "grid_x": launch.ctas,
        "grid_y": 1,
        "grid_z": 1,
        **spec.launch,
        **launch.facts,
        "capture_id": cid,
        "launch": number,
        "kind": launch.kind,
        "tool": "stamps",
        "source": launch.source,
        "trip_count": trip_count,
        "slots": layout.iterations if launch.kind == "stamped" else -1,
    }


def _proven_trip_count(found: Survey, spec: RoleSpec) -> int:
    """Iterations of the main loop when every lane is complete and all loops ran equally often, else -1."""
    index = {role["role"]: role["role_index"] for role in spec.roles}
    counts = {
        int(found.used[index[e["role"]], e["event_index"]]) + 1
        for e in spec.events
        if e["loop"] != ONCE and found.used[index[e["role"]], e["event_index"]] >= 0
    }
    complete = all(NAMES[code] == "complete" for code in np.unique(found.codes).tolist())
    return counts.pop() if complete and len(counts) == 1 else -1


def _lanes(
    launches: Sequence[StampLaunch],
    surveys: Sequence[Survey | None],
    spec: RoleSpec,
    layout: Layout,
    domains: Domains,
    cid: str,
) -> tuple[pa.Table, list[int], list[dict[str, Any]]]:
    """The table lanes, the first lane of each launch, and the roles in the order of a CTA's lanes."""
    order = sorted(spec.roles, key=lambda r: (r["warp"], r["role"].encode()))
    parts, first_lane, lane = [], [], 0
    for number, (launch, found) in enumerate(zip(launches, surveys, strict=True)):
        first_lane.append(lane)
        with_cta = launch.meta is not None
        mine = order if found is not None else []
        width = len(mine) + with_cta
        ctas = launch.ctas
        table = {
            "launch": np.full((ctas, width), number),
            "cta": np.repeat(np.arange(ctas)[:, None], width, axis=1),
            "warp": np.tile([-1] * with_cta + [r["warp"] for r in mine], (ctas, 1)),
            "sm": np.repeat(domains.sm[number][:, None], width, axis=1),
            "clock": np.repeat(domains.clock[number][:, None], width, axis=1),
            "t_start": np.full((ctas, width), -1),
            "t_end": np.full((ctas, width), -1),
            "records_expected": np.zeros((ctas, width), np.int64),
            "records_kept": np.zeros((ctas, width), np.int64),
            "records_lost": np.zeros((ctas, width), np.int64),
            "wraps": np.zeros((ctas, width), np.int64),
        }
        code = np.zeros((ctas, width), np.int8)
        anchor = _anchor(launch, spec, 0, ctas)
        if anchor is not None:
            table["t_start"][:, 0], table["t_end"][:, 0] = anchor.start, anchor.end
        if found is not None and mine:
            columns = [r["role_index"] for r in mine]
            kept, lost, expected = _losses(found, launch.trip_count, layout)
            for name, values in (
                ("records_kept", kept),
                ("records_lost", lost),
                ("records_expected", expected),
                ("wraps", found.wraps),
            ):
                table[name][:, with_cta:] = values[:, columns]
            code[:, with_cta:] = found.codes[:, columns]
        text = {
            "role": (["*cta"] * with_cta + [r["role"] for r in mine]),
            "kind": (["cta"] * with_cta + [r["lane_kind"] for r in mine]),
        }
        arrays: dict[str, Any] = {name: values.ravel() for name, values in table.items()}
        for name, values in text.items():
            labels = ["" if v == "*cta" else v for v in values]
            arrays[name] = _dictionary(np.tile(np.arange(width, dtype=np.int32), ctas), labels)
        arrays["completeness"] = _dictionary(code.ravel().astype(np.int32), list(NAMES))
        arrays["capture_id"] = pa.repeat(cid, ctas * width)
        arrays["lane"] = np.arange(lane, lane + ctas * width)
        parts.append(pa.table(arrays))
        lane += ctas * width
    return pa.concat_tables(parts), first_lane, order


def _dictionary(codes: Array, labels: Sequence[str]) -> pa.Array:
    """Text column: plain strings, looked up by code."""
    return pa.array(list(labels), pa.string()).take(pa.array(codes)) if len(labels) else pa.array([], pa.string())


def _losses(found: Survey, trip_count: int, layout: Layout) -> tuple[Array, Array, Array]:
    complete = np.array([name == "complete" for name in NAMES])[found.codes]
    lost = np.where(complete, 0, -1)
    if trip_count > layout.iterations and found.full_events is not None:
        lost = found.full_events.astype(np.int64) * (trip_count - layout.iterations)
    return found.kept, lost, np.where(lost >= 0, found.kept + lost, -1)


def _slot_order(
    launches: Sequence[StampLaunch],
    surveys: Sequence[Survey | None],
    spec: RoleSpec,
    layout: Layout,
    unwritten: int,
    order: Sequence[Mapping[str, Any]],
) -> list[Array]:
    """Slots of each role in the order in which its fullest lane wrote them; a lane like it needs no sorting."""
    result = []
    for role in order:
        index = role["role_index"]
        declared = sorted(e["event_index"] for e in spec.events if e["role"] == role["role"])
        positions = (np.arange(layout.iterations)[:, None] + np.array(declared, int) * layout.iterations).ravel()
        best = max(
            ((int(s.kept[:, index].max()), -n) for n, s in enumerate(surveys) if s is not None and len(s.kept)),
            default=(0, 0),
        )
        number, found = -best[1], surveys[-best[1]]
        if best[0] and found is not None:
            launch = launches[number]
            cta = int(found.kept[:, index].argmax())
            assert launch.slots is not None
            one = words(launch.slots[cta : cta + 1], launch.source)
            times = decode_times(one, unwritten, _anchor(launch, spec, cta, 1), launch.source, cta)
            rel = times.unfolded.get(0, times.rel[0])[index].ravel()[positions].astype(np.int64)
            rel[~times.written[0, index].ravel()[positions]] = np.iinfo(np.int64).max
            positions = positions[np.argsort(rel, kind="stable")]
        result.append(positions)
    return result


def _stream(
    launches: Sequence[StampLaunch],
    surveys: Sequence[Survey | None],
    spec: RoleSpec,
    layout: Layout,
    unwritten: int,
    domains: Domains,
    first_lane: Sequence[int],
    order: Sequence[dict[str, Any]],
    cid: str,
) -> Iterator[pa.Table]:
    """The events, block by block, sorted by (launch, cta, warp, lane, t)."""
    slot_order = _slot_order(launches, surveys, spec, layout, unwritten, order)
    size = layout.events * layout.iterations
    take = np.concatenate([p + r["role_index"] * size for p, r in zip(slot_order, order, strict=True)])
    labels = sorted({e["event"] for e in spec.events})
    code = np.zeros((layout.roles, layout.events), dtype=np.int8 if len(labels) < 128 else np.int32)
    index = {role["role"]: role["role_index"] for role in spec.roles}
    for e in spec.events:
        code[index[e["role"]], e["event_index"]] = labels.index(e["event"])
    template = Template(
        take=take,
        event=code.ravel()[take // layout.iterations],
        iteration=(take % layout.iterations).astype(np.int32),
        rank=np.repeat(np.arange(len(order)), [len(p) for p in slot_order]),
        roles=[r["role"] for r in order],
        warps=np.array([r["warp"] for r in order], dtype=np.int32),
        events=labels,
    )
    for number, (launch, found) in enumerate(zip(launches, surveys, strict=True)):
        if found is None:
            continue
        with_cta = launch.meta is not None
        for (first, slots), (_, base, unfolded) in zip(blocks(launch), found.times, strict=True):
            yield from _block(
                slots,
                base,
                unfolded,
                unwritten,
                template,
                _Place(
                    cid,
                    number,
                    first,
                    first_lane[number] + with_cta,
                    len(order) + with_cta,
                    domains.sm[number],
                    domains.clock[number],
                ),
            )


@dataclass(frozen=True)
class Template:
    """Positions of a CTA's slots in writing order, and what each one means; arrays are parallel to ``take``."""

    take: Array
    event: Array
    iteration: Array
    rank: Array
    roles: list[str]
    warps: Array
    events: list[str]


@dataclass(frozen=True)
class _Place:
    """Where a block belongs: capture, launch, first CTA, first lane and lanes a CTA of the launch, SM and clock."""

    capture_id: str
    launch: int
    first_cta: int
    first_lane: int
    lanes_per_cta: int
    sm: Array
    clock: Array


def _block(
    slots: Array, base: Array, unfolded: Mapping[int, Array], unwritten: int, template: Template, place: _Place
) -> Iterator[pa.Table]:
    ctas = len(slots)
    flat = slots.reshape(ctas, -1).take(template.take, axis=1)
    written = is_written(flat, unwritten)
    if flat.dtype == np.uint32:
        flat -= (base & 0xFFFFFFFF).astype(np.uint32)[:, None]
        t = flat.astype(np.int64)
        t += base[:, None]
    else:
        t = flat
    for position, rel in unfolded.items():
        t[position] = rel.ravel()[template.take] + base[position]
    roles = len(template.roles)
    if written.all():
        keep: Any = slice(None)
        counts = np.tile(np.bincount(template.rank, minlength=roles), ctas)
        t = t.ravel()
    else:
        keep = np.flatnonzero(written)
        t = t.ravel()[keep]
        starts = np.searchsorted(template.rank, np.arange(roles))
        counts = np.add.reduceat(written, starts, axis=1, dtype=np.int64).ravel() if len(template.take) else []
    event = np.tile(template.event, ctas)[keep]
    iteration = np.tile(template.iteration, ctas)[keep]
    _sort_lanes(t, event, iteration, np.asarray(counts))
    cta = np.repeat(np.arange(ctas, dtype=np.int32), np.asarray(counts).reshape(ctas, roles).sum(axis=1))
    cta += place.first_cta
    rank = np.tile(np.arange(roles, dtype=np.int32), ctas)
    lane = place.first_lane + (np.arange(ctas, dtype=np.int32) + place.first_cta)[:, None] * place.lanes_per_cta
    lane = (lane + np.arange(roles, dtype=np.int32)).ravel()
    rows = len(t)
    zero = np.zeros(rows, dtype=np.int32)
    yield pa.table(
        {
            "capture_id": _coded(np.zeros(rows, np.int8), [place.capture_id]),
            "lane": np.repeat(lane, counts),
            "launch": zero + np.int32(place.launch),
            "cta": cta,
            "sm": place.sm.astype(np.int32)[cta],
            "warp": np.repeat(template.warps[rank], counts),
            "role": _coded(np.repeat(rank.astype(np.int8), counts), template.roles),
            "event": _coded(event, template.events),
            "tile": zero,
            "iteration": iteration,
            "clock": place.clock.astype(np.int32)[cta],
            "t": t,
            "payload": _coded(np.zeros(rows, np.int8), [""]),
        }
    )


def _sort_lanes(t: Array, event: Array, iteration: Array, counts: Array) -> None:
    """Sort by time within each lane, in place; lanes that already are stay untouched."""
    starts = np.concatenate([[0], np.cumsum(counts)])
    drops = np.flatnonzero(t[1:] < t[:-1]) + 1
    lanes = np.unique(np.searchsorted(starts, drops, side="right") - 1)
    for lane in lanes.tolist():
        low, high = int(starts[lane]), int(starts[lane + 1])
        order = low + np.argsort(t[low:high], kind="stable")
        t[low:high], event[low:high], iteration[low:high] = t[order], event[order], iteration[order]


def _coded(codes: Array, labels: list[str]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(labels, pa.string()))


def last_written(launch: StampLaunch, unwritten: int) -> Array:
    """Last iteration of each event that any CTA wrote, ``[role, event]``, -1 never."""

    def one(slots: Array) -> Array:
        seen = is_written(slots, unwritten).any(axis=0)
        last: Array = np.where(seen.any(axis=-1), seen.shape[-1] - 1 - seen[..., ::-1].argmax(axis=-1), -1)
        return last

    with ThreadPoolExecutor(2) as pool:
        parts = list(pool.map(lambda block: one(block[1]), blocks(launch)))
    result: Array = np.max(parts, axis=0)
    return result


def sample_times(launches: Sequence[StampLaunch], spec: RoleSpec, unwritten: int) -> list[tuple[Array, Array]]:
    """Times and presence ``[cta, role, event, iteration]`` of the first block of CTAs of each launch."""
    result = []
    for launch in launches:
        for first, slots in blocks(launch):
            anchor = _anchor(launch, spec, first, len(slots))
            times = decode_times(slots, unwritten, anchor, launch.source, first)
            rel = times.rel
            if times.unfolded:
                rel = rel.astype(np.int64)
                for position, unfolded in times.unfolded.items():
                    rel[position] = unfolded
            result.append((rel, times.written))
            break
    return result
