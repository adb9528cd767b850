"""What a cubin says without a GPU: the machine code and the parameter bank of each kernel."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from wsformat.errors import MalformedInput

TEXT = ".text."
CONSTANT_BANK = ".nv.constant0."
"""Parameters of a kernel lie in constant bank 0, behind a fixed part that the architecture sets."""
NO_BYTES = 8
"""Section type SHT_NOBITS: has a size but no content."""


@dataclass(frozen=True)
class Kernel:
    """One kernel of a cubin.

    Attributes:
        name: as the linker sees it (mangled).
        code: its machine code.
        constant_bytes: size of constant bank 0, parameters included.
        shared_bytes: static shared memory.
    """

    name: str
    code: bytes
    constant_bytes: int
    shared_bytes: int


def sections(cubin: bytes) -> dict[str, tuple[int, bytes]]:
    """Size and content of each section of a 64-bit ELF file, by name.

    Raises:
        MalformedInput: not such a file, or cut off.
    """
    try:
        if cubin[:5] != b"\x7fELF\x02":
            raise MalformedInput("not a cubin: no 64-bit ELF file")
        (table,) = struct.unpack_from("<Q", cubin, 0x28)
        size, count, names_index = struct.unpack_from("<HHH", cubin, 0x3A)
        rows = [struct.unpack_from("<IIQQQQ", cubin, table + n * size) for n in range(count)]
        names = rows[names_index][4]
        result = {}
        for name, kind, _, _, offset, length in rows:
            label = cubin[names + name : cubin.index(b"\0", names + name)].decode()
            content = b"" if kind == NO_BYTES else cubin[offset : offset + length]
            if kind != NO_BYTES and len(content) != length:
                raise MalformedInput(f"cubin: section {label} ends beyond the file: cut off?")
            result[label] = (length, content)
    except (struct.error, IndexError, ValueError) as error:
        raise MalformedInput(f"cubin: broken section table: {error}") from error
    return result


def kernels(cubin: bytes) -> dict[str, Kernel]:
    """The kernels of a cubin by name.

    Raises:
        MalformedInput
    """
    every = sections(cubin)
    return {
        (name := label.removeprefix(TEXT)): Kernel(
            name=name,
            code=content,
            constant_bytes=every.get(CONSTANT_BANK + name, (0, b""))[0],
            shared_bytes=every.get(f".nv.shared.{name}", (0, b""))[0],
        )
        for label, (_, content) in every.items()
        if label.startswith(TEXT)
    }
