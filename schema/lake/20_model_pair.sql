-- model_pair: every prediction of a resource in total (role '') that names the bottleneck, beside what was measured in its experiment or its own capture.
-- measured_ticks: ticks an iteration, in cycles: the clean slope where there is one (method clean slope), else the slowest role of the recorded capture (start_to_start),
-- which the stamps disturb. error: measured over predicted, minus 1. A budget that names steps (iterations of a role in one unit) counts another unit than one iteration
-- and is left out: reconcile knows how to compare it.
WITH predicted AS (
  SELECT p.capture_id AS prediction_id, c.experiment, p.resource, p.kind, p.cycles, p.created_unix_ns
  FROM predictions p JOIN captures c ON c.capture_id = p.capture_id LEFT JOIN attributes a ON a.capture_id = p.capture_id AND a.table_name = 'captures' AND a.name = 'budget' AND a.value LIKE '%"steps"%'
  WHERE p.role = '' AND p.is_bottleneck AND p.cycles > 0 AND a.capture_id IS NULL
), clean AS (
  SELECT c.experiment, CASE WHEN c.experiment = '' THEN c.capture_id ELSE '' END AS alone, AVG(s.slope_ticks) AS ticks
  FROM slope s JOIN captures c ON c.capture_id = s.capture_id WHERE s.kind = 'clean' AND s.unit = 'cycle' AND s.slope_ticks > 0
  GROUP BY c.experiment, CASE WHEN c.experiment = '' THEN c.capture_id ELSE '' END
), recorded AS (
  SELECT capture_id, experiment, MAX(ticks) AS ticks FROM capture_role WHERE unit = 'cycle' AND ticks IS NOT NULL GROUP BY capture_id, experiment
), met AS (
  SELECT p.prediction_id, p.resource, p.kind, p.cycles, r.capture_id, r.ticks, k.ticks AS clean_ticks
  FROM predicted p JOIN recorded r ON r.experiment = p.experiment LEFT JOIN clean k ON k.experiment = r.experiment AND k.alone = ''
  WHERE p.experiment <> ''
  UNION ALL
  SELECT p.prediction_id, p.resource, p.kind, p.cycles, r.capture_id, r.ticks, k.ticks AS clean_ticks
  FROM predicted p JOIN recorded r ON r.capture_id = p.prediction_id LEFT JOIN clean k ON k.alone = r.capture_id
  WHERE p.experiment = ''
)
SELECT m.prediction_id, m.capture_id, c.kernel, c.version, c.shape, c.dtype, c.arch, m.resource, m.kind, m.cycles AS predicted_ticks, COALESCE(m.clean_ticks, m.ticks) AS measured_ticks,
       CASE WHEN m.clean_ticks IS NULL THEN 'start_to_start' ELSE 'clean slope' END AS method, COALESCE(m.clean_ticks, m.ticks) / m.cycles - 1 AS error
FROM met m JOIN captures c ON c.capture_id = m.capture_id
