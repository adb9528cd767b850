"""``NAME.wsformat.zip``: one file for mail and upload. Stored, not compressed: the tables are compressed already."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import zipfile
from collections.abc import Sequence
from pathlib import Path

from wsformat import manifest as manifests
from wsformat.bundle import Bundle
from wsformat.errors import MalformedInput, WsformatError
from wsformat.outputs import check_file
from wsformat.writer import check_target, move_into_place

MAX_ENTRIES = 1_000
MAX_BYTES = 64 * 2**30
MAX_RATIO = 200
"""A compressed entry that would grow by more is a bomb: table files hardly shrink."""
CHUNK = 2**20
EPOCH = (1980, 1, 1, 0, 0, 0)
"""Time of every entry, so that the same bundle gives the same archive."""


def zip_bundle(source: str | os.PathLike[str], target: str | os.PathLike[str], *, force: bool = False) -> Path:
    """Pack a bundle directory into one file: its manifest and the table files that the manifest lists.

    Args:
        source: the bundle directory.
        target: the archive, by custom ``NAME.wsformat.zip``.
        force: replace a file that is there already.

    Raises:
        MalformedInput: no bundle.
        OutputExists: the target is there and ``force`` is false, or is a directory.
        WsformatError: the target cannot be written.
    """
    bundle = Bundle.open(source)
    root = Path(source).resolve()
    out = Path(os.path.abspath(target))
    check_file(out, force=force)
    files = [root / manifests.NAME, *sorted(part.path for part in bundle.data.values() if part.path is not None)]
    scratch = out.parent / f".{out.name}.partial-{os.getpid()}-{secrets.token_hex(4)}"
    try:
        with zipfile.ZipFile(scratch, "x", zipfile.ZIP_STORED) as archive:
            for file in files:
                entry = zipfile.ZipInfo(f"{root.name}/{file.name}", EPOCH)
                entry.external_attr = (stat.S_IFREG | 0o644) << 16
                entry.file_size = file.stat().st_size
                with file.open("rb") as source_file, archive.open(entry, "w") as packed:
                    shutil.copyfileobj(source_file, packed, CHUNK)
        _sync(scratch)
        check_file(out, force=force)
        os.replace(scratch, out)
    except OSError as error:
        raise WsformatError(f"{out}: cannot be written: {error.strerror or error}") from error
    finally:
        scratch.unlink(missing_ok=True)
    return out


def unzip_bundle(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    force: bool = False,
    max_bytes: int = MAX_BYTES,
) -> Bundle:
    """Unpack an archive into a bundle directory. Nothing is written outside ``target``, or when anything is wrong.

    Args:
        source: the archive: manifest and table files, in one folder or none.
        target: the bundle directory.
        force: replace a bundle that is there already.
        max_bytes: most bytes that the unpacked files may have together.

    Raises:
        MalformedInput: no zip file, a damaged one, or one with entries that no bundle has: a path that leads
            elsewhere, a link, an encrypted entry, the same name twice, more bytes than allowed.
        OutputExists: the target is there and ``force`` is false, or it is no bundle.
        WsformatError: the target cannot be written.
    """
    file, out = Path(source), Path(os.path.abspath(target))
    check_target(out, force=force)
    if file.exists() and not file.is_file():
        raise MalformedInput(
            f"{file}: is no regular file", "A zip file is read from its end: store it in a file first."
        )
    scratch = out.parent / f".{out.name}.partial-{os.getpid()}-{secrets.token_hex(4)}"
    try:
        with zipfile.ZipFile(file) as archive:
            entries = _checked(file, archive.infolist(), max_bytes)
            scratch.mkdir()
            left = max_bytes
            for name, entry in entries:
                left -= _unpack(file, archive, entry, scratch / name, left)
        # Opening proves that manifest and listed files are there and can be read, before anything is in place.
        manifest = Bundle.open(scratch).manifest
        _no_strangers(file, [name for name, _ in entries], manifest)
        move_into_place(scratch, out, force=force)
    except FileNotFoundError as error:
        if not file.exists():
            raise MalformedInput(f"{file}: no such file") from error
        raise WsformatError(f"{out}: cannot be written: {error.strerror}") from error
    except (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, EOFError, RuntimeError, ValueError) as error:
        raise MalformedInput(f"{file}: not a usable zip file: {str(error)[:200]}") from error
    except MalformedInput as error:
        message = error.message.replace(str(scratch), file.name)
        raise MalformedInput(message, error.hint) from error
    except OSError as error:
        raise WsformatError(f"{file}: cannot be unpacked: {error.strerror or error}") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return Bundle.open(out)


def _checked(file: Path, entries: Sequence[zipfile.ZipInfo], max_bytes: int) -> list[tuple[str, zipfile.ZipInfo]]:
    """Plain names of the entries, all of them harmless by what the directory of the archive says."""
    if len(entries) > MAX_ENTRIES:
        raise MalformedInput(f"{file}: {len(entries)} entries, at most {MAX_ENTRIES} are allowed")
    if sum(entry.compress_size for entry in entries) > file.stat().st_size:
        raise MalformedInput(f"{file}: its entries overlap")
    if sum(entry.file_size for entry in entries) > max_bytes:
        raise MalformedInput(f"{file}: would unpack to more than {max_bytes} bytes")
    folders: set[str] = set()
    names: dict[str, zipfile.ZipInfo] = {}
    for entry in entries:
        where = f"{file}: entry {entry.orig_filename[:80]!r}"
        if entry.is_dir():
            continue
        mode = entry.external_attr >> 16
        if mode and stat.S_IFMT(mode) not in (0, stat.S_IFREG):
            raise MalformedInput(f"{where} is a link or no regular file")
        if entry.flag_bits & 1:
            raise MalformedInput(f"{where} is encrypted")
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise MalformedInput(
                f"{where} has compression method {entry.compress_type}; only stored and deflated are read"
            )
        if entry.file_size > CHUNK and entry.file_size > MAX_RATIO * max(entry.compress_size, 1):
            raise MalformedInput(f"{where} would grow {entry.file_size // max(entry.compress_size, 1)} times")
        folder, _, name = entry.orig_filename.rpartition("/")
        if "/" in folder or "\\" in entry.orig_filename or folder in (".", ".."):
            raise MalformedInput(f"{where} does not lie in the bundle's folder")
        if entry.orig_filename.startswith("/"):
            raise MalformedInput(f"{where} has an absolute path")
        manifests.check_file_name(name, where)
        if name.lower() in {seen.lower() for seen in names}:
            raise MalformedInput(f"{where} occurs twice")
        folders.add(folder)
        names[name] = entry
    if len(folders) > 1:
        raise MalformedInput(f"{file}: files in several folders ({', '.join(sorted(folders))[:80]}); a bundle is one")
    if manifests.NAME not in names:
        raise MalformedInput(f"{file}: holds no {manifests.NAME}, so it is no packed bundle")
    return list(names.items())


def _unpack(file: Path, archive: zipfile.ZipFile, entry: zipfile.ZipInfo, path: Path, limit: int) -> int:
    """Copy one entry out and return its size. What the archive says of the size is not trusted."""
    size = 0
    with archive.open(entry) as packed, path.open("xb") as out:
        while chunk := packed.read(CHUNK):
            size += len(chunk)
            if size > limit or size > entry.file_size:
                raise MalformedInput(f"{file}: entry {entry.filename[:80]!r} holds more bytes than it says")
            out.write(chunk)
        out.flush()
        os.fsync(out.fileno())
    return size


def _no_strangers(file: Path, names: Sequence[str], manifest: manifests.Manifest) -> None:
    listed = {entry["file"] for entry in manifest.tables.values()} | {manifests.NAME}
    strangers = sorted(set(names) - listed)
    if strangers:
        raise MalformedInput(f"{file}: holds {', '.join(strangers)[:120]}, which its manifest does not list")


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
