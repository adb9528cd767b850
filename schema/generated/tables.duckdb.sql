-- Tables of wsformat 0.1, DuckDB dialect. Made by wsformat.generate from schema/.
-- Keys are not declared: an index costs more than these files; the validator checks them.

CREATE TABLE captures (
    capture_id VARCHAR NOT NULL,
    experiment VARCHAR,
    kind VARCHAR NOT NULL,
    kernel VARCHAR,
    label VARCHAR,
    task VARCHAR,
    version VARCHAR,
    device VARCHAR,
    arch VARCHAR,
    sm_count INTEGER NOT NULL,
    dtype VARCHAR,
    shape VARCHAR,
    input_data VARCHAR,
    created_unix_ns BIGINT NOT NULL,
    source_format VARCHAR,
    completeness VARCHAR NOT NULL,
    lost_events BIGINT NOT NULL,
    stamp_sink VARCHAR NOT NULL,
    stamp_set VARCHAR
);
COMMENT ON TABLE captures IS 'One row is one capture: one import, one recording or one prediction.';
COMMENT ON COLUMN captures.capture_id IS 'The capture that this row belongs to.';
COMMENT ON COLUMN captures.experiment IS 'Captures that belong together (stamped, clean, profiled, predicted) share it; '''' stands alone.';
COMMENT ON COLUMN captures.kind IS 'What the capture mainly holds.';
COMMENT ON COLUMN captures.kernel IS 'The kernel''s name as the source gives it; '''' when several or unknown.';
COMMENT ON COLUMN captures.label IS 'Short name for people.';
COMMENT ON COLUMN captures.task IS 'The problem solved, such as gemm or attention.';
COMMENT ON COLUMN captures.version IS 'Version of the kernel, such as a commit.';
COMMENT ON COLUMN captures.device IS 'Device name as the driver prints it; '''' unknown.';
COMMENT ON COLUMN captures.arch IS 'Compute architecture in lower case, such as sm_90a or gfx950; '''' unknown.';
COMMENT ON COLUMN captures.sm_count IS 'SMs on the device; -1 unknown.';
COMMENT ON COLUMN captures.dtype IS 'Element type of the main operands, such as bf16.';
COMMENT ON COLUMN captures.shape IS 'Problem size, free text.';
COMMENT ON COLUMN captures.input_data IS 'What the inputs held: zeros, random normal and so on.';
COMMENT ON COLUMN captures.created_unix_ns IS 'Wall time of the run; -1 unknown. Unit: ns.';
COMMENT ON COLUMN captures.source_format IS 'Dialect of the source, as the converter names it.';
COMMENT ON COLUMN captures.completeness IS 'The worst of its lanes.';
COMMENT ON COLUMN captures.lost_events IS 'Records known to be lost, summed over lanes; -1 unknown. Unit: record.';
COMMENT ON COLUMN captures.stamp_sink IS 'Where the stamps were stored while the kernel ran.';
COMMENT ON COLUMN captures.stamp_set IS 'Hash of the declared stamps; captures with different sets are not comparable without being told to; '''' none.';

CREATE TABLE launches (
    capture_id VARCHAR NOT NULL,
    launch INTEGER NOT NULL,
    kernel VARCHAR,
    kind VARCHAR NOT NULL,
    tool VARCHAR,
    source VARCHAR,
    native_id VARCHAR,
    pass INTEGER NOT NULL,
    trip_count BIGINT NOT NULL,
    slots INTEGER NOT NULL,
    process_id INTEGER NOT NULL,
    context VARCHAR,
    stream VARCHAR,
    status VARCHAR NOT NULL,
    grid_x INTEGER NOT NULL,
    grid_y INTEGER NOT NULL,
    grid_z INTEGER NOT NULL,
    block_x INTEGER NOT NULL,
    block_y INTEGER NOT NULL,
    block_z INTEGER NOT NULL,
    cluster_x INTEGER NOT NULL,
    cluster_y INTEGER NOT NULL,
    cluster_z INTEGER NOT NULL,
    clock INTEGER NOT NULL,
    t_start BIGINT NOT NULL,
    duration_ns BIGINT NOT NULL,
    sequence INTEGER NOT NULL
);
COMMENT ON TABLE launches IS 'One row is one launch or repeat of a kernel, from any tool.';
COMMENT ON COLUMN launches.capture_id IS 'The capture that this row belongs to.';
COMMENT ON COLUMN launches.launch IS 'Number in this capture, from 0 in the order of the source.';
COMMENT ON COLUMN launches.kernel IS 'Kernel name as printed.';
COMMENT ON COLUMN launches.kind IS 'How the launch was observed.';
COMMENT ON COLUMN launches.tool IS 'The tool that observed it: stamps, ncu, iket, proton, kineto and so on.';
COMMENT ON COLUMN launches.source IS 'Name of the source in the manifest.';
COMMENT ON COLUMN launches.native_id IS 'The tool''s own id for the launch.';
COMMENT ON COLUMN launches.pass IS 'Number of the stamped pass, when one kernel was stamped in several passes; -1 none.';
COMMENT ON COLUMN launches.trip_count IS 'Iterations of the main loop in one CTA; -1 unknown. Unit: iteration.';
COMMENT ON COLUMN launches.slots IS 'Iterations, from 0, that the stamp buffer reaches: what it holds of each event, or the end of its window (chapter 14); -1 unlimited, unknown or no stamps. Unit: iteration.';
COMMENT ON COLUMN launches.process_id IS 'Process; -1 unknown.';
COMMENT ON COLUMN launches.context IS 'Context as printed.';
COMMENT ON COLUMN launches.stream IS 'Stream as printed.';
COMMENT ON COLUMN launches.status IS 'Outcome of the launch.';
COMMENT ON COLUMN launches.grid_x IS 'Grid size in CTAs in x; -1 unknown.';
COMMENT ON COLUMN launches.grid_y IS 'Grid size in CTAs in y; -1 unknown.';
COMMENT ON COLUMN launches.grid_z IS 'Grid size in CTAs in z; -1 unknown.';
COMMENT ON COLUMN launches.block_x IS 'CTA size in threads in x; -1 unknown.';
COMMENT ON COLUMN launches.block_y IS 'CTA size in threads in y; -1 unknown.';
COMMENT ON COLUMN launches.block_z IS 'CTA size in threads in z; -1 unknown.';
COMMENT ON COLUMN launches.cluster_x IS 'Cluster size in CTAs in x; -1 unknown.';
COMMENT ON COLUMN launches.cluster_y IS 'Cluster size in CTAs in y; -1 unknown.';
COMMENT ON COLUMN launches.cluster_z IS 'Cluster size in CTAs in z; -1 unknown.';
COMMENT ON COLUMN launches.clock IS 'Clock of t_start; -1 none.';
COMMENT ON COLUMN launches.t_start IS 'Start on that clock; -1 unknown. Unit: tick.';
COMMENT ON COLUMN launches.duration_ns IS 'Duration as the tool measured it; -1 unknown. Unit: ns.';
COMMENT ON COLUMN launches.sequence IS 'Order of issue; -1 unknown.';

CREATE TABLE lanes (
    capture_id VARCHAR NOT NULL,
    lane INTEGER NOT NULL,
    launch INTEGER NOT NULL,
    cta INTEGER NOT NULL,
    warp INTEGER NOT NULL,
    role VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    sm INTEGER NOT NULL,
    clock INTEGER NOT NULL,
    name VARCHAR,
    process_id INTEGER NOT NULL,
    thread_id BIGINT NOT NULL,
    t_start BIGINT NOT NULL,
    t_end BIGINT NOT NULL,
    completeness VARCHAR NOT NULL,
    records_expected BIGINT NOT NULL,
    records_kept BIGINT NOT NULL,
    records_lost BIGINT NOT NULL,
    wraps INTEGER NOT NULL
);
COMMENT ON TABLE lanes IS 'One row is one recorder: the stream of records of one warp, elected thread, warpgroup, CTA or host thread; also one that wrote nothing.';
COMMENT ON COLUMN lanes.capture_id IS 'The capture that this row belongs to.';
COMMENT ON COLUMN lanes.lane IS 'Number in this capture, dense from 0, in the order of launch, cta, warp, role.';
COMMENT ON COLUMN lanes.launch IS 'Launch; -1 for host threads and streams.';
COMMENT ON COLUMN lanes.cta IS 'Linear CTA index x + grid_x*(y + grid_y*z); -1 none.';
COMMENT ON COLUMN lanes.warp IS 'First warp of the recorder within its CTA; -1 unknown or none.';
COMMENT ON COLUMN lanes.role IS 'Role that it plays; '''' none.';
COMMENT ON COLUMN lanes.kind IS 'What recorded.';
COMMENT ON COLUMN lanes.sm IS 'SM that it ran on; -1 unknown.';
COMMENT ON COLUMN lanes.clock IS 'Clock of its records; -1 when it has none.';
COMMENT ON COLUMN lanes.name IS 'Name as the source prints it.';
COMMENT ON COLUMN lanes.process_id IS 'Process; -1 unknown.';
COMMENT ON COLUMN lanes.thread_id IS 'Host thread or stream; -1 none.';
COMMENT ON COLUMN lanes.t_start IS 'First instruction of the warp or CTA; -1 not recorded. Unit: tick.';
COMMENT ON COLUMN lanes.t_end IS 'Last instruction of the warp or CTA; -1 not recorded. Unit: tick.';
COMMENT ON COLUMN lanes.completeness IS 'Whether the lane holds every record that its stamps made.';
COMMENT ON COLUMN lanes.records_expected IS 'Records that the recorder should have written; -1 unknown. Unit: record.';
COMMENT ON COLUMN lanes.records_kept IS 'Records of this lane in this bundle; -1 not counted. Unit: record.';
COMMENT ON COLUMN lanes.records_lost IS 'Records known to be lost; -1 unknown. Unit: record.';
COMMENT ON COLUMN lanes.wraps IS 'Counter wraps undone while decoding; -1 unknown.';

