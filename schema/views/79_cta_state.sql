-- cta_state: the states of all lanes of a CTA that play a role, together: sums of ticks, and shares of the sum of extents (null: no stamps). Stall is gross; the waits within the recorded windows divide
-- into blocked, satisfied and unjudged as in role_summary.
WITH waited AS (
  SELECT x.capture_id, x.launch, x.cta, CAST(SUM(x.blocked_ticks) AS BIGINT) AS blocked, CAST(SUM(x.satisfied_ticks) AS BIGINT) AS satisfied, CAST(SUM(x.unjudged_ticks) AS BIGINT) AS unjudged
  FROM wait x LEFT JOIN recorded_window w ON w.capture_id = x.capture_id AND w.lane = x.lane WHERE x.t1 <= w.t_last GROUP BY x.capture_id, x.launch, x.cta
), total AS (
  SELECT capture_id, launch, cta, COUNT(*) AS lanes, CAST(SUM(extent) AS BIGINT) AS extent, CAST(SUM(stall) AS BIGINT) AS stall, CAST(SUM(active) AS BIGINT) AS active, CAST(SUM(untracked) AS BIGINT) AS untracked
  FROM role_state WHERE cta >= 0 GROUP BY capture_id, launch, cta
)
SELECT t.capture_id, t.launch, t.cta, t.lanes, t.extent, t.stall, t.active, t.untracked, COALESCE(w.blocked, 0) AS blocked, COALESCE(w.satisfied, 0) AS satisfied, COALESCE(w.unjudged, 0) AS unjudged,
       CASE WHEN t.extent > 0 THEN CAST(t.stall AS DOUBLE) / t.extent END AS stall_share, CASE WHEN t.extent > 0 THEN CAST(t.active AS DOUBLE) / t.extent END AS active_share,
       CASE WHEN t.extent > 0 THEN CAST(t.untracked AS DOUBLE) / t.extent END AS untracked_share, CASE WHEN t.extent > 0 THEN CAST(COALESCE(w.blocked, 0) AS DOUBLE) / t.extent END AS blocked_share
FROM total t LEFT JOIN waited w ON w.capture_id = t.capture_id AND w.launch = t.launch AND w.cta = t.cta
