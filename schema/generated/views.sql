-- Derived views of wsformat 0.1. Made by wsformat.generate from schema/views/.
-- The tables of the standard must be there by name; absent ones as empty tables (tables.duckdb.sql).

CREATE OR REPLACE VIEW point AS
-- point: every moment that has a name: stored stamps, and both ends of stored spans (span || '.begin', span || '.end').
SELECT capture_id, lane, role, event, iteration, t FROM events
UNION ALL
SELECT capture_id, lane, role, span || '.begin' AS event, iteration, t0 AS t FROM spans
UNION ALL
SELECT capture_id, end_lane AS lane, role, span || '.end' AS event, iteration, t1 AS t FROM spans;

CREATE OR REPLACE VIEW span AS
-- span: stored spans + spans paired from points by (capture, lane, iteration) and span_types. Never by stack order.
-- A begin or end that occurs twice, or an end before its begin, makes no span: see orphan.
WITH bound AS (
  SELECT capture_id, role, span, begin_event AS event, 1 AS is_begin FROM span_types WHERE begin_event <> ''
  UNION ALL
  SELECT capture_id, role, span, end_event AS event, 0 AS is_begin FROM span_types WHERE end_event <> ''
), pair AS (
  SELECT p.capture_id, p.lane, b.span, p.iteration, COUNT(*) AS points,
         MIN(CASE WHEN b.is_begin = 1 THEN p.t END) AS t0, MIN(CASE WHEN b.is_begin = 0 THEN p.t END) AS t1
  FROM point p JOIN bound b ON b.capture_id = p.capture_id AND b.role = p.role AND b.event = p.event
  GROUP BY p.capture_id, p.lane, b.span, p.iteration
), every_span AS (
  SELECT capture_id, lane, lane AS end_lane, span, iteration, t0, t1, TRUE AS complete, CAST(-1 AS BIGINT) AS span_id FROM pair WHERE points = 2 AND t1 >= t0
  UNION ALL
  SELECT capture_id, lane, end_lane, span, iteration, t0, t1, complete, span_id FROM spans
)
SELECT x.capture_id, x.lane, x.end_lane, l.launch, l.cta, l.warp, l.role, x.span, COALESCE(s.state, 'unknown') AS state, COALESCE(s.barrier, '') AS barrier, COALESCE(s.resource, '') AS resource,
       CASE WHEN s.end_event <> '' THEN s.end_event ELSE x.span || '.end' END AS end_event,
       x.iteration, l.clock, x.t0, x.t1, x.complete, x.span_id
FROM every_span x
LEFT JOIN lanes l ON l.capture_id = x.capture_id AND l.lane = x.lane
LEFT JOIN span_types s ON s.capture_id = x.capture_id AND s.role = l.role AND s.span = x.span;

CREATE OR REPLACE VIEW orphan AS
-- orphan: points of a declared span that made no span, with the reason.
WITH bound AS (
  SELECT capture_id, role, span, begin_event AS event, 1 AS is_begin FROM span_types WHERE begin_event <> ''
  UNION ALL
  SELECT capture_id, role, span, end_event AS event, 0 AS is_begin FROM span_types WHERE end_event <> ''
), pair AS (
  SELECT p.capture_id, p.lane, b.span, p.iteration, SUM(b.is_begin) AS begins, COUNT(*) - SUM(b.is_begin) AS ends,
         MIN(CASE WHEN b.is_begin = 1 THEN p.t END) AS t_begin, MIN(CASE WHEN b.is_begin = 0 THEN p.t END) AS t_end
  FROM point p JOIN bound b ON b.capture_id = p.capture_id AND b.role = p.role AND b.event = p.event
  GROUP BY p.capture_id, p.lane, b.span, p.iteration
)
SELECT x.capture_id, x.lane, l.launch, l.cta, l.warp, l.role, x.span, x.iteration, x.t_begin, x.t_end,
       CASE WHEN x.begins > 1 OR x.ends > 1 THEN 'duplicate' WHEN x.ends = 0 THEN 'no end' WHEN x.begins = 0 THEN 'no begin' ELSE 'end before begin' END AS reason
FROM pair x LEFT JOIN lanes l ON l.capture_id = x.capture_id AND l.lane = x.lane
WHERE x.begins <> 1 OR x.ends <> 1 OR x.t_end < x.t_begin;

