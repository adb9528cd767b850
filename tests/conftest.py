"""Shared fixtures. Test modules may import the helpers of this folder by name (reference, simulator)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
ROOT = TESTS.parent
SHARED = ROOT.parent / "shared"

if str(TESTS) not in sys.path:
    sys.path.insert(0, str(TESTS))


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def public() -> Path:
    """Other people's files, which are not part of the project; skips where they are absent."""
    folder = SHARED / "public"
    if not folder.is_dir():
        pytest.skip("no folder with other people's files beside the checkout")
    return folder


@pytest.fixture(scope="session")
def captures() -> Path:
    """The project's own real captures that are too many to ship; skips where they are absent."""
    folder = SHARED / "captures"
    if not folder.is_dir():
        pytest.skip("no folder with captures beside the checkout")
    return folder
