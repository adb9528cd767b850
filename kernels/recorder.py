"""The recorder: launches a kernel clean and stamped, in turn, and brings back what the stamps wrote."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wsformat.errors import BadRequest
from wsformat.kernels.adopt import Memory, memory, stream_handle
from wsformat.kernels.driver import Device
from wsformat.kernels.gpu_state import GpuState
from wsformat.kernels.passes import StampPass, clean
from wsformat.kernels.recording import CLEAN, Launched, Recording
from wsformat.rolespec import Layout
from wsformat.stamp_times import ANCHOR, META

BLANK = 0xFF
"""Records are filled with this before a launch: one that nobody wrote is told from one that was."""

BLANK_WORD = np.uint64(0xFFFFFFFFFFFFFFFF)
ALIGNMENT = 8
"""Of the buffers: their largest words."""

SEED = 7
"""Of the order of the launches; any will do, a fixed one makes runs alike."""


class StampArgs(ctypes.Structure):
    """``wsf::Args`` of the stamp header: the last parameter of a stamped kernel, by value."""

    _fields_ = (
        ("slots", ctypes.c_uint64),
        ("records", ctypes.c_uint64),
        ("first_cta", ctypes.c_uint32),
        ("cta_step", ctypes.c_uint32),
        ("ctas", ctypes.c_uint32),
        ("anchors", ctypes.c_uint32),
    )


@dataclass(frozen=True)
class Request:
    """What the recorder asks of the user's callable: one launch.

    Attributes:
        number: of the pass, :data:`CLEAN` for the clean one.
        stamp_pass: which build to launch: compiled with its ``defines()``.
        trips: iterations of the main loop to run.
        args: to append to the kernel's arguments, by value; :meth:`numpy` for launchers that take numpy.
        stream: handle of the stream that the recorder was given; 0 is the default stream.
    """

    number: int
    stamp_pass: StampPass
    trips: int
    args: StampArgs
    stream: int = 0

    def numpy(self) -> np.ndarray[Any, Any]:
        """``args`` as a numpy array without dimensions, as CuPy takes a structure by value."""
        return np.array((bytes(self.args),), np.dtype([("args", f"V{ctypes.sizeof(StampArgs)}")]))


class Recorder:
    """Records one kernel.

    Args:
        device: that the kernel runs on.
        spec: role spec as JSON values.
        layout: of a CTA's buffer; the builds must be compiled with it (see :meth:`macros`).
        passes: builds to launch besides the clean one.
        ctas: how many CTAs to record, from ``first_cta`` in steps of ``cta_step``.
        anchors: most readings of both clocks that a CTA makes between its start and its end (``WSF_ANCHOR``).
        wide: slots have 64 bits.
        clean_pass: build without stamps.
        buffers: slots and records to use instead of new ones: arrays of torch, CuPy or others on the device, or
            addresses; at least as many bytes as :meth:`sizes` says, and nobody else's while the recorder runs.
        stream: that the callable launches on: None (the default stream), a stream of torch or CuPy, or its handle.
        timeout_s: how long one launch may take.

    Attributes:
        args: ``wsf::Args`` of every launch.

    Raises:
        BadRequest: no CTA to record, or buffers that are too small or not on the device.
    """

    def __init__(
        self,
        device: Device,
        spec: Mapping[str, Any],
        layout: Layout,
        passes: Sequence[StampPass],
        *,
        ctas: int = 1,
        first_cta: int = 0,
        cta_step: int = 1,
        anchors: int = 0,
        wide: bool = False,
        clean_pass: StampPass | None = None,
        buffers: tuple[Any, Any] | None = None,
        stream: Any = None,
        timeout_s: float = 60.0,
    ) -> None:
        if ctas < 1 or cta_step < 1 or first_cta < 0:
            raise BadRequest(f"record {ctas} CTAs from {first_cta} in steps of {cta_step}: nothing to record")
        self.device, self.spec, self.layout, self.passes = device, dict(spec), layout, list(passes)
        self.clean_pass = clean_pass or clean()
        shape = (ctas, layout.roles, layout.events, layout.iterations)
        self._slots = np.zeros(shape, np.uint64 if wide else np.uint32)
        self._records = np.zeros(ctas, META)
        self._anchors = np.zeros((ctas, anchors), ANCHOR)
        self._stream, self._timeout = stream, timeout_s
        stream_handle(stream)
        self._held = self._adopted(buffers) if buffers else tuple(Memory(device.allocate(n)) for n in self.sizes())
        self.args = StampArgs(
            self._held[0].address,
            self._held[1].address,
            first_cta,
            cta_step,
            ctas,
            anchors,
        )

    def sizes(self) -> tuple[int, int]:
        """Bytes of the slots, and of the records with the anchors behind them."""
        return self._slots.nbytes, self._records.nbytes + self._anchors.nbytes

    def _adopted(self, buffers: tuple[Any, Any]) -> tuple[Memory, ...]:
        held = tuple(memory(b, f"buffer of the {what}") for b, what in zip(buffers, ("slots", "records"), strict=True))
        for one, need, what in zip(held, self.sizes(), ("slots", "records"), strict=True):
            if 0 <= one.size < need:
                raise BadRequest(f"buffer of the {what}: {one.size} bytes, {need} are needed")
            if one.address % ALIGNMENT:
                raise BadRequest(f"buffer of the {what}: begins at {one.address:#x}, no multiple of {ALIGNMENT}")
        return held

    def macros(self) -> dict[str, int]:
        """Settings of the stamp header that every build needs."""
        return {
            "WSF_ROLES": self.layout.roles,
            "WSF_EVENTS": self.layout.events,
            "WSF_ITERATIONS": self.layout.iterations,
        }

    def record(
        self,
        launch: Callable[[Request], None],
        trips: Sequence[int],
        *,
        repeats: int = 10,
        keep: int = 1,
        warm_up: int = 2,
    ) -> Recording:
        """Launch clean and every pass, for each trip count, ``repeats`` times over.

        Neighbouring launches are of different builds in an order that changes, so that neither a slow change of the
        clock nor what the launch before left in the caches favours one; and before each trip count one launch of that
        length goes unrecorded, since after a longer or shorter one the caches hold something else.

        Args:
            launch: starts one launch, by whatever library, on the recorder's stream; need not wait for it.
            trips: two trip counts or more give the loop's slope; the stamps of the largest are kept.
            repeats: launches of each build and trip count.
            keep: of how many launches of each pass the stamps are kept, the last ones.
            warm_up: rounds that are not recorded.

        Raises:
            BadRequest: a fault on the device, or a launch that wrote no record.
        """
        found = Recording(
            self.spec,
            self.layout,
            [{"name": p.name, "events": {str(r): m for r, m in p.events.items()}, **p.macros} for p in self.passes],
            first_cta=self.args.first_cta,
            cta_step=self.args.cta_step,
        )
        _check_plan(trips, repeats, keep, self.passes)
        builds = [(CLEAN, self.clean_pass), *enumerate(self.passes)]
        gpu = GpuState(self.device.bus_id)
        found.states = [gpu.read()]
        order = np.random.default_rng(SEED)
        for turn in range(-warm_up, repeats):
            for count in trips:
                self._one(launch, self._request(CLEAN, self.clean_pass, count), False)
                for number, stamp_pass in (builds[n] for n in order.permutation(len(builds))):
                    with_slots = number != CLEAN and count == max(trips) and turn >= repeats - keep
                    launched = self._one(launch, self._request(number, stamp_pass, count), with_slots)
                    if turn >= 0:
                        found.launches.append(launched)
            found.states.append(gpu.read())
        if not any(found.states):
            found.states = []
        return found

    def _request(self, number: int, stamp_pass: StampPass, trips: int) -> Request:
        return Request(number, stamp_pass, trips, self.args, stream_handle(self._stream))

    def _one(self, launch: Callable[[Request], None], request: Request, with_slots: bool) -> Launched:
        self.device.fill(self.args.slots, 0, self._slots.nbytes)
        self.device.fill(self.args.records, BLANK, self._records.nbytes)
        behind = self.args.records + self._records.nbytes
        if self._anchors.size:
            self.device.fill(behind, 0, self._anchors.nbytes)
        # The callable may use any stream, also one that waits for no other.
        self.device.synchronize()
        self._launch(launch, request)
        records = self.device.download(self.args.records, self._records.copy())
        missing = np.flatnonzero(records["sm"] == np.uint32(0xFFFFFFFF))
        if missing.size:
            raise BadRequest(
                f"pass {request.stamp_pass.name!r}: CTA {int(missing[0])} of {len(records)} wrote no record",
                "Compile the kernel with the pass's defines() and call WSF_BEGIN and WSF_END from all threads.",
            )
        self._check_records(records, request)
        slots = self.device.download(self.args.slots, self._slots.copy()) if with_slots else None
        anchors = self.device.download(behind, self._anchors.copy()) if self._anchors.size else None
        return Launched(request.number, request.trips, records, slots, anchors)

    def _launch(self, launch: Callable[[Request], None], request: Request) -> None:
        """One launch from its start to its end.

        Raises:
            BadRequest: the device refused it or found a fault, or it took too long.
        """
        which = f"pass {request.stamp_pass.name!r}, {request.trips} iterations"
        try:
            launch(request)
            ended = self.device.finish(self._stream, self._timeout)
        except BadRequest as error:
            raise BadRequest(f"{which}: {error}", error.hint or "Try compute-sanitizer on that build.") from error
        except Exception as error:
            error.add_note(f"raised by the callable that launches {which}")
            raise
        if not ended:
            raise BadRequest(
                f"{which}: still running after {self._timeout:g} s",
                "Either a role waits for a signal that never comes, or timeout_s is too short. End this process.",
            )

    @staticmethod
    def _check_records(records: np.ndarray[Any, Any], request: Request) -> None:
        """Refuse records of a launch that did not run as it should.

        Raises:
            BadRequest: a CTA that ended before it began: it never came to WSF_END.
        """
        wrong = np.flatnonzero(
            (records["c1"] < records["c0"]) | (records["c1"] == BLANK_WORD) | (records["g1"] == BLANK_WORD)
        )
        if wrong.size:
            raise BadRequest(
                f"pass {request.stamp_pass.name!r}: CTA {int(wrong[0])} of {len(records)} recorded no end",
                "Call WSF_END from all threads, on every way out of the kernel.",
            )


def _check_plan(trips: Sequence[int], repeats: int, keep: int, passes: Sequence[StampPass]) -> None:
    """Refuse a recording that cannot be read afterwards.

    Raises:
        BadRequest
    """
    if not trips or min(trips) < 1 or len(set(trips)) != len(trips):
        raise BadRequest(f"trip counts {list(trips)}: one or more different positive numbers are needed")
    if repeats < 1 or keep < 0:
        raise BadRequest(f"{repeats} repeats, stamps of {keep} kept: there is nothing to record")
    names = [p.name for p in passes]
    if len(set(names)) != len(names) or "clean" in names:
        raise BadRequest(f"passes {', '.join(names)}: each needs a name of its own, and clean is taken")
