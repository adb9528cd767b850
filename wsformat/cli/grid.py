"""`wsformat grid X.wsformat`: the CTAs of a launch on one axis: starts and ends, waves, tail, who was last."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from wsformat.cli import scope as scopes
from wsformat.cli.scope import Analysis, BundlePath, Capture, Cta, Json, Launch

All = Annotated[bool, typer.Option("--all", help="every CTA, not only the first and last ones of each launch")]
KEPT = ("clock_segment", "cta_ns", "wait_edge", "cta_state", "grid_sm")
SHOWN = 3


def grid(
    bundle: BundlePath,
    capture: Capture = "",
    launch: Launch = scopes.EVERY,
    cta: Cta = scopes.EVERY,
    everything: All = False,
    json: Json = False,
) -> None:
    """The CTAs of each launch on one axis in ns, with the bound of every time.

    --json prints one object a CTA: launch, cta, sm, start_ns, end_ns, error_ns, order, wave and shares. Times of two
    SMs that lie nearer than their errors together have no order.
    """
    from wsformat.cli.output import print_json

    with scopes.analysis(bundle, capture=capture, launch=launch, cta=cta, materialise=KEPT) as scope:
        where = scope.where("capture_id", "launch", "cta")
        ctas = scope.rows(f"SELECT * FROM grid_cta WHERE {where} ORDER BY capture_id, launch, start_order, cta")
        if json:
            print_json(ctas)
            return
        for line in scopes.headline(scope):
            print(line)
        if not ctas:
            print("\nNo CTAs were recorded.")
            return
        launches = scope.rows(
            f"SELECT * FROM grid_launch WHERE {scope.where('capture_id', 'launch')} ORDER BY capture_id, launch"
        )
        _print_launches(launches)
        for row in launches if len(launches) <= SHOWN else ():
            print()
            mine = [c for c in ctas if (c["capture_id"], c["launch"]) == (row["capture_id"], row["launch"])]
            for line in sentences(scope, row):
                print(line)
            _print_ctas(mine, row, everything)
        _print_missing(ctas, launches)
        for line in _axis_notes(scope):
            print(line)


def sentences(scope: Analysis, row: dict[str, Any]) -> list[str]:
    """One launch in plain words: how much was recorded, spread of the starts, waves, tail, who was last, the gap."""
    from wsformat.cli.output import number, percent

    count = row["ctas"]
    of = f"{count:,} of {row['grid_ctas']:,} CTAs" if row["grid_ctas"] > count else scopes.count(count, "CTA")
    lines = [f"Launch {row['launch']} ({row['kind'] or 'kind unknown'}): {of} on {scopes.count(row['sms'], 'SM')}."]
    error = row["error_ns"]
    bound = "error unknown" if error is None else f"each time within {number(error)} ns"
    lines.append(f"  It ran {row['duration_ns']:,} ns from the first start to the last end; {bound}.")
    if row["waves"] > 0:
        held = scopes.count(row["residents"], "CTA")
        lines.append(f"  {scopes.count(row['waves'], 'wave')} of {held} an SM; those of the first started within "
                     f"{row['start_spread_ns']:,} ns.")  # fmt: skip
        lines.append(f"  Tail: the first SM had no CTA left {row['tail_ns']:,} ns before the end; "
                     f"{percent(row['tail_share'])} of all SM time was lost to it.")  # fmt: skip
    who = f"CTA {row['last_cta']} on SM {row['last_sm']}"
    if row["last_is_certain"]:
        lines.append(f"  Last to end: {who}.")
    else:
        lines.append(f"  Last to end: {who} as placed, but others end within clock error of it.")
    spread = _shares(scope, row)
    lines += [f"  {spread}"] if spread else []
    if row["hz_low"] is not None:
        lines.append(f"  SM clocks ran at {row['hz_low'] / 1e9:.3f} to {row['hz_high'] / 1e9:.3f} GHz.")
    if row["previous_launch"] is not None:
        gap_error = "" if row["gap_error_ns"] is None else f" (to {number(row['gap_error_ns'])} ns)"
        lines.append(f"  {row['gap_before_ns']:,} ns after launch {row['previous_launch']} had ended{gap_error}.")
    return lines


def _shares(scope: Analysis, row: dict[str, Any]) -> str:
    """How stall and blocked shares spread over the SMs."""
    from wsformat.cli.output import percent

    own = f"capture_id = {scopes.quote(row['capture_id'])} AND launch = {row['launch']}"
    (found,) = scope.rows(
        "SELECT MIN(stall_share) AS a, MAX(stall_share) AS b, MIN(blocked_share) AS c, MAX(blocked_share) AS d, "
        f"ARG_MAX(sm, blocked_share) AS worst FROM grid_sm WHERE {own}"
    )
    if found["a"] is None:
        return ""
    return (
        f"Stall is {percent(found['a'])} to {percent(found['b'])} from SM to SM, blocked {percent(found['c'])} to "
        f"{percent(found['d'])}, the most on SM {found['worst']}."
    )


def _print_launches(launches: list[dict[str, Any]]) -> None:
    from wsformat.cli.output import percent, print_table

    if not launches:
        return
    print()
    print_table(
        ["launch", "<kind", "CTAs", "SMs", "ns", "± ns", "start spread", "waves", "tail", "<tail share", "last CTA",
         "gap before"],
        [
            [r["launch"], r["kind"], r["ctas"], r["sms"], r["duration_ns"],
             None if r["error_ns"] is None else round(r["error_ns"], 1), r["start_spread_ns"], r["waves"], r["tail_ns"],
             percent(r["tail_share"]), r["last_cta"], r["gap_before_ns"]]
            for r in launches
        ],
    )  # fmt: skip


def _print_ctas(ctas: list[dict[str, Any]], row: dict[str, Any], everything: bool) -> None:
    from wsformat.cli.output import percent, print_table

    placed = [c for c in ctas if c["start_ns"] is not None]
    shown = placed
    if not everything and len(placed) > 4 * SHOWN:
        ends = sorted(placed, key=lambda c: c["end_order"])
        wanted = {c["cta"] for c in placed[:SHOWN] + placed[-SHOWN:] + ends[:SHOWN] + ends[-SHOWN:]}
        shown = [c for c in placed if c["cta"] in wanted]
    print_table(
        ["CTA", "SM", "wave", "start ns", "end ns", "± ns", "<may be last", "<stall", "<blocked", "<active",
         "<untracked"],
        [
            [c["cta"], c["sm"], c["wave"], c["start_after_ns"], c["end_ns"] - row["start_ns"],
             None if c["error_ns"] is None else round(c["error_ns"], 1), "yes" if c["may_be_last"] else "",
             *(percent(c[f"{name}_share"]) for name in ("stall", "blocked", "active", "untracked"))]
            for c in shown
        ],
    )  # fmt: skip
    if len(shown) < len(placed):
        print(f"  First and last to start and to end; {len(placed) - len(shown):,} more with --all.")


def _print_missing(ctas: list[dict[str, Any]], launches: list[dict[str, Any]]) -> None:
    """What cannot be placed, and why."""
    unplaced = [c for c in ctas if c["start_ns"] is None]
    if unplaced:
        none = sum(c["basis"] == "" for c in unplaced)
        print(f"\n{scopes.count(len(unplaced), 'CTA')} without place on the axis: "
              f"{len(unplaced) - none:,} on clocks without anchors, {none:,} without a start, an end or stamps. "
              "Record anchors (start and end of each CTA) to compare SMs.")  # fmt: skip
    axes: dict[str, set[int]] = {}
    for row in launches:
        axes.setdefault(row["capture_id"], set()).add(row["reference_clock"])
    if any(len(references) > 1 for references in axes.values()):
        print("\nLaunches are on several reference clocks: times of one are not comparable with those of another.")


def _axis_notes(scope: Analysis) -> list[str]:
    """How the clocks were joined: lines that are not straight, and lines that nothing checks."""
    where = scope.where("capture_id")
    (found,) = scope.rows(
        "SELECT COUNT(*) AS lines, COUNT(CASE WHEN is_straight = FALSE THEN 1 END) AS bent, "
        "COUNT(CASE WHEN is_straight AND wander_ns > 0 THEN 1 END) AS unchecked, "
        f"MAX(CASE WHEN is_straight THEN wander_ns END) AS most FROM clock_map "
        f"WHERE {where} AND ns_per_tick IS NOT NULL"
    )
    lines = []
    if found["bent"]:
        lines.append(
            f"\nThe rate changed during the launch on {found['bent']:,} of {found['lines']:,} SM clocks (no straight "
            "line fits their anchors): times are placed piece by piece."
        )
    if found["unchecked"]:
        lines.append(
            f"\n{found['unchecked']:,} of {found['lines']:,} SM clocks have anchors at their ends only: start and end "
            f"of a CTA are as good as stated, moments between them may be off by up to {found['most']:,.0f} ns more if "
            "the rate changed. One more anchor in the middle shows it."
        )
    return lines
