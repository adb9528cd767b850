"""What a source page adds to a digest: where the stalled warps stand, without those that are merely parked."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wsformat.bundle import Bundle
from wsformat.derive import run
from wsformat.metrics import Stalls, composition, families
from wsformat.viewers.digest_choice import Launch
from wsformat.viewers.digest_rules import rules

RENAMED = ("wgmma_drain", "mbarrier_wait", "cta_barrier")
"""Places that say more than the stall reason that is sampled there."""


@dataclass(frozen=True, slots=True)
class Line:
    """One instruction with stalled samples.

    Attributes:
        address, text: of the instruction.
        place: kind of place.
        role: guessed from the nearest telling instruction; 'other' when none is near.
        samples: stalled samples, parked ones not counted.
    """

    address: str
    text: str
    place: str
    role: str
    samples: float


@dataclass(frozen=True, slots=True)
class SourceView:
    """A kernel's stalled samples by reason, place and role.

    Attributes:
        launch: capture and number of the source page's launch.
        stalls: composition without parked warps; a place replaces the reason where it says more.
        places: percent of the stalled, not parked samples.
        roles: percent of the stalled, not parked samples.
        parked: percent of all stalled samples that were left out.
        samples: stalled samples that count.
        lines: most samples first.
        file: source file, '' unknown.
    """

    launch: Launch
    stalls: Stalls
    places: Mapping[str, float]
    roles: Mapping[str, float]
    parked: float
    samples: float
    lines: Sequence[Line] = field(default_factory=tuple)
    file: str = ""


def plain_name(kernel: str) -> str:
    """A kernel's name without what pages print differently: return type, casts and blanks."""
    name = re.sub(r"^(?:void|int|float|double|bool)\s+", "", kernel)
    name = re.sub(r"\((?:bool|int|unsigned int|unsigned|long|char|short)\)(?=[-\d])", "", name)
    return re.sub(r"\s+", "", name)


def source_launch(connection: Any, bundle: Bundle, launch: Launch) -> Launch | None:
    """The launch of a source page that shows the same launch; None without one.

    The n-th launch of a kernel among the counted ones is the n-th block of that kernel on the source page.
    """
    rows = run(
        connection,
        "SELECT DISTINCT capture_id, launch, scope FROM metrics WHERE scope IN ('kernel', 'instruction')",
    ).to_pylist()
    have: dict[str, set[Launch]] = {"kernel": set(), "instruction": set()}
    for row in rows:
        have[row["scope"]].add((row["capture_id"], row["launch"]))
    if launch in have["instruction"]:
        return launch
    names = {(r["capture_id"], r["launch"]): plain_name(r["kernel"]) for r in bundle.table("launches").to_pylist()}
    name = names.get(launch, "")
    shown = [pair for pair in sorted(have["instruction"]) if names.get(pair) == name]
    counted = [pair for pair in sorted(have["kernel"] - have["instruction"]) if names.get(pair) == name]
    if not shown or launch not in counted:
        return None
    return shown[min(counted.index(launch), len(shown) - 1)]


