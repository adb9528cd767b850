"""The definitions of ``spec.md``, read by somebody who did not read the SQL, give what the SQL gives."""

from __future__ import annotations

import random
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import simulator_cross
import spec_example
from spec_reading import Capture

from wsformat.bundle import Bundle

TABLES = [
    "launches", "lanes", "clocks", "clock_anchors", "roles", "event_types", "span_types", "dependencies", "events",
    "spans",
]  # fmt: skip
Rows = list[dict[str, Any]]


def view(connection: duckdb.DuckDBPyConnection, name: str, capture: str) -> Rows:
    query = f"SELECT * FROM {name} WHERE capture_id = '{capture}'"
    rows: Rows = connection.sql(query).to_arrow_table().to_pylist()
    return rows


def compare(bundle: Bundle) -> Counter[str]:
    """Check states, orphans, waits, overlap and iterations of every capture; count the verdicts."""
    tables = {name: bundle.table(name).to_pylist() for name in TABLES}
    seen: Counter[str] = Counter()
    views = ("role_state", "orphan", "wait", "overlap", "iteration")
    with bundle.duckdb(materialise=views) as connection:
        for capture in bundle.table("captures").column("capture_id").to_pylist():
            mine = {name: [row for row in rows if row["capture_id"] == capture] for name, rows in tables.items()}
            reading = Capture(mine)
            rows = view(connection, "role_state", capture)
            assert reading.states() == {r["lane"]: (r["extent"], r["stall"], r["active"], r["untracked"]) for r in rows}
            rows = view(connection, "orphan", capture)
            assert sorted(reading.orphans) == sorted((r["lane"], r["span"], r["iteration"], r["reason"]) for r in rows)
            seen += compare_waits(reading, view(connection, "wait", capture))
            rows = view(connection, "overlap", capture)
            assert reading.overlap() == {
                (r["launch"], r["cta"], r["clock"], r["set_kind"], r["set_a"], r["set_b"]):
                (r["both_ticks"], r["a_ticks"], r["b_ticks"], r["union_ticks"], r["t_first"], r["t_last"])
                for r in rows
            }  # fmt: skip
            rows = view(connection, "iteration", capture)
            assert reading.iterations() == {(r["lane"], r["iteration"]): (r["ticks"], r["steady"]) for r in rows}
    return seen


def compare_waits(reading: Capture, rows: Rows) -> Counter[str]:
    waits = reading.waits()
    said = {}
    for wait, known in zip(waits, reading.floors(waits), strict=True):
        edge = wait.binding
        names = ("", "", None, -1, None) if edge is None else (
            edge.row["producer_role"], edge.row["producer_event"], edge.iteration, edge.lane, edge.signal,
        )  # fmt: skip
        verdict = reading.verdict(wait, known)
        release = None if edge is None or verdict[0] == "unknown" else edge.release
        said[wait.lane, wait.name, wait.iteration, wait.span_id] = (
            wait.t0, wait.t1, len(wait.edges), *names, release, known or 0, *verdict,
        )  # fmt: skip
    names = (
        "t0 t1 edges producer_role producer_event producer_iteration producer_lane signal_t release_ticks wait_floor "
        "verdict blocked_ticks satisfied_ticks unjudged_ticks"
    )
    found = {
        (r["lane"], r["span"], r["iteration"], r["span_id"]): tuple(r[name] for name in names.split()) for r in rows
    }
    assert found == said
    return Counter(row["verdict"] for row in rows)


def test_the_worked_example(root: Path) -> None:
    text = (root / "spec.md").read_text(encoding="utf-8")
    assert compare(spec_example.bundle(text)) == Counter(producer_late=2, free=2, not_blocked=1, in_flight=1)


def test_the_corpus(root: Path) -> None:
    seen: Counter[str] = Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # One of them is of a newer minor version, on purpose.
        for path in sorted((root / "conformance").glob("[vs]a*/*.wsformat")):
            bundle = Bundle.open(path)
            if bundle.rows("events") < 20_000:
                seen += compare(bundle)
    assert seen["not_blocked"] > 100
    assert seen["producer_late"] > 100
    assert seen["free"] > 5