CREATE OR REPLACE VIEW state_interval AS
-- state_interval: the exclusive states of a lane as disjoint intervals between its first and last point: stall over active over untracked.
-- Incomplete spans, spans that end on another lane, and states other than stall and active count in no state.
-- One running sum holds both counts: an open stall weighs 1048576, an open active span 1. (DOUBLE: exact here, and 3x faster than an integer sum in DuckDB.)
WITH both_ends AS (
  SELECT 1 AS at_begin UNION ALL SELECT 0 AS at_begin
), edge AS (
  SELECT x.capture_id, x.lane, CASE WHEN e.at_begin = 1 THEN x.t0 ELSE x.t1 END AS t,
         CASE WHEN x.state = 'stall' THEN 1048576.0E0 ELSE 1.0E0 END * CASE WHEN e.at_begin = 1 THEN 1 ELSE -1 END AS step
  FROM span x CROSS JOIN both_ends e
  WHERE x.complete AND x.end_lane = x.lane AND x.state IN ('stall', 'active')
  UNION ALL
  SELECT p.capture_id, p.lane, CASE WHEN e.at_begin = 1 THEN p.t_first ELSE p.t_last END AS t, 0.0E0 AS step
  FROM (SELECT capture_id, lane, MIN(t) AS t_first, MAX(t) AS t_last FROM point GROUP BY capture_id, lane) p CROSS JOIN both_ends e
), run AS (
  SELECT capture_id, lane, t AS t0, LEAD(t) OVER (PARTITION BY capture_id, lane ORDER BY t) AS t1,
         SUM(step) OVER (PARTITION BY capture_id, lane ORDER BY t ROWS UNBOUNDED PRECEDING) AS open_spans
  FROM edge
)
SELECT capture_id, lane, CASE WHEN open_spans >= 1048576 THEN 'stall' WHEN open_spans > 0 THEN 'active' ELSE 'untracked' END AS state, t0, t1
FROM run WHERE t1 > t0;

CREATE OR REPLACE VIEW role_state AS
-- role_state: ticks of each exclusive state, per lane. stall + active + untracked = extent.
WITH total AS (
  SELECT capture_id, lane, MIN(t0) AS t_first, MAX(t1) AS t_last, CAST(SUM(t1 - t0) AS BIGINT) AS extent,
         CAST(SUM(CASE WHEN state = 'stall' THEN t1 - t0 ELSE 0 END) AS BIGINT) AS stall,
         CAST(SUM(CASE WHEN state = 'active' THEN t1 - t0 ELSE 0 END) AS BIGINT) AS active,
         CAST(SUM(CASE WHEN state = 'untracked' THEN t1 - t0 ELSE 0 END) AS BIGINT) AS untracked
  FROM state_interval GROUP BY capture_id, lane
)
SELECT x.capture_id, x.lane, l.launch, l.cta, l.warp, l.role, l.clock, x.t_first, x.t_last, x.extent, x.stall, x.active, x.untracked
FROM total x LEFT JOIN lanes l ON l.capture_id = x.capture_id AND l.lane = x.lane;

CREATE OR REPLACE VIEW active_set AS
-- active_set: the sets that overlap compares, per CTA. set_kind 'role': exclusive active time of any lane of the role.
-- set_kind 'resource': time in which a span that keeps that resource busy is open, whatever the lane's own state (a warp that waits for its wgmma keeps the tensor pipe busy).
SELECT x.capture_id, l.launch, l.cta, l.clock, 'role' AS set_kind, l.role AS set_name, x.t0, x.t1
FROM state_interval x JOIN lanes l ON l.capture_id = x.capture_id AND l.lane = x.lane WHERE x.state = 'active' AND l.cta >= 0
UNION ALL
SELECT capture_id, launch, cta, clock, 'resource' AS set_kind, resource AS set_name, t0, t1 FROM span WHERE resource <> '' AND complete AND end_lane = lane AND t1 > t0 AND cta >= 0;

