"""Fills in the answers of docs/cookbook.md: `python docs/make_cookbook.py`; `--check` only compares.

A question is a block of SQL or Python after a line `<!-- bundle: NAME -->`; its answer, a table or a block of text,
stands right below it and is replaced.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "cookbook.md"
QUESTION = re.compile(
    r"<!-- bundle: (?P<bundle>\w+) -->\n```(?P<language>sql|python)\n(?P<code>.*?)```\n"
    r"(?P<answer>\n(?:\|[^\n]*\n)+|\n```text\n.*?```\n|\nNo rows\.\n)?",
    re.DOTALL,
)


def bundles(folder: Path) -> Callable[[str], Path]:
    """Where each bundle of the page is; those of the demo are imported into the folder."""
    from make_reconcile import sample

    names = {"balanced": "balanced", "low_probe": "lowprobe", "slow_producer": "slowproducer"}
    made: dict[str, Path] = {}

    def path(name: str) -> Path:
        if name not in names:
            return next((ROOT / "conformance").glob(f"*/{name}.wsformat"))
        if name not in made:
            made[name] = sample(names[name], folder)
        return made[name]

    return path


def table(sql: str, bundle: Path) -> str:
    """The rows of a query as Markdown."""
    import wsformat

    rows = wsformat.open(bundle).sql(sql)
    if not rows.num_rows:
        return "\nNo rows.\n"
    lines = [rows.column_names, ["---" if _is_text(f.type) else "---:" for f in rows.schema]]
    lines += [[_cell(value) for value in row.values()] for row in rows.to_pylist()]
    return "\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _is_text(kind: Any) -> bool:
    return str(kind) in ("string", "large_string", "string_view")


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:g}" if isinstance(value, float) and abs(value) < 1e6 else str(value).replace("|", "\\|")


def printed(code: str, bundle: Path) -> str:
    """What a piece of Python prints."""
    out = StringIO()
    with redirect_stdout(out):
        exec(compile(code, "cookbook.md", "exec"), {"BUNDLE": str(bundle)})
    lines = [line.rstrip() for line in out.getvalue().rstrip().splitlines()]
    return "\n```text\n" + "\n".join(lines) + "\n```\n"


def answered(text: str) -> str:
    """The page with every answer computed."""
    with tempfile.TemporaryDirectory() as folder:
        where = bundles(Path(folder))

        def answer(found: re.Match[str]) -> str:
            code, bundle = found["code"], where(found["bundle"])
            given = table(code, bundle) if found["language"] == "sql" else printed(code, bundle)
            head = f"<!-- bundle: {found['bundle']} -->\n```{found['language']}\n{code}```\n"
            return head + given

        return QUESTION.sub(answer, text)


if __name__ == "__main__":
    from made_page import keep

    sys.exit(keep(PAGE, answered, sys.argv[1:]))
