"""Counter events: every series of every sample is a stamp with the value as its payload."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wsformat.converters.chrome.columns import Arguments, Events, plain_texts
from wsformat.converters.chrome.scan import Trace
from wsformat.converters.interner import Interner
from wsformat.converters.json_members import Members, gather, split
from wsformat.converters.recording import Array, Instants, Recording

INTEGER = r"^-?[0-9]{1,18}$"
PART = 1 << 18
"""Samples that are taken apart at a time."""
NUMBER = r"^-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?$"


def members_of(args: Arguments, number: Array) -> tuple[Array, Members]:
    """The members of many argument objects, without building them: owner is the place in ``number``."""
    listed: Any = pc.binary_join_element_wise(
        args.take(number), pa.scalar(b"", pa.large_binary()), pa.scalar(b",", pa.large_binary())
    )
    offsets = np.frombuffer(listed.buffers()[1], np.int64)[: len(listed) + 1]
    text = np.append(np.frombuffer(listed.buffers()[2], np.uint8)[: offsets[-1]], np.uint8(ord("]")))
    return text, split(text, "arguments")


def counter_events(recording: Recording, trace: Trace, t: Array) -> None:
    """Add the counters to the recording's instants."""
    events = trace.events
    rows = events.of_phase(b"C")
    number = events.args.number(rows)
    bare = int((number < 0).sum())
    if bare:
        trace.losses["counter without a value"] = bare
    rows, number = rows[number >= 0], number[number >= 0]
    series = Interner()
    parts = [_samples(events, rows[at : at + PART], number[at : at + PART], series) for at in range(0, len(rows), PART)]
    if not parts:
        return
    owner, label = (np.concatenate([part[n] for part in parts], axis=-1) for n in (0, 1))
    wanted, names = np.unique(label, axis=1, return_inverse=True)
    names = names.reshape(-1).astype(np.int64)
    first = len(recording.names)
    keys, ids = series.texts(), trace.ids.texts()
    for name, key, native in wanted.T.tolist():
        words = [recording.names[name]] + ([keys[key]] if key >= 0 else []) + ([ids[native]] if native >= 0 else [])
        recording.names.append(".".join(words))
    payload = pa.concat_arrays([part[2] for part in parts])
    whole = pc.match_substring_regex(payload, INTEGER).to_numpy(zero_copy_only=False)
    decimal = pc.match_substring_regex(payload, NUMBER).to_numpy(zero_copy_only=False)
    for place, (odd, text) in enumerate(
        zip(np.bincount(names, ~whole).tolist(), np.bincount(names, ~decimal).tolist(), strict=True)
    ):
        recording.payload_types[first + place] = "text" if text else "float" if odd else "int"
    found = recording.instants
    recording.instants = Instants(
        np.concatenate([found.lane, events.lane[owner]]),
        np.concatenate([found.name, first + names]),
        np.concatenate([found.t, t[owner]]),
        payload if found.payload is None else pa.concat_arrays([found.payload, payload]),
    )


def _samples(events: Events, rows: Array, number: Array, series: Interner) -> tuple[Array, Array, pa.Array]:
    """Of every value of some samples: its event, (name, series or -1 for the only one, id), and its text."""
    text, members = members_of(events.args, number)
    owner = rows[members.owner]
    code = series.codes(text, members.key_begin, members.key_end)
    one = np.bincount(members.owner, minlength=rows.size)[members.owner] == 1
    label = np.stack([np.maximum(events.name[owner], -1), np.where(one, -1, code), events.id[owner]])
    return owner, label, pc.utf8_trim(plain_texts(gather(text, members.value_begin, members.value_end)), '"')
