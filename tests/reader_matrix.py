"""Makes docs/readers.md: every reader against the corpus, what differs, and what to do about it.

    python tests/reader_matrix.py           write the page
    python tests/reader_matrix.py --check   write nothing; exit 1 where the page differs, versions aside

It needs every reader: run tests/clients/install.sh first. A difference that no text explains is an error, so that the
page never leaves one out.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import warnings
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import readers_js
import readers_python
import readers_spark
from readers_common import BUNDLES, Found
from readers_rewrite import WRITERS, rewrite
from trace_clients import folder

from wsformat.errors import NewerMinorWarning
from wsformat.seal import seal

PAGE = Path(__file__).parents[1] / "docs" / "readers.md"
TYPES = ("INT32", "INT64", "DOUBLE", "BOOLEAN", "STRING")
EXAMINE: dict[str, Callable[[], Found]] = {
    **{name: (lambda name=name: readers_python.examine(name)) for name in readers_python.READERS},
    "Spark": readers_spark.examine,
    **{name: (lambda name=name: readers_js.examine(name)) for name in readers_js.READERS},
}
PYTHON_PACKAGES = ("pyarrow", "pandas", "polars", "duckdb", "fastparquet", "datafusion", "pyspark")
NODE_PACKAGES = ("hyparquet", "hyparquet-compressors", "parquet-wasm", "apache-arrow")

# What a reader does differently, by a test of what was found: (how it shows, what to do).
EXPLAINED: list[tuple[Callable[[Found], bool], str, str]] = [
    (
        lambda found: "nan" in found.nulls.get("DOUBLE", set()),
        "A null DOUBLE comes as NaN.",
        "A file of the standard holds no NaN (R-5.10), so every NaN is a null: ask with `isna()`.",
    ),
    (
        lambda found: "nan" in found.nulls.get("STRING", set()),
        "A null STRING comes as NaN.",
        "Ask with `isna()`; `''` is a text, not a null.",
    ),
    (
        lambda found: len(found.types["INT64"] | found.types["INT32"]) > 2,
        "Integer and boolean columns come in nullable types of pandas in some files, in plain ones in others.",
        "No value differs. Cast where the type matters: these columns hold no nulls (R-5.6).",
    ),
    (
        lambda found: found.types["STRING"] == {"object or str"},
        "Text comes in two types.",
        "No value differs. Cast with `astype(str)` where the type matters; mind nulls.",
    ),
    (
        lambda found: bool(found.types["INT32"] & {"number"}) or "Utf8" in found.types["STRING"],
        "INT64 comes as BigInt.",
        "Subtract ticks as BigInt, then `Number(...)`: a tick alone may exceed 2^53 (R-7.19).",
    ),
    (
        lambda found: bool(found.wrong),
        "**Wrong values, without an error**, where INT64 is DELTA_BINARY_PACKED, neighbours differ by 2^28 or more and "
        "so a block needs more than 28 bits, in data pages of version 1 as well: {wrong}.",
        "Do not read times with it: anchors, and stamps of launches or SMs that lie far apart, are hit. pandas reads "
        "with pyarrow by default. Whoever must: compare column digests (chapter 18), which catch it.",
    ),
    (
        lambda found: found.v2 == "wrong values, no error",
        "Wrong values, without an error, for INT64 in DELTA_BINARY_PACKED in data pages of version 2.",
        "The standard forbids this encoding (R-17.6); files that another tool rewrote may have it: `wsformat seal`.",
    ),
]


def differences(found: Found) -> list[tuple[str, str]]:
    """What to say of a reader.

    Raises:
        LookupError: something differs that no text explains.
    """
    told = [
        (how.format(wrong=", ".join(f"`{w}`" for w in found.wrong)), what)
        for test, how, what in EXPLAINED
        if test(found)
    ]
    unexplained = found.different + [w for w in found.wrong if not re.fullmatch(r"\w+\.\w+\.t\w*", w)]
    many = {kind: names for kind, names in found.types.items() if len(names) > 1} and len(told) == 0
    if unexplained or many or found.v2 == "error":
        raise LookupError(f"differs, and nothing explains it: {unexplained or found.types or found.v2}")
    return told


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def listed(names: set[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names)) or "-"


def rewritten() -> list[list[str]]:
    """For each writer: what sealing had to put back, over the corpus."""
    rows = []
    for writer in WRITERS:
        notes: set[str] = set()
        for bundle in BUNDLES:
            with tempfile.TemporaryDirectory() as place, warnings.catch_warnings():
                warnings.simplefilter("ignore", NewerMinorWarning)
                rewrite(writer, bundle, Path(place) / "a.wsformat")
                sealed = seal(Path(place) / "a.wsformat", Path(place) / "b.wsformat")
            notes |= {re.sub(r"^\w+(\.\w+)?: ", "", note) for note in sealed.notes}
        rows.append(
            [writer, "conforms, every value equal", "; ".join(sorted(notes)) or "hashes, digests and layout only"]
        )
    return rows


def installed(package: str) -> bool:
    return find_spec(package) is not None


def versions() -> str:
    python = [f"{name} {version(name)}" for name in PYTHON_PACKAGES]
    node = [
        f"{name} {json.loads((folder() / 'node_modules' / name / 'package.json').read_text())['version']}"
        for name in NODE_PACKAGES
    ]
    return f"Made with {', '.join(python + node)}.\n"


def page(results: dict[str, Found]) -> str:
    summary, types, differs = [], [], []
    for name, found in results.items():
        told = differences(found)
        columns = f"all but {len(found.wrong)}" if found.wrong else "all"
        asked = {"views": "all derived views, from the SQL of the standard unchanged", "aggregates": "three aggregates"}
        equal = "**differ**" if found.different else "equal"
        summary.append([name, columns, equal, asked[found.asked], found.v2])
        nulls = [listed(found.nulls.get(kind, set())) for kind in ("DOUBLE", "STRING")]
        types.append([name, *(listed(found.types[kind]) for kind in TYPES), *nulls])
        differs += [[name, how, what] for how, what in told]
    exact = [name for name, found in results.items() if not differences(found)]
    return f"""# Readers

