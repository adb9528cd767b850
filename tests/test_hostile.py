"""Input made to do harm: refused with a code or one clear line, in bounded time and memory, nothing written outside."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import stat
import subprocess
import sys
import time
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wsformat.archive import unzip_bundle, zip_bundle
from wsformat.bundle import Bundle
from wsformat.errors import MalformedInput, WsformatError
from wsformat.seal import seal
from wsformat.upgrade import upgrade
from wsformat.validate import validate

CORPUS = Path(__file__).parents[1] / "conformance"
RING = CORPUS / "valid" / "ring.wsformat"
pytestmark = pytest.mark.filterwarnings("ignore::wsformat.errors.NewerMinorWarning")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A copy of a good bundle, to be spoilt."""
    target = tmp_path / "x.wsformat"
    shutil.copytree(RING, target)
    return target


@contextlib.contextmanager
def bounded(seconds: float = 20.0, megabytes: float = 200.0) -> Iterator[None]:
    """Fails when what runs inside takes long, in CPU seconds of this process, or Python allocates much."""
    tracemalloc.start()
    start = time.process_time()
    try:
        yield
        assert time.process_time() - start < seconds
        assert tracemalloc.get_traced_memory()[1] < megabytes * 2**20
    finally:
        tracemalloc.stop()


def refused(action: Callable[[], Any]) -> str:
    """The one line with which an action is refused."""
    with pytest.raises(WsformatError) as caught:
        action()
    assert "\n" not in caught.value.message
    return caught.value.message


def snapshot(folder: Path) -> dict[str, bytes | None]:
    """Every file below a folder."""
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None for p in sorted(folder.rglob("*"))}


def set_file(name: str) -> Callable[[dict[str, Any]], None]:
    return lambda data: data["tables"]["events"].update(file=name)


# --- manifest -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["../secret.parquet", "/etc/passwd", "a/../../b", "..", ".", "", "C:\\x", "\\\\host\\x", "a\x00b", "a b", "x" * 500,
     ".hidden", "~/x", "$HOME", "events.parquet/", "..%2fx", "ev\nents", "\u202egpj"],
)  # fmt: skip
def test_a_file_name_that_leads_elsewhere(root: Path, name: str) -> None:
    (root.parent / "secret.parquet").write_bytes((root / "events.parquet").read_bytes())
    data = json.loads((root / "manifest.json").read_text())
    set_file(name)(data)
    (root / "manifest.json").write_text(json.dumps(data))
    report = validate(root)
    assert "E208" in report.codes
    for action in (lambda: Bundle.open(root), lambda: seal(root), lambda: upgrade(root)):
        assert "not a plain file name" in refused(action)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("[" * 100_000, "E203"),
        ("[" * 100_000 + "]" * 100_000, "E203"),
        ('{"a":' * 3_000 + "1" + "}" * 3_000, "E203"),
        ('{"format": "wsformat", "version": "0.1", "n": ' + "9" * 100_000 + "}", "E203"),
        ('{"format": "wsformat", "version": "0.1", "n": 1e999}', "E203"),
        ('{"format": "wsformat", "version": "0.1", "n": -9223372036854775809}', "E203"),
        ('{"format": "wsformat", "format": "wsformat"}', "E202"),
        ('{"a": {"b": 1, "b": 2}}', "E202"),
        ('{"n": NaN}', "E201"),
        ('{"n": Infinity}', "E201"),
        ("", "E201"),
        ("\x00" * 1000, "E201"),
        ("null", "E204"),
        ('"wsformat"', "E204"),
        ('{"format": "wsformat", "version": 0.1}', "E205"),
        ('{"format": "wsformat", "version": "0.1\\n"}', "E205"),
        ('{"format": "wsformat", "version": "00.1"}', "E205"),
        ('{"format": "wsformat", "version": "0.99999999999999999999"}', "E205"),
        ('{"format": "wsformat", "version": "7.0"}', "E206"),
    ],
    ids=range(19),
)
def test_a_hostile_manifest_gets_one_code(root: Path, text: str, code: str) -> None:
    (root / "manifest.json").write_text(text, encoding="utf-8")
    with bounded():
        report = validate(root)
    assert report.codes == [code], report.text()
    assert report.not_run
    assert len(report.text()) < 5_000