CREATE TABLE clocks (
    capture_id VARCHAR NOT NULL,
    clock INTEGER NOT NULL,
    scope VARCHAR NOT NULL,
    unit VARCHAR NOT NULL,
    sm INTEGER NOT NULL,
    hz_nominal DOUBLE,
    step_ticks BIGINT NOT NULL,
    width_bits INTEGER NOT NULL,
    wraps BIGINT NOT NULL,
    assumption VARCHAR
);
COMMENT ON TABLE clocks IS 'One row is one clock domain.';
COMMENT ON COLUMN clocks.capture_id IS 'The capture that this row belongs to.';
COMMENT ON COLUMN clocks.clock IS 'Number in this capture, from 0.';
COMMENT ON COLUMN clocks.scope IS 'What shares the clock.';
COMMENT ON COLUMN clocks.unit IS 'What one tick is.';
COMMENT ON COLUMN clocks.sm IS 'SM when scope is sm; -1 otherwise or unknown.';
COMMENT ON COLUMN clocks.hz_nominal IS 'Stated rate, if any; measured rates are derived per launch by the view clock_map. Unit: hz.';
COMMENT ON COLUMN clocks.step_ticks IS 'The step of the clock: the largest number of ticks that divides every difference seen between its reads; -1 unknown. Unit: tick.';
COMMENT ON COLUMN clocks.width_bits IS 'Width of the counter as recorded, before unwrapping; -1 unknown. Unit: bit.';
COMMENT ON COLUMN clocks.wraps IS 'Wraps undone on this clock; -1 unknown.';
COMMENT ON COLUMN clocks.assumption IS 'What the source assumed about the clock, such as ''1 GHz''; '''' nothing.';

CREATE TABLE clock_anchors (
    capture_id VARCHAR NOT NULL,
    launch INTEGER NOT NULL,
    clock INTEGER NOT NULL,
    t BIGINT NOT NULL,
    reference_clock INTEGER NOT NULL,
    reference_t BIGINT NOT NULL,
    error_ns DOUBLE
);
COMMENT ON TABLE clock_anchors IS 'One row is one moment read on two clocks.';
COMMENT ON COLUMN clock_anchors.capture_id IS 'The capture that this row belongs to.';
COMMENT ON COLUMN clock_anchors.launch IS 'Launch that the anchor holds for; -1 the whole capture.';
COMMENT ON COLUMN clock_anchors.clock IS 'Clock of t.';
COMMENT ON COLUMN clock_anchors.t IS 'Time on clock. Unit: tick.';
COMMENT ON COLUMN clock_anchors.reference_clock IS 'Clock of reference_t; -1 is Unix time in ns.';
COMMENT ON COLUMN clock_anchors.reference_t IS 'The same moment on the reference clock. Unit: tick.';
COMMENT ON COLUMN clock_anchors.error_ns IS 'Half width of the bound on reference_t; null unknown. Unit: ns.';

CREATE TABLE roles (
    capture_id VARCHAR NOT NULL,
    role VARCHAR NOT NULL,
    role_index INTEGER NOT NULL,
    kind VARCHAR NOT NULL,
    warps VARCHAR,
    resource VARCHAR,
    iteration_event VARCHAR,
    display_order INTEGER NOT NULL,
    colour VARCHAR
);
COMMENT ON TABLE roles IS 'One row is one warp role.';
COMMENT ON COLUMN roles.capture_id IS 'The capture that this row belongs to.';
COMMENT ON COLUMN roles.role IS 'Name.';
COMMENT ON COLUMN roles.role_index IS 'Index in a raw stamp buffer; -1 none.';
COMMENT ON COLUMN roles.kind IS 'What the role does.';
COMMENT ON COLUMN roles.warps IS 'Warps that play it, for people; lanes has the truth.';
COMMENT ON COLUMN roles.resource IS 'Hardware unit that the role keeps busy; '''' none.';
COMMENT ON COLUMN roles.iteration_event IS 'The point whose times divide the role into iterations; '''' none.';
COMMENT ON COLUMN roles.display_order IS 'Order from top to bottom, from 0.';
COMMENT ON COLUMN roles.colour IS '#rrggbb; '''' the viewer chooses.';

