"""docs/overhead.md is what the script makes of the raw lifetimes, and the script's arithmetic is right."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wsformat.kernels.recording import Recording

pytestmark = pytest.mark.sources


@pytest.fixture(scope="module")
def overhead(root: Path) -> Any:
    spec = importlib.util.spec_from_file_location("overhead", root / "bench" / "overhead.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_script_makes(overhead: Any) -> None:
    assert overhead.PAGE.read_text() == overhead.table()


def test_slope_and_interval(overhead: Any) -> None:
    bare = {"32": [3000 + 32 * 500.0] * 9, "64": [3000 + 64 * 500.0] * 9}
    stamped = {"32": [9000 + 32 * 510.0] * 9, "64": [9000 + 64 * 510.0] * 9}
    assert overhead.slope(bare) == 500
    assert overhead.slope(stamped) == 510
    run = {"shapes": {"x": {"lifetimes": {"clean": bare, "all": stamped}}}}
    assert overhead.inflation(run, "x", "all") == pytest.approx(0.02)
    assert overhead.interval(stamped, bare) == 0
    random = np.random.default_rng(3)
    noisy = {k: [v[0] + e for e in random.normal(0, 320, 60)] for k, v in stamped.items()}
    # Standard error of a median of 60: 1.25 * 320 / sqrt(60) = 52; of the difference 73; 73 / 32 / 500 = 0.46 %.
    assert 0.5 * 1.96 * 0.0046 < overhead.interval(noisy, bare) < 2 * 1.96 * 0.0046
    with pytest.raises(KeyError):
        overhead.slope({"32": [1.0]})


def test_two_regimes_of_the_same_kernel(overhead: Any) -> None:
    """The page says that the consumers take turns with all stamps, and begin together in the pass work."""
    found = Recording.load(overhead.HERE / "gemm_cute_grid.npz")
    offset = {}
    for launched in found.launches:
        assert launched.slots is not None
        begin = launched.slots.astype(np.int64)[:, 1:, 2, 20:]
        offset[found.passes[launched.number]["name"]] = float(np.median(abs(begin[:, 1] - begin[:, 0])))
    assert offset["all"] == pytest.approx(257, abs=12)
    assert offset["work"] == pytest.approx(30, abs=12)


def test_every_recorded_build_was_right_and_kept_its_registers(overhead: Any) -> None:
    for name in overhead.RESULTS:
        run = json.loads((overhead.HERE / name).read_text())
        for shape in run["shapes"].values():
            for facts in shape["builds"].values():
                assert facts["relative_error"] < 1e-5
                assert facts["local_bytes"] == 0
                assert not facts["wgmma_serialised"]
