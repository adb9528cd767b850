"""The little of the CUDA driver that the recorder needs: memory, modules, launches, tensor maps.

Everything is imported when a device is opened, so that the package loads on a machine without GPU.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

import numpy as np

from wsformat.errors import BadRequest, MissingDependency
from wsformat.kernels.adopt import kernel_argument, stream_handle

Array = np.ndarray[Any, Any]
FUNCTION_FACTS = {
    "registers": "CU_FUNC_ATTRIBUTE_NUM_REGS",
    "local_bytes": "CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES",
    "static_shared_bytes": "CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES",
}


class Device:
    """One GPU, its primary context and what was allocated on it; a context manager that frees all.

    Args:
        ordinal: number of the device.

    Raises:
        MissingDependency: cuda-python is not installed.
        BadRequest: no driver, no GPU, or no such device.
    """

    def __init__(self, ordinal: int = 0) -> None:
        try:
            from cuda.bindings import driver
        except ImportError as error:
            raise MissingDependency("recording needs cuda-python", "pip install 'wsformat[gpu]'") from error
        self._api = driver
        hint = "Record on a machine with an NVIDIA GPU and its driver; everything else works without."
        try:
            status, *_ = driver.cuInit(0)
            count = self._ok(driver.cuDeviceGetCount()) if status == driver.CUresult.CUDA_SUCCESS else 0
        except RuntimeError as error:  # cuda-python's word for: there is no driver library
            raise BadRequest("no CUDA driver on this machine", hint) from error
        if ordinal >= count:
            raise BadRequest(f"no GPU {ordinal} on this machine" if count else "no GPU on this machine", hint)
        self.handle = self._ok(driver.cuDeviceGet(ordinal))
        self.hung = False
        self._allocations: list[int] = []
        self._modules: list[Any] = []
        self._ok(driver.cuCtxSetCurrent(self._ok(driver.cuDevicePrimaryCtxRetain(self.handle))))

    def __enter__(self) -> Device:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        if self.hung:
            return  # everything that frees would wait for the kernel that does not end
        for module in self._modules:
            self._api.cuModuleUnload(module)
        for pointer in self._allocations:
            self._api.cuMemFree(pointer)
        self._api.cuDevicePrimaryCtxRelease(self.handle)

    def _ok(self, result: Any) -> Any:
        status, *values = result
        if status != self._api.CUresult.CUDA_SUCCESS:
            _, text = self._api.cuGetErrorString(status)
            raise BadRequest(f"CUDA: {text.decode() if text else status}")
        return values[0] if values else None

    @property
    def name(self) -> str:
        """As the driver prints it."""
        return str(self._ok(self._api.cuDeviceGetName(128, self.handle)).split(b"\0")[0].decode())

    def attribute(self, name: str) -> int:
        """A device attribute, such as MULTIPROCESSOR_COUNT."""
        which = getattr(self._api.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(self._ok(self._api.cuDeviceGetAttribute(which, self.handle)))

    @property
    def capability(self) -> tuple[int, int]:
        """Compute capability, such as (9, 0)."""
        return self.attribute("COMPUTE_CAPABILITY_MAJOR"), self.attribute("COMPUTE_CAPABILITY_MINOR")

    def allocate(self, size: int) -> int:
        """Pointer to so many bytes, which this object frees."""
        pointer = int(self._ok(self._api.cuMemAlloc(size)))
        self._allocations.append(pointer)
        return pointer

    def upload(self, data: Array) -> int:
        """Pointer to a copy of an array."""
        held = np.ascontiguousarray(data)
        pointer = self.allocate(held.nbytes)
        self._ok(self._api.cuMemcpyHtoD(pointer, held.ctypes.data, held.nbytes))
        return pointer

    def download(self, pointer: int, into: Array) -> Array:
        """Fill an array from the device, after everything before it."""
        self._ok(self._api.cuMemcpyDtoH(into.ctypes.data, pointer, into.nbytes))
        return into

    def fill(self, pointer: int, byte: int, size: int) -> None:
        """Set memory."""
        self._ok(self._api.cuMemsetD8(pointer, byte, size))

    def function(self, cubin: bytes, name: str, dynamic_shared: int = 0) -> Any:
        """A kernel of a cubin, allowed to use so much dynamic shared memory."""
        module = self._ok(self._api.cuModuleLoadData(cubin))
        self._modules.append(module)
        function = self._ok(self._api.cuModuleGetFunction(module, name.encode()))
        if dynamic_shared > 48 * 1024:
            which = self._api.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            self._ok(self._api.cuFuncSetAttribute(function, which, dynamic_shared))
        return function

    def function_facts(self, function: Any, threads: int = 0, dynamic_shared: int = 0) -> dict[str, int]:
        """What the driver says of a kernel.

        Args:
            function: the kernel.
            threads: of a CTA, 0 when it is not known yet.
            dynamic_shared: shared memory that it is launched with.

        Returns:
            registers a thread, local memory a thread (spills) and static shared memory a CTA; with ``threads`` also
            ``shared_bytes_per_cta`` and ``max_ctas_per_sm``.
        """
        which = self._api.CUfunction_attribute
        facts = {
            name: int(self._ok(self._api.cuFuncGetAttribute(getattr(which, attribute), function)))
            for name, attribute in FUNCTION_FACTS.items()
        }
        if threads:
            most = self._api.cuOccupancyMaxActiveBlocksPerMultiprocessor(function, threads, dynamic_shared)
            facts["shared_bytes_per_cta"] = facts["static_shared_bytes"] + dynamic_shared
            facts["max_ctas_per_sm"] = int(self._ok(most))
        return facts

    def launch(
        self,
        function: Any,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        shared: int,
        args: Sequence[Any],
        *,
        stream: Any = None,
        cluster: tuple[int, int, int] | None = None,
    ) -> None:
        """Start a kernel.

        Args:
            function: the kernel.
            grid, block: CTAs, and threads of a CTA.
            shared: dynamic shared memory.
            args: of the kernel in order, see :func:`wsformat.kernels.adopt.kernel_argument`; structures by value.
            stream: as :func:`wsformat.kernels.adopt.stream_handle` takes it; by default the default stream.
            cluster: CTAs of a cluster, where the kernel's source does not say it; divides the grid.

        Raises:
            BadRequest: the launch was refused.
        """
        held = [kernel_argument(value, f"argument {n}") for n, value in enumerate(args)]
        pointers = (ctypes.c_void_p * max(1, len(held)))(*[ctypes.addressof(value) for value in held])
        where, api = stream_handle(stream), self._api
        if cluster is None:
            self._ok(api.cuLaunchKernel(function, *grid, *block, shared, where, ctypes.addressof(pointers), 0))
            return
        config, attribute = api.CUlaunchConfig(), api.CUlaunchAttribute()
        config.gridDimX, config.gridDimY, config.gridDimZ = grid
        config.blockDimX, config.blockDimY, config.blockDimZ = block
        config.sharedMemBytes, config.hStream = shared, api.CUstream(where)
        attribute.id = api.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        size = attribute.value.clusterDim
        size.x, size.y, size.z = cluster
        config.attrs, config.numAttrs = [attribute], 1
        self._ok(api.cuLaunchKernelEx(config, function, ctypes.addressof(pointers), 0))

    def milliseconds(self, start: Callable[[], None], launches: int) -> list[float]:
        """Time of each launch between events of the device; ``start`` starts one."""
        pair = [self._ok(self._api.cuEventCreate(0)) for _ in range(2)]
        times = []
        for _ in range(launches):
            self._ok(self._api.cuEventRecord(pair[0], 0))
            start()
            self._ok(self._api.cuEventRecord(pair[1], 0))
            self._ok(self._api.cuEventSynchronize(pair[1]))
            times.append(float(self._ok(self._api.cuEventElapsedTime(*pair))))
        for event in pair:
            self._api.cuEventDestroy(event)
        return times

    @property
    def bus_id(self) -> str:
        """PCI bus id, such as ``0000:1b:00.0``."""
        return str(self._ok(self._api.cuDeviceGetPCIBusId(32, self.handle)).split(b"\0")[0].decode())

    def synchronize(self) -> None:
        """Wait for everything on the device; a fault of a kernel shows here."""
        self._ok(self._api.cuCtxSynchronize())

    def finish(self, stream: Any, seconds: float) -> bool:
        """Wait for a stream for so long at most, then for the device; whether all of it ended.

        After False the kernel runs on: nothing else can be done with the device in this process.
        """
        event = self._ok(self._api.cuEventCreate(0))
        self._ok(self._api.cuEventRecord(event, stream_handle(stream)))
        until, pause = time.monotonic() + seconds, 1e-6
        while True:
            (status,) = self._api.cuEventQuery(event)
            if status != self._api.CUresult.CUDA_ERROR_NOT_READY:
                break
            if time.monotonic() > until:
                self.hung = True
                return False
            time.sleep(pause)
            pause = min(2 * pause, 0.01)
        self._api.cuEventDestroy(event)
        self.synchronize()
        return True

    def tensor_map(
        self, pointer: int, rows: int, columns: int, box_rows: int, box_columns: int, *, element_bytes: int = 2
    ) -> Any:
        """Tensor map of a row-major bf16 or 8-bit matrix, 128-byte swizzle, by value; zeros beyond its edges."""
        api = self._api
        kinds = {1: "UINT8", 2: "BFLOAT16"}
        kind = getattr(api.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{kinds[element_bytes]}")
        made = self._ok(
            api.cuTensorMapEncodeTiled(
                kind,
                2,
                pointer,
                [api.cuuint64_t(columns), api.cuuint64_t(rows)],
                [api.cuuint64_t(columns * element_bytes)],
                [api.cuuint32_t(box_columns), api.cuuint32_t(box_rows)],
                [api.cuuint32_t(1), api.cuuint32_t(1)],
                api.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
                api.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B,
                api.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                api.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
            )
        )
        value = (ctypes.c_uint64 * 16)()
        ctypes.memmove(value, int(made.getPtr()), 128)
        return value
