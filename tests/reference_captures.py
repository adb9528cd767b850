"""Random small captures that hold the worst of real ones, for the comparison of the views with the reference.

Missing and doubled stamps, ends before begins, spans of zero length, nested and overlapping, across lanes, cut off,
of kinds nobody declared; several captures, launches, CTAs and warps a role; lanes that nobody defined, truncated or
with losses; clocks of every unit, at epoch scale, with and without anchors; rings with steps, negative lags, unknown
mappings, symmetric barriers, self edges, edges into clusters.
"""

from __future__ import annotations

from random import Random
from typing import Any

Row = dict[str, Any]
Tables = dict[str, list[Row]]
ROLES = ("load", "mma", "soft")
BASES = (0, 36_596_325_189, 1_800_000_000_000_000_000)
NAMES = (
    "captures",
    "launches",
    "lanes",
    "clocks",
    "clock_anchors",
    "roles",
    "event_types",
    "span_types",
    "dependencies",
    "events",
    "spans",
)


def random_tables(seed: int, captures: int, iterations: int) -> Tables:
    """Tables of some captures; the same arguments give the same tables."""
    rng = Random(seed)
    tables: Tables = {name: [] for name in NAMES}
    experiments = ["", "trial"]
    for number in range(captures):
        capture = f"{number:026x}"
        own = one_capture(rng, iterations)
        own["captures"] = [
            {"experiment": rng.choice(experiments), "kind": "stamped", "device": rng.choice(["A", "A", "B"])}
        ]
        for name, rows in own.items():
            tables[name] += [{"capture_id": capture, **row} for row in rows]
    return tables


def random_lifetimes(seed: int, captures: int, launches: int) -> Tables:
    """Captures of CTA lifetimes alone: clean, stamped and traced launches of a few trip counts, grids and passes."""
    rng = Random(seed)
    tables: Tables = {name: [] for name in NAMES}
    for number in range(captures):
        capture = {"capture_id": f"{number:026x}"}
        tables["captures"].append(
            {**capture, "experiment": rng.choice(["", "trial", "trial"]), "device": rng.choice(["A", "A", "A", "B"])}
        )
        tables["clocks"] += [{**capture, "clock": 0, "unit": "cycle"}, {**capture, "clock": 1, "unit": "ns"}]
        for launch in range(launches):
            trips = rng.choice([8, 8, 16, 16, 32, -1])
            kind = rng.choice(["stamped", "stamped", "clean", "clean", "traced", "profiled"])
            tables["launches"].append(
                {
                    **capture,
                    "launch": launch,
                    "kind": kind,
                    "pass": rng.choice([-1, -1, 0]) if kind == "stamped" else -1,
                    "trip_count": trips,
                    "slots": rng.choice([16, 16, -1]),
                    "status": rng.choice(["ok", "ok", "ok", "unknown", "failed"]),
                    **{f"grid_{x}": rng.choice([1, 1, 1, 1, 2, -1]) if x == "x" else 1 for x in "xyz"},
                }
            )
            for cta in range(rng.randint(1, 4)):
                start = rng.choice([0, 5, -1, 10**18])
                tables["lanes"].append(
                    {
                        **capture,
                        "lane": len(tables["lanes"]),
                        "launch": launch if rng.random() < 0.97 else 99,
                        "cta": cta,
                        "kind": rng.choice(["cta"] * 5 + ["warp"]),
                        "clock": rng.choice([0, 0, 0, 0, 1, 7]),
                        "t_start": start,
                        "t_end": start + 100 + abs(trips) * rng.randint(5, 9),
                    }
                )
    return tables


