"""The small, safe expression language of budget files: arithmetic on named numbers, nothing else.

    2 * M * N * K            max(M, 128) / 8            bytes(dtype) * tile            M if stages > 2 else M / 2

Numbers, names, ``+ - * / // % **``, comparisons, ``a if test else b``, and the functions of :data:`FUNCTIONS`. Names of
text symbols (a dtype) may be compared and given to ``bytes``. Python's own parser reads the text; this module walks
the tree and computes every node it knows itself, so nothing of Python can be reached. Length, depth, size of values
and exponents are bounded.
"""

from __future__ import annotations

import ast
import math
import operator
import warnings
from collections.abc import Callable, Mapping
from typing import TypeAlias

from wsformat.errors import BadRequest, MalformedInput
from wsformat.hardware import element_bytes

Number: TypeAlias = float
Symbol: TypeAlias = float | str

MOST_CHARACTERS = 1000
MOST_NODES = 300
MOST_DEPTH = 40
MOST_EXPONENT = 64.0
LARGEST = 1e18

OPERATORS: dict[type[ast.AST], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
COMPARISONS: dict[type[ast.AST], Callable[[float, float], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
FUNCTIONS = ("min", "max", "ceil", "floor", "abs", "sqrt", "log2", "bytes")
"""``bytes(dtype)`` is the size of one element in bytes; the others are what they are in Python."""


def evaluate(text: str, symbols: Mapping[str, Symbol], place: str) -> float:
    """The value of an expression.

    Args:
        text: the expression.
        symbols: numbers and texts by name.
        place: where it stands, for messages.

    Raises:
        MalformedInput: no expression of this language, a name that is not there, or a value that is no finite number
            of reasonable size.
    """
    return _Walk(symbols, place, text).number(_parse(text, place))


def _parse(text: str, place: str) -> ast.expr:
    if len(text) > MOST_CHARACTERS:
        raise MalformedInput(f"{place}: the formula is longer than {MOST_CHARACTERS} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        reason = error.msg if isinstance(error, SyntaxError) and error.msg else "it cannot be read"
        raise MalformedInput(f"{place}: {_short(text)} is no formula: {reason}") from error
    if sum(1 for _ in ast.walk(tree)) > MOST_NODES:
        raise MalformedInput(f"{place}: the formula has more than {MOST_NODES} parts")
    return tree.body


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "…")


class _Walk:
    """One walk over one formula."""

    def __init__(self, symbols: Mapping[str, Symbol], place: str, text: str) -> None:
        self.symbols, self.place, self.text, self.depth = symbols, place, text, 0

    def fail(self, reason: str) -> MalformedInput:
        return MalformedInput(f"{self.place}: {_short(self.text)}: {reason}", "See docs/reconcile.md for the formulas.")

    def number(self, node: ast.expr) -> float:
        value = self.value(node)
        if isinstance(value, str):
            raise self.fail(f"{value!r} is text where a number is needed")
        return value

    def value(self, node: ast.expr) -> Symbol:
        self.depth += 1
        if self.depth > MOST_DEPTH:
            raise self.fail(f"it is nested deeper than {MOST_DEPTH}")
        try:
            found = self._of(node)
        except (ArithmeticError, ValueError) as error:
            if isinstance(error, MalformedInput):
                raise
            raise self.fail(str(error)) from error
        finally:
            self.depth -= 1
        if isinstance(found, float) and not abs(found) <= LARGEST:
            raise self.fail(f"a value is not between -{LARGEST:g} and {LARGEST:g}")
        return found

    def _of(self, node: ast.expr) -> Symbol:
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str):
                return node.value
            if type(node.value) in (int, float):
                return float(node.value)  # type: ignore[arg-type]
            raise self.fail(f"{node.value!r} is no number")
        if isinstance(node, ast.Name):
            if node.id not in self.symbols:
                raise self.fail(f"no symbol {node.id!r}; there are {', '.join(sorted(self.symbols)) or 'none'}")
            known = self.symbols[node.id]
            return known if isinstance(known, str) else float(known)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
            inner = self.number(node.operand)
            return -inner if isinstance(node.op, ast.USub) else inner
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            return self._arithmetic(node)
        if isinstance(node, ast.IfExp):
            return self.value(node.body) if self._test(node.test) else self.value(node.orelse)
        if isinstance(node, ast.Call):
            return self._call(node)
        raise self.fail(f"{type(node).__name__} is no part of a formula")

    def _arithmetic(self, node: ast.BinOp) -> float:
        left, right = self.number(node.left), self.number(node.right)
        if isinstance(node.op, ast.Pow) and (abs(right) > MOST_EXPONENT or left < 0):
            raise self.fail(f"a power needs a base of at least 0 and an exponent within {MOST_EXPONENT:g}")
        return float(OPERATORS[type(node.op)](left, right))

    def _test(self, node: ast.expr) -> bool:
        if not isinstance(node, ast.Compare) or len(node.ops) != 1:
            raise self.fail("a test is one comparison, such as M > 64 or dtype == 'fp8'")
        left, right = self.value(node.left), self.value(node.comparators[0])
        if isinstance(node.ops[0], (ast.Eq, ast.NotEq)):
            return (left == right) == isinstance(node.ops[0], ast.Eq)
        compare = COMPARISONS.get(type(node.ops[0]))
        if compare is None or isinstance(left, str) or isinstance(right, str):
            raise self.fail("numbers compare with < <= > >= == !=, texts with == and !=")
        return compare(left, right)

    def _call(self, node: ast.Call) -> float:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name not in FUNCTIONS or node.keywords or any(isinstance(a, ast.Starred) for a in node.args):
            raise self.fail(f"functions are {', '.join(FUNCTIONS)}")
        if name == "bytes":
            if len(node.args) != 1:
                raise self.fail("bytes takes one dtype")
            dtype = self.value(node.args[0])
            if not isinstance(dtype, str):
                raise self.fail("bytes takes a dtype, such as bytes(dtype)")
            try:
                return element_bytes(dtype)
            except BadRequest as error:
                raise self.fail(error.message) from error
        values = [self.number(argument) for argument in node.args]
        if name in ("min", "max") and len(values) >= 2:
            return min(values) if name == "min" else max(values)
        if name in ("min", "max") or len(values) != 1:
            raise self.fail(f"{name} takes {'two numbers or more' if name in ('min', 'max') else 'one number'}")
        functions: dict[str, Callable[[float], float]] = {
            "ceil": math.ceil, "floor": math.floor, "abs": abs, "sqrt": math.sqrt, "log2": math.log2,
        }  # fmt: skip
        return float(functions[name](values[0]))
