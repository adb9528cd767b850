"""The page about formats is what the converters declare, and what they declare is what they do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from perfetto_bytes import BEGIN, END, INSTANT, event, field, save
from trace_import_case import events_file

from wsformat import samples
from wsformat.converters import interchange, registry
from wsformat.converters.registry import import_files
from wsformat.tables import tables

SAMPLES = Path(samples.__file__).parent
NAMED = {"work": "unassigned", "k_wait": "unassigned", "event_1": "unassigned", "cudaLaunchKernel": "cpu thread"}
"""A range of each peer, and the role of its lanes."""
MAPPING = {
    "wsformat_import_mapping": "0.1",
    "dependencies": [
        {"producer_role": role, "producer_event": f"{name}.end",
         "consumer_role": role, "consumer_event": f"{name}.begin"} for name, role in NAMED.items()
    ],
}  # fmt: skip


@pytest.mark.sources
def test_page_is_up_to_date(root: Path) -> None:
    page = (root / "docs" / "interchange.md").read_text(encoding="utf-8")
    assert page == interchange.page(), "run: python -m wsformat.converters.interchange > docs/interchange.md"


@pytest.mark.parametrize("name", dict.fromkeys(registry.READERS + registry.WRITERS))
def test_declarations(name: str) -> None:
    module = registry.converter(name)
    assert set(module.CARRIES) == {
        way for way, names in (("in", registry.READERS), ("out", registry.WRITERS)) if name in names
    }
    for carried in module.CARRIES.values():
        assert [table for table in tables() if table in carried] == list(carried)
    assert module.LOSSES
    assert all(loss.endswith(".") for loss in module.LOSSES)


def filled(path: Path, **options: Any) -> set[str]:
    bundle = import_files([path], options)
    return {name for name, data in bundle.data.items() if data.read().num_rows}


def test_readers_fill_what_they_declare(captures: Path, tmp_path: Path) -> None:
    peers = captures / "peers"
    chrome = filled(peers / "kineto_mlp.json", mapping=MAPPING) | filled(
        events_file(tmp_path, [{"ph": "X", "ts": 1, "dur": 1}])
    )
    found = {
        "chrome": chrome,
        "iket": filled(peers / "iket_fmha_hopper.trace.json.gz", mapping=MAPPING),
        "tag64": filled(peers / "warpscope_r0.u64", mapping=MAPPING),
        "raw_stamps": filled(
            SAMPLES / "balanced_r0.i32", spec=SAMPLES / "gemm_spec.json", layout="3,16,64",
            meta=SAMPLES / "balanced_r0.meta",
        ),
        "ncu": filled(captures / "ncu" / "gemm_grid.details.csv")
        | filled(captures / "ncu" / "seed_metrics.mixed_stdout.csv"),
    }  # fmt: skip
    path = save(
        tmp_path,
        event(1, BEGIN, 1, field(23, "work"), field(47, 5, "fixed64")), event(2, END, 1), event(3, INSTANT, 1),
    )  # fmt: skip
    found["perfetto"] = filled(path, mapping=MAPPING)
    for name in registry.READERS:
        declared = set(registry.converter(name).CARRIES["in"])
        assert found[name] <= declared, name
        rest = declared - found[name]
        assert rest <= ({"event_types", "events"} if name == "iket" else set()), f"{name} never fills {rest}"


PEERS = (
    "kineto_mlp.json", "proton_add.chrome_trace", "warpscope_r0.json", "flashinfer_r0.u64", "warpscope_r0.u64",
    "iket_pipeline_1cta.trace.json", "iket_fmha_hopper.trace.json.gz", "iket_gemm_persistent_1cta.trace.json.gz",
)  # fmt: skip


@pytest.mark.parametrize("name", PEERS)
def test_exactly_one_reader_recognises_each_capture(captures: Path, name: str) -> None:
    assert registry.detect(captures / "peers" / name)
