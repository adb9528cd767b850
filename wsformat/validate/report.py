"""What a validation found: problems, one a code, and the checks that could not run."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from wsformat.validate.rules import rules

LEVELS = {"E": "error", "W": "warning", "I": "hint"}
LISTED_AT_MOST = 12


@dataclass(frozen=True, slots=True)
class Problem:
    """All offences against one rule.

    Attributes:
        code: such as ``E403``.
        word: such as ``TIME_NOT_MONOTONIC``.
        level: E (a MUST is broken), W (a SHOULD), I (a hint).
        table: table of the first offence; '' none.
        row: where the first offence is: key of the row, file or place in the manifest; '' the whole table.
        column: its column; '' none.
        count: number of offences (rows, files, columns or keys).
        message: what is wrong at the first one.
    """

    code: str
    word: str
    level: str
    table: str
    row: str
    column: str
    count: int
    message: str

    def text(self) -> str:
        """One line."""
        where = ".".join(part for part in (self.table, self.column) if part)
        place = ", ".join(part for part in (where, self.row) if part)
        times = f" ({self.count} times)" if self.count > 1 else ""
        return f"{self.code} {self.word}{times}: {place + ': ' if place else ''}{self.message}"


@dataclass(frozen=True, slots=True)
class NotRun:
    """A check that could not run, or only on part of what it is about."""

    code: str
    word: str
    reason: str


@dataclass(frozen=True, slots=True)
class Report:
    """Result of :func:`wsformat.validate.validate`.

    Attributes:
        path: the bundle; '' when it is in memory.
        version: format version that the manifest states; '' unknown.
        data: whether rows were read too (else manifest and footers only).
        problems: one entry a code, in order of the number.
        not_run: checks that could not run, with the reason.
        ignored: codes that the caller chose not to see.
        checks: number of rules that ran in full.
    """

    path: str
    version: str
    data: bool
    problems: tuple[Problem, ...]
    not_run: tuple[NotRun, ...]
    ignored: tuple[str, ...] = ()
    checks: int = 0

    @property
    def ok(self) -> bool:
        """No error: the bundle conforms, as far as the checks ran."""
        return not any(problem.level == "E" for problem in self.problems)

    @property
    def clean(self) -> bool:
        """Neither error nor warning, and every check ran."""
        return not self.not_run and not any(problem.level in "EW" for problem in self.problems)

    @property
    def codes(self) -> list[str]:
        """Codes of the problems, in order."""
        return [problem.code for problem in self.problems]

    def count(self, level: str) -> int:
        """Number of codes of one level."""
        return sum(problem.level == level for problem in self.problems)

    def to_json(self) -> dict[str, Any]:
        """As JSON values; each problem with its requirement."""
        return {
            "path": self.path,
            "version": self.version,
            "mode": "data" if self.data else "metadata",
            "ok": self.ok,
            "errors": self.count("E"),
            "warnings": self.count("W"),
            "hints": self.count("I"),
            "checks": self.checks,
            "problems": [{**asdict(p), "requirement": rules()[p.code].title} for p in self.problems],
            "not_run": [asdict(entry) for entry in self.not_run],
            "ignored": list(self.ignored),
        }

    def text(self) -> str:
        """For people: one line a code, then what did not run, then the verdict."""
        lines = [problem.text() for problem in self.problems]
        reasons: dict[str, list[str]] = {}
        for entry in self.not_run:
            reasons.setdefault(entry.reason, []).append(entry.code)
        lines += [f"not checked: {_listed(codes)}: {reason}" for reason, codes in reasons.items()]
        counts = ", ".join(
            f"{self.count(level)} {word}{'' if self.count(level) == 1 else 's'}" for level, word in LEVELS.items()
        )
        verdict = "conforms" if self.ok else "does not conform"
        rest = f" to wsformat {self.version}" if self.version else ""
        mode = "" if self.data else "; rows were not read"
        name = f"{self.path}: " if self.path else ""
        lines.append(f"{name}{verdict}{rest}: {counts}; {self.checks} of {len(rules())} checks ran{mode}")
        return "\n".join(lines)


def _listed(codes: list[str]) -> str:
    """Codes by name, or their number when they are many (the JSON form names them all)."""
    return ", ".join(codes) if len(codes) <= LISTED_AT_MOST else f"{len(codes)} rules ({codes[0]} to {codes[-1]})"


@dataclass
class Findings:
    """Collects offences while checks run.

    Attributes:
        ignore: codes that are dropped.
    """

    ignore: Collection[str] = ()
    _found: dict[str, dict[tuple[str, str], Problem]] = field(default_factory=dict)
    _not_run: dict[str, NotRun] = field(default_factory=dict)

    def add(self, code: str, message: str, *, table: str = "", row: str = "", column: str = "", count: int = 1) -> None:
        """Note offences against a rule; the first one noted is the one that is shown."""
        rule = rules()[code]
        seen = self._found.setdefault(code, {})
        before = seen.get((table, column))
        if before is None:
            seen[table, column] = Problem(code, rule.word, rule.level, table, clip(row), column, count, clip(message))
        else:
            seen[table, column] = replace(before, count=before.count + count)

    def withdraw(self, code: str, table: str, column: str) -> None:
        """Drop what was noted of a column: another code says it better."""
        self._found.get(code, {}).pop((table, column), None)

    def has(self, code: str) -> bool:
        """Whether the rule was broken."""
        return bool(self._found.get(code))

    def cannot_run(self, code: str, reason: str) -> None:
        """Note that a check could not run (the first reason counts)."""
        self._not_run.setdefault(code, NotRun(code, rules()[code].word, clip(reason)))

    def report(self, path: str, version: str, *, data: bool) -> Report:
        """Everything noted so far."""
        problems = []
        for code in rules():
            if self.has(code) and code not in self.ignore:
                places = list(self._found[code].values())
                problems.append(replace(places[0], count=sum(place.count for place in places)))
        not_run = tuple(self._not_run[code] for code in rules() if code in self._not_run and code not in self.ignore)
        checks = sum(code not in self._not_run and (data or rule.mode == "metadata") for code, rule in rules().items())
        return Report(path, version, data, tuple(problems), not_run, tuple(sorted(self.ignore)), checks)


def clip(text: str, length: int = 300) -> str:
    """One printable line of bounded length: what a hostile file says must not flood or steer a terminal."""
    line = "".join(c if c.isprintable() else "\ufffd" for c in text.replace("\n", " "))
    return line if len(line) <= length else line[: length - 3] + "..."
