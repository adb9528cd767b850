"""The recorder: launches a kernel clean and stamped, in turn, and brings back what the stamps wrote."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wsformat.errors import BadRequest
from wsformat.kernels.driver import Device
from wsformat.kernels.passes import StampPass, clean
from wsformat.kernels.recording import CLEAN, Launched, Recording
from wsformat.rolespec import Layout
from wsformat.stamp_times import ANCHOR, META

BLANK = 0xFF
"""Records are filled with this before a launch: one that nobody wrote is told from one that was."""

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
        args: to append to the kernel's arguments, by value; ``bytes(args)`` for other launchers.
    """

    number: int
    stamp_pass: StampPass
    trips: int
    args: StampArgs


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

    Attributes:
        args: ``wsf::Args`` of every launch.
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
    ) -> None:
        if ctas < 1 or cta_step < 1 or first_cta < 0:
            raise BadRequest(f"record {ctas} CTAs from {first_cta} in steps of {cta_step}: nothing to record")
        self.device, self.spec, self.layout, self.passes = device, dict(spec), layout, list(passes)
        self.clean_pass = clean_pass or clean()
        shape = (ctas, layout.roles, layout.events, layout.iterations)
        self._slots = np.zeros(shape, np.uint64 if wide else np.uint32)
        self._records = np.zeros(ctas, META)
        self._anchors = np.zeros((ctas, anchors), ANCHOR)
        self.args = StampArgs(
            device.allocate(self._slots.nbytes),
            device.allocate(self._records.nbytes + self._anchors.nbytes),
            first_cta,
            cta_step,
            ctas,
            anchors,
        )

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
            launch: starts one launch on the default stream; need not wait for it.
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
        builds = [(CLEAN, self.clean_pass), *enumerate(self.passes)]
        order = np.random.default_rng(SEED)
        for turn in range(-warm_up, repeats):
            for count in trips:
                self._one(launch, Request(CLEAN, self.clean_pass, count, self.args), False)
                for number, stamp_pass in (builds[n] for n in order.permutation(len(builds))):
                    with_slots = number != CLEAN and count == max(trips) and turn >= repeats - keep
                    launched = self._one(launch, Request(number, stamp_pass, count, self.args), with_slots)
                    if turn >= 0:
                        found.launches.append(launched)
        return found

    def _one(self, launch: Callable[[Request], None], request: Request, with_slots: bool) -> Launched:
        self.device.fill(self.args.slots, 0, self._slots.nbytes)
        self.device.fill(self.args.records, BLANK, self._records.nbytes)
        behind = self.args.records + self._records.nbytes
        if self._anchors.size:
            self.device.fill(behind, 0, self._anchors.nbytes)
        launch(request)
        self.device.synchronize()
        records = self.device.download(self.args.records, self._records.copy())
        missing = np.flatnonzero(records["sm"] == np.uint32(0xFFFFFFFF))
        if missing.size:
            raise BadRequest(
                f"pass {request.stamp_pass.name!r}: CTA {int(missing[0])} of {len(records)} wrote no record",
                "Compile the kernel with the pass's defines() and call WSF_BEGIN and WSF_END from all threads.",
            )
        slots = self.device.download(self.args.slots, self._slots.copy()) if with_slots else None
        anchors = self.device.download(behind, self._anchors.copy()) if self._anchors.size else None
        return Launched(request.number, request.trips, records, slots, anchors)
