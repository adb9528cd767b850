-- wait_edge: every wait (complete stall span of one lane) with each edge of its kind. wait and signal are made of it; wait_kind says what the numbers mean.
--
-- For a wait of iteration j and a declared edge (a row of dependencies into the point that ends the wait): n = consumer_step * j - iteration_lag.
--   The edge does not apply when n is no multiple of producer_step. It is free when n < 0: no producer iteration exists (the ring is not yet full).
--   Otherwise it is needed, from producer iteration i = n / producer_step. Needed as well, and never found: a step of 0 (mapping of iterations
--   unknown), a wait whose own iteration is unknown (-1).
-- Signal of a needed edge: the last point (producer_role, producer_event, i) of that CTA on the clock of the wait; of the wait's own lane only
--   when the edge is a self edge of mechanism 'commit' (a warp waits for its own work, never for its neighbour's). Where the role has several lanes there
--   and one of them is not known to be complete (lanes.completeness, records_lost), every lane of them that ever wrote the point or is known to have lost records must have it in iteration i, else there is no signal.
-- Of an edge of scope 'cluster' or 'device' the signal and its error_ticks are those of cross_signal; 0 for others, whose times are on one clock.
-- slack = end - signal. A small negative slack is legal: the stamp follows the arrive. An edge is contradicted when the wait ended before the signal by more than
--   the shortest wait of its wait kind and clock unit in the capture plus one (the largest) clock step plus error_ticks.
-- release = latency_ticks, rounded; else the smallest slack over the waits of its release kind and clock unit in the capture that surely began before the signal, by more than error_ticks
--   (the smallest that is not negative, where the smallest is a contradiction); else 0 for completion 'signal', unknown (null) for 'async'.
-- ready = signal + release. ready_error: what is open of it in ticks: error_ticks, and where the release was inferred the greatest error_ticks of the waits that it was inferred from. ready_by: the latest ready of any needed edge of the wait, errors added, in ticks after its begin. nth orders the edges of a wait: 1 binds, the needed edge that is ready last. Ties: the later signal, then producer_role, producer_event,
--   iteration_lag, the first in order. Needed edges without signal come after those with, edges that are not needed last.
-- edges, found: needed edges of the wait, and those with a signal. is_free 1: some edge is free.
-- is_open above 0: the wait cannot be judged: 1 a needed edge has no signal or an unknown release, 2 one is contradicted.
-- is_unsure 1: another needed edge may be ready last, within the errors of both, and would be judged in another way: its signal is not on the same side of the begin, or both are before it and only one is of a symmetric barrier.
-- producer_lane: the lane that sent the signal; of several the smallest.
-- Ticks are subtracted before anything else meets them: absolute ns exceed 2^53. The number of a CTA (home) is its first lane on that clock.
-- (width: a kind of wait with a single edge, 1, needs no ranking, which is most of the cost; one without edges from other CTAs, 2, has no errors.)
WITH home AS (
  SELECT l.capture_id, l.lane, MIN(l.lane) OVER (PARTITION BY l.capture_id, l.launch, l.cta, l.clock) AS home,
         CASE WHEN c.unit = 'cycle' THEN 1 WHEN c.unit = 'ns' THEN 2 ELSE 3 END AS unit_kind, CASE WHEN c.step_ticks > 0 THEN c.step_ticks ELSE CAST(0 AS BIGINT) END AS step_ticks
  FROM lanes l LEFT JOIN clocks c ON c.capture_id = l.capture_id AND c.clock = l.clock
), sender AS (
  SELECT capture_id, producer_role, producer_event, is_own, ROW_NUMBER() OVER (PARTITION BY capture_id ORDER BY producer_role, producer_event, is_own) AS sender
  FROM (SELECT DISTINCT capture_id, producer_role, producer_event, is_own FROM wait_kind WHERE is_mapped = 1 AND scope = 'cta') AS senders
), edge_kind AS (
  SELECT k.capture_id, k.wait_kind, k.edge_kind, k.release_kind, k.role, k.span, k.end_event, k.iteration_lag, k.is_mapped, k.producer_step, k.consumer_step, k.is_own, k.latency, CASE WHEN k.mechanism = 'bar_sync' THEN 1 ELSE 0 END AS is_symmetric,
         CASE WHEN COUNT(*) OVER (PARTITION BY k.capture_id, k.wait_kind) = 1 THEN 1 WHEN MAX(CASE WHEN k.scope IN ('cluster', 'device') THEN 1 ELSE 0 END) OVER (PARTITION BY k.capture_id, k.wait_kind) = 0 THEN 2 ELSE 3 END AS width,
         CASE WHEN k.completion = 'async' THEN CAST(NULL AS BIGINT) ELSE CAST(0 AS BIGINT) END AS default_release, CASE WHEN k.scope = 'cta' THEN s.sender END AS sender
  FROM wait_kind k LEFT JOIN sender s ON s.capture_id = k.capture_id AND s.producer_role = k.producer_role AND s.producer_event = k.producer_event AND s.is_own = k.is_own
), team AS (
  SELECT h.capture_id, h.home, l.role, MAX(CASE WHEN l.completeness = 'complete' AND l.records_lost <= 0 THEN 0 ELSE 1 END) AS is_lossy
  FROM lanes l JOIN home h ON h.capture_id = l.capture_id AND h.lane = l.lane
  GROUP BY h.capture_id, h.home, l.role HAVING COUNT(*) > 1
), team_point AS (
  SELECT p.capture_id, p.lane, m.home, s.sender, p.iteration, p.t, m.is_lossy, CASE WHEN l.role = p.role THEN p.lane END AS member
  FROM point p
  JOIN sender s ON s.capture_id = p.capture_id AND s.producer_role = p.role AND s.producer_event = p.event AND s.is_own = 0
  JOIN home h ON h.capture_id = p.capture_id AND h.lane = p.lane
  JOIN team m ON m.capture_id = p.capture_id AND m.home = h.home AND m.role = p.role
  JOIN lanes l ON l.capture_id = p.capture_id AND l.lane = p.lane
), writer AS (
  SELECT capture_id, home, sender, member FROM team_point WHERE is_lossy = 1 AND member IS NOT NULL
  UNION
  SELECT h.capture_id, h.home, s.sender, l.lane AS member
  FROM lanes l
  JOIN home h ON h.capture_id = l.capture_id AND h.lane = l.lane
  JOIN team m ON m.capture_id = h.capture_id AND m.home = h.home AND m.role = l.role
  JOIN sender s ON s.capture_id = l.capture_id AND s.producer_role = l.role AND s.is_own = 0
  WHERE l.records_lost > 0
), writers AS (
  SELECT capture_id, home, sender, COUNT(*) AS lanes FROM writer GROUP BY capture_id, home, sender
), team_last AS (
  SELECT capture_id, home, sender, iteration, t, lane, COUNT(*) OVER (PARTITION BY capture_id, home, sender, iteration) AS points,
         ROW_NUMBER() OVER (PARTITION BY capture_id, home, sender, iteration ORDER BY t DESC, lane) AS nth
  FROM team_point
), sent AS (
  SELECT p.capture_id, CASE WHEN s.is_own = 1 THEN p.lane ELSE h.home END AS home, s.sender, p.iteration, MAX(p.t) AS t, MIN(p.lane) AS lane
  FROM point p
  JOIN sender s ON s.capture_id = p.capture_id AND s.producer_role = p.role AND s.producer_event = p.event
  JOIN home h ON h.capture_id = p.capture_id AND h.lane = p.lane
  LEFT JOIN team m ON m.capture_id = p.capture_id AND m.home = h.home AND m.role = p.role
  WHERE s.is_own = 1 OR m.home IS NULL
  GROUP BY p.capture_id, CASE WHEN s.is_own = 1 THEN p.lane ELSE h.home END, s.sender, p.iteration
  UNION ALL
  SELECT x.capture_id, x.home, x.sender, x.iteration, x.t, x.lane
  FROM team_last x LEFT JOIN writers w ON w.capture_id = x.capture_id AND w.home = x.home AND w.sender = x.sender
  WHERE x.nth = 1 AND x.points >= COALESCE(w.lanes, 1)
), stall AS (
  SELECT s.capture_id, s.lane, s.role, s.span, s.end_event, s.iteration, s.span_id, s.t0, s.t1, COALESCE(h.home, -1) AS home, COALESCE(h.unit_kind, 3) AS unit_kind, COALESCE(h.step_ticks, 0) AS step_ticks
  FROM span s LEFT JOIN home h ON h.capture_id = s.capture_id AND h.lane = s.lane
  WHERE s.state = 'stall' AND s.complete AND s.end_lane = s.lane
), edge AS (
  SELECT w.capture_id, w.lane, w.iteration, w.span_id, w.t0, w.t1, w.unit_kind, w.step_ticks, k.wait_kind, k.edge_kind, k.release_kind, k.latency, k.width, k.default_release, k.sender, CASE WHEN k.is_own = 1 THEN w.lane ELSE w.home END AS home, k.producer_step,
         CASE WHEN k.is_mapped = 1 AND w.iteration >= 0 THEN 1 ELSE 0 END AS is_mapped, k.consumer_step * w.iteration - k.iteration_lag AS units
  FROM stall w JOIN edge_kind k ON k.capture_id = w.capture_id AND k.role = w.role AND k.span = w.span AND k.end_event = w.end_event
), mapped AS (
  SELECT capture_id, lane, iteration, span_id, t0, t1, unit_kind, step_ticks, wait_kind, edge_kind, release_kind, latency, width, default_release, sender, home,
         CASE WHEN edge_kind = 0 THEN 0 WHEN is_mapped = 0 THEN 1 WHEN units % producer_step <> 0 OR units < 0 THEN 0 ELSE 1 END AS is_needed,
         CASE WHEN is_mapped = 1 AND units % producer_step = 0 AND units < 0 THEN 1 ELSE 0 END AS is_free,
         CASE WHEN is_mapped = 1 AND units % producer_step = 0 AND units >= 0 THEN CAST(units / producer_step AS INT) END AS producer_iteration
  FROM edge
), met AS (
  SELECT e.capture_id, e.lane, e.iteration, e.span_id, e.t0, e.t1, e.step_ticks, e.wait_kind, e.edge_kind, e.release_kind, e.unit_kind, e.is_needed, e.is_free, e.latency, e.width, e.default_release, e.producer_iteration, COALESCE(g.lane, c.producer_lane) AS producer_lane, COALESCE(g.t, c.signal_t) AS signal_t, COALESCE(c.error_ticks, 0.0E0) AS error_ticks
  FROM mapped e LEFT JOIN sent g ON g.capture_id = e.capture_id AND g.home = e.home AND g.sender = e.sender AND g.iteration = e.producer_iteration
  LEFT JOIN cross_signal c ON c.capture_id = e.capture_id AND c.lane = e.lane AND c.iteration = e.iteration AND c.span_id = e.span_id AND c.wait_kind = e.wait_kind AND c.edge_kind = e.edge_kind
), kind_release AS (
  SELECT capture_id, release_kind, unit_kind, MIN(t1 - t0) + MAX(step_ticks) AS tolerance, MIN(CASE WHEN signal_t - t0 > error_ticks THEN t1 - signal_t END) AS least_slack, MIN(CASE WHEN signal_t - t0 > error_ticks AND t1 >= signal_t THEN t1 - signal_t END) AS least_plain_slack,
         COALESCE(MAX(CASE WHEN signal_t - t0 > error_ticks THEN error_ticks END), 0.0E0) AS slack_error
  FROM met GROUP BY capture_id, release_kind, unit_kind
), matched AS (
  SELECT m.capture_id, m.lane, m.iteration, m.span_id, m.t0, m.t1, m.step_ticks, m.wait_kind, m.edge_kind, m.is_needed, m.is_free, m.latency, m.width, m.default_release, m.producer_iteration, m.producer_lane, m.signal_t, m.error_ticks, r.tolerance, r.least_slack, r.least_plain_slack, r.slack_error
  FROM met m JOIN kind_release r ON r.capture_id = m.capture_id AND r.release_kind = m.release_kind AND r.unit_kind = m.unit_kind
), released AS (
  SELECT capture_id, lane, iteration, span_id, t0, t1, step_ticks, wait_kind, edge_kind, width, is_needed, is_free, producer_iteration, producer_lane, signal_t, error_ticks, CASE WHEN signal_t - t1 > tolerance + error_ticks THEN 1 ELSE 0 END AS is_contradicted, error_ticks + CASE WHEN latency IS NULL THEN slack_error ELSE 0.0E0 END AS ready_error,
         CASE WHEN signal_t IS NOT NULL THEN COALESCE(latency, CASE WHEN least_slack + tolerance + slack_error >= 0 THEN least_slack ELSE least_plain_slack END, default_release) END AS release_ticks
  FROM matched
), opened AS (
  SELECT capture_id, lane, iteration, span_id, t0, t1, step_ticks, wait_kind, edge_kind, width, is_needed, is_free, producer_iteration, producer_lane, signal_t, release_ticks, error_ticks, ready_error, CAST(signal_t - t0 + release_ticks AS DOUBLE) + ready_error AS ready_by, CASE WHEN is_contradicted = 1 THEN 2 WHEN is_needed = 1 AND release_ticks IS NULL THEN 1 ELSE 0 END AS is_open
  FROM released
), ranked AS (
  SELECT o.capture_id, o.lane, o.iteration, o.span_id, o.t0, o.t1, o.step_ticks, o.wait_kind, o.edge_kind, o.is_needed, o.producer_iteration, o.producer_lane, o.signal_t, o.release_ticks, o.error_ticks, o.ready_error, o.ready_by, o.is_free, o.is_open, k.is_symmetric,
         CAST(ROW_NUMBER() OVER (PARTITION BY o.capture_id, o.lane, o.wait_kind, o.iteration, o.span_id
                            ORDER BY o.is_needed DESC, CASE WHEN o.signal_t IS NULL THEN 1 ELSE 0 END, o.signal_t + COALESCE(o.release_ticks, 0) DESC, o.signal_t DESC, o.edge_kind) AS INT) AS nth,
         MAX(o.ready_by - 2 * o.ready_error) OVER (PARTITION BY o.capture_id, o.lane, o.wait_kind, o.iteration, o.span_id) AS ready_surely, MAX(o.ready_error) OVER (PARTITION BY o.capture_id, o.lane, o.wait_kind, o.iteration, o.span_id) AS most_error
  FROM opened o JOIN edge_kind k ON k.capture_id = o.capture_id AND k.wait_kind = o.wait_kind AND k.edge_kind = o.edge_kind WHERE o.width = 3
), sided AS (
  SELECT capture_id, lane, iteration, span_id, t0, t1, step_ticks, wait_kind, edge_kind, is_needed, producer_iteration, producer_lane, signal_t, release_ticks, error_ticks, ready_error, ready_by, is_free, is_open, nth,
         CASE WHEN is_needed = 1 AND (nth = 1 OR (ready_by >= ready_surely AND most_error > 0)) THEN CASE WHEN signal_t - t0 > error_ticks THEN 0 WHEN t0 - signal_t >= error_ticks THEN 2 + is_symmetric ELSE 4 END END AS side
  FROM ranked
)
SELECT capture_id, lane, iteration, span_id, t0, t1, step_ticks, wait_kind, edge_kind, is_needed, producer_iteration, producer_lane, signal_t, release_ticks,
       is_needed AS edges, CASE WHEN signal_t IS NULL THEN 0 ELSE 1 END AS found, is_free, is_open, 1 AS nth, error_ticks, ready_error, ready_by, 0 AS is_unsure
FROM opened WHERE width = 1
UNION ALL
SELECT capture_id, lane, iteration, span_id, t0, t1, step_ticks, wait_kind, edge_kind, is_needed, producer_iteration, producer_lane, signal_t, release_ticks,
       CAST(SUM(is_needed) OVER (PARTITION BY capture_id, lane, wait_kind, iteration, span_id) AS INT) AS edges,
       CAST(COUNT(signal_t) OVER (PARTITION BY capture_id, lane, wait_kind, iteration, span_id) AS INT) AS found,
       MAX(is_free) OVER (PARTITION BY capture_id, lane, wait_kind, iteration, span_id) AS is_free,
       MAX(is_open) OVER (PARTITION BY capture_id, lane, wait_kind, iteration, span_id) AS is_open,
       CAST(ROW_NUMBER() OVER (PARTITION BY capture_id, lane, wait_kind, iteration, span_id
                          ORDER BY is_needed DESC, CASE WHEN signal_t IS NULL THEN 1 ELSE 0 END, signal_t + COALESCE(release_ticks, 0) DESC, signal_t DESC, edge_kind) AS INT) AS nth,
       error_ticks, ready_error, MAX(ready_by) OVER (PARTITION BY capture_id, lane, wait_kind, iteration, span_id) AS ready_by, 0 AS is_unsure
FROM opened WHERE width = 2
UNION ALL
SELECT capture_id, lane, iteration, span_id, t0, t1, step_ticks, wait_kind, edge_kind, is_needed, producer_iteration, producer_lane, signal_t, release_ticks,
       CAST(SUM(is_needed) OVER (PARTITION BY capture_id, lane, wait_kind, iteration, span_id) AS INT) AS edges, CAST(COUNT(signal_t) OVER (PARTITION BY capture_id, lane, wait_kind, iteration, span_id) AS INT) AS found, MAX(is_free) OVER (PARTITION BY capture_id, lane, wait_kind, iteration, span_id) AS is_free, MAX(is_open) OVER (PARTITION BY capture_id, lane, wait_kind, iteration, span_id) AS is_open, nth, error_ticks, ready_error,
       MAX(ready_by) OVER (PARTITION BY capture_id, lane, wait_kind, iteration, span_id) AS ready_by, CASE WHEN MIN(side) OVER (PARTITION BY capture_id, lane, wait_kind, iteration, span_id) < MAX(side) OVER (PARTITION BY capture_id, lane, wait_kind, iteration, span_id) THEN 1 ELSE 0 END AS is_unsure
FROM sided
