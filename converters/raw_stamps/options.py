"""Options of the raw-buffer converter, from text (command line) or Python values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wsformat.converters.raw_stamps.buffers import parse_layout
from wsformat.errors import BadRequest, MalformedInput
from wsformat.iteration_window import INT32_MAX, IterationWindow, parse_window
from wsformat.manifest import read_json
from wsformat.rolespec import Layout
from wsformat.rolespec_schema import IMPORTER_OWNS
from wsformat.tables import tables

FACTS = {c.name: c for c in tables()["captures"].columns if c.name not in IMPORTER_OWNS["captures"]}
"""Columns of captures that can be said on import; they win over the role spec's."""

OPTIONS: dict[str, str] = {
    "spec": "role spec: a file, or JSON values",
    "layout": "roles,events,iterations of the buffer of one CTA, such as 3,16,64",
    "meta": "start and end records of the CTAs (40 bytes each): one file an input; without it INPUT.meta is taken "
    "where it lies beside the input",
    "window": "FROM,STRIDE: iterations that the slots hold, when not all from 0, such as 8,4 for 8, 12, 16 and so on",
    "ctas": "FIRST,STEP: which CTAs of the grid the buffers are of, when not all from 0",
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
        layout, meta, window, trip_count, unwritten, allow_unwritten: as in OPTIONS; ``pass_number`` is its pass.
        ctas: first CTA and step.
        meta_named: whether somebody named the meta files, else they were found beside the inputs.
        lags: lag of each barrier that was stated.
        lifetimes, clean: files with their trip counts.
        facts: columns of captures.
    """

    spec: Any = None
    spec_path: Path | None = None
    layout: Layout | None = None
    meta: tuple[Path, ...] = ()
    meta_named: bool = True
    window: IterationWindow | None = None
    ctas: tuple[int, int] | None = None
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
            **({} if self.window is None else {"window": self.window.to_json()}),
            **({} if self.ctas is None else {"ctas": list(self.ctas)}),
            **({"lag": dict(sorted(self.lags.items()))} if self.lags else {}),
            "lifetimes": [trips for _, trips in self.lifetimes],
            **self.facts,
        }


def parse(options: Mapping[str, Any], paths: Sequence[Path]) -> Given:
    """Check and convert options; ``paths`` are the inputs.

    Raises:
        BadRequest: an option makes no sense.
        MalformedInput: the role spec cannot be read.
    """
    spec, spec_path = _spec(options.get("spec"))
    meta = tuple(Path(p) for p in _many(options.get("meta")))
    if meta and len(meta) != len(paths):
        raise BadRequest(
            f"{len(meta)} meta files for {len(paths)} inputs", "Give one meta file an input, in the same order."
        )
    found = not meta and bool(paths) and all(beside(path).is_file() for path in paths)
    layout = options.get("layout")
    trip_count = _integer("trip_count", options.get("trip_count", -1))
    if trip_count < -1 or trip_count == 0:
        raise BadRequest(f"trip_count {trip_count}: the loop runs at least once")
    _countable("trip_count", trip_count)
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
        meta=tuple(beside(path) for path in paths) if found else meta,
        meta_named=not found,
        window=None if options.get("window") is None else parse_window(options["window"], "option window"),
        ctas=None if options.get("ctas") is None else parse_ctas(options["ctas"], "option ctas"),
        trip_count=trip_count,
        unwritten=unwritten - 2**64 if unwritten >= 2**63 else unwritten,
        allow_unwritten=_yes(options.get("allow_unwritten", False)),
        pass_number=_integer("pass", options.get("pass", -1)),
        lags=_lags(options.get("lag")),
        lifetimes=tuple(_with_trips("lifetimes", item) for item in _many(options.get("lifetimes"))),
        clean=tuple(_with_trips("clean", item) for item in _many(options.get("clean"))),
        facts={name: _fact(name, options[name]) for name in FACTS if options.get(name) is not None},
    )


def beside(path: Path) -> Path:
    """Where the C++ host header puts the start and end records of a buffer file."""
    return path.with_name(f"{path.name}.meta")


def parse_ctas(value: Any, where: str) -> tuple[int, int]:
    """First recorded CTA and the step to the next, from ``first,step`` as text or list.

    Raises:
        BadRequest
    """
    parts = value.split(",") if isinstance(value, str) else value
    try:
        first, step = (int(part) for part in parts)
        if first < 0 or step < 1 or max(first, step) > INT32_MAX:
            raise ValueError
    except (TypeError, ValueError) as error:
        raise BadRequest(
            f"{where}: CTAs {value!r} are not two numbers, the second above 0",
            "Give FIRST,STEP, such as 3,16: the buffers are of CTAs 3, 19, 35 and so on.",
        ) from error
    return first, step


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
    _countable(f"{name}: trips", count)
    return Path(path), count


def _countable(name: str, trips: int) -> None:
    if trips >= 2**31:
        raise BadRequest(f"{name} {trips}: iterations are counted in 32 bits", f"At most {2**31 - 1} are possible.")


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
