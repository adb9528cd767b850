"""A lag that the stamps cannot prove can be stated on import."""

from __future__ import annotations

from typing import Any

import pytest

from wsformat.bundle import Bundle
from wsformat.converters.registry import import_files
from wsformat.errors import BadRequest
from wsformat.samples import path as sample


def imported(spec: str = "gemm_spec.json", **options: Any) -> Bundle:
    return import_files([sample("balanced_r0.i32")], {"spec": str(sample(spec)), "layout": "3,16,64", **options})


def verdicts(bundle: Bundle) -> dict[str, int]:
    rows = bundle.sql("SELECT verdict, COUNT(*) AS n FROM wait WHERE role <> 'producer' GROUP BY verdict").to_pylist()
    return {row["verdict"]: row["n"] for row in rows}


@pytest.mark.parametrize("given", ["full=0", ["full=0"], {"full": 0}])
def test_a_stated_lag_makes_waits_judgeable(given: Any) -> None:
    assert verdicts(imported()) == {"unknown": 128}
    bundle = imported(lag=given)
    assert verdicts(bundle) == {"not_blocked": 126, "producer_late": 2}
    assert verdicts(bundle) == verdicts(imported("gemm_roles.json"))
    notes = [row["text"] for row in bundle.table("findings").to_pylist() if row["subject"] == "iteration_lag"]
    assert "full: 0, as stated on import." in notes
    capture = bundle.table("captures")["capture_id"][0].as_py()
    assert capture != imported().table("captures")["capture_id"][0].as_py()


def test_several_lags_in_one_text() -> None:
    bundle = imported(lag="full=0,empty=4")
    edges = bundle.table("dependencies").to_pylist()
    assert {(e["barrier"], e["iteration_lag"], e["producer_step"]) for e in edges} == {("full", 0, 1), ("empty", 4, 1)}


@pytest.mark.parametrize(
    ("lag", "spec", "message"),
    [
        ("fuller=0", "gemm_spec.json", "no edge of that barrier"),
        ("full=0", "gemm_roles.json", "gives the lag of that barrier itself"),
        ("4", "gemm_spec.json", "no barrier and number"),
        ("full=many", "gemm_spec.json", "not a whole number"),
    ],
)
def test_wrong_lags_are_refused(lag: str, spec: str, message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        imported(spec, lag=lag)
