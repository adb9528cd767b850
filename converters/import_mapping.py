"""What the names of another tool's trace mean: states of spans, roles of lanes, edges; from a preset or a file.

Without a mapping every span is a scope: a name that looks like a wait is not called a stall by guess.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import translate
from functools import cache
from pathlib import Path
from typing import Any

from wsformat.errors import BadRequest, MalformedInput
from wsformat.manifest import parse_json, read_text
from wsformat.tables import read_schema_json

LOOP = "occurrence"
"""Value of loop where iterations are the ordinals of a name in its lane."""

SPAN_COLUMNS = ("state", "wait_on", "barrier", "resource", "loop", "contains_wait", "floor_ticks", "colour")
ROLE_COLUMNS = ("role", "kind", "resource", "warps", "iteration_event", "colour")


@dataclass(frozen=True)
class ImportMapping:
    """A mapping that was checked.

    Attributes:
        values: the JSON values.
        name: a preset's name, or a file's.
        path: the file, None for a preset.
    """

    values: Mapping[str, Any]
    name: str = ""
    path: Path | None = None

    def rules(self, part: str) -> Sequence[Mapping[str, Any]]:
        """The rules of a part: renames, roles, spans or dependencies."""
        found: Sequence[Mapping[str, Any]] = self.values.get(part, ())
        return found

    def role_rule(self, lane: Mapping[str, Any], spans: Iterable[str]) -> int:
        """Number of the first rule of roles that fits a lane, -1 where none does.

        Args:
            lane: name, process, kind, warp.
            spans: names of the spans that begin on it.
        """
        for number, rule in enumerate(self.rules("roles")):
            wanted = rule.get("lanes", {})
            if (
                fits(wanted.get("name"), [str(lane.get("name") or "")])
                and fits(wanted.get("process"), [str(lane.get("process") or "")])
                and fits(wanted.get("kind"), [str(lane.get("kind") or "")])
                and ("warps" not in wanted or lane.get("warp", -1) in wanted["warps"])
                and fits(wanted.get("spans"), spans)
            ):
                return number
        return -1

    def roles(self, used: Sequence[str]) -> list[dict[str, Any]]:
        """Rows of the table roles, for the roles that lanes play."""
        rules: dict[str, Mapping[str, Any]] = {}
        for rule in self.rules("roles"):
            rules.setdefault(rule["role"], rule)
        order = [role for role in rules if role in used]
        return [
            {"kind": "other", "role_index": -1, "display_order": place}
            | {name: rules[role][name] for name in ROLE_COLUMNS if name in rules[role]}
            for place, role in enumerate(order)
        ]

    def span_rule(self, role: str, span: str) -> int:
        """Number of the first rule of spans that fits one kind of span, -1 where none does."""
        for number, rule in enumerate(self.rules("spans")):
            if fits(rule["span"], [span]) and fits(rule.get("role"), [role]):
                return number
        return -1

    def span(self, role: str, span: str) -> dict[str, Any]:
        """State and the other columns of span_types for one kind of span."""
        number = self.span_rule(role, span)
        rule = self.rules("spans")[number] if number >= 0 else {}
        return {"role": role, "span": span, "state": "scope", "loop": LOOP} | {
            name: rule[name] for name in SPAN_COLUMNS if name in rule
        }

    def dependencies(self, points: set[tuple[str, str]]) -> tuple[list[dict[str, Any]], list[str]]:
        """Rows of the table dependencies, and what could not be used because the trace has no such point."""
        rows, missing = [], []
        for edge in self.rules("dependencies"):
            for side in ("producer", "consumer"):
                point = (edge[f"{side}_role"], edge[f"{side}_event"])
                if point not in points:
                    missing.append(f"{point[0]} {point[1]}")
                    break
            else:
                plain = {k: v for k, v in edge.items() if not k.startswith("_")}
                rows.append({"producer_step": 0, "consumer_step": 0, "completion": "signal", "scope": "cta"} | plain)
        return rows, missing


EMPTY = ImportMapping({})


def fits(globs: Any, names: Iterable[str]) -> bool:
    """Whether one of the globs fits one of the names; None fits all."""
    if globs is None:
        return True
    wanted = [globs] if isinstance(globs, str) else globs
    return any(_pattern(glob).match(name) for name in names for glob in wanted)


@cache
def _pattern(glob: str) -> re.Pattern[str]:
    return re.compile(translate(glob))


@cache
def presets() -> dict[str, Any]:
    """The mappings that come with the library, by name."""
    return dict(read_schema_json("import_mappings.json"))


def load(value: Any) -> ImportMapping:
    """The mapping that an option names.

    Args:
        value: None, a preset's name, a JSON or TOML file, or JSON values.

    Raises:
        BadRequest: no such preset or file.
        MalformedInput: the file is no valid mapping; all problems at once.
    """
    if value is None or value == "":
        return EMPTY
    if isinstance(value, Mapping):
        return _checked(dict(value), "mapping", None)
    if str(value) in presets():
        return ImportMapping(presets()[str(value)], str(value))
    path = Path(value)
    if not path.is_file():
        raise BadRequest(
            f"mapping {str(value)!r}: no preset of that name and no such file", f"Presets: {', '.join(presets())}."
        )
    text = read_text(path)
    if path.suffix == ".toml":
        try:
            data: Any = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise MalformedInput(f"{path}: no TOML: {error}") from error
    else:
        data = parse_json(text, str(path))
    return _checked(data, path.name, path)


def _checked(data: Any, name: str, path: Path | None) -> ImportMapping:
    from jsonschema import Draft202012Validator

    faults = Draft202012Validator(read_schema_json("import_mapping.schema.json")).iter_errors(data)
    problems = [f"{fault.json_path}: {fault.message}" for fault in sorted(faults, key=lambda f: f.json_path)]
    if problems:
        raise MalformedInput(
            f"{path or name}: no valid mapping: {'; '.join(problems[:5])}"
            + (f" and {len(problems) - 5} more" if len(problems) > 5 else ""),
            "The form is in schema/import_mapping.schema.json.",
        )
    return ImportMapping(data, name, path)