def one_capture(rng: Random, iterations: int) -> Tables:
    tables: Tables = {name: [] for name in NAMES}
    clustered = rng.random() < 0.3
    tame = clustered or rng.random() < 0.6
    declare(rng, tables, tame, clustered)
    base, unit = rng.choice(BASES), rng.choice(["cycle", "cycle", "ns", "tick"])
    step = rng.choice([-1, 1, 1, 4])
    spread = rng.choice([3, 40, 120])
    launches = rng.randint(1, 3)
    for launch in range(launches):
        tables["launches"].append(
            {
                "launch": launch,
                "kind": rng.choice(["stamped", "stamped", "clean", "traced"]),
                "pass": rng.choice([-1, -1, 0]),
                "trip_count": rng.choice([-1, 4, 8, 16]),
                "slots": rng.choice([-1, iterations, iterations, 8]),
                "status": rng.choice(["ok", "ok", "ok", "failed"]),
                **{f"grid_{x}": rng.choice([1, 1, 2, 2, 4, -1]) for x in "xyz"},
                **{f"cluster_{x}": rng.choice([1, 1, 2, -1]) for x in "xyz"},
                **({f"{what}_{x}": 1 + (x == "x") for x in "xyz" for what in ("grid", "cluster")} if clustered else {}),
            }
        )
        for cta in range(2 if clustered else rng.randint(1, 3)):
            # CTAs of one SM share its clock.
            clock = len(tables["clocks"]) - (cta > 0 and rng.random() < 0.3)
            if clock == len(tables["clocks"]):
                tables["clocks"].append({"clock": clock, "scope": "sm", "unit": unit, "step_ticks": step})
                anchors(rng, tables, launch, clock, base, clustered)
            lanes_of_cta(rng, tables, launch, cta, clock, base, iterations, spread, tame)
    device = len(tables["clocks"])
    tables["clocks"].append(
        {
            "clock": device,
            "scope": "device",
            "unit": rng.choice(["ns", "ns", "ns" if clustered else "tick"]),
            "step_ticks": 32,
        }
    )
    for a in tables["clock_anchors"]:
        a["reference_clock"] = device if a["reference_clock"] == -2 else -1
    lane = len(tables["lanes"])
    if rng.random() < 0.3:  # a lane that nobody defined
        for i in range(2):
            tables["events"] += [
                stamp(lane + 5, "mma", "enter", i, base + 10 * i),
                stamp(lane + 5, "mma", "exit", i, base + 10 * i + 4),
            ]
    stored_spans(rng, tables, base, iterations)
    return tables


def stamp(lane: int, role: str, event: str, iteration: int, t: int) -> Row:
    return {"lane": lane, "role": role, "event": event, "iteration": iteration, "t": t}


def anchors(rng: Random, tables: Tables, launch: int, clock: int, base: int, clustered: bool) -> None:
    """None to six on one or two references, of this launch or of the whole capture; some that no line fits."""
    count = rng.choice([0, 0, 1, 2, 3, 6])
    if clustered:
        late = rng.randint(-40, 40)
        for k in range(rng.choice([2, 3, 5])):
            t, bend = 700 * k, rng.choice([0, 0, 0, 40]) if k == 1 else 0
            tables["clock_anchors"].append(
                {"launch": launch, "clock": clock, "t": base + t, "reference_clock": -2}
                | {
                    "reference_t": 1_700_000_000_000_000_000 + t * 3 // 4 + late + bend,
                    "error_ns": rng.choice([1.5, 8.0]),
                }
            )
        return
    errors = rng.choice([(32.0, 32.0, 1.5, None), (32.0, 2.0, 1.5), (1.0, 0.5)])
    for reference in rng.choice([(-2,), (-1,), (-1, -2)]):
        for k in range(count):
            tables["clock_anchors"].append(
                {
                    "launch": rng.choice([launch, launch, -1]),
                    "clock": clock,
                    "t": base + rng.choice([500, 500, 300]) * k + clock,
                    "reference_clock": reference,
                    "reference_t": 1_700_000_000_000_000_000 + 285 * k + rng.randint(0, 3),
                    "error_ns": rng.choice(errors),
                }
            )


