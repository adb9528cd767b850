"""A large Nsight Compute CSV against what pyarrow.csv takes to read the same file into strings.

The file is a real raw page (base units) whose data rows are repeated with new launch numbers and changed digits, since
rows that repeat to the letter would flatter whoever remembers them.
"""

from __future__ import annotations

import gzip
import random
import re
import time
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent.parent / "tests" / "data" / "ncu" / "gemm_grid.raw.base.csv.gz"
LONG_NUMBER = re.compile(rb'(?<=")(\d{5,})(\d\d)(?=")')


def make(target: Path, size: int, seed: int = 0) -> int:
    """Write a file of about ``size`` bytes; gives the number of launches in it."""
    lines = gzip.decompress(PAGE.read_bytes()).splitlines(keepends=True)
    header = next(i for i, line in enumerate(lines) if line.startswith(b'"ID"'))
    head, rows = lines[: header + 2], lines[header + 2 :]
    rng = random.Random(seed)
    launches = written = 0
    with target.open("wb") as file:
        file.writelines(head)
        while written < size:
            for row in rows:
                _, _, rest = row.partition(b",")
                changed = LONG_NUMBER.sub(lambda m: m[1] + b"%02d" % rng.randrange(100), rest)
                line = b'"%d",' % launches + changed
                file.write(line)
                launches += 1
                written += len(line)
    return launches


def strings(path: Path) -> int:
    """Baseline: the whole file into string columns, block by block."""
    import pyarrow as pa
    from pyarrow import csv

    with path.open("rb") as file:
        names = next(csv.open_csv(file)).schema.names
    options = csv.ConvertOptions(column_types={name: pa.string() for name in names})
    return sum(batch.num_rows for batch in csv.open_csv(path, convert_options=options))


def convert(path: Path) -> int:
    """Our converter, all rows of metrics drawn once."""
    from wsformat.converters import ncu

    bundle = ncu.read([path], {})
    return sum(part.num_rows for part in bundle.data["metrics"].batches())


def measure(folder: Path, size: int) -> list[tuple[str, float, int, int]]:
    """(what, seconds, rows, bytes) of the baseline and of the converter."""
    path = folder / "raw.csv"
    make(path, size)
    found: list[tuple[str, float, int, int]] = []
    for what, work in (("baseline: pyarrow.csv into strings", strings), ("import Nsight Compute raw page", convert)):
        start = time.perf_counter()
        rows: Any = work(path)
        found.append((what, time.perf_counter() - start, rows, path.stat().st_size))
    return found