CREATE TABLE event_types (
    capture_id VARCHAR NOT NULL,
    role VARCHAR NOT NULL,
    event VARCHAR NOT NULL,
    event_index INTEGER NOT NULL,
    loop VARCHAR,
    payload_type VARCHAR NOT NULL,
    payload_unit VARCHAR,
    meaning VARCHAR
);
COMMENT ON TABLE event_types IS 'One row is one kind of stamp.';
COMMENT ON COLUMN event_types.capture_id IS 'The capture that this row belongs to.';
COMMENT ON COLUMN event_types.role IS 'Role that writes it.';
COMMENT ON COLUMN event_types.event IS 'Name.';
COMMENT ON COLUMN event_types.event_index IS 'Index in a raw stamp buffer; -1 none.';
COMMENT ON COLUMN event_types.loop IS 'The loop that iteration counts, or ''once'' outside every loop.';
COMMENT ON COLUMN event_types.payload_type IS 'Type of events.payload; '''' no payload.';
COMMENT ON COLUMN event_types.payload_unit IS 'Unit of events.payload; '''' none.';
COMMENT ON COLUMN event_types.meaning IS 'One line for people.';

CREATE TABLE span_types (
    capture_id VARCHAR NOT NULL,
    role VARCHAR NOT NULL,
    span VARCHAR NOT NULL,
    state VARCHAR NOT NULL,
    begin_event VARCHAR,
    end_event VARCHAR,
    wait_on VARCHAR NOT NULL,
    barrier VARCHAR,
    resource VARCHAR,
    loop VARCHAR,
    contains_wait BOOLEAN NOT NULL,
    floor_ticks DOUBLE,
    colour VARCHAR
);
COMMENT ON TABLE span_types IS 'One row is one kind of interval: the only place that gives a state.';
COMMENT ON COLUMN span_types.capture_id IS 'The capture that this row belongs to.';
COMMENT ON COLUMN span_types.role IS 'Role whose lanes have it.';
COMMENT ON COLUMN span_types.span IS 'Name.';
COMMENT ON COLUMN span_types.state IS 'State of a lane while the span is open.';
COMMENT ON COLUMN span_types.begin_event IS 'Point that begins it; '''' when only stored spans have it.';
COMMENT ON COLUMN span_types.end_event IS 'Point that ends it; '''' when only stored spans have it.';
COMMENT ON COLUMN span_types.wait_on IS 'What a stall waits on; '''' not a wait or unknown.';
COMMENT ON COLUMN span_types.barrier IS 'Name of the barrier; '''' none.';
COMMENT ON COLUMN span_types.resource IS 'Hardware unit kept busy while the span is open; '''' none.';
COMMENT ON COLUMN span_types.loop IS 'The loop that iteration counts, or ''once'' outside every loop.';
COMMENT ON COLUMN span_types.contains_wait IS 'An active span that hides a wait which has no stamps of its own.';
COMMENT ON COLUMN span_types.floor_ticks IS 'Ticks that a satisfied wait of this kind costs, as calibrated by the recorder; null infer. Unit: tick.';
COMMENT ON COLUMN span_types.colour IS '#rrggbb; '''' the viewer chooses.';

