"""The house: imports go one way only, and always by their full name."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGES = {
    "schema": "wsformat.schema",
    "wsformat": "wsformat",
    "converters": "wsformat.converters",
    "kernels": "wsformat.kernels",
    "viewers": "wsformat.viewers",
}
SIDES = {"wsformat.converters", "wsformat.kernels", "wsformat.viewers"}
OPTIONAL = {"altair", "vl_convert", "pandas", "polars", "cuda", "cutlass", "torch", "pyspark", "triton"}
ROOT = Path(__file__).parent.parent

pytestmark = pytest.mark.sources


def modules() -> list[Path]:
    return [path for folder in PACKAGES for path in sorted((ROOT / folder).rglob("*.py"))]


def layer(name: str) -> str:
    """The layer that a dotted module name belongs to."""
    if name == "wsformat.cli" or name.startswith("wsformat.cli.") or name == "wsformat.__main__":
        return "wsformat.cli"
    for side in (*SIDES, "wsformat.schema"):
        if name == side or name.startswith(side + "."):
            return side
    return "wsformat" if name == "wsformat" or name.startswith("wsformat.") else ""


def module_name(path: Path, root: Path = ROOT) -> str:
    folder, *rest = path.relative_to(root).with_suffix("").parts
    return ".".join([PACKAGES[folder], *[part for part in rest if part != "__init__"]])


def imports(path: Path) -> list[tuple[int, str]]:
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            found += [
                (node.lineno, f"{base}.{alias.name}" if node.module == "wsformat" else base) for alias in node.names
            ]
    return found


def faults(path: Path, root: Path = ROOT) -> list[str]:
    here = layer(module_name(path, root))
    found = []
    for line, name in imports(path):
        there = layer(name)
        if name.startswith("."):
            found.append(f"{path.name}:{line} relative import {name}")
        elif name.split(".")[0] in {"schema", "converters", "kernels", "viewers", "tests", "bench", "conformance"}:
            found.append(f"{path.name}:{line} bare import {name}: a second copy of the module would be made")
        elif there == "wsformat.cli" and here != "wsformat.cli":
            found.append(f"{path.name}:{line} {here} imports the command line")
        elif here in SIDES and there in SIDES - {here}:
            found.append(f"{path.name}:{line} {here} imports {there}")
        elif here == "wsformat" and there in SIDES:
            found.append(f"{path.name}:{line} the model imports {there}")
        elif here == "wsformat.schema" and there:
            found.append(f"{path.name}:{line} the schema imports {there}")
    return found


def test_imports_go_one_way() -> None:
    assert [fault for path in modules() for fault in faults(path)] == []


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("converters/x.py", "from wsformat.viewers import timeline"),
        ("viewers/x.py", "import wsformat.converters.registry"),
        ("wsformat/x.py", "from wsformat.converters import registry"),
        ("wsformat/x.py", "from wsformat import viewers"),
        ("viewers/x.py", "from wsformat.cli.main import main"),
        ("schema/x.py", "import wsformat.tables"),
        ("kernels/x.py", "import converters"),
        ("converters/x.py", "from . import registry"),
    ],
)
def test_planted_faults_are_caught(tmp_path: Path, file: str, text: str) -> None:
    path = tmp_path / file
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert len(faults(path, tmp_path)) == 1


def test_modules_stay_short() -> None:
    lengths = {str(p.relative_to(ROOT)): len(p.read_text(encoding="utf-8").splitlines()) for p in modules()}
    assert {name: n for name, n in lengths.items() if n > 420} == {}
    assert not [name for name in lengths if Path(name).name in {"utils.py", "util.py", "helpers.py", "misc.py"}]


def test_optional_packages_are_imported_only_where_they_are_used() -> None:
    """At module level only viewers may name a drawing package; everything else asks inside a function."""
    found = []
    for path in modules():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or ""]
                found += [f"{path.relative_to(ROOT)}: {n}" for n in names if n.split(".")[0] in OPTIONAL]
    allowed = ("viewers/timeline", "kernels/")
    assert [item for item in found if not item.startswith(allowed)] == []
