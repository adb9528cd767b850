"""`wsformat digest`: one kernel's counters to one short evidence digest with exactly one next edit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wsformat.cli import target as targets
from wsformat.cli.scope import Force, Json
from wsformat.errors import BadRequest

if TYPE_CHECKING:
    from wsformat.bundle import Bundle

Inputs = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="INPUT",
        help="a bundle, or Nsight Compute CSV pages of one run (raw and source together), or {metric: value} JSON",
        show_default=False,
    ),
]
Kernel = Annotated[str, typer.Option("--kernel", metavar="REGEX", help="the kernel, when there are several")]
Launch = Annotated[
    int | None, typer.Option("--launch", metavar="N", help="the launch; by default that of median duration")
]
Version = Annotated[str, typer.Option("--version", metavar="TEXT", help="version of the kernel, such as a commit")]
Output = Annotated[Path | None, targets.output("FILE", "write it there (.md or .json)", targets.LEAVE_AWAY)]
Source = Annotated[str, typer.Option("--source", metavar="FILE", help="the kernel's source, for the next edit")]
Correct = Annotated[
    bool | None,
    typer.Option("--correct/--incorrect", help="whether the results were checked; else taken as correct, and said"),
]
Baseline = Annotated[
    Path | None, typer.Option("--baseline", metavar="INPUT", help="the version before, to compare with")
]
Expected = Annotated[
    float | None, typer.Option("--expected", metavar="X", help="speed-up expected over the baseline, such as 1.2")
]
RunDir = Annotated[
    Path | None, typer.Option("--run-dir", metavar="DIR", help="keep it as DIR/TASK/VERSION/digest.md and .json")
]
Task = Annotated[str, typer.Option("--task", metavar="NAME", help="the task, for --run-dir")]
Store = Annotated[bool, typer.Option("--store", help="add it to the bundle's findings")]
Collect = Annotated[bool, typer.Option("--collect", help="print the two ncu command lines that collect what is needed")]
Arch = Annotated[str, typer.Option("--arch", metavar="NAME", help="the GPU's architecture, for --collect")]
Program = Annotated[str, typer.Option("--program", metavar="COMMAND", help="the program, for --collect")]


def digest(
    inputs: Inputs = None,
    kernel: Kernel = "",
    launch: Launch = None,
    version: Version = "",
    output: Output = None,
    source: Source = "",
    correct: Correct = None,
    baseline: Baseline = None,
    expected: Expected = None,
    run_dir: RunDir = None,
    task: Task = "",
    store: Store = False,
    collect: Collect = False,
    arch: Arch = "sm_90",
    program: Program = "./PROGRAM",
    force: Force = False,
    json: Json = False,
) -> None:
    """Conclude from one kernel's counters: class, top stall, evidence, ranked hypotheses, exactly one next edit."""
    from wsformat.cli.output import print_json
    from wsformat.cli.sink import write_text
    from wsformat.outputs import check_file

    if collect:
        _print_commands(arch, kernel, program, json)
        return
    if not inputs:
        raise BadRequest("no input", "Give a bundle or Nsight Compute CSV files, or --collect for how to get them.")
    if expected is not None and not 0 < expected < 1e6:
        raise BadRequest(f"--expected {expected}: a ratio of speeds above 0", "1.2 is a fifth faster.")
    if output is not None:
        check_file(output, force=force)
    from wsformat.viewers.digest import add_findings
    from wsformat.viewers.digest import digest as conclude
    from wsformat.viewers.digest_collect import save

    bundle = opened(inputs)
    made = conclude(
        bundle,
        kernel or None,
        launch,
        version,
        source=source,
        correct=correct,
        baseline=opened([baseline]) if baseline is not None else None,
        expected=expected,
    )
    if store:
        if bundle.path is None:
            raise BadRequest("--store: the input is no bundle", "Import it first: `wsformat import`.")
        add_findings(bundle, made).write(bundle.path, force=True)
    if run_dir is not None:
        kept = save(made, run_dir, task or made.kernel)
        typer.echo(f"kept as {kept}", err=True)
    if output is not None:
        import json as text

        as_json = output.suffix == ".json"
        content = text.dumps(made.to_json(), indent=1, ensure_ascii=False) + "\n" if as_json else made.markdown()
        write_text(output, content)
    if json:
        print_json(made.to_json())
    elif output is None:
        print(made.markdown(), end="")
    else:
        print(output)


def opened(paths: list[Path]) -> Bundle:
    """A bundle, or the bundle that importing these files gives.

    Raises:
        BadRequest: a bundle and something else.
    """
    from wsformat.cli.progress import progress
    from wsformat.cli.scope import open_bundle
    from wsformat.converters.registry import import_files

    if len(paths) == 1 and paths[0].is_dir():
        return open_bundle(paths[0])
    for path in paths:
        if path.is_dir():
            raise BadRequest(f"{path}: a directory among files", "Give one bundle, or the files of one run.")
    with progress("import") as advance:
        bundle: Bundle = import_files(paths, {}, progress=advance)
    return bundle


def _print_commands(arch: str, kernel: str, program: str, json: bool) -> None:
    from wsformat.cli.output import print_json
    from wsformat.viewers.digest_collect import collect

    quick, focused = collect(arch, kernel or "KERNEL", program)
    if json:
        print_json({"arch": arch, "triage": quick, "focused": focused})
        return
    print(f"# quick triage: every kernel of the program\n{quick}\n\n# one kernel, with its source page\n{focused}")
