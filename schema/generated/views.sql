-- Derived views of wsformat 0.1. Made by wsformat.generate from schema/views/.
-- The tables of the standard must be there by name; absent ones as empty tables (tables.duckdb.sql).

CREATE OR REPLACE VIEW point AS
-- point: every moment that has a name: stored stamps, and both ends of stored spans (span || '.begin', span || '.end').
-- role is the role that declares the name: for the end of a span that crosses lanes it is the role of the begin.
-- The end of an incomplete span is no moment that happened, so it is no point.
SELECT capture_id, lane, role, event, iteration, t FROM events
UNION ALL
SELECT capture_id, lane, role, span || '.begin' AS event, iteration, t0 AS t FROM spans
UNION ALL
SELECT capture_id, end_lane AS lane, role, span || '.end' AS event, iteration, t1 AS t FROM spans WHERE complete;

CREATE OR REPLACE VIEW recorded_window AS
-- recorded_window: the time of a lane over which its states are taken, for every lane that has a point.
-- It begins at the lane's first point. It ends at the last one, unless lanes.completeness is 'truncated'. Then the loop went on
-- without stamps, and what comes after the cut must not count as untracked time of the recorded part. The cut is
--   the last point of the loop that filled the slots (largest iteration >= launches.slots - 1; of several the one that ends first),
--   else the last point of any loop, else the lane's last point.
-- The loop of a point is that of event_types, else of span_types (ends of stored spans). Loop 'once' is outside every loop.
WITH ends AS (
  SELECT capture_id, lane, MIN(t) AS t_first, MAX(t) AS t_last, COUNT(*) AS points FROM point GROUP BY capture_id, lane
), named AS (
  SELECT capture_id, role, span || '.begin' AS event, loop FROM span_types
  UNION ALL
  SELECT capture_id, role, span || '.end' AS event, loop FROM span_types
), truncated_lane AS (
  SELECT l.capture_id, l.lane, COALESCE(k.slots, -1) AS slots
  FROM lanes l LEFT JOIN launches k ON k.capture_id = l.capture_id AND k.launch = l.launch
  WHERE l.completeness = 'truncated'
), lane_loop AS (
  SELECT p.capture_id, p.lane, x.slots, COALESCE(e.loop, n.loop, '') AS loop, MAX(p.iteration) AS last_iteration, MAX(p.t) AS t_last
  FROM point p
  JOIN truncated_lane x ON x.capture_id = p.capture_id AND x.lane = p.lane
  LEFT JOIN event_types e ON e.capture_id = p.capture_id AND e.role = p.role AND e.event = p.event
  LEFT JOIN named n ON n.capture_id = p.capture_id AND n.role = p.role AND n.event = p.event
  GROUP BY p.capture_id, p.lane, x.slots, COALESCE(e.loop, n.loop, '')
), cut AS (
  SELECT capture_id, lane, COALESCE(MIN(CASE WHEN slots > 0 AND last_iteration >= slots - 1 THEN t_last END), MAX(t_last)) AS t_cut
  FROM lane_loop WHERE loop <> 'once' GROUP BY capture_id, lane
)
SELECT e.capture_id, e.lane, e.t_first, COALESCE(c.t_cut, e.t_last) AS t_last, e.t_last AS t_last_point, e.points
FROM ends e LEFT JOIN cut c ON c.capture_id = e.capture_id AND c.lane = e.lane;

CREATE OR REPLACE VIEW span AS
-- span: stored spans, and spans paired from points by (capture, lane, iteration) and span_types. Never by stack order.
-- A pair needs exactly one begin and one end, the end not before the begin; everything else is in orphan.
-- role is the role that declares it (the role of its lane). end_event is the point that ends it: the declared end of a paired span, span || '.end' of a stored one.
-- A stored span that ends before it begins is not complete. A stored span whose kind has no entry in span_types has state 'unknown'.
-- (Kinds are numbered to keep the rows narrow; state is a key of the pairing so that a query for one state pairs nothing else.)
WITH kind AS (
  SELECT capture_id, role, span, state, begin_event, end_event, barrier, resource, CAST(ROW_NUMBER() OVER (PARTITION BY capture_id ORDER BY role, span) AS INT) AS kind FROM span_types
), bound AS (
  SELECT capture_id, role, kind, state, begin_event AS event, 1 AS is_begin FROM kind WHERE begin_event <> '' AND end_event <> ''
  UNION ALL
  SELECT capture_id, role, kind, state, end_event AS event, 0 AS is_begin FROM kind WHERE begin_event <> '' AND end_event <> ''
), pair AS (
  SELECT p.capture_id, p.lane, b.kind, b.state, p.iteration, COUNT(*) AS points,
         MIN(CASE WHEN b.is_begin = 1 THEN p.t END) AS t0, MIN(CASE WHEN b.is_begin = 0 THEN p.t END) AS t1
  FROM point p JOIN bound b ON b.capture_id = p.capture_id AND b.role = p.role AND b.event = p.event
  GROUP BY p.capture_id, p.lane, b.kind, b.state, p.iteration
)
SELECT x.capture_id, x.lane, x.lane AS end_lane, l.launch, l.cta, l.warp, k.role, k.span, x.state, k.barrier, k.resource, k.end_event, x.iteration, l.clock, x.t0, x.t1, TRUE AS complete, CAST(-1 AS BIGINT) AS span_id
FROM pair x
JOIN kind k ON k.capture_id = x.capture_id AND k.kind = x.kind
LEFT JOIN lanes l ON l.capture_id = x.capture_id AND l.lane = x.lane
WHERE x.points = 2 AND x.t1 >= x.t0
UNION ALL
SELECT x.capture_id, x.lane, x.end_lane, l.launch, l.cta, l.warp, x.role, x.span, COALESCE(s.state, 'unknown') AS state, COALESCE(s.barrier, '') AS barrier, COALESCE(s.resource, '') AS resource, x.span || '.end' AS end_event,
       x.iteration, l.clock, x.t0, x.t1, x.complete AND x.t1 >= x.t0 AS complete, x.span_id
FROM spans x
LEFT JOIN lanes l ON l.capture_id = x.capture_id AND l.lane = x.lane
LEFT JOIN span_types s ON s.capture_id = x.capture_id AND s.role = x.role AND s.span = x.span;

CREATE OR REPLACE VIEW orphan AS
-- orphan: points of a declared span that made no span, with the reason: duplicate (a begin or end occurs twice), no end, no begin, end before begin.
-- Where a begin or end occurs several times, t_begin and t_end are the first.
WITH bound AS (
  SELECT capture_id, role, span, begin_event AS event, 1 AS is_begin FROM span_types WHERE begin_event <> '' AND end_event <> ''
  UNION ALL
  SELECT capture_id, role, span, end_event AS event, 0 AS is_begin FROM span_types WHERE begin_event <> '' AND end_event <> ''
), pair AS (
  SELECT p.capture_id, p.lane, b.role, b.span, p.iteration, CAST(SUM(b.is_begin) AS BIGINT) AS begins, CAST(SUM(1 - b.is_begin) AS BIGINT) AS ends,
         MIN(CASE WHEN b.is_begin = 1 THEN p.t END) AS t_begin, MIN(CASE WHEN b.is_begin = 0 THEN p.t END) AS t_end
  FROM point p JOIN bound b ON b.capture_id = p.capture_id AND b.role = p.role AND b.event = p.event
  GROUP BY p.capture_id, p.lane, b.role, b.span, p.iteration
)
SELECT x.capture_id, x.lane, l.launch, l.cta, l.warp, x.role, x.span, x.iteration, x.begins, x.ends, x.t_begin, x.t_end,
       CASE WHEN x.begins > 1 OR x.ends > 1 THEN 'duplicate' WHEN x.ends = 0 THEN 'no end' WHEN x.begins = 0 THEN 'no begin' ELSE 'end before begin' END AS reason
FROM pair x LEFT JOIN lanes l ON l.capture_id = x.capture_id AND l.lane = x.lane
WHERE x.begins <> 1 OR x.ends <> 1 OR x.t_end < x.t_begin;

CREATE OR REPLACE VIEW state_interval AS
-- state_interval: the exclusive states of a lane as disjoint pieces that fill its recorded window: stall over active over untracked.
-- A piece lies between two consecutive ends of counted spans or of the window. Spans are cut at the end of the window.
-- Incomplete spans, spans that end on another lane, and states other than stall and active count in no state.
-- One running sum holds it all: an open stall weighs 1048576, an open active span 1, and the end of the window takes off so much that
-- everything after it is negative. (DOUBLE: exact here, and 3x faster than an integer sum in DuckDB.)
WITH both_ends AS (
  SELECT 1 AS at_begin UNION ALL SELECT 0 AS at_begin
), edge AS (
  SELECT x.capture_id, x.lane, CASE WHEN e.at_begin = 1 THEN x.t0 ELSE x.t1 END AS t,
         CASE WHEN x.state = 'stall' THEN 1048576.0E0 ELSE 1.0E0 END * CASE WHEN e.at_begin = 1 THEN 1 ELSE -1 END AS step
  FROM span x CROSS JOIN both_ends e
  WHERE x.complete AND x.end_lane = x.lane AND x.state IN ('stall', 'active')
  UNION ALL
  SELECT w.capture_id, w.lane, CASE WHEN e.at_begin = 1 THEN w.t_first ELSE w.t_last END AS t, CASE WHEN e.at_begin = 1 THEN 0.0E0 ELSE -1099511627776.0E0 END AS step
  FROM recorded_window w CROSS JOIN both_ends e
), run AS (
  SELECT capture_id, lane, t AS t0, LEAD(t) OVER (PARTITION BY capture_id, lane ORDER BY t) AS t1,
         SUM(step) OVER (PARTITION BY capture_id, lane ORDER BY t ROWS UNBOUNDED PRECEDING) AS open_spans
  FROM edge
)
SELECT capture_id, lane, CASE WHEN open_spans >= 1048576 THEN 'stall' WHEN open_spans > 0 THEN 'active' ELSE 'untracked' END AS state, t0, t1
FROM run WHERE t1 > t0 AND open_spans >= 0;

CREATE OR REPLACE VIEW role_state AS
-- role_state: ticks of each exclusive state over the recorded window, per lane. stall + active + untracked = extent.
-- One row for every lane that has a point or plays a role; a lane without points (points = 0) has "no stamps" and extent 0.
WITH part AS (
  SELECT capture_id, lane, CAST(NULL AS BIGINT) AS t_first, CAST(NULL AS BIGINT) AS t_last, CAST(0 AS BIGINT) AS points,
         CAST(SUM(CASE WHEN state = 'stall' THEN t1 - t0 ELSE 0 END) AS BIGINT) AS stall,
         CAST(SUM(CASE WHEN state = 'active' THEN t1 - t0 ELSE 0 END) AS BIGINT) AS active,
         CAST(SUM(CASE WHEN state = 'untracked' THEN t1 - t0 ELSE 0 END) AS BIGINT) AS untracked
  FROM state_interval GROUP BY capture_id, lane
  UNION ALL
  SELECT capture_id, lane, t_first, t_last, points, CAST(0 AS BIGINT) AS stall, CAST(0 AS BIGINT) AS active, CAST(0 AS BIGINT) AS untracked FROM recorded_window
  UNION ALL
  SELECT capture_id, lane, CAST(NULL AS BIGINT) AS t_first, CAST(NULL AS BIGINT) AS t_last, CAST(0 AS BIGINT) AS points, CAST(0 AS BIGINT) AS stall, CAST(0 AS BIGINT) AS active, CAST(0 AS BIGINT) AS untracked FROM lanes WHERE role <> ''
), whole AS (
  SELECT capture_id, lane, MIN(t_first) AS t_first, MAX(t_last) AS t_last, MAX(points) AS points, MAX(stall) AS stall, MAX(active) AS active, MAX(untracked) AS untracked FROM part GROUP BY capture_id, lane
)
SELECT x.capture_id, x.lane, l.launch, l.cta, l.warp, l.role, l.clock, x.t_first, x.t_last, x.points, x.stall + x.active + x.untracked AS extent, x.stall, x.active, x.untracked
FROM whole x LEFT JOIN lanes l ON l.capture_id = x.capture_id AND l.lane = x.lane;

CREATE OR REPLACE VIEW active_set AS
-- active_set: the sets that overlap compares, per CTA. set_kind 'role': exclusive active time of any lane of the role.
-- set_kind 'resource': time in which a complete span that keeps that resource busy is open, whatever the lane's own state (a warp that waits for its wgmma
-- keeps the tensor pipe busy). Both within the recorded window of the lane. Intervals of one set may overlap: overlap counts their union.
SELECT x.capture_id, l.launch, l.cta, l.clock, 'role' AS set_kind, l.role AS set_name, x.t0, x.t1
FROM state_interval x JOIN lanes l ON l.capture_id = x.capture_id AND l.lane = x.lane WHERE x.state = 'active' AND l.cta >= 0 AND l.role <> ''
UNION ALL
SELECT x.capture_id, x.launch, x.cta, x.clock, 'resource' AS set_kind, x.resource AS set_name, x.t0, CASE WHEN x.t1 > w.t_last THEN w.t_last ELSE x.t1 END AS t1
FROM span x JOIN recorded_window w ON w.capture_id = x.capture_id AND w.lane = x.lane
WHERE x.resource <> '' AND x.complete AND x.end_lane = x.lane AND x.cta >= 0 AND x.t1 > x.t0 AND x.t0 < w.t_last;

CREATE OR REPLACE VIEW overlap AS
-- overlap: for every two sets of one kind in one CTA on one clock: ticks in which both are active, with all three denominators and the window.
-- A pair has a row where lanes that can show both sets have points on that clock, even if a set was never active (shares are then null): no row means
-- that there is nothing to compare, never 0. The window runs from the first to the last tick of the recorded windows of the CTA's lanes on that clock.
-- One running sum: an open interval of set_a weighs 1048576, of set_b 1.
WITH lane_window AS (
  SELECT w.capture_id, l.launch, l.cta, l.clock, l.role, MIN(w.t_first) AS t_first, MAX(w.t_last) AS t_last
  FROM recorded_window w JOIN lanes l ON l.capture_id = w.capture_id AND l.lane = w.lane WHERE l.cta >= 0 AND l.role <> ''
  GROUP BY w.capture_id, l.launch, l.cta, l.clock, l.role
), extent AS (
  SELECT capture_id, launch, cta, clock, MIN(t_first) AS t_first, MAX(t_last) AS t_last FROM lane_window GROUP BY capture_id, launch, cta, clock
), shown AS (
  SELECT capture_id, launch, cta, clock, 'role' AS set_kind, role AS set_name FROM lane_window
  UNION
  SELECT w.capture_id, w.launch, w.cta, w.clock, 'resource' AS set_kind, s.resource AS set_name
  FROM lane_window w JOIN span_types s ON s.capture_id = w.capture_id AND s.role = w.role WHERE s.resource <> ''
), compared AS (
  SELECT a.capture_id, a.launch, a.cta, a.clock, a.set_kind, a.set_name AS set_a, b.set_name AS set_b,
         CAST(ROW_NUMBER() OVER (PARTITION BY a.capture_id ORDER BY a.launch, a.cta, a.clock, a.set_kind, a.set_name, b.set_name) AS INT) AS pair
  FROM shown a JOIN shown b ON b.capture_id = a.capture_id AND b.launch = a.launch AND b.cta = a.cta AND b.clock = a.clock AND b.set_kind = a.set_kind
  WHERE b.set_name > a.set_name
), sides AS (
  SELECT capture_id, launch, cta, clock, set_kind, pair, set_a AS set_name, 1 AS at_begin, 1048576.0E0 AS step FROM compared
  UNION ALL SELECT capture_id, launch, cta, clock, set_kind, pair, set_a AS set_name, 0 AS at_begin, -1048576.0E0 AS step FROM compared
  UNION ALL SELECT capture_id, launch, cta, clock, set_kind, pair, set_b AS set_name, 1 AS at_begin, 1.0E0 AS step FROM compared
  UNION ALL SELECT capture_id, launch, cta, clock, set_kind, pair, set_b AS set_name, 0 AS at_begin, -1.0E0 AS step FROM compared
), edge AS (
  SELECT s.capture_id, p.pair, CASE WHEN p.at_begin = 1 THEN s.t0 ELSE s.t1 END AS t, p.step
  FROM active_set s
  JOIN sides p ON p.capture_id = s.capture_id AND p.launch = s.launch AND p.cta = s.cta AND p.clock = s.clock AND p.set_kind = s.set_kind AND p.set_name = s.set_name
), run AS (
  SELECT capture_id, pair, LEAD(t) OVER (PARTITION BY capture_id, pair ORDER BY t) - t AS ticks,
         SUM(step) OVER (PARTITION BY capture_id, pair ORDER BY t ROWS UNBOUNDED PRECEDING) AS open_spans
  FROM edge
), total AS (
  SELECT capture_id, pair,
         CAST(SUM(CASE WHEN open_spans > 1048576 AND open_spans % 1048576 > 0 THEN ticks ELSE 0 END) AS BIGINT) AS both_ticks,
         CAST(SUM(CASE WHEN open_spans >= 1048576 THEN ticks ELSE 0 END) AS BIGINT) AS a_ticks,
         CAST(SUM(CASE WHEN open_spans % 1048576 > 0 THEN ticks ELSE 0 END) AS BIGINT) AS b_ticks,
         CAST(SUM(CASE WHEN open_spans > 0 THEN ticks ELSE 0 END) AS BIGINT) AS union_ticks
  FROM run GROUP BY capture_id, pair
)
SELECT c.capture_id, c.launch, c.cta, c.clock, c.set_kind, c.set_a, c.set_b, COALESCE(t.both_ticks, 0) AS both_ticks, COALESCE(t.a_ticks, 0) AS a_ticks,
       COALESCE(t.b_ticks, 0) AS b_ticks, COALESCE(t.union_ticks, 0) AS union_ticks,
       CASE WHEN t.a_ticks > 0 THEN CAST(t.both_ticks AS DOUBLE) / t.a_ticks END AS of_a, CASE WHEN t.b_ticks > 0 THEN CAST(t.both_ticks AS DOUBLE) / t.b_ticks END AS of_b,
       CASE WHEN t.union_ticks > 0 THEN CAST(t.both_ticks AS DOUBLE) / t.union_ticks END AS of_union, e.t_first, e.t_last
FROM compared c
JOIN extent e ON e.capture_id = c.capture_id AND e.launch = c.launch AND e.cta = c.cta AND e.clock = c.clock
LEFT JOIN total t ON t.capture_id = c.capture_id AND t.pair = c.pair;

