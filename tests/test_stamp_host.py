"""The C++ host header: a program without Python writes a buffer that the importer reads."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from wsformat import samples
from wsformat.converters import raw_stamps
from wsformat.kernels import nvrtc

PROGRAM = """
#include <cstdio>
#include <vector>
#include "wsformat_host.hpp"

int main(int, char** argv) {
    // Buffer, records and role spec of a real launch, as a program would have them after its copy from the device.
    const std::string slots = wsf::read_file(argv[1]), records = wsf::read_file(argv[2]);
    wsf::Capture capture;
    capture.roles = 3;
    capture.events = 16;
    capture.iterations = 64;
    capture.ctas = CTAS;
    MORE
    capture.spec = wsf::read_file(argv[3]);
    try {
        std::vector<WORD> words(reinterpret_cast<const std::uint32_t*>(slots.data()),
                                reinterpret_cast<const std::uint32_t*>(slots.data() + slots.size()));
        capture.write(argv[4], words.data(), records.data());
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\\n", error.what());
        return 1;
    }
    return 0;
}
"""


@pytest.fixture(scope="module")
def compiler() -> str:
    found = shutil.which("g++") or shutil.which("clang++")
    if found is None:
        pytest.skip("no C++ compiler on this machine")
    return found


def program(folder: Path, compiler: str, word: str = "std::uint32_t", ctas: int = 1, more: str = "") -> Path:
    source = folder / "host.cpp"
    source.write_text(PROGRAM.replace("WORD", word).replace("CTAS", str(ctas)).replace("MORE", more))
    flags = ["-std=c++11", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror", "-O1"]
    subprocess.run(
        [compiler, *flags, f"-I{nvrtc.include_dir()}", str(source), "-o", str(folder / "host")], check=True, timeout=300
    )
    return folder / "host"


@pytest.mark.parametrize("word", ["std::uint32_t", "std::uint64_t"])
def test_a_program_without_python_writes_what_the_importer_reads(tmp_path: Path, compiler: str, word: str) -> None:
    spec = json.loads(samples.path("gemm_roles.json").read_text())
    spec["_comment"] = 'quotes " and \\ and\ttabs, µs'
    spec_file = tmp_path / "roles.json"
    spec_file.write_text(json.dumps(spec, indent=1, ensure_ascii=False))
    out = tmp_path / "run.safetensors"
    inputs = [samples.path("balanced_r0.i32"), samples.path("balanced_r0.meta"), spec_file]
    subprocess.run([program(tmp_path, compiler, word), *inputs, out], check=True, timeout=60)
    assert not list(tmp_path.glob("*.part"))
    assert raw_stamps.sniff(out.read_bytes()[:4096], out)
    # No option needed: the records lie beside the file, and the import says that it took them.
    got = raw_stamps.read([out], {"trip_count": 64})
    assert any(
        "beside the input and taken: run.safetensors.meta" in f["text"] for f in got.table("findings").to_pylist()
    )
    expected = raw_stamps.read(
        [inputs[0]], {"spec": samples.path("gemm_roles.json"), "meta": inputs[1], "trip_count": 64}
    )
    for name in ("events", "lanes", "clock_anchors", "roles", "dependencies"):
        mine, theirs = (b.table(name).drop_columns(["capture_id"]) for b in (got, expected))
        assert mine.equals(theirs), name
    assert got.table("events").num_rows > 800


def test_a_window_and_chosen_ctas_are_in_the_file(tmp_path: Path, compiler: str) -> None:
    out = tmp_path / "run.safetensors"
    inputs = [samples.path("balanced_r0.i32"), samples.path("balanced_r0.meta"), samples.path("gemm_roles.json")]
    more = "capture.from = 8; capture.stride = 4; capture.first_cta = 3; capture.cta_step = 16;"
    host = program(tmp_path, compiler, more=more)
    subprocess.run([host, *inputs, out], check=True, timeout=60)
    got = raw_stamps.read([out], {})
    told = {"spec": inputs[2], "meta": inputs[1], "window": "8,4", "ctas": "3,16"}
    expected = raw_stamps.read([inputs[0]], told)
    for name in ("events", "lanes", "launches"):
        mine, theirs = (b.table(name).drop_columns(["capture_id"]) for b in (got, expected))
        dropped = ["source"] if name == "launches" else []
        assert mine.drop_columns(dropped).equals(theirs.drop_columns(dropped)), name
    assert got.table("events").column("iteration").to_pylist().count(8 + 4 * 63) > 0
    assert set(got.table("events").column("cta").to_pylist()) == {3}
    for bad in ("capture.stride = 0;", "capture.from = -1;", "capture.cta_step = 0;"):
        done = subprocess.run(
            [program(tmp_path, compiler, more=bad), *inputs, tmp_path / "bad.safetensors"],
            check=False, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert done.returncode == 1
        assert "must be positive" in done.stderr
    assert not (tmp_path / "bad.safetensors").exists()


def test_other_readers_open_the_file(tmp_path: Path, compiler: str) -> None:
    safetensors = pytest.importorskip("safetensors.numpy")
    out = tmp_path / "run.safetensors"
    inputs = [samples.path("balanced_r0.i32"), samples.path("balanced_r0.meta"), samples.path("gemm_roles.json")]
    subprocess.run([program(tmp_path, compiler), *inputs, out], check=True, timeout=60)
    stamps = safetensors.load_file(out)["stamps"]
    assert stamps.shape == (1, 3, 16, 64)
    assert np.array_equal(stamps.reshape(-1), np.fromfile(inputs[0], "<u4"))


def test_a_wrong_layout_or_folder_leaves_nothing(tmp_path: Path, compiler: str) -> None:
    inputs = [samples.path("balanced_r0.i32"), samples.path("balanced_r0.meta"), samples.path("gemm_roles.json")]
    done = subprocess.run(
        [program(tmp_path, compiler, ctas=0), *inputs, tmp_path / "a.safetensors"],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert "must be positive" in done.stderr
    done = subprocess.run(
        [program(tmp_path, compiler), *inputs, tmp_path / "no" / "a.safetensors"],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert "cannot be written" in done.stderr
    assert not [f for f in tmp_path.iterdir() if "safetensors" in f.name]