def lanes_of_cta(
    rng: Random, tables: Tables, launch: int, cta: int, clock: int, base: int, iterations: int, spread: int, tame: bool
) -> None:
    start = base + rng.randint(0, 50)
    tables["lanes"].append(
        {
            "lane": len(tables["lanes"]),
            "launch": launch,
            "cta": cta,
            "warp": -1,
            "role": "",
            "kind": "cta",
            "sm": clock if rng.random() < 0.9 else -1,
            "clock": clock,
            "t_start": rng.choice([start, start, -1]),
            "t_end": start + rng.randint(100, 4000),
            "completeness": "complete",
            "records_lost": 0,
        }
    )
    for role in ROLES:
        for warp in range(rng.choice([1, 1, 2])):
            lane = len(tables["lanes"])
            tables["lanes"].append(
                {
                    "lane": lane,
                    "launch": launch,
                    "cta": cta,
                    "warp": warp,
                    "role": role,
                    "kind": "warp",
                    "sm": clock,
                    "clock": clock if tame or rng.random() < 0.95 else max(0, clock - 1),
                    "records_kept": 1,
                    "completeness": "complete"
                    if tame
                    else rng.choice(["complete", "complete", "truncated", "truncated", "unknown"]),
                    "records_lost": 0 if tame else rng.choice([0, 0, -1, 2]),
                }
            )
            if tame or rng.random() < 0.95:
                stamps_of_lane(rng, tables, lane, role, start, iterations, spread, tame)


def stamps_of_lane(
    rng: Random, tables: Tables, lane: int, role: str, t: int, iterations: int, spread: int, tame: bool
) -> None:
    count = iterations if tame else rng.choice([iterations, iterations, max(1, iterations - 2)])
    missing, double, late = (
        (0.0, 0.0, 0.0) if tame else rng.choice([(0.0, 0.0, 0.0), (0.05, 0.0, 0.0), (0.1, 0.05, 0.05)])
    )
    found = []
    if rng.random() < 0.3:
        found.append(("setup", 0, t))
    for i in range(count):
        for event in ("enter", "exit", "begin", "inner", "end", "arrive"):
            t += rng.choice([0, 1, rng.randint(0, spread), rng.randint(0, 4 * spread)])
            found.append((event, i, t))
    for event in ("epilogue_begin", "epilogue_end"):
        t += rng.randint(0, 300)
        found.append((event, 0, t))
    for event, i, at in found:
        if rng.random() < missing:
            continue
        shift = rng.choice([-70, 70]) if rng.random() < late else 0
        tables["events"].append(stamp(lane, role, event, i, max(0, at + shift)))
        if rng.random() < double:
            tables["events"].append(stamp(lane, role, event, i, at + rng.randint(0, 5)))