CREATE TABLE dependencies (
    capture_id VARCHAR NOT NULL,
    producer_role VARCHAR NOT NULL,
    producer_event VARCHAR NOT NULL,
    consumer_role VARCHAR NOT NULL,
    consumer_event VARCHAR NOT NULL,
    producer_step INTEGER NOT NULL,
    consumer_step INTEGER NOT NULL,
    iteration_lag INTEGER NOT NULL,
    barrier VARCHAR,
    mechanism VARCHAR NOT NULL,
    completion VARCHAR NOT NULL,
    scope VARCHAR NOT NULL,
    latency_ticks DOUBLE
);
COMMENT ON TABLE dependencies IS 'One row is one declared edge between two points; all edges into one point must have happened before it.';
COMMENT ON COLUMN dependencies.capture_id IS 'The capture that this row belongs to.';
COMMENT ON COLUMN dependencies.producer_role IS 'Role that signals.';
COMMENT ON COLUMN dependencies.producer_event IS 'Point at, or just before, the signal.';
COMMENT ON COLUMN dependencies.consumer_role IS 'Role that waits.';
COMMENT ON COLUMN dependencies.consumer_event IS 'Point at which the wait is over.';
COMMENT ON COLUMN dependencies.producer_step IS 'Producer iterations count this many units; 0 the mapping of iterations is unknown. Unit: iteration.';
COMMENT ON COLUMN dependencies.consumer_step IS 'Consumer iterations count this many units; 0 the mapping of iterations is unknown. Unit: iteration.';
COMMENT ON COLUMN dependencies.iteration_lag IS 'Producer iteration i signals consumer iteration j when producer_step*i + iteration_lag = consumer_step*j; may be negative. Unit: iteration.';
COMMENT ON COLUMN dependencies.barrier IS 'Name of the barrier; '''' none.';
COMMENT ON COLUMN dependencies.mechanism IS 'How the signal travels.';
COMMENT ON COLUMN dependencies.completion IS 'Whether the signal is complete at the point or some time after it.';
COMMENT ON COLUMN dependencies.scope IS 'Where the edge holds.';
COMMENT ON COLUMN dependencies.latency_ticks IS 'Ticks from the signal point to the release of a wait that nothing else delays; null infer. Unit: tick.';

CREATE TABLE events (
    capture_id VARCHAR NOT NULL,
    lane INTEGER NOT NULL,
    launch INTEGER NOT NULL,
    cta INTEGER NOT NULL,
    sm INTEGER NOT NULL,
    warp INTEGER NOT NULL,
    role VARCHAR,
    event VARCHAR NOT NULL,
    tile INTEGER NOT NULL,
    iteration INTEGER NOT NULL,
    clock INTEGER NOT NULL,
    t BIGINT NOT NULL,
    payload VARCHAR
);
COMMENT ON TABLE events IS 'One row is one stamp.';
COMMENT ON COLUMN events.capture_id IS 'The capture that this row belongs to.';
COMMENT ON COLUMN events.lane IS 'The lane that wrote it; launch, cta, sm, warp, role and clock repeat what the lane says.';
COMMENT ON COLUMN events.launch IS 'As in lanes.';
COMMENT ON COLUMN events.cta IS 'As in lanes.';
COMMENT ON COLUMN events.sm IS 'As in lanes.';
COMMENT ON COLUMN events.warp IS 'As in lanes.';
COMMENT ON COLUMN events.role IS 'As in lanes.';
COMMENT ON COLUMN events.event IS 'Kind of stamp.';
COMMENT ON COLUMN events.tile IS 'Label: tile of a persistent loop, 0 where there is none, -1 unknown; not in the key.';
COMMENT ON COLUMN events.iteration IS 'Running count in its loop over the whole lane, from 0; never restarts at a tile. Unit: iteration.';
COMMENT ON COLUMN events.clock IS 'As in lanes.';
COMMENT ON COLUMN events.t IS 'Time of the stamp, unwrapped. Unit: tick.';
COMMENT ON COLUMN events.payload IS 'Value recorded with the stamp, exact decimal or text; '''' none.';

