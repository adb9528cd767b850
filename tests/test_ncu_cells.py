"""Numbers and units of ncu, as properties."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsformat.converters.ncu.cells import read_cells
from wsformat.converters.ncu.frame import split_instances
from wsformat.converters.ncu.headers import classify
from wsformat.converters.ncu.numbers import REASONS, Convention, Numbers, parse, shapes
from wsformat.converters.ncu.segment import segment
from wsformat.converters.ncu.units import base_unit, extra_units, table
from wsformat.errors import BadRequest, MalformedInput

GROUPS = {"C": ("", "."), "en": (",", "."), "de": (".", ","), "fr": ("\u202f", ","), "space": (" ", ","),
          "ch": ("\u2019", "."), "apostrophe": ("'", "."), "fa": ("\u066c", "\u066b")}  # fmt: skip


def numbers(texts: list[str], where: str = "x") -> Numbers:
    shape = shapes(pa.array(texts, pa.string()))
    convention = Convention()
    convention.observe(shape)
    return parse(shape, convention.settle(where))


def printed(value: Decimal, locale: str) -> str:
    group, mark = GROUPS[locale]
    return f"{value:,}".replace(",", "\0").replace(".", mark).replace("\0", group)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(sorted(GROUPS)),
    st.lists(st.tuples(st.integers(-(10**15), 10**15), st.sampled_from([0, 2])), min_size=1, max_size=20),
)
def test_numbers_of_every_locale_come_back(locale: str, values: list[tuple[int, int]]) -> None:
    """The last two cells leave no doubt about the locale; without them some files have two readings."""
    exact = [Decimal(v).scaleb(-places) for v, places in [*values, (123_456_789, 2), (1_234_567_890, 2)]]
    found = numbers([printed(v, locale) for v in exact])
    assert (found.reason == 0).all()
    for text, value in zip(exact, found.value, strict=True):
        assert value == float(text)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 10**14), min_size=1, max_size=8), st.sampled_from(sorted(GROUPS)))
def test_whole_numbers_alone_are_never_read_as_fractions(values: list[int], locale: str) -> None:
    assert numbers([printed(Decimal(v), locale) for v in values]).value.tolist() == [float(v) for v in values]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=12), min_size=1, max_size=10))
def test_any_text_is_a_number_or_has_a_reason(texts: list[str]) -> None:
    try:
        found = numbers(texts)
    except MalformedInput:
        return
    assert (np.isfinite(found.value) == (found.reason == 0)).all()
    for text, reason in zip(texts, found.reason, strict=True):
        if text == "":
            assert REASONS[reason] == "empty"


@pytest.mark.parametrize(
    "text",
    ["", "abc", "1.2.3", "1,23,4", "1..2", "12,", ",5", "+-5", "1-2", "0-15", "0x10", "1 2", "2025.3.1", "1,2345.00",
     "1,234,56.7", "(1)", "NVIDIA H200", "1e999", "--5", "5-", "inf"],
)  # fmt: skip
def test_no_numbers(text: str) -> None:
    found = numbers(["1,234.50", text])
    assert found.reason[1] != 0
    assert math.isnan(found.value[1])


@pytest.mark.parametrize(
    ("text", "value"),
    [("-5", -5), ("+5", 5), ("-1,234.50", -1234.5), ("1e+06", 1e6), ("1.5e-05", 1.5e-5), ("0.123", 0.123), ("007", 7),
     ("18446744073709551616", 2.0**64), ("4096.000000", 4096), ("(!) 3.50", 3.5)],
)  # fmt: skip
def test_numbers(text: str, value: float) -> None:
    assert numbers(["1,234.50", text]).value[1] == value


def test_reasons() -> None:
    texts = ["n/a", "N/A", "nan", "-nan", "(!) nan", "nan(ind)", "no data", "-", "", "PolicySpread"]
    expected = ["n/a", "n/a", "nan", "nan", "nan", "nan", "no data", "n/a", "empty", "text"]
    assert [REASONS[r] for r in numbers(texts).reason] == expected


def test_the_convention_names_its_proof() -> None:
    convention = Convention()
    convention.observe(shapes(pa.array(["12", "1,234.50", "7,100"])))
    convention.observe(shapes(pa.array(["9,999,999"])))
    convention.settle("x")
    assert (convention.decimal, convention.group) == (".", ",")
    assert convention.seen["decimal", "."] == "1,234.50"


@given(st.sampled_from(sorted(table()["prefixes"])), st.sampled_from(sorted(table()["atoms"])))
def test_prefixes_are_decimal(prefix: str, atom: str) -> None:
    power = table()["prefixes"][prefix]
    base = table()["atoms"][atom]
    assert base_unit(prefix + atom, {}, "x") == (base, power)
    assert base_unit(f"{prefix}{atom}/us", {}, "x") == ("hz" if base == "cycle" else f"{base}/s", power + 6)


@pytest.mark.parametrize(
    ("unit", "base", "power"),
    [("", "", 0), ("ns", "ns", 0), ("usecond", "ns", 3), ("ms", "ns", 6), ("second", "ns", 9), ("Gbyte/s", "byte/s", 9),
     ("byte/second", "byte/s", 0), ("Ghz", "hz", 9), ("hz", "hz", 0), ("cycle/nsecond", "hz", 9),
     ("cycle/second", "hz", 0), ("Kbyte/block", "byte/block", 3), ("register/thread", "register/thread", 0),
     ("inst/cycle", "inst/cycle", 0), ("%", "%", 0), ("sector/ns", "sector/s", 9), ("branches", "branch", 0),
     ("%/register", "%/register", 0), ("byte/cycle", "byte/cycle", 0), ("%/Kbyte", "%/byte", 3)],
)  # fmt: skip
def test_units(unit: str, base: str, power: int) -> None:
    assert base_unit(unit, {}, "x") == (base, power)


@pytest.mark.parametrize("unit", ["furlong", "Xbyte", "byte/", "/s", "byte/s/s", "KKbyte", "Kns", " byte"])
def test_unknown_units_are_named(unit: str) -> None:
    with pytest.raises(MalformedInput, match="unknown unit") as caught:
        base_unit(unit, {}, "file.csv")
    assert repr(unit) in str(caught.value)
    assert "file.csv" in str(caught.value)


def test_extra_units() -> None:
    assert extra_units("a=byte*1e3; b/c=x ;") == {"a": ("byte", 3), "b/c": ("x", 0)}
    with pytest.raises(BadRequest):
        extra_units("nonsense")


HEADER = b'"ID","Kernel Name","Metric Name","Metric Unit","Metric Value","Rule Name","Rule Type"\n'


def _no_noise(line: int, text: bytes) -> None:
    raise AssertionError((line, text))


CELL = st.text(st.sampled_from('ab1,"\n ;.'), max_size=8)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 999), CELL, CELL, CELL), min_size=1, max_size=12), st.integers(0, 3))
def test_cells_are_those_of_the_csv_module(rows: list[tuple[int, str, str, str]], cut: int) -> None:
    """Quoted cells with delimiters, quotes and newlines; some rows short, as ncu's are."""
    import csv
    import io

    head = classify(HEADER)
    assert head is not None
    lines = []
    for number, *cells in rows:
        row = [str(number), *cells, "v", "", ""][: 7 - (cut if number % 2 else 0)]
        lines.append(",".join('"' + c.replace('"', '""') + '"' for c in row) + ("," if len(row) == 5 else "") + "\n")
    data = "".join(lines)
    expected = [row + [""] * (7 - len(row)) for row in csv.reader(io.StringIO(data))]
    (run,) = [r for r in segment(iter([HEADER, data.encode()]), _no_noise, "x") if r.data]
    codes, texts = read_cells(run.data, head, 2, "x", plain=run.plain)
    assert [[texts[int(c)].as_py() for c in row] for row in codes] == expected


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 99), CELL), min_size=1, max_size=10), st.integers(1, 40))
def test_segments_keep_every_record_whatever_the_blocks(rows: list[tuple[int, str]], size: int) -> None:
    header = b'"ID","Kernel Name","Metric Name","Metric Value"\n'
    records = b"".join(f'"{i}","{c.replace(chr(34), chr(34) * 2)}","sm__x","5"\n'.encode() for i, c in rows)
    lines = (b"noise\n" + header + records).splitlines(keepends=True)
    blocks = [b"".join(lines[i : i + size]) for i in range(0, len(lines), size)]
    noise: list[bytes] = []
    found = b"".join(run.data for run in segment(iter(blocks), lambda _, text: noise.append(text), "x"))
    assert found == records
    assert b"".join(noise) == b"noise\n"


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["", "12", "1,234.50", "text"]),
    st.lists(st.integers(0, 10**6).map(lambda v: f"{v:,}"), min_size=1, max_size=9),
)
def test_instance_cells_come_apart(total: str, items: list[str]) -> None:
    cell = f"{total} ({'; '.join(items)})" if total else f"({'; '.join(items)})"
    split = split_instances(pa.array(["7", cell], pa.string()))
    assert split.total.to_pylist() == ["7", total]
    begin, length = int(split.begin[1]), int(split.length[1])
    assert [split.values[int(i)].as_py() for i in split.value[begin : begin + length]] == items
    assert split.length[0] == 0
