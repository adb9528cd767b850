"""Passes: which stamps one build of a kernel makes. Few stamps a launch disturb it little; several passes show all."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from wsformat.errors import BadRequest
from wsformat.rolespec import RoleSpec

SINKS = {"global": 0, "shared": 1, "registers": 2}
SINK_COLUMN = {"global": "global", "shared": "shared", "registers": "local"}
"""Sink as the table captures names it."""
CLOCKS = {"cycles32": 0, "cycles64": 1, "nanoseconds": 2}
MAX_EVENTS = 64


@cache
def header_settings() -> tuple[str, ...]:
    """Macros of the stamp header that a build can set, in its order."""
    header = (files("wsformat.kernels") / "wsformat_stamp.cuh").read_text(encoding="utf-8")
    return tuple(re.findall(r"^#ifndef (WSF_\w+)$", header, re.MULTILINE))


def from_environment(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Settings of the stamp header that the environment gives, to hand to a compiler as macros.

    For build scripts that switch stamps on or off without an edit: ``WSF_STAMPS=1 python build.py``. Nothing reads the
    environment unless it calls this. For nvcc, ``NVCC_APPEND_FLAGS=-DWSF_STAMPS=1`` does the same.
    """
    given = os.environ if environ is None else environ
    return {name: given[name] for name in header_settings() if given.get(name, "") != ""}


@dataclass(frozen=True)
class StampPass:
    """One build of the kernel.

    Attributes:
        name: for people.
        events: mask of events by role index, bit e for event e; roles that are missing make no stamps.
        macros: more settings of the stamp header, such as ``{"WSF_BRANCH": 1}``.
    """

    name: str
    events: Mapping[int, int]
    macros: Mapping[str, Any]

    @property
    def stamps(self) -> int:
        """How many kinds of stamps it makes."""
        return sum(mask.bit_count() for mask in self.events.values())

    def defines(self) -> dict[str, Any]:
        """Macros to compile with. Keeps start and end records when there are no stamps."""
        parts = [f"role=={role}?{mask:#x}ull:" for role, mask in sorted(self.events.items()) if mask]
        return {"WSF_STAMPS": 1, "WSF_EVENT_MASK": f"({''.join(parts)}0ull)", **self.macros}


def clean(macros: Mapping[str, Any] | None = None) -> StampPass:
    """The build without stamps: start and end records only."""
    return StampPass("clean", {}, dict(macros or {}))


def standard(spec: RoleSpec, names: Sequence[str], macros: Mapping[str, Any] | None = None) -> list[StampPass]:
    """Passes from a role spec.

    Args:
        spec: its spans and dependencies say which stamps belong together.
        names: ``all``; ``waits``: both ends of the waits with the signals that they need, so that they can be
            judged; ``work``: both ends of the other spans; ``waits:ROLE``, ``work:ROLE``: of one role (with the
            signals of the others).
        macros: of every pass.

    Raises:
        BadRequest: an unknown name or role.
    """
    return [StampPass(name, _masks(spec, name), dict(macros or {})) for name in names]


def _masks(spec: RoleSpec, name: str) -> dict[int, int]:
    kind, _, only = name.partition(":")
    if kind not in ("all", "waits", "work"):
        raise BadRequest(f"no pass {name!r}", "Passes: all, waits, work, waits:ROLE, work:ROLE.")
    index = {role["role"]: role["role_index"] for role in spec.roles}
    if only and only not in index:
        raise BadRequest(f"pass {name!r}: no role {only!r}", f"Roles: {', '.join(index)}.")
    points = set()
    if kind == "all":
        points |= {(e["role"], e["event"]) for e in spec.events}
    for span in spec.spans:
        if (span["state"] == "stall") == (kind == "waits"):
            points |= {(span["role"], span["begin_event"]), (span["role"], span["end_event"])}
    if only:
        points = {(role, event) for role, event in points if role == only}
    if kind == "waits":
        points |= {
            (edge["producer_role"], edge["producer_event"])
            for edge in spec.dependencies
            if (edge["consumer_role"], edge["consumer_event"]) in points
        }
    masks: dict[int, int] = {}
    for event in spec.events:
        if (event["role"], event["event"]) in points:
            if event["event_index"] >= MAX_EVENTS:
                raise BadRequest(f"event {event['event']!r}: the stamp header has {MAX_EVENTS} events a role at most")
            role = index[event["role"]]
            masks[role] = masks.get(role, 0) | 1 << event["event_index"]
    return masks
