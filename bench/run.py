"""Import rate, bytes a stamp and view times, beside baselines that run in the same process on the same stamps.

    python bench/run.py                 20 million stamps and the real captures
    python bench/run.py --stamps 1e6    quicker
    python bench/run.py --json          the rows as JSON

Read the ratios: absolute times depend on the machine. Nothing here is a test.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

import buffers
import grid
import lake
import page
import start
import trace_files

VIEWS = ("span", "role_state", "overlap", "wait", "role_summary", "iteration_summary", "early_signal", "timeline_ns")
BASELINE_EVENTS = 200_000


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def peak_gib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def in_a_process(*arguments: str) -> dict[str, Any]:
    """Run one step of this file in a process of its own, so that its peak memory is its own."""
    command = [sys.executable, __file__, "--step", *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env={**os.environ})
    if done.returncode:
        raise SystemExit(f"step {' '.join(arguments)} failed:\n{done.stderr}")
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def step_import(buffer: str, meta: str, iterations: str, out: str) -> dict[str, Any]:
    from wsformat.converters.registry import import_files

    spec = json.loads((files("wsformat.samples") / "gemm_roles.json").read_text())
    spec["layout"] = {"roles": buffers.ROLES, "events": buffers.EVENTS, "iterations": int(iterations)}
    roles = Path(buffer).with_suffix(".json")
    roles.write_text(json.dumps(spec))
    options = {"spec": str(roles), "meta": [meta], "trip_count": int(iterations), "allow_unwritten": True}
    seconds, bundle = timed(lambda: import_files([Path(buffer)], options).write(out))
    size = (Path(out) / "events.parquet").stat().st_size
    return {"seconds": seconds, "gib": peak_gib(), "rows": bundle.rows("events"), "bytes": size}


def step_view(out: str, view: str) -> dict[str, Any]:
    import wsformat

    bundle = wsformat.open(out)

    def run() -> Any:
        with bundle.duckdb() as connection:
            return connection.execute(f"SELECT COUNT(*), SUM(hash(v)) FROM (SELECT * FROM {view}) v").fetchall()

    seconds, rows = timed(run)
    return {"seconds": seconds, "gib": peak_gib(), "rows": int(rows[0][0])}


def step_export(out: str, trace: str, arguments: str, more: str) -> dict[str, Any]:
    """A trace for viewers; seconds are of CPU (all threads), peak memory is that of the whole process."""
    import wsformat
    from wsformat.converters import chrome, perfetto

    def cpu() -> float:
        used = resource.getrusage(resource.RUSAGE_SELF)
        return used.ru_utime + used.ru_stime

    bundle = wsformat.open(out)
    writer = chrome if ".json" in trace else perfetto
    options = {"arguments": arguments, "flows": more if more == "all" else "none", "counters": more == "all"}
    start = cpu()
    report = writer.write(bundle, Path(trace), options)
    return {"seconds": cpu() - start, "gib": peak_gib(), "rows": report["slices"], "bytes": report["bytes"]}


def step_numpy(buffer: str, iterations: str, out: str) -> dict[str, Any]:
    """Baseline: what a script does. Non-zero slots to columns, saved as compressed numpy."""

    def run() -> int:
        raw = np.fromfile(buffer, dtype=np.uint32).reshape(-1, buffers.ROLES, buffers.EVENTS, int(iterations))
        cta, role, event, iteration = np.nonzero(raw)
        np.savez_compressed(
            out, cta=cta.astype(np.int32), role=role.astype(np.int8), event=event.astype(np.int8),
            iteration=iteration.astype(np.int32), t=raw[cta, role, event, iteration],
        )  # fmt: skip
        return len(cta)

    seconds, rows = timed(run)
    return {"seconds": seconds, "gib": peak_gib(), "rows": rows, "bytes": Path(out).stat().st_size}


def step_json(out: str, text: str) -> dict[str, Any]:
    """Baseline: one JSON object an event, as trace writers do, on the first events of the same bundle."""
    import wsformat

    rows = wsformat.open(out).sql(f"SELECT * EXCLUDE (capture_id) FROM events LIMIT {BASELINE_EVENTS}").to_pylist()

    def run() -> None:
        with Path(text).open("w") as file:
            for row in rows:
                file.write(json.dumps(row) + "\n")

    seconds, _ = timed(run)
    return {"seconds": seconds, "gib": peak_gib(), "rows": len(rows), "bytes": Path(text).stat().st_size}


def row(what: str, result: dict[str, Any], base: float | None = None) -> dict[str, Any]:
    rate = result["rows"] / result["seconds"]
    return {
        "what": what,
        "rows": result["rows"],
        "seconds": float(f"{result['seconds']:.3g}"),
        "million rows/s": round(rate / 1e6, 2),
        "bytes/row": round(result["bytes"] / result["rows"], 2) if "bytes" in result else None,
        "peak GiB": round(result["gib"], 2),
        "times the import rate": round(rate / base, 3) if base else None,
    }


def measure(stamps: int) -> list[dict[str, Any]]:
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        buffer, meta, iterations, count = buffers.write(folder, stamps)
        out = str(folder / "ring.wsformat")
        imported = in_a_process("import", str(buffer), str(meta), str(iterations), out)
        assert imported["rows"] == count, (imported, count)
        base = imported["rows"] / imported["seconds"]
        rows.append(row("import raw buffer -> bundle", imported, base))
        rows.append(
            row("baseline: numpy to .npz", in_a_process("numpy", str(buffer), str(iterations), f"{name}/x.npz"), base)
        )
        rows.append(row("baseline: one JSON object an event", in_a_process("json", out, f"{name}/x.jsonl"), base))
        rows += [row(f"view {view}", in_a_process("view", out, view)) for view in VIEWS]
    return rows


EXPORTS = (
    ("native, lean: slices and markers", "x.pftrace", "lean", "slices"),
    ("native, all", "x.pftrace", "full", "all"),
    ("native, all, packed", "x.pftrace.gz", "full", "all"),
    ("JSON, lean: slices and markers", "x.json", "lean", "slices"),
    ("JSON, all", "x.json", "full", "all"),
    ("JSON, all, packed", "x.json.gz", "full", "all"),
)


def measure_traces(folder: Path, slices: int) -> list[dict[str, Any]]:
    """Traces for viewers of long loops on 132 CTAs and of short ones on 22,000, in every form; all: with arguments,
    arrows and counters. Peak memory must not grow with the slices."""
    rows = []
    shapes = {(132, 1_000_000), (132, slices), (22_000, slices)}
    for ctas, size in sorted(shapes):
        inside = folder / f"traces-{ctas}-{size}"
        inside.mkdir()
        buffer, meta, iterations, _ = buffers.write(inside, buffers.STAMPS_AN_ITERATION * size // 6, ctas)
        out = str(inside / "ring.wsformat")
        in_a_process("import", str(buffer), str(meta), str(iterations), out)
        buffer.unlink()
        for what, name, arguments, more in EXPORTS:
            result = in_a_process("export", out, str(inside / name), arguments, more)
            rows.append(row(f"trace, {ctas} CTAs, {what}; CPU seconds", result))
            (inside / name).unlink()
    return rows


def measure_real() -> list[dict[str, Any]]:
    """The captures that ship with the package, whose files are mostly headers: whole bundle over its stamps."""
    from wsformat.converters.registry import import_files

    rows = []
    with tempfile.TemporaryDirectory() as name, as_file(files("wsformat.samples")) as samples:
        for buffer in sorted([*samples.glob("*.i32"), *samples.glob("*.npy")]):
            spec = "cute_roles.json" if "cute" in buffer.name else "gemm_roles.json"
            out = Path(name) / f"{buffer.stem}.wsformat"
            options = {"spec": str(samples / spec), "allow_unwritten": True}
            seconds, bundle = timed(lambda b=buffer, o=options, t=out: import_files([b], o).write(t))
            size = sum(file.stat().st_size for file in out.iterdir())
            result = {"seconds": seconds, "gib": peak_gib(), "rows": bundle.rows("events"), "bytes": size}
            rows.append(row(f"real: {buffer.name}, whole bundle", result))
    return rows


LOOKS = ("show", "report")


def step_look(command: str, bundle: str, target: str) -> dict[str, Any]:
    """A whole command as people run it; seconds of CPU, all threads, with the start of Python."""
    words = [sys.executable, "-m", "wsformat", command, bundle, *(["-o", target] if command == "report" else [])]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    result = {"seconds": used, "gib": after.ru_maxrss / 2**20, "rows": 1}
    return result | ({"bytes": Path(target).stat().st_size} if command == "report" else {})


def measure_looks(folder: Path) -> list[dict[str, Any]]:
    """`show` and `report` of a capture that ships, and of a million spans on 132 CTAs."""
    from wsformat.converters.registry import import_files

    inside = folder / "looks"
    inside.mkdir()
    buffer, meta, iterations, _ = buffers.write(inside, buffers.STAMPS_AN_ITERATION * 1_000_000 // 6)
    large, small = str(inside / "ring.wsformat"), str(inside / "gemm.wsformat")
    in_a_process("import", str(buffer), str(meta), str(iterations), large)
    with as_file(files("wsformat.samples")) as samples:
        options = {"spec": str(samples / "gemm_roles.json"), "meta": [str(samples / "balanced_r0.meta")]}
        import_files([samples / "balanced_r0.i32"], options).write(small)
    return [
        row(f"wsformat {command}, {what}; CPU seconds", in_a_process("look", command, out, f"{out}.{command}.html"))
        for what, out in (("a capture that ships", small), ("a million spans on 132 CTAs", large))
        for command in LOOKS
    ]


def step_ncu(size: str) -> dict[str, Any]:
    """A large CSV of Nsight Compute; the ratio is the one to read."""
    import ncu

    with tempfile.TemporaryDirectory() as name:
        (_, base, _, count), (_, ours, rows, _) = ncu.measure(Path(name), int(size))
    return {
        "seconds": ours,
        "gib": peak_gib(),
        "rows": rows,
        "megabytes": count / 1e6,
        "times pyarrow.csv": ours / base,
    }


def measure_ncu(size: int) -> list[dict[str, Any]]:
    found = in_a_process("ncu", str(size))
    what = f"import ncu raw page of {found['megabytes']:.0f} MB: {found['times pyarrow.csv']:.1f} times pyarrow.csv"
    return [row(what, found)]


def step_foreign(trace: str) -> dict[str, Any]:
    """A large trace of another tool into a bundle, and the same bytes through the standard library's JSON."""
    from wsformat.converters.registry import import_files

    path = Path(trace)
    start = time.process_time()
    bundle = import_files([path], {}).write(path.with_suffix(".wsformat"), force=True)
    seconds = time.process_time() - start
    return {"seconds": seconds, "gib": peak_gib(), "rows": bundle.rows("spans"), "megabytes": path.stat().st_size / 1e6}


