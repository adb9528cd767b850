-- trend: how fast a kernel is, how much of its time each role stalls, and what the recording did to it, over versions or over days.
-- One row a kernel, shape, dtype, arch, role, unit and period; period is a version, or a day, as question.by_day says. In order of time.
-- mean_ticks: mean over captures; least, most: the fastest and the slowest capture. Shares are sums over captures. perturbation: mean over the captures for which it is known.
WITH one AS (
  SELECT r.kernel, r.shape, r.dtype, r.arch, r.role, r.unit, CASE WHEN q.by_day THEN CAST(r.day AS STRING) ELSE r.version END AS period,
         r.created_unix_ns, r.capture_id, r.ticks, r.extent, r.stall, r.blocked, r.untracked, r.perturbation
  FROM capture_role r CROSS JOIN question q WHERE r.unit <> 'mixed'
)
SELECT kernel, shape, dtype, arch, role, unit, period, MIN(created_unix_ns) AS first_unix_ns, MAX(created_unix_ns) AS last_unix_ns, COUNT(DISTINCT capture_id) AS captures,
       AVG(ticks) AS mean_ticks, MIN(ticks) AS least_ticks, MAX(ticks) AS most_ticks,
       CAST(SUM(stall) AS DOUBLE) / SUM(extent) AS stall_share, CAST(SUM(blocked) AS DOUBLE) / SUM(extent) AS blocked_share, CAST(SUM(untracked) AS DOUBLE) / SUM(extent) AS untracked_share,
       AVG(perturbation) AS perturbation, COUNT(perturbation) AS with_perturbation
FROM one
GROUP BY kernel, shape, dtype, arch, role, unit, period
ORDER BY kernel, shape, dtype, arch, role, unit, first_unix_ns, period
