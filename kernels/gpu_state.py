"""Clocks, throttling, temperature and power of a GPU, where NVML can be asked. Reads only; sets nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

READINGS = {
    "sm_clock_mhz": "SM clock, MHz",
    "memory_clock_mhz": "memory clock, MHz",
    "temperature_c": "temperature of the GPU, degrees Celsius",
    "power_w": "power drawn, W",
    "throttle_reasons": "why the clocks are not at their highest, of NVML's names, sorted; empty: for no reason",
}
"""What a state holds; readings that the GPU does not give are absent."""
IDLE = "gpu_idle"
"""Not a reason to worry: the GPU is asked between launches."""
REASON = re.compile(r"nvmlClocks(?:Event|Throttle)Reason(\w+)")


class GpuState:
    """Asks NVML about one GPU; every question gives nothing where NVML is missing.

    Args:
        bus_id: PCI bus id as the driver prints it, such as ``0000:1b:00.0``; NVML counts GPUs in its own order.
        api: the module ``pynvml``, to be replaced in tests.
    """

    def __init__(self, bus_id: str, api: Any = None) -> None:
        self._api: Any = None
        self.why_not = ""
        try:
            if api is None:
                import pynvml

                api = pynvml
            api.nvmlInit()
            self._handle = api.nvmlDeviceGetHandleByPciBusId(bus_id.encode())
            self._api = api
        except ImportError:
            self.why_not = "nvidia-ml-py is not installed"
        except api.NVMLError as error:
            self.why_not = str(error)

    def read(self) -> dict[str, Any]:
        """The state now, of :data:`READINGS` what this GPU gives."""
        api = self._api
        if api is None:
            return {}
        asked: dict[str, Callable[[], Any]] = {
            "sm_clock_mhz": lambda: int(api.nvmlDeviceGetClockInfo(self._handle, api.NVML_CLOCK_SM)),
            "memory_clock_mhz": lambda: int(api.nvmlDeviceGetClockInfo(self._handle, api.NVML_CLOCK_MEM)),
            "temperature_c": lambda: int(api.nvmlDeviceGetTemperature(self._handle, api.NVML_TEMPERATURE_GPU)),
            "power_w": lambda: round(api.nvmlDeviceGetPowerUsage(self._handle) / 1000, 1),
            "throttle_reasons": self._reasons,
        }
        found = {}
        for name, question in asked.items():
            try:
                found[name] = question()
            except api.NVMLError:
                continue
        return found

    def _reasons(self) -> list[str]:
        # Renamed in NVML 12.
        name = "nvmlDeviceGetCurrentClocks{}Reasons"
        ask = getattr(self._api, name.format("Event"), None) or getattr(self._api, name.format("Throttle"))
        mask = int(ask(self._handle))
        return sorted(name for name, bit in reason_bits(self._api).items() if bit & mask)


def reason_bits(api: Any) -> dict[str, int]:
    """Bit of each throttle reason by name, such as ``sw_power_cap``, from the constants that NVML's module has."""
    bits: dict[str, int] = {}
    for constant in dir(api):
        match = REASON.fullmatch(constant)
        value = getattr(api, constant)
        alone = isinstance(value, int) and value > 0 and value & (value - 1) == 0
        if match and alone and value not in bits.values():  # some have two names
            bits[re.sub(r"(?<!^)(?=[A-Z])", "_", match[1]).lower()] = value
    return bits


def changes(states: Sequence[Mapping[str, Any]]) -> list[str]:
    """Sentences about throttle reasons that were not there in every state, idling aside."""
    series = [set(s["throttle_reasons"]) - {IDLE} for s in states if "throttle_reasons" in s]
    every: set[str] = set().union(*series) if series else set()
    return [
        f"The GPU was throttled ({name}) in {sum(name in one for one in series)} of {len(series)} readings: "
        "launches before and after differ in their clock."
        for name in sorted(every)
        if not all(name in one for one in series)
    ]