def step_loads(trace: str) -> dict[str, Any]:
    """The baseline: the whole file as Python objects."""
    start = time.process_time()
    with (gzip.open if trace.endswith(".gz") else open)(trace, "rb") as file:
        count = len(json.load(file)["traceEvents"])
    return {"seconds": time.process_time() - start, "gib": peak_gib(), "rows": count}


def measure_foreign(size: float) -> list[dict[str, Any]]:
    rows = []
    with tempfile.TemporaryDirectory() as name:
        for path in (Path(name) / "large.json", Path(name) / "large.json.gz"):
            trace_files.chrome(path, size)
            base, found = in_a_process("loads", str(path)), in_a_process("foreign", str(path))
            times, memory = found["seconds"] / base["seconds"], found["gib"] / base["gib"]
            text = f"import {path.name}, {size / 1e6:.0f} MB of text"
            what = f"{text}: CPU {times:.1f}, memory {memory:.2f} times json.load"
            rows.append(row(what, found))
    return rows


def measure_start() -> list[dict[str, Any]]:
    """What a command costs before it does anything."""
    columns = dict.fromkeys(row("", {"rows": 1, "seconds": 1.0, "gib": 0.0}))
    return [{**columns, "what": what, "seconds": round(found["seconds"], 3)} for what, found in start.measure()]


