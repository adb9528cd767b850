"""Pairing, enclosing and arrows against plain loops; JSON cut into members against the standard library."""

from __future__ import annotations

import json
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsformat.converters import decimal_text
from wsformat.converters.json_members import elements, gather, split
from wsformat.converters.pairing import Enclosing, arrows, pair
from wsformat.errors import MalformedInput

few = settings(max_examples=150, deadline=None)


@few
@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=40), st.randoms(use_true_random=False))
def test_pair_is_a_stack(entries: list[tuple[int, bool]], random: object) -> None:
    group = np.array([g for g, _ in entries], np.int64)
    ends = np.array([e for _, e in entries], bool)
    order = np.arange(len(entries))
    random.shuffle(order)  # type: ignore[attr-defined]
    partner, orphan = pair(group, order, ends)
    wanted, lost = np.full(len(entries), -1), np.zeros(len(entries), bool)
    stacks: dict[int, list[int]] = {}
    for n in np.argsort(order).tolist():
        stack = stacks.setdefault(int(group[n]), [])
        if not ends[n]:
            stack.append(n)
        elif stack:
            wanted[stack.pop()] = n
        else:
            lost[n] = True
    assert partner.tolist() == wanted.tolist()
    assert orphan.tolist() == lost.tolist()


@few
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 12), st.integers(0, 6)), max_size=30),
       st.lists(st.tuples(st.integers(0, 3), st.integers(0, 20)), max_size=10))  # fmt: skip
def test_enclosing_is_the_innermost(spans: list[tuple[int, int, int]], asked: list[tuple[int, int]]) -> None:
    lane, t0, length = (np.array([s[k] for s in spans], np.int64) for k in range(3))
    t1 = t0 + length
    tool = Enclosing(lane, t0, t1)
    where, t = (np.array([a[k] for a in asked], np.int64) for k in range(2))
    found, following = tool.find(where, t).tolist(), tool.next(where, t).tolist()
    for (place, moment), inner, ahead in zip(asked, found, following, strict=True):
        holding = [n for n in range(len(spans)) if lane[n] == place and t0[n] <= moment <= t1[n]]
        if holding:
            best = max((int(t0[n]), -int(t1[n])) for n in holding)
            assert inner in holding
            assert (int(t0[inner]), -int(t1[inner])) == best
        else:
            assert inner == -1
        later = [int(t0[n]) for n in range(len(spans)) if lane[n] == place and t0[n] >= moment]
        assert (ahead == -1) == (not later)
        if later:
            assert (lane[ahead], t0[ahead]) == (place, min(later))


@few
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=20))
def test_arrows_lose_no_end(entries: list[tuple[int, int]]) -> None:
    key, kind = (np.array([e[k] for e in entries], np.int64) for k in range(2))
    tail, head = arrows(key, np.arange(len(entries)), kind)
    edges = list(zip(tail.tolist(), head.tolist(), strict=True))
    assert {h for _, h in edges if h >= 0} == {n for n in range(len(entries)) if kind[n] > 0}
    assert {t for t, _ in edges if t >= 0} >= {n for n in range(len(entries)) if kind[n] == 0}
    for t, h in edges:
        if h < 0:
            continue
        before = [n for n in range(h) if key[n] == key[h] and kind[n] <= 1]
        after = [n for n in range(h + 1, len(entries)) if key[n] == key[h] and kind[n] == 0]
        assert t == (before[-1] if before else after[0] if after else -1)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@few
@given(st.lists(st.dictionaries(st.text(), values, max_size=5), max_size=6), st.booleans(), st.integers(0, 3))
def test_members_are_those_of_the_standard_library(
    objects: list[dict[str, object]], ascii_only: bool, indent: int
) -> None:
    text = json.dumps(objects, ensure_ascii=ascii_only, indent=indent or None).encode("utf-8", "surrogatepass")
    whole = np.frombuffer(text, np.uint8)
    inner, found = elements(whole, 0, len(whole), "t")
    assert (len(found.begin), found.ended, found.strays) == (len(objects), True, 0)
    read: list[dict[str, object]] = [{} for _ in objects]
    for n, owner in enumerate(found.owner.tolist()):
        key = json.loads(b'"' + bytes(inner[found.key_begin[n] : found.key_end[n]]) + b'"')
        read[owner][key] = json.loads(bytes(inner[found.value_begin[n] : found.value_end[n]]))
    assert read == objects
    raw = gather(inner, found.begin, found.end).to_pylist()
    assert [json.loads(part) for part in raw] == objects
    for cut in range(0, len(inner), 7):
        part = split(inner[:cut], "t")
        assert len(part.begin) == int((found.end <= cut).sum())


@few
@given(st.decimals(-(10**18), 10**18, allow_nan=False, places=None), st.booleans())
def test_decimals_are_exact(value: Decimal, quoted: bool) -> None:
    text = f'"{value}"' if quoted else str(value)
    raw = np.frombuffer(text.encode() + b",", np.uint8)
    found = decimal_text.parse(raw, np.array([0]), np.array([len(text)]))
    assert not found.bad[0]
    assert int(found.whole[0]) * 1000 + int(found.milli[0]) == decimal_text.rounded(value)
    assert decimal_text.exact(found, 0) == value


@pytest.mark.parametrize(
    "text", ["", "-", ".", "1.", "1e", "--1", "1 2", "NaN", "Infinity", "1e99", "9999999999999999999", "0x10", "١"]
)
def test_no_numbers(text: str) -> None:
    raw = np.frombuffer(text.encode() + b",", np.uint8)
    found = decimal_text.parse(raw, np.array([0]), np.array([len(raw) - 1]))
    assert found.bad[0] == (text != "1.")


def test_escaped_quotes_at_every_count(tmp_path: object) -> None:
    for count in range(6):
        key = "\\" * count + '"x'
        text = np.frombuffer(json.dumps([{key: [key]}, {"y": 1}]).encode(), np.uint8)
        _, found = elements(text, 0, len(text), "t")
        assert found.owner.tolist() == [0, 1]


def test_broken_text_names_its_byte() -> None:
    with pytest.raises(MalformedInput, match="t: broken at byte 110: no member"):
        split(np.frombuffer(b'{"a":1 "b":2}]', np.uint8), "t", 100)
