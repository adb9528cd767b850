"""The formulas of budget files: what they compute, and that nothing else gets through."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsformat.errors import MalformedInput
from wsformat.expressions import LARGEST, evaluate

SYMBOLS = {"M": 128.0, "N": 64.0, "dtype": "bf16", "zero": 0.0}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2*M*N", 16384), ("M / 3 * 3", 128), ("M // 3", 42), ("M % 3", 2), ("2**10", 1024), ("-M + +N", -64),
        ("max(M, N, 200)", 200), ("min(M, N)", 64), ("ceil(M / 3)", 43), ("floor(M/3)", 42), ("sqrt(N)", 8),
        ("log2(M)", 7), ("abs(-M)", 128), ("bytes(dtype) * M", 256), ("bytes('nvfp4')", 0.5),
        ("1 if M > N else 2", 1), ("1 if dtype == 'fp8' else 2", 2), ("1 if dtype != 'fp8' else 2", 1),
        ("1e3", 1000), ("512", 512), ("  M ", 128),
    ],
)  # fmt: skip
def test_values(text: str, value: float) -> None:
    assert evaluate(text, SYMBOLS, "here") == value


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is no formula"), ("M +", "is no formula"), ("M; N", "is no formula"), ("K", "no symbol 'K'"),
        ("M / zero", "division"), ("M % zero", "modulo"), ("log2(zero)", "math domain"), ("sqrt(-M)", "math domain"),
        ("M ** M", "exponent within"), ("(-M) ** 0.5", "base of at least 0"), ("1e300 * 1e300", "is not between"),
        ("9" * 400, "too large|is not between"), ("2.0**64 * 2.0**64", "is not between"), ("dtype", "is text"),
        ("M < N", "Compare is no part"), ("1 if M else 2", "one comparison"),
        ("1 if 1 < M < 3 else 2", "one comparison"),
        ("1 if dtype < 'x' else 2", "numbers compare"), ("bytes(M)", "takes a dtype"), ("bytes('bf61')", "no dtype"),
        ("bytes()", "one dtype"), ("max(M)", "two numbers"), ("ceil(M, N)", "one number"), ("max(*M)", "functions are"),
        ("max(M, N, key=M)", "functions are"), ("True", "is no number"), ("None", "is no number"),
        ("1j", "is no number"),
        ("b'x'", "is no number"), ("...", "is no number"), ("'text'", "is text"),
        ("__import__('os').system('true')", "functions are"), ("M.__class__", "Attribute is no part"),
        ("(lambda: 1)()", "functions are"), ("[M for M in (1, 2)]", "ListComp is no part"),
        ("M if (N := 2) else 1", "one"),
        ("M[0]", "Subscript is no part"), ("f'{M}'", "JoinedStr is no part"), ("open('x')", "functions are"),
        ("eval('1')", "functions are"), ("not M", "UnaryOp is no part"), ("~M", "UnaryOp is no part"),
        ("M << 3", "BinOp is no part"), ("M @ N", "BinOp is no part"), ("await M", "Await|is no formula"),
        ("+".join(["1"] * 400), "more than 300 parts"), ("-" * 60 + "1", "nested deeper"),
        ("(" * 300 + "1", "no formula"),
        ("-" * 900 + "1", "nested|parts|no formula"), ("1" + " " * 2000, "longer than"), ("\0", "is no formula"),
    ],
)  # fmt: skip
def test_everything_else_is_refused_with_its_place(text: str, says: str) -> None:
    with pytest.raises(MalformedInput, match=says) as failure:
        evaluate(text, SYMBOLS, "budget.json: resources/0")
    assert str(failure.value).startswith("budget.json: resources/0: ")


numbers = st.sampled_from(["0", "1", "2.5", "M", "N", "1e9", "zero"])


def deeper(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "//", "%", "**"]), inner).map(
            lambda p: f"({' '.join(p)})"
        ),
        st.tuples(st.sampled_from(["min", "max"]), inner, inner).map(lambda p: f"{p[0]}({p[1]}, {p[2]})"),
        st.tuples(st.sampled_from(["ceil", "abs", "-"]), inner).map(lambda p: f"{p[0]}({p[1]})"),
    )


@settings(max_examples=150, deadline=None)
@given(st.recursive(numbers, deeper, max_leaves=12))
def test_agrees_with_python_or_refuses(text: str) -> None:
    names = {"M": 128.0, "N": 64.0, "zero": 0.0, "min": min, "max": max, "ceil": math.ceil, "abs": abs}
    try:
        found = evaluate(text, SYMBOLS, "here")
    except MalformedInput:
        return
    assert found == pytest.approx(eval(text, {"__builtins__": {}}, names), rel=1e-12)
    assert abs(found) <= LARGEST


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60))
def test_any_text_gives_a_number_or_a_clear_refusal(text: str) -> None:
    try:
        value = evaluate(text, SYMBOLS, "here")
    except MalformedInput:
        return
    assert isinstance(value, float)
