"""Readers of JavaScript, run in Node by tests/clients/readers.js."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from readers_common import BUNDLES, V2, Column, Found, ask_plain, compare, contract, ordered, right
from readers_python import ASKED, V2_TRUTH
from trace_clients import folder, need

READERS = ("hyparquet", "parquet-wasm")
SCRIPT = Path(__file__).parent / "clients" / "readers.js"


def examine(name: str) -> Found:
    """What one of these readers makes of the corpus."""
    need(shutil.which("node") is not None, "Node")
    need((folder() / "node_modules" / name).is_dir(), name)
    paths = {(bundle, table): bundle / f"{table}.parquet" for bundle in BUNDLES for table in contract(bundle)}
    paths[V2, "events"] = V2 / "events.parquet"
    key = {of: f"{of[0].parent.name}/{of[0].stem}/{of[1]}" for of in paths}
    kinds = {key[of]: contract(V2_TRUTH if of[0] == V2 else of[0])[of[1]] for of in paths}
    asked = {b.stem: {t: key[b, t] for t in ASKED if (b, t) in key} for b in BUNDLES}
    request = {"files": {key[of]: str(path) for of, path in paths.items()}, "kinds": kinds, "ask": asked}
    answer = run(name, request)
    found = Found()
    for (bundle, table), of in key.items():
        columns = answer["tables"][of]
        if bundle == V2:
            found.v2 = judged(columns)
        elif "error" in columns:
            found.wrong.append(f"{bundle.stem}.{table}: {columns['error']}")
        else:
            take(found, bundle, table, columns)
    said = answer["answers"]
    ask_plain(
        found, BUNDLES, lambda bundle: {what: ordered(map(number, rows)) for what, rows in said[bundle.stem].items()}
    )
    return found


def run(name: str, request: dict[str, Any]) -> Any:
    with tempfile.TemporaryDirectory() as place:
        script = Path(place) / SCRIPT.name
        # A module finds its packages beside itself.
        shutil.copy(SCRIPT, script)
        (Path(place) / "package.json").write_text('{"type": "module"}')
        (Path(place) / "node_modules").symlink_to((folder() / "node_modules").resolve())
        done = subprocess.run(
            ["node", str(script), name], input=json.dumps(request), capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def take(found: Found, bundle: Path, table: str, columns: dict[str, Any]) -> None:
    kinds = contract(bundle)[table]
    read = {}
    for name, said in columns.items():
        if said["null_as"]:
            found.nulls.setdefault(kinds[name], set()).update(said["null_as"])
        read[name] = Column(said["kind"], said["nulls"], words(said))
    compare(found, bundle, table, read)


def words(said: dict[str, Any]) -> tuple[int, int, int]:
    count, total, xor = said["digest"]
    return count, int(total, 16), int(xor, 16)


def judged(columns: dict[str, Any]) -> str:
    if "error" in columns:
        return "error"
    return "right" if words(columns["t"]) == right(V2_TRUTH, "events")["t"].digest else "wrong values, no error"


def number(row: list[Any]) -> list[Any]:
    """Counts and ticks come as numbers or decimal text, names as text in front."""
    names = 1 if len(row) == 3 else 2
    return [*row[:names], *map(int, row[names:])]
