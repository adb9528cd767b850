"""Compiling CUDA C++ at run time, with the stamp header on the include path. Needs no GPU."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from wsformat.errors import BadRequest, MissingDependency
from wsformat.kernels.cubin import Kernel
from wsformat.kernels.cubin import kernels as read_kernels

HEADER = "wsformat_stamp.cuh"
WGMMA_SERIALISED = "C7510"
"""ptxas: wgmma instructions are serialised, so the kernel is another one than was meant."""


@dataclass(frozen=True)
class Build:
    """One compiled source.

    Attributes:
        cubin: machine code for one architecture.
        ptx: what the assembler was given.
        arch: such as sm_90a.
        names: lowered name of each kernel that was asked for.
        warnings: of compiler and assembler, one a line.
        registers: a thread, by lowered name, as the assembler reports them.
        spill_bytes: stored to local memory, by lowered name.
        options: that it was compiled with, without include folders.
    """

    cubin: bytes
    ptx: str
    arch: str
    names: Mapping[str, str]
    warnings: tuple[str, ...]
    registers: Mapping[str, int] = field(default_factory=dict)
    spill_bytes: Mapping[str, int] = field(default_factory=dict)
    options: tuple[str, ...] = ()

    @property
    def wgmma_serialised(self) -> bool:
        """Whether the assembler gave up to keep wgmma instructions in flight (C7510)."""
        return any(WGMMA_SERIALISED in line for line in self.warnings)

    def facts(self, name: str) -> dict[str, Any]:
        """Registers, spills and code size of one kernel, warnings and options, as JSON values."""
        lowered = self.names[name]
        known = {"registers": self.registers.get(lowered), "spill_bytes": self.spill_bytes.get(lowered)}
        return {
            **{fact: value for fact, value in known.items() if value is not None},
            "code_bytes": len(self.kernel(name).code),
            "warnings": list(self.warnings),
            "wgmma_serialised": self.wgmma_serialised,
            "options": list(self.options),
        }

    def kernel(self, name: str) -> Kernel:
        """Machine code and parameter bank of one kernel, by the name that was asked for."""
        return read_kernels(self.cubin)[self.names[name]]


def include_dir() -> str:
    """Folder of the stamp header, for any compiler."""
    return str(files("wsformat.kernels"))


def build(
    source: str,
    kernels: Sequence[str],
    *,
    arch: str = "sm_90a",
    macros: Mapping[str, Any] | None = None,
    options: Sequence[str] = (),
    name: str = "kernel.cu",
) -> Build:
    """Compile a source for one architecture.

    Args:
        source: CUDA C++.
        kernels: name expressions to find again, such as ``gemm`` or ``gemm<4>``.
        arch: real architecture, such as sm_90a.
        macros: to define; a value True defines to 1.
        options: more options of the compiler.
        name: of the source in messages.

    Raises:
        MissingDependency: the compiler is not installed.
        BadRequest: it rejects the source; its log is in the hint.
    """
    try:
        from cuda.bindings import nvrtc
    except ImportError as error:
        raise MissingDependency("compiling needs cuda-python", "pip install 'wsformat[gpu]'") from error
    defines = tuple(f"-D{k}={1 if v is True else v}" for k, v in (macros or {}).items())
    given = (f"-arch={arch}", "-std=c++17", "--ptxas-options=-v", *defines, *options)
    flags = [option.encode() for option in (*given, f"-I{include_dir()}")]
    program = _ok(nvrtc, nvrtc.nvrtcCreateProgram(source.encode(), name.encode(), 0, [], []))
    try:
        for kernel in kernels:
            _ok(nvrtc, nvrtc.nvrtcAddNameExpression(program, kernel.encode()))
        (status,) = nvrtc.nvrtcCompileProgram(program, len(flags), flags)
        log = bytearray(_ok(nvrtc, nvrtc.nvrtcGetProgramLogSize(program)))
        _ok(nvrtc, nvrtc.nvrtcGetProgramLog(program, log))
        text = bytes(log).rstrip(b"\0").decode(errors="replace")
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise BadRequest(f"{name}: does not compile for {arch}", text.strip()[:4000])
        code = bytearray(_ok(nvrtc, nvrtc.nvrtcGetCUBINSize(program)))
        _ok(nvrtc, nvrtc.nvrtcGetCUBIN(program, code))
        ptx = bytearray(_ok(nvrtc, nvrtc.nvrtcGetPTXSize(program)))
        _ok(nvrtc, nvrtc.nvrtcGetPTX(program, ptx))
        lowered = {k: _ok(nvrtc, nvrtc.nvrtcGetLoweredName(program, k.encode())).decode() for k in kernels}
    finally:
        nvrtc.nvrtcDestroyProgram(program)
    registers, spills, warnings = read_log(text)
    return Build(bytes(code), bytes(ptx).rstrip(b"\0").decode(), arch, lowered, warnings, registers, spills, given)


def read_log(text: str) -> tuple[dict[str, int], dict[str, int], tuple[str, ...]]:
    """Registers and spill stores by lowered kernel name, and the warnings, of a compiler's log."""
    registers: dict[str, int] = {}
    spills: dict[str, int] = {}
    warnings, name = [], ""
    for line in text.splitlines():
        if match := re.search(r"(?:Function properties for|Compiling entry function) '?([\w$]+)'?", line):
            name = match[1]
        if match := re.search(r"(\d+) bytes spill stores", line):
            spills[name] = int(match[1])
        if match := re.search(r"Used (\d+) registers", line):
            registers[name] = int(match[1])
        if "warning" in line.lower() or WGMMA_SERIALISED in line:
            warnings.append(line.strip())
    return registers, spills, tuple(warnings)


def _ok(nvrtc: Any, result: Any) -> Any:
    status, *values = result
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise BadRequest(f"the compiler failed: {nvrtc.nvrtcGetErrorString(status)[1].decode()}")
    return values[0] if values else None
