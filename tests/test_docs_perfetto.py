"""The queries of docs/perfetto.md give the answers that stand below them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from trace_clients import ENGINES, query
from trace_truth import samples

from wsformat.converters import perfetto

pytestmark = [pytest.mark.client, pytest.mark.sources]
DOCUMENT = Path(__file__).parent.parent / "docs" / "perfetto.md"


@pytest.mark.parametrize("version", ENGINES)
def test_queries_give_what_is_printed(version: str, tmp_path: Path) -> None:
    found = re.findall(r"```sql\n(.*?)```\n\n((?:\|[^\n]*\n)+)", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    assert len(found) == 4
    perfetto.write(samples()["slowproducer_r0"], tmp_path / "x.pftrace", {})
    answers = query(tmp_path / "x.pftrace", *[sql for sql, _ in found], version=version)
    for (_, printed), rows in zip(found, answers, strict=True):
        header, _, *lines = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in printed.splitlines()]
        assert [header, *lines] == [list(rows[0]), *[[str(value) for value in row.values()] for row in rows]]
