"""Pictures of a lake's answers: every row is there under its whole name, on an axis with a unit."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from wsformat.errors import BadRequest
from wsformat.viewers.lake_figure import CAPTIONS, MOST, lake_figure
from wsformat.viewers.lake_trend_figure import DAY_NS, GROUPS

LONG = "flash_attention_forward_head_dim_128_causal_bf16_persistent"


def texts(spec: Any) -> list[str]:
    """Every text that a specification draws."""
    if isinstance(spec, dict):
        own = [str(spec["text"])] if isinstance(spec.get("text"), str) else []
        return own + [t for value in spec.values() for t in texts(value)]
    return [t for value in spec for t in texts(value)] if isinstance(spec, list) else []


def marks(spec: Any, kind: str) -> list[dict[str, Any]]:
    """Data of all marks of a kind that tell their numbers."""
    if isinstance(spec, dict):
        mark = spec.get("mark", {})
        own = spec["data"]["values"] if mark and mark.get("type") == kind and mark.get("aria") else []
        return own + [m for value in spec.values() for m in marks(value, kind)]
    return [m for value in spec for m in marks(value, kind)] if isinstance(spec, list) else []


def trend_row(kernel: str, role: str, number: int, **more: Any) -> dict[str, Any]:
    moment = (20_000 + number) * DAY_NS + 5
    row = {"kernel": kernel, "shape": "", "dtype": "bf16", "arch": "sm_90a", "role": role, "unit": "cycle"}
    row |= {"period": f"v{number}", "first_unix_ns": moment, "last_unix_ns": moment, "captures": 3}
    row |= {"mean_ticks": 500.0 + number, "least_ticks": 490.0, "most_ticks": 520.0, "stall_share": 0.25}
    return row | {"perturbation": None} | more


def test_trend_draws_every_role_and_version_of_a_kernel() -> None:
    rows = [trend_row(LONG, role, n) for n in (2, 0, 1) for role in ("producer", "consumer")]
    rows += [trend_row("small", "producer", 0, perturbation=0.07, unit="ns")]
    figure = lake_figure("trend", pa.Table.from_pylist(rows))
    found = texts(figure.spec)
    assert f"{LONG}, bf16, sm_90a" in found, "a kernel stands under its whole name"
    assert [t for t in found if t in ("v0", "v1", "v2")][:3] == ["v0", "v1", "v2"], "in order of time"
    assert "perturbation unknown: no clean launches" in found
    points = marks(figure.spec, "point")
    assert len(points) == 6 * 2 + 3, "each row in each plot whose number is known"
    assert len({(p["x"], p["role"]) for p in points if "v1" in p["tip"]}) == 2, "no role hides another"
    assert "Perturbation: +7.0%" in " ".join(p["tip"] for p in points)
    drawn = json.dumps(figure.spec)
    assert "cycles an iteration" in drawn
    assert "ns an iteration" in drawn


def test_days_are_dates() -> None:
    rows = [trend_row("k", "producer", n, period=str(20_000 + n)) for n in range(2)]
    rows += [trend_row("k", "producer", 0, period="-1", first_unix_ns=-1, last_unix_ns=-1)]
    found = texts(lake_figure("trend", pa.Table.from_pylist(rows)).spec)
    assert "2024-10-05" in found
    assert not any(t in found for t in ("20001", "-1"))


def test_many_kernels_are_drawn_in_part_and_said() -> None:
    rows = [trend_row(f"kernel {n}", "producer", 0) for n in range(GROUPS + 3)]
    figure = lake_figure("trend", pa.Table.from_pylist(rows))
    assert figure.notes == (f"{GROUPS} of {GROUPS + 3} kernels are drawn; the CSV has all.",)
    assert figure.title[1] == f"{GROUPS + 3} kernels"


def test_regressions_name_role_and_versions_however_long_the_kernel() -> None:
    row = {"kernel": LONG, "arch": "sm_100a", "role": "consumer1", "before_version": "2.3.0", "version": "2.4.0"}
    row |= {"before_ticks": 500.0, "change": 0.06, "noise": 5.0, "verdict": "regression"}
    figure = lake_figure("regressions", pa.Table.from_pylist([row] * (MOST + 2)))
    found = texts(figure.spec)
    assert any(t.endswith(", sm_100a, consumer1") for t in found)
    assert "2.3.0 to 2.4.0: +6.0%, regression" in found
    assert f"The first {MOST} of {MOST + 2} rows are drawn; the CSV has all." in found
    (first, *_) = marks(figure.spec, "point")
    assert first["x"] == pytest.approx(0.06)
    assert "change of the ticks an iteration" in json.dumps(figure.spec)


def test_one_of_a_thing_is_one_thing() -> None:
    gap = [{"gap": "truncated"}, {"gap": "no arch"}, {"gap": "no arch"}]
    figure = lake_figure("gaps", pa.Table.from_pylist(gap))
    assert [m["x"] for m in marks(figure.spec, "rect")] == [2, 1]
    assert {"2 captures", "1 capture"} <= set(texts(figure.spec))
    assert figure.title[1] == "2 gaps"


def test_nothing_to_draw_is_said() -> None:
    for name in CAPTIONS:
        with pytest.raises(BadRequest, match="no row that can be drawn"):
            lake_figure(name, pa.table({"kernel": pa.array([], pa.string())}))
    with pytest.raises(BadRequest, match="no picture of 'price'"):
        lake_figure("price", pa.table({}))
