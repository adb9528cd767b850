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
FROM joined WHERE t_next IS NOT NULL
