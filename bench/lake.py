"""The lake at size: add, index query, fleet-wide stall share, one capture out, bytes a stamp, compaction, verification.

    python bench/lake.py                     10,000 captures of 5,000 stamps (some 15 minutes on two quiet cores)
    python bench/lake.py --captures 1000     quicker
    python bench/lake.py --keep FOLDER       keep bundles and lake there, and take the bundles from there next time

Both clocks are printed, with the load of the machine: on a busy one the CPU seconds (all threads) are the ones to read;
two cores give half of them at best. Nothing here is a test.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import lake_captures

from wsformat.lake import Lake
from wsformat.lake.catalog import names

INDEX_QUERY = "SELECT COUNT(*), MIN(created_unix_ns) FROM captures WHERE arch = 'sm_100a' AND kernel = 'gemm_3'"
STALL = "SELECT role, SUM(stall) / SUM(extent) AS stall_share FROM role_summary GROUP BY role ORDER BY role"


def cpu() -> float:
    """CPU seconds of all threads, and of processes that helped and have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def timed(what: str, work: Callable[[], Any], per: int = 1, unit: str = "") -> Any:
    start, used = time.perf_counter(), cpu()
    result = work()
    seconds, busy = time.perf_counter() - start, cpu() - used
    load = round(os.getloadavg()[0], 1)
    row: dict[str, Any] = {"what": what, "wall s": round(seconds, 3), "CPU s": round(busy, 3), "load": load}
    if per > 1:
        row |= {f"{unit}/s": round(per / seconds, 1), f"{unit} per CPU s": round(per / busy, 1)}
    print(json.dumps(row), flush=True)
    return result


def measure(folder: Path, captures: int) -> None:
    found = sorted((folder / "bundles").glob("*/*.wsformat"))[:captures]
    if len(found) < captures:
        found = timed("make the bundles", lambda: lake_captures.write(folder / "bundles", captures))
    single = sum(f.stat().st_size for b in found[:200] for f in b.iterdir()) / len(found[:200]) / lake_captures.STAMPS
    events = sum((b / "events.parquet").stat().st_size for b in found[:200]) / len(found[:200]) / lake_captures.STAMPS
    shutil.rmtree(folder / "lake", ignore_errors=True)
    lake = Lake.init(folder / "lake")
    done = timed("add", lambda: lake.add(found), captures, "captures")
    assert len(done.added) == captures
    timed("add one more", lambda: lake.add(list(lake_captures.several(lake_captures.template(folder), 1, seed=9))))
    timed("add all again (nothing to do)", lambda: lake.add(found[:500]), min(500, captures), "captures")
    timed("summarise", lake.summarise, captures, "captures")
    questions(lake, "before compaction")
    print(json.dumps({"what": "bytes a stamp", "single bundles": round(single, 2), "their events": round(events, 2),
                      **sizes(lake, captures)}), flush=True)  # fmt: skip
    timed("compact", lake.compact, captures, "captures")
    questions(lake, "after compaction")
    print(json.dumps({"what": "bytes a stamp, compacted", **sizes(lake, captures)}), flush=True)
    checked = timed("verify, every row", lake.verify, captures, "captures")
    assert checked.problems == [], checked.problems
    print(
        json.dumps(
            {"what": "peak memory, GiB", "value": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2)}
        )
    )


def questions(lake: Lake, when: str) -> None:
    first = timed(f"index query, first in the process, {when}", lambda: lake.sql(INDEX_QUERY))
    assert timed(f"index query, {when}", lambda: lake.sql(INDEX_QUERY)).equals(first)
    timed(f"fleet-wide stall share, first, {when}", lambda: lake.sql(STALL))
    kept = timed(f"fleet-wide stall share, {when}", lambda: lake.sql(STALL))
    if when.startswith("after"):
        live = timed("fleet-wide stall share from the stamps", lambda: lake.sql(STALL, summaries=False))
        assert [{k: round(v, 12) if isinstance(v, float) else v for k, v in r.items()} for r in kept.to_pylist()] == [
            {k: round(v, 12) if isinstance(v, float) else v for k, v in r.items()} for r in live.to_pylist()
        ]
    ids = lake.sql("SELECT capture_id FROM captures ORDER BY capture_id LIMIT 8").column(0).to_pylist()
    timed(f"one capture out, first, {when}", lambda: lake.get(ids[:1]))
    timed(f"one capture out, {when}", lambda: lake.get(ids[1:2]))
    timed(
        f"one capture out and on disk, {when}",
        lambda: lake.get(ids[2:3]).write(Path(lake.name) / ".." / "one.wsformat", force=True),
    )
    timed(f"waits of one capture, {when}", lambda: lake.sql("SELECT * FROM wait", where=f"capture_id = '{ids[3]}'"))


def sizes(lake: Lake, captures: int) -> dict[str, Any]:
    stamps = captures * lake_captures.STAMPS
    events = sum(f.bytes for f in lake.table("events")[1])
    count = sum(len(lake.table(name)[1]) for name in names(lake.catalog))
    return {"events": round(events / stamps, 3), "all tables": round(_bytes(lake) / stamps, 3), "files": count}


def _bytes(lake: Lake) -> int:
    return sum(file.bytes for name in names(lake.catalog) for file in lake.table(name)[1])


def step_lake(captures: str) -> dict[str, Any]:
    """The same for ``bench/run.py``, in CPU seconds (all threads); what is quick is the best of five."""
    count = int(captures)
    rows: list[dict[str, Any]] = []

    def seconds(work: Callable[[], Any], times: int = 1) -> float:
        found = []
        for _ in range(times):
            used = cpu()
            work()
            found.append(cpu() - used)
        return min(found)

    def told(what: str, took: float, size: int, **more: Any) -> None:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        rows.append({"what": f"lake of {count:,} captures, {what}; CPU seconds", "seconds": took, "rows": size}
                    | {"gib": peak, **more})  # fmt: skip

    with tempfile.TemporaryDirectory() as name:
        bundles = lake_captures.write(Path(name) / "bundles", count)
        lake = Lake.init(Path(name) / "lake")
        took = seconds(lambda: lake.add(bundles))
        told("add: stamps", took, count * lake_captures.STAMPS)
        told("summarise: captures", seconds(lake.summarise), count)
        took = seconds(lake.compact)
        told("compact: stamps", took, count * lake_captures.STAMPS, bytes=_bytes(lake))
        told("index query: captures", seconds(lambda: lake.sql(INDEX_QUERY), 5), count)
        told("stall share of the fleet: captures", seconds(lambda: lake.sql(STALL), 5), count)
        ids = iter(lake.sql("SELECT capture_id FROM captures LIMIT 6").column(0).to_pylist())
        lake.get([next(ids)])
        told("one capture out: stamps", seconds(lambda: lake.get([next(ids)]), 5), lake_captures.STAMPS)
    return {"results": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--captures", type=int, default=10_000)
    parser.add_argument("--keep", type=Path, default=None)
    chosen = parser.parse_args()
    if chosen.keep is not None:
        chosen.keep.mkdir(parents=True, exist_ok=True)
        measure(chosen.keep, chosen.captures)
        return
    with tempfile.TemporaryDirectory() as name:
        measure(Path(name), chosen.captures)


if __name__ == "__main__":
    main()
