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
FROM met WHERE rate0 > 0 AND rate1 > 0 AND error0 IS NOT NULL AND error1 IS NOT NULL
