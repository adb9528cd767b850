"""Which kernel and launch of a bundle a digest is about."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from wsformat.bundle import Bundle
from wsformat.derive import run
from wsformat.errors import BadRequest

Launch = tuple[str, int]
"""A launch in a bundle: its capture and its number there."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The launch that a digest is about, or the summary of several.

    Attributes:
        kernel: name as printed.
        capture, launch: which launch; launch is -1 for a summary.
        summary: scope_id of the summary, '' for a launch.
        why: how it was chosen.
    """

    kernel: str
    capture: str
    launch: int
    summary: str
    why: str


def kernels(bundle: Bundle) -> dict[str, list[Launch]]:
    """Kernels with counters, and their launches."""
    with bundle.duckdb(only=[]) as connection:
        return _kernels(connection)


def _kernels(connection: Any) -> dict[str, list[Launch]]:
    rows = run(
        connection,
        "SELECT DISTINCT m.capture_id, m.launch, l.kernel FROM metrics m JOIN launches l ON l.launch = m.launch "
        "AND l.capture_id = m.capture_id WHERE m.scope = 'kernel' AND m.tool <> 'benchmark' ORDER BY 1, 2",
    ).to_pylist()
    found: dict[str, list[Launch]] = {}
    for row in rows:
        found.setdefault(row["kernel"], []).append((row["capture_id"], row["launch"]))
    return found


def choose(bundle: Bundle, kernel: str | None, launch: int | None) -> Choice:
    """The launch to digest.

    Args:
        bundle: with counters.
        kernel: regular expression that one kernel's name matches.
        launch: number of the launch.

    Raises:
        BadRequest: none or several match, or the expression is wrong.
    """
    with bundle.duckdb(only=[]) as connection:
        return choose_from(connection, bundle, kernel, launch)


def choose_from(connection: Any, bundle: Bundle, kernel: str | None, launch: int | None) -> Choice:
    """See :func:`choose`; over a connection to the bundle."""
    found = _kernels(connection)
    sql = "SELECT DISTINCT capture_id, scope_id FROM metrics WHERE scope = 'summary' ORDER BY 1, 2"
    summaries = {row["scope_id"]: row["capture_id"] for row in run(connection, sql).to_pylist()}
    names = [*found, *(name for name in summaries if name not in found)]
    if not names:
        raise BadRequest("the bundle has no counters of a kernel", "Import a CSV of Nsight Compute first.")
    if kernel:
        try:
            names = [name for name in names if re.search(kernel, name)]
        except re.error as error:
            raise BadRequest(f"--kernel {kernel!r} is no regular expression: {error}") from error
    if launch is not None:
        here = [(name, pair) for name in names for pair in found.get(name, ()) if pair[1] == launch]
        if len(here) != 1:
            have = sorted({number for name in names for _, number in found.get(name, ())})
            what = f"{len(here)} captures have a launch {launch}" if here else f"no launch {launch} with counters"
            raise BadRequest(what, f"Launches with counters: {_some(have)}. --kernel narrows the choice.")
        name, (capture, number) = here[0]
        return Choice(name, capture, number, "", "chosen by the reader")
    if len(names) != 1:
        listed = "; ".join(sorted(name[:100] for name in (names or found)))
        what = f"{len(names)} kernels match" if names else f"no kernel matches {kernel!r}"
        raise BadRequest(f"{what}, one is needed: {listed}", "Choose one with --kernel REGEX or --launch N.")
    name = names[0]
    if name not in found:
        return Choice(name, summaries[name], -1, name, "averages of a summary over several launches")
    return _median_launch(bundle, name, found[name])


def _some(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers[:20])) + (" and more" if len(numbers) > 20 else "")


def _median_launch(bundle: Bundle, name: str, launches: Sequence[Launch]) -> Choice:
    if len(launches) == 1:
        return Choice(name, *launches[0], "", "the only launch")
    durations = {(r["capture_id"], r["launch"]): r["duration_ns"] for r in bundle.table("launches").to_pylist()}
    ranked = sorted(launches, key=lambda pair: (durations.get(pair, -1), pair))
    capture, launch = ranked[(len(ranked) - 1) // 2]
    return Choice(name, capture, launch, "", f"launch {launch}, the median in duration of {len(launches)}")
