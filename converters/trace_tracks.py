"""The tree of a trace's rows: capture > launch (or process) > SM > CTA > lane > row of its own for what crosses."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np

from wsformat.converters.trace_model import Array, Track


def tree(
    connection: duckdb.DuckDBPyConnection, ord_: Array, level: Array
) -> tuple[list[Track], Array, dict[tuple[int, int], int], Array]:
    """Tracks numbered from 1 in drawing order.

    Args:
        connection: with ``drawn_lane``.
        ord_, level: lane and level of each slice; a level above 0 gets a track below its lane's.

    Returns:
        the tracks; per drawn lane its track; per (lane, level) its track; per drawn lane its CTA's track, or that of
        whatever holds it.
    """
    tracks: list[Track] = []
    known: dict[tuple[Any, ...], int] = {}
    children: dict[int, int] = {}

    def add(key: tuple[Any, ...], parent: int, name: str, kind: str, capture: int) -> int:
        if key not in known:
            known[key] = len(tracks) + 1
            rank = children.get(parent, 0)
            children[parent] = rank + 1
            tracks.append(Track(known[key], parent, name, rank, kind, capture))
        return known[key]

    pairs = np.unique(np.stack([ord_, level], axis=1)[level > 0], axis=0).tolist() if len(ord_) else []
    levels: dict[int, list[int]] = {}
    for lane, depth in pairs:
        levels.setdefault(int(lane), []).append(int(depth))
    rows = connection.sql("SELECT * FROM drawn_lane ORDER BY ord").to_arrow_table().to_pylist()
    lane_track = np.zeros(max(len(rows), 1), dtype=np.int64)
    level_track: dict[tuple[int, int], int] = {}
    cta_track = np.zeros(max(len(rows), 1), dtype=np.int64)
    for row in rows:
        nth = row["capture"]
        parent = add(("capture", nth), 0, root_name(row), "capture", nth)
        if row["launch"] >= 0:
            parent = add(("launch", parent, row["launch"]), parent, launch_name(row), "launch", nth)
        elif row["process_id"] >= 0:
            parent = add(("process", parent, row["process_id"]), parent, f"process {row['process_id']}", "process", nth)
        if row["cta"] >= 0:
            if row["sm"] >= 0:
                parent = add(("sm", parent, row["sm"]), parent, f"SM {row['sm']}", "sm", nth)
            parent = add(("cta", parent, row["cta"]), parent, f"CTA {row['cta']}", "cta", nth)
        cta_track[row["ord"]] = parent
        track = add(("lane", row["ord"]), parent, lane_name(row), "lane", nth)
        lane_track[row["ord"]] = track
        for depth in levels.get(row["ord"], []):
            name = f"{lane_name(row)} / overlap {depth}"
            level_track[row["ord"], depth] = add(("level", row["ord"], depth), track, name, "overlap", nth)
    return tracks, lane_track, level_track, cta_track


def root_name(row: dict[str, Any]) -> str:
    """What a capture is called: its kernel, with its label where it is one of several captures."""
    kernel = str(row["capture_kernel"] or row["capture_label"] or "capture")
    label = str(row["capture_label"] or f"capture {row['capture']}")
    return kernel if row["captures"] == 1 or label == kernel else f"{kernel} [{label}]"


def launch_name(row: dict[str, Any]) -> str:
    """What a launch is called; its kernel is named where the capture's kernel does not say it."""
    kind = f" ({row['launch_kind']})" if row["launch_kind"] else ""
    own = f": {row['kernel']}" if row["kernel"] not in ("", row["capture_kernel"]) else ""
    return f"launch {row['launch']}{kind}{own}"


def lane_name(row: dict[str, Any]) -> str:
    """What a lane is called: its role, else its name, else its number; with the warp where it is known."""
    name = "" if row["role"] == "unassigned" else str(row["role"])
    own = str(row["name"] or "")
    if not name and own:
        name = f"stream {own}" if row["lane_kind"] == "stream" and own.isdigit() else own
        if row["lane_kind"] == "host_thread" and own.isdigit():
            name = f"thread {own}"
    if row["warp"] >= 0:
        return name if name.endswith(f"warp {row['warp']}") else f"{name} warp {row['warp']}".strip()
    if not name:
        return f"thread {row['thread_id']}" if row["thread_id"] >= 0 else f"lane {row['lane']}"
    return name