def source_view(connection: Any, bundle: Bundle, launch: Launch) -> SourceView | None:
    """Stalled samples of a source page; None when it has none.

    Args:
        connection: over the bundle.
        bundle: with rows of scope instruction.
        launch: capture and number of the source page's launch.
    """
    columns = {c: r for r, entry in families()["stall_reasons"].items() for c in entry["source_page"]}
    rows = run(
        connection,
        "SELECT scope_id, name, text, base_value FROM metrics "
        "WHERE capture_id = $capture AND launch = $launch AND scope = 'instruction' "
        "AND ordinal = 0 AND (name = 'Source' OR name LIKE 'stall_%') ORDER BY scope_id, name",
        {"capture": launch[0], "launch": launch[1]},
    ).to_pylist()
    code: dict[str, str] = {}
    sampled: dict[str, dict[str, float]] = {}
    for row in rows:
        if row["name"] == "Source":
            code[row["scope_id"]] = row["text"].strip()
        elif row["name"] in columns and row["base_value"]:
            reason = columns[row["name"]]
            at = sampled.setdefault(row["scope_id"], {})
            at[reason] = at.get(reason, 0.0) + row["base_value"]
    order = sorted(code, key=_address)
    if not order or not sampled:
        return None
    texts = [code[address] for address in order]
    roles = guess_roles(texts)
    reasons: dict[str, float] = defaultdict(float)
    places: dict[str, float] = defaultdict(float)
    by_role: dict[str, float] = defaultdict(float)
    unstalled: dict[str, float] = defaultdict(float)
    parked = 0.0
    lines = []
    for number, address in enumerate(order):
        here: dict[str, float] = defaultdict(float)
        for reason, samples in sampled.get(address, {}).items():
            if not families()["stall_reasons"][reason]["is_stall"]:
                unstalled[reason] += samples
                continue
            place, drop = find_place(texts, number, address, reason)
            if drop:
                parked += samples
                continue
            reasons[place if place in RENAMED else reason] += samples
            here[place] += samples
        if here:
            for place, samples in here.items():
                places[place] += samples
            by_role[roles[number]] += sum(here.values())
            most = max(here, key=lambda place: here[place])
            lines.append(Line(address, texts[number], most, roles[number], sum(here.values())))
    total = sum(reasons.values())
    if total == 0:
        return None
    found = {reason: (f"source page: {_column(reason)}", value) for reason, value in reasons.items()}
    every = found | {reason: (f"source page: {_column(reason)}", value) for reason, value in unstalled.items()}
    why = "samples of the source page, without warps that wait to exit"
    return SourceView(
        launch=launch,
        stalls=composition("source_page", "sample", found, every, why),
        places={name: 100 * value / total for name, value in _ranked(places)},
        roles={name: 100 * value / total for name, value in _ranked(by_role)},
        parked=100 * parked / (total + parked),
        samples=total,
        lines=tuple(sorted(lines, key=lambda line: -line.samples)),
        file=_file(bundle, launch),
    )


def _ranked(shares: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(shares.items(), key=lambda item: (-item[1], item[0]))


def _column(reason: str) -> str:
    entry = families()["stall_reasons"].get(reason)
    return entry["source_page"][0] if entry else f"samples at {reason}"


def _address(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        return -1


def find_place(texts: Sequence[str], number: int, address: str, reason: str) -> tuple[str, bool]:
    """Kind of place of a stalled sample, and whether the sample is to be left out."""
    text = texts[number]
    before = texts[number - 1] if number else ""
    for place in rules()["places"]:
        if "reasons" in place and reason not in place["reasons"]:
            continue
        if "match" in place and not re.search(place["match"], text):
            continue
        if "after" in place and not re.search(place["after"], before):
            continue
        if place.get("self") and address.lower() not in text.lower():
            continue
        return place["place"], bool(place.get("drop"))
    return "other", False


def guess_roles(texts: Sequence[str]) -> list[str]:
    """Role of each instruction: that of the nearest telling instruction (wgmma, TMA load, exp, store) in reach."""
    known = rules()
    told = [
        (number, entry["role"])
        for number, text in enumerate(texts)
        for entry in known["roles"]
        if re.search(entry["match"], text)
    ]
    result = []
    for number in range(len(texts)):
        near = min(told, key=lambda item: abs(item[0] - number), default=(10**9, "other"))
        result.append(near[1] if abs(near[0] - number) <= known["role_reach"] else "other")
    return result


def _file(bundle: Bundle, launch: Launch) -> str:
    for row in bundle.table("attributes").to_pylist():
        here = row["capture_id"] == launch[0] and row["table_name"] == "launches" and row["row_key"] == str(launch[1])
        if here and row["name"] == "ncu.source_file":
            return str(row["value"])
    return ""
