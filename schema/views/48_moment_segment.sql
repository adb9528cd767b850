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
SELECT capture_id, launch, clock, t, segment FROM counted WHERE is_moment = 1
