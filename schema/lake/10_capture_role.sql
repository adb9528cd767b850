-- capture_role: one row a role of a capture that was recorded: its speed and its states, with what describes the capture. What trend and regressions compare.
-- ticks: ticks an iteration (method start_to_start) over all launches, weighted by their samples; null where no lane has a steady window.
-- Shares are of the sum of extents. unit: of the clocks of its lanes; 'mixed' where they differ, and then nothing of the capture is compared.
-- perturbation: of the capture (the row to quote, preference 1; the largest of several); null unknown. day: days since 1970-01-01, -1 unknown.
WITH unit AS (
  SELECT l.capture_id, CASE WHEN MIN(c.unit) = MAX(c.unit) THEN MIN(c.unit) ELSE 'mixed' END AS unit
  FROM lanes l JOIN clocks c ON c.capture_id = l.capture_id AND c.clock = l.clock WHERE l.role <> '' GROUP BY l.capture_id
), speed AS (
  SELECT capture_id, role, SUM(mean_ticks * samples) / SUM(samples) AS ticks, CAST(SUM(samples) AS BIGINT) AS samples
  FROM iteration_summary GROUP BY capture_id, role
), state AS (
  SELECT capture_id, role, CAST(SUM(extent) AS BIGINT) AS extent, CAST(SUM(stall) AS BIGINT) AS stall, CAST(SUM(blocked) AS BIGINT) AS blocked, CAST(SUM(active) AS BIGINT) AS active,
         CAST(SUM(untracked) AS BIGINT) AS untracked, CAST(SUM(unjudged) AS BIGINT) AS unjudged
  FROM role_summary GROUP BY capture_id, role
), disturbed AS (
  SELECT capture_id, MAX(perturbation) AS perturbation FROM perturbation WHERE preference = 1 GROUP BY capture_id
)
SELECT c.capture_id, c.label, c.experiment, c.kernel, c.version, c.shape, c.dtype, c.arch, c.device, c.stamp_set, c.completeness, c.created_unix_ns,
       CASE WHEN c.created_unix_ns >= 0 THEN CAST(FLOOR(CAST(c.created_unix_ns AS DOUBLE) / 8.64E13) AS INT) ELSE -1 END AS day,
       s.role, COALESCE(u.unit, '') AS unit, v.ticks, COALESCE(v.samples, 0) AS samples, s.extent, s.stall, s.blocked, s.active, s.untracked, s.unjudged, d.perturbation
FROM state s
JOIN captures c ON c.capture_id = s.capture_id
LEFT JOIN speed v ON v.capture_id = s.capture_id AND v.role = s.role
LEFT JOIN unit u ON u.capture_id = s.capture_id
LEFT JOIN disturbed d ON d.capture_id = s.capture_id
WHERE s.extent > 0
