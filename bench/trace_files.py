"""Large traces of other tools, for measuring imports: `python bench/trace_files.py 1e9 FILE.json[.gz]`.

Events as profilers of PyTorch's kind write them: spans with arguments on many threads, arrows, counters, instants. The
same size gives the same bytes.
"""

from __future__ import annotations

import gzip
import sys
from collections.abc import Iterator
from pathlib import Path

LANES = 64
PART = 20_000
BASE_US = 5_913_000_000_000
"""Past 2^42: a float would lose nanoseconds."""


def chrome(path: Path, size: float) -> int:
    """Write a Chrome trace of about that many bytes before packing; gives the number of its spans."""
    opener = gzip.open if path.suffix == ".gz" else open
    written = spans = 0
    with opener(path, "wb", **({"compresslevel": 1} if path.suffix == ".gz" else {})) as file:
        written += file.write(b'{"schemaVersion": 1, "displayTimeUnit": "ns", "traceEvents": [\n')
        for text, count in _chrome_parts():
            data = text.encode()
            written += file.write(data)
            spans += count
            if written > size:
                break
        file.write(b'{"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "made"}}]}\n')
    return spans


def _chrome_parts() -> Iterator[tuple[str, int]]:
    number = 0
    while True:
        lines = []
        for n in range(number, number + PART):
            lane, turn = n % LANES, n // LANES
            start, length = turn * 4007 + lane * 13, 1500 + n % 1999
            here, when = _place(lane), f'"ts": {_us(BASE_US * 1000 + start)}'
            lines.append(
                f'{{"ph": "X", "cat": "kernel", "name": "gemm_{n % 97}", {here}, {when}, "dur": {_us(length)}, '
                f'"args": {{"External id": {n}, "grid": [{n % 128}, 1, 1]}}}}'
            )
            if n % 16 == 0:
                there, later = _place((lane + 7) % LANES), f'"ts": {_us(BASE_US * 1000 + start + 4107)}'
                arrow = f'"id": {n}, "cat": "ac2g", "name": "ac2g"'
                lines.append(f'{{"ph": "s", {arrow}, {here}, {when}}}')
                lines.append(f'{{"ph": "f", "bp": "e", {arrow}, {there}, {later}}}')
            if n % 64 == 0:
                lines.append(f'{{"ph": "C", "name": "queue", {here}, {when}, "args": {{"depth": {n % 9}}}}}')
        number += PART
        yield ",\n".join(lines) + ",\n", PART


def _us(ns: int) -> str:
    return f"{ns // 1000}.{ns % 1000:03d}"


def _place(lane: int) -> str:
    return f'"pid": {1 + lane // 16}, "tid": {100 + lane}'


if __name__ == "__main__":
    print(chrome(Path(sys.argv[2]), float(sys.argv[1])), "spans")
