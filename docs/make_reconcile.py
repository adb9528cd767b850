"""Makes docs/reconcile.md: `python docs/make_reconcile.py > docs/reconcile.md`. Every number in it is computed here.

The samples that ship with the package are imported, predicted and reconciled by the commands that the page shows; a
test fails when the page differs.
"""

from __future__ import annotations

import json
import tempfile
from contextlib import redirect_stdout
from importlib.resources import as_file, files
from io import StringIO
from pathlib import Path
from typing import Any

SAMPLES = {
    "balanced": ("balanced_r0", "one", "global", "the usual stamps: a branch and a global store each"),
    "lowprobe": ("lowprobe_r0", "one", "branchfree", "branch-free stamps, predicated stores to shared memory"),
    "slowproducer": ("slowproducer_r0", "slow", "global", "the producer spins 1,500 cycles before each TMA, unstamped"),
}
TRIPS = {2048: 32, 4096: 64}


def command(words: str) -> str:
    """What a command prints."""
    from typer.main import get_command

    from wsformat.cli.main import app

    out = StringIO()
    with redirect_stdout(out):
        get_command(app).main(words.split(), prog_name="wsformat", standalone_mode=False)
    return out.getvalue().rstrip()


def shown(words: str, text: str) -> str:
    """A command and what it printed, as a block."""
    return f"```console\n$ wsformat {words}\n{text}\n```"


def sample(name: str, folder: Path) -> Path:
    """One of the samples as a bundle, with its clean and stamped launches."""
    from wsformat.converters.registry import import_files
    from wsformat.samples import FOLDER

    stem, launches, stamps, _ = SAMPLES[name]
    options = {
        "spec": FOLDER / "gemm_roles.json",
        "meta": [FOLDER / f"{stem}.meta"],
        "trip_count": TRIPS[4096],
        "allow_unwritten": True,
        "label": name,
        "clean": [(FOLDER / f"{launches}_{k}_clean.metas", n) for k, n in TRIPS.items()],
        "lifetimes": [(FOLDER / f"{launches}_{k}_{stamps}.metas", n) for k, n in TRIPS.items()],
    }
    return Path(str(import_files([FOLDER / f"{stem}.i32"], options).write(folder / f"{name}.wsformat").path))


def recording(name: str, folder: Path) -> Path:
    """One of the recordings that ship with the example kernel, as a bundle."""
    from wsformat.kernels.decode import to_bundle
    from wsformat.kernels.recording import Recording

    with as_file(files("wsformat.kernels.examples") / f"{name}.npz") as file:
        return Path(str(to_bundle(Recording.load(file)).write(folder / f"{name}.wsformat").path))


def section(markdown: str, number: int) -> str:
    """One numbered section of a report, without its heading."""
    return markdown.split(f"\n## {number}. ")[1].split("\n", 1)[1].split("\n## ")[0].strip()


def reports(folder: Path) -> dict[str, Any]:
    """The samples reconciled with the budget of their GEMM."""
    from wsformat.budget import load
    from wsformat.bundle import Bundle
    from wsformat.prediction import predict
    from wsformat.prediction_store import joined
    from wsformat.viewers.reconcile import reconcile

    found = {}
    for name in SAMPLES:
        bundle = Bundle.open(folder / f"{name}.wsformat")
        own = next(r["capture_id"] for r in bundle.table("captures").to_pylist() if r["kind"] == "stamped")
        found[name] = reconcile(joined(bundle, [predict(load("hopper_gemm"))], own))
    return found


