"""What an addition makes of bundles: odd manifests, texts that are listed beforehand and texts that are not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lake_case as case
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from wsformat.bundle import Bundle
from wsformat.errors import MalformedInput
from wsformat.lake import Lake, reading


def of_table(key: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda manifest: manifest["tables"]["events"].update({key: value})


ODD: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "fewer rows": (of_table("rows", 0), "events has 18 rows, its manifest says 0"),
    "more rows": (of_table("rows", 10**12), "events has 18 rows, its manifest says 1000000000000"),
    "no rows": (of_table("rows", None), "rows None is no number of rows"),
    "rows as text": (of_table("rows", "18"), "rows '18' is no number of rows"),
    "negative rows": (of_table("rows", -5), "rows -5 is no number of rows"),
    "rows beyond 64 bits": (of_table("rows", 10**30), "is no number of rows"),
    "columns as a list": (of_table("columns", [1]), "columns is no object"),
    "a digest that is none": (of_table("columns", {"t": 5}), "column t: values differ from the manifest's digest"),
    "a source that is none": (lambda m: m.update(sources=[1]), "arrays of objects"),
    "captures of a source": (lambda m: m.update(sources=[{"capture_ids": 5}]), "capture_ids must be arrays"),
    "an extension that is none": (lambda m: m.update(extensions=["x"]), "arrays of objects"),
}


@pytest.mark.parametrize("odd", ODD)
def test_a_manifest_that_is_wrong_is_refused_in_one_line(odd: str, tmp_path: Path) -> None:
    paths = case.written(tmp_path / "in", case.several(2))
    change, message = ODD[odd]
    file = paths[0] / "manifest.json"
    manifest = json.loads(file.read_text())
    message = message.replace("18", str(manifest["tables"]["events"]["rows"])) if "as text" not in odd else message
    change(manifest)
    file.write_text(json.dumps(manifest))
    lake = Lake.init(tmp_path / "L")
    with pytest.raises(MalformedInput) as caught:
        lake.add(paths)
    assert message in str(caught.value)
    assert str(paths[0]) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert lake.verify().captures == 0


def odd_texts(bundle: Bundle, listed: bool) -> Bundle:
    """The bundle with a role that needs quoting, which the table roles lists or does not."""
    data = {name: bundle.table(name) for name in bundle.data}
    for name, table in data.items():
        if "role" in table.column_names and (listed or name != "roles"):
            old = table.column("role").to_pylist()
            new = [f"it's \\ {text} 'ä'" if text else text for text in old]
            data[name] = table.set_column(table.column_names.index("role"), "role", pa.array(new))
    return Bundle.from_tables(data)


@pytest.mark.parametrize("listed", [True, False], ids=["listed", "not listed"])
def test_texts_come_out_as_they_went_in_whether_they_are_listed_or_not(
    listed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundles = [odd_texts(one, listed) for one in case.several(2)] + case.several(1, start=2)
    paths = case.written(tmp_path / "in", bundles)
    lakes, quick = [], []
    real = reading._numbered

    def noted(name: str, *rest: Any) -> Any:
        found = real(name, *rest)
        quick.append((name, found is not None))
        return found

    monkeypatch.setattr(reading, "_numbered", noted)
    for number, long in enumerate((1, 10**9)):
        monkeypatch.setattr(reading, "LONG", long)
        monkeypatch.setattr("wsformat.lake.stage.LONG", long)
        lakes.append(Lake.init(tmp_path / f"L{number}"))
        lakes[-1].add(paths)
        # Through memory as well: the digest of the content must not depend on how it was read.
        assert lakes[-1].add([Bundle.open(path) for path in paths]).present == case.ids(bundles)
        assert lakes[-1].add(bundles).present == case.ids(bundles)
    assert ("events", True) in quick, "the quick way was never taken"
    first, second = (
        [lake.sql(f"SELECT * FROM {name} ORDER BY ALL").to_pylist() for name in ("events", "lanes")] for lake in lakes
    )
    assert first == second
    for bundle in bundles:
        capture = bundle.table("captures").column("capture_id")[0].as_py()
        assert lakes[0].get([capture]).table("events").to_pylist() == bundle.table("events").to_pylist()
    for lake in lakes:
        case.sound(lake)


def test_events_of_a_capture_that_is_not_listed_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The quick way cannot read them, the plain one names them."""
    monkeypatch.setattr(reading, "LONG", 1)
    monkeypatch.setattr("wsformat.lake.stage.LONG", 1)
    paths = case.written(tmp_path / "in", case.several(2))
    file = paths[1] / "events.parquet"
    rows = pq.read_table(file)
    pq.write_table(rows.set_column(0, "capture_id", pa.array(["stranger"] * rows.num_rows)), file)
    with pytest.raises(MalformedInput, match="rows of capture 'stranger'"):
        Lake.init(tmp_path / "L").add(paths)


def test_a_file_with_rows_that_its_manifest_leaves_out_is_not_passed_over(tmp_path: Path) -> None:
    """And one that is empty, as its manifest says, is."""
    bundle = case.several(1)[0]
    (path,) = case.written(tmp_path / "in", [bundle])
    manifest = json.loads((path / "manifest.json").read_text())
    findings = bundle.table("findings").slice(0, 0)
    pq.write_table(findings, path / "findings.parquet")
    manifest["tables"]["findings"] = {"file": "findings.parquet", "rows": 0, "columns": {}}
    (path / "manifest.json").write_text(json.dumps(manifest))
    lake = Lake.init(tmp_path / "L")
    assert lake.add([path]).added == case.ids([bundle])
    case.sound(lake)
