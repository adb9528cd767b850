"""Stamps in the CuTe DSL: off is the machine code of a kernel without them; on makes the stamps of the pass.

Compiled for sm_90a without a GPU; skipped where nvidia-cutlass-dsl is not installed: it is no part of the test extra.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

cutlass = pytest.importorskip("cutlass", reason="nvidia-cutlass-dsl is not installed (extra gpu)")

from cutlass import Float32, Int32, cute  # noqa: E402
from cutlass.cute.runtime import make_fake_compact_tensor, make_ptr  # noqa: E402

from wsformat.errors import BadRequest  # noqa: E402
from wsformat.kernels import cubin  # noqa: E402
from wsformat.kernels.cute_stamp import Settings, Stamps  # noqa: E402
from wsformat.kernels.passes import StampPass  # noqa: E402
from wsformat.rolespec import Layout  # noqa: E402

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


@pytest.fixture(autouse=True)
def _arch(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_90a")
    monkeypatch.setenv("CUTE_DSL_DUMP_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def compiled(function: Any, *args: Any) -> tuple[cubin.Kernel, str]:
    tensor = make_fake_compact_tensor(Float32, (4096,))
    made = cute.compile(function, tensor, Int32(4), *args, options="--keep-cubin --keep-ptx")
    (kernel,) = cubin.kernels(made.artifacts.CUBIN).values()
    return kernel, made.artifacts.PTX


def on(masks: tuple[int, ...], **more: Any) -> tuple[cubin.Kernel, str]:
    pointer = make_ptr(Int32, 1024, cute.AddressSpace.gmem, assumed_align=8)
    return compiled(launch, pointer, pointer, Settings(LAYOUT, masks, 32, **more))


def test_off_is_the_same_machine_code() -> None:
    bare, _ = compiled(launch_plain)
    off, _ = compiled(launch, None, None, None)
    assert off.code == bare.code
    assert (off.constant_bytes, off.shared_bytes) == (bare.constant_bytes, bare.shared_bytes)
    made, _ = on((3, 8))
    assert made.code != bare.code
    assert made.constant_bytes == bare.constant_bytes + 20 or made.constant_bytes == bare.constant_bytes + 16


@pytest.mark.parametrize(
    ("masks", "stamps"), [((3, 8), 3), ((1, 0), 1), ((2, 0), 1), ((0, 8), 1), ((0, 0), 0)], ids=str
)
@pytest.mark.parametrize("shared", [True, False])
def test_a_pass_makes_its_stamps_and_no_other(masks: tuple[int, ...], stamps: int, shared: bool) -> None:
    _, ptx = on(masks, shared=shared)
    if shared:
        # Besides: the buffer is emptied, one store for each 32 words.
        words = stamps * (LAYOUT.iterations + 1)
        assert len(re.findall(r"@p st\.shared\.u32", ptx)) == stamps + -(-words // 32)
        assert len(re.findall(r"@p ld\.shared\.u32", ptx)) == stamps
    else:
        assert len(re.findall(r"@p st\.global\.u32", ptx)) == stamps + 2
    assert len(re.findall(r"%clock64;", ptx)) == len(re.findall(r"%globaltimer;", ptx)) == 2


def test_settings_of_a_pass() -> None:
    settings = Settings.of(LAYOUT, StampPass("x", {1: 0b1010}, {}), 64, ctas=4)
    assert settings == Settings(LAYOUT, (0, 0b1010), 64, ctas=4)
    assert settings.rows() == [(1, 1), (1, 3)]


def test_a_stamp_outside_of_the_layout() -> None:
    stamps = Stamps(None, None, None)
    assert not stamps._made(9, 9)
    stamps.settings = Settings(LAYOUT, (3, 8), 32)
    stamps.rows = {}
    with pytest.raises(BadRequest, match="stamp of role 2, event 0: outside of the layout"):
        stamps._made(2, 0)