def test_a_manifest_of_a_gigabyte_is_refused_by_its_size(root: Path) -> None:
    with (root / "manifest.json").open("r+b") as file:
        file.truncate(2**30)  # sparse: takes no room on the disk
    with bounded(seconds=10, megabytes=20):
        report = validate(root)
        assert report.codes == ["E203"]
        assert "1073741824 bytes" in report.problems[0].message
        for action in (lambda: Bundle.open(root), lambda: seal(root), lambda: upgrade(root)):
            assert "1073741824 bytes" in refused(action)


def test_a_manifest_with_many_entries_stays_bounded(root: Path) -> None:
    data = json.loads((root / "manifest.json").read_text())
    entry = data["tables"]["events"]
    data["tables"] |= {f"acme__t{i}": {**entry, "file": f"acme__t{i}.parquet"} for i in range(5_000)}
    data["sources"] = [{"nonsense": i} for i in range(5_000)]
    (root / "manifest.json").write_text(json.dumps(data))
    with bounded(seconds=60):
        report = validate(root)
    assert {"E102", "E204"} <= set(report.codes)
    assert next(p for p in report.problems if p.code == "E102").count == 5_000


def test_not_utf8(root: Path) -> None:
    (root / "manifest.json").write_bytes(b'{"format": "\xff\xfe"}')
    report = validate(root)
    assert report.codes == ["E201"]
    assert report.problems[0].message == "not UTF-8 at byte 12"


# --- table files ----------------------------------------------------------------------------------------------------


