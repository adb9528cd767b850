-- barriers: what waiting at each barrier costs across the fleet: of the time of the roles that wait there, the share in which they were blocked.
-- One row a barrier (the span's name where it has none), role, span and binding producer. Shares are taken capture by capture, so that ticks of different clocks never meet:
-- mean_share is the mean over captures, most_share the worst of them, in capture most_capture. total_share: mean_share times the captures, to rank by: a barrier that many pay for counts more.
WITH whole AS (
  SELECT capture_id, role, CAST(SUM(extent) AS DOUBLE) AS extent FROM role_summary GROUP BY capture_id, role
), paid AS (
  SELECT w.capture_id, CASE WHEN w.barrier = '' THEN w.span ELSE w.barrier END AS barrier, w.role, w.span, w.producer_role,
         CAST(SUM(w.waits) AS BIGINT) AS waits, CAST(SUM(w.waits_producer_late + w.waits_in_flight + w.waits_other) AS BIGINT) AS waits_blocked,
         CAST(SUM(w.blocked_ticks) AS DOUBLE) AS blocked, CAST(SUM(w.satisfied_ticks) AS DOUBLE) AS satisfied, CAST(SUM(w.unjudged_ticks) AS DOUBLE) AS unjudged
  FROM wait_summary w GROUP BY w.capture_id, CASE WHEN w.barrier = '' THEN w.span ELSE w.barrier END, w.role, w.span, w.producer_role
), shared AS (
  SELECT p.capture_id, p.barrier, p.role, p.span, p.producer_role, p.waits, p.waits_blocked, p.blocked / e.extent AS share, p.satisfied / e.extent AS satisfied, p.unjudged / e.extent AS unjudged,
         ROW_NUMBER() OVER (PARTITION BY p.barrier, p.role, p.span, p.producer_role ORDER BY p.blocked / e.extent DESC, p.capture_id) AS nth
  FROM paid p JOIN whole e ON e.capture_id = p.capture_id AND e.role = p.role WHERE e.extent > 0
)
SELECT barrier, role, span, producer_role, COUNT(*) AS captures, CAST(SUM(waits) AS BIGINT) AS waits, CAST(SUM(waits_blocked) AS BIGINT) AS waits_blocked,
       AVG(share) AS mean_share, MAX(share) AS most_share, MIN(CASE WHEN nth = 1 THEN capture_id END) AS most_capture, AVG(satisfied) AS satisfied_share, AVG(unjudged) AS unjudged_share,
       SUM(share) AS total_share
FROM shared
GROUP BY barrier, role, span, producer_role
ORDER BY total_share DESC, barrier, role, span, producer_role
