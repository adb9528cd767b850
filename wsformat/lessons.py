"""Lessons: what a budget missed, kept in a file of JSON lines, so that the next budget is reminded.

Each line is one lesson: ``date``, ``kernel``, ``task``, ``arch``, ``gpu``, ``dtype``, ``cause``, ``subject`` (role,
resource or barrier), ``resource``, ``cycles`` (an iteration), ``text`` (what to add) and ``capture_id``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from wsformat.errors import MalformedInput, WsformatError


@dataclass(frozen=True, slots=True)
class Lesson:
    """What a model missed, and what to add to the next one."""

    date: str
    kernel: str
    task: str
    arch: str
    gpu: str
    dtype: str
    cause: str
    subject: str
    resource: str
    cycles: float
    text: str
    capture_id: str

    def line(self) -> str:
        """As one line for people."""
        where = ", ".join(w for w in (self.kernel or self.task, self.dtype, self.gpu or self.arch) if w)
        return f"{self.date} ({where}): {self.text}"


def read(path: Path) -> list[Lesson]:
    """Every lesson of a file; none when it is not there.

    Raises:
        MalformedInput: a line that is no lesson.
    """
    if not path.exists():
        return []
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise MalformedInput(f"{path}: cannot be read as lessons: {error}") from error
    names = {f.name for f in fields(Lesson)}
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            raw = json.loads(line)
            cycles = float(raw.get("cycles") or 0.0)
            words = {n: str(raw.get(n, "")) for n in names - {"cycles"}}
        except (ValueError, TypeError, AttributeError) as error:
            raise MalformedInput(f"{path}:{number}: is no lesson: {error}", "One JSON object a line.") from error
        if not words["text"]:
            raise MalformedInput(f"{path}:{number}: a lesson without text", "One JSON object a line.")
        found.append(Lesson(cycles=cycles, **words))
    return found


def append(path: Path, lessons: Sequence[Lesson]) -> int:
    """Add lessons to a file, except those it has (same capture, cause and subject); gives how many were added.

    Raises:
        MalformedInput: the file holds something else. WsformatError: it cannot be written.
    """
    known = {(x.capture_id, x.cause, x.subject) for x in read(path)}
    new = [x for x in lessons if (x.capture_id, x.cause, x.subject) not in known]
    if new:
        try:
            with path.open("a", encoding="utf-8") as file:
                file.write("".join(json.dumps(asdict(x), ensure_ascii=False) + "\n" for x in new))
        except OSError as error:
            raise WsformatError(f"{path}: cannot be written: {error.strerror or error}") from error
    return len(new)


def fitting(lessons: Sequence[Lesson], budget: Mapping[str, Any], arch: str) -> list[Lesson]:
    """Lessons that fit a budget: of the same kernel or task, or of the same architecture about a resource it names.

    Args:
        lessons: all of them.
        budget: content of a budget file.
        arch: of its GPU; '' unknown.
    """
    resources = {entry["resource"] for entry in budget["resources"]}
    kernel, task = budget.get("kernel", ""), budget.get("task", "")
    return [
        x
        for x in lessons
        if (kernel and x.kernel == kernel)
        or (task and x.task == task)
        or (arch and plain(x.arch) == plain(arch) and x.resource in resources)
    ]


def plain(arch: str) -> str:
    """An architecture without the suffix for arch-specific features."""
    return arch.rstrip("af") if arch.startswith("sm_") else arch
