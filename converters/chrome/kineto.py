"""PyTorch's Kineto: kernels on the device as launches, streams and host threads as lanes, correlations as edges."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wsformat.converters.chrome.converted import Converted
from wsformat.converters.chrome.counters import members_of
from wsformat.converters.chrome.scan import Trace
from wsformat.converters.interner import Interner
from wsformat.converters.recording import Array

KERNEL = "kernel"
ON_DEVICE = (KERNEL, "gpu_memcpy", "gpu_memset", "gpu_user_annotation", "cuda_sync")
HOST = (
    "cpu_op", "user_annotation", "cuda_runtime", "cuda_driver", "hip_runtime", "python_function", "cpu_instant_event",
    "xpu_runtime", "mtia_runtime", "privateuse1_runtime",
)  # fmt: skip
FACTS = ("correlation", "context", "stream", "grid", "block")
"""Arguments of a kernel that its launch holds."""
THREAD, STREAM, PROFILER = "cpu thread", "gpu stream", "profiler"
ROLES = [
    {"role": THREAD, "kind": "host"},
    {"role": STREAM, "kind": "other"},
    {"role": PROFILER, "kind": "other"},
]
PART = 1 << 18
HEADER = ("deviceProperties", "baseTimeNanoseconds", "traceName", "trace_id", "distributedInfo")


def recognise(trace: Trace) -> bool:
    """Whether the file has Kineto's members beside the events, and its categories among them."""
    names = set(trace.names.texts())
    return any(key in trace.header for key in HEADER) and bool(names & {*ON_DEVICE, *HOST, "ac2g", "Trace"})


def refine(done: Converted) -> None:
    """Make launches of kernels, and say which lanes are streams and which are threads."""
    recording, spans = done.recording, done.recording.spans
    code = {name: number for number, name in reversed(list(enumerate(recording.names)))}

    def lanes_of(categories: Sequence[str]) -> set[int]:
        hit = np.zeros(len(recording.lanes), bool)
        hit[spans.lane[np.isin(spans.category, [code[name] for name in categories if name in code])]] = True
        return set(np.flatnonzero(hit).tolist())

    streams, hosts = lanes_of(ON_DEVICE), lanes_of(HOST)
    for number, lane in enumerate(recording.lanes):
        role, kind = (STREAM, "stream") if number in streams else (THREAD, "host_thread")
        known = number in streams or number in hosts
        lane |= {"role": role, "kind": kind} if known else {"role": PROFILER, "kind": "other"}
        lane["process"] = (number in streams and lane.get("labels")) or lane["process"]
    recording.roles = ROLES
    recording.clocks[0]["scope"] = "host"
    kernels = np.flatnonzero((spans.category == code[KERNEL]) & spans.complete) if KERNEL in code else np.zeros(0, int)
    kernels = kernels[np.argsort(spans.t0[kernels], kind="stable")]
    if len(kernels):
        recording.launch_columns = _launches(done, kernels)
        recording.span_attributes.append(("launch", kernels, pa.array(np.arange(len(kernels))).cast(pa.string())))
    _device(done)


def _launches(done: Converted, kernels: Array) -> dict[str, Any]:
    """Columns of the launches that kernels are."""
    recording, spans = done.recording, done.recording.spans
    said = _facts(done, kernels)
    of_lane = pa.array([str(lane["thread_id"]) for lane in recording.lanes])
    stream = said["stream"]
    columns = {
        "kernel": pa.array(recording.names).take(pa.array(spans.name[kernels])),
        "kind": pa.repeat("traced", len(kernels)),
        "tool": pa.repeat("kineto", len(kernels)),
        "status": pa.repeat("unknown", len(kernels)),
        "native_id": said["correlation"],
        "context": said["context"],
        "stream": pc.if_else(pc.equal(stream, ""), of_lane.take(pa.array(spans.lane[kernels])), stream),
        "clock": np.zeros(len(kernels), np.int32),
        "t_start": spans.t0[kernels],
        "duration_ns": spans.t1[kernels] - spans.t0[kernels],
    }
    for name in ("grid", "block"):
        packed = said[name].dictionary_encode()
        sizes = np.array([_sizes(text) for text in packed.dictionary.to_pylist()], np.int32).reshape(-1, 3)
        for place, axis in enumerate("xyz"):
            columns[f"{name}_{axis}"] = sizes[packed.indices.to_numpy(), place]
    return columns


def _facts(done: Converted, spans: Array) -> dict[str, pa.Array]:
    """Arguments of spans that launches hold, '' where there is none."""
    found = {name: np.full(len(spans), -1, np.int64) for name in FACTS}
    args, values = done.trace.events.args, Interner()
    number = args.number(done.span_row[spans])
    there = np.flatnonzero(number >= 0)
    for begin in range(0, len(there), PART):
        place = there[begin : begin + PART]
        text, members = members_of(args, number[place])
        keys = Interner()
        key = keys.codes(text, members.key_begin, members.key_end)
        for code, name in enumerate(keys.texts()):
            if name in found:
                hit = np.flatnonzero(key == code)
                value = values.codes(text, members.value_begin[hit], members.value_end[hit])
                found[name][place[members.owner[hit]]] = value
    texts = pa.array([*values.texts(), ""], pa.string())
    return {name: texts.take(pa.array(np.where(code < 0, len(texts) - 1, code))) for name, code in found.items()}


def _sizes(text: str) -> tuple[int, int, int]:
    try:
        values = json.loads(text)
        x, y, z = (int(value) for value in values)
    except (ValueError, TypeError):
        return (-1, -1, -1)
    return (x, y, z) if min(x, y, z) >= 0 and max(x, y, z) < 2**31 else (-1, -1, -1)


def _device(done: Converted) -> None:
    """The one kind of device that ran, when there is only one."""
    try:
        devices = json.loads(done.trace.header.get("deviceProperties", b"[]"))
        names = {device["name"] for device in devices}
        counts = {int(device["numSms"]) for device in devices}
        levels = {(int(d["computeMajor"]), int(d["computeMinor"])) for d in devices}
    except (ValueError, TypeError, KeyError):
        return
    if len(names) == 1 and len(counts) == 1:
        name = str(*names)
        done.recording.facts |= {"device": name, "sm_count": counts.pop()}
        if "NVIDIA" in name or "Tesla" in name:
            major, minor = levels.pop()
            done.recording.facts["arch"] = f"sm_{major}{minor}"
