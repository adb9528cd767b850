"""Every name of the API reference says what it takes, in which shape and unit, and how it fails."""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.sources
ROOT = Path(__file__).parents[1]
FOLDERS = {"wsformat.converters": "converters", "wsformat.kernels": "kernels", "wsformat.viewers": "viewers"}
ARRAYS = re.compile(r"\b(?:ndarray|Array|NDArray)\b")
SHAPE = re.compile(r"\[[^\]]*\]|\bone (?:a|an|for each)\b|\bshape\b|\bas long as\b", re.IGNORECASE)
UNITS = {
    "seconds": r"second", "timeout_s": r"second|timeout", "retention": r"second", "_ns": r"\bns\b|nanosecond",
    "width": r"pixel|px|character", "max_bytes": r"byte", "memory_limit": r"GB|byte",
}  # fmt: skip


def reference() -> dict[str, tuple[str, ...]]:
    spec = importlib.util.spec_from_file_location("make_site", ROOT / "docs" / "make_site.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: dict[str, tuple[str, ...]] = module.API
    return found


def source(name: str) -> tuple[Path, list[str]]:
    """The file of a dotted name, and what of the name lies inside it."""
    for package, folder in FOLDERS.items():
        if name.startswith(package + "."):
            name = folder + name.removeprefix(package)
    parts = name.split(".")
    for depth in range(len(parts), 0, -1):
        stem = ROOT.joinpath(*parts[:depth])
        for path in (stem.with_suffix(".py"), stem / "__init__.py"):
            if path.is_file():
                return path, parts[depth:]
    raise AssertionError(f"{name}: no such module")


def followed(path: Path, inside: list[str]) -> tuple[Path, list[ast.stmt]]:
    """The statements that a name stands for; a name that a package only passes on is looked up where it is defined."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    for name in inside:
        for node in body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
                return path, [node]
            if isinstance(node, ast.ImportFrom) and name in [alias.asname or alias.name for alias in node.names]:
                return followed(*source(f"{node.module}.{name}"))
        raise AssertionError(f"{path}: no {name}")
    return path, body


def functions() -> Iterator[tuple[str, ast.FunctionDef, str]]:
    """Functions and methods: a name for people, the function, and the docstring of its class."""
    for names in reference().values():
        for name in names:
            _, body = followed(*source(name))
            for node in body:
                if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                    yield name if name.endswith(node.name) else f"{name}.{node.name}", node, ""
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    about = ast.get_docstring(node) or ""
                    assert about, name
                    for method in node.body:
                        public = isinstance(method, ast.FunctionDef) and not method.name.startswith("_")
                        if public or (isinstance(method, ast.FunctionDef) and method.name == "__init__"):
                            yield f"{name}.{method.name}", method, about


ALL = list(functions())


@pytest.mark.parametrize(("name", "function", "about"), ALL, ids=[name for name, *_ in ALL])
def test_docstring(name: str, function: ast.FunctionDef, about: str) -> None:
    doc = ast.get_docstring(function) or ""
    text = f"{doc}\n{about}" if function.name == "__init__" else doc
    assert text, "no docstring"
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    given = {a.arg: a for a in arguments if a.arg not in ("self", "cls")}
    if len(given) > 1:
        assert [a for a in given if not re.search(rf"\b{a}\b", text)] == [], "arguments that the text does not name"
    for argument, node in given.items():
        if node.annotation is not None and ARRAYS.search(ast.unparse(node.annotation)):
            assert SHAPE.search(text), f"{argument}: an array without its shape"
        for ending, unit in UNITS.items():
            if argument.endswith(ending):
                assert re.search(unit, text, re.IGNORECASE), f"{argument}: no unit"
    if function.returns is not None and ARRAYS.search(ast.unparse(function.returns)):
        assert SHAPE.search(text), "gives an array without its shape"
    raised = {
        node.exc.func.id
        for node in ast.walk(function)
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and isinstance(node.exc.func, ast.Name)
    }
    assert {error for error in raised if error not in text} == set(), "errors that the text does not name"


def test_the_reference_has_what_the_commands_call() -> None:
    assert len(ALL) > 80
    listed = {name.rsplit(".", 1)[-1] for names in reference().values() for name in names}
    assert {"timeline", "draw", "report", "diff", "digest", "reconcile", "Lake", "Stamps", "import_files"} <= listed
