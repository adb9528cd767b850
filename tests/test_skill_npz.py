"""The .npz with a plotting spec, out and back in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trace_import_case import load

from wsformat import samples
from wsformat.bundle import Bundle
from wsformat.converters import skill_npz
from wsformat.converters.registry import import_files
from wsformat.errors import BadRequest

SAMPLES = Path(samples.__file__).parent


def stamps(bundle: Bundle) -> set[tuple[Any, ...]]:
    """(role, event index, iteration, low 32 bits) of every stamp."""
    index = {(row["role"], row["event"]): row["event_index"] for row in bundle.table("event_types").to_pylist()}
    return {
        (row["role"], index[row["role"], row["event"]], row["iteration"], row["t"] % 2**32)
        for row in bundle.table("events").to_pylist()
    }


@pytest.fixture(scope="module")
def balanced() -> Bundle:
    return import_files(
        [SAMPLES / "balanced_r0.i32"],
        {"spec": SAMPLES / "gemm_roles.json", "meta": SAMPLES / "balanced_r0.meta", "trip_count": 64},
    )


def test_round_trip(balanced: Bundle, tmp_path: Path) -> None:
    path = tmp_path / "out.npz"
    report = skill_npz.write(balanced, path, {})
    assert report["stamps"] == balanced.table("events").num_rows
    back = import_files([path], {"trip_count": 64})
    assert stamps(back) == stamps(balanced)
    view = "SELECT role, extent, stall, active, untracked FROM role_state WHERE points > 0 ORDER BY role"
    assert back.sql(view).to_pylist() == balanced.sql(view).to_pylist()
    text = "SELECT producer_role, consumer_role, iteration_lag FROM dependencies WHERE producer_step = 1 ORDER BY ALL"
    ring = [row for row in back.sql(text).to_pylist() if row["iteration_lag"]]
    assert ring == [row for row in balanced.sql(text).to_pylist() if row["iteration_lag"] == 4]
    spec = json.loads((tmp_path / "out.spec.json").read_text())
    again = import_files([path], {"trip_count": 64, "spec": spec})
    assert stamps(again) == stamps(balanced)
    assert any("lags" in text for text in report["lost"])


def test_the_archive_is_what_others_expect(balanced: Bundle, tmp_path: Path) -> None:
    skill_npz.write(balanced, tmp_path / "out.npz", {})
    with np.load(tmp_path / "out.npz") as archive:
        prof, meta = archive["prof"], json.loads(str(archive["meta"]))
    raw = np.fromfile(SAMPLES / "balanced_r0.i32", "<u4").reshape(3, 16, 64)
    assert prof.dtype == np.uint32
    np.testing.assert_array_equal(prof, raw[:, : prof.shape[1]])
    assert (meta["NROLE"], meta["NEVT"], meta["MAXIT"]) == prof.shape
    assert meta["nfilled"] == int((raw != 0).sum())
    spec = json.loads((tmp_path / "out.spec.json").read_text())
    assert spec["roles"] == ["producer", "consumer0", "consumer1"]
    assert spec["role_id"] == {"producer": 0, "consumer0": 1, "consumer1": 2}
    assert {"role": "producer", "beg": 0, "end": 1} in spec["stall"]


def test_rebase_keeps_wraps_and_zeros(balanced: Bundle, tmp_path: Path) -> None:
    events = balanced.table("events")
    shifted = events.set_column(
        events.column_names.index("t"),
        "t",
        [events.column("t").to_numpy() - events.column("t").to_numpy().min() + 2**32 - 20_000],
    )
    moved = balanced.with_tables({"events": shifted, "clock_anchors": []})
    report = skill_npz.write(moved, tmp_path / "a.npz", {})
    assert any("wrap" in text for text in report["lost"])
    report = skill_npz.write(moved, tmp_path / "b.npz", {"rebase": "true"})
    assert not any("wrap" in text for text in report["lost"])
    with np.load(tmp_path / "b.npz") as archive:
        prof = archive["prof"]
    assert prof[prof > 0].min() == 1
    assert (prof > 0).sum() == events.num_rows


def test_a_trace_becomes_stamps(captures: Path, tmp_path: Path) -> None:
    """Ranges of a warp become pairs of stamps; warps that share a role become roles of their own."""
    trace = load(captures / "peers" / "iket_fmha_hopper.trace.json.gz", tmp_path, mapping="iket-cute-attention")
    report = skill_npz.write(trace, tmp_path / "a.npz", {"cta": 2, "rebase": True})
    back = import_files([tmp_path / "a.npz"], {})
    wanted = trace.sql(
        "SELECT s.warp, s.stall, s.active, s.extent FROM role_state s WHERE s.cta = 2 AND points > 0 ORDER BY ALL"
    ).to_pylist()
    found = back.sql("SELECT role, stall, active, extent FROM role_state WHERE points > 0 ORDER BY ALL").to_pylist()
    assert sorted((row["stall"], row["active"], row["extent"]) for row in found) == sorted(
        (row["stall"], row["active"], row["extent"]) for row in wanted
    )
    assert report["roles"] == len(found) == 9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"launch": 7}, "no stamps of launch 7"),
        ({"cta": "x"}, "not a whole number"),
        ({"capture": "no"}, "no stamps of"),
    ],
)
def test_bad_requests(balanced: Bundle, options: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match=message):
        skill_npz.write(balanced, tmp_path / "a.npz", options)
    assert list(tmp_path.iterdir()) == []


def test_too_long_for_32_bits(balanced: Bundle, tmp_path: Path) -> None:
    events = balanced.table("events")
    t = events.column("t").to_numpy().copy()
    t[-1] += 2**33
    far = balanced.with_tables({"events": events.set_column(events.column_names.index("t"), "t", [t])})
    with pytest.raises(BadRequest, match="32 bits hold"):
        skill_npz.write(far, tmp_path / "a.npz", {})
