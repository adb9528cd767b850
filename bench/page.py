"""The timeline page of a large launch: CPU seconds to make it, bytes, and how many spans it holds one by one.

    python bench/page.py                a million spans on 132 CTAs
    python bench/page.py --spans 1e7    more than a page can hold

CPU seconds are of all threads, from the import of the package to the page as text. Nothing here is a test.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import buffers

SPANS_AN_ITERATION = 6
CTAS = 132


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def step_page(out: str) -> dict[str, Any]:
    """Make the page in a process of its own, as `wsformat view` does."""
    wall, before = time.perf_counter(), cpu()
    import wsformat
    from wsformat.viewers.timeline_page import explorer

    page = explorer(wsformat.open(out))
    size = len(page.html().encode())
    inside, total = page.data["spans"]
    gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    taken = {"seconds": cpu() - before, "wall": time.perf_counter() - wall}
    return {**taken, "bytes": size, "exact": inside, "rows": total, "gib": gib}


def make(folder: Path, spans: int, ctas: int = CTAS) -> str:
    """A bundle of a simulated ring with about so many spans; gives its path."""
    from importlib.resources import files

    from wsformat.converters.registry import import_files

    stamps = spans * buffers.STAMPS_AN_ITERATION // SPANS_AN_ITERATION
    buffer, meta, iterations, _ = buffers.write(folder, stamps, ctas)
    spec = json.loads((files("wsformat.samples") / "gemm_roles.json").read_text())
    spec["layout"] = {"roles": buffers.ROLES, "events": buffers.EVENTS, "iterations": iterations}
    (folder / "roles.json").write_text(json.dumps(spec))
    options = {
        "spec": str(folder / "roles.json"),
        "meta": [str(meta)],
        "trip_count": iterations,
        "allow_unwritten": True,
    }
    import_files([buffer], options).write(folder / "ring.wsformat")
    buffer.unlink()
    return str(folder / "ring.wsformat")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--spans", type=float, default=1e6, help="spans of the launch")
    parser.add_argument("--of", metavar="BUNDLE", help="measure the page of this bundle in this process")
    chosen = parser.parse_args()
    if chosen.of:
        print(json.dumps(step_page(chosen.of)))
        return
    import subprocess

    with tempfile.TemporaryDirectory() as name:
        out = make(Path(name), int(chosen.spans))
        done = subprocess.run([sys.executable, __file__, "--of", out], check=True, capture_output=True, text=True)
    found = json.loads(done.stdout)
    print(
        f"timeline page, {found['rows']:,} spans, {CTAS} CTAs: {found['seconds']:.2f} CPU s ({found['wall']:.2f} s), "
        f"{found['bytes'] / 1e6:.2f} MB, {found['exact']:,} spans one by one, peak {found['gib']:.2f} GiB"
    )


if __name__ == "__main__":
    main()
