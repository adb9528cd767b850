"""Questions over the fleet: planted answers are found, with the numbers that a plain calculation gives."""

from __future__ import annotations

import statistics
from pathlib import Path

import lake_case as case
import pyarrow as pa
import pytest

from wsformat.bundle import Bundle
from wsformat.errors import BadRequest
from wsformat.lake import Lake
from wsformat.lake.questions import ask, described, statements
from wsformat.tables import SQL_TYPES

SCALES = {"v0": (1.00, 1.01, 0.99, 1.0), "v1": (1.005, 0.995, 1.0), "v2": (1.10, 1.11, 1.09), "v3": (1.10, 1.12)}
"""How much longer than the sample's each iteration of a capture is: v2 is slower than v1, v3 has too few captures."""


def slower(base: Bundle, capture: str, scale: float, **facts: object) -> Bundle:
    """The sample with every time after the first stretched."""
    made = case.changed(base, capture, facts)
    events = made.table("events")
    t = events.column("t").to_pylist()
    first = min(t)
    moved = pa.array([first + int((x - first) * scale) for x in t], pa.int64())
    return made.with_tables({"events": events.set_column(events.column_names.index("t"), "t", moved)})


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    lake = Lake.init(tmp_path_factory.mktemp("fleet") / "L")
    base = case.sample("cute_pipeline")
    bundles = []
    for number, (version, scales) in enumerate(SCALES.items()):
        for again, scale in enumerate(scales):
            facts = {
                "kernel": "ring", "version": version, "arch": "sm_90a", "experiment": f"{version}.{again}",
                "created_unix_ns": case.FIRST_NS + number * case.DAY_NS + again, "label": f"{version}.{again}",
            }  # fmt: skip
            bundles.append(slower(base, case.identity(f"{version} {again}"), scale, **facts))
    own = case.identity("prediction")
    bundles.append(
        Bundle.from_tables(
            {
                "captures": [
                    {"capture_id": own, "experiment": "v0.0", "kind": "predicted", "completeness": "complete"}
                ],
                "predictions": [
                    {
                        "capture_id": own,
                        "resource": "tensor",
                        "cycles": 1000.0,
                        "kind": "throughput",
                        "is_bottleneck": True,
                    },
                    {"capture_id": own, "resource": "dram", "cycles": 400.0, "kind": "throughput"},
                ],
            }
        )
    )
    tiles = case.identity("a prediction for a tile")
    bundles.append(
        Bundle.from_tables(
            {
                "captures": [
                    {"capture_id": tiles, "experiment": "v0.0", "kind": "predicted", "completeness": "complete"}
                ],
                "predictions": [{"capture_id": tiles, "resource": "tensor", "cycles": 8000.0, "is_bottleneck": True}],
                "attributes": [
                    {"capture_id": tiles, "table_name": "captures", "name": "budget", "type": "json"}
                    | {"value": '{"roles": {"consumer": {"steps": 8}}}'}
                ],
            }
        )
    )
    lake.add(bundles)
    lake.add([case.SAMPLES / f"{name}.wsformat" for name in ("gemm_perturbation", "gemm_balanced")])
    return lake


def mean_ticks(lake: Lake, role: str) -> dict[str, list[float]]:
    sql = f"""SELECT version, mean_ticks FROM iteration_summary JOIN captures USING (capture_id)
              WHERE role = '{role}' AND kernel = 'ring' ORDER BY label"""
    found: dict[str, list[float]] = {}
    for row in lake.sql(sql, summaries=False).to_pylist():
        found.setdefault(row["version"], []).append(row["mean_ticks"])
    return found


