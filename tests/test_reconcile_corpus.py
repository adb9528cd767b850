"""Any bundle of the corpus can be reconciled with any budget, or the reason why not is one line; never a traceback."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from wsformat import budget as budgets
from wsformat.bundle import Bundle
from wsformat.errors import WsformatError
from wsformat.prediction import predict
from wsformat.prediction_store import joined
from wsformat.tables import tables
from wsformat.validate import validate
from wsformat.viewers.reconcile import reconcile, stored

ROOT = Path(__file__).parent.parent
BUNDLES = sorted([*ROOT.glob("conformance/valid/*.wsformat"), *ROOT.glob("conformance/samples/*.wsformat")])

pytestmark = pytest.mark.sources


@pytest.mark.parametrize("path", BUNDLES, ids=lambda p: p.stem)
def test_corpus(path: Path, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        bundle = Bundle.open(path)
        name = "tcgen05_interval" if path.stem.startswith("s") else "hopper_gemm"
        refused: list[str] = []
        for capture in bundle.table("captures").column("capture_id").to_pylist():
            mine = {n: bundle.table(n) for n in bundle.data if n in tables()}
            try:
                both = joined(Bundle.from_tables(mine), [predict(budgets.load(name))], capture, force=True)
                label = predict(budgets.load(name)).budget.name
                report = reconcile(both, capture=capture, prediction=label)
            except WsformatError as error:
                refused.append(error.message)
                continue
            gap = report.residual
            if gap is not None:
                assert sum(t.cycles for t in gap.terms) == pytest.approx(gap.gap, abs=1e-6)
            assert report.verdict.verdict
            assert report.markdown().startswith("# ")
            kept = stored(both, [report])
            assert kept.rows("findings") >= len(report.findings())
    assert all(text and "\n" not in text for text in refused)
    if path.stem.startswith("gemm"):
        assert not refused
        kept.write(tmp_path / "kept.wsformat")
        assert validate(tmp_path / "kept.wsformat").ok
