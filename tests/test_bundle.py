"""The model: what goes in comes out, writing is atomic, reading is lenient, errors are clear."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsformat.bundle import Bundle
from wsformat.digests import ColumnDigest
from wsformat.errors import (
    BadRequest,
    MalformedInput,
    NewerMinorWarning,
    OutputExists,
    UnsupportedVersion,
    WsformatError,
)
from wsformat.tables import DEFAULTS, format_version, tables
from wsformat.writer import in_order, row_groups

CAPTURE = {"capture_id": "c", "kind": "stamped", "completeness": "complete"}


def event(**values: Any) -> dict[str, Any]:
    base = {"capture_id": "c", "lane": 0, "launch": 0, "role": "mma", "event": "e", "tile": 0, "iteration": 0}
    return {**base, "clock": 0, "t": 0, **values}


def small(rows: int = 3) -> Bundle:
    return Bundle.from_tables({"captures": [CAPTURE], "events": [event(iteration=i, t=10 * i) for i in range(rows)]})


def value_of(kind: str) -> st.SearchStrategy[Any]:
    return {
        "INT32": st.integers(-(2**31), 2**31 - 1),
        "INT64": st.integers(-(2**63), 2**63 - 1),
        "DOUBLE": st.none() | st.floats(allow_nan=False),
        "BOOLEAN": st.booleans(),
        "STRING": st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    }[kind]


@st.composite
def any_tables(draw: st.DrawFn) -> dict[str, list[dict[str, Any]]]:
    chosen = draw(st.sets(st.sampled_from([n for n in tables() if n != "captures"]), max_size=4))
    result = {"captures": [CAPTURE]}
    for name in chosen:
        row = st.fixed_dictionaries({c.name: value_of(c.type) for c in tables()[name].columns})
        result[name] = draw(st.lists(row, min_size=1, max_size=4))
    return result


@settings(max_examples=40, deadline=None)
@given(data=any_tables())
def test_every_table_comes_back_as_it_was_written(data: dict[str, list[dict[str, Any]]], tmp_path_factory: Any) -> None:
    bundle = Bundle.from_tables(data)
    written = bundle.write(tmp_path_factory.mktemp("b") / "x.wsformat")
    for name, rows in data.items():
        expected = [{**{c.name: DEFAULTS[c.type] for c in tables()[name].columns}, **row} for row in rows]
        order = [(k, "ascending") for k in tables()[name].sort]
        assert written.table(name).schema == tables()[name].arrow
        got = written.table(name).to_pylist()
        assert sorted(map(repr, got)) == sorted(map(repr, expected))
        assert in_order(written.table(name), tables()[name].sort) or order == []


def test_missing_table_is_empty_and_unknown_table_is_an_error() -> None:
    bundle = small()
    assert bundle.table("edges").num_rows == 0
    assert bundle.rows("edges") == 0
    with pytest.raises(BadRequest, match="no table 'nonsense'"):
        bundle.table("nonsense")
    with pytest.raises(MalformedInput, match="no table 'nonsense'"):
        Bundle.from_tables({"nonsense": []})
    with pytest.raises(MalformedInput, match="no column speed"):
        Bundle.from_tables({"captures": [{"speed": 1}]})
    with pytest.raises(MalformedInput, match="column t: expected INT64"):
        Bundle.from_tables({"events": [event(t="soon")]})
    with pytest.raises(MalformedInput, match="column lane: expected INT32"):
        Bundle.from_tables({"events": [event(lane=2**31)]})


def test_integers_are_never_null(tmp_path: Path) -> None:
    nulls = small().table("events").set_column(11, "t", pa.array([1, None, 3], pa.int64()))
    with pytest.raises(MalformedInput, match="table events, column t: holds nulls"):
        Bundle.from_tables({"captures": [CAPTURE], "events": nulls}).write(tmp_path / "x.wsformat")
    assert list(tmp_path.iterdir()) == []


def test_physical_layout(tmp_path: Path) -> None:
    n = 300_000
    t = np.cumsum(np.random.default_rng(0).integers(1, 400, n))
    events = small().table("events").slice(0, 1).take(np.zeros(n, dtype=np.int64))
    events = events.set_column(11, "t", pa.array(t)).set_column(9, "iteration", pa.array(np.arange(n, dtype=np.int32)))
    path = Bundle.from_tables({"captures": [CAPTURE], "events": events}).write(tmp_path / "x.wsformat").path
    assert path is not None
    meta = pq.read_metadata(path / "events.parquet")
    assert [meta.row_group(i).num_rows for i in range(meta.num_row_groups)] == [131_072, 131_072, 37_856]
    assert meta.metadata is None or b"ARROW:schema" not in meta.metadata
    column = {meta.schema.column(i).name: meta.row_group(0).column(i) for i in range(meta.num_columns)}
    assert "DELTA_BINARY_PACKED" in column["t"].encodings
    assert "RLE_DICTIONARY" in column["role"].encodings
    assert column["t"].compression == "ZSTD"
    assert column["t"].statistics.min == int(t[0])
    bytes_a_stamp = (path / "events.parquet").stat().st_size / n
    assert bytes_a_stamp < 2


def test_streamed_table_equals_the_same_table_in_memory(tmp_path: Path) -> None:
    whole = small(1000).table("events")
    parts = [whole.slice(i, 7) for i in range(0, 1000, 7)]
    streamed = Bundle.from_tables({"captures": [CAPTURE], "events": lambda: iter(parts)})
    a = streamed.write(tmp_path / "a.wsformat")
    b = Bundle.from_tables({"captures": [CAPTURE], "events": whole}).write(tmp_path / "b.wsformat")
    assert a.table("events").equals(b.table("events"))
    assert a.manifest.tables == b.manifest.tables
    assert streamed.rows("events") == 1000


@pytest.mark.parametrize("sizes", [[], [0], [5], [131_072], [131_071, 2], [400_000], [1, 0, 131_072, 131_071]])
def test_row_groups_keep_every_row(sizes: list[int]) -> None:
    parts = [pa.table({"x": pa.array(np.arange(n, dtype=np.int32))}) for n in sizes]
    got = list(row_groups(iter(parts)))
    assert sum(part.num_rows for part in got) == sum(sizes)
    assert all(part.num_rows % 131_072 == 0 for part in got[:-1])


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=50), st.integers(0, 50))
def test_digest_is_the_plain_sum_and_xor(values: list[int], cut: int) -> None:
    array = np.array(values, dtype=np.int64)
    digest = ColumnDigest().plus(array[:cut]).plus(array[cut:])
    xor = 0
    for value in values:
        xor ^= value
    assert digest == ColumnDigest(len(values), sum(values) % 2**64, xor % 2**64)


@given(st.lists(st.integers(-(2**31), 2**31 - 1), max_size=50))
def test_digest_of_int32_is_that_of_the_same_numbers_as_int64(values: list[int]) -> None:
    narrow, wide = np.array(values, dtype=np.int32), np.array(values, dtype=np.int64)
    assert ColumnDigest().plus(narrow) == ColumnDigest().plus(wide)


def test_digest_of_booleans() -> None:
    assert ColumnDigest().plus(np.array([True, False, True, True])) == ColumnDigest(4, 3, 1)


def test_output_that_is_there_needs_force_and_only_a_bundle_is_replaced(tmp_path: Path) -> None:
    target = tmp_path / "x.wsformat"
    small().write(target)
    with pytest.raises(OutputExists):
        small().write(target)
    assert small(5).write(target, force=True).rows("events") == 5
    other = tmp_path / "home"
    other.mkdir()
    (other / "precious").write_text("x")
    with pytest.raises(OutputExists, match="no bundle"):
        small().write(other, force=True)
    assert (other / "precious").read_text() == "x"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["home", "x.wsformat"]
    with pytest.raises(WsformatError, match="no such directory"):
        small().write(tmp_path / "nowhere" / "x.wsformat")


def test_a_bundle_can_replace_the_one_it_was_read_from(tmp_path: Path) -> None:
    target = tmp_path / "x.wsformat"
    opened = small().write(target)
    again = opened.with_tables({"events": [event(t=7)]}).write(target, force=True)
    assert again.table("events")["t"].to_pylist() == [7]


def test_an_error_while_writing_leaves_nothing(tmp_path: Path) -> None:
    def broken() -> Any:
        yield small().table("events")
        raise MalformedInput("half way")

    with pytest.raises(MalformedInput, match="half way"):
        Bundle.from_tables({"captures": [CAPTURE], "events": broken}).write(tmp_path / "x.wsformat")
    assert list(tmp_path.iterdir()) == []


def test_a_killed_writer_leaves_the_old_bundle(tmp_path: Path) -> None:
    target = tmp_path / "x.wsformat"
    small(4).write(target)
    program = textwrap.dedent(f"""
        import os, signal
        from wsformat.bundle import Bundle
        def stream():
            yield Bundle.open({str(target)!r}).table("events")
            os.kill(os.getpid(), signal.SIGKILL)
        Bundle.open({str(target)!r}).with_tables({{"events": stream}}).write({str(target)!r}, force=True)
    """)
    done = subprocess.run([sys.executable, "-c", program], check=False, env={**os.environ})
    assert done.returncode == -signal.SIGKILL
    assert Bundle.open(target).rows("events") == 4


def test_reading_is_lenient(tmp_path: Path) -> None:
    """Unknown keys, tables and columns are kept; a missing column is its default; a newer minor is read."""
    path = small().write(tmp_path / "x.wsformat").path
    assert path is not None
    events = pq.read_table(path / "events.parquet").drop_columns(["payload"])
    events = events.append_column("acme__heat", pa.array([1.5, 2.5, 3.5]))
    pq.write_table(events, path / "events.parquet")
    pq.write_table(pa.table({"capture_id": ["c"], "n": [1]}), path / "acme__fans.parquet")
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["version"] = "0.9"
    manifest["acme"] = {"deep": [1, 2]}
    manifest["tables"]["acme__fans"] = {"file": "acme__fans.parquet", "rows": 1}
    (path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.warns(NewerMinorWarning, match=rf"0\.9, this library knows {re.escape(format_version())}"):
        bundle = Bundle.open(path)
    assert bundle.table("events")["payload"].to_pylist() == ["", "", ""]
    assert bundle.sql("SELECT acme__heat FROM events ORDER BY t")["acme__heat"].to_pylist() == [1.5, 2.5, 3.5]
    assert bundle.sql("SELECT n FROM acme__fans").to_pylist() == [{"n": 1}]
    with pytest.warns(NewerMinorWarning):
        again = bundle.write(tmp_path / "y.wsformat")
    assert again.manifest.version == "0.9"
    assert again.table("events").column_names[-1] == "acme__heat"
    assert again.rows("acme__fans") == 1
    assert again.manifest.extra == {"acme": {"deep": [1, 2]}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not valid JSON"),
        ("[]", "not a wsformat manifest"),
        ('{"format": "wsformat"}', "is not MAJOR.MINOR"),
        ('{"format": "wsformat", "version": "0.1", "version": "0.1"}', "occurs twice"),
        ('{"format": "wsformat", "version": "0.1", "tables": {"events": {"file": "../x"}}}', "not a plain file name"),
        ('{"format": "wsformat", "version": "0.1", "tables": {"events": {"file": "/etc/x"}}}', "not a plain file name"),
        ('{"format": "wsformat", "version": "0.1", "tables": {"events": {"file": "gone.parquet"}}}', "file is missing"),
        ("[" * 100_000, "nested"),
        ('{"format": NaN}', "NaN"),
        ("\ud800".encode("utf-16", "surrogatepass").decode("latin-1"), "not valid JSON"),
    ],
)
def test_broken_manifests_are_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    root = tmp_path / "x.wsformat"
    root.mkdir()
    (root / "manifest.json").write_text(text, encoding="utf-8")
    with pytest.raises(MalformedInput, match=message) as caught:
        Bundle.open(root)
    assert "\n" not in str(caught.value)


def test_another_major_is_refused_with_both_numbers(tmp_path: Path) -> None:
    path = small().write(tmp_path / "x.wsformat").path
    assert path is not None
    text = (path / "manifest.json").read_text()
    (path / "manifest.json").write_text(text.replace(f'"version": "{format_version()}",', '"version": "7.3",', 1))
    with pytest.raises(UnsupportedVersion, match=rf"7\.3.*{re.escape(format_version())}"):
        Bundle.open(path)


def test_what_is_no_bundle_is_said_plainly(tmp_path: Path) -> None:
    with pytest.raises(MalformedInput, match="no such bundle"):
        Bundle.open(tmp_path / "gone")
    with pytest.raises(MalformedInput, match="so this is no bundle"):
        Bundle.open(tmp_path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(MalformedInput, match="this is a file"):
        Bundle.open(tmp_path / "file")
    path = small().write(tmp_path / "x.wsformat").path
    assert path is not None
    (path / "events.parquet").write_bytes(b"PAR1 nonsense")
    with pytest.raises(MalformedInput, match="cannot be read as Parquet"):
        Bundle.open(path)


def test_sql_errors_are_ours() -> None:
    with pytest.raises(BadRequest, match="SQL: "):
        small().sql("SELEC 1")
    assert small().sql("SELECT count(*) AS n FROM events WHERE t > ?", [5]).to_pylist() == [{"n": 2}]


def test_import_is_light() -> None:
    heavy = "('pyarrow', 'duckdb', 'numpy', 'pandas', 'typer')"
    code = f"import sys, wsformat; print([m for m in {heavy} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"
