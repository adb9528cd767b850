-- lifetime_median: median over launches of launch_lifetime, for launches that are alike: kind, pass, trip count, slots, grid and unit. Medians are the mean of the two middle values.
WITH ranked AS (
  SELECT capture_id, kind, pass, trip_count, slots, grid_ctas, unit, ticks,
         ROW_NUMBER() OVER (PARTITION BY capture_id, kind, pass, trip_count, slots, grid_ctas, unit ORDER BY ticks) AS nth,
         COUNT(*) OVER (PARTITION BY capture_id, kind, pass, trip_count, slots, grid_ctas, unit) AS n
  FROM launch_lifetime
)
SELECT capture_id, kind, pass, trip_count, slots, grid_ctas, unit, MIN(n) AS launches, AVG(ticks) AS ticks
FROM ranked WHERE nth * 2 >= n AND nth * 2 <= n + 2
GROUP BY capture_id, kind, pass, trip_count, slots, grid_ctas, unit
