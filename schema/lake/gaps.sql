-- gaps: captures whose numbers cannot be trusted as far as one might think, with the reason. One row a capture and reason:
--   no clean launches   stamped or traced, and what the recording did to the kernel is unknown
--   truncated           the loop went on after the slots were full; states hold for the recorded part only
--   lost records        the recorder lost some
--   no dependencies     it has waits, and more than half of their ticks are judged by no edge
--   no version          captures.version is '', so it is in no trend over versions
--   no date             captures.created_unix_ns is unknown
--   no arch             captures.arch is unknown
WITH judged AS (
  SELECT capture_id, CAST(SUM(unjudged_ticks) AS DOUBLE) AS unjudged, CAST(SUM(ticks) AS DOUBLE) AS ticks FROM wait_summary GROUP BY capture_id
), known AS (
  SELECT DISTINCT capture_id FROM perturbation
), found AS (
  SELECT c.capture_id, 'no clean launches' AS gap FROM captures c LEFT JOIN known k ON k.capture_id = c.capture_id WHERE c.kind IN ('stamped', 'traced') AND k.capture_id IS NULL
  UNION ALL SELECT capture_id, 'truncated' AS gap FROM captures WHERE completeness = 'truncated'
  UNION ALL SELECT capture_id, 'lost records' AS gap FROM captures WHERE lost_events > 0
  UNION ALL SELECT capture_id, 'no dependencies' AS gap FROM judged WHERE unjudged * 2 > ticks
  UNION ALL SELECT capture_id, 'no version' AS gap FROM captures WHERE version = '' AND kind IN ('stamped', 'traced', 'clean')
  UNION ALL SELECT capture_id, 'no date' AS gap FROM captures WHERE created_unix_ns < 0
  UNION ALL SELECT capture_id, 'no arch' AS gap FROM captures WHERE arch = '' AND kind IN ('stamped', 'traced', 'clean')
)
SELECT f.gap, c.capture_id, c.label, c.kind, c.kernel, c.version, c.arch, c.created_unix_ns
FROM found f JOIN captures c ON c.capture_id = f.capture_id
ORDER BY f.gap, c.kernel, c.created_unix_ns, c.capture_id
