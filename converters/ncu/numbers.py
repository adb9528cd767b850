"""Texts to numbers: which separators a file uses, and what each distinct text is worth.

Which character groups digits and which one is the decimal mark is decided once for a file, from all its cells.
ncu prints two decimals or none (six in one page), so one separator before exactly three digits groups.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from wsformat.errors import MalformedInput

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

SEPARATORS = {".": ".", ",": ",", " ": "space", "'": "apostrophe", "\x01": "\u066c", "\x02": "\u066b"}
# Spaces and apostrophes of every locale, and the two Arabic marks, as one byte each.
SPELLINGS = {
    "\u00a0": " ", "\u202f": " ", "\u2009": " ", "\u2007": " ", "\u2019": "'", "\u066c": "\x01", "\u066b": "\x02",
    "\u2212": "-",
}  # fmt: skip
DIGIT, SIGN, EXPONENT, OTHER, FIRST_SEPARATOR = 1, 2, 3, 0, 4
CLASS = np.zeros(256, np.uint8)
CLASS[48:58] = DIGIT
CLASS[[43, 45]] = SIGN
CLASS[[69, 101]] = EXPONENT
for _number, _char in enumerate(SEPARATORS):
    CLASS[ord(_char)] = FIRST_SEPARATOR + _number
GROUP_ONLY = np.array([FIRST_SEPARATOR + list(SEPARATORS).index(c) for c in (" ", "'", "\x01")], np.uint8)
IS_SEPARATOR = CLASS >= FIRST_SEPARATOR
IS_KEPT = CLASS == DIGIT
IS_KEPT[45] = True
# Bits 0 to 7 count digits, 8 to 15 signs, then each separator in the order of its class.
WEIGHT = np.zeros(256, np.uint64)
WEIGHT[CLASS == DIGIT], WEIGHT[CLASS == SIGN] = 1, 1 << 8
for _number in range(len(SEPARATORS)):
    WEIGHT[FIRST_SEPARATOR + _number == CLASS] = np.uint64(1 << (16 + 8 * _number))
LONGEST_NUMBER = 60
MAX_EXACT_DIGITS = 18


@dataclass(slots=True)
class Shapes:
    """What distinct texts look like as numbers.

    Attributes:
        clean: the texts with one-byte separators and without a leading ``(!)``.
        numeric: only digits, separators and one leading sign, and the groups have legal sizes.
        kinds: how many different separators.
        count: how many separators.
        last: class of the last separator, 0 none.
        after: digits after the last separator.
        lead: digits before the first separator.
        zero: the digits before the first separator are a single 0.
        last_count: how often the last separator's class occurs.
        first: class of the first separator.
    """

    clean: pa.StringArray
    numeric: npt.NDArray[np.bool_]
    kinds: npt.NDArray[np.int64]
    count: npt.NDArray[np.int64]
    last: npt.NDArray[np.uint8]
    after: npt.NDArray[np.int64]
    lead: npt.NDArray[np.int64]
    zero: npt.NDArray[np.bool_]
    last_count: npt.NDArray[np.int64]
    first: npt.NDArray[np.uint8]


def buffers(texts: pa.StringArray) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Offsets (from 0) and bytes of a string array without nulls."""
    _, offset_buffer, data_buffer = texts.buffers()
    offsets = np.frombuffer(offset_buffer, np.int32)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    data = np.frombuffer(data_buffer, np.uint8) if data_buffer is not None else np.empty(0, np.uint8)
    return offsets - offsets[0], data[offsets[0] : offsets[-1]]


