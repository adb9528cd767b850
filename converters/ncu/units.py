"""Printed units to base units: ns, byte, hz, byte/s, cycle, % and so on, all by powers of ten."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from wsformat.errors import BadRequest, MalformedInput
from wsformat.tables import read_schema_json

EXTRA = re.compile(r"^(?P<name>[^=]+)=(?P<base>[^=]*?)(?:\*1e(?P<power>-?\d{1,2}))?$")


@cache
def table() -> dict[str, Any]:
    """``schema/ncu_units.json``."""
    data: dict[str, Any] = read_schema_json("ncu_units.json")
    return data


def extra_units(text: str) -> dict[str, tuple[str, int]]:
    """Units that the user adds: ``NAME=BASE`` or ``NAME=BASE*1eN``, parted by semicolons.

    Raises:
        BadRequest
    """
    result = {}
    for item in filter(None, (part.strip() for part in text.split(";"))):
        match = EXTRA.match(item)
        if match is None:
            raise BadRequest(f"option units: {item!r} is not NAME=BASE or NAME=BASE*1eN")
        result[match["name"].strip()] = (match["base"].strip(), int(match["power"] or 0))
    return result


def base_unit(unit: str, extra: Mapping[str, tuple[str, int]], where: str) -> tuple[str, int]:
    """Base unit and the power of ten that leads to it.

    Raises:
        MalformedInput: the unit is unknown.
    """
    if unit in extra:
        return extra[unit]
    if unit == "":
        return "", 0
    if unit in table()["overrides"]:
        base, power = table()["overrides"][unit]
        return base, power
    above, slash, below = unit.partition("/")
    try:
        if not slash:
            return _numerator(above)
        top, power = _numerator(above)
        under, under_power = _denominator(below)
    except KeyError:
        raise MalformedInput(
            f"{where}: unknown unit {unit!r}",
            f"Say what it is with --option 'units={unit}=BASE*1eN', and report it so that it is added.",
        ) from None
    if under == "s" and top == "cycle":
        return "hz", power - under_power
    return f"{top}/{under}", power - under_power


def _numerator(atom: str) -> tuple[str, int]:
    times: dict[str, int] = table()["time"]
    if atom in times:
        return "ns", times[atom] + 9
    return _counted(atom)


def _denominator(atom: str) -> tuple[str, int]:
    times: dict[str, int] = table()["time"]
    return ("s", times[atom]) if atom in times else _counted(atom)


def _counted(atom: str) -> tuple[str, int]:
    facts = table()
    for prefix, power in (("", 0), *facts["prefixes"].items()):
        rest = atom[len(prefix) :]
        if atom.startswith(prefix):
            if rest in facts["frequency"]:
                return "hz", power
            if rest in facts["atoms"]:
                return facts["atoms"][rest], power
    raise KeyError(atom)
