-- pass_span: the combined picture of several passes: every complete span of a launch of a pass (launches.pass >= 0), with its launch, what the other passes say of the same span,
-- and where a picture of all of them draws it. Nothing is merged: t0 and t1 are ticks of the span's own launch.
-- A family is what may be compared: launches of a capture with a pass, not failed and not clean, of one trip count, grid and unit of clock. The same span: same CTA, warp, role,
--   member (n-th lane of that role in the warp), span and iteration. launches, passes, least_ticks and most_ticks are over the spans of the family that are the same.
-- The disturbance of a launch is that of its pass (perturbation, preference 1) without its sign, in whole millionths; an unknown one comes last.
-- is_chosen: the span to draw, that of the least disturbance, then the smaller pass, then the smaller launch.
-- since_start: ticks from the origin of its CTA in its own launch: the start of the CTA's lane of kind cta on that clock, else the CTA's first point on that clock.
-- The base launch of a family has the most kinds of points in loops (role and event), then the least disturbance, the smaller pass, the smaller launch.
-- align_event of a launch, role and loop: a kind of point of that loop that it shares with the base launch: the iteration_event where it does, else the first by event_index and name.
--   since_align: ticks from that point of the same iteration and lane to the begin of a span of that loop. Where this launch or the base has the point not exactly once there, nor for
--   spans of loop 'once', there is none ('', null).
-- x0 = (align_event of the base launch, in that iteration, since its origin) + since_align; without align_event since_start. x1 = x0 + ticks. drift = since_start - x0: how far its own
--   launch had fallen behind the base launch by then. x0 is a coordinate of the picture: in the base launch it is since_start, elsewhere it is the time of no launch.
WITH known AS (
  SELECT k.capture_id, k.launch, k.pass, k.trip_count, l.lane, l.cta, l.warp, l.role, l.clock, COALESCE(c.unit, 'tick') AS unit, k.kind, k.slots,
         CASE WHEN k.grid_x > 0 AND k.grid_y > 0 AND k.grid_z > 0 THEN CAST(k.grid_x AS BIGINT) * k.grid_y * k.grid_z ELSE CAST(-1 AS BIGINT) END AS grid_ctas,
         CAST(ROW_NUMBER() OVER (PARTITION BY k.capture_id, k.launch, l.cta, l.warp, l.role ORDER BY l.lane) AS INT) AS member
  FROM launches k
  JOIN lanes l ON l.capture_id = k.capture_id AND l.launch = k.launch
  LEFT JOIN clocks c ON c.capture_id = l.capture_id AND c.clock = l.clock
  WHERE k.pass >= 0 AND k.status <> 'failed' AND k.kind <> 'clean' AND l.cta >= 0 AND l.role <> ''
), player AS (
  SELECT k.capture_id, k.launch, k.pass, k.trip_count, k.grid_ctas, k.unit, k.lane, k.cta, k.warp, k.role, k.member, k.clock, p.perturbation,
         DENSE_RANK() OVER (PARTITION BY k.capture_id ORDER BY k.trip_count, k.grid_ctas, k.unit) AS family,
         CASE WHEN p.perturbation IS NULL THEN 1 ELSE 0 END AS is_unknown, COALESCE(CAST(FLOOR(ABS(p.perturbation) * 1.0E6 + 0.5E0) AS BIGINT), 0) AS disturbance
  FROM known k
  LEFT JOIN perturbation p ON p.capture_id = k.capture_id AND p.kind = k.kind AND p.pass = k.pass AND p.slots = k.slots AND p.grid_ctas = k.grid_ctas AND p.unit = k.unit AND p.preference = 1
), moment AS (
  SELECT p.capture_id, m.family, m.launch, m.cta, m.clock, m.warp, m.role, m.member, p.lane, p.role AS declared_role, p.event, p.iteration, p.t
  FROM point p JOIN player m ON m.capture_id = p.capture_id AND m.lane = p.lane
), first_record AS (
  SELECT capture_id, launch, cta, clock, MIN(t_start) AS t FROM lanes WHERE kind = 'cta' AND t_start >= 0 GROUP BY capture_id, launch, cta, clock
), origin AS (
  SELECT f.capture_id, f.launch, f.cta, f.clock, COALESCE(MIN(r.t), MIN(f.t)) AS t
  FROM moment f LEFT JOIN first_record r ON r.capture_id = f.capture_id AND r.launch = f.launch AND r.cta = f.cta AND r.clock = f.clock
  GROUP BY f.capture_id, f.launch, f.cta, f.clock
), named AS (
  SELECT capture_id, role, event, loop, event_index FROM event_types
  UNION ALL
  SELECT capture_id, role, span || '.begin' AS event, loop, 2147483647 AS event_index FROM span_types
), looped AS (
  SELECT x.capture_id, x.family, x.launch, x.role, n.loop, x.event, MIN(n.event_index) AS event_index
  FROM moment x JOIN named n ON n.capture_id = x.capture_id AND n.role = x.role AND n.event = x.event
  WHERE x.declared_role = x.role AND n.loop <> 'once'
  GROUP BY x.capture_id, x.family, x.launch, x.role, n.loop, x.event
), richness AS (
  SELECT capture_id, family, launch, COUNT(*) AS kinds FROM looped GROUP BY capture_id, family, launch
), launch_fact AS (
  SELECT DISTINCT capture_id, family, launch, pass, is_unknown, disturbance FROM player
), base AS (
  SELECT r.capture_id, r.family, r.launch, ROW_NUMBER() OVER (PARTITION BY r.capture_id, r.family ORDER BY r.kinds DESC, f.is_unknown, f.disturbance, f.pass, r.launch) AS nth
  FROM richness r JOIN launch_fact f ON f.capture_id = r.capture_id AND f.family = r.family AND f.launch = r.launch
), common AS (
  SELECT x.capture_id, x.family, x.launch, x.role, x.loop, x.event, b.launch AS base_launch,
         ROW_NUMBER() OVER (PARTITION BY x.capture_id, x.family, x.launch, x.role, x.loop ORDER BY CASE WHEN r.iteration_event = x.event THEN 0 ELSE 1 END, x.event_index, x.event) AS nth
  FROM looped x
  JOIN base b ON b.capture_id = x.capture_id AND b.family = x.family AND b.nth = 1
  JOIN looped y ON y.capture_id = x.capture_id AND y.family = x.family AND y.launch = b.launch AND y.role = x.role AND y.event = x.event
  LEFT JOIN roles r ON r.capture_id = x.capture_id AND r.role = x.role
), unique_moment AS (
  SELECT capture_id, family, launch, cta, clock, warp, role, member, lane, event, iteration, MIN(t) AS t
  FROM moment WHERE declared_role = role GROUP BY capture_id, family, launch, cta, clock, warp, role, member, lane, event, iteration HAVING COUNT(*) = 1
), aligned AS (
  SELECT x.capture_id, x.lane, s.loop, x.iteration, s.event, x.t, y.t - o.t AS base_since
  FROM common s
  JOIN unique_moment x ON x.capture_id = s.capture_id AND x.family = s.family AND x.launch = s.launch AND x.role = s.role AND x.event = s.event
  JOIN unique_moment y ON y.capture_id = s.capture_id AND y.family = s.family AND y.launch = s.base_launch AND y.role = s.role AND y.event = s.event
                      AND y.cta = x.cta AND y.warp = x.warp AND y.member = x.member AND y.iteration = x.iteration
  JOIN origin o ON o.capture_id = y.capture_id AND o.launch = y.launch AND o.cta = y.cta AND o.clock = y.clock
  WHERE s.nth = 1
), one AS (
  SELECT q.capture_id, q.family, q.launch, q.lane, q.pass, q.trip_count, q.grid_ctas, q.unit, q.cta, q.warp, q.role, q.member, q.perturbation, q.is_unknown, q.disturbance,
         s.span, s.state, s.iteration, s.span_id, s.t0, s.t1, s.t1 - s.t0 AS ticks, s.t0 - o.t AS since_start, COALESCE(y.loop, '') AS loop
  FROM span s
  JOIN player q ON q.capture_id = s.capture_id AND q.lane = s.lane
  JOIN origin o ON o.capture_id = q.capture_id AND o.launch = q.launch AND o.cta = q.cta AND o.clock = q.clock
  LEFT JOIN span_types y ON y.capture_id = s.capture_id AND y.role = s.role AND y.span = s.span
  WHERE s.complete AND s.end_lane = s.lane AND s.iteration >= 0
), compared AS (
  SELECT capture_id, family, launch, lane, pass, trip_count, grid_ctas, unit, cta, warp, role, member, perturbation, span, state, iteration, span_id, t0, t1, ticks, since_start, loop,
         COUNT(*) OVER (PARTITION BY capture_id, family, cta, warp, role, member, span, iteration) AS launches,
         DENSE_RANK() OVER (PARTITION BY capture_id, family, cta, warp, role, member, span, iteration ORDER BY pass) AS pass_rank,
         MIN(ticks) OVER (PARTITION BY capture_id, family, cta, warp, role, member, span, iteration) AS least_ticks,
         MAX(ticks) OVER (PARTITION BY capture_id, family, cta, warp, role, member, span, iteration) AS most_ticks,
         ROW_NUMBER() OVER (PARTITION BY capture_id, family, cta, warp, role, member, span, iteration ORDER BY is_unknown, disturbance, pass, launch, span_id) AS choice
  FROM one
)
SELECT x.capture_id, x.launch, x.lane, x.pass, x.trip_count, x.grid_ctas, x.unit, x.cta, x.warp, x.role, x.member, x.span, x.state, x.iteration, x.span_id, x.t0, x.t1, x.ticks, x.perturbation, x.since_start,
       COALESCE(b.launch, -1) AS base_launch, COALESCE(a.event, '') AS align_event, x.t0 - a.t AS since_align, COALESCE(a.base_since + (x.t0 - a.t), x.since_start) AS x0, COALESCE(a.base_since + (x.t0 - a.t), x.since_start) + x.ticks AS x1,
       x.since_start - (a.base_since + (x.t0 - a.t)) AS drift, x.launches,
       MAX(x.pass_rank) OVER (PARTITION BY x.capture_id, x.family, x.cta, x.warp, x.role, x.member, x.span, x.iteration) AS passes,
       x.least_ticks, x.most_ticks, x.choice = 1 AS is_chosen
FROM compared x
LEFT JOIN base b ON b.capture_id = x.capture_id AND b.family = x.family AND b.nth = 1
LEFT JOIN aligned a ON a.capture_id = x.capture_id AND a.lane = x.lane AND a.loop = x.loop AND a.iteration = x.iteration
