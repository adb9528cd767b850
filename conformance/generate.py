"""Makes the corpus: ``python conformance/generate.py`` writes it, ``--check`` compares it with what it makes.

Rows are compared, not bytes: another version of the Parquet library may write other bytes for the same rows. For
that reason ``--check`` leaves out sizes, hashes and the writer of the manifest, and compares the column digests.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bundles
import expected
import invalid_files
import invalid_rows
import pyarrow as pa
import pyarrow.parquet as pq
import sample_cases
import valid_cases

from wsformat.bundle import Bundle
from wsformat.errors import NewerMinorWarning
from wsformat.tables import format_version
from wsformat.validate import rules

HERE = Path(__file__).parent
PARTS = ("valid", "samples", "invalid")
REQUIREMENT = re.compile(r"^\*\*\[(R-\d+\.\d+)\]\*\* .*?\{([^{}]*)\}$", re.MULTILINE | re.DOTALL)


def clauses() -> dict[str, str]:
    """Requirement of ``spec.md`` that a code belongs to: the first one that cites it."""
    found: dict[str, str] = {}
    for block in re.split(r"\n\s*\n", (HERE.parent / "spec.md").read_text(encoding="utf-8")):
        match = REQUIREMENT.match(block.strip())
        for code in match[2].split(", ") if match else ():
            found.setdefault(code, match[1])  # type: ignore[index]
    return found


def valid(out: Path) -> None:
    for case in valid_cases.CASES:
        root = out / f"{case.name}.wsformat"
        case.make().write(root)
        if case.finish is not None:
            case.finish(root)
        held = expected.contents(Bundle.open(root))
        state(out / f"{case.name}.expected.json", case.name, case.about, case.findings, held)


def samples(out: Path) -> None:
    for case in sample_cases.CASES:
        root = out / f"{case.name}.wsformat"
        bundle = case.make().write(root)
        held = expected.contents(bundle, views=sample_cases.VIEWS)
        state(out / f"{case.name}.expected.json", case.name, case.about, case.findings, held)


def state(path: Path, name: str, about: str, findings: tuple[str, ...], held: dict[str, Any]) -> None:
    head = {"case": name, "about": about, "format_version": format_version(), "findings": list(findings)}
    path.write_text(expected.dumps({**head, **held}), encoding="utf-8")


def invalid(out: Path) -> None:
    where = clauses()
    listed = []
    cases: list[invalid_rows.RowCase | invalid_files.FileCase] = [*invalid_rows.CASES, *invalid_files.CASES]
    for case in cases:
        rule = rules()[case.code]
        # The rule about the name of the directory needs one that breaks it.
        name = f"{case.code}_{rule.word.lower()}" + ("" if case.code == "I113" else ".wsformat")
        root = out / name
        rows = case.base()
        if isinstance(case, invalid_rows.RowCase):
            case.change(rows)
            more = {} if case.sources is None else {"sources": case.sources}
            bundles.bundle(rows, **more).write(root)
        else:
            bundles.bundle(rows).write(root)
            case.damage(root)
        listed.append(
            {
                "case": name,
                "code": case.code,
                "word": rule.word,
                "mode": rule.mode,
                "clause": where.get(case.code, ""),
                "note": case.note,
            }
        )
    listed.sort(key=lambda entry: entry["code"][1:])
    text = ",\n".join("  " + json.dumps(entry, ensure_ascii=False) for entry in listed)
    (out / "manifest.json").write_text(f'{{\n "cases": [\n{text}\n ]\n}}\n', encoding="utf-8")


def build(out: Path) -> None:
    """Write the whole corpus into an empty directory."""
    for part, make in zip(PARTS, (valid, samples, invalid), strict=True):
        (out / part).mkdir(parents=True)
        make(out / part)


def describe(root: Path) -> dict[str, Any]:
    """What has to stay the same of a part of the corpus, by path."""
    found: dict[str, Any] = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.is_symlink():
            found[name] = ("link", str(path.readlink()))
        elif path.suffix in (".parquet", ".linked"):
            found[name] = _rows(path)
        elif path.is_file() and path.name == "manifest.json" and path.parent.suffix == ".wsformat":
            found[name] = _manifest(path)
        elif path.is_file():
            found[name] = path.read_text(encoding="utf-8")
    return found


def _rows(path: Path) -> Any:
    try:
        with pq.ParquetFile(path) as file:
            held = file.read()
            return [(f.name, str(f.type)) for f in held.schema], [column.to_pylist() for column in held.columns]
    except (OSError, pa.ArrowException):
        return "no Parquet"


def _manifest(path: Path) -> Any:
    text = path.read_text(encoding="utf-8")
    try:
        data = json.loads(text)
    except ValueError:
        return "no JSON"
    data.pop("writer", None)
    for entry in data.get("tables", {}).values():
        entry.pop("bytes", None)
        if entry.get("sha256", "").strip("0"):
            entry.pop("sha256", None)
    return data


def differences(here: Path, fresh: Path) -> Iterator[str]:
    """Paths that differ between two builds, with the reason."""
    mine, theirs = describe(here), describe(fresh)
    for name in sorted({*mine, *theirs}):
        if name not in mine or name not in theirs:
            yield f"{name}: only {'made' if name in theirs else 'there'}"
        elif mine[name] != theirs[name]:
            yield f"{name}: differs"


def golden() -> int:
    """Freeze a bundle with every table under the present version; one that is there is never touched."""
    out = HERE / "golden" / format_version()
    if out.exists():
        print(f"{out} is there already: a released version is never made anew")
        return 1
    out.mkdir(parents=True)
    bundle = bundles.bundle(bundles.every_table()).write(out / "every_table.wsformat")
    # Views may be mended later without a new format version; what a table holds may not.
    held = expected.contents(bundle, views=())
    about = f"every table, as written by the library when version {format_version()} was released"
    state(out / "every_table.expected.json", "every_table", about, (), held)
    return 0


def main(arguments: list[str]) -> int:
    warnings.simplefilter("ignore", NewerMinorWarning)
    if "--golden" in arguments:
        return golden()
    with tempfile.TemporaryDirectory() as scratch:
        build(Path(scratch))
        changed = [f"{part}/{line}" for part in PARTS for line in differences(HERE / part, Path(scratch) / part)]
        if "--check" in arguments:
            print("\n".join(changed) or "the corpus is as it is made")
            return 1 if changed else 0
        # Parts that did not change keep their bytes, so that a new Parquet library does not touch every file.
        for part in {line.split("/")[0] for line in changed}:
            for entry in {line.split("/")[1].split(":")[0] for line in changed if line.startswith(f"{part}/")}:
                _replace(HERE / part / entry, Path(scratch) / part / entry)
        print("\n".join(changed) or "nothing to do")
    return 0


def _replace(old: Path, new: Path) -> None:
    if old.is_dir() and not old.is_symlink():
        shutil.rmtree(old)
    else:
        old.unlink(missing_ok=True)
    old.parent.mkdir(parents=True, exist_ok=True)
    if new.is_dir():
        shutil.copytree(new, old, symlinks=True)
    elif new.exists():
        shutil.copy(new, old)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