CREATE TABLE spans (
    capture_id VARCHAR NOT NULL,
    span_id BIGINT NOT NULL,
    lane INTEGER NOT NULL,
    end_lane INTEGER NOT NULL,
    launch INTEGER NOT NULL,
    cta INTEGER NOT NULL,
    sm INTEGER NOT NULL,
    warp INTEGER NOT NULL,
    role VARCHAR,
    span VARCHAR NOT NULL,
    tile INTEGER NOT NULL,
    iteration INTEGER NOT NULL,
    clock INTEGER NOT NULL,
    t0 BIGINT NOT NULL,
    t1 BIGINT NOT NULL,
    complete BOOLEAN NOT NULL,
    category VARCHAR
);
COMMENT ON TABLE spans IS 'One row is one interval that the source recorded as one record.';
COMMENT ON COLUMN spans.capture_id IS 'The capture that this row belongs to.';
COMMENT ON COLUMN spans.span_id IS 'Number in this capture, from 0.';
COMMENT ON COLUMN spans.lane IS 'Lane of the begin; launch, cta, sm, warp, role and clock repeat what it says.';
COMMENT ON COLUMN spans.end_lane IS 'Lane of the end.';
COMMENT ON COLUMN spans.launch IS 'As in lanes.';
COMMENT ON COLUMN spans.cta IS 'As in lanes.';
COMMENT ON COLUMN spans.sm IS 'As in lanes.';
COMMENT ON COLUMN spans.warp IS 'As in lanes.';
COMMENT ON COLUMN spans.role IS 'As in lanes.';
COMMENT ON COLUMN spans.span IS 'Kind of interval.';
COMMENT ON COLUMN spans.tile IS 'Label: tile of a persistent loop, 0 where there is none, -1 unknown.';
COMMENT ON COLUMN spans.iteration IS 'Running count in its loop over the whole lane, or the ordinal of its name in the lane, from 0. Unit: iteration.';
COMMENT ON COLUMN spans.clock IS 'As in lanes.';
COMMENT ON COLUMN spans.t0 IS 'Begin. Unit: tick.';
COMMENT ON COLUMN spans.t1 IS 'End; when the source cut it off, the lane''s last record. Unit: tick.';
COMMENT ON COLUMN spans.complete IS 'False when the end was cut off.';
COMMENT ON COLUMN spans.category IS 'The source''s category.';