def shapes(texts: pa.StringArray) -> Shapes:
    """Look at distinct texts, see :class:`Shapes`."""
    offsets, data = buffers(texts)
    if (data == 40).any() and pc.any(pc.starts_with(texts, "(!)")).as_py():
        texts = pc.replace_substring_regex(texts, r"^\(!\)\s*", "")
        offsets, data = buffers(texts)
    if (data >= 128).any():
        for spelling, char in SPELLINGS.items():
            texts = pc.replace_substring(texts, spelling, char)
        offsets, data = buffers(texts)
    begins, ends = offsets[:-1], offsets[1:]
    length = ends - begins
    # Counts of every class at once: eight bits each in one running sum, so that no text may be longer than 255.
    sums = np.zeros(len(data) + 1, np.uint64)
    np.cumsum(WEIGHT[data], out=sums[1:])
    packed = sums[ends] - sums[begins]
    places = np.flatnonzero(IS_SEPARATOR[data])
    classes = CLASS[data[places]]
    used = np.flatnonzero(np.bincount(classes))
    own = {int(k): ((packed >> np.uint64(8 * (int(k) - 2))) & np.uint64(255)).astype(np.int64) for k in used}
    number = sum(own.values(), np.zeros(len(texts), np.int64))
    for index in np.flatnonzero(length > 255):
        number[index] = np.count_nonzero(IS_SEPARATOR[data[begins[index] : ends[index]]])
    high = np.cumsum(number)
    low = high - number
    short = length <= LONGEST_NUMBER
    digits = (packed & np.uint64(255)).astype(np.int64)
    signs = ((packed >> np.uint64(8)) & np.uint64(255)).astype(np.int64)
    some = (number > 0) & short
    at, cls_at = np.append(places, 0), np.append(classes, 0)
    last_index = np.maximum(high - 1, 0)
    first = np.where(some, cls_at[low], 0).astype(np.uint8)
    last = np.where(some, cls_at[last_index], 0).astype(np.uint8)
    after = np.where(some, ends - at[last_index] - 1, 0)
    lead = np.where(some, at[low] - begins, length) - signs
    kinds = sum(((count > 0).astype(np.int64) for count in own.values()), np.zeros(len(texts), np.int64))
    last_count = np.zeros(len(texts), np.int64)
    for k, count in own.items():
        np.copyto(last_count, count, where=last == k)
    end = max(len(data) - 1, 0)
    data = data if len(data) else np.zeros(1, np.uint8)
    head = data[np.minimum(begins, end)]
    numeric = short & (digits > 0) & (digits + signs + number == length)
    numeric &= (signs == 0) | ((signs == 1) & (CLASS[head] == SIGN))
    numeric &= ~some | ((lead > 0) & (after > 0))
    # With one group of unknown size its digits are what is left; with more, every separator's place is looked at.
    groups = number - (kinds == 2)
    exact = numeric & (kinds <= 2) & ~((kinds == 2) & (last_count > 1))
    plain = (digits == lead + 3 * groups + np.where(kinds == 2, after, 0)) & (groups - (kinds == 1) <= 1)
    many = np.flatnonzero(numeric & (number > 1) & ~(exact & plain & ((kinds == 2) | (after == 3))))
    if len(many):
        numeric[many[_bad_groups(places, low[many], high[many], kinds[many], last_count[many])]] = False
    zero = (lead == 1) & (data[np.minimum(begins + signs, end)] == 48)
    return Shapes(texts, numeric, kinds, number, last, after, lead, zero, last_count, first)


def _bad_groups(
    places: npt.NDArray[np.int64], low: Ints, high: Ints, kinds: Ints, last_count: Ints
) -> npt.NDArray[np.bool_]:
    """Which texts (with two or more separators) have groups that are not 3 digits (or 2, as in India, but the last)."""
    bad: npt.NDArray[np.bool_] = (kinds > 2) | ((kinds == 2) & (last_count > 1))
    number = high - low - 1
    owner = np.repeat(np.arange(len(low)), number)
    place = low[owner] + np.arange(len(owner)) - (np.cumsum(number) - number)[owner]
    step = places[place + 1] - places[place]
    final = (place == high[owner] - 2) & (kinds[owner] == 2)
    wrong = np.where(final, step != 4, (step != 4) & (step != 3))
    bad[owner[wrong]] = True
    return bad


@dataclass(slots=True)
class Convention:
    """How a file writes numbers, and the cells that prove it.

    Attributes:
        decimal, group: one-byte characters of :data:`SEPARATORS`; '' unknown so far.
        seen: per (role, class) an example; role is decimal, group or maybe (one separator, three digits after it).
        forced: the user named the decimal mark.
        loose: no table of ncu itself, so that one separator before three digits is the decimal mark.
    """

    decimal: str = ""
    group: str = ""
    seen: dict[tuple[str, str], str] = field(default_factory=dict)
    forced: bool = False
    loose: bool = False

    def observe(self, shape: Shapes) -> None:
        """Take note of the separators of more cells."""
        some = shape.numeric & (shape.count > 0)
        if not some.any():
            return
        only_group = np.isin(shape.last, GROUP_ONLY)
        two = some & (shape.kinds == 2)
        one = some & (shape.kinds == 1)
        repeated = one & (shape.count > 1) & (shape.after == 3)
        single = one & (shape.count == 1) & ~only_group
        maybe = single & (shape.after == 3) & (shape.lead <= 3) & ~shape.zero
        chars = list(SEPARATORS)
        for role, mask, classes in (
            ("decimal", two, shape.last),
            ("group", two, shape.first),
            ("group", repeated, shape.last),
            ("group", one & only_group & (shape.after == 3), shape.last),
            ("decimal", single & ~maybe, shape.last),
            ("maybe", maybe, shape.last),
        ):
            present, where = np.unique(classes[mask], return_index=True)
            for cls, index in zip(present, where, strict=True):
                key = (role, chars[cls - FIRST_SEPARATOR])
                if key not in self.seen:
                    self.seen[key] = shape.clean[int(np.flatnonzero(mask)[index])].as_py()

    def guess(self) -> str:
        """The decimal mark as far as the cells seen so far tell; numbers are read again should it prove wrong."""
        if self.forced:
            return self.decimal
        try:
            return Convention(seen=self.seen, loose=self.loose).settle("").decimal
        except MalformedInput:
            return ""

    def settle(self, where: str) -> Convention:
        """Decide for the whole file.

        Raises:
            MalformedInput: its cells contradict each other, or leave two readings.
        """
        decimal = {char for role, char in self.seen if role == "decimal"}
        group = {char for role, char in self.seen if role == "group"}
        maybe = {char for role, char in self.seen if role == "maybe"}
        if self.forced:
            self.group = next(iter((group | maybe | decimal) - {self.decimal}), "")
            return self
        if self.loose:
            decimal, maybe = decimal | (maybe - group), set()
        both = decimal & (group | maybe)
        if both or len(decimal) > 1 or len(group) > 1:
            raise MalformedInput(
                f"{where}: cells contradict each other about separators: {self._examples()}",
                "Several runs in one file? Split it; or say --option decimal=. (or ,) if you know.",
            )
        if not decimal and group and maybe - group:
            # Commas group for certain, so the other mark, seen only before three digits, is the decimal one.
            decimal = maybe - group
        if not group:
            group = maybe - decimal
        if len(group) > 1 or len(decimal) > 1:
            raise MalformedInput(
                f"{where}: two readings of its numbers are possible: {self._examples()}",
                "Say --option decimal=. (or ,).",
            )
        self.group = next(iter(group), "")
        self.decimal = next(iter(decimal), "," if self.group == "." else ".")
        return self

    def _examples(self) -> str:
        return ", ".join(
            f"{text!r} ({SEPARATORS[char]} as {'a group separator' if role != 'decimal' else 'the decimal mark'})"
            for (role, char), text in self.seen.items()
        )


