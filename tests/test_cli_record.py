"""`wsformat record`: what it says without a GPU, and on wrong requests."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from wsformat.kernels.examples.record import descriptions, names


def run(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "wsformat", "record", *words],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_list(tmp_path: Path) -> None:
    lines = run("--list", cwd=tmp_path).stdout.splitlines()
    assert [line.split()[0] for line in lines] == names()
    assert all(len(line.split(maxsplit=1)[1]) > 20 and len(line) <= 120 for line in lines)
    assert json.loads(run("--list", "--json", cwd=tmp_path).stdout) == descriptions()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "no example named"),
        (("nope",), "no example 'nope'"),
        (("gemm_hopper", "--size", "1,2"), "--size 1,2 --repeats 20: positive numbers are needed"),
        (("gemm_hopper", "--size", "0,1,2"), "positive numbers are needed"),
        (("gemm_hopper", "--repeats", "0"), "positive numbers are needed"),
        (("gemm_hopper", "-o", "there.wsformat"), "there.wsformat"),
        (("gemm_hopper", "--size", "99999999999999999999,1,1"), "below 2^31"),
        (("gemm_hopper", "--size", "1,1,1,1"), "positive numbers are needed"),
        (("gemm_hopper", "--size", "\u00b2,1,1"), "positive numbers are needed"),
        (("gemm_hopper", "--repeats", "99999999999999999999"), "below 2^31"),
        (("gemm_hopper", "--pass", "nope"), "nope"),
        (("gemm_hopper", "--pass", ""), "''"),
        (("gemm_hopper", "--pass", "waits:nobody"), "nobody"),
        (("gemm_hopper", "-o", "there.wsformat/mine/x.wsformat"), "mine is no folder"),
        (("gemm_hopper", "-o", "nowhere/x.wsformat"), "nowhere: no such directory"),
        (("gemm_hopper", "--raw", "nowhere/x.npz"), "nowhere: no such directory"),
        (("gemm_hopper", "--raw", "there.wsformat"), "kept as .npz"),
    ],
    ids=[
        "no name",
        "unknown",
        "size",
        "zero",
        "repeats",
        "exists",
        "huge",
        "four",
        "square",
        "repeats huge",
        "pass",
        "no pass",
        "role",
        "file as folder",
        "no folder",
        "raw folder",
        "raw suffix",
    ],
)
def test_wrong_requests_are_one_line_with_a_hint(words: tuple[str, ...], says: str, tmp_path: Path) -> None:
    (tmp_path / "there.wsformat").mkdir()
    (tmp_path / "there.wsformat" / "mine").write_text("kept")
    done = run(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    first, *rest = done.stderr.splitlines()
    assert first.startswith("error: ")
    assert says in first
    assert "Traceback" not in done.stderr
    assert len(rest) <= 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["there.wsformat"]


def test_without_a_gpu(tmp_path: Path) -> None:
    if Path("/dev/nvidiactl").exists():
        pytest.skip("this machine has a GPU")
    done = run("attention_hopper", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] in (
        "error: no CUDA driver on this machine",
        "error: no GPU on this machine",
        "error: recording needs cuda-python",
    )
    assert "hint: " in done.stderr
    assert not list(tmp_path.iterdir())
