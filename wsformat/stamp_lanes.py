"""Rows of the table lanes for stamp buffers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from wsformat.completeness import NAMES
from wsformat.rolespec import Layout, RoleSpec
from wsformat.stamp_clocks import Domains
from wsformat.stamp_launch import StampLaunch, Survey, anchor_of
from wsformat.stamp_times import Array

SAMPLED = tuple("sampled" if name == "complete" else name for name in NAMES)


def lanes_table(
    launches: Sequence[StampLaunch],
    surveys: Sequence[Survey | None],
    spec: RoleSpec,
    layout: Layout,
    domains: Domains,
    chosen: Sequence[bool],
    cid: str,
) -> tuple[pa.Table, list[int], list[dict[str, Any]]]:
    """The table lanes, the first lane of each launch, and the roles in the order of a CTA's lanes.

    ``chosen``: launches of which some CTAs were recorded on purpose.
    """
    order = sorted(spec.roles, key=lambda r: (r["warp"], r["role"].encode()))
    parts, first_lane, lane = [], [], 0
    for number, (launch, found) in enumerate(zip(launches, surveys, strict=True)):
        first_lane.append(lane)
        with_cta = launch.meta is not None
        mine = order if found is not None else []
        width = len(mine) + with_cta
        ctas = launch.ctas
        table = {
            "launch": np.full((ctas, width), number),
            "cta": np.repeat(launch.cta_index[:, None], width, axis=1),
            "warp": np.tile([-1] * with_cta + [r["warp"] for r in mine], (ctas, 1)),
            "sm": np.repeat(domains.sm[number][:, None], width, axis=1),
            "clock": np.repeat(domains.clock[number][:, None], width, axis=1),
            "t_start": np.full((ctas, width), -1),
            "t_end": np.full((ctas, width), -1),
            "records_expected": np.zeros((ctas, width), np.int64),
            "records_kept": np.zeros((ctas, width), np.int64),
            "records_lost": np.zeros((ctas, width), np.int64),
            "wraps": np.zeros((ctas, width), np.int64),
        }
        code = np.zeros((ctas, width), np.int8)
        anchor = anchor_of(launch, spec, 0, ctas)
        if anchor is not None:
            table["t_start"][:, 0], table["t_end"][:, 0] = anchor.start, anchor.end
        if found is not None and mine:
            columns = [r["role_index"] for r in mine]
            kept, lost, expected = _losses(found, launch, layout)
            for name, values in (
                ("records_kept", kept),
                ("records_lost", lost),
                ("records_expected", expected),
                ("wraps", found.wraps),
            ):
                table[name][:, with_cta:] = values[:, columns]
            code[:, with_cta:] = found.codes[:, columns]
        text = {
            "role": [""] * with_cta + [r["role"] for r in mine],
            "kind": ["cta"] * with_cta + [r["lane_kind"] for r in mine],
        }
        arrays: dict[str, Any] = {name: values.ravel() for name, values in table.items()}
        for name, labels in text.items():
            arrays[name] = _text(np.tile(np.arange(width, dtype=np.int32), ctas), labels)
        named = np.tile(_names(launch, chosen[number], width, with_cta), (ctas, 1))
        arrays["completeness"] = _text((code + len(NAMES) * named).ravel().astype(np.int32), [*NAMES, *SAMPLED])
        arrays["capture_id"] = pa.repeat(cid, ctas * width)
        arrays["lane"] = np.arange(lane, lane + ctas * width)
        parts.append(pa.table(arrays))
        lane += ctas * width
    return pa.concat_tables(parts), first_lane, order


def _text(codes: Array, labels: Sequence[str]) -> pa.Array:
    """Text column: plain strings, looked up by code."""
    return pa.array(list(labels), pa.string()).take(pa.array(codes)) if len(labels) else pa.array([], pa.string())


def _names(launch: StampLaunch, chosen: bool, width: int, with_cta: int) -> Array:
    """1 for the lanes of a CTA that hold chosen records only, so that they are sampled where others are complete."""
    result = np.full(width, int(chosen), np.int32)
    if not launch.window.whole:
        result[with_cta:] = 1
    return result


def _losses(found: Survey, launch: StampLaunch, layout: Layout) -> tuple[Array, Array, Array]:
    complete = np.array([name == "complete" for name in NAMES])[found.codes]
    lost = np.where(complete, 0, -1)
    if launch.trip_count > launch.window.end(layout.iterations):
        lost = found.full_events.astype(np.int64) * launch.window.missed(launch.trip_count, layout.iterations)
    return found.kept, lost, np.where(lost >= 0, found.kept + lost, -1)
