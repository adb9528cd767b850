-- signal: every realised declared edge into a wait: the signal that was sent, and the wait that needed it. The arrows of a timeline.
-- is_binding: the edge that wait names (none does where another needed edge of that wait has no signal).
SELECT capture_id, launch, cta, clock, producer_lane, producer_role, producer_event, CAST(producer_iteration AS INT) AS producer_iteration, signal_t,
       lane AS consumer_lane, role AS consumer_role, end_event AS consumer_event, iteration AS consumer_iteration, span, span_id, t0, t1, barrier, mechanism, completion, scope,
       release_ticks, nth = 1 AND is_found = 1 AS is_binding
FROM wait_edge WHERE signal_t IS NOT NULL