def test_links_are_not_followed(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.parquet"
    shutil.move(root / "events.parquet", outside)
    os.symlink(outside, root / "events.parquet")
    report = validate(root)
    assert report.codes == ["E112"]
    assert {entry.reason for entry in report.not_run} == {"table events: its file is no regular file"}
    for action in (lambda: Bundle.open(root), lambda: upgrade(root)):
        assert "its file is missing" in refused(action)
    os.unlink(root / "events.parquet")
    os.mkfifo(root / "events.parquet")
    with bounded(seconds=10):
        assert validate(root).codes == ["E112"]


@pytest.mark.parametrize("name", ["events.parquet", "captures.parquet", "lanes.parquet"])
def test_truncated_swapped_and_missing_table_files(root: Path, name: str) -> None:
    good = (root / name).read_bytes()
    (root / name).write_bytes(good[: len(good) // 2])
    assert {"E103", "E104"} <= set(validate(root).codes)
    assert name in refused(lambda: Bundle.open(root))
    (root / name).write_bytes((root / "roles.parquet").read_bytes())
    report = validate(root)
    assert "E104" in report.codes
    assert "E301" in report.codes
    assert "E308" in report.codes
    (root / name).unlink()
    assert "E102" in validate(root).codes
    assert "its file is missing" in refused(lambda: Bundle.open(root))


def test_a_file_of_another_format_under_the_name_of_a_table(root: Path) -> None:
    for content in (b"", b"PAR1", b"PAR1" * 1000, b"PK\x03\x04" + bytes(100), b"\x00" * 4096):
        (root / "events.parquet").write_bytes(content)
        assert {"E103", "E104"} <= set(validate(root).codes)


def test_rows_that_a_few_bytes_claim_are_not_read(root: Path) -> None:
    """2 * 10^7 equal values are some 50 KB; a hostile file claims far more."""
    rows = pa.table({"capture_id": pa.repeat("a", 20_000_000).dictionary_encode()})
    pq.write_table(rows, root / "acme__bomb.parquet", compression="zstd", store_schema=False, write_statistics=False)
    assert (root / "acme__bomb.parquet").stat().st_size < 100_000
    data = json.loads((root / "manifest.json").read_text())
    data["tables"]["acme__bomb"] = {
        "file": "acme__bomb.parquet",
        "rows": 20_000_000,
        "bytes": 1,
        "sha256": "0" * 64,
        "columns": {},
    }
    (root / "manifest.json").write_text(json.dumps(data))
    with bounded(seconds=20, megabytes=50):
        report = validate(root, max_rows=1_000_000)
    assert {entry.code for entry in report.not_run} >= {"E107", "E403"}
    with bounded(seconds=60, megabytes=50):
        assert "E105" not in validate(root).codes


def test_text_that_is_no_utf8_in_a_table(root: Path) -> None:
    rows = pq.ParquetFile(root / "roles.parquet").read()
    bad = pa.Array.from_buffers(
        pa.string(),
        2,
        [None, pa.py_buffer(b"\x00\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00"), pa.py_buffer(b"\xff\xfe")],
    )
    pq.write_table(
        rows.set_column(rows.column_names.index("warps"), "warps", bad), root / "roles.parquet", store_schema=False
    )
    report = validate(root)
    assert "E103" in report.codes, report.text()


def test_a_codec_that_does_not_exist_ends_no_process(root: Path) -> None:
    """pyarrow aborts when it is asked for the name of such a codec: no exception, the process is gone."""
    file = root / "events.parquet"
    pq.write_table(pq.ParquetFile(file).read(), file, compression="brotli", store_schema=False)
    raw = file.read_bytes()
    footer = len(raw) - 8 - int.from_bytes(raw[-8:-4], "little")
    # Field "codec" of a column chunk: 4 and 22, zigzag. The same bytes as a type would be FLOAT, which no column is.
    brotli, unknown = b"\x15\x08", b"\x15\x2c"
    assert raw[footer:].count(brotli) == 13
    file.write_bytes(raw[:footer] + raw[footer:].replace(brotli, unknown))
    name = f"import pyarrow.parquet as pq; pq.read_metadata({str(file)!r}).row_group(0).column(0).compression"
    if subprocess.run([sys.executable, "-c", name], capture_output=True, check=False).returncode == 0:
        pytest.skip("this pyarrow knows codec 22")
    code = f"from wsformat.validate import validate; print(validate({str(root)!r}).codes)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "E103" in done.stdout or "W806" in done.stdout
    with contextlib.suppress(WsformatError):
        Bundle.open(root).table("events")


FUZZ = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))


@FUZZ
@given(
    name=st.sampled_from(
        ["manifest.json", "events.parquet", "lanes.parquet", "captures.parquet", "dependencies.parquet"]
    ),
    edits=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=6),
    cut=st.one_of(st.none(), st.floats(0, 1)),
)
def test_no_bytes_bring_the_validator_down(
    tmp_path_factory: pytest.TempPathFactory, name: str, edits: Any, cut: Any
) -> None:
    root = tmp_path_factory.mktemp("fuzz") / "x.wsformat"
    shutil.copytree(RING, root)
    raw = bytearray((root / name).read_bytes())
    for where, value in edits:
        raw[int(where * len(raw))] = value
    changed = bytes(raw if cut is None else raw[: int(cut * len(raw))])
    same = changed == (RING / name).read_bytes()
    (root / name).write_bytes(changed)
    report = validate(root)
    assert report.text()
    assert json.dumps(report.to_json())
    if name != "manifest.json":
        assert same or not report.ok, "a changed table file has another sha256 or size"
    for action in (lambda: Bundle.open(root).table("events"), lambda: upgrade(root, root.parent / "y.wsformat")):
        with contextlib.suppress(WsformatError):
            action()
    shutil.rmtree(root.parent)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
