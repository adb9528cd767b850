"""The second validator, conformance/js: written from spec.md alone, it reports what the corpus says.

Where it and the library's validator disagree, the text of the standard is not enough.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from trace_clients import folder, need

ROOT = Path(__file__).parents[1]
CORPUS = ROOT / "conformance"
INVALID = json.loads((CORPUS / "invalid" / "manifest.json").read_text())["cases"]
SOUND = sorted(p for part in ("valid", "samples", "golden/*") for p in CORPUS.glob(f"{part}/*.wsformat"))
Check = Callable[..., dict[str, dict[str, Any]]]

pytestmark = [pytest.mark.client, pytest.mark.sources]


@pytest.fixture(scope="module")
def checker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checker with its packages beside it, as `npm install` would put them."""
    need(shutil.which("node") is not None, "Node")
    need((folder() / "node_modules" / "hyparquet").is_dir(), "hyparquet")
    place = tmp_path_factory.mktemp("js") / "checker"
    shutil.copytree(CORPUS / "js", place, ignore=shutil.ignore_patterns("node_modules"))
    (place / "node_modules").symlink_to((folder() / "node_modules").resolve())
    return place


def node(checker: Path, script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["node", str(checker / script), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def reports(checker: Path, paths: list[Path], *options: str) -> dict[Path, dict[str, Any]]:
    done = node(checker, "check.js", *options, *map(str, paths))
    assert done.stderr == ""
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return {Path(report["bundle"]): report for report in found}


@pytest.mark.parametrize("mode", ["data", "metadata"])
def test_an_invalid_bundle_gives_its_code_and_no_other(checker: Path, mode: str) -> None:
    claimed = set(json.loads(node(checker, "check.js", "--codes").stdout)["implemented"])
    cases = {CORPUS / "invalid" / case["case"]: case for case in INVALID if case["code"] in claimed}
    found = reports(checker, list(cases), *(["--metadata"] if mode == "metadata" else []))
    assert set(found) == set(cases)
    for path, case in cases.items():
        if mode == "data" or case["mode"] == "metadata":
            assert found[path]["codes"] == [case["code"]], case
            assert found[path]["ok"] is (case["code"][0] != "E")
        # Without its values E310 is a column that is stored wider, W304; E406 stands in the manifest's sources too.
        elif case["code"] not in ("E310", "E406"):
            assert found[path]["codes"] == [], case
            assert case["code"] in {entry["code"] for entry in found[path]["not_checked"]}


def test_sound_bundles_give_the_stated_findings_only(checker: Path) -> None:
    found = reports(checker, SOUND)
    assert len(SOUND) > 20
    for path in SOUND:
        stated = json.loads(path.with_suffix("").with_suffix(".expected.json").read_text())["findings"]
        assert found[path]["codes"] == sorted(stated), path.name


def test_every_rule_is_either_claimed_or_named_as_missing(checker: Path) -> None:
    said = json.loads(node(checker, "check.js", "--codes").stdout)
    rules = json.loads((ROOT / "schema" / "rules.json").read_text())["rules"]
    codes = {rule["code"] for rule in rules}
    assert set(said["implemented"]) | set(said["not_implemented"]) == codes
    assert not set(said["implemented"]) & set(said["not_implemented"])
    readme = (CORPUS / "js" / "README.md").read_text()
    assert said["not_implemented"] == []
    assert "**Rules that are not implemented: none.**" in readme
    assert f"All {len(codes)} rules of format version {said['format_version']}" in readme


def test_its_tables_are_those_of_the_text(checker: Path) -> None:
    schema = ROOT / "schema" / "generated" / "manifest.schema.json"
    done = node(checker, "spec_data.js", str(ROOT / "spec.md"), str(schema))
    assert done.stderr == ""
    again = "node spec_data.js ../../spec.md ../../schema/generated/manifest.schema.json > spec.json"
    assert json.loads(done.stdout) == json.loads((CORPUS / "js" / "spec.json").read_text()), again


def hostile() -> dict[str, tuple[bytes, str]]:
    """Manifests and the one code each has to give."""
    return {
        "no_object": (b"[]", "E204"),
        "null": (b"null", "E204"),
        "empty": (b"", "E201"),
        "byte_order_mark": (b"\xef\xbb\xbf{}", "E201"),
        "latin_1": (b'{"a": "\xff"}', "E201"),
        "not_a_number": (b'{"a": NaN}', "E201"),
        "twice": (b'{"a": 1, "a": 2}', "E202"),
        "deep": (b"[" * 100_000, "E203"),
        "digits": (b'{"a": ' + b"9" * 16_000_000 + b"}", "E203"),
        "beyond_64_bits": (b'{"a": 9223372036854775808}', "E203"),
        "escapes": (b'{"a": "' + b"\\n" * 8_000_000 + b'"}', "E204"),
        "many_keys": (b"{" + b",".join(b'"k%d":1' % i for i in range(500_000)) + b"}", "E204"),
        "prototype": (b'{"__proto__": {"format": "wsformat"}}', "E204"),
        "large": (b" " * 16_777_217, "E203"),
    }


def test_hostile_manifests_give_one_code(checker: Path, tmp_path: Path) -> None:
    wanted = {}
    for name, (text, code) in hostile().items():
        path = tmp_path / f"{name}.wsformat"
        path.mkdir()
        (path / "manifest.json").write_bytes(text)
        wanted[path] = [code]
    assert {path: report["codes"] for path, report in reports(checker, list(wanted)).items()} == wanted


def test_damaged_tables_are_reported(checker: Path, tmp_path: Path) -> None:
    whole = (CORPUS / "valid" / "ring.wsformat" / "events.parquet").read_bytes()
    for name, damaged in {"cut": whole[:500], "empty": b"", "zeros": whole[:300] + bytes(200) + whole[500:]}.items():
        path = tmp_path / f"{name}.wsformat"
        shutil.copytree(CORPUS / "valid" / "ring.wsformat", path)
        (path / "events.parquet").write_bytes(damaged)
        report = reports(checker, [path])[path]
        assert report["codes"] == ["E103", "E105" if len(damaged) == len(whole) else "E104"], name
        assert {"E506", "E703"} <= {entry["code"] for entry in report["not_checked"]}


def test_exit_status(checker: Path, tmp_path: Path) -> None:
    valid, invalid = CORPUS / "valid" / "ring.wsformat", CORPUS / "invalid" / INVALID[0]["case"]
    assert node(checker, "check.js", str(valid)).returncode == 0
    assert node(checker, "check.js", str(valid), str(invalid)).returncode == 1
    for arguments in ([str(tmp_path / "absent")], [], ["--unknown"]):
        done = node(checker, "check.js", *arguments)
        assert done.returncode == 2
        assert done.stderr.strip()
        assert "\n    at " not in done.stderr
