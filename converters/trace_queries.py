"""The questions that the trace model asks of a bundle's connection."""

from __future__ import annotations

# One line per lane from its clock to ns: anchors of its launch, else of the whole capture, else the clock itself.
# Where a clock has anchors on several reference clocks, the lowest number wins (a device timer before Unix time).
MAPPED = """
CREATE TEMP TABLE mapped AS
WITH choice AS (
  SELECT l.capture_id, l.lane, m.t_first, m.ns_first, m.ns_per_tick, m.error_ns,
         ROW_NUMBER() OVER (
           PARTITION BY l.capture_id, l.lane
           ORDER BY m.launch DESC, CASE WHEN m.reference_clock < 0 THEN 1 ELSE 0 END, m.reference_clock
         ) AS nth
  FROM lanes l
  JOIN clock_map m ON m.capture_id = l.capture_id AND m.clock = l.clock AND (m.launch = l.launch OR m.launch = -1)
  WHERE m.ns_per_tick IS NOT NULL
)
SELECT l.capture_id, l.lane,
       COALESCE(c.t_first, 0) AS t_first, COALESCE(c.ns_first, 0) AS ns_first,
       COALESCE(c.ns_per_tick, CASE WHEN k.unit = 'ns' THEN 1.0E0 END) AS ns_per_tick,
       CASE WHEN c.lane IS NOT NULL THEN c.error_ns
            WHEN k.step_ticks > 0 THEN CAST(k.step_ticks AS DOUBLE) END AS error_ns
FROM lanes l
LEFT JOIN choice c ON c.capture_id = l.capture_id AND c.lane = l.lane AND c.nth = 1
LEFT JOIN clocks k ON k.capture_id = l.capture_id AND k.clock = l.clock
"""

# Without anchors every CTA (every clock outside CTAs) starts at its own zero, and a tick is one unit of the axis.
TICKS = """
CREATE OR REPLACE TEMP TABLE mapped AS
WITH first_point AS (
  SELECT l.capture_id, l.launch, l.cta, l.clock, MIN(p.t) AS t
  FROM point p JOIN lanes l ON l.capture_id = p.capture_id AND l.lane = p.lane
  GROUP BY l.capture_id, l.launch, l.cta, l.clock
)
SELECT l.capture_id, l.lane, f.t AS t_first, CAST(0 AS BIGINT) AS ns_first, 1.0E0 AS ns_per_tick,
       CAST(NULL AS DOUBLE) AS error_ns
FROM lanes l
JOIN first_point f ON f.capture_id = l.capture_id AND f.launch = l.launch AND f.cta = l.cta AND f.clock = l.clock
"""

LANES = """
CREATE TEMP TABLE drawn_lane AS
WITH used AS (SELECT DISTINCT capture_id, lane FROM point)
SELECT l.capture_id, l.lane, l.launch, l.cta, l.sm, l.warp, l.role, l.name, l.process_id, l.thread_id,
       l.kind AS lane_kind, c.nth AS capture, c.kernel AS capture_kernel, c.label AS capture_label,
       (SELECT COUNT(*) FROM captures) AS captures,
       COALESCE(k.kind, '') AS launch_kind, COALESCE(k.kernel, '') AS kernel,
       CAST(ROW_NUMBER() OVER (
         ORDER BY c.nth, l.launch, l.sm, l.cta, COALESCE(r.display_order, 0), l.warp, l.lane
       ) - 1 AS INTEGER) AS ord
FROM lanes l JOIN used u ON u.capture_id = l.capture_id AND u.lane = l.lane
JOIN numbered_capture c ON c.capture_id = l.capture_id
LEFT JOIN launches k ON k.capture_id = l.capture_id AND k.launch = l.launch
LEFT JOIN roles r ON r.capture_id = l.capture_id AND r.role = l.role
"""

# A clock that ticks in ns stays in integers: its absolute times exceed what a DOUBLE holds.
TIME = (
    "CASE WHEN m.ns_per_tick = 1 THEN m.ns_first + ({t} - m.t_first) "
    "ELSE m.ns_first + CAST(FLOOR(CAST({t} - m.t_first AS DOUBLE) * m.ns_per_tick + 0.5) AS BIGINT) END"
)

DRAWN = f"""
SELECT o.ord, {TIME.format(t="s.t0")} AS t0, {TIME.format(t="s.t1")} AS t1, s.span AS name, s.state AS category,
       s.iteration, s.t0 AS tick0, s.t1 AS tick1, s.clock, m.error_ns, s.complete, s.span_id
FROM (
  SELECT capture_id, lane, span, state, iteration, t0, t1, clock, complete, span_id FROM span
  %s
) s
JOIN mapped m ON m.capture_id = s.capture_id AND m.lane = s.lane
JOIN drawn_lane o ON o.capture_id = s.capture_id AND o.lane = s.lane
ORDER BY o.ord, t0, t1 DESC, s.iteration
"""

UNTRACKED = """
  UNION ALL
  SELECT i.capture_id, i.lane, 'untracked' AS span, 'untracked' AS state, -1 AS iteration, i.t0, i.t1, l.clock,
         TRUE AS complete, CAST(-1 AS BIGINT) AS span_id
  FROM state_interval i JOIN lanes l ON l.capture_id = i.capture_id AND l.lane = i.lane WHERE i.state = 'untracked'
"""

