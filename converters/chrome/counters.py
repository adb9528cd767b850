"""Counter events: every series of every sample is a stamp with the value as its payload."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wsformat.converters.chrome.scan import Trace
from wsformat.converters.interner import Interner
from wsformat.converters.json_members import Members, gather, split
from wsformat.converters.recording import Array, Instants, Recording

INTEGER = r"^-?[0-9]{1,18}$"
NUMBER = r"^-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?$"


def members_of(args: pa.ChunkedArray, number: Array) -> tuple[Array, Members]:
    """The members of many argument objects, without building them: owner is the place in ``number``."""
    blobs = args.take(pa.array(number)).to_pylist()
    text = np.frombuffer(b",".join(blobs) + b"]", np.uint8)
    return text, split(text, "arguments")


def counter_events(recording: Recording, trace: Trace, t: Array, args: Array) -> None:
    """Add the counters to the recording's instants."""
    events = trace.events
    rows = np.flatnonzero((events.phase == ord("C")) & (args >= 0))
    bare = int((events.phase == ord("C")).sum()) - rows.size
    if bare:
        trace.losses["counter without a value"] = bare
    if not rows.size:
        return
    text, members = members_of(events.args, args[rows])
    owner = rows[members.owner]
    series = Interner()
    code = series.codes(text, members.key_begin, members.key_end)
    one = np.bincount(members.owner, minlength=rows.size)[members.owner] == 1
    label = np.stack([np.maximum(events.name[owner], -1), np.where(one, -1, code), events.id[owner]])
    wanted, inverse = np.unique(label, axis=1, return_inverse=True)
    first = len(recording.names)
    keys, ids = series.texts(), trace.ids.texts()
    for name, key, native in wanted.T.tolist():
        parts = [recording.names[name]] + ([keys[key]] if key >= 0 else []) + ([ids[native]] if native >= 0 else [])
        recording.names.append(".".join(parts))
    names = first + inverse.reshape(-1).astype(np.int64)
    values: Any = gather(text, members.value_begin, members.value_end)
    payload = pc.utf8_trim(pc.cast(values, pa.string()), '"')
    whole = pc.match_substring_regex(payload, INTEGER).to_numpy(zero_copy_only=False)
    number = pc.match_substring_regex(payload, NUMBER).to_numpy(zero_copy_only=False)
    for name in np.unique(names).tolist():
        mine = names == name
        recording.payload_types[name] = "int" if whole[mine].all() else "float" if number[mine].all() else "text"
    found = recording.instants
    recording.instants = Instants(
        np.concatenate([found.lane, events.lane[owner].astype(np.int64)]),
        np.concatenate([found.name, names]),
        np.concatenate([found.t, t[owner]]),
        payload if found.payload is None else pa.concat_arrays([found.payload, payload]),
    )