def test_trend_is_the_mean_of_each_version(fleet: Lake) -> None:
    role = "consumer0"
    truth = mean_ticks(fleet, role)
    rows = [r for r in ask(fleet, "trend").to_pylist() if (r["kernel"], r["role"]) == ("ring", role)]
    assert [row["period"] for row in rows] == list(SCALES)
    for row in rows:
        assert row["captures"] == len(SCALES[row["period"]]) == len(truth[row["period"]])
        assert row["mean_ticks"] == pytest.approx(statistics.mean(truth[row["period"]]), rel=1e-12)
        assert (row["least_ticks"], row["most_ticks"]) == (min(truth[row["period"]]), max(truth[row["period"]]))
        assert row["perturbation"] is None
    states = fleet.sql("SELECT SUM(stall) AS s, SUM(extent) AS e FROM role_state JOIN captures USING (capture_id) "
                       f"WHERE kernel = 'ring' AND version = 'v2' AND role = '{role}'").to_pylist()[0]  # fmt: skip
    assert rows[2]["stall_share"] == pytest.approx(float(states["s"]) / float(states["e"]), rel=1e-12)
    assert rows[2]["mean_ticks"] / rows[0]["mean_ticks"] == pytest.approx(1.1, abs=0.002)
    by_day = [
        r for r in ask(fleet, "trend", {"by_day": True}).to_pylist() if (r["kernel"], r["role"]) == ("ring", role)
    ]
    assert [int(r["period"]) for r in by_day] == [case.FIRST_NS // case.DAY_NS + n for n in range(4)]
    known = [r for r in ask(fleet, "trend").to_pylist() if r["perturbation"] is not None]
    truth_p = (
        case.sample("gemm_perturbation").sql("SELECT perturbation FROM perturbation WHERE preference = 1").to_pylist()
    )
    assert {round(r["perturbation"], 12) for r in known} == {round(r["perturbation"], 12) for r in truth_p}


def test_only_the_planted_regression_is_beyond_the_noise(fleet: Lake) -> None:
    rows = [r for r in ask(fleet, "regressions").to_pylist() if r["kernel"] == "ring"]
    verdicts = {(r["role"], r["version"]): r["verdict"] for r in rows}
    roles = {role for role, _ in verdicts}
    assert roles == {"producer", "consumer0", "consumer1"}
    for role in roles:
        assert verdicts[role, "v1"] == "within the noise"
        assert verdicts[role, "v2"] == "regression"
        assert verdicts[role, "v3"] == "noise unknown"
    truth = mean_ticks(fleet, "producer")
    row = next(r for r in rows if (r["role"], r["version"]) == ("producer", "v2"))
    before, after = truth["v1"], truth["v2"]
    noise = (statistics.variance(before) / len(before) + statistics.variance(after) / len(after)) ** 0.5
    assert row["change"] == pytest.approx(statistics.mean(after) / statistics.mean(before) - 1, rel=1e-9)
    assert row["noise"] == pytest.approx(noise, rel=1e-9)
    assert row["sigmas"] == pytest.approx((statistics.mean(after) - statistics.mean(before)) / noise, rel=1e-9)
    assert rows[0]["verdict"] == "regression", "the worst comes first"
    wide = ask(fleet, "regressions", {"sigmas": 1000.0}).to_pylist()
    assert not [r for r in wide if r["verdict"] == "regression"]
    few = ask(fleet, "regressions", {"least_captures": 2, "least_change": 0.0, "sigmas": 0.1}).to_pylist()
    assert {r["verdict"] for r in few if r["version"] == "v3"} == {"regression"}


def test_barriers_are_ranked_by_what_they_cost(fleet: Lake) -> None:
    rows = ask(fleet, "barriers", where="kernel = 'ring'").to_pylist()
    waits = fleet.sql("SELECT * FROM wait", where="kernel = 'ring'").to_pylist()
    extent = fleet.sql(
        "SELECT capture_id, role, SUM(extent) AS e FROM role_state GROUP BY ALL", where="kernel = 'ring'"
    )
    whole = {(r["capture_id"], r["role"]): float(r["e"]) for r in extent.to_pylist()}
    for row in rows:
        mine = [w for w in waits if (w["barrier"] or w["span"], w["role"], w["span"], w["producer_role"] or "")
                == (row["barrier"], row["role"], row["span"], row["producer_role"])]  # fmt: skip
        assert row["waits"] == len(mine)
        assert row["waits_blocked"] == sum(w["verdict"] in ("producer_late", "in_flight", "other") for w in mine)
        shares: dict[str, float] = {}
        for wait in mine:
            share = wait["blocked_ticks"] / whole[wait["capture_id"], wait["role"]]
            shares[wait["capture_id"]] = shares.get(wait["capture_id"], 0.0) + share
        assert row["captures"] == len(shares)
        assert row["mean_share"] == pytest.approx(statistics.mean(shares.values()), rel=1e-9)
        assert row["most_share"] == pytest.approx(max(shares.values()), rel=1e-9)
    assert [r["total_share"] for r in rows] == sorted((r["total_share"] for r in rows), reverse=True)
    assert sum(r["waits"] for r in rows) == len(waits) > 0


def test_model_error_pairs_predictions_with_their_experiment(fleet: Lake) -> None:
    (row,) = ask(fleet, "model_error").to_pylist()
    measured = max(mean_ticks(fleet, role)["v0"][0] for role in ("producer", "consumer0", "consumer1"))
    assert (row["resource"], row["pairs"], row["method"]) == ("tensor", 1, "start_to_start")
    assert row["mean_error"] == row["least_error"] == row["most_error"]
    assert row["mean_error"] == pytest.approx(measured / 1000.0 - 1, rel=1e-12)
    assert row["rms_error"] == pytest.approx(abs(row["mean_error"]), rel=1e-12)
    assert row["worst_capture"] == case.identity("v0 0")
    (pair,) = ask(fleet, "model_pair").to_pylist()
    assert (pair["prediction_id"], pair["predicted_ticks"]) == (case.identity("prediction"), 1000.0)


def test_gaps_name_each_reason(fleet: Lake, tmp_path: Path) -> None:
    found = ask(fleet, "gaps").to_pylist()
    rings = {r["capture_id"] for r in found if r["gap"] == "no clean launches" and r["kernel"] == "ring"}
    assert len(rings) == sum(len(s) for s in SCALES.values())
    sample = {r["capture_id"] for r in case.sample("gemm_perturbation").table("captures").to_pylist()}
    assert not [r for r in found if r["gap"] == "no clean launches" and r["capture_id"] in sample]
    lake = Lake.init(tmp_path / "L")
    base = case.sample("cute_pipeline")
    bad = case.changed(
        base, case.identity("cut"), {"completeness": "truncated", "lost_events": 5, "version": "", "arch": ""}
    )
    lake.add([bad])
    assert {r["gap"] for r in ask(lake, "gaps", live=True).to_pylist()} == {
        "no clean launches", "truncated", "lost records", "no version", "no date", "no arch",
    }  # fmt: skip
    assert lake.verify(content=False).without_summaries == 1, "a live question keeps nothing"


def test_answers_do_not_depend_on_summaries(fleet: Lake) -> None:
    for name in described()["questions"]:
        kept, live = (case.rows(ask(fleet, name, live=live), digits=9) for live in (False, True))
        assert kept == live, name


def test_questions_that_do_not_exist(fleet: Lake) -> None:
    with pytest.raises(BadRequest, match="no question 'price'"):
        ask(fleet, "price", live=True)
    with pytest.raises(BadRequest, match="no parameter 'x'"):
        statements("trend", {"x": 1})


def test_every_parameter_is_described_with_a_type() -> None:
    for parameter in described()["parameters"]:
        assert parameter["type"] in SQL_TYPES
        assert parameter["meaning"]
    for name, question in described()["questions"].items():
        made, sql = statements(name)
        assert sql.startswith(f"-- {name}:")
        assert list(made) == ["question", *question["uses"]]
