"""Invalid bundles whose rows break a rule: each takes a good bundle and changes as little as it can."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import bundles
from bundles import A, B, Row, Rows


class RowCase(NamedTuple):
    """One invalid bundle: a good one, and what is changed in its rows."""

    code: str
    note: str
    base: Callable[[], Rows]
    change: Callable[[Rows], Any]
    sources: list[Row] | None = None


def put(table: str, index: int, **values: Any) -> Callable[[Rows], Any]:
    """Set values in one row."""
    return lambda t: t[table][index].update(values)


def add(table: str, like: int | None = None, **values: Any) -> Callable[[Rows], Any]:
    """Append a row, by default one of nothing but defaults; ``like`` copies another row."""
    return lambda t: t.setdefault(table, []).append(
        {**(t[table][like] if like is not None else {"capture_id": A}), **values}
    )


def both(*changes: Callable[[Rows], Any]) -> Callable[[Rows], Any]:
    return lambda t: [change(t) for change in changes]


def stamp(lane: int, event: str, iteration: int, **values: Any) -> Callable[[Rows], Any]:
    """Set values of one stamp."""

    def change(tables: Rows) -> None:
        for row in tables["events"]:
            if (row["lane"], row["event"], row["iteration"]) == (lane, event, iteration):
                row.update(values)

    return change


def drop_stamps(lane: int, event: str, *iterations: int) -> Callable[[Rows], Any]:
    """Leave out stamps, and count the lane's records anew."""

    def change(tables: Rows) -> None:
        gone = {(lane, event, iteration) for iteration in iterations}
        tables["events"] = [r for r in tables["events"] if (r["lane"], r["event"], r["iteration"]) not in gone]
        kept = sum(row["lane"] == lane for row in tables["events"])
        tables["lanes"][lane].update(records_kept=kept, records_expected=kept)

    return change


def attribute(**values: Any) -> Callable[[Rows], Any]:
    row = {"table_name": "captures", "row_key": "", "name": "note", "type": "text", "value": "x"}
    return add("attributes", **{**row, **values})


def finding(**values: Any) -> Callable[[Rows], Any]:
    return add("findings", **{"kind": "conclusion", "subject": "x", "text": "x", **values})


def other_clock(tables: Rows) -> None:
    """Move lane 0 of the stored spans to a clock of its own."""
    tables["clocks"].append({**tables["clocks"][0], "clock": 1})
    for row in [tables["lanes"][0], *(s for s in tables["spans"] if s["lane"] == 0)]:
        row["clock"] = 1


def two_sms(tables: Rows) -> None:
    for row in [tables["lanes"][1], *(e for e in tables["events"] if e["lane"] == 1)]:
        row["sm"] = 4


def second_cta(tables: Rows) -> None:
    """Another CTA beside the first on its SM, which holds one at a time."""
    tables["launches"][0].update(grid_x=2)
    tables["lanes"].append(
        {**tables["lanes"][0], "lane": len(tables["lanes"]), "cta": 1, "name": "CTA 1", "t_start": 90}
    )


def across(tables: Rows) -> None:
    """Edges that reach over the whole grid; the last signal of the producer comes 14,000 ticks late."""
    for edge in tables["dependencies"]:
        edge["scope"] = "device"
    stamp(1, "signal", 3, t=15_400)(tables)


def extra_cta(**values: Any) -> Callable[[Rows], Any]:
    return add("lanes", lane=2, launch=0, kind="cta", completeness="complete", records_lost=0, wraps=0, **values)


ring, anchored, spans = bundles.ring, bundles.anchored, bundles.stored_spans
minimal, predictions, metrics = bundles.minimal, bundles.predictions, bundles.metrics