PLACES: list[list[str | int]] = [
    ["version"], ["tables"], ["tables", "events"], ["tables", "events", "file"], ["tables", "events", "rows"],
    ["tables", "events", "bytes"], ["tables", "events", "sha256"], ["tables", "events", "columns"],
    ["tables", "events", "columns", "t"], ["tables", "events", "columns", "t", "sum"], ["sources"], ["sources", 0],
    ["sources", 0, "capture_ids"], ["extensions"], ["writer"], ["format"],
]  # fmt: skip


@FUZZ
@given(place=st.sampled_from(PLACES), value=JSON)
def test_no_json_brings_the_validator_down(tmp_path_factory: pytest.TempPathFactory, place: Any, value: Any) -> None:
    root = tmp_path_factory.mktemp("fuzz") / "x.wsformat"
    shutil.copytree(RING, root)
    data = json.loads((root / "manifest.json").read_text())
    target = data
    for key in place[:-1]:
        target = target[key]
    target[place[-1]] = value
    (root / "manifest.json").write_text(json.dumps(data))
    report = validate(root)
    assert report.text()
    assert [entry for entry in report.not_run if "Error" in entry.reason] == [], "a check failed instead of judging"
    for action in (lambda: Bundle.open(root), lambda: upgrade(root, root.parent / "y.wsformat")):
        with contextlib.suppress(WsformatError):
            action()
    shutil.rmtree(root.parent)


@FUZZ
@given(
    entry=st.fixed_dictionaries(
        {"name": JSON, "version": JSON, "must_understand": JSON},
        optional={"tables": JSON, "columns": JSON, "schema": JSON},
    )
)
def test_no_extension_entry_brings_the_validator_down(tmp_path_factory: pytest.TempPathFactory, entry: Any) -> None:
    root = tmp_path_factory.mktemp("fuzz") / "x.wsformat"
    shutil.copytree(CORPUS / "valid" / "minimal.wsformat", root)
    data = json.loads((root / "manifest.json").read_text())
    data["extensions"] = [entry]
    (root / "manifest.json").write_text(json.dumps(data))
    report = validate(root)
    assert [found for found in report.not_run if "Error" in found.reason] == []
    shutil.rmtree(root.parent)


# --- zip ------------------------------------------------------------------------------------------------------------


def make_zip(path: Path, entries: list[tuple[Any, bytes]], method: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return path


def good_entries(folder: str = "x.wsformat/") -> list[tuple[Any, bytes]]:
    return [(folder + p.name, p.read_bytes()) for p in sorted(RING.iterdir())]


def linked(name: str, to: str) -> tuple[zipfile.ZipInfo, bytes]:
    entry = zipfile.ZipInfo(name)
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    return entry, to.encode()


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ([("../evil.parquet", b"x")], "does not lie in|is not a plain|several folders"),
        ([("x.wsformat/../../evil.parquet", b"x")], "does not lie in"),
        ([("/tmp/evil.parquet", b"x")], "does not lie in|absolute|several folders"),
        ([("x.wsformat/..", b"x")], "is not a plain file name"),
        ([("..\\evil.parquet", b"x")], "does not lie in"),
        ([("C:\\evil.parquet", b"x")], "does not lie in"),
        ([("x.wsformat/sub/evil.parquet", b"x")], "does not lie in"),
        ([("y.wsformat/evil.parquet", b"x")], "several folders"),
        ([("x.wsformat/evil.parquet", b"x")], "its manifest does not list"),
        ([("x.wsformat/.hidden", b"x")], "is not a plain file name"),
        ([linked("x.wsformat/evil.parquet", "/etc/passwd")], "is a link"),
        ([("x.wsformat/EVENTS.parquet", b"x")], "occurs twice"),
        ([(f"x.wsformat/n{i}.parquet", b"") for i in range(2_000)], "2010 entries"),
    ],
    ids=range(13),
)
def test_a_zip_that_reaches_outside(tmp_path: Path, extra: Any, message: str) -> None:
    source = make_zip(tmp_path / "x.zip", [*good_entries(), *extra])
    before = snapshot(tmp_path)
    with pytest.raises(MalformedInput, match=message):
        unzip_bundle(source, tmp_path / "x.wsformat")
    assert snapshot(tmp_path) == before, "nothing was written"


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_zip_with_one_name_twice(tmp_path: Path) -> None:
    source = make_zip(tmp_path / "x.zip", [*good_entries(), *good_entries()[-1:]])
    with pytest.raises(MalformedInput, match="occurs twice"):
        unzip_bundle(source, tmp_path / "x.wsformat")


