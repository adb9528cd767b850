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
FROM bounded