def random_capture(seed: int) -> dict[str, Rows]:
    """Two or three roles, several lanes each, with everything that may go wrong in a recording."""
    pick = random.Random(seed)
    lossy, roles = pick.random() < 0.4, ["a", "b", "c"][: pick.choice([2, 3])]
    tables: dict[str, Rows] = {name: [] for name in TABLES}
    for role in roles:
        start = pick.choice(["e0", "e0", "", "z.begin"])
        tables["roles"].append({"role": role, "iteration_event": start})
        for event in range(5):
            loop = pick.choice(["k", "k", "k", "m", "once"])
            tables["event_types"].append({"role": role, "event": f"e{event}", "loop": loop})
        for span, state, begin, end in (
            ("w", "stall", "e0", "e1"),
            ("x", pick.choice(["active", "active", "async"]), "e1", "e2"),
            ("y", "active", "e2", pick.choice(["e3", "e4"])),
            ("z", pick.choice(["stall", "active", "scope"]), "", ""),
        ):
            more = {"resource": pick.choice(["", "tensor", "tma"]), "floor_ticks": pick.choice([None, None, None, 7.5])}
            row = {"role": role, "span": span, "state": state, "begin_event": begin, "end_event": end, "loop": "k"}
            tables["span_types"].append(row | more)
    for _ in range(pick.choice([0, 1, 1, 2, 2, 3])):
        tables["dependencies"].append(random_edge(pick, roles, lossy))
    slots = pick.choice([-1, 3, 4, 6])
    for launch in range(pick.choice([1, 2])):
        tables["launches"].append({"launch": launch, "slots": slots})
        for cta in range(pick.choice([1, 2])):
            clock = {"clock": len(tables["clocks"]), "unit": pick.choice(["cycle", "cycle", "ns"])}
            tables["clocks"].append(clock | {"step_ticks": pick.choice([-1, 1, 8])})
            start = pick.choice([0, 10**6, 1_800_000_000_000_000_000])
            for role in roles:
                for warp in range(pick.choice([1, 1, 2, 3])):
                    at = {"launch": launch, "cta": cta, "warp": warp, "role": role, "clock": clock["clock"]}
                    random_lane(pick, tables, at | {"lane": len(tables["lanes"])}, start, slots, lossy)
    capture = f"{seed:026x}"
    return {name: [{"capture_id": capture} | row for row in rows] for name, rows in tables.items()}


def random_edge(pick: random.Random, roles: list[str], lossy: bool) -> dict[str, Any]:
    step = pick.choice([1, 1, 1, 1, 2, 0]) if lossy else 1
    begin, end = pick.choice(["e2", "e3", "e1", "z.end"]), pick.choice(["e1", "e1", "e1", "z.end"])
    return {
        "producer_role": pick.choice(roles), "producer_event": begin if lossy else "e2",
        "consumer_role": pick.choice(roles), "consumer_event": end if lossy else "e1",
        "producer_step": step, "consumer_step": step and pick.choice([1, 1, 2]),
        "iteration_lag": pick.choice([0, 0, 1, 2, -1]),
        "mechanism": pick.choice(["tma", "arrive", "commit", "bar_sync"]),
        "completion": pick.choice(["signal", "async"]), "scope": pick.choice(["cta"] * 6 + ["cluster"] * lossy),
        "latency_ticks": pick.choice([None, None, 12.5, 400.0]),
    }  # fmt: skip


def random_lane(
    pick: random.Random, tables: dict[str, Rows], at: dict[str, Any], start: int, slots: int, lossy: bool
) -> None:
    complete = pick.choice(["complete", "complete", "truncated", "unknown"]) if lossy else "complete"
    lost = pick.choice([0, 0, -1, 3]) if lossy else 0
    tables["lanes"].append(at | {"completeness": complete, "records_lost": lost})
    count, t = pick.choice([0, 1, 5, 9]) if lossy else 9, start + pick.randrange(200)
    for iteration in range(count if slots < 0 else min(count, slots)):
        for event in range(5):
            t += pick.choice([0, 3, 10, 40, pick.randrange(400)])
            if event == 4 and iteration:
                continue
            if not lossy or pick.random() < 0.93:
                back = 30 if lossy and pick.random() < 0.05 and t >= 30 else 0
                tables["events"].append(at | {"event": f"e{event}", "iteration": iteration, "t": t - back})
    for iteration in range(pick.choice([0, 0, 2])):
        t0 = start + pick.randrange(3000)
        row = {"span_id": len(tables["spans"]), "span": "z", "iteration": iteration, "complete": pick.random() < 0.85}
        end = {"end_lane": at["lane"] if pick.random() < 0.85 else pick.randrange(at["lane"] + 1)}
        tables["spans"].append(at | row | end | {"t0": t0, "t1": t0 + pick.randrange(300)})


def test_random_recordings_of_every_verdict() -> None:
    seen: Counter[str] = Counter()
    for first in range(410, 500, 30):
        captures = [random_capture(seed) for seed in range(first, first + 30)]
        tables = {name: [row for capture in captures for row in capture[name]] for name in TABLES}
        ids = [{"capture_id": f"{seed:026x}"} for seed in range(first, first + 30)]
        seen += compare(Bundle.from_tables({"captures": ids, **tables}))
    assert set(seen) == {"free", "not_blocked", "producer_late", "in_flight", "other", "unknown"}
    assert min(seen.values()) > 5


def test_random_kernels_that_wait_across_ctas() -> None:
    """On SMs with clocks of their own: cluster rings, 2-CTA, a persistent grid; declared and inferred releases."""
    tables: dict[str, Rows] = {name: [] for name in TABLES}
    tables["captures"] = []
    for seed in range(18):
        kernel = ("ring", "leader", "flags")[seed % 3]
        case = simulator_cross.Case(
            kernel, seed, clusters=1, iterations=9, step=(1, 32, 256)[seed // 3 % 3], middle=seed % 4,
            changes=2 * (seed % 4 == 0), declared=seed % 2 == 0, local=seed % 5 < 2,
        )  # fmt: skip
        for name, rows in simulator_cross.tables(simulator_cross.run(case), f"{seed:026x}").items():
            tables[name] += rows
    seen = compare(Bundle.from_tables(tables))
    assert {"free", "not_blocked", "producer_late", "in_flight", "unknown"} <= set(seen)
    assert min(seen[verdict] for verdict in ("not_blocked", "producer_late", "in_flight", "unknown")) > 5
