"""The derived views on real H200 captures (numbers that were known before the views), and small worked cases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from wsformat import samples
from wsformat.bundle import Bundle
from wsformat.converters import registry
from wsformat.derive import connect

Row = dict[str, Any]
ID = "0" * 26
TRIPS = {"2048": 32, "4096": 64}


def sample(name: str, **options: Any) -> Bundle:
    given = {"spec": samples.path("gemm_roles.json"), "meta": [samples.path(f"{name}.meta")], "allow_unwritten": True}
    return registry.import_files([samples.path(f"{name}.i32")], {**given, **options})


def metas(shape: str, mode: str) -> list[tuple[Path, int]]:
    return [(samples.path(f"{shape}_{k}_{mode}.metas"), trips) for k, trips in TRIPS.items()]


def rows(bundle: Bundle, query: str) -> list[Row]:
    found: list[Row] = bundle.sql(query).to_pylist()
    return found


def test_balanced_accounting_is_exact() -> None:
    found = {r["role"]: r for r in rows(sample("balanced_r0"), "SELECT * FROM role_state")}
    assert {role: (r["extent"], r["stall"], r["active"], r["untracked"]) for role, r in found.items()} == {
        "producer": (48_204, 15_750, 18_849, 13_605),
        "consumer0": (51_851, 8_947, 28_842, 14_062),
        "consumer1": (52_632, 8_432, 33_455, 10_745),
    }


def test_balanced_overlap_with_all_denominators() -> None:
    query = "SELECT * FROM overlap WHERE set_a = 'consumer0' AND set_b = 'consumer1'"
    (found,) = rows(sample("balanced_r0"), query)
    assert found["both_ticks"] == 13_891
    assert [round(found[name], 3) for name in ("of_a", "of_b", "of_union")] == [0.482, 0.415, 0.287]


def test_lowprobe_extents() -> None:
    found = rows(sample("lowprobe_r0"), "SELECT role, extent FROM role_state")
    assert {r["role"]: r["extent"] for r in found} == {"consumer0": 36_147, "consumer1": 35_883, "producer": 34_701}


@pytest.mark.parametrize(
    ("name", "cycles"),
    [("pass_waits_r0", {528.0}), ("lowprobe_r0", {550.6, 550.5}), ("balanced_r0", {777.3, 775.6})],
)
def test_cycles_an_iteration_of_the_consumers(name: str, cycles: set[float]) -> None:
    found = rows(sample(name), "SELECT * FROM iteration_summary WHERE role LIKE 'consumer%'")
    assert {round(r["mean_ticks"], 1) for r in found} == cycles
    assert {(r["steady_first"], r["steady_end"], r["samples"], r["method"]) for r in found} == {
        (4, 60, 56, "start_to_start")
    }


@pytest.mark.parametrize(
    ("name", "role", "percent"),
    [("slowproducer_r0", "consumer0", 54.4), ("balanced_r0", "consumer0", 1.9), ("lowprobe_r0", "consumer0", 1.5)],
)
def test_blocked_share(name: str, role: str, percent: float) -> None:
    (found,) = rows(sample(name), f"SELECT * FROM role_summary WHERE role = '{role}'")
    assert round(found["blocked_share"] * 100, 1) == percent
    assert found["stall"] == found["blocked"] + found["satisfied"] + found["unjudged"]


def test_slow_producer_is_late_for_every_wait_of_its_consumers() -> None:
    found = rows(sample("slowproducer_r0"), "SELECT role, verdict, producer_role, COUNT(*) AS n FROM wait GROUP BY ALL")
    assert {(r["role"], r["verdict"], r["producer_role"], r["n"]) for r in found} == {
        ("consumer0", "producer_late", "producer", 64),
        ("consumer1", "producer_late", "producer", 64),
        ("producer", "free", "", 4),
        ("producer", "not_blocked", "consumer0", 60),
    }


def test_a_pass_without_signals_is_unjudged_not_satisfied() -> None:
    found = rows(sample("pass_waits_r0"), "SELECT * FROM wait WHERE role LIKE 'consumer%'")
    assert {r["verdict"] for r in found} == {"unknown"}
    assert all(r["unjudged_ticks"] == r["ticks"] and r["blocked_ticks"] == 0 for r in found)


def test_slope_and_perturbation_from_lifetimes() -> None:
    """776.8 stamped, 512.5 clean over 30 launches each: +51.6 %. The first ten launches of each ship."""
    bundle = sample("balanced_r0", lifetimes=metas("one", "global"), clean=metas("one", "clean"))
    with connect(bundle) as connection:
        slopes = dict(connection.execute("SELECT kind, slope_ticks FROM slope").fetchall())
        quoted = connection.execute(
            "SELECT method, trips_low, trips_high, perturbation, clean_launches FROM perturbation WHERE preference = 1"
        ).fetchall()
        methods = connection.execute("SELECT method, trips_high FROM perturbation ORDER BY preference").fetchall()
    assert slopes["clean"] == pytest.approx(512.5, rel=2e-3)
    assert slopes["stamped"] == pytest.approx(776.8, rel=2e-3)
    ((method, low, high, change, launches),) = quoted
    assert (method, low, high, launches) == ("slope", 32, 64, 10)
    assert change == pytest.approx(0.516, abs=0.003)
    assert methods == [("slope", 64), ("lifetime", 64), ("lifetime", 32)]


def test_perturbation_is_unknown_without_clean_launches() -> None:
    assert rows(sample("balanced_r0", lifetimes=metas("one", "global")), "SELECT * FROM perturbation") == []


def test_slow_producer_was_made_faster_by_its_stamps() -> None:
    bundle = sample("slowproducer_r0", lifetimes=metas("slow", "global"), clean=metas("slow", "clean"))
    (found,) = rows(bundle, "SELECT * FROM perturbation WHERE preference = 1")
    assert found["perturbation"] == pytest.approx(-0.032, abs=0.01)


def truncated(slots: int, trip_count: int) -> dict[str, list[Row]]:
    """A loop of 100 ticks an iteration, 40 of work and 20 of waiting, cut at the slots; then an epilogue long after."""
    base = 1_800_000_000_000_000_000
    events = []
    for i in range(min(slots, trip_count)):
        for event, t in (("enter", 0), ("exit", 20), ("begin", 20), ("end", 60)):
            events.append({"event": event, "iteration": i, "t": base + 100 * i + t})
    end = base + 100 * trip_count
    events += [
        {"event": "epilogue_begin", "iteration": 0, "t": end},
        {"event": "epilogue_end", "iteration": 0, "t": end + 50},
    ]
    kinds = [("wait", "stall", "enter", "exit", "k"), ("work", "active", "begin", "end", "k")]
    kinds.append(("epilogue", "active", "epilogue_begin", "epilogue_end", "once"))
    state = "truncated" if trip_count > slots else "complete"
    own = {
        "captures": [{"kind": "stamped", "completeness": state}],
        "launches": [{"launch": 0, "kind": "stamped", "slots": slots, "trip_count": trip_count}],
        "lanes": [{"lane": 0, "launch": 0, "cta": 0, "role": "mma", "clock": 0, "completeness": state}],
        "clocks": [{"clock": 0, "unit": "ns", "step_ticks": 1}],
        "roles": [{"role": "mma", "iteration_event": "enter"}],
        "event_types": [
            {"role": "mma", "event": event, "loop": loop} for _, _, *ends, loop in kinds for event in ends
        ],
        "span_types": [
            {"role": "mma", "span": s, "state": state_, "begin_event": b, "end_event": e, "loop": loop}
            for s, state_, b, e, loop in kinds
        ],
        "events": [{"lane": 0, "role": "mma", "launch": 0, "cta": 0, "clock": 0, **event} for event in events],
    }  # fmt: skip
    return {name: [{"capture_id": ID, **row} for row in part] for name, part in own.items()}


def test_truncated_loop_is_taken_over_its_recorded_window() -> None:
    """64 slots, 128 iterations: taken as complete it would show 70 % untracked where there is 40."""
    bundle = Bundle.from_tables(truncated(64, 128))
    (state,) = rows(bundle, "SELECT * FROM role_state")
    assert (state["extent"], state["stall"], state["active"], state["untracked"]) == (6_360, 1_280, 2_560, 2_520)
    (window,) = rows(bundle, "SELECT * FROM recorded_window")
    assert window["t_last"] - window["t_first"] == 6_360
    assert window["t_last_point"] - window["t_first"] == 12_850
    drawn = rows(bundle, "SELECT * FROM span WHERE span = 'epilogue'")
    assert len(drawn) == 1
    (whole,) = rows(Bundle.from_tables(truncated(64, 64)), "SELECT * FROM role_state")
    assert (whole["extent"], whole["active"]) == (6_450, 2_610)


def test_a_prologue_before_the_loop_stays_inside_the_window() -> None:
    made = truncated(64, 128)
    first = min(e["t"] for e in made["events"])
    made["event_types"].append({"capture_id": ID, "role": "mma", "event": "setup", "loop": "once"})
    made["events"].append({**made["events"][0], "event": "setup", "iteration": 0, "t": first - 500})
    (state,) = rows(Bundle.from_tables(made), "SELECT * FROM role_state")
    assert state["extent"] == 6_860


def test_materialising_an_unknown_view_is_refused() -> None:
    from wsformat.errors import BadRequest

    with pytest.raises(BadRequest, match="no view 'role_sate'"):
        connect(Bundle.from_tables({}), materialise=["role_sate"])


@pytest.mark.parametrize(("name", "at_most"), [("grid132_r0", 30.0)])
def test_grid_consumers_wait_for_data_at_the_start_only(name: str, at_most: float, captures: Path) -> None:
    """132 CTAs: each consumer is blocked once, by the cold first tile, and that on every SM."""
    files = captures / "stamps"
    options = {"spec": samples.path("gemm_roles.json"), "meta": [files / f"{name}.meta"], "allow_unwritten": True}
    bundle = registry.import_files([files / f"{name}.i32"], options)
    found = rows(bundle, "SELECT * FROM wait WHERE role = 'consumer0' AND verdict <> 'not_blocked'")
    assert {r["iteration"] for r in found} == {0}
    assert len(found) == 132
    (share,) = rows(bundle, "SELECT * FROM role_summary WHERE role = 'consumer0'")
    assert share["blocked_share"] * 1000 < at_most
    assert share["ctas"] == share["lanes"] == 132


def test_a_small_memory_limit_spills_and_cleans_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a million stamps in 60 MB: the same states, and nothing is left in the temporary folder."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    n = 250_000
    t = np.arange(n, dtype=np.int64) * 100
    events = pa.concat_tables(
        [
            pa.table({"capture_id": [ID] * n, "lane": pa.array(np.zeros(n, np.int32)), "role": ["mma"] * n,
                      "event": [event] * n, "iteration": pa.array(np.arange(n, dtype=np.int32)), "t": t + later})
            for event, later in (("begin", 0), ("end", 60))
        ]
    )  # fmt: skip
    made = {**truncated(1, 1), "events": events}
    with connect(Bundle.from_tables(made), memory_limit="60MB", threads=1) as connection:
        ((extent, active, points),) = connection.execute("SELECT extent, active, points FROM role_state").fetchall()
        connection.execute("CREATE TEMP TABLE kept AS SELECT * FROM span ORDER BY t0 DESC")
        spilled = list(tmp_path.iterdir())
    assert (extent, active, points) == (100 * (n - 1) + 60, 60 * n, 2 * n)
    assert spilled, "the limit was not small enough to test anything"
    assert list(tmp_path.iterdir()) == []
