"""Versions: golden bundles are read for ever, older ones are upgraded step by step, newer ones are refused or noted.

When a new major version is made: freeze golden bundles of the old one (``conformance/generate.py --golden``), write its
step in ``wsformat/upgrade.py``, and see ``test_golden_bundles_upgrade`` fail without the step.
"""

from __future__ import annotations

import json
import re
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from wsformat import upgrade as module
from wsformat.bundle import Bundle
from wsformat.errors import MalformedInput, NewerMinorWarning, OutputExists, UnsupportedVersion
from wsformat.tables import format_version
from wsformat.upgrade import RawBundle, chain, open_raw, upgrade
from wsformat.validate import validate

CORPUS = Path(__file__).parents[1] / "conformance"
GOLDEN = sorted(CORPUS.glob("golden/*/*.wsformat"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    target = tmp_path / "x.wsformat"
    shutil.copytree(CORPUS / "valid" / "ring.wsformat", target)
    return target


def set_version(root: Path, version: str, **more: Any) -> None:
    data = json.loads((root / "manifest.json").read_text())
    (root / "manifest.json").write_text(json.dumps({**data, "version": version, **more}))


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_golden_bundles_upgrade(path: Path, tmp_path: Path) -> None:
    result = upgrade(path, tmp_path / "new.wsformat")
    assert result.after == format_version()
    assert result.before == path.parent.name
    assert validate(result.bundle).ok
    for name, part in json.loads(path.with_suffix(".expected.json").read_text())["tables"].items():
        assert result.bundle.rows(name) == part["rows"]


def test_there_is_a_golden_bundle_of_every_released_version() -> None:
    assert GOLDEN
    assert "every_table" in {path.stem for path in GOLDEN}


# --- a made-up history: in version 0 the table lanes was called recorders, in version 1 its column warp was first_warp


def renamed(rows: Any, old: str, new: str) -> Any:
    def batches() -> Iterator[pa.Table]:
        for part in rows():
            yield part.rename_columns([new if name == old else name for name in part.column_names])

    return batches


def from_0(raw: RawBundle) -> RawBundle:
    tables = {"lanes" if name == "recorders" else name: rows for name, rows in raw.tables.items()}
    return RawBundle({**raw.manifest, "writer": {"name": "step 0"}}, tables)


def from_1(raw: RawBundle) -> RawBundle:
    return RawBundle(raw.manifest, {**raw.tables, "lanes": renamed(raw.tables["lanes"], "first_warp", "warp")})


def made_up() -> RawBundle:
    rows = pa.table({"capture_id": ["a"], "first_warp": [4]})
    return RawBundle({"format": "wsformat", "version": "0.3", "acme__note": 7}, {"recorders": lambda: iter([rows])})


def test_steps_are_chained_and_pure() -> None:
    start = made_up()
    result, steps = chain(start, {0: from_0, 1: from_1}, "2.4", where="x")
    assert steps == ("0 -> 1", "1 -> 2")
    assert result.manifest["version"] == "2.0"
    assert result.manifest["acme__note"] == 7
    assert [part.to_pydict() for part in result.tables["lanes"]()] == [{"capture_id": ["a"], "warp": [4]}]
    assert [part.to_pydict() for part in result.tables["lanes"]()], "rows can be read again"
    assert start.manifest["version"] == "0.3"
    assert list(start.tables) == ["recorders"]


def test_a_bundle_that_starts_later_skips_the_first_steps() -> None:
    raw = from_0(made_up())
    result, steps = chain(RawBundle({**raw.manifest, "version": "1.0"}, raw.tables), {1: from_1}, "2.0", where="x")
    assert steps == ("1 -> 2",)
    assert next(iter(result.tables["lanes"]())).column_names == ["capture_id", "warp"]


def test_a_missing_step_and_a_newer_major_are_refused_with_both_numbers() -> None:
    with pytest.raises(UnsupportedVersion, match=r"format version 0\.3, no step leads from 1 to 2"):
        chain(made_up(), {0: from_0}, "2.0", where="x")
    raw = made_up()
    with pytest.raises(UnsupportedVersion, match=r"format version 3\.1, this library reads 2\.x \(up to 2\.4\)"):
        chain(RawBundle({**raw.manifest, "version": "3.1"}, raw.tables), {}, "2.4", where="x")


def test_an_upgrade_from_an_older_major_writes_the_present_version(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole way on disk: the present version is played by 1.0, the file is of today's."""
    before = Bundle.open(root)
    monkeypatch.setattr(module, "STEPS", {0: lambda raw: raw})
    for place in ("wsformat.upgrade", "wsformat.manifest", "wsformat.writer", "wsformat.bundle"):
        monkeypatch.setattr(f"{place}.format_version", lambda: "1.0")
    with pytest.raises(
        UnsupportedVersion, match=rf"format version {re.escape(format_version())}, this library reads 1\.x"
    ):
        Bundle.open(root)
    result = upgrade(root)
    assert (result.before, result.after, result.steps) == (format_version(), "1.0", ("0 -> 1",))
    assert Bundle.open(root).manifest.version == "1.0"
    assert result.bundle.table("events").equals(before.table("events"))
    assert [p.name for p in root.parent.iterdir()] == [root.name]


# --- versions as they are today


def test_a_present_bundle_needs_nothing(root: Path) -> None:
    stamp = (root / "manifest.json").stat().st_mtime_ns
    result = upgrade(root)
    assert (result.before, result.after, result.steps) == (format_version(), format_version(), ())
    assert (root / "manifest.json").stat().st_mtime_ns == stamp


def test_an_older_minor_is_written_in_full(root: Path) -> None:
    set_version(root, "0.0")
    result = upgrade(root)
    assert (result.before, result.after, result.steps) == ("0.0", format_version(), ())
    assert validate(root).clean


def test_a_newer_major_is_refused_everywhere(root: Path, tmp_path: Path) -> None:
    set_version(root, "7.3")
    for action in (lambda: Bundle.open(root), lambda: upgrade(root), lambda: upgrade(root, tmp_path / "y.wsformat")):
        with pytest.raises(UnsupportedVersion, match=r"format version 7\.3, this library reads 0\.x"):
            action()
    assert validate(root).codes == ["E206"]
    assert not (tmp_path / "y.wsformat").exists()


def test_a_newer_minor_is_read_with_a_warning_and_keeps_what_it_brought(tmp_path: Path) -> None:
    source = CORPUS / "valid" / "newer_minor.wsformat"
    with pytest.warns(
        NewerMinorWarning, match=rf"format version 0\.999, this library knows {re.escape(format_version())}"
    ):
        bundle = Bundle.open(source)
    with pytest.warns(NewerMinorWarning):
        again = bundle.write(tmp_path / "y.wsformat")
    assert again.manifest.version == "0.999"
    assert again.manifest.extra == {"registry": "later"}
    assert again.table("captures")["cooling"].to_pylist() == ["water"]
    assert again.rows("cooling") == 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NewerMinorWarning)
        assert validate(again).codes == ["W207"]
        assert upgrade(source).steps == ()


def test_unknown_tables_columns_and_keys_survive_an_upgrade(tmp_path: Path) -> None:
    before = Bundle.open(CORPUS / "valid" / "extension.wsformat")
    result = upgrade(CORPUS / "valid" / "extension.wsformat", tmp_path / "y.wsformat")
    assert result.bundle.table("acme__heat").equals(before.table("acme__heat"))
    assert result.bundle.table("captures").equals(before.table("captures"))
    assert result.bundle.manifest.extra == before.manifest.extra
    assert result.bundle.manifest.extensions == before.manifest.extensions
    assert result.bundle.manifest.sources == before.manifest.sources


def test_targets_and_broken_bundles(root: Path, tmp_path: Path) -> None:
    upgrade(root, tmp_path / "y.wsformat")
    with pytest.raises(OutputExists):
        upgrade(root, tmp_path / "y.wsformat")
    (root / "events.parquet").unlink()
    with pytest.raises(MalformedInput, match="its file is missing"):
        open_raw(root)
    with pytest.raises(MalformedInput, match="no such bundle"):
        upgrade(tmp_path / "gone.wsformat")
