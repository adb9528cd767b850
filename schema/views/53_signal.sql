-- signal: every realised declared edge into a wait: the signal that was sent, and the wait that needed it. The arrows of a timeline.
-- is_binding: the edge that wait names (none does where another needed edge of that wait has no signal).
SELECT x.capture_id, l.launch, l.cta, l.clock, x.producer_lane, k.producer_role, k.producer_event, x.producer_iteration, x.signal_t,
       x.lane AS consumer_lane, k.role AS consumer_role, k.end_event AS consumer_event, x.iteration AS consumer_iteration, k.span, x.span_id, x.t0, x.t1, k.barrier, k.mechanism, k.completion, k.scope,
       x.release_ticks, x.nth = 1 AND x.found = x.edges AS is_binding, x.error_ticks
FROM wait_edge x
JOIN wait_kind k ON k.capture_id = x.capture_id AND k.wait_kind = x.wait_kind AND k.edge_kind = x.edge_kind
LEFT JOIN lanes l ON l.capture_id = x.capture_id AND l.lane = x.lane
WHERE x.signal_t IS NOT NULL
