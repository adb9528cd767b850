"""Predictions as tables of the standard: a bundle of their own, or added to the experiment of a capture."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from wsformat.bundle import Bundle
from wsformat.errors import BadRequest
from wsformat.prediction import Prediction
from wsformat.provenance import capture_id


def to_bundle(predictions: Sequence[Prediction], *, experiment: str = "", created_unix_ns: int | None = None) -> Bundle:
    """Predictions as a bundle: one capture of kind ``predicted`` each, with its rows, hypothesis and omissions.

    Args:
        predictions: one or more.
        experiment: captures of the same kernel share it; by default what the budget says.
        created_unix_ns: when they were made; by default now.

    Raises:
        BadRequest: none, or the same one twice.
    """
    if not predictions:
        raise BadRequest("no prediction to store")
    now = time.time_ns() if created_unix_ns is None else created_unix_ns
    tables: dict[str, list[dict[str, Any]]] = {
        n: [] for n in ("captures", "roles", "predictions", "findings", "attributes")
    }
    entries = []
    for prediction in predictions:
        here = identity(prediction)
        if any(row["capture_id"] == here for row in tables["captures"]):
            raise BadRequest(f"{prediction.budget.name}: the same prediction twice")
        _store(tables, prediction, here, experiment, now)
        entries.append(
            {"name": prediction.budget.file, "sha256": prediction.budget.sha256, "capture_ids": [here]}
            | {"bytes": -1, "converter": "predict", "dialect": "wsformat_budget", "detected_by": "named by the user"}
            | {"options": {str(k): str(v) for k, v in prediction.budget.settings.items()}}
        )
    return Bundle.from_tables(tables, sources=[{k: v for k, v in e.items() if k != "bytes"} for e in entries])


def identity(prediction: Prediction) -> str:
    """capture_id of a prediction: the same file and settings give the same id."""
    settings = dict(sorted(prediction.budget.settings.items()))
    return capture_id([prediction.budget.sha256], None, {"predict": settings})


def _store(
    tables: dict[str, list[dict[str, Any]]], prediction: Prediction, here: str, experiment: str, now: int
) -> None:
    raw, own = prediction.budget.raw, {"capture_id": here}
    sms = prediction.gpu.values.get("sm_count") if prediction.gpu else None
    tables["captures"].append(
        {
            **own,
            "experiment": experiment or raw.get("experiment", ""),
            "kind": "predicted",
            "label": prediction.budget.name,
        }
        | {n: str(raw.get(n, "")) for n in ("kernel", "task", "dtype", "shape")}
        | {
            "device": prediction.gpu.name if prediction.gpu else "",
            "arch": prediction.gpu.arch if prediction.gpu else "",
        }
        | {"sm_count": int(sms.value) if sms and sms.value else -1, "created_unix_ns": now}
        | {"source_format": "wsformat_budget", "completeness": "complete", "lost_events": 0}
    )
    used = dict.fromkeys([*raw.get("roles", {}), *(row.role for row in prediction.rows if row.role)])
    facts = raw.get("roles", {})
    tables["roles"] += [
        {**own, "role": role, "kind": facts.get(role, {}).get("kind", "other"), "display_order": n}
        for n, role in enumerate(used)
    ]
    tables["predictions"] += [
        {**own, "resource": r.resource, "role": r.role, "loop": raw.get("loop", "main"), "work": r.work}
        | {"work_unit": r.work_unit, "rate": r.rate or None, "rate_unit": r.rate_unit, "cycles": r.cycles}
        | {"formula": r.formula, "kind": r.kind, "is_bottleneck": r.is_bottleneck, "idle_lower_bound": r.idle}
        | {"rate_source": r.rate_source, "dtype": r.dtype, "created_unix_ns": now}
        for r in prediction.rows
    ]
    bound = " and ".join(prediction.bottleneck)
    evidence = {"table": "predictions", "row": {**own, "resource": prediction.bottleneck[0], "role": ""}}
    tables["findings"] += [
        {**own, "kind": "hypothesis", "subject": bound, "expected": prediction.cycles, "unit": "cycle"}
        | {"text": prediction.hypothesis, "evidence": json.dumps(evidence | {"value": prediction.cycles})},
        *({**own, "kind": "omission", "subject": bound, "text": text} for text in prediction.omits),
        *({**own, "kind": "check", "subject": "rate", "verdict": "doubtful", "text": t} for t in prediction.doubts),
    ]
    # The budget itself, so that whoever reconciles has its unit, steps and expectations, and can calculate again.
    tables["attributes"].append(
        {**own, "table_name": "captures", "row_key": "", "name": "budget", "type": "json"}
        | {"value": json.dumps(dict(raw), ensure_ascii=False, sort_keys=True)}
    )


def joined(
    bundle: Bundle, predictions: Sequence[Prediction], capture: str, *, experiment: str = "", force: bool = False
) -> Bundle:
    """A bundle with predictions added to the experiment of one of its captures.

    A capture that stands alone gets an experiment: the one given, else its own id.

    Args:
        bundle: the bundle.
        predictions: to add.
        capture: id of the capture that they belong to.
        experiment: its name.
        force: replace a prediction that is there already.

    Raises:
        BadRequest: the capture is of another experiment, or the prediction is there and ``force`` is false.
    """
    captures = bundle.table("captures").to_pylist()
    own = next((row for row in captures if row["capture_id"] == capture), None)
    if own is None:
        raise BadRequest(f"no capture {capture!r} in the bundle")
    if own["experiment"] and experiment and own["experiment"] != experiment:
        raise BadRequest(f"capture {capture} is of experiment {own['experiment']!r}, not {experiment!r}")
    name = own["experiment"] or experiment or capture
    added = to_bundle(predictions, experiment=name)
    new = set(added.table("captures").column("capture_id").to_pylist())
    there = new & {row["capture_id"] for row in captures}
    if there and not force:
        raise BadRequest("the prediction is in the bundle already; nothing was written", "Use --force to replace it.")
    tables = {}
    for table in added.data:
        mine = bundle.table(table)
        if there:
            mine = mine.filter(pa.array([c not in there for c in mine.column("capture_id").to_pylist()], pa.bool_()))
        tables[table] = pa.concat_tables([mine, added.table(table)], promote_options="permissive")
    rows = tables["captures"].to_pylist()
    for row in rows:
        if row["capture_id"] == capture:
            row["experiment"] = name
    tables["captures"] = pa.Table.from_pylist(rows, schema=tables["captures"].schema)
    result = bundle.with_tables(tables)
    sources = [s for s in bundle.manifest.sources if not set(s.get("capture_ids", ())) & there]
    return replace(result, manifest=replace(bundle.manifest, sources=(*sources, *added.manifest.sources)))
