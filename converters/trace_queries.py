"""The questions that the writer of traces asks of a bundle's connection."""

from __future__ import annotations

# Lanes that were asked for.
ASKED_CAPTURE = """
SELECT capture_id FROM captures WHERE $1 IN ('', capture_id, label)
UNION SELECT capture_id FROM captures WHERE starts_with(capture_id, $1)
"""
ASKED = """
CREATE TABLE asked_lane AS
SELECT capture_id, lane FROM lanes
WHERE list_contains($1, capture_id) AND COALESCE(launch = $2, TRUE) AND COALESCE(cta = $3, TRUE)
"""
IS_ASKED = "EXISTS (SELECT 1 FROM asked_lane a WHERE a.capture_id = x.capture_id AND a.lane = x.lane)"

# How many points every lane has, and its first: what is drawn, and how to cut it into parts of bounded size.
LANE_POINTS = """
CREATE TABLE lane_points AS
SELECT capture_id, lane, COUNT(*) AS points, MIN(t) AS t FROM point GROUP BY capture_id, lane
"""

# Points whose lane, capture or clock is not there would be lost in the joins below.
LOST_POINTS = """
SELECT COALESCE(SUM(p.points), 0) FROM lane_points p
LEFT JOIN lanes l ON l.capture_id = p.capture_id AND l.lane = p.lane
LEFT JOIN captures c ON c.capture_id = p.capture_id
LEFT JOIN clocks k ON k.capture_id = p.capture_id AND k.clock = l.clock
WHERE l.lane IS NULL OR c.capture_id IS NULL OR k.clock IS NULL
"""

# Counted at the start and part by part: nothing may be missing.
RECORDS = "SELECT (SELECT COUNT(*) FROM events) + (SELECT COUNT(*) FROM spans)"

# Captures of one experiment stand together, in the order in which they were taken.
CAPTURES = """
CREATE TABLE numbered_capture AS
SELECT *, CAST(ROW_NUMBER() OVER (ORDER BY experiment, created_unix_ns, label, capture_id) - 1 AS INTEGER) AS nth,
       COUNT(*) OVER () AS captures, (SELECT COUNT(DISTINCT experiment) FROM captures) AS experiments,
       COUNT(*) OVER (PARTITION BY experiment, kernel, label) AS alike
FROM captures
"""

# n numbers the lanes that hold anything by (capture, lane), as files are sorted; ord is their order in the viewer.
LANES = """
CREATE TABLE drawn_lane AS
WITH used AS (
  SELECT l.*, p.points, p.t, c.nth, CASE WHEN l.launch < 0
           THEN MIN(l.lane) OVER (PARTITION BY c.nth, l.launch, l.process_id) ELSE 0 END AS process_order
  FROM lanes l JOIN lane_points p ON p.capture_id = l.capture_id AND p.lane = l.lane
  JOIN numbered_capture c ON c.capture_id = l.capture_id
)
SELECT l.capture_id, l.lane, l.launch, l.cta, l.clock, l.sm, l.warp, l.role, l.name, l.process_id, l.thread_id,
       l.kind AS lane_kind, l.nth, l.points, l.t,
       CAST(ROW_NUMBER() OVER (ORDER BY l.nth, l.lane) - 1 AS INTEGER) AS n,
       CAST(ROW_NUMBER() OVER (
         ORDER BY l.nth, l.launch, l.process_order, l.sm, l.cta, COALESCE(r.display_order, 0), l.warp, l.lane
       ) - 1 AS INTEGER) AS ord
FROM used l LEFT JOIN roles r ON r.capture_id = l.capture_id AND r.role = l.role
"""

LANE_NUMBERS = "SELECT n, ord, nth, lane, launch, cta, clock, points, t FROM drawn_lane ORDER BY n"

# The rows of the viewer in drawing order.
ROWS = """
SELECT o.n, o.nth, o.launch, o.cta, o.sm, o.warp, o.role, o.name, o.process_id, o.thread_id, o.lane, o.lane_kind,
       c.capture_id, c.kernel AS capture_kernel, c.label AS capture_label, c.experiment, c.captures, c.experiments,
       c.alike, COALESCE(k.kind, '') AS launch_kind,
       COALESCE(k.kernel, '') AS kernel
FROM drawn_lane o JOIN numbered_capture c ON c.nth = o.nth
LEFT JOIN launches k ON k.capture_id = o.capture_id AND k.launch = o.launch
ORDER BY o.ord
"""

# What follows is asked of one part: `events` and `spans` are then views of its lanes alone.
SPANS = """
SELECT o.n, s.t0, s.t1, s.span AS name, s.state AS category, s.iteration, s.complete, s.span_id,
       {tile} AS tile, {verdict}
FROM (
  SELECT capture_id, lane, role, span, state, iteration, t0, t1, complete, span_id FROM span
  {untracked}
) s
LEFT JOIN drawn_lane o ON o.capture_id = s.capture_id AND o.lane = s.lane
{joins}
ORDER BY o.n, s.t0, s.t1 DESC, s.iteration, s.span
"""

UNTRACKED = """
  UNION ALL
  SELECT i.capture_id, i.lane, '' AS role, 'untracked' AS span, 'untracked' AS state, -1 AS iteration, i.t0, i.t1,
         TRUE AS complete, CAST(-1 AS BIGINT) AS span_id
  FROM state_interval i WHERE i.state = 'untracked'
"""

