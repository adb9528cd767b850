"""The bytes of a file, packed or not, a part at a time."""

from __future__ import annotations

import codecs
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from wsformat.bundle import Progress
from wsformat.converters.import_options import UTF16

CHUNK = 4 << 20
PACKED = 1 << 18


@dataclass
class Reader:
    """Bytes of a file, unpacked, with what is not yet used."""

    path: Path
    file: BinaryIO
    packed: bool
    progress: Progress | None
    total: int
    buffer: bytes = b""
    offset: int = 0
    ended: bool = False
    cut: str = ""
    unpack: Any = None
    whole: bool = False
    decoder: codecs.IncrementalDecoder | None = None

    def more(self, size: int = CHUNK) -> bool:
        """Read on; False at the end of the file."""
        if self.ended:
            return False
        part = self._unpacked(size) if self.packed else self.file.read(size)
        self.ended = not part
        self.buffer += self._utf8(part)
        if self.progress is not None:
            self.progress(self.path.name, self.file.tell(), self.total)
        return bool(part)

    def _utf8(self, part: bytes) -> bytes:
        """The same text as UTF-8, where it is of 16 bits."""
        if self.decoder is None and not self.offset and not self.buffer and part.startswith(UTF16):
            self.decoder = codecs.getincrementaldecoder("utf-16")("replace")
        return part if self.decoder is None else self.decoder.decode(part, final=self.ended).encode("utf-8", "replace")

    def _unpacked(self, size: int) -> bytes:
        """The next bytes of a gzip file, all there are of one that is cut off or damaged."""
        while True:
            held = self.unpack.unconsumed_tail if self.unpack is not None else b""
            if self.unpack is None or self.unpack.eof:
                held = self.unpack.unused_data if self.unpack is not None else b""
                self.unpack = zlib.decompressobj(wbits=31)
            held = held or self.file.read(PACKED)
            if not held:
                if not self.whole:
                    self.cut = "the gzip stream has no end"
                return b""
            self.whole = False
            try:
                part = self.unpack.decompress(held, size)
            except zlib.error as error:
                self.cut = f"the gzip stream is damaged: {error}"
                return b""
            self.whole = self.unpack.eof
            if part:
                return bytes(part)

    def skip(self, count: int) -> None:
        """Leave bytes behind."""
        self.buffer = self.buffer[count:]
        self.offset += count
