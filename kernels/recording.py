"""What a recorder brought back from the device, kept as it is, and its decoding to a bundle. Needs no GPU."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from wsformat.errors import MalformedInput
from wsformat.rolespec import Layout
from wsformat.stamp_times import ANCHOR, META

Array = np.ndarray[Any, Any]
CLEAN = -1
"""Pass number of a clean launch."""
VERSION = 1
STORED = ("passes", "facts", "builds", "calibration", "grid")
"""Attributes of a recording that its file holds as JSON."""
LATER = ("tiles", "first_cta", "cta_step", "states")
"""The same; files written before these came lack them."""


@dataclass(frozen=True)
class Launched:
    """One launch.

    Attributes:
        number: of the pass, :data:`CLEAN` for a clean one.
        trips: iterations of the main loop.
        records: one a recorded CTA, ``stamp_times.META``.
        slots: ``[cta, role, event, iteration]``, None when only the records were kept.
        anchors: ``[cta, anchor]`` of ``stamp_times.ANCHOR``, zero where a CTA made none; None without any.
    """

    number: int
    trips: int
    records: Array
    slots: Array | None = None
    anchors: Array | None = None


@dataclass
class Recording:
    """Launches of one kernel in one experiment, in the order in which they ran.

    Attributes:
        spec: role spec as JSON values.
        layout: of a CTA's buffer.
        passes: name, events and macros of each, as JSON values.
        facts: columns of captures, such as device and shape.
        builds: per pass, and under ``clean``: registers, spills, code size, warnings.
        launches: in order.
        calibration: ticks that a stamp and a satisfied wait cost by themselves.
        grid: x, y, z and block x, y, z of the launches.
        first_cta, cta_step: linear index in the grid of the first recorded CTA, and from one to the next.
        states: of the GPU, before the first launch and after each round; see ``gpu_state.READINGS``.
        tiles: of a persistent kernel, how many iterations of each loop make one tile in the launches with slots.
    """

    spec: Mapping[str, Any]
    layout: Layout
    passes: Sequence[Mapping[str, Any]]
    facts: Mapping[str, Any] = field(default_factory=dict)
    builds: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    launches: list[Launched] = field(default_factory=list)
    calibration: Mapping[str, float] = field(default_factory=dict)
    grid: Sequence[int] = (-1, -1, -1, -1, -1, -1)
    tiles: Mapping[str, int] = field(default_factory=dict)
    first_cta: int = 0
    cta_step: int = 1
    states: list[Mapping[str, Any]] = field(default_factory=list)

    def lifetimes(self, number: int, trips: int) -> Array:
        """Median lifetime of the CTAs, in ticks: one for each launch of a pass.

        Args:
            number: of the pass, -1 the clean build.
            trips: iterations of the main loop of the launches to take.
        """
        found = [k.records for k in self.launches if k.number == number and k.trips == trips]
        return np.array([np.median((r["c1"] - r["c0"]).astype(np.int64)) for r in found])

    def slope(self, number: int) -> float:
        """Ticks an iteration: difference of median lifetimes over difference of trip counts; NaN with one count."""
        trips = sorted({k.trips for k in self.launches if k.number == number})
        if len(trips) < 2:
            return float("nan")
        low, high = (float(np.median(self.lifetimes(number, n))) for n in trips[-2:])
        return (high - low) / (trips[-1] - trips[-2])

    def perturbation(self, number: int) -> float:
        """What the stamps of a pass did to the loop: its slope over the clean slope, minus 1."""
        return self.slope(number) / self.slope(CLEAN) - 1

    def save(self, path: Path) -> None:
        """Write everything to one ``.npz``."""
        arrays: dict[str, Array] = {
            "number": np.array([k.number for k in self.launches], np.int32),
            "trips": np.array([k.trips for k in self.launches], np.int64),
            "records": np.stack([k.records for k in self.launches]),
            "kept": np.array([n for n, k in enumerate(self.launches) if k.slots is not None], np.int32),
        }
        kept = [k.slots for k in self.launches if k.slots is not None]
        if kept:
            arrays["slots"] = np.stack(kept)
        anchors = [k.anchors for k in self.launches if k.anchors is not None]
        if anchors:
            arrays["anchors"] = np.stack(anchors)
        about = {
            "wsformat_recording": VERSION,
            "spec": self.spec,
            "layout": [self.layout.roles, self.layout.events, self.layout.iterations],
            **{name: getattr(self, name) for name in (*STORED, *LATER)},
        }
        np.savez_compressed(path, about=np.array(json.dumps(about)), **arrays)  # type: ignore[arg-type]

    @staticmethod
    def load(path: Path) -> Recording:
        """Read what :meth:`save` wrote.

        Raises:
            MalformedInput: it is no recording, or a broken one.
        """
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as data:
                about = json.loads(str(data["about"]))
                if about.get("wsformat_recording") != VERSION:
                    raise MalformedInput(f"{path}: recording of version {about.get('wsformat_recording')}")
                kept = dict(zip(data["kept"].tolist(), data["slots"] if "slots" in data.files else (), strict=True))
                numbers = data["number"].tolist()
                anchors = data["anchors"].astype(ANCHOR) if "anchors" in data.files else [None] * len(numbers)
                each = zip(numbers, data["trips"].tolist(), data["records"], anchors, strict=True)
                launches = [
                    Launched(number, trips, records.astype(META), kept.get(n), readings)
                    for n, (number, trips, records, readings) in enumerate(each)
                ]
                return Recording(
                    about["spec"],
                    Layout(*about["layout"]),
                    about["passes"],
                    launches=launches,
                    **{name: about[name] for name in STORED if name != "passes"},
                    **{name: about[name] for name in LATER if name in about},
                )
        except (OSError, KeyError, ValueError, TypeError, EOFError, zipfile.BadZipFile) as error:
            raise MalformedInput(f"{path}: no recording: {error}") from error
