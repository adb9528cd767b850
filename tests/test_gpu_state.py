"""Clocks and throttling beside a recording: NVML is replaced by a stand-in with its names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from wsformat.kernels.gpu_state import READINGS, GpuState, changes, reason_bits
from wsformat.kernels.recording import CLEAN, Launched, Recording
from wsformat.kernels.remarks import rates, remarks
from wsformat.rolespec import Layout
from wsformat.stamp_times import META


class Nvml:
    """The part of the module ``pynvml`` that is asked."""

    class NVMLError(Exception):
        pass

    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0
    nvmlClocksThrottleReasonGpuIdle = 1
    nvmlClocksThrottleReasonSwPowerCap = 4
    nvmlClocksEventReasonSwPowerCap = 4
    nvmlClocksEventReasonHwThermalSlowdown = 64
    nvmlClocksThrottleReasonNone = 0
    nvmlClocksThrottleReasonAll = 255

    def __init__(self, mask: int = 0, dead: bool = False, no_power: bool = False) -> None:
        self.mask, self.dead, self.no_power = mask, dead, no_power

    def nvmlInit(self) -> None:
        if self.dead:
            raise self.NVMLError("Driver Not Loaded")

    def nvmlDeviceGetHandleByPciBusId(self, bus: bytes) -> str:
        return bus.decode()

    def nvmlDeviceGetClockInfo(self, handle: str, which: int) -> int:
        return {1: 1755, 2: 3201}[which]

    def nvmlDeviceGetTemperature(self, handle: str, which: int) -> int:
        return 41

    def nvmlDeviceGetPowerUsage(self, handle: str) -> int:
        if self.no_power:
            raise self.NVMLError("Not Supported")
        return 312_345

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle: str) -> int:
        return self.mask


def test_a_state() -> None:
    got = GpuState("0000:1b:00.0", Nvml(mask=5)).read()
    assert got == {
        "sm_clock_mhz": 1755,
        "memory_clock_mhz": 3201,
        "temperature_c": 41,
        "power_w": 312.3,
        "throttle_reasons": ["gpu_idle", "sw_power_cap"],
    }
    assert set(got) == set(READINGS)


def test_what_the_gpu_does_not_give_is_absent() -> None:
    assert "power_w" not in GpuState("x", Nvml(no_power=True)).read()
    dead = GpuState("x", Nvml(dead=True))
    assert (dead.read(), dead.why_not) == ({}, "Driver Not Loaded")


def test_the_older_name_of_the_question() -> None:
    class Old(Nvml):
        nvmlDeviceGetCurrentClocksEventReasons: Any = None

        def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: str) -> int:
            return 64

    assert GpuState("x", Old()).read()["throttle_reasons"] == ["hw_thermal_slowdown"]


def test_names_of_reasons() -> None:
    assert reason_bits(Nvml()) == {"gpu_idle": 1, "sw_power_cap": 4, "hw_thermal_slowdown": 64}
    pynvml = pytest.importorskip("pynvml")
    bits = reason_bits(pynvml)
    assert {"gpu_idle", "sw_power_cap", "hw_slowdown", "sw_thermal_slowdown", "hw_power_brake_slowdown"} <= set(bits)
    assert len(set(bits.values())) == len(bits)


def test_throttling_that_came_or_went_is_said() -> None:
    idle, capped = {"throttle_reasons": ["gpu_idle"]}, {"throttle_reasons": ["sw_power_cap"]}
    assert changes([]) == changes([{}]) == changes([idle, {"throttle_reasons": []}]) == changes([capped, capped]) == []
    (text,) = changes([idle, capped, capped])
    assert "(sw_power_cap) in 2 of 3 readings" in text


def recording(ghz: dict[int, float], **more: Any) -> Recording:
    launches = []
    for number, rate in ghz.items():
        records = np.zeros(2, META)
        records["g1"], records["c1"] = 100_000, round(100_000 * rate)
        launches.append(Launched(number, 8, records))
    passes = [{"name": name} for name in ("all", "waits")]
    return Recording({}, Layout(1, 1, 8), passes, launches=launches, **more)


def test_a_clock_that_differs_between_clean_and_stamped_is_said() -> None:
    found = recording({CLEAN: 1.75, 0: 1.75, 1: 1.6})
    assert rates(found, 0) == (pytest.approx(1.75), pytest.approx(64 / 100_000))
    ((subject, text),) = remarks(found, [0, 1])
    assert subject == "clock"
    assert "Pass waits: the SM clock ran at 1.600 GHz, clean launches at 1.750 GHz (-8.6%)" in text
    assert remarks(recording({CLEAN: 1.75, 0: 1.74}), [0]) == []
    # A CTA so short that the timer's step is most of it proves nothing.
    short = recording({CLEAN: 1.75, 0: 1.75})
    for k in short.launches:
        k.records["g1"], k.records["c1"] = 640, 1100 if k.number == CLEAN else 1180
    assert remarks(short, [0]) == []
    assert np.isnan(rates(recording({}), CLEAN)[0])


SERIAL = {"wgmma_serialised": True}


@pytest.mark.parametrize(
    ("builds", "says"),
    [
        ({"clean": {}, "all": {}}, []),
        ({"clean": {}, "all": SERIAL}, ["Pass all: the stamps made the assembler serialise"]),
        ({"clean": SERIAL, "all": SERIAL}, ["wgmma instructions of the clean build"]),
        ({"clean": {"local_bytes": 0}, "all": {"local_bytes": 24}}, ["Pass all: spills 24 bytes a thread"]),
        ({"clean": {"local_bytes": 8}, "all": {"spill_bytes": 8}}, []),
        (
            {"clean": {"spill_bytes": 8}, "all": {"spill_bytes": 16}},
            ["spills 16 bytes a thread to local memory, the clean build 8"],
        ),
    ],
    ids=["plain", "serialised", "both", "local", "same", "more"],
)
def test_builds_that_are_not_what_they_seem(builds: dict[str, Any], says: list[str]) -> None:
    found = remarks(recording({CLEAN: 1.7, 0: 1.7}, builds=builds), [0])
    assert [subject for subject, _ in found] == ["build"] * len(says)
    for (_, text), part in zip(found, says, strict=True):
        assert part in text
