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
FROM late n JOIN cta_cluster c ON c.capture_id = n.capture_id AND c.launch = n.launch AND c.cta = n.cta
