-- wait: every complete stall span of one lane, its binding edge (see wait_edge), its verdict, and how its ticks divide.
-- verdict, the first that holds:
--   free           no edge is needed, and at least one is free
--   unknown        no edge is needed (none declared), or some needed edge has no signal, is contradicted or has an unknown release
--   other          more than half of the wait lies after ready, and more than 16 satisfied waits would take, 16 * (wait_floor + one clock step):
--                  something that no edge declares kept the lane. Never where no floor is known. For a free wait, and where ready is before the begin, the begin counts as ready.
--   not_blocked    ready at or before the begin
--   producer_late  signal after the begin
--   in_flight      signal at or before the begin, ready after it
-- At a symmetric barrier (mechanism 'bar_sync') everybody pays the release after the last arrival, so a wait whose binding signal is not after its begin is satisfied:
--   it arrived last.
-- wait_floor = what a satisfied wait costs (stamps and test): floor_ticks of the span type, rounded; else the smallest satisfied wait (free, or ready at or before the begin)
--   of that role, span and clock unit in the capture; else of that clock unit in the capture; else 0 (none known). Never the smallest wait as such: it may be blocked itself.
-- ticks = blocked_ticks + satisfied_ticks + unjudged_ticks. blocked = ticks - wait_floor, not below 0, for producer_late, in_flight and other; unjudged = ticks for unknown.
WITH bound AS (
  SELECT capture_id, lane, launch, cta, warp, role, span, barrier, iteration, span_id, clock, unit, step_ticks, t0, t1, t1 - t0 AS ticks, edges, mechanism, is_open,
         CASE WHEN edges = 0 AND is_free = 1 THEN 1 ELSE 0 END AS is_free, CASE WHEN is_found = 1 THEN producer_role ELSE '' END AS producer_role, CASE WHEN is_found = 1 THEN producer_event ELSE '' END AS producer_event,
         CASE WHEN is_found = 1 THEN producer_iteration END AS producer_iteration, CASE WHEN is_found = 1 THEN producer_lane END AS producer_lane, CASE WHEN is_found = 1 THEN signal_t END AS signal_t,
         CASE WHEN is_open = 0 AND is_found = 1 THEN release_ticks END AS release_ticks
  FROM wait_edge WHERE nth = 1
), settled AS (
  SELECT capture_id, lane, launch, cta, warp, role, span, barrier, iteration, span_id, clock, unit, step_ticks, t0, t1, ticks, edges, producer_role, producer_event, producer_iteration, producer_lane, signal_t, release_ticks,
         CASE WHEN is_free = 1 THEN 'free'
              WHEN edges = 0 OR is_open = 1 THEN 'unknown'
              WHEN t0 - signal_t >= release_ticks OR (mechanism = 'bar_sync' AND signal_t <= t0) THEN 'not_blocked'
              WHEN signal_t > t0 THEN 'producer_late' ELSE 'in_flight' END AS cause
  FROM bound
), floored AS (
  SELECT x.capture_id, x.lane, x.launch, x.cta, x.warp, x.role, x.span, x.barrier, x.iteration, x.span_id, x.clock, x.step_ticks, x.t0, x.t1, x.ticks, x.edges, x.producer_role, x.producer_event, x.producer_iteration, x.producer_lane,
         x.signal_t, x.release_ticks, x.cause, CASE WHEN x.cause IN ('producer_late', 'in_flight') THEN x.t1 - x.signal_t - x.release_ticks ELSE x.ticks END AS after_ready,
         COALESCE(CASE WHEN s.floor_ticks >= 0 THEN CAST(FLOOR(s.floor_ticks + 0.5E0) AS BIGINT) END,
                  MIN(CASE WHEN x.cause IN ('free', 'not_blocked') THEN x.ticks END) OVER (PARTITION BY x.capture_id, x.unit, x.role, x.span),
                  MIN(CASE WHEN x.cause IN ('free', 'not_blocked') THEN x.ticks END) OVER (PARTITION BY x.capture_id, x.unit)) AS known_floor
  FROM settled x LEFT JOIN span_types s ON s.capture_id = x.capture_id AND s.role = x.role AND s.span = x.span
), judged AS (
  SELECT capture_id, lane, launch, cta, warp, role, span, barrier, iteration, span_id, clock, t0, t1, ticks, edges, producer_role, producer_event, producer_iteration, producer_lane, signal_t, release_ticks, COALESCE(known_floor, 0) AS wait_floor,
         CASE WHEN cause <> 'unknown' AND 2 * after_ready > ticks AND after_ready > 16 * (known_floor + step_ticks) THEN 'other' ELSE cause END AS verdict
  FROM floored
)
SELECT capture_id, lane, launch, cta, warp, role, span, barrier, iteration, span_id, clock, t0, t1, ticks, CAST(edges AS INT) AS edges, producer_role, producer_event, CAST(producer_iteration AS INT) AS producer_iteration,
       COALESCE(producer_lane, -1) AS producer_lane, signal_t, signal_t - t0 AS late, t1 - signal_t AS slack, release_ticks, wait_floor, verdict,
       CASE WHEN verdict IN ('producer_late', 'in_flight', 'other') AND ticks > wait_floor THEN ticks - wait_floor ELSE 0 END AS blocked_ticks,
       CASE WHEN verdict = 'unknown' THEN 0 WHEN verdict IN ('producer_late', 'in_flight', 'other') AND ticks > wait_floor THEN wait_floor ELSE ticks END AS satisfied_ticks,
       CASE WHEN verdict = 'unknown' THEN ticks ELSE 0 END AS unjudged_ticks
FROM judged
