"""Budget files: what one iteration of a kernel asks of each resource, read and checked.

The form is ``schema/budget.schema.json``; JSON or TOML. Budgets that ship with the package lie in ``schema/budgets``.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from wsformat.errors import BadRequest, MalformedInput, UnsupportedVersion
from wsformat.expressions import Symbol, evaluate
from wsformat.tables import read_schema_json, vocabularies

VERSION_KEY = "wsformat_budget"
MOST_BYTES = 1_000_000
FACTS = ("gpu", "form_factor", "clock_mhz", "ctas_per_sm", "dtype")
"""Keys of a budget that can be set like symbols."""
RESERVED = ("dtype",)


@dataclass(frozen=True)
class Budget:
    """A budget as it is calculated with.

    Attributes:
        raw: the file's content, with what was set.
        settings: what was set, by name.
        sha256: of the file's bytes.
        file: name of the file, without its folder.
    """

    raw: Mapping[str, Any]
    sha256: str
    file: str
    settings: Mapping[str, Symbol] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Its name, with what was set: fa4_forward dtype=fp8."""
        said = " ".join(f"{key}={value:g}" if isinstance(value, float) else f"{key}={value}"
                        for key, value in self.settings.items())  # fmt: skip
        return f"{self.raw['name']} {said}".strip()

    def with_settings(self, settings: Mapping[str, Symbol]) -> Budget:
        """The same budget with symbols, or any of :data:`FACTS`, changed.

        Raises:
            BadRequest: a name that it does not have.
        """
        raw = dict(self.raw)
        symbols = dict(raw.get("symbols", {}))
        for key, value in settings.items():
            if key in FACTS:
                raw[key] = value
            elif key in symbols:
                symbols[key] = value
            else:
                known = [*symbols, *FACTS]
                near = difflib.get_close_matches(key, known, 1)
                raise BadRequest(
                    f"budget {raw['name']}: no symbol {key!r}",
                    (f"Do you mean {near[0]}? " if near else "") + f"There are {', '.join(known)}.",
                )
        if symbols:
            raw["symbols"] = symbols
        check(raw, self.file)
        return Budget(raw, self.sha256, self.file, {**self.settings, **settings})

    def symbols(self) -> dict[str, Symbol]:
        """Every symbol that formulas may use: dtype, symbols, and what ``let`` computes.

        Raises:
            MalformedInput: a text names a symbol that is not there, or a formula fails.
        """
        found: dict[str, Symbol] = {}
        if self.raw.get("dtype"):
            found["dtype"] = self.raw["dtype"]
        pending = dict(self.raw.get("symbols", {}))
        for name, value in pending.items():
            if name in RESERVED:
                raise MalformedInput(f"{self.file}: symbol {name}: use the key {name} of the budget")
            try:
                found[name] = value if isinstance(value, str) else float(value)
            except OverflowError as error:
                raise MalformedInput(f"{self.file}: symbol {name}: too large for a number") from error
        for name, value in list(found.items()):
            if isinstance(value, str):
                found[name] = filled(value, found, f"{self.file}: symbol {name}")
        for name, formula in self.raw.get("let", {}).items():
            if name in found:
                raise MalformedInput(f"{self.file}: let {name}: is a symbol already")
            found[name] = evaluate(formula, found, f"{self.file}: let {name}")
        return found


def filled(text: str, symbols: Mapping[str, Symbol], place: str) -> str:
    """A text with the names in braces replaced by those text symbols, one inside another up to four deep.

    Args:
        text: such as ``mma_{dtype}``.
        symbols: of the budget.
        place: where the text stands, for the message.

    Raises:
        MalformedInput: a name that is no text symbol, or symbols that go in circles.
    """
    for _ in range(4):
        if "{" not in text:
            return text

        def put(match: re.Match[str]) -> str:
            known = symbols.get(match[1])
            if not isinstance(known, str):
                raise MalformedInput(f"{place}: no text symbol {match[1]!r} for {match[0]}")
            return known

        text = re.sub(r"\{([A-Za-z_][A-Za-z0-9_]*)\}", put, text)
        if len(text) > 1000:
            break
    raise MalformedInput(f"{place}: {text[:60]!r} never ends, or its braces do not match")


