"""What is installed is what git has, and the wheel works alone.

The first test compares the built wheel with the tracked files: it catches a forgotten data file and a stale module.
The second installs that wheel in a new virtual environment and runs the demo and the tests away from the sources.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.wheel

FOLDERS = {
    "schema": "wsformat/schema",
    "wsformat": "wsformat",
    "converters": "wsformat/converters",
    "kernels": "wsformat/kernels",
    "viewers": "wsformat/viewers",
}


# One or two modules a layer and kind of data: the wheel holds what the tree holds (first test), and all pass there.
ON_THE_WHEEL = (
    "bundle", "cli", "views_known", "validate_schema", "raw_stamps", "rolespec", "hardware", "predict", "ncu_metrics",
    "digest", "tag64", "skill_npz", "stamp_header", "timeline_files", "cli_doctor", "upgrade",
)  # fmt: skip


def run(*command: str | Path, cwd: Path, **env: str) -> str:
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env={**os.environ, **env}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def tree(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tracked and new files, so that building leaves nothing behind."""
    copy = tmp_path_factory.mktemp("tree")
    listed = run("git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=root).splitlines()
    for name in listed:
        if (root / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / name, copy / name)
    return copy


@pytest.fixture(scope="module")
def wheel(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", out, tree, cwd=out)
    (built,) = out.glob("*.whl")
    return built


def test_wheel_holds_exactly_the_tracked_files(tree: Path, wheel: Path) -> None:
    expected = set()
    for folder, package in FOLDERS.items():
        for path in (tree / folder).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                expected.add(f"{package}/{path.relative_to(tree / folder).as_posix()}")
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert sorted(expected - packed) == []
    assert sorted(packed - expected) == []


@pytest.fixture(scope="module")
def clean_python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("venv")
    venv.create(home, with_pip=True)
    python = home / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"{wheel}[view,test]", cwd=home)
    return python


def test_demo_works_from_the_wheel_alone(clean_python: Path, tmp_path: Path) -> None:
    run(clean_python, "-P", "-m", "wsformat", "demo", "-o", tmp_path / "out", cwd=tmp_path)
    assert {p.suffix for p in (tmp_path / "out").iterdir()} >= {".wsformat", ".html", ".png", ".svg"}


def test_tests_pass_on_the_wheel(root: Path, clean_python: Path, tmp_path: Path) -> None:
    """Tests of every layer, moved to a folder without the sources."""
    shutil.copytree(root / "tests", tmp_path / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(root / "pyproject.toml", tmp_path / "pyproject.toml")
    for extra in ("conformance", "docs", "spec.md", "README.md", "CHANGELOG.md"):
        source = root / extra
        if source.is_dir():
            shutil.copytree(source, tmp_path / extra, symlinks=True)
        elif source.exists():
            shutil.copy(source, tmp_path / extra)
    chosen = "not wheel and not client and not gpu and not sources"
    tests = [tmp_path / "tests" / f"test_{name}.py" for name in ON_THE_WHEEL]
    run(clean_python, "-P", "-m", "pytest", "-q", "-n", "auto", "-m", chosen, *tests, cwd=tmp_path)


def test_types_are_visible_to_consumers(clean_python: Path, tmp_path: Path) -> None:
    (tmp_path / "consumer.py").write_text(
        "import wsformat\nbundle = wsformat.open('x.wsformat')\nrows: int = bundle.rows('events')\n"
    )
    config = "[mypy]\nstrict = true\n[mypy-pyarrow.*,duckdb.*,pandas.*]\nignore_missing_imports = true\n"
    (tmp_path / "mypy.ini").write_text(config)
    run(clean_python, "-m", "mypy", "--config-file", "mypy.ini", "consumer.py", cwd=tmp_path)


CORE = {
    # What pip install wsformat brings, and what these need. An addition here makes everybody's install heavier.
    "wsformat", "pyarrow", "numpy", "duckdb", "pip",
    "jsonschema", "jsonschema-specifications", "referencing", "rpds-py", "attrs",
    "typer", "click", "shellingham", "annotated-doc", "typing-extensions",
    "pydantic", "pydantic-core", "annotated-types", "typing-inspection",  # newer versions of typer
    "rich", "markdown-it-py", "mdurl", "pygments",
}  # fmt: skip


def interpreters() -> dict[str, str]:
    """Pythons of this machine that wsformat supports, other than the one that runs: version and path."""
    found = {}
    for minor in range(11, 20):
        kept = sorted(Path(os.environ.get("PYENV_ROOT", "/nowhere")).glob(f"versions/3.{minor}.*/bin/python"))
        for path in [shutil.which(f"python3.{minor}"), *map(str, kept)]:
            ask = [path or "false", "-c", "import sys, ensurepip; print(*sys.version_info[:2], sep='.')"]
            done = subprocess.run(ask, capture_output=True, text=True, check=False)
            if done.returncode == 0 and done.stdout.strip() == f"3.{minor}" and sys.version_info[1] != minor:
                found[f"3.{minor}"] = str(path)
    return found


@pytest.mark.parametrize("version", ["this", "3.12", "3.13", "3.14"])
def test_the_core_alone_is_light_and_does_the_work(wheel: Path, tmp_path: Path, version: str) -> None:
    """No extra: import, validate, ask, export; what needs an extra says which. On every Python at hand."""
    path = sys.executable if version == "this" else interpreters().get(version)
    if path is None:
        pytest.skip(f"no Python {version} on this machine")
    run(path, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel, cwd=tmp_path)
    held = json.loads(run(python, "-m", "pip", "list", "--format=json", "--disable-pip-version-check", cwd=tmp_path))
    names = {package["name"].lower().replace("_", "-") for package in held}
    assert sorted(names - CORE - {"setuptools"}) == []

    command = tmp_path / "venv" / "bin" / "wsformat"
    run(python, "-P", "-m", "wsformat.samples", "s", cwd=tmp_path)
    given = ["s/balanced_r0.i32", "--spec", "s/gemm_roles.json", "--meta", "s/balanced_r0.meta", "--trip-count", "64"]
    run(command, "import", *given, "-o", "x.wsformat", cwd=tmp_path)
    run(command, "validate", "x.wsformat", cwd=tmp_path)
    states = json.loads(run(command, "states", "x.wsformat", "--json", cwd=tmp_path))
    assert {row["role"]: row["stall"] for row in states} == {"producer": 15750, "consumer0": 8947, "consumer1": 8432}
    run(command, "show", "x.wsformat", cwd=tmp_path)
    run(command, "reconcile", "x.wsformat", "--budget", "hopper_gemm", cwd=tmp_path)
    run(command, "export", "x.wsformat", "x.pftrace", cwd=tmp_path)
    drawn = subprocess.run([command, "view", "x.wsformat", "-o", "x.svg"], capture_output=True, text=True, cwd=tmp_path)
    assert drawn.returncode == 2
    assert "pip install 'wsformat[view]'" in drawn.stderr
    assert "Traceback" not in drawn.stderr
    told = json.loads(run(command, "doctor", "--json", cwd=tmp_path))
    assert [area["name"] for area in told if area["ready"]] == ["core", "perfetto"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_can_be_shown_for_a_shell(clean_python: Path, tmp_path: Path, shell: str) -> None:
    """What a shell asks: words that complete an unfinished command line."""
    script = run(clean_python, "-P", "-m", "wsformat", "--show-completion", shell, cwd=tmp_path, **COMPLETE)
    assert "WSFORMAT_COMPLETE" in script
    asked = {"_WSFORMAT_COMPLETE": f"complete_{shell}", "COMP_WORDS": "wsformat cri", "COMP_CWORD": "1"}
    asked |= {"_TYPER_COMPLETE_ARGS": "wsformat cri", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    command = clean_python.parent / "wsformat"
    answer = subprocess.run(
        [command], env={**os.environ, **asked}, capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert "critical-path" in answer.stdout


# typer looks at the parent process to find the shell; the name of the shell is given instead.
COMPLETE = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