CREATE OR REPLACE VIEW overlap AS
-- overlap: for every two sets of one kind in one CTA on one clock: ticks in which both are active, and all three denominators. Window: whole extent.
-- One running sum: an open span of set_a weighs 1048576, of set_b 1.
WITH names AS (
  SELECT capture_id, 'role' AS set_kind, role AS set_name FROM roles
  UNION
  SELECT capture_id, 'resource' AS set_kind, resource AS set_name FROM span_types WHERE resource <> ''
), pairs AS (
  SELECT a.capture_id, a.set_kind, a.set_name AS set_a, b.set_name AS set_b, ROW_NUMBER() OVER (PARTITION BY a.capture_id ORDER BY a.set_kind, a.set_name, b.set_name) AS pair
  FROM names a JOIN names b ON b.capture_id = a.capture_id AND b.set_kind = a.set_kind WHERE b.set_name > a.set_name
), sides AS (
  SELECT capture_id, set_kind, pair, set_a AS set_name, 1 AS at_begin, 1048576.0E0 AS step FROM pairs
  UNION ALL SELECT capture_id, set_kind, pair, set_a AS set_name, 0 AS at_begin, -1048576.0E0 AS step FROM pairs
  UNION ALL SELECT capture_id, set_kind, pair, set_b AS set_name, 1 AS at_begin, 1.0E0 AS step FROM pairs
  UNION ALL SELECT capture_id, set_kind, pair, set_b AS set_name, 0 AS at_begin, -1.0E0 AS step FROM pairs
), edge AS (
  SELECT s.capture_id, p.pair, s.launch, s.cta, s.clock, CASE WHEN p.at_begin = 1 THEN s.t0 ELSE s.t1 END AS t, p.step
  FROM active_set s JOIN sides p ON p.capture_id = s.capture_id AND p.set_kind = s.set_kind AND p.set_name = s.set_name
), run AS (
  SELECT capture_id, pair, launch, cta, clock, LEAD(t) OVER (PARTITION BY capture_id, pair, launch, cta, clock ORDER BY t) - t AS ticks,
         SUM(step) OVER (PARTITION BY capture_id, pair, launch, cta, clock ORDER BY t ROWS UNBOUNDED PRECEDING) AS open_spans
  FROM edge
), total AS (
  SELECT capture_id, pair, launch, cta, clock,
         CAST(SUM(CASE WHEN open_spans > 1048576 AND open_spans % 1048576 > 0 THEN ticks ELSE 0 END) AS BIGINT) AS both_ticks,
         CAST(SUM(CASE WHEN open_spans >= 1048576 THEN ticks ELSE 0 END) AS BIGINT) AS a_ticks,
         CAST(SUM(CASE WHEN open_spans % 1048576 > 0 THEN ticks ELSE 0 END) AS BIGINT) AS b_ticks,
         CAST(SUM(CASE WHEN open_spans > 0 THEN ticks ELSE 0 END) AS BIGINT) AS union_ticks
  FROM run GROUP BY capture_id, pair, launch, cta, clock
)
SELECT t.capture_id, t.launch, t.cta, t.clock, p.set_kind, p.set_a, p.set_b, t.both_ticks, t.a_ticks, t.b_ticks, t.union_ticks
FROM total t JOIN pairs p ON p.capture_id = t.capture_id AND p.pair = t.pair;

