"""Bundles that pandas, Polars and DuckDB rewrote: broken as they stand, conforming and equal after `wsformat seal`."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest
from readers_common import BUNDLES, contract, digest, right, stated
from readers_rewrite import WRITERS, rewrite

from wsformat.bundle import Bundle
from wsformat.errors import NewerMinorWarning
from wsformat.seal import seal
from wsformat.validate import validate
from wsformat.writer import file_sha256

pytestmark = pytest.mark.sources

NAMES = ("extremes", "every_table", "extension", "gemm_perturbation")


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("bundle", [p for p in BUNDLES if p.stem in NAMES], ids=lambda path: path.stem)
def test_a_rewritten_bundle_is_sealed_with_every_value(bundle: Path, writer: str, tmp_path: Path) -> None:
    rewrite(writer, bundle, tmp_path / "rewritten.wsformat")
    stale = Bundle.open(tmp_path / "rewritten.wsformat").manifest.tables
    assert any(file_sha256(tmp_path / "rewritten.wsformat" / e["file"]) != e["sha256"] for e in stale.values())
    sealed = seal(tmp_path / "rewritten.wsformat", tmp_path / "sealed.wsformat").bundle
    found = validate(tmp_path / "sealed.wsformat")
    assert found.ok
    assert sorted({problem.code for problem in found.problems}) == sorted(stated(bundle)["findings"])
    same_values(sealed, bundle)


@pytest.mark.parametrize("writer", WRITERS)
def test_a_rewritten_bundle_of_a_newer_minor_version_keeps_what_is_new(writer: str, tmp_path: Path) -> None:
    bundle = next(p for p in BUNDLES if p.stem == "newer_minor")
    rewrite(writer, bundle, tmp_path / "rewritten.wsformat")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NewerMinorWarning)
        sealed = seal(tmp_path / "rewritten.wsformat", tmp_path / "sealed.wsformat").bundle
    assert sealed.manifest.version == json.loads((bundle / "manifest.json").read_text())["version"] == "0.999"
    same_values(sealed, bundle)


@pytest.mark.parametrize("writer", WRITERS)
def test_sealing_in_place_gives_the_same(writer: str, tmp_path: Path) -> None:
    bundle = next(p for p in BUNDLES if p.stem == "ring")
    rewrite(writer, bundle, tmp_path / "x.wsformat")
    seal(tmp_path / "x.wsformat")
    assert validate(tmp_path / "x.wsformat").ok
    same_values(Bundle.open(tmp_path / "x.wsformat"), bundle)


def same_values(sealed: Bundle, bundle: Path) -> None:
    for table, kinds in contract(bundle).items():
        rows = sealed.table(table)
        assert rows.column_names == list(kinds)
        for name, want in right(bundle, table).items():
            known = [value for value in rows.column(name).to_pylist() if value is not None]
            got = (rows.num_rows - len(known), digest(want.kind, known))
            assert got == (want.nulls, want.digest), (table, name)
