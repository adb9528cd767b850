-- wait_summary: the waits of a role in a launch by span kind, barrier and binding producer: how often, how long, how much of it blocked, and why.
-- producer_role and producer_event are '' where no edge binds (free and unknown waits). Medians are nearest-rank (the lower middle), so every engine gives the same integer.
WITH ranked AS (
  SELECT capture_id, launch, role, span, barrier, producer_role, producer_event, verdict, ticks, slack, blocked_ticks, satisfied_ticks, unjudged_ticks,
         ROW_NUMBER() OVER (PARTITION BY capture_id, launch, role, span, barrier, producer_role, producer_event ORDER BY ticks) AS nth,
         ROW_NUMBER() OVER (PARTITION BY capture_id, launch, role, span, barrier, producer_role, producer_event ORDER BY blocked_ticks) AS nth_blocked,
         COUNT(*) OVER (PARTITION BY capture_id, launch, role, span, barrier, producer_role, producer_event) AS n
  FROM wait
)
SELECT capture_id, launch, role, span, barrier, producer_role, producer_event, COUNT(*) AS waits,
       CAST(SUM(CASE WHEN verdict = 'free' THEN 1 ELSE 0 END) AS BIGINT) AS waits_free, CAST(SUM(CASE WHEN verdict = 'not_blocked' THEN 1 ELSE 0 END) AS BIGINT) AS waits_not_blocked,
       CAST(SUM(CASE WHEN verdict = 'producer_late' THEN 1 ELSE 0 END) AS BIGINT) AS waits_producer_late, CAST(SUM(CASE WHEN verdict = 'in_flight' THEN 1 ELSE 0 END) AS BIGINT) AS waits_in_flight,
       CAST(SUM(CASE WHEN verdict = 'other' THEN 1 ELSE 0 END) AS BIGINT) AS waits_other, CAST(SUM(CASE WHEN verdict = 'unknown' THEN 1 ELSE 0 END) AS BIGINT) AS waits_unknown,
       CAST(SUM(ticks) AS BIGINT) AS ticks, CAST(SUM(blocked_ticks) AS BIGINT) AS blocked_ticks, CAST(SUM(satisfied_ticks) AS BIGINT) AS satisfied_ticks, CAST(SUM(unjudged_ticks) AS BIGINT) AS unjudged_ticks,
       MIN(CASE WHEN nth * 2 >= n THEN ticks END) AS median_ticks, MAX(ticks) AS max_ticks, MIN(CASE WHEN nth_blocked * 2 >= n THEN blocked_ticks END) AS median_blocked_ticks, MAX(blocked_ticks) AS max_blocked_ticks,
       MIN(slack) AS min_slack
FROM ranked
GROUP BY capture_id, launch, role, span, barrier, producer_role, producer_event
