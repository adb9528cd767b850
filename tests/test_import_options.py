"""Options of importers of traces: what they do not know they refuse, in one line, before anything is read."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from wsformat.converters.import_options import FACT_OPTIONS
from wsformat.converters.registry import converter, import_files
from wsformat.errors import BadRequest, WsformatError

FILES = {
    "chrome": "kineto_mlp.json", "iket": "iket_pipeline_1cta.trace.json", "perfetto": "iket_pipeline_1cta.pftrace",
    "tag64": "flashinfer_r0.u64",
}  # fmt: skip
COMMON = [
    ({"colour": "red"}, "has no option colour"),
    ({"mapping": "nobody"}, "no preset of that name and no such file"),
    ({"mapping": ["iket-cute-gemm", "iket-cute-gemm"]}, "mapping: given 2 times"),
    ({"sm_count": "many"}, "sm_count 'many': not a whole number"),
    ({"sm_count": str(2**31)}, "does not fit INT32"),
    ({"sm_count": "-2"}, "does not fit INT32"),
    ({"created_unix_ns": str(2**63)}, "does not fit INT64"),
    ({"label": ["a", "b"]}, "label: given 2 times"),
]
OWN = [
    ("chrome", {"ts_unit": "s"}, "ts_unit 's': no such unit"),
    ("chrome", {"ts_unit": ["us", "ns"]}, "ts_unit: given 2 times"),
    ("chrome", {"dialect": "nsys"}, "dialect 'nsys': no such dialect"),
    ("chrome", {"dialect": "proton"}, "dialect proton: lanes are not named"),
    ("chrome", {"args": "some"}, "args 'some'"),
    ("chrome", {"flows": "all"}, "chrome has no option flows"),
    ("perfetto", {"counters": "false"}, "perfetto has no option counters"),
    ("tag64", {"dialect": "flashinfer"}, "dialect 'flashinfer': no such dialect"),
    ("tag64", {"stride": "wide"}, "stride 'wide': not a whole number"),
    ("tag64", {"stride": "0"}, "stride 0: at least 1"),
    ("tag64", {"events": "{}{"}, "names are needed"),
    ("tag64", {"groups": ["a", "b"]}, "groups: given 2 times"),
]
CASES = [*((name, options, text) for name in FILES for options, text in COMMON), *OWN]


@pytest.mark.parametrize(("name", "options", "message"), CASES)
def test_refused(name: str, options: dict[str, Any], message: str, captures: Path) -> None:
    path = captures / "peers" / FILES[name]
    with pytest.raises(BadRequest) as error:
        import_files([path], options)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", FILES)
def test_nonsense_never_ends_in_a_traceback(name: str, captures: Path) -> None:
    known = set(getattr(converter(name), "READ_OPTIONS", converter(name).OPTIONS))
    for option in known - (set() if name == "tag64" else set(FACT_OPTIONS)):
        for value in ("\0", "{", "[1]", "-1"):
            with suppress(WsformatError):
                import_files([captures / "peers" / FILES[name]], {option: value}, format_name=name)