CREATE OR REPLACE VIEW clock_node AS
-- clock_node: the anchors of one line (launch, clock, reference clock), those of one tick put together: the moment t lies between low_ns and high_ns.
-- Both are relative to ns_origin, the reference time of the line's first anchor (by t, then reference_t), so that no large number meets a DOUBLE.
-- Of several anchors at one tick the bounds are intersected; where they exclude each other (agrees 0) the hull of all is taken. middle_ns: half way, or the (least)
-- reading where the line has an anchor without a bound (is_bounded 0).
WITH numbered AS (
  SELECT capture_id, launch, clock, reference_clock, t, reference_t, error_ns,
         ROW_NUMBER() OVER (PARTITION BY capture_id, launch, clock, reference_clock ORDER BY t, reference_t) AS nth,
         COUNT(*) OVER (PARTITION BY capture_id, launch, clock, reference_clock) AS rows_of_line, COUNT(error_ns) OVER (PARTITION BY capture_id, launch, clock, reference_clock) AS rows_bounded
  FROM clock_anchors
), origin AS (
  SELECT capture_id, launch, clock, reference_clock, t AS t_first, reference_t AS ns_origin FROM numbered WHERE nth = 1
), merged AS (
  SELECT n.capture_id, n.launch, n.clock, n.reference_clock, n.t, o.t_first, o.ns_origin, COUNT(*) AS anchors, MIN(CASE WHEN n.rows_bounded = n.rows_of_line THEN 1 ELSE 0 END) AS is_bounded,
         MAX(CAST(n.reference_t - o.ns_origin AS DOUBLE) - n.error_ns) AS low_in, MIN(CAST(n.reference_t - o.ns_origin AS DOUBLE) + n.error_ns) AS high_in,
         MIN(CAST(n.reference_t - o.ns_origin AS DOUBLE) - n.error_ns) AS low_out, MAX(CAST(n.reference_t - o.ns_origin AS DOUBLE) + n.error_ns) AS high_out,
         MIN(CAST(n.reference_t - o.ns_origin AS DOUBLE)) AS reading
  FROM numbered n JOIN origin o ON o.capture_id = n.capture_id AND o.launch = n.launch AND o.clock = n.clock AND o.reference_clock = n.reference_clock
  GROUP BY n.capture_id, n.launch, n.clock, n.reference_clock, n.t, o.t_first, o.ns_origin
), bounded AS (
  SELECT capture_id, launch, clock, reference_clock, t, t_first, ns_origin, anchors, is_bounded, reading, CASE WHEN is_bounded = 1 AND low_in > high_in THEN 0 ELSE 1 END AS agrees,
         CASE WHEN is_bounded = 1 THEN CASE WHEN low_in > high_in THEN low_out ELSE low_in END END AS low_ns, CASE WHEN is_bounded = 1 THEN CASE WHEN low_in > high_in THEN high_out ELSE high_in END END AS high_ns
  FROM merged
)
SELECT capture_id, launch, clock, reference_clock, CAST(ROW_NUMBER() OVER (PARTITION BY capture_id, launch, clock, reference_clock ORDER BY t) - 1 AS INT) AS node,
       CAST(COUNT(*) OVER (PARTITION BY capture_id, launch, clock, reference_clock) AS INT) AS nodes, anchors, t, t - t_first AS after_ticks, ns_origin, low_ns, high_ns,
       CASE WHEN is_bounded = 1 THEN (low_ns + high_ns) / 2 ELSE reading END AS middle_ns, is_bounded, agrees
FROM bounded;

CREATE OR REPLACE VIEW clock_fit AS
-- clock_fit: where all straight lines through the bounds of a line's nodes lie: at its first node between first_low_ns and first_high_ns, at its last one between
-- last_low_ns and last_high_ns (relative to ns_origin). For lines of two or more nodes that are all bounded. Exact: a line that keeps under high_ns at x1 and above low_ns
-- at x2 is under high1 + (high1 - low2) * (x1 - 0) / (x2 - x1) at 0 when 0 <= x1 < x2; the least of these over all pairs is the highest that such a line can be there.
-- No line fits when a least high is below the greatest low.
-- Most nodes say nothing: one whose bound lies outside the straight line between those of its neighbours is implied by them. Four passes drop these, which changes no result
-- and keeps the pairs few.
WITH side AS (
  SELECT 1 AS side UNION ALL SELECT -1 AS side
), corner0 AS (
  SELECT n.capture_id, n.launch, n.clock, n.reference_clock, s.side, CAST(n.after_ticks AS DOUBLE) AS x, CASE WHEN s.side = 1 THEN n.high_ns ELSE -n.low_ns END AS v
  FROM clock_node n CROSS JOIN side s WHERE n.is_bounded = 1 AND n.nodes > 1
), near1 AS (
  SELECT capture_id, launch, clock, reference_clock, side, x, v, LAG(x) OVER (PARTITION BY capture_id, launch, clock, reference_clock, side ORDER BY x) AS x0, LAG(v) OVER (PARTITION BY capture_id, launch, clock, reference_clock, side ORDER BY x) AS v0,
         LEAD(x) OVER (PARTITION BY capture_id, launch, clock, reference_clock, side ORDER BY x) AS x2, LEAD(v) OVER (PARTITION BY capture_id, launch, clock, reference_clock, side ORDER BY x) AS v2
  FROM corner0
), corner1 AS (
  SELECT capture_id, launch, clock, reference_clock, side, x, v FROM near1 WHERE x0 IS NULL OR x2 IS NULL OR (v - v0) * (x2 - x0) <= (v2 - v0) * (x - x0)
), near2 AS (
  SELECT capture_id, launch, clock, reference_clock, side, x, v, LAG(x) OVER (PARTITION BY capture_id, launch, clock, reference_clock, side ORDER BY x) AS x0, LAG(v) OVER (PARTITION BY capture_id, launch, clock, reference_clock, side ORDER BY x) AS v0,
         LEAD(x) OVER (PARTITION BY capture_id, launch, clock, reference_clock, side ORDER BY x) AS x2, LEAD(v) OVER (PARTITION BY capture_id, launch, clock, reference_clock, side ORDER BY x) AS v2
  FROM corner1
), corner2 AS (
  SELECT capture_id, launch, clock, reference_clock, side, x, v FROM near2 WHERE x0 IS NULL OR x2 IS NULL OR (v - v0) * (x2 - x0) <= (v2 - v0) * (x - x0)
), near3 AS (
  SELECT capture_id, launch, clock, reference_clock, side, x, v, LAG(x) OVER (PARTITION BY capture_id, launch, clock, reference_clock, side ORDER BY x) AS x0, LAG(v) OVER (PARTITION BY capture_id, launch, clock, reference_clock, side ORDER BY x) AS v0,
         LEAD(x) OVER (PARTITION BY capture_id, launch, clock, reference_clock, side ORDER BY x) AS x2, LEAD(v) OVER (PARTITION BY capture_id, launch, clock, reference_clock, side ORDER BY x) AS v2
  FROM corner2
), corner3 AS (
  SELECT capture_id, launch, clock, reference_clock, side, x, v FROM near3 WHERE x0 IS NULL OR x2 IS NULL OR (v - v0) * (x2 - x0) <= (v2 - v0) * (x - x0)
), near4 AS (
  SELECT capture_id, launch, clock, reference_clock, side, x, v, LAG(x) OVER (PARTITION BY capture_id, launch, clock, reference_clock, side ORDER BY x) AS x0, LAG(v) OVER (PARTITION BY capture_id, launch, clock, reference_clock, side ORDER BY x) AS v0,
         LEAD(x) OVER (PARTITION BY capture_id, launch, clock, reference_clock, side ORDER BY x) AS x2, LEAD(v) OVER (PARTITION BY capture_id, launch, clock, reference_clock, side ORDER BY x) AS v2
  FROM corner3
), corner4 AS (
  SELECT capture_id, launch, clock, reference_clock, side, x, v, MAX(x) OVER (PARTITION BY capture_id, launch, clock, reference_clock) AS x_last
  FROM near4 WHERE x0 IS NULL OR x2 IS NULL OR (v - v0) * (x2 - x0) <= (v2 - v0) * (x - x0)
)
SELECT h.capture_id, h.launch, h.clock, h.reference_clock,
       MAX(CASE WHEN l.x < h.x THEN -l.v - (h.v + l.v) * l.x / (h.x - l.x) END) AS first_low_ns, MIN(CASE WHEN h.x < l.x THEN h.v + (h.v + l.v) * h.x / (l.x - h.x) END) AS first_high_ns,
       MAX(CASE WHEN h.x < l.x THEN -l.v - (h.v + l.v) * (h.x_last - l.x) / (l.x - h.x) END) AS last_low_ns, MIN(CASE WHEN l.x < h.x THEN h.v + (h.v + l.v) * (h.x_last - h.x) / (h.x - l.x) END) AS last_high_ns
FROM corner4 h JOIN corner4 l ON l.capture_id = h.capture_id AND l.launch = h.launch AND l.clock = h.clock AND l.reference_clock = h.reference_clock
WHERE h.side = 1 AND l.side = -1
GROUP BY h.capture_id, h.launch, h.clock, h.reference_clock;

CREATE OR REPLACE VIEW clock_map AS
-- clock_map: one straight line per (launch, clock, reference clock), from its first to its last anchor; launch -1 holds for every launch without its own anchors.
-- The reference must tick in ns (-1 is Unix time in ns). With anchors of one tick only, a clock that ticks in ns can be mapped; then ns_per_tick is 1.
-- is_straight: some straight line lies within the bounds of all anchors (null: not known, an anchor has no bound or there is no line). Then the line runs through the middle of all such lines at
--   its first and at its last anchor. Not straight: the rate changed (or a bound is wrong), and the line joins the middles of the first and the last anchor.
--   Time never runs back while ticks go on: where that line would fall, it is level, half way between its ends.
-- Checked: a straight line none of whose gaps between neighbouring nodes is longer than two thirds of it. Anchors near its ends only cannot show that the rate was constant.
-- error_ns: the greatest distance of an end of any anchor's bound from the line, so that at each anchor the true time is that near, whatever the rate did.
-- wander_ns: what a clock of core cycles may be off beyond error_ns between two anchors where nothing shows its rate to be constant (not checked, or not straight):
--   0.15 of the time to the nearer end of the piece (see clock_segment), at most half of the longest one. 0 on a line that is checked.
-- ns_per_tick null: no map. error_ns null: an anchor has no bound.
WITH node AS (
  SELECT capture_id, launch, clock, reference_clock, node, nodes, anchors, t, after_ticks, ns_origin, low_ns, high_ns, middle_ns, agrees FROM clock_node
), line AS (
  SELECT n.capture_id, n.launch, n.clock, n.reference_clock, n.nodes, COALESCE(c.unit, 'tick') AS unit, CASE WHEN n.reference_clock = -1 THEN 'ns' ELSE COALESCE(r.unit, 'tick') END AS reference_unit,
         MIN(n.t) AS t_first, MAX(n.t) AS t_last, MIN(n.ns_origin) AS ns_origin, CAST(SUM(n.anchors) AS BIGINT) AS anchors, MIN(n.agrees) AS agrees,
         MIN(CASE WHEN n.node = 0 THEN n.middle_ns END) AS first_middle, MIN(CASE WHEN n.node = n.nodes - 1 THEN n.middle_ns END) AS last_middle
  FROM node n
  LEFT JOIN clocks c ON c.capture_id = n.capture_id AND c.clock = n.clock
  LEFT JOIN clocks r ON r.capture_id = n.capture_id AND r.clock = n.reference_clock
  GROUP BY n.capture_id, n.launch, n.clock, n.reference_clock, n.nodes, COALESCE(c.unit, 'tick'), CASE WHEN n.reference_clock = -1 THEN 'ns' ELSE COALESCE(r.unit, 'tick') END
), fitted AS (
  SELECT l.capture_id, l.launch, l.clock, l.reference_clock, l.nodes, l.unit, l.reference_unit, l.t_first, l.t_last, l.ns_origin, l.anchors, l.first_middle, l.last_middle,
         f.first_low_ns, f.first_high_ns, f.last_low_ns, f.last_high_ns,
         CASE WHEN f.clock IS NULL THEN NULL WHEN l.agrees = 1 AND f.first_low_ns <= f.first_high_ns + 1.0E-6 AND f.last_low_ns <= f.last_high_ns + 1.0E-6 THEN 1 ELSE 0 END AS is_straight
  FROM line l LEFT JOIN clock_fit f ON f.capture_id = l.capture_id AND f.launch = l.launch AND f.clock = l.clock AND f.reference_clock = l.reference_clock
), joined AS (
  SELECT capture_id, launch, clock, reference_clock, nodes, unit, reference_unit, t_first, t_last, ns_origin, anchors, is_straight,
         FLOOR(CASE WHEN is_straight = 1 THEN (first_low_ns + first_high_ns) / 2 ELSE first_middle END + 0.5E0) AS first_at, FLOOR(CASE WHEN is_straight = 1 THEN (last_low_ns + last_high_ns) / 2 ELSE last_middle END + 0.5E0) AS last_at
  FROM fitted
), ended AS (
  SELECT capture_id, launch, clock, reference_clock, nodes, unit, reference_unit, t_first, t_last, ns_origin, anchors, is_straight,
         CASE WHEN last_at < first_at THEN FLOOR((first_at + last_at) / 2 + 0.5E0) ELSE first_at END AS first_at, CASE WHEN last_at < first_at THEN FLOOR((first_at + last_at) / 2 + 0.5E0) ELSE last_at END AS last_at
  FROM joined
), sloped AS (
  SELECT capture_id, launch, clock, reference_clock, nodes, unit, t_first, t_last, ns_origin, anchors, is_straight, first_at, last_at,
         CASE WHEN reference_unit <> 'ns' THEN NULL WHEN t_last > t_first THEN (last_at - first_at) / CAST(t_last - t_first AS DOUBLE) WHEN unit = 'ns' THEN 1.0E0 END AS ns_per_tick
  FROM ended
), gap AS (
  SELECT capture_id, launch, clock, reference_clock, node, after_ticks, low_ns, high_ns, after_ticks - LAG(after_ticks) OVER (PARTITION BY capture_id, launch, clock, reference_clock ORDER BY node) AS ticks FROM node
), covered AS (
  SELECT s.capture_id, s.launch, s.clock, s.reference_clock, MAX(g.ticks) AS widest, MAX(g.high_ns - (s.first_at + CAST(g.after_ticks AS DOUBLE) * s.ns_per_tick)) AS above, MAX(s.first_at + CAST(g.after_ticks AS DOUBLE) * s.ns_per_tick - g.low_ns) AS below
  FROM sloped s JOIN gap g ON g.capture_id = s.capture_id AND g.launch = s.launch AND g.clock = s.clock AND g.reference_clock = s.reference_clock
  GROUP BY s.capture_id, s.launch, s.clock, s.reference_clock
)
SELECT s.capture_id, s.launch, s.clock, s.reference_clock, s.t_first, s.t_last, s.ns_origin + CAST(s.first_at AS BIGINT) AS ns_first, s.ns_origin + CAST(s.last_at AS BIGINT) AS ns_last, s.anchors, s.ns_per_tick,
       CASE WHEN c.above >= c.below THEN c.above ELSE c.below END AS error_ns, CASE WHEN s.ns_per_tick IS NULL OR s.is_straight IS NULL THEN NULL ELSE s.is_straight = 1 END AS is_straight,
       CASE WHEN s.ns_per_tick IS NULL THEN NULL WHEN s.unit = 'cycle' AND s.is_straight = 0 THEN 0.15E0 * CAST(c.widest AS DOUBLE) / 2 * s.ns_per_tick
            WHEN s.unit = 'cycle' AND s.nodes > 1 AND (s.is_straight IS NULL OR 3.0E0 * c.widest > 2.0E0 * (s.t_last - s.t_first)) THEN 0.15E0 * CAST(s.t_last - s.t_first AS DOUBLE) / 2 * s.ns_per_tick ELSE 0.0E0 END AS wander_ns
FROM sloped s JOIN covered c ON c.capture_id = s.capture_id AND c.launch = s.launch AND c.clock = s.clock AND c.reference_clock = s.reference_clock;