def overview(found: dict[str, Any]) -> str:
    """The samples beside each other."""
    rows = ["| capture | stamps | budget | with stamps | looks | without | is | verdict |",
            "| --- | --- | ---: | ---: | ---: | ---: | ---: | --- |"]  # fmt: skip
    for name, report in found.items():
        plan, clean, stamped = report.plan.cycles, report.measured.clean.cycles, report.measured.stamped.cycles
        cells = [name, SAMPLES[name][3], f"{plan:,.0f}", f"{stamped:,.1f}", f"{plan / stamped * 100:.1f} %",
                 f"{clean:,.1f}", f"{plan / clean * 100:.1f} %", report.verdict.verdict]  # fmt: skip
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def measured_idle() -> str:
    """The published precisions: predicted and measured idle of the tensor cores."""
    from wsformat.budget import load
    from wsformat.prediction import published

    rows = ["| Q K^T and P V | predicted idle at least | measured idle | beyond the prediction |",
            "| --- | ---: | ---: | ---: |"]  # fmt: skip
    for case in published(load("fa4_forward")):
        if case["measured"] is not None:
            beyond = case["measured"] - case["calculated"]
            rows.append(f"| {case['case']} | {case['calculated']:.1f} % | {case['measured']:.0f} % | {beyond:+.1f} % |")
    return "\n".join(rows)


def expected() -> str:
    """What ships, with its published cycles."""
    from wsformat.budget import load, shipped
    from wsformat.prediction import predict

    rows = ["| budget | bottleneck | cycles an iteration | by resource |", "| --- | --- | ---: | --- |"]
    for name in shipped():
        found = predict(load(name))
        parts = ", ".join(f"{row.resource} {row.cycles:,.0f}" for row in found.totals.values())
        rows.append(f"| `{name}` | {' and '.join(found.bottleneck)} | {found.cycles:,.0f} | {parts} |")
    return "\n".join(rows)


def page() -> str:
    """The whole page."""
    from wsformat.expressions import FUNCTIONS, MOST_CHARACTERS
    from wsformat.viewers.reconcile_verdict import TOLERANCE

    template = (Path(__file__).parent / "reconcile.template.md").read_text(encoding="utf-8")
    budget = files("wsformat.schema").joinpath("budgets", "hopper_gemm.json").read_text(encoding="utf-8")
    hidden = ("about", "published", "kernel", "task")
    brief = [f" {json.dumps(k)}: {json.dumps(v)}" for k, v in json.loads(budget).items() if k not in hidden]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for case in SAMPLES:
            sample(case, folder)
        found = reports(folder)
        balanced, slow = found["balanced"].markdown(), found["slowproducer"].markdown()
        stages = [recording(case, folder) for case in ("gemm_hopper", "gemm_hopper_two_stages")]
        both = command(f"reconcile {stages[0]} {stages[1]} --budget hopper_gemm")
        two = command(f"reconcile {stages[1]} --budget hopper_gemm")
    parts = {
        "BUDGET": "{\n" + ",\n".join(brief).replace("}, {", "},\n  {") + "\n}",
        "PREDICT": shown("predict hopper_gemm", command("predict hopper_gemm")),
        "SWEEP": shown(
            "predict fa4_forward --sweep dtype=bf16,fp8,nvfp4",
            command("predict fa4_forward --sweep dtype=bf16,fp8,nvfp4"),
        ),
        "SHIPPED": expected(),
        "IDLE": measured_idle(),
        "OVERVIEW": overview(found),
        "BALANCED": found["balanced"].verdict.text,
        "BALANCED_SOUND": section(balanced, 1),
        "BALANCED_GAP": section(balanced, 4),
        "SLOW": found["slowproducer"].verdict.text,
        "SLOW_NEEDED": found["slowproducer"].verdict.needed,
        "SLOW_DIRECTION": section(slow, 2),
        "SLOW_GAP": section(slow, 4),
        "LESSON": found["slowproducer"].lessons("2026-11-30")[0].line(),
        "ACROSS": both.split("\n\n# ", 1)[0].removeprefix("# Across configurations").strip(),
        "ACROSS_B": next(line for line in both.split("# gemm_hopper_two_stages against")[1].splitlines()[2:] if line),
        "TWO": two.splitlines()[2],
        "TWO_GAP": section(two, 4),
        "FUNCTIONS": ", ".join(f"`{name}`" for name in FUNCTIONS),
        "CHARACTERS": f"{MOST_CHARACTERS:,}",
        "TOLERANCE": f"{TOLERANCE * 100:g} %",
    }
    for key, text in parts.items():
        template = template.replace("{{" + key + "}}", text)
    return template


if __name__ == "__main__":
    print(page(), end="")
