"""File access of pyiceberg for a lake that was moved; a module of its own, since pyiceberg loads it by its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyiceberg.io.fsspec import FsspecFileIO

from wsformat.lake.moved import placed


class MovedIO(FsspecFileIO):
    """File access of pyiceberg that looks for files where the lake lies now."""

    def get_fs(self, scheme: str, hostname: str | None = None) -> Any:
        """The file system, with names swapped."""
        return _Swapping(super().get_fs(scheme, hostname), self.properties)


class _Swapping:
    """What pyiceberg asks of a file system."""

    def __init__(self, inner: Any, properties: Mapping[str, str]) -> None:
        self._inner = inner
        self._properties = properties

    def open(self, path: str, mode: str) -> Any:
        return self._inner.open(placed(self._properties, path), mode)

    def info(self, path: str) -> Any:
        return self._inner.info(placed(self._properties, path))

    def lexists(self, path: str) -> Any:
        return self._inner.lexists(placed(self._properties, path))

    def rm(self, path: str) -> Any:
        return self._inner.rm(placed(self._properties, path))