def test_a_zip_bomb_is_refused_before_it_unfolds(tmp_path: Path) -> None:
    bomb = make_zip(
        tmp_path / "x.zip", [*good_entries(), ("x.wsformat/events2.parquet", bytes(300 * 2**20))], zipfile.ZIP_DEFLATED
    )
    assert bomb.stat().st_size < 2**20
    before = snapshot(tmp_path)
    with bounded(seconds=5, megabytes=20), pytest.raises(MalformedInput, match="would grow"):
        unzip_bundle(bomb, tmp_path / "x.wsformat")
    assert snapshot(tmp_path) == before


def test_a_zip_that_says_less_than_it_holds(tmp_path: Path) -> None:
    """The directory of the archive promises few bytes, the stream holds many."""
    source = make_zip(tmp_path / "x.zip", [("x.wsformat/manifest.json", b" " * 5_000_000)], zipfile.ZIP_DEFLATED)
    raw = bytearray(source.read_bytes())
    true = (5_000_000).to_bytes(4, "little")
    for _ in range(2):
        at = raw.index(true)
        raw[at : at + 4] = (1000).to_bytes(4, "little")
    source.write_bytes(raw)
    before = snapshot(tmp_path)
    with bounded(seconds=5, megabytes=30), pytest.raises(MalformedInput):
        unzip_bundle(source, tmp_path / "x.wsformat")
    assert snapshot(tmp_path) == before


def test_limits_of_size_hold(tmp_path: Path) -> None:
    source = make_zip(tmp_path / "x.zip", good_entries())
    with pytest.raises(MalformedInput, match="more than 5000 bytes"):
        unzip_bundle(source, tmp_path / "x.wsformat", max_bytes=5_000)


@FUZZ
@given(
    edits=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=8),
    cut=st.floats(0, 1),
)
def test_no_bytes_bring_unzip_down(tmp_path_factory: pytest.TempPathFactory, edits: Any, cut: float) -> None:
    folder = tmp_path_factory.mktemp("zip")
    source = zip_bundle(RING, folder / "x.zip")
    raw = bytearray(source.read_bytes())
    for where, value in edits:
        # Half of the edits go to the directory at the end, where they hurt most.
        at = int(where * len(raw)) if value % 2 else len(raw) - 1 - int(where * min(len(raw), 1200))
        raw[at] = value
    source.write_bytes(raw if cut > 0.3 else raw[: int(len(raw) * cut * 3)])
    before = snapshot(folder)
    refusal = None
    try:
        assert unzip_bundle(source, folder / "y.wsformat").rows("captures") == 1
    except WsformatError as error:
        refusal = error.message
    if refusal is not None:
        assert "\n" not in refusal
        assert snapshot(folder) == before
    shutil.rmtree(folder)


def test_what_is_no_zip(tmp_path: Path) -> None:
    for content in (b"", b"PK", bytes(1000), io.BytesIO(b"PK\x05\x06" + bytes(18)).getvalue()):
        path = tmp_path / "x.zip"
        path.write_bytes(content)
        with pytest.raises(MalformedInput, match=r"not a usable zip|holds no manifest"):
            unzip_bundle(path, tmp_path / "x.wsformat")
    with pytest.raises(MalformedInput, match="no such file"):
        unzip_bundle(tmp_path / "gone.zip", tmp_path / "x.wsformat")
    with pytest.raises(WsformatError):
        unzip_bundle(tmp_path, tmp_path / "x.wsformat")
