"""Options of the raw-buffer converter, from text (command line) or Python values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wsformat.converters.raw_stamps.buffers import parse_layout
from wsformat.errors import BadRequest, MalformedInput
from wsformat.manifest import read_json
from wsformat.rolespec import Layout
from wsformat.rolespec_schema import IMPORTER_OWNS
from wsformat.tables import tables

FACTS = {c.name: c for c in tables()["captures"].columns if c.name not in IMPORTER_OWNS["captures"]}
"""Columns of captures that can be said on import; they win over the role spec's."""

OPTIONS: dict[str, str] = {
    "spec": "role spec: a file, or JSON values",
    "layout": "roles,events,iterations of the buffer of one CTA, such as 3,16,64",
    "meta": "start and end records of the CTAs (40 bytes each): one file an input",
    "trip_count": "iterations of the main loop in one CTA, when known: decides whether the slots were too few",
    "unwritten": "value of a slot that nobody wrote, by default 0",
    "allow_unwritten": "accept a spec whose spans or edges name events that the kernel never stamped",
    "lag": "BARRIER=LAG: iteration lag of a barrier's edges where the role spec leaves it open, such as empty=4",
    "pass": "number of the stamped pass, from 0, when one kernel is stamped in several passes with few stamps each",
    "lifetimes": "FILE:TRIPS: start and end records of further stamped launches without their stamps",
    "clean": "FILE:TRIPS: start and end records of launches without stamps, for slope and perturbation",
    **{name: column.meaning for name, column in FACTS.items()},
}


@dataclass(frozen=True)
class Given:
    """Options after parsing.

    Attributes:
        spec: role spec as JSON values, None when the input must carry it; ``spec_path`` the file it came from.
        layout, meta, trip_count, unwritten, allow_unwritten: as in OPTIONS; ``pass_number`` is its pass.
        lags: lag of each barrier that was stated.
        lifetimes, clean: files with their trip counts.
        facts: columns of captures.
    """

    spec: Any = None
    spec_path: Path | None = None
    layout: Layout | None = None
    meta: tuple[Path, ...] = ()
    trip_count: int = -1
    unwritten: int = 0
    allow_unwritten: bool = False
    pass_number: int = -1
    lags: Mapping[str, int] = field(default_factory=dict)
    lifetimes: tuple[tuple[Path, int], ...] = ()
    clean: tuple[tuple[Path, int], ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    def identity(self, layout: Layout) -> dict[str, Any]:
        """The options that change the result, without paths."""
        return {
            "layout": str(layout),
            "trip_count": self.trip_count,
            "unwritten": self.unwritten,
            "allow_unwritten": self.allow_unwritten,
            "meta": len(self.meta),
            **({"pass": self.pass_number} if self.pass_number >= 0 else {}),
            **({"lag": dict(sorted(self.lags.items()))} if self.lags else {}),
            "lifetimes": [trips for _, trips in self.lifetimes],
            **self.facts,
        }


def parse(options: Mapping[str, Any], inputs: int) -> Given:
    """Check and convert options.

    Raises:
        BadRequest: an option makes no sense.
        MalformedInput: the role spec cannot be read.
    """
    spec, spec_path = _spec(options.get("spec"))
    meta = tuple(Path(p) for p in _many(options.get("meta")))
    if meta and len(meta) != inputs:
        raise BadRequest(
            f"{len(meta)} meta files for {inputs} inputs", "Give one meta file an input, in the same order."
        )
    layout = options.get("layout")
    trip_count = _integer("trip_count", options.get("trip_count", -1))
    if trip_count < -1 or trip_count == 0:
        raise BadRequest(f"trip_count {trip_count}: the loop runs at least once")
    unwritten = _integer("unwritten", options.get("unwritten", 0))
    if not -(2**63) <= unwritten < 2**64:
        raise BadRequest(f"unwritten {unwritten}: does not fit 64 bits")
    return Given(
        spec=spec,
        spec_path=spec_path,
        layout=None
        if layout is None
        else layout
        if isinstance(layout, Layout)
        else parse_layout(layout, "option layout"),
        meta=meta,
        trip_count=trip_count,
        unwritten=unwritten - 2**64 if unwritten >= 2**63 else unwritten,
        allow_unwritten=_yes(options.get("allow_unwritten", False)),
        pass_number=_integer("pass", options.get("pass", -1)),
        lags=_lags(options.get("lag")),
        lifetimes=tuple(_with_trips("lifetimes", item) for item in _many(options.get("lifetimes"))),
        clean=tuple(_with_trips("clean", item) for item in _many(options.get("clean"))),
        facts={name: _fact(name, options[name]) for name in FACTS if options.get(name) is not None},
    )


def _spec(value: Any) -> tuple[Any, Path | None]:
    if value is None or isinstance(value, dict):
        return value, None
    path = Path(value)
    if path.is_dir():
        raise MalformedInput(f"{path}: is a directory, a role spec file is needed")
    return read_json(path), path


def _many(value: Any) -> Sequence[Any]:
    if value is None:
        return ()
    return [value] if isinstance(value, str | Path) else list(value)


def _integer(name: str, value: Any) -> int:
    try:
        return int(value, 0) if isinstance(value, str) else int(value)
    except (TypeError, ValueError) as error:
        raise BadRequest(f"{name} {value!r}: not a whole number") from error


def _yes(value: Any) -> bool:
    if isinstance(value, str):
        if value.lower() in ("1", "true", "yes"):
            return True
        if value.lower() in ("0", "false", "no", ""):
            return False
        raise BadRequest(f"{value!r} is neither true nor false")
    return bool(value)


def _with_trips(name: str, item: Any) -> tuple[Path, int]:
    if isinstance(item, str | Path):
        path, _, trips = str(item).rpartition(":")
        if not path:
            raise BadRequest(f"{name} {str(item)!r}: no trip count", "Give FILE:TRIPS, such as clean.metas:64.")
    else:
        path, trips = item
    count = _integer(f"{name}: trips", trips)
    if count < 1:
        raise BadRequest(f"{name} {item!r}: the loop runs at least once")
    return Path(path), count


def _lags(value: Any) -> dict[str, int]:
    if isinstance(value, Mapping):
        return {str(barrier): _integer(f"lag of {barrier}", lag) for barrier, lag in value.items()}
    found: dict[str, int] = {}
    for item in [part for text in _many(value) for part in str(text).split(",")]:
        barrier, equals, lag = item.rpartition("=")
        if not equals or not barrier:
            raise BadRequest(f"lag {item!r}: no barrier and number", "Give BARRIER=LAG, such as empty=4.")
        found[barrier.strip()] = _integer(f"lag of {barrier}", lag.strip())
    return found


def _fact(name: str, value: Any) -> Any:
    return _integer(name, value) if FACTS[name].type in ("INT32", "INT64") else str(value)
