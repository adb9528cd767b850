"""What is no table: messages of ncu, the program's own output, and files that only look like ncu's."""

from __future__ import annotations

import re
from typing import Any

from wsformat.converters.ncu.headers import HEADER_START, classify
from wsformat.errors import MalformedInput, UnknownFormat, WsformatError

MESSAGE = re.compile(r"^==(?P<level>[A-Z]+)==\s?(?P<text>.*)$")
MAX_MESSAGES = 2000
DIRECT = "ncu --csv --page raw --print-units base --log-file OUT.csv PROGRAM"
IMPORT = "ncu --import REPORT.ncu-rep --csv --page raw > OUT.csv"
LOOK_ALIKES = (
    (
        re.compile(rb"NVPROF is profiling|==\d+== Profiling (?:result|application)", re.I),
        "output of nvprof, which Nsight Compute replaced",
    ),
    (
        re.compile(rb'^"?Type"?,"?Time\(%\)"?,"?Time"?,"?Calls"?|^"?Start"?,"?Duration"?,"?Grid X"?', re.M),
        "a CSV of nvprof, which Nsight Compute replaced",
    ),
    (
        re.compile(
            rb'^"?Time \(%\)"?,"?Total Time(?: \(ns\))?"?,"?(?:Instances|Num Calls|Count|Operations)"?'
            rb'|^"?Start \(ns\)"?,"?Duration \(ns\)"?,"?CorrId"?|^"?Total \(MB\)"?,"?Count"?',
            re.M,
        ),
        "a CSV of Nsight Systems (nsys stats), which has times of launches and no counters",
    ),
)  # fmt: skip
OURS = re.compile(rb"^==(?:PROF|WARNING|ERROR)==", re.MULTILINE)
METRIC = re.compile(rb"\b(?:sm|smsp|gpu|gpc|tpc|dram|dramc|lts|l1tex|fbpa|launch|sass|idc|derived)__[a-z]")


def is_ncu(head: bytes) -> bool:
    """Whether the start of a file is ncu's: a table's header, or its messages."""
    if OURS.search(head):
        return True
    for match in HEADER_START.finditer(head):
        stop = head.find(b"\n", match.start())
        line = head[match.start() : stop + 1 if stop >= 0 else len(head)]
        found = classify(line)
        if found is not None and (found.kind != "plain" or METRIC.search(head)):
            return True
        if line.startswith(b'"Kernel Name",') and stop >= 0 and classify(head[stop + 1 :].split(b"\n", 1)[0]):
            return True
    return False


def look_alike(head: bytes) -> str:
    """What the file is when it is another profiler's; '' when it is not."""
    for pattern, what in LOOK_ALIKES:
        if pattern.search(head):
            return what
    return ""


def split_messages(lines: bytes) -> list[tuple[str, str]]:
    """(level, text) of lines that belong to no table; level is PROF, WARNING, ERROR or output."""
    result = []
    for line in lines.decode(errors="replace").splitlines():
        if not line.strip():
            continue
        match = MESSAGE.match(line)
        result.append((match["level"], match["text"]) if match else ("output", line))
    return result


def refusal(where: str, head: bytes, messages: list[tuple[str, str]]) -> WsformatError:
    """Why a file without a table is refused, and what to run instead."""
    other = look_alike(head)
    if other:
        return UnknownFormat(f"{where}: {other}", f"Profile with Nsight Compute: {DIRECT}")
    errors = [text for level, text in messages if level == "ERROR"]
    if errors:
        return MalformedInput(
            f"{where}: no table; ncu stopped with: {errors[0]}", f"Repair that and run again: {DIRECT}"
        )
    if any("No kernels were profiled" in text for _, text in messages):
        return MalformedInput(
            f"{where}: no table; ncu profiled no kernel",
            "Check --kernel-name and --launch-skip, and that it runs alone.",
        )
    if any(level == "PROF" for level, _ in messages):
        return MalformedInput(
            f"{where}: no table, only messages of ncu; the results went to a report or to another file",
            f"Print the report as a table: {IMPORT}",
        )
    return MalformedInput(f"{where}: no table of ncu (no header with ID and Kernel Name)", f"Make one with: {DIRECT}")


def message_rows(capture: str, messages: list[tuple[str, str, str]]) -> list[dict[str, Any]]:
    """Rows of ``findings`` for messages (file, level, text)."""
    return [
        {"capture_id": capture, "kind": "message", "subject": file, "verdict": level, "text": text}
        for file, level, text in messages
    ]
