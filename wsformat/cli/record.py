"""`wsformat record`: an example kernel, on the GPU of this machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from wsformat.cli import target as targets
from wsformat.cli.scope import Force, Json

Example = Annotated[
    str, typer.Argument(metavar="EXAMPLE", help="gemm_hopper, or another of --list", show_default=False)
]
Output = Annotated[
    Path | None, targets.output("X.wsformat", "the bundle; by default EXAMPLE.wsformat", targets.NAME_A_BUNDLE)
]
Passes = Annotated[
    list[str] | None,
    typer.Option("--pass", metavar="NAME", help="all, waits, work, waits:ROLE, work:ROLE; repeatable; the first three"),
]
Size = Annotated[str, typer.Option("--size", metavar="M,N,K", help="problem size; of attention queries, heads, keys")]
Repeats = Annotated[int, typer.Option("--repeats", metavar="N", help="launches of each build, clean and stamped")]
Raw = Annotated[
    Path | None,
    targets.output("FILE.npz", "also keep what the device wrote, before decoding", targets.NAME_A_FILE, "--raw"),
]
MOST = 2**31 - 1
List = Annotated[bool, typer.Option("--list", help="list the examples, a line each")]


def record(
    example: Example = "",
    output: Output = None,
    passes: Passes = None,
    size: Size = "",
    repeats: Repeats = 20,
    raw: Raw = None,
    list_: List = False,
    force: Force = False,
    json: Json = False,
) -> None:
    """Record an example kernel on this machine's GPU: checked, then clean and stamped launches in turn."""
    from wsformat.cli.output import print_json
    from wsformat.errors import BadRequest, WsformatError
    from wsformat.kernels.decode import to_bundle
    from wsformat.kernels.examples.record import DEFAULT_PASSES, check_passes, descriptions, names
    from wsformat.kernels.examples.record import record as run
    from wsformat.outputs import check_file
    from wsformat.writer import check_target

    if list_:
        lines = descriptions()
        width = max(map(len, lines))
        print_json(lines) if json else print("\n".join(f"{name:{width}}  {about}" for name, about in lines.items()))
        return
    if not example:
        raise BadRequest("no example named", f"Examples: {', '.join(names())}.")
    try:
        m, n, k = (int(part) for part in size.split(",")) if size else (None, None, None)
        if not 1 <= repeats <= MOST or any(part is not None and not 1 <= part <= MOST for part in (m, n, k)):
            raise ValueError
    except ValueError as error:
        raise BadRequest(
            f"--size {size} --repeats {repeats}: positive numbers are needed, M,N,K, each below 2^31"
        ) from error
    target = output or Path(f"{example}.wsformat")
    if example in names():
        # A recording takes a minute of a GPU: what would fail at its end is said before it begins.
        check_passes(example, passes or DEFAULT_PASSES)
        folder = target.absolute().parent
        if folder.exists() and not (folder.is_dir() and os.access(folder, os.W_OK)):
            raise WsformatError(f"{target}: cannot be written: {folder} is no folder that this user may write to")
        check_target(target, force=force)
        if raw is not None:
            if raw.suffix != ".npz":
                raise BadRequest(f"--raw {raw}: what the device wrote is kept as .npz", "Name it so.")
            check_file(raw, force=force)
    found = run(example, passes=passes or DEFAULT_PASSES, m=m, n=n, k=k, repeats=repeats)
    if raw is not None:
        found.save(raw)
    made = to_bundle(found).write(target, force=force)
    disturbed = {str(p["name"]): found.perturbation(number) for number, p in enumerate(found.passes)}
    messages = [row["text"] for row in made.table("findings").to_pylist()]
    if json:
        print_json(
            {"path": str(target), "perturbation": disturbed, "launches": made.rows("launches"), "messages": messages}
        )
        return
    for name, share in disturbed.items():
        print(f"pass {name}: main loop {100 * share:+.1f} % by slope")
    for text in messages:
        print(f"warning: {text}")
    print(target)
