"""Copies the sample files into a folder: `python -m wsformat.samples FOLDER`. Files that are there stay."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from wsformat.samples import names, path


def main(arguments: list[str]) -> int:
    """Copy every sample; 2 when there is no folder named, or one of the names is taken by something else."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print("usage: python -m wsformat.samples FOLDER", file=sys.stderr)
        return 2
    folder = Path(arguments[0])
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in names():
            if not (folder / name).exists():
                shutil.copy(path(name), folder / name)
    except OSError as error:
        print(f"error: {error.filename or folder}: {error.strerror or error}", file=sys.stderr)
        return 2
    print(f"{len(names())} files in {folder}; `pydoc wsformat.samples` says what each is")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
