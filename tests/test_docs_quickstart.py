"""docs/quickstart.md: each persona's lines run as they stand, and say what the text says."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from wsformat.bundle import Bundle
from wsformat.cli.main import app
from wsformat.samples.__main__ import main as copy_samples
from wsformat.validate import validate

pytestmark = pytest.mark.sources
ROOT = Path(__file__).parents[1]
KERNELS = ROOT / "kernels"
TEXT = (ROOT / "docs" / "quickstart.md").read_text(encoding="utf-8")


def blocks(persona: str, language: str) -> list[str]:
    """Code of a section whose heading has that word."""
    (section,) = [part for part in TEXT.split("\n## ")[1:] if persona in part.splitlines()[0]]
    return re.findall(rf"```{language}\n(.*?)```", section, flags=re.DOTALL)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    with contextlib.redirect_stdout(io.StringIO()):
        assert copy_samples([str(tmp_path)]) == 0
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(text: str) -> dict[str, str]:
    """Output of each command, by command."""
    said = {}
    for line in text.strip().splitlines():
        result = CliRunner().invoke(app, shlex.split(line)[1:])
        assert result.exit_code == 0, f"{line}\n{result.output}"
        said[line] = result.stdout
    return said


def test_cuda() -> None:
    (commands,) = blocks("CUDA", "sh")
    said = run(commands)
    shown = said["wsformat show slow.wsformat"]
    # A row of the timeline ends with its four shares: active, stall, blocked, not instrumented.
    rows = re.findall(r"^(\w+) .* (\d+)% +(\d+)% +(\d+)% +(\d+)%$", shown, re.MULTILINE)
    blocked = {role: int(share) for role, _, _, share, _ in rows}
    assert blocked["producer"] == 0
    assert min(blocked["consumer0"], blocked["consumer1"]) > 50
    (report,) = [text for line, text in said.items() if line.startswith("wsformat report")]
    assert report.startswith("producer paces the kernel")


HOST = """
#include <cstdlib>
#include <cstring>
namespace wsf { struct Record; struct Args { void* slots; Record* records; unsigned first, step, ctas, anchors; }; }
enum Kind { cudaMemcpyDeviceToHost };
template <class T> void cudaMalloc(T** to, std::size_t bytes) { *to = static_cast<T*>(std::malloc(bytes)); }
inline void cudaMemset(void* to, int value, std::size_t bytes) { std::memset(to, value, bytes); }
inline void cudaMemcpy(void* to, const void* from, std::size_t bytes, Kind) { std::memcpy(to, from, bytes); }
inline void ring(const float*, float*, unsigned trips, wsf::Args args) {
    for (unsigned k = 0; k < trips; ++k)
        for (unsigned role = 0; role < 2; ++role)
            for (unsigned event = 0; event < 3; ++event)
                static_cast<unsigned*>(args.slots)[(role * 3 + event) * trips + k]
                    = 1000 + 90 * k + 30 * event + 9 * role;
    unsigned long long record[5] = {5, 900, 4500, 9000, 7};
    std::memcpy(args.records, record, sizeof record);
}
"""
"""In place of a GPU: what `ring` would have written."""


def test_the_kernel_of_the_text_compiles_with_stamps_without_and_as_the_clean_build() -> None:
    pytest.importorskip("cuda.bindings.nvrtc")
    from wsformat.kernels import nvrtc

    source, _ = blocks("CUDA", "cuda")
    (command,) = [line for line in TEXT.splitlines() if line.strip().startswith("nvcc")]
    macros = dict(re.findall(r"-D(\w+)=(\d+)", command))
    assert macros == {"WSF_STAMPS": "1", "WSF_ROLES": "2", "WSF_EVENTS": "3", "WSF_ITERATIONS": "64"}
    sizes = [
        len(nvrtc.build(source, ["ring"], macros=chosen).kernel("ring").code)
        for chosen in (macros, {**macros, "WSF_EVENT_MASK": 0}, {})
    ]
    assert len(set(sizes)) == 3


def test_what_the_program_of_the_text_writes_is_imported(here: Path) -> None:
    """Its kernel is replaced by one that a processor runs; on an H200 it was run as it stands."""
    compiler = cpp()
    (here / "ring.json").write_text(blocks("CUDA", "json")[0])
    host = blocks("CUDA", "cuda")[1].replace("ring<<<1, 256>>>(", "ring(")
    (here / "ring.cpp").write_text(HOST + host)
    subprocess.run([compiler, "-std=c++11", "-Wall", "-Werror", f"-I{KERNELS}", "ring.cpp", "-o", "ring"], check=True)
    subprocess.run([here / "ring"], check=True)
    commands = [line.strip() for line in TEXT.splitlines() if line.startswith("    wsformat ")]
    assert len(commands) == 2
    shown = run("\n".join(commands))[commands[1]]
    assert "load waits 62 times on empty, released by compute.done" in shown


RECORDED = ROOT / "tests" / "data" / "ring"
"""What the program of the text wrote on an H200, and the same kernel with named barriers in place of mbarriers."""


def recorded(name: str, lag: int) -> Bundle:
    spec = json.loads(blocks("CUDA", "json")[0])
    spec["dependencies"][1]["iteration_lag"] = lag
    Path("spec.json").write_text(json.dumps(spec))
    words = ["import", str(RECORDED / f"{name}.safetensors"), "--spec", "spec.json", "--trip-count", "64", "-o", name]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    return Bundle.open(name)


def test_the_program_of_the_text_as_an_h200_ran_it() -> None:
    bundle = recorded("ring", 2)
    assert validate(bundle.path).ok
    sql = """SELECT COUNT(*) AS waits, SUM(ticks) AS ticks, SUM(blocked_ticks) AS blocked
    FROM wait WHERE role = 'load' AND producer_role = 'compute'"""
    assert bundle.sql(sql).to_pylist() == [{"waits": 62, "ticks": 100_999, "blocked": 93_311}]
    said = [f"{number:,}" for number in (62, 100_999, 93_311)]
    assert [number for number in said if number not in TEXT] == []


def test_a_stamp_right_after_a_named_barrier_is_read_before_the_warp_blocks() -> None:
    """As docs/recording.md says; WSF_PASSED between the two mends it."""
    early = recorded("bar_sync", 1)
    report = validate(early.path)
    assert {problem.code for problem in report.problems if problem.level == "E"} == {"E703"}
    longest = "SELECT MIN(ticks) AS least, MAX(ticks) AS most FROM wait"
    assert early.sql(longest).to_pylist() == [{"least": 17, "most": 34}]
    mended = recorded("bar_sync_passed", 1)
    assert validate(mended.path).ok
    assert mended.sql(longest).to_pylist()[0]["most"] == 654


def cpp() -> str:
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    return compiler


def test_cute_dsl(here: Path) -> None:
    (commands,) = blocks("CuTe", "sh")
    run(commands)
    assert (here / "cute.svg").is_file()


def test_tool_author_in_cpp(here: Path) -> None:
    (program,) = blocks("profiler", "cpp")
    (here / "tool.cpp").write_text(program)
    strict = ["-std=c++11", "-Wall", "-Wextra", "-Werror", f"-I{KERNELS}"]
    subprocess.run([cpp(), *strict, "tool.cpp", "-o", "tool"], check=True)
    subprocess.run([here / "tool"], check=True)
    said = run(blocks("profiler", "sh")[0])
    (waits,) = [text for line, text in said.items() if line.startswith("wsformat query")]
    assert [line.split()[-1] for line in waits.splitlines()[1:]] == ["968", "972", "10227"]


def test_optimisation_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    (program,) = blocks("loop", "python")
    lines = blocks("loop", "sh")[0].strip().splitlines()
    # The program asks what the lines with --json ask.
    asked = [line for line in lines if line.endswith(" --json")]
    assert [line for line in asked if f'ask("{line.split()[1]}"' not in program] == []
    run("\n".join(line for line in lines if line not in asked))
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(program, "quickstart.md", "exec"), {})
    outcome, verdict, cause = out.getvalue().strip().split(" | ")
    assert (outcome, verdict) == ("slower", "model incomplete (a)")
    assert cause.startswith("producer is never blocked, others wait for it, and 1,681 of its cycles")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_fleet() -> None:
    pytest.importorskip("pyiceberg")
    said = run(blocks("fleet", "sh")[0])
    trend = {(r[6], r[5]): r[8] for line in said["wsformat lake trend LAKE"].splitlines()[1:] if (r := line.split())}
    assert [line for line in said["wsformat lake trend LAKE"].splitlines() if "1,907.0" in line], trend
    assert "noise unknown" in said["wsformat lake regressions LAKE --captures 1 --all"]
    assert "0 problems" in said["wsformat lake verify LAKE"]