Made by `python tests/reader_matrix.py` from every bundle of `conformance/valid` and `conformance/samples`; do not edit.
`make test-clients` makes it anew and compares.

{versions()}
## What was read

Every column is compared by a digest that does not depend on the order of rows: count, sum and exclusive or of the
values (chapter 18 of the standard; a DOUBLE counts as its 64 bits, a text as 64 bits of its SHA-256), and the number
of nulls. Readers with SQL compute every view of `schema/views/` over the samples, with the files of the standard
unchanged, and the rows are compared with the library's: `role_state`, `wait_summary` and `overlap` are among them.
Readers without SQL give three aggregates: stamps of each kind with their first and last tick, ticks of each kind of
span paired by (lane, iteration), and lanes and records of each role. The last column is INT64 in DELTA_BINARY_PACKED
in data pages of version 2, which the standard forbids; what a reader makes of it is the reason.

{table(["reader", "columns as stated", "queries", "what was asked", "forbidden encoding"], summary)}
Spark runs in local mode with ANSI SQL on, over the samples `cute_pipeline`, `gemm_balanced`,
`gemm_cluster` and `gemm_perturbation`.

## Types

What each reader calls the five types, and how it shows a null.

{table(["reader", *TYPES, "null DOUBLE", "null STRING"], types)}
## What differs, and what to do

{table(["reader", "what", "what to do"], differs)}
Nothing differs in {", ".join(exact)}.

Open a table by the path of its file: pandas, pyarrow and Polars fail on a directory that holds `manifest.json` beside
Parquet files.

## Rewriting

Each tool read and wrote every table of every bundle as it does by default; then `wsformat seal`. Hashes, digests and
the physical layout are always made anew.

{table(["writer", "after `wsformat seal`", "what was put back besides"], rewritten())}"""


def without_versions(text: str) -> str:
    return re.sub(r"^Made with .*$", "", text, flags=re.MULTILINE)


def main(arguments: list[str]) -> int:
    text = page({name: examine() for name, examine in EXAMINE.items()})
    if "--check" not in arguments:
        PAGE.write_text(text)
        return 0
    old = PAGE.read_text() if PAGE.exists() else ""
    same = without_versions(old) == without_versions(text)
    print(f"{PAGE.name} is {'up to date' if same else 'out of date: python tests/reader_matrix.py'}")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
