-- perturbation: what the recording did to the kernel: stamped (or traced) ticks over clean ticks, minus 1. Like with like only: same experiment (captures of experiment ''
-- stand alone), device, grid, unit and trip counts. Clean launches of all captures of the experiment are one sample; stamped ones count per capture, kind, pass and slots.
-- method 'slope': ticks an iteration, between the two largest trip counts that both sides have. method 'lifetime': ticks of a CTA at one trip count, which mixes in the fixed cost.
-- Only trip counts at or under the slots: beyond them the kernel runs unstamped. preference 1 is the one to quote: slope, else lifetime at the largest trip count.
-- No row: perturbation is unknown. launches are the fewer of the two trip counts.
WITH clean_launch AS (
  SELECT c.experiment, CASE WHEN c.experiment = '' THEN c.capture_id ELSE '' END AS alone, c.device, h.trip_count, h.grid_ctas, h.unit, h.ticks
  FROM launch_lifetime h JOIN captures c ON c.capture_id = h.capture_id WHERE h.kind = 'clean'
), ranked AS (
  SELECT experiment, alone, device, trip_count, grid_ctas, unit, ticks,
         ROW_NUMBER() OVER (PARTITION BY experiment, alone, device, trip_count, grid_ctas, unit ORDER BY ticks) AS nth,
         COUNT(*) OVER (PARTITION BY experiment, alone, device, trip_count, grid_ctas, unit) AS n
  FROM clean_launch
), clean AS (
  SELECT experiment, alone, device, trip_count, grid_ctas, unit, MIN(n) AS launches, AVG(ticks) AS ticks
  FROM ranked WHERE nth * 2 >= n AND nth * 2 <= n + 2 GROUP BY experiment, alone, device, trip_count, grid_ctas, unit
), both_sides AS (
  SELECT s.capture_id, s.kind, s.pass, s.slots, s.grid_ctas, s.unit, s.trip_count, s.launches, s.ticks, k.launches AS clean_launches, k.ticks AS clean_ticks,
         ROW_NUMBER() OVER (PARTITION BY s.capture_id, s.kind, s.pass, s.slots, s.grid_ctas, s.unit ORDER BY s.trip_count DESC) AS nth
  FROM lifetime_median s
  JOIN captures c ON c.capture_id = s.capture_id
  JOIN clean k ON k.experiment = c.experiment AND k.alone = CASE WHEN c.experiment = '' THEN c.capture_id ELSE '' END AND k.device = c.device
              AND k.trip_count = s.trip_count AND k.grid_ctas = s.grid_ctas AND k.unit = s.unit
  WHERE s.kind IN ('stamped', 'traced') AND s.trip_count > 0 AND (s.slots < 0 OR s.trip_count <= s.slots)
), measured AS (
  SELECT a.capture_id, a.kind, a.pass, a.slots, a.grid_ctas, a.unit, 'slope' AS method, b.trip_count AS trips_low, a.trip_count AS trips_high, 0 AS ord,
         CASE WHEN a.launches < b.launches THEN a.launches ELSE b.launches END AS launches, CASE WHEN a.clean_launches < b.clean_launches THEN a.clean_launches ELSE b.clean_launches END AS clean_launches,
         (a.ticks - b.ticks) / (a.trip_count - b.trip_count) AS ticks, (a.clean_ticks - b.clean_ticks) / (a.trip_count - b.trip_count) AS clean_ticks
  FROM both_sides a
  JOIN both_sides b ON b.capture_id = a.capture_id AND b.kind = a.kind AND b.pass = a.pass AND b.slots = a.slots AND b.grid_ctas = a.grid_ctas AND b.unit = a.unit AND b.nth = 2
  WHERE a.nth = 1
  UNION ALL
  SELECT capture_id, kind, pass, slots, grid_ctas, unit, 'lifetime' AS method, trip_count AS trips_low, trip_count AS trips_high, nth AS ord, launches, clean_launches, ticks, clean_ticks FROM both_sides
)
SELECT capture_id, kind, pass, slots, grid_ctas, unit, method, trips_low, trips_high, launches, clean_launches, ticks, clean_ticks, ticks / clean_ticks - 1 AS perturbation,
       ROW_NUMBER() OVER (PARTITION BY capture_id, kind, pass, slots, grid_ctas, unit ORDER BY ord) AS preference
FROM measured WHERE clean_ticks > 0
