"""Decimal numbers in text, to integers: exact, vectorised, never through a float."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation, localcontext
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

WIDEST = 32
"""Longer texts take the slow path."""
DECIMALS = 9
NANO = 10**DECIMALS
LARGEST = 9 * 10**18


@dataclass(frozen=True)
class Decimals:
    """Numbers as whole part and thousandths, rounded to the nearest.

    Attributes:
        whole: int64, the whole part of the rounded number.
        milli: int64, 0 to 999.
        bad: not a number, or out of range.
        floor, nano: the number itself: its floor, and billionths, for those not in ``fine``.
        fine: the exact value of the few that have more than nine decimals or an exponent, by position.
    """

    whole: Array
    milli: Array
    bad: Array
    floor: Array
    nano: Array
    fine: dict[int, Decimal]


def parse(text: Array, begin: Array, end: Array) -> Decimals:
    """Read numbers from slices of bytes; quotes around them are allowed.

    Args:
        text: bytes, uint8.
        begin, end: slices; begin < 0 is a missing number, which is bad.
    """
    count = len(begin)
    whole, milli, nano = (np.zeros(count, np.int64) for _ in range(3))
    bad = begin < 0
    fine: dict[int, Decimal] = {}
    if count == 0 or bad.all():
        return Decimals(whole, milli, bad, whole, nano, fine)
    first, last = np.where(bad, 0, begin), np.where(bad, 0, end)
    quoted = ~bad & (text[first] == ord('"')) & (last - first >= 2)
    first, last = first + quoted, last - quoted
    negative = ~bad & (last > first) & (text[first] == ord("-"))
    first = first + negative
    length = last - first
    width = int(min(max(length.max(), 1), WIDEST))
    column = np.arange(width)
    inside = column < length[:, None]
    chars = text[np.minimum(first[:, None] + column, len(text) - 1)]
    digit = (chars >= 48) & (chars <= 57) & inside
    dot = (chars == 46) & inside
    has_dot = dot.any(axis=1)
    point = np.where(has_dot, dot.argmax(axis=1), length)
    plain = ~bad & (length > 0) & (length <= width) & (point > 0) & (point <= 19)
    plain &= (digit.sum(axis=1) + has_dot == length) & ~(has_dot & (point == length - 1))
    value = np.where(digit, chars, 48).astype(np.int64) - 48
    large = np.zeros(count, np.uint64)
    for j in range(min(width, 19)):
        large = np.where(j < point, large * np.uint64(10) + value[:, j].astype(np.uint64), large)
    plain &= large < LARGEST
    whole = np.where(plain, large, 0).astype(np.int64)
    rows = np.arange(count)
    for j in range(1, 1 + min(DECIMALS, max(width - 1, 3))):
        place = np.minimum(point + j, width - 1)
        nano += np.where(has_dot & (point + j < length), value[rows, place], 0) * 10 ** (DECIMALS - j)
    plain &= ~((column > (point + DECIMALS)[:, None]) & (value > 0)).any(axis=1)
    borrow = negative & (nano > 0)
    floor = np.where(negative, -whole - borrow, whole)
    nano = np.where(plain, np.where(borrow, NANO - nano, nano), 0)
    whole, milli = to_milli(floor, nano)
    for row in np.flatnonzero(~plain & ~bad).tolist():
        exact = exactly(bytes(text[int(begin[row]) : int(end[row])]).strip(b'" '))
        if exact is None:
            bad[row] = True
            whole[row] = milli[row] = 0
            continue
        fine[row] = exact
        whole[row], milli[row] = divmod(rounded(exact), 1000)
    return Decimals(whole, milli, bad, floor, nano, fine)


def to_milli(floor: Array, nano: Array) -> tuple[Array, Array]:
    """Whole part and thousandths of floor + nano billionths, to the nearest, ties to even."""
    milli, rest = np.divmod(nano, NANO // 1000)
    half = NANO // 2000
    milli += (rest > half) | ((rest == half) & (milli % 2 == 1))
    return floor + milli // 1000, milli % 1000


def exactly(raw: bytes) -> Decimal | None:
    """The number that a text says, None when it says none or one beyond 9e18."""
    try:
        value = Decimal(raw.decode("ascii"))
    except (InvalidOperation, UnicodeDecodeError):
        return None
    return value if value.is_finite() and value.adjusted() < 19 and abs(value) < LARGEST else None


def rounded(value: Decimal) -> int:
    """Thousandths of a number, to the nearest, ties to even."""
    with localcontext() as context:
        context.prec = 60
        return int(value.scaleb(3).to_integral_value())


def exact(numbers: Decimals, row: int) -> Decimal:
    """The exact value of one number."""
    found = numbers.fine.get(row)
    return found if found is not None else Decimal(int(numbers.floor[row])) + Decimal(int(numbers.nano[row])).scaleb(-9)
