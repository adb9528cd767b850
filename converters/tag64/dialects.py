"""What the bits of a tag mean, by dialect, and which dialects a buffer fits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from wsformat.errors import MalformedInput

Array = np.ndarray[Any, Any]

HEAD_RECORDS = 8192
BEGIN, END, INSTANT, FINALIZE = range(4)
EVENT_SHIFT, EVENT_MASK, TYPE_MASK = 2, 0x3FF, 3
FIELD_SHIFT = 12


@dataclass(frozen=True)
class Dialect:
    """A layout of tags: bits 1..0 type, 11..2 event, from 12 on a number, and perhaps the SM on top.

    Attributes:
        name: id.
        tool: what writes it.
        bits: width of the number from bit 12 on.
        holds_block: whether that number is the block; else it is block x groups + group.
        holds_sm: whether bits 31..24 are the SM.
        finalizes: whether a lane ends with a record of type 3.
    """

    name: str
    tool: str
    bits: int
    holds_block: bool
    holds_sm: bool
    finalizes: bool

    def number(self, tag: Array) -> Array:
        """The number in a tag."""
        return (tag >> np.uint32(FIELD_SHIFT)) & np.uint32((1 << self.bits) - 1)

    def expected(self, lane: Array, groups: int) -> Array:
        """The number that the tag of a lane should hold."""
        return ((lane // groups if self.holds_block else lane) & ((1 << self.bits) - 1)).astype(np.uint32)


DIALECTS = {
    dialect.name: dialect
    for dialect in (
        Dialect("flashinfer-v1", "flashinfer", 20, holds_block=False, holds_sm=False, finalizes=False),
        Dialect("flashinfer-v2", "flashinfer", 12, holds_block=True, holds_sm=True, finalizes=False),
        Dialect("tirx", "tirx", 20, holds_block=False, holds_sm=False, finalizes=True),
    )
}
ALIASES = {"warpscope": "tirx"}


def header(words: Array, where: str) -> tuple[int, int]:
    """Blocks and groups.

    Raises:
        MalformedInput: slot 0 does not hold them.
    """
    if not len(words):
        raise MalformedInput(f"{where}: empty, slot 0 with the numbers of blocks and groups is missing")
    blocks, groups = int(words[0, 0]), int(words[0, 1])
    if blocks == 0 or groups == 0:
        raise MalformedInput(
            f"{where}: slot 0 says {blocks} blocks of {groups} groups: block 0 wrote nothing",
            "Check that the kernel ran with its profiler on, and that the buffer was copied after it finished.",
        )
    if blocks * groups > len(words) - 1:
        raise MalformedInput(
            f"{where}: slot 0 says {blocks} blocks of {groups} groups, but only {len(words) - 1} slots follow",
            "The file is cut off, or is no buffer of this family.",
        )
    return blocks, groups


def fitting(words: Array, blocks: int, groups: int, stride: int) -> list[str]:
    """Names of the dialects that every written record fits.

    Args:
        words: [slot, 2], slot 0 included; may be only the beginning of the buffer.
        blocks, groups, stride: of the buffer.
    """
    slot = np.flatnonzero(words.any(axis=1))
    slot = slot[slot > 0]
    if not slot.size:
        return []
    tag, lane = words[slot, 0], (slot - 1) % stride
    result = []
    for dialect in DIALECTS.values():
        kind = tag & np.uint32(TYPE_MASK)
        fits = (lane < blocks * groups).all() and (dialect.number(tag) == dialect.expected(lane, groups)).all()
        ends = (kind == FINALIZE).any()
        if dialect.holds_sm and fits:
            # One block runs on one SM, and some block does not run on SM 0.
            block, sm = lane // groups, tag >> np.uint32(24)
            low, high = np.full(blocks, 256), np.full(blocks, -1)
            np.minimum.at(low, block, sm)
            np.maximum.at(high, block, sm)
            fits = bool((low >= high)[high >= 0].all())
        if fits and (dialect.finalizes or not ends):
            result.append(dialect.name)
    return result
