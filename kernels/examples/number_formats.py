"""Values of bf16 and fp8 (e4m3) as the bits that a kernel reads."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

E4M3_LARGEST = 0x7E
"""Bits of 448; 0x7F is NaN."""


def bf16(values: Array) -> Array:
    """Nearest bf16, ties to even, as its 16 bits."""
    bits = values.view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def _e4m3_values() -> Array:
    """Every value that is not negative, by its bits: 4 bits of exponent with bias 7, 3 of fraction."""
    bits = np.arange(E4M3_LARGEST + 1)
    exponent, fraction = bits >> 3, bits & 7
    return np.where(exponent == 0, fraction * 2.0**-9, (8 + fraction) * 2.0 ** (exponent - 10.0))


def e4m3(values: Array) -> Array:
    """Nearest e4m3, ties to even, as its 8 bits; what is too large becomes the largest."""
    known = _e4m3_values()
    size = np.abs(values.astype(np.float64))
    low = np.clip(np.searchsorted(known, size, side="right") - 1, 0, E4M3_LARGEST - 1)
    to_low, to_high = size - known[low], known[low + 1] - size
    up = (to_high < to_low) | ((to_high == to_low) & (low % 2 == 1))
    return (low + up).astype(np.uint8) | (np.signbit(values).astype(np.uint8) << 7)


def float64(bits: Array) -> Array:
    """bf16 given as its 16 bits, or e4m3 given as its 8, exactly."""
    if bits.dtype == np.uint8:
        size: Array = _e4m3_values()[bits & 0x7F]
        return np.where(bits >> 7, -size, size)
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
