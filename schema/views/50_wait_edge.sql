-- wait_edge: every wait (complete stall span of one lane) with each declared edge that it needs; one row with producer_role '' where it needs none.
-- wait and signal are made of it.
--
-- Edges of a wait of iteration j: the rows d of dependencies into its end point (consumer_role = role, consumer_event = end_event).
--   n = consumer_step * j - iteration_lag.
--   d does not apply when n is no multiple of producer_step. It is free when n < 0: no producer iteration exists (the ring is not yet full).
--   Otherwise it is needed, from producer iteration i = n / producer_step. Needed as well, and never found: a step of 0 (mapping of iterations
--   unknown), a scope other than 'cta' (not judged without anchors), a wait whose own iteration is unknown (-1).
-- Signal of a needed edge: the last point (producer_role, producer_event, i) of that CTA on the clock of the wait; of the wait's own lane only
--   when the edge is a self edge of mechanism 'commit' (a warp waits for its own work, never for its neighbour's). Where the role has several lanes in
--   the CTA and one of them is not known to be complete, every lane of them that ever wrote the point must have it in iteration i, else there is no signal.
-- A small negative slack (end - signal) is legal: the stamp follows the arrive. An edge is contradicted when the wait ended before the signal by more than
--   the shortest wait for that producer point plus one clock step.
-- release_ticks = latency_ticks, rounded; else the smallest slack over the waits of that role, span and clock unit in the capture that began before the signal of that
--   producer point (for completion 'signal' only where no other edge signalled later); else 0 for completion 'signal', unknown (null) for 'async'.
--   Waits with a needed edge that has no signal or is contradicted do not count.
-- ready = signal + release. nth orders the needed edges of a wait: 1 binds, the one that is ready last. Ties: the later signal, then producer_role, producer_event,
--   iteration_lag, the first in order. Edges without signal come last.
-- is_open 1: some needed edge of the wait has no signal, is contradicted or has an unknown release, so the wait cannot be judged. is_found 1: all needed edges have a signal.
-- Ticks are subtracted before anything else meets them: absolute ns exceed 2^53. Rounded = FLOOR(x + 0.5).
WITH stall AS (
  SELECT s.capture_id, s.lane, s.launch, s.cta, s.warp, s.role, s.span, s.barrier, s.iteration, s.span_id, s.clock, COALESCE(c.unit, 'tick') AS unit,
         CASE WHEN c.step_ticks > 0 THEN c.step_ticks ELSE CAST(0 AS BIGINT) END AS step_ticks, s.t0, s.t1, s.end_event
  FROM span s LEFT JOIN clocks c ON c.capture_id = s.capture_id AND c.clock = s.clock
  WHERE s.state = 'stall' AND s.complete AND s.end_lane = s.lane
), declared AS (
  SELECT capture_id, producer_role, producer_event, consumer_role, consumer_event, iteration_lag, barrier, scope, mechanism, completion,
         CAST(consumer_step AS BIGINT) AS consumer_step, CASE WHEN producer_step > 0 AND consumer_step > 0 THEN producer_step ELSE 1 END AS producer_step,
         CASE WHEN producer_step > 0 AND consumer_step > 0 THEN 1 ELSE 0 END AS is_mapped, CASE WHEN mechanism = 'commit' AND producer_role = consumer_role THEN 1 ELSE 0 END AS is_own,
         CAST(FLOOR(latency_ticks + 0.5E0) AS BIGINT) AS latency
  FROM dependencies
), producer AS (
  SELECT DISTINCT capture_id, producer_role, producer_event, is_own FROM declared WHERE is_mapped = 1 AND scope = 'cta'
), team AS (
  SELECT capture_id, launch, cta, clock, role, MAX(CASE WHEN completeness = 'complete' AND records_lost <= 0 THEN 0 ELSE 1 END) AS is_lossy
  FROM lanes GROUP BY capture_id, launch, cta, clock, role HAVING COUNT(*) > 1
), team_point AS (
  SELECT p.capture_id, p.lane, l.launch, l.cta, l.clock, p.role, p.event, p.iteration, p.t, m.is_lossy
  FROM point p
  JOIN producer d ON d.capture_id = p.capture_id AND d.producer_role = p.role AND d.producer_event = p.event AND d.is_own = 0
  JOIN lanes l ON l.capture_id = p.capture_id AND l.lane = p.lane
  JOIN team m ON m.capture_id = l.capture_id AND m.launch = l.launch AND m.cta = l.cta AND m.clock = l.clock AND m.role = l.role
), writers AS (
  SELECT capture_id, launch, cta, clock, role, event, COUNT(DISTINCT lane) AS lanes FROM team_point WHERE is_lossy = 1 GROUP BY capture_id, launch, cta, clock, role, event
), last_lane AS (
  SELECT capture_id, launch, cta, clock, role, event, iteration, t, MIN(lane) AS lane FROM team_point GROUP BY capture_id, launch, cta, clock, role, event, iteration, t
), heard AS (
  SELECT p.capture_id, l.launch, l.cta, l.clock, p.role, p.event, p.iteration, CASE WHEN d.is_own = 1 THEN p.lane ELSE -1 END AS own_lane, MAX(p.t) AS t, MIN(p.lane) AS lane, COUNT(*) AS points
  FROM point p
  JOIN producer d ON d.capture_id = p.capture_id AND d.producer_role = p.role AND d.producer_event = p.event
  JOIN lanes l ON l.capture_id = p.capture_id AND l.lane = p.lane
  GROUP BY p.capture_id, l.launch, l.cta, l.clock, p.role, p.event, p.iteration, CASE WHEN d.is_own = 1 THEN p.lane ELSE -1 END
), sent AS (
  SELECT h.capture_id, h.launch, h.cta, h.clock, h.role, h.event, h.iteration, h.own_lane, h.t, COALESCE(x.lane, h.lane) AS lane
  FROM heard h
  LEFT JOIN writers w ON w.capture_id = h.capture_id AND w.launch = h.launch AND w.cta = h.cta AND w.clock = h.clock AND w.role = h.role AND w.event = h.event AND h.own_lane = -1
  LEFT JOIN last_lane x ON x.capture_id = h.capture_id AND x.launch = h.launch AND x.cta = h.cta AND x.clock = h.clock AND x.role = h.role AND x.event = h.event AND x.iteration = h.iteration AND x.t = h.t AND h.own_lane = -1
  WHERE h.points >= COALESCE(w.lanes, 1)
), mapped AS (
  SELECT w.capture_id, w.lane, w.launch, w.cta, w.warp, w.role, w.span, w.barrier, w.iteration, w.span_id, w.clock, w.unit, w.step_ticks, w.t0, w.t1, w.end_event,
         d.producer_role, d.producer_event, d.iteration_lag, d.mechanism, d.completion, d.latency, d.scope, CASE WHEN d.is_own = 1 THEN w.lane ELSE -1 END AS own_lane, d.producer_step,
         CASE WHEN d.is_mapped = 1 AND w.iteration >= 0 THEN 1 ELSE 0 END AS is_mapped, d.consumer_step * w.iteration - d.iteration_lag AS units
  FROM stall w LEFT JOIN declared d ON d.capture_id = w.capture_id AND d.consumer_role = w.role AND d.consumer_event = w.end_event
), edge AS (
  SELECT capture_id, lane, launch, cta, warp, role, span, barrier, iteration, span_id, clock, unit, step_ticks, t0, t1, end_event, producer_role, producer_event, iteration_lag, mechanism, completion, latency, scope, own_lane,
         CASE WHEN producer_role IS NULL THEN 0 WHEN is_mapped = 0 THEN 1 WHEN units % producer_step <> 0 OR units < 0 THEN 0 ELSE 1 END AS is_needed,
         CASE WHEN is_mapped = 1 AND units % producer_step = 0 AND units < 0 THEN 1 ELSE 0 END AS is_free,
         CASE WHEN is_mapped = 1 AND scope = 'cta' AND units % producer_step = 0 AND units >= 0 THEN CAST(units / producer_step AS BIGINT) END AS producer_iteration
  FROM mapped
), matched AS (
  SELECT e.capture_id, e.lane, e.launch, e.cta, e.warp, e.role, e.span, e.barrier, e.iteration, e.span_id, e.clock, e.unit, e.step_ticks, e.t0, e.t1, e.end_event,
         e.producer_role, e.producer_event, e.iteration_lag, e.mechanism, e.completion, e.latency, e.scope, e.is_needed, e.is_free, e.producer_iteration, g.lane AS producer_lane, g.t AS signal_t
  FROM edge e
  LEFT JOIN sent g ON g.capture_id = e.capture_id AND g.launch = e.launch AND g.cta = e.cta AND g.clock = e.clock AND g.role = e.producer_role AND g.event = e.producer_event
                  AND g.iteration = e.producer_iteration AND g.own_lane = e.own_lane
), checked AS (
  SELECT capture_id, lane, launch, cta, warp, role, span, barrier, iteration, span_id, clock, unit, step_ticks, t0, t1, end_event, producer_role, producer_event, iteration_lag, mechanism, completion, latency, scope, is_needed, is_free,
         producer_iteration, producer_lane, signal_t,
         CASE WHEN is_needed = 1 AND signal_t IS NULL THEN 1
              WHEN signal_t - t1 > MIN(t1 - t0) OVER (PARTITION BY capture_id, unit, role, span, producer_role, producer_event) + step_ticks THEN 1 ELSE 0 END AS is_wrong
  FROM matched
), counted AS (
  SELECT capture_id, lane, launch, cta, warp, role, span, barrier, iteration, span_id, clock, unit, step_ticks, t0, t1, end_event, producer_role, producer_event, iteration_lag, mechanism, completion, latency, scope, is_needed,
         producer_iteration, producer_lane, signal_t,
         CAST(SUM(is_needed) OVER (PARTITION BY capture_id, lane, span, iteration, span_id) AS BIGINT) AS edges, COUNT(signal_t) OVER (PARTITION BY capture_id, lane, span, iteration, span_id) AS found,
         MAX(is_free) OVER (PARTITION BY capture_id, lane, span, iteration, span_id) AS is_free, MAX(is_wrong) OVER (PARTITION BY capture_id, lane, span, iteration, span_id) AS is_wrong,
         MAX(signal_t) OVER (PARTITION BY capture_id, lane, span, iteration, span_id) AS last_signal_t
  FROM checked
), released AS (
  SELECT capture_id, lane, launch, cta, warp, role, span, barrier, iteration, span_id, clock, unit, step_ticks, t0, t1, end_event, producer_role, producer_event, iteration_lag, mechanism, completion, scope, is_needed,
         producer_iteration, producer_lane, signal_t, edges, found, is_free, is_wrong,
         CASE WHEN signal_t IS NOT NULL
              THEN COALESCE(latency, MIN(CASE WHEN is_wrong = 0 AND signal_t > t0 AND (completion = 'async' OR signal_t = last_signal_t) THEN t1 - signal_t END)
                                       OVER (PARTITION BY capture_id, unit, role, span, producer_role, producer_event), CASE WHEN completion = 'async' THEN NULL ELSE CAST(0 AS BIGINT) END) END AS release_ticks
  FROM counted
), ranked AS (
  SELECT capture_id, lane, launch, cta, warp, role, span, barrier, iteration, span_id, clock, unit, step_ticks, t0, t1, end_event, COALESCE(producer_role, '') AS producer_role, COALESCE(producer_event, '') AS producer_event,
         iteration_lag, COALESCE(mechanism, '') AS mechanism, COALESCE(completion, '') AS completion, COALESCE(scope, '') AS scope, is_needed, producer_iteration, producer_lane, signal_t, release_ticks, edges, is_free,
         CASE WHEN found = edges THEN 1 ELSE 0 END AS is_found,
         MAX(CASE WHEN is_wrong = 1 OR (is_needed = 1 AND release_ticks IS NULL) THEN 1 ELSE 0 END) OVER (PARTITION BY capture_id, lane, span, iteration, span_id) AS is_open,
         ROW_NUMBER() OVER (PARTITION BY capture_id, lane, span, iteration, span_id
                            ORDER BY is_needed DESC, CASE WHEN signal_t IS NULL THEN 1 ELSE 0 END, signal_t + COALESCE(release_ticks, 0) DESC, signal_t DESC, producer_role, producer_event, iteration_lag) AS nth
  FROM released
)
SELECT capture_id, lane, launch, cta, warp, role, span, barrier, iteration, span_id, clock, unit, step_ticks, t0, t1, end_event,
       CASE WHEN is_needed = 1 THEN producer_role ELSE '' END AS producer_role, CASE WHEN is_needed = 1 THEN producer_event ELSE '' END AS producer_event, CASE WHEN is_needed = 1 THEN mechanism ELSE '' END AS mechanism,
       CASE WHEN is_needed = 1 THEN completion ELSE '' END AS completion, CASE WHEN is_needed = 1 THEN scope ELSE '' END AS scope, producer_iteration, producer_lane, signal_t, release_ticks, edges, is_free, is_found, is_open, nth
FROM ranked WHERE is_needed = 1 OR nth = 1
