"""The two command lines that collect what a digest needs, and where a digest is kept."""

from __future__ import annotations

import json
import os
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from wsformat.errors import BadRequest
from wsformat.metrics import chip_of, families
from wsformat.viewers.digest_rules import rules

if TYPE_CHECKING:
    from wsformat.viewers.digest_model import Digest


def metric_names(arch: str, quantities: list[str]) -> list[str]:
    """Names of the best candidates of each quantity that exist on an architecture.

    Raises:
        BadRequest: an unknown architecture.
    """
    chip = chip_of(arch)
    if not chip:
        raise BadRequest(f"no metric names are known for {arch!r}", f"Architectures: {', '.join(families()['chips'])}.")
    names = []
    for quantity in quantities:
        here = [c for c in families()["quantities"][quantity]["candidates"] if chip in c.get("chips", (chip,))]
        if not here:
            continue
        names += [c["metric"] for c in here if c.get("largest")] or [here[0]["metric"]]
    return list(dict.fromkeys(names))


def stall_names(arch: str) -> list[str]:
    """Names of the stall reasons of the first family that exist on an architecture."""
    chip = chip_of(arch)
    family = families()["stall_families"][0]["metric"]
    return [
        family.format(reason=entry["spelled"][0])
        for entry in families()["stall_reasons"].values()
        if chip in entry.get("chips", (chip,))
    ]


def collect(arch: str, kernel: str = "KERNEL", program: str = "./PROGRAM") -> tuple[str, str]:
    """Command lines for a quick triage of every kernel and a focused profile of one.

    Args:
        arch: such as sm_90.
        kernel: regular expression for the kernel's name.
        program: command line of the program.

    Raises:
        BadRequest: an unknown architecture.
    """
    wanted = rules()["collect"]
    triage = ",".join(metric_names(arch, wanted["triage"]))
    focused = ",".join([*metric_names(arch, wanted["focused"]), *stall_names(arch)])
    quick = f"ncu --csv --page raw --print-units base --log-file triage.csv --metrics {triage} {program}"
    name = shlex.quote(f"regex:{kernel}")
    sections = "--section SourceCounters --section WarpStateStats --import-source yes"
    deep = (
        f"ncu --kernel-name {name} --launch-skip 1 --launch-count 3 {sections} --metrics {focused} "
        f"-f -o focused {program} && ncu --import focused.ncu-rep --csv --page raw --print-units base > focused.csv"
        " && ncu --import focused.ncu-rep --csv --page source > focused.source.csv"
    )
    return quick, deep


def save(made: Digest, run_dir: Path, task: str) -> Path:
    """Keep a digest under ``RUN_DIR/TASK/VERSION/``: ``digest.md``, and ``digest.json`` beside it.

    Returns:
        the Markdown file.

    Raises:
        BadRequest: task or version cannot be the name of a folder.
    """
    for what, name in (("task", task), ("version", made.version)):
        if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,120}", name):
            raise BadRequest(
                f"{what} {name!r} cannot be the name of a folder", "Use letters, digits, '_', '.', '+', '-'."
            )
    folder = run_dir / task / made.version
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "digest.json", json.dumps(made.to_json(), indent=1, ensure_ascii=False) + "\n")
    return _write(folder / "digest.md", made.markdown())


def _write(path: Path, text: str) -> Path:
    scratch = path.with_name(f".{path.name}.partial-{os.getpid()}")
    try:
        scratch.write_text(text, encoding="utf-8")
        os.replace(scratch, path)
    finally:
        scratch.unlink(missing_ok=True)
    return path
