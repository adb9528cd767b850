-- grid_cta: each recorded CTA of a launch: where and when it ran (cta_ns) and what its lanes did (cta_state).
SELECT n.capture_id, n.launch, n.cta, n.sm, n.clock, n.reference_clock, n.basis, n.t_start, n.t_end, n.ticks, n.start_ns, n.end_ns, n.duration_ns, n.error_ns, n.cluster, n.sm_order, n.residents, n.wave, n.start_order, n.end_order,
       n.start_after_ns, n.end_before_ns, n.may_be_last, COALESCE(s.lanes, 0) AS lanes, COALESCE(s.extent, 0) AS extent, COALESCE(s.stall, 0) AS stall, COALESCE(s.active, 0) AS active, COALESCE(s.untracked, 0) AS untracked,
       COALESCE(s.blocked, 0) AS blocked, COALESCE(s.satisfied, 0) AS satisfied, COALESCE(s.unjudged, 0) AS unjudged, s.stall_share, s.active_share, s.untracked_share, s.blocked_share
FROM cta_ns n LEFT JOIN cta_state s ON s.capture_id = n.capture_id AND s.launch = n.launch AND s.cta = n.cta
