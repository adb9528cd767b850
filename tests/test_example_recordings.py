"""The recordings of the example kernels that ship: valid, right, and saying what these kernels do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wsformat.bundle import Bundle
from wsformat.kernels.decode import to_bundle
from wsformat.kernels.examples import gemm_hopper, record
from wsformat.kernels.recording import CLEAN, Recording
from wsformat.validate import validate

FOLDER = Path(gemm_hopper.__file__).parent
STAMPED = ["all", "waits", "work"]


def load(name: str) -> Recording:
    return Recording.load(FOLDER / f"{name}.npz")


def decoded(found: Recording, folder: Path) -> Bundle:
    names = [p["name"] for p in found.passes if p["name"] in STAMPED]
    bundle = to_bundle(found, names).write(folder / "x.wsformat")
    assert [p for p in validate(folder / "x.wsformat").problems if p.level != "I"] == []
    return bundle


def rows(bundle: Bundle, query: str) -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = bundle.sql(query).to_pylist()
    return result


FLAT = ["gemm_hopper", "gemm_hopper_fp8", "gemm_hopper_in_flight", "gemm_cute", "gemm_cute_in_flight"]


@pytest.mark.parametrize("name", FLAT)
def test_gemm_keeps_the_tensor_cores_busy_and_every_pass_is_within_two_percent(name: str, tmp_path: Path) -> None:
    found = load(name)
    bundle = decoded(found, tmp_path)
    assert 0.98 < 512 / found.slope(CLEAN) < 1.005
    for number, one in enumerate(found.passes):
        if one["name"] in STAMPED:
            assert abs(found.perturbation(number)) < 0.02
    tolerance = gemm_hopper.FP8_TOLERANCE if "fp8" in name else gemm_hopper.TOLERANCE
    assert all(0 < facts["relative_error"] < tolerance for facts in found.builds.values())
    assert {c["completeness"] for c in rows(bundle, "SELECT * FROM captures WHERE kind = 'stamped'")} == {"complete"}
    judged = rows(bundle, "SELECT verdict, COUNT(*) AS n FROM wait GROUP BY ALL")
    assert "unknown" not in {r["verdict"] for r in judged}
    stages = 6 if "in_flight" in name else 4
    assert {r["verdict"]: r["n"] for r in judged}["free"] == 2 * stages  # of the producer, in two passes with waits


@pytest.mark.parametrize("name", ["attention_hopper", "attention_cute"])
def test_attention_does_softmax_between_two_products(name: str, tmp_path: Path) -> None:
    found = load(name)
    bundle = decoded(found, tmp_path)
    assert 0.65 < 2048 / found.slope(CLEAN) < 0.75
    for number, one in enumerate(found.passes):
        if one["name"] in STAMPED:
            assert abs(found.perturbation(number)) < 0.025
    spans = rows(
        bundle,
        """SELECT s.lane, s.iteration, MAX(CASE WHEN span = 'qk' THEN t1 END) AS qk,
                  MAX(CASE WHEN span = 'softmax' THEN t0 END) AS begins,
                  MAX(CASE WHEN span = 'softmax' THEN t1 END) AS ends, MAX(CASE WHEN span = 'pv' THEN t0 END) AS pv
           FROM span s JOIN lanes l USING (capture_id, lane)
           JOIN launches k ON k.launch = l.launch AND k.capture_id = l.capture_id
           WHERE s.role <> 'producer' AND k.pass = 0 AND span IN ('qk', 'softmax', 'pv') GROUP BY ALL""",
    )
    assert len(spans) == 128
    assert all(r["qk"] <= r["begins"] < r["ends"] <= r["pv"] for r in spans)


def test_persistent_kernel_runs_on_from_tile_to_tile(tmp_path: Path) -> None:
    found = load("gemm_persistent")
    bundle = decoded(found, tmp_path)
    events = rows(
        bundle,
        """SELECT cta, role, COUNT(DISTINCT tile) AS tiles, MAX(iteration) AS last,
                  MAX(ABS(tile - iteration // 8)) AS off
           FROM events WHERE event = 'wait_enter' GROUP BY ALL""",
    )
    ctas = sorted({r["cta"] for r in events})
    assert ctas == list(range(0, 132, 11))
    # 896 tiles on 132 CTAs: the first 104 have seven of them, the others six.
    assert {(r["cta"] < 104, r["tiles"], r["last"]) for r in events} == {(True, 7, 55), (False, 6, 47)}
    assert all(r["off"] == 0 for r in events)
    epilogues = rows(
        bundle, "SELECT cta, tile, iteration FROM events WHERE event = 'epilogue_end' AND role = 'consumer0'"
    )
    assert all(r["tile"] == r["iteration"] for r in epilogues)
    assert len(epilogues) == sum(7 if cta < 104 else 6 for cta in ctas)
    assert {c["completeness"] for c in rows(bundle, "SELECT * FROM captures WHERE kind = 'stamped'")} == {"sampled"}


def test_anchors_of_a_persistent_kernel_lie_within_their_cta() -> None:
    found = load("gemm_persistent")
    for one in found.launches:
        assert one.anchors is not None
        tiles = np.where(np.arange(0, 132, 11) < 104, 7, 6)
        made = one.anchors["c"] != 0
        assert (made == (np.arange(8) <= tiles[:, None])).all()  # one a tile, and one at the end
        assert (one.anchors["cta"] == np.where(made, np.arange(0, 132, 11)[:, None], 0)).all()
        for cta in range(12):
            for clock, first, last in (("c", "c0", "c1"), ("g", "g0", "g1")):
                line = [one.records[first][cta], *one.anchors[clock][cta][made[cta]], one.records[last][cta]]
                assert (np.diff(np.array(line, np.int64)) >= 0).all()
            assert (np.diff(one.anchors["c"][cta][made[cta]].astype(np.int64)) > 0).all()
        distance = one.anchors["distance"][made]
        assert ((distance >= 4) & (distance < 200)).all()
        for part in (one.records["pad"] & 0xFFFF, one.records["pad"] >> 16):
            assert ((part >= 4) & (part < 200)).all()


def test_clusters_share_their_barriers(tmp_path: Path) -> None:
    found = load("gemm_cluster")
    bundle = decoded(found, tmp_path)
    (shape,) = rows(bundle, "SELECT DISTINCT grid_x, cluster_x, cluster_y FROM launches")
    assert shape == {"grid_x": 132, "cluster_x": 2, "cluster_y": 1}
    edges = rows(bundle, "SELECT DISTINCT barrier, scope, iteration_lag FROM dependencies ORDER BY barrier")
    assert edges == [
        {"barrier": "empty", "scope": "cluster", "iteration_lag": 6},
        {"barrier": "full", "scope": "cluster", "iteration_lag": 0},
    ]
    # In the kernel a stage is free when four consumers, two of each CTA, are done with it. The CTAs of a pair run on
    # different SMs, whose clocks differ by far more than a pair can be apart; so by the records of their starts.
    (stamped,) = [k for k in found.launches if k.slots is not None]
    assert stamped.slots is not None
    records = stamped.records
    start = (records["g0"] - records["g0"].min()).astype(np.int64)
    assert (np.abs(start[0::2] - start[1::2]) <= 64).all()
    assert len(set(records["sm"].tolist())) == 12
    ends = stamped.slots[:, 1:, 3].astype(np.int64) - (records["c0"] & 0xFFFFFFFF).astype(np.int64)[:, None, None]
    issue = stamped.slots[:, 0, 1].astype(np.int64) - (records["c0"] & 0xFFFFFFFF).astype(np.int64)[:, None]
    early = [issue[cta, 6:] - ends[cta ^ other, :, :-6].max(axis=0) for cta in range(12) for other in (0, 1)]
    # After both consumers of its own CTA to the tick; after those of the other one within what 32 ns hide.
    assert all((gap > 0).all() for gap in early[0::2])
    assert all((gap > -200).all() for gap in early[1::2])


def test_every_example_has_its_line_and_its_role_spec() -> None:
    for name, line in record.descriptions().items():
        variant = record.EXAMPLES[name].VARIANTS[name]
        assert line
        assert variant.spec()["capture"]["kernel"] == variant.kernel
        assert variant.macros["STAGES"] == variant.stages
        lags = {e["iteration_lag"] for e in variant.spec()["dependencies"] if e["barrier"].endswith("empty")}
        assert lags == {variant.stages}