CREATE OR REPLACE VIEW wait AS
-- wait: every stall span, its binding edge, its verdict, and how its ticks divide.
-- Binding edge: of the declared edges into the end point of the wait, for the iteration that steps and lag name, the one whose signal came last (ties: role, event name).
--   A producer point that several lanes wrote counts when the last of them did.
-- release = ticks from the signal to the end of a wait that nothing else delays: latency_ticks, else the smallest slack on that edge among waits that began before the signal, else 0. ready = signal + release.
-- verdict: free (the ring is not yet full: no producer for this iteration), unknown (no edge declared, or no such stamp), not_blocked (ready at or before the begin),
--   producer_late (signal after the begin), in_flight (signal at or before, ready after the begin), other (late or in flight, yet the end lies more than 1000 ticks after ready).
-- wait_floor = what a satisfied wait costs (stamps and test): the smallest free or not_blocked wait of that role and span, else of the capture on that kind of clock, else 0. Never the smallest wait as such: it may be blocked itself.
-- ticks = blocked_ticks + satisfied_ticks + unjudged_ticks. Ticks are subtracted before a DOUBLE is met: absolute ns exceed 2^53.
WITH stalls AS (
  SELECT capture_id, lane, launch, cta, warp, role, span, barrier, iteration, clock, t0, t1, end_event FROM span WHERE state = 'stall' AND complete AND end_lane = lane
), ring AS (
  SELECT capture_id, consumer_role, consumer_event, MIN(iteration_lag * 1.0E0 / consumer_step) AS first_iteration FROM dependencies WHERE producer_step > 0 GROUP BY capture_id, consumer_role, consumer_event
), signal AS (
  SELECT p.capture_id, l.launch, l.cta, l.clock, d.consumer_role, d.consumer_event, CAST((p.iteration * d.producer_step + d.iteration_lag) / d.consumer_step AS INT) AS consumer_iteration,
         d.producer_role, d.producer_event, d.latency_ticks, p.iteration AS producer_iteration, MAX(p.t) AS t
  FROM point p
  JOIN dependencies d ON d.capture_id = p.capture_id AND d.producer_role = p.role AND d.producer_event = p.event
  JOIN lanes l ON l.capture_id = p.capture_id AND l.lane = p.lane
  WHERE d.scope = 'cta' AND d.producer_step > 0 AND (p.iteration * d.producer_step + d.iteration_lag) % d.consumer_step = 0
  GROUP BY p.capture_id, l.launch, l.cta, l.clock, d.consumer_role, d.consumer_event, CAST((p.iteration * d.producer_step + d.iteration_lag) / d.consumer_step AS INT), d.producer_role, d.producer_event, d.latency_ticks, p.iteration
), binding AS (
  SELECT capture_id, launch, cta, clock, consumer_role, consumer_event, consumer_iteration, producer_role, producer_event, producer_iteration, latency_ticks, t,
         ROW_NUMBER() OVER (PARTITION BY capture_id, launch, cta, clock, consumer_role, consumer_event, consumer_iteration ORDER BY t DESC, producer_role, producer_event) AS nth,
         COUNT(*) OVER (PARTITION BY capture_id, launch, cta, clock, consumer_role, consumer_event, consumer_iteration) AS edges
  FROM signal
), bound AS (
  SELECT w.capture_id, w.lane, w.launch, w.cta, w.warp, w.role, w.span, w.barrier, w.iteration, w.clock, w.t0, w.t1, w.t1 - w.t0 AS ticks, COALESCE(g.edges, 0) AS edges,
         COALESCE(g.producer_role, '') AS producer_role, COALESCE(g.producer_event, '') AS producer_event, g.producer_iteration, g.latency_ticks, g.t AS signal_t,
         CASE WHEN w.iteration < r.first_iteration THEN 1 ELSE 0 END AS is_free
  FROM stalls w
  LEFT JOIN ring r ON r.capture_id = w.capture_id AND r.consumer_role = w.role AND r.consumer_event = w.end_event
  LEFT JOIN binding g ON g.nth = 1 AND g.capture_id = w.capture_id AND g.launch = w.launch AND g.cta = w.cta AND g.clock = w.clock
                     AND g.consumer_role = w.role AND g.consumer_event = w.end_event AND g.consumer_iteration = w.iteration
), released AS (
  SELECT capture_id, lane, launch, cta, warp, role, span, barrier, iteration, clock, t0, t1, ticks, edges, producer_role, producer_event, producer_iteration, signal_t, is_free,
         CASE WHEN signal_t IS NOT NULL THEN COALESCE(MIN(latency_ticks) OVER (PARTITION BY capture_id, role, span, producer_role, producer_event),
              CAST(MIN(CASE WHEN signal_t > t0 THEN t1 - signal_t END) OVER (PARTITION BY capture_id, role, span, producer_role, producer_event) AS DOUBLE), 0.0E0) END AS release_ticks
  FROM bound
), judged AS (
  SELECT capture_id, lane, launch, cta, warp, role, span, barrier, iteration, clock, t0, t1, ticks, edges, producer_role, producer_event, producer_iteration, signal_t, release_ticks,
         CASE WHEN signal_t IS NULL AND is_free = 1 THEN 'free' WHEN signal_t IS NULL THEN 'unknown' WHEN t0 - signal_t >= release_ticks THEN 'not_blocked'
              WHEN t1 - signal_t > release_ticks + 1000 AND ticks > 1000 THEN 'other' WHEN signal_t > t0 THEN 'producer_late' ELSE 'in_flight' END AS verdict
  FROM released
), floored AS (
  SELECT capture_id, lane, launch, cta, warp, role, span, barrier, iteration, clock, t0, t1, ticks, edges, producer_role, producer_event, producer_iteration, signal_t, release_ticks, verdict,
         COALESCE(MIN(CASE WHEN verdict IN ('free', 'not_blocked') THEN ticks END) OVER (PARTITION BY capture_id, role, span),
                  MIN(CASE WHEN verdict IN ('free', 'not_blocked') THEN ticks END) OVER (PARTITION BY capture_id), 0) AS wait_floor
  FROM judged
)
SELECT capture_id, lane, launch, cta, warp, role, span, barrier, iteration, clock, t0, t1, ticks, edges, producer_role, producer_event, producer_iteration, signal_t, signal_t - t0 AS late, t1 - signal_t AS slack, release_ticks, wait_floor, verdict,
       CASE WHEN verdict IN ('producer_late', 'in_flight', 'other') AND ticks > wait_floor THEN ticks - wait_floor ELSE 0 END AS blocked_ticks,
       CASE WHEN verdict = 'unknown' THEN 0 WHEN verdict IN ('producer_late', 'in_flight', 'other') AND ticks > wait_floor THEN wait_floor ELSE ticks END AS satisfied_ticks,
       CASE WHEN verdict = 'unknown' THEN ticks ELSE 0 END AS unjudged_ticks
