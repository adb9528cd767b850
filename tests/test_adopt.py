"""Memory, streams and arguments of other libraries, through their protocols; stand-ins on the host, no GPU needed."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import numpy as np
import pytest

from wsformat.errors import BadRequest
from wsformat.kernels.adopt import Memory, kernel_argument, memory, stream_handle

GPU = 2


class CudaArray:
    """What torch and CuPy tensors say of themselves."""

    def __init__(self, array: np.ndarray[Any, Any], **change: Any) -> None:
        self.array = array
        self.said = {
            "shape": array.shape,
            "typestr": array.dtype.str,
            "data": (array.ctypes.data, False),
            "strides": None if array.flags.c_contiguous else array.strides,
            "version": 3,
        } | change

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self.said


class Packed:
    """An array that speaks DLPack only; the host's memory, passed off as the GPU's."""

    def __init__(self, array: np.ndarray[Any, Any], device: int = GPU) -> None:
        self.array, self.device = array, device
        self.asked: list[Any] = []

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, **more: Any) -> Any:
        self.asked.append(stream)
        return self.array.__dlpack__(max_version=max_version)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device, 0


def test_cuda_array_interface() -> None:
    array = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    found = memory(CudaArray(array), "x")
    assert (found.address, found.size) == (array.ctypes.data, 96)
    assert found.owner.array is array
    assert memory(CudaArray(array, strides=array.strides), "x").size == 96
    assert memory(CudaArray(array[:1, :1], strides=(48, 999, 4)), "x").size == 16  # strides of length 1 mean nothing


@pytest.mark.skipif(sys.platform != "linux", reason="cuda-core is in the test extra on Linux only")
def test_dlpack() -> None:
    array = np.arange(24, dtype=np.uint64).reshape(2, 12)
    packed = Packed(array)
    found = memory(packed, "x")
    assert (found.address, found.size) == (array.ctypes.data, 192)
    assert packed.asked == [-1]  # the recorder synchronises by itself
    with pytest.raises(BadRequest, match="x: is not contiguous"):
        memory(Packed(array[:, ::2]), "x")
    read_only = array.copy()
    read_only.flags.writeable = False
    with pytest.raises((BadRequest, BufferError)):
        memory(Packed(read_only), "x")


def test_addresses() -> None:
    assert memory(4096, "x") == Memory(4096)
    assert memory(np.int64(4096), "x").address == 4096
    known = Memory(8, 8)
    assert memory(known, "x") is known


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (0, "is no address"),
        (-4, "is no address"),
        (True, "bool is no memory"),
        ("text", "str is no memory"),
        (np.zeros(4), "lies in the host's memory"),
        (CudaArray(np.zeros((4, 4))[:, ::2]), "not contiguous"),
        (CudaArray(np.zeros(4), data=(4096, True)), "cannot be written"),
        (CudaArray(np.zeros(4), typestr="<q9z"), "broken"),
        (CudaArray(np.zeros(4), data=None), "broken"),
        (Packed(np.zeros(4), device=1), "lies in the host's memory"),
    ],
    ids=["null", "negative", "bool", "text", "host", "gaps", "read-only", "type", "data", "host dlpack"],
)
def test_what_is_no_memory_of_the_device(value: Any, says: str) -> None:
    with pytest.raises(BadRequest, match=says) as caught:
        memory(value, "buffer of the slots")
    assert str(caught.value).startswith("buffer of the slots")


class Torch:
    cuda_stream = 77


class Cupy:
    ptr = 78


class Core:
    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, 79


def test_streams() -> None:
    assert [stream_handle(s) for s in (None, 5, np.int64(6), Torch(), Cupy(), Core())] == [0, 5, 6, 77, 78, 79]
    with pytest.raises(BadRequest, match="str is no CUDA stream"):
        stream_handle("main")
    with pytest.raises(BadRequest, match="bool is no CUDA stream"):
        stream_handle(True)


class Pair(ctypes.Structure):
    _fields_ = (("a", ctypes.c_uint64), ("b", ctypes.c_uint32))


def raw(value: Any) -> bytes:
    return ctypes.string_at(ctypes.addressof(value), ctypes.sizeof(value))


def test_arguments_by_value() -> None:
    pair = Pair(1, 2)
    assert kernel_argument(pair) is pair
    number = ctypes.c_float(1.5)
    assert kernel_argument(number) is number
    assert raw(kernel_argument(None)) == bytes(8)
    for value in (np.int32(-5), np.float32(0.5), np.uint8(7), np.float64(2.5), np.bool_(True)):
        held = raw(kernel_argument(value))
        assert held[: value.nbytes] == value.tobytes()
    struct = np.array((7, 9), np.dtype([("x", "<u8"), ("y", "<u4")]))
    assert raw(kernel_argument(struct))[:12] == struct.tobytes()
    array = np.zeros(4, np.float32)
    assert raw(kernel_argument(CudaArray(array))) == array.ctypes.data.to_bytes(8, "little")
    for value in (5, 0.5, True):
        with pytest.raises(BadRequest, match="does not say its size"):
            kernel_argument(value, "argument 3")
