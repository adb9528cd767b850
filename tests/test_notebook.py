"""The notebook runs, and every number in its text is in an output above it."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import report_case as case

from wsformat.bundle import Bundle
from wsformat.viewers.diff import diff
from wsformat.viewers.report import report

pytestmark = pytest.mark.sources
NOTEBOOK = Path(__file__).parent.parent / "docs" / "notebooks" / "loop.ipynb"
RUN = """
import sys, nbformat, nbclient
notebook = nbformat.read(sys.argv[1], as_version=4)
place = {"metadata": {"path": sys.argv[3]}}
nbclient.NotebookClient(notebook, timeout=900, kernel_name="python3", resources=place).execute()
for cell in notebook.cells:
    cell.metadata.pop("execution", None)
nbformat.write(notebook, sys.argv[2])
"""
NUMBER = re.compile(r"(?<![\w.,])[+-]?\d[\d,]*(?:\.\d+)?(?![\w])")


def outputs(cell: dict[str, Any]) -> str:
    """Everything that a cell printed or shows, as text."""
    found = []
    for output in cell.get("outputs", ()):
        assert output["output_type"] != "error", output
        found.append("".join(output.get("text", ())))
        data = output.get("data", {})
        found += ["".join(data[kind]) for kind in ("text/plain", "text/html") if kind in data]
    return "\n".join(found)


def drifted(notebook: dict[str, Any]) -> list[str]:
    """Numbers of the text that no output above them has; headings, code and links are no text."""
    seen, missing = "", []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            seen += "\n" + outputs(cell)
            continue
        text = re.sub(r"`[^`]*`|\]\([^)]*\)|^#.*$", " ", "".join(cell["source"]), flags=re.MULTILINE)
        there = set(NUMBER.findall(seen))
        for word in NUMBER.findall(text):
            plain = word.rstrip(",")
            if not {plain, plain.lstrip("+"), "+" + plain} & there:
                missing.append(plain)
    return missing


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    for name in ("nbclient", "nbformat", "ipykernel"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    folder = tmp_path_factory.mktemp("notebook")
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(NOTEBOOK), str(folder / "out.ipynb"), str(folder)],
        capture_output=True, text=True, check=False, timeout=1200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads((folder / "out.ipynb").read_text(encoding="utf-8"))
    return found


def test_every_number_in_the_text_is_in_an_output_above(executed: dict[str, Any]) -> None:
    assert drifted(executed) == []


def test_the_stored_outputs_are_what_it_gives(executed: dict[str, Any]) -> None:
    stored = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert drifted(stored) == []
    for old, new in zip(stored["cells"], executed["cells"], strict=True):
        assert plain(outputs(old)) == plain(outputs(new))


def plain(text: str) -> str:
    # A table's HTML depends on the version of pandas; its text too, in blanks only.
    return " ".join(re.sub(r"<style.*?</style>|<[^>]*>", " ", text, flags=re.DOTALL).split())


def test_a_number_that_drifts_is_found(executed: dict[str, Any]) -> None:
    changed = json.loads(json.dumps(executed))
    for cell in changed["cells"]:
        if cell["cell_type"] == "markdown" and "777.234375" in "".join(cell["source"]):
            cell["source"] = ["They did: 777.9 cycles with stamps, 511.9375 without."]
    assert drifted(changed) == ["777.9"]


def test_the_notebook_shows_pictures_and_tables(executed: dict[str, Any]) -> None:
    kinds = {
        kind for cell in executed["cells"] for output in cell.get("outputs", ()) for kind in output.get("data", {})
    }
    assert {"image/svg+xml", "text/html"} <= kinds


@pytest.mark.parametrize("name", ["stamped", "hostile", "empty", "merged"])
def test_reprs_are_short_escaped_and_useful(name: str) -> None:
    bundle = case.bundle(name)
    shown = bundle._repr_html_()
    assert len(shown) < 6_000
    assert "<script" not in shown
    assert "\u202e" not in shown
    if name == "stamped":
        assert "balanced_r0" in shown
        assert "roles 6" in shown
        assert "events," in shown  # a stream: only reading tells how many
    if name == "empty":
        assert "no captures" in shown
    document = report(bundle, pictures=False)
    assert "<script" not in document._repr_html_()
    assert len(document._repr_html_()) < 20_000
    assert len(repr(document)) < 500
    if name == "stamped":
        assert "consumer1 paces the kernel" in document._repr_html_()


def test_repr_of_a_comparison_is_its_verdict() -> None:
    made = diff(case.bundle("hostile"), case.bundle("hostile"))
    assert "<script" not in made._repr_html_()
    many = Bundle.from_tables({"captures": [{"capture_id": str(n), "label": f"c{n}"} for n in range(1000)]})
    assert "992 more captures" in many._repr_html_()
    assert len(many._repr_html_()) < 3_000
