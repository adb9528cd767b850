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
FROM sloped s JOIN covered c ON c.capture_id = s.capture_id AND c.launch = s.launch AND c.clock = s.clock AND c.reference_clock = s.reference_clock