def declare(rng: Random, tables: Tables, tame: bool, clustered: bool) -> None:
    """Roles, stamps, span kinds and dependencies."""
    for role in ROLES:
        tables["roles"].append(
            {"role": role, "iteration_event": rng.choice(["enter", "enter", "begin", "", "copy.begin"])}
        )
        for event in ("enter", "exit", "begin", "inner", "end", "arrive", "setup", "epilogue_begin", "epilogue_end"):
            loop = "once" if event[:2] in ("se", "ep") else rng.choice(["k", "k", "k", "tile"])
            if rng.random() < 0.95:
                tables["event_types"].append({"role": role, "event": event, "loop": loop})
        kinds = [
            ("wait", "stall", "enter", "exit"),
            ("work", "active", "begin", "end"),
            ("part", "active", "begin", "inner"),
            ("odd", "active", "inner", "arrive"),
            ("step", "scope", "enter", "end"),
            ("flight", "async", "begin", "arrive"),
            ("epilogue", "active", "epilogue_begin", "epilogue_end"),
            ("half", "active", "begin", ""),
            ("copy", rng.choice(["stall", "active", "async"]), "", ""),
            ("hold", "stall", "", ""),
            ("twin", rng.choice(["stall", "active"]), "inner", "end"),
        ]
        for span, state, begin, end in kinds:
            if rng.random() < 0.8 or span == "wait":
                tables["span_types"].append(
                    {
                        "role": role,
                        "span": span,
                        "state": state,
                        "begin_event": begin,
                        "end_event": end,
                        "barrier": rng.choice(["", "full"]),
                        "resource": rng.choice(["", "", "tensor", "tma"]),
                        "loop": "once" if span in ("epilogue", "hold") else "k",
                        "contains_wait": rng.random() < 0.2,
                        "floor_ticks": rng.choice([None, None, None, 3.5, 20.0]) if state == "stall" else None,
                    }
                )
    ring, near = rng.randint(1, 3), 0.2 if clustered else rng.choice([1.0, 0.8, 0.3])
    edges = [("load", "end", "mma", "exit", 1, 1, 0, "tma"), ("mma", "arrive", "load", "exit", 1, 1, ring, "arrive")]
    edges += rng.sample(
        [
            ("soft", "arrive", "load", "exit", 1, 1, ring, "arrive"),
            ("load", "end", "soft", "exit", 1, 1, rng.choice([0, -1, 1]), "tma"),
            ("mma", "end", "soft", "exit", 2, 1, rng.choice([0, 1]), "arrive"),
            ("mma", "end", "soft", "exit", 2, 1, 2, "arrive"),
            ("soft", "end", "mma", "exit", 1, 2, rng.choice([-1, 0, 3]), "arrive"),
            ("soft", "inner", "soft", "exit", 0, 1, 0, "flag"),
            ("mma", "enter", "mma", "exit", 1, 1, 0, "commit"),
            ("mma", "inner", "mma", "exit", 1, 1, 1, "commit"),
            ("load", "copy.end", "mma", "hold.end", 1, 1, 0, "tma"),
            ("mma", "arrive", "soft", "exit", 1, 1, 0, "arrive"),
            ("load", "begin", "soft", "end", 1, 1, 0, "arrive"),
            ("mma", "copy.begin", "load", "hold.end", 1, 1, 1, ""),
            ("load", "enter", "load", "exit", 1, 1, 0, "bar_sync"),
            ("mma", "enter", "load", "exit", 1, 1, 0, "bar_sync"),
            ("load", "end", "copied", "exit", 1, 1, 0, "tma"),
        ],
        rng.randint(0, 2 if tame else 5),
    )
    for producer, signal, consumer, point, up, down, lag, mechanism in edges:
        tables["dependencies"].append(
            {
                "producer_role": producer,
                "producer_event": signal,
                "consumer_role": consumer,
                "consumer_event": point,
                "producer_step": up,
                "consumer_step": down,
                "iteration_lag": lag,
                "barrier": "",
                "mechanism": mechanism,
                "completion": "async" if mechanism in ("tma", "commit") and rng.random() < 0.8 else "signal",
                "scope": "cta" if rng.random() < near else rng.choice(["cluster", "cluster", "device"]),
                "latency_ticks": rng.choice([None, None, 0.0, 12.5, 80.0]),
            }
        )


def stored_spans(rng: Random, tables: Tables, base: int, iterations: int) -> None:
    """Spans that a source recorded as one, some of them broken."""
    lanes = [row for row in tables["lanes"] if row["role"]]
    if not lanes or rng.random() < 0.4:
        return
    for number in range(rng.randint(0, 4 * iterations)):
        row = rng.choice(lanes)
        t0 = base + rng.randint(0, 400)
        length = rng.choice([0, rng.randint(0, 60), rng.randint(0, 60), -5])
        same = rng.random() < 0.85
        tables["spans"].append(
            {
                "span_id": number,
                "lane": row["lane"],
                "end_lane": row["lane"] if same else rng.choice(lanes)["lane"],
                "role": row["role"],
                "span": rng.choice(["copy", "copy", "hold", "hold", "wait", "never_declared"]),
                "iteration": rng.choice([rng.randint(0, iterations), number, -1]),
                "t0": t0,
                "t1": max(0, t0 + length),
                "complete": rng.random() < 0.9,
            }
        )
