"""Arrays, pointers and streams of other libraries: PyTorch, CuPy, JAX, Numba, or plain addresses.

Two protocols are read: ``__cuda_array_interface__``, and DLPack (through ``cuda.core``). Nothing is copied, and what is
adopted is kept alive as long as its :class:`Memory`.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wsformat.errors import BadRequest, MissingDependency

CPU_DEVICE = 1
"""kDLCPU of DLPack: memory that no GPU is sure to reach."""
NO_SYNC = -1
"""For DLPack: the producer need not wait for anything; the recorder synchronises by itself."""
LEGACY_STREAM, PER_THREAD_STREAM = 1, 2


@dataclass(frozen=True)
class Memory:
    """Memory on the device that somebody else owns.

    Attributes:
        address: of its first byte.
        size: bytes, -1 when only the address is known.
        owner: what keeps it alive.
    """

    address: int
    size: int = -1
    owner: Any = None


def memory(value: Any, what: str) -> Memory:
    """Adopt an array, a buffer or an address.

    Args:
        value: an object with ``__cuda_array_interface__`` or ``__dlpack__``, a :class:`Memory`, or an integer address.
        what: to call it in errors.

    Raises:
        BadRequest: it is none of these, lies on the host, cannot be written, or has gaps.
        MissingDependency: DLPack without cuda-core.
    """
    if isinstance(value, Memory):
        return value
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        if int(value) <= 0:
            raise BadRequest(f"{what}: {int(value)} is no address on the device")
        return Memory(int(value))
    # Before DLPack: torch and CuPy have both, and this one asks nothing of the driver.
    if hasattr(value, "__cuda_array_interface__"):
        return _array_interface(value, what)
    if hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__"):
        return _dlpack(value, what)
    raise BadRequest(
        f"{what}: {type(value).__name__} is no memory on the device",
        "Give a tensor of PyTorch, CuPy, JAX or Numba on the GPU, or its address as an integer.",
    )


def _array_interface(value: Any, what: str) -> Memory:
    said = value.__cuda_array_interface__
    try:
        shape = [int(n) for n in said["shape"]]
        item = np.dtype(said["typestr"]).itemsize
        address, read_only = int(said["data"][0]), bool(said["data"][1])
        strides = said.get("strides")
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise BadRequest(f"{what}: its __cuda_array_interface__ is broken: {error}") from error
    if read_only:
        raise BadRequest(f"{what}: cannot be written")
    _refuse_gaps(shape, None if strides is None else [int(n) // item for n in strides], what)
    return Memory(address, math.prod(shape) * item, value)


def _dlpack(value: Any, what: str) -> Memory:
    kind, _ = value.__dlpack_device__()
    if int(kind) == CPU_DEVICE:
        raise BadRequest(f"{what}: lies in the host's memory", "Move it to the GPU first.")
    try:
        from cuda.core.utils import StridedMemoryView
    except ImportError as error:
        raise MissingDependency("reading DLPack needs cuda-core", "pip install 'wsformat[gpu]'") from error
    view = StridedMemoryView.from_dlpack(value, stream_ptr=NO_SYNC)
    if view.readonly:
        raise BadRequest(f"{what}: cannot be written")
    shape = [int(n) for n in view.shape]
    _refuse_gaps(shape, None if view.strides is None else [int(n) for n in view.strides], what)
    return Memory(int(view.ptr), math.prod(shape) * int(view.dtype.itemsize), view)


def _refuse_gaps(shape: Sequence[int], strides: Sequence[int] | None, what: str) -> None:
    """Strides count elements."""
    expect = 1
    for length, stride in zip(reversed(shape), reversed(strides or ()), strict=False):
        if length > 1 and stride != expect:
            raise BadRequest(f"{what}: is not contiguous", "Give a contiguous one; torch: tensor.contiguous().")
        expect *= length


def stream_handle(stream: Any) -> int:
    """The driver's handle of a stream: None (the default stream), a handle, or a stream of torch, CuPy or cuda.core.

    Raises:
        BadRequest: it is no stream.
    """
    if stream is None:
        return 0
    if isinstance(stream, int | np.integer) and not isinstance(stream, bool):
        return int(stream)
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        _, handle = protocol() if callable(protocol) else protocol
        return int(handle)
    for name in ("cuda_stream", "ptr", "handle"):  # torch, CuPy, Numba
        found = getattr(stream, name, None)
        if isinstance(found, int):
            return found
    raise BadRequest(f"{type(stream).__name__} is no CUDA stream", "Give a stream of torch or CuPy, or its handle.")


def kernel_argument(value: Any, what: str = "argument") -> Any:
    """A ctypes value that a kernel takes by value.

    Args:
        value: ctypes values as they are; arrays on the device and :class:`Memory` as their address; numpy scalars and
            structures; None as a null pointer. Python numbers are refused, since they do not say their size.
        what: to call it in errors.

    Raises:
        BadRequest: it cannot be an argument.
    """
    if isinstance(value, ctypes._SimpleCData | ctypes.Structure | ctypes.Array | ctypes.Union):
        return value
    if value is None:
        return ctypes.c_uint64(0)
    if isinstance(value, bool | int | float) and not isinstance(value, np.generic):
        raise BadRequest(f"{what}: {value!r} does not say its size", "Give numpy.int32(5), or Memory(ADDRESS).")
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        raw = np.asarray(value).tobytes()
        # Eight-byte words, so that the value is aligned for whatever it is.
        held = (ctypes.c_uint64 * max(1, -(-len(raw) // 8)))()
        ctypes.memmove(held, raw, len(raw))
        return held
    return ctypes.c_uint64(memory(value, what).address)
