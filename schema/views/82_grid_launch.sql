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
JOIN chained p ON p.capture_id = c.capture_id AND p.launch = c.launch AND p.reference_clock = c.reference_clock