FROM floored;

CREATE OR REPLACE VIEW role_summary AS
-- role_summary: shares of a role in a launch = sums over its lanes, so four warps that record the same range weigh as one role.
-- The spread over lanes is part of the answer: warps of one role need not agree.
-- stall_share is gross; blocked, satisfied (what stamps and the test of a satisfied wait cost) and unjudged (no edge) divide the waits. They may exceed stall_share where waits of one lane overlap.
WITH waited AS (
  SELECT capture_id, lane, SUM(blocked_ticks) AS blocked, SUM(satisfied_ticks) AS satisfied, SUM(unjudged_ticks) AS unjudged, COUNT(*) AS waits, SUM(CASE WHEN blocked_ticks > 0 THEN 1 ELSE 0 END) AS waits_blocked
  FROM wait GROUP BY capture_id, lane
), lane_state AS (
  SELECT s.capture_id, s.launch, s.role, s.cta, s.extent, s.stall, s.active, s.untracked, COALESCE(w.blocked, 0) AS blocked, COALESCE(w.satisfied, 0) AS satisfied, COALESCE(w.unjudged, 0) AS unjudged, COALESCE(w.waits, 0) AS waits, COALESCE(w.waits_blocked, 0) AS waits_blocked
  FROM role_state s LEFT JOIN waited w ON w.capture_id = s.capture_id AND w.lane = s.lane WHERE s.extent > 0
)
SELECT capture_id, launch, role, COUNT(*) AS lanes, COUNT(DISTINCT cta) AS ctas, CAST(SUM(extent) AS DOUBLE) / COUNT(*) AS mean_extent,
       CAST(SUM(stall) AS DOUBLE) / SUM(extent) AS stall_share, CAST(SUM(blocked) AS DOUBLE) / SUM(extent) AS blocked_share, CAST(SUM(satisfied) AS DOUBLE) / SUM(extent) AS satisfied_share, CAST(SUM(unjudged) AS DOUBLE) / SUM(extent) AS unjudged_share,
       CAST(SUM(active) AS DOUBLE) / SUM(extent) AS active_share, CAST(SUM(untracked) AS DOUBLE) / SUM(extent) AS untracked_share,
       MIN(CAST(stall AS DOUBLE) / extent) AS least_stall_share, MAX(CAST(stall AS DOUBLE) / extent) AS most_stall_share, CAST(SUM(waits) AS BIGINT) AS waits, CAST(SUM(waits_blocked) AS BIGINT) AS waits_blocked
FROM lane_state
GROUP BY capture_id, launch, role;

