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
FROM ends e LEFT JOIN cut c ON c.capture_id = e.capture_id AND c.lane = e.lane