CREATE OR REPLACE VIEW clock_segment AS
-- clock_segment: how ticks of a clock become ns: the pieces of the map of a (launch, clock). Of several reference clocks the lowest number from 0 on, Unix time (-1) last.
-- One piece, the line of clock_map, unless no straight line fits its anchors: then one between each two neighbouring nodes, joining their middles.
-- Time never runs back while ticks go on: a middle that lies before an earlier one is taken as that one, and its bound reaches from the latest low so far to its own high.
-- Where the latest low so far lies after the earliest high from here on, anchors exclude each other: the bound then reaches from the least low from here on to the greatest high so far.
-- Within a piece the true time lies within error_ns of it at its ends, and as far in between when the rate is constant there; where nothing shows that, a clock of core cycles may be
-- off by wander (a ratio) of the time to the nearer end as well. t_last of a piece is t_first of the next. Maps of launch -1 hold for launches without their own.
WITH ranked AS (
  SELECT capture_id, launch, clock, reference_clock, t_first, t_last, ns_first, ns_per_tick, error_ns, is_straight, wander_ns,
         ROW_NUMBER() OVER (PARTITION BY capture_id, launch, clock ORDER BY CASE WHEN reference_clock < 0 THEN 1 ELSE 0 END, reference_clock) AS choice
  FROM clock_map WHERE ns_per_tick IS NOT NULL
), chosen AS (
  SELECT capture_id, launch, clock, reference_clock, t_first, t_last, ns_first, ns_per_tick, error_ns, CASE WHEN is_straight = FALSE THEN 1 ELSE 0 END AS is_bent,
         CASE WHEN wander_ns > 0 THEN 0.15E0 ELSE 0.0E0 END AS wander
  FROM ranked WHERE choice = 1
), ascending AS (
  SELECT c.capture_id, c.launch, c.clock, c.reference_clock, c.wander, n.node, n.nodes, n.t, n.ns_origin, n.high_ns,
         MAX(FLOOR(n.middle_ns + 0.5E0)) OVER (PARTITION BY n.capture_id, n.launch, n.clock, n.reference_clock ORDER BY n.node ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS middle_at,
         MAX(n.low_ns) OVER (PARTITION BY n.capture_id, n.launch, n.clock, n.reference_clock ORDER BY n.node ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS low_so_far, MAX(n.high_ns) OVER (PARTITION BY n.capture_id, n.launch, n.clock, n.reference_clock ORDER BY n.node ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS high_so_far,
         MIN(n.low_ns) OVER (PARTITION BY n.capture_id, n.launch, n.clock, n.reference_clock ORDER BY n.node DESC ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS low_from_here, MIN(n.high_ns) OVER (PARTITION BY n.capture_id, n.launch, n.clock, n.reference_clock ORDER BY n.node DESC ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS high_from_here
  FROM chosen c JOIN clock_node n ON n.capture_id = c.capture_id AND n.launch = c.launch AND n.clock = c.clock AND n.reference_clock = c.reference_clock
  WHERE c.is_bent = 1
), bounded AS (
  SELECT capture_id, launch, clock, reference_clock, wander, node, nodes, t, ns_origin, middle_at, CASE WHEN low_so_far > high_from_here THEN low_from_here ELSE low_so_far END AS low_ns, CASE WHEN low_so_far > high_from_here THEN high_so_far ELSE high_ns END AS high_ns
  FROM ascending
), piece AS (
  SELECT capture_id, launch, clock, reference_clock, wander, node, nodes, t, ns_origin, middle_at, CASE WHEN high_ns - middle_at >= middle_at - low_ns THEN high_ns - middle_at ELSE middle_at - low_ns END AS half
  FROM bounded
), joined AS (
  SELECT capture_id, launch, clock, reference_clock, wander, node, nodes, t, ns_origin, middle_at, half,
         LEAD(t) OVER (PARTITION BY capture_id, launch, clock, reference_clock ORDER BY node) AS t_next, LEAD(middle_at) OVER (PARTITION BY capture_id, launch, clock, reference_clock ORDER BY node) AS next_at,
         LEAD(half) OVER (PARTITION BY capture_id, launch, clock, reference_clock ORDER BY node) AS next_half
  FROM piece
)
SELECT capture_id, launch, clock, reference_clock, 0 AS segment, 1 AS segments, t_first, t_last, ns_first, ns_per_tick, error_ns, wander FROM chosen WHERE is_bent = 0
UNION ALL
SELECT capture_id, launch, clock, reference_clock, node AS segment, nodes - 1 AS segments, t AS t_first, t_next AS t_last, ns_origin + CAST(middle_at AS BIGINT) AS ns_first,
       (next_at - middle_at) / CAST(t_next - t AS DOUBLE) AS ns_per_tick, CASE WHEN half >= next_half THEN half ELSE next_half END AS error_ns, wander
FROM joined WHERE t_next IS NOT NULL;

CREATE OR REPLACE VIEW moment_segment AS
-- moment_segment: the piece of the map in which a moment lies, for every named moment and end of a span on a clock whose map has several pieces. launch is that of the map (-1: of the capture).
WITH piece AS (
  SELECT capture_id, launch, clock, segment, segments, t_first FROM clock_segment
), own AS (
  SELECT capture_id, launch, clock, segments FROM piece WHERE segment = 0
), bent AS (
  SELECT capture_id, launch, clock FROM own WHERE segments > 1
), lane_map AS (
  SELECT l.capture_id, l.lane, CASE WHEN o.clock IS NOT NULL THEN l.launch ELSE -1 END AS launch, l.clock
  FROM lanes l LEFT JOIN own o ON o.capture_id = l.capture_id AND o.launch = l.launch AND o.clock = l.clock
), bent_lane AS (
  SELECT m.capture_id, m.lane, m.launch, m.clock FROM lane_map m JOIN bent b ON b.capture_id = m.capture_id AND b.launch = m.launch AND b.clock = m.clock
), named AS (
  SELECT b.capture_id, b.launch, b.clock, p.t FROM point p JOIN bent_lane b ON b.capture_id = p.capture_id AND b.lane = p.lane
  UNION
  SELECT b.capture_id, b.launch, b.clock, s.t1 AS t FROM spans s JOIN bent_lane b ON b.capture_id = s.capture_id AND b.lane = s.lane
), run AS (
  SELECT capture_id, launch, clock, t, 1 AS is_moment, 0 AS segment FROM named
  UNION ALL
  SELECT capture_id, launch, clock, t_first AS t, 0 AS is_moment, segment FROM piece WHERE segments > 1
), counted AS (
  SELECT capture_id, launch, clock, t, is_moment, MAX(segment) OVER (PARTITION BY capture_id, launch, clock ORDER BY t, is_moment, segment ROWS UNBOUNDED PRECEDING) AS segment FROM run
)
SELECT capture_id, launch, clock, t, segment FROM counted WHERE is_moment = 1;

CREATE OR REPLACE VIEW cta_cluster AS
-- cta_cluster: the cluster of each CTA that has a lane, by the grid and cluster of its launch; -1 where CTAs run alone or the sizes are unknown.
-- cta = x + grid_x * (y + grid_y * z). Clusters are numbered likewise: x / cluster_x + clusters in x * (y / cluster_y + clusters in y * z / cluster_z).
WITH sized AS (
  SELECT capture_id, launch, grid_x, grid_y, grid_z, cluster_x, cluster_y, cluster_z, CAST(cluster_x AS BIGINT) * cluster_y * cluster_z AS cluster_ctas FROM launches
  WHERE grid_x > 0 AND grid_y > 0 AND grid_z > 0 AND cluster_x > 0 AND cluster_y > 0 AND cluster_z > 0 AND grid_x % cluster_x = 0 AND grid_y % cluster_y = 0 AND grid_z % cluster_z = 0 AND CAST(cluster_x AS BIGINT) * cluster_y * cluster_z > 1
), recorded AS (
  SELECT DISTINCT capture_id, launch, cta FROM lanes WHERE cta >= 0
), placed AS (
  SELECT r.capture_id, r.launch, r.cta, s.cluster_ctas, s.cluster_x, s.cluster_y, s.cluster_z, CAST(s.grid_x / s.cluster_x AS BIGINT) AS across, CAST(s.grid_y / s.cluster_y AS BIGINT) AS down,
         r.cta % s.grid_x AS x, CAST((r.cta - r.cta % s.grid_x) / s.grid_x AS BIGINT) % s.grid_y AS y, CAST((r.cta - r.cta % (CAST(s.grid_x AS BIGINT) * s.grid_y)) / (CAST(s.grid_x AS BIGINT) * s.grid_y) AS BIGINT) AS z
  FROM recorded r LEFT JOIN sized s ON s.capture_id = r.capture_id AND s.launch = r.launch
)
SELECT capture_id, launch, cta, CAST(CASE WHEN cluster_ctas > 1 THEN (x - x % cluster_x) / cluster_x + across * ((y - y % cluster_y) / cluster_y + down * ((z - z % cluster_z) / cluster_z)) ELSE -1 END AS INT) AS cluster,
       CAST(COALESCE(cluster_ctas, 1) AS INT) AS cluster_ctas
FROM placed;

CREATE OR REPLACE VIEW wait_kind AS
-- wait_kind: every kind of wait (a stall span kind and the point that ends it) with each edge that is declared into that point; edge_kind 0 where there is none. Small.
-- A span kind can end in two ways: at the declared end_event when it is paired, at span || '.end' when it is stored.
-- is_mapped 0: a step is 0, so which iterations belong together is unknown. is_own 1: a self edge of mechanism 'commit', a warp waits for its own work.
-- latency = latency_ticks, rounded: FLOOR(x + 0.5).
-- release_kind numbers what shares one release: the edges of completion 'signal' into the wait together (a wake-up does not depend on who arrived),
--   each producer point of completion 'async' by itself.
WITH ended AS (
  SELECT capture_id, role, span, barrier, end_event, floor_ticks FROM span_types WHERE state = 'stall' AND begin_event <> '' AND end_event <> ''
  UNION
  SELECT capture_id, role, span, barrier, span || '.end' AS end_event, floor_ticks FROM span_types WHERE state = 'stall'
), joined AS (
  SELECT e.capture_id, e.role, e.span, e.barrier, e.end_event, e.floor_ticks, COALESCE(d.producer_role, '') AS producer_role, COALESCE(d.producer_event, '') AS producer_event, d.iteration_lag,
         COALESCE(d.mechanism, '') AS mechanism, COALESCE(d.completion, '') AS completion, COALESCE(d.scope, '') AS scope, CASE WHEN d.producer_role IS NULL THEN 0 ELSE 1 END AS is_declared,
         CASE WHEN d.producer_step > 0 AND d.consumer_step > 0 THEN 1 ELSE 0 END AS is_mapped, CASE WHEN d.producer_step > 0 AND d.consumer_step > 0 THEN d.producer_step ELSE 1 END AS producer_step,
         CAST(d.consumer_step AS BIGINT) AS consumer_step, CASE WHEN d.mechanism = 'commit' AND d.producer_role = d.consumer_role THEN 1 ELSE 0 END AS is_own,
         CAST(FLOOR(d.latency_ticks + 0.5E0) AS BIGINT) AS latency
  FROM ended e LEFT JOIN dependencies d ON d.capture_id = e.capture_id AND d.consumer_role = e.role AND d.consumer_event = e.end_event
)
SELECT capture_id, CAST(DENSE_RANK() OVER (PARTITION BY capture_id ORDER BY role, span, end_event) AS INT) AS wait_kind,
       CAST(CASE WHEN is_declared = 1 THEN ROW_NUMBER() OVER (PARTITION BY capture_id, role, span, end_event ORDER BY producer_role, producer_event, iteration_lag) ELSE 0 END AS INT) AS edge_kind,
       CAST(DENSE_RANK() OVER (PARTITION BY capture_id ORDER BY role, span, end_event, CASE WHEN completion = 'async' THEN producer_role ELSE '' END, CASE WHEN completion = 'async' THEN producer_event ELSE '' END) AS INT) AS release_kind,
       role, span, barrier, end_event, floor_ticks, producer_role, producer_event, iteration_lag, mechanism, completion, scope, is_mapped, producer_step, consumer_step, is_own, latency
FROM joined;

CREATE OR REPLACE VIEW cross_signal AS
-- cross_signal: signals that reach a wait from another CTA: for each wait and declared edge of scope 'cluster' or 'device' that it needs, the signal in ticks of the wait's own clock, with the bound of what
-- two clocks leave open. wait_edge is made of it.
-- Signal: the last point (producer_role, producer_event, i) over the CTAs of the wait's cluster, or of its launch, in ns on their common reference. There is one only when all CTAs of the cluster (the grid) have
-- lanes, all are mapped with a bound, and the point occurs in iteration i as often as there are lanes among them that ever wrote it or are known to have lost records: the missing one may be the last.
-- It is turned into ticks from the nearer end of the wait. error_ticks: the bounds of both (error and wander, see clock_segment) and a tick for rounding. producer_lane: the lane that is last as placed.
WITH wide AS (
  SELECT capture_id, wait_kind, edge_kind, role, span, end_event, producer_role, producer_event, producer_step, consumer_step, iteration_lag, scope FROM wait_kind WHERE is_mapped = 1 AND scope IN ('cluster', 'device')
), sender AS (
  SELECT DISTINCT capture_id, producer_role, producer_event, scope FROM wide
), piece AS (
  SELECT s.capture_id, s.launch, s.clock, s.reference_clock, s.segment, s.t_first, s.t_last, s.ns_first, s.ns_per_tick, s.error_ns, s.wander, CASE WHEN c.step_ticks > 0 THEN c.step_ticks END AS step_ticks
  FROM clock_segment s LEFT JOIN clocks c ON c.capture_id = s.capture_id AND c.clock = s.clock
), own AS (
  SELECT capture_id, launch, clock FROM piece WHERE segment = 0
), sized AS (
  SELECT capture_id, launch, CASE WHEN grid_x > 0 AND grid_y > 0 AND grid_z > 0 THEN CAST(grid_x AS BIGINT) * grid_y * grid_z ELSE CAST(-1 AS BIGINT) END AS grid_ctas FROM launches
), member AS (
  SELECT l.capture_id, l.launch, l.lane, l.cta, l.role, l.clock, l.records_lost, 'cluster' AS scope, c.cluster AS team, CAST(c.cluster_ctas AS BIGINT) AS expected, CASE WHEN o.clock IS NOT NULL THEN l.launch ELSE -1 END AS map_launch
  FROM lanes l JOIN cta_cluster c ON c.capture_id = l.capture_id AND c.launch = l.launch AND c.cta = l.cta LEFT JOIN own o ON o.capture_id = l.capture_id AND o.launch = l.launch AND o.clock = l.clock
  WHERE c.cluster >= 0
  UNION ALL
  SELECT l.capture_id, l.launch, l.lane, l.cta, l.role, l.clock, l.records_lost, 'device' AS scope, 0 AS team, g.grid_ctas AS expected, CASE WHEN o.clock IS NOT NULL THEN l.launch ELSE -1 END AS map_launch
  FROM lanes l JOIN sized g ON g.capture_id = l.capture_id AND g.launch = l.launch LEFT JOIN own o ON o.capture_id = l.capture_id AND o.launch = l.launch AND o.clock = l.clock
  WHERE l.cta >= 0
), whole AS (
  SELECT capture_id, launch, scope, team FROM member GROUP BY capture_id, launch, scope, team, expected HAVING COUNT(DISTINCT cta) = expected
), written AS (
  SELECT p.capture_id, m.launch, m.scope, m.team, s.producer_role, s.producer_event, p.iteration, p.lane, p.t, m.clock, m.map_launch, m.role AS lane_role
  FROM point p
  JOIN sender s ON s.capture_id = p.capture_id AND s.producer_role = p.role AND s.producer_event = p.event
  JOIN member m ON m.capture_id = p.capture_id AND m.lane = p.lane AND m.scope = s.scope
), needed AS (
  SELECT s.capture_id, s.lane, s.iteration, s.span_id, s.t0, s.t1, k.wait_kind, k.edge_kind, k.producer_role, k.producer_event, k.producer_step, k.scope, k.consumer_step * s.iteration - k.iteration_lag AS units
  FROM span s JOIN wide k ON k.capture_id = s.capture_id AND k.role = s.role AND k.span = s.span AND k.end_event = s.end_event
  WHERE s.state = 'stall' AND s.complete AND s.end_lane = s.lane AND s.iteration >= 0
), waiting AS (
  SELECT n.capture_id, n.lane, n.iteration, n.span_id, n.t0, n.t1, n.wait_kind, n.edge_kind, n.producer_role, n.producer_event, n.scope, CAST(n.units / n.producer_step AS INT) AS producer_iteration, m.launch, m.team, m.clock, m.map_launch
  FROM needed n JOIN member m ON m.capture_id = n.capture_id AND m.lane = n.lane AND m.scope = n.scope
  WHERE n.units >= 0 AND n.units % n.producer_step = 0
), moment_at AS (
  SELECT capture_id, map_launch, clock, t FROM written
  UNION
  SELECT capture_id, map_launch, clock, t0 AS t FROM waiting
  UNION
  SELECT capture_id, map_launch, clock, t1 AS t FROM waiting
), run AS (
  SELECT capture_id, map_launch, clock, t, 1 AS is_moment, 0 AS segment FROM moment_at
  UNION ALL
  SELECT capture_id, launch AS map_launch, clock, t_first AS t, 0 AS is_moment, segment FROM piece WHERE segment > 0
), counted AS (
  SELECT capture_id, map_launch, clock, t, is_moment, MAX(segment) OVER (PARTITION BY capture_id, map_launch, clock ORDER BY t, is_moment, segment ROWS UNBOUNDED PRECEDING) AS segment FROM run
), moment AS (
  SELECT capture_id, map_launch AS launch, clock, t, segment FROM counted WHERE is_moment = 1
), writer AS (
  SELECT capture_id, launch, scope, team, producer_role, producer_event, lane FROM written WHERE lane_role = producer_role
  UNION
  SELECT m.capture_id, m.launch, m.scope, m.team, s.producer_role, s.producer_event, m.lane FROM member m JOIN sender s ON s.capture_id = m.capture_id AND s.scope = m.scope AND s.producer_role = m.role WHERE m.records_lost > 0
), writers AS (
  SELECT capture_id, launch, scope, team, producer_role, producer_event, COUNT(*) AS lanes FROM writer GROUP BY capture_id, launch, scope, team, producer_role, producer_event
), placed AS (
  SELECT w.capture_id, w.launch, w.scope, w.team, w.producer_role, w.producer_event, w.iteration, w.lane, k.reference_clock, k.ns_first + CAST(FLOOR(CAST(w.t - k.t_first AS DOUBLE) * k.ns_per_tick + 0.5E0) AS BIGINT) AS ns,
         k.error_ns + k.step_ticks * k.ns_per_tick + CASE WHEN k.t_last > k.t_first AND w.t < k.t_first THEN 2 * k.error_ns * CAST(k.t_first - w.t AS DOUBLE) / CAST(k.t_last - k.t_first AS DOUBLE)
           WHEN k.t_last > k.t_first AND w.t > k.t_last THEN 2 * k.error_ns * CAST(w.t - k.t_last AS DOUBLE) / CAST(k.t_last - k.t_first AS DOUBLE) ELSE 0.0E0 END
           + k.wander * k.ns_per_tick * CASE WHEN w.t < k.t_first THEN k.t_first - w.t WHEN w.t > k.t_last THEN w.t - k.t_last WHEN w.t - k.t_first < k.t_last - w.t THEN w.t - k.t_first ELSE k.t_last - w.t END AS error_ns
  FROM written w
  LEFT JOIN moment x ON x.capture_id = w.capture_id AND x.launch = w.map_launch AND x.clock = w.clock AND x.t = w.t
  LEFT JOIN piece k ON k.capture_id = w.capture_id AND k.launch = w.map_launch AND k.clock = w.clock AND k.segment = COALESCE(x.segment, 0)
), ordered AS (
  SELECT capture_id, launch, scope, team, producer_role, producer_event, iteration, lane, reference_clock, ns, error_ns,
         MAX(ns) OVER (PARTITION BY capture_id, launch, scope, team, producer_role, producer_event, iteration) AS last_ns, ROW_NUMBER() OVER (PARTITION BY capture_id, launch, scope, team, producer_role, producer_event, iteration ORDER BY ns DESC, lane) AS nth
  FROM placed
), sent AS (
  SELECT o.capture_id, o.launch, o.scope, o.team, o.producer_role, o.producer_event, o.iteration, MIN(o.reference_clock) AS reference_clock, MAX(o.last_ns) AS ns, MIN(CASE WHEN o.nth = 1 THEN o.lane END) AS lane,
         MAX(CAST(o.ns - o.last_ns AS DOUBLE) + o.error_ns) AS above, MAX(CAST(o.ns - o.last_ns AS DOUBLE) - o.error_ns) AS below
  FROM ordered o
  JOIN whole h ON h.capture_id = o.capture_id AND h.launch = o.launch AND h.scope = o.scope AND h.team = o.team
  JOIN writers w ON w.capture_id = o.capture_id AND w.launch = o.launch AND w.scope = o.scope AND w.team = o.team AND w.producer_role = o.producer_role AND w.producer_event = o.producer_event
  GROUP BY o.capture_id, o.launch, o.scope, o.team, o.producer_role, o.producer_event, o.iteration, w.lanes
  HAVING COUNT(*) >= w.lanes AND COUNT(o.error_ns) = COUNT(*) AND MIN(o.reference_clock) = MAX(o.reference_clock)
), met AS (
  SELECT w.capture_id, w.lane, w.iteration, w.span_id, w.t0, w.t1, w.wait_kind, w.edge_kind, w.producer_iteration, g.lane AS producer_lane, CASE WHEN g.above >= -g.below THEN g.above ELSE -g.below END AS signal_error,
         a.ns_per_tick AS rate0, b.ns_per_tick AS rate1, g.ns - (a.ns_first + CAST(FLOOR(CAST(w.t0 - a.t_first AS DOUBLE) * a.ns_per_tick + 0.5E0) AS BIGINT)) AS after0, g.ns - (b.ns_first + CAST(FLOOR(CAST(w.t1 - b.t_first AS DOUBLE) * b.ns_per_tick + 0.5E0) AS BIGINT)) AS after1,
         a.error_ns + a.step_ticks * a.ns_per_tick + CASE WHEN a.t_last > a.t_first AND w.t0 < a.t_first THEN 2 * a.error_ns * CAST(a.t_first - w.t0 AS DOUBLE) / CAST(a.t_last - a.t_first AS DOUBLE)
           WHEN a.t_last > a.t_first AND w.t0 > a.t_last THEN 2 * a.error_ns * CAST(w.t0 - a.t_last AS DOUBLE) / CAST(a.t_last - a.t_first AS DOUBLE) ELSE 0.0E0 END
           + a.wander * a.ns_per_tick * CASE WHEN w.t0 < a.t_first THEN a.t_first - w.t0 WHEN w.t0 > a.t_last THEN w.t0 - a.t_last WHEN w.t0 - a.t_first < a.t_last - w.t0 THEN w.t0 - a.t_first ELSE a.t_last - w.t0 END AS error0,
         b.error_ns + b.step_ticks * b.ns_per_tick + CASE WHEN b.t_last > b.t_first AND w.t1 < b.t_first THEN 2 * b.error_ns * CAST(b.t_first - w.t1 AS DOUBLE) / CAST(b.t_last - b.t_first AS DOUBLE)
           WHEN b.t_last > b.t_first AND w.t1 > b.t_last THEN 2 * b.error_ns * CAST(w.t1 - b.t_last AS DOUBLE) / CAST(b.t_last - b.t_first AS DOUBLE) ELSE 0.0E0 END
           + b.wander * b.ns_per_tick * CASE WHEN w.t1 < b.t_first THEN b.t_first - w.t1 WHEN w.t1 > b.t_last THEN w.t1 - b.t_last WHEN w.t1 - b.t_first < b.t_last - w.t1 THEN w.t1 - b.t_first ELSE b.t_last - w.t1 END AS error1
  FROM waiting w
  JOIN sent g ON g.capture_id = w.capture_id AND g.launch = w.launch AND g.scope = w.scope AND g.team = w.team AND g.producer_role = w.producer_role AND g.producer_event = w.producer_event AND g.iteration = w.producer_iteration
  LEFT JOIN moment x ON x.capture_id = w.capture_id AND x.launch = w.map_launch AND x.clock = w.clock AND x.t = w.t0
  LEFT JOIN moment y ON y.capture_id = w.capture_id AND y.launch = w.map_launch AND y.clock = w.clock AND y.t = w.t1
  JOIN piece a ON a.capture_id = w.capture_id AND a.launch = w.map_launch AND a.clock = w.clock AND a.segment = COALESCE(x.segment, 0) AND a.reference_clock = g.reference_clock
  JOIN piece b ON b.capture_id = w.capture_id AND b.launch = w.map_launch AND b.clock = w.clock AND b.segment = COALESCE(y.segment, 0) AND b.reference_clock = g.reference_clock
)
SELECT capture_id, lane, iteration, span_id, wait_kind, edge_kind, producer_iteration, producer_lane,
       CASE WHEN ABS(after0) <= ABS(after1) THEN t0 + CAST(FLOOR(CAST(after0 AS DOUBLE) / rate0 + 0.5E0) AS BIGINT) ELSE t1 + CAST(FLOOR(CAST(after1 AS DOUBLE) / rate1 + 0.5E0) AS BIGINT) END AS signal_t,
       CASE WHEN ABS(after0) <= ABS(after1) THEN (signal_error + error0) / rate0 ELSE (signal_error + error1) / rate1 END + 1 AS error_ticks
FROM met WHERE rate0 > 0 AND rate1 > 0 AND error0 IS NOT NULL AND error1 IS NOT NULL;

CREATE OR REPLACE VIEW wait_edge AS
-- wait_edge: every wait (complete stall span of one lane) with each edge of its kind. wait and signal are made of it; wait_kind says what the numbers mean.
--
-- For a wait of iteration j and a declared edge (a row of dependencies into the point that ends the wait): n = consumer_step * j - iteration_lag.
--   The edge does not apply when n is no multiple of producer_step. It is free when n < 0: no producer iteration exists (the ring is not yet full).
--   Otherwise it is needed, from producer iteration i = n / producer_step. Needed as well, and never found: a step of 0 (mapping of iterations
--   unknown), a wait whose own iteration is unknown (-1).
-- Signal of a needed edge: the last point (producer_role, producer_event, i) of that CTA on the clock of the wait; of the wait's own lane only
--   when the edge is a self edge of mechanism 'commit' (a warp waits for its own work, never for its neighbour's). Where the role has several lanes there
--   and one of them is not known to be complete (lanes.completeness, records_lost), every lane of them that ever wrote the point or is known to have lost records must have it in iteration i, else there is no signal.
-- Of an edge of scope 'cluster' or 'device' the signal and its error_ticks are those of cross_signal; 0 for others, whose times are on one clock.
-- slack = end - signal. A small negative slack is legal: the stamp follows the arrive. An edge is contradicted when the wait ended before the signal by more than
--   the shortest wait of its wait kind and clock unit in the capture plus one (the largest) clock step plus error_ticks.
-- release = latency_ticks, rounded; else the smallest slack over the waits of its release kind and clock unit in the capture that surely began before the signal, by more than error_ticks
--   (the smallest that is not negative, where the smallest is a contradiction); else 0 for completion 'signal', unknown (null) for 'async'.
-- ready = signal + release. ready_error: what is open of it in ticks: error_ticks, and where the release was inferred the greatest error_ticks of the waits that it was inferred from. ready_by: the latest ready of any needed edge of the wait, errors added, in ticks after its begin. nth orders the edges of a wait: 1 binds, the needed edge that is ready last. Ties: the later signal, then producer_role, producer_event,
--   iteration_lag, the first in order. Needed edges without signal come after those with, edges that are not needed last.
-- edges, found: needed edges of the wait, and those with a signal. is_free 1: some edge is free.
-- is_open above 0: the wait cannot be judged: 1 a needed edge has no signal or an unknown release, 2 one is contradicted.
-- is_unsure 1: another needed edge may be ready last, within the errors of both, and would be judged in another way: its signal is not on the same side of the begin, or both are before it and only one is of a symmetric barrier.
-- producer_lane: the lane that sent the signal; of several the smallest.
-- Ticks are subtracted before anything else meets them: absolute ns exceed 2^53. The number of a CTA (home) is its first lane on that clock.
-- (width: a kind of wait with a single edge, 1, needs no ranking, which is most of the cost; one without edges from other CTAs, 2, has no errors.)
WITH home AS (
  SELECT l.capture_id, l.lane, MIN(l.lane) OVER (PARTITION BY l.capture_id, l.launch, l.cta, l.clock) AS home,
         CASE WHEN c.unit = 'cycle' THEN 1 WHEN c.unit = 'ns' THEN 2 ELSE 3 END AS unit_kind, CASE WHEN c.step_ticks > 0 THEN c.step_ticks ELSE CAST(0 AS BIGINT) END AS step_ticks
  FROM lanes l LEFT JOIN clocks c ON c.capture_id = l.capture_id AND c.clock = l.clock
), sender AS (
  SELECT capture_id, producer_role, producer_event, is_own, ROW_NUMBER() OVER (PARTITION BY capture_id ORDER BY producer_role, producer_event, is_own) AS sender
  FROM (SELECT DISTINCT capture_id, producer_role, producer_event, is_own FROM wait_kind WHERE is_mapped = 1 AND scope = 'cta') AS senders
), edge_kind AS (
  SELECT k.capture_id, k.wait_kind, k.edge_kind, k.release_kind, k.role, k.span, k.end_event, k.iteration_lag, k.is_mapped, k.producer_step, k.consumer_step, k.is_own, k.latency, CASE WHEN k.mechanism = 'bar_sync' THEN 1 ELSE 0 END AS is_symmetric,
         CASE WHEN COUNT(*) OVER (PARTITION BY k.capture_id, k.wait_kind) = 1 THEN 1 WHEN MAX(CASE WHEN k.scope IN ('cluster', 'device') THEN 1 ELSE 0 END) OVER (PARTITION BY k.capture_id, k.wait_kind) = 0 THEN 2 ELSE 3 END AS width,
         CASE WHEN k.completion = 'async' THEN CAST(NULL AS BIGINT) ELSE CAST(0 AS BIGINT) END AS default_release, CASE WHEN k.scope = 'cta' THEN s.sender END AS sender
  FROM wait_kind k LEFT JOIN sender s ON s.capture_id = k.capture_id AND s.producer_role = k.producer_role AND s.producer_event = k.producer_event AND s.is_own = k.is_own
), team AS (
  SELECT h.capture_id, h.home, l.role, MAX(CASE WHEN l.completeness = 'complete' AND l.records_lost <= 0 THEN 0 ELSE 1 END) AS is_lossy
  FROM lanes l JOIN home h ON h.capture_id = l.capture_id AND h.lane = l.lane
  GROUP BY h.capture_id, h.home, l.role HAVING COUNT(*) > 1
), team_point AS (
  SELECT p.capture_id, p.lane, m.home, s.sender, p.iteration, p.t, m.is_lossy, CASE WHEN l.role = p.role THEN p.lane END AS member
  FROM point p
  JOIN sender s ON s.capture_id = p.capture_id AND s.producer_role = p.role AND s.producer_event = p.event AND s.is_own = 0
  JOIN home h ON h.capture_id = p.capture_id AND h.lane = p.lane
  JOIN team m ON m.capture_id = p.capture_id AND m.home = h.home AND m.role = p.role
  JOIN lanes l ON l.capture_id = p.capture_id AND l.lane = p.lane
), writer AS (
  SELECT capture_id, home, sender, member FROM team_point WHERE is_lossy = 1 AND member IS NOT NULL
  UNION
  SELECT h.capture_id, h.home, s.sender, l.lane AS member
  FROM lanes l
  JOIN home h ON h.capture_id = l.capture_id AND h.lane = l.lane
  JOIN team m ON m.capture_id = h.capture_id AND m.home = h.home AND m.role = l.role
  JOIN sender s ON s.capture_id = l.capture_id AND s.producer_role = l.role AND s.is_own = 0
  WHERE l.records_lost > 0
), writers AS (
  SELECT capture_id, home, sender, COUNT(*) AS lanes FROM writer GROUP BY capture_id, home, sender
), team_last AS (
  SELECT capture_id, home, sender, iteration, t, lane, COUNT(*) OVER (PARTITION BY capture_id, home, sender, iteration) AS points,
         ROW_NUMBER() OVER (PARTITION BY capture_id, home, sender, iteration ORDER BY t DESC, lane) AS nth
  FROM team_point
), sent AS (
  SELECT p.capture_id, CASE WHEN s.is_own = 1 THEN p.lane ELSE h.home END AS home, s.sender, p.iteration, MAX(p.t) AS t, MIN(p.lane) AS lane
  FROM point p
  JOIN sender s ON s.capture_id = p.capture_id AND s.producer_role = p.role AND s.producer_event = p.event
  JOIN home h ON h.capture_id = p.capture_id AND h.lane = p.lane
  LEFT JOIN team m ON m.capture_id = p.capture_id AND m.home = h.home AND m.role = p.role
  WHERE s.is_own = 1 OR m.home IS NULL
  GROUP BY p.capture_id, CASE WHEN s.is_own = 1 THEN p.lane ELSE h.home END, s.sender, p.iteration
  UNION ALL
  SELECT x.capture_id, x.home, x.sender, x.iteration, x.t, x.lane
  FROM team_last x LEFT JOIN writers w ON w.capture_id = x.capture_id AND w.home = x.home AND w.sender = x.sender
  WHERE x.nth = 1 AND x.points >= COALESCE(w.lanes, 1)
), stall AS (
  SELECT s.capture_id, s.lane, s.role, s.span, s.end_event, s.iteration, s.span_id, s.t0, s.t1, COALESCE(h.home, -1) AS home, COALESCE(h.unit_kind, 3) AS unit_kind, COALESCE(h.step_ticks, 0) AS step_ticks
  FROM span s LEFT JOIN home h ON h.capture_id = s.capture_id AND h.lane = s.lane
  WHERE s.state = 'stall' AND s.complete AND s.end_lane = s.lane
), edge AS (
  SELECT w.capture_id, w.lane, w.iteration, w.span_id, w.t0, w.t1, w.unit_kind, w.step_ticks, k.wait_kind, k.edge_kind, k.release_kind, k.latency, k.width, k.default_release, k.sender, CASE WHEN k.is_own = 1 THEN w.lane ELSE w.home END AS home, k.producer_step,
         CASE WHEN k.is_mapped = 1 AND w.iteration >= 0 THEN 1 ELSE 0 END AS is_mapped, k.consumer_step * w.iteration - k.iteration_lag AS units
  FROM stall w JOIN edge_kind k ON k.capture_id = w.capture_id AND k.role = w.role AND k.span = w.span AND k.end_event = w.end_event
), mapped AS (
  SELECT capture_id, lane, iteration, span_id, t0, t1, unit_kind, step_ticks, wait_kind, edge_kind, release_kind, latency, width, default_release, sender, home,
         CASE WHEN edge_kind = 0 THEN 0 WHEN is_mapped = 0 THEN 1 WHEN units % producer_step <> 0 OR units < 0 THEN 0 ELSE 1 END AS is_needed,
         CASE WHEN is_mapped = 1 AND units % producer_step = 0 AND units < 0 THEN 1 ELSE 0 END AS is_free,
         CASE WHEN is_mapped = 1 AND units % producer_step = 0 AND units >= 0 THEN CAST(units / producer_step AS INT) END AS producer_iteration
  FROM edge
), met AS (
  SELECT e.capture_id, e.lane, e.iteration, e.span_id, e.t0, e.t1, e.step_ticks, e.wait_kind, e.edge_kind, e.release_kind, e.unit_kind, e.is_needed, e.is_free, e.latency, e.width, e.default_release, e.producer_iteration, COALESCE(g.lane, c.producer_lane) AS producer_lane, COALESCE(g.t, c.signal_t) AS signal_t, COALESCE(c.error_ticks, 0.0E0) AS error_ticks
  FROM mapped e LEFT JOIN sent g ON g.capture_id = e.capture_id AND g.home = e.home AND g.sender = e.sender AND g.iteration = e.producer_iteration
  LEFT JOIN cross_signal c ON c.capture_id = e.capture_id AND c.lane = e.lane AND c.iteration = e.iteration AND c.span_id = e.span_id AND c.wait_kind = e.wait_kind AND c.edge_kind = e.edge_kind
), kind_release AS (
  SELECT capture_id, release_kind, unit_kind, MIN(t1 - t0) + MAX(step_ticks) AS tolerance, MIN(CASE WHEN signal_t - t0 > error_ticks THEN t1 - signal_t END) AS least_slack, MIN(CASE WHEN signal_t - t0 > error_ticks AND t1 >= signal_t THEN t1 - signal_t END) AS least_plain_slack,
         COALESCE(MAX(CASE WHEN signal_t - t0 > error_ticks THEN error_ticks END), 0.0E0) AS slack_error
  FROM met GROUP BY capture_id, release_kind, unit_kind
), matched AS (
  SELECT m.capture_id, m.lane, m.iteration, m.span_id, m.t0, m.t1, m.step_ticks, m.wait_kind, m.edge_kind, m.is_needed, m.is_free, m.latency, m.width, m.default_release, m.producer_iteration, m.producer_lane, m.signal_t, m.error_ticks, r.tolerance, r.least_slack, r.least_plain_slack, r.slack_error
  FROM met m JOIN kind_release r ON r.capture_id = m.capture_id AND r.release_kind = m.release_kind AND r.unit_kind = m.unit_kind
), released AS (
  SELECT capture_id, lane, iteration, span_id, t0, t1, step_ticks, wait_kind, edge_kind, width, is_needed, is_free, producer_iteration, producer_lane, signal_t, error_ticks, CASE WHEN signal_t - t1 > tolerance + error_ticks THEN 1 ELSE 0 END AS is_contradicted, error_ticks + CASE WHEN latency IS NULL THEN slack_error ELSE 0.0E0 END AS ready_error,
         CASE WHEN signal_t IS NOT NULL THEN COALESCE(latency, CASE WHEN least_slack + tolerance + slack_error >= 0 THEN least_slack ELSE least_plain_slack END, default_release) END AS release_ticks
  FROM matched
), opened AS (
  SELECT capture_id, lane, iteration, span_id, t0, t1, step_ticks, wait_kind, edge_kind, width, is_needed, is_free, producer_iteration, producer_lane, signal_t, release_ticks, error_ticks, ready_error, CAST(signal_t - t0 + release_ticks AS DOUBLE) + ready_error AS ready_by, CASE WHEN is_contradicted = 1 THEN 2 WHEN is_needed = 1 AND release_ticks IS NULL THEN 1 ELSE 0 END AS is_open
  FROM released
), ranked AS (
  SELECT o.capture_id, o.lane, o.iteration, o.span_id, o.t0, o.t1, o.step_ticks, o.wait_kind, o.edge_kind, o.is_needed, o.producer_iteration, o.producer_lane, o.signal_t, o.release_ticks, o.error_ticks, o.ready_error, o.ready_by, o.is_free, o.is_open, k.is_symmetric,
         CAST(ROW_NUMBER() OVER (PARTITION BY o.capture_id, o.lane, o.wait_kind, o.iteration, o.span_id
                            ORDER BY o.is_needed DESC, CASE WHEN o.signal_t IS NULL THEN 1 ELSE 0 END, o.signal_t + COALESCE(o.release_ticks, 0) DESC, o.signal_t DESC, o.edge_kind) AS INT) AS nth,
         MAX(o.ready_by - 2 * o.ready_error) OVER (PARTITION BY o.capture_id, o.lane, o.wait_kind, o.iteration, o.span_id) AS ready_surely, MAX(o.ready_error) OVER (PARTITION BY o.capture_id, o.lane, o.wait_kind, o.iteration, o.span_id) AS most_error
  FROM opened o JOIN edge_kind k ON k.capture_id = o.capture_id AND k.wait_kind = o.wait_kind AND k.edge_kind = o.edge_kind WHERE o.width = 3
), sided AS (
  SELECT capture_id, lane, iteration, span_id, t0, t1, step_ticks, wait_kind, edge_kind, is_needed, producer_iteration, producer_lane, signal_t, release_ticks, error_ticks, ready_error, ready_by, is_free, is_open, nth,
         CASE WHEN is_needed = 1 AND (nth = 1 OR (ready_by >= ready_surely AND most_error > 0)) THEN CASE WHEN signal_t - t0 > error_ticks THEN 0 WHEN t0 - signal_t >= error_ticks THEN 2 + is_symmetric ELSE 4 END END AS side
  FROM ranked
)
SELECT capture_id, lane, iteration, span_id, t0, t1, step_ticks, wait_kind, edge_kind, is_needed, producer_iteration, producer_lane, signal_t, release_ticks,
       is_needed AS edges, CASE WHEN signal_t IS NULL THEN 0 ELSE 1 END AS found, is_free, is_open, 1 AS nth, error_ticks, ready_error, ready_by, 0 AS is_unsure
FROM opened WHERE width = 1
UNION ALL
SELECT capture_id, lane, iteration, span_id, t0, t1, step_ticks, wait_kind, edge_kind, is_needed, producer_iteration, producer_lane, signal_t, release_ticks,
       CAST(SUM(is_needed) OVER (PARTITION BY capture_id, lane, wait_kind, iteration, span_id) AS INT) AS edges,
       CAST(COUNT(signal_t) OVER (PARTITION BY capture_id, lane, wait_kind, iteration, span_id) AS INT) AS found,
       MAX(is_free) OVER (PARTITION BY capture_id, lane, wait_kind, iteration, span_id) AS is_free,
       MAX(is_open) OVER (PARTITION BY capture_id, lane, wait_kind, iteration, span_id) AS is_open,
       CAST(ROW_NUMBER() OVER (PARTITION BY capture_id, lane, wait_kind, iteration, span_id
                          ORDER BY is_needed DESC, CASE WHEN signal_t IS NULL THEN 1 ELSE 0 END, signal_t + COALESCE(release_ticks, 0) DESC, signal_t DESC, edge_kind) AS INT) AS nth,
       error_ticks, ready_error, MAX(ready_by) OVER (PARTITION BY capture_id, lane, wait_kind, iteration, span_id) AS ready_by, 0 AS is_unsure
FROM opened WHERE width = 2
UNION ALL
SELECT capture_id, lane, iteration, span_id, t0, t1, step_ticks, wait_kind, edge_kind, is_needed, producer_iteration, producer_lane, signal_t, release_ticks,
       CAST(SUM(is_needed) OVER (PARTITION BY capture_id, lane, wait_kind, iteration, span_id) AS INT) AS edges, CAST(COUNT(signal_t) OVER (PARTITION BY capture_id, lane, wait_kind, iteration, span_id) AS INT) AS found, MAX(is_free) OVER (PARTITION BY capture_id, lane, wait_kind, iteration, span_id) AS is_free, MAX(is_open) OVER (PARTITION BY capture_id, lane, wait_kind, iteration, span_id) AS is_open, nth, error_ticks, ready_error,
       MAX(ready_by) OVER (PARTITION BY capture_id, lane, wait_kind, iteration, span_id) AS ready_by, CASE WHEN MIN(side) OVER (PARTITION BY capture_id, lane, wait_kind, iteration, span_id) < MAX(side) OVER (PARTITION BY capture_id, lane, wait_kind, iteration, span_id) THEN 1 ELSE 0 END AS is_unsure
FROM sided;

CREATE OR REPLACE VIEW wait AS
-- wait: every complete stall span of one lane, its binding edge (see wait_edge), its verdict, and how its ticks divide.
-- verdict, the first that holds:
--   free           no edge is needed, and at least one is free
--   unknown        no edge is needed (none declared), or some needed edge has no signal, is contradicted or has an unknown release, or two clocks leave open which of the below holds: see reason
--   other          more than half of the wait lies after ready, and more than 16 satisfied waits would take, 16 * (wait_floor + one clock step):
--                  something that no edge declares kept the lane. Never where no floor is known. For a free wait, and where ready is before the begin, the begin counts as ready.
--   not_blocked    ready at or before the begin
--   producer_late  signal after the begin
--   in_flight      signal at or before the begin, ready after it
--   Signals from other CTAs are known to error_ticks: each of these must hold whatever the error is (not_blocked for all needed edges of the wait, by ready_by).
--   Where another edge may be ready last, within the errors of both, it must hold by that one too (wait_edge.is_unsure).
-- reason, of an unknown one: no edge; no signal; contradicted; release unknown; within clock error. '' for others.
-- At a symmetric barrier (mechanism 'bar_sync') everybody pays the release after the last arrival, so a wait whose binding signal is not after its begin is satisfied:
--   it arrived last.
-- wait_floor = what a satisfied wait costs (stamps and test): floor_ticks of the span type, rounded; else the smallest satisfied wait (free, or ready at or before the begin)
--   of that role, span and clock unit in the capture; else of that clock unit in the capture; else 0 (none known). Never the smallest wait as such: it may be blocked itself.
-- ticks = blocked_ticks + satisfied_ticks + unjudged_ticks. blocked = ticks - wait_floor, not below 0, for producer_late, in_flight and other; unjudged = ticks for unknown.
WITH named AS (
  SELECT capture_id, wait_kind, edge_kind, DENSE_RANK() OVER (PARTITION BY capture_id ORDER BY role, span) AS floor_kind, CASE WHEN floor_ticks >= 0 THEN CAST(FLOOR(floor_ticks + 0.5E0) AS BIGINT) END AS calibrated_floor,
         role, span, barrier, producer_role, producer_event, CASE WHEN mechanism = 'bar_sync' THEN 1 ELSE 0 END AS is_symmetric
  FROM wait_kind
), settled AS (
  SELECT x.capture_id, x.lane, x.wait_kind, x.edge_kind, x.iteration, x.span_id, x.t0, x.t1, x.step_ticks, x.edges, k.floor_kind, k.calibrated_floor, CASE WHEN c.unit = 'cycle' THEN 1 WHEN c.unit = 'ns' THEN 2 ELSE 3 END AS unit_kind,
         CASE WHEN x.edges > 0 AND x.found = x.edges THEN 1 ELSE 0 END AS is_bound, x.producer_iteration, x.producer_lane, x.signal_t, x.release_ticks, x.error_ticks, x.ready_by,
         CASE WHEN x.edges = 0 AND x.is_free = 1 THEN 'free'
              WHEN x.edges = 0 OR x.is_open > 0 THEN 'unknown'
              WHEN x.ready_by <= 0 THEN 'not_blocked'
              WHEN x.is_unsure = 1 THEN 'unknown'
              WHEN k.is_symmetric = 1 AND x.t0 - x.signal_t >= x.error_ticks THEN 'not_blocked'
              WHEN x.signal_t - x.t0 > x.error_ticks THEN 'producer_late'
              WHEN x.t0 - x.signal_t >= x.error_ticks AND x.signal_t - x.t0 + x.release_ticks > x.ready_error THEN 'in_flight' ELSE 'unknown' END AS cause,
         CASE WHEN x.edges = 0 THEN 'no edge' WHEN x.found < x.edges THEN 'no signal' WHEN x.is_open = 2 THEN 'contradicted' WHEN x.is_open = 1 THEN 'release unknown' ELSE 'within clock error' END AS why
  FROM wait_edge x
  JOIN named k ON k.capture_id = x.capture_id AND k.wait_kind = x.wait_kind AND k.edge_kind = x.edge_kind
  LEFT JOIN lanes l ON l.capture_id = x.capture_id AND l.lane = x.lane
  LEFT JOIN clocks c ON c.capture_id = l.capture_id AND c.clock = l.clock
  WHERE x.nth = 1
), floor_of AS (
  SELECT capture_id, floor_kind, unit_kind, MIN(CASE WHEN cause IN ('free', 'not_blocked') THEN t1 - t0 END) AS least FROM settled GROUP BY capture_id, floor_kind, unit_kind
), floor_any AS (
  SELECT capture_id, unit_kind, MIN(least) AS least FROM floor_of GROUP BY capture_id, unit_kind
), floored AS (
  SELECT s.capture_id, s.lane, s.wait_kind, s.edge_kind, s.iteration, s.span_id, s.t0, s.t1, s.step_ticks, s.edges, s.is_bound, s.producer_iteration, s.producer_lane, s.signal_t, s.release_ticks, s.error_ticks, s.cause, s.why,
         CASE WHEN s.cause IN ('producer_late', 'in_flight') THEN CAST(s.t1 - s.t0 AS DOUBLE) - s.ready_by ELSE CAST(s.t1 - s.t0 AS DOUBLE) END AS after_ready, COALESCE(s.calibrated_floor, f.least, a.least) AS known_floor
  FROM settled s
  JOIN floor_of f ON f.capture_id = s.capture_id AND f.floor_kind = s.floor_kind AND f.unit_kind = s.unit_kind
  JOIN floor_any a ON a.capture_id = s.capture_id AND a.unit_kind = s.unit_kind
), judged AS (
  SELECT capture_id, lane, wait_kind, edge_kind, iteration, span_id, t0, t1, t1 - t0 AS ticks, edges, is_bound, producer_iteration, producer_lane, signal_t, release_ticks, error_ticks, why, COALESCE(known_floor, 0) AS wait_floor,
         CASE WHEN cause <> 'unknown' AND 2 * after_ready > t1 - t0 AND after_ready > 16 * (known_floor + step_ticks) THEN 'other' ELSE cause END AS verdict
  FROM floored
)
SELECT x.capture_id, x.lane, l.launch, l.cta, l.warp, k.role, k.span, k.barrier, x.iteration, x.span_id, l.clock, x.t0, x.t1, x.ticks, x.edges,
       CASE WHEN x.is_bound = 1 THEN k.producer_role ELSE '' END AS producer_role, CASE WHEN x.is_bound = 1 THEN k.producer_event ELSE '' END AS producer_event,
       CASE WHEN x.is_bound = 1 THEN x.producer_iteration END AS producer_iteration, CASE WHEN x.is_bound = 1 THEN x.producer_lane ELSE -1 END AS producer_lane, CASE WHEN x.is_bound = 1 THEN x.signal_t END AS signal_t,
       CASE WHEN x.is_bound = 1 THEN x.signal_t - x.t0 END AS late, CASE WHEN x.is_bound = 1 THEN x.t1 - x.signal_t END AS slack, CASE WHEN x.is_bound = 1 AND x.verdict <> 'unknown' THEN x.release_ticks END AS release_ticks,
       x.wait_floor, x.verdict,
       CASE WHEN x.verdict IN ('producer_late', 'in_flight', 'other') AND x.ticks > x.wait_floor THEN x.ticks - x.wait_floor ELSE 0 END AS blocked_ticks,
       CASE WHEN x.verdict = 'unknown' THEN 0 WHEN x.verdict IN ('producer_late', 'in_flight', 'other') AND x.ticks > x.wait_floor THEN x.wait_floor ELSE x.ticks END AS satisfied_ticks,
       CASE WHEN x.verdict = 'unknown' THEN x.ticks ELSE 0 END AS unjudged_ticks,
       CASE WHEN x.is_bound = 1 THEN x.error_ticks END AS error_ticks, CASE WHEN x.verdict = 'unknown' THEN x.why ELSE '' END AS reason
FROM judged x
JOIN named k ON k.capture_id = x.capture_id AND k.wait_kind = x.wait_kind AND k.edge_kind = x.edge_kind
LEFT JOIN lanes l ON l.capture_id = x.capture_id AND l.lane = x.lane;

CREATE OR REPLACE VIEW signal AS
-- signal: every realised declared edge into a wait: the signal that was sent, and the wait that needed it. The arrows of a timeline.
-- is_binding: the edge that wait names (none does where another needed edge of that wait has no signal).
SELECT x.capture_id, l.launch, l.cta, l.clock, x.producer_lane, k.producer_role, k.producer_event, x.producer_iteration, x.signal_t,
       x.lane AS consumer_lane, k.role AS consumer_role, k.end_event AS consumer_event, x.iteration AS consumer_iteration, k.span, x.span_id, x.t0, x.t1, k.barrier, k.mechanism, k.completion, k.scope,
       x.release_ticks, x.nth = 1 AND x.found = x.edges AS is_binding, x.error_ticks
FROM wait_edge x
JOIN wait_kind k ON k.capture_id = x.capture_id AND k.wait_kind = x.wait_kind AND k.edge_kind = x.edge_kind
LEFT JOIN lanes l ON l.capture_id = x.capture_id AND l.lane = x.lane
WHERE x.signal_t IS NOT NULL;

CREATE OR REPLACE VIEW role_summary AS
-- role_summary: shares of a role in a launch = sums over its lanes, so four warps that record the same range weigh as one role.
-- The spread over lanes is part of the answer: warps of one role need not agree. Shares are of the sum of extents; null when no lane has any.
-- stall_share is gross. The waits within the recorded windows divide into blocked, satisfied (what stamps and the test of a satisfied wait cost)
-- and unjudged (no edge); together they exceed stall_share only where waits of one lane overlap.
-- contains_wait: an active span kind of the role hides a wait, so active_share is an upper bound of its work.
WITH waited AS (
  SELECT x.capture_id, x.lane, CAST(SUM(x.blocked_ticks) AS BIGINT) AS blocked, CAST(SUM(x.satisfied_ticks) AS BIGINT) AS satisfied, CAST(SUM(x.unjudged_ticks) AS BIGINT) AS unjudged,
         COUNT(*) AS waits, CAST(SUM(CASE WHEN x.blocked_ticks > 0 THEN 1 ELSE 0 END) AS BIGINT) AS waits_blocked
  FROM wait x LEFT JOIN recorded_window w ON w.capture_id = x.capture_id AND w.lane = x.lane WHERE x.t1 <= w.t_last GROUP BY x.capture_id, x.lane
), hidden AS (
  SELECT capture_id, role, MAX(CASE WHEN contains_wait AND state = 'active' THEN 1 ELSE 0 END) AS contains_wait FROM span_types GROUP BY capture_id, role
), lane_state AS (
  SELECT s.capture_id, s.launch, s.role, s.cta, s.extent, s.stall, s.active, s.untracked, COALESCE(w.blocked, 0) AS blocked, COALESCE(w.satisfied, 0) AS satisfied, COALESCE(w.unjudged, 0) AS unjudged,
         COALESCE(w.waits, 0) AS waits, COALESCE(w.waits_blocked, 0) AS waits_blocked, COALESCE(h.contains_wait, 0) AS contains_wait
  FROM role_state s
  LEFT JOIN waited w ON w.capture_id = s.capture_id AND w.lane = s.lane
  LEFT JOIN hidden h ON h.capture_id = s.capture_id AND h.role = s.role
), total AS (
  SELECT capture_id, launch, role, COUNT(*) AS lanes, CAST(SUM(CASE WHEN extent > 0 THEN 1 ELSE 0 END) AS BIGINT) AS lanes_recorded, COUNT(DISTINCT cta) AS ctas,
         CAST(SUM(extent) AS BIGINT) AS extent, CAST(SUM(stall) AS BIGINT) AS stall, CAST(SUM(active) AS BIGINT) AS active, CAST(SUM(untracked) AS BIGINT) AS untracked,
         CAST(SUM(blocked) AS BIGINT) AS blocked, CAST(SUM(satisfied) AS BIGINT) AS satisfied, CAST(SUM(unjudged) AS BIGINT) AS unjudged,
         MIN(CASE WHEN extent > 0 THEN CAST(stall AS DOUBLE) / extent END) AS least_stall_share, MAX(CASE WHEN extent > 0 THEN CAST(stall AS DOUBLE) / extent END) AS most_stall_share,
         MIN(CASE WHEN extent > 0 THEN CAST(blocked AS DOUBLE) / extent END) AS least_blocked_share, MAX(CASE WHEN extent > 0 THEN CAST(blocked AS DOUBLE) / extent END) AS most_blocked_share,
         MIN(CASE WHEN extent > 0 THEN CAST(active AS DOUBLE) / extent END) AS least_active_share, MAX(CASE WHEN extent > 0 THEN CAST(active AS DOUBLE) / extent END) AS most_active_share,
         CAST(SUM(waits) AS BIGINT) AS waits, CAST(SUM(waits_blocked) AS BIGINT) AS waits_blocked, MAX(contains_wait) AS contains_wait
  FROM lane_state GROUP BY capture_id, launch, role
)
SELECT capture_id, launch, role, lanes, lanes_recorded, ctas, extent, stall, active, untracked, blocked, satisfied, unjudged,
       CASE WHEN extent > 0 THEN CAST(stall AS DOUBLE) / extent END AS stall_share, CASE WHEN extent > 0 THEN CAST(active AS DOUBLE) / extent END AS active_share,
       CASE WHEN extent > 0 THEN CAST(untracked AS DOUBLE) / extent END AS untracked_share, CASE WHEN extent > 0 THEN CAST(blocked AS DOUBLE) / extent END AS blocked_share,
       CASE WHEN extent > 0 THEN CAST(satisfied AS DOUBLE) / extent END AS satisfied_share, CASE WHEN extent > 0 THEN CAST(unjudged AS DOUBLE) / extent END AS unjudged_share,
       least_stall_share, most_stall_share, least_active_share, most_active_share, least_blocked_share, most_blocked_share, waits, waits_blocked, contains_wait = 1 AS contains_wait
FROM total;

CREATE OR REPLACE VIEW wait_summary AS
-- wait_summary: the waits of a role in a launch by span kind, barrier and binding producer: how often, how long, how much of it blocked, and why.
-- producer_role and producer_event are '' where no edge binds (free and unknown waits). Medians are nearest-rank (the lower middle), so every engine gives the same integer.
WITH ranked AS (
  SELECT capture_id, launch, role, span, barrier, producer_role, producer_event, verdict, ticks, slack, blocked_ticks, satisfied_ticks, unjudged_ticks,
         ROW_NUMBER() OVER (PARTITION BY capture_id, launch, role, span, barrier, producer_role, producer_event ORDER BY ticks) AS nth,
         ROW_NUMBER() OVER (PARTITION BY capture_id, launch, role, span, barrier, producer_role, producer_event ORDER BY blocked_ticks) AS nth_blocked,
         COUNT(*) OVER (PARTITION BY capture_id, launch, role, span, barrier, producer_role, producer_event) AS n
  FROM wait
)
SELECT capture_id, launch, role, span, barrier, producer_role, producer_event, COUNT(*) AS waits,
       CAST(SUM(CASE WHEN verdict = 'free' THEN 1 ELSE 0 END) AS BIGINT) AS waits_free, CAST(SUM(CASE WHEN verdict = 'not_blocked' THEN 1 ELSE 0 END) AS BIGINT) AS waits_not_blocked,
       CAST(SUM(CASE WHEN verdict = 'producer_late' THEN 1 ELSE 0 END) AS BIGINT) AS waits_producer_late, CAST(SUM(CASE WHEN verdict = 'in_flight' THEN 1 ELSE 0 END) AS BIGINT) AS waits_in_flight,
       CAST(SUM(CASE WHEN verdict = 'other' THEN 1 ELSE 0 END) AS BIGINT) AS waits_other, CAST(SUM(CASE WHEN verdict = 'unknown' THEN 1 ELSE 0 END) AS BIGINT) AS waits_unknown,
       CAST(SUM(ticks) AS BIGINT) AS ticks, CAST(SUM(blocked_ticks) AS BIGINT) AS blocked_ticks, CAST(SUM(satisfied_ticks) AS BIGINT) AS satisfied_ticks, CAST(SUM(unjudged_ticks) AS BIGINT) AS unjudged_ticks,
       MIN(CASE WHEN nth * 2 >= n THEN ticks END) AS median_ticks, MAX(ticks) AS max_ticks, MIN(CASE WHEN nth_blocked * 2 >= n THEN blocked_ticks END) AS median_blocked_ticks, MAX(blocked_ticks) AS max_blocked_ticks,
       MIN(slack) AS min_slack
FROM ranked
GROUP BY capture_id, launch, role, span, barrier, producer_role, producer_event;

CREATE OR REPLACE VIEW iteration AS
-- iteration: start of each iteration of a lane and the ticks to the start of the next (method start_to_start). A start is the point roles.iteration_event;
-- one that occurs twice is none. An iteration whose next start is missing has no row.
-- Steady window of a lane: iterations [first + S, last + 1 - S), of N = last + 1 - first iterations; none (steady false everywhere) when N < 4 S.
-- S of a role = max(2, the deepest ring that it takes part in, counted in its own iterations: lag over its own step, rounded up).
WITH part AS (
  SELECT capture_id, consumer_role AS role, iteration_lag AS lag, consumer_step AS step FROM dependencies WHERE producer_step > 0 AND consumer_step > 0
  UNION ALL
  SELECT capture_id, producer_role AS role, iteration_lag AS lag, producer_step AS step FROM dependencies WHERE producer_step > 0 AND consumer_step > 0
), ring AS (
  SELECT r.capture_id, r.role, r.iteration_event, CASE WHEN MAX(CEIL(p.lag * 1.0E0 / p.step)) > 2 THEN CAST(MAX(CEIL(p.lag * 1.0E0 / p.step)) AS INT) ELSE 2 END AS s
  FROM roles r LEFT JOIN part p ON p.capture_id = r.capture_id AND p.role = r.role
  WHERE r.iteration_event <> ''
  GROUP BY r.capture_id, r.role, r.iteration_event
), starts AS (
  SELECT p.capture_id, p.lane, p.iteration, MIN(p.t) AS t, MIN(r.s) AS s
  FROM point p JOIN ring r ON r.capture_id = p.capture_id AND r.role = p.role AND r.iteration_event = p.event
  GROUP BY p.capture_id, p.lane, p.iteration HAVING COUNT(*) = 1
), run AS (
  SELECT capture_id, lane, iteration, t, s, LEAD(t) OVER (PARTITION BY capture_id, lane ORDER BY iteration) AS t_next, LEAD(iteration) OVER (PARTITION BY capture_id, lane ORDER BY iteration) AS next_iteration,
         MIN(iteration) OVER (PARTITION BY capture_id, lane) AS first_iteration, MAX(iteration) OVER (PARTITION BY capture_id, lane) AS last_iteration
  FROM starts
)
SELECT r.capture_id, r.lane, l.launch, l.cta, l.warp, l.role, l.clock, r.iteration, r.t, r.t_next - r.t AS ticks,
       r.first_iteration + r.s AS steady_first, r.last_iteration + 1 - r.s AS steady_end,
       r.last_iteration + 1 - r.first_iteration >= 4 * r.s AND r.iteration >= r.first_iteration + r.s AND r.iteration < r.last_iteration + 1 - r.s AS steady
FROM run r LEFT JOIN lanes l ON l.capture_id = r.capture_id AND l.lane = r.lane
WHERE r.next_iteration = r.iteration + 1;

CREATE OR REPLACE VIEW iteration_summary AS
-- iteration_summary: ticks an iteration of a role in the steady windows of its lanes (method start_to_start). mean_ticks is the figure to compare with slope and budget
-- (the intervals are often bimodal: a median then jumps between the modes). Quartiles show the spread and are nearest-rank, so every engine gives the same integer.
-- No row: no lane of the role has a steady window.
WITH ranked AS (
  SELECT capture_id, launch, role, lane, steady_first, steady_end, ticks,
         ROW_NUMBER() OVER (PARTITION BY capture_id, launch, role ORDER BY ticks) AS nth, COUNT(*) OVER (PARTITION BY capture_id, launch, role) AS samples
  FROM iteration WHERE steady
)
SELECT capture_id, launch, role, 'start_to_start' AS method, MIN(steady_first) AS steady_first, MAX(steady_end) AS steady_end, COUNT(DISTINCT lane) AS lanes, MIN(samples) AS samples,
       CAST(SUM(ticks) AS DOUBLE) / MIN(samples) AS mean_ticks, MIN(ticks) AS min_ticks,
       MIN(CASE WHEN nth * 4 >= samples THEN ticks END) AS q1_ticks, MIN(CASE WHEN nth * 2 >= samples THEN ticks END) AS median_ticks,
       MIN(CASE WHEN nth * 4 >= samples * 3 THEN ticks END) AS q3_ticks, MAX(ticks) AS max_ticks
FROM ranked
GROUP BY capture_id, launch, role;

CREATE OR REPLACE VIEW early_signal AS
-- early_signal: a signal (a point that a dependency names as producer) strictly inside a complete active span of its own lane: work that goes on after it was announced as done.
-- Ties: an end at the same tick comes first, a begin last. Spans of zero length contain nothing.
WITH producer AS (
  SELECT DISTINCT capture_id, producer_role, producer_event FROM dependencies
), both_ends AS (
  SELECT 1 AS at_begin UNION ALL SELECT 0 AS at_begin
), mark AS (
  SELECT x.capture_id, x.lane, CASE WHEN e.at_begin = 1 THEN x.t0 ELSE x.t1 END AS t, CASE WHEN e.at_begin = 1 THEN 2 ELSE 0 END AS ord, CASE WHEN e.at_begin = 1 THEN 1.0E0 ELSE -1.0E0 END AS step, '' AS event, -1 AS iteration
  FROM span x CROSS JOIN both_ends e WHERE x.state = 'active' AND x.complete AND x.end_lane = x.lane AND x.t1 > x.t0
  UNION ALL
  SELECT p.capture_id, p.lane, p.t, 1 AS ord, 0.0E0 AS step, p.event, p.iteration
  FROM point p JOIN producer d ON d.capture_id = p.capture_id AND d.producer_role = p.role AND d.producer_event = p.event
), run AS (
  SELECT capture_id, lane, t, ord, event, iteration, SUM(step) OVER (PARTITION BY capture_id, lane ORDER BY t, ord ROWS UNBOUNDED PRECEDING) AS open_spans FROM mark
)
SELECT r.capture_id, r.lane, l.launch, l.cta, l.warp, l.role, l.clock, r.event, r.iteration, r.t
FROM run r LEFT JOIN lanes l ON l.capture_id = r.capture_id AND l.lane = r.lane
WHERE r.ord = 1 AND r.open_spans > 0;

CREATE OR REPLACE VIEW timeline_ns AS
-- timeline_ns: every span on a reference axis in ns, with the bound of the error. Times on different reference clocks must not be compared.
-- Placed by clock_segment: the map of its launch, else that of the whole capture (launch -1), else the clock itself when it ticks in ns. A span whose clock cannot be mapped gives NULL:
-- comparison is refused, not guessed.
-- error_ns: the bound at both ends, as long as the rate is constant between neighbouring anchors: error of the piece + one step of the clock; outside the anchors it grows by twice the error
-- of the piece over its length. Null: unknown. wander_ns: what comes on top where nothing shows the rate to be constant (see clock_segment); of both ends the greater.
WITH piece AS (
  SELECT capture_id, launch, clock, reference_clock, segment, segments, t_first, t_last, ns_first, ns_per_tick, error_ns, wander FROM clock_segment
), line AS (
  SELECT capture_id, launch, clock, reference_clock, segments, t_first, t_last, ns_first, ns_per_tick, error_ns, wander FROM piece WHERE segment = 0
), moment AS (
  SELECT capture_id, launch, clock, t, segment FROM moment_segment
), placed AS (
  SELECT s.capture_id, s.lane, s.launch, s.cta, s.warp, s.role, s.span, s.state, s.iteration, s.span_id, s.complete, s.t0, s.t1, s.clock, c.unit,
         CASE WHEN c.step_ticks > 0 THEN c.step_ticks END AS step_ticks, CASE WHEN m.clock IS NOT NULL THEN m.launch ELSE w.launch END AS map_launch,
         CASE WHEN m.clock IS NOT NULL THEN m.segments ELSE w.segments END AS segments,
         CASE WHEN m.clock IS NOT NULL THEN m.reference_clock ELSE w.reference_clock END AS reference_clock, CASE WHEN m.clock IS NOT NULL THEN m.t_first ELSE w.t_first END AS t_first,
         CASE WHEN m.clock IS NOT NULL THEN m.t_last ELSE w.t_last END AS t_last, CASE WHEN m.clock IS NOT NULL THEN m.ns_first ELSE w.ns_first END AS ns_first,
         CASE WHEN m.clock IS NOT NULL THEN m.ns_per_tick ELSE w.ns_per_tick END AS ns_per_tick, CASE WHEN m.clock IS NOT NULL THEN m.error_ns ELSE w.error_ns END AS error_ns,
         CASE WHEN m.clock IS NOT NULL THEN m.wander ELSE w.wander END AS wander
  FROM span s
  LEFT JOIN clocks c ON c.capture_id = s.capture_id AND c.clock = s.clock
  LEFT JOIN line m ON m.capture_id = s.capture_id AND m.clock = s.clock AND m.launch = s.launch AND m.launch >= 0
  LEFT JOIN line w ON w.capture_id = s.capture_id AND w.clock = s.clock AND w.launch = -1
), reached AS (
  SELECT capture_id, lane, launch, cta, warp, role, span, state, iteration, span_id, complete, t0, t1, clock, unit, step_ticks, reference_clock, t_first, t_last, ns_first, ns_per_tick, error_ns, wander,
         CASE WHEN t_first - t0 > 0 AND t_first - t0 >= t1 - t_last THEN t_first - t0 WHEN t1 - t_last > 0 THEN t1 - t_last ELSE 0 END AS beyond,
         CASE WHEN t0 < t_first THEN t_first - t0 WHEN t0 > t_last THEN t0 - t_last WHEN t0 - t_first < t_last - t0 THEN t0 - t_first ELSE t_last - t0 END AS far0,
         CASE WHEN t1 < t_first THEN t_first - t1 WHEN t1 > t_last THEN t1 - t_last WHEN t1 - t_first < t_last - t1 THEN t1 - t_first ELSE t_last - t1 END AS far1
  FROM placed WHERE segments IS NULL OR segments = 1
), pieced AS (
  SELECT p.capture_id, p.lane, p.launch, p.cta, p.warp, p.role, p.span, p.state, p.iteration, p.span_id, p.complete, p.t0, p.t1, p.clock, p.step_ticks, p.reference_clock,
         a.ns_first AS ns_first0, a.ns_per_tick AS rate0, a.error_ns AS error0, a.t_first AS first0, a.t_last - a.t_first AS length0, b.ns_first AS ns_first1, b.ns_per_tick AS rate1, b.error_ns AS error1, b.t_first AS first1, b.t_last - b.t_first AS length1, p.wander,
         CASE WHEN p.t0 < a.t_first THEN a.t_first - p.t0 WHEN p.t0 > a.t_last THEN p.t0 - a.t_last ELSE 0 END AS beyond0, CASE WHEN p.t1 < b.t_first THEN b.t_first - p.t1 WHEN p.t1 > b.t_last THEN p.t1 - b.t_last ELSE 0 END AS beyond1,
         CASE WHEN p.t0 < a.t_first THEN a.t_first - p.t0 WHEN p.t0 > a.t_last THEN p.t0 - a.t_last WHEN p.t0 - a.t_first < a.t_last - p.t0 THEN p.t0 - a.t_first ELSE a.t_last - p.t0 END AS far0,
         CASE WHEN p.t1 < b.t_first THEN b.t_first - p.t1 WHEN p.t1 > b.t_last THEN p.t1 - b.t_last WHEN p.t1 - b.t_first < b.t_last - p.t1 THEN p.t1 - b.t_first ELSE b.t_last - p.t1 END AS far1
  FROM placed p
  JOIN moment x ON x.capture_id = p.capture_id AND x.launch = p.map_launch AND x.clock = p.clock AND x.t = p.t0
  JOIN moment y ON y.capture_id = p.capture_id AND y.launch = p.map_launch AND y.clock = p.clock AND y.t = p.t1
  JOIN piece a ON a.capture_id = x.capture_id AND a.launch = x.launch AND a.clock = x.clock AND a.segment = x.segment
  JOIN piece b ON b.capture_id = y.capture_id AND b.launch = y.launch AND b.clock = y.clock AND b.segment = y.segment
  WHERE p.segments > 1
), bounded AS (
  SELECT capture_id, lane, launch, cta, warp, role, span, state, iteration, span_id, complete, clock, t0, t1, reference_clock,
         ns_first0 + CAST(FLOOR(CAST(t0 - first0 AS DOUBLE) * rate0 + 0.5E0) AS BIGINT) AS ns0, ns_first1 + CAST(FLOOR(CAST(t1 - first1 AS DOUBLE) * rate1 + 0.5E0) AS BIGINT) AS ns1,
         error0 + 2 * error0 * CAST(beyond0 AS DOUBLE) / CAST(length0 AS DOUBLE) + step_ticks * rate0 AS bound0, error1 + 2 * error1 * CAST(beyond1 AS DOUBLE) / CAST(length1 AS DOUBLE) + step_ticks * rate1 AS bound1,
         wander * CAST(far0 AS DOUBLE) * rate0 AS wander0, wander * CAST(far1 AS DOUBLE) * rate1 AS wander1, beyond0 > 0 OR beyond1 > 0 AS extrapolated
  FROM pieced
)
SELECT capture_id, lane, launch, cta, warp, role, span, state, iteration, span_id, complete, clock, t0, t1,
       CASE WHEN ns_per_tick IS NOT NULL THEN reference_clock WHEN unit = 'ns' THEN clock END AS reference_clock,
       CASE WHEN ns_per_tick IS NOT NULL THEN ns_first + CAST(FLOOR(CAST(t0 - t_first AS DOUBLE) * ns_per_tick + 0.5E0) AS BIGINT) WHEN unit = 'ns' THEN t0 END AS ns0,
       CASE WHEN ns_per_tick IS NOT NULL THEN ns_first + CAST(FLOOR(CAST(t1 - t_first AS DOUBLE) * ns_per_tick + 0.5E0) AS BIGINT) WHEN unit = 'ns' THEN t1 END AS ns1,
       CASE WHEN ns_per_tick IS NOT NULL THEN error_ns + CASE WHEN beyond > 0 AND t_last > t_first THEN 2 * error_ns * CAST(beyond AS DOUBLE) / CAST(t_last - t_first AS DOUBLE) ELSE 0.0E0 END + step_ticks * ns_per_tick
            WHEN unit = 'ns' THEN CAST(step_ticks AS DOUBLE) END AS error_ns,
       CASE WHEN ns_per_tick IS NOT NULL THEN beyond > 0 WHEN unit = 'ns' THEN FALSE END AS extrapolated,
       CASE WHEN ns_per_tick IS NOT NULL THEN wander * CAST(CASE WHEN far0 >= far1 THEN far0 ELSE far1 END AS DOUBLE) * ns_per_tick WHEN unit = 'ns' THEN 0.0E0 END AS wander_ns
FROM reached
UNION ALL
SELECT capture_id, lane, launch, cta, warp, role, span, state, iteration, span_id, complete, clock, t0, t1, reference_clock, ns0, ns1,
       CASE WHEN bound0 >= bound1 THEN bound0 WHEN bound1 IS NOT NULL THEN bound1 END AS error_ns, extrapolated, CASE WHEN wander0 >= wander1 THEN wander0 ELSE wander1 END AS wander_ns
FROM bounded;

CREATE OR REPLACE VIEW lifetime AS
-- lifetime: ticks of a CTA from its first to its last instruction, on its own clock. Needs no stamps: a clean launch has them too.
-- slots is -1 for a launch of kind clean, which writes no stamps. grid_ctas -1: grid unknown.
SELECT l.capture_id, l.launch, l.cta, l.sm, l.clock, COALESCE(c.unit, 'tick') AS unit, COALESCE(k.kind, '') AS kind, COALESCE(k.pass, -1) AS pass, COALESCE(k.trip_count, -1) AS trip_count,
       CASE WHEN k.kind <> 'clean' THEN k.slots ELSE -1 END AS slots,
       CASE WHEN k.grid_x > 0 AND k.grid_y > 0 AND k.grid_z > 0 THEN CAST(k.grid_x AS BIGINT) * k.grid_y * k.grid_z ELSE CAST(-1 AS BIGINT) END AS grid_ctas, COALESCE(k.status, '') AS status, l.t_end - l.t_start AS ticks
FROM lanes l
LEFT JOIN launches k ON k.capture_id = l.capture_id AND k.launch = l.launch
LEFT JOIN clocks c ON c.capture_id = l.capture_id AND c.clock = l.clock
WHERE l.kind = 'cta' AND l.t_start >= 0 AND l.t_end >= l.t_start;

CREATE OR REPLACE VIEW launch_lifetime AS
-- launch_lifetime: the median CTA lifetime of a launch (mean of the two middle values), of launches that did not fail.
WITH ranked AS (
  SELECT capture_id, launch, kind, pass, trip_count, slots, grid_ctas, unit, ticks,
         ROW_NUMBER() OVER (PARTITION BY capture_id, launch, unit ORDER BY ticks) AS nth, COUNT(*) OVER (PARTITION BY capture_id, launch, unit) AS n
  FROM lifetime WHERE status <> 'failed'
)
SELECT capture_id, launch, kind, pass, trip_count, slots, grid_ctas, unit, MIN(n) AS ctas, AVG(CAST(ticks AS DOUBLE)) AS ticks
FROM ranked WHERE nth * 2 >= n AND nth * 2 <= n + 2
GROUP BY capture_id, launch, kind, pass, trip_count, slots, grid_ctas, unit;

CREATE OR REPLACE VIEW lifetime_median AS
-- lifetime_median: median over launches of launch_lifetime, for launches that are alike: kind, pass, trip count, slots, grid and unit. Medians are the mean of the two middle values.
WITH ranked AS (
  SELECT capture_id, kind, pass, trip_count, slots, grid_ctas, unit, ticks,
         ROW_NUMBER() OVER (PARTITION BY capture_id, kind, pass, trip_count, slots, grid_ctas, unit ORDER BY ticks) AS nth,
         COUNT(*) OVER (PARTITION BY capture_id, kind, pass, trip_count, slots, grid_ctas, unit) AS n
  FROM launch_lifetime
)
SELECT capture_id, kind, pass, trip_count, slots, grid_ctas, unit, MIN(n) AS launches, AVG(ticks) AS ticks
FROM ranked WHERE nth * 2 >= n AND nth * 2 <= n + 2
GROUP BY capture_id, kind, pass, trip_count, slots, grid_ctas, unit;

CREATE OR REPLACE VIEW slope AS
-- slope: ticks an iteration = difference of lifetimes over difference of trip counts (method slope), between the two largest trip counts that the stamp slots hold
-- (beyond them a stamped kernel runs unstamped; slots -1: no limit), of launches that are alike but for the trip count. fixed_ticks is what is left of the larger one.
WITH ranked AS (
  SELECT capture_id, kind, pass, trip_count, slots, grid_ctas, unit, launches, ticks,
         ROW_NUMBER() OVER (PARTITION BY capture_id, kind, pass, slots, grid_ctas, unit ORDER BY trip_count DESC) AS nth
  FROM lifetime_median WHERE trip_count > 0 AND (slots < 0 OR trip_count <= slots)
)
SELECT a.capture_id, a.kind, a.pass, a.slots, a.grid_ctas, a.unit, b.trip_count AS trips_low, a.trip_count AS trips_high, b.launches AS launches_low, a.launches AS launches_high,
       (a.ticks - b.ticks) / (a.trip_count - b.trip_count) AS slope_ticks, a.ticks - a.trip_count * ((a.ticks - b.ticks) / (a.trip_count - b.trip_count)) AS fixed_ticks
FROM ranked a
JOIN ranked b ON b.capture_id = a.capture_id AND b.kind = a.kind AND b.pass = a.pass AND b.slots = a.slots AND b.grid_ctas = a.grid_ctas AND b.unit = a.unit AND b.nth = 2
WHERE a.nth = 1;

CREATE OR REPLACE VIEW perturbation AS
-- perturbation: what the recording did to the kernel: stamped (or traced) ticks over clean ticks, minus 1. Like with like only: same experiment (captures of experiment ''
-- stand alone), device, grid, unit and trip counts. Clean launches of all captures of the experiment are one sample; stamped ones count per capture, kind, pass and slots.
-- method 'slope': ticks an iteration, between the two largest trip counts that both sides have. method 'lifetime': ticks of a CTA at one trip count, which mixes in the fixed cost.
-- Only trip counts at or under the slots: beyond them the kernel runs unstamped. preference 1 is the one to quote: slope, else lifetime at the largest trip count.
-- No row: perturbation is unknown. launches are the fewer of the two trip counts.
WITH clean_launch AS (
  SELECT c.experiment, CASE WHEN c.experiment = '' THEN c.capture_id ELSE '' END AS alone, c.device, h.trip_count, h.grid_ctas, h.unit, h.ticks
  FROM launch_lifetime h JOIN captures c ON c.capture_id = h.capture_id WHERE h.kind = 'clean'
), ranked AS (
  SELECT experiment, alone, device, trip_count, grid_ctas, unit, ticks,
         ROW_NUMBER() OVER (PARTITION BY experiment, alone, device, trip_count, grid_ctas, unit ORDER BY ticks) AS nth,
         COUNT(*) OVER (PARTITION BY experiment, alone, device, trip_count, grid_ctas, unit) AS n
  FROM clean_launch
), clean AS (
  SELECT experiment, alone, device, trip_count, grid_ctas, unit, MIN(n) AS launches, AVG(ticks) AS ticks
  FROM ranked WHERE nth * 2 >= n AND nth * 2 <= n + 2 GROUP BY experiment, alone, device, trip_count, grid_ctas, unit
), both_sides AS (
  SELECT s.capture_id, s.kind, s.pass, s.slots, s.grid_ctas, s.unit, s.trip_count, s.launches, s.ticks, k.launches AS clean_launches, k.ticks AS clean_ticks,
         ROW_NUMBER() OVER (PARTITION BY s.capture_id, s.kind, s.pass, s.slots, s.grid_ctas, s.unit ORDER BY s.trip_count DESC) AS nth
  FROM lifetime_median s
  JOIN captures c ON c.capture_id = s.capture_id
  JOIN clean k ON k.experiment = c.experiment AND k.alone = CASE WHEN c.experiment = '' THEN c.capture_id ELSE '' END AND k.device = c.device
              AND k.trip_count = s.trip_count AND k.grid_ctas = s.grid_ctas AND k.unit = s.unit
  WHERE s.kind IN ('stamped', 'traced') AND s.trip_count > 0 AND (s.slots < 0 OR s.trip_count <= s.slots)
), measured AS (
  SELECT a.capture_id, a.kind, a.pass, a.slots, a.grid_ctas, a.unit, 'slope' AS method, b.trip_count AS trips_low, a.trip_count AS trips_high, 0 AS ord,
         CASE WHEN a.launches < b.launches THEN a.launches ELSE b.launches END AS launches, CASE WHEN a.clean_launches < b.clean_launches THEN a.clean_launches ELSE b.clean_launches END AS clean_launches,
         (a.ticks - b.ticks) / (a.trip_count - b.trip_count) AS ticks, (a.clean_ticks - b.clean_ticks) / (a.trip_count - b.trip_count) AS clean_ticks
  FROM both_sides a
  JOIN both_sides b ON b.capture_id = a.capture_id AND b.kind = a.kind AND b.pass = a.pass AND b.slots = a.slots AND b.grid_ctas = a.grid_ctas AND b.unit = a.unit AND b.nth = 2
  WHERE a.nth = 1
  UNION ALL
  SELECT capture_id, kind, pass, slots, grid_ctas, unit, 'lifetime' AS method, trip_count AS trips_low, trip_count AS trips_high, nth AS ord, launches, clean_launches, ticks, clean_ticks FROM both_sides
)
SELECT capture_id, kind, pass, slots, grid_ctas, unit, method, trips_low, trips_high, launches, clean_launches, ticks, clean_ticks, ticks / clean_ticks - 1 AS perturbation,
       ROW_NUMBER() OVER (PARTITION BY capture_id, kind, pass, slots, grid_ctas, unit ORDER BY ord) AS preference
FROM measured WHERE clean_ticks > 0;

CREATE OR REPLACE VIEW pass_span AS
-- pass_span: the combined picture of several passes: every complete span of a launch of a pass (launches.pass >= 0), with its launch, what the other passes say of the same span,
-- and where a picture of all of them draws it. Nothing is merged: t0 and t1 are ticks of the span's own launch.
-- A family is what may be compared: launches of a capture with a pass, not failed and not clean, of one trip count, grid and unit of clock. The same span: same CTA, warp, role,
--   member (n-th lane of that role in the warp), span and iteration. launches, passes, least_ticks and most_ticks are over the spans of the family that are the same.
-- The disturbance of a launch is that of its pass (perturbation, preference 1) without its sign, in whole millionths; an unknown one comes last.
-- is_chosen: the span to draw, that of the least disturbance, then the smaller pass, then the smaller launch.
-- since_start: ticks from the origin of its CTA in its own launch: the start of the CTA's lane of kind cta on that clock, else the CTA's first point on that clock.
-- The base launch of a family has the most kinds of points in loops (role and event), then the least disturbance, the smaller pass, the smaller launch.
-- align_event of a launch, role and loop: a kind of point of that loop that it shares with the base launch: the iteration_event where it does, else the first by event_index and name.
--   since_align: ticks from that point of the same iteration and lane to the begin of a span of that loop. Where this launch or the base has the point not exactly once there, nor for
--   spans of loop 'once', there is none ('', null).
-- x0 = (align_event of the base launch, in that iteration, since its origin) + since_align; without align_event since_start. x1 = x0 + ticks. drift = since_start - x0: how far its own
--   launch had fallen behind the base launch by then. x0 is a coordinate of the picture: in the base launch it is since_start, elsewhere it is the time of no launch.
WITH known AS (
  SELECT k.capture_id, k.launch, k.pass, k.trip_count, l.lane, l.cta, l.warp, l.role, l.clock, COALESCE(c.unit, 'tick') AS unit, k.kind, k.slots,
         CASE WHEN k.grid_x > 0 AND k.grid_y > 0 AND k.grid_z > 0 THEN CAST(k.grid_x AS BIGINT) * k.grid_y * k.grid_z ELSE CAST(-1 AS BIGINT) END AS grid_ctas,
         CAST(ROW_NUMBER() OVER (PARTITION BY k.capture_id, k.launch, l.cta, l.warp, l.role ORDER BY l.lane) AS INT) AS member
  FROM launches k
  JOIN lanes l ON l.capture_id = k.capture_id AND l.launch = k.launch
  LEFT JOIN clocks c ON c.capture_id = l.capture_id AND c.clock = l.clock
  WHERE k.pass >= 0 AND k.status <> 'failed' AND k.kind <> 'clean' AND l.cta >= 0 AND l.role <> ''
), player AS (
  SELECT k.capture_id, k.launch, k.pass, k.trip_count, k.grid_ctas, k.unit, k.lane, k.cta, k.warp, k.role, k.member, k.clock, p.perturbation,
         DENSE_RANK() OVER (PARTITION BY k.capture_id ORDER BY k.trip_count, k.grid_ctas, k.unit) AS family,
         CASE WHEN p.perturbation IS NULL THEN 1 ELSE 0 END AS is_unknown, COALESCE(CAST(FLOOR(ABS(p.perturbation) * 1.0E6 + 0.5E0) AS BIGINT), 0) AS disturbance
  FROM known k
  LEFT JOIN perturbation p ON p.capture_id = k.capture_id AND p.kind = k.kind AND p.pass = k.pass AND p.slots = k.slots AND p.grid_ctas = k.grid_ctas AND p.unit = k.unit AND p.preference = 1
), moment AS (
  SELECT p.capture_id, m.family, m.launch, m.cta, m.clock, m.warp, m.role, m.member, p.lane, p.role AS declared_role, p.event, p.iteration, p.t
  FROM point p JOIN player m ON m.capture_id = p.capture_id AND m.lane = p.lane
), first_record AS (
  SELECT capture_id, launch, cta, clock, MIN(t_start) AS t FROM lanes WHERE kind = 'cta' AND t_start >= 0 GROUP BY capture_id, launch, cta, clock
), origin AS (
  SELECT f.capture_id, f.launch, f.cta, f.clock, COALESCE(MIN(r.t), MIN(f.t)) AS t
  FROM moment f LEFT JOIN first_record r ON r.capture_id = f.capture_id AND r.launch = f.launch AND r.cta = f.cta AND r.clock = f.clock
  GROUP BY f.capture_id, f.launch, f.cta, f.clock
), named AS (
  SELECT capture_id, role, event, loop, event_index FROM event_types
  UNION ALL
  SELECT capture_id, role, span || '.begin' AS event, loop, 2147483647 AS event_index FROM span_types
), looped AS (
  SELECT x.capture_id, x.family, x.launch, x.role, n.loop, x.event, MIN(n.event_index) AS event_index
  FROM moment x JOIN named n ON n.capture_id = x.capture_id AND n.role = x.role AND n.event = x.event
  WHERE x.declared_role = x.role AND n.loop <> 'once'
  GROUP BY x.capture_id, x.family, x.launch, x.role, n.loop, x.event
), richness AS (
  SELECT capture_id, family, launch, COUNT(*) AS kinds FROM looped GROUP BY capture_id, family, launch
), launch_fact AS (
  SELECT DISTINCT capture_id, family, launch, pass, is_unknown, disturbance FROM player
), base AS (
  SELECT r.capture_id, r.family, r.launch, ROW_NUMBER() OVER (PARTITION BY r.capture_id, r.family ORDER BY r.kinds DESC, f.is_unknown, f.disturbance, f.pass, r.launch) AS nth
  FROM richness r JOIN launch_fact f ON f.capture_id = r.capture_id AND f.family = r.family AND f.launch = r.launch
), common AS (
  SELECT x.capture_id, x.family, x.launch, x.role, x.loop, x.event, b.launch AS base_launch,
         ROW_NUMBER() OVER (PARTITION BY x.capture_id, x.family, x.launch, x.role, x.loop ORDER BY CASE WHEN r.iteration_event = x.event THEN 0 ELSE 1 END, x.event_index, x.event) AS nth
  FROM looped x
  JOIN base b ON b.capture_id = x.capture_id AND b.family = x.family AND b.nth = 1
  JOIN looped y ON y.capture_id = x.capture_id AND y.family = x.family AND y.launch = b.launch AND y.role = x.role AND y.event = x.event
  LEFT JOIN roles r ON r.capture_id = x.capture_id AND r.role = x.role
), unique_moment AS (
  SELECT capture_id, family, launch, cta, clock, warp, role, member, lane, event, iteration, MIN(t) AS t
  FROM moment WHERE declared_role = role GROUP BY capture_id, family, launch, cta, clock, warp, role, member, lane, event, iteration HAVING COUNT(*) = 1
), aligned AS (
  SELECT x.capture_id, x.lane, s.loop, x.iteration, s.event, x.t, y.t - o.t AS base_since
  FROM common s
  JOIN unique_moment x ON x.capture_id = s.capture_id AND x.family = s.family AND x.launch = s.launch AND x.role = s.role AND x.event = s.event
  JOIN unique_moment y ON y.capture_id = s.capture_id AND y.family = s.family AND y.launch = s.base_launch AND y.role = s.role AND y.event = s.event
                      AND y.cta = x.cta AND y.warp = x.warp AND y.member = x.member AND y.iteration = x.iteration
  JOIN origin o ON o.capture_id = y.capture_id AND o.launch = y.launch AND o.cta = y.cta AND o.clock = y.clock
  WHERE s.nth = 1
), one AS (
  SELECT q.capture_id, q.family, q.launch, q.lane, q.pass, q.trip_count, q.grid_ctas, q.unit, q.cta, q.warp, q.role, q.member, q.perturbation, q.is_unknown, q.disturbance,
         s.span, s.state, s.iteration, s.span_id, s.t0, s.t1, s.t1 - s.t0 AS ticks, s.t0 - o.t AS since_start, COALESCE(y.loop, '') AS loop
  FROM span s
  JOIN player q ON q.capture_id = s.capture_id AND q.lane = s.lane
  JOIN origin o ON o.capture_id = q.capture_id AND o.launch = q.launch AND o.cta = q.cta AND o.clock = q.clock
  LEFT JOIN span_types y ON y.capture_id = s.capture_id AND y.role = s.role AND y.span = s.span
  WHERE s.complete AND s.end_lane = s.lane AND s.iteration >= 0
), compared AS (
  SELECT capture_id, family, launch, lane, pass, trip_count, grid_ctas, unit, cta, warp, role, member, perturbation, span, state, iteration, span_id, t0, t1, ticks, since_start, loop,
         COUNT(*) OVER (PARTITION BY capture_id, family, cta, warp, role, member, span, iteration) AS launches,
         DENSE_RANK() OVER (PARTITION BY capture_id, family, cta, warp, role, member, span, iteration ORDER BY pass) AS pass_rank,
         MIN(ticks) OVER (PARTITION BY capture_id, family, cta, warp, role, member, span, iteration) AS least_ticks,
         MAX(ticks) OVER (PARTITION BY capture_id, family, cta, warp, role, member, span, iteration) AS most_ticks,
         ROW_NUMBER() OVER (PARTITION BY capture_id, family, cta, warp, role, member, span, iteration ORDER BY is_unknown, disturbance, pass, launch, span_id) AS choice
  FROM one
)
SELECT x.capture_id, x.launch, x.lane, x.pass, x.trip_count, x.grid_ctas, x.unit, x.cta, x.warp, x.role, x.member, x.span, x.state, x.iteration, x.span_id, x.t0, x.t1, x.ticks, x.perturbation, x.since_start,
       COALESCE(b.launch, -1) AS base_launch, COALESCE(a.event, '') AS align_event, x.t0 - a.t AS since_align, COALESCE(a.base_since + (x.t0 - a.t), x.since_start) AS x0, COALESCE(a.base_since + (x.t0 - a.t), x.since_start) + x.ticks AS x1,
       x.since_start - (a.base_since + (x.t0 - a.t)) AS drift, x.launches,
       MAX(x.pass_rank) OVER (PARTITION BY x.capture_id, x.family, x.cta, x.warp, x.role, x.member, x.span, x.iteration) AS passes,
       x.least_ticks, x.most_ticks, x.choice = 1 AS is_chosen
FROM compared x
LEFT JOIN base b ON b.capture_id = x.capture_id AND b.family = x.family AND b.nth = 1
LEFT JOIN aligned a ON a.capture_id = x.capture_id AND a.lane = x.lane AND a.loop = x.loop AND a.iteration = x.iteration;

CREATE OR REPLACE VIEW cta_ns AS
-- cta_ns: where and when each recorded CTA of a launch ran, on the reference axis of its clock. Its life is t_start to t_end of its lane of kind 'cta' (basis 'lifetime'); without one, first to last point
-- of its lanes, when all are on one clock (basis 'points': a part of its life). No times (null): neither is there, or the clock has no map.
-- error_ns: the greater of both ends, wander included. Two moments of different SMs closer than their errors together have no order.
-- sm_order and residents follow from ticks alone: CTAs of an SM share its clock. residents: CTAs on the SM when it starts, itself included; one that ends at that very tick is gone.
-- wave: sm_order over the most residents of the launch, whole part. may_be_last: no other CTA of the launch certainly ends later.
WITH life AS (
  SELECT capture_id, launch, cta, MIN(sm) AS sm, MIN(clock) AS clock, MIN(t_start) AS t_start, MAX(t_end) AS t_end, 'lifetime' AS basis FROM lanes
  WHERE cta >= 0 AND kind = 'cta' AND t_start >= 0 AND t_end >= t_start GROUP BY capture_id, launch, cta HAVING MIN(clock) = MAX(clock)
), seen AS (
  SELECT l.capture_id, l.launch, l.cta, MAX(l.sm) AS sm, MIN(CASE WHEN w.lane IS NOT NULL THEN l.clock END) AS clock, MIN(w.t_first) AS t_start, MAX(w.t_last_point) AS t_end,
         CASE WHEN MIN(CASE WHEN w.lane IS NOT NULL THEN l.clock END) = MAX(CASE WHEN w.lane IS NOT NULL THEN l.clock END) THEN 1 ELSE 0 END AS is_one_clock
  FROM lanes l LEFT JOIN recorded_window w ON w.capture_id = l.capture_id AND w.lane = l.lane
  WHERE l.cta >= 0 GROUP BY l.capture_id, l.launch, l.cta
), chosen AS (
  SELECT s.capture_id, s.launch, s.cta, CASE WHEN f.cta IS NOT NULL THEN f.sm ELSE s.sm END AS sm, CASE WHEN f.cta IS NOT NULL THEN f.clock WHEN s.is_one_clock = 1 THEN s.clock ELSE -1 END AS clock,
         CASE WHEN f.cta IS NOT NULL THEN f.t_start WHEN s.is_one_clock = 1 THEN s.t_start END AS t_start, CASE WHEN f.cta IS NOT NULL THEN f.t_end WHEN s.is_one_clock = 1 THEN s.t_end END AS t_end,
         CASE WHEN f.cta IS NOT NULL THEN f.basis WHEN s.is_one_clock = 1 THEN 'points' ELSE '' END AS basis
  FROM seen s LEFT JOIN life f ON f.capture_id = s.capture_id AND f.launch = s.launch AND f.cta = s.cta
), piece AS (
  SELECT capture_id, launch, clock, reference_clock, segment, segments, t_first, t_last, ns_first, ns_per_tick, error_ns, wander FROM clock_segment
), own AS (
  SELECT capture_id, launch, clock FROM piece WHERE segment = 0
), mapped AS (
  SELECT c.capture_id, c.launch, c.cta, c.sm, c.clock, c.t_start, c.t_end, c.basis, CASE WHEN o.clock IS NOT NULL THEN c.launch ELSE -1 END AS map_launch, k.unit, CASE WHEN k.step_ticks > 0 THEN k.step_ticks END AS step_ticks
  FROM chosen c LEFT JOIN own o ON o.capture_id = c.capture_id AND o.launch = c.launch AND o.clock = c.clock LEFT JOIN clocks k ON k.capture_id = c.capture_id AND k.clock = c.clock
), run AS (
  SELECT capture_id, map_launch, clock, t_start AS t, 1 AS is_moment, 0 AS segment FROM mapped
  UNION ALL
  SELECT capture_id, map_launch, clock, t_end AS t, 1 AS is_moment, 0 AS segment FROM mapped
  UNION ALL
  SELECT capture_id, launch AS map_launch, clock, t_first AS t, 0 AS is_moment, segment FROM piece WHERE segments > 1
), counted AS (
  SELECT capture_id, map_launch, clock, t, is_moment, MAX(segment) OVER (PARTITION BY capture_id, map_launch, clock ORDER BY t, is_moment, segment ROWS UNBOUNDED PRECEDING) AS segment FROM run
), moment AS (
  SELECT DISTINCT capture_id, map_launch, clock, t, segment FROM counted WHERE is_moment = 1 AND t IS NOT NULL
), bounded AS (
  SELECT m.capture_id, m.launch, m.cta, m.sm, m.clock, m.t_start, m.t_end, m.basis, CASE WHEN a.clock IS NOT NULL THEN a.reference_clock WHEN m.unit = 'ns' THEN m.clock END AS reference_clock,
         CASE WHEN a.clock IS NOT NULL THEN a.ns_first + CAST(FLOOR(CAST(m.t_start - a.t_first AS DOUBLE) * a.ns_per_tick + 0.5E0) AS BIGINT) WHEN m.unit = 'ns' THEN m.t_start END AS start_ns,
         CASE WHEN b.clock IS NOT NULL THEN b.ns_first + CAST(FLOOR(CAST(m.t_end - b.t_first AS DOUBLE) * b.ns_per_tick + 0.5E0) AS BIGINT) WHEN m.unit = 'ns' THEN m.t_end END AS end_ns,
         CASE WHEN a.clock IS NOT NULL THEN a.error_ns + m.step_ticks * a.ns_per_tick + CASE WHEN a.t_last > a.t_first THEN 2 * a.error_ns * CAST(CASE WHEN m.t_start < a.t_first THEN a.t_first - m.t_start WHEN m.t_start > a.t_last THEN m.t_start - a.t_last ELSE 0 END AS DOUBLE) / CAST(a.t_last - a.t_first AS DOUBLE) ELSE 0.0E0 END
              + a.wander * a.ns_per_tick * CASE WHEN m.t_start < a.t_first THEN a.t_first - m.t_start WHEN m.t_start > a.t_last THEN m.t_start - a.t_last WHEN m.t_start - a.t_first < a.t_last - m.t_start THEN m.t_start - a.t_first ELSE a.t_last - m.t_start END
              WHEN m.unit = 'ns' THEN CAST(m.step_ticks AS DOUBLE) END AS start_error,
         CASE WHEN b.clock IS NOT NULL THEN b.error_ns + m.step_ticks * b.ns_per_tick + CASE WHEN b.t_last > b.t_first THEN 2 * b.error_ns * CAST(CASE WHEN m.t_end < b.t_first THEN b.t_first - m.t_end WHEN m.t_end > b.t_last THEN m.t_end - b.t_last ELSE 0 END AS DOUBLE) / CAST(b.t_last - b.t_first AS DOUBLE) ELSE 0.0E0 END
              + b.wander * b.ns_per_tick * CASE WHEN m.t_end < b.t_first THEN b.t_first - m.t_end WHEN m.t_end > b.t_last THEN m.t_end - b.t_last WHEN m.t_end - b.t_first < b.t_last - m.t_end THEN m.t_end - b.t_first ELSE b.t_last - m.t_end END
              WHEN m.unit = 'ns' THEN CAST(m.step_ticks AS DOUBLE) END AS end_error
  FROM mapped m
  LEFT JOIN moment x ON x.capture_id = m.capture_id AND x.map_launch = m.map_launch AND x.clock = m.clock AND x.t = m.t_start
  LEFT JOIN moment y ON y.capture_id = m.capture_id AND y.map_launch = m.map_launch AND y.clock = m.clock AND y.t = m.t_end
  LEFT JOIN piece a ON a.capture_id = m.capture_id AND a.launch = m.map_launch AND a.clock = m.clock AND a.segment = COALESCE(x.segment, 0)
  LEFT JOIN piece b ON b.capture_id = m.capture_id AND b.launch = m.map_launch AND b.clock = m.clock AND b.segment = COALESCE(y.segment, 0)
), both_ends AS (
  SELECT 1 AS at_begin UNION ALL SELECT 0 AS at_begin
), turn AS (
  SELECT m.capture_id, m.launch, m.sm, m.clock, m.cta, e.at_begin, SUM(CASE WHEN e.at_begin = 1 THEN 1.0E0 ELSE -1.0E0 END)
           OVER (PARTITION BY m.capture_id, m.launch, m.sm, m.clock ORDER BY CASE WHEN e.at_begin = 1 THEN m.t_start ELSE m.t_end END, e.at_begin, m.cta ROWS UNBOUNDED PRECEDING) AS held
  FROM mapped m CROSS JOIN both_ends e WHERE m.sm >= 0 AND m.t_end > m.t_start
), held AS (
  SELECT capture_id, launch, sm, clock, cta, CAST(held AS INT) AS residents, CAST(MAX(held) OVER (PARTITION BY capture_id, launch) AS INT) AS most FROM turn WHERE at_begin = 1
), numbered AS (
  SELECT b.capture_id, b.launch, b.cta, b.sm, b.clock, b.reference_clock, b.basis, b.t_start, b.t_end, b.start_ns, b.end_ns, CASE WHEN b.start_error >= b.end_error THEN b.start_error ELSE b.end_error END AS error_ns, h.residents, h.most,
         CASE WHEN b.sm >= 0 AND b.t_start IS NOT NULL THEN CAST(ROW_NUMBER() OVER (PARTITION BY b.capture_id, b.launch, b.sm, b.clock, CASE WHEN b.t_start IS NULL THEN 1 ELSE 0 END ORDER BY b.t_start, b.cta) - 1 AS INT) ELSE -1 END AS sm_order,
         CASE WHEN b.start_ns IS NOT NULL THEN CAST(ROW_NUMBER() OVER (PARTITION BY b.capture_id, b.launch, b.reference_clock ORDER BY b.start_ns, b.cta) AS INT) END AS start_order,
         CASE WHEN b.start_ns IS NOT NULL THEN CAST(ROW_NUMBER() OVER (PARTITION BY b.capture_id, b.launch, b.reference_clock ORDER BY b.end_ns, b.cta) AS INT) END AS end_order,
         MIN(b.start_ns) OVER (PARTITION BY b.capture_id, b.launch, b.reference_clock) AS first_start, MAX(b.end_ns) OVER (PARTITION BY b.capture_id, b.launch, b.reference_clock) AS last_end
  FROM bounded b LEFT JOIN held h ON h.capture_id = b.capture_id AND h.launch = b.launch AND h.cta = b.cta AND h.sm = b.sm AND h.clock = b.clock
), late AS (
  SELECT capture_id, launch, cta, sm, clock, reference_clock, basis, t_start, t_end, start_ns, end_ns, error_ns, residents, most, sm_order, start_order, end_order, first_start, last_end,
         MAX(CAST(end_ns - first_start AS DOUBLE) - error_ns) OVER (PARTITION BY capture_id, launch, reference_clock) AS surely
  FROM numbered
)
SELECT n.capture_id, n.launch, n.cta, n.sm, n.clock, n.reference_clock, n.basis, n.t_start, n.t_end, n.t_end - n.t_start AS ticks, n.start_ns, n.end_ns, n.end_ns - n.start_ns AS duration_ns, n.error_ns, c.cluster,
       n.sm_order, COALESCE(n.residents, -1) AS residents, CASE WHEN n.most > 0 AND n.sm_order >= 0 THEN CAST(FLOOR(n.sm_order * 1.0E0 / n.most) AS INT) ELSE -1 END AS wave, n.start_order, n.end_order,
       n.start_ns - n.first_start AS start_after_ns, n.last_end - n.end_ns AS end_before_ns, CASE WHEN n.error_ns IS NOT NULL AND n.end_ns IS NOT NULL THEN CAST(n.end_ns - n.first_start AS DOUBLE) + n.error_ns >= n.surely END AS may_be_last
FROM late n JOIN cta_cluster c ON c.capture_id = n.capture_id AND c.launch = n.launch AND c.cta = n.cta;

CREATE OR REPLACE VIEW cta_state AS
-- cta_state: the states of all lanes of a CTA that play a role, together: sums of ticks, and shares of the sum of extents (null: no stamps). Stall is gross; the waits within the recorded windows divide
-- into blocked, satisfied and unjudged as in role_summary.
WITH waited AS (
  SELECT x.capture_id, x.launch, x.cta, CAST(SUM(x.blocked_ticks) AS BIGINT) AS blocked, CAST(SUM(x.satisfied_ticks) AS BIGINT) AS satisfied, CAST(SUM(x.unjudged_ticks) AS BIGINT) AS unjudged
  FROM wait x LEFT JOIN recorded_window w ON w.capture_id = x.capture_id AND w.lane = x.lane WHERE x.t1 <= w.t_last GROUP BY x.capture_id, x.launch, x.cta
), total AS (
  SELECT capture_id, launch, cta, COUNT(*) AS lanes, CAST(SUM(extent) AS BIGINT) AS extent, CAST(SUM(stall) AS BIGINT) AS stall, CAST(SUM(active) AS BIGINT) AS active, CAST(SUM(untracked) AS BIGINT) AS untracked
  FROM role_state WHERE cta >= 0 GROUP BY capture_id, launch, cta
)
SELECT t.capture_id, t.launch, t.cta, t.lanes, t.extent, t.stall, t.active, t.untracked, COALESCE(w.blocked, 0) AS blocked, COALESCE(w.satisfied, 0) AS satisfied, COALESCE(w.unjudged, 0) AS unjudged,
       CASE WHEN t.extent > 0 THEN CAST(t.stall AS DOUBLE) / t.extent END AS stall_share, CASE WHEN t.extent > 0 THEN CAST(t.active AS DOUBLE) / t.extent END AS active_share,
       CASE WHEN t.extent > 0 THEN CAST(t.untracked AS DOUBLE) / t.extent END AS untracked_share, CASE WHEN t.extent > 0 THEN CAST(COALESCE(w.blocked, 0) AS DOUBLE) / t.extent END AS blocked_share
FROM total t LEFT JOIN waited w ON w.capture_id = t.capture_id AND w.launch = t.launch AND w.cta = t.cta;

CREATE OR REPLACE VIEW grid_cta AS
-- grid_cta: each recorded CTA of a launch: where and when it ran (cta_ns) and what its lanes did (cta_state).
SELECT n.capture_id, n.launch, n.cta, n.sm, n.clock, n.reference_clock, n.basis, n.t_start, n.t_end, n.ticks, n.start_ns, n.end_ns, n.duration_ns, n.error_ns, n.cluster, n.sm_order, n.residents, n.wave, n.start_order, n.end_order,
       n.start_after_ns, n.end_before_ns, n.may_be_last, COALESCE(s.lanes, 0) AS lanes, COALESCE(s.extent, 0) AS extent, COALESCE(s.stall, 0) AS stall, COALESCE(s.active, 0) AS active, COALESCE(s.untracked, 0) AS untracked,
       COALESCE(s.blocked, 0) AS blocked, COALESCE(s.satisfied, 0) AS satisfied, COALESCE(s.unjudged, 0) AS unjudged, s.stall_share, s.active_share, s.untracked_share, s.blocked_share
FROM cta_ns n LEFT JOIN cta_state s ON s.capture_id = n.capture_id AND s.launch = n.launch AND s.cta = n.cta;

CREATE OR REPLACE VIEW grid_sm AS
-- grid_sm: one SM in a launch: its CTAs, from when to when, how long some CTA was on it, how long it had none before the launch ended, its measured rate, and the states of its CTAs together.
-- resident_ticks: the union of the lives of its CTAs. hz: ticks over time between its first and its last anchor of the launch; null when the launch has no map of its own.
WITH cta AS (
  SELECT capture_id, launch, cta, sm, clock, reference_clock, t_start, t_end, start_ns, end_ns, error_ns, end_before_ns FROM cta_ns WHERE sm >= 0 AND t_start IS NOT NULL
), both_ends AS (
  SELECT 1 AS at_begin UNION ALL SELECT 0 AS at_begin
), edge AS (
  SELECT c.capture_id, c.launch, c.sm, c.clock, CASE WHEN e.at_begin = 1 THEN c.t_start ELSE c.t_end END AS t, CASE WHEN e.at_begin = 1 THEN 1.0E0 ELSE -1.0E0 END AS step
  FROM cta c CROSS JOIN both_ends e
), run AS (
  SELECT capture_id, launch, sm, clock, t, LEAD(t) OVER (PARTITION BY capture_id, launch, sm, clock ORDER BY t) AS t_next, SUM(step) OVER (PARTITION BY capture_id, launch, sm, clock ORDER BY t ROWS UNBOUNDED PRECEDING) AS held FROM edge
), resident AS (
  SELECT capture_id, launch, sm, clock, CAST(SUM(CASE WHEN held > 0 THEN t_next - t ELSE 0 END) AS BIGINT) AS resident_ticks FROM run GROUP BY capture_id, launch, sm, clock
), pace AS (
  SELECT capture_id, launch, clock, SUM(CAST(t_last - t_first AS DOUBLE)) AS ticks, SUM(CAST(t_last - t_first AS DOUBLE) * ns_per_tick) AS ns FROM clock_segment GROUP BY capture_id, launch, clock
), worked AS (
  SELECT n.capture_id, n.launch, n.sm, n.clock, SUM(CAST(s.extent AS DOUBLE)) AS extent, SUM(CAST(s.stall AS DOUBLE)) AS stall, SUM(CAST(s.active AS DOUBLE)) AS active, SUM(CAST(s.untracked AS DOUBLE)) AS untracked, SUM(CAST(s.blocked AS DOUBLE)) AS blocked
  FROM cta n JOIN cta_state s ON s.capture_id = n.capture_id AND s.launch = n.launch AND s.cta = n.cta
  GROUP BY n.capture_id, n.launch, n.sm, n.clock
), whole AS (
  SELECT capture_id, launch, sm, clock, reference_clock, COUNT(*) AS ctas, MIN(start_ns) AS first_ns, MAX(end_ns) AS last_ns, CASE WHEN COUNT(error_ns) = COUNT(*) THEN MAX(error_ns) END AS error_ns, MIN(end_before_ns) AS idle_end_ns
  FROM cta GROUP BY capture_id, launch, sm, clock, reference_clock
)
SELECT w.capture_id, w.launch, w.sm, w.clock, w.reference_clock, w.ctas, w.first_ns, w.last_ns, w.error_ns, r.resident_ticks, w.idle_end_ns, CASE WHEN p.ns > 0 THEN 1.0E9 * p.ticks / p.ns END AS hz,
       CASE WHEN k.extent > 0 THEN k.stall / k.extent END AS stall_share, CASE WHEN k.extent > 0 THEN k.active / k.extent END AS active_share, CASE WHEN k.extent > 0 THEN k.untracked / k.extent END AS untracked_share, CASE WHEN k.extent > 0 THEN k.blocked / k.extent END AS blocked_share
FROM whole w
LEFT JOIN resident r ON r.capture_id = w.capture_id AND r.launch = w.launch AND r.sm = w.sm AND r.clock = w.clock
LEFT JOIN pace p ON p.capture_id = w.capture_id AND p.launch = w.launch AND p.clock = w.clock
LEFT JOIN worked k ON k.capture_id = w.capture_id AND k.launch = w.launch AND k.sm = w.sm AND k.clock = w.clock;

CREATE OR REPLACE VIEW grid_launch AS
-- grid_launch: one launch as a grid, on one reference axis: how many of its CTAs were recorded, when the first started and the last ended, the spread of both, what the tail cost, who was last, the time to the launch before.
-- start_spread_ns: between the first and the last start of wave 0. tail_ns: from the moment at which the first SM has ended its last CTA to the end of the launch. tail_share: SM time without a CTA after each SM's last end, over all SM time
-- of the launch. Both are of the SMs that ran recorded CTAs. last_is_certain: one CTA only may be last. gap_before_ns: from the latest end of the launches that started before to the start of this one (previous_launch: the one that started
-- last before it); negative when they overlap. Launches that share no axis have no gap.
WITH own AS (
  SELECT capture_id, launch, cta, sm, clock, reference_clock, start_ns, end_ns, error_ns, start_after_ns, end_before_ns, wave, residents, may_be_last FROM cta_ns WHERE start_ns IS NOT NULL
), cta AS (
  SELECT capture_id, launch, reference_clock, CAST(COUNT(*) AS BIGINT) AS ctas, MIN(start_ns) AS start_ns, MAX(end_ns) AS end_ns, CASE WHEN COUNT(error_ns) = COUNT(*) THEN MAX(error_ns) END AS error_ns,
         MAX(CASE WHEN wave = 0 THEN start_after_ns END) AS start_spread_ns, CAST(MAX(wave) + 1 AS INT) AS waves, MAX(residents) AS residents, MAX(CASE WHEN end_before_ns = 0 THEN cta END) AS last_cta, MAX(CASE WHEN end_before_ns = 0 THEN sm END) AS last_sm,
         COUNT(may_be_last) AS judged, SUM(CASE WHEN may_be_last THEN 1 ELSE 0 END) AS perhaps
  FROM own GROUP BY capture_id, launch, reference_clock
), pace AS (
  SELECT capture_id, launch, clock, SUM(CAST(t_last - t_first AS DOUBLE)) AS ticks, SUM(CAST(t_last - t_first AS DOUBLE) * ns_per_tick) AS ns FROM clock_segment GROUP BY capture_id, launch, clock
), one_sm AS (
  SELECT capture_id, launch, reference_clock, sm, clock, MIN(end_before_ns) AS idle_end_ns FROM own WHERE sm >= 0 GROUP BY capture_id, launch, reference_clock, sm, clock
), sm AS (
  SELECT o.capture_id, o.launch, o.reference_clock, COUNT(DISTINCT o.sm) AS sms, MAX(o.idle_end_ns) AS tail_ns, SUM(CAST(o.idle_end_ns AS DOUBLE)) AS idle, MIN(CASE WHEN p.ns > 0 THEN 1.0E9 * p.ticks / p.ns END) AS hz_low, MAX(CASE WHEN p.ns > 0 THEN 1.0E9 * p.ticks / p.ns END) AS hz_high
  FROM one_sm o LEFT JOIN pace p ON p.capture_id = o.capture_id AND p.launch = o.launch AND p.clock = o.clock GROUP BY o.capture_id, o.launch, o.reference_clock
), seen AS (
  SELECT capture_id, launch, reference_clock, start_ns, error_ns,
         MAX(end_ns) OVER (PARTITION BY capture_id, reference_clock ORDER BY start_ns, launch ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS end_so_far,
         MAX(error_ns) OVER (PARTITION BY capture_id, reference_clock ORDER BY start_ns, launch ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS error_so_far
  FROM cta
), chained AS (
  SELECT capture_id, launch, reference_clock, LAG(launch) OVER (PARTITION BY capture_id, reference_clock ORDER BY start_ns, launch) AS previous_launch,
         start_ns - LAG(end_so_far) OVER (PARTITION BY capture_id, reference_clock ORDER BY start_ns, launch) AS gap_before_ns, error_ns + LAG(error_so_far) OVER (PARTITION BY capture_id, reference_clock ORDER BY start_ns, launch) AS gap_error_ns
  FROM seen
)
SELECT c.capture_id, c.launch, COALESCE(k.kind, '') AS kind, COALESCE(k.kernel, '') AS kernel, c.reference_clock,
       CASE WHEN k.grid_x > 0 AND k.grid_y > 0 AND k.grid_z > 0 THEN CAST(k.grid_x AS BIGINT) * k.grid_y * k.grid_z ELSE CAST(-1 AS BIGINT) END AS grid_ctas, c.ctas, COALESCE(s.sms, 0) AS sms,
       c.start_ns, c.end_ns, c.end_ns - c.start_ns AS duration_ns, c.error_ns, c.start_spread_ns, s.tail_ns, CASE WHEN s.sms > 0 AND c.end_ns > c.start_ns THEN s.idle / (s.sms * CAST(c.end_ns - c.start_ns AS DOUBLE)) END AS tail_share,
       c.waves, c.residents, c.last_cta, c.last_sm, CASE WHEN c.judged = c.ctas THEN c.perhaps = 1 END AS last_is_certain, s.hz_low, s.hz_high,
       p.previous_launch, p.gap_before_ns, p.gap_error_ns
FROM cta c
LEFT JOIN sm s ON s.capture_id = c.capture_id AND s.launch = c.launch AND s.reference_clock = c.reference_clock
LEFT JOIN launches k ON k.capture_id = c.capture_id AND k.launch = c.launch
JOIN chained p ON p.capture_id = c.capture_id AND p.launch = c.launch AND p.reference_clock = c.reference_clock;
