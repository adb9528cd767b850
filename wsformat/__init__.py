"""wsformat: the open Arrow/Parquet standard for what happens inside a GPU kernel.

    >>> import wsformat
    >>> bundle = wsformat.open("gemm.wsformat")
    >>> bundle.sql("SELECT role, extent, stall, active, untracked FROM role_state")

Names are loaded when they are first used, so that ``import wsformat`` stays quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wsformat.version import __version__

if TYPE_CHECKING:
    from wsformat.bundle import Bundle
    from wsformat.errors import WsformatError

__all__ = ["Bundle", "WsformatError", "__version__", "open"]


def open(path: str) -> Bundle:  # noqa: A001 - wsformat.open reads as it should
    """Open a bundle directory. See :meth:`wsformat.bundle.Bundle.open`."""
    from wsformat.bundle import Bundle

    return Bundle.open(path)


def __getattr__(name: str) -> Any:
    if name == "Bundle":
        from wsformat.bundle import Bundle

        return Bundle
    if name == "WsformatError":
        from wsformat.errors import WsformatError

        return WsformatError
    raise AttributeError(f"module 'wsformat' has no attribute {name!r}")