CREATE TABLE edges (
    capture_id VARCHAR NOT NULL,
    edge_id BIGINT NOT NULL,
    kind VARCHAR,
    native_id VARCHAR,
    from_lane INTEGER NOT NULL,
    from_span_id BIGINT NOT NULL,
    from_t BIGINT NOT NULL,
    to_lane INTEGER NOT NULL,
    to_span_id BIGINT NOT NULL,
    to_t BIGINT NOT NULL
);
COMMENT ON TABLE edges IS 'One row is one arrow that the source recorded; an end that the source lost is -1.';
COMMENT ON COLUMN edges.capture_id IS 'The capture that this row belongs to.';
COMMENT ON COLUMN edges.edge_id IS 'Number in this capture, from 0.';
COMMENT ON COLUMN edges.kind IS 'The source''s kind, such as correlation or flow.';
COMMENT ON COLUMN edges.native_id IS 'The source''s id.';
COMMENT ON COLUMN edges.from_lane IS 'Lane of the tail; -1 lost.';
COMMENT ON COLUMN edges.from_span_id IS 'Span of the tail; -1 none or lost.';
COMMENT ON COLUMN edges.from_t IS 'Time of the tail; -1 lost. Unit: tick.';
COMMENT ON COLUMN edges.to_lane IS 'Lane of the head; -1 lost.';
COMMENT ON COLUMN edges.to_span_id IS 'Span of the head; -1 none or lost.';
COMMENT ON COLUMN edges.to_t IS 'Time of the head; -1 lost. Unit: tick.';

