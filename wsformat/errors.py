"""Every error that wsformat raises on purpose.

    WsformatError
    ├── UnknownFormat        no converter recognises the input
    ├── MalformedInput       recognised, or named by the user, but broken
    ├── UnsupportedVersion   a bundle of a version that this library cannot read
    ├── InvalidBundle        a bundle that breaks the standard (carries all problems)
    ├── OutputExists         the target is there already and nobody said to replace it
    ├── BadRequest           a question that the data cannot answer, or wrong options
    └── MissingDependency    an optional package that this step needs is not installed

A message is one line: what is wrong, where, what was expected. ``hint`` says what to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class WsformatError(Exception):
    """Root of the tree.

    Args:
        message: one line, what is wrong and where.
        hint: one line, what the user can do; may be empty.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message


class UnknownFormat(WsformatError):
    """No converter recognises the input; the message lists what was tried and why not."""


class MalformedInput(WsformatError):
    """The input is of a known format, or was declared to be, and breaks its rules."""


class UnsupportedVersion(WsformatError):
    """The bundle's format version is newer (major) than this library reads."""


class NewerMinorWarning(UserWarning):
    """The bundle is of a newer minor version: it can be read, but may hold what this library does not know."""


class InvalidBundle(WsformatError):
    """The bundle breaks the standard.

    Args:
        message: one line, the first problem and how many more there are.
        problems: every finding, not just the first.
        hint: one line, what the user can do; may be empty.
    """

    def __init__(self, message: str, problems: Sequence[Any], hint: str = "") -> None:
        super().__init__(message, hint)
        self.problems = list(problems)


class OutputExists(WsformatError):
    """The output is there already; nothing was written."""


class BadRequest(WsformatError):
    """The question or its options make no sense for this bundle."""


class MissingDependency(WsformatError):
    """An optional package is needed. The hint names the extra that brings it."""
