"""The device header on a GPU: every sink, clock and window writes its slots and no other, in the order of time."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from wsformat.errors import BadRequest, MissingDependency
from wsformat.kernels import nvrtc
from wsformat.kernels.calibrate import calibrate, native_arch
from wsformat.kernels.driver import Device
from wsformat.kernels.passes import StampPass
from wsformat.kernels.recorder import Recorder, Request
from wsformat.rolespec import Layout

pytestmark = pytest.mark.gpu

LAYOUT = Layout(2, 4, 8)
MASKS = {0: 0b0111, 1: 0b1010}
THREADS = 64
SOURCE = """
#include "wsformat_stamp.cuh"
extern "C" __global__ void kernel(unsigned trips WSF_PARAM) {
    WSF_BEGIN();
    WSF_WRITER(threadIdx.x % 32 == 5);
    if (threadIdx.x < 32) {
        LOOP {
            WSF_STAMP(0, 0, k);
            WSF_HOLD(0, 1, k);
            WSF_HOLD(0, 2, k);
            WSF_STORE(0, 0x6, k);
        }
        WSF_FLUSH(0);
    } else {
        LOOP {
            WSF_HOLD(1, 1, k);
            WSF_STORE(1, 0x8, k - 1);
            WSF_STORE(1, 0x2, k);
            WSF_HOLD(1, 3, k);
        }
        WSF_STORE(1, 0x8, TRIPS - 1);
        WSF_FLUSH(1);
    }
    WSF_END();
}
"""


@pytest.fixture(scope="module")
def device() -> Iterator[Device]:
    try:
        opened = Device()
    except (BadRequest, MissingDependency) as error:
        pytest.skip(str(error))
    with opened:
        yield opened


def recorded(device: Device, trips: int, ctas: int = 1, grid: int = 1, **options: Any) -> tuple[Any, Any]:
    """Slots and records of one launch."""
    select = {k: options.pop(k) for k in ("first_cta", "cta_step") if k in options}
    masks = options.pop("masks", MASKS)
    loop = f'_Pragma("unroll") for (unsigned k = 0; k < {trips}; ++k)'
    if options.get("WSF_SINK") != 2:
        loop = '_Pragma("unroll 1") for (unsigned k = 0; k < trips; ++k)'
    one = StampPass("one", masks, options)
    recorder = Recorder(device, {}, LAYOUT, [one], ctas=ctas, wide=options.get("WSF_CLOCK", 0) != 0, **select)
    functions = {}
    for number, stamp_pass in ((-1, recorder.clean_pass), (0, one)):
        build = nvrtc.build(
            SOURCE.replace("LOOP", loop).replace("TRIPS", str(trips)),
            ["kernel"],
            arch=native_arch(device),
            macros={**recorder.macros(), **stamp_pass.defines()},
        )
        functions[number] = device.function(build.cubin, build.names["kernel"])

    def launch(request: Request) -> None:
        args = [ctypes.c_uint32(request.trips), request.args]
        device.launch(functions[request.number], (grid, 1, 1), (THREADS, 1, 1), 0, args)

    (found,) = [k for k in recorder.record(launch, [trips], repeats=1).launches if k.slots is not None]
    return found.slots, found.records


def expected(count: int, masks: dict[int, int] = MASKS) -> Any:
    written = np.zeros((LAYOUT.roles, LAYOUT.events, LAYOUT.iterations), bool)
    for role, mask in masks.items():
        for event in range(LAYOUT.events):
            written[role, event, : count if mask >> event & 1 else 0] = True
    return written


SETTINGS = [
    {"WSF_SINK": sink, "WSF_CLOCK": clock, **more}
    for sink in (0, 1, 2)
    for clock in (0, 1, 2)
    for more in ({}, {"WSF_DEFER": 0}, {"WSF_BRANCH": 1})
    if sink != 2 or not more
]


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda s: "-".join(f"{k[4:].lower()}{v}" for k, v in s.items()))
def test_every_sink_and_clock(device: Device, settings: dict[str, int]) -> None:
    for trips in (1, 5, 8) if settings["WSF_SINK"] == 2 else (1, 5, 8, 11):
        slots, records = recorded(device, trips, **settings)
        assert np.array_equal(slots[0] != 0, expected(min(trips, LAYOUT.iterations)))
        first, last = ("g0", "g1") if settings["WSF_CLOCK"] == 2 else ("c0", "c1")
        start, end = int(records[first][0]), int(records[last][0])
        times = slots[0].astype(np.uint64)
        if settings["WSF_CLOCK"] == 0:
            times = (start + ((times - np.uint64(start & 0xFFFFFFFF)) & np.uint64(0xFFFFFFFF))).astype(np.uint64)
        used = min(trips, LAYOUT.iterations)
        for role, events in ((0, (0, 1, 2)), (1, (1, 3))):
            line = times[role][list(events), :used].T.ravel().astype(np.int64)
            assert (np.diff(line) >= 0).all(), line
            assert start <= line[0]
            assert line[-1] <= end


@pytest.mark.parametrize("sink", [0, 1])
@pytest.mark.parametrize("defer", [0, 1])
@pytest.mark.parametrize(("begin", "stride"), [(0, 4), (3, 1), (3, 4), (2, 3), (40, 1)])
def test_a_window_of_the_iterations(device: Device, sink: int, defer: int, begin: int, stride: int) -> None:
    trips = 30
    window = {"WSF_FROM": begin, "WSF_STRIDE": stride, "WSF_SINK": sink, "WSF_DEFER": defer}
    every, _ = recorded(device, trips, **window)
    count = min(LAYOUT.iterations, len(range(begin, trips, stride)))
    assert np.array_equal(every[0] != 0, expected(count))
    line = every[0][0][:3, :count].T.ravel()
    assert (np.diff(line.astype(np.int64)).astype(np.int32) >= 0).all()


def test_passes_leave_other_slots_alone(device: Device) -> None:
    for masks in ({0: 0b001}, {1: 0b1000}, {0: 0b110, 1: 0b10}):
        for sink in (0, 1):
            slots, _ = recorded(device, 6, masks=masks, WSF_SINK=sink)
            assert np.array_equal(slots[0] != 0, expected(6, masks))


def test_chosen_ctas(device: Device) -> None:
    for sink in (0, 1):
        slots, records = recorded(device, 4, ctas=3, grid=20, first_cta=2, cta_step=5, WSF_SINK=sink)
        assert all(np.array_equal(one != 0, expected(4)) for one in slots)
        assert len(records) == 3
        assert (records["c1"] > records["c0"]).all()
        assert (records["g1"] >= records["g0"]).all()
        for distance in (records["pad"] & 0xFFFF, records["pad"] >> 16):
            assert ((distance >= 1) & (distance < 1000)).all()


def test_anchors_lie_between_start_and_end(device: Device) -> None:
    source = SOURCE.replace("            WSF_STAMP(0, 0, k);", "            if (threadIdx.x == 5) { WSF_ANCHOR(k); }")
    build_of = {}
    recorder = Recorder(device, {}, LAYOUT, [], ctas=3, first_cta=1, cta_step=2, anchors=4)
    macros = {**recorder.macros(), **recorder.clean_pass.defines()}
    loop = '_Pragma("unroll 1") for (unsigned k = 0; k < trips; ++k)'
    build = nvrtc.build(
        source.replace("LOOP", loop).replace("TRIPS", "6"), ["kernel"], arch=native_arch(device), macros=macros
    )
    build_of[-1] = device.function(build.cubin, build.names["kernel"])

    def launch(request: Request) -> None:
        args = [ctypes.c_uint32(request.trips), request.args]
        device.launch(build_of[-1], (8, 1, 1), (THREADS, 1, 1), 0, args)

    for trips, written in ((2, 2), (6, 4)):
        for one in recorder.record(launch, [trips], repeats=2).launches:
            anchors, records = one.anchors, one.records
            assert anchors is not None
            assert np.array_equal(anchors["c"] != 0, np.arange(4) < np.full((3, 1), written))
            assert (anchors["cta"][:, :written] == np.array([[1], [3], [5]])).all()
            assert ((anchors["distance"][:, :written] >= 1) & (anchors["distance"][:, :written] < 1000)).all()
            for field, first, last in (("c", "c0", "c1"), ("g", "g0", "g1")):
                line = np.column_stack([records[first], anchors[field][:, :written], records[last]]).astype(np.int64)
                assert (np.diff(line) >= 0).all()


def test_calibration(device: Device) -> None:
    cost = calibrate(device, {})
    assert 1 <= cost["stamp"] <= 64
    assert cost["stamp"] < cost["wait_floor"] <= 200