CREATE OR REPLACE VIEW iteration AS
-- iteration: start of each iteration of a lane and the ticks to the next start (method start_to_start). Steady window: [first + S, last + 1 - S), none when there are fewer than 4 S iterations.
-- S of a role = max(2, the deepest ring that it takes part in, counted in its own iterations: lag over its own step, rounded up).
WITH part AS (
  SELECT capture_id, consumer_role AS role, iteration_lag AS lag, consumer_step AS step FROM dependencies WHERE producer_step > 0
  UNION ALL
  SELECT capture_id, producer_role AS role, iteration_lag AS lag, producer_step AS step FROM dependencies WHERE producer_step > 0
), ring AS (
  SELECT r.capture_id, r.role, r.iteration_event, CASE WHEN MAX(CEIL(p.lag * 1.0E0 / p.step)) > 2 THEN CAST(MAX(CEIL(p.lag * 1.0E0 / p.step)) AS INT) ELSE 2 END AS s
  FROM roles r LEFT JOIN part p ON p.capture_id = r.capture_id AND p.role = r.role
  GROUP BY r.capture_id, r.role, r.iteration_event
), starts AS (
  SELECT p.capture_id, p.lane, p.iteration, p.t, r.s FROM point p JOIN ring r ON r.capture_id = p.capture_id AND r.role = p.role AND r.iteration_event = p.event
), bounds AS (
  SELECT capture_id, lane, MIN(iteration) AS first_iteration, MAX(iteration) AS last_iteration FROM starts GROUP BY capture_id, lane
), run AS (
  SELECT capture_id, lane, iteration, t, s, LEAD(t) OVER (PARTITION BY capture_id, lane ORDER BY iteration) AS t_next, LEAD(iteration) OVER (PARTITION BY capture_id, lane ORDER BY iteration) AS next_iteration
  FROM starts
)
SELECT r.capture_id, r.lane, l.launch, l.cta, l.warp, l.role, l.clock, r.iteration, r.t, r.t_next - r.t AS ticks,
       b.first_iteration + r.s AS steady_first, b.last_iteration + 1 - r.s AS steady_end,
       b.last_iteration + 1 - b.first_iteration >= 4 * r.s AND r.iteration >= b.first_iteration + r.s AND r.iteration < b.last_iteration + 1 - r.s AS steady
FROM run r JOIN bounds b ON b.capture_id = r.capture_id AND b.lane = r.lane LEFT JOIN lanes l ON l.capture_id = r.capture_id AND l.lane = r.lane
WHERE r.next_iteration = r.iteration + 1;

CREATE OR REPLACE VIEW iteration_summary AS
-- iteration_summary: ticks per iteration of a role in its steady window (method start_to_start). mean_ticks is the figure to compare with slope and budget (the intervals are often bimodal:
-- a median then jumps between the modes); quartiles show the spread and are nearest-rank, so every engine gives the same integer.
WITH ranked AS (
  SELECT capture_id, launch, role, steady_first, steady_end, ticks,
         ROW_NUMBER() OVER (PARTITION BY capture_id, launch, role ORDER BY ticks) AS nth, COUNT(*) OVER (PARTITION BY capture_id, launch, role) AS samples
  FROM iteration WHERE steady
)
SELECT capture_id, launch, role, MIN(steady_first) AS steady_first, MAX(steady_end) AS steady_end, MIN(samples) AS samples, AVG(CAST(ticks AS DOUBLE)) AS mean_ticks, MIN(ticks) AS min_ticks,
       MIN(CASE WHEN nth * 4 >= samples THEN ticks END) AS q1_ticks, MIN(CASE WHEN nth * 2 >= samples THEN ticks END) AS median_ticks,
       MIN(CASE WHEN nth * 4 >= samples * 3 THEN ticks END) AS q3_ticks, MAX(ticks) AS max_ticks
FROM ranked
GROUP BY capture_id, launch, role;

CREATE OR REPLACE VIEW early_signal AS
-- early_signal: a signal strictly inside an active span of its own lane. Ties: an end at the same tick comes first, a begin last.
WITH producer AS (
  SELECT DISTINCT capture_id, producer_role, producer_event FROM dependencies
), both_ends AS (
  SELECT 1 AS at_begin UNION ALL SELECT 0 AS at_begin
), mark AS (
  SELECT x.capture_id, x.lane, CASE WHEN e.at_begin = 1 THEN x.t0 ELSE x.t1 END AS t, CASE WHEN e.at_begin = 1 THEN 2 ELSE 0 END AS ord, CASE WHEN e.at_begin = 1 THEN 1.0E0 ELSE -1.0E0 END AS step, '' AS event, -1 AS iteration
  FROM span x CROSS JOIN both_ends e WHERE x.state = 'active' AND x.complete AND x.end_lane = x.lane
  UNION ALL
  SELECT p.capture_id, p.lane, p.t, 1 AS ord, 0.0E0 AS step, p.event, p.iteration
  FROM point p JOIN producer d ON d.capture_id = p.capture_id AND d.producer_role = p.role AND d.producer_event = p.event
), run AS (
  SELECT capture_id, lane, t, ord, event, iteration, SUM(step) OVER (PARTITION BY capture_id, lane ORDER BY t, ord ROWS UNBOUNDED PRECEDING) AS open_spans FROM mark
)
SELECT r.capture_id, r.lane, l.launch, l.cta, l.role, r.event, r.iteration, r.t
FROM run r LEFT JOIN lanes l ON l.capture_id = r.capture_id AND l.lane = r.lane
WHERE r.ord = 1 AND r.open_spans > 0;

