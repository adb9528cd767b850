"""Every derived view, row by row, against the plain-Python reference on random captures."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from reference_captures import random_lifetimes, random_tables

import reference
from wsformat.bundle import Bundle
from wsformat.derive import run, views
from wsformat.tables import tables as standard

NOT_IN_REFERENCE = {
    "active_set": "what overlap counts",
    "clock_node": "what clock_map is made of",
    "clock_fit": "what clock_map is made of",
    "wait_kind": "the numbers of wait_edge",
    "wait_edge": "what wait and signal are made of",
    "cross_signal": "what wait_edge is made of",
}


def whole(tables: reference.Tables) -> reference.Tables:
    """Every table with every column, so that the reference sees the defaults that the bundle has."""
    return {
        name: [
            {column.name: row.get(column.name, column.default) for column in table.columns}
            for row in tables.get(name, [])
        ]
        for name, table in standard().items()
    }


def exact(row: dict[str, Any]) -> list[Any]:
    return [(name, value) for name, value in sorted(row.items()) if not isinstance(value, float)]


def ordered(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (str(exact(row)), str([v for _, v in sorted(row.items())])))


def same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)
    return type(a) is type(b) and bool(a == b)


def compare(name: str, got: list[dict[str, Any]], want: list[dict[str, Any]]) -> None:
    got, want = ordered(got), ordered(want)
    for index, (a, b) in enumerate(zip(got, want, strict=False)):
        different = {
            k: (a.get(k, "absent"), b.get(k, "absent"))
            for k in a.keys() | b.keys()
            if not same(a.get(k, "absent"), b.get(k, "absent"))
        }
        assert not different, (
            f"{name} row {index}: (view, reference) differ in {different}\nview      {a}\nreference {b}"
        )
    assert len(got) == len(want), (
        f"{name}: {len(got)} rows, reference {len(want)}; first extra {(got + want)[min(len(got), len(want))]}"
    )


def check(tables: reference.Tables) -> dict[str, list[dict[str, Any]]]:
    expected = reference.views(whole(tables))
    with Bundle.from_tables(tables).duckdb(materialise=views(), threads=1) as connection:
        for name in views():
            if name not in NOT_IN_REFERENCE:
                compare(name, run(connection, f"SELECT * FROM {name}").to_pylist(), expected.get(name, []))
    return expected


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 2**32 - 1), captures=st.integers(1, 2), iterations=st.integers(1, 9))
@example(seed=0, captures=0, iterations=1)
def test_views_agree_with_reference(seed: int, captures: int, iterations: int) -> None:
    check(random_tables(seed, captures, iterations))


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), captures=st.integers(1, 3), launches=st.integers(1, 14))
def test_lifetimes_agree_with_reference(seed: int, captures: int, launches: int) -> None:
    tables = random_lifetimes(seed, captures, launches)
    expected = reference.views(whole(tables))
    names = ("lifetime", "launch_lifetime", "lifetime_median", "slope", "perturbation")
    with Bundle.from_tables(tables).duckdb() as connection:
        for name in names:
            compare(name, run(connection, f"SELECT * FROM {name}").to_pylist(), expected[name])


def test_random_captures_reach_every_case() -> None:
    """The comparison is worth nothing if the captures are tame: every verdict, reason and state must occur."""
    verdicts, reasons, states, seen = set(), set(), set(), set()
    for seed in range(12):
        found = reference.views(whole(random_tables(seed, 2, 3 + seed % 7)))
        verdicts |= {row["verdict"] for row in found["wait"]}
        reasons |= {row["reason"] for row in found["orphan"]}
        states |= {row["state"] for row in found["span"]}
        seen |= {name for name, rows in found.items() if rows}
        seen |= {"cut" for row in found["recorded_window"] if row["t_last"] < row["t_last_point"]}
        seen |= {"negative slack" for row in found["wait"] if row["slack"] is not None and row["slack"] < 0}
        seen |= {row["reason"] for row in found["wait"]}
        seen |= {"cross " + row["verdict"] for row in found["wait"] if row["error_ticks"]}
        seen |= {"refused" for row in found["timeline_ns"] if row["ns0"] is None}
        seen |= {"mapped" for row in found["timeline_ns"] if row["ns0"] is not None}
        seen |= {"steady" for row in found["iteration"] if row["steady"]}
        seen |= {f"straight {row['is_straight']}" for row in found["clock_map"]}
    for seed in range(12):
        found = reference.views(whole(random_lifetimes(seed, 3, 12)))
        seen |= {name for name, rows in found.items() if rows}
        seen |= {row["method"] for row in found["perturbation"]}
    assert verdicts == {"free", "not_blocked", "producer_late", "in_flight", "other", "unknown"}
    assert reasons == {"duplicate", "no end", "no begin", "end before begin"}
    assert states == {"stall", "active", "async", "scope", "unknown"}
    wanted = set(views()) - set(NOT_IN_REFERENCE) | {
        "cut",
        "negative slack",
        "refused",
        "mapped",
        "steady",
        "straight True",
        "no edge",
        "no signal",
        "contradicted",
        "release unknown",
        "within clock error",
        "cross not_blocked",
        "cross producer_late",
        "cross in_flight",
        "straight False",
        "straight None",
        "slope",
        "lifetime",
    }
    assert not wanted - seen


def test_captures_do_not_touch_each_other() -> None:
    """Two captures in one bundle give the rows that each gives alone (perturbation is of an experiment)."""
    both = random_tables(5, 2, 6)
    with Bundle.from_tables(both).duckdb() as together:
        for capture in sorted({row["capture_id"] for row in both["captures"]}):
            own = {name: [row for row in rows if row["capture_id"] == capture] for name, rows in both.items()}
            with Bundle.from_tables(own).duckdb() as alone:
                for name in views():
                    if name != "perturbation":
                        query = f"SELECT * FROM {name} WHERE capture_id = '{capture}'"
                        compare(name, run(together, query).to_pylist(), run(alone, f"SELECT * FROM {name}").to_pylist())


@pytest.mark.parametrize("view", sorted(views()))
def test_empty_bundle_gives_empty_views(view: str) -> None:
    assert Bundle.from_tables({}).sql(f"SELECT * FROM {view}").num_rows == 0
