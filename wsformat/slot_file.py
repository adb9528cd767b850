"""Slots that stay in their file until they are asked for."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from wsformat.errors import MalformedInput

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class SlotFile:
    """An array of slots in C order inside a file.

    Read with ordinary reads, not mapped: a mapped file that somebody shortens ends the process.

    Attributes:
        path: the file.
        dtype: of a slot, with its byte order.
        offset: bytes before the first slot.
        shape: of the array.
    """

    path: Path
    dtype: np.dtype[Any]
    offset: int
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of slots."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def reshape(self, *shape: int) -> SlotFile:
        """The same slots in another shape; one length may be -1."""
        known = -math.prod(shape)
        full = tuple(self.size // known if n < 0 else n for n in shape) if -1 in shape else shape
        assert math.prod(full) == self.size
        return replace(self, shape=full)

    def part(self, number: int) -> SlotFile:
        """One element along the first dimension."""
        one = replace(self, shape=self.shape[1:])
        return replace(one, offset=self.offset + number * one.size * self.dtype.itemsize)

    def read(self, first: int, count: int) -> Array:
        """Elements ``first`` to ``first + count`` along the first dimension, in memory.

        Raises:
            MalformedInput: the file cannot be read, or has become shorter.
        """
        one = math.prod(self.shape[1:])
        try:
            data = np.fromfile(
                self.path, self.dtype, count=count * one, offset=self.offset + first * one * self.dtype.itemsize
            )
        except OSError as error:
            raise MalformedInput(f"{self.path}: {error.strerror or error}") from error
        if data.size != count * one:
            raise MalformedInput(f"{self.path}: became shorter while it was read", "Import it again.")
        return data.reshape(count, *self.shape[1:])