def shipped() -> dict[str, str]:
    """Budgets that ship with the package: name and what it is about."""
    folder = files("wsformat.schema").joinpath("budgets")
    names = sorted(f.name for f in folder.iterdir() if f.name.endswith(".json"))
    return {name[:-5]: json.loads(folder.joinpath(name).read_text(encoding="utf-8"))["about"] for name in names}


def load(source: str | Path) -> Budget:
    """Read a budget: a JSON or TOML file, or the name of one that ships with the package.

    Raises:
        BadRequest: neither a file nor such a name; the hint has the names.
        MalformedInput: the file is no budget; every fault, with its place.
        UnsupportedVersion: a newer form.
    """
    path = Path(source)
    if path.is_file():
        if path.stat().st_size > MOST_BYTES:
            raise MalformedInput(f"{path}: larger than {MOST_BYTES:,} bytes, so this is no budget")
        return parse(path.read_bytes(), path.name)
    if str(source) in shipped():
        entry = files("wsformat.schema").joinpath("budgets", f"{source}.json")
        return parse(entry.read_bytes(), entry.name)
    if path.is_dir() or path.suffix or path.parent != Path():
        raise BadRequest(f"{path}: no such file", f"Budgets that ship with wsformat: {', '.join(shipped())}.")
    near = difflib.get_close_matches(str(source), shipped(), 1, 0.5)
    raise BadRequest(
        f"no budget {str(source)!r}: neither a file nor one that ships with wsformat",
        (f"Do you mean {near[0]}? " if near else "") + f"There are {', '.join(shipped())}.",
    )


def parse(data: bytes, name: str) -> Budget:
    """A budget from a file.

    Args:
        data: its bytes.
        name: its name, which tells TOML from JSON.

    Raises:
        MalformedInput: it is no budget; every fault, with its place.
        UnsupportedVersion: a newer form.
    """
    try:
        text = data.decode("utf-8")
        raw = tomllib.loads(text) if name.lower().endswith(".toml") else json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        kind = "TOML" if name.lower().endswith(".toml") else "JSON"
        raise MalformedInput(f"{name}: no {kind}: {error}") from error
    if not isinstance(raw, dict):
        raise MalformedInput(f"{name}: a budget is an object, this is {type(raw).__name__}")
    check(raw, name)
    return Budget(raw, hashlib.sha256(data).hexdigest(), name)


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no number of JSON")


@cache
def _validator() -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(read_schema_json("budget.schema.json"))


def check(raw: Mapping[str, Any], name: str) -> None:
    """Check a budget against its JSON Schema and the vocabularies.

    Args:
        raw: the budget as JSON values.
        name: of its file, for the message.

    Raises:
        MalformedInput: every fault, with its place.
        UnsupportedVersion: a newer form.
    """
    version = raw.get(VERSION_KEY)
    if isinstance(version, str) and re.fullmatch(r"[0-9]{1,9}\.[0-9]{1,9}", version) and not version.startswith("0."):
        raise UnsupportedVersion(f"{name}: a budget of version {version}; this library knows 0.1")
    faults = sorted(_validator().iter_errors(raw), key=lambda e: list(map(str, e.absolute_path)))
    if faults:
        said = [f"{'/'.join(map(str, e.absolute_path)) or 'the budget'}: {_reason(e)}" for e in faults[:8]]
        more = f"; and {len(faults) - 8} more" if len(faults) > 8 else ""
        raise MalformedInput(f"{name}: {'; '.join(said)}{more}", "The form is schema/budget.schema.json.")
    kinds = vocabularies()["role_kind"]["values"]
    for role, facts in raw.get("roles", {}).items():
        if facts.get("kind", "other") not in kinds:
            raise MalformedInput(f"{name}: roles/{role}: no kind {facts['kind']!r}; there are {', '.join(kinds)}")


def _reason(error: Any) -> str:
    if error.validator == "oneOf":
        return "needs either work and rate, or cycles and reason"
    if error.validator == "not":
        return "has role and roles; take one"
    message = str(error.message)
    return message if len(message) <= 160 else message[:157] + "…"