CASES: tuple[RowCase, ...] = (
    RowCase("I211", "manifest.sources is empty", minimal, lambda t: None, []),
    RowCase("E212", "a source names a capture that is not there", minimal, lambda t: None, [bundles.source(A, B)]),
    RowCase(
        "E401",
        "completeness 'partial' is not in the closed vocabulary",
        minimal,
        put("captures", 0, completeness="partial"),
    ),
    RowCase(
        "W402", "capture kind 'guessed' is not in the open vocabulary", minimal, put("captures", 0, kind="guessed")
    ),
    RowCase(
        "E403",
        "the last signal of the producer lies before the one of the iteration before",
        ring,
        both(stamp(0, "signal", 2, t=1340), stamp(0, "signal", 3, t=1330)),
    ),
    RowCase("E404", "sequence -2: the least value is -1", ring, put("launches", 0, sequence=-2)),
    RowCase("E405", "confidence 1.5 is above 1", minimal, finding(confidence=1.5)),
    RowCase(
        "E406",
        "a capture_id in capital letters",
        lambda: ring(A),
        lambda t: [r.update(capture_id=A.upper()) for rows in t.values() for r in rows],
        [bundles.source(A.upper())],
    ),
    RowCase("E407", "an attribute without a name", minimal, attribute(name="")),
    RowCase("W408", "the colour 'red' is not #rrggbb", ring, put("roles", 0, colour="red")),
    RowCase("E409", "a metric of infinite value", metrics, put("metrics", 0, value=float("inf"))),
    RowCase(
        "E410",
        "the payload 'many' of an event whose payload_type is int",
        ring,
        both(put("event_types", 2, payload_type="int"), stamp(0, "signal", 1, payload="many")),
    ),
    RowCase("E411", "an attribute of type int with the value '1.5'", minimal, attribute(type="int", value="1.5")),
    RowCase("E412", "evidence that is no JSON", minimal, finding(evidence="{view: wait}")),
    RowCase("W413", "arch 'SM_90a' in capital letters", minimal, put("captures", 0, arch="SM_90a")),
    RowCase("E501", "two rows for launch 0", ring, add("launches", 0, sequence=1)),
    RowCase("E502", "a launch of a capture that captures does not have", ring, add("launches", 0, capture_id=B)),
    RowCase(
        "E503",
        "a lane of launch 1, which launches does not have",
        ring,
        add("lanes", 1, lane=2, launch=1, records_kept=0, records_expected=0),
    ),
    RowCase("E504", "an edge from lane 9, which lanes does not have", spans, put("edges", 0, from_lane=9)),
    RowCase(
        "E505",
        "a prediction for role 'epilogue', which roles does not have",
        predictions,
        put("predictions", 1, role="epilogue"),
    ),
    RowCase(
        "E506",
        "a stamp of an event that event_types does not have",
        ring,
        both(add("events", 0, event="flush", t=1399), put("lanes", 0, records_kept=13, records_expected=13)),
    ),
    RowCase("E507", "a stored span that span_types does not have", spans, put("spans", 0, span="store")),
    RowCase("E508", "an edge from span 99, which spans does not have", spans, put("edges", 0, from_span_id=99)),
    RowCase("E509", "a stamp says warp 1, its lane warp 0", ring, put("events", 0, warp=1)),
    RowCase(
        "E510",
        "a span type that begins with an event that is not declared",
        ring,
        both(
            add("roles", 0, role="idle", iteration_event="", display_order=2),
            add("event_types", 0, role="idle", event="signal"),
            add("span_types", 1, role="idle", span="tail", begin_event="tail_begin"),
        ),
    ),
    RowCase(
        "E511",
        "a dependency from an event that its role does not declare",
        ring,
        put("dependencies", 0, producer_event="commit"),
    ),
    RowCase(
        "E512", "an iteration_event that its role does not declare", ring, put("roles", 0, iteration_event="loop_top")
    ),
    RowCase(
        "W513",
        "lanes 0 and 1, then 3",
        ring,
        add("lanes", 1, lane=3, cta=0, warp=8, role="", records_kept=0, records_expected=0),
    ),
    RowCase("W514", "an attribute of lane 7, which is not there", minimal, attribute(table_name="lanes", row_key="7")),
    RowCase(
        "E601",
        "a launch that starts on clock 5, which clocks does not have",
        ring,
        put("launches", 0, clock=5, t_start=1),
    ),
    RowCase("E602", "a span ends on a lane of another clock, and there are no anchors", spans, other_clock),
    RowCase("W603", "a cycle clock of 12 kHz", ring, put("clocks", 0, hz_nominal=12_000.0)),
    RowCase(
        "E604",
        "the later anchor has the earlier reference time",
        anchored,
        put("clock_anchors", 1, reference_t=1_789_999_999_999_999_999),
    ),
    RowCase("W605", "step_ticks 32, yet stamps lie 10 ticks apart", ring, put("clocks", 0, step_ticks=32)),
    RowCase("E606", "the reference clock counts cycles", anchored, put("clocks", 1, unit="cycle")),
    RowCase(
        "E607",
        "a clock that is anchored to itself",
        anchored,
        add("clock_anchors", 0, t=5, reference_clock=0, reference_t=5),
    ),
    RowCase("E608", "two lanes on two SMs share one clock of scope sm", ring, two_sms),
    RowCase("I609", "the source assumed 1 GHz", ring, put("clocks", 0, assumption="1 GHz")),
    RowCase(
        "E610",
        "two CTAs on an SM at once, max_ctas_per_sm is 1",
        anchored,
        both(second_cta, attribute(table_name="launches", row_key="0", name="max_ctas_per_sm", type="int", value="1")),
    ),
    RowCase("W611", "a CTA lives 16,000 ns, its launch lasts 10,000", anchored, put("launches", 0, duration_ns=10_000)),
    RowCase("E612", "a wait ends long before the signal that it needs from another CTA", anchored, across),
    RowCase("W613", "1.5625 GHz by the anchors, hz_nominal is 1.2 GHz", anchored, put("clocks", 0, hz_nominal=1.2e9)),
    RowCase(
        "I614",
        "a third anchor half way, 500 ns off the line of the other two",
        anchored,
        add("clock_anchors", 0, t=12_500, reference_t=1_790_000_000_000_008_500),
    ),
    RowCase(
        "W615",
        "25,000 cycles in 10,000 ns, the highest clock of an H200 is 1.98 GHz",
        anchored,
        both(
            put("clock_anchors", 1, reference_t=1_790_000_000_000_010_000),
            lambda t: (t["captures"][0].update(device="NVIDIA H200"), t["clocks"][0].update(hz_nominal=None)),
        ),
    ),
    RowCase(
        "E701",
        "a stored span that ends before it begins",
        spans,
        lambda t: t["spans"][0].update(t1=t["spans"][0]["t0"] - 32),
    ),
    RowCase("E702", "the work of the last iteration ends before it begins", ring, stamp(0, "signal", 3, t=1305)),
    RowCase(
        "E703",
        "lag -2 where the ring has two stages: waits end long before the signals that they name",
        ring,
        put("dependencies", 1, iteration_lag=-2),
    ),
    RowCase(
        "E704",
        "two stamps of one event in one iteration",
        ring,
        both(add("events", 0, t=1001), put("lanes", 0, records_kept=13, records_expected=13)),
    ),
    RowCase(
        "W705",
        "a declared span that no lane ever recorded",
        ring,
        both(
            add("event_types", 0, event="tail_begin", event_index=3),
            add("event_types", 0, event="tail_end", event_index=4),
            add("span_types", 1, span="tail", begin_event="tail_begin", end_event="tail_end"),
        ),
    ),
    RowCase("I706", "the last wait of the consumer has no end", ring, drop_stamps(1, "wait_end", 3)),
    RowCase(
        "E707",
        "a complete lane that lost records",
        ring,
        both(put("lanes", 0, records_lost=2, records_expected=12), put("captures", 0, lost_events=2)),
    ),
    RowCase(
        "E708", "records_kept 20 on a lane of 12 stamps", ring, put("lanes", 0, records_kept=20, records_expected=20)
    ),
    RowCase("E709", "a complete capture with a truncated lane", ring, put("lanes", 0, completeness="truncated")),
    RowCase("E710", "lost_events 5, the lanes lost none", ring, put("captures", 0, lost_events=5)),
    RowCase("E711", "stamps after the end of their CTA", anchored, put("lanes", 0, t_end=1200)),
    RowCase("E712", "a lane that ends before it starts", ring, extra_cta(cta=0, sm=3, clock=-1, t_start=50, t_end=20)),
    RowCase("I713", "a dependency whose steps are 0", ring, put("dependencies", 1, producer_step=0, consumer_step=0)),
    RowCase("E714", "producer_step 0 with consumer_step 1", ring, put("dependencies", 1, producer_step=0)),
    RowCase("E715", "a metric without a value and without a reason", metrics, put("metrics", 0, value=None)),
    RowCase(
        "E716",
        "511 cycles for 2097152 flop at 4096 a cycle",
        predictions,
        both(put("predictions", 0, cycles=511.0), put("predictions", 2, idle_lower_bound=1 - 128 / 511)),
    ),
    RowCase(
        "E717",
        "the bottleneck is marked on the resource that needs fewer cycles",
        predictions,
        both(put("predictions", 0, is_bottleneck=False), put("predictions", 2, is_bottleneck=True)),
    ),
    RowCase(
        "E718",
        "idle_lower_bound 0.5 where 1 - 128/512 is 0.75",
        predictions,
        put("predictions", 2, idle_lower_bound=0.5),
    ),
    RowCase("I719", "a wait on a barrier into which no dependency leads", ring, lambda t: t["dependencies"].pop()),
    RowCase(
        "E720",
        "a span type with a begin_event and no end_event",
        ring,
        both(
            add("roles", 0, role="idle", iteration_event="", display_order=2),
            add("event_types", 0, role="idle"),
            add("span_types", 0, role="idle", span="open", end_event="", state="scope", wait_on=""),
        ),
    ),
    RowCase(
        "I721",
        "iteration 1 of one event is missing in a complete lane",
        ring,
        both(
            lambda t: t["event_types"].append({**t["event_types"][0], "event": "mark", "event_index": 3}),
            add("events", 0, event="mark", iteration=0, t=1051),
            add("events", 0, event="mark", iteration=2, t=1251),
            put("lanes", 0, records_kept=14, records_expected=14),
        ),
    ),
    RowCase("E722", "iteration 3 in a launch of 3 slots", ring, put("launches", 0, slots=3, trip_count=3)),
    RowCase(
        "E723", "128 iterations over 4 slots, yet the lanes are complete", ring, put("launches", 0, trip_count=128)
    ),
    RowCase("E724", "a clean launch with stamps", ring, put("launches", 0, kind="clean")),
    RowCase("E725", "a lane of CTA 3 in a grid of one", ring, extra_cta(cta=3)),
    RowCase("W726", "SM 200 of 132", ring, extra_cta(cta=0, sm=200)),
    RowCase(
        "E727",
        "the span that was cut off ends after the lane's last record",
        spans,
        lambda t: t["spans"][3].update(t1=t["spans"][3]["t1"] + 640),
    ),
)
