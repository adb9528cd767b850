"""Every answer in docs/cookbook.md is what its question gives, and the page cannot go stale unseen."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.sources
PAGE = Path(__file__).parents[1] / "docs" / "cookbook.md"


@pytest.fixture
def maker(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(PAGE.parent))
    return importlib.import_module("make_cookbook")


def test_the_answers_are_those_of_the_queries(maker: ModuleType) -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert maker.answered(text) == text, "run `python docs/make_cookbook.py`"


def test_a_wrong_answer_would_be_replaced(maker: ModuleType) -> None:
    start = PAGE.read_text(encoding="utf-8").split("### 2.")[0]
    assert maker.answered(start.replace("| consumer0 | 51851 |", "| consumer0 | 51852 |")) == start


def test_there_are_twenty_questions_and_each_has_an_answer(maker: ModuleType) -> None:
    found = list(maker.QUESTION.finditer(PAGE.read_text(encoding="utf-8")))
    assert sum(q["language"] == "sql" for q in found) == 20
    assert [q["code"] for q in found if not q["answer"] or q["answer"] == "\nNo rows.\n"] == []
