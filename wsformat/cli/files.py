"""Commands that keep bundles: merge, zip, unzip, seal, upgrade."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from wsformat.cli import scope as scopes
from wsformat.cli import target as targets
from wsformat.cli.scope import BundlePath, Force, Json

Bundles = Annotated[list[Path], typer.Argument(metavar="X.wsformat", help="bundles", show_default=False)]
Target = Annotated[Path, targets.output("X.wsformat", "the result", targets.NAME_A_BUNDLE, show_default=False)]
ZipTarget = Annotated[
    Path | None, targets.output("FILE", "the archive; by default X.wsformat.zip", targets.NAME_A_FILE)
]
Archive = Annotated[Path, typer.Argument(metavar="X.wsformat.zip", help="the archive", show_default=False)]
Unpacked = Annotated[
    Path | None,
    targets.output("X.wsformat", "the bundle; by default the name without .zip", targets.NAME_A_BUNDLE),
]
Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="table files, with or without a manifest")]
Elsewhere = Annotated[
    Path | None, targets.output("X.wsformat", "write here instead of in place", targets.NAME_A_BUNDLE)
]

Fill = Annotated[bool, typer.Option("--fill", help="add columns that are missing, with the value for unknown")]


def merge(bundles: Bundles, output: Target, force: Force = False, json: Json = False) -> None:
    """Put the captures of several bundles into one. A capture that two of them hold is taken once."""
    from wsformat.cli.output import print_json
    from wsformat.cli.progress import progress
    from wsformat.merge import merge as run

    opened = [scopes.open_bundle(path) for path in bundles]
    with progress("merge") as advance:
        made = run(opened, output, force=force, progress=advance)
    captures = made.table("captures").column("capture_id").to_pylist()
    if json:
        print_json({"path": str(output), "captures": captures, "tables": {name: made.rows(name) for name in made.data}})
    else:
        print(f"{output}: {scopes.count(len(captures), 'capture')} of {scopes.count(len(bundles), 'bundle')}")


def zip_(bundle: BundlePath, output: ZipTarget = None, force: Force = False, json: Json = False) -> None:
    """Pack a bundle into one uncompressed zip file, for mail."""
    from wsformat.archive import zip_bundle

    scopes.refuse_zipped(bundle)
    target = output or Path(bundle.resolve().name + ".zip")
    zip_bundle(bundle, target, force=force)
    _say(json, target)


def unzip(archive: Archive, output: Unpacked = None, force: Force = False, json: Json = False) -> None:
    """Unpack a zipped bundle; one that is damaged or would write elsewhere is refused."""
    from wsformat.archive import unzip_bundle
    from wsformat.errors import BadRequest

    if output is None and archive.suffix != ".zip":
        raise BadRequest(f"{archive}: no name NAME.wsformat.zip, so the bundle has no name", "Name it: -o X.wsformat.")
    target = output or Path(archive.name.removesuffix(".zip"))
    unzip_bundle(archive, target, force=force)
    _say(json, target)


def seal(
    folder: Folder, output: Elsewhere = None, fill: Fill = False, force: Force = False, json: Json = False
) -> None:
    """Make table files that another program wrote into a conforming bundle: order, layout, manifest, digests."""
    from wsformat.cli.progress import progress
    from wsformat.seal import seal as run

    with progress("seal") as advance:
        sealed = run(folder, output, fill=fill, force=force, progress=advance)
    _say(json, output or folder, list(sealed.notes), notes=list(sealed.notes))


def upgrade(bundle: BundlePath, output: Elsewhere = None, force: Force = False, json: Json = False) -> None:
    """Bring a bundle of an older format version to the newest, step by step."""
    from wsformat.cli.progress import progress
    from wsformat.upgrade import upgrade as run

    scopes.refuse_zipped(bundle)
    with progress("upgrade") as advance:
        done = run(bundle, output, force=force, progress=advance)
    lines = [f"step {step}" for step in done.steps]
    if done.before == done.after:
        lines.append(f"format version {done.after} is the newest; nothing to do")
    else:
        lines.append(f"format version {done.before} -> {done.after}")
    _say(json, output or bundle, lines, before=done.before, after=done.after, steps=list(done.steps))


def _say(json: bool, path: Path, lines: Sequence[str] = (), **facts: Any) -> None:
    """Print what happened and where the result is."""
    from wsformat.cli.output import clean, print_json

    if json:
        print_json({"path": str(path), **facts})
        return
    for line in lines:
        print(clean(line))
    print(path)
