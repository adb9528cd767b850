"""Builds the documentation site: `python docs/make_site.py [-o FOLDER]`. No network; a broken link is an error.

The pages live where people look for them in the checkout: README.md, spec.md, docs/, conformance/. They are gathered
under ``build/pages`` with the same paths, so that their links hold; what they link to that is no page is copied
beside them. Reference pages come from ``schema/`` and from the docstrings.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "build" / "pages"
PACKAGE = ROOT / "build" / "package" / "wsformat"
SOURCES = ("README.md", "spec.md", "CONTRIBUTING.md", "CHANGELOG.md", "conformance/README.md")
LINK = re.compile(r"(!?\[[^\]]*\]\()([^)\s#]+)(#[^)\s]*)?(\))")
ROLE = re.compile(r":(?:meth|func|class|mod|attr|data):`~?([^`]+)`")
"""Cross references of another markup in docstrings; they read as plain code here."""
API = {
    "Bundles": ("wsformat.bundle.Bundle", "wsformat.errors"),
    "Checking": (
        "wsformat.validate.validate",
        "wsformat.validate.Report",
        "wsformat.seal.seal",
        "wsformat.upgrade.upgrade",
    ),
    "Views": ("wsformat.derive", "wsformat.critical_path.critical_path"),
    "Import": ("wsformat.converters.registry.import_files", "wsformat.rolespec"),
    "Predict and reconcile": (
        "wsformat.hardware",
        "wsformat.budget",
        "wsformat.prediction",
        "wsformat.viewers.reconcile.reconcile",
        "wsformat.viewers.digest.digest",
    ),
    "Pictures, report, comparison": (
        "wsformat.viewers.timeline.timeline",
        "wsformat.viewers.figures.draw",
        "wsformat.viewers.report.report",
        "wsformat.viewers.diff.diff",
    ),
    "Export": (
        "wsformat.converters.perfetto.write",
        "wsformat.converters.chrome.write",
        "wsformat.converters.skill_npz.write",
    ),
    "Keeping bundles": (
        "wsformat.merge.merge",
        "wsformat.archive.zip_bundle",
        "wsformat.archive.unzip_bundle",
        "wsformat.lake.Lake",
    ),
    "Recording": (
        "wsformat.kernels.recorder.Recorder",
        "wsformat.kernels.recording.Recording",
        "wsformat.kernels.decode.to_bundle",
        "wsformat.kernels.cute_stamp.Settings",
        "wsformat.kernels.cute_stamp.Stamps",
    ),
}


def gather() -> None:
    """Every page under build/pages, with what it links to."""
    for folder in (PAGES, PACKAGE.parent):
        shutil.rmtree(folder, ignore_errors=True)
    # Docstrings are read from files, not by importing; the layers must lie where an install puts them.
    shutil.copytree(ROOT / "wsformat", PACKAGE, ignore=shutil.ignore_patterns("__pycache__"))
    for layer in ("converters", "kernels", "viewers"):
        shutil.copytree(ROOT / layer, PACKAGE / layer, ignore=shutil.ignore_patterns("__pycache__"))
    for module in PACKAGE.rglob("*.py"):
        text = module.read_text(encoding="utf-8")
        module.write_text(ROLE.sub(r"`\1`", text), encoding="utf-8")
    markdown = [ROOT / name for name in SOURCES]
    markdown += [p for p in sorted((ROOT / "docs").rglob("*.md")) if ".template" not in p.name]
    pages = {p.resolve() for p in markdown}
    for source in markdown:
        text = LINK.sub(lambda found, at=source: _link(found, at, pages), source.read_text(encoding="utf-8"))
        _write(
            "index.md" if source.name == "README.md" and source.parent == ROOT else str(source.relative_to(ROOT)), text
        )
    for name, text in reference().items():
        _write(f"reference/{name}.md", text)


def _link(found: re.Match[str], page: Path, pages: set[Path]) -> str:
    """A link as the site needs it: pages stay, other files are copied, folders lead to their list of files."""
    opening, target, anchor, closing = found[1], found[2], found[3] or "", found[4]
    if "://" in target or target.startswith("mailto:"):
        return found[0]
    path = (page.parent / target).resolve()
    if path == ROOT / "README.md":
        path = ROOT / "index.md"
    elif path.is_dir() and (path / "README.md") in pages:
        path = path / "README.md"
    elif path.is_dir():
        path, anchor = ROOT / "reference" / "files.md", f"#{path.relative_to(ROOT).as_posix().replace('/', '')}"
    elif path not in pages and path.is_file():
        copy = PAGES / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    return f"{opening}{os.path.relpath(path, page.parent)}{anchor}{closing}"


def _write(name: str, text: str) -> None:
    target = PAGES / name
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")


def reference() -> dict[str, str]:
    """Pages made from the sources of facts, by name."""
    from wsformat import spec_parts
    from wsformat.tables import tables

    linked = "(#vocabulary-", "(../spec.md#vocabulary-"
    parts = [f"## {name}\n\n{spec_parts.table_part(name)}".replace(*linked) for name in tables()]
    return {
        "tables": f"# Tables\n\n{spec_parts.tables_part('')}\n" + "\n".join(parts),
        "views": "# Derived views\n\n" + spec_parts.views_part("").replace("#### View", "## View"),
        "rules": "# Rules of the validator\n\n" + spec_parts.rules_part(""),
        "hardware": "\n".join(hardware()),
        "api": "\n".join(api()),
        "files": "\n".join(files()),
    }


def hardware() -> Iterator[str]:
    """Every GPU with its figures, their confidence and their sources."""
    from wsformat.hardware import gpus, quantities, sources

    yield "# Hardware\n\nRates are dense, per SM and cycle. `wsformat hardware GPU` shows one; `predict` computes.\n"
    for gpu in gpus().values():
        yield f"## {gpu.key}\n\n{gpu.name}: {gpu.chip}, {gpu.arch}, {gpu.form_factor}\n"
        yield "| quantity | value | unit | confidence | source | meaning |\n| --- | ---: | --- | --- | --- | --- |"
        for name, value in gpu.values.items():
            said = value.formula or value.absence if value.value is None else f"{value.value:,.10g}"
            cells = [name, said, value.unit, value.confidence, ", ".join(value.source), quantities()[name]["meaning"]]
            yield "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"
        yield ""
    yield "## Sources\n"
    for key, source in sources().items():
        yield f"* {key}: {source['title']} ({source['kind']}){' ' + source['url'] if source['url'] else ''}"


def api() -> Iterator[str]:
    """What programs may call, from the docstrings."""
    yield "# Python API\n\nWhat is not here may change without notice. Errors are a tree below `WsformatError`.\n"
    for heading, names in API.items():
        yield f"## {heading}\n"
        yield from (f"::: {name}\n" for name in names)


def files() -> Iterator[str]:
    """The files of folders that pages link to, copied beside them."""
    yield "# Files of the standard\n"
    for folder, pattern in {"schema": "*.json", "schema/generated": "*", "schema/views": "*.sql"}.items():
        yield f"## {folder}\n"
        for path in sorted((ROOT / folder).glob(pattern)):
            if path.is_file() and path.suffix != ".py":
                copy = PAGES / path.relative_to(ROOT)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, copy)
                yield f"* [{path.name}](../{path.relative_to(ROOT).as_posix()})"
        yield ""


def main(arguments: list[str]) -> int:
    """Gather and build; the exit status of the builder, which is not 0 when a link leads nowhere."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("-o", "--output", default=str(ROOT / "site"), help="where to put the site")
    chosen = parser.parse_args(arguments)
    gather()
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--clean", "--site-dir"]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run([*command, os.path.abspath(chosen.output)], cwd=ROOT, check=False, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
