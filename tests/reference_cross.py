"""Reference for signals from other CTAs: see ``reference``."""

from __future__ import annotations

from math import floor
from typing import Any

import reference_clocks
import reference_grid

Row = dict[str, Any]
Tables = dict[str, list[Row]]


def team_of(edge: Row, home: Row, tables: Tables, lanes: dict[int, Row]) -> list[int] | None:
    """Lanes of the CTAs that the edge reaches, None when one of these CTAs has none."""
    clusters = {(c["launch"], c["cta"]): c for c in reference_grid.cta_cluster(tables, lanes)}
    own = clusters.get((home["launch"], home["cta"]))
    if own is None:
        return None
    if edge["scope"] == "device":
        launch = next((k for k in tables["launches"] if k["launch"] == home["launch"]), None)
        if launch is None or min(launch[f"grid_{x}"] for x in "xyz") <= 0:
            return None
        expected = launch["grid_x"] * launch["grid_y"] * launch["grid_z"]
        chosen = {key for key in clusters if key[0] == home["launch"]}
    else:
        if own["cluster"] < 0:
            return None
        expected = own["cluster_ctas"]
        chosen = {key for key, c in clusters.items() if (key[0], c["cluster"]) == (home["launch"], own["cluster"])}
    if len(chosen) != expected:
        return None
    return [number for number, x in lanes.items() if (x["launch"], x["cta"]) in chosen]


def moment(lane: Row, t: int, tables: Tables, segments: list[Row]) -> Row | None:
    """A tick in ns with all that is open of it, None without a bounded map."""
    step = next((c["step_ticks"] for c in tables["clocks"] if c["clock"] == lane["clock"]), -1)
    pieces = reference_clocks.map_of(segments, lane["clock"], lane["launch"])
    if not pieces or step <= 0:
        return None
    found = reference_clocks.placed(pieces, t, step)
    if found["error"] is None:
        return None
    return {
        "ns": found["ns"],
        "error": found["error"] + found["wander"],
        "rate": found["rate"],
        "reference": pieces[0]["reference_clock"],
    }


def signal_of(
    edge: Row, stall: Row, i: int, tables: Tables, points: list[Row], lanes: dict[int, Row], segments: list[Row]
) -> Row | None:
    """The signal on the clock of the wait, with its error in ticks."""
    home = lanes.get(stall["lane"])
    team = None if home is None else team_of(edge, home, tables, lanes)
    if home is None or team is None:
        return None
    name = (edge["producer_role"], edge["producer_event"])
    written = [p for p in points if (p["role"], p["event"]) == name and p["lane"] in team]
    sent = [p for p in written if p["iteration"] == i]
    ours = {p["lane"] for p in written if lanes[p["lane"]]["role"] == name[0]}
    losing = {n for n in team if lanes[n]["role"] == name[0] and lanes[n]["records_lost"] > 0}
    if not sent or not ours | losing or len(sent) < len(ours | losing):
        return None
    placed = [(moment(lanes[p["lane"]], p["t"], tables, segments), p["lane"]) for p in sent]
    ends = [moment(home, stall[name], tables, segments) for name in ("t0", "t1")]
    if any(m is None for m, _ in placed) or any(e is None or e["rate"] <= 0 for e in ends):
        return None
    references = {m["reference"] for m, _ in placed} | {e["reference"] for e in ends}
    if len(references) != 1:
        return None
    last = max(m["ns"] for m, _ in placed)
    above = max(m["ns"] - last + m["error"] for m, _ in placed)
    below = max(m["ns"] - last - m["error"] for m, _ in placed)
    after = [last - e["ns"] for e in ends]
    near = 0 if abs(after[0]) <= abs(after[1]) else 1
    rate = ends[near]["rate"]
    return {
        "t": stall[("t0", "t1")[near]] + floor(float(after[near]) / rate + 0.5),
        "lane": min(lane for m, lane in placed if m["ns"] == last),
        "error": (max(above, -below) + ends[near]["error"]) / rate + 1,
    }