def measure_page(folder: Path) -> list[dict[str, Any]]:
    """The timeline page of a million spans on 132 CTAs: CPU seconds of all threads, bytes of the whole page."""
    inside = folder / "page"
    inside.mkdir()
    found = in_a_process("page", page.make(inside, 1_000_000))
    return [row(f"timeline page, {found['exact']:,} spans one by one; CPU seconds", found)]


def measure_grid(folder: Path) -> list[dict[str, Any]]:
    """`wsformat grid` of 22,000 CTAs: records of starts and ends only, and with 1.8 million stamps, a clock a CTA."""
    inside = folder / "grid"
    inside.mkdir()
    buffer, meta, iterations, _ = buffers.write(inside, 22_000 * buffers.STAMPS_AN_ITERATION * 6, 22_000)
    stamped = str(inside / "ring-22000.wsformat")
    in_a_process("import", str(buffer), str(meta), str(iterations), stamped)
    return [
        row(f"wsformat grid, 22,000 CTAs, {what}; CPU seconds", in_a_process("grid", bundle))
        for what, bundle in (("start and end", grid.make(inside, 22_000)), ("1.8 million stamps", stamped))
    ]


def show(rows: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(*[str(name) for name in rows[0]])
    for values in rows:
        table.add_row(
            *[
                "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
                for value in values.values()
            ]
        )
    Console(width=150).print(table)


def main() -> None:
    steps = {
        "import": step_import,
        "view": step_view,
        "numpy": step_numpy,
        "json": step_json,
        "export": step_export,
        "ncu": step_ncu,
        "page": page.step_page,
        "foreign": step_foreign,
        "loads": step_loads,
        "look": step_look,
        "grid": grid.step_grid,
        "lake": lake.step_lake,
    }
    if sys.argv[1:2] == ["--step"]:
        print(json.dumps(steps[sys.argv[2]](*sys.argv[3:])))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stamps", type=float, default=20e6, help="size of the synthetic capture")
    parser.add_argument("--csv-bytes", type=float, default=100e6, help="size of the Nsight Compute file")
    parser.add_argument("--trace-bytes", type=float, default=200e6, help="size of the large Chrome trace in")
    parser.add_argument("--slices", type=float, default=10e6, help="size of the large traces out")
    parser.add_argument("--captures", type=int, default=1000, help="captures of the lake")
    parser.add_argument("--json", action="store_true", help="print JSON")
    chosen = parser.parse_args()
    rows = measure_start() + measure(int(chosen.stamps)) + measure_real() + measure_ncu(int(chosen.csv_bytes))
    rows += measure_foreign(chosen.trace_bytes)
    rows += [row(found["what"], found) for found in in_a_process("lake", str(chosen.captures))["results"]]
    with tempfile.TemporaryDirectory() as name:
        rows += measure_looks(Path(name)) + measure_grid(Path(name))
        rows += measure_traces(Path(name), int(chosen.slices)) + measure_page(Path(name))
    if chosen.json:
        print(json.dumps(rows, indent=1))
    else:
        show(rows)


if __name__ == "__main__":
    main()
