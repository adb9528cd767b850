"""Where a file may be written: what is there already, is no file, or has no folder is refused before any work."""

from __future__ import annotations

from pathlib import Path

from wsformat.errors import OutputExists, WsformatError


def check_file(path: Path, *, force: bool) -> None:
    """Refuse an output file that is there already.

    Files are written under another name and renamed, so that they appear whole or not at all: a pipe or a device of
    that name would be replaced by a file, for every program of the machine.

    Raises:
        OutputExists: it is there and ``force`` is false, or it is a directory, a pipe or a device.
        WsformatError: there is no such folder.
    """
    if path.is_dir():
        raise OutputExists(f"{path}: is a directory, a file is written; nothing was written")
    if (path.exists() and not path.is_file()) or _in_system_folder(path):
        raise OutputExists(f"{path}: is a pipe or a device, a file is written; nothing was written", "Name a file.")
    if (path.exists() or path.is_symlink()) and not force:
        raise OutputExists(f"{path}: is there already; nothing was written", "Use --force to replace it.")
    if not path.parent.is_dir():
        raise WsformatError(f"{path.parent}: no such directory", "Create it, or choose another output.")


def _in_system_folder(path: Path) -> bool:
    """Such as /dev/stdout: a link, which may point to a file, but stays a name of the whole machine."""
    return path.is_symlink() and path.absolute().parent in (Path("/dev"), Path("/dev/fd"), Path("/proc/self/fd"))