@dataclass(slots=True)
class Numbers:
    """Distinct texts as numbers.

    Attributes:
        value: the number, NaN where there is none.
        mantissa, places: value = mantissa / 10**places, exact for up to 15 digits.
        reason: index into :data:`REASONS`; 0 is a number.
    """

    value: Floats
    mantissa: Floats
    places: npt.NDArray[np.int64]
    reason: npt.NDArray[np.int32]


REASONS = ["", "text", "n/a", "nan", "no data", "empty"]
SPELLED = {
    "": "empty", "n/a": "n/a", "na": "n/a", "-": "n/a", "nan": "nan", "-nan": "nan", "nan(ind)": "nan",
    "-nan(ind)": "nan", "no data": "no data",
}  # fmt: skip
TENS = 10.0 ** np.arange(23)


def parse(shape: Shapes, convention: Convention) -> Numbers:
    """Numbers of distinct texts under the file's convention."""
    total = len(shape.clean)
    places = np.zeros(total, np.int64)
    mantissa = np.full(total, np.nan)
    decimal_class = CLASS[ord(convention.decimal or ".")]
    is_decimal = (shape.count > 0) & (shape.last == decimal_class) & (shape.last_count == 1)
    numeric = shape.numeric & (is_decimal | (shape.count == 0) | (shape.after == 3))
    places = np.where(numeric & is_decimal, shape.after, 0)
    index = np.flatnonzero(numeric)
    if len(index) == total:
        mantissa = _digits(shape.clean) if total else mantissa
    elif len(index):
        mantissa[index] = _digits(shape.clean.take(pa.array(index)))
    reason = np.where(numeric, 0, 1).astype(np.int32)
    rest = np.flatnonzero(~numeric)
    if len(rest):
        for position, text in zip(rest, shape.clean.take(pa.array(rest)).to_pylist(), strict=True):
            word = text.strip().lower()
            if word in SPELLED:
                reason[position] = REASONS.index(SPELLED[word])
            elif "e" in word and len(word) < 40 and word[:1] in "+-.0123456789":
                number = _scientific(word, convention.decimal)
                if number is not None:
                    mantissa[position], reason[position] = number, 0
    value = mantissa / TENS[np.minimum(places, 22)]
    return Numbers(value, mantissa, places, reason)


def known_numbers(mantissa: Floats, places: npt.NDArray[np.int8], reason: npt.NDArray[np.int8]) -> Numbers:
    """Numbers put together again from what was kept of them."""
    wide = places.astype(np.int64)
    return Numbers(mantissa / TENS[np.minimum(wide, 22)], mantissa, wide, reason.astype(np.int32))


def _digits(texts: pa.StringArray) -> Floats:
    """Integers made of each text's digits and sign."""
    offsets, data = buffers(texts)
    keep = IS_KEPT[data]
    sums = np.zeros(len(data) + 1, np.int32)
    np.cumsum(keep, out=sums[1:], dtype=np.int32)
    packed = data[keep]
    stops = sums[offsets]
    compact = pa.StringArray.from_buffers(len(texts), pa.py_buffer(stops), pa.py_buffer(packed))
    if np.diff(stops).max() <= MAX_EXACT_DIGITS:
        return np.asarray(compact.cast(pa.int64()).to_numpy(zero_copy_only=False)).astype(np.float64)
    return np.asarray(compact.cast(pa.float64()).to_numpy(zero_copy_only=False))


def _scientific(word: str, decimal: str) -> float | None:
    try:
        number = float(word.replace(",", ".") if decimal == "," else word)
    except ValueError:
        return None
    return number if abs(number) != float("inf") else None
