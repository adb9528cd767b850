"""Large imports go other ways than small ones: on disk, part by part, a few lanes at a time, to the same end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from wsformat.converters import json_outline, lane_order, recording_attributes, recording_tables
from wsformat.converters.chrome import columns, counters, kineto, stream
from wsformat.converters.registry import import_files

SMALL: tuple[tuple[Any, str, int], ...] = (
    (lane_order, "GROUP", 8), (recording_tables, "WHOLE", 10), (recording_tables, "PART", 7),
    (recording_attributes, "WHOLE", 5), (recording_attributes, "PART", 7), (columns, "IN_MEMORY", 64),
    (counters, "PART", 3), (kineto, "PART", 3), (stream, "CHUNK", 5000), (json_outline, "CHUNK", 1000),
)  # fmt: skip


def digests(path: Path, out: Path, options: Mapping[str, Any]) -> dict[str, Any]:
    bundle = import_files([path], options).write(out, force=True)
    return {name: (entry["rows"], entry["columns"]) for name, entry in bundle.manifest.tables.items()}


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("kineto_mlp.json", {}),
        ("proton_add.chrome_trace", {}),
        ("iket_fmha_hopper.trace.json.gz", {"mapping": "iket-cute-attention"}),
        ("warpscope_r0.json", {}),
    ],
)
def test_every_way_gives_the_same(
    name: str, options: dict[str, Any], captures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = captures / "peers" / name
    plain = digests(path, tmp_path / "plain.wsformat", options)
    for module, limit, value in SMALL:
        monkeypatch.setattr(module, limit, value)
    assert digests(path, tmp_path / "parts.wsformat", options) == plain


def test_attributes_come_in_the_order_of_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys of rows are text: span 10 stands before span 2."""
    events = [
        {"ph": ph, "name": "s", "pid": 1, "tid": 1, "ts": t + (ph == "E"), "args": {ph: t}}
        for t in range(0, 46, 2)
        for ph in "BE"
    ]
    path = tmp_path / "t.json"
    path.write_text(json.dumps(events))
    monkeypatch.setattr(recording_attributes, "WHOLE", 5)
    rows = import_files([path], {}).table("attributes").to_pylist()
    keys = [(row["table_name"], row["row_key"], row["name"]) for row in rows]
    assert keys == sorted(keys)
    found = {(row["row_key"], row["name"]): row["value"] for row in rows if row["table_name"] == "spans"}
    assert found == {
        (str(n), name): json.dumps({ph: 2 * n}) for n in range(23) for name, ph in (("args", "B"), ("args.end", "E"))
    }
