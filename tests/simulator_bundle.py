"""What the simulator's kernels write and declare: tables of the standard, a raw slot buffer, a role spec.

Declarations are made by hand here, as a kernel's author makes them: iteration lags and steps, not stages and phases.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
from simulator_kernels import Attention, Ring

from simulator import Kernel, Run, Stamp
from wsformat.bundle import Bundle

CAPTURE = "5" * 26
META = np.dtype([("g0", "<u8"), ("c0", "<u8"), ("g1", "<u8"), ("c1", "<u8"), ("sm", "<u4"), ("pad", "<u4")])
Key = tuple[int, int, int, str, int]
"""(launch, cta, warp, event, iteration) of a stamp."""


def key(run: Run, stamp: Stamp) -> Key:
    return run.launch, run.cta, stamp.lane.warp, stamp.event, stamp.iteration


def span_types(kernel: Kernel) -> list[dict[str, Any]]:
    """Rows (role, span, state, begin, end, barrier, ...)."""
    rows: list[dict[str, Any]] = []

    def wait(role: str, span: str, barrier: str, on: str = "barrier") -> None:
        rows.append(
            {"role": role, "span": span, "state": "stall", "begin_event": f"{span}_enter", "wait_on": on}
            | {"end_event": f"{span}_exit", "barrier": barrier, "loop": "k"}
        )

    def work(role: str, span: str, resource: str, loop: str = "k") -> None:
        rows.append(
            {"role": role, "span": span, "state": "active", "begin_event": f"{span}_begin", "loop": loop}
            | {"end_event": f"{span}_end", "resource": resource}
        )

    for role, _ in kernel.lanes():
        if isinstance(kernel, Attention) and role == "load":
            wait(role, "acquire", "empty")
            work(role, "load", "tma")
        elif isinstance(kernel, Attention):
            wait(role, "k_wait", "full")
            work(role, "qk", "tensor")
            wait(role, "v_wait", "full")
            work(role, "pv", "tensor")
        elif role in ("producer", "loader"):
            wait(role, "wait", "empty")
            work(role, "work", "tma" if role == "producer" else "lsu")
        elif isinstance(kernel, Ring):
            wait(role, "wait", "full")
            work(role, "work", "tensor")
            if kernel.serial:
                wait(role, "order", "order")
            if kernel.commit is not None:
                wait(role, "mma", "", "async_group")
            if kernel.sync:
                wait(role, "sync", "sync")
            if kernel.epilogue is not None:
                work(role, "epilogue", "", "tile")
    return rows


def dependencies(kernel: Kernel, declared: bool) -> list[dict[str, Any]]:
    """Declared edges; with their latencies where `declared`."""
    rows: list[dict[str, Any]] = []

    def edge(
        producer: tuple[str, str],
        consumer: tuple[str, str],
        lag: int,
        barrier: str,
        mechanism: str = "arrive",
        latency: int = 0,
        steps: tuple[int, int] = (1, 1),
    ) -> None:
        rows.append(
            {"producer_role": producer[0], "producer_event": producer[1], "consumer_role": consumer[0]}
            | {"consumer_event": consumer[1], "producer_step": steps[0], "consumer_step": steps[1]}
            | {"iteration_lag": lag, "barrier": barrier, "mechanism": mechanism, "scope": "cta"}
            | {"completion": "async" if mechanism in ("tma", "commit") else "signal"}
            | ({"latency_ticks": float(latency + kernel.wake - kernel.lead)} if declared else {})
        )

    tma, stages = kernel.latency.base, kernel.stages
    if isinstance(kernel, Attention):
        for role in [role for role, _ in kernel.lanes()][1:]:
            edge(("load", "load_end"), (role, "k_wait_exit"), 0, "full", "tma", tma, (1, 2))
            edge(("load", "load_end"), (role, "v_wait_exit"), -1, "full", "tma", tma, (1, 2))
            edge((role, "pv_end"), ("load", "acquire_exit"), stages, "empty", steps=(2, 1))
            edge((role, "pv_end"), ("load", "acquire_exit"), stages + 1, "empty", steps=(2, 1))
    if isinstance(kernel, Ring):
        consumers = [role for role, _ in kernel.lanes() if role.startswith("consumer")]
        for c, role in enumerate(consumers):
            edge(("producer", "work_end"), (role, "wait_exit"), 0, "full", "tma", tma)
            edge((role, "arrive"), ("producer", "wait_exit"), stages, "empty")
            if kernel.loader is not None:
                edge(("loader", "work_end"), (role, "wait_exit"), 0, "full")
                edge((role, "arrive"), ("loader", "wait_exit"), stages, "empty")
            if kernel.serial:
                edge((consumers[c - 1], "work_end"), (role, "order_exit"), 0 if c else 1, "order")
            if kernel.commit is not None:
                edge((role, "issue"), (role, "mma_exit"), 0, "", "commit", kernel.commit.base)
            if kernel.sync:
                for other in consumers:
                    edge((other, "sync_enter"), (role, "sync_exit"), 0, "sync", "bar_sync")
    return rows


def event_order(runs: Sequence[Run]) -> list[str]:
    """Event names in order of their index in a raw buffer."""
    return list(dict.fromkeys(stamp.event for run in runs for stamp in run.stamps))


def bundle(
    runs: Sequence[Run],
    *,
    declared: bool = True,
    missing: Collection[Key] = (),
    capture_id: str = CAPTURE,
    clock_unit: str = "cycle",
) -> Bundle:
    """The runs as tables; stamps in `missing` were not written."""
    kernel, own = runs[0].kernel, {"capture_id": capture_id}
    lost, names = set(missing), event_order(runs)
    lanes, events = [], []
    for run in runs:
        for lane in run.lanes:
            place = {"launch": run.launch, "cta": run.cta, "warp": lane.warp, "role": lane.role}
            place |= {"lane": len(lanes), "sm": run.cta, "clock": run.cta, **own}
            kept = [stamp for stamp in lane.stamps if key(run, stamp) not in lost]
            lanes.append(
                place
                | {"kind": "warp", "completeness": "complete" if len(kept) == len(lane.stamps) else "unknown"}
                | {"records_expected": len(lane.stamps), "records_kept": len(kept), "wraps": 0}
                | {"records_lost": len(lane.stamps) - len(kept)}
            )
            for stamp in kept:
                tile = stamp.iteration if stamp.event.startswith("epilogue") else stamp.iteration // kernel.iterations
                row = {"event": stamp.event, "iteration": stamp.iteration, "tile": tile, "t": stamp.t}
                events.append(place | row)
    roles = [role for role, _ in kernel.lanes()]
    used = sorted({(s.lane.role, s.event) for run in runs for s in run.stamps})
    first_wait = {row["role"]: row["begin_event"] for row in reversed(span_types(kernel)) if row["state"] == "stall"}
    return Bundle.from_tables(
        {
            "captures": [{"kind": "stamped", "kernel": "simulated", "completeness": "complete", **own}],
            "launches": [
                {"launch": launch, "kernel": "simulated", "kind": "stamped", "tool": "stamps", "status": "ok", **own}
                | {"trip_count": kernel.total, "grid_x": len({r.cta for r in runs}), "grid_y": 1, "grid_z": 1}
                for launch in sorted({run.launch for run in runs})
            ],
            "lanes": lanes,
            "clocks": [
                {"clock": cta, "scope": "sm", "unit": clock_unit, "sm": cta, "step_ticks": 1, "width_bits": 64, **own}
                for cta in sorted({run.cta for run in runs})
            ],
            "roles": [
                {"role": role, "role_index": index, "display_order": index, **own}
                | {"kind": "producer" if role in ("producer", "load", "loader") else "consumer"}
                | {"iteration_event": first_wait[role]}
                for index, role in enumerate(roles)
            ],
            "event_types": [
                {"role": role, "event": event, "event_index": names.index(event), **own}
                | {"loop": "tile" if event.startswith("epilogue") else "k"}
                for role, event in used
            ],
            "span_types": [row | own for row in span_types(kernel)],
            "dependencies": [row | own for row in dependencies(kernel, declared)],
            "events": events,
        }
    )


def raw(runs: Sequence[Run], *, missing: Collection[Key] = ()) -> tuple[np.ndarray, np.ndarray]:
    """The slot buffer uint32 [buffer][role][event][iteration], 0 = not written, and the 40-byte records beside it.

    One buffer a CTA, launch after launch; one lane a role. Counters keep their low 32 bits only, so that they wrap.
    A stamp whose low 32 bits are 0 looks like one that was not written: as on the device.
    """
    kernel, names, lost = runs[0].kernel, event_order(runs), set(missing)
    roles = [role for role, count in kernel.lanes() if count == 1]
    assert len(roles) == len(kernel.lanes()), "a raw buffer holds one lane a role"
    slots = 1 + max(stamp.iteration for run in runs for stamp in run.stamps)
    buffer = np.zeros((len(runs), len(roles), len(names), slots), np.uint32)
    records = np.zeros(len(runs), META)
    for n, run in enumerate(runs):
        for stamp in run.stamps:
            if key(run, stamp) not in lost:
                buffer[n, roles.index(stamp.lane.role), names.index(stamp.event), stamp.iteration] = stamp.t % 2**32
        first, last = min(s.t for s in run.stamps) - 50, max(s.t for s in run.stamps) + 50
        ns = 1_790_000_000_000_000_000 + (first - run.offset) // 32 * 32
        records[n] = (ns, first, ns + (last - first) // 64 * 32, last, run.cta, 0)
    return buffer, records


def skill_spec(runs: Sequence[Run]) -> dict[str, Any]:
    """The role spec in the skill's JSON form, which cannot say lags and barriers."""
    kernel, names = runs[0].kernel, event_order(runs)
    roles = [role for role, _ in kernel.lanes()]
    spans = span_types(kernel)

    def ends(row: dict[str, Any]) -> dict[str, Any]:
        return {"role": row["role"], "beg": names.index(row["begin_event"]), "end": names.index(row["end_event"])}

    return {
        "roles": roles,
        "role_id": {role: index for index, role in enumerate(roles)},
        "active": [ends(row) | {"color": "#4c78a8", "label": row["span"]} for row in spans if row["state"] == "active"],
        "stall": [ends(row) for row in spans if row["state"] == "stall"],
        "markers": [],
        "deps": [
            {"prod": d["producer_role"], "pevt": names.index(d["producer_event"]), "color": "#4c78a8"}
            | {"cons": d["consumer_role"], "cevt": names.index(d["consumer_event"]), "label": d["barrier"]}
            for d in dependencies(kernel, declared=False)
        ],
        "overlap": [],
    }


def differences(one: Sequence[Any], two: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Pairs that differ (None where one is shorter): a long list that differs takes a test runner minutes to print."""
    return [(a, b) for a, b in zip_longest(one, two) if a != b]