CREATE OR REPLACE VIEW clock_map AS
-- clock_map: one straight line per (launch, clock), from its first to its last anchor; launch -1 holds for every launch without its own anchors.
-- With a single anchor only a clock that ticks in ns can be mapped; then ns_per_tick is 1.
WITH numbered AS (
  SELECT a.capture_id, a.launch, a.clock, a.reference_clock, a.t, a.reference_t, a.error_ns, c.unit,
         ROW_NUMBER() OVER (PARTITION BY a.capture_id, a.launch, a.clock, a.reference_clock ORDER BY a.t) AS from_start,
         ROW_NUMBER() OVER (PARTITION BY a.capture_id, a.launch, a.clock, a.reference_clock ORDER BY a.t DESC) AS from_end
  FROM clock_anchors a JOIN clocks c ON c.capture_id = a.capture_id AND c.clock = a.clock
)
SELECT f.capture_id, f.launch, f.clock, f.reference_clock, f.t AS t_first, l.t AS t_last, f.reference_t AS ns_first,
       CASE WHEN l.t > f.t THEN CAST(l.reference_t - f.reference_t AS DOUBLE) / CAST(l.t - f.t AS DOUBLE) WHEN f.unit = 'ns' THEN 1.0E0 END AS ns_per_tick,
       CASE WHEN f.error_ns > l.error_ns THEN f.error_ns ELSE l.error_ns END AS error_ns
FROM numbered f JOIN numbered l ON l.capture_id = f.capture_id AND l.launch = f.launch AND l.clock = f.clock AND l.reference_clock = f.reference_clock AND l.from_end = 1
WHERE f.from_start = 1;

CREATE OR REPLACE VIEW timeline_ns AS
-- timeline_ns: every span on a reference axis in ns, with the bound of the error. A span whose clock cannot be mapped gives NULL: comparison is refused, not guessed.
-- Order of choice: anchors of its launch, anchors of the whole capture, the clock itself when it ticks in ns.
SELECT s.capture_id, s.lane, s.launch, s.cta, s.warp, s.role, s.span, s.state, s.iteration, s.span_id,
       COALESCE(m.reference_clock, w.reference_clock, s.clock) AS reference_clock,
       CASE WHEN m.ns_per_tick IS NOT NULL THEN m.ns_first + CAST(FLOOR(CAST(s.t0 - m.t_first AS DOUBLE) * m.ns_per_tick + 0.5) AS BIGINT)
            WHEN w.ns_per_tick IS NOT NULL THEN w.ns_first + CAST(FLOOR(CAST(s.t0 - w.t_first AS DOUBLE) * w.ns_per_tick + 0.5) AS BIGINT)
            WHEN m.clock IS NULL AND w.clock IS NULL AND c.unit = 'ns' THEN s.t0 END AS ns0,
       CASE WHEN m.ns_per_tick IS NOT NULL THEN m.ns_first + CAST(FLOOR(CAST(s.t1 - m.t_first AS DOUBLE) * m.ns_per_tick + 0.5) AS BIGINT)
            WHEN w.ns_per_tick IS NOT NULL THEN w.ns_first + CAST(FLOOR(CAST(s.t1 - w.t_first AS DOUBLE) * w.ns_per_tick + 0.5) AS BIGINT)
            WHEN m.clock IS NULL AND w.clock IS NULL AND c.unit = 'ns' THEN s.t1 END AS ns1,
       CASE WHEN m.clock IS NOT NULL THEN m.error_ns WHEN w.clock IS NOT NULL THEN w.error_ns ELSE CAST(c.step_ticks AS DOUBLE) END AS error_ns,
       COALESCE(s.t0 < m.t_first OR s.t1 > m.t_last, FALSE) AS extrapolated
