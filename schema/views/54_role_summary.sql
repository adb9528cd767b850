-- role_summary: shares of a role in a launch = sums over its lanes, so four warps that record the same range weigh as one role.
-- The spread over lanes is part of the answer: warps of one role need not agree. Shares are of the sum of extents; null when no lane has any.
-- stall_share is gross. The waits within the recorded windows divide into blocked, satisfied (what stamps and the test of a satisfied wait cost)
-- and unjudged (no edge); together they exceed stall_share only where waits of one lane overlap.
-- contains_wait: an active span kind of the role hides a wait, so active_share is an upper bound of its work.
WITH waited AS (
  SELECT x.capture_id, x.lane, CAST(SUM(x.blocked_ticks) AS BIGINT) AS blocked, CAST(SUM(x.satisfied_ticks) AS BIGINT) AS satisfied, CAST(SUM(x.unjudged_ticks) AS BIGINT) AS unjudged,
         COUNT(*) AS waits, CAST(SUM(CASE WHEN x.blocked_ticks > 0 THEN 1 ELSE 0 END) AS BIGINT) AS waits_blocked
  FROM wait x LEFT JOIN recorded_window w ON w.capture_id = x.capture_id AND w.lane = x.lane WHERE x.t1 <= w.t_last GROUP BY x.capture_id, x.lane
), hidden AS (
  SELECT capture_id, role, MAX(CASE WHEN contains_wait AND state = 'active' THEN 1 ELSE 0 END) AS contains_wait FROM span_types GROUP BY capture_id, role
), lane_state AS (
  SELECT s.capture_id, s.launch, s.role, s.cta, s.extent, s.stall, s.active, s.untracked, COALESCE(w.blocked, 0) AS blocked, COALESCE(w.satisfied, 0) AS satisfied, COALESCE(w.unjudged, 0) AS unjudged,
         COALESCE(w.waits, 0) AS waits, COALESCE(w.waits_blocked, 0) AS waits_blocked, COALESCE(h.contains_wait, 0) AS contains_wait
  FROM role_state s
  LEFT JOIN waited w ON w.capture_id = s.capture_id AND w.lane = s.lane
  LEFT JOIN hidden h ON h.capture_id = s.capture_id AND h.role = s.role
), total AS (
  SELECT capture_id, launch, role, COUNT(*) AS lanes, CAST(SUM(CASE WHEN extent > 0 THEN 1 ELSE 0 END) AS BIGINT) AS lanes_recorded, COUNT(DISTINCT cta) AS ctas,
         CAST(SUM(extent) AS BIGINT) AS extent, CAST(SUM(stall) AS BIGINT) AS stall, CAST(SUM(active) AS BIGINT) AS active, CAST(SUM(untracked) AS BIGINT) AS untracked,
         CAST(SUM(blocked) AS BIGINT) AS blocked, CAST(SUM(satisfied) AS BIGINT) AS satisfied, CAST(SUM(unjudged) AS BIGINT) AS unjudged,
         MIN(CASE WHEN extent > 0 THEN CAST(stall AS DOUBLE) / extent END) AS least_stall_share, MAX(CASE WHEN extent > 0 THEN CAST(stall AS DOUBLE) / extent END) AS most_stall_share,
         MIN(CASE WHEN extent > 0 THEN CAST(blocked AS DOUBLE) / extent END) AS least_blocked_share, MAX(CASE WHEN extent > 0 THEN CAST(blocked AS DOUBLE) / extent END) AS most_blocked_share,
         MIN(CASE WHEN extent > 0 THEN CAST(active AS DOUBLE) / extent END) AS least_active_share, MAX(CASE WHEN extent > 0 THEN CAST(active AS DOUBLE) / extent END) AS most_active_share,
         CAST(SUM(waits) AS BIGINT) AS waits, CAST(SUM(waits_blocked) AS BIGINT) AS waits_blocked, MAX(contains_wait) AS contains_wait
  FROM lane_state GROUP BY capture_id, launch, role
)
SELECT capture_id, launch, role, lanes, lanes_recorded, ctas, extent, stall, active, untracked, blocked, satisfied, unjudged,
       CASE WHEN extent > 0 THEN CAST(stall AS DOUBLE) / extent END AS stall_share, CASE WHEN extent > 0 THEN CAST(active AS DOUBLE) / extent END AS active_share,
       CASE WHEN extent > 0 THEN CAST(untracked AS DOUBLE) / extent END AS untracked_share, CASE WHEN extent > 0 THEN CAST(blocked AS DOUBLE) / extent END AS blocked_share,
       CASE WHEN extent > 0 THEN CAST(satisfied AS DOUBLE) / extent END AS satisfied_share, CASE WHEN extent > 0 THEN CAST(unjudged AS DOUBLE) / extent END AS unjudged_share,
       least_stall_share, most_stall_share, least_active_share, most_active_share, least_blocked_share, most_blocked_share, waits, waits_blocked, contains_wait = 1 AS contains_wait
FROM total