CREATE TABLE predictions (
    capture_id VARCHAR NOT NULL,
    resource VARCHAR NOT NULL,
    role VARCHAR NOT NULL,
    loop VARCHAR,
    work DOUBLE,
    work_unit VARCHAR,
    rate DOUBLE,
    rate_unit VARCHAR,
    cycles DOUBLE,
    formula VARCHAR,
    kind VARCHAR NOT NULL,
    is_bottleneck BOOLEAN NOT NULL,
    idle_lower_bound DOUBLE,
    rate_source VARCHAR,
    dtype VARCHAR,
    created_unix_ns BIGINT NOT NULL
);
COMMENT ON TABLE predictions IS 'One row is the budget of one resource for one iteration, made before the run.';
COMMENT ON COLUMN predictions.capture_id IS 'The capture that this row belongs to.';
COMMENT ON COLUMN predictions.resource IS 'Hardware unit.';
COMMENT ON COLUMN predictions.role IS 'Role that drives it; '''' the total over roles.';
COMMENT ON COLUMN predictions.loop IS 'The loop whose iteration is the unit.';
COMMENT ON COLUMN predictions.work IS 'Work in one iteration. Unit: work_unit.';
COMMENT ON COLUMN predictions.work_unit IS 'Unit of work, such as flop or byte.';
COMMENT ON COLUMN predictions.rate IS 'Work per cycle. Unit: rate_unit.';
COMMENT ON COLUMN predictions.rate_unit IS 'Unit of rate.';
COMMENT ON COLUMN predictions.cycles IS 'Work over rate: cycles an iteration. Unit: cycle.';
COMMENT ON COLUMN predictions.formula IS 'How work was computed.';
COMMENT ON COLUMN predictions.kind IS 'What bounds it.';
COMMENT ON COLUMN predictions.is_bottleneck IS 'It needs the most cycles an iteration.';
COMMENT ON COLUMN predictions.idle_lower_bound IS '1 - cycles / cycles of the bottleneck. Unit: 1.';
COMMENT ON COLUMN predictions.rate_source IS 'Where the rate comes from.';
COMMENT ON COLUMN predictions.dtype IS 'Element type that the rate holds for.';
COMMENT ON COLUMN predictions.created_unix_ns IS 'When the prediction was made; -1 unknown. Unit: ns.';

CREATE TABLE metrics (
    capture_id VARCHAR NOT NULL,
    launch INTEGER NOT NULL,
    tool VARCHAR NOT NULL,
    scope VARCHAR NOT NULL,
    scope_id VARCHAR NOT NULL,
    section VARCHAR NOT NULL,
    label VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    ordinal INTEGER NOT NULL,
    metric VARCHAR,
    resolved_by VARCHAR,
    value DOUBLE,
    text VARCHAR,
    unit VARCHAR,
    base_value DOUBLE,
    base_unit VARCHAR,
    null_reason VARCHAR NOT NULL
);
COMMENT ON TABLE metrics IS 'One row is one counter value, or one result of a benchmark.';
COMMENT ON COLUMN metrics.capture_id IS 'The capture that this row belongs to.';
COMMENT ON COLUMN metrics.launch IS 'Launch; -1 none.';
COMMENT ON COLUMN metrics.tool IS 'Ncu, benchmark and so on.';
COMMENT ON COLUMN metrics.scope IS 'What the value is about.';
COMMENT ON COLUMN metrics.scope_id IS ''''' for kernel; instance, instruction address, file:line or case.';
COMMENT ON COLUMN metrics.section IS 'Section of the report; '''' none.';
COMMENT ON COLUMN metrics.label IS 'Label as printed beside it; '''' none.';
COMMENT ON COLUMN metrics.name IS 'Name as printed.';
COMMENT ON COLUMN metrics.ordinal IS 'N-th row of the same key, from 0; index of an instance.';
COMMENT ON COLUMN metrics.metric IS 'Resolved metric name; '''' unresolved.';
COMMENT ON COLUMN metrics.resolved_by IS 'How it was resolved; '''' as printed.';
COMMENT ON COLUMN metrics.value IS 'Value as printed, in unit; null when there is no number. Unit: unit.';
COMMENT ON COLUMN metrics.text IS 'Value as printed, to the letter.';
COMMENT ON COLUMN metrics.unit IS 'Unit as printed.';
COMMENT ON COLUMN metrics.base_value IS 'Value in base_unit; null when there is no number. Unit: base_unit.';
COMMENT ON COLUMN metrics.base_unit IS 'Base unit.';
COMMENT ON COLUMN metrics.null_reason IS 'Why value is null; '''' it is not.';

CREATE TABLE rules (
    capture_id VARCHAR NOT NULL,
    launch INTEGER NOT NULL,
    section VARCHAR NOT NULL,
    rule VARCHAR NOT NULL,
    rule_index INTEGER NOT NULL,
    type VARCHAR,
    description VARCHAR,
    speedup_type VARCHAR,
    speedup DOUBLE
);
COMMENT ON TABLE rules IS 'One row is one result of a rule of Nsight Compute.';
COMMENT ON COLUMN rules.capture_id IS 'The capture that this row belongs to.';
COMMENT ON COLUMN rules.launch IS 'Launch; -1 none.';
COMMENT ON COLUMN rules.section IS 'Section of the report.';
COMMENT ON COLUMN rules.rule IS 'Name of the rule.';
COMMENT ON COLUMN rules.rule_index IS 'N-th result of the rule in its section, from 0.';
COMMENT ON COLUMN rules.type IS 'Type as printed.';
COMMENT ON COLUMN rules.description IS 'Text as printed.';
COMMENT ON COLUMN rules.speedup_type IS 'Kind of the estimated speed-up; '''' none.';
COMMENT ON COLUMN rules.speedup IS 'Estimated speed-up; null none. Unit: %.';

