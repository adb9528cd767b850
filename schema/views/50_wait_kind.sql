-- wait_kind: every kind of wait (a stall span kind and the point that ends it) with each edge that is declared into that point; edge_kind 0 where there is none. Small.
-- A span kind can end in two ways: at the declared end_event when it is paired, at span || '.end' when it is stored.
-- is_mapped 0: a step is 0, so which iterations belong together is unknown. is_own 1: a self edge of mechanism 'commit', a warp waits for its own work.
-- latency = latency_ticks, rounded: FLOOR(x + 0.5).
-- release_kind numbers what shares one release: the edges of completion 'signal' into the wait together (a wake-up does not depend on who arrived),
--   each producer point of completion 'async' by itself.
WITH ended AS (
  SELECT capture_id, role, span, barrier, end_event, floor_ticks FROM span_types WHERE state = 'stall' AND begin_event <> '' AND end_event <> ''
  UNION
  SELECT capture_id, role, span, barrier, span || '.end' AS end_event, floor_ticks FROM span_types WHERE state = 'stall'
), joined AS (
  SELECT e.capture_id, e.role, e.span, e.barrier, e.end_event, e.floor_ticks, COALESCE(d.producer_role, '') AS producer_role, COALESCE(d.producer_event, '') AS producer_event, d.iteration_lag,
         COALESCE(d.mechanism, '') AS mechanism, COALESCE(d.completion, '') AS completion, COALESCE(d.scope, '') AS scope, CASE WHEN d.producer_role IS NULL THEN 0 ELSE 1 END AS is_declared,
         CASE WHEN d.producer_step > 0 AND d.consumer_step > 0 THEN 1 ELSE 0 END AS is_mapped, CASE WHEN d.producer_step > 0 AND d.consumer_step > 0 THEN d.producer_step ELSE 1 END AS producer_step,
         CAST(d.consumer_step AS BIGINT) AS consumer_step, CASE WHEN d.mechanism = 'commit' AND d.producer_role = d.consumer_role THEN 1 ELSE 0 END AS is_own,
         CAST(FLOOR(d.latency_ticks + 0.5E0) AS BIGINT) AS latency
  FROM ended e LEFT JOIN dependencies d ON d.capture_id = e.capture_id AND d.consumer_role = e.role AND d.consumer_event = e.end_event
)
SELECT capture_id, CAST(DENSE_RANK() OVER (PARTITION BY capture_id ORDER BY role, span, end_event) AS INT) AS wait_kind,
       CAST(CASE WHEN is_declared = 1 THEN ROW_NUMBER() OVER (PARTITION BY capture_id, role, span, end_event ORDER BY producer_role, producer_event, iteration_lag) ELSE 0 END AS INT) AS edge_kind,
       CAST(DENSE_RANK() OVER (PARTITION BY capture_id ORDER BY role, span, end_event, CASE WHEN completion = 'async' THEN producer_role ELSE '' END, CASE WHEN completion = 'async' THEN producer_event ELSE '' END) AS INT) AS release_kind,
       role, span, barrier, end_event, floor_ticks, producer_role, producer_event, iteration_lag, mechanism, completion, scope, is_mapped, producer_step, consumer_step, is_own, latency
FROM joined
