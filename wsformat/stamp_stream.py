"""The events of stamp buffers as a stream of Arrow tables, in the sort order of the standard."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from wsformat.errors import MalformedInput
from wsformat.iteration_window import IterationWindow
from wsformat.rolespec import ONCE, Layout, RoleSpec
from wsformat.stamp_clocks import Domains
from wsformat.stamp_launch import StampLaunch, Survey, anchor_of, words
from wsformat.stamp_times import Array, decode_times, is_written


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
            one = words(launch, cta, 1)
            times = decode_times(one, unwritten, anchor_of(launch, spec, cta, 1), launch.source, cta)
            rel = times.unfolded.get(0, times.rel[0])[index].ravel()[positions].astype(np.int64)
            rel[~times.written[0, index].ravel()[positions]] = np.iinfo(np.int64).max
            positions = positions[np.argsort(rel, kind="stable")]
        result.append(positions)
    return result


def stream(
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
    loops = sorted({e["loop"] for e in spec.events})
    loop = np.zeros((layout.roles, layout.events), dtype=np.int32)
    for e in spec.events:
        loop[index[e["role"]], e["event_index"]] = loops.index(e["loop"])
    template = Template(
        take=take,
        event=code.ravel()[take // layout.iterations],
        slot=(take % layout.iterations).astype(np.int32),
        loop=loop.ravel()[take // layout.iterations],
        once=loop.ravel()[take // layout.iterations] == (loops.index(ONCE) if ONCE in loops else -1),
        roles=[r["role"] for r in order],
        warps=np.array([r["warp"] for r in order], dtype=np.int32),
        events=labels,
    )
    for number, (launch, found) in enumerate(zip(launches, surveys, strict=True)):
        if found is None:
            continue
        with_cta = launch.meta is not None
        first = 0
        for base, unfolded in found.times:
            slots = words(launch, first, len(base))
            kept = found.kept[first : first + len(slots), [r["role_index"] for r in order]]
            place = Place(
                capture_id=cid,
                source=launch.source,
                launch=number,
                first_lane=first_lane[number] + with_cta + first * (len(order) + with_cta),
                lanes_per_cta=len(order) + with_cta,
                first_cta=first,
                sm=domains.sm[number],
                clock=domains.clock[number],
                cta=launch.cta_index,
                window=launch.window,
                tile_trips=np.array([launch.tiles.get(name, 0) for name in loops], np.int32),
            )
            yield _block(slots, base, unfolded, unwritten, kept, template, place)
            first += len(base)


@dataclass(frozen=True)
class Template:
    """Positions of a CTA's slots in writing order, and what each one means; arrays are parallel to ``take``."""

    take: Array
    event: Array
    slot: Array
    loop: Array
    once: Array
    roles: list[str]
    warps: Array
    events: list[str]


@dataclass(frozen=True)
class Place:
    """Where a block of CTAs belongs; ``cta`` (index in the grid), ``sm`` and ``clock`` by CTA of the launch.

    ``tile_trips``: by loop, how many iterations make one tile of a persistent kernel, 0 where there are no tiles.
    """

    capture_id: str
    source: str
    launch: int
    first_cta: int
    first_lane: int
    lanes_per_cta: int
    cta: Array
    sm: Array
    clock: Array
    window: IterationWindow
    tile_trips: Array


def _block(
    slots: Array,
    base: Array,
    unfolded: Mapping[int, Array],
    unwritten: int,
    kept: Array,
    template: Template,
    place: Place,
) -> pa.Table:
    """Events of a block of CTAs; ``kept`` counts those of each lane, ``[cta, lane]``."""
    ctas, counts = len(slots), kept.ravel()
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
    keep: Any = slice(None) if written.all() else np.flatnonzero(written)
    t = t.ravel()[keep]
    if len(t) != counts.sum():
        raise MalformedInput(f"{place.source}: changed while it was read", "Import it again.")
    event = np.tile(template.event, ctas)[keep]
    # Outside of every loop the slot is the iteration: the window is one of loops.
    iterations = template.slot
    if not place.window.whole:
        iterations = np.where(template.once, template.slot, place.window.iterations(template.slot)).astype(np.int32)
    iteration = np.tile(iterations, ctas)[keep]
    tile = np.zeros(len(t), np.int32)
    if place.tile_trips.any():
        trips = np.tile(place.tile_trips[template.loop], ctas)[keep]
        np.floor_divide(iteration, trips, out=tile, where=trips > 0)
    _sort_lanes(counts, t, event, iteration, tile)
    per_cta = kept.sum(axis=1)
    number = np.arange(ctas, dtype=np.int32)
    rank = np.tile(np.arange(kept.shape[1], dtype=np.int32), ctas)
    lane = np.int32(place.first_lane) + np.repeat(number * np.int32(place.lanes_per_cta), kept.shape[1]) + rank
    rows = len(t)
    here = slice(place.first_cta, place.first_cta + ctas)
    nothing = np.zeros(rows, np.int8)
    return pa.table(
        {
            "capture_id": _coded(nothing, [place.capture_id]),
            "lane": np.repeat(lane, counts),
            "launch": np.full(rows, place.launch, np.int32),
            "cta": np.repeat(place.cta[here], per_cta),
            "sm": np.repeat(place.sm[here].astype(np.int32), per_cta),
            "warp": np.repeat(template.warps[rank], counts),
            "role": _coded(
                np.repeat(rank.astype(np.int8 if kept.shape[1] < 128 else np.int32), counts), template.roles
            ),
            "event": _coded(event, template.events),
            "tile": tile,
            "iteration": iteration,
            "clock": np.repeat(place.clock[here].astype(np.int32), per_cta),
            "t": t,
            "payload": _coded(nothing, [""]),
        }
    )


def _sort_lanes(counts: Array, t: Array, *others: Array) -> None:
    """Sort by time within each lane, in place; lanes that already are stay untouched."""
    starts = np.concatenate([[0], np.cumsum(counts)])
    drops = np.flatnonzero(t[1:] < t[:-1]) + 1
    drops = drops[~np.isin(drops, starts)]
    if not drops.size:
        return
    lanes = np.unique(np.searchsorted(starts, drops, side="right") - 1)
    rows = np.flatnonzero(np.repeat(np.isin(np.arange(len(counts)), lanes), counts))
    order = rows[np.lexsort((t[rows], np.repeat(np.arange(len(lanes)), counts[lanes])))]
    for values in (t, *others):
        values[rows] = values[order]


def _coded(codes: Array, labels: list[str]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(labels, pa.string()))
