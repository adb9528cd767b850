"""What pages have in common that hold computed answers: written anew in place, or only compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path


def keep(page: Path, filled: Callable[[str], str], arguments: Sequence[str]) -> int:
    """Write the page with its answers computed; with --check only say, by 1, that it differs."""
    text = page.read_text(encoding="utf-8")
    fresh = filled(text)
    if "--check" in arguments:
        return int(fresh != text)
    page.write_text(fresh, encoding="utf-8")
    return 0