# A tile is a label of the stamp that begins a span, or of the stored span.
TILE = "COALESCE(y.tile, b.tile, -1)"
TILES = """
LEFT JOIN span_types k ON k.capture_id = s.capture_id AND k.role = s.role AND k.span = s.span AND k.begin_event <> ''
LEFT JOIN events b ON b.capture_id = s.capture_id AND b.lane = s.lane AND b.event = k.begin_event
  AND b.iteration = s.iteration
LEFT JOIN spans y ON y.capture_id = s.capture_id AND y.span_id = s.span_id AND s.span_id >= 0
"""
TILED = "SELECT DISTINCT c.nth FROM {table} t JOIN numbered_capture c ON c.capture_id = t.capture_id WHERE t.tile > 0"

VERDICT = "v.verdict, v.blocked_ticks, v.producer, v.producer_iteration"
NO_VERDICT = "NULL AS verdict, NULL AS blocked_ticks, NULL AS producer, NULL AS producer_iteration"
VERDICTS = """
LEFT JOIN judged v ON v.n = o.n AND v.span = s.span AND v.iteration = s.iteration AND v.t0 = s.t0
  AND v.span_id = s.span_id
"""
JUDGED = """
CREATE TABLE judged AS
SELECT o.n, w.span, w.iteration, w.t0, w.span_id, w.verdict, w.blocked_ticks,
       CASE WHEN w.producer_role <> '' THEN w.producer_role || '.' || w.producer_event END AS producer,
       w.producer_iteration
FROM wait w JOIN drawn_lane o ON o.capture_id = w.capture_id AND o.lane = w.lane
"""

ENDS = """
  SELECT capture_id, role, begin_event AS event FROM span_types
  UNION
  SELECT capture_id, role, end_event AS event FROM span_types
"""

MARKERS = f"""
SELECT o.n, e.t, e.event AS name, e.iteration, e.tile, e.payload
FROM events e
LEFT JOIN drawn_lane o ON o.capture_id = e.capture_id AND o.lane = e.lane
LEFT JOIN ({ENDS}) x ON x.capture_id = e.capture_id AND x.role = e.role AND x.event = e.event
WHERE x.event IS NULL
ORDER BY o.n, e.t, e.event, e.iteration
"""

# Steps of the number of lanes of a CTA in a state, in time order of every CTA and state; touching intervals cancel.
STATES = """
WITH both_ends AS (
  SELECT TRUE AS begins UNION ALL SELECT FALSE AS begins
), step AS (
  SELECT o.launch, o.cta, MIN(o.n) AS n, CASE WHEN i.state = 'stall' THEN 1 ELSE 0 END AS stalled,
         CASE WHEN e.begins THEN i.t0 ELSE i.t1 END AS moment,
         CAST(SUM(CASE WHEN e.begins THEN 1 ELSE -1 END) AS BIGINT) AS step
  FROM state_interval i CROSS JOIN both_ends e
  JOIN drawn_lane o ON o.capture_id = i.capture_id AND o.lane = i.lane
  WHERE i.state <> 'untracked' AND o.cta >= 0
  GROUP BY o.launch, o.cta, o.clock, i.state, moment
)
SELECT n, stalled, moment, step FROM step WHERE step <> 0 ORDER BY launch, cta, stalled, moment
"""

# A time series in a bundle is a stamp whose payload is a number; metrics have no time.
SERIES = """
SELECT o.n, e.t, e.event AS name, COALESCE(TRY_CAST(e.payload AS DOUBLE), CAST('nan' AS DOUBLE)) AS value
FROM events e
JOIN event_types k ON k.capture_id = e.capture_id AND k.role = e.role AND k.event = e.event
JOIN drawn_lane o ON o.capture_id = e.capture_id AND o.lane = e.lane
WHERE k.payload_type IN ('int', 'float') AND e.payload <> ''
ORDER BY o.n, name, e.t, e.iteration
"""
HAS_SERIES = "SELECT COUNT(*) FROM event_types WHERE payload_type IN ('int', 'float')"

# What a stamp holds shows with its marker or its counter; a text with a stamp that begins or ends a span has no place.
HIDDEN_PAYLOADS = f"""
SELECT COUNT(*) FROM all__events e JOIN drawn_lane o ON o.capture_id = e.capture_id AND o.lane = e.lane
JOIN ({ENDS}) x ON x.capture_id = e.capture_id AND x.role = e.role AND x.event = e.event
LEFT JOIN event_types k ON k.capture_id = e.capture_id AND k.role = e.role AND k.event = e.event
WHERE e.payload <> '' AND COALESCE(k.payload_type, 'text') NOT IN ('int', 'float')
"""

NOTES = """
SELECT c.nth, c.capture_id, c.label, c.experiment, c.kernel, c.device, c.arch, c.completeness, c.kind, c.source_format,
       p.perturbation
FROM numbered_capture c LEFT JOIN (
  SELECT capture_id, MAX(perturbation) AS perturbation FROM perturbation GROUP BY capture_id
) p ON p.capture_id = c.capture_id ORDER BY c.nth
"""
