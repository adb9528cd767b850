"""Buffers of the tag family to a recording: lanes by slot, wraps undone lane by lane, begins paired with ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from wsformat.converters.pairing import pair
from wsformat.converters.recording import Array, Instants, Recording, Spans
from wsformat.converters.tag64.dialects import (
    BEGIN,
    END,
    EVENT_MASK,
    EVENT_SHIFT,
    FINALIZE,
    INSTANT,
    TYPE_MASK,
    Dialect,
    header,
)  # fmt: skip
from wsformat.errors import MalformedInput

TURN = 1 << 32
COUNTS = ("kept", "lost", "orphaned", "unclosed", "backwards", "after", "disagree", "wraps", "full")


def decode(
    buffers: Sequence[tuple[Path, Array]],
    dialect: Dialect,
    stride: int,
    events: Mapping[int, str],
    groups: Mapping[int, str],
) -> Recording:
    """Read buffers, each a launch on a clock of its own.

    Args:
        buffers: files with their words [slot, 2].
        dialect: of all of them.
        stride: slots from a record of a lane to its next, 0 blocks x groups.
        events, groups: names by number.

    Raises:
        MalformedInput: no header, a slot beyond the lanes, or times that cannot be placed.
    """
    recording = Recording()
    total = dict.fromkeys(COUNTS, 0)
    parts: list[tuple[Spans, Instants]] = []
    for path, words in buffers:
        parts.append(_launch(recording, path, words, dialect, stride, events, groups, total))
    fields = list(Spans.__dataclass_fields__)
    recording.spans = Spans(**{f: np.concatenate([getattr(spans, f) for spans, _ in parts]) for f in fields})
    recording.instants = Instants(
        *(np.concatenate([getattr(found, f) for _, found in parts]) for f in ("lane", "name", "t"))
    )
    _account(recording, dialect, total)
    return recording


def _launch(
    recording: Recording, path: Path, words: Array, dialect: Dialect, stride: int, events: Mapping[int, str],
    groups: Mapping[int, str], total: dict[str, int],
) -> tuple[Spans, Instants]:  # fmt: skip
    number, where = len(recording.launches), str(path)
    blocks, per_block = header(words, where)
    lanes, stride = blocks * per_block, stride or blocks * per_block
    if stride < lanes:
        raise MalformedInput(f"{where}: a stride of {stride} for {lanes} lanes", "Lanes would share slots.")
    slot = np.flatnonzero(words.any(axis=1))
    slot = slot[slot > 0]
    lane, turn = (slot - 1) % stride, (slot - 1) // stride
    if (lane >= lanes).any():
        place = int(slot[lane >= lanes][0])
        raise MalformedInput(
            f"{where}: slot {place} (byte {8 * place}) is written, but of none of {lanes} lanes at stride {stride}",
            "Give the stride that the kernel used: -O stride=N.",
        )
    sort = np.lexsort((turn, lane))
    slot, lane = slot[sort], lane[sort]
    tag, low = words[slot, 0], words[slot, 1]
    total["disagree"] += int((dialect.number(tag) != dialect.expected(lane, per_block)).sum())
    written = np.bincount(lane, minlength=lanes)
    room = (len(words) - 1 - np.arange(lanes) + stride - 1) // stride
    kept, ended, t = _in_time(tag, low, lane, lanes, dialect, where, total)
    lane, tag = lane[kept], tag[kept]
    kind, event = tag & np.uint32(TYPE_MASK), ((tag >> np.uint32(EVENT_SHIFT)) & np.uint32(EVENT_MASK)).astype(np.int64)
    sm = np.full(lanes, -1)
    if dialect.holds_sm:
        # A block of more than 12 bits runs into the bits of the SM.
        sm[lane] = np.where(lane // per_block < 1 << dialect.bits, (tag >> np.uint32(24)).astype(np.int64), -1)
    full = (written >= room) & ~ended
    total["full"] += int(full.sum())
    total["wraps"] += int(_wraps(lane, t, lanes).sum())
    wraps = _wraps(lane, t, lanes)
    base = len(recording.lanes)
    for n in range(lanes):
        state = _completeness(dialect, bool(ended[n]), bool(ended.any()), bool(full[n]))
        group = groups.get(n % per_block, f"group {n % per_block}")
        recording.lanes.append(
            {
                "launch": number, "cta": n // per_block, "sm": int(sm[n]), "kind": "thread", "clock": number,
                "name": f"CTA {n // per_block} {group}", "completeness": state, "wraps": int(wraps[n]),
                "records_lost": 0 if state == "complete" else -1,
            }
        )  # fmt: skip
    steps = np.gcd.reduce(t - t.min()) if t.size > 1 else 0
    recording.clocks.append(
        {"scope": "device", "unit": "ns", "width_bits": 32, "step_ticks": int(steps) or -1, "wraps": int(wraps.sum())}
    )
    recording.launches.append(
        {"kind": "traced", "tool": dialect.tool, "source": path.name, "status": "ok", "clock": number}
    )
    return _records(recording, base, lane, kind, event, t, events, total)


def _in_time(
    tag: Array, low: Array, lane: Array, lanes: int, dialect: Dialect, where: str, total: dict[str, int]
) -> tuple[Array, Array, Array]:
    """Which records are of this launch, which lanes have an end, and the times of the records kept.

    A lane writes forward in time. What follows its end, or goes back, lay in the buffer from a launch before.
    """
    count = len(lane)
    starts = np.flatnonzero(np.concatenate([[True], lane[1:] != lane[:-1]])) if count else np.zeros(0, np.int64)
    size = np.diff(np.append(starts, count))
    place = np.arange(count) - np.repeat(starts, size)
    step = np.zeros(count, np.int64)
    step[1:] = (low[1:] - low[:-1]).astype(np.int64)
    step[starts] = 0
    far = step >= TURN // 2
    stop = np.zeros(count, bool)
    if dialect.finalizes:
        stop = (tag & np.uint32(TYPE_MASK)) == FINALIZE
    first_end = np.full(lanes, count + 1)
    np.minimum.at(first_end, lane[stop], place[stop])
    first_back = np.full(lanes, count + 1)
    np.minimum.at(first_back, lane[far], place[far])
    after = place > first_end[lane]
    back = ~after & (place >= first_back[lane])
    total["after"] += int(after.sum())
    total["backwards"] += int(back.sum())
    kept = np.flatnonzero(~after & ~back)
    ended = first_end < np.minimum(first_back, count + 1)
    if not kept.size:
        return kept, ended, np.zeros(0, np.int64)
    climb = np.cumsum(step[kept])
    mine = lane[kept]
    begin = np.flatnonzero(np.concatenate([[True], mine[1:] != mine[:-1]]))
    length = np.diff(np.append(begin, kept.size))
    climb -= np.repeat(climb[begin], length)
    first = low[kept][begin].astype(np.int64)
    ring = np.sort(first)
    gaps = np.diff(np.append(ring, ring[0] + TURN))
    widest = int(gaps.argmax())
    if gaps[widest] <= TURN // 2:
        raise MalformedInput(
            f"{where}: the first records of its lanes lie all around the 32-bit timer, so wraps are ambiguous",
            "The buffer holds records of several launches, or is of another dialect.",
        )
    start = int(ring[(widest + 1) % len(ring)])
    return kept, ended, start + np.repeat((first - start) % TURN, length) + climb


def _wraps(lane: Array, t: Array, lanes: int) -> Array:
    low, high = np.full(lanes, np.iinfo(np.int64).max), np.full(lanes, -1)
    np.minimum.at(low, lane, t)
    np.maximum.at(high, lane, t)
    return np.where(high >= 0, (high >> 32) - (low >> 32), 0)


def _completeness(dialect: Dialect, ended: bool, some_ended: bool, full: bool) -> str:
    """Whether a lane holds all its records: it has an end, or an empty slot follows its last record."""
    if ended:
        return "complete"
    if dialect.finalizes:
        return "truncated" if some_ended else "unknown"
    return "unknown" if full else "complete"


def _records(
    recording: Recording, base: int, lane: Array, kind: Array, event: Array, t: Array, events: Mapping[int, str],
    total: dict[str, int],
) -> tuple[Spans, Instants]:  # fmt: skip
    def named(values: Array, suffix: str = "") -> Array:
        wanted, inverse = np.unique(values, return_inverse=True)
        codes = []
        for value in wanted.tolist():
            text = (events.get(value, f"event_{value}") if value >= 0 else "finalize") + suffix
            if text not in recording.names:
                recording.names.append(text)
            codes.append(recording.names.index(text))
        return np.array(codes, np.int64)[inverse.reshape(-1)] if codes else np.zeros(0, np.int64)

    paired = np.flatnonzero((kind == BEGIN) | (kind == END))
    partner, orphan = pair(lane[paired] << 32 | event[paired], np.arange(paired.size), kind[paired] == END)
    begin = np.flatnonzero(kind[paired] == BEGIN)
    other = partner[begin]
    first, last = paired[begin], paired[np.maximum(other, 0)] if paired.size else paired
    spans = Spans(
        lane=base + lane[first], end_lane=base + lane[first], name=named(event[first]),
        category=np.full(first.size, -1), t0=t[first], t1=np.where(other >= 0, t[last], t[first]), complete=other >= 0,
    )  # fmt: skip
    lost = paired[orphan]
    single = np.flatnonzero((kind == INSTANT) | (kind == FINALIZE))
    names = np.concatenate(
        [named(event[lost], " (end without begin)"), named(np.where(kind[single] == FINALIZE, -1, event[single]))]
    )
    row = np.concatenate([lost, single])
    total["kept"] += len(spans) + len(row)
    total["orphaned"] += int(orphan.sum())
    total["unclosed"] += int((other < 0).sum())
    return spans, Instants(base + lane[row], names, t[row])


def _account(recording: Recording, dialect: Dialect, total: Mapping[str, int]) -> None:
    stale = total["after"] + total["backwards"]
    complete = all(lane["completeness"] == "complete" for lane in recording.lanes)
    recording.losses = {
        "records_expected": total["kept"] if complete else -1,
        "records_kept": total["kept"],
        "records_lost": 0 if complete else -1,
        "orphaned": total["orphaned"],
        "unclosed": total["unclosed"],
        "out_of_order": total["backwards"],
        "wraps_undone": total["wraps"],
        "overhead_corrected": 0,
    }
    left = (
        f"{stale} records are left from an earlier launch of the buffer ({total['after']} after their lane's end, "
        f"{total['backwards']} where time goes back in a lane); they are not kept."
    )
    if stale:
        recording.findings.append(("reused", left))
        recording.losses["ignored"] = left
    if total["disagree"]:
        text = f"{total['disagree']} tags hold another number than {dialect.name} gives their slot; lanes are by slot."
        recording.findings.append(("tag", text))
    if total["full"]:
        text = f"{total['full']} lanes fill the buffer to its end: records after that may be lost."
        recording.findings.append(("full", text))
    if not total["kept"]:
        recording.findings.append(
            ("empty", "The buffer holds no record: the kernel ran without its profiler, or not yet.")
        )
    recording.facts = {"stamp_sink": "global"}
