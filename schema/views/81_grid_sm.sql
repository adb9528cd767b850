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
LEFT JOIN worked k ON k.capture_id = w.capture_id AND k.launch = w.launch AND k.sm = w.sm AND k.clock = w.clock