CREATE TABLE findings (
    capture_id VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    subject VARCHAR,
    verdict VARCHAR,
    value DOUBLE,
    unit VARCHAR,
    expected DOUBLE,
    text VARCHAR,
    evidence VARCHAR,
    confidence DOUBLE
);
COMMENT ON TABLE findings IS 'One row is a conclusion, hypothesis, omission, lesson or message.';
COMMENT ON COLUMN findings.capture_id IS 'The capture that this row belongs to.';
COMMENT ON COLUMN findings.kind IS 'What the row is.';
COMMENT ON COLUMN findings.subject IS 'What it is about: a role, resource, barrier, file.';
COMMENT ON COLUMN findings.verdict IS 'The verdict, in the words of whoever concluded; '''' none.';
COMMENT ON COLUMN findings.value IS 'Measured value. Unit: unit.';
COMMENT ON COLUMN findings.unit IS 'Unit of value and expected.';
COMMENT ON COLUMN findings.expected IS 'Expected value. Unit: unit.';
COMMENT ON COLUMN findings.text IS 'One sentence or more for people.';
COMMENT ON COLUMN findings.evidence IS 'JSON: {view or table, row, value}; '''' none.';
COMMENT ON COLUMN findings.confidence IS '0 to 1; null not stated. Unit: 1.';

CREATE TABLE attributes (
    capture_id VARCHAR NOT NULL,
    table_name VARCHAR NOT NULL,
    row_key VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    type VARCHAR NOT NULL,
    value VARCHAR
);
COMMENT ON TABLE attributes IS 'One row is anything else about a row of another table.';
COMMENT ON COLUMN attributes.capture_id IS 'The capture that this row belongs to.';
COMMENT ON COLUMN attributes.table_name IS 'The table.';
COMMENT ON COLUMN attributes.row_key IS 'The row''s integer key (launch, lane, clock, span_id, edge_id) in decimal; '''' the capture itself.';
COMMENT ON COLUMN attributes.name IS 'Name of the attribute.';
COMMENT ON COLUMN attributes.type IS 'Type of value.';
COMMENT ON COLUMN attributes.value IS 'Value as text; integers in exact decimal.';
