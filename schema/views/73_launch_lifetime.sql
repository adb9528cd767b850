-- launch_lifetime: the median CTA lifetime of a launch (mean of the two middle values), of launches that did not fail.
WITH ranked AS (
  SELECT capture_id, launch, kind, pass, trip_count, slots, grid_ctas, unit, ticks,
         ROW_NUMBER() OVER (PARTITION BY capture_id, launch, unit ORDER BY ticks) AS nth, COUNT(*) OVER (PARTITION BY capture_id, launch, unit) AS n
  FROM lifetime WHERE status <> 'failed'
)
SELECT capture_id, launch, kind, pass, trip_count, slots, grid_ctas, unit, MIN(n) AS ctas, AVG(CAST(ticks AS DOUBLE)) AS ticks
FROM ranked WHERE nth * 2 >= n AND nth * 2 <= n + 2
GROUP BY capture_id, launch, kind, pass, trip_count, slots, grid_ctas, unit
