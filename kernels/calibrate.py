"""What stamps cost by themselves, measured on the device that records."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import numpy as np

from wsformat.kernels import nvrtc
from wsformat.kernels.driver import Device
from wsformat.kernels.passes import StampPass
from wsformat.kernels.recorder import Recorder, Request
from wsformat.rolespec import Layout

TRIPS = 64
LAYOUT = Layout(2, 2, TRIPS)
SELECTION = ("WSF_FROM", "WSF_STRIDE", "WSF_ROLES", "WSF_EVENTS", "WSF_ITERATIONS", "WSF_EVENT_MASK")
"""Settings that say what is stamped, not how."""


def calibrate(device: Device, macros: Mapping[str, Any]) -> dict[str, float]:
    """Ticks that a stamp and a satisfied wait cost.

    Args:
        device: to measure on.
        macros: settings of the stamp header, as of the passes to calibrate for. 32-bit clock.

    Returns:
        ``stamp``: between two stamps with nothing between them; ``wait_floor``: between the stamps around a wait on
        an mbarrier that was satisfied before. Medians over the 64 iterations of one launch, after
        others.
    """
    # What a stamp costs, not which iterations are stamped: the loop here has its own length and events.
    cost = {name: value for name, value in macros.items() if name not in SELECTION}
    both = StampPass("calibrate", {0: 3, 1: 3}, cost)
    recorder = Recorder(device, {}, LAYOUT, [both])
    functions = {}
    for number, stamp_pass in ((-1, recorder.clean_pass), (0, both)):
        build = nvrtc.build(
            (files(__package__) / "calibrate.cu").read_text(),
            ["calibrate"],
            arch=native_arch(device),
            macros={**recorder.macros(), **stamp_pass.defines()},
            name="calibrate.cu",
        )
        functions[number] = device.function(build.cubin, build.names["calibrate"])

    def launch(request: Request) -> None:
        args = [ctypes.c_uint32(request.trips), request.args]
        device.launch(functions[request.number], (1, 1, 1), (32, 1, 1), 0, args)

    (slots,) = (k.slots for k in recorder.record(launch, [TRIPS], repeats=3).launches if k.slots is not None)
    ticks = (slots[0, :, 1] - slots[0, :, 0]).view(np.int32)
    return {"stamp": float(np.median(ticks[0])), "wait_floor": float(np.median(ticks[1]))}


def native_arch(device: Device) -> str:
    """Architecture with the instructions that only this generation has, such as sm_90a."""
    major, minor = device.capability
    return f"sm_{major}{minor}" + ("a" if major >= 9 else "")
