-- regressions: ticks an iteration of each version against the version before it (in order of their first capture), for what can be compared: the same kernel, shape,
-- dtype, arch, device, role, unit and stamp set. noise: standard error of the difference of the two means, from the captures' own spread.
-- verdict: regression or improvement where the change is more than question.sigmas times the noise and more than question.least_change; 'within the noise' where it is not;
-- 'noise unknown' where one of the two has fewer than question.least_captures captures, or all captures of both are equal to the last bit.
WITH version AS (
  SELECT kernel, shape, dtype, arch, device, role, unit, stamp_set, version, MIN(created_unix_ns) AS first_unix_ns, COUNT(ticks) AS captures, AVG(ticks) AS mean_ticks, STDDEV_SAMP(ticks) AS spread
  FROM capture_role WHERE ticks IS NOT NULL AND unit <> 'mixed' AND version <> ''
  GROUP BY kernel, shape, dtype, arch, device, role, unit, stamp_set, version
), paired AS (
  SELECT kernel, shape, dtype, arch, device, role, unit, stamp_set, version, first_unix_ns, captures, mean_ticks, spread,
         LAG(version) OVER (PARTITION BY kernel, shape, dtype, arch, device, role, unit, stamp_set ORDER BY first_unix_ns, version) AS before_version,
         LAG(captures) OVER (PARTITION BY kernel, shape, dtype, arch, device, role, unit, stamp_set ORDER BY first_unix_ns, version) AS before_captures,
         LAG(mean_ticks) OVER (PARTITION BY kernel, shape, dtype, arch, device, role, unit, stamp_set ORDER BY first_unix_ns, version) AS before_ticks,
         LAG(spread) OVER (PARTITION BY kernel, shape, dtype, arch, device, role, unit, stamp_set ORDER BY first_unix_ns, version) AS before_spread
  FROM version
), judged AS (
  SELECT kernel, shape, dtype, arch, device, role, unit, stamp_set, version, first_unix_ns, captures, mean_ticks, before_version, before_captures, before_ticks,
         mean_ticks / before_ticks - 1 AS change,
         CASE WHEN captures >= q.least_captures AND before_captures >= q.least_captures THEN SQRT(spread * spread / captures + before_spread * before_spread / before_captures) END AS noise,
         q.sigmas, q.least_change
  FROM paired CROSS JOIN question q WHERE before_version IS NOT NULL AND before_ticks > 0
)
SELECT kernel, shape, dtype, arch, device, role, unit, before_version, version, before_captures, captures, before_ticks, mean_ticks, change, noise,
       CASE WHEN noise > 0 THEN (mean_ticks - before_ticks) / noise END AS sigmas,
       CASE WHEN noise IS NULL OR noise = 0 THEN 'noise unknown' WHEN ABS(mean_ticks - before_ticks) <= sigmas * noise OR ABS(change) <= least_change THEN 'within the noise'
            WHEN change > 0 THEN 'regression' ELSE 'improvement' END AS verdict
FROM judged
ORDER BY CASE WHEN noise > 0 AND ABS(mean_ticks - before_ticks) > sigmas * noise AND ABS(change) > least_change THEN CASE WHEN change > 0 THEN 0 ELSE 1 END ELSE 2 END,
         change DESC, kernel, shape, dtype, arch, device, role, unit, stamp_set, first_unix_ns, version
