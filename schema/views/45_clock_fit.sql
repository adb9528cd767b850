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
GROUP BY h.capture_id, h.launch, h.clock, h.reference_clock