MARKERS = f"""
WITH ends AS (
  SELECT capture_id, role, begin_event AS event FROM span_types
  UNION
  SELECT capture_id, role, end_event AS event FROM span_types
)
SELECT o.ord, {TIME.format(t="e.t")} AS t, e.event AS name, e.iteration, e.payload
FROM events e
JOIN mapped m ON m.capture_id = e.capture_id AND m.lane = e.lane
JOIN drawn_lane o ON o.capture_id = e.capture_id AND o.lane = e.lane
LEFT JOIN ends x ON x.capture_id = e.capture_id AND x.role = e.role AND x.event = e.event
WHERE x.event IS NULL
ORDER BY o.ord, t
"""

ARROWS = f"""
SELECT p.ord AS from_ord, {TIME.format(t="s.signal_t")} AS t, w.ord AS to_ord, s.span, s.t0 AS tick0, s.span_id,
       s.consumer_iteration AS iteration,
       CASE WHEN s.barrier <> '' THEN s.barrier ELSE s.producer_event END AS name, s.is_binding AS binding
FROM signal s
JOIN mapped m ON m.capture_id = s.capture_id AND m.lane = s.producer_lane
JOIN drawn_lane p ON p.capture_id = s.capture_id AND p.lane = s.producer_lane
JOIN drawn_lane w ON w.capture_id = s.capture_id AND w.lane = s.consumer_lane
WHERE %s
"""

# Arrows that the source recorded; -1 is an end that it lost.
RECORDED = f"""
SELECT COALESCE(o.ord, -1) AS from_ord, COALESCE({TIME.format(t="e.from_t").replace("m.", "a.")}, -1) AS from_t,
       COALESCE(w.ord, -1) AS to_ord, COALESCE({TIME.format(t="e.to_t").replace("m.", "b.")}, -1) AS to_t,
       e.from_span_id, e.to_span_id, c.nth AS capture, e.kind AS name
FROM edges e
JOIN numbered_capture c ON c.capture_id = e.capture_id
LEFT JOIN mapped a ON a.capture_id = e.capture_id AND a.lane = e.from_lane
LEFT JOIN drawn_lane o ON o.capture_id = e.capture_id AND o.lane = e.from_lane
LEFT JOIN mapped b ON b.capture_id = e.capture_id AND b.lane = e.to_lane
LEFT JOIN drawn_lane w ON w.capture_id = e.capture_id AND w.lane = e.to_lane
"""

STATES = f"""
SELECT o.ord, CAST(CASE WHEN i.state = 'stall' THEN 1 ELSE 0 END AS BIGINT) AS stalled,
       {TIME.format(t="i.t0")} AS t0, {TIME.format(t="i.t1")} AS t1
FROM state_interval i
JOIN mapped m ON m.capture_id = i.capture_id AND m.lane = i.lane
JOIN drawn_lane o ON o.capture_id = i.capture_id AND o.lane = i.lane
WHERE i.state <> 'untracked' AND o.cta >= 0
"""

# A time series in a bundle is a stamp whose payload is a number; metrics have no time.
SERIES = f"""
SELECT o.ord, {TIME.format(t="e.t")} AS t, e.event AS name,
       COALESCE(TRY_CAST(e.payload AS DOUBLE), CAST('nan' AS DOUBLE)) AS value
FROM events e
JOIN event_types k ON k.capture_id = e.capture_id AND k.role = e.role AND k.event = e.event
JOIN mapped m ON m.capture_id = e.capture_id AND m.lane = e.lane
JOIN drawn_lane o ON o.capture_id = e.capture_id AND o.lane = e.lane
WHERE k.payload_type IN ('int', 'float') AND e.payload <> ''
ORDER BY o.ord, name, t, e.iteration
"""

# What a stamp holds shows with its marker or its counter; a text with a stamp that begins or ends a span has no place.
HIDDEN_PAYLOADS = """
SELECT COUNT(*) FROM events e
JOIN (
  SELECT capture_id, role, begin_event AS event FROM span_types
  UNION
  SELECT capture_id, role, end_event AS event FROM span_types
) x ON x.capture_id = e.capture_id AND x.role = e.role AND x.event = e.event
LEFT JOIN event_types k ON k.capture_id = e.capture_id AND k.role = e.role AND k.event = e.event
WHERE e.payload <> '' AND COALESCE(k.payload_type, 'text') NOT IN ('int', 'float')
"""

NOTES = """
SELECT c.nth, c.capture_id, c.label, c.kernel, c.device, c.arch, c.completeness, c.kind, c.source_format, p.perturbation
FROM numbered_capture c LEFT JOIN (
  SELECT capture_id, MAX(perturbation) AS perturbation FROM perturbation GROUP BY capture_id
) p ON p.capture_id = c.capture_id ORDER BY c.nth
"""

UNMAPPED = """
SELECT COUNT(*) FROM drawn_lane o JOIN mapped m ON m.capture_id = o.capture_id AND m.lane = o.lane
WHERE m.ns_per_tick IS NULL
"""
