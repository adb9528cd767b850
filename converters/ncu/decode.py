"""Bytes of an ncu text file to blocks of whole lines in UTF-8.

Handles a byte order mark, UTF-16 with or without one, gzip, CRLF and bytes that are no UTF-8 (taken as
Windows-1252, which is what a European console writes).
"""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from wsformat.bundle import Progress
from wsformat.errors import MalformedInput

BLOCK_BYTES = 4 << 20
MAX_LINE_BYTES = 256 << 20
GZIP = b"\x1f\x8b"


def plain_head(head: bytes) -> bytes:
    """The start of a file as UTF-8 text, unpacked when it is gzip."""
    if head.startswith(GZIP):
        try:
            head = zlib.decompressobj(wbits=31).decompress(head, 1 << 20)
        except zlib.error:
            return b""
    encoding = text_encoding(head)
    if encoding != "utf-8":
        head = head[: len(head) - len(head) % 2].decode(encoding, errors="replace").encode()
    return head.removeprefix(codecs.BOM_UTF8).replace(b"\r\n", b"\n")


def text_encoding(head: bytes) -> str:
    """'utf-8', 'utf-16-le' or 'utf-16-be', by the byte order mark or by the zero bytes of ASCII in UTF-16."""
    if head.startswith(codecs.BOM_UTF16_LE):
        return "utf-16-le"
    if head.startswith(codecs.BOM_UTF16_BE):
        return "utf-16-be"
    sample = head[:512]
    if len(sample) >= 8 and sample[1::2].count(0) > len(sample) * 0.4 and not sample[::2].count(0):
        return "utf-16-le"
    if len(sample) >= 8 and sample[::2].count(0) > len(sample) * 0.4 and not sample[1::2].count(0):
        return "utf-16-be"
    return "utf-8"


def blocks(path: Path, progress: Progress | None = None) -> Iterator[bytes]:
    """Blocks of whole lines, UTF-8, lines ended by a newline alone.

    Args:
        path: the file.
        progress: called with the bytes of the file read so far.

    Raises:
        MalformedInput: unreadable, damaged gzip, or a line of more than MAX_LINE_BYTES.
    """
    try:
        with path.open("rb") as raw:
            head = raw.read(4096)
            raw.seek(0)
            packed = head.startswith(GZIP)
            total = path.stat().st_size
            stream: IO[bytes] = gzip.GzipFile(fileobj=raw) if packed else raw  # type: ignore[assignment]
            if packed:
                head = stream.read(4096)
                stream.seek(0)
            encoding = text_encoding(head)
            parts = _utf8(stream) if encoding == "utf-8" else _utf16(stream, encoding)
            for block in _whole_lines(parts, path):
                if progress is not None:
                    progress(path.name, raw.tell(), total)
                yield block
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise MalformedInput(f"{path}: damaged gzip: {error}", "Copy the file again.") from error
    except FileNotFoundError as error:
        raise MalformedInput(f"{path}: no such file") from error
    except OSError as error:
        raise MalformedInput(f"{path}: {error.strerror or error}") from error


def _utf8(stream: IO[bytes]) -> Iterator[bytes]:
    first = True
    while part := stream.read(BLOCK_BYTES):
        yield part.removeprefix(codecs.BOM_UTF8) if first else part
        first = False


def _utf16(stream: IO[bytes], encoding: str) -> Iterator[bytes]:
    text = io.TextIOWrapper(stream, encoding=encoding, errors="replace", newline="")
    first = True
    while part := text.read(BLOCK_BYTES):
        yield (part.removeprefix("\ufeff") if first else part).encode()
        first = False
    text.detach()


def _whole_lines(parts: Iterator[bytes], path: Path) -> Iterator[bytes]:
    rest = b""
    for part in parts:
        data = rest + part
        cut = data.rfind(b"\n") + 1
        if cut == 0 and len(data) > MAX_LINE_BYTES:
            raise MalformedInput(f"{path}: a line of more than {MAX_LINE_BYTES >> 20} MiB", "This is no ncu text file.")
        block, rest = data[:cut], data[cut:]
        if block:
            yield _clean(block)
    if rest:
        yield _clean(rest + b"\n")


def _clean(block: bytes) -> bytes:
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n")
    if block.isascii():
        return block
    try:
        block.decode()
    except UnicodeDecodeError:
        # One line of program output in another encoding must not spoil the table's own UTF-8.
        return b"".join(_as_utf8(line) for line in block.splitlines(keepends=True))
    return block


def _as_utf8(line: bytes) -> bytes:
    try:
        line.decode()
    except UnicodeDecodeError:
        return line.decode("cp1252", errors="replace").encode()
    return line
