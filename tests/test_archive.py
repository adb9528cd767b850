"""``NAME.wsformat.zip``: round trip, sameness, atomic. What is hostile: ``test_hostile.py``."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import pytest

from wsformat.archive import unzip_bundle, zip_bundle
from wsformat.errors import MalformedInput, OutputExists, WsformatError
from wsformat.validate import validate

VALID = Path(__file__).parents[1] / "conformance" / "valid"


@pytest.mark.parametrize("name", ["ring", "every_table", "extension"])
def test_round_trip_gives_the_same_bytes(tmp_path: Path, name: str) -> None:
    source = VALID / f"{name}.wsformat"
    packed = zip_bundle(source, tmp_path / f"{name}.wsformat.zip")
    bundle = unzip_bundle(packed, tmp_path / f"{name}.wsformat")
    assert bundle.path is not None
    assert {p.name: p.read_bytes() for p in bundle.path.iterdir()} == {p.name: p.read_bytes() for p in source.iterdir()}
    assert validate(bundle).ok
    assert sorted(p.name for p in tmp_path.iterdir()) == [f"{name}.wsformat", f"{name}.wsformat.zip"]


def test_entries_are_stored_and_the_archive_is_the_same_each_time(tmp_path: Path) -> None:
    one = zip_bundle(VALID / "ring.wsformat", tmp_path / "one.zip").read_bytes()
    root = tmp_path / "ring.wsformat"
    shutil.copytree(VALID / "ring.wsformat", root)
    (root / "notes.txt").write_text("not of the bundle")
    two = zip_bundle(root, tmp_path / "two.zip").read_bytes()
    assert one == two
    with zipfile.ZipFile(tmp_path / "one.zip") as archive:
        assert archive.namelist()[0] == "ring.wsformat/manifest.json"
        assert {entry.compress_type for entry in archive.infolist()} == {zipfile.ZIP_STORED}
        assert archive.testzip() is None


@pytest.mark.parametrize("folder", ["", "any name/", "ring.wsformat/"])
@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_archives_that_other_tools_made(tmp_path: Path, folder: str, method: int) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w", method) as archive:
        if folder:
            archive.mkdir(folder)
        for path in (VALID / "ring.wsformat").iterdir():
            archive.write(path, folder + path.name)
    assert unzip_bundle(tmp_path / "x.zip", tmp_path / "x.wsformat").rows("events") == 24


def test_targets_that_are_there(tmp_path: Path) -> None:
    packed = zip_bundle(VALID / "ring.wsformat", tmp_path / "x.zip")
    with pytest.raises(OutputExists):
        zip_bundle(VALID / "ring.wsformat", packed)
    zip_bundle(VALID / "minimal.wsformat", packed, force=True)
    bundle = unzip_bundle(packed, tmp_path / "x.wsformat")
    with pytest.raises(OutputExists):
        unzip_bundle(packed, tmp_path / "x.wsformat")
    assert unzip_bundle(packed, tmp_path / "x.wsformat", force=True).rows("captures") == bundle.rows("captures")
    (tmp_path / "folder").mkdir()
    for action in (lambda: zip_bundle(VALID / "ring.wsformat", tmp_path / "folder", force=True),
                   lambda: unzip_bundle(packed, tmp_path / "folder", force=True)):  # fmt: skip
        with pytest.raises(OutputExists):
            action()
    with pytest.raises(WsformatError, match="no such directory"):
        unzip_bundle(packed, tmp_path / "gone" / "x.wsformat")
    with pytest.raises(WsformatError, match="no such directory"):
        zip_bundle(VALID / "ring.wsformat", tmp_path / "gone" / "x.zip")


def test_a_damaged_table_is_found_before_anything_is_in_place(tmp_path: Path) -> None:
    packed = zip_bundle(VALID / "ring.wsformat", tmp_path / "x.zip")
    raw = bytearray(packed.read_bytes())
    raw[raw.index(b"PAR1") + 50] ^= 0xFF
    packed.write_bytes(raw)
    with pytest.raises(MalformedInput, match="not a usable zip file: Bad CRC"):
        unzip_bundle(packed, tmp_path / "x.wsformat")
    assert [p.name for p in tmp_path.iterdir()] == ["x.zip"]


def test_no_bundle_to_pack(tmp_path: Path) -> None:
    with pytest.raises(MalformedInput, match=r"no manifest\.json"):
        zip_bundle(tmp_path, tmp_path / "x.zip")
    assert list(tmp_path.iterdir()) == []


def test_messages_speak_of_the_archive_not_of_a_scratch_folder(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("manifest.json", '{"format": "other"}')
    with pytest.raises(MalformedInput) as caught:
        unzip_bundle(tmp_path / "x.zip", tmp_path / "x.wsformat")
    assert "partial" not in caught.value.message
