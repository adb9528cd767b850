-- cta_cluster: the cluster of each CTA that has a lane, by the grid and cluster of its launch; -1 where CTAs run alone or the sizes are unknown.
-- cta = x + grid_x * (y + grid_y * z). Clusters are numbered likewise: x / cluster_x + clusters in x * (y / cluster_y + clusters in y * z / cluster_z).
WITH sized AS (
  SELECT capture_id, launch, grid_x, grid_y, grid_z, cluster_x, cluster_y, cluster_z, CAST(cluster_x AS BIGINT) * cluster_y * cluster_z AS cluster_ctas FROM launches
  WHERE grid_x > 0 AND grid_y > 0 AND grid_z > 0 AND cluster_x > 0 AND cluster_y > 0 AND cluster_z > 0 AND grid_x % cluster_x = 0 AND grid_y % cluster_y = 0 AND grid_z % cluster_z = 0 AND CAST(cluster_x AS BIGINT) * cluster_y * cluster_z > 1
), recorded AS (
  SELECT DISTINCT capture_id, launch, cta FROM lanes WHERE cta >= 0
), placed AS (
  SELECT r.capture_id, r.launch, r.cta, s.cluster_ctas, s.cluster_x, s.cluster_y, s.cluster_z, CAST(s.grid_x / s.cluster_x AS BIGINT) AS across, CAST(s.grid_y / s.cluster_y AS BIGINT) AS down,
         r.cta % s.grid_x AS x, CAST((r.cta - r.cta % s.grid_x) / s.grid_x AS BIGINT) % s.grid_y AS y, CAST((r.cta - r.cta % (CAST(s.grid_x AS BIGINT) * s.grid_y)) / (CAST(s.grid_x AS BIGINT) * s.grid_y) AS BIGINT) AS z
  FROM recorded r LEFT JOIN sized s ON s.capture_id = r.capture_id AND s.launch = r.launch
)
SELECT capture_id, launch, cta, CAST(CASE WHEN cluster_ctas > 1 THEN (x - x % cluster_x) / cluster_x + across * ((y - y % cluster_y) / cluster_y + down * ((z - z % cluster_z) / cluster_z)) ELSE -1 END AS INT) AS cluster,
       CAST(COALESCE(cluster_ctas, 1) AS INT) AS cluster_ctas
FROM placed