FROM span s
JOIN clocks c ON c.capture_id = s.capture_id AND c.clock = s.clock
LEFT JOIN clock_map m ON m.capture_id = s.capture_id AND m.clock = s.clock AND m.launch = s.launch AND m.launch >= 0
LEFT JOIN clock_map w ON w.capture_id = s.capture_id AND w.clock = s.clock AND w.launch = -1;

CREATE OR REPLACE VIEW lifetime AS
-- lifetime: ticks of a CTA from its first to its last instruction, on its own clock, and its trip count. Needs no stamps.
SELECT l.capture_id, l.launch, l.cta, l.sm, l.clock, k.kind, k.trip_count, k.slots, l.t_end - l.t_start AS ticks
FROM lanes l JOIN launches k ON k.capture_id = l.capture_id AND k.launch = l.launch
WHERE l.kind = 'cta' AND l.t_start >= 0 AND l.t_end >= l.t_start;

CREATE OR REPLACE VIEW lifetime_median AS
-- lifetime_median: median over launches of the median CTA lifetime of a launch, per capture and trip count. Medians are the mean of the two middle values.
WITH ranked AS (
  SELECT capture_id, launch, kind, trip_count, slots, ticks, ROW_NUMBER() OVER (PARTITION BY capture_id, launch ORDER BY ticks) AS nth, COUNT(*) OVER (PARTITION BY capture_id, launch) AS n FROM lifetime
), per_launch AS (
  SELECT capture_id, launch, kind, trip_count, slots, AVG(CAST(ticks AS DOUBLE)) AS ticks FROM ranked WHERE nth * 2 >= n AND nth * 2 <= n + 2 GROUP BY capture_id, launch, kind, trip_count, slots
), again AS (
  SELECT capture_id, kind, trip_count, slots, ticks, ROW_NUMBER() OVER (PARTITION BY capture_id, kind, trip_count, slots ORDER BY ticks) AS nth, COUNT(*) OVER (PARTITION BY capture_id, kind, trip_count, slots) AS n FROM per_launch
)
SELECT capture_id, kind, trip_count, slots, MIN(n) AS launches, AVG(ticks) AS ticks FROM again WHERE nth * 2 >= n AND nth * 2 <= n + 2 GROUP BY capture_id, kind, trip_count, slots;

CREATE OR REPLACE VIEW slope AS
-- slope: ticks an iteration = difference of lifetimes over difference of trip counts, for the two largest trip counts that the stamp slots hold (beyond them a stamped kernel runs unstamped). fixed_ticks is what is left.
WITH ranked AS (
  SELECT capture_id, kind, trip_count, launches, ticks, ROW_NUMBER() OVER (PARTITION BY capture_id, kind ORDER BY trip_count DESC) AS nth FROM lifetime_median WHERE trip_count > 0 AND (slots < 0 OR trip_count <= slots)
)
SELECT a.capture_id, a.kind, b.trip_count AS trips_low, a.trip_count AS trips_high, a.launches, (a.ticks - b.ticks) / (a.trip_count - b.trip_count) AS slope_ticks,
       a.ticks - a.trip_count * (a.ticks - b.ticks) / (a.trip_count - b.trip_count) AS fixed_ticks
FROM ranked a JOIN ranked b ON b.capture_id = a.capture_id AND b.kind = a.kind AND b.nth = 2
WHERE a.nth = 1;

CREATE OR REPLACE VIEW perturbation AS
-- perturbation: slope of a stamped capture over the clean slope of the same experiment, same trip counts, minus 1. The clean slope is taken between the stamped slope's trip counts.
SELECT s.capture_id, c.experiment, s.trips_low, s.trips_high, s.slope_ticks AS stamped_ticks, (h.ticks - l.ticks) / (s.trips_high - s.trips_low) AS clean_ticks,
       s.slope_ticks * (s.trips_high - s.trips_low) / (h.ticks - l.ticks) - 1 AS perturbation
FROM slope s JOIN captures c ON c.capture_id = s.capture_id
JOIN captures k ON k.experiment = c.experiment AND k.kind = 'clean'
JOIN lifetime_median h ON h.capture_id = k.capture_id AND h.trip_count = s.trips_high
JOIN lifetime_median l ON l.capture_id = k.capture_id AND l.trip_count = s.trips_low
WHERE s.kind = 'stamped' AND c.experiment <> '';
