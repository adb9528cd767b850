"""Merging: concatenation in the order of capture_id, and every reason to refuse."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from wsformat.bundle import Bundle
from wsformat.errors import BadRequest, MalformedInput, OutputExists
from wsformat.merge import merge, merged
from wsformat.tables import tables
from wsformat.validate import validate

VALID = Path(__file__).parents[1] / "conformance" / "valid"


def identity(letter: str) -> str:
    return letter * 26


def capture(letter: str, lanes: int = 2, **more: Any) -> dict[str, list[dict[str, Any]]]:
    """Rows of one capture with some lanes."""
    key = {"capture_id": identity(letter)}
    return {
        "captures": [{**key, "kind": "stamped", "completeness": "complete", **more}],
        "lanes": [{**key, "lane": n, "kind": "warp", "completeness": "complete"} for n in range(lanes)],
    }


def several(letters: str, **more: Any) -> Bundle:
    """A bundle of several captures."""
    parts = [capture(letter, **more) for letter in letters]
    return Bundle.from_tables({name: [row for part in parts for row in part[name]] for name in parts[0]})


def on_disk(bundle: Bundle, folder: Path, name: str) -> Bundle:
    return bundle.write(folder / f"{name}.wsformat")


def test_a_merge_is_the_concatenation_in_order(tmp_path: Path) -> None:
    parts = [Bundle.open(VALID / f"{name}.wsformat") for name in ("stored_spans", "ring")]
    other = Bundle.from_tables(
        {
            name: [{**row, "capture_id": identity("f")} for row in parts[1].table(name).to_pylist()]
            for name in parts[1].data
        },
        sources=[{**parts[1].manifest.sources[0], "capture_ids": [identity("f")]}],
    )
    result = merge([other, parts[1]], tmp_path / "m.wsformat")
    assert validate(result).clean
    for name in parts[1].data:
        together = pa.concat_tables([parts[1].table(name), other.table(name)])
        assert result.table(name).equals(together), name
    assert [entry["capture_ids"] for entry in result.manifest.sources] == [
        [identity("f")],
        parts[1].manifest.sources[0]["capture_ids"],
    ]


@pytest.mark.parametrize("place", ["memory", "disk"])
def test_captures_of_two_bundles_interleave(tmp_path: Path, place: str) -> None:
    """Every other capture comes from the other bundle; the result is sorted all the same."""
    one, two = several("ace1"), several("bdf", lanes=3)
    if place == "disk":
        one, two = on_disk(one, tmp_path, "one"), on_disk(two, tmp_path, "two")
    result = merge([two, one], tmp_path / "m.wsformat")
    ids = result.table("lanes")["capture_id"].to_pylist()
    assert ids == sorted(ids)
    assert result.table("captures")["capture_id"].to_pylist() == [identity(c) for c in "1abcdef"]
    assert result.rows("lanes") == 4 * 2 + 3 * 3
    assert validate(result, ignore=["I211"]).clean


def test_runs_pass_whole_bundles_on_and_filter_the_others(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    filtered: list[tuple[str, str, str]] = []
    from wsformat import merge as module

    original: Callable[..., Any] = module._between

    def spy(part: Any, low: str, high: str) -> Any:
        filtered.append((part.name, low[0], high[0]))
        return original(part, low, high)

    monkeypatch.setattr(module, "_between", spy)
    merge([several("abx"), several("cd")], tmp_path / "m.wsformat")
    assert {entry[1:] for entry in filtered} == {("a", "b"), ("x", "x")}


def test_the_same_capture_twice_is_taken_once(tmp_path: Path) -> None:
    one = on_disk(several("ab"), tmp_path, "one")
    again = several("bc")
    shuffled = again.with_tables({"lanes": again.table("lanes").sort_by([("lane", "descending")])})
    result = merge([one, shuffled], tmp_path / "m.wsformat")
    assert result.table("captures")["capture_id"].to_pylist() == [identity(c) for c in "abc"]
    assert result.rows("lanes") == 6


@pytest.mark.parametrize(
    ("other", "table"),
    [
        (several("b", label="renamed"), "captures"),
        (several("b", lanes=3), "lanes"),
        (
            several("b").with_tables({"attributes": [{"capture_id": identity("b"), "name": "x", "type": "text"}]}),
            "attributes",
        ),
        (
            several("b").with_tables(
                {"lanes": [{"capture_id": identity("b"), "lane": n, "kind": "cta"} for n in range(2)]}
            ),
            "lanes",
        ),
    ],
    ids=["value", "more rows", "more tables", "same keys"],
)
def test_the_same_capture_with_other_rows_is_refused(tmp_path: Path, other: Bundle, table: str) -> None:
    one = on_disk(several("ab"), tmp_path, "one")
    with pytest.raises(
        BadRequest, match=f"capture b+ is in one.wsformat and in .*, with different rows in table {table}"
    ):
        merge([one, other], tmp_path / "m.wsformat")
    assert [p.name for p in tmp_path.iterdir()] == ["one.wsformat"]


def test_extension_columns_and_tables_survive(tmp_path: Path) -> None:
    extended = Bundle.open(VALID / "extension.wsformat")
    result = merge([extended, several("0")], tmp_path / "m.wsformat")
    captures = result.table("captures")
    assert captures.column_names[-1] == "acme__rack"
    assert captures["acme__rack"].to_pylist() == [None, 12.5]
    assert result.rows("acme__heat") == 3
    assert result.manifest.extensions == extended.manifest.extensions
    assert result.manifest.extra == extended.manifest.extra
    report = validate(result)
    assert report.codes == ["I211"]


def test_what_cannot_be_in_one_manifest_is_refused(tmp_path: Path) -> None:
    def with_manifest(letter: str, **extra: Any) -> Bundle:
        bundle = several(letter)
        from dataclasses import replace

        return Bundle(bundle.data, replace(bundle.manifest, **extra))

    first = with_manifest("a", extensions=({"name": "acme.heat", "version": "1"},), extra={"acme__note": 1})
    with pytest.raises(BadRequest, match=r"acme.heat is there in versions 1 and 2"):
        merged([first, with_manifest("b", extensions=({"name": "acme.heat", "version": "2"},))])
    with pytest.raises(BadRequest, match="'acme__note' has different values"):
        merged([first, with_manifest("b", extra={"acme__note": 2})])
    both = merged(
        [
            first,
            with_manifest(
                "b", extensions=({"name": "acme.heat", "version": "1", "tables": ["acme__x"], "must_understand": True},)
            ),
        ]
    )
    assert both.manifest.extensions == (
        {"name": "acme.heat", "version": "1", "tables": ["acme__x"], "must_understand": True},
    )
    text = several("a").with_tables(
        {"captures": several("a").table("captures").append_column("acme__x", pa.array(["1"]))}
    )
    number = several("b").with_tables(
        {"captures": several("b").table("captures").append_column("acme__x", pa.array([1]))}
    )
    with pytest.raises(BadRequest, match=r"column acme__x: string in one bundle, int64 in another"):
        merge([text, number], tmp_path / "m.wsformat")
    assert list(tmp_path.iterdir()) == []


def test_nothing_to_merge_and_nothing_to_merge_into(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="no bundle"):
        merge([], tmp_path / "m.wsformat")
    with pytest.raises(MalformedInput, match="captures is empty"):
        merge([Bundle.from_tables({})], tmp_path / "m.wsformat")
    merge([several("a")], tmp_path / "m.wsformat")
    with pytest.raises(OutputExists):
        merge([several("b")], tmp_path / "m.wsformat")
    assert merge([several("b")], tmp_path / "m.wsformat", force=True).rows("captures") == 1


def test_large_tables_are_streamed(tmp_path: Path) -> None:
    """No more than a few row groups are asked for before rows are written."""
    import numpy as np

    asked: list[int] = []
    schema = tables()["events"].arrow

    def stream(letter: str) -> Callable[[], Any]:
        def batches() -> Any:
            for n in range(6):
                asked.append(n)
                constant = {"capture_id": identity(letter), "role": "r", "event": "e", "payload": ""}
                count = 131_072
                columns = [
                    pa.array(np.arange(count, dtype=np.int64) + n * count) if f.name == "t"
                    else pa.array(np.arange(count, dtype=np.int32) + n * count) if f.name == "iteration"
                    else pa.repeat(pa.scalar(constant.get(f.name, 0), f.type), count)
                    for f in schema
                ]  # fmt: skip
                yield pa.table(columns, schema=schema)

        return batches

    parts = []
    for letter in "ab":
        bundle = Bundle.from_tables({"captures": capture(letter)["captures"], "events": stream(letter)})
        parts.append(on_disk(bundle, tmp_path, letter))
    before = pa.total_allocated_bytes()
    peak = 0

    def watch(*_: Any) -> None:
        nonlocal peak
        peak = max(peak, pa.total_allocated_bytes() - before)

    result = merge(parts, tmp_path / "m.wsformat", progress=watch)
    assert result.rows("events") == 12 * 131_072
    whole = parts[0].table("events").nbytes
    assert peak < whole, "a table was held as a whole"
