-- wait: every complete stall span of one lane, its binding edge (see wait_edge), its verdict, and how its ticks divide.
-- verdict, the first that holds:
--   free           no edge is needed, and at least one is free
--   unknown        no edge is needed (none declared), or some needed edge has no signal, is contradicted or has an unknown release, or two clocks leave open which of the below holds: see reason
--   other          more than half of the wait lies after ready, and more than 16 satisfied waits would take, 16 * (wait_floor + one clock step):
--                  something that no edge declares kept the lane. Never where no floor is known. For a free wait, and where ready is before the begin, the begin counts as ready.
--   not_blocked    ready at or before the begin
--   producer_late  signal after the begin
--   in_flight      signal at or before the begin, ready after it
--   Signals from other CTAs are known to error_ticks: each of these must hold whatever the error is (not_blocked for all needed edges of the wait, by ready_by).
--   Where another edge may be ready last, within the errors of both, it must hold by that one too (wait_edge.is_unsure).
-- reason, of an unknown one: no edge; no signal; contradicted; release unknown; within clock error. '' for others.
-- At a symmetric barrier (mechanism 'bar_sync') everybody pays the release after the last arrival, so a wait whose binding signal is not after its begin is satisfied:
--   it arrived last.
-- wait_floor = what a satisfied wait costs (stamps and test): floor_ticks of the span type, rounded; else the smallest satisfied wait (free, or ready at or before the begin)
--   of that role, span and clock unit in the capture; else of that clock unit in the capture; else 0 (none known). Never the smallest wait as such: it may be blocked itself.
-- ticks = blocked_ticks + satisfied_ticks + unjudged_ticks. blocked = ticks - wait_floor, not below 0, for producer_late, in_flight and other; unjudged = ticks for unknown.
WITH named AS (
  SELECT capture_id, wait_kind, edge_kind, DENSE_RANK() OVER (PARTITION BY capture_id ORDER BY role, span) AS floor_kind, CASE WHEN floor_ticks >= 0 THEN CAST(FLOOR(floor_ticks + 0.5E0) AS BIGINT) END AS calibrated_floor,
         role, span, barrier, producer_role, producer_event, CASE WHEN mechanism = 'bar_sync' THEN 1 ELSE 0 END AS is_symmetric
  FROM wait_kind
), settled AS (
  SELECT x.capture_id, x.lane, x.wait_kind, x.edge_kind, x.iteration, x.span_id, x.t0, x.t1, x.step_ticks, x.edges, k.floor_kind, k.calibrated_floor, CASE WHEN c.unit = 'cycle' THEN 1 WHEN c.unit = 'ns' THEN 2 ELSE 3 END AS unit_kind,
         CASE WHEN x.edges > 0 AND x.found = x.edges THEN 1 ELSE 0 END AS is_bound, x.producer_iteration, x.producer_lane, x.signal_t, x.release_ticks, x.error_ticks, x.ready_by,
         CASE WHEN x.edges = 0 AND x.is_free = 1 THEN 'free'
              WHEN x.edges = 0 OR x.is_open > 0 THEN 'unknown'
              WHEN x.ready_by <= 0 THEN 'not_blocked'
              WHEN x.is_unsure = 1 THEN 'unknown'
              WHEN k.is_symmetric = 1 AND x.t0 - x.signal_t >= x.error_ticks THEN 'not_blocked'
              WHEN x.signal_t - x.t0 > x.error_ticks THEN 'producer_late'
              WHEN x.t0 - x.signal_t >= x.error_ticks AND x.signal_t - x.t0 + x.release_ticks > x.ready_error THEN 'in_flight' ELSE 'unknown' END AS cause,
         CASE WHEN x.edges = 0 THEN 'no edge' WHEN x.found < x.edges THEN 'no signal' WHEN x.is_open = 2 THEN 'contradicted' WHEN x.is_open = 1 THEN 'release unknown' ELSE 'within clock error' END AS why
  FROM wait_edge x
  JOIN named k ON k.capture_id = x.capture_id AND k.wait_kind = x.wait_kind AND k.edge_kind = x.edge_kind
  LEFT JOIN lanes l ON l.capture_id = x.capture_id AND l.lane = x.lane
  LEFT JOIN clocks c ON c.capture_id = l.capture_id AND c.clock = l.clock
  WHERE x.nth = 1
), floor_of AS (
  SELECT capture_id, floor_kind, unit_kind, MIN(CASE WHEN cause IN ('free', 'not_blocked') THEN t1 - t0 END) AS least FROM settled GROUP BY capture_id, floor_kind, unit_kind
), floor_any AS (
  SELECT capture_id, unit_kind, MIN(least) AS least FROM floor_of GROUP BY capture_id, unit_kind
), floored AS (
  SELECT s.capture_id, s.lane, s.wait_kind, s.edge_kind, s.iteration, s.span_id, s.t0, s.t1, s.step_ticks, s.edges, s.is_bound, s.producer_iteration, s.producer_lane, s.signal_t, s.release_ticks, s.error_ticks, s.cause, s.why,
         CASE WHEN s.cause IN ('producer_late', 'in_flight') THEN CAST(s.t1 - s.t0 AS DOUBLE) - s.ready_by ELSE CAST(s.t1 - s.t0 AS DOUBLE) END AS after_ready, COALESCE(s.calibrated_floor, f.least, a.least) AS known_floor
  FROM settled s
  JOIN floor_of f ON f.capture_id = s.capture_id AND f.floor_kind = s.floor_kind AND f.unit_kind = s.unit_kind
  JOIN floor_any a ON a.capture_id = s.capture_id AND a.unit_kind = s.unit_kind
), judged AS (
  SELECT capture_id, lane, wait_kind, edge_kind, iteration, span_id, t0, t1, t1 - t0 AS ticks, edges, is_bound, producer_iteration, producer_lane, signal_t, release_ticks, error_ticks, why, COALESCE(known_floor, 0) AS wait_floor,
         CASE WHEN cause <> 'unknown' AND 2 * after_ready > t1 - t0 AND after_ready > 16 * (known_floor + step_ticks) THEN 'other' ELSE cause END AS verdict
  FROM floored
)
SELECT x.capture_id, x.lane, l.launch, l.cta, l.warp, k.role, k.span, k.barrier, x.iteration, x.span_id, l.clock, x.t0, x.t1, x.ticks, x.edges,
       CASE WHEN x.is_bound = 1 THEN k.producer_role ELSE '' END AS producer_role, CASE WHEN x.is_bound = 1 THEN k.producer_event ELSE '' END AS producer_event,
       CASE WHEN x.is_bound = 1 THEN x.producer_iteration END AS producer_iteration, CASE WHEN x.is_bound = 1 THEN x.producer_lane ELSE -1 END AS producer_lane, CASE WHEN x.is_bound = 1 THEN x.signal_t END AS signal_t,
       CASE WHEN x.is_bound = 1 THEN x.signal_t - x.t0 END AS late, CASE WHEN x.is_bound = 1 THEN x.t1 - x.signal_t END AS slack, CASE WHEN x.is_bound = 1 AND x.verdict <> 'unknown' THEN x.release_ticks END AS release_ticks,
       x.wait_floor, x.verdict,
       CASE WHEN x.verdict IN ('producer_late', 'in_flight', 'other') AND x.ticks > x.wait_floor THEN x.ticks - x.wait_floor ELSE 0 END AS blocked_ticks,
       CASE WHEN x.verdict = 'unknown' THEN 0 WHEN x.verdict IN ('producer_late', 'in_flight', 'other') AND x.ticks > x.wait_floor THEN x.wait_floor ELSE x.ticks END AS satisfied_ticks,
       CASE WHEN x.verdict = 'unknown' THEN x.ticks ELSE 0 END AS unjudged_ticks,
       CASE WHEN x.is_bound = 1 THEN x.error_ticks END AS error_ticks, CASE WHEN x.verdict = 'unknown' THEN x.why ELSE '' END AS reason
FROM judged x
JOIN named k ON k.capture_id = x.capture_id AND k.wait_kind = x.wait_kind AND k.edge_kind = x.edge_kind
LEFT JOIN lanes l ON l.capture_id = x.capture_id AND l.lane = x.lane
