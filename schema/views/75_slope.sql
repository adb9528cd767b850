-- slope: ticks an iteration = difference of lifetimes over difference of trip counts (method slope), between the two largest trip counts that the stamp slots hold
-- (beyond them a stamped kernel runs unstamped; slots -1: no limit), of launches that are alike but for the trip count. fixed_ticks is what is left of the larger one.
WITH ranked AS (
  SELECT capture_id, kind, pass, trip_count, slots, grid_ctas, unit, launches, ticks,
         ROW_NUMBER() OVER (PARTITION BY capture_id, kind, pass, slots, grid_ctas, unit ORDER BY trip_count DESC) AS nth
  FROM lifetime_median WHERE trip_count > 0 AND (slots < 0 OR trip_count <= slots)
)
SELECT a.capture_id, a.kind, a.pass, a.slots, a.grid_ctas, a.unit, b.trip_count AS trips_low, a.trip_count AS trips_high, b.launches AS launches_low, a.launches AS launches_high,
       (a.ticks - b.ticks) / (a.trip_count - b.trip_count) AS slope_ticks, a.ticks - a.trip_count * ((a.ticks - b.ticks) / (a.trip_count - b.trip_count)) AS fixed_ticks
FROM ranked a
JOIN ranked b ON b.capture_id = a.capture_id AND b.kind = a.kind AND b.pass = a.pass AND b.slots = a.slots AND b.grid_ctas = a.grid_ctas AND b.unit = a.unit AND b.nth = 2
WHERE a.nth = 1
