"""Stamps in the CuTe DSL: off is the machine code of a kernel without them; on makes the stamps of the pass.

Compiled for real architectures without a GPU. The test extra brings the DSL, so without it these tests fail, not skip.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

if sys.platform != "linux":
    pytest.skip("the CuTe DSL runs on Linux only", allow_module_level=True)

import cutlass
from cutlass import Float32, Int32, cute
from cutlass.cute.runtime import make_fake_compact_tensor, make_ptr

from wsformat.errors import BadRequest
from wsformat.iteration_window import IterationWindow
from wsformat.kernels import cubin
from wsformat.kernels.cute_stamp import Settings, Stamps
from wsformat.kernels.passes import StampPass
from wsformat.rolespec import Layout

LAYOUT = Layout(2, 4, 8)


@cute.kernel
def plain(a: cute.Tensor, n: Int32):  # type: ignore[no-untyped-def]
    t, _, _ = cute.arch.thread_idx()
    total = Float32(0)
    for i in cutlass.range(n, unroll=1):
        total += a[i * 32 + t]
    a[t] = total


@cute.kernel
def stamped(a: cute.Tensor, n: Int32, slots, records, settings: cutlass.Constexpr):  # type: ignore[no-untyped-def]
    t, _, _ = cute.arch.thread_idx()
    stamps = Stamps(settings, slots, records)
    stamps.begin()
    stamps.writer(t == 5)
    total = Float32(0)
    for i in cutlass.range(n, unroll=1):
        stamps.stamp(0, 0, i)
        before = stamps.read()
        total += a[i * 32 + t]
        stamps.store(0, {1: before}, i)
        stamps.stamp(1, 3, i)
    a[t] = total
    stamps.end()


@cute.jit
def launch_plain(a: cute.Tensor, n: Int32):  # type: ignore[no-untyped-def]
    plain(a, n).launch(grid=[1, 1, 1], block=[32, 1, 1])


@cute.jit
def launch(a: cute.Tensor, n: Int32, slots, records, settings: cutlass.Constexpr):  # type: ignore[no-untyped-def]
    stamped(a, n, slots, records, settings).launch(grid=[1, 1, 1], block=[32, 1, 1])


ARCHS = ("sm_90a", "sm_100a")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the compiler leaves what it keeps; the working directory too, where it looks for none."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def compiled(folder: Path, function: Any, *args: Any, arch: str = "sm_90a") -> tuple[cubin.Kernel, str]:
    tensor = make_fake_compact_tensor(Float32, (4096,))
    # As options: the DSL reads its environment when it is imported, so a variable set later changes nothing.
    keep = f"--gpu-arch {arch} --dump-dir={folder} --keep-cubin --keep-ptx"
    made = cute.compile(function, tensor, Int32(4), *args, options=keep)
    assert f".target {arch}" in made.artifacts.PTX
    (kernel,) = cubin.kernels(made.artifacts.CUBIN).values()
    return kernel, made.artifacts.PTX


def on(folder: Path, masks: tuple[int, ...], *, arch: str = "sm_90a", **more: Any) -> tuple[cubin.Kernel, str]:
    pointer = make_ptr(Int32, 1024, cute.AddressSpace.gmem, assumed_align=8)
    return compiled(folder, launch, pointer, pointer, Settings(LAYOUT, masks, 32, **more), arch=arch)


@pytest.mark.parametrize("arch", ARCHS)
def test_off_is_the_same_machine_code(folder: Path, arch: str) -> None:
    bare, plain_ptx = compiled(folder, launch_plain, arch=arch)
    # Without buffers, whatever the settings say.
    for args in ((None, None, None), (None, None, Settings(LAYOUT, (3, 8), 32))):
        off, ptx = compiled(folder, launch, *args, arch=arch)
        assert off.code == bare.code
        assert (off.constant_bytes, off.shared_bytes) == (bare.constant_bytes, bare.shared_bytes)
        assert len(re.findall(r"\.param", ptx)) == len(re.findall(r"\.param", plain_ptx))
    made, _ = on(folder, (3, 8), arch=arch)
    assert made.code != bare.code
    assert made.constant_bytes == bare.constant_bytes + 20 or made.constant_bytes == bare.constant_bytes + 16


@pytest.mark.parametrize(
    ("masks", "stamps"), [((3, 8), 3), ((1, 0), 1), ((2, 0), 1), ((0, 8), 1), ((0, 0), 0)], ids=str
)
@pytest.mark.parametrize("shared", [True, False])
def test_a_pass_makes_its_stamps_and_no_other(folder: Path, masks: tuple[int, ...], stamps: int, shared: bool) -> None:
    _, ptx = on(folder, masks, shared=shared)
    if shared:
        # Besides: the buffer is emptied, one store for each 32 words.
        words = stamps * (LAYOUT.iterations + 1)
        assert len(re.findall(r"@p st\.shared\.u32", ptx)) == stamps + -(-words // 32)
        assert len(re.findall(r"@p ld\.shared\.u32", ptx)) == stamps
    else:
        assert len(re.findall(r"@p st\.global\.u32", ptx)) == stamps + 2
    assert len(re.findall(r"%clock64;", ptx)) == len(re.findall(r"%globaltimer;", ptx)) == 2


def test_a_window_of_the_iterations(folder: Path) -> None:
    whole = on(folder, (1, 0))[1]
    late = on(folder, (1, 0), window=IterationWindow(8, 1))[1]
    strided = on(folder, (1, 0), window=IterationWindow(8, 4))[1]
    assert "div.u32" not in whole
    assert len(re.findall(r"sub\.u32 %\w+, %\w+, 8;", late)) == len(re.findall(r"sub\.u32 %\w+, %\w+, 8;", whole)) + 1
    assert "div.u32" not in late
    assert len(re.findall(r"div\.u32 q, d, 4;", strided)) == 1
    macros = {"WSF_FROM": 8, "WSF_STRIDE": 4}
    assert Settings.of(LAYOUT, StampPass("x", {}, macros), 32).window == IterationWindow(8, 4)
    with pytest.raises(BadRequest, match="in steps of 0"):
        Settings.of(LAYOUT, StampPass("x", {}, {"WSF_STRIDE": 0}), 32)


def test_settings_of_a_pass() -> None:
    settings = Settings.of(LAYOUT, StampPass("x", {1: 0b1010}, {}), 64, ctas=4)
    assert settings == Settings(LAYOUT, (0, 0b1010), 64, ctas=4)
    assert settings.rows() == [(1, 1), (1, 3)]


def test_the_environment_switches_a_build(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pointer = make_ptr(Int32, 1024, cute.AddressSpace.gmem, assumed_align=8)

    def code() -> bytes:
        settings = Settings.from_environment(LAYOUT, 32)
        return compiled(folder, launch, *((pointer,) * 2 if settings else (None,) * 2), settings)[0].code

    for name in ("WSF_STAMPS", "WSF_EVENT_MASK", "WSF_SINK", "WSF_FROM", "WSF_STRIDE"):
        monkeypatch.delenv(name, raising=False)
    bare = compiled(folder, launch_plain)[0].code
    assert code() == bare
    monkeypatch.setenv("WSF_STAMPS", "0")
    assert code() == bare
    monkeypatch.setenv("WSF_STAMPS", "1")
    assert code() == on(folder, (15, 15))[0].code != bare
    monkeypatch.setenv("WSF_EVENT_MASK", "0x8ull")
    monkeypatch.setenv("WSF_SINK", "0")
    monkeypatch.setenv("WSF_STRIDE", "4")
    assert code() == on(folder, (8, 8), window=IterationWindow(0, 4), shared=False)[0].code
    for name, value in (("WSF_SINK", "2"), ("WSF_EVENT_MASK", "role==0"), ("WSF_STAMPS", "on")):
        with monkeypatch.context() as one:
            one.setenv(name, value)
            with pytest.raises(BadRequest, match="settings of the stamps"):
                Settings.from_environment(LAYOUT, 32)


def test_a_stamp_outside_of_the_layout() -> None:
    stamps = Stamps(None, None, None)
    assert not stamps._made(9, 9)
    stamps.settings = Settings(LAYOUT, (3, 8), 32)
    stamps.rows = {}
    with pytest.raises(BadRequest, match="stamp of role 2, event 0: outside of the layout"):
        stamps._made(2, 0)
