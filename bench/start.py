"""How long a command takes before it does anything: an import, the help, the first answer about a small bundle.

    python bench/start.py

CPU seconds of a process of its own, the median of several; the interpreter's own start is in them and shown beside.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
from typing import Any

STARTS = {
    "python -c pass": ["-c", "pass"],
    "import wsformat": ["-c", "import wsformat"],
    "wsformat --help": ["-m", "wsformat", "--help"],
    "wsformat --version": ["-m", "wsformat", "--version"],
    "wsformat states --help": ["-m", "wsformat", "states", "--help"],
}
TARGETS = {"import wsformat": 0.150, "wsformat --help": 0.300}
"""CPU seconds on a machine with a few GHz."""


def cpu_seconds(arguments: list[str], repeats: int = 7) -> float:
    """User and system time of one run, the median; the first run, which may compile modules, is left out."""
    found = []
    for _ in range(repeats + 1):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(found[1:])


def measure() -> list[tuple[str, dict[str, Any]]]:
    """What was started, and its seconds."""
    rows = []
    for name, arguments in STARTS.items():
        target = f" [{TARGETS[name]:.2f}]" if name in TARGETS else ""
        rows.append((f"{name}; CPU seconds{target}", {"seconds": cpu_seconds(arguments)}))
    return rows


if __name__ == "__main__":
    for what, found in measure():
        print(f"{found['seconds']:.3f}  {what}")
