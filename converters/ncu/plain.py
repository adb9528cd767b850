"""A plain ``{metric: value}``, as a mapping or a JSON file."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from wsformat import manifest
from wsformat.bundle import Bundle
from wsformat.converters.ncu.frame import Meta
from wsformat.converters.ncu.labels import METRIC_NAME
from wsformat.converters.ncu.numbers import Convention
from wsformat.converters.ncu.parts import Reading, look
from wsformat.errors import BadRequest, MalformedInput
from wsformat.tables import rows_to_table

FIRST_KEY = re.compile(rb'^\s*\{\s*"(?P<key>[^"\\]{1,200})"\s*:\s*(?!\{|\[)')
MAX_BYTES = 16 << 20


def is_values(head: bytes) -> bool:
    """Whether a text begins a JSON object whose keys are metric names."""
    match = FIRST_KEY.match(head)
    return match is not None and bool(re.search(rb'"[a-z0-9_]+__[a-z][\w.]*"\s*:', head))


def read_values(path: Path, reading: Reading) -> None:
    """Take a JSON file.

    Raises:
        MalformedInput
    """
    data = manifest.parse_json(manifest.read_text(path, MAX_BYTES), str(path))
    if not isinstance(data, dict):
        raise MalformedInput(f"{path}: a JSON object of metric names and values is expected")
    reading.path, reading.source, reading.file = path, path.name, reading.file + 1
    reading.conventions.append(Convention(decimal="."))
    reading.dialects[reading.file] = ["metric-json"]
    add_values(data, "", reading)


def add_values(values: Mapping[str, Any], kernel: str, reading: Reading) -> None:
    """Take metric names and their values: numbers, texts, None, or ``[value, unit]``.

    Raises:
        BadRequest: a value of another kind.
    """
    names, texts, unit = [], [], []
    for name, value in sorted(values.items()):
        printed = ""
        if isinstance(value, list | tuple) and len(value) == 2:
            value, printed = value[0], str(value[1] or "")
        if isinstance(value, Mapping | list | tuple):
            raise BadRequest(f"metric {name!r}: a number, a text or [value, unit] is expected")
        names.append(str(name))
        unit.append(printed or ("%" if ".pct" in name else ""))
        texts.append("n/a" if value is None else json.dumps(value) if isinstance(value, int | float) else str(value))
    launch = reading.launches.add({"Kernel Name": pa.array([kernel], pa.string())}, 1, reading.source)
    index = np.arange(len(names), dtype=np.int32)
    coded = pa.array(texts, pa.string()).dictionary_encode()
    columns = {
        "launch": np.full(len(names), launch, np.int32),
        "meta": index,
        "ordinal": np.zeros(len(names), np.int32),
        "text": coded.indices.to_numpy().astype(np.int32),
    }
    # A JSON number has a decimal point and no groups: nothing to decide.
    meta = Meta([""] * len(names), [""] * len(names), names, unit)
    reading.add_part("kernel", meta, len(names), (launch, launch), reading.keep(columns), look(coded.dictionary))
    reading.conventions[-1] = Convention(decimal=".")


def from_values(values: Mapping[str, Any], *, kernel: str = "", arch: str = "", device: str = "") -> Bundle:
    """A bundle of one launch from a plain ``{metric: value}``.

    Args:
        values: metric names with numbers, texts, None (not available) or ``(value, unit)``.
        kernel: name of the kernel.
        arch: such as sm_90.
        device: name of the device.

    Raises:
        BadRequest: no metric name among the keys, or a value that is no number or text.
    """
    from wsformat.converters.ncu.assemble import build_bundle

    if not any(METRIC_NAME.match(str(name)) for name in values):
        raise BadRequest("none of the keys is a metric name of Nsight Compute, such as gpu__time_duration.sum")
    reading = Reading({}, file=0, conventions=[Convention(decimal=".")], dialects={0: ["metric-values"]})
    add_values(values, kernel, reading)
    digest = hashlib.sha256(
        json.dumps([kernel, arch, device, sorted(values.items())], default=str).encode()
    ).hexdigest()
    bundle: Bundle = build_bundle(reading, [], [digest], {})
    row = bundle.table("captures").to_pylist()[0] | {"arch": arch, "device": device, "label": kernel}
    return bundle.with_tables({"captures": rows_to_table("captures", [row])})
