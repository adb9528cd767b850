"""The documentation site builds offline with every link checked, and documents every command, view, rule and table."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from wsformat.converters import registry
from wsformat.derive import views
from wsformat.tables import read_schema_json, tables

pytestmark = pytest.mark.sources
ROOT = Path(__file__).parents[1]


def text(page: Path) -> str:
    """What a page shows."""
    return re.sub(r"<[^>]+>", " ", page.read_text(encoding="utf-8"))


def build(out: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--clean", "--site-dir", str(out)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


# One test, since all of it shares the folder build/.
def test_the_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    site = importlib.import_module("make_site")
    assert site.main(["-o", str(tmp_path / "site")]) == 0
    made = tmp_path / "site"

    # Nothing is fetched from elsewhere: no script, style, font or picture.
    for page in made.rglob("*.html"):
        source = page.read_text(encoding="utf-8")
        assert re.findall(r"<(?:script|img|iframe)[^>]+src=[\"']?(?:https?:)?//", source) == [], page
        assert re.findall(r"<link[^>]+(?:stylesheet|preconnect|icon)[^>]+href=[\"']?(?:https?:)?//", source) == [], page

    # Everything that has a name is documented.
    shown = text(made / "reference" / "rules.html")
    assert [r["code"] for r in read_schema_json("rules.json")["rules"] if r["code"] not in shown] == []
    shown = text(made / "reference" / "views.html")
    assert [name for name in views() if name not in shown] == []
    shown = text(made / "reference" / "tables.html")
    assert [c.name for t in tables().values() for c in t.columns if c.name not in shown] == []
    shown = text(made / "docs" / "interchange.html")
    assert [name for name in (*registry.READERS, *registry.WRITERS) if name not in shown] == []
    headings = set(re.findall(r"<h2 id=\"([^\"]+)\"", (made / "docs" / "cli.html").read_text(encoding="utf-8")))
    help_text = json.loads(
        subprocess.run([sys.executable, "-c", COMMANDS], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    )
    assert [name for name in help_text if name.replace(" ", "-") not in headings] == []
    assert "from_tables" in text(made / "reference" / "api.html")
    assert ":meth:" not in text(made / "reference" / "api.html")

    # A page of docs/ that the navigation forgot, and a link to nowhere, stop the build.
    index = site.PAGES / "index.md"
    index.write_text(index.read_text(encoding="utf-8") + "\n[gone](docs/gone.md)\n", encoding="utf-8")
    done = build(tmp_path / "broken")
    assert done.returncode != 0
    assert "docs/gone.md" in done.stderr


COMMANDS = """
import json
from typer.main import get_command
from wsformat.cli.docs import commands
from wsformat.cli.main import app
print(json.dumps([path for path, _ in commands(get_command(app), "wsformat")]))
"""
