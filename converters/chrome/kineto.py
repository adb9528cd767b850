"""PyTorch's Kineto: kernels on the device as launches, streams and host threads as lanes, correlations as edges."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from wsformat.converters.chrome.converted import Converted
from wsformat.converters.chrome.counters import members_of
from wsformat.converters.chrome.scan import Trace
from wsformat.converters.interner import Interner
from wsformat.converters.recording import Row

KERNEL = "kernel"
ON_DEVICE = (KERNEL, "gpu_memcpy", "gpu_memset", "gpu_user_annotation", "cuda_sync")
HOST = ("cpu_op", "user_annotation", "cuda_runtime", "cuda_driver", "hip_runtime", "python_function")
HEADER = ("deviceProperties", "baseTimeNanoseconds", "traceName", "trace_id", "distributedInfo")


def recognise(trace: Trace) -> bool:
    """Whether the file has Kineto's members beside the events, and its categories among them."""
    names = set(trace.names.texts())
    return any(key in trace.header for key in HEADER) and bool(names & {*ON_DEVICE, *HOST, "ac2g", "Trace"})


def refine(done: Converted) -> None:
    """Make launches of kernels, and say which lanes are streams and which are threads."""
    recording, spans = done.recording, done.recording.spans
    names = recording.names
    code = {name: number for number, name in reversed(list(enumerate(names)))}
    device = np.isin(spans.category, [code[name] for name in ON_DEVICE if name in code])
    streams = set(np.unique(spans.lane[device]).tolist())
    hosts = set(np.unique(spans.lane[~device]).tolist()) - streams
    for number, lane in enumerate(recording.lanes):
        lane["kind"] = "stream" if number in streams else "host_thread" if number in hosts else "other"
    recording.clocks[0]["scope"] = "host"
    kernels = np.flatnonzero((spans.category == code[KERNEL]) & spans.complete) if KERNEL in code else spans.lane[:0]
    kernels = kernels[np.lexsort((kernels, spans.t0[kernels]))]
    facts = _facts(done, kernels)
    for number, span in enumerate(kernels.tolist()):
        said = facts[number]
        lane = recording.lanes[int(spans.lane[span])]
        recording.launches.append(
            {
                "kernel": names[spans.name[span]],
                "kind": "traced",
                "tool": "kineto",
                "native_id": said.get("correlation", ""),
                "context": said.get("context", ""),
                "stream": said.get("stream", str(lane["thread_id"])),
                "status": "unknown",
                "clock": 0,
                "t_start": int(spans.t0[span]),
                "duration_ns": int(spans.t1[span] - spans.t0[span]),
                "sequence": -1,
                **_sizes("grid", said.get("grid", "")),
                **_sizes("block", said.get("block", "")),
            }
        )
    if len(kernels):
        import pyarrow as pa

        recording.span_attributes.append(
            ("launch", kernels.astype(np.int64), pa.array([str(n) for n in range(len(kernels))]))
        )
    _device(done)


def _facts(done: Converted, spans: Any) -> list[dict[str, str]]:
    """Arguments of spans that launches hold."""
    facts: list[dict[str, str]] = [{} for _ in spans]
    number = done.args[done.span_row[spans]]
    there = np.flatnonzero(number >= 0)
    if there.size:
        text, members = members_of(done.trace.events.args, number[there])
        keys, values = Interner(), Interner()
        key = keys.codes(text, members.key_begin, members.key_end)
        wanted = {
            n for n, name in enumerate(keys.texts()) if name in ("correlation", "context", "stream", "grid", "block")
        }
        hit = np.flatnonzero(np.isin(key, list(wanted)))
        value = values.codes(text, members.value_begin[hit], members.value_end[hit])
        key_texts, value_texts = keys.texts(), values.texts()
        for owner, k, v in zip(members.owner[hit].tolist(), key[hit].tolist(), value.tolist(), strict=True):
            facts[int(there[owner])][key_texts[k]] = value_texts[v]
    return facts


def _sizes(name: str, text: str) -> Row:
    try:
        values = json.loads(text)
        x, y, z = (int(value) for value in values)
    except (ValueError, TypeError):
        return {}
    return {f"{name}_x": x, f"{name}_y": y, f"{name}_z": z} if min(x, y, z) >= 0 and max(x, y, z) < 2**31 else {}


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
